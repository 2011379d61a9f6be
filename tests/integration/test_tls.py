"""TLS on both sides: what a client is shown, what an upstream must prove, and names that disagree."""
import concurrent.futures
import os
import socket
import ssl
import subprocess

import pytest
from cagelib.checks import logged_block, logged_failure, logged_pair, refused, upstream_failed
from cagelib.pki import Pki
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin, server_tls
from cagelib.wire import response_bytes

# Python warns about the old protocol versions that are offered here to be refused.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
HOST = [("Host", "a.test")]
DAY = 24 * 3600


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf("a.test", "*.a.test")) as running:
        yield running


@pytest.fixture(scope="module")
def cage(start_module_cage, origin, pki):
    rules = [{"id": "a", "hosts": ["a.test", "*.a.test"], "ports": [443, 8443]}, {"id": "b", "hosts": ["b.test"]}]
    pins = {"a.test": origin.pin, "x.a.test": origin.pin, "b.test": origin.pin}
    return start_module_cage(policy(*rules, pins=pins, trust=[pki.ca_pem]))


# ---- what an upstream must prove

def old_protocol(leaf):
    tls = server_tls(leaf)
    tls.set_ciphers("ALL:@SECLEVEL=0")
    tls.minimum_version, tls.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    return tls


def weak_key(leaf):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.set_ciphers("DEFAULT:@SECLEVEL=0")
    tls.load_cert_chain(leaf.cert, leaf.key)
    return tls


BAD_SERVERS = {
    "wrong_name": lambda pki, other: server_tls(pki.leaf("b.test")),
    "common_name_only": lambda pki, other: server_tls(pki.leaf(common_name="bad.test")),
    "common_name_beside_another_san": lambda pki, other: server_tls(pki.leaf("b.test", common_name="bad.test")),
    "partial_wildcard": lambda pki, other: server_tls(pki.leaf("b*.test")),
    "wildcard_of_everything": lambda pki, other: server_tls(pki.leaf("*.test.bad.test")),
    "expired": lambda pki, other: server_tls(pki.leaf("bad.test", days=-1)),
    "unknown_ca": lambda pki, other: server_tls(other.leaf("bad.test")),
    "self_signed": lambda pki, other: server_tls(pki.self_signed("bad.test")),
    "ca_as_leaf": lambda pki, other: server_tls(pki.leaf("bad.test", is_ca=True)),
    "weak_key": lambda pki, other: weak_key(pki.leaf("bad.test", key=("rsa:1024",))),
    "tls_1_1": lambda pki, other: old_protocol(pki.leaf("bad.test")),
}


@pytest.mark.parametrize("kind", BAD_SERVERS)
def test_upstream_unverified(start_cage, pki, tmp_path, kind):
    other = Pki(tmp_path / "other", "another CA")
    with RawOrigin(tls=BAD_SERVERS[kind](pki, other)) as bad:
        cage = start_cage(policy({"id": "bad", "hosts": ["bad.test"]}, pins={"bad.test": bad.pin}, trust=[pki.ca_pem]))
        answer = cage.fetch("POST", "https://bad.test/secret", body=b"do not send this")
        upstream_failed(answer, "upstream.unverified")
        logged_failure(cage, answer, "upstream.unverified")
        assert bad.received == b""


def test_an_address_is_verified_as_an_address(start_cage, pki):
    with RawOrigin(leaf=pki.leaf("127.0.0.1")) as right, RawOrigin(leaf=pki.leaf("a.test")) as wrong:
        rule = {"id": "local", "hosts": ["127.0.0.1"], "ports": [right.port, wrong.port], "addresses": ["127.0.0.0/8"]}
        cage = start_cage(policy(rule, trust=[pki.ca_pem]))
        assert cage.fetch("GET", "https://127.0.0.1:%d/" % right.port).status == 200
        upstream_failed(cage.fetch("GET", "https://127.0.0.1:%d/" % wrong.port), "upstream.unverified")


def test_a_whole_label_wildcard_is_good(cage):
    assert cage.fetch("GET", "https://x.a.test/").status == 200


def test_system_trust_does_not_hold_our_test_ca(start_cage, origin):
    cage = start_cage(policy({"id": "a", "hosts": ["a.test"]}, pins={"a.test": origin.pin}))
    upstream_failed(cage.fetch("GET", "https://a.test/"), "upstream.unverified")


