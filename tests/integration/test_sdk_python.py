"""The Python client and the real service, with real rooms: it does what its README says, and leaves no sandbox behind."""
import ast
import asyncio
import base64
import contextlib
import errno
import hashlib
import inspect
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone

import pytest

from cagelib.proxy import binary, wait_until
from cagelib.sdk import DROP, SDK, Relay
from cagelib.service import Service

sys.path.insert(0, os.path.join(SDK, "src"))

import cage as package  # noqa: E402
from cage import (AsyncCage, Broken, Cage, CommandFailed, Conflict, Denied, Full, Invalid, Limits, NotFound, ProtocolError, SandboxFailed, ServerError, TimedOut, TooBusy, TooLarge,  # noqa: E402
                  Unauthorized, Unreachable)

CONFIG = {"limits": {"running": 8, "starts": "200/s"}, "prices": {"vcpu_second": 0.5, "gb_second": 0.25, "currency": "EUR"},
          "profiles": {"python-eval": {"tools": ["shell_exec", "file_read", "file_write", "file_list"], "network": {"mode": "none"}, "limits": {"memory": "256MiB"}}}}
SECONDS = 60
numbers = itertools.count()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("sdk"), CONFIG) as running:
        yield running


@pytest.fixture
def cage(service):
    with Cage(service.socket) as client:
        yield client


@pytest.fixture
def relay(service):
    """relay(plan): a client that goes through it, and the relay."""
    opened = []

    def start(plan, kind=Cage, **more):
        made = Relay("%s/relay%d" % (service.dir, next(numbers)), service.socket, plan)
        opened.append(made.__enter__())
        return kind(made.path, **more), made

    yield start
    for made in opened:
        made.__exit__()


@pytest.fixture
def label():
    return {"test": "t%d" % next(numbers)}


def states(service, label):
    """Of all sandboxes with that label."""
    (name, value), = label.items()
    return [box.state for box in Cage(service.socket).list(label="%s=%s" % (name, value))]


def all_deleted(service, label, n=1):
    wait_until(lambda: set(states(service, label)) <= {"deleted"}, SECONDS, "a sandbox is left")
    assert len(states(service, label)) == n


def lose(method, *sizes, end=""):
    """A plan: the answers to the first requests of that method are cut after so many bytes."""
    left, lock = list(sizes), threading.Lock()

    def plan(request):
        words = request.split(b" ", 2)
        with lock:
            if left and words[0] == method.encode() and words[1].endswith(end.encode()):
                return left.pop(0)
        return None

    return plan


# ---- what it does


def test_a_sandbox_from_beginning_to_end(service, cage, label):
    with cage.sandbox(profile="python-eval", files={"main.py": "print('é')", "b": b"text"}, env={"WORD": "w"}, labels=label) as box:
        assert box.info.state == "running" and box.info.profile == "python-eval" and box.id in repr(box)
        result = box.exec("python3", "main.py")
        assert (result.stdout, result.stderr, result.exit_code, result.ok) == ("é\n", "", 0, True)
        assert box.exec("echo $WORD | tr w v; pwd", workdir="/tmp").stdout == "v\n/tmp\n"
        box.write("dir/a b é", b"\0\xff")
        box.write("text", "ü")
        assert box.read("dir/a b é") == b"\0\xff" and box.read_text("text") == "ü" and box.read("b") == b"text"
        assert [(e.name, e.type, e.size) for e in box.list("dir")] == [("a b é", "file", 2)]
        assert {"main.py", "dir"} <= {e.name for e in box.list()}
        assert box.tool("file_read", path="text")["content"] == "ü"
        bare = box.exec("printf 'a\\000\\377'; echo text >&2")
        assert (bare.stdout_bytes, bare.stdout, bare.stderr_bytes, bare.stderr) == (b"a\0\xff", "a\0\ufffd", b"text\n", "text\n")
        failed = box.exec("sh", "-c", "echo wrong >&2; exit 3")
        with pytest.raises(CommandFailed, match="exit code 3: wrong"):
            failed.check()
        assert box.exec("kill -9 $$").signal == 9 and box.exec("sleep", "60", timeout=1).timed_out
        tools = [d for d in box.logs() if d.event == "tool"]
        assert (tools[0].method, tools[0].decision, tools[0].path) == ("shell_exec", "allow", "python3 main.py")
    all_deleted(service, label)
    with pytest.raises(RuntimeError, match="destroyed"):
        box.start()


