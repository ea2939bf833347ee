"""The guide's examples do what the guide says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from vendors import anthropic, openai

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "observe-a-stream.md"


def test_the_examples(llmstream, capsys):
    text = GUIDE.read_text(encoding="utf-8")
    first, second = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    chunks, sent = openai(["a", "b"]), []
    names = {"chunks": chunks, "send": sent.append}
    exec(first, names)
    assert all(one is other for one, other in zip(sent, chunks, strict=True))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["openai gpt-x 3 5 {0: 'end_turn'}", "True None 0"]
    assert names["seen"].text == ""

    records = []
    names["record"] = records.append
    exec(second, names)

    async def upstream():
        for chunk in anthropic(["a", "b"]):
            yield chunk

    async def leave():
        passing = names["passed_on"](upstream())
        pieces = [await anext(passing) for _ in range(5)]
        await passing.aclose()
        return pieces, [piece async for piece in names["passed_on"](upstream())]

    left, whole = asyncio.run(leave())
    assert (left, whole) == (anthropic(["a", "b"])[:5], anthropic(["a", "b"]))
    assert [(record.text, record.complete) for record in records] == [("ab", False), ("ab", True)]


def test_its_numbers(llmstream):
    from importlib import import_module

    module, text = import_module("llmstream.observer"), GUIDE.read_text(encoding="utf-8")
    assert f"cut at {module.MAX_WORD} characters" in text
    assert f"the first {module.MAX_TOOL_CALLS:,}" in text
    assert f"{module.BOUNDS[0]} to\n{module.BOUNDS[-1]} seconds" in text
