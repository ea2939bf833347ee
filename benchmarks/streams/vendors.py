"""Streams as three vendors send them: text, reasoning, and the arguments of a tool call."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from ..found import Expected
from . import SEED, Stream, compact, sse
from .draft import WORDS

__all__ = ["STREAMS"]

ID = "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG"
ARGUMENTS = 1 << 20


def pick(events: int) -> tuple[Random, list[str]]:
    random = Random(SEED)
    return random, [random.choice(WORDS) for _ in range(events)]


def expect(texts: list[str], member: str) -> Expected:
    whole = "".join(texts)
    text, reasoning, arguments = (whole if member == name else "" for name in ("text", "reasoning", "arguments"))
    return Expected(text, reasoning, arguments, [])


def chat_chunk(delta: dict[str, Any], finish_reason: str | None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    head = {"id": ID, "object": "chat.completion.chunk", "created": 1741570283, "model": "gpt-4o-2024-08-06"}
    tier = {"service_tier": "default", "system_fingerprint": "fp_fc9f1d7035"}
    return sse(compact({**head, **tier, "choices": [choice], **more}))


def chat(name: str, events: int, member: str) -> Stream:
    random, texts = pick(events)
    key = "content" if member == "text" else "reasoning_content"
    body = [chat_chunk({key: text}, None, obfuscation=f"{random.getrandbits(60):x}") for text in texts]
    body += [chat_chunk({}, "stop"), sse(b"[DONE]")]
    return Stream(name, "openai", [body], [expect(texts, member)])


def pieces(random: Random, size: int) -> list[str]:
    """JSON of about so many bytes in fragments as models write them."""
    rows, total = [], 0
    while total < size:
        row = {"path": f"src/{random.getrandbits(40):x}.py", "text": "".join(random.choice(WORDS) for _ in range(40))}
        rows.append(row)
        total += len(json.dumps(row, ensure_ascii=False))
    text = json.dumps({"rows": rows}, ensure_ascii=False)
    found, at = [], 0
    while at < len(text):
        step = random.randint(2, 30)
        found.append(text[at : at + step])
        at += step
    return found


def chat_tools(name: str, events: int) -> Stream:
    """One call with 1 MiB of arguments, in fragments (a share of it where few events are asked for)."""
    texts = pieces(Random(SEED), min(ARGUMENTS, events * 52))
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write", "arguments": ""}}
    body = [chat_chunk({"role": "assistant", "content": None, "tool_calls": [first]}, None)]
    body += [chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}, None) for text in texts]
    body += [chat_chunk({}, "tool_calls"), sse(b"[DONE]")]
    return Stream(name, "openai-tools", [body], [expect(texts, "arguments")])


def anthropic(name: str, events: int, member: str) -> Stream:
    _, texts = pick(events)
    key = "text" if member == "text" else "thinking"
    usage = {"input_tokens": 43, "cache_read_input_tokens": 0, "output_tokens": 1, "service_tier": "standard"}
    message = {"model": "claude-sonnet-4", "id": "msg_01", "type": "message", "role": "assistant", "content": []}
    block = {"type": key, key: ""}
    inner = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": f"{key}_delta", key: text}} for text in texts
    ]
    payloads: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *inner,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": events}},
        {"type": "message_stop"},
    ]
    body = [sse(compact(payload), payload["type"]) for payload in payloads]
    return Stream(name, "anthropic", [body], [expect(texts, member)])


def gemini(name: str, events: int, member: str) -> Stream:
    _, texts = pick(events)
    body = []
    for number, text in enumerate(texts, 1):
        part: dict[str, Any] = {"text": text} if member == "text" else {"text": text, "thought": True}
        candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if number == events:
            candidate["finishReason"] = "STOP"
        usage = {"promptTokenCount": 15, "candidatesTokenCount": number, "totalTokenCount": 15 + number}
        details = [{"modality": "TEXT", "tokenCount": 15}]
        body.append(
            sse(
                compact(
                    {
                        "candidates": [candidate],
                        "usageMetadata": {**usage, "promptTokensDetails": details},
                        "modelVersion": "gemini-2.5-flash",
                        "responseId": "4RrGaPbWDbiVkdUPyvTrwQw",
                    }
                )
            )
        )
    return Stream(name, "gemini", [body], [expect(texts, member)])


STREAMS = {
    "chat-text": lambda name, events: chat(name, events, "text"),
    "chat-reasoning": lambda name, events: chat(name, events, "reasoning"),
    "chat-tools": chat_tools,
    "anthropic-text": lambda name, events: anthropic(name, events, "text"),
    "anthropic-reasoning": lambda name, events: anthropic(name, events, "reasoning"),
    "gemini-text": lambda name, events: gemini(name, events, "text"),
    "gemini-reasoning": lambda name, events: gemini(name, events, "reasoning"),
}
