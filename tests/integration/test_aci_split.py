"""cage-aci with the topology split: against the stand-in for Azure, and a real gateway with a real proxy."""
import base64
import http.server
import json
import os
import random
import re
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest
from cagelib.aci import IMAGES, Aci, images, small
from cagelib.arm import GROUP, SUBSCRIPTION, Arm, Script
from cagelib.cage_run import command_line
from cagelib.gateway import INTAKE_TOKEN, SUBNET, Gateway
from cagelib.proxy import binary, is_alive, policy, wait_until
from cagelib.service import Service
from cagelib.wire import Wire
from test_gateway import origin, shared  # noqa: F401 (fixtures)

LINES = [(0.01 * i, "line %d" % i) for i in range(20)]


def split(arm, directory, gateway, *options, env=None, **more):
    return Aci(arm, directory, *gateway.aci_words(), *options, env={**gateway.aci_env(), **(env or {})}, **more)


def ids(gateway):
    return gateway.ask("GET", "/v1/sandboxes")[1]["sandboxes"]


def container(body, name):
    return next(c["properties"] for c in body["properties"]["containers"] if c["name"] == name)


def variables(body):
    return {v["name"]: v for v in container(body, "agent")["environmentVariables"]}


def as_agent(gateway, body, url):
    """A request as the agent of that group would make it; its relay is left out."""
    user = re.match(r"http://([^@]+)@127\.0\.0\.1:8080$", variables(body)["HTTP_PROXY"]["secureValue"])[1]
    who = base64.b64encode(user.encode()).decode()
    with Wire(socket.create_connection((gateway.host, gateway.proxy_port), 10)) as wire:
        return wire.exchange("GET", url, [("Host", "a.test"), ("Proxy-Authorization", "Basic " + who), ("Connection", "close")]).status


def web(origin):
    return policy({"id": "web", "hosts": ["a.test"], "ports": [80]}, pins={"a.test": origin.pin})


