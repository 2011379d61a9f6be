"""Sandboxes for AI agents, each with the cage as its only way out: a client of cage serve.

    with Cage() as cage, cage.sandbox(files={"main.py": "print(6 * 7)"}) as box:
        print(box.exec("python3", "main.py").stdout)

AsyncCage is the same for asyncio. Whatever happens in the block, the sandbox is destroyed at its end."""
from ._async_client import AsyncCage, AsyncSandbox
from ._client import Cage, Sandbox
from ._spec import Limits, Step
from .errors import (ApiError, BadRequest, Broken, CageError, CommandFailed, Conflict, Denied, Full, Gone, Invalid, NotFound, ProtocolError,
                     SandboxFailed, ServerError, TimedOut, TooBusy, TooLarge, Unauthorized, Unreachable, WorkflowFailed)
from .models import (Artifact, Change, Cost, Decision, Decisions, Entry, ExecResult, Health, Output, Published, SandboxInfo, StepInfo, Tool, Usage, UsageRow, WorkflowInfo)

__all__ = [
    "ApiError", "Artifact", "AsyncCage", "AsyncSandbox", "BadRequest", "Broken", "Cage", "CageError", "Change", "CommandFailed", "Conflict", "Cost",
    "Decision", "Decisions", "Denied", "Entry", "ExecResult", "Full", "Gone", "Health", "Invalid", "Limits", "NotFound", "Output",
    "ProtocolError", "Published", "Sandbox", "SandboxFailed", "SandboxInfo", "ServerError", "Step", "StepInfo", "TimedOut", "Tool", "TooBusy", "TooLarge",
    "Unauthorized", "Unreachable", "Usage", "UsageRow", "WorkflowFailed", "WorkflowInfo"]
