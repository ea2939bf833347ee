"""Semantic Kernel talks to the gateway as if it were OpenAI, whatever the upstream speaks."""

from __future__ import annotations

import asyncio
import importlib
import json

import pytest
from gateway_server import WAIT, Recorder, served

import vendors

pytest.importorskip("semantic_kernel")
openai = pytest.importorskip("openai")
pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

pytestmark = pytest.mark.filterwarnings("ignore")  # what these libraries use of one another is their own matter

WORDS = ["Hello", " w\u00f6rld", " \U0001f600", " d\u2028e\u0085f"]
TEXT = "".join(WORDS)
VENDORS = ["openai", "anthropic", "gemini"]


def asked(llmstream, upstream, vendor, ask):
    """What ``ask`` makes of a service in front of a gateway; and the requests that the upstream got."""
    gateway = importlib.import_module("llmstream.integrations.gateway")
    connectors = importlib.import_module("semantic_kernel.connectors.ai.open_ai")
    recorder = Recorder(upstream)

    async def main(url):
        async with openai.AsyncOpenAI(base_url=url, api_key="mine", max_retries=0, timeout=3 * WAIT) as client:
            return await ask(connectors.OpenAIChatCompletion(ai_model_id="m", async_client=client))

    with served(recorder) as port:
        found = gateway.Upstream(vendor, f"http://127.0.0.1:{port}/v1", key="k")
        with served(gateway.Gateway([found])) as gateway_port:
            return asyncio.run(main(f"http://127.0.0.1:{gateway_port}/v1")), [
                json.loads(one[3]) for one in recorder.asked
            ]


def history():
    contents = importlib.import_module("semantic_kernel.contents")
    found = contents.ChatHistory(system_message="be brief")
    found.add_user_message("?")
    return found


def settings(**more):
    connectors = importlib.import_module("semantic_kernel.connectors.ai.open_ai")
    return connectors.OpenAIChatPromptExecutionSettings(max_tokens=9, **more)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stream(llmstream, replay, vendor):
    async def ask(service):
        found = []
        async for contents in service.get_streaming_chat_message_contents(history(), settings()):
            found += contents
        return found

    found, _ = asked(llmstream, replay(vendors.VENDORS[vendor](WORDS)), vendor, ask)
    assert "".join(str(content) for content in found) == TEXT
    assert [str(content.finish_reason) for content in found if content.finish_reason] == ["FinishReason.STOP"]
    usage = [content.metadata["usage"] for content in found if content.metadata.get("usage")]
    assert (usage[-1].prompt_tokens, usage[-1].completion_tokens) == (3, len(WORDS) + 2 if vendor == "gemini" else 5)


@pytest.mark.parametrize("vendor", ["anthropic", "gemini"])
def test_a_whole_answer(llmstream, replay, vendor):
    async def ask(service):
        return await service.get_chat_message_contents(history(), settings())

    (found,), _ = asked(llmstream, replay(vendors.VENDORS[vendor](WORDS)), vendor, ask)
    assert (str(found), str(found.finish_reason)) == (TEXT, "FinishReason.STOP")


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_tool_that_it_calls(llmstream, replay, vendor):
    """The kernel runs the call that was streamed, and sends its result, which the upstream gets in its own form."""
    kernel_module = importlib.import_module("semantic_kernel")
    functions = importlib.import_module("semantic_kernel.functions")
    behavior = importlib.import_module("semantic_kernel.connectors.ai.function_choice_behavior")
    ran = []

    class Plugin:
        @functions.kernel_function(name="f", description="d")
        def f(self, x: int) -> str:
            ran.append(x)
            return "result-of-f"

    call = vendors.VENDORS[vendor]([], arguments=['{"x":', " 1}"])
    call = [event.replace(b'"name":"f"', b'"name":"p-f"') for event in call]

    async def ask(service):
        kernel = kernel_module.Kernel()
        kernel.add_plugin(Plugin(), "p")
        choice = behavior.FunctionChoiceBehavior.Auto()
        found = []
        stream = service.get_streaming_chat_message_contents(
            history(), settings(function_choice_behavior=choice), kernel=kernel
        )
        async for contents in stream:
            found += contents
        return found

    found, requests = asked(llmstream, replay(call, vendors.VENDORS[vendor](WORDS)), vendor, ask)
    assert ran == [1]
    assert "".join(str(content) for content in found if content.role == "assistant").endswith(TEXT)
    assert len(requests) == 2
    assert "p-f" in json.dumps(requests[0]["tools"])
    assert "result-of-f" in json.dumps(requests[1])


@pytest.mark.parametrize("fault", ["cut", "error", "end", "429"])
def test_faults(llmstream, replay, fault):
    """What was cut is an exception, and not a good end."""
    exceptions = importlib.import_module("semantic_kernel.exceptions")
    found = []

    async def ask(service):
        async for contents in service.get_streaming_chat_message_contents(history(), settings()):
            found.extend(contents)

    plays = replay(vendors.anthropic(WORDS), fault=fault, after=5, pace=50)
    with pytest.raises((exceptions.ServiceResponseException, openai.APIError)):
        asked(llmstream, plays, "anthropic", ask)
    assert "".join(str(content) for content in found) == ("" if fault == "429" else "".join(WORDS[:2]))
