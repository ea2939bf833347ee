"""Streams in the formats of three vendors, self-written: as fast ones look, with every kind of event in them."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sse(value: Any, event: str | None = None) -> bytes:
    name = f"event: {event}\n" if event else ""
    data = value if isinstance(value, str) else compact(value)
    return f"{name}data: {data}\n\n".encode()


def openai_chunk(delta: dict[str, Any], reason: str | None = None, index: int = 0, **more: Any) -> bytes:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "gpt-x"}
    return sse({**head, "choices": [choice], **more})


def openai(texts: list[str], thoughts: list[str] = (), arguments: list[str] = ()) -> list[bytes]:  # type: ignore[assignment]
    """One event an item."""
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}
    events = [openai_chunk({"role": "assistant", "content": ""})]
    events += [openai_chunk({"reasoning_content": thought}) for thought in thoughts]
    events += [openai_chunk({"content": text}) for text in texts]
    if arguments:
        events.append(openai_chunk({"tool_calls": [call]}))
        for piece in arguments:
            events.append(openai_chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
    events.append(openai_chunk({}, "tool_calls" if arguments else "stop"))
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    events.append(
        sse({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-x", "choices": [], "usage": usage})
    )
    return [*events, sse("[DONE]")]


def anthropic(texts: list[str], thoughts: list[str] = (), arguments: list[str] = ()) -> list[bytes]:  # type: ignore[assignment]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
    }
    usage = {"input_tokens": 3, "output_tokens": 1}
    events = [sse({"type": "message_start", "message": {**message, "usage": usage}}, "message_start")]
    events.append(sse({"type": "ping"}, "ping"))
    index = 0
    for kind, field, pieces in (("thinking", "thinking", thoughts), ("text", "text", texts)):
        if pieces:
            block = {"type": kind, field: ""}
            events.append(_block("start", index, content_block=block))
            events += [_block("delta", index, delta={"type": f"{kind}_delta", field: piece}) for piece in pieces]
            events.append(_block("stop", index))
            index += 1
    if arguments:
        block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
        events.append(_block("start", index, content_block=block))
        events += [
            _block("delta", index, delta={"type": "input_json_delta", "partial_json": piece}) for piece in arguments
        ]
        events.append(_block("stop", index))
    delta = {"stop_reason": "tool_use" if arguments else "end_turn", "stop_sequence": None}
    events.append(sse({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}, "message_delta"))
    return [*events, sse({"type": "message_stop"}, "message_stop")]


def _block(step: str, index: int, **more: Any) -> bytes:
    kind = f"content_block_{step}"
    return sse({"type": kind, "index": index, **more}, kind)


def gemini(texts: list[str], thoughts: list[str] = (), arguments: list[str] = ()) -> list[bytes]:  # type: ignore[assignment]
    def chunk(parts: list[Any], tokens: int, **more: Any) -> bytes:
        candidate = {"content": {"parts": parts, "role": "model"}, **more, "index": 0}
        usage = {"promptTokenCount": 3, "candidatesTokenCount": tokens, "totalTokenCount": tokens + 3}
        return sse({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x", "responseId": "r1"})

    events = [chunk([{"text": thought, "thought": True}], number) for number, thought in enumerate(thoughts, 1)]
    events += [chunk([{"text": text}], len(thoughts) + number) for number, text in enumerate(texts, 1)]
    if arguments:
        call = {"functionCall": {"name": "f", "args": json.loads("".join(arguments))}}
        events.append(chunk([call], len(events) + 1))
    return [*events, chunk([{"text": ""}], len(events) + 2, finishReason="STOP")]


FAMILIES = {
    "chat.completions": "openai",
    "chat v1": "cohere-v1",
    "chat v2": "cohere",
    "complete": "anthropic-complete",
    "completions": "openai-completions",
    "converse-stream": "bedrock",
    "generateContent": "gemini",
    "interactions": "gemini-interactions",
    "invoke-agent": "bedrock-agent",
    "invoke-with-response-stream": "bedrock",
    "messages": "anthropic",
    "ollama.chat": "ollama",
    "ollama.generate": "ollama",
    "assistants.runs": "openai-assistants",
    "replicate.stream": "replicate",
    "responses": "openai-responses",
    "text_stream": "watsonx",
    "tgi": "tgi",
    "transcriptions": "openai-transcriptions",
    "writer.completions": "writer-completions",
}
"""API, as the captures name it -> its dialect."""


def aws(payload: Any, event: str = "chunk", kind: str = "event") -> bytes:
    """A frame of the AWS event stream."""
    headers = b""
    for name, value in ((f":{kind}-type", event), (":content-type", "application/json"), (":message-type", kind)):
        headers += bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
    data = payload if isinstance(payload, bytes) else compact(payload).encode()
    prelude = struct.pack(">II", len(headers) + len(data) + 16, len(headers))
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + data
    return frame + struct.pack(">I", zlib.crc32(frame))


def invoked(payload: Any) -> bytes:
    """A chunk of InvokeModelWithResponseStream, or of InvokeAgent where the payload is bytes."""
    data = payload if isinstance(payload, bytes) else compact(payload).encode()
    return aws({"bytes": base64.b64encode(data).decode(), "p": "abcd"})


def lines(*payloads: Any) -> bytes:
    """Newline-delimited JSON."""
    return b"".join(compact(payload).encode() + b"\n" for payload in payloads)


def body(*payloads: Any) -> bytes:
    """Server-Sent Events."""
    return b"".join(map(sse, payloads))


VENDORS = {"openai": openai, "anthropic": anthropic, "gemini": gemini}
