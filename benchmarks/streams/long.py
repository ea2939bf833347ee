"""Streams of the draft with few long strings, and single events of a given size."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from random import Random

from ..found import Expected
from . import SEED, Stream, compact, sse
from .draft import delta, envelope, whole

__all__ = ["STREAMS", "many_lines", "one_line"]

COPIES = 4


def long_text(name: str, text: str) -> Stream:
    body = [sse(compact(each), each["type"]) for each in whole([delta(seq, text) for seq in range(1, COPIES + 1)])]
    return Stream(name, "draft", [body], [Expected(text * COPIES, "", "", list(range(1, COPIES + 1)))])


def encoded(name: str, events: int) -> Stream:
    return long_text(name, base64.b64encode(Random(SEED).randbytes(768 * 1024)).decode())


def escaped(name: str, events: int) -> Stream:
    """1.8 MB of JSON text; of its characters 30 % are written as two-byte escapes."""
    random = Random(SEED)
    plain = "abcdefghijklmnopqrstuvwxyz ABCDEF0123456789"
    letters = (random.choice('"\\\n\t' if random.random() < 0.3 else plain) for _ in range(1_384_000))
    text = "".join(letters)
    return long_text(name, text)


def tool_call(name: str, events: int) -> Stream:
    """The draft sends a call in one event: 1 MiB of arguments, which are JSON within JSON."""
    from .vendors import ARGUMENTS, pieces

    arguments = "".join(pieces(Random(SEED), ARGUMENTS))
    calls = [
        envelope("tool.call", seq, index=0, id=f"c{seq}", name="write", arguments=arguments)
        for seq in range(1, COPIES + 1)
    ]
    body = [sse(compact(each), each["type"]) for each in whole(calls)]
    return Stream(name, "draft-tools", [body], [Expected("", "", arguments * COPIES, [])])


def one_line(size: int) -> bytes:
    """One event of so many bytes."""
    return sized(size, lambda text: sse(compact(delta(1, text)), "content.delta"))


def many_lines(size: int) -> bytes:
    """The same event with its JSON over data lines of 64 bytes."""

    def event(text: str) -> bytes:
        head = compact(delta(1, "")).removesuffix(b"}")
        rows = [json.dumps(text[at : at + 54]).encode() for at in range(0, len(text), 54)]
        return b"event: content.delta\ndata: " + head + b',"x":[\ndata: ' + b",\ndata: ".join(rows) + b"]}\n\n"

    return event("a" * (54 * (size // 64)))


def sized(size: int, event: Callable[[str], bytes]) -> bytes:
    text = "The quick brown fox jumps over the lazy dog. " * (size // 45 + 1)
    return event(text[: size - len(event(""))])


STREAMS = {"long-base64": encoded, "long-escaped": escaped, "draft-tool-call": tool_call}
