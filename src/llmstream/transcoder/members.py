"""What one event may carry: no more than a reader's default limit lets through, and nothing that JSON cannot hold."""

from __future__ import annotations

import re

from .. import payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

__all__ = ["PIECE", "ROOM", "has_repeated", "pieces", "portable", "seconds", "size"]

ROOM = 15 * 2**20
"""Bytes of the large member of an event: readers take 16 MiB by default, and names and ids go beside it."""

PIECE = 2**20
"""Characters of text in one delta: as escapes they are six times as many bytes."""

LATEST_SECONDS = 10**11
"""The year 5138. What is larger was counted in milliseconds, or finer."""

_HALF = re.compile("[\ud800-\udfff]")


def pieces(text: str) -> Iterator[str]:
    """``text`` in parts of at most ``PIECE`` characters."""
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))


def size(text: str) -> int:
    """The bytes of JSON text in an event: what some readers take for the end of a line is written as an escape."""
    if text.isascii():
        return len(text)
    return len(text.encode()) + 3 * (text.count("\u2028") + text.count("\u2029")) + 4 * text.count("\x85")


def portable(extensions: Mapping[str, Any], room: int) -> tuple[dict[str, Any], int]:
    """The members of ``extensions`` that fit into ``room`` bytes and that JSON can hold, and how many bytes they are.
    Halves of surrogate pairs become U+FFFD."""
    kept: dict[str, Any] = {}
    used = 0
    for name, value in extensions.items():
        try:
            text = payload.dumps({name: value})
            if not text.isascii() and _HALF.search(text):
                text = _HALF.sub("\ufffd", text)
                ((name, value),) = payload.loads(text).items()
        except (RecursionError, TypeError, ValueError):
            continue
        if used + size(text) <= room:
            used += size(text)
            kept[name] = value
    return kept, used


def has_repeated(text: str) -> bool:
    """Whether an object in JSON text has a member twice (resolution A-16). Raises ValueError or RecursionError."""
    import json

    found = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        made = dict(pairs)
        found = found or len(made) < len(pairs)
        return made

    json.loads(text, object_pairs_hook=look, parse_int=float)
    return found


def seconds(created: int) -> int:
    """A Unix time in seconds, whatever it was counted in."""
    while created >= LATEST_SECONDS:
        created //= 1000
    return created
