"""The client that waits for each answer."""
from __future__ import annotations

import time
from datetime import datetime
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Literal, Optional, Type, TypeVar, Union, overload

from . import _calls
from ._base import ClientBase, Life, SandboxBase, log
from ._calls import Call
from ._follow import Follower, LogFollower, OutputFollower
from ._transport import Exchange
from ._tries import READY_SECONDS, Deadline, Patience, Tries, polls
from ._workflows import Workflows
from .errors import ApiError, Broken, CageError, Conflict, NotFound, SandboxFailed, ServerError, api_error
from .models import Decision, Entry, ExecResult, Health, Output, SandboxInfo, Tool, UsageRow

T = TypeVar("T")


class Cage(ClientBase["Sandbox"], Workflows):
    """A client of cage serve. As a context manager it destroys, at its end,
    each sandbox that a with statement opened and has not left."""

    def __enter__(self) -> Cage:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._close(quiet=error is not None)

    def close(self) -> None:
        """Destroys the sandboxes that a with statement opened and has not left. There is no connection that would have to be closed."""
        self._close(quiet=False)

    def _close(self, quiet: bool) -> None:
        failed: Optional[CageError] = None
        for box in list(self._open.values()):
            try:
                box._leave(quiet)
            except CageError as error:
                failed = error
        if failed:
            raise failed

    def _new(self, body: Dict[str, Any]) -> Sandbox:
        return Sandbox(self, body)

    # ---- asking

    def _once(self, call: Call[T], tries: Tries) -> T:
        tries.begin()
        with Exchange(self._place, tries.deadline, tries.quiet, call.most) as exchange:
            exchange.connect()
            exchange.send(call.method, call.target, call.headers(), call.body)
            head = exchange.head()
            body = b"".join(exchange.pieces())
        if head.status >= 300:
            raise api_error(head.status, head.headers, body)
        return call.result(head.headers, body)

    def _run(self, call: Call[T], tries: Optional[Tries] = None) -> T:
        tries = tries or self._tries(call)
        while True:
            try:
                return self._once(call, tries)
            except CageError as error:
                pause = tries.pause(error)
            time.sleep(pause)

    def _stream(self, target: str, deadline: Deadline) -> Iterator[bytes]:
        with Exchange(self._place, deadline, self._timeout, _calls.MAX_STREAM) as exchange:
            exchange.connect()
            exchange.send("GET", target, {}, None)
            head = exchange.head()
            if head.status >= 300:
                raise api_error(head.status, head.headers, b"".join(exchange.pieces()))
            yield from exchange.pieces()

    def _follow(self, follower: Follower[T], timeout: Optional[float]) -> Iterator[T]:
        patience, deadline = Patience(self._retries), Deadline(timeout)
        while True:
            follower.begin()
            try:
                for data in self._stream(follower.target, deadline):
                    for item in follower.feed(data):
                        patience.reset()
                        yield item
                if follower.over:
                    return
                raise Broken("the stream ended before its end was told")
            except CageError as error:
                pause = patience.pause(error)
            time.sleep(deadline.left(pause))

    # ---- the service

    def health(self) -> Health:
        """Whether the service is there, and how much it has to do."""
        return self._run(_calls.health())

    def tools(self) -> List[Tool]:
        """The tools that sandboxes can have."""
        return self._run(_calls.tools())

    def usage(self, by: Optional[str] = None, since: Optional[datetime] = None) -> List[UsageRow]:
        """What sandboxes used and cost, summed up for each value of the label `by`."""
        return self._run(_calls.usage(by, since))

    def list(self, *, state: Optional[str] = None, label: Optional[str] = None, page_size: int = 100) -> Iterator[SandboxInfo]:
        """All sandboxes, newest first, page by page as they are taken; of one state, or with the label NAME=VALUE."""
        after: Optional[str] = None
        while True:
            page = self._run(_calls.page(state, label, page_size, after))
            yield from page.items
            after = _calls.following(page, after)
            if after is None:
                return

    def get(self, ident: str) -> Sandbox:
        """One that is there already. In a with statement it is destroyed like any other."""
        return Sandbox(self, None, self._run(_calls.show(ident)))


