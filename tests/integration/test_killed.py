"""Each process killed at every stage of a request (THREATS T38): what reached the origin has its log lines and every intent its
result, the chain verifies, new requests wait or are refused with a reason, and all of it works again within 2 s."""
import os
import signal
import ssl
import threading
import time

import pytest
from cagelib.checks import refused
from cagelib.dns import Dns
from cagelib.log import validate
from cagelib.proxy import child_named, children_of, is_alive, policy, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import response_bytes

HOST = [("Host", "f.test")]
BACK = 2  # seconds, by which everything works again
UPLOAD = 1 << 20


class World:
    """A proxy, and origins that stop in the middle of a request until `go_on`."""

    def __init__(self, start_cage, pki):
        self.start_cage = start_cage
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.arrived = []  # targets of all heads that reached the origin
        leaf = pki.leaf("f.test", "mute.test", "slow.test", "fresh.test")
        self.origin = RawOrigin(self.serve, leaf=leaf)
        self.mute = RawOrigin(self.stay_mute)
        self.late_tls = self.origin.tls
        self.echo = RawOrigin(echo)
        self.dns = Dns({"slow.test": ["127.0.0.1"]}, may_answer=self.go_on)
        self.stopped = None  # the signer, where a stage has stopped it
        self.cage = start_cage(self.rules(pki))
        self.cage.expect_deaths = True
        self.old_children = set(children_of(self.cage.pid))

    def rules(self, pki):
        web = {"id": "f", "hosts": ["f.test", "mute.test", "fresh.test"], "limits": {"hold": "64KiB"}}
        slow = {"id": "slow", "hosts": ["slow.test"], "ports": [self.origin.port], "addresses": ["127.0.0.0/8"]}
        names = {"id": "n", "hosts": ["*.n.test"], "methods": ["GET"]}
        tunnel = {"id": "t", "action": "tunnel", "hosts": ["t.test"], "ports": [2222]}
        pins = {"f.test": self.origin.pin, "fresh.test": self.origin.pin, "mute.test": self.mute.pin, "t.test": self.echo.pin}
        return policy(web, slow, names, tunnel, pins=pins, trust=[pki.ca_pem], upstream={"resolvers": [self.dns.address]})

    def serve(self, conn):
        while True:
            head = conn.read_head()
            self.arrived.append(head.target)
            first, rest = response_bytes(200, b"helloworld")[:-5], b"world"
            if head.target == "/upload":
                conn.read_exact(1)
                self.hold()
                conn.read_exact(UPLOAD - 1)
            elif head.target == "/quiet":
                self.hold()
            elif head.target == "/half":
                conn.send(first)
                first = b""
                self.hold()
            else:
                conn.read_body(head, False)
            conn.send(first + rest)

    def stay_mute(self, conn):
        conn.sock.recv(1, 2)  # MSG_PEEK: the hello is here
        self.hold()
        conn.sock = self.late_tls.wrap_socket(conn.sock, server_side=True)
        self.serve(conn)

    def hold(self):
        self.reached.set()
        self.go_on.wait(20)

    def close(self):
        self.go_on.set()
        for thing in (self.origin, self.mute, self.echo):
            thing.stop()
        self.dns.__exit__()


def echo(conn):
    while conn._more():
        conn.send(conn._take(len(conn.buffer)))


@pytest.fixture
def world(start_cage, pki):
    made = World(start_cage, pki)
    yield made
    made.close()


# ---- TLS whose bytes are moved by hand, so that a handshake can be left half done

class HandMade:
    def __init__(self, world, name):
        self.wire, answer = world.cage.ask_connect(name + ":443")
        assert answer.status == 200
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = world.cage.client_tls().wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.do_handshake()
        self.hello = self.outgoing.read()

    def run(self, step):
        """Runs one step of TLS to its end; None when the peer ends first."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.wire.send(self.outgoing.read())
                data = self.wire.sock.recv(65536)
                if not data:
                    return None
                self.incoming.write(data)

    def shake_hands(self):
        return self.run(lambda: self.tls.do_handshake() or True)

    def get(self, path, host):
        self.tls.write(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path.encode(), host.encode()))
        return self.run(lambda: self.tls.read(65536))


# ---- the stages: each brings a client there, gives its connection, and after the fault completes it

def stage_handshake(world):
    """The client's hello is half there."""
    hand = HandMade(world, "f.test")
    hand.wire.send(hand.hello[:100])
    yield hand.wire
    hand.wire.send(hand.hello[100:])
    assert hand.shake_hands()
    assert hand.get("/held", "f.test").startswith(b"HTTP/1.1 200")


