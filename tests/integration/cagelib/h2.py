"""HTTP/2 by hand, with python3-h2: a client through the proxy and a handler for RawOrigin. Both see every frame, and
neither hides what is malformed."""
import json
import socket

import h2.config
import h2.connection
import h2.events
import h2.exceptions

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


class Answer:
    """What came on one stream; has what checks.py asks for."""

    def __init__(self):
        self.status, self.fields, self.body, self.trailers, self.interim = 0, [], b"", None, []
        self.ended, self.reset = False, None  # reset: the code of RST_STREAM

    @property
    def head(self):
        return repr(self.fields).encode()

    def header(self, name, default=""):
        return next((v for n, v in self.fields if n == name), default)

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "<%d %r %r reset %r>" % (self.status, self.fields, self.body[:300], self.reset)


class H2Client:
    """One connection through the proxy."""

    def __init__(self, cage, host, port=443, sni="", verify=True):
        self.host = host
        self.wire = cage.tunnel(host, port, sni, cage.client_tls(alpn=("h2", "http/1.1"), verify=verify))
        assert self.wire.sock.selected_alpn_protocol() == "h2"
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=True, header_encoding="latin-1", validate_outbound_headers=False, normalize_outbound_headers=False))
        self.answers, self.goaway, self.ended, self.unread = {}, None, False, b""
        self.asked_at_goaway = []  # streams whose answers were not whole when GOAWAY came
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        self.wire.send(self.h2.data_to_send())

    def start(self, method, path, fields=(), end=True, authority=None, pseudo=()):
        """Sends a head; its stream. pseudo: more of its fields that begin with a colon."""
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.h2.send_headers(stream, [(":method", method), (":scheme", "https"), (":authority", authority or self.host),
                                      (":path", path), *pseudo, *fields], end_stream=end)
        self.flush()
        return stream

    def send(self, stream, body, end=True, trailers=None):
        """Sends a body as the windows allow; stops when the stream is over."""
        while body and not self.over(stream):
            n = min(len(body), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if n == 0:
                self.read()
                continue
            self.h2.send_data(stream, body[:n])
            body = body[n:]
            self.flush()
        if self.over(stream):
            return
        if trailers:
            self.h2.send_headers(stream, trailers, end_stream=True)
        elif end:
            self.h2.end_stream(stream)
        self.flush()

    def over(self, stream):
        return self.answers[stream].ended or self.answers[stream].reset is not None or self.ended

    def read(self):
        """Takes what comes next."""
        data = self.wire.sock.recv(65536)
        if not data:
            self.ended = True
            return
        self.unread += data
        while len(self.unread) >= 9 + int.from_bytes(self.unread[:3], "big"):
            size = 9 + int.from_bytes(self.unread[:3], "big")
            one, self.unread = self.unread[:size], self.unread[size:]
            for event in self.h2.receive_data(one):
                self.take(event)
        self.flush()

    def take(self, event):
        if isinstance(event, h2.events.ConnectionTerminated) and event.error_code == 0:
            self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN  # what is under way goes on
        answer = self.answers.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event.error_code
            self.asked_at_goaway = [stream for stream in self.answers if not self.over(stream)]
        elif answer is None:
            return
        elif isinstance(event, h2.events.ResponseReceived):
            answer.status = int(dict(event.headers)[":status"])
            answer.fields = [(n, v) for n, v in event.headers if n[0] != ":"]
        elif isinstance(event, h2.events.InformationalResponseReceived):
            answer.interim.append(int(dict(event.headers)[":status"]))
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = event.headers
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset) and not answer.ended:
            answer.reset = event.error_code

    def wait(self, stream):
        while not self.over(stream):
            self.read()
        return self.answers[stream]

    def fetch(self, method, path, fields=(), body=b"", trailers=None, authority=None):
        stream = self.start(method, path, fields, end=not body and not trailers, authority=authority)
        if body or trailers:
            self.send(stream, body, trailers=trailers)
        return self.wait(stream)

    def wait_end(self):
        """Reads until the proxy ends the connection; the code of its GOAWAY."""
        try:
            while not self.ended:
                self.read()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        return self.goaway


class Request:
    def __init__(self, headers):
        self.headers, self.body, self.trailers, self.stream = headers, b"", None, 0

    def header(self, name, default=""):
        return next((v for n, v in self.headers if n == name), default)


class H2Reply:
    def __init__(self, status=200, fields=(), body=b"", trailers=None, interim=()):
        self.status, self.fields, self.body, self.trailers, self.interim = status, fields, body, trailers, interim


class H2Server:
    """Serves one connection: answer(request, server) gives an H2Reply, or None when it has said all itself."""

    def __init__(self, receive, send, answer):
        self.receive, self.send_bytes, self.answer = receive, send, answer
        self.requests, self.pending, self.leaves = {}, {}, False  # leaves: after what is said now
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="latin-1"))
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.send_bytes(data)

    def run(self):
        while True:
            data = self.receive(65536)
            if not data:
                return
            for event in self.h2.receive_data(data):
                self.take(event)
            self.pump()
            if self.leaves:
                self.h2.close_connection()
            self.flush()
            if self.leaves:
                return

    def take(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.requests[event.stream_id] = Request(event.headers)
            self.requests[event.stream_id].stream = event.stream_id
        elif isinstance(event, h2.events.DataReceived):
            self.requests[event.stream_id].body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            self.requests[event.stream_id].trailers = event.headers
        elif isinstance(event, h2.events.StreamEnded):
            self.reply(event.stream_id, self.answer(self.requests[event.stream_id], self))
        elif isinstance(event, h2.events.StreamReset):
            self.pending.pop(event.stream_id, None)

    def reply(self, stream, reply):
        if reply is None:
            return
        for status in reply.interim:
            self.h2.send_headers(stream, [(":status", str(status))])
        self.h2.send_headers(stream, [(":status", str(reply.status)), *reply.fields])
        self.pending[stream] = [reply.body, reply.trailers]

    def pump(self):
        for stream, (body, trailers) in list(self.pending.items()):
            while body:
                n = min(len(body), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
                if n == 0:
                    break
                self.h2.send_data(stream, body[:n])
                body = body[n:]
            self.pending[stream][0] = body
            if body:
                continue
            if trailers:
                self.h2.send_headers(stream, trailers, end_stream=True)
            else:
                self.h2.end_stream(stream)
            del self.pending[stream]


def h2_serving(answer):
    """A handler for RawOrigin, whose TLS must offer h2 alone."""

    def handler(conn):
        assert conn.sock.selected_alpn_protocol() == "h2"
        conn.resumed = conn.sock.session_reused

        def take(request, server):
            conn.origin.requests.append(request)
            return answer(request, server)

        def receive(n):
            data = conn.sock.recv(n)
            conn.received += data
            return data

        H2Server(receive, conn.sock.sendall, take).run()

    return handler


def h2_only(tls, serve):
    """A handler that does its own TLS: an offer without h2 is answered with the alert no_application_protocol."""

    def handler(conn):
        hello = conn.sock.recv(5, socket.MSG_PEEK | socket.MSG_WAITALL)
        hello = conn.sock.recv(5 + int.from_bytes(hello[3:5], "big"), socket.MSG_PEEK | socket.MSG_WAITALL)
        if b"\x02h2" not in hello:
            conn.sock.recv(len(hello))
            conn.sock.sendall(b"\x15\x03\x03\x00\x02\x02\x78")
            return
        conn.sock = tls.wrap_socket(conn.sock, server_side=True)
        serve(conn)

    return handler
