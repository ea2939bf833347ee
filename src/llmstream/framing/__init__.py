"""Framings: how the bytes of a stream are cut into payloads where that is not Server-Sent Events.

A framing turns chunks into frames and knows nothing about what is in them; every framing feeds the same engine.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["Frame", "Framing"]


class Frame(tuple["str | None", bytes, int]):
    """One payload as it was framed: ``event``, its name where the framing has names, ``data``, and ``offset``, the
    place of its first byte among the bytes that were fed."""

    __slots__ = ()

    def __new__(cls, event: str | None, data: bytes, offset: int) -> Self:
        return tuple.__new__(cls, (event, data, offset))

    @property
    def event(self) -> str | None:
        return self[0]

    @property
    def data(self) -> bytes:
        return self[1]

    @property
    def offset(self) -> int:
        return self[2]

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        # Payloads hold generated text, which stays out of logs.
        return f"Frame(event={self.event!r}, data=<{len(self.data)} bytes>, offset={self.offset})"


class Framing:
    """The contract of a framing. ``max_event_size`` is the most bytes that one payload may hold.

    ``broken`` is set by bytes that the framing does not allow; nothing after them is read, since where the next
    payload would begin is not known. ``unfinished`` is set by ``close`` where a payload was cut or the framing's own
    end is missing. ``reason`` says in a few words why (never with text of the stream), and ``fault_offset`` where: the
    place of the first byte of what is at fault. ``reports`` are faults that did not stop the reading, as (offset,
    reason); who feeds the framing takes them out.
    """

    def __init__(self, max_event_size: int) -> None:
        self.max_event_size = max_event_size
        self.broken = False
        self.unfinished = False
        self.reason = ""
        self.fault_offset = 0
        self.reports: list[tuple[int, str]] = []

    def feed(self, chunk: bytes) -> list[Frame]:
        """The payloads that end in this chunk. Raises EventTooLargeError, with those before it in ``.events`` and its
        own ``.offset``, for one over ``max_event_size``; nothing after it is read."""
        raise NotImplementedError

    def close(self) -> list[Frame]:
        """What was held back; most framings hold nothing back."""
        raise NotImplementedError

    def _break(self, reason: str, offset: int) -> None:
        self.broken = True
        self.reason = reason
        self.fault_offset = offset

    def _cut(self, reason: str, offset: int) -> None:
        self.unfinished = True
        self.reason = reason
        self.fault_offset = offset
