// Go's own client, with nothing but the usual variables set.
// usage: fetch METHOD URL [BODY [NAME VALUE]...]; prints the status and the version, then the body.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	var body io.Reader
	if len(os.Args) > 3 && os.Args[3] != "" {
		body = strings.NewReader(os.Args[3])
	}
	request, err := http.NewRequest(os.Args[1], os.Args[2], body)
	if err != nil {
		log.Fatal(err)
	}
	for i := 4; i+1 < len(os.Args); i += 2 {
		request.Header.Set(os.Args[i], os.Args[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	version := "http/1.1"
	if response.ProtoMajor == 2 {
		version = "h2"
	}
	fmt.Println(response.StatusCode, version)
	fmt.Println(string(text))
}
