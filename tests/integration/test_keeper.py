"""cage-keeper with real rooms: what it does for the service, what it leaves, and what it never leaves."""
import errno
import os
import signal
import socket
import subprocess
import threading

import pytest
from cagelib.cage_run import children, command_line
from cagelib.keeper import Keeper, read_result
from cagelib.origin import Nginx
from cagelib.proxy import binary, is_alive, policy, wait_until

pytestmark = pytest.mark.skipif(
    subprocess.run([binary("cage-gate"), "--probe", "--mode", "netns"], capture_output=True, timeout=20).returncode != 0,
    reason="NOT TESTED, nothing can be locked in here")


@pytest.fixture(scope="module")
def ca_dir(tmp_path_factory):
    """One CA for all: making it takes longer than most of these tests."""
    return str(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def sandbox(tmp_path, ca_dir):
    """Makes sandboxes, and holds each to it that nothing of it is left."""
    made = []

    def make(*command, **more):
        made.append(Keeper(tmp_path / ("box%d" % len(made)), command, **{"ca_dir": ca_dir, **more}))
        return made[-1]

    yield make
    for keeper in made:
        own = keeper.text("rundir")
        assert not own or not os.path.exists(own), own


def sh(script):
    return "sh", "-c", script


def program(keeper, name):
    """The pid of one of cage run's programs, or of cage run itself ("cage")."""
    pids = [p for p in children(keeper.process.pid) if command_line(p)[0].rsplit("/", 1)[-1] == "cage"]
    if name == "cage":
        return pids[0]
    return [p for p in children(pids[0]) if command_line(p)[0].rsplit("/", 1)[-1] == name][0]


# ---- a command


def test_a_command(sandbox):
    with sandbox(*sh("echo out; echo err >&2; pwd; exit 3")) as k:
        r = k.end()
        assert k.output() == (b"out\n/workspace\n", b"err\n")
    assert (r["state"], r["reason"], r["exit"], r["signal"], r["message"]) == ("failed", "exit", "3", "0", "")
    assert int(r["output_bytes"]) == 19 and r["output_lost"] == "0"
    assert 0 < int(r["began_us"]) <= int(r["ended_us"])
    assert not os.path.exists(os.path.join(k.dir, "socket")) and not os.path.exists(os.path.join(k.dir, "rundir"))


def test_a_command_that_is_good(sandbox):
    with sandbox("true") as k:
        r = k.end()
    assert (r["state"], r["reason"], r["exit"]) == ("succeeded", "exit", "0")


def test_a_command_that_is_killed(sandbox):
    with sandbox(*sh("kill -11 $$")) as k:
        r = k.end()
    assert (r["state"], r["reason"], r["signal"]) == ("failed", "signal", "11") and "exit" not in r


def test_a_command_that_is_not_there(sandbox):
    with sandbox("no-such-program") as k:
        r = k.end()
        assert b"no-such-program" in k.output()[1]
    assert (r["state"], r["exit"]) == ("failed", "127")


def test_output_has_a_bound(sandbox):
    with sandbox(*sh("head -c 3000000 /dev/zero; echo the end >&2"), words=["output=100000"]) as k:
        r = k.end()
        assert k.output() == (bytes(100000), b"")
    assert (r["state"], r["output_bytes"], r["output_lost"]) == ("succeeded", "100000", "2900008")


def test_the_service_is_told(sandbox):
    with sandbox(*sh("until [ -p go ]; do sleep 0.01; done; read x < go; exit 5")) as k:
        k.connect()
        k.send(b"R", 1, b"\0sh\0-c\0mkfifo go; echo > go\0")  # which may end with the room
        assert k.until_done(0)[2] == "exit 5"
        with pytest.raises(EOFError):
            while k.read():
                pass
        assert read_result(k.dir)["exit"] == "5"  # there before the end of the connection
        assert k.end()["state"] == "failed"


def test_another_keeper_for_the_same_sandbox(sandbox):
    with sandbox() as k:
        k.connect()
        second = subprocess.run([binary("cage-keeper"), k.dir], capture_output=True, text=True, timeout=30)
        assert second.returncode == 1 and "another keeper has it" in second.stderr
        assert k.sh("echo still")[0] == b"still\n"
        k.send(b"K", 0, b"asked")
        assert k.end()["state"] == "killed"
    third = subprocess.run([binary("cage-keeper"), k.dir], capture_output=True, text=True, timeout=30)
    assert third.returncode == 1 and "has ended already" in third.stderr


@pytest.mark.parametrize("words", [["nonsense=1"], ["publish=127.0.0.1:0:80"], ["publish=host:0:1"], ["keep=2"], ["wall_ms=x"], ["dir="], ["artifact=a"], ["artifact=1:"], ["artifact=999999999:a"], ["artifact=1:a"] * 33])
def test_a_spec_that_is_none(sandbox, words):
    with sandbox("true", words=words) as k:
        r = k.end()
    assert (r["state"], r["reason"], r["message"]) == ("failed", "keeper.failed", "spec: a word is not known, or has a bad value")


def test_a_policy_that_is_none(sandbox):
    with sandbox("true", policy="version: 1\nrulez: []\n") as k:
        r = k.end()
    assert (r["state"], r["reason"]) == ("failed", "policy") and "rulez" in r["message"], r


def test_a_room_that_can_not_be_made(sandbox):
    with sandbox("true", options=["--limit", "mem=nonsense"]) as k:
        r = k.end()
    assert r["state"] == "failed" and r["reason"] in ("room.failed", "policy") and "--limit" in r["message"], r


# ---- files and tools


def test_files_go_in_and_come_out(sandbox):
    files = {"a/b/c.txt": b"deep\n", "big": os.urandom(3000000), "empty": b"", "name with space\n": b"x"}
    with sandbox(files=files) as k:
        k.connect()
        for path, data in files.items():
            assert k.get(path) == (data, b"", "exit 0")
        assert k.sh("cat a/b/c.txt; wc -c < big")[0] == b"deep\n3000000\n"
        assert k.put("new/file", files["big"])[2] == "exit 0"
        assert k.sh("cmp new/file big")[2] == "exit 0"
        assert k.sh("umask; stat -c %a big new")[0] == b"0022\n644\n755\n"


def test_files_that_do_not_fit(sandbox):
    with sandbox("true", files={"big": bytes(2000000)}, disk="1M") as k:
        r = k.end()
    assert (r["state"], r["reason"]) == ("failed", "room.failed") and "big could not be put into the workspace: No space left" in r["message"]


def test_programs_side_by_side_and_cancelled(sandbox):
    with sandbox() as k:
        k.connect()
        k.send(b"R", 1, b"\0sh\0-c\0echo begun; sleep 1000\0")
        assert k.read() == (b"o", 1, b"begun\n")
        assert k.sh("echo other; exit 9", ident=2) == (b"other\n", b"", "exit 9")
        k.send(b"C", 1)
        assert k.until_done(1)[2] == "signal 9"


def test_numbers_of_jobs(sandbox):
    with sandbox() as k:
        k.connect()
        assert k.run("true", ident=0x8000)[2] == "error %d" % errno.EINVAL
        k.send(b"R", 1, b"\0sleep\0001000\0")
        assert k.run("true", ident=1)[2] == "error %d" % errno.EEXIST
        for ident in range(2, 26):
            k.send(b"R", ident, b"\0sleep\0001000\0")
        assert k.until_done(25)[2] == "error %d" % errno.EBUSY


@pytest.mark.parametrize("data", [b"R\0\0\0\6\0\0\0\0true\0", b"X" * 8, b"N\0\1\0\3\0\0\0" + b"80\0", b"r\0\0\0\0\0\0\0"],
                         ids=["the command's", "broken", "a connection", "ready"])
def test_who_is_no_service_is_cut_off(sandbox, data):
    """Nothing of what cage-inside does for the keeper alone can be asked for, nor in the name of the command."""
    with sandbox() as k:
        k.connect()
        k.sock.sendall(data)
        with pytest.raises(EOFError):
            k.read()
        k.connect()
        assert k.sh("echo still here")[0] == b"still here\n"


def test_a_newer_connection_takes_the_place_of_the_older(sandbox):
    """What that had asked for is cancelled, and its numbers can be used at once."""
    with sandbox() as k:
        k.connect()
        k.send(b"R", 1, b"\0sh\0-c\0echo $$ > pid; exec sleep 1000\0")
        assert k.sh("until [ -s pid ]; do sleep 0.01; done", ident=2)[2] == "exit 0"
        old = k.sock
        k.connect()
        assert old.recv(1) == b""
        assert k.sh("echo mine; while kill -0 $(cat pid); do sleep 0.01; done 2>/dev/null", ident=1) == (b"mine\n", b"", "exit 0")
        old.close()


def test_a_service_that_does_not_read_holds_up_only_itself(sandbox):
    with sandbox(*sh("until [ -e go ]; do sleep 0.01; done; head -c 500000 /dev/zero; : > written; until [ -e end ]; do sleep 0.01; done")) as k:
        k.connect()
        for ident in range(1, 9):
            k.send(b"R", ident, b"\0head\0-c\x003000000\0/dev/zero\0")
        k.send(b"P", 20, b"go\0")
        k.send(b"E", 20)
        wait_until(lambda: os.path.getsize(os.path.join(k.dir, "output")) >= 500000, 30, "the command is held up")
        with open("/proc/%d/status" % k.process.pid, encoding="ascii") as f:
            rss = [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0]
        assert rss < 64000
        for ident in range(1, 9):
            out, _, how = k.until_done(ident)
            assert (len(out), how) == (3000000, "exit 0")
        assert k.put("end", b"", ident=21)[2] == "exit 0"
        assert k.end()["state"] == "succeeded"


LEAVING = ["../outside", "a/../../etc/passwd", "/etc/passwd", "link", "up/etc/passwd", "proc/self/root/etc/passwd", "/proc/self/root/etc/passwd",
           "proc/1/root/etc/passwd"]


def test_paths_that_lead_out(sandbox):
    with sandbox() as k:
        k.connect()
        assert k.sh("mkdir a; ln -s /etc/passwd link; ln -s .. up; ln -s /proc proc")[2] == "exit 0"
        for path in LEAVING:
            assert k.get(path) == (b"", b"", "error %d" % errno.EXDEV), path
            if path != "link":
                assert k.put(path, b"x")[2].startswith("error "), path


def test_paths_that_change_while_they_are_looked_up(sandbox):
    """A directory becomes a link out and back, as fast as the sandbox can: what is read is its own file, or nothing."""
    script = ("mkdir d; echo own > d/passwd; ln -s /etc l; : > begun; "
              "exec python3 -c 'import os,ctypes\nlibc=ctypes.CDLL(None)\nwhile 1: libc.renameat2(-100, b\"d\", -100, b\"l\", 2)'")
    with sandbox(*sh(script)) as k:
        k.connect()
        assert k.sh("until [ -e begun ]; do sleep 0.01; done")[2] == "exit 0"
        for i in range(300):
            out, _, how = k.get("d/passwd")
            assert out in (b"own\n", b"") and (how == "exit 0") == (out == b"own\n"), (out, how)
            if i % 10 == 0:
                k.put("d/passwd", b"own\n")


# ---- the end


def test_wall_time(sandbox):
    with sandbox(*sh("trap '' TERM INT; echo begun; while :; do sleep 1000; done"), words=["wall_ms=300"]) as k:
        k.connect()
        k.remember()
        r = k.end()
        assert k.output()[0] == b"begun\n"
    assert (r["state"], r["reason"]) == ("timed_out", "time.wall")
    assert int(r["ended_us"]) - int(r["began_us"]) >= 300000


def test_an_idle_one_has_a_wall_too(sandbox):
    with sandbox(words=["wall_ms=300"]) as k:
        r = k.end()
    assert (r["state"], r["reason"]) == ("timed_out", "time.wall") and "exit" not in r


def test_stop(sandbox):
    with sandbox(*sh("trap 'echo asked; exit 7' TERM; : > begun; while :; do sleep 0.05; done")) as k:
        k.connect()
        assert k.sh("until [ -e begun ]; do sleep 0.01; done")[2] == "exit 0"
        k.send(b"K", 0, b"asked")
        r = k.end()
        assert k.output()[0] == b"asked\n"
    assert (r["state"], r["reason"], r["exit"]) == ("killed", "asked", "7")


def test_stop_of_one_that_does_not_obey(sandbox):
    with sandbox(*sh("trap '' TERM; (trap '' TERM; setsid sleep 1000) & : > begun; while :; do sleep 0.05; done"), words=["grace_ms=200"]) as k:
        k.connect()
        assert k.sh("until [ -e begun ]; do sleep 0.01; done")[2] == "exit 0"
        k.remember()
        k.process.send_signal(signal.SIGTERM)
        r = k.end()
    assert (r["state"], r["reason"]) == ("killed", "asked")


def test_stop_before_there_is_a_room(sandbox):
    with sandbox("sleep", "1000") as k:
        k.connect(ready=False)
        k.send(b"K", 0, b"asked")
        r = k.end()
    assert (r["state"], r["reason"]) == ("killed", "asked")


def test_a_fork_bomb(sandbox):
    bomb = "import os\nwhile 1:\n  try: os.fork()\n  except OSError: pass"
    with sandbox("python3", "-c", bomb, options=["--limit", "pids=64"], words=["wall_ms=1500"]) as k:
        r = k.end()
    assert (r["state"], r["reason"]) == ("timed_out", "time.wall")


@pytest.mark.cgroups
def test_memory_that_is_full(sandbox):
    with sandbox("python3", "-c", "x = bytearray(400 << 20); print(len(x))", options=["--limit", "mem=64M"]) as k:
        r = k.end()
        assert k.output()[0] == b""
    assert r["state"] == "failed" and 0 < int(r["memory_peak"]) <= 66 << 20, r
    if "data segment" not in k.text("said"):  # there is a cgroup for it
        assert (r["reason"], r["signal"]) == ("oom", "9") and int(r["oom"]) > 0, r


def test_what_was_used(sandbox):
    with sandbox("python3", "-c", "x = bytearray(50 << 20); sum(range(10000000)); open('f', 'wb').write(bytes(3 << 20))") as k:
        r = k.end()
    assert r["state"] == "succeeded" and int(r["cpu_us"]) > 50000 and 3 << 20 <= int(r["disk_peak"]) < 4 << 20, r


@pytest.mark.cgroups
def test_what_was_used_by_one_whose_time_is_over(sandbox):
    with sandbox("python3", "-c", "while 1: pass", words=["wall_ms=1000"]) as k:
        r = k.end()
    assert r["state"] == "timed_out" and int(r["cpu_us"]) > 50000, r


def test_a_disk_that_is_full(sandbox):
    with sandbox(*sh("head -c 5000000 /dev/zero > big; echo $?; wc -c < big"), disk="1M") as k:
        r = k.end()
        code, size = k.output()[0].split()
        assert code != b"0" and int(size) <= 1 << 20
    assert r["state"] == "succeeded" and 900000 < int(r["disk_peak"]) <= 1 << 20


@pytest.mark.parametrize("number", ["KILL", "ABRT"])
def test_cage_inside_is_killed_by_the_agent(sandbox, number):
    with sandbox(*sh("echo before; kill -%s $PPID; sleep 1000" % number)) as k:
        k.connect()
        k.remember()
        r = k.end()
    assert (r["state"], r["reason"]) == ("failed", "room.failed"), r


def test_cage_inside_is_stopped_by_the_agent(sandbox):
    with sandbox(*sh("kill -STOP $PPID; sleep 1000"), words=["wall_ms=1000", "grace_ms=100"]) as k:
        k.connect()
        r = k.end()
    assert (r["state"], r["reason"]) == ("timed_out", "time.wall")


def test_nobody_in_the_room_can_look_into_cage_inside(sandbox):
    with sandbox() as k:
        k.connect()
        out, err, _ = k.sh("ls -l /proc/$PPID/fd; cat /proc/$PPID/environ; echo x > /proc/$PPID/fd/1; id -u")
        assert out == b"1000\n" and len(err.split(b"\n")) == 4, (out, err)


@pytest.mark.parametrize("name", ["cage", "cage-gate", "keeper"])
def test_killed_with_nine(sandbox, name):
    """The room ends, and nothing is left of it: processes, its directory, or, unless it was the gate that should have removed it,
    its cgroup."""
    limit = () if name == "cage-gate" else ("--limit", "mem=256M,pids=100")
    with sandbox(*sh("trap '' TERM; setsid sleep 1000 & echo begun; sleep 1000"), options=limit) as k:
        k.connect()
        rundir = k.rundir()
        k.remember()
        assert os.path.isdir(rundir) and len(k.pids) > 5
        os.kill(k.process.pid if name == "keeper" else program(k, name), signal.SIGKILL)
        if name == "keeper":
            k.process.wait(30)
        else:
            r = k.end()
            assert (r["state"], r["reason"]) == ("failed", "room.failed"), r
            assert name != "cage" or r["message"].endswith(": cage run was killed by signal 9"), r
        k.check_gone()
        wait_until(lambda: not os.path.exists(rundir), 30, "the directory of the run is left")
        assert not [line for line in open("/proc/self/mountinfo", encoding="utf-8") if rundir in line]
    assert (read_result(k.dir) is None) == (name == "keeper")


def test_a_proxy_that_is_killed(sandbox):
    """Then nothing goes out, and no tool call can be logged."""
    with sandbox() as k:
        k.connect()
        assert k.tool("allow", "", "shell_exec", "ls") == "exit 0"
        os.kill(program(k, "cage-proxy"), signal.SIGKILL)
        wait_until(lambda: k.tool("allow", "", "shell_exec", "ls").startswith("error "), 30, "it is still logged")
        assert k.sh("echo alive")[0] == b"alive\n"


# ---- what is kept


def test_keep(sandbox):
    script = "mkdir -p a/b empty; echo one > a/b/one; ln -s /etc/passwd link; mkfifo pipe; head -c 300000 /dev/zero > zeros; printf x > \"$(printf 'new\\nline')\""
    with sandbox(*sh(script), words=["keep=1"]) as k:
        r = k.end()
    assert (r["state"], r["message"]) == ("succeeded", "")
    found = {}
    for top, dirs, files in os.walk(os.path.join(k.dir, "kept")):
        for name in dirs + files:
            path = os.path.join(top, name)
            assert not os.path.islink(path)
            found[os.path.relpath(path, os.path.join(k.dir, "kept"))] = None if os.path.isdir(path) else os.path.getsize(path)
    assert found == {"a": None, "a/b": None, "empty": None, "a/b/one": 4, "zeros": 300000, "new\nline": 1}


def artifact(k, n):
    with open(os.path.join(k.dir, "artifacts", str(n)), "rb") as f:
        return f.read()


def test_artifacts(sandbox):
    """Those that were asked for, and nothing else of the workspace; one may have its whole bound."""
    with sandbox(*sh("mkdir d; head -c 300000 /dev/zero > d/zeros; printf x > 'a b'; : > empty; echo no > other"),
                 words=["artifact=300000:d/zeros", "artifact=1:a b", "artifact=0:empty"]) as k:
        r = k.end()
    assert (r["state"], r["reason"], r["message"]) == ("succeeded", "exit", "")
    assert sorted(os.listdir(os.path.join(k.dir, "artifacts"))) == ["0", "1", "2"]
    assert (artifact(k, 0), artifact(k, 1), artifact(k, 2)) == (bytes(300000), b"x", b"")
    assert not os.path.exists(os.path.join(k.dir, "kept"))


@pytest.mark.parametrize("script, reason", [
    ("true", "artifact.missing"), ("mkdir a", "artifact.missing"), ("mkfifo a", "artifact.missing"), ("ln -s /etc/passwd a", "artifact.missing"),
    ("echo x > b; ln -s b a", "artifact.missing"), ("ln -s a a", "artifact.missing"),
    ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"a\")'", "artifact.missing"),
    ("head -c 1001 /dev/zero > a", "artifact.too_large"), ("while :; do head -c 100 /dev/zero >> a; sleep 0.001; done & until [ $(wc -c < a) -gt 1000 ]; do :; done", "artifact.too_large"),
], ids=["none", "directory", "fifo", "link-out", "link-inside", "loop", "socket", "large", "growing"])
def test_what_is_no_artifact(sandbox, script, reason):
    """Nothing is followed, nothing is waited for, and the success is none; what is to be kept is kept all the same."""
    with sandbox(*sh("echo kept > c; : > z; " + script), words=["artifact=1000:a", "artifact=10:c", "keep=1"]) as k:
        r = k.end()
    assert (r["state"], r["reason"], r["exit"]) == ("failed", reason, "0") and "artifact a " in r["message"], r
    assert os.path.exists(os.path.join(k.dir, "kept", "c"))


