"""The examples of the guide on serving, on a real server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from asgi_server import served

from standard import kinds

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "serve-a-stream.md"


def test_the_examples(llmstream):
    first, second = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

    async def generate():
        for words in ("Hello", " there"):
            yield words

    names = {"generate": generate}
    exec(first, names)
    with served(names["app"]) as port:
        response = httpx.post(f"http://127.0.0.1:{port}/v1/stream")
    assert response.headers["content-type"] == "text/event-stream"
    assert llmstream.parse(response.content, strict=True).text == "Hello there"

    names = {}
    exec(second, names)
    with served(names["application"]) as port:
        body = httpx.get(f"http://127.0.0.1:{port}/").content
    assert llmstream.parse(body, strict=True).text == "Hello"
    assert kinds(body)[0] == "stream.start"
