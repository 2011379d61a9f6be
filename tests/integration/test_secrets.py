"""Secrets that the agent never holds: put in on the way out where the policy says and nowhere else, and taken out of
whatever comes back (THREATS T33, T34)."""
import base64
import contextlib
import gzip
import json
import os
import threading
import urllib.parse
import zlib

import pytest
from cagelib.checks import logged_block, refused
from cagelib.content import Watch, assert_unleaked, base64_at, filler, gzipped, json_escaped, percent
from cagelib.proxy import children_of, policy, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import Truncated, chunked, response_bytes

HOST, OTHER, PLAIN, SMALL = "vault.test", "other.test", "plain.test", "small.test"
KEY = "s3cr3t/Va+lue%with\"odd'chars=1234567890"
TOKEN = "tok_5f2c9a7be1d04c3396aa17be00c4d2f1"
BODY = "b0dy-v\\alue\"7f1e2d3c4b5a69788796a5b4c3d2e1f0"
USER = "pw:with:colons:0123456789abcdef"
P_KEY, P_TOKEN, P_BODY, P_USER = "{{API_KEY}}", "{{TOKEN}}", "{{BODY_KEY}}", "{{GIT_PASSWORD}}"
VALUES = (KEY, TOKEN, BODY, USER)
HOLD = 64 << 10


class Echo:
    """An origin whose next answer a test sets: bytes, or a function that makes them of a request. stream(conn) sends one
    by itself."""

    def __init__(self, leaf):
        self.answer = self.stream = None
        self.origin = RawOrigin(self.handle, leaf=leaf)

    def handle(self, conn):
        while True:
            request = conn.read_request()
            if self.stream:
                self.stream(conn)
                continue
            answer = self.answer
            if callable(answer):
                answer = answer(request)
            conn.send(answer if answer is not None else response_bytes(200, b"ok\n"))


@pytest.fixture(scope="module")
def echo(pki):
    running = Echo(pki.leaf(HOST, OTHER, SMALL))
    with running.origin:
        yield running


@pytest.fixture(autouse=True)
def quiet(echo):
    yield
    echo.answer = echo.stream = None


@pytest.fixture(scope="module")
def plain():
    with RawOrigin() as running:
        yield running


def secrets():
    return [{"id": "api", "from": {"env": "CAGE_TEST_KEY"}, "placeholder": P_KEY, "in": ["header:x-api-key", "query:key", "path"]},
            {"id": "token", "from": {"env": "CAGE_TEST_TOKEN"}, "placeholder": P_TOKEN},
            {"id": "body", "from": {"env": "CAGE_TEST_BODY"}, "placeholder": P_BODY, "in": ["body"]},
            {"id": "git", "from": {"env": "CAGE_TEST_USER"}, "placeholder": P_USER, "in": ["header:authorization"]}]


ENV = {"CAGE_TEST_KEY": KEY, "CAGE_TEST_TOKEN": TOKEN, "CAGE_TEST_BODY": BODY, "CAGE_TEST_USER": USER}


@pytest.fixture(scope="module")
def cage(start_module_cage, echo, plain, pki):
    names = ["api", "token", "body", "git"]
    rules = [{"id": "vault", "hosts": [HOST], "ports": [80, 443], "secrets": names},
             {"id": "small", "hosts": [SMALL], "secrets": names, "limits": {"hold": HOLD}},
             {"id": "plain", "hosts": [PLAIN], "ports": [80], "secrets": ["token"], "plaintext": True},
             {"id": "other", "hosts": [OTHER]}]
    pins = {HOST: echo.origin.pin, OTHER: echo.origin.pin, SMALL: echo.origin.pin, PLAIN: plain.pin}
    return start_module_cage(policy(*rules, pins=pins, trust=[pki.ca_pem], secrets=secrets()), env=ENV)


def fetch(cage, method="GET", target="/", fields=(), body=b"", host=HOST):
    return cage.fetch(method, "https://%s%s" % (host, target), fields, body)


def arrived(echo):
    return echo.origin.requests[-1]


# ---- put in

def test_a_header_gets_the_value(cage, echo):
    assert fetch(cage, fields=[("X-Api-Key", P_KEY)]).status == 200
    assert arrived(echo).header("x-api-key") == KEY
    line = cage.log.wait(event="request", path="/", injected=["api"])
    assert line["decision"] == "allow"
    assert_unleaked(cage, *VALUES)


def test_authorization_like_headers_are_the_default(cage, echo):
    assert fetch(cage, fields=[("Authorization", "Bearer " + P_TOKEN)]).status == 200
    assert arrived(echo).header("authorization") == "Bearer " + TOKEN


def test_basic_is_decoded_and_encoded_again(cage, echo):
    basic = base64.b64encode(("user:" + P_USER).encode()).decode()
    assert fetch(cage, fields=[("Authorization", "Basic " + basic)]).status == 200
    scheme, sent = arrived(echo).header("authorization").split(" ")
    assert (scheme, base64.b64decode(sent).decode()) == ("Basic", "user:" + USER)


