"""cage-proxy as a process: started with a policy, spoken to, stopped, and looked at for what it left behind."""
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

from .log import Log
from .wire import Wire

READY_SECONDS = 30
SANITIZER = re.compile(r"(AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehaviorSanitizer|assertion|Assertion)")
DEATH = re.compile(r"starting it again|is killed")
CA_VARIABLES = ("SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT CARGO_HTTP_CAINFO "
                "AWS_CA_BUNDLE").split()


def policy(*rules, pins=None, trust=(), **more):
    """A policy as a dictionary. pins: name -> "address:port". trust: PEM files for upstream."""
    upstream = {"trust": [str(t) for t in trust] or ["system"]}
    if pins:
        upstream["resolve"] = dict(pins)
    upstream.update(more.pop("upstream", {}))
    out = {"version": 1, "name": "test", **more, "upstream": upstream}
    if rules:
        out["rules"] = list(rules)
    return out


def client_env(port, ca_dir):
    """The variables that point every usual client at the proxy and make it trust our CA."""
    url = "http://127.0.0.1:%d" % port
    env = {k: url for k in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
    env.update({"no_proxy": "", "NO_PROXY": "", "NODE_EXTRA_CA_CERTS": os.path.join(ca_dir, "ca.pem")})
    env.update({k: os.path.join(ca_dir, "bundle.pem") for k in CA_VARIABLES})
    return env


def binary(program="cage-proxy"):
    directory = os.environ.get("CAGE_BIN")
    if not directory:
        raise RuntimeError("CAGE_BIN is not set: the directory of cage-proxy, such as build/asan/bin")
    return os.path.join(directory, program)


def small_binary():
    """The same proxy with the limits of limits/small_limits.h."""
    return os.path.join(os.path.dirname(binary()), "..", "tests", "cage-proxy-small")


class Stderr:
    """Collects the lines of a process as they come; waiting is woken by each line and by the end."""

    def __init__(self, pipe):
        self.lines = []
        self._ended = False
        self._changed = threading.Condition()
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def _read(self, pipe):
        for line in pipe:
            with self._changed:
                self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def text(self):
        with self._changed:
            return "\n".join(self.lines)

    def wait(self, pattern, seconds, start=0):
        """The match in the first line from start on; fails at the end of the process or of the time."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                found = next((m for m in (re.search(pattern, x) for x in self.lines[start:]) if m), None)
                left = end - time.monotonic()
                if found:
                    return found
                if self._ended or left <= 0:
                    raise AssertionError("it never said %r:\n%s" % (pattern, "\n".join(self.lines)))
                self._changed.wait(left)

    def wait_end(self, seconds):
        with self._changed:
            self._changed.wait_for(lambda: self._ended, seconds)


class Cage:
    def __init__(self, directory, rules, args=(), listen=("127.0.0.1:0",), admin="127.0.0.1:0", policy_path=None,
                 pass_fds=(), limit_file_size=False, program=None, env=None):
        """rules: a policy as dictionary or as YAML text; None takes the file policy_path as it is. limit_file_size:
        SIGXFSZ is ignored in the child, so that RLIMIT_FSIZE acts like a full disk. program: another one than binary().
        env: variables on top of ours."""
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        self.policy_path = policy_path or os.path.join(self.dir, "policy.yaml")
        self.ca_dir = os.path.join(self.dir, "ca")
        self.ca_pem = os.path.join(self.ca_dir, "ca.pem")
        self.log = Log(os.path.join(self.dir, "log.jsonl"))
        if rules is not None:
            self.write_policy(rules)
        command = [program or binary(), "--policy", self.policy_path, "--admin", admin, "--ca-dir", self.ca_dir,
                   "--log", self.log.path, *args]
        for spec in listen:
            command += ["--listen", spec]
        if limit_file_size:
            command = ["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(bound("KILL", command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, pass_fds=pass_fds, env={**os.environ, **(env or {})},
                                        start_new_session=True)  # a terminal's Ctrl-C is for the client
        self.pid = self.process.pid
        self.stderr = Stderr(self.process.stderr)
        self.expect_deaths = False  # a test that kills children says so
        self._open = []
        try:
            self.stderr.wait(r"^cage-proxy: ready\b", READY_SECONDS)
        except AssertionError:
            self.kill()
            raise
        self.listening = re.findall(r"^cage-proxy: listening on (.*)$", self.stderr.text(), re.M)
        self.port = first_port(self.listening)
        self.admin_port = first_port(re.findall(r"^cage-proxy: admin on (.*)$", self.stderr.text(), re.M))
        self.socks_port = first_port(re.findall(r"^cage-proxy: SOCKS5 on (.*)$", self.stderr.text(), re.M))
        self.captured_port = first_port(re.findall(r"^cage-proxy: captured connections on (.*)$", self.stderr.text(), re.M))
        self.children = children_of(self.pid)

    def write_policy(self, rules):
        text = rules if isinstance(rules, str) else json.dumps(rules, indent=1)
        with open(self.policy_path, "w", encoding="utf-8") as f:
            f.write(text + "\n")

    def reload(self, rules, reason="policy.loaded"):
        """Writes another policy, signals, and waits until the log says what became of it."""
        before = len(self.log.find(event="policy", reason=reason))
        self.write_policy(rules)
        self.signal(signal.SIGHUP)
        wait_until(lambda: len(self.log.find(event="policy", reason=reason)) > before, 20, "no %s in the log" % reason)
        return self.log.find(event="policy", reason=reason)[-1]

    def signal(self, number):
        os.kill(self.pid, number)

    def env(self):
        """The environment of a client."""
        keep = {k: os.environ[k] for k in ("PATH", "LANG") if k in os.environ}
        return {**keep, "HOME": self.dir, **client_env(self.port, self.ca_dir)}

    # ---- speaking to it

    def connect(self):
        """A plain connection to the proxy."""
        wire = Wire(socket.create_connection(("127.0.0.1", self.port), 10))
        self._open.append(wire)
        return wire

    def connect_to(self, port, address="127.0.0.1"):
        """A plain connection to another of its listeners."""
        wire = Wire(socket.create_connection((address, port), 10))
        self._open.append(wire)
        return wire

    def ask_connect(self, authority, fields=()):
        """Sends a CONNECT; returns the connection and the answer."""
        wire = self.connect()
        answer = wire.exchange("CONNECT", authority, [("Host", authority), *fields])
        return wire, answer

    def client_tls(self, alpn=("http/1.1",), verify=True):
        tls = ssl.create_default_context(cafile=self.ca_pem)
        tls.set_alpn_protocols(list(alpn))
        if not verify:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        return tls

    def start_tls(self, wire, name, tls=None, session=None):
        """Goes on in TLS. name None: no SNI."""
        tls = tls or self.client_tls(verify=name is not None)
        wire.sock = tls.wrap_socket(wire.sock, server_hostname=name, session=session, suppress_ragged_eofs=False)
        return wire

    def tunnel(self, host, port=443, sni="", tls=None, session=None):
        """CONNECT and the TLS handshake. sni: another name, or None for none."""
        wire, answer = self.ask_connect("%s:%d" % (host, port))
        assert answer.status == 200, answer
        return self.start_tls(wire, host if sni == "" else sni, tls, session)

    def fetch(self, method, url, fields=(), body=b""):
        """One request on a connection of its own, the way a client with a proxy set does it."""
        parts = urllib.parse.urlsplit(url)
        path = url.split(parts.netloc, 1)[1] or "/"
        fields = [("Host", parts.netloc), *fields]
        if parts.scheme == "http":
            return self.connect().exchange(method, "http://%s%s" % (parts.netloc, path), fields, body)
        return self.tunnel(parts.hostname, parts.port or 443).exchange(method, path, fields, body)

    def admin(self, path, method="GET"):
        with Wire(socket.create_connection(("127.0.0.1", self.admin_port), 10)) as wire:
            return wire.exchange(method, path, [("Host", "localhost"), ("Connection", "close")])

    def metric(self, name, **labels):
        """The value of a metric, summed over all series that carry those labels."""
        total = 0.0
        for series, have, value in metrics(self.admin("/metrics").body.decode()):
            if series == name and all(have.get(k) == v for k, v in labels.items()):
                total += value
        return total

    # ---- its end

    def hang_up(self):
        """Closes every client connection that was opened through this object."""
        for wire in self._open:
            wire.close()
        self._open = []

    def stop(self):
        """SIGTERM; the exit code, or why there is none. Clients are gone first, so nothing has to be waited for."""
        self.hang_up()
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            return "none: it did not end after SIGTERM"
        self.stderr.wait_end(5)
        return code

    def kill(self):
        """SIGKILL to the master; its children must follow by themselves."""
        self.process.kill()
        self.process.wait(10)
        self.stderr.wait_end(5)

    def assert_left_clean(self):
        assert not SANITIZER.search(self.stderr.text()), self.stderr.text()
        assert self.expect_deaths or not DEATH.search(self.stderr.text()), self.stderr.text()
        wait_until(lambda: not any(is_alive(p) for p in self.children), 10, "children outlive the master")


def bound(signal_name, command):
    """The command, made to get that signal when this process dies: a test run that is killed leaves nothing behind."""
    return ["setpriv", "--pdeathsig", signal_name, *command]


def first_port(addresses):
    """The port of the first IPv4 listener among them; 0 when there is none."""
    return next((int(x.rsplit(":", 1)[1]) for x in addresses if re.fullmatch(r"[\d.]+:\d+", x)), 0)


def children_of(pid):
    out = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task), encoding="ascii") as f:
            out += [int(x) for x in f.read().split()]
    return out


def child_named(cage, name):
    """The pid of the child with that process name, such as cage-worker; the first, if there are more."""
    for pid in children_of(cage.pid):
        with open("/proc/%d/comm" % pid, encoding="ascii") as f:
            if f.read() == name + "\n":
                return pid
    raise AssertionError("no child %s" % name)


def is_alive(pid):
    """Running, and not only waiting to be reaped."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition, seconds, what):
    """Polls, for what can't be waited on; returns what the condition gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(what)


def metrics(text):
    """(name, labels, value) of each series of a Prometheus text."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            m = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)', line)
            assert m, "not a line of Prometheus text: %r" % line
            yield m.group(1), dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m.group(2) or "")), float(m.group(3))
