"""Resolvers for cage-dns to ask: a real one over TLS, and one that does as it is told."""
import os
import socket
import subprocess
import threading

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from .proxy import bound, wait_until

UNBOUND = """server:
 interface: 127.0.0.1@%(port)d
 do-udp: no
 tls-port: %(port)d
 tls-service-key: "%(key)s"
 tls-service-pem: "%(cert)s"
 username: ""
 chroot: ""
 pidfile: ""
 directory: "%(dir)s"
 do-daemonize: no
 use-syslog: no
 module-config: "iterator"
 incoming-num-tcp: 16
 num-threads: 1
%(data)sremote-control:
 control-enable: no
"""


def free_port():
    """A port of 127.0.0.1 that is free for both UDP and TCP now."""
    for _ in range(50):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
            udp.bind(("127.0.0.1", 0))
            try:
                tcp.bind(udp.getsockname())
                return udp.getsockname()[1]
            except OSError:
                continue
    raise RuntimeError("no port is free for both UDP and TCP")


class Unbound:
    """Over TLS only. records: lines such as "a.test. 300 A 192.0.2.1"."""

    def __init__(self, directory, leaf, records):
        directory, self.port = str(directory), free_port()
        os.makedirs(directory, exist_ok=True)
        self.address = "127.0.0.1:%d" % self.port
        self.conf = os.path.join(directory, "unbound.conf")
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(UNBOUND % {"port": self.port, "dir": directory, "key": leaf.key, "cert": leaf.cert,
                               "data": "".join(' local-data: "%s"\n' % r for r in records)})

    def __enter__(self):
        self.process = subprocess.Popen(bound("KILL", ["unbound", "-d", "-c", self.conf]), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._is_up, 20, "unbound does not come up")
        return self

    def _is_up(self):
        assert self.process.poll() is None, "unbound has ended"
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)


class Stub:
    """Over UDP. Remembers every question; each goes to answer(query, send), where send(response, stranger=False) sends, from
    another port if so told."""

    def __init__(self, answer):
        self.asked = []
        self.answer = answer
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sock.bind(("127.0.0.1", 0))
        self._stranger.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._sock.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                packet, peer = self._sock.recvfrom(4096)
                query = dns.message.from_wire(packet)
                self.asked.append(str(query.question[0].name).rstrip("."))
                self.answer(query, lambda response, stranger=False, peer=peer: self._send(response, peer, stranger))
            except OSError:
                return

    def _send(self, response, peer, stranger):
        packet = response if isinstance(response, bytes) else response.to_wire()
        (self._stranger if stranger else self._sock).sendto(packet, peer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._sock.close()
        self._stranger.close()


def respond(query, *addresses, ttl=300, rcode=dns.rcode.NOERROR):
    """A response with those addresses, as they fit the question."""
    question = query.question[0]
    response = dns.message.make_response(query)
    response.flags |= dns.flags.RA
    response.set_rcode(rcode)
    if addresses:
        response.answer.append(dns.rrset.from_text(question.name, ttl, "IN", question.rdtype, *addresses))
    return response
