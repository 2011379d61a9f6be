"""--socks: SOCKS5 leads to the same place as CONNECT: the same checks, refusals, interception, tunnels and log lines."""
import ipaddress
import os
import socket
import subprocess

import pytest
from cagelib import socks
from cagelib.checks import OneMore, logged_block, logged_pair, refused, upstream_failed
from cagelib.proxy import policy
from cagelib.raw import RawOrigin
from cagelib.wire import Wire

TOKEN = "0123456789abcdef0123456789abcdef"
KEY = "real-value-0123456789"


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf("a.test", "b.test")) as running:
        yield running


@pytest.fixture(scope="module")
def plain():
    with RawOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def banner():
    """Speaks first, then repeats what it hears."""
    def serve(conn):
        conn.send(b"SSH-2.0-test\r\n")
        while conn._more():
            conn.send(conn._take(len(conn.buffer)))

    with RawOrigin(serve) as running:
        yield running


def rules(origin, plain, banner, pki, **more):
    with RawOrigin() as gone:
        nowhere = gone.pin
    listed = [{"id": "a", "hosts": ["a.test", "b.test"], "secrets": ["key"]},
              {"id": "p", "hosts": ["p.test"], "ports": [80, 443, 8080]},
              {"id": "ssh", "action": "tunnel", "hosts": ["t.test", "gone.test"], "ports": [22]},
              {"id": "literal", "hosts": ["192.0.2.7", "127.0.0.1"]}]
    pins = {"a.test": origin.pin, "b.test": origin.pin, "p.test": plain.pin, "t.test": banner.pin, "gone.test": nowhere}
    key = {"id": "key", "from": {"env": "SOCKS_TEST_KEY"}, "placeholder": "{{SOCKS_KEY}}", "in": ["header:x-api-key"]}
    return policy(*listed, pins=pins, trust=[pki.ca_pem], secrets=[key], **more)


@pytest.fixture(scope="module")
def cage(start_module_cage, origin, plain, banner, pki):
    return start_module_cage(rules(origin, plain, banner, pki), "--socks", "127.0.0.1:0", env={"SOCKS_TEST_KEY": KEY})


# ---- what is allowed

def test_https_is_intercepted(cage, origin):
    wire, code = socks.ask(cage, "a.test", 443)
    assert code == socks.OK
    cage.start_tls(wire, "a.test")
    answer = wire.exchange("GET", "/socks", [("Host", "a.test"), ("x-api-key", "{{SOCKS_KEY}}")])
    assert answer.status == 200
    assert origin.requests[-1].header("x-api-key") == KEY
    request, _ = logged_pair(cage, "/socks")
    assert (request["rule"], request["scheme"], request["host"], request["port"]) == ("a", "https", "a.test", 443)
    assert request["injected"] == ["key"]


def test_plain_http_inside_is_inspected(cage, plain):
    wire, code = socks.ask(cage, "P.test.", 8080)
    assert code == socks.OK
    assert wire.exchange("GET", "/plain-socks", [("Host", "p.test:8080")]).status == 200
    assert plain.requests[-1].start == "GET /plain-socks HTTP/1.1"
    request, _ = logged_pair(cage, "/plain-socks")
    assert (request["scheme"], request["port"], request["rule"]) == ("http", 8080, "p")


def test_bytes_sent_along_with_the_request_are_not_lost(cage):
    wire = cage.connect_to(cage.socks_port)
    wire.send(socks.NO_METHOD + socks.request("p.test", 80) + b"GET /along HTTP/1.1\r\nHost: p.test\r\n\r\n")
    assert wire.read_exact(2) == b"\x05\x00"
    assert socks.read_reply(wire) == socks.OK
    assert wire.read_response().status == 200
    logged_pair(cage, "/along")