# ---- what a client is shown

def peer(cage, host):
    with cage.tunnel(host) as wire:
        return wire.sock.getpeercert(), wire.sock.getpeercert(binary_form=True)


def test_the_minted_leaf(cage):
    told, der = peer(cage, "leaf-one.test")
    assert told["subjectAltName"] == (("DNS", "leaf-one.test"),)
    assert not [v for rdn in told["subject"] for k, v in rdn if k == "commonName"]
    life = ssl.cert_time_to_seconds(told["notAfter"]) - ssl.cert_time_to_seconds(told["notBefore"])
    assert 0 < life <= 7 * DAY
    text = subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-text"], input=der, capture_output=True, timeout=30).stdout
    assert b"prime256v1" in text and b"CA:FALSE" in text
    assert len(told["serialNumber"]) >= 16


def test_serials_are_random(cage):
    serials = {peer(cage, "serial-%d.test" % i)[0]["serialNumber"] for i in range(4)}
    assert len(serials) == 4
    assert len({s[:4] for s in serials}) > 1


def test_one_leaf_for_all_clients_of_a_name(cage):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        leaves = set(pool.map(lambda _: peer(cage, "parallel.test")[1], range(16)))
    assert len(leaves) == 1


def test_the_leaf_does_not_depend_on_the_policy(cage, origin):
    before = len(origin.conns)
    for host in ("a.test", "not-allowed.test"):
        told, _ = peer(cage, host)
        assert told["subjectAltName"] == (("DNS", host),)
    assert len(origin.conns) == before  # and nothing is dialled before a head


def test_ca_files(cage):
    assert os.stat(os.path.join(cage.ca_dir, "ca.key")).st_mode & 0o777 == 0o600
    with open(cage.ca_pem, encoding="ascii") as f:
        ours = f.read().strip()
    with open(os.path.join(cage.ca_dir, "bundle.pem"), encoding="utf-8") as f:
        bundle = f.read()
    assert ours in bundle and bundle.count("BEGIN CERTIFICATE") > 1
    assert "PRIVATE" not in bundle


def test_an_existing_ca_is_used_again(start_cage, tmp_path):
    pems = []
    for _ in range(2):
        cage = start_cage(policy(), directory=tmp_path / "again")
        pems.append(cage.admin("/ca.pem").body)
        assert cage.stop() == 0
        start_cage.forget(cage)
    assert pems[0] == pems[1]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_clients_resume(cage, version):
    tls = cage.client_tls()
    tls.minimum_version = tls.maximum_version = version
    first = cage.tunnel("a.test", tls=tls)
    assert first.exchange("GET", "/", HOST).status == 200
    assert not first.sock.session_reused
    second = cage.tunnel("a.test", tls=tls, session=first.sock.session)
    assert second.exchange("GET", "/", HOST).status == 200
    assert second.sock.session_reused


def test_upstream_connections_resume(start_cage, pki):
    reused = []

    def once(conn):
        reused.append(conn.sock.session_reused)
        conn.read_request()
        conn.send(response_bytes(200, b"ok\n", [("Connection", "close")]))

    with RawOrigin(once, leaf=pki.leaf("a.test")) as origin:
        cage = start_cage(policy({"id": "a", "hosts": ["a.test"]}, pins={"a.test": origin.pin}, trust=[pki.ca_pem]))
        for _ in range(3):
            assert cage.fetch("GET", "https://a.test/").status == 200
    assert reused[0] is False and reused[-1] is True


def test_old_clients_are_refused(cage):
    tls = cage.client_tls(verify=False)
    tls.set_ciphers("ALL:@SECLEVEL=0")
    tls.minimum_version, tls.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, OSError)):
        cage.tunnel("a.test", tls=tls)
    cage.log.wait(event="connect", decision={"block", "error"}, reason="client.tls_failed", host="a.test")


@pytest.mark.parametrize("offer, chosen", [
    (("h2", "http/1.1"), "h2"), (("http/1.1", "h2"), "h2"), (("http/1.1", "x"), "http/1.1"), (("http/1.0",), "http/1.0"),
], ids=lambda x: "-".join(x) if isinstance(x, tuple) else x)
def test_alpn_is_chosen_from_the_offer(cage, offer, chosen):
    wire = cage.tunnel("a.test", tls=cage.client_tls(alpn=offer))
    assert wire.sock.selected_alpn_protocol() == chosen