def test_a_command_its_output_and_its_usage(cage, label):
    script = "echo out; echo err >&2; read line < in; echo \"$line\"; exit 4"
    with cage.sandbox(command=["sh", "-c", script], files={"in": "é\n"}, labels=label, limits=Limits(memory=64 << 20, wall_seconds=30), lifetime=60) as box:
        pieces = list(box.output(follow=True))
        assert "".join(p.text for p in pieces if p.stream == "stdout") == "out\né\n" and "".join(p.text for p in pieces if p.stream == "stderr") == "err\n"
        assert box.output(stream="stdout") == "out\né\n".encode() and box.output(stream="stderr") == b"err\n"
        info = box.wait(timeout=SECONDS)
        assert (info.state, info.reason, info.exit_code, info.ended, info.limits["memory"]) == ("failed", "exit", 4, True, 64 << 20)
        assert [c.state for c in info.history][0] == "queued" and info.created_at < info.started_at <= info.ended_at
        assert info.usage.output_bytes == 11 and info.usage.cost.currency == "EUR"
    (name, value), = label.items()
    rows = {row.value: row for row in cage.usage(by=name, since=datetime.now(timezone.utc) - timedelta(hours=1))}
    assert rows[value].sandboxes == 1 and rows[value].cost.amount > 0


def test_the_same_with_asyncio(service, label):
    threads = threading.active_count()

    async def main():
        async with AsyncCage(service.socket) as cage:
            async with cage.sandbox(profile="python-eval", files={"main.py": "print(1)"}, labels=label) as box:
                assert (await box.exec("python3", "main.py")).check().stdout == "1\n"
                await box.write("big", b"x" * 3000000)
                assert len(await box.read("big")) == 3000000 and await box.list() and await box.read_text("main.py") == "print(1)"
                assert (await box.tool("file_read", path="main.py"))["size"] == 8
                assert [d.event async for d in box.logs()][0] == "start"
                before = box.info.policy_sha256
                assert (await box.reload("version: 1\nname: other\n")).policy_sha256 != before
                assert [i.id async for i in cage.list(label="test=" + label["test"], page_size=1)] == [box.id]
                assert (await (await cage.get(box.id)).refresh()).state == "running"
                await box.stop()
                assert (await box.wait(SECONDS)).state == "killed"
            async with cage.sandbox(command=["sh", "-c", "echo a; echo b"], labels=label) as box:
                assert "".join([p.text async for p in box.output(follow=True)]) == "a\nb\n" and await box.output() == b"a\nb\n"
            assert (await cage.health()).status == "ok" and len(await cage.tools()) == 5 and await cage.usage()
            assert threading.active_count() <= threads

    asyncio.run(asyncio.wait_for(main(), SECONDS))
    all_deleted(service, label, 2)


def test_pages(cage, label):
    made = [cage.sandbox(command=["true"], labels=label).start() for _ in range(5)]
    (name, value), = label.items()
    assert [b.id for b in cage.list(label="%s=%s" % (name, value), page_size=2)] == [b.id for b in reversed(made)]
    for box in made:
        box.destroy(wait=True)
        box.destroy()
    assert {b.state for b in cage.list(label="%s=%s" % (name, value), state="deleted")} == {"deleted"}


def test_a_policy_that_is_given_later(cage):
    with cage.sandbox(allow=["one.example.com"], tools=["http_request"]) as box:
        before = box.info.policy_sha256
        assert box.reload("version: 1\nname: other\n").policy_sha256 != before
        with pytest.raises(Invalid) as caught:
            box.reload("version: 1\nname: x\nrulez: []\n")
        assert caught.value.status == 422 and caught.value.errors and "rulez" in str(caught.value)
        assert box.tool("http_request", url="https://one.example.com/x")["status"] == 403
        with pytest.raises(ServerError, match="could not be made"):
            box.tool("http_request", url="http://one.example.com/x")
        seen = next(d for d in box.logs(follow=True, timeout=SECONDS) if d.host)
        assert (seen.host, seen.port, seen.blocked, seen.reason) == ("one.example.com", 443, True, "host.not_allowed")


