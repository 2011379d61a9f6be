"""One request over a socket, for the client of asyncio. No thread is used: addresses are numbers, and nothing is looked up."""
from __future__ import annotations

import asyncio
from typing import AsyncIterator, Awaitable, Callable, Dict, Optional, Tuple, TypeVar

from ._http1 import Head, ResponseReader, request_bytes
from ._place import Place
from ._tries import CONNECT_SECONDS, Deadline
from .errors import Broken, TimedOut, Unreachable

PIECE = 64 * 1024
T = TypeVar("T")


async def within(seconds: float, work: Awaitable[T], leave: Optional[Callable[[T], None]] = None) -> T:
    """What asyncio.wait_for does, but no cancellation gets lost in it before Python 3.12, and what is done too late is left."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        raise asyncio.TimeoutError
    except BaseException:
        task.cancel()
        task.add_done_callback(lambda t: _leave(t, leave))
        raise


def _leave(task: "asyncio.Future[T]", leave: Optional[Callable[[T], None]]) -> None:
    if not task.cancelled() and task.exception() is None and leave:
        leave(task.result())


async def surely(work: Callable[[], Awaitable[T]], tries: int = 3) -> T:
    """The result of work, which goes on to its end when the task that asks is cancelled, and is begun again when it was cancelled
    itself, as all tasks are when a loop ends. Then the cancellation goes on."""
    cancelled: Optional[asyncio.CancelledError] = None
    for n in range(tries):
        task = asyncio.ensure_future(work())
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        if not task.cancelled():
            break
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # was seen
    raise cancelled


def _close(pair: Tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    pair[1].close()


class AsyncExchange:
    """A connection with one request and its answer; close() it."""

    def __init__(self, place: Place, deadline: Deadline, quiet: float, most: int):
        self._place = place
        self._deadline = deadline
        self._quiet = quiet
        self._parser = ResponseReader(most)
        self._first = b""  # of the body, that came with the head
        self._reader: Optional[asyncio.StreamReader] = None
        self._writer: Optional[asyncio.StreamWriter] = None

    def close(self) -> None:
        """At once: what was not sent is not."""
        if self._writer:
            self._writer.transport.abort()

    async def connect(self) -> None:
        """Unreachable where that can't be done: nothing was sent then."""
        place = self._place
        seconds = self._deadline.left(CONNECT_SECONDS)
        work = asyncio.open_unix_connection(place.path) if place.path else asyncio.open_connection(place.address, place.port)
        try:
            pair = await within(seconds, work, _close)
        except asyncio.TimeoutError:
            raise Unreachable("no service at %s: it does not take connections" % place.name) from None
        except (OSError, ValueError) as error:
            raise Unreachable("no service at %s: %s" % (place.name, error)) from None
        self._reader, self._writer = pair

    async def send(self, method: str, target: str, headers: Dict[str, str], body: Optional[bytes]) -> None:
        """A service that has heard enough may have answered before the end."""
        assert self._writer
        head = request_bytes(method, target, {**self._place.headers(), **headers}, None if body is None else len(body))
        view = memoryview(body or b"")
        try:
            self._writer.write(head)
            for at in range(0, len(view), PIECE):
                self._writer.write(bytes(view[at:at + PIECE]))
                await within(self._deadline.left(self._quiet), self._writer.drain())
        except asyncio.TimeoutError:
            raise TimedOut("the service took nothing for %g s" % self._quiet) from None
        except (BrokenPipeError, ConnectionResetError):
            pass  # the answer, or that there is none, says more
        except OSError as error:
            raise Broken("the connection broke: %s" % error) from None

    async def head(self) -> Head:
        """Of the answer, once it is there."""
        while self._parser.head is None:
            self._first += await self._more()
        return self._parser.head

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, as it comes, to its end."""
        if self._first:
            yield self._first
        while not self._parser.done:
            piece = await self._more()
            if piece:
                yield piece

    async def _more(self) -> bytes:
        assert self._reader
        seconds = self._deadline.left(self._quiet)
        try:
            data = await within(seconds, self._reader.read(PIECE))
        except asyncio.TimeoutError:
            raise TimedOut("the service has not answered in time") from None
        except OSError as error:
            raise Broken("the connection broke: %s" % error) from None
        if data:
            return self._parser.feed(data)
        self._parser.feed_eof()
        return b""
