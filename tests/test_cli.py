"""The command line as a whole: arguments, exit status, and one line for whatever is wrong."""

from __future__ import annotations

import argparse
import bz2
import gzip
import importlib
import inspect
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import feed, main, process, shell
from drafts import delta
from streams import BODY, CUT, EVENTS, FAILED, GAP, TEXTS

COMMANDS = ("cat", "stats", "check", "convert", "audit", "serve", "demo")
TEXT = "".join(TEXTS)
posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(body: bytes, name: str = "stream.sse") -> str:
        path = tmp_path / name
        path.write_bytes(body)
        return str(path)

    return write


def one_line(text: str) -> str:
    assert text.startswith("llmstream: ")
    assert text.endswith("\n")
    assert text.count("\n") == 1
    return text


def test_version_and_help(llmstream: Any, capsys: Any) -> None:
    assert main("--version") == 0
    assert capsys.readouterr().out == f"llmstream {llmstream.__version__} ({llmstream.implementation})\n"
    assert main("--help") == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert f"\n    {command}" in shown
        assert main(command, "--help") == 0
        assert f"usage: llmstream {command} " in capsys.readouterr().out


def test_every_option_is_read_and_every_choice_is_one(llmstream: Any) -> None:
    """An option that a command takes and does not read promises what does not happen."""
    for command in COMMANDS:
        module = importlib.import_module(f"llmstream.cli.{command}")
        parser = argparse.ArgumentParser()
        importlib.import_module("llmstream.cli.options").add_common(parser, module.COMMON)
        module.arguments(parser)
        sources = inspect.getsource(module)
        made = inspect.getsource(importlib.import_module("llmstream.cli.options").make_parser)
        sources += made if "make_parser(" in sources else ""
        for action in parser._actions:
            assert action.dest == "help" or f"found.{action.dest}" in sources, (command, action.dest)
            assert action.choices is None or len(list(action.choices)) > 1, (command, action.dest)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("cat", "--nonsense"),
        ("cat", "a", "b"),
        ("cat", "--format", "xml"),
        ("cat", "--max-event-size", "many"),
        ("cat", "--max-event-size", "0"),
        ("cat", "--dialect", "nonsense"),
        ("stats", "--dialect", "nonsense", "a", "b"),
        ("demo", "--dialect", "nonsense"),
        ("demo", "--max-event-size", "1k"),
        ("demo", "extra"),
        ("serve", "--replay", "x", "--dialect", "openai"),
        ("serve", "--replay", "x", "--strict"),
        ("serve", "--replay", "x", "--max-event-size", "1k"),
        ("serve", "--replay", "x", "--format", "text"),
        ("convert", "--format", "text"),
    ],
)
def test_bad_arguments_are_one_line_and_2(llmstream: Any, capsys: Any, arguments: tuple[str, ...]) -> None:
    assert main(*arguments) == 2
    shown = capsys.readouterr()
    one_line(shown.err)
    assert shown.out == ""


def test_what_is_unknown_points_to_the_help_of_its_command(llmstream: Any, capsys: Any) -> None:
    for command in COMMANDS:
        required = {"serve": ("--replay", "x"), "audit": ("x",)}.get(command, ())
        assert main(command, *required, "--nonsense") == 2
        wanted = f"llmstream: unrecognized arguments: --nonsense (see llmstream {command} --help)\n"
        assert one_line(capsys.readouterr().err) == wanted


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openia", "did you mean openai"),
        ("OpenAI", "did you mean openai"),
        ("antropic", "did you mean anthropic"),
        ("llmstream", "did you mean llm-stream"),
        ("klingon", "known are auto, llm-stream, openai, anthropic, gemini and "),
        ("x" * 10_000, "unknown dialect"),
    ],
)
@pytest.mark.parametrize("command", ["cat", "stats", "convert", "audit"])
def test_an_unknown_dialect_names_those_that_are_near(
    llmstream: Any, capsys: Any, command: str, name: str, words: str
) -> None:
    assert main(command, "--dialect", name, "x") == 2
    shown = one_line(capsys.readouterr().err)
    assert words in shown
    assert len(name) > 100 or "\u2026" not in shown


