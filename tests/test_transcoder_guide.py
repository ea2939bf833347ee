"""The guide's examples do what the guide says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from standard import kinds, read
from vendors import anthropic, openai

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "translate-a-stream.md"


def test_the_examples(llmstream):
    first, second = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names = {"chunks": openai(["a", "b"])}
    exec(first, names)
    assert read(names["output"])[0]["request_id"] == "req-1"
    exec(second, names)

    async def pieces():
        return [piece async for piece in names["answer"](anthropic(["a", "b"]))]

    found = [kinds_of(piece) for piece in asyncio.run(pieces())]
    assert found == [
        ["stream.start", "usage"],
        ["content.delta"],
        ["content.delta"],
        ["content.stop", "usage"],
        ["stream.end"],
    ]


def kinds_of(piece):
    return re.findall(r"^event: (.*)$", piece.decode(), re.MULTILINE)


def test_what_the_table_says_of_keys(llmstream):
    """The keys that the guide names are those that are written somewhere in the package."""
    text = GUIDE.read_text(encoding="utf-8")
    package = Path(llmstream.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    for key in set(re.findall(r"<dialect>:(\w+)", text)) | {"llmstream:index"}:
        word = key.partition(":")[2] or key
        assert f":{word}" in source or f'"{word}"' in source, key
    assert kinds(b"") == []
