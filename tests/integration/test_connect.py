"""CONNECT and what comes around it: targets, what is spoken inside, authentication, kinds of listeners."""
import base64
import socket

import pytest
from cagelib.checks import logged_block, logged_pair, refused
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import Wire

HOST = [("Host", "a.test")]


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf("a.test", "b.test")) as running:
        yield running


@pytest.fixture(scope="module")
def plain():
    with RawOrigin() as running:
        yield running


def rules(origin, plain, pki, **more):
    listed = [{"id": "a", "hosts": ["a.test", "b.test"]}, {"id": "p", "hosts": ["p.test"], "ports": [80, 443, 8080]}]
    pins = {"a.test": origin.pin, "b.test": origin.pin, "p.test": plain.pin}
    return policy(*listed, pins=pins, trust=[pki.ca_pem], **more)


@pytest.fixture(scope="module")
def cage(start_module_cage, origin, plain, pki):
    return start_module_cage(rules(origin, plain, pki))


# ---- targets

MALFORMED = {
    "no_port": "a.test", "empty_port": "a.test:", "port_too_large": "a.test:99999", "port_zero": "a.test:0", "port_with_sign": "a.test:+443",
    "port_in_words": "a.test:https", "leading_zero": "a.test:0443", "no_host": ":443", "url": "https://a.test:443/", "path": "a.test:443/x",
    "t05_userinfo": "user@a.test:443", "t05_fragment": "a.test#x:443", "t05_backslash": "a.test\\x:443", "t03_two_dots": "a.test..:443",
    "t03_empty_label": "a..test:443", "t03_leading_dot": ".a.test:443", "t06_long_label": "a" * 64 + ".test:443",
    "t06_long_name": "abcdefg." * 32 + "test:443", "t06_u_label": "\xe4.test:443", "t06_percent": "a%2etest:443",
    "t07_decimal": "2130706433:443", "t07_hex": "0x7f000001:443", "t07_octal": "0177.0.0.1:443", "t07_short": "127.1:443",
    "t07_zone": "[fe80::1%25lo]:443", "t07_open_bracket": "[::1:443", "t07_no_bracket": "::1:443", "t01_nul": "a.test\0.evil.test:443",
    "t01_tab": "a.test\t:443", "t01_del": "a.test\x7f:443",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_target(cage, origin, name):
    wire = cage.connect()
    wire.send(("CONNECT %s HTTP/1.1\r\nHost: a.test:443\r\n\r\n" % MALFORMED[name]).encode("latin-1"))
    answer = wire.read_response("CONNECT")
    refused(answer, {"target.malformed", "head.malformed"}, status=400)
    logged_block(cage, answer)
    assert not origin.conns


def test_a_port_that_no_rule_lists_is_refused_at_once(cage):
    for authority in ("a.test:22", "a.test:8443"):
        _, answer = cage.ask_connect(authority)
        refused(answer, "port.not_allowed")
        line = logged_block(cage, answer, event="connect", host="a.test")
        assert line["port"] == int(authority.split(":")[1])


def test_a_listed_port_of_another_host_is_refused_inside(cage):
    """8080 is listed by some rule, so the client reads the refusal where it would have read the answer."""
    wire, answer = cage.ask_connect("a.test:8080")
    assert answer.status == 200
    answer = wire.exchange("GET", "/", [("Host", "a.test:8080")])
    refused(answer, "port.not_allowed")
    logged_block(cage, answer)


def test_connect_and_its_host_field_must_agree(cage, origin):
    wire = cage.connect()
    answer = wire.exchange("CONNECT", "a.test:443", [("Host", "b.test:443")])
    refused(answer, {"authority.mismatch"}, status=answer.status)
    assert answer.status in (400, 403)
    logged_block(cage, answer)


def test_origin_form_to_a_proxy_is_malformed(cage):
    answer = cage.connect().exchange("GET", "/", HOST)
    refused(answer, {"target.malformed", "head.malformed"}, status=400)
    logged_block(cage, answer)


def test_https_in_absolute_form_is_refused(cage, origin):
    before = len(origin.requests)
    answer = cage.connect().exchange("GET", "https://a.test/", HOST)
    refused(answer, {"target.malformed", "protocol.unknown"}, status=answer.status)
    assert answer.status in (400, 403)
    logged_block(cage, answer)
    assert len(origin.requests) == before


# ---- what is spoken inside

@pytest.mark.parametrize("data", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\0\0\0\x10raw bytes here", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
                         ids=["ssh", "raw", "plain_http_on_443"])
def test_t11_bytes_that_are_not_tls_on_443(cage, origin, data):
    def lines():
        return cage.log.find(reason="protocol.unknown", host="a.test", decision="block", enforced=True)

    before, known = len(origin.conns), len(lines())
    wire, answer = cage.ask_connect("a.test:443")
    assert answer.status == 200
    rest = wire.send(data).read_until_closed()
    assert rest == b"" or rest.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400")), rest
    assert len(origin.conns) == before
    wait_until(lambda: len(lines()) == known + 1, 10, "no line about it")


def test_a_client_that_leaves_in_its_hello(cage, origin):
    before = len(origin.conns)
    wire, _ = cage.ask_connect("a.test:443")
    wire.send(b"\x16\x03\x01").end()
    wire.read_until_closed()
    assert len(origin.conns) == before
    cage.log.wait(event="connect", reason={"client.tls_failed", "client.gone", "protocol.unknown"}, host="a.test")


def test_t11_tls_on_80(cage, plain):
    before = len(plain.conns)
    wire, answer = cage.ask_connect("p.test:80")
    assert answer.status == 200
    with pytest.raises(OSError):
        cage.start_tls(wire, "p.test")
    assert len(plain.conns) == before
    cage.log.wait(reason="protocol.unknown", host="p.test")


def test_t11_tls_in_tls(cage, origin):
    before = len(origin.conns)
    wire = cage.tunnel("a.test")
    wire.send(b"\x16\x03\x01\x00\x05hello\r\n\r\n")
    answer = wire.read_response()
    refused(answer, {"head.malformed", "protocol.unknown"}, status=answer.status)
    assert answer.status in (400, 403)
    assert len(origin.conns) == before


def test_plain_http_inside_a_connect_is_inspected(cage, plain):
    wire, answer = cage.ask_connect("p.test:8080")
    assert answer.status == 200
    assert wire.exchange("GET", "/inside", [("Host", "p.test:8080")]).status == 200
    assert plain.requests[-1].start == "GET /inside HTTP/1.1"
    request, _ = logged_pair(cage, "/inside")
    assert (request["scheme"], request["port"], request["rule"]) == ("http", 8080, "p")


def test_t10_filtered_as_connect_and_as_plain_http(cage, plain):
    before = len(plain.conns)
    wire, answer = cage.ask_connect("evil.test:8080")
    assert answer.status == 200
    refused(wire.exchange("GET", "/", [("Host", "evil.test:8080")]), "host.not_allowed")
    refused(cage.fetch("GET", "http://evil.test/"), "host.not_allowed")
    assert len(plain.conns) == before


@pytest.mark.parametrize("inside", ["tls", "plain"])
def test_t10_a_connect_inside_a_connect(cage, origin, plain, inside):
    before = len(origin.conns) + len(plain.conns)
    wire = cage.tunnel("a.test") if inside == "tls" else cage.ask_connect("p.test:8080")[0]
    answer = wire.exchange("CONNECT", "b.test:443", [("Host", "b.test:443")])
    assert answer.status in (400, 403), answer
    refused(answer, {"target.malformed", "protocol.unknown", "method.not_allowed", "authority.mismatch", "head.malformed"}, status=answer.status)
    logged_block(cage, answer)
    assert len(origin.conns) + len(plain.conns) == before


def test_bytes_sent_along_with_connect_are_not_lost(cage):
    """A client may send its ClientHello without waiting."""
    wire = cage.connect()
    wire.send(b"CONNECT p.test:8080 HTTP/1.1\r\nHost: p.test:8080\r\n\r\nGET /early HTTP/1.1\r\nHost: p.test:8080\r\n\r\n")
    assert wire.read_response("CONNECT").status == 200
    assert wire.read_response().status == 200
    logged_pair(cage, "/early")


# ---- who asks

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def guarded(start_module_cage, origin, plain, pki, tmp_path_factory):
    path = tmp_path_factory.mktemp("auth") / "tokens"
    path.write_text("box-one:%s\nbox-two:%s\n" % (TOKEN, TOKEN[::-1]))
    return start_module_cage(rules(origin, plain, pki), "--auth", str(path))


def basic(text):
    return [("Proxy-Authorization", "Basic " + base64.b64encode(text.encode()).decode())]


def test_no_credentials_get_a_407(guarded):
    for answer in (guarded.ask_connect("a.test:443")[1], guarded.fetch("GET", "http://p.test/unauthenticated")):
        refused(answer, "auth.required", status=407)
        assert answer.header("proxy-authenticate").startswith("Basic ")
        line = guarded.log.of(answer)
        assert "sandbox" not in line and line["host"] in ("a.test", "p.test")
        logged_block(guarded, answer)


@pytest.mark.parametrize("text", ["box-one:wrong", "box-one:" + TOKEN[::-1], "box-three:" + TOKEN, "box-one:" + TOKEN + "x", "", ":"])
def test_wrong_credentials_are_refused(guarded, origin, text):
    before = len(origin.conns)
    _, answer = guarded.ask_connect("a.test:443", basic(text))
    refused(answer, {"auth.failed", "auth.required"}, status=407)
    logged_block(guarded, answer)
    assert len(origin.conns) == before


@pytest.mark.parametrize("box, token", [("box-one", TOKEN), ("box-two", TOKEN[::-1])])
def test_the_token_says_which_sandbox_it_is(guarded, origin, box, token):
    wire, answer = guarded.ask_connect("a.test:443", basic(box + ":" + token))
    assert answer.status == 200
    guarded.start_tls(wire, "a.test")
    assert wire.exchange("GET", "/as-" + box, HOST).status == 200
    request, response = logged_pair(guarded, "/as-" + box)
    assert request["sandbox"] == response["sandbox"] == box
    assert token not in origin.received.decode("latin-1")
    assert token.encode() not in b"".join(guarded.log.raw_lines())


def test_plain_http_with_credentials(guarded, plain):
    assert guarded.fetch("GET", "http://p.test/authenticated", basic("box-one:" + TOKEN)).status == 200
    assert not plain.requests[-1].has("proxy-authorization")


def test_sandboxes_do_not_share_upstream_connections(guarded, plain):
    before = len(plain.conns)
    for box, token in (("box-one", TOKEN), ("box-two", TOKEN[::-1])):
        assert guarded.fetch("GET", "http://p.test/pool", basic(box + ":" + token)).status == 200
    used = [c for c in plain.conns if any(r.target == "/pool" for r in c.requests)]
    assert len(used) == 2 and len(plain.conns) <= before + 2


# ---- listeners

def speak(sock, host="p.test"):
    with Wire(sock) as wire:
        return wire.exchange("GET", "http://%s/" % host, [("Host", host)])


def test_unix_listener(start_cage, origin, plain, pki, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("s") / "proxy.sock")
    start_cage(rules(origin, plain, pki), listen=["unix:" + path])
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    assert speak(sock).status == 200


def test_fd_listener(start_cage, origin, plain, pki):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        start_cage(rules(origin, plain, pki), "--workers", "2", listen=["fd:%d" % listener.fileno()], pass_fds=(listener.fileno(),))
        for _ in range(4):
            assert speak(socket.create_connection(("127.0.0.1", port), 10)).status == 200


def test_several_listeners_and_workers(start_cage, origin, plain, pki):
    cage = start_cage(rules(origin, plain, pki), "--workers", "2", listen=["127.0.0.1:0", "127.0.0.1:0"])
    ports = [int(x.rsplit(":", 1)[1]) for x in cage.listening]
    assert len(set(ports)) == 2
    for port in ports * 4:
        assert speak(socket.create_connection(("127.0.0.1", port), 10)).status == 200
