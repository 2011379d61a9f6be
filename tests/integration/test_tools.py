"""--tools: what is done in a sandbox from outside is told to the proxy first, and stands in its log. --out: all that a sandbox may send."""
import os
import resource
import socket
import struct

import pytest
from cagelib.content import github_pat
from cagelib.checks import logged_block, refused
from cagelib.proxy import child_named, policy, wait_until
from cagelib.raw import RawOrigin


class Caller:
    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        self.socket.connect(self.path)

    def send(self, payload):
        self.socket.sendall(struct.pack("=H", len(payload)) + payload)
        return self

    def answer(self):
        """One byte; none when it was cut off, which may be before all was read."""
        try:
            return self.socket.recv(1)
        except ConnectionResetError:
            return b""

    def is_taken(self):
        """Is there room for one more? Who is cut off may have written before."""
        try:
            return self.call(b"allow", b"", b"file_list", b".") == b"y"
        except ConnectionError:
            return False

    def call(self, decision, reason, tool, detail):
        return self.send(b"\0".join((decision, reason, tool, detail))).answer()


@pytest.fixture
def origin():
    with RawOrigin() as running:
        yield running


def rules(origin):
    return policy({"id": "api", "hosts": ["api.test"], "ports": [origin.port]},
                  pins={"api.test": "127.0.0.1:%d" % origin.port})


@pytest.fixture
def caged(start_cage, origin, tmp_path):
    cage = start_cage(rules(origin), "--tools", "unix:%s/tools" % tmp_path)
    return cage, Caller(tmp_path / "tools")


def tools_of(cage):
    return cage.log.find(event="tool")


def one_tool(cage):
    cage.log.wait(event="tool")
    (line,) = tools_of(cage)
    return line


def test_a_call_is_logged_before_it_is_made(caged):
    cage, caller = caged
    assert caller.call(b"allow", b"", b"shell_exec", b"ls -l /workspace") == b"y"
    line = one_tool(cage)
    assert (line["decision"], line["method"], line["path"]) == ("allow", "shell_exec", "ls -l /workspace")
    assert "reason" not in line


def test_a_call_without_anything_to_tell(caged):
    cage, caller = caged
    assert caller.call(b"allow", b"", b"file_list", b"") == b"y"
    assert one_tool(cage)["method"] == "file_list"


@pytest.mark.parametrize("reason", ["tool.not_allowed", "tool.command", "tool.path", "tool.arguments", "limit.tool"])
def test_a_denied_call_has_its_reason(caged, reason):
    cage, caller = caged
    assert caller.call(b"block", reason.encode(), b"file_read", b"../../etc/shadow") == b"y"
    line = one_tool(cage)
    assert (line["decision"], line["enforced"], line["reason"]) == ("block", True, reason)


def test_many_in_one_packet_are_all_answered(caged):
    cage, caller = caged
    one = b"allow\0\0file_list\0src"
    caller.socket.sendall((struct.pack("=H", len(one)) + one) * 100)
    got = b""
    while len(got) < 100:
        got += caller.socket.recv(100)
    assert got == b"y" * 100
    wait_until(lambda: len(tools_of(cage)) == 100, 10, "not all of them are logged")


def test_a_message_in_pieces(caged):
    _, caller = caged
    message = b"allow\0\0file_list\0src"
    for byte in struct.pack("=H", len(message)) + message:
        caller.socket.sendall(bytes([byte]))
    assert caller.answer() == b"y"


def test_t34_a_secret_in_a_command_is_not_logged(caged):
    cage, caller = caged
    token = github_pat().encode()
    assert caller.call(b"allow", b"", b"shell_exec", b"curl -H 'authorization: token " + token + b"'") == b"y"
    assert one_tool(cage)["path"] == "[redacted]"
    with open(cage.log.path, "rb") as log:
        assert token not in log.read()


def test_t34_nor_the_value_of_one_that_the_policy_has(start_cage, origin, tmp_path):
    value = "correct horse battery"
    with_secret = rules(origin)
    with_secret["rules"][0]["secrets"] = ["key"]
    with_secret["secrets"] = [{"id": "key", "from": {"env": "THE_KEY"}}]
    cage = start_cage(with_secret, "--tools", "unix:%s/tools" % tmp_path, env={"THE_KEY": value})
    assert Caller(tmp_path / "tools").call(b"allow", b"", b"shell_exec", b"echo " + value.encode()) == b"y"
    assert one_tool(cage)["path"] == "[redacted]"


