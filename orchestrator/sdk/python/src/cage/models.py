"""What the service tells, as dataclasses. What a newer service adds is left out of them, or kept in raw; what is missing or of
another type than the API says is a ProtocolError."""
from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar

from .errors import CommandFailed, ProtocolError, WorkflowFailed

T = TypeVar("T")
ENDED = ("succeeded", "failed", "timed_out", "killed", "deleted")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))")


# ---- reading JSON


def _is_text(value: str) -> bool:
    """Half of a surrogate pair is JSON and no text: it can't be put into a request."""
    try:
        value.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def _get(row: Any, key: str, kind: Type[T]) -> T:
    value = row.get(key) if isinstance(row, dict) else None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ProtocolError("the answer has no good %s" % key)
    if isinstance(value, str) and not _is_text(value):
        raise ProtocolError("the answer has no good %s" % key)
    return value


def _maybe(row: Any, key: str, kind: Type[T]) -> Optional[T]:
    return None if not isinstance(row, dict) or row.get(key) is None else _get(row, key, kind)


def _list(row: Any, key: str, make: Callable[[Any], T]) -> Tuple[T, ...]:
    return tuple(make(item) for item in _maybe(row, key, list) or [])


def _word(value: Any) -> str:
    if not isinstance(value, str) or not _is_text(value):
        raise ProtocolError("the answer has no text where one belongs")
    return value


def _words(row: Any, key: str) -> Dict[str, str]:
    return {name: _word(value) for name, value in (_maybe(row, key, dict) or {}).items()}


def _time(row: Any, key: str) -> datetime:
    found = _TIME.fullmatch(_get(row, key, str))
    try:
        if not found:
            raise ValueError
        day, clock, fraction, sign, hours, minutes = found.groups()
        at = datetime.strptime(day + " " + clock, "%Y-%m-%d %H:%M:%S").replace(microsecond=int((fraction or "")[:6].ljust(6, "0")), tzinfo=timezone.utc)
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        return at + offset if sign == "-" else at - offset
    except (ValueError, OverflowError):
        raise ProtocolError("the answer has no good %s" % key) from None


def _maybe_time(row: Any, key: str) -> Optional[datetime]:
    return None if row.get(key) is None else _time(row, key)


# ---- what there is


@dataclass(frozen=True)
class Health:
    """How the service is."""

    status: str
    version: str
    running: int
    queued: int

    @classmethod
    def of(cls, row: Any) -> Health:
        """From JSON."""
        return cls(_get(row, "status", str), _get(row, "version", str), _get(row, "running", int), _get(row, "queued", int))


@dataclass(frozen=True)
class Decisions:
    """How many of each kind the decision log has."""

    allow: int = 0
    flag: int = 0
    block: int = 0
    error: int = 0

    @classmethod
    def of(cls, row: Any) -> Decisions:
        """From JSON."""
        return cls(*(_get(row, key, int) for key in ("allow", "flag", "block", "error")))


@dataclass(frozen=True)
class Cost:
    """At the prices of the service's configuration."""

    amount: float
    currency: str

    @classmethod
    def of(cls, row: Any) -> Cost:
        """From JSON."""
        return cls(_get(row, "amount", float), _get(row, "currency", str))