def test_a_command_from_beginning_to_end(tmp_path, shared, origin):
    """The identity is there before the group and not after it; the agent's decisions are in the log of the run, all of them and no others."""
    shared.put("somebody-else", web(origin))
    asked, environ = [], []

    def script(body):
        with open("/proc/%d/environ" % aci.process.pid, "rb") as f:
            environ.append(f.read())
        asked.append(as_agent(shared, body, "http://a.test/yes"))
        asked.append(as_agent(shared, body, "http://b.test/no"))
        assert shared.fetch("somebody-else", "http://a.test/other").status == 200
        return Script(LINES, 0.3, 7)
    with Arm(script=script) as arm, split(arm, tmp_path, shared, rules=web(origin)) as aci:
        out, _, how = aci.run("sh", "-c", "exit 7")
        assert (how, asked) == ("exit 7", [200, 403]) and out.count(b"\n") == 20, aci.text()
        assert aci.end() == 0 and not arm.groups
        body = arm.gone[0].body
    assert b"CAGE_INTAKE_TOKEN=" in environ[0] and shared.aci_env()["CAGE_INTAKE_TOKEN"].encode() not in environ[0]
    assert shared.delete("somebody-else") == 204 and ids(shared) == []
    assert as_agent(shared, body, "http://a.test/yes") == 407
    lines = [json.loads(x) for x in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert {x["sandbox"] for x in lines} == {"box"} and {x["path"] for x in lines if x["event"] == "request"} == {"/yes", "/no"}


def test_all_of_the_log_on_a_busy_gateway(tmp_path, pki, origin):
    """Others have written more, before and between, than one answer looks through; the run is short."""
    line = b'{"event":"request","sandbox":"other","path":"/' + b"x" * 900 + b'"}\n'
    others, log = line * ((40 << 20) // len(line)), tmp_path / "gateway" / "state" / "log" / "decisions.jsonl"
    log.parent.mkdir(parents=True)
    (log.parent / ("log-%020d.jsonl" % 0)).write_bytes(others)

    def script(body):
        assert as_agent(gateway, body, "http://a.test/first") == 200
        with open(log, "ab") as f:
            f.write(others)
        assert as_agent(gateway, body, "http://a.test/last") == 200
        return Script(LINES, 0.1)
    with Gateway(tmp_path / "gateway", pki, "--log-bytes", "999999999") as gateway, Arm(script=script) as arm, split(arm, tmp_path / "aci", gateway, rules=web(origin)) as aci:
        assert aci.run("true")[2] == "exit 0" and aci.end() == 0, aci.text()
    lines = [json.loads(x) for x in (tmp_path / "aci" / "log.jsonl").read_text().splitlines()]
    assert {x["sandbox"] for x in lines} == {"box"} and [x["path"] for x in lines if x["event"] == "request"] == ["/first", "/last"]


class Intake(http.server.ThreadingHTTPServer):
    """A gateway's intake that answers as answer(method, path), or answer(method, path, body), says: (status, fields, text)."""

    def __init__(self, pki, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, fields, text = answer(self.command, self.path, *([body] if answer.__code__.co_argcount > 2 else []))
                self.send_response(status)
                for name, value in {**fields, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())
            do_PUT = do_DELETE = do_GET

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        leaf, context = pki.leaf("127.0.0.1"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(leaf.cert, leaf.key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.words = ["--topology", "split", "--gateway", "127.0.0.1:1", "--intake", "https://127.0.0.1:%d" % self.server_port, "--intake-ca", pki.ca_pem, "--subnet", SUBNET]

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


LINE = '{"schema":"cage.log/1","sandbox":"box"}\n'
FIRST, NEXT = "0123456789abcdef-7", "0123456789abcdef-42"


def by_its_log(told):
    """Of an Intake that takes the sandbox and lets it go: what it tells of the log."""
    def answer(method, path):
        if method == "PUT":
            return 201, {}, json.dumps({"id": "box", "env": {}, "log": FIRST})
        return (204, {}, "") if method == "DELETE" else told(path)
    return answer


@pytest.mark.parametrize("trouble", ["no cursor", "full"])
def test_the_cursor_moves_with_what_is_written_alone(tmp_path, pki, trouble):
    """An answer that has none does not lead back to the beginning; what could not be written is asked for again, LIMIT_ACI_LAST_LOOKS times at the end, and then
    the run is no good one."""
    asked = []

    @by_its_log
    def answer(path):
        asked.append(path.partition("from=")[2])
        return (200, {"Cage-Log-Next": NEXT}, LINE) if len(asked) == 1 or trouble == "full" else (200, {}, "")
    words = {"run": ("--log", "/dev/full")} if trouble == "full" else {}
    with Intake(pki, answer) as intake, Arm(script=lambda body: Script(LINES, 0.5)) as arm, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env(), **words) as aci:
        assert aci.run("true")[2] == "exit 0"
        before = len(asked)
        assert aci.end() == 1, aci.text()
    assert len(asked) > 2 and asked[0] == FIRST and set(asked[1:]) == {FIRST if trouble == "full" else NEXT} and 5 <= len(asked) - before <= 7
    assert aci.text().count("can't be written" if trouble == "full" else "does not say where its log goes on") >= 5, aci.text()
    assert aci.text().count("the last lines of the decision log are lost, if there were any: they can't be kept") == 1
    assert trouble == "full" or (tmp_path / "log.jsonl").read_text() == LINE


def test_lines_are_written_as_a_whole_or_not_at_all(tmp_path, pki):
    """A disk that is full in the midst of a line: nothing of it is left, and when there is room again each line is there once."""
    lines, asked = "".join('{"schema":"cage.log/1","seq":%d,"sandbox":"box","path":"%s"}\n' % (i, "x" * 1000) for i in range(3)), []

    @by_its_log
    def answer(path):
        asked.append(path.partition("from=")[2])
        return 200, {"Cage-Log-Next": NEXT}, lines if asked[-1] == FIRST else ""
    log = tmp_path / "log.jsonl"
    with Intake(pki, answer) as intake, Arm(script=lambda body: Script(LINES, 1000)) as arm, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env()) as aci:
        hard = resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE, (1500, hard))
        aci.send(b"R", 1, b"\0true\0")
        for times in (1, 2):
            wait_until(lambda: aci.text().count("can't be written") >= times, 30, "it is not said")
            wait_until(lambda: log.stat().st_size == 0, 10, "a part of a line is left")
        assert set(asked) == {FIRST}
        resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_until(lambda: NEXT in asked, 30, "they are not written")
        aci.end()
    assert log.read_text() == lines and set(asked[asked.index(NEXT):]) == {NEXT}


@pytest.mark.parametrize("name, value", [("LD_PRELOAD", "/x.so"), ("HTTP_PROXY", "http://10.0.0.9"), ("", "cage-ph-0"), ("API_KEY=B", "cage-ph-0"), ("api_key", "cage-ph-0"),
                                         ("API_KEY", "a\nb"), ("API_KEY", ""), ("API_KEY", 5), ("API_KEY", "x" * 10000)])
def test_variables_that_are_no_placeholders(tmp_path, pki, name, value):
    """A gateway names those of the policy's secrets, and no others: there is no group with them."""
    rules = policy({"id": "api", "hosts": ["api.test"], "secrets": ["key"]}, secrets=[{"id": "key", "from": {"env": "API_KEY"}}])

    def answer(method, path):
        if method == "PUT":
            return 201, {}, json.dumps({"id": "box", "env": {name: value}, "log": FIRST})
        return (204, {}, "") if method == "DELETE" else (200, {"Cage-Log-Next": NEXT}, "")
    with Intake(pki, answer) as intake, Arm(script=lambda body: Script(LINES, 0.3)) as arm, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env(), rules=rules) as aci:
        aci.send(b"R", 1, b"\0true\0")
        assert aci.process.wait(30) == 1 and not arm.gone and not arm.groups, aci.text()
    assert "no placeholder of the policy" in aci.text()


def test_lines_that_are_none_of_this_sandbox(tmp_path, pki):
    """They are left out, and that is said; those between them are kept."""
    bad = ['{"schema":"cage.log/1","sandbox":"other"}', '{"schema":"cage.log/1"}', "not JSON \x1b[2J", '{"sandbox":"box"}\r', '{"sandbox":"box"} {}', '["sandbox","box"]', '{"sandbox":"other","sandbox":"box"}', ""]
    good = ['{"schema":"cage.log/1","sandbox":"box","path":"\\u0000\\u001b"}', LINE[:-1]]

    @by_its_log
    def answer(path):
        lines = [*bad, good[0], *bad, good[1], '{"schema":"cage.log/1","sandbox":"box","half":1}']
        return 200, {"Cage-Log-Next": NEXT}, "\n".join(lines) if path.endswith(FIRST) else ""
    with Intake(pki, answer) as intake, Arm(script=lambda body: Script(LINES, 0.3)) as arm, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env()) as aci:
        assert aci.run("true")[2] == "exit 0" and aci.end() == 0, aci.text()
    assert (tmp_path / "log.jsonl").read_text() == "\n".join(good) + "\n" and aci.text().count("17 lines") == 1, aci.text()


