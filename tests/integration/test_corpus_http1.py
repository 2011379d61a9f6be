"""Requests of the shared corpora, sent raw: inside intercepted TLS, as plain HTTP inside a CONNECT, and to the proxy itself.
Every `reject` is refused, every `accept` served, and the origin never sees two readings of one request: all that it received
is read again by another parser, and each request in it was answered to the client that sent it."""
import base64
import re
import socket
import ssl

import pytest
from cagelib.corpora import load
from cagelib.proxy import policy
from cagelib.raw import RawOrigin
from cagelib.strict import Ambiguous, read_requests
from cagelib.wire import Truncated, Wire, response_bytes

DEFAULT_HOST = "victim.example"
HOST_LINE = re.compile(rb"\r\nhost:[ \t]*([a-z0-9_.-]+)(?::(\d{1,5}))?[ \t]*(?=\r\n)", re.I)
ABSOLUTE = re.compile(rb"[A-Z]+ https?://([a-z0-9_.-]+)(?::(\d{1,5}))?[/? ]", re.I)
CONNECT = re.compile(rb"CONNECT ([a-z0-9_.-]+):(\d{1,5}) ", re.I)
PORTS = [80, 443, 444, 1234, 5000, 8080]
ROUTES = ("tls", "plain", "direct")


class TlsHalf:
    """A TLS client on a socket that can end its own side and go on reading, which ssl.SSLSocket can't."""

    def __init__(self, sock, tls, name):
        self.sock = sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = tls.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        self._until_done(self.tls.do_handshake)

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def _flush(self):
        if self.outgoing.pending:
            self.sock.sendall(self.outgoing.read())

    def _until_done(self, step, *args):
        while True:
            try:
                result = step(*args)
                self._flush()
                return result
            except ssl.SSLWantReadError:
                self._flush()
                data = self.sock.recv(65536)
                if data:
                    self.incoming.write(data)
                else:
                    self.incoming.write_eof()

    def sendall(self, data):
        self._until_done(self.tls.write, data)

    def recv(self, size):
        try:
            return self._until_done(self.tls.read, size)
        except ssl.SSLZeroReturnError:
            return b""

    def end(self):
        """close_notify; the answer to it is left to recv()."""
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        self._flush()

    def close(self):
        self.sock.close()


class Client(Wire):
    """One connection that ends up at the origin's name, in one of three ways."""

    def end(self):
        try:
            self.sock.end() if isinstance(self.sock, TlsHalf) else self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side was faster

    @classmethod
    def open(cls, cage, route, host, port):
        wire = cls(socket.create_connection(("127.0.0.1", cage.port), 10), timeout=5)
        if route == "direct":
            return wire
        if port in (0, 80, 443):
            port = 443 if route == "tls" else 80
        answer = wire.exchange("CONNECT", "%s:%d" % (host, port), [("Host", "%s:%d" % (host, port))])
        assert answer.status == 200, answer
        if route == "tls":
            wire.sock = TlsHalf(wire.sock, cage.client_tls(), host)
        return wire


class Outcome:
    """What a client saw: the numbers of the requests that the origin answered, and how it ended."""

    def __init__(self):
        self.served = []     # as the origin numbers them
        self.tunnels = 0     # CONNECTs granted
        self.refusal = None  # the last answer that was not the origin's
        self.stalled = False  # neither an answer nor an end came

    def take(self, answer):
        if answer.has("x-seen"):
            self.served.append(int(answer.header("x-seen")))
        elif answer.status == 200:
            self.tunnels += 1
        else:
            self.refusal = answer

    @property
    def granted(self):
        return len(self.served) + self.tunnels

    def __repr__(self):
        return "served %d, tunnels %d, refusal %s" % (len(self.served), self.tunnels, self.refusal)


def converse(wire, raw, wanted):
    """Sends raw and reads that many answers, or up to the end. Then our side ends, so that a proxy that waits for more has
    nothing to wait for, and all that is left is read. A proxy that ends first has refused the rest."""
    outcome = Outcome()
    method = raw.split(b" ", 1)[0].decode("latin-1")
    try:
        wire.send(raw)
        for _ in range(wanted):
            outcome.take(wire.read_response(method))
        wire.end()
        while True:
            outcome.take(wire.read_response(method))
    except TimeoutError:
        outcome.stalled = True
    except Truncated as e:
        assert not e.partial, "half an answer: %r" % e
    except (ConnectionError, ssl.SSLError):
        pass  # it may close while we still send
    finally:
        wire.close()
    return outcome


# ---- the origin and the proxy between