@pytest.mark.parametrize("written", [P_KEY, urllib.parse.quote(P_KEY, safe="")], ids=["raw", "encoded"])
def test_query_and_path(cage, echo, written):
    if written == P_KEY:
        written = written.replace("{", "%7B").replace("}", "%7d")  # braces can't stand raw in a target
    assert fetch(cage, target="/a/%s/b?x=1&key=%s&y=%%2F" % (written, written)).status == 200
    path, query = arrived(echo).target.split("?")
    assert [urllib.parse.unquote(s) for s in path.split("/")] == ["", "a", KEY, "b"]
    assert query == "x=1&key=%s&y=%%2F" % urllib.parse.quote(KEY, safe="")


@pytest.mark.parametrize("kind, make, read", [
    ("application/json", lambda p: json.dumps({"a": "x" + p + "y", "b": [p]}).encode(),
     lambda b, v: json.loads(b) == {"a": "x" + v + "y", "b": [v]}),
    ("application/x-www-form-urlencoded", lambda p: b"a=1&k=" + urllib.parse.quote(p, safe="").encode() + b"&z=2",
     lambda b, v: urllib.parse.parse_qs(b.decode()) == {"a": ["1"], "k": [v], "z": ["2"]}),
    ("text/plain", lambda p: b"key: " + p.encode() + b"\n", lambda b, v: b == b"key: " + v.encode() + b"\n"),
], ids=["json", "form", "text"])
@pytest.mark.parametrize("host", [HOST, SMALL])
@pytest.mark.parametrize("pad", [0, 200000], ids=["short", "long"])
def test_bodies(cage, echo, kind, make, read, host, pad):
    body = make(P_BODY)
    if kind == "application/json":
        body = b" " * pad + body
    elif pad:
        body = b"p=" + b"x" * pad + b"&" + body if "form" in kind else b"x" * pad + body
    assert fetch(cage, "POST", "/", [("Content-Type", kind)], body, host).status == 200
    got = arrived(echo).body
    assert P_BODY.encode() not in got
    if kind == "application/json":
        assert read(got, BODY)
    else:
        assert got.endswith(b"&z=2" if "form" in kind else BODY.encode() + b"\n")
        assert read(got[got.index(b"a=1&k="):] if "form" in kind else got[pad:], BODY)


def test_over_http_only_where_the_rule_says_so(cage, echo, plain):
    assert cage.fetch("GET", "http://%s/" % PLAIN, [("Authorization", P_TOKEN)]).status == 200
    assert plain.requests[-1].header("authorization") == TOKEN
    watch = Watch(echo.origin)
    refused(cage.fetch("GET", "http://%s/" % HOST, [("Authorization", P_TOKEN)]), "secret.misplaced", host=HOST)
    watch.assert_nothing_left()


# ---- T33: out of place

def misplaced(cage, origin, reason="secret.misplaced", host=HOST, **request):
    watch = Watch(origin)
    answer = fetch(cage, host=host, **request)
    refused(answer, reason, host=host)
    line = logged_block(cage, answer, host=host)
    assert any(f["inspector"] == "guard" and f["reason"] == reason for f in line["findings"]), line
    watch.assert_nothing_left()
    assert_unleaked(cage, *VALUES)
    return line


MANY = [("Accept", "*/*"), ("X-Before", "1"), ("Cookie", "a=1; b=2")]


@pytest.mark.parametrize("field, id_, reason, where", [
    (("X-Other", P_KEY), "api", "secret.misplaced", "header:X-Other"), (("x-api-key", P_BODY), "body", "secret.misplaced", "header:x-api-key"),
    (("X-Other", TOKEN), "token", "secret.leaked", "header:X-Other"), (("Authorization", "Bearer " + TOKEN), "token", "secret.leaked", "header:Authorization"),
    (("X-Other", "a " + base64.b64encode(b"u:" + P_USER.encode()).decode()), "git", "secret.misplaced", "header:X-Other"),
    (("Cookie", "c=" + P_TOKEN), "token", "secret.misplaced", "header:Cookie")], ids=["header", "slot", "value", "slot_value", "encoded", "cookie"])
@pytest.mark.parametrize("others", [[], MANY], ids=["alone", "among_others"])
def test_t33_the_log_names_the_field(cage, echo, field, id_, reason, where, others):
    """Once, however many ways of reading the head show it."""
    line = misplaced(cage, echo.origin, reason=reason, fields=[*others, field, *others[:1]])
    assert [(f["id"], f["reason"], f["where"]) for f in line["findings"] if f["inspector"] == "guard"] == [(id_, reason, where)]


def test_t33_the_log_names_no_field_whose_name_it_is(cage, echo):
    """Nor any other then: a secret is not written down, in whatever name it hides."""
    line = misplaced(cage, echo.origin, reason="secret.leaked", fields=[*MANY, ("X-" + TOKEN, "1"), ("X-Other", KEY)])
    assert {f["where"] for f in line["findings"] if f["inspector"] == "guard"} == {"header"}


