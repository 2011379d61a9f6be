"""cage serve: sandboxes through its API, with real rooms."""
import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import threading

import pytest

from cagelib.proxy import binary, wait_until
from cagelib.service import API, Connection, Service, events, quote


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("serve"), {"limits": {"running": 50}}) as running:
        yield running


# ---- the service itself

def test_health_and_description(service):
    answer = service.get("/healthz")
    assert answer.status == 200 and answer.json["status"] == "ok"
    with open(os.path.join(os.path.dirname(__file__), "../../orchestrator/service/openapi.yaml"), "rb") as f:
        assert service.get("/openapi.yaml").body == f.read()


def test_socket_is_private(service):
    assert os.stat(service.socket).st_mode & 0o777 == 0o600
    assert os.stat(service.state).st_mode & 0o777 == 0o700


def test_a_second_service_on_the_same_state_is_refused(service):
    done = subprocess.run([binary("cage-serve"), "--state", service.state], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "another service has it" in done.stderr


def test_another_user_is_refused(service):
    # its directory is closed to others: they can't even connect
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-s", "--unix-socket", service.socket,
                           "http://localhost/healthz"], capture_output=True, timeout=30)
    assert done.returncode != 0


@pytest.mark.parametrize("given, same", [("abc-1._X", True), ("x" * 64, True), ("x" * 65, False), ("a b", False), (None, False)])
def test_request_ids(service, given, same):
    answer = service.get("/healthz", headers={"X-Request-Id": given} if given else {})
    have = answer.headers["X-Request-Id"]
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", have) and (have == given) == same


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/", 404), ("GET", "/api/v1/none", 404), ("GET", API + "/none", 404), ("DELETE", API + "/none", 404), ("PUT", API, 405),
    ("HEAD", "/healthz", 405), ("GET", API + "/a%2fb", 404), ("GET", API + "/none/files/x", 404), ("POST", API + "/none/stop", 404),
    ("GET", API + "?limit=0", 400), ("GET", API + "?limit=1001", 400), ("GET", API + "?after=x", 400), ("GET", API + "?state=x", 400),
    ("GET", API + "?label=x", 400), ("GET", "/api/v1/usage?since=x", 400), ("GET", API + "/none/logs?follow=maybe", 400),
])
def test_what_is_not_there(service, method, path, status):
    answer = service.request(method, path)
    assert answer.status == status
    if method != "HEAD":
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json["status"] == status and answer.json["instance"] == answer.headers["X-Request-Id"]
    if status == 405:
        assert answer.headers["Allow"]


