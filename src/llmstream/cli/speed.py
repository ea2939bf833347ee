"""How fast the parser reads on this machine, against two readers as they are often written."""

from __future__ import annotations

import json
from time import perf_counter

from .. import ContentDelta, Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["EVENTS", "OURS", "measure"]

OURS = "llmstream, events"
"""The reader that the others are compared with."""

EVENTS = 4000
CHUNK_SIZE = 16 * 1024
ROUNDS = 5
PATIENCE = 0.8
"""Seconds for the rounds of one reader: a slow machine gets fewer."""


def measure(texts: list[str]) -> dict[str, float]:
    """Reader -> seconds an event, the best of some rounds, for a stream made of ``texts``.

    Every reader gets the same chunks and has to find the same text.
    """
    stream, answer = _stream(texts)
    chunks = [stream[at : at + CHUNK_SIZE] for at in range(0, len(stream), CHUNK_SIZE)]
    readers: dict[str, Callable[[Iterable[bytes]], str]] = {
        "llmstream, text only": _text_only,
        OURS: _events,
        "split + json.loads": _split,
        "byte by byte + json.loads": _byte_by_byte,
    }
    found: dict[str, float] = {}
    for name, reader in readers.items():
        if reader(chunks) != answer:
            raise AssertionError(f"{name} does not read what was written")
        found[name] = _best(reader, chunks) / EVENTS
    return found


def _best(reader: Callable[[Iterable[bytes]], str], chunks: list[bytes]) -> float:
    best = float("inf")
    spent = 0.0
    for _ in range(ROUNDS):
        start = perf_counter()
        reader(chunks)
        took = perf_counter() - start
        best = min(best, took)
        spent += took
        if spent > PATIENCE:
            break
    return best


def _stream(texts: list[str]) -> tuple[bytes, str]:
    """A stream of EVENTS events (draft, section 5) and its text."""
    deltas = [texts[at % len(texts)] for at in range(EVENTS - 4)]
    members: list[dict[str, object]] = [
        {"type": "stream.start", "model": "demo", "created": 0},
        *({"type": "content.delta", "index": 0, "role": "assistant", "delta": {"text": text}} for text in deltas),
        {"type": "content.stop", "index": 0, "stop_reason": "end_turn"},
        {"type": "usage", "input_tokens": 1, "output_tokens": len(deltas)},
        {"type": "stream.end"},
    ]
    lines: list[str] = []
    for seq, own in enumerate(members):
        envelope = {"v": "1.0", "seq": seq, **own}
        data = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
        lines.append(f"event: {own['type']}\ndata: {data}\n\n")
    return "".join(lines).encode(), "".join(deltas)


def _text_only(chunks: Iterable[bytes]) -> str:
    parser = Parser()
    return "".join([parser.feed_text(chunk) for chunk in chunks])


def _events(chunks: Iterable[bytes]) -> str:
    parser = Parser()
    texts: list[str] = []
    for chunk in chunks:
        texts += [event.text for event in parser.feed(chunk) if isinstance(event, ContentDelta)]
    return "".join(texts)


def _split(chunks: Iterable[bytes]) -> str:
    rest = b""
    texts: list[str] = []
    for chunk in chunks:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        for block in blocks:
            _read(block, texts)
    return "".join(texts)


def _byte_by_byte(chunks: Iterable[bytes]) -> str:
    """Looks for the end of the event from the front of its buffer, again at every chunk."""
    buffer = bytearray()
    texts: list[str] = []
    for chunk in chunks:
        buffer.extend(chunk)
        at = 0
        while at + 1 < len(buffer):
            if buffer[at] == 10 and buffer[at + 1] == 10:
                _read(bytes(buffer[:at]), texts)
                del buffer[: at + 2]
                at = 0
            else:
                at += 1
    return "".join(texts)


def _read(block: bytes, texts: list[str]) -> None:
    for line in block.decode().split("\n"):
        if line.startswith("data: "):
            envelope = json.loads(line[6:])
            if envelope["type"] == "content.delta":
                texts.append(envelope["delta"]["text"])
