#!/usr/bin/python3
"""./dev run: the locked room at work, on loopback alone. An API of our own, a policy that lets out little, and an agent in a
room that does its work and then tries to leak in eight ways. Prints what was decided about each, then lets `cage verify` try
some fifty more. Ends with 1 when one of them is not what it should be, with 78 where nothing can be locked in."""
import base64
import hashlib
import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from cagelib.log import Log  # noqa: E402
from cagelib.pki import Pki  # noqa: E402
from cagelib.proxy import binary  # noqa: E402

KEY = "the-real-key-that-no-agent-sees-4711"
PLACEHOLDER = "{{DEMO_KEY}}"
UNLOCKED = 78
CLOSE = b"\x88"  # the first byte of a closing frame
WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

POLICY = """version: 1
name: demo
rules:
  - id: api
    hosts: [api.demo.test]
    methods: [GET, POST]
    paths: [/v1/**]
    secrets: [key]
secrets:
  - {{id: key, from: {{env: DEMO_KEY}}, placeholder: "{{{{DEMO_KEY}}}}", in: [header:x-api-key]}}
upstream:
  resolve: {{api.demo.test: "127.0.0.1:{port}"}}
  trust: ["{ca}"]
tests:
  - {{request: POST https://api.demo.test/v1/messages, expect: allow, rule: api}}
  - {{request: POST https://evil.test/, expect: deny}}
"""

# What each step of agent.py comes to: what it gets, and the reason in the log.
EXPECTED = {"its work, with a placeholder": ("200, key " + PLACEHOLDER, ""),
            "another host": ("403", "host.not_allowed"),
            "a secret in a body": ("403", "secret.detected"),
            "the same in base64": ("403", "secret.detected"),
            "labels of a DNS name": ("192.0.2.1", "host.not_allowed"),
            "an address without a name": ("403", "address.private"),
            "a websocket message": ("closed, 1008", "secret.detected"),
            "the cloud's metadata": ("403", "address.private"),
            "a socket of its own": ("ECONNREFUSED", "connect.captured")}
# Where the network is shared with others (mode seccomp) these meet nobody, so that there is nobody to write it down.
NOBODY_THERE = ("labels of a DNS name", "an address without a name", "a socket of its own")
# Lines that no txn leads to, by what they are about.
ABOUT = {"its work, with a placeholder": {"event": "request", "path": "/v1/messages"}, "labels of a DNS name": {"event": "dns"},
         "a socket of its own": {"reason": "connect.captured"}}


class Api(http.server.BaseHTTPRequestHandler):
    """Tells the key that it was called with, which a careless server may do."""
    protocol_version = "HTTP/1.1"
    seen = []  # all that arrived

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.path, self.headers.get("x-api-key"), body))
        answer = json.dumps({"your_key": self.headers.get("x-api-key")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self):
        """A websocket that listens."""
        accept = base64.b64encode(hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + WEBSOCKET_GUID).digest())
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept.decode())
        self.end_headers()
        self.wfile.flush()
        self.seen.append((self.path, None, self.rfile.read()))
        self.close_connection = True


