"""The ways in which bytes may arrive: every result has to be the same for all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

EXHAUSTIVE = 4096  # up to this size every split into two is tried, beyond it only some


def in_two(data: bytes) -> Iterator[list[bytes]]:
    """Every split into two, with an empty chunk before and after."""
    for at in range(len(data) + 1):
        yield [data[:at], data[at:]]


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def in_chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def at_random(data: bytes, seed: int, most: int = 8) -> list[bytes]:
    """One split at random places; a place that is drawn twice gives an empty chunk."""
    generator = random.Random(seed)
    cuts = sorted(generator.randint(0, len(data)) for _ in range(generator.randint(1, most)))
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def some_ways(data: bytes, count: int = 8, seed: int = 0) -> Iterator[list[bytes]]:
    """Whole, byte by byte where that is short, and ``count`` random splits."""
    yield [data]
    if len(data) <= EXHAUSTIVE:
        yield bytewise(data)
    for number in range(count):
        yield at_random(data, seed + number)


def every_way(data: bytes, seed: int = 0) -> Iterator[list[bytes]]:
    """Every split into two up to 4 KiB, some beyond; whole, byte by byte and at random as well."""
    yield from some_ways(data, 8, seed)
    if len(data) <= EXHAUSTIVE:
        yield from in_two(data)
    else:
        yield from (at_random(data, seed + 100 + number, 1) for number in range(4))
