"""What a command leaves behind where no pid namespace ends it: nothing of it outlives the command, its time, the gate or cage
run, and what it does to its files meanwhile removes none of anybody else's."""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess

import pytest
from cagelib import netns
from cagelib.cage_run import Room, Running
from cagelib.proxy import is_alive, policy, wait_until
from cagelib.room import Gate

# Leaves the session, the group and the parent, and no signal of its parent's death reaches it.
ORPHAN = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
null = os.open("/dev/null", os.O_RDWR)
for fd in range(3):
    os.dup2(null, fd)
%s
"""
MARKS = ORPHAN % "os.rename(sys.argv[1] + '.part', sys.argv[1]) if open(sys.argv[1] + '.part', 'w').write(str(os.getpid())) else 0\ntime.sleep(1000)"


@pytest.fixture(autouse=True)
def network():
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can be alone in a network")
    with netns.or_skip():
        yield


@pytest.fixture
def gate(network):
    with contextlib.closing(Gate("root")) as made:
        yield made


@pytest.fixture
def room(tmp_path):
    room = Room(tmp_path, policy())
    room.options = ["--mode", "seccomp"]
    yield room
    room.check_logs()


def orphan_of(path):
    """The pid that it has left there; it has other names for it inside of a namespace, which it is not in."""
    wait_until(lambda: os.path.exists(path), 30, "no orphan")
    with open(path) as f:
        return int(f.read())


def is_gone(pid):
    return not is_alive(pid)


def leaving(path, then):
    """A script that leaves an orphan, waits until it is there, and goes on."""
    return "/usr/bin/python3 -c \"$SCRIPT\" %s; while ! test -e %s; do sleep 0.01; done; %s" % (path, path, then)


# ---- the gate by itself


def test_orphans_end_with_the_command(gate):
    path = gate.path("pid")
    done = gate.sh(leaving(path, "exit 7"), "--env", "SCRIPT=" + MARKS, mode="seccomp")
    assert done.returncode == 7, done.stderr
    assert is_gone(orphan_of(path))


def test_orphans_end_with_the_time(gate):
    path = gate.path("pid")
    done = gate.sh(leaving(path, "exec sleep 1000"), "--env", "SCRIPT=" + MARKS, "--limit", "time=3s", mode="seccomp")
    assert done.returncode == 137 and "the time of the agent is over" in done.stderr
    assert is_gone(orphan_of(path))


@pytest.mark.skipif(not shutil.which("strace"), reason="NOT TESTED, there is no strace here")
def test_without_a_pid_namespace_too(gate):
    """Where the host allows a network namespace and no other."""
    path = gate.path("pid")
    before = ("strace", "-qq", "-o", "/dev/null", "-e", "trace=clone", "-e", "inject=clone:error=EPERM:when=1")
    done = gate.sh(leaving(path, "exit 7"), "--env", "SCRIPT=" + MARKS, before=before)
    assert done.returncode == 7, done.stderr
    assert is_gone(orphan_of(path))


def test_many_orphans_that_go_on_forking(gate):
    """Each of them is gone before it could be found by its parent, and none is left in the end."""
    mark = "bomb-%d" % os.getpid()
    bomb = ORPHAN % "\nfor i in range(4):\n    os.fork()\nwhile True:\n    if os.fork():\n        os._exit(0)\n"
    done = gate.sh("/usr/bin/python3 -c \"$SCRIPT\" %s; sleep 0.3; exit 7" % mark, "--env", "SCRIPT=" + bomb, "--limit", "pids=200", mode="seccomp")
    assert done.returncode == 7, done.stderr
    assert mark not in subprocess.run(("ps", "-eo", "args"), capture_output=True, text=True, timeout=10).stdout


def cgroups(gate):
    """The name of one has in it the number of the gate."""
    return glob.glob("/sys/fs/cgroup/**/cage-%d" % gate, recursive=True)


@pytest.mark.cgroups
def test_the_cgroup_is_removed_behind_orphans(gate):
    """The gate is the parent of the command."""
    path = gate.path("pid")
    done = gate.sh(leaving(path, "echo $PPID; exit 7"), "--env", "SCRIPT=" + MARKS, "--limit", "pids=100",
                   mode="seccomp")
    assert done.returncode == 7, done.stderr
    if "no cgroup" in done.stderr:
        pytest.skip("NOT TESTED, no cgroup can be made here")
    assert is_gone(orphan_of(path))
    assert not cgroups(int(done.stdout))


def test_orphans_that_proc_hides(gate):
    """Root without the right to trace others, nor the group that sees all, when /proc (one of its own) begins to hide them."""
    path = gate.path("pid")
    apart = ["unshare", "--mount", "sh", "-c", "mount -t proc proc /proc && exec \"$@\"", "sh", "setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-all", "--regid=4711",
             "--clear-groups"]
    script = leaving(path, "echo up; read line; exit 7")
    line = [*apart, *gate.line("--env", "SCRIPT=" + MARKS, mode="seccomp"), "--", "/bin/sh", "-c", script]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"up\n"
        subprocess.run(["nsenter", "-m", "-t", str(running.pid), "mount", "-o", "remount,hidepid=2", "/proc"], check=True, timeout=20)
        running.stdin.close()
        assert running.wait(30) == 7
    assert is_gone(orphan_of(path))


def test_what_was_there_before_stays(gate):
    """A process that became the gate has children that are none of the room's."""
    path = gate.path("pid")
    before = ["sh", "-c", "sleep 1000 <&- >&- 2>&- & echo $! > %s; sleep 0.1; exec \"$@\"" % path, "sh"]
    assert gate.sh("exit 7", mode="seccomp", before=before).returncode == 7
    with open(path) as f:
        pid = int(f.read())
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)


