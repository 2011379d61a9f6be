"""Bounds of HTTP/2 and gRPC, with the small limits of limits/small_limits.h: what a client, or a server, gets when it reaches
them, and what the log says."""
import pytest

from cagelib.checks import call_refused, logged_block, refused
from cagelib.h2 import H2Client, H2Reply, frame, h2_serving
from cagelib.proxy import policy, small_binary, wait_until
from cagelib.raw import RawOrigin, server_tls

HOST = "b.test"
KIB = 1024
STREAMS = 128  # under way on one connection
CANCEL = 8


def answer(request, _server):
    path = request.header(":path")
    if path == "/never":
        return None
    return H2Reply(200, [], bytes(300 * KIB) if path == "/large" else b"ok")


@pytest.fixture
def origin(pki):
    tls = server_tls(pki.leaf(HOST))
    tls.set_alpn_protocols(["h2"])
    with RawOrigin(h2_serving(answer), tls=tls) as running:
        yield running


@pytest.fixture
def cage(start_cage, origin, pki):
    return start_cage(policy({"id": "b", "hosts": [HOST]}, pins={HOST: origin.pin}, trust=[pki.ca_pem]),
                      program=small_binary())


def test_t24_more_requests_on_a_connection_than_it_may_have(cage):
    """A client that keeps to what it was told never gets there; one that does not is cut off."""
    client = H2Client(cage, HOST)
    client.fetch("GET", "/")
    assert client.h2.remote_settings.max_concurrent_streams == STREAMS
    held = [client.start("POST", "/held", [("content-length", "5")], end=False) for _ in range(STREAMS)]
    head = client.h2.encoder.encode([(":method", "GET"), (":scheme", "https"), (":authority", HOST), (":path", "/one-more")])
    client.wire.send(frame(1, 5, held[-1] + 2, head))
    assert client.wait_end() == 1
    line = cage.log.wait(event="connect", decision="block", host=HOST)
    assert line["reason"] == "protocol.unknown"
    assert not cage.log.find(path="/one-more")


def test_t24_a_client_that_opens_no_window(cage):
    """Its other requests are served meanwhile."""
    client = H2Client(cage, HOST)
    stream = client.start("GET", "/large")
    line = cage.log.wait(event="request", path="/large")
    client.h2.acknowledge_received_data = lambda *_: None
    while not client.over(stream):
        client.read()
    assert client.answers[stream].reset == CANCEL and len(client.answers[stream].body) < 300 * KIB
    end = cage.log.wait(event="response", txn=line["txn"])
    assert (end["decision"], end["reason"]) == ("error", "client.timeout")
    del client.h2.acknowledge_received_data
    client.h2.increment_flow_control_window(300 * KIB)
    assert client.fetch("GET", "/after").body == b"ok"


def test_t24_bodies_held_on_one_connection_share_the_budget(cage, origin):
    """Each of them is below its own limit."""
    client = H2Client(cage, HOST)
    client.fetch("GET", "/")
    before = len(origin.requests)
    streams = [client.start("POST", "/held", [("content-type", "text/plain")], end=False) for _ in range(3)]
    for stream in streams:
        client.send(stream, b"x" * 100 * KIB, end=False)
    while not any(client.over(stream) for stream in streams):
        client.read()
    one = next(stream for stream in streams if client.over(stream))
    got = client.answers[one]
    refused(got, "limit.hold", status=503)
    logged_block(cage, got, stage="body")
    assert len(origin.requests) == before
    for stream in set(streams) - {one}:
        client.send(stream, b"x")
        assert client.wait(stream).body == b"ok"
    wait_until(lambda: cage.metric("cage_held_bytes") == 0, 10, "they are still counted")


def test_an_idle_connection_to_a_server_is_closed(cage, origin):
    client = H2Client(cage, HOST)
    assert client.fetch("GET", "/").body == b"ok"
    origin.wait(lambda o: o.conns[0].sock.fileno() < 0)
    assert client.fetch("GET", "/again").body == b"ok"
    assert len(origin.conns) == 2


def test_t24_a_server_that_does_not_answer(cage):
    client = H2Client(cage, HOST)
    got = client.fetch("GET", "/never")
    assert got.status == 504 and got.json()["reason"] == "upstream.timeout"
    assert client.fetch("GET", "/after").body == b"ok"


def test_t24_a_grpc_message_beyond_its_bound(cage, origin):
    """Refused by the length that it declares, before it comes."""
    client = H2Client(cage, HOST)
    stream = client.start("POST", "/call", [("content-type", "application/grpc")], end=False)
    client.send(stream, b"\0" + (16 * KIB * KIB + 1).to_bytes(4, "big"), end=False)
    got = client.wait(stream)
    call_refused(got, "body.undecodable")
    cage.log.of(got, decision="block", reason="body.undecodable", stage="body")
    assert origin.requests == []