def test_bytes_at_every_cut(cage):
    data = socks.NO_METHOD + socks.request("p.test", 80) + b"GET / HTTP/1.1\r\nHost: p.test\r\nConnection: close\r\n\r\n"
    for cut in range(1, len(socks.NO_METHOD) + len(socks.request("p.test", 80)) + 2):
        wire = cage.connect_to(cage.socks_port)
        wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.send(data[:cut])
        if cut >= len(socks.NO_METHOD):
            assert wire.read_exact(2) == b"\x05\x00"  # so the first piece was read on its own
        wire.send(data[cut:])
        rest = wire.read_to_end()
        assert rest.endswith(b"ok\n") and b"HTTP/1.1 200" in rest, (cut, rest)


def test_a_client_may_end_its_side_after_its_request(cage):
    wire = cage.connect_to(cage.socks_port)
    wire.send(socks.NO_METHOD + socks.request("p.test", 80) + b"GET /ended HTTP/1.1\r\nHost: p.test\r\n\r\n").end()
    assert wire.read_to_end().endswith(b"ok\n")


def test_user_and_password_without_auth_are_ignored(cage):
    wire = cage.connect_to(cage.socks_port)
    wire.send(b"\x05\x01\x02" + socks.password("anybody", "any") + socks.request("p.test", 80))
    assert wire.read_exact(4) == b"\x05\x02\x01\x00"
    assert socks.read_reply(wire) == socks.OK


def test_unix_and_fd_listeners_and_workers(start_cage, origin, plain, banner, pki, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("s") / "socks.sock")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        start_cage(rules(origin, plain, banner, pki), "--workers", "2", "--socks", "unix:" + path, "--socks", "fd:%d" % listener.fileno(),
                   "--socks", "127.0.0.1:0", pass_fds=(listener.fileno(),), env={"SOCKS_TEST_KEY": KEY})
        unix = socket.socket(socket.AF_UNIX)
        unix.connect(path)
        for sock in (unix, socket.create_connection(("127.0.0.1", port), 10)):
            with Wire(sock) as wire:
                wire.send(socks.NO_METHOD + socks.request("p.test", 80))
                assert wire.read_exact(2) == b"\x05\x00"
                assert socks.read_reply(wire) == socks.OK
                assert wire.exchange("GET", "/", [("Host", "p.test")]).status == 200


# ---- targets

MALFORMED = {
    "t01_nul": b"a.test\0.evil.test", "t01_nul_at_end": b"a.test\0", "t01_tab": b"a.test\t", "t01_newline": b"a.test\n", "t01_del": b"a.test\x7f",
    "t01_high": b"a.test\xff", "t01_blank": b" a.test", "t03_two_dots": b"a.test..", "t03_empty_label": b"a..test", "t03_leading_dot": b".a.test",
    "t03_only_a_dot": b".", "t03_port": b"a.test:443", "t03_colon": b"a.test:", "t03_brackets": b"[a.test]", "t05_userinfo": b"user@a.test",
    "t05_fragment": b"a.test#x", "t05_backslash": b"a.test\\x", "t05_path": b"a.test/x", "t06_long_label": b"a" * 64 + b".test",
    "t06_long_name": b"abcdefg." * 31 + b"testing", "t06_u_label": "\xe4.test".encode(), "t07_decimal": b"2130706433", "t07_hex": b"0x7f000001",
    "t07_octal": b"0177.0.0.1", "t07_short": b"127.1", "t07_zone": b"[fe80::1%25lo]", "t07_no_bracket": b"::1", "t07_open_bracket": b"[::1",
    "empty": b"",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_target(cage, origin, name):
    before = len(origin.conns)
    with OneMore(cage, event="connect", reason="target.malformed") as one:
        wire, code = socks.ask(cage, MALFORMED[name], 443)
        assert code == socks.NOT_ALLOWED
        assert wire.read_to_end() == b""
    line = one.line
    assert (line["decision"], line["enforced"], line["stage"], line["status"]) == ("block", True, "connect", 400)
    assert "host" not in line
    assert len(origin.conns) == before


def test_port_zero_is_malformed(cage):
    with OneMore(cage, event="connect", reason="target.malformed"):
        assert socks.ask(cage, "a.test", 0)[1] == socks.NOT_ALLOWED


SPECIAL = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "::1", "fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::a00:1", "::"]


