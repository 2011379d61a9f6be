"""A cage-dns that only tells: the server side of --bindings, for tests of the proxy alone."""
import ipaddress
import os
import socket
import struct
import threading

from .proxy import wait_until

HELLO = b"cage-bd\x01"
V4, V6, GIVEN = 4, 6, 10


def frame(kind, name, life, addresses):
    packed = [ipaddress.ip_address(a).packed for a in addresses]
    rest = struct.pack("!BBIB", kind, len(packed), life, len(name)) + name.encode() + b"".join(packed)
    return struct.pack("!H", len(rest)) + rest


class Teller:
    """Use as a context manager. Whoever connects is told all frames so far, then each new one."""

    def __init__(self, directory, hello=HELLO):
        self.path = os.path.join(str(directory), "bindings")
        self.option = ("--bindings", "unix:" + self.path)
        self.hello = hello
        self.frames = b""
        self.peers = []
        self.accepted = 0
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                peer.sendall(self.hello + self.frames)
                self.peers.append(peer)
                self.accepted += 1

    def wait(self, accepted=1):
        """Until that many have connected, over all time."""
        wait_until(lambda: self.accepted >= accepted, 10, "no worker connects to the socket of --bindings")
        return self

    def _send(self, data):
        with self._lock:
            self.frames += data
            for peer in self.peers:
                peer.sendall(data)

    def tell(self, name, *addresses, life=60):
        for version, kind in ((4, V4), (6, V6)):
            family = [a for a in addresses if ipaddress.ip_address(a).version == version]
            if family:
                self._send(frame(kind, name, life, family))

    def give(self, name, address, life=3600):
        self._send(frame(GIVEN, name, life, [address]))

    def hang_up(self):
        """Every connection ends; whoever comes again is told all."""
        with self._lock:
            for peer in self.peers:
                peer.close()
            self.peers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        self.hang_up()
        os.unlink(self.path)
