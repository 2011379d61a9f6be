"""What a policy that is pushed to cage-gateway can do to it and to other sandboxes, and what the gateway's own policy still can do to those that were."""
import json
import os
import signal
import subprocess
import threading

import pytest
from cagelib.gateway import Gateway
from cagelib.proxy import binary, policy, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import response_bytes
from test_gateway import ONE, TWO, origin, shared  # noqa: F401 (fixtures)


def rules(origin, host="a.test", **more):
    return policy({"id": "web", "hosts": [host], "ports": [80]}, pins={host: origin.pin}, **more)


def extra(n, pattern):
    """Formats of credentials that a policy adds."""
    return {"secrets": {"extra": [{"id": "k%d" % i, "pattern": pattern % i} for i in range(n)]}}


def slow(name, n=1, times=30):
    """A policy that takes its time to compile: as it is, a small part of what a gateway lets it take."""
    return {**policy(inspectors=extra(n, "C%%d(a|b|[c-f]{2,9}){8,%d}x" % times)), "name": name}


def cpu(pid):
    """Seconds that it has computed."""
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


# ---- what it costs others

def test_what_has_not_changed_is_not_compiled_again(tmp_path, pki):
    """Neither the gateway's own policy nor those of others, whoever comes."""
    with Gateway(tmp_path, pki, own=slow("own")) as gateway:
        pid, spent = gateway.proxy_pid(), []
        for n in range(2):
            before = cpu(pid)
            assert gateway.put("box%d" % n, slow("box%d" % n))[0] == 201
            spent.append(cpu(pid) - before)
        before = cpu(pid)
        assert gateway.put("bare")[0] == 201 and gateway.delete("bare") == 204
        assert cpu(pid) - before < min(spent) / 2, spent


@pytest.mark.parametrize("more", ["nothing", "a variable", "a file", "a certificate"])
def test_changes_of_others_cut_nobody_off(tmp_path, pki, more):
    """An exchange under the gateway's own policy, which is in force through all of them."""
    go, asked, got = threading.Event(), threading.Event(), []

    def handler(conn):
        conn.read_request()
        asked.set()
        go.wait(60)
        conn.send(response_bytes(200, b"late\n"))
    (tmp_path / "key").write_text("a-value-of-some-length")
    source = {"a variable": {"env": "API_KEY"}, "a file": {"file": str(tmp_path / "key")}}.get(more)
    own = {} if not source else {"secrets": [{"id": "key", "from": source}]}
    rule = {"id": "web", "hosts": ["a.test"], "ports": [80], **({"secrets": ["key"]} if source else {})}
    with RawOrigin(handler) as server:
        trust = {"trust": [pki.ca_pem]} if more == "a certificate" else {}
        with Gateway(tmp_path / "g", pki, own=policy(rule, pins={"a.test": server.pin}, **trust, **own), env={"API_KEY": "a-value-of-some-length"}) as gateway:
            assert gateway.put(ONE)[0] == 201
            client = threading.Thread(target=lambda: got.append(gateway.fetch(ONE, "http://a.test/").status))
            client.start()
            assert asked.wait(20)
            assert [gateway.put("box%d" % n)[0] for n in range(12)] == [201] * 12
            go.set()
            client.join(30)
            assert got == [200]


@pytest.mark.parametrize("n, pattern, is_good", [
    (64, "CORP%d-[0-9A-F]{32}", True), (65, "CORP%d-[0-9A-F]{32}", False), (64, "CORP%02d-" + "x" * 121, True), (64, "CORP%02d-" + "x" * 122, False)])
def test_how_many_patterns_a_policy_may_bring(shared, n, pattern, is_good):
    status, answer, _ = shared.put(ONE, policy(inspectors=extra(n, pattern)))
    if is_good:
        assert status == 201 and shared.delete(ONE) == 204
        return
    assert status == 422 and "inspectors.secrets.extra: expected" in answer["errors"][0] and "at most" in answer["errors"][0], answer
    assert shared.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": []}


def test_how_long_a_policy_may_take_to_compile(shared):
    """However few patterns it has; and the gateway goes on."""
    status, answer, _ = shared.put(ONE, slow("slow", 40, 60))
    assert status == 422 and "to compile" in answer["errors"][0], answer
    assert shared.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": []} and shared.put(TWO)[0] == 201 and shared.delete(TWO) == 204


# ---- the intake is no place for agents

@pytest.fixture(scope="module", params=["127.0.0.1", "0.0.0.0"])
def reachable(request, tmp_path_factory, pki):
    with Gateway(tmp_path_factory.mktemp("intake"), pki, at=request.param) as gateway:
        yield gateway


def refused_as_self(gateway, answer):
    assert answer.status == 403 and answer.json()["reason"] == "address.self", answer
    wait_until(lambda: [x for x in gateway.lines(ONE)[0] if x.get("reason") == "address.self" and x["decision"] == "block" and x["port"] == gateway.port], 10, "no line")


