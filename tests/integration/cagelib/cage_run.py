"""cage run as a process: a command in its room, with a policy, a log and a CA of the test's own."""
import json
import os
import pty
import select
import signal
import subprocess
import time

from .log import Log, validate
from .proxy import SANITIZER, Stderr, binary, bound, is_alive, wait_until

SECONDS = 60


# A network with nobody else on its loopback, which mode seccomp shares with whom it finds there.
ALONE = ["unshare", "--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]


class Room:
    """What is needed to run commands; each run has the same CA and adds to the same log."""

    def __init__(self, directory, rules):
        self.dir = str(directory)
        self.before = []  # words of a program that starts cage run
        self.options = []  # of every run
        self.policy_path = os.path.join(self.dir, "policy.yaml")
        self.ca_dir = os.path.join(self.dir, "ca")
        self.log = Log(os.path.join(self.dir, "log.jsonl"))
        self.dns_log = Log(self.log.path + ".dns")
        self.policy_text = rules if isinstance(rules, str) else json.dumps(rules, indent=1)
        with open(self.policy_path, "w", encoding="utf-8") as f:
            f.write(self.policy_text)

    def argv(self, *command, options=()):
        return [*self.before, binary("cage"), "run", "--policy", self.policy_path, "--ca-dir", self.ca_dir, "--log", self.log.path, *self.options, *options, "--",
                *command]

    def run(self, *command, options=(), env=None, **more):
        """Runs it to its end; its output is text."""
        if "input" not in more:
            more["stdin"] = subprocess.DEVNULL
        done = subprocess.run(self.argv(*command, options=options), env={**os.environ, **(env or {})}, capture_output=True, text=True,
                              timeout=SECONDS, **more)
        assert not SANITIZER.search(done.stderr), done.stderr
        return done

    def sh(self, script, **more):
        return self.run("sh", "-c", script, **more)

    def check_logs(self):
        for log in (self.log, self.dns_log):
            validate(log.raw_lines())


class Running:
    """One that goes on while the test does something to it. Its stdin is a pipe: what it waits for can be written."""

    def __init__(self, room, *command, options=(), env=None):
        self.process = subprocess.Popen(bound("KILL", room.argv(*command, options=options)), env={**os.environ, **(env or {})},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.out = Stderr(self.process.stdout)
        self.err = Stderr(self.process.stderr)

    def child(self, name):
        """The pid of cage-proxy, cage-dns or cage-gate."""
        for pid in children(self.process.pid):
            if command_line(pid)[0].rsplit("/", 1)[-1] == name:
                return pid
        raise AssertionError("no %s among %r" % (name, [command_line(p) for p in children(self.process.pid)]))

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def end(self, seconds=30):
        """The exit code, when it ends by itself; all of its programs are gone then."""
        pids = tree(self.process.pid)
        try:
            code = self.process.wait(seconds)
        finally:
            self.process.kill()
        for pipe in (self.out, self.err):
            pipe.wait_end(5)
        wait_until(lambda: not any(is_alive(p) for p in pids), 10, "programs outlive cage run")
        assert not SANITIZER.search(self.err.text()), self.err.text()
        return code


def children(pid):
    out = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task), encoding="ascii") as f:
            out += [int(x) for x in f.read().split()]
    return out


def tree(pid):
    """All that it has started, directly or not."""
    found = []
    for child in children(pid):
        try:
            found += [child, *tree(child)]
        except OSError:
            pass  # it has just ended
    return found


def command_line(pid):
    """Its words; none of one that has just ended."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return [""]


class Terminal:
    """A terminal with a cage run in it."""

    def __init__(self, argv):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execv(argv[0], argv)
            finally:
                os._exit(126)
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, text, seconds=30):
        """Reads until the text has been seen, and forgets everything up to it."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0 and self._read(left), "never saw %r in %r" % (text, self.seen)
        before, _, self.seen = self.seen.partition(text)
        return before

    def _read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def ask(self, line, answer, seconds=30):
        """Types the line until the answer is seen: a shell that is about to show its prompt may drop what is typed."""
        end = time.monotonic() + seconds
        while answer not in self.seen:
            assert time.monotonic() < end, "never saw %r in %r" % (answer, self.seen)
            self.type(line)
            self._read_for(answer, 2)
        self.wait(answer)

    def _read_for(self, text, seconds):
        end = time.monotonic() + seconds
        while text not in self.seen and self._read(max(0, end - time.monotonic())):
            pass

    def end(self, seconds=60):
        """The exit code, and what was still written."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._read(end - time.monotonic()):
            pass
        try:
            return os.waitstatus_to_exitcode(self._wait(end)), self.seen
        finally:
            os.close(self.fd)

    def _wait(self, end):
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        while pid == 0 and time.monotonic() < end:
            time.sleep(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            self.kill()
            os.waitpid(self.pid, 0)
            raise AssertionError("does not end, after %r" % self.seen)
        return status

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
