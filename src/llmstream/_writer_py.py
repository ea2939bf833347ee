"""The producer's inner part: text as JSON strings, and the event that a stream consists of. Twin of ``_writer.pyx``."""

from __future__ import annotations

from . import payload

try:
    from _json import encode_basestring as _quoted  # type: ignore[import-not-found,unused-ignore]
except ImportError:  # no CPython
    from json.encoder import encode_basestring as _quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["content_delta", "quoted"]

_HEAD = 'event: content.delta\ndata: {"v":"1.0","seq":'


def quoted(text: str) -> bytes:
    """``text`` as a JSON string in UTF-8 and in one line: escapes for the quote, the backslash, control characters,
    U+0085, U+2028 and U+2029, and for nothing else. Raises TypeError for what is no str, or of a subclass, and
    ValueError for half a surrogate pair."""
    if type(text) is not str:
        raise _no_text(text)
    words = _quoted(text)
    if words.isascii():
        return words.encode()
    return payload.one_line(words)


def content_delta(seq: int, members: str, text: str) -> bytes:
    """The bytes of a content.delta (draft, section 5.3.2) with the number ``seq``, from 0: ``members`` is the JSON text
    from the comma behind the number to the colon before the text. Raises as ``quoted``."""
    if type(text) is not str:
        raise _no_text(text)
    words = _quoted(text)
    if words.isascii():
        return f"{_HEAD}{seq}{members}{words}}}}}\n\n".encode()
    # In bytes: a str of all of it would be widened first.
    return b"%b%d%b%b}}\n\n" % (_HEAD.encode(), seq, members.encode(), payload.one_line(words))


def _no_text(value: Any) -> TypeError:
    return TypeError(f"text must be a str, not {type(value).__name__}")
