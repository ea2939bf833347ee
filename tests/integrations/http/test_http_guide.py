"""The guide's examples do what the guide says."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from http_libraries import HTTPX, needed, opened
from sse_server import Server

from streams import EVENTS, KINDS, TEXTS

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "read-over-http.md"


@pytest.mark.parametrize("cut", [{}, {"cut": 1}], ids=["ends", "cut"])  # an early end of the body, of the connection
@pytest.mark.parametrize("name", HTTPX)
def test_the_examples(
    llmstream: Any,
    server: Server,
    name: str,
    cut: dict[str, int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed(name)
    found = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    reading, reconnecting, events, observing, translating = (re.sub(r"\bhttpx\b", name, code) for code in found)
    server.answers |= {
        "events": EVENTS,
        "first": [b"retry: 20\nid: 1\n" + EVENTS[0], EVENTS[1]],
        "last": [b"id: 9\nevent: word\ndata: 1\n\n"],
    }
    names: dict[str, Any] = {"url": server.url()}
    exec(reading, names)
    assert capsys.readouterr().out.split() == KINDS

    shown: list[Any] = []
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    with opened(name) as get:
        urls = [server.url(what="first", **cut), server.url()]
        names |= {"get": lambda url, headers=None: get(urls.pop(0), headers), "show": shown.append}
        exec(reconnecting, names)
    assert waited == [0.02]
    assert server.requests[-1][2]["last-event-id"] == "1"
    assert [event.type for event in shown] == KINDS[:2] + KINDS
    monkeypatch.undo()

    exec(events, {"url": server.url(what="last")})
    assert capsys.readouterr().out.splitlines() == ["word 1 9 None", "9 None"]

    exec(observing, names)
    assert capsys.readouterr().out.split() == ["writer-1", str(len(TEXTS)), "True"]

    exec(translating, names)
    server.reply(200, {"Content-Type": "text/event-stream"}, *EVENTS)
    body = {"model": "writer-1", "messages": [{"role": "user", "content": "Hi"}]}
    with names["client"] as client:
        answer = client.post("http://vendor.invalid/v1/chat/completions", content=json.dumps(body)).json()
    assert answer["choices"][0]["message"]["content"] == "".join(TEXTS)
