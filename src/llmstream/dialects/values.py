"""Reading decoded JSON that may hold anything anywhere: what is not of the right type counts as absent."""

from __future__ import annotations

from .. import payload
from ..declaration import parse_path
from ..rules import MAX_INTEGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..declaration import Path

__all__ = ["at", "compact", "items", "members", "number", "text", "unix_time", "whole", "word", "written"]

_paths: dict[str, Path] = {}


def text(value: Any) -> str:
    """A string; "" for anything else."""
    return value if type(value) is str else ""


def word(value: Any) -> str:
    """A string, or an integer (an enum's, a status's) as decimal text; "" for anything else."""
    if type(value) is int:
        return str(value) if -MAX_INTEGER <= value <= MAX_INTEGER else ""
    return text(value)


def number(value: Any) -> int | None:
    """An integer from 0 to 2**63 - 1; None for anything else."""
    return value if type(value) is int and 0 <= value <= MAX_INTEGER else None


def whole(value: Any) -> int | None:
    """As ``number``, also where the vendor writes 6 as 6.0."""
    return number(int(value) if type(value) is float and value.is_integer() else value)


def unix_time(stamp: Any) -> int | None:
    """A moment written as in RFC 3339, in Unix seconds; UTC where it names no zone. None for anything else."""
    if type(stamp) is not str or not stamp:
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(stamp)
        return number(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))
    except (OverflowError, ValueError):
        return None


def members(value: Any) -> dict[str, Any]:
    """An object; {} for anything else."""
    return value if type(value) is dict else {}


def items(value: Any) -> list[Any]:
    """An array without its nulls; [] for anything else."""
    if type(value) is not list:
        return []
    return [item for item in value if item is not None] if None in value else value


def at(value: Any, path: str | None) -> Any:
    """What stands at a path (written as in ``Delta``), or None."""
    if path is None:
        return None
    steps = _paths.get(path)
    if steps is None:
        steps = _paths[path] = parse_path(path)
    for step in steps:
        if isinstance(step, str):
            value = value.get(step) if type(value) is dict else None
        else:
            value = value[step] if type(value) is list and step < len(value) else None
    return value


def written(values: Mapping[str, Any]) -> payload.Written | None:
    """Those of ``values`` that JSON can hold, as JSON text; what came as 1e400 was read as infinity, which it cannot.
    None where nothing is left."""
    try:
        return payload.Written(payload.dumps(values)) if values else None
    except (RecursionError, ValueError):
        return written({name: value for name, value in values.items() if _is_portable(value)})


def _is_portable(value: Any) -> bool:
    try:
        payload.dumps(value)
    except (RecursionError, ValueError):
        return False
    return True


def compact(value: dict[str, Any]) -> str:
    """An object as compact JSON text, its members in the order in which they came."""
    try:
        return payload.dumps(value)
    except (RecursionError, ValueError):
        # Infinity: this text says what came, and will be found to be no JSON.
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
