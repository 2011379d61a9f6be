"""Python httpx with HTTP/2 through the proxy that its variables name.
usage: fetch_httpx.py METHOD URL [BODY [NAME VALUE]...]; prints the status and the version, then the body."""
import sys

import httpx

method, url, body, *words = sys.argv[1:] + [""] * (4 - len(sys.argv))
with httpx.Client(http2=True, timeout=60) as client:
    answer = client.request(method, url, content=body.encode() or None, headers=dict(zip(words[::2], words[1::2])))
print(answer.status_code, "h2" if answer.http_version == "HTTP/2" else "http/1.1")
print(answer.text)
