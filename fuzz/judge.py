"""What a target is given, and how it says that two readings differ."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

from .packages import Implementation

ORACLES = {
    "twin": "the compiled implementation against the Python one",
    "split": "the whole input against the input cut anywhere",
    "shapes": "learned shapes on against off",
    "text": "only the text against the text of the events",
    "whatwg": "the SSE layer against a naive reader of the WHATWG's words",
    "json": "the envelope against json.loads",
    "orjson": "the envelope against orjson, where that is installed",
    "naive": "the text of a whole stream against what a naive reader of SSE and JSON shows",
    "frames": "a framing against a naive reader of it",
    "round trip": "what was written, read again",
    "conformance": "what was written, judged by the checker",
    "clean": "whatever comes in: no exception but the documented ones, within the time",
}


class DifferenceError(Exception):
    """Two readings that have to agree do not."""

    def __init__(self, oracle: str, words: str) -> None:
        super().__init__(f"{oracle}: {words}")
        self.oracle = oracle


class Case:
    """One input for a target: ``data`` is what is read, and ``source`` draws options and places to cut."""

    def __init__(self, raw: bytes, implementations: list[Implementation], only: Collection[str] = ()) -> None:
        self.data = raw[2:]
        self.source = random.Random(raw[:2])
        self.implementations = implementations
        self.only = only

    @property
    def python(self) -> Implementation:
        return self.implementations[0]

    def pick(self, *values: Any) -> Any:
        return self.source.choice(values)

    def rarely(self, share: float) -> bool:
        return self.source.random() < share

    def chunks(self) -> list[bytes]:
        """The data, cut at random places; now and then into single bytes."""
        data = self.data
        if len(data) <= 600 and self.rarely(0.2):
            return [data[at : at + 1] for at in range(len(data))]
        most = self.pick(1, 4, 30)
        places = sorted(self.source.randint(0, len(data)) for _ in range(self.source.randint(1, most)))
        return [data[start:stop] for start, stop in zip([0, *places], [*places, len(data)], strict=True)]

    def asks(self, oracle: str) -> bool:
        if oracle not in ORACLES:
            raise ValueError(f"no oracle is called {oracle!r}")
        return not self.only or oracle in self.only

    def same(self, oracle: str, expected: Any, found: Any, where: str = "") -> None:
        if self.asks(oracle) and expected != found:
            raise DifferenceError(oracle, f"{where} {_shown(expected, found)}")

    def holds(self, oracle: str, condition: bool, words: str) -> None:
        if self.asks(oracle) and not condition:
            raise DifferenceError(oracle, words)


def _shown(expected: Any, found: Any) -> str:
    """The first place at which two values differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = [key for key in {**expected, **found} if expected.get(key) != found.get(key)]
        return f"[{keys[0]!r}] " + _shown(expected.get(keys[0]), found.get(keys[0]))
    if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
        for number, (one, other) in enumerate(zip(expected, found, strict=False)):
            if one != other:
                return f"[{number}] " + _shown(one, other)
        return f"{len(expected)} and {len(found)} items"
    return f"{expected!r:.300} and {found!r:.300}"