class Counting(RawOrigin):
    """Answers each request with its number."""

    def __init__(self, leaf=None):
        super().__init__(self._serve, leaf)
        self.numbered = {}

    def _serve(self, conn):
        while True:
            request = conn.read_request()
            number = len(self.numbered)
            self.numbered[number] = request
            conn.send(response_bytes(200, fields=[("X-Seen", str(number))]))

    def read_again(self):
        """Every request that arrived, by the other parser; fails where there is more than requests."""
        out = []
        for conn in self.conns:
            try:
                out += read_requests(bytes(conn.received))
            except Ambiguous as e:
                raise AssertionError("the origin got what has two readings: %s in %r" % (e, bytes(conn.received)))
        return out


class Stage:
    """One proxy with one TLS and one plain origin behind it."""

    def __init__(self, start_cage, pki, names):
        names = sorted(names)
        self.secure, self.plain = Counting(leaf=pki.leaf(*names)), Counting()
        rules = [{"id": "all", "hosts": names, "ports": PORTS, "addresses": ["127.0.0.0/8"]}]
        secure = policy(*rules, pins={n: self.secure.pin for n in names}, trust=[pki.ca_pem])
        plain = policy(*rules, pins={n: self.plain.pin for n in names}, trust=[pki.ca_pem])
        self.cages = {"tls": start_cage(secure), "plain": start_cage(plain)}
        self.cages["direct"] = self.cages["plain"]
        self.outcomes = []

    def run(self, route, raw, wanted):
        host, port = destination(raw)
        outcome = converse(Client.open(self.cages[route], route, host, port), raw, wanted)
        self.outcomes.append((route, outcome))
        return outcome

    def origin(self, route):
        return self.secure if route == "tls" else self.plain

    def check(self):
        """The requests at the origins are those that clients saw answered, each once."""
        for origin, routes in ((self.secure, ("tls",)), (self.plain, ("plain", "direct"))):
            seen = [n for route, outcome in self.outcomes if route in routes for n in outcome.served]
            assert sorted(seen) == list(range(len(origin.numbered)))
            assert len(origin.read_again()) == len(origin.numbered)

    def stop(self):
        self.secure.stop()
        self.plain.stop()


def destination(raw):
    """Host and port that a request names, where it does so in good order; 0: no port."""
    found = CONNECT.match(raw) or ABSOLUTE.match(raw) or HOST_LINE.search(raw)
    host = found.group(1).decode().lower() if found else DEFAULT_HOST
    port = int(found.group(2) or 0) if found else 0
    return host, port if port in PORTS else 0


def to_proxy(raw):
    """The request as a client sends it to a proxy: an origin-form target gets its scheme and host."""
    host, port = destination(raw)
    authority = host + (":%d" % port if port else "")
    return re.sub(rb"\A(\r\n)?([!-~]+) /", lambda m: b"%s%s http://%s/" % (m.group(1) or b"", m.group(2), authority.encode()), raw)


def raw_of(case):
    return base64.b64decode(case["raw"])


def names_of(raws):
    return {destination(raw)[0] for raw in raws} | {DEFAULT_HOST}


def fits(raw, route):
    """May a request of that form be sent this way? CONNECT is for the proxy itself; a scheme goes with its route."""
    if raw.startswith(b"CONNECT "):
        return route == "direct"
    if re.match(rb"[A-Z]+ https://", raw):
        return route == "tls"
    return route != "tls" or not re.match(rb"[A-Z]+ http://", raw)


@pytest.fixture
def stage_for(start_cage, pki):
    stages = []

    def make(names):
        stages.append(Stage(start_cage, pki, names))
        return stages[-1]

    yield make
    for stage in stages:
        stage.stop()


# ---- http1_requests

EXCEPTIONS = {
    "llhttp request/method.md: CONNECT with body": "what follows a CONNECT is the tunnel: a length beside it is refused",
    "llhttp request/method.md: CONNECT request [+Host]": "the added Host names another host than the CONNECT",
    "llhttp request/sample.md: curl GET": "0.0.0.0=5000 is no host",
    "llhttp request/sample.md: Firefox GET": "0.0.0.0=5000 is no host",
    "portswigger TE connection (no CL)": "Connection may not name a field of the framing",
    "haproxy h1_host_normalization.vtc#3": "port 80 is never TLS",
    "haproxy h1_host_normalization.vtc#37": "there is no host to go to",
    "haproxy h1_host_normalization.vtc#38": "there is no host to go to",
    "llhttp request/connection.md: Multiple tokens with folding and LWS [+Host]": "it asks for a websocket without a key",
}


