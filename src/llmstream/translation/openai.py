"""Requests for OpenAI's chat completions, to and from the standard form."""

from __future__ import annotations

from .losses import join, refused
from .members import (
    array,
    calls_of,
    content_of,
    data_url,
    essence,
    flag,
    media_part,
    members,
    messages_of,
    parts_of,
    read_data_url,
    required_members,
    required_text,
    text,
)
from .parameters import read_parameters, write_parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .losses import Losses

__all__ = ["read", "write"]

PARAMETERS = {
    "max_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
MOST = {"temperature": 2, "top_p": 1}
MOST_STOPS = 4

AUDIO = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mp3": "mp3"}
FORMATS = {"wav": "audio/wav", "mp3": "audio/mpeg"}

FILENAME = "document"
"""OpenAI wants a name beside the data of a file; the draft has none."""

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}

BODY = (
    "model",
    "messages",
    "tools",
    "stream",
    "stream_options",
    "metadata",
    "user",
    "safety_identifier",
    "max_tokens",
    *PARAMETERS.values(),
)


# To OpenAI


def write(envelope: dict[str, Any], losses: Losses) -> dict[str, Any]:
    """The body of a request to chat completions."""
    body: dict[str, Any] = {"model": envelope["model"], "messages": []}
    for path, role, message in messages_of(envelope, losses):
        body["messages"].append(_message(message, role, path, losses))
    tools = envelope.get("tools") or []
    if tools:
        body["tools"] = []
    for position, tool in enumerate(tools):
        losses.rest(tool, ("name", "description", "parameters"), f"tools[{position}]")
        function = {name: tool[name] for name in ("name", "description", "parameters")}
        body["tools"].append({"type": "function", "function": function})
    body |= write_parameters(envelope, PARAMETERS, losses, most=MOST, most_stops=MOST_STOPS)
    body["stream"] = envelope["stream"]
    if envelope["stream"]:
        body["stream_options"] = {"include_usage": True}
    # OpenAI takes other metadata only for answers that it is told to store.
    for name, value in (envelope.get("metadata") or {}).items():
        if name == "user_id" and isinstance(value, str):
            body["user"] = value
        elif value is not None:
            losses.add(join("metadata", name))
    return body


def _message(message: dict[str, Any], role: str, path: str, losses: Losses) -> dict[str, Any]:
    found: dict[str, Any] = {"role": role}
    if role == "tool":
        found["tool_call_id"] = message["tool_call_id"]
    parts = []
    for here, kind, part in parts_of(message, path, losses):
        if kind == "text":
            parts.append({"type": "text", "text": part["text"]})
        elif role != "user":
            losses.add(here, f"OpenAI takes only text in a message of the role {role}")
        elif kind == "image":
            url = data_url(part["media_type"], part["data"])
            parts.append({"type": "image_url", "image_url": {"url": url}})
        elif kind == "document":
            url = data_url(part["media_type"], part["data"])
            parts.append({"type": "file", "file": {"filename": FILENAME, "file_data": url}})
        elif essence(part["media_type"]) in AUDIO:
            form = AUDIO[essence(part["media_type"])]
            if FORMATS[form] != part["media_type"].lower():
                losses.add(f"{here}.media_type", "OpenAI names only the format")
            parts.append({"type": "input_audio", "input_audio": {"data": part["data"], "format": form}})
        else:
            losses.add(here, "OpenAI takes only WAV and MP3")
    content = message.get("content")
    found["content"] = content if content is None or isinstance(content, str) else parts or ""
    name = message.get("name")
    if name is not None:
        if role == "tool":
            losses.add(f"{path}.name")
        else:
            found["name"] = name
    if role == "assistant":
        calls = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for _, call in calls_of(message, path, losses)
        ]
        if calls:
            found["tool_calls"] = calls
    return found


# From OpenAI


def read(body: dict[str, Any], losses: Losses, model: str | None, stream: bool | None) -> dict[str, Any]:
    """The standard request that a body says."""
    losses.rest(body, BODY, "")
    streamed = flag(body, "stream", "")
    envelope: dict[str, Any] = {
        "version": "1.0",
        "stream": streamed if stream is None else stream,
        "model": required_text(body, "model", "") if model is None else model,
        "messages": [],
    }
    losses.rest(members(body.get("stream_options"), "stream_options"), ("include_usage",), "stream_options")
    for position, message in enumerate(array(body, "messages", "")):
        found = _read_message(message, f"messages[{position}]", losses)
        if found is not None:
            envelope["messages"].append(found)
    tools = [
        tool
        for position, each in enumerate(array(body, "tools", ""))
        if (tool := _read_tool(each, f"tools[{position}]", losses)) is not None
    ]
    if tools:
        envelope["tools"] = tools
    parameters = read_parameters(body, PARAMETERS, "", losses, also=[("max_tokens", "max_tokens")])
    if parameters:
        envelope["parameters"] = parameters
    metadata = {name: value for name, value in members(body.get("metadata"), "metadata").items() if value is not None}
    for name in ("user", "safety_identifier"):
        user = text(body, name, "")
        if user is None:
            continue
        if metadata.setdefault("user_id", user) != user:
            losses.add(name, "there is another user_id")
    if metadata:
        envelope["metadata"] = metadata
    return envelope


