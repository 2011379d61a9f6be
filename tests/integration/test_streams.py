"""Responses that come bit by bit, such as server-sent events: each part passes as it comes, in all versions of HTTP and
through redaction; and when the client is gone, so is the request at the server, at once."""
import queue
import subprocess
import threading

import h2.events
import pytest

from cagelib.content import assert_unleaked
from cagelib.h2 import H2Client, H2Server, h2_only
from cagelib.proxy import policy
from cagelib.raw import RawOrigin, server_tls

HOST = "events.test"
VALUE, PLACEHOLDER = "ev3nt-value-91827364", "{{EVENTS_KEY}}"
VERSIONS = ("http/1.1", "h2")
HEAD = [("content-type", "text/event-stream"), ("cache-control", "no-cache")]


class Feed(RawOrigin):
    """An origin of one request whose response the test writes part by part, with say() and end(). On /silent there is no
    response at all."""

    def __init__(self, leaf, version):
        self.parts, self.asked, self.gone = queue.Queue(), threading.Event(), threading.Event()
        tls = server_tls(leaf)
        tls.set_alpn_protocols([version])
        if version == "h2":
            super().__init__(h2_only(tls, lambda conn: FeedServer(self, conn).run()))
        else:
            super().__init__(self.serve_h1, tls=tls)

    def say(self, part):
        self.parts.put(part)

    def end(self):
        self.parts.put(None)

    def next_part(self, conn, send):
        """Sends what the test gives until something comes in: that, or b"" when the other side has ended."""
        conn.sock.settimeout(0.02)
        while True:
            if self.asked.is_set() and not self.parts.empty():
                send(self.parts.get_nowait())
            try:
                return conn.sock.recv(65536)
            except TimeoutError:
                continue

    def serve_h1(self, conn):
        def send(part):
            conn.send(b"%x\r\n%s\r\n" % (len(part), part) if part is not None else b"0\r\n\r\n")

        request = conn.read_request()
        if request.target != "/silent":
            conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" +
                      b"".join(("%s: %s\r\n" % field).encode() for field in HEAD) + b"\r\n")
        self.asked.set()
        try:
            while self.next_part(conn, send):
                pass
        finally:
            self.gone.set()


class FeedServer(H2Server):
    """The same over HTTP/2: the request is gone when its stream is reset, too."""

    def __init__(self, feed, conn):
        self.feed, self.conn, self.stream = feed, conn, None
        super().__init__(lambda _: feed.next_part(conn, self.say), conn.sock.sendall, self.begin)

    def begin(self, request, _server):
        self.stream = request.stream
        if request.header(":path") != "/silent":
            self.h2.send_headers(request.stream, [(":status", "200"), *HEAD])
        self.feed.asked.set()

    def say(self, part):
        if part is None:
            self.h2.end_stream(self.stream)
        else:
            self.h2.send_data(self.stream, part)
        self.flush()

    def take(self, event):
        super().take(event)
        if isinstance(event, h2.events.StreamReset):
            self.feed.gone.set()

    def run(self):
        try:
            super().run()
        finally:
            self.feed.gone.set()


@pytest.fixture(params=VERSIONS, ids=["from-h1", "from-h2"])
def feed(request, pki):
    with Feed(pki.leaf(HOST), request.param) as running:
        yield running


@pytest.fixture
def cage(start_cage, feed, pki):
    secret = {"id": "key", "from": {"env": "EVENTS_KEY"}, "placeholder": PLACEHOLDER, "in": ["header:x-api-key"]}
    rule = {"id": "events", "hosts": [HOST], "secrets": ["key"]}
    return start_cage(policy(rule, pins={HOST: feed.pin}, trust=[pki.ca_pem], secrets=[secret]), env={"EVENTS_KEY": VALUE})