MORE, PAGES, LOOK = 32, 100, 0.05  # LIMIT_ACI_MORE, LIMIT_ACI_PAGES, LIMIT_ACI_LOOK_MS of limits/small_azure.h


@pytest.mark.parametrize("moves", [False, True])
def test_a_log_that_never_ends(tmp_path, pki, moves):
    """Each answer says that there is more. A look has an end, and where nothing moves it is the first answer; so has the run."""
    asked, last, enough = [], [], threading.Event()
    each = MORE if moves else 1

    @by_its_log
    def answer(path):
        (last if arm.gone else asked).append(time.monotonic())
        if len(asked) == 4 * each:
            enough.set()
        return 200, {"Cage-Log-Next": FIRST + (str(len(asked) + len(last)) if moves else ""), "Cage-Log-More": "yes"}, ""

    class Waits(Script):
        def time(self, group, now):
            return now if enough.is_set() else min(now, group.starts + 0.1)
    with Arm(script=lambda body: Waits(LINES, 0.2)) as arm, Intake(pki, answer) as intake, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env()) as aci:
        assert aci.run("true")[2] == "exit 0" and aci.end(120) == (1 if moves else 0), aci.text()
    gaps = [asked[i] - asked[i - 1] for i in range(each, 4 * each, each)]
    assert len(gaps) == 3 and min(gaps) > 0.9 * LOOK and len(last) == (PAGES if moves else 1), (gaps, len(last))