def test_t33_what_is_split_over_fields_has_no_name(cage, echo):
    line = misplaced(cage, echo.origin, reason="secret.leaked", fields=[("X-One", TOKEN[:11]), ("X-Two", TOKEN[11:])])
    assert [f["where"] for f in line["findings"] if f["inspector"] == "guard"] == ["header"]


@pytest.mark.parametrize("request_", [
    {"fields": [("X-Other", P_KEY)]},
    {"fields": [(P_TOKEN.strip("{}").join(["x-", ""]), P_KEY)]},
    {"fields": [("Authorization", "Bearer " + P_KEY)]},  # a slot, but not its own
    {"fields": [("Cookie", "a=" + P_TOKEN)]},
    {"target": "/?other=%7B%7BAPI_KEY%7D%7D"},
    {"target": "/%7B%7BTOKEN%7D%7D"},
    {"method": "POST", "body": b'{"k": "' + P_TOKEN.encode() + b'"}'},
    {"method": "POST", "body": base64.b64encode(b"x" + P_BODY.encode())},
    {"method": "POST", "body": gzipped(P_BODY.encode()), "fields": [("Content-Encoding", "gzip")]},
    {"fields": [("X-Other", base64.b64encode(b"u:" + P_USER.encode()).decode())]},
    {"host": OTHER, "fields": [("X-Api-Key", P_KEY)]},
    {"host": OTHER, "fields": [("Authorization", "Basic " + base64.b64encode(("u:" + P_USER).encode()).decode())]},
    {"host": OTHER, "method": "POST", "body": b"file: " + P_BODY.encode()},
], ids=["header", "header_name", "other_slot", "cookie", "query", "path", "json", "base64", "gzip", "basic_elsewhere", "other_host",
        "basic_at_other_host", "upload"])
def test_t33_a_placeholder_out_of_place(cage, echo, request_):
    misplaced(cage, echo.origin, **request_)


def test_t33_observe_stops_it_too(start_cage, echo, pki):
    rules = [{"id": "vault", "hosts": [HOST], "secrets": ["token"]}, {"id": "other", "hosts": [OTHER]}]
    cage = start_cage(policy(*rules, pins={HOST: echo.origin.pin, OTHER: echo.origin.pin}, trust=[pki.ca_pem], mode="observe",
                             secrets=[secrets()[1]]), env=ENV)
    misplaced(cage, echo.origin, host=OTHER, fields=[("Authorization", P_TOKEN)])
    misplaced(cage, echo.origin, host=OTHER, fields=[("Authorization", TOKEN)], reason="secret.leaked")


@pytest.mark.parametrize("write", [
    lambda v: v, lambda v: percent(v.encode()).decode(), lambda v: base64_at(v.encode(), 1).decode(),
    lambda v: v.encode().hex(), lambda v: json_escaped(v.encode()).decode(), lambda v: v[::-1], lambda v: v.swapcase(),
    lambda v: v.encode("utf-16-le").hex(),
], ids=["plain", "percent", "base64", "hex", "json", "reversed", "case", "utf16_hex"])
@pytest.mark.parametrize("host", [HOST, OTHER])
def test_t33_a_value_on_its_way_out(cage, echo, write, host):
    misplaced(cage, echo.origin, reason="secret.leaked", host=host, method="POST", body=b"note " + write(TOKEN).encode() + b" end")


def test_t33_a_value_even_in_its_own_slot(cage, echo):
    misplaced(cage, echo.origin, reason="secret.leaked", fields=[("Authorization", "Bearer " + TOKEN)])


# ---- coming back

