"""Instructions that a few fixed inputs take, counted by valgrind: a slow-down shows on a noisy machine as well.

``python -m benchmarks.instructions`` counts and compares with the record, where compiler and Python are those of the
record; more than 2 % above it fails. ``--update`` writes the record. Only what happens inside our feed methods counts.
Two lengths of each stream tell what one more event costs from what a stream costs once.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import machine, twins
from .streams import build

ROOT = Path(__file__).parents[1]
TOLERANCE = 0.02
SHORT, LONG = 500, 1_500
FIXED = ", once a stream"


def inputs() -> dict[str, tuple[str, str, int | str, dict[str, Any], str]]:
    """Name -> stream, dialect, cut, options of the parser, method."""
    no_shapes = {"shapes": False}
    return {
        "draft, 16 KiB": ("draft-mixed", "llm-stream", 16384, {}, "feed"),
        "draft, one event a chunk": ("draft-mixed", "llm-stream", "event", {}, "feed"),
        "draft, 64 B": ("draft-mixed", "llm-stream", 64, {}, "feed"),
        "draft, 16 KiB, no shapes": ("draft-mixed", "llm-stream", 16384, no_shapes, "feed"),
        "draft, 16 KiB, text only": ("draft-mixed", "llm-stream", 16384, {}, "feed_text"),
        "draft, bare payloads": ("draft-mixed", "llm-stream", "payload", {}, "feed_payload"),
        "keys shuffled, 16 KiB": ("draft-shuffled", "llm-stream", 16384, {}, "feed"),
        "1.8 MB with 30 % escapes": ("long-escaped", "llm-stream", 16384, no_shapes, "feed"),
        "OpenAI chat, 16 KiB": ("chat-text", "openai", 16384, {}, "feed"),
        "Anthropic, 16 KiB": ("anthropic-text", "anthropic", 16384, {}, "feed"),
        "Gemini, 16 KiB": ("gemini-text", "gemini", 16384, {}, "feed"),
    }


WORKER = """
import json, pickle, sys  # json: what a process imports once is no cost of a stream
import llmstream
with open(sys.argv[1], "rb") as file:
    dialect, chunks, options, method = pickle.load(file)
feed = getattr(llmstream.Parser(dialect=dialect, **options), method)
for chunk in chunks:
    feed(chunk)
"""


def count(name: str) -> dict[str, int]:
    """Instructions an event, and once a stream; of a stream that has one length, all of them."""
    short = total(name, SHORT)
    if inputs()[name][0].startswith("long"):
        return {name + ", all": short}
    each = (total(name, LONG) - short) / (LONG - SHORT)
    return {name: round(each), name + FIXED: round(short - each * SHORT)}


def total(name: str, events: int) -> int:
    stream_name, dialect, cut, options, method = inputs()[name]
    stream = build(stream_name, events)
    assert stream is not None
    with tempfile.TemporaryDirectory() as folder:
        out, job = Path(folder) / "callgrind.out", Path(folder) / "job"
        job.write_bytes(pickle.dumps((dialect, stream.chunks(cut)[0], options, method)))
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--toggle-collect=" + symbol(method)]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "LLMSTREAM_IMPLEMENTATION": "cython"}
        worker = [sys.executable, "-c", WORKER, str(job)]
        subprocess.run([*command, *worker], cwd=folder, env=environment, capture_output=True, check=True)
        totals = re.findall(r"^(?:summary|totals): (\d+)", out.read_text(errors="replace"), re.MULTILINE)
    found = max(map(int, totals))
    if not found:
        raise RuntimeError(f"{name}: nothing was counted in {method}; is the extension stripped?")
    return found


def symbol(method: str) -> str:
    """The C function behind a method; Cython numbers them."""
    return f"__pyx_pw_9llmstream_7_parser_6Parser_*{method}"


def conditions() -> dict[str, str | None]:
    return {
        "compiler": machine.compiler_of_extension(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "arch": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("--update", action="store_true", help="write the record")
    parser.add_argument("--only", metavar="NAME", default="", help="inputs with NAME in their name")
    options = parser.parse_args()
    if shutil.which("valgrind") is None or twins.missing("cython"):
        print("needs valgrind and the compiled twin")
        return 2
    path = ROOT / "benchmarks" / "record" / platform.machine() / "instructions.json"
    record: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    comparable = record.get("conditions") == conditions()
    if not comparable and not options.update:
        print(f"not compared: the record is of {record.get('conditions')}, this is {conditions()}")
    counts: dict[str, int] = {}
    slower = []
    for name in inputs():
        if options.only not in name:
            continue
        for what, number in count(name).items():
            counts[what] = number
            before = record.get("counts", {}).get(what) if comparable else None
            change = f"{number / before - 1:+8.1%}" if before else ""
            print(f"{what:<42} {number:>12,} {change}", flush=True)
            if before and number > before * (1 + TOLERANCE):
                slower.append(what)
    if options.update:
        kept = record.get("counts", {}) if comparable else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"conditions": conditions(), "counts": kept | counts}, indent=1) + "\n")
        print(f"written: {path}")
        return 0
    for name in slower:
        print(f"slower than the record by more than {TOLERANCE:.0%}: {name}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
