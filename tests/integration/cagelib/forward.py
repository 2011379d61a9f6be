"""A way through the proxy for clients that know none, such as nghttp and h2load."""
import socket
import threading


class Forwarder:
    """Each connection to `address` goes on through a CONNECT of its own. Use as a context manager."""

    def __init__(self, cage, authority):
        self.cage, self.authority = cage, authority
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                inner = self.listener.accept()[0]
            except OSError:
                return
            outer = self.cage.ask_connect(self.authority)[0].sock
            outer.settimeout(None)
            for pair in ((inner, outer), (outer, inner)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    @staticmethod
    def _copy(source, sink):
        try:
            data = source.recv(65536)
            while data:
                sink.sendall(data)
                data = source.recv(65536)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
