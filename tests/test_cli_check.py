"""``llmstream check``: verdicts, exit status, forms of output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import feed, main, process
from drafts import delta, end, start, stop, tool_call, usage, whole
from vendors import openai_chunk

GOOD = whole("Hello", " wörld")
CUT = start() + delta(1, "S3CRET")
WARNED = start() + delta(1) + stop(2) + end(3)
TOOL = {"name": "get_weather", "description": "Weather.", "parameters": {"type": "object"}}
REQUEST = {
    "version": "1.0",
    "stream": True,
    "model": "m",
    "messages": [{"role": "user", "content": "S3CRET"}],
    "tools": [TOOL],
    "metadata": {"request_id": "r"},
}
EXAMPLE = Path(__file__).resolve().parents[1] / "conformance" / "examples" / "5.5-complete-example.txt"


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(body: bytes | dict[str, Any], name: str = "stream.sse") -> str:
        path = tmp_path / name
        path.write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())
        return str(path)

    return write


def test_auto_says_whose_format_it_is_instead(llmstream: Any, capsys: Any, file: Any) -> None:
    path = file(openai_chunk({"content": "S3CRET"}) * 3)
    for options, said in (((), True), (("--dialect", "auto"), True), (("--dialect", "llm-stream"), False)):
        assert main("check", *options, path) == 1
        output, errors = capsys.readouterr()
        assert "does not conform" in output
        assert ("is of the dialect openai; llmstream convert" in errors) == said
        assert "S3CRET" not in output + errors
    assert main("check", file(GOOD)) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("body", "options", "status", "words"),
    [
        (GOOD, (), 0, "conforms: 6 events, 0 errors, 0 warnings"),
        (GOOD, ("--strict",), 0, "conforms"),
        (WARNED, (), 0, "warning R5.3.5-3"),
        (WARNED, ("--strict",), 1, "error R5.3.5-3"),
        (CUT, (), 1, "event 2, offset "),
        (b"", (), 1, "error R5.3.7-2"),
        (b'{"detail":"Not Found"}', (), 1, "error R5.3.7-2"),
        (start() + b'{"error":{"message":"x"}}', (), 1, "error R5.3.7-2"),
        (b"<html>502 Bad Gateway</html>\n", (), 1, "error R5.3.7-2"),
        (GOOD.replace(b"1.0", b"2.0"), (), 1, "event 0, offset 0: error R5.2-1: v is not"),
        (GOOD, ("--max-event-size", "20"), 1, "error L-SIZE"),
        (GOOD, ("--dialect", "llm-stream"), 0, "conforms"),
        (GOOD, ("--dialect", "auto"), 0, "conforms"),
    ],
)
def test_exit_status(
    llmstream: Any, capsys: Any, file: Any, body: bytes, options: tuple[str, ...], status: int, words: str
) -> None:
    assert main("check", *options, file(body)) == status
    shown = capsys.readouterr()
    assert words in shown.out
    assert shown.out.splitlines()[-1].startswith(("conforms: ", "does not conform: "))
    assert shown.err == ""
    assert "S3CRET" not in shown.out


def test_json(llmstream: Any, capsys: Any, file: Any) -> None:
    assert main("check", "--format", "json", file(CUT)) == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["errors"], shown["events"]) == (False, 1, 2)
    assert shown["violations"][0]["requirement"] == "R5.3.7-2"
    assert main("check", "--format", "json", "--strict", file(GOOD)) == 0
    assert json.loads(capsys.readouterr().out)["violations"] == []


def test_standard_input(llmstream: Any, capsys: Any, monkeypatch: Any, file: Any) -> None:
    for arguments in (("check",), ("check", "-"), ("check", "--request", file(REQUEST, "r.json"), "-")):
        feed(monkeypatch, GOOD)
        assert main(*arguments) == 0
        assert "6 events" in capsys.readouterr().out
    feed(monkeypatch, json.dumps(REQUEST).encode())
    assert main("check", "--request", "-", file(GOOD)) == 0
    feed(monkeypatch, json.dumps(REQUEST).encode())
    assert main("check", "--request", "-") == 0


def test_a_request_alone_and_with_its_response(llmstream: Any, capsys: Any, file: Any) -> None:
    """R4.2-2, R4.6-2, R5.3.4-3."""
    request = file(REQUEST, "request.json")
    assert main("check", "--request", request) == 0
    assert capsys.readouterr().out == "conforms: 0 events, 0 errors, 0 warnings\n"
    bad = file({**REQUEST, "version": "2.0"}, "bad.json")
    assert main("check", "--request", bad) == 1
    assert capsys.readouterr().out.startswith("request, member `version`: error R4.2-2: ")
    body = start() + tool_call(1, name="other") + stop(2, 0, "tool_use") + usage(3) + end(4, request_id="r")
    assert main("check", "--request", request, file(body)) == 1
    shown = capsys.readouterr().out
    assert "event 1, offset " in shown
    assert "error R5.3.4-3" in shown
    assert "warning R4.6-2" in shown


def test_folded(llmstream: Any, capsys: Any) -> None:
    """R5.1-1: the draft's own example as it prints it, with the advice and with the loader."""
    assert main("check", str(EXAMPLE)) == 1
    shown = capsys.readouterr().out
    assert "R5.1-1: the JSON goes on over lines without data:" in shown
    assert "--folded" in shown
    assert main("check", "--folded", "--strict", str(EXAMPLE)) == 0
    assert capsys.readouterr().out == "conforms: 8 events, 0 errors, 0 warnings\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.sse",),
        ("--request", "missing.json"),
        ("--request", "-", "-"),
        ("--dialect", "openai"),
        ("--nonsense",),
        ("--format", "xml"),
        ("a", "b"),
        ("--max-event-size", "0"),
    ],
)
def test_unusable_input_and_arguments_are_one_line_and_2(
    llmstream: Any, capsys: Any, monkeypatch: Any, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    feed(monkeypatch, b"")
    assert main("check", *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("llmstream: ")
    assert shown.err.count("\n") == 1


def test_help(llmstream: Any, capsys: Any) -> None:
    assert main("check", "--help") == 0
    shown = capsys.readouterr().out
    for option in ("--strict", "--request", "--folded", "--format", "--dialect", "--max-event-size"):
        assert shown.count(f"\n  {option}") == 1
    assert "make warnings errors" in shown
    assert "stop at the first error" not in shown


def test_as_a_process(llmstream: Any) -> None:
    done = process("check", "--format", "json", body=GOOD)
    assert done.returncode == 0
    assert json.loads(done.stdout)["ok"]
    assert process("check", "--strict", body=WARNED).returncode == 1
