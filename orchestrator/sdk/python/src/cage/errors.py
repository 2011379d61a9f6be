"""What can go wrong. All of it is a CageError; what the service refuses is an ApiError, with the id of the request as it is known
there. No message has a token or the body of a request in it, and what others wrote can't move the cursor of a terminal."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Type

if TYPE_CHECKING:
    from .models import ExecResult, SandboxInfo, WorkflowInfo


def _shown(text: str) -> str:
    """Text of a sandbox, or about one, as a traceback may print it: colours, cursor moves and turns of direction are escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class CageError(Exception):
    """The root of all that this package raises about the service."""


class Unreachable(CageError):
    """No service there: nothing was sent."""


class Broken(CageError):
    """The connection ended before the answer was whole. What was asked for may have been done."""


class TimedOut(CageError, TimeoutError):
    """It took longer than was allowed. What was asked for may have been done."""


class ProtocolError(CageError):
    """What came back is not an answer of cage serve, or larger than an answer may be."""


class ApiError(CageError):
    """The service refused. status, title and detail say why; errors has (pointer, detail) for each wrong value of a request."""

    def __init__(self, status: int, problem: Dict[str, Any], request_id: str = "", retry_after: Optional[float] = None):
        self.status = status
        self.title = _text(problem, "title") or "HTTP %d" % status
        self.detail = _text(problem, "detail")
        self.reason = _text(problem, "reason")
        self.request_id = _text(problem, "instance") or request_id
        self.retry_after = retry_after
        self.errors: List[Tuple[str, str]] = _pairs(problem.get("errors"))
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        parts = [self.title + (": " + self.detail if self.detail else "")]
        parts += ["%s: %s" % pair if pair[0] else pair[1] for pair in self.errors]
        if self.reason:
            parts.append("reason " + self.reason)
        return _shown("; ".join(parts)) + (" (request %s)" % _shown(self.request_id) if self.request_id else "")


class BadRequest(ApiError):
    """400, 405, 415 or 431: not a request that the service knows."""


class Unauthorized(ApiError):
    """401: over TCP, without the token or with another."""


class Denied(ApiError):
    """403: the tool call is not allowed in this sandbox; reason is the one that the decision log has."""


class NotFound(ApiError):
    """404: no such sandbox or file."""


class Conflict(ApiError):
    """409: the sandbox is not in a state for that."""


class Gone(ApiError):
    """410: what was made with this idempotency key is deleted."""


class TooLarge(ApiError):
    """413: more than the service takes."""


class Invalid(ApiError):
    """422: wrong values; errors says which, all at once."""


class TooBusy(ApiError):
    """429 or 503: too much is under way, now."""


class Full(ApiError):
    """507: the disk of the service, or the workspace, is full."""


class ServerError(ApiError):
    """Another 5xx: it failed on the side of the service."""


class SandboxFailed(CageError):
    """The sandbox came to its end before its command was started; info says why."""

    def __init__(self, info: SandboxInfo):
        self.info = info
        super().__init__(_shown("%s: %s, %s%s" % (info.id, info.state, info.reason, ": " + info.message if info.message else "")))


class CommandFailed(CageError):
    """Of ExecResult.check(): the command did not end with 0."""

    def __init__(self, result: ExecResult):
        self.result = result
        how = "took too long" if result.timed_out else "signal %s" % result.signal if result.signal else "exit code %s" % result.exit_code
        super().__init__(how + (": " + _shown(result.stderr[-400:].strip()) if result.stderr else ""))


class WorkflowFailed(CageError):
    """Of WorkflowInfo.check(): not all of its steps succeeded; info says which."""

    def __init__(self, info: WorkflowInfo):
        self.info = info
        bad = ["%s %s (%s)" % (s.id, s.state, s.reason) for s in info.steps if s.state != "succeeded"]
        super().__init__(_shown("%s: %s%s" % (info.id, info.state, ": " + ", ".join(bad) if bad else "")))


_KINDS: Dict[int, Type[ApiError]] = {
    400: BadRequest, 401: Unauthorized, 403: Denied, 404: NotFound, 405: BadRequest, 409: Conflict, 410: Gone, 413: TooLarge,
    415: BadRequest, 422: Invalid, 429: TooBusy, 431: BadRequest, 503: TooBusy, 507: Full}


def _text(problem: Dict[str, Any], key: str) -> str:
    value = problem.get(key)
    return value if isinstance(value, str) else ""


def _pairs(errors: Any) -> List[Tuple[str, str]]:
    rows = errors if isinstance(errors, list) else []
    return [(_text(row, "pointer"), _text(row, "detail")) for row in rows if isinstance(row, dict)]


def _seconds(retry_after: str) -> Optional[float]:
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 6 else None


def api_error(status: int, headers: Dict[str, str], body: bytes) -> ApiError:
    """The exception of an answer that is a refusal; one that is no problem+json still has its status."""
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        problem = {}
    kind = _KINDS.get(status) or (ServerError if status >= 500 else BadRequest)
    return kind(status, problem if isinstance(problem, dict) else {}, headers.get("x-request-id", ""), _seconds(headers.get("retry-after", "")))
