"""What a container that stood ready is given: orchestrator/inside/given.h, read and written anew."""
import base64
import itertools
import struct
import tempfile

MARKS, NUMBERS = tempfile.TemporaryDirectory(prefix="cage-used."), itertools.count()


def hash_of(text):
    number = 0xcbf29ce484222325
    for byte in text:
        number = (number ^ byte) * 0x100000001b3 % (1 << 64)
    return number


def write(*records):
    """(kind, bytes) each, and a mark where there is none among them: one of its own."""
    if not any(kind == b"o" for kind, _ in records):
        records = (*records, (b"o", b"%s/%d" % (MARKS.name.encode(), next(NUMBERS))))
    return write_bare(*records)


def write_bare(*records):
    digits = base64.b64encode(b"".join(kind + struct.pack(">I", len(data)) + data for kind, data in records))
    return b"cage-run-1 %016x %s" % (hash_of(digits), digits)


def read(text):
    mark, number, digits = text.encode().split(b" ")
    assert mark == b"cage-run-1" and int(number, 16) == hash_of(digits)
    data, records = base64.b64decode(digits, validate=True), []
    while data:
        length, = struct.unpack(">I", data[1:5])
        records.append((data[:1], data[5:5 + length]))
        data = data[5 + length:]
    return records


def replaced(text, old, new):
    return write(*((kind, data.replace(old, new)) for kind, data in read(text))).decode()


class Given:
    """words, variables, files {path: bytes}, keys [path] of one container."""

    def __init__(self, text):
        records = read(text)
        self.words = [d.decode() for k, d in records if k == b"w"]
        self.variables = dict(d.decode().split("=", 1) for k, d in records if k == b"v")
        self.files = {d.split(b"\0", 1)[0].decode(): d.split(b"\0", 1)[1] for k, d in records if k == b"f"}
        (self.mark,) = [d.decode() for k, d in records if k == b"o"]
        self.keys = [d.decode() for k, d in records if k == b"k"]
