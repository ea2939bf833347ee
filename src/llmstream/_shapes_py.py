"""Learned shapes: a memo of the careful path. Part of the Python twin; twin of ``_shape.h``."""

from __future__ import annotations

import re
from json.decoder import scanstring  # type: ignore[attr-defined]

from ._envelope_py import _HALF, _STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._envelope_py import _Walk

MAX_SHAPES = 4
MAX_SLOTS = 15
MAX_SPANS = 40
MAX_LITERALS = 2048

_SEQ, _TEXT, _REASONING, _ARGUMENTS, _INDEX, _CALL, _INPUT, _OUTPUT, _ANY_STRING, _ANY_NUMBER, _PADDING = range(11)
_CONTENT = {"text": _TEXT, "reasoning": _REASONING, "arguments": _ARGUMENTS}
_SEQ_AND_INDEX = (_SEQ, _INDEX)
_DIGITS = re.compile(rb"(?:0|[1-9][0-9]{0,17})(?![0-9])")
_PAD = re.compile(rb"[ \t]*+")
_CONTROL = re.compile("[\x00-\x1f]")


class _Shape:
    """An event as literals and slots. ``gaps[i]`` are the bytes before span i, ``kinds[i]`` says what the span is and
    ``values[i]`` what stands there while it is fixed; the last gap ends the event."""

    __slots__ = (
        "after_data",
        "data_at",
        "foretold",
        "form",
        "gaps",
        "is_usual",
        "kinds",
        "lead",
        "program",
        "size",
        "values",
    )

    def __init__(
        self, form: Any, data_at: int, after_data: int, gaps: list[bytes], kinds: list[int], values: list[bytes | None]
    ) -> None:
        self.form = form
        self.data_at = data_at
        self.after_data = after_data  # bytes behind the payload
        self.gaps = gaps
        self.kinds = kinds
        self.values = values
        self._compile()

    def _compile(self) -> None:
        """``lead`` is what comes before the first slot that cannot be foretold, with %d for the next sequence number
        and the index (``foretold`` says which); ``program`` are the other slots, each with the literal behind it."""
        lead, foretold, literals = b"", [], [self.gaps[0]]
        self.program: list[tuple[int, bytes]] = []
        for kind, value, gap in zip(self.kinds, self.values, self.gaps[1:], strict=True):
            if value is not None:
                literals[-1] += value + gap
            elif not self.program and kind in (_SEQ, _INDEX):
                foretold.append(kind)
                lead += literals[-1].replace(b"%", b"%%") + b"%d"
                literals.append(gap)
            else:
                self.program.append((kind, b""))
                literals.append(gap)
        before = len(literals) - len(self.program) - 1
        self.lead = lead + literals[before].replace(b"%", b"%%")
        self.foretold = tuple(foretold)
        self.program = [(kind, literals[before + 1 + at]) for at, (kind, _) in enumerate(self.program)]
        self.size = sum(map(len, literals))
        # The draft's delta, with nothing in it that varies but the number, the index and the text.
        self.is_usual = (
            self.form is True and self.foretold == (_SEQ, _INDEX) and [kind for kind, _ in self.program] == [_TEXT]
        )

    def fits(self) -> bool:
        return len(self.foretold) + len(self.program) <= MAX_SLOTS and self.size <= MAX_LITERALS

    def widen(self, other: _Shape) -> bool:
        """Takes in another event of the same skeleton: what differs and is not wanted becomes a slot."""
        if self.form is not other.form or self.gaps != other.gaps or len(self.kinds) != len(other.kinds):
            return False
        kinds, values = list(self.kinds), list(self.values)
        for at, (mine, theirs) in enumerate(zip(self.kinds, other.kinds, strict=True)):
            if mine >= _ANY_STRING:
                if theirs != mine:
                    return False
                if values[at] is not None and values[at] != other.values[at]:
                    values[at] = None
            elif mine != theirs:
                return False
        self.kinds, self.values, old = kinds, values, self.values
        self._compile()
        if not self.fits():
            self.values = old
            self._compile()
            return False
        return True


def _learn(
    form: Any, event: bytes, data_at: int, data_end: int, walk: _Walk, slots: Mapping[int, int]
) -> _Shape | None:
    """The shape of one event, whose payload lies from ``data_at`` to ``data_end`` and was walked."""
    gaps: list[bytes] = []
    kinds: list[int] = []
    values: list[bytes | None] = []
    at = unwanted = 0
    for start, stop, leaf, is_string in walk.spans:
        start, stop = start + data_at, stop + data_at
        slot = slots.get(leaf, -1) if leaf >= 0 else -1
        if slot >= 0:
            value = None
        elif leaf >= 0:
            continue
        else:
            if unwanted == MAX_SPANS:
                continue
            unwanted += 1
            slot = _ANY_STRING if is_string else _ANY_NUMBER
            value = event[start:stop]
        gaps.append(event[at:start])
        kinds.append(slot)
        values.append(value)
        at = stop
    if event[data_end - 1] == 125:
        # Some vendors pad before the last brace.
        start = len(event[: data_end - 1].rstrip(b" \t"))
        gaps.append(event[at:start])
        kinds.append(_PADDING)
        values.append(event[start : data_end - 1])
        at = data_end - 1
    gaps.append(event[at:])
    shape = _Shape(form, data_at, len(event) - data_end, gaps, kinds, values)
    return shape if shape.fits() else None


def _string_slot(chunk: bytes, at: int) -> tuple[str | None, int]:
    """The string that starts at ``at`` and the place of its quote; None sends the event to the careful path."""
    stop = chunk.find(b'"', at)
    if stop < 0:
        return None, 0
    body = chunk[at:stop]
    if b"\\" in body:
        found = _STRING.match(chunk, at - 1)
        if found is None:
            return None, 0
        body = found[1]
        try:
            text = scanstring(body.decode() + '"', 0, True)[0]
        except ValueError:
            return None, 0
        return (None if _HALF.search(text) else text), found.end() - 1
    try:
        text = body.decode()
    except ValueError:
        return None, 0
    if not text.isprintable() and _CONTROL.search(text):
        return None, 0
    return text, stop
