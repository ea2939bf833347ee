"""A request's JSON as Python values: what was odd about the text is told, and no nesting exhausts a caller's stack."""

from __future__ import annotations

import json
from json.encoder import encode_basestring

from ..rules import (
    MAX_VIOLATIONS,
    REQUEST_BAD_UTF8,
    REQUEST_BYTE_ORDER_MARK,
    REQUEST_DUPLICATE_KEY,
    REQUEST_DUPLICATE_OTHER,
    REQUEST_LONE_SURROGATE,
    REQUEST_NOT_JSON,
    REQUEST_TOO_DEEP,
    REQUEST_TOO_LARGE,
    RULES,
)
from .values import MAX_DEPTH, MAX_DIGITS, NAMES, Number, can_be_encoded, is_mapping, path_of, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .findings import Findings

    Fault = tuple[int, str]  # a rule and a path

__all__ = ["DEFAULT_MAX_SIZE", "Oddities", "json_of", "read"]

DEFAULT_MAX_SIZE = 64 * 2**20
"""How many bytes of a request are read unless the caller says otherwise."""


# The places of the objects whose members section 4 names, each item of an array as 0.
OWN = frozenset(
    {
        *((), ("messages", 0), ("messages", 0, "content", 0), ("messages", 0, "tool_calls", 0)),
        *(("tools", 0), ("parameters",), ("metadata",)),
    }
)
MAX_OWN_STEPS = max(map(len, OWN))


class Oddities:
    """What was odd about a JSON text that could be read: the first with their paths, all others counted by rule."""

    __slots__ = ("counted", "told")

    def __init__(self) -> None:
        self.told: list[Fault] = []
        self.counted: dict[int, int] = {}

    def add(self, rule: int, place: Any = None) -> None:
        """Takes note of one; ``place`` is where it was, as ``_settle`` has it."""
        room = 2 if RULES[rule].strict == "error" else 1  # warnings do not crowd the errors out
        if len(self.told) < room * MAX_VIOLATIONS:
            self.told.append((rule, path_of(_steps(place), NAMES)))  # only now: a path costs as much as it is deep
        else:
            self.counted[rule] = self.counted.get(rule, 0) + 1

    def tell(self, findings: Findings) -> None:
        """Adds them to what else is found."""
        for rule, path in self.told:
            findings.add(rule, path)
        for rule, times in self.counted.items():
            findings.add(rule, "", times=times)


def _float(text: str) -> float:
    value = float(text)
    return value if repr(value) == text else Number(text)


def _int(text: str) -> int | float:
    return int(text) if len(text) <= MAX_DIGITS and text != "-0" else Number(text)


def _refuse(name: str) -> Any:
    raise ValueError(name)


def read(data: Any, *, max_size: int, max_depth: int) -> tuple[Any, Oddities, Fault | None]:
    """The value of a JSON text (str, or bytes-like UTF-8), what was odd about it, and why it cannot be read, if so.

    Raises TypeError where ``data`` is neither.
    """
    odd = Oddities()
    if isinstance(data, str):
        text = data
        if len(text) > max_size or (not text.isascii() and len(text.encode("utf-8", "replace")) > max_size):
            return None, odd, (REQUEST_TOO_LARGE, "")
    else:
        view = memoryview(data)
        if view.nbytes > max_size:
            return None, odd, (REQUEST_TOO_LARGE, "")
        body = data if isinstance(data, bytes) else bytes(view)
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = body.decode("utf-8", "replace")
            odd.add(REQUEST_BAD_UTF8)
    if text.startswith("\ufeff"):
        text = text[1:]
        odd.add(REQUEST_BYTE_ORDER_MARK)
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

    fault: int | None = None
    value: Any = None
    try:
        value = json.loads(text, parse_constant=_refuse, parse_int=_int, parse_float=_float, object_pairs_hook=members)
    except ValueError:  # told outside of this block, so that no error keeps the text in its context
        fault = REQUEST_NOT_JSON
    except RecursionError:
        fault = REQUEST_TOO_DEEP
    if fault is not None:
        return None, odd, (fault, "")
    has_halves = "\\ud" in text or "\\uD" in text or (isinstance(data, str) and not can_be_encoded(text))
    if repeated or has_halves or text.count("{") + text.count("[") > max_depth:
        names = {key: name for key, (_, name) in repeated.items()}
        value, is_deep = _settle(value, names, has_halves, max_depth, odd)
        if is_deep:
            return None, odd, (REQUEST_TOO_DEEP, "")
    return value, odd, None


