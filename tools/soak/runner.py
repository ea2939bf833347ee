"""Keeps so many streams open for so long, in one event loop, and looks at memory on the way."""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from collections import Counter
from typing import Any, NamedTuple

from . import asynchronous, readers, streams, throwing
from .asynchronous import Server
from .context import Context, MismatchError
from .memory import MIB, Rest, at_rest, growth, resident
from .streams import Stream

MARKS = (0.1, 0.5, 1.0)
WARM = 30  # streams for each way of reading, before the time begins
SHOWN = 20


class Mark(NamedTuple):
    """Where the run stands at a share of its time."""

    share: float
    streams: int
    events: int
    bytes: int
    thrown: int
    open: int  # streams at once, at most
    mismatches: int
    busy: int  # bytes in memory with all of them open
    rest: Rest


class Soak:
    """``mismatches`` holds the first of them in words; ``marks`` what was measured."""

    def __init__(self, package: Any, *, concurrency: int, seed: int, pool: int = 400) -> None:
        source = random.Random(seed)
        self.pool = [streams.drawn(source) for _ in range(pool)]
        self.context = Context(package, seed)
        self.concurrency = concurrency
        self.marks: list[Mark] = []
        self.mismatches: list[str] = []
        self.mismatch_count = self.streams = self._open = self._most = 0
        self.ways: Counter[str] = Counter()
        self._going = asyncio.Event()
        self._stopped = False

    async def run(self, seconds: float) -> None:
        async with Server(self.context, self.pool) as server:
            await self._warm(server)
            began = time.monotonic()
            workers = [asyncio.ensure_future(self._work(server)) for _ in range(self.concurrency)]
            for share in MARKS:
                self._going.set()
                await asyncio.sleep(max(0.0, began + seconds * share - time.monotonic()))
                busy = resident()
                await self._rest()
                self._mark(share, busy)
            self._stopped = True
            self._going.set()
            await asyncio.gather(*workers)

    def faults(self) -> list[str]:
        """Why the run is no good one."""
        found = [f"{self.mismatch_count} mismatches"] if self.mismatch_count else []
        return found + growth(self.marks[0].rest, self.marks[-1].rest)

    async def _warm(self, server: Server) -> None:
        ways = [*readers.READERS, *throwing.READERS, *asynchronous.READERS]
        for way in ways:
            for number in range(WARM):
                await self._one(way, self.pool[number * 7 % len(self.pool)], server)

    async def _work(self, server: Server) -> None:
        choice, chance = self.context.random.choice, self.context.random.random
        while True:
            await self._going.wait()
            if self._stopped:
                return
            share = chance()
            ways: Any = readers.READERS if share < 0.7 else throwing.READERS if share < 0.8 else asynchronous.READERS
            self._open += 1
            self._most = max(self._most, self._open)
            await self._one(choice(ways), choice(self.pool), server)
            self._open -= 1
            self.streams += 1

    async def _one(self, way: Any, stream: Stream, server: Server) -> None:
        self.ways[way.__name__] += 1
        try:
            if way in asynchronous.READERS:
                await way(self.context, stream, server)
                return
            for _ in way(self.context, stream):
                await asyncio.sleep(0)
        except MismatchError as error:
            self._differs(f"{way.__name__} of {stream.name}: {error}")
        except Exception:  # noqa: BLE001 (whatever it is, it should not have been raised)
            self._differs(f"{way.__name__} of {stream.name}: {traceback.format_exc()}")

    def _differs(self, words: str) -> None:
        self.mismatch_count += 1
        if len(self.mismatches) < SHOWN:
            self.mismatches.append(words)
            print(f"MISMATCH: {words}", flush=True)

    async def _rest(self) -> None:
        """Waits until no stream is open."""
        self._going.clear()
        while self._open:  # noqa: ASYNC110 (an event set by thousands of tasks would cost more)
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # the server's side of the last sockets

    def _mark(self, share: float, busy: int) -> None:
        context = self.context
        mark = Mark(
            share,
            self.streams,
            context.events,
            context.bytes,
            context.thrown,
            self._most,
            self.mismatch_count,
            busy,
            at_rest(),
        )
        self.marks.append(mark)
        print(row(mark), flush=True)


HEADER = (
    f"{'time':>5}{'streams':>12}{'events':>14}{'MiB':>9}{'thrown':>10}{'open':>6}{'peak MiB':>11}{'open MiB':>10}"
    f"{'rest MiB':>10}{'blocks':>10}{'objects':>10}{'heap MiB':>10}{'mismatches':>12}"
)


def row(mark: Mark) -> str:
    rest = mark.rest
    return (
        f"{mark.share:5.0%}{mark.streams:12,}{mark.events:14,}{mark.bytes / MIB:9,.0f}{mark.thrown:10,}{mark.open:6,}"
        f"{rest.peak / MIB:11,.1f}{mark.busy / MIB:10,.1f}{rest.resident / MIB:10,.1f}"
        f"{rest.blocks:10,}{rest.objects:10,}{rest.heap / MIB:10,.2f}{mark.mismatches:12,}"
    )