def lead_to(gateway, host, **rule):
    """A sandbox whose policy allows that host on the intake's port, and what it gets there."""
    pins = rule.pop("pins", {})
    assert gateway.put(ONE, policy({"id": "in", "hosts": [host], "ports": [gateway.port], **rule}, pins=pins))[0] == 201
    answer = gateway.fetch(ONE, "http://%s:%d/v1/healthz" % (host, gateway.port))
    refused_as_self(gateway, answer)
    assert gateway.delete(ONE) == 204


@pytest.mark.parametrize("host, rule", [
    ("127.0.0.1", {"addresses": ["127.0.0.0/8"]}), ("i.test", {"pins": {"i.test": "127.0.0.1"}}), ("localhost", {"addresses": ["127.0.0.0/8", "::1/128"]}),
    ("any.test", {"pins": {"any.test": "0.0.0.0"}}), ("mapped.test", {"pins": {"mapped.test": "::ffff:127.0.0.1"}})])
def test_t36_no_rule_leads_to_the_intake(reachable, host, rule):
    """Whatever address a policy finds for it: as with the listeners of the proxy."""
    lead_to(reachable, host, **rule)


def test_t36_an_intake_on_all_addresses(tmp_path, pki):
    """Any address of this machine is its."""
    with Gateway(tmp_path, pki, at="0.0.0.0") as gateway:
        lead_to(gateway, "127.0.0.2", addresses=["127.0.0.0/8"])
        lead_to(gateway, "i.test", pins={"i.test": "127.9.9.9"})


def test_t36_an_address_in_front_of_the_intake(tmp_path, pki):
    """As a load balancer's, which the operator tells."""
    with RawOrigin(at=("127.0.0.3", 0)) as front, Gateway(tmp_path, pki, proxy=("--never", front.pin)) as gateway:
        assert gateway.put(ONE, policy({"id": "in", "hosts": ["127.0.0.3"], "ports": [front.port], "addresses": ["127.0.0.0/8"]}))[0] == 201
        answer = gateway.fetch(ONE, "http://%s/" % front.pin)
        assert answer.status == 403 and answer.json()["reason"] == "address.self" and not front.conns


def pin_is_refused(gateway, at):
    """As what it is, a policy that is no good: nobody needs to ask again."""
    status, answer, _ = gateway.put(ONE, policy({"id": "in", "hosts": ["i.test"], "ports": [443]}, pins={"i.test": at}))
    assert status == 422 and "i.test is pinned to a listener of cage itself" in answer["errors"][0], answer
    assert str(os.path.dirname(gateway.policy_path)) not in answer["errors"][0] and gateway.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": []}


def test_t36_a_pin_to_the_intake_is_not_taken(reachable):
    pin_is_refused(reachable, "127.0.0.1:%d" % reachable.port)


def test_t36_a_pin_to_what_stands_behind_the_dashes_is_not_taken(tmp_path, pki):
    """What the proxy is told there counts in the check as well."""
    with Gateway(tmp_path, pki, proxy=("--never", "127.0.0.3:4443", "--socks", "127.0.0.4:0")) as gateway:
        pin_is_refused(gateway, "127.0.0.3:4443")
        assert gateway.put(ONE, policy(pins={"i.test": "127.0.0.3:4444"}))[0] == 201


@pytest.mark.parametrize("words, pin, is_good", [
    ((), "127.0.0.1:8080", True), (("--never", "127.0.0.1:4443"), "127.0.0.1:4443", False), (("--never", "0.0.0.0:4443"), "127.0.0.2:4443", False), (("--never", "127.0.0.1:4443"), "127.0.0.1:443", True),
    (("--listen", "127.0.0.1:8080"), "127.0.0.1:8080", False), (("--socks", "0.0.0.0:1080"), "127.0.0.1:1080", False), (("--listen", "127.0.0.1:0"), "127.0.0.1:8080", True)])
