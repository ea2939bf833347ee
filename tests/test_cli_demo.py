"""llmstream demo: it must work wherever it is called."""

from __future__ import annotations

import json
import os
import re
from importlib import import_module
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
    slower = "" if llmstream.implementation == "cython" else r" \(slower: .+\)"
    assert re.search(rf"^implementation +{llmstream.implementation}{slower}$", shown, re.MULTILINE)
    assert len(re.findall(r"^llmstream, events +\d+ ns an event$", shown, re.MULTILINE)) == 1
    assert len(re.findall(r" \d+ ns an event +\d+\.\d times (?:slower|faster)$", shown, re.MULTILINE)) == 3
    assert "byte by byte" in shown


def test_the_comparison_says_of_what(llmstream: Any) -> None:
    demo: Any = import_module("llmstream.cli.demo")
    speeds = {"llmstream, text only": 1e-7, "llmstream, events": 2e-7, "other": 3.0e-6}
    assert [" ".join(line.split()) for line in demo._comparison(speeds)] == [
        "llmstream, text only 100 ns an event 2.0 times faster",
        "llmstream, events 200 ns an event",
        "other 3000 ns an event 15.0 times slower",
    ]


@pytest.mark.parametrize("built", [False, True])
def test_the_slow_implementation_says_why(llmstream: Any, monkeypatch: Any, built: bool) -> None:
    demo: Any = import_module("llmstream.cli.demo")
    monkeypatch.setattr(demo, "implementation", "python")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if built else None)
    assert ("is not used" if built else "installed without the extension") in demo._implementation()
    monkeypatch.setattr(demo, "implementation", "cython")
    assert demo._implementation() == "cython"


@posix
def test_on_a_terminal(llmstream: Any) -> None:
    shown = terminal("demo", columns=30)
    assert shown.status == 0
    assert "\x1b[1mWhat was found" in shown.output


def test_in_strict_mode(llmstream: Any, capsys: Any) -> None:
    assert main("demo", "--format", "json", "--strict") == 0
