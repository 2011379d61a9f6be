"""The commands that are clients of cage serve, against a service that says what the test tells it to say: what they ask for, what
they show, how they end, and what they do with answers that are broken, slow or hostile."""
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from cagelib.cage_run import Terminal
from cagelib.proxy import SANITIZER, binary
from cagelib.service_stand_in import StandIn, chunked, events, problem, response, sandbox

SECONDS = 60
BOXES = "/api/v1/sandboxes"
BOX = BOXES + "/box1"
END = '{"state": "succeeded", "reason": "exit", "exit_code": 0}'


class Service(StandIn):
    """With the client beside it."""

    def cage(self, *words, where=None, env=None, code=0, binary_output=False, **more):
        if "input" not in more and "stdin" not in more:
            more["stdin"] = subprocess.DEVNULL
        done = run(*words, env={"CAGE_SOCKET": self.path if where is None else where, **(env or {})}, **more)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        if not binary_output:
            done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done


def run(*words, env=None, **more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CAGE_") and k != "XDG_STATE_HOME"}
    done = subprocess.run([binary("cage"), *words], env={**clean, **(env or {})}, capture_output=True, timeout=SECONDS, **more)
    assert not SANITIZER.search(done.stderr.decode("utf-8", "replace")), done.stderr.decode()
    return done


@pytest.fixture
def service(tmp_path):
    with Service(str(tmp_path / "s")) as running:
        yield running


# ---- where the service is ----

def test_nobody_there(tmp_path):
    done = run("list", "--socket", str(tmp_path / "none"))
    assert done.returncode == 1 and done.stdout == b""
    assert str(tmp_path / "none") in done.stderr.decode() and "cage serve starts one" in done.stderr.decode()


def test_default_socket_is_in_the_state_directory(tmp_path):
    for env, path in (({"CAGE_STATE": str(tmp_path)}, tmp_path / "socket"), ({"CAGE_SOCKET": str(tmp_path / "x")}, tmp_path / "x")):
        done = run("list", env=env)
        assert done.returncode == 1 and str(path) + ":" in done.stderr.decode()


def test_socket_option_goes_before_the_variable(service, tmp_path):
    service.say("GET", BOXES + "?limit=100", response(body={"items": [], "next": None}))
    service.cage("list", "--socket", service.path, where=str(tmp_path / "none"))


def test_tcp_with_a_token(tmp_path):
    token = tmp_path / "token"
    token.write_text("from-a-file\n")
    with Service(("127.0.0.1", 0)) as there:
        there.say("GET", BOXES + "?limit=100", response(body={"items": [], "next": None}))
        url = "http://127.0.0.1:%d" % there.port
        there.cage("list", "--url", url, where="", env={"CAGE_TOKEN": "t0ken"})
        there.cage("list", "--url", url.replace("127.0.0.1", "localhost") + "/", "--token-file", str(token), where="")
        assert [r.headers["authorization"] for r in there.requests] == ["Bearer t0ken", "Bearer from-a-file"]
        assert there.requests[0].headers["host"] == "127.0.0.1:%d" % there.port
        for env in ({}, {"CAGE_TOKEN": ""}, {"CAGE_TOKEN": "a b"}, {"CAGE_TOKEN": "x" * 300}):
            assert "token" in there.cage("list", "--url", url, where="", env=env, code=2).stderr.lower()
        assert len(there.requests) == 2


@pytest.mark.parametrize("url", ["https://127.0.0.1:80", "127.0.0.1:80", "http://127.0.0.1", "http://example.com:80", "http://127.0.0.1:80/x", "http://a@127.0.0.1:80",
                                 "http://127.0.0.1:99999", "http://localhost:", "http://" + "1" * 200])
def test_wrong_urls(url):
    done = run("list", "--url", url, env={"CAGE_TOKEN": "t"})
    assert done.returncode == 2 and "http://ADDRESS:PORT" in done.stderr.decode()


def test_no_token_over_a_unix_socket(service):
    service.say("GET", BOXES + "?limit=100", response(body={"items": [], "next": None}))
    service.cage("list", env={"CAGE_TOKEN": "t0ken"})
    assert "authorization" not in service.requests[0].headers


# ---- answers that are not what they should be ----

@pytest.mark.parametrize("said, shown", [
    (b"", "ended the connection"),
    (b"HTTP/1.1 200 OK\r\nContent-Le", "ended the connection"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", "ended the connection"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}", "ended the connection"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "no HTTP"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "no HTTP"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\nX: y\r\n\r\n{}", "no HTTP"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "no HTTP"),
    (b"HTTP/1.1 200 OK\r\n\r\n{}", "where it ends"),
    (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000 + b"\r\n\r\n", "more than can be taken"),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 100, "no HTTP"),
    (response(body=b"<html>"), "is that cage serve"),
    (response(body=b"[]"), "is that cage serve"),
    (response(body=b""), "is that cage serve"),
    (response(404, b"<html>not found</html>", "text/html"), "status 404"),
    (response(302, b"", headers=["Location: http://127.0.0.1/"]), "status 302"),
    (b"HTTP/1.1 500 X\r\nContent-Length: 10\r\n\r\n{}", "ended the connection"),
], ids=lambda v: "said" if isinstance(v, bytes) else v)
def test_broken_answers(service, said, shown):
    service.say("GET", BOX, said)
    done = service.cage("show", "box1", code=1)
    assert shown in done.stderr and done.stdout == ""


def test_interim_answers_and_pieces(service):
    """An answer that comes byte by byte, with one before it that says only that it will come."""
    def slowly(conn, _):
        for byte in b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + chunked([json.dumps(sandbox()).encode()], "application/json"):
            conn.sendall(bytes([byte]))
    service.say("GET", BOX, slowly)
    assert json.loads(service.cage("show", "box1", "--json").stdout) == sandbox()


def test_problems_are_shown(service):
    service.say("POST", BOXES, problem(422, "Invalid request", "two things are wrong", errors=[
        {"pointer": "/limits/cpu", "detail": "is more than 4"}, {"detail": "no \x1b[31mpointer\u202e"}]))
    done = service.cage("create", "--", "true", code=1)
    assert done.stderr == ("cage: Invalid request: two things are wrong\ncage:   /limits/cpu: is more than 4\n"
                           "cage:   no \\x1b[31mpointer\\u{202e}\n")


@pytest.mark.parametrize("words", [["show"], ["show", "a", "b"], ["show", "a/b"], ["show", ".."], ["show", "a", "--", "b"], ["list", "x"], ["list", "--limit", "0"],
                                   ["list", "--wrong"], ["exec", "box1"], ["exec", "box1", "--"], ["exec", "box1", "x", "--", "y"], ["exec", "box1", "--tool", "t", "[]"],
                                   ["exec", "box1", "--tool", "t", "--", "x"], ["exec", "box1", "--timeout", "0", "--", "x"], ["cp", "a", "b"], ["cp", "a:b", "c:d"],
                                   ["cp", "a", "box1:"], ["reload", "box1"], ["rm"], ["stop", "a", ""], ["usage", "--since", "yesterday"], ["create", "word"],
                                   ["create", "--"], ["create", "-f"], ["create", "-f", "-d", "--", "x"], ["create", "--limit", "ram=1"], ["create", "--limit", "memory=x"],
                                   ["create", "--limit", "cpu=1,"], ["create", "--lifetime", "1"], ["create", "--env", "=x"], ["create", "--env", "NOT_SET_AT_ALL"],
                                   ["create", "--label", "x"], ["create", "--file", "x"], ["create", "--file", "x=/not/there"], ["create", "--publish", "0"],
                                   ["create", "--publish", "80:x"], ["create", "--policy", "./none.yaml"], ["create", "--allow", "a", "--policy", "b"],
                                   ["create", "--no-network", "--allow", "a"], ["secret"], ["secret", "get", "x"], ["secret", "set"], ["secret", "set", "a/b"],
                                   ["list", "--socket", "x" * 200], ["list", "--socket", "a", "--url", "http://127.0.0.1:1"], ["list", "--token-file", "x"]], ids=lambda words: " ".join(words)[:40])
def test_wrong_usage(service, words):
    done = service.cage(*words, code=2)
    assert all(line.startswith("cage: ") or line.startswith("cage ") for line in done.stderr.splitlines()) and done.stderr
    assert done.stdout == "" and not service.requests


@pytest.mark.parametrize("words, said", [
    (["create", "--bogus"], "cage: create: unrecognized option '--bogus'\ncage: cage create --help lists all options\n"),
    (["secret", "--bogus"], "cage: secret: unrecognized option '--bogus'\ncage: cage secret --help says more\n"),
    (["exec"], "cage: exec: expected ID -- CMD, or ID --tool NAME JSON\n"),
    (["rm"], "cage: rm: expected ID...\n"),
    (["reload", "box1"], "cage: reload: expected ID POLICY\n"),
    (["logs"], "cage: logs: expected ID\n"),
    (["exec", "box1", "cat", "f"], "cage: f: is not expected here; put -- before a command\n"),
    (["create", "true"], "cage: true: is not expected here; put -- before a command\n"),
    (["create", "--limit", "cpu=1,wall=10"], "cage: --limit cpu=1,wall=10: expected a time with its unit, such as 10s or 10m\n"),
    (["create", "-f", "--json", "--", "x"], "cage: --follow and --json: only one of them can be meant\n"),
], ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else "")
def test_wrong_usage_is_said(service, words, said):
    assert service.cage(*words, code=2).stderr.startswith(said)


def test_a_reader_that_has_enough(service):
    """As with | head: nobody is told that the pipe was closed by the one who closed it."""
    service.say("GET", BOXES + "?limit=100", response(body={"items": ROWS, "next": None}))
    service.say("GET", BOX, response(body=sandbox()))
    service.say("GET", BOX + "/output", response(body=b"x", kind="application/octet-stream"))
    for words in (["list"], ["list", "--json"], ["show", "box1"], ["output", "box1"]):
        reads, writes = os.pipe()
        os.close(reads)
        done = subprocess.run([binary("cage"), *words, "--socket", service.path], stdout=writes, stderr=subprocess.PIPE, timeout=SECONDS)
        os.close(writes)
        assert done.returncode != 0 and done.stderr == b"", words


@pytest.mark.parametrize("command", ["create", "list", "show", "logs", "output", "exec", "cp", "reload", "stop", "rm", "usage", "secret"])
def test_help(command):
    texts = [run(command, "--help"), run(command, "-h"), run("help", command)]
    assert {t.returncode for t in texts} == {0} and len({t.stdout for t in texts}) == 1
    text = texts[0].stdout.decode()
    assert text.startswith("usage: cage %s " % command) and "--help" in text
    assert max(map(len, text.splitlines())) <= 96
    assert command in run("--help").stdout.decode()


# ---- create ----

def test_create_asks_for_what_it_was_told(service, tmp_path):
    (tmp_path / "main.py").write_text("print('é')\n")
    (tmp_path / "p.yaml").write_text("version: 1\nname: p\n")
    service.say("POST", BOXES, response(201, sandbox(state="queued")))
    service.say("GET", BOX, response(body=sandbox()))
    done = service.cage("create", "--profile", "python-eval", "--policy", str(tmp_path / "p.yaml"), "--file", "src/main.py=%s/main.py" % tmp_path, "--file", "in=-",
                        "--env", "A=b=c", "--env", "OURS", "--secret", "key1", "--tool", "shell_exec", "--tool", "file_read", "--block", "rm +-rf",
                        "--limit", "cpu=0.5,memory=512MiB,pids=64", "--limit", "disk=1GiB,wall=10m,egress=0,output=4096", "--lifetime", "1h", "--keep",
                        "--label", "team=research", "--label", "user=", "--publish", "8080", "--publish", "80:8081", "--rootfs", "python",
                        "--backend", "podman", "--image", "registry.test/a@sha256:00", "--",
                        "python3", "-c", "x y", "--", "-h", input=b"from stdin", env={"OURS": "of ours"})
    assert done.stdout == "box1\n" and done.stderr == ""
    request = service.asked("POST", BOXES)[0]
    assert request.headers["content-type"] == "application/json"
    assert re.fullmatch("[0-9a-f]{32}", request.headers["idempotency-key"])
    assert request.json() == {
        "profile": "python-eval", "policy": {"inline": "version: 1\nname: p\n"}, "files": {"src/main.py": "print('é')\n", "in": "from stdin"},
        "env": {"A": "b=c", "OURS": "of ours"}, "secrets": ["key1"], "tools": ["shell_exec", "file_read"], "blocked_commands": ["rm +-rf"],
        "limits": {"cpu": 0.5, "memory": 512 << 20, "pids": 64, "disk": 1 << 30, "wall_seconds": 600, "egress_bytes": 0, "output_bytes": 4096},
        "lifetime_seconds": 3600, "keep": True, "labels": {"team": "research", "user": ""},
        "publish": [{"port": 8080, "host_port": 0}, {"port": 80, "host_port": 8081}], "rootfs": "python", "backend": "podman",
        "image": "registry.test/a@sha256:00", "command": ["python3", "-c", "x y", "--", "-h"]}


@pytest.mark.parametrize("words, part", [
    (["--allow", "a.test", "--allow", "*.b.test"], {"network": {"mode": "allowlist", "domain_allowlist": ["a.test", "*.b.test"]}}),
    (["--no-network"], {"network": {"mode": "none"}}),
    (["--policy", "web"], {"policy": {"name": "web"}}),
    (["--tool", "none"], {"tools": []}),
    ([], {}),
])
def test_create_parts(service, words, part):
    service.say("POST", BOXES, response(201, sandbox(state="queued")))
    service.cage("create", "--detach", *words)
    assert service.requests[0].json() == part and len(service.requests) == 1


def test_create_refuses_files_that_are_no_text(service, tmp_path):
    (tmp_path / "bin").write_bytes(b"\xff\xfe")
    assert "cage cp" in service.cage("create", "--file", "a=%s/bin" % tmp_path, code=2).stderr
    with open(tmp_path / "big", "wb") as f:
        f.truncate((16 << 20) + 1)
    assert "too large" in service.cage("create", "--file", "a=%s/big" % tmp_path, code=2).stderr


def test_create_waits_until_it_runs(service):
    service.say("POST", BOXES, response(201, sandbox(state="queued")))
    service.say("GET", BOX, *[response(body=sandbox(state=s)) for s in ("queued", "queued", "creating", "running")])
    done = service.cage("create", "--json")
    assert json.loads(done.stdout)["state"] == "running" and len(service.asked("GET", BOX)) == 4


def test_create_that_fails(service):
    service.say("POST", BOXES, response(201, sandbox(state="queued")))
    service.say("GET", BOX, response(body={**sandbox(state="failed", reason="room.failed", message="no\x1bcgroup")}))
    done = service.cage("create", "--", "true", code=1)
    assert done.stdout == "box1\n" and done.stderr == "cage: box1 failed: room.failed: no\\x1bcgroup\n"


def test_create_is_asked_again_with_the_same_key(service):
    """The service was restarted between the request and its answer."""
    service.say("POST", BOXES, b"", response(201, sandbox(state="queued")))
    assert service.cage("create", "--detach").stdout == "box1\n"
    first, second = service.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] and first.body == second.body


