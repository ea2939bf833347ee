"""Base streams: an answer in a format, whole, cut, failed or with what does not belong there; and what has to come out,
which is known from what was written and not from any reading of ours."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from fuzz import whatwg

import drafts
import vendors

from . import answers, wires
from .answers import Answer, Call
from .wires import Unit, Wire

MAX_EVENT_SIZE = 2**21
LARGE = 2_200_000
"""Bytes of an event that is over it."""


@dataclass(frozen=True)
class Stream:
    """Bytes, and what they say. None: it is not known, and not asked."""

    name: str
    dialect: str
    data: bytes
    text: str
    reasoning: str | None = ""
    calls: list[Call] | None = None
    usage: tuple[int, int] | None = None
    complete: bool | None = True
    failed: bool = False  # whether it reports an error
    clean: bool | None = True  # whether nothing in it is a deviation
    auto: bool = False  # whether its first bytes show what it is
    decoded: Any = None  # the events, the last id and the retry of Server-Sent Events

    @property
    def is_draft(self) -> bool:
        return self.dialect == "llm-stream"

    @property
    def is_whole(self) -> bool:
        return self.complete is True and self.clean is True and not self.failed


def drawn(source: random.Random) -> Stream:
    answer, wire = answers.drawn(source), wires.drawn(source)
    kind = source.choices(("whole", "cut", "failed", "hostile", "body"), (8, 2, 1, 3, 1))[0]
    if kind == "body":
        return _body(answer, source)
    units = list(wire.write(answer))
    possible = {"cut": wire.divisible, "failed": wire.name in FAILURES, "hostile": wire.sse}
    if kind != "whole" and len(units) > 3 and possible[kind]:
        return _made(wire, answer, *_KINDS[kind](wire, units, source), kind, source)
    return _made(wire, answer, units, {}, "whole", source)


def _made(
    wire: Wire, answer: Answer, units: list[Unit], more: dict[str, Any], kind: str, source: random.Random
) -> Stream:
    data = b"".join(unit.data for unit in units)
    if wire.sse:
        end = source.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r"))
        data = data.replace(b"\n", end)
        if source.random() < 0.05:
            data = b"\xef\xbb\xbf" + data
    known: dict[str, Any] = {
        "text": "".join(unit.text for unit in units),
        "reasoning": "".join(unit.thought for unit in units),
        "calls": answer.whole_calls if wire.calls else [],
        "usage": (answer.input_tokens, answer.output_tokens) if wire.usage else None,
        "auto": wire.auto and kind == "whole" and len(units) > 2,
        **more,
    }
    decoded = whatwg.events(data) if wire.sse else None
    return Stream(f"{wire.name}, {kind}", wire.dialect, data, decoded=decoded, **known)


def _cut(wire: Wire, units: list[Unit], source: random.Random) -> tuple[list[Unit], dict[str, Any]]:
    """Before the last two units, which might be all that is needed for an end; maybe within one."""
    at = source.randint(1, len(units) - 3)
    kept = units[:at]
    if source.random() < 0.5:
        torn = units[at].data
        kept.append(Unit(torn[: source.randint(1, len(torn) // 2)]))
    return kept, {"calls": None, "usage": None, "complete": False, "clean": False}


def _failed(wire: Wire, units: list[Unit], source: random.Random) -> tuple[list[Unit], dict[str, Any]]:
    at = source.randint(1, len(units) - 3)
    kept = units[:at]
    known = {"calls": None, "usage": None, "complete": None, "failed": True, "clean": None}
    return [*kept, *map(Unit, FAILURES[wire.name](at))], known


FAILURES = {
    "draft": lambda at: [drafts.error(at), drafts.end(at + 1)],
    "openai": lambda at: [vendors.sse({"error": {"message": "m", "type": "server_error", "code": None}})],
    "anthropic": lambda at: [
        vendors.sse({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "error")
    ],
}


def _hostile(wire: Wire, units: list[Unit], source: random.Random) -> tuple[list[Unit], dict[str, Any]]:
    """What a reader must pass over, between the units: none of it is text."""
    found = list(units)
    for _ in range(source.randint(1, 4)):
        found.insert(source.randint(1, len(units) - 1), Unit(source.choice(HOSTILE)))
    if source.random() < 0.02:
        found.insert(source.randint(1, len(units) - 1), Unit(b'data: {"large":"' + b"x" * LARGE + b'"}\n\n'))
    found.insert(1, Unit(b"data: {\n\n"))
    if source.random() < 0.5:
        # After the end nothing counts.
        found.append(Unit(drafts.delta(9, "hidden") if wire.name == "draft" else b"data: {]\n\n"))
    return found, {"clean": False}


HOSTILE = (
    b": comment\n\n",
    b"retry: 10\nid: 7\n\n",
    b"data: []\n\n",
    b'data: {"text":"hidden\n\n',
    b"data: 1\n\n",
    b"data: " + b"[" * 6000 + b"\n\n",
    b'data: {"unknown":"\xff\xfe"}x\n\n',
    b"data: NaN\n\n",
    b'data: "content.delta"\ndata: "hidden"\n\n',
    b"unknown: hidden\n\n",
    b"event: content.delta\n\n",
    b'event: content.delta\ndata: {"delta":{"text":"hid\\q"}}\n\n',
)


_KINDS = {"cut": _cut, "failed": _failed, "hostile": _hostile}


def _body(answer: Answer, source: random.Random) -> Stream:
    """One JSON body: what an endpoint answers that does not stream."""
    name = source.choice(("openai", "anthropic", "gemini"))
    value = BODIES[name](answer)
    indent = source.choice((None, 1))
    data = json.dumps(value, ensure_ascii=source.random() < 0.5, indent=indent).encode()
    usage = (answer.input_tokens, answer.output_tokens)
    more: dict[str, Any] = {"calls": answer.whole_calls, "usage": usage, "auto": True}
    return Stream(f"{name}, body", name, data, answer.text, "", **more)


def _openai_body(answer: Answer) -> object:
    calls = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in answer.whole_calls]
    message = {"role": "assistant", "content": answer.text, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def _anthropic_body(answer: Answer) -> object:
    content: list[object] = [{"type": "text", "text": answer.text}]
    content += [{"type": "tool_use", "id": i, "name": n, "input": json.loads(a)} for i, n, a in answer.whole_calls]
    usage = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    reason = "tool_use" if answer.calls else "end_turn"
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude"}
    return {**head, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def _gemini_body(answer: Answer) -> object:
    parts: list[object] = [{"text": answer.text}]
    parts += [{"functionCall": {"name": name, "args": json.loads(text)}} for _, name, text in answer.whole_calls]
    usage = {"promptTokenCount": answer.input_tokens, "candidatesTokenCount": answer.output_tokens}
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x"}


BODIES = {"openai": _openai_body, "anthropic": _anthropic_body, "gemini": _gemini_body}
