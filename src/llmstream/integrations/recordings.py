"""A recorded or encoded body as a server plays it: its media type, its dialect, and its events apart. No I/O."""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

from .. import payload
from .._backend import Parser
from ..framing.json_values import JSONFraming
from ..rules import MAX_INTEGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Recording", "recording"]

BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r){2,}")
"""What ends an event of Server-Sent Events, in any of its line ends (WHATWG HTML, section 9.2.5)."""

PRELUDE = 12
"""Bytes before the headers of an AWS event-stream frame: two lengths and their checksum."""


class Recording(NamedTuple):
    """``name`` says which it is, ``pieces`` are its events with what separates them: joined, they are the body."""

    name: str
    media_type: str
    dialect: str
    pieces: tuple[bytes, ...]

    @property
    def whole(self) -> int:
        """How many pieces are whole: all, or all but the last one."""
        return len(self.pieces) - (bool(self.pieces) and not _is_whole(self.pieces[-1], self.media_type))

    def seq_after(self, count: int) -> int:
        """The number that a standard event has which comes after the first ``count`` pieces (section 5.2.1)."""
        parser = Parser(self.dialect)
        for piece in self.pieces[:count]:
            parser.feed(piece)
        return parser.next_seq


def recording(name: str, body: bytes) -> Recording:
    """A body with what can be told of it by its bytes. What is in none of the known framings is text/event-stream, in
    one piece for each blank line that it has."""
    media_type = _media_type(body)
    parser = Parser("auto")
    parser.feed(body)
    parser.close()
    return Recording(name, media_type, parser.dialect, tuple(_pieces(body, media_type)))


def _media_type(body: bytes) -> str:
    if len(body) >= PRELUDE and zlib.crc32(body[:8]) == int.from_bytes(body[8:PRELUDE], "big"):
        return "application/vnd.amazon.eventstream"
    if body[:1] in (b"\0", b"\1", b"\2") and len(body) >= 5:
        return "application/connect+json" if body[5:6] == b"{" else "application/connect+proto"
    start = body.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith((b"{", b"[")):
        return "text/event-stream"
    is_lines = sum(line.startswith(b"{") for line in start.splitlines()[:2]) == 2
    return "application/x-ndjson" if is_lines else "application/json"


def _pieces(body: bytes, media_type: str) -> Iterator[bytes]:
    if media_type == "text/event-stream":
        at = 0
        for found in BLANK_LINE.finditer(body):
            yield body[at : found.end()]
            at = found.end()
        if at < len(body):
            yield body[at:]
    elif media_type == "application/vnd.amazon.eventstream":
        yield from _frames(body, 0, 0)
    elif media_type.startswith("application/connect"):
        yield from _frames(body, 1, 5)
    elif media_type == "application/json":
        yield from _values(body)
    else:
        yield from body.splitlines(keepends=True)


def _values(body: bytes) -> Iterator[bytes]:
    """JSON values, each after what stands before it; the end of the array goes with the last one."""
    start = len(body) - len(body.removeprefix(b"\xef\xbb\xbf"))
    ends = [start + each.offset + len(each.data) for each in JSONFraming(MAX_INTEGER).feed(body[start:])]
    if ends and not body[ends[-1] :].strip(b"] \t\r\n"):
        ends.pop()
    at = 0
    for end in (*ends, len(body)):
        if at < end:
            yield body[at:end]
        at = end


def _is_whole(piece: bytes, media_type: str) -> bool:
    if media_type == "text/event-stream":
        return BLANK_LINE.search(piece) is not None
    if media_type == "application/vnd.amazon.eventstream":
        return len(piece) == int.from_bytes(piece[:4], "big")
    if media_type.startswith("application/connect"):
        return len(piece) == 5 + int.from_bytes(piece[1:5], "big")
    value = piece.removeprefix(b"\xef\xbb\xbf").strip(b"[], \t\r\n")
    return not value or payload.is_json(value.decode("utf-8", "replace"))


def _frames(body: bytes, offset: int, around: int) -> Iterator[bytes]:
    """Frames that have their length in four bytes at ``offset``, less the ``around`` bytes that it does not count."""
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at + offset : at + offset + 4], "big") + around
        end = at + max(size, around or PRELUDE)
        yield body[at:end]
        at = end
