"""The client for asyncio: the same as Cage, with await."""
from __future__ import annotations

import asyncio
from datetime import datetime
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Literal, Optional, Type, TypeVar, Union, overload

from . import _calls
from ._base import ClientBase, Life, SandboxBase, log
from ._calls import Call
from ._follow import Follower, LogFollower, OutputFollower
from ._async_transport import AsyncExchange, surely
from ._tries import READY_SECONDS, Deadline, Patience, Tries, polls
from ._workflows import AsyncWorkflows
from .errors import ApiError, Broken, CageError, Conflict, NotFound, SandboxFailed, ServerError, api_error
from .models import Decision, Entry, ExecResult, Health, Output, SandboxInfo, Tool, UsageRow

T = TypeVar("T")


class AsyncCage(ClientBase["AsyncSandbox"], AsyncWorkflows):
    """A client of cage serve for asyncio. As a context manager it destroys, at its end,
    each sandbox that an async with statement opened and has not left."""

    async def __aenter__(self) -> AsyncCage:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self._close(quiet=error is not None)

    async def close(self) -> None:
        """Destroys the sandboxes that an async with statement opened and has not left. There is no connection that would have to be closed."""
        await self._close(quiet=False)

    async def _close(self, quiet: bool) -> None:
        failed: Optional[CageError] = None
        for box in list(self._open.values()):
            try:
                await box._leave(quiet)
            except CageError as error:
                failed = error
        if failed:
            raise failed

    def _new(self, body: Dict[str, Any]) -> AsyncSandbox:
        return AsyncSandbox(self, body)

    # ---- asking

    async def _once(self, call: Call[T], tries: Tries) -> T:
        tries.begin()
        exchange = AsyncExchange(self._place, tries.deadline, tries.quiet, call.most)
        try:
            await exchange.connect()
            await exchange.send(call.method, call.target, call.headers(), call.body)
            head = await exchange.head()
            body = b"".join([piece async for piece in exchange.pieces()])
        finally:
            exchange.close()
        if head.status >= 300:
            raise api_error(head.status, head.headers, body)
        return call.result(head.headers, body)

    async def _run(self, call: Call[T], tries: Optional[Tries] = None) -> T:
        tries = tries or self._tries(call)
        while True:
            try:
                return await self._once(call, tries)
            except CageError as error:
                pause = tries.pause(error)
            await asyncio.sleep(pause)

    async def _open_stream(self, exchange: AsyncExchange, target: str) -> AsyncIterator[bytes]:
        await exchange.connect()
        await exchange.send("GET", target, {}, None)
        head = await exchange.head()
        if head.status >= 300:
            raise api_error(head.status, head.headers, b"".join([piece async for piece in exchange.pieces()]))
        return exchange.pieces()

    async def _follow(self, follower: Follower[T], timeout: Optional[float]) -> AsyncIterator[T]:
        patience, deadline = Patience(self._retries), Deadline(timeout)
        while True:
            follower.begin()
            exchange = AsyncExchange(self._place, deadline, self._timeout, _calls.MAX_STREAM)
            try:
                async for data in await self._open_stream(exchange, follower.target):
                    for item in follower.feed(data):
                        patience.reset()
                        yield item
                if follower.over:
                    return
                raise Broken("the stream ended before its end was told")
            except CageError as error:
                pause = patience.pause(error)
            finally:
                exchange.close()
            await asyncio.sleep(deadline.left(pause))

    # ---- the service

    async def health(self) -> Health:
        """Whether the service is there, and how much it has to do."""
        return await self._run(_calls.health())

    async def tools(self) -> List[Tool]:
        """The tools that sandboxes can have."""
        return await self._run(_calls.tools())

    async def usage(self, by: Optional[str] = None, since: Optional[datetime] = None) -> List[UsageRow]:
        """What sandboxes used and cost, summed up for each value of the label `by`."""
        return await self._run(_calls.usage(by, since))

    async def list(self, *, state: Optional[str] = None, label: Optional[str] = None, page_size: int = 100) -> AsyncIterator[SandboxInfo]:
        """All sandboxes, newest first, page by page as they are taken; of one state, or with the label NAME=VALUE."""
        after: Optional[str] = None
        while True:
            page = await self._run(_calls.page(state, label, page_size, after))
            for item in page.items:
                yield item
            after = _calls.following(page, after)
            if after is None:
                return

    async def get(self, ident: str) -> AsyncSandbox:
        """One that is there already. In an async with statement it is destroyed like any other."""
        info = await self._run(_calls.show(ident))
        return AsyncSandbox(self, None, info)


