"""The warm pool of cage serve: rooms that stand ready, each given away once."""
import concurrent.futures
import json
import os
import random
import signal
import time

import pytest

from cagelib.proxy import is_alive, wait_until
from cagelib.service import API, ENDED, Service

SMALL = {"memory": "128MiB", "disk": "16MiB"}
WARM = 2


def config(profile=None, warm=WARM, **more):
    return {"profiles": {"p": {"limits": SMALL, "lifetime": "10m", "warm": warm, **(profile or {})}},
            "limits": {"running": 20, "starts": "100/s", **more.pop("limits", {})}, **more}


def standing(service):
    return service.get("/healthz").json["warm"]["standing"]


def wait_full(service, n=WARM):
    wait_until(lambda: standing(service) == n, 60, "rooms are missing")


def ready(service):
    """The ids of those that stand: directories without a record."""
    known = {box["id"] for box in service.get(API + "?limit=1000").json["items"]}
    return set(os.listdir(os.path.join(service.state, "sandboxes"))) - known


def drained(service):
    """No service any more: the standing ones end by themselves with it, or with the next sweep."""
    wait_until(lambda: not service.keepers(), 60, "keepers are left")


@pytest.fixture
def make(tmp_path):
    made = []

    def start(given=None, **more):
        service = Service(tmp_path, given or config(), **more).start()
        made.append(service)
        return service
    yield start
    for service in made:
        if service.process.poll() is None:
            for box in service.get(API + "?limit=1000").json["items"]:
                service.request("DELETE", API + "/" + box["id"])
            wait_until(lambda s=service: all(b["state"] == "deleted" for b in s.get(API + "?limit=1000").json["items"]), 60, "sandboxes are left")
        service.stop()
        drained(service)


def reasons(box):
    return [(h["state"], h["reason"]) for h in box["history"]]


def is_warm(box):
    return ("creating", "warm") in reasons(box)


# ---- given

@pytest.mark.cgroups
def test_one_that_is_given_is_as_any_other(make):
    """Files, variables, command, output, tools, what is kept: and the record is that of a sandbox of its own."""
    service = make()
    wait_full(service)
    before = ready(service)
    assert len(before) == WARM and service.get(API).json["items"] == []
    ident = service.create(profile="p", command=["sh", "-c", "cat in/a; echo $X; echo bad >&2; echo made > out; pwd"], files={"in/a": "text\n"},
                           env={"X": "a value"}, labels={"team": "a"}, keep=True, limits={"wall_seconds": 30}, lifetime_seconds=300)
    assert ident in before
    box = service.wait(ident, *ENDED)
    assert (box["state"], box["exit_code"]) == ("succeeded", 0), box
    assert reasons(box) == [("queued", "created"), ("creating", "warm"), ("running", "started"), ("succeeded", "exit")]
    assert box["labels"] == {"team": "a"} and box["keep"] and box["profile"] == "p"
    assert service.output(ident, "stdout") == b"text\na value\n/workspace\n" and service.output(ident, "stderr") == b"bad\n"
    assert service.get("%s/%s/files/out" % (API, ident)).body == b"made\n"


def test_a_step_of_a_workflow(make):
    """What it hands on is asked for when the room stands already."""
    service = make()
    wait_full(service)
    steps = [{"id": "a", "sandbox": {"profile": "p", "command": ["sh", "-c", "echo made > out"]}, "artifacts": [{"path": "out", "max_bytes": 100}]},
             {"id": "b", "needs": ["a"], "sandbox": {"command": ["grep", "made", "in"]}, "inputs": [{"step": "a", "path": "out", "to": "in"}]}]
    flow = "/api/v1/workflows/" + service.post("/api/v1/workflows", {"steps": steps}).json["id"]
    wait_until(lambda: service.get(flow).json["state"] in ("succeeded", "failed"), 60, "it does not end")
    assert [s["state"] for s in service.get(flow).json["steps"]] == ["succeeded", "succeeded"], service.get(flow).json
    assert is_warm(service.show(service.get(flow).json["steps"][0]["sandbox"]))