def forms(value):
    raw = value.encode()
    return {"plain": raw, "percent": urllib.parse.quote(value, safe="").encode(), "percent_all": percent(raw),
            "base64_0": base64.b64encode(raw), "base64_1": base64.b64encode(b"x" + raw), "base64_2": base64.b64encode(b"xy" + raw),
            "base64url": base64.urlsafe_b64encode(b"?" + raw), "json": json.dumps(value)[1:-1].encode(), "json_all": json_escaped(raw),
            "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode()}


def assert_clean(data, value):
    for form in forms(value).values():
        inner = form.rstrip(b"=")[4:-4] if len(form) > 40 else form
        assert inner not in data


@pytest.mark.parametrize("form", sorted(forms(TOKEN)))
@pytest.mark.parametrize("value, placeholder", [(TOKEN, P_TOKEN), (KEY, P_KEY)], ids=["token", "key"])
@pytest.mark.parametrize("host", [HOST, OTHER])
def test_t33_a_value_in_a_response(cage, echo, form, value, placeholder, host):
    written = forms(value)[form]
    before, after = b'{"you sent": "', b'", "and": "more"}'
    echo.answer = response_bytes(200, before + written + after, [("X-Echo", "a"), ("Content-Type", "text/plain")])
    path = "/back-%s-%s" % (form, "token" if value == TOKEN else "api")
    answer = fetch(cage, target=path, host=host)
    assert answer.status == 200
    assert answer.body.startswith(before) and answer.body.endswith(after)
    assert_clean(answer.body, value)
    if form == "plain":
        assert answer.body == before + placeholder.encode() + after
    if form == "base64_1":
        assert base64.b64decode(answer.body[len(before):-len(after)]) == b"x" + placeholder.encode()
    assert int(answer.header("content-length")) == len(answer.body)
    request = cage.log.wait(event="request", path=path, host=host)
    line = cage.log.wait(event="response", conn=request["conn"], txn=request["txn"])
    assert line["redacted"] == ["token" if value == TOKEN else "api"]


def test_t33_in_heads_and_trailers(cage, echo):
    head = (b"HTTP/1.1 302 Found\r\nLocation: https://evil.test/?k=" + TOKEN.encode() + b"\r\nX-Key: " + KEY.encode() +
            b"\r\nTransfer-Encoding: chunked\r\nTrailer: x-end\r\n\r\n")
    echo.answer = head + chunked(b"body", trailers=[("X-End", TOKEN)])
    wire = cage.tunnel(HOST)
    wire.request("GET", "/", [("Host", HOST), ("TE", "trailers")])
    answer = wire.read_response()
    assert answer.header("location") == "https://evil.test/?k=" + P_TOKEN
    assert answer.header("x-key") == P_KEY
    assert TOKEN.encode() not in bytes(wire.received)


def test_t33_in_the_names_of_heads_and_trailers(cage, echo):
    """A placeholder is no name: the field is left out."""
    echo.answer = (b"HTTP/1.1 200 OK\r\n" + TOKEN.encode() + b": 1\r\nTransfer-Encoding: chunked\r\n\r\n" +
                   chunked(b"body", trailers=[("X-" + TOKEN, "2"), ("X-End", "3")]))
    wire = cage.tunnel(HOST)
    wire.request("GET", "/names", [("Host", HOST), ("TE", "trailers")])
    assert wire.read_response().body == b"body"
    assert TOKEN.encode() not in bytes(wire.received)
    assert bytes(wire.received).endswith(b"0\r\nX-End: 3\r\n\r\n")
    request = cage.log.wait(event="request", path="/names")
    assert cage.log.wait(event="response", txn=request["txn"])["redacted"] == ["token"]


@pytest.mark.parametrize("coding, encode", [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_t33_in_a_coded_response(cage, echo, coding, encode):
    echo.answer = response_bytes(200, encode(b"see " + TOKEN.encode() + b"!"), [("Content-Encoding", coding)])
    answer = fetch(cage, fields=[("Accept-Encoding", "gzip, br")])
    assert answer.body == b"see " + P_TOKEN.encode() + b"!"
    assert not answer.has("content-encoding")
    assert arrived(echo).header("accept-encoding") == "gzip"


def test_t33_a_coding_that_nobody_can_undo(cage, echo):
    echo.answer = response_bytes(200, b"whatever", [("Content-Encoding", "rot13")])
    assert fetch(cage).status == 502


def grpc_message(data, flag=0):
    return bytes([flag]) + len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("kind", ["application/grpc", "application/grpc+proto", "application/grpc-web", "application/x-protobuf; x=y"])
def test_t33_lengths_inside_a_response_stay_true(cage, echo, kind):
    data = b"\x0a" + bytes([len(TOKEN)]) + TOKEN.encode() + b"\x10\x01"
    echo.answer = response_bytes(200, grpc_message(data) * 2, [("Content-Type", kind)])
    answer = fetch(cage, fields=[("grpc-accept-encoding", "identity, gzip")])
    assert answer.body == grpc_message(data.replace(TOKEN.encode(), b"*" * len(TOKEN))) * 2
    assert not arrived(echo).has("grpc-accept-encoding")


@pytest.mark.parametrize("body", [grpc_message(b"one") + grpc_message(gzip.compress(TOKEN.encode()), 1), grpc_message(b"", 2)],
                         ids=["compressed", "unknown flag"])
def test_t33_messages_that_nobody_can_read(cage, echo, body):
    """In a short response the refusal is clean; the log says that it was the server."""
    echo.answer = response_bytes(200, body, [("Content-Type", "application/grpc"), ("grpc-encoding", "gzip")])
    answer = fetch(cage)
    assert answer.status == 502
    assert cage.log.of(answer, event="response")["reason"] == "upstream.malformed"


ENVELOPED = ["application/grpc", "application/grpc-web", "application/grpc-web+proto", "application/connect+proto",
             "Application/Connect+json; charset=utf-8"]


@pytest.mark.parametrize("kind", ENVELOPED)
def test_t33_compressed_messages_of_every_kind(cage, echo, kind):
    """Not asked for, and refused; also one that is longer than a message of a request may be."""
    asked = [("grpc-accept-encoding", "gzip"), ("connect-accept-encoding", "gzip")]
    for fields in ([("Content-Type", kind)], [("Content-Type", "text/plain"), ("Content-Type", kind)]):
        for message in (grpc_message(gzip.compress(TOKEN.encode()), 1), b"\1\1\0\0\1" + gzip.compress(TOKEN.encode())):
            echo.answer = response_bytes(200, grpc_message(b"one") + message, [*fields, ("connect-content-encoding", "gzip")])
            answer = fetch(cage, fields=asked)
            assert answer.status == 502
            assert cage.log.of(answer, event="response")["reason"] == "upstream.malformed"
            assert not arrived(echo).has("grpc-accept-encoding") and not arrived(echo).has("connect-accept-encoding")


@pytest.mark.parametrize("kind", ENVELOPED)
@pytest.mark.parametrize("size", [0, 1 << 20], ids=["held", "flowing"])
def test_t33_a_value_over_the_end_of_a_message(cage, echo, kind, size):
    """What follows is no message: it does not go on."""
    body = grpc_message(b"." * size) + b"\0\0\0\0\5" + TOKEN.encode()
    echo.answer = response_bytes(200, body, [("Content-Type", kind)])
    wire = cage.tunnel(HOST)
    wire.request("GET", "/over", [("Host", HOST)])
    with contextlib.suppress(Truncated, OSError):
        assert wire.read_response().status == 502
    assert TOKEN[5:].encode() not in bytes(wire.received)
    request = cage.log.wait(event="request", path="/over")
    assert cage.log.wait(event="response", txn=request["txn"])["reason"] == "upstream.malformed"


@pytest.mark.parametrize("kind, flag", [("application/grpc-web+proto", 0x80), ("application/connect+json", 2)])
def test_t33_the_last_message_of_every_kind(cage, echo, kind, flag):
    echo.answer = response_bytes(200, grpc_message(b"one") + grpc_message(TOKEN.encode(), flag), [("Content-Type", kind)])
    assert fetch(cage).body == grpc_message(b"one") + grpc_message(b"*" * len(TOKEN), flag)
    echo.answer = response_bytes(200, grpc_message(gzip.compress(TOKEN.encode()), flag | 1), [("Content-Type", kind)])
    assert fetch(cage).status == 502


def test_t33_base64_of_messages(cage, echo):
    fields = [("Content-Type", "application/grpc-web-text")]
    text = base64.b64encode(grpc_message(b"x" + TOKEN.encode()))
    echo.answer = response_bytes(200, text, [*fields, ("grpc-encoding", "identity")])
    answer = fetch(cage)
    assert len(answer.body) == len(text)
    assert_clean(answer.body, TOKEN)
    echo.answer = response_bytes(200, base64.b64encode(grpc_message(gzip.compress(TOKEN.encode()), 1)),
                                 [*fields, ("grpc-encoding", "gzip")])
    answer = fetch(cage)
    assert answer.status == 502
    assert cage.log.of(answer, event="response")["reason"] == "upstream.malformed"


def test_t33_over_every_chunk_boundary(cage, echo):
    data = b"<<" + TOKEN.encode() + b">>"
    wire = cage.tunnel(HOST)
    for cut in range(1, len(data)):
        echo.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(data[:cut], data[cut:])
        assert wire.exchange("GET", "/", [("Host", HOST)]).body == b"<<" + P_TOKEN.encode() + b">>"


def test_t33_beyond_the_hold_it_goes_chunked(cage, echo):
    data = filler(300000) + TOKEN.encode() + filler(300000)
    echo.answer = response_bytes(200, data)
    answer = fetch(cage)
    assert not answer.has("content-length")
    assert answer.body == data.replace(TOKEN.encode(), P_TOKEN.encode())


def test_what_has_no_value_comes_unchanged(cage, echo):
    data = os.urandom(200000)
    for body in (b"", b"short", data):
        echo.answer = response_bytes(200, body)
        assert fetch(cage).body == body


def test_only_what_may_begin_a_value_is_kept_back(cage, echo):
    """An event of a stream arrives before the next one is sent."""
    step = threading.Semaphore(0)

    def stream(conn):
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in (b"data: one\n\n", b"data: " + TOKEN[:10].encode()):
            conn.send(chunked(part)[:-5])
            step.acquire(timeout=20)
        conn.send(chunked(b"\n\n", b"data: end\n\n"))

    echo.stream = stream
    wire = cage.tunnel(HOST)
    wire.request("GET", "/", [("Host", HOST)])
    wire.read_until(b"data: one\n\n")
    step.release()
    wire.read_until(b"data: ")
    assert TOKEN[:10].encode() not in bytes(wire.received)
    step.release()
    wire.read_until(b"data: end\n\n")
    assert TOKEN[:10].encode() in bytes(wire.received)


def test_rules_with_secrets_have_no_ranges(cage, echo):
    fetch(cage, fields=[("Range", "bytes=1-5"), ("If-Range", '"x"'), ("Accept-Encoding", "br")])
    assert not arrived(echo).has("range") and not arrived(echo).has("if-range")
    assert arrived(echo).header("accept-encoding") == "identity"
    fetch(cage, fields=[("Range", "bytes=1-5"), ("Accept-Encoding", "gzip")], host=OTHER)
    assert (arrived(echo).header("range"), arrived(echo).header("accept-encoding")) == ("bytes=1-5", "identity")


# ---- T34: nowhere else

def processes(cage):
    return [cage.pid, *children_of(cage.pid)]


def test_t34_not_in_proc(cage, echo):
    echo.answer = lambda request: response_bytes(200, bytes(request.head) + b"\n" + TOKEN.encode())
    for target in ("/one", "/two"):
        fetch(cage, "POST", target, [("Authorization", "Bearer " + P_TOKEN), ("X-Api-Key", P_KEY), ("Content-Type", "text/plain")],
              P_BODY.encode())
    cage.hang_up()
    for pid in processes(cage):
        for name in ("environ", "cmdline", "comm"):
            with open("/proc/%d/%s" % (pid, name), "rb") as f:
                data = f.read()
            for value in VALUES:
                assert value.encode() not in data, (pid, name)
    assert_unleaked(cage, *VALUES)
    said = cage.admin("/metrics").body + cage.admin("/healthz").body + cage.admin("/readyz").body
    assert not any(v.encode() in said for v in VALUES)


def in_memory(pid, value):
    """The mappings of a process in which the value stands."""
    found = []
    with open("/proc/%d/maps" % pid, encoding="ascii") as maps, open("/proc/%d/mem" % pid, "rb", 0) as mem:
        for line in maps:
            span, mode, _, _, _, *name = line.split(None, 5)
            if "r" not in mode:
                continue
            start, end = (int(x, 16) for x in span.split("-"))
            if end - start > 1 << 28:
                continue
            try:
                mem.seek(start)
                data = mem.read(end - start)
            except (OSError, ValueError, OverflowError):
                continue
            if value in data:
                found.append(name[0].strip() if name else "anonymous")
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="reads other processes' memory: root only")
def test_t34_in_memory_only_in_the_vault(start_cage, echo, pki, tmp_path):
    """From files: a sanitizer keeps a copy of the environment."""
    known = secrets()[:2]
    for secret, value in zip(known, (KEY, TOKEN)):
        path = tmp_path / secret["id"]
        path.write_text(value)
        secret["from"] = {"file": str(path)}
    rule = {"id": "vault", "hosts": [HOST], "secrets": ["api", "token"]}
    cage = start_cage(policy(rule, pins={HOST: echo.origin.pin}, trust=[pki.ca_pem], secrets=known))
    echo.answer = lambda request: response_bytes(200, b"you sent " + bytes(request.head))
    answer = fetch(cage, fields=[("Authorization", "Bearer " + P_TOKEN), ("X-Api-Key", P_KEY)])
    assert TOKEN.encode() not in answer.body
    fetch(cage, fields=[("Authorization", "Bearer x")])
    cage.hang_up()
    for pid in processes(cage):
        for value in (TOKEN, KEY):
            where = [name for name in in_memory(pid, value.encode()) if "cage-vault" not in name]
            assert not where, (pid, where)


def test_t34_not_in_a_refusal(cage, echo):
    answer = fetch(cage, fields=[("X-Other", TOKEN)])
    refused(answer, "secret.leaked")
    assert TOKEN.encode() not in answer.head + answer.body


# ---- require, rotation, sources that go away

@pytest.fixture
def file_cage(start_cage, echo, pki, tmp_path):
    path = tmp_path / "token"
    path.write_text("first-value-0123456789\n")
    rules = [{"id": "vault", "hosts": [HOST], "secrets": ["token"]}, {"id": "other", "hosts": [OTHER]}]
    secret = {"id": "token", "from": {"file": str(path)}, "placeholder": P_TOKEN, "require": True}
    cage = start_cage(policy(*rules, pins={HOST: echo.origin.pin, OTHER: echo.origin.pin}, trust=[pki.ca_pem], secrets=[secret]))
    cage.secret_path = path
    return cage


def test_a_slot_that_must_hold_the_placeholder(file_cage, echo):
    watch = Watch(echo.origin)
    for fields in ([("Authorization", "Bearer my-own-key")], [], [("X-Other", "1")]):
        refused(fetch(file_cage, fields=fields), "secret.slot", rule="vault")
    watch.assert_nothing_left()
    assert fetch(file_cage, fields=[("Authorization", "Bearer " + P_TOKEN)]).status == 200


def ask(cage, echo, wire=None):
    wire = wire or cage.tunnel(HOST)
    answer = wire.exchange("GET", "/", [("Host", HOST), ("Authorization", P_TOKEN)])
    return answer, echo.origin.requests[-1].header("authorization") if answer.status == 200 else None


def test_a_file_that_changes(file_cage, echo):
    wire = file_cage.tunnel(HOST)
    assert ask(file_cage, echo, wire)[1] == "first-value-0123456789"
    file_cage.secret_path.write_text("second-value-9876543210")
    wait_until(lambda: ask(file_cage, echo, wire)[1] == "second-value-9876543210", 20, "the new value is not used")
    for value in (b"first-value-0123456789", b"second-value-9876543210"):
        echo.answer = response_bytes(200, b"<" + value + b">")
        assert ask(file_cage, echo, wire)[0].body == b"<" + P_TOKEN.encode() + b">"


def test_a_file_that_goes_away(file_cage, echo):
    assert ask(file_cage, echo)[0].status == 200
    kept = file_cage.secret_path.read_text()
    file_cage.secret_path.unlink()
    wait_until(lambda: ask(file_cage, echo)[0].status == 503, 20, "requests still go")
    watch = Watch(echo.origin)
    refused(ask(file_cage, echo)[0], "secret.unavailable", status=503)
    watch.assert_nothing_left()
    assert fetch(file_cage, host=OTHER).status == 200
    file_cage.secret_path.write_text(kept)
    wait_until(lambda: ask(file_cage, echo)[0].status == 200, 20, "it does not come back")


# ---- what an attacker has found

def test_a_coded_response_of_any_size(cage, echo):
    for size in (5000, 9000, 70000, 3000000):
        data = os.urandom(size)
        coded = gzip.compress(data)
        for answer in (response_bytes(200, coded, [("Content-Encoding", "gzip")]),
                       b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" +
                       chunked(*[coded[i:i + 5000] for i in range(0, len(coded), 5000)])):
            echo.answer = answer
            assert fetch(cage).body == data
    echo.answer = response_bytes(200, gzip.compress(b"a" * 5000000), [("Content-Encoding", "gzip")])  # short only while it is coded
    assert fetch(cage).body == b"a" * 5000000


def test_more_coded_responses_than_can_be_undone(cage, echo):
    """Beyond the bound they are refused, and nothing breaks."""
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    step = threading.Semaphore(0)

    def stream(conn):
        conn.send(head + chunked(gzip.compress(b"x" * 100)[:10])[:-5])
        step.acquire(timeout=20)
        conn.send(chunked(gzip.compress(b"x" * 100)[10:]))

    echo.stream = stream
    wires = [cage.tunnel(HOST) for _ in range(70)]
    for wire in wires:
        wire.request("GET", "/many", [("Host", HOST)])
    wait_until(lambda: len(cage.log.find(event="response", reason="limit.hold")) >= 6, 20, "nothing was refused")
    for _ in wires:
        step.release()
    bodies = [wire.read_response() for wire in wires]
    assert sorted({r.status for r in bodies}) == [200, 503]
    assert all(r.body == b"x" * 100 for r in bodies if r.status == 200)
    echo.stream = None
    assert fetch(cage).status == 200


def test_a_value_that_changes_during_a_request(file_cage, echo):
    second = "second-value-9876543210"
    echo.answer = lambda request: response_bytes(200, b"<" + request.header("authorization").encode() + b">")
    wire = file_cage.tunnel(HOST)
    wire.request("POST", "/", [("Host", HOST), ("Authorization", P_TOKEN), ("Content-Length", "4")])
    file_cage.secret_path.write_text(second)
    wait_until(lambda: ask(file_cage, echo)[0].body == b"<" + P_TOKEN.encode() + b">" and
               echo.origin.requests[-1].header("authorization") == second, 20, "the new value is not used")
    wire.send(b"body")
    assert wire.read_response().body == b"<" + P_TOKEN.encode() + b">"


def test_a_value_that_changes_during_a_response(file_cage, echo):
    second, step = "second-value-9876543210", threading.Semaphore(0)

    def stream(conn):
        conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"begin ")[:-5])
        step.acquire(timeout=30)
        conn.send(chunked(second.encode() + b" end"))

    echo.stream = stream
    wire = file_cage.tunnel(OTHER)
    wire.request("GET", "/", [("Host", OTHER)])
    wire.read_until(b"begin ")
    echo.stream = None
    file_cage.secret_path.write_text(second)
    wait_until(lambda: ask(file_cage, echo)[1] == second, 20, "the new value is not used")
    step.release()
    wire.read_until(b"\r\n0\r\n\r\n")
    assert second.encode() not in bytes(wire.received) and P_TOKEN.encode() in bytes(wire.received)


