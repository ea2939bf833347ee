"""The fuzz targets: each reads its corpus without a finding, and each oracle finds a fault that is planted for it.

They run in a process of their own, since both twins are loaded there in another way.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROVED = ("split", "naive", "text", "clean", "conformance", "round trip")  # those that take a second; the tool does all


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"fuzz.{name}")


def run(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    environment.pop("LLMSTREAM_IMPLEMENTATION", None)
    command = [sys.executable, "-m", "fuzz", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_every_target_reads_its_seeds(tmp_path):
    done = run("all", "--executions", "15", "--seconds", "120", "--findings", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) >= 36


def test_oracles_find_planted_faults():
    done = run("--prove", *PROVED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fault_is_planted_for_every_oracle(fuzz):
    assert fuzz("faults").texts_are_there() == []


def test_every_target_has_a_corpus(fuzz):
    seeds, targets = fuzz("seeds"), fuzz("targets")
    for name in targets.TARGETS:
        folders = [name, *seeds.FAMILIES.get(name, ())]
        assert any(path for folder in folders for path in seeds.CORPUS.glob(f"{folder}/*")), name


def test_every_folder_of_the_corpus_is_read(fuzz):
    folders = {path.name for path in fuzz("seeds").CORPUS.iterdir()}
    assert folders <= fuzz("targets").TARGETS.keys()


def test_every_dialect_has_a_target(fuzz, llmstream):
    families = importlib.import_module("llmstream.dialects").FAMILIES
    assert sorted(fuzz("targets").DIALECTS) == sorted(families)


def test_the_dictionary_is_read(fuzz):
    words = fuzz("mutation").dictionary()
    assert {b"data: ", b"\x00", b"\\ud83d", b"\xef\xbb\xbf", b'"', b"\\"} <= set(words)
    assert len(words) > 60


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        # The examples of the HTML standard, section 9.2.6.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", ([("message", "YHOO\n+2\n10", "")], "", None)),
        (
            b"data: first event\nid: 1\n\ndata:second event\nid\n\n",
            ([("message", "first event", "1"), ("message", "second event", "")], "", None),
        ),
        (b"data\n\ndata\ndata\n\ndata:", ([("message", "", ""), ("message", "\n", "")], "", None)),
        (b"data:test\n\ndata: test\n\n", ([("message", "test", ""), ("message", "test", "")], "", None)),
        (b": test stream\n\nevent: add\ndata: 1\nretry: 5\n\n", ([("add", "1", "")], "", 5)),
    ],
)
def test_the_naive_reader(fuzz, stream, expected):
    assert fuzz("whatwg").events(stream) == expected
