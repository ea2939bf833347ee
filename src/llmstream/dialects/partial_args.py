"""Arguments of a tool call that are sent piece by piece, each with the JSONPath of where it belongs."""

from __future__ import annotations

from .values import compact, members, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["PartialArguments"]

MAX_STEPS = 64
"""Longest path that is followed."""

PIECE_COST = 64
"""What a piece counts beside its text, in characters."""


class _Growing(list[str]):
    """A string under way; ``more`` says whether the next piece of the same path belongs to it."""

    more = False


class PartialArguments:
    """Assembles an object from ``{"jsonPath": "$.items[0].name", "stringValue": "app", "willContinue": true}`` and the
    like. A piece that fits nowhere is left out and makes the whole ``broken``."""

    def __init__(self) -> None:
        self.broken = False
        self._root: dict[str, Any] = {}

    def begin(self, arguments: dict[str, Any]) -> None:
        """Adds members that came whole."""
        self._root.update(arguments)

    def cost(self, piece: Any) -> int:
        """What a piece counts towards the limit of held characters."""
        return PIECE_COST + len(text(members(piece).get("stringValue"))) + len(text(members(piece).get("jsonPath")))

    def add(self, piece: Any) -> None:
        """Adds one piece."""
        piece = members(piece)
        steps = _steps(text(piece.get("jsonPath")))
        if not steps or not self._put(steps, piece):
            self.broken = True

    @property
    def is_open(self) -> bool:
        """Whether a string is still under way."""
        return _is_open(self._root)

    def text(self) -> str:
        """The object as compact JSON, "" where nothing came."""
        return compact(_joined(self._root)) if self._root else ""

    def _put(self, steps: list[str | int], piece: dict[str, Any]) -> bool:
        holder: Any = self._root
        for at, step in enumerate(steps[:-1]):
            holder = _enter(holder, step, [] if isinstance(steps[at + 1], int) else {})
            if holder is None:
                return False
        last = steps[-1]
        if type(piece.get("stringValue")) is str:
            growing = _enter(holder, last, _Growing())
            if type(growing) is not _Growing or not growing.more:
                growing = _Growing()
            growing.append(piece["stringValue"])
            growing.more = piece.get("willContinue") is True
            return _set(holder, last, growing)
        for name, kinds in (("numberValue", (int, float)), ("boolValue", (bool,))):
            if type(piece.get(name)) in kinds:
                return _set(holder, last, piece[name])
        return "nullValue" in piece and _set(holder, last, None)


def _enter(holder: Any, step: str | int, missing: Any) -> Any:
    """What stands at a step; ``missing``, put there, where nothing does; None where the step does not fit."""
    if isinstance(step, str) and type(holder) is dict:
        return holder.setdefault(step, missing)
    if isinstance(step, int) and type(holder) is list and step <= len(holder):
        if step == len(holder):
            holder.append(missing)
        return holder[step]
    return None


def _set(holder: Any, step: str | int, value: Any) -> bool:
    """Whether a value could be put at a step."""
    if isinstance(step, str) and type(holder) is dict:
        holder[step] = value
        return True
    if isinstance(step, int) and type(holder) is list and step <= len(holder):
        holder[step : step + 1] = [value]
        return True
    return False


def _joined(value: Any) -> Any:
    """A copy with every growing string as a string."""
    if type(value) is _Growing:
        return "".join(value)
    if type(value) is dict:
        return {name: _joined(each) for name, each in value.items()}
    if type(value) is list:
        return [_joined(each) for each in value]
    return value


def _is_open(value: Any) -> bool:
    if type(value) is _Growing:
        return value.more
    if type(value) is dict:
        return any(map(_is_open, value.values()))
    return type(value) is list and any(map(_is_open, value))


def _steps(path: str) -> list[str | int]:
    """The names and numbers of a JSONPath (RFC 9535) that names one place; [] for any other."""
    steps: list[str | int] = []
    if not path.startswith("$"):
        return steps
    rest = path[1:]
    while rest:
        if len(steps) == MAX_STEPS:
            return []
        if rest[0] == ".":
            cut = min((at for at in (rest.find(".", 1), rest.find("[", 1)) if at > 0), default=len(rest))
            step, rest = rest[1:cut], rest[cut:]
            if not step or step == "*":
                return []
            steps.append(step)
        elif rest[:2] in ("['", '["'):
            end = rest.find(rest[1] + "]", 2)
            if end < 0:
                return []
            steps.append(rest[2:end])
            rest = rest[end + 2 :]
        else:
            step, closed, rest = rest[1:].partition("]")
            if not closed or not step.isascii() or not step.isdecimal() or len(step) > 9:
                return []
            steps.append(int(step))
    return steps
