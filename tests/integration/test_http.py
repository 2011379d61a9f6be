"""HTTP/1.1 through the proxy, byte for byte where it matters: the client's view, the origin's view, and the log."""
import hashlib
import subprocess

import pytest
from cagelib.checks import logged_block, logged_failure, logged_pair, refused, upstream_failed
from cagelib.origin import BIG
from cagelib.proxy import policy
from cagelib.raw import RawOrigin, serving
from cagelib.wire import Truncated, chunked, request_bytes, response_bytes

RULES = ({"id": "raw", "hosts": ["raw.test"]}, {"id": "plain", "hosts": ["plain.test"], "ports": [80]})
HOST = [("Host", "raw.test")]


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.leaf("raw.test")


@pytest.fixture
def world(start_cage, pki, leaf):
    """world(handler) starts an origin with that handler and a proxy before it; raw.test is TLS, plain.test is not."""
    origins = []

    def build(handler=None, rules=RULES):
        tls, plain = RawOrigin(handler, leaf=leaf), RawOrigin(handler)
        origins.extend((tls, plain))
        pins = {"raw.test": tls.pin, "plain.test": plain.pin}
        return start_cage(policy(*rules, pins=pins, trust=[pki.ca_pem])), tls, plain

    yield build
    for origin in origins:
        origin.stop()


# ---- forms and connections

def test_absolute_form(world):
    cage, _, plain = world()
    answer = cage.connect().exchange("GET", "http://plain.test/a?q=1", [("Host", "plain.test"), ("Proxy-Connection", "keep-alive")])
    assert (answer.status, answer.body) == (200, b"ok\n")
    assert plain.requests[0].start == "GET /a?q=1 HTTP/1.1"
    assert plain.requests[0].header("host") == "plain.test"
    assert not plain.requests[0].has("proxy-connection")
    request, response = logged_pair(cage, "/a?q=")
    assert (request["scheme"], request["host"], request["port"], request["rule"]) == ("http", "plain.test", 80, "plain")
    assert (response["status"], response["inspected_in"]) == (200, 3)


def test_keep_alive_is_one_connection_on_both_sides(world):
    cage, origin, _ = world()
    wire = cage.tunnel("raw.test")
    for path in ("/1", "/2", "/3"):
        assert wire.exchange("GET", path, HOST).status == 200
    lines = [logged_pair(cage, path)[0] for path in ("/1", "/2", "/3")]
    assert len({x["conn"] for x in lines}) == 1 and len({x["txn"] for x in lines}) == 3
    assert len(origin.conns) == 1


def test_upstream_connections_are_pooled_over_clients(world):
    cage, origin, _ = world()
    for path in ("/1", "/2"):
        assert cage.fetch("GET", "https://raw.test" + path).status == 200
    assert len(origin.conns) == 1
    assert cage.metric("cage_upstream_connections_total", kind="pooled") == 1


def test_a_pooled_connection_that_the_origin_closed_is_replaced(world):
    def once(conn):
        conn.read_request()
        conn.send(response_bytes(200, b"ok\n"))

    cage, origin, _ = world(once)
    wire = cage.tunnel("raw.test")
    for path in ("/1", "/2"):
        assert wire.exchange("GET", path, HOST).status == 200
    assert len(origin.conns) == 2


def test_pipelined_requests_are_answered_in_order(world):
    cage, origin, _ = world(serving(lambda r: response_bytes(200, r.target.encode())))
    wire = cage.tunnel("raw.test")
    wire.send(b"".join(request_bytes("GET", "/%d" % i, HOST) for i in range(8)))
    assert [wire.read_response().body for _ in range(8)] == [b"/%d" % i for i in range(8)]
    assert [r.target for r in origin.requests] == ["/%d" % i for i in range(8)]


def test_pipelined_behind_a_refused_request(world):
    cage, origin, _ = world(rules=[{"id": "raw", "hosts": ["raw.test"], "methods": ["GET"]}])
    wire = cage.tunnel("raw.test")
    wire.send(request_bytes("GET", "/1", HOST) + request_bytes("DELETE", "/2", HOST))
    assert wire.read_response().status == 200
    refused(wire.read_response(), "method.not_allowed")
    assert [r.target for r in origin.requests] == ["/1"]


def test_a_kept_connection_serves_on_after_a_refusal(world):
    cage, _, _ = world(rules=[{"id": "raw", "hosts": ["raw.test"], "methods": ["GET"]}])
    wire = cage.tunnel("raw.test")
    refused(wire.exchange("DELETE", "/1", HOST), "method.not_allowed")
    assert wire.exchange("GET", "/2", HOST).status == 200


