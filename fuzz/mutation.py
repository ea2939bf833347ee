"""Changes an input at random, mostly so that it stays nearly valid: noise never gets past the first check."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

DICTIONARY = Path(__file__).with_name("llmstream.dict")
MOST = 60_000  # bytes of an input
_WORD = re.compile(r'^"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb'\\x([0-9a-fA-F]{2})|\\(["\\])')
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_STRING = re.compile(rb'"(?:[^"\\\r\n]|\\.){0,200}"')
_SEPARATORS = (b"\n\n", b"\r\n\r\n", b"\n", b"\x1e", b"}{", b",")


def dictionary() -> list[bytes]:
    """The words of the dictionary, which is in the form that libFuzzer reads."""
    found = []
    for line in DICTIONARY.read_text(encoding="utf-8").splitlines():
        word = _WORD.match(line)
        if word:
            written = word[1].encode()
            found.append(_ESCAPE.sub(lambda m: bytes([int(m[1], 16)]) if m[1] else m[2], written))
    return found


class Mutator:
    """Draws changes from ``source``; other inputs to splice with come from ``pool``."""

    def __init__(self, source: random.Random, pool: Sequence[bytes]) -> None:
        self.source = source
        self.pool = pool
        self.words = dictionary()
        self.ways: list[Callable[[bytes], bytes]] = [
            *(self._byte, self._word, self._word, self._remove, self._repeat, self._splice, self._part, self._part),
            *(self._number, self._string, self._string, self._cut),
        ]

    def __call__(self, raw: bytes) -> bytes:
        """Another input: other choices, and one change or a few in what is read."""
        choices, data = raw[:2], raw[2:]
        if self.source.random() < 0.7:
            choices = bytes(self.source.choices(range(0x30, 0x7B), k=2))
        for _ in range(self.source.choice((0, 1, 1, 1, 2, 2, 3, 6))):
            data = self.source.choice(self.ways)(data)
        return choices + data[:MOST]

    def _place(self, data: bytes) -> int:
        return self.source.randint(0, len(data))

    def _span(self, data: bytes, most: int = 40) -> tuple[int, int]:
        start = self._place(data)
        return start, min(len(data), start + self.source.randint(1, most))

    def _byte(self, data: bytes) -> bytes:
        at = self._place(data)
        return (
            data[:at]
            + bytes([self.source.choice((0, 9, 10, 13, 32, 34, 92, 127, 255, self.source.randrange(256)))])
            + (data[at + self.source.randint(0, 1) :])
        )

    def _word(self, data: bytes) -> bytes:
        at = self._place(data)
        return data[:at] + self.source.choice(self.words) + data[at:]

    def _remove(self, data: bytes) -> bytes:
        start, stop = self._span(data)
        return data[:start] + data[stop:]

    def _repeat(self, data: bytes) -> bytes:
        start, stop = self._span(data, 300)
        return data[:stop] + data[start:stop] * self.source.choice((1, 2, 20)) + data[stop:]

    def _splice(self, data: bytes) -> bytes:
        other = self.source.choice(self.pool)[2:]
        start, stop = self._span(other, 600)
        at = self._place(data)
        return data[:at] + other[start:stop] + data[at:]

    def _part(self, data: bytes) -> bytes:
        """Whole events, records or members: doubled, dropped, exchanged, or one of another input between them."""
        separator = self.source.choice(_SEPARATORS)
        parts = data.split(separator)
        if len(parts) < 2:
            return data
        one, other = self.source.randrange(len(parts)), self.source.randrange(len(parts))
        kind = self.source.randrange(4)
        if kind == 0:
            parts.insert(one, parts[other])
        elif kind == 1:
            del parts[one]
        elif kind == 2:
            parts[one], parts[other] = parts[other], parts[one]
        else:
            parts.insert(one, self.source.choice(self.source.choice(self.pool)[2:].split(separator)))
        return separator.join(parts)

    def _number(self, data: bytes) -> bytes:
        edges = [b"0", b"-0", b"-1", b"1.0", b"1e0", b"01", b"1e400", b"null", b'"1"', b"9007199254740993"]
        return self._instead(
            _NUMBER, data, [*edges, b"9223372036854775807", b"9223372036854775808", b"9" * 400, b"NaN", b"-Infinity"]
        )

    def _string(self, data: bytes) -> bytes:
        edges = [
            b'""',
            b'"\\ud83d"',
            b'"\\ud83d\\ude00"',
            b'"\\u0022"',
            b'"a\\"b"',
            b'"\xff"',
            b'"\xc3\xa9"',
            b"null",
            b"1",
            b"NaN",
        ]
        return self._instead(_STRING, data, [*edges, b"[]", b"{}", b'"\\q"', b'"\x00"', b'"content.delta"', b'"\\n"'])

    def _instead(self, pattern: re.Pattern[bytes], data: bytes, values: Sequence[bytes]) -> bytes:
        places = [found.span() for found in pattern.finditer(data[:20_000])]
        if not places:
            return data
        start, stop = self.source.choice(places)
        return data[:start] + self.source.choice(values) + data[stop:]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._place(data)]