def start_api(pki):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    leaf = pki.leaf("api.demo.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(leaf.cert, leaf.key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def cage(*args, **more):
    """A command of cage, which ends with us. An interrupt waits until there is a process that can be ended."""
    asked = []
    before = signal.signal(signal.SIGINT, lambda *_: asked.append(True))
    with subprocess.Popen([binary("cage"), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **more) as process:
        try:
            signal.signal(signal.SIGINT, before)
            if asked:
                raise KeyboardInterrupt
            out, _ = process.communicate(timeout=180)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            process.terminate()
            process.communicate()  # nobody is to write to a pipe that is closed
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out)


def run_agent(scratch, policy, log):
    agent = shutil.copy(os.path.join(HERE, "agent.py"), scratch)
    return cage("run", "--quiet", "--policy", policy, "--ca-dir", os.path.join(scratch, "ca"), "--log", log, "--bind-ro", "%s:/home/agent/agent.py" % agent,
                "--", "/usr/bin/python3", "-B", "/home/agent/agent.py", env={**os.environ, "DEMO_KEY": KEY})


def line_of(lines, step):
    """The log line of the decision about a step."""
    if step["txn"]:
        found = [x for x in lines if step["txn"] in (x.get("txn"), x.get("conn")) and x.get("decision") == "block"]
    else:
        found = [x for x in lines if all(x.get(k) == v for k, v in ABOUT.get(step["title"], {"event": ""}).items())]
    return found[0] if found else {}


def is_shared():
    """Is it the weaker mode that this machine allows?"""
    probed = subprocess.run([binary("cage-gate"), "--probe", "--json"], stdout=subprocess.PIPE, text=True, timeout=60)
    return probed.returncode == 0 and json.loads(probed.stdout)["mode"] == "seccomp"


def is_right(step, line, shared):
    if shared and step["title"] in NOBODY_THERE:
        return not line and step["got"] != "open"
    return bool(line) and (step["got"], line.get("reason", "")) == EXPECTED[step["title"]]


def show(steps, lines, shared):
    """The table; what is wrong in it."""
    form = "%-30s %-26s %-9s %-18s %s"
    print(form % ("WHAT THE AGENT TRIES", "IT GETS", "DECISION", "REASON", "RULE"))
    wrong = []
    for step in steps:
        line = line_of(lines, step)
        reason = line.get("reason", "")
        print(form % (step["title"], step["got"], line.get("decision", "-"), reason or "-", line.get("rule", "-")), flush=True)
        if not is_right(step, line, shared):
            wrong.append("%s: expected %r, got %r" % (step["title"], EXPECTED[step["title"]], (step["got"], reason)))
    return wrong + ["not tried: " + x for x in EXPECTED if x not in [s["title"] for s in steps]]


def arrived():
    """What is wrong with what the API got: its one request, with the real key, and a websocket that was closed at once."""
    expected = ("/v1/messages", KEY, b'{"ask":"hello"}')
    loot = [x for x in Api.seen if x != expected and not (x[0] == "/v1/live" and x[2][:1] in (b"", CLOSE))]
    missing = expected not in Api.seen
    return (["the API got %r" % (loot,)] if loot else []) + (["its work did not reach the API"] if missing else [])


def main():
    scratch = tempfile.mkdtemp(prefix="cage-demo.")
    pki = Pki(os.path.join(scratch, "origin"), "demo origin CA")
    policy, log = os.path.join(scratch, "policy.yaml"), Log(os.path.join(scratch, "log.jsonl"))
    with open(policy, "w", encoding="ascii") as f:
        f.write(POLICY.format(port=start_api(pki), ca=pki.ca_pem))
    print("An agent in a locked room, with %s; policy %s\n" % (PLACEHOLDER, policy), flush=True)
    done = run_agent(scratch, policy, log.path)
    if done.returncode == UNLOCKED:
        print("No agent is run here, since it could not be locked in; cage-gate --probe says more.", file=sys.stderr)
        return UNLOCKED
    lines = log.lines() + Log(log.path + ".dns").lines()
    wrong = show([json.loads(x) for x in done.stdout.splitlines()], lines, is_shared()) + arrived()
    if done.returncode != 0:
        wrong.append("cage run ended with %d" % done.returncode)
    print("\nThe API got one request, with the real key. Every decision is in %s (remove its directory when done), such as:" % log.path)
    print(next((x.decode() for x in log.raw_lines() if b'"host.not_allowed"' in x), "(no refusal was logged)"))
    checked = cage("verify", "--ca-dir", os.path.join(scratch, "ca"))
    print("\ncage verify, from inside a room: %s" % (checked.stdout.splitlines() or ["nothing"])[-1])
    if checked.returncode != 0:
        wrong.append("cage verify ended with %d:\n%s" % (checked.returncode, checked.stdout))
    for line in wrong:
        print("NOT AS IT SHOULD BE: " + line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
