"""HTTP/2 on both sides: real clients and servers, then frames by hand. Each side goes by its own version."""
import base64
import contextlib
import json
import socket
import ssl
import subprocess
import time

import httpx
import pytest

from cagelib import corpora
from cagelib.checks import logged_block, logged_pair, refused, upstream_failed
from cagelib.content import Watch, assert_unleaked, filler, github_pat
from cagelib.forward import Forwarder
from cagelib.h2 import PREFACE, Answer, H2Client, H2Reply, frame, h2_only, h2_serving
from cagelib.proxy import policy, small_binary, wait_until
from cagelib.raw import RawOrigin, server_tls

HOST = "h2.test"
KEY = "key-7f3a9c51e2d84b60"
PLACEHOLDER = "{{API_KEY}}"
CALM, PROTOCOL_ERROR, REFUSED_STREAM = 11, 1, 7
MIB = 1 << 20


def rules(nginx, origin, pki, **more):
    pins = {"site.test": nginx.h2_pin, "x.denied.test": nginx.tls_pin, HOST: origin.pin}
    return policy({"id": "site", "hosts": ["site.test"]}, {"id": "old", "hosts": ["x.denied.test"]},
                  {"id": "h2", "hosts": [HOST], "secrets": ["api"]}, {"id": "slow", "hosts": ["*.slow.test"]},
                  pins=pins, trust=[pki.ca_pem], **more,
                  secrets=[{"id": "api", "from": {"env": "API_KEY"}, "placeholder": PLACEHOLDER, "in": ["header:x-api-key"]}])


refused_once = set()


def literal(*fields):
    """A header block that nothing has looked at; short fields only."""
    return b"".join(b"\0" + b"".join(bytes([len(x)]) + x for x in pair) for pair in fields)


def head(stream, *fields, flags=5):
    return frame(1, flags, stream, literal(*fields))


OK = (b":status", b"200")
MALFORMED = {  # what a server says on a stream
    "no status": lambda s: head(s, (b"x", b"y")),
    "two of them": lambda s: head(s, OK, OK),
    "status 101": lambda s: head(s, (b":status", b"101")),
    "status late": lambda s: head(s, (b"x", b"y"), OK),
    "line end": lambda s: head(s, OK, (b"x", b"y\r\nz: 1")),
    "nul": lambda s: head(s, OK, (b"x", b"y\0z")),
    "upper case": lambda s: head(s, OK, (b"X-Y", b"z")),
    "connection": lambda s: head(s, OK, (b"connection", b"close")),
    "length": lambda s: head(s, OK, (b"content-length", b"x")),
    "two lengths": lambda s: head(s, OK, (b"content-length", b"0"), (b"content-length", b"1")),
    "short": lambda s: head(s, OK, (b"content-length", b"5"), flags=4) + frame(0, 1, s, b"four"),
    "data first": lambda s: frame(0, 1, s, b"body"),
    "hpack": lambda s: frame(1, 5, s, b"\xff\xff\xff\xff\xff\xff"),
    "push": lambda s: frame(5, 4, s, (2).to_bytes(4, "big") + literal((b":method", b"GET"))),
    "pings": lambda _: frame(6, 0, 0, b"12345678") * 50000,
    "continuation": lambda s: frame(9, 4, s, b""),
}


def answer(request, server):
    """What the hand-made origin says, by path."""
    path = request.header(":path")
    if path == "/trailers":
        told = json.dumps(request.trailers).encode()
        return H2Reply(200, [("content-type", "text/plain"), ("alt-svc", 'h3=":443"')], told, [("x-sum", "42")])
    if path == "/sized":
        return H2Reply(200, [("content-length", "5")], b"sized", [("x-sum", "42")])
    if path == "/mirror-trailer":
        return H2Reply(200, [("content-length", "5")], b"sized", [("x-got", request.header("x-api-key"))])
    if path == "/hints":
        return H2Reply(200, [], b"after hints", interim=[103])
    if path == "/101":
        return H2Reply(200, [], b"behind a 101", interim=[101])
    if path.startswith("/malformed/"):
        server.send_bytes(MALFORMED[path[11:].replace("-", " ")](request.stream))
        return None
    if path == "/mirror":
        return H2Reply(200, [("x-got", request.header("x-api-key"))], b"you sent " + request.header("x-api-key").encode())
    if path.startswith("/refused") and path not in refused_once:
        refused_once.add(path)
        server.h2.reset_stream(request.stream, REFUSED_STREAM)
        return None
    if path.startswith("/cut"):
        raise OSError("cut off")
    if path == "/bye":
        server.leaves = True
    if path == "/goaway":
        server.h2.close_connection(last_stream_id=max(request.stream - 2, 0))
        return None
    if path.startswith("/never"):
        return None
    return H2Reply(200, [("content-type", "text/plain")], b"%s %d" % (path.encode(), len(request.body)))