class Sandbox(SandboxBase):
    """A sandbox of cage serve: made and destroyed by a with statement, or by start() and destroy()."""

    def __init__(self, cage: Cage, body: Optional[Dict[str, Any]], info: Optional[SandboxInfo] = None):
        super().__init__(body, info)
        self._cage = cage

    # ---- its life

    def __enter__(self) -> Sandbox:
        if self._life is not Life.OPEN:
            self.start()
        self._cage._open[id(self)] = self
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._leave(quiet=error is not None)

    def start(self, timeout: float = READY_SECONDS) -> Sandbox:
        """Makes it, and waits until its command runs. It lives on until destroy(), or its lifetime is over. What fails or is
        interrupted here leaves nothing behind, also where the service's answer got lost."""
        call = self._begin()
        tries = self._cage._tries(call)
        try:
            self._tell(call, tries)
            self.ready(timeout)
        except BaseException:
            self._surely(lambda: self._undo(call, tries))
            raise
        self._life = Life.OPEN
        return self

    def ready(self, timeout: float = READY_SECONDS) -> SandboxInfo:
        """Waits until its command runs, or has run. One that will never is SandboxFailed."""
        info = self._poll(lambda now: not now.waits, timeout)
        if info.ended and info.started_at is None:
            raise SandboxFailed(info)
        return info

    def wait(self, timeout: Optional[float] = None) -> SandboxInfo:
        """Waits until it has ended, and tells how: state, exit_code, usage. One that idles ends when it is stopped, or its lifetime is over."""
        return self._poll(lambda now: now.ended, timeout)

    def stop(self) -> SandboxInfo:
        """Ends its command, and leaves its record, output and log."""
        return self._tell(_calls.stop(self.id))

    def destroy(self, wait: bool = False, timeout: float = READY_SECONDS) -> None:
        """Ends it, and removes everything it wrote. The service has promised it when this returns; wait: until it is done.
        One that is not there any more is destroyed."""
        try:
            call = _calls.delete(self.id)
            self._tell(call, self._cage._cleanup_tries(call))
            if wait:
                self._poll(lambda now: now.state == "deleted", timeout)
        except NotFound:
            pass
        self._life = Life.DESTROYED
        self._cage._open.pop(id(self), None)

    def refresh(self) -> SandboxInfo:
        """What is known of it now."""
        return self._tell(_calls.show(self.id))

    def reload(self, policy: str) -> SandboxInfo:
        """Gives it a new policy, as text, without a restart. A bad one is Invalid, and the old one stays in force."""
        return self._tell(_calls.reload(self.id, policy))

    def _tell(self, call: Call[SandboxInfo], tries: Optional[Tries] = None) -> SandboxInfo:
        info = self._cage._run(call, tries)
        self._info = info
        return info

    def _poll(self, until: Callable[[SandboxInfo], bool], timeout: Optional[float]) -> SandboxInfo:
        deadline = Deadline(timeout)
        for pause in polls():
            info = self.refresh()
            if until(info):
                break
            time.sleep(deadline.left(pause))
        return info

    # ---- its end, whatever happens

    @staticmethod
    def _surely(work: Callable[[], None]) -> None:
        """Once more where it was interrupted itself."""
        try:
            work()
        except Exception:
            raise
        except BaseException:
            work()
            raise

    def _leave(self, quiet: bool) -> None:
        """quiet: another exception is under way, which is not to be covered."""
        if self._life is not Life.OPEN:
            return
        try:
            self._surely(self.destroy)
        except CageError as error:
            if not quiet:
                raise
            log.warning("%s could not be destroyed: %s", self.id, error)

    def _undo(self, call: Call[SandboxInfo], tries: Tries) -> None:
        """Of a start that did not come to its end. Where its answer got lost, the same key gets it again."""
        try:
            if self._info is None and tries.doubt:
                self._find(call)
            if self._info is not None:
                self.destroy()
        except CageError as error:
            log.warning("a sandbox may be left until its lifetime is over: %s", error)
        self._life = Life.DESTROYED

    def _find(self, call: Call[SandboxInfo]) -> None:
        """What the same create is answered with; a refusal that does not depend on the moment says that nothing was made."""
        try:
            self._tell(call, self._cage._cleanup_tries(call))
        except (Conflict, ServerError):
            raise
        except ApiError as error:
            if error.status == 503:
                raise

    # ---- inside

    def exec(self, *command: str, workdir: Optional[str] = None, timeout: Optional[int] = None) -> ExecResult:
        """Runs a command inside, by its shell. One word may be a whole script; several stay the words that they are. timeout:
        seconds after which it is ended (60). A command that fails is no exception; result.check() makes it one."""
        return self._cage._run(_calls.execute(self.id, command, workdir, timeout))

    def tool(self, name: str, *, timeout: Optional[int] = None, **arguments: Any) -> Dict[str, Any]:
        """Makes a tool call inside, such as tool("http_request", url="https://example.com/"), and returns its result.
        What the sandbox may not do is Denied."""
        return self._cage._run(_calls.tool(self.id, name, arguments, timeout))

    def read(self, path: str) -> bytes:
        """A file of the workspace."""
        return self._cage._run(_calls.read(self.id, path))

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """A file of the workspace, as text."""
        return self.read(path).decode(encoding)

    def write(self, path: str, content: Union[str, bytes]) -> None:
        """Writes a file of the workspace, whole; text is written as UTF-8."""
        self._cage._run(_calls.write(self.id, path, content))

    def list(self, path: str = ".") -> List[Entry]:
        """The names in a directory of the workspace."""
        return self._cage._run(_calls.entries(self.id, path))

    # ---- what it says

    def logs(self, *, source: str = "proxy", follow: bool = False, timeout: Optional[float] = None) -> Iterator[Decision]:
        """The decision log of its proxy, or of source "dns"; follow: until the sandbox has ended, or so many seconds are over."""
        return self._cage._follow(LogFollower(self.id, source, follow), timeout)

    @overload
    def output(self, *, stream: str = ..., follow: Literal[False] = ..., timeout: Optional[float] = ...) -> bytes: ...

    @overload
    def output(self, *, stream: str = ..., follow: Literal[True], timeout: Optional[float] = ...) -> Iterator[Output]: ...

    def output(self, *, stream: str = "both", follow: bool = False, timeout: Optional[float] = None) -> Union[bytes, Iterator[Output]]:
        """What its command has written so far, as bytes, of stdout, stderr or both. follow: pieces as they come, until the sandbox
        has ended, or so many seconds are over."""
        if follow:
            return self._cage._follow(OutputFollower(self.id, stream), timeout)
        return self._cage._run(_calls.output(self.id, stream))
