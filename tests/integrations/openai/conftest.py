"""The OpenAI SDK, how it is accelerated, and an event of its stream."""

from __future__ import annotations

from typing import Any

import pytest

from sdk_streams import SDK, fast, sse, words

__all__ = ["fast", "make_event", "sdk", "words"]


@pytest.fixture
def sdk() -> SDK:
    return SDK(
        "openai",
        "OpenAI",
        lambda client: client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "?"}], stream=True
        ),
    )


@pytest.fixture
def make_event() -> Any:
    def event(text: str) -> bytes:
        choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
        return sse({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})

    return event
