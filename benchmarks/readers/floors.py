"""Parts of the work, each done alone by the fastest means Python has: what it could cost at least."""

from __future__ import annotations

import operator
import re
from typing import Any

from . import Reader, register
from .schema import Schema

__all__: list[str] = []


def nothing(_: Any) -> None:
    return None


def memcpy(schema: Schema) -> Any:
    target = memoryview(bytearray(1 << 22))

    def read(chunks: list[bytes]) -> None:
        for chunk in chunks:
            target[: len(chunk)] = chunk

    return read, nothing


def boundaries(schema: Schema) -> Any:
    # One byte is looked for with memchr, two are not; so all line ends it is.
    return (lambda chunks: sum([chunk.count(b"\n") for chunk in chunks])), nothing


def objects(schema: Schema) -> Any:
    """A str and a small object without references for every event, made in loops of C from what is known already."""
    known: dict[int, tuple[str, list[float]]] = {}

    def read(chunks: list[bytes]) -> list[Any]:
        if id(chunks) not in known:
            texts = re.findall(rb'"text":"((?:[^"\\]|\\.)*)"', b"".join(chunks))
            known[id(chunks)] = b"\x1f".join(texts).decode(), [float(at) for at in range(len(texts))]
        text, numbers = known[id(chunks)]
        return [text.split("\x1f"), list(map(operator.neg, numbers))]

    return read, nothing


for name, label, make in (
    ("memcpy", "floor: copy the bytes", memcpy),
    ("boundaries", "floor: find the line ends", boundaries),
    ("objects", "floor: make the objects", objects),
):
    register(Reader(name, label, {"kept": make}, floor=True))