def test_a_link_on_the_way_to_an_artifact(sandbox):
    with sandbox(*sh("mkdir d; echo x > d/a; ln -s d e"), words=["artifact=1000:e/a"]) as k:
        r = k.end()
    assert (r["state"], r["reason"]) == ("failed", "artifact.missing")


def test_no_artifacts_of_one_that_failed(sandbox):
    with sandbox(*sh("echo x > a; exit 3"), words=["artifact=1000:a"]) as k:
        r = k.end()
    assert (r["state"], r["reason"], r["exit"]) == ("failed", "exit", "3")
    assert not os.path.exists(os.path.join(k.dir, "artifacts"))


def test_what_is_no_file_is_not_kept(sandbox):
    """Links of both kinds, pipes, sockets, devices: nothing of this machine comes with them, and nothing is followed."""
    script = ("import os, socket\nos.mkdir('d')\nopen('d/own', 'w').write('x')\nos.link('d/own', 'hard')\nos.symlink('/etc', 'dir')\nos.symlink('/etc/passwd', 'd/file')\n"
              "os.symlink('.', 'loop')\nos.symlink('../../spec', 'd/up')\nos.mkfifo('d/pipe')\nsocket.socket(socket.AF_UNIX).bind('d/socket')\n"
              "for make in (lambda: os.mknod('device', 0o60600, os.makedev(7, 0)), lambda: os.link('/etc/passwd', 'd/theirs'), lambda: os.chmod('hard', 0o4755)):\n"
              "  try: make()\n  except OSError: continue\n  os._exit(9)")
    with sandbox("python3", "-c", script, words=["keep=1"]) as k:
        r = k.end()
        assert (r["state"], r["exit"]) == ("succeeded", "0"), (r, k.output())
    top = os.path.join(k.dir, "kept")
    assert sorted(os.listdir(top)) == ["d", "hard"] and os.listdir(top + "/d") == ["own"]
    for name in ("hard", "d/own"):
        st = os.lstat(os.path.join(top, name))
        assert (st.st_nlink, st.st_size, st.st_mode) == (1, 1, 0o100600)