# ---- cage run


def test_orphans_end_with_the_run(room, tmp_path):
    done = room.sh("/usr/bin/python3 -c \"$SCRIPT\" $HOME/pid; while ! test -e $HOME/pid; do sleep 0.01; done; cat $HOME/pid; exit 7",
                   options=["--env", "SCRIPT=" + MARKS])
    assert done.returncode == 7, done.stderr
    assert is_gone(int(done.stdout))


STARTS = "/usr/bin/python3 -c \"$SCRIPT\" $HOME/pid; while ! test -e $HOME/pid; do sleep 0.01; done; echo $HOME; echo up; exec sleep 1000"


def start(room):
    running = Running(room, "sh", "-c", STARTS, options=["--env", "SCRIPT=" + MARKS])
    running.out.wait("up", 60)
    home = running.out.text().split("\n")[0]
    return running, orphan_of(home + "/pid"), home


def test_orphans_end_when_the_gate_dies(room):
    running, pid, home = start(room)
    os.kill(running.child("cage-gate"), signal.SIGKILL)
    assert running.end() == 128 + signal.SIGKILL
    assert is_gone(pid) and not os.path.exists(home)


def test_orphans_end_when_cage_dies(room):
    running, pid, _ = start(room)
    running.process.kill()
    running.end()
    wait_until(lambda: is_gone(pid), 10, "the orphan outlives cage run")


WRITES = ORPHAN % """
open(sys.argv[1] + '.part', 'w').write(str(os.getpid()))
os.rename(sys.argv[1] + '.part', sys.argv[1])
while True:
    open("work", "a").write("more\\n")
    time.sleep(0.01)
"""


@pytest.mark.skipif(not shutil.which("setpriv"), reason="NOT TESTED, there is no setpriv here")
def test_work_is_left_where_orphans_can_not_be_ended(room, tmp_path):
    """Root of a container without the right to kill others: what they are still writing is not looked at, and not removed."""
    work = tmp_path / "work"
    work.mkdir()
    room.before = ["setpriv", "--bounding-set=-kill", "--inh-caps=-all"]
    running = Running(room, "sh", "-c", STARTS, options=["--env", "SCRIPT=" + WRITES, "--workspace", str(work)])
    running.out.wait("up", 60)
    pid = orphan_of(running.out.text().split("\n")[0] + "/pid")
    try:
        os.kill(running.child("cage-gate"), signal.SIGKILL)
        assert running.process.wait(60) == 1
        running.err.wait_end(5)
        said = running.err.text()
        assert "processes of the command are left, and can't be ended" in said
        assert "0 allowed, 0 blocked" in said, said
        left = re.search(r"what the command has written is left in (\S+)", said).group(1)
        assert os.path.exists(left + "/work") and not os.listdir(work)
    finally:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree("/".join(left.split("/")[:3]))


@pytest.mark.cgroups
@pytest.mark.parametrize("mode", ["netns", "seccomp"])
@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_no_cgroup_is_left_by_a_run_that_is_ended(room, mode, how):
    running = Running(room, "sh", "-c", "trap 'echo asked' INT; echo up; while :; do sleep 0.1; done", options=["--limit", "pids=100", "--mode", mode])
    running.out.wait("up", 60)
    gate = running.child("cage-gate")
    if not cgroups(gate):
        running.process.kill()
        pytest.skip("NOT TESTED, no cgroup can be made here")
    if how == "killed":
        running.process.kill()
    else:
        running.process.send_signal(signal.SIGINT)
        running.out.wait("asked", 30)
        running.process.send_signal(signal.SIGINT)
    running.end()
    wait_until(lambda: not cgroups(gate), 20, "a cgroup is left")


SWAPS = ORPHAN % """
where = sys.argv[1]
os.chdir(where)
for i in range(2000):
    os.makedirs("many/%d/below" % i)
    open("many/%d/below/file" % i, "w").close()
os.symlink(sys.argv[2], "link")
open("ready", "w").close()
i = 0
while True:
    i = (i + 1) % 2000
    try:
        os.rename("many/%d/below" % i, "away")
        os.rename("link", "many/%d/below" % i)
        os.rename("many/%d/below" % i, "link")
        os.rename("away", "many/%d/below" % i)
    except OSError:
        pass
"""


def test_swapped_links_lead_nowhere(room, open_dir):
    """A run that ends while its home is changed removes what is there, and nothing that a link leads to."""
    outside = open_dir / "outside"
    outside.mkdir()
    for i in range(200):
        (outside / ("file" if i == 0 else "file%d" % i)).write_text("keep")
    done = room.sh("/usr/bin/python3 -c \"$SCRIPT\" $HOME %s; while ! test -e $HOME/ready; do sleep 0.01; done; echo $HOME" % outside,
                   options=["--env", "SCRIPT=" + SWAPS])
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(done.stdout.strip())
    assert len(list(outside.iterdir())) == 200