class Reader:
    """A client of one version, whose one request is under way."""

    def __init__(self, cage, version, path):
        self.is_h2 = version == "h2"
        if self.is_h2:
            self.client = H2Client(cage, HOST)
            self.stream = self.client.start("GET", path)
        else:
            self.wire = cage.tunnel(HOST)
            self.wire.request("GET", path, [("Host", HOST)])
            self.body, self.has_head = b"", False

    def received(self):
        return self.client.answers[self.stream].body if self.is_h2 else self.body

    def read_chunk(self):
        """Of HTTP/1.1. False: that was the last one."""
        if not self.has_head:
            assert self.wire.read_head().status == 200
            self.has_head = True
        size = int(self.wire.read_until(b"\r\n"), 16)
        self.body += self.wire.read_exact(size)
        assert self.wire.read_exact(2) == b"\r\n"
        return size > 0

    def read_until(self, mark):
        while mark not in self.received():
            if self.is_h2:
                assert not self.client.over(self.stream), self.client.answers[self.stream]
                self.client.read()
            else:
                assert self.read_chunk()

    def read_end(self):
        if self.is_h2:
            assert self.client.wait(self.stream).ended
        else:
            assert not self.read_chunk()

    def turn_away(self, how):
        if how == "close":
            (self.client.wire if self.is_h2 else self.wire).close()
        else:
            self.client.h2.reset_stream(self.stream, 8)
            self.client.flush()


@pytest.fixture(params=VERSIONS, ids=["to-h1", "to-h2"])
def version(request):
    return request.param


def test_events_pass_as_they_come(cage, feed, version):
    reader = Reader(cage, version, "/events")
    for i in range(20):
        feed.say(b"id: %d\ndata: some text\n\n" % i)
        reader.read_until(b"id: %d\ndata: some text\n\n" % i)
        feed.say(b": keep-alive %d\n\n" % i)
        reader.read_until(b": keep-alive %d\n\n" % i)
    feed.end()
    reader.read_end()
    line = cage.log.wait(event="response", host=HOST)
    assert (line["decision"], line["status"]) == ("allow", 200)


def test_t33_events_pass_through_redaction(cage, feed, version):
    """What may begin a value is kept back, and nothing else is; no timer lets it go."""
    reader = Reader(cage, version, "/events")
    feed.say(b"data: key %s.\n\n" % VALUE.encode())
    reader.read_until(b"data: key %s.\n\n" % PLACEHOLDER.encode())
    feed.say(b"data: half " + VALUE.encode()[:9])
    reader.read_until(b"data: half ")
    feed.say(VALUE.encode()[9:] + b"\n\n")
    reader.read_until(b"data: half %s\n\n" % PLACEHOLDER.encode())
    feed.say(b"data: " + VALUE.encode()[:9])
    feed.say(b" was no value\n\n")
    reader.read_until(b"data: %s was no value\n\n" % VALUE.encode()[:9])
    feed.end()
    reader.read_end()
    assert VALUE.encode() not in reader.received()
    assert cage.log.wait(event="response", host=HOST)["redacted"] == ["key"]
    assert_unleaked(cage, VALUE)


@pytest.mark.parametrize("path", ["/events", "/silent"])
@pytest.mark.parametrize("version, how", [("http/1.1", "close"), ("h2", "close"), ("h2", "reset")])
def test_a_client_that_is_gone_takes_its_request_along(cage, feed, version, how, path):
    """Though the server says nothing, neither before its response nor in it."""
    reader = Reader(cage, version, path)
    assert feed.asked.wait(20)
    if path == "/events":
        feed.say(b"data: one\n\n")
        reader.read_until(b"data: one\n\n")
    assert not feed.gone.is_set()
    reader.turn_away(how)
    assert feed.gone.wait(20)
    line = cage.log.wait(event="response", host=HOST)
    assert (line["decision"], line["reason"]) == ("error", "client.gone")


@pytest.mark.parametrize("option", ["--http1.1", "--http2"])
def test_curl_reads_events_as_they_come(cage, feed, option):
    process = subprocess.Popen(["curl", "-sSN", option, "--max-time", "60", "https://%s/events" % HOST], env=cage.env(),
                               stdout=subprocess.PIPE)
    try:
        for i in range(3):
            feed.say(b"data: %d\n\n" % i)
            assert process.stdout.readline() + process.stdout.readline() == b"data: %d\n\n" % i
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert feed.gone.wait(20)
    assert cage.log.wait(event="response", host=HOST)["reason"] == "client.gone"
