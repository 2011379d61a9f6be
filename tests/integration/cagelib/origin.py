"""A real nginx on loopback: TLS, TLS with HTTP/2 and plain on free ports, static files, a sparse file of 100 MB, and a
small backend behind it that tells what it got and serves git. Its access log says which requests left the proxy."""
import base64
import hashlib
import http.server
import json
import os
import shutil
import socket
import socketserver
import subprocess
import threading

from .proxy import bound, wait_until

BIG = 100 * 1000 * 1000

CONFIG = """%(user)sdaemon off; worker_processes 1; pid %(dir)s/nginx.pid; error_log %(dir)s/error.log warn;
events { worker_connections 512; }
http {
  log_format hits '$scheme $request_method $host $request_uri $status $request_length $server_protocol $connection';
  access_log %(dir)s/access.log hits;
  client_max_body_size 0; server_tokens off; types { text/plain txt; text/html html; } default_type application/octet-stream;
  client_body_temp_path %(dir)s/body; proxy_temp_path %(dir)s/proxy; fastcgi_temp_path %(dir)s/fcgi;
  uwsgi_temp_path %(dir)s/uwsgi; scgi_temp_path %(dir)s/scgi;
  ssl_certificate %(cert)s; ssl_certificate_key %(key)s; ssl_protocols TLSv1.2 TLSv1.3;
  server {
    listen 127.0.0.1:%(tls)d ssl; listen 127.0.0.1:%(h2)d ssl http2; listen 127.0.0.1:%(plain)d; root %(dir)s/www;
    location = /empty { return 204; }
    location = /moved { return 302 /hello.txt; }
    location /echo { proxy_pass http://unix:%(dir)s/backend.sock; proxy_http_version 1.1; proxy_request_buffering off;
      proxy_set_header Host $http_host; }
    location /git/ { proxy_pass http://unix:%(dir)s/backend.sock; proxy_http_version 1.1; proxy_request_buffering off; }
  }
}
"""


class Nginx:
    """Use as a context manager. leaf: the certificate of all names."""

    def __init__(self, directory, leaf):
        self.dir = str(directory)
        self.www = os.path.join(self.dir, "www")
        os.makedirs(self.www, exist_ok=True)
        with open(os.path.join(self.www, "hello.txt"), "w", encoding="ascii") as f:
            f.write("hello from the origin\n")
        with open(os.path.join(self.www, "big"), "wb") as f:
            f.truncate(BIG)
        # nginx takes over sockets that are listening already, so no port is ever free in between
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        self.tls_port, self.plain_port, self.h2_port = [x.getsockname()[1] for x in listeners]
        self.tls_pin, self.plain_pin, self.h2_pin = ["127.0.0.1:%d" % x.getsockname()[1] for x in listeners]
        conf = os.path.join(self.dir, "nginx.conf")
        with open(conf, "w", encoding="ascii") as f:
            f.write(CONFIG % {"user": "user root; " if os.geteuid() == 0 else "", "dir": self.dir, "cert": leaf.cert,
                              "key": leaf.key, "tls": self.tls_port, "plain": self.plain_port, "h2": self.h2_port})
        self.backend = Backend(self.dir)
        fds = [x.fileno() for x in listeners]
        command = bound("TERM", [find_nginx(), "-p", self.dir, "-c", conf, "-e", os.path.join(self.dir, "error.log")])
        self.process = subprocess.Popen(command, env={**os.environ, "NGINX": "%d;%d;%d;" % tuple(fds)}, pass_fds=fds,
                                        stdin=subprocess.DEVNULL)
        for listener in listeners:
            listener.close()

    def hits(self, path=None):
        """Requests that arrived, as in "https GET name /path 200"; only of that path when one is given."""
        try:
            with open(os.path.join(self.dir, "access.log"), encoding="ascii") as f:
                lines = f.read().splitlines()
        except FileNotFoundError:
            return []
        return [x for x in lines if path is None or x.split(" ")[3] == path]

    def wait_hit(self, path):
        return wait_until(lambda: self.hits(path), 10, "nginx never logged %s" % path)[0]

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        self.backend.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def find_nginx():
    path = shutil.which("nginx") or "/usr/sbin/nginx"
    assert os.path.exists(path), "nginx is not installed"
    return path


class Backend:
    """Behind nginx on a unix socket: /echo tells what arrived, /git/ is git's own http-backend. Under /git/private/ it
    asks for login, "user:password", once that is set."""

    def __init__(self, directory):
        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(os.path.join(directory, "backend.sock"), Handler)
        self.server.git_root = os.path.join(directory, "git")
        self.server.login = None
        self.server.seen = []  # (path, fields) of each request that arrived
        os.makedirs(self.server.git_root, exist_ok=True)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        """Pieces of the request body."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            left = int(self.headers.get("Content-Length") or 0)
            while left > 0:
                data = self.rfile.read(min(left, 1 << 20))
                left -= len(data)
                yield data
            return
        while (size := int(self.rfile.readline().split(b";")[0], 16)) > 0:
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b""):
            pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def echo(self):
        digest, length = hashlib.sha256(), 0
        for piece in self.body():
            digest.update(piece)
            length += len(piece)
        told = {"method": self.command, "path": self.path, "headers": self.headers.items(), "length": length,
                "sha256": digest.hexdigest()}
        self.answer(200, "application/json", json.dumps(told).encode())

    def is_known(self):
        """Whether the request may see what is private."""
        scheme, _, credentials = self.headers.get("Authorization", "").partition(" ")
        login = (self.server.login or "").encode()
        return scheme == "Basic" and login and base64.b64decode(credentials) == login

    def ask_login(self):
        for _ in self.body():
            pass
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def git(self):
        if self.path.startswith("/git/private/") and not self.is_known():
            self.ask_login()
            return
        path, _, query = self.path[len("/git"):].partition("?")
        env = {"GIT_PROJECT_ROOT": self.server.git_root, "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command,
               "PATH_INFO": path, "QUERY_STRING": query, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "REMOTE_USER": "tester",
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "PATH": os.environ["PATH"]}
        done = subprocess.run(["git", "http-backend"], env=env, input=b"".join(self.body()), stdout=subprocess.PIPE, timeout=60)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.answer(int(fields.pop("Status", "200 OK").split()[0]), fields.get("Content-Type", "text/plain"), body)

    def handle_any(self):
        self.server.seen.append((self.path, self.headers.items()))
        self.git() if self.path.startswith("/git/") else self.echo()

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = handle_any
