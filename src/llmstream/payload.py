"""JSON text to Python values, for what a dialect's ``translate`` and ``Event.json`` read.

Only the readers that need whole values come here; the engine itself reads envelopes without building them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "MAX_DEPTH",
    "Written",
    "canonical",
    "dumps",
    "first_value",
    "is_json",
    "loads",
    "one_line",
    "read",
    "without_lone_surrogates",
]

MAX_DEPTH = 500
"""Nesting beyond this is refused where whole values are built: Python's own reader is recursive."""


class Written:
    """An object as the compact JSON text that was made of it already."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


# One of each, made when it is first needed to keep the import light.
_decoders: list[Callable[[str], Any]] = []
_encoders: list[Callable[[Any], str]] = []


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _bounded(digits: str) -> Any:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def loads(text: str) -> Any:
    """The value of a JSON text as RFC 8259 defines it; raises ValueError otherwise. An integer of more digits than
    Python converts (4,300 unless told otherwise) becomes a float."""
    import json

    if not _decoders:
        _decoders.append(json.JSONDecoder(parse_constant=_refuse).decode)
    try:
        return _decoders[0](text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_constant=_refuse, parse_int=_bounded)


def read(text: str) -> Any:
    """As ``loads``, where nesting that is too deep for Python's reader is a ValueError too."""
    try:
        return loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def is_json(text: str) -> bool:
    """Whether a text is JSON (RFC 8259), and not nested deeper than MAX_DEPTH."""
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return False
    try:
        loads(text)
    except (RecursionError, ValueError):
        return False
    return True


def _depth(text: str) -> int:
    import re

    depth = deepest = 0
    # A string that is cut is one too: to try again within it would take quadratic time.
    outside = re.sub(r'"(?:[^"\\]|\\.)*+"?', "", text, flags=re.DOTALL)
    for bracket in re.findall(r"[\[{\]}]", outside):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def first_value(text: str) -> Any:
    """The JSON value that a text begins with, whatever follows; raises ValueError."""
    import json

    text = text.lstrip(" \t\r\n")
    return json.JSONDecoder(parse_constant=_refuse, parse_int=_bounded).raw_decode(text)[0]


def dumps(value: Any) -> str:
    """Compact JSON text; raises TypeError or ValueError for what JSON cannot hold."""
    if not _encoders:
        import json

        _encoders.append(json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode)
    return _encoders[0](value)


def one_line(text: str) -> bytes:
    """JSON text in UTF-8, with escapes for what other readers than those of SSE take for the end of a line: U+0085,
    U+2028 and U+2029. Raises ValueError for half a surrogate pair."""
    if not (text.isascii() or text.isprintable()):
        text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass  # the error would hold the text
    raise ValueError("half a surrogate pair cannot be written")


def without_lone_surrogates(text: str) -> tuple[str, bool]:
    """JSON text with every escape of half a surrogate pair replaced by U+FFFD, and whether there was one."""
    if "\\u" not in text:
        return text, False
    import re

    if re.search(r"\\u[dD][89a-fA-F]", text) is None:
        return text, False
    pattern = r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)"
    found = False

    def replace(match: re.Match[str]) -> str:
        nonlocal found
        escape = match[0]
        if len(escape) == 6:
            found = True
            return "\\ufffd"
        return escape

    return re.sub(pattern, replace, text, flags=re.DOTALL), found


def canonical(value: Any) -> str:
    """JSON text that is the same for equal values, whatever the order of their members."""
    import json

    return json.dumps(value, sort_keys=True)
