"""gRPC with the real library on both sides, through interception: calls of all kinds, status, trailers and deadlines; and
what the inspectors see of its messages."""
import contextlib
import gzip
import os
import queue
import threading
from concurrent import futures

import grpc
import pytest

from cagelib.checks import call_refused, logged_block, refused
from cagelib.content import assert_unleaked, github_pat
from cagelib.h2 import H2Client, H2Reply, frame, h2_serving
from cagelib.proxy import policy, small_binary, wait_until
from cagelib.raw import RawOrigin, server_tls

HOST = "grpc.test"
SERVICE = "cage.Echo"


class Echo:
    """A server whose messages are plain bytes."""

    def __init__(self, leaf):
        self.messages, self.remaining, self.released = [], [], threading.Event()
        self.streamed, self.ended = [], []
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

    def up(self, messages, context):
        return b",".join(self.taken(messages, context))

    def both(self, messages, context):
        for message in self.taken(messages, context):
            yield b"re " + message

    def taken(self, messages, context):
        """Each as it comes; ended: what came on a stream that is over."""
        got = []
        context.add_callback(lambda: self.ended.append(got))
        for message in messages:
            got.append(message)
            self.streamed.append(message)
            yield message

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


def open_channel(cage, monkeypatch):
    for name in ("https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:%d" % cage.port)
    assert os.environ["grpc_proxy"]
    with open(cage.ca_pem, "rb") as ca:
        credentials = grpc.ssl_channel_credentials(ca.read())
    return grpc.secure_channel("%s:443" % HOST, credentials, options=[("grpc.use_local_subchannel_pool", 1)])


@pytest.fixture
def channel(cage, monkeypatch):
    with open_channel(cage, monkeypatch) as opened:
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


class Talk:
    """A call whose messages are given one by one."""

    def __init__(self, method, **how):
        self.queue = queue.SimpleQueue()
        self.call = method(iter(self.queue.get, None), timeout=60, **how)

    def say(self, message):
        self.queue.put(message)

    def ask(self, message):
        self.say(message)
        return next(self.call)

    def end(self):
        self.queue.put(None)

    def failure(self):
        with pytest.raises(grpc.RpcError) as failed:
            next(self.call)
        self.end()
        return failed.value


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip], ids=["plain", "gzip"])
def test_each_message_waits_for_the_answer_to_the_one_before(channel, cage, compression):
    talk = Talk(channel.stream_stream(path("Both")), compression=compression)
    for i in range(5):
        message = b"ball %d" % i * (1 + 5000 * i)
        assert talk.ask(message) == b"re " + message
    talk.end()
    assert list(talk.call) == []
    assert talk.call.code() is grpc.StatusCode.OK
    line = cage.log.wait(event="response", inspected_out=sum(5 + len(b"ball %d" % i * (1 + 5000 * i)) for i in range(5))
                         ) if not compression else cage.log.wait(event="response", host=HOST)
    assert (line["decision"], line["status"]) == ("allow", 200)


