"""The handed cases: files in ../shared that the tests read in place, and a count of what ran.

A test that runs rows of such a file says so once they have been run::

    handed("sse_wpt.jsonl", names)      # the names of the rows, gathered over all tests
    handed("json.jsonl", 611)           # or how many of them, where one test runs them all

The counts are kept for each twin; the summary prints the smaller one. With LLMSTREAM_REQUIRE_SHARED
set to 1 the session fails unless every row of every file ran on every twin that was tested, less
those in LEFT_OUT.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("LLMSTREAM_SHARED") or Path(__file__).resolve().parents[2] / "shared").absolute()

# Rows that are not run: file -> {name of the row: the rule that says why}.
LEFT_OUT: dict[str, dict[str, str]] = {}

VECTORS = ("aws-eventstream", "connect", "signalr")  # captures that carry no model's output
FRAMED = ("aws-eventstream", "bedrock", "connect", "signalr")  # vendors whose framing is not SSE

FILES = {
    "sse_wpt.jsonl": "cases/sse_wpt.jsonl",
    "sse_peers.jsonl": "cases/sse_peers.jsonl",
    "json.jsonl": "cases/json.jsonl",
    "envelope.jsonl": "cases/envelope.jsonl",
    "utf8.jsonl": "cases/utf8.jsonl",
    "framing.jsonl": "cases/framing.jsonl",
    "captures": "captures/expected.jsonl",
    "framed captures": "captures/expected.jsonl",
}

twins: set[str] = set()  # the twins whose tests ran in this session
active: str | None = None  # the twin whose test is running; set by conftest.py
_names: dict[tuple[str, str], set[str]] = {}
_counts: dict[tuple[str, str], int] = {}


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a handed file, without those left out; skips the test where the file is missing.

    Made for the body of a test; ``rows_or_none`` serves where tests are collected.
    """
    found = rows_or_none(name)
    if found is None:
        pytest.skip(f"{SHARED.name}/{FILES[name]} is not there")
    return found


def rows_or_none(name: str) -> list[dict[str, Any]] | None:
    path = SHARED / FILES[name]
    if not path.is_file():
        return None
    with path.open(encoding="utf-8") as file:
        every = [json.loads(line) for line in file]
    if name == "captures":
        every = [row for row in every if row["file"].partition("/")[0] not in VECTORS]
    if name == "framed captures":
        every = [row for row in every if row["file"].partition("/")[0] in FRAMED]
    left_out = LEFT_OUT.get(name, {})
    unknown = left_out.keys() - {key(row) for row in every}
    if unknown:
        raise ValueError(f"LEFT_OUT names rows that {name} does not have: {sorted(unknown)}")
    return [row for row in every if key(row) not in left_out]


def key(row: dict[str, Any]) -> str:
    """What a row is called."""
    return row["name"] if "name" in row else row["file"]


def handed(name: str, ran: int | Iterable[str]) -> None:
    """Record that rows of a handed file ran on the active twin: how many, or their names."""
    if name not in FILES:
        raise ValueError(f"{name} is no handed file")
    slot = (name, active or "")
    if isinstance(ran, int):
        _counts[slot] = max(_counts.get(slot, 0), ran)
    else:
        _names.setdefault(slot, set()).update([ran] if isinstance(ran, str) else ran)


def ran(name: str, twin: str) -> int:
    return max(_counts.get((name, twin), 0), len(_names.get((name, twin), ())))


def tally() -> list[tuple[str, int, int]]:
    """For each file that is there: its name, how many rows ran on every twin, and of how many."""
    result = []
    for name in FILES:
        expected = rows_or_none(name)
        if expected is not None:
            done = min((ran(name, twin) for twin in twins), default=0)
            result.append((name, done, len(expected)))
    return result


def missing() -> list[str]:
    """What LLMSTREAM_REQUIRE_SHARED=1 finds wanting."""
    if os.environ.get("LLMSTREAM_REQUIRE_SHARED") != "1":
        return []
    there = {name: (done, of) for name, done, of in tally()}
    return [
        f"{name}: {there[name][0]} of {there[name][1]} ran" if name in there else f"{name}: no file"
        for name in FILES
        if name not in there or there[name][0] < there[name][1]
    ]


# Hooks: conftest.py registers this module as a plugin.


def pytest_sessionfinish(session: pytest.Session) -> None:
    if missing() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = tally()
    if any(done for _, done, _ in counts):
        on = " and ".join(sorted(twins))
        text = ", ".join(f"{name} {done}/{of}" for name, done, of in counts)
        left_out = sum(map(len, LEFT_OUT.values()))
        terminalreporter.write_line(f"handed cases ({on}, {left_out} left out): {text}")
    elif not counts:
        terminalreporter.write_line(f"handed cases: none, {SHARED.name}/ is not there")
    for fault in missing():
        terminalreporter.write_line(f"ERROR: handed cases: {fault}", red=True)
