"""The form of a stream on the wire: which lines each event is made of, whatever they say."""

from __future__ import annotations

import re

from .. import rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Block", "Splitter"]

_PLAIN = re.compile(rb"event:[^\r\n]*+\ndata:[^\r\n]*+\n\n")
_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"

HEAD_SIZE = 80
"""So much of a line is looked at: its field name, and some indentation before it."""


class Block:
    """The lines up to a blank one: ``offset`` of the first byte, and what there is among them."""

    __slots__ = (
        "data_lines",
        "event_after_data",
        "event_lines",
        "has_id_or_retry",
        "has_other",
        "has_other_after_data",
        "is_indented",
        "offset",
    )

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.data_lines = self.event_lines = 0
        self.event_after_data = self.has_id_or_retry = False
        self.has_other = self.has_other_after_data = self.is_indented = False

    def add(self, head: bytes) -> None:
        """Takes note of a line, given its first bytes."""
        name = head.partition(b":")[0]
        if name == b"data":
            self.data_lines += 1
        elif name == b"event":
            self.event_lines += 1
            self.event_after_data = self.event_after_data or self.data_lines > 0
        elif name in (b"id", b"retry"):
            self.has_id_or_retry = True
        elif name:
            self.has_other = True
            self.has_other_after_data = self.has_other_after_data or self.data_lines > 0
            self.is_indented = self.is_indented or name.lstrip() in (b"data", b"event")

    def fault(self, is_cut: bool) -> int:
        """The rule that its form breaks, the worst first, or NONE; ``is_cut``: its data is not whole JSON."""
        if is_cut and self.has_other_after_data:
            return rules.FOLDED
        if self.is_indented:
            return rules.INDENTED
        if self.event_lines and not self.data_lines:
            return rules.NO_DATA
        if self.event_lines > 1:
            return rules.SEVERAL_EVENT_LINES
        if self.data_lines > 1:
            return rules.SEVERAL_DATA_LINES
        if self.event_after_data:
            return rules.DATA_BEFORE_EVENT
        if self.has_id_or_retry:
            return rules.ID_OR_RETRY
        return rules.OTHER_LINE if self.has_other else rules.NONE


class Splitter:
    """Cuts chunks after each block, by the line rules of WHATWG HTML, section 9.2.6. It holds no more of the stream
    than the beginning of one line."""

    __slots__ = ("_head", "_in_line", "_is_fresh", "_start", "_swallow", "block", "position")

    def __init__(self) -> None:
        self.position = 0  # of the next chunk's first byte in the stream
        self.block = Block(0)
        self._start: bytes | None = b""  # what may be a BOM, until that is known
        self._head = b""  # of the line under way
        self._in_line = False
        self._is_fresh = True  # no line of the block has begun
        self._swallow = False  # a LF that comes next belongs to the CR before it

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, Block | None]]:
        """The chunk in pieces, each with the block that ends with it."""
        at = begin = 0
        if self._start is not None:
            chunk = self._start + chunk
            if len(chunk) < 3 and _BOM.startswith(chunk):
                self._start = chunk
                return
            self._start = None
            if chunk.startswith(_BOM):
                self.block.offset = at = 3
        size, base = len(chunk), self.position
        self.position += size
        if self._swallow and size:
            self._swallow = False
            if chunk[0] == 10:
                at = 1
                if self._is_fresh:
                    self.block.offset = base + 1
        while at < size:
            if self._is_fresh:
                plain = _PLAIN.match(chunk, at)
                if plain is not None:
                    block, at = self.block, plain.end()
                    block.event_lines = block.data_lines = 1
                    self.block = Block(base + at)
                    yield chunk[begin:at], block
                    begin = at
                    continue
            found = _LINE_END.search(chunk, at)
            stop = found.start() if found else size
            is_blank = stop == at and not self._in_line
            self._head += chunk[at : min(stop, at + HEAD_SIZE - len(self._head))]
            self._in_line = True
            if found is None:
                self._is_fresh = False
                break
            at = stop + 1
            if chunk[stop] == 13:
                if at == size:
                    self._swallow = True
                elif chunk[at] == 10:
                    at += 1
            self._line()
            if is_blank:
                block, self.block = self.block, Block(base + at)
                self._is_fresh = True
                yield chunk[begin:at], block
                begin = at
            else:
                self._is_fresh = False
        if begin < size:
            yield chunk[begin:], None

    def close(self) -> tuple[bytes, Block]:
        """What was held back, and the block under way at the end."""
        if self._start:
            self._head, self._in_line = self._start, True
        rest = self._start or b""
        self._line()
        return rest, self.block

    def _line(self) -> None:
        """A line is over."""
        if self._head:
            self.block.add(self._head)
        self._head = b""
        self._in_line = False
