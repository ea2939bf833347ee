"""Tells an event that is named "message" from one without a name, which the decoder does not.

To WHATWG HTML, section 9.2.6, both are of the type "message". To the SDKs the second has no name, and Anthropic's gives
no object for it.
"""

from __future__ import annotations

import re

__all__ = ["WRITTEN", "WrittenNames"]

WRITTEN = "message\0"
"""What stands for the name "message" where a stream says it."""

_LINES = tuple(mark + b"event:" + space + b"message" for mark in (b"", b"\xef\xbb\xbf") for space in (b"", b" "))
_LINE = re.compile(rb"(?<![^\r\n])((?:\xef\xbb\xbf)?event: ?message)(?=[\r\n])")
_LONGEST = max(map(len, _LINES))
_line_end_after_name = re.compile(rb"message[\r\n]").search  # faster than ``in``, which is asked of each chunk
_LINE_END = re.compile(rb"[\r\n]")


class WrittenNames:
    """Puts ``WRITTEN`` into the bytes of one stream for each name "message".

    What may be the beginning of such a line is held back until more has come: no event ends with it.
    """

    __slots__ = ("_held", "_is_between")

    def __init__(self) -> None:
        self._held = b""
        self._is_between = True  # two lines; what is held comes after it

    def feed(self, chunk: bytes) -> bytes:
        """The bytes for the decoder."""
        if (
            chunk[-1:] == b"\n"  # as nearly all are
            and self._is_between
            and not self._held
            and _line_end_after_name(chunk) is None
        ):
            return chunk
        chunk, self._held = self._held + chunk, b""
        if not chunk:
            return chunk
        was_between, self._is_between = self._is_between, chunk[-1] in b"\r\n"
        if not self._is_between:
            *before, tail = _LINE_END.split(chunk[-_LONGEST - 1 :])
            if (before or (was_between and len(chunk) <= _LONGEST)) and any(line.startswith(tail) for line in _LINES):
                chunk, self._held, self._is_between = chunk[: -len(tail)], tail, True
        if was_between:
            return _LINE.sub(rb"\1\0", chunk)
        return _LINE.sub(rb"\1\0", b" " + chunk)[1:]  # what it begins with is within a line
