"""Many sandboxes at one proxy (--sandboxes): each with its own token and policy, and nothing of one reaches another."""
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import urllib.parse

import pytest
from cagelib.checks import logged_block, logged_pair, refused
from cagelib.dns import Dns
from cagelib.h2 import H2Client
from cagelib.proxy import binary, children_of, policy, small_binary, wait_until
from cagelib.raw import RawOrigin
from cagelib.socks import password, read_reply, request
from cagelib.websocket import TEXT, Client, Echo, frame, read_frame
from cagelib.wire import Truncated

ONE, TWO, BARE = "one", "two", "bare"  # bare has no policy of its own
TOKENS = {ONE: "1" * 20 + "-of-one", TWO: "2" * 20 + "-of-two", BARE: "3" * 20 + "-of-bare"}
HOST, PLAIN = "shared.test", "plain.test"
VALUE_ONE, VALUE_TWO = "value-of-the-first-0123456789", "value-of-the-second-9876543210"


def basic(box, token=None):
    text = "%s:%s" % (box, TOKENS.get(box, "") if token is None else token)
    return [("Proxy-Authorization", "Basic " + base64.b64encode(text.encode()).decode())]


class Sandboxes:
    """The directory of --sandboxes."""

    def __init__(self, directory):
        self.dir = directory
        self.dir.mkdir()

    def put(self, box, rules=None, token=None):
        """As operators should: made elsewhere, then renamed."""
        made = self.dir / (".new-" + box)
        made.mkdir()
        (made / "token").write_text((TOKENS[box] if token is None else token) + "\n")
        (made / "token").chmod(0o600)
        if rules is not None:
            (made / "policy.yaml").write_text(rules if isinstance(rules, str) else json.dumps(rules))
        made.rename(self.dir / box)

    def set_policy(self, box, rules):
        made = self.dir / box / ".policy.new"
        made.write_text(rules if isinstance(rules, str) else json.dumps(rules))
        made.rename(self.dir / box / "policy.yaml")

    def remove(self, box):
        gone = self.dir / (".gone-" + box)
        (self.dir / box).rename(gone)
        shutil.rmtree(gone)


class As:
    """The proxy as one sandbox sees it; stands in the place of a Cage for clients."""

    def __init__(self, cage, box):
        self.cage, self.fields = cage, basic(box)
        self.client_tls = cage.client_tls

    def tunnel(self, host=HOST, port=443, _sni="", tls=None):
        wire, told = self.cage.ask_connect("%s:%d" % (host, port), self.fields)
        assert told.status == 200, told
        return self.cage.start_tls(wire, host, tls)

    def fetch(self, method, url, fields=(), body=b""):
        parts = urllib.parse.urlsplit(url)
        path = url.split(parts.netloc, 1)[1] or "/"
        fields = [("Host", parts.netloc), *fields]
        if parts.scheme == "http":
            return self.cage.connect().exchange(method, "http://%s%s" % (parts.netloc, path), [*fields, *self.fields], body)
        return self.tunnel(parts.hostname, parts.port or 443).exchange(method, path, fields, body)


class World:
    """One proxy, two servers of the same names, and the three sandboxes."""

    def __init__(self, start, directory, pki, servers, *args, **options):
        self.first, self.second, self.plain, self.pki = *servers, pki
        self.boxes = Sandboxes(directory / "sandboxes")
        self.boxes.put(ONE, self.policy_one())
        self.boxes.put(TWO, self.policy_two())
        self.boxes.put(BARE)
        self.cage = start(self.policy_all(), "--sandboxes", str(self.boxes.dir), "--socks", "127.0.0.1:0", *args,
                          env={"CAGE_ONE": VALUE_ONE, "CAGE_TWO": VALUE_TWO}, **options)
        self.one, self.two, self.bare = (As(self.cage, x) for x in (ONE, TWO, BARE))

    def make(self, name, server, *more, secret=None, **rest):
        rules = [{"id": "web", "hosts": [HOST], "ports": [80, 443], **({"secrets": ["key"]} if secret else {})},
                 {"id": "plain", "hosts": [PLAIN], "ports": [80]}, *more]
        if secret:
            rest["secrets"] = [{"id": "key", "from": {"env": secret}, "in": ["header:x-api-key"], **rest.pop("secret_as", {})}]
        return {**policy(*rules, pins={HOST: server.pin, PLAIN: self.plain.pin, "t.test": self.plain.pin}, trust=[self.pki.ca_pem], **rest),
                "name": name}

    def policy_one(self, **more):
        return self.make("first", self.first, {"id": "only-one", "hosts": ["one.test"]},
                         {"id": "raw", "action": "tunnel", "hosts": ["t.test"], "ports": [2222]}, secret="CAGE_ONE", **more)

    def policy_two(self, **more):
        return self.make("second", self.second, {"id": "only-two", "hosts": ["two.test"]}, secret="CAGE_TWO", **more)

    def policy_all(self):
        return self.make("for-all", self.first)

    def reload(self, said):
        """Signals, and waits until it has said that, on stderr."""
        start = len(self.cage.stderr.lines)
        self.cage.signal(signal.SIGHUP)
        self.cage.stderr.wait(said, 20, start)
        self.settle()

    def settle(self):
        """Until all workers have the last change."""
        wait_until(lambda: self.cage.metric("cage_workers_behind") == 0, 10, "they don't take it")

    def placeholder(self, box):
        """As the sandbox is told it."""
        out = subprocess.run([binary(), "--policy", self.cage.policy_path, "--sandboxes", str(self.boxes.dir), "--sandbox", box,
                              "--ca-dir", self.cage.ca_dir, "--print-env"], capture_output=True, text=True, timeout=20, check=True)
        return out.stdout.strip().split("=", 1)[1]