def expected(case, raw, route):
    """Label, and how many requests are whole, for that way of sending it."""
    if not fits(raw, route):
        return "reject", 0
    whole = case["complete_requests_before_verdict"]
    return case["strict"], min(whole, 1) if route == "direct" else whole  # only the first is made a proxy's


def same_reading(stage, route, raw, outcome):
    """Where the other parser can read what was sent, the origin must have got the same."""
    try:
        sent = read_requests(raw)
    except Ambiguous:
        return True
    got = [stage.origin(route).numbered[n] for n in outcome.served]
    return [r.key() for r in sent] == [(r.method.encode(), r.target.encode(), r.body) for r in got]


def fault(label, whole, outcome):
    """What is wrong with an outcome, or None."""
    if outcome.stalled:
        return "no answer"
    if outcome.granted > whole:
        return "more was served than there is"
    if outcome.refusal and not 400 <= outcome.refusal.status < 500:
        return "failed"
    if label != "normalise" and outcome.granted < whole:
        return "not served"
    return "refused" if label == "accept" and outcome.refusal else None


def test_http1_requests(stage_for):
    cases = load("http1_requests")
    stage = stage_for(names_of(map(raw_of, cases)))
    wrong, excepted = [], set()
    for case in cases:
        for route in ROUTES:
            raw = to_proxy(raw_of(case)) if route == "direct" else raw_of(case)
            label, whole = expected(case, raw, route)
            outcome = stage.run(route, raw, whole + (label == "reject"))
            said = fault(label, whole, outcome)
            if label == "accept" and not said and not same_reading(stage, route, raw, outcome):
                said = "read otherwise"
            if said == "not served" and case["name"] in EXCEPTIONS:
                excepted.add(case["name"])
            elif said:
                wrong.append((case["name"], route, label, said, outcome, raw))
    stage.check()
    assert not wrong, "%d:\n%s" % (len(wrong), "\n".join(map(repr, wrong)))
    assert excepted == set(EXCEPTIONS), "listed in vain"


# ---- http1_llhttp

# llhttp accepts it and we do not.
STRICTER = {
    "not HTTP/1.x": [
        "request/method.md: SOURCE request with ICE", "request/method.md: OPTIONS request with RTSP",
        "request/method.md: ANNOUNCE request with RTSP", "request/sample.md: No HTTP version", "response/sample.md: RTSP response",
        "response/sample.md: ICE response", "response/sample.md: HTTP version 0.9"],
    "an empty line before a message is not skipped": [
        "request/sample.md: Prefix newline", "request/sample.md: Request starting with CRLF",
        "response/sample.md: Response starting with CRLF", "response/connection.md: HTTP 100 first, then 400"],
    "0.0.0.0=5000 is no host": ["request/sample.md: curl GET", "request/sample.md: Firefox GET"],
    "`*` is for OPTIONS alone": ["request/method.md: M-SEARCH request"],
    "a target has no fragment, and an authority no user": ["request/uri.md: Fragment in URI", "request/uri.md: `host:port` and basic auth"],
    "a coding other than exactly chunked": [
        "request/transfer-encoding.md: POST with `chunked` as last transfer-encoding",
        "request/transfer-encoding.md: POST with `chunked` as last transfer-encoding (multiple headers)",
        "response/transfer-encoding.md: `chunked` before other transfer-encoding",
        "response/transfer-encoding.md: multiple transfer-encoding where chunked is not the last one",
        "response/transfer-encoding.md: `chunkedchunked` transfer-encoding does not enable chunked enconding"],
    "Content-Type in trailers changes how the body is read": ["request/transfer-encoding.md: Trailing headers"],
    "the body is shorter than it says": [
        "request/content-length.md: Content-Length reset when no body is received", "response/connection.md: HTTP 103 first, then 200",
        "response/content-length.md: Content-Length reset when no body is received",
        "response/content-length.md: Tabs in `Content-Length` (surrounding)", "response/transfer-encoding.md: Chunk extensions quoting"],
    "a websocket without a key of RFC 6455": [
        "request/connection.md: Upgrade GET request", "request/connection.md: Multiple tokens with folding and LWS"],
    "a 101 that nobody asked for": [
        "response/connection.md: HTTP 101 response with Upgrade and Transfer-Encoding header",
        "response/connection.md: HTTP 101 response with Upgrade and Content-Length header"],
}
# llhttp rejects it, or accepts it only when it is told to be lenient, and we serve it.
LOOSER = {
    "the first message is whole, and what follows it is not read": [
        "request/connection.md: Resetting flags when keep-alive is off (1.0, lenient)",
        "request/connection.md: CRLF between requests, implicit `keep-alive`",
        "request/lenient-headers.md: Second request header value (lenient)",
        "response/connection.md: HTTP/1.1 with keep-alive disabled, content-length (lenient)",
        "response/connection.md: HTTP/1.1 with keep-alive disabled and 204 status (lenient)"],
    "any token is a method": ["request/invalid.md: HTTP protocol and ANNOUNCE method", "request/invalid.md: Invalid method"],
    "an empty chunk extension means nothing": [
        "request/transfer-encoding.md: No extension after semicolon", "response/transfer-encoding.md: No extension after semicolon"],
}
# What the corpus tells of these cases is not what llhttp read.
UNTOLD = {"request/connection.md: CRLF between requests, explicit `close`": "the case swallowed the text behind it",
          "request/uri.md: Quotes in URI": "the target is cut off at its quote",
          "response/connection.md: HTTP 304 with Transfer-Encoding": "the body is that of the second response"}
