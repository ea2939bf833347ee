"""A template of a chunk: learned from one that the SDK built, it builds those that differ in a few words only.

The payloads of an answer are alike up to the generated text. A template holds what is the same as bytes between which
the *free* members stand (a text, a sequence number), and knows where in the SDK's object each of them went. A payload
with the same bytes around other words gives the same object around those words: copied level by level, so that no part
of it is shared with another chunk.
"""

from __future__ import annotations

import json.decoder
import re
from operator import itemgetter
from typing import Any, Optional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Values: TypeAlias = tuple[str | int, ...]
    Path: TypeAlias = tuple[str | int, ...]
    Build: TypeAlias = Callable[[Values], Any]

__all__ = ["Template", "learn", "same"]

MAX_PAYLOAD = 16 * 1024
"""Characters of a payload that a template is learned from."""

MAX_FREE = 4
"""Free members of one payload."""

MAX_DEPTH = 16
"""Levels of the payloads and objects that are learned from; no chunk of text is as deep."""

# Members whose value the SDKs take as it is. What is found here by name is checked against the type of the field.
_FREE = re.compile(
    r'"(?:(?:content|text|delta|arguments|reasoning_content|reasoning|refusal|thinking|partial_json|input|obfuscation)'
    r'"[ ]?:[ ]?(?P<text>")|sequence_number"[ ]?:[ ]?(?P<number>(?=[0-9])))'
)
_DIGITS = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_FREE_TYPES: tuple[Any, ...] = (str, Optional[str], int, Optional[int])  # noqa: UP045 (as the SDKs spell them)
_VALIDATORS = ("validators", "field_validators", "root_validators", "model_validators")
_PLAIN = (str, int, float, bool, type(None))

# A JSON string from behind its opening quote: the text, and where it ends. In C where CPython has it so.
scanstring: Callable[[str, int], tuple[str, int]] = vars(json.decoder)["scanstring"]
_new = object.__new__
_set = object.__setattr__


class _Unfit(Exception):  # noqa: N818 (no error: this payload is left to the SDK)
    """No template can be made of this payload, or of this object."""


class Template:
    """How payloads of one form are recognised, and their objects built.

    ``match``   the free members of a payload of this form; None for any other, and for one that is no JSON
    ``build``   the object of a payload with these free members; each call gives a new one, which shares nothing mutable
    ``names``   the members of the payload
    ``cast_to`` the class that the SDK was asked for
    ``proved``  its object was compared with the SDK's own for a payload other than the one it was learned from
    """

    __slots__ = ("build", "cast_to", "match", "names", "proved")

    def __init__(
        self, match: Callable[[str], Values | None], build: Build, names: frozenset[str], cast_to: object
    ) -> None:
        self.match = match
        self.build = build
        self.names = names
        self.cast_to = cast_to
        self.proved = False


def learn(data: str, payload: dict[str, Any], built: Any, cast_to: object, package: str) -> Template | None:
    """A template of ``data``, whose JSON is ``payload``, of which the SDK of this name (``package``) built ``built``
    when it was asked for ``cast_to``; None where a part of it is not known to be the same for every text.
    """
    if len(data) > MAX_PAYLOAD:
        return None
    try:
        literals, values = _cut(data)
        match = _matcher(literals, [type(value) for value in values])
        if match(data) != tuple(values):
            return None
        free = _places(literals, values, payload)
        build, found = _recipe(built, payload, free, package + ".types.", MAX_DEPTH)
        if build is None or sorted(found) != list(range(len(values))):
            return None
    except (_Unfit, ValueError, LookupError):  # what looks like a member may stand within a text
        return None
    return Template(match, build, frozenset(payload), cast_to)


