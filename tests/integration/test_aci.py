"""cage-aci against a stand-in for Azure: what a group is made of, what goes wrong on the way, and that none is left or made twice."""
import base64
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest

from cagelib.aci import IMAGES, Aci, small
from cagelib.arm import GROUP, SUBSCRIPTION, VERSION, Arm, Group, Handler, Script, Stepped, trouble
from cagelib.cage_run import command_line
from cagelib.gateway import Gateway
from cagelib.prism import Prism
from cagelib.proxy import binary, is_alive, policy, wait_until
from cagelib.service import API, Service

LINES = [(0.01 * i, "line %d" % i) for i in range(20)]


def lines(n=20):
    return b"".join(b"line %d\n" % i for i in range(n))


@pytest.mark.parametrize("style", ["async", "location", "none"])
def test_a_command_from_beginning_to_end(tmp_path, style):
    with Arm(style, script=lambda body: Script(LINES, 0.3, 7)) as arm:
        with Aci(arm, tmp_path) as aci:
            out, err, how = aci.run("sh", "-c", "exit 7")
            assert (out, err, how) == (lines(), b"", "exit 7"), aci.text()
            assert aci.end() == 0
        assert not arm.groups and [g.name for g in arm.gone] == ["cage-box"] and arm.gone[0].puts == 1


def test_what_is_asked_for_besides(tmp_path):
    """A container group gives no files and has no ports: that is said, and nothing is made for it."""
    with Arm() as arm, Aci(arm, tmp_path) as aci:
        for kind in (b"G", b"A", b"L", b"N", b"U"):
            aci.send(kind, 5, b"x\0")
            assert aci.until_done(5)[2] == "error 95"
        assert aci.end() == 1 and not arm.traffic


# ---- what goes wrong

REQUESTS = [("GET", "/cage-box"), ("PUT", "/cage-box"), ("DELETE", "/cage-box"), ("GET", "/usages"), ("GET", "/logs"), ("GET", "/token")]
TROUBLE = [(*at, word) for at in REQUESTS for word in ("429", "503", "500", "drop", "lose", "401") if (at[1], word) != ("/token", "401")]  # which does not pass


@pytest.mark.parametrize("method, ending, word", [t if t[2] in ("429", "drop", "lose") else pytest.param(*t, marks=pytest.mark.slow) for t in TROUBLE])
def test_trouble_that_passes(tmp_path, method, ending, word):
    """Two of them in a row, each kind at each kind of request: the command runs once, and nothing is left."""
    plan = trouble((method, ending, (1,) if word == "401" else (1, 2), word))
    with Arm(trouble=plan, script=lambda body: Script(LINES, 0.3, 0)) as arm:
        with Aci(arm, tmp_path) as aci:
            assert aci.run("true") == (lines(), b"", "exit 0"), aci.text()
            assert aci.end() == 0, aci.text()
        assert not arm.groups and [g.puts for g in arm.gone] == [1], arm.asked


@pytest.mark.parametrize("style", ["async", "location"])
def test_an_operation_that_asks_for_hours(tmp_path, monkeypatch, style):
    """It is looked at as late as a call would be made again, LIMIT_ARM_WAIT_MS, and not as if it had asked for nothing."""
    real, polls = Handler.operation, []

    def slowly(self, path, now):
        polls.append(path)
        status, answer, headers = real(self, path, now)
        return status, answer, {**headers, "Retry-After": "3600"}
    monkeypatch.setattr(Handler, "operation", slowly)
    with Arm(style, script=lambda body: Script(LINES, 0.3), starts_in=0.8, delete_takes=0) as arm, Aci(arm, tmp_path) as aci:
        assert aci.run("true")[2] == "exit 0", aci.text()
        assert len(polls) <= 10, polls
        assert aci.end() == 0 and not arm.groups


def test_trouble_that_does_not_pass(tmp_path):
    with Arm(trouble=trouble(("PUT", "/cage-box", range(1000), "503"))) as arm:
        with Aci(arm, tmp_path) as aci:
            aci.send(b"R", 1, b"\0true\0")
            assert aci.process.wait(60) == 1 and "The service is told to say so" in aci.text()
        assert not arm.groups and not arm.gone


@pytest.mark.parametrize("style", ["async", "location", "none"])
@pytest.mark.parametrize("word", [None, "lose"])
def test_a_group_that_is_seen_late(tmp_path, style, word):
    """Whoever says that it is made, or whether nobody does: a look that finds nothing is neither its end nor a reason to ask for it again."""
    plan = trouble(("PUT", "/cage-box", (1,), word))
    with Arm(style, unseen=0.3, starts_in=0.1, trouble=plan, script=lambda body: Script(LINES, 0.8)) as arm, Aci(arm, tmp_path) as aci:
        assert aci.run("true") == (lines(), b"", "exit 0"), aci.text()
        assert aci.end() == 0 and [g.puts for g in arm.gone] == [1]
        assert len([1 for m, p in arm.asked if m == "PUT"]) == 1, arm.asked


def test_a_group_that_is_not_seen_now_and_then(tmp_path):
    """As by a part of Azure that is behind the others: a run does not end by that."""
    behind = trouble(("GET", "/cage-box", (3, 4, 6, 8, 9, 10), "404"))
    with Arm(trouble=behind, script=lambda body: Script(LINES, 1)) as arm, Aci(arm, tmp_path) as aci:
        assert aci.run("true") == (lines(), b"", "exit 0") and aci.end() == 0, aci.text()
        assert [g.puts for g in arm.gone] == [1]


def test_a_group_that_somebody_else_removes(tmp_path):
    """That is believed after LIMIT_ARM_ABSENT looks."""
    with Arm(script=lambda body: Script(LINES, 1000)) as arm, Aci(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: was_read(arm), 20, "it does not run")
        with arm.lock:
            arm.gone.append(arm.groups.pop("cage-box"))
            before = len(arm.asked)
        assert aci.process.wait(30) == 1 and "somebody else has removed it" in aci.text()
        looks = [p for m, p in arm.asked[before:] if m == "GET" and p.split("?")[0].endswith("/cage-box")]
        assert 15 <= len(looks) <= 16, looks


