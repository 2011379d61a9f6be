"""The bounds of cage serve's API: each is reached, what is beyond it is refused, and the service goes on."""
import http.client
import json
import os
import resource
import socket
import subprocess
import tempfile

import pytest

from cagelib.pki import Pki
from cagelib.podman import allows, listening
from cagelib.proxy import binary, policy, wait_until
from cagelib.raw import RawOrigin, serving
from cagelib.service import API, Answer, Connection, Service, fill_log

CONNS = 512  # LIMIT_SERVE_CONNS
FOLLOWERS = 128
HELD = 64 << 20
BODY = 8 << 20
ORDER = 1023 << 10


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as running:
        yield running


def connect(service):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(service.socket)
    return s


def status_of(s):
    response = http.client.HTTPResponse(s)
    response.begin()
    response.read()
    return response.status


ASK = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def test_more_connections_wait(service):
    held = [connect(service) for _ in range(CONNS)]
    try:
        for s in held:  # each has its place when it was answered
            s.sendall(ASK)
            assert status_of(s) == 200
        late = connect(service)
        late.sendall(ASK)
        late.settimeout(1)
        with pytest.raises(TimeoutError):
            late.recv(1)
        held.pop().close()
        late.settimeout(20)
        assert status_of(late) == 200
        late.close()
    finally:
        for s in held:
            s.close()
    assert service.get("/healthz").status == 200


def test_followers(service):
    ident = service.idle()
    target = "%s/%s/output?follow=true" % (API, ident)

    def follow():
        connection = Connection(service.socket)
        connection.request("GET", target)
        return connection, connection.getresponse()
    held = [follow() for _ in range(FOLLOWERS)]
    try:
        assert {r.status for _, r in held} == {200}
        connection, refused = follow()
        assert refused.status == 503 and refused.headers["Retry-After"]
        connection.close()
        assert service.show(ident)["state"] == "running"
    finally:
        for connection, response in held:
            response.close()
            connection.close()
    wait_until(lambda: follow()[1].status == 200, 20, "there is no place again")


def test_bodies_that_are_held(service):
    """Many that are never whole: the bytes of all of them have a bound."""
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (API.encode(), BODY)
    held = []
    try:
        for _ in range(HELD // (BODY - 1)):
            s = connect(service)
            s.sendall(head + b" " * (BODY - 1))
            held.append(s)
        refused = connect(service)
        refused.sendall(head + b" " * BODY)
        assert status_of(refused) == 503
        refused.close()
        assert service.get(API).status == 200
    finally:
        for s in held:
            s.close()
    wait_until(lambda: service.post(API, {"command": ["true"], "env": {"A": "x" * 60000}}).status == 201, 20, "there is no room again")


@pytest.mark.parametrize("body, pointer", [
    ({"command": ["x"] * 1001}, "/command"), ({"files": {str(i): "" for i in range(1001)}}, "/files"),
    ({"env": {"V%d" % i: "" for i in range(129)}}, "/env"), ({"env": {"V" * 129: ""}}, "/env/" + "V" * 129),
    ({"blocked_commands": ["x"] * 101}, "/blocked_commands"), ({"blocked_commands": ["x" * 1001]}, "/blocked_commands/0"),
    ({"network": {"mode": "allowlist", "domain_allowlist": ["a.test"] * 1001}}, "/network/domain_allowlist"),
    ({"network": {"mode": "allowlist", "domain_allowlist": ["a" * 256]}}, "/network/domain_allowlist/0"),
    ({"rootfs": "/" + "x" * 4000}, "/rootfs"),
])
def test_one_more_than_a_create_may_have(service, body, pointer):
    answer = service.post(API, body)
    assert answer.status == 422 and [e["pointer"] for e in answer.json["errors"]] == [pointer], answer


def test_as_much_as_tools_take_and_one_more(service):
    """By the schemas that GET /tools has, which are what the service checks."""
    ident = service.idle(blocked_commands=["."])
    base = {"shell_exec": {"command": "x"}, "http_request": {"url": "https://no.test/"}, "file_read": {"path": "x"}}
    for tool, key, most, taken in (("shell_exec", "command", 30000, 403), ("shell_exec", "workdir", 1000, 403), ("http_request", "url", 8000, 200),
                                   ("file_read", "path", 4000, 422)):  # inside, a name has no more than 255
        for size, status in ((most, taken), (most + 1, 422)):
            value = ("https://no.test/" if key == "url" else "").ljust(size, "x")
            answer = service.tool(ident, tool, **{**base[tool], key: value})
            assert answer.status == status, (tool, key, size, answer)
            is_refused = answer.json.get("reason") == "tool.arguments"
            assert is_refused == (size > most), (tool, key, size, answer)
    for headers, good in (({"h%d" % i: "" for i in range(100)}, True), ({"h%d" % i: "" for i in range(101)}, False), ({"h": "x" * 8001}, False),
                          ({"h" * 257: ""}, False)):
        answer = service.post("%s/%s/tools/execute" % (API, ident), {"tool": "http_request", "arguments": {"url": "https://no.test/", "headers": headers}})
        assert (answer.status == 200) == good, answer
    for more, status in (({"method": "A" * 32}, 200), ({"method": "A" * 33}, 422), ({"body": "x" * (ORDER - 45)}, 200), ({"body": "x" * ORDER}, 422),
                         ({"body": "\x01" * (ORDER // 4)}, 422), ({"body_base64": "eHh4" * (ORDER // 4)}, 422)):
        answer = service.tool(ident, "http_request", url="https://no.test/", **more)
        assert answer.status == status, (list(more), answer)


def test_the_longest_time_of_a_tool(service):
    ident = service.idle()
    for tool, arguments in (("http_request", {"url": "https://no.test/"}), ("shell_exec", {"command": "true"})):
        assert service.tool(ident, tool, timeout=3600, **arguments).status == 200
        assert service.tool(ident, tool, timeout=3601, **arguments).status == 422


def test_creates_at_once_wait_no_more_than_may(tmp_path):
    """Also those whose policies are checked at the same time."""
    text = json.dumps(policy({"id": "a", "hosts": ["a.test"]}))
    with Service(tmp_path, {"limits": {"queued": 1, "running": 1}}) as service:
        service.idle()
        connections = []
        for _ in range(12):
            connections.append(Connection(service.socket))
            connections[-1].request("POST", API, json.dumps({"policy": {"inline": text}}), {"Content-Type": "application/json"})
        answers = [Answer(c.getresponse()) for c in connections]
        for c in connections:
            c.close()
        assert sorted(a.status for a in answers) == [201] + 11 * [429], answers


# ---- descriptors

@pytest.mark.parametrize("given, has", [("256:2000", 2000), ("256:5000", 4096), ("5000:5000", 4096)])
def test_it_has_as_many_descriptors_as_it_may(tmp_path, given, has):
    with Service(tmp_path, before=["prlimit", "--nofile=" + given]) as service:
        assert resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)[0] == has


def leave_descriptors(service, n):
    """So many more can the service open."""
    pid = service.process.pid
    taken = set(map(int, os.listdir("/proc/%d/fd" % pid)))
    free = [i for i in range(len(taken) + n + 1) if i not in taken]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[n], resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))


def create_without(service, body, most):
    """The answers to creates over one connection, each with one descriptor more than the one before."""
    connection = Connection(service.socket)
    answers = []
    for n in range(most):
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (1024, 4096))
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() is not None
        leave_descriptors(service, n)
        connection.request("POST", API, json.dumps(body), {"Content-Type": "application/json"})
        answers.append(Answer(connection.getresponse()))
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (1024, 4096))
    connection.close()
    return answers


