"""A stream that may be an AWS event stream or Connect's: which one is told by its first bytes.

Bytes 4 to 7 of the AWS prelude are the length of the headers, 128 KiB at most: the first is 0, the second 2 or less. In
Connect the first ends the length of a message, and the second begins it, where neither JSON nor protobuf nor gzip have
such a byte. A message that is empty or short shows by its length, so none that is whole is ever held back.
"""

from __future__ import annotations

from . import Frame, Framing
from .connect import ConnectFraming

__all__ = ["BinaryFraming"]


class BinaryFraming(Framing):
    """The AWS event stream or Connect; ``chosen`` is the framing that reads, once it is known."""

    def __init__(self, max_event_size: int) -> None:
        super().__init__(max_event_size)
        self.chosen: Framing | None = None
        self._head = b""

    def feed(self, chunk: bytes) -> list[Frame]:
        if self.chosen is None:
            chunk = self._head + chunk
            self.chosen = _told(chunk, self.max_event_size)
            if self.chosen is None:
                self._head = chunk
                return []
            self._head = b""
        try:
            return self.chosen.feed(chunk)
        finally:
            self._mirror(self.chosen)

    def close(self) -> list[Frame]:
        if self._head:
            self._head = b""
            self._cut("frame cut", 0)
        if self.unfinished:
            return []
        self.chosen = self.chosen or ConnectFraming(self.max_event_size)
        frames = self.chosen.close()
        self._mirror(self.chosen)
        return frames

    def _mirror(self, chosen: Framing) -> None:
        self.broken = chosen.broken
        self.unfinished = chosen.unfinished
        self.reason = chosen.reason
        self.fault_offset = chosen.fault_offset
        self.reports += chosen.reports
        chosen.reports.clear()


def _told(head: bytes, max_event_size: int) -> Framing | None:
    """The framing of a stream that begins so; None where more bytes are wanted."""
    if len(head) < 5:
        return None
    if head[4] or int.from_bytes(head[:4], "big") < 16:
        return ConnectFraming(max_event_size)
    if len(head) < 6:
        return None
    if head[5] > 2:
        return ConnectFraming(max_event_size)
    from .aws_event_stream import AWSEventStreamFraming

    return AWSEventStreamFraming(max_event_size)
