"""Signals, restarts, and what happens when a part is missing (THREATS T35, T38): closed until it is whole again."""
import os
import re
import resource
import signal
import socket
import subprocess
import threading

import pytest
from cagelib.checks import refused
from cagelib.log import Log, validate
from cagelib.proxy import binary, child_named, children_of, is_alive, policy, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import Truncated

HOST = [("Host", "a.test")]


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf("a.test", "b.test", "*.n.test")) as running:
        yield running


def rules(origin, pki, *hosts, **more):
    names = hosts or ("a.test",)
    pins = {name: origin.pin for name in ("a.test", "b.test")}
    return policy({"id": "r", "hosts": list(names)}, pins=pins, trust=[pki.ca_pem], **more)


@pytest.fixture
def cage(start_cage, origin, pki):
    return start_cage(rules(origin, pki))


def try_fetch(cage, url):
    """The status, or None when the connection fails."""
    try:
        return cage.fetch("GET", url).status
    except (OSError, Truncated, AssertionError):
        return None


# ---- SIGHUP

def test_t35_a_good_policy_reaches_new_connections(cage, origin, pki):
    refused(cage.fetch("GET", "https://b.test/"), "host.not_allowed")
    line = cage.reload(rules(origin, pki, "b.test"))
    assert line["gen"] == 2
    assert wait_until(lambda: try_fetch(cage, "https://b.test/") == 200, 10, "the new rule never held")
    assert cage.log.wait(event="request", host="b.test", decision="allow")["gen"] == 2


def test_t35_an_idle_connection_that_is_no_longer_allowed_ends(cage, origin, pki):
    live = cage.tunnel("a.test")
    assert live.exchange("GET", "/", HOST).status == 200
    conn = cage.log.wait(event="request")["conn"]
    cage.reload(rules(origin, pki, "b.test"))
    assert live.read_until_closed() == b""
    line = cage.log.wait(event="connect", conn=conn, reason="policy.changed")
    assert (line["decision"], line["enforced"], line["host"]) == ("block", True, "a.test")


@pytest.mark.parametrize("answered", [False, True])
def test_t35_a_busy_connection_that_is_no_longer_allowed_ends(start_cage, pki, answered):
    """With a refusal when nothing of the response is out yet, else with a reset."""
    def half(conn):
        conn.read_request()
        if answered:
            conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf.")
        conn.read_to_end()

    with RawOrigin(half, leaf=pki.leaf("a.test")) as origin:
        cage = start_cage(rules(origin, pki))
        live = cage.tunnel("a.test").request("GET", "/busy", HOST)
        if answered:
            assert live.read_head().status == 200
        line = cage.log.wait(event="request", path="/busy")
        cage.reload(rules(origin, pki, "b.test"))
        if answered:
            with pytest.raises((OSError, Truncated)):
                live.read_exact(10)
        else:
            told = live.read_response()
            refused(told, "policy.changed")
            assert told.header("connection") == "close"
            assert live.read_until_closed() == b""
        assert cage.log.wait(event="response", conn=line["conn"], txn=line["txn"])["reason"] == "policy.changed"


def test_t35_a_tunnel_that_is_no_longer_allowed_ends(start_cage, pki):
    with RawOrigin(lambda conn: conn.read_to_end()) as origin:
        tunnel = {"id": "t", "action": "tunnel", "hosts": ["a.test"], "ports": [2222]}
        cage = start_cage(policy(tunnel, pins={"a.test": origin.pin}))
        live, answer = cage.ask_connect("a.test:2222")
        assert answer.status == 200
        line = cage.log.wait(event="connect", reason="tunnel.uninspected")
        cage.reload(policy(pins={"a.test": origin.pin}))
        assert live.read_until_closed() == b""
        assert cage.log.wait(event="response", conn=line["conn"], txn=line["txn"])["reason"] == "policy.changed"


def test_t35_a_bad_policy_keeps_the_last_good_one(cage, origin, pki):
    cage.reload("version: 1\nname: bad\nruls: []\n", reason="policy.rejected")
    cage.stderr.wait(r"policy\.yaml:3:1:", 10)
    assert cage.fetch("GET", "https://a.test/still").status == 200
    assert cage.log.wait(event="request", path="/still")["gen"] == 1
    cage.reload(rules(origin, pki, "b.test"))
    assert wait_until(lambda: try_fetch(cage, "https://b.test/") == 200, 10, "the new rule never held")


def test_t35_many_reloads(cage, origin, pki):
    for i in range(12):
        cage.reload(rules(origin, pki, "a.test", name="round-%d" % i))
        assert cage.fetch("GET", "https://a.test/").status == 200


# ---- SIGUSR1

