"""llmstream cat."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from commands import COMMAND, feed, main, terminal
from streams import BODY, CUT, EVENTS, FAILED, GAP, KINDS, TEXTS, events

TEXT = "".join(TEXTS)


def chat(choice: dict[str, Any]) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


CHOICES: list[dict[str, Any]] = [
    {"index": 0, "delta": {"role": "assistant", "reasoning_content": "Hm"}},
    {"index": 1, "delta": {"content": "another answer"}},
    {"index": 0, "delta": {"reasoning_content": "m."}},
    {"index": 0, "delta": {"content": "42"}},
    {"index": 0, "delta": {"content": "!"}},
    {"index": 0, "delta": {}, "finish_reason": "stop"},
    {"index": 1, "delta": {}, "finish_reason": "stop"},
]
THINKS = b"".join(map(chat, CHOICES)) + b"data: [DONE]\n\n"


def test_text_and_nothing_else(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    feed(monkeypatch, BODY)
    assert main("cat") == 0
    assert capsys.readouterr() == (TEXT, "")


def test_text_before_a_fault_is_printed(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    for body in (CUT, FAILED):
        for options in ((), ("--strict",), ("--reasoning",)):
            feed(monkeypatch, body)
            assert main("cat", *options) == 1
            assert capsys.readouterr().out == TEXT
    feed(monkeypatch, GAP)
    assert main("cat") == 1
    assert capsys.readouterr().out == TEXT.replace(TEXTS[1], "")
    feed(monkeypatch, GAP)
    assert main("cat", "--strict") == 1
    assert capsys.readouterr().out == TEXTS[0]


@pytest.mark.parametrize("dialect", ["auto", "openai"])
def test_the_primary_answer_with_and_without_reasoning(
    llmstream: Any, capsys: Any, monkeypatch: Any, dialect: str
) -> None:
    feed(monkeypatch, THINKS)
    assert main("cat", "--dialect", dialect) == 0
    assert capsys.readouterr().out == "42!"
    feed(monkeypatch, THINKS)
    assert main("cat", "--dialect", dialect, "--reasoning") == 0
    assert capsys.readouterr().out == "Hmm.\n\n42!"


def test_json_is_one_object_an_event(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    body = BODY.replace(b'"stop_reason":"end_turn"', b'"stop_reason":"end_turn","extensions":{"a:b":[1]}')
    unknown = b'event: x.y\ndata: {"v":"1.0","seq":7,"type":"x.y"}\n\n'
    body = body.replace(b"event: stream.end", unknown + b"event: stream.end").replace(
        b'"seq":7,"type":"stream.end"', b'"seq":8,"type":"stream.end"'
    )
    feed(monkeypatch, body)
    assert main("cat", "--format", "json") == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [item["type"] for item in shown] == [*KINDS[:-1], "x.y", "stream.end"]
    assert [item["seq"] for item in shown] == list(range(9))
    assert shown[0] == {"type": "stream.start", "seq": 0, "model": "writer-1", "created": 1749292800}
    assert shown[2] == {"type": "content.delta", "seq": 2, "text": " wörld", "index": 0, "role": "assistant"}
    assert shown[5]["extensions"] == {"a:b": [1]}
    assert shown[6] == {"type": "usage", "seq": 6, "input_tokens": 3, "output_tokens": 4}


def test_json_is_the_same_as_the_api(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    feed(monkeypatch, THINKS)
    assert main("cat", "--format", "json") == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = list(llmstream.iter_events(THINKS, dialect="openai"))
    assert [item["type"] for item in shown] == [event.type for event in found]
    assert "".join(item.get("reasoning", "") for item in shown) == "Hmm."


@pytest.mark.parametrize("options", [(), ("--format", "json"), ("--reasoning",)])
def test_it_prints_while_it_reads(llmstream: Any, options: tuple[str, ...]) -> None:
    words = [b'"Hello"' if "json" in options else b"Hello", "東京".encode()]
    with subprocess.Popen([*COMMAND, "cat", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"".join(EVENTS[:2]))
        child.stdin.flush()
        seen = b""
        while words[0] not in seen:
            seen += os.read(child.stdout.fileno(), 4096)
        child.stdin.write(b"".join(EVENTS[2:4]))
        child.stdin.flush()
        while words[1] not in seen:
            seen += os.read(child.stdout.fileno(), 4096)
        child.stdin.write(b"".join(EVENTS[4:]))
        child.stdin.close()
        assert child.wait(30) == 0


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_on_a_terminal(llmstream: Any, tmp_path: Path) -> None:
    path = tmp_path / "stream.sse"
    path.write_bytes(b"".join(events("two\n", "lines", "\x1b[2J\x9b2J\x07")))
    shown = terminal("cat", str(path))
    assert shown.status == 0
    assert shown.output == "two\nlines\u241b[2J\ufffd2J\u2407\n"

    path.write_bytes(THINKS)
    assert terminal("cat", "--reasoning", str(path), NO_COLOR="1").output == "Hmm.\n\n42!\n"
    assert "\x1b[2mHm\x1b[22m" in terminal("cat", "--reasoning", str(path)).output
    path.write_bytes(b"".join(events("one line\n")))
    assert terminal("cat", str(path)).output == "one line\n"


def test_a_pipe_gets_the_text_as_it_is(llmstream: Any, capsys: Any, monkeypatch: Any) -> None:
    feed(monkeypatch, b"".join(events("\x1b[2J", "\r\n")))
    assert main("cat") == 0
    assert capsys.readouterr().out == "\x1b[2J\r\n"
