"""Streams of the draft, built by hand for tests of what stands above the parser."""

from __future__ import annotations

import json
from typing import Any


def event(kind: str, seq: int, **members: Any) -> bytes:
    """One event of the wire format (draft, sections 5.1 and 5.2)."""
    envelope = {"v": "1.0", "seq": seq, "type": kind, **members}
    data = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def events(*texts: str, end: bool = True) -> list[bytes]:
    """The events of a whole answer, or without its last one."""
    found = [event("stream.start", 0, model="writer-1", created=1749292800)]
    found += [delta(seq, text) for seq, text in enumerate(texts, 1)]
    seq = len(found)
    found += [
        event("content.stop", seq, index=0, stop_reason="end_turn"),
        event("usage", seq + 1, input_tokens=3, output_tokens=len(texts)),
    ]
    return [*found, event("stream.end", seq + 2)] if end else found


def delta(seq: int, text: str, index: int = 0) -> bytes:
    return event("content.delta", seq, index=index, role="assistant", delta={"text": text})


def failed(*texts: str) -> list[bytes]:
    """An answer that ends in an error event; its message quotes the prompt."""
    found = events(*texts, end=False)[:-2]
    seq = len(found)
    return [
        *found,
        event("error", seq, code="overloaded", message="prompt: SECRET"),
        event("stream.end", seq + 1),
    ]


TEXTS = ("Hello", " wörld", ", 東京", " 🚲")
EVENTS = events(*TEXTS)
BODY = b"".join(EVENTS)
CUT = b"".join(events(*TEXTS, end=False))
FAILED = b"".join(failed(*TEXTS))
GAP = EVENTS[0] + EVENTS[1] + b"".join(EVENTS[3:])
KINDS = ["stream.start", *["content.delta"] * 4, "content.stop", "usage", "stream.end"]
