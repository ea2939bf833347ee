"""Requests for Anthropic's messages, to and from the standard form."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

from .losses import join, refused
from .members import (
    arguments_of,
    array,
    calls_of,
    content_of,
    essence,
    flag,
    media_part,
    members,
    messages_of,
    parameters_of,
    parts_of,
    required_members,
    required_text,
    text,
    written_arguments,
)
from .parameters import read_parameters, write_parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .losses import Losses

__all__ = ["DEFAULT_MAX_TOKENS", "read", "write"]

DEFAULT_MAX_TOKENS = 4096
"""Anthropic requires a limit; this is what a request without one gets."""

PARAMETERS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop_sequences",
    "top_k": "top_k",
}
MOST = {"temperature": 1, "top_p": 1}

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF, PLAIN = "application/pdf", "text/plain"
UTF8 = ("utf-8", "us-ascii")

BODY = ("model", "system", "messages", "tools", "stream", "metadata", *PARAMETERS.values())


# To Anthropic


def write(envelope: dict[str, Any], losses: Losses) -> dict[str, Any]:
    """The body of a request to messages."""
    body: dict[str, Any] = {"model": envelope["model"]}
    system: list[dict[str, Any]] = []
    prompts = 0
    messages: list[dict[str, Any]] = []
    results: list[dict[str, Any]] | None = None  # those that the last message has, as long as only they are in it
    for path, role, message in messages_of(envelope, losses):
        if message.get("name") is not None:
            losses.add(f"{path}.name")
        blocks = _blocks(message, role, path, losses)
        if role == "system":
            prompts += 1
            if messages:
                losses.add(path, "its place in the conversation: Anthropic has one system prompt, at the beginning")
            elif prompts > 1:
                losses.add(path, "Anthropic has one system prompt: joined with the one before")
            if not blocks:
                losses.add(path, "nothing is left of it")
            system += blocks
            continue
        if role == "tool":
            content = message["content"] if isinstance(message["content"], str) else blocks
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
            if results is None:
                results = []
                messages.append({"role": "user", "content": results})
            results.append(result)
            continue
        results = None
        for here, call in calls_of(message, path, losses) if role == "assistant" else ():
            arguments = arguments_of(call, here, losses)
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": arguments})
        if not blocks:
            losses.add(path, "nothing is left of it, and Anthropic takes no empty message")
        elif isinstance(message.get("content"), str) and not message.get("tool_calls"):
            messages.append({"role": role, "content": message["content"]})
        else:
            messages.append({"role": role, "content": blocks})
    if system:
        is_text = len(system) == 1
        body["system"] = system[0]["text"] if is_text else system
    body["messages"] = messages
    tools = [_tool(tool, f"tools[{position}]", losses) for position, tool in enumerate(envelope.get("tools") or [])]
    if tools:
        body["tools"] = tools
    body |= write_parameters(envelope, PARAMETERS, losses, most=MOST, most_stops=None)
    if "max_tokens" not in body:
        body["max_tokens"] = DEFAULT_MAX_TOKENS
        losses.add("parameters.max_tokens", f"absent, and Anthropic requires it: {DEFAULT_MAX_TOKENS} was taken")
    body["stream"] = envelope["stream"]
    for name, value in (envelope.get("metadata") or {}).items():
        if name == "user_id" and isinstance(value, str):
            body["metadata"] = {"user_id": value}
        elif value is not None:
            losses.add(join("metadata", name))
    return body


def _blocks(message: dict[str, Any], role: str, path: str, losses: Losses) -> list[dict[str, Any]]:
    found = []
    for here, kind, part in parts_of(message, path, losses):
        if kind == "text":
            words = part["text"]
            if words.strip():
                found.append({"type": "text", "text": words})
            elif words and not (role == "tool" and isinstance(message["content"], str)):
                losses.add(here, "Anthropic takes no text that is only space")
            continue
        if role in ("system", "assistant"):
            losses.add(here, f"Anthropic takes only text in what the {role} says")
            continue
        media_type, data = essence(part["media_type"]), part["data"]
        parameters = parameters_of(part["media_type"])
        if kind == "image" and media_type in IMAGES:
            found.append({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        elif kind == "document" and media_type == PDF:
            found.append({"type": "document", "source": {"type": "base64", "media_type": PDF, "data": data}})
        elif kind == "document" and media_type == PLAIN and (words := _decoded(data, parameters)) is not None:
            found.append({"type": "document", "source": {"type": "text", "media_type": PLAIN, "data": words}})
        elif kind == "image":
            losses.add(here, "Anthropic takes only JPEG, PNG, GIF and WebP")
            continue
        elif kind == "document":
            losses.add(here, "Anthropic takes only PDF and plain text in UTF-8")
            continue
        else:
            losses.add(here, "Anthropic takes no sound")
            continue
        if parameters and not (media_type == PLAIN and parameters.keys() == {"charset"}):
            losses.add(f"{here}.media_type", "Anthropic has no parameters of a media type")
    return found


def _decoded(data: str, parameters: dict[str, str]) -> str | None:
    """The text that base64 holds; None where it is not UTF-8, or its media type says that it is not."""
    if parameters.get("charset", "utf-8") not in UTF8:
        return None
    try:
        return a2b_base64(data).decode()
    except UnicodeDecodeError:
        return None


def _tool(tool: dict[str, Any], path: str, losses: Losses) -> dict[str, Any]:
    losses.rest(tool, ("name", "description", "parameters"), path)
    schema = tool["parameters"]
    if schema.get("type") != "object":
        losses.add(f"{path}.parameters", 'Anthropic requires a schema of the type "object": sent as one')
        schema = {**schema, "type": "object"}
    return {"name": tool["name"], "description": tool["description"], "input_schema": schema}


# From Anthropic


def read(body: dict[str, Any], losses: Losses, model: str | None, stream: bool | None) -> dict[str, Any]:
    """The standard request that a body says."""
    losses.rest(body, BODY, "")
    streamed = flag(body, "stream", "")
    messages: list[dict[str, Any]] = []
    envelope: dict[str, Any] = {
        "version": "1.0",
        "stream": streamed if stream is None else stream,
        "model": required_text(body, "model", "") if model is None else model,
        "messages": messages,
    }
    system = body.get("system")
    if isinstance(system, list):
        parts = []
        for position, part in _read_parts(system, "system", losses):
            if part["type"] in ("tool_use", "tool_result"):
                losses.add(f"system[{position}]", "it does not belong to this role")
            else:
                parts.append(part)
        messages.append({"role": "system", "content": content_of(parts)})
    elif system is not None:
        messages.append({"role": "system", "content": required_text(body, "system", "")})
    for position, message in enumerate(array(body, "messages", "")):
        messages += _read_message(message, f"messages[{position}]", losses)
    tools = [
        tool
        for position, each in enumerate(array(body, "tools", ""))
        if (tool := _read_tool(each, f"tools[{position}]", losses)) is not None
    ]
    if tools:
        envelope["tools"] = tools
    parameters = read_parameters(body, PARAMETERS, "", losses)
    if parameters:
        envelope["parameters"] = parameters
    metadata = members(body.get("metadata"), "metadata")
    losses.rest(metadata, ("user_id",), "metadata")
    user = text(metadata, "user_id", "metadata")
    if user is not None:
        envelope["metadata"] = {"user_id": user}
    return envelope


def _read_message(message: Any, path: str, losses: Losses) -> list[dict[str, Any]]:
    """The messages that one of Anthropic's says: the results of tools are messages of their own."""
    message = required_members(message, path)
    role = required_text(message, "role", path)
    if role not in ("system", "user", "assistant"):
        losses.add(path, "the draft has no such role")
        return []
    losses.rest(message, ("role", "content"), path)
    content = message.get("content")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if not isinstance(content, list):
        raise refused(f"{path}.content", "absent or neither a string nor an array")
    found: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []  # of the next message
    calls: list[dict[str, Any]] = []
    for position, part in _read_parts(content, f"{path}.content", losses):
        here = f"{path}.content[{position}]"
        if part["type"] == "tool_use" and role == "assistant":
            calls.append({name: part[name] for name in ("id", "name", "arguments")})
        elif part["type"] == "tool_result" and role == "user":
            if said:
                found.append({"role": role, "content": content_of(said)})
                said = []
            found.append({"role": "tool", "tool_call_id": part["id"], "content": part["content"]})
        elif part["type"] in ("tool_use", "tool_result"):
            losses.add(here, "it does not belong to this role")
        else:
            if calls:
                losses.add(here, "its place after a tool call: the draft has the text before the calls")
            said.append(part)
    if calls:
        return [{"role": role, "content": content_of(said) if said else None, "tool_calls": calls}]
    if said or not found:
        found.append({"role": role, "content": content_of(said)})
    return found


