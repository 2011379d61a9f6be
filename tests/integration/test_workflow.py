"""Workflows of cage serve: steps with real rooms, what they hand on, and what is left of them when the service is killed."""
import base64
import hashlib
import os
import random
import subprocess
import time

import pytest

from cagelib.proxy import wait_until
from cagelib.service import API, Service
from cagelib.workflows import OVER, WORKFLOWS, artifact, begin, of, run, sandboxes, show, states, step, wait


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("serve"), config={"limits": {"starts": "100/s"}}) as running:
        yield running


# ---- what follows what

def test_a_diamond(service):
    """Each begins when all that it needs has succeeded, and what is handed on is what was made."""
    workflow = run(service,
                   step("d", "cat left.txt right.txt > both", needs=["b", "c"], artifacts=["both"], inputs=[("b", "out/x", "left.txt"), ("c", "x", "right.txt")]),
                   step("b", "mkdir out; sed s/a/b/ seed > out/x", needs=["a"], artifacts=["out/x"], inputs=[("a", "seed")]),
                   step("c", "sed s/a/c/ in/it > x", needs=["a"], artifacts=[("x", 100)], inputs=[("a", "seed", "in/it")]),
                   step("a", "echo a > seed", artifacts=["seed"]),
                   name="diamond", labels={"team": "x"})
    assert workflow["state"] == "succeeded" and set(states(workflow).values()) == {"succeeded"}, workflow
    assert (workflow["name"], workflow["labels"]) == ("diamond", {"team": "x"})
    got = artifact(service, workflow["id"], "d", "both")
    assert got.status == 200 and got.body == b"b\nc\n"
    digest = hashlib.sha256(got.body).digest()
    assert got.headers["Repr-Digest"] == "sha-256=:%s:" % base64.b64encode(digest).decode()
    assert of(workflow, "d")["artifacts"] == [{"path": "both", "size": 4, "sha256": digest.hex()}]
    assert artifact(service, workflow["id"], "b", "out/x").body == b"b\n"
    began, ended = ({s["id"]: s[k] for s in workflow["steps"]} for k in ("started_at", "ended_at"))
    assert ended["a"] <= began["b"] and ended["a"] <= began["c"] and max(ended["b"], ended["c"]) <= began["d"]
    for s in workflow["steps"]:
        assert [h["state"] for h in s["history"]] == ["waiting", "running", "succeeded"]
        box = service.show(s["sandbox"])
        assert box["labels"] == {"workflow": workflow["id"]} and box["state"] == "succeeded"
    assert [(h["state"], h["reason"]) for h in workflow["history"]] == [("running", "created"), ("succeeded", "steps")]
    assert len(sandboxes(service, workflow["id"])) == 4


def test_a_failed_step_stops_what_needs_it(service):
    workflow = run(service, step("bad", "exit 3"), step("after", "true", needs=["bad"]), step("later", "true", needs=["after", "good"]), step("good", "true"), step("end", "true", needs=["good"]))
    assert workflow["state"] == "failed"
    assert states(workflow) == {"bad": "failed", "after": "skipped", "later": "skipped", "good": "succeeded", "end": "succeeded"}
    assert of(workflow, "after")["reason"] == "needs" and "bad" in of(workflow, "after")["message"]
    assert "sandbox" not in of(workflow, "after") and len(sandboxes(service, workflow["id"])) == 3


def test_time_and_kill(service):
    ident = begin(service, step("late", "sleep 100", limits={"wall_seconds": 1}), step("stopped", "sleep 100"), step("after", "true", needs=["late"]))
    workflow = wait(service, ident, lambda w: "sandbox" in of(w, "stopped"))
    service.post("%s/%s/stop" % (API, of(workflow, "stopped")["sandbox"]), {})
    workflow = wait(service, ident)
    assert states(workflow) == {"late": "timed_out", "stopped": "killed", "after": "skipped"} and workflow["state"] == "failed"
    assert (of(workflow, "late")["reason"], of(workflow, "stopped")["reason"]) == ("time.wall", "asked")


def test_a_step_whose_sandbox_is_deleted(service):
    ident = begin(service, step("a", "sleep 100"))
    workflow = wait(service, ident, lambda w: "sandbox" in of(w, "a"))
    assert service.request("DELETE", "%s/%s" % (API, of(workflow, "a")["sandbox"])).status == 202
    workflow = wait(service, ident)
    assert (workflow["state"], states(workflow)) == ("failed", {"a": "killed"})


