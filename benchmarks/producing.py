"""What writing a stream costs: ``Encoder.delta`` beside JSON from orjson with the lines of SSE put around it.

Both make the bytes of one content.delta at a time. The encoder counts the numbers and checks the order besides; it
writes U+0085, U+2028 and U+2029 as escapes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from . import twins
from .timing import Case, interleave

__all__ = ["check", "measure"]

HEAD, END = b"event: content.delta\ndata: ", b"\n\n"
LENGTHS = (1, 4, 15, 60, 200, 2000)
ALPHABETS = {
    "ASCII": ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "then", "some", "more"],
    "Latin-1": ["café", "déjà", "vu", "naïve", "über", "straße", "où", "été", "garçon", "et", "les", "autres", "mots"],
    "Greek": ["η", "γρήγορη", "καφέ", "αλεπού", "πηδάει", "πάνω", "από", "το", "σκυλί"],
    "Chinese, Japanese": [*"我们去北京的路上看见一个人", "東京", "天気", "今日は", "です。"],
    "emoji among words": ["🚲", "😀", "👍🏽", "🎉", "ok", "great", "and", "then"],
    "source code": ['"a"', "\\n", "\n", '\t"x": ', "{", "}", "foo(", '"b",\n', "return x"],
}


def texts(kind: str, length: int, count: int) -> list[str]:
    """Of so many characters each, the same in every run."""
    source = random.Random(f"{kind} {length}")
    words, space = ALPHABETS[kind], "" if kind.startswith("Chinese") else " "
    found = []
    for _ in range(count):
        text = ""
        while len(text) < length:
            text += source.choice(words) + space
        found.append(text[:length])
    return found


def fresh(given: list[str]) -> list[str]:
    """Text that nobody encoded yet: a str keeps its UTF-8 once it was asked for, and a stream writes a text once."""
    return [(text + "x")[:-1] for text in given]


def measure(twin: str, rounds: int, budget: float, tick: Callable[[str], object]) -> dict[str, Any]:
    """Nanoseconds an event by kind and length, for both and as a ratio; the worst of these."""
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for kind in ALPHABETS:
        for length in LENGTHS:
            given = texts(kind, length, 200 if length > 1000 else 2000)
            cases = list(pair(twin, given))
            interleave(cases, rounds, budget, lambda name, what=f"{kind}, {length}": tick(f"{what}: {name}"))  # type: ignore[misc]
            ours, theirs = (case.best / len(given) * 1e9 for case in cases)
            rows.setdefault(kind, {})[str(length)] = {"encoder": ours, "orjson": theirs, "ratio": theirs / ours}
    return {"texts": rows, "worst": min(cell["ratio"] for row in rows.values() for cell in row.values())}


def pair(twin: str, given: list[str]) -> Iterator[Case]:
    """The encoder, and orjson."""
    package, dumps = twins.package(twin), import_module("orjson").dumps
    encoder: Any = None
    own: list[str] = []

    def before() -> None:
        nonlocal encoder, own
        twins.activate(twin)
        encoder = package.Encoder()
        encoder.start("m")
        encoder.delta("")
        own = fresh(given)

    def with_encoder() -> None:
        delta = encoder.delta
        for text in own:
            delta(text)

    def with_orjson() -> None:
        seq = 2
        for text in own:
            envelope = {
                "v": "1.0",
                "seq": seq,
                "type": "content.delta",
                "index": 0,
                "role": "assistant",
                "delta": {"text": text},
            }
            HEAD + dumps(envelope) + END
            seq += 1

    yield Case("encoder", with_encoder, before)
    yield Case("orjson", with_orjson, before)


def check(twin: str) -> str | None:
    """What is not as it was written, or None."""
    encoder = twins.package(twin).Encoder()
    encoder.start("m")
    seq = 1
    for kind in ALPHABETS:
        for length in LENGTHS:
            for text in texts(kind, length, 5):
                data = encoder.delta(text)
                envelope = json.loads(data.removeprefix(HEAD).removesuffix(END))
                if (envelope["seq"], envelope["delta"]) != (seq, {"text": text}):
                    return f"{kind}, {length}: not what was given"
                seq += 1
    return None
