cat > go.mod <<'END'
module example.com/a
END
cat > a.go <<'END'
package main

import (
	"fmt"
	"net"
	"os/exec"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go net.Dial("tcp", l.Addr().String())
	if _, err = l.Accept(); err != nil {
		panic(err)
	}
	if err = exec.Command("true").Run(); err != nil {
		panic(err)
	}
	fmt.Println("hello")
}
END
GOCACHE=$PWD/cache GOTMPDIR=$PWD go build -o a .
./a