# ---- what is refused


def test_refusals_have_types_and_request_ids(cage):
    with pytest.raises(NotFound) as caught:
        cage.get("sb-none")
    assert caught.value.request_id and caught.value.request_id in str(caught.value)
    with pytest.raises(Invalid) as caught:
        cage.sandbox(limits={"memory": 1, "pids": 1}).start()
    assert {pointer for pointer, _ in caught.value.errors} == {"/limits/memory", "/limits/pids"}
    with cage.sandbox(blocked_commands=["^false$"], tools=["shell_exec", "file_read"]) as box:
        with pytest.raises(Denied) as denied:
            box.exec("false")
        assert denied.value.reason == "tool.command"
        with pytest.raises(Denied, match="tool.not_allowed"):
            box.list()
        with pytest.raises(NotFound):
            box.read("none")
        box.stop()
        box.wait(SECONDS)
        with pytest.raises(Conflict):
            box.exec("true")


@pytest.mark.parametrize("kind", [Cage, AsyncCage])
def test_too_much(service, kind):
    """The service refuses before all of it was sent."""
    with pytest.raises(TooLarge):
        started = kind(service.socket).sandbox(files={"x": "y" * (20 << 20)}).start()
        if kind is AsyncCage:
            asyncio.run(started)


def test_a_full_workspace(cage):
    with cage.sandbox(limits={"disk": 65536}) as box:
        with pytest.raises(Full):
            box.write("x", bytes(1 << 20))


def test_arguments_that_can_not_be_meant(cage):
    for given in (dict(command="ls"), dict(allow="example.com"), dict(tools="shell_exec")):
        with pytest.raises(TypeError):
            cage.sandbox(**given)
    for given in (dict(files={"x": b"\xff"}), dict(allow=[], policy="web")):
        with pytest.raises(ValueError):
            cage.sandbox(**given)
    with pytest.raises(RuntimeError, match="not started"):
        cage.sandbox().exec("true")


def test_a_sandbox_that_never_runs(service, cage, label, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SandboxFailed, match=str(port)) as caught:
            cage.sandbox(publish=[{"port": 5000, "host_port": port}], labels=label).start()
    assert caught.value.info.state == "failed"
    all_deleted(service, label)


def test_too_busy(tmp_path):
    with Service(tmp_path, {"limits": {"running": 1, "queued": 1}}) as small, Cage(small.socket, retries=1) as cage:
        with cage.sandbox():
            with pytest.raises(TimedOut):
                cage.sandbox().start(timeout=0.5)
            waits = small.create()
            with pytest.raises(TooBusy) as caught:
                cage.sandbox().start()
            assert caught.value.status == 429 and small.show(waits)["state"] == "queued"


def test_no_service(tmp_path):
    with pytest.raises(Unreachable, match="no service at"):
        Cage(tmp_path / "none", retries=0).health()

    async def main():
        await AsyncCage(tmp_path / "none", retries=0).health()

    with pytest.raises(Unreachable, match="no service at"):
        asyncio.run(main())


def test_a_way_that_breaks_while_a_request_is_sent(service, monkeypatch):
    """Whatever the system calls it, it is told as what it is."""
    def unreachable(*_):
        raise OSError(errno.EHOSTUNREACH, "No route to host")

    async def drain(_):
        unreachable()

    monkeypatch.setattr(socket.socket, "sendall", unreachable)
    with pytest.raises(Broken, match="No route to host"):
        Cage(service.socket, retries=0, timeout=2).sandbox().__enter__()
    monkeypatch.setattr(asyncio.StreamWriter, "drain", drain)
    with pytest.raises(Broken, match="No route to host"):
        asyncio.run(AsyncCage(service.socket, retries=0, timeout=2).sandbox().__aenter__())


@pytest.mark.parametrize("kind", [Cage, AsyncCage])
def test_a_service_that_says_nothing(tmp_path, kind):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        with pytest.raises(TimedOut):
            asked = kind(tmp_path / "s", timeout=0.3).health()
            if kind is AsyncCage:
                asyncio.run(asked)


