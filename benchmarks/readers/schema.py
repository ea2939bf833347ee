"""What the readers read: per format, the fields that count, from dicts, typed structs and our events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..found import Found

__all__ = ["SCHEMAS", "Schema", "gather", "of_events"]

Fields = tuple[str, str, str, "int | None", "str | None", "int | None"]
"""Text, reasoning, arguments, seq, stop reason, output tokens."""


class Schema:
    """One format. ``fields`` reads one payload that is a mapping, ``struct`` makes the type for msgspec and ``typed``
    reads it; ``marked`` is whether "[DONE]" ends the stream."""

    def __init__(
        self,
        dialect: str,
        fields: Callable[[Any], Fields],
        struct: Callable[[Any], Any],
        typed: Callable[[Any], Fields],
        *,
        marked: bool = False,
    ) -> None:
        self.dialect = dialect
        self.fields = fields
        self.struct = struct
        self.typed = typed
        self.marked = marked


def gather(fields: Iterable[Fields]) -> Found:
    """What a list of fields says in all."""
    texts, thoughts, arguments, seqs = [], [], [], []
    for text, reasoning, argument, seq, _, _ in fields:
        texts.append(text)
        thoughts.append(reasoning)
        arguments.append(argument)
        if seq is not None and text:
            seqs.append(seq)
    return Found("".join(texts), "".join(thoughts), "".join(arguments), seqs)


def of_events(events: Iterable[Any], schema: Schema) -> Found:
    """What our events say: of the primary answer where there are several, as the other readers."""
    numbered, alternatives = schema.dialect == "llm-stream", schema.dialect in ("openai", "gemini")
    found = Found()
    texts, thoughts, arguments = [], [], []
    for event in events:
        if event.type == "content.delta" and not (alternatives and event.index):
            texts.append(event.text)
            thoughts.append(event.reasoning or "")
            if numbered and event.text:
                found.seqs.append(event.seq)
        elif event.type == "tool.call":
            arguments.append(event.arguments)
    found.text, found.reasoning, found.arguments = "".join(texts), "".join(thoughts), "".join(arguments)
    return found


# The draft


def draft_fields(payload: Any) -> Fields:
    kind = payload["type"]
    if kind == "content.delta":
        return payload["delta"]["text"], "", "", payload["seq"], None, None
    if kind == "tool.call":
        return "", "", payload["arguments"], payload["seq"], None, None
    if kind == "content.stop":
        return "", "", "", payload["seq"], payload["stop_reason"], None
    if kind == "usage":
        return "", "", "", payload["seq"], None, payload["output_tokens"]
    return "", "", "", payload["seq"], None, None


def draft_struct(msgspec: Any) -> Any:
    delta = msgspec.defstruct("Delta", [("text", str)])
    return msgspec.defstruct("Envelope", [("seq", int), ("type", str), ("delta", delta | None, None)])


def draft_typed(payload: Any) -> Fields:
    return payload.delta.text if payload.delta else "", "", "", payload.seq, None, None


def draft_tools_struct(msgspec: Any) -> Any:
    return msgspec.defstruct("Envelope", [("seq", int), ("type", str), ("arguments", str, "")])


def draft_tools_typed(payload: Any) -> Fields:
    return "", "", payload.arguments, payload.seq, None, None


def array(item: Any) -> Any:
    return list[item]


# OpenAI


def openai_fields(payload: Any) -> Fields:
    text = reasoning = arguments = ""
    stop = None
    for choice in payload.get("choices") or ():
        if choice.get("index", 0) != 0:
            continue
        delta = choice.get("delta") or {}
        content = delta.get("content")
        if type(content) is list:
            for part in content:
                if part.get("type") == "thinking":
                    reasoning += "".join(each.get("text") or "" for each in part["thinking"])
                else:
                    text += part.get("text") or ""
        elif content:
            text += content
        reasoning += delta.get("reasoning_content") or delta.get("reasoning") or delta.get("reasoning_text") or ""
        for call in delta.get("tool_calls") or ():
            piece = (call.get("function") or {}).get("arguments")
            if piece:
                arguments += piece
        stop = choice.get("finish_reason") or stop
    usage = payload.get("usage")
    return text, reasoning, arguments, None, stop, usage.get("completion_tokens") if usage else None


def openai_struct(msgspec: Any) -> Any:
    delta = msgspec.defstruct("Delta", [("content", str | None, None), ("reasoning_content", str | None, None)])
    choice = msgspec.defstruct("Choice", [("delta", delta)])
    return msgspec.defstruct("Chunk", [("choices", array(choice))])


def openai_typed(payload: Any) -> Fields:
    delta = payload.choices[0].delta
    return delta.content or "", delta.reasoning_content or "", "", None, None, None


def openai_tools_struct(msgspec: Any) -> Any:
    function = msgspec.defstruct("Function", [("arguments", str)])
    call = msgspec.defstruct("Call", [("index", int), ("function", function)])
    delta = msgspec.defstruct("Delta", [("content", str | None, None), ("tool_calls", array(call) | None, None)])
    choice = msgspec.defstruct("Choice", [("delta", delta)])
    return msgspec.defstruct("Chunk", [("choices", array(choice))])


def openai_tools_typed(payload: Any) -> Fields:
    delta = payload.choices[0].delta
    arguments = "".join(call.function.arguments for call in delta.tool_calls or ())
    return delta.content or "", "", arguments, None, None, None


# Anthropic


def anthropic_fields(payload: Any) -> Fields:
    kind = payload["type"]
    if kind == "content_block_delta":
        delta = payload["delta"]
        return delta.get("text") or "", delta.get("thinking") or "", delta.get("partial_json") or "", None, None, None
    if kind == "message_delta":
        usage = payload.get("usage") or {}
        return "", "", "", None, payload["delta"].get("stop_reason"), usage.get("output_tokens")
    return "", "", "", None, None, None


def anthropic_struct(msgspec: Any) -> Any:
    texts = [(name, str, "") for name in ("text", "thinking")]
    delta = msgspec.defstruct("Delta", texts)
    return msgspec.defstruct("Event", [("type", str), ("index", int, 0), ("delta", delta | None, None)])


def anthropic_typed(payload: Any) -> Fields:
    delta = payload.delta
    return delta.text if delta else "", delta.thinking if delta else "", "", None, None, None


# Gemini


def gemini_fields(payload: Any) -> Fields:
    text = reasoning = arguments = ""
    stop = None
    for candidate in payload.get("candidates") or ():
        if candidate.get("index", 0) != 0:
            continue
        for part in (candidate.get("content") or {}).get("parts") or ():
            if part.get("thought"):
                reasoning += part.get("text") or ""
            elif "functionCall" in part:
                arguments += str(part["functionCall"].get("args"))
            else:
                text += part.get("text") or ""
        stop = candidate.get("finishReason") or stop
    usage = payload.get("usageMetadata")
    return text, reasoning, arguments, None, stop, usage.get("candidatesTokenCount") if usage else None


def gemini_struct(msgspec: Any) -> Any:
    part = msgspec.defstruct("Part", [("text", str, ""), ("thought", bool, False)])
    content = msgspec.defstruct("Content", [("parts", array(part))])
    candidate = msgspec.defstruct("Candidate", [("content", content)])
    usage = msgspec.defstruct("Usage", [("promptTokenCount", int, 0), ("candidatesTokenCount", int, 0)])
    members = [("candidates", array(candidate)), ("usageMetadata", usage | None, None)]
    return msgspec.defstruct("Response", members)


def gemini_typed(payload: Any) -> Fields:
    part = payload.candidates[0].content.parts[0]
    return "" if part.thought else part.text, part.text if part.thought else "", "", None, None, None


SCHEMAS = {
    "draft": Schema("llm-stream", draft_fields, draft_struct, draft_typed),
    "draft-tools": Schema("llm-stream", draft_fields, draft_tools_struct, draft_tools_typed),
    "openai": Schema("openai", openai_fields, openai_struct, openai_typed, marked=True),
    "openai-tools": Schema("openai", openai_fields, openai_tools_struct, openai_tools_typed, marked=True),
    "anthropic": Schema("anthropic", anthropic_fields, anthropic_struct, anthropic_typed),
    "gemini": Schema("gemini", gemini_fields, gemini_struct, gemini_typed),
}