def test_a_head_that_grows_too_long_is_not_cut(start_cage, echo, pki, tmp_path):
    (tmp_path / "k").write_text("abcdefgh")
    secret = {"id": "k", "from": {"file": str(tmp_path / "k")}}  # what stands for it is five times as long
    rule = {"id": "vault", "hosts": [HOST], "secrets": ["k"]}
    cage = start_cage(policy(rule, pins={HOST: echo.origin.pin}, trust=[pki.ca_pem], secrets=[secret]))
    fields = b"".join(b"X-%03d: %s\r\n" % (i, b"abcdefgh" * 40) for i in range(150))
    echo.answer = b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: 4\r\n\r\nbody"
    answer = fetch(cage)
    assert answer.status == 502 and b"abcdefgh" not in answer.head + answer.body
    echo.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n" + fields[:fields.index(b"X-045")] + b"\r\n"
    wire = cage.tunnel(HOST)
    wire.request("GET", "/", [("Host", HOST)])
    with pytest.raises((OSError, Truncated)):
        wire.read_head()
        wire.read_exact(1 << 20)
    assert b"abcdefgh" not in bytes(wire.received)


def test_a_body_full_of_placeholders(cage, echo):
    watch = Watch(echo.origin)
    for host in (HOST, SMALL):
        for pad in (0, 2 * HOLD):
            body = b" " * pad + P_BODY.encode() * 100
            wire = cage.tunnel(host)
            wire.request("POST", "/", [("Host", host), ("Content-Type", "text/plain")], body)
            refused(wire.read_response(), "body.too_large")
    watch.assert_no_request()