def test_pins_that_a_check_looks_at(tmp_path, words, pin, is_good):
    """Those to where its options say that it listens, and to what they say it never connects to; who gives none runs it elsewhere, in another way."""
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps(policy(pins={"i.test": pin})))
    done = subprocess.run([binary(), "--policy", str(path), *words, "--check"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (0 if is_good else 2) and ("i.test is pinned to a listener of cage itself" in done.stderr) != is_good, done


# ---- a narrower policy of the gateway's own

API_KEY = {"id": "key", "from": {"env": "API_KEY"}}


def with_key(*hosts, name="x"):
    return {**policy(*({"id": "r%d" % i, "hosts": [h], "ports": [80], "plaintext": True, "secrets": ["key"]} for i, h in enumerate(hosts)), secrets=[API_KEY]), "name": name}


def reload(gateway):
    start = len(gateway.stderr.lines)
    gateway.process.send_signal(signal.SIGHUP)
    gateway.stderr.wait("policy .*policy.yaml loaded", 20, start)


def shut_by_now(gateway, ident):
    """It is there, and has nothing; its log says by which policy."""
    answer = gateway.fetch(ident, "http://b.test/")
    listed = gateway.ask("GET", "/v1/sandboxes")[1]
    assert "no rule of this service's ceiling covers its hosts" in listed["shut"][ident] and ident in listed["sandboxes"]
    lines = gateway.lines(ident)[0]  # the last one comes a moment later
    return answer.status == 403 and answer.json()["reason"] == "host.not_allowed" and lines and lines[-1]["policy"] == "shut-by-the-gateway"


@pytest.mark.parametrize("how", ["a reload", "the change of another", "a restart"])
def test_what_the_gateway_does_not_let_out_any_more(tmp_path, pki, how):
    """Those who have it are shut, visibly; others stay as they are; another policy opens it again."""
    gateway = Gateway(tmp_path, pki, own=with_key("a.test", "b.test"), env={"API_KEY": "a-value-of-some-length"}).start()
    try:
        assert (gateway.put(ONE, with_key("a.test"))[0], gateway.put(TWO, with_key("b.test"), owner="second")[0], gateway.put("bare")[0]) == (201, 201, 201)
        assert gateway.fetch(TWO, "http://b.test/").json()["reason"] != "host.not_allowed"
        gateway.write_policy(with_key("a.test"))
        if how == "a reload":
            reload(gateway)
        elif how == "a restart":
            assert gateway.stop() == 0
            gateway.start()
        else:
            assert gateway.put("other")[0] == 201
        gateway.stderr.wait("sandbox two: its policy does not lie below .*policy.yaml: .*; nothing is let out for it until it gets another", 10)
        wait_until(lambda: shut_by_now(gateway, TWO), 10, "it is not shut")
        assert set(gateway.ask("GET", "/v1/sandboxes")[1]["shut"]) == {TWO} and gateway.ask("GET", "/v1/sandboxes?owner=first")[1] == {"sandboxes": []}
        assert gateway.fetch(ONE, "http://a.test/").json()["reason"] != "host.not_allowed" and "sandbox one: its policy" not in gateway.stderr.text()
        assert gateway.put(TWO, with_key("b.test"), owner="second")[0] == 422
        assert gateway.put(TWO, with_key("a.test"), owner="second")[0] == 200 and "shut" not in gateway.ask("GET", "/v1/sandboxes")[1]
        assert gateway.fetch(TWO, "http://a.test/").json()["reason"] != "host.not_allowed"
    finally:
        assert gateway.stop() == 0


def test_one_that_is_shut_stays_so(tmp_path, pki):
    """Over a restart, and when the gateway lets more out again: its policy is gone. It can be removed."""
    gateway = Gateway(tmp_path, pki, own=with_key("a.test", "b.test"), env={"API_KEY": "a-value-of-some-length"}).start()
    try:
        assert gateway.put(TWO, with_key("b.test"))[0] == 201
        gateway.write_policy(with_key("a.test"))
        reload(gateway)
        wait_until(lambda: shut_by_now(gateway, TWO), 10, "it is not shut")
        gateway.write_policy(with_key("a.test", "b.test"))
        assert gateway.stop() == 0
        gateway.start()
        assert gateway.fetch(TWO, "http://b.test/").json()["reason"] == "host.not_allowed" and TWO in gateway.ask("GET", "/v1/sandboxes")[1]["shut"]
        assert gateway.delete(TWO) == 204 and gateway.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": []}
        assert not [x for x in os.listdir(os.path.join(gateway.dir, "state", "sandboxes")) if x.startswith(".")]
    finally:
        assert gateway.stop() == 0


def refused_at_the_reload():
    """A check knows of no --bindings, without which the proxy does not take it."""
    return {"version": 1, "name": "x", "upstream": {"bound": True}}


def put_undone(gateway):
    assert gateway.put(TWO, refused_at_the_reload())[0] == 503


def delete_undone(gateway):
    """Somebody stands in its place when the proxy looks, and has no token that is one."""
    proxy, statuses, place = gateway.proxy_pid(), [], os.path.join(gateway.dir, "state", "sandboxes", TWO)
    os.kill(proxy, signal.SIGSTOP)
    leaving = threading.Thread(target=lambda: statuses.append(gateway.delete(TWO)))
    leaving.start()
    wait_until(lambda: TWO not in gateway.ask("GET", "/v1/sandboxes")[1]["sandboxes"], 20, "it does not leave")
    os.mkdir(place)
    with open(os.path.join(place, "token"), "w", encoding="ascii") as f:
        f.write("short")
    os.kill(proxy, signal.SIGCONT)
    leaving.join(60)
    assert statuses == [503]


@pytest.mark.parametrize("undone", [put_undone, delete_undone])
def test_what_is_put_back_is_judged_by_a_narrower_policy(tmp_path, pki, undone):
    """The change that brings it to the gateway is undone: what was before it has no more than others."""
    with Gateway(tmp_path, pki, own=with_key("a.test", "b.test"), env={"API_KEY": "a-value-of-some-length"}) as gateway:
        assert gateway.put(ONE, with_key("a.test"))[0] == 201 and gateway.put(TWO, with_key("b.test"))[0] == 201
        gateway.write_policy(with_key("a.test"))
        undone(gateway)
        assert set(gateway.ask("GET", "/v1/sandboxes")[1].get("shut", ())) == {TWO}
        wait_until(lambda: shut_by_now(gateway, TWO), 10, "it is not shut")
        assert gateway.fetch(ONE, "http://a.test/").json()["reason"] != "host.not_allowed"


def test_what_is_put_back_is_as_it_was_else(tmp_path, pki):
    """Where the gateway's own policy has not changed, nobody is judged again."""
    with Gateway(tmp_path, pki, own=with_key("a.test"), env={"API_KEY": "a-value-of-some-length"}) as gateway:
        assert gateway.put(TWO, with_key("a.test"))[0] == 201
        put_undone(gateway)
        assert "shut" not in gateway.ask("GET", "/v1/sandboxes")[1] and gateway.fetch(TWO, "http://a.test/").json()["reason"] != "host.not_allowed"


@pytest.mark.parametrize("was_there", [True, False])
def test_a_put_that_the_policy_it_brings_does_not_let_be(tmp_path, pki, was_there):
    """It was good by the policy before: it is refused, and what was there stays."""
    with Gateway(tmp_path, pki, own=with_key("a.test", "b.test"), env={"API_KEY": "a-value-of-some-length"}) as gateway:
        if was_there:
            assert gateway.put(TWO, with_key("a.test"))[0] == 201
        gateway.write_policy(with_key("a.test"))
        status, answer, _ = gateway.put(TWO, with_key("b.test"))
        assert status == 422 and "no rule of this service's ceiling covers its hosts" in answer["errors"][0], answer
        assert gateway.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": [TWO] if was_there else []}
        if was_there:
            wait_until(lambda: gateway.fetch(TWO, "http://a.test/").json()["reason"] != "host.not_allowed", 10, "it is not put back")
        else:
            wait_until(lambda: gateway.fetch(TWO, "http://a.test/").status == 407, 10, "it is still there")
        assert gateway.put(TWO, with_key("a.test"))[0] == (200 if was_there else 201)


@pytest.mark.parametrize("then", ["mended", "bad"])
def test_an_own_policy_that_can_not_be_read_behind_the_proxy(tmp_path, pki, then):
    """The proxy has taken it, and the file is another one by then: nobody comes by it, and it is read again."""
    with Gateway(tmp_path, pki, own=with_key("a.test", "b.test"), env={"API_KEY": "a-value-of-some-length"}) as gateway:
        assert gateway.put(TWO, with_key("b.test"))[0] == 201
        proxy, statuses, start = gateway.proxy_pid(), [], len(gateway.stderr.lines)
        os.kill(proxy, signal.SIGSTOP)
        gateway.write_policy(with_key("a.test"))
        coming = threading.Thread(target=lambda: statuses.append(gateway.put(ONE, policy())[0]))
        coming.start()
        wait_until(lambda: ONE in gateway.ask("GET", "/v1/sandboxes")[1]["sandboxes"], 20, "it is not being made")
        gateway.process.send_signal(signal.SIGSTOP)
        os.kill(proxy, signal.SIGCONT)
        gateway.stderr.wait("sandbox one: policy .* loaded", 20, start)
        gateway.write_policy("version: nonsense\n")
        gateway.process.send_signal(signal.SIGCONT)
        gateway.stderr.wait("policy.yaml: the proxy has taken it, and it can't be read now", 20, start)
        if then == "mended":
            gateway.write_policy(with_key("a.test", name="mended"))
        coming.join(60)
        assert statuses == [503] and ONE not in gateway.ask("GET", "/v1/sandboxes")[1]["sandboxes"]
        if then == "bad":
            assert gateway.put(ONE)[0] == 503
            gateway.write_policy(with_key("a.test", name="mended"))
            assert gateway.put(ONE)[0] == 201
        else:
            gateway.process.send_signal(signal.SIGHUP)  # the reload behind it may have come before the file was mended
        wait_until(lambda: TWO in gateway.ask("GET", "/v1/sandboxes")[1].get("shut", ()), 20, "it is not shut")
        wait_until(lambda: shut_by_now(gateway, TWO), 10, "it is not shut")