def _read_message(message: Any, path: str, losses: Losses) -> dict[str, Any] | None:
    message = required_members(message, path)
    role = ROLES.get(required_text(message, "role", path))
    if role is None:
        losses.add(path, "the draft has no such role")
        return None
    found: dict[str, Any] = {"role": role}
    known = ["role", "content", "name"]
    if role == "tool":
        known.append("tool_call_id")
        found["tool_call_id"] = required_text(message, "tool_call_id", path)
    content = message.get("content")
    if isinstance(content, list):
        found["content"] = content_of(_read_parts(content, f"{path}.content", losses))
    elif isinstance(content, str):
        found["content"] = content
    elif content is None and role == "assistant":
        found["content"] = None
    else:
        raise refused(f"{path}.content", "absent or neither a string nor an array")
    name = text(message, "name", path)
    if name is not None:
        found["name"] = name
    if role == "assistant":
        known.append("tool_calls")
        calls = [
            call
            for position, each in enumerate(array(message, "tool_calls", path))
            if (call := _read_call(each, f"{path}.tool_calls[{position}]", losses)) is not None
        ]
        if calls:
            found["tool_calls"] = calls
        elif content is None:
            found["content"] = ""
    losses.rest(message, known, path)
    return found


def _read_call(call: Any, path: str, losses: Losses) -> dict[str, Any] | None:
    call = required_members(call, path)
    if (text(call, "type", path) or "function") != "function":
        losses.add(path, "the draft has no such call")
        return None
    losses.rest(call, ("id", "type", "function", "index"), path)
    here = f"{path}.function"
    function = members(call.get("function"), here)
    losses.rest(function, ("name", "arguments"), here)
    return {
        "id": required_text(call, "id", path),
        "name": required_text(function, "name", here),
        "arguments": required_text(function, "arguments", here),
    }


def _read_parts(parts: list[Any], path: str, losses: Losses) -> list[dict[str, Any]]:
    found = []
    for position, part in enumerate(parts):
        here = f"{path}[{position}]"
        part = required_members(part, here)
        kind = required_text(part, "type", here)
        made = None
        if kind == "text":
            losses.rest(part, ("type", "text"), here)
            made = {"type": "text", "text": required_text(part, "text", here)}
        elif kind in ("image_url", "file", "input_audio"):
            losses.rest(part, ("type", kind), here)
            holder = members(part.get(kind), f"{here}.{kind}")
            made = _read_media(kind, holder, f"{here}.{kind}", losses)
        else:
            losses.add(here, "the draft has no such part")
        if made is not None:
            found.append(made)
    return found


def _read_media(kind: str, holder: dict[str, Any], path: str, losses: Losses) -> dict[str, Any] | None:
    if kind == "input_audio":
        losses.rest(holder, ("data", "format"), path)
        form = required_text(holder, "format", path)
        if form not in FORMATS:
            losses.add(path, "its format is none of OpenAI's words")
            return None
        return media_part("audio", FORMATS[form], required_text(holder, "data", path), path, losses)
    if kind == "image_url":
        if holder.get("detail") == "auto":  # which is what its absence means
            holder = {name: value for name, value in holder.items() if name != "detail"}
        losses.rest(holder, ("url",), path)
        url = required_text(holder, "url", path)
    else:
        if holder.get("filename") == FILENAME:
            holder = {name: value for name, value in holder.items() if name != "filename"}
        losses.rest(holder, ("file_data",), path)
        url = text(holder, "file_data", path) or ""
    found = read_data_url(url)
    if found is None:
        losses.add(path, "the draft has only files that are sent with the request, as base64")
        return None
    return media_part("image" if kind == "image_url" else "document", *found, path, losses)


def _read_tool(tool: Any, path: str, losses: Losses) -> dict[str, Any] | None:
    tool = required_members(tool, path)
    if required_text(tool, "type", path) != "function":
        losses.add(path, "the draft has only functions that the client runs")
        return None
    losses.rest(tool, ("type", "function"), path)
    here = f"{path}.function"
    function = members(tool.get("function"), here)
    losses.rest(function, ("name", "description", "parameters"), here)
    return {
        "name": required_text(function, "name", here),
        "description": text(function, "description", here) or "",
        "parameters": members(function.get("parameters"), f"{here}.parameters"),
    }