ENDS_MESSAGE = ("Pause on", "Data after")  # not errors of syntax: what came before is whole


def listed(table):
    return {name for names in table.values() for name in names}


def is_good(case):
    """Does llhttp, when it is strict, see a whole message? The end of a connection can be the end of a response."""
    whole = case["messages"] > 0 or case["type"].startswith("response")
    return not case["lenient"] and whole and (case["llhttp"] == "ok" or case["reason"].startswith(ENDS_MESSAGE))


def judge(kind, run):
    """Runs each case; run() gives what was wrong with a whole message that passed, or None when none passed."""
    cases = [c for c in load("http1_llhttp") if c["type"].startswith(kind)]
    wrong, stricter, looser = [], set(), set()
    for case in cases:
        for said in run(case):
            if said is None and is_good(case):
                stricter.add(case["name"])
            elif said is not None and not is_good(case):
                looser.add(case["name"])
            elif said and case["name"] not in UNTOLD:
                wrong.append((case["name"], said))
    names = {c["name"] for c in cases}
    assert not wrong, wrong
    assert not stricter ^ (listed(STRICTER) & names), "refused, or listed in vain"
    assert not looser ^ (listed(LOOSER) & names), "served, or listed in vain"


def with_host(raw):
    """The same request with a Host, where it has none."""
    if re.search(rb"\r\nhost:", raw, re.I):
        return raw
    line = b"Host: %s\r\n" % ":".join(str(x) for x in destination(raw) if x).encode()
    return re.sub(rb"\A(?:\r\n)*[^\r\n]*\r\n", lambda m: m.group(0) + line, raw)


def origin_form(url):
    rest = re.sub(r"\Ahttps?://[^/?]*", "", url)
    return rest if rest.startswith(("/", "*")) else "/" + rest


def test_llhttp_requests(stage_for):
    stage = stage_for(names_of(raw_of(c) for c in load("http1_llhttp")))

    def run(case):
        raw = with_host(raw_of(case))
        for route in ROUTES[:2]:
            if raw.startswith(b"CONNECT ") or not fits(raw, route):
                continue
            outcome = stage.run(route, raw, 0)
            if not outcome.served:
                yield None
                continue
            got = stage.origin(route).numbered[outcome.served[0]]
            told = (case["methods"][:1], [origin_form(u) for u in case["urls"][:1]])
            body = "".join(case["bodies"]) if case["messages"] == 1 else got.body.decode("latin-1")
            same = told == ([got.method], [got.target]) and body == got.body.decode("latin-1")
            yield "" if same else "read otherwise: %r" % got

    judge("request", run)
    stage.check()


def test_llhttp_responses(start_cage):
    """As answers of an origin: what is not a response, or not a whole one, never passes for one."""
    answers = {}

    def answer(conn):
        conn.send(answers[conn.read_request().target])

    with RawOrigin(answer) as origin:
        cage = start_cage(policy({"id": "r", "hosts": ["r.test"], "ports": [80]}, pins={"r.test": origin.pin}))

        def run(case):
            target = "/%d" % len(answers)
            answers[target] = raw_of(case)
            try:
                got = cage.connect().exchange("GET", "http://r.test" + target, [("Host", "r.test")])
            except (Truncated, ConnectionError):
                got = None  # cut off
            cage.hang_up()
            if not got or got.status == 502:
                yield None
                return
            status = re.match(rb"HTTP/1\.[01] (\d+)", raw_of(case))
            body = case["messages"] != 1 or got.body.decode("latin-1").startswith("".join(case["bodies"])[:20])
            yield "" if body and status and int(status.group(1)) == got.status else "read otherwise: %r" % got

        judge("response", run)