def stage_leaf(world):
    """The hello is there and the signer was asked."""
    world.stopped = child_named(world.cage, "cage-signer")
    asked = world.cage.metric("cage_leaves_minted_total")
    os.kill(world.stopped, signal.SIGSTOP)
    hand = HandMade(world, "fresh.test")
    hand.wire.send(hand.hello)
    wait_until(lambda: world.cage.metric("cage_leaves_minted_total") > asked, 10, "the signer was never asked")
    yield hand.wire
    if world.victim == "cage-signer":
        assert not told_over_tls(hand)
        line = world.cage.log.wait(host="fresh.test", stage="tls")
        assert (line["event"], line["decision"], line["reason"]) == ("connect", "block", "signer.unavailable")
        return
    assert hand.shake_hands()
    assert hand.get("/held", "fresh.test").startswith(b"HTTP/1.1 200")


def told_over_tls(hand):
    try:
        return hand.shake_hands()
    except (ssl.SSLError, ConnectionError):
        return None


def stage_head(world):
    wire = world.cage.tunnel("f.test").send(b"GET /held HTTP/1.1\r\nHo")
    yield wire
    assert wire.send(b"st: f.test\r\n\r\n").read_response().status == 200


def stage_held_body(world):
    wire = world.cage.tunnel("f.test").send(b"POST /held HTTP/1.1\r\nHost: f.test\r\nContent-Length: 5\r\n\r\nab")
    wait_until(lambda: world.cage.metric("cage_held_bytes") == 2, 10, "the body is not held")
    yield wire
    assert wire.send(b"cde").read_response().status == 200


def stage_resolve(world):
    port = world.origin.port
    wire = world.cage.tunnel("slow.test", port).request("GET", "/held", [("Host", "slow.test:%d" % port)])
    wait_until(lambda: "slow.test" in world.dns.asked, 10, "no query")
    yield wire
    assert wire.read_response().status == 200


def stage_upstream_handshake(world):
    wire = world.cage.tunnel("mute.test").request("GET", "/held", [("Host", "mute.test")])
    assert world.reached.wait(10)
    yield wire
    assert wire.read_response().status == 200


def stage_quiet(world):
    """The head is sent, the server has not answered."""
    wire = world.cage.tunnel("f.test").request("GET", "/quiet", HOST)
    assert world.reached.wait(10)
    yield wire
    assert wire.read_response().status == 200


def stage_upload(world):
    """A body of more than is held streams."""
    head = b"POST /upload HTTP/1.1\r\nHost: f.test\r\nContent-Length: %d\r\n\r\n" % UPLOAD
    wire = world.cage.tunnel("f.test").send(head + b"u" * 200000)
    assert world.reached.wait(10)
    yield wire
    assert wire.send(b"u" * (UPLOAD - 200000)).read_response().status == 200


def stage_half(world):
    """Half of the response is out."""
    wire = world.cage.tunnel("f.test").request("GET", "/half", HOST)
    assert wire.read_head().status == 200
    assert wire.read_exact(5) == b"hello"
    yield wire
    assert wire.read_exact(5) == b"world"


def stage_tunnel(world):
    wire, answer = world.cage.ask_connect("t.test:2222")
    assert answer.status == 200
    assert wire.send(b"ping").read_exact(4) == b"ping"
    yield wire
    assert wire.send(b"pong").read_exact(4) == b"pong"


STAGES = {f.__name__[len("stage_"):]: f for f in (
    stage_handshake, stage_leaf, stage_head, stage_held_body, stage_resolve, stage_upstream_handshake, stage_quiet,
    stage_upload, stage_half, stage_tunnel)}
AT_THE_ORIGIN = {"quiet": "/quiet", "upload": "/upload", "half": "/half"}  # what of a stage had left before the fault


# ---- the fault

def strike(world, victim):
    """Kills it; returns when it is dead. No more than that: what follows sees the outage."""
    world.victim = victim
    pid = child_named(world.cage, victim)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), 10, "it lives on")
    if world.stopped and victim != "cage-signer":
        os.kill(world.stopped, signal.SIGCONT)
    return time.monotonic()


def ask_known_host(world, number):
    """True when served. A refusal has its reason and nothing of it arrives."""
    path = "/probe-%d" % number
    answer = world.cage.fetch("GET", "https://f.test" + path)
    if answer.status == 200:
        return True
    refused(answer, "log.unavailable", status=503)
    assert path not in world.arrived
    return False


