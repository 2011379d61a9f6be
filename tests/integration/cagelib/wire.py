"""HTTP/1.1 on a socket, byte for byte: used as client of the proxy and as origin behind it. Records all it received.

Every read has a deadline; a clean end and a cut-off are told apart (Truncated)."""
import json
import socket
import ssl

TIMEOUT = 20


class Truncated(Exception):
    """The peer ended where it should not have; .partial is what came of the piece that was read."""

    def __init__(self, partial):
        super().__init__("connection ended after %d bytes: %r" % (len(partial), bytes(partial[-200:])))
        self.partial = bytes(partial)


class Message:
    """A request or a response as it was on the wire."""

    def __init__(self, head):
        self.head = head
        lines = head[:-4].decode("latin-1").split("\r\n")
        self.start = lines[0]
        self.fields = [tuple(part.strip(" ") for part in line.split(":", 1)) for line in lines[1:]]
        self.body = b""
        self.trailers = []
        self.interim = []  # 1xx messages that came before
        words = self.start.split(" ")
        self.status = int(words[1]) if self.start.startswith("HTTP/") else 0
        self.method, self.target = ("", "") if self.status else (words[0], words[1])

    def header(self, name, default=""):
        return next((v for n, v in self.fields if n.lower() == name.lower()), default)

    def has(self, name):
        return any(n.lower() == name.lower() for n, _ in self.fields)

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "<%s %r>" % (self.start, self.body[:300])


class Wire:
    def __init__(self, sock, timeout=TIMEOUT):
        self.sock = sock
        sock.settimeout(timeout)
        self.buffer = b""
        self.received = bytearray()

    # ---- bytes

    def send(self, data):
        self.sock.sendall(data)
        return self

    def _more(self):
        """Reads once; False at the end. A TLS stream that ends without close_notify raises ssl.SSLEOFError."""
        data = self.sock.recv(65536)
        self.buffer += data
        self.received += data
        return bool(data)

    def _take(self, n):
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def read_until(self, mark):
        while mark not in self.buffer:
            if not self._more():
                raise Truncated(self.buffer)
        return self._take(self.buffer.index(mark) + len(mark))

    def read_exact(self, n):
        parts, have = [], 0
        while have < n:
            if not self.buffer and not self._more():
                raise Truncated(b"".join(parts))
            parts.append(self._take(n - have))
            have += len(parts[-1])
        return b"".join(parts)

    def read_to_end(self):
        """All until a clean end."""
        while self._more():
            pass
        return self._take(len(self.buffer))

    def read_until_closed(self):
        """All until the connection ends, in whatever way it does."""
        try:
            return self.read_to_end()
        except (ConnectionError, ssl.SSLError, BrokenPipeError):
            return self._take(len(self.buffer))

    # ---- messages

    def read_head(self):
        return Message(self.read_until(b"\r\n\r\n"))

    def read_chunked(self, message):
        parts = []
        while True:
            size = int(self.read_until(b"\r\n")[:-2].split(b";")[0], 16)
            if size == 0:
                break
            parts.append(self.read_exact(size))
            assert self.read_exact(2) == b"\r\n"
        message.body = b"".join(parts)
        while (line := self.read_until(b"\r\n")) != b"\r\n":
            message.trailers.append(tuple(p.strip(" ") for p in line[:-2].decode("latin-1").split(":", 1)))

    def read_body(self, message, until_close):
        if message.header("transfer-encoding").lower() == "chunked":
            self.read_chunked(message)
        elif message.has("content-length"):
            message.body = self.read_exact(int(message.header("content-length")))
        elif until_close:
            message.body = self.read_to_end()
        return message

    def read_request(self):
        return self.read_body(self.read_head(), False)

    def read_response(self, method="GET"):
        interim = []
        message = self.read_head()
        while 100 <= message.status < 200 and message.status != 101:
            interim.append(message)
            message = self.read_head()
        message.interim = interim
        if method == "HEAD" or message.status in (101, 204, 304) or (method == "CONNECT" and message.status == 200):
            return message
        return self.read_body(message, True)

    def request(self, method, target, fields=(), body=b"", version="HTTP/1.1"):
        """Writes a request; Content-Length is added when there is a body."""
        self.send(request_bytes(method, target, fields, body, version))
        return self

    def exchange(self, method, target, fields=(), body=b""):
        return self.request(method, target, fields, body).read_response(method)

    # ---- the end

    def end(self):
        """Ends our side in good order; reading goes on where the transport allows it."""
        if not isinstance(self.sock, ssl.SSLSocket):
            self.sock.shutdown(socket.SHUT_WR)
            return
        try:
            self.sock.settimeout(2)
            self.sock = self.sock.unwrap()
        except (OSError, ValueError):
            pass

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def request_bytes(method, target, fields=(), body=b"", version="HTTP/1.1"):
    lines = ["%s %s %s" % (method, target, version)] + ["%s: %s" % f for f in fields]
    if body:
        lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def response_bytes(status, body=b"", fields=(), phrase="OK"):
    lines = ["HTTP/1.1 %d %s" % (status, phrase)] + ["%s: %s" % f for f in fields]
    if status not in (204, 304):
        lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def chunked(*pieces, trailers=()):
    """The bytes of a chunked body."""
    out = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n"
    return out + b"".join(("%s: %s\r\n" % t).encode("latin-1") for t in trailers) + b"\r\n"