@pytest.mark.parametrize("as_name", [False, True], ids=["address", "name"])
@pytest.mark.parametrize("text", SPECIAL)
def test_t07_special_addresses(cage, text, as_name):
    address = ipaddress.ip_address(text)
    name = text if address.version == 4 else "[%s]" % text
    with OneMore(cage, event="connect", reason="address.private", decision="block"):
        _, code = socks.ask(cage, name if as_name else address, 443)
        assert code == socks.NOT_ALLOWED


def test_t07_a_name_that_spells_an_address(cage):
    with OneMore(cage, event="connect", reason="name.suspicious", host="169-254-169-254.nip.test"):
        assert socks.ask(cage, "169-254-169-254.nip.test", 443)[1] == socks.NOT_ALLOWED


def test_a_port_that_no_rule_lists_is_refused_at_once(cage, origin):
    before = len(origin.conns)
    with OneMore(cage, event="connect", reason="port.not_allowed", host="a.test", port=8443, decision="block"):
        wire, code = socks.ask(cage, "a.test", 8443)
        assert code == socks.NOT_ALLOWED
        assert wire.read_to_end() == b""
    assert len(origin.conns) == before


@pytest.mark.parametrize("host", ["evil.test", "a.test.evil.test", "nota.test"])
def test_a_name_that_is_not_allowed_is_refused_inside_tls(cage, origin, host):
    before = len(origin.conns)
    wire, code = socks.ask(cage, host, 443)
    assert code == socks.OK
    cage.start_tls(wire, host)
    answer = wire.exchange("GET", "/", [("Host", host)])
    refused(answer, "host.not_allowed", host=host)
    logged_block(cage, answer, event="connect", host=host, port=443)
    assert len(origin.conns) == before


def test_an_address_that_is_not_allowed_is_refused_inside_tls(cage):
    wire, code = socks.ask(cage, ipaddress.ip_address("198.51.100.7"), 443)
    assert code == socks.NOT_ALLOWED  # documentation range: special
    wire, code = socks.ask(cage, ipaddress.ip_address("8.8.8.8"), 443)
    assert code == socks.OK
    cage.start_tls(wire, "8.8.8.8")
    answer = wire.exchange("GET", "/", [("Host", "8.8.8.8")])
    refused(answer, "host.not_allowed", host="8.8.8.8")
    logged_block(cage, answer)


def test_a_refusal_told_in_plain_http(cage):
    wire, code = socks.ask(cage, "evil.test", 8080)
    assert code == socks.OK
    answer = wire.exchange("GET", "/", [("Host", "evil.test:8080")])
    refused(answer, "host.not_allowed")
    logged_block(cage, answer)


def test_t36_the_cage_itself(start_cage):
    """Its own listeners, also where a rule lists the range."""
    cage = start_cage(policy(), "--socks", "127.0.0.1:0")
    ports = [cage.port, cage.socks_port, cage.admin_port]
    cage.reload(policy({"id": "self", "hosts": ["127.0.0.1"], "ports": ports, "addresses": ["127.0.0.0/8"]}))
    for port in ports:
        wire, code = socks.ask(cage, ipaddress.ip_address("127.0.0.1"), port)
        assert code == socks.OK
        answer = wire.exchange("GET", "/", [("Host", "127.0.0.1:%d" % port)])
        refused(answer, "address.self")
        logged_block(cage, answer)


# ---- layers that disagree

def test_t09_sni_differs(cage, origin):
    before = len(origin.conns)
    wire, _ = socks.ask(cage, "a.test", 443)
    cage.start_tls(wire, "evil.test")
    answer = wire.exchange("GET", "/", [("Host", "a.test")])
    refused(answer, "authority.mismatch")
    logged_block(cage, answer, stage="tls")
    assert len(origin.conns) == before


