"""What Azure measures of a group, and what is paid for it: in the record of a sandbox, without ever delaying or failing its run."""
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from cagelib import arm as module
from cagelib.aci import IMAGES, Aci
from cagelib.arm import GROUP, SUBSCRIPTION, Arm, Script
from cagelib.arm_monitor import Monitor, is_monitor
from cagelib.cage_run import command_line
from cagelib.proxy import binary, is_alive, wait_until
from cagelib.sdk import SDK
from cagelib.service import Service

sys.path.insert(0, os.path.join(SDK, "src"))

from cage.models import Cost, Usage  # noqa: E402

LINES = [(0.01, "one"), (0.02, "two")]
HAS_CPU, HAS_MEMORY, HAS_NETWORK, HAS_START, HAS_END = 2, 4, 8, 16, 32
ALL = 1 | HAS_CPU | HAS_MEMORY | HAS_NETWORK | HAS_START | HAS_END


class Metered(Aci):
    """With a keeper that hears what was used."""

    def __init__(self, arm, directory, **more):
        self.heard, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.heard.settimeout(30)
        super().__init__(arm, directory, run=("--control", "fd:%d" % theirs.fileno()), fds=(theirs.fileno(),), **more)
        theirs.close()

    def __exit__(self, *_):
        super().__exit__()
        self.heard.close()

    def usages(self):
        """All that was told, when it has ended."""
        rows = []
        while True:
            packet = self.heard.recv(1000)
            if not packet:
                return rows
            if packet.startswith(b"usage "):
                rows.append({k: int(v) for k, v in (word.split("=") for word in packet.decode().split()[1:])})

    def whole(self, want="exit 0"):
        """Runs a command to its end: the last usage."""
        assert self.run("true")[2] == want, self.text()
        assert self.end() == 0, self.text()
        return self.usages()[-1]


def points_of(arm, name):
    """Of the longest answer, those with a value."""
    return max(sum("average" in p for p in row["timeseries"][0]["data"]) for names, answer in arm.monitor.told for row in answer["value"]
               if row["name"]["value"] == name and row["timeseries"])


def monitor_asked(arm):
    return [p for m, p in arm.asked if is_monitor(p)]


# ---- what is measured

def test_what_is_told_at_the_end(tmp_path):
    """Averages times their minutes; the last question is asked while the group is removed. It is asked more than once while it runs."""
    with Arm(script=lambda body: Script(LINES, 1.2), delete_takes=0.5) as arm, Metered(arm, tmp_path) as aci:
        used = aci.whole()
        n = points_of(arm, "CpuUsage")
        assert used["marks"] == ALL and used["metered_s"] == 60 * n, used
        assert (used["cpu_us"], used["memory_peak"], used["memory_average"]) == (250 * 60 * 1000 * n, 200000000, 100000000)
        assert (used["received"], used["sent"]) == (int(1000.5 * 60 * n), 600 * n)
        assert len(monitor_asked(arm)) >= 6 and not any("Insights" in str(t) for t in arm.traffic)


def test_billed_from_the_first_pull_and_rounded_up(tmp_path):
    """1 vCPU, two helpers of a quarter, and 1.6 GB: whole seconds from Pulling to the end of the removal."""
    with Arm(script=lambda body: Script(LINES, 0.4), starts_in=1.0, delete_takes=0.5) as arm:
        with Metered(arm, tmp_path) as aci:
            used = aci.whole()
        (group,) = arm.gone
        pulling, gone = group.made + 0.2 * 1.0, group.deleting
        least = gone - pulling
        assert least <= used["billed_s"] <= least + 2 and used["marks"] & HAS_START and used["marks"] & HAS_END
        assert used["vcpu_us"] == used["billed_s"] * 1500000 and used["gb_us"] == used["billed_s"] * 1600000


