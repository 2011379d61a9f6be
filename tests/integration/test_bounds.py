"""The bounds that docs/operations.md promises, met by a proxy whose limits are small (limits/small_limits.h): what the client
sees, the reason, the log line, and that a client beside does not notice. Times are those of the limits: nothing here is faster
than they are, and each wait is bounded."""
import os
import signal
import socket
import ssl
import threading
import time

import pytest
from cagelib.beside import Beside
from cagelib.checks import logged_block, logged_failure, refused, upstream_failed
from cagelib.dns import Dns
from cagelib.proxy import child_named, policy, small_binary, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import Truncated, response_bytes

HOST = [("Host", "b.test")]
URL = "http://b.test/"
CONNS = 160  # of limits/small_limits.h, as the other numbers here
BIG = os.urandom(8 << 20)
SOME = 200000  # what the proxy takes from a server though the client takes nothing


class World:
    """A proxy with small limits; an origin that does what the path says, in plain and in TLS; `go_on` ends its waiting."""

    def __init__(self, start_cage, pki, **more):
        self.go_on = threading.Event()
        self.plain = RawOrigin(self.serve)
        self.secure = RawOrigin(self.serve, leaf=pki.leaf("s.test", "*.n.test"))
        self.mute = RawOrigin(lambda conn: self.go_on.wait(20))
        self.beside = RawOrigin()
        self.full = FullBacklog()
        web = {"id": "b", "hosts": ["b.test", "s.test", "mute.test", "full.test", "beside.test"], "ports": [80, 443]}
        names = {"id": "n", "hosts": ["*.n.test"], "methods": ["GET"]}
        tunnel = {"id": "t", "action": "tunnel", "hosts": ["t.test"], "ports": [2222]}
        pins = {"b.test": self.plain.pin, "s.test": self.secure.pin, "mute.test": self.mute.pin, "full.test": self.full.pin,
                "t.test": self.mute.pin, "beside.test": self.beside.pin}
        rules = policy(web, names, tunnel, pins=pins, trust=[pki.ca_pem], **more)
        self.cage = start_cage(rules, program=small_binary())

    def serve(self, conn):
        while True:
            head = conn.read_head()
            conn.origin.requests.append(head)
            if head.target in ("/quiet", "/unread"):
                self.go_on.wait(20)
            elif head.target == "/trickle":
                self.trickle(conn)
            conn.read_body(head, False)
            body = {"/big": BIG, "/some": BIG[:SOME]}.get(head.target, b"ok")
            conn.send(response_bytes(200, body))

    def trickle(self, conn):
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not self.go_on.wait(0.2):
            conn.send(b"x")

    def close(self):
        self.go_on.set()
        for thing in (self.plain, self.secure, self.mute, self.beside, self.full):
            thing.stop()


class FullBacklog:
    """A listener that never accepts and whose queue is full: further connects are not answered at all."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        port = self.listener.getsockname()[1]
        self.pin = "127.0.0.1:%d" % port
        self.filling = []
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
            self.filling.append(sock)

    def stop(self):
        for sock in [self.listener, *self.filling]:
            sock.close()


@pytest.fixture
def alone(start_cage, pki):
    """Where the bound is one of the whole worker, so that a client beside meets it too, or of stopping."""
    world = World(start_cage, pki)
    yield world
    world.close()


@pytest.fixture
def world(alone):
    with Beside(alone.cage, "http://beside.test/"):
        yield alone


def failure_line(cage, reason, **wanted):
    line = cage.log.wait(reason=reason, **wanted)
    assert line["decision"] == "error", line
    return line


# ---- clients that are slow or silent

@pytest.mark.parametrize("how", ["plain", "tls"])
def test_t24_a_head_that_trickles_is_a_408(world, how):
    wire = world.cage.connect() if how == "plain" else world.cage.tunnel("s.test")
    head = b"GET / HTTP/1.1\r\nX: "
    wire.sock.settimeout(0.1)
    for byte in head + b"y" * 200:  # steadily, for 20 s unless it is stopped
        wire.send(bytes([byte]))
        try:
            if not wire._more():
                raise AssertionError("ended without a word")
            break
        except TimeoutError:
            pass
    wire.sock.settimeout(10)
    answer = wire.read_response()
    refused(answer, "client.timeout", status=408)
    logged_block(world.cage, answer)


def test_t24_a_body_that_stops_is_given_up(world):
    wire = world.cage.connect().send(b"POST http://b.test/stops HTTP/1.1\r\nHost: b.test\r\nContent-Length: 10\r\n\r\nab")
    assert wire.read_until_closed() == b""
    failure_line(world.cage, "client.timeout", event="request", stage="body", path="/stops")
    assert not world.plain.requests


def test_t24_a_streamed_body_that_stops_is_given_up(world):
    wire = world.cage.connect().send(b"POST http://b.test/stops HTTP/1.1\r\nHost: b.test\r\nContent-Length: 1000000\r\n\r\n")
    wire.send(b"y" * 300000)
    assert wire.read_until_closed() == b""
    line = world.cage.log.wait(event="request", path="/stops")
    failure_line(world.cage, "client.timeout", event="response", txn=line["txn"])
    world.plain.wait(lambda o: isinstance(o.conns[-1].error, (Truncated, ConnectionError)))  # never whole for the server


def test_t24_a_client_that_only_shakes_half_a_hand(world):
    wire, answer = world.cage.ask_connect("s.test:443")
    assert answer.status == 200
    wire.send(b"\x16\x03\x01\x02\x00\x01")
    assert wire.read_until_closed() == b""
    failure_line(world.cage, "client.timeout", event="connect", stage="tls", host="s.test")


@pytest.mark.parametrize("how", ["plain", "connect", "tls", "kept-alive"])
def test_t24_a_client_that_says_nothing_is_let_go(world, how):
    wire = world.cage.tunnel("s.test") if how == "tls" else world.cage.connect()
    if how == "connect":
        assert wire.exchange("CONNECT", "s.test:443", [("Host", "s.test:443")]).status == 200
    elif how == "kept-alive":
        assert wire.exchange("GET", URL, HOST).status == 200
    assert wire.read_until_closed() == b""
    wait_until(lambda: world.cage.metric("cage_connections_open") == 1, 5, "it is still there")


def small_window(world):
    """A client that takes next to nothing on its own."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(10)
    sock.connect(("127.0.0.1", world.cage.port))
    wire = world.cage.connect()
    wire.sock.close()
    wire.sock = sock
    return wire