def _mended(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair."""
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


def _settle(
    value: Any, repeated: Mapping[int, list[str]], has_halves: bool, max_depth: int, odd: Oddities
) -> tuple[Any, bool]:
    """The value without halves of surrogate pairs, and whether it is too deep."""
    root = [value]
    # For each container around: itself, the steps in it that are left, and its place, which is the place of the
    # container around it and the step from there.
    around: list[tuple[Any, Iterator[Any], Any]] = [(root, iter((0,)), None)]
    while around:
        holder, steps, place = around[-1]
        for step in steps:
            item = holder[step]
            if isinstance(item, str):
                if has_halves and not can_be_encoded(item):
                    holder[step] = _mended(item)
                    odd.add(REQUEST_LONE_SURROGATE, (place, step) if holder is not root else None)
            elif isinstance(item, (dict, list)):
                if len(around) > max_depth:
                    return None, True
                here = (place, step) if holder is not root else None
                if isinstance(item, dict):
                    _settle_names(item, repeated.get(id(item), ()), has_halves, here, odd)
                    around.append((item, iter(item), here))
                else:
                    around.append((item, iter(range(len(item))), here))
                break
        else:
            around.pop()
    return root[0], False


def _settle_names(item: dict[str, Any], repeated: Any, has_halves: bool, here: Any, odd: Oddities) -> None:
    counts = bool(repeated) and _counts(here)
    for name in repeated:
        if counts and name in NAMES:
            odd.add(REQUEST_DUPLICATE_KEY, (here, name))
        else:
            odd.add(REQUEST_DUPLICATE_OTHER, here)
    if has_halves and not all(map(can_be_encoded, item)):
        odd.add(REQUEST_LONE_SURROGATE, here)
        mended = {_mended(name): inner for name, inner in item.items()}
        item.clear()
        item.update(mended)


def _counts(place: Any) -> bool:
    """Whether the members of the object at this place are the draft's own, and not inside a value that is opaque."""
    steps: list[Any] = []
    while place is not None:
        if len(steps) == MAX_OWN_STEPS:  # so that deep places cost no more than others
            return False
        place, step = place
        steps.append(0 if isinstance(step, int) else step)
    return tuple(reversed(steps)) in OWN


def _steps(place: Any) -> list[Any]:
    steps: list[Any] = []
    while place is not None:
        place, step = place
        steps.append(step)
    steps.reverse()
    return steps


def json_of(given: Any) -> tuple[str, tuple[int, str, str] | None]:
    """The JSON text of a request that is given as a mapping; or the rule, the path and the detail of why there is none:
    a number that cannot be written, nesting beyond ``MAX_DEPTH`` (or without an end), over ``DEFAULT_MAX_SIZE``.

    Raises TypeError for what is no mapping, for a name that is no str, and for a value of a type that JSON does not
    have, with the place.
    """
    if not is_mapping(given):
        raise TypeError(f"a request is a Request, a mapping, a str or bytes, not {type(given).__name__}")
    out = ["{"]
    size = 2
    steps: list[Any] = []  # to the item
    around: list[tuple[Iterator[tuple[Any, Any]], str]] = [(iter(given.items()), "}")]
    while around:
        items, end = around[-1]
        del steps[len(around) - 1 :]
        found = next(items, None)
        if found is None:
            around.pop()
            if out[-1] == ",":
                out.pop()
            out += (end, ",")
            continue
        step, item = found
        if end == "}":
            if not isinstance(step, str):
                raise TypeError(f"a name in a request must be a str, not {type(step).__name__}: {_there(steps)}")
            out += (encode_basestring(step), ":")
            size += len(step) + 3
        steps.append(step)
        if item is None or isinstance(item, (str, int, float)):
            piece = scalar(item)
            if piece is None:
                return "", (REQUEST_NOT_JSON, path_of(steps, NAMES), "a number that cannot be written as JSON")
            out += (piece, ",")
            size += len(piece) + 1
        elif isinstance(item, (list, tuple)):
            out.append("[")
            size += 3
            around.append((enumerate(item), "]"))
        elif is_mapping(item):
            out.append("{")
            size += 3
            around.append((iter(item.items()), "}"))
        else:
            raise TypeError(f"a request cannot hold a {type(item).__name__}: {_there(steps)}")
        if len(around) > MAX_DEPTH:
            return "", (REQUEST_TOO_DEEP, "", "")
        if size > DEFAULT_MAX_SIZE:
            return "", (REQUEST_TOO_LARGE, "", "")
    out.pop()
    return "".join(out), None


def _there(steps: list[Any]) -> str:
    return path_of(steps, NAMES) or "the request itself"
