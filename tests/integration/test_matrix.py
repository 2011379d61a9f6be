"""Real clients against real servers, each on its own version of HTTP: allowed, blocked, and with a placeholder where the
credential would be. Nobody but the proxy knows the value, and every client can read why it was refused."""
import json
import os
import re
import subprocess
import sys
from concurrent import futures

import grpc
import pytest

from cagelib.checks import REFUSAL_KEYS
from cagelib.content import assert_unleaked, github_pat
from cagelib.forward import Forwarder
from cagelib.git import ENV as GIT_ENV
from cagelib.git import make_repository
from cagelib.h2 import H2Reply, h2_serving
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin, server_tls, serving
from cagelib.wire import response_bytes

CLIENTS = os.path.join(os.path.dirname(__file__), "clients")
PLACEHOLDER, VALUE = "{{MATRIX_KEY}}", "m4trix-0f1e2d3c4b5a69788796"
SECRET = github_pat(61)
ORIGINS = ("h1", "h2", "stub")  # nginx twice, and our own
GRPC = "grpc.site.test"


# ---- origins

def told(method, path, fields, body):
    """What the stub says of a request, like the backend of nginx."""
    return json.dumps({"method": method, "path": path, "headers": fields, "length": len(body)}).encode()


def stub_h1(request):
    return response_bytes(200, told(request.method, request.target, request.fields, request.body))


def stub_h2(request, _server):
    return H2Reply(200, [("content-type", "application/json")],
                   told(request.header(":method"), request.header(":path"), request.headers, request.body))


def stub_serving(conn):
    """By what was agreed on."""
    (h2_serving(stub_h2) if conn.sock.selected_alpn_protocol() == "h2" else serving(stub_h1))(conn)


@pytest.fixture(scope="module")
def stub(pki):
    tls = server_tls(pki.leaf("stub.site.test"))
    tls.set_alpn_protocols(["h2", "http/1.1"])
    with RawOrigin(stub_serving, tls=tls) as running:
        yield running


class Metadata:
    """A gRPC server that answers with the metadata of the call."""

    def __init__(self, leaf):
        self.calls = []
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("cage.Matrix", {
            "Tell": grpc.unary_unary_rpc_method_handler(self.tell)})])
        with open(leaf.key, "rb") as key, open(leaf.cert, "rb") as cert:
            credentials = grpc.ssl_server_credentials([(key.read(), cert.read())])
        self.pin = "127.0.0.1:%d" % self.server.add_secure_port("127.0.0.1:0", credentials)
        self.server.start()

    def tell(self, message, context):
        self.calls.append((message, dict(context.invocation_metadata())))
        return json.dumps(self.calls[-1][1]).encode()


@pytest.fixture(scope="module")
def metadata(pki):
    running = Metadata(pki.leaf(GRPC))
    yield running
    running.server.stop(None)


@pytest.fixture(scope="module")
def cage(start_module_cage, nginx, stub, metadata, pki):
    rule = {"id": "matrix", "hosts": ["*.site.test"], "secrets": ["key"]}
    pins = {"h1.site.test": nginx.tls_pin, "h2.site.test": nginx.h2_pin, "stub.site.test": stub.pin, GRPC: metadata.pin,
            "no.denied.test": nginx.tls_pin}
    secret = {"id": "key", "from": {"env": "MATRIX_KEY"}, "placeholder": PLACEHOLDER,
              "in": ["header:x-api-key", "header:authorization"]}
    return start_module_cage(policy(rule, pins=pins, trust=[pki.ca_pem], secrets=[secret]), env={"MATRIX_KEY": VALUE})


class World:
    """What the tests look at beside the client: which requests arrived where."""

    def __init__(self, cage, nginx, stub):
        self.cage, self.nginx, self.stub = cage, nginx, stub

    def arrived(self, origin, path):
        """The fields of each request for that path at that origin."""
        if origin == "stub":
            seen = [(r.target, r.fields) if hasattr(r, "target") else (r.header(":path"), r.headers)
                    for r in self.stub.requests]
        else:
            seen = self.nginx.backend.server.seen
        return [{name.lower(): value for name, value in fields} for target, fields in seen if target == path]


@pytest.fixture
def world(cage, nginx, stub):
    yield World(cage, nginx, stub)
    assert_unleaked(cage, VALUE, SECRET)


# ---- clients

class Answer:
    """What a client saw. version: None where it does not say."""

    def __init__(self, status, version, body):
        self.status, self.version, self.body = status, version, body


