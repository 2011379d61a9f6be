"""What a policy that is pushed to cage-gateway can do to it and to other sandboxes, and what the gateway's own policy still can do to those that were."""
import os
import signal
import socket
import threading

import pytest
from cagelib.gateway import INTAKE_TOKEN, Gateway, secret_of
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import response_bytes

ONE, TWO = "one", "two"


@pytest.fixture(scope="module")
def origin():
    with RawOrigin() as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory, pki):
    """For tests that leave nothing behind."""
    with Gateway(tmp_path_factory.mktemp("gateway"), pki) as gateway:
        yield gateway


def rules(origin, host="a.test", **more):
    return policy({"id": "web", "hosts": [host], "ports": [80]}, pins={host: origin.pin}, **more)


def extra(n, pattern):
    """Formats of credentials that a policy adds."""
    return {"secrets": {"extra": [{"id": "k%d" % i, "pattern": pattern % i} for i in range(n)]}}


def slow(name, n=4):
    """A good policy that takes a second or so to compile."""
    return {**policy(inspectors=extra(n, "C%d(a|b|[c-f]{2,9}){8,60}x")), "name": name}


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
