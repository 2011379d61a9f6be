"""Servers that a command starts for itself: its clients reach them on the loopback of the room as they would without a cage, and by
that way nobody reaches anything else."""
import contextlib
import http.server
import os
import shutil
import subprocess
import threading

import pytest
from cagelib import netns
from cagelib.cage_run import Room
from cagelib.proxy import binary, policy

# A server on each loopback that there is, then the client's command with its port in $PORT.
SERVES = r"""
import http.server, os, socket, subprocess, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = b"%s\trefs/heads/mine\n" % (b"1" * 40) if self.path.startswith("/own.git/info/refs") else b"mine"
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *ignored):
        pass
class Server6(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
servers = [server]
if sys.argv[1] == "netns":
    servers.append(Server6(("::1", server.server_port), Handler))
for each in servers:
    threading.Thread(target=each.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[2:], env={**os.environ, "PORT": str(server.server_port)}).returncode)
"""
CLIENTS = {
    "curl": "curl -sS -m 20 http://$HOST:$PORT/",
    "wget": "wget -q -T 20 -t 1 -O - http://$HOST:$PORT/",
    "urllib": "/usr/bin/python3 -c 'import os, sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read().decode(), end=\"\")' http://$HOST:$PORT/",
    "requests": "/usr/bin/python3 -c 'import sys, pip._vendor.requests as r; print(r.get(sys.argv[1], timeout=20).text, end=\"\")' http://$HOST:$PORT/",
    "node": "node -e 'fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t))' http://$HOST:$PORT/",
}
JAVA = """import java.net.*; class Get { public static void main(String[] a) throws Exception {
    System.out.write(new URL(a[0]).openStream().readAllBytes()); System.out.flush(); } }"""


@pytest.fixture(params=["netns", "seccomp"])
def room(request, tmp_path):
    """In seccomp the loopback is that of this test's own network."""
    with contextlib.ExitStack() as stack:
        if request.param == "seccomp":
            if os.geteuid() != 0:
                pytest.skip("NOT TESTED, cage run is refused there to all but root")
            stack.enter_context(netns.or_skip())
        if subprocess.run([binary("cage-gate"), "--probe", "--mode", request.param], capture_output=True, timeout=20).returncode != 0:
            pytest.skip("NOT TESTED, nothing can be locked in here")
        room = Room(tmp_path, policy())
        room.mode = request.param
        room.options = ["--mode", room.mode, "--quiet"]
        yield room
        room.check_logs()


def serve(room, script, **more):
    return room.run("/usr/bin/python3", "-c", SERVES, room.mode, "sh", "-c", script, **more)


def assert_not_logged(room, *hosts):
    """No decision was asked for."""
    for log in (room.log, room.dns_log):
        assert not [line for line in log.lines() if line.get("host") in hosts or line.get("address") in hosts]


def is_here(client):
    if client == "requests":
        return os.path.isdir("/usr/lib/python3/dist-packages/pip")
    return client == "urllib" or bool(shutil.which(client))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_of_its_own_is_reached(room, client):
    if not is_here(client):
        pytest.skip("NOT TESTED, there is no %s here" % client)
    has_ipv6 = room.mode == "netns" and client != "urllib"  # which looks for the brackets in NO_PROXY too
    for host in ["localhost", "127.0.0.1", *(["[::1]"] if has_ipv6 else [])]:
        done = serve(room, "HOST=%s; %s" % (host, CLIENTS[client]))
        assert (done.returncode, done.stdout) == (0, "mine"), (host, done.stderr)
    assert_not_logged(room, "localhost", "127.0.0.1", "::1")


def test_git_of_its_own(room):
    done = serve(room, "git ls-remote http://localhost:$PORT/own.git")
    assert (done.returncode, done.stdout) == (0, "1" * 40 + "\trefs/heads/mine\n"), done.stderr
    assert_not_logged(room, "localhost", "127.0.0.1")


def test_java_of_its_own(room, open_dir):
    """It has its own list of hosts without a proxy."""
    if not shutil.which("javac"):
        pytest.skip("NOT TESTED, there is no Java here")
    (open_dir / "Get.java").write_text(JAVA)
    subprocess.run(["javac", "-d", str(open_dir), str(open_dir / "Get.java")], check=True, timeout=60)
    done = serve(room, "java -cp %s Get http://localhost:$PORT/" % open_dir, options=["--bind-ro", str(open_dir)])
    assert (done.returncode, done.stdout) == (0, "mine"), done.stderr


class Bait(http.server.BaseHTTPRequestHandler):
    """Somebody else's server on this machine's loopback."""

    taken = []

    def do_GET(self):
        self.taken.append(self.path)
        self.send_error(404)

    def log_message(self, *ignored):
        pass


def test_t36_servers_of_others_are_not(room):
    """Whoever listens on the loopback of this machine: it is another one, or its port is closed."""
    Bait.taken.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bait) as bait:
        threading.Thread(target=bait.serve_forever, daemon=True).start()
        done = room.sh("for h in localhost 127.0.0.1; do curl -sS -m 20 http://$h:%d/from-inside; echo $?; done" % bait.server_port)
        bait.shutdown()
    assert done.stdout == "7\n7\n" and not Bait.taken, done.stderr


def test_t36_other_names_still_go_by_the_proxy(room):
    """Those that only look like it, and other addresses of the loopback."""
    done = room.sh("for h in localhost.evil.test 127.0.0.1.evil.test 127.0.0.2 10.0.0.1; do curl -s -m 20 -o /dev/null -w '%{http_code} ' http://$h/; done")
    assert done.stdout == "403 403 403 403 ", done.stderr
    assert {line["reason"] for line in room.log.lines() if line["event"] == "request"} <= {"host.not_allowed", "address.private", "name.suspicious"}
