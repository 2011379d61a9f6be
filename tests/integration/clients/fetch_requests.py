"""Python requests through the proxy that its variables name.
usage: fetch_requests.py METHOD URL [BODY [NAME VALUE]...]; prints the status and the version, then the body."""
import sys

import requests

method, url, body, *words = sys.argv[1:] + [""] * (4 - len(sys.argv))
answer = requests.request(method, url, data=body.encode() or None, headers=dict(zip(words[::2], words[1::2])), timeout=60)
print(answer.status_code, "h2" if answer.raw.version == 20 else "http/1.1")
print(answer.text)
