"""The terminal, the files and the job control of a command: as if there were no cage, and no way to what is behind them."""
import fcntl
import os
import shlex
import shutil
import signal
import struct
import subprocess
import termios

import pytest
from cagelib.cage_run import ALONE, Room, Running, Terminal, children, command_line, tree
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


def test_the_end_of_its_time_is_told_there(room):
    code, told = Terminal(room.argv("sleep", "1000", options=["--limit", "time=1s"])).end()
    assert code == 137 and "cage-gate: the time of the agent is over" in told and "cage: 0 allowed" in told


def test_a_start_that_fails_leaves_a_terminal_in_order(room):
    """Lines begin at its left."""
    code, told = Terminal(room.argv("true", options=["--log", "/proc/no-such"])).end()
    assert code == 1 and ": log /proc/no-such" in told and "\r\ncage: cage-" in told
    assert "\n" not in told.replace("\r\n", ""), repr(told)


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


@pytest.mark.parametrize("shell", [["sh"], ["dash", "-i"], ["bash", "--norc"]], ids=lambda s: s[0])
def test_a_shell_ends_as_it_is_told(terminal, shell):
    """It makes a group of its own, and gives the terminal back at its end to the one that it began with."""
    t = terminal(*shell)
    t.type("echo u\"\"p; exit 4\r")
    t.wait("up")
    code, rest = t.end()
    assert code == 4 and "process group" not in rest, rest


def test_what_keeps_the_group_is_nobodys_child(terminal):
    """A command that waits for all of its children does not wait for what it has not made."""
    t = terminal("python3", "-c", "import os\ntry: os.wait()\nexcept ChildProcessError: print('no' + 'body')")
    t.wait("nobody")
    assert t.end()[0] == 0


def raw(t):
    """Waits until cage run reads what is typed, which is before the command begins."""
    wait_until(lambda: not termios.tcgetattr(t.fd)[3] & termios.ISIG, 20, "it does not take the terminal")
    return t


@pytest.mark.parametrize("run", range(5))
def test_ctrl_c_before_the_command(terminal, run):
    t = raw(terminal("sh", "-c", "sleep 1000"))
    t.type("\x03")
    assert t.end()[0] == 128 + signal.SIGINT


def test_what_is_typed_before_the_command_is_for_it(terminal):
    t = raw(terminal("sh", "-c", "read x; echo got $x; exit 3"))
    t.type("words\r")
    t.wait("got words")
    assert t.end()[0] == 3


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
    t = around(room, '"$@" | cat', "sh", "-c", "echo up >&2; read x; echo got $x; stty -echo; echo silent >&2; read y; stty echo; echo $y | tr a-z A-Z; echo end >&2")
    t.wait("up")
    t.type("words\r")
    seen = t.wait("silent")
    t.type("password\r")
    code, rest = t.end()
    seen += rest  # what was written goes another way than what was typed, so either may come first
    assert code == 0 and "end" in rest
    assert seen.count("words") == 2 and seen.count("got words") == 1  # as typed, and as written
    assert seen.count("PASSWORD") == 1 and "password" not in seen


FULL = 4095  # bytes that a terminal keeps for who reads it


def unread(fd):
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, struct.pack("i", 0)))[0]


def test_a_terminal_that_does_not_wait(room):
    """Somebody has left it so: all of the output arrives, when there is room for it."""
    script = "import os, sys; os.set_blocking(1, False); os.execv(sys.argv[1], sys.argv[1:])"
    t = Terminal(["/usr/bin/python3", "-c", script, *room.argv("sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 3", options=["--quiet"])])
    wait_until(lambda: unread(t.fd) >= FULL, 60, "the terminal is never full")
    t.wait("line 19999", 60)
    assert t.end()[0] == 3


def test_in_the_background_it_leaves_the_terminal_alone(room):
    t = Shell("/bin/bash", room, "sh", "-c", "trap 'exit 0' USR1; echo st''arted >&2; while :; do sleep 0.1; done", how="> /dev/null &")
    t.type("echo still he''re\r")
    t.wait("still here")
    t.type("kill -USR1 %1; wait; jobs; echo en''ded\r")
    assert "Stopped" not in t.wait("ended")
    t.leave()


# ---- job control


class Shell(Terminal):
    """An interactive shell that has started cage run as a job. What is typed before the job has the terminal is the shell's, and what
    is typed before it is stopped is the job's."""

    def __init__(self, program, room, *command, how=""):
        super().__init__([program, *(["--norc"] if program.endswith("bash") else []), "-i"])
        self.type("PS1='pro''mpt> '\r")
        self.wait("prompt> ")
        self.type(shlex.join(room.argv(*command, options=["--quiet"])) + " %s\r" % how)
        self.wait("started")

    def command(self):
        """The processes that are not of cage."""
        return [pid for pid in tree(self.pid) if not comm(pid).startswith("cage")]

    def has(self, program):
        """Does the job have the terminal, and its command run that program? A shell that is just starting one can't be stopped."""
        is_raw = not termios.tcgetattr(self.fd)[3] & termios.ICANON
        return is_raw and any(comm(p) == program and state(p) in "SR" for p in self.command()) and not any(state(p) == "T" for p in tree(self.pid))

    def suspend(self, program):
        """Ctrl-Z, while its command runs that program."""
        wait_until(lambda: self.has(program), 30, "the job does not run %s" % program)
        self.type("\x1a")
        self.wait("topped")
        self.wait("prompt> ")

    def resume(self, program):
        self.type("fg\r")
        wait_until(lambda: self.has(program), 30, "the job does not go on")

    def do(self, line):
        """What came of it."""
        self.type(line + "\r")
        return self.wait("prompt> ")

    def leave(self):
        self.type("exit\r")
        assert self.end()[0] == 0


