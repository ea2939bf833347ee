"""What the fields of events may hold; both twins check their constructors with these, so that errors are the same."""

from __future__ import annotations

from . import payload
from .rules import MAX_INTEGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = [
    "envelope",
    "extensions",
    "extensions_of",
    "integer",
    "may_have_extensions",
    "optional_integer",
    "optional_text",
    "text",
]


def text(name: str, value: Any) -> str:
    """``value`` if it is a str that can be encoded; raises TypeError or ValueError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    found = value if type(value) is str else str(value)
    if not _can_be_encoded(found):
        raise ValueError(f"{name} holds half a surrogate pair")
    return found


def _can_be_encoded(value: str) -> bool:
    # Not within the except block: the error's context would hold the text.
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def optional_text(name: str, value: Any) -> str | None:
    """``value`` if it is a str or None; raises TypeError otherwise."""
    return None if value is None else text(name, value)


def integer(name: str, value: Any) -> int:
    """``value`` if it is an int from 0 to 2**63 - 1; raises TypeError or ValueError otherwise."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 0 <= value <= MAX_INTEGER:
        raise ValueError(f"{name} must be from 0 to 2**63 - 1")
    return int(value)


def optional_integer(name: str, value: Any) -> int | None:
    """As ``integer``, or None."""
    return None if value is None else integer(name, value)


def extensions(value: Mapping[str, Any] | payload.Written | None) -> str | None:
    """Extensions as compact JSON text, None where there are none. Raises TypeError for what is no mapping or has a name
    that is no str, at any depth, and ValueError for what JSON cannot hold."""
    if value is None:
        return None
    if isinstance(value, payload.Written):
        return value.text
    if not hasattr(value, "keys"):
        raise TypeError(f"extensions must be a mapping, not {type(value).__name__}")
    members = dict(value)
    if not members:
        return None
    try:
        text = payload.dumps(members)
    except TypeError as error:
        fault: Exception = TypeError(str(error))
    except ValueError as error:
        fault = ValueError(str(error))
    except RecursionError:
        fault = ValueError("extensions is nested too deeply")
    else:
        _check_names(members)
        return text
    raise fault  # without what newer Pythons note on their own error: the names


def _check_names(members: dict[str, Any]) -> None:
    # json makes str of other names, so that 1 and "1" were the same. It has come to an end of these values.
    values: list[Any] = [members]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            if not all(isinstance(name, str) for name in value):
                raise TypeError("extensions must have str keys")
            values.extend(value.values())
        elif isinstance(value, (list, tuple)):
            values.extend(value)


def may_have_extensions(raw: bytes) -> bool:
    """Whether an envelope could have a member of that name, however it is spelled."""
    if raw.find(b"extensions") >= 0:  # which costs half of what "in" does
        return True
    return raw.find(b"\\") >= 0 and (b"\\u006" in raw or b"\\u007" in raw)


def extensions_of(raw: bytes) -> dict[str, Any]:
    """The ``extensions`` member of an envelope (draft, section 4.7), as data; anything but an object is {}."""
    if not may_have_extensions(raw):
        return {}
    try:
        # What is handed out can be encoded again (resolution A-24).
        envelope = payload.loads(payload.without_lone_surrogates(raw.decode("utf-8", "replace"))[0])
    except (ValueError, RecursionError):
        return {}
    found = envelope.get("extensions") if isinstance(envelope, dict) else None
    return found if isinstance(found, dict) else {}


def envelope(kind: str, seq: int | None, members: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope of an event that was not read from a stream (draft, section 5.2)."""
    found: dict[str, Any] = {"v": "1.0", "seq": seq, "type": kind}
    found.update((name, value) for name, value in members.items() if value is not None)
    if extra:
        found["extensions"] = dict(extra)
    return found
