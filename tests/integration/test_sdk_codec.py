"""The codec of the Python client, on bytes alone: answers fed whole and byte by byte, too long, cut short, and lying about their length."""
import base64
import hashlib
import json
import os
import sys

import pytest

from cagelib.sdk import SDK

sys.path.insert(0, os.path.join(SDK, "src"))

from cage import _http1  # noqa: E402
from cage._calls import artifact, following, shell_text  # noqa: E402
from cage._follow import LogFollower, OutputFollower  # noqa: E402
from cage._http1 import ResponseReader, request_bytes  # noqa: E402
from cage._place import find_place  # noqa: E402
from cage._sse import MAX_EVENT, EventReader  # noqa: E402
from cage.errors import Broken, CommandFailed, ProtocolError, api_error  # noqa: E402
from cage.models import ExecResult, Page, SandboxInfo, WorkflowPage  # noqa: E402

OK = b"HTTP/1.1 200 OK\r\n"
MOST = 1 << 20


def read(data, step=None, most=MOST):
    """(status, body) of a whole answer."""
    reader, body = ResponseReader(most), b""
    step = step or max(len(data), 1)
    for at in range(0, len(data), step):
        body += reader.feed(data[at:at + step])
    reader.feed_eof()
    return reader.head.status, body


GOOD = {
    "length": (OK + b"Content-Length: 5\r\n\r\nhello", (200, b"hello")),
    "empty": (OK + b"content-length:0\r\n\r\n", (200, b"")),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nX: y\r\n\r\n", (200, b"hello!")),
    "interim": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", (200, b"x")),
    "no phrase": (b"HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", (404, b"")),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", (200, b"x")),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("step", [None, 1, 2, 3, 7])
def test_good_answers_in_any_pieces(name, step):
    data, expected = GOOD[name]
    assert read(data, step) == expected


BAD = {
    "no HTTP": b"SSH-2.0-x\r\n",
    "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "status": b"HTTP/1.1 20 OK\r\n\r\n",
    "bare LF": b"HTTP/1.1 200 OK\n\n",
    "space before colon": OK + b"Content-Length : 1\r\n\r\nx",
    "folded": OK + b"X: a\r\n b\r\n\r\n",
    "no colon": OK + b"nothing\r\n\r\n",
    "CR in a value": OK + b"X: a\rb\r\n\r\n",
    "NUL in a value": OK + b"X: a\0b\r\n\r\n",
    "two lengths": OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "length and chunks": OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "other coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "signed length": OK + b"Content-Length: +1\r\n\r\nx",
    "negative length": OK + b"Content-Length: -1\r\n\r\nx",
    "listed length": OK + b"Content-Length: 1, 1\r\n\r\nx",
    "huge length": OK + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
    "more than taken": OK + b"Content-Length: %d\r\n\r\n" % (MOST + 1),
    "longer than it says": OK + b"Content-Length: 1\r\n\r\nxy",
    "chunk longer than it says": OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
    "chunk size": OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "chunk size with 0x": OK + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
    "behind the last chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1",
    "204 with a body": b"HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\nx",
    "no length": OK + b"Connection: close\r\n\r\nx",
    "chunks of HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "switched": b"HTTP/1.1 101 Switching\r\n\r\n",
    "interim without end": b"HTTP/1.1 102 Processing\r\n\r\n" * (_http1.MAX_INTERIM + 1),
    "long line": OK + b"X: " + b"y" * _http1.MAX_LINE + b"\r\n\r\n",
    "line without end": b"HTTP/1.1 200 " + b"y" * _http1.MAX_LINE,
    "large head": OK + b"".join(b"X%d: %s\r\n" % (i, b"y" * 4000) for i in range(9)) + b"\r\n",
    "many fields": OK + b"X: y\r\n" * (_http1.MAX_FIELDS + 1) + b"\r\n",
    "many trailers": OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * (_http1.MAX_FIELDS + 1) + b"\r\n",
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("step", [None, 1])
def test_what_is_no_good_answer_is_refused(name, step):
    with pytest.raises(ProtocolError):
        read(BAD[name], step)


@pytest.mark.parametrize("name", GOOD)
def test_an_answer_that_is_cut_short_is_never_a_shorter_one(name):
    data, _ = GOOD[name]
    for n in range(len(data)):
        with pytest.raises(Broken):
            read(data[:n])


def test_a_body_in_chunks_is_bounded_as_it_comes():
    reader = ResponseReader(1024)
    reader.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n400\r\n" + b"x" * 1024 + b"\r\n401\r\n")
    with pytest.raises(ProtocolError, match="more than 1024 bytes"):
        reader.feed(b"y")


def test_requests_hold_no_more_than_one():
    for method, target, headers in (("GET", "/a b", {}), ("GET", "/a\r\nX: y", {}), ("GET", "/", {"X": "a\r\nb"}), ("GET", "/", {"X\r\n": "a"}), ("GET", "/é", {})):
        with pytest.raises(ValueError):
            request_bytes(method, target, headers, None)
    assert request_bytes("PUT", "/x", {"Host": "h"}, 3) == b"PUT /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 3\r\n\r\n"


EVENTS = b":\n\nevent: stdout\ndata: \"a\"\n\n: beat\n\nevent:stderr\r\ndata:\"\xc3\xa9\"\r\n\r\ndata: one\ndata: two\nid: 3\n\nevent: none\n\ndata: half"


@pytest.mark.parametrize("step", [1, 2, 5, 1000])
def test_events_in_any_pieces(step):
    reader, got = EventReader(), []
    for at in range(0, len(EVENTS), step):
        got += reader.feed(EVENTS[at:at + step])
    assert got == [("stdout", '"a"'), ("stderr", '"é"'), ("message", "one\ntwo")]


@pytest.mark.parametrize("data", [b"data: " + b"x" * MAX_EVENT, (b"data: " + b"x" * 1000 + b"\n") * (MAX_EVENT // 1000 + 1),
                                  b"data:\n" * (MAX_EVENT + 1)])
def test_events_are_bounded(data):
    with pytest.raises(ProtocolError):
        EventReader().feed(data)


def event(name, value):
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json.dumps(value).encode())


def test_an_output_that_is_told_again_is_told_once():
    follower = OutputFollower("sb-1", "both")
    first = [follower.feed(event("stdout", "ab") + event("stderr", "x"))]
    follower.begin()
    again = follower.feed(event("stdout", "ab") + event("stderr", "x") + event("stdout", "c") + event("stderr", "y"))
    assert [str(p) for p in first[0]] == ["ab", "x"] and [(p.stream, p.text) for p in again] == [("stdout", "c"), ("stderr", "y")]
    assert not follower.over
    follower.feed(event("end", {"state": "succeeded"}))
    assert follower.over


def test_lines_of_a_log_that_are_told_again_are_told_once():
    line = '{"schema":"cage.log/1","ts":"2026-01-02T03:04:05.000006Z","seq":%d,"event":"tool"}'
    follower = LogFollower("sb-1", "proxy", True)
    data = b"".join(b"data: %s\n\n" % (line % n).encode() for n in (1, 2, 3))
    assert [d.seq for d in follower.feed(data[:-30])] == [1, 2]
    follower.begin()
    assert [(d.seq, d.at.microsecond) for d in follower.feed(data)] == [(3, 6)]


def test_a_refusal_that_is_no_problem_still_has_its_status():
    for body in (b"", b"<html>", b"[1]", b'{"title": 3, "errors": [1, {"detail": null}]}', b"[" * 100000):
        assert api_error(503, {"x-request-id": "r-1"}, body).request_id == "r-1"


def test_messages_do_not_move_the_cursor():
    wrong = CommandFailed(ExecResult(1, None, "", "a\x1b[2J\u202eb\né\n", False, False))
    assert str(wrong) == "exit code 1: a\\x1b[2J\\u202eb\\né" and wrong.result.stderr.startswith("a\x1b")
    refused = api_error(422, {}, json.dumps({"title": "T", "errors": [{"pointer": "/x", "detail": "\x1b]0;t\x07"}]}).encode())
    assert str(refused) == "T; /x: \\x1b]0;t\\x07"


@pytest.mark.parametrize("row", [{}, [], None, 1, "x", {"id": 1}, {"id": "a", "state": "x", "reason": "", "labels": {}, "created_at": "2026-13-01T00:00:00Z"},
                                 {"id": "a", "state": "x", "reason": "", "labels": {"a": 1}, "created_at": "2026-01-01T00:00:00Z"},
                                 {"id": "\ud800", "state": "x", "reason": "", "labels": {}, "created_at": "2026-01-01T00:00:00Z"},
                                 {"id": "a", "state": "x", "reason": "", "labels": {"a": "\udfff"}, "created_at": "2026-01-01T00:00:00Z"}])
def test_what_is_no_sandbox_is_refused(row):
    with pytest.raises(ProtocolError):
        SandboxInfo.of(row)


@pytest.mark.parametrize("make", [Page, WorkflowPage])
def test_pages_have_an_end(make):
    assert following(make([], None), "a") is None and following(make([1], "b"), "a") == "b"
    for page in (make([], "b"), make([1], "a")):
        with pytest.raises(ProtocolError):
            following(page, "a")


def test_an_artifact_has_its_digest():
    call = artifact("w", "s", "p")
    good = "sha-256=:%s:" % base64.b64encode(hashlib.sha256(b"one").digest()).decode()
    assert call.result({"repr-digest": good}, b"one") == b"one"
    for headers in ({}, {"repr-digest": ""}, {"repr-digest": "sha-256=:AAAA:"}, {"repr-digest": good + ", " + good}):
        with pytest.raises(ProtocolError, match="SHA-256"):
            call.result(headers, b"one")
    with pytest.raises(ProtocolError, match="SHA-256"):
        call.result({"repr-digest": good}, b"two")


@pytest.mark.parametrize("text,hour", [("2026-01-01T10:00:00Z", 10), ("2026-01-01T10:00:00.123456789+02:00", 8), ("2026-01-01t10:00:00.5-03:00", 13)])
def test_times(text, hour):
    got = SandboxInfo.of({"id": "a", "state": "x", "reason": "", "labels": {}, "created_at": text}).created_at
    assert (got.hour, got.utcoffset().total_seconds()) == (hour, 0)


def test_where_the_service_is():
    env = {"HOME": "/h", "CAGE_STATE": "/s"}
    assert find_place(None, None, None, None, env).path == "/s/socket"
    assert find_place(None, None, None, None, {**env, "CAGE_SOCKET": "/other"}).path == "/other"
    assert find_place("/mine", None, None, None, {**env, "CAGE_SOCKET": "/other"}).path == "/mine"
    place = find_place(None, "http://[::1]:80/", "hunter2hunter2", None, env)
    assert (place.address, place.port, place.host) == ("::1", 80, "[::1]:80") and "hunter2" not in repr(place)
    assert find_place(None, "http://localhost:1", None, None, {"CAGE_TOKEN": "t"}).headers() == {"Host": "localhost:1", "Authorization": "Bearer t"}


@pytest.mark.parametrize("given", [
    dict(url="https://127.0.0.1:1", token="t"), dict(url="http://example.com:1", token="t"), dict(url="http://127.0.0.1", token="t"), dict(url="http://127.0.0.1:0", token="t"),
    dict(url="http://127.0.0.1:65536", token="t"), dict(url="http://1.2.3:1", token="t"), dict(url="http://u:p@127.0.0.1:1", token="t"), dict(url="http://127.0.0.1:1"),
    dict(url="http://127.0.0.1:1", token="a\nb"), dict(url="http://127.0.0.1:1", token=""), dict(url="http://127.0.0.1:1", token="t", socket="/s"), dict(token="t")])
def test_places_that_can_not_be_meant(given):
    whole = {"socket": None, "url": None, "token": None, "token_file": None, **given}
    with pytest.raises(ValueError) as caught:
        find_place(env={"HOME": "/h"}, **whole)
    assert "a\nb" not in str(caught.value) and "u:p" not in str(caught.value)


def test_words_of_a_command():
    assert shell_text(["ls | wc -l"]) == "ls | wc -l"
    assert shell_text(["echo", "a  'b'", "$x"]) == "echo 'a  '\"'\"'b'\"'\"'' '$x'"
    with pytest.raises(ValueError):
        shell_text([])
