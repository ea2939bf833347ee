"""The vendors' own SDKs, unchanged but for their HTTP client, at a standard endpoint over a real socket."""

from __future__ import annotations

import asyncio
import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from http_libraries import needed
from sse_server import Server

from drafts import delta, end, error, start, stop, tool_call, usage
from streams import EVENTS, TEXTS

STREAM = {"Content-Type": "text/event-stream"}
WHOLE = "".join(TEXTS)
ASKS: dict[str, Any] = {"model": "writer-1", "messages": [{"role": "user", "content": "Hi"}]}
CALLS = [
    start(model="writer-1"),
    delta(1, "Let me see."),
    tool_call(2, id="c-1", name="weather", arguments='{"city": "Wien"}'),
    stop(3, stop_reason="tool_use"),
    usage(4, 3, 4),
    end(5),
]
FAILED = [*EVENTS[:3], error(3, code="overloaded", message="busy"), end(4)]
LIMITED = (429, {"Content-Type": "application/json", "Retry-After": "0"}, b'{"error": {"message": "slow down"}}')
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # within the SDKs


def http_of(sdk: str, first: int) -> str:
    """The HTTP library that the installed version of an SDK is built on."""
    from importlib.metadata import version

    return "httpx2" if int(version(sdk).partition(".")[0]) >= first else "httpx"


class Http:
    """An HTTP library, and our transports for it."""

    def __init__(self, name: str, server: Server, vendor: str) -> None:
        self._library = needed(name)
        self._ours = importlib.import_module(f"llmstream.integrations.{name}")
        self._url = server.url("/llm")
        self._vendor = vendor

    def client(self) -> Any:
        transport = self._ours.TranslatingTransport(self._library.HTTPTransport(verify=False), self._url, self._vendor)
        return self._library.Client(transport=transport)

    def async_client(self) -> Any:
        transport = self._ours.AsyncTranslatingTransport(
            self._library.AsyncHTTPTransport(verify=False), self._url, self._vendor
        )
        return self._library.AsyncClient(transport=transport)


@pytest.fixture
def openai(llmstream: Any, server: Server) -> Any:
    sdk = needed("openai")
    http = Http(http_of("openai", 3), server, "openai")
    given: dict[str, Any] = {"api_key": "k", "base_url": "http://vendor.invalid/v1", "max_retries": 0}
    return SimpleNamespace(
        sdk=sdk,
        client=lambda: sdk.OpenAI(http_client=http.client(), **given),
        async_client=lambda: sdk.AsyncOpenAI(http_client=http.async_client(), **given),
    )


@pytest.fixture
def anthropic(llmstream: Any, server: Server) -> Any:
    sdk = needed("anthropic")
    http = Http(http_of("anthropic", 1), server, "anthropic")
    given: dict[str, Any] = {"api_key": "k", "base_url": "http://vendor.invalid", "max_retries": 0}
    return SimpleNamespace(
        sdk=sdk,
        client=lambda: sdk.Anthropic(http_client=http.client(), **given),
        async_client=lambda: sdk.AsyncAnthropic(http_client=http.async_client(), **given),
    )


@pytest.fixture
def genai(llmstream: Any, server: Server) -> Any:
    sdk = needed("google.genai")
    http = Http(http_of("google-genai", 3), server, "gemini")

    def client(**given: Any) -> Any:
        options = sdk.types.HttpOptions(base_url="http://vendor.invalid", **given)
        return sdk.Client(api_key="k", http_options=options)

    return SimpleNamespace(sdk=sdk, http=http, client=client)


def test_openai(openai: Any, server: Server) -> None:
    with openai.client() as client:
        server.reply(200, STREAM, *EVENTS)
        with client.chat.completions.create(**ASKS, stream=True, stream_options={"include_usage": True}) as chunks:
            got = list(chunks)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in got if chunk.choices) == WHOLE
        assert (got[0].model, got[-1].usage.total_tokens) == ("writer-1", 7)
        assert got[-2].choices[0].finish_reason == "stop"
        server.reply(200, STREAM, *EVENTS)
        answer = client.chat.completions.create(**ASKS)
        assert (answer.choices[0].message.content, answer.usage.prompt_tokens) == (WHOLE, 3)
        server.reply(200, STREAM, *CALLS)
        (call,) = client.chat.completions.create(**ASKS).choices[0].message.tool_calls
        assert (call.id, call.function.name, call.function.arguments) == ("c-1", "weather", '{"city": "Wien"}')
        server.reply(200, STREAM, *FAILED)
        with pytest.raises(openai.sdk.APIError, match="busy"):
            list(client.chat.completions.create(**ASKS, stream=True))
        server.reply(*LIMITED)
        with pytest.raises(openai.sdk.RateLimitError, match="slow down"):
            client.chat.completions.create(**ASKS, stream=True)
        with pytest.raises(openai.sdk.NotFoundError, match="translation"):
            client.models.list()
    assert server.requests[0][2]["authorization"] == "Bearer k"


