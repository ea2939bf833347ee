"""A stream of JSON values: one alone, one after the other, or as the items of one array that grows.

Gemini and Vertex answer with such an array unless they are asked for Server-Sent Events, Ollama and others send a value
a line, and an error body is a single value. The values themselves are not validated here: the engine does.
"""

from __future__ import annotations

from ..errors import EventTooLargeError
from . import Frame, Framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

__all__ = ["JSONFraming"]

# Where the next byte stands.
_BETWEEN = 0  # outside of everything: a value or the array may begin
_FIRST = 1  # after the array's bracket: an item or the array's end
_AFTER = 2  # after an item: a comma or the array's end
_NEXT = 3  # after a comma: an item
_INSIDE = 4  # within a value, outside of its strings
_STRING = 5  # within a string
_ESCAPE = 6  # after a backslash

_SPACE = b" \t\r\n"


class JSONFraming(Framing):
    """JSON objects (and arrays, as items of the outer array) of any layout. Time is linear in the bytes fed, whatever
    the chunks: each byte is looked at once."""

    def __init__(self, max_event_size: int) -> None:
        super().__init__(max_event_size)
        self._state = _BETWEEN
        self._in_array = False
        self._depth = 0
        self._held = bytearray()
        self._fed = 0
        self._offset = 0  # of the value under way
        self._end_of_text, self._bracket_or_quote = _patterns()

    def feed(self, chunk: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if self.broken:
            return frames
        begin = at = 0
        while at < len(chunk):
            state = self._state
            if state >= _INSIDE:
                at = self._walk(chunk, at)
                if self._state < _INSIDE:
                    frames.append(Frame(None, self._whole(chunk[begin:at], frames), self._offset))
                continue
            byte = chunk[at]
            if byte in _SPACE:
                at += 1
                continue
            opens_value = byte == 0x7B or (byte == 0x5B and self._in_array)
            if opens_value and state != _AFTER:
                self._state = _INSIDE
                self._depth = 0
                self._offset = self._fed + at
                begin = at
                continue
            if byte == 0x5B and state == _BETWEEN:
                self._in_array = True
                self._state = _FIRST
            elif byte == 0x2C and state == _AFTER:
                self._state = _NEXT
            elif byte == 0x5D and state in (_FIRST, _AFTER):
                self._in_array = False
                self._state = _BETWEEN
            else:
                self._break("no JSON value", self._fed + at)
                return frames
            at += 1
        if self._state >= _INSIDE:
            self._check(len(chunk) - begin, frames)
            self._held += chunk[begin:]
        self._fed += len(chunk)
        return frames

    def close(self) -> list[Frame]:
        if self._state >= _INSIDE and not self.broken:
            self._cut("JSON value cut", self._offset)
        elif self._in_array and not self.broken:
            self._cut("JSON array not closed", self._fed)
        self._held = bytearray()
        return []

    def _walk(self, chunk: bytes, at: int) -> int:
        """The place after the value, where it ends in this chunk; the chunk's end otherwise."""
        state = self._state
        while at < len(chunk):
            if state == _ESCAPE:
                at += 1
                state = _STRING
                continue
            found = (self._end_of_text if state == _STRING else self._bracket_or_quote).search(chunk, at)
            if found is None:
                at = len(chunk)
                break
            at = found.end()
            byte = chunk[at - 1]
            if state == _STRING:
                state = _ESCAPE if byte == 0x5C else _INSIDE
            elif byte == 0x22:
                state = _STRING
            elif byte in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    state = _AFTER if self._in_array else _BETWEEN
                    break
        self._state = state
        return at

    def _whole(self, part: bytes, frames: list[Frame]) -> bytes:
        """The value that ends with this part."""
        self._check(len(part), frames)
        if not self._held:
            return bytes(part)
        held, self._held = self._held, bytearray()
        held += part
        return bytes(held)

    def _check(self, more: int, frames: list[Frame]) -> None:
        if len(self._held) + more > self.max_event_size:
            self._break("too large", self._offset)
            self._held = bytearray()
            message = f"a JSON value of more than {self.max_event_size} bytes"
            raise EventTooLargeError(message, offset=self._offset, events=frames)


def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """What ends a run of bytes that do not count: within a string, and outside of one."""
    import re

    return re.compile(rb'["\\]'), re.compile(rb'["{}\[\]]')
