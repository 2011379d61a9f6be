"""One request over a socket, for the client that waits."""
from __future__ import annotations

import socket
from types import TracebackType
from typing import Dict, Iterator, Optional, Type

from ._http1 import Head, ResponseReader, request_bytes
from ._place import Place
from ._tries import CONNECT_SECONDS, Deadline
from .errors import Broken, TimedOut, Unreachable

PIECE = 64 * 1024


class Exchange:
    """A connection with one request and its answer; use it as a context manager."""

    def __init__(self, place: Place, deadline: Deadline, quiet: float, most: int):
        self._place = place
        self._deadline = deadline
        self._quiet = quiet
        self._reader = ResponseReader(most)
        self._first = b""  # of the body, that came with the head
        self._socket = socket.socket(socket.AF_UNIX if place.path else socket.AF_INET6 if ":" in place.address else socket.AF_INET)

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._socket.close()

    def connect(self) -> None:
        """Unreachable where that can't be done: nothing was sent then."""
        self._socket.settimeout(self._deadline.left(CONNECT_SECONDS))
        try:
            self._socket.connect(self._place.path or (self._place.address, self._place.port))
        except (OSError, ValueError) as error:
            raise Unreachable("no service at %s: %s" % (self._place.name, error)) from None

    def send(self, method: str, target: str, headers: Dict[str, str], body: Optional[bytes]) -> None:
        """A service that has heard enough may have answered before the end."""
        head = request_bytes(method, target, {**self._place.headers(), **headers}, None if body is None else len(body))
        view = memoryview(body or b"")
        try:
            self._send(head)
            for at in range(0, len(view), PIECE):
                self._send(view[at:at + PIECE])
        except (BrokenPipeError, ConnectionResetError):
            pass  # the answer, or that there is none, says more
        except OSError as error:
            raise Broken("the connection broke: %s" % error) from None

    def head(self) -> Head:
        """Of the answer, once it is there."""
        while self._reader.head is None:
            self._first += self._more()
        return self._reader.head

    def pieces(self) -> Iterator[bytes]:
        """The body, as it comes, to its end."""
        if self._first:
            yield self._first
        while not self._reader.done:
            piece = self._more()
            if piece:
                yield piece

    def _send(self, data: "bytes | memoryview") -> None:
        self._socket.settimeout(self._deadline.left(self._quiet))
        try:
            self._socket.sendall(data)
        except socket.timeout:
            raise TimedOut("the service took nothing for %g s" % self._quiet) from None

    def _more(self) -> bytes:
        self._socket.settimeout(self._deadline.left(self._quiet))
        try:
            data = self._socket.recv(PIECE)
        except socket.timeout:
            raise TimedOut("the service has not answered in time") from None
        except OSError as error:
            raise Broken("the connection broke: %s" % error) from None
        if data:
            return self._reader.feed(data)
        self._reader.feed_eof()
        return b""