def test_the_log_is_opened_anew_and_the_chain_goes_on(start_cage, cage):
    assert cage.fetch("GET", "https://a.test/before").status == 200
    cage.log.wait(event="response")
    rotated = cage.log.path + ".1"
    os.rename(cage.log.path, rotated)
    cage.signal(signal.SIGUSR1)
    wait_until(lambda: os.path.exists(cage.log.path), 10, "no new log file")
    assert cage.fetch("GET", "https://a.test/after").status == 200
    cage.log.wait(event="request", path="/after")
    start_cage.forget(cage)
    assert cage.stop() == 0
    cage.assert_left_clean()
    old = Log(rotated)
    assert old.find(path="/before") and not old.find(path="/after")
    validate(old.raw_lines() + cage.log.raw_lines())


# ---- SIGTERM

def test_sigterm_ends_idle_connections_at_once_and_lets_busy_ones_finish(start_cage, pki):
    may_go_on = threading.Event()

    def slow(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf.")
        may_go_on.wait(20)
        conn.send(b"whole")

    with RawOrigin(slow, leaf=pki.leaf("a.test")) as origin:
        cage = start_cage(rules(origin, pki))
        idle = cage.tunnel("a.test")
        busy = cage.tunnel("a.test")
        busy.request("GET", "/busy", HOST)
        head = busy.read_head()
        assert busy.read_exact(5) == b"half."
        cage.signal(signal.SIGTERM)
        assert idle.read_until_closed() == b""
        assert cage.process.poll() is None
        may_go_on.set()
        assert head.status == 200 and busy.read_exact(5) == b"whole"
        assert cage.process.wait(10) == 0
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", cage.port), 5)
    assert cage.log.lines()[-1]["event"] == "stop"


def test_start_and_stop_are_the_first_and_the_last_line(cage):
    assert cage.fetch("GET", "https://a.test/").status == 200
    assert cage.stop() == 0
    events = [line["event"] for line in cage.log.lines()]
    assert events[0] == "start" and events[-1] == "stop"


# ---- wrong starts

@pytest.mark.parametrize("args, code", [(["--no-such-option"], 2), (["--listen", "nonsense"], 2), ([], 2), (["--workers", "0"], 2)])
def test_wrong_usage(tmp_path, args, code):
    good = ["--policy", str(tmp_path / "p.yaml")] if args else []
    (tmp_path / "p.yaml").write_text("version: 1\nname: x\n")
    done = subprocess.run([binary(), *good, *args], capture_output=True, text=True, timeout=30)
    assert done.returncode == code and done.stderr


def run_binary(tmp_path, policy_path, listen):
    """A start that is to fail."""
    return subprocess.run([binary(), "--policy", policy_path, "--listen", listen, "--admin", "off", "--ca-dir", str(tmp_path / "ca"),
                           "--log", str(tmp_path / "log")], capture_output=True, text=True, timeout=30)


def test_a_wrong_policy_does_not_start(tmp_path):
    (tmp_path / "p.yaml").write_text("version: 1\nname: x\nruls: []\n")
    done = run_binary(tmp_path, str(tmp_path / "p.yaml"), "127.0.0.1:0")
    assert done.returncode == 2
    assert re.search(r"p\.yaml:3:1: .*did you mean.*rules", done.stderr), done.stderr


def test_a_listener_that_is_taken_is_an_error(cage, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run_binary(tmp_path, cage.policy_path, "127.0.0.1:%d" % taken.getsockname()[1])
    assert done.returncode == 1, done.stderr


# ---- T38: no log, no traffic

def limit_files(cage, size):
    """The most bytes that any file of the proxy may have; None: no limit any more."""
    for pid in [cage.pid, *children_of(cage.pid)]:
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def test_t38_a_full_disk_stops_traffic_until_there_is_room(start_cage, origin, pki):
    cage = start_cage(rules(origin, pki), limit_file_size=True)
    assert cage.fetch("GET", "https://a.test/").status == 200
    cage.log.wait(event="response")
    limit_files(cage, os.path.getsize(cage.log.path) + 100)
    wait_until(lambda: try_fetch(cage, "https://a.test/fills") == 503, 10, "traffic goes on without a log")
    before = len(origin.requests)
    for _ in range(3):
        answer = cage.fetch("GET", "https://a.test/full")
        refused(answer, "log.unavailable", status=503)
    assert len(origin.requests) == before
    assert cage.admin("/readyz").status == 503
    limit_files(cage, None)
    wait_until(lambda: try_fetch(cage, "https://a.test/again") == 200, 10, "it never recovered")
    cage.log.wait(event="request", path="/again")


# ---- T38: any process may die

def test_t38_each_child_is_restarted_and_traffic_works_again(start_cage, origin, pki):
    cage = start_cage(rules(origin, pki, "a.test", "*.n.test"))
    cage.expect_deaths = True
    first = children_of(cage.pid)
    assert len(first) >= 3  # signer, log writer, worker
    for number, pid in enumerate(first):
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(children_of(cage.pid)) - set(first)) > number, 10, "child %d was not replaced" % number)
        wait_until(lambda: try_fetch(cage, "https://a.test/after-%d" % number) == 200, 15, "no traffic after child %d died" % number)
        # a name that needs a new certificate, so the signer is at work too
        wait_until(lambda: try_fetch(cage, "https://fresh-%d.test/" % number) == 403, 15, "no certificates after child %d died" % number)
        cage.log.wait(event="request", path="/after-%d" % number)
    cage.children = children_of(cage.pid)
    assert cage.admin("/readyz").status == 200


