"""llmstream audit: records of many streams, and their verification."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from commands import COMMAND, main, process, shell, terminal
from streams import BODY, CUT, EVENTS, FAILED, GAP, delta

CHAINED = ("record_sha256", "position", "chain_sha256", "seal")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Some streams, one of them in a folder of its own."""
    found = tmp_path / "in"
    (found / "deeper").mkdir(parents=True)
    (found / "a.sse").write_bytes(BODY)
    (found / "b.sse").write_bytes(CUT)
    (found / "deeper" / "c.sse").write_bytes(GAP)
    return found


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def audited(path: Path, *arguments: str) -> list[dict[str, Any]]:
    output = path.parent / "out.jsonl"
    assert main("audit", str(path), "-o", str(output), "--jobs", "1", *arguments) == 0
    return records(output)


def test_a_folder(llmstream, folder, capsys):
    output = folder.parent / "out.jsonl"
    assert main("audit", str(folder), "-o", str(output)) == 0
    found = records(output)
    names = [f"{folder.as_posix()}/{name}" for name in ("a.sse", "b.sse", "deeper/c.sse")]
    assert [record["stream_id"] for record in found] == names
    assert [record["complete"] for record in found] == [True, False, True]
    assert found[0]["text"] == llmstream.parse(BODY).text
    seal = found[-1]["seal"]
    words = f"llmstream: 3 records of {len(BODY + CUT + GAP)} bytes, sealed: {seal}\n"
    assert capsys.readouterr().err == words
    audit: Any = import_module("llmstream.audit").audit
    for record, body in zip(found, (BODY, CUT, GAP), strict=True):
        link = {name: record.pop(name) for name in CHAINED}
        assert record == audit(body, record["stream_id"]).to_dict()
        assert link["record_sha256"] == audit(body, record["stream_id"]).digest().hex()


def test_standard_output_and_globs(llmstream, folder, capfdbinary):
    assert main("audit", str(folder / "**" / "*.sse"), str(folder / "a.sse")) == 0
    names = [Path(json.loads(line)["stream_id"]).name for line in capfdbinary.readouterr().out.splitlines()]
    assert names == ["a.sse", "b.sse", "c.sse", "a.sse"]


def test_what_is_written_is_no_input(llmstream, folder):
    output = folder / "out.jsonl"
    for _ in range(2):
        assert main("audit", str(folder), "-o", str(output), "--jobs", "1") == 0
        assert len(records(output)) == 3
    assert sorted(path.name for path in folder.iterdir()) == ["a.sse", "b.sse", "deeper", "out.jsonl"]


def names_of(file: Path) -> list[Path]:
    """Other names of the same file."""
    link, hard = file.parent / "link.jsonl", file.parent / "hard.jsonl"
    link.symlink_to(file)
    hard.hardlink_to(file)
    return [file, link, hard, file.parent / "deeper" / ".." / file.name, Path(os.path.relpath(file))]


@pytest.mark.skipif(sys.platform == "win32", reason="a symbolic link needs a privilege there")
def test_an_output_is_no_input_by_any_of_its_names(llmstream, folder, capsys):
    """A record that replaces its stream would be the loss of it: named, in a folder, found by a glob, or as the key."""
    names = names_of(folder / "a.sse")
    before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    for given in (*map(str, names), str(folder), str(folder / "*")):
        for output in map(str, names):
            assert main("audit", given, "-o", output, "--format", "jsonl", "--jobs", "1") == 2, (given, output)
            assert "this input is also the output" in capsys.readouterr().err
    arguments = ("audit", str(folder / "b.sse"), "-o", str(names[1]), "--key", str(names[0]))
    assert main(*arguments) == 2
    assert {path.name: path.read_bytes() for path in folder.glob("*.*")} == before


def test_records_are_not_their_own_input(llmstream, folder, capsys):
    output = folder / "out.jsonl"
    for _ in range(2):
        assert main("audit", str(folder), "-o", str(output), "--jobs", "1") == 0
    before = output.read_bytes()
    assert main("audit", str(output), "-o", str(output)) == 2
    assert output.read_bytes() == before


