"""The guide's example does what the guide says."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "write-a-provider.md"


def test_the_example(llmstream):
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))
    names = {}
    exec(code, names)

    class Faulty(llmstream.Dialect):
        name = "faulty"

        def translate(self, payload, event):
            return payload["nothing"]

    assert llmstream.parse(b"data: {}\n\n", dialect=Faulty).violations[0].requirement == "L-PAYLOAD"
    with pytest.raises(KeyError):  # of the author's, seen where translate is called without a parser
        Faulty().translate({}, None)
    result = names["result"]
    assert (result.text, result.model, result.stop_reasons) == ("Hello", "m-1", {0: "end_turn"})
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3, 1)
    shapes = names["body"].replace(b"\n\n", b"\n\n" + b'data: {"output":[{"text":"a"}]}\n\n' * 50, 1)
    parser = llmstream.Parser(names["Example"])
    assert parser.feed_text(shapes) == "Hello" + "a" * 50
    assert parser.shape_hits >= 45


def test_the_names_of_providers_are_listed(llmstream):
    text = (GUIDE.parents[1] / "providers.md").read_text(encoding="utf-8")
    [paragraph] = [each for each in text.split("\n\n") if each.startswith("Providers that stream a format of others")]
    dialects = import_module("llmstream.dialects")
    names = {name for variants in dialects.VARIANTS.values() for name in variants}
    assert set(re.findall(r"`([a-z-]+)`", paragraph)) == names | dialects.VARIANTS.keys()
