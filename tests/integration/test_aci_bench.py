"""cage bench aci against a stand-in for Azure: what it measures, what it asks before, and that it leaves nothing behind."""
import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading

import pytest

from cagelib.aci import IMAGES, small
from cagelib.arm import GROUP, SUBSCRIPTION, Arm, Script
from cagelib.proxy import SANITIZER, binary, wait_until

READY = [(0.05, "ready")]
PRICES = ["--vcpu-second", "0.0000135", "--gb-second", "0.0000015", "--currency", "EUR"]
PHASES = ["accepted", "pulling", "pulled", "started", "line", "gone"]


def words_of(arm, *words, options=PRICES):
    return [small(), *arm.words("--region", "westeurope", "--state", "test", *options), *IMAGES, *words]


def start(arm, *words, **more):
    return subprocess.Popen(words_of(arm, "bench", *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **arm.env()}, **{"stdin": subprocess.DEVNULL, **more})


def bench(arm, *words, code=0, **more):
    process = start(arm, *words, **more)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code and not SANITIZER.search(err), (process.returncode, out, err)
    return out, err


def test_phases(tmp_path):
    """One after the other: each is gone before the next is made. What was told of each phase is what Azure has told."""
    most = []
    with Arm(starts_in=0.3) as arm:
        def script(body):
            most.append(len(arm.groups))
            return Script(READY, 0.3)

        arm.script = script
        said = json.loads(bench(arm, "--runs", "3", "--yes", "--json")[0])
        assert (said["runs"], said["failed"], said["region"], most) == (3, 0, "westeurope", [0, 0, 0])
        for group, row in zip(arm.gone, said["each"]):
            assert [row[p] for p in PHASES[1:5]] == sorted(row[p] for p in PHASES[1:5]) and group.name == "cage-" + row["id"] and group.puts == 1
            assert row["started"] - row["pulling"] == pytest.approx(0.8 * 0.3, abs=0.001) and row["line"] - row["started"] == pytest.approx(0.05, abs=0.001)
            assert group.body["tags"] == {"cage.sandbox": row["id"], "cage.state": "test.bench"}
            assert group.body["properties"]["containers"][0]["properties"]["command"][-2:] == ["echo", "ready"]
        assert all(said["phases"][p]["n"] == 3 and said["phases"][p]["min"] <= said["phases"][p]["median"] <= said["phases"][p]["p95"] <= said["phases"][p]["max"] for p in PHASES)
        assert not arm.groups and said["phases"]["gone"]["min"] >= 0.05


def test_cost_and_table(tmp_path):
    """1.5 vCPU and 1.6 GB: 22650 nano a second, exactly. Several at a time, and no more than that."""
    most = []
    with Arm(starts_in=0.1) as arm:
        def script(body):
            most.append(len(arm.groups) + 1)
            return Script(READY, 0.2)

        arm.script = script
        out, err = bench(arm, "--runs", "7", "--parallel", "3", "--yes")
        assert [line.split()[0] for line in out.splitlines()] == ["PHASE", *PHASES, "billed"] and len(arm.gone) == 7 and max(most) == 3
        seconds, amount = re.search(r"billed +(\d+) s, ([\d.]+) EUR", out).groups()
        assert amount == "0.%09d" % (22650 * int(seconds)) and int(seconds) >= 7
        assert "7 groups in westeurope, each of 1.50 vCPU and 1.60 GB" in err
        assert "costs %.4f EUR if each takes a minute, and %.4f at the most" % (7 * 60 * 22650 / 1e9, 7 * 600 * 22650 / 1e9) in err


def test_without_prices(tmp_path):
    with Arm(script=lambda body: Script(READY, 0.2)) as arm:
        done = subprocess.run(words_of(arm, "bench", "--runs", "1", "--yes", "--json", options=()), capture_output=True, text=True, timeout=60, env={**os.environ, **arm.env()}, check=False)
        assert done.returncode == 0 and "cost" not in json.loads(done.stdout) and "no prices are configured" in done.stderr


# ---- before it begins

