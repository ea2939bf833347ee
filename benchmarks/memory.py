"""Bytes a parser takes: resident memory over many of them, in a process of its own (the extension's C memory counts).

``python -m benchmarks.memory STATE COUNT`` prints the bytes for one parser of the twin that LLMSTREAM_IMPLEMENTATION
names: "new", "busy" (between two events, shapes learned) or "inside" (half an event carried).
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["STATES", "measure"]

STATES = ("new", "busy", "inside")
ROOT = Path(__file__).parents[1]


def resident() -> int:
    """Bytes of this process that are in memory."""
    statm = Path("/proc/self/statm")
    if statm.is_file():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def one(state: str, count: int, dialect: str) -> float:
    import llmstream

    from .streams import build

    stream = build("draft-mixed" if dialect == "llm-stream" else "chat-text", 100)
    assert stream is not None
    events = stream.bodies[0][:60]
    half = stream.bodies[0][60][:64]
    # Whatever the library keeps once for all parsers, and the memory of events that come and go, is there before.
    for _ in range(20):
        parser = llmstream.Parser(dialect=dialect)
        for event in events:
            parser.feed(event)
    del parser
    parsers: list[llmstream.Parser | None] = [None] * count
    gc.collect()
    before = resident()
    for at in range(count):
        parsers[at] = parser = llmstream.Parser(dialect=dialect)
        if state != "new":
            for event in events:
                parser.feed(event)
            if state == "inside":
                parser.feed(half)
    gc.collect()
    return (resident() - before) / count


def measure(twin: str, count: int, dialect: str = "llm-stream") -> dict[str, float]:
    environment = {**os.environ, "LLMSTREAM_IMPLEMENTATION": twin}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = {}
    for state in STATES:
        command = [sys.executable, "-m", "benchmarks.memory", state, str(count), dialect]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        found[state] = float(done.stdout)
    return found


if __name__ == "__main__":
    print(one(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
