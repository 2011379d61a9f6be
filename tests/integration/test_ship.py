"""cage-ship against a stand-in for Azure's Logs Ingestion API: every line of a log arrives as it was written, whatever goes wrong on the way."""
import hashlib
import itertools
import json
import os
import random
import re
import resource
import signal
import subprocess
import threading
import time

import pytest
from cagelib.arm_ingest import RULE, STREAM, Handler, Ingest
from cagelib.gateway import Gateway
from cagelib.log import ZEROS, Log, validate
from cagelib.proxy import SANITIZER, Stderr, binary, bound, children_of, policy, wait_until
from cagelib.service import API, Service


def small():
    """The same program with the times of limits/small_ship.h."""
    return os.path.join(os.path.dirname(binary()), "..", "tests", "cage-ship-small")


def line_of(seq, prev, host="a.test", pad=0, **more):
    line = {"schema": "cage.log/1", "ts": "2026-11-17T10:00:00.%06dZ" % (seq % 1000000), "seq": seq, "event": "request", "decision": "block", "enforced": True,
            "reason": "host.not_allowed", "host": host, "path": "/" + "x" * pad, **more, "prev": prev}
    text = json.dumps(line, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return '%s,"hash":"%s"}' % (text[:-1], digest), digest


class Written:
    """A log with a chain, as cage writes it. It may be renamed and opened again."""

    def __init__(self, path):
        self.path, self.lines, self.prev = str(path), [], ZEROS
        self.file = open(self.path, "ab", buffering=0)

    def add(self, count=1, **more):
        text = []
        for _ in range(count):
            line, self.prev = line_of(len(self.lines) + 1, self.prev, **more)
            self.lines.append(line)
            text.append(line + "\n")
        self.file.write("".join(text).encode())

    def raw(self, text):
        self.file.write(text)

    def reopen(self):
        self.file.close()
        self.file = open(self.path, "ab", buffering=0)


class Ship:
    """One cage-ship. Use as a context manager: at its end it is asked to end, and has to do so in good order."""

    def __init__(self, ingest, directory, *words, program=None, age="1s", env=None, before=()):
        self.state, self.status_path = str(directory) + "/state", str(directory) + "/status"
        argv = [*before, program or small(), *ingest.words(), "--state", self.state, "--status", self.status_path, "--age", age, *map(str, words)]
        self.process = subprocess.Popen(bound("KILL", argv), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **ingest.env(), **(env or {})})
        self.err = Stderr(self.process.stderr)

    def status(self):
        with open(self.status_path, encoding="utf-8") as f:
            return json.load(f)

    def wait(self, seconds=60):
        code = self.process.wait(seconds)
        self.err.wait_end(10)
        assert not SANITIZER.search(self.err.text()), self.err.text()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.wait() == 0, self.err.text()


def arrived(ingest, count, seconds=60):
    wait_until(lambda: len(ingest.lines()) >= count, seconds, "they do not arrive")


# ---- usage

@pytest.mark.parametrize("words, what", [
    ([], "--log"), (["--log", "x"], "--endpoint"), (["--log", "x", "--endpoint", "http://example.com"], "--endpoint"),
    (["--log", "x", "--endpoint", "https://example.com/"], "--endpoint"), (["--log", "x", "--endpoint", "https://e.test", "--rule", "a/b"], "--rule"),
    (["--log", "x", "--endpoint", "https://e.test", "--rule", "dcr-1"], "--rule"), (["--log", "x", "--endpoint", "https://e.test", "--rule", "my-rule"], "--rule"),
    (["--log", "x", "--endpoint", "https://e.test", "--rule", RULE, "--stream", "a?b"], "--stream"), (["--log", "x", "--endpoint", "https://e.test", "--rule", RULE, "--stream", "CageLog_CL"], "--stream"),
    (["--log", "x", "--endpoint", "https://e.test", "--rule", RULE, "--stream", "Custom-" + 250 * "a"], "--stream"), (["--log", "x/"], "--log"), (["--age", "2h"], "--age"),
    (["--credentials", "mine"], "--credentials"), (["--such"], "--such"), (["word"], "word"),
    (["--log", "x", "--endpoint", "https://e.test", "--rule", RULE, "--stream", STREAM, "--audience", "ftp://x"], "--audience"),
    (["--log", "x", "--endpoint", "https://e.test", "--rule", RULE, "--stream", STREAM, "--audience", "https://e.test/"], "--audience")])
