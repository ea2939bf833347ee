"""The inputs that a run begins with: the corpus, streams that are made anew, and recorded ones where they are there."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import vendors

from . import ROOT

CORPUS = Path(__file__).with_name("corpus")
SHARED = Path(os.environ.get("LLMSTREAM_SHARED") or ROOT.parent / "shared")  # as tests/handed.py
LARGEST = 16_000  # bytes of a recorded stream
PREFIX = b"00"  # the two characters that choose; these choose nothing in particular

FAMILIES = {
    "transcoder": (
        "draft",
        "dialect-openai",
        "dialect-anthropic",
        "dialect-gemini",
        "dialect-cohere",
        "dialect-bedrock",
    ),
    "translator": ("draft", "dialect-openai", "dialect-anthropic", "dialect-gemini", "dialect-openai-responses"),
    "observer": ("draft", "dialect-openai", "dialect-anthropic", "dialect-gemini"),
    "checker": ("draft",),
    "dialect-auto": ("draft", "dialect-*"),
    "framing-binary": ("framing-aws-event-stream", "framing-connect", "framing-length-prefixed"),
    "framing-grpc-web": ("framing-connect",),
    "framing-aws-event-stream": ("dialect-bedrock", "dialect-bedrock-agent"),
    "framing-json-values": ("dialect-ollama", "dialect-gemini"),
    "framing-signalr": ("dialect-signalr",),
    "framing-connect": ("dialect-connect",),
    "sse": ("draft", "dialect-replicate"),
}
"""Target -> those whose corpus it reads as well."""


def seeds(target: str) -> list[bytes]:
    """All inputs for a target, without those that are there twice."""
    folders = [target, *FAMILIES.get(target, ())]
    found = [path.read_bytes() for name in folders for path in sorted(CORPUS.glob(f"{name}/*"))]
    found += [PREFIX + data for name in folders for data in (*_made(name), *_recorded(name))]
    return list(dict.fromkeys(found)) or [PREFIX]


def _made(target: str) -> Iterator[bytes]:
    """Streams of the builders that the tests use."""
    vendor = target.removeprefix("dialect-")
    if vendor in vendors.VENDORS:
        for texts, thoughts, arguments in ((["a", "b"] * 20, ["t"], []), (["x"], [], ["{", '"a":1', "}"])):
            yield b"".join(vendors.VENDORS[vendor](texts, thoughts, arguments))
    if target == "draft" or vendor in vendors.VENDORS:
        try:
            import strategies
        except ImportError:  # no hypothesis
            return
        for seed in range(40):
            source = random.Random(seed)
            yield strategies.draft_stream(source) if target == "draft" else strategies.vendor_stream(source, vendor)


def _recorded(target: str) -> Iterator[bytes]:
    """Recorded streams and handed cases, which are not part of the project."""
    if not SHARED.is_dir():
        return
    if target.startswith("dialect-"):
        with (SHARED / "captures/expected.jsonl").open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                if vendors.FAMILIES.get(row["api"]) == target.removeprefix("dialect-"):
                    data = (SHARED / "captures" / row["file"]).read_bytes()
                    if len(data) <= LARGEST:
                        yield data
    files = {"sse": ("sse_wpt", "sse_peers"), "envelope": ("envelope", "json"), "framing-connect": ("framing",)}
    for name in files.get(target, ()):
        with (SHARED / f"cases/{name}.jsonl").open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                yield from _bytes_of(row)


def _bytes_of(row: dict[str, object]) -> Iterator[bytes]:
    chunks = row.get("chunks_b64", row.get("bytes_b64", row.get("b64")))
    if isinstance(chunks, str):
        chunks = [chunks]
    if isinstance(chunks, list):
        data = b"".join(map(base64.b64decode, chunks))
        if len(data) <= LARGEST:
            yield data