@contextlib.contextmanager
def scripted(path, answer):
    """Whoever asks there gets answer(n) for its n-th question."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve():
            for n in itertools.count():
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.recv(65536)
                    client.sendall(answer(n))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)


def ok(body, fields=""):
    return ("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (fields, len(body), body)).encode()


@pytest.mark.parametrize("kind", [Cage, AsyncCage])
@pytest.mark.parametrize("what", ["list", "workflows"])
def test_a_service_with_empty_pages_without_end(tmp_path, kind, what):
    async def take(pages):
        return [item async for item in pages]

    with scripted(tmp_path / "s", lambda n: ok('{"items": [], "next": "%d"}' % n)):
        pages = getattr(kind(tmp_path / "s"), what)()
        with pytest.raises(ProtocolError, match="empty"):
            asyncio.run(take(pages)) if kind is AsyncCage else list(pages)


@pytest.mark.parametrize("kind", [Cage, AsyncCage])
def test_a_service_with_other_bytes_than_it_says(tmp_path, kind):
    with scripted(tmp_path / "s", lambda n: ok("other", "Repr-Digest: sha-256=:%s:\r\n" % base64.b64encode(hashlib.sha256(b"one").digest()).decode())):
        with pytest.raises(ProtocolError, match="SHA-256"):
            got = kind(tmp_path / "s").artifact("w", "make", "a")
            if kind is AsyncCage:
                asyncio.run(got)


def test_over_tcp_the_token_is_shown_nowhere(tmp_path, monkeypatch):
    with Service(tmp_path, {}) as first:
        state = first.state
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("CAGE_")}, "CAGE_STATE": state}
    token = subprocess.run([binary("cage"), "serve", "--new-token"], env=env, capture_output=True, text=True, timeout=SECONDS, check=True).stdout.strip()
    with Service(tmp_path, {"listen": ["unix:%s/socket" % state, "127.0.0.1:0"]}) as both:
        url = "http://localhost:" + re.search(r"127\.0\.0\.1:(\d+)", both.err.text()).group(1)
        (tmp_path / "token").write_text(token + "\n")
        monkeypatch.setenv("CAGE_TOKEN", token)
        for cage in (Cage(url=url), Cage(url=url, token=token), Cage(url=url, token_file=tmp_path / "token")):
            assert list(cage.list()) == [] and token not in repr(cage) + repr(vars(cage))

        async def main():
            async with AsyncCage(url=url) as cage, cage.sandbox() as box:
                return (await box.exec("echo 1")).stdout

        assert asyncio.run(main()) == "1\n"
        wrong = "x" * len(token)
        with pytest.raises(Unauthorized) as caught:
            list(Cage(url=url, token=wrong).list())
        assert wrong not in str(caught.value) + repr(caught.value)


# ---- it is destroyed, whatever happens


class Oops(Exception):
    pass


def test_an_exception_and_a_generator_that_is_closed(service, cage, label):
    with pytest.raises(Oops):
        with cage.sandbox(labels=label):
            raise Oops

    def inside():
        with cage.sandbox(labels=label) as box:
            yield box.exec("echo 1").stdout

    kept = inside()
    assert next(kept) == "1\n"
    kept.close()
    all_deleted(service, label, 2)


def test_what_is_left_open_ends_with_the_client(service, label):
    with Cage(service.socket) as cage:
        cage.sandbox(labels=label).__enter__()
        lives_on = cage.sandbox(labels=label).start()
    wait_until(lambda: sorted(states(service, label)) == ["deleted", "running"], SECONDS, "it is not destroyed")
    with Cage(service.socket) as cage, cage.get(lives_on.id) as box:
        assert box.info.state == "running"
    all_deleted(service, label, 2)


INTERRUPTED = """
import sys, time
from cage import Cage
with Cage(sys.argv[1]).sandbox(labels={"test": sys.argv[2]}) as box:
    print(box.id, flush=True)
    %s
