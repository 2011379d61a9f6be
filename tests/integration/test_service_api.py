"""The API is what openapi.yaml says, in both directions: a small generator makes good and bad requests from it, and each answer is
held to the schema of its status. Seeded, so that a failure can be had again."""
import os
import random
import socket
import subprocess
import threading

import jsonschema
import pytest
import yaml

from cagelib.proxy import wait_until
from cagelib.service import API, Service

HERE = os.path.dirname(__file__)
ROUNDS = 200
with open(os.path.join(HERE, "../../orchestrator/service/openapi.yaml"), encoding="utf-8") as _f:
    SPEC = yaml.safe_load(_f)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("api"), {"limits": {"running": 100, "queued": 100000, "starts": "1000/s"}}) as running:
        yield running


def resolve(node):
    while "$ref" in node:
        at = SPEC
        for part in node["$ref"].lstrip("#/").split("/"):
            at = at[part]
        node = at
    return node


def checked(schema):
    return jsonschema.Draft202012Validator({**schema, "components": SPEC["components"]})


def assert_described(method, path, answer):
    """The answer has a status, a type and a body that the file knows for that operation."""
    responses = SPEC["paths"][path][method.lower()]["responses"]
    described = resolve(responses.get(str(answer.status), responses["default"]))
    assert str(answer.status) in responses or answer.status >= 400, answer
    assert answer.headers["X-Request-Id"]
    if "content" not in described:
        assert answer.body == b""
        return
    kind = answer.headers["Content-Type"].split(";")[0]
    assert kind in described["content"], (kind, answer)
    if kind.endswith("json"):
        checked(described["content"][kind]["schema"]).validate(answer.json)


class Maker:
    """Values for a schema: mostly good ones, and now and then something else."""

    STRANGE = [None, True, -1, 0, 1.5, 1e300, 2**63, "", "\u0000", "x" * 5000, "../..", "/etc/passwd", [], {}, [[]], {"a": {}}, "\ud7ff\U0001f600", "%00"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, schema, depth=0):
        schema = resolve(schema)
        if self.random.random() < 0.06:
            return self.random.choice(self.STRANGE)
        if "oneOf" in schema:
            return self.value(self.random.choice(schema["oneOf"]), depth)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema.get("type", "object")
        return getattr(self, kind if isinstance(kind, str) else kind[0])(schema, depth)

    def string(self, schema, depth):
        del depth
        if "pattern" in schema or schema.get("format"):
            return self.random.choice(["a", "x-1", "true", "/usr", "team", "A_B", "name.x", "2026-01-01T00:00:00Z"])
        return self.random.choice(["a", "true", "text with space", "\u00e9", "version: 1\nname: x\n", "a.test", "*.a.test"])

    def integer(self, schema, depth):
        del depth
        low, high = schema.get("minimum", 0), schema.get("maximum", 1 << 40)
        return self.random.choice([low, high, low + 1, self.random.randint(low, high)])

    def number(self, schema, depth):
        return self.integer({**schema, "minimum": 1}, depth) / 2

    def boolean(self, schema, depth):
        del schema, depth
        return self.random.random() < 0.5

    def array(self, schema, depth):
        return [self.value(schema["items"], depth + 1) for _ in range(self.random.choice([0, 1, 1, 2, 3]))]

    def object(self, schema, depth):
        out = {}
        for name, inner in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or self.random.random() < (0.25 if depth == 0 else 0.5):
                out[name] = self.value(inner, depth + 1)
        if isinstance(schema.get("additionalProperties"), dict):
            for _ in range(self.random.choice([0, 1, 2])):
                out[self.string(schema.get("propertyNames", {}), depth)] = self.value(schema["additionalProperties"], depth + 1)
        if self.random.random() < 0.04:
            out["unknown"] = 1
        return out


