"""The external inspector: the example of the docs at work, programs that misbehave, sockets, reloads, and no process left."""
import base64
import gzip
import json
import os
import shutil
import socket
import threading

import pytest
from cagelib.checks import logged_block, logged_pair, refused
from cagelib.proxy import children_of, is_alive, policy, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import chunked

EXAMPLE = os.path.join(os.path.dirname(__file__), "../../docs/examples/heron_inspector.py")
RULES = ({"id": "raw", "hosts": ["raw.test"], "ports": [80], "limits": {"hold": "64KiB"}},
         {"id": "watch", "hosts": ["watch.test"], "ports": [80], "mode": "observe"})

# Does what the path asks for; keeps all that it is told.
PUPPET = r"""
import json, os, sys
told = open(sys.argv[1], "a", buffering=1)
print("puppet started", file=sys.stderr, flush=True)
wishes = {}
WRONG = {"garbage": "{nonsense", "verdict": '{"id":"ID","verdict":"sesame"}', "id": '{"id":"sesame.9","verdict":"pass"}',
         "long": "sesame" * 20000, "key": '{"id":"ID","verdict":"pass","sesame":1}', "no-id": '{"verdict":"pass"}',
         "field": '{"id":"ID","verdict":"pass","set":{"host":"sesame"}}'}
for line in sys.stdin:
    told.write(line)
    m = json.loads(line)
    if m["type"] == "cancel":
        continue
    wish = wishes.setdefault(m["id"], m.get("path", "")[1:])
    if wish in ("crash", "crash-" + m["type"]):
        os._exit(3)
    if wish in ("silent", "silent-" + m["type"]):
        continue
    if wish in WRONG:
        print(WRONG[wish].replace("ID", m["id"]), flush=True)
        continue
    if wish == "stuck":
        sys.stdin.close()
        __import__("signal").signal(15, 1)
        __import__("time").sleep(600)
    verdict = "block" if wish == "block-" + m["type"] else "pass"
    note = {"note": "a\n\"note\""} if wish.startswith("block-") else {}
    print(json.dumps({"id": m["id"], "verdict": verdict, **note}), flush=True)
"""


def external(*command, **keys):
    return {"inspectors": {"external": {"command": list(command), **keys}, "entropy": {"action": "off"}}}


@pytest.fixture
def origin():
    with RawOrigin() as running:
        yield running


@pytest.fixture
def start(start_cage, origin, tmp_path):
    """start(**inspectors) starts a proxy before the origin, in a directory that has the programs."""
    (tmp_path / "puppet.py").write_text(PUPPET)
    shutil.copy(EXAMPLE, tmp_path / "heron_inspector.py")

    def build(more, *args):
        cage = start_cage(rules(origin, more), *args, directory=tmp_path)
        return cage

    return build


def rules(origin, more):
    return policy(*RULES, pins={"raw.test": origin.pin, "watch.test": origin.pin}, **more)


@pytest.fixture
def puppet(start, tmp_path):
    """A proxy with the puppet; cage.told() is what the puppet was told."""
    def build(**keys):
        (tmp_path / "told").touch()
        cage = start(external("/usr/bin/python3", "puppet.py", "told", **{"timeout": "10s", **keys}))
        cage.told = lambda: [json.loads(x) for x in (tmp_path / "told").read_text().splitlines(True) if x.endswith("\n")]
        return cage

    return build


def ask(cage, path, method="GET", fields=(), body=b"", host="raw.test"):
    return cage.fetch(method, "http://%s%s" % (host, path), fields, body)


def programs(cage):
    """Processes that the workers have started."""
    return [p for child in cage.children for p in children_of(child) if is_alive(p)]


def back_again(cage):
    """Until it is there again requests are refused; then they pass."""
    wait_until(lambda: ask(cage, "/fine").status == 200, 10, "the inspector never came back")


# ---- the example