def test_t38_a_worker_without_room_for_the_new_signer_is_replaced(start_cage, origin, pki):
    cage = start_cage(rules(origin, pki, "a.test", "*.n.test"))
    cage.expect_deaths = True
    signer, worker = child_named(cage, "cage-signer"), child_named(cage, "cage-worker")
    used = {int(fd) for fd in os.listdir("/proc/%d/fd" % worker)}
    _, hard = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (min(set(range(1024)) - used), hard))
    os.kill(signer, signal.SIGKILL)
    wait_until(lambda: not is_alive(worker), 10, "the worker goes on without a signer")
    wait_until(lambda: try_fetch(cage, "https://fresh.n.test/") == 502, 15, "no certificates")  # the name leads nowhere
    cage.children = children_of(cage.pid)


def worker_of(cage, wire):
    """The process that holds the other end of a client's connection."""
    ends = ["0100007F:%04X" % port for port in (cage.port, wire.sock.getsockname()[1])]  # 127.0.0.1
    with open("/proc/net/tcp", encoding="ascii") as f:
        inode = next(row.split()[9] for row in f if row.split()[1:3] == ends)
    for pid in children_of(cage.pid):
        for fd in os.listdir("/proc/%d/fd" % pid):
            if os.readlink("/proc/%d/fd/%s" % (pid, fd)) == "socket:[%s]" % inode:
                return pid
    raise AssertionError("no child holds the connection")


def test_t38_what_a_dead_worker_had_in_flight_is_closed_in_the_log(start_cage, pki):
    with RawOrigin(lambda conn: (conn.read_request(), conn.read_to_end()), leaf=pki.leaf("a.test")) as origin:
        cage = start_cage(rules(origin, pki))
        wire = cage.tunnel("a.test").request("GET", "/in-flight", HOST)
        line = cage.log.wait(event="request", path="/in-flight")
        cage.expect_deaths = True
        os.kill(worker_of(cage, wire), signal.SIGKILL)
        assert wire.read_until_closed() == b""
        closed = cage.log.wait(event="error", conn=line["conn"], txn=line["txn"])
        assert closed["reason"] == "worker.died"
        wait_until(lambda: try_fetch(cage, "https://evil.test/") == 403, 15, "no new worker")
        cage.children = children_of(cage.pid)


def test_t38_children_die_with_the_master_and_the_chain_goes_on(start_cage, origin, pki, tmp_path):
    cage = start_cage(rules(origin, pki), directory=tmp_path / "same")
    assert cage.fetch("GET", "https://a.test/one").status == 200
    cage.log.wait(event="request", path="/one")
    start_cage.forget(cage)
    cage.kill()
    wait_until(lambda: not any(is_alive(p) for p in cage.children), 10, "children outlive the master")
    seen = len(cage.log.raw_lines())
    again = start_cage(rules(origin, pki), directory=tmp_path / "same")
    assert again.fetch("GET", "https://a.test/two").status == 200
    start_cage.forget(again)
    assert again.stop() == 0
    again.assert_left_clean()
    lines = again.log.raw_lines()
    assert len(lines) > seen
    validate(lines, complete=False)


def test_t38_a_stopped_origin_does_not_stop_others(start_cage, pki):
    with RawOrigin(lambda conn: conn.read_to_end(), leaf=pki.leaf("a.test")) as silent, RawOrigin(leaf=pki.leaf("b.test")) as good:
        pins = {"a.test": silent.pin, "b.test": good.pin}
        cage = start_cage(policy({"id": "r", "hosts": ["a.test", "b.test"]}, pins=pins, trust=[pki.ca_pem]))
        cage.tunnel("a.test").request("GET", "/", HOST)
        for _ in range(3):
            assert cage.fetch("GET", "https://b.test/").status == 200


def test_keeps_serving_a_client_while_another_hangs_in_its_handshake(cage):
    wire, answer = cage.ask_connect("a.test:443")
    assert answer.status == 200
    wire.send(b"\x16\x03\x01\x02\x00\x01")
    assert cage.fetch("GET", "https://a.test/").status == 200


def test_t38_without_a_writable_log_it_does_not_start(start_cage, origin, pki):
    with pytest.raises(AssertionError, match="No space left"):
        start_cage(rules(origin, pki), "--log", "/dev/full")


def test_t38_a_flood_of_refusals_is_all_in_the_log(cage):
    """More than the log's queue holds at once: clients wait, and no line is lost."""
    count = 20000
    wire = cage.connect()
    request = b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    sender = threading.Thread(target=wire.send, args=(request * count,))
    sender.start()
    for _ in range(count):
        assert wire.read_response().status == 403
    sender.join()
    wait_until(lambda: len(cage.log.raw_lines()) >= count, 20, "lines are missing")
    assert len(cage.log.find(reason="host.not_allowed")) == count
    assert cage.metric("cage_log_lost_total") == 0