@dataclass(frozen=True)
class Usage:
    """What one sandbox used. counted is False where the decision log could not be read: egress and decisions are not known then.

    Of a group of Azure, estimated and unknown name what is an estimate, and what means nothing; cost is None where no prices are configured.
    """

    wall_seconds: float
    cpu_seconds: float
    memory_peak_bytes: int
    disk_peak_bytes: int
    egress_bytes: int
    decisions: Decisions
    oom_kills: int
    output_bytes: int
    cost: Optional[Cost] = None
    counted: bool = True
    output_lost_bytes: int = 0
    memory_average_bytes: Optional[int] = None
    network_received_bytes: Optional[int] = None
    network_sent_bytes: Optional[int] = None
    metered_seconds: Optional[int] = None
    billed_seconds: Optional[int] = None
    billed_vcpu_seconds: Optional[float] = None
    billed_gb_seconds: Optional[float] = None
    estimated: Tuple[str, ...] = ()
    unknown: Tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Any) -> Usage:
        """From JSON."""
        return cls(wall_seconds=_get(row, "wall_seconds", float), cpu_seconds=_get(row, "cpu_seconds", float),
                   memory_peak_bytes=_get(row, "memory_peak_bytes", int), disk_peak_bytes=_get(row, "disk_peak_bytes", int),
                   egress_bytes=_get(row, "egress_bytes", int), decisions=Decisions.of(row.get("decisions")), oom_kills=_get(row, "oom_kills", int),
                   output_bytes=_get(row, "output_bytes", int), cost=None if row.get("cost") is None else Cost.of(row.get("cost")),
                   counted=row.get("counted") is not False, output_lost_bytes=_maybe(row, "output_lost_bytes", int) or 0,
                   memory_average_bytes=_maybe(row, "memory_average_bytes", int), network_received_bytes=_maybe(row, "network_received_bytes", int),
                   network_sent_bytes=_maybe(row, "network_sent_bytes", int), metered_seconds=_maybe(row, "metered_seconds", int),
                   billed_seconds=_maybe(row, "billed_seconds", int), billed_vcpu_seconds=_maybe(row, "billed_vcpu_seconds", float),
                   billed_gb_seconds=_maybe(row, "billed_gb_seconds", float), estimated=_list(row, "estimated", _word), unknown=_list(row, "unknown", _word))


@dataclass(frozen=True)
class UsageRow:
    """What all sandboxes used that have this value of a label; None: those without."""

    value: Optional[str]
    sandboxes: int
    by_state: Dict[str, int]
    wall_seconds: float
    cpu_seconds: float
    gb_seconds: float
    egress_bytes: int
    decisions: Decisions
    cost: Cost

    @classmethod
    def of(cls, row: Any) -> UsageRow:
        """From JSON."""
        states = _get(row, "by_state", dict)
        return cls(value=_maybe(row, "value", str), sandboxes=_get(row, "sandboxes", int), by_state={k: _get(states, k, int) for k in states},
                   wall_seconds=_get(row, "wall_seconds", float), cpu_seconds=_get(row, "cpu_seconds", float), gb_seconds=_get(row, "gb_seconds", float),
                   egress_bytes=_get(row, "egress_bytes", int), decisions=Decisions.of(row.get("decisions")), cost=Cost.of(row.get("cost")))


@dataclass(frozen=True)
class Change:
    """Of the state of a sandbox."""

    state: str
    at: datetime
    reason: str

    @classmethod
    def of(cls, row: Any) -> Change:
        """From JSON."""
        return cls(_get(row, "state", str), _time(row, "at"), _get(row, "reason", str))


@dataclass(frozen=True)
class Published:
    """A port inside, and the ADDRESS:PORT of the service's machine that leads to it."""

    port: int
    address: str

    @classmethod
    def of(cls, row: Any) -> Published:
        """From JSON."""
        return cls(_get(row, "port", int), _get(row, "address", str))


@dataclass(frozen=True)
class SandboxInfo:
    """What is known of a sandbox. Those of a list have no more than id, state, reason, times, exit code, profile and labels."""

    id: str
    state: str
    reason: str
    created_at: datetime
    labels: Dict[str, str]
    message: str = ""
    started_at: Optional[datetime] = None
    ended_at: Optional[datetime] = None
    deadline_at: Optional[datetime] = None
    queued_before: Optional[int] = None
    exit_code: Optional[int] = None
    profile: Optional[str] = None
    backend: Optional[str] = None
    command: Tuple[str, ...] = ()
    tools: Tuple[str, ...] = ()
    policy_sha256: Optional[str] = None
    secrets: Tuple[str, ...] = ()
    limits: Dict[str, float] = field(default_factory=dict)
    keep: bool = False
    published: Tuple[Published, ...] = ()
    usage: Optional[Usage] = None
    cleanup_error: Optional[str] = None
    history: Tuple[Change, ...] = ()

    @property
    def ended(self) -> bool:
        """Its command has come to an end, or will never begin."""
        return self.state in ENDED

    @property
    def waits(self) -> bool:
        """It is queued, or being made."""
        return self.state in ("queued", "creating")

    @classmethod
    def of(cls, row: Any) -> SandboxInfo:
        """From JSON."""
        return cls(id=_get(row, "id", str), state=_get(row, "state", str), reason=_get(row, "reason", str), created_at=_time(row, "created_at"),
                   labels=_words(row, "labels"), message=_maybe(row, "message", str) or "", started_at=_maybe_time(row, "started_at"),
                   ended_at=_maybe_time(row, "ended_at"), deadline_at=_maybe_time(row, "deadline_at"), queued_before=_maybe(row, "queued_before", int),
                   exit_code=_maybe(row, "exit_code", int), profile=_maybe(row, "profile", str), backend=_maybe(row, "backend", str),
                   command=_list(row, "command", _word), tools=_list(row, "tools", _word),
                   policy_sha256=_maybe(_maybe(row, "policy", dict), "sha256", str), secrets=_list(row, "secrets", _word),
                   limits={k: v for k, v in (_maybe(row, "limits", dict) or {}).items() if isinstance(v, (int, float))},
                   keep=_maybe(row, "keep", bool) or False, published=_list(row, "published", Published.of),
                   usage=Usage.of(row["usage"]) if row.get("usage") is not None else None,
                   cleanup_error=_maybe(_maybe(row, "cleanup", dict), "error", str), history=_list(row, "history", Change.of))