def test_the_example_passes_flags_blocks_and_rewrites(start, origin):
    cage = start(external("./heron_inspector.py", timeout="10s"))
    assert ask(cage, "/a", fields=[("X-Debug", "1"), ("X-Kept", "2")]).status == 200
    assert origin.requests[-1].header("x-inspected-by") == "example"
    assert origin.requests[-1].header("x-kept") == "2"
    assert not origin.requests[-1].has("x-debug")
    logged_pair(cage, "/a")

    answer = ask(cage, "/internal/x")
    told = refused(answer, "external.blocked", host="raw.test", rule="raw")
    line = logged_block(cage, answer, stage="head")
    assert [(f["inspector"], f["action"], f["reason"]) for f in line["findings"]] == [("external", "block", "external.blocked")]
    cage.stderr.wait(r"the external inspector on %s\.\d+: internal path on raw.test" % told["txn"], 10)

    assert ask(cage, "/flagged", "POST", body=b"a TODO in it").status == 200
    line = cage.log.wait(event="request", path="/flagged")
    assert (line["decision"], line["reason"], line["stage"]) == ("flag", "external.flagged", "body")
    assert [f["reason"] for f in line["findings"]] == ["external.flagged"]
    assert len(origin.requests) == 2


def test_the_example_sees_bodies_decoded_and_split(start, origin):
    cage = start(external("/usr/bin/python3", "heron_inspector.py", timeout="10s"))
    body = b"x" * 30000 + b"the project-heron file"
    answer = ask(cage, "/zipped", "POST", [("Content-Encoding", "gzip")], gzip.compress(body))
    refused(answer, "external.blocked")
    assert logged_block(cage, answer, stage="body")["findings"][0]["where"] == "body"
    wire = cage.connect()
    wire.request("POST", "http://raw.test/split", [("Host", "raw.test"), ("Transfer-Encoding", "chunked")])
    wire.send(chunked(b"a pro", b"ject-h", b"eron"))
    refused(wire.read_response(), "external.blocked")
    answer = ask(cage, "/good", "POST", [("Content-Encoding", "gzip")], gzip.compress(b"fine"))
    assert answer.status == 200
    assert gzip.decompress(origin.requests[-1].body) == b"fine"  # what came is what goes
    assert len(origin.requests) == 1


# ---- what it is told

def test_head_body_end_and_cancel(puppet, origin):
    cage = puppet()
    body = bytes(range(256)) * 100
    answer = ask(cage, "/p?q=1", "POST", [("X-A", "\xe9"), ("Proxy-Authorization", "Basic eA==")], body)
    assert answer.status == 200 and origin.requests[-1].body == body
    head, *pieces, end = cage.told()
    txn = cage.log.wait(event="request", path="/p?q=")["txn"]
    assert head["id"].split(".")[0] == txn
    assert {k: head[k] for k in ("method", "scheme", "host", "port", "path", "rule")} == {
        "method": "POST", "scheme": "http", "host": "raw.test", "port": 80, "path": "/p?q=1", "rule": "raw"}
    assert ["X-A", "\xe9"] in head["headers"] and "Proxy-Authorization" not in dict(head["headers"])
    assert b"".join(base64.b64decode(p["data"]) for p in pieces) == body
    assert (end["type"], end["trailers"], end["id"]) == ("end", [], head["id"])
    assert not any(m["type"] == "cancel" for m in cage.told())
    # A client that goes away while an answer is awaited.
    wire = cage.connect().request("POST", "http://raw.test/silent", [("Host", "raw.test"), ("Content-Length", "5")])
    wait_until(lambda: cage.told()[-1].get("path") == "/silent", 10, "the head was not shown")
    wire.close()
    wait_until(lambda: cage.told()[-1]["type"] == "cancel", 10, "no cancel")


def test_without_body_only_heads_are_shown(puppet, origin):
    cage = puppet(body="false")
    assert ask(cage, "/p", "POST", body=b"x" * 100).status == 200
    assert [m["type"] for m in cage.told()] == ["head"]


def test_nothing_leaves_before_it_is_answered(puppet, origin):
    """Beyond the hold limit bytes leave behind the answers: with none of them, none does."""
    cage = puppet(timeout="1s")
    back_again(cage)
    wire = cage.connect()
    wire.request("POST", "http://raw.test/silent-body", [("Host", "raw.test"), ("Content-Length", str(10 << 20))])
    wire.send(b"y" * (300 << 10))
    refused(wire.read_response(), "external.unavailable", status=503)
    assert sum(len(m["data"]) for m in cage.told() if m["type"] == "body") > 64 << 10
    assert b"yyy" not in origin.received


def test_a_large_body_streams_behind_the_answers(puppet, origin):
    cage = puppet()
    body = os.urandom(3 << 20)
    assert ask(cage, "/large", "POST", body=body).status == 200
    assert origin.requests[-1].body == body
    shown = b"".join(base64.b64decode(m["data"]) for m in cage.told() if m["type"] == "body")
    assert shown == body
    answer = ask(cage, "/block-end", "POST", body=body)
    refused(answer, "external.blocked")
    assert len(origin.requests) == 1  # it never became whole there
    cage.stderr.wait(r'the external inspector on [0-9a-f.]+: a\\u000a\\"note\\"$', 10)


