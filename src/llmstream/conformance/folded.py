"""Streams as documents print them: indented, with the JSON folded over lines, between page breaks.

Read as Server-Sent Events, a line without ``data:`` is no data, so such a stream is cut JSON. A parser never mends
that; this loader, for documents only, does.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["unfold"]

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?')  # a string that is cut is one, too: to try again within it is quadratic
_FIELD = re.compile(rb"(?:event|data|id|retry)?:|(?:event|data|id|retry)$")
_JSON = re.compile(rb'[]["{},:0-9-]|true\b|false\b|null\b')
_BOM = b"\xef\xbb\xbf"


def unfold(document: bytes) -> Iterator[tuple[int, bytes]]:
    """Each event of a document, as Server-Sent Events have it, with the offset in the document where it begins.

    Indentation goes. A line that is no field continues the JSON before it until that is whole, if it begins as JSON
    may; all others are left out (headers, prose, page breaks). A new ``event`` line, or a ``data`` line after whole
    JSON, begins the next event even where the blank line is missing.
    """
    event = _Event(0)
    at = 0
    for line in document.splitlines(keepends=True):
        start, at = at, at + len(line)
        text = line.removeprefix(_BOM if not start else b"").strip(b" \t\r\n\f\v")
        if not text:
            if event.is_whole:
                yield from event.done()
                event = _Event(at)
            continue
        if _FIELD.match(text):
            is_next = text.startswith(b"event") or (text.startswith(b"data") and event.is_whole)
            if event.lines and is_next and event.has_data:
                yield from event.done()
                event = _Event(start)
            if not event.lines:
                event.offset = start
            event.add(text)
        elif event.has_data and not event.is_whole and _JSON.match(text):
            event.go_on(text)
    yield from event.done()


class _Event:
    __slots__ = ("_data", "_depth", "has_data", "lines", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.lines: list[bytearray] = []
        self._data = bytearray()  # the last data line, one of them
        self.has_data = False
        self._depth = 0

    @property
    def is_whole(self) -> bool:
        """Whether every bracket of the data is closed."""
        return self.has_data and self._depth <= 0

    def add(self, line: bytes) -> None:
        self.lines.append(bytearray(line))
        if line.startswith(b"data"):
            self.has_data = True
            self._data = self.lines[-1]
            self._count(line)

    def go_on(self, text: bytes) -> None:
        self._data += text
        self._count(text)

    def _count(self, text: bytes) -> None:
        bare = _STRING.sub(b"", text)
        self._depth += bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")

    def done(self) -> Iterator[tuple[int, bytes]]:
        if self.lines:
            yield self.offset, b"\n".join(self.lines) + b"\n\n"
