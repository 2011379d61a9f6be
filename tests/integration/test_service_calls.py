"""Tool calls and files of cage serve: what becomes of them when clients leave, when the room does not answer, when they are not allowed,
and what the decision log says of them."""
import json
import os
import signal
import threading
import time

import pytest

from cagelib.proxy import wait_until
from cagelib.service import API, Answer, Connection, Service, quote

UNDER_WAY = "urn:cage:problem:idempotency-key-under-way"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("calls"), {"limits": {"running": 100}}) as running:
        yield running


@pytest.fixture(scope="module")
def idle(service):
    return service.idle()


def begin_call(service, ident, body, key=None):
    """A call whose answer nobody has read yet: the connection, to be left."""
    connection = Connection(service.socket)
    fields = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
    connection.request("POST", "%s/%s/tools/execute" % (API, ident), json.dumps(body), fields)
    return connection


def shell(command, **more):
    return {"tool": "shell_exec", "arguments": {"command": command}, **more}


def exists(service, ident, path):
    return service.tool(ident, "file_read", path=path).status == 200


def answer_of(service, ident, body, key):
    """The answer to the key, once what is under way has ended."""
    answers = []

    def is_there():
        answers.append(service.post("%s/%s/tools/execute" % (API, ident), body, headers={"Idempotency-Key": key}))
        assert answers[-1].status != 409 or answers[-1].json["type"] == UNDER_WAY, answers[-1]
        return answers[-1].status != 409
    wait_until(is_there, 30, "it does not end")
    return answers[-1]


# ---- clients that leave

def test_a_call_with_a_key_is_made_once_though_its_client_leaves(service, idle):
    body = shell("echo x >> left; until [ -e left.go ]; do sleep 0.05; done; cat left")
    connection = begin_call(service, idle, body, "left-1")
    wait_until(lambda: exists(service, idle, "left"), 20, "it has not begun")
    connection.close()
    again = service.post("%s/%s/tools/execute" % (API, idle), body, headers={"Idempotency-Key": "left-1"})
    assert (again.status, again.json["type"]) == (409, UNDER_WAY), again
    assert again.headers["Content-Type"] == "application/problem+json"
    service.result(idle, "file_write", path="left.go", content="")
    answer = answer_of(service, idle, body, "left-1")
    assert answer.status == 200 and answer.json["result"]["stdout"] == "x\n", answer


def test_a_call_under_way_is_told_to_others(service, idle):
    body = shell("touch both; until [ -e both.go ]; do sleep 0.05; done; echo done")
    with_client = begin_call(service, idle, body, "both")
    wait_until(lambda: exists(service, idle, "both"), 20, "it has not begun")
    again = service.post("%s/%s/tools/execute" % (API, idle), body, headers={"Idempotency-Key": "both"})
    assert (again.status, again.json["type"]) == (409, UNDER_WAY), again
    service.result(idle, "file_write", path="both.go", content="")
    first = with_client.getresponse()
    text = first.read()
    with_client.close()
    assert first.status == 200 and answer_of(service, idle, body, "both").body == text


def test_what_was_made_and_took_too_long_is_not_made_again(service, idle):
    service.result(idle, "shell_exec", command="echo x >> late.n")
    body = shell("echo y >> late.n; sleep 1000", timeout_seconds=1)
    begin_call(service, idle, body, "late").close()
    answer = answer_of(service, idle, body, "late")
    assert answer.status == 200 and answer.json["result"]["timed_out"], answer
    assert service.result(idle, "file_read", path="late.n")["content"] == "x\ny\n"


def test_a_failure_of_a_call_is_its_answer(service, idle):
    body = {"tool": "file_read", "arguments": {"path": "none"}}
    path = "%s/%s/tools/execute" % (API, idle)
    first = service.post(path, body, headers={"Idempotency-Key": "fails"})
    service.result(idle, "file_write", path="none", content="now it is there")
    again = service.post(path, body, headers={"Idempotency-Key": "fails"})
    assert first.status == again.status == 404 and first.body == again.body
    assert again.headers["Content-Type"] == "application/problem+json"


def marked(service, ident):
    return service.result(ident, "shell_exec", command="grep -l 'marked-[o]ne' /proc/[0-9]*/cmdline")["stdout"]