def test_t09_host_differs(cage, origin):
    before = len(origin.conns)
    wire, _ = socks.ask(cage, "a.test", 443)
    cage.start_tls(wire, "a.test")
    answer = wire.exchange("GET", "/", [("Host", "b.test")])
    refused(answer, "authority.mismatch")
    logged_block(cage, answer, stage="head")
    assert len(origin.conns) == before


def test_t09_no_sni_takes_the_name_of_the_request(cage):
    wire, _ = socks.ask(cage, "a.test", 443)
    cage.start_tls(wire, None)
    assert wire.exchange("GET", "/no-sni", [("Host", "a.test")]).status == 200


@pytest.mark.parametrize("data", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\0\0\0\x10raw bytes here", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
                         ids=["ssh", "raw", "plain_http_on_443"])
def test_t11_bytes_that_are_not_tls_on_443(cage, origin, data):
    before = len(origin.conns)
    with OneMore(cage, reason="protocol.unknown", host="a.test", decision="block"):
        wire, code = socks.ask(cage, "a.test", 443)
        assert code == socks.OK
        rest = wire.send(data).read_until_closed()
        assert rest.startswith(b"HTTP/1.1 403"), rest
    assert len(origin.conns) == before


@pytest.mark.parametrize("inside", [b"CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n", socks.NO_METHOD], ids=["connect", "socks"])
def test_t10_another_proxy_protocol_inside(cage, plain, inside):
    before = len(plain.conns)
    wire, code = socks.ask(cage, "p.test", 8080)
    assert code == socks.OK
    answer = wire.send(inside).read_response()
    refused(answer, "protocol.unknown")
    logged_block(cage, answer)
    assert len(plain.conns) == before


# ---- tunnels

def test_a_tunnel(cage):
    wire, code = socks.ask(cage, "t.test", 22)
    assert code == socks.OK
    assert wire.read_exact(14) == b"SSH-2.0-test\r\n"
    assert wire.send(b"opaque").read_exact(6) == b"opaque"
    wire.end()
    assert wire.read_to_end() == b""
    opened = cage.log.wait(event="connect", host="t.test", reason="tunnel.uninspected")
    assert (opened["decision"], opened["rule"], opened["port"]) == ("allow", "ssh", 22)
    result = cage.log.wait(event="response", conn=opened["conn"], txn=opened["txn"])
    assert (result["bytes_out"], result["bytes_in"]) == (6, 20)


def test_t13_a_tunnel_is_for_its_name_and_port_only(cage, banner):
    before = len(banner.conns)
    with OneMore(cage, event="connect", decision="block", host="t.test", port=23):
        assert socks.ask(cage, "t.test", 23)[1] == socks.NOT_ALLOWED
    with OneMore(cage, decision="block", host="other.test", port=22):
        wire, code = socks.ask(cage, "other.test", 22)
        assert code == socks.OK  # 22 is listed: the refusal comes inside
        refused_bytes = wire.send(b"SSH-2.0-test\r\n").read_until_closed()
        assert b"X-Cage-Reason: host.not_allowed" in refused_bytes
    assert len(banner.conns) == before


def test_a_tunnel_that_leads_nowhere(cage):
    with OneMore(cage, event="connect", decision="error", reason="upstream.unreachable", host="gone.test"):
        wire, code = socks.ask(cage, "gone.test", 22)
        assert code == socks.UNREACHABLE
        assert wire.read_to_end() == b""


def test_an_upstream_that_fails_is_told_inside(start_cage):
    with RawOrigin() as gone:
        pin = gone.pin
    cage = start_cage(policy({"id": "a", "hosts": ["a.test"], "ports": [80]}, pins={"a.test": pin}), "--socks", "127.0.0.1:0")
    wire, code = socks.ask(cage, "a.test", 80)
    assert code == socks.OK
    upstream_failed(wire.exchange("GET", "/", [("Host", "a.test")]), "upstream.unreachable")


# ---- what is not SOCKS5, or not all of it

