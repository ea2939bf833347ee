"""Streams of the draft, small events."""

from __future__ import annotations

from random import Random
from typing import Any

from ..found import Expected
from . import SEED, Stream, compact, sse

__all__ = ["STREAMS", "whole"]

ASCII = ["The", " weather", " in", " Vienna", " is", " 24C", " and", " sunny", ".", " function", "()", " {", " return"]
WORDS = [
    *["The", " weather", " in", " Vienna", " is", " 24C", " and", " sunny", ".", "\n\n", ' "quoted"', " café"],
    *[" \U0001f600", " function", "()", " {", " return", " tokens", " streaming", " of"],
]
"""About a fifth of them with escapes or beyond ASCII."""


def envelope(kind: str, seq: int, **members: Any) -> dict[str, Any]:
    return {"v": "1.0", "seq": seq, "type": kind, **members}


def delta(seq: int, text: str) -> dict[str, Any]:
    return envelope("content.delta", seq, index=0, role="assistant", delta={"text": text})


def whole(inner: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A stream without a fault around the envelopes of its middle, which are numbered from 1."""
    last = len(inner)
    return [
        envelope("stream.start", 0, model="m", created=1749292800),
        *inner,
        envelope("content.stop", last + 1, index=0, stop_reason="end_turn"),
        envelope("usage", last + 2, input_tokens=1, output_tokens=last),
        envelope("stream.end", last + 3),
    ]


def deltas(name: str, events: int, words: list[str], shuffled: bool = False) -> Stream:
    random = Random(SEED)
    texts = [random.choice(words) for _ in range(events)]
    body = []
    for each in whole([delta(seq, text) for seq, text in enumerate(texts, 1)]):
        members = list(each.items())
        if shuffled:
            random.shuffle(members)
        body.append(sse(compact(dict(members)), each["type"]))
    expected = Expected("".join(texts), "", "", list(range(1, events + 1)))
    return Stream(name, "draft", [body], [expected])


STREAMS = {
    "draft-ascii": lambda name, events: deltas(name, events, ASCII),
    "draft-mixed": lambda name, events: deltas(name, events, WORDS),
    "draft-shuffled": lambda name, events: deltas(name, events, WORDS, shuffled=True),
}