def same(one: Any, other: Any) -> bool:
    """Whether two objects that an SDK builds are alike in all that can be asked of them: types, values, the order of
    members, which of them were given, and what the class does not declare.
    """
    kind = type(one)
    if kind is not type(other):
        return False
    if hasattr(kind, "__pydantic_fields_set__"):
        return (
            same(one.__dict__, other.__dict__)
            and same(one.__pydantic_extra__, other.__pydantic_extra__)
            and same(one.__pydantic_fields_set__, other.__pydantic_fields_set__)
            and same(one.__pydantic_private__, other.__pydantic_private__)
        )
    if kind is dict:
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if kind is list:
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _cut(data: str) -> tuple[list[str], Values]:
    """The payload as pieces between its free members, and these."""
    literals: list[str] = []
    values: list[str | int] = []
    last = 0
    for found in _FREE.finditer(data):
        start = found.end()
        if found.start() < last:
            continue
        if len(values) == MAX_FREE:
            raise _Unfit
        literals.append(data[last:start])
        if found["text"]:
            value, last = scanstring(data, start)
            values.append(value)
        else:
            digits = _DIGITS.match(data, start)
            if digits is None:
                raise _Unfit
            values.append(int(digits[0]))
            last = digits.end()
    if not values:
        raise _Unfit
    literals.append(data[last:])
    return literals, tuple(values)


def _matcher(literals: list[str], kinds: list[type]) -> Callable[[str], Values | None]:
    """Reads the free members of a payload that has these pieces around them."""
    if kinds == [str]:
        return _text_matcher(*literals)
    first, *rest = literals
    steps = [(kind is str, literal, len(literal)) for kind, literal in zip(kinds, rest, strict=True)]

    def match(data: str) -> Values | None:
        if not data.startswith(first):
            return None
        values: list[str | int] = []
        end = len(first)
        try:
            for is_text, literal, size in steps:
                start = end
                if is_text:
                    value, end = scanstring(data, start)
                    if not value.isascii() and _is_broken(value, data, start, end):
                        return None
                    values.append(value)
                else:
                    digits = _DIGITS.match(data, start)
                    if digits is None:
                        return None
                    values.append(int(digits[0]))
                    end = digits.end()
                if not data.startswith(literal, end):
                    return None
                end += size
        except ValueError:
            return None
        return tuple(values) if end == len(data) else None

    return match


def _text_matcher(before: str, after: str) -> Callable[[str], Values | None]:
    """The same for one text, which is what most streams have."""
    start = len(before)
    size = len(after)

    def match(data: str) -> Values | None:
        if not data.startswith(before):
            return None
        try:
            value, end = scanstring(data, start)
        except ValueError:
            return None
        if len(data) - end != size or not data.endswith(after):
            return None
        if not value.isascii() and _is_broken(value, data, start, end):
            return None
        return (value,)

    return match


def _is_broken(value: str, data: str, start: int, end: int) -> bool:
    """Whether a text holds half a surrogate pair, which pydantic refuses; only an escape can bring one in."""
    if data.find("\\u", start, end) < 0:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def _places(literals: list[str], values: Values, payload: dict[str, Any]) -> dict[Path, int]:
    """Where in the payload the free members stand: other values are put into its bytes, and looked for in its JSON.

    They are free only if nothing else changes by that, whatever the bytes look like.
    """
    marks: list[str | int] = []
    marked = literals[0]
    for number, (value, literal) in enumerate(zip(values, literals[1:], strict=True)):
        if isinstance(value, str):
            mark: str | int = f"{number}*{value}"
            marked += json.dumps(mark)[1:]  # its first quote ends the literal before
        else:
            mark = value + 1 + number * 10**17
            marked += str(mark)
        marks.append(mark)
        marked += literal
    places: dict[Path, int] = {}
    for path, old, new in _differences(payload, json.loads(marked), (), MAX_DEPTH):
        number = marks.index(new) if new in marks else -1
        if number < 0 or type(old) is not type(new) or old != values[number]:
            raise _Unfit
        places[path] = number
    if sorted(places.values()) != list(range(len(values))):
        raise _Unfit
    return places


def _differences(one: Any, other: Any, path: Path, depth: int) -> Iterator[tuple[Path, Any, Any]]:
    kind = type(one)
    if not depth:
        raise _Unfit
    if kind is type(other) and kind is dict:
        if list(one) != list(other):
            raise _Unfit
        for name, value in one.items():
            yield from _differences(value, other[name], (*path, name), depth - 1)
    elif kind is type(other) and kind is list:
        if len(one) != len(other):
            raise _Unfit
        for index, value in enumerate(one):
            yield from _differences(value, other[index], (*path, index), depth - 1)
    elif kind is not type(other) or one != other:
        yield path, one, other