def test_t24_a_client_that_reads_nothing_is_reset(world):
    wire = small_window(world).request("GET", URL + "big", HOST)
    line = world.cage.log.wait(event="request", path="/big")
    failure_line(world.cage, "client.timeout", event="response", stage="response", txn=line["txn"])
    assert len(wire.read_until_closed()) < len(BIG)
    wait_until(lambda: world.cage.metric("cage_connections_open") == 1, 5, "it is still there")


def test_t24_a_client_that_reads_no_answers_is_let_go(world):
    small_window(world).send(b"GET http://no.test/ HTTP/1.1\r\nHost: no.test\r\n\r\n" * 3000)
    wait_until(lambda: world.cage.metric("cage_connections_open") == 1, 10, "it is still there")


def test_t24_a_client_that_does_not_fetch_its_last_response_is_let_go(world):
    """All of it is with the proxy, whose log has its result; what is left is the connection."""
    pid = child_named(world.cage, "cage-worker")
    before = len(os.listdir("/proc/%d/fd" % pid))
    small_window(world).request("GET", URL + "some", [*HOST, ("Connection", "close")])
    line = world.cage.log.wait(event="request", path="/some")
    assert world.cage.log.wait(event="response", txn=line["txn"])["decision"] == "allow"
    wait_until(lambda: len(os.listdir("/proc/%d/fd" % pid)) <= before, 10, "it is still there")


def test_a_client_that_reads_slowly_gets_all(world):
    wire = small_window(world).request("GET", URL + "big", HOST)
    wire.read_head()
    wire.read_exact(1 << 20)
    for _ in range(6):  # for longer than a stall may last; in steps that TCP tells the sender of
        wire.read_exact(1 << 17)
        time.sleep(0.5)
    rest = len(BIG) - (1 << 20) - 6 * (1 << 17)
    assert wire.read_exact(rest) == BIG[-rest:]


# ---- servers that are slow or silent

def fetch_failure(world, url, reason="upstream.timeout", status=504):
    answer = world.cage.fetch("GET", url)
    upstream_failed(answer, reason, status)
    return logged_failure(world.cage, answer, reason)


def test_t24_a_server_that_does_not_shake_hands(world):
    assert fetch_failure(world, "https://mute.test/")["stage"] == "upstream"


def test_t24_a_server_that_does_not_accept(world):
    assert fetch_failure(world, "http://full.test/")["stage"] == "upstream"


def test_t38_a_resolver_that_says_nothing(start_cage):
    with Dns({}, may_answer=threading.Event()) as dns, RawOrigin() as beside:
        rules = policy({"id": "r", "hosts": ["r.test", "beside.test"], "ports": [80]}, pins={"beside.test": beside.pin},
                       upstream={"resolvers": [dns.address]})
        cage = start_cage(rules, program=small_binary())
        with Beside(cage, "http://beside.test/"):
            answer = cage.fetch("GET", "http://r.test/")
            upstream_failed(answer, "upstream.timeout", 504)
            assert b"The name could not be resolved in time." in answer.body
            logged_failure(cage, answer, "upstream.timeout")
        dns.may_answer.set()


