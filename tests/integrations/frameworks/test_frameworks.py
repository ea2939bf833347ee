"""Frameworks over the two SDKs are accelerated by ``install``, with no change to the code that uses them.

Each runs over a real local server, first as it is and then with the acceleration: what it gives is the same, and the
SDK itself has built a handful of objects.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from local_server import serving
from sdk_streams import alike, sse

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs; a warning of ours is looked for

WORDS = [f" word{number}" for number in range(40)]
LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}  # it would fetch a table of prices
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}


def chunk(delta: Any, finish_reason: Any = None, **members: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return sse({**head, "choices": [choice], **members})


def openai_stream(*events: bytes, finish_reason: str = "stop") -> list[bytes]:
    usage = {"prompt_tokens": 3, "completion_tokens": 40, "total_tokens": 43}
    first = chunk({"role": "assistant", "content": "" if finish_reason == "stop" else None})
    return [first, *events, chunk({}, finish_reason), chunk({}, choices=[], usage=usage), b"data: [DONE]\n\n"]


def anthropic_stream() -> list[bytes]:
    def event(type: str, **members: Any) -> bytes:
        return sse({"type": type, **members}, type)

    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": usage}
    deltas = [event("content_block_delta", index=0, delta={"type": "text_delta", "text": word}) for word in WORDS]
    return [
        event("message_start", message=message | {"stop_reason": None, "stop_sequence": None}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *deltas,
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 40}),
        event("message_stop"),
    ]


TEXT = openai_stream(*[chunk({"content": word}) for word in WORDS])
TOOL = openai_stream(
    chunk({"tool_calls": [CALL]}),
    *[chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in ['{"city":"', *WORDS, '"}']],
    finish_reason="tool_calls",
)


def langchain_openai(address: str) -> list[Any]:
    model = pytest.importorskip("langchain_openai").ChatOpenAI(model="m", api_key="none", base_url=address)
    return [dict(one) | {"id": None} for one in model.stream("?")]


def langchain_openai_async(address: str) -> list[Any]:
    model = pytest.importorskip("langchain_openai").ChatOpenAI(model="m", api_key="none", base_url=address)

    async def read() -> list[Any]:
        return [dict(one) | {"id": None} async for one in model.astream("?")]

    return asyncio.run(read())


def langchain_anthropic(address: str) -> list[Any]:
    model = pytest.importorskip("langchain_anthropic").ChatAnthropic(model="m", api_key="none", base_url=address)
    return [dict(one) | {"id": None} for one in model.stream("?")]


def llama_index(address: str) -> list[Any]:
    model = pytest.importorskip("llama_index.llms.openai").OpenAI(model="gpt-4o", api_key="none", api_base=address)
    message = import_module("llama_index.core.llms").ChatMessage(role="user", content="?")
    return [one.model_dump(exclude={"raw"}) | {"raw": one.raw} for one in model.stream_chat([message])]


def pydantic_ai(address: str) -> list[Any]:
    pytest.importorskip("pydantic_ai")
    direct = import_module("pydantic_ai.direct")
    messages = import_module("pydantic_ai.messages")
    provider = import_module("pydantic_ai.providers.openai").OpenAIProvider(base_url=address, api_key="none")
    model = import_module("pydantic_ai.models.openai").OpenAIChatModel("m", provider=provider)

    async def read() -> list[Any]:
        request = messages.ModelRequest.user_text_prompt("?")
        async with direct.model_request_stream(model, [request]) as stream:
            return [one async for one in stream]

    return [repr(one) for one in asyncio.run(read())]


def litellm_(address: str) -> list[Any]:
    litellm = pytest.importorskip("litellm")
    messages = [{"role": "user", "content": "?"}]
    stream = litellm.completion(model="openai/m", messages=messages, stream=True, api_base=address, api_key="none")
    return [one.model_dump(exclude={"id", "created"}) for one in stream]


RUNS: dict[str, tuple[str, Callable[[str], list[Any]], list[bytes]]] = {
    "langchain-openai": ("openai", langchain_openai, TEXT),
    "langchain-openai, tool call": ("openai", langchain_openai, TOOL),
    "langchain-openai, async": ("openai", langchain_openai_async, TEXT),
    "langchain-anthropic": ("anthropic", langchain_anthropic, anthropic_stream()),
    "llama-index": ("openai", llama_index, TEXT),
    "llama-index, tool call": ("openai", llama_index, TOOL),
    "pydantic-ai": ("openai", pydantic_ai, TEXT),
    "pydantic-ai, tool call": ("openai", pydantic_ai, TOOL),
    "litellm": ("openai", litellm_, TEXT),
    "litellm, tool call": ("openai", litellm_, TOOL),
}


@pytest.fixture
def installed(llmstream: Any) -> Iterator[Callable[[str], None]]:
    used: list[Any] = []

    def install(sdk: str) -> None:
        used.append(import_module(f"llmstream.integrations.{sdk}"))
        used[-1].install()
        base = import_module(f"{sdk}._base_client").BaseClient
        assert base._make_sse_decoder.__module__.startswith("llmstream.")

    yield install
    for module in used:
        module.uninstall()


@pytest.mark.parametrize("name", RUNS)
def test_a_framework_gives_the_same(name: str, installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in LITELLM.items():
        monkeypatch.setitem(os.environ, variable, value)
    sdk, run, stream = RUNS[name]
    pytest.importorskip(sdk)
    base = import_module(f"{sdk}._base_client")
    own = base.construct_type
    built: list[int] = []
    monkeypatch.setattr(base, "construct_type", lambda **keywords: built.append(1) or own(**keywords))
    with serving(stream) as address:
        expected = run(address)
        assert len(built) >= len(WORDS)
        built.clear()
        installed(sdk)
        built.clear()
        found = run(address)
    assert 0 < len(built) < 12
    assert len(found) >= len(WORDS)
    assert len(found) == len(expected)
    assert all(map(alike, expected, found))
