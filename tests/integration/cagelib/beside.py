"""A client beside the one that a test is about: it asks again and again on a connection of its own, and must not notice."""
import threading
import time

from .proxy import wait_until

PATIENCE = 5  # seconds for one answer: generous, since the machine may be busy
PAUSE = 0.01  # between two requests, to leave the machine to the others


class Beside:
    """Use as a context manager; leaving it asserts that every answer was a 200 and came in time."""

    def __init__(self, cage, url):
        self.url = url
        self.host = url.split("/")[2]
        self.wire = cage.connect()
        self.wire.sock.settimeout(PATIENCE)
        self.answers = 0
        self.slowest = 0.0
        self.trouble = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _ask(self):
        began = time.monotonic()
        answer = self.wire.exchange("GET", self.url, [("Host", self.host)])
        self.slowest = max(self.slowest, time.monotonic() - began)
        if answer.status != 200 or self.slowest > PATIENCE:
            raise AssertionError("%r after %.1f s" % (answer, self.slowest))
        self.answers += 1

    def _run(self):
        try:
            while not self._stop.wait(PAUSE):
                self._ask()
        except Exception as e:  # told to the test when it looks
            self.trouble = e

    def assert_answers(self, more=3):
        """Waits for that many answers from now on."""
        wanted = self.answers + more
        wait_until(lambda: self.trouble or self.answers >= wanted, 60, "the client beside gets no answers")
        assert self.trouble is None, self.trouble

    def __enter__(self):
        self._thread.start()
        self.assert_answers(1)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.assert_answers()
        self._stop.set()
        self._thread.join(PATIENCE + 5)
        assert kind or not self._thread.is_alive()