@pytest.fixture(scope="module")
def servers(pki):
    names = (HOST, "one.test", "two.test")
    with RawOrigin(leaf=pki.leaf(*names)) as first, RawOrigin(leaf=pki.leaf(*names)) as second, RawOrigin() as plain:
        yield first, second, plain


@pytest.fixture(scope="module")
def world(start_module_cage, tmp_path_factory, pki, servers):
    return World(start_module_cage, tmp_path_factory.mktemp("many"), pki, servers)


@pytest.fixture
def own(start_cage, tmp_path_factory, pki, servers):
    """A world that a test may change; two workers, so that what holds in one holds in the other."""
    return World(start_cage, tmp_path_factory.mktemp("own"), pki, servers, "--workers", "2")


def assert_no_token(world):
    """In no line of the log, nor on stderr, nor at a server, nor in the metrics."""
    seen = [b"".join(world.cage.log.raw_lines()), world.cage.stderr.text().encode(), world.cage.admin("/metrics").body]
    seen += [bytes(x.received) for x in (world.first, world.second, world.plain)]
    for token in TOKENS.values():
        pair = base64.b64encode(token.encode())[:-4]
        assert not any(token.encode() in x or pair in x for x in seen)
    for server in (world.first, world.second, world.plain):
        assert not any(r.has("proxy-authorization") for r in server.requests)


# ---- whose policy holds

def test_each_has_its_own_policy(world):
    """The same name leads each of them to the server that its policy says, with one leaf in the cache."""
    for me, server, path in ((world.one, world.first, "/of-one"), (world.two, world.second, "/of-two"), (world.one, world.first, "/again")):
        assert me.fetch("GET", "https://%s%s" % (HOST, path)).status == 200
        assert server.requests[-1].target == path
    names = {}
    for box, path in ((ONE, "/of-one"), (TWO, "/of-two")):
        for line in logged_pair(world.cage, path):
            assert line["sandbox"] == box
            names[box] = (line["policy"], line["policy_sha"], line["gen"])
    assert [names[x][0] for x in (ONE, TWO)] == ["first", "second"]
    assert names[ONE][1] != names[TWO][1] and names[ONE][2] != names[TWO][2]
    loaded = {x["sandbox"]: (x["policy"], x["policy_sha"], x["gen"]) for x in world.cage.log.find(event="policy", reason="policy.loaded")}
    assert {**loaded, **names} == loaded, "the log has told which policy is whose"


def test_what_one_may_the_other_may_not(world):
    for me, host, box in ((world.two, "one.test", TWO), (world.one, "two.test", ONE), (world.bare, "one.test", BARE)):
        answer = me.fetch("GET", "https://%s/" % host)
        refused(answer, "host.not_allowed", host=host)
        logged_block(world.cage, answer, sandbox=box)


def test_who_has_none_gets_that_of_all(world):
    assert world.bare.fetch("GET", "https://%s/bare" % HOST).status == 200
    for line in logged_pair(world.cage, "/bare"):
        assert (line["sandbox"], line["policy"]) == (BARE, "for-all")


# ---- who is who

WRONG = {"none": ([], "auth.required"), "another's": (basic(ONE, TOKENS[TWO]), "auth.failed"), "unknown": (basic("three", TOKENS[ONE]), "auth.failed"),
         "a byte more": (basic(ONE, TOKENS[ONE] + "x"), "auth.failed"), "a byte less": (basic(ONE, TOKENS[ONE][:-1]), "auth.failed"),
         "empty": (basic(ONE, ""), "auth.failed"), "nothing at all": (basic("", ""), "auth.failed"), "no base64": ([("Proxy-Authorization", "Basic !!")], "auth.failed"),
         "very long": (basic("x" * 400, "y" * 400), "auth.failed"), "bearer": ([("Proxy-Authorization", "Bearer " + TOKENS[ONE])], "auth.failed"),
         "of the seat for all": (basic("default", ""), "auth.failed")}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_credentials(world, name):
    fields, reason = WRONG[name]
    before = [len(x.conns) for x in (world.first, world.second, world.plain)]
    plain = world.cage.connect().exchange("GET", "http://%s/" % PLAIN, [("Host", PLAIN), *fields])
    for answer in (world.cage.ask_connect(HOST + ":443", fields)[1], plain):
        refused(answer, reason, status=407)
        assert answer.header("proxy-authenticate").startswith("Basic ")
        assert "sandbox" not in logged_block(world.cage, answer)
    assert before == [len(x.conns) for x in (world.first, world.second, world.plain)]
    assert_no_token(world)


