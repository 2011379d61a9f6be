"""The body of a create, out of keywords that are shorter than the API's. The service says what is wrong with the values."""
from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Limits:
    """Of a sandbox; what is None is left to the profile or the service. Sizes are bytes."""

    cpu: Optional[float] = None
    memory: Optional[int] = None
    pids: Optional[int] = None
    disk: Optional[int] = None
    wall_seconds: Optional[int] = None
    egress_bytes: Optional[int] = None
    output_bytes: Optional[int] = None


@dataclass(frozen=True)
class Step:
    """Of a workflow. sandbox: the body of a create, as the API has it, with a command. needs: ids of steps. artifacts: paths of files
    that it hands on, or (path, most bytes). inputs: (step, path), or (step, path, where it is put)."""

    id: str
    sandbox: Mapping[str, Any]
    needs: Sequence[str] = ()
    artifacts: Sequence[Union[str, Tuple[str, int]]] = ()
    inputs: Sequence[Tuple[str, ...]] = ()

    def body(self) -> Dict[str, Any]:
        """As POST /api/v1/workflows wants it."""
        if isinstance(self.needs, str) or isinstance(self.artifacts, str) or any(not 2 <= len(i) <= 3 or isinstance(i, str) for i in self.inputs):
            raise TypeError("needs and artifacts: expected lists; inputs: (step, path) or (step, path, to)")
        return {"id": self.id, "sandbox": dict(self.sandbox), "needs": list(self.needs),
                "artifacts": [{"path": a} if isinstance(a, str) else {"path": a[0], "max_bytes": a[1]} for a in self.artifacts],
                "inputs": [dict(zip(("step", "path", "to"), i)) for i in self.inputs]}


def workflow_body(steps: Sequence[Union[Step, Mapping[str, Any]]], name: str, labels: Optional[Mapping[str, str]]) -> Dict[str, Any]:
    """As POST /api/v1/workflows wants it."""
    return {"name": name, "labels": dict(labels or {}), "steps": [s.body() if isinstance(s, Step) else dict(s) for s in steps]}


def _policy(text: str) -> Dict[str, str]:
    """No policy is one word, so that one is a name."""
    return {"name": text} if _NAME.fullmatch(text) else {"inline": text}


def _text(path: str, content: Union[str, bytes]) -> str:
    try:
        return content if isinstance(content, str) else bytes(content).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("files: %r is no text; write() takes bytes, once the sandbox runs" % path) from None


def _limits(given: Union[Limits, Mapping[str, float], None]) -> Optional[Dict[str, Any]]:
    rows = asdict(given) if isinstance(given, Limits) else dict(given or {})
    return {k: v for k, v in rows.items() if v is not None} or None


def create_body(*, profile: Optional[str], command: Optional[Sequence[str]], files: Optional[Mapping[str, Union[str, bytes]]],
                env: Optional[Mapping[str, str]], allow: Optional[Sequence[str]], policy: Optional[str], secrets: Optional[Sequence[str]],
                tools: Optional[Sequence[str]], blocked_commands: Optional[Sequence[str]], limits: Union[Limits, Mapping[str, float], None],
                lifetime: Optional[int], keep: Optional[bool], labels: Optional[Mapping[str, str]],
                publish: Optional[Sequence[Union[int, Mapping[str, Any]]]], rootfs: Optional[str], backend: Optional[str],
                image: Optional[str]) -> Dict[str, Any]:
    """As POST /api/v1/sandboxes wants it; what was not given is not in it."""
    for name, given in (("command", command), ("allow", allow), ("secrets", secrets), ("tools", tools), ("blocked_commands", blocked_commands)):
        if isinstance(given, (str, bytes)):
            raise TypeError("%s: expected a list of words, not one text" % name)
    if allow is not None and policy is not None:
        raise ValueError("allow and policy: only one of them can be meant")
    network = None if allow is None else {"mode": "allowlist", "domain_allowlist": list(allow)} if allow else {"mode": "none"}
    whole: Dict[str, Any] = {
        "profile": profile, "backend": backend, "rootfs": rootfs, "image": image, "command": None if command is None else list(command),
        "env": None if env is None else dict(env), "files": None if files is None else {k: _text(k, v) for k, v in files.items()},
        "tools": None if tools is None else list(tools), "blocked_commands": None if blocked_commands is None else list(blocked_commands),
        "network": network, "policy": None if policy is None else _policy(policy), "secrets": None if secrets is None else list(secrets),
        "limits": _limits(limits), "lifetime_seconds": lifetime, "keep": keep, "labels": None if labels is None else dict(labels),
        "publish": None if publish is None else [{"port": p} if isinstance(p, int) else dict(p) for p in publish]}
    return {k: v for k, v in whole.items() if v is not None}
