"""What cage serve survives, and what it holds to: kills at every state, full disks, many creates at once, agents that resist."""
import http.server
import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

from cagelib.proxy import binary, is_alive, wait_until
from cagelib.service import API, ENDED, Connection, Service


@pytest.fixture
def make(tmp_path):
    made = []

    def start(config=None, **more):
        service = Service(tmp_path, config, **more).start()
        made.append(service)
        return service
    yield start
    for service in made:
        service.__exit__()


def again(service):
    """Killed, and started again."""
    service.kill()
    service.start()


# ---- calls that were under way

def test_a_call_that_was_under_way_is_not_made_again(make):
    """Nobody knows what came of it, and that is what its key is answered with, however often."""
    service = make()
    ident = service.idle()
    path, key = "%s/%s/tools/execute" % (API, ident), {"Idempotency-Key": "under-way"}
    body = {"tool": "shell_exec", "arguments": {"command": "echo x >> count; sleep 1000"}}
    connection = Connection(service.socket)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **key})
    wait_until(lambda: service.tool(ident, "file_read", path="count").status == 200, 20, "it has not begun")
    again(service)
    connection.close()
    service.wait(ident, "running")
    answers = [service.post(path, body, headers=key) for _ in range(2)]
    for answer in answers:
        assert (answer.status, answer.json["type"]) == (409, "urn:cage:problem:outcome-unknown"), answer
        assert answer.headers["Content-Type"] == "application/problem+json"
    wait_until(lambda: service.tool(ident, "file_read", path="count").status == 200, 20, "its keeper is not connected")
    assert service.result(ident, "file_read", path="count")["content"] == "x\n"
    assert service.post(path, {**body, "timeout_seconds": 1}, headers=key).status == 422


# ---- an ordinary user

ORDINARY = 4711  # a uid that nobody has


def test_as_an_ordinary_user(open_dir):
    """With a state directory of its own: nothing of it needs root, and nothing is left of it."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can become another user")
    os.chown(open_dir, ORDINARY, ORDINARY)
    before = ["setpriv", "--reuid=%d" % ORDINARY, "--regid=%d" % ORDINARY, "--clear-groups", "--inh-caps=-all", "--pdeathsig", "KILL"]
    with Service(open_dir, before=before, env={"HOME": str(open_dir)}) as service:
        assert os.stat("/proc/%d" % service.process.pid).st_uid in (ORDINARY, 0)  # root: it can't be looked into
        ident = service.idle()
        assert service.result(ident, "file_write", path="a/b", content="hello")["size"] == 5
        done = service.result(ident, "shell_exec", command="cat a/b; test -w /etc/hosts; echo $?")
        assert (done["stdout"], done["exit_code"]) == ("hello1\n", 0), done
        assert service.post("%s/%s/verify" % (API, ident), None).json["closed"]
        owners = {os.lstat(os.path.join(top, name)).st_uid for top, dirs, files in os.walk(service.state) for name in dirs + files}
        assert owners == {ORDINARY}
        assert service.request("DELETE", API + "/" + ident).status in (200, 202, 204)
        service.wait(ident, "deleted")
        assert not os.path.exists(os.path.join(service.state, "sandboxes", ident))


# ---- kill -9

def test_killed_while_they_wait(make):
    service = make({"limits": {"running": 1}})
    first = service.create(command=["sh", "-c", "mkfifo go; cat go"])
    service.wait(first, "running")
    waiting = [service.create(command=["echo", str(i)]) for i in range(3)]
    again(service)
    assert [service.show(i)["state"] for i in [first, *waiting]] == ["running", "queued", "queued", "queued"]
    wait_until(lambda: service.tool(first, "shell_exec", command="echo done > go").status == 200, 30, "no tool call after a restart")
    assert service.wait(first, *ENDED)["state"] == "succeeded" and service.output(first) == b"done\n"
    for i, ident in enumerate(waiting):
        assert service.wait(ident, *ENDED)["state"] == "succeeded" and service.output(ident) == b"%d\n" % i


def test_killed_while_they_are_made(make):
    """At whatever moment of it, eight times."""
    service = make()
    for i in range(8):
        ident = service.create(command=["echo", "there"])
        wait_until(lambda: service.show(ident)["state"] != "queued", 30, "it is not made")
        time.sleep(i * 0.03)  # not to wait for something: the moment is what is tested
        again(service)
        box = service.wait(ident, *ENDED)
        assert box["state"] == "succeeded" and service.output(ident) == b"there\n", box
        assert [h["state"] for h in box["history"]].count("creating") == 1


def test_ended_while_nobody_watched(make):
    service = make()
    ident = service.create(command=["sh", "-c", "mkfifo go; cat go; exit 5"])
    service.wait(ident, "running")
    wait_until(lambda: service.tool(ident, "shell_exec", command="(sleep 0.5; echo > go) >/dev/null 2>&1 &").status == 200, 20, "no call")
    service.kill()
    wait_until(lambda: os.path.exists(service.directory(ident) + "/result"), 60, "no result")
    service.start()
    box = service.wait(ident, *ENDED)
    assert (box["state"], box["exit_code"]) == ("failed", 5)


def test_deleted_and_killed(make):
    service = make()
    ident = service.idle()
    service.request("DELETE", API + "/" + ident)
    again(service)
    service.wait(ident, "deleted")
    assert not os.path.exists(service.directory(ident)) and not service.keepers()


def test_the_keeper_is_killed(make):
    service = make()
    ident = service.idle()
    keeper, = service.keepers()
    os.kill(keeper, signal.SIGKILL)
    box = service.wait(ident, *ENDED)
    assert (box["state"], box["reason"]) == ("failed", "keeper.failed")


def test_both_are_killed(make):
    service = make()
    ident = service.idle()
    keeper, = service.keepers()
    service.kill()
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not is_alive(keeper), 20, "it lives")
    service.start()
    assert service.wait(ident, *ENDED)["reason"] == "keeper.failed"


@pytest.mark.parametrize("has_socket", [True, False], ids=["connected", "no-socket"])
def test_a_keeper_that_does_not_answer_after_a_restart(make, has_socket):
    """Its pid is not known any more; it is found, killed with its room, and the sandbox is failed."""
    service = make()
    ident = service.idle()
    keeper, = service.keepers()
    run, = runs_of(service, ident)
    service.kill()
    os.kill(keeper, signal.SIGSTOP)
    if not has_socket:
        os.unlink(service.directory(ident) + "/socket")
    service.start()
    box = service.wait(ident, *ENDED, seconds=120)
    assert (box["state"], box["reason"]) == ("failed", "keeper.failed")
    assert not is_alive(keeper) and not is_alive(run)


def runs_of(service, ident):
    """The pids of the cage run of a sandbox."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if words[1:2] == [b"run"] and (service.directory(ident) + "/policy.yaml").encode() in words:
            found.append(int(pid))
    return found