def _read_parts(blocks: list[Any], path: str, losses: Losses) -> list[tuple[int, dict[str, Any]]]:
    """The parts, and the calls and results beside them, each with its position."""
    found: list[tuple[int, dict[str, Any]]] = []
    for position, block in enumerate(blocks):
        made = _read_block(block, f"{path}[{position}]", losses)
        if made is not None:
            found.append((position, made))
    return found


def _read_block(block: Any, path: str, losses: Losses) -> dict[str, Any] | None:
    block = required_members(block, path)
    kind = required_text(block, "type", path)
    if kind == "text":
        losses.rest(block, ("type", "text"), path)
        return {"type": "text", "text": required_text(block, "text", path)}
    if kind in ("image", "document"):
        losses.rest(block, ("type", "source"), path)
        return _read_source(kind, members(block.get("source"), f"{path}.source"), path, losses)
    if kind == "tool_use":
        losses.rest(block, ("type", "id", "name", "input"), path)
        return {
            "type": kind,
            "id": required_text(block, "id", path),
            "name": required_text(block, "name", path),
            "arguments": written_arguments(members(block.get("input"), f"{path}.input")),
        }
    if kind == "tool_result":
        losses.rest(block, ("type", "tool_use_id", "content", "is_error"), path)
        if flag(block, "is_error", path):
            losses.add(f"{path}.is_error")
        id = required_text(block, "tool_use_id", path)
        return {"type": kind, "id": id, "content": _read_result(block.get("content"), f"{path}.content", losses)}
    losses.add(path, "the draft has no such part")
    return None