@pytest.mark.parametrize("last, code, words", [("500", 1, ": 500"), ("404", 0, ": 404"), ("room again", 0, None), ("endless", 1, ": there are too many")])
def test_the_end_of_the_log(tmp_path, pki, last, code, words):
    """What the gateway does not tell at the end is said, and fails the run, unless it does not know it; a disk that was full may have room again."""
    line, told = LINE, []

    @by_its_log
    def answer(path):
        if arm.groups or not arm.gone:
            return 200, {"Cage-Log-Next": FIRST}, ""
        told.append(path)
        if last.isdigit():
            return int(last), {}, "{}"
        if len(told) == 3 and last == "room again":
            resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE, (1 << 20, hard))
        return 200, {"Cage-Log-Next": NEXT + str(len(told)) if last == "endless" else NEXT, **({"Cage-Log-More": "yes"} if last == "endless" else {})}, line if last == "room again" else ""
    with Arm(script=lambda body: Script(LINES, 0.2)) as arm, Intake(pki, answer) as intake, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env()) as aci:
        hard = resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE)[1]
        if last == "room again":
            resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE, (10, hard))
        assert aci.run("true")[2] == "exit 0" and aci.end(60) == code, aci.text()
    assert ("are lost, if there were any%s" % words in aci.text()) if words else "are lost" not in aci.text(), aci.text()
    assert (tmp_path / "log.jsonl").read_text() == (line if last == "room again" else "") and (len(told) == PAGES) == (last == "endless")


def test_an_empty_answer_is_not_the_end(tmp_path, pki):
    """As on a busy gateway, which looks through a part of the log for each answer: what is left of it is asked for until there is no more."""
    last = []

    @by_its_log
    def answer(path):
        if arm.groups or not arm.gone:
            return 200, {"Cage-Log-Next": FIRST}, ""
        last.append(path.partition("from=")[2])
        at = {"Cage-Log-Next": FIRST + str(len(last))}
        return (200, {**at, "Cage-Log-More": "yes"}, "") if len(last) < 3 else (200, at, LINE)
    with Arm(script=lambda body: Script(LINES, 0.3)) as arm, Intake(pki, answer) as intake, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env()) as aci:
        assert aci.run("true")[2] == "exit 0" and aci.end() == 0, aci.text()
    assert last == [FIRST, FIRST + "1", FIRST + "2"] and (tmp_path / "log.jsonl").read_text() == LINE


@pytest.mark.parametrize("held", ["GET", "PUT"])
def test_one_that_goes_is_not_told_again(tmp_path, pki, held):
    """The gateway forgets it, and does not take it again, which is heard of while the group is removed: a good run stays one."""
    asked = []

    def answer(method, path):
        asked.append(method)
        number = asked.count(method)
        if number == 2 and method == held:
            wait_until(lambda: any(g.deleting for g in list(arm.groups.values())), 20, "it is not removed")
        if method == "PUT":
            return (201, {}, json.dumps({"id": "box", "env": {}, "log": FIRST})) if number == 1 else (422, {}, "{}")
        return (200, {"Cage-Log-Next": NEXT}, "") if method == "GET" and number == 1 else (404, {}, "{}")
    with Arm(script=lambda body: Script(LINES, 0.5), delete_takes=0.7) as arm, Intake(pki, answer) as intake, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env()) as aci:
        assert aci.run("true")[2] == "exit 0" and aci.end() == 0, aci.text()
    assert asked.count("PUT") == (1 if held == "GET" else 2) and asked.count("DELETE") == 1