def test_what_can_only_be_seen_when_it_is_made(service):
    """A policy is looked at when its turn comes; a file below another too."""
    workflow = run(service, step("a", "true", policy={"inline": "version: 1\nname: x\nrulez: []\n"}), step("b", "true", needs=["d"], inputs=[("d", "x", "f/x")], files={"f": "no directory"}),
                   step("d", "echo > x", artifacts=["x"]))
    assert states(workflow) == {"a": "failed", "b": "failed", "d": "succeeded"}
    assert of(workflow, "a")["reason"] == of(workflow, "b")["reason"] == "refused"
    assert "rulez" in of(workflow, "a")["message"] and "below another" in of(workflow, "b")["message"]


# ---- artifacts

@pytest.mark.parametrize("script, reason", [
    ("true", "artifact.missing"), ("mkdir a", "artifact.missing"), ("mkfifo a", "artifact.missing"), ("ln -s /etc/passwd a", "artifact.missing"),
    ("echo > b; ln -s b a", "artifact.missing"), ("head -c 101 /dev/zero > a", "artifact.too_large"),
], ids=["none", "directory", "fifo", "link-out", "link-inside", "large"])
def test_what_is_no_artifact(service, script, reason):
    workflow = run(service, step("make", script, artifacts=[("a", 100)]), step("use", "true", needs=["make"], inputs=[("make", "a")]))
    assert states(workflow) == {"make": "failed", "use": "skipped"} and of(workflow, "make")["reason"] == reason
    assert artifact(service, workflow["id"], "make", "a").status == 404


def test_an_artifact_of_its_whole_bound(service):
    workflow = run(service, step("make", "head -c 100 /dev/zero > a; : > empty", artifacts=[("a", 100), ("empty", 0)]),
                   step("use", "cmp a b && [ ! -s c ]", needs=["make"], inputs=[("make", "a"), ("make", "a", "b"), ("make", "empty", "c")]))
    assert workflow["state"] == "succeeded", workflow
    assert artifact(service, workflow["id"], "make", "empty").body == b""


def test_an_artifact_that_was_changed(service):
    """What lies on the disk is held to its digest before anybody gets it."""
    ident = begin(service, step("make", "echo one > a", artifacts=["a"]), step("wait", "until [ -e go ]; do sleep 0.02; done", needs=["make"]), step("use", "cat a", needs=["wait"], inputs=[("make", "a")]))
    box = of(wait(service, ident, lambda w: "sandbox" in of(w, "wait")), "wait")["sandbox"]
    service.wait(box, "running")
    with open(os.path.join(service.state, "workflows", ident, "0", "0"), "w", encoding="ascii") as f:
        f.write("two\n")
    service.result(box, "file_write", path="go", content="")
    workflow = wait(service, ident)
    assert states(workflow) == {"make": "succeeded", "wait": "succeeded", "use": "failed"}
    assert of(workflow, "use")["reason"] == "artifact.changed" and "sandbox" not in of(workflow, "use")


@pytest.mark.parametrize("path", ["", "none", "make", "make/", "make/none", "none/a", "make/../make/a", "make/%2e%2e/%2e%2e/cage.db", "make//a", "make/a%00", "make/" + "a" * 3000])
def test_artifacts_that_are_not_there(service, path):
    workflow = run(service, step("make", "echo > a", artifacts=["a"])) if not hasattr(service, "made") else service.made
    service.made = workflow
    assert service.get("%s/%s/artifacts/%s" % (WORKFLOWS, workflow["id"], path)).status == 404
    assert artifact(service, workflow["id"], "make", "a").status == 200


# ---- what is refused