def test_a_folder_that_cannot_be_read_is_told_once(llmstream, folder, capsys, monkeypatch):
    output = folder.parent / "out.jsonl"
    output.write_text("this is no record, so the folders are searched for it first")
    walk, lost = os.walk, OSError(13, "Permission denied", "lost")
    monkeypatch.setattr(os, "walk", lambda top, onerror: [onerror(lost), *walk(top)][1:])
    assert main("audit", str(folder), "-o", str(output), "--jobs", "1") == 2
    assert capsys.readouterr().err.count(": Permission denied") == 1
    assert len(records(output)) == 3


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_standard_output_in_a_file_that_is_an_input(llmstream, folder):
    assert shell(f"$LLMSTREAM audit {folder} --jobs 1 >{folder}/out.jsonl").returncode == 0
    assert len(records(folder / "out.jsonl")) == 3
    done = shell(f"$LLMSTREAM audit {folder}/a.sse >>{folder}/a.sse")
    assert (done.returncode, (folder / "a.sse").read_bytes()) == (2, BODY)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed(llmstream, folder, compress):
    (folder / "a.sse").write_bytes(compress(BODY))
    record = audited(folder)[0]
    assert (record["byte_count"], record["wire_sha256"]) == (len(BODY), sha256(BODY).hexdigest())
    assert record["complete"]


def test_several_members(llmstream, folder):
    (folder / "a.sse").write_bytes(gzip.compress(BODY[:100]) + gzip.compress(BODY[100:]))
    assert audited(folder)[0]["wire_sha256"] == sha256(BODY).hexdigest()


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_damaged(llmstream, folder, compress, capsys):
    """What comes before the damage is read, the rest is told; nothing stops."""
    noise = b"".join(sha256(str(number).encode()).digest() for number in range(2000))
    body = BODY + b": " + noise.hex().encode()
    packed = compress(body)
    (folder / "a.sse").write_bytes(packed[: len(packed) - 20])
    (folder / "b.sse").write_bytes(packed[:60] + bytes(20) + packed[80:])
    output = folder.parent / "out.jsonl"
    assert main("audit", str(folder), "-o", str(output), "--jobs", "1") == 2
    cut, broken, whole = records(output)
    assert cut["fault"] == "not read to its end: the compressed data ends early"
    assert broken["fault"].startswith("not read to its end: the compressed data")
    assert (cut["complete"], broken["complete"], whole["fault"]) == (False, False, None)
    assert f"{folder.as_posix()}/a.sse: not read to its end: the compressed data ends early" in capsys.readouterr().err
    assert main("audit", "--verify", str(output)) == 0


def test_what_comes_before_the_damage_is_read(llmstream, folder):
    (folder / "a.sse").write_bytes(gzip.compress(BODY)[:-4])
    output = folder.parent / "out.jsonl"
    assert main("audit", str(folder / "a.sse"), "-o", str(output)) == 2
    (record,) = records(output)
    assert (record["byte_count"], record["text"]) == (len(BODY), llmstream.parse(BODY).text)


def test_bad_streams_stop_nothing(llmstream, folder):
    (folder / "c").write_bytes(bytes(range(256)) * 20)
    (folder / "d").write_bytes(b"")
    (folder / "e").write_bytes(b'{"error": "no stream"}')
    (folder / "f").write_bytes(FAILED)
    found = audited(folder)
    assert [Path(record["stream_id"]).name for record in found][:6] == ["a.sse", "b.sse", "c", "d", "e", "f"]
    assert [record["complete"] for record in found] == [True, False, False, False, False, True, True]
    assert found[4]["error_code"] is not None
    assert found[5]["error_code"] is not None
    assert main("audit", str(folder), "-o", str(folder.parent / "o.jsonl"), "--strict", "--jobs", "1") == 1
    assert main("audit", str(folder / "a.sse"), "-o", str(folder.parent / "o.jsonl"), "--strict") == 0


