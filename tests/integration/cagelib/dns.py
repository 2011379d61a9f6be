"""Name servers for tests: one that answers A and AAAA from a table and remembers every question, since a question is a leak;
a real one with zones (nsd); and cage-dns as a process, with the clients that ask it."""
import ipaddress
import os
import re
import socket
import struct
import subprocess
import threading

from .log import Log
from .proxy import Cage, READY_SECONDS, Stderr, binary, bound, children_of, first_port, wait_until

TYPES = {"A": 1, "NULL": 10, "TXT": 16, "AAAA": 28, "SVCB": 64, "HTTPS": 65, "IXFR": 251, "AXFR": 252, "ANY": 255}


class Dns:
    """Use as a context manager. answers: name -> list of addresses; may be changed while it runs. may_answer: an event that
    each answer waits for."""

    def __init__(self, answers, may_answer=None):
        self.answers = answers
        self.may_answer = may_answer
        self.asked = []
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._sock.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                query, peer = self._sock.recvfrom(4096)
                answer = self._answer(query)
                if self.may_answer:
                    self.may_answer.wait(20)
                self._sock.sendto(answer, peer)
            except OSError:
                return

    def _answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
            at += 1 + query[at]
        kind, = struct.unpack("!H", query[at + 1:at + 3])
        name = ".".join(labels).lower()
        self.asked.append(name)
        known = [ipaddress.ip_address(a) for a in self.answers.get(name, ())]
        wanted = [a for a in known if {1: 4, 28: 6}.get(kind) == a.version]
        records = b"".join(struct.pack("!HHHIH", 0xC00C, kind, 1, 0, len(a.packed)) + a.packed for a in wanted)
        code = 0 if name in self.answers else 3
        return query[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(wanted), 0, 0) + query[12:at + 5] + records

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._sock.close()


class Nsd:
    """A real authoritative server on loopback. zones: name -> lines of a zone file below its SOA and NS."""

    def __init__(self, directory, zones, address="127.0.0.1"):
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
            self.port = probe.getsockname()[1]
        self.address = "%s:%d" % (address, self.port)
        with open(os.path.join(self.dir, "nsd.conf"), "w", encoding="ascii") as f:
            f.write("server:\n ip-address: %s@%d\n username: \"\"\n chroot: \"\"\n zonesdir: \"%s\"\n database: \"\"\n"
                    " pidfile: \"\"\n xfrdfile: \"%s/xfrd\"\n zonelistfile: \"%s/zones\"\n server-count: 1\n"
                    " rrl-ratelimit: 0\nremote-control:\n control-enable: no\n"
                    % (address, self.port, self.dir, self.dir, self.dir))
            for name in zones:
                f.write("zone:\n name: %s\n zonefile: %s.zone\n" % (name, name))
        for name, lines in zones.items():
            with open(os.path.join(self.dir, name + ".zone"), "w", encoding="ascii") as f:
                f.write("$ORIGIN %s.\n$TTL 600\n@ SOA ns.%s. host.%s. 1 3600 600 86400 60\n@ NS ns.%s.\nns A 20.0.0.53\n%s\n"
                        % (name, name, name, name, "\n".join(lines)))

    def __enter__(self):
        self.process = subprocess.Popen(bound("KILL", ["nsd", "-d", "-c", os.path.join(self.dir, "nsd.conf")]),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, 20, "nsd does not answer")
        return self

    def _answers(self):
        assert self.process.poll() is None, "nsd ended"
        try:
            socket.create_connection(tuple([self.address.rsplit(":", 1)[0], self.port]), 1).close()
            return True
        except OSError:
            return False

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


class CageDns(Cage):
    """cage-dns as a process. What Cage has for speaking HTTP through a proxy is not for this one."""

    def __init__(self, directory, rules, args=(), listen=("127.0.0.1:0",), upstream=(), pass_fds=(), admin="127.0.0.1:0",
                 limit_file_size=False):
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        self.policy_path = os.path.join(self.dir, "policy.yaml")
        self.log = Log(os.path.join(self.dir, "log.jsonl"))
        self.write_policy(rules)
        command = [binary("cage-dns"), "--policy", self.policy_path, "--admin", admin, "--ca-dir",
                   os.path.join(self.dir, "ca"), "--log", self.log.path, *args]
        for where in listen:
            command += ["--listen", where]
        for where in upstream:
            command += ["--upstream", where]
        if limit_file_size:
            command = ["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(bound("KILL", command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, pass_fds=pass_fds, start_new_session=True)
        self.pid = self.process.pid
        self.stderr = Stderr(self.process.stderr)
        self.expect_deaths = False
        self._open = []
        try:
            self.stderr.wait(r"^cage-dns: ready\b", READY_SECONDS)
        except AssertionError:
            self.kill()
            raise
        self.listening = re.findall(r"^cage-dns: listening on (.*)$", self.stderr.text(), re.M)
        self.port = first_port(self.listening)
        self.admin_port = first_port(re.findall(r"^cage-dns: admin on (.*)$", self.stderr.text(), re.M))
        self.children = children_of(self.pid)

    def dig(self, *words, program="dig"):
        """One question with dig or kdig; its Answer."""
        command = [program, "@127.0.0.1", "-p", str(self.port), "+tries=1" if program == "dig" else "+retry=0", "+time=10",
                   *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return Answer(done.stdout)

    def ask(self, name, kind="A", sock=None, number=0x1234, edns=True, klass=1):
        """One question of our own over UDP; the Reply."""
        own = sock or socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            own.settimeout(10)
            own.sendto(question(name, kind, number, edns, klass), ("127.0.0.1", self.port))
            return Reply(own.recvfrom(4096)[0])
        finally:
            if own is not sock:
                own.close()


class Answer:
    """What dig or kdig printed."""

    def __init__(self, text):
        self.text = text
        found = re.search(r"status: (\w+)", text)
        self.status = found.group(1) if found else None
        section = re.search(r";; ANSWER SECTION:\n(.*?)(?:\n\n|\Z)", text, re.S)
        rows = [line.split(None, 4) for line in section.group(1).splitlines()] if section else []
        self.records = [(row[0].rstrip(".").lower(), row[3], row[4]) for row in rows if len(row) == 5]
        self.ttls = [int(row[1]) for row in rows if len(row) == 5]

    def data(self, kind="A"):
        return sorted(data for _, have, data in self.records if have == kind)

    def __repr__(self):
        return self.text


def question(name, kind="A", number=0x1234, edns=True, klass=1):
    """A query as bytes."""
    labels = b"".join(bytes([len(x)]) + x.encode("latin-1") for x in name.rstrip(".").split(".") if x)
    head = struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 1 if edns else 0)
    opt = b"\x00" + struct.pack("!HHIH", 41, 1232, 0, 0) if edns else b""
    return head + labels + b"\x00" + struct.pack("!HH", TYPES.get(kind, kind), klass) + opt


class Reply:
    """The header of an answer, and the text of its extended error if it has one."""

    def __init__(self, packet):
        self.packet = packet
        self.number, flags, _, self.answers, self.authority, self.additional = struct.unpack("!HHHHHH", packet[:12])
        self.rcode = flags & 15
        self.truncated = bool(flags & 0x200)

    def __repr__(self):
        return "rcode %d, %d answers: %r" % (self.rcode, self.answers, self.packet)