def test_create_shows_progress_on_a_terminal(service):
    service.say("POST", BOXES, response(201, sandbox(state="queued")))
    service.say("GET", BOX, response(body=sandbox(state="queued", queued_before=3)), response(body=sandbox(state="creating")), response(body=sandbox()))
    terminal = Terminal([binary("cage"), "create", "--socket", service.path])
    code, seen = terminal.end()
    assert code == 0
    assert seen.replace("\r\n", "\n") == "box1\n\r\x1b[Kbox1 queued (3 before it) ...\r\x1b[Kbox1 creating ...\r\x1b[K"


@pytest.mark.parametrize("ending, code", [
    ({"state": "succeeded", "reason": "exit", "exit_code": 0}, 0),
    ({"state": "failed", "reason": "exit", "exit_code": 7}, 7),
    ({"state": "failed", "reason": "signal", "exit_code": 139}, 139),
    ({"state": "failed", "reason": "room.failed"}, 1),
    ({"state": "timed_out", "reason": "time.wall"}, 124),
    ({"state": "killed", "reason": "asked"}, 137),
])
def test_follow_ends_as_the_command_did(service, ending, code):
    service.say("POST", BOXES, response(201, sandbox(state="queued")))
    service.say("GET", BOX, response(body=sandbox()))
    service.say("GET", BOX + "/output?follow=true&stream=both",
                events(("stdout", '"one\\n"'), ("stderr", '"two\\u0000\\n"'), ("stdout", '"three \\u2603"'), ("end", json.dumps(ending))))
    done = service.cage("create", "-f", "--", "x", code=code)
    assert done.stdout == "one\nthree ☃"
    assert done.stderr.startswith("cage: box1\ntwo\0\n")