def test_nobody_can_be_asked(tmp_path):
    with Arm() as arm:
        assert "--yes is needed" in bench(arm, code=2)[1] and not arm.gone and not any(m == "PUT" for m, _ in arm.asked)


@pytest.mark.parametrize("answer, made", [(b"y\n", 1), (b"n\n", 0), (b"\n", 0), (b"\x04", 0)])
def test_somebody_is_asked(tmp_path, answer, made):
    with Arm(script=lambda body: Script(READY, 0.2)) as arm:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(words_of(arm, "bench", "--runs", "1"), stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, env={**os.environ, **arm.env()})
        os.close(theirs)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(ours, 1000)
        os.write(ours, answer)
        process.stdout.read()
        assert process.wait(30) == (0 if made else 2) and len(arm.gone) == made and b"EUR" in said
        process.stdout.close()
        os.close(ours)


@pytest.mark.parametrize("words", [("--runs", "101"), ("--runs", "-1"), ("--runs", "x"), ("--parallel", "0"), ("--parallel", "11"), ("--nosuch",), ("--runs",)])
def test_wrong_usage(tmp_path, words):
    with Arm() as arm:
        _, err = bench(arm, "--yes", *words, code=2)
        assert arm.asked == [] and "%s: " % words[0] in err and "cage bench aci --help lists all options" in err, err