def test_messages_of_any_size_one_by_one(channel):
    """Longer than what is held, empty, and one that a hold and its lag would keep."""
    talk = Talk(channel.stream_stream(path("Both")))
    for size in (0, 3 << 20, 5, 100000, 0, (1 << 20) - 5, 1 << 20, 1):
        message = b"%06d." % size * (size // 7 + 1)
        assert talk.ask(message[:size]) == b"re " + message[:size]
    talk.end()
    assert list(talk.call) == []


def blocked_late(cage, echo, reason, streamed):
    """The end of a stream that had begun: the server has seen no more than this."""
    line = cage.log.wait(event="response", decision="block", reason=reason, host=HOST)
    assert line["findings"][0]["reason"] == reason
    wait_until(lambda: echo.ended == [streamed], 10, "the server was not told")
    return line


@pytest.fixture
def fresh(echo, start_cage, pki, monkeypatch):
    """A cage, and a channel, whose log nobody else writes to."""
    def start(**how):
        del echo.messages[:], echo.streamed[:], echo.ended[:]
        cage = start_cage(policy({"id": "g", "hosts": [HOST]}, pins={HOST: "127.0.0.1:%d" % echo.port}, trust=[pki.ca_pem]),
                          **how)
        return cage, opened.enter_context(open_channel(cage, monkeypatch))

    with contextlib.ExitStack() as opened:
        yield start


def test_t28_a_secret_in_the_third_message(fresh, echo):
    """Two have come through and were answered: it ends with a status that says why."""
    cage, channel = fresh()
    secret = github_pat(33)
    talk = Talk(channel.stream_stream(path("Both")))
    assert [talk.ask(b"one"), talk.ask(b"two")] == [b"re one", b"re two"]
    talk.say(b"three " + secret.encode())
    failed = talk.failure()
    assert failed.code() is grpc.StatusCode.PERMISSION_DENIED
    line = blocked_late(cage, echo, "secret.detected", [b"one", b"two"])
    assert failed.details().startswith("blocked_by_cage secret.detected %s: The request carries" % line["txn"])
    assert_unleaked(cage, secret)


def test_t28_a_secret_in_the_third_message_before_any_answer(fresh, echo):
    cage, channel = fresh()
    secret = github_pat(34)
    talk = Talk(channel.stream_stream(path("Up")))
    talk.say(b"one")
    talk.say(b"two")
    wait_until(lambda: echo.streamed == [b"one", b"two"], 10, "they are held")
    talk.say(secret.encode())
    assert talk.failure().code() is grpc.StatusCode.PERMISSION_DENIED
    assert blocked_late(cage, echo, "secret.detected", [b"one", b"two"])["status"] == 403
    assert_unleaked(cage, secret)


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip], ids=["plain", "gzip"])
@pytest.mark.parametrize("before", [0, 20000], ids=["short", "long"])
def test_t28_a_secret_split_over_two_messages(fresh, echo, compression, before):
    cage, channel = fresh()
    secret = github_pat(35)
    first = b"x" * before + b" " + secret[:20].encode()
    talk = Talk(channel.stream_stream(path("Both")), compression=compression)
    assert talk.ask(first) == b"re " + first
    talk.say(secret[20:].encode())
    assert talk.failure().code() is grpc.StatusCode.PERMISSION_DENIED
    line = blocked_late(cage, echo, "secret.detected", [first])
    assert line["findings"][0]["offset"] == before + 1
    assert_unleaked(cage, secret)


def test_t25_a_secret_at_the_end_of_a_message_beyond_the_hold(fresh, echo):
    """It goes on behind the inspection, as a body does, and never becomes whole."""
    cage, channel = fresh()
    secret = github_pat(36)
    talk = Talk(channel.stream_stream(path("Both")))
    assert talk.ask(b"one") == b"re one"
    talk.say(b"%07d " % 7 * (3 << 17) + secret.encode())
    assert talk.failure().code() is grpc.StatusCode.PERMISSION_DENIED
    line = blocked_late(cage, echo, "secret.detected", [b"one"])
    assert line["bytes_out"] > 2 << 20
    assert_unleaked(cage, secret)


def test_a_pause_between_two_messages_takes_as_long_as_it_takes(fresh):
    """A body that is cut off in a message has its time; one that could go on has not."""
    cage, channel = fresh(program=small_binary())
    talk = Talk(channel.stream_stream(path("Both")))
    assert talk.ask(b"one") == b"re one"
    client = H2Client(cage, HOST)
    stream = client.start("POST", path("Up"), FIELDS, end=False)
    client.send(stream, message(b"whole") + message(b"not whole")[:-1], end=False)
    client.wait(stream)
    cage.log.wait(event="response", reason="client.timeout")
    assert talk.ask(b"two") == b"re two"
    talk.end()


INSPECTOR = r"""
import base64, json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m["type"] != "cancel":
        bad = b"heron" in base64.b64decode(m.get("data", ""))
        print(json.dumps({"id": m["id"], "verdict": "block" if bad else "pass"}), flush=True)
"""


def test_each_message_waits_for_the_external_inspector(start_cage, echo, pki, monkeypatch, tmp_path):
    del echo.streamed[:], echo.ended[:]
    (tmp_path / "inspector.py").write_text(INSPECTOR)
    rules = policy({"id": "g", "hosts": [HOST]}, pins={HOST: "127.0.0.1:%d" % echo.port}, trust=[pki.ca_pem],
                   inspectors={"external": {"command": ["/usr/bin/python3", "inspector.py"], "timeout": "10s"}})
    cage = start_cage(rules, directory=tmp_path)
    with open_channel(cage, monkeypatch) as channel:
        talk = Talk(channel.stream_stream(path("Both")))
        assert [talk.ask(b"one"), talk.ask(b"two")] == [b"re one", b"re two"]
        talk.say(b"a heron")
        assert talk.failure().code() is grpc.StatusCode.PERMISSION_DENIED
        blocked_late(cage, echo, "external.blocked", [b"one", b"two"])


KEY = "key-7f3a9c51e2d84b60"
PLACEHOLDER = "{{API_KEY}}"