def test_what_is_in_the_group(tmp_path, shared):
    """The agent is locked as in the other topology; the relay has an address and nothing else. The token is shown to nobody."""
    with Arm(script=lambda body: Script(LINES, 0.2)) as arm:
        with split(arm, tmp_path, shared, "--gateway-dns", "10.60.0.4:53", run=("--out", "123456")) as aci, Aci(arm, tmp_path / "group", ident="group") as other:
            assert aci.run("agent")[2] == "exit 0" and other.run("agent")[2] == "exit 0", aci.text()
            aci.end(), other.end()
        body, group = (next(g.body for g in arm.gone if g.name == n) for n in ("cage-box", "cage-group"))
        shown = json.dumps([t["liveResponse"] for t in arm.traffic])
    agent, relay = container(body, "agent"), container(body, "relay")
    assert [c["name"] for c in body["properties"]["containers"]] == ["agent", "relay"] and agent["command"] == container(group, "agent")["command"]
    assert relay["command"] == ["/usr/bin/cage-relay", "--carry", "127.0.0.1:8080=127.0.0.1:%d" % shared.proxy_port, "--carry", "127.0.0.1:53=10.60.0.4:53", "--out", "123456"]
    assert relay["environmentVariables"] == [] and "volumeMounts" not in relay and relay["image"] == IMAGES[7]
    assert [v["name"] for v in body["properties"]["volumes"]] == ["tools", "workspace"] and not any("secret" in v for v in body["properties"]["volumes"])
    token = re.match(r"http://box:([A-Za-z0-9_-]{43})@127", variables(body)["HTTPS_PROXY"]["secureValue"])[1]
    assert token not in shown + aci.text() + shared.stderr.text() + shared.stdout() and INTAKE_TOKEN not in json.dumps(body) + aci.text()
    assert all("value" not in v for v in variables(body).values() if token in json.dumps(v))


def test_a_policy_that_the_gateway_does_not_take(tmp_path, shared):
    """What is wrong is said, and no group is made."""
    bad = {"version": 1, "name": "x", "upstream": {"trust": ["/etc/passwd"]}}
    with Arm() as arm, split(arm, tmp_path, shared, rules=bad) as aci:
        aci.send(b"R", 1, b"\0true\0")
        assert aci.process.wait(30) == 1
        assert "does not take the sandbox: 422" in aci.text() and "may name no file" in aci.text()
        assert not arm.groups and not arm.gone and ids(shared) == []


@pytest.mark.parametrize("form", [str, urllib.parse.quote, lambda t: base64.b64encode(b"x" + t.encode()).decode(), lambda t: json.dumps(json.dumps(t)).replace("e", "\\u0065")],
                         ids=["plain", "percent", "base64", "JSON"])
def test_what_a_gateway_quotes_is_not_shown(tmp_path, pki, form):
    """Neither the token of the intake nor the credential of the sandbox."""
    told = []

    def answer(method, path, body):
        if method != "PUT":
            return 204, {}, ""
        told.extend(form(t) for t in (INTAKE_TOKEN, json.loads(body)["token"]))
        return 422, {}, json.dumps({"detail": "it says " + told[0], "errors": ["policy.yaml:1:1: " + told[1], "a plain one"]})
    with Intake(pki, answer) as intake, Arm() as arm, Aci(arm, tmp_path, *intake.words, env=Gateway.aci_env()) as aci:
        aci.send(b"R", 1, b"\0true\0")
        assert aci.process.wait(30) == 1 and "a plain one" in aci.text()
    assert len(told) == 2 and not [t for t in told if t in aci.text()] and aci.text().count("(left out: it holds a secret)") == 2, aci.text()


def test_placeholders_come_from_the_gateway(tmp_path, pki):
    secret, rule = {"id": "key", "from": {"env": "API_KEY"}}, {"id": "api", "hosts": ["api.test"], "secrets": ["key"]}
    own = {"version": 1, "name": "x", "rules": [rule], "secrets": [secret]}
    real = "sk-real-value-of-it"
    with Gateway(tmp_path / "gateway", pki, own=own, env={"API_KEY": real}) as gateway, Arm(script=lambda body: Script(LINES, 0.2)) as arm:
        with split(arm, tmp_path / "aci", gateway, rules=own, env={"API_KEY": real}) as aci:
            assert aci.run("true")[2] == "exit 0", aci.text()
            aci.end()
        body = arm.gone[0].body
    assert variables(body)["API_KEY"]["value"].startswith("cage-ph-") and real not in json.dumps(body)


