"""Whether a record that somebody else made holds what its fields declare: no format spells anything else alike."""

from __future__ import annotations

from typing import get_args, get_origin, get_type_hints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["is_like"]

LARGEST = 2**63
"""No integer is as large, nor is what it is below zero larger: columns hold 64 bits."""


def is_like(made: Any, original: Any) -> bool:
    """Whether a dataclass is of the class of another, and what it holds instead is of the declared types."""
    kind: Any = type(original)
    return type(made) is kind and all(
        (value := getattr(made, name)) is getattr(original, name) or _is_of(value, declared)
        for name, declared in _fields(kind)
    )


def _is_of(value: Any, declared: Any) -> bool:
    """Whether a value is of a declared type exactly: a class, a union or a tuple; a dataclass in all its fields."""
    inner = get_args(declared)
    if get_origin(declared) is tuple:
        if type(value) is not tuple:
            return False
        kinds = (inner[0],) * len(value) if inner[-1] is Ellipsis else inner
        return len(value) == len(kinds) and all(map(_is_of, value, kinds))
    if inner:
        return any(_is_of(value, kind) for kind in inner)
    if type(value) is not declared:
        return False
    if hasattr(declared, "__dataclass_fields__"):
        return all(_is_of(getattr(value, name), kind) for name, kind in _fields(declared))
    return declared is not int or -LARGEST <= value < LARGEST


_known: dict[Any, tuple[tuple[str, Any], ...]] = {}


def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    if kind not in _known:
        _known[kind] = tuple(get_type_hints(kind).items())
    return _known[kind]
