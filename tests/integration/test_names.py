"""Names in every odd spelling (THREATS T01, T03, T04, T06-T08), from each place where a client can put one: nothing leaves, nothing is
resolved, the client is told, and the log has one line about it."""
import socket
import struct

import pytest
from cagelib.checks import logged_block, refused
from cagelib.dns import Dns
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin

MALFORMED = [
    ("t01_nul", b"a.test\0.evil.test"),
    ("t01_control", b"a\x01.test"),
    ("t01_high_bytes", b"a\xff.test"),
    ("t03_two_dots", b"a.test.."),
    ("t03_empty_label", b"a..test"),
    ("t03_leading_dot", b".a.test"),
    ("t03_brackets_around_a_name", b"[a.test]"),
    ("t03_address_with_two_dots", b"127.0.0.1.."),
    ("t05_userinfo", b"user@a.test"),
    ("t05_backslash", b"a.test\\evil.test"),
    ("t05_percent", b"a%2etest"),
    ("t06_u_label", "b\u00fccher.a.test".encode()),
    ("t06_full_width_dot", "a\uff0etest".encode()),
    ("t06_long_label", b"l" * 64 + b".a.test"),
    ("t06_long_name", b".".join([b"l" * 60] * 5) + b".a.test"),
    ("t07_decimal", b"2130706433"),
    ("t07_octal", b"0177.0.0.1"),
    ("t07_hex", b"0x7f.0.0.1"),
    ("t07_short", b"127.1"),
    ("t07_zone", b"[fe80::1%25eth0]"),
]

# Well-formed, and still not what a rule allows.
NOT_ALLOWED = [
    ("t04_longer_first_label", "nota.test"),
    ("t04_suffix", "a.test.evil.test"),
    ("t04_apex_of_a_wildcard", "wild.test"),
    ("t04_label_without_dot", "xwild.test"),
    ("t06_look_alike", "xn--80ak6aa92e.test"),
    ("t08_denied_inside_an_allowed_wildcard", "secret.wild.test"),
]


@pytest.fixture(scope="module")
def dns():
    with Dns({}) as running:
        yield running


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf("a.test", "x.wild.test")) as running:
        yield running


@pytest.fixture(scope="module")
def cage(start_module_cage, origin, pki, dns):
    rules = [{"id": "a", "hosts": ["a.test"], "ports": [80, 443]}, {"id": "wild", "hosts": ["*.wild.test"]},
             {"id": "no", "action": "deny", "hosts": ["secret.wild.test"]}]
    pins = {"a.test": origin.pin, "x.wild.test": origin.pin}
    return start_module_cage(policy(*rules, pins=pins, trust=[pki.ca_pem], upstream={"resolvers": [dns.address]}))


def assert_nothing_left(origin, dns, before):
    assert len(origin.conns) == before
    assert dns.asked == []


@pytest.mark.parametrize("where", ["connect", "url", "host"])
@pytest.mark.parametrize("name, host", MALFORMED, ids=[m[0] for m in MALFORMED])
def test_malformed(cage, origin, dns, where, name, host):
    head = {"connect": b"CONNECT HOST:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
            "url": b"GET http://HOST/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "host": b"GET http://a.test/ HTTP/1.1\r\nHost: HOST\r\n\r\n"}[where].replace(b"HOST", host)
    before = len(origin.conns)
    answer = cage.connect().send(head).read_response()
    refused(answer, {"target.malformed", "head.malformed"}, status=400)
    logged_block(cage, answer)
    assert_nothing_left(origin, dns, before)


@pytest.mark.parametrize("name, host", NOT_ALLOWED, ids=[n[0] for n in NOT_ALLOWED])
def test_not_allowed(cage, origin, dns, name, host):
    before = len(origin.conns)
    answer = cage.fetch("GET", "https://%s/" % host)
    refused(answer, {"host.not_allowed", "rule.denied"}, host=host)
    logged_block(cage, answer, host=host)
    assert_nothing_left(origin, dns, before)


@pytest.mark.parametrize("spelling", ["A.TEST", "a.test.", "A.tEsT."])
def test_t03_spellings_of_one_name_are_one_name(cage, origin, spelling):
    wire, answer = cage.ask_connect(spelling + ":443")
    assert answer.status == 200
    answer = cage.start_tls(wire, "a.test").exchange("GET", "/one", [("Host", spelling)])
    assert answer.status == 200
    assert origin.requests[-1].header("host") == "a.test"
    line = cage.log.wait(event="request", path="/one")
    assert line["host"] == "a.test"


def client_hello(name):
    """A TLS 1.2 ClientHello whose SNI is exactly those bytes."""
    sni = struct.pack("!HBH", len(name) + 3, 0, len(name)) + name
    extensions = struct.pack("!HH", 0, len(sni)) + sni
    extensions += bytes.fromhex("000a00040002001d") + bytes.fromhex("000d0006000404030401")
    body = b"\x03\x03" + b"r" * 32 + b"\0" + bytes.fromhex("0004c02bc02f") + b"\x01\0" + struct.pack("!H", len(extensions)) + extensions
    handshake = b"\x01" + struct.pack("!I", len(body))[1:] + body
    return b"\x16\x03\x01" + struct.pack("!H", len(handshake)) + handshake


@pytest.mark.parametrize("sni", [b"a.test\0.evil.test", b"a.test..", b"a test", b"\xffa.test", b"127.1"])
def test_t01_sni_that_no_name_can_be(cage, origin, dns, sni):
    def lines():
        return cage.log.find(reason="target.malformed", stage="tls", decision="block")

    before, known = len(origin.conns), len(lines())
    wire, answer = cage.ask_connect("a.test:443")
    assert answer.status == 200
    wire.send(client_hello(sni))
    wire.sock.shutdown(socket.SHUT_WR)
    wire.read_until_closed()
    wait_until(lambda: len(lines()) > known, 10, "no line about this name")
    assert len(lines()) == known + 1
    assert lines()[-1]["host"] == "a.test"
    assert_nothing_left(origin, dns, before)