@dataclass(frozen=True)
class Decision:
    """A line of the decision log (docs/log.md). raw has all of it."""

    seq: int
    at: datetime
    event: str
    decision: Optional[str]
    reason: Optional[str]
    rule: Optional[str]
    method: Optional[str]
    host: Optional[str]
    port: Optional[int]
    path: Optional[str]
    status: Optional[int]
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def blocked(self) -> bool:
        """It was refused, and not only noted."""
        return self.decision == "block" and self.raw.get("enforced") is not False

    @classmethod
    def of(cls, row: Any) -> Decision:
        """From JSON."""
        return cls(seq=_get(row, "seq", int), at=_time(row, "ts"), event=_get(row, "event", str), decision=_maybe(row, "decision", str),
                   reason=_maybe(row, "reason", str), rule=_maybe(row, "rule", str), method=_maybe(row, "method", str), host=_maybe(row, "host", str),
                   port=_maybe(row, "port", int), path=_maybe(row, "path", str), status=_maybe(row, "status", int), raw=row)


@dataclass(frozen=True)
class Output:
    """A piece of what the command has written: stream is stdout or stderr."""

    stream: str
    text: str

    def __str__(self) -> str:
        return self.text


def _stream(row: Any, name: str) -> bytes:
    """As bytes, which come as text or, where they are none, as base64."""
    digits = _maybe(row, name + "_base64", str)
    try:
        return base64.b64decode(digits, validate=True) if digits is not None else (_maybe(row, name, str) or "").encode("utf-8", "surrogatepass")
    except ValueError as error:
        raise ProtocolError("%s_base64 is no base64" % name) from error


@dataclass(frozen=True)
class ExecResult:
    """What came of a command. exit_code is None where a signal ended it; truncated: it wrote more than is passed on. Where it wrote what is
    no text, stdout_bytes and stderr_bytes have it as it was."""

    exit_code: Optional[int]
    signal: Optional[int]
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""

    @property
    def ok(self) -> bool:
        """It ended with 0, in time."""
        return self.exit_code == 0 and not self.timed_out

    def check(self) -> ExecResult:
        """Itself, if it is ok; else raises CommandFailed."""
        if not self.ok:
            raise CommandFailed(self)
        return self

    @classmethod
    def of(cls, row: Any) -> ExecResult:
        """From JSON."""
        out, err = _stream(row, "stdout"), _stream(row, "stderr")
        return cls(exit_code=_maybe(row, "exit_code", int), signal=_maybe(row, "signal", int), stdout=out.decode("utf-8", "replace"),
                   stderr=err.decode("utf-8", "replace"), stdout_bytes=out, stderr_bytes=err, truncated=_maybe(row, "truncated", bool) or False, timed_out=_maybe(row, "timed_out", bool) or False)


@dataclass(frozen=True)
class Entry:
    """A name in a directory of the workspace."""

    name: str
    type: str
    size: int

    @classmethod
    def of(cls, row: Any) -> Entry:
        """From JSON."""
        return cls(_get(row, "name", str), _get(row, "type", str), _maybe(row, "size", int) or 0)


