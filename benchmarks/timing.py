"""Times, taken in turns: every round runs every case once, so that a busy moment hits them all.

Processor time of this thread, where the system counts it finely: while others use the core, a long run is always
interrupted and a short one is not, and wall time would favour the fast readers.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import get_clock_info, perf_counter, thread_time

__all__ = ["Case", "clock", "cores", "exponent", "interleave", "pinned"]

clock = thread_time if get_clock_info("thread_time").resolution <= 1e-6 else perf_counter
_CORES: set[int] | None = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


@dataclass
class Case:
    """``before`` is called before each run and not timed."""

    name: str
    run: Callable[[], object]
    before: Callable[[], object] = lambda: None
    times: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.times)

    @property
    def median(self) -> float:
        return sorted(self.times)[len(self.times) // 2]


def interleave(
    cases: Sequence[Case],
    rounds: int,
    budget: float,
    tick: Callable[[str], object],
    clock: Callable[[], float] = clock,
) -> None:
    """At most so many rounds; a case that used up its seconds sits the next ones out, after two at least."""
    gc.collect()
    gc.freeze()  # the streams and what is expected are no garbage to look through, for nobody
    try:
        spent = dict.fromkeys(range(len(cases)), 0.0)
        for turn in range(rounds):
            for number, case in enumerate(cases):
                if turn > 1 and spent[number] > budget:
                    continue
                tick(case.name)
                case.before()
                start = clock()
                result = case.run()
                took = clock() - start
                del result
                case.times.append(took)
                spent[number] += took
    finally:
        gc.unfreeze()


def cores() -> set[int] | None:
    """Those this process may use, before it was pinned."""
    return _CORES


@contextlib.contextmanager
def pinned(pin: bool = True) -> Iterator[None]:
    """On one core where the system can do that; with ``pin=False`` on all again."""
    if _CORES is None:
        yield
        return
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {max(_CORES)} if pin else _CORES)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """k of the fit time = c * size ** k."""
    xs, ys = [math.log(size) for size in sizes], [math.log(time) for time in times]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)
