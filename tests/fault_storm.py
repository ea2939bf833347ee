"""Very many streams at once, each with a fault that is chosen at random, over HTTP/1.1 and HTTP/2; as a script::

    python tests/fault_storm.py --library httpx2 --streams 20000 --seed 1

Every one is judged, and at the end it is told what is still held.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import os
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults import STALLED, TIMEOUT, judge
from faulty_server import PATIENCE, FaultyServer, run, serving
from faulty_streams import ANSWERS, HTTP1, HTTP2, PATHS, SECRETS, Gathering, items, text

EVERY = {**HTTP1, **HTTP2}
WORKERS = 32


@dataclass
class Figures:
    """``memory``: bytes of the process after each tenth of the streams; 0 where the system does not tell."""

    streams: int = 0
    events: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    sockets: int = 0
    descriptors: int = 0


def storm(llmstream: Any, library: str, streams: int, seed: int) -> Figures:
    """Reads so many streams; raises AssertionError for the first that is read wrongly."""
    figures = Figures()
    with serving() as server:
        server.answers = ANSWERS
        gc.collect()
        before = descriptors()
        run(_work(llmstream, importlib.import_module(library), streams, random.Random(seed), server, figures))
        server.until_open(0)
        gc.collect()
        figures.sockets = server.open
        figures.descriptors = descriptors() - before
    return figures


async def _work(
    llmstream: Any, library: Any, streams: int, chosen: random.Random, server: FaultyServer, figures: Figures
) -> None:
    waiting = iter(range(1, streams + 1))

    async def worker() -> None:
        """Has connections of its own, since what ends one of HTTP/2 ends all streams on it."""
        options = {"verify": False, "trust_env": False}
        async with (
            library.AsyncClient(**options) as first,
            library.AsyncClient(**options, http1=False, http2=True) as second,
        ):
            for number in waiting:
                name = chosen.choice([*EVERY])
                client = second if name in HTTP2 else first
                await _one(
                    llmstream, library, client, name, chosen.choice(("aiter_events", "aiter_text")), server, figures
                )
                if number % max(streams // 10, 1) == 0:
                    figures.memory.append(memory())

    async with asyncio.TaskGroup() as group:
        for _ in range(min(WORKERS, streams)):
            group.create_task(worker())


async def _one(
    llmstream: Any, library: Any, client: Any, name: str, reader: str, server: FaultyServer, figures: Figures
) -> None:
    fault = EVERY[name]
    expected = text if reader == "aiter_text" else items
    gathering = Gathering(expected, fault.events, lambda: None)
    outcome = gathering.outcome
    patience = TIMEOUT if fault.verdict == STALLED else PATIENCE
    request = client.build_request(
        "GET", server.url(PATHS[name], go=True), timeout=library.Timeout(PATIENCE, read=patience)
    )
    try:
        response = await client.send(request, stream=True)
        async with getattr(llmstream, reader)(response) as stream:
            async for found in stream:
                figures.events += 1
                gathering.text(found) if reader == "aiter_text" else gathering.event(found)
        outcome.complete = stream.parser.complete
    except Exception as error:  # noqa: BLE001 (it is judged)
        outcome.error = error
        figures.errors[type(error).__name__] += 1
    roots = (library.__name__, "h2", "llmstream")
    try:
        judge(
            fault,
            outcome,
            expected,
            is_known=lambda error: type(error).__module__.startswith(roots),
            is_timeout=lambda error: isinstance(error, library.TimeoutException),
            secrets=SECRETS,
            exact=False,
        )
    except AssertionError as error:
        raise AssertionError(f"{name}, {reader}: {outcome}") from error
    figures.streams += 1
    figures.verdicts[fault.verdict] += 1


def memory() -> int:
    """Bytes that the process has in memory."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    """Files and sockets that are open."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=("httpx", "httpx2"), default="httpx2")
    parser.add_argument("--streams", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()
    figures = storm(importlib.import_module("llmstream"), given.library, given.streams, given.seed)
    print(f"{figures.streams} streams, {figures.events} events or texts, {time.monotonic() - began:.0f} s")
    print(f"verdicts {dict(figures.verdicts)}; errors {dict(figures.errors)}")
    print(f"open at the end: {figures.sockets} connections, {figures.descriptors} descriptors more than before")
    print("memory, MB, at each tenth:", *(f"{size / 2**20:.1f}" for size in figures.memory))


if __name__ == "__main__":
    sys.exit(main())