def test_two_in_turn_on_one_connection(world):
    """Each request says anew who it is from, and one that does not is nobody's."""
    wire = world.cage.connect()
    for box, policy_name in ((ONE, "first"), (TWO, "second"), (BARE, "for-all"), (ONE, "first")):
        path = "/turn-%s-%d" % (box, len(world.plain.requests))
        assert wire.exchange("GET", "http://%s%s" % (PLAIN, path), [("Host", PLAIN), *basic(box)]).status == 200
        for line in logged_pair(world.cage, path):
            assert (line["sandbox"], line["policy"]) == (box, policy_name)
    answer = wire.exchange("GET", "http://%s/nobody" % PLAIN, [("Host", PLAIN)])
    refused(answer, "auth.required", status=407)
    assert "sandbox" not in logged_block(world.cage, answer, policy="for-all")


def test_what_is_malformed_after_another_is_nobodys(world):
    wire = world.cage.connect()
    assert wire.exchange("GET", "http://%s/first" % PLAIN, [("Host", PLAIN), *basic(ONE)]).status == 200
    wire.send(b"GET http://%s/ HTTP/1.1\r\nBad Name: x\r\n\r\n" % PLAIN.encode())
    answer = wire.read_response("GET")
    assert "sandbox" not in world.cage.log.of(answer)


def test_another_name_inside_a_connect_changes_nothing(world):
    wire = world.one.tunnel()
    for fields in (basic(TWO), basic(TWO, "wrong"), basic(ONE)):
        path = "/inside-%d" % len(world.first.requests)
        assert wire.exchange("GET", path, [("Host", HOST), *fields]).status == 200
        assert world.first.requests[-1].target == path
        assert logged_pair(world.cage, path)[0]["sandbox"] == ONE
    assert_no_token(world)


def test_http2_inside(world):
    for me, box, server in ((world.one, ONE, world.first), (world.two, TWO, world.second)):
        client = H2Client(me, HOST)
        path = "/h2-" + box
        got = client.fetch("GET", path, [("proxy-authorization", basic(BARE)[0][1])])
        assert got.status == 200 and server.requests[-1].target == path
        assert {x["sandbox"] for x in logged_pair(world.cage, path)} == {box}
        client.wire.close()
    assert_no_token(world)


def socks(world, box, token=None, host=HOST, port=443):
    wire = world.cage.connect_to(world.cage.socks_port)
    wire.send(b"\x05\x01\x02")
    assert wire.read_exact(2) == b"\x05\x02"
    wire.send(password(box, TOKENS[box] if token is None else token))
    if wire.read_exact(2) != b"\x01\x00":
        return None
    assert read_reply(wire.send(request(host, port))) == 0
    return world.cage.start_tls(wire, host)


def test_socks(world):
    for box, server in ((ONE, world.first), (TWO, world.second)):
        wire = socks(world, box)
        for n in range(2):
            path = "/socks-%s-%d" % (box, n)
            assert wire.exchange("GET", path, [("Host", HOST)]).status == 200
            assert server.requests[-1].target == path
            assert {x["sandbox"] for x in logged_pair(world.cage, path)} == {box}
    seen = len(world.cage.log.find(event="connect", reason="auth.failed"))
    assert socks(world, ONE, TOKENS[TWO]) is None
    wait_until(lambda: len(world.cage.log.find(event="connect", reason="auth.failed")) > seen, 10, "it is not in the log")
    assert_no_token(world)


# ---- what they share, and what not

def test_connections_are_not_shared(world):
    """Neither of those with one policy nor of those with several; each reuses its own."""
    before = len(world.plain.requests)
    for box in (ONE, BARE, TWO, ONE, BARE, TWO):
        assert As(world.cage, box).fetch("GET", "http://%s/pool-%s" % (PLAIN, box)).status == 200
    asked = world.plain.requests[before:]
    used = [{r.target for r in c.requests if r in asked} for c in world.plain.conns]
    assert sorted(map(sorted, filter(None, used))) == [["/pool-" + x] for x in (BARE, ONE, TWO)]


def test_trust_is_each_ones_own(own):
    """That one trusts a server, and has a connection with it that rests, is nothing to another."""
    own.boxes.set_policy(TWO, {**own.make("second", own.first), "upstream": {"trust": ["system"], "resolve": {HOST: own.first.pin}}})
    own.reload("sandbox two: policy .* loaded")
    assert own.one.fetch("GET", "https://%s/trusted" % HOST).status == 200
    answer = own.two.fetch("GET", "https://%s/untrusted" % HOST)
    assert answer.json()["reason"] == "upstream.unverified"
    assert own.one.fetch("GET", "https://%s/trusted-still" % HOST).status == 200