def test_a_call_without_a_key_ends_with_its_client(service, idle):
    connection = begin_call(service, idle, shell("touch nokey; sh -c 'sleep 1000; true' marked-one"))
    wait_until(lambda: marked(service, idle), 20, "it has not begun")
    connection.close()
    wait_until(lambda: not marked(service, idle), 20, "it goes on")


def test_a_sandbox_ends_under_a_call_that_nobody_waits_for(service):
    ident = service.idle()
    body = shell("touch on; sleep 1000")
    connection = begin_call(service, ident, body, "ends")
    wait_until(lambda: exists(service, ident, "on"), 20, "it has not begun")
    connection.close()
    service.request("DELETE", API + "/" + ident)
    service.wait(ident, "deleted")
    assert service.get("/healthz").status == 200


def test_the_service_ends_under_a_call_that_nobody_waits_for(tmp_path):
    with Service(tmp_path) as service:
        ident = service.idle()
        connection = begin_call(service, ident, shell("touch on; sleep 1000"), "ends")
        wait_until(lambda: exists(service, ident, "on"), 20, "it has not begun")
        connection.close()
        service.stop()
        service.start()


def test_the_service_ends_when_its_calls_have(tmp_path):
    with Service(tmp_path) as service:
        ident = service.idle()
        connection = begin_call(service, ident, shell("touch on; until [ -e go ]; do sleep 0.05; done; echo done"))
        wait_until(lambda: exists(service, ident, "on"), 20, "it has not begun")
        go = begin_call(service, ident, shell("touch seen; sleep 1; touch go"))
        wait_until(lambda: exists(service, ident, "seen"), 20, "it has not begun")
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        assert json.loads(connection.getresponse().read())["result"]["stdout"] == "done\n"
        assert go.getresponse().status == 200
        assert service.process.wait(10) == 0
        assert time.monotonic() - began < 4  # of 5 s that they may take
        service.stop()
        service.start()


# ---- a room that does not answer

def children_of(pid):
    found = []
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % other, encoding="utf-8", errors="replace") as f:
                if int(f.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(other))
        except OSError:
            continue
    return found


def inside_of(service, ident):
    """The pid of cage-inside of the sandbox."""
    todo = [p for p in service.keepers() if service.directory(ident).encode() in open("/proc/%d/cmdline" % p, "rb").read()]
    while todo:
        pid = todo.pop()
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            if f.read().split(b"\0")[0] == b"/run/cage/inside":
                return pid
        todo += children_of(pid)
    raise AssertionError("there is no cage-inside")


def test_files_of_a_room_that_does_not_answer(service):
    ident = service.idle()
    path = "%s/%s/files/f" % (API, ident)
    assert service.request("PUT", path, b"x").status == 204
    pid = inside_of(service, ident)
    answers = {}

    def ask(name, method, body=None):
        began = time.monotonic()
        answers[name] = (service.request(method, path, body), time.monotonic() - began)
    os.kill(pid, signal.SIGSTOP)
    try:
        threads = [threading.Thread(target=ask, args=a) for a in (("get", "GET"), ("small", "PUT", b"y"), ("large", "PUT", bytes(8 << 20)))]
        for t in threads:
            t.start()
        for t in threads:
            t.join(50)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert {k: v[0].status for k, v in answers.items()} == {"get": 504, "small": 504, "large": 504}
    assert all(a.json["reason"] == "limit.tool" and took < 30 for a, took in answers.values())
    wait_until(lambda: service.get(path).status == 200, 20, "it does not answer again")


def proxy_of(service, ident):
    """The pid of cage-proxy of the sandbox."""
    log = os.path.join(service.directory(ident), "log.jsonl").encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"cage-proxy") and log in words:
            return int(pid)
    raise AssertionError("there is no cage-proxy")


def test_a_policy_that_the_proxy_does_not_take_in_time(service):
    """The client is told, and once the proxy goes on it has the policy that it had."""
    ident = service.idle()
    before = service.show(ident)["policy"]["sha256"]
    path = "%s/%s/policy" % (API, ident)
    text = json.dumps({"version": 1, "name": "new", "rules": [{"id": "a", "hosts": ["a.test"]}]})
    pid = proxy_of(service, ident)
    os.kill(pid, signal.SIGSTOP)
    try:
        late = service.request("PUT", path, text)
        assert late.status == 504, late
        assert service.request("PUT", path, text).status == 409  # it is being given the old one
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not os.path.exists(os.path.join(service.directory(ident), "policy.old.yaml")), 20, "it has not taken the old one")
    assert service.show(ident)["policy"]["sha256"] == before
    with open(os.path.join(service.directory(ident), "policy.yaml"), encoding="utf-8") as f:
        assert "a.test" not in f.read()
    assert service.request("PUT", path, text).status == 200