class Runner:
    """Runs clients, in whose output the value may never stand. tools: a directory for what they need, made once."""

    def __init__(self, cage, directory, tools):
        self.cage, self.dir, self.tools = cage, str(directory), str(tools)

    def run(self, command, codes=(0,), env=None):
        done = subprocess.run(command, env={**self.cage.env(), **(env or {})}, cwd=self.dir, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode in codes, done
        assert VALUE not in done.stdout + done.stderr
        return done

    def words(self, *command):
        """Of a client that prints the status and perhaps the version on its first line."""
        first, body = self.run(command).stdout.split("\n", 1)
        status, _, version = first.partition(" ")
        return Answer(int(status), version or None, body)

    def body_file(self, body):
        path = os.path.join(self.dir, "body")
        with open(path, "w", encoding="ascii") as file:
            file.write(body)
        return path


def pairs(fields):
    return [word for field in fields for word in field]


def header_options(fields, option="-H"):
    return [word for field in fields for word in (option, "%s: %s" % field)]


def curl(version):
    def ask(runner, method, url, body, fields):
        out = runner.run(["curl", "-sS", version, "-X", method, *header_options(fields), *(["--data-binary", body] if body else []),
                          "-w", "\n%{http_code} %{http_version}", url]).stdout
        body, _, last = out.rpartition("\n")
        return Answer(int(last.split()[0]), "h2" if last.split()[1] == "2" else "http/1.1", body)
    return ask


def wget(runner, method, url, body, fields):
    done = runner.run(["wget", "-S", "-O-", "--content-on-error", "--ca-certificate=" + runner.cage.ca_pem, "--method=" + method,
                       *["--header=%s: %s" % field for field in fields], *(["--body-data=" + body] if body else []), url], (0, 8))
    return Answer(int(re.findall(r"^  HTTP/1\.1 (\d+)", done.stderr, re.M)[-1]), "http/1.1", done.stdout)


def requests(runner, method, url, body, fields):
    return runner.words(sys.executable, os.path.join(CLIENTS, "fetch_requests.py"), method, url, body, *pairs(fields))


def httpx(runner, method, url, body, fields):
    return runner.words(sys.executable, os.path.join(CLIENTS, "fetch_httpx.py"), method, url, body, *pairs(fields))


def node_fetch(runner, method, url, body, fields):
    return runner.words("node", os.path.join(CLIENTS, "fetch.mjs"), method, url, body, *pairs(fields))


def node_http2(runner, method, url, body, fields):
    return runner.words("node", os.path.join(CLIENTS, "fetch_http2.mjs"), method, url, body, *pairs(fields))


def parts_of(url):
    """Host, and the rest."""
    host, _, path = url.partition("//")[2].partition("/")
    return host, "/" + path


def nghttp(runner, method, url, body, fields):
    """It has no option to connect elsewhere than its URL says, and tells everything in one stream of text."""
    host, path = parts_of(url)
    with Forwarder(runner.cage, host + ":443") as forwarder:
        out = runner.run(["nghttp", "-v", "-H", ":method: " + method, "-H", ":authority: " + host, *header_options(fields),
                          *(["-d", runner.body_file(body)] if body else []),
                          "https://%s%s" % (forwarder.address, path)]).stdout
    status = re.search(r"recv \(stream_id=\d+\) :status: (\d+)", re.sub(r"\x1b\[[0-9;]*m", "", out))
    start = out.index('{"', out.index(":status:"))
    return Answer(int(status.group(1)), "h2", json.dumps(json.JSONDecoder().raw_decode(out, start)[0]))


def go(runner, method, url, body, fields):
    program = os.path.join(runner.tools, "fetch")
    if not os.path.exists(program):
        runner.run(["go", "build", "-o", program, os.path.join(CLIENTS, "fetch.go")])
    return runner.words(program, method, url, body, *pairs(fields))


def java(runner, method, url, body, fields):
    store = os.path.join(runner.tools, "store")
    if not os.path.exists(store):
        runner.run(["keytool", "-importcert", "-noprompt", "-alias", "cage", "-file", runner.cage.ca_pem, "-keystore", store,
                    "-storepass", "changeit"])
        runner.run(["javac", "-d", runner.tools, os.path.join(CLIENTS, "Fetch.java")])
    return runner.words("java", "-cp", runner.tools, "-Dhttps.proxyHost=127.0.0.1", "-Dhttps.proxyPort=%d" % runner.cage.port,
                        "-Djavax.net.ssl.trustStore=" + store, "-Djavax.net.ssl.trustStorePassword=changeit",
                        "Fetch", method, url, body, *pairs(fields))


def slow(ask):
    return pytest.param((ask, "h2"), id=ask.__name__, marks=pytest.mark.slow)


# Each with the version that it must come to speak with us.
ASKS = [pytest.param((curl("--http1.1"), "http/1.1"), id="curl-h1"), pytest.param((curl("--http2"), "h2"), id="curl-h2"),
        pytest.param((wget, "http/1.1"), id="wget"), pytest.param((requests, "http/1.1"), id="requests"),
        pytest.param((httpx, "h2"), id="httpx"), pytest.param((node_fetch, None), id="node-fetch"),
        pytest.param((node_http2, "h2"), id="node-http2"), pytest.param((nghttp, "h2"), id="nghttp"), slow(go), slow(java)]


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    return tmp_path_factory.mktemp("tools")


@pytest.fixture
def runner(cage, tmp_path, tools):
    return Runner(cage, tmp_path, tools)


@pytest.fixture(params=ASKS)
def ask(request, runner):
    function, version = request.param

    def asked(method, url, body="", fields=()):
        answer = function(runner, method, url, body, fields)
        assert answer.version == version
        return answer

    return asked


@pytest.fixture
def path(request):
    """One of the test's own."""
    return "/echo/" + re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")


# ---- the matrix

@pytest.mark.parametrize("origin", ORIGINS)
def test_allowed(world, ask, path, origin):
    got = ask("POST", "https://%s.site.test%s" % (origin, path), "some text", [("content-type", "text/plain")])
    assert got.status == 200
    assert (json.loads(got.body)["method"], json.loads(got.body)["length"]) == ("POST", 9)
    assert len(world.arrived(origin, path)) == 1
    line = world.cage.log.wait(event="request", path=path)
    assert (line["decision"], line["rule"]) == ("allow", "matrix") and "injected" not in line


@pytest.mark.parametrize("origin", ORIGINS)
def test_injected(world, ask, path, origin):
    """The stub and the backend show all fields: what comes back has the placeholder again."""
    got = ask("GET", "https://%s.site.test%s" % (origin, path), "", [("x-api-key", PLACEHOLDER)])
    assert got.status == 200
    assert dict((n.lower(), v) for n, v in json.loads(got.body)["headers"])["x-api-key"] == PLACEHOLDER
    assert [fields["x-api-key"] for fields in world.arrived(origin, path)] == [VALUE]
    request = world.cage.log.wait(event="request", path=path)
    response = world.cage.log.wait(event="response", conn=request["conn"], txn=request["txn"])
    assert (request["injected"], response["redacted"]) == (["key"], ["key"])


def assert_refused(world, got, reason, **wanted):
    """The client was told why, the log has it once."""
    assert got.status == 403
    shown = json.loads(got.body)
    assert list(shown) == [key for key in REFUSAL_KEYS if key in shown]
    assert (shown["error"], shown["reason"]) == ("blocked_by_cage", reason)
    line = world.cage.log.wait(txn=shown["txn"], **wanted)
    assert (line["decision"], line["reason"], line["status"], line["enforced"]) == ("block", reason, 403, True)
    assert len(world.cage.log.find(conn=line["conn"], txn=line["txn"])) == 1


def test_a_host_that_no_rule_has(world, ask, nginx):
    assert_refused(world, ask("GET", "https://no.denied.test/echo"), "host.not_allowed", host="no.denied.test")
    assert not [hit for hit in nginx.hits() if hit.split(" ")[2] == "no.denied.test"]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_secret_in_a_body(world, ask, path, origin):
    got = ask("POST", "https://%s.site.test%s" % (origin, path), "token: " + SECRET, [("content-type", "text/plain")])
    assert_refused(world, got, "secret.detected", path=path)
    assert not world.arrived(origin, path)


# ---- those that are asked in other ways

def h2load(runner, host, path, *options):
    """How many answers had a status of that hundred, from 2 to 5."""
    with Forwarder(runner.cage, host + ":443") as forwarder:
        out = runner.run(["h2load", "-n", "40", "-c", "2", "-m", "10", "--connect-to", forwarder.address, *options,
                          "https://%s%s" % (host, path)]).stdout
    return [int(n) for n in re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out).groups()]