def test_pipelined_requests_before_a_half_close_are_all_answered(world):
    cage, _, _ = world()
    wire, answer = cage.ask_connect("plain.test:80")
    assert answer.status == 200
    fields = [("Host", "plain.test")]
    wire.request("GET", "/one", fields).request("GET", "/two", fields).end()
    assert [wire.read_response().status for _ in range(2)] == [200, 200]
    assert wire.read_to_end() == b""


def test_connection_close_is_honoured(world):
    cage, _, _ = world()
    wire = cage.tunnel("raw.test")
    answer = wire.exchange("GET", "/", [*HOST, ("Connection", "close")])
    assert answer.status == 200 and answer.header("connection").lower() == "close"
    assert wire.read_to_end() == b""


# ---- HTTP/1.0

def test_http10_client_gets_a_body_that_ends_with_the_connection(world):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    cage, _, plain = world(serving(head + chunked(b"first ", b"second")))
    wire = cage.connect()
    answer = wire.request("GET", "http://plain.test/old", [("Host", "plain.test")], version="HTTP/1.0").read_response()
    assert not answer.has("transfer-encoding")
    assert answer.body == b"first second"
    assert wire.read_to_end() == b""
    assert plain.requests[0].start == "GET /old HTTP/1.1"
    logged_pair(cage, "/old")


def test_http10_client_without_host(world):
    cage, _, plain = world()
    answer = cage.connect().request("GET", "http://plain.test/", version="HTTP/1.0").read_response()
    assert answer.status == 200
    assert plain.requests[0].header("host") == "plain.test"


# ---- bodies

def test_chunked_both_ways_with_trailers(world):
    head = b"HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n"
    cage, origin, _ = world(serving(head + chunked(b"abc", b"defg", trailers=[("X-Sum", "7")])))
    wire = cage.tunnel("raw.test")
    fields = [*HOST, ("TE", "trailers"), ("Connection", "TE"), ("Trailer", "X-Check"), ("Transfer-Encoding", "chunked")]
    wire.request("POST", "/chunks", fields).send(chunked(b"one", b"two", b"three", trailers=[("X-Check", "ok")]))
    answer = wire.read_response()
    assert (answer.body, answer.trailers) == (b"abcdefg", [("X-Sum", "7")])
    assert (origin.requests[0].body, origin.requests[0].trailers) == (b"onetwothree", [("X-Check", "ok")])
    _, response = logged_pair(cage, "/chunks")
    assert (response["inspected_out"], response["inspected_in"]) == (11, 7)
    assert response["bytes_out"] > 11 and response["bytes_in"] > 7  # with heads and framing


def test_chunk_extensions_are_not_sent_on(world):
    cage, origin, _ = world()
    wire = cage.tunnel("raw.test")
    wire.request("POST", "/ext", [*HOST, ("Transfer-Encoding", "chunked")]).send(b"3;secret=value\r\nabc\r\n0\r\n\r\n")
    assert wire.read_response().status == 200
    assert origin.requests[0].body == b"abc" and b"secret" not in origin.received


def test_a_body_is_held_whole_before_its_first_byte_leaves(world):
    cage, origin, _ = world()
    wire = cage.tunnel("raw.test")
    wire.request("POST", "/held", [*HOST, ("Content-Length", "10")]).send(b"12345")
    wire2 = cage.tunnel("raw.test")  # another client is served meanwhile
    assert wire2.exchange("GET", "/other", HOST).status == 200
    assert b"12345" not in origin.received
    wire.send(b"67890")
    assert wire.read_response().status == 200
    assert origin.requests[-1].body == b"1234567890"


def test_t24_expect_continue_is_answered_by_us(world):
    cage, origin, _ = world()
    wire = cage.tunnel("raw.test")
    wire.request("PUT", "/expect", [*HOST, ("Expect", "100-continue"), ("Content-Length", "4")])
    assert wire.read_head().status == 100
    wire.send(b"data")
    assert wire.read_response().status == 200
    assert origin.requests[0].body == b"data" and not origin.requests[0].has("expect")


def test_t24_expect_continue_of_a_refused_request_gets_the_refusal(world):
    cage, origin, _ = world(rules=[{"id": "raw", "hosts": ["raw.test"], "methods": ["GET"]}])
    wire = cage.tunnel("raw.test")
    wire.request("PUT", "/expect", [*HOST, ("Expect", "100-continue"), ("Content-Length", "4")])
    answer = wire.read_response()
    refused(answer, "method.not_allowed")
    assert not answer.interim and not origin.conns
    logged_block(cage, answer, path="/expect")


