"""cage-keeper with this test in the place of the service: a directory with a spec, and frames over its socket."""
import json
import os
import socket
import subprocess

from .inside import HEADER, Jobs
from .log import Log
from .proxy import SANITIZER, binary, is_alive, policy as no_rules, wait_until
from .cage_run import tree

SECONDS = 60


def read_result(directory):
    path = os.path.join(str(directory), "result")
    if not os.path.exists(path):
        return None
    with open(path, encoding="ascii") as f:
        return dict(line.rstrip("\n").split("=", 1) for line in f)


class Keeper(Jobs):
    """One sandbox. Use as a context manager: whatever is left of it at the end is a failure."""

    def __init__(self, directory, command=(), policy=None, disk="64M", files=None, options=(), words=(), env=None, ca_dir=None):
        self.dir = str(directory)
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        self.log = Log(os.path.join(self.dir, "log.jsonl"))
        self.env = {**os.environ, **(env or {})}
        self.aside = []
        self.sock = None
        self.process = None
        self.pids = []
        self.ca_dir = ca_dir or os.path.join(self.dir, "ca")
        self.set_policy(policy or no_rules())
        for path, data in (files or {}).items():
            whole = os.path.join(self.dir, "files", path)
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "wb") as f:
                f.write(data)
        run = ["--policy", os.path.join(self.dir, "policy.yaml"), "--log", self.log.path, "--ca-dir", self.ca_dir, "--sandbox", "box",
               "--tmpfs", "/workspace:" + disk, *options]
        spec = ["id=box", "output=1000000", *("run=" + w for w in run), *("cmd=" + w for w in command), *words]
        with open(os.path.join(self.dir, "spec"), "wb") as f:
            f.write(b"".join(os.fsencode(w) + b"\0" for w in spec))

    def set_policy(self, policy):
        path = os.path.join(self.dir, "policy.yaml")
        with open(path + ".part", "w", encoding="utf-8") as f:
            f.write(policy if isinstance(policy, str) else json.dumps(policy, indent=1))
        os.rename(path + ".part", path)

    # ---- the process

    def start(self):
        with open(os.path.join(self.dir, "keeper.err"), "ab") as err:
            self.process = subprocess.Popen([binary("cage-keeper"), self.dir], env=self.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                                            start_new_session=True)
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        try:
            if self.process.poll() is None:
                self.process.terminate()
                self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self.process.wait(10)
            if self.sock:
                self.sock.close()
        self.check_gone()
        assert not SANITIZER.search(self.text("keeper.err") + self.text("said")), self.text("keeper.err") + self.text("said")

    def text(self, name):
        path = os.path.join(self.dir, name)
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def rundir(self):
        wait_until(lambda: self.text("rundir"), SECONDS, "no directory of the run")
        return self.text("rundir")

    def remember(self):
        """All processes that there are now: check_gone() looks for them."""
        self.pids += tree(self.process.pid)
        return self.pids

    def check_gone(self):
        wait_until(lambda: not any(is_alive(p) for p in self.pids), 30, "processes outlive the keeper")
        names = {"cage-%d" % p for p in self.pids}
        wait_until(lambda: not any(names & set(dirs) for _, dirs, _ in os.walk("/sys/fs/cgroup")), 30, "a cgroup outlives the keeper")

    def end(self, seconds=SECONDS):
        """Waits until it has ended by itself: its result."""
        try:
            assert self.process.wait(seconds) == 0, self.text("keeper.err") + self.text("said")
        except subprocess.TimeoutExpired as late:
            raise AssertionError("it does not end: " + self.text("keeper.err") + self.text("said")) from late
        return read_result(self.dir)

    def output(self):
        """What the command has written: stdout and stderr."""
        with open(os.path.join(self.dir, "output"), "rb") as f:
            data = f.read()
        streams = {b"o": b"", b"e": b""}
        while data:
            kind, ident, n = HEADER.unpack(data[:8])
            assert ident == 0 and len(data) >= 8 + n
            streams[kind] += data[8:8 + n]
            data = data[8 + n:]
        return streams[b"o"], streams[b"e"]

    # ---- its socket

    def connect(self, ready=True):
        path = os.path.join(self.dir, "socket")

        def connected():
            self.sock = socket.socket(socket.AF_UNIX)
            try:
                self.sock.connect(path)
            except OSError:
                self.sock.close()
                assert self.process.poll() is None, self.text("keeper.err") + self.text("said") + str(read_result(self.dir))
                return False
            return True

        wait_until(connected, SECONDS, "nobody listens")
        self.sock.settimeout(SECONDS)
        self.aside = []
        if ready:
            assert self.read() == (b"r", 0, b""), self.text("said")
        return self

    def send(self, kind, ident, payload=b""):
        self.sock.sendall(HEADER.pack(kind, ident, len(payload)) + payload)

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.sock.recv(n - len(data))
            if not piece:
                raise EOFError("%r; %s; %s" % (data, self.text("said"), read_result(self.dir)))
            data += piece
        return data

    def read(self):
        kind, ident, n = HEADER.unpack(self._exactly(HEADER.size))
        return kind, ident, self._exactly(n)

    def fetch(self, ident=1, **what):
        self.send(b"F", ident, json.dumps(what).encode())
        out, _, how = self.until_done(ident)
        assert how == "exit 0", how
        return json.loads(out)

    def tool(self, decision, reason, tool, detail, ident=1):
        self.send(b"T", ident, b"\0".join(w.encode() for w in (decision, reason, tool, detail)))
        return self.until_done(ident)[2]