def test_tools_of_one_that_idles(make):
    service = make()
    wait_full(service)
    ident = service.idle(profile="p", tools=["shell_exec", "file_read"], blocked_commands=["^secret"], env={"HOME": "/workspace", "N": "1"})
    assert is_warm(service.show(ident))
    assert service.result(ident, "shell_exec", command="echo $N $HOME")["stdout"] == "1 /workspace\n"
    assert service.tool(ident, "file_write", path="a", content="b").status == 403
    assert service.tool(ident, "shell_exec", command="secret").json["reason"] == "tool.command"
    assert service.post("%s/%s/verify" % (API, ident), None).json["closed"]


def test_variables_mean_the_same_as_in_one_that_is_started(make):
    """Also those that a room has itself."""
    service = make()
    wait_full(service)
    env = {"PATH": "/usr/bin:/bin", "HOME": "/workspace", "LANG": "C", "EMPTY": "", "LINES2": "a\nb=c"}
    body = {"profile": "p", "env": env, "command": ["sh", "-c", "env | sed s/cage-run[.][A-Za-z0-9_]*/RUN/g | sort"]}
    warm, cold = service.create(**body), service.create(**body, publish=[{"port": 9000}])
    first, second = (service.wait(i, *ENDED) for i in (warm, cold))
    assert is_warm(first) and not is_warm(second)
    assert service.output(warm) == service.output(cold) != b""


def test_bounds_of_the_create_hold(make):
    service = make()
    wait_full(service)
    late = service.wait(service.create(profile="p", command=["sleep", "60"], limits={"wall_seconds": 1}), *ENDED)
    assert is_warm(late) and (late["state"], late["reason"]) == ("timed_out", "time.wall")
    wait_full(service)
    much = service.create(profile="p", command=["sh", "-c", "yes | head -c 100000"], limits={"output_bytes": 1000})
    assert is_warm(service.wait(much, *ENDED)) and len(service.output(much)) == 1000
    wait_full(service)
    idle = service.wait(service.create(profile="p", lifetime_seconds=2), *ENDED)
    assert is_warm(idle) and (idle["state"], idle["reason"]) == ("timed_out", "time.lifetime")


def test_time_that_it_stood_is_not_counted(make):
    service = make()
    wait_full(service)
    stood = time.monotonic()
    wait_until(lambda: time.monotonic() - stood > 3, 10, "time stands still")
    box = service.wait(service.create(profile="p", command=["true"]), *ENDED)
    assert is_warm(box) and box["usage"]["wall_seconds"] < 2
    total = service.get("/api/v1/usage").json["items"]
    assert [row["sandboxes"] for row in total] == [1] and total[0]["wall_seconds"] < 2


def test_the_same_key_gets_the_same_one(make):
    service = make()
    wait_full(service)
    answers = [service.post(API, {"profile": "p", "command": ["true"]}, headers={"Idempotency-Key": "k"}) for _ in range(3)]
    assert [a.status for a in answers] == [201] * 3 and len({a.json["id"] for a in answers}) == 1
    assert len(service.get(API).json["items"]) == 1


# ---- never twice

def test_none_is_shared(make):
    """More at once than there are: each finds nothing of another's."""
    service = make(config(warm=3))
    wait_full(service, 3)
    command = ["sh", "-c", "ls -A /workspace /tmp /dev/shm | grep mark; echo mark > mark; touch /tmp/mark; sleep 0.2; ls -A /workspace"]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        idents = list(pool.map(lambda _: service.create(profile="p", command=command), range(6)))
    assert len(set(idents)) == 6
    boxes = [service.wait(i, *ENDED) for i in idents]
    assert all(b["state"] == "succeeded" for b in boxes), boxes
    assert sum(map(is_warm, boxes)) >= 3
    assert {service.output(i) for i in idents} == {b"mark\n"}
    wait_full(service, 3)
    assert not ready(service) & set(idents)