@pytest.mark.parametrize("what, knows", [(("events",), True), (("events", "startTime"), False)])
def test_a_start_that_was_never_told(tmp_path, monkeypatch, what, knows):
    """Without events, by the start of the first container; without that, from when it was asked for, which is marked."""
    shown = module.Group.shown

    def other(self, now, with_view=True):
        body = shown(self, now, with_view)
        for c in body["properties"]["containers"] if with_view else ():
            view = c["properties"]["instanceView"]
            view.pop("events")
            if "startTime" in what:
                view["currentState"].pop("startTime", None)
        return body

    monkeypatch.setattr(module.Group, "shown", other)
    with Arm(script=lambda body: Script(LINES, 0.4), starts_in=1.2) as arm, Metered(arm, tmp_path) as aci:
        used = aci.whole()
    (group,) = arm.gone
    since = group.starts if knows else group.made
    assert bool(used["marks"] & HAS_START) == knows and group.deleting - since <= used["billed_s"] <= group.deleting - since + 2


@pytest.mark.parametrize("at", ["1970-01-01T00:00:01Z", "2999-01-01T00:00:00Z", "yesterday", 7])
def test_a_start_that_can_not_be(tmp_path, monkeypatch, at):
    events = module.Group.events
    monkeypatch.setattr(module.Group, "events", lambda self, now: [{**e, "firstTimestamp": at} for e in events(self, now)])
    state = module.Group.state
    monkeypatch.setattr(module.Group, "state", lambda self, name, now: {k: at if k == "startTime" else v for k, v in state(self, name, now).items()})
    with Arm(script=lambda body: Script(LINES, 0.3)) as arm, Metered(arm, tmp_path) as aci:
        used = aci.whole()
        assert not used["marks"] & HAS_START and 1 <= used["billed_s"] <= 5


# ---- what is not

def test_metrics_that_lag(tmp_path):
    """Azure is minutes late: nothing is known of a short run, and that is marked."""
    with Arm(script=lambda body: Script(LINES, 0.6), delete_takes=0.3, monitor=Monitor(lag=180)) as arm, Metered(arm, tmp_path) as aci:
        used = aci.whole()
        assert arm.monitor.told and used["marks"] == 1 | HAS_START | HAS_END and (used["cpu_us"], used["metered_s"], used["received"]) == (0, 0, 0)


def test_no_network_metrics(tmp_path):
    with Arm(script=lambda body: Script(LINES, 0.5), delete_takes=0.3, monitor=Monitor({"CpuUsage": {"average": 5.0}, "MemoryUsage": {"average": 7.0}})) as arm:
        with Metered(arm, tmp_path) as aci:
            used = aci.whole()
    assert used["marks"] == ALL & ~HAS_NETWORK and used["memory_peak"] == 7


ABSURD = [-5.0, 1e308, "12", None, [1], True, {}]