@pytest.mark.parametrize("kind, before", [("text/plain", b'"\\u00'), ("text/plain", b'"\\'), ("text/plain", b"a=%"),
                                          ("application/json", b'"a%2'), ("application/x-www-form-urlencoded", b"a=\\u")])
def test_no_value_becomes_part_of_an_escape(cage, echo, kind, before):
    fetch(cage, "POST", "/", [("Content-Type", kind)], before + P_BODY.encode() + b'"')
    assert BODY.encode()[:10] not in arrived(echo).body


@pytest.mark.parametrize("fields, body", [
    ([("Content-Type", "application/json; charset=utf-16")], P_BODY.encode()),
    ([("Content-Type", "text/plain"), ("Content-Type", "application/json")], P_BODY.encode()),
    ([("Content-Type", "application/json")], P_BODY.encode() + b"\0"),
], ids=["charset", "two_types", "nul"])
def test_bodies_that_can_be_read_in_other_ways(cage, echo, fields, body):
    watch = Watch(echo.origin)
    refused(fetch(cage, "POST", "/", fields, body), {"secret.misplaced", "secret.slot"})
    watch.assert_no_request()


@pytest.mark.parametrize("value", ["Bearer mine " + P_TOKEN, P_TOKEN + "x", "Basic " + base64.b64encode(("a" + P_TOKEN).encode()).decode()])
def test_a_required_slot_holds_nothing_else(file_cage, echo, value):
    watch = Watch(echo.origin)
    refused(fetch(file_cage, fields=[("Authorization", value)]), "secret.slot")
    refused(fetch(file_cage, fields=[("Authorization", P_TOKEN), ("X_Auth_Token", "mine")]), "secret.slot")
    watch.assert_nothing_left()