def state(pid):
    """The letter of /proc, "X" of one that is gone."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def comm(pid):
    try:
        with open("/proc/%d/comm" % pid, encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


@pytest.mark.parametrize("program", ["/bin/bash", "/bin/dash"])
def test_ctrl_z_stops_and_fg_continues(room, program):
    t = Shell(program, room, "sh", "-c", "trap 'echo we\"\"nt; exit 8' INT; echo st''arted; sleep 100; echo lost")
    t.suspend("sleep")
    settings = t.do("stty -a")
    assert " icanon" in settings and " echo" in settings  # the shell has its terminal back
    assert "topped" in t.do("jobs")
    t.resume("sleep")
    t.suspend("sleep")
    t.resume("sleep")
    t.type("\x03")
    t.wait("went")
    t.wait("prompt> ")
    assert "code 8" in t.do("echo code $?")
    t.leave()


def test_stopped_means_all_of_the_group(room):
    """Nothing of the command runs meanwhile, and all of it goes on with bg."""
    t = Shell("/bin/bash", room, "bash", "-c", "echo st''arted; (while :; do echo ti''ck; sleep 0.1; done) & wait")
    t.wait("tick")
    t.suspend("bash")
    wait_until(lambda: {state(p) for p in t.command()} == {"T"}, 10, "some of the command is not stopped")
    t.do("echo what was wri''tten")
    assert "tick" not in t.do("echo and is re''ad")
    t.type("bg\r")
    t.wait("tick")
    t.do("kill -9 %1; wait")
    t.type("exit\r")
    t.end()


def test_a_command_that_stops_itself(room):
    """As an editor does that has the terminal in a mode of its own."""
    t = Shell("/bin/bash", room, "bash", "-c", "stty raw -echo; echo st''arted; head -c 1 > /dev/null; stty sane; kill -TSTP 0; echo ba''ck; read y; echo got $y")
    t.suspend("head")
    t.type("fg\r")
    t.wait("back")
    t.type("words\r")
    t.wait("got words")
    t.wait("prompt> ")
    t.leave()


def test_ctrl_c_of_a_shell_is_its_own_twice(terminal):
    t = terminal("bash", "--norc", "-i")
    for i in range(2):
        t.ask("echo re\"\"ady%d\r" % i, "ready%d" % i)
        t.ask("\x03", "^C")  # before its prompt it says nothing of it
    t.ask("echo ali\"\"ve\r", "alive")
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
    t.wait("^Z")  # the terminal has taken it, and dropped what was typed before
    t.type("words\r")
    t.wait("got words")
    assert t.end()[0] == 0


def test_t36_a_command_stops_nobody_without_a_terminal(room):
    running = Running(room, "sh", "-c", "(until grep -q '^State:.T' /proc/$$/status; do sleep 0.01; done; kill -CONT $$) & kill -STOP $$; echo on")
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


def position(pid):
    """How far its stdin was read."""
    with open("/proc/%d/fdinfo/0" % pid, encoding="ascii") as f:
        return [int(line.split()[1]) for line in f if line.startswith("pos:")][0]


def test_a_file_that_nobody_reads(room, tmp_path):
    """So much of it as a pipe holds is read, and nobody waits for the rest."""
    (tmp_path / "in").write_bytes(b"x" * 1000000)
    script = "exec < /dev/null; trap 'exit 4' USR1; echo up; while :; do sleep 0.1; done"
    with open(tmp_path / "in", "rb") as stdin, subprocess.Popen(room.argv("sh", "-c", script), stdin=stdin, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "up\n"
            wait_until(lambda: position(process.pid) >= 65536, 10, "the file is not read")
            process.send_signal(signal.SIGUSR1)
            assert process.wait(30) == 4 and os.lseek(stdin.fileno(), 0, os.SEEK_CUR) < 1000000
        finally:
            process.kill()


def test_t36_files_are_not_opened_anew(room, tmp_path):
    """What was given to be read is not written, and what was given to be written is not read."""
    (tmp_path / "in").write_text("mine\n")
    (tmp_path / "out").write_text("what was there\n")
    for name in ("in", "out"):
        os.chmod(tmp_path / name, 0o666)
    script = "dd if=/proc/self/fd/1 iflag=nonblock count=1; (echo x > /proc/self/fd/0); (echo y 1<> /proc/self/fd/0); (: > /proc/self/fd/1); readlink /proc/self/fd/0"
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
