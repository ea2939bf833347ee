"""An answer in the formats of the draft and of vendors, in units that may be cut apart: events, lines, frames."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import drafts
import vendors

from .answers import Answer


class Unit(NamedTuple):
    """Bytes, and the text and the reasoning that they carry."""

    data: bytes
    text: str = ""
    thought: str = ""


class Wire(NamedTuple):
    """A format: what it is called, what writes it, and what of an answer it can carry."""

    name: str
    dialect: str
    write: Callable[[Answer], Iterator[Unit]]
    sse: bool = True
    thoughts: bool = True
    calls: bool = True
    usage: bool = True
    auto: bool = True  # whether its first unit shows what it is
    divisible: bool = True  # whether a unit that is not whole is nothing


def draft(answer: Answer) -> Iterator[Unit]:
    yield Unit(drafts.start())
    seq = 1
    for seq, text in enumerate(answer.texts, 1):
        yield Unit(drafts.delta(seq, text), text)
    seq = len(answer.texts) + 1
    for identity, name, arguments in answer.whole_calls:
        yield Unit(drafts.tool_call(seq, id=identity, name=name, arguments=arguments))
        seq += 1
    yield Unit(drafts.stop(seq, stop_reason="tool_use" if answer.calls else "end_turn"))
    yield Unit(drafts.usage(seq + 1, answer.input_tokens, answer.output_tokens))
    yield Unit(drafts.end(seq + 2))


def openai(answer: Answer) -> Iterator[Unit]:
    yield Unit(vendors.openai_chunk({"role": "assistant", "content": ""}))
    for thought in answer.thoughts:
        yield Unit(vendors.openai_chunk({"reasoning_content": thought}), thought=thought)
    for text in answer.texts:
        yield Unit(vendors.openai_chunk({"content": text}), text)
    for number, (identity, name, pieces) in enumerate(answer.calls):
        function = {"name": name, "arguments": ""}
        call = {"index": number, "id": identity, "type": "function", "function": function}
        yield Unit(vendors.openai_chunk({"tool_calls": [call]}))
        for piece in pieces:
            yield Unit(vendors.openai_chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]}))
    yield Unit(vendors.openai_chunk({}, "tool_calls" if answer.calls else "stop"))
    usage = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
    yield Unit(vendors.sse({"object": "chat.completion.chunk", "model": "gpt-x", "choices": [], "usage": usage}))
    yield Unit(vendors.sse("[DONE]"))


def anthropic(answer: Answer) -> Iterator[Unit]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    usage = {"input_tokens": answer.input_tokens, "output_tokens": 1}
    yield _typed({"type": "message_start", "message": {**message, "usage": usage}})
    yield _typed({"type": "ping"})
    index = 0
    for kind, field, pieces in (("thinking", "thinking", answer.thoughts), ("text", "text", answer.texts)):
        if not pieces:
            continue
        yield _typed({"type": "content_block_start", "index": index, "content_block": {"type": kind, field: ""}})
        for piece in pieces:
            delta = {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", field: piece}}
            yield _typed(delta)._replace(text=piece if kind == "text" else "", thought="" if kind == "text" else piece)
        yield _typed({"type": "content_block_stop", "index": index})
        index += 1
    for identity, name, parts in answer.calls:
        block = {"type": "tool_use", "id": identity, "name": name, "input": {}}
        yield _typed({"type": "content_block_start", "index": index, "content_block": block})
        for part in parts:
            piece = {"type": "input_json_delta", "partial_json": part}
            yield _typed({"type": "content_block_delta", "index": index, "delta": piece})
        yield _typed({"type": "content_block_stop", "index": index})
        index += 1
    reason = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    yield _typed({"type": "message_delta", "delta": reason, "usage": {"output_tokens": answer.output_tokens}})
    yield _typed({"type": "message_stop"})


def _typed(payload: dict[str, object]) -> Unit:
    return Unit(vendors.sse(payload, str(payload["type"])))


def gemini(answer: Answer) -> Iterator[Unit]:
    for payload, text, thought in _gemini(answer):
        yield Unit(vendors.sse(payload), text, thought)


def gemini_array(answer: Answer) -> Iterator[Unit]:
    before = b"["
    for payload, text, thought in _gemini(answer):
        yield Unit(before + vendors.compact(payload).encode(), text, thought)
        before = b",\r\n"
    yield Unit(b"]\n")


def _gemini(answer: Answer) -> Iterator[tuple[object, str, str]]:
    def chunk(parts: list[object], **more: object) -> object:
        usage = {"promptTokenCount": answer.input_tokens, "candidatesTokenCount": answer.output_tokens}
        candidate = {"content": {"parts": parts, "role": "model"}, **more, "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x"}

    for thought in answer.thoughts:
        yield chunk([{"text": thought, "thought": True}]), "", thought
    for text in answer.texts:
        yield chunk([{"text": text}]), text, ""
    for _, name, arguments in answer.whole_calls:
        yield chunk([{"functionCall": {"name": name, "args": json.loads(arguments)}}]), "", ""
    yield chunk([{"text": ""}], finishReason="STOP"), "", ""


def responses(answer: Answer) -> Iterator[Unit]:
    whole = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "gpt-x"}
    yield Unit(vendors.sse({"type": "response.created", "response": {**whole, "status": "in_progress"}}))
    for text in answer.texts:
        yield Unit(vendors.sse({"type": "response.output_text.delta", "output_index": 0, "delta": text}), text)
    for number, (identity, name, pieces) in enumerate(answer.calls, 1):
        call = {"type": "function_call", "call_id": identity, "name": name}
        added = {"type": "response.output_item.added", "output_index": number, "item": {**call, "arguments": ""}}
        yield Unit(vendors.sse(added))
        kind = "response.function_call_arguments.delta"
        for piece in pieces:
            yield Unit(vendors.sse({"type": kind, "output_index": number, "delta": piece}))
        done = {**call, "arguments": "".join(pieces)}
        yield Unit(vendors.sse({"type": "response.output_item.done", "output_index": number, "item": done}))
    usage = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    ended = {**whole, "status": "completed", "usage": usage}
    yield Unit(vendors.sse({"type": "response.completed", "response": ended}))


def cohere(answer: Answer) -> Iterator[Unit]:
    def piece(**content: str) -> bytes:
        return vendors.sse({"type": "content-delta", "index": 0, "delta": {"message": {"content": content}}})

    yield Unit(vendors.sse({"id": "r1", "type": "message-start", "delta": {"message": {"role": "assistant"}}}))
    for thought in answer.thoughts:
        yield Unit(piece(thinking=thought), thought=thought)
    for text in answer.texts:
        yield Unit(piece(text=text), text)
    for number, (identity, name, pieces) in enumerate(answer.calls):
        call: dict[str, object] = {"id": identity, "type": "function", "function": {"name": name, "arguments": ""}}
        begun = {"type": "tool-call-start", "index": number, "delta": {"message": {"tool_calls": call}}}
        yield Unit(vendors.sse(begun))
        for part in pieces:
            call = {"function": {"arguments": part}}
            delta = {"type": "tool-call-delta", "index": number, "delta": {"message": {"tool_calls": call}}}
            yield Unit(vendors.sse(delta))
        yield Unit(vendors.sse({"type": "tool-call-end", "index": number}))
    usage = {"tokens": {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}}
    reason = "TOOL_CALL" if answer.calls else "COMPLETE"
    yield Unit(vendors.sse({"type": "message-end", "delta": {"finish_reason": reason, "usage": usage}}))


def ollama(answer: Answer) -> Iterator[Unit]:
    def line(message: dict[str, object], done: bool = False, **more: object) -> bytes:
        head = {"model": "m", "created_at": "2023-11-14T22:13:20Z"}
        return vendors.lines({**head, "message": {"role": "assistant", "content": "", **message}, **more, "done": done})

    for thought in answer.thoughts:
        yield Unit(line({"thinking": thought}), thought=thought)
    for text in answer.texts:
        yield Unit(line({"content": text}), text)
    for _, name, arguments in answer.whole_calls:
        yield Unit(line({"tool_calls": [{"function": {"name": name, "arguments": json.loads(arguments)}}]}))
    counts = {"prompt_eval_count": answer.input_tokens, "eval_count": answer.output_tokens}
    yield Unit(line({}, True, done_reason="stop", **counts))


def converse(answer: Answer) -> Iterator[Unit]:
    """Bedrock's frames."""
    yield Unit(vendors.aws({"role": "assistant"}, "messageStart"))
    index = 0
    for kind, pieces in (("thought", answer.thoughts), ("text", answer.texts)):
        if not pieces:
            continue
        for piece in pieces:
            delta = {"text": piece} if kind == "text" else {"reasoningContent": {"text": piece}}
            data = vendors.aws({"contentBlockIndex": index, "delta": delta}, "contentBlockDelta")
            yield Unit(data, piece, "") if kind == "text" else Unit(data, "", piece)
        yield Unit(vendors.aws({"contentBlockIndex": index}, "contentBlockStop"))
        index += 1
    for identity, name, parts in answer.calls:
        start = {"toolUse": {"toolUseId": identity, "name": name}}
        yield Unit(vendors.aws({"contentBlockIndex": index, "start": start}, "contentBlockStart"))
        for part in parts:
            delta = {"toolUse": {"input": part}}
            yield Unit(vendors.aws({"contentBlockIndex": index, "delta": delta}, "contentBlockDelta"))
        yield Unit(vendors.aws({"contentBlockIndex": index}, "contentBlockStop"))
        index += 1
    yield Unit(vendors.aws({"stopReason": "tool_use" if answer.calls else "end_turn"}, "messageStop"))
    usage = {"inputTokens": answer.input_tokens, "outputTokens": answer.output_tokens}
    yield Unit(vendors.aws({"usage": usage, "metrics": {}}, "metadata"))