def test_openai_asynchronous(openai: Any, server: Server) -> None:
    async def run() -> None:
        async with openai.async_client() as client:
            server.reply(200, STREAM, *EVENTS)
            text = ""
            async for chunk in await client.chat.completions.create(**ASKS, stream=True):
                text += chunk.choices[0].delta.content or ""
            assert text == WHOLE
            server.reply(200, STREAM, *EVENTS)
            answer = await client.chat.completions.create(**ASKS)
            assert answer.choices[0].message.content == WHOLE
            server.reply(*LIMITED)
            with pytest.raises(openai.sdk.RateLimitError):
                await client.chat.completions.create(**ASKS)

    asyncio.run(run())


def test_anthropic(anthropic: Any, server: Server) -> None:
    asks = {**ASKS, "max_tokens": 100}
    with anthropic.client() as client:
        server.reply(200, STREAM, *EVENTS)
        with client.messages.stream(**asks) as stream:
            assert "".join(stream.text_stream) == WHOLE
            message = stream.get_final_message()
        assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("end_turn", 3, 4)
        server.reply(200, STREAM, *CALLS)
        text, call = client.messages.create(**asks).content
        assert (text.text, call.id, call.name, call.input) == ("Let me see.", "c-1", "weather", {"city": "Wien"})
        server.reply(200, STREAM, *FAILED)
        with pytest.raises(anthropic.sdk.APIStatusError, match="busy"):
            list(client.messages.create(**asks, stream=True))
        server.reply(*LIMITED)
        with pytest.raises(anthropic.sdk.RateLimitError, match="slow down"):
            client.messages.create(**asks)
    assert server.requests[0][2]["authorization"] == "Bearer k"


def test_anthropic_asynchronous(anthropic: Any, server: Server) -> None:
    async def run() -> None:
        async with anthropic.async_client() as client:
            server.reply(200, STREAM, *EVENTS)
            async with client.messages.stream(**ASKS, max_tokens=100) as stream:
                assert "".join([text async for text in stream.text_stream]) == WHOLE
            server.reply(200, STREAM, *EVENTS)
            answer = await client.messages.create(**ASKS, max_tokens=100)
            assert answer.content[0].text == WHOLE

    asyncio.run(run())


def test_genai(genai: Any, server: Server) -> None:
    with genai.http.client() as http:
        models = genai.client(httpx_client=http).models
        server.reply(200, STREAM, *EVENTS)
        chunks = list(models.generate_content_stream(model="writer-1", contents="Hi"))
        assert "".join(chunk.text or "" for chunk in chunks) == WHOLE
        assert chunks[-1].usage_metadata.total_token_count == 7
        assert chunks[-1].candidates[0].finish_reason.value == "STOP"
        server.reply(200, STREAM, *EVENTS)
        assert models.generate_content(model="writer-1", contents="Hi").text == WHOLE
        server.reply(200, STREAM, *CALLS)
        (call,) = models.generate_content(model="writer-1", contents="Hi").function_calls
        assert (call.id, call.name, call.args) == ("c-1", "weather", {"city": "Wien"})
        server.reply(400, {"Content-Type": "application/json"}, b'{"error": {"message": "no such thing"}}')
        with pytest.raises(genai.sdk.errors.ClientError, match="no such thing") as caught:
            models.generate_content(model="writer-1", contents="Hi")
        assert caught.value.code == 400
    assert server.requests[0][2]["authorization"] == "Bearer k"


def test_genai_asynchronous(genai: Any, server: Server) -> None:
    async def run() -> None:
        async with genai.http.async_client() as http:
            models = genai.client(httpx_async_client=http).aio.models
            server.reply(200, STREAM, *EVENTS)
            chunks = await models.generate_content_stream(model="writer-1", contents="Hi")
            assert "".join([chunk.text or "" async for chunk in chunks]) == WHOLE
            server.reply(200, STREAM, *EVENTS)
            answer = await models.generate_content(model="writer-1", contents="Hi")
            assert answer.text == WHOLE

    asyncio.run(run())