def _recipe(value: Any, source: Any, free: dict[Path, int], types: str, depth: int) -> tuple[Build | None, list[int]]:
    """How to build ``value`` again, and which free members are in it; no way is needed where it cannot be changed.

    ``source``   the JSON that it was made of
    ``free``     the paths from here to free members
    """
    if () in free:
        if value != source or type(value) is not type(source):
            raise _Unfit
        return itemgetter(free[()]), [free[()]]
    kind = type(value)
    if kind in _PLAIN:
        return None, []
    if not depth:
        raise _Unfit
    if kind is dict or kind is list:
        names = value if kind is dict else range(len(value))
        children, found = _children([(name, name, value[name]) for name in names], source, free, types, depth)
        return _container(value, children), found
    return _model_recipe(value, source, free, types, depth)


def _children(
    members: list[tuple[Any, Any, Any]], source: Any, free: dict[Path, int], types: str, depth: int
) -> tuple[list[tuple[Any, Build]], list[int]]:
    """The recipes of members: name in the object, name in the JSON, value."""
    children: list[tuple[Any, Build]] = []
    found: list[int] = []
    for name, key, value in members:
        inner = {path[1:]: number for path, number in free.items() if path[0] == key}
        build, more = _recipe(value, source[key] if inner else None, inner, types, depth - 1)
        if build is not None:
            children.append((name, build))
        found += more
    return children, found


def _model_recipe(
    value: Any, source: Any, free: dict[Path, int], types: str, depth: int
) -> tuple[Build | None, list[int]]:
    kind = type(value)
    if not kind.__module__.startswith(types) or not hasattr(kind, "__pydantic_fields_set__"):
        raise _Unfit  # a class of the user's, or nothing that we know how to build
    if value.__pydantic_private__ is not None:
        raise _Unfit
    decorators = kind.__pydantic_decorators__
    if any(getattr(decorators, name) for name in _VALIDATORS):
        raise _Unfit
    fields = kind.model_fields
    members: list[tuple[Any, Any, Any]] = []
    for name, member in value.__dict__.items():
        field = fields[name]
        key = field.alias or name
        if (key,) in free and (field.annotation not in _FREE_TYPES or field.metadata):
            raise _Unfit  # a text that the SDK might take for something else
        members.append((name, key, member))
    children, found = _children(members, source, free, types, depth)
    extra = value.__pydantic_extra__
    others: list[tuple[Any, Build]] = []
    if extra:
        others, more = _children([(name, name, extra[name]) for name in extra], source, free, types, depth)
        found += more
    return _model(value, children, others), found


def _container(value: Any, children: list[tuple[Any, Build]]) -> Build:
    if len(children) == 1 and len(value) == 1 and type(value) is list:
        ((_, only),) = children
        return lambda values: [only(values)]
    copy = type(value)(value).copy  # of a copy: the object in hand is the user's, who may change it

    def build(values: Values) -> Any:
        made = copy()
        for name, child in children:
            made[name] = child(values)
        return made

    return build


def _model(value: Any, children: list[tuple[Any, Build]], others: list[tuple[Any, Build]]) -> Build:
    """By the four attributes that a model consists of, which the SDK's ``construct`` and pydantic's validation set."""
    kind = type(value)
    copy_members = dict(value.__dict__).copy
    extra = value.__pydantic_extra__
    copy_extra = None if extra is None else dict(extra).copy
    copy_given = set(value.__pydantic_fields_set__).copy

    def build(values: Values) -> Any:
        members = copy_members()
        for name, child in children:
            members[name] = child(values)
        more = None if copy_extra is None else copy_extra()
        for name, child in others:
            more[name] = child(values)  # type: ignore[index]
        made = _new(kind)
        _set(made, "__dict__", members)
        _set(made, "__pydantic_extra__", more)
        _set(made, "__pydantic_fields_set__", copy_given())
        _set(made, "__pydantic_private__", None)
        return made

    return build
