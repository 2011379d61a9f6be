"""Azure's Logs Ingestion API and the services that give tokens for it: a stand-in that holds every request to what is documented (path, version, content
type, gzip, 1 MB, an array of objects with the columns of the stream), keeps what it took as bytes, and goes wrong when it is told to."""
import http.server
import json
import os
import re
import threading
import time
import urllib.parse
import zlib

RULE, STREAM, VERSION = "dcr-00000000000000000000000000000000", "Custom-CageLog_CL", "2023-01-01"
RESOURCE = "https://monitor.azure.com"
MOST = 1000 * 1000
TEMPLATE = os.path.join(os.path.dirname(__file__), "..", "..", "..", "infra", "azure", "main.json")


def columns():
    with open(TEMPLATE, encoding="utf-8") as f:
        return {c["name"] for c in json.load(f)["variables"]["logColumns"]}


def elements(text):
    """The elements of an array, as they were written."""
    decoder, out, at = json.JSONDecoder(), [], 1
    while text[at] != "]":
        _, end = decoder.raw_decode(text, at)
        out.append(text[at:end])
        at = end + (text[end] == ",")
    assert text[0] == "[" and at == len(text) - 1, "something is around the array"
    return out


class Ingest(http.server.ThreadingHTTPServer):
    """trouble: a function (number of the post, its lines) that gives what goes wrong with it, or None: a status; "drop", no answer to what was not taken;
    "lose", none to what was; ("slow", seconds). batches: what was taken, each a list of lines."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, trouble=None, most=MOST, retry_after="0"):
        super().__init__(("127.0.0.1", 0), Handler)
        self.trouble, self.most, self.retry_after = trouble or (lambda *_: None), most, retry_after
        self.lock = threading.Lock()
        self.batches, self.sizes, self.wrong, self.good_tokens, self.tokens, self.posts, self.times = [], [], [], set(), 0, 0, []
        self.columns = columns()
        self.refuses = False  # tokens
        self.counts = True  # False: batches are counted, and not kept
        self.taken = 0
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server_address[1]

    def env(self):
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": self.url, "AZURE_AUTHORITY_HOST": self.url}

    def words(self):
        return ["--endpoint", self.url, "--rule", RULE, "--stream", STREAM, "--credentials", "identity"]

    def lines(self):
        with self.lock:
            return [line for batch in self.batches for line in batch]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()
        assert not self.wrong, self.wrong

    def handle_error(self, request, client_address):
        """Who has asked was killed; all else fails where it is asked for."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body=None, headers=None):
        text = b"" if body is None else json.dumps(body).encode()
        try:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)
        except ConnectionError:
            pass  # who has asked is gone

    def token(self, resource):
        server = self.server
        if resource != RESOURCE:
            server.wrong.append("a token for %s" % resource)
        if server.refuses:
            self.answer(400, {"error": "invalid_request"})
            return
        with server.lock:
            server.tokens += 1
            token = "eyJ0eXAiOiJKV1Qi.Zm9v.%d" % server.tokens
            server.good_tokens.add(token)
        self.answer(200, {"access_token": token, "expires_in": "3599", "token_type": "Bearer"})

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path != "/metadata/identity/oauth2/token" or self.headers.get("Metadata") != "true":
            self.server.wrong.append(self.path)
        self.token(query.get("resource"))

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.endswith("/oauth2/v2.0/token"):
            self.token(dict(urllib.parse.parse_qsl(data.decode()))["scope"].removesuffix("/.default"))
            return
        server = self.server
        lines = self.read(data)
        with server.lock:
            server.posts += 1
            number = server.posts
            server.times.append(time.monotonic())
        word = server.trouble(number, lines)
        if isinstance(word, tuple):
            time.sleep(word[1])
            word = None
        if word == "drop":
            self.close_connection = True
            return
        status, error = (int(word), "Told") if word and word != "lose" else self.judge(data, lines)
        if status != 204:
            self.answer(status, {"error": {"code": error, "message": "This is why."}}, {"Retry-After": server.retry_after} if status == 429 else {})
            return
        with server.lock:
            server.taken += len(lines)
            server.sizes.append(self.size)
            if server.counts:
                server.batches.append(lines)
        if word == "lose":
            self.close_connection = True
            return
        self.answer(204)

    def read(self, data):
        """The lines, or None; what is not as documented is wrong for good."""
        wants = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        for name, value in wants.items():
            if self.headers.get(name) != value:
                self.server.wrong.append("%s: %s" % (name, self.headers.get(name)))
        text = zlib.decompress(data, 31)
        self.size = len(text)
        if self.path != "/dataCollectionRules/%s/streams/%s?api-version=%s" % (RULE, STREAM, VERSION):
            self.server.wrong.append(self.path)
        if max(len(text), len(data)) > MOST:
            self.server.wrong.append("%d bytes" % len(text))
        if not self.server.counts:
            return text.split(b'},{"schema":')
        lines = elements(text.decode("ascii"))
        if not lines:
            self.server.wrong.append("an empty batch")
        for line in lines:
            if not set(json.loads(line)) <= self.server.columns:
                self.server.wrong.append("columns: %s" % line)
        return lines

    def judge(self, data, lines):
        match = re.fullmatch(r"Bearer (.*)", self.headers.get("Authorization", ""))
        if not match or match[1] not in self.server.good_tokens:
            return 401, "InvalidAuthenticationToken"
        if max(self.size, len(data)) > self.server.most:
            return 413, "ContentLengthLimitExceeded"
        return 204, None
