"""Our reader against others, over thousands of streams: which differences there are, and whether each is explained.

    python tools/oracles/streams.py > streams.jsonl
    node tools/oracles/read.mjs < streams.jsonl > others.jsonl      (where eventsource-parser and undici are installed)
    python tools/oracles/compare.py streams.jsonl others.jsonl [more.jsonl ...]

Lines of a file without ``reader`` count as Chromium's. A difference is explained by what is known of a reader, below:
each knows what the reader then has to make of the stream. Exits 1 where a difference is not explained.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from streams import ours as read

Events = Any


BOM = b"\xef\xbb\xbf"
EMPTY_NAME = re.compile(rb"(?<![^\r\n])event(: ?)?(?=[\r\n])")


def line_end_behind_mark(stream: bytes, ours: Events, theirs: Events) -> bool:
    """That line end becomes the first character of the next line, which then is no field."""
    return stream[:3] == BOM and stream[3:4] in (b"\r", b"\n") and theirs == read(BOM + b"x" + stream[4:])


def empty_name(stream: bytes, ours: Events, theirs: Events) -> bool:
    return theirs == read(EMPTY_NAME.sub(b":", stream))


def carriage_return_at_the_end(stream: bytes, ours: Events, theirs: Events) -> bool:
    last = max(stream.rfind(b"\r"), stream.rfind(b"\n"))
    return stream[last : last + 1] == b"\r" and without_ids(theirs) == without_ids(read(stream[:last]))


def id_without_data(stream: bytes, ours: Events, theirs: Events) -> bool:
    return (
        without_ids(ours) == without_ids(theirs) and re.search(rb"(?<![^\r\n])id", stream.removeprefix(BOM)) is not None
    )


def without_ids(events: Events) -> Events:
    return [(event["event"], event["data"]) for event in events]


KNOWN: dict[str, dict[str, Callable[[bytes, Events, Events], bool]]] = {
    "Chromium": {"a line end right behind the byte order mark becomes part of the next line": line_end_behind_mark},
    "undici": {"an event line without a value does not take back the name before it": empty_name},
    "eventsource-parser": {
        "a CR at the end of a chunk is waited for: with no line end after it, the last event is not handed out": (
            carriage_return_at_the_end
        ),
        "the id of a block without data is not handed out": id_without_data,
    },
}
"""Reader -> what is known of it, and how to tell."""


def main() -> int:
    streams: dict[str, tuple[bytes, Events]] = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for row in map(json.loads, file):
            streams[row["name"]] = b"".join(map(base64.b64decode, row["chunks_b64"])), row["ours"]
    compared: Counter[str] = Counter()
    explained: Counter[tuple[str, str]] = Counter()
    unexplained = 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for row in map(json.loads, file):
                reader = row.get("reader", "Chromium")
                stream, ours = streams[row["name"]]
                compared[reader] += 1
                if row["events"] == ours:
                    continue
                why = next(
                    (name for name, holds in KNOWN.get(reader, {}).items() if holds(stream, ours, row["events"])), ""
                )
                explained[reader, why] += 1
                if not why:
                    unexplained += 1
                    if unexplained <= 5:
                        print(f"{reader}: {stream!r}\n  ours   {ours}\n  theirs {row['events']}")
    for reader, count in compared.items():
        otherwise = sum(number for (name, _), number in explained.items() if name == reader)
        print(f"{reader}: {count} streams, {otherwise} read otherwise")
        for (name, why), number in explained.items():
            if name == reader:
                print(f"  {number}: {why or 'NOT EXPLAINED'}")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