def test_a_gateway_that_was_started_anew(tmp_path, pki, origin):
    """It has lost all that it knew: the sandbox is told again, by itself, and goes on with the same token."""
    gateway = Gateway(tmp_path / "gateway", pki).start()
    with Arm(script=lambda body: Script(LINES, 1000)) as arm, split(arm, tmp_path / "aci", gateway, rules=web(origin)) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: arm.groups, 30, "it is not made")
        body = arm.groups["cage-box"].body
        assert as_agent(gateway, body, "http://a.test/first") == 200
        wait_until(lambda: "/first" in (tmp_path / "aci" / "log.jsonl").read_text(), 20, "no line")
        assert gateway.stop() == 0
        subprocess.run(["rm", "-r", gateway.dir + "/state"], check=True)
        gateway.start(gateway.port, gateway.proxy_port)
        wait_until(lambda: ids(gateway) == ["box"], 30, "it is not told again")
        wait_until(lambda: as_agent(gateway, body, "http://a.test/second") == 200, 10, "the proxy does not take it")
        wait_until(lambda: "/second" in (tmp_path / "aci" / "log.jsonl").read_text(), 20, "no line")
        assert "has forgotten the sandbox" in aci.text() and aci.text().count("between the last look at it and its end is lost") == 1, aci.text()
        assert aci.end() == 1 and not arm.groups and ids(gateway) == []
    assert gateway.stop() == 0


def test_a_gateway_that_never_answers(tmp_path, pki):
    gateway = Gateway(tmp_path / "gateway", pki).start()
    words = gateway.aci_words()
    gateway.stop()
    with Arm() as arm, Aci(arm, tmp_path / "aci", *words, env=gateway.aci_env()) as aci:
        aci.send(b"R", 1, b"\0true\0")
        assert aci.process.wait(60) == 1 and "the gateway does not take the sandbox" in aci.text() and not arm.gone


@pytest.mark.parametrize("when", ["waits", "runs"])
def test_a_keeper_that_is_gone(tmp_path, shared, when):
    with Arm(script=lambda body: Script(LINES, 1000)) as arm, split(arm, tmp_path, shared) as aci:
        if when == "runs":
            aci.send(b"R", 1, b"\0true\0")
            wait_until(lambda: arm.groups, 20, "it is not made")
        assert aci.end() == 1 and not arm.groups and ids(shared) == []


def words_of(arm, gateway, *more):
    done = subprocess.run([small(), *arm.words("--state", "test"), *gateway.aci_words(), *more], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **arm.env(), **gateway.aci_env()}, check=False)
    return done.returncode, done.stdout, done.stderr