def test_creates_from_the_description(service):
    maker = Maker(20261117)
    schema = SPEC["components"]["schemas"]["Create"]
    validator = checked(schema)
    seen = set()
    for _ in range(ROUNDS):
        body = maker.value(schema)
        answer = service.post(API, body) if isinstance(body, (dict, list)) else service.post(API, b"null", headers={"Content-Type": "application/json"})
        assert_described("POST", "/api/v1/sandboxes", answer)
        seen.add(answer.status)
        assert answer.status in (201, 400, 422), answer
        if isinstance(body, dict) and not validator.is_valid(body):
            assert answer.status != 201, (body, answer)
        if answer.status == 201:  # one after the other: what is tested is not how many it can make
            service.request("DELETE", API + "/" + answer.json["id"])
            service.wait(answer.json["id"], "deleted")
    assert seen >= {201, 422}


def test_tool_calls_from_the_description(service):
    maker = Maker(7)
    ident = service.idle()
    tools = service.get("/api/v1/tools").json["items"]
    for _ in range(ROUNDS):
        tool = maker.random.choice(tools)
        body = {"tool": tool["name"], "arguments": maker.value(tool["arguments"])}
        if maker.random.random() < 0.1:
            body["timeout_seconds"] = maker.value({"type": "integer", "minimum": 1, "maximum": 5})
        answer = service.post("%s/%s/tools/execute" % (API, ident), body)
        assert_described("POST", "/api/v1/sandboxes/{id}/tools/execute", answer)
        assert answer.status in (200, 400, 403, 404, 413, 422, 429, 502, 504, 507), (body, answer)
    assert service.result(ident, "shell_exec", command="echo fine")["stdout"] == "fine\n"


@pytest.mark.parametrize("path", sorted(SPEC["paths"]))
def test_every_operation(service, path):
    """Each with a sandbox, and with none; with queries that are good, and that are not."""
    ident = service.idle()
    for method in ("GET", "PUT", "POST", "DELETE"):
        if method.lower() not in SPEC["paths"][path]:
            continue
        parameters = SPEC["paths"][path][method.lower()].get("parameters", [])
        names = [resolve(p)["name"] for p in parameters if resolve(p)["in"] == "query" and resolve(p)["name"] != "follow"]
        for box in ("none", ident):
            for query in [""] + ["?%s=%s" % (n, v) for n in names for v in ("", "1", "%00", "a=b", "x" * 100)]:
                target = path.replace("{id}", box).replace("{path}", "some/file") + query
                answer = service.request(method, target, b"{}" if method in ("PUT", "POST") else None,
                                         headers={"Content-Type": "application/json"} if method == "POST" else {})
                assert_described(method, path, answer)
                assert answer.status < 500, answer


# ---- somebody else's reading of the same file

