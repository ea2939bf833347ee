"""Coroutines driven by hand, so that they can be cancelled at each of their awaits."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from typing import Any


class Tick:
    """Something to wait for: one step of whoever drives the coroutine."""

    def __await__(self) -> Generator[Any, None, None]:
        yield self


@contextlib.contextmanager
def generators() -> Iterator[list[AsyncGenerator[Any, Any]]]:
    """The asynchronous generators that were begun and dropped before they came to their end."""
    dropped: list[AsyncGenerator[Any, Any]] = []
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(before.firstiter or (lambda _: None), dropped.append)
    try:
        yield dropped
    finally:
        sys.set_asyncgen_hooks(*before)


def drive(coroutine: Coroutine[Any, Any, Any], at: int = 0, again: int = 0) -> tuple[int, int]:
    """Steps a coroutine to its end and cancels it at its await ``at``, and then once more at the await ``again`` after
    that; 0: never. The numbers of awaits before and after the first cancellation."""
    awaits, after = 0, 0
    cancelled = False
    with contextlib.suppress(StopIteration, asyncio.CancelledError):
        coroutine.send(None)
        while True:
            after += cancelled
            awaits += not cancelled
            if (not cancelled and awaits == at) or (cancelled and after == again):
                cancelled = True
                coroutine.throw(asyncio.CancelledError())
            else:
                coroutine.send(None)
    return awaits, after


def everywhere(check: Callable[[int, int], tuple[int, int]]) -> int:
    """Calls ``check`` with each await to cancel at, and with each that comes after that one; the number of calls.

    ``check`` takes both, as ``drive`` does, and gives what that gives.
    """
    calls, at = 0, 0
    while True:
        at += 1
        awaits, after = check(at, 0)
        calls += 1
        if awaits < at:  # it has come to its end
            return calls
        for again in range(1, after + 1):
            check(at, again)
            calls += 1


class Stepped:
    """For a coroutine that needs a loop of asyncio: an awaitable that cancels its own task at its await ``at``."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], at: int) -> None:
        self.awaits = 0
        self._coroutine = coroutine
        self._at = at

    def __await__(self) -> Generator[Any, None, Any]:
        fault: BaseException | None = None
        while True:
            try:
                waited = self._coroutine.send(None) if fault is None else self._coroutine.throw(fault)
            except StopIteration as stop:
                return stop.value
            fault = None
            self.awaits += 1
            if self.awaits == self._at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                yield waited
            except BaseException as error:  # noqa: BLE001 (it goes on to the coroutine)
                fault = error


async def cancelled_at(coroutine: Coroutine[Any, Any, Any], at: int) -> bool:
    """Runs a coroutine as a task that is cancelled at its await ``at``; whether it came so far. No task is left."""
    stepped = Stepped(coroutine, at)

    async def main() -> None:
        await stepped

    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.create_task(main())
    for _ in range(3):
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left
    return stepped.awaits >= at
