"""Secrets in what an agent sends, wherever and however they stand there (THREATS T25-T29, T32): the request is refused,
nothing of it leaves, the client is told and the log has one line that names the format and never the value."""
import base64
import hashlib
import json
import time
import zlib

import pytest
from cagelib.checks import refused
from cagelib.content import (BROTLI, FORMAT, ZSTD, Watch, assert_unleaked, base64_at, brotli, filler, github_pat, gzip_named,
                             gzipped, json_escaped, percent, raw_deflate, stopped, the_finding, zstd)
from cagelib.proxy import policy
from cagelib.raw import RawOrigin
from cagelib.wire import Truncated, chunked

HOST = "content.test"  # with the default limits
SMALL = "small.test"  # holds 64 KiB
MIB = 1 << 20
SMALL_HOLD = 64 << 10
SECRET = github_pat()
BARE = SECRET.encode()
NOTE = b"note: " + BARE + b"\n"
SLOW_SECONDS = 60  # far more than anything may take


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf(HOST, SMALL)) as running:
        yield running


@pytest.fixture(scope="module")
def cage(start_module_cage, origin, pki):
    rules = [{"id": "content", "hosts": [HOST]},
             {"id": "small", "hosts": [SMALL], "limits": {"hold": SMALL_HOLD, "body": "128MiB"}}]
    return start_module_cage(policy(*rules, pins={HOST: origin.pin, SMALL: origin.pin}, trust=[pki.ca_pem]))


def post(body, fields=(), target="/", host=HOST):
    return lambda wire: wire.request("POST", target, [("Host", host), *fields], body)


def post_chunks(*pieces, fields=(), trailers=(), host=HOST):
    def send(wire):
        wire.request("POST", "/", [("Host", host), *fields, ("Transfer-Encoding", "chunked")])
        wire.send(chunked(*pieces, trailers=trailers))
    return send


def get(target, fields=()):
    return lambda wire: wire.request("GET", target, [("Host", HOST), *fields])


def typed(kind):
    return [("Content-Type", kind)]


def coded(*codings):
    return [("Content-Type", "text/plain"), *(("Content-Encoding", c) for c in codings)]


def test_what_carries_no_secret_passes_unchanged(cage, origin):
    body = filler(200000)
    assert cage.fetch("POST", "https://%s/clean?q=a%%20b" % HOST, body=body).status == 200
    assert (origin.requests[-1].target, origin.requests[-1].body) == ("/clean?q=a%20b", body)


# ---- T25: no window to pad past

@pytest.mark.parametrize("before, size", [
    (0, 0), (1, 0), (1, 100), (100000, 200000),
    (MIB - len(NOTE), MIB),  # it ends where the hold does
], ids=["byte_0", "byte_1", "byte_1_of_more", "middle", "end_of_hold"])
def test_t25_within_the_hold(cage, origin, before, size):
    body = filler(before) + NOTE
    body += filler(max(0, size - len(body)))
    stopped(cage, origin, post(body), SECRET, id=FORMAT, where="body", view="", offset=before + 6)


def test_t25_at_every_chunk_boundary(cage, origin):
    for at in range(1, len(NOTE)):
        stopped(cage, origin, post_chunks(NOTE[:at], NOTE[at:]), SECRET, id=FORMAT, offset=6)


def test_t25_in_chunks_of_one_byte(cage, origin):
    stopped(cage, origin, post_chunks(*(bytes([b]) for b in NOTE)), SECRET, id=FORMAT, offset=6)