def invoked(answer: Answer) -> Iterator[Unit]:
    """The same frames around Anthropic's payloads."""
    for unit in anthropic(answer):
        payload = json.loads(unit.data.partition(b"data: ")[2])
        yield unit._replace(data=vendors.invoked(payload))


def tgi(answer: Answer) -> Iterator[Unit]:
    def token(text: str, special: bool, **more: object) -> bytes:
        return vendors.sse({"index": 1, "token": {"id": 1, "text": text, "logprob": -1.5, "special": special}, **more})

    for text in answer.texts:
        yield Unit(token(text, False, generated_text=None, details=None), text)
    counts = {"generated_tokens": answer.output_tokens, "input_length": answer.input_tokens}
    details = {"finish_reason": "eos_token", **counts}
    yield Unit(token("</s>", True, generated_text=answer.text, details=details))


def signalr(answer: Answer) -> Iterator[Unit]:
    def record(message: object) -> bytes:
        return vendors.compact(message).encode() + b"\x1e"

    yield Unit(record({}))
    for text in answer.texts:
        yield Unit(record({"type": 2, "invocationId": "1", "item": {"text": text}}), text)
        if len(text) == 1:
            yield Unit(record({"type": 6}))
    yield Unit(record({"type": 3, "invocationId": "1"}))


