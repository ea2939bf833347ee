"""Learned shapes: a memo of the careful path. Part of the Python twin; twin of ``_shape.h``.

Shapes are compared with chunks decoded as Latin-1: every byte is one character, so that places in the text are places
in the chunk, and the standard library's C code finds and reads the strings.
"""

from __future__ import annotations

from ._envelope_py import _HALF
from ._json_py import _Pattern, _reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._envelope_py import _Walk

    # The kind, the literal behind it and its size.
    _Slot = tuple[int, str, int]
    # The kind of a string (0: none comes first), what follows it (as it was last, the size of that, the literal alone),
    # the slots after that whose values often stay the same, and those that are read each time.
    _Step = tuple[int, list[Any], list[_Slot], list[_Slot]]

MAX_SHAPES = 4
MAX_SLOTS = 15
MAX_SPANS = 40
MAX_LITERALS = 2048
WINDOW = 64 * 1024  # bytes of a chunk that are decoded at once

_SEQ, _TEXT, _REASONING, _ARGUMENTS, _INDEX, _CALL, _INPUT, _OUTPUT, _ANY_STRING, _ANY_NUMBER, _PADDING = range(11)
_CONTENT = {"text": _TEXT, "reasoning": _REASONING, "arguments": _ARGUMENTS}
_STRINGS = frozenset((_TEXT, _REASONING, _ARGUMENTS, _ANY_STRING))
_LASTING = frozenset((_INDEX, _CALL, _INPUT))  # numbers that are often what they were in the event before
_NOTHING = "\uffff"  # is in no window
_DIGITS = _Pattern(r"(?:0|[1-9][0-9]{0,17})(?![0-9])")
_DECIMAL = _Pattern(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_BLANKS = _Pattern(r"[ \t]*+")


class _Shape:
    """An event as literals and slots. ``gaps[i]`` are the bytes before span i, ``kinds[i]`` says what the span is and
    ``values[i]`` what stands there while it is fixed; the last gap ends the event."""

    __slots__ = (
        "after_data",
        "before",
        "behind",
        "data_at",
        "foretold",
        "form",
        "gaps",
        "has_index",
        "head",
        "index",
        "kinds",
        "numbers",
        "size",
        "slots",
        "steps",
        "values",
    )

    def __init__(
        self, form: Any, data_at: int, after_data: int, gaps: list[str], kinds: list[int], values: list[str | None]
    ) -> None:
        self.form = form
        self.data_at = data_at
        self.after_data = after_data  # bytes behind the payload
        self.gaps = gaps
        self.kinds = kinds
        self.values = values
        self._compile()

    def _compile(self) -> None:
        """``head`` are the literals around the numbers that come first and can be foretold: the next sequence number
        and the index, in the order of ``foretold``. ``steps`` are the other slots, see ``_Step``."""
        self.slots: list[int] = []
        literals = [self.gaps[0]]
        for kind, value, gap in zip(self.kinds, self.values, self.gaps[1:], strict=True):
            if value is not None:
                literals[-1] += value + gap
            else:
                self.slots.append(kind)
                literals.append(gap)
        self.size = sum(map(len, literals))
        known = 0
        while known < len(self.slots) and self.slots[known] in (_SEQ, _INDEX):
            known += 1
        self.foretold = tuple(self.slots[:known])
        self.head = literals[: known + 1]
        self.has_index = _INDEX in self.foretold
        # By kind, of the event under way: what is no slot stays as it is here.
        self.numbers = [0] * _ANY_STRING
        self.numbers[_INPUT] = self.numbers[_OUTPUT] = -1
        self.foretell(0)
        self.steps: list[_Step] = []
        for kind, literal in zip(self.slots[known:], literals[known + 1 :], strict=True):
            if kind in _STRINGS:
                self.steps.append((kind, [literal, len(literal), literal], [], []))
                continue
            if not self.steps:
                self.steps.append((0, ["", 0, ""], [], []))
            _, ahead, lasting, varying = self.steps[-1]
            if kind in _LASTING and not varying:
                ahead[0] = _NOTHING
                lasting.append((kind, literal, len(literal)))
            else:
                varying.append((kind, literal, len(literal)))

    def fits(self) -> bool:
        return len(self.slots) <= MAX_SLOTS and self.size <= MAX_LITERALS

    def foretell(self, index: int) -> None:
        """Writes the index into the head: ``before`` is what comes before the sequence number, ``behind`` the rest
        (None where it has none)."""
        self.index = self.numbers[_INDEX] = index
        self.before, self.behind = self.head[0], None
        for kind, literal in zip(self.foretold, self.head[1:], strict=True):
            if kind == _SEQ:
                self.behind = literal
            elif self.behind is None:
                self.before += f"{index}{literal}"
            else:
                self.behind += f"{index}{literal}"

    def head_at(self, window: str, at: int, seq: int, index: int) -> str | None:
        """The head of an event with this sequence number, if it stands at ``at``; ``self.index`` is then its index,
        perhaps another than the one expected."""
        if self.has_index and index != self.index:
            self.foretell(index)
        head = self.before if self.behind is None else f"{self.before}{seq}{self.behind}"
        if window.startswith(head, at):
            return head
        if not self.has_index:
            return None
        before = self.head[0]
        if self.foretold[0] == _SEQ:
            before += f"{seq}{self.head[1]}"
        digits = _DIGITS.match(window, at + len(before)) if window.startswith(before, at) else None
        if digits is None or int(digits[0]) == self.index:
            return None
        return self.head_at(window, at, seq, int(digits[0]))

    def read(self, slots: list[_Slot], window: str, at: int, seq: int) -> int:
        """Reads slots that are no strings, and what is behind each; returns the place after them, or -1."""
        for kind, literal, size in slots:
            stop = window.find(literal, at, at + 18 + size)
            digits = window[at:stop] if stop > at else ""
            if digits.isdecimal() and (digits[0] != "0" or len(digits) == 1):
                if kind != _ANY_NUMBER:
                    number = int(digits)
                    if kind == _SEQ and number != seq:
                        return -1
                    self.numbers[kind] = number
            else:
                found = (_BLANKS if kind == _PADDING else _DECIMAL).match(window, at)
                if found is None or kind < _ANY_NUMBER:
                    return -1
                stop = found.end()
                if not window.startswith(literal, stop):
                    return -1
            at = stop + size
        return at

    def read_lasting(self, ahead: list[Any], lasting: list[_Slot], window: str, at: int) -> int:
        """As ``read``, of numbers that are other than they were, and what is behind the string before them."""
        literal = ahead[2]
        if not lasting or not window.startswith(literal, at):
            return -1
        ahead[0] = _NOTHING  # should only some of the numbers be read
        stop = self.read(lasting, window, at + len(literal), 0)
        if stop >= 0:
            ahead[0], ahead[1] = window[at:stop], stop - at
        return stop

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
    text = event.decode("latin-1")
    gaps: list[str] = []
    kinds: list[int] = []
    values: list[str | None] = []
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
            value = text[start:stop]
        gaps.append(text[at:start])
        kinds.append(slot)
        values.append(value)
        at = stop
    if event[data_end - 1] == 125:
        # Some vendors pad before the last brace.
        start = len(event[: data_end - 1].rstrip(b" \t"))
        gaps.append(text[at:start])
        kinds.append(_PADDING)
        values.append(text[start : data_end - 1])
        at = data_end - 1
    gaps.append(text[at:])
    shape = _Shape(form, data_at, len(event) - data_end, gaps, kinds, values)
    return shape if shape.fits() else None


def _last_end(chunk: bytes, at: int, stop: int) -> int:
    """The place behind the last blank line from ``at`` to ``stop``; ``stop`` where that is not soon found."""
    if chunk.endswith(b"\n\n", at, stop):
        return stop
    end = stop
    for _ in range(8):
        line = chunk.rfind(b"\n", at, end)
        if line < 0:
            return at
        before = line - 1 if chunk[line - 1] != 13 else line - 2
        if before >= at and chunk[before] == 10:
            return line + 1
        end = line
    return stop


def _beyond_ascii(window: str, start: int, stop: int, value: str) -> str | None:
    """The string that lies from ``start`` to ``stop`` and was read as ``value``, which is not ASCII; None sends the
    event to the careful path."""
    written = window[start:stop]
    if not written.isascii():
        try:
            value = written.encode("latin-1").decode()
        except ValueError:
            return None
        if "\\" not in written:
            return value
        value = _reader.scan_string(value + '"', 0, True)[0]
    return None if _HALF.search(value) else value
