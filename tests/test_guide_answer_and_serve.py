"""The guide's examples do what the guide says (sections 4.8 and 5.5 of the draft)."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "answer-and-serve.md"


def test_the_examples(llmstream):
    first, second = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names = {}
    exec(first, names)
    assert llmstream.parse(names["answer"], strict=True).text == "The weather in Vienna is 24C and sunny."
    exec(second, names)
    assert names["refused"] == []
    assert [message.role for message in names["following"].messages] == ["user", "assistant", "tool"]
    assert names["following"].messages[2].content == "Vienna: 24C, sunny"
    names["following"].raise_for_violations(strict=True)