def test_help(tmp_path):
    with Arm() as arm:
        assert "--parallel N" in bench(arm, "--help")[0]
    for line in (["bench", "--help"], ["bench", "aci", "--help"], ["help", "bench"]):
        done = subprocess.run([binary("cage"), *line], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0 and "--config FILE" in done.stdout and done.stderr == ""
    for line in (["bench"], ["bench", "podman"], ["bench", "aci", "--config"]):
        assert subprocess.run([binary("cage"), *line], capture_output=True, timeout=30, check=False).returncode == 2


def test_without_a_configuration():
    """It is said what is missing, and not what comes of that."""
    for more in ((), ("--runs", "1"), ("--state", "/tmp"), ("--", "echo", "--config", "x")):
        done = subprocess.run([binary("cage"), "bench", "aci", *more], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 2 and done.stderr.startswith("cage: bench: --config FILE is needed"), done


def test_a_price_with_a_comma():
    with Arm() as arm:
        done = subprocess.run(words_of(arm, "bench", options=("--vcpu-second", "0,0000135")), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "--vcpu-second: expected a price such as 2 or 0.0000135, with a dot in the place of the comma" in done.stderr, done


# ---- what goes wrong

FAILURES = {"exit": (Script(READY, 0.2, 78), "ended with 78"), "no code": (Script(READY, 0.2, None), "no exit code"), "silent": (Script((), 0.1), "printed nothing"), "region": (Script(READY, 1, fails="ServiceUnavailable"), "failed")}


@pytest.mark.parametrize("script, why", FAILURES.values(), ids=FAILURES.keys())
def test_groups_that_fail_are_removed(tmp_path, script, why):
    """And are in no figure; the others are."""
    number = []

    def one(body):
        number.append(1)
        return script if len(number) == 1 else Script(READY, 0.2)

    with Arm(script=one) as arm:
        out, err = bench(arm, "--runs", "3", "--parallel", "3", "--yes", "--json", code=1)
        said = json.loads(out)
        assert said["failed"] == 1 and why in err and [r for r in said["each"] if "failed" in r][0]["failed"] in err
        assert said["phases"]["line"]["n"] == said["phases"]["gone"]["n"] == 2 and len(arm.gone) == 3 and not arm.groups


@pytest.mark.parametrize("trouble", ["429", "lose", "400"])
def test_a_put_in_trouble(tmp_path, trouble):
    """Refused for now: it is sent again. Lost or refused: it has failed, and whatever was made of it is removed."""
    with Arm(script=lambda body: Script(READY, 0.2), trouble=lambda method, path, count: trouble if method == "PUT" and count == 1 else None) as arm:
        said = json.loads(bench(arm, "--runs", "2", "--yes", "--json", code=0 if trouble == "429" else 1)[0])
        assert said["failed"] == (0 if trouble == "429" else 1) and not arm.groups and all(g.puts == 1 for g in arm.gone)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_removes_all(tmp_path, number):
    with Arm(script=lambda body: Script((), 1000)) as arm:
        process = start(arm, "--runs", "20", "--parallel", "4", "--yes")
        wait_until(lambda: len(arm.groups) == 4, 30, "they are not made")
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1 and "removes what it has made" in err and not arm.groups and len(arm.gone) == 4 and not SANITIZER.search(err)


def test_a_stop_while_a_put_is_answered_late(tmp_path):
    """A removal that overtakes it would find nothing, and the group would stay."""
    asked, go = threading.Event(), threading.Event()

    class Late(Arm):
        def finish_request(self, request, client_address):
            if asked.is_set() or b"PUT" not in request.recv(3, socket.MSG_PEEK):
                return super().finish_request(request, client_address)
            asked.set()
            assert go.wait(30)
            return super().finish_request(request, client_address)

    with Late(script=lambda body: Script((), 1000)) as arm:
        process = start(arm, "--runs", "3", "--yes")
        assert asked.wait(30)
        process.send_signal(signal.SIGINT)
        said = process.stderr.readline()
        while "removes what it has made" not in said:
            said = process.stderr.readline()
        assert not any(m == "DELETE" for m, _ in arm.asked)
        go.set()
        process.communicate(timeout=60)
        assert process.returncode == 1 and not arm.groups and [g.puts for g in arm.gone] == [1]


def test_what_a_killed_one_left_is_removed_by_the_next(tmp_path):
    """The list has them by their tag, and no service takes them for its own."""
    with Arm(script=lambda body: Script((), 1000)) as arm:
        process = start(arm, "--runs", "4", "--parallel", "4", "--yes")
        wait_until(lambda: len(arm.groups) == 4, 30, "they are not made")
        process.kill()
        process.communicate(timeout=30)
        names = set(arm.groups)

        def listed(state):
            done = subprocess.run([small(), *arm.words("--state", state), "list"], capture_output=True, text=True, timeout=30, env={**os.environ, **arm.env()}, check=True)
            return {"cage-" + word for word in done.stdout.split()}

        assert listed("test.bench") == names and listed("test") == set()
        err = bench(arm, "--runs", "0")[1]
        assert err.count("was left by a bench before") == 4 and not arm.groups and {g.name for g in arm.gone} == names


# ---- by the configuration of a service

@pytest.mark.parametrize("between", [" ", "="])
def test_with_the_configuration_of_a_service(tmp_path, monkeypatch, between):
    with Arm(script=lambda body: Script(READY, 0.5)) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        config = {"version": 1, "backends": {"aci": {
            "subscription": SUBSCRIPTION, "group": GROUP, "regions": ["westeurope", "northeurope"], "credentials": "identity", "endpoint": arm.url,
            "prices": {"vcpu_second": "0.5", "gb_second": "0", "currency": "EUR"}, **dict(zip(("image", "proxy_image", "dns_image", "gate_image"), IMAGES[1::2]))}}}
        (tmp_path / "serve.yaml").write_text(json.dumps(config))
        own = [w for option, name in (("--config", "serve.yaml"), ("--state", "s")) for w in (option + between + str(tmp_path / name)).split(" ")]
        done = subprocess.run([binary("cage"), "bench", "aci", "--yes", *own, "--runs", "1", "--json", "--", "echo", "--config"], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done
        said = json.loads(done.stdout)
        assert said["cost"] == {"amount": 0.75 * said["billed_seconds"], "currency": "EUR"} and said["runs"] == 1
        (group,) = arm.gone
        assert re.fullmatch(r"[0-9a-f]{16}\.bench", group.body["tags"]["cage.state"]) and group.body["properties"]["containers"][0]["properties"]["command"][-2:] == ["echo", "--config"]
        done = subprocess.run([binary("cage"), "serve", *own, "--backend", "aci", "--", "list"], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "")
        for words in (["--backend", "podman", "--", "list"], ["--backend", "aci"], ["--backend", "local", "--", "list"]):
            assert subprocess.run([binary("cage"), "serve", *own, *words], capture_output=True, timeout=60, check=False).returncode == 2
