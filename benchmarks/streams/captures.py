"""Recorded streams, from ``../shared/captures`` (or LLMSTREAM_SHARED): files with at least 30 events, by API."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

from ..found import Expected
from . import Stream

__all__ = ["build", "folder"]

APIS = {"captures-chat": "chat.completions", "captures-messages": "messages", "captures-gemini": "generateContent"}
SCHEMAS = {"captures-chat": "openai", "captures-messages": "anthropic", "captures-gemini": "gemini"}
ENOUGH = 30


def folder() -> Path:
    shared = os.environ.get("LLMSTREAM_SHARED") or Path(__file__).resolve().parents[3] / "shared"
    return Path(shared) / "captures"


def build(name: str) -> Stream | None:
    manifest, expected = folder() / "manifest.tsv", folder() / "expected.jsonl"
    if not manifest.is_file() or not expected.is_file():
        return None
    lines = expected.read_text(encoding="utf-8").splitlines()
    facts = {row["file"]: row for row in map(json.loads, lines)}
    bodies, wanted, names = [], [], []
    with manifest.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            fact = facts.get(row["file"])
            if row["api"] != APIS[name] or not row["file"].endswith(".sse") or fact is None:
                continue
            body = (folder() / row["file"]).read_bytes()
            events = [part for part in re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", body) if part.strip()]
            if len(events) < ENOUGH:
                continue
            bodies.append(events)
            names.append(row["file"])
            wanted.append(Expected(fact["text_sha256"], fact["reasoning_sha256"], hashed=True))
    return Stream(name, SCHEMAS[name], bodies, wanted, names) if bodies else None