def test_killed_around_the_giving(make):
    """Whatever the service had done by then: each that was answered runs once, and none is given again."""
    service = make(config(warm=3))
    seen = {}
    rng = random.Random(20)
    for turn in range(8):
        wait_full(service, 3)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            def ask(n, turn=turn):
                try:
                    answer = service.post(API, {"profile": "p", "labels": {"n": "%d-%d" % (turn, n)}, "keep": True, "files": {"who": "%d-%d" % (turn, n)},
                                                "command": ["sh", "-c", "echo run >> runs; cat who; wc -l < runs"]})
                except (OSError, ValueError):
                    return None
                return answer.json["id"] if answer.status == 201 else None
            asked = [pool.submit(ask, n) for n in range(3)]
            time.sleep(rng.random() * 0.05)  # when it is killed is what is tried, nothing is waited for
            service.kill()
            idents = [f.result() for f in asked]
        service.start()
        for n, ident in enumerate(idents):
            assert ident is None or seen.setdefault(ident, "%d-%d" % (turn, n)) == "%d-%d" % (turn, n)
        for box in service.get(API + "?limit=1000").json["items"]:
            seen.setdefault(box["id"], box["labels"]["n"])
            assert seen[box["id"]] == box["labels"]["n"]
    for ident, who in seen.items():
        box = service.wait(ident, *ENDED)
        assert box["state"] == "succeeded", box
        assert service.output(ident) == b"%s1\n" % who.encode(), box


# ---- others go the usual way

@pytest.mark.parametrize("more", [
    {"limits": {"memory": 64 << 20}}, {"limits": {"egress_bytes": 5}}, {"network": {"mode": "allowlist", "domain_allowlist": ["example.com"]}},
    {"policy": {"inline": "version: 1\nname: x\n"}}, {"publish": [{"port": 9000}]}, {"lifetime_seconds": 601}, {"env": {"LONG": "x" * 40000}},
], ids=lambda m: next(iter(m)))
def test_another_room_is_made(make, more):
    service = make()
    wait_full(service)
    before = ready(service)
    box = service.wait(service.create(profile="p", command=["true"], **more), *ENDED)
    assert box["state"] == "succeeded" and not is_warm(box) and box["id"] not in before
    assert before <= ready(service)


def test_quotas_and_places_hold(make):
    """Who has to wait for a turn takes no room that stands."""
    service = make(config(limits={"running": 2}, quotas=[{"label": "team", "running": 1}]))
    wait_full(service)
    first = service.idle(profile="p", labels={"team": "a"})
    wait_full(service)
    waits = service.create(profile="p", labels={"team": "a"})
    assert service.show(waits)["state"] == "queued"
    other = service.idle(profile="p", labels={"team": "b"})
    assert is_warm(service.show(first)) and is_warm(service.show(other))
    wait_full(service)
    third = service.create(profile="p", labels={"team": "c"})
    assert service.show(third)["state"] == "queued" and service.get("/healthz").json["running"] == 2
    service.request("DELETE", API + "/" + first)
    assert not is_warm(service.wait(waits, "running"))


# ---- what they are made of

def test_those_of_another_policy_are_ended(make, tmp_path):
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "web.yaml").write_text("version: 1\nname: one\n")
    service = make(config({"policy": {"name": "web"}}, policies=str(policies)))
    wait_full(service)
    old = ready(service)
    assert service.create(profile="p", command=["true"]) in old
    wait_full(service)
    old = ready(service)
    (policies / "web.yaml").write_text("version: 1\nname: two\n")
    box = service.wait(service.create(profile="p", command=["true"]), *ENDED)
    assert box["id"] not in old and not is_warm(box) and box["state"] == "succeeded"
    wait_until(lambda: not old & ready(service), 60, "old ones stand")
    wait_full(service)
    assert is_warm(service.wait(service.create(profile="p", command=["true"]), *ENDED))


