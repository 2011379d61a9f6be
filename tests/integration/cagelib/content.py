"""What the tests of the inspectors share: credentials that are made up anew, what they can be packed into, and the three
things that each refusal is held to: nothing left, the client was told, the log has it."""
import base64
import ctypes
import ctypes.util
import gzip
import random
import string
import zlib

from .checks import logged_block, refused

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
LINE = b'{"role": "user", "content": "Please read the file and tell me what the second function does."}\n'
FORMAT = "github-pat"


def github_pat(seed=1):
    """A token with a good checksum. Nobody was ever given it."""
    rng = random.Random(seed)
    body = "".join(rng.choice(BASE62) for _ in range(30))
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return "ghp_" + body + digits


def filler(size):
    """Text of that size, the way an agent sends it."""
    return (LINE * (size // len(LINE) + 1))[:size]


# ---- encodings

def percent(data):
    return b"".join(b"%%%02X" % byte for byte in data)


def json_escaped(data):
    return b"".join(b"\\u%04x" % byte for byte in data)


def base64_at(data, alignment):
    """The data stands that many bytes behind a multiple of three."""
    return base64.b64encode(b"\n" * alignment + data)


# ---- content codings

def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def gzipped(data):
    return gzip.compress(data, mtime=0)


def gzip_named(data, name=b"", comment=b""):
    """gzip with a file name and a comment in its head."""
    flags = (8 if name else 0) | (16 if comment else 0)
    head = bytes([0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255])
    head += b"".join(part + b"\0" for part in (name, comment) if part)
    return head + raw_deflate(data) + zlib.crc32(data).to_bytes(4, "little") + (len(data) & 0xffffffff).to_bytes(4, "little")


def library(name):
    """A C library that cage itself is built with; None where there is none."""
    path = ctypes.util.find_library(name)
    return ctypes.CDLL(path) if path else None


ZSTD, BROTLI = library("zstd"), library("brotlienc")


def zstd(data):
    ZSTD.ZSTD_compress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(len(data) + len(data) // 64 + 1024)
    size = ZSTD.ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:size]


def brotli(data):
    out = ctypes.create_string_buffer(len(data) + len(data) // 64 + 1024)
    size = ctypes.c_size_t(len(out))
    if not BROTLI.BrotliEncoderCompress(5, 22, 0, ctypes.c_size_t(len(data)), data, ctypes.byref(size), out):
        raise ValueError("brotli can't compress this")
    return out.raw[:size.value]


# ---- the three things

def assert_unleaked(cage, *secrets):
    """None of them stands in the log, on stderr or in the metrics."""
    said = b"\n".join(cage.log.raw_lines()) + cage.stderr.text().encode() + cage.admin("/metrics").body
    for secret in secrets:
        secret = secret if isinstance(secret, bytes) else secret.encode()
        assert secret not in said


def the_finding(line, inspector="secrets", **wanted):
    """The finding of that inspector in a line of the log, which has those values; view "" means none."""
    found = [f for f in line.get("findings", []) if f["inspector"] == inspector]
    assert found, line
    for key, value in wanted.items():
        have = [f.get(key, "") for f in found]
        assert value in have, "%s: expected %r, got %r in %s" % (key, value, have, line)
    return found[0]


class Watch:
    """What left for the origin while the block ran."""

    def __init__(self, origin):
        self.origin = origin
        self.requests, self.bytes = len(origin.requests), len(origin.received)

    def assert_nothing_left(self):
        assert len(self.origin.received) == self.bytes
        assert len(self.origin.requests) == self.requests

    def assert_no_request(self, *marks):
        """No whole request, and nothing of what begins with those marks."""
        assert len(self.origin.requests) == self.requests
        for mark in marks:
            assert mark not in self.origin.received


def stopped(cage, origin, send, secret, reason="secret.detected", host="content.test", status=403, wire=None, **finding):
    """send(wire) writes a request that must be refused before any byte of it leaves; finding: what the log says of it.
    Returns the answer and the line."""
    watch = Watch(origin)
    wire = wire or cage.tunnel(host)
    try:
        send(wire)
    except OSError:
        pass  # refused while we still send
    answer = wire.read_response()
    wire.close()
    refused(answer, reason, status=status, host=host)
    line = logged_block(cage, answer, host=host)
    if finding:
        the_finding(line, **finding)
    assert secret.encode() not in answer.head + answer.body
    watch.assert_nothing_left()
    assert_unleaked(cage, secret)
    return answer, line