def test_keeper_and_run_are_killed_together(make):
    """What cage run had outside of the directory is cleared with the end of the sandbox, not only with its removal."""
    service = make()
    ident = service.idle()
    with open(service.directory(ident) + "/rundir", encoding="ascii") as f:
        rundir = f.read().strip()
    assert os.path.isdir(rundir)
    keeper, = service.keepers()
    run, = runs_of(service, ident)
    os.kill(keeper, signal.SIGSTOP)  # so that it can't clear it
    os.kill(run, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    box = service.wait(ident, *ENDED)
    assert box["reason"] == "keeper.failed"
    assert not os.path.exists(rundir) and os.path.exists(service.directory(ident))


def own_cgroups():
    """Where gates make their groups: below ours, or beside it."""
    dirs = []
    with open("/proc/self/cgroup", encoding="ascii") as f:
        for line in f:
            _, names, path = line.strip().split(":", 2)
            for name in filter(None, names.split(",")):
                dirs.append("/sys/fs/cgroup/%s%s" % (name, path))
            if not names and os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
                dirs += ["/sys/fs/cgroup" + path]
    return dirs


@pytest.mark.cgroups
def test_groups_of_gates_that_were_killed_are_swept(make):
    """Those that are empty and whose gate is gone; others of that name stay."""
    service = make()
    service.stop()
    gone = subprocess.Popen(["true"])
    gone.wait(10)
    made = []
    for directory in own_cgroups():
        for name in ("cage-%d" % gone.pid, "cage-%d-1" % gone.pid, "cage-%d" % os.getpid(), "cage-%d-2" % os.getpid(), "cage-x", "cage-%d-x" % gone.pid):
            try:
                os.mkdir(directory + "/" + name)
            except OSError:
                continue  # no rights there: then gates can't either
            made.append(directory + "/" + name)
    if not made:
        pytest.skip("no cgroup can be made here")
    try:
        service.start()
        left = [d for d in made if d.endswith(("-%d" % gone.pid, "-%d-1" % gone.pid))]
        assert left
        wait_until(lambda: not any(os.path.exists(d) for d in left), 30, "groups of nobody are left")
        assert all(os.path.exists(d) for d in made if d not in left)
    finally:
        for d in made:
            if os.path.exists(d):
                os.rmdir(d)


def test_what_nobody_owns_is_swept(make):
    service = make()
    ident = service.idle()
    service.kill()
    orphans = [service.directory("sb-orphan%d" % i) for i in range(40)]  # more than a sweep compares at once
    for directory in orphans:
        os.mkdir(directory)
        with open(directory + "/policy.yaml", "w", encoding="ascii"):
            pass
    for suffix in ("", "-wal", "-shm"):  # it has lost its memory
        if os.path.exists(service.state + "/cage.db" + suffix):
            os.unlink(service.state + "/cage.db" + suffix)
    service.start()
    wait_until(lambda: not any(os.path.exists(d) for d in orphans), 30, "an orphan is left")
    wait_until(lambda: not service.keepers(), 60, "a keeper of nobody is left")
    assert service.get(API + "/" + ident).status == 404


# ---- the queue

def parent(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def test_many_at_once(make):
    service = make({"limits": {"running": 10, "starts": "1000/s"}})
    made, most, over = [], [], threading.Event()

    def count():
        """Those that two looks find were there at the same time, between them. What a keeper is about to start looks like it, until it does."""
        while not over.wait(0.05):
            first = {p: parent(p) for p in service.keepers()}
            most.append(len([p for p in service.keepers() if p in first and first[p] not in first]))

    def create(i):
        made.append(service.create(command=["true"], labels={"n": str(i)}))
    threads = [threading.Thread(target=create, args=(i,)) for i in range(200)]
    counter = threading.Thread(target=count)
    counter.start()
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert len(set(made)) == 200
    end = time.monotonic() + 240
    try:
        while True:
            health = service.get("/healthz").json
            if health["running"] == health["queued"] == 0:
                break
            assert time.monotonic() < end, health
            time.sleep(0.1)
    finally:
        over.set()
        counter.join(30)
    assert 1 < max(most) <= 10
    states = [b["state"] for b in service.get(API + "?limit=1000").json["items"]]
    assert states == ["succeeded"] * 200


def test_too_many_waiting(make):
    service = make({"limits": {"running": 1, "queued": 2}})
    service.idle()
    for _ in range(2):
        service.create()
    answer = service.post(API, {})
    assert answer.status == 429 and answer.headers["Retry-After"]


def test_quotas_and_fairness(make):
    service = make({"limits": {"running": 3, "starts": "1000/s"}, "fair": "user", "quotas": [{"label": "team", "running": 1}]})
    first = service.idle(labels={"team": "a"})
    second = service.create(labels={"team": "a"})
    other = service.idle(labels={"team": "b"})
    assert service.show(second)["state"] == "queued" and service.show(second)["queued_before"] == 0
    service.request("DELETE", API + "/" + first)
    service.wait(second, "running")
    service.request("DELETE", API + "/" + other)


def test_lifetime_in_the_queue(make):
    service = make({"limits": {"running": 1}})
    service.idle()
    box = service.wait(service.create(lifetime_seconds=1), "timed_out")
    assert box["reason"] == "time.lifetime"


def test_retention(make):
    service = make({"limits": {"retention": "1s"}})
    gone, kept = service.run("true")["id"], service.run("true", keep=True)["id"]
    assert service.wait(gone, "deleted")["history"][-1]["reason"] == "expired"
    assert service.show(kept)["state"] == "succeeded"


# ---- configuration

CONFIG = {
    "profiles": {"py": {"command": ["echo", "profile"], "tools": ["file_read"], "limits": {"memory": "64MiB", "wall": "60s"}, "labels": {"team": "x"},
                        "keep": "true", "lifetime": "2m"}},
    "maximum": {"memory": "128MiB"}, "prices": {"vcpu_second": "1", "gb_second": "0"}, "alerts": {"blocks": 1},
}


def test_profiles_maximum_prices_alerts(make):
    service = make(CONFIG)
    box = service.wait(service.create(profile="py", labels={"user": "u"}), *ENDED)
    assert (box["profile"], box["limits"]["memory"], box["limits"]["wall_seconds"]) == ("py", 64 << 20, 60)
    assert box["labels"] == {"team": "x", "user": "u"} and box["keep"] and box["tools"] == ["file_read"]
    assert box["usage"]["cost"]["amount"] == pytest.approx(box["usage"]["wall_seconds"])
    assert service.post(API, {"limits": {"memory": 1 << 30}}).json["errors"][0]["pointer"] == "/limits/memory"
    ident = service.idle(blocked_commands=["x"])
    for _ in range(3):
        service.tool(ident, "shell_exec", command="x")
    service.post("%s/%s/stop" % (API, ident), None)
    service.err.wait(r"alert: %s: blocks 3" % ident, 30)


@pytest.mark.parametrize("text, wrong", [
    ("version: 2\n", "1:10: version: expected 1"), ("version: 1\nlimit: {}\n", 'did you mean "limits"'), ("version: 1\nlisten: [x]\n", "listen[0]"),
    ("version: 1\nlimits: {running: 0, starts: x}\n", "limits.starts"), ("version: 1\nprofiles: {p: {tools: [x]}}\n", "profiles.p: /tools/0"),
    ("version: 1\nceiling: /nosuch\n", "2:10: ceiling: /nosuch"), ("version: 1\npolicies: /nosuch\n", "policies: there is no directory /nosuch"),
    ("version: 1\nsignatures: /nosuch\n", "signatures: there is no directory /nosuch"),
    ("version: 1\nceiling: /etc/hostname\n", "ceiling: /etc/hostname:1"), ("version: 1\ndefaults: {memory: 1}\n", "/limits/memory"),
    ("version: 1\ndefaults: {pids: 1}\n", "/limits/pids"), ("version: 1\ndefaults: {memory: 2GiB}\nmaximum: {memory: 1GiB}\n", "defaults.memory"),
    ("version: 1\nprofiles: {p: {limits: {memory: 2GiB}}}\nmaximum: {memory: 1GiB}\n", "profiles.p: /limits/memory"),
    ("version: 1\nprofiles: {p: {network: {mode: allowlist, domain_allowlist: ['https://x']}}}\n", "profiles.p: /network/domain_allowlist/0"),
    ("version: 1\nprofiles: {p: {tools: [x], limits: {pids: x}}}\n", "profiles.p: /tools/0"), ("version: 1\nlisten: ['unix:rel']\n", "listen[0]: expected an absolute path"),
    ("version: 1\nquotas: [{running: 1}]\n", 'missing key "label"'), ("version: 1\nstate: rel\n", "absolute"), ("", "empty"),
])
def test_check(tmp_path, text, wrong):
    from cagelib.proxy import binary
    path = tmp_path / "c.yaml"
    path.write_text(text)
    done = subprocess.run([binary("cage"), "serve", "--check", "--config", str(path)], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and wrong in done.stderr, done.stderr


def test_the_example_is_good(tmp_path):
    from cagelib.proxy import binary
    path = os.path.join(os.path.dirname(__file__), "../../orchestrator/service/serve.yaml")
    done = subprocess.run([binary("cage"), "serve", "--check", "--config", path], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_variables_count_more(make):
    service = make({"limits": {"running": 5, "queued": 5}}, env={"CAGE_RUNNING": "1", "CAGE_QUEUED": "1"})
    service.idle()
    service.create()
    assert service.post(API, {}).status == 429


def test_ceiling(make, tmp_path):
    (tmp_path / "top.yaml").write_text("version: 1\nname: top\nrules: [{id: r, hosts: ['*.good.test'], methods: [GET]}]\n")
    service = make({"ceiling": str(tmp_path / "top.yaml")})
    rule = "version: 1\nname: x\nrules: [{id: r, hosts: ['%s'], methods: [%s]}]\n"
    for host, method, status in (("a.good.test", "GET", 201), ("bad.test", "GET", 422), ("good.test", "GET", 422), ("a.good.test", "POST", 422)):
        assert service.post(API, {"policy": {"inline": rule % (host, method)}, "command": ["true"]}).status == status
    assert service.post(API, {"network": {"mode": "allowlist", "domain_allowlist": ["a.good.test"]}}).status == 422  # any method
    assert service.post(API, {"network": {"mode": "none"}, "command": ["true"]}).status == 201
    wrong = service.post(API, {"network": {"mode": "allowlist", "domain_allowlist": ["a.good.test", "bad.test"]}}).json["errors"]
    assert [x["pointer"] for x in wrong] == ["/network/domain_allowlist/0", "/network/domain_allowlist/1"]
    assert "methods" in wrong[0]["detail"] and "bad.test" in wrong[1]["detail"]
    assert service.post(API, {"policy": {"inline": rule % ("a.good.test", "GET") + "inspectors: {secrets: off}\n"}}).status == 422
    assert service.post(API, {"policy": {"inline": "version: 1\nname: x\nmode: observe\n"}}).status == 422


def lets_in(repository):
    return {"inline": json.dumps({"version": 1, "name": "x", "images": [{"registry": "r.test", "repository": repository}]})}


def test_images_below_a_ceiling(make, tmp_path):
    (tmp_path / "top.yaml").write_text("version: 1\nname: top\nimages: [{registry: r.test, repository: 'a/*'}]\n")
    service = make({"ceiling": str(tmp_path / "top.yaml")})
    assert [service.post(API, {"policy": lets_in(x), "command": ["true"]}).status for x in ("a/b", "b/b")] == [201, 422]


def test_images_in_a_profile(make):
    """Without a ceiling it is the operator who has written profiles, and nobody knows who has written a request."""
    service = make({"profiles": {"own": {"policy": lets_in("a/b")}}})
    got = [service.post(API, {"command": ["true"], **body}).status for body in ({"profile": "own"}, {"policy": lets_in("a/b")})]
    assert got == [201, 422]


# ---- TCP

def test_tcp_needs_a_token(make, tmp_path):
    from cagelib.proxy import binary
    state = str(tmp_path / "s")
    argv = [binary("cage"), "serve", "--state", state, "--listen", "127.0.0.1:0"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "needs a token" in done.stderr
    token = subprocess.run([binary("cage"), "serve", "--state", state, "--new-token"], capture_output=True, text=True, timeout=30).stdout.strip()
    assert len(token) == 64
    with open(state + "/token", encoding="ascii") as f:
        assert token not in f.read()
    service = make(options=["--listen", "127.0.0.1:0", "--listen", "unix:" + state + "/socket"])
    where = ("127.0.0.1", int(service.err.wait(r"listening on 127.0.0.1:(\d+)", 10)[1]))
    assert service.get("/healthz", where=where).status == 200
    assert service.get(API, where=where).status == 401
    assert service.get(API, where=where, headers={"Authorization": "Bearer " + token[:-1]}).status == 401
    assert service.get(API, where=where, headers={"Authorization": "Bearer " + token}).status == 200


def tcp_service(make, tmp_path):
    from cagelib.proxy import binary
    state = str(tmp_path / "s")
    token = subprocess.run([binary("cage"), "serve", "--state", state, "--new-token"], capture_output=True, text=True, timeout=30).stdout.strip()
    service = make(options=["--listen", "127.0.0.1:0", "--listen", "unix:" + state + "/socket"])
    return service, ("127.0.0.1", int(service.err.wait(r"listening on 127.0.0.1:(\d+)", 10)[1])), {"Authorization": "Bearer " + token}


def test_silent_strangers_stop_nobody(make, tmp_path):
    service, where, token = tcp_service(make, tmp_path)
    silent = [socket.create_connection(where, timeout=20) for _ in range(600)]
    try:
        assert service.get("/healthz").status == 200
        assert service.get(API, where=where, headers=token).status == 200
        assert silent[0].recv(1) == b""  # the oldest had to go
    finally:
        for s in silent:
            s.close()


def test_a_head_comes_within_its_time(make, tmp_path):
    service, where, _ = tcp_service(make, tmp_path)
    began = time.monotonic()
    with socket.create_connection(where, timeout=1) as s:
        for _ in range(60):
            try:
                s.sendall(b"x")
                if s.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("one byte a second keeps a connection")
    assert 5 < time.monotonic() - began < 30
    assert service.get("/healthz").status == 200


# ---- secrets

def test_secrets(make, tmp_path):
    from cagelib.proxy import binary
    service = make()
    policy = ("version: 1\nname: x\nrules: [{id: r, hosts: [a.test], secrets: [key]}]\nsecrets: [{id: key, from: {env: API_KEY}}]\n")
    body = {"policy": {"inline": policy}, "secrets": ["key"], "command": ["sh", "-c", "echo $API_KEY; env"]}
    answer = service.post(API, body)
    assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/secrets/0"
    subprocess.run([binary("cage"), "secret", "set", "key"], input=b"very-secret-value", env={**os.environ, "CAGE_STATE": service.state}, check=True, timeout=30)
    answer = service.post(API, body)
    assert answer.status == 201, answer
    box = service.wait(answer.json["id"], *ENDED)
    assert box["state"] == "succeeded", box
    out = service.output(box["id"])
    assert b"cage-ph-" in out and b"very-secret" not in out
    done = subprocess.run(["grep", "-rl", "very-secret-value", service.state], capture_output=True, timeout=60)
    assert done.stdout == b""


def keep_secret(service, name, value):
    from cagelib.proxy import binary
    subprocess.run([binary("cage"), "secret", "set", name], input=value, env={**os.environ, "CAGE_STATE": service.state}, check=True, timeout=30)


POLICY_WITH_SECRET = "version: 1\nname: %s\nrules: [{id: r, hosts: [a.test], secrets: [key]}]\nsecrets: [{id: key, from: {env: API_KEY}}]\n"


def test_t34_a_secret_is_not_told_by_what_programs_obey(make):
    """As the value of LD_PRELOAD it would be in the first error of every program."""
    service = make()
    keep_secret(service, "key", b"a-value-that-is-sealed-0123456789")
    policy = "version: 1\nname: x\n" + 'rules: [{id: r, hosts: [a.test], secrets: [key]}]\n' + "secrets: [{id: key, from: {env: LD_PRELOAD}}]\n"
    answer = service.post(API, {"policy": {"inline": policy}, "secrets": ["key"]})
    assert answer.status == 422 and "sealed" not in answer.body.decode(), answer


def test_reload_with_a_secret(make):
    service = make()
    keep_secret(service, "key", b"very-secret-value")
    ident = service.idle(policy={"inline": POLICY_WITH_SECRET % "one"}, secrets=["key"])
    path = "%s/%s/policy" % (API, ident)
    before = service.show(ident)["policy"]["sha256"]
    same = service.request("PUT", path, (POLICY_WITH_SECRET % "one").encode())
    assert same.status == 200 and same.json["policy"]["sha256"] == before, same
    other = service.request("PUT", path, (POLICY_WITH_SECRET % "two").encode())
    assert other.status == 200 and other.json["policy"]["sha256"] != before, other
    unknown = service.request("PUT", path, (POLICY_WITH_SECRET % "x").replace("key", "own").replace("API_KEY", "OWN").encode())
    assert unknown.status == 422, unknown
    assert service.request("PUT", path, b"version: 1\nname: without\n").status == 200


def test_a_client_leaves_during_a_reload(make):
    service = make()
    ident = service.idle()
    before = service.show(ident)["policy"]["sha256"]
    text = b"version: 1\nname: other\n"
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(service.state + "/socket")
        s.sendall(b"PUT %s/%s/policy HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (API.encode(), ident.encode(), len(text), text))
    wait_until(lambda: service.show(ident)["policy"]["sha256"] != before, 20, "the change was lost")
    service.result(ident, "shell_exec", command="true")
    wait_until(lambda: [x for x in service.logs(ident) if x["event"] == "tool" and x["policy"] == "other"], 10, "the new policy does not decide")
    assert not [x for x in os.listdir(service.directory(ident)) if x.startswith("policy.") and x != "policy.yaml"]


def test_a_reload_of_which_nobody_knows_the_end(make):
    """Killed after cage run has taken the new policy, and before that was stored: as if it had not been."""
    service = make()
    ident = service.idle()
    directory, before = service.directory(ident), service.show(ident)["policy"]["sha256"]
    db = sqlite3.connect(service.state + "/cage.db")
    db.execute("CREATE TRIGGER no_policy BEFORE UPDATE OF policy_sha ON sandbox BEGIN SELECT RAISE(ABORT, 'no'); END")
    db.commit()
    answer = service.request("PUT", "%s/%s/policy" % (API, ident), b"version: 1\nname: other\n")
    assert answer.status == 503, answer
    wait_until(lambda: not os.path.exists(directory + "/policy.old.yaml"), 20, "the old one was not put back")
    assert service.show(ident)["policy"]["sha256"] == before
    service.kill()
    os.rename(directory + "/policy.yaml", directory + "/policy.old.yaml")
    with open(directory + "/policy.yaml", "w", encoding="ascii") as f:
        f.write("version: 1\nname: other\n")
    os.symlink("0" * 64, directory + "/policy.next")
    again(service)
    wait_until(lambda: not os.path.lexists(directory + "/policy.next"), 20, "the old one was not put back")
    service.result(ident, "shell_exec", command="true")
    wait_until(lambda: [x["policy"] for x in service.logs(ident) if x["event"] == "tool"] == ["none"], 10, "the old policy does not decide")
    db.close()


def test_a_delete_is_not_lost(make):
    service = make()
    ident = service.idle()
    db = sqlite3.connect(service.state + "/cage.db")
    db.execute("CREATE TRIGGER no_ending BEFORE UPDATE OF ending ON sandbox BEGIN SELECT RAISE(ABORT, 'no'); END")
    db.commit()
    assert service.post("%s/%s/stop" % (API, ident), None).status == 503
    assert service.request("DELETE", API + "/" + ident).status == 202
    assert service.show(ident)["state"] == "running"
    db.execute("DROP TRIGGER no_ending")
    db.commit()
    db.close()
    service.wait(ident, "deleted")


# ---- agents that resist

@pytest.mark.parametrize("script, limits", [
    ("trap '' TERM INT HUP; while :; do sleep 1000; done", {}),
    (":(){ :|:& };:; sleep 1000", {"pids": 64}),
    ("while :; do head -c 1000000 /dev/zero >> big; done; sleep 1000", {"disk": 4 << 20}),
    ("setsid sleep 1000 & disown 2>/dev/null; sleep 1000", {}),
], ids=["signals", "forks", "disk", "session"])
def test_resisting_agents_end(make, script, limits):
    service = make()
    ident = service.create(command=["sh", "-c", script], limits={"wall_seconds": 2, **limits})
    box = service.wait(ident, *ENDED)
    assert box["state"] in ("timed_out", "failed"), box
    service.request("DELETE", API + "/" + ident)
    service.wait(ident, "deleted")
    assert not service.keepers()


@pytest.mark.cgroups
def test_memory(make):
    """Where there is a cgroup it is counted as such; elsewhere the process fails by itself."""
    service = make()
    box = service.wait(service.create(command=["python3", "-c", "x = bytearray(1 << 30)"], limits={"memory": 64 << 20}), *ENDED)
    if box["limits_enforced_by"] == "cgroup":
        assert (box["state"], box["reason"]) == ("failed", "oom") and box["usage"]["oom_kills"] > 0, box
    else:
        assert (box["state"], box["reason"]) == ("failed", "exit"), box
        assert "limits of memory and processes are weaker" in service.err.text()


# ---- alerts

class Hook(http.server.BaseHTTPRequestHandler):
    """A webhook: what it was told, and what it answers to the first of them."""

    def do_POST(self):  # noqa: N802
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.told.append((self.headers["Content-Type"], body))
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def hook():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.told, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()


def test_the_webhook_is_told_and_asked_again(make, hook):
    """One that answers 500 is tried again, with the same; then it is over."""
    hook.answers = [500, 500]
    service = make({"alerts": {"webhook": "http://127.0.0.1:%d/x" % hook.server_port}})
    ident = service.create(command=["sleep", "100"], limits={"wall_seconds": 1}, labels={"team": "a"})
    service.wait(ident, "timed_out")
    wait_until(lambda: len(hook.told) == 3, 60, "it is not asked again: %r" % hook.told)
    kind, first = hook.told[0]
    assert kind == "application/json"
    assert (first["alert"], first["sandbox"], first["state"], first["labels"]) == ("timeout", ident, "timed_out", {"team": "a"})
    assert [body for _, body in hook.told] == [first] * 3
    service.wait(service.create(command=["sleep", "100"], limits={"wall_seconds": 1}), "timed_out")
    wait_until(lambda: len(hook.told) == 4, 60, "no second alert")
    assert hook.told[3][1]["sandbox"] != ident


def test_a_webhook_that_never_takes_one_is_given_up(make, hook):
    hook.answers = [500] * 100
    service = make({"alerts": {"webhook": "http://127.0.0.1:%d/x" % hook.server_port}})
    service.wait(service.create(command=["sleep", "100"], limits={"wall_seconds": 1}), "timed_out")
    service.err.wait(r"the webhook does not take an alert; it is given up", 60)
    assert len(hook.told) == 4


# ---- roots and records

def test_a_root_is_one_that_the_configuration_names(make, open_dir, tmp_path):
    """The name is for who asks, the directory for the operator."""
    for name in ("bin", "etc", "dev", "proc", "sys", "run", "tmp", "var", "home", "usr", "workspace"):
        (open_dir / name).mkdir()
    service = make({"rootfs": {"this": str(open_dir)}, "profiles": {"p": {"rootfs": "this"}}})
    for body in ({"rootfs": "this"}, {"profile": "p"}):
        ident = service.idle(**body)
        assert service.show(ident)["rootfs"] == "this"
        ended = service.wait(service.create(command=["/bin/sh", "-c", "true"], **body), *ENDED)
        assert ended["state"] == "failed", "it has programs that are not in its root: %r" % ended
    for wrong in ("other", "/", "/etc", str(tmp_path), "../this"):
        answer = service.post(API, {"rootfs": wrong, "command": ["true"]})
        assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/rootfs", answer


def test_a_root_that_is_no_more(make):
    """One that waits when the operator takes its root away does not start with another."""
    service = make({"limits": {"running": 1}, "rootfs": {"this": "/"}})
    first = service.idle()
    waiting = service.create(rootfs="this", command=["true"])
    service.stop()
    with open(service.config_path, "w", encoding="utf-8") as f:
        json.dump({"version": 1, "limits": {"running": 1}}, f)
    service.start()
    service.request("POST", API + "/" + first + "/stop")
    box = service.wait(waiting, *ENDED)
    assert box["state"] == "failed" and "root" in box["message"], box


def test_records_go_when_the_configuration_says(make):
    """With the sweep that is at the start, if they are old enough then."""
    service = make({"limits": {"records": "1s", "usage": "1s"}})
    ident = service.run("true", labels={"team": "x"})["id"]
    service.request("DELETE", API + "/" + ident)
    service.wait(ident, "deleted")
    service.stop()
    old = time.time() + 1.5
    wait_until(lambda: time.time() > old, 10, "time stands still")
    service.start()
    wait_until(lambda: service.get(API + "/" + ident).status == 404, 30, "the record stays")
    assert service.get("/api/v1/usage?by=team").json["items"] == []


def test_removal_that_fails_is_told_and_tried_again(make):
    """A mount point below its directory can't be removed, until it is none any more."""
    service = make()
    ident = service.run("true")["id"]
    stuck = service.directory(ident) + "/stuck"
    os.mkdir(stuck)
    subprocess.run(["mount", "-t", "tmpfs", "none", stuck], check=True, timeout=30)
    try:
        assert service.request("DELETE", API + "/" + ident).status == 202
        wait_until(lambda: "cleanup" in service.show(ident), 60, "the failure is not told")
        assert service.show(ident)["cleanup"]["tries"] >= 1 and service.show(ident)["cleanup"]["error"]
    finally:
        subprocess.run(["umount", stuck], check=True, timeout=30)
    service.wait(ident, "deleted")
    assert not os.path.exists(service.directory(ident))


def test_listening_on_a_relative_path_is_refused(tmp_path):
    done = subprocess.run([binary("cage"), "serve", "--state", str(tmp_path / "s"), "--listen", "unix:rel"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "expected an absolute path" in done.stderr


@pytest.mark.parametrize("config, wrong", [
    ({"backends": {}}, "at least one backend"), ({"backends": {"azure": {}}}, "backends.azure: is no backend: expected local, podman or aci"), ({"rootfs": {"a": "relative"}}, "absolute path"),
    ({"rootfs": {"a": "/none/such"}}, "no such directory"), ({"rootfs": {"a b": "/"}}, "expected a name"), ({"rootfs": ["/"]}, "a mapping"),
    ({"rootfs": {"n%d" % i: "/" for i in range(65)}}, "at most 64"), ({"limits": {"records": "11000d"}}, "limits.records"),
    ({"profiles": {"p": {"image": "localhost/a"}}}, "the backend local are made of no image"),
    ({"rootfs": {"a": "/"}, "profiles": {"p": {"image": "localhost/a", "rootfs": "a"}}}, "either a root or an image"),
    ({"profiles": {"p": {"rootfs": "none"}}}, "names no such root"), ({"profiles": {"p": {"backend": "none"}}}, "names no such backend"),
])
def test_what_is_wrong_with_backends_and_roots(tmp_path, config, wrong):
    path = tmp_path / "serve.yaml"
    path.write_text(json.dumps({"version": 1, "state": str(tmp_path / "s"), **config}))
    done = subprocess.run([binary("cage"), "serve", "--check", "--config", str(path)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 2 and wrong in done.stderr, done.stderr


def test_a_long_policy_of_the_directory_holds_nobody_up(make, tmp_path):
    """Megabytes of it are read, copied and checked while others are answered."""
    (tmp_path / "p").mkdir()
    names = "".join("  - {id: r%d, hosts: [h%d.example.com]}\n" % (i, i) for i in range(1000))
    (tmp_path / "p" / "long.yaml").write_text("version: 1\nname: long\nrules:\n" + names + "#" + "x" * (4 << 20) + "\n")
    (tmp_path / "p" / "bad.yaml").write_text("version: 1\nname: bad\nrules: 7\n")
    service = make({"policies": str(tmp_path / "p")})
    box = service.run("true", policy={"name": "long"})
    assert box["state"] == "succeeded" and len(box["policy"]["sha256"]) == 64
    answer = service.post(API, {"policy": {"name": "bad"}})
    assert answer.status == 422 and "rules" in json.dumps(answer.json["errors"]), answer
    answer = service.post(API, {"policy": {"name": "none"}})
    assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/policy/name", answer


# ---- a full disk

@pytest.fixture
def small_disk(tmp_path):
    where = tmp_path / "s"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "none", str(where)], check=True, timeout=30)
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True, timeout=30)


def fill(disk):
    """To the last byte."""
    with open(disk / "filler", "wb", buffering=0) as f:
        for size in (65536, 4096, 1):
            try:
                while f.write(bytes(size)) == size:
                    pass
            except OSError:
                pass
    return disk / "filler"


def test_a_full_disk(small_disk, make):
    """No sandbox is made, what runs goes on, and once there is room all goes on by itself."""
    service = make()
    ident = service.idle()
    filler = fill(small_disk)
    answer = service.post(API, {"command": ["true"], "files": {"a": "x" * 100000}})
    assert answer.status == 507 and answer.json["reason"] == "disk.full", answer
    assert service.get("/healthz").status == 200 and service.show(ident)["state"] == "running"
    filler.unlink()
    wait_until(lambda: service.post(API, {"command": ["true"]}).status == 201, 30, "no sandbox can be made")
    assert service.run("true")["state"] == "succeeded"
    assert service.result(ident, "shell_exec", command="echo fine")["stdout"] == "fine\n"


def test_a_full_disk_keeps_nobody_from_deleting(small_disk, make):
    """One that has ended, one that runs and one that waits: all go, with the disk full all the time."""
    service = make({"limits": {"running": 1}})
    ended = [service.run("true")["id"] for _ in range(3)]
    running = service.idle()
    waiting = service.create(command=["true"])
    fill(small_disk)
    for ident in [*ended, waiting, running]:
        answer = service.request("DELETE", API + "/" + ident)
        assert answer.status == 202, answer
    for ident in [*ended, waiting, running]:
        service.wait(ident, "deleted")
        assert not os.path.exists(service.directory(ident))
    assert not service.keepers()
    assert service.post(API, {"command": ["true"]}).status == 507


def test_a_full_disk_holds_starts(small_disk, make):
    """One that waits does not fail for want of room: it starts when there is some."""
    service = make({"limits": {"running": 1}})
    first = service.idle()
    waiting = service.create(command=["true"])
    filler = fill(small_disk)
    service.post(API + "/" + first + "/stop", {})
    service.wait(first, *ENDED)
    assert service.post(API, {"command": ["true"]}).status == 507
    assert service.show(waiting)["state"] == "queued"
    filler.unlink()
    assert service.wait(waiting, *ENDED)["state"] == "succeeded"


def test_started_on_a_full_disk(small_disk, make):
    """The service comes up, and what there is can be deleted."""
    service = make()
    ident = service.run("true")["id"]
    service.stop()
    filler = fill(small_disk)
    service.start()
    assert service.request("DELETE", API + "/" + ident).status == 202
    service.wait(ident, "deleted")
    assert service.post(API, {"command": ["true"]}).status == 507
    filler.unlink()
    wait_until(lambda: service.post(API, {"command": ["true"]}).status == 201, 30, "no sandbox can be made")


def test_a_full_disk_makes_no_call_twice(small_disk, make):
    """Whether what came of it can be kept or not, and whether it can be stored that it begins: each key stands for one call at most."""
    service = make()
    ident = service.idle()
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - 200 * 1024)  # for the decision log, and not for what the calls bring
    body = {"tool": "shell_exec", "arguments": {"command": "echo x >> count; head -c 300000 /dev/zero | tr '\\0' y"}}
    path = "%s/%s/tools/execute" % (API, ident)
    first = service.post(path, body, headers={"Idempotency-Key": "full"})
    others = [service.post(path, body, headers={"Idempotency-Key": "full"}) for _ in range(3)]
    assert first.status == 507, first
    assert {(a.status, a.json["type"]) for a in others} == {(409, "urn:cage:problem:outcome-unknown")}, others
    assert service.result(ident, "file_read", path="count")["content"] == "x\n"


def test_what_can_not_be_stored_as_begun_is_not_made(small_disk, make):
    service = make()
    ident = service.idle()
    path, made, answer, i = "%s/%s/tools/execute" % (API, ident), 0, None, 0
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - 100 * 1024)

    def call(key):
        return service.post(path, {"tool": "shell_exec", "arguments": {"command": "echo x >> count"}}, headers={"Idempotency-Key": key})

    def refused(answer):
        """It was not made: the disk is full for the store, or for the log of the sandbox, whichever has to write first."""
        why = {507: "disk.full", 503: "log.unavailable"}
        return answer.status in why and answer.json["reason"] == why[answer.status] and "is not made" in answer.json["detail"]

    for i in range(1000):
        answer = call("full-%d" % i)
        if answer.status == 507 and refused(answer):
            break
        made += not refused(answer)
        assert answer.status in (200, 507) or refused(answer), answer
    assert answer.json["reason"] == "disk.full" and i > 0, answer
    for j in range(5):
        answer = call("more-%d" % j)
        assert refused(answer), answer
    assert 1 <= service.err.text().count("disk is full") <= 2, service.err.text()  # it is said once, and again only after a write
    filler.unlink()
    wait_until(lambda: service.tool(ident, "file_read", path="count").status == 200, 20, "the log is not written again")
    assert service.result(ident, "file_read", path="count")["content"] == "x\n" * made
    again = call("full-%d" % i)
    assert again.status == 200, again
