"""The draft's streams for the tests: builders of events, and views of what a parser found."""

from __future__ import annotations

import json
from typing import Any

REMOVE = object()


def envelope(kind: str, seq: int, **members: Any) -> str:
    """An envelope as JSON text. A member that is REMOVE is left out; a str after ``raw_`` stands as it is."""
    whole: dict[str, Any] = {"v": "1.0", "seq": seq, "type": kind}
    whole.update(members)
    parts = []
    for name, value in whole.items():
        if name.startswith("raw_"):
            parts = [part for part in parts if not part.startswith(json.dumps(name[4:]) + ":")]
            parts.append(json.dumps(name[4:]) + ":" + value)
        elif value is not REMOVE:
            parts.append(json.dumps(name) + ":" + json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return "{" + ",".join(parts) + "}"


def sse(data: str | bytes, event: str | None = None, end: str = "\n") -> bytes:
    """One SSE event with one data line."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    name = b"" if event is None else b"event: " + event.encode() + end.encode()
    return name + b"data: " + data + end.encode() * 2


def event(kind: str, seq: int, **members: Any) -> bytes:
    return sse(envelope(kind, seq, **members), kind)


def start(seq: int = 0, **members: Any) -> bytes:
    return event("stream.start", seq, **{"model": "m", "created": 1, **members})


def delta(seq: int, text: Any = "a", index: Any = 0, **members: Any) -> bytes:
    return event("content.delta", seq, **{"index": index, "role": "assistant", "delta": {"text": text}, **members})


def stop(seq: int, index: Any = 0, stop_reason: Any = "end_turn", **members: Any) -> bytes:
    return event("content.stop", seq, index=index, stop_reason=stop_reason, **members)


def tool_call(seq: int, index: Any = 0, **members: Any) -> bytes:
    return event("tool.call", seq, **{"index": index, "id": "c1", "name": "f", "arguments": "{}", **members})


def usage(seq: int, input_tokens: Any = 3, output_tokens: Any = 5, **members: Any) -> bytes:
    return event("usage", seq, input_tokens=input_tokens, output_tokens=output_tokens, **members)


def error(seq: int, code: Any = "overloaded", message: Any = "busy", **members: Any) -> bytes:
    return event("error", seq, code=code, message=message, **members)


def end(seq: int, **members: Any) -> bytes:
    return event("stream.end", seq, **members)


def whole(*texts: str) -> bytes:
    """A stream without a fault: one block of the given texts."""
    body = b"".join(delta(seq, text) for seq, text in enumerate(texts, 1))
    last = len(texts) + 1
    return start() + body + stop(last) + usage(last + 1) + end(last + 2)


def run(llmstream: Any, chunks: bytes | list[bytes], **options: Any) -> tuple[Any, list[Any]]:
    """A closed parser and all events of a stream."""
    parser = llmstream.Parser(**options)
    events = []
    for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
        events += parser.feed(chunk)
    return parser, events + parser.close()


def faults(parser: Any) -> list[tuple[str, str, int, int]]:
    """What was recorded: requirement, severity, event number and offset."""
    return [(v.requirement, v.severity, v.event, v.offset) for v in parser.violations]


def rules_of(parser: Any) -> list[str]:
    return [violation.requirement for violation in parser.violations]


def broken(llmstream: Any, data: bytes, **options: Any) -> list[str]:
    """The rules that a stream breaks."""
    return rules_of(run(llmstream, data, **options)[0])


def view(event: Any) -> tuple[Any, ...]:
    """All that an event shows."""
    return (type(event).__name__, event.type, event.seq, repr(event), hash(event), event.raw)


def state(parser: Any) -> dict[str, Any]:
    """All that a parser knows, but for ``shape_hits``."""
    return {
        "dialect": parser.dialect,
        "complete": parser.complete,
        "next_seq": parser.next_seq,
        "gaps": parser.gaps,
        "last_event_id": parser.last_event_id,
        "retry": parser.retry,
        "usage": repr(parser.usage),
        "error": repr(parser.error),
        "violations": [repr(violation) for violation in parser.violations],
        "violation_count": parser.violation_count,
    }


def outcome(llmstream: Any, chunks: list[bytes], **options: Any) -> dict[str, Any]:
    """Everything that can be seen of a stream, as plain values: the same on both twins, however it was cut."""
    parser = llmstream.Parser(**options)
    events = []
    raised = None
    try:
        for chunk in chunks:
            events += parser.feed(chunk)
        events += parser.close()
    except llmstream.LLMStreamError as error:
        events += error.events
        words = getattr(error, "message", None)
        raised = (type(error).__name__, str(error), error.seq, error.offset, words)
    return {**state(parser), "events": [view(event) for event in events], "raised": raised}


def text_outcome(llmstream: Any, chunks: list[bytes], **options: Any) -> dict[str, Any]:
    """The same of a stream of which only the text is read."""
    parser = llmstream.Parser(**options)
    text = ""
    raised = None
    try:
        for chunk in chunks:
            text += parser.feed_text(chunk)
    except llmstream.LLMStreamError as error:
        raised = (type(error).__name__, str(error), error.seq, error.offset)
    return {**state(parser), "text": text, "raised": raised}
