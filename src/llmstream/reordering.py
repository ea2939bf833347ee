"""Order for those who buffer: events that arrive in another order than they were sent (draft, section 5.2.1).

A stream of Server-Sent Events is in order, and a parser never reorders. But events that were stored one by one, or
came over several connections, may be put back in the order of their ``seq``.
"""

from __future__ import annotations

from heapq import heappop, heappush

from . import fields
from .rules import MAX_VIOLATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._backend import Event

__all__ = ["ReorderBuffer", "reorder"]


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
    that comes after its turn is dropped: counted in ``repeated`` if its number has been handed out or waits already
    (the first one counts), else in ``late``. An event without ``seq`` cannot be put in order and leaves at once; where
    such events may account for missing numbers, no gap is noted (as a parser does).
    """

    __slots__ = ("_count", "_gaps", "_late", "_next", "_repeated", "_unread", "_waiting", "_window")

    def __init__(self, window: int = 64) -> None:
        if fields.integer("window", window) < 1:
            raise ValueError("window must be at least 1")
        self._window = window
        self._waiting: list[tuple[int, int, Event]] = []  # a heap; the counter keeps events from being compared
        self._count = 0
        self._next = 0
        self._unread = 0
        self._gaps: list[tuple[int, int]] = []
        self._late = 0
        self._repeated = 0

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The first and the last number of every run of events that was given up, the first 1,000."""
        return list(self._gaps)

    @property
    def late(self) -> int:
        """How many events came after they had been given up, and were dropped."""
        return self._late

    @property
    def repeated(self) -> int:
        """How many events had a number that was there before, and were dropped."""
        return self._repeated

    def push(self, event: Event) -> list[Event]:
        """Takes an event in and returns those whose turn has come."""
        seq = event.seq
        if seq is None:
            self._unread += 1
            return [event]
        if seq < self._next:
            if any(first <= seq <= last for first, last in self._gaps):
                self._late += 1
            else:
                self._repeated += 1
            return []
        if seq == self._next:
            self._next += 1
            self._unread = 0
            return [event, *self._due()] if self._waiting else [event]
        heappush(self._waiting, (seq, self._count, event))
        self._count += 1
        return self._give_up() if len(self._waiting) > self._window else []

    def close(self) -> list[Event]:
        """Ends the stream: what still waits, in order."""
        found: list[Event] = []
        while self._waiting:
            found += self._give_up()
        return found

    def _due(self) -> list[Event]:
        """What waits and has its turn now."""
        found: list[Event] = []
        waiting = self._waiting
        while waiting and waiting[0][0] <= self._next:
            seq, _, event = heappop(waiting)
            if seq < self._next:
                self._repeated += 1
            else:
                found.append(event)
                self._next += 1
        return found

    def _give_up(self) -> list[Event]:
        """Waits no longer for what is missing before the first event that waits."""
        first = self._next + self._unread
        self._next = self._waiting[0][0]
        if first < self._next and len(self._gaps) < MAX_VIOLATIONS:
            self._gaps.append((first, self._next - 1))
        self._unread = 0
        return self._due()
