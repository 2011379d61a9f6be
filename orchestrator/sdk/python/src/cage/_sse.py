"""Server-sent events, and plain lines, out of bytes that come in any pieces. Bounded like the rest."""
from __future__ import annotations

from typing import List, Tuple

from .errors import ProtocolError

MAX_EVENT = 1024 * 1024


class LineReader:
    """Whole lines, without their ends, which are LF or CRLF."""

    def __init__(self, most: int = MAX_EVENT):
        self._most = most
        self._buffer = bytearray()

    def feed(self, data: bytes) -> List[str]:
        """The lines that are whole now."""
        self._buffer += data
        if b"\n" not in data:
            self._check(len(self._buffer))
            return []
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines + [rest]:
            self._check(len(line))
        return [(line[:-1] if line.endswith(b"\r") else line).decode("utf-8", "replace") for line in lines]

    def _check(self, size: int) -> None:
        if size > self._most:
            raise ProtocolError("a line has more than %d bytes" % self._most)


class EventReader:
    """Events as (name, data); one without a name is a "message". Comments only say that somebody is there."""

    def __init__(self) -> None:
        self._lines = LineReader()
        self._name = "message"
        self._data: List[str] = []
        self._size = 0

    def feed(self, data: bytes) -> List[Tuple[str, str]]:
        """The events that are whole now."""
        out: List[Tuple[str, str]] = []
        for line in self._lines.feed(data):
            if line:
                self._take(line)
                continue
            if self._data:
                out.append((self._name, "\n".join(self._data)))
            self._name, self._data, self._size = "message", [], 0
        return out

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            self._name = value
        elif name == "data":
            self._size += len(value) + 1  # an empty one takes place too
            if self._size > MAX_EVENT:
                raise ProtocolError("an event has more than %d characters" % MAX_EVENT)
            self._data.append(value)
