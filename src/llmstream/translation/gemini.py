"""Requests for Gemini's generateContent, to and from the standard form."""

from __future__ import annotations

from ..request.reading import read as parsed
from ..request.values import copied
from ..rules import MAX_INTEGER
from .losses import CAMELS, join
from .members import (
    arguments_of,
    calls_of,
    content_of,
    each,
    flag,
    kind_of,
    media_part,
    members,
    messages_of,
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

__all__ = ["read", "write"]

PARAMETERS = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop_sequences": "stopSequences",
    "top_k": "topK",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
MOST = {"temperature": 2, "top_p": 1}
MOST_STOPS = 5

BODY = ("model", "contents", "systemInstruction", "tools", "generationConfig")

SCHEMA = {
    "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name): name
    for name in (
        *("anyOf", "prefixItems", "minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength"),
        *("propertyOrdering", "additionalProperties"),
    )
}
"""Names of members of a schema, as ``CAMELS`` has those of a body."""

LONGEST_NUMBER = 40
"""Characters of a number that is written as a string."""

COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength")


# To Gemini


def write(envelope: dict[str, Any], losses: Losses) -> dict[str, Any]:
    """The body of a request to generateContent or streamGenerateContent, whose URL has the model."""
    system: list[dict[str, Any]] = []
    prompts = 0
    contents: list[dict[str, Any]] = []
    names: dict[str, str] = {}  # id of a call -> its function
    results: list[dict[str, Any]] | None = None  # those that the last content has, as long as only they are in it
    for path, role, message in messages_of(envelope, losses):
        if message.get("name") is not None:
            losses.add(f"{path}.name")
        parts = _parts(message, role, path, losses)
        if role == "tool":
            id = message["tool_call_id"]
            if id not in names:
                losses.add(path, "Gemini wants the name of the function, and no call before it has this id")
                continue
            if len(parts) > 1:
                losses.add(f"{path}.content", "Gemini has one text as output: the parts are joined")
            response = {"output": "".join(part["text"] for part in parts)}
            if results is None:
                results = []
                contents.append({"role": "user", "parts": results})
            results.append({"functionResponse": {"id": id, "name": names[id], "response": response}})
            continue
        if role == "system":
            prompts += 1
            if contents:
                losses.add(path, "its place in the conversation: Gemini has one system instruction, at the beginning")
            elif prompts > 1:
                losses.add(path, "Gemini has one system instruction: joined with the one before")
            if not parts:
                losses.add(path, "nothing is left of it")
            system += parts
            continue
        results = None
        for here, call in calls_of(message, path, losses) if role == "assistant" else ():
            names[call["id"]] = call["name"]
            arguments = arguments_of(call, here, losses)
            parts.append({"functionCall": {"id": call["id"], "name": call["name"], "args": arguments}})
        if parts:
            contents.append({"role": "model" if role == "assistant" else "user", "parts": parts})
        else:
            losses.add(path, "nothing is left of it, and Gemini takes no empty content")
    body: dict[str, Any] = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    functions = []
    for position, tool in enumerate(envelope.get("tools") or []):
        losses.rest(tool, ("name", "description", "parameters"), f"tools[{position}]")
        function = {"name": tool["name"], "description": tool["description"]}
        functions.append({**function, "parametersJsonSchema": tool["parameters"]})
    if functions:
        body["tools"] = [{"functionDeclarations": functions}]
    parameters = write_parameters(envelope, PARAMETERS, losses, most=MOST, most_stops=MOST_STOPS)
    if parameters:
        body["generationConfig"] = parameters
    losses.rest(envelope.get("metadata") or {}, (), "metadata")
    return body


def _parts(message: dict[str, Any], role: str, path: str, losses: Losses) -> list[dict[str, Any]]:
    found = []
    for here, kind, part in parts_of(message, path, losses):
        if kind == "text":
            if part["text"]:
                found.append({"text": part["text"]})
        elif role in ("system", "tool"):
            losses.add(here, f"only text is sent in what the {role} says")
        else:
            if kind_of(part["media_type"]) != kind:
                losses.add(f"{here}.type", "Gemini has only the media type, which says another kind")
            found.append({"inlineData": {"mimeType": part["media_type"], "data": part["data"]}})
    return found


# From Gemini


def read(body: dict[str, Any], losses: Losses, model: str | None, stream: bool | None) -> dict[str, Any]:
    """The standard request that a body says; the model and whether it is to be streamed come from the URL."""
    body = _camel(body, "", losses)
    losses.rest(body, BODY, "")
    if model is None:
        named = text(body, "model", "")
        if named is None:
            losses.add("model", "Gemini has it in the URL: give it as model=")
        model = (named or "").removeprefix("models/")
    messages: list[dict[str, Any]] = []
    envelope: dict[str, Any] = {
        "version": "1.0",
        "stream": True if stream is None else stream,
        "model": model,
        "messages": messages,
    }
    if body.get("systemInstruction") is not None:
        instruction = members(body["systemInstruction"], "systemInstruction")
        losses.rest(instruction, ("role", "parts"), "systemInstruction")
        parts = []
        for here, part in each(instruction, "parts", "systemInstruction"):
            found = _read_part(part, here, losses)
            parts += [found] if found is not None else []
        messages.append({"role": "system", "content": content_of(parts)})
    history = _History(losses)
    for here, content in each(body, "contents", ""):
        messages += history.read(content, here)
    tools = []
    for here, tool in each(body, "tools", ""):
        tools += _read_tools(tool, here, losses)
    if tools:
        envelope["tools"] = tools
    config = _camel(members(body.get("generationConfig"), "generationConfig"), "generationConfig", losses)
    losses.rest(config, PARAMETERS.values(), "generationConfig")
    config = {name: _number(value) if name != "stopSequences" else value for name, value in config.items()}
    parameters = read_parameters(config, PARAMETERS, "generationConfig", losses)
    if parameters:
        envelope["parameters"] = parameters
    return envelope


class _History:
    """The contents in their order, and the calls that they speak of: Gemini's often have no id."""

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.open: dict[str, list[str]] = {}  # name of a function -> ids of its calls without a response
        self.names: dict[str, str] = {}  # id of a call -> its function
        self.count = 0

    def read(self, content: Any, path: str) -> list[dict[str, Any]]:
        """The messages that a content says: the responses of functions are messages of their own."""
        content = required_members(content, path)
        role = text(content, "role", path) or "user"
        if role not in ("user", "model", "function"):
            self.losses.add(path, "the draft has no such role")
            return []
        role = "assistant" if role == "model" else "user"
        self.losses.rest(content, ("role", "parts"), path)
        found: list[dict[str, Any]] = []
        said: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for here, part in each(content, "parts", path):
            part = _camel(required_members(part, here), here, self.losses)
            if part.get("functionCall") is not None and role == "assistant":
                calls.append(self._call(part, here))
            elif part.get("functionResponse") is not None and role == "user":
                if said:
                    found.append({"role": role, "content": content_of(said)})
                    said = []
                found.append(self._response(part, here))
            else:
                made = _made_part(part, here, self.losses)
                if made is not None:
                    if calls:
                        self.losses.add(here, "its place after a call: the draft has the text before the calls")
                    said.append(made)
        if calls:
            return [{"role": role, "content": content_of(said) if said else None, "tool_calls": calls}]
        if said or not found:
            found.append({"role": role, "content": content_of(said)})
        return found

    def _call(self, part: dict[str, Any], path: str) -> dict[str, Any]:
        self.losses.rest(part, ("functionCall",), path)
        path = f"{path}.functionCall"
        call = members(part["functionCall"], path)
        self.losses.rest(call, ("id", "name", "args"), path)
        name = required_text(call, "name", path)
        id = text(call, "id", path)
        if id is None:
            id = self._new_id()
        elif id in self.names:
            self.losses.add(f"{path}.id", "a call before it has it: results are told apart by their ids")
        self.names[id] = name
        self.open.setdefault(name, []).append(id)
        arguments = written_arguments(members(call.get("args"), f"{path}.args"))
        return {"id": id, "name": name, "arguments": arguments}

    def _response(self, part: dict[str, Any], path: str) -> dict[str, Any]:
        self.losses.rest(part, ("functionResponse",), path)
        path = f"{path}.functionResponse"
        answer = members(part["functionResponse"], path)
        self.losses.rest(answer, ("id", "name", "response"), path)
        name = required_text(answer, "name", path)
        waiting = self.open.get(name, [])
        id = text(answer, "id", path)
        if id in waiting:
            waiting.remove(id)
        elif id is None and waiting:
            id = waiting.pop(0)
        elif id is None:
            self.losses.add(path, "no call before it that it could answer")
            id = self._new_id()
        elif self.names.get(id) != name:
            self.losses.add(f"{path}.name", "no call before it has this id and this name")
        content = _read_result(members(answer.get("response"), f"{path}.response"), f"{path}.response", self.losses)
        return {"role": "tool", "tool_call_id": id, "content": content}

    def _new_id(self) -> str:
        while f"call-{self.count}" in self.names:
            self.count += 1
        self.names[f"call-{self.count}"] = ""
        return f"call-{self.count}"


def _camel(value: dict[str, Any], path: str, losses: Losses) -> dict[str, Any]:
    """An object whose names are those that the documentation has; the later of two forms of one name is lost."""
    found: dict[str, Any] = {}
    for name, inner in value.items():
        name = CAMELS.get(name, name)
        if found.get(name) is None:
            found[name] = inner
        elif inner is not None:
            losses.add(join(path, name), "its name stands there twice, in both of its forms")
    return found


def _number(value: Any) -> Any:
    """A number that is written as a string, as JSON for Protocol Buffers may have it; anything else as it is."""
    if not isinstance(value, str) or len(value) > LONGEST_NUMBER:
        return value
    found, _, fault = parsed(value, max_size=MAX_INTEGER, max_depth=1)
    return found if fault is None and isinstance(found, (int, float)) else value


def _read_result(response: dict[str, Any], path: str, losses: Losses) -> str:
    """What a function gave back. The draft has text: that under ``output``, else the object as JSON."""
    output = response.get("output")
    if len(response) == 1 and isinstance(output, str):
        return output
    if not response:
        return ""
    losses.add(path, "the draft has a text as a result: carried as JSON")
    return written_arguments(response)


def _read_part(part: Any, path: str, losses: Losses) -> dict[str, Any] | None:
    return _made_part(_camel(required_members(part, path), path, losses), path, losses)


def _made_part(part: dict[str, Any], path: str, losses: Losses) -> dict[str, Any] | None:
    if flag(part, "thought", path):
        losses.add(path, "the draft has no place for what the model thought")
        return None
    if part.get("text") is not None:
        losses.rest(part, ("text", "thought"), path)
        return {"type": "text", "text": required_text(part, "text", path)}
    if part.get("inlineData") is not None:
        losses.rest(part, ("inlineData", "thought"), path)
        path = f"{path}.inlineData"
        data = _camel(members(part["inlineData"], path), path, losses)
        losses.rest(data, ("mimeType", "data"), path)
        media_type = required_text(data, "mimeType", path)
        kind = kind_of(media_type)
        if kind is None:
            losses.add(path, "the draft has no part for a video")
            return None
        return media_part(kind, media_type, required_text(data, "data", path), path, losses)
    losses.add(path, "the draft has no such part")
    return None


def _read_tools(tool: Any, path: str, losses: Losses) -> list[dict[str, Any]]:
    tool = _camel(required_members(tool, path), path, losses)
    losses.rest(tool, ("functionDeclarations",), path)
    found = []
    for here, declaration in each(tool, "functionDeclarations", path):
        function = _camel(required_members(declaration, here), here, losses)
        losses.rest(function, ("name", "description", "parameters", "parametersJsonSchema"), here)
        schema = members(function.get("parametersJsonSchema"), f"{here}.parametersJsonSchema")
        if not schema:
            place = f"{here}.parameters"
            schema = _json_schema(members(function.get("parameters"), place), place, losses)
        elif function.get("parameters") is not None:
            losses.add(f"{here}.parameters", "parametersJsonSchema stands beside it")
        name, description = required_text(function, "name", here), text(function, "description", here) or ""
        found.append({"name": name, "description": description, "parameters": schema})
    return found


def _json_schema(schema: dict[str, Any], path: str, losses: Losses) -> dict[str, Any]:
    """Gemini's own form of a schema as JSON Schema: words for types in lower case, ``null`` a type, counts numbers."""
    root = [copied(schema)]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, step = todo.pop()
        if not isinstance(holder[step], dict):
            continue
        node = holder[step]
        for snake in SCHEMA.keys() & node.keys():
            value = node.pop(snake)
            if node.setdefault(SCHEMA[snake], value) is not value:
                losses.add(path, "a name stands in it twice, in both of its forms")
        kind = node.get("type")
        if isinstance(kind, str):
            node["type"] = kind = kind.lower()
            if kind == "type_unspecified":
                del node["type"]
            elif node.get("nullable") is True:
                node["type"] = [kind, "null"]
                del node["nullable"]
        for name in COUNTS:
            count = node.get(name)
            if isinstance(count, str) and count.isascii() and count.isdigit() and len(count) < 20:
                node[name] = int(count)
        todo.append((node, "items")) if "items" in node else None
        for name in ("anyOf", "prefixItems"):
            if isinstance(node.get(name), list):
                todo += [(node[name], position) for position in range(len(node[name]))]
        if isinstance(node.get("properties"), dict):
            todo += [(node["properties"], name) for name in node["properties"]]
    found: dict[str, Any] = root[0]
    return found