def test_those_of_another_configuration_are_ended(make):
    """With the service that has made them, killed or not."""
    service = make()
    wait_full(service)
    old, keepers = ready(service), service.keepers()
    service.kill()
    assert all(is_alive(p) for p in keepers)
    with open(service.config_path, "w", encoding="utf-8") as f:
        json.dump({"version": 1, **config({"limits": {**SMALL, "pids": 32}})}, f)
    service.start()
    wait_full(service)
    wait_until(lambda: not any(is_alive(p) for p in keepers), 60, "old ones stand")
    box = service.wait(service.create(profile="p", command=["true"]), *ENDED)
    assert is_warm(box) and box["id"] not in old and box["limits"]["pids"] == 32


def test_those_that_are_being_made_end_with_the_service(tmp_path):
    """At whatever moment it is ended: while their keepers do not answer yet, too."""
    for i in range(8):
        directory = tmp_path / str(i)
        directory.mkdir()
        service = Service(directory, config()).start()
        wait_until(lambda: len(os.listdir(os.path.join(service.state, "sandboxes"))) > 0, 30, "none is begun")
        service.stop()
        drained(service)


def test_old_ones_are_replaced(make):
    service = make(config(limits={"warm_age": "3s"}))
    wait_full(service)
    old = ready(service)
    wait_until(lambda: not old & ready(service), 60, "old ones stand")
    wait_full(service)


# ---- those that die

def test_killed_ones_are_replaced(make):
    service = make()
    wait_full(service)
    for pid in service.keepers():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: standing(service) == 0, 30, "dead ones count")
    wait_full(service)
    assert "another is made in 1 s" in service.err.text()
    assert service.wait(service.create(profile="p", command=["true"]), *ENDED)["state"] == "succeeded"


def test_one_that_is_dead_when_it_is_given(make):
    """Nobody has seen yet that its keeper is dead: the sandbox is started anew, under the same id."""
    service = make(config(warm=1))
    wait_full(service, 1)
    keeper, = service.keepers()
    os.kill(keeper, signal.SIGSTOP)
    ident = service.create(profile="p", command=["sh", "-c", "cat a; echo $X"], files={"a": "b"}, env={"X": "y"})
    os.kill(keeper, signal.SIGKILL)
    box = service.wait(ident, *ENDED)
    assert is_warm(box) and (box["state"], box["reason"]) == ("succeeded", "exit"), box
    assert service.output(ident) == b"by\n" and "is started anew" in service.err.text()


def test_a_profile_that_can_not_be_made_is_not_tried_without_a_pause(make, tmp_path):
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "web.yaml").write_text("version: 1\nname: one\n")
    service = make(config({"policy": {"name": "web"}}, policies=str(policies)))
    wait_full(service)
    (policies / "web.yaml").write_text("version: 1\nname: [\n")
    for pid in service.keepers():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "is made in 4 s" in service.err.text(), 60, "it is not tried again")
    assert len(service.err.text().split("is lost")) <= 10


# ---- the configuration

@pytest.mark.parametrize("profiles, said", [
    ({"p": {"warm": 0}}, "warm"), ({"p": {"warm": 65}}, "warm"), ({"p": {"warm": "x"}}, "warm"),
    ({"p%d" % i: {"warm": 64} for i in range(5)}, "expected at most 256 of all profiles"),
])
def test_counts_that_are_wrong(tmp_path, profiles, said):
    import subprocess
    from cagelib.proxy import binary
    path = tmp_path / "serve.yaml"
    path.write_text(json.dumps({"version": 1, "state": str(tmp_path / "s"), "profiles": profiles}))
    done = subprocess.run([binary("cage"), "serve", "--check", "--config", str(path)], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2 and said in done.stderr, done


def test_a_stopped_service_leaves_none(make):
    service = make()
    wait_full(service)
    service.stop()
    drained(service)