BAD = [
    ("/steps/0/id", [step("a b", "true")]),
    ("/steps/1/id", [step("a", "true"), step("a", "true")]),
    ("/steps/0/needs/0", [step("a", "true", needs=["b"])]),
    ("/steps/0/needs", [step("a", "true", needs=["a"])]),
    ("/steps/2/needs", [step("a", "true", needs=["c"]), step("b", "true", needs=["a"]), step("c", "true", needs=["b"])]),
    ("/steps/0/needs/1", [step("a", "true", needs=["b", "b"]), step("b", "true")]),
    ("/steps/1/inputs/0", [step("a", "true", artifacts=["x"]), step("b", "true", inputs=[("a", "x")])]),
    ("/steps/1/inputs/0", [step("a", "true", artifacts=["x"]), step("b", "true", needs=["a"], inputs=[("a", "y")])]),
    ("/steps/1/inputs/1", [step("a", "true", artifacts=["x"]), step("b", "true", needs=["a"], inputs=[("a", "x"), ("a", "x")])]),
    ("/steps/1/inputs/0", [step("a", "true", artifacts=["x"]), step("b", "true", needs=["a"], inputs=[("a", "x")], files={"x": ""})]),
    ("/steps/0/inputs/0", [step("a", "true", inputs=[("none", "x")])]),
    ("/steps/0/artifacts/1", [step("a", "true", artifacts=["x", "x"])]),
    ("/steps/0/artifacts/0/max_bytes", [step("a", "true", artifacts=[("x", (256 << 20) + 1)])]),
    ("/steps/0/artifacts/0/max_bytes", [step("a", "true", artifacts=[("x", -1)])]),
    ("/steps", [step(n, "true", artifacts=[("x", 256 << 20)]) for n in "abcde"]),
    ("/steps/0/artifacts", [step("a", "true", artifacts=["x%d" % i for i in range(33)])]),
    ("/steps/1/inputs", [step("a", "true", artifacts=["x"]), step("b", "true", needs=["a"], inputs=[("a", "x", "y%d" % i) for i in range(65)])]),
    ("/steps/0/needs", [step("a", "true", needs=["s%d" % i for i in range(65)])]),
    ("/steps", [step("s%d" % i, "true") for i in range(65)]),
    ("/steps", []),
    ("/steps/0/sandbox/limits/memory", [step("a", "true", limits={"memory": 1})]),
    ("/steps/0/sandbox/nonsense", [step("a", "true", nonsense=1)]),
    ("/steps/0/sandbox/profile", [step("a", "true", profile="none")]),
    ("/steps/0/sandbox/labels/workflow", [step("a", "true", labels={"workflow": "x"})]),
    ("/steps/0/sandbox", [{"id": "a", "sandbox": {}}]),
    ("/steps/0/sandbox", [{"id": "a", "sandbox": []}]),
    ("/steps/0", [{"id": "a"}]),
    ("/steps/0/more", [{**step("a", "true"), "more": 1}]),
]


@pytest.mark.parametrize("pointer, steps", BAD)
def test_what_is_wrong(service, pointer, steps):
    answer = service.post(WORKFLOWS, {"steps": steps})
    assert answer.status == 422 and pointer in [e["pointer"] for e in answer.json["errors"]], answer


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../b", "a//b", "a/", ".", "..", "", "a" * 1001, "a/" + "b" * 256, "x\0y"])
def test_paths_that_lead_elsewhere(service, path):
    steps = [step("a", "true", artifacts=[path]), step("b", "true", needs=["a"], inputs=[("a", "x", path)])]
    answer = service.post(WORKFLOWS, {"steps": steps})
    pointers = [e["pointer"] for e in answer.json.get("errors", [])]
    assert answer.status in (400, 422), answer
    if answer.status == 422:
        assert {"/steps/0/artifacts/0/path", "/steps/1/inputs/0/to"} <= set(pointers), pointers


def test_all_errors_at_once(service):
    """Of the graph and of all sandboxes; and nothing is begun."""
    answer = service.post(WORKFLOWS, {"steps": [step("a", "true", nonsense=1), step("b", "true", limits={"pids": 1}, needs=["c"])], "labels": {"never": "x"}})
    assert [e["pointer"] for e in answer.json["errors"]] == ["/steps/1/needs/0", "/steps/0/sandbox/nonsense", "/steps/1/sandbox/limits/pids"]
    assert not service.get(WORKFLOWS + "?label=never=x").json["items"]


