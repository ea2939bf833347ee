"""The accelerated OpenAI SDK over connections that fail, and cancelled anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from sdk_connections import *  # noqa: F403
from sdk_streams import SDK, sse

pytest.importorskip("openai")


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
def fast(llmstream: Any) -> Iterator[Any]:
    module = import_module("llmstream.integrations.openai")
    known = module._acceleration._parts, set(module._acceleration._told)
    module._acceleration._parts = None
    module._acceleration._told.clear()
    yield module
    module.uninstall()
    module._acceleration._parts, module._acceleration._told = known


def event(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
    return sse({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


@pytest.fixture
def make_event() -> Any:
    return event