def test_alpn_http11_is_served(cage):
    wire = cage.tunnel("a.test", tls=cage.client_tls(alpn=("http/1.1",)))
    assert wire.exchange("GET", "/alpn", HOST).status == 200
    logged_pair(cage, "/alpn")


def test_no_alpn_is_http11(cage):
    tls = ssl.create_default_context(cafile=cage.ca_pem)
    assert cage.tunnel("a.test", tls=tls).exchange("GET", "/", HOST).status == 200


def test_a_client_that_speaks_something_else_is_refused(cage, origin):
    before = len(origin.conns)
    with pytest.raises((ssl.SSLError, OSError)):
        cage.tunnel("a.test", tls=cage.client_tls(alpn=("spdy/3", "h3")))
    assert len(origin.conns) == before
    cage.log.wait(reason="client.tls_failed", host="a.test")


# ---- T09: names that disagree

def test_t09_sni_differs_from_connect(cage, origin):
    before = len(origin.conns)
    wire = cage.tunnel("a.test", sni="b.test", tls=cage.client_tls(verify=False))
    answer = wire.exchange("GET", "/", [("Host", "b.test")])
    refused(answer, "authority.mismatch")
    logged_block(cage, answer)
    assert len(origin.conns) == before


def test_t09_no_sni_takes_the_name_of_connect(cage):
    wire = cage.tunnel("a.test", sni=None)
    assert wire.exchange("GET", "/no-sni", HOST).status == 200
    assert logged_pair(cage, "/no-sni")[0]["host"] == "a.test"


@pytest.mark.parametrize("host", ["b.test", "a.test:8443", "a.test:80", "a.test.evil.test", "127.0.0.1", ""])
def test_t09_host_differs_from_connect(cage, origin, host):
    before = len(origin.conns)
    answer = cage.tunnel("a.test").exchange("GET", "/", [("Host", host)])
    refused(answer, {"authority.mismatch", "target.malformed", "head.malformed"}, status=answer.status)
    assert answer.status in (400, 403)
    logged_block(cage, answer)
    assert len(origin.conns) == before


def test_t09_second_request_for_another_host(cage, origin):
    wire = cage.tunnel("a.test")
    assert wire.exchange("GET", "/first", HOST).status == 200
    before = len(origin.requests)
    answer = wire.exchange("GET", "/second", [("Host", "b.test")])
    refused(answer, "authority.mismatch")
    logged_block(cage, answer)
    assert len(origin.requests) == before


@pytest.mark.parametrize("target", ["https://b.test/", "http://a.test/", "https://a.test:8443/"])
def test_t05_absolute_form_inside_tls_that_differs(cage, origin, target):
    before = len(origin.requests)
    answer = cage.tunnel("a.test").exchange("GET", target, HOST)
    refused(answer, {"authority.mismatch", "target.malformed"}, status=answer.status)
    logged_block(cage, answer)
    assert len(origin.requests) == before


def test_t05_absolute_form_and_host_that_differ(cage, origin):
    before = len(origin.requests)
    answer = cage.connect().exchange("GET", "http://b.test/", HOST)
    refused(answer, {"authority.mismatch", "port.not_allowed"})
    assert len(origin.requests) == before


def test_a_client_that_turns_away_after_the_handshake_is_logged(cage):
    """GnuTLS looks at the certificate only when the handshake is over."""
    known = {line["conn"] for line in cage.log.find(reason="client.tls_failed")}
    wire = cage.tunnel("a.test")
    socket.socket(fileno=wire.sock.detach()).close()  # no close_notify
    wait_until(lambda: [x for x in cage.log.find(reason="client.tls_failed", stage="tls", host="a.test") if x["conn"] not in known], 10,
               "no line about it")


def test_a_session_of_one_name_does_not_open_another(cage):
    """A resumed session must not carry the first name's verdict to the second."""
    first = cage.tunnel("a.test")
    assert first.exchange("GET", "/", HOST).status == 200
    second = cage.tunnel("not-allowed.test", tls=first.sock.context, session=first.sock.session)
    refused(second.exchange("GET", "/", [("Host", "not-allowed.test")]), "host.not_allowed")