@pytest.mark.parametrize("command", ["cat", "stats"])
def test_unusable_input_is_one_line_and_2(llmstream: Any, capsys: Any, tmp_path: Path, command: str) -> None:
    for name in (str(tmp_path / "missing"), str(tmp_path), "nul\0byte"):
        assert main(command, name) == 2
        one_line(capsys.readouterr().err)


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_file_without_permission_is_2(llmstream: Any, capsys: Any, file: Any) -> None:
    path = file(BODY)
    Path(path).chmod(0)
    assert main("cat", path) == 2
    assert "ermission" in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (BODY, 0, ""),
        (CUT, 1, "the stream stopped before its end"),
        (FAILED, 1, "the endpoint reported an error: overloaded"),
        (GAP, 1, "R5.2.1-3"),
        (BODY.replace(b"Hello", b"H\xffllo"), 0, ""),
        (b"<html><body>502 Bad Gateway</body></html>\n", 2, "no known dialect fits"),
        (b"", 2, ": it is empty"),
    ],
)
@pytest.mark.parametrize("command", ["cat", "stats"])
def test_exit_status(
    llmstream: Any, capsys: Any, file: Any, command: str, body: bytes, status: int, words: str
) -> None:
    assert main(command, file(body)) == status
    shown = capsys.readouterr().err
    if status == 0 or (command == "stats" and status == 1):
        assert shown == ""  # the table says it
    else:
        assert words in one_line(shown)


@pytest.mark.parametrize("command", ["cat", "stats", "convert"])
def test_help_tells_the_exit_statuses(llmstream: Any, capsys: Any, file: Any, command: str) -> None:
    assert main(command, "--help") == 0
    shown = " ".join(capsys.readouterr().out.partition("Exit status: ")[2].split())
    told = {int(part.split()[0]): part for part in shown.split("; ")}
    assert set(told) == {0, 1, 2, 130, 141}
    for body, status, words in (
        (BODY, 0, "the stream is complete and has no errors"),
        (CUT, 1, "stopped before its end"),
        (FAILED, 1, "reports an error"),
        (GAP, 1, "breaks a rule"),
        (b"<html></html>\n", 2, "no known dialect fits"),
    ):
        assert main(command, file(body)) == status
        assert words in told[status]
    for option, words in ((f"{file(BODY)}.none", "the input cannot be read"), ("--none", "the arguments are wrong")):
        assert main(command, option) == 2
        assert words in told[2]
    assert ("Of several files, the highest." in shown) == (command == "stats")
    assert ("has a place in the standard stream" in told[1]) == (command == "convert")


CHAT = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}],"object":"chat.completion.chunk"}\n\ndata: [DONE]\n\n'
STOPPED = "the stream stopped before its end"


@pytest.mark.parametrize(
    ("body", "options", "status", "words"),
    [
        (BODY, ("--max-event-size", "50"), 2, "no known dialect fits; before that, L-SIZE: event over max_event_size"),
        (BODY, ("--max-event-size", "50"), 2, "(event 0, offset 0), and 7 more"),
        (BODY * 40, ("--max-event-size", "50"), 2, "no known dialect fits; before that, L-SIZE: "),
        (CHAT, ("--dialect", "llm-stream"), 1, f'{STOPPED}; before that, R5.2-1: v is not "1.0" (event 0, offset 0)'),
        (CHAT, ("--dialect", "llm-stream"), 1, ", and 4 more"),
        (BODY.replace(b"event: stream.end", b"event: x"), (), 1, ": R5.2-5: type differs from the SSE event field ("),
        (CUT, (), 1, f": {STOPPED}\n"),
        (b"<html></html>\n", (), 2, ": no known dialect fits\n"),
    ],
)
def test_the_first_cause_is_told(
    llmstream: Any, capsys: Any, file: Any, body: bytes, options: tuple[str, ...], status: int, words: str
) -> None:
    """What came of it (no format fits, the end is missing) does not hide what was wrong before."""
    for form in ((), ("--format", "json")):
        assert main("cat", *options, *form, file(body)) == status
        assert words in one_line(capsys.readouterr().err)


@pytest.mark.parametrize("command", ["cat", "stats", "check", "convert"])
@pytest.mark.parametrize(
    ("compressed", "words"),
    [
        (gzip.compress(BODY), "gzip"),
        (bz2.compress(BODY), "bzip2"),
        (bz2.compress(BODY, 1), "bzip2"),
        (lzma.compress(BODY), "xz"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), "zstd"),
    ],
)
def test_what_is_compressed_is_called_so(
    llmstream: Any, capsys: Any, file: Any, command: str, compressed: bytes, words: str
) -> None:
    path = file(compressed)
    assert main(command, path) == 2
    assert one_line(capsys.readouterr().err).startswith(f"llmstream: {path}: it is compressed by {words}: ")


