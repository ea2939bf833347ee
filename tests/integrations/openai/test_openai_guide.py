"""The examples of the guide on speeding up an SDK do what the guide says."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from local_server import serving
from sdk_streams import sse

pytest.importorskip("openai")

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "speed-up-an-sdk.md"


def test_the_examples(llmstream: Any, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    words = ["The", " weather", " is", " fine", "."]
    chunks = [sse({"id": "c", "choices": [{"index": 0, "delta": {"content": word}}]}) for word in words]
    base = import_module("openai._base_client").BaseClient
    before = base._make_sse_decoder
    with serving([*chunks, b"data: [DONE]\n\n"]) as address:
        names: dict[str, Any] = {"address": address}
        exec(first, names)
        assert capsys.readouterr().out == "The weather is fine."
        names["client"].close()
    one, two = second.split("...\n")
    exec(one, names)
    assert base._make_sse_decoder is not before
    exec(two, names)
    assert base._make_sse_decoder is before
