"""WebSocket by hand, on both sides of the proxy: a client whose every frame a test can choose, and an origin that echoes
messages, answers pings and closes, and does what the path asks for."""
import base64
import hashlib
import os
import struct

from .raw import RawOrigin
from .wire import Truncated

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(op, payload=b"", fin=True, rsv=0, mask=None, length=None):
    """mask: four bytes; None: not masked. length: another one than is true, as it stands in the head."""
    length = len(payload) if length is None else length
    bit = 0x80 if mask else 0
    head = bytes([(0x80 if fin else 0) | rsv << 4 | op])
    if length < 126:
        head += bytes([bit | length])
    elif length < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", length)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", length)
    return head + (mask + masked(payload, mask) if mask else payload)


def masked(payload, mask):
    key = (mask * (len(payload) // 4 + 1))[:len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(len(payload), "big")


def read_frame(wire):
    """(op, payload, fin, mask) of the next frame."""
    first, second = wire.read_exact(2)
    length = second & 0x7f
    if length > 125:
        length = int.from_bytes(wire.read_exact(2 if length == 126 else 8), "big")
    mask = wire.read_exact(4) if second & 0x80 else None
    payload = wire.read_exact(length)
    assert first & 0x70 == 0, "a reserved bit is set"
    return first & 0x0f, masked(payload, mask) if mask else payload, bool(first & 0x80), mask


def accept_of(key):
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


def close_payload(code, reason=b""):
    return struct.pack(">H", code) + reason


class Client:
    """One websocket through a proxy, over a connection that is ready for requests."""

    def __init__(self, wire, host, path="/echo", fields=(), key=None, offer=True):
        self.wire = wire
        self.key = key or base64.b64encode(os.urandom(16)).decode()
        upgrade = [("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                   ("Sec-WebSocket-Key", self.key)] if offer else []
        self.answer = wire.exchange("GET", path, [("Host", host), *upgrade, *fields])

    def opened(self):
        assert self.answer.status == 101, self.answer
        assert self.answer.header("sec-websocket-accept") == accept_of(self.key)
        assert self.answer.header("upgrade").lower() == "websocket"
        assert self.answer.header("connection").lower() == "upgrade"
        assert not self.answer.has("sec-websocket-extensions")
        return self

    def send(self, op, payload=b"", fin=True, rsv=0, mask=b"\x37\xfa\x21\x3d"):
        self.wire.send(frame(op, payload, fin, rsv, mask))
        return self

    def read(self):
        """(op, payload) of the next frame: whole, and not masked."""
        op, payload, fin, mask = read_frame(self.wire)
        assert fin and mask is None
        return op, payload

    def read_close(self):
        """The close that comes next: (code, reason); then the connection must end."""
        op, payload = self.read()
        assert op == CLOSE, (op, payload[:200])
        assert self.wire.read_until_closed() == b""
        return (struct.unpack(">H", payload[:2])[0], payload[2:].decode()) if payload else (1005, "")

    def echo(self, op, payload):
        assert self.send(op, payload).read() == (op, payload)
        return self

    def close(self, code=1000, reason=b""):
        """A close handshake that we begin."""
        self.send(CLOSE, close_payload(code, reason))
        return self.read_close()


class Echo(RawOrigin):
    """`seen` has every frame that came: (op, payload); `masks` their masks. The path /script sends `script` after the
    handshake. before(request) may give another answer to the handshake."""

    def __init__(self, leaf=None):
        self.seen, self.masks = [], []
        self.script, self.before = b"", None
        super().__init__(self.handle, leaf=leaf)

    def agree(self, request, fields=()):
        lines = [("Upgrade", "websocket"), ("Connection", "Upgrade"),
                 ("Sec-WebSocket-Accept", accept_of(request.header("sec-websocket-key"))), *fields]
        return ("HTTP/1.1 101 Switching Protocols\r\n" + "".join("%s: %s\r\n" % f for f in lines) + "\r\n").encode()

    def handle(self, conn):
        request = conn.read_request()
        reply = self.before(request) if self.before else self.agree(request)
        conn.send(reply)
        if not reply.startswith(b"HTTP/1.1 101 "):
            return
        if request.target == "/script":
            conn.send(self.script)
        while self.answer(conn, request):
            pass

    def answer(self, conn, request):
        op, payload, fin, mask = read_frame(conn)
        assert fin and mask
        self.seen.append((op, payload))
        self.masks.append(mask)
        if op == CLOSE and request.target != "/mute":
            conn.send(frame(CLOSE, payload))
        elif op == PING:
            conn.send(frame(PONG, payload))
        elif op in (TEXT, BINARY) and request.target == "/echo":
            conn.send(frame(op, payload))
        return op != CLOSE

    def messages(self):
        return [payload for op, payload in self.seen if op in (TEXT, BINARY)]


class StreamWire:
    """One stream of an H2Client as something to read from and to write to."""

    def __init__(self, client, stream):
        self.client, self.stream, self.at = client, stream, 0

    @property
    def answer(self):
        return self.client.answers[self.stream]

    def send(self, data):
        self.client.send(self.stream, data, end=False)
        return self

    def read_exact(self, n):
        while len(self.answer.body) < self.at + n:
            if self.client.over(self.stream):
                raise Truncated(self.answer.body[self.at:])
            self.client.read()
        self.at += n
        return self.answer.body[self.at - n:self.at]

    def read_until_closed(self):
        self.client.wait(self.stream)
        return self.answer.body[self.at:]


class H2WebSocket(Client):
    """One websocket on a stream of an H2Client (RFC 8441)."""

    def __init__(self, client, path="/echo", fields=(), protocol="websocket"):
        self.wire = StreamWire(client, client.start("CONNECT", path, [
            ("sec-websocket-version", "13"), *fields], end=False, pseudo=[(":protocol", protocol)]))
        while not self.answer.status and not client.over(self.wire.stream):
            client.read()

    @property
    def answer(self):
        return self.wire.answer

    def opened(self):
        assert self.answer.status == 200, self.answer
        names = [name for name, _ in self.answer.fields]
        assert not {"sec-websocket-accept", "sec-websocket-extensions", "upgrade", "connection"} & set(names), names
        return self