def test_a_region_that_is_full_and_one_that_fails(tmp_path):
    """Quotas are read before anything is made; what has failed is removed before the next is tried."""
    fails = {"northeurope": "ServiceUnavailable"}
    with Arm(usages={"westeurope": {"ContainerGroups": (100, 100)}}, script=lambda body: Script(LINES, 0.3, 0, fails=fails.get(body["location"]))) as arm:
        with Aci(arm, tmp_path, regions=("westeurope", "northeurope", "swedencentral")) as aci:
            assert aci.run("true")[2] == "exit 0", aci.text()
            assert "westeurope: quota ContainerGroups: 100 of 100 are used" in aci.text() and "northeurope: the group could not be made: ServiceUnavailable" in aci.text()
            assert aci.end() == 0
        assert [g.body["location"] for g in arm.gone] == ["northeurope", "swedencentral"]


def test_no_region_is_left(tmp_path):
    with Arm(usages={"westeurope": {"StandardCores": (100, 100)}}) as arm, Aci(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        assert aci.process.wait(30) == 1 and "quota StandardCores: 100 of 100" in aci.text() and "no region is left" in aci.text()
        assert not arm.groups and not arm.gone


def test_a_group_of_somebody_else_is_left_alone(tmp_path):
    with Arm(script=lambda body: Script(LINES, 100)) as arm:
        with Aci(arm, tmp_path / "a", "--state", "other") as first:
            first.send(b"R", 1, b"\0true\0")
            wait_until(lambda: arm.groups, 20, "it is not made")
            with Aci(arm, tmp_path / "b") as second:
                second.send(b"R", 1, b"\0true\0")
                assert second.process.wait(30) == 1 and "somebody else's" in second.text()
            assert list(arm.groups) == ["cage-box"] and arm.groups["cage-box"].puts == 1
            first.end()
        assert not arm.groups


# ---- ends

def was_read(arm, name="cage-box"):
    """Of a group that runs the logs are asked for."""
    return any("/%s/containers/agent/logs?" % name in path for _, path in list(arm.asked))


def test_a_keeper_that_is_gone(tmp_path):
    with Arm(script=lambda body: Script(LINES, 100)) as arm, Aci(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: arm.groups, 20, "it is not made")
        assert aci.end() == 1 and not arm.groups


def test_a_stop(tmp_path):
    """Before it runs, there is nothing to be heard of it."""
    with Arm(script=lambda body: Script(LINES, 100), starts_in=100) as arm, Aci(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: arm.groups, 20, "it is not made")
        aci.send(b"K", 1)
        assert aci.until_done(1)[2] == "exit 143"
        assert aci.process.wait(30) == 0 and not arm.groups and arm.gone[0].stops == 0


def test_the_last_words_before_a_stop(tmp_path):
    """Its containers are asked to end, what the agent says then is taken, and the group goes."""
    with Arm(script=lambda body: Script(LINES, 100, last=["saved", "bye"])) as arm, Aci(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: was_read(arm), 20, "it does not run")
        aci.send(b"K", 1)
        out, _, how = aci.until_done(1)
        assert how == "exit 143" and out.endswith(b"saved\nbye\n"), (out, how)
        assert aci.process.wait(30) == 0 and not arm.groups and arm.gone[0].stops == 1


def test_an_agent_that_does_not_stop(tmp_path):
    """It is not waited for longer than that, and a second word ends it at once."""
    with Arm(script=lambda body: Script(LINES, 1000, stops_in=1000)) as arm, Aci(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: was_read(arm), 20, "it does not run")
        aci.send(b"K", 1)
        assert aci.until_done(1)[2] == "exit 143" and aci.process.wait(30) == 0 and not arm.groups
    with Arm(script=lambda body: Script(LINES, 1000, stops_in=1000)) as arm, Aci(arm, tmp_path / "b") as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: was_read(arm), 20, "it does not run")
        aci.send(b"K", 1)
        aci.send(b"C", 1)
        assert aci.until_done(1)[2] == "exit 143" and aci.process.wait(30) == 0 and not arm.groups


def test_a_stop_that_is_refused(tmp_path):
    """That is told, and the agent is looked at meanwhile."""
    with Arm(script=lambda body: Script(LINES, 1.5, 5), trouble=trouble(("POST", "/stop", range(1000), "403"))) as arm, Aci(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: was_read(arm), 20, "it does not run")
        aci.send(b"K", 1)
        assert aci.until_done(1)[2] == "exit 5" and aci.process.wait(30) == 0 and not arm.groups
        assert aci.text().count("can't be asked to stop") == 1, aci.text()


def words_of(arm, *more):
    done = subprocess.run([small(), *arm.words("--state", "test"), *more], capture_output=True, text=True, timeout=60, env={**os.environ, **arm.env()}, check=False)
    return done.returncode, done.stdout, done.stderr


RUNS = 1000 if os.environ.get("CAGE_SLOW") else 60


