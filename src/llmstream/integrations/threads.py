"""A synchronous source, read by a thread of its own, so that no event loop waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from ..source import Chunks

__all__ = ["Pulled"]

AHEAD = 16
"""Items that are read before they are asked for."""

GRACE = 1.0
"""Seconds that closing waits for a read that is under way."""


class Pulled:
    """An asynchronous iterator over a synchronous source. It reads at most 16 items ahead, and closes the source in the
    thread that has read it, where its ``finally`` blocks run.

    A thread of its own, since those of a pool would be used up by streams that wait. It starts with the first item, in
    a copy of the context (``contextvars``) that the iterator was made in. ``interrupt`` is what wakes up a read that
    waits, from another thread; a generator has no such thing. It is called in a thread of its own, too: it may wait as
    long as the read does.
    """

    def __init__(self, chunks: Chunks, interrupt: Callable[[], Any] | None = None) -> None:
        self._chunks = chunks
        self._interrupt = interrupt
        self._context = contextvars.copy_context()
        self._items: deque[Any] = deque()
        self._changed = threading.Condition()
        self._stopped = self._reading = self._over = False
        self._fault: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._context.run, args=(self._run,), name="llmstream-source", daemon=True).start()
        while True:
            with self._changed:
                self._waiting.clear()
                if self._items:
                    self._changed.notify()
                    return self._items.popleft()
                if self._over:
                    fault, self._fault = self._fault, None
                    break
            await self._waiting.wait()
        if fault is not None:
            raise fault
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Closes the source; returns when that is done, or after a second. A read that is still under way then is left
        to its thread, which closes the source once it ends, and which no process waits for at its exit."""
        with self._changed:
            self._stopped = True
            self._items.clear()
            self._changed.notify()
            is_read = self._reading
        if self._loop is None:
            self._chunks.close()
            return
        if is_read and self._interrupt is not None:
            threading.Thread(target=_quietly, args=(self._interrupt,), name="llmstream-interrupt", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while not self._over:
                    self._waiting.clear()
                    await self._waiting.wait()

    # In the thread

    def _run(self) -> None:
        try:
            self._pull()
        except BaseException as fault:  # noqa: BLE001 (it is raised where the items are asked for)
            self._fault = fault
        try:
            self._close()
        except BaseException as fault:  # noqa: BLE001 (as above)
            self._fault = self._fault or fault
        with self._changed:
            self._over = True
        self._tell()

    def _pull(self) -> None:
        iterator = self._chunks.iterator
        while True:
            with self._changed:
                while len(self._items) >= AHEAD and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                self._reading = True
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self._reading = False
            with self._changed:
                if not self._stopped:
                    self._items.append(item)
            self._tell()

    def _close(self) -> None:
        close = getattr(self._chunks.iterator, "close", None)
        try:
            if callable(close):
                close()
        finally:
            self._chunks.close()

    def _tell(self) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._waiting.set)


def _quietly(interrupt: Callable[[], Any]) -> None:
    with contextlib.suppress(Exception):  # the thread that reads closes the source again
        interrupt()
