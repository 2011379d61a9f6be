"""A second reader of HTTP/1.1 requests, which shares no code with the proxy or with Wire and forgives nothing. It is given
all bytes that an origin received: they must be whole requests with nothing between, before or after them."""
import re

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
START = re.compile(rb"(" + TOKEN + rb") (/[!-~]*|\*) HTTP/1\.1")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})")
HOST = re.compile(rb"([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?")


class Ambiguous(Exception):
    """These bytes are not requests that have one reading only."""


class Request:
    def __init__(self, method, target, fields):
        self.method, self.target, self.fields, self.body = method, target, fields, b""

    def values(self, name):
        return [v for n, v in self.fields if n.lower() == name]

    def key(self):
        """What it asks for."""
        return self.method, self.target, self.body


def cut_line(data, at):
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Ambiguous("a line has no end: %r" % data[at:at + 80])
    return data[at:end], end + 2


def match(pattern, line, what):
    found = pattern.fullmatch(line)
    if not found:
        raise Ambiguous("%s: %r" % (what, line[:80]))
    return found


def read_fields(data, at):
    fields = []
    while True:
        line, at = cut_line(data, at)
        if not line:
            return fields, at
        fields.append(match(FIELD, line, "a bad field").groups())


def read_chunked(data, at):
    body = b""
    while True:
        line, at = cut_line(data, at)
        size = int(match(SIZE, line, "a bad chunk size").group(1), 16)
        if size == 0:
            trailers, at = read_fields(data, at)
            return body, at
        body += data[at:at + size]
        at += size
        if data[at:at + 2] != b"\r\n":
            raise Ambiguous("a chunk does not end where it says")
        at += 2


def read_length(data, at, text):
    if not re.fullmatch(rb"0|[1-9][0-9]{0,11}", text) or at + int(text) > len(data):
        raise Ambiguous("a bad length, or less than that: %r" % text)
    return data[at:at + int(text)], at + int(text)


def read_request(data, at):
    line, at = cut_line(data, at)
    method, target = match(START, line, "a bad request line").groups()
    fields, at = read_fields(data, at)
    request = Request(method, target, fields)
    hosts, lengths, codings = (request.values(x) for x in (b"host", b"content-length", b"transfer-encoding"))
    if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
        raise Ambiguous("not one good Host: %r" % hosts)
    if len(lengths) + len(codings) > 1 or codings not in ([], [b"chunked"]):
        raise Ambiguous("framed in more than one way: %r %r" % (lengths, codings))
    if codings:
        request.body, at = read_chunked(data, at)
    elif lengths:
        request.body, at = read_length(data, at, lengths[0])
    return request, at


def read_requests(data):
    """All requests of one connection. Raises Ambiguous when there is anything else in it."""
    requests, at = [], 0
    while at < len(data):
        request, at = read_request(data, at)
        requests.append(request)
    return requests
