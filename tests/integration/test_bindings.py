"""--bindings: the proxy dials what cage-dns has answered, and with dns.mode: synthetic finds the name of a captured connection
by its address."""
import os
import subprocess

import pytest
from cagelib import netns
from cagelib.bindings import Teller
from cagelib.checks import logged_block, logged_pair, refused
from cagelib.dns import Dns
from cagelib.proxy import binary, policy, wait_until
from cagelib.raw import RawOrigin

INSIDE = ["127.0.0.0/16"]
POOL = "127.64.0.0/10"
GIVEN, OTHER, FREE = "127.64.0.9", "127.64.0.10", "127.64.0.11"  # listeners, which stand for names


@pytest.fixture
def origin():
    with RawOrigin() as running:
        yield running


@pytest.fixture
def dns():
    with Dns({"asked.test": ["127.0.0.3"], "never.test": ["127.0.0.1"]}) as running:
        yield running


@pytest.fixture
def teller(tmp_path):
    with Teller(tmp_path) as running:
        yield running


def rules(origin, dns, **upstream):
    names = {"id": "names", "hosts": ["asked.test", "never.test", "*.wild.test"], "ports": [origin.port], "addresses": INSIDE}
    public = {"id": "public", "hosts": ["public.test"], "ports": [origin.port]}
    return policy(names, public, upstream={"resolvers": [dns.address], **upstream})


def url(name, origin, path="/"):
    return "http://%s:%d%s" % (name, origin.port, path)


def test_what_was_answered_is_dialled(start_cage, origin, dns, teller):
    cage = start_cage(rules(origin, dns), *teller.option)
    teller.wait().tell("asked.test", "127.0.0.1")
    assert cage.fetch("GET", url("asked.test", origin, "/told")).status == 200
    assert logged_pair(cage, "/told")[1]["address"] == "127.0.0.1"
    assert dns.asked == []


def test_every_worker_is_told(start_cage, origin, dns, teller):
    cage = start_cage(rules(origin, dns), *teller.option, "--workers", "3")
    teller.wait(3).tell("asked.test", "127.0.0.1")
    for _ in range(12):
        assert cage.fetch("GET", url("asked.test", origin), [("Connection", "close")]).status == 200
    assert dns.asked == []


def test_a_name_that_nobody_asked_for_is_resolved(start_cage, origin, dns, teller):
    cage = start_cage(rules(origin, dns), *teller.option)
    teller.wait()
    assert cage.fetch("GET", url("never.test", origin)).status == 200
    assert set(dns.asked) == {"never.test"}


def test_t18_what_was_answered_is_vetted_all_the_same(start_cage, origin, dns, teller):
    cage = start_cage(rules(origin, dns), *teller.option)
    teller.wait().tell("public.test", "127.0.0.1")
    teller.tell("asked.test", "127.0.0.1", "10.0.0.1")
    answer = cage.fetch("GET", url("public.test", origin))
    refused(answer, "address.private", rule="public")
    logged_block(cage, answer)
    answer = cage.fetch("GET", url("asked.test", origin))
    refused(answer, "address.outside_rule", rule="names")
    logged_block(cage, answer)
    assert not origin.conns and dns.asked == []


def test_t18_bound_refuses_what_was_never_answered(start_cage, origin, dns, teller):
    cage = start_cage(rules(origin, dns, bound=True), *teller.option)
    answer = cage.fetch("GET", url("never.test", origin))
    refused(answer, "name.unbound", host="never.test", rule="names")
    logged_block(cage, answer, host="never.test")
    assert not origin.conns and dns.asked == []
    teller.wait().tell("never.test", "127.0.0.1")
    assert cage.fetch("GET", url("never.test", origin)).status == 200
    assert dns.asked == []


def test_t18_a_connection_is_used_again_only_while_its_address_is_bound(start_cage, origin, dns, teller):
    cage = start_cage(rules(origin, dns, bound=True), *teller.option)
    teller.wait().tell("asked.test", "127.0.0.1")
    for _ in range(2):
        assert cage.fetch("GET", url("asked.test", origin)).status == 200
    assert len(origin.conns) == 1  # it was kept, and used again
    teller.tell("asked.test", "127.0.0.9")
    teller.tell("never.test", "127.0.0.1")
    assert cage.fetch("GET", url("never.test", origin)).status == 200  # so the first was heard too
    seen = len(origin.received)
    answer = cage.fetch("GET", url("asked.test", origin))
    assert answer.status == 502  # nobody listens there
    assert len(origin.received) == seen