# ---- programs that fail

@pytest.mark.parametrize("path", ["/crash", "/crash-body", "/crash-end", "/garbage"])
def test_t38_a_crash_or_nonsense_is_a_block_and_it_comes_back(puppet, origin, path):
    cage = puppet()
    answer = ask(cage, path, "POST", body=b"abc")
    refused(answer, "external.unavailable", status=503)
    logged_block(cage, answer)
    back_again(cage)
    assert [r.target for r in origin.requests] == ["/fine"]


@pytest.mark.parametrize("wish, words", [
    ("garbage", "not JSON"), ("verdict", "unknown verdict"), ("id", "an id that nobody was given"), ("long", "too long"),
    ("key", "unknown key"), ("no-id", "no id"), ("field", "a field that may not be changed")])
def test_what_was_wrong_with_an_answer_is_told(puppet, origin, wish, words):
    cage = puppet()
    told = refused(ask(cage, "/" + wish), "external.unavailable", status=503)
    assert words in told["message"] and "sesame" not in told["message"], told
    cage.stderr.wait("the external inspector: it has given a wrong answer: .*%s.*; next try" % words, 10)
    assert "sesame" not in cage.stderr.text()


def test_why_it_is_not_there_is_told(puppet, origin):
    cage = puppet()
    assert "it has ended" in refused(ask(cage, "/crash"), "external.unavailable", status=503)["message"]


def test_t38_no_answer_is_a_block_in_time(puppet, origin):
    cage = puppet(timeout="300ms")
    back_again(cage)
    told = refused(ask(cage, "/silent"), "external.unavailable", status=503)
    assert "it does not answer" in told["message"]
    cage.stderr.wait("the external inspector: it does not answer", 10)
    back_again(cage)
    assert {r.target for r in origin.requests} == {"/fine"}


def test_a_crash_hits_all_that_waits_and_nobody_else(puppet, origin):
    cage = puppet()
    waiting = [cage.connect().request("GET", "http://raw.test/silent", [("Host", "raw.test")]) for _ in range(5)]
    wait_until(lambda: len([m for m in cage.told() if m["type"] == "head"]) == 5, 10, "not all heads were shown")
    refused(ask(cage, "/crash"), "external.unavailable", status=503)
    for wire in waiting:
        refused(wire.read_response(), "external.unavailable", status=503)
    back_again(cage)


def test_a_program_that_can_not_be_run_blocks(start, origin, tmp_path):
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    os.chmod(tmp_path / "broken", 0o755)
    cage = start(external("broken"))
    refused(ask(cage, "/a"), "external.unavailable", status=503)
    cage.stderr.wait("can't be run: broken: No such file or directory", 10)
    mended = tmp_path / "mended"
    mended.write_text("#!/bin/sh\nexec /usr/bin/python3 puppet.py told\n")
    mended.chmod(0o755)
    mended.rename(tmp_path / "broken")  # a file that is just tried can't be written to
    back_again(cage)


def test_observing_lets_pass_and_says_so(puppet, origin):
    cage = puppet()
    assert ask(cage, "/crash", host="watch.test").status == 200
    line = cage.log.wait(event="request", path="/crash")
    assert (line["decision"], line["enforced"], line["reason"]) == ("block", False, "external.unavailable")
    back_again(cage)
    assert ask(cage, "/block-head", host="watch.test").status == 200
    line = cage.log.wait(event="request", path="/block-head")
    assert (line["decision"], line["enforced"], line["reason"]) == ("block", False, "external.blocked")


# ---- processes

def test_the_program_gets_nothing_of_ours(start, origin, tmp_path):
    """Three descriptors, two variables; it ends with the proxy."""
    cage = start(external("/usr/bin/python3", "puppet.py", "told"))
    back_again(cage)
    pid, = programs(cage)
    assert sorted(os.listdir("/proc/%d/fd" % pid))[:3] == ["0", "1", "2"]
    opened = {os.readlink("/proc/%d/fd/%s" % (pid, n)) for n in os.listdir("/proc/%d/fd" % pid)}
    assert not any(x.startswith(("/memfd", "anon_inode")) for x in opened)
    assert len([x for x in opened if x.startswith("socket:")]) == 1
    with open("/proc/%d/environ" % pid, "rb") as f:
        assert [v.split(b"=")[0] for v in f.read().split(b"\0") if v] == [b"PATH", b"LANG"]
    assert os.readlink("/proc/%d/cwd" % pid) == str(tmp_path)
    assert cage.stop() == 0
    wait_until(lambda: not is_alive(pid), 10, "the program outlives the proxy")