def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    finally:
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Relay:
    """A TCP port that leads to the unix socket: prism speaks nothing else."""

    def __init__(self, to):
        self.to = to
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            up = socket.socket(socket.AF_UNIX)
            up.connect(self.to)
            for pair in ((client, up), (up, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()


@pytest.fixture(scope="module")
def prism(service, tmp_path_factory):
    """A validating proxy in front of the service: what it passes, in either direction, is what the file says."""
    program = os.environ.get("CAGE_PRISM")
    if not program:
        pytest.skip("prism is not installed: ./dev test --all does that")
    relay = Relay(service.socket)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open(tmp_path_factory.mktemp("prism") / "log", "wb") as log:
        process = subprocess.Popen([program, "proxy", os.path.join(HERE, "../../orchestrator/service/openapi.yaml"), relay.url,
                                    "--errors", "--port", str(port), "--host", "127.0.0.1"], stdout=log, stderr=log)
    where = ("127.0.0.1", port)

    def is_up():
        assert process.poll() is None, "prism has ended"
        try:
            return service.get("/healthz", where=where).status == 200
        except OSError:
            return False
    try:
        wait_until(is_up, 60, "prism does not start")
        yield where
    finally:
        process.terminate()
        process.wait(20)
        relay.listener.close()


def test_prism_passes_every_operation(service, prism):
    """All of them with good requests; an answer that the file does not have would be an error of prism's own."""
    done = set()

    def ask(method, at, status, body=None, kind=None, query="", **names):
        target = at
        for name, value in names.items():
            target = target.replace("{%s}" % name, value)
        answer = service.request(method, target + query, body, headers={"Content-Type": kind} if kind else {}, where=prism)
        assert answer.status == status, (method, target, answer)
        done.add((method.lower(), at))
        return answer
    box = "/api/v1/sandboxes/{id}"
    made = ask("POST", "/api/v1/sandboxes", 201, {"labels": {"a": "b"}, "keep": True}).json["id"]
    service.wait(made, "running")
    ask("GET", "/healthz", 200)
    ask("GET", "/openapi.yaml", 200)
    ask("GET", "/api/v1/sandboxes", 200)
    ask("GET", "/api/v1/sandboxes", 200, query="?limit=1&state=running&label=a%3Db")
    ask("GET", box, 200, id=made)
    ask("PUT", box + "/files/{path}", 204, b"some bytes", "application/octet-stream", id=made, path="d%2Ff")
    assert ask("GET", box + "/files/{path}", 200, id=made, path="d%2Ff").body == b"some bytes"
    ask("GET", box + "/files/{path}", 404, id=made, path="none")
    for tool in ({"tool": "shell_exec", "arguments": {"command": "echo"}}, {"tool": "file_list", "arguments": {}},
                 {"tool": "file_read", "arguments": {"path": "d/f"}}, {"tool": "http_request", "arguments": {"url": "https://no.test/"}}):
        ask("POST", box + "/tools/execute", 200, tool, id=made)
    ask("POST", box + "/tools/execute", 403, {"tool": "none", "arguments": {}}, id=made)
    ask("POST", box + "/tools/execute", 422, {"tool": "shell_exec", "arguments": {}}, id=made)
    ask("PUT", box + "/policy", 200, b"version: 1\nname: other\n", "application/yaml", id=made)
    ask("PUT", box + "/policy", 422, b"version: 1\nname: 1\nrules: 1\n", "application/yaml", id=made)
    ask("POST", box + "/verify", 200, id=made)
    ask("GET", box + "/logs", 200, id=made)
    ask("GET", box + "/output", 200, query="?stream=stdout", id=made)
    ask("GET", "/api/v1/tools", 200)
    ask("GET", "/api/v1/usage", 200, query="?by=a&since=2026-01-01T00:00:00Z")
    ask("POST", box + "/stop", 202, id=made)
    service.wait(made, "killed")
    ask("GET", box, 200, id=made)
    ask("DELETE", box, 202, id=made)
    ask("GET", box, 404, id="none")
    flow = "/api/v1/workflows/{id}"
    steps = [{"id": "a", "sandbox": {"command": ["sh", "-c", "mkdir d; echo > d/x"]}, "artifacts": [{"path": "d/x"}]}]
    made = ask("POST", "/api/v1/workflows", 201, {"name": "n", "steps": steps}).json["id"]
    wait_until(lambda: ask("GET", flow, 200, id=made).json["state"] == "succeeded", 60, "the workflow does not succeed")
    ask("GET", "/api/v1/workflows", 200, query="?limit=1&state=succeeded")
    assert ask("GET", flow + "/artifacts/{step}/{path}", 200, id=made, step="a", path="d%2Fx").body == b"\n"
    ask("POST", flow + "/cancel", 202, id=made)
    ask("DELETE", flow, 202, id=made)
    ask("GET", flow, 404, id="none")
    assert done == {(method, path) for path, item in SPEC["paths"].items() for method in item if method in ("get", "put", "post", "delete")}


@pytest.mark.parametrize("method, target, body", [
    ("POST", API, {"nothing": 1}), ("POST", API, {"command": []}), ("POST", API, {"command": "x"}), ("POST", API, {"limits": {"memory": 1}}),
    ("POST", API, {"network": {"mode": "all"}}), ("POST", API, {"labels": {"A": "b"}}), ("GET", API + "?limit=0", None), ("GET", API + "?state=none", None),
    ("POST", API + "/x/tools/execute", {"tool": "shell_exec"}), ("GET", API + "/x/logs?source=none", None), ("GET", "/api/v1/usage?by=A%20", None), ("GET", "/api/v1/usage?by=%00", None),
])
def test_prism_and_the_service_refuse_the_same(service, prism, method, target, body):
    """What prism finds wrong with a request by the file, the service does too."""
    by_prism, by_service = (service.request(method, target, body, where=where) for where in (prism, None))
    assert by_prism.status == 422 and "prism" in by_prism.json["type"], by_prism
    assert by_service.status in (400, 404, 422), by_service
