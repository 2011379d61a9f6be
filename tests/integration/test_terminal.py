"""The terminal, the files and the job control of a command: as if there were no cage, and no way to what is behind them."""
import fcntl
import os
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest
from cagelib.cage_run import ALONE, Room, Running, Terminal, children, command_line
from cagelib.proxy import binary, wait_until

POLICY = "version: 1\nname: terminal\n"


@pytest.fixture(params=["netns", "seccomp"])
def room(request, tmp_path):
    room = Room(tmp_path, POLICY)
    room.options = ["--mode", request.param]
    if request.param == "seccomp":
        if os.geteuid() != 0:
            pytest.skip("NOT TESTED, cage run is refused there to all but root")
        room.before = [shutil.which(ALONE[0]), *ALONE[1:]]
    if subprocess.run([*ALONE, binary("cage-gate"), "--probe", *room.options] if room.before else [binary("cage-gate"), "--probe", *room.options],
                      capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, nothing can be locked in here")
    yield room
    room.check_logs()


# ---- terminals


@pytest.fixture
def terminal(room):
    opened = []

    def start(*command):
        opened.append(Terminal(room.argv(*command)))
        return opened[-1]

    return start


def test_terminal_of_its_own(terminal):
    t = terminal("sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty -a > /dev/tty && echo asked; read x; echo got $x; exit 9")
    t.wait("asked")
    t.type("words\r")
    t.wait("got words")
    code, rest = t.end()
    assert code == 9 and "0 allowed" in rest


def test_terminal_follows_the_size(terminal):
    t = terminal("bash", "--norc", "-c", "trap 'stty size' WINCH; echo up; while :; do read -t 0.1 x && exit; done")
    t.wait("up")
    fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    t.wait("33 77")
    t.type("\r")
    assert t.end()[0] == 0


def test_job_control_of_a_shell(terminal):
    t = terminal("bash", "--norc", "-i")
    t.type("sh -c 'echo sta\"\"rted; exec sleep 1000'\r")
    t.wait("started")
    t.type("\x1a")
    t.wait("Stopped")
    t.type("kill -9 %1; sh -c 'echo se\"\"cond; exec sleep 1000'\r")
    t.wait("second")
    t.type("\x03")
    t.type("exit 4\r")
    assert t.end()[0] == 4


def test_ctrl_c_asks_then_kills(terminal):
    t = terminal("bash", "-c", "trap 'echo asked' INT; echo up; while :; do sleep 0.1; done")
    t.wait("up")
    t.type("\x03")
    t.wait("asked")
    t.type("\x03")
    assert t.end()[0] == 128 + signal.SIGKILL


def test_our_terminal_is_as_before(room):
    """A shell around it looks before and after."""
    t = Terminal(["/bin/sh", "-c", 'stty -g; "$@"; stty -g; echo end', "sh", *room.argv("sh", "-c", "stty raw -echo; kill -9 $$", options=["--quiet"])])
    settings = t.wait("end").split()
    assert len(settings) == 2 and settings[0] == settings[1]
    assert t.end()[0] == 0


def around(room, line, *command, options=("--quiet",)):
    """A terminal with a shell in it that runs the line, in which "$@" is cage run."""
    return Terminal(["/bin/sh", "-c", line, "sh", *room.argv(*command, options=options)])


def test_typed_text_is_seen_once_beside_a_pipe(room):
    """Output that goes elsewhere does not make the terminal another one: it is the command's to echo what is typed."""
    t = around(room, '"$@" | cat', "sh", "-c", "echo up >&2; read x; echo got $x; stty -echo; echo silent >&2; read y; stty echo; echo $y | tr a-z A-Z")
    t.wait("up")
    t.type("words\r")
    assert t.wait("silent").count("words") == 2  # as typed, and as written
    t.type("password\r")
    seen = t.wait("PASSWORD")
    assert "password" not in seen
    assert t.end()[0] == 0


def test_a_terminal_that_does_not_wait(room):
    """Somebody has left it so: all of the output arrives, when there is room for it."""
    script = "import os, sys; os.set_blocking(1, False); os.execv(sys.argv[1], sys.argv[1:])"
    t = Terminal(["/usr/bin/python3", "-c", script, *room.argv("sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 3", options=["--quiet"])])
    time.sleep(1)
    t.wait("line 19999", 60)
    assert t.end()[0] == 3


def test_in_the_background_it_leaves_the_terminal_alone(room):
    t = Terminal(["/bin/bash", "--norc", "-i"])
    t.type("PS1='> '\r")
    t.type("%s > /dev/null & sleep 0.1; echo st\"\"arted\r" % shlex.join(room.argv("sh", "-c", "sleep 2; echo x", options=["--quiet"])))
    t.wait("started")
    t.type("wait; jobs; echo en\"\"ded\r")
    seen = t.wait("ended", 60)
    assert "Stopped" not in seen
    t.type("exit\r")
    assert t.end()[0] == 0


# ---- job control


class Shell(Terminal):
    """An interactive shell that starts cage run as a job. What is typed before it has the terminal back is the job's."""

    def __init__(self, program, room, *command):
        super().__init__([program, *(["--norc"] if program.endswith("bash") else []), "-i"])
        self.type("PS1='pro''mpt> '\r")
        self.wait("prompt> ")
        self.type(shlex.join(room.argv(*command, options=["--quiet"])) + "\r")

    def suspend(self):
        time.sleep(0.5)  # a shell that is just starting a program can't be stopped
        self.type("\x1a")
        self.wait("topped")
        self.wait("prompt> ")

    def do(self, line):
        """What came of it."""
        self.type(line + "\r")
        return self.wait("prompt> ")


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize("program", ["/bin/bash", "/bin/dash"])
def test_ctrl_z_stops_and_fg_continues(room, program):
    t = Shell(program, room, "sh", "-c", "echo st''arted; trap 'echo we\"\"nt; exit 8' INT; sleep 100; echo lost")
    t.wait("started")
    t.suspend()
    settings = t.do("stty -a")
    assert " icanon" in settings and " echo" in settings  # the shell has its terminal back
    assert "topped" in t.do("jobs")
    t.type("fg\r")
    t.suspend()
    t.type("fg\r")
    time.sleep(0.5)
    t.type("\x03")
    t.wait("went")
    t.wait("prompt> ")
    assert "code 8" in t.do("echo code $?")
    t.type("exit\r")
    assert t.end()[0] == 0


def test_stopped_means_all_of_the_group(room):
    """Nothing of the command runs meanwhile, and all of it goes on with bg."""
    t = Shell("/bin/bash", room, "bash", "-c", "echo st''arted; (while :; do echo ti''ck; sleep 0.1; done) & wait")
    t.wait("started")
    t.wait("tick")
    t.suspend()
    t.do("sleep 0.5")
    assert "tick" not in t.do("sleep 1")
    t.type("bg\r")
    t.wait("tick")
    t.do("kill -9 %1; wait")
    t.type("exit\r")
    t.end()


def test_a_command_that_stops_itself(room):
    """As an editor does that has the terminal in a mode of its own."""
    t = Shell("/bin/bash", room, "bash", "-c", "stty raw -echo; echo st''arted; head -c 1 > /dev/null; stty sane; kill -TSTP 0; echo ba''ck; read y; echo got $y")
    t.wait("started")
    t.suspend()
    t.type("fg\r")
    t.wait("back")
    t.type("words\r")
    t.wait("got words")
    t.wait("prompt> ")
    t.type("exit\r")
    assert t.end()[0] == 0


def test_ctrl_c_of_a_shell_is_its_own_twice(terminal):
    t = terminal("bash", "--norc", "-i")
    t.type("echo re\"\"ady\r")
    t.wait("ready")
    t.type("\x03")
    time.sleep(0.2)
    t.type("\x03")
    time.sleep(0.5)  # what was typed before a Ctrl-C is seen is dropped by every terminal
    t.type("echo ali\"\"ve\r")
    t.wait("alive")
    t.type("exit 4\r")
    assert t.end()[0] == 4


def test_where_no_byte_is_an_interrupt_none_kills(terminal):
    """A terminal says that with a NUL byte, which is a byte like others then."""
    t = terminal("sh", "-c", "stty intr undef; echo up; head -n 1 | od -An -c; echo ali''ve")
    t.wait("up")
    t.type("\0\0\r")
    t.wait("alive")
    assert t.end()[0] == 0


def test_sigtstp_without_a_terminal(room):
    """Who stops us stops the command, and continues it with us."""
    argv = room.argv("sh", "-c", "echo up; exec sleep 1000", options=["--quiet"])  # a shell that waits for vfork() would not stop
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            assert process.stdout.readline() == "up\n"
            gate = [p for p in children(process.pid) if "cage-gate" in command_line(p)[0]][0]
            command = children(gate)[0]
            command = children(command)[0] if "netns" in room.options else command
            process.send_signal(signal.SIGTSTP)
            wait_until(lambda: state(process.pid) == "T" and state(command) == "T", 10, "cage run and its command do not stop")
            process.send_signal(signal.SIGCONT)
            wait_until(lambda: state(command) in "SR", 10, "the command does not go on")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 143
        finally:
            process.kill()


def test_where_nobody_can_continue_it_nobody_stops(terminal):
    """cage run is the first process of that terminal: a stop would be for good."""
    t = terminal("sh", "-c", "echo up; read x; echo got $x")
    t.wait("up")
    t.type("\x1a")
    time.sleep(0.5)
    t.type("words\r")
    t.wait("got words")
    assert t.end()[0] == 0


def test_t36_a_command_stops_nobody_without_a_terminal(room):
    running = Running(room, "sh", "-c", "(sleep 0.5; kill -CONT $$) & kill -STOP $$; echo on")
    running.out.wait("on", 30)
    assert running.end() == 0


# ---- files


def test_files(room, tmp_path):
    """Larger than a pipe, and in their order where both are the same."""
    (tmp_path / "in").write_bytes(b"0123456789abcdef\n" * 20000)
    with open(tmp_path / "in", "rb") as stdin, open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        done = subprocess.run(room.argv("sh", "-c", "cat; echo to stderr >&2; exit 3", options=["--quiet"]), stdin=stdin, stdout=out, stderr=err, timeout=60)
    assert done.returncode == 3
    assert (tmp_path / "out").read_bytes() == (tmp_path / "in").read_bytes() and (tmp_path / "err").read_text() == "to stderr\n"
    with open(tmp_path / "both", "ab") as both:
        subprocess.run(room.argv("sh", "-c", "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done", options=["--quiet"]), stdin=subprocess.DEVNULL, stdout=both,
                       stderr=both, timeout=60)
    assert (tmp_path / "both").read_text() == "".join("out %d\nerr %d\n" % (i, i) for i in range(1, 6))


def test_a_file_that_nobody_reads(room, tmp_path):
    (tmp_path / "in").write_bytes(b"x" * 1000000)
    with open(tmp_path / "in", "rb") as stdin:
        done = subprocess.run(room.argv("sh", "-c", "exec < /dev/null; sleep 0.3; exit 4"), stdin=stdin, capture_output=True, timeout=60)
    assert done.returncode == 4


def test_t36_files_are_not_opened_anew(room, tmp_path):
    """What was given to be read is not written, and what was given to be written is not read."""
    (tmp_path / "in").write_text("mine\n")
    (tmp_path / "out").write_text("what was there\n")
    for name in ("in", "out"):
        os.chmod(tmp_path / name, 0o666)
    script = "cat /proc/self/fd/1 & sleep 0.2; kill $!; (echo x > /proc/self/fd/0); (echo y 1<> /proc/self/fd/0); (: > /proc/self/fd/1); readlink /proc/self/fd/0"
    with open(tmp_path / "in", "rb") as stdin, open(tmp_path / "out", "ab") as out:
        subprocess.run(room.argv("sh", "-c", script, options=["--quiet"]), stdin=stdin, stdout=out, stderr=out, timeout=60)
    assert (tmp_path / "in").read_text() == "mine\n"
    written = (tmp_path / "out").read_text()
    assert written.startswith("what was there\n") and written.count("what was there") == 1 and "pipe:[" in written


def test_a_file_that_can_not_be_written(room):
    with open("/dev/full", "wb") as full:
        if not os.path.exists("/dev/full"):
            pytest.skip("NOT TESTED, there is no full device")
        done = subprocess.run(room.argv("sh", "-c", "echo x || exit 5"), stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 5