@pytest.mark.parametrize("message", [
    b"", b"allow", b"allow\0\0", b"allow\0\0\0detail", b"allow\0tool.path\0shell_exec\0x", b"block\0\0shell_exec\0x",
    b"block\0host.not_allowed\0shell_exec\0x", b"flag\0\0shell_exec\0x", b"allow\0\0shell_exec\0a\0b", b"x" * 5000], ids=lambda m: repr(m[:24]))
def test_who_breaks_the_form_is_cut_off_and_nothing_is_logged(caged, message):
    cage, caller = caged
    assert caller.send(message).answer() == b""
    assert Caller(caller.path).call(b"allow", b"", b"file_list", b".") == b"y"  # others are served
    assert one_tool(cage)["method"] == "file_list"


def test_so_many_tell_it_and_no_more(caged):
    _, caller = caged
    others = [Caller(caller.path) for _ in range(7)]
    for other in others:
        assert other.call(b"allow", b"", b"file_list", b".") == b"y"
    assert Caller(caller.path).answer() == b""
    others[0].socket.close()
    wait_until(lambda: Caller(caller.path).is_taken(), 10, "there is no room for another")


def limit_log(cage, size):
    writer = child_named(cage, "cage-log")
    _, hard = resource.prlimit(writer, resource.RLIMIT_FSIZE)
    resource.prlimit(writer, resource.RLIMIT_FSIZE, (size, hard))


def test_without_a_log_there_is_no_call(start_cage, origin, tmp_path):
    cage = start_cage(rules(origin), "--tools", "unix:%s/tools" % tmp_path, limit_file_size=True)
    caller = Caller(tmp_path / "tools")
    assert caller.call(b"allow", b"", b"file_list", b"before") == b"y"
    cage.log.wait(event="tool")
    limit_log(cage, os.path.getsize(cage.log.path))
    wait_until(lambda: caller.call(b"allow", b"", b"file_list", b"lost") == b"n", 10, "it is still allowed")
    limit_log(cage, resource.RLIM_INFINITY)
    wait_until(lambda: caller.call(b"allow", b"", b"file_list", b"again") == b"y", 10, "it does not recover")


# ---- --out

def test_all_that_may_be_sent_is_counted_over_rules_and_requests(start_cage, origin):
    cage = start_cage(rules(origin), "--out", "3000")
    url = "http://api.test:%d/" % origin.port
    assert cage.fetch("POST", url, body=b"x" * 2000).status == 200
    response = cage.fetch("POST", url, body=b"x" * 2000)
    refused(response, "limit.budget", 429)
    logged_block(cage, response)
    assert cage.fetch("GET", url).status == 200  # what still fits
    assert origin.received.count(b"x") == 2000


def test_nothing_may_be_sent(start_cage, origin):
    cage = start_cage(rules(origin), "--out", "0")
    refused(cage.fetch("GET", "http://api.test:%d/" % origin.port), "limit.budget", 429)
    assert not origin.conns


def test_it_holds_in_observe_and_without_inspectors_too(start_cage, origin):
    loose = rules(origin)
    loose["mode"] = "observe"
    loose["inspectors"] = {"budget": {"action": "off"}}
    cage = start_cage(loose, "--out", "100")
    refused(cage.fetch("POST", "http://api.test:%d/" % origin.port, body=b"x" * 200), "limit.budget", 429)


def test_a_tunnel_ends_with_it(start_cage, origin):
    tunnel = policy({"id": "opaque", "action": "tunnel", "hosts": ["raw.test"], "ports": [origin.port]},
                    pins={"raw.test": "127.0.0.1:%d" % origin.port})
    cage = start_cage(tunnel, "--out", "1000")
    wire, answer = cage.ask_connect("raw.test:%d" % origin.port)
    assert answer.status == 200
    wire.send(b"a" * 900)
    origin.wait(lambda o: o.received.count(b"a") == 900)
    wire.send(b"b" * 900)
    cage.log.wait(event="response", reason="limit.budget")
    assert b"b" not in origin.received


@pytest.mark.parametrize("text", ["", "-1", "x", "1MiB", "99999999999999"])
def test_a_wrong_number_is_refused(start_cage, origin, text):
    with pytest.raises(AssertionError, match="--out: expected a number of bytes"):
        start_cage(rules(origin), "--out", text)
