"""The command line on recorded streams of real endpoints, which it is told nothing about."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import handed
from commands import main


def test_cat_and_stats(llmstream: Any, capsys: Any) -> None:
    ran: list[str] = []
    for row in handed.rows("captures"):
        path = str(handed.SHARED / "captures" / row["file"])
        status = main("cat", path)
        text = capsys.readouterr().out
        assert hashlib.sha256(text.encode()).hexdigest() == row["text_sha256"], row["file"]

        assert main("cat", "--format", "json", path) == status
        events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

        assert main("stats", "--format", "json", path) == status
        found = json.loads(capsys.readouterr().out)
        usage = row["usage"] or {}
        wanted = {
            "events": len(events),
            "text_length": row["text_len"],
            "reasoning_length": row["reasoning_len"],
            "model": row["model"] or None,
            "tool_calls": len(row["tool_calls"]),
            "input_tokens": usage.get("input"),
            "output_tokens": usage.get("output"),
        }
        if found["complete"] and found["violations"]:  # one count of two: the other is 0
            wanted = {name: found[name] if value is None else value for name, value in wanted.items()}
        assert {name: found[name] for name in wanted} == wanted, row["file"]
        stops = found["vendor_stop_reasons"]
        assert stops.get("0", next(iter(stops.values()), None)) == row["stop_reason"], row["file"]
        ran.append(row["file"])
    handed.handed("captures", ran)
