"""The shared corpus of DNS packets, sent to cage-dns over UDP and TCP: each is answered or dropped as is right, no answer to one
that is wrong is longer than it, no answer at all is longer than the client takes, nothing of them goes upstream, each that is
answered has its line in the log, and cage-dns is still there at the end."""
import base64
import socket
import struct

import pytest

from cagelib import netns
from cagelib.corpora import load
from cagelib.dns import Dns, Reply, question
from cagelib.proxy import policy, wait_until

LOOPBACK, OUTSIDE = "127.0.0.1", "10.9.9.1"
FENCE = "allowed.example"  # asked behind each packet: once it is answered, the packet has been looked at
POLICY = policy({"id": "allowed", "hosts": [FENCE]}, pins={FENCE: "20.0.0.7"})
NOERROR, FORMERR, NOTIMP, REFUSED, BADVERS = 0, 1, 4, 5, 0  # the rest of BADVERS is in the OPT record
TCP_MOST = 2048
UDP_MOST = 65507
# What the packets that are queries are answered with; all other queries are malformed.
QUERIES = {
    "anomaly/opcode UPDATE": (NOTIMP, "query.malformed"),
    "anomaly/opcode NOTIFY": (NOTIMP, "query.malformed"),
    "anomaly/OPT version 1": (BADVERS, "query.malformed"),
    "anomaly/name 255 octets max": (NOERROR, "host.not_allowed"),
    "anomaly/class CH version.bind TXT": (REFUSED, "query.type"),
    "anomaly/qtype ANY": (REFUSED, "query.type"),
    "anomaly/qtype AXFR": (REFUSED, "query.type"),
    "anomaly/qtype NULL": (REFUSED, "query.type"),
    "anomaly/qtype TXT tunnel label": (REFUSED, "query.type"),
    "anomaly/NUL in label": (REFUSED, "name.suspicious"),
    "anomaly/dot in label": (REFUSED, "name.suspicious"),
    "anomaly/non-ascii label": (REFUSED, "name.suspicious"),
    "anomaly/uppercase 0x20 name": (NOERROR, None),
    "anomaly/EDNS client-subnet": (NOERROR, "host.not_allowed"),
    "anomaly/EDNS padding 400 bytes": (NOERROR, "host.not_allowed"),
    "pdns/basic.raw": (NOERROR, "host.not_allowed"),
    "pdns/ecs.raw": (NOERROR, "host.not_allowed"),
}


class Case:
    def __init__(self, item):
        self.name = item["name"]
        self.packet = base64.b64decode(item["b64"])
        is_query = len(self.packet) >= 12 and not self.packet[2] & 0x80
        opcode = self.packet[2] >> 3 & 15 if is_query else 0
        self.expected = (NOTIMP if opcode else FORMERR, "query.malformed") if is_query else None
        if self.name in QUERIES:
            self.expected = QUERIES[self.name]
        self.has_question = self.name in QUERIES and self.expected[0] != NOTIMP


def udp(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.bind((address, 0))
    return s


def ask_udp(s, to, packet):
    """The answer, or None: a query is sent behind it, and packets do not overtake each other here."""
    number = (struct.unpack("!H", packet[:2].ljust(2, b"\0"))[0] + 1) & 0xFFFF
    s.sendto(packet, to)
    s.sendto(question(FENCE, "HTTPS", number), to)
    first = s.recv(65535)
    if Reply(first).number == number:
        return None
    assert Reply(s.recv(65535)).number == number
    return first


def read_framed(s):
    data = b""
    while len(data) < 2 or len(data) < 2 + struct.unpack("!H", data[:2])[0]:
        piece = s.recv(65535)
        if not piece:
            return None
        data += piece
    return data[2:]


def ask_tcp(to, packet):
    """The answer, or None when the connection ends without one; our own side ends behind the packet."""
    with socket.create_connection(to, timeout=20) as s:
        try:
            s.sendall(struct.pack("!H", len(packet)) + packet)
            s.shutdown(socket.SHUT_WR)
            return read_framed(s)
        except (ConnectionError, OSError) as e:
            assert not isinstance(e, socket.timeout), "no answer and no end"
            return None


def check(case, answer, is_verified):
    if case.expected is None:
        assert answer is None, case.name
        return
    code, reason = case.expected
    assert answer is not None, case.name
    reply = Reply(answer)
    assert answer[:2] == case.packet[:2] and answer[2] & 0x80 and reply.rcode == code, (case.name, reply)
    assert answer[2] & 0x79 == case.packet[2] & 0x79, case.name  # opcode and rd
    assert reply.authority == 0 and reply.answers <= 1, (case.name, reply)
    assert len(answer) <= 512, (case.name, reply)
    if not case.has_question:
        assert answer[4:] == bytes(8), (case.name, reply)
    if not reply.answers and not is_verified:
        assert len(answer) <= len(case.packet), (case.name, reply)


def run_udp(cage, cases, address):
    sent = []
    with udp(address) as s:
        for case in cases:
            if len(case.packet) <= UDP_MOST:
                check(case, ask_udp(s, (address, cage.port), case.packet), address == LOOPBACK)
                sent.append(case)
    return sent


def reasons_of(cases):
    return sorted(case.expected[1] or "" for case in cases if case.expected)


def logged(cage, n):
    """The reasons of the lines about packets, once they are n."""
    def of_packets():
        return [line for line in cage.log.find(event="dns") if line.get("method") != "HTTPS"]
    wait_until(lambda: len(of_packets()) >= n, 20, "lines are missing")
    return sorted(line.get("reason", "") for line in of_packets())


@pytest.fixture(scope="module")
def cases():
    return [Case(item) for item in load("dns_packets")]


@pytest.fixture
def upstream():
    with Dns({}) as dns:
        yield dns
        assert dns.asked == []


def test_t19_corpus_udp(start_dns, upstream, cases):
    cage = start_dns(POLICY, upstream=[upstream.address])
    sent = run_udp(cage, cases, LOOPBACK)
    assert len(sent) >= 130
    expected = reasons_of(sent)
    assert logged(cage, len(expected)) == expected


def test_t19_corpus_tcp(start_dns, upstream, cases):
    """One that says that it is too long, or shorter than a header, ends its connection."""
    cage = start_dns(POLICY, upstream=[upstream.address])
    fitting = [case for case in cases if 12 <= len(case.packet) <= TCP_MOST]
    for case in fitting:
        check(case, ask_tcp((LOOPBACK, cage.port), case.packet), True)
    others = [case for case in cases if case not in fitting and len(case.packet) <= 65535]
    for case in others:
        assert ask_tcp((LOOPBACK, cage.port), case.packet) is None, case.name
    cut = ["head.malformed" if len(case.packet) < 12 else "head.too_large" for case in others]
    expected = sorted(reasons_of(fitting) + cut)
    assert logged(cage, len(expected)) == expected


def test_t19_corpus_is_not_amplified(start_dns, cases):
    """Nothing verifies a sender that is not on loopback: an error or a refusal is never longer than what it answers."""
    with netns.or_skip(OUTSIDE + "/32"):
        cage = start_dns(POLICY, upstream=["127.0.0.1:9"], listen=(OUTSIDE + ":0",))
        assert len(run_udp(cage, cases, OUTSIDE)) >= 130