@pytest.mark.parametrize("size", [4096, 16384, 65536])
def test_t25_over_the_edge_of_each_block(cage, origin, size):
    for edge in range(size, 4 * size, size):
        body = filler(edge - len(BARE) // 2 - 1) + b" " + BARE + b" " + filler(1000)
        stopped(cage, origin, post(body), SECRET, id=FORMAT, offset=edge - len(BARE) // 2)


def cut_off(cage, origin, send, host):
    """Beyond the hold some of the request may have left, but never all of it and nothing of the secret."""
    watch = Watch(origin)
    wire = cage.tunnel(host)
    try:
        send(wire)
    except OSError:
        pass  # refused while we still send
    try:
        answer = wire.read_response()
        refused(answer, "secret.detected", host=host)
        assert BARE not in answer.head + answer.body
        line = cage.log.of(answer, decision="block")
    except (OSError, Truncated):
        line = cage.log.wait(host=host, decision="block", reason="secret.detected")
    wire.close()
    the_finding(line, id=FORMAT, where="body", action="block")
    origin.wait(lambda o: all(c.sock.fileno() < 0 or len(c.requests) or not c.received for c in o.conns))
    watch.assert_no_request(b"ghp_")
    assert_unleaked(cage, SECRET)


@pytest.mark.parametrize("host, before, after", [
    (HOST, MIB - len(NOTE) + 1, 0),  # hold + 1
    (HOST, MIB + 1, 0), (HOST, MIB + 1, MIB), (HOST, 3 * MIB, 100),
    (HOST, 0, 2 * MIB),
    (SMALL, SMALL_HOLD - len(NOTE) + 1, 0), (SMALL, SMALL_HOLD, 0), (SMALL, 2 * SMALL_HOLD, 0), (SMALL, 12 * MIB, 0),
])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_t25_beyond_the_hold(cage, origin, host, before, after, framing):
    body = filler(before) + NOTE + filler(after)
    pieces = [body[i:i + 50000] for i in range(0, len(body), 50000)]
    cut_off(cage, origin, post(body, host=host) if framing == "length" else post_chunks(*pieces, host=host), host)


def test_t25_encoded_beyond_the_hold(cage, origin):
    """What is encoded is longer, and none of it may leave either."""
    body = filler(4 * MIB) + base64.b64encode(NOTE) + b"\n"
    cut_off(cage, origin, post(body, host=SMALL), SMALL)
    assert base64.b64encode(NOTE)[:12] not in origin.received


@pytest.mark.slow
def test_t25_at_the_end_of_100_mib(cage, origin):
    size = 100 * MIB
    piece = filler(MIB)

    def send(wire):
        wire.request("POST", "/", [("Host", SMALL), ("Content-Length", str(size))])
        for _ in range(99):
            wire.send(piece)
        wire.send(filler(MIB - len(NOTE)) + NOTE)

    cut_off(cage, origin, send, SMALL)


# ---- T26: content codings

def needs(library):
    return pytest.mark.skipif(library is None, reason="there is no library with an encoder")


CODINGS = [
    ("gzip", gzipped), ("x-gzip", gzipped), ("GZIP", gzipped), ("deflate", zlib.compress), ("deflate", raw_deflate),
    pytest.param("br", brotli, marks=needs(BROTLI)), pytest.param("zstd", zstd, marks=needs(ZSTD)),
    ("identity", lambda data: data), ("gzip, gzip", lambda data: gzipped(gzipped(data))),
    ("gzip, deflate, gzip", lambda data: gzipped(zlib.compress(gzipped(data)))),
    pytest.param("zstd, gzip", lambda data: gzipped(zstd(data)), marks=needs(ZSTD)),
    pytest.param("br,deflate", lambda data: zlib.compress(brotli(data)), marks=needs(BROTLI)),
]


@pytest.mark.parametrize("name, encode", CODINGS)
def test_t26_packed(cage, origin, name, encode):
    body = encode(filler(100000) + NOTE)
    stopped(cage, origin, post(body, coded(name)), SECRET, id=FORMAT, where="body", offset=100006)


@pytest.mark.parametrize("name, encode", CODINGS)
def test_t26_packed_without_a_secret_goes_on_as_it_came(cage, origin, name, encode):
    body = encode(filler(100000))
    assert cage.fetch("POST", "https://%s/packed" % HOST, coded(name), body).status == 200
    assert origin.requests[-1].body == body
    assert origin.requests[-1].header("content-encoding") == name


def test_t26_two_fields(cage, origin):
    stopped(cage, origin, post(gzipped(zlib.compress(NOTE)), coded("deflate", "gzip")), SECRET, id=FORMAT)


def test_t26_packed_in_chunks_of_one_byte(cage, origin):
    stopped(cage, origin, post_chunks(*(bytes([b]) for b in gzipped(NOTE)), fields=coded("gzip")), SECRET, id=FORMAT)


def test_t26_several_gzip_members(cage, origin):
    """A reader of gzip goes on with the next member, and the secret may be cut between the two."""
    body = gzipped(NOTE[:20]) + gzipped(NOTE[20:])
    stopped(cage, origin, post(body, coded("gzip")), SECRET, reason={"secret.detected", "body.undecodable"})


UNDECODABLE = [
    ("plain_text_as_gzip", "gzip", NOTE),
    ("plain_text_as_br", "br", NOTE),
    ("plain_text_as_zstd", "zstd", NOTE),
    ("plain_text_as_deflate", "deflate", NOTE),
    ("gzip_as_deflate", "deflate", gzipped(NOTE)),
    ("gzip_as_zstd", "zstd", gzipped(NOTE)),
    ("deflate_as_gzip", "gzip", zlib.compress(NOTE)),
    ("unknown", "lzma", NOTE),
    ("compress", "compress", NOTE),
    ("unknown_on_top", "gzip, x", gzipped(NOTE)),
    ("four_deep", "gzip, gzip, gzip, gzip", gzipped(gzipped(gzipped(gzipped(NOTE))))),
    ("truncated_gzip", "gzip", gzipped(filler(5000))[:-9]),
    ("truncated_deflate", "deflate", zlib.compress(filler(5000))[:-5]),
    ("wrong_checksum", "gzip", gzipped(filler(5000))[:-8] + b"\0\0\0\0\0\0\0\0"),
    ("bytes_behind_gzip", "gzip", gzipped(filler(5000)) + b"behind"),
    ("secret_behind_deflate", "deflate", zlib.compress(filler(5000)) + NOTE),
    ("gzip_bomb", "gzip", gzipped(bytes(100 * MIB))),
    ("gzip_bomb_twice", "gzip, gzip", gzipped(gzipped(bytes(100 * MIB)))),
] + ([("zstd_bomb", "zstd", zstd(bytes(100 * MIB))), ("truncated_zstd", "zstd", zstd(filler(5000))[:-3])] if ZSTD else []) \
  + ([("br_bomb", "br", brotli(bytes(100 * MIB))), ("bytes_behind_br", "br", brotli(filler(5000)) + NOTE)] if BROTLI else [])


@pytest.mark.parametrize("name, coding, body", UNDECODABLE, ids=[c[0] for c in UNDECODABLE])
def test_t26_what_cannot_be_decoded_does_not_pass(cage, origin, name, coding, body):
    reasons = {"body.undecodable"} | ({"secret.detected"} if BARE in body else set())
    stopped(cage, origin, post(body, coded(coding)), SECRET, reason=reasons)


@pytest.mark.parametrize("name, body, coding", [
    ("gzip_file_name", gzip_named(filler(100), name=BARE), "gzip"),
    ("gzip_comment", gzip_named(filler(100), comment=BARE), "gzip"),
    ("skippable_zstd_frame",
     b"\x50\x2a\x4d\x18" + len(NOTE).to_bytes(4, "little") + NOTE + (zstd(filler(100)) if ZSTD else b""), "zstd"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_t26_room_inside_a_coding(cage, origin, name, body, coding):
    stopped(cage, origin, post(body, coded(coding)), SECRET, reason={"secret.detected", "body.undecodable"})


def test_t26_packed_but_not_said_so(cage, origin):
    stopped(cage, origin, post(gzipped(NOTE), typed("text/plain")), SECRET, reason="type.mismatch", inspector="content_type")


# ---- T27: the declared type switches nothing off

@pytest.mark.parametrize("kind", [
    "image/png", "IMAGE/PNG", "TEXT/PLAIN", "Application/JSON", "application/octet-stream", "application/zip", "video/mp4",
    "application/grpcfoo", "application/grpc-web-text", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/plain; charset=utf-16",
    "font/woff2", "x/y", "no type at all", "",
])
def test_t27_a_false_type(cage, origin, kind):
    stopped(cage, origin, post(NOTE, typed(kind) if kind else ()), SECRET, id=FORMAT, where="body")


@pytest.mark.parametrize("fields", [typed("application/grpc"), typed("application/grpc-web"), typed("application/connect+json"), typed("text/plain") + typed("Application/gRPC+proto; x=1")],
                         ids=["alone", "web", "connect", "second"])
def test_t27_what_is_called_grpc_and_is_none(cage, origin, fields):
    stopped(cage, origin, post(NOTE, fields), SECRET, reason="body.undecodable", inspector="chain")


def envelope(data, flag=0):
    return bytes([flag]) + len(data).to_bytes(4, "big") + data


KINDS = [("application/grpc", "grpc-encoding"), ("application/grpc-web+proto", "grpc-encoding"),
         ("application/connect+proto", "connect-content-encoding")]


@pytest.mark.parametrize("kind, field", KINDS, ids=["grpc", "web", "connect"])
def test_t26_compressed_messages_of_every_kind(cage, origin, kind, field):
    body = envelope(b"one") + envelope(gzipped(NOTE), 1)
    stopped(cage, origin, post(body, [*typed(kind), (field, "gzip")]), SECRET, id=FORMAT, where="body")
    stopped(cage, origin, post(body, typed(kind)), SECRET, reason="body.undecodable", inspector="chain")
    stopped(cage, origin, post(body, [*typed(kind), (field, "br")]), SECRET, reason="body.undecodable", inspector="chain")


def test_t26_base64_of_compressed_messages(cage, origin):
    fields = [*typed("application/grpc-web-text"), ("grpc-encoding", "gzip")]
    body = base64.b64encode(envelope(gzipped(NOTE), 1))
    stopped(cage, origin, post(body, fields), SECRET, reason="body.undecodable", inspector="chain")


def test_t27_two_types(cage, origin):
    stopped(cage, origin, post(NOTE, typed("image/png") + typed("text/plain")), SECRET, id=FORMAT, where="body")


def test_t27_a_real_picture_in_front(cage, origin):
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89"
    stopped(cage, origin, post(png + NOTE, typed("image/png")), SECRET, id=FORMAT, where="body")


@pytest.mark.parametrize("name, part", [
    ("field_name", b'Content-Disposition: form-data; name="%s"\r\n\r\nx' % BARE),
    ("file_name", b'Content-Disposition: form-data; name="f"; filename="%s"\r\nContent-Type: image/png\r\n\r\nx' % BARE),
    ("file_name_star", b"Content-Disposition: form-data; name=f; filename*=UTF-8''%s\r\n\r\nx" % percent(BARE)),
    ("field_of_a_part", b'Content-Disposition: form-data; name="f"\r\nX-Note: %s\r\n\r\nx' % BARE),
    ("type_of_a_part", b'Content-Disposition: form-data; name="f"\r\nContent-Type: image/%s\r\n\r\nx' % BARE),
    ("value", b'Content-Disposition: form-data; name="f"\r\n\r\n%s' % BARE),
    ("file_in_base64", b'Content-Disposition: form-data; name="f"; filename="a.png"\r\nContent-Type: image/png\r\n'
                       b"Content-Transfer-Encoding: base64\r\n\r\n" + base64.b64encode(NOTE)),
], ids=lambda v: v if isinstance(v, str) else "")
def test_t27_multipart(cage, origin, name, part):
    body = b"--edge\r\n" + part + b"\r\n--edge--\r\n"
    stopped(cage, origin, post(body, typed("multipart/form-data; boundary=edge")), SECRET, id=FORMAT, where="body")


@pytest.mark.parametrize("body", [BARE + b"\r\n--edge\r\n\r\nx\r\n--edge--\r\n", b"--edge\r\n\r\nx\r\n--edge--\r\n" + BARE,
                                  b"--" + BARE + b"\r\n\r\nx\r\n--" + BARE + b"--\r\n"], ids=["preamble", "epilogue", "boundary"])
def test_t27_around_the_parts(cage, origin, body):
    stopped(cage, origin, post(body, typed("multipart/form-data; boundary=edge")), SECRET, id=FORMAT, where="body")


# ---- T28: split up

HALF, REST = SECRET[:20], SECRET[20:]
THIRDS = SECRET[:9], SECRET[9:25], SECRET[25:]
# What is in a path or a name could get into the log by way of it, so each of those has a secret of its own.
PATH, PATH_2, PATH_3, PATH_4, PATH_5, QUERY, QUERY_2, QUERY_3, NAME, NAME_2, NAME_3 = map(github_pat, range(2, 13))


def cut(secret, *places):
    return tuple(secret[i:j] for i, j in zip((0, *places), (*places, len(secret))))


@pytest.mark.parametrize("secret, target, where", [
    (SECRET, "/?a=%s&b=%s" % (HALF, REST), "query"),
    (QUERY, "/?%s=%s" % cut(QUERY, 20), "query"),
    (SECRET, "/?a=%s&a=%s&c=%s" % THIRDS, "query"),
    (QUERY_2, "/?%s&%s" % cut(QUERY_2, 20), "query"),
    (SECRET, "/?a=%s&b=%s" % tuple(percent(x.encode()).decode() for x in (HALF, REST)), "query"),
    (SECRET, "/?q=" + SECRET, "query"),
    (SECRET, "/?" + "&".join("a%d=%s" % pair for pair in enumerate(SECRET)), "query"),
    (QUERY_3, "/?%s=1" % QUERY_3, "query"),
    (PATH, "/" + PATH, "path"),
    (PATH_2, "/x/%s/y?z=1" % PATH_2, "path"),
    (PATH_3, "/%s/%s" % cut(PATH_3, 20), "path"),
    (PATH_4, "/x/%s/%s/%s/y" % cut(PATH_4, 9, 25), "path"),
    (PATH_5, "/" + "/".join(PATH_5), "path"),
], ids=["two_values", "name_and_value", "three_values", "two_names", "escaped_values", "one_value", "single_letters", "one_name",
        "segment", "segment_between", "two_segments", "three_segments", "segments_of_one_letter"])
def test_t28_in_the_target(cage, origin, secret, target, where):
    stopped(cage, origin, get(target), secret, id=FORMAT, where=where)
    assert_unleaked(cage, secret[:12], secret[-12:])  # nor in parts


@pytest.mark.parametrize("fields, where", [
    ([("X-A", HALF), ("X-B", REST)], "header"),
    ([("X-A", HALF), ("X-A", REST)], "header"),
    ([("Cookie", "a=%s; b=%s" % (HALF, REST))], "header"),
    ([("Cookie", "%s; %s" % (HALF, REST))], "header"),
    ([("Accept", "*/*"), ("X-A", THIRDS[0]), ("User-Agent", "curl/8"), ("X-B", THIRDS[1]), ("X-C", THIRDS[2])], "header"),
    ([("X-A", SECRET)], "header:X-A"), ([("User-Agent", "curl/8 " + SECRET)], "header:User-Agent"),
    ([("Cookie", "a=1; s=%s; b=2" % SECRET)], "header:Cookie"), ([("Referer", "https://x.test/?k=" + SECRET)], "header:Referer"),
    ([("Accept-Language", SECRET)], "header:Accept-Language"),
])
def test_t28_in_fields(cage, origin, fields, where):
    _, line = stopped(cage, origin, get("/", fields), SECRET, id=FORMAT)
    assert where.lower() in [f["where"].lower() for f in line["findings"]], line


def test_t28_over_form_parameters(cage, origin):
    body = "x=1&a=%s&b=%s&c=%s&y=2" % THIRDS
    stopped(cage, origin, post(body.encode(), typed("application/x-www-form-urlencoded")), SECRET, id=FORMAT, where="body")


def test_t28_over_form_parameters_escaped(cage, origin):
    body = b"a=%s&b=%s" % (percent(HALF.encode()), percent(REST.encode()))
    stopped(cage, origin, post(body, typed("Application/X-WWW-Form-Urlencoded; charset=utf-8")), SECRET, id=FORMAT, where="body")


def test_t28_over_tcp_segments(cage, origin):
    """Each byte of head and body in a TLS record, and so a segment, of its own."""
    def send(wire):
        head = "POST /?q=1 HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (HOST, len(NOTE))
        for byte in head.encode() + NOTE:
            wire.send(bytes([byte]))

    stopped(cage, origin, send, SECRET, id=FORMAT, where="body", offset=6)


def test_t28_over_tcp_segments_of_the_head(cage, origin):
    def send(wire):
        for byte in ("GET /?q=%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (SECRET, HOST)).encode():
            wire.send(bytes([byte]))

    stopped(cage, origin, send, SECRET, id=FORMAT, where="query")


# ---- T29: encoded

HEX = BARE.hex()
PAIRS = [HEX[i:i + 2] for i in range(0, len(HEX), 2)]
ENCODED = [
    ("percent", percent(BARE), "percent"),
    ("percent_of_some", BARE[:10] + percent(BARE[10:20]) + BARE[20:], "percent"),
    ("percent_of_one", BARE[:10] + percent(BARE[10:11]) + BARE[11:], "percent"),
    ("percent_twice", percent(percent(BARE)), "percent+percent"),
    ("percent_lower_case", percent(BARE).lower(), "percent"),
    ("base64_0", base64_at(BARE, 0), "base64"),
    ("base64_1", base64_at(BARE, 1), "base64"),
    ("base64_2", base64_at(BARE, 2), "base64"),
    ("base64_behind_letters", b"abc" + base64_at(BARE, 0), "base64"),
    ("base64_behind_one_letter", b"a" + base64_at(BARE, 0), "base64"),
    ("base64_unpadded", base64_at(BARE, 0).rstrip(b"="), "base64"),
    ("base64_in_lines", base64.encodebytes(NOTE + filler(100)), "base64"),
    ("base64_in_lines_with_cr", base64.encodebytes(NOTE + filler(100)).replace(b"\n", b"\r\n"), "base64"),
    ("base64_in_json_lines", base64.encodebytes(NOTE + filler(100)).replace(b"\n", b"\\n"), None),
    ("base64url", base64.urlsafe_b64encode(b"\xff\xfe\xfb>>>" + NOTE).rstrip(b"="), "base64"),
    ("base64_twice", base64.b64encode(base64.b64encode(BARE)), "base64+base64"),
    ("base64_three_times", base64.b64encode(base64.b64encode(base64.b64encode(BARE))), "base64+base64+base64"),
    ("hex", HEX.encode(), "hex"),
    ("hex_upper_case", HEX.upper().encode(), "hex"),
    ("hex_colons", ":".join(PAIRS).encode(), "hex"),
    ("hex_blanks", " ".join(PAIRS).encode(), "hex"),
    ("hex_dashes", "-".join(PAIRS).encode(), "hex"),
    ("hex_escapes", "".join("\\x" + p for p in PAIRS).encode(), "hex"),
    ("hex_c_array", ", ".join("0x" + p for p in PAIRS).encode(), "hex"),
    ("json_escapes", json_escaped(BARE), "json"),
    ("json_escape_of_one", BARE[:10] + json_escaped(BARE[10:11]) + BARE[11:], "json"),
    ("json_upper_case", json_escaped(BARE).upper().replace(b"\\U", b"\\u"), "json"),
    ("utf16le", NOTE.decode().encode("utf-16-le"), "utf16"),
    ("utf16be", NOTE.decode().encode("utf-16-be"), "utf16"),
    ("utf16_with_mark", NOTE.decode().encode("utf-16"), "utf16"),
    ("base64_of_utf16", base64.b64encode(NOTE.decode().encode("utf-16-le")), "base64+utf16"),
    ("hex_in_base64", base64.b64encode(HEX.encode()), "base64+hex"),
    ("base64_in_percent", percent(base64_at(BARE, 0)), "percent+base64"),
    ("base64_in_json_escapes", json_escaped(base64_at(BARE, 0)), "json+base64"),
    ("basic_auth_in_a_text", b"Authorization: Basic " + base64.b64encode(b"user:" + BARE), "base64"),
]


@pytest.mark.parametrize("name, body, view", ENCODED, ids=[c[0] for c in ENCODED])
def test_t29_encoded(cage, origin, name, body, view):
    wanted = {} if view is None else {"view": view}
    stopped(cage, origin, post(body), SECRET, id=FORMAT, where="body", **wanted)


IN_JSON = [c for c in ENCODED if c[1].isascii() and b"\n" not in c[1] and b"\0" not in c[1]]  # as it is


@pytest.mark.parametrize("name, body, view", IN_JSON, ids=[c[0] for c in IN_JSON])
def test_t29_encoded_inside_json(cage, origin, name, body, view):
    carrier = b'{"model": "m", "messages": [{"role": "user", "content": "' + body + b'"}]}'
    stopped(cage, origin, post(carrier, typed("application/json")), SECRET, id=FORMAT, where="body")


@pytest.mark.parametrize("text", [
    'export AWS_SECRET_ACCESS_KEY="%s"\n', '{"aws_secret_access_key": "%s"}', "aws_secret_access_key:\t%s\n",
    'aws_secret_access_key =\n\t"%s"\n',
], ids=["quoted", "json_in_json", "tab", "lines"])
def test_t29_a_file_as_a_json_string(cage, origin, text):
    """The way in which an agent shows a file to its model: quotes, tabs and line ends of the file are escaped."""
    key = base64.b64encode(hashlib.sha256(text.encode()).digest())[:40].decode().ljust(40, "x").replace("=", "q")
    body = json.dumps({"messages": [{"role": "user", "content": text % key}]}).encode()
    stopped(cage, origin, post(body, typed("application/json")), key, where="body")


@pytest.mark.parametrize("target, where, view", [
    ("/?q=" + percent(BARE).decode(), "query", "percent"),
    ("/?q=" + percent(percent(BARE)).decode(), "query", "percent+percent"),
    ("/?q=" + base64_at(BARE, 0).decode().rstrip("="), "query", "base64"),
    ("/?q=" + base64_at(BARE, 1).decode().rstrip("="), "query", "base64"),
    ("/?q=" + percent(base64_at(BARE, 2)).decode(), "query", "percent+base64"),
    ("/?q=" + HEX, "query", "hex"), ("/x/" + HEX, "path", "hex"),
    ("/x/" + base64.urlsafe_b64encode(BARE).decode().rstrip("="), "path", "base64"),
    ("/" + base64.urlsafe_b64encode(BARE).decode().rstrip("=") + "/y", "path", "base64"),
], ids=["percent", "percent_twice", "base64_0", "base64_1", "base64_2_in_percent", "hex", "hex_segment", "base64_segment",
        "base64_first_segment"])
def test_t29_encoded_in_the_target(cage, origin, target, where, view):
    stopped(cage, origin, get(target), SECRET, id=FORMAT, where=where, view=view)


def test_t29_percent_in_the_path(cage, origin):
    """The path is made canonical first, so the log must not show it decoded either."""
    secret = github_pat(20)
    stopped(cage, origin, get("/x/" + percent(secret.encode()).decode()), secret, id=FORMAT, where="path")


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("field, where, view", [
    (("Authorization", basic("user:" + SECRET)), "header:authorization", "base64"),
    (("Authorization", basic(SECRET + ":")), "header:authorization", "base64"),
    (("Authorization", "Bearer " + SECRET), "header:authorization", ""),
    (("X-Data", base64_at(BARE, 1).decode()), "header:x-data", "base64"),
    (("X-Data", ":".join(PAIRS)), "header:x-data", "hex"),
    (("X-Data", percent(BARE).decode()), "header:x-data", "percent"),
], ids=["basic_password", "basic_user", "bearer", "base64", "hex", "percent"])
def test_t29_in_fields(cage, origin, field, where, view):
    _, line = stopped(cage, origin, get("/", [field]), SECRET, id=FORMAT)
    assert (where, view) in [(f["where"].lower(), f.get("view", "")) for f in line["findings"]], line


@pytest.mark.parametrize("name, secret", [(NAME, NAME), ("X-" + NAME_2, NAME_2)], ids=["all_of_it", "a_part_of_it"])
def test_t29_in_a_field_name(cage, origin, name, secret):
    """The log names the field where something was found, but not when the name is what was found."""
    stopped(cage, origin, get("/", [(name, "1")]), secret, id=FORMAT)


@pytest.mark.parametrize("trailer, where", [
    (("X-Sum", SECRET), "trailer:x-sum"), (("X-Sum", base64_at(BARE, 0).decode()), "trailer:x-sum"),
], ids=["value", "base64"])
def test_t29_in_trailers(cage, origin, trailer, where):
    _, line = stopped(cage, origin, post_chunks(b"abc", trailers=[trailer]), SECRET, id=FORMAT)
    assert where in [f["where"].lower() for f in line["findings"]], line


def test_t29_in_a_trailer_name(cage, origin):
    stopped(cage, origin, post_chunks(b"abc", trailers=[(NAME_3, "1")]), NAME_3, id=FORMAT)


def test_t28_over_trailers(cage, origin):
    stopped(cage, origin, post_chunks(b"abc", trailers=[("X-A", HALF), ("X-B", REST)]), SECRET, id=FORMAT)


# ---- T32: input that is slow to judge

SLOW = [
    ("private_key_heads", b"-----BEGIN RSA PRIVATE KEY-----\n" * 8000),
    ("jwt_heads", b"eyJhbGciOiJIUzI1NiJ9." * 12000),
    ("assignments", b"password = password: password => " * 8000),
    ("secret_words", b"secret_access_key=" * 14000),
    ("one_letter", b"a" * 250000),
    ("base64_letters", b"Ab1+" * 60000),
    ("hex_digits", b"0123456789abcdef" * 16000),
    ("percents", b"%25" * 80000),
    ("backslashes", b"\\u005c" * 40000),
    ("url_heads", b"postgres://a:" * 20000),
    ("token_prefixes", b"ghp_ghp_sk-ant-api03-AKIA" * 10000),
    ("zeros", bytes(250000)),
]


@pytest.mark.parametrize("name, slow", SLOW, ids=[c[0] for c in SLOW])
def test_t32_slow_input_hides_nothing(cage, origin, name, slow):
    began = time.monotonic()
    reasons = {"secret.detected", "body.undecodable"}  # which bound or which finding comes first is not the point
    stopped(cage, origin, post(slow + b"\n" + NOTE), SECRET, reason=reasons)
    assert time.monotonic() - began < SLOW_SECONDS


def test_t32_a_pattern_that_is_slow_is_bounded_and_the_bound_is_a_finding(start_cage, origin, pki):
    extra = [{"id": "slow", "pattern": "aaaaaaa(?:a{1,10}){1,10}b|x{200}"}]
    cage = start_cage(policy({"id": "content", "hosts": [HOST]}, pins={HOST: origin.pin}, trust=[pki.ca_pem],
                             inspectors={"secrets": {"extra": extra}}))
    began = time.monotonic()
    stopped(cage, origin, post(b"a" * 100000 + b"b" + b"a" * 100000), SECRET, id="slow", where="body")
    assert time.monotonic() - began < SLOW_SECONDS