def test_t18_a_connection_does_not_outlive_its_binding(start_cage, origin, dns, teller):
    cage = start_cage(rules(origin, dns, bound=True), *teller.option)
    teller.wait().tell("asked.test", "127.0.0.1", life=1)
    assert cage.fetch("GET", url("asked.test", origin)).status == 200
    wait_until(lambda: cage.fetch("GET", url("asked.test", origin)).status == 403, 10, "the binding never ended")
    answer = cage.fetch("GET", url("asked.test", origin))
    refused(answer, "name.unbound", host="asked.test")
    logged_block(cage, answer, host="asked.test")


def test_bound_needs_bindings(start_cage, origin, dns, tmp_path):
    with pytest.raises(AssertionError, match="upstream.bound: needs --bindings"):
        start_cage(rules(origin, dns, bound=True))
    cage = start_cage(rules(origin, dns))
    cage.reload(rules(origin, dns, bound=True), "policy.rejected")


def test_lost_and_found(start_cage, origin, dns, teller):
    """What was told before holds without a connection, and after it comes back all is told again."""
    cage = start_cage(rules(origin, dns, bound=True), *teller.option)
    teller.wait().tell("asked.test", "127.0.0.1")
    assert cage.fetch("GET", url("asked.test", origin)).status == 200
    teller.hang_up()
    assert cage.fetch("GET", url("asked.test", origin), [("Connection", "close")]).status == 200
    teller.tell("never.test", "127.0.0.1")
    teller.wait(2)
    assert cage.fetch("GET", url("never.test", origin)).status == 200
    assert dns.asked == []


@pytest.mark.parametrize("hello", [b"cage-bd\x02", b"HTTP/1.1 200 OK\r\n", b"\0" * 8], ids=["version", "http", "zeros"])
def test_who_speaks_otherwise_is_not_believed(start_cage, origin, dns, tmp_path, hello):
    with Teller(tmp_path, hello) as teller:
        teller.tell("never.test", "127.0.0.1")
        cage = start_cage(rules(origin, dns, bound=True), *teller.option)
        teller.wait(2)  # it is tried again, and said once
        answer = cage.fetch("GET", url("never.test", origin))
        refused(answer, "name.unbound")
        logged_block(cage, answer)
        assert cage.stderr.text().count("does not speak as cage-dns") == 1
        assert not origin.conns


