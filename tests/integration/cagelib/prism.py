"""prism as a proxy that holds both sides to an API's description: what it does not find there, it answers itself, as an error."""
import os
import socket
import subprocess

from .proxy import wait_until


class Prism:
    """In front of `url`. Use as a context manager."""

    def __init__(self, description, url, log):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.log = str(log)
        with open(self.log, "wb") as f:
            self.process = subprocess.Popen([os.environ["CAGE_PRISM"], "proxy", str(description), url, "--errors", "--port", str(self.port), "--host", "127.0.0.1"],
                                            stdin=subprocess.DEVNULL, stdout=f, stderr=f)
        self.url = "http://127.0.0.1:%d" % self.port

    def is_up(self):
        assert self.process.poll() is None, "prism has ended: " + self.text()
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def __enter__(self):
        try:
            wait_until(self.is_up, 90, "prism does not start")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
