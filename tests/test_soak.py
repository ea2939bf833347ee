"""The soak in its short form, and that it fails where a result is wrong or memory grows."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of the tool."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"tools.soak.{name}")


def test_some_seconds(llmstream: Any) -> None:
    """Of the active twin, in a process of its own, whose memory is its own too."""
    command = [sys.executable, "-m", "tools.soak", "--minutes", "0.05", "--concurrency", "100", "--seed", "7"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    head, *_, last = done.stdout.splitlines()
    assert llmstream.implementation in head
    marks = [line.split() for line in done.stdout.splitlines() if "%" in line[:6]]
    assert [mark[0] for mark in marks] == ["10%", "50%", "100%"]
    assert all(int(mark[1].replace(",", "")) >= 100 for mark in marks)  # streams
    assert {mark[-1] for mark in marks} == {"0"}  # mismatches
    assert last == "results equal to what was written, memory flat"


def read(soak: Any, package: Any, way: Any, stream: Any, seed: int = 1) -> str:
    """What the way of reading finds wrong with a stream."""
    context = soak("context").Context(package, seed)

    async def reading() -> None:
        if way not in soak("asynchronous").READERS:
            for _ in way(context, stream):
                pass
            return
        async with soak("asynchronous").Server(context, [stream]) as server:
            await way(context, stream, server)

    try:
        asyncio.run(reading())
    except soak("context").MismatchError as error:
        return str(error)
    return ""


def streams_of(soak: Any, count: int) -> list[Any]:
    source = random.Random(3)
    return [soak("streams").drawn(source) for _ in range(count)]


OWN_ORACLE = ("damage", "requests", "source", "consumer", "dialect", "encoder", "encoded_again", "cancelled")
"""Those that do not compare with the text of the stream."""


def test_each_way_of_reading_finds_a_text_that_was_not_written(llmstream: Any, soak: Any) -> None:
    ways = [*soak("readers").READERS, *soak("throwing").READERS, *soak("asynchronous").READERS]
    ways = [way for way in dict.fromkeys(ways) if way.__name__ not in OWN_ORACLE]
    streams = [stream for stream in streams_of(soak, 60) if stream.is_draft and stream.is_whole][:3]
    assert len(ways) > 12
    for stream in streams:
        wrong = dataclasses.replace(
            stream, text=stream.text + "x", clean=False, decoded=(stream.decoded[0][1:], "", None)
        )
        for way in ways:
            if way.__name__ != "encoded":  # which writes whatever it is given
                assert read(soak, llmstream, way, stream) == ""
                # Some bytes are damaged now and then, and then it is those that are compared.
                assert any(read(soak, llmstream, way, wrong, seed) for seed in range(8)), way.__name__


@pytest.mark.parametrize("member", ["reasoning", "calls", "usage", "complete", "failed"])
def test_each_member_of_a_result_is_compared(llmstream: Any, soak: Any, member: str) -> None:
    wrong = {"reasoning": "x", "calls": [("c", "f", "{}")] * 9, "usage": (0, 0), "complete": False, "failed": True}
    stream = next(stream for stream in streams_of(soak, 60) if stream.name == "openai, whole" and stream.text)
    events = soak("readers").events
    assert read(soak, llmstream, events, stream) == ""
    assert read(soak, llmstream, events, dataclasses.replace(stream, **{member: wrong[member]})) != ""


@pytest.mark.skipif(not hasattr(sys, "getallocatedblocks"), reason="no count of blocks here")
def test_growth_is_seen(llmstream: Any, soak: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that keeps some objects of each stream."""
    runner, readers, kept = soak("runner"), soak("readers"), []

    def keeping(context: Any, stream: Any) -> Any:
        kept.append([object() for _ in range(2000)])
        yield

    monkeypatch.setattr(runner, "WARM", 0)
    monkeypatch.setattr(readers, "READERS", (keeping,))
    found = runner.Soak(llmstream, concurrency=20, seed=1, pool=20)
    asyncio.run(found.run(0.5))
    assert any(words.startswith("blocks grew") for words in found.faults())


def test_what_is_allowed_is_allowed(soak: Any) -> None:
    memory = soak("memory")
    before = memory.Rest(*[1000] * 5)
    most = memory.Rest(*[1000 + allowed for allowed in memory.ALLOWED])
    assert memory.growth(before, most) == []
    for name in memory.Rest._fields:
        (words,) = memory.growth(before, most._replace(**{name: getattr(most, name) + 1}))
        assert words.startswith(f"{name} grew")


def test_an_exception_that_nobody_expects_is_a_mismatch(
    llmstream: Any, soak: Any, monkeypatch: Any, capsys: Any
) -> None:
    runner, readers = soak("runner"), soak("readers")

    def failing(context: Any, stream: Any) -> Any:
        raise RuntimeError
        yield

    monkeypatch.setattr(runner, "WARM", 0)
    monkeypatch.setattr(readers, "READERS", (failing,))
    found = runner.Soak(llmstream, concurrency=5, seed=1, pool=20)
    asyncio.run(found.run(0.3))
    assert found.mismatch_count > 0
    assert any("mismatches" in words for words in found.faults())
    assert "RuntimeError" in capsys.readouterr().out