def check(tmp_path, text):
    path = os.path.join(str(tmp_path), "policy.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("version: 1\nname: t\n" + text)
    return subprocess.run([binary(), "--policy", path, "--check"], capture_output=True, text=True, timeout=60, check=False)


def test_the_proxy_asks_nobody_in_the_clear_instead_of_over_tls(tmp_path):
    resolvers = 'resolvers: ["tls://192.0.2.1#dns.test", 192.0.2.2]'
    told = check(tmp_path, "upstream: {%s}\n" % resolvers)
    assert told.returncode == 2 and "policy.yaml:3:24: upstream.resolvers[0]: only cage-dns asks over TLS" in told.stderr
    assert check(tmp_path, "upstream: {%s, bound: true}\n" % resolvers).returncode == 0
    assert check(tmp_path, "upstream: {%s, bound: true}\ndns: {mode: synthetic}\n" % resolvers).returncode == 2


def test_a_socket_of_another_kind_is_wrong_usage():
    told = subprocess.run([binary(), "--policy", "p", "--bindings", "127.0.0.1:1"], capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 2 and "--bindings: expected unix:PATH" in told.stderr


# ---- addresses that stand for names

@pytest.fixture(scope="module")
def namespace():
    with netns.or_skip():
        yield


@pytest.fixture
def synthetic(namespace, start_cage, pki, tmp_path):
    """A proxy with listeners at three addresses of the pool, of which two stand for names."""
    with RawOrigin(leaf=pki.leaf("a.test", "b.test")) as secure, RawOrigin() as plain, Teller(tmp_path) as teller, \
            Dns({"a.test": ["127.0.0.1"], "pool.test": [GIVEN], "near.test": ["127.0.0.1"]}) as dns:
        listed = [{"id": "a", "hosts": ["a.test", "b.test"], "ports": [443, 22]}, {"id": "p", "hosts": ["p.test"], "ports": [80]},
                  {"id": "n", "hosts": ["near.test", "pool.test"], "ports": [plain.port], "addresses": ["127.0.0.0/8"]}]
        pins = {"a.test": secure.pin, "b.test": secure.pin, "p.test": plain.pin}
        places = ["%s:%d" % (address, port) for address in (GIVEN, OTHER, FREE) for port in (443, 80, plain.port)]
        options = [word for place in places for word in ("--transparent", place)]
        cage = start_cage(policy(*listed, pins=pins, trust=[pki.ca_pem], dns={"mode": "synthetic", "pool": POOL},
                                 upstream={"resolvers": [dns.address]}), *options, *teller.option)
        teller.wait().give("a.test", GIVEN)
        teller.give("p.test", OTHER)
        yield cage, secure, plain, dns, teller


def tls(cage, name, address):
    return cage.start_tls(cage.connect_to(443, address), name, cage.client_tls(verify=False))


def test_captured_addresses_that_stand_for_names_need_bindings(start_cage, dns):
    text = policy({"id": "a", "hosts": ["a.test"]}, dns={"mode": "synthetic", "pool": POOL}, upstream={"resolvers": [dns.address]})
    with pytest.raises(AssertionError, match="dns.mode: synthetic with --transparent needs --bindings"):
        start_cage(text, "--transparent", "127.0.0.1:0")


def test_an_address_is_the_name_that_it_stands_for(synthetic):
    cage, secure, plain, _, _ = synthetic
    assert tls(cage, "a.test", GIVEN).exchange("GET", "/sni", [("Host", "a.test")]).status == 200
    assert logged_pair(cage, "/sni")[0]["host"] == "a.test"
    assert tls(cage, None, GIVEN).exchange("GET", "/none", [("Host", "a.test")]).status == 200
    assert logged_pair(cage, "/none")[0]["host"] == "a.test"
    assert cage.connect_to(80, OTHER).exchange("GET", "/plain", [("Host", "p.test")]).status == 200
    assert len(secure.requests) == 2 and len(plain.requests) == 1


def test_t09_sni_and_host_must_agree_with_the_address(synthetic):
    cage, secure, plain, _, _ = synthetic
    answer = tls(cage, "b.test", GIVEN).exchange("GET", "/", [("Host", "b.test")])
    refused(answer, "authority.mismatch", host="a.test")
    logged_block(cage, answer, event="connect", stage="connect", host="a.test", port=443)
    answer = tls(cage, None, GIVEN).exchange("GET", "/", [("Host", "b.test")])
    refused(answer, "authority.mismatch")
    logged_block(cage, answer)
    answer = cage.connect_to(80, GIVEN).exchange("GET", "/", [("Host", "p.test")])
    refused(answer, "authority.mismatch", host="a.test")
    logged_block(cage, answer)
    assert not secure.conns and not plain.conns


def test_t14_an_address_that_stands_for_no_name(synthetic):
    cage, secure, plain, dns, teller = synthetic
    answers = [tls(cage, "a.test", FREE).exchange("GET", "/", [("Host", "a.test")]),
               tls(cage, None, FREE).exchange("GET", "/", [("Host", "a.test")]),
               cage.connect_to(80, FREE).exchange("GET", "/", [("Host", "p.test")])]
    for answer in answers:
        refused(answer, "name.unbound", host=FREE)
        logged_block(cage, answer, host=FREE)
    assert not secure.conns and not plain.conns and dns.asked == []
    teller.give("p.test", FREE)  # it moves there
    assert cage.connect_to(80, FREE).exchange("GET", "/", [("Host", "p.test")]).status == 200
    refused(cage.connect_to(80, OTHER).exchange("GET", "/", [("Host", "p.test")]), "name.unbound")


def test_t36_an_address_of_the_pool_is_never_dialled(synthetic):
    """Not when a resolver says it, though the rule's addresses would let it pass; the proxy resolves by itself."""
    cage, _, plain, dns, teller = synthetic
    teller.give("near.test", GIVEN)
    assert cage.connect_to(plain.port, GIVEN).exchange("GET", "/near", [("Host", "near.test:%d" % plain.port)]).status == 200
    assert set(dns.asked) == {"near.test"}
    teller.give("pool.test", OTHER)
    before = len(plain.conns)
    answer = cage.connect_to(plain.port, OTHER).exchange("GET", "/", [("Host", "pool.test:%d" % plain.port)])
    refused(answer, "address.private", host="pool.test", rule="n")
    logged_block(cage, answer, host="pool.test")
    assert len(plain.conns) == before
