"""What type checkers see of the translations."""

from __future__ import annotations

from typing import Any, assert_type

import llmstream


def requests(request: llmstream.Request, body: dict[str, Any]) -> None:
    there = llmstream.to_vendor(request, "openai")
    assert_type(there.value, dict[str, Any])
    assert_type(there.lost, list[llmstream.Loss])
    assert_type(there.to_json(), bytes)
    assert_type(there.model, str)
    back = llmstream.from_vendor(body, "gemini", model="m", stream=True)
    assert_type(back.value, llmstream.Request)
    for loss in back.lost:
        assert_type(loss.path, str)
        assert_type(loss.reason, str)
    llmstream.to_vendor(request, "mistral")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def streams(event: llmstream.Event, chunk: bytes, source: list[bytes]) -> None:
    writer = llmstream.writer_for("anthropic", model="m", alternatives=True)
    assert_type(writer, llmstream.VendorWriter)
    assert_type(writer.write(event), bytes)
    assert_type(writer.close(), bytes)
    assert_type(writer.complete, bool)
    translator = llmstream.StreamTranslator("openai", "auto", strict=True, max_event_size=5)
    assert_type(translator.feed(chunk), bytes)
    assert_type(translator.parser, llmstream.Parser)
    with llmstream.translate_stream(source, to="gemini", dialect=llmstream.Dialect, include_usage=False) as stream:
        for piece in stream:
            assert_type(piece, bytes)
