"""What controls the generation, under the names that each vendor has for it (draft, section 4.5)."""

from __future__ import annotations

from .losses import join, refused
from .members import integer, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from .losses import Losses

__all__ = ["read_parameters", "write_parameters"]

KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "max_tokens": (integer, "not an integer"),
    "temperature": (number, "not a number"),
    "top_p": (number, "not a number"),
    "top_k": (integer, "not an integer"),
    "seed": (integer, "not an integer"),
    "presence_penalty": (number, "not a number"),
    "frequency_penalty": (number, "not a number"),
}
"""The draft's parameters, and those beside them that several vendors share; section 4.5 lets vendors add their own."""


def write_parameters(
    envelope: dict[str, Any],
    names: Mapping[str, str],
    losses: Losses,
    *,
    most: Mapping[str, float],
    most_stops: int | None,
) -> dict[str, Any]:
    """The parameters of a request under a vendor's ``names``. What is over what the vendor takes at ``most`` is sent as
    that, and told."""
    found: dict[str, Any] = {}
    given = envelope.get("parameters") or {}
    for name, value in given.items():
        path = join("parameters", name)
        if value is None:
            continue
        if name not in names:
            losses.add(path)
        elif name == "stop_sequences":
            stops = _stops(value)
            if stops is None:
                losses.add(path, "not an array of strings")
                continue
            for position in range(most_stops or len(stops), len(stops)):
                losses.add(f"{path}[{position}]", f"the vendor takes {most_stops} at most")
            if stops:
                found[names[name]] = stops[:most_stops]
        else:
            check, fault = KINDS[name]
            checked = check(value)
            if checked is None or (name == "max_tokens" and not isinstance(value, int)):
                losses.add(path, fault)
                continue
            limit = most.get(name)
            if limit is not None and not 0 <= checked <= limit:
                losses.add(path, f"the vendor takes 0 to {limit}; sent as the nearest")
                checked = min(max(checked, 0), limit)
            found[names[name]] = checked
    return found


def read_parameters(
    holder: dict[str, Any], names: Mapping[str, str], path: str, losses: Losses, *, also: Iterable[tuple[str, str]] = ()
) -> dict[str, Any]:
    """The parameters that a vendor's object has under its ``names``; ``also`` are older names of some."""
    found: dict[str, Any] = {}
    for name, vendor in [*names.items(), *also]:
        value = holder.get(vendor)
        here = join(path, vendor)
        if value is None:
            continue
        if name == "stop_sequences":
            read: Any = _stops([value] if isinstance(value, str) else value)
            fault = "neither a string nor an array of strings"
        else:
            check, fault = KINDS[name]
            read = check(value)
        if read is None:
            raise refused(here, fault)
        if name not in found:
            found[name] = read
        elif found[name] != read:
            losses.add(here, f"{join(path, names[name])} says something else")
    return {name: value for name, value in found.items() if value != []}


def _stops(value: Any) -> list[str] | None:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return list(value)
    return None
