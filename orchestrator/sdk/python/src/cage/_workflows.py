"""Workflows: sandboxes one after the other, for both clients."""
from __future__ import annotations

import asyncio
import time
from typing import Any, AsyncIterator, Iterator, Mapping, Optional, Sequence, TypeVar, Union

from . import _calls
from ._calls import Call
from ._spec import Step, workflow_body
from ._tries import Deadline, polls
from .models import WorkflowInfo

T = TypeVar("T")
Steps = Sequence[Union[Step, Mapping[str, Any]]]


def _call(steps: Steps, name: str, labels: Optional[Mapping[str, str]]) -> Call[WorkflowInfo]:
    return _calls.create_workflow(workflow_body(steps, name, labels), _calls.new_key())


class Workflows:
    """Of Cage."""

    def _run(self, call: Call[T]) -> T:
        raise NotImplementedError

    def start_workflow(self, steps: Steps, *, name: str = "", labels: Optional[Mapping[str, str]] = None) -> WorkflowInfo:
        """Begins one, and does not wait for it. All of it is checked before: what is wrong is Invalid, with all errors."""
        return self._run(_call(steps, name, labels))

    def run_workflow(self, steps: Steps, *, name: str = "", labels: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> WorkflowInfo:
        """Begins one, and waits for its end. One that fails is a result; check() makes it an exception."""
        return self.wait_workflow(self.start_workflow(steps, name=name, labels=labels).id, timeout)

    def wait_workflow(self, ident: str, timeout: Optional[float] = None) -> WorkflowInfo:
        """Waits until all of its steps have ended. It goes on when this is TimedOut."""
        deadline = Deadline(timeout)
        for pause in polls():
            info = self.workflow(ident)
            if info.ended:
                return info
            time.sleep(deadline.left(pause))
        raise AssertionError("polls() has no end")

    def workflow(self, ident: str) -> WorkflowInfo:
        """What is known of it now."""
        return self._run(_calls.show_workflow(ident))

    def workflows(self, *, state: Optional[str] = None, label: Optional[str] = None, page_size: int = 100) -> Iterator[WorkflowInfo]:
        """All of them, newest first and without their steps; of one state, or with the label NAME=VALUE."""
        after: Optional[str] = None
        while True:
            page = self._run(_calls.workflow_page(state, label, page_size, after))
            yield from page.items
            after = _calls.following(page, after)
            if after is None:
                return

    def artifact(self, ident: str, step: str, path: str) -> bytes:
        """What a step has handed on; bytes that have not the digest which the service has stored are a ProtocolError."""
        return self._run(_calls.artifact(ident, step, path))

    def cancel_workflow(self, ident: str) -> WorkflowInfo:
        """Ends its steps, and leaves its record and artifacts."""
        return self._run(_calls.cancel_workflow(ident))

    def delete_workflow(self, ident: str) -> WorkflowInfo:
        """Ends its steps, and removes it with its artifacts. The service has promised it when this returns."""
        return self._run(_calls.delete_workflow(ident))


class AsyncWorkflows:
    """Of AsyncCage."""

    async def _run(self, call: Call[T]) -> T:
        raise NotImplementedError

    async def start_workflow(self, steps: Steps, *, name: str = "", labels: Optional[Mapping[str, str]] = None) -> WorkflowInfo:
        """Begins one, and does not wait for it. All of it is checked before: what is wrong is Invalid, with all errors."""
        return await self._run(_call(steps, name, labels))

    async def run_workflow(self, steps: Steps, *, name: str = "", labels: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> WorkflowInfo:
        """Begins one, and waits for its end. One that fails is a result; check() makes it an exception."""
        return await self.wait_workflow((await self.start_workflow(steps, name=name, labels=labels)).id, timeout)

    async def wait_workflow(self, ident: str, timeout: Optional[float] = None) -> WorkflowInfo:
        """Waits until all of its steps have ended. It goes on when this is TimedOut."""
        deadline = Deadline(timeout)
        for pause in polls():
            info = await self.workflow(ident)
            if info.ended:
                return info
            await asyncio.sleep(deadline.left(pause))
        raise AssertionError("polls() has no end")

    async def workflow(self, ident: str) -> WorkflowInfo:
        """What is known of it now."""
        return await self._run(_calls.show_workflow(ident))

    async def workflows(self, *, state: Optional[str] = None, label: Optional[str] = None, page_size: int = 100) -> AsyncIterator[WorkflowInfo]:
        """All of them, newest first and without their steps; of one state, or with the label NAME=VALUE."""
        after: Optional[str] = None
        while True:
            page = await self._run(_calls.workflow_page(state, label, page_size, after))
            for item in page.items:
                yield item
            after = _calls.following(page, after)
            if after is None:
                return

    async def artifact(self, ident: str, step: str, path: str) -> bytes:
        """What a step has handed on; bytes that have not the digest which the service has stored are a ProtocolError."""
        return await self._run(_calls.artifact(ident, step, path))

    async def cancel_workflow(self, ident: str) -> WorkflowInfo:
        """Ends its steps, and leaves its record and artifacts."""
        return await self._run(_calls.cancel_workflow(ident))

    async def delete_workflow(self, ident: str) -> WorkflowInfo:
        """Ends its steps, and removes it with its artifacts. The service has promised it when this returns."""
        return await self._run(_calls.delete_workflow(ident))