def test_wrong_usage(words, what):
    done = subprocess.run([binary("cage-ship"), *words], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("cage-ship: " + what), done


def test_help():
    done = subprocess.run([binary("cage-ship"), "--help"], capture_output=True, text=True, timeout=30, check=True)
    for word in ("--log", "--logs", "--kept", "--endpoint", "--rule", "--stream", "--state", "--status", "--credentials", "--audience", "--ca-file", "--age", "--once"):
        assert word in done.stdout


def test_one_at_a_time(tmp_path):
    """Two would ship everything twice."""
    with Ingest() as ingest, Ship(ingest, tmp_path, "--log", tmp_path / "log.jsonl") as first:
        first.err.wait("ready", 30)
        second = Ship(ingest, tmp_path, "--log", tmp_path / "log.jsonl")
        assert second.wait() == 1
        second.err.wait("another cage-ship has it", 5)


# ---- what is sent

def test_once(tmp_path):
    """As they are, in their order; and when it is run again, nothing is sent twice."""
    log = Written(tmp_path / "log.jsonl")
    log.add(2500, findings=[{"inspector": "secrets", "action": "block", "reason": "secret.detected", "where": "body", "offset": 7, "fingerprint": "0" * 16}])
    with Ingest() as ingest:
        for _ in range(2):
            assert Ship(ingest, tmp_path, "--log", log.path, "--once").wait() == 0
            assert ingest.lines() == log.lines
        log.add(10)
        ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
        assert ship.wait() == 0 and ingest.lines() == log.lines
        assert ship.status()["lines"] == 10 and ship.status()["lag_bytes"] == 0
        assert len(ingest.batches) == 3 and max(ingest.sizes) <= 1000000


def test_of_a_real_proxy(start_cage, tmp_path):
    """Lines of cage-proxy while it writes them, over a rotation."""
    cage = start_cage(policy())
    rotated = cage.log.path + ".1"
    with Ingest() as ingest, Ship(ingest, tmp_path, "--log", cage.log.path) as ship:
        ship.err.wait("ready", 30)
        for i in range(60):
            assert cage.fetch("GET", "http://h%d.test/" % i).status == 403
            if i == 30:
                os.rename(cage.log.path, rotated)
                cage.signal(signal.SIGUSR1)
                wait_until(lambda: os.path.exists(cage.log.path), 20, "it is not opened again")
        start_cage.forget(cage)
        assert cage.stop() == 0
        cage.assert_left_clean()
        lines = [Log(rotated).raw_lines(), cage.log.raw_lines()]
        validate(lines[0] + lines[1])
        arrived(ingest, len(lines[0]) + len(lines[1]))
        for own in lines:
            assert len(own) > 20 and [x.encode() for x in ingest.lines() if x.encode() in set(own)] == own
        assert len(ingest.lines()) == len(lines[0]) + len(lines[1])


def test_of_a_real_gateway(tmp_path, pki):
    """As the two stand in the gateway group of infra/azure: the directory of its log is all that they share, and files are turned meanwhile."""
    with Ingest() as ingest, Gateway(tmp_path / "gateway", pki, "--log-dir", str(tmp_path / "log"), "--log-bytes", "8192", "--log-files", "64") as gateway, \
            Ship(ingest, tmp_path, "--logs", tmp_path / "log") as ship:
        ship.err.wait("ready", 30)
        assert gateway.put("one", policy())[0] < 300
        for i in range(60):
            assert gateway.fetch("one", "http://h%d.test/" % i).status == 403
        wait_until(lambda: gateway.stdout().count('"host":"h59.test"') > 0, 20, "it is not written")
        lines = gateway.stdout().splitlines()
        wait_until(lambda: any(n.startswith("log-") for n in os.listdir(tmp_path / "log")), 20, "no file was turned")
        assert not os.path.exists(tmp_path / "gateway" / "state" / "log")
        arrived(ingest, len(lines))
        assert set(lines) <= set(ingest.lines()) and len(lines) > 60


def test_a_line_waits_for_others_only_so_long(tmp_path):
    log = Written(tmp_path / "log.jsonl")
    with Ingest() as ingest, Ship(ingest, tmp_path, "--log", log.path, age="2s") as ship:
        ship.err.wait("ready", 30)
        begun = time.monotonic()
        log.add(3)
        arrived(ingest, 3)
        assert 1.5 < time.monotonic() - begun < 20
        assert len(ingest.batches) == 1


def test_directories(tmp_path):
    """As the service has them: one below another, with logs of proxy and dns, and nothing of what lies deeper."""
    logs = []
    for i in range(30):  # more than are held open
        (tmp_path / "boxes" / ("sb-%d" % i) / "workspace").mkdir(parents=True)
        logs.append(Written(tmp_path / "boxes" / ("sb-%d" % i) / ("log.jsonl.dns" if i % 2 else "log.jsonl")))
        logs[-1].add(5, host="box%d.test" % i)
    forged = Written(tmp_path / "boxes" / "sb-1" / "workspace" / "log.jsonl")
    forged.add(3, host="forged.test")
    os.symlink(forged.path, tmp_path / "boxes" / "sb-2" / "other.jsonl")
    (tmp_path / "boxes" / "sb-2" / "output").write_text(line_of(1, ZEROS, host="forged.test")[0] + "\n")
    (tmp_path / "boxes" / "sb-3" / "log.jsonl.1.gz").write_bytes(b"\x1f\x8b123\n")
    with Ingest() as ingest, Ship(ingest, tmp_path, "--logs", tmp_path / "boxes") as ship:
        arrived(ingest, 150)
        for log in logs:
            log.add(2, host="more.test")
        arrived(ingest, 210)
        assert sorted(ingest.lines()) == sorted(x for log in logs for x in log.lines)
        wait_until(lambda: ship.status()["logs"] == 30 and ship.status()["lag_bytes"] == 0, 20, "the status")


def test_more_logs_than_are_followed(tmp_path):
    """The others wait, which is said, until some are gone."""
    logs = []
    for i in range(45):
        (tmp_path / "boxes" / ("sb-%d" % i)).mkdir(parents=True)
        logs.append(Written(tmp_path / "boxes" / ("sb-%d" % i) / "log.jsonl"))
        logs[-1].add(1, host="box%d.test" % i)
    with Ingest() as ingest, Ship(ingest, tmp_path, "--logs", tmp_path / "boxes") as ship:
        ship.err.wait("more than 40 logs", 30)
        arrived(ingest, 40)
        gone = 0
        for log in logs:
            if log.lines[0] in ingest.lines() and gone < 10:
                os.unlink(log.path)
                gone += 1
        arrived(ingest, 45)
        assert sorted(ingest.lines()) == sorted(log.lines[0] for log in logs)
        wait_until(lambda: len(os.listdir(ship.state + "/places")) == 35, 20, "places of what is gone are kept")


def test_a_busy_log_does_not_keep_others_from_theirs(tmp_path):
    (tmp_path / "logs").mkdir()
    busy, quiet = Written(tmp_path / "logs" / "busy.jsonl"), Written(tmp_path / "logs" / "quiet.jsonl")
    busy.add(20000)
    quiet.add(1, host="quiet.test")
    with Ingest() as ingest:
        assert Ship(ingest, tmp_path, "--logs", tmp_path / "logs", "--once").wait() == 0
        assert len(ingest.batches) > 4
        assert any("quiet.test" in line for batch in ingest.batches[:2] for line in batch)


def test_kept_logs_are_removed_when_they_are_shipped(tmp_path):
    """A log that was followed under another name is the same file: nothing of it is sent twice. What is no line at its end is told."""
    (tmp_path / "boxes" / "sb-1").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    log = Written(tmp_path / "boxes" / "sb-1" / "log.jsonl")
    log.add(5)
    with Ingest() as ingest, Ship(ingest, tmp_path, "--logs", tmp_path / "boxes", "--kept", tmp_path / "kept") as ship:
        arrived(ingest, 5)
        log.add(3)
        log.raw(b'{"schema":"cage.log/1","ts":"torn')
        os.link(log.path, tmp_path / "kept" / "sb-1.jsonl")
        os.unlink(log.path)
        empty = tmp_path / "kept" / "sb-2.jsonl"
        empty.touch()
        wait_until(lambda: not os.listdir(tmp_path / "kept"), 30, "they are left")
        assert ingest.lines() == log.lines
        wait_until(lambda: ship.status()["skipped"] == {"too_big": 0, "foreign": 1}, 20, "the status")
        wait_until(lambda: not os.listdir(ship.state + "/places"), 20, "places of what is gone are kept")


# ---- files that are not as they should be

def test_garbage(tmp_path):
    """What is no line of a log, or one that was changed, is passed over, counted and said; all else arrives."""
    log = Written(tmp_path / "log.jsonl")
    log.add(3)
    log.raw(b"\x00\xff\n\n")
    log.add(3)
    log.raw(b'{"schema":"cage.log/1"}\n')
    changed, _ = line_of(7, log.prev)
    log.raw(changed.replace("a.test", "b.test").encode() + b"\n")
    body = '{"schema":"cage.log/1","ts":"2026-11-17T10:00:00.000000Z","seq":9,"event":{,"prev":"%s"' % ZEROS  # a good hash of what is no JSON
    log.raw(('%s,"hash":"%s"}\n' % (body, hashlib.sha256((body + "}").encode()).hexdigest())).encode())
    log.raw(b'{"schema":"cage.log/1","ts":"' + b"y" * 70000 + b"\n")
    log.raw(b"z" * 3000000 + b"\n")
    log.add(3)
    with Ingest() as ingest:
        ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
        assert ship.wait() == 0 and ingest.lines() == log.lines
        assert ship.status()["skipped"] == {"too_big": 2, "foreign": 5}, ship.status()
        ship.err.wait("at byte .*passed over", 5)
        assert Ship(ingest, tmp_path, "--log", log.path, "--once").wait() == 0 and ingest.lines() == log.lines


def test_nothing_but_garbage_is_not_read_for_ever(tmp_path):
    (tmp_path / "log.jsonl").write_bytes(b"x" * 1000000)
    with Ingest() as ingest:
        ship = Ship(ingest, tmp_path, "--log", tmp_path / "log.jsonl", "--once")
        assert ship.wait() == 1 and not ingest.batches and ship.status()["skipped"] == {"too_big": 1, "foreign": 0}
        assert ship.status()["lag_bytes"] == 0


def test_a_line_that_is_being_written(tmp_path):
    """Half a line is none, until the rest is there."""
    log = Written(tmp_path / "log.jsonl")
    with Ingest() as ingest, Ship(ingest, tmp_path, "--log", log.path) as ship:
        log.add(2)
        line, log.prev = line_of(3, log.prev)
        log.lines.append(line)
        log.raw(line[:100].encode())
        arrived(ingest, 2)
        wait_until(lambda: ship.status()["lag_bytes"] == 100, 20, "the status")
        assert ship.status()["lag_seconds"] >= 0
        log.raw(line[100:].encode() + b"\n")
        arrived(ingest, 3)
        assert ingest.lines() == log.lines and ship.status()["skipped"] == {"too_big": 0, "foreign": 0}


@pytest.mark.parametrize("grows", [False, True])
def test_cut(tmp_path, grows):
    """A log that is cut in its place is begun again, aloud; also where it has more bytes than before when that is seen."""
    log = Written(tmp_path / "log.jsonl")
    log.add(20)
    with Ingest() as ingest:
        if grows:
            assert Ship(ingest, tmp_path, "--log", log.path, "--once").wait() == 0
        with (Ship(ingest, tmp_path, "--log", log.path) if not grows else open(os.devnull)) as ship:
            arrived(ingest, 20)
            if not grows:
                wait_until(lambda: ship.status()["lag_bytes"] == 0 and ship.status()["lines"] == 20, 20, "the status")
            os.truncate(log.path, 0)
            log.lines, log.prev = [], ZEROS
            log.add(40 if grows else 5, host="new.test")
            if grows:
                ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
                assert ship.wait() == 0
            arrived(ingest, 20 + len(log.lines))
            ship.err.wait("was cut, or is another file", 10)
            assert ingest.lines()[20:] == log.lines


def test_removed_while_it_is_shipped(tmp_path):
    """It is read to its end, whatever becomes of its name."""
    log = Written(tmp_path / "log.jsonl")
    log.add(4000)
    gate = threading.Event()
    with Ingest(trouble=lambda n, lines: None if gate.wait(30) else None) as ingest, Ship(ingest, tmp_path, "--log", log.path):
        wait_until(lambda: ingest.posts == 1, 30, "nothing is sent")
        os.unlink(log.path)
        gate.set()
        arrived(ingest, 4000)
        assert ingest.lines() == log.lines


def test_rotated_while_nobody_looks(tmp_path):
    """Twice, and the first of the files is half shipped."""
    log = Written(tmp_path / "log.jsonl")
    log.add(10)
    with Ingest() as ingest:
        assert Ship(ingest, tmp_path, "--log", log.path, "--once").wait() == 0
        log.add(10)
        for i in (2, 1):
            os.rename(log.path, "%s.%d" % (log.path, i))
            log.reopen()
            log.add(10)
        assert Ship(ingest, tmp_path, "--log", log.path, "--once").wait() == 0
        assert sorted(ingest.lines()) == sorted(log.lines)


def test_places_that_are_not_to_be_read(tmp_path):
    """Lines come twice rather than not at all, and it is said."""
    log = Written(tmp_path / "log.jsonl")
    log.add(10)
    with Ingest() as ingest:
        for damage in (b"", b"cage.ship/1 1 2 3\n", b"cage.ship/2 0 0 0 0 0 0\n", None):
            ingest.batches.clear()
            ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
            assert ship.wait() == 0 and ingest.lines() == log.lines
            (place,) = os.listdir(ship.state + "/places")
            if damage is not None:
                with open(os.path.join(ship.state, "places", place), "wb") as f:
                    f.write(damage)
        ship.err.wait("can't be read", 5)


def test_the_disk_is_full(tmp_path):
    """While it can't be written down what was taken, nothing more is sent; then it goes on, and nothing came twice."""
    log = Written(tmp_path / "log.jsonl")
    with Ingest() as ingest, Ship(ingest, tmp_path, "--log", log.path, before=("sh", "-c", 'trap "" XFSZ; exec "$@"', "sh")) as ship:
        ship.err.wait("ready", 30)
        resource.prlimit(ship.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        log.add(5)
        ship.err.wait("can't be written down: .*nothing more is sent", 30)
        log.add(5)
        posts = ingest.posts
        ship.err.wait("the state can't be written", 30)
        assert ingest.posts == posts == 1
        resource.prlimit(ship.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        arrived(ingest, 10)
        assert ingest.lines() == log.lines


# ---- answers

@pytest.mark.parametrize("words", [["429"] * 9, ["503", "500", "502", "504", "408"], ["drop"] * 3, ["501"] * 2, ["400"] * 3, ["403"], ["404", "404"], ["401"], ["401", "401"]])
def test_what_goes_wrong_is_tried_again(tmp_path, words):
    """Nothing is lost or dropped; what was surely not taken does not come twice; and it is said why."""
    log = Written(tmp_path / "log.jsonl")
    log.add(5)
    with Ingest(trouble=lambda n, lines: words[n - 1] if n <= len(words) else None) as ingest, Ship(ingest, tmp_path, "--log", log.path) as ship:
        arrived(ingest, 5)
        assert ingest.lines() == log.lines and ingest.posts == len(words) + 1
        assert ingest.tokens == (2 if "401" in words else 1)
        wait_until(lambda: ship.status()["lines"] == 5, 20, "the status")
        if words != ["401"]:
            ship.err.wait("drop" in words and "asked again" or words[0], 5)
            assert ship.status()["last_error"] and ship.status()["retries"] + ship.status()["refused"] >= 1, ship.status()


def test_an_answer_that_is_lost(tmp_path):
    """The batch comes twice, whole; what follows once."""
    log = Written(tmp_path / "log.jsonl")
    log.add(5)
    with Ingest(trouble=lambda n, lines: "lose" if n == 1 else None) as ingest, Ship(ingest, tmp_path, "--log", log.path) as ship:
        arrived(ingest, 10)
        wait_until(lambda: ship.status()["lag_bytes"] == 0, 20, "the status")
        log.add(5)
        arrived(ingest, 15)
        assert ingest.batches == [log.lines[:5], log.lines[:5], log.lines[5:]]


def test_once_fails_where_it_is_refused(tmp_path):
    log = Written(tmp_path / "log.jsonl")
    log.add(5)
    with Ingest(trouble=lambda n, lines: "403") as ingest:
        ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
        assert ship.wait() == 1 and ingest.posts == 1
        ship.err.wait("status 403, Told.: This is why", 5)
        assert "eyJ0" not in ship.err.text()


def test_too_big(tmp_path):
    """Halved until it is taken; a line that is too big by itself is passed over, counted and said. Later ones are large again."""
    log = Written(tmp_path / "log.jsonl")
    log.add(100, pad=1000)
    log.add(1, pad=40000)
    log.add(100, pad=1000)
    big = log.lines[100]
    with Ingest(most=30000) as ingest:
        ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
        assert ship.wait() == 1 and ingest.lines() == [x for x in log.lines if x != big]
        assert ship.status()["skipped"] == {"too_big": 1, "foreign": 0}
        ship.err.wait("too big for the service: half of it", 5)
        ship.err.wait("a line of .* is too big for the service, and passed over", 5)


def test_retry_after_is_kept_to(tmp_path):
    """With the times of the real program: not before it was asked for."""
    log = Written(tmp_path / "log.jsonl")
    log.add(5)
    with Ingest(trouble=lambda n, lines: "429" if n == 1 else None, retry_after="3") as ingest:
        assert Ship(ingest, tmp_path, "--log", log.path, "--once", program=binary("cage-ship")).wait() == 0
        first, second = ingest.times
        assert 3.0 <= second - first < 20


def test_a_service_that_does_not_answer_is_not_asked_often(tmp_path):
    """All fails for a while: the rate of questions is bounded, the log waits."""
    log = Written(tmp_path / "log.jsonl")
    until = time.monotonic() + 4
    with Ingest(trouble=lambda n, lines: "500" if time.monotonic() < until else None) as ingest, Ship(ingest, tmp_path, "--log", log.path) as ship:
        log.add(5)
        arrived(ingest, 5)
        assert ingest.posts < 60  # 0.1 s and more between two of them
        assert ship.err.text().count("status 500") < 30 and ingest.lines() == log.lines


def test_while_azure_is_away(tmp_path):
    """How far it is behind is told, and a log that comes and goes in that time arrives."""
    (tmp_path / "logs").mkdir()
    log, away = Written(tmp_path / "logs" / "a.jsonl"), threading.Event()
    away.set()
    log.add(5)
    with Ingest(trouble=lambda n, lines: "503" if away.is_set() else None) as ingest, Ship(ingest, tmp_path, "--logs", tmp_path / "logs") as ship:
        wait_until(lambda: ingest.posts > 0, 30, "nothing is sent")
        log.add(500)
        other = Written(tmp_path / "logs" / "b.jsonl")
        other.add(5, host="other.test")
        size = os.path.getsize(log.path) + os.path.getsize(other.path)
        wait_until(lambda: ship.status()["logs"] == 2 and ship.status()["lag_bytes"] == size and ship.status()["lag_seconds"] > 60, 30, "the status")
        os.unlink(other.path)
        away.clear()
        arrived(ingest, 510)
        assert sorted(ingest.lines()) == sorted(log.lines + other.lines)


def test_an_end_waits_for_the_answer(tmp_path):
    """What is under way when it is asked to end is not sent again by the next one."""
    log = Written(tmp_path / "log.jsonl")
    log.add(5)
    with Ingest(trouble=lambda n, lines: ("slow", 1.0)) as ingest:
        with Ship(ingest, tmp_path, "--log", log.path):
            wait_until(lambda: ingest.posts == 1, 30, "nothing is sent")
        assert Ship(ingest, tmp_path, "--log", log.path, "--once").wait() == 0
        assert ingest.lines() == log.lines


def test_by_a_secret(tmp_path):
    log = Written(tmp_path / "log.jsonl")
    log.add(5)
    env = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"}
    with Ingest() as ingest:
        assert Ship(ingest, tmp_path, "--log", log.path, "--credentials", "secret", "--once", env=env).wait() == 0
        assert ingest.lines() == log.lines


def test_no_token(tmp_path):
    """It is said why, and shipped when there is one."""
    log = Written(tmp_path / "log.jsonl")
    log.add(5)
    with Ingest() as ingest:
        ingest.refuses = True
        with Ship(ingest, tmp_path, "--log", log.path) as ship:
            ship.err.wait("no token for https://monitor.azure.com by .*: status 400", 30)
            ship.err.wait("is not taken .status 0.: no token for", 30)
            ingest.refuses = False
            arrived(ingest, 5)
            assert ingest.lines() == log.lines


def test_nothing_there(tmp_path):
    """A log that is not there yet is waited for, a directory that is not there is told."""
    with Ingest() as ingest, Ship(ingest, tmp_path, "--log", tmp_path / "log.jsonl") as ship:
        ship.err.wait(r"/log\.jsonl: there is no such log yet", 30)
        log = Written(tmp_path / "log.jsonl")
        log.add(3)
        arrived(ingest, 3)
    (tmp_path / "other").mkdir()
    with Ingest() as ingest, Ship(ingest, tmp_path / "other", "--logs", tmp_path / "none") as ship:
        ship.err.wait("none: can't be read: No such file", 30)
    with Ingest() as ingest, Ship(ingest, tmp_path / "other", "--logs", tmp_path / "other") as ship:
        ship.err.wait("/other: there is no log in it yet", 30)


@pytest.mark.parametrize("words, what", [(["--log", "here.jsonl", "--log", "gone.jsonl"], "^cage-ship: [^ ]*/gone.jsonl: there is no such log: nothing of it is shipped"),
                                         (["--log", "here.jsonl", "--ca-file", "gone.pem"], "^cage-ship: --ca-file: [^ ]*/gone.pem: No such file"),
                                         (["--log", "here.jsonl", "--logs", "gone"], "^cage-ship: [^ ]*/gone: can't be read: No such file")])
def test_a_path_that_is_missing_is_named(tmp_path, words, what):
    """Beside one that is there; and who says 0 has looked everywhere."""
    Written(tmp_path / "here.jsonl").add(1)
    with Ingest() as ingest:
        ship = Ship(ingest, tmp_path, *(w if w.startswith("--") else tmp_path / w for w in words), "--once")
        assert ship.wait() == 1
        ship.err.wait(what, 5)
        assert "here.jsonl" not in ship.err.text()


@pytest.mark.parametrize("name", [b"y\xff\x1b[2J", b"x" + 5 * (b"/" + 100 * "\u00e9".encode()), b"xy" + 5 * (b"/" + 100 * "\u00e9".encode())], ids=["no UTF-8", "cut", "cut elsewhere"])
def test_a_name_that_is_no_text_does_not_end_the_status(tmp_path, name):
    """What is wrong is in it, as far as it can be; and it is written again and again."""
    with Ingest() as ingest, Ship(ingest, tmp_path, "--logs", os.fsdecode(os.fsencode(tmp_path) + b"/" + name)) as ship:
        ship.err.wait("can't be read" if name[0] == ord("y") else tmp_path.name, 30)
        wait_until(lambda: os.path.exists(ship.status_path) and ship.status()["last_error"], 20, "it is not told")
        first = ship.status()
        assert first["last_error"].isprintable() and tmp_path.name in first["last_error"], first
        wait_until(lambda: ship.status()["at"] != first["at"], 20, "it is written no more")
        assert "can't be written" not in ship.err.text()


def test_once_tells_what_came_of_it(tmp_path):
    """How many lines were shipped; and a file that is no log at all is no success."""
    log = Written(tmp_path / "log.jsonl")
    log.add(7)
    (tmp_path / "README.md").write_text("# cage\n\nsome\n")
    with Ingest() as ingest:
        ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
        assert ship.wait() == 0
        ship.err.wait("^cage-ship: 7 lines were shipped$", 5)
        ship = Ship(ingest, tmp_path, "--log", tmp_path / "README.md", "--once")
        assert ship.wait() == 1
        ship.err.wait("README.md: is no decision log: all 3 of its lines were passed over$", 5)
        ship.err.wait("^cage-ship: 0 lines were shipped$", 5)
        assert ingest.lines() == log.lines


def test_asked_by_a_signal(tmp_path):
    log = Written(tmp_path / "log.jsonl")
    log.add(5)
    with Ingest() as ingest, Ship(ingest, tmp_path, "--log", log.path) as ship:
        arrived(ingest, 5)
        wait_until(lambda: ship.status()["lines"] == 5, 20, "the status")
        ship.process.send_signal(signal.SIGUSR1)
        ship.err.wait("5 lines of 1 logs shipped in 1 batches, 0 skipped; behind by 0 bytes, 0 s; last trouble: none", 10)
        assert set(ship.status()) == {"schema", "at", "state", "logs", "lag_bytes", "lag_seconds", "lines", "bytes", "batches", "retries", "refused", "skipped",
                                      "restarted", "lost_bytes", "last_shipped", "last_error_at", "last_error"}


# ---- killed

@pytest.mark.parametrize("kills", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_at_any_moment(start_cage, tmp_path, kills):
    """kill -9 while a log of cage-proxy grows, half of them just as a batch comes, which is taken or is not: every line arrives as it was written, in its
    order, and nothing comes twice but the batch that was under way."""
    cage, done, rng = start_cage(policy()), threading.Event(), random.Random(7)
    now = {"ship": None, "dies": None}
    kinds = itertools.cycle(("taken", "dropped", "soon"))

    def trouble(number, lines):
        kind, now["dies"] = now["dies"], None
        if kind:
            process = wait_until(lambda: now["ship"], 10, "who sends it?").process
            if kind == "soon":
                threading.Timer(rng.random() * 0.01, process.kill).start()
            else:
                process.kill()
        return "drop" if kind == "dropped" else None

    def ask():
        i, wire = 0, cage.connect()
        while not done.is_set():
            i += 1
            assert wire.exchange("GET", "http://h%d.test/" % i, [("Host", "h%d.test" % i)]).status == 403
            done.wait(0.003)

    asker = threading.Thread(target=ask)
    with Ingest(trouble=trouble) as ingest:
        asker.start()
        try:
            for i in range(kills):
                now.update(ship=None, dies=next(kinds) if i % 2 else None)
                ship = now["ship"] = Ship(ingest, tmp_path, "--log", cage.log.path, *(["--once"] if i % 4 else []))
                try:
                    ship.process.wait(20 if i % 2 else rng.random() * 0.3)
                except subprocess.TimeoutExpired:
                    ship.process.kill()
                    ship.process.wait()
        finally:
            done.set()
            asker.join()
        now["dies"] = None
        start_cage.forget(cage)
        assert cage.stop() == 0  # now all of it is in the file
        cage.assert_left_clean()
        validate(cage.log.raw_lines())
        assert Ship(ingest, tmp_path, "--log", cage.log.path, "--once").wait() == 0
        lines = [line.decode() for line in cage.log.raw_lines()]
        place = {line: i for i, line in enumerate(lines)}
        begin = end = 0  # of what the last batch was
        twice = 0
        for batch in ingest.batches:
            at = place[batch[0]]
            assert batch == lines[at:at + len(batch)] and at in (begin, end), (at, begin, end)
            twice += at == begin and begin != end
            begin, end = at, at + len(batch)
        assert end == len(lines) and twice >= kills // 15 and len(ingest.batches) > kills // 10
        print("%d lines, %d batches, %d of them twice" % (len(lines), len(ingest.batches), twice))


# ---- of the service

LEAKS = ["python3", "-c", "import urllib.request as u\nfor i in range(5):\n  try: u.urlopen('http://h%d.test/' % i)\n  except Exception: pass"]


def service_of(tmp_path, ingest, **more):
    ship = {"endpoint": ingest.url, "rule": RULE, "stream": STREAM, "credentials": "identity", "age": "1s", **more}
    return Service(tmp_path, {"ship": ship, "limits": {"retention": "1h"}}, env=ingest.env())


def logs_of(service, ident):
    """The lines of both logs of a sandbox that has ended."""
    out = []
    for name in ("log.jsonl", "log.jsonl.dns"):
        path = os.path.join(service.state, "sandboxes", ident, name)
        if os.path.exists(path):
            with open(path, encoding="ascii") as f:
                out += f.read().splitlines()
    return out


def delete(service, ident):
    assert service.request("DELETE", API + "/" + ident).status < 300


def kept(service):
    return os.listdir(os.path.join(service.state, "ship", "kept"))


def ship_of(service):
    """The pid of its cage-ship."""
    for pid in children_of(service.process.pid):
        with open("/proc/%d/comm" % pid, encoding="ascii") as f:
            if f.read().strip() == "cage-ship":
                return pid
    return None


def test_the_service_ships_what_its_sandboxes_log(tmp_path):
    """While they run, and to the last line when they are deleted at once; then nothing is left of them."""
    with Ingest() as ingest, service_of(tmp_path, ingest) as service:
        ident = service.create(command=LEAKS, network={"mode": "none"})
        service.wait(ident, "succeeded")
        lines = logs_of(service, ident)
        assert sum('"decision":"block"' in line for line in lines) >= 5
        delete(service, ident)
        arrived(ingest, len(lines))
        wait_until(lambda: not kept(service) and not os.path.exists(os.path.join(service.state, "sandboxes", ident)), 60, "its logs are left")
        assert sorted(ingest.lines()) == sorted(lines)


def test_what_was_not_shipped_outlives_its_sandbox(tmp_path):
    """The service that takes it is down, cage-ship is killed, and then cage serve too: all of it arrives in the end, once."""
    down = threading.Event()
    down.set()
    with Ingest(trouble=lambda n, lines: "503" if down.is_set() else None) as ingest:
        service = service_of(tmp_path, ingest).start()
        ident = service.create(command=LEAKS, network={"mode": "none"})
        service.wait(ident, "succeeded")
        lines = logs_of(service, ident)
        delete(service, ident)
        wait_until(lambda: kept(service) and not os.path.exists(os.path.join(service.state, "sandboxes", ident)), 60, "it is not removed")
        wait_until(lambda: ingest.posts > 0, 60, "nothing is sent")
        first = ship_of(service)
        os.kill(first, signal.SIGKILL)
        service.err.wait("cage-ship has ended: it is started again in 1000 ms", 30)
        wait_until(lambda: ship_of(service) not in (None, first), 30, "it is not started again")
        service.kill()
        assert not ingest.lines()
        down.clear()
        with service:
            arrived(ingest, len(lines))
            wait_until(lambda: not kept(service), 60, "its logs are left")
            assert sorted(ingest.lines()) == sorted(lines)


@pytest.mark.parametrize("bound", [{"keep_bytes": "1KiB"}, pytest.param({"keep": "1s"}, marks=pytest.mark.slow)])
def test_what_is_kept_has_a_bound(tmp_path, bound):
    """It is given up, the oldest first, and there is an alert."""
    with Ingest(trouble=lambda n, lines: "503") as ingest, service_of(tmp_path, ingest, **bound) as service:
        ident = service.create(command=LEAKS, network={"mode": "none"})
        service.wait(ident, "succeeded")
        delete(service, ident)
        size = int(service.err.wait(r"alert: not_shipped (\d+)", 60)[1])
        assert size > 1024 and not kept(service)


GOOD = {"endpoint": "https://e.test", "rule": RULE, "stream": STREAM}


@pytest.mark.parametrize("ship, what", [
    ({"rule": RULE, "stream": STREAM}, 'ship: missing key "endpoint"'), ({"endpoint": "https://e.test", "rule": RULE}, 'ship: missing key "stream"'), ({**GOOD, "to": "x"}, "ship.to"),
    ({**GOOD, "endpoint": "http://example.com"}, "ship.endpoint: expected https://HOST"), ({**GOOD, "endpoint": "https://e.test/"}, "ship.endpoint: expected https://HOST"),
    ({**GOOD, "endpoint": "https://u@e.test"}, "ship.endpoint: expected https://HOST"), ({**GOOD, "endpoint": "https://e.test?x"}, "ship.endpoint: expected https://HOST"),
    ({**GOOD, "audience": "https://u@e.test"}, "ship.audience: expected https://HOST"), ({**GOOD, "audience": "https://e.test?x"}, "ship.audience: expected https://HOST"),
    ({**GOOD, "audience": "https://e.test/"}, "ship.audience: expected https://HOST"), ({**GOOD, "audience": ["x"]}, "ship.audience"),
    ({**GOOD, "credentials": "mine"}, "ship.credentials"), ({**GOOD, "age": "9h"}, "ship.age: expected a time such as 30s, 10m, 24h or 7d, at most 1h, got \"9h\""),
    ({**GOOD, "rule": "-r"}, "ship.rule: expected the immutable id"), ({**GOOD, "rule": "cage-log"}, "ship.rule: expected the immutable id"),
    ({**GOOD, "rule": "dcr-" + 31 * "0"}, "ship.rule: expected the immutable id"), ({**GOOD, "rule": "dcr-" + 32 * "x"}, "ship.rule: expected the immutable id"),
    ({**GOOD, "stream": "CageLog_CL"}, "ship.stream: expected the name of a stream"), ({**GOOD, "stream": "Custom-a/b"}, "ship.stream: expected the name of a stream"),
    ({**GOOD, "rule": ["x"]}, "ship.rule")])
def test_a_configuration_that_is_wrong(tmp_path, ship, what):
    """Told with its place."""
    path = tmp_path / "serve.yaml"
    path.write_text(json.dumps({"version": 1, "ship": ship}))
    done = subprocess.run([binary("cage"), "serve", "--check", "--state", str(tmp_path / "s"), "--config", str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and re.search(r"^%s:1:\d+: %s" % (re.escape(str(path)), re.escape(what)), done.stderr, re.M), done


def test_a_configuration_that_is_right(tmp_path):
    path = tmp_path / "serve.yaml"
    path.write_text(json.dumps({"version": 1, "ship": {**GOOD, "age": "1h", "audience": "https://monitor.azure.us"}}))
    done = subprocess.run([binary("cage"), "serve", "--check", "--state", str(tmp_path / "s"), "--config", str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done


# ---- size

@pytest.mark.parametrize("size", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_a_large_log_in_constant_memory(tmp_path, size):
    """In MB, with the program as it is: what it takes of memory does not depend on that, and no batch is too large."""
    log = tmp_path / "log.jsonl"
    count, prev = 0, ZEROS
    with open(log, "w", encoding="ascii") as f:
        while f.tell() < size * 1000 * 1000:
            text = []
            for _ in range(2000):
                count += 1
                line, prev = line_of(count, prev, pad=count % 300, sandbox="sb-%d" % (count % 7), policy="test", policy_sha="0" * 64)
                text.append(line + "\n")
            f.write("".join(text))
    with Ingest() as ingest:
        ingest.counts = False
        begun = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        ship = Ship(ingest, tmp_path, "--log", log, "--once", program=binary("cage-ship"), env={"ASAN_OPTIONS": "quarantine_size_mb=8"})
        peak = 0
        while ship.process.poll() is None:
            try:
                with open("/proc/%d/status" % ship.process.pid, encoding="ascii") as f:
                    peak = max([peak, *(int(x.split()[1]) for x in f if x.startswith("VmHWM"))])
            except (FileNotFoundError, ProcessLookupError):
                break
            time.sleep(0.02)
        assert ship.wait(240) == 0, ship.err.text()
        took = time.monotonic() - begun
        assert ingest.taken == count and max(ingest.sizes) <= 1000000
        print("%d lines in %.1f s: %.0f lines/s, %.1f MB/s, %.1f s of processor; at most %d KiB resident, %d batches" %
              (count, took, count / took, size / took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, peak, len(ingest.sizes)))
        sanitizes = b"__asan_init" in open(binary("cage-ship"), "rb").read()
        assert peak < (150 if sanitizes else 32) * 1024


def test_once_when_not_one_line_is_taken_with_413(tmp_path):
    log = Written(tmp_path / "log.jsonl")
    log.add(3)
    with Ingest(most=10) as ingest:
        ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
        assert ship.wait() == 1 and not ingest.batches and ship.status()["skipped"] == {"too_big": 3, "foreign": 0}


def test_a_token_that_an_answer_quotes_is_not_shown(tmp_path, monkeypatch):
    log = Written(tmp_path / "log.jsonl")
    log.add(1)
    monkeypatch.setattr(Handler, "do_POST", lambda self: (self.rfile.read(int(self.headers["Content-Length"])), self.answer(
        403, {"error": {"code": "\x1b[2J", "message": "\x1b]0;x\x07 " + self.headers["Authorization"]}})))
    with Ingest() as ingest:
        ship = Ship(ingest, tmp_path, "--log", log.path, "--once")
        assert ship.wait() == 1
        text = ship.err.text() + json.dumps(ship.status())
        assert "(left out: it holds a secret)" in text and "eyJ0" not in text and "\x1b" not in text, text