def test_a_secret_that_a_reload_takes_away_is_still_known(file_cage, echo, pki):
    assert ask(file_cage, echo)[0].status == 200
    first = b"first-value-0123456789"
    rules = [{"id": "vault", "hosts": [HOST], "secrets": ["new"]}, {"id": "other", "hosts": [OTHER]}]
    path = file_cage.secret_path.with_name("new")
    path.write_text("new-value-aaaabbbbcccc")
    file_cage.reload(policy(*rules, pins={HOST: echo.origin.pin, OTHER: echo.origin.pin}, trust=[pki.ca_pem],
                            secrets=[{"id": "new", "from": {"file": str(path)}}]))
    echo.answer = response_bytes(200, b"<" + first + b">")
    assert fetch(file_cage, host=OTHER).body == b"<cage-redacted>"
    refused(fetch(file_cage, "POST", body=first, host=OTHER), "secret.leaked")


def test_what_goes_into_a_streamed_body_is_logged(cage, echo):
    body = b"x" * (2 * HOLD) + P_BODY.encode()
    assert fetch(cage, "POST", "/streamed", [("Content-Type", "text/plain")], body, SMALL).status == 200
    assert arrived(echo).body.endswith(BODY.encode())
    request = cage.log.wait(event="request", path="/streamed")
    assert cage.log.wait(event="response", conn=request["conn"], txn=request["txn"])["injected"] == ["body"]


