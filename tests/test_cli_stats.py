"""llmstream stats."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from commands import feed, main, process, terminal
from streams import BODY, CUT, FAILED, GAP, events

ALL = {
    "file": "-",
    "dialect": "llm-stream",
    "events": 8,
    "text_length": 17,
    "reasoning_length": 0,
    "model": "writer-1",
    "input_tokens": 3,
    "output_tokens": 4,
    "tool_calls": 0,
    "stop_reasons": {"0": "end_turn"},
    "vendor_stop_reasons": {},
    "gaps": [],
    "complete": True,
    "error": None,
    "violations": 0,
    "bytes": len(BODY),
    "status": 0,
}


def facts(capsys: Any, monkeypatch: Any, body: bytes, *options: str) -> Any:
    feed(monkeypatch, body)
    status = main("stats", "--format", "json", *options)
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert found["status"] == status
    return found


def test_json(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    found = facts(capsys, monkeypatch, BODY)
    seconds, speed = found.pop("seconds"), found.pop("bytes_per_second")
    assert found == ALL
    assert seconds > 0
    assert speed > 0


def test_json_of_streams_that_are_not_well(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    assert facts(capsys, monkeypatch, CUT)["complete"] is False
    assert facts(capsys, monkeypatch, GAP)["gaps"] == [[2, 2]]
    assert facts(capsys, monkeypatch, FAILED)["error"] == "overloaded"
    found = facts(capsys, monkeypatch, b"<html>\n")
    assert (found["dialect"], found["events"], found["status"]) == ("auto", 0, 2)


def test_a_table_of_several_files(llmstream: Any, capsys: Any, monkeypatch: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.sse"
    bad.write_bytes(FAILED)
    feed(monkeypatch, BODY)
    assert main("stats", "-", str(bad), str(tmp_path / "missing")) == 2
    shown = capsys.readouterr()
    assert "missing" in shown.err
    assert shown.err.count("\n") == 1
    header, first, second = (re.split(r"  +", line) for line in shown.out.splitlines())
    assert header[:6] == ["file", "dialect", "events", "text", "reasoning", "model"]
    assert first[:-1] == [
        *("-", "llm-stream", "8", "17", "0", "writer-1", "3", "4", "0", "end_turn", "0", "complete", "0"),
        str(len(BODY)),
    ]
    assert second[0] == str(bad)
    assert "complete, error overloaded" in second


def test_the_worst_status_wins(llmstream: Any, capsys: Any, tmp_path: Path) -> None:
    paths = {}
    for name, body in (("good", BODY), ("cut", CUT), ("unknown", b"nothing")):
        paths[name] = str(tmp_path / name)
        Path(paths[name]).write_bytes(body)
    assert main("stats", paths["good"], paths["good"]) == 0
    assert main("stats", paths["cut"], paths["good"]) == 1
    assert main("stats", paths["good"], paths["unknown"], paths["cut"]) == 2


def test_alternatives_are_not_counted(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    from test_cli_cat import THINKS

    found = facts(capsys, monkeypatch, THINKS)
    assert (found["dialect"], found["text_length"], found["reasoning_length"]) == ("openai", 3, 4)
    assert found["vendor_stop_reasons"] == {"0": "stop", "1": "stop"}


def test_words_of_the_stream_cannot_break_the_table(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    model = b"\\u001b[31m[bold]x\\n\\ny"
    feed(monkeypatch, BODY.replace(b"writer-1", model))
    assert main("stats") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2


posix = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")


@posix
@pytest.mark.parametrize("columns", [1, 20, 80, 300])
def test_on_a_terminal(llmstream: Any, tmp_path: Path, columns: int) -> None:
    path = tmp_path / "s"
    path.write_bytes(BODY.replace(b"writer-1", b"[red]m[/red]"))
    shown = terminal("stats", str(path), columns=columns, NO_COLOR="1")
    assert shown.status == 0
    if columns >= 80:
        assert "[red]m[/red]" in shown.output
        assert ("model" in shown.output.splitlines()[0]) is (columns == 300)


@posix
def test_without_rich(llmstream: Any, tmp_path: Path) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("raise ModuleNotFoundError('no rich here', name='rich')\n")
    (tmp_path / "s").write_bytes(BODY)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    for columns in (40, 300):
        shown = terminal("stats", str(tmp_path / "s"), columns=columns, PYTHONPATH=path)
        assert shown.status == 0
        assert "\x1b" not in shown.output
        assert "writer-1" in shown.output
    assert re.search(r"^model +writer-1$", terminal("stats", str(tmp_path / "s"), PYTHONPATH=path).output, re.MULTILINE)


@posix
def test_long_input_has_a_progress_bar(llmstream: Any, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "long.sse"
    path.write_bytes(b"".join(events(*["words "] * 20_000)))
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Patch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'llmstream.cli.stats':\n"
        "            import llmstream.cli.progress as progress\n"
        "            progress.PATIENCE = 0.0\n"
        "sys.meta_path.insert(0, Patch())\n"
    )
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    pytest.importorskip("rich")
    shown = terminal("stats", str(path), columns=100, PYTHONPATH=search)
    assert shown.status == 0
    assert "MB" in shown.output
    assert "\x1b[?25h" in shown.output, "the cursor is there again"
    assert "%" in shown.output or "━" in shown.output


def test_no_progress_bar_in_a_pipe(llmstream: Any) -> None:
    assert process("stats", body=BODY).stderr == b""