def test_as_many_as_there_may_be(service):
    """64 steps, each needing all before it; the bounds are reached and not passed. It is cancelled: 64 rooms are not what is tested."""
    steps = [step("s%d" % i, "sleep 100" if i == 0 else "true", needs=["s%d" % k for k in range(i)]) for i in range(64)]
    ident = begin(service, *steps)
    assert service.post("%s/%s/cancel" % (WORKFLOWS, ident), {}).status == 202
    workflow = wait(service, ident)
    assert workflow["state"] == "cancelled" and len(workflow["steps"]) == 64


def test_as_many_artifacts_as_there_may_be(service):
    names = ["n%d" % i for i in range(32)]
    workflow = run(service, step("a", "for i in %s; do echo $i > $i; done" % " ".join(names), artifacts=[(n, 100) for n in names]),
                   step("b", "[ $(cat n* m* | wc -l) = 64 ]", needs=["a"], inputs=[("a", n, n) for n in names] + [("a", n, "m" + n) for n in names]))
    assert workflow["state"] == "succeeded", workflow


# ---- asking again, lists

def test_idempotency(service):
    body, key = {"steps": [step("a", "true")]}, {"Idempotency-Key": "workflow-1"}
    first, again = (service.post(WORKFLOWS, body, headers=key) for _ in range(2))
    assert first.status == again.status == 201 and first.json["id"] == again.json["id"]
    assert first.headers["Location"] == again.headers["Location"] == "%s/%s" % (WORKFLOWS, first.json["id"])
    assert service.post(WORKFLOWS, {"steps": [step("b", "true")]}, headers=key).status == 422
    assert service.post(API, {"command": ["true"]}, headers=key).status == 201, "a key of a workflow is none of a sandbox"
    wait(service, first.json["id"])
    assert len(sandboxes(service, first.json["id"])) == 1
    assert service.request("DELETE", "%s/%s" % (WORKFLOWS, first.json["id"])).status == 202
    wait_until(lambda: service.get("%s/%s" % (WORKFLOWS, first.json["id"])).status == 404, 30, "it is not removed")
    assert service.post(WORKFLOWS, body, headers=key).status == 410


def test_pages(service):
    made = [run(service, step("a", "true"), labels={"page": "x"}, name=str(i))["id"] for i in range(3)]
    first = service.get(WORKFLOWS + "?limit=2&label=page=x").json
    assert [w["id"] for w in first["items"]] == made[:0:-1] and first["next"]
    rest = service.get("%s?limit=2&label=page=x&after=%s" % (WORKFLOWS, first["next"])).json
    assert [w["id"] for w in rest["items"]] == made[:1] and rest["next"] is None
    assert not service.get(WORKFLOWS + "?label=page=x&state=failed").json["items"]
    for wrong in ("state=queued", "limit=0", "after=x", "label=x"):
        assert service.get(WORKFLOWS + "?" + wrong).status == 400


@pytest.mark.parametrize("method, path", [("GET", "/none"), ("DELETE", "/none"), ("POST", "/none/cancel"), ("GET", "/none/artifacts/a/b")])
def test_what_is_not_there(service, method, path):
    assert service.request(method, WORKFLOWS + path).status == 404


# ---- its end

def test_cancel(service):
    ident = begin(service, step("done", "echo > a", artifacts=["a"]), step("runs", "sleep 100", needs=["done"]), step("waits", "true", needs=["runs"]))
    wait(service, ident, lambda w: "sandbox" in of(w, "runs"))
    assert service.post("%s/%s/cancel" % (WORKFLOWS, ident), {}).status == 202
    workflow = wait(service, ident)
    assert (workflow["state"], workflow["reason"]) == ("cancelled", "asked")
    assert states(workflow) == {"done": "succeeded", "runs": "killed", "waits": "cancelled"}
    assert artifact(service, ident, "done", "a").status == 200
    assert service.post("%s/%s/cancel" % (WORKFLOWS, ident), {}).json["state"] == "cancelled"


def test_delete(service):
    ident = begin(service, step("done", "echo > a", artifacts=["a"]), step("runs", "sleep 100", needs=["done"]), step("waits", "true", needs=["runs"]))
    box = of(wait(service, ident, lambda w: "sandbox" in of(w, "runs")), "runs")["sandbox"]
    assert service.request("DELETE", "%s/%s" % (WORKFLOWS, ident)).status == 202
    wait_until(lambda: service.get("%s/%s" % (WORKFLOWS, ident)).status == 404, 30, "it is not removed")
    assert not os.path.exists(os.path.join(service.state, "workflows", ident))
    assert service.show(box)["state"] == "killed"


