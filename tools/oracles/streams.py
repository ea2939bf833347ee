"""Streams for other readers, and what ours makes of them: JSON lines with ``name``, ``chunks_b64`` and ``ours``.

    python tools/oracles/streams.py --count 3000 --seed 0 > streams.jsonl

Most are made of the words of the grammar in any order; the rest are streams of the draft with a few bytes damaged.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

WORDS = [
    *(b"data", b"event", b"id", b"retry", b":", b": ", b"\n", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"),
    *(
        b"data: a\n",
        b"data: b\n\n",
        b"data:  two\n",
        b"data\n",
        b"data:\n\n",
        b"event: e\n",
        b"event:f\r\n",
        b"event\n",
    ),
    *(b"id: 1\n", b"id\n", b"id: \0\n", b"retry: 5\n", b"retry: x\n", b": c\n", b":\n", b"unknown: x\n", b" data: x\n"),
    *(b"\xef\xbb\xbf", b"\xef\xbb", b"\0", b" ", b"\t", b"x", b"1", b"\xff", b"\xe9\x82", b"\xed\xa0\xbd", b"\xc0\xaf"),
    *(
        "\u2028".encode(),
        "\u0085".encode(),
        b"\x0b",
        b"\x0c",
        "\U0001f600".encode(),
        b"data: \xf0\x9f",
        b"\x98\x80\n\n",
    ),
]


def made(source: random.Random) -> bytes:
    if source.random() < 0.3:
        import strategies

        return strategies.draft_stream(source)[:4000]
    stream = b"".join(source.choice(WORDS) for _ in range(source.randint(1, 25)))
    return b"\xef\xbb\xbf" * (source.random() < 0.1) + stream


def ours(stream: bytes) -> list[dict[str, str]]:
    import llmstream

    decoder = llmstream.SSEDecoder()
    events = decoder.feed(stream) + decoder.close()
    return [{"event": e.event, "data": e.data, "lastEventId": e.id} for e in events]


def main() -> None:
    parser = argparse.ArgumentParser(description="Streams, and what our reader makes of them.")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    source = random.Random(options.seed)
    for number in range(options.count):
        stream = made(source)
        places = sorted(source.randint(0, len(stream)) for _ in range(source.randint(0, 3)))
        chunks = [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]
        encoded = [base64.b64encode(chunk).decode() for chunk in chunks]
        print(json.dumps({"name": str(number), "chunks_b64": encoded, "ours": ours(stream)}))


if __name__ == "__main__":
    main()
