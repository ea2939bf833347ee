"""JSON values as they stand in a request: read and written without losing a digit, copied, and checked.

Nothing here is recursive, so that no nesting within the limits can exhaust the stack of a caller.
"""

from __future__ import annotations

from .. import payload
from ..rules import MAX_VIOLATIONS
from . import rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    Finding = tuple[int, str]  # a rule and a path

__all__ = ["DEFAULT_MAX_SIZE", "MAX_DEPTH", "Number", "checked", "copied", "read", "write"]

DEFAULT_MAX_SIZE = 64 * 2**20
"""How many bytes of a request are read unless the caller says otherwise."""

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


def _float(text: str) -> float:
    value = float(text)
    return value if repr(value) == text else Number(text)


def _int(text: str) -> int | float:
    return int(text) if len(text) <= MAX_DIGITS and text != "-0" else Number(text)


def _refuse(name: str) -> Any:
    raise ValueError(name)


def read(data: Any, *, max_size: int, max_depth: int) -> tuple[Any, list[Finding], Finding | None]:
    """The value of a JSON text (str, or bytes-like UTF-8), what was odd about it, and why it cannot be read, if so.

    Raises TypeError where ``data`` is neither.
    """
    found: list[Finding] = []
    if isinstance(data, str):
        text = data
        if len(text) > max_size or (not text.isascii() and len(text.encode("utf-8", "replace")) > max_size):
            return None, found, (rules.TOO_LARGE, "")
    else:
        view = memoryview(data)
        if view.nbytes > max_size:
            return None, found, (rules.TOO_LARGE, "")
        body = data if isinstance(data, bytes) else bytes(view)
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = body.decode("utf-8", "replace")
            found.append((rules.BAD_UTF8, ""))
    if text.startswith("\ufeff"):
        text = text[1:]
        found.append((rules.BYTE_ORDER_MARK, ""))
    repeated: dict[int, tuple[dict[str, Any], list[str]]] = {}

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            names: list[str] = []
            for name, _ in pairs:
                if name in seen:
                    names.append(name)
                seen.add(name)
            # The object is kept beside its id, which is its own only while it lives.
            repeated[id(made)] = (made, names)
        return made

    import json

    fault: int | None = None
    value: Any = None
    try:
        value = json.loads(text, parse_constant=_refuse, parse_int=_int, parse_float=_float, object_pairs_hook=members)
    except ValueError:  # told outside of this block, so that no error keeps the text in its context
        fault = rules.NOT_JSON
    except RecursionError:
        fault = rules.TOO_DEEP
    if fault is not None:
        return None, found, (fault, "")
    odd = "\\ud" in text or "\\uD" in text or (isinstance(data, str) and not _encodes(text))
    if repeated or odd or text.count("{") + text.count("[") > max_depth:
        names = {key: name for key, (_, name) in repeated.items()}
        value, deep = _settle(value, names, odd, max_depth, found)
        if deep:
            return None, found, (rules.TOO_DEEP, "")
    return value, found, None


def _encodes(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mended(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair."""
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


def _settle(
    value: Any, repeated: Mapping[int, list[str]], odd: bool, max_depth: int, found: list[Finding]
) -> tuple[Any, bool]:
    """The value without halves of surrogate pairs, and whether it is too deep; what was found gets its path."""
    root = [value]
    # A place is the container that holds an item, its step there, and the place of the container.
    todo: list[tuple[Any, Any, Any, int]] = [(root, 0, None, 0)]
    while todo:
        holder, step, place, depth = todo.pop()
        item = holder[step]
        here = (place, step) if holder is not root else None
        if isinstance(item, str):
            if odd and not _encodes(item):
                holder[step] = _mended(item)
                _note(found, rules.LONE_SURROGATE, here)
        elif isinstance(item, (dict, list)):
            if depth >= max_depth:
                return None, True
            if isinstance(item, list):
                todo += [(item, number, here, depth + 1) for number in range(len(item) - 1, -1, -1)]
                continue
            names = repeated.get(id(item), ())
            counts = bool(names) and _counts(here)
            for name in names:
                if counts and name in NAMES:
                    _note(found, rules.DUPLICATE_KEY, (here, name))
                else:
                    _note(found, rules.DUPLICATE_OTHER, here)
            if odd and not all(_encodes(name) for name in item):
                _note(found, rules.LONE_SURROGATE, here)
                mended = {_mended(name): inner for name, inner in item.items()}
                item.clear()
                item.update(mended)
            todo += [(item, name, here, depth + 1) for name in reversed(item)]
    return root[0], False


def _note(found: list[Finding], rule: int, place: Any) -> None:
    room = 2 if rules.RULES[rule].severity == "error" else 1  # warnings do not crowd the errors out
    if len(found) < room * MAX_VIOLATIONS:
        found.append((rule, _path(place)))  # only now: a path costs as much as it is deep


def _counts(place: Any) -> bool:
    """Whether the members of the object at this place are the draft's own, and not inside a value that is opaque."""
    steps = _steps(place)
    names = [step for step in steps if isinstance(step, str)]
    return names in (
        *([], ["messages"], ["messages", "content"], ["messages", "tool_calls"]),
        *(["tools"], ["parameters"], ["metadata"]),
    )


def _steps(place: Any) -> list[Any]:
    steps: list[Any] = []
    while place is not None:
        place, step = place
        steps.append(step)
    steps.reverse()
    return steps


def _path(place: Any) -> str:
    return path_of(_steps(place), NAMES)


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


class _Raw(str):
    """Text that is JSON already."""

    __slots__ = ()


def write(value: Any) -> bytes:
    """Compact JSON in UTF-8, members in their order and numbers as they came in."""
    from json.encoder import encode_basestring

    out: list[str] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, _Raw):
            out.append(item)
        elif isinstance(item, str):
            out.append(encode_basestring(item))
        elif item is None:
            out.append("null")
        elif isinstance(item, bool):
            out.append("true" if item else "false")
        elif isinstance(item, Number):
            out.append(item.text)
        elif isinstance(item, int):
            out.append(int.__repr__(item))
        elif isinstance(item, float):
            out.append(float.__repr__(item))
        elif isinstance(item, dict):
            todo.append(_Raw("}"))
            for name, inner in reversed(item.items()):
                todo += (inner, _Raw(encode_basestring(name) + ":"), _Raw(","))
            if item:
                todo.pop()
            out.append("{")
        else:
            todo.append(_Raw("]"))
            for inner in reversed(item):
                todo += (inner, _Raw(","))
            if item:
                todo.pop()
            out.append("[")
    return "".join(out).encode()


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
        elif _is_mapping(item):
            made = {_key(name, key): inner for key, inner in item.items()}
            holder[step] = made
            todo += [(made, key, depth + 1) for key in made]
        else:
            raise TypeError(f"{name} has a {type(item).__name__}, which JSON cannot hold")
    return root[0]


def _is_mapping(value: Any) -> bool:
    if isinstance(value, dict):
        return True
    from collections.abc import Mapping

    return isinstance(value, Mapping)


def _key(name: str, key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{name} has a key that is no str but {type(key).__name__}")
    return text(name, key)


def text(name: str, value: Any) -> str:
    """``value`` if it is a str that UTF-8 can hold; raises TypeError or ValueError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if not _encodes(value):
        raise ValueError(f"{name} has half a surrogate pair")
    return value if type(value) is str else str(value)


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A checked copy of a mapping; raises TypeError or ValueError otherwise."""
    if not _is_mapping(value):
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
