"""``llmstream convert``: the standard stream on standard output, exit status, errors."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import handed
from commands import COMMAND, feed, main, process, shell, terminal
from standard import kinds, read, text, written
from streams import BODY, CUT, FAILED, GAP
from vendors import openai, openai_chunk, sse

EVENTS = openai(["Hel", "lo\u2028"], ["Hm"])
VENDOR = b"".join(EVENTS)
FAILURE = openai_chunk({"content": "a"}) + sse({"error": {"message": "S3CRET", "code": "server_error"}})


def convert(capfdbinary: Any, *arguments: str) -> tuple[int, bytes, str]:
    status = main("convert", *arguments)
    shown = capfdbinary.readouterr()
    return status, shown.out, shown.err.decode()


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(body: bytes) -> str:
        path = tmp_path / "stream"
        path.write_bytes(body)
        return str(path)

    return write


@pytest.mark.parametrize("options", [(), ("--dialect", "openai"), ("--strict",), ("--dialect", "auto")])
def test_the_bytes_are_those_of_the_transcoder(llmstream: Any, capfdbinary: Any, file: Any, options: Any) -> None:
    status, output, errors = convert(capfdbinary, *options, file(VENDOR))
    assert (status, errors) == (0, "")
    assert output == written(llmstream, VENDOR, "openai")[0]
    assert llmstream.check(output).ok


def test_standard_input(llmstream: Any, capfdbinary: Any, monkeypatch: Any) -> None:
    for arguments in ((), ("-",)):
        feed(monkeypatch, VENDOR)
        assert convert(capfdbinary, *arguments)[:2] == (0, written(llmstream, VENDOR, "openai")[0])


def test_the_standard_stream(llmstream: Any, capfdbinary: Any, file: Any) -> None:
    assert convert(capfdbinary, file(BODY)) == (0, BODY, "")
    status, output, errors = convert(capfdbinary, file(GAP))
    assert (status, kinds(output)[-2:]) == (1, ["error", "stream.end"])
    assert "R5.2.1-3" in errors


@pytest.mark.parametrize(
    ("body", "options", "status", "words"),
    [
        (VENDOR[:300], (), 1, "the stream stopped before its end"),
        (CUT, (), 1, "the stream stopped before its end"),
        (FAILURE, (), 1, "the endpoint reported an error: internal_error"),
        (FAILURE, ("--strict",), 1, "the endpoint reported an error: internal_error"),
        (FAILED, (), 1, "the endpoint reported an error"),
        (b"", ("--dialect", "openai"), 1, "the stream stopped before its end"),
        (VENDOR[:300], ("--strict",), 1, "L-TAIL"),
        (b"data: {\n\n" + VENDOR, ("--dialect", "openai"), 1, "R5.1-3"),
        (b"data: {\n\n" + VENDOR, ("--dialect", "openai", "--strict"), 1, "R5.1-3"),
        (b'data: {"x":1}\n\n' * 70, (), 2, "no known dialect fits"),
        (VENDOR, ("--max-event-size", "100", "--dialect", "openai"), 1, "L-SIZE"),
    ],
)
def test_exit_status(
    llmstream: Any, capfdbinary: Any, file: Any, body: bytes, options: tuple[str, ...], status: int, words: str
) -> None:
    """Whatever comes in, a whole stream goes out, and says that it failed."""
    found, output, errors = convert(capfdbinary, *options, file(body))
    assert found == status
    assert errors.startswith("llmstream: ")
    assert words in errors
    assert errors.count("\n") == 1
    assert "S3CRET" not in errors
    assert llmstream.check(output).ok
    assert kinds(output)[-2:] == ["error", "stream.end"]


def test_more_than_a_stream_can_have(llmstream: Any, capfdbinary: Any, file: Any) -> None:
    body = b"".join(openai_chunk({"content": "a"}, index=index) for index in range(4200))
    status, output, errors = convert(capfdbinary, file(body))
    assert (status, kinds(output)[-2:]) == (1, ["error", "stream.end"])
    assert errors.count("\n") == 1


def test_options(llmstream: Any, capfdbinary: Any, file: Any) -> None:
    nameless = VENDOR.replace(b'"gpt-x"', b'""')
    options = ("--model", "m", "--request-id", "r", "--reasoning", "drop")
    status, output, _ = convert(capfdbinary, *options, file(nameless))
    first, *_, last = read(output)
    assert (status, first["model"], first["request_id"], last["request_id"]) == (0, "m", "r", "r")
    assert b"reasoning" not in output
    assert b"openai:reasoning" in convert(capfdbinary, file(nameless))[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.sse",),
        ("--dialect", "nonsense"),
        ("--nonsense",),
        ("--format", "json"),
        ("--reasoning", "text"),
        ("--model", "\udce9"),
        ("a", "b"),
        ("--max-event-size", "0"),
    ],
)
def test_unusable_input_and_arguments_are_one_line_and_2(
    llmstream: Any, capfdbinary: Any, monkeypatch: Any, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    feed(monkeypatch, b"")
    status, output, errors = convert(capfdbinary, *arguments)
    assert (status, output) == (2, b"")
    assert errors.startswith("llmstream: ")
    assert errors.count("\n") == 1


def test_input_that_breaks_ends_the_stream(llmstream: Any, capfdbinary: Any, monkeypatch: Any) -> None:
    class Broken:
        def __init__(self) -> None:
            self.chunks = [EVENTS[0], EVENTS[2]]

        def read1(self, size: int) -> bytes:
            if self.chunks:
                return self.chunks.pop(0)
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": Broken()})())
    status, output, errors = convert(capfdbinary)
    assert (status, errors) == (2, "llmstream: standard input: Input/output error\n")
    assert llmstream.check(output).ok
    assert read(output)[-2]["message"] == "the input cannot be read"


def test_help(llmstream: Any, capsys: Any) -> None:
    assert main("--help") == 0
    assert "\n    convert " in capsys.readouterr().out
    assert main("convert", "--help") == 0
    shown = capsys.readouterr().out
    for option in ("--dialect", "--strict", "--max-event-size", "--model", "--request-id", "--reasoning"):
        assert shown.count(f"\n  {option}") == 1


def test_it_writes_while_it_reads(llmstream: Any) -> None:
    with subprocess.Popen([*COMMAND, "convert"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for event, words in ((EVENTS[0], b"stream.start"), (EVENTS[2], b"Hel"), (EVENTS[3], b"lo")):
            child.stdin.write(event)
            child.stdin.flush()
            seen = b""
            while words not in seen:
                seen += os.read(child.stdout.fileno(), 4096)
        child.stdin.write(b"".join(EVENTS[4:]))
        child.stdin.close()
        assert child.wait(30) == 0


def test_as_a_process(llmstream: Any) -> None:
    done = process("convert", "--dialect", "openai", body=VENDOR)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == written(llmstream, VENDOR, "openai")[0]
    assert shell("$LLMSTREAM convert --dialect openai < /dev/null | $LLMSTREAM check").returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_terminal_gets_no_control_characters(llmstream: Any, file: Any) -> None:
    shown = terminal("convert", file(b"".join(openai(["\x1b[2J\x9b2J"]))))
    assert shown.status == 0
    assert "\x1b" not in shown.output
    assert "\x9b" not in shown.output
    assert "\\u001b[2J\ufffd2J" in shown.output


def test_recordings(llmstream: Any, capfdbinary: Any) -> None:
    for row in handed.rows("captures")[::10]:
        path = handed.SHARED / "captures" / row["file"]
        status, output, _ = convert(capfdbinary, str(path))
        assert llmstream.check(output).ok
        assert status == ("error" in kinds(output))
        assert text(output) == text(written(llmstream, path.read_bytes())[0])
