"""The Anthropic SDK, how it is accelerated, and an event of its stream."""

from __future__ import annotations

from typing import Any

import pytest

from sdk_streams import SDK, fast, sse, words

__all__ = ["fast", "make_event", "sdk", "words"]


@pytest.fixture
def sdk() -> SDK:
    keywords: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    return SDK("anthropic", "Anthropic", lambda client: client.messages.create(**keywords, stream=True))


@pytest.fixture
def make_event() -> Any:
    def event(text: str) -> bytes:
        payload = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        return sse(payload, "content_block_delta")

    return event