def test_retention(tmp_path):
    with Service(tmp_path, config={"limits": {"retention": "1s"}}) as service:
        ident = begin(service, step("a", "echo > a", artifacts=["a"]), step("b", "cat a", needs=["a"], inputs=[("a", "a")]))
        wait_until(lambda: service.get("%s/%s" % (WORKFLOWS, ident)).status == 404, 60, "it is not removed")
        wait_until(lambda: not os.listdir(os.path.join(service.state, "workflows")), 10, "files are left")


def test_too_many(tmp_path):
    """One more than there may be under way is refused; with one less it is taken."""
    with Service(tmp_path, config={"limits": {"running": 1}}) as service:
        made = [begin(service, step("a", "sleep 1000")) for _ in range(256)]
        assert service.post(WORKFLOWS, {"steps": [step("a", "true")]}).status == 429
        for ident in made:
            service.request("DELETE", "%s/%s" % (WORKFLOWS, ident))
        wait_until(lambda: not service.get(WORKFLOWS).json["items"], 60, "they are not removed")
        assert run(service, step("a", "true"))["state"] == "succeeded"


def test_quotas_and_queue(tmp_path):
    """Steps wait for a place as any sandbox does."""
    with Service(tmp_path, config={"limits": {"running": 1, "queued": 1}}) as service:
        workflow = run(service, *(step("s%d" % i, "true") for i in range(5)))
        assert workflow["state"] == "succeeded"


# ---- the service is killed

def check_once(service, ident, n):
    """Each step has had one sandbox, and what it made is whole."""
    workflow = wait(service, ident)
    assert workflow["state"] == "succeeded", workflow
    boxes = [s["sandbox"] for s in workflow["steps"]]
    assert sorted(b["id"] for b in sandboxes(service, ident)) == sorted(boxes) and len(set(boxes)) == n
    for s in workflow["steps"]:
        assert [h["state"] for h in s["history"]] == ["waiting", "running", "succeeded"]
        for a in s["artifacts"]:
            assert hashlib.sha256(artifact(service, ident, s["id"], a["path"]).body).hexdigest() == a["sha256"]


CHAIN = [step("a", "echo a > x", artifacts=["x"]), step("b", "cat x > y; echo b >> y", needs=["a"], artifacts=["y"], inputs=[("a", "x")]),
         step("c", "cat y > z; echo c >> z", needs=["b"], artifacts=["z"], inputs=[("b", "y")])]


def test_killed_all_the_time(tmp_path):
    """At whatever moment: when a sandbox is made, waits, runs, has ended, when its artifacts are taken and handed on."""
    chance = random.Random(1)
    service = Service(tmp_path).start()
    try:
        ident = begin(service, *CHAIN)
        for _ in range(40):
            time.sleep(chance.random() * 0.5)
            over = show(service, ident)["state"] in OVER
            service.kill()
            service.start()
            if over:
                break
        check_once(service, ident, 3)
        assert artifact(service, ident, "c", "z").body == b"a\nb\nc\n"
    finally:
        service.__exit__()


@pytest.mark.parametrize("moment", ["created", "running", "stored", "cancelled", "ended"])
def test_killed(tmp_path, moment):
    service = Service(tmp_path).start()
    try:
        ident = begin(service, step("a", "until [ -e go ]; do sleep 0.02; done; echo a > x", artifacts=["x"]), step("b", "cat x > y", needs=["a"], artifacts=["y"], inputs=[("a", "x")]))
        if moment != "created":
            box = of(wait(service, ident, lambda w: "sandbox" in of(w, "a")), "a")["sandbox"]
            service.wait(box, "running")
        if moment == "cancelled":
            service.post("%s/%s/cancel" % (WORKFLOWS, ident), {})
        if moment in ("stored", "ended"):
            service.result(box, "file_write", path="go", content="")
            wait(service, ident, lambda w: states(w)["a"] == "succeeded" or w["state"] in OVER)
        if moment == "ended":
            wait(service, ident)
        service.kill()
        service.start()
        if moment == "cancelled":
            assert (wait(service, ident)["state"], states(show(service, ident))) == ("cancelled", {"a": "killed", "b": "cancelled"})
            return
        if moment in ("created", "running"):
            box = of(wait(service, ident, lambda w: "sandbox" in of(w, "a")), "a")["sandbox"]
            service.wait(box, "running")
            service.wait_found(box)
            service.result(box, "file_write", path="go", content="")
        check_once(service, ident, 2)
    finally:
        service.__exit__()


