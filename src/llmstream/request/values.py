"""JSON values as they stand in a request: written without losing a digit, copied, and checked.

Nothing here is recursive, so that no nesting within the limits can exhaust the stack of a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring

from .. import payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["MAX_DEPTH", "Number", "checked", "copied", "write"]

MAX_DEPTH = payload.MAX_DEPTH
"""Nesting beyond this is refused."""

MAX_OWN_DEPTH = MAX_DEPTH - 10
"""Nesting of a value that a constructor takes: the request around it stays within ``MAX_DEPTH``."""

MAX_DIGITS = 300
"""An integer of more digits is no number that a reader of JSON can be expected to keep."""

# The member names of section 4; any other is shown as "*" in a path, since it may be content.
NAMES = frozenset(
    {
        *("version", "stream", "model", "messages", "tools", "parameters", "metadata", "extensions"),
        *("role", "content", "name", "tool_call_id", "tool_calls", "type", "text", "media_type", "data"),
        *("id", "arguments", "description", "max_tokens", "temperature", "top_p", "stop_sequences"),
        *("request_id", "user_id", "session_id"),
    }
)


class Number(float):
    """A number whose text Python would change, such as ``1.10`` or ``1e400``: it is written as it came in."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (Number, (self.text,))


def path_of(steps: list[Any], names: frozenset[str] | set[str]) -> str:
    """``messages[2].content`` from its steps; a step that is no number and none of ``names`` is shown as ``*``."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if step in names else "*"
            text += f".{shown}" if text else shown
    return text


def can_be_encoded(text: str) -> bool:
    """Whether it has no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Raw(str):
    """Text that is JSON already."""

    __slots__ = ()


_COMMA, _END_OF_OBJECT, _END_OF_ARRAY = map(_Raw, ",}]")


def write(value: Any) -> bytes:
    """Compact JSON in UTF-8, members in their order and numbers as they came in."""
    out: list[str] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, _Raw):
            out.append(item)
        elif isinstance(item, dict):
            todo.append(_END_OF_OBJECT)
            for name, inner in reversed(item.items()):
                todo += (inner, _Raw(encode_basestring(name) + ":"), _COMMA)
            if item:
                todo.pop()
            out.append("{")
        elif isinstance(item, list):
            todo.append(_END_OF_ARRAY)
            for inner in reversed(item):
                todo += (inner, _COMMA)
            if item:
                todo.pop()
            out.append("[")
        else:
            out.append(scalar(item) or "null")
    return "".join(out).encode()


def scalar(value: str | float | None) -> str | None:
    """The JSON text of what is no object and no array; None for a number that has none."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return value.text
    if isinstance(value, int):
        try:
            return int.__repr__(value)
        except ValueError:  # of more digits than Python writes
            return None
    return float.__repr__(value) if value - value == 0 else None


def copied(value: Any) -> Any:
    """A copy that shares no dict and no list."""
    root = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, step = todo.pop()
        item = holder[step]
        if isinstance(item, dict):
            made: Any = dict(item)
            holder[step] = made
            todo += [(made, name) for name, inner in item.items() if isinstance(inner, (dict, list))]
        elif isinstance(item, list):
            made = list(item)
            holder[step] = made
            todo += [(made, number) for number, inner in enumerate(item) if isinstance(inner, (dict, list))]
    return root[0]


def checked(name: str, value: Any) -> Any:
    """A copy of a value of the caller's, which JSON can hold: dicts with str keys, lists and tuples, str, int, float,
    bool and None. Raises TypeError or ValueError for anything else, naming ``name``."""
    root = [value]
    todo: list[tuple[Any, Any, int]] = [(root, 0, 0)]
    while todo:
        holder, step, depth = todo.pop()
        item = holder[step]
        if item is None or isinstance(item, bool):
            continue
        if isinstance(item, str):
            holder[step] = text(name, item)
        elif isinstance(item, int):
            if item.bit_length() > 3 * MAX_DIGITS:
                raise ValueError(f"{name} has an integer of too many digits")
            holder[step] = int(item)
        elif isinstance(item, float):
            if not isinstance(item, Number) and (item != item or item in (float("inf"), float("-inf"))):  # noqa: PLR0124
                raise ValueError(f"{name} has a number that JSON cannot hold")
        elif depth >= MAX_OWN_DEPTH:
            raise ValueError(f"{name} is nested too deep")
        elif isinstance(item, (list, tuple)):
            made: Any = list(item)
            holder[step] = made
            todo += [(made, number, depth + 1) for number in range(len(made))]
        elif is_mapping(item):
            made = {_key(name, key): inner for key, inner in item.items()}
            holder[step] = made
            todo += [(made, key, depth + 1) for key in made]
        else:
            raise TypeError(f"{name} has a {type(item).__name__}, which JSON cannot hold")
    return root[0]


def is_mapping(value: Any) -> bool:
    """Whether it is a dict or another mapping."""
    return isinstance(value, (dict, Mapping))


def _key(name: str, key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{name} has a key that is no str but {type(key).__name__}")
    return text(name, key)


def text(name: str, value: Any) -> str:
    """``value`` if it is a str that UTF-8 can hold; raises TypeError or ValueError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if not can_be_encoded(value):
        raise ValueError(f"{name} has half a surrogate pair")
    return value if type(value) is str else str(value)


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A checked copy of a mapping; raises TypeError or ValueError otherwise."""
    if not is_mapping(value):
        raise TypeError(f"{name} must be a mapping, not {type(value).__name__}")
    made: dict[str, Any] = checked(name, value)
    return made


def ordered(value: Any) -> Any:
    """A copy whose members are in the order of their names, so that equal values are written alike."""
    root = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, step = todo.pop()
        item = holder[step]
        if isinstance(item, dict):
            made: Any = {name: item[name] for name in sorted(item)}
            holder[step] = made
            todo += [(made, name) for name in made]
        elif isinstance(item, list):
            made = list(item)
            holder[step] = made
            todo += [(made, number) for number in range(len(made))]
        elif isinstance(item, Number) and item not in (float("inf"), float("-inf")):
            holder[step] = float(item)
    return root[0]
