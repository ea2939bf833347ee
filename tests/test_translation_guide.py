"""The guide's examples do what the guide says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import producing

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "serve-todays-clients.md"


def test_the_examples(llmstream, capsys):
    first, second, third, fourth = re.findall(
        r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    steps = [
        ("StreamStart", {"model": "m", "created": 1}),
        ("ContentDelta", {"text": "18 °C"}),
        ("ContentStop", {"stop_reason": "end_turn"}),
        ("StreamEnd", {}),
    ]
    sent: list[bytes] = []
    names = {"chunks": producing.written(llmstream, steps), "send": sent.append}
    exec(first, names)
    assert capsys.readouterr().out == "logprobs - the draft has no place for it\n"
    assert names["request"].parameters.max_tokens == 100
    exec(second, names)
    found = llmstream.parse(b"".join(sent), dialect="openai")
    assert (found.text, found.complete) == ("18 °C", True)
    exec(third, names)
    found = llmstream.parse(names["output"], dialect="anthropic")
    assert (found.text, found.complete, found.model) == ("18 °C", True, "example-model")
    exec(fourth, names)
    assert names["url"] == "/v1beta/models/example-model:streamGenerateContent?alt=sse"
    assert json.loads(names["content"])["generationConfig"] == {"maxOutputTokens": 100}
