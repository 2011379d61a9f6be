"""cage serve as a process, and a client of its API that holds every answer to what openapi.yaml says."""
import http.client
import json
import os
import signal
import socket
import subprocess
import time
import urllib.parse

from .proxy import SANITIZER, Stderr, binary, bound, wait_until

API = "/api/v1/sandboxes"
ENDED = ("succeeded", "failed", "timed_out", "killed")
SECONDS = 60


class Connection(http.client.HTTPConnection):
    """Over a unix socket, or TCP if it is an address."""

    def __init__(self, where, timeout=SECONDS):
        super().__init__("localhost", timeout=timeout)
        self.where = where

    def connect(self):
        if isinstance(self.where, tuple):
            self.sock = socket.create_connection(self.where, timeout=self.timeout)
            return
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.where)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "<%d %r>" % (self.status, self.body[:600])


class Service:
    """Use as a context manager. The sandboxes of a test that fails end with the service: it deletes what is open."""

    def __init__(self, directory, config=None, env=None, options=(), before=()):
        self.dir = str(directory)
        self.state = os.path.join(self.dir, "s")
        self.socket = os.path.join(self.state, "socket")
        self.config_path = os.path.join(self.dir, "serve.yaml")
        self.env = env or {}
        self.options = list(options)
        self.before = list(before)  # what starts it, such as setpriv
        self.config = config if isinstance(config, str) else json.dumps({"version": 1, **(config or {})})
        self.process = None
        with open(self.config_path, "w", encoding="utf-8") as f:
            f.write(self.config)

    def start(self):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("CAGE_")}
        argv = [*self.before, binary("cage"), "serve", "--state", self.state, "--config", self.config_path, *self.options]
        self.process = subprocess.Popen(bound("KILL", argv) if not self.before else argv, env={**clean, **self.env}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.err = Stderr(self.process.stderr)
        self.err.wait(r"cage-serve: ready", 30)
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.delete_all()
        self.stop()

    def delete_all(self):
        for box in self.get(API + "?limit=1000").json["items"]:
            if box["state"] not in ("deleted",):
                self.request("DELETE", API + "/" + box["id"])
        wait_until(lambda: not os.listdir(os.path.join(self.state, "sandboxes")), 60, "sandboxes are left")

    def stop(self, how=signal.SIGTERM, code=0):
        if self.process.poll() is None:
            self.process.send_signal(how)
        got = self.process.wait(30)
        self.err.wait_end(10)
        assert not SANITIZER.search(self.err.text()), self.err.text()
        assert how == signal.SIGKILL or got == code, (got, self.err.text())

    def kill(self):
        """As if the machine had lost it."""
        self.stop(signal.SIGKILL)

    # ---- asking

    def request(self, method, path, body=None, headers=(), where=None):
        connection = Connection(where or self.socket)
        fields = dict(headers)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body=body, headers=fields)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def create(self, **body):
        answer = self.post(API, body)
        assert answer.status == 201, answer
        return answer.json["id"]

    def show(self, ident):
        answer = self.get(API + "/" + ident)
        assert answer.status == 200, answer
        return answer.json

    def wait(self, ident, *states, seconds=60):
        """The sandbox, once it is in one of the states."""
        end = time.monotonic() + seconds
        while True:
            box = self.show(ident)
            if box["state"] in states:
                return box
            assert time.monotonic() < end, "%s is not %s but %s\n%s" % (ident, states, box, self.err.text())
            assert box["state"] not in ENDED or set(states) & {"deleted"}, box
            time.sleep(0.02)

    def run(self, *command, **more):
        """The sandbox of a command, at its end."""
        return self.wait(self.create(command=list(command), **more), *ENDED)

    def idle(self, **body):
        ident = self.create(**body)
        self.wait(ident, "running")
        return ident

    def tool(self, ident, name, timeout=None, headers=(), **arguments):
        body = {"tool": name, "arguments": arguments}
        if timeout:
            body["timeout_seconds"] = timeout
        return self.post("%s/%s/tools/execute" % (API, ident), body, headers=headers)

    def wait_found(self, ident, seconds=20):
        """After a start of the service: until it has found the sandbox's keeper again, the API says 503 and "try again"."""
        wait_until(lambda: self.tool(ident, "shell_exec", command="true").status != 503, seconds, "its keeper is not found again")

    def result(self, ident, name, **arguments):
        answer = self.tool(ident, name, **arguments)
        assert answer.status == 200, answer
        return answer.json["result"]

    def output(self, ident, stream="both"):
        return self.get("%s/%s/output?stream=%s" % (API, ident, stream)).body

    def logs(self, ident):
        return [json.loads(line) for line in self.get("%s/%s/logs" % (API, ident)).body.splitlines()]

    def directory(self, ident):
        return os.path.join(self.state, "sandboxes", ident)

    def keepers(self):
        """The pids of the keepers of this service."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"cage-keeper") and words[1].startswith(self.state.encode()):
                found.append(int(pid))
        return found


def quote(path):
    return urllib.parse.quote(path, safe="/")


def events(response):
    """Server-sent events as they come: (event, data)."""
    name, data = "message", []
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif line == "" and data:
            yield name, "\n".join(data)
            name, data = "message", []


FILLS = """
import json, urllib.error, urllib.request
for i in range(2000):
    try:
        urllib.request.urlopen("http://plain.test/" + "x" * 1500, timeout=20).read()
    except urllib.error.HTTPError as e:
        print(json.load(e)["reason"], i > 10)
        break
"""


def fill_log(service, rules):
    """One sandbox asks plain.test until its decision log, of 256 KiB, is full: from then on it is refused, and its record says why."""
    box = service.run("python3", "-c", FILLS, policy={"inline": json.dumps(rules)})
    assert service.output(box["id"]) == b"log.unavailable True\n", (box, service.output(box["id"]))
    assert box["state"] == "succeeded" and "limits.log" in box["message"], box
    log = os.path.join(service.state, "sandboxes", box["id"], "log.jsonl")
    with open(log, "rb") as f:
        lines = f.read().splitlines()
    last = json.loads(lines[-1])
    assert os.path.getsize(log) <= 256 << 10 and len(lines) > 10
    assert (last["event"], last["reason"], last["stage"]) == ("error", "log.unavailable", "log"), last
