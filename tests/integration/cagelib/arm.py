"""Azure, as far as cage asks it for anything: a stateful stand-in for ARM's container groups and for the services that give tokens. It
answers like the real one (states, delays, operations in three styles, Retry-After), goes wrong when it is told to, and writes down what
was said, for Microsoft's own validator (CAGE_ACI_SPEC)."""
import http.server
import json
import re
import threading
import time
import urllib.parse
from datetime import datetime, timezone

from .arm_monitor import Monitor, is_monitor
from .arm_standby import Standby

VERSION = "2025-09-01"
SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
GROUP = "cage-test"
TOKEN = "eyJ0eXAiOiJKV1Qi.Zm9v.%d"
BASE = "/subscriptions/%s/resourceGroups/%s/providers/Microsoft.ContainerInstance/containerGroups" % (SUBSCRIPTION, GROUP)
KEPT_RUNNING, KEPT_ENDED = 4 * 1024 * 1024, 16 * 1024


def stamp(when):
    return datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def trouble(*plan):
    """Of an Arm: (method, ending of the path, which of these requests, word) each."""
    seen = {}

    def of(method, path, _):
        for i, (m, ending, number, word) in enumerate(plan):
            if m == method and path.endswith(ending):
                seen[i] = seen.get(i, 0) + 1
                if seen[i] in number:
                    return word
        return None
    return of


class Script:
    """What the containers of a group do: lines [(seconds after the start, text)] of the agent, the seconds that it runs, its end, and lines of others;
    what the agent says when the group is stopped, and the seconds that it goes on then; when Azure starts its helpers anew, and the group has another address."""

    def __init__(self, lines=(), seconds=0.05, code=0, others=None, fails=None, last=(), stops_in=0.1, moves=()):
        self.lines, self.seconds, self.code, self.others, self.fails = list(lines), seconds, code, others or {}, fails
        self.last, self.stops_in, self.moves = last, stops_in, moves

    def time(self, group, now):
        """What the clock of the group says."""
        return now

    def look(self):
        """Somebody reads the log of the agent."""


class Stepped(Script):
    """One whose time does not pass by itself: with each look at the log of the agent so many seconds are over, however late it comes."""

    def __init__(self, step, *rest, **more):
        super().__init__(*rest, **more)
        self.step, self.passed = step, 0.0

    def time(self, group, now):
        return min(now, group.starts) + self.passed

    def look(self):
        self.passed += self.step


