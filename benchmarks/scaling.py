"""How time grows: with the size of one event, with the number of events, with the number of parsers and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any

from . import twins
from .readers import table
from .readers.schema import SCHEMAS
from .streams import build, slices
from .streams.long import many_lines, one_line
from .timing import Case, clock, exponent, interleave, pinned

__all__ = ["event_size", "numbers", "round_robin", "threads", "versus"]

CHUNK = 64
MIB = 1 << 20
Tick = Callable[[str], object]


def event_size(twin: str, sizes: list[int], rounds: int, tick: Tick) -> dict[str, Any]:
    """One event in chunks of 64 bytes, as one line and as many: seconds, the worst doubling and the exponent."""
    found: dict[str, Any] = {}
    for form, make in (("one line", one_line), ("many lines", many_lines)):
        cases = []
        for size in sizes:
            event = make(size)
            cases.append(feeding(twin, f"{form} {size / MIB:g} MiB", slices(event, CHUNK), len(event)))
        interleave(cases, rounds, 10, tick)
        times = [case.best for case in cases]
        growth = [after / before for before, after in pairwise(times)]
        found[form] = {
            "sizes": sizes,
            "seconds": times,
            "worst_doubling": max(growth),
            "exponent": exponent(sizes, times),
        }
    return found


def feeding(twin: str, name: str, chunks: list[bytes], size: int) -> Case:
    package = twins.package(twin)

    def run() -> None:
        feed = package.Parser().feed
        events = []
        for chunk in chunks:
            events += feed(chunk)
        if len(events) != 1 or len(events[0].raw) < size - 100 - size // 8:
            raise AssertionError(f"{name}: not the one event that was written")

    return Case(name, run, lambda: twins.activate(twin))


def versus(readers: list[str], sizes: list[int], limit: float, tick: Tick) -> dict[str, dict[int, float]]:
    """Reader -> size of one event -> seconds, in chunks of 64 bytes. A reader stops where it took over ``limit``."""
    found: dict[str, dict[int, float]] = {}
    known = table()
    for name in readers:
        run = None if known[name].missing() else known[name].ready("kept", SCHEMAS["draft"])
        if run is None:
            continue
        found[name] = {}
        for size in sizes:
            chunks = slices(one_line(size), CHUNK)
            tick(f"{name} {size >> 10} KiB")
            took = []
            for _ in range(3):
                start = clock()
                result = run.read(chunks)
                took.append(clock() - start)
                if took[-1] > limit / 3:
                    break
            view = run.view(result)
            if view is None or len(view.text) < size - 200:
                raise AssertionError(f"{name}: not the one event that was written")
            found[name][size] = min(took)
            if min(took) > limit:
                break
    return found


def numbers(twin: str, counts: list[int], rounds: int, tick: Tick) -> dict[str, Any]:
    """Streams of more and more events, 16 KiB chunks."""
    run = table()[twin].ready("kept", SCHEMAS["draft"])
    assert run is not None
    cases = []
    for count in counts:
        stream = build("draft-mixed", count)
        assert stream is not None
        chunks = stream.chunks(16384)[0]
        cases.append(Case(f"{count} events", partial(run.read, chunks), lambda: twins.activate(twin)))
    interleave(cases, rounds, 10, tick)
    times = [case.best for case in cases]
    return {"events": counts, "seconds": times, "exponent": exponent(counts, times)}


def round_robin(twin: str, parsers: int, events: int, tick: Tick) -> dict[str, float]:
    """Nanoseconds an event, one a chunk: many parsers in turns, and one after the other."""
    package = twins.package(twin)
    stream = build("draft-mixed", events)
    assert stream is not None
    chunks = stream.bodies[0][:events]
    tick(f"{parsers} parsers in turns")
    feeds = [package.Parser().feed for _ in range(parsers)]
    start = clock()
    for chunk in chunks:
        for feed in feeds:
            feed(chunk)
    turns = clock() - start
    for feed in feeds[:: max(1, parsers // 100)]:
        if feed.__self__.next_seq != events:
            raise AssertionError("a parser among many missed an event")
    feeds = [package.Parser().feed for _ in range(parsers)]
    tick(f"{parsers} parsers, one after the other")
    start = clock()
    for feed in feeds:
        for chunk in chunks:
            feed(chunk)
    apart = clock() - start
    each = 1e9 / parsers / events
    return {"parsers": parsers, "events": events, "in_turns_ns": turns * each, "apart_ns": apart * each}


def threads(twin: str, events: int, rounds: int, tick: Tick) -> dict[str, float]:
    """``parse`` of two large bodies: one after the other, and in two threads on all cores."""
    package = twins.package(twin)
    stream = build("draft-mixed", events)
    long = build("long-escaped", 0)
    assert stream is not None
    assert long is not None
    found = {}
    for name, body in (("small_events", b"".join(stream.bodies[0])), ("long_strings", b"".join(long.bodies[0]))):

        def work(body: bytes = body) -> None:
            package.parse(body)

        def both(work: Callable[[], None] = work) -> None:
            pair = [threading.Thread(target=work) for _ in range(2)]
            for thread in pair:
                thread.start()
            for thread in pair:
                thread.join()

        def apart(work: Callable[[], None] = work) -> None:
            work()
            work()

        activate = lambda: twins.activate(twin)  # noqa: E731
        cases = [Case("one after the other", apart, activate), Case("two threads", both, activate)]
        with pinned(False):
            interleave(cases, rounds, 5, tick, perf_counter)
        found[name] = cases[0].best / cases[1].best
    return found
