"""cage-fetch by itself: one request, and nothing that nobody has asked for."""
import base64
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading

import pytest
from cagelib.proxy import SANITIZER, binary


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        seen = self.server.seen
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        seen.append((self.command, self.path, dict(self.headers.items()), body))
        if self.path == "/wait":
            self.server.released.wait(30)
        if self.path == "/early":
            self.send_response_only(103)
            self.send_header("X-Early", "1")
            self.end_headers()
        status, data = (302, b"") if self.path == "/moved" else (200, self.server.body)
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("X-Twice", "1")
        self.send_header("X-Twice", "2")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.seen, running.body, running.released = [], b"hello", threading.Event()
        running.url = "http://127.0.0.1:%d" % running.server_port
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.released.set()
        running.shutdown()


def fetch(*options, env=None, raw=None, **ask):
    done = subprocess.run([binary("cage-fetch"), *options], input=raw if raw is not None else json.dumps(ask).encode(), capture_output=True, timeout=60,
                          env={**os.environ, **(env or {})})
    assert not SANITIZER.search(done.stderr.decode()), done.stderr
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_get(server):
    answer = fetch(url=server.url + "/a?b=c", headers={"X-A": "b", "X-Empty": ""})
    assert (answer["status"], answer["body"], answer["truncated"]) == (200, "hello", False)
    assert [v for n, v in answer["headers"] if n.lower() == "x-twice"] == ["1", "2"]
    method, path, headers, _ = server.seen[0]
    assert (method, path, headers["X-A"], headers["X-Empty"]) == ("GET", "/a?b=c", "b", "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_bodies(server, method):
    assert fetch(url=server.url, method=method, body="text \u00e4")["status"] == 200
    assert fetch(url=server.url, method=method, body_base64=base64.b64encode(b"\0\xff").decode())["status"] == 200
    assert [(m, b) for m, _, _, b in server.seen] == [(method, "text \u00e4".encode()), (method, b"\0\xff")]
    assert "Expect" not in server.seen[0][2]


def test_head(server):
    assert fetch(url=server.url, method="HEAD")["body"] == "" and server.seen[0][0] == "HEAD"


def test_bytes_that_are_no_text(server):
    server.body = bytes(range(256))
    assert base64.b64decode(fetch(url=server.url)["body_base64"]) == server.body
    server.body = b"a\0b"
    assert fetch(url=server.url)["body_base64"] == "YQBi"


@pytest.mark.parametrize("size,truncated", [(999, False), (1000, False), (1001, True), (5000000, True)])
def test_a_bound(server, size, truncated):
    server.body = b"x" * size
    answer = fetch(url=server.url, max_bytes=1000)
    assert (len(answer["body"]), answer["truncated"]) == (min(size, 1000), truncated)


def test_redirects_are_not_followed(server):
    answer = fetch(url=server.url + "/moved")
    assert answer["status"] == 302 and ["Location", "/elsewhere"] in answer["headers"] and len(server.seen) == 1


def test_an_answer_on_the_way_is_none(server):
    answer = fetch(url=server.url + "/early")
    assert answer["status"] == 200 and "X-Early" not in [n for n, _ in answer["headers"]]


def test_variables_and_files_do_not_count(server, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".curlrc").write_text("header = \"X-Rc: 1\"\n")
    nowhere = "http://127.0.0.1:1"
    assert fetch(url=server.url, env={"HOME": str(tmp_path), "http_proxy": nowhere, "HTTP_PROXY": nowhere, "ALL_PROXY": nowhere})["status"] == 200
    assert "Authorization" not in server.seen[0][2] and "X-Rc" not in server.seen[0][2]


def test_time(server):
    assert fetch(url=server.url + "/wait", timeout_ms=300)["error"] == "timeout"


def test_nobody_is_there():
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    assert fetch(url="http://127.0.0.1:%d" % port)["error"] == "connect"
    assert fetch(url="http://127.0.0.1:%d" % port, proxy="socks5h://localhost/no/such/socket")["error"] in ("connect", "proxy")


def test_certificates_are_verified(pki):
    leaf = pki.leaf("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf.cert, leaf.key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.seen, server.body = [], b"secure"
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = "https://localhost:%d/" % server.server_port
        assert fetch(url=url, ca_file=str(pki.ca_pem))["body"] == "secure"
        assert fetch("--ca-file", str(pki.ca_pem), url=url)["body"] == "secure"
        assert fetch(url=url)["error"] == "tls"
        assert fetch(url=url.replace("localhost", "127.0.0.1"), ca_file=str(pki.ca_pem))["error"] == "tls"
        server.shutdown()


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"{}", b'{"url": "gopher://x"}', b'{"url": "http://x", "y": 1}', b'{"url": "http://x' + b"x" * (1 << 20) + b'"}'],
                         ids=["nothing", "list", "half", "empty", "scheme", "unknown", "long"])
def test_what_is_no_request(raw):
    assert fetch(raw=raw)["error"] == "bad_request"


def test_usage():
    for options, said in ((["--nonsense"], b"--nonsense: "), (["word"], b"word: is not an option"), (["--proxy"], b"--proxy: ")):
        done = subprocess.run([binary("cage-fetch"), *options], input=b"", capture_output=True, timeout=20)
        assert done.returncode == 2 and done.stderr.startswith(b"cage-fetch: " + said) and done.stderr.endswith(b"cage-fetch --help lists all options\n") and not done.stdout, done
    assert b"usage: cage-fetch" in subprocess.run([binary("cage-fetch"), "--help"], capture_output=True, timeout=20).stdout