def test_t38_a_killed_worker_takes_its_program_along(puppet, origin):
    cage = puppet()
    cage.expect_deaths = True
    back_again(cage)
    pid, = programs(cage)
    worker, = (c for c in cage.children if pid in children_of(c))
    os.kill(worker, 9)
    wait_until(lambda: not is_alive(pid), 10, "the program outlives its worker")

    def served():
        try:
            return ask(cage, "/fine").status == 200
        except OSError:
            return False

    wait_until(served, 10, "no new worker")


def test_a_program_that_does_not_end_is_made_to(puppet, origin):
    cage = puppet(timeout="300ms")
    back_again(cage)
    pid, = programs(cage)
    refused(ask(cage, "/stuck"), "external.unavailable", status=503)
    wait_until(lambda: not is_alive(pid), 10, "it was never killed")
    back_again(cage)


def test_reload_changes_the_program(start, origin, tmp_path):
    cage = start(external("/usr/bin/python3", "puppet.py", "told"))
    back_again(cage)
    old, = programs(cage)
    cage.reload(rules(origin, external("/usr/bin/python3", "heron_inspector.py", timeout="10s")))
    assert ask(cage, "/new").status == 200
    assert origin.requests[-1].header("x-inspected-by") == "example"
    wait_until(lambda: not is_alive(old), 10, "the old program is still there")
    cage.reload(rules(origin, {}))
    assert ask(cage, "/none").status == 200
    assert not origin.requests[-1].has("x-inspected-by")
    wait_until(lambda: not programs(cage), 10, "a program nobody asks is still there")


def test_a_request_ends_under_the_policy_it_began_with(start, origin, tmp_path):
    """The last request of an old policy is blocked by its own inspector's end, and the program goes with it."""
    cage = start(external("/usr/bin/python3", "puppet.py", "told", timeout="1s"))
    back_again(cage)
    old, = programs(cage)
    wire = cage.connect().request("GET", "http://raw.test/silent", [("Host", "raw.test")])
    wait_until(lambda: "/silent" in (tmp_path / "told").read_text(), 10, "the head was not shown")
    cage.reload(rules(origin, {}))
    assert is_alive(old)
    refused(wire.read_response(), "external.unavailable", status=503)
    wait_until(lambda: not is_alive(old), 10, "the old program is still there")


# ---- sockets

class SocketInspector:
    """Answers every line with the same verdict, on a unix socket."""

    def __init__(self, path, verdict):
        self.verdict, self.conns = verdict, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.conns.append(conn)
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        try:
            for line in conn.makefile("rb"):
                m = json.loads(line)
                if m["type"] != "cancel":
                    conn.sendall(json.dumps({"id": m["id"], "verdict": self.verdict}).encode() + b"\n")
        except OSError:
            pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for conn in self.conns:
            conn.shutdown(socket.SHUT_RDWR)


def test_a_socket_serves_as_well(start, origin, tmp_path):
    path = tmp_path / "x.sock"
    cage = start({"inspectors": {"external": {"socket": "x.sock"}}})
    refused(ask(cage, "/early"), "external.unavailable", status=503)
    first = SocketInspector(path, "pass")
    back_again(cage)
    first.stop()
    path.unlink()
    wait_until(lambda: ask(cage, "/gone").status == 503, 10, "it passes without its inspector")
    second = SocketInspector(path, "block")
    wait_until(lambda: ask(cage, "/there").status == 403, 10, "it was not connected to again")
    second.stop()
    assert {r.target for r in origin.requests} <= {"/fine", "/gone"}


def test_many_at_once(start, origin):
    cage = start(external("/usr/bin/python3", "heron_inspector.py", timeout="30s"), "--workers", "2")
    body = b"z" * (200 << 10)
    answers = []

    def client():
        for i in range(5):
            answers.append(ask(cage, "/m%d" % i, "POST", body=body).status)

    threads = [threading.Thread(target=client) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert answers == [200] * 40