class AsyncSandbox(SandboxBase):
    """A sandbox of cage serve: made and destroyed by an async with statement, or by start() and destroy()."""

    def __init__(self, cage: AsyncCage, body: Optional[Dict[str, Any]], info: Optional[SandboxInfo] = None):
        super().__init__(body, info)
        self._cage = cage

    # ---- its life

    async def __aenter__(self) -> AsyncSandbox:
        if self._life is not Life.OPEN:
            await self.start()
        self._cage._open[id(self)] = self
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self._leave(quiet=error is not None)

    async def start(self, timeout: float = READY_SECONDS) -> AsyncSandbox:
        """Makes it, and waits until its command runs. It lives on until destroy(), or its lifetime is over. What fails or is
        interrupted here leaves nothing behind, also where the service's answer got lost."""
        call = self._begin()
        tries = self._cage._tries(call)
        try:
            await self._tell(call, tries)
            await self.ready(timeout)
        except BaseException:
            await surely(lambda: self._undo(call, tries))
            raise
        self._life = Life.OPEN
        return self

    async def ready(self, timeout: float = READY_SECONDS) -> SandboxInfo:
        """Waits until its command runs, or has run. One that will never is SandboxFailed."""
        info = await self._poll(lambda now: not now.waits, timeout)
        if info.ended and info.started_at is None:
            raise SandboxFailed(info)
        return info

    async def wait(self, timeout: Optional[float] = None) -> SandboxInfo:
        """Waits until it has ended, and tells how: state, exit_code, usage. One that idles ends when it is stopped, or its lifetime is over."""
        return await self._poll(lambda now: now.ended, timeout)

    async def stop(self) -> SandboxInfo:
        """Ends its command, and leaves its record, output and log."""
        return await self._tell(_calls.stop(self.id))

    async def destroy(self, wait: bool = False, timeout: float = READY_SECONDS) -> None:
        """Ends it, and removes everything it wrote. The service has promised it when this returns; wait: until it is done.
        One that is not there any more is destroyed."""
        try:
            call = _calls.delete(self.id)
            await self._tell(call, self._cage._cleanup_tries(call))
            if wait:
                await self._poll(lambda now: now.state == "deleted", timeout)
        except NotFound:
            pass
        self._life = Life.DESTROYED
        self._cage._open.pop(id(self), None)

    async def refresh(self) -> SandboxInfo:
        """What is known of it now."""
        return await self._tell(_calls.show(self.id))

    async def reload(self, policy: str) -> SandboxInfo:
        """Gives it a new policy, as text, without a restart. A bad one is Invalid, and the old one stays in force."""
        return await self._tell(_calls.reload(self.id, policy))

    async def _tell(self, call: Call[SandboxInfo], tries: Optional[Tries] = None) -> SandboxInfo:
        info = await self._cage._run(call, tries)
        self._info = info
        return info

    async def _poll(self, until: Callable[[SandboxInfo], bool], timeout: Optional[float]) -> SandboxInfo:
        deadline = Deadline(timeout)
        for pause in polls():
            info = await self.refresh()
            if until(info):
                break
            await asyncio.sleep(deadline.left(pause))
        return info

    # ---- its end, whatever happens

    async def _leave(self, quiet: bool) -> None:
        """quiet: another exception is under way, which is not to be covered."""
        if self._life is not Life.OPEN:
            return
        try:
            await surely(self.destroy)
        except CageError as error:
            if not quiet:
                raise
            log.warning("%s could not be destroyed: %s", self.id, error)

    async def _undo(self, call: Call[SandboxInfo], tries: Tries) -> None:
        """Of a start that did not come to its end. Where its answer got lost, the same key gets it again."""
        try:
            if self._info is None and tries.doubt:
                await self._find(call)
            if self._info is not None:
                await self.destroy()
        except CageError as error:
            log.warning("a sandbox may be left until its lifetime is over: %s", error)
        self._life = Life.DESTROYED

    async def _find(self, call: Call[SandboxInfo]) -> None:
        """What the same create is answered with; a refusal that does not depend on the moment says that nothing was made."""
        try:
            await self._tell(call, self._cage._cleanup_tries(call))
        except (Conflict, ServerError):
            raise
        except ApiError as error:
            if error.status == 503:
                raise

    # ---- inside

    async def exec(self, *command: str, workdir: Optional[str] = None, timeout: Optional[int] = None) -> ExecResult:
        """Runs a command inside, by its shell. One word may be a whole script; several stay the words that they are. timeout:
        seconds after which it is ended (60). A command that fails is no exception; result.check() makes it one."""
        return await self._cage._run(_calls.execute(self.id, command, workdir, timeout))

    async def tool(self, name: str, *, timeout: Optional[int] = None, **arguments: Any) -> Dict[str, Any]:
        """Makes a tool call inside, such as tool("http_request", url="https://example.com/"), and returns its result.
        What the sandbox may not do is Denied."""
        return await self._cage._run(_calls.tool(self.id, name, arguments, timeout))

    async def read(self, path: str) -> bytes:
        """A file of the workspace."""
        return await self._cage._run(_calls.read(self.id, path))

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """A file of the workspace, as text."""
        return (await self.read(path)).decode(encoding)

    async def write(self, path: str, content: Union[str, bytes]) -> None:
        """Writes a file of the workspace, whole; text is written as UTF-8."""
        await self._cage._run(_calls.write(self.id, path, content))

    async def list(self, path: str = ".") -> List[Entry]:
        """The names in a directory of the workspace."""
        return await self._cage._run(_calls.entries(self.id, path))

    # ---- what it says

    def logs(self, *, source: str = "proxy", follow: bool = False, timeout: Optional[float] = None) -> AsyncIterator[Decision]:
        """The decision log of its proxy, or of source "dns"; follow: until the sandbox has ended, or so many seconds are over."""
        return self._cage._follow(LogFollower(self.id, source, follow), timeout)

    @overload
    def output(self, *, stream: str = ..., follow: Literal[False] = ..., timeout: Optional[float] = ...) -> Awaitable[bytes]: ...

    @overload
    def output(self, *, stream: str = ..., follow: Literal[True], timeout: Optional[float] = ...) -> AsyncIterator[Output]: ...

    def output(self, *, stream: str = "both", follow: bool = False, timeout: Optional[float] = None) -> Union[Awaitable[bytes], AsyncIterator[Output]]:
        """What its command has written so far, as bytes (await it), of stdout, stderr or both. follow: pieces as they come, until the sandbox
        has ended, or so many seconds are over."""
        if follow:
            return self._cage._follow(OutputFollower(self.id, stream), timeout)
        return self._cage._run(_calls.output(self.id, stream))
