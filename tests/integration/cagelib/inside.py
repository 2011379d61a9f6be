"""cage-inside with this test as its keeper: frames over two pipes."""
import os
import signal
import struct
import subprocess

from .proxy import binary

HEADER = struct.Struct("=cxHI")


class Jobs:
    """What can be asked for in frames. Who is one has send(), read() and the list aside, of frames of other jobs than the one that was
    waited for."""

    def until_done(self, ident):
        """What was said on stdout and stderr of a job, and how it ended."""
        out, err = b"", b""
        before, self.aside = self.aside, []
        while True:
            kind, of, payload = before.pop(0) if before else self.read()
            if of != ident:
                self.aside.append((kind, of, payload))
                continue
            if kind == b"d":
                self.aside += before
                return out, err, payload.decode()
            out += payload if kind == b"o" else b""
            err += payload if kind == b"e" else b""

    def run(self, *argv, directory="", ident=1):
        self.send(b"R", ident, b"".join(os.fsencode(word) + b"\0" for word in (directory,) + argv))
        return self.until_done(ident)

    def sh(self, script, **kwargs):
        return self.run("sh", "-c", script, **kwargs)

    def get(self, path, ident=1):
        self.send(b"G", ident, os.fsencode(path) + b"\0")
        return self.until_done(ident)

    def put(self, path, data, ident=1):
        self.send(b"P", ident, os.fsencode(path) + b"\0")
        for at in range(0, len(data), 32768):
            self.send(b"D", ident, data[at:at + 32768])
        self.send(b"E", ident)
        return self.until_done(ident)


class Inside(Jobs):
    """Use as a context manager. directory: where it starts."""

    def __init__(self, directory):
        self.takes = True  # what comes is answered with FRAME_MORE
        self.aside = []
        self.process = subprocess.Popen([binary("cage-inside")], cwd=str(directory), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        assert self.read() == (b"r", 0, b"")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.process.stdout.close()

    def send(self, kind, ident, payload=b""):
        self.raw(HEADER.pack(kind, ident, len(payload)) + payload)

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self):
        signal.alarm(20)  # of a test that would wait for ever
        head = self._exactly(HEADER.size)
        kind, ident, n = HEADER.unpack(head)
        payload = self._exactly(n)
        signal.alarm(0)
        if self.takes and kind in b"oe":
            self.send(b"M", ident, struct.pack("=I", n))
        return kind, ident, payload

    def _exactly(self, n):
        data = self.process.stdout.read(n)
        assert len(data) == n, "it has ended: %r" % data
        return data

    def list(self, path, ident=1):
        self.send(b"L", ident, os.fsencode(path) + b"\0")
        out, err, how = self.until_done(ident)
        assert err == b""
        return sorted(out.split(b"\0")[:-1]), how