def with_secret(pin, pki):
    return policy({"id": "g", "hosts": [HOST], "secrets": ["api"]}, pins={HOST: pin}, trust=[pki.ca_pem],
                  secrets=[{"id": "api", "from": {"env": "API_KEY"}, "placeholder": PLACEHOLDER, "in": ["header:x-api-key"]}])


def test_an_answer_that_ends_like_a_value_begins_is_not_kept_back(start_cage, echo, pki, monkeypatch):
    """Where there are secrets, a beginning of one is kept back until more comes; a whole message is not."""
    cage = start_cage(with_secret("127.0.0.1:%d" % echo.port, pki), env={"API_KEY": KEY})
    with open_channel(cage, monkeypatch) as channel:
        talk = Talk(channel.stream_stream(path("Both")))
        for message in (b"k", b"key-7f3", b"", KEY[:-1].encode(), b"a2V5LTdm"):
            assert talk.ask(message) == b"re " + message
        talk.end()
        assert list(talk.call) == []


def test_compressed_answers_are_not_asked_for_where_there_are_secrets(start_cage, pki):
    """One that comes all the same can't be read, and does not pass."""
    def answer(request, _server):
        zipped = message(gzip.compress(request.header("x-api-key").encode()), 1)
        return H2Reply(200, [("content-type", "application/grpc"), ("grpc-encoding", "gzip")],
                       zipped if request.header(":path") == "/zip" else message(b"plain"), [("grpc-status", "0")])

    tls = server_tls(pki.leaf(HOST))
    tls.set_alpn_protocols(["h2"])
    with RawOrigin(h2_serving(answer), tls=tls) as origin:
        cage = start_cage(with_secret(origin.pin, pki), env={"API_KEY": KEY})
        client = H2Client(cage, HOST)
        asked = [*FIELDS, ("grpc-accept-encoding", "identity, deflate, gzip"), ("x-api-key", PLACEHOLDER)]
        got = client.fetch("POST", "/plain", asked, message(b"a"))
        assert (got.body, [list(x) for x in got.trailers]) == (message(b"plain"), [["grpc-status", "0"]])
        assert origin.requests[-1].header("grpc-accept-encoding") == ""
        got = client.fetch("POST", "/zip", asked, message(b"a"))
        assert got.reset is not None and got.body == b""
        cage.log.wait(event="response", decision="error", reason="upstream.malformed", host=HOST)


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


def failure_of(channel, method=None, **more):
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary(path(method or "Unary"))(b"hello", timeout=20, **more)
    return failed.value


def test_a_refusal_is_a_status_with_its_reason(start_cage, echo, pki, monkeypatch):
    """Whatever stands in the way of a call, its client reads why, in its own terms."""
    rule = {"id": "g", "hosts": [HOST], "paths": [path("Unary")], "limits": {"rate": "1/d", "burst": 1}}
    cage = start_cage(policy(rule, pins={HOST: "127.0.0.1:%d" % echo.port}, trust=[pki.ca_pem]))
    with open_channel(cage, monkeypatch) as channel:
        failed = failure_of(channel, "Both")
        line = cage.log.wait(event="request", decision="block", reason="path.not_allowed")
        assert failed.code() is grpc.StatusCode.PERMISSION_DENIED
        assert failed.details() == "blocked_by_cage path.not_allowed %s: The policy does not allow this path on this host." % line["txn"]
        told = dict(failed.initial_metadata() or ()) | dict(failed.trailing_metadata())
        assert (told["x-cage-decision"], told["x-cage-reason"], told["x-cage-txn"]) == ("block", "path.not_allowed", line["txn"])
        assert line["status"] == 403
        assert channel.unary_unary(path("Unary"))(b"hello", timeout=20) == b"got hello"
        failed = failure_of(channel)
        assert failed.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert failed.details().startswith("blocked_by_cage limit.rate ")
        assert cage.log.wait(event="request", reason="limit.rate")["status"] == 429


def test_a_host_that_is_not_allowed_is_a_status_with_its_reason(start_cage, echo, pki, monkeypatch):
    cage = start_cage(policy({"id": "other", "hosts": ["other.test"]}, trust=[pki.ca_pem]))
    with open_channel(cage, monkeypatch) as channel:
        for _ in range(2):
            failed = failure_of(channel)
            assert failed.code() is grpc.StatusCode.PERMISSION_DENIED
            assert failed.details().startswith("blocked_by_cage host.not_allowed ")
            assert failed.details().endswith(": No rule of the policy allows this host.")


