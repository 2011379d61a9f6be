"""Upstreams and resolvers that misbehave or go away, and many idle clients beside busy ones (THREATS T24, T38): the client is
told, the log is whole, and the others don't notice."""
import os
import resource
import socket
import struct
import threading
import time

import pytest
from cagelib.beside import Beside
from cagelib.checks import logged_block, logged_failure, refused, upstream_failed
from cagelib.dns import Dns
from cagelib.proxy import child_named, policy, wait_until
from cagelib.raw import RawOrigin, serving
from cagelib.wire import Truncated, response_bytes

HOST = [("Host", "f.test")]
URL = "http://f.test/"


def rules(origin, **more):
    return policy({"id": "f", "hosts": ["f.test"], "ports": [80]}, pins={"f.test": origin.pin}, **more)


def reset(conn):
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.sock.close()


# ---- upstreams

@pytest.mark.parametrize("sent, reason", [
    (b"", "upstream.truncated"),
    (b"HTTP/1.1 200 OK\r\nContent-Le", "upstream.truncated"),
    (b"HTTP/1.1 abc\r\n\r\n", "upstream.malformed"),
    (b"SSH-2.0-x\r\n", "upstream.malformed"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "upstream.malformed"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "upstream.malformed"),
    (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000, "upstream.malformed"),
], ids=["nothing", "half", "no-status", "no-http", "two-lengths", "two-framings", "too-large"])
@pytest.mark.parametrize("how", ["closes", "resets"])
def test_a_bad_head_is_a_502(start_cage, sent, reason, how):
    def handler(conn):
        conn.read_request()
        conn.send(sent)
        if how == "resets":
            reset(conn)

    with RawOrigin(handler) as origin:
        cage = start_cage(rules(origin))
        answer = cage.fetch("GET", URL)
        if how == "resets" and answer.json()["reason"] == "upstream.truncated":
            reason = "upstream.truncated"  # the reset overtook the bytes
        upstream_failed(answer, reason)
        logged_failure(cage, answer, reason)


@pytest.mark.parametrize("head, body", [
    (b"Content-Length: 10", b"12345"),
    (b"Transfer-Encoding: chunked", b"5\r\n12345\r\n"),
    (b"Transfer-Encoding: chunked", b"5\r\n12345\r\nzz\r\n"),
    (b"Connection: close", b"12345"),
])
@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_a_body_that_breaks_off_never_looks_whole(start_cage, version, head, body):
    def handler(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)
        conn.origin.sent.set()
        conn.origin.may_end.wait(10)
        reset(conn)

    with RawOrigin(handler) as origin:
        origin.sent, origin.may_end = threading.Event(), threading.Event()
        cage = start_cage(rules(origin))
        wire = cage.connect().request("GET", URL, HOST, version=version)
        assert origin.sent.wait(10)
        with pytest.raises((ConnectionResetError, Truncated)):
            assert wire.read_head().status == 200  # if it gets that far: garbage right behind the head is met with a reset
            origin.may_end.set()
            if version == "HTTP/1.1":
                wire.read_until(b"\r\n0\r\n\r\n")
            wire.read_to_end()
        origin.may_end.set()
        line = cage.log.wait(event="response", decision="error")
        assert line["reason"] in ("upstream.truncated", "upstream.malformed")


def test_a_trickle_arrives(start_cage):
    def handler(conn):
        conn.read_request()
        for byte in response_bytes(200, b"drop by drop"):
            conn.send(bytes([byte]))

    with RawOrigin(handler) as origin:
        assert start_cage(rules(origin)).fetch("GET", URL).body == b"drop by drop"


def test_an_early_answer_ends_an_upload(start_cage):
    """The server answers before it has read the body: the client gets the answer, and the rest of the body is not waited for."""

    def handler(conn):
        conn.read_head()
        conn.send(response_bytes(413, b"too much", [("Connection", "close")]))

    with RawOrigin(handler) as origin:
        cage = start_cage(policy({"id": "f", "hosts": ["f.test"], "ports": [80], "limits": {"body": "64MiB"}}, pins={"f.test": origin.pin}))
        wire = cage.connect().send(b"POST http://f.test/ HTTP/1.1\r\nHost: f.test\r\nContent-Length: 50000000\r\n\r\n")
        sender = threading.Thread(target=send_all, args=(wire, 50000000))
        sender.start()
        assert wire.read_response().status == 413
        sender.join()