# ---- list, show, usage ----

ROWS = [dict(id="b%d" % i, state="failed", reason="exit", created_at="2026-01-02T03:04:05Z", labels={}, exit_code=i) for i in range(3)]


def test_list(service):
    rows = [ROWS[1], {**ROWS[2], "profile": "p\x1b]0;x\x07", "labels": {"team": "a", "user": "\u202eb"}}]
    service.say("GET", BOXES + "?limit=100&state=failed&label=team%3Da", response(body={"items": rows, "next": None}))
    lines = service.cage("list", "--state", "failed", "--label", "team=a").stdout.splitlines()
    assert lines[0].split() == ["ID", "STATE", "REASON", "AGE", "PROFILE", "LABELS", "EXIT"]
    assert re.fullmatch(r"b1 +failed +exit +\d+d +- +- +1", lines[1])
    assert re.fullmatch(r"b2 +failed +exit +\d+d +p\\x1b\]0;x\\x07 +team=a user=\\u\{202e\}b +2", lines[2])
    assert {line.index(w) for line, w in zip(lines, ("EXIT", "1", "2"))} != set() and lines[0].index("EXIT") == lines[2].rindex("2")


EVIL = "a\nb\r\x1b[2J\x9b31m\u202ec\u2028"
HARMLESS = "a\\x0ab\\x0d\\x1b[2J\\u{9b}31m\\u{202e}c\\u{2028}"