def test_what_one_has_looked_up_is_not_anothers(own):
    """Each asks the resolvers of its own policy, also for a name that the other has asked for just now."""
    with RawOrigin() as here, Dns({"looked.test": ["127.0.0.1"]}) as first, Dns({}) as second:
        for box, dns in ((ONE, first), (TWO, second)):
            rule = {"id": "looked", "hosts": ["looked.test"], "ports": [here.port], "addresses": ["127.0.0.0/8"]}
            own.boxes.set_policy(box, policy(rule, upstream={"resolvers": [dns.address]}))
        own.reload("sandbox two: policy .* loaded")
        url = "http://looked.test:%d/" % here.port
        assert own.one.fetch("GET", url).status == 200
        assert own.two.fetch("GET", url).json()["reason"] == "name.unresolved"
        assert own.one.fetch("GET", url).status == 200
        assert "looked.test" in str(first.asked) and "looked.test" in str(second.asked)
        own.cage.hang_up()


def test_rates_are_counted_for_each(own):
    limited = {"id": "slow", "hosts": ["slow.test"], "ports": [80], "limits": {"rate": "1/h", "burst": 2}}
    pins = {"slow.test": own.plain.pin}
    for box in (ONE, TWO):
        own.boxes.set_policy(box, {**policy(limited, pins=pins), "name": "slow"})
    own.reload("sandbox two: policy .* loaded")

    def ask(me):
        return me.fetch("GET", "http://slow.test/").status

    assert [ask(own.one) for _ in range(3)] == [200, 200, 429]
    assert [ask(own.two) for _ in range(3)] == [200, 200, 429]
    own.boxes.set_policy(ONE, {**policy(limited, {"id": "more", "hosts": ["more.test"]}, pins=pins), "name": "slow"})
    own.reload("sandbox one: policy .* loaded")
    assert ask(own.one) == 429, "what was counted stays counted"
    own.boxes.remove(ONE)
    own.reload("sandbox one is gone")
    own.boxes.put(ONE, {**policy(limited, pins=pins), "name": "slow"})
    own.reload("sandbox one: policy .* loaded")
    assert ask(own.one) == 429, "also for one that comes back"


def test_budgets_are_counted_for_each(own):
    limited = {"id": "small", "hosts": ["small.test"], "ports": [80], "methods": ["POST"], "limits": {"out": "1KiB/h"}}
    for box in (ONE, TWO):
        own.boxes.set_policy(box, {**policy(limited, pins={"small.test": own.plain.pin}), "name": "small"})
    own.reload("sandbox two: policy .* loaded")
    for me in (own.one, own.two):
        assert me.fetch("POST", "http://small.test/", body=b"x" * 600).status == 200
        assert me.fetch("POST", "http://small.test/", body=b"x" * 600).json()["reason"] == "limit.budget"


# ---- secrets

def test_placeholders_differ(world):
    one, two = world.placeholder(ONE), world.placeholder(TWO)
    assert one != two and one.startswith("cage-ph-") and two.startswith("cage-ph-")


def test_each_gets_its_own_value(world):
    for me, box, server, value, other in ((world.one, ONE, world.first, VALUE_ONE, VALUE_TWO), (world.two, TWO, world.second, VALUE_TWO, VALUE_ONE)):
        path = "/key-" + box
        assert me.fetch("GET", "https://%s%s" % (HOST, path), [("X-Api-Key", world.placeholder(box))]).status == 200
        assert server.requests[-1].header("x-api-key") == value
        assert other.encode() not in bytes(server.received)
        assert logged_pair(world.cage, path)[0]["injected"] == ["key"]


def test_the_placeholder_of_another_is_nothing(world):
    before = len(world.second.requests)
    answer = world.two.fetch("GET", "https://%s/stolen" % HOST, [("X-Api-Key", world.placeholder(ONE))])
    refused(answer, "secret.misplaced")
    logged_block(world.cage, answer, sandbox=TWO, policy="second")
    assert len(world.second.requests) == before
    # Where there are no secrets it is a text like any other: it is sent as it stands.
    assert world.bare.fetch("GET", "https://%s/just-text" % HOST, [("X-Api-Key", world.placeholder(ONE))]).status == 200
    assert world.first.requests[-1].header("x-api-key") == world.placeholder(ONE)


def test_a_fixed_placeholder_of_another_is_nothing(own):
    own.boxes.set_policy(ONE, own.policy_one(secret_as={"placeholder": "{{KEY_OF_ONE}}"}))
    own.reload("sandbox one: policy .* loaded")
    assert own.two.fetch("GET", "https://%s/theirs" % HOST, [("X-Api-Key", "{{KEY_OF_ONE}}")]).status == 200
    assert own.second.requests[-1].header("x-api-key") == "{{KEY_OF_ONE}}"
    assert own.one.fetch("GET", "https://%s/mine" % HOST, [("X-Api-Key", "{{KEY_OF_ONE}}")]).status == 200
    assert own.first.requests[-1].header("x-api-key") == VALUE_ONE


def test_two_that_name_the_same_source(own):
    """Both get it, by placeholders of their own."""
    own.boxes.set_policy(TWO, own.make("second", own.second, secret="CAGE_ONE"))
    own.boxes.set_policy(BARE, own.make("third", own.first, secret="CAGE_ONE"))
    own.reload("sandbox two: policy .* loaded")
    for me, box, server in ((own.one, ONE, own.first), (own.two, TWO, own.second), (own.bare, BARE, own.first)):
        assert me.fetch("GET", "https://%s/same" % HOST, [("X-Api-Key", own.placeholder(box))]).status == 200
        assert server.requests[-1].header("x-api-key") == VALUE_ONE
    assert len({own.placeholder(x) for x in (ONE, TWO, BARE)}) == 3


