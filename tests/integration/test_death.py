"""A part of the cage dies, at its start or while the command runs: it is dark in the room, the command gets refusals, cage run
says what happened, and its exit code is right. In both modes; a network of the test's own for the one that shares it."""
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import time

import pytest
from cagelib import netns
from cagelib.cage_run import Room, Running, children, command_line, tree
from cagelib.origin import Nginx
from cagelib.proxy import binary, is_alive, policy, wait_until

MODES = ("netns", "seccomp")
PROGRAMS = ("cage", "cage-gate", "cage-proxy", "cage-dns")
WAITS = "echo up; read line; "  # the rest of a script goes on when the test says so


@pytest.fixture(scope="module", params=MODES)
def place(request, tmp_path_factory, pki):
    """The mode, and an origin where a room of that mode can be made."""
    with contextlib.ExitStack() as stack:
        if request.param == "seccomp":
            stack.enter_context(netns.or_skip())
        elif subprocess.run([binary("cage-gate"), "--probe", "--mode", "netns"], capture_output=True, timeout=20).returncode != 0:
            pytest.skip("NOT TESTED, nothing can be locked in here")
        yield request.param, stack.enter_context(Nginx(tmp_path_factory.mktemp("nginx"), pki.leaf("site.test")))


class DyingRoom(Room):
    """In one of the modes, with a site that is allowed."""

    def __init__(self, directory, mode, origin, pki):
        super().__init__(directory, policy({"id": "site", "hosts": ["site.test"]}, pins={"site.test": origin.tls_pin}, trust=[pki.ca_pem]))
        self.mode = mode
        self.program = binary("cage")

    def argv(self, *command, options=()):
        argv = super().argv(*command, options=["--mode", self.mode, *options])
        return [self.program, *argv[1:]]

    def start(self, script, **more):
        """Runs until the script has said "up"."""
        running = Running(self, "sh", "-c", script, **more)
        running.out.wait("up", 60)
        return running


@pytest.fixture
def room(place, tmp_path, pki):
    room = DyingRoom(tmp_path, *place, pki)
    yield room
    room.check_logs()


