"""Sandboxes for AI agents, each with the cage as its only way out: a client of cage serve.

    with Cage() as cage, cage.sandbox(files={"main.py": "print(6 * 7)"}) as box:
        print(box.exec("python3", "main.py").stdout)

AsyncCage is the same for asyncio. Whatever happens in the block, the sandbox is destroyed at its end."""
from ._async_client import AsyncCage, AsyncSandbox
from ._client import Cage, Sandbox
from ._spec import Limits
from .errors import (ApiError, BadRequest, Broken, CageError, CommandFailed, Conflict, Denied, Full, Gone, Invalid, NotFound, ProtocolError,
                     SandboxFailed, ServerError, TimedOut, TooBusy, TooLarge, Unauthorized, Unreachable)
from .models import (Change, Cost, Decision, Decisions, Entry, ExecResult, Health, Output, Published, SandboxInfo, Tool, Usage, UsageRow)

# Workflows of the service get their place here: requests in _calls.py, dataclasses in models.py, methods of both clients.

__all__ = [
    "ApiError", "AsyncCage", "AsyncSandbox", "BadRequest", "Broken", "Cage", "CageError", "Change", "CommandFailed", "Conflict", "Cost",
    "Decision", "Decisions", "Denied", "Entry", "ExecResult", "Full", "Gone", "Health", "Invalid", "Limits", "NotFound", "Output",
    "ProtocolError", "Published", "Sandbox", "SandboxFailed", "SandboxInfo", "ServerError", "TimedOut", "Tool", "TooBusy", "TooLarge",
    "Unauthorized", "Unreachable", "Usage", "UsageRow"]