def connect(answer: Answer) -> Iterator[Unit]:
    def envelope(message: object, flags: int = 0) -> bytes:
        data = vendors.compact(message).encode()
        return bytes([flags]) + len(data).to_bytes(4, "big") + data

    for text in answer.texts:
        yield Unit(envelope({"message": {"text": text}}), text)
    yield Unit(envelope({}, 2))


WIRES = (
    Wire("draft", "llm-stream", draft, thoughts=False),
    Wire("openai", "openai", openai),
    Wire("anthropic", "anthropic", anthropic),
    Wire("gemini", "gemini", gemini),
    Wire("gemini, an array", "gemini", gemini_array, sse=False, divisible=False),
    Wire("openai-responses", "openai-responses", responses, thoughts=False),
    Wire("cohere", "cohere", cohere),
    Wire("ollama", "ollama", ollama, sse=False),
    Wire("bedrock, converse", "bedrock", converse, sse=False),
    Wire("bedrock, invoked", "bedrock", invoked, sse=False),
    Wire("tgi", "tgi", tgi, thoughts=False, calls=False),
    Wire("signalr", "signalr", signalr, sse=False, thoughts=False, calls=False, usage=False, auto=False),
    Wire("connect", "connect", connect, sse=False, thoughts=False, calls=False, usage=False, auto=False),
)


def drawn(source: random.Random) -> Wire:
    """The draft's own streams, and the three large vendors', more often than others."""
    return source.choice(WIRES[:4]) if source.random() < 0.5 else source.choice(WIRES)