def test_names_in_a_workflow_do_not_move_the_cursor(service):
    """Paths of artifacts are what a step's author or its agent chose."""
    step = dict(id=EVIL, state=EVIL, reason=EVIL, sandbox=EVIL, message=EVIL, artifacts=[dict(path=EVIL, size=1, sha256="0" * 64), dict(path="b", size=2, sha256="0" * 64)])
    flow = dict(id=EVIL, name=EVIL, state="failed", reason=EVIL, created_at="2026-01-02T03:04:05Z", labels={EVIL: EVIL}, steps=[step])
    for target, body, words in (("/api/v1/workflows/w1", flow, ["show", "w1"]), ("/api/v1/workflows?limit=1000", {"items": [flow], "next": None}, ["list"])):
        service.say("GET", target, response(body=body))
        plain = service.cage("workflow", *words).stdout
        assert plain.count("\n") == (3 if words[0] == "show" else 2) and HARMLESS in plain, plain
        assert all(c == "\n" or c.isprintable() for c in plain), ascii(plain)
        service.say("GET", target, response(body=body))
        raw = service.cage("workflow", words[0], "--json", *words[1:]).stdout
        assert raw.count("\n") == 1 and raw.isascii() and "\x1b" not in raw and json.loads(raw)["steps"][0]["artifacts"][0]["path"] == EVIL


