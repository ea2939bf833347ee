"""Members of JSON objects, of a type or refused; and what the formats have in common: content, media, arguments."""

from __future__ import annotations

from ..negotiation import parse_media_type
from ..request.parts import KINDS, base64_fault
from ..request.reading import read
from ..request.values import MAX_DEPTH, Number, write
from ..rules import MAX_INTEGER, REQUEST_LOOSE_BASE64, REQUEST_NOT_BASE64, ROLES, RULES
from .losses import join, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .losses import Losses

__all__ = [
    "DEPTH",
    "MESSAGE",
    "arguments_of",
    "array",
    "content_of",
    "data_url",
    "each",
    "essence",
    "messages_of",
    "parameters_of",
    "parts_of",
    "plain_base64",
    "read_data_url",
    "required_members",
    "required_text",
    "text",
    "written_arguments",
]

DEPTH = MAX_DEPTH - 20
"""Nesting of a body, or of arguments, beyond this is refused: what is made of it has a few levels around it."""

MESSAGE = frozenset({"role", "content", "name", "tool_call_id", "tool_calls"})
CALL = frozenset({"id", "name", "arguments"})
MEDIA = frozenset({"type", "media_type", "data"})


# Reading a vendor's body


def members(value: Any, path: str) -> dict[str, Any]:
    """An object; null counts as an empty one. Raises RequestError for anything else."""
    return {} if value is None else required_members(value, path)


def required_members(value: Any, path: str) -> dict[str, Any]:
    """An object. Raises RequestError for anything else."""
    if not isinstance(value, dict):
        raise refused(path, "not an object")
    return value


def array(holder: dict[str, Any], name: str, path: str) -> list[Any]:
    """A member that is an array; absent or null counts as an empty one. Raises RequestError for anything else."""
    found = holder.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise refused(join(path, name), "not an array")
    return found


def each(holder: dict[str, Any], name: str, path: str) -> Iterator[tuple[str, Any]]:
    """The path and the value of every item of a member that is an array, or of the one object that stands for it, as
    Google's servers take it; absent or null counts as an empty array. Raises RequestError for anything else."""
    here, found = join(path, name), holder.get(name)
    if isinstance(found, dict):
        yield here, found
        return
    for position, value in enumerate(array(holder, name, path)):
        yield f"{here}[{position}]", value


def text(holder: dict[str, Any], name: str, path: str) -> str | None:
    """A member that is a string; None where it is absent or null. Raises RequestError for anything else."""
    found = holder.get(name)
    if found is None or isinstance(found, str):
        return found
    raise refused(join(path, name), "not a string")


def required_text(holder: dict[str, Any], name: str, path: str) -> str:
    """A member that is a string. Raises RequestError for anything else, and where it is absent."""
    found = holder.get(name)
    if not isinstance(found, str):
        raise refused(join(path, name), "absent or not a string")
    return found


def flag(holder: dict[str, Any], name: str, path: str) -> bool:
    """A member that is a boolean; False where it is absent or null. Raises RequestError for anything else."""
    found = holder.get(name)
    if found is None or isinstance(found, bool):
        return bool(found)
    raise refused(join(path, name), "not a boolean")


