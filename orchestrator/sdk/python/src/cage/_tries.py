"""How often a call is made, and how long that may take. A call that may have been heard is made again only where that does no
harm; the time of a call is for all of its tries together."""
from __future__ import annotations

import random
import time
from typing import Any, Iterator, Optional

from ._calls import Call
from .errors import ApiError, Broken, CageError, Conflict, TimedOut, TooBusy, Unreachable

CONNECT_SECONDS = 5.0
FIRST_PAUSE = 0.1
LAST_PAUSE = 2.0
MAX_RETRY_AFTER = 5.0
CLEANUP_RETRIES = 10  # a service that is being started again is waited for, some 10 s
READY_SECONDS = 300.0


class Deadline:
    """A moment; without seconds there is none."""

    def __init__(self, seconds: Optional[float]):
        self._at = None if seconds is None else time.monotonic() + seconds

    def left(self, most: float) -> float:
        """Seconds up to it, at most so many; none left is TimedOut."""
        if self._at is None:
            return most
        seconds = self._at - time.monotonic()
        if seconds <= 0:
            raise TimedOut("it took longer than was allowed")
        return min(seconds, most)


class Tries:
    """Those of one call."""

    def __init__(self, call: Call[Any], retries: int, timeout: float, doubt: bool = False):
        self.doubt = doubt  # it may have been done, and nobody has told
        self.deadline = Deadline(timeout + call.more_seconds)
        self.quiet = timeout + call.quiet_seconds
        self._call = call
        self._retries = retries
        self._n = 0
        self._doubt_before = doubt

    def begin(self) -> None:
        """One more."""
        self._doubt_before, self.doubt = self.doubt, True

    def pause(self, error: CageError) -> float:
        """Seconds before the next; raises the error where there is none."""
        if isinstance(error, (Unreachable, ApiError)):
            self.doubt = self._doubt_before
        self._n += 1
        if self._n > self._retries or not self._may_repeat(error):
            raise error
        seconds = pause_before(self._n, getattr(error, "retry_after", None))
        if self.deadline.left(seconds) < seconds:
            raise error
        return seconds

    def _may_repeat(self, error: CageError) -> bool:
        if isinstance(error, Unreachable):
            return True
        if isinstance(error, Broken):
            return self._call.repeatable
        if isinstance(error, TooBusy):
            return error.status == 429 or (self._call.repeatable and not error.reason)
        # the one before is still under way
        return isinstance(error, Conflict) and bool(self._call.key) and self.doubt


class Patience:
    """How often a stream is asked for again; whoever gets something out of it begins to count anew."""

    def __init__(self, retries: int):
        self._retries = retries
        self._n = 0

    def reset(self) -> None:
        """Something came."""
        self._n = 0

    def pause(self, error: CageError) -> float:
        """Seconds before the next; raises the error where there is none."""
        self._n += 1
        if self._n > self._retries or not isinstance(error, (Unreachable, Broken, TooBusy)):
            raise error
        return pause_before(self._n, getattr(error, "retry_after", None))


def pause_before(n: int, retry_after: Optional[float]) -> float:
    """Twice as long each time, and not all clients at the same moment."""
    seconds = min(LAST_PAUSE, FIRST_PAUSE * float(1 << min(n - 1, 16))) * random.uniform(0.5, 1.0)
    return max(seconds, min(retry_after or 0.0, MAX_RETRY_AFTER))


def polls() -> Iterator[float]:
    """Pauses between looks at a sandbox: short at first, since most begin and end soon."""
    seconds = 0.02
    while True:
        yield seconds
        seconds = min(seconds * 1.5, 0.5)