@pytest.mark.parametrize("origin", ORIGINS)
def test_h2load(world, runner, origin):
    host, path = origin + ".site.test", "/echo/h2load-" + origin
    assert h2load(runner, host, path, "-H", "x-api-key: " + PLACEHOLDER) == [40, 0, 0, 0]
    assert [fields["x-api-key"] for fields in world.arrived(origin, path)] == [VALUE] * 40
    leak = ["-d", runner.body_file("token: " + SECRET), "-H", "content-type: text/plain"]
    assert h2load(runner, host, path + "-leak", *leak) == [0, 0, 40, 0]
    assert not world.arrived(origin, path + "-leak")
    wait_until(lambda: len(world.cage.log.find(path=path + "-leak", decision="block", reason="secret.detected")) == 40, 10,
               "not one line for each")


@pytest.fixture(scope="module")
def private(nginx):
    """A repository that only the value opens."""
    nginx.backend.server.login = "bot:" + VALUE
    return make_repository(nginx, "private/matrix.git")


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("origin", ["h1", "h2"])
def test_git(world, runner, private, origin, version):
    name = origin + version.replace("/", "")
    url = "https://bot:%s@%s.site.test%s" % (PLACEHOLDER, origin, private)

    def git(*command):
        return runner.run(["git", "-c", "http.version=" + version, *command], env=GIT_ENV)

    git("clone", "-q", url, "work")
    with open(os.path.join(runner.dir, "work", name), "wb") as file:
        file.write(os.urandom(100000))
    for command in (["add", name], ["commit", "-qm", name], ["push", "-q", "origin", "HEAD:refs/heads/" + name]):
        git("-C", "work", *command)
    git("clone", "-q", "-b", name, url, "again")
    with open(os.path.join(runner.dir, "again", name), "rb") as file:
        assert len(file.read()) == 100000
    lines = world.cage.log.find(host=origin + ".site.test", path=private + "/git-receive-pack", event="request")
    assert lines and all(line["injected"] == ["key"] and line["decision"] == "allow" for line in lines)


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_git_refused(world, runner, nginx, version):
    """It shows the status, and the reason to who looks."""
    done = runner.run(["git", "-c", "http.version=" + version, "clone", "-q", "https://no.denied.test/git/repo.git", "no"], (128,),
                      {**GIT_ENV, "GIT_TRACE_CURL": "1"})
    assert "returned error: 403" in done.stderr
    assert re.search(r"(?i)header: x-cage-reason: host\.not_allowed", done.stderr), done.stderr
    assert not [hit for hit in nginx.hits() if hit.split(" ")[2] == "no.denied.test"]