# ---- what is allowed

def tools_logged(service, ident):
    return [(x["decision"], x.get("reason"), x["method"], x.get("path")) for x in service.logs(ident) if x["event"] == "tool"]


def wait_logged(service, ident, *line):
    wait_until(lambda: line in tools_logged(service, ident), 10, "%r is not logged" % (line,))


def test_files_are_logged(service):
    ident = service.idle()
    path = "%s/%s/files/%s" % (API, ident, quote("d/\u00e9"))
    assert service.request("PUT", path, b"x").status == 204
    assert service.get(path).body == b"x"
    wait_until(lambda: [x[:3] for x in tools_logged(service, ident)] == [("allow", None, "file_write"), ("allow", None, "file_read")], 10, "not logged")
    for method, tool in (("PUT", "file_write"), ("GET", "file_read")):
        assert service.request(method, "%s/%s/files/%%2e%%2e/x" % (API, ident), b"x" if method == "PUT" else None).status == 403
        wait_logged(service, ident, "block", "tool.path", tool, "../x")
    service.result(ident, "shell_exec", command="ln -s /etc/passwd link")
    assert service.get("%s/%s/files/link" % (API, ident)).json["reason"] == "tool.path"
    wait_logged(service, ident, "block", "tool.path", "file_read", "link")
    service.result(ident, "shell_exec", command="ln -s / r; echo > file")
    put = service.request("PUT", "%s/%s/files/r/tmp/x" % (API, ident), b"x")
    assert (put.status, put.json["reason"]) == (403, "tool.path"), put
    wait_logged(service, ident, "block", "tool.path", "file_write", "r/tmp/x")
    assert service.request("PUT", "%s/%s/files/file/x" % (API, ident), b"x").status == 404


def test_a_file_with_a_name_that_is_no_text(service):
    ident = service.idle()
    path = "%s/%s/files/a%%ff%%0a%%22" % (API, ident)
    assert service.request("PUT", path, b"x").status == 204
    assert service.get(path).body == b"x"
    wait_until(lambda: [x[2] for x in tools_logged(service, ident)] == ["file_write", "file_read"], 10, "not logged")


@pytest.mark.parametrize("tools, put, get", [(["file_read"], 403, 200), (["file_write"], 204, 403), ([], 403, 403)])
def test_files_are_under_the_list_of_tools(service, tools, put, get):
    ident = service.idle(tools=tools, files={"f": "given"}, keep=True)
    path = "%s/%s/files/f" % (API, ident)
    answers = {"file_write": service.request("PUT", path, b"mine"), "file_read": service.get(path)}
    assert (answers["file_write"].status, answers["file_read"].status) == (put, get)
    for tool, answer in answers.items():
        if answer.status == 403:
            assert answer.json["reason"] == "tool.not_allowed"
            wait_logged(service, ident, "block", "tool.not_allowed", tool, "f")
    service.post("%s/%s/stop" % (API, ident), None)
    service.wait(ident, "killed")
    kept = service.get(path)
    assert kept.status == get and (get == 403 or kept.body == b"given")


@pytest.mark.parametrize("arguments", [{}, {"command": 1}, {"command": "true", "x": 1}, {"command": ["true"]}])
def test_a_tool_that_is_not_allowed_is_denied_whatever_its_arguments(service, arguments):
    ident = service.idle(tools=["file_read"])
    answer = service.tool(ident, "shell_exec", **arguments)
    assert (answer.status, answer.json["reason"]) == (403, "tool.not_allowed")
    text = arguments.get("command")
    wait_logged(service, ident, "block", "tool.not_allowed", "shell_exec", text if isinstance(text, str) else ".")


def test_bad_arguments_are_logged(service, idle):
    answer = service.tool(idle, "file_read", path="bad-arguments", max_bytes=-1)
    assert (answer.status, answer.json["reason"]) == (422, "tool.arguments")
    assert [e["pointer"] for e in answer.json["errors"]] == ["/arguments/max_bytes"]
    wait_logged(service, idle, "block", "tool.arguments", "file_read", "bad-arguments")


