"""What the framings that say a frame's size in its head have in common: frames are cut by counting, never by searching.

The head is checked as soon as it is there, so that a size that is wrong or over the limit is refused before a byte of
the body is awaited; nothing is allocated for bytes that have not come.
"""

from __future__ import annotations

from ..errors import EventTooLargeError
from . import Frame, Framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

__all__ = ["FrameError", "SizedFraming"]


class FrameError(Exception):
    """Bytes that the framing does not allow; ``str(error)`` is the reason."""


class SizedFraming(Framing):
    """Frames of a head of ``head_size`` bytes, which says how long the frame is, and a body."""

    head_size: ClassVar[int]

    def __init__(self, max_event_size: int) -> None:
        super().__init__(max_event_size)
        self._held = bytearray()
        self._total = 0  # of the frame in _held, once its head is whole
        self._fed = 0
        self._ended = False  # the frame that has to be the last one has been read

    def _size(self, source: bytes, at: int) -> int:
        """The length of the whole frame whose head stands at ``at``. Raises FrameError, or EventTooLargeError."""
        raise NotImplementedError

    def _read(self, source: bytes, start: int, stop: int, offset: int) -> Frame:
        """The frame ``source[start:stop]``. Raises FrameError, or EventTooLargeError."""
        raise NotImplementedError

    def feed(self, chunk: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if self.broken:
            return frames
        at, size = 0, len(chunk)
        offset = self._fed - len(self._held)
        try:
            if self._held:
                at = self._fill(chunk)
                if len(self._held) == self._total:
                    source = bytes(self._held)
                    frames.append(self._read(source, 0, len(source), offset))
                    self._held, self._total = bytearray(), 0
            while at < size and not self._held:
                offset = self._fed + at
                if self._ended:
                    raise FrameError("bytes after the end of the stream")
                stop = at + self.head_size
                if stop <= size:
                    stop = at + self._size(chunk, at)
                if stop > size:
                    self._held += chunk[at:]
                    break
                frames.append(self._read(chunk, at, stop, offset))
                at = stop
        except FrameError as error:
            self._break(str(error), offset)
        except EventTooLargeError as error:
            self._break("too large", offset)
            self._held = bytearray()
            error.offset, error.events = offset, list(frames)
            raise
        if self.broken:
            self._held = bytearray()
        self._fed += size
        return frames

    def close(self) -> list[Frame]:
        if self._held:
            self._cut("frame cut", self._fed - len(self._held))
            self._held = bytearray()
        return []

    def _fill(self, chunk: bytes) -> int:
        """Adds to the frame under way what it lacks; returns the place after it."""
        at = 0
        if not self._total:
            at = max(self.head_size - len(self._held), 0)
            self._held += chunk[:at]
            if len(self._held) < self.head_size:
                return len(chunk)
            self._total = self._size(bytes(self._held[: self.head_size]), 0)
        stop = at + self._total - len(self._held)
        self._held += chunk[at:stop]
        return min(stop, len(chunk))

    def _check(self, length: int) -> None:
        if length > self.max_event_size:
            raise EventTooLargeError(f"a message of more than {self.max_event_size} bytes")