@pytest.mark.parametrize("url", [URL, "https://s.test/"])
def test_t24_a_server_that_does_not_answer(world, url):
    line = fetch_failure(world, url + "quiet")
    assert (line["event"], line["stage"]) == ("response", "response")


def test_t24_a_server_that_does_not_read(world):
    """It is the server that is late, not the client."""
    wire = world.cage.connect().send(b"POST http://b.test/unread HTTP/1.1\r\nHost: b.test\r\nContent-Length: 20000000\r\n\r\n")
    sender = threading.Thread(target=send_until_refused, args=(wire, 20000000))
    sender.start()
    answer = wire.read_response()
    sender.join(20)
    upstream_failed(answer, "upstream.timeout", 504)
    logged_failure(world.cage, answer, "upstream.timeout")


def send_until_refused(wire, count):
    try:
        for _ in range(count // 100000):
            wire.send(b"u" * 100000)
    except OSError:
        pass  # the answer is there, nobody reads on


def test_t24_an_exchange_that_never_ends(world):
    """Bytes come all the time; there is an end to that too."""
    wire = world.cage.connect().request("GET", URL + "trickle", HOST)
    with pytest.raises((Truncated, ConnectionError)):
        wire.read_response()
    failure_line(world.cage, "upstream.timeout", event="response", stage="response")


def test_a_silent_tunnel_is_closed(world):
    wire, answer = world.cage.ask_connect("t.test:2222")
    assert answer.status == 200
    assert wire.read_until_closed() == b""
    line = world.cage.log.wait(event="response", decision="error", stage="response")
    assert line["reason"] in ("client.timeout", "upstream.timeout")


# ---- what is kept

def test_idle_upstream_connections_are_closed_in_time(world):
    assert world.cage.fetch("GET", URL).status == 200
    assert world.cage.metric("cage_pool_idle") >= 1
    world.plain.wait(lambda o: isinstance(o.conns[0].error, Truncated) and o.conns[0].error.partial == b"")
    assert world.cage.fetch("GET", URL).status == 200


def test_no_more_than_so_many_idle_connections_to_one_origin(alone):
    wires = [alone.cage.connect().request("GET", URL + "quiet", HOST) for _ in range(5)]
    alone.plain.wait(lambda o: len(o.requests) == 5)
    alone.go_on.set()
    assert [w.read_response().status for w in wires] == [200] * 5
    wait_until(lambda: alone.cage.metric("cage_pool_idle") == 3, 1, "not three")
    alone.plain.wait(lambda o: sum(c.error is not None for c in o.conns) >= 2)


# ---- held bodies

def test_t24_no_more_is_held_than_the_budget(world):
    """Two bodies fit; the third is refused, and they are not."""
    head = b"POST http://b.test/%d HTTP/1.1\r\nHost: b.test\r\nContent-Length: 100000\r\n\r\n"
    wires = [world.cage.connect().send(head % n + b"h" * 99999) for n in range(2)]
    wait_until(lambda: world.cage.metric("cage_held_bytes") == 2 * 99999, 5, "not held")
    third = world.cage.connect().send(head % 2 + b"h" * 99999)
    answer = third.read_response()
    refused(answer, "limit.hold", status=503)
    logged_block(world.cage, answer, stage="body", path="/2")
    for wire in wires:
        assert wire.send(b"h").read_response().status == 200
    assert sorted(r.target for r in world.plain.requests) == ["/0", "/1"]
    wait_until(lambda: world.cage.metric("cage_held_bytes") == 0, 5, "held bytes stay")


# ---- certificates

def new_name(world, number):
    """True when there was a certificate for it. The request inside is refused by the policy, so it goes nowhere."""
    try:
        refused(world.cage.fetch("DELETE", "https://x%d.n.test/" % number), "method.not_allowed")
        return True
    except (ssl.SSLError, ConnectionError):
        return False


def tls_refusal(world, host, reason):
    line = world.cage.log.wait(host=host, stage="tls")
    assert (line["event"], line["decision"], line["reason"]) == ("connect", "block", reason)


def test_t24_new_names_have_a_rate(world):
    assert [new_name(world, n) for n in range(4)] == [True] * 4  # the burst
    late = next(n for n in range(4, 40) if not new_name(world, n))
    tls_refusal(world, "x%d.n.test" % late, "limit.rate")
    assert new_name(world, 0)  # a known one
    wait_until(lambda: new_name(world, 50), 5, "no new name though time has passed")


def begin_handshake(world, name):
    """A client whose hello is out, for a name of its own."""
    tls, outgoing = world.cage.client_tls(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        tls.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    wire, answer = world.cage.ask_connect(name + ":443")
    assert answer.status == 200
    return wire.send(outgoing.read())


@pytest.fixture
def signer_stopped(world):
    assert new_name(world, 0)
    pid = child_named(world.cage, "cage-signer")
    os.kill(pid, signal.SIGSTOP)
    yield world
    os.kill(pid, signal.SIGCONT)


def test_t24_no_more_than_so_many_wait_for_a_certificate(signer_stopped):
    world = signer_stopped
    for number in range(1, 4):
        begin_handshake(world, "x%d.n.test" % number)
    wait_until(lambda: world.cage.metric("cage_leaves_minted_total") == 4, 5, "not asked for")
    assert b"HTTP" not in begin_handshake(world, "x4.n.test").read_until_closed()
    tls_refusal(world, "x4.n.test", "limit.rate")


def test_t38_a_signer_that_does_not_answer(signer_stopped):
    world = signer_stopped
    assert b"HTTP" not in begin_handshake(world, "x1.n.test").read_until_closed()
    assert new_name(world, 0)  # a known one
    tls_refusal(world, "x1.n.test", "signer.unavailable")


# ---- connections and exchanges

def test_t24_no_more_than_so_many_connections(world):
    cage = world.cage
    idle = [cage.connect() for _ in range(CONNS - 1)]
    wait_until(lambda: cage.metric("cage_connections_open") == CONNS, 2, "not all are in")
    assert cage.connect().read_until_closed() == b""
    line = cage.log.wait(reason="limit.connections")
    assert (line["event"], line["decision"]) == ("connect", "block")
    idle.pop().close()
    wait_until(lambda: cage.metric("cage_connections_open") < CONNS, 2, "a place does not get free")
    assert cage.fetch("GET", URL).status == 200


def test_t24_no_more_exchanges_than_the_log_has_places_for(alone):
    """Each keeps the place of its result in the queue of the log. A refusal that finds no place in it is counted."""
    cage = alone.cage
    wires = [cage.connect().request("GET", URL + "quiet", HOST) for _ in range(CONNS - 1)]
    wait_until(lambda: cage.metric("cage_decisions_total") == len(wires), 2, "not all are decided")
    alone.go_on.set()
    answers = [wire.read_response() for wire in wires]
    turned_away = [a for a in answers if a.status != 200]
    assert 75 <= len(answers) - len(turned_away) == len(alone.plain.requests) <= 126
    for answer in turned_away:
        refused(answer, "limit.connections", status=503)
    assert cage.fetch("GET", URL).status == 200  # all have ended

    def accounted():
        logged = cage.log.find(reason="limit.connections", decision="block", stage="log", status=503)
        return len(logged) + cage.metric("cage_log_lost_total") == len(turned_away)

    wait_until(accounted, 3, "a refusal is neither logged nor counted")


def test_t38_clients_wait_for_a_log_writer_that_is_late(alone):
    """More lines than its queue holds: they wait, and all are written."""
    cage, count = alone.cage, 3000
    pid = child_named(cage, "cage-log")
    os.kill(pid, signal.SIGSTOP)
    try:
        wire = cage.connect()
        sender = threading.Thread(target=wire.send, args=(b"GET http://no.test/ HTTP/1.1\r\nHost: no.test\r\n\r\n" * count,))
        sender.start()
        answered = 0
        wire.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            while answered < count:
                refused(wire.read_response(), "host.not_allowed")
                answered += 1
    finally:
        os.kill(pid, signal.SIGCONT)
    wire.sock.settimeout(10)
    for _ in range(count - answered):
        refused(wire.read_response(), "host.not_allowed")
    sender.join(10)
    wait_until(lambda: len(cage.log.find(reason="host.not_allowed")) == count, 10, "lines are missing")
    assert cage.metric("cage_log_lost_total") == 0


# ---- stopping

def test_what_does_not_end_by_itself_is_ended_by_the_drain(start_cage, alone):
    cage = alone.cage
    wire = cage.connect().request("GET", URL + "trickle", HOST)
    assert wire.read_head().status == 200
    tunnel, answer = cage.ask_connect("t.test:2222")
    assert answer.status == 200
    cage.signal(signal.SIGTERM)
    assert tunnel.read_until_closed() == b""
    wire.read_until_closed()
    assert cage.process.wait(6) == 0  # no more than a stop may take
    results = cage.log.find(event="response")
    assert [line["reason"] for line in results] == ["shutting.down"] * 2
    assert cage.log.lines()[-1]["event"] == "stop"
