"""cage-dns and cage-proxy together: the proxy dials what cage-dns has answered, and a captured connection to an address of the pool
is one to the name that it stands for."""
import os
import signal

import pytest
from cagelib import netns
from cagelib.checks import logged_block, logged_pair, refused
from cagelib.dns import Dns
from cagelib.proxy import child_named, is_alive, policy, wait_until
from cagelib.raw import RawOrigin

POOL = "127.64.0.0/10"


@pytest.fixture
def upstream():
    with Dns({"a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"], "x.wild.test": ["127.0.0.1"]}) as running:
        yield running


@pytest.fixture
def origin():
    with RawOrigin() as running:
        yield running


def option(tmp_path):
    return "--bindings", "unix:%s" % (tmp_path / "bindings")


def rules(origin, upstream, bound=True, **more):
    names = {"id": "names", "hosts": ["a.test", "b.test", "*.wild.test"], "ports": [origin.port], "addresses": ["127.0.0.0/16"]}
    return policy(names, upstream={"resolvers": [upstream.address], "bound": bound}, **more)


@pytest.fixture
def both(start_cage, start_dns, upstream, origin, tmp_path):
    names = start_dns(rules(origin, upstream, dns={"ttl": {"min": "1h", "max": "1h"}}), *option(tmp_path))
    proxy = start_cage(rules(origin, upstream), *option(tmp_path))
    return names, proxy


def fetch(proxy, name, origin, path="/"):
    return proxy.fetch("GET", "http://%s:%d%s" % (name, origin.port, path), [("Connection", "close")])


def test_asked_then_dialled(both, upstream, origin):
    names, proxy = both
    answer = fetch(proxy, "a.test", origin)
    refused(answer, "name.unbound", host="a.test")
    logged_block(proxy, answer)
    assert upstream.asked == [] and not origin.conns
    assert names.dig("a.test").data() == ["127.0.0.1"]
    assert fetch(proxy, "a.test", origin, "/now").status == 200
    assert logged_pair(proxy, "/now")[1]["address"] == "127.0.0.1"
    assert upstream.asked == ["a.test"]
    assert names.dig("a.test").data() == ["127.0.0.1"]  # from the cache: it was told
    refused(fetch(proxy, "b.test", origin), "name.unbound")


def test_each_of_many_answers_is_there_in_time(both, upstream, origin):
    """The client connects as soon as it has its answer."""
    names, proxy = both
    for i in range(40):
        name = "n%d.wild.test" % i
        upstream.answers[name] = ["127.0.0.1"]
        assert names.ask(name).answers == 1
        assert fetch(proxy, name, origin).status == 200, i


def test_a_denied_name_is_not_told(both, upstream, origin):
    names, proxy = both
    assert names.dig("evil.test").data() == ["192.0.2.1"]
    refused(fetch(proxy, "evil.test", origin), "host.not_allowed")


def test_workers_of_both_may_die(both, upstream, origin):
    names, proxy = both
    assert names.dig("a.test").data() == ["127.0.0.1"]
    assert fetch(proxy, "a.test", origin).status == 200
    for cage, kind in ((proxy, "cage-worker"), (names, "cage-dns-worker")):
        cage.expect_deaths = True
        victim = child_named(cage, kind)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda victim=victim: not is_alive(victim), 10, "it lives on")
        wait_until(lambda cage=cage: cage.admin("/readyz").status == 200, 20, "no new worker")
    # a new worker of the proxy is told all; a new worker of cage-dns knows nothing, but the proxy does
    wait_until(lambda: names.dig("b.test").data() == ["127.0.0.1"], 10, "no answer")
    wait_until(lambda: fetch(proxy, "b.test", origin).status == 200, 10, "never told")


def test_synthetic_needs_bindings(start_dns, upstream, origin):
    with pytest.raises(AssertionError, match="dns.mode: synthetic needs --bindings"):
        start_dns(rules(origin, upstream, dns={"mode": "synthetic"}))


# ---- the pool

@pytest.fixture(scope="module")
def namespace():
    with netns.or_skip():
        yield


def test_t14_no_question_of_the_sandbox_leaves(namespace, start_cage, start_dns, origin, tmp_path):
    """The whole way: ask, connect to what was answered, and only then does the proxy resolve the name."""
    with Dns({"a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"]}) as upstream, RawOrigin() as origin:
        synthetic = rules(origin, upstream, dns={"mode": "synthetic", "pool": POOL})
        names = start_dns(synthetic, *option(tmp_path))
        given = {name: names.dig(name).data() for name in ("a.test", "b.test")}
        assert all(len(v) == 1 and v[0].startswith("127.") for v in given.values()), given
        assert given["a.test"] != given["b.test"] and given["a.test"] == names.dig("a.test").data()
        empty = names.dig("a.test", "AAAA")
        assert empty.status == "NOERROR" and empty.records == []
        assert names.dig("evil.test").data() == ["192.0.2.1"]
        assert upstream.asked == []
        line = names.log.wait(event="dns", host="a.test", method="A")
        assert line["decision"] == "allow" and line["address"] == given["a.test"][0], line

        places = [word for v in given.values() for word in ("--transparent", "%s:%d" % (v[0], origin.port))]
        proxy = start_cage(synthetic, *places, *option(tmp_path))
        at = proxy.connect_to(origin.port, given["a.test"][0])
        assert at.exchange("GET", "/whole", [("Host", "a.test:%d" % origin.port)]).status == 200
        assert logged_pair(proxy, "/whole")[0]["host"] == "a.test"
        assert set(upstream.asked) == {"a.test"}
        answer = proxy.connect_to(origin.port, given["b.test"][0]).exchange("GET", "/", [("Host", "a.test:%d" % origin.port)])
        refused(answer, "authority.mismatch")
        logged_block(proxy, answer, host="b.test")
        assert set(upstream.asked) == {"a.test"} and len(origin.requests) == 1


def test_t16_labels_get_no_address_either(start_dns, upstream, origin, tmp_path):
    cage = start_dns(rules(origin, upstream, dns={"mode": "synthetic", "pool": POOL}), *option(tmp_path))
    name = "nb2wy3dpo5xxe3deb4qho2lu2a5.wild.test"
    for kind in ("A", "AAAA"):
        told = cage.dig(name, kind)
        assert "(name.suspicious)" in told.text, told
    for kind in ("A", "AAAA"):
        assert cage.log.wait(event="dns", host=name, decision="block", method=kind)["reason"] == "name.suspicious"
    assert upstream.asked == []


def test_a_worker_that_died_gives_the_same_addresses(start_dns, upstream, origin, tmp_path):
    cage = start_dns(rules(origin, upstream, dns={"mode": "synthetic", "pool": POOL}), *option(tmp_path))
    before = [cage.dig(name).data() for name in ("a.test", "b.test")]
    cage.expect_deaths = True
    victim = child_named(cage, "cage-dns-worker")
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not is_alive(victim), 10, "it lives on")
    wait_until(lambda: cage.admin("/readyz").status == 200, 20, "no new worker")
    assert [cage.dig(name).data() for name in ("a.test", "b.test")] == before
