"""HTTP/1.1 of a client, on bytes alone: what to send, and what is made of what comes. Both transports use it, and tests feed it
byte by byte. It is strict, since it speaks with one server: whatever can be read in two ways is refused, and all is bounded."""
from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional

from .errors import Broken, ProtocolError

MAX_LINE = 8 * 1024
MAX_HEAD = 32 * 1024
MAX_FIELDS = 100
MAX_INTERIM = 8  # answers 1xx before the real one
MAX_DIGITS = 15  # of a length

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t -~\x80-\xff]*))?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t -~\x80-\xff]*")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,%d})(?:[ \t]*;[\t -~\x80-\xff]*)?" % MAX_DIGITS)
_VISIBLE = re.compile(r"[!-~]+")
_FIELD = re.compile(r"[ -~]*")


def request_bytes(method: str, target: str, headers: Mapping[str, str], length: Optional[int]) -> bytes:
    """The head of a request. One connection has one request, so that no answer can be taken for another's."""
    if not _VISIBLE.fullmatch(method) or not _VISIBLE.fullmatch(target):
        raise ValueError("a request with this method or target can't be sent")
    lines = ["%s %s HTTP/1.1" % (method, target)]
    fields = dict(headers)
    fields["Connection"] = "close"
    if length is not None:
        fields["Content-Length"] = str(length)
    for name, value in fields.items():
        if not _VISIBLE.fullmatch(name) or not _FIELD.fullmatch(value):
            raise ValueError("the field %s can't be sent with this value" % ascii(name))
        lines.append("%s: %s" % (name, value))
    return "\r\n".join(lines + ["", ""]).encode("ascii")


@dataclass(frozen=True)
class Head:
    """Of an answer; names of fields are in lower case."""

    status: int
    headers: Dict[str, str]


class _State(enum.Enum):
    STATUS = "its first line"
    FIELDS = "its fields"
    LENGTH = "its body"
    CHUNK_SIZE = "the size of a chunk"
    CHUNK = "a chunk"
    CHUNK_END = "the end of a chunk"
    TRAILERS = "its trailers"
    DONE = "nothing"


