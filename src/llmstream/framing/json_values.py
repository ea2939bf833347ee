"""A stream of JSON values: one alone, one after the other, or as the items of one array that grows.

Gemini and Vertex answer with such an array unless they are asked for Server-Sent Events, Ollama and others send a value
a line, and an error body is a single value. The values themselves are not validated here: the engine does.

Among values on lines, a line that is no value, or a value that its line leaves open, is handed on as it is for the
engine to find it out, and the next line is read. Anything else that is no value ends the reading, as in an array.
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
_LINE = 7  # within a line that is no value

_SPACE = b" \t\r\n"

LOOK_BACK = 64
"""Bytes before a brace that are looked at."""


class JSONFraming(Framing):
    """JSON objects (and arrays, as items of the outer array) of any layout. Time is linear in the bytes fed, whatever
    the chunks: each byte is looked at once."""

    def __init__(self, max_event_size: int) -> None:
        super().__init__(max_event_size)
        self._state = _BETWEEN
        self._in_array = False
        self._has_lines = True  # until an array begins
        self._has_values = False
        self._begins_line = False  # whether a line has begun since the last value
        self._depth = 0
        self._held = bytearray()
        self._fed = 0
        self._offset = 0  # of the value under way
        self._end_of_text, self._end_of_line_text, self._bracket_or_quote = _patterns()

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
                self._begins_line = self._begins_line or byte == 0x0A
                at += 1
                continue
            opens_value = byte == 0x7B or (byte == 0x5B and self._in_array)
            opens_array = byte == 0x5B and state == _BETWEEN
            is_line = self._has_lines and self._has_values and self._begins_line and not (opens_value or opens_array)
            if is_line or (opens_value and state != _AFTER):
                self._state = _LINE if is_line else _INSIDE
                self._has_values = True
                self._begins_line = False
                self._depth = 0
                self._offset = self._fed + at
                begin = at
                continue
            if opens_array:
                self._in_array = True
                self._has_lines = False
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
        if self._state == _LINE and not self.broken:
            self._break("no JSON value", self._offset)
        if self._state >= _INSIDE and not self.broken:
            self._cut("JSON value cut", self._offset)
        elif self._in_array and not self.broken:
            self._cut("JSON array not closed", self._fed)
        self._held = bytearray()
        return []

    def _walk(self, chunk: bytes, at: int) -> int:
        """The place after the value, where it ends in this chunk; the chunk's end otherwise."""
        state, begin = self._state, at
        if state == _LINE:
            end = chunk.find(b"\n", at)
            self._state = _LINE if end < 0 else _BETWEEN
            return len(chunk) if end < 0 else end
        end_of_text = self._end_of_line_text if self._has_lines else self._end_of_text
        while at < len(chunk):
            if state == _ESCAPE:
                state = _STRING
                at += not (self._has_lines and chunk[at] == 0x0A)
                continue
            found = (end_of_text if state == _STRING else self._bracket_or_quote).search(chunk, at)
            if found is None:
                at = len(chunk)
                break
            at = found.end()
            byte = chunk[at - 1]
            if state == _STRING and byte == 0x0A:
                # No string has one: the line was cut, and what follows is none of it.
                state = _BETWEEN
                break
            if state == _STRING:
                state = _ESCAPE if byte == 0x5C else _INSIDE
            elif byte == 0x22:
                state = _STRING
            elif byte in b"{[":
                if byte == 0x7B and self._has_lines and self._begins_anew(chunk, begin, at - 1):
                    at -= 1
                    state = _BETWEEN
                    break
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    state = _AFTER if self._in_array else _BETWEEN
                    break
        self._state = state
        return at

    def _begins_anew(self, chunk: bytes, begin: int, at: int) -> bool:
        """Whether the brace at a place begins a line and cannot stand in the value that is under way, which its line
        left open: an object stands at the beginning, or after a colon, a comma or a bracket."""
        before = chunk[max(begin, at - LOOK_BACK) : at]
        if len(before) < LOOK_BACK and self._held:
            before = bytes(self._held[len(before) - LOOK_BACK :]) + before
        rest = before.rstrip(_SPACE)
        return bool(rest) and rest[-1] not in b":,[" and b"\n" in before[len(rest) :]

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


def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes], re.Pattern[bytes]]:
    """What ends a run of bytes that do not count: within a string, within one on a line, and outside of one."""
    import re

    return re.compile(rb'["\\]'), re.compile(rb'["\\\n]'), re.compile(rb'["{}\[\]]')