def test_many_patterns_that_take_long_do_not_stop_the_service(service):
    """Calls that are denied because nobody can tell in time; others are answered between them."""
    ident = service.idle(blocked_commands=["(?:[ab]{1,40}?){2}%dQ" % i for i in range(100)])
    connections = [begin_call(service, ident, shell("a" * 80 + "Q")) for _ in range(20)]
    began = time.monotonic()
    assert service.get("/healthz").status == 200
    took = time.monotonic() - began
    answers = [Answer(c.getresponse()) for c in connections]
    for c in connections:
        c.close()
    assert {(a.status, a.json["reason"]) for a in answers} <= {(403, "tool.command"), (429, "limit.tool")}, answers
    assert took < 30, took  # as long as a busy machine may take for all of them together
    assert service.result(ident, "shell_exec", command="true")["exit_code"] == 0


@pytest.mark.parametrize("arguments, pointer", [
    ({"url": "https://no.test/a b"}, "/url"), ({"url": "https://no.test/\u00e9"}, "/url"), ({"url": "ftp://no.test/"}, "/url"),
    ({"method": "CONNECT"}, "/method"), ({"method": "get"}, "/method"), ({"headers": {"a(b)": "x"}}, "/headers/a(b)"),
    ({"headers": {"a": "x\ny: z"}}, "/headers/a"), ({"headers": {"a": "\x7f"}}, "/headers/a"), ({"body": "x" * 1100000}, ""),
])
def test_what_no_request_can_have_is_told_before_it_is_made(service, idle, arguments, pointer):
    call = {"tool": "http_request", "arguments": {"url": "https://no.test/", **arguments}}
    answer = service.post("%s/%s/tools/execute" % (API, idle), call)
    assert (answer.status, answer.json.get("reason")) == (422, "tool.arguments"), answer
    assert [e["pointer"] for e in answer.json["errors"]] == ["/arguments" + pointer]


# ---- what is not logged

@pytest.mark.parametrize("url, logged", [
    ("https://user:hidden@no.test/a?q=hidden#hidden", "https://no.test/a"),
    ("https://hidden@no.test:8443/b", "https://no.test:8443/b"),
    ("https://user:hi@dden:hidden@[::1]:443/c", "https://[::1]:443/c"),
    ("https://user:" + "hidden" * 100 + "@no.test/d", "https://no.test/d"),
    ("https://no.test/e@f?q=hidden@hidden", "https://no.test"),
    ("http:///hidden@no.test", "."), ("http://no.test\\@hidden@x/", "."), ("http://no.test/a\\hidden", "."), ("http://u:1/hidden@no.test/", "http://u"),
    ("http://[::1]:80/hidden@no.test/", "http://[::1]"),
    ("https://user:hidden/hidden@no.test/", "."), ("https://user:hidden?hidden@no.test/", "."), ("https://user:hidden#hidden@no.test/", "."),
    ("HTTPS://user:hidden@no.test/g", "HTTPS://no.test/g"), ("user:hidden@no.test/", "."), ("https:/user:hidden@no.test/", "."), ("x?q=hidden://no.test/", "."),
])
def test_passwords_and_queries_are_not_logged(service, url, logged):
    ident = service.idle()
    answer = service.tool(ident, "http_request", url=url)
    assert answer.status in (200, 422, 502), answer
    wait_until(lambda: tools_logged(service, ident), 10, "not logged")
    assert [x[3] for x in tools_logged(service, ident)] == [logged]
    for name in os.listdir(service.directory(ident)):
        if name.startswith("log."):
            with open(os.path.join(service.directory(ident), name), "rb") as f:
                data = f.read()
            assert b"hidden" not in data and b"dden" not in data, data


def test_values_of_an_unknown_tool_are_not_logged(service):
    ident = service.idle()
    answer = service.tool(ident, "http_get", url="https://user:hidden@no.test/?q=hidden", then="x")
    assert (answer.status, answer.json["reason"]) == (403, "tool.not_allowed")
    wait_logged(service, ident, "block", "tool.not_allowed", "http_get", "url, then")
    with open(os.path.join(service.directory(ident), "log.jsonl"), "rb") as f:
        assert b"hidden" not in f.read()