"""


def start_script(path, label, waits):
    return subprocess.Popen([sys.executable, "-B", "-c", INTERRUPTED % waits, path, label["test"]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "PYTHONPATH": os.path.join(SDK, "src")}, text=True)


@pytest.mark.parametrize("waits", ["time.sleep(60)", "box.exec('sleep 60', timeout=100)", "list(box.logs(follow=True))", "box.wait()"])
def test_control_c(service, label, waits):
    process = start_script(service.socket, label, waits)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert "KeyboardInterrupt" in err
    all_deleted(service, label)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_control_c_while_it_is_made_or_destroyed(service, relay, label, method):
    """The request is held back, and comes late: the client was interrupted meanwhile, and has asked again."""
    held, release = threading.Event(), threading.Event()

    def plan(request):
        if not request.startswith(method.encode()) or held.is_set():
            return None
        held.set()
        release.wait(SECONDS)
        return 0

    _, seen = relay(plan)
    process = start_script(seen.path, label, "pass")
    assert held.wait(SECONDS)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: len([r for r in seen.requests if r.startswith(method.encode())]) == 2, SECONDS, "it was not asked again")
    release.set()
    _, err = process.communicate(timeout=SECONDS)
    assert "KeyboardInterrupt" in err
    all_deleted(service, label)


def test_a_task_that_is_cancelled(service, label):
    async def work(cage, started):
        async with cage.sandbox(labels=label) as box:
            started.set()
            await box.exec("sleep 60", timeout=100)

    async def main():
        async with AsyncCage(service.socket) as cage:
            started = asyncio.Event()
            task = asyncio.ensure_future(work(cage, started))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    all_deleted(service, label)


@pytest.mark.parametrize("times", [1, 3])
def test_a_task_that_is_cancelled_while_it_destroys(service, relay, label, times):
    """The relay holds back the DELETE, so that the task is in there when it is cancelled, again and again, and then loses it."""
    release, deleting = threading.Event(), threading.Event()

    def plan(request):
        if not request.startswith(b"DELETE") or deleting.is_set():
            return None
        deleting.set()
        release.wait(SECONDS)
        return DROP

    cage, _ = relay(plan, AsyncCage)

    async def work():
        async with cage.sandbox(labels=label):
            pass

    async def main():
        task = asyncio.ensure_future(work())
        while not deleting.is_set():
            await asyncio.sleep(0.01)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    all_deleted(service, label)


# ---- answers that get lost


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_create_whose_answer_is_lost_makes_one_sandbox(service, relay, label, size):
    cage, seen = relay(lose("POST", size, size, end="/sandboxes"))
    with cage.sandbox(labels=label) as box:
        assert box.exec("echo 1").stdout == "1\n" and states(service, label) == ["running"]
    assert seen.count("POST", "/sandboxes") == 3
    all_deleted(service, label)


def test_a_create_that_is_given_up_leaves_nothing(service, relay, label):
    cage, _ = relay(lose("POST", 0, 0, end="/sandboxes"), retries=0)
    with pytest.raises(Broken):
        cage.sandbox(labels=label).start()
    all_deleted(service, label)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_create_that_is_cancelled_leaves_nothing(service, relay, label, moment):
    """before: the service hears of it after the client has gone. after: it has answered, and the answer is held back."""
    release, held = threading.Event(), threading.Event()

    def plan(request):
        if request.startswith(b"POST") and not held.is_set():
            held.set()
            if moment == "before":
                release.wait(SECONDS)
                return None
            return 1
        return None

    cage, seen = relay(plan, AsyncCage, retries=0 if moment == "before" else 4)

    async def main():
        task = asyncio.ensure_future(cage.sandbox(labels=label).start())
        while not (held if moment == "before" else seen.answered).is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    wait_until(lambda: set(states(service, label)) <= {"deleted"}, SECONDS, "a sandbox is left")


def test_a_command_whose_answer_is_lost_is_not_run_twice(relay, cage):
    through, seen = relay(lose("POST", 0, end="/execute"))
    with cage.sandbox() as box:
        with pytest.raises(Broken):
            through.get(box.id).exec("echo x >> ran")
        assert seen.count("POST", "/execute") == 1 and box.read("ran") == b"x\n"


def test_what_can_be_asked_twice_is(relay, cage):
    through, seen = relay(lambda request: 20 if len(seen.requests) % 2 else None)
    with cage.sandbox() as box:
        same = through.get(box.id)
        same.write("a", "text")
        assert same.read("a") == b"text" and [e.name for e in same.list()] == ["a"] and same.refresh().state == "running"
        same.stop()
    assert len(seen.requests) == 12


@pytest.mark.parametrize("kind", [Cage, AsyncCage])
def test_streams_that_break_are_taken_up_where_they_broke(relay, cage, kind):
    script = "i=0; while [ $i -lt 200 ]; do echo line é $i; echo e$i >&2; i=$((i+1)); done"
    through, seen = relay(lose("GET", 300, 600, 1200, 2000, end="follow=true"), kind)
    with cage.sandbox(command=["sh", "-c", script]) as box:
        if kind is Cage:
            pieces = list(through.get(box.id).output(follow=True))
        else:
            async def main():
                return [p async for p in (await through.get(box.id)).output(follow=True)]

            pieces = asyncio.run(main())
    assert "".join(p.text for p in pieces if p.stream == "stdout") == "".join("line é %d\n" % i for i in range(200))
    assert "".join(p.text for p in pieces if p.stream == "stderr") == "".join("e%d\n" % i for i in range(200))
    assert seen.count("GET", "follow=true") == 5


def test_a_log_is_followed_over_a_broken_connection(relay, cage):
    through, seen = relay(lose("GET", 700, 1500, end="follow=true"))
    with cage.sandbox() as box:
        for _ in range(6):
            box.exec("true")
        box.stop()
        rows = list(through.get(box.id).logs(follow=True, timeout=SECONDS))
    assert [r.seq for r in rows] == list(range(1, len(rows) + 1)) and [r.event for r in rows].count("tool") == 6
    assert seen.count("GET", "follow=true") == 3


def test_a_service_that_is_killed_and_started_again(tmp_path):
    service = Service(tmp_path, {}).start()
    cage = Cage(service.socket, retries=30)
    box = cage.sandbox(command=["sh", "-c", "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two"]).start()
    got = box.output(follow=True)
    assert next(got).text == "one\n"
    service.kill()
    service.start()
    box.write("go", "")  # the client tries again while the service has not found the sandbox's keeper
    assert "".join(p.text for p in got) == "two\n"
    box.destroy(wait=True)
    service.stop()


def test_a_stream_that_is_left_frees_its_connection(service, cage):
    def connections():
        return len([fd for fd in os.listdir("/proc/%d/fd" % service.process.pid) if link(service.process.pid, fd).startswith("socket:")])

    with cage.sandbox(command=["sh", "-c", "echo 1; sleep 60"]) as box:
        wait_until(lambda: box.output() == b"1\n", SECONDS, "no output")
        before = connections()
        for _ in box.output(follow=True):
            break
        wait_until(lambda: connections() <= before, SECONDS, "a connection is left")


def link(pid, fd):
    try:
        return os.readlink("/proc/%d/fd/%s" % (pid, fd))
    except OSError:
        return ""


# ---- workflows


CHAIN = [package.Step("make", {"command": ["sh", "-c", "mkdir d; echo one > d/a"]}, artifacts=["d/a"]),
         package.Step("use", {"command": ["sh", "-c", "cat b b > c"]}, needs=["make"], artifacts=[("c", 100)], inputs=[("make", "d/a", "b")])]


def test_a_workflow(cage):
    info = cage.run_workflow(CHAIN, name="chain", labels={"team": "w"}, timeout=SECONDS).check()
    assert (info.state, info.name, info.labels, info.ended) == ("succeeded", "chain", {"team": "w"}, True)
    assert [(s.id, s.state, s.needs) for s in info.steps] == [("make", "succeeded", ()), ("use", "succeeded", ("make",))]
    assert cage.artifact(info.id, "make", "d/a") == b"one\n" and cage.artifact(info.id, "use", "c") == b"one\none\n"
    assert (info.step("use").artifacts[0].path, info.step("use").artifacts[0].size) == ("c", 8)
    assert cage.get(info.step("make").sandbox).info.labels == {"workflow": info.id}
    assert info.ended_at >= info.step("use").ended_at and [c.state for c in info.history] == ["running", "succeeded"]
    assert [w.id for w in cage.workflows(label="team=w", page_size=1)] == [info.id]
    with pytest.raises(NotFound):
        cage.artifact(info.id, "use", "none")
    with pytest.raises(KeyError):
        info.step("none")
    cage.delete_workflow(info.id)
    wait_until(lambda: not list(cage.workflows(label="team=w")), SECONDS, "it is not removed")


def test_a_workflow_that_fails(cage):
    info = cage.run_workflow([{"id": "a", "sandbox": {"command": ["false"]}}, package.Step("b", {"command": ["true"]}, needs=["a"])])
    with pytest.raises(package.WorkflowFailed, match="a failed .exit., b skipped .needs.") as caught:
        info.check()
    assert caught.value.info is info
    with pytest.raises(Invalid) as caught:
        cage.start_workflow([package.Step("a", {"command": ["true"]}, needs=["b"]), package.Step("c", {"nonsense": 1}, needs=["c"])])
    assert [pointer for pointer, _ in caught.value.errors] == ["/steps/0/needs/0", "/steps/1/needs", "/steps/1/sandbox/nonsense"]
    with pytest.raises(TypeError):
        cage.start_workflow([package.Step("a", {}, needs="b")])


def test_a_workflow_whose_answer_is_lost(relay):
    """It is begun once: the second try gets the answer of the first."""
    lost = iter([0])
    client, _ = relay(lambda request: next(lost, None) if request.startswith(b"POST") else None)
    info = client.start_workflow([package.Step("a", {"command": ["true"]})], labels={"lost": "x"})
    assert client.wait_workflow(info.id, SECONDS).state == "succeeded"
    assert [w.id for w in client.workflows(label="lost=x")] == [info.id]


def test_workflows_of_asyncio(service):
    async def main():
        async with AsyncCage(service.socket) as client:
            info = (await client.run_workflow(CHAIN, labels={"team": "a"}, timeout=SECONDS)).check()
            assert await client.artifact(info.id, "use", "c") == b"one\none\n"
            assert [w.id async for w in client.workflows(label="team=a", page_size=1)] == [info.id]
            begun = await client.start_workflow([package.Step("a", {"command": ["sleep", "1000"]})])
            with pytest.raises(TimedOut):
                await client.wait_workflow(begun.id, 0.2)
            await client.cancel_workflow(begun.id)
            assert (await client.wait_workflow(begun.id, SECONDS)).state == "cancelled"
            await client.delete_workflow(begun.id)

    asyncio.run(main())


# ---- what is said about it


def public(thing):
    """(name, object) of all that users see in it."""
    for name, value in vars(thing).items():
        value = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value.fget if isinstance(value, property) else value
        if not name.startswith("_") and inspect.isfunction(value):
            yield "%s.%s" % (thing.__name__, name), value


def test_all_that_is_public_is_documented():
    classes = [getattr(package, name) for name in package.__all__]
    described = [(c.__name__, c) for c in classes] + [pair for c in classes for base in c.__mro__ if base.__module__.startswith("cage") for pair in public(base)]
    assert [name for name, thing in described if not (thing.__doc__ or "").strip() or thing.__doc__.startswith(thing.__name__ + "(")] == []


def test_both_clients_have_the_same_methods():
    for one, other in ((package.Cage, package.AsyncCage), (package.Sandbox, package.AsyncSandbox)):
        names = [{n: list(inspect.signature(f).parameters) for n, f in inspect.getmembers(c, inspect.isfunction) if not n.startswith("_")} for c in (one, other)]
        assert names[0] == names[1]


def test_only_the_standard_library_is_used():
    allowed = set(sys.stdlib_module_names)
    folder = os.path.join(SDK, "src", "cage")
    for name in filter(lambda n: n.endswith(".py"), os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            tree = ast.parse(f.read(), name, feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert {n.split(".")[0] for n in names} <= allowed, name


def readme_blocks():
    with open(os.path.join(SDK, "README.md"), encoding="utf-8") as f:
        return re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)


@pytest.mark.parametrize("number", range(len(readme_blocks())))
def test_the_examples_of_the_readme_run(service, number):
    done = subprocess.run([sys.executable, "-B", "-W", "error", "-c", readme_blocks()[number]], capture_output=True, text=True, timeout=SECONDS,
                          env={**os.environ, "PYTHONPATH": os.path.join(SDK, "src"), "CAGE_SOCKET": service.socket})
    assert (done.returncode, done.stderr) == (0, ""), done