@pytest.mark.parametrize("length", [0, 1])
def test_a_body_over_its_limit_is_refused(world, length):
    cage, origin, _ = world(rules=[{"id": "raw", "hosts": ["raw.test"], "limits": {"body": "1KiB"}}])
    wire = cage.tunnel("raw.test")
    if length:
        answer = wire.exchange("POST", "/", HOST, b"x" * 1025)
    else:
        answer = wire.request("POST", "/", [*HOST, ("Transfer-Encoding", "chunked")]).send(chunked(b"x" * 1025)).read_response()
    refused(answer, "body.too_large", rule="raw")
    logged_block(cage, answer)
    assert b"xxx" not in origin.received


def test_a_body_of_exactly_its_limit_passes(world):
    cage, origin, _ = world(rules=[{"id": "raw", "hosts": ["raw.test"], "limits": {"body": "1KiB"}}])
    assert cage.fetch("POST", "https://raw.test/", body=b"x" * 1024).status == 200
    assert origin.requests[0].body == b"x" * 1024


def test_a_refused_upload_still_lets_the_client_read_why(world):
    cage, _, _ = world(rules=[{"id": "raw", "hosts": ["raw.test"], "methods": ["GET"]}])
    refused(cage.fetch("POST", "https://raw.test/", body=b"x" * (2 << 20)), "method.not_allowed")


# ---- responses without a body

def test_head_204_and_304_have_no_body(world):
    def reply(request):
        if request.method == "HEAD":
            return response_bytes(200, fields=[("X-Kind", "head")]).replace(b"Content-Length: 0", b"Content-Length: 5")
        if request.target == "/204":
            return response_bytes(204, phrase="No Content")
        return response_bytes(304, fields=[("ETag", '"1"'), ("Content-Length", "99")], phrase="Not Modified")

    cage, origin, _ = world(serving(reply))
    wire = cage.tunnel("raw.test")
    answer = wire.exchange("HEAD", "/head", HOST)
    assert (answer.status, answer.header("content-length")) == (200, "5")
    assert wire.exchange("GET", "/204", HOST).status == 204
    answer = wire.exchange("GET", "/304", HOST)
    assert (answer.status, answer.header("etag")) == (304, '"1"')
    assert wire.exchange("HEAD", "/again", HOST).status == 200
    assert len(origin.conns) == 1


def test_a_refused_head_has_no_body(world):
    cage, _, _ = world(rules=[{"id": "raw", "hosts": ["raw.test"], "methods": ["GET"]}])
    wire = cage.tunnel("raw.test")
    answer = wire.exchange("HEAD", "/", HOST)
    assert (answer.status, answer.header("x-cage-reason")) == (403, "method.not_allowed")
    assert wire.exchange("GET", "/", HOST).status == 200


# ---- what an upstream may and may not answer

def test_interim_responses_do_not_confuse(world):
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    cage, _, _ = world(serving(hints + response_bytes(200, b"ok\n")))
    wire = cage.tunnel("raw.test")
    for _ in range(2):
        answer = wire.exchange("GET", "/", HOST)
        assert (answer.status, answer.body) == (200, b"ok\n")
        assert all(m.status == 103 for m in answer.interim)


def test_t24_a_flood_of_interim_responses_is_cut_off(world):
    cage, _, _ = world(serving(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50 + response_bytes(200, b"ok\n")))
    answer = cage.fetch("GET", "https://raw.test/flood")
    assert len(answer.interim) <= 8
    upstream_failed(answer, "upstream.malformed")
    logged_failure(cage, answer, "upstream.malformed")


