"""A service that says what the test tells it to say, byte by byte: for what a client does with answers that no service of ours gives."""
import json
import os
import socket
import threading

SECONDS = 20


def response(status=200, body=b"", kind="application/json", headers=()):
    """A whole answer with its length."""
    if not isinstance(body, (bytes, bytearray)):
        body = json.dumps(body).encode()
    lines = ["HTTP/1.1 %d Said" % status, "Content-Type: " + kind, "X-Request-Id: r1", "Connection: close", *headers]
    if status != 204:
        lines.append("Content-Length: %d" % len(body))
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def problem(status, title, detail=None, **more):
    body = {"type": "about:blank", "title": title, "status": status, "instance": "r1", **more}
    if detail is not None:
        body["detail"] = detail
    return response(status, body, "application/problem+json")


def chunked(pieces, kind="application/octet-stream", end=b"0\r\n\r\n"):
    """An answer in chunks."""
    head = "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" % kind
    return head.encode() + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + end


def events(*said):
    """(name, data) as server-sent events, in an answer in chunks."""
    text = "".join(("event: %s\n" % name if name else "") + "".join("data: %s\n" % line for line in data.split("\n")) + "\n" for name, data in said)
    return chunked([text.encode()], "text/event-stream")


def sandbox(ident="box1", state="running", **more):
    """All that the API requires of a sandbox."""
    out = {"id": ident, "state": state, "reason": "started", "created_at": "2026-01-02T03:04:05.123456Z", "labels": {}, "backend": "local",
           "tools": ["shell_exec"], "limits": {"cpu": 1, "memory": 536870912}, "keep": False, "deadline_at": "2026-01-02T04:04:05Z",
           "history": [{"state": "queued", "at": "2026-01-02T03:04:05Z", "reason": "created"}]}
    if state not in ("queued", "creating"):
        out["started_at"] = "2026-01-02T03:04:06Z"
    out.update(more)
    return out


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body

    def json(self):
        return json.loads(self.body)


class StandIn:
    """Use as a context manager. say(): the answers to requests for one target, in their order; the last one stays."""

    def __init__(self, address):
        self.listener = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET, socket.SOCK_STREAM)
        self.listener.bind(address)
        self.listener.listen(64)
        self.path = address
        self.port = None if isinstance(address, str) else self.listener.getsockname()[1]
        self.answers, self.requests = {}, []
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        if isinstance(self.path, str):
            os.unlink(self.path)

    def say(self, method, target, *answers):
        """An answer is bytes, or a function that is given the connection and the request."""
        self.answers[(method, target)] = list(answers)

    def asked(self, method, target):
        return [r for r in self.requests if (r.method, r.target) == (method, target)]

    def _serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(conn,), daemon=True).start()

    def _answer(self, conn):
        conn.settimeout(SECONDS)
        with conn:
            try:
                reader = conn.makefile("rb")
                method, target, headers = read_head(reader)
                said = self.answers.get((method, target))
                answer = (said.pop(0) if len(said) > 1 else said[0]) if said else problem(404, "Not found", "%s %s" % (method, target))
                if getattr(answer, "before_body", False):
                    self.requests.append(Request(method, target, headers, None))
                    answer(conn, None)
                    return
                request = Request(method, target, headers, read_body(reader, headers))
                self.requests.append(request)
                if callable(answer):
                    answer(conn, request)
                else:
                    conn.sendall(answer)
            except OSError:
                pass  # the client has gone


def read_head(reader):
    method, target, version = reader.readline().decode().split(" ")
    assert version == "HTTP/1.1\r\n"
    headers = {}
    for line in iter(reader.readline, b"\r\n"):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return method, target, headers


def read_body(reader, headers):
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            n = int(reader.readline(), 16)
            body += reader.read(n)
            assert reader.readline() == b"\r\n"
            if n == 0:
                return body
    return reader.read(int(headers.get("content-length", 0)))