def has_pending(pid, number):
    """Has it a signal that it did not take yet?"""
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        masks = [int(line.split()[1], 16) for line in f if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


# ---- while the command runs


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_t38_proxy_ends(room, place, number):
    """Of itself, or killed: nothing goes out, by whatever way, and the command's own exit code counts."""
    fetch = "curl -sS -m 20 https://site.test/after-death; echo curl $?; "
    running = room.start("curl -sS https://site.test/hello.txt; " + WAITS + fetch + "curl -sS -m 20 --noproxy '*' --resolve site.test:443:127.0.0.1 "
                         "https://site.test/after-death; echo curl $?; exit 5")
    os.kill(running.child("cage-proxy"), number)
    how = "was killed by signal 9" if number == signal.SIGKILL else "ended with 0"
    running.err.wait("cage-proxy %s: nothing gets out any more" % how, 30)
    running.tell("go")
    assert running.end() == 5
    assert running.out.text().split("\n") == ["hello from the origin", "up", "curl 7", "curl 7"], running.err.text()
    assert not place[1].hits("/after-death")
    assert "cage: 1 allowed, 0 blocked" in running.err.text()


def processor_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return sum(int(x) for x in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def test_t38_proxy_killed_with_children_that_are_stopped(room):
    """They still have the pipe on which all of them speak: nobody waits for them, and signals are still passed on."""
    running = room.start("trap 'echo asked; exit 6' TERM; curl -sS https://site.test/hello.txt; echo up; while :; do echo tick; sleep 0.1; done")
    proxy = running.child("cage-proxy")
    stopped = children(proxy)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        os.kill(proxy, signal.SIGKILL)
        running.err.wait("cage-proxy was killed by signal 9: nothing gets out any more", 30)
        before, ticks = processor_seconds(running.process.pid), running.out.text().count("tick")
        wait_until(lambda: running.out.text().count("tick") >= ticks + 10, 30, "the command does not go on")  # at least a second
        assert processor_seconds(running.process.pid) - before < 0.5
        running.process.send_signal(signal.SIGTERM)
        running.out.wait("asked", 30)
    finally:
        for pid in filter(is_alive, stopped):
            os.kill(pid, signal.SIGKILL)
    assert running.end() == 6


OPEN = """import socket
s = socket.create_connection(("127.0.0.1", 8080), 60)
s.sendall(b"CONNECT site.test:443 HTTP/1.1\\r\\nHost: site.test:443\\r\\n\\r\\n")
print(s.recv(12).decode(), flush=True)
print("up", flush=True)
try:
    rest = s.recv(65536).partition(b"\\r\\n\\r\\n")[2]
    while not rest:
        rest = s.recv(65536)
        if not rest:
            break
    print("closed" if not rest else rest)
except ConnectionResetError:
    print("closed")
"""


def test_t38_open_connections_end_with_the_proxy(room):
    running = Running(room, "/usr/bin/python3", "-c", OPEN)
    running.out.wait("up", 60)
    os.kill(running.child("cage-proxy"), signal.SIGKILL)
    assert running.end() == 0
    assert running.out.text().split("\n") == ["HTTP/1.1 200", "up", "closed"], running.err.text()


SQUAT = """import errno, socket
for port in (8080, 443, 80):
    s = socket.socket()
    print(port, errno.errorcode.get(s.connect_ex(("127.0.0.1", port))))
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            s.bind(("127.0.0.1", port))
            s.listen()
            print("taken")
        except OSError as e:
            print(errno.errorcode[e.errno])
"""


def test_t38_ports_of_a_dead_proxy_stay_taken(room):
    """Ports below 1024 are not an ordinary user's in a network that is shared."""
    running = Running(room, "sh", "-c", WAITS + '/usr/bin/python3 -c "$SCRIPT"', options=["--env", "SCRIPT=" + SQUAT])
    running.out.wait("up", 60)
    os.kill(running.child("cage-proxy"), signal.SIGKILL)
    running.err.wait("nothing gets out any more", 30)
    running.tell("go")
    assert running.end() == 0
    told = running.out.text().split("\n")[1:]
    assert [x for x in told if x[0].isdigit()] == ["8080 ECONNREFUSED", "443 ECONNREFUSED", "80 ECONNREFUSED"], running.err.text()
    assert set(x for x in told if not x[0].isdigit()) <= {"EADDRINUSE", "EACCES"}


ASK = """import socket, struct
question = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + b"\\x04site\\x04test\\0" + struct.pack("!2H", 1, 1)
try:
    s = socket.create_connection(("127.0.0.1", 53), 60)
    s.sendall(struct.pack("!H", len(question)) + question)
    print("tcp", s.recv(6)[5] & 15)
except ConnectionRefusedError:
    print("tcp refused")
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(60)
try:
    u.sendto(question, ("127.0.0.1", 53))
    print("udp", u.recv(512)[3] & 15)
except BrokenPipeError:
    print("udp can't be sent")
"""


def test_t38_dns_killed(room, place):
    """Names that the proxy is asked for are another matter."""
    running = Running(room, "sh", "-c", WAITS + '/usr/bin/python3 -c "$SCRIPT"; curl -sS https://site.test/hello.txt', options=["--env", "SCRIPT=" + ASK])
    running.out.wait("up", 60)
    os.kill(running.child("cage-dns"), signal.SIGKILL)
    running.err.wait("cage-dns was killed by signal 9: no name is answered any more", 30)
    running.tell("go")
    assert running.end() == 0
    udp = "udp 5" if place[0] == "netns" else "udp can't be sent"
    assert running.out.text().split("\n")[1:] == ["tcp refused", udp, "hello from the origin"], running.err.text()


def test_t38_gate_killed(room):
    running = room.start("echo up; exec sleep 1000")
    os.kill(running.child("cage-gate"), signal.SIGKILL)
    assert running.end() == 128 + signal.SIGKILL
    assert "cage: cage-gate was killed by signal 9, and all in the room with it" in running.err.text()


@pytest.mark.parametrize("interrupts", [3, 2])
def test_t38_gate_that_does_not_obey(room, interrupts):
    """It is stopped, and hears nothing: the third Ctrl-C kills it, or its time."""
    running = room.start("trap '' INT; echo up; while :; do sleep 0.1; done")
    gate = running.child("cage-gate")
    os.kill(gate, signal.SIGSTOP)
    for _ in range(interrupts):
        running.process.send_signal(signal.SIGINT)
        wait_until(lambda: not has_pending(running.process.pid, signal.SIGINT), 10, "cage run does not take signals")
    before = time.monotonic()
    assert running.end() == 128 + signal.SIGKILL
    assert "cage: cage-gate was killed by signal 9, and all in the room with it" in running.err.text()
    assert (time.monotonic() - before > 10) == (interrupts == 2)


def test_t38_first_process_of_the_room_killed(room, place):
    """Which only somebody outside can do. Without namespaces it is the command itself, and that one's end is nobody else's matter."""
    running = room.start("echo up; exec sleep 1000")
    os.kill(children(running.child("cage-gate"))[0], signal.SIGKILL)
    assert running.end() == 128 + signal.SIGKILL
    assert ("cage-gate: the room was killed by signal 9" in running.err.text()) == (place[0] == "netns")


def test_t38_cage_killed(room):
    """A command that does not want to end does so too."""
    running = room.start("trap '' TERM HUP INT; echo up; while :; do sleep 1; done")
    running.process.kill()
    assert running.end() == -signal.SIGKILL


# ---- at the start


@pytest.mark.parametrize("name", ["cage-gate", "cage-proxy", "cage-dns"])
def test_t38_killed_as_soon_as_it_is_there(room, name):
    """Before or after the command has begun; what it does tells which."""
    running = Running(room, "sh", "-c", "echo ran; curl -sS -m 20 https://a.denied.test/; exit 5")

    def find():
        found = [p for p in children(running.process.pid) if command_line(p)[0].rsplit("/", 1)[-1] == name]
        return found[0] if found else None

    os.kill(wait_until(find, 30, "no %s" % name), signal.SIGKILL)
    code = running.end()
    assert "%s was killed by signal 9" % name in running.err.text()
    ran = running.out.text().startswith("ran")
    assert code == (5 if ran else 1) or (name == "cage-gate" and code == 128 + signal.SIGKILL)


@pytest.fixture
def with_program(room, tmp_path):
    """Puts a script in the place of one of the programs."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in PROGRAMS:
        shutil.copy(binary(name), place / name)
    room.program = str(place / "cage")

    def put(name, script):
        (place / name).unlink()
        if script:
            (place / name).write_text("#!/bin/sh\n" + script)
            (place / name).chmod(0o755)

    return put


@pytest.mark.parametrize("name", ["cage-proxy", "cage-dns"])
@pytest.mark.parametrize("script, code, how", [("kill -9 $$", 1, "was killed by signal 9"), ("exit 0", 1, "ended with 0"), ("exit 2", 2, "ended with 2"),
                                               ("exit 3", 1, "ended with 3"), (None, 1, "ended with 1")])
def test_t38_helper_that_does_not_start(room, with_program, name, script, code, how):
    with_program(name, script)
    done = room.sh("echo ran")
    assert (done.returncode, done.stdout) == (code, "")
    assert "cage: %s %s" % (name, how) in done.stderr


@pytest.mark.parametrize("script, code", [("kill -9 $$", 1), ("exit 0", 1), ("exit 78", 78), (None, 1)])
def test_t38_gate_that_does_not_start(room, with_program, script, code):
    with_program("cage-gate", script)
    done = room.sh("echo ran")
    assert (done.returncode, done.stdout) == (code, "")
    assert code == 78 or "cage-gate" in done.stderr


# In a network of the room's own the cgroup is there before its sockets are, and in one that is shared it comes with the command.
TELLS_GATE = "for p in $(cat /proc/$PPID/task/$PPID/children); do case $(tr '\\0' ' ' < /proc/$p/cmdline) in cage-gate*) echo $p > %s;; esac; done; exit 1"


def test_t38_no_cgroup_is_left_when_a_helper_does_not_start(room, with_program, tmp_path):
    with_program("cage-proxy", TELLS_GATE % (tmp_path / "gate"))
    done = room.sh("echo ran", options=["--limit", "pids=61,mem=900M"])
    gate = (tmp_path / "gate").read_text().strip()
    assert (done.returncode, done.stdout) == (1, "")
    assert [line for line in done.stderr.split("\n") if "no cgroup" not in line] == ["cage: cage-proxy ended with 1", ""]
    assert not glob.glob("/sys/fs/cgroup/**/cage-" + gate, recursive=True)


GATE_OF_PARENT = "for p in $(cat /proc/$PPID/task/$PPID/children); do case $(tr '\\0' ' ' < /proc/$p/cmdline) in cage-gate*) kill -9 $p;; esac; done; "


def test_t38_gate_killed_while_the_others_start(room, with_program):
    with_program("cage-proxy", GATE_OF_PARENT + "exec sleep 1000")
    running = Running(room, "sh", "-c", "echo ran")
    pids = tree(running.process.pid)
    assert running.end() == 1
    assert running.out.text() == "" and "cage: cage-gate was killed by signal 9" in running.err.text()
    wait_until(lambda: not any(is_alive(p) for p in pids), 10, "programs outlive cage run")


def test_t38_proxy_that_is_ready_and_dies(room, with_program):
    """The command may have begun by then: then it is refused."""
    assert room.sh("true").returncode == 0  # makes the CA
    with_program("cage-proxy", "echo 'cage-proxy: ready' >&2; kill -9 $$")
    done = room.sh("curl -sS -m 20 https://site.test/; echo curl $?")
    assert "cage-proxy was killed by signal 9" in done.stderr
    assert (done.returncode, done.stdout) in ((1, ""), (0, "curl 7\n"))