@pytest.mark.parametrize("command", ["cat", "stats"])
@pytest.mark.parametrize(("body", "words"), [(CUT, "R5.3.7-2"), (GAP, "R5.2.1-3"), (FAILED, "overloaded")])
def test_strict_says_which_rule(llmstream: Any, capsys: Any, file: Any, command: str, body: bytes, words: str) -> None:
    assert main(command, "--strict", "--dialect", "llm-stream", file(body)) == 1
    assert words in one_line(capsys.readouterr().err)


def test_errors_never_quote_the_stream(llmstream: Any, capsys: Any, file: Any) -> None:
    for body in (FAILED, GAP, CUT, BODY.replace(b'"text"', b'"tex"')):
        for strict in ((), ("--strict",)):
            main("cat", *strict, file(body))
            shown = capsys.readouterr().err
            assert "SECRET" not in shown
            assert "Hello" not in shown


def test_the_size_of_an_event_is_limited(llmstream: Any, capsys: Any, file: Any) -> None:
    path = file(BODY)
    options = ("--dialect", "llm-stream", "--max-event-size")
    assert main("cat", *options, "1k", path) == 0
    assert main("cat", *options, "16MiB", path) == 0
    capsys.readouterr()
    assert main("cat", *options, "100", path) == 1
    assert "L-SIZE" in one_line(capsys.readouterr().err) or "before its end" in one_line(capsys.readouterr().err)