def test_a_file_that_is_rotated_for_one(own, tmp_path):
    """Each has a file of its own; a new value in one is put in there alone, and taken out for both."""
    files = {box: tmp_path / box for box in (ONE, TWO)}
    for box, server in ((ONE, own.first), (TWO, own.second)):
        files[box].write_text("old-value-of-" + box)
        rules = own.make("files", server, secret="CAGE_ONE")
        rules["secrets"][0]["from"] = {"file": str(files[box])}
        own.boxes.set_policy(box, rules)
    own.reload("sandbox two: policy .* loaded")
    (tmp_path / "new").write_text("new-value-of-one")
    (tmp_path / "new").rename(files[ONE])
    own.cage.stderr.wait("has a new value", 10)
    for me, box, server, value in ((own.one, ONE, own.first, "new-value-of-one"), (own.two, TWO, own.second, "old-value-of-two")):
        assert me.fetch("GET", "https://%s/rotated" % HOST, [("X-Api-Key", own.placeholder(box))]).status == 200
        assert server.requests[-1].header("x-api-key") == value
    for value in ("new-value-of-one", "old-value-of-one"):
        refused(own.two.fetch("GET", "https://%s/leak" % HOST, [("X-Note", value)]), "secret.leaked")


def test_the_value_of_another_does_not_leave(world):
    """Also not by one who should not know it; and no line has it."""
    answer = world.two.fetch("GET", "https://%s/leak" % HOST, [("X-Note", VALUE_ONE)])
    refused(answer, "secret.leaked")
    assert VALUE_ONE.encode() not in b"".join(world.cage.log.raw_lines())


def test_responses_are_cleaned_of_all_values(start_cage, tmp_path_factory, pki, servers):
    body = ("%s and %s" % (VALUE_ONE, VALUE_TWO)).encode()

    def tell(conn):
        while True:
            conn.read_request()
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with RawOrigin(tell, leaf=pki.leaf(HOST)) as teller:
        w = World(start_cage, tmp_path_factory.mktemp("many"), pki, (teller, teller, servers[2]))
        got = {box: As(w.cage, box).fetch("GET", "https://%s/" % HOST).body.decode() for box in (ONE, TWO)}
        assert got[ONE] == "%s and cage-redacted" % w.placeholder(ONE)
        assert got[TWO] == "cage-redacted and %s" % w.placeholder(TWO)


# ---- coming, changing, going

def test_a_new_one_comes(own):
    refused(own.cage.ask_connect(HOST + ":443", basic("new", "n" * 20))[1], "auth.failed", status=407)
    own.boxes.put("new", {**own.make("newcomer", own.second)}, "n" * 20)
    before = own.cage.log.find(event="policy")
    resting = own.one.tunnel()
    assert resting.exchange("GET", "/before", [("Host", HOST)]).status == 200
    own.reload("sandbox new: policy .* loaded")
    assert own.cage.ask_connect(HOST + ":443", basic("new", "n" * 20))[1].status == 200
    assert resting.exchange("GET", "/after", [("Host", HOST)]).status == 200
    assert logged_pair(own.cage, "/before")[0]["gen"] == logged_pair(own.cage, "/after")[0]["gen"], "what has not changed is not loaded again"
    new = own.cage.log.find(event="policy")[len(before):]
    assert sorted((x["sandbox"], x["policy"]) for x in new) == [("new", "newcomer")], "nor is the policy for all"
    assert own.cage.metric("cage_sandboxes") == 4


def everything(own, me, box):
    """What a sandbox can have open, by kind: its connection, and for those with something under way, what the log has of it."""
    tunnel, told = own.cage.ask_connect("t.test:2222", me.fields)
    assert told.status == 200
    ws = Client(me.tunnel("ws.test"), "ws.test").opened().echo(TEXT, b"hello")
    busy = me.tunnel("h.test")
    busy.send(b"GET /busy-%s HTTP/1.1\r\nHost: h.test\r\n\r\n" % box.encode())
    h2 = H2Client(me, "h.test")
    h2.start("GET", "/h2-" + box)
    over_socks, resting = socks(own, box), me.tunnel()
    for wire in (over_socks, resting):
        assert wire.exchange("GET", "/rests", [("Host", HOST)]).status == 200
    for path in ("/busy-", "/h2-"):
        own.cage.log.wait(event="request", path=path + box)
    return {"tunnel": tunnel, "ws": ws.wire, "busy": busy, "h2": h2.wire, "socks": over_socks, "rests": resting}