def content_of(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Parts as a content: the draft has a string for a single text (section 4.3.1)."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        found: str = parts[0]["text"]
        return found
    return parts


def media_part(kind: str, media_type: str, data: str, path: str, losses: Losses) -> dict[str, Any] | None:
    """A part that carries a file; None, and a loss, where the data is not base64."""
    plain = plain_base64(data)
    if plain is None:
        losses.add(path, RULES[REQUEST_NOT_BASE64].message)
        return None
    return {"type": kind, "media_type": media_type, "data": plain}


def kind_of(media_type: str) -> str | None:
    """The kind of part for a media type; None for a video, which the draft has no part for."""
    family = essence(media_type).partition("/")[0]
    return {"image": "image", "audio": "audio", "video": None}.get(family, "document")


def written_arguments(value: Any) -> str:
    """The arguments of a call as JSON text."""
    return write(value).decode()


# Walking over a standard request


def messages_of(envelope: dict[str, Any], losses: Losses) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, role and members of the messages of a request that was validated; those of a role that the draft does not
    know are lost."""
    for number, message in enumerate(envelope["messages"]):
        path = f"messages[{number}]"
        role = message["role"]
        if role not in ROLES:
            losses.add(path, "its role is none of the draft's words")
            continue
        losses.rest(message, MESSAGE, path)
        if role != "tool" and message.get("tool_call_id") is not None:
            losses.add(f"{path}.tool_call_id", "it belongs to a tool message")
        if role != "assistant" and message.get("tool_calls"):
            losses.add(f"{path}.tool_calls", "they belong to an assistant message")
        yield path, role, message


def parts_of(message: dict[str, Any], path: str, losses: Losses) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, kind and members of the parts of a message, whichever form its content has; parts of a kind that the draft
    does not know are lost."""
    content = message.get("content")
    if isinstance(content, str):
        yield f"{path}.content", "text", {"type": "text", "text": content}
        return
    for number, part in enumerate(content or ()):
        here = f"{path}.content[{number}]"
        kind = part["type"]
        if kind not in KINDS:
            losses.add(here, "its type is none of the draft's words")
            continue
        losses.rest(part, MEDIA if kind != "text" else ("type", "text"), here)
        if kind != "text":
            part = {**part, "data": plain_base64(part["data"])}
        yield here, kind, part


def calls_of(message: dict[str, Any], path: str, losses: Losses) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and members of the tool calls of an assistant message."""
    for number, call in enumerate(message.get("tool_calls") or ()):
        here = f"{path}.tool_calls[{number}]"
        losses.rest(call, CALL, here)
        yield here, call


def arguments_of(call: dict[str, Any], path: str, losses: Losses) -> dict[str, Any]:
    """The arguments of a call as the object that Anthropic and Gemini have; empty, and a loss, where they are none."""
    value, odd, fault = read(call["arguments"], max_size=MAX_INTEGER, max_depth=DEPTH)
    here = f"{path}.arguments"
    if fault is not None or not isinstance(value, dict):
        losses.add(here, "not a JSON object; sent as an empty one")
        return {}
    for rule, _ in odd.told:
        losses.add(here, RULES[rule].message)
    return value


# Media


def essence(media_type: str) -> str:
    """A media type without its parameters, in lower case: so two can be compared (RFC 9110, section 8.3.1)."""
    return media_type.partition(";")[0].strip(" \t").lower()


def parameters_of(media_type: str) -> dict[str, str]:
    """The parameters of a media type, with their names and the ``charset`` in lower case."""
    found = parse_media_type(media_type) if ";" in media_type else None
    return {} if found is None else found.parameters


def plain_base64(data: str) -> str | None:
    """Base64 in the standard alphabet with its padding (RFC 4648, section 4); None where it is none."""
    fault = base64_fault(data)
    if fault == REQUEST_NOT_BASE64:
        return None
    if fault == REQUEST_LOOSE_BASE64:
        data = data.rstrip("=").translate({0x2D: "+", 0x5F: "/"})
        return data + "=" * (-len(data) % 4)
    return data


def data_url(media_type: str, data: str) -> str:
    """A ``data:`` URL (RFC 2397) of base64."""
    return f"data:{media_type};base64,{data}"


def read_data_url(url: str) -> tuple[str, str] | None:
    """The media type and the base64 of a ``data:`` URL; None for any other URL."""
    if url[:5].lower() != "data:":
        return None
    head, comma, data = url[5:].partition(",")
    media_type, _, encoding = head.rpartition(";")
    if not comma or encoding.strip().lower() != "base64":
        return None
    return media_type or "text/plain", data


def integer(value: Any) -> int | None:
    """An integer, also one that is written as 6.0; None for anything else."""
    if isinstance(value, float) and not isinstance(value, bool) and value.is_integer() and abs(value) <= 2**53:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, Number):
        return float(value) if value - value == 0 else None
    return value
