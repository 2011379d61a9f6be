"""An origin that does exactly what a test tells it: a function is called with each connection. All bytes that
arrive are recorded, so that a test can say what left the proxy, and that nothing did."""
import socket
import ssl
import threading

from .wire import Truncated, Wire, response_bytes


def server_tls(leaf):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(leaf.cert, leaf.key)
    return tls


def serving(reply):
    """A handler that answers each request of a connection with reply: bytes, or a function from Message to bytes."""

    def handler(conn):
        while True:
            request = conn.read_request()
            conn.send(reply(request) if callable(reply) else reply)

    return handler


class RawConn(Wire):
    def __init__(self, sock, origin):
        super().__init__(sock)
        self.origin = origin
        self.requests = []
        self.error = None  # what ended the handler

    def read_request(self):
        request = super().read_request()
        self.requests.append(request)
        self.origin.requests.append(request)
        return request


class RawOrigin:
    """Use as a context manager. handler(conn) runs in a thread of its own; the connection is ended after it."""

    def __init__(self, handler=None, leaf=None, tls=None, at=("127.0.0.1", 0)):
        self.handler = handler or serving(response_bytes(200, b"ok\n"))
        self.tls = tls or (server_tls(leaf) if leaf else None)
        self.conns = []
        self.requests = []  # every one that arrived whole, in order
        self._changed = threading.Condition()
        self._listener = socket.create_server(at)
        self.port = self._listener.getsockname()[1]
        self.pin = "%s:%d" % (at[0], self.port)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            conn = RawConn(sock, self)
            with self._changed:
                self.conns.append(conn)
                self._changed.notify_all()
            threading.Thread(target=self._run, args=(conn,), daemon=True).start()

    def _run(self, conn):
        try:
            if self.tls:
                conn.sock = self.tls.wrap_socket(conn.sock, server_side=True, suppress_ragged_eofs=False)
                conn.sock.settimeout(20)
            self.handler(conn)
            conn.end()
        except (OSError, Truncated) as e:
            conn.error = e
        finally:
            conn.close()
            with self._changed:
                self._changed.notify_all()

    @property
    def received(self):
        """Every payload byte that arrived."""
        return b"".join(bytes(c.received) for c in list(self.conns))

    def wait(self, condition, seconds=10):
        """Waits until condition(self) holds; a connection that comes or ends wakes it, and so does a short poll."""
        with self._changed:
            for _ in range(int(seconds * 20)):
                if condition(self):
                    return
                self._changed.wait(0.05)
        raise AssertionError("the origin never saw what the test waits for; it has %r" % self.received[-500:])

    def stop(self):
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept, which would hold the port
        self._listener.close()
        for conn in list(self.conns):
            conn.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