def test_directories_deeper_than_are_kept(sandbox):
    with sandbox("python3", "-c", "import os\nfor i in range(70):\n  os.mkdir('d'); os.chdir('d')", words=["keep=1"]) as k:
        r = k.end()
    assert "not kept as a whole: 1 files or directories are missing" in r["message"], r
    assert os.path.isdir(os.path.join(k.dir, "kept", *["d"] * 64)) and not os.path.exists(os.path.join(k.dir, "kept", *["d"] * 65))


def test_no_more_is_kept_than_the_workspace_had(sandbox):
    """Files with holes take nothing in the room, and would take all of the disk here."""
    script = "truncate -s 1500M sparse; for i in 1 2 3 4 5 6; do truncate -s 3M hole$i; done; echo small > small; mkdir d; ln hole1 d/again"
    with sandbox(*sh(script), words=["keep=1"], disk="8M") as k:
        r = k.end()
    top = os.path.join(k.dir, "kept")
    found = {name: os.lstat(os.path.join(top, name)) for name in os.listdir(top)}
    assert r["state"] == "succeeded" and "is not kept as a whole" in r["message"], r
    assert "sparse" not in found and found["small"].st_size == 6
    assert all(st.st_size == 3 << 20 for name, st in found.items() if name.startswith("hole"))
    assert sum(st.st_blocks * 512 for st in found.values()) <= 8 << 20


