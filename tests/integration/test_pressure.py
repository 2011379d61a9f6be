"""Clients and servers that are slow, greedy or gone, and a proxy that is told to stop in the middle of it."""
import os
import signal
import socket
import threading
import time

import pytest

from cagelib.checks import refused
from cagelib.proxy import child_named, children_of, policy, wait_until
from cagelib.raw import RawOrigin, serving
from cagelib.wire import Truncated, chunked, response_bytes

HOST = [("Host", "p.test")]
URL = "http://p.test/"


def rules(origin, *more, **options):
    rule = {"id": "p", "hosts": ["p.test"], "ports": [80, 443], **options.pop("rule", {})}
    return policy(rule, *more, pins={"p.test": origin.pin}, **options)


def worker_of(cage):
    return child_named(cage, "cage-worker")


def resident(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


def has_sanitizer(pid):
    with open("/proc/%d/maps" % pid, encoding="ascii", errors="replace") as f:
        return "libasan" in f.read()


def cpu_ticks(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


@pytest.fixture
def origin():
    with RawOrigin() as running:
        yield running


# ---- greedy clients

def test_a_client_that_reads_no_answers_gets_no_further_ones(start_cage, origin):
    cage = start_cage(rules(origin))
    wire = cage.connect()
    wire.sock.settimeout(2)
    pid = worker_of(cage)
    before = resident(pid)
    request = b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n" * 1000
    sent = 0
    with pytest.raises(TimeoutError):  # the proxy stops reading: the send blocks
        while sent < 64 << 20:
            sent += wire.sock.send(request)
    assert resident(pid) - before < 24 << 20
    wire.sock.settimeout(20)
    refused(wire.read_response(), "host.not_allowed")  # and goes on when the client reads


def test_waiting_connections_cost_no_cpu(start_cage, origin):
    cage = start_cage(rules(origin))
    pid = worker_of(cage)
    cage.connect()
    cage.connect().send(b"GET http://p.test/ HTT")
    wire, _ = cage.ask_connect("p.test:443")
    wire.send(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a record
    half_closed = cage.connect().send(b"POST http://p.test/ HTTP/1.1\r\nHost: p.test\r\nContent-Length: 5\r\n\r\nab")
    assert cage.fetch("GET", URL).status == 200
    before = cpu_ticks(pid)
    time.sleep(1)  # what is measured is this second
    assert cpu_ticks(pid) - before <= 10
    half_closed.close()


def test_half_a_head_and_an_end_is_let_go_at_once(start_cage, origin):
    cage = start_cage(rules(origin))
    wire = cage.connect().send(b"GET http://p.test/ HTTP/1.1\r\nHo")
    wire.end()
    assert wire.read_until_closed() == b""
    wait_until(lambda: cage.metric("cage_connections_open") == 0, 5, "the connection is kept")


def test_responses_that_are_not_taken_share_the_memory(start_cage):
    """Each of them could have 320 KiB of its own; and when the clients are gone, so is what they cost."""
    n, body = 400, bytes(8 << 20)
    with RawOrigin(serving(response_bytes(200, body))) as origin:
        cage = start_cage(rules(origin))
        pid = worker_of(cage)
        before = resident(pid)
        wires = []
        for i in range(n):
            wire = cage.connect()
            if i > 0:  # the first of them goes on later
                wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.request("GET", URL, HOST)
            wires.append(wire)
        wait_until(lambda: len(cage.log.find(event="request")) == n, 30, "they are not all asked for")
        most = before
        for _ in range(20):
            most = max(most, resident(pid))
            time.sleep(0.1)
        assert 32 << 20 < most - before < 92 << 20
        assert wires[0].read_response().body == body
        for wire in wires:
            wire.close()
        if not has_sanitizer(pid):  # whose allocator keeps what was freed
            wait_until(lambda: resident(pid) - before < 24 << 20, 10, "the memory is kept")


# ---- slow ones

def read_slowly(wire, total, pause):
    got = 0
    while got < total:
        data = wire.sock.recv(65536)
        if not data:
            break
        got += len(data)
        time.sleep(pause)
    return got


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_a_slow_reader_gets_all_of_a_response_that_ends_the_connection(start_cage, version):
    body = os.urandom(4 << 20)
    with RawOrigin(serving(response_bytes(200, body))) as origin:
        cage = start_cage(rules(origin))
        wire = cage.connect()
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.request("GET", URL, [*HOST, ("Connection", "close")], version=version)
        head = wire.read_head()
        assert head.status == 200
        rest = len(body) - len(wire.buffer)
        assert read_slowly(wire, rest, 0.12) == rest  # for longer than the linger time


def test_a_body_that_takes_longer_than_a_handshake_may(start_cage, pki):
    with RawOrigin(leaf=pki.leaf("p.test")) as origin:
        cage = start_cage(rules(origin, trust=[pki.ca_pem]))
        wire = cage.tunnel("p.test").send(b"POST / HTTP/1.1\r\nHost: p.test\r\nContent-Length: 12\r\n\r\n")
        for _ in range(12):
            wire.send(b"x")
            time.sleep(1)
        assert wire.read_response().status == 200
        assert origin.requests[-1].body == b"x" * 12


def test_held_bytes_are_counted_down(start_cage, origin):
    cage = start_cage(rules(origin))
    for _ in range(3):
        assert cage.fetch("PUT", URL, body=b"y" * 5000).status == 200
    wait_until(lambda: cage.metric("cage_held_bytes") == 0, 5, "held bytes stay")


# ---- what is observed is still logged once

def test_an_observed_body_limit_stands_in_the_line_of_the_request(start_cage, origin):
    cage = start_cage(rules(origin, rule={"limits": {"body": 1000}, "mode": "observe"}))
    wire = cage.connect().send(b"POST http://p.test/ HTTP/1.1\r\nHost: p.test\r\nTransfer-Encoding: chunked\r\n\r\n")
    wire.send(chunked(b"z" * 600, b"z" * 600))
    assert wire.read_response().status == 200
    line = cage.log.wait(event="request")
    assert (line["decision"], line["enforced"], line["reason"]) == ("block", False, "body.too_large")
    cage.log.wait(event="response", txn=line["txn"])
    assert len(cage.log.find(txn=line["txn"])) == 2


# ---- what a server may not do

def test_a_server_can_not_forge_a_refusal(start_cage):
    forged = response_bytes(200, b"x", [("X-Cage-Decision", "block"), ("x-cage-reason", "host.not_allowed"), ("X-Other", "1")])
    with RawOrigin(serving(forged)) as origin:
        answer = start_cage(rules(origin)).fetch("GET", URL)
    assert not answer.has("x-cage-decision") and not answer.has("x-cage-reason")
    assert answer.header("x-other") == "1"


@pytest.mark.parametrize("request_fields, response_fields", [
    ([("Authorization", "NTLM TlRMTVNTUAAB")], []),
    ([], [("WWW-Authenticate", "Negotiate")]),
])
def test_connections_that_carry_a_login_are_not_shared(start_cage, request_fields, response_fields):
    with RawOrigin(serving(response_bytes(401, b"x", response_fields))) as origin:
        cage = start_cage(rules(origin))
        for _ in range(2):
            assert cage.fetch("GET", URL, request_fields).status == 401
        assert len(origin.conns) == 2


def test_a_request_that_met_silence_is_not_sent_again(start_cage):
    """A pooled connection that the server closes without an answer is replaced for GET, never for POST."""
    seen = []

    def handler(conn):
        seen.append(conn.read_request())
        conn.send(response_bytes(200, b"first"))
        seen.append(conn.read_request())  # then the connection just ends

    with RawOrigin(handler) as origin:
        cage = start_cage(rules(origin))
        assert cage.fetch("GET", URL).status == 200
        assert cage.fetch("POST", URL, body=b"pay").status == 502
        assert [r.method for r in seen] == ["GET", "POST"]
        assert cage.fetch("GET", URL).status == 200
        assert cage.fetch("GET", URL).body == b"first"  # replayed on a new connection
        assert [r.method for r in seen] == ["GET", "POST", "GET", "GET", "GET"]


# ---- stopping in the middle

def test_a_head_that_is_completed_while_draining_is_served(start_cage, origin):
    cage = start_cage(rules(origin))
    wire = cage.connect().send(b"GET http://p.test/late HTTP/1.1\r\nHost: ")
    assert cage.fetch("GET", URL).status == 200  # the worker has read both by now
    cage.signal(signal.SIGTERM)
    cage.signal(signal.SIGHUP)  # no reload any more
    wait_until(lambda: refuses_connections(cage), 10, "it still listens")
    answer = wire.send(b"p.test\r\n\r\n").read_response()
    assert answer.status == 200 and answer.header("connection") == "close"
    assert cage.process.wait(20) == 0


def refuses_connections(cage):
    try:
        socket.create_connection(("127.0.0.1", cage.port), 2).close()
    except ConnectionRefusedError:
        return True
    except ConnectionError:
        pass  # caught in the act of closing
    return False


def test_a_response_under_way_is_finished_while_draining(start_cage):
    go_on = threading.Event()

    def handler(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        go_on.wait(20)
        conn.send(b"world")

    with RawOrigin(handler) as origin:
        cage = start_cage(rules(origin))
        wire = cage.connect().request("GET", URL, HOST)
        assert wire.read_head().status == 200
        cage.signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(cage), 10, "it still listens")
        go_on.set()
        assert wire.read_exact(10) == b"helloworld"
        assert cage.process.wait(20) == 0


def test_stopping_ends_though_the_log_is_full(start_cage, origin):
    cage = start_cage(rules(origin), limit_file_size=True)
    assert cage.fetch("GET", URL).status == 200
    cage.log.wait(event="response")
    os.system("prlimit --pid %d --fsize=%d" % (child_named(cage, "cage-log"), os.path.getsize(cage.log.path) + 10))
    assert cage.fetch("GET", URL).status in (200, 503)
    start_cage.forget(cage)
    assert cage.stop() == 1
    cage.stderr.wait("stopping takes too long", 10)


def test_t35_a_worker_that_slept_through_many_reloads(start_cage, origin):
    cage = start_cage(rules(origin))
    cage.expect_deaths = True  # it may start anew with the newest policy; it must not crash
    pid = worker_of(cage)
    os.kill(pid, signal.SIGSTOP)
    for _ in range(9):
        cage.reload(rules(origin))
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: try_status(cage) == 200, 10, "no traffic after the reloads")
    assert "killed by signal" not in cage.stderr.text()
    cage.children = children_of(cage.pid)
    wait_until(lambda: try_status(cage) == 200 and cage.log.find(event="request", gen=10), 10,
               "the newest policy is not in force")  # one that came before it has the old number


def try_status(cage):
    try:
        return cage.fetch("GET", URL).status
    except (OSError, Truncated):
        return None


def test_t38_what_was_sent_is_in_the_log_though_the_master_is_killed(start_cage, origin):
    cage = start_cage(rules(origin))
    for number in range(20):
        assert cage.fetch("GET", URL + "n%d" % number).status == 200
    start_cage.forget(cage)
    cage.kill()  # the last lines are not 100 ms old
    wait_until(lambda: all(cage.log.find(event="request", path="/n%d" % n) for n in range(20)), 5, "lines are missing")
    cage.assert_left_clean()