def h2_tls(leaf, alpn=("h2",)):
    tls = server_tls(leaf)
    tls.set_alpn_protocols(list(alpn))
    return tls


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(h2_serving(answer), tls=h2_tls(pki.leaf(HOST))) as running:
        yield running


@pytest.fixture(scope="module")
def cage(start_module_cage, nginx, origin, pki):
    return start_module_cage(rules(nginx, origin, pki), env={"API_KEY": KEY})


@pytest.fixture
def client(cage):
    return H2Client(cage, HOST)


def curl(cage, *args, code=0):
    done = subprocess.run(["curl", "-sS", "--max-time", "60", *args], env=cage.env(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=90)
    assert done.returncode == code, done.stderr
    return done.stdout


# ---- real clients and servers

@pytest.mark.parametrize("host, version", [("site.test", "h2"), ("x.denied.test", "http/1.1")])
def test_curl_over_h2(cage, nginx, host, version):
    out = curl(cage, "--http2", "-w", "%{http_version} %{http_code}", "https://%s/hello.txt?%s" % (host, version[:2]))
    assert out == b"hello from the origin\n2 200"
    line = cage.log.wait(event="response", host=host, alpn=version)
    assert line["status"] == 200
    assert nginx.wait_hit("/hello.txt?%s" % version[:2]).split(" ")[6] == ("HTTP/2.0" if version == "h2" else "HTTP/1.1")


def test_an_h1_client_is_served_by_h1(start_cage, nginx, origin, pki):
    cage = start_cage(rules(nginx, origin, pki), env={"API_KEY": KEY})
    assert curl(cage, "--http1.1", "-w", "%{http_version}", "https://site.test/hello.txt?one").endswith(b"1.1")
    assert nginx.wait_hit("/hello.txt?one").split(" ")[6] == "HTTP/1.1"


@pytest.mark.parametrize("size", [5, MIB, MIB + 1, 20 * MIB], ids=["small", "hold", "over", "large"])
@pytest.mark.parametrize("host", ["site.test", "x.denied.test"])
def test_bodies(cage, tmp_path, host, size):
    (tmp_path / "body").write_bytes(filler(size))
    out = curl(cage, "--http2", "--data-binary", "@%s" % (tmp_path / "body"), "-H", "Content-Type: text/plain",
               "https://%s/echo" % host)
    assert json.loads(out)["length"] == size


def test_refusals_of_uploads_are_read(cage):
    """curl overlooks an answer that a reset follows at once, in one of three cases."""
    out = [curl(cage, "--http2", "-d", "hello", "-w", "%{http_code}", "https://nobody.test/") for _ in range(10)]
    assert all(o.endswith(b"403") and b"host.not_allowed" in o for o in out), out
    with subprocess.Popen(["curl", "-sS", "--max-time", "60", "--http2", "-T", "-", "https://late.nobody.test/"], env=cage.env(),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as late:
        cage.log.wait(host="late.nobody.test", reason="host.not_allowed")
        assert b"host.not_allowed" in late.communicate(b"behind the answer")[0]


@pytest.mark.parametrize("size", [3 * MIB, 20 * MIB], ids=["short", "long"])
@pytest.mark.parametrize("url, reason", [("https://nobody.test/", "host.not_allowed"), ("https://%s/" % HOST, "secret.detected")],
                         ids=["host", "head"])
def test_refusals_are_read_by_a_client_that_sends_all_of_its_upload_first(cage, size, url, reason):
    with httpx.Client(http2=True, proxies="http://127.0.0.1:%d" % cage.port, verify=cage.ca_pem, timeout=20) as client:
        got = client.post(url, content=filler(size), headers={"x-note": github_pat(41)})
    assert (got.http_version, got.status_code, got.headers["x-cage-reason"]) == ("HTTP/2", 403, reason)
    assert got.json()["reason"] == reason


def test_a_large_response(cage):
    assert len(curl(cage, "--http2", "https://site.test/big")) == 100 * 1000 * 1000


def test_an_h2_only_server_serves_an_h1_client(start_cage, pki):
    with RawOrigin(h2_only(h2_tls(pki.leaf(HOST)), h2_serving(answer))) as origin:
        cage = start_cage(policy({"id": "h2", "hosts": [HOST]}, pins={HOST: origin.pin}, trust=[pki.ca_pem]))
        for path in ("/one", "/two"):
            got = cage.fetch("POST", "https://%s%s" % (HOST, path), body=b"abc")
            assert (got.status, got.body) == (200, path.encode() + b" 3")
            assert logged_pair(cage, path)[1]["alpn"] == "h2"
        assert len(origin.conns) == 2  # one for each offer; the second request shares the latter


def test_a_server_that_knows_no_http_is_unverified(start_cage, pki):
    def handler(conn):
        conn.sock.recv(65536)
        conn.sock.sendall(b"\x15\x03\x03\x00\x02\x02\x78")

    with RawOrigin(handler) as origin:
        cage = start_cage(policy({"id": "h2", "hosts": [HOST]}, pins={HOST: origin.pin}, trust=[pki.ca_pem]))
        upstream_failed(cage.fetch("GET", "https://%s/" % HOST), "upstream.unverified")
        assert len(origin.conns) == 2
        upstream_failed(H2Client(cage, HOST).fetch("GET", "/"), "upstream.unverified")
        assert len(origin.conns) == 3


@pytest.mark.parametrize("host, n", [("site.test", 100), ("x.denied.test", 30)])
def test_a_thousand_streams_over_ten_connections(cage, nginx, host, n):
    """Fewer with a server that needs a connection for each of them."""
    path = "/hello.txt?load"
    before = len(nginx.hits(path))
    clients = [H2Client(cage, host) for _ in range(10)]
    streams = [[c.start("GET", path) for _ in range(n)] for c in clients]
    for c, mine in zip(clients, streams):
        for stream in mine:
            assert c.wait(stream).body == b"hello from the origin\n", c.answers[stream]
    wait_until(lambda: len(nginx.hits(path)) == before + 10 * n, 20, "nginx has not seen all of them")
    if host == "site.test":
        assert len({hit.split(" ")[7] for hit in nginx.hits(path)[before:]}) <= 30  # connections are shared


def test_h2load(cage, nginx):
    before = len(nginx.hits("/hello.txt?h2load"))
    with Forwarder(cage, "site.test:443") as forwarder:
        out = subprocess.run(["h2load", "-n", "2000", "-c", "10", "-m", "100", "--connect-to", forwarder.address,
                              "https://site.test/hello.txt?h2load"], stdout=subprocess.PIPE, timeout=120, check=True).stdout
    assert b"2000 succeeded, 0 failed" in out, out
    wait_until(lambda: len(nginx.hits("/hello.txt?h2load")) == before + 2000, 20, "nginx has not seen all of them")


def test_nghttp_with_a_body(cage, tmp_path):
    """Its trailers stand behind a body of a declared length."""
    (tmp_path / "body").write_bytes(filler(300000))
    with Forwarder(cage, HOST + ":443") as forwarder:
        port = forwarder.address.split(":")[1]
        out = subprocess.run(["nghttp", "-v", "-d", str(tmp_path / "body"), "--trailer", "x-mine: 7",
                              "-H", ":authority: %s" % HOST, "-H", "content-type: text/plain",
                              "https://127.0.0.1:%s/trailers" % port], stdout=subprocess.PIPE, timeout=60).stdout
    assert b":status: 200" in out and b"x-sum: 42" in out and b'[["x-mine", "7"]]' in out, out.decode()[-3000:]


# ---- one connection by hand

def test_requests_share_connections_on_both_sides(client, cage, origin):
    client.fetch("GET", "/first")
    conns = len(origin.conns)
    for i in range(5):
        assert client.fetch("POST", "/s%d" % i, body=b"x" * i).body == b"/s%d %d" % (i, i)
    assert len(origin.conns) == conns
    lines = [logged_pair(cage, "/s%d" % i) for i in range(5)]
    assert len({request["conn"] for request, _ in lines}) == 1
    assert len({request["txn"] for request, _ in lines}) == 5
    assert all(response["alpn"] == "h2" for _, response in lines)


def test_trailers_both_ways_and_no_alt_svc(client):
    got = client.fetch("POST", "/trailers", [("te", "trailers")], b"body", trailers=[("x-mine", "7")])
    assert got.status == 200 and got.header("alt-svc") == ""
    assert [list(x) for x in got.trailers] == [["x-sum", "42"]]
    assert json.loads(got.body) == [["x-mine", "7"]]


@pytest.mark.parametrize("size", [0, 5, 2 * MIB])
def test_trailers_behind_a_declared_length(client, origin, size):
    """The length stays, too, and so does that of the response."""
    got = client.fetch("POST", "/sized", [("content-length", str(size))], filler(size), trailers=[("x-mine", "7")])
    asked = origin.requests[-1]
    assert asked.header("content-length") == str(size) and len(asked.body) == size
    assert [list(x) for x in asked.trailers] == [["x-mine", "7"]]
    assert (got.status, got.header("content-length"), got.body) == (200, "5", b"sized")
    assert [list(x) for x in got.trailers] == [["x-sum", "42"]]


def test_trailers_behind_a_declared_length_have_no_place_in_h1(cage, nginx):
    got = H2Client(cage, "x.denied.test").fetch("POST", "/echo", [("content-length", "5"), ("content-type", "text/plain")],
                                                b"hello", trailers=[("x-mine", "7")])
    assert got.status == 200 and got.json()["length"] == 5


def test_t24_a_secret_in_trailers_behind_a_declared_length(client, cage, origin):
    watch, secret = Watch(origin), github_pat(8)
    got = client.fetch("POST", "/sized", [("content-length", "5")], b"hello", trailers=[("x-mine", secret)])
    refused(got, "secret.detected", host=HOST)
    logged_block(cage, got, host=HOST)
    watch.assert_no_request(secret.encode())
    assert_unleaked(cage, secret)


def test_a_value_in_trailers_behind_a_declared_length_is_taken_out(client, cage):
    got = client.fetch("GET", "/mirror-trailer", [("x-api-key", PLACEHOLDER)])
    assert got.status == 200 and got.body == b"sized"
    assert [list(x) for x in got.trailers] == [["x-got", PLACEHOLDER]]


def test_interim_responses_pass(client):
    got = client.fetch("GET", "/hints")
    assert (got.interim, got.body) == ([103], b"after hints")


def test_t12_a_101_of_an_h2_server_is_a_502(client, cage):
    got = client.fetch("GET", "/101")
    upstream_failed(got, "upstream.malformed")  # HTTP/2 has no such status
    assert cage.log.of(got, event="response")["reason"] == "upstream.malformed"
    assert client.fetch("GET", "/after-101").status == 200


@pytest.mark.parametrize("case", sorted(MALFORMED))
def test_t22_a_malformed_answer_of_an_h2_server(client, cage, origin, case):
    path = "/malformed/" + case.replace(" ", "-")
    got = client.fetch("GET", path)
    if got.status == 200:  # it was not malformed before its body
        assert got.reset is not None and case == "short"
        got = cage.log.wait(event="request", path=path)["txn"]
        assert cage.log.wait(event="response", txn=got)["reason"] == "upstream.malformed"
    else:
        upstream_failed(got, "upstream.malformed")
        assert cage.log.of(got, event="response")["reason"] == "upstream.malformed"
    assert [r.header(":path") for r in origin.requests].count(path) == 1
    assert client.fetch("GET", "/after").status == 200


def test_a_secret_is_put_in_and_taken_out(client, cage, origin):
    got = client.fetch("GET", "/mirror", [("x-api-key", PLACEHOLDER)])
    assert origin.requests[-1].header("x-api-key") == KEY
    assert got.status == 200
    assert KEY.encode() not in got.head + got.body
    line = cage.log.wait(event="response", redacted=["api"])
    assert line["alpn"] == "h2"
    assert_unleaked(cage, KEY)


@pytest.mark.parametrize("size", [0, 3 * MIB], ids=["held", "behind the hold"])
def test_t28_a_secret_in_a_body_is_refused_and_the_connection_goes_on(client, cage, origin, size):
    secret = github_pat(7 + size)
    watch = Watch(origin)
    body = filler(size) + secret.encode()
    got = client.fetch("POST", "/leak", [("content-type", "text/plain")], body + b"." * 10)
    refused(got, "secret.detected", host=HOST)
    logged_block(cage, got, host=HOST) if size == 0 else cage.log.of(got, reason="secret.detected")
    watch.assert_no_request(secret.encode()[:20])
    assert client.fetch("GET", "/after").status == 200
    assert_unleaked(cage, secret)


def test_t28_a_secret_in_crumbs_of_cookies(client, cage, origin):
    secret, before = github_pat(38), len(origin.requests)
    got = client.fetch("GET", "/crumbs", [("cookie", secret[:20]), ("x-between", "1"), ("cookie", secret[20:])])
    refused(got, "secret.detected", host=HOST)
    logged_block(cage, got, host=HOST)
    assert len(origin.requests) == before
    assert_unleaked(cage, secret)


def test_refusals_of_the_policy_are_told_inside(cage, origin):
    client = H2Client(cage, "nowhere.test", verify=True)
    streams = [client.start("GET", "/") for _ in range(2)]
    told = [client.wait(stream) for stream in streams]
    for got in told:
        refused(got, "host.not_allowed", host="nowhere.test")
        logged_block(cage, got, host="nowhere.test")  # each has a line of its own
    assert len({got.header("x-cage-txn") for got in told}) == 2
    assert client.wait_end() == 0
    assert client.asked_at_goaway == []  # some clients read nothing after it


def test_t09_authority_differs_from_connect(client, cage, origin):
    watch = Watch(origin)
    got = client.fetch("GET", "/", authority="other.test")
    refused(got, "authority.mismatch")
    logged_block(cage, got)
    watch.assert_nothing_left()
    assert client.fetch("GET", "/same").status == 200


def test_t10_a_connect_inside_is_refused(client, cage, origin):
    watch = Watch(origin)
    stream = client.h2.get_next_available_stream_id()
    client.answers[stream] = Answer()
    client.h2.send_headers(stream, [(":method", "CONNECT"), (":authority", HOST + ":443")])
    client.flush()
    got = client.wait(stream)
    refused(got, "protocol.unknown")
    logged_block(cage, got)
    watch.assert_nothing_left()


def test_a_stale_connection_is_replaced(client, cage, origin):
    """A GOAWAY that leaves the request out: it is sent again elsewhere, and in the end it is not."""
    assert client.fetch("GET", "/before").status == 200
    conns = len(origin.conns)
    upstream_failed(client.fetch("GET", "/goaway"), "upstream.truncated")
    assert len(origin.conns) == conns + 3
    assert client.fetch("GET", "/after").status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_stream_that_is_refused_is_tried_again(client, origin, method):
    """With any method: the server has said that it did not look at it."""
    assert client.fetch("GET", "/before").status == 200
    body = b"" if method == "GET" else b"abc"
    got = client.fetch(method, "/refused?" + method, body=body)
    assert got.status == 200, got
    asked = [r for r in origin.requests if r.header(":path") == "/refused?" + method]
    assert [r.body for r in asked] == [body, body]


@pytest.mark.parametrize("method, times", [("GET", 2), ("POST", 1)])
def test_a_connection_that_is_cut_off(client, origin, method, times):
    """Nobody knows how far the request came: it is sent again only if it is idempotent."""
    assert client.fetch("GET", "/before").status == 200
    upstream_failed(client.fetch(method, "/cut?" + method, body=b"" if method == "GET" else b"abc"), "upstream.truncated")
    assert len([r for r in origin.requests if r.header(":path") == "/cut?" + method]) == times


def test_tls_sessions_are_resumed(client, cage, origin):
    before = cage.metric("cage_upstream_tls_resumed_total")
    assert client.fetch("GET", "/bye").status == 200
    origin.wait(lambda o: o.conns[-1].sock.fileno() < 0)
    assert client.fetch("GET", "/again").status == 200
    assert origin.conns[-1].resumed
    assert cage.metric("cage_upstream_tls_resumed_total") == before + 1


def test_a_client_that_gives_up_takes_its_upstream_along(client, cage, origin):
    client.fetch("GET", "/before")
    stream = client.start("GET", "/never?1")
    origin.wait(lambda o: o.requests[-1].header(":path") == "/never?1")
    client.h2.reset_stream(stream, 8)
    client.flush()
    request = cage.log.wait(event="request", path="/never?1")
    assert cage.log.wait(event="response", conn=request["conn"], txn=request["txn"])["reason"] == "client.gone"
    other = client.start("GET", "/never?2")
    request = cage.log.wait(event="request", path="/never?2")
    assert not client.over(other)
    client.wire.close()
    assert cage.log.wait(event="response", conn=request["conn"], txn=request["txn"])["reason"] == "client.gone"


# ---- reload and stop

def test_t35_a_connection_that_is_no_longer_allowed_ends(start_cage, nginx, origin, pki):
    cage = start_cage(rules(nginx, origin, pki), env={"API_KEY": KEY})
    idle, busy, other = H2Client(cage, HOST), H2Client(cage, HOST), H2Client(cage, "site.test")
    assert idle.fetch("GET", "/").status == 200
    assert other.fetch("GET", "/hello.txt").status == 200
    stream = busy.start("GET", "/never")
    cage.log.wait(event="request", path="/never")
    cage.reload(policy({"id": "site", "hosts": ["site.test"]}, pins={"site.test": nginx.h2_pin}, trust=[pki.ca_pem]))
    assert idle.wait_end() == 0
    refused(busy.wait(stream), "policy.changed")
    assert busy.wait_end() == 0
    assert busy.asked_at_goaway == []
    assert other.fetch("GET", "/hello.txt").status == 200
    cage.log.wait(reason="policy.changed", stage="policy", host=HOST)


def test_many_reloads_free_old_generations(start_cage, nginx, origin, pki):
    cage = start_cage(rules(nginx, origin, pki), env={"API_KEY": KEY})
    client = H2Client(cage, HOST)
    for i in range(10):
        assert client.fetch("GET", "/gen%d" % i).status == 200
        cage.reload(rules(nginx, origin, pki, name="reload-%d" % i))
    assert client.fetch("GET", "/last").status == 200


def test_a_stop_says_goaway(start_cage, nginx, origin, pki):
    cage = start_cage(rules(nginx, origin, pki), env={"API_KEY": KEY})
    idle, busy = H2Client(cage, HOST), H2Client(cage, "site.test")
    assert idle.fetch("GET", "/").status == 200
    stream = busy.start("POST", "/echo", [("content-type", "text/plain"), ("content-length", "5")], end=False)
    busy.send(stream, b"abc", end=False)
    busy.h2.ping(b"12345678")
    busy.flush()
    busy.read()
    cage.signal(15)
    assert idle.wait_end() == 0
    busy.send(stream, b"de")
    assert busy.wait(stream).status == 200
    assert busy.wait_end() == 0
    assert cage.process.wait(20) == 0


# ---- clients that say nothing, or turn away

def test_an_idle_connection_is_closed(start_cage, nginx, origin, pki):
    cage = start_cage(rules(nginx, origin, pki), env={"API_KEY": KEY}, program=small_binary())
    client = H2Client(cage, HOST)
    assert client.fetch("GET", "/").status == 200
    assert client.wait_end() == 0
    assert not cage.log.find(decision="error")


def test_a_client_that_asks_nothing(start_cage, nginx, origin, pki):
    cage = start_cage(rules(nginx, origin, pki), env={"API_KEY": KEY}, program=small_binary())
    wire = cage.tunnel(HOST, tls=cage.client_tls(alpn=("h2",)))
    wire.read_until_closed()
    cage.log.wait(event="connect", decision="error", reason="client.timeout", stage="tls", host=HOST)


def test_a_client_that_does_not_trust_us(cage):
    before = len(cage.log.find(reason="client.tls_failed", host=HOST))
    tls = ssl.create_default_context()
    tls.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLError):
        cage.tunnel(HOST, tls=tls)
    wait_until(lambda: len(cage.log.find(reason="client.tls_failed", stage="tls", host=HOST)) == before + 1, 10, "no line")


# ---- bounds of a worker

def test_requests_beyond_the_streams_of_a_worker(start_cage, nginx, origin, pki):
    cage = start_cage(rules(nginx, origin, pki), env={"API_KEY": KEY}, program=small_binary())
    clients = [H2Client(cage, HOST) for _ in range(3)]
    streams = [(c, c.start("POST", "/held", [("content-length", "5")], end=False)) for c in clients for _ in range(100)]
    last, stream = streams[-1]
    got = last.wait(stream)
    refused(got, "limit.connections", status=503)
    logged_block(cage, got, stage="head")
    first, stream = streams[0]
    first.send(stream, b"12345")
    assert first.wait(stream).body == b"/held 5"


# ---- T12, T24

@pytest.mark.parametrize("inside", [False, True], ids=["plain", "inside CONNECT"])
def test_t12_h2c_by_prior_knowledge(start_cage, nginx, pki, inside):
    cage = start_cage(policy({"id": "a", "hosts": ["a.test"], "ports": [8000]}, pins={"a.test": nginx.plain_pin}))
    before = len(nginx.hits())
    wire = cage.ask_connect("a.test:8000")[0] if inside else cage.connect()
    wire.send(PREFACE + frame(4))
    got = wire.read_response()
    refused(got, "protocol.unknown")
    logged_block(cage, got)
    assert len(nginx.hits()) == before


def test_t12_h2_without_alpn(cage, origin):
    watch = Watch(origin)
    wire = cage.tunnel(HOST)
    wire.send(PREFACE + frame(4))
    got = wire.read_response()
    refused(got, "protocol.unknown")
    logged_block(cage, got)
    watch.assert_nothing_left()


def test_t12_h1_after_alpn_h2(cage, origin):
    watch = Watch(origin)
    client = cage.tunnel(HOST, tls=cage.client_tls(alpn=("h2",)))
    before = len(cage.log.find(event="connect", reason="protocol.unknown", host=HOST))
    client.send(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
    client.read_until_closed()
    wait_until(lambda: len(cage.log.find(event="connect", reason="protocol.unknown", host=HOST)) == before + 1, 10, "no line")
    watch.assert_nothing_left()


def flood(cage, origin, make, reason, code):
    """Sends what make(client, i) gives until the connection ends."""
    watch = Watch(origin)
    before = len(cage.log.find(event="connect", reason=reason, host=HOST))
    client = H2Client(cage, HOST)
    try:
        for i in range(200000):
            client.wire.send(make(client, i))
    except OSError:
        pass
    ended = client.wait_end()
    assert ended in (code, None)  # a reset can overtake it
    wait_until(lambda: len(cage.log.find(event="connect", reason=reason, host=HOST)) == before + 1, 10, "no line")
    watch.assert_no_request()


@pytest.mark.parametrize("make", [
    lambda client, i: frame(6, 0, 0, b"12345678") * 100,
    lambda client, i: frame(4) * 100,
    lambda client, i: frame(2, 0, 1, b"\0\0\0\0\1") * 100,
    lambda client, i: frame(8, 0, 0, b"\0\0\0\1") * 100,
], ids=["ping", "settings", "priority", "window"])
def test_t24_floods_of_frames(cage, origin, make):
    flood(cage, origin, make, "limit.rate", CALM)


def test_t24_rapid_reset(cage, origin):
    block = H2Client(cage, HOST).h2.encoder.encode([(":method", "GET"), (":scheme", "https"), (":authority", "x.test"),
                                                    (":path", "/")], huffman=False)
    one = block  # no dynamic table is needed to read it again
    def make(_client, i):
        return frame(1, 5, 2 * i + 1, one) + frame(3, 0, 2 * i + 1, b"\0\0\0\x08")
    flood(cage, origin, make, "limit.rate", CALM)


def test_t24_empty_frames(cage, origin):
    def make(client, i):
        if i == 0:
            client.start("POST", "/empty", end=False)
        return frame(0, 0, 1) * 100
    flood(cage, origin, make, "limit.rate", CALM)


def test_t24_an_hpack_bomb(client, cage, origin):
    """Ten thousand bytes that stand for forty million."""
    watch = Watch(origin)
    before = len(cage.log.find(reason="head.too_large", host=HOST))
    got = client.fetch("GET", "/bomb", [("x-bomb", "a" * 4000)] * 10000)
    assert got.status == 0 and got.reset == CALM
    wait_until(lambda: len(cage.log.find(reason="head.too_large", host=HOST)) == before + 1, 10, "no line")
    watch.assert_no_request()
    assert client.fetch("GET", "/after").status == 200


def test_t24_continuation_flood(cage, origin):
    def make(_client, i):
        return frame(1, 1, 1, b"") if i == 0 else frame(9, 0, 1, b"")
    flood(cage, origin, make, "limit.rate", CALM)


@pytest.mark.parametrize("fields", [
    [("x-big", "a" * 70000)], [("x-%d" % i, "y") for i in range(250)],
], ids=["bytes", "fields"])
def test_t24_a_huge_head_is_a_stream_error(client, cage, origin, fields):
    watch = Watch(origin)
    got = client.fetch("GET", "/huge", fields)
    assert got.status == 0 and got.reset is not None
    line = cage.log.wait(event="request", reason="head.too_large", host=HOST)
    assert line["decision"] == "block"
    watch.assert_no_request()


@pytest.mark.parametrize("fields", [
    [("Upper", "case")], [("connection", "close")], [("transfer-encoding", "chunked")], [("x", "a\rb")], [("a b", "c")],
    [(":late", "x")], [("te", "gzip")],
], ids=lambda f: f[0][0])
def test_t22_a_malformed_list_is_a_stream_error(client, cage, origin, fields):
    watch = Watch(origin)
    before = len(cage.log.find(reason="head.malformed", host=HOST))
    got = client.fetch("GET", "/malformed", fields)
    assert got.status == 0 and got.reset == PROTOCOL_ERROR
    wait_until(lambda: len(cage.log.find(reason="head.malformed", host=HOST)) == before + 1, 10, "no line")
    watch.assert_no_request()
    assert client.fetch("GET", "/after").status == 200


# ---- the shared corpora of requests and frames

LENGTHS = {"h2CL content-length 0 with body", "content-length 10 with 5"}  # known only when the body has come


def one_request(cage, origin, host, case):
    """Refused with a stream error, or a refusal that the client can read, and one line; nothing has left."""
    watch = Watch(origin)
    before = len(cage.log.find(host=host, decision="block"))
    client = H2Client(cage, host)
    stream = client.h2.get_next_available_stream_id()
    client.answers[stream] = Answer()
    client.h2.send_headers(stream, [tuple(field) for field in case["headers"]], end_stream=not case["body"])
    client.flush()
    if case["body"]:
        client.send(stream, case["body"].encode())
    got = client.wait(stream)
    if case["expect"] == "accept":
        assert got.status == 200, case
        return
    reason = "framing.ambiguous" if case["name"] in LENGTHS else "head.malformed"
    if case["name"] == "host differs from :authority":
        reason = "authority.mismatch"
        refused(got, reason)
    else:
        assert (got.status, got.reset) == (0, PROTOCOL_ERROR), case
    wait_until(lambda: len(cage.log.find(host=host, decision="block")) == before + 1, 10, "no line for %r" % case)
    assert cage.log.find(host=host, decision="block")[-1]["reason"] == reason, case
    watch.assert_no_request()


def test_t22_requests_of_the_corpus(start_cage, pki):
    """None of the expectations is wrong."""
    host = "victim.example"
    with RawOrigin(h2_serving(answer), tls=h2_tls(pki.leaf(host))) as origin:
        cage = start_cage(policy({"id": "v", "hosts": [host]}, pins={host: origin.pin}, trust=[pki.ca_pem]))
        for case in corpora.load("h2_requests"):
            one_request(cage, origin, host, case)
        assert not cage.log.find(reason="client.gone")


@pytest.mark.parametrize("sent, more", [(b"12345", b"6"), (b"1234", b"")], ids=["longer", "shorter"])
def test_t22_a_body_of_another_length_than_declared(client, cage, origin, sent, more):
    """Also when the head, and then the body as far as it is right, were looked at long before."""
    watch = Watch(origin)
    before = len(cage.log.find(reason="framing.ambiguous", host=HOST))
    stream = client.start("POST", "/declared", [("content-length", "5")], end=False)
    client.send(stream, sent, end=False)
    client.h2.ping(b"12345678")
    client.flush()
    client.read()
    client.send(stream, more)
    got = client.wait(stream)
    assert (got.status, got.reset) == (0, PROTOCOL_ERROR)
    wait_until(lambda: len(cage.log.find(reason="framing.ambiguous", host=HOST)) == before + 1, 10, "no line")
    assert cage.log.find(reason="framing.ambiguous", host=HOST)[-1]["decision"] == "block"
    watch.assert_no_request()
    assert client.fetch("GET", "/after").status == 200


# ---- frames

# Frames that are well-formed and yet wrong as the first on a connection (RFC 9113, 5.1 and 6), with the code that tells so.
WRONG_AS_FIRST = {
    "continuation/header.json": PROTOCOL_ERROR, "continuation/normal.json": PROTOCOL_ERROR,  # no HEADERS before it
    "data/normal.json": PROTOCOL_ERROR, "rst_stream/normal.json": PROTOCOL_ERROR,            # of a stream that is idle
    "window_update/normal.json": PROTOCOL_ERROR, "push_promise/normal.json": PROTOCOL_ERROR,  # clients do not push
    "headers/normal.json": 9, "headers/priority.json": 9,                                     # "this is dummy" is no HPACK
}


def one_frame(cage, case):
    client = H2Client(cage, HOST)
    client.wire.send(bytes.fromhex(case["wire"]))
    if case["error"] is not None or case["name"] in WRONG_AS_FIRST:
        assert client.wait_end() in (case["error"] or [WRONG_AS_FIRST[case["name"]]]), case
    elif case["name"] != "goaway/normal.json":
        assert client.fetch("GET", "/corpus").status == 200, case


def test_frames_of_the_corpus(cage, origin):
    before = len(cage.log.find(event="connect", host=HOST, reason={"protocol.unknown", "head.malformed"}))
    cases = corpora.load("h2_frames")
    for case in cases:
        one_frame(cage, case)
    wrong = [c for c in cases if c["error"] is not None or c["name"] in WRONG_AS_FIRST]
    wait_until(lambda: len(cage.log.find(event="connect", host=HOST, reason={"protocol.unknown", "head.malformed"}))
               == before + len(wrong), 10, "not one line for each")


# ---- clients that take nothing

class Box:
    """The proxy as one of several sandboxes sees it."""

    def __init__(self, cage, name, token):
        self.cage, self.client_tls = cage, cage.client_tls
        self.fields = [("Proxy-Authorization", "Basic " + base64.b64encode(("%s:%s" % (name, token)).encode()).decode())]

    def tunnel(self, host, port=443, _sni="", context=None):
        wire, told = self.cage.ask_connect("%s:%d" % (host, port), self.fields)
        assert told.status == 200, told
        return self.cage.start_tls(wire, host, context)


def ask_and_take_nothing(box, n):
    """Responses of 100 MB, of which the windows would let all come."""
    client = H2Client(box, "site.test")
    client.wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.h2.update_settings({4: (1 << 31) - 1})
    client.h2.increment_flow_control_window((1 << 31) - 1 - 65535)
    client.flush()
    for _ in range(n):
        client.start("GET", "/big")
    return client


def test_t24_responses_that_are_not_taken_stall_nobody_else(start_cage, nginx, origin, pki, tmp_path):
    """Neither another sandbox, which has some of its own, nor another client of the same one."""
    tokens = {"one": "1" * 32, "two": "2" * 32}
    (tmp_path / "auth").write_text("".join("%s:%s\n" % x for x in tokens.items()))
    (tmp_path / "auth").chmod(0o600)
    cage = start_cage(rules(nginx, origin, pki), "--auth", str(tmp_path / "auth"), env={"API_KEY": KEY})
    one, two = (Box(cage, *x) for x in tokens.items())
    deaf = [ask_and_take_nothing(one, 100) for _ in range(3)]
    wait_until(lambda: len(cage.log.find(event="request", path="/big")) == 300, 20, "they are not asked for")
    time.sleep(1.5)  # what is not taken piles up
    deaf.append(ask_and_take_nothing(two, 6))
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        for box in (one, two):
            client = H2Client(box, "site.test")
            client.wire.sock.settimeout(10)
            assert client.fetch("GET", "/hello.txt").status == 200
            client.wire.close()
    for client in deaf:
        client.wire.close()
    wait_until(lambda: len(cage.log.find(event="response", reason="client.gone")) == 306, 20, "they are not given up")


def test_t24_frames_that_nobody_knows(cage):
    """They are passed over, and so are heads of streams that are gone, but not without end."""
    for flood in (frame(0x55, 0, 0, b"x"), frame(1, 4, 1, b"")):
        client = H2Client(cage, HOST)
        client.wait(client.start("GET", "/first"))
        client.wire.send(flood * 100)
        assert client.fetch("GET", "/second").status == 200
        with contextlib.suppress(OSError):
            client.wire.send(flood * 20000)
        assert client.wait_end() == CALM