BROKEN = {
    "socks4": (b"\x04\x01\x01\xbb\x7f\0\0\x01\0", b""), "t11_http": (b"GET http://a.test/ HTTP/1.1\r\n\r\n", b""), "t11_tls": (b"\x16\x03\x01\x02\0", b""),
    "no_method": (b"\x05\x00", b"\x05\xff"), "gssapi_only": (b"\x05\x01\x01", b"\x05\xff"), "bad_password": (b"\x05\x01\x02\x05", b"\x05\x02\x01\x01"),
    "bind": (socks.NO_METHOD + socks.request("a.test", 443, 2), b"\x05\x00\x05\x07\0\x01\0\0\0\0\0\0"),
    "udp": (socks.NO_METHOD + socks.request("a.test", 443, 3), b"\x05\x00\x05\x07\0\x01\0\0\0\0\0\0"),
    "request_of_version_4": (socks.NO_METHOD + b"\x04\x01", b"\x05\x00\x05\x01\0\x01\0\0\0\0\0\0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_socks5(cage, name):
    data, answer = BROKEN[name]
    with OneMore(cage, event="connect", reason="protocol.unknown", decision="block", stage="connect"):
        assert cage.connect_to(cage.socks_port).send(data).read_until_closed() == answer


def test_an_unknown_type_of_address(cage):
    with OneMore(cage, event="connect", reason="target.malformed"):
        wire = cage.connect_to(cage.socks_port).send(socks.NO_METHOD + b"\x05\x01\x00\x02")
        assert wire.read_exact(2) == b"\x05\x00"
        assert socks.read_reply(wire) == socks.BAD_ADDRESS


@pytest.mark.parametrize("sent", [b"\x05", b"\x05\x02\x00", socks.NO_METHOD, socks.NO_METHOD + socks.request("a.test", 443)[:-1]],
                         ids=["version", "half_greeting", "greeting", "half_request"])
def test_a_client_that_leaves_early(cage, sent):
    with OneMore(cage, event="connect", reason="client.gone", decision="error"):
        wire = cage.connect_to(cage.socks_port)
        wire.send(sent).end()
        wire.read_until_closed()


def test_a_client_that_says_nothing_leaves_no_line(cage):
    lines = len(cage.log.find(event="connect"))
    wire = cage.connect_to(cage.socks_port)
    wire.end()
    assert wire.read_until_closed() == b""
    assert socks.ask(cage, "a.test", 443)[1] == socks.OK  # later, and it leaves none either
    assert len(cage.log.find(event="connect")) == lines


# ---- who asks

@pytest.fixture(scope="module")
def guarded(start_module_cage, origin, plain, banner, pki, tmp_path_factory):
    path = tmp_path_factory.mktemp("auth") / "tokens"
    path.write_text("box-one:%s\nbox-two:%s\n" % (TOKEN, TOKEN[::-1]))
    return start_module_cage(rules(origin, plain, banner, pki), "--auth", str(path), "--socks", "127.0.0.1:0", env={"SOCKS_TEST_KEY": KEY})


@pytest.mark.parametrize("box, token", [("box-one", TOKEN), ("box-two", TOKEN[::-1])])
def test_the_password_says_which_sandbox_it_is(guarded, origin, box, token):
    wire = guarded.connect_to(guarded.socks_port).send(b"\x05\x02\x00\x02")
    assert wire.read_exact(2) == b"\x05\x02"
    assert wire.send(socks.password(box, token)).read_exact(2) == b"\x01\x00"
    assert socks.read_reply(wire.send(socks.request("a.test", 443))) == socks.OK
    guarded.start_tls(wire, "a.test")
    assert wire.exchange("GET", "/socks-" + box, [("Host", "a.test")]).status == 200
    request, response = logged_pair(guarded, "/socks-" + box)
    assert request["sandbox"] == response["sandbox"] == box
    assert token.encode() not in b"".join(guarded.log.raw_lines())
    assert token.encode() not in origin.received


def test_no_identity_is_refused(guarded):
    with OneMore(guarded, event="connect", reason="auth.required", decision="block") as one:
        assert guarded.connect_to(guarded.socks_port).send(socks.NO_METHOD).read_until_closed() == b"\x05\xff"
    assert "sandbox" not in one.line


@pytest.mark.parametrize("box, token", [("box-one", "wrong"), ("box-one", TOKEN[::-1]), ("box-three", TOKEN), ("box-one", TOKEN + "x"),
                                        ("", ""), ("box-one:" + TOKEN, ""), ("box-one\0", TOKEN), ("box-one", TOKEN + "\0")])
def test_wrong_credentials_are_refused(guarded, origin, box, token):
    before = len(origin.conns)
    with OneMore(guarded, event="connect", reason="auth.failed", decision="block") as one:
        wire = guarded.connect_to(guarded.socks_port)
        wire.send(b"\x05\x01\x02" + socks.password(box, token) + socks.request("a.test", 443))
        assert wire.read_until_closed() == b"\x05\x02\x01\x01"
    assert "sandbox" not in one.line
    assert len(origin.conns) == before
    assert TOKEN.encode() not in b"".join(guarded.log.raw_lines())


# ---- real clients

def curl(cage, *args):
    return subprocess.run(["curl", "-sS", "--max-time", "20", "--cacert", cage.ca_pem, *args], capture_output=True, text=True, timeout=40,
                          env={"PATH": os.environ["PATH"], "HOME": cage.dir})


def test_curl(cage):
    proxy = "127.0.0.1:%d" % cage.socks_port
    done = curl(cage, "--socks5-hostname", proxy, "https://a.test/curl", "-H", "x-api-key: {{SOCKS_KEY}}")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done
    assert curl(cage, "--socks5-hostname", proxy, "http://p.test/curl-plain").stdout == "ok\n"
    assert '"reason":"host.not_allowed"' in curl(cage, "--socks5-hostname", proxy, "https://evil.test/").stdout
    done = curl(cage, "--socks5-hostname", proxy, "https://a.test:8443/")
    assert done.returncode == 97 and "(2)" in done.stderr, done  # not allowed by the ruleset
    assert logged_pair(cage, "/curl")[0]["injected"] == ["key"]


def test_curl_with_an_address(cage):
    """--socks5 resolves the name itself, so the name is only in the SNI: an address that no rule lists is refused."""
    proxy = "127.0.0.1:%d" % cage.socks_port
    done = curl(cage, "--socks5", proxy, "--resolve", "a.test:443:8.8.8.8", "https://a.test/by-address", "-k")
    assert '"reason":"host.not_allowed"' in done.stdout, done
    cage.log.wait(event="connect", host="8.8.8.8", reason="host.not_allowed")


def test_curl_with_a_password(guarded):
    done = curl(guarded, "--proxy", "socks5h://box-one:%s@127.0.0.1:%d" % (TOKEN, guarded.socks_port), "https://a.test/curl-auth")
    assert done.stdout == "ok\n", done
    assert logged_pair(guarded, "/curl-auth")[0]["sandbox"] == "box-one"
    assert curl(guarded, "--proxy", "socks5h://box-one:wrong@127.0.0.1:%d" % guarded.socks_port, "https://a.test/").returncode == 97


def test_git(start_cage, nginx, pki, tmp_path):
    nginx_rules = policy({"id": "git", "hosts": ["site.test"]}, pins={"site.test": nginx.tls_pin}, trust=[pki.ca_pem])
    cage = start_cage(nginx_rules, "--socks", "127.0.0.1:0")
    bare = os.path.join(nginx.backend.server.git_root, "socks.git")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", bare], check=True, timeout=60)
    proxy = "socks5h://127.0.0.1:%d" % cage.socks_port
    done = subprocess.run(["git", "-c", "http.proxy=" + proxy, "clone", "-q", "https://site.test/git/socks.git", str(tmp_path / "clone")],
                          env={"PATH": os.environ["PATH"], "HOME": cage.dir, "GIT_SSL_CAINFO": cage.ca_pem, "GIT_TERMINAL_PROMPT": "0"},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert (tmp_path / "clone" / ".git").is_dir()
    cage.log.wait(event="request", decision="allow", host="site.test", rule="git")
