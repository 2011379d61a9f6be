"""The clients and the real service together, with the real rooms: each command does what it says."""
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from cagelib.proxy import SANITIZER, Stderr, binary, bound, wait_until

SECONDS = 90


class Served:
    """cage serve with a state directory of its own, and its clients."""

    def __init__(self, directory):
        self.dir = directory
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("CAGE_") or k == "CAGE_BIN"}
        self.env["CAGE_STATE"] = str(directory / "state")
        self.token = self.cage("serve", "--new-token").stdout.strip()
        self.process = subprocess.Popen(bound("KILL", [binary("cage"), "serve", "--listen", "unix:%s" % (directory / "state" / "socket"), "--listen", "127.0.0.1:0"]),
                                        env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = Stderr(self.process.stderr)
        wait_until(lambda: "ready" in self.said.text(), SECONDS, "cage serve is not ready")
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.said.text()).group(1))

    def stop(self):
        for line in self.cage("list", "--all", "--json").stdout.splitlines():
            self.cage("rm", "--wait", json.loads(line)["id"])
        self.process.terminate()
        code = self.process.wait(SECONDS)
        self.said.wait_end(10)
        assert code == 0 and not SANITIZER.search(self.said.text()), self.said.text()

    def cage(self, *words, code=0, env=None, **more):
        if "input" not in more:
            more["stdin"] = subprocess.DEVNULL
        done = subprocess.run([binary("cage"), *words], env={**self.env, **(env or {})}, capture_output=True, timeout=SECONDS, **more)
        done.stdout, done.stderr = done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode("utf-8", "surrogateescape")
        assert not SANITIZER.search(done.stderr), done.stderr
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def create(self, *words, **more):
        return self.cage("create", *words, **more).stdout.strip()

    def show(self, ident):
        return json.loads(self.cage("show", "--json", ident).stdout)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    running = Served(tmp_path_factory.mktemp("served"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def idle(served):
    """A sandbox that waits for tool calls."""
    return served.create("--label", "kind=idle")


def test_a_command_with_all_that_it_is_given(served, tmp_path):
    (tmp_path / "main.sh").write_text("cat in; echo $WORD; echo wrong >&2; exit 7\n")
    done = served.cage("create", "--file", "main.sh=%s/main.sh" % tmp_path, "--file", "in=-", "--env", "WORD=é", "-f", "--", "sh", "main.sh", code=7, input=b"from stdin\n")
    assert done.stdout == "from stdin\né\n"
    ident = re.match(r"cage: (\S+)\nwrong\n$", done.stderr).group(1)
    assert served.cage("output", "--stdout", ident).stdout == "from stdin\né\n"
    assert served.cage("output", "--stderr", "-f", ident).stderr == "wrong\n"
    assert sorted(served.cage("output", ident).stdout.splitlines()) == ["from stdin", "wrong", "é"]
    assert (served.show(ident)["state"], served.show(ident)["exit_code"]) == ("failed", 7)


def test_ends_by_signal_and_by_time(served):
    assert "signal" in served.cage("create", "-f", "--", "sh", "-c", "kill -SEGV $$", code=128 + signal.SIGSEGV).stderr
    assert "time" in served.cage("create", "--limit", "wall=1s", "-f", "--", "sleep", "60", code=124).stderr


def test_stopped_while_it_is_followed(served):
    process = subprocess.Popen([binary("cage"), "create", "-f", "--", "sh", "-c", "echo begun; exec sleep 60"], env=served.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ident = process.stderr.readline().split()[1]
    assert process.stdout.readline() == "begun\n"
    served.cage("stop", ident)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode in (137, 143) and out == "" and "killed" in err


def test_exec(served, idle):
    done = served.cage("exec", idle, "--", "sh", "-c", "echo \"$1\"; echo e >&2; exit 3", "sh", "a  'b'", code=3)
    assert (done.stdout, done.stderr) == ("a  'b'\n", "e\n")
    assert served.cage("exec", idle, "--", "echo $((1 + 2)) | cat").stdout == "3\n"
    served.cage("exec", idle, "--", "kill -9 $$", code=137)
    assert "time" in served.cage("exec", idle, "--timeout", "1", "--", "sleep", "60", code=124).stderr
    assert json.loads(served.cage("exec", idle, "--json", "--", "echo x").stdout)["stdout"] == "x\n"
    assert served.cage("exec", idle, "--", "printf 'a\\000b'; printf '\\000' >&2").stdout == "a\0b"
    served.cage("exec", idle, "--tool", "file_write", '{"path": "t", "content": "text"}')
    assert json.loads(served.cage("exec", idle, "--tool", "file_read", "-", input=b'{"path": "t"}').stdout)["content"] == "text"


def test_what_is_denied_is_said_and_logged(served):
    ident = served.create("--tool", "shell_exec", "--tool", "file_read", "--block", "rm +-rf")
    assert "Forbidden" in served.cage("exec", ident, "--", "rm", "-rf", "/", code=1).stderr
    served.cage("exec", ident, "--tool", "file_list", '{"path": "."}', code=1)
    assert "relative to /workspace" in served.cage("exec", ident, "--tool", "file_read", '{"path": "/workspace/x"}', code=1).stderr
    assert "no such tool" in served.cage("exec", ident, "--tool", "nothing", code=1).stderr
    served.cage("exec", ident, "--tool", "file_read", '{"path": "../etc/passwd"}', code=1)
    served.cage("rm", ident)
    lines = []
    ident = served.create("--tool", "shell_exec", "--block", "^false$")
    served.cage("exec", ident, "--", "false", code=1)
    served.cage("exec", ident, "--", "true")
    wait_until(lambda: len([x for x in logged(served, ident, lines) if x["event"] == "tool"]) == 2, 10, "tool calls are not logged")
    assert [(x["decision"], x.get("reason")) for x in lines if x["event"] == "tool"] == [("block", "tool.command"), ("allow", None)]


def test_what_a_request_failed_at_is_said(served, idle):
    said = served.cage("exec", idle, "--tool", "http_request", '{"url": "http://127.0.0.1:1/"}', code=1).stderr
    assert re.match(r"cage: Bad Gateway: the request could not be made: proxy: .{8}", said), said


def logged(served, ident, lines):
    lines[:] = [json.loads(line) for line in served.cage("logs", ident).stdout.splitlines()]
    return lines


def test_verify(served, idle):
    table = served.cage("verify", idle).stdout.splitlines()
    assert re.fullmatch(r"\d+ probes, 0 surprises, \d+ left out", table[-1]), table
    assert any(re.fullmatch("ok +fails +TCP over IPv6", line) for line in table) and any(re.fullmatch("ok +works +the CA", line) for line in table)
    result = json.loads(served.cage("verify", "--json", idle).stdout)
    assert result["closed"] and result["surprises"] == 0 and result["tried"] + result["left_out"] == len(result["probes"]) == len(table) - 1
    assert result["tried"] >= 60
    assert {p["reason"] for p in result["probes"] if p["verdict"] == "left_out"} == {"none is laid for a sandbox that runs", "they are the sandbox's own"}
    served.cage("verify", "none", code=1)


def test_verify_with_a_surprise(served):
    """In its own network each address is the sandbox itself: who serves one of those that are tried is found."""
    ident = served.create("--", "python3", "-m", "http.server", "2375")
    served.cage("exec", ident, "--", "until curl -s -o /dev/null http://127.0.0.1:2375/; do sleep 0.1; done")
    done = served.cage("verify", ident, code=1)
    assert re.search(r"^SURPRISE +works +TCP to a Docker service$", done.stdout, re.M) and "probes, 1 surprises, " in done.stdout
    result = json.loads(served.cage("verify", "--json", ident, code=1).stdout)
    assert not result["closed"] and [p["name"] for p in result["probes"] if p["verdict"] == "surprise"] == ["TCP to a Docker service"]


def test_verify_where_somebody_ends_the_probes(served):
    """Programs of the sandbox can't look at them, and end whoever comes; that is no result, and never a good one."""
    script = "import os,signal\nme = os.getpid()\nwhile True:\n for p in range(me + 1, me + 200):\n  try: os.kill(p, 9)\n  except OSError: pass"
    ident = served.create("--", "python3", "-c", script)
    done = served.cage("verify", ident, code=1)
    assert "did not come to their end" in done.stderr or "SURPRISE" in done.stdout, (done.stdout, done.stderr)


def test_cp_there_and_back(served, idle, tmp_path):
    data = os.urandom(20 << 20)
    (tmp_path / "f").write_bytes(data)
    served.cage("cp", str(tmp_path / "f"), idle + ":dir/a b")
    with subprocess.Popen(["cat", str(tmp_path / "f")], stdout=subprocess.PIPE) as pipe:
        subprocess.run([binary("cage"), "cp", "-", idle + ":piped"], env=served.env, stdin=pipe.stdout, timeout=SECONDS, check=True)
    assert served.cage("exec", idle, "--", "cmp", "dir/a b", "piped").stdout == ""
    served.cage("cp", idle + ":dir/a b", str(tmp_path / "g"))
    assert (tmp_path / "g").read_bytes() == data
    served.cage("exec", idle, "--", "rm", "-r", "dir", "piped")
    for path in ("../x", "a/../../x", "none"):
        assert served.cage("cp", "%s:%s" % (idle, path), str(tmp_path / "h"), code=1).stderr.startswith("cage: ")
    assert served.cage("cp", str(tmp_path / "f"), idle + ":../x", code=1).stderr.startswith("cage: ")
    assert not (tmp_path / "h").exists()


def test_cp_of_more_than_fits(served, tmp_path):
    ident = served.create("--limit", "disk=1MiB")
    with open(tmp_path / "f", "wb") as f:
        f.truncate(64 << 20)
    assert served.cage("cp", str(tmp_path / "f"), ident + ":f", code=1).stderr.startswith("cage: ")
    assert served.cage("exec", ident, "--", "echo", "still", "there").stdout == "still there\n"


def test_cp_of_more_than_a_file_may_have(served, idle):
    """Of a pipe nobody knows the size before: it is refused when there is too much, and the refusal is heard."""
    with subprocess.Popen(["head", "-c", str(600 << 20), "/dev/zero"], stdout=subprocess.PIPE) as pipe:
        done = subprocess.run([binary("cage"), "cp", "-", idle + ":big"], env=served.env, stdin=pipe.stdout, stderr=subprocess.PIPE, timeout=SECONDS)
        pipe.stdout.close()
    assert done.returncode == 1 and b"too large" in done.stderr


def test_keep(served, tmp_path):
    words = ("-f", "--", "sh", "-c", "echo kept > f")
    for keep, code in ((["--keep"], 0), ([], 1)):
        ident = served.cage("create", *keep, *words).stderr.split()[1]
        served.cage("cp", ident + ":f", str(tmp_path), code=code)
    assert (tmp_path / "f").read_text() == "kept\n"


def test_reload(served, idle, tmp_path):
    before = served.show(idle)["policy"]["sha256"]
    wrong = served.cage("reload", idle, "-", input=b"version: 1\nname: x\nruels: []\n", code=1).stderr
    assert "  -:3:" in wrong and "ruels" in wrong and served.show(idle)["policy"]["sha256"] == before
    (tmp_path / "p.yaml").write_text("version: 1\nname: fresh\nrules:\n  - {id: a, hosts: [a.test]}\n")
    served.cage("reload", idle, str(tmp_path / "p.yaml"))
    assert served.show(idle)["policy"]["sha256"] != before


def test_problems_have_pointers(served):
    done = served.cage("create", "--limit", "memory=5B", "--tool", "nothing", "--profile", "not-there", code=1)
    assert "/limits/memory: " in done.stderr and "/tools/0: " in done.stderr and done.stdout == ""
    assert served.cage("show", "none", code=1).stderr.startswith("cage: Not Found")


def test_errors_name_what_can_be_said_instead(served, tmp_path):
    """The file of a policy as it was given, the states that there are, and the backends."""
    (tmp_path / "bad.yaml").write_text("version: 1\nname: x\nruels: []\n")
    done = served.cage("create", "--policy", str(tmp_path / "bad.yaml"), "--", "true", code=1)
    assert "  %s/bad.yaml:3:1: " % tmp_path in done.stderr and " policy:" not in done.stderr, done.stderr
    assert "queued, creating, running, succeeded, failed, timed_out, killed or deleted" in served.cage("list", "--state", "bogus", code=1).stderr
    assert "running, succeeded, failed or cancelled" in served.cage("workflow", "list", "--state", "bogus", code=1).stderr
    done = served.cage("create", "--backend", "aci", "--", "true", code=1)
    assert "/backend: the configuration names no such backend; it has local: others are added to `backends`" in done.stderr, done.stderr


def test_secrets_reach_the_sandbox_as_placeholders(served, tmp_path):
    policy = tmp_path / "p.yaml"
    policy.write_text("version: 1\nname: p\nrules:\n  - {id: a, hosts: [a.test], secrets: [key1]}\nsecrets:\n  - {id: key1, from: {env: KEY1}}\n")
    words = ("--policy", str(policy), "--secret", "key1", "-f", "--", "sh", "-c", "echo $KEY1")
    assert "ask for it with --secret ID" in served.cage("create", "--policy", str(policy), "--", "true", code=1).stderr
    assert served.cage("create", *words, code=1).stderr.startswith("cage: ")
    served.cage("secret", "set", "key1", input=b"the-real-value\n")
    out = served.cage("create", *words).stdout.strip()
    assert out and "real-value" not in out
    served.cage("secret", "rm", "key1")


def test_list_and_usage(served, idle):
    row = next(json.loads(line) for line in served.cage("list", "--label", "kind=idle", "--state", "running", "--json").stdout.splitlines())
    assert row["id"] == idle and row["labels"] == {"kind": "idle"}
    assert re.search(r"^%s +running +started +\S+ +- +kind=idle +-$" % idle, served.cage("list").stdout, re.M)
    assert served.cage("list", "--label", "kind=none").stdout.count("\n") == 1
    ident = served.cage("create", "--label", "team=a", "-f", "--", "true").stderr.split()[1]
    rows = [json.loads(line) for line in served.cage("usage", "--by", "team", "--since", "1h", "--json").stdout.splitlines()]
    assert [r["sandboxes"] for r in rows if r["value"] == "a"] == [1]
    assert "memory_peak=" in served.cage("show", ident).stdout
    assert "shell_exec" in served.cage("show", idle).stdout


def test_logs_and_output_followed_to_the_end(served):
    ident = served.create("--", "sh", "-c", "mkfifo go; echo 1; read x < go; echo 2")
    follow = [subprocess.Popen([binary("cage"), what, "-f", ident], env=served.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) for what in ("output", "logs")]
    assert follow[0].stdout.readline() == "1\n"
    served.cage("stop", ident)
    ends = [f.communicate(timeout=SECONDS)[0] for f in follow]
    assert [f.returncode for f in follow] == [0, 0] and ends[0] == ""
    assert json.loads(ends[1].splitlines()[0])["event"] == "start"


def test_rm_waits_until_all_is_gone(served):
    ident = served.create()
    where = served.dir / "state" / "sandboxes" / ident
    assert where.exists()
    served.cage("rm", "--wait", ident)
    assert not where.exists() and served.show(ident)["state"] == "deleted"
    served.cage("rm", ident)
    assert served.cage("exec", ident, "--", "true", code=1).stderr.startswith("cage: ")


def test_over_tcp(served):
    url = "http://127.0.0.1:%d" % served.port
    served.cage("list", "--url", url, env={"CAGE_TOKEN": served.token})
    assert "Unauthorized: the token is wrong" in served.cage("list", "--url", url, env={"CAGE_TOKEN": "wrong"}, code=1).stderr


def test_published_ports_are_shown(served):
    script = "import socket; s = socket.create_server(('127.0.0.1', 8000)); c, _ = s.accept(); c.sendall(b'hello'); c.close()"
    ident = served.create("--publish", "8000", "--", "python3", "-c", script)
    assert re.search(r"^port +8000 at 127\.0\.0\.1:\d+$", served.cage("show", ident).stdout, re.M)
    served.cage("rm", ident)


def test_ports_that_can_not_be_published(served):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ident = served.create("--detach", "--publish", "8000:%d" % port)
        wait_until(lambda: served.show(ident)["state"] == "failed", SECONDS, "it runs")
        assert "port %d of this machine: Address already in use" % port in served.show(ident)["message"]
    assert "53, 80, 443 and 8080" in served.cage("create", "--publish", "443", code=1).stderr


def test_a_new_token_voids_the_old(tmp_path):
    env = {**os.environ, "CAGE_STATE": str(tmp_path / "state")}
    first, second = [subprocess.run([binary("cage"), "serve", "--new-token"], env=env, capture_output=True, timeout=SECONDS, check=True, text=True) for _ in range(2)]
    assert first.stderr == "" and "good no longer" in second.stderr and first.stdout != second.stdout


def test_who_stops_waiting_is_told_that_it_goes_on(served):
    waiting = subprocess.Popen([binary("cage"), "create", "-f", "--", "sh", "-c", "echo here; sleep 1000"], env=served.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert waiting.stdout.readline() == "here\n"
    waiting.send_signal(signal.SIGINT)
    said = waiting.communicate(timeout=SECONDS)[1]
    ident = re.match(r"cage: (sb-\S+)\n", said).group(1)
    assert waiting.returncode == -signal.SIGINT and said.endswith("cage: %s goes on; cage stop %s ends it\n" % (ident, ident))
    assert served.show(ident)["state"] == "running"
    served.cage("rm", "--wait", ident)


def test_a_hangup_is_answered_with_what_to_do(served):
    served.process.send_signal(signal.SIGHUP)
    served.said.wait("the configuration is read at the start", SECONDS)
    assert served.cage("list").returncode == 0


def test_a_place_that_is_no_file(served, tmp_path):
    (tmp_path / "f").write_text("x")
    assert "expected the name of a file" in served.cage("cp", str(tmp_path / "f"), "sb-none:dir/", code=2).stderr


# ---- workflows

WORKFLOW = """
name: sums
labels: {port: 8080}          # text, though it looks like a number
steps:
  - id: make
    sandbox:
      command: [sh, -c, "seq 3 > numbers; cat script.sh > copy"]
      files_from: {script.sh: local/script.sh}
      limits: {memory: 67108864, wall_seconds: 60}
      env: {port: 1}
    artifacts: [{path: numbers, max_bytes: 100}, {path: copy}]
  - id: sum
    needs: [make]
    sandbox: {command: [sh, -c, "paste -sd+ in.txt > formula"], keep: true}
    inputs: [{step: make, path: numbers, to: in.txt}]
    artifacts: [{path: formula}]
"""


@pytest.fixture
def workflow_file(tmp_path):
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "script.sh").write_text("échó\n")
    (tmp_path / "flow.yaml").write_text(WORKFLOW)
    return tmp_path / "flow.yaml"


def test_a_workflow(served, workflow_file, tmp_path):
    done = served.cage("workflow", "run", "-f", str(workflow_file))
    ident = re.match(r"(wf-\w+) succeeded \(steps\) sums\n", done.stdout).group(1)
    assert re.search(r"^sum +succeeded +exit +sb-\w+ +formula \(6 B\)", done.stdout, re.M), done.stdout
    assert "step make: running" in done.stderr and "step sum: succeeded (exit)" in done.stderr
    assert served.cage("workflow", "artifact", ident, "sum", "formula").stdout == "1+2+3\n"
    served.cage("workflow", "artifact", "-o", str(tmp_path / "out"), ident, "make", "copy")
    assert (tmp_path / "out").read_text() == "échó\n"
    shown = json.loads(served.cage("workflow", "show", "--json", ident).stdout)
    assert (shown["name"], shown["labels"]) == ("sums", {"port": "8080"})
    assert served.show(shown["steps"][0]["sandbox"])["limits"]["memory"] == 67108864
    assert ident in served.cage("workflow", "list", "--label", "port=8080").stdout
    assert json.loads(served.cage("workflow", "list", "--json").stdout.splitlines()[0])["id"] == ident
    served.cage("workflow", "rm", ident)
    wait_until(lambda: ident not in served.cage("workflow", "list").stdout, SECONDS, "it is not removed")
    assert "no such workflow" in served.cage("workflow", "show", ident, code=1).stderr


def test_a_workflow_that_fails(served, tmp_path):
    body = {"steps": [{"id": "a", "sandbox": {"command": ["false"]}}, {"id": "b", "needs": ["a"], "sandbox": {"command": ["true"]}}]}
    (tmp_path / "flow.json").write_text(json.dumps(body))
    done = served.cage("workflow", "run", str(tmp_path / "flow.json"), code=1)
    assert " failed (steps)" in done.stdout and re.search(r"^b +skipped +needs", done.stdout, re.M)
    assert done.stderr == "cage: %s\n" % done.stdout.split()[0]  # where there is no terminal too
    assert json.loads(served.cage("workflow", "run", "--json", "-", code=1, input=json.dumps(body).encode()).stdout)["state"] == "failed"


def test_a_workflow_that_is_cancelled(served):
    body = {"steps": [{"id": "a", "sandbox": {"command": ["sleep", "1000"]}}]}
    ident = served.cage("workflow", "run", "-d", "-", input=json.dumps(body).encode()).stdout.strip()
    served.cage("workflow", "cancel", ident)
    wait_until(lambda: "cancelled (asked)" in served.cage("workflow", "show", ident).stdout, SECONDS, "it is not cancelled")


@pytest.mark.parametrize("text, said", [
    ("steps: [", "flow:"), ("{\"steps\": ", "flow:1:"), ("steps:\n  - {id: a, sandbox: {files_from: {x: none}}}", "flow: step a: files_from: none: No such file"),
    ("steps: [a, \"\\t\"]", "flow:1:12: control characters are not allowed here"),
])
def test_a_workflow_file_that_is_none(served, tmp_path, text, said):
    (tmp_path / "flow").write_text(text)
    assert said in served.cage("workflow", "run", str(tmp_path / "flow"), code=2).stderr


@pytest.mark.parametrize("name", ["absolute", "../secret", "local/../../secret", "link", "linked/secret"])
def test_a_workflow_reads_no_file_that_is_not_beside_it(served, tmp_path, name):
    (tmp_path / "flow" / "local").mkdir(parents=True)
    (tmp_path / "secret").write_text("of this machine\n")
    (tmp_path / "flow" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "flow" / "linked").symlink_to("..")
    name = str(tmp_path / "secret") if name == "absolute" else name
    body = {"steps": [{"id": "a", "sandbox": {"command": ["cat", "x"], "files_from": {"x": name}}}]}
    (tmp_path / "flow" / "flow.json").write_text(json.dumps(body))
    done = served.cage("workflow", "run", str(tmp_path / "flow" / "flow.json"), code=2)
    assert "is not in the directory of the workflow's file" in done.stderr and done.stdout == "", done


def test_what_is_wrong_with_a_workflow(served, tmp_path):
    (tmp_path / "flow").write_text("steps:\n  - {id: a, needs: [b], sandbox: {command: [x]}}\n  - {id: c, needs: [c], sandbox: {command: [x]}}\n")
    said = served.cage("workflow", "run", str(tmp_path / "flow"), code=1).stderr
    assert "/steps/0/needs/0: there is no step" in said and "/steps/1/needs: leads back" in said
    (tmp_path / "flow").write_text("steps:\n  - {id: a, sandbox: {comand: [x]}}\n")
    assert "/steps/0/sandbox/comand: is not known; did you mean \"command\"?" in served.cage("workflow", "run", str(tmp_path / "flow"), code=1).stderr
    for words in (["none"], [], ["run"], ["show"], ["artifact", "a", "b"], ["show", "a b"]):
        served.cage("workflow", *words, code=2)