def test_one_that_goes_is_ended(own, pki):
    """Everything that it has, and nothing of others."""
    with Echo(leaf=pki.leaf("ws.test")) as echo, RawOrigin(lambda c: c.read_to_end()) as silent, \
            RawOrigin(lambda c: c.read_to_end(), leaf=pki.leaf("h.test")) as never:
        pins = {HOST: own.first.pin, "ws.test": echo.pin, "t.test": silent.pin, "h.test": never.pin}
        rules = policy({"id": "web", "hosts": [HOST, "ws.test", "h.test"]}, {"id": "raw", "action": "tunnel", "hosts": ["t.test"], "ports": [2222]},
                       pins=pins, trust=[pki.ca_pem])
        for box in (ONE, TWO):
            own.boxes.set_policy(box, rules)
        own.reload("sandbox two: policy .* loaded")
        has = {box: everything(own, As(own.cage, box), box) for box in (ONE, TWO)}
        own.boxes.remove(ONE)
        own.reload("sandbox one is gone")
        for wire in has[ONE].values():
            wire.sock.settimeout(10)
            wire.read_until_closed()
        for path in ("/busy-one", "/h2-one"):
            assert logged_pair(own.cage, path)[1]["reason"] == "policy.changed"
        wait_until(lambda: len({x["conn"] for x in own.cage.log.find(sandbox=ONE, reason="policy.changed")}) == len(has[ONE]), 10, "some are not logged")
        refused(own.cage.ask_connect(HOST + ":443", basic(ONE))[1], "auth.failed", status=407)
        assert not own.cage.log.find(sandbox=TWO, reason="policy.changed")
        has[TWO]["ws"].send(frame(TEXT, b"still here", mask=b"abcd"))
        assert read_frame(has[TWO]["ws"])[1] == b"still here"
        assert has[TWO]["rests"].exchange("GET", "/still", [("Host", HOST)]).status == 200
        assert own.cage.metric("cage_sandboxes") == 2
        own.cage.hang_up()


def test_a_bad_policy_stays_with_its_owner(own):
    own.boxes.set_policy(ONE, "version: 1\nname: broken\nrules: [{id: x, hosts: [bad host]}]\n")
    own.boxes.put("new", "nonsense: [", "n" * 20)
    own.boxes.set_policy(TWO, {**own.make("second-again", own.second)})
    own.reload("sandbox two: policy .* loaded")
    said = own.cage.stderr.text()
    assert re.search(r"one/policy.yaml:3:\d+: ", said) and "sandbox one: policy %s/one/policy.yaml rejected; what it had stays in force" % own.boxes.dir in said
    assert "sandbox new: policy %s/new/policy.yaml rejected; it stays out" % own.boxes.dir in said
    line = own.cage.log.wait(event="policy", reason="policy.rejected")
    assert (line["sandbox"], line["policy"]) == (ONE, "first")
    assert own.one.fetch("GET", "https://%s/as-before" % HOST).status == 200
    assert logged_pair(own.cage, "/as-before")[0]["policy"] == "first"
    assert own.two.fetch("GET", "https://%s/changed" % HOST).status == 200
    assert logged_pair(own.cage, "/changed")[0]["policy"] == "second-again"
    refused(own.cage.ask_connect(HOST + ":443", basic("new", "n" * 20))[1], "auth.failed", status=407)


def test_a_bad_one_at_the_start_keeps_nobody_out(start_cage, tmp_path, servers, pki):
    boxes = Sandboxes(tmp_path / "boxes")
    boxes.put(ONE, "nonsense: [")
    boxes.put(TWO)
    boxes.put("short", token="short")
    rules = policy({"id": "p", "hosts": [PLAIN], "ports": [80]}, pins={PLAIN: servers[2].pin})
    cage = start_cage(rules, "--sandboxes", str(boxes.dir))
    assert As(cage, TWO).fetch("GET", "http://%s/" % PLAIN).status == 200
    refused(As(cage, ONE).fetch("GET", "http://%s/" % PLAIN), "auth.failed", status=407)
    assert "sandbox short: token: the token must have at least 16 characters; it stays out" in cage.stderr.text()


def test_a_new_token(own):
    """The old one and what came in with it end."""
    wire = own.one.tunnel()
    assert wire.exchange("GET", "/old-token", [("Host", HOST)]).status == 200
    (own.boxes.dir / ONE / "token").write_text("t" * 30)
    own.reload("policy .* is unchanged")
    refused(own.cage.ask_connect(HOST + ":443", basic(ONE))[1], "auth.failed", status=407)
    assert own.cage.ask_connect(HOST + ":443", basic(ONE, "t" * 30))[1].status == 200
    with pytest.raises((Truncated, OSError)):
        wire.exchange("GET", "/too-late", [("Host", HOST)])
    assert not any(r.target == "/too-late" for r in own.first.requests)


def test_a_token_that_is_no_good_changes_nothing(own):
    wire = own.one.tunnel()
    (own.boxes.dir / ONE / "token").write_text("short")
    own.reload("sandbox one: token: the token must have at least 16 characters; what it had stays in force")
    assert wire.exchange("GET", "/stays", [("Host", HOST)]).status == 200
    assert own.one.fetch("GET", "https://%s/stays-too" % HOST).status == 200


def test_no_token_is_no_sandbox(own):
    (own.boxes.dir / ONE / "token").unlink()
    own.reload("sandbox one is gone")
    refused(own.cage.ask_connect(HOST + ":443", basic(ONE))[1], "auth.failed", status=407)
    assert own.two.fetch("GET", "https://%s/stays" % HOST).status == 200