class ResponseReader:
    """Feed it what comes; head is there once it is whole, and each feed() returns the bytes of the body that it brought."""

    def __init__(self, most: int):
        self.head: Optional[Head] = None
        self._most = most  # bytes of the body
        self._state = _State.STATUS
        self._buffer = bytearray()
        self._left = 0  # of the body, or of the chunk
        self._taken = 0  # of the body
        self._head_size = 0
        self._interim = 0
        self._version = 1
        self._status = 0
        self._fields: Dict[str, str] = {}
        self._n_fields = 0

    @property
    def done(self) -> bool:
        """All of the answer is there."""
        return self._state is _State.DONE

    def feed(self, data: bytes) -> bytes:
        """The bytes of the body that are new. Raises ProtocolError where it is no good answer."""
        self._buffer += data
        out: List[bytes] = []
        while self._step(out):
            pass
        return b"".join(out)

    def feed_eof(self) -> None:
        """The connection has ended: an answer that is not whole is Broken, never a shorter one."""
        if self._state is not _State.DONE:
            raise Broken("the connection ended where %s was expected" % self._state.value)

    # ---- steps: True where there may be more to do with what is there

    def _step(self, out: List[bytes]) -> bool:
        state = self._state
        if state in (_State.LENGTH, _State.CHUNK):
            return self._take_body(out)
        if state is _State.DONE:
            if self._buffer:
                raise ProtocolError("there is more behind the end of the answer")
            return False
        line = self._line()
        if line is None:
            return False
        if state is _State.STATUS:
            self._take_status(line)
        elif state is _State.FIELDS:
            self._take_field(line)
        elif state is _State.CHUNK_SIZE:
            self._take_chunk_size(line)
        elif state is _State.CHUNK_END:
            self._expect(line == b"", "a chunk is longer than it says")
            self._state = _State.CHUNK_SIZE
        else:
            self._take_trailer(line)
        return True

    def _line(self) -> Optional[bytes]:
        """Without its end, which is CR and LF, both of them."""
        at = self._buffer.find(b"\n", 0, MAX_LINE)
        if at < 0:
            self._expect(len(self._buffer) < MAX_LINE, "a line has more than %d bytes" % MAX_LINE)
            return None
        self._expect(at > 0 and self._buffer[at - 1] == 0x0D, "a line has no CR at its end")
        line = bytes(self._buffer[: at - 1])
        del self._buffer[: at + 1]
        if self._state in (_State.STATUS, _State.FIELDS, _State.TRAILERS):
            self._head_size += at + 1
            self._expect(self._head_size <= MAX_HEAD, "the head has more than %d bytes" % MAX_HEAD)
        return line

    def _take_status(self, line: bytes) -> None:
        found = _STATUS.fullmatch(line)
        if not found:
            raise ProtocolError("this is not HTTP/1.1")
        self._version, self._status = int(found.group(1)), int(found.group(2))
        self._fields, self._n_fields = {}, 0
        self._state = _State.FIELDS

    def _take_field(self, line: bytes) -> None:
        if line == b"":
            self._end_of_head()
            return
        name, value = self._split(line)
        if name in self._fields:
            self._expect(name not in ("content-length", "transfer-encoding"), "%s is there twice" % name)
            value = self._fields[name] + ", " + value
        self._fields[name] = value

    def _split(self, line: bytes) -> "tuple[str, str]":
        self._n_fields += 1
        self._expect(self._n_fields <= MAX_FIELDS, "there are more than %d fields" % MAX_FIELDS)
        name, colon, value = line.partition(b":")
        self._expect(bool(colon) and bool(_NAME.fullmatch(name)) and bool(_VALUE.fullmatch(value)), "a field is malformed")
        return name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")

    def _end_of_head(self) -> None:
        if self._status < 200:
            self._interim += 1
            self._expect(self._interim <= MAX_INTERIM and self._status != 101, "an answer was expected, and not %d" % self._status)
            self._state = _State.STATUS
            return
        self._state = self._framing()
        self.head = Head(self._status, self._fields)

    def _framing(self) -> _State:
        length, coding = self._fields.get("content-length"), self._fields.get("transfer-encoding")
        self._expect(length is None or coding is None, "the answer has two lengths")
        if coding is not None:
            self._expect(coding.lower() == "chunked" and self._version == 1, "transfer-encoding: only chunked is known")
        if length is not None:
            self._expect(length.isascii() and length.isdigit() and len(length) <= MAX_DIGITS, "content-length is no number")
        if self._status in (204, 304):
            self._expect(coding is None and length in (None, "0"), "%d has no body" % self._status)
            return _State.DONE
        if coding is not None:
            return _State.CHUNK_SIZE
        if length is None:
            raise ProtocolError("the answer does not say how long it is")
        self._left = int(length)
        self._expect(self._left <= self._most, "the answer has %d bytes; at most %d are taken" % (self._left, self._most))
        return _State.LENGTH if self._left else _State.DONE

    def _take_chunk_size(self, line: bytes) -> None:
        found = _CHUNK.fullmatch(line)
        if not found:
            raise ProtocolError("the size of a chunk is malformed")
        self._left = int(found.group(1), 16)
        self._state = _State.CHUNK if self._left else _State.TRAILERS

    def _take_trailer(self, line: bytes) -> None:
        if line == b"":
            self._state = _State.DONE
        else:
            self._split(line)

    def _take_body(self, out: List[bytes]) -> bool:
        n = min(len(self._buffer), self._left)
        if n == 0:
            return False
        self._taken += n
        self._expect(self._taken <= self._most, "the answer has more than %d bytes" % self._most)
        out.append(bytes(self._buffer[:n]))
        del self._buffer[:n]
        self._left -= n
        if self._left == 0:
            self._state = _State.DONE if self._state is _State.LENGTH else _State.CHUNK_END
        return True

    @staticmethod
    def _expect(is_so: bool, otherwise: str) -> None:
        if not is_so:
            raise ProtocolError(otherwise)
