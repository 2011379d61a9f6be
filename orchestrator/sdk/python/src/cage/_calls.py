"""The requests of the API: each is made here once, and both clients send it. A call also knows whether it may be sent again when
nobody can tell whether it was heard."""
from __future__ import annotations

import base64
import hashlib
import json
import secrets
import shlex
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Generic, List, Mapping, Optional, Sequence, TypeVar, Union
from urllib.parse import quote, urlencode

from .errors import ProtocolError
from .models import Entry, ExecResult, Health, Page, SandboxInfo, Tool, UsageRow, WorkflowInfo, WorkflowPage, entries_of, items_of, result_of

T = TypeVar("T")

MAX_JSON = 64 * 1024 * 1024
MAX_FILE = 256 * 1024 * 1024
MAX_OUTPUT = 1024 * 1024 * 1024
MAX_STREAM = 1 << 40  # what is followed is not held
FILE_SECONDS = 600.0
TOOL_SECONDS = 60
_API = "/api/v1"
# What such a call does, it does not do twice; of the others the service forgets the key when their client leaves.
_REPEATABLE_TOOLS = ("file_read", "file_write", "file_list")


def new_key() -> str:
    """An idempotency key of its own for each request that makes something."""
    return "py-" + secrets.token_hex(16)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and what is made of the body of its answer."""

    method: str
    target: str
    parse: Callable[[bytes], T]
    body: Optional[bytes] = field(default=None, repr=False)
    content_type: str = ""
    key: str = ""
    repeatable: bool = True  # it may be sent again after it may have been heard
    more_seconds: float = 0.0  # in all, on top of the client's timeout
    quiet_seconds: float = 0.0  # without a byte, on top of the client's timeout
    most: int = MAX_JSON
    digest: bool = False  # the answer says which SHA-256 it has

    def headers(self) -> Dict[str, str]:
        """Those of this call."""
        fields = {"Accept": "*/*"}
        if self.content_type:
            fields["Content-Type"] = self.content_type
        if self.key:
            fields["Idempotency-Key"] = self.key
        return fields

    def result(self, headers: Mapping[str, str], body: bytes) -> T:
        """What is made of an answer that is no refusal."""
        if self.digest and headers.get("repr-digest") != "sha-256=:%s:" % base64.b64encode(hashlib.sha256(body).digest()).decode("ascii"):
            raise ProtocolError("the bytes have not the SHA-256 that the service says they have (Repr-Digest)")
        return self.parse(body)


# ---- parts


def _json(make: Callable[[Any], T]) -> Callable[[bytes], T]:
    def parse(body: bytes) -> T:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            raise ProtocolError("what the service says is no JSON: is that cage serve?") from None
        return make(value)

    return parse


def _nothing(body: bytes) -> None:
    return None


def _bytes(body: bytes) -> bytes:
    return body


def _sandbox(ident: str, *rest: str) -> str:
    return "/".join([_API + "/sandboxes", quote(ident, safe="")] + list(rest))


def _query(target: str, **values: Union[str, int, None]) -> str:
    given = {k: v for k, v in values.items() if v is not None}
    return target + ("?" + urlencode(given, quote_via=quote) if given else "")


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


# ---- the service


def health() -> Call[Health]:
    """GET /healthz"""
    return Call("GET", "/healthz", _json(Health.of))


def tools() -> Call[List[Tool]]:
    """GET /api/v1/tools"""
    return Call("GET", _API + "/tools", _json(lambda row: items_of(row, Tool.of)))


def usage(by: Optional[str], since: Optional[datetime]) -> Call[List[UsageRow]]:
    """GET /api/v1/usage. Whole seconds of UTC: a time without a zone is taken as one of this machine."""
    text = since.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") if since else None
    return Call("GET", _query(_API + "/usage", by=by, since=text), _json(lambda row: items_of(row, UsageRow.of)))


# ---- sandboxes


def create(body: Mapping[str, Any], key: str) -> Call[SandboxInfo]:
    """POST /api/v1/sandboxes"""
    return Call("POST", _API + "/sandboxes", _json(SandboxInfo.of), _encode(body), "application/json", key)


def page(state: Optional[str], label: Optional[str], limit: int, after: Optional[str]) -> Call[Page]:
    """GET /api/v1/sandboxes"""
    return Call("GET", _query(_API + "/sandboxes", limit=limit, after=after, state=state, label=label), _json(Page.of))


def following(page: Union[Page, WorkflowPage], after: Optional[str]) -> Optional[str]:
    """Where the next page begins, or None. Pages that bring nothing would have no end."""
    if page.next is not None and (page.next == after or not page.items):
        raise ProtocolError("the service gives the same page again, or an empty one that is not the last")
    return page.next


def show(ident: str) -> Call[SandboxInfo]:
    """GET /api/v1/sandboxes/ID"""
    return Call("GET", _sandbox(ident), _json(SandboxInfo.of))


def delete(ident: str) -> Call[SandboxInfo]:
    """DELETE /api/v1/sandboxes/ID"""
    return Call("DELETE", _sandbox(ident), _json(SandboxInfo.of))


def stop(ident: str) -> Call[SandboxInfo]:
    """POST /api/v1/sandboxes/ID/stop; doing it twice is doing it once."""
    return Call("POST", _sandbox(ident, "stop"), _json(SandboxInfo.of), b"", key=new_key())


def reload(ident: str, policy: str) -> Call[SandboxInfo]:
    """PUT /api/v1/sandboxes/ID/policy"""
    return Call("PUT", _sandbox(ident, "policy"), _json(SandboxInfo.of), policy.encode("utf-8"), "application/yaml")


def logs_target(ident: str, source: str, follow: bool) -> str:
    """GET /api/v1/sandboxes/ID/logs"""
    return _query(_sandbox(ident, "logs"), source=source, follow="true" if follow else None)


def output_target(ident: str, stream: str, follow: bool) -> str:
    """GET /api/v1/sandboxes/ID/output"""
    return _query(_sandbox(ident, "output"), stream=stream, follow="true" if follow else None)


def output(ident: str, stream: str) -> Call[bytes]:
    """The output as far as it is there."""
    return Call("GET", output_target(ident, stream, False), _bytes, most=MAX_OUTPUT, more_seconds=FILE_SECONDS)


# ---- files


def _file(ident: str, path: str) -> str:
    if not path:
        raise ValueError("path: expected one relative to the workspace")
    return _sandbox(ident, "files", quote(path, safe="/", errors="surrogateescape"))


def read(ident: str, path: str) -> Call[bytes]:
    """GET /api/v1/sandboxes/ID/files/PATH"""
    return Call("GET", _file(ident, path), _bytes, most=MAX_FILE, more_seconds=FILE_SECONDS)


def write(ident: str, path: str, content: Union[str, bytes]) -> Call[None]:
    """PUT /api/v1/sandboxes/ID/files/PATH"""
    body = content.encode("utf-8") if isinstance(content, str) else bytes(content)
    return Call("PUT", _file(ident, path), _nothing, body, "application/octet-stream", more_seconds=FILE_SECONDS)


# ---- workflows


def _workflow(ident: str, *rest: str) -> str:
    return "/".join([_API + "/workflows", quote(ident, safe="")] + list(rest))


def create_workflow(body: Mapping[str, Any], key: str) -> Call[WorkflowInfo]:
    """POST /api/v1/workflows"""
    return Call("POST", _API + "/workflows", _json(WorkflowInfo.of), _encode(body), "application/json", key)


def workflow_page(state: Optional[str], label: Optional[str], limit: int, after: Optional[str]) -> Call[WorkflowPage]:
    """GET /api/v1/workflows"""
    return Call("GET", _query(_API + "/workflows", limit=limit, after=after, state=state, label=label), _json(WorkflowPage.of))


def show_workflow(ident: str) -> Call[WorkflowInfo]:
    """GET /api/v1/workflows/ID"""
    return Call("GET", _workflow(ident), _json(WorkflowInfo.of))


def cancel_workflow(ident: str) -> Call[WorkflowInfo]:
    """POST /api/v1/workflows/ID/cancel; doing it twice is doing it once."""
    return Call("POST", _workflow(ident, "cancel"), _json(WorkflowInfo.of), b"")


def delete_workflow(ident: str) -> Call[WorkflowInfo]:
    """DELETE /api/v1/workflows/ID"""
    return Call("DELETE", _workflow(ident), _json(WorkflowInfo.of))


def artifact(ident: str, step: str, path: str) -> Call[bytes]:
    """GET /api/v1/workflows/ID/artifacts/STEP/PATH"""
    if not step or not path:
        raise ValueError("artifact: expected a step and a path")
    return Call("GET", _workflow(ident, "artifacts", quote(step, safe=""), quote(path, safe="/")), _bytes, most=MAX_FILE,
                more_seconds=FILE_SECONDS, digest=True)


# ---- tools


def _tool(ident: str, name: str, arguments: Mapping[str, Any], timeout: Optional[int], make: Callable[[Dict[str, Any]], T]) -> Call[T]:
    body: Dict[str, Any] = {"tool": name, "arguments": dict(arguments)}
    if timeout is not None:
        body["timeout_seconds"] = timeout
    return Call("POST", _sandbox(ident, "tools", "execute"), _json(lambda row: make(result_of(row))), _encode(body), "application/json", new_key(),
                repeatable=name in _REPEATABLE_TOOLS, more_seconds=float(timeout or TOOL_SECONDS), quiet_seconds=float(timeout or TOOL_SECONDS))


def tool(ident: str, name: str, arguments: Mapping[str, Any], timeout: Optional[int]) -> Call[Dict[str, Any]]:
    """POST /api/v1/sandboxes/ID/tools/execute"""
    return _tool(ident, name, arguments, timeout, dict)


def shell_text(words: Sequence[str]) -> str:
    """One word may be a whole script; several stay the words that they are."""
    if not words:
        raise ValueError("exec: expected a command")
    return words[0] if len(words) == 1 else shlex.join(words)


def execute(ident: str, words: Sequence[str], workdir: Optional[str], timeout: Optional[int]) -> Call[ExecResult]:
    """The tool shell_exec."""
    arguments = {"command": shell_text(words)}
    if workdir is not None:
        arguments["workdir"] = workdir
    return _tool(ident, "shell_exec", arguments, timeout, ExecResult.of)


def entries(ident: str, path: str) -> Call[List[Entry]]:
    """The tool file_list."""
    return _tool(ident, "file_list", {"path": path}, None, entries_of)