def _read_result(content: Any, path: str, losses: Losses) -> str | list[dict[str, Any]]:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise refused(path, "neither a string nor an array")
    parts = []
    for position, block in enumerate(content):
        here = f"{path}[{position}]"
        if isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result"):  # they would nest without end
            losses.add(here, "the draft has no such part")
            continue
        part = _read_block(block, here, losses)
        if part is not None:
            parts.append(part)
    return content_of(parts)


def _read_source(kind: str, source: dict[str, Any], path: str, losses: Losses) -> dict[str, Any] | None:
    here = f"{path}.source"
    form = required_text(source, "type", here)
    if form == "base64":
        losses.rest(source, ("type", "media_type", "data"), here)
        media_type = required_text(source, "media_type", here)
        return media_part(kind, media_type, required_text(source, "data", here), path, losses)
    if form == "text" and kind == "document":
        losses.rest(source, ("type", "media_type", "data"), here)
        data = b2a_base64(required_text(source, "data", here).encode(), newline=False).decode()
        return {"type": kind, "media_type": text(source, "media_type", here) or PLAIN, "data": data}
    losses.add(path, "the draft has only files that are sent with the request, as base64")
    return None


def _read_tool(tool: Any, path: str, losses: Losses) -> dict[str, Any] | None:
    tool = required_members(tool, path)
    if (text(tool, "type", path) or "custom") != "custom":
        losses.add(path, "the draft has only functions that the client runs")
        return None
    losses.rest(tool, ("type", "name", "description", "input_schema"), path)
    return {
        "name": required_text(tool, "name", path),
        "description": text(tool, "description", path) or "",
        "parameters": members(tool.get("input_schema"), f"{path}.input_schema"),
    }