class Group:
    """One container group: what was asked for, and how far it is."""

    def __init__(self, name, body, script, starts_in):
        self.name, self.body, self.script = name, body, script
        self.made = time.time()
        self.starts = self.made + starts_in
        self.deleting = None
        self.puts = 1
        self.stops = 0

    def provisioning(self, now):
        if now < self.starts:
            return "Creating"
        return "Failed" if self.script.fails else "Succeeded"

    def log(self, container, now):
        """[(time, line)] that were written by now."""
        if container == "agent":
            self.script.look()
        now = self.script.time(self, now)
        lines = self.script.lines if container == "agent" else self.script.others.get(container, ())
        return [(self.starts + at, text) for at, text in lines if self.starts + at <= now and at <= self.script.seconds]

    def has_ended(self, now):
        return self.script.time(self, now) >= self.starts + self.script.seconds

    def stop(self, now):
        """The agent hears SIGTERM."""
        old, at = self.script, now - self.starts
        if not self.has_ended(now):
            self.script = Script([line for line in old.lines if line[0] <= at] + [(at, text) for text in old.last], at + old.stops_in, 143, old.others)
        self.stops += 1

    def state(self, container, now):
        if now < self.starts:
            return {"state": "Waiting", "detailStatus": "Pulling"}
        if container == "agent" and self.has_ended(now):
            return {"state": "Terminated", "startTime": stamp(self.starts), "finishTime": stamp(self.starts + self.script.seconds), "exitCode": self.script.code,
                    "detailStatus": "Completed" if self.script.code == 0 else "Error"}
        return {"state": "Running", "startTime": stamp(self.starts), "detailStatus": ""}

    def events(self, now):
        """Of each container: [Pulling, Pulled, Created, Started] that have come by now."""
        parts = {"Pulling": 0.2, "Pulled": 0.7, "Created": 0.9, "Started": 1.0}
        times = {name: self.made + part * (self.starts - self.made) for name, part in parts.items()}
        return [{"count": 1, "firstTimestamp": stamp(at), "lastTimestamp": stamp(at), "name": name, "message": name, "type": "Normal"} for name, at in times.items() if at <= now]

    def moved(self, now):
        """How often it was started anew."""
        return len([1 for at in self.script.moves if self.starts + at <= now])

    def shown(self, now, with_view=True):
        """As GET tells it: without what was secret."""
        body = json.loads(json.dumps(self.body))
        p = body["properties"]
        for volume in p.get("volumes", ()):
            if "secret" in volume:
                volume["secret"] = {}
        for credential in p.get("imageRegistryCredentials", ()):
            credential.pop("password", None)
        for c in p["containers"]:
            for v in c["properties"].get("environmentVariables", ()):
                v.pop("secureValue", None)
            if with_view:
                c["properties"]["instanceView"] = {"restartCount": self.moved(now) if c["name"] != "agent" else 0, "currentState": self.state(c["name"], now), "events": self.events(now)}
        p["provisioningState"] = self.provisioning(now)
        if self.script.moves:
            p["ipAddress"] = {"type": "Private", "ports": [], "ip": "10.60.0.%d" % (4 + self.moved(now))}
        if with_view:
            p["instanceView"] = {"events": [], "state": "Running" if now >= self.starts else "Pending"}
        return {"id": "%s/%s" % (BASE, self.name), "name": self.name, "type": "Microsoft.ContainerInstance/containerGroups", **body}


