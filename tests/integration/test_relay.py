"""cage-relay: TCP from loopback to one address, byte for byte, with ends told and everything bounded."""
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import threading

import pytest
from cagelib.proxy import Stderr, binary, bound, wait_until


class Relay:
    """Use as a context manager. to: (address, port), one for each way."""

    def __init__(self, *to, options=()):
        carries = [w for at in to for w in ("--carry", "127.0.0.1:0=%s:%d" % at)]
        self.process = subprocess.Popen(bound("KILL", [binary("cage-relay"), *carries, *options]), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.stderr = Stderr(self.process.stderr)
        self.stderr.wait("ready", 20)
        self.ports = [int(p) for p in re.findall(r"listening on 127.0.0.1 port (\d+)", self.stderr.text())]

    def connect(self, which=0):
        wire = socket.create_connection(("127.0.0.1", self.ports[which]), 10)
        wire.settimeout(20)
        return wire

    def sockets(self):
        """Descriptors that it has open."""
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0


class Server:
    """Each connection in a thread of its own. Use as a context manager."""

    def __init__(self, handler):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = self.listener.getsockname()
        self.handler, self.seen = handler, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                wire, _ = self.listener.accept()
            except OSError:
                return
            wire.settimeout(20)
            self.seen.append(wire)
            threading.Thread(target=self.run, args=(wire,), daemon=True).start()

    def run(self, wire):
        try:
            self.handler(wire)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for wire in self.seen:
            wire.close()


def all_of(wire):
    got = b""
    while True:
        data = wire.recv(65536)
        if not data:
            return got
        got += data


def echo(wire):
    """What comes, and an end when there is one."""
    while True:
        data = wire.recv(65536)
        if not data:
            wire.shutdown(socket.SHUT_WR)
            return
        wire.sendall(data)


def test_bytes_as_they_are():
    """4 MB both ways at once, on several connections and two ways."""
    data = random.Random(1).randbytes(4 * 1024 * 1024)
    with Server(echo) as server, Server(echo) as other, Relay(server.at, other.at) as relay:
        failed = []

        def one(which):
            with relay.connect(which) as wire:
                sender = threading.Thread(target=lambda: (wire.sendall(data), wire.shutdown(socket.SHUT_WR)))
                sender.start()
                if all_of(wire) != data:
                    failed.append(which)
                sender.join()
        threads = [threading.Thread(target=one, args=(i % 2,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failed and len(server.seen) == len(other.seen) == 3
        wait_until(lambda: relay.sockets() <= 6, 10, "connections are left")


def test_an_end_of_one_side_is_an_end_of_one_side():
    """The client ends, and is answered after that; then the server ends first, and hears on."""
    def answer(wire):
        wire.sendall(b"got " + all_of(wire))
        wire.close()
    with Server(answer) as server, Relay(server.at) as relay, relay.connect() as wire:
        wire.sendall(b"all")
        wire.shutdown(socket.SHUT_WR)
        assert all_of(wire) == b"got all"
    heard = []

    def ends_first(wire):
        wire.sendall(b"bye")
        wire.shutdown(socket.SHUT_WR)
        heard.append(all_of(wire))
        wire.close()
    with Server(ends_first) as server, Relay(server.at) as relay, relay.connect() as wire:
        assert all_of(wire) == b"bye"
        wire.sendall(b"still here")
        wire.shutdown(socket.SHUT_WR)
        wait_until(lambda: heard == [b"still here"], 10, "it was not carried")


def test_a_reset_is_a_reset():
    def reset(wire):
        wire.recv(10)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        wire.close()
    with Server(reset) as server, Relay(server.at) as relay, relay.connect() as wire:
        wire.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            wire.recv(10)
        wait_until(lambda: relay.sockets() <= 5, 10, "the connection is left")


def test_a_gateway_that_is_gone_and_comes_back():
    """The client hears at once; it is said once, however many try; and when it is there again, it works."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        at = place.getsockname()
    with Relay(at) as relay:
        for _ in range(5):
            with contextlib.suppress(ConnectionResetError), relay.connect() as wire:
                assert wire.recv(10) == b""
        relay.stderr.wait("Connection refused", 20)
        assert relay.stderr.text().count("Connection refused") == 1
        listener = socket.create_server(at)
        with relay.connect() as wire:
            far, _ = listener.accept()
            far.sendall(b"here")
            assert wire.recv(10) == b"here"
            far.close()
        listener.close()
        wait_until(lambda: relay.sockets() <= 5, 10, "connections are left")


def test_connections_are_bounded():
    """256 at once; one more waits, and has its turn when one has gone."""
    with Server(echo) as server, Relay(server.at) as relay:
        wires = [relay.connect() for _ in range(256)]
        wait_until(lambda: len(server.seen) == 256, 20, "they are not carried")
        late = relay.connect()
        late.sendall(b"x")
        late.settimeout(0.5)
        with pytest.raises(TimeoutError):
            late.recv(1)
        wires.pop().close()
        late.settimeout(20)
        assert late.recv(1) == b"x" and len(server.seen) == 257
        for wire in [*wires, late]:
            wire.close()
        wait_until(lambda: relay.sockets() <= 5, 20, "connections are left")


def test_what_waits_is_bounded():
    """A server that takes nothing holds the client up; nothing piles up in between."""
    with Server(lambda wire: threading.Event().wait(15)) as server, Relay(server.at) as relay, relay.connect() as wire:
        wire.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(10000):
                wire.sendall(b"x" * 65536)
        with open("/proc/%d/status" % relay.process.pid, encoding="ascii") as f:
            assert int(re.search(r"VmRSS:\s+(\d+) kB", f.read())[1]) < 16 * 1024


def test_the_budget():
    """All connections together; then those that are there end, and new ones are not carried."""
    with Server(echo) as server, Relay(server.at, options=("--out", "1000")) as relay:
        with relay.connect() as one, relay.connect() as two:
            one.sendall(b"x" * 400)
            assert len(one.recv(1000)) == 400
            two.sendall(b"x" * 500)
            assert len(two.recv(1000)) == 500
            one.sendall(b"x" * 101)
            with pytest.raises(ConnectionResetError):
                one.recv(1000)
        relay.stderr.wait("all that may be sent was sent", 20)
        with relay.connect() as late:
            try:
                assert late.recv(10) == b""
            except ConnectionResetError:
                pass
        assert len(server.seen) == 2


@pytest.mark.parametrize("words", [
    [], ["--carry", "127.0.0.1:1=gateway.example.com:80"], ["--carry", "localhost:1=10.0.0.1:80"], ["--carry", "0.0.0.0:1=10.0.0.1:80"], ["--carry", "10.0.0.1:1=10.0.0.2:80"],
    ["--carry", "127.0.0.1:1"], ["--carry", "127.0.0.1:1=10.0.0.1"], ["--carry", "127.0.0.1:1=10.0.0.1:0"], ["--carry", "127.0.0.1:1=0x0a000001:80"],
    ["--carry", "127.0.0.1:1=10.0.0.1:80", "--out", "many"], ["--carry", "127.0.0.1:1=10.0.0.1:80", "more"], ["--what"]])
def test_what_it_is_not_told(words):
    """No names, no other place to listen on than loopback."""
    done = subprocess.run([binary("cage-relay"), *words], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and done.stderr.startswith("cage-relay: "), done


def test_ipv6():
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    process = subprocess.Popen(bound("KILL", [binary("cage-relay"), "--carry", "127.0.0.1:0=[::1]:%d" % listener.getsockname()[1]]), stderr=subprocess.PIPE)
    said = Stderr(process.stderr)
    port = int(said.wait(r"port (\d+)", 20)[1])
    with socket.create_connection(("127.0.0.1", port), 10) as wire:
        far, _ = listener.accept()
        far.sendall(b"six")
        assert wire.recv(10) == b"six"
        far.close()
    listener.close()
    process.terminate()
    assert process.wait(20) == 0