def test_killed_at_any_moment_and_swept(tmp_path, shared):
    """Groups and identities of those that were killed are both in the list, and both go; those of others stay."""
    chance = random.Random(11)
    assert shared.put("others", owner="other")[0] == 201
    with Arm(script=lambda body: Script(LINES, 0.3), starts_in=0.15) as arm:
        def one(number):
            with split(arm, tmp_path / str(number), shared, ident="box%d" % number) as aci:
                aci.send(b"R", 1, b"\0true\0")
                try:
                    aci.process.wait(chance.uniform(0, 1.5))
                except subprocess.TimeoutExpired:
                    aci.process.send_signal(signal.SIGKILL)
        for at in range(0, 30, 10):
            threads = [threading.Thread(target=one, args=(n,)) for n in range(at, at + 10)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        assert shared.put("others", owner="other")[0] == 200  # behind all that was asked for by those who are dead
        left = set(ids(shared)) - {"others"} | {n.removeprefix("cage-") for n in arm.groups}
        code, out, err = words_of(arm, shared, "list")
        assert code == 0 and set(out.split()) == left and left, err
        for ident in set(out.split()):
            assert words_of(arm, shared, "remove", ident)[0] == 0
        assert not arm.groups and ids(shared) == ["others"] and words_of(arm, shared, "list")[:2] == (0, "")
        assert words_of(arm, shared, "check")[0] == 0
    assert shared.delete("others", "other") == 204


IDENTITY = "/subscriptions/%s/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i" % SUBSCRIPTION


@pytest.mark.parametrize("take, put, word", [
    ("--intake", (), "--intake"), ("--gateway", (), "--gateway"), ("--gateway", ("--gateway", "gateway.example.com:8080"), "no name"),
    ("--intake", ("--intake", "http://10.0.0.4:8443"), "https"), (None, ("--gateway-dns", "dns:53"), "no name"), ("--topology", (), "split alone"), (None, None, "CAGE_INTAKE_TOKEN"),
    (None, ("--identity", IDENTITY, "--identity", IDENTITY + "2"), "with split there is one"), (None, ("--identity", IDENTITY, "--identity-client", "c"), "with split there is one"),
    (None, ("--identity", IDENTITY, "--vault-secrets", "reference"), "with split there is one")])
def test_what_it_can_not_do_without(tmp_path, shared, take, put, word):
    words, env = shared.aci_words(), {**os.environ, **shared.aci_env()}
    if take:
        at = words.index(take)
        words = words[:at] + words[at + 2:]
    if put is None:
        del env["CAGE_INTAKE_TOKEN"]
    line = [small(), "--subscription", SUBSCRIPTION, "--group", GROUP, "--region", "x", *images(words), *words, *(put or ()), "run", "--policy", "p", "--ca-dir", "c", "--sandbox", "s", "--", "true"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, env=env, check=False)
    assert done.returncode == 2 and word in done.stderr, done


def test_whom_the_intake_is_believed_by(tmp_path, shared):
    """Not by those of the management API: without --intake-ca by the certificates of the system."""
    words = shared.aci_words()
    at = words.index("--intake-ca")
    with Arm() as arm:
        for own, code in ((words, 0), (words[:at] + words[at + 2:], 1)):
            done = subprocess.run([small(), *arm.words("--ca-file", shared.ca_pem), *own, "check"], capture_output=True, text=True, timeout=60,
                                  env={**os.environ, **arm.env(), **shared.aci_env()}, check=False)
            assert done.returncode == code and ("certificate" in done.stderr) == (code == 1), done
        assert "the certificate of 127.0.0.1:" in done.stderr and "--intake-ca (`intake_ca`)" in done.stderr and " 0: " not in done.stderr, done
        env = {**os.environ, **arm.env(), **shared.aci_env(), "CAGE_INTAKE_TOKEN": "x" * 43}
        done = subprocess.run([small(), *arm.words(), *words, "check"], capture_output=True, text=True, timeout=60, env=env, check=False)
        assert done.returncode == 1 and "401: CAGE_INTAKE_TOKEN is not the gateway's" in done.stderr and "x" * 43 not in done.stderr, done


# ---- by the service

def config_of(arm, gateway):
    words = gateway.aci_words()
    return {"backends": {"aci": {"subscription": SUBSCRIPTION, "group": GROUP, "regions": ["westeurope"], "credentials": "identity", "endpoint": arm.url,
                                 "image": IMAGES[1], "gate_image": IMAGES[7], "topology": "split", "gateway": words[3], "intake": words[5], "intake_ca": words[7], "subnet": words[9]}}}


def test_of_the_service(tmp_path, monkeypatch, pki):
    """A create, its decisions by the API, and its end; one whose service and keeper are killed is removed by the next, from the gateway too."""
    asked = []

    def script(body):
        asked.append(as_agent(gateway, body, "http://a.test/asked"))
        return Script(LINES, 0.5 if len(asked) == 1 else 1000, 3)
    with Gateway(tmp_path / "gateway", pki) as gateway, Arm(script=script) as arm:
        for name, value in {**arm.env(), **gateway.aci_env()}.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "service").mkdir()
        service = Service(tmp_path / "service", config_of(arm, gateway), env=gateway.aci_env()).start()
        line = [binary("cage"), "serve", "--check", "--state", service.state, "--config", service.config_path]
        assert subprocess.run(line, timeout=60, check=False).returncode == 0
        ident = service.create(command=["sh", "-c", "exit 3"])
        box = service.wait(ident, "failed")
        assert (box["reason"], box.get("exit_code"), asked) == ("exit", 3, [403]), box
        wait_until(lambda: ids(gateway) == [] and not arm.groups, 30, "it is left")
        other = service.create(command=["sleep", "1000"])
        wait_until(lambda: arm.groups and ids(gateway) == [other], 30, "it is not made")
        service.kill()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            words = command_line(int(pid)) if is_alive(int(pid)) else [""]
            if os.path.basename(words[0]) in ("cage-keeper", "cage-aci") and any(other in w for w in words):
                os.kill(int(pid), signal.SIGKILL)
        with service:
            assert service.wait(other, "failed")["reason"] in ("keeper.gone", "keeper.failed", "room.failed")
            wait_until(lambda: not arm.groups and ids(gateway) == [], 90, "it is left")
