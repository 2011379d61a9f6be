"""The sockets of cage-dns alone, with a handler that answers everything alike: real clients, raw packets, and each bound
reached. What is answered to whom is another test's matter."""
import contextlib
import os
import re
import select
import signal
import socket
import struct
import subprocess

import pytest
from cagelib import netns
from cagelib.corpora import helper

ANSWER = bytes([192, 0, 2, 1])
TC = 0x0200


def name(text):
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def query(text, ident=1):
    return struct.pack(">6H", ident, 0x0100, 1, 0, 0, 0) + name(text) + struct.pack(">HH", 1, 1)


def framed(packet):
    return struct.pack(">H", len(packet)) + packet


class Server:
    def __init__(self, address="127.0.0.1", port=0, small=False):
        program = helper("dns_constant_small" if small else "dns_constant")
        self.address = address
        self.process = subprocess.Popen([program, address, str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = int(self.line("udp").split()[1])
        assert self.line("tcp") == "tcp %d" % self.port

    def line(self, start):
        line = self.process.stdout.readline().rstrip("\n")
        assert line.startswith(start), (line, self.process.poll())
        return line

    def udp(self, to=None, source=None):
        family = socket.AF_INET6 if ":" in (to or self.address) else socket.AF_INET
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.settimeout(20)
        if source:
            s.bind((source, 0))
        s.connect((to or self.address, self.port))
        return s

    def ask(self, text, ident=1):
        with self.udp() as s:
            s.send(query(text, ident))
            return s.recv(65535)

    def tcp(self, source=None, window=None):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.settimeout(20)
        if window:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        if source:
            s.bind((source, 0))
        s.connect((self.address, self.port))
        return s

    def clog(self):
        """No room for queries, or room again."""
        self.process.send_signal(signal.SIGUSR2)
        return self.process.stdout.readline().rstrip("\n")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.counters()

    def counters(self):
        """As they were at the end."""
        out, err = self.process.communicate(timeout=20)
        assert self.process.returncode == 0 and err == "", err
        lines, counters = out.splitlines(), {}
        for kind in ("udp", "tcp"):
            (line,) = [text for text in lines if text.startswith(kind + " queries")]
            for word, value in re.findall(r"([a-z]+) (\d+)", line):
                counters[kind + "_" + word] = int(value)
        assert "drained" in lines
        return counters

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@contextlib.contextmanager
def running(**options):
    server = Server(**options)
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def server():
    with running() as s:
        yield s


@pytest.fixture
def small():
    with running(small=True) as s:
        yield s


@pytest.fixture
def outside():
    """A namespace in which other addresses than loopback are ours."""
    with netns.or_skip("10.9.9.1/32", "10.9.9.2/32", "fd00:9::1/128", "fd00:9::2/128"):
        yield


def read_framed(s):
    """One answer, or None at the end."""
    data = b""
    while len(data) < 2 or len(data) < 2 + struct.unpack(">H", data[:2])[0]:
        want = 2 - len(data) if len(data) < 2 else 2 + struct.unpack(">H", data[:2])[0] - len(data)
        piece = s.recv(want)
        if not piece:
            assert data == b""
            return None
        data += piece
    return data[2:]


def is_answer(packet, ident):
    return packet[:2] == struct.pack(">H", ident) and packet[2] & 0x80 and packet.endswith(ANSWER)


def at_end(s):
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done
    return done.stdout


# ---- clients


@pytest.mark.parametrize("how", [[], ["+tcp"], ["+noedns"], ["+cookie"], ["+dnssec", "+bufsize=512"]])
def test_dig(server, how):
    out = output_of("dig", "+tries=1", "+short", *how, "@127.0.0.1", "-p", str(server.port), "www.example.test")
    assert out == "192.0.2.1\n"


def test_dig_goes_to_tcp_for_what_is_too_long(server):
    out = output_of("dig", "+tries=1", "@127.0.0.1", "-p", str(server.port), "big.test")
    assert "(TCP)" in out and out.count("192.0.2.1") > 500
    assert server.stop()["tcp_answers"] == 1


def test_kdig_keeps_a_connection(server):
    names = ["n%d.test" % i for i in range(20)]
    out = output_of("kdig", "+tcp", "+keepopen", "+short", "@127.0.0.1", "-p", str(server.port), *names)
    assert out.split() == ["192.0.2.1"] * 20
    counters = server.stop()
    assert counters["tcp_queries"] == 20 and counters["tcp_taken"] == 1


# ---- UDP


def test_batches(server):
    with server.udp() as s:
        for first in range(0, 1000, 100):
            for ident in range(first, first + 100):
                s.send(query("n%d.test" % ident, ident))
            got = {struct.unpack(">H", s.recv(512)[:2])[0] for _ in range(100)}
            assert got == set(range(first, first + 100))
    counters = server.stop()
    assert counters["udp_queries"] == counters["udp_answers"] == 1000


@pytest.mark.parametrize("listen,to", [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.9"), ("::", "::1")])
def test_trains_of_answers(listen, to):
    """Answers of many lengths to two clients, all at once: each gets its own, whole, and no other."""
    with running(address=listen) as server, server.udp(to) as s, server.udp(to) as other:
        assert server.clog() == "clogged"
        names = ["%s%d.test" % ("n" * (1 + i % 5), i) for i in range(120)]
        for ident, text in enumerate(names):
            s.send(query(text, ident))
            other.send(query("other" + text, 1000 + ident))
        server.line("rested")
        assert server.clog() == "clear"
        for client, prefix, first in ((s, "", 0), (other, "other", 1000)):
            got = {}
            for _ in names:
                answer = client.recv(512)
                got[struct.unpack(">H", answer[:2])[0]] = answer
            assert sorted(got) == list(range(first, first + len(names)))
            for ident, text in enumerate(names):
                answer = got[first + ident]
                assert name(prefix + text) in answer and answer.endswith(ANSWER) and is_answer(answer, first + ident)
        counters = server.stop()
        assert counters["udp_answers"] == 240 and counters["udp_unsent"] == 0


@pytest.mark.parametrize("listen,asked", [("0.0.0.0", ["127.0.0.9", "10.9.9.1", "10.9.9.2"]), ("::", ["::1", "fd00:9::1", "fd00:9::2"])])
def test_answers_leave_from_the_address_that_was_asked(outside, listen, asked):
    with running(address=listen) as server:
        for address in asked:
            with server.udp(to=address, source=asked[-1]) as s:  # connected: takes answers from there only
                s.send(query("a.test"))
                assert is_answer(s.recv(512), 1)
        counters = server.stop()
        assert counters["udp_answers"] == 3 and counters["udp_unsent"] == 0


def test_t19_no_answer_to_what_is_no_query(server):
    """Answers, short packets and empty ones: only what is sent behind them is answered."""
    with server.udp() as s:
        for packet in (b"", b"x", query("a.test")[:11], struct.pack(">6H", 1, 0x8180, 1, 0, 0, 0) + query("a.test")[12:]):
            s.send(packet)
        s.send(query("a.test", 7))
        assert is_answer(s.recv(512), 7)
    counters = server.stop()
    assert counters["udp_answers"] == 1 and counters["udp_ignored"] == 1


def test_t19_no_answer_to_port_0(outside):
    with running(address="127.0.0.1") as server:
        packet = query("a.test")
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as raw:
            raw.sendto(struct.pack(">4H", 0, server.port, 8 + len(packet), 0) + packet, ("127.0.0.1", 0))
        assert is_answer(server.ask("b.test", 2), 2)
        counters = server.stop()
        assert counters["udp_ignored"] == 1 and counters["udp_answers"] == 1


@pytest.mark.parametrize("size", [2048, 2049, 9000, 60000])
def test_t19_long_packets_get_a_short_error(server, size):
    with server.udp() as s:
        s.send(query("a.test").ljust(size, b"x"))
        assert s.recv(512) == struct.pack(">6H", 1, 0x8181, 0, 0, 0, 0)


def test_dropped(server):
    with server.udp() as s:
        s.send(query("drop.test", 1))
        s.send(query("a.test", 2))
        assert is_answer(s.recv(512), 2)
    assert server.stop()["udp_queries"] == 2


def test_t19_rate(outside):
    """Beyond the rate half of the answers are empty and lead to TCP, the others are not sent; loopback has no such bound."""
    with running(address="0.0.0.0", small=True) as server:
        full = short = 0
        with server.udp(to="10.9.9.1", source="10.9.9.2") as s:
            for ident in range(1, 101):
                s.send(query("big.test", ident))
            server.address = "127.0.0.1"
            assert is_answer(server.ask("a.test"), 1)  # what came before it has been read
            while select.select([s], [], [], 0)[0]:
                answer = s.recv(2000)
                if answer[7] == 0:
                    assert len(answer) <= len(query("big.test")) and struct.unpack(">H", answer[2:4])[0] & TC
                    short += 1
                else:
                    full += 1
        with server.udp() as s:
            for ident in range(100):
                s.send(query("a.test", ident))
                assert is_answer(s.recv(512), ident)
        server.address = "10.9.9.1"
        with server.tcp(source="10.9.9.2") as s:
            for ident in range(100):
                s.sendall(framed(query("a.test", ident)))
                assert is_answer(read_framed(s), ident)
        counters = server.stop()
        assert full >= 10 and full + counters["udp_limited"] == 100
        assert short == (counters["udp_limited"] + 1) // 2


# ---- TCP


def test_pipelined(server):
    with server.tcp() as s:
        s.sendall(b"".join(framed(query("n%d.test" % i, i)) for i in range(2000)))
        for i in range(2000):
            assert is_answer(read_framed(s), i)


def pause(process):
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)


def test_a_long_pipeline_lets_others_in_between(server):
    """The first is held until the release that comes over UDP, behind all of them: where its answer stands among the others
    says when that one had its turn."""
    with server.tcp() as s, server.udp() as other:
        s.sendall(framed(query("a.test", 9999)))
        assert is_answer(read_framed(s), 9999)
        pause(server.process)
        s.sendall(framed(query("hold.test", 1)) + b"".join(framed(query("a.test", i)) for i in range(2, 502)))
        other.send(query("release.test"))
        server.process.send_signal(signal.SIGCONT)
        order = [struct.unpack(">H", read_framed(s)[:2])[0] for _ in range(501)]
        assert sorted(order) == list(range(1, 502)) and order.index(1) < 100


def test_a_long_pipeline_of_an_ended_side(server):
    with server.tcp() as s:
        s.sendall(b"".join(framed(query("n%d.test" % i, i)) for i in range(500)))
        s.shutdown(socket.SHUT_WR)
        for i in range(500):
            assert is_answer(read_framed(s), i)
        assert at_end(s)


def test_queries_wait_while_the_log_has_little_room(server):
    with server.tcp() as s, server.tcp() as ended, server.udp() as udp:
        assert server.clog() == "clogged"
        s.sendall(framed(query("a.test", 1)) + framed(query("b.test", 2)))
        ended.sendall(framed(query("a.test", 3)))
        ended.shutdown(socket.SHUT_WR)
        for ident in range(100):
            udp.send(query("a.test", ident))
        server.line("rested")
        assert select.select([s, ended, udp], [], [], 0)[0] == []
        assert server.clog() == "clear"
        assert is_answer(read_framed(s), 1) and is_answer(read_framed(s), 2)
        assert is_answer(read_framed(ended), 3) and at_end(ended)
        assert {struct.unpack(">H", udp.recv(512)[:2])[0] for _ in range(100)} == set(range(100))
    counters = server.stop()
    assert counters["udp_queries"] == counters["udp_answers"] == 100 and counters["tcp_answers"] == 3


def test_the_end_does_not_wait_for_the_log(server):
    with server.tcp() as s:
        assert server.clog() == "clogged"
        s.sendall(framed(query("a.test", 1)))
        server.line("rested")
        server.stop()
        assert at_end(s)


def test_byte_by_byte(server):
    with server.tcp() as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(2):
            for byte in framed(query("a.test", i)):
                s.sendall(bytes([byte]))
            assert is_answer(read_framed(s), i)


def test_answers_come_as_they_are_ready(server):
    with server.tcp() as s:
        s.sendall(framed(query("hold.test", 1)) + framed(query("a.test", 2)))
        assert is_answer(read_framed(s), 2)
        s.sendall(framed(query("release.test", 3)))
        assert is_answer(read_framed(s), 1)
        assert is_answer(read_framed(s), 3)


def test_ended_side(server):
    """The client has no more to say and still gets its answers, and then the end."""
    with server.tcp() as s:
        s.sendall(framed(query("hold.test", 1)) + framed(query("a.test", 2)) + b"\0")
        s.shutdown(socket.SHUT_WR)
        assert is_answer(read_framed(s), 2)
        assert is_answer(server.ask("release.test", 3), 3)
        assert is_answer(read_framed(s), 1)
        assert at_end(s)


def test_answer_to_a_connection_that_is_gone(server):
    """Its place is another's by then."""
    with server.tcp() as s:
        s.sendall(framed(query("hold.test", 1)) + framed(query("a.test", 2)))
        assert is_answer(read_framed(s), 2)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with server.tcp() as s:
        s.sendall(framed(query("a.test", 3)) + framed(query("release.test", 4)))
        assert is_answer(read_framed(s), 3)
        assert is_answer(read_framed(s), 4)


@pytest.mark.parametrize("length,reason", [(0, "head.malformed"), (11, "head.malformed"), (2049, "head.too_large"), (65535, "head.too_large")])
def test_t19_lengths(server, length, reason):
    with server.tcp() as s:
        s.sendall(struct.pack(">H", length) + b"xx")
        assert at_end(s)
        assert server.line("refused") == "refused %s 127.0.0.1" % reason
    assert server.stop()["tcp_cut"] == 1


def test_bound_connections(small):
    """Of four that are busy none goes; of those that are idle the one that has been so for longest."""
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(small.tcp()) for _ in range(4)]
        for i, s in enumerate(conns):
            s.sendall(framed(query("hold.test", i)) + framed(query("a.test", 9)))
            assert is_answer(read_framed(s), 9)
        with small.tcp() as fifth:
            assert at_end(fifth)
        assert small.line("refused") == "refused limit.connections 127.0.0.1"
        assert is_answer(small.ask("release.test", 5), 5)
        for i, s in enumerate(conns):
            assert is_answer(read_framed(s), i)
        for s in conns[1:]:
            s.sendall(framed(query("a.test", 6)))
            assert is_answer(read_framed(s), 6)
        sixth = stack.enter_context(small.tcp())
        sixth.sendall(framed(query("a.test", 7)))
        assert is_answer(read_framed(sixth), 7)
        assert at_end(conns[0])
    counters = small.stop()
    assert counters["tcp_refused"] == 1 and counters["tcp_taken"] == 5 and counters["tcp_cut"] == 0


def test_bound_pipeline(small):
    """Of eight queries five are taken; the others are read when those are answered."""
    with small.tcp() as s:
        s.sendall(b"".join(framed(query("hold.test", i)) for i in range(8)))
        for first, behind in ((0, 5), (5, 8)):
            for _ in range(1000):
                assert is_answer(small.ask("release.test", 9), 9)
                if select.select([s], [], [], 0)[0]:
                    break
            for i in range(first, behind):
                assert is_answer(read_framed(s), i)
    assert small.stop()["tcp_answers"] == 8


def test_bound_of_answers_that_are_not_taken(small):
    with small.tcp(window=4096) as s:
        with pytest.raises(OSError):
            for _ in range(20000):
                s.sendall(framed(query("big.test")))
        assert small.line("refused") == "refused client.timeout 127.0.0.1"
    assert small.stop()["tcp_cut"] == 1


def test_bound_of_time_for_a_query(small):
    with small.tcp() as s:
        s.sendall(framed(query("a.test"))[:-1])
        assert at_end(s)
        assert small.line("refused") == "refused client.timeout 127.0.0.1"
    assert small.stop()["tcp_cut"] == 1


def test_bound_of_idle_time(small):
    """It is nobody's fault."""
    with small.tcp() as s:
        assert at_end(s)
    counters = small.stop()
    assert counters["tcp_cut"] == counters["tcp_refused"] == 0 and counters["tcp_taken"] == 1


# ---- the end


def test_drain(server):
    """What was read is answered, and nothing more is read."""
    with server.udp() as udp, server.tcp() as tcp, server.tcp() as idle:
        udp.send(query("hold.test", 1))
        assert is_answer(server.ask("a.test", 2), 2)
        tcp.sendall(framed(query("hold.test", 3)) + framed(query("a.test", 4)))
        assert is_answer(read_framed(tcp), 4)
        server.process.send_signal(signal.SIGTERM)
        assert server.line("draining") == "draining 2"
        assert at_end(idle)
        udp.send(query("a.test", 5))
        tcp.sendall(framed(query("a.test", 6)))
        server.process.send_signal(signal.SIGUSR1)
        assert is_answer(udp.recv(512), 1)
        assert is_answer(read_framed(tcp), 3)
        assert at_end(tcp)
        counters = server.counters()
    assert counters["udp_queries"] == 2 and counters["tcp_queries"] == 2
