"""What a model said: drawn first, written in many formats later, and so known before anything is read."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

WORDS = (
    *(
        "The",
        " weather",
        " in",
        " K\u00f6ln",
        " \u6771\u4eac",
        " \U0001f6b2",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        " ",
        "\ufffd",
    ),
    *('"quoted"', "\\", "\\n", "\\u0041", "\u2028", "\u0085", "\x00", "\x7f", "}", '{"a":1}'),
    *("[DONE]", "event: error", "data: ", ": c", "\ufffd"),
)

Call = tuple[str, str, str]  # id, name, arguments


@dataclass(frozen=True)
class Answer:
    """Fragments of reasoning, then of text, then tool calls, each with the pieces its arguments come in."""

    texts: list[str]
    thoughts: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, list[str]]] = field(default_factory=list)
    input_tokens: int = 3
    output_tokens: int = 5

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def reasoning(self) -> str:
        return "".join(self.thoughts)

    @property
    def whole_calls(self) -> list[Call]:
        return [(identity, name, "".join(pieces)) for identity, name, pieces in self.calls]


def drawn(source: random.Random) -> Answer:
    """Mostly some dozens of fragments, now and then very many or very long ones."""
    count = source.choice((0, 1, 3, 10, 30, 30, 80, 300))
    texts = [_fragment(source) for _ in range(count)]
    if source.random() < 0.015:
        letter = source.choice(("x", "\u00e4", "\U0001f600"))
        texts.insert(source.randint(0, count), letter * source.randint(70_000, 200_000))
    thoughts = [_fragment(source) for _ in range(source.choice((0, 0, 0, 2, 20)))]
    calls = [_call(source, number) for number in range(source.choice((0, 0, 0, 1, 2)))]
    return Answer(texts, thoughts, calls, source.randint(1, 10**6), source.randint(1, 10**6))


def _fragment(source: random.Random) -> str:
    return "".join(source.choice(WORDS) for _ in range(source.choice((1, 1, 2, 5))))


def _call(source: random.Random, number: int) -> tuple[str, str, list[str]]:
    values: tuple[Any, ...] = (1, True, None, "\u00e9\n", [1, {"a": []}])
    arguments = {f"k{at}": source.choice(values) for at in range(source.randint(1, 6))}
    text = json.dumps(arguments, ensure_ascii=source.random() < 0.5)
    cuts = sorted(source.randint(0, len(text)) for _ in range(source.randint(0, 4)))
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return f"call_{number}", f"tool_{number}", [piece for piece in pieces if piece]
