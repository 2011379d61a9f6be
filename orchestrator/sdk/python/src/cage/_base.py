"""What both clients have in common: where the service is, and the states of a sandbox that is to be made."""
from __future__ import annotations

import enum
import logging
import os
from typing import Any, Dict, Generic, Mapping, Optional, Sequence, TypeVar, Union

from . import _calls
from ._calls import Call
from ._place import find_place
from ._spec import Limits, create_body
from ._tries import CLEANUP_RETRIES, Tries
from .models import SandboxInfo

S = TypeVar("S")
Path = Union[str, "os.PathLike[str]"]
log = logging.getLogger("cage")


class Life(enum.Enum):
    """Of a Sandbox object."""

    PLANNED = "it is not started: use it in a with statement, or start() it"
    STARTING = "it is being started"
    OPEN = "it is open"
    DESTROYED = "it is destroyed"


class ClientBase(Generic[S]):
    """See Cage and AsyncCage."""

    def __init__(self, socket: Optional[Path] = None, *, url: Optional[str] = None, token: Optional[str] = None,
                 token_file: Optional[Path] = None, timeout: float = 60.0, retries: int = 4):
        """The unix socket of the service, as the cage command finds it (CAGE_SOCKET, CAGE_STATE), or a url such as
        http://127.0.0.1:8090 with a token, which else is that of CAGE_TOKEN. timeout: seconds for a call with all of its tries,
        on top of what a tool call or a file may take itself; retries: more tries of a call, where they can do no harm."""
        if not timeout > 0 or retries < 0:
            raise ValueError("timeout: expected more than 0 seconds; retries: 0 or more")
        self._place = find_place(socket, url, token, token_file, os.environ)
        self._timeout = timeout
        self._retries = retries
        self._open: Dict[int, S] = {}  # by id(): those that close() destroys

    def __repr__(self) -> str:
        return "<%s at %s>" % (type(self).__name__, self._place.name)

    def _new(self, body: Dict[str, Any]) -> S:
        raise NotImplementedError

    def _tries(self, call: Call[Any]) -> Tries:
        return Tries(call, self._retries, self._timeout)

    def _cleanup_tries(self, call: Call[Any]) -> Tries:
        """More of them: what is not destroyed now stays until its lifetime is over."""
        return Tries(call, max(self._retries, CLEANUP_RETRIES), self._timeout, doubt=True)

    def sandbox(self, *, profile: Optional[str] = None, command: Optional[Sequence[str]] = None,
                files: Optional[Mapping[str, Union[str, bytes]]] = None, env: Optional[Mapping[str, str]] = None,
                allow: Optional[Sequence[str]] = None, policy: Optional[str] = None, secrets: Optional[Sequence[str]] = None,
                tools: Optional[Sequence[str]] = None, blocked_commands: Optional[Sequence[str]] = None,
                limits: Union[Limits, Mapping[str, float], None] = None, lifetime: Optional[int] = None, keep: Optional[bool] = None,
                labels: Optional[Mapping[str, str]] = None, publish: Optional[Sequence[Union[int, Mapping[str, Any]]]] = None,
                rootfs: Optional[str] = None, backend: Optional[str] = None, image: Optional[str] = None) -> S:
        """A sandbox to be: `with` makes it, and destroys it however the block is left. Without a command it idles for tool calls.
        files: path in the workspace to text. allow: hosts that https may go to; none of them ([]) is no network. policy: the name of
        one of the service's, or the text of one. limits: Limits, or a dict with its keys. lifetime: seconds, after which the service
        itself ends it. publish: ports inside. What is not said is taken from the profile, or the service's defaults."""
        return self._new(create_body(
            profile=profile, command=command, files=files, env=env, allow=allow, policy=policy, secrets=secrets, tools=tools,
            blocked_commands=blocked_commands, limits=limits, lifetime=lifetime, keep=keep, labels=labels, publish=publish,
            rootfs=rootfs, backend=backend, image=image))


class SandboxBase:
    """See Sandbox and AsyncSandbox."""

    def __init__(self, body: Optional[Dict[str, Any]], info: Optional[SandboxInfo]):
        self._body = body
        self._info = info
        self._life = Life.OPEN if info else Life.PLANNED

    def __repr__(self) -> str:
        what = "%s %s" % (self._info.id, self._info.state) if self._info else self._life.name.lower()
        return "<%s %s>" % (type(self).__name__, what)

    @property
    def id(self) -> str:
        """Its id, as the cage command takes it too."""
        return self.info.id

    @property
    def info(self) -> SandboxInfo:
        """What was known of it when it was last asked for; refresh() asks again."""
        if self._info is None:
            raise RuntimeError("the sandbox can't be used: " + self._life.value)
        return self._info

    def _begin(self) -> Call[SandboxInfo]:
        if self._life is not Life.PLANNED or self._body is None:
            raise RuntimeError("the sandbox can't be started: " + self._life.value)
        self._life = Life.STARTING
        return _calls.create(self._body, _calls.new_key())