class Channel:
    """gRPC's own library, which takes its proxy from a variable."""

    def __init__(self, cage, monkeypatch):
        self.cage = cage
        for name in ("https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:%d" % cage.port)

    def tell(self, host, message, fields=()):
        """(code, answer or details)"""
        with open(self.cage.ca_pem, "rb") as ca:
            credentials = grpc.ssl_channel_credentials(ca.read())
        with grpc.secure_channel(host + ":443", credentials, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            try:
                return grpc.StatusCode.OK, channel.unary_unary("/cage.Matrix/Tell")(message, timeout=20, metadata=fields)
            except grpc.RpcError as error:
                return error.code(), error.details()


@pytest.fixture
def channel(cage, monkeypatch):
    return Channel(cage, monkeypatch)


def test_grpc_allowed_and_injected(world, channel, metadata):
    code, answer = channel.tell(GRPC, b"hello", [("x-api-key", PLACEHOLDER)])
    assert code is grpc.StatusCode.OK
    assert json.loads(answer)["x-api-key"] == "*" * len(VALUE)  # messages have lengths in them, so no byte moves
    assert metadata.calls[-1][0] == b"hello" and metadata.calls[-1][1]["x-api-key"] == VALUE
    world.cage.log.wait(event="request", host=GRPC, injected=["key"], decision="allow")


def test_grpc_blocked(world, channel, metadata):
    calls = len(metadata.calls)
    code, details = channel.tell(GRPC, b"token: " + SECRET.encode())
    assert code is grpc.StatusCode.PERMISSION_DENIED and details.startswith("blocked_by_cage secret.detected ")
    world.cage.log.wait(event="request", host=GRPC, decision="block", reason="secret.detected")
    code, _ = channel.tell("grpc.denied.test", b"hello")
    assert code is grpc.StatusCode.PERMISSION_DENIED
    world.cage.log.wait(event="connect", host="grpc.denied.test", decision="block", reason="host.not_allowed")
    assert len(metadata.calls) == calls
