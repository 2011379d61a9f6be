"""The Python client: where it is, and a relay before the service that loses answers, as networks do."""
import os
import socket
import threading

SDK = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", "..", "..", "orchestrator", "sdk", "python"))
SECONDS = 60
DROP = -1


class Relay:
    """Listens at path, and passes each connection on to the service. plan(request) says how many bytes of the answer are let
    through before both ends are cut; None: all of them; DROP: the service never hears of it. It is called when the request's first bytes are there, in a thread."""

    def __init__(self, path, service, plan):
        self.path, self._service, self._plan = path, service, plan
        self.requests = []  # the first bytes of each
        self.answered = threading.Event()  # an answer was cut: the service has given it
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(SECONDS)

    def count(self, method, end=""):
        return sum(1 for r in self.requests if r.split(b" ", 1)[0] == method.encode() and r.split(b" ", 2)[1].endswith(end.encode()))

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        client.settimeout(SECONDS)
        with client, socket.socket(socket.AF_UNIX) as server:
            server.settimeout(SECONDS)
            first = client.recv(65536)
            if not first:
                return
            self.requests.append(first)
            left = self._plan(first)
            if left == DROP:
                return
            try:
                server.connect(self._service)
                server.sendall(first)
                threading.Thread(target=pump, args=(client, server), daemon=True).start()
                self._answer(server, client, left)
            except OSError:
                pass
            for end in (client, server):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def _answer(self, server, client, left):
        while True:
            data = server.recv(65536)
            if not data:
                return
            client.sendall(data if left is None else data[:left])
            if left is not None:
                left -= min(left, len(data))
                if left == 0:
                    self.answered.set()
                    return


def pump(source, target):
    """Up to the end of source, which is also the end of what target hears."""
    try:
        while True:
            data = source.recv(65536)
            if not data:
                target.shutdown(socket.SHUT_RDWR)
                return
            target.sendall(data)
    except OSError:
        pass
