"""cage-gateway: a proxy of many sandboxes whose orchestrator says over TLS which ones, and nobody else does."""
import contextlib
import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import tempfile
import threading

import pytest
from cagelib.gateway import INTAKE_TOKEN, Gateway, secret_of
from cagelib.proxy import is_alive, policy, wait_until
from cagelib.raw import RawOrigin

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
    return policy({"id": "web", "hosts": [host], "ports": [80], **more}, pins={host: origin.pin})


def others(mib):
    line = b'{"event":"request","sandbox":"other","path":"/' + b"x" * 900 + b'"}\n'
    return line * ((mib << 20) // len(line) + 1)


# ---- who may ask

@pytest.mark.parametrize("token", [None, "", "wrong", INTAKE_TOKEN[:-1], INTAKE_TOKEN + "x", secret_of(ONE)])
def test_nothing_without_the_token(shared, token):
    for method, path in (("GET", "/v1/sandboxes"), ("PUT", "/v1/sandboxes/x"), ("DELETE", "/v1/sandboxes/x"), ("GET", "/v1/sandboxes/x/log"), ("GET", "/"), ("GET", "/v1/healthz/x")):
        status, answer, _ = shared.ask(method, path, {"token": secret_of("x")} if method == "PUT" else None, token=token)
        assert status == 401 and "token" in answer["detail"]
    assert shared.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": []}


def test_whether_it_is_there_is_told_to_all(shared):
    assert shared.ask("GET", "/v1/healthz", token=None)[:2] == (200, {"status": "ok"})


def test_plain_http_is_no_way_in(shared):
    with socket.create_connection(("127.0.0.1", shared.port), 10) as plain:
        plain.sendall(b"GET /v1/healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            assert b"HTTP/1.1 200" not in plain.recv(1000)
        except ConnectionResetError:
            pass


def raw(gateway, data, end=False):
    with gateway.tls().wrap_socket(socket.create_connection(("127.0.0.1", gateway.port), 30), server_hostname="127.0.0.1") as wire:
        wire.sendall(data)
        got = b""
        try:
            while True:
                more = wire.recv(65536)
                if not more:
                    return got
                got += more
        except (ssl.SSLError, OSError):
            return got


@pytest.mark.parametrize("data, status", [
    (b"GET / HTTP/1.1\nHost: x\n\n", 400), (b"\x00" * 10, 400), (b"GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 9000 + b"\r\n\r\n", 431),
    (b"PUT /v1/sandboxes/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + INTAKE_TOKEN.encode() + b"\r\nContent-Length: 99999999\r\n\r\n", 413),
    (b"PUT /v1/sandboxes/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + INTAKE_TOKEN.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
     + b"20000\r\n" + b" " * 0x20000 + b"\r\n" + b"70000\r\n" + b" " * 0x70000, 413),
    (b"PUT /v1/sandboxes/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + INTAKE_TOKEN.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400)])
def test_requests_that_are_none(shared, data, status):
    assert raw(shared, data).startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize("body, word", [
    (None, "object"), ("no json", "object"), ([], "object"), ({}, "token"), ({"token": "short"}, "token"), ({"token": "x" * 257}, "token"), ({"token": "a b" * 10}, "token"),
    ({"token": 5}, "object"), ({"token": "t" * 20, "policy": 5}, "object"), ({"token": "t" * 20, "else": "x"}, "object"), ({"token": "t" * 20, "owner": "a/b"}, "owner"), ({"token": "t" * 20, "owner": ".x"}, "owner"),
    ('{"token": "%s", "token": "%s"}' % ("t" * 20, "u" * 20), "object"), ({"token": "t" * 20, "policy": "x" * 70000}, "too long")])
def test_bodies_that_are_no_good(shared, body, word):
    status, answer, _ = shared.ask("PUT", "/v1/sandboxes/x", body)
    assert status == 400 and word in answer["detail"], answer
    assert shared.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": []}


@pytest.mark.parametrize("path", ["/v1/sandboxes/..", "/v1/sandboxes/.aside", "/v1/sandboxes/a%2fb", "/v1/sandboxes/" + "x" * 65, "/v1/sandboxes/", "/v1/sandboxes/a/b", "/v1/sandboxes/a/log/b", "/v2"])
def test_names_that_are_none(shared, path):
    for method in ("PUT", "DELETE", "GET"):
        assert shared.ask(method, path, {"token": "t" * 20} if method == "PUT" else None)[0] == 404


def test_a_client_that_asks_before_it_sends(shared):
    head = b"PUT /v1/sandboxes/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"
    assert raw(shared, head % INTAKE_TOKEN.encode()).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 ")
    assert raw(shared, head % b"wrong").startswith(b"HTTP/1.1 401 ")


def test_connections_are_bounded_and_strangers_keep_nobody_out(shared):
    """64 of them that say nothing: one with the token is answered all the same."""
    idle = [socket.create_connection(("127.0.0.1", shared.port), 10) for _ in range(64)]
    try:
        assert shared.ask("GET", "/v1/sandboxes")[0] == 200
    finally:
        for s in idle:
            s.close()


def test_who_was_answered_counts_until_it_has_gone(shared):
    """Strangers that were told 401 and stay, and answers that nobody takes: there are no more connections than the bound, and no more in them."""
    def opened():
        return len(os.listdir("/proc/%d/fd" % shared.process.pid))
    before, held = opened(), []
    try:
        for field in (b"", b"Authorization: Bearer " + INTAKE_TOKEN.encode() + b"\r\n"):
            for _ in range(100):
                one = shared.tls().wrap_socket(socket.create_connection(("127.0.0.1", shared.port), 10), server_hostname="127.0.0.1", do_handshake_on_connect=False)
                held.append(one)
                with contextlib.suppress(OSError):  # there are too many
                    one.do_handshake()
                    one.sendall(b"GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n%s\r\n" % field)
                    one.recv(12)
            assert opened() <= before + 64 + 1
            if not field:
                assert shared.ask("GET", "/v1/sandboxes")[0] == 200
    finally:
        for s in held:
            s.close()
    wait_until(lambda: opened() <= before, 20, "some are left")
    assert shared.ask("GET", "/v1/sandboxes")[0] == 200


# ---- sandboxes

def test_from_coming_to_going(shared, origin):
    assert shared.fetch(ONE, "http://a.test/").status == 407
    status, answer, _ = shared.put(ONE, rules(origin))
    assert status == 201 and set(answer) == {"id", "env", "log"} and (answer["id"], answer["env"]) == (ONE, {})
    assert shared.fetch(ONE, "http://a.test/").status == 200 and shared.fetch(ONE, "http://b.test/").status == 403
    assert shared.fetch(ONE, "http://a.test/", token="x" * 20).status == 407
    assert shared.put(ONE, rules(origin, "b.test"))[0] == 200
    assert shared.fetch(ONE, "http://b.test/").status == 200 and shared.fetch(ONE, "http://a.test/").status == 403
    assert shared.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": [ONE]}
    assert shared.delete(ONE) == 204 and shared.delete(ONE) == 404
    assert shared.fetch(ONE, "http://b.test/").status == 407 and shared.ask("GET", "/v1/sandboxes/%s/log" % ONE)[0] == 404


def test_another_token(shared, origin):
    shared.put(ONE, rules(origin))
    assert shared.put(ONE, rules(origin), token="another-token-of-it")[0] == 200
    assert shared.fetch(ONE, "http://a.test/").status == 407 and shared.fetch(ONE, "http://a.test/", token="another-token-of-it").status == 200
    assert shared.delete(ONE) == 204


def test_a_list_that_can_not_be_made_is_not_empty(tmp_path, pki):
    with Gateway(tmp_path, pki) as gateway:
        gateway.put(ONE)
        there = os.path.join(gateway.dir, "state", "sandboxes")
        os.rename(there, there + ".away")
        status, answer, _ = gateway.ask("GET", "/v1/sandboxes")
        assert status == 503 and "listed" in answer["detail"]
        os.rename(there + ".away", there)
        assert gateway.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": [ONE]}


def test_owners(shared):
    """Each sees its own, and takes none of another's."""
    assert shared.put(ONE, owner="first")[0] == 201 and shared.put(TWO, owner="second")[0] == 201
    assert shared.put(ONE, owner="second")[0] == 409 and shared.put(ONE, owner="first")[0] == 200
    assert shared.ask("GET", "/v1/sandboxes?owner=first")[1] == {"sandboxes": [ONE]} and shared.ask("GET", "/v1/sandboxes?what=first")[0] == 400
    assert (shared.delete(ONE), shared.delete(ONE, "second"), shared.ask("DELETE", "/v1/sandboxes/one?x=first")[0]) == (409, 409, 400)
    assert shared.ask("GET", "/v1/sandboxes?owner=first")[1] == {"sandboxes": [ONE]}
    assert (shared.delete(ONE, "first"), shared.delete(TWO, "second")) == (204, 204)


def test_an_owner_that_can_not_be_read_is_not_nobody(tmp_path, pki):
    """Who names none does not get what may be somebody's."""
    with Gateway(tmp_path, pki) as gateway:
        gateway.put(ONE, owner="first")
        place = os.path.join(gateway.dir, "state", "sandboxes", ONE, "owner")
        os.rename(place, place + ".away")
        os.symlink(place + ".away", place)
        assert (gateway.put(ONE)[0], gateway.put(ONE, owner="first")[0], gateway.delete(ONE)) == (503, 503, 503)
        os.rename(place + ".away", place)
        assert (gateway.put(ONE)[0], gateway.delete(ONE), gateway.delete(ONE, "first")) == (409, 409, 204)


def test_many_at_once(shared, origin):
    """Changes are made one after the other, and each is answered when it holds."""
    failed = []

    def one(number):
        name = "box%d" % number
        if shared.put(name, rules(origin))[0] != 201 or shared.fetch(name, "http://a.test/").status != 200 or shared.delete(name) != 204:
            failed.append(name)
    threads = [threading.Thread(target=one, args=(n,)) for n in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed and shared.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": []}


def test_who_does_not_wait_any_more_is_not_let_in(tmp_path, pki, origin):
    """A PUT that waits for others, and whose asker is gone, is not made: it is asked again, or nobody wants it. A DELETE is made."""
    with Gateway(tmp_path, pki) as gateway:
        assert gateway.put("gone", rules(origin))[0] == 201
        proxy = gateway.proxy_pid()
        os.kill(proxy, signal.SIGSTOP)
        statuses = []
        first = threading.Thread(target=lambda: statuses.append(gateway.put(ONE, rules(origin))[0]))
        first.start()
        wait_until(lambda: ONE in gateway.ask("GET", "/v1/sandboxes")[1]["sandboxes"], 20, "it is not being made")
        for method, name, body in (("PUT", TWO, json.dumps({"token": secret_of(TWO)})), ("DELETE", "gone", "")):
            head = "%s /v1/sandboxes/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
            with gateway.tls().wrap_socket(socket.create_connection(("127.0.0.1", gateway.port), 30), server_hostname="127.0.0.1") as wire:
                wire.sendall((head % (method, name, INTAKE_TOKEN, len(body), body)).encode())
        assert gateway.ask("GET", "/v1/healthz")[0] == 200  # behind both
        os.kill(proxy, signal.SIGCONT)
        first.join(30)
        assert gateway.put("last")[0] == 201 and statuses == [201]
        assert gateway.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": ["last", ONE]}


# ---- policies

@pytest.mark.parametrize("text, word", [
    ("version: 1\nname: x\nrules:\n- id: a\n  hosts: [a.test]\n  portz: [80]\n", "policy.yaml:6:3: "), ("version: 2\n", "policy.yaml:1:"), ("a: [", "policy.yaml:"),
    ('{"version": 1, "name": "x", "inspectors": {"nothing-of-that-name": {}}}', "policy.yaml:1:"),
    ('{"version": 1, "name": "x", "include": ["/etc/passwd"]}', "may name no file"), ('{"version": 1, "name": "x", "upstream": {"trust": ["/etc/passwd"]}}', "may name no file"),
    ('{"version": 1, "name": "x", "inspectors": {"external": {"command": ["/bin/sh"]}}}', "may name no file"),
    ('{"version": 1, "name": "x", "rules": [{"id": "a", "hosts": ["a.test"], "secrets": ["k"]}], "secrets": [{"id": "k", "from": {"file": "/etc/passwd"}}]}', "may name no file"),
    ('{"version": 1, "name": "x", "rules": [{"id": "a", "hosts": ["a.test"], "secrets": ["k"]}], "secrets": [{"id": "k", "from": {"env": "INTAKE_KEY"}}]}', "secret k"),
    ('{"version": 1, "name": "x", "rules": [{"id": "a", "hosts": ["a.test"], "secrets": ["k"]}], "secrets": [{"id": "k", "from": {"keyvault": "https://v.vault.azure.net/secrets/k"}}]}', "key vault")])
def test_t37_policies_that_are_refused(shared, origin, text, word):
    """With the place of what is wrong; nothing changes, for a sandbox that is there and for one that is not."""
    status, answer, _ = shared.put(TWO, text)
    assert status == 422 and any(word in e for e in answer["errors"]), answer
    assert shared.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": []} and shared.fetch(TWO, "http://a.test/").status == 407
    shared.put(ONE, rules(origin))
    assert shared.put(ONE, text)[0] == 422 and shared.fetch(ONE, "http://a.test/").status == 200
    assert shared.delete(ONE) == 204
    assert str(os.path.dirname(shared.policy_path)) not in json.dumps(answer)


def test_t37_secrets_are_those_of_the_gateway_and_go_nowhere_else(tmp_path, pki):
    """Below the gateway's own policy a secret can be had, as its placeholder; the same secret for another host, or by another name, can't."""
    secret = {"id": "key", "from": {"env": "API_KEY"}}
    rule = {"id": "api", "hosts": ["api.test"], "secrets": ["key"]}
    real = "sk-real-value-of-it"
    with Gateway(tmp_path, pki, own=policy(rule, secrets=[secret]), env={"API_KEY": real, "OTHER_KEY": real + "2"}) as gateway:
        def status(**more):
            return gateway.put(ONE, {"version": 1, "name": "x", "rules": [rule], "secrets": [secret], **more})[:2]
        code, answer = status()
        assert code == 201 and list(answer["env"]) == ["API_KEY"] and answer["env"]["API_KEY"].startswith("cage-ph-"), answer
        assert status(rules=[{**rule, "hosts": ["evil.test"]}])[0] == 422
        assert status(rules=[rule, {"id": "more", "hosts": ["evil.test"]}])[0] == 422
        assert status(secrets=[{"id": "key", "from": {"env": "OTHER_KEY"}}])[0] == 422
        assert status(upstream={"resolve": {"api.test": "127.0.0.1:1"}})[0] == 422
        two = gateway.put(TWO, {"version": 1, "name": "x", "rules": [rule], "secrets": [secret]})[1]
        assert two["env"]["API_KEY"] != answer["env"]["API_KEY"]
        bare = gateway.put("bare")
        assert bare[0] == 201 and bare[1]["env"] == gateway.put("bare")[1]["env"]
        assert real not in gateway.stderr.text() + gateway.stdout()


def test_the_operators_own_reload(tmp_path, pki, origin):
    with Gateway(tmp_path, pki, own=rules(origin)) as gateway:
        gateway.put(ONE)
        assert gateway.fetch(ONE, "http://a.test/").status == 200
        gateway.write_policy(rules(origin, "b.test"))
        start = len(gateway.stderr.lines)
        gateway.process.send_signal(signal.SIGHUP)
        gateway.stderr.wait("policy .* loaded", 20, start)
        wait_until(lambda: gateway.fetch(ONE, "http://b.test/").status == 200, 10, "it does not hold")
        assert gateway.put(TWO)[0] == 201 and gateway.fetch(TWO, "http://b.test/").status == 200


def test_what_the_proxy_does_not_take_is_undone(tmp_path, pki, origin):
    """It reads all anew, and something else is wrong by then: what was before stays, and one that leaves is gone all the same."""
    with Gateway(tmp_path, pki) as gateway:
        gateway.put(ONE, rules(origin))
        gateway.write_policy("version: nonsense\n")
        assert gateway.put(TWO, rules(origin))[0] == 503 and gateway.fetch(TWO, "http://a.test/").status == 407
        assert gateway.put(ONE, rules(origin, "b.test"))[0] == 503 and gateway.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": [ONE]}
        assert gateway.fetch(ONE, "http://a.test/").status == 200 and gateway.fetch(ONE, "http://b.test/").status == 403
        assert gateway.delete(ONE) == 204 and gateway.fetch(ONE, "http://a.test/").status == 407
        gateway.write_policy(policy())
        assert gateway.put(TWO, rules(origin))[0] == 201 and gateway.fetch(TWO, "http://a.test/").status == 200
        assert not [x for x in os.listdir(os.path.join(gateway.dir, "state", "sandboxes")) if x.startswith(".")]


def test_a_policy_that_is_no_good_any_more_is_its_own_trouble(tmp_path, pki, origin):
    """As one whose rule has expired, and that has a test of it: it keeps what it had, and others come, change and go."""
    with Gateway(tmp_path, pki) as gateway:
        gateway.put(ONE, rules(origin))
        with open(os.path.join(gateway.dir, "state", "sandboxes", ONE, "policy.yaml"), "w", encoding="ascii") as f:
            f.write("version: nonsense\n")
        os.mkdir(os.path.join(gateway.dir, "state", "sandboxes", "no id at all"))
        assert gateway.put(TWO, rules(origin))[0] == 201 and gateway.put(TWO, rules(origin, "b.test"))[0] == 200
        assert gateway.fetch(TWO, "http://b.test/").status == 200 and gateway.fetch(ONE, "http://a.test/").status == 200
        assert gateway.put(ONE, rules(origin, "b.test"))[0] == 200 and gateway.fetch(ONE, "http://b.test/").status == 200
        assert (gateway.delete(TWO), gateway.delete(ONE)) == (204, 204)


def test_a_directory_that_the_proxy_can_not_read(tmp_path, pki, origin):
    """Nobody comes, and nobody is told to be gone who is not."""
    with Gateway(tmp_path, pki) as gateway:
        gateway.put(ONE, rules(origin))
        proxy = gateway.proxy_pid()
        before = resource.prlimit(proxy, resource.RLIMIT_NOFILE, (3, resource.prlimit(proxy, resource.RLIMIT_NOFILE)[1]))
        assert gateway.delete(ONE) == 503 and gateway.put(TWO, rules(origin))[0] == 503
        assert gateway.ask("GET", "/v1/sandboxes")[1] == {"sandboxes": [ONE]} and gateway.fetch(ONE, "http://a.test/").status == 200
        resource.prlimit(proxy, resource.RLIMIT_NOFILE, before)
        assert gateway.delete(ONE) == 204 and gateway.fetch(ONE, "http://a.test/").status == 407


# ---- what each has alone

def test_two_sandboxes_have_nothing_of_each_other(tmp_path, pki, origin):
    """Connections to servers, budgets and logs."""
    with Gateway(tmp_path, pki) as gateway, RawOrigin() as other:
        limited = rules(origin, limits={"rate": "3/h"})
        gateway.put(ONE, limited)
        gateway.put(TWO, limited)
        before = len(origin.conns)
        assert [gateway.fetch(ONE, "http://a.test/one").status for _ in range(4)] == [200, 200, 200, 429]
        assert [gateway.fetch(TWO, "http://a.test/two").status for _ in range(2)] == [200, 200]
        assert len(origin.conns) > before and not other.conns

        def paths(name):
            return [x["path"] for x in gateway.lines(name)[0] if x["event"] == "request"]
        wait_until(lambda: len(paths(TWO)) == 2, 10, "lines are missing")
        assert set(paths(ONE)) == {"/one"} and set(paths(TWO)) == {"/two"}
        assert {x.get("sandbox") for x in gateway.lines(ONE)[0]} == {ONE}


# ---- the log

def test_the_log_is_turned_and_told_from_where_one_was(tmp_path, pki, origin):
    """Every line once, over many files; what has fallen out is told to be lost. All of it goes to stdout too."""
    with Gateway(tmp_path, pki, "--log-bytes", "8192", "--log-files", "64") as gateway:
        gateway.put(ONE, rules(origin))
        gateway.put(TWO, rules(origin))
        seen, cursor, files = [], None, os.path.join(gateway.dir, "state", "log")
        for i in range(120):
            gateway.fetch(ONE if i % 3 else TWO, "http://a.test/%d" % i)
            if i % 10 == 0:
                lines, cursor, lost = gateway.lines(ONE, cursor)
                seen += lines
                assert not lost

        def rest():
            nonlocal cursor
            lines, cursor, _ = gateway.lines(ONE, cursor)
            seen.extend(lines)
            return len({x["path"] for x in seen if x["event"] == "request"}) == 80
        wait_until(rest, 10, "lines are missing")
        assert [x["seq"] for x in seen] == sorted({x["seq"] for x in seen}) and {x["sandbox"] for x in seen} == {ONE}
        wait_until(lambda: len(os.listdir(files)) > 2, 10, "it is not turned")
        wait_until(lambda: gateway.stdout().count('"path":"/119"') > 0, 10, "it is not copied")
        numbers = [json.loads(x)["seq"] for x in gateway.stdout().splitlines()]
        assert numbers == list(range(1, len(numbers) + 1))
        assert {json.loads(x).get("sandbox") for x in gateway.stdout().splitlines()} == {ONE, TWO, ".gateway"}


def test_what_has_fallen_out_of_the_log_is_told(tmp_path, pki, origin):
    with Gateway(tmp_path, pki, "--log-bytes", "4096", "--log-files", "1") as gateway:
        gateway.put(ONE, rules(origin))
        _, cursor, lost = gateway.lines(ONE)
        assert not lost
        first = cursor

        def is_lost():
            gateway.fetch(ONE, "http://a.test/")
            return gateway.lines(ONE, first)[2]
        wait_until(is_lost, 30, "nothing ever falls out")
        assert len([x for x in os.listdir(os.path.join(gateway.dir, "state", "log")) if x.startswith("log-")]) == 1
        assert gateway.lines(ONE, "0" * 16 + "-99999")[2] and gateway.ask("GET", "/v1/sandboxes/one/log?from=x")[0] == 400


def test_a_place_in_the_log_of_another_is_none_of_ours(shared, origin):
    """As of a gateway whose place is lost: what stood there behind it is not to be had, which is told. Who asks for the first time has lost nothing."""
    shared.put(ONE, rules(origin))
    shared.fetch(ONE, "http://a.test/")
    wait_until(lambda: shared.lines(ONE)[0], 10, "no line")
    lines, cursor, lost = shared.lines(ONE, "0" * 16 + "-0")
    assert lost and lines and not shared.lines(ONE)[2] and not shared.lines(ONE, cursor)[2]
    assert shared.delete(ONE) == 204


def test_the_lines_of_others_hide_none(tmp_path, pki, origin):
    """More of theirs than one answer looks through, before and between: a PUT says where its own begin, and an answer says that it is not the last."""
    log = tmp_path / "state" / "log" / "decisions.jsonl"
    log.parent.mkdir(parents=True)
    (log.parent / ("log-%020d.jsonl" % 0)).write_bytes(others(20))
    with Gateway(tmp_path, pki) as gateway:
        first = gateway.put(ONE, rules(origin))[1]["log"]
        assert int(first.split("-")[1]) >= 20 << 20
        gateway.fetch(ONE, "http://a.test/1")
        wait_until(lambda: [x for x in gateway.lines(ONE, first)[0] if x.get("path") == "/1"], 20, "it is not found at once")
        with open(log, "ab") as f:
            f.write(others(20))
        gateway.fetch(ONE, "http://a.test/2")
        wait_until(lambda: b'"/2"' in log.read_bytes()[-20000:], 20, "it is not written")
        paths, cursor, more = [], first, True
        for _ in range(10):
            text, fields = gateway.ask("GET", "/v1/sandboxes/one/log?from=" + cursor)[1:]
            cursor, more = fields["Cage-Log-Next"], fields.get("Cage-Log-More")
            paths += [json.loads(x).get("path") for x in text.splitlines()]
            if not more:
                break
        assert not more and [p for p in paths if p] == ["/1", "/2"]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_stdout_has_all_of_the_log_over_ends(tmp_path, pki, origin, end):
    """What was written while nobody copied it is there after the end, or after the next beginning."""
    gateway = Gateway(tmp_path, pki).start()
    gateway.put(ONE, rules(origin))
    proxy = gateway.proxy_pid()
    log = os.path.join(gateway.dir, "state", "log", "decisions.jsonl")
    gateway.process.send_signal(signal.SIGSTOP)
    with open(log, "ab") as f:
        f.write(others(5))
    assert gateway.fetch(ONE, "http://a.test/missed").status == 200
    wait_until(lambda: b'"/missed"' in open(log, "rb").read(), 20, "it is not written")
    gateway.process.send_signal(end)
    gateway.process.send_signal(signal.SIGCONT)
    gateway.process.wait(30)
    if end == signal.SIGKILL:
        wait_until(lambda: not is_alive(proxy), 20, "the proxy lives on")
        with gateway:
            wait_until(lambda: gateway.stdout().count('"other"') == others(5).count(b"\n"), 20, "lines are left out")
    assert gateway.stdout().count('"/missed"') == 1 and gateway.stdout() == open(log, encoding="utf-8").read()


# ---- ends

def test_a_proxy_that_dies_ends_it(tmp_path, pki):
    gateway = Gateway(tmp_path, pki).start()
    os.kill(gateway.proxy_pid(), signal.SIGKILL)
    gateway.stderr.wait("cage-proxy has ended", 20)
    assert gateway.process.wait(20) == 1
    gateway.stop()


def test_a_gateway_that_is_killed_takes_the_proxy_with_it(tmp_path, pki):
    gateway = Gateway(tmp_path, pki).start()
    pid = gateway.proxy_pid()
    gateway.process.kill()
    gateway.process.wait(10)
    wait_until(lambda: not is_alive(pid), 20, "the proxy lives on")


def test_again_in_the_same_place(tmp_path, pki, origin):
    """Sandboxes, cursor and CA are those of before."""
    gateway = Gateway(tmp_path, pki).start()
    gateway.put(ONE, rules(origin))
    assert gateway.fetch(ONE, "http://a.test/first").status == 200
    wait_until(lambda: [x for x in gateway.lines(ONE)[0] if x.get("path") == "/first"], 10, "no line")
    seen, cursor, _ = gateway.lines(ONE)
    assert gateway.stop() == 0
    with gateway:
        assert gateway.fetch(ONE, "http://a.test/second").status == 200
        wait_until(lambda: [x for x in gateway.lines(ONE, cursor)[0] if x.get("path") == "/second"], 10, "no line")
        assert not {x["seq"] for x in seen} & {x["seq"] for x in gateway.lines(ONE, cursor)[0]}


@pytest.mark.parametrize("length, is_good", [(92, True), (93, False)])
def test_how_long_the_path_of_its_state_may_be(pki, length, is_good):
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        gateway = Gateway(os.path.join(short, "x" * (length - len(short) - len("//state"))), pki)
        if is_good:
            with gateway:
                assert gateway.put(ONE)[0] == 201
        else:
            done = subprocess.run(gateway.words, capture_output=True, text=True, timeout=30, check=False)
            assert done.returncode == 2 and "too long" in done.stderr


@pytest.mark.parametrize("without", ["--intake", "--intake-cert", "--intake-token", "--state", "--policy"])
def test_what_it_can_not_do_without(tmp_path, pki, without):
    words = Gateway(tmp_path, pki).words
    at = words.index(without)
    done = subprocess.run(words[:at] + words[at + 2:], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2 and without in done.stderr


@pytest.mark.parametrize("option, value, said", [
    ("--log-bytes", "4095", "expected a number of bytes, 4096 at least"), ("--log-bytes", "x", "expected a number of bytes"), ("--log-files", "0", "expected a number from 1 to 64"),
    ("--log-files", "65", "expected a number from 1 to 64"), ("--log-dir", "", "expected a path of 1 to 255 bytes"), ("--log-dir", "/" + 255 * "x", "expected a path of 1 to 255 bytes"),
    ("--intake", "unix:/x", "expected ADDR:PORT"), ("--intake", "nowhere", "")])
def test_values_that_are_wrong(tmp_path, pki, option, value, said):
    words = Gateway(tmp_path, pki).words
    at = words.index("--")
    done = subprocess.run([*words[:at], option, value, *words[at:]], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2 and done.stderr.startswith("cage-gateway: %s: %s" % (option, said)) and done.stderr.endswith("--help lists all options\n"), done


@pytest.mark.parametrize("word", ["--log", "--log=x", "--policy", "--sandboxes", "--sandbox", "--adm", "--reloads=fd:3"])
def test_what_the_gateway_sets_itself_is_not_for_others(tmp_path, pki, word):
    words = Gateway(tmp_path, pki).words
    done = subprocess.run([*words, word, "x"], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2 and done.stderr.startswith("cage-gateway: %s: the gateway sets it itself for cage-proxy" % word), done


@pytest.mark.parametrize("option, content, said", [
    ("--intake-cert", None, "it can't be read: No such file"), ("--intake-cert", "no pem\n", "no certificate in PEM form: give"),
    ("--intake-key", None, "it can't be read: No such file"), ("--intake-key", "no pem\n", "no private key in PEM form without a password: give the one of "),
    ("--intake-key", "another's", "it is not the key of the first certificate in .*: give")])
def test_a_certificate_and_its_key_that_are_none(tmp_path, pki, option, content, said):
    """Which file, what is wrong with it, and what to do; before anything is started."""
    words = Gateway(tmp_path, pki).words
    path = tmp_path / "it"
    if content:
        path.write_text(open(pki.leaf("other.test").key, encoding="ascii").read() if content == "another's" else content)
    words[words.index(option) + 1] = str(path)
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and re.search("%s %s: %s" % (option, path, said), done.stderr), done.stderr
    assert "cage-proxy" not in done.stderr


def test_a_short_token_is_none(tmp_path, pki):
    gateway = Gateway(tmp_path, pki)
    with open(os.path.join(gateway.dir, "intake-token"), "w", encoding="ascii") as f:
        f.write("short")
    with pytest.raises(AssertionError):
        gateway.start()
    gateway.stderr.wait("expected a token of 32", 20)
    assert gateway.process.wait(20) == 1