class Arm(http.server.ThreadingHTTPServer):
    """style: how operations are told, "async", "location" or "none". trouble: a function (method, path, count) that gives a word for what goes
    wrong with this request, or None: a status ("429", "503", "500", "401"); "drop", no answer to what was not obeyed; "lose", none to what was; "stall", none until the end."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, style="async", trouble=None, script=None, starts_in=0.1, delete_takes=0.05, unseen=0.0, usages=None, monitor=None, standby=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.style, self.trouble, self.script = style, trouble or (lambda *_: None), script or (lambda body: Script())
        self.starts_in, self.delete_takes, self.unseen = starts_in, delete_takes, unseen
        self.usages, self.monitor = usages or {}, monitor or Monitor()
        self.lock = threading.RLock()
        self.groups, self.gone, self.traffic, self.asked, self.tokens = {}, [], [], [], 0
        self.operations, self.over = {}, threading.Event()
        self.more = []  # other parts of Azure: (handler, path, query, body, now) -> an answer, or None
        self.standby = standby or Standby()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server_address[1]

    def env(self):
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": self.url, "AZURE_AUTHORITY_HOST": self.url}

    def words(self, *more):
        """Options of cage-aci."""
        return ["--endpoint", self.url, "--subscription", SUBSCRIPTION, "--group", GROUP, "--credentials", "identity", *more]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, request, client_address):
        """Who has asked was killed; all else fails where it is asked for."""

    def settle(self, now):
        for name in [n for n, g in self.groups.items() if g.deleting is not None and now >= g.deleting]:
            self.gone.append(self.groups.pop(name))

    def write_traffic(self, path):
        with open(path, "w", encoding="utf-8") as f:
            for t in self.traffic:
                f.write(json.dumps(t) + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection to it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        arm = self.server
        with arm.lock:
            arm.asked.append((self.command, self.path))
            count = len([1 for m, p in arm.asked if m == self.command])
            word = arm.trouble(self.command, url.path, count)
        if word == "stall":
            arm.over.wait(120)
        if word in ("drop", "stall"):
            self.close_connection = True
            return
        body = json.loads(data) if data and "json" in self.headers.get("Content-Type", "") else data.decode()
        status, answer, headers = self.wrong(word) if word and word.isdigit() else self.right(url.path, query, body)
        if word == "lose":
            self.close_connection = True
            return
        text = b"" if answer is None else answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        try:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json; charset=utf-8", **headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)
        except ConnectionError:
            return  # who has asked is gone
        if "ContainerInstance" in url.path and "/operations/" not in url.path and not is_monitor(url.path) and not isinstance(answer, bytes):
            self.record(url, query, body, status, answer, headers)

    do_GET = do_PUT = do_DELETE = do_POST = do_any

    def record(self, url, query, body, status, answer, headers):
        request = {"method": self.command, "url": "https://management.azure.com" + self.path, "query": query,
                   "headers": {"content-type": "application/json"}, "body": body if body else {}}
        with self.server.lock:
            self.server.traffic.append({"liveRequest": request, "liveResponse": {"statusCode": str(status), "headers": {"content-type": "application/json", **headers},
                                                                                 "body": answer if answer is not None else {}}})

    @staticmethod
    def wrong(word):
        codes = {"429": "TooManyRequests", "404": "ResourceNotFound", "409": "ContainerGroupTransitioning", "401": "ExpiredAuthenticationToken"}
        code = codes.get(word, "InternalServerError")
        return int(word), {"error": {"code": code, "message": "The service is told to say so."}}, {"Retry-After": "0"} if word == "429" else {}

    def right(self, path, query, body):
        arm = self.server
        with arm.lock:
            now = time.time()
            arm.settle(now)
            if path.endswith("/oauth2/token") or path.endswith("/oauth2/v2.0/token"):
                return self.token(path, query, body)
            if not re.fullmatch(r"Bearer eyJ0eXAiOiJKV1Qi\.Zm9v\.\d+", self.headers.get("Authorization", "")):
                return 401, {"error": {"code": "AuthenticationFailed", "message": "no token"}}, {}
            for other in arm.more:
                answer = other(self, path, query, body, now)
                if answer:
                    return answer
            if "/operations/" in path:
                return self.operation(path, now)
            if is_monitor(path):
                return arm.monitor(path, query, now)
            pooled = self.server.standby.answer(self, path, query, body, now)
            if pooled:
                return pooled
            if query.get("api-version") != VERSION:
                return 400, {"error": {"code": "InvalidApiVersionParameter", "message": "which version?"}}, {}
            if path.endswith("/usages"):
                return 200, {"value": self.usages(path.split("/")[-2])}, {}
            if path == BASE and self.command == "GET":
                return self.pages(query, now)
            return self.group(path, query, body, now)

    # ---- tokens

    def token(self, path, query, form):
        if "metadata" in path and (self.headers.get("Metadata") != "true" or "resource" not in query):
            return 400, {"error": "invalid_request"}, {}
        if "metadata" not in path:
            fields = dict(urllib.parse.parse_qsl(form))
            if fields.get("client_secret") != "s3cret&+value" and fields.get("client_assertion") != "signed.by.somebody":
                return 401, {"error": "invalid_client", "error_description": form}, {}
        self.server.tokens += 1
        return 200, {"access_token": TOKEN % self.server.tokens, "expires_in": "3600", "token_type": "Bearer"}, {}

    # ---- quotas and lists

    def usages(self, region):
        rows = {"ContainerGroups": (1, 100), "StandardCores": (2, 100), **self.server.usages.get(region, {})}
        return [{"id": "/subscriptions/%s/usages/%s" % (SUBSCRIPTION, name), "unit": "Count", "currentValue": used, "limit": most,
                 "name": {"value": name, "localizedValue": name}} for name, (used, most) in rows.items()]

    def pages(self, query, now):
        names = sorted(n for n, g in self.server.groups.items() if now >= g.made + self.server.unseen)
        at = int(query.get("$skiptoken", 0))
        page = {"value": [self.server.groups[n].shown(now, with_view=False) for n in names[at:at + 3]]}
        if at + 3 < len(names):
            page["nextLink"] = "%s%s?api-version=%s&$skiptoken=%d" % (self.server.url, BASE, VERSION, at + 3)
        return 200, page, {}

    # ---- groups

    def follow(self, kind, name):
        arm = self.server
        if arm.style == "none":
            return {}
        key = "%s-%d" % (name, len(arm.operations))
        arm.operations[key] = (kind, name)
        where = "%s/subscriptions/%s/providers/Microsoft.ContainerInstance/locations/westeurope/operations/%s?api-version=2018-06-01" % (arm.url, SUBSCRIPTION, key)
        return {"Azure-AsyncOperation" if arm.style == "async" else "Location": where}

    def operation(self, path, now):
        kind, name = self.server.operations[path.rsplit("/", 1)[1]]
        group = self.server.groups.get(name)
        if kind == "delete":
            status = "Succeeded" if not group or group.deleting is None else "InProgress"
        else:
            status = {"Creating": "InProgress"}.get(group.provisioning(now), group.provisioning(now)) if group else "Failed"
        if self.server.style == "location":
            if status == "InProgress":
                return 202, None, {}
            return (204, None, {}) if kind == "delete" else (200, group.shown(now), {})
        answer = {"status": status}
        if status == "Failed":
            answer["error"] = {"code": group.script.fails if group else "NotFound", "message": "It could not be made."}
        return 200, answer, {}

    def group(self, path, query, body, now):
        arm = self.server
        found = re.fullmatch(re.escape(BASE) + r"/([^/]+)(?:/containers/([^/]+)/logs|/(start|stop|restart))?", path)
        if not found:
            return 404, {"error": {"code": "InvalidResource", "message": path}}, {}
        name, container, verb = found.groups()
        group = arm.groups.get(name)
        is_seen = group and (now >= group.made + arm.unseen)
        if self.command == "PUT":
            return self.put(name, body, group, now)
        if self.command == "DELETE":
            return self.delete(name, group, now)
        if not is_seen:
            return 404, {"error": {"code": "ResourceNotFound", "message": "The Resource was not found."}}, {}
        if verb:
            if verb == "stop":
                group.stop(now)
            return 204, None, {}
        if container:
            return self.logs(group, container, query, now)
        return 200, group.shown(now), {}

    def put(self, name, body, group, now):
        arm = self.server
        if group and group.deleting is not None:
            return 409, {"error": {"code": "ContainerGroupTransitioning", "message": "The container group is still transitioning."}}, {}
        if group:
            group.puts += 1  # a real one restarts all of its containers
            return 200, group.shown(now), {}
        stood = False
        if "standbyPoolProfile" in body["properties"]:
            taken = arm.standby.take(name, body, now)
            if len(taken) == 3:
                return taken
            body, stood = taken
        script = arm.script(body)
        group = arm.groups[name] = Group(name, body, script, 0 if stood else arm.starts_in)
        return 201, group.shown(now), self.follow("create", name)

    def delete(self, name, group, now):
        if not group:
            return 204, None, {}
        if group.deleting is None:
            group.deleting = now + self.server.delete_takes
        if self.server.style == "none":
            return 200, group.shown(now), {}
        return 202, None, self.follow("delete", name)

    def logs(self, group, container, query, now):
        lines = ["%sZ %s\n" % (datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000", text) for at, text in group.log(container, now)]
        text = "".join(lines if query.get("timestamps") == "true" else [line.split(" ", 1)[1] for line in lines])
        kept = KEPT_ENDED if container == "agent" and group.has_ended(now) else KEPT_RUNNING
        if len(text) > kept:
            text = text[-kept:]
            text = text[text.index("\n") + 1:]
        return 200, {"content": text}, {}
