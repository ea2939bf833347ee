"""llmstream demo: it must work wherever it is called."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from commands import main, shell, terminal

posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")


def test_json(llmstream: Any, capsys: Any) -> None:
    assert main("demo", "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["implementation"] == llmstream.implementation
    assert shown["dialect"] == "llm-stream"
    assert (shown["complete"], shown["violations"], shown["gaps"]) == (True, 0, [])
    assert (shown["tool_calls"], shown["input_tokens"]) == (1, 41)
    speeds = shown["nanoseconds_per_event"]
    assert all(value > 0 for value in speeds.values())
    assert len(speeds) == 4


@posix
def test_with_everything_closed_that_can_be(llmstream: Any) -> None:
    done = shell("$LLMSTREAM demo <&-", COLUMNS="1", NO_COLOR="1", TERM="dumb")
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode()
    assert "\x1b" not in shown
    assert "Why does an answer arrive in pieces?" in shown
    assert "“naïve”, “Übergröße”, “東京”, “🚲”" in shown
    assert re.search(r"^events +\d{3}$", shown, re.MULTILINE)
    assert re.search(r"^seq +0 to \d+, gaps: none$", shown, re.MULTILINE)
    assert re.search(rf"^twin +{llmstream.implementation}$", shown, re.MULTILINE)
    assert "byte by byte" in shown


@posix
def test_on_a_terminal(llmstream: Any) -> None:
    shown = terminal("demo", columns=30)
    assert shown.status == 0
    assert "\x1b[1mWhat was found" in shown.output


def test_in_strict_mode_and_in_the_wrong_dialect(llmstream: Any, capsys: Any) -> None:
    assert main("demo", "--format", "json", "--strict", "--dialect", "llm-stream") == 0
    assert main("demo", "--format", "json", "--dialect", "openai") in (1, 2)
