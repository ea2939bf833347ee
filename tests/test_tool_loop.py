"""The tool loop of section 4.8 of the draft, start to end: what a client does, in the order it does it."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

import drafts

# Request 2 as section 4.8 prints its messages.
PRINTED = r"""
[
{"role": "user",
"content": "What is the weather in Vienna?"},
{"role": "assistant", "content": null,
"tool_calls": [{"id": "call_1",
"name": "get_weather",
"arguments": "{\"city\":\"Vienna\"}"}]},
{"role": "tool", "tool_call_id": "call_1",
"content": "Vienna: 24C, sunny"}]
"""
ARGUMENTS = '{"city":"Vienna"}'


@pytest.fixture(scope="session")
def kit(llmstream: Any) -> Any:
    return importlib.import_module("llmstream.request")


def first_request(kit: Any) -> Any:
    return kit.Request(
        model="example-model",
        messages=[kit.Message(role="user", content="What is the weather in Vienna?")],
        tools=[
            kit.Tool(
                name="get_weather",
                description="Get current weather for a city.",
                parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            )
        ],
        parameters=kit.Parameters(max_tokens=100),
        metadata={"request_id": "550e8400"},
    )


def test_r4_8_1_r4_8_2_the_loop_of_section_4_8(kit: Any, llmstream: Any) -> None:
    # 1. The client sends a request with messages and tools.
    request = first_request(kit)
    request.raise_for_violations()
    body = request.to_json()
    assert kit.Request.from_json(body, strict=True) == request

    # 2. The model emits tool.call, then content.stop with stop_reason "tool_use".
    response = [
        drafts.start(request_id="550e8400"),
        drafts.tool_call(1, id="call_1", name="get_weather", arguments=ARGUMENTS),
        drafts.stop(2, stop_reason="tool_use"),
        drafts.usage(3),
        drafts.event("stream.end", 4, request_id="550e8400"),
    ]
    result = llmstream.parse(response, strict=True)
    assert result.stop_reasons == {0: "tool_use"}

    # 3. The client executes the function, if it is one of its own, with arguments it asked for, and confirmed.
    functions = {"get_weather": lambda city: f"{city}: 24C, sunny"}
    approved, refused = kit.screen_tool_calls(result, request, confirm=lambda call, tool: tool.name in functions)
    assert refused == []
    outputs = {call.id: functions[call.name](**json.loads(call.arguments)) for call in approved}

    # 4. It sends the history, the assistant's tool call, and a "tool" message with the result.
    following = request.answer(result, outputs)
    following.raise_for_violations()
    assert following.json()["messages"] == json.loads(PRINTED)
    before, after = request.json(), following.json()
    del before["messages"], after["messages"]
    assert after == before  # the tools travel with every request
    assert request.to_json() == body

    # 5. The model reads the tool result and generates its final text.
    response = [drafts.start(), drafts.delta(1, "The weather in Vienna is 24C."), drafts.stop(2), drafts.usage(3)]
    result = llmstream.parse([*response, drafts.event("stream.end", 4)], strict=True)
    assert result.text == "The weather in Vienna is 24C."


def test_r4_8_2_from_events_as_they_come(kit: Any, llmstream: Any) -> None:
    events = [
        llmstream.StreamStart(model="m"),
        llmstream.ContentDelta(text="Let me "),
        llmstream.ContentDelta(text="look."),
        llmstream.ToolCall(id="a", name="get_weather", arguments=ARGUMENTS),
        llmstream.ToolCall(id="b", name="get_weather", arguments=ARGUMENTS, index=1),
        llmstream.ContentStop(stop_reason="tool_use"),
    ]
    picture = kit.ImagePart(media_type="image/png", data=b"x")
    following = first_request(kit).answer(iter(events), {"b": [kit.TextPart(text="rain"), picture], "a": "sun"})
    following.raise_for_violations()
    _, assistant, first, second = following.messages
    assert (assistant.role, assistant.content) == ("assistant", "Let me look.")
    assert [(call.id, call.name, call.arguments) for call in assistant.tool_calls] == [
        ("a", "get_weather", ARGUMENTS),
        ("b", "get_weather", ARGUMENTS),
    ]
    assert (first.role, first.tool_call_id, first.content) == ("tool", "a", "sun")
    assert (second.role, second.tool_call_id, second.parts) == ("tool", "b", (kit.TextPart(text="rain"), picture))
    # The ids of a vendor that has none begin again with each response.
    again = following.answer(iter(events), {"a": "", "b": []})
    assert again.validate(strict=True) == []
    assert again.messages[:4] == following.messages


def test_r4_8_2_what_the_history_holds_besides_stays(kit: Any, llmstream: Any) -> None:
    request = kit.Request.from_json('{"new":[1.10],"messages":[5,{"role":"user","content":"x","new":{}}],"tools":[{}]}')
    calls = [llmstream.ToolCall(id="a", name="f", arguments="{}")]
    written = request.answer(calls, {"a": "r"}).to_json().decode()
    assert written == (
        '{"new":[1.10],"messages":[5,{"role":"user","content":"x","new":{}},'
        '{"role":"assistant","content":null,"tool_calls":[{"id":"a","name":"f","arguments":"{}"}]},'
        '{"role":"tool","tool_call_id":"a","content":"r"}],"tools":[{}]}'
    )


def test_what_cannot_be_answered(kit: Any, llmstream: Any) -> None:
    request = first_request(kit)

    def call(**members: Any) -> Any:
        return llmstream.ToolCall(**{"id": "SECRET", "name": "f", "arguments": "{}", **members})

    cases: list[tuple[list[Any], dict[str, Any]]] = [
        ([], {}),
        ([], {"SECRET": "x"}),
        ([call()], {}),
        ([call()], {"SECRET": "x", "other": "y"}),
        ([call(), call()], {"SECRET": "x"}),
        ([call(id=None)], {"SECRET": "x"}),
        ([call(name=None)], {"SECRET": "x"}),
        ([call(arguments=None)], {"SECRET": "x"}),
    ]
    for calls, outputs in cases:
        with pytest.raises(ValueError, match=r".") as caught:
            request.answer(calls, outputs)
        assert "SECRET" not in str(caught.value)
    for output in (None, b"x", {"a": 1}, 5, ["x"]):
        with pytest.raises(TypeError):
            request.answer([call()], {"SECRET": output})