@pytest.mark.parametrize("named", [False, True])
def test_a_helper_that_can_not_be_started(tmp_path, named):
    """The check of a policy is one: whoever asked for it is told, once."""
    text = json.dumps(policy({"id": "a", "hosts": ["a.test"]}))
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "a.yaml").write_text(text)
    with Service(tmp_path, {"policies": str(policies), "limits": {"running": 1}}) as service:
        service.idle()  # the others wait: no keeper is to start with so few descriptors
        answers = create_without(service, {"policy": {"name": "a"} if named else {"inline": text}}, 10)
        assert {a.status for a in answers} == {201, 503}, answers
        assert "the policy could not be checked" in [a.json.get("detail") for a in answers]
        assert "a helper can't be started" in service.err.text()
        service.stop()
        service.start()  # what could not be removed is found by its first sweep


def test_no_descriptors_for_files_are_no_fault_of_the_request(tmp_path):
    with Service(tmp_path, {"limits": {"running": 1}}) as service:
        service.idle()
        answers = create_without(service, {"files": {"a": "x"}}, 8)
        assert {a.status for a in answers} == {201, 503}, answers
        assert service.post(API, {"files": {"a": "x", "a/b": "y"}}).status == 422
        service.stop()
        service.start()


# ---- who may ask

@pytest.fixture
def open_dir():
    """One that everybody can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="cage-open-") as directory:
        os.chmod(directory, 0o755)
        yield directory


def test_another_user_of_this_machine_is_refused(open_dir):
    """Where the socket itself can be reached by everybody, the service looks at who is at the other end."""
    with Service(open_dir) as service:
        os.chmod(service.state, 0o755)
        os.chmod(service.socket, 0o666)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-s", "-w", "\n%{http_code}", "--unix-socket",
                               service.socket, "http://localhost" + API], capture_output=True, text=True, timeout=30)
        body, _, status = done.stdout.rpartition("\n")
        assert status == "403" and "user of the service" in json.loads(body)["detail"], done
        assert service.get(API).status == 200


# ---- redirects

def test_a_redirect_is_not_followed(tmp_path):
    """Where it leads is the client's to ask for, and each request is under the policy."""
    pki = Pki(tmp_path / "pki")
    moved = b"HTTP/1.1 302 Found\r\nLocation: https://other.test/secret\r\nContent-Length: 0\r\n\r\n"
    with RawOrigin(serving(moved), pki.leaf("site.test", "other.test")) as origin:
        policies = tmp_path / "policies"
        policies.mkdir()
        text = policy({"id": "site", "hosts": ["site.test"]}, pins={h: origin.pin for h in ("site.test", "other.test")}, trust=[pki.ca_pem])
        (policies / "site.yaml").write_text(json.dumps(text))
        with Service(tmp_path, {"policies": str(policies)}) as service:
            ident = service.idle(policy={"name": "site"})
            result = service.result(ident, "http_request", url="https://site.test/a")
            leads_to = dict(result["headers"])["location"]
            assert (result["status"], leads_to) == (302, "https://other.test/secret"), result
            assert len(origin.requests) == 1
            hop = service.result(ident, "http_request", url=leads_to)
            assert hop["status"] == 403 and json.loads(hop["body"])["reason"] == "host.not_allowed", hop
            assert len(origin.requests) == 1


def test_the_decision_log_of_a_sandbox(tmp_path):
    with listening() as server, Service(tmp_path, {"limits": {"log": "256KiB"}}) as service:
        fill_log(service, allows(server, "plain.test", at="127.0.0.1"))


def test_a_bound_of_the_log_that_is_none(tmp_path):
    service = Service(tmp_path, {"limits": {"log": "1KiB"}})
    done = subprocess.run([binary("cage"), "serve", "--check", "--config", service.config_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "limits.log: expected at least 256 KiB" in done.stderr, done.stderr
