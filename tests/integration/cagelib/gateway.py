"""cage-gateway with its cage-proxy, and its orchestrator."""
import base64
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess

from .log import Log
from .proxy import SANITIZER, Stderr, binary, bound, children_of, is_alive, policy, wait_until
from .wire import Wire

INTAKE_TOKEN = "intake-" + "t" * 40
SUBNET = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/locked"


class Gateway:
    """Use as a context manager. own: the policy of --policy; at: where the intake listens, if not on host alone."""

    def __init__(self, directory, pki, *options, own=None, proxy=(), env=None, host="127.0.0.1", at=None):
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        self.host, self.ca_pem = host, pki.ca_pem
        self.policy_path = os.path.join(self.dir, "policy.yaml")
        self.write_policy(own or policy())
        leaf = pki.leaf(host)
        with open(os.path.join(self.dir, "intake-token"), "w", encoding="ascii") as f:
            f.write(INTAKE_TOKEN + "\n")
        self.words = [binary("cage-gateway"), "--intake", (at or host) + ":0", "--intake-cert", leaf.cert, "--intake-key", leaf.key,
                      "--intake-token", os.path.join(self.dir, "intake-token"), "--state", os.path.join(self.dir, "state"),
                      "--policy", self.policy_path, "--ca-dir", os.path.join(self.dir, "ca"), *options, "--", "--listen", host + ":0", *proxy]
        self.env = env or {}
        self.stdout_path = os.path.join(self.dir, "stdout")
        self.process = None

    def write_policy(self, rules):
        with open(self.policy_path, "w", encoding="utf-8") as f:
            f.write(rules if isinstance(rules, str) else json.dumps(rules))

    def start(self, intake_port=0, proxy_port=0):
        """Again on the same ports, where they are given."""
        words = [w if not w.endswith(":0") else "%s:%d" % (w[:-2], intake_port if i < 4 else proxy_port) for i, w in enumerate(self.words)]
        with open(self.stdout_path, "ab") as out:
            self.process = subprocess.Popen(bound("KILL", words), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                            env={**os.environ, **self.env}, start_new_session=True)
        self.stderr = Stderr(self.process.stderr)
        self.stderr.wait(r"^cage-gateway: ready", 60)
        self.port = int(self.stderr.wait(r"^cage-gateway: intake on .*:(\d+)$", 5)[1])
        self.proxy_port = int(self.stderr.wait(r"^cage-proxy: listening on .*:(\d+)$", 5)[1])
        return self

    __enter__ = start

    @property
    def url(self):
        return "https://%s:%d" % (self.host, self.port)

    @property
    def log(self):
        return Log(os.path.join(self.dir, "state", "log", "decisions.jsonl"))

    def stdout(self):
        with open(self.stdout_path, encoding="utf-8") as f:
            return f.read()

    def proxy_pid(self):
        (pid,) = [p for p in children_of(self.process.pid) if "cage-proxy" in open("/proc/%d/cmdline" % p, encoding="ascii").read()]
        return pid

    def stop(self):
        """Its exit code; nothing of it is left."""
        children = children_of(self.process.pid) if self.process.poll() is None else []
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self.stderr.wait_end(10)
        assert not SANITIZER.search(self.stderr.text()), self.stderr.text()
        wait_until(lambda: not any(is_alive(p) for p in children), 20, "children outlive it")
        return code

    def __exit__(self, *_):
        code = self.stop()
        assert code == 0, self.stderr.text()

    def aci_words(self):
        """Options of cage-aci."""
        return ["--topology", "split", "--gateway", "%s:%d" % (self.host, self.proxy_port), "--intake", self.url, "--intake-ca", self.ca_pem, "--subnet", SUBNET]

    @staticmethod
    def aci_env():
        return {"CAGE_INTAKE_TOKEN": INTAKE_TOKEN}

    # ---- as the orchestrator

    def tls(self):
        return ssl.create_default_context(cafile=self.ca_pem)

    def ask(self, method, path, body=None, token=INTAKE_TOKEN, fields=None):
        """(status, JSON or text, header fields)"""
        conn = http.client.HTTPSConnection(self.host, self.port, timeout=60, context=self.tls())
        headers = {"Authorization": "Bearer " + token} if token is not None else {}
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        conn.request(method, path, data, {**headers, **(fields or {})})
        answer = conn.getresponse()
        text = answer.read().decode()
        conn.close()
        is_json = "json" in (answer.getheader("Content-Type") or "") and "ndjson" not in answer.getheader("Content-Type")
        return answer.status, json.loads(text) if is_json else text, dict(answer.getheaders())

    def put(self, ident, rules=None, token=None, **more):
        body = {"token": token or secret_of(ident), **more}
        if rules is not None:
            body["policy"] = rules if isinstance(rules, str) else json.dumps(rules)
        return self.ask("PUT", "/v1/sandboxes/" + ident, body)

    def delete(self, ident, owner=None):
        return self.ask("DELETE", "/v1/sandboxes/%s%s" % (ident, "?owner=" + owner if owner else ""))[0]

    def lines(self, ident, cursor=None):
        """(lines, the next cursor, whether some are lost)"""
        status, text, fields = self.ask("GET", "/v1/sandboxes/%s/log%s" % (ident, "?from=" + cursor if cursor else ""))
        assert status == 200, text
        return [json.loads(x) for x in text.splitlines()], fields["Cage-Log-Next"], "Cage-Log-Lost" in fields

    # ---- as an agent

    def fetch(self, ident, url, token=None, path="/"):
        """The status of a GET by the proxy."""
        who = base64.b64encode(("%s:%s" % (ident, token or secret_of(ident))).encode()).decode()
        host = re.match(r"http://([^/]+)", url)[1]
        with Wire(socket.create_connection((self.host, self.proxy_port), 10)) as wire:
            return wire.exchange("GET", url, [("Host", host), ("Proxy-Authorization", "Basic " + who), ("Connection", "close")])


def secret_of(ident):
    return "token-of-%s-0123456789" % ident