def test_who_has_left_leaves_a_seat_to_another(own):
    """All at once: the connection of one who has left is not that of who came."""
    wire = own.one.tunnel()
    assert wire.exchange("GET", "/mine", [("Host", HOST)]).status == 200
    own.boxes.remove(ONE)
    own.boxes.put("new", own.make("newcomer", own.second), "n" * 20)
    own.reload("sandbox new: policy .* loaded")
    with pytest.raises((Truncated, OSError)):
        wire.exchange("GET", "/not-mine", [("Host", HOST)])
    wire, answer = own.cage.ask_connect(HOST + ":443", basic("new", "n" * 20))
    assert answer.status == 200
    assert own.cage.start_tls(wire, HOST).exchange("GET", "/new", [("Host", HOST)]).status == 200
    assert {(x["sandbox"], x["policy"]) for x in logged_pair(own.cage, "/new")} == {("new", "newcomer")}
    assert not own.cage.log.find(path="/not-mine")


def test_a_hundred(start_cage, tmp_path, servers):
    """Each gets in as itself, also after all of them were changed at once."""
    boxes = Sandboxes(tmp_path / "boxes")
    rules = policy({"id": "p", "hosts": [PLAIN], "ports": [80]}, pins={PLAIN: servers[2].pin})
    names = ["box-%d" % n for n in range(100)]
    for name in names:
        boxes.put(name, {**rules, "name": name}, "token-of-%s-%s" % (name, "x" * 16))
    cage = start_cage(rules, "--sandboxes", str(boxes.dir), "--workers", "2")
    for turn in ("", ".again"):
        for name in names:
            fields = [("Host", PLAIN), *basic(name, "token-of-%s-%s" % (name, "x" * 16))]
            path = "/%s%s" % (name, turn)
            assert cage.connect().exchange("GET", "http://%s%s" % (PLAIN, path), fields).status == 200
            boxes.set_policy(name, {**rules, "name": name + ".again"})
        cage.signal(signal.SIGHUP)
        wait_until(lambda: cage.metric("cage_policy_generation") > 200 and not cage.metric("cage_workers_behind"), 20, "it takes too long")
    wait_until(lambda: cage.log.find(event="request", path="/box-99.again"), 10, "the last line is not written")
    seen = {(x["path"], x["sandbox"], x["policy"]) for x in cage.log.find(event="request")}
    assert seen == {("/%s%s" % (n, t), n, n + t) for n in names for t in ("", ".again")}
    assert cage.metric("cage_sandboxes") == 100


def test_a_policy_of_ones_own_comes_and_goes(own):
    own.boxes.set_policy(BARE, own.make("own-now", own.second))
    own.reload("sandbox bare: policy .* loaded")
    assert own.bare.fetch("GET", "https://%s/own" % HOST).status == 200
    assert logged_pair(own.cage, "/own")[0]["policy"] == "own-now"
    (own.boxes.dir / BARE / "policy.yaml").unlink()
    own.reload("policy .* is unchanged")
    wait_until(lambda: own.bare.fetch("GET", "https://%s/back" % HOST).status == 200, 5, "it fails")
    assert logged_pair(own.cage, "/back")[0]["policy"] == "for-all"


def test_the_directory_is_gone(own):
    hidden = own.boxes.dir.with_name("hidden")
    own.boxes.dir.rename(hidden)
    own.reload("--sandboxes .*: No such file")
    assert own.one.fetch("GET", "https://%s/still" % HOST).status == 200
    hidden.rename(own.boxes.dir)


def test_more_reloads_than_slots(own):
    """A websocket that outlives them is ended; the sandbox goes on."""
    for n in range(20):
        own.boxes.set_policy(ONE, own.make("turn-%d" % n, own.first if n % 2 else own.second))
        own.reload("sandbox one: policy .* loaded")
        assert own.one.fetch("GET", "https://%s/turn-%d" % (HOST, n)).status == 200
        assert logged_pair(own.cage, "/turn-%d" % n)[0]["policy"] == "turn-%d" % n
        assert own.two.fetch("GET", "https://%s/two-%d" % (HOST, n)).status == 200
    assert len({x["gen"] for x in own.cage.log.find(event="request", sandbox=TWO)}) == 1


def test_what_rests_is_let_go_and_comes_back(start_cage, tmp_path_factory, pki, servers):
    w = World(start_cage, tmp_path_factory.mktemp("rest"), pki, servers, program=small_binary())
    for n in range(2):
        for me, box, server, value in ((w.one, ONE, w.first, VALUE_ONE), (w.two, TWO, w.second, VALUE_TWO)):
            assert me.fetch("GET", "https://%s/rest-%d" % (HOST, n), [("X-Api-Key", w.placeholder(box))]).status == 200
            assert server.requests[-1].header("x-api-key") == value
        wait_until(lambda: w.cage.metric("cage_policies_ready") == 3, 10, "they are not in use")
        w.cage.hang_up()
        wait_until(lambda: w.cage.metric("cage_policies_ready") == 1, 20, "they stay")
    w.boxes.set_policy(ONE, w.policy_two())
    w.reload("sandbox one: policy .* loaded")
    assert w.one.fetch("GET", "https://%s/other" % HOST).status == 200
    assert w.second.requests[-1].target == "/other"