def ask_new_name(world, number):
    """True when there is a certificate for a name that never had one. Without one, that is in the log."""
    name = "x%d.n.test" % number
    try:
        refused(world.cage.fetch("DELETE", "https://%s/" % name), "method.not_allowed")  # told inside TLS, and goes nowhere
        return True
    except (ssl.SSLError, ConnectionError):
        line = world.cage.log.wait(host=name, stage="tls")
        assert (line["event"], line["decision"], line["reason"]) == ("connect", "block", "signer.unavailable")
        return False


def wait_until_back(world, victim, struck):
    """Asks until it is served, for as long as it may take."""
    ask = ask_new_name if victim == "cage-signer" else ask_known_host
    number = 0
    while not ask(world, number):
        number += 1
        assert time.monotonic() - struck < BACK, "not back within %d s" % BACK
    wait_until(lambda: world.cage.admin("/readyz").status == 200, BACK, "not ready")
    assert time.monotonic() - struck < BACK, "not back within %d s" % BACK
    assert len(set(children_of(world.cage.pid)) - world.old_children) == 1


def assert_log_is_whole(world):
    """Ends the proxy, and holds the log against what the origin has seen."""
    cage = world.cage
    cage.children = children_of(cage.pid)
    world.start_cage.forget(cage)
    assert cage.stop() == 0
    cage.assert_left_clean()
    validate(cage.log.raw_lines())  # schema, chain, and a result for every intent
    requests = [line["path"] for line in cage.log.find(event="request", decision="allow")]
    assert sorted(requests) == sorted(world.arrived)
    tunnels = cage.log.find(event="connect", reason="tunnel.uninspected")
    assert len(tunnels) == len(world.echo.conns)


@pytest.mark.parametrize("victim", ["cage-worker", "cage-log", "cage-signer"])
@pytest.mark.parametrize("stage", STAGES)
def test_t38_killed_at_every_stage(world, stage, victim):
    assert world.cage.fetch("GET", "https://f.test/before").status == 200
    held = STAGES[stage](world)
    wire = next(held)
    assert world.cage.fetch("GET", "https://f.test/beside").status == 200  # the worker has read all that was sent before
    wait_until_back(world, victim, strike(world, victim))
    if victim == "cage-worker":
        wire.read_until_closed()
        assert "/held" not in world.arrived
        if stage in AT_THE_ORIGIN or stage == "tunnel":
            world.cage.log.wait(event="error", reason="worker.died")
        world.go_on.set()
    else:
        world.go_on.set()
        next(held, None)
    assert world.cage.fetch("GET", "https://f.test/after").status == 200
    assert AT_THE_ORIGIN.get(stage, "/after") in world.arrived
    assert_log_is_whole(world)


# ---- longer outages: the master is stopped, so nothing is started again

def test_t38_no_certificates_while_the_signer_is_dead(world):
    assert world.cage.fetch("GET", "https://f.test/before").status == 200
    os.kill(world.cage.pid, signal.SIGSTOP)
    try:
        strike(world, "cage-signer")
        for number in range(3):
            assert not ask_new_name(world, number)
        assert world.cage.fetch("GET", "https://f.test/known").status == 200  # its certificate is there
    finally:
        os.kill(world.cage.pid, signal.SIGCONT)
    wait_until_back(world, "cage-signer", time.monotonic())
    assert_log_is_whole(world)


def test_t38_what_passes_without_a_log_writer_is_written_by_the_next(world):
    assert world.cage.fetch("GET", "https://f.test/before").status == 200
    os.kill(world.cage.pid, signal.SIGSTOP)
    try:
        strike(world, "cage-log")
        for number in range(20):
            ask_known_host(world, number)
    finally:
        os.kill(world.cage.pid, signal.SIGCONT)
    wait_until(lambda: world.cage.admin("/readyz").status == 200, BACK, "not back within %d s" % BACK)
    assert_log_is_whole(world)


def test_t38_nothing_is_served_without_a_worker(world):
    os.kill(world.cage.pid, signal.SIGSTOP)
    try:
        strike(world, "cage-worker")
        waiting = world.cage.connect().request("GET", "http://none.test/", [("Host", "none.test")])
        waiting.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            waiting.read_response()
    finally:
        os.kill(world.cage.pid, signal.SIGCONT)
    waiting.sock.settimeout(BACK)
    refused(waiting.read_response(), "host.not_allowed")
    assert_log_is_whole(world)