def test_a_server_that_is_not_there_is_unavailable(start_cage, pki, monkeypatch):
    cage = start_cage(policy({"id": "g", "hosts": [HOST]}, pins={HOST: "127.0.0.1:1"}, trust=[pki.ca_pem]))
    with open_channel(cage, monkeypatch) as channel:
        failed = failure_of(channel)
        assert failed.code() is grpc.StatusCode.UNAVAILABLE
        assert failed.details().startswith("upstream_failed upstream.unreachable ")


def test_a_handshake_of_websocket_is_no_call(cage):
    """Whatever type it says: a 200 would say that it is open."""
    client = H2Client(cage, HOST)
    fields = [("content-type", "application/grpc"), ("sec-websocket-version", "12")]
    got = client.wait(client.start("CONNECT", "/x", fields, end=False, pseudo=[(":protocol", "websocket")]))
    assert got.status == 400, got


def message(data, flag=0):
    return bytes([flag]) + len(data).to_bytes(4, "big") + data


FIELDS = [("content-type", "application/grpc"), ("te", "trailers")]


def test_t28_a_call_that_is_blocked_is_cancelled(start_cage, pki):
    """By hand on both sides: the first message has left, and nothing of the second, nor the end of the request."""
    tls = server_tls(pki.leaf(HOST))
    tls.set_alpn_protocols(["h2"])
    secret = github_pat(37)
    second = message(b"half " + secret.encode())
    with RawOrigin(h2_serving(lambda *_: H2Reply()), tls=tls) as origin:
        cage = start_cage(policy({"id": "g", "hosts": [HOST]}, pins={HOST: origin.pin}, trust=[pki.ca_pem]))
        client = H2Client(cage, HOST)
        stream = client.start("POST", "/call", FIELDS, end=False)
        client.send(stream, message(b"first") + second[:9], end=False)
        origin.wait(lambda o: message(b"first") in o.received)
        assert b"half" not in origin.received
        client.send(stream, second[9:], end=False)
        got = client.wait(stream)
        call_refused(got, "secret.detected")
        cage.log.of(got, event="response", decision="block", reason="secret.detected")
        origin.wait(lambda o: frame(3, 0, 1, (8).to_bytes(4, "big")) in o.received)
        assert origin.requests == [] and b"half" not in origin.received
        assert_unleaked(cage, secret)


def test_messages_over_http1(start_cage, pki):
    def handler(conn):
        head = conn.read_until(b"\r\n\r\n")
        assert b"application/grpc" in head
        conn.read_until(message(b"first"))
        conn.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\n\r\n")

    with RawOrigin(handler, leaf=pki.leaf(HOST)) as origin:
        cage = start_cage(policy({"id": "g", "hosts": [HOST]}, pins={HOST: origin.pin}, trust=[pki.ca_pem]))
        wire = cage.tunnel(HOST)
        wire.send(b"POST /call HTTP/1.1\r\nhost: %s\r\ncontent-type: application/grpc\r\ncontent-length: 1000\r\n\r\n"
                  % HOST.encode() + message(b"first"))
        assert wire.read_response().status == 200


SPLIT = github_pat(32)


@pytest.mark.parametrize("kind", ["text/plain", "application/grpc-other", "application/grpc, x", None])
def test_t26_compressed_messages_of_another_type(cage, echo, kind):
    """grpcio goes by grpc-encoding alone."""
    before = len(echo.messages)
    fields = [(name, value) for name, value in FIELDS if name != "content-type"] + [("grpc-encoding", "gzip")]
    body = message(gzip.compress(SPLIT.encode()), 1)
    got = H2Client(cage, HOST).fetch("POST", path("Unary"), fields + ([("content-type", kind)] if kind else []), body)
    refused(got, "body.undecodable", host=HOST)
    logged_block(cage, got, host=HOST)
    assert len(echo.messages) == before


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
    (message(SPLIT[1:].encode() + b" " * (ord(SPLIT[0]) - len(SPLIT) + 1)), [], "secret.detected"),
], ids=["flag", "truncated", "not gzip", "no encoding", "unknown encoding", "too long", "t28 split", "t28 split gzip", "t28 in the length"])
def test_t26_messages_that_must_not_pass(cage, echo, body, fields, reason):
    before = len(echo.messages)
    client = H2Client(cage, HOST)
    got = client.fetch("POST", path("Unary"), [*FIELDS, *fields], body)
    call_refused(got, reason)
    cage.log.of(got, decision="block", reason=reason, host=HOST, status=403)
    assert len(echo.messages) == before
    assert_unleaked(cage, SPLIT)