@dataclass(frozen=True)
class Tool:
    """A tool that sandboxes have; arguments is a JSON schema."""

    name: str
    description: str
    arguments: Dict[str, Any]

    @classmethod
    def of(cls, row: Any) -> Tool:
        """From JSON."""
        return cls(_get(row, "name", str), _get(row, "description", str), _get(row, "arguments", dict))


@dataclass(frozen=True)
class Page:
    """Of a list; next is where the following one begins."""

    items: List[SandboxInfo]
    next: Optional[str]

    @classmethod
    def of(cls, row: Any) -> Page:
        """From JSON."""
        return cls([SandboxInfo.of(item) for item in _get(row, "items", list)], _maybe(row, "next", str))


# ---- workflows


@dataclass(frozen=True)
class Artifact:
    """A file that a step has handed on."""

    path: str
    size: int
    sha256: str

    @classmethod
    def of(cls, row: Any) -> Artifact:
        """From JSON."""
        return cls(_get(row, "path", str), _get(row, "size", int), _get(row, "sha256", str))


@dataclass(frozen=True)
class StepInfo:
    """What is known of a step; sandbox is None until it has one."""

    id: str
    state: str
    reason: str
    needs: Tuple[str, ...] = ()
    message: str = ""
    sandbox: Optional[str] = None
    started_at: Optional[datetime] = None
    ended_at: Optional[datetime] = None
    artifacts: Tuple[Artifact, ...] = ()
    history: Tuple[Change, ...] = ()

    @classmethod
    def of(cls, row: Any) -> StepInfo:
        """From JSON."""
        return cls(_get(row, "id", str), _get(row, "state", str), _get(row, "reason", str), needs=_list(row, "needs", _word),
                   message=_maybe(row, "message", str) or "", sandbox=_maybe(row, "sandbox", str), started_at=_maybe_time(row, "started_at"),
                   ended_at=_maybe_time(row, "ended_at"), artifacts=_list(row, "artifacts", Artifact.of), history=_list(row, "history", Change.of))


@dataclass(frozen=True)
class WorkflowInfo:
    """What is known of a workflow. Those of a list have no steps and no history."""

    id: str
    name: str
    state: str
    reason: str
    created_at: datetime
    labels: Dict[str, str]
    ended_at: Optional[datetime] = None
    steps: Tuple[StepInfo, ...] = ()
    history: Tuple[Change, ...] = ()

    @property
    def ended(self) -> bool:
        """All of its steps have come to an end."""
        return self.state != "running"

    def step(self, ident: str) -> StepInfo:
        """The step of that id; KeyError: there is none."""
        for step in self.steps:
            if step.id == ident:
                return step
        raise KeyError(ident)

    def check(self) -> WorkflowInfo:
        """Itself, if all of its steps succeeded; else WorkflowFailed."""
        if self.state != "succeeded":
            raise WorkflowFailed(self)
        return self

    @classmethod
    def of(cls, row: Any) -> WorkflowInfo:
        """From JSON."""
        return cls(_get(row, "id", str), _get(row, "name", str), _get(row, "state", str), _get(row, "reason", str), _time(row, "created_at"),
                   _words(row, "labels"), ended_at=_maybe_time(row, "ended_at"), steps=_list(row, "steps", StepInfo.of),
                   history=_list(row, "history", Change.of))


@dataclass(frozen=True)
class WorkflowPage:
    """Of a list; next is where the following one begins."""

    items: List[WorkflowInfo]
    next: Optional[str]

    @classmethod
    def of(cls, row: Any) -> WorkflowPage:
        """From JSON."""
        return cls([WorkflowInfo.of(item) for item in _get(row, "items", list)], _maybe(row, "next", str))


def items_of(row: Any, make: Callable[[Any], T]) -> List[T]:
    """Of an answer that is a list."""
    return [make(item) for item in _get(row, "items", list)]


def result_of(row: Any) -> Dict[str, Any]:
    """Of a tool call."""
    return _get(row, "result", dict)


def entries_of(result: Any) -> List[Entry]:
    """Of the tool file_list."""
    return [Entry.of(item) for item in _get(result, "entries", list)]
