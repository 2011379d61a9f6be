"""gRPC with the real library on both sides, through interception: calls of all kinds, status, trailers and deadlines; and
what the inspectors see of its messages."""
import gzip
import os
import threading
from concurrent import futures

import grpc
import pytest

from cagelib.checks import logged_block, refused
from cagelib.content import assert_unleaked, github_pat
from cagelib.h2 import H2Client
from cagelib.proxy import policy

HOST = "grpc.test"
SERVICE = "cage.Echo"


class Echo:
    """A server whose messages are plain bytes."""

    def __init__(self, leaf):
        self.messages, self.remaining, self.released = [], [], threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {
            "Unary": grpc.unary_unary_rpc_method_handler(self.unary),
            "Down": grpc.unary_stream_rpc_method_handler(self.down),
            "Up": grpc.stream_unary_rpc_method_handler(self.up),
            "Both": grpc.stream_stream_rpc_method_handler(self.both),
            "Fail": grpc.unary_unary_rpc_method_handler(self.fail),
            "Slow": grpc.unary_unary_rpc_method_handler(self.slow)})])
        with open(leaf.key, "rb") as key, open(leaf.cert, "rb") as cert:
            credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
        self.port = self.server.add_secure_port("127.0.0.1:0", credentials)
        self.server.start()

    def unary(self, message, context):
        self.messages.append(message)
        context.set_trailing_metadata((("x-sum", str(len(message))),))
        return b"got " + message

    def down(self, message, _context):
        for i in range(int(message)):
            yield b"%d" % i

    def up(self, messages, _context):
        return b",".join(messages)

    def both(self, messages, _context):
        for message in messages:
            yield b"re " + message

    def fail(self, _message, context):
        context.set_trailing_metadata((("x-why", "because"),))
        context.abort(grpc.StatusCode.NOT_FOUND, "there is no such thing")

    def slow(self, _message, context):
        self.remaining.append(context.time_remaining())
        self.released.wait(20)
        return b"late"


@pytest.fixture(scope="module")
def echo(pki):
    running = Echo(pki.leaf(HOST))
    yield running
    running.released.set()
    running.server.stop(None)


@pytest.fixture(scope="module")
def cage(start_module_cage, echo, pki):
    return start_module_cage(policy({"id": "g", "hosts": [HOST]}, pins={HOST: "127.0.0.1:%d" % echo.port},
                                    trust=[pki.ca_pem]))


@pytest.fixture
def channel(cage, monkeypatch):
    for name in ("https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:%d" % cage.port)
    assert os.environ["grpc_proxy"]
    with open(cage.ca_pem, "rb") as ca:
        credentials = grpc.ssl_channel_credentials(ca.read())
    with grpc.secure_channel("%s:443" % HOST, credentials, options=[("grpc.use_local_subchannel_pool", 1)]) as opened:
        yield opened


def path(method):
    return "/%s/%s" % (SERVICE, method)


def test_unary_with_trailers(channel, cage):
    reply, call = channel.unary_unary(path("Unary")).with_call(b"hello", timeout=20)
    assert reply == b"got hello"
    assert call.code() is grpc.StatusCode.OK
    assert ("x-sum", "5") in call.trailing_metadata()
    line = cage.log.wait(event="request", path=path("Unary"))
    assert (line["decision"], line["alpn"]) == ("allow", "h2")


def test_streams(channel):
    assert list(channel.unary_stream(path("Down"))(b"100", timeout=20)) == [b"%d" % i for i in range(100)]
    assert channel.stream_unary(path("Up"))(iter([b"a", b"b", b"c"]), timeout=20) == b"a,b,c"
    assert list(channel.stream_stream(path("Both"))(iter([b"1", b"2"]), timeout=20)) == [b"re 1", b"re 2"]


def test_many_messages_beyond_the_hold(channel):
    pieces = [b"%06d." % i * 5000 for i in range(100)]
    assert channel.stream_unary(path("Up"))(iter(pieces), timeout=60) == b",".join(pieces)


def test_a_status_with_its_details(channel):
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary(path("Fail"))(b"", timeout=20)
    assert failed.value.code() is grpc.StatusCode.NOT_FOUND
    assert failed.value.details() == "there is no such thing"
    assert ("x-why", "because") in failed.value.trailing_metadata()


def test_a_deadline_reaches_the_server(channel, echo):
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary(path("Slow"))(b"", timeout=1.5)
    assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert 0 < echo.remaining[-1] <= 1.5


def test_compressed_messages_pass(channel, echo):
    message = b"compress me " * 1000
    call = channel.unary_unary(path("Unary"))
    assert call(message, timeout=20, compression=grpc.Compression.Gzip) == b"got " + message
    assert echo.messages[-1] == message


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip], ids=["plain", "gzip"])
def test_t26_a_secret_in_a_message(channel, cage, echo, compression):
    secret = github_pat(31 if compression else 30)
    before = len(echo.messages)
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary(path("Unary"))(b"x" * 300 + b" " + secret.encode() + b" " + b"y" * 300, timeout=20,
                                           compression=compression)
    assert failed.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert len(echo.messages) == before
    cage.log.wait(event="request", decision="block", reason="secret.detected", path=path("Unary"))
    assert_unleaked(cage, secret)


def message(data, flag=0):
    return bytes([flag]) + len(data).to_bytes(4, "big") + data


SPLIT = github_pat(32)


@pytest.mark.parametrize("body, fields, reason", [
    (message(b"ab", flag=2), [], "body.undecodable"),
    (message(b"ab")[:-1], [], "body.undecodable"),
    (message(b"not gzip", flag=1), [("grpc-encoding", "gzip")], "body.undecodable"),
    (message(gzip.compress(b"x"), flag=1), [], "body.undecodable"),
    (message(b"ab", flag=1), [("grpc-encoding", "snappy")], "body.undecodable"),
    (b"\0\xff\xff\xff\xff", [], "body.undecodable"),
    (message(b" " + SPLIT[:20].encode()) + message(SPLIT[20:].encode() + b" "), [], "secret.detected"),
    (message(gzip.compress(b" " + SPLIT[:20].encode()), 1) + message(gzip.compress(SPLIT[20:].encode() + b" "), 1),
     [("grpc-encoding", "gzip")], "secret.detected"),
], ids=["flag", "truncated", "not gzip", "no encoding", "unknown encoding", "too long", "t28 split", "t28 split gzip"])
def test_t26_messages_that_must_not_pass(cage, echo, body, fields, reason):
    before = len(echo.messages)
    client = H2Client(cage, HOST)
    got = client.fetch("POST", path("Unary"), [("content-type", "application/grpc"), ("te", "trailers"), *fields], body)
    refused(got, reason, host=HOST)
    logged_block(cage, got, host=HOST)
    assert len(echo.messages) == before
    assert_unleaked(cage, SPLIT)