def test_a_worker_that_died_knows_all_of_them(own):
    own.boxes.put("new", own.make("newcomer", own.second), "n" * 20)
    own.reload("sandbox new: policy .* loaded")
    own.cage.expect_deaths = True
    for pid in children_of(own.cage.pid):
        with open("/proc/%d/comm" % pid, encoding="ascii") as f:
            if f.read().strip() == "cage-worker":
                os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(re.findall(r"the worker .* was killed", own.cage.stderr.text())) == 2, 10, "they live")
    own.settle()
    assert own.cage.ask_connect(HOST + ":443", basic("new", "n" * 20))[1].status == 200
    assert own.two.fetch("GET", "https://%s/after-death" % HOST).status == 200
    assert logged_pair(own.cage, "/after-death")[0]["policy"] == "second"
    own.cage.children = children_of(own.cage.pid)


# ---- clients as they are

def curl(world, box, *args, proxy=None):
    url = proxy or "http://%s:%s@127.0.0.1:%d" % (box, TOKENS[box], world.cage.port)
    out = subprocess.run(["curl", "-sS", "--max-time", "20", "--cacert", world.cage.ca_pem, "--proxy", url, *args],
                         capture_output=True, text=True, timeout=30, check=False)
    return out


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl(world, version):
    for box, server in ((ONE, world.first), (TWO, world.second)):
        path = "/curl-%s%s" % (box, version)
        got = curl(world, box, version, "https://%s%s" % (HOST, path))
        assert got.returncode == 0, got.stderr
        assert server.requests[-1].target == path
        assert {x["sandbox"] for x in logged_pair(world.cage, path)} == {box}
    assert_no_token(world)


def test_curl_over_socks(world):
    for box, server in ((ONE, world.first), (TWO, world.second)):
        url = "socks5h://%s:%s@127.0.0.1:%d" % (box, TOKENS[box], world.cage.socks_port)
        got = curl(world, box, "https://%s/curl-socks" % HOST, proxy=url)
        assert got.returncode == 0, got.stderr
        assert server.requests[-1].target == "/curl-socks"


def test_python(world):
    """With nothing but the variables that a sandbox has."""
    code = "import os, sys, urllib.request; sys.stdout.write(str(urllib.request.urlopen(sys.argv[1], timeout=20).status))"
    for box, server in ((ONE, world.first), (TWO, world.second)):
        proxy = "http://%s:%s@127.0.0.1:%d" % (box, TOKENS[box], world.cage.port)
        env = {**world.cage.env(), "https_proxy": proxy, "HTTPS_PROXY": proxy}
        got = subprocess.run(["/usr/bin/python3", "-c", code, "https://%s/python" % HOST], env=env, capture_output=True, text=True,
                             timeout=40, check=False)
        assert got.stdout == "200", got.stderr
        assert server.requests[-1].target == "/python"
    assert_no_token(world)


# ---- the command line

def run(*args):
    return subprocess.run([binary(), *map(str, args)], capture_output=True, text=True, timeout=20, check=False)


def test_check(tmp_path):
    boxes = Sandboxes(tmp_path / "boxes")
    main = tmp_path / "policy.yaml"
    main.write_text(json.dumps(policy({"id": "a", "hosts": ["a.test"]})))
    boxes.put(ONE, policy({"id": "b", "hosts": ["b.test"]}))
    boxes.put(BARE)
    got = run("--check", "--policy", main, "--sandboxes", boxes.dir)
    assert got.returncode == 0, got.stderr
    assert got.stdout.splitlines() == ['%s: policy "test" is good: 1 rule' % x for x in (main, boxes.dir / ONE / "policy.yaml")]
    boxes.put(TWO, "nonsense: [")
    boxes.put("short", token="short")
    (boxes.dir / "empty").mkdir()
    got = run("--check", "--policy", main, "--sandboxes", boxes.dir)
    assert got.returncode == 2
    assert "two/policy.yaml:" in got.stderr
    assert "sandbox short: token: the token must have at least 16 characters" in got.stderr
    assert "sandbox empty: token: No such file or directory" in got.stderr
    assert TOKENS[TWO] not in got.stderr + got.stdout


@pytest.mark.parametrize("args, said", [(("--auth", "/dev/null"), "not with --auth"), (("--transparent", "127.0.0.1:0"), "a captured client")])
def test_usage(tmp_path, args, said):
    got = run("--policy", "p", "--sandboxes", tmp_path, *args)
    assert got.returncode == 2 and said in got.stderr


def test_no_directory_no_start(tmp_path):
    (tmp_path / "policy.yaml").write_text(json.dumps(policy({"id": "a", "hosts": ["a.test"]})))
    got = run("--policy", tmp_path / "policy.yaml", "--sandboxes", tmp_path / "absent", "--ca-dir", tmp_path / "ca", "--listen", "127.0.0.1:0",
              "--admin", "off", "--log", tmp_path / "log")
    assert got.returncode == 2 and "absent: No such file or directory" in got.stderr