def test_what_was_taken_out_of_a_response_that_is_cut_is_logged(cage, echo):
    step = threading.Semaphore(0)

    def stream(conn):
        conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"a " + TOKEN.encode() + b" b")[:-5])
        step.acquire(timeout=30)

    echo.stream = stream
    wire = cage.tunnel(HOST)
    wire.request("GET", "/cut", [("Host", HOST)])
    wire.read_until(P_TOKEN.encode())
    wire.close()
    request = cage.log.wait(event="request", path="/cut")
    assert cage.log.wait(event="response", conn=request["conn"], txn=request["txn"])["redacted"] == ["token"]
    step.release()


def test_parts_that_nobody_asked_for(cage, echo):
    echo.answer = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/10\r\nContent-Length: 4\r\n\r\nabcd"
    assert fetch(cage, fields=[("Request-Range", "bytes=0-3")]).status == 502
    assert not arrived(echo).has("request-range")
    assert fetch(cage, host=OTHER).status == 206


def test_every_secret_that_was_taken_out_is_logged(cage, echo):
    echo.answer = response_bytes(200, b"nothing", [("X-A", TOKEN), ("X-B", "clean"), ("X-C", KEY), ("X-D", "clean")])
    assert fetch(cage, target="/logged").status == 200
    request = cage.log.wait(event="request", path="/logged")
    assert cage.log.wait(event="response", conn=request["conn"], txn=request["txn"])["redacted"] == ["api", "token"]