def test_ended_while_there_was_no_service(tmp_path):
    """Its keeper has gone on: what it left is taken, also where it would be due to be removed by then."""
    service = Service(tmp_path, config={"limits": {"retention": "1s"}}).start()
    try:
        ident = begin(service, step("a", "until [ -e go ]; do sleep 0.02; done; echo a > x", artifacts=["x"]), step("b", "until [ -e go ]; do sleep 0.02; done; cmp x x", needs=["a"], inputs=[("a", "x")]))
        box = of(wait(service, ident, lambda w: "sandbox" in of(w, "a")), "a")["sandbox"]
        service.wait(box, "running")
        service.result(box, "file_write", path="go", content="")
        service.kill()
        result = os.path.join(service.directory(box), "result")
        wait_until(lambda: os.path.exists(result), 30, "it does not end")
        time.sleep(1.5)  # the retention
        service.start()
        box = of(wait(service, ident, lambda w: "sandbox" in of(w, "b")), "b")["sandbox"]
        service.wait(box, "running")
        service.result(box, "file_write", path="go", content="")
        assert wait(service, ident)["state"] == "succeeded"
    finally:
        service.__exit__()


def test_artifacts_that_can_not_be_stored_at_first(tmp_path):
    """Something stands where they are to lie; when it is gone, the step has succeeded after all."""
    with Service(tmp_path) as service:
        ident = begin(service, step("a", "echo good > x; until [ -e go ]; do sleep 0.1; done", artifacts=["x"]), step("b", "true", needs=["a"]))
        box = of(wait(service, ident, lambda w: "sandbox" in of(w, "a")), "a")["sandbox"]
        service.wait(box, "running")
        obstacle = os.path.join(service.state, "workflows", ident)
        with open(obstacle, "w"):
            pass
        service.result(box, "file_write", path="go", content="")
        service.err.wait("step a: its artifacts can't be stored", 30)
        os.unlink(obstacle)
        assert wait(service, ident)["state"] == "succeeded"
        assert service.get("%s/%s/artifacts/a/x" % (WORKFLOWS, ident)).body == b"good\n"


def test_deleted_and_killed(tmp_path):
    """What was asked to go goes, whoever comes to do it."""
    service = Service(tmp_path).start()
    try:
        ident = begin(service, step("a", "echo > x", artifacts=["x"]), step("b", "sleep 100", needs=["a"]))
        wait(service, ident, lambda w: "sandbox" in of(w, "b"))
        service.request("DELETE", "%s/%s" % (WORKFLOWS, ident))
        service.kill()
        service.start()
        wait_until(lambda: service.get("%s/%s" % (WORKFLOWS, ident)).status == 404, 60, "it is not removed")
        assert not os.listdir(os.path.join(service.state, "workflows"))
    finally:
        service.__exit__()


# ---- a full disk

@pytest.fixture
def small_disk(tmp_path):
    where = tmp_path / "disk"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(where)], check=True, timeout=20)
    yield where
    subprocess.run(["umount", str(where)], check=True, timeout=20)


def test_a_full_disk(small_disk):
    """An artifact that has no room fails its step, and says so; the service goes on."""
    with Service(small_disk) as service:
        workflow = run(service, step("big", "head -c 30000000 /dev/zero > x", artifacts=[("x", 30000000)]), step("use", "true", needs=["big"]))
        assert states(workflow) == {"big": "failed", "use": "skipped"}
        assert of(workflow, "big")["reason"] == "disk.full" and "disk of the service is full" in of(workflow, "big")["message"]
        service.request("DELETE", "%s/%s" % (API, of(workflow, "big")["sandbox"]))
        wait_until(lambda: service.post(WORKFLOWS, {"steps": [step("a", "true")]}).status == 201, 30, "there is no room again")
        assert run(service, step("a", "echo > x", artifacts=["x"]))["state"] == "succeeded"
