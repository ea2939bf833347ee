"""Streams that try to make a reader grow, and the most that each held: ``python attacks.py`` prints JSON, in bytes.

Each attack is endless; so much of it is fed that a reader which keeps what it has seen is found out. No event, no
chunk and no text is kept here. What is held is what the C library has handed out, so PYTHONMALLOC=malloc has to be set
for the memory of Python to be counted. ``tests/test_limits.py`` runs this in a process of its own, for each twin.
"""

from __future__ import annotations

import ctypes
import gc
import gzip
import importlib
import itertools
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import drafts
import vendors
from drafts import delta, start

CHUNK = 16_384
LONG = 2**20  # of what is read fast: few and long lines
SHORT = 2**18  # of what is read slowly: many small events
MANY = 2**20  # of what is kept up to a number: blocks, calls, gaps, violations
MAX_EVENT_SIZE = 65_536
MAX_ARGUMENT_SIZE = 200_000
Attack = tuple[str, Iterator[bytes], int]


def endless(first: bytes, rest: bytes) -> Iterator[bytes]:
    yield first
    piece = rest * (CHUNK // len(rest) + 1)
    while True:
        yield piece


def counted(first: bytes, make: Callable[[int], bytes]) -> Iterator[bytes]:
    """``make`` of 1, 2, 3 and so on, some at a time."""
    yield first
    numbers = itertools.count(1)
    while True:
        parts: list[bytes] = []
        size = 0
        while size < CHUNK:
            parts.append(make(next(numbers)))
            size += len(parts[-1])
        yield b"".join(parts)


def lines() -> Iterator[Attack]:
    for name, first in (
        ("data", b"data: "),
        ("comment", b":"),
        ("unknown field", b"x: "),
        ("id", b"id: "),
        ("name", b"event: "),
    ):
        yield f"one line of {name}", endless(first, b"x"), LONG
    yield "spaces", endless(b"", b" "), LONG
    yield "NUL", endless(b"", b"\0"), LONG
    yield "invalid UTF-8", endless(b"data: ", b"\xff"), LONG
    yield "line ends", endless(b"", b"\r\n"), SHORT
    yield "byte order marks", endless(b"", b"\xef\xbb\xbf"), LONG
    yield "data lines", endless(b"", b"data: xxxx\n"), LONG
    yield "empty data lines", endless(b"", b"data\n"), SHORT
    yield "comments in an event", endless(b"data: x\n", b": keep-alive\n"), SHORT
    yield "names in an event", counted(b"data: x\n", lambda n: b"event: e%d\n" % n), SHORT
    yield "ids", counted(b"", lambda n: b"id: %d\n\n" % n), SHORT
    yield "times to retry", counted(b"", lambda n: b"retry: %d\n\n" % n), SHORT
    yield "JSON that is no stream", endless(b"", b'{"a":[\n'), SHORT


def events() -> Iterator[Attack]:
    yield "text", counted(start(), lambda n: delta(n, "text")), SHORT
    yield "keys that differ", counted(start(), lambda n: delta(n, "a", **{f"k{n}": n})), SHORT
    yield "shapes that differ", counted(start(), lambda n: delta(n, "a", x=[0] * (n % 50))), SHORT
    yield "types that differ", counted(start(), lambda n: drafts.event(f"t{n}", n)), MANY
    yield "blocks", counted(start(), lambda n: delta(n, "a", n)), MANY
    yield "calls", counted(start(), lambda n: drafts.tool_call(n, n, id=f"c{n}" + "x" * 40)), MANY
    yield "errors", counted(start(), drafts.error), MANY
    yield "usage", counted(start(), drafts.usage), SHORT
    yield "starts", counted(b"", lambda n: start(n, model=f"m{n}", request_id=f"r{n}")), MANY
    yield "gaps", counted(start(), lambda n: delta(2 * n, "a")), MANY
    yield "bad JSON", endless(start(), b"data: {\n\n"), MANY
    yield "deep JSON", endless(start(), b"data: " + b"[" * 5000 + b"\n\n"), LONG // 4
    yield "events over the limit", endless(start(), b"data: " + b"x" * 70_000 + b"\n\n"), LONG
    yield "events after the end", counted(start() + drafts.end(1), lambda n: delta(n, "a")), SHORT
    yield "halves of pairs", counted(start(), lambda n: delta(n, raw_delta='{"text":"\\ud83d"}')), MANY


def kept() -> Iterator[Attack]:
    """What a gateway may have to remember."""
    names = ("text", "types that differ", "blocks", "calls", "errors", "starts", "gaps")
    return (attack for attack in events() if attack[0] in names)


def of_vendors() -> Iterator[tuple[str, str, Iterator[bytes], int]]:
    def chat(**more: Any) -> bytes:
        return vendors.openai_chunk(more)

    def call(number: int, text: str, **more: Any) -> bytes:
        return chat(tool_calls=[{"index": number, "function": {"name": "f", "arguments": text}, **more}])

    yield "openai", "choices", counted(b"", lambda n: vendors.openai_chunk({"content": "a"}, index=n)), MANY
    yield "openai", "calls", counted(b"", lambda n: call(n, "{}", id=f"call{n}")), MANY
    yield "openai", "call", counted(call(0, ""), lambda _: call(0, "x" * 50)), MANY
    yield (
        "openai",
        "models",
        counted(b"", lambda n: vendors.sse({"model": f"m{n}", "id": f"i{n}", "choices": []})),
        SHORT,
    )
    yield "openai", "errors", counted(b"", lambda n: vendors.sse({"error": {"message": "m" * 50, "code": n}})), MANY
    block = {"type": "text", "text": ""}
    yield (
        *("anthropic", "blocks"),
        counted(b"", lambda n: vendors.sse({"type": "content_block_start", "index": n, "content_block": block})),
        MANY,
    )
    yield (
        *("anthropic", "calls"),
        counted(
            b"",
            lambda n: vendors.sse(
                {
                    "type": "content_block_start",
                    "index": n,
                    "content_block": {"type": "tool_use", "id": f"t{n}", "name": "f", "input": {}},
                }
            ),
        ),
        MANY,
    )
    piece = {"jsonPath": "$.a", "stringValue": "x" * 30, "willContinue": True}
    partial = {"functionCall": {"name": "f", "partialArgs": [piece], "willContinue": True}}
    yield (
        *("gemini", "arguments in pieces"),
        counted(b"", lambda _: vendors.sse({"candidates": [{"content": {"parts": [partial]}}]})),
        MANY,
    )
    yield "gemini", "an array", endless(b"[", b'{"a":1},'), SHORT
    yield "gemini", "one value", endless(b'{"a":[', b"1,"), LONG
    yield "gemini", "one string", endless(b'{"a":"', b'x\\"'), LONG
    yield "auto", "no evidence", endless(b"", b'data: {"what":"is this"}\n\n'), SHORT
    yield "auto", "pings", endless(b"", b"event: ping\ndata: {}\n\n"), SHORT
    yield "ollama", "lines", endless(b"", b'{"message":{"content":"a"},"done":false}\n'), SHORT
    yield "bedrock", "names that differ", counted(b"", lambda n: vendors.aws({"p": n}, f"e{n}")), SHORT
    yield "bedrock", "a frame that never ends", endless(struct.pack(">III", 2**31, 0, 0), b"x"), LONG
    bomb = gzip.compress(b"\n\x05hello" * 2**17, mtime=0)
    yield "connect", "a bomb", endless(b"", struct.pack(">BI", 1, len(bomb)) + bomb), SHORT
    small = gzip.compress(b"\n\x05hello", mtime=0)
    yield "connect", "messages", endless(b"", struct.pack(">BI", 1, len(small)) + small), SHORT
    yield "signalr", "records", endless(b"{}\x1e", b'{"type":6}\x1e'), SHORT
    yield "signalr", "one record", endless(b"{}\x1e", b"x"), LONG
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    yield (
        *("openai-responses", "items"),
        counted(b"", lambda n: vendors.sse({"type": "response.output_item.added", "output_index": n, "item": item})),
        MANY,
    )


def readers(llmstream: Any) -> Iterator[tuple[str, Callable[[bytes], object], Iterator[bytes], int]]:
    """Name, what takes a chunk, the attack, and how much of it."""

    def lenient(name: str = "llm-stream") -> Any:
        if name not in limited and name != "llm-stream":
            family = type(dialects.family(name)(name))
            limited[name] = type(family.__name__, (family,), {"name": name, "max_argument_size": MAX_ARGUMENT_SIZE})
        return llmstream.Parser(limited.get(name, name), max_event_size=MAX_EVENT_SIZE)

    dialects = importlib.import_module("llmstream.dialects")
    limited: dict[str, Any] = {}

    for name, chunks, size in (*lines(), *events()):
        yield f"parser: {name}", lenient().feed, chunks, size
    for dialect, name, chunks, size in of_vendors():
        yield f"{dialect}: {name}", lenient(dialect).feed, chunks, size
    for name, chunks, size in lines():
        if name != "data lines" and "one line" not in name:
            yield f"text: {name}", lenient().feed_text, chunks, size
    for name, chunks, size in lines():
        yield f"decoder: {name}", fed(llmstream, llmstream.SSEDecoder(max_event_size=MAX_EVENT_SIZE)), chunks, size
    for kind in (llmstream.Transcoder, llmstream.Observer):
        for name, chunks, size in kept():
            yield f"{kind.__name__}: {name}", kind("llm-stream", max_event_size=MAX_EVENT_SIZE).feed, chunks, size
    for name, chunks, size in kept():
        translator = llmstream.StreamTranslator("openai", "llm-stream", model="m", max_event_size=MAX_EVENT_SIZE)
        yield f"translator: {name}", translator.feed, chunks, size


def fed(llmstream: Any, decoder: Any) -> Callable[[bytes], object]:
    def feed(chunk: bytes) -> None:
        nonlocal decoder
        try:
            decoder.feed(chunk)
        except llmstream.EventTooLargeError:
            decoder = llmstream.SSEDecoder(max_event_size=MAX_EVENT_SIZE)

    return feed


class Counts(ctypes.Structure):
    """What ``mallinfo2`` tells."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks")),
        *((name, ctypes.c_size_t) for name in ("uordblks", "fordblks", "keepcost")),
    ]


mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Counts


def held() -> int:
    """Bytes that are handed out."""
    found = mallinfo()
    return int(found.uordblks + found.hblkhd)


def run(feed: Callable[[bytes], object], chunks: Iterator[bytes], size: int) -> tuple[int, int]:
    """The most that was held between two chunks, over what was held before the first: in the first three quarters, and
    in the last."""
    gc.collect()
    before = held()
    most = [0, 0]
    fed = 0
    while fed < size:
        chunk = next(chunks)
        feed(chunk)
        fed += len(chunk)
        chunk = b""
        last = fed > size * 3 // 4
        most[last] = max(most[last], held() - before)
    return most[0], most[1]


def main() -> None:
    import llmstream

    for _, feed, chunks, _ in readers(llmstream):  # what is loaded or made once
        run(feed, chunks, 2 * CHUNK)
    kept: list[bytes] = []
    grown = {"what is kept on purpose": run(kept.append, counted(b"", lambda n: b"%d" % n), SHORT)}
    del kept
    for name, feed, chunks, size in readers(llmstream):
        grown[name] = run(feed, chunks, size)
    print(json.dumps({"implementation": llmstream.implementation, "grown": grown}))


if __name__ == "__main__":
    main()
