"""Length-prefixed framing, the alternative of the draft's section 6.2: a byte for the type, four for the length.

The draft does not say which byte is which type. Here it is the place of the event's type in the draft's order, from 1
on, and 0 where only the envelope says it. The payloads are the envelopes that Server-Sent Events carry.
"""

from __future__ import annotations

from .. import rules
from . import Frame
from .sized import FrameError, SizedFraming

__all__ = ["LengthPrefixedFraming", "write"]

TYPES: tuple[str | None, ...] = (None, *rules.EVENT_TYPES[:-1])


class LengthPrefixedFraming(SizedFraming):
    """Envelopes behind a type and a length."""

    head_size = 5

    def _size(self, source: bytes, at: int) -> int:
        if source[at] >= len(TYPES):
            raise FrameError("type of a frame")
        length = int.from_bytes(source[at + 1 : at + 5], "big")
        self._check(length)
        return 5 + length

    def _read(self, source: bytes, start: int, stop: int, offset: int) -> Frame:
        return Frame(TYPES[source[start]], source[start + 5 : stop], offset)


def write(event: str | None, data: bytes) -> bytes:
    """One frame. An event type that has no byte is left to the envelope. Raises OverflowError for 4 GiB and more."""
    kind = TYPES.index(event) if event in TYPES else 0
    return kind.to_bytes(1, "big") + len(data).to_bytes(4, "big") + data