def send_all(wire, count):
    try:
        for _ in range(count // 100000):
            wire.send(b"u" * 100000)
    except OSError:
        pass  # the answer is there, nobody reads on


# ---- the resolver

def test_t38_the_resolver_goes_and_comes_back(start_cage):
    with RawOrigin() as origin, Dns({"f.test": ["127.0.0.1"]}) as dns:
        rule = {"id": "f", "hosts": ["f.test"], "ports": [80, origin.port], "addresses": ["127.0.0.0/8"]}
        cage = start_cage(policy(rule, upstream={"resolvers": [dns.address]}))
        url = "http://f.test:%d/" % origin.port
        dns.answers.clear()
        upstream_failed(cage.fetch("GET", url), "name.unresolved")
        dns.answers["f.test"] = ["127.0.0.1"]
        assert cage.fetch("GET", url).status == 200


# ---- descriptors

def leave_descriptors(cage, spare):
    """Lets the worker open so many more; None: as many as before."""
    pid = child_named(cage, "cage-worker")
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir("/proc/%d/fd" % pid)}
    free = [number for number in range(len(used) + 100) if number not in used]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard if spare is None else free[spare], hard))


@pytest.fixture
def few(start_cage, pki):
    """A proxy beside whose busy client nothing has been dialled yet: plain, TLS and resolved."""
    with RawOrigin() as plain, RawOrigin(leaf=pki.leaf("s.test")) as secure, RawOrigin() as beside, Dns({"d.test": ["127.0.0.1"]}) as dns:
        web = {"id": "w", "hosts": ["f.test", "s.test", "beside.test"], "ports": [80, 443]}
        resolved = {"id": "d", "hosts": ["d.test"], "ports": [plain.port], "addresses": ["127.0.0.0/8"]}
        pins = {"f.test": plain.pin, "s.test": secure.pin, "beside.test": beside.pin}
        cage = start_cage(policy(web, resolved, pins=pins, trust=[pki.ca_pem], upstream={"resolvers": [dns.address]}))
        cage.resolved_url = "http://d.test:%d/" % plain.port
        with Beside(cage, "http://beside.test/"):
            yield cage


def test_t38_clients_wait_for_descriptors(few):
    leave_descriptors(few, 0)
    wire = few.connect().request("GET", URL, HOST)
    wire.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        wire.read_response()
    leave_descriptors(few, None)
    wire.sock.settimeout(2)  # back within that
    assert wire.read_response().status == 200


@pytest.mark.parametrize("kind", ["plain", "tls", "resolved"])
def test_t38_requests_are_refused_without_descriptors(few, kind):
    """There is one for the client and none for the way out."""
    url = {"plain": URL, "tls": "https://s.test/", "resolved": few.resolved_url}[kind]
    leave_descriptors(few, 1)
    answer = few.fetch("GET", url)
    refused(answer, "limit.connections", status=503)
    logged_block(few, answer, stage="upstream")
    leave_descriptors(few, None)
    began = time.monotonic()
    assert few.fetch("GET", url).status == 200
    assert time.monotonic() - began < 2


# ---- the others don't notice

def test_many_idle_clients_beside_a_busy_one(start_cage):
    with RawOrigin(serving(response_bytes(200, b"x" * 1000))) as origin:
        cage = start_cage(rules(origin))
        with Beside(cage, URL) as busy:
            idle = [socket.create_connection(("127.0.0.1", cage.port), 10) for _ in range(2000)]
            for number, sock in enumerate(idle):
                if number % 2:
                    sock.sendall(b"GET http://f.test/ HTTP/1.1\r\nHost: f.te")  # slowloris
            wait_until(lambda: cage.metric("cage_connections_open") >= 2001, 20, "not all are in")
            busy.assert_answers(200)
            for sock in idle:
                sock.close()
            wait_until(lambda: cage.metric("cage_connections_open") <= 1, 20, "idle ones stay")


def test_a_slow_reader_stalls_nobody(start_cage):
    with RawOrigin(serving(response_bytes(200, os.urandom(8 << 20)))) as origin:
        cage = start_cage(rules(origin))
        slow = cage.connect().request("GET", URL + "slow", HOST)
        assert slow.read_head().status == 200  # and then reads nothing
        assert len(cage.fetch("GET", URL).body) == 8 << 20