def test_long_paths_are_kept(sandbox):
    """Those that the keeper can make; and no directory of the same name is taken for another."""
    script = ("n=$(printf '%0240d' 0); mkdir a b; echo a > a/f; echo b > b/f; i=0; while [ $i -lt 15 ]; do mkdir $n; cd $n; i=$((i+1)); echo $i > f; done;"
              " i=0; while [ $i -lt 5 ]; do mkdir $n; cd $n; echo far > f; i=$((i+1)); done")
    with sandbox(*sh(script), words=["keep=1"]) as k:
        r = k.end()
    assert r["state"] == "succeeded" and "is not kept as a whole" in r["message"]
    top = os.path.join(k.dir, "kept")
    for name in "ab":
        with open(os.path.join(top, name, "f"), encoding="ascii") as f:
            assert f.read() == name + "\n"
    at = os.open(top, os.O_RDONLY)
    for i in range(15):
        below = os.open("0" * 240, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
        with open(os.open("f", os.O_RDONLY, dir_fd=at), encoding="ascii") as f:
            assert f.read() == "%d\n" % (i + 1)
    os.close(at)


def test_nothing_is_kept_unless_that_is_asked(sandbox):
    with sandbox(*sh("echo x > file")) as k:
        k.end()
    assert not os.path.exists(os.path.join(k.dir, "kept"))


def test_keep_after_its_time(sandbox):
    with sandbox(*sh("echo x > file; sleep 1000"), words=["keep=1", "wall_ms=6000"]) as k:
        r = k.end()
    assert (r["state"], os.listdir(os.path.join(k.dir, "kept"))) == ("timed_out", ["file"]), r


def test_deleted_is_not_kept(sandbox):
    with sandbox(words=["keep=1"]) as k:
        k.connect()
        k.put("file", b"x")
        k.send(b"K", 0, b"deleted")
        assert k.end()["state"] == "killed"
    assert not os.path.exists(os.path.join(k.dir, "kept"))


# ---- the network


@pytest.fixture(scope="module")
def origin(tmp_path_factory, pki):
    with Nginx(tmp_path_factory.mktemp("nginx"), pki.leaf("site.test", "other.test")) as running:
        yield running


def allowing(origin, pki, *hosts):
    return policy({"id": "site", "hosts": list(hosts)}, pins={h: origin.tls_pin for h in hosts}, trust=[pki.ca_pem])


def test_http_requests(sandbox, origin, pki):
    with sandbox(policy=allowing(origin, pki, "site.test")) as k:
        k.connect()
        good = k.fetch(url="https://site.test/hello.txt")
        assert (good["status"], good["body"], good["truncated"]) == (200, "hello from the origin\n", False), good
        cut = k.fetch(url="https://site.test/hello.txt", max_bytes=5)
        assert (cut["body"], cut["truncated"]) == ("hello", True)
        bad = k.fetch(url="https://evil.test/", headers={"X-A": "b"})
        assert bad.get("status") == 403 or bad.get("error") in ("proxy", "connect"), bad
        for more in ({"proxy": "http://127.0.0.1:1"}, {"ca_file": "/etc/passwd"}, {"unknown": 1}):
            assert k.fetch(url="https://site.test/", **more)["error"] == "bad_request"
        assert k.fetch(url="file:///etc/passwd")["error"] == "bad_request"
        assert k.fetch(url="https://site.test/", headers={"X": "a\r\nY: b"})["error"] == "bad_request"
    assert k.log.find(host="site.test", decision="allow") and k.log.find(host="evil.test", decision="block")


def test_a_request_in_pieces_and_one_that_is_cancelled(sandbox, origin, pki):
    with sandbox(policy=allowing(origin, pki, "site.test")) as k:
        k.connect()
        k.send(b"F", 1)
        k.send(b"D", 1, b'{"url": "https://site.')
        k.send(b"D", 1, b'test/hello.txt"}')
        k.send(b"E", 1)
        assert b"hello from the origin" in k.until_done(1)[0]
        k.send(b"F", 2)
        k.send(b"C", 2)
        assert k.until_done(2)[2] == "signal 9"


def test_reload(sandbox, origin, pki):
    fetch = "curl -sS -m 20 -o /dev/null -w '%%{http_code}' https://%s/hello.txt 2>&1"
    with sandbox(policy=allowing(origin, pki, "site.test")) as k:
        k.connect()
        assert k.sh(fetch % "site.test")[0] == b"200"
        assert k.sh(fetch % "other.test")[0] != b"200"
        k.set_policy(allowing(origin, pki, "other.test"))
        k.send(b"H", 5)
        assert k.until_done(5)[2] == "exit 0"
        assert k.sh(fetch % "other.test")[0] == b"200"
        assert k.sh(fetch % "site.test")[0] != b"200"
        k.set_policy("version: nonsense\n")
        k.send(b"H", 6)
        k.send(b"H", 7)
        assert k.until_done(6)[2] == "exit 1" and k.until_done(7)[2] == "exit 1"
        assert k.sh(fetch % "other.test")[0] == b"200"


def test_tool_calls_are_logged(sandbox):
    with sandbox() as k:
        k.connect()
        assert k.tool("allow", "", "shell_exec", "ls -l") == "exit 0"
        assert k.tool("block", "tool.path", "file_read", "../x") == "exit 0"
        assert k.tool("perhaps", "", "file_read", "x").startswith("error ")
        k.send(b"K", 0, b"asked")
        k.end()
    lines = [(e["decision"], e["method"], e["path"]) for e in k.log.lines() if e["event"] == "tool"]
    assert lines == [("allow", "shell_exec", "ls -l"), ("block", "file_read", "../x")]


# ---- ports that are published

ECHO = ("python3", "-c", "import socket, threading\ns = socket.create_server((\"127.0.0.1\", 7777))\nopen(\"begun\", \"w\")\n"
        "def serve(c):\n  while 1:\n    d = c.recv(65536)\n    if not d: break\n    c.sendall(d)\n  c.close()\n"
        "while 1: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()")


def published(k, port=7777):
    for line in k.text("published").split("\n"):
        if line.startswith("%d " % port):
            host, _, host_port = line.split()[1].rpartition(":")
            return host.strip("[]"), int(host_port)
    raise AssertionError(k.text("published"))


@pytest.fixture
def echo(sandbox):
    with sandbox(*ECHO, words=["publish=127.0.0.1:0:7777", "publish=127.0.0.1:0:7778"]) as k:
        k.connect()
        assert k.sh("until [ -e begun ]; do sleep 0.01; done")[2] == "exit 0"
        yield k


def exchange(at, data):
    with socket.create_connection(at, 30) as s:
        s.settimeout(30)
        sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        sender.start()
        got = b""
        while piece := s.recv(65536):
            got += piece
        sender.join()
    return got


def test_publish(echo):
    at = published(echo)
    assert at[0] == "127.0.0.1"
    assert exchange(at, b"hello") == b"hello"
    data = os.urandom(5000000)
    assert exchange(at, data) == data
    with pytest.raises(ConnectionResetError):  # nobody is there
        socket.create_connection(published(echo, 7778), 30).recv(1)


REACH = ("import socket, sys\nfor host in ('127.0.0.1', '127.1.2.3', '::1', sys.argv[2]):\n  s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)\n  s.settimeout(10)\n"
         "  try: s.connect((host, int(sys.argv[1])))\n  except OSError as e: print(e.errno)\n  else: print('reached')")


def own_address():
    """Of this machine, beside loopback; one that is none, where it has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.2"
        return s.getsockname()[0]


def test_a_published_port_is_for_this_machine_alone(echo, sandbox):
    """Neither the sandbox itself nor another one reaches it, and it is on no address but the one that was asked for."""
    host, port = published(echo)
    with sandbox() as other:
        other.connect()
        for k in (echo, other):
            out = k.run("python3", "-c", REACH, str(port), own_address())[0]
            assert out.split() == [b"%d" % errno.ECONNREFUSED] * 4, out
    for address in {own_address(), "127.0.0.2"} - {host}:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, port), 5)
    assert exchange((host, port), b"still") == b"still"


def test_a_flood_of_connections(echo):
    """Those that come and go at once neither use up the keeper nor the sandbox."""
    at = published(echo)
    for _ in range(1000):
        with socket.create_connection(at, 30) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert exchange(at, b"after it") == b"after it"
    wait_until(lambda: len(os.listdir("/proc/%d/fd" % echo.process.pid)) < 40, 30, "connections are left")
    assert echo.sh("echo fine")[0] == b"fine\n"


def test_a_slow_connection_holds_up_no_other(echo):
    at = published(echo)
    slow = [socket.create_connection(at, 30) for _ in range(20)]
    for s in slow:  # nobody reads what comes back
        s.setblocking(False)
        for _ in range(1000):
            try:
                s.send(bytes(65536))
            except BlockingIOError:
                break
    assert exchange(at, b"quick" * 1000) == b"quick" * 1000
    with open("/proc/%d/status" % echo.process.pid, encoding="ascii") as f:
        assert [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0] < 64000
    for s in slow:
        s.close()
    assert exchange(at, b"quick") == b"quick"


def test_more_connections_than_there_may_be(echo):
    """They wait until others have ended."""
    at = published(echo)
    many = [socket.create_connection(at, 30) for _ in range(80)]
    for s in many:
        s.sendall(b"x")
    for s in many[:60]:
        s.settimeout(30)
        assert s.recv(1) == b"x"
        s.close()
    for s in many[60:]:
        s.settimeout(30)
        assert s.recv(1) == b"x"
        s.close()


def test_nothing_listens_when_it_is_gone(echo):
    at = published(echo)
    echo.send(b"K", 0, b"asked")
    echo.end()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(at, 5)


# ---- a disk that is full outside


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can mount")
    where = tmp_path / "disk"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(where)], check=True, timeout=20)
    yield where
    subprocess.run(["umount", str(where)], check=True, timeout=20)


def test_a_full_disk_under_its_artifacts(small_disk, ca_dir):
    with Keeper(small_disk / "box", sh("head -c 6000000 /dev/zero > big"), ca_dir=ca_dir, words=["artifact=6000000:big"]) as k:
        r = k.end()
    assert (r["state"], r["reason"]) == ("failed", "disk.full") and "disk of the service is full" in r["message"], r


def test_a_full_disk_under_its_directory(small_disk, ca_dir):
    """The output is lost and counted, and the result is there all the same."""
    with Keeper(small_disk / "box", sh("until [ -p go ]; do sleep 0.01; done; read x < go; head -c 200000 /dev/zero > big; head -c 6000000 /dev/urandom; exit 4"), ca_dir=ca_dir, words=["keep=1", "output=100000000"]) as k:
        k.connect()
        with open(small_disk / "filler", "wb", buffering=0) as f, pytest.raises(OSError):
            while f.write(bytes(4096)) > 0:
                pass
        assert k.sh("mkfifo go; echo > go")[2] == "exit 0"
        r = k.end()
    assert (r["state"], r["exit"]) == ("failed", "4") and int(r["output_lost"]) > 5000000
    assert int(r["output_lost"]) + int(r["output_bytes"]) == 6000000
    assert "not kept as a whole" in r["message"]
