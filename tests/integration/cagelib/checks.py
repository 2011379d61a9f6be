"""What a refused client must see, and what the log must say then, in one place."""
from .proxy import wait_until

REFUSAL_KEYS = ["error", "reason", "host", "rule", "message", "hint", "txn"]


def refused(response, reason, status=403, host=None, rule=None):
    """The refusal contract of DESIGN.md; returns the decoded body. reason may be a set."""
    allowed = reason if isinstance(reason, (set, frozenset)) else {reason}
    assert response.status == status, response
    assert response.header("content-type") == "application/json"
    assert response.header("x-cage-decision") == "block"
    told = response.json()
    assert told["reason"] in allowed, told
    assert response.header("x-cage-reason") == told["reason"]
    assert told["error"] == "blocked_by_cage"
    assert told["message"] and told["hint"] and told["txn"]
    assert response.header("x-cage-txn") == told["txn"]
    assert list(told) == [k for k in REFUSAL_KEYS if k in told]
    assert host is None or told["host"] == host
    assert rule is None or told["rule"] == rule
    return told


def call_refused(response, reason, status="7"):
    """The same to a call of gRPC over HTTP/2: all in one head."""
    assert (response.status, response.body) == (200, b""), response
    assert response.header("content-type") == "application/grpc"
    assert response.header("x-cage-decision") == "block"
    assert response.header("x-cage-reason") == reason
    assert response.header("grpc-status") == status
    start = "blocked_by_cage %s %s: " % (reason, response.header("x-cage-txn"))
    assert response.header("grpc-message").startswith(start) and response.header("grpc-message").endswith(".")


def upstream_failed(response, reason, status=502):
    assert response.status == status, response
    assert response.header("content-type") == "application/json"
    told = response.json()
    assert told["error"] == "upstream_failed", told
    assert told["reason"] == reason, told
    assert told["txn"]
    return told


def logged_block(cage, response, **wanted):
    """The one line of a refusal: decision block, enforced, the reason and status that the client saw. A name or port that
    is not allowed is refused, and logged, at its CONNECT."""
    line = cage.log.of(response, decision="block")
    assert line["event"] in ("request", "connect"), line
    assert line["enforced"] is True
    assert line["reason"] == response.header("x-cage-reason")
    assert line["status"] == response.status
    for key, value in wanted.items():
        assert line.get(key) == value, line
    assert len(cage.log.find(txn=line["txn"], conn=line["conn"])) == 1
    return line


def logged_failure(cage, response, reason):
    """The line of an upstream that failed: decision error, the status that the client saw."""
    line = cage.log.of(response, reason=reason)
    assert line["decision"] == "error", line
    assert line["status"] == response.status
    return line


def logged_pair(cage, path, **wanted):
    """The two lines of a served request: the decision and its result."""
    request = cage.log.wait(event="request", path=path, **wanted)
    response = cage.log.wait(event="response", conn=request["conn"], txn=request["txn"])
    assert request["decision"] == "allow"
    assert request["seq"] < response["seq"]
    return request, response


class OneMore:
    """A context in which exactly one line of that kind is written; .line is that line, afterwards."""

    def __init__(self, cage, **wanted):
        self.cage, self.wanted, self.line = cage, wanted, None

    def __enter__(self):
        self.before = len(self.cage.log.find(**self.wanted))
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            found = wait_until(lambda: self.cage.log.find(**self.wanted)[self.before:], 10, "no line %r" % self.wanted)
            assert len(found) == 1, found
            self.line = found[0]