def test_absurd_numbers(tmp_path):
    """One after the other, until all were told."""
    with Arm(script=lambda body: Script(LINES, 1000), monitor=Monitor(turn=lambda count, name, points: [{**p, "average": ABSURD[count // 2 % 7]} for p in points])) as arm:
        with Metered(arm, tmp_path) as aci:
            aci.send(b"R", 1, b"\0true\0")
            wait_until(lambda: len(arm.monitor.told) >= 2 * len(ABSURD) + 2, 60, "they are not asked for")
            aci.send(b"K", 1)
            assert aci.until_done(1)[2] == "exit 143" and aci.process.wait(30) == 0
            used = aci.usages()[-1]
        assert used["marks"] == 1 | HAS_START | HAS_END and (used["cpu_us"], used["memory_peak"], used["received"]) == (0, 0, 0)


OTHERS = [float("nan"), float("inf"), [], "x", None, {"value": 5}, {"interval": "PT1M", "value": [{"name": 3, "timeseries": 9}, 4]},
          {"interval": "PT1M", "value": [{"name": {"value": "CpuUsage"}, "timeseries": [{"data": [1, None, [], {"timeStamp": {}}]}]}]}]


class Other(Monitor):
    def __call__(self, path, query, now):
        self.told.append(path)
        return 200, OTHERS[len(self.told) // 2 % len(OTHERS)], {}


def test_answers_of_other_types(tmp_path):
    """Likewise. NaN makes the whole answer no JSON."""
    with Arm(script=lambda body: Script(LINES, 1000), monitor=Other()) as arm, Metered(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: len(arm.monitor.told) >= 2 * len(OTHERS) + 2, 60, "they are not asked for")
        aci.send(b"K", 1)
        assert aci.until_done(1)[2] == "exit 143" and aci.process.wait(30) == 0
        assert aci.usages()[-1]["marks"] == 1 | HAS_START | HAS_END


def test_thousands_of_points(tmp_path):
    """More than was asked for, and more than are looked at."""
    with Arm(script=lambda body: Script(LINES, 1.0), delete_takes=1.0, monitor=Monitor(turn=lambda count, name, points: points[:1] * 20000)) as arm:
        with Metered(arm, tmp_path) as aci:
            used = aci.whole()
        assert used["metered_s"] == 60 * 1000 and used["cpu_us"] == 250 * 60 * 1000 * 1000


# ---- never in the way

def only(word, allowed=lambda n: False):
    """That goes wrong with questions for metrics, and with nothing else."""
    count = []

    def trouble(method, path, _):
        if not is_monitor(path):
            return None
        count.append(1)
        return None if allowed(len(count)) else word
    return trouble


@pytest.mark.parametrize("word", ["429", "500", "401", "404", "drop", "stall"])
def test_trouble_never_delays_or_fails_a_run(tmp_path, word):
    """Whatever becomes of the questions: the run ends when it ends, and the group is gone as soon as Azure has removed it."""
    with Arm(script=lambda body: Script(LINES, 0.6), trouble=only(word)) as arm, Metered(arm, tmp_path) as aci:
        assert aci.run("true") == (b"one\ntwo\n", b"", "exit 0"), aci.text()
        begun = time.monotonic()
        assert aci.end() == 0 and time.monotonic() - begun < 5
        assert monitor_asked(arm) and aci.usages()[-1]["marks"] == 1 | HAS_START | HAS_END and not arm.groups


@pytest.mark.parametrize("word", ["429", "404"])
def test_trouble_and_then_an_answer(tmp_path, word):
    with Arm(script=lambda body: Script(LINES, 1.5), trouble=only(word, lambda n: n > 2), delete_takes=0.3) as arm, Metered(arm, tmp_path) as aci:
        assert aci.whole()["marks"] == ALL


def test_who_may_not_read_metrics_is_told_once(tmp_path):
    with Arm(script=lambda body: Script(LINES, 1.5), trouble=only("403")) as arm, Metered(arm, tmp_path) as aci:
        assert aci.whole()["marks"] == 1 | HAS_START | HAS_END
        assert aci.text().count("what the group uses is not told") == 1 and len(monitor_asked(arm)) == 2


def test_a_group_that_was_never_made_costs_nothing(tmp_path):
    with Arm(script=lambda body: Script(LINES, 1, fails="ServiceUnavailable")) as arm, Metered(arm, tmp_path) as aci:
        aci.send(b"R", 1, b"\0true\0")
        assert aci.process.wait(30) == 1 and aci.usages() == []


# ---- in the record of a sandbox

PRICES = {"vcpu_second": "0.0000135", "gb_second": "0.0000015", "currency": "EUR"}


def config_of(arm, **more):
    return {"backends": {"aci": {"subscription": SUBSCRIPTION, "group": GROUP, "regions": ["westeurope"], "credentials": "identity", "endpoint": arm.url,
                                 **dict(zip(("image", "proxy_image", "dns_image", "gate_image"), IMAGES[1::2])), **more}}}


@pytest.fixture(name="arm")
def make_arm(monkeypatch):
    with Arm(script=lambda body: Script(LINES, 0.5), delete_takes=1.5) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        yield arm


def cage(service, *words):
    done = subprocess.run([binary("cage"), *words], capture_output=True, text=True, timeout=60, env={**os.environ, "CAGE_SOCKET": service.socket}, check=False)
    assert done.returncode == 0, done
    return done.stdout


def test_the_record_of_a_sandbox(tmp_path, arm):
    """What it has used and cost, with what is no more than an estimate; as `cage show` and `cage usage` tell it. The last question is the only one here."""
    with Service(tmp_path, config_of(arm, prices=PRICES)) as service:
        ident = service.create(command=["true"], labels={"team": "a"})
        used = service.wait(ident, "succeeded")["usage"]
        seconds, n = used["billed_seconds"], points_of(arm, "CpuUsage")
        assert (used["billed_vcpu_seconds"], used["billed_gb_seconds"]) == (15 * seconds / 10, 11 * seconds / 10)
        nano = seconds * (15 * 1350 + 11 * 150)  # 1.5 x 13500 and 1.1 x 1500 a second
        assert used["cost"] == {"amount": nano / 1e9, "currency": "EUR"} and seconds >= 2
        assert (used["cpu_seconds"], used["memory_peak_bytes"], used["memory_average_bytes"]) == (15.0 * n, 200000000, 100000000)
        assert (used["network_received_bytes"], used["network_sent_bytes"], used["metered_seconds"]) == (60030 * n, 600 * n, 60 * n)
        assert used["estimated"] == ["cpu_seconds", "memory_peak_bytes", "memory_average_bytes", "network_received_bytes", "network_sent_bytes"]
        assert used["unknown"] == ["disk_peak_bytes", "oom_kills"]
        model = Usage.of(used)
        assert model.billed_seconds == seconds and model.estimated == tuple(used["estimated"]) and model.unknown == tuple(used["unknown"])
        assert model.cost == Cost(nano / 1e9, "EUR") and (model.billed_gb_seconds, model.network_sent_bytes) == (used["billed_gb_seconds"], 600 * n)
        text = cage(service, "show", ident)
        assert re.search(r"(?m)^estimated +cpu_seconds", text) and "currency=EUR" in text and "billed=" in text and re.search(r"(?m)^unknown +disk_peak_bytes", text), text
        row = service.get("/api/v1/usage?by=team").json["items"][0]
        assert row["cost"] == used["cost"] and row["gb_seconds"] == used["billed_gb_seconds"]
        assert cage(service, "usage").splitlines()[1].endswith("%.4f EUR" % (nano / 1e9))


def test_no_price_no_cost(tmp_path, arm):
    with Service(tmp_path, config_of(arm)) as service:
        used = service.wait(service.create(command=["true"]), "succeeded")["usage"]
        assert "cost" not in used and Usage.of(used).cost is None and used["billed_seconds"] >= 2 and used["billed_vcpu_seconds"] == 1.5 * used["billed_seconds"]


def test_without_prices_of_its_own_those_of_the_service_count(tmp_path, arm):
    with Service(tmp_path, {**config_of(arm), "prices": {"vcpu_second": "1", "gb_second": "0"}}) as service:
        used = service.wait(service.create(command=["true"]), "succeeded")["usage"]
        assert used["cost"] == {"amount": used["billed_vcpu_seconds"], "currency": "USD"}


def kill_keeper(ident):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        line = command_line(int(pid)) if is_alive(int(pid)) else [""]
        if os.path.basename(line[0]) in ("cage-keeper", "cage-aci") and any(ident in w for w in line):
            os.kill(int(pid), signal.SIGKILL)


def test_a_run_that_is_killed_in_the_middle(tmp_path, arm):
    """Its keeper and cage-aci are gone: nobody knows what it cost, and that is said."""
    arm.script = lambda body: Script(LINES, 1000)
    with Service(tmp_path, config_of(arm, prices=PRICES)) as service:
        ident = service.create(command=["true"])
        wait_until(lambda: arm.groups, 30, "it is not made")
        kill_keeper(ident)
        used = service.wait(ident, "failed")["usage"]
        assert "cost" not in used and "billed_seconds" in used["unknown"] and used["estimated"] == []


@pytest.mark.parametrize("prices, own, wrong", [
    ({"vcpu_second": "-1"}, None, "prices.vcpu_second: expected a price"), ({"gb_second": "1e-5"}, None, "prices.gb_second: expected a price"),
    ({"vcpu_second": "0.0000000000001"}, None, "expected a price"),
    ({"vcpu_second": "0,0000135"}, None, 'prices.vcpu_second: expected a price such as 2 or 0.0000135, with a dot in the place of the comma, got "0,0000135"'), ({"cpu": "1"}, None, "unknown key"), ({"currency": "-x"}, None, "currency"),
    (PRICES, {"vcpu_second": "1"}, "prices.currency is USD")])
def test_wrong_prices(tmp_path, arm, prices, own, wrong):
    service = Service(tmp_path, {**config_of(arm, prices=prices), **({"prices": own} if own else {})})
    done = subprocess.run([binary("cage"), "serve", "--check", "--state", service.state, "--config", service.config_path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and wrong in done.stderr, done.stderr