def test_t12_a_101_that_nobody_asked_for_is_a_502(world):
    cage, _, _ = world(serving(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"))
    answer = cage.fetch("GET", "https://raw.test/101")
    upstream_failed(answer, "upstream.malformed")
    logged_failure(cage, answer, "upstream.malformed")


@pytest.mark.parametrize("offer", ["h2c", "TLS/1.0", "connect-udp", "IRC/6.9, RTA/x11"])
def test_t12_an_upgrade_offer_is_removed(world, offer):
    cage, tls, plain = world()
    fields = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", offer), ("HTTP2-Settings", "AAMAAABkAAQAAP__")]
    for url in ("https://raw.test/", "http://plain.test/"):
        assert cage.fetch("GET", url, fields).status == 200
    for origin in (tls, plain):
        seen = origin.requests[0]
        assert not seen.has("upgrade") and not seen.has("http2-settings") and "pgrade" not in seen.header("connection")


def test_a_response_that_ends_with_the_connection(world):
    def close_delimited(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it")

    cage, _, _ = world(close_delimited)
    for url in ("https://raw.test/close", "http://plain.test/close"):
        assert cage.fetch("GET", url).body == b"all of it"
    _, response = logged_pair(cage, "/close", scheme="https")
    assert response["inspected_in"] == 9


@pytest.mark.parametrize("framing, body", [("Content-Length: 100", b"half of"), ("Transfer-Encoding: chunked", b"5\r\nhalf \r\n")])
def test_a_truncated_response_never_looks_complete(world, framing, body):
    def truncate(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\n" + framing.encode() + b"\r\n\r\n" + body)

    cage, _, _ = world(truncate)
    wire = cage.tunnel("raw.test")
    try:
        assert wire.exchange("GET", "/truncated", HOST).status == 502  # if nothing was sent on yet
    except (Truncated, OSError):
        pass
    request = cage.log.wait(event="request", path="/truncated")
    result = cage.log.wait(event="response", txn=request["txn"], conn=request["conn"])
    assert (result["decision"], result["reason"]) == ("error", "upstream.truncated")


def test_an_upstream_that_ends_without_an_answer_is_a_502(world):
    cage, _, _ = world(lambda conn: conn.read_request())
    answer = cage.fetch("POST", "https://raw.test/silent", body=b"x")
    upstream_failed(answer, "upstream.truncated")


def test_an_upstream_that_is_not_there_is_a_502(start_cage):
    with RawOrigin() as gone:
        pin = gone.pin
    cage = start_cage(policy({"id": "gone", "hosts": ["gone.test"], "ports": [80, 443]}, pins={"gone.test": pin}))
    for url in ("http://gone.test/", "https://gone.test/"):
        answer = cage.fetch("GET", url)
        upstream_failed(answer, "upstream.unreachable")
        logged_failure(cage, answer, "upstream.unreachable")


# ---- heads as they were written

def test_order_and_case_of_fields_are_kept_both_ways(world):
    back = [("X-Zulu", "1"), ("x-alpha", "2"), ("Set-Cookie", "a=1"), ("X-miXed", "3"), ("Set-Cookie", "b=2")]
    cage, origin, _ = world(serving(response_bytes(200, b"ok\n", back)))
    there = [("X-Zulu", "1"), ("accept", "*/*"), ("X-miXed", "two  words"), ("x-alpha", ""), ("X-Zulu", "again")]
    answer = cage.fetch("GET", "https://raw.test/", there)
    assert [f for f in origin.requests[0].fields if f[0].lower() != "host"] == there
    assert [f for f in answer.fields if f[0] not in ("Content-Length", "Connection")] == back


def test_t23_hop_by_hop_fields_stay_on_their_hop(world):
    cage, origin, _ = world(serving(response_bytes(200, b"ok\n", [("Connection", "x-hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5")])))
    fields = [("Connection", "x-mine"), ("X-Mine", "1"), ("Keep-Alive", "5"), ("Proxy-Authorization", "Basic c2VjcmV0"),
              ("Proxy-Connection", "keep-alive"), ("X-Kept", "yes")]
    answer = cage.fetch("GET", "https://raw.test/", fields)
    seen = origin.requests[0]
    assert seen.header("x-kept") == "yes"
    assert not any(seen.has(n) for n in ("x-mine", "keep-alive", "proxy-authorization", "proxy-connection"))
    assert not answer.has("x-hop") and not answer.has("keep-alive")


# ---- big bodies

def run_curl(cage, *args):
    done = subprocess.run(["curl", "-sS", "--max-time", "120", *args], env=cage.env(), capture_output=True, timeout=150)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def big_cage(start_cage, nginx, pki):
    rule = {"id": "big", "hosts": ["site.test"], "limits": {"body": "200MiB"}}
    return start_cage(policy(rule, pins={"site.test": nginx.tls_pin}, trust=[pki.ca_pem]))


def test_100_megabytes_down(big_cage, tmp_path):
    run_curl(big_cage, "-o", str(tmp_path / "big"), "https://site.test/big")
    digest = hashlib.sha256((tmp_path / "big").read_bytes()).hexdigest()
    assert digest == hashlib.sha256(bytes(BIG)).hexdigest()
    _, response = logged_pair(big_cage, "/big")
    assert response["inspected_in"] == BIG


@pytest.mark.parametrize("fields", [(), ("-H", "Transfer-Encoding: chunked")], ids=["length", "chunked"])
def test_100_megabytes_up(big_cage, tmp_path, fields):
    block = bytes(range(256)) * 4000  # 1,024,000 bytes
    with open(tmp_path / "up", "wb") as f:
        for i in range(100):
            f.write(i.to_bytes(4, "big") + block)
    data = (tmp_path / "up").read_bytes()
    told = run_curl(big_cage, *fields, "-T", str(tmp_path / "up"), "https://site.test/echo/up")
    assert b'"length": %d,' % len(data) in told
    assert hashlib.sha256(data).hexdigest().encode() in told
    _, response = logged_pair(big_cage, "/echo/up")
    assert response["inspected_out"] == len(data)
