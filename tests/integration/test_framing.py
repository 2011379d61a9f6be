"""Requests that two readers could read in two ways (THREATS T01, T05, T20-T22): refused with a 400, and nothing of them
leaves. Each is tried inside TLS and in the plain."""
import pytest
from cagelib.checks import logged_block, refused
from cagelib.proxy import policy
from cagelib.raw import RawOrigin

# name, reason, head and body as sent; HOST stands for the host's name
CASES = [
    ("t22_length_and_chunked", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("t22_two_lengths", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
    ("t22_same_length_twice", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    ("t22_list_of_lengths", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5, 5\r\n\r\nhello"),
    ("t22_length_with_plus", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: +5\r\n\r\nhello"),
    ("t22_length_in_hex", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0x5\r\n\r\nhello"),
    ("t22_length_overflows", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 18446744073709551621\r\n\r\nhello"),
    ("t22_chunked_twice", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    ("t22_gzip_chunked", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("t22_identity", "framing.ambiguous", "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: identity\r\n\r\n"),
    ("t22_chunked_in_http10", "framing.ambiguous", "POST / HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("t22_blank_before_colon", "head.malformed", "GET / HTTP/1.1\r\nHost: HOST\r\nX-A : 1\r\n\r\n"),
    ("t22_folded_line", "head.malformed", "GET / HTTP/1.1\r\nHost: HOST\r\nX-A: 1\r\n 2\r\n\r\n"),
    ("t22_bare_lf", "head.malformed", "GET / HTTP/1.1\nHost: HOST\n\n"),
    ("t22_bare_cr", "head.malformed", "GET / HTTP/1.1\r\nHost: HOST\r\nX-A: 1\r2\r\n\r\n"),
    ("t22_nul_in_a_field", "head.malformed", "GET / HTTP/1.1\r\nHost: HOST\r\nX-A: 1\0\r\n\r\n"),
    ("t22_http_2_version", "head.malformed", "GET / HTTP/2.0\r\nHost: HOST\r\n\r\n"),
    ("t22_no_version", "head.malformed", "GET /\r\n\r\n"),
    ("t22_field_without_colon", "head.malformed", "GET / HTTP/1.1\r\nHost: HOST\r\nnothing\r\n\r\n"),
    ("t22_two_blanks", "head.malformed", "GET  / HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    ("t09_two_hosts", "head.malformed", "GET / HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n"),
    ("t09_no_host", "head.malformed", "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n"),
    ("t01_nul_in_host", "head.malformed", "GET / HTTP/1.1\r\nHost: HOST\0.evil.test\r\n\r\n"),
    ("t05_fragment", "target.malformed", "GET /a#b HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    ("t05_backslash", "target.malformed", "GET /a\\b HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    ("t05_userinfo_in_host", "target.malformed", "GET / HTTP/1.1\r\nHost: user@HOST\r\n\r\n"),
    ("t20_climbs_above_the_root", "target.malformed", "GET /../etc HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    ("t20_broken_escape", "target.malformed", "GET /%zz HTTP/1.1\r\nHost: HOST\r\n\r\n"),
    ("t20_escaped_nul", "target.malformed", "GET /a%00b HTTP/1.1\r\nHost: HOST\r\n\r\n"),
]
# One cause may be named in two ways, depending on which check meets it first.
ALSO = {"head.malformed": {"head.malformed", "target.malformed"}, "target.malformed": {"target.malformed", "head.malformed"},
        "framing.ambiguous": {"framing.ambiguous"}}


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf("raw.test")) as running:
        yield running


@pytest.fixture(scope="module")
def cage(start_module_cage, origin, pki):
    return start_module_cage(policy({"id": "raw", "hosts": ["raw.test"]}, pins={"raw.test": origin.pin}, trust=[pki.ca_pem]))


@pytest.mark.parametrize("name, reason, head", CASES, ids=[c[0] for c in CASES])
def test_refused(cage, origin, name, reason, head):
    wire = cage.tunnel("raw.test")
    wire.send(head.replace("HOST", "raw.test").encode("latin-1"))
    answer = wire.read_response()
    refused(answer, ALSO[reason], status=400)
    assert wire.read_until_closed() == b""  # nothing after it is read as another request
    logged_block(cage, answer)
    assert not origin.conns


@pytest.mark.parametrize("name, body", [
    ("t22_size_overflows", b"ffffffffffffffff1\r\nx\r\n0\r\n\r\n"),
    ("t22_size_with_sign", b"+3\r\nabc\r\n0\r\n\r\n"),
    ("t22_size_with_blank", b"3 \r\nabc\r\n0\r\n\r\n"),
    ("t22_size_with_prefix", b"0x3\r\nabc\r\n0\r\n\r\n"),
    ("t22_no_size", b"\r\nabc\r\n0\r\n\r\n"),
    ("t22_data_longer_than_size", b"3\r\nabcd\r\n0\r\n\r\n"),
    ("t22_bare_lf_after_size", b"3\nabc\r\n0\r\n\r\n"),
    ("t22_newline_in_extension", b"3;a=\"\n\"\r\nabc\r\n0\r\n\r\n"),
    ("t22_length_in_trailers", b"3\r\nabc\r\n0\r\nContent-Length: 5\r\n\r\n"),
    ("t23_host_in_trailers", b"3\r\nabc\r\n0\r\nHost: evil.test\r\n\r\n"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_refused_body(cage, origin, name, body):
    wire = cage.tunnel("raw.test")
    wire.request("POST", "/", [("Host", "raw.test"), ("Transfer-Encoding", "chunked")]).send(body)
    answer = wire.read_response()
    refused(answer, {"body.malformed", "framing.ambiguous", "head.malformed"}, status=400)
    assert wire.read_until_closed() == b""
    logged_block(cage, answer)
    assert b"abc" not in origin.received


def test_t22_a_request_hidden_in_a_body_stays_a_body(cage, origin):
    hidden = b"GET /hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    wire = cage.tunnel("raw.test")
    assert wire.exchange("POST", "/carrier", [("Host", "raw.test")], hidden).status == 200
    assert wire.exchange("GET", "/next", [("Host", "raw.test")]).status == 200
    assert [(r.target, r.body) for r in origin.requests[-2:]] == [("/carrier", hidden), ("/next", b"")]


def test_t24_a_head_too_large(cage, origin):
    before = len(origin.requests)
    wire = cage.tunnel("raw.test")
    try:
        wire.request("GET", "/", [("Host", "raw.test"), ("X-Long", "x" * 70000)])
    except OSError:
        pass  # it may be refused while we still send
    answer = wire.read_response()
    refused(answer, "head.too_large", status=431)
    logged_block(cage, answer)
    assert len(origin.requests) == before
