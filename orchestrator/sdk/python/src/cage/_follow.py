"""Following logs and outputs. A stream that breaks is asked for again: the service begins anew, and what was told already is left
out here, by the numbers of the log's lines, and by the length of each stream of the output."""
from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Dict, Generic, List, TypeVar

from . import _calls
from ._sse import EventReader, LineReader
from .errors import ProtocolError
from .models import Decision, Output

T = TypeVar("T")


class Follower(ABC, Generic[T]):
    """What a stream is made of; begin() before each connection, feed() its bytes, and over says whether a clean end is the end."""

    target: str

    @abstractmethod
    def begin(self) -> None:
        """A new connection: its bytes begin at the beginning."""

    @abstractmethod
    def feed(self, data: bytes) -> List[T]:
        """What is new in these bytes."""

    @property
    def over(self) -> bool:
        """Nothing more is to come."""
        return True


class LogFollower(Follower[Decision]):
    """Lines of a decision log, followed or as far as they are there."""

    def __init__(self, ident: str, source: str, follow: bool):
        self.target = _calls.logs_target(ident, source, follow)
        self._follow = follow
        self._last = 0
        self.begin()

    def begin(self) -> None:
        self._events, self._lines = EventReader(), LineReader()

    def feed(self, data: bytes) -> List[Decision]:
        lines = [text for _, text in self._events.feed(data)] if self._follow else self._lines.feed(data)
        out = []
        for line in lines:
            row = Decision.of(_load(line))
            if row.seq > self._last:
                self._last = row.seq
                out.append(row)
        return out


class OutputFollower(Follower[Output]):
    """Pieces of an output, until its end was told."""

    def __init__(self, ident: str, stream: str):
        self.target = _calls.output_target(ident, stream, True)
        self._told: Dict[str, int] = {"stdout": 0, "stderr": 0}  # characters
        self._over = False
        self.begin()

    def begin(self) -> None:
        self._events = EventReader()
        self._again = dict(self._told)  # that are to be left out

    @property
    def over(self) -> bool:
        return self._over

    def feed(self, data: bytes) -> List[Output]:
        out = []
        for name, text in self._events.feed(data):
            if name == "end":
                self._over = True
            elif name in self._told:
                out += self._new(name, text)
        return out

    def _new(self, name: str, data: str) -> List[Output]:
        text = _load(data)
        if not isinstance(text, str):
            raise ProtocolError("a piece of output is no text")
        skipped = min(self._again[name], len(text))
        self._again[name] -= skipped
        self._told[name] += len(text) - skipped
        return [Output(name, text[skipped:])] if len(text) > skipped else []


def _load(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ProtocolError("a line of the stream is no JSON") from None
    return value
