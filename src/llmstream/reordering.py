"""Order for those who buffer: events that arrive in another order than they were sent (draft, section 5.2.1).

A stream of Server-Sent Events is in order, and a parser never reorders. But events that were stored one by one, or
came over several connections, may be put back in the order of their ``seq``.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush

from . import fields
from .rules import MAX_INTEGER, MAX_VIOLATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._backend import Event

__all__ = ["ReorderBuffer", "reorder"]

_MAX_RUNS = 10_000
"""Runs of numbers given up that are remembered, to tell what is late from what is repeated."""


def reorder(events: Iterable[Event], window: int = 64) -> Iterator[Event]:
    """The events in the order of their ``seq``, as soon as that is known; at most ``window`` of them wait for one that
    is missing. ``ReorderBuffer`` says what becomes of those that are missing, late or repeated."""
    buffer = ReorderBuffer(window)
    for event in events:
        yield from buffer.push(event)
    yield from buffer.close()


class ReorderBuffer:
    """Puts events back in order, without reading them from anywhere: ``push`` one, get those that are due.

    An event whose turn has come leaves at once. One that is ahead waits for the missing ones before it, until more
    than ``window`` events wait: then the missing ones are given up, and the run of them is noted in ``gaps``. An event
    without ``seq`` cannot be put in order and leaves at once; where such events may account for missing numbers, no
    gap is noted (as a parser does), though these numbers are given up too.

    Of several events with one number the first counts. The others, and what comes after it was given up, are dropped,
    and each of them is counted once, when it is pushed:

    - ``repeated``: an event with its number was pushed before, whether that was handed out, waits, or came late;
    - ``late``: none was, and its number had been given up.

    10,000 runs of numbers given up are remembered. Where there were more, an event that comes after its turn counts as
    late if its number is not above the last of a forgotten run.
    """

    __slots__ = (
        "_forgotten",
        "_gaps",
        "_late",
        "_lost",
        "_next",
        "_numbers",
        "_repeated",
        "_unread",
        "_waiting",
        "_window",
    )

    def __init__(self, window: int = 64) -> None:
        if fields.integer("window", window) < 1:
            raise ValueError("window must be at least 1")
        self._window = window
        self._waiting: dict[int, Event] = {}
        self._numbers: list[int] = []  # a heap of those that wait
        self._next = 0
        self._unread = 0
        self._gaps: list[tuple[int, int]] = []
        self._lost: list[tuple[int, int]] = []  # rising runs of numbers given up, without those that came late
        self._forgotten = -1  # the last number of the runs that are no longer among them
        self._late = 0
        self._repeated = 0

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The first and the last number of every run of events that was given up, the first 1,000."""
        return list(self._gaps)

    @property
    def late(self) -> int:
        """How many events came after their numbers had been given up, each the first with its number."""
        return self._late

    @property
    def repeated(self) -> int:
        """How many events had a number that had been there before."""
        return self._repeated

    def push(self, event: Event) -> list[Event]:
        """Takes an event in and returns those whose turn has come."""
        seq = event.seq
        if seq is None:
            self._unread += 1
            return [event]
        if seq < self._next:
            self._drop(seq)
            return []
        if seq == self._next:
            self._next += 1
            self._unread = 0
            return [event, *self._due()] if self._waiting else [event]
        if seq in self._waiting:
            self._repeated += 1
            return []
        self._waiting[seq] = event
        heappush(self._numbers, seq)
        return self._give_up() if len(self._waiting) > self._window else []

    def close(self) -> list[Event]:
        """Ends the stream: what still waits, in order."""
        found: list[Event] = []
        while self._waiting:
            found += self._give_up()
        return found

    def _drop(self, seq: int) -> None:
        """Counts an event whose turn has passed."""
        if seq <= self._forgotten:
            self._late += 1
            return
        at = bisect_right(self._lost, (seq, MAX_INTEGER)) - 1
        first, last = self._lost[at] if at >= 0 else (0, -1)
        if seq > last:
            self._repeated += 1
            return
        self._late += 1
        self._lost[at : at + 1] = [run for run in ((first, seq - 1), (seq + 1, last)) if run[0] <= run[1]]
        self._forget()

    def _due(self) -> list[Event]:
        """What waits and has its turn now."""
        found: list[Event] = []
        while self._numbers and self._numbers[0] == self._next:
            found.append(self._waiting.pop(heappop(self._numbers)))
            self._next += 1
        return found

    def _give_up(self) -> list[Event]:
        """Waits no longer for what is missing before the first event that waits."""
        first = self._next + self._unread
        last = self._numbers[0] - 1
        self._lost.append((self._next, last))
        self._forget()
        self._next = last + 1
        if first <= last and len(self._gaps) < MAX_VIOLATIONS:
            self._gaps.append((first, last))
        self._unread = 0
        return self._due()

    def _forget(self) -> None:
        if len(self._lost) > _MAX_RUNS:
            self._forgotten = self._lost.pop(0)[1]