def test_list_pages(service):
    service.say("GET", BOXES + "?limit=1000", response(body={"items": ROWS[:2], "next": "c.1"}))
    service.say("GET", BOXES + "?limit=1000&after=c.1", response(body={"items": ROWS[2:], "next": None}))
    lines = service.cage("list", "--all", "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == ROWS


def test_list_says_that_there_are_more(service):
    service.say("GET", BOXES + "?limit=2", response(body={"items": ROWS[:2], "next": "c.1"}))
    done = service.cage("list", "--limit", "2")
    assert len(done.stdout.splitlines()) == 3 and "there are more" in done.stderr


def test_pages_come_to_an_end(service):
    """A service that always says that there is another page, and never has anything on it."""
    service.say("GET", BOXES + "?limit=1000", response(body={"items": ROWS, "next": "c.1"}))
    service.say("GET", BOXES + "?limit=1000&after=c.1", response(body={"items": [], "next": "c.1"}))
    assert len(service.cage("list", "--all").stdout.splitlines()) == 4 and len(service.requests) == 2


def test_show(service):
    usage = {"wall_seconds": 65.5, "cpu_seconds": 0.25, "memory_peak_bytes": 3 << 20, "disk_peak_bytes": 0, "egress_bytes": 2048,
             "decisions": {"allow": 3, "flag": 0, "block": 2, "error": 0}, "oom_kills": 0, "output_bytes": 5, "cost": {"amount": 0.5, "currency": "USD"}}
    service.say("GET", BOX, response(body=sandbox(state="failed", reason="exit", exit_code=3, command=["sh", "-c", "a\x1b[2J"], usage=usage, labels={"team": "a"},
                                                  published=[{"port": 80, "address": "127.0.0.1:4001"}], policy={"sha256": "0" * 64})))
    text = service.cage("show", "box1").stdout
    for line in ("id         box1", "state      failed, exit (exit code 3)", "command    sh -c a\\x1b[2J", "labels     team=a", "port       80 at 127.0.0.1:4001",
                 "decisions  allow=3 flag=0 block=2 error=0", "history    2026-01-02T03:04:05Z  queued (created)"):
        assert line in text.splitlines(), text
    assert "memory=512 MiB" in text and "wall=1m 05s" in text and "memory_peak=3.0 MiB" in text and "egress=2.0 KiB" in text and "_seconds" not in text and "amount=0.5" in text
    raw = service.cage("show", "--json", "box1").stdout
    assert raw.count("\n") == 1 and "\x1b" not in raw and json.loads(raw)["usage"] == usage


def test_usage(service):
    row = {"value": "a", "sandboxes": 2, "by_state": {"failed": 2}, "wall_seconds": 7200, "cpu_seconds": 1.5, "gb_seconds": 3.25, "egress_bytes": 1024,
           "decisions": {"allow": 4, "flag": 3, "block": 1, "error": 2}, "cost": {"amount": 0.0125, "currency": "EUR"}}
    service.say("GET", "/api/v1/usage?by=team&since=2026-01-01T00%3A00%3A00Z", response(body={"items": [row, {**row, "value": None}]}))
    lines = service.cage("usage", "--by", "team", "--since", "2026-01-01T00:00:00Z").stdout.splitlines()
    assert re.split("  +", lines[0]) == ["team", "SANDBOXES", "WALL", "CPU", "GB-SECONDS", "EGRESS", "ALLOWED", "FLAGGED", "BLOCKED", "ERRORS", "COST"]
    assert re.split("  +", lines[1]) == ["a", "2", "2.0 h", "1.5 s", "3.25", "1.0 KiB", "4", "3", "1", "2", "0.0125 EUR"]
    assert lines[2].startswith("-  ")
    service.say("GET", "/api/v1/usage", response(body={"items": [row]}))
    assert json.loads(service.cage("usage", "--json").stdout) == row
    service.cage("usage", "--since", "24h", code=1)
    assert re.fullmatch(r"/api/v1/usage\?since=\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\dZ", service.requests[-1].target)


# ---- output and logs ----

def test_output_is_passed_on_as_it_is(service):
    data = bytes(range(256)) * 1000
    service.say("GET", BOX + "/output", chunked([data[i:i + 999] for i in range(0, len(data), 999)]))
    assert service.cage("output", "box1", binary_output=True).stdout == data
    service.say("GET", BOX + "/output?stream=stderr", response(body=b"err", kind="application/octet-stream"))
    assert service.cage("output", "--stderr", "box1").stdout == "err"


def test_output_that_is_cut_short_is_a_failure(service):
    service.say("GET", BOX + "/output", chunked([b"half"], end=b""))
    done = service.cage("output", "box1", code=1)
    assert done.stdout == "half" and "ended the connection" in done.stderr


def test_output_followed(service):
    service.say("GET", BOX + "/output?follow=true", events(("stdout", '"a"'), ("stderr", '"b"'), ("later", '"c"'), ("end", END), ("stdout", '"never"')))
    done = service.cage("output", "-f", "box1")
    assert (done.stdout, done.stderr) == ("ac", "b")


@pytest.mark.parametrize("said", [chunked([b"event: stdout\ndata: \"a\"\n\n"], "text/event-stream"), chunked([b"event: stdout\ndata: \"a\"\n\n"], "text/event-stream", b"")], ids=["ended", "cut"])
def test_output_whose_end_never_comes(service, said):
    service.say("GET", BOX + "/output?follow=true", said)
    done = service.cage("output", "-f", "box1", code=1)
    assert done.stdout == "a" and "before the sandbox did" in done.stderr


def test_events_have_a_bound(service):
    service.say("GET", BOX + "/output?follow=true", chunked([b"data: \"" + b"x" * 65536] + [b"x" * 65536] * 20, "text/event-stream"))
    assert "more at once" in service.cage("output", "-f", "box1", code=1).stderr


def test_events_come_as_they_are_sent(service):
    """What was written is shown before the sandbox ends: the second half comes only when the first was seen."""
    seen, goes_on = os.pipe()
    def in_turn(conn, _):
        whole = events(("stdout", '"first\\n"'), ("end", END))
        at = whole.index(b"event: end")
        conn.sendall(whole[:at])
        os.read(seen, 1)
        conn.sendall(whole[at:])
    service.say("GET", BOX + "/output?follow=true", in_turn)
    process = subprocess.Popen([binary("cage"), "output", "-f", "--socket", service.path, "box1"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"first\n"
    os.write(goes_on, b"x")
    assert process.wait(SECONDS) == 0
    process.stdout.close()
    os.close(seen)
    os.close(goes_on)


def test_logs(service):
    lines = [json.dumps({"seq": i}) for i in range(3)]
    service.say("GET", BOX + "/logs", response(body="\n".join(lines).encode() + b"\n", kind="application/jsonl"))
    service.say("GET", BOX + "/logs?source=dns", response(body=b"dns\n", kind="application/jsonl"))
    service.say("GET", BOX + "/logs?follow=true", events(*[("", line) for line in lines]))
    assert service.cage("logs", "box1").stdout.splitlines() == lines
    assert service.cage("logs", "--dns", "box1").stdout == "dns\n"
    assert service.cage("logs", "-f", "box1").stdout.splitlines() == lines


def test_a_full_stdout_is_a_failure(service):
    service.say("GET", BOX + "/output", response(body=b"x", kind="application/octet-stream"))
    service.say("GET", BOX, response(body=sandbox()))
    for words in (["output", "box1"], ["show", "box1"], ["show", "--json", "box1"]):
        with open("/dev/full", "wb") as full:
            clean = {k: v for k, v in os.environ.items() if not k.startswith("CAGE_")}
            done = subprocess.run([binary("cage"), *words, "--socket", service.path], stdout=full, stderr=subprocess.PIPE, timeout=SECONDS, env=clean)
        assert done.returncode == 1 and done.stderr, words


# ---- exec ----

def shell(**result):
    return response(body={"tool": "shell_exec", "result": {"stdout": "", "stderr": "", "truncated": False, "timed_out": False, **result}})


@pytest.mark.parametrize("result, code", [({"exit_code": 0}, 0), ({"exit_code": 42}, 42), ({"signal": 9}, 137), ({"signal": 15, "timed_out": True}, 124), ({}, 1)])
def test_exec(service, result, code):
    service.say("POST", BOX + "/tools/execute", shell(stdout="out\x1b[1m", stderr="err", **result))
    done = service.cage("exec", "box1", "--timeout", "2m", "--", "sh", "-c", "echo 'a  b' $X", code=code)
    assert done.stdout == "out\x1b[1m" and done.stderr.startswith("err")
    assert service.requests[0].json() == {"tool": "shell_exec", "arguments": {"command": "sh -c 'echo '\\''a  b'\\'' $X'"}, "timeout_seconds": 120}


@pytest.mark.parametrize("words", [["a b"], ["x", ""], ["FOO=1", "x"], ["echo", "*", "~", "a\nb", "-n", "$(id)", "é", "a/b=c", "'\"\\"]])
def test_the_shell_makes_the_same_words(service, words):
    service.say("POST", BOX + "/tools/execute", shell(exit_code=0))
    service.cage("exec", "box1", "--", *words)
    script = service.requests[0].json()["arguments"]["command"]
    if len(words) == 1:
        assert script == words[0]
    else:
        out = subprocess.run(["sh", "-c", "for w in %s; do printf '%%s\\0' \"$w\"; done" % script], capture_output=True, timeout=SECONDS, check=True)
        assert out.stdout.decode().split("\0")[:-1] == words


def test_exec_of_other_tools(service):
    answer = {"entries": [{"name": "a\x7f"}]}
    service.say("POST", BOX + "/tools/execute", response(body={"tool": "file_list", "result": answer}))
    for words, more in ((['{"path": "."}'], {}), (["--json", '{"path": "."}'], {}), (["-"], {"input": b'{"path": "."}'})):
        done = service.cage("exec", "box1", "--tool", "file_list", *words, **more)
        assert json.loads(done.stdout) == answer
        assert service.requests[-1].json() == {"tool": "file_list", "arguments": {"path": "."}}


def test_exec_denied(service):
    service.say("POST", BOX + "/tools/execute", problem(403, "Denied", "rm is blocked", reason="tool.command"))
    assert service.cage("exec", "box1", "--", "rm", "x", code=1).stderr == "cage: Denied: rm is blocked\n"
    assert len(service.requests) == 1


# ---- cp ----

def test_cp_in(service, tmp_path):
    data = os.urandom(3 << 20)
    (tmp_path / "f").write_bytes(data)
    service.say("PUT", BOX + "/files/dir/a%20b%3F%25", response(204))
    service.cage("cp", str(tmp_path / "f"), "box1:dir/a b?%")
    with subprocess.Popen(["cat", str(tmp_path / "f")], stdout=subprocess.PIPE) as pipe:
        service.cage("cp", "-", "box1:dir/a b?%", stdin=pipe.stdout)
    file, piped = service.requests
    assert file.body == data and file.headers["content-length"] == str(len(data))
    assert piped.body == data and piped.headers["transfer-encoding"] == "chunked"
    assert "No such file" in service.cage("cp", str(tmp_path / "none"), "box1:x", code=1).stderr


def test_cp_of_an_empty_file(service, tmp_path):
    (tmp_path / "f").write_bytes(b"")
    service.say("PUT", BOX + "/files/x", response(204))
    service.cage("cp", str(tmp_path / "f"), "box1:x")
    service.cage("cp", "-", "box1:x")
    assert [r.body for r in service.requests] == [b"", b""]


def test_cp_that_is_refused_early(service, tmp_path):
    """The answer comes before the file was sent, and nothing more is read: it is shown all the same."""
    def refuse(conn, _):
        conn.sendall(problem(413, "Too large", "the workspace has 1 MiB"))
        conn.shutdown(socket.SHUT_WR)
    refuse.before_body = True
    with open(tmp_path / "f", "wb") as f:
        f.truncate(64 << 20)
    service.say("PUT", BOX + "/files/x", refuse)
    assert service.cage("cp", str(tmp_path / "f"), "box1:x", code=1).stderr == "cage: Too large: the workspace has 1 MiB\n"


def test_cp_out(service, tmp_path):
    data = os.urandom(1 << 20)
    service.say("GET", BOX + "/files/sub/f", chunked([data[:70000], data[70000:]]))
    service.cage("cp", "box1:sub/f", str(tmp_path / "g"))
    service.cage("cp", "box1:sub/f", str(tmp_path))
    assert service.cage("cp", "box1:sub/f", "-", binary_output=True).stdout == data
    assert (tmp_path / "g").read_bytes() == data and (tmp_path / "f").read_bytes() == data
    assert (tmp_path / "g").stat().st_mode & 0o777 == 0o666 & ~umask()
    service.cage("cp", "box1:sub/f", "/dev/null")


@pytest.mark.parametrize("there", ["file", "pipe", "nothing"])
def test_cp_out_through_a_link(service, tmp_path, there):
    """The link stays one: as root, one of /dev may be meant."""
    link, to = tmp_path / "link", tmp_path / "to"
    link.symlink_to("to")
    service.say("GET", BOX + "/files/f", chunked([b"new"]))
    if there == "nothing":
        assert "No such file" in service.cage("cp", "box1:f", str(link), code=1).stderr and not to.exists()
    elif there == "pipe":
        os.mkfifo(to)
        with subprocess.Popen(["cat", str(to)], stdout=subprocess.PIPE) as cat:
            service.cage("cp", "box1:f", str(link))
            assert cat.communicate(timeout=SECONDS)[0] == b"new"
    else:
        to.write_text("older and longer")
        service.cage("cp", "box1:f", str(link))
        assert to.read_bytes() == b"new"
        service.cage("cp", "box1:missing", str(link), code=1)
        assert to.read_bytes() == b"new"
    assert link.is_symlink() and os.readlink(link) == "to"


def test_cp_of_what_can_not_be(service, tmp_path):
    with open(tmp_path / "big", "wb") as f:
        f.truncate((256 << 20) + 1)
    assert "256 MiB" in service.cage("cp", str(tmp_path / "big"), "box1:x", code=1).stderr
    assert service.cage("cp", str(tmp_path), "box1:x", code=1).stderr == "cage: %s is a directory: cp copies one file\n" % tmp_path
    for words in ((str(tmp_path / "big"), "box1:/workspace/x"), ("box1:/workspace/x", str(tmp_path / "g"))):
        assert "relative to /workspace" in service.cage("cp", *words, code=2).stderr
    assert not service.requests


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_cp_out_is_whole_or_nothing(service, tmp_path):
    (tmp_path / "g").write_text("before")
    service.say("GET", BOX + "/files/f", chunked([b"half"], end=b""))
    service.cage("cp", "box1:f", str(tmp_path / "g"), code=1)
    service.cage("cp", "box1:missing", str(tmp_path / "h"), code=1)
    assert (tmp_path / "g").read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g", "s"]


# ---- reload, stop, rm ----

def test_reload(service, tmp_path):
    (tmp_path / "p").write_bytes(b"version: 1\nname: \xc3\xa9\n")
    service.say("PUT", BOX + "/policy", response(body=sandbox()), problem(422, "Wrong policy", errors=[{"detail": "policy.yaml:1:1: x"}]))
    service.cage("reload", "box1", str(tmp_path / "p"))
    assert service.requests[0].body == b"version: 1\nname: \xc3\xa9\n" and service.requests[0].headers["content-type"] == "application/yaml"
    assert "policy.yaml:1:1" in service.cage("reload", "box1", "-", code=1, input=b"wrong").stderr


def test_stop_and_rm(service):
    for ident in ("box1", "box2"):
        service.say("POST", BOXES + "/%s/stop" % ident, response(202, sandbox(ident)))
        service.say("DELETE", BOXES + "/" + ident, response(202, sandbox(ident)))
        service.say("GET", BOXES + "/" + ident, response(body=sandbox(ident)), response(body=sandbox(ident, "deleted")))
    service.cage("stop", "box1", "box2")
    service.cage("rm", "--wait", "box1", "box2")
    assert [(r.method, r.target[len(BOXES) + 1:]) for r in service.requests] == [
        ("POST", "box1/stop"), ("POST", "box2/stop"), ("DELETE", "box1"), ("DELETE", "box2"), ("GET", "box1"), ("GET", "box1"), ("GET", "box2"), ("GET", "box2")]
    done = service.cage("rm", "none", "box1", code=1)
    assert done.stderr.startswith("cage: none: Not found") and service.requests[-1].target == BOX


# ---- secrets ----

def secret(tmp_path, *words, code=0, **more):
    done = run("secret", *words, "--state", str(tmp_path / "state"), **more)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_secrets(tmp_path):
    assert secret(tmp_path, "list") == ("NAME  SET\n", "")
    secret(tmp_path, "set", "b.key", input=b"hunter2-hunter2\n")
    assert "google-jwt only" in secret(tmp_path, "set", "..", input=b"a line\nand another\n")[1]
    text, _ = secret(tmp_path, "list")
    assert re.fullmatch(r"NAME   SET\n\.\.     \S+Z\nb\.key  \S+Z\n", text)
    rows = [json.loads(line) for line in secret(tmp_path, "list", "--json")[0].splitlines()]
    assert [row["name"] for row in rows] == ["..", "b.key"] and rows[0]["set_at"].endswith("Z")
    state = tmp_path / "state"
    assert state.stat().st_mode & 0o777 == 0o700 and (state / "secrets.key").stat().st_mode & 0o777 == 0o600
    for path in state.rglob("*"):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0 and b"hunter2" not in path.read_bytes()
    assert sorted(p.name for p in (state / "secrets").iterdir()) == ["...sealed", "b.key.sealed"]
    secret(tmp_path, "rm", "b.key")
    assert "no secret of that name" in secret(tmp_path, "rm", "b.key", code=1)[1]
    assert "no secret of that name" in secret(tmp_path, "rm", "../x", code=1)[1]


@pytest.mark.parametrize("value, why", [(b"", "shorter"), (b"1234567\n", "shorter"), (b"x" * 16385, "16 KiB"), (b"1234\x005678", "NUL")], ids=lambda v: str(len(v)))
def test_values_that_can_not_be(tmp_path, value, why):
    assert why in secret(tmp_path, "set", "a", code=1, input=value)[1]
    assert not (tmp_path / "state" / "secrets").exists()


def test_a_secret_of_the_largest_size(tmp_path):
    secret(tmp_path, "set", "a", input=b"x" * 16384 + b"\n")


def test_a_secret_is_typed_without_echo(tmp_path):
    terminal = Terminal([binary("cage"), "secret", "set", "a", "--state", str(tmp_path / "state")])
    terminal.wait("value of a: ")
    terminal.type("typed-secret\n")
    code, seen = terminal.end()
    assert code == 0 and "typed" not in seen
    assert (tmp_path / "state" / "secrets" / "a.sealed").exists()


def test_ctrl_c_sets_nothing(tmp_path):
    terminal = Terminal([binary("cage"), "secret", "set", "a", "--state", str(tmp_path / "state")])
    terminal.wait("value of a: ")
    terminal.type("typed-secret\x03")
    code, _ = terminal.end()
    assert code == -signal.SIGINT and not (tmp_path / "state" / "secrets").exists()