def test_killed_at_any_moment_and_swept(tmp_path):
    """Whatever was under way, with an API that stumbles and shows groups late: a sweep finds it in the list, and it can be removed. Nothing is ever made twice."""
    chance = random.Random(7)

    def stumbles(*_):
        return chance.choice(("429", "503", "500", "drop", "lose")) if chance.random() < 0.03 else None

    with Arm(script=lambda body: Script(LINES, 0.3), starts_in=0.15, trouble=stumbles, unseen=0.2) as arm:
        def one(number):
            with Aci(arm, tmp_path / str(number), ident="box%d" % number) as aci:
                aci.send(b"R", 1, b"\0true\0")
                try:
                    aci.process.wait(chance.uniform(0, 0.9))
                except subprocess.TimeoutExpired:
                    aci.process.send_signal(signal.SIGKILL)

        for at in range(0, RUNS, 10):
            threads = [threading.Thread(target=one, args=(n,)) for n in range(at, at + 10)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        arm.trouble = lambda *_: None

        def sweep():
            code, out, err = words_of(arm, "list")
            assert code == 0, err
            for ident in out.split():
                assert words_of(arm, "remove", ident)[0] == 0
            return not arm.groups
        wait_until(sweep, 120, "some are left")
        assert words_of(arm, "list")[:2] == (0, "")
        names = [g.name for g in arm.gone]
        assert len(names) == len(set(names)) and all(g.puts == 1 for g in arm.gone) and len(names) > RUNS // 6


# ---- logs

def test_more_log_than_azure_keeps_of_a_container_that_has_ended(tmp_path):
    """3 MB over a second: looks in between have all of it but what was written last. How far it is between two looks does not depend on when they come."""
    many = [(i / 3000 if i < 2990 else 1.5, "%06d " % i + "x" * 1000) for i in range(3000)]
    script = Stepped(0.2, many, 1.5)
    with Arm(script=lambda body: script) as arm, Aci(arm, tmp_path) as aci:
        out, _, how = aci.run("true")
        assert script.passed >= 1.5, "it was not looked at until it had ended"
        assert how == "exit 0" and out == "".join(text + "\n" for _, text in many).encode()
        assert "are lost" not in aci.text() and aci.end() == 0


def test_lines_that_were_lost_are_told(tmp_path):
    """All at the last moment: of that Azure keeps 16 KB."""
    many = [(0, "first")] + [(0.49, "%06d " % i + "x" * 1000) for i in range(3000)]
    with Arm(script=lambda body: Script(many, 0.491), starts_in=0.3) as arm, Aci(arm, tmp_path) as aci:
        out, _, how = aci.run("true")
        assert how == "exit 0" and out.endswith(many[-1][1].encode() + b"\n") and out.count(b"\n") == len(set(out.split(b"\n"))) - 1
        assert out.count(b"\n") == 3001 or "lines of the log of agent are lost" in aci.text()
        assert aci.end() == 0


@pytest.mark.parametrize("text, shown", [("t\x00wo", "t\ufffdwo"), ("two\ud83d", "two\ufffd"), ("\udc00\ud83d\udc00", "\ufffd\U0001f400")], ids=["NUL", "high", "low and a pair"])
def test_letters_that_no_text_can_have(tmp_path, text, shown):
    """One of them in a log does not hide all others, neither of the agent nor of the proxy."""
    decision = '{"schema":"cage.log/1","seq":%d}'
    others = {"proxy": [(0, decision % 1), (0.05, text), (0.1, decision % 2)]}
    with Arm(script=lambda body: Script([(0.01, "one"), (0.02, text), (0.03, "three")], 0.3, others=others)) as arm, Aci(arm, tmp_path) as aci:
        out, _, how = aci.run("true")
        assert (out.decode(), how) == ("one\n%s\nthree\n" % shown, "exit 0"), aci.text()
        assert aci.end() == 0
    assert (tmp_path / "log.jsonl").read_text() == decision % 1 + "\n" + decision % 2 + "\n"


def test_bytes_that_are_no_text(tmp_path):
    text = b'{"content": "one\\n\xfftwo\xc3\\nth\xc3\xa9ree\x01\\n"}'
    with Arm(script=lambda body: Script(LINES, 0.3)) as arm:
        arm.more.append(lambda handler, path, *_: (200, text, {}) if path.endswith("/agent/logs") else None)
        with Aci(arm, tmp_path) as aci:
            assert aci.run("true")[::2] == ("one\n?two?\nth\u00e9ree?\n".encode(), "exit 0") and aci.end() == 0, aci.text()


@pytest.mark.parametrize("code", [256, -1, 1 << 40, 10 ** 18, 1.5, "7", None, True, [0]])
def test_an_exit_code_that_is_none(tmp_path, code):
    """What is not known is no success; what the agent has said is told."""
    with Arm(script=lambda body: Script([(0, "one")], 0.2, code)) as arm, Aci(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        assert aci.process.wait(60) == 1 and not arm.groups, aci.text()
        left = aci.process.stdout.read()
        assert "exit code" in aci.text() and b"one\n" in left and b"exit" not in left, (left, aci.text())


def test_decisions_are_kept(tmp_path):
    """Those of the proxy and of dns, as they came; nothing else that they print."""
    decision = '{"schema":"cage.log/1","seq":%d}'
    others = {"proxy": [(0.01 * i, decision % i) for i in range(10)] + [(0.2, "cage-proxy: ready")], "dns": [(0.1, decision % 1)]}
    with Arm(script=lambda body: Script(LINES, 0.4, others=others)) as arm, Aci(arm, tmp_path) as aci:
        assert aci.run("true")[2] == "exit 0" and aci.end() == 0
    assert (tmp_path / "log.jsonl").read_text() == "".join(decision % i + "\n" for i in range(10))
    assert (tmp_path / "log.jsonl.dns").read_text() == decision % 1 + "\n"


def test_no_log_no_traffic(tmp_path):
    """A log that has reached its bound has whole lines only, and the group goes with it."""
    decision = '{"schema":"cage.log/1","seq":%03d,"path":"' + "x" * 1000 + '"}'
    others = {"proxy": [(0.01 * i, decision % i) for i in range(400)]}
    with Arm(script=lambda body: Script(LINES, 100, others=others)) as arm, Aci(arm, tmp_path, run=("--log-max", "262144")) as aci:
        aci.send(b"R", 1, b"\0true\0")
        assert aci.process.wait(60) == 1 and not arm.groups, aci.text()
        assert aci.text().count("has reached its bound") == 1 and "no traffic" in aci.text()
    kept = (tmp_path / "log.jsonl").read_text()
    assert 250000 < len(kept) <= 262144 and kept == "".join(decision % i + "\n" for i in range(kept.count("\n")))
    with Arm() as arm:
        line = [small(), *arm.words(), "--region", "r", *IMAGES, "run", "--policy", str(tmp_path / "policy.yaml"), "--ca-dir", str(tmp_path / "ca"), "--sandbox", "s", "--log-max", "1", "--", "x"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=20, env={**os.environ, **arm.env()}, check=False)
        assert done.returncode == 2 and "--log-max: expected" in done.stderr and not arm.asked, done


@pytest.mark.parametrize("has_room", [True, False])
def test_lines_are_kept_as_a_whole_or_not_at_all(tmp_path, has_room):
    """A disk that is full in the midst of a line: when there is room again each line is there once; where there is none until the end, that is said and
    fails the run."""
    decision = '{"schema":"cage.log/1","seq":%d,"path":"' + "x" * 1000 + '"}'
    others, log = {"proxy": [(0.01 * i, decision % i) for i in range(3)]}, tmp_path / "log.jsonl"
    with Arm(script=lambda body: Script(LINES, 1000, others=others)) as arm, Aci(arm, tmp_path) as aci:
        hard = resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE, (1500, hard))
        aci.send(b"R", 1, b"\0true\0")
        for times in (1, 3):
            wait_until(lambda: aci.text().count("can't be written") >= times, 30, "it is not said")
            wait_until(lambda: log.stat().st_size == len(decision % 0) + 1, 10, "a part of a line is left")
        if has_room:
            resource.prlimit(aci.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            wait_until(lambda: log.read_text().count("\n") == 3, 30, "they are not written")
        arm.groups["cage-box"].script.seconds = 0.5
        assert aci.until_done(1)[2] == "exit 0" and aci.process.wait(30) == (0 if has_room else 1), aci.text()
        assert ("the last lines of the log of proxy are lost: they can't be taken" in aci.text()) == (not has_room), aci.text()
    assert log.read_text() == "".join(decision % i + "\n" for i in range(3 if has_room else 1))


@pytest.mark.parametrize("word, looks", [("403", 1), ("404", 5)])
def test_the_last_look_at_a_log_fails(tmp_path, word, looks):
    """It is said, and the run is no good one; one that is not seen is looked for LIMIT_ACI_LAST_LOOKS times."""
    def ended(method, path, _):
        return word if path.endswith("/dns/logs") and any(g.has_ended(time.time()) for g in arm.groups.values()) else None
    with Arm(script=lambda body: Script(LINES, 0.4), trouble=ended) as arm, Aci(arm, tmp_path) as aci:
        assert aci.run("true") == (lines(), b"", "exit 0") and aci.end() == 1 and not arm.groups
        assert aci.text().count("the last lines of the log of dns are lost: The service is told to say so.") == 1, aci.text()
        agent, dns = (len([1 for _, p in arm.asked if "/containers/%s/logs" % name in p]) for name in ("agent", "dns"))
        assert dns - agent == looks - 1, (agent, dns)


# ---- what is in a group

def container(body, name):
    return next(c["properties"] for c in body["properties"]["containers"] if c["name"] == name)


def test_least_privilege(tmp_path):
    """Secrets are the proxy's alone, and never shown again; the agent has its placeholder, no identity of its own, and begins with the gate."""
    rules = policy(rules=[{"id": "api", "hosts": ["api.test"], "secrets": ["key"]}], secrets=[{"id": "key", "from": {"env": "API_KEY"}, "placeholder": "{{API_KEY}}"}])
    real = "sk-real-value-of-the-key"
    with Arm(script=lambda body: Script(LINES, 0.2)) as arm:
        with Aci(arm, tmp_path, rules=rules, env={"API_KEY": real}) as aci:
            assert aci.run("agent", "--flag")[2] == "exit 0", aci.text()
            aci.end()
        body, shown = arm.gone[0].body, json.dumps([t["liveResponse"] for t in arm.traffic])
    assert real not in shown and real not in aci.text()
    agent, proxy, dns = (container(body, name) for name in ("agent", "proxy", "dns"))
    assert {"name": "API_KEY", "secureValue": real} in proxy["environmentVariables"] and json.dumps(body).count(real) == 1
    assert {"name": "API_KEY", "value": "{{API_KEY}}"} in agent["environmentVariables"]
    assert [m["name"] for m in agent["volumeMounts"]] == ["tools", "workspace"] and agent["volumeMounts"][0]["readOnly"]
    assert {m["name"] for m in proxy["volumeMounts"]} == {m["name"] for m in dns["volumeMounts"]} == {"policy", "keys"}
    assert agent["command"][0] == "/cage/cage-gate" and agent["command"][-2:] == ["agent", "--flag"] and "/cage/cage-inside" in agent["command"]
    assert "identity" not in body and "ipAddress" not in body["properties"] and body["properties"]["restartPolicy"] == "Never"
    assert not any("value" in v for v in proxy["environmentVariables"] + dns["environmentVariables"])


IDENTITY = "/subscriptions/%s/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/" % SUBSCRIPTION


def test_which_identity_is_the_proxys(tmp_path):
    """The first one pulls images; the proxy alone is told which one is its own, by a plain value."""
    options = ("--identity", IDENTITY + "pull", "--identity", IDENTITY + "vault", "--identity-client", "c11e0000-0000", "--registry", "r.azurecr.io")
    with Arm() as arm, Aci(arm, tmp_path, *options) as aci:
        assert aci.run("true")[2] == "exit 0", aci.text()
        aci.end()
        body = arm.gone[0].body
    assert body["identity"] == {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY + "pull": {}, IDENTITY + "vault": {}}}
    assert body["properties"]["imageRegistryCredentials"] == [{"server": "r.azurecr.io", "identity": IDENTITY + "pull"}]
    assert container(body, "proxy")["environmentVariables"] == [{"name": "AZURE_CLIENT_ID", "value": "c11e0000-0000"}]
    assert "AZURE_CLIENT_ID" not in json.dumps([container(body, "agent"), container(body, "dns")])
    for options, what in ((("--identity", IDENTITY + "a", "--identity", IDENTITY + "b"), "which one"), (("--identity-client", "c"), "there is no identity"),
                          (("--registry-username", "u"), "there is no registry"), (("--registry", "r", "--registry-password-file", "/f"), "no registry_username (--registry-username)")):
        done = subprocess.run([small(), *arm.words(*options), "--region", "r", *IMAGES, "run", "--", "x"], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2 and what in done.stderr, done


@pytest.mark.parametrize("where", ["variable", "file"])
def test_t34_the_password_of_a_registry(tmp_path, where):
    """It goes into the body of the PUT, and is on no command line, in no environment of who has read it, in no log and in no answer."""
    password = "pa55-of the&registry"
    (tmp_path / "password").write_text(password + "\n")
    options = ["--registry", "r.test", "--registry-username", "puller", *(["--registry-password-file", str(tmp_path / "password")] if where == "file" else [])]
    env = {"CAGE_REGISTRY_PASSWORD": password} if where == "variable" else {}
    with Arm(script=lambda body: Script(LINES, 0.5)) as arm:
        with Aci(arm, tmp_path / "aci", *options, env=env) as aci:
            aci.send(b"R", 1, b"\0true\0")
            wait_until(lambda: arm.groups, 20, "it is not made")
            for name in ("environ", "cmdline"):
                with open("/proc/%d/%s" % (aci.process.pid, name), "rb") as f:
                    assert password.encode() not in f.read()
            assert aci.until_done(1)[2] == "exit 0"
            aci.end()
        body = arm.gone[0].body
        shown = json.dumps([t["liveResponse"] for t in arm.traffic]) + str(arm.asked)
    assert body["properties"]["imageRegistryCredentials"] == [{"server": "r.test", "username": "puller", "password": password}]
    assert json.dumps(body).count(password) == 1 and "identity" not in body and password not in shown + aci.text()


def test_t34_a_registry_without_its_password(tmp_path):
    options = ("--registry", "r.test", "--registry-username", "puller")
    for more in ((), ("--registry-password-file", str(tmp_path / "none"))):
        with Arm() as arm:
            line = [small(), *arm.words(*options, *more), "--region", "r", *IMAGES, "run", "--policy", "p", "--ca-dir", "c", "--sandbox", "s", "--", "x"]
            done = subprocess.run(line, capture_output=True, text=True, timeout=20, env={**os.environ, **arm.env()}, check=False)
            assert done.returncode == 2 and "--registry-" in done.stderr and not arm.asked, done


VAULT_RULES = {"rules": [{"id": "api", "hosts": ["api.test"], "secrets": ["plain", "key"]}],
               "secrets": [{"id": "plain", "from": {"env": "PLAIN"}}, {"id": "key", "from": {"keyvault": "https://v.vault.azure.net/secrets/key/0123456789abcdef0123456789abcdef"}, "placeholder": "{{VAULT_KEY}}"}]}


def test_t34_secrets_that_azure_reads(tmp_path):
    """By reference: the identity and the address are in the body, the variable is the proxy's alone, and no vault is asked by it."""
    options = ("--identity", IDENTITY + "pull", "--identity", IDENTITY + "vault", "--identity-client", "c11e", "--vault-secrets", "reference")
    with Arm() as arm, Aci(arm, tmp_path, *options, rules=policy(**VAULT_RULES), env={"PLAIN": "value-of-the-plain-one"}) as aci:
        assert aci.run("true")[2] == "exit 0", aci.text()
        aci.end()
        body = arm.gone[0].body
    proxy = container(body, "proxy")
    assert body["properties"]["secretReferences"] == [{"name": "vault-1", "identity": IDENTITY + "vault", "secretReferenceUri": "https://v.vault.azure.net/secrets/key/0123456789abcdef0123456789abcdef"}]
    assert {"name": "CAGE_VAULT_1", "secureValueReference": "vault-1"} in proxy["environmentVariables"] and "--vault-variables" in proxy["command"]
    others = json.dumps([container(body, "agent"), container(body, "dns")])
    assert "CAGE_VAULT" not in others and "vault-" not in others
    with Arm() as arm, Aci(arm, tmp_path / "b", rules=policy(**VAULT_RULES), env={"PLAIN": "value-of-the-plain-one"}) as aci:
        assert aci.run("true")[2] == "exit 0", aci.text()
        aci.end()
        assert "secretReferences" not in arm.gone[0].body["properties"] and "--vault-variables" not in json.dumps(arm.gone[0].body)


def test_files(tmp_path):
    """What the agent begins with is in a secret volume of its own container; too much is refused, and then nothing is made."""
    with Arm() as arm, Aci(arm, tmp_path) as aci:
        assert aci.put("a/b", b"x" * 100000)[2] == "exit 0"
        assert aci.run("true")[2] == "exit 0", aci.text()
        aci.end()
        body = arm.gone[0].body
    assert [v["name"] for v in body["properties"]["volumes"] if "secret" in v] == ["policy", "keys", "files"]
    assert [c["name"] for c in body["properties"]["containers"] if "files" in json.dumps(c["properties"]["volumeMounts"])] == ["agent"]
    with Arm() as arm, Aci(arm, tmp_path / "b") as aci:
        assert aci.put("a/b", b"x" * (1 << 20))[2] == "error 27" and aci.put("c", b"x")[2] == "error 27"
        assert aci.end() == 1 and not arm.traffic


# ---- tokens

@pytest.mark.parametrize("kind, env", [("secret", {"AZURE_CLIENT_SECRET": "s3cret&+value"}), ("workload", {}), ("auto", {"AZURE_CLIENT_SECRET": "s3cret&+value"})])
def test_tokens(tmp_path, kind, env):
    (tmp_path / "assertion").write_text("signed.by.somebody\n")
    own = {"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "assertion"), **env}
    with Arm() as arm:
        done = subprocess.run([small(), *arm.words("--credentials", kind), "check"], capture_output=True, text=True, timeout=30, env={**os.environ, **arm.env(), **own}, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done
        own["AZURE_CLIENT_SECRET"], wrong = "wr0ng", arm.words("--credentials", "secret")
        done = subprocess.run([small(), *wrong, "check"], capture_output=True, text=True, timeout=60, env={**os.environ, **arm.env(), **own}, check=False)
        assert done.returncode == 1 and "invalid_client" in done.stderr and "wr0ng" not in done.stderr, done


def test_a_token_by_az(tmp_path):
    az = tmp_path / "az"
    az.write_text('#!/bin/sh\n[ "$*" = "account get-access-token --resource https://management.azure.com --output json" ] || exit 3\n'
                  'echo \'{"accessToken": "eyJ0eXAiOiJKV1Qi.Zm9v.1", "expiresOn": "2026-11-17 18:00:00.000000"}\'\n')
    az.chmod(0o755)
    with Arm() as arm:
        env = {**os.environ, "PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}
        assert subprocess.run([small(), *arm.words("--credentials", "az"), "check"], timeout=30, env=env, check=False).returncode == 0
        text = az.read_text()
        az.write_text(text + "exec >&- 2>&-\nexec sleep 1000\n")
        assert subprocess.run([small(), *arm.words("--credentials", "az"), "check"], timeout=30, env=env, check=False).returncode == 0
        az.write_text("#!/bin/sh\nexec sleep 1000\n")
        done = subprocess.run([small(), *arm.words("--credentials", "az"), "check"], timeout=30, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "az login" in done.stderr
        az.write_text("#!/bin/sh\nexit 1\n")
        done = subprocess.run([small(), *arm.words("--credentials", "az"), "check"], timeout=60, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "az login" in done.stderr


def test_an_operation_that_leads_elsewhere(tmp_path):
    """A token goes to nobody but the API, whatever an answer says."""
    with Arm("location", script=lambda body: Script(LINES, 0.3), starts_in=0.3) as arm, Arm() as other:
        follow = arm.RequestHandlerClass.follow
        arm.RequestHandlerClass.follow = lambda self, kind, name: {"Location": other.url + "/steal"} if self.server is arm and kind == "create" else follow(self, kind, name)
        try:
            with Aci(arm, tmp_path) as aci:
                assert aci.run("true")[2] == "exit 0", aci.text()
                aci.end()
        finally:
            arm.RequestHandlerClass.follow = follow
        assert other.asked == [] and [g.puts for g in arm.gone] == [1]


# ---- by the service

REGISTRY = "registry.test"


def config_of(arm, **more):
    return {"backends": {"aci": {"subscription": SUBSCRIPTION, "group": GROUP, "regions": ["westeurope"], "credentials": "identity", "endpoint": arm.url,
                                 **dict(zip(("image", "proxy_image", "dns_image", "gate_image"), IMAGES[1::2])), **more}}}


def test_of_the_service(tmp_path, monkeypatch):
    """A create, its output and its end, the decisions of its proxy, and what is left of it in Azure: nothing."""
    decision = '{"schema":"cage.log/1","seq":1,"event":"%s","decision":"block"}'
    others = {"proxy": [(0.1, decision % "request")], "dns": [(0.1, decision % "dns")]}
    with Arm(script=lambda body: Script(LINES, 0.5, 3, others=others)) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        with Service(tmp_path, config_of(arm)) as service:
            ident = service.create(command=["sh", "-c", "exit 3"], limits={"memory": 2 << 30, "cpu": 2})
            box = service.wait(ident, "failed")
            assert (box["reason"], box["exit_code"], service.output(ident)) == ("exit", 3, lines()), box
            for source, event in (("proxy", "request"), ("dns", "dns")):
                assert service.get(API + "/" + ident + "/logs?source=" + source).body.decode() == decision % event + "\n"
            assert box["usage"]["decisions"]["block"] == 2, box["usage"]
            answer = service.post(API, {"command": ["true"], "image": REGISTRY + "/agent@sha256:" + "e" * 64})
            assert answer.status == 422 and answer.json["reason"] == "image.not_allowed", answer
            line = [binary("cage"), "serve", "--check", "--state", service.state, "--config", service.config_path]
            assert subprocess.run(line, timeout=60, check=False).returncode == 0
        (group,) = arm.gone
        assert group.name == "cage-" + ident and group.puts == 1 and not arm.groups
        agent = container(group.body, "agent")
        assert agent["resources"]["requests"] == {"cpu": 2.0, "memoryInGB": 2.0}
        limits = agent["command"][agent["command"].index("--limit") + 1]
        assert "pids=" in limits and "fsize=" in limits and "mem" not in limits


def test_it_is_being_made_until_the_agent_runs(tmp_path, monkeypatch):
    """Until Azure says that its container has started it is not running, and says what it waits for."""
    is_busy = threading.Event()
    is_busy.set()
    with Arm(script=lambda body: Script(LINES, 3, 0), trouble=lambda method, path, _: "503" if method == "PUT" and is_busy.is_set() else None) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        with Service(tmp_path, config_of(arm)) as service:
            line = [binary("cage"), "create", "--socket", service.socket, "-f", "--", "true"]
            with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
                assert re.fullmatch(r"cage: \S+\n", client.stderr.readline())
                said = client.stderr.readline()
                assert "answers 503" in said and "asked again" in said, said
                (box,) = service.get(API).json["items"]
                shown = service.show(box["id"])
                assert shown["state"] == "creating" and "answers 503" in shown["message"] and "started_at" not in shown, shown
                is_busy.clear()
                assert client.communicate(timeout=60)[0] == lines().decode() and client.returncode == 0
            shown = service.show(box["id"])
            assert [h["state"] for h in shown["history"]] == ["queued", "creating", "running", "succeeded"] and "message" not in shown, shown


def test_one_whose_group_fails_has_never_run(tmp_path, monkeypatch):
    with Arm(script=lambda body: Script(fails="ImagePullFailed")) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        with Service(tmp_path, config_of(arm)) as service:
            box = service.wait(service.create(command=["true"]), "failed")
            assert [h["state"] for h in box["history"]] == ["queued", "creating", "failed"], box
            assert "started_at" not in box and "the group could not be made: ImagePullFailed" in box["message"], box


def test_what_the_service_refuses(tmp_path, monkeypatch):
    """A group is one command with small files to begin with: all else is told when it is asked for."""
    with Arm(script=lambda body: Script(LINES, 0.2)) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        with Service(tmp_path, config_of(arm)) as service:
            good = {"command": ["true"]}
            for more, pointer in (({"files": {"big": "x" * (1 << 20)}}, "/files"), ({"tools": ["shell_exec"]}, "/tools"), ({"keep": True}, "/keep"), ({"command": None}, "/command"),
                                  ({"publish": [{"port": 3000, "host_port": 8000}]}, "/publish")):
                answer = service.post(API, {k: v for k, v in {**good, **more}.items() if v is not None})
                assert answer.status == 422 and [e["pointer"] for e in answer.json["errors"]] == [pointer] and "one command" in answer.json["errors"][0]["detail"], answer.json
            step = {"id": "a", "sandbox": good, "artifacts": [{"path": "out"}]}
            answer = service.post(API.replace("sandboxes", "workflows"), {"steps": [step]})
            assert answer.status == 422 and "it hands on no artifacts" in answer.json["errors"][0]["detail"], answer
            assert not arm.groups and not arm.gone
            ident = service.create(**good, files={"dir/small": "hello"})
            assert service.wait(ident, "succeeded")["tools"] == []
        (group,) = arm.gone
        (files,) = (v["secret"]["files"] for v in group.body["properties"]["volumes"] if v["name"] == "files")
        assert b"dir/small\0" in base64.b64decode(files) and b"hello" in base64.b64decode(files)


def test_the_service_and_its_keeper_are_killed(tmp_path, monkeypatch):
    """The group of a keeper that was killed is removed by the next service."""
    with Arm(script=lambda body: Script(LINES, 1000)) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        service = Service(tmp_path, config_of(arm)).start()
        ident = service.create(command=["sleep", "1000"])
        wait_until(lambda: arm.groups, 30, "it is not made")
        service.kill()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            line = command_line(int(pid)) if is_alive(int(pid)) else [""]
            if os.path.basename(line[0]) in ("cage-keeper", "cage-aci") and any(ident in w for w in line):
                os.kill(int(pid), signal.SIGKILL)
        with service:
            assert service.wait(ident, "failed")["reason"] in ("keeper.gone", "keeper.failed", "room.failed")
            wait_until(lambda: not arm.groups, 60, "its group is left")


def test_a_service_of_another_machine_with_the_same_path(tmp_path, monkeypatch):
    """What one has left is not the other's to remove, though its state has the same name."""
    with Arm(script=lambda body: Script(LINES, 1000)) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        service = Service(tmp_path, config_of(arm)).start()

        def listed():
            line = [binary("cage"), "serve", "--state", service.state, "--config", service.config_path, "--backend", "aci", "--", "list"]
            return subprocess.run(line, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout.split()

        ident = service.create(command=["sleep", "1000"])
        wait_until(lambda: arm.groups, 30, "it is not made")
        service.kill()
        word = os.path.join(service.state, "id")
        assert listed() == [ident] and os.stat(word).st_mode & 0o777 == 0o600
        os.rename(service.state, service.state + ".first")
        assert listed() == [] and os.path.exists(word)
        shutil.rmtree(service.state)
        os.rename(service.state + ".first", service.state)
        with service:
            service.delete_all()
            wait_until(lambda: not arm.groups, 60, "its group is left")


# ---- Microsoft's description of the API

SPEC = os.environ.get("CAGE_ACI_SPEC", os.path.join(os.path.dirname(__file__), "..", "..", "..", "shared", "aci"))


def test_all_that_is_said_is_what_the_api_describes(tmp_path, pki):
    """Recorded, and read by Microsoft's own validator: requests of both topologies, and the answers of our stand-in."""
    oav = os.environ.get("CAGE_OAV")
    if not oav or not os.path.exists(os.path.join(SPEC, "tools", "validate-traffic.js")):
        pytest.skip("NOT TESTED: CAGE_OAV does not say where npm's oav is (./dev test --all does), or there is no description at " + SPEC)
    network = "/subscriptions/%s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/locked" % SUBSCRIPTION
    identity = "/subscriptions/%s/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i" % SUBSCRIPTION
    own = {"env": {"CAGE_REGISTRY_PASSWORD": "p", "PLAIN": "value-of-the-plain-one"}, "rules": policy(**VAULT_RULES)}
    topologies = {"group": ("--identity", identity, "--identity", identity + "2", "--identity-client", "c11e", "--registry", "r.azurecr.io"),
                  "confidential": ("--sku", "Confidential"), "password": ("--registry", "r.test", "--registry-username", "u"),
                  "reference": ("--identity", identity, "--vault-secrets", "reference")}
    with Arm(script=lambda body: Script(LINES, 0.3), starts_in=0.2) as arm, Gateway(tmp_path / "gateway", pki) as gateway:
        topologies["split"] = ("--identity", identity, "--registry", "r.azurecr.io", "--gateway-dns", "10.0.0.4:53", *gateway.aci_words())
        for name, options in topologies.items():
            with Aci(arm, tmp_path / name, "--subnet", network, *options, ident=name, **({"env": gateway.aci_env()} if name == "split" else own)) as aci:
                assert aci.put("a", b"b")[2] == "exit 0" and aci.run("true")[2] == "exit 0", aci.text()
                aci.end()
        assert words_of(arm, "list")[0] == 0
        arm.write_traffic(tmp_path / "traffic.jsonl")
    done = subprocess.run(["node", os.path.join(SPEC, "tools", "validate-traffic.js"), str(tmp_path / "traffic.jsonl")], capture_output=True, text=True, timeout=240,
                          env={**os.environ, "NODE_PATH": os.path.join(oav, "node_modules")}, check=False)
    assert done.returncode == 0 and done.stdout.rstrip().endswith(" 0 findings"), done.stdout[-4000:] + done.stderr[-1000:]


API_FILE = os.path.join(SPEC, "specification/containerinstance/resource-manager/Microsoft.ContainerInstance/ContainerInstance/stable", VERSION, "containerInstance.noexamples.json")


@pytest.mark.parametrize("topology", ["group", "split"])
def test_a_life_by_way_of_prism(tmp_path, monkeypatch, pki, topology):
    """A proxy that passes nothing but what the description has, in either direction, stands between cage-aci and the stand-in: a create, looks, logs, a stop,
    a removal, quotas and lists, without one error of its own."""
    if not os.environ.get("CAGE_PRISM") or not os.path.exists(API_FILE):
        pytest.skip("NOT TESTED: CAGE_PRISM does not say where npm's prism is (./dev test --all does), or there is no description at " + SPEC)
    for name, value in Gateway.aci_env().items():
        monkeypatch.setenv(name, value)
    with Arm("none", script=lambda body: Script(LINES, 0.5 if body["tags"]["cage.sandbox"] == "box" else 1000, 3, last=["bye"])) as arm, Gateway(tmp_path / "gateway", pki) as gateway:
        with Prism(API_FILE, arm.url, tmp_path / "prism") as prism:
            own = ("--endpoint", prism.url, *(gateway.aci_words() if topology == "split" else ()))
            with Aci(arm, tmp_path / "a", *own) as aci:
                assert aci.put("file", b"text")[2] == "exit 0"
                assert aci.run("true") == (lines(), b"", "exit 3") and aci.end() == 0, aci.text() + prism.text()
            with Aci(arm, tmp_path / "b", *own, "--sku", "Confidential", ident="other") as aci:
                aci.send(b"R", 1, b"\0true\0")
                wait_until(lambda: was_read(arm, "cage-other"), 20, "it does not run")
                assert set(words_of(arm, *own, "list")[1].split()) == {"other"}
                aci.send(b"K", 1)
                out, _, how = aci.until_done(1)
                assert (out[-4:], how) == (b"bye\n", "exit 143") and aci.process.wait(30) == 0, aci.text() + prism.text()
            assert words_of(arm, *own, "list") == (0, "", "")
            asked, text = {(t["liveRequest"]["method"], t["liveRequest"]["url"].split("?")[0].rsplit("/", 1)[1]) for t in arm.traffic}, prism.text()
    assert {("PUT", "cage-box"), ("GET", "cage-box"), ("DELETE", "cage-box"), ("GET", "logs"), ("GET", "usages"), ("POST", "stop"), ("GET", "containerGroups")} <= asked, asked
    text = "".join(line for line in text.splitlines(True) if "/Microsoft.Insights/" not in line)  # of which that description has nothing
    assert "Received forward response" in text and not re.search("VALIDATOR|violation|\u2716|\u26a0", text), text[-4000:]


@pytest.mark.parametrize("status", ["400", "401", "403"])
def test_a_token_that_is_refused_is_asked_for_once(status):
    """What can't become better by waiting is told at once, with who was asked."""
    with Arm(trouble=lambda method, path, count: status if path.endswith("/oauth2/token") else None) as arm:
        code, _, err = words_of(arm, "check")
        assert code == 1 and "no token for https://management.azure.com by the machine's identity: status " + status in err, err
        assert len(arm.asked) == 1, arm.asked
        code, _, err = words_of(arm, "--credentials", "secret", "check")
        assert code == 1 and "AZURE_TENANT_ID and AZURE_CLIENT_ID have to be set" in err and len(arm.asked) == 1, err


def unused_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.parametrize("what", ["endpoint", "token", "silent"])
def test_an_azure_that_can_not_be_reached(what):
    """Said after the first try, and once; a check does not go on for long."""
    nobody = "127.0.0.1:%d" % unused_port()
    with Arm(trouble=lambda method, path, _: "stall" if what == "silent" and "oauth2" not in path else None) as arm:
        env = {**os.environ, **arm.env(), **({"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://" + nobody} if what == "token" else {})}
        words = arm.words("--state", "test", *(("--endpoint", "http://" + nobody) if what == "endpoint" else ()))
        done = subprocess.run([small(), *words, "check"], capture_output=True, text=True, timeout=60, env=env, check=False)
        arm.over.set()
    *again, last = done.stderr.splitlines()
    assert done.returncode == 1 and "resource group cage-test: " in last, done.stderr
    if what == "silent":
        assert not again and "has not answered in 5 s" in last, done.stderr
    else:
        (line,) = again
        assert nobody + " can't be reached: " in line and line.endswith(": asked again") and nobody + " can't be reached" in last, done.stderr
        assert ("no token for " in line) == (what == "token"), line


@pytest.mark.parametrize("quoted, is_shown", [("invalid_client", True), ("thesecretofaclient", False), ("of thesecretofaclient", False), ("\u001b[31mred", False), ("x" * 81, False)])
def test_what_is_shown_of_a_refused_token(monkeypatch, quoted, is_shown):
    """The code of the error, and nothing that was sent."""
    monkeypatch.setattr(Handler, "token", lambda self, *_: (400, {"error": quoted, "error_description": "no: thesecretofaclient"}, {}))
    for name, value in {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "thesecretofaclient"}.items():
        monkeypatch.setenv(name, value)
    with Arm() as arm:
        code, _, err = words_of(arm, "--credentials", "secret", "check")
    assert code == 1 and "by a client's secret: status 400" in err and (", " + quoted in err) == is_shown and "thesecretofaclient" not in err, err


# ---- whose is it, and what is shown of it

def group_of(name, tags):
    return Group(name, {"location": "westeurope", "tags": tags, "properties": {"containers": []}}, Script([], 100), 0)


@pytest.mark.parametrize("tags", [{"cage.sandbox": "victim", "cage.state": "prod"}, {"cage.sandbox": "other", "cage.state": "test"}, {"cage.sandbox": "victim"}, {}])
def test_remove_leaves_the_group_of_somebody_else(tags):
    with Arm() as arm:
        arm.groups["cage-victim"] = group_of("cage-victim", tags)
        code, _, err = words_of(arm, "remove", "victim")
        assert code == 1 and "cage-victim is not removed" in err, err
        assert list(arm.groups) == ["cage-victim"] and not [m for m, _ in arm.asked if m == "DELETE"]
        assert words_of(arm, "remove", "nobody")[0] == 0 and words_of(arm, "list")[:2] == (0, "")


def test_remove_of_what_can_not_be_read():
    own = {"cage.sandbox": "box", "cage.state": "test"}
    with Arm(trouble=trouble(("GET", "/cage-box", range(1, 1000), "500"))) as arm:
        arm.groups["cage-box"] = group_of("cage-box", own)
        assert words_of(arm, "remove", "box")[0] == 1 and list(arm.groups) == ["cage-box"]
    with Arm() as arm:
        arm.groups["cage-box"] = group_of("cage-box", own)
        assert words_of(arm, "list")[:2] == (0, "box\n") and words_of(arm, "remove", "box")[0] == 0 and not arm.groups


def test_list_has_no_group_of_another_name():
    """Its tags say the id of a sandbox, and by that id another would be removed."""
    with Arm() as arm:
        for name in ("anything", "cage-victim2", "CAGE-victim"):
            arm.groups[name] = group_of(name, {"cage.sandbox": "victim", "cage.state": "test"})
        assert words_of(arm, "list")[:2] == (0, "")


SAID = "(left out: it holds a secret)"
SECRETS = {"MY_KEY": 'sk-real+"secret"-value-123'}


def quoted_by(what, handler, body):
    """All that a request has which nobody may see, or its parts."""
    own = body["properties"]
    values = [v["secureValue"] for c in own["containers"] for v in c["properties"].get("environmentVariables", []) if "secureValue" in v]
    texts = {"token": [handler.headers["Authorization"]], "password": [x["password"] for x in own.get("imageRegistryCredentials", [])], "secret": values,
             "escaped secret": [json.dumps(json.dumps(values)).replace("+", "\\u002B")], "volume secret": [t for v in own["volumes"] for t in v.get("secret", {}).values()],
             "secret in an address": [urllib.parse.quote(urllib.parse.quote(v, safe=""), safe="") for v in values],
             "secret in base64": [base64.b64encode(before + v.encode()).decode() for v in values for before in (b"", b"u:", b"user:")],
             "token in base64": [base64.urlsafe_b64encode(b"t=" + handler.headers["Authorization"].encode()).decode()]}[what]
    assert texts and all(texts)
    return texts


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("what", ["token", "password", "secret", "escaped secret", "volume secret", "secret in an address", "secret in base64", "token in base64"])
def test_a_secret_that_an_answer_quotes_is_not_shown(tmp_path, what, late):
    """In a refusal, or later in the status of the operation; also where the cut of a long message would leave the half of it."""
    told, wrong = [], []

    def answer(handler, path, _query, body, _now):
        if handler.command == "PUT" and "containerGroups" in path:
            told[:] = quoted_by(what, handler, body)
            wrong.append({"code": "InvalidTemplate", "message": "x" * 380 + " ".join(told)})
            if not late:
                return 400, {"error": wrong[-1]}, {}
            return 201, {"properties": {"provisioningState": "Pending"}}, {"Azure-AsyncOperation": arm.url + "/lies?api-version=x"}
        if path == "/lies":
            return 200, {"status": "Failed", "error": wrong[-1]}, {}
        return None
    rules = policy({"id": "w", "hosts": ["a.test"], "secrets": ["s"]}, secrets=[{"id": "s", "from": {"env": "MY_KEY"}}])
    with Arm() as arm:
        arm.more.append(answer)
        with Aci(arm, tmp_path, "--registry", "r.azurecr.io", "--registry-username", "puller", env={**SECRETS, "CAGE_REGISTRY_PASSWORD": "reg-Passw0rd-1"}, rules=rules) as aci:
            aci.send(b"R", 1, b"\0true\0")
            aci.process.wait(60)
            text = aci.text()
    assert told and SAID in text and "xxx" not in text, text
    assert not [t for t in (*told, "reg-Pass", "sk-real", "eyJ0") if t in text], text
