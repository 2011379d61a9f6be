"""cage verify: what it says of a room, and that each of its probes can say something else."""
import glob
import os
import signal
import socket
import subprocess

import pytest
from cagelib.cage_run import ALONE, command_line, tree
from cagelib.proxy import SANITIZER, binary, bound, wait_until

BAITS = 7


def verify(*arguments, before=(), **more):
    done = subprocess.run([*before, binary("cage"), "verify", *arguments], capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL, **more)
    assert not SANITIZER.search(done.stderr), done.stderr
    return done


@pytest.fixture
def lockable():
    if subprocess.run([binary("cage-gate"), "--probe"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, nothing can be locked in here")


@pytest.mark.parametrize("mode", ["netns", "seccomp"])
def test_verify(tmp_path, lockable, mode):
    if mode == "seccomp" and os.geteuid() != 0:
        pytest.skip("NOT TESTED, cage run is refused there to all but root")
    done = verify("--mode", mode, "--ca-dir", str(tmp_path / "ca"), before=ALONE if mode == "seccomp" else [])
    assert done.returncode == 0, done.stdout + done.stderr
    left_out = sorted(x[20:].split(": ")[0] for x in done.stdout.splitlines() if x.startswith("left out  -         "))
    head, _, names = done.stdout.splitlines()[-1].partition(": ")
    assert head.endswith(" probes, 0 surprises" + (", %d left out" % len(left_out) if left_out else ""))
    assert sorted(names.split("; ")) == (left_out or [""])
    if mode == "seccomp":
        assert {"a service by its path", "TCP to a listener on its address", "the page, straight"} <= set(left_out)
    assert done.stdout.count("ok        fails") >= 55 and done.stdout.count("ok        works") >= 10


@pytest.mark.cgroups
def test_files_of_the_kernel_that_are_covered_are_no_surprise(lockable):
    """They can be opened where the kernel has them, as that of ./dev vm does."""
    said = verify().stdout.splitlines()
    assert "ok        fails     kernel memory" in said and "ok        fails     locks, of everybody" in said, said


@pytest.mark.parametrize("arguments", [["--"], ["--", "true"], ["--mode", "netns", "true"], ["--bind"], ["--no-such"], ["--apply"]])
def test_verify_takes_only_options(tmp_path, arguments):
    """Else the word would be the command, and its exit code that of verify."""
    done = verify(*arguments, cwd=tmp_path, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "") and done.stderr


def test_a_word_is_a_sandbox(tmp_path):
    """Not the command: its exit code would be that of verify."""
    for arguments in (["true"], ["--json", "some-id"]):
        done = verify(*arguments, env={**os.environ, "CAGE_STATE": str(tmp_path)})
        assert (done.returncode, done.stdout) == (1, "") and str(tmp_path) in done.stderr, done.stderr
    assert verify("--json").returncode == 2


def test_a_result_that_is_lost_is_none(lockable):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([binary("cage"), "verify"], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, timeout=240)
    assert done.returncode == 1 and "stdout: " in done.stderr, done.stderr


def test_verify_help_wherever_it_stands():
    done = verify("--mode", "netns", "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: cage verify ")


def test_verify_tries_nothing_outside_of_a_room():
    done = verify("--inside", "netns", *["-"] * BAITS)
    assert (done.returncode, done.stdout) == (1, "") and "not a room" in done.stderr
    assert verify("--inside").returncode == 2


def test_verify_without_a_result(tmp_path, lockable):
    """The probes are ended before their last line: nothing is said to be good."""
    argv = bound("KILL", [binary("cage"), "verify", "--ca-dir", str(tmp_path / "ca")])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        process.stdout.readline()
        inside = next(p for p in tree(process.pid) if "--inside" in command_line(p))
        os.kill(inside, signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1 and "no result" in err and "surprises" not in out


def test_verify_that_can_not_be_locked(tmp_path):
    done = verify("--ca-dir", str(tmp_path / "ca"), "--mode", "open")
    assert (done.returncode, done.stdout) == (2, "")


def bait_of(pid):
    """The path of its socket, once it is there."""
    inodes = {os.readlink(x) for x in glob.glob("/proc/%d/fd/*" % pid)}
    with open("/proc/net/unix", encoding="ascii") as f:
        for words in map(str.split, f):
            if words[-1].startswith("/tmp/cage-verify.") and "socket:[%s]" % words[6] in inodes:
                return words[-1]
    return None


def test_verify_sees_what_arrives(tmp_path, lockable):
    """Whatever the probes were told."""
    argv = bound("KILL", [binary("cage"), "verify", "--ca-dir", str(tmp_path / "ca")])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        path = wait_until(lambda: bait_of(process.pid), 30, "no bait")
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "SURPRISE  arrived   a service of this machine, by its path\n" in out and out.endswith(" probes, 1 surprises\n")
    assert not os.path.exists(os.path.dirname(path))


READS = "setpriv --reuid=1000 --clear-groups cat %s"


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED, cage run is refused there to all but root")
def test_verify_lays_a_file_that_all_can_read(tmp_path, lockable):
    """Where the room shares the files of the machine, and where the user of the room could read it else: in no directory of root alone."""
    argv = bound("KILL", [*ALONE, binary("cage"), "verify", "--mode", "seccomp", "--ca-dir", str(tmp_path / "ca")])
    before = set(glob.glob("/run/cage-verify.*/file"))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            said = [process.stdout.readline()]
            while said[-1] and not said[-1].endswith("a file of this machine\n") and "a file of this machine:" not in said[-1]:
                said.append(process.stdout.readline())
            found = set(glob.glob("/run/cage-verify.*/file")) - before
            can_read = [subprocess.run((READS % x).split(), timeout=10).returncode == 0 for x in found]
        finally:
            os.kill(next(p for p in tree(process.pid) if "--inside" in command_line(p)), signal.SIGKILL)
            process.communicate(timeout=120)
    if said[-1].startswith("left out"):
        pytest.skip("NOT TESTED, " + said[-1].strip())
    assert said[-1] == "ok        fails     a file of this machine\n" and any(can_read), said
    assert not any(map(os.path.exists, found))


# What a room is not: all that is taken from it are rights. In a network of its own, so that nothing gets anywhere.
OPEN = """import os, socket, subprocess, sys, threading
tcp, udp, path, abstract = socket.socket(), socket.socket(type=socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
tcp.bind(("127.0.0.1", 0)); udp.bind(("127.0.0.1", 0)); path.bind(sys.argv[2] + "/socket"); abstract.bind("\\0cage-test-%d" % os.getpid())
for s in (tcp, path, abstract):
    s.listen(8)
os.chmod(sys.argv[2] + "/socket", 0o777)
open(sys.argv[2] + "/file", "w").close()
name = lambda s: "%s:%d" % s.getsockname()
def echo():
    while True:
        udp.sendto(b"x", udp.recvfrom(99)[1])
threading.Thread(target=echo, daemon=True).start()
sys.exit(subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "--no-new-privs", "--inh-caps=-all", sys.argv[1], "verify", "--inside", "netns",
                         name(tcp), name(tcp), name(udp), name(udp), sys.argv[2] + "/socket", "@cage-test-%d" % os.getpid(), sys.argv[2] + "/file"]).returncode)
"""
# These are so for every user without rights, or on kernels that do not have them.
ALWAYS = ("crypto socket", "Bluetooth socket", "raw IPv4 socket", "raw IPv6 socket", "mount", "devices, to be made", "namespaces, to be entered", "capabilities", "other processes", "disks",
          "the gate, to be traced", "memory of the gate", "ICMP", "Docker's socket")


def test_verify_is_surprised_where_there_is_no_room(open_dir):
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can make a network for it")
    os.chmod(open_dir, 0o777)
    done = subprocess.run([*ALONE, "/usr/bin/python3", "-c", OPEN, binary("cage"), str(open_dir)], capture_output=True, text=True, timeout=120)
    if done.returncode == 126 or "setpriv:" in done.stderr:
        pytest.skip("NOT TESTED, other users can't execute %s" % binary("cage"))
    told = {x[20:]: x[:20].split() for x in done.stdout.splitlines() if x.startswith(("ok ", "SURPRISE "))}
    for name in ("TCP to a listener on this machine", "UDP to a socket of this machine", "a service by its path", "a service by an abstract name", "a file of this machine"):
        assert told[name] == ["SURPRISE", "works"], done.stdout + done.stderr
    calm = [x for x, (verdict, how) in told.items() if verdict == "ok" and how == "fails"]
    assert not [x for x in calm if not x.startswith(("kernel", "memory", "variables", "namespaces", "password", "programs", "settings")) and x not in ALWAYS], calm
    assert done.returncode == 1