def test_what_cannot_be_read(llmstream, folder, capsys):
    output = folder.parent / "out.jsonl"
    (folder / "b.sse").unlink()
    (folder / "b.sse").symlink_to(folder / "b.sse")  # a loop: opening it fails, for root too
    assert main("audit", str(folder / "b.sse"), str(folder / "none"), str(folder / "a.sse"), "-o", str(output)) == 2
    first, second = records(output)
    assert first["fault"].startswith("not read to its end: ")
    assert second["complete"]
    assert f"{folder / 'none'}: there is no such file, or none in it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "there is nothing to read"),
        (["-"], "standard input is one stream: llmstream stats reads it"),
        ([".", "-o", "out.txt"], "out.txt: name it .jsonl or .parquet, or say --format"),
        ([".", "-o", "none/out.jsonl"], "none/out.jsonl: No such file or directory"),
        ([".", "--dialect", "klingon"], "klingon"),
        ([".", "--context", "colour=red"], "--context takes NAME=VALUE with a name of"),
        ([".", "--redact", "none_such:f"], "--redact none_such:f: ModuleNotFoundError"),
        ([".", "--redact", "json:none"], "--redact json:none: AttributeError"),
        ([".", "--redact", "json:__name__"], "--redact json:__name__: it cannot be called"),
        ([".", "--key", "none"], "none: No such file or directory"),
        ([".", "--seal", "00"], "--seal is for --verify"),
        ([".", "--verify", "--seal", "x"], "--seal takes the 64 hexadecimal digits of a seal: 'x'"),
        ([".", "--verify", "--seal", "abc"], "--seal takes the 64 hexadecimal digits of a seal: 'abc'"),
        ([".", "--verify", "--seal", "00" * 33], "--seal takes the 64 hexadecimal digits of a seal"),
        ([".", "--verify", "--seal", ""], "--seal takes the 64 hexadecimal digits of a seal: ''"),
        (["-", "--verify"], "standard input cannot be verified: --verify takes files"),
        ([".", "--redact", "foo"], "--redact takes MODULE:FUNCTION: 'foo' is not that"),
        ([".", "--redact", "foo:"], "--redact takes MODULE:FUNCTION: 'foo:' is not that"),
        ([".", "--redact", ":foo"], "--redact takes MODULE:FUNCTION: ':foo' is not that"),
        ([".", "--redact", "foo.py:f g"], "--redact takes MODULE:FUNCTION: 'foo.py:f g' is not that"),
        ([".", "--redact", ""], "--redact takes MODULE:FUNCTION: '' is not that"),
        ([".", "--jobs", "0"], "is no number from 1 to 61"),
        (["none", "--verify"], "none: No such file or directory"),
        ([], "the following arguments are required"),
    ],
)
def test_what_cannot_be_done(llmstream, tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main("audit", *arguments) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_output_that_fails_leaves_the_one_before(llmstream, folder, monkeypatch):
    output = folder.parent / "out.jsonl"
    output.write_text("before")
    outputs: Any = import_module("llmstream.cli.auditing.outputs")
    monkeypatch.setattr(outputs.Output, "end", lambda self: (_ for _ in ()).throw(OSError(28, "No space left")))
    assert main("audit", str(folder), "-o", str(output), "--jobs", "1") == 2
    assert output.read_text() == "before"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["in", "out.jsonl"]


# --------------------------------------------------------------------------------------------------
# Content


def test_only_digests(llmstream, folder):
    first = audited(folder, "--hash-only", "--no-wire-digest")[0]
    assert (first["text"], first["wire_sha256"]) == (None, None)
    assert first["text_sha256"] == sha256(llmstream.parse(BODY).text.encode()).hexdigest()


def test_context(llmstream, folder):
    first = audited(folder, "--context", "provider=a=b", "--context", "user_id=u")[0]
    assert (first["provider"], first["user_id"], first["session_id"]) == ("a=b", "u", None)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_redaction(llmstream, folder, monkeypatch, jobs):
    monkeypatch.chdir(folder.parent)
    Path("hooks.py").write_text(
        "from dataclasses import replace\n"
        "def redact(record):\n"
        "    if 'b.sse' in record.stream_id:\n"
        "        raise ValueError(record.text)\n"
        "    return replace(record, text='[...]')\n"
    )
    for number in range(600):  # more than one task
        (folder / f"n{number}").write_bytes(BODY)
    done = process("audit", "in", "-o", "out.jsonl", "--redact", "hooks:redact", "--jobs", jobs)
    assert done.returncode == 2
    assert b"in/b.sse: redaction failed: ValueError" in done.stderr
    found = records(Path("out.jsonl"))
    assert len(found) == 603
    assert {record["text"] for record in found} == {"[...]", None}
    assert process("audit", "--verify", "out.jsonl").returncode == 0


# --------------------------------------------------------------------------------------------------
# Processes


def test_any_number_of_processes_writes_the_same(llmstream, folder, monkeypatch):
    tasks: Any = import_module("llmstream.cli.auditing.pool")
    monkeypatch.setattr(tasks, "TASK_FILES", 7)
    for number in range(60):
        (folder / f"n{number:03}").write_bytes(BODY * (number % 4))
    outputs = [folder.parent / f"out{jobs}.jsonl" for jobs in (1, 2)]
    for jobs, output in enumerate(outputs, 1):
        assert main("audit", str(folder), "-o", str(output), "--jobs", str(jobs)) == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_is_held_is_handed_over(llmstream, folder, monkeypatch, jobs):
    """Files that grow when they are decompressed do not pile up as records."""
    work: Any = import_module("llmstream.cli.auditing.work")
    worker = work.Worker(work.Job("jsonl", "auto", True, True, None, 2**20, {}))
    monkeypatch.setattr(work, "MAX_HELD", len(llmstream.parse(BODY).text) + 1)
    paths = [str(folder / "a.sse")] * 5
    assert worker.work(paths).count == 2
    pool: Any = import_module("llmstream.cli.auditing.pool")
    monkeypatch.setattr(pool, "TASK_FILES", 3)
    results = list(pool.read_all(paths, worker._job, int(jobs)))
    assert sum(result.count for result in results) == 5
    assert len({line for result in results for line in result.lines}) == 1


def dies(record: Any) -> Any:
    os._exit(3)


def test_a_process_that_dies(llmstream, folder, monkeypatch, capsys):
    pool: Any = import_module("llmstream.cli.auditing.pool")
    monkeypatch.setattr(pool, "TASK_FILES", 1)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    output = folder.parent / "out.jsonl"
    assert main("audit", str(folder), "-o", str(output), "--jobs", "2", "--redact", "test_cli_audit:dies") == 2
    assert "a process that was reading has died" in capsys.readouterr().err
    assert not output.exists()


posix = pytest.mark.skipif(os.name != "posix", reason="needs signals of POSIX")

HOOKS = """
import time
def redact(record):
    if record.stream_id.endswith("last"):
        open("waiting", "w").close()
        time.sleep(600)
    return record
"""


def dies_while_it_tells(record: Any) -> Any:
    """What a kill at the worst moment leaves: the first half of a message."""
    connection: Any = import_module("multiprocessing.connection").Connection

    def half(self: Any, message: bytes, *_: Any) -> None:
        os.write(self.fileno(), bytes(message)[: len(message) // 2])
        os._exit(3)

    connection._send = half
    return record


@posix
def test_a_process_that_dies_while_it_tells(llmstream, folder, monkeypatch, capsys):
    pool: Any = import_module("llmstream.cli.auditing.pool")
    monkeypatch.setattr(pool, "TASK_FILES", 1)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    output = folder.parent / "out.jsonl"
    hook = "test_cli_audit:dies_while_it_tells"
    assert main("audit", str(folder), "-o", str(output), "--jobs", "2", "--redact", hook) == 2
    assert "a process that was reading has died" in capsys.readouterr().err
    assert sorted(path.name for path in folder.parent.iterdir()) == ["in"]


def running(folder: Path, jobs: str, *, waiting: bool) -> Any:
    """The command over streams, the last of which takes for ever: a group of processes of its own, under way."""
    (folder.parent / "hooks.py").write_text(HOOKS)
    large = EVENTS[0] + b"".join(delta(seq, "words " * 300_000) for seq in range(1, 11))
    for number in range(3):
        (folder / f"n{number}").write_bytes(large)  # a task each, with a result that no pipe holds
    (folder / "z-last").write_bytes(BODY)
    arguments = ("audit", "in", "-o", "out.jsonl", "--redact", "hooks:redact", "--jobs", jobs)
    command = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder.parent,
        stdout=-1,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heeded,  # noqa: PLW1509 (no other thread holds a lock)
    )
    sign = "waiting" if waiting else "out.jsonl.*.part"
    while not list(folder.parent.glob(sign)):
        assert command.poll() is None
        sleep(0.01)
    return command


def heeded() -> None:
    """In a process that begins: the signals mean what they do, also where these tests run with them ignored."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def ended(command: Any) -> tuple[int, bytes]:
    """Its exit status and words, once nobody holds its standard error: neither it nor a process that it started."""
    try:
        _, words = command.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
    return command.returncode, words


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("to_all", [False, True], ids=["to it", "to all"])
@pytest.mark.parametrize(("jobs", "waiting"), [("1", True), ("2", False)])
def test_a_signal_leaves_nothing_over(llmstream, folder, name, to_all, jobs, waiting):
    """A terminal and a supervisor signal all processes, ``kill`` one: at the start, and when results have come."""
    number = getattr(signal, name)
    command = running(folder, jobs, waiting=waiting)
    (os.killpg if to_all else os.kill)(command.pid, number)
    assert ended(command) == (128 + number, b"")
    assert not list(folder.parent.glob("out*"))


@posix
@pytest.mark.parametrize("waiting", [True, False])
def test_a_kill_leaves_no_process(llmstream, folder, waiting):
    command = running(folder, "2", waiting=waiting)
    command.kill()
    assert ended(command) == (-signal.SIGKILL, b"")


@posix
def test_a_signal_that_is_ignored(llmstream, folder):
    """As by ``nohup``."""
    line = f"trap '' HUP; $LLMSTREAM audit {folder} -o {folder}/out.jsonl --jobs 1 --redact hangs_up:redact"
    (folder.parent / "hangs_up.py").write_text(
        "import os, signal\ndef redact(record):\n    os.kill(os.getpid(), signal.SIGHUP)\n    return record\n"
    )
    assert shell(line, PYTHONPATH=os.pathsep.join([str(folder.parent), *sys.path])).returncode == 0


def test_handlers_are_as_before(llmstream, folder):
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    assert audited(folder)
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before


def test_what_a_killed_run_left_is_no_input(llmstream, folder, capsys):
    """By the name of this output; of others by what is in it, since a stream may be called like that."""
    assert main("audit", str(folder), "-o", str(folder / "other.jsonl"), "--jobs", "1") == 0
    line = (folder / "other.jsonl").read_bytes()
    (folder / "other.jsonl").rename(folder / "other.jsonl.77.part")
    (folder / "deeper" / "table.parquet.1.part").write_bytes(b"PAR1" + bytes(9))
    (folder / "out.jsonl.123.part").write_bytes(line[:40])
    (folder / "out.jsonl.124.part").write_bytes(BODY)
    for name in ("e.1.part", "e.part", "out.jsonl.x.part"):
        (folder / name).write_bytes(BODY)
    found = ["a.sse", "b.sse", "e.1.part", "e.part", "out.jsonl.x.part", "c.sse"]
    for given in (folder, folder / "**" / "*"):
        assert main("audit", str(given), "-o", str(folder / "out.jsonl"), "--jobs", "1") == 0
        names = [Path(record["stream_id"]).name for record in records(folder / "out.jsonl")]
        assert sorted(names) == sorted(found)


@pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")
@pytest.mark.parametrize("glob", [False, True])
def test_what_a_walk_leaves_out_is_told_once(llmstream, folder, capsys, glob):
    (folder / "c").symlink_to(folder / "nothing")
    (folder / "d").symlink_to(folder / "d")
    os.mkfifo(folder / "e")
    (folder / "f").symlink_to(folder / "a.sse")  # a file like any other
    count, names = 3, ["a.sse", "b.sse", "f"]
    if not glob:
        (folder / "deeper" / "up").symlink_to(folder)
        count, names = 4, [*names, "c.sse"]
    given = str(folder / "*") if glob else str(folder)
    output = folder.parent / "out.jsonl"
    assert main("audit", given, "-o", str(output), "--jobs", "1") == 0
    assert [Path(record["stream_id"]).name for record in records(output)] == names
    told = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    words = f"{count} left out (links to nothing or to a folder, or no files), the first of them {folder / 'c'}"
    assert told == [f"llmstream: {words}"]


# --------------------------------------------------------------------------------------------------
# Verification


def test_verify(llmstream, folder, capsys):
    output = folder.parent / "out.jsonl"
    found = audited(folder)
    capsys.readouterr()
    seal = found[-1]["seal"]
    assert main("audit", "--verify", str(output), "--seal", seal) == 0
    assert capsys.readouterr().out == f"{output}: 3 records as they were written, sealed: {seal}\n"
    assert main("audit", "--verify", str(output), "--seal", "00" * 32) == 1
    lines = output.read_bytes().splitlines(keepends=True)
    for changed in (
        [lines[0].replace(b'"output_tokens":4', b'"output_tokens":3'), *lines[1:]],
        lines[1:],
        lines[:-1],
        [lines[1], lines[0], lines[2]],
        [*lines[:2], lines[2][:-30]],
        [],
        [b"no records\n"],
    ):
        assert changed != lines
        output.write_bytes(b"".join(changed))
        assert main("audit", "--verify", str(output)) == 1
    assert main("audit", "--verify", str(folder / "none"), str(output)) == 2


def test_one_and_several(llmstream, folder, capsys):
    output = folder.parent / "out.jsonl"
    (folder / "tiny").write_bytes(b"x")
    for paths, words, verified in (
        (["tiny"], "1 record of 1 byte, ", "1 record as it was written, "),
        (["tiny", "tiny"], "2 records of 2 bytes, ", "2 records as they were written, "),
    ):
        assert main("audit", *(str(folder / path) for path in paths), "-o", str(output)) == 0
        assert capsys.readouterr().err.startswith(f"llmstream: {words}sealed: ")
        assert main("audit", "--verify", str(output)) == 0
        assert capsys.readouterr().out.startswith(f"{output}: {verified}sealed: ")


def test_verify_with_a_key(llmstream, folder):
    output, key = folder.parent / "out.jsonl", folder.parent / "key"
    key.write_bytes(b"secret\n")
    audited(folder, "--key", str(key))
    assert main("audit", "--verify", str(output)) == 1
    assert main("audit", "--verify", str(output), "--key", str(key)) == 0
    key.write_bytes(b"other")
    assert main("audit", "--verify", str(output), "--key", str(key)) == 1
    key.write_bytes(b"\n")
    assert main("audit", "--verify", str(output), "--key", str(key)) == 2


def test_verify_a_line_without_end(llmstream, folder, monkeypatch, capsys):
    monkeypatch.setattr(import_module("llmstream.cli.auditing.verifying"), "MAX_LINE", 1000)
    output = folder.parent / "out.jsonl"
    output.write_bytes(b"{" * 5000)
    assert main("audit", "--verify", str(output)) == 1
    assert "record 0 is no audit record" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------
# On a terminal


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")
def test_progress(llmstream, folder):
    for number in range(40):
        (folder / f"n{number}").write_bytes(BODY * 2000)
    seen = terminal("audit", str(folder), "-o", str(folder.parent / "out.jsonl"), "--jobs", "1")
    assert seen.status == 0
    assert "43 records" in seen.output


def test_help(llmstream):
    done = process("audit", "--help")
    assert done.returncode == 0
    assert b"--verify" in done.stdout
    assert isinstance(done, subprocess.CompletedProcess)
