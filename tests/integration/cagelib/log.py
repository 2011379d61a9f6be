"""Reads the decision log and holds every line to its contract: schema, order of keys, hash chain, seq, and that each
decision to send has its result."""
import hashlib
import json
import os
import time

SCHEMA = os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "log.schema.json")
KEYS = ("schema ts seq event sandbox policy policy_sha gen conn txn decision enforced reason stage rule method scheme host "
        "port path alpn address status bytes_out bytes_in inspected_out inspected_in ms findings injected redacted prev "
        "hash").split()
ZEROS = "0" * 64


class Log:
    def __init__(self, path):
        self.path = str(path)

    def raw_lines(self):
        """Whole lines, without their newline."""
        try:
            with open(self.path, "rb") as f:
                return f.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return []

    def lines(self):
        return [json.loads(line) for line in self.raw_lines()]

    def find(self, **wanted):
        return [line for line in self.lines() if matches(line, wanted)]

    def wait(self, seconds=10, **wanted):
        """The first line that has those values; a value may be a set of values."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.find(**wanted)
            if found:
                return found[0]
            time.sleep(0.02)
        raise AssertionError("no log line with %r in\n%s" % (wanted, "\n".join(map(str, self.lines()[-20:]))))

    def of(self, response, **wanted):
        """The line of a refusal, by the txn that the client was told."""
        return self.wait(txn=response.header("x-cage-txn"), **wanted)


def txn_text(txn):
    """A txn as the refusal spells it: 16 hex digits."""
    return "%016x" % txn if isinstance(txn, int) else txn


def matches(line, wanted):
    for key, value in wanted.items():
        have = line.get(key)
        if key == "txn":
            have, value = txn_text(have), txn_text(value)
        if have not in value if isinstance(value, (set, frozenset)) else have != value:
            return False
    return True


def validate(raw_lines, complete=True):
    """raw_lines: all lines of a chain from its first. complete: the proxy ended in good order."""
    import jsonschema  # here, so that the demo does without it

    with open(SCHEMA, encoding="utf-8") as f:
        schema = json.load(f)
    checker = jsonschema.validators.validator_for(schema)(schema)
    prev, seq, opened = ZEROS, None, {}
    for raw in raw_lines:
        line = json.loads(raw)
        for problem in checker.iter_errors(line):
            raise AssertionError("log line breaks its schema: %s\n%s" % (problem.message, raw.decode()))
        assert list(line) == [k for k in KEYS if k in line], "keys out of order: %s" % raw.decode()
        assert all(0x20 <= b <= 0x7e for b in raw), raw
        bare = raw.replace(b',"hash":"%s"' % line["hash"].encode(), b"")
        assert line["hash"] == hashlib.sha256(bare).hexdigest(), "wrong hash: %s" % raw.decode()
        assert line["prev"] == prev, "chain broken at %s" % raw.decode()
        assert seq is None or line["seq"] == seq + 1, "seq jumps at %s" % raw.decode()
        prev, seq = line["hash"], line["seq"]
        account(opened, line)
    if complete:
        assert not opened, "decisions without a result: %s" % list(opened.values())


def account(opened, line):
    """Keeps the decisions to send that have no result yet."""
    key = (line.get("conn"), line.get("txn"))
    if line["event"] in ("response", "error") and key in opened:
        del opened[key]
    elif line["event"] == "response":
        raise AssertionError("a result without its decision: %s" % line)
    elif line["event"] in ("request", "connect") and (line["decision"] in ("allow", "flag") or line.get("enforced") is False):
        assert key not in opened, "a txn twice: %s" % line
        opened[key] = line
