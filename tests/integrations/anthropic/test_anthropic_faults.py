"""The accelerated Anthropic SDK over connections that fail, and cancelled anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from sdk_connections import *  # noqa: F403
from sdk_streams import SDK, sse

pytest.importorskip("anthropic")


@pytest.fixture
def sdk() -> SDK:
    keywords: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    return SDK("anthropic", "Anthropic", lambda client: client.messages.create(**keywords, stream=True))


@pytest.fixture
def fast(llmstream: Any) -> Iterator[Any]:
    module = import_module("llmstream.integrations.anthropic")
    known = module._acceleration._parts, set(module._acceleration._told)
    module._acceleration._parts = None
    module._acceleration._told.clear()
    yield module
    module.uninstall()
    module._acceleration._parts, module._acceleration._told = known


def event(text: str) -> bytes:
    payload = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return sse(payload, "content_block_delta")


@pytest.fixture
def make_event() -> Any:
    return event