@pytest.mark.parametrize("raw, status", [
    (b"GET /healthz HTTP/1.1\nHost: a\n\n", b"400"), (b"\x00\x01", b"400"), (b"GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"400"),
    (b"POST /api/v1/sandboxes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
    (b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"4"),
    (b"POST /api/v1/sandboxes HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n", b"413"),
], ids=["bare-lf", "noise", "absolute", "smuggling", "long", "large"])
def test_what_is_no_http(service, raw, status):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(service.socket)
        s.sendall(raw)
        data = b""
        while piece := s.recv(65536):
            data += piece
    assert data.startswith(b"HTTP/1.1 " + status), data
    assert b"application/problem+json" in data


def test_requests_one_after_the_other_on_a_connection(service):
    connection = Connection(service.socket)
    for _ in range(3):
        connection.request("GET", "/healthz")
        assert json.loads(connection.getresponse().read())["status"] == "ok"
    connection.close()


# ---- a sandbox and its end

def test_a_command(service):
    box = service.run("sh", "-c", "cat a/b; echo err >&2; exit 3", files={"a/b": "text\n"}, labels={"team": "x"})
    assert (box["state"], box["reason"], box["exit_code"], box["labels"]) == ("failed", "exit", 3, {"team": "x"})
    assert [h["state"] for h in box["history"]] == ["queued", "creating", "running", "failed"]
    assert service.output(box["id"], "stdout") == b"text\n" and service.output(box["id"], "stderr") == b"err\n"
    assert sorted(service.output(box["id"]).split()) == [b"err", b"text"]
    assert box["usage"]["wall_seconds"] > 0 and box["usage"]["output_bytes"] == 9
    assert service.logs(box["id"])[0]["event"] == "start"
    assert service.get("%s/%s/logs?source=dns" % (API, box["id"])).status == 200


def test_success_and_signal(service):
    assert service.run("true")["state"] == "succeeded"
    box = service.run("sh", "-c", "kill -9 $$")
    assert (box["state"], box["exit_code"]) == ("failed", 137)


def test_env_and_limits(service):
    box = service.run("sh", "-c", "echo $A; df -B1 /workspace | tail -1", env={"A": "b c"}, limits={"disk": 1 << 20})
    assert box["state"] == "succeeded" and box["limits"]["disk"] == 1 << 20
    assert service.output(box["id"]).startswith(b"b c\n") and b" 1048576 " in service.output(box["id"])


@pytest.mark.parametrize("body, pointer", [
    ({"command": ["echo", "x" * 40000]}, "/command"), ({"env": {"A": "x" * 70000}}, "/env/A"), ({"env": {"V%d" % i: "" for i in range(129)}}, "/env"),
    ({"env": {"V%d" % i: "x" * 60000 for i in range(10)}}, "/env"),
], ids=["command", "variable", "variables", "all"])
def test_too_long_for_a_keeper(service, body, pointer):
    answer = service.post(API, body)
    assert answer.status == 422 and [e["pointer"] for e in answer.json["errors"]] == [pointer], answer


def test_the_longest_that_a_keeper_takes(service):
    env = {"V%d" % i: "x" for i in range(121)}
    env.update({"LONG%d" % i: "y" * 65535 for i in range(7)})
    box = service.run("sh", "-c", "echo $V120 ${#LONG6} ${#0}", "z" * 29960, env=env)
    assert box["state"] == "succeeded", box
    assert service.output(box["id"]) == b"x 65535 29960\n"


def test_values_of_variables_are_seen_by_nobody_else(service):
    """Every user of the machine can read arguments. And a name such as cage itself would obey is only for the room."""
    ident = service.idle(env={"DB_PASSWORD": "hunter2-of-the-room", "CAGE_POLICIES": "/of-the-room"})
    assert service.result(ident, "shell_exec", command="echo $DB_PASSWORD")["stdout"] == "hunter2-of-the-room\n"
    seen = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read()
            with open("/proc/%s/environ" % pid, "rb") as f:
                env = f.read().split(b"\0")
        except OSError:
            continue
        assert b"of-the-room" not in words, words
        if words.startswith((b"cage\0run", b"cage-keeper")):
            assert not [e for e in env if e.startswith(b"CAGE_POLICIES=")]
            seen += service.state.encode() in words
    assert seen == 2


def test_wall_time(service):
    box = service.run("sleep", "1000", limits={"wall_seconds": 1})
    assert (box["state"], box["reason"]) == ("timed_out", "time.wall")


def test_wall_time_is_that_of_a_command(service):
    box = service.wait(service.create(limits={"wall_seconds": 1}, lifetime_seconds=3), "timed_out")
    assert box["reason"] == "time.lifetime" and box["usage"]["wall_seconds"] > 1


def test_what_never_began_costs_nothing(service):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        box = service.run("true", publish=[{"port": 3000, "host_port": taken.getsockname()[1]}])
    assert (box["state"], box["reason"], box["usage"]["wall_seconds"], box["usage"]["cost"]["amount"]) == ("failed", "keeper.failed", 0, 0)


def test_a_log_that_can_not_be_counted(service):
    """Nobody takes that for a sandbox that has sent nothing."""
    ident = service.idle()
    log = service.directory(ident) + "/log.jsonl"
    os.rename(log, log + ".away")
    os.mkdir(log)
    service.post("%s/%s/stop" % (API, ident), None)
    assert service.wait(ident, "killed")["usage"]["counted"] is False
    service.err.wait("alert: %s: not_counted" % ident, 10)
    assert "counted" not in service.run("true")["usage"]


def test_lifetime(service):
    ident = service.create(lifetime_seconds=1)
    box = service.wait(ident, "timed_out")
    assert box["reason"] == "time.lifetime"


def test_stop(service):
    ident = service.create(command=["sh", "-c", "trap '' TERM; echo there; while :; do sleep 0.1; done"])
    wait_until(lambda: service.output(ident) == b"there\n", 60, "it does not begin")
    assert service.post("%s/%s/stop" % (API, ident), None).status == 202
    box = service.wait(ident, "killed")
    assert box["reason"] == "asked" and service.output(ident) == b"there\n"


def test_delete_removes_everything(service):
    ident = service.idle(keep=True)
    assert service.request("DELETE", API + "/" + ident).status == 202
    service.wait(ident, "deleted")
    assert not os.path.exists(service.directory(ident))
    assert service.request("DELETE", API + "/" + ident).status == 202
    assert service.get("%s/%s/output" % (API, ident)).status == 409


def test_delete_leaves_nothing_in_the_database(service):
    """Neither variables nor the command, and no answer that is remembered; and a create is not made again."""
    body = {"env": {"KEY": "mark-of-env"}, "command": ["sh", "-c", "sleep 1000; : mark-of-command"], "labels": {"team": "t"}}
    ident = service.post(API, body, headers={"Idempotency-Key": "nothing"}).json["id"]
    service.wait(ident, "running")
    said = service.tool(ident, "shell_exec", headers={"Idempotency-Key": "call"}, command="echo mark-of-$((1 + 1))-tool")
    assert said.json["result"]["stdout"] == "mark-of-2-tool\n"
    other = service.run("echo", "mark-that-stays")["id"]
    service.request("DELETE", API + "/" + ident)
    box = service.wait(ident, "deleted")
    assert "command" not in box and box["labels"] == {"team": "t"} and box["usage"]["wall_seconds"] > 0
    done = subprocess.run(["grep", "-rlaE", "mark-of-", service.state], capture_output=True, timeout=60, check=False)
    assert done.stdout == b""
    assert service.show(other)["command"] == ["echo", "mark-that-stays"]
    assert service.post(API, body, headers={"Idempotency-Key": "nothing"}).status == 410
    assert service.post(API, {}, headers={"Idempotency-Key": "nothing"}).status == 422


def test_keep(service):
    box = service.run("sh", "-c", "mkdir d; echo kept > d/f; ln -s /etc/passwd l", keep=True)
    files = "%s/%s/files/" % (API, box["id"])
    assert service.get(files + "d/f").body == b"kept\n"
    assert service.get(files + "none").status == 404
    for path in ("../result", "d/../../result", "/etc/passwd"):
        assert service.get(files + quote(path).replace("..", "%2e%2e")).status == 403
    assert service.get("%s/%s/files/f" % (API, service.run("true")["id"])).status == 409


# ---- what a create says

@pytest.mark.parametrize("body, pointer", [
    ({"nothing": 1}, "/nothing"), ({"command": []}, "/command"), ({"command": "ls"}, "/command"), ({"command": [1]}, "/command/0"),
    ({"files": {"../x": ""}}, "/files/..~1x"), ({"files": {"/x": ""}}, "/files/~1x"), ({"env": {"A B": ""}}, "/env/A B"),
    ({"tools": ["shell_exec", "x"]}, "/tools/1"), ({"tools": ["file_read", "file_read"]}, "/tools/1"),
    ({"blocked_commands": ["("]}, "/blocked_commands/0"), ({"limits": {"cpu": 0}}, "/limits/cpu"), ({"limits": {"x": 0}}, "/limits/x"),
    ({"limits": {"memory": 1 << 60}}, "/limits/memory"), ({"labels": {"A": "b"}}, "/labels/A"), ({"labels": {"a": "b c"}}, "/labels/a"),
    ({"network": {"mode": "open"}}, "/network/mode"), ({"network": {"mode": "policy"}}, "/network/mode"),
    ({"network": {"mode": "allowlist", "domain_allowlist": ["good.test", "*"]}}, "/network/domain_allowlist/1"),
    ({"network": {"mode": "none", "domain_allowlist": []}}, "/network/domain_allowlist"),
    ({"policy": {"name": "none"}}, "/policy/name"), ({"policy": {}}, "/policy"), ({"secrets": ["a"]}, "/secrets"),
    ({"profile": "none"}, "/profile"), ({"backend": "podman"}, "/backend"), ({"image": "localhost/a@sha256:00"}, "/image"), ({"rootfs": "none-such"}, "/rootfs"), ({"rootfs": "/"}, "/rootfs"), ({"rootfs": "/etc"}, "/rootfs"),
    ({"publish": [{"port": 80}]}, "/publish/0/port"), ({"publish": [{"port": 99, "address": "0.0.0.0"}]}, "/publish/0/address"),
    ({"lifetime_seconds": 0}, "/lifetime_seconds"), ({"keep": 1}, "/keep"),
])
def test_wrong_values_are_named(service, body, pointer):
    before = len(os.listdir(os.path.join(service.state, "sandboxes")))
    answer = service.post(API, body)
    assert answer.status == 422 and [e["pointer"] for e in answer.json["errors"]] == [pointer], answer
    wait_until(lambda: len(os.listdir(os.path.join(service.state, "sandboxes"))) <= before, 20, "a directory is left")


def test_all_wrong_values_at_once(service):
    answer = service.post(API, {"a": 1, "keep": 1, "tools": [1, 2]})
    assert len(answer.json["errors"]) == 4


@pytest.mark.parametrize("body", [b"", b"{", b"[]x", b'{"keep":true,"keep":true}', b'{"command":["a\\u0000b"]}', b"\xff", b"[" * 100000])
def test_what_is_no_json(service, body):
    assert service.post(API, body, headers={"Content-Type": "application/json"}).status == 400


def test_a_bad_policy_is_refused_with_its_errors(service):
    answer = service.post(API, {"policy": {"inline": "version: 1\nname: x\nrulez: []\n"}})
    assert answer.status == 422 and "policy:3:1" in answer.json["errors"][0]["detail"]
    answer = service.post(API, {"policy": {"inline": "version: 1\nname: x\ninspectors: {secrets: {action: no}}\n"}})
    assert answer.status == 422 and "policy:3" in answer.json["errors"][0]["detail"], answer


RULE = "rules: [{id: r, hosts: [a.test], secrets: [key]}]\n"
FOREIGN = ["include: [/etc/passwd]\n", "inspectors: {external: {command: [/usr/bin/touch, /tmp/run]}}\n", "upstream: {trust: [system, /etc/passwd]}\n",
           RULE + "secrets: [{id: key, from: {file: /etc/passwd}}]\n", "images: [{registry: r.test, repository: a, key: /etc/passwd}]\n"]


@pytest.mark.parametrize("text", FOREIGN, ids=["include", "external", "trust", "file", "key"])
def test_t37_a_policy_in_a_request_names_nothing_of_this_machine(service, text):
    """It is read, and what it names is run, with the rights of the service."""
    policy = "version: 1\nname: x\n" + text
    ident = service.idle()
    for answer in (service.post(API, {"policy": {"inline": policy}}), service.request("PUT", "%s/%s/policy" % (API, ident), policy.encode())):
        detail = answer.json["errors"][0]["detail"]
        assert answer.status == 422 and ("of this machine" in detail or ("images" in text and "has no ceiling" in detail)), answer
        assert "root:" not in answer.body.decode()


def test_t37_a_policy_in_a_request_lets_in_no_images_of_its_own(service):
    """That is said by the operator: by a ceiling, or policies of their own."""
    policy = {"inline": "version: 1\nname: x\nimages: [{registry: r.test, repository: a}]\n"}
    answer = service.post(API, {"policy": policy, "command": ["true"]})
    assert answer.status == 422 and "policy:3:1: images: this service has no ceiling" in answer.json["errors"][0]["detail"], answer


def test_the_label_of_workflows_is_the_services(service):
    answer = service.post(API, {"command": ["true"], "labels": {"workflow": "wf-x"}})
    assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/labels/workflow", answer


def test_other_types_are_refused(service):
    assert service.post(API, b"{}", headers={"Content-Type": "text/plain"}).status == 415


# ---- idempotency, lists, usage

def test_idempotency(service):
    key = {"Idempotency-Key": "once"}
    first = service.post(API, {"command": ["true"]}, headers=key)
    again = service.post(API, {"command": ["true"]}, headers=key)
    assert (first.status, first.body, first.headers["Location"]) == (again.status, again.body, again.headers["Location"])
    assert service.post(API, {"command": ["false"]}, headers=key).status == 422
    assert service.post(API, {}, headers={"Idempotency-Key": "a b"}).status == 400


def test_pages(service):
    made = [service.create(command=["true"], labels={"page": "p"}) for _ in range(5)]
    seen, after = [], ""
    while True:
        page = service.get("%s?limit=2&label=page=p%s" % (API, after)).json
        seen += [b["id"] for b in page["items"]]
        if page["next"] is None:
            break
        after = "&after=" + page["next"]
    assert seen == made[::-1]
    for ident in made:
        service.wait(ident, "succeeded")
    assert len(service.get(API + "?label=page=p&state=succeeded").json["items"]) == 5
    assert service.get(API + "?label=page=p&state=failed").json["items"] == []


def test_usage(service):
    for value in ("a", "a", "b"):
        service.run("true", labels={"cost": value})
    rows = {r["value"]: r for r in service.get("/api/v1/usage?by=cost").json["items"]}
    assert service.get("/api/v1/usage?by=%00").status == service.get("/api/v1/usage?by=").status == 400
    assert rows["a"]["sandboxes"] == 2 and rows["b"]["by_state"] == {"succeeded": 1} and None in rows
    assert len(service.get("/api/v1/usage").json["items"]) == 1
    assert service.get("/api/v1/usage?since=2999-01-01T00:00:00Z").json["items"] == []


# ---- following

def test_follow_output(service):
    ident = service.create(command=["sh", "-c", "mkfifo go; printf 'one\\303'; read x < go; printf '\\251'; echo err >&2; exit 4"])
    connection = Connection(service.socket)
    connection.request("GET", "%s/%s/output?follow=true" % (API, ident))
    response = connection.getresponse()
    assert response.headers["Content-Type"] == "text/event-stream"
    stream = events(response)
    assert next(stream) == ("stdout", '"one"')
    service.result(ident, "shell_exec", command="echo > go")
    rest = list(stream)
    assert ("stdout", '"\u00e9"') in rest and ("stderr", '"err\\n"') in rest
    assert rest[-1][0] == "end" and json.loads(rest[-1][1]) == {"state": "failed", "reason": "exit", "exit_code": 4}
    connection.close()


def test_follow_logs(service):
    ident = service.idle()
    connection = Connection(service.socket)
    connection.request("GET", "%s/%s/logs?follow=true" % (API, ident))
    stream = events(connection.getresponse())
    assert json.loads(next(stream)[1])["event"] == "start"
    service.result(ident, "shell_exec", command="true")
    service.post("%s/%s/stop" % (API, ident), None)
    assert [json.loads(data)["event"] for _, data in stream][-1] == "stop"
    connection.close()


def test_large_output(service):
    box = service.run("sh", "-c", "head -c 3000000 /dev/zero")
    assert service.output(box["id"]) == bytes(3000000)
    box = service.run("sh", "-c", "head -c 3000000 /dev/zero", limits={"output_bytes": 1000})
    assert service.output(box["id"]) == bytes(1000)
    assert (box["usage"]["output_bytes"], box["usage"]["output_lost_bytes"]) == (1000, 2999000)


# ---- files and tools

@pytest.fixture(scope="module")
def idle(service):
    return service.idle(blocked_commands=["rm\\s+-rf", "(a+)+$"])


@pytest.mark.parametrize("size", [0, 1, 32768, 5000000])
def test_files(service, idle, size):
    data = os.urandom(size)
    path = "%s/%s/files/%s" % (API, idle, quote("d/with space \u00e9"))
    assert service.request("PUT", path, data).status == 204
    assert service.get(path).body == data


def test_files_beyond_the_workspace(service, idle):
    for path in ("../x", "a/../../x"):
        target = "%s/%s/files/%s" % (API, idle, path.replace("..", "%2e%2e"))
        assert service.request("PUT", target, b"x").status == 403
        assert service.get(target).status == 403


def test_a_full_workspace(service):
    ident = service.idle(limits={"disk": 1 << 20})
    assert service.request("PUT", "%s/%s/files/big" % (API, ident), bytes(2 << 20)).status == 507
    assert service.result(ident, "shell_exec", command="ls -A")["stdout"] == ""


def test_tools(service, idle):
    assert {t["name"] for t in service.get("/api/v1/tools").json["items"]} == {"shell_exec", "file_read", "file_write", "file_list", "http_request"}
    out = service.result(idle, "shell_exec", command="echo out; echo err >&2; exit 3")
    assert out == {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "truncated": False, "timed_out": False}
    assert service.result(idle, "shell_exec", command="pwd", workdir="/tmp")["stdout"] == "/tmp\n"
    assert service.result(idle, "shell_exec", command="kill -9 $$")["signal"] == 9
    assert service.result(idle, "file_write", path="t/f", content="text")["size"] == 4
    assert service.result(idle, "file_read", path="t/f") == {"content": "text", "size": 4, "truncated": False}
    assert service.result(idle, "file_read", path="t/f", max_bytes=2) == {"content": "te", "size": 2, "truncated": True}
    assert service.result(idle, "file_write", path="t/b", content_base64="/w==")["size"] == 1
    assert service.result(idle, "file_read", path="t/b")["content_base64"] == "/w=="
    entries = service.result(idle, "file_list", path="t")["entries"]
    assert sorted(e["name"] for e in entries) == ["b", "f"] and {"name": "f", "type": "file", "size": 4} in entries


def test_output_of_a_tool_is_bounded(service, idle):
    result = service.result(idle, "shell_exec", command="head -c 5000000 /dev/zero | tr '\\0' x")
    assert len(result["stdout"]) == 1 << 20 and result["truncated"]


def test_output_that_is_no_text(service, idle):
    """It is told as base64, which is no more than a third longer; a control byte in JSON is six times as long."""
    for byte in ("0", "1"):
        said = service.tool(idle, "shell_exec", command="head -c 5000000 /dev/zero | tr '\\0' '\\00%s'; echo text >&2" % byte)
        result = said.json["result"]
        assert base64.b64decode(result["stdout_base64"]) == (b"\0" if byte == "0" else b"\1") * (1 << 20) and "stdout" not in result
        assert result["stderr"] == "text\n" and result["truncated"] and len(said.body) < 3 << 19
    service.result(idle, "file_write", path="nul", content_base64="YQBi")
    assert service.result(idle, "file_read", path="nul")["content_base64"] == "YQBi"
    assert service.result(idle, "shell_exec", command="printf '\\033[1m\\a'")["stdout"] == "\x1b[1m\a"


def test_results_of_all_calls_are_bounded(service):
    """What all calls have brought is 64 MiB at most: beyond that no call is made, and those that are get less."""
    idents, other = [service.idle() for _ in range(2)], service.idle()
    script = "yes | head -c 1048576; yes | head -c 1048576 >&2; echo > done.$$; until [ -e go ]; do sleep 0.2; done"
    answers, threads = [], []

    def call(ident):
        answers.append(service.tool(ident, "shell_exec", command=script))
    for ident in idents:
        threads += [threading.Thread(target=call, args=(ident,)) for _ in range(24)]
    for t in threads:
        t.start()
    try:
        wait_until(lambda: service.tool(other, "shell_exec", command="echo").status == 503, 60, "there is no bound")
        refused = service.tool(other, "file_write", path="made", content="x")
        assert (refused.status, refused.json["reason"], refused.headers["Retry-After"]) == (503, "limit.tool", "1"), refused
    finally:
        for ident in idents:
            service.post("%s/%s/stop" % (API, ident), {})
    for t in threads:
        t.join(60)
    assert service.result(other, "file_list", path=".")["entries"] == []


def test_time_of_a_tool_is_bounded(service, idle):
    result = service.tool(idle, "shell_exec", command="echo begun; sleep 1000", timeout=1).json["result"]
    assert result["timed_out"] and result["stdout"] == "begun\n"


@pytest.mark.parametrize("tool, arguments, reason", [
    ("shell_exec", {"command": "x; rm  -rf /"}, "tool.command"), ("shell_exec", {"command": "a" * 40 + "!"}, "tool.command"),
    ("file_read", {"path": "../x"}, "tool.path"), ("file_read", {"path": "/etc/passwd"}, "tool.path"),
    ("file_write", {"path": "a/../../x", "content": ""}, "tool.path"), ("file_read", {"path": "link"}, "tool.path"),
    ("file_list", {"path": "up"}, "tool.path"), ("file_write", {"path": "up/tmp/x", "content": ""}, "tool.path"), ("none", {}, "tool.not_allowed"),
])
def test_denied_calls_are_logged(service, idle, tool, arguments, reason):
    service.result(idle, "shell_exec", command="ln -sf /etc/passwd link; ln -sfn .. up")
    answer = service.tool(idle, tool, **arguments)
    assert answer.status == 403 and answer.json["reason"] == reason
    wait_until(lambda: [x for x in service.logs(idle) if x["event"] == "tool" and x.get("reason") == reason and x["method"] == tool], 10, "not logged")


def test_a_denial_that_can_not_be_logged_is_no_answer(service):
    """All places for jobs are taken, so its log can't be reached."""
    ident = service.idle(blocked_commands=["^forbidden"])
    waiting = [threading.Thread(target=service.tool, args=(ident, "shell_exec"), kwargs={"command": "touch %d; until [ -e go ]; do sleep 0.1; done" % i}) for i in range(24)]
    for thread in waiting:
        thread.start()
    directory = "%s/%s" % (API, ident)
    try:
        wait_until(lambda: sum(x["event"] == "tool" for x in service.logs(ident)) == 24, 30, "they are not all there")
        wait_until(lambda: service.tool(ident, "shell_exec", command="true").status == 429, 10, "there is room for more")
        for tool, arguments, told in (("file_read", {"path": "../x"}, (503, "log.unavailable")),
                                      ("shell_exec", {"command": "forbidden"}, (429, "limit.tool"))):  # nobody has looked at it
            answer = service.tool(ident, tool, **arguments)
            assert (answer.status, answer.json["reason"]) == told, (tool, answer)
    finally:
        service.post(directory + "/stop", None)
        for thread in waiting:
            thread.join(60)


def test_where_a_body_goes_is_decided_by_its_path(service, idle):
    text = b"version: 1\nname: other\n"
    answer = service.request("PUT", "%s/%s/policy?x=/files/" % (API, idle), text)
    assert answer.status == 200 and answer.json["policy"]["sha256"] == hashlib.sha256(text).hexdigest(), answer
    assert service.request("PUT", "%s/%s/policy" % (API, idle), b"#" * (65 << 10)).status == 413


def test_only_listed_tools(service):
    ident = service.idle(tools=["file_read"])
    assert service.tool(ident, "shell_exec", command="true").json["reason"] == "tool.not_allowed"
    assert service.tool(ident, "file_read", path="none").status == 404


@pytest.mark.parametrize("body, pointer", [
    ({}, ""), ({"tool": "shell_exec", "arguments": {}}, "/arguments"), ({"tool": "shell_exec", "arguments": {"command": 1}}, "/arguments/command"),
    ({"tool": "file_write", "arguments": {"path": "a"}}, "/arguments"), ({"tool": "shell_exec", "arguments": {"command": "a", "x": 1}}, "/arguments/x"),
    ({"tool": "http_request", "arguments": {"url": "ftp://x"}}, "/arguments/url"), ({"tool": "x", "arguments": {}, "timeout_seconds": 0}, "/timeout_seconds"),
])
def test_wrong_calls(service, idle, body, pointer):
    answer = service.post("%s/%s/tools/execute" % (API, idle), body)
    assert answer.status == 422 and answer.json["errors"][0]["pointer"] == pointer


def test_tool_calls_of_one_that_has_ended(service):
    assert service.tool(service.run("true")["id"], "shell_exec", command="true").status == 409


def test_a_tool_call_is_made_once(service, idle):
    key = {"Idempotency-Key": "tool-1"}
    first = service.tool(idle, "shell_exec", command="echo x >> once; cat once", headers=key)
    again = service.tool(idle, "shell_exec", command="echo x >> once; cat once", headers=key)
    assert first.body == again.body and first.json["result"]["stdout"] == "x\n"


def test_many_calls_at_once(service, idle):
    answers = []

    def call(i):
        answers.append(service.tool(idle, "shell_exec", command="sleep 0.3; echo %d" % i))
    threads = [threading.Thread(target=call, args=(i,)) for i in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(answers) == 40 and {a.status for a in answers} <= {200, 429}
    assert all(a.json["reason"] == "limit.tool" for a in answers if a.status == 429)
    assert service.result(idle, "shell_exec", command="echo after")["stdout"] == "after\n"


def test_http_request_is_under_the_policy(service, idle):
    result = service.result(idle, "http_request", url="https://no.test/?secret=1")
    assert result["status"] == 403 and json.loads(result["body"])["reason"] == "host.not_allowed"
    wait_until(lambda: [x for x in service.logs(idle) if x.get("method") == "http_request" and x["path"] == "https://no.test/"], 10, "not logged")


# ---- policies

def test_reload(service):
    ident = service.idle()
    path = "%s/%s/policy" % (API, ident)
    before = service.show(ident)["policy"]["sha256"]
    bad = service.request("PUT", path, b"version: 1\nname: x\nrules: 1\n")
    assert bad.status == 422 and "policy:3" in bad.json["errors"][0]["detail"]
    assert service.show(ident)["policy"]["sha256"] == before
    good = service.request("PUT", path, b"version: 1\nname: other\n")
    assert good.status == 200 and good.json["policy"]["sha256"] != before, good
    service.result(ident, "shell_exec", command="true")
    wait_until(lambda: [x for x in service.logs(ident) if x["event"] == "tool" and x["policy"] == "other"], 10, "the new policy does not decide")


def test_publish(service):
    ident = service.idle(publish=[{"port": 9000}])
    where = service.show(ident)["published"]
    assert where[0]["port"] == 9000
    address, port = where[0]["address"].rsplit(":", 1)
    assert address == "127.0.0.1"
    service.result(ident, "shell_exec", command="(python3 -c \"import socket; s=socket.create_server(('127.0.0.1',9000)); open('up','w'); c=s.accept()[0]; c.send(b'hello'); c.close()\" >/dev/null 2>&1 &); until [ -e up ]; do :; done")
    with socket.create_connection((address, int(port)), timeout=20) as s:
        assert s.recv(100) == b"hello"