def test_standard_input(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    for arguments in (("cat",), ("cat", "-")):
        feed(monkeypatch, BODY)
        assert main(*arguments) == 0
        assert capsys.readouterr().out == TEXT
    feed(monkeypatch, CUT)
    assert main("cat") == 1
    assert one_line(capsys.readouterr().err).startswith("llmstream: standard input: ")
    monkeypatch.setattr(sys, "stdin", None)
    assert main("cat") == 2
    assert "closed" in one_line(capsys.readouterr().err)


def test_python_m(llmstream: Any) -> None:
    done = process("cat", body=BODY)
    assert (done.returncode, done.stdout, done.stderr) == (0, TEXT.encode(), b"")
    assert process("cat", body=CUT).returncode == 1
    assert process("nonsense").returncode == 2


# An import hook that answers for the compiled twin, put in before the package is imported, as `python -m` runs it or as
# an installed command does.
NO_TWIN = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "llmstream._parser":
            raise {error}
sys.meta_path.insert(0, Finder())
"""
ABSENT = 'ModuleNotFoundError("No module named " + repr(name), name=name)'
BROKEN = 'ImportError("undefined symbol: PyNothing", name=name)'
UNUSED = 'ImportError("never asked for", name="elsewhere")'
NOT_BUILT = "LLMSTREAM_IMPLEMENTATION=cython, but the extension was not built here"
USE = "use auto, cython or python"


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("foo", UNUSED, f"LLMSTREAM_IMPLEMENTATION=foo: {USE}"),
        ("Python", UNUSED, f"LLMSTREAM_IMPLEMENTATION=Python: {USE}"),
        ("a\nb\x1b[2J", UNUSED, f"LLMSTREAM_IMPLEMENTATION=a?b?[2J: {USE}"),
        ("cython", ABSENT, NOT_BUILT),
        ("cython", BROKEN, "the extension does not load: undefined symbol: PyNothing"),
        ("auto", BROKEN, "the extension does not load: undefined symbol: PyNothing"),
        ("", ABSENT, None),
        ("auto", ABSENT, None),
        ("python", ABSENT, None),
        ("python", BROKEN, None),
    ],
)
@pytest.mark.parametrize("start", ["-m", "installed"])
def test_an_implementation_that_cannot_be_had(
    tmp_path: Path, start: str, value: str, error: str, words: str | None
) -> None:
    hook = NO_TWIN.format(error=error)
    environment = {**os.environ, "LLMSTREAM_IMPLEMENTATION": value}
    if start == "-m":
        (tmp_path / "sitecustomize.py").write_text(hook)
        environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
        line = [sys.executable, "-m", "llmstream", "--version"]
    else:
        (tmp_path / "llmstream").write_text(f"{hook}from llmstream.cli import main\nsys.exit(main())\n")
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        line = [sys.executable, str(tmp_path / "llmstream"), "--version"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=environment, check=False)
    if words is None:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith(" (python)\n")
    else:
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"llmstream: {words}\n")


@posix
def test_a_reader_that_goes_away(llmstream: Any, file: Any) -> None:
    large = file(EVENTS[0] + b"".join(delta(seq, "words ") for seq in range(1, 50_000)))
    line = f'( $LLMSTREAM cat --format json "{large}"; echo "status $?" >&2 ) | head -n 1'
    done = shell(line)
    assert b'"stream.start"' in done.stdout
    assert done.stderr == b"status 141\n"


@posix
def test_interrupted(llmstream: Any) -> None:
    # A child of a process that ignores the signal, as in the background of a shell, would ignore it too.
    taken = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    taken += "runpy.run_module('llmstream', run_name='__main__')"
    with subprocess.Popen(
        [sys.executable, "-c", taken, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(b"".join(EVENTS[:5]))
        child.stdin.flush()
        assert child.stdout.read1() == TEXT.encode()
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        assert child.stderr.read() == b""


@posix
@pytest.mark.parametrize("arguments", ["cat", "stats", "stats --format json", "check", "check --format json"])
def test_standard_streams_that_are_closed(llmstream: Any, file: Any, arguments: str) -> None:
    path = file(BODY)
    assert shell(f"$LLMSTREAM {arguments} <&-").returncode == 2
    assert shell(f"$LLMSTREAM {arguments} {path} <&-").returncode == 0
    assert shell(f"$LLMSTREAM {arguments} {path} 2>&-").returncode == 0
    assert shell(f"$LLMSTREAM {arguments} {path}.missing 2>&-").returncode == 2


@posix
@pytest.mark.parametrize("arguments", ["cat", "cat --format json", "stats", "check", "check --request"])
def test_output_that_is_closed(llmstream: Any, file: Any, arguments: str) -> None:
    """Nobody can have seen the output, so it is no success; also where standard error is closed too."""
    done = shell(f"$LLMSTREAM {arguments} {file(BODY)} >&-")
    assert done.returncode == 2
    assert one_line(done.stderr.decode()) == "llmstream: standard output is closed\n"
    assert shell(f"$LLMSTREAM {arguments} {file(BODY)} >&- 2>&-").returncode == 2


@posix
def test_output_that_is_closed_and_nothing_is_read(llmstream: Any) -> None:
    for arguments in ("demo", "--version", "--help", "check --nonsense"):
        assert shell(f"$LLMSTREAM {arguments} >&-").returncode == 2


def test_no_output_in_this_process(llmstream: Any, capsys: Any, monkeypatch: Any, file: Any) -> None:
    path = file(BODY)
    for command in ("cat", "stats", "check"):
        monkeypatch.setattr(sys, "stdout", None)
        assert main(command, path) == 2
        assert one_line(capsys.readouterr().err) == "llmstream: standard output is closed\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["--help", "--version", *(f"{command} --help" for command in COMMANDS)])
def test_help_that_cannot_be_written(llmstream: Any, arguments: str, unbuffered: str) -> None:
    done = shell(f"$LLMSTREAM {arguments} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert "cannot write" in one_line(done.stderr.decode())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("arguments", ["cat", "stats", "stats --format json", "check", "check --format json"])
def test_output_that_cannot_be_written(llmstream: Any, file: Any, arguments: str) -> None:
    done = shell(f"$LLMSTREAM {arguments} {file(BODY)} >/dev/full")
    assert done.returncode == 2
    assert "cannot write" in one_line(done.stderr.decode())


@posix
def test_output_that_cannot_encode(llmstream: Any, file: Any) -> None:
    path = file(BODY)
    done = shell(f"$LLMSTREAM cat {path}", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout[:9]) == (0, b"Hello w\\x")
    done = shell(f"$LLMSTREAM cat --format json {path}", PYTHONIOENCODING="ascii")
    assert b"w\\u00f6rld" in done.stdout


@posix
def test_names_with_control_characters(llmstream: Any, capsys: Any, file: Any) -> None:
    assert main("cat", "\x1b[31mred\nline") == 2
    assert "\x1b" not in one_line(capsys.readouterr().err)
    path = file(BODY, "\x1b[31m[red]\n.sse")
    assert main("stats", path) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2
