"""A name server for tests: answers A and AAAA from a table and remembers every question, since a question is a leak."""
import ipaddress
import socket
import struct
import threading


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
