"""The streams that a VendorWriter writes, read by the vendors' own SDKs: what they make of generated answers, with
thoughts, calls side by side, every stop reason, counts and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import producing
from splits import bytewise
from strategies import cuts, seeds
from test_translation_streams import payloads, story, written

EXAMPLES = 60  # a client is made for each

REASONS = {
    "openai": {
        "end_turn": "stop",
        "max_tokens": "length",
        "tool_use": "tool_calls",
        "content_filter": "content_filter",
    },
    "anthropic": {"content_filter": "refusal"},
    "gemini": {"end_turn": "STOP", "max_tokens": "MAX_TOKENS", "tool_use": "STOP", "content_filter": "SAFETY"},
}
"""The draft's words as the vendors document theirs."""

WORDS = producing.TEXTS.filter(bool)
ARGUMENTS = st.sampled_from([text for text in producing.ARGUMENTS.elements if text.lstrip().startswith("{")])
COUNTS = st.integers(0, 2**31 - 1)
ERRORS = st.sampled_from(
    ["rate_limited", "context_length_exceeded", "content_filtered", "internal_error", "overloaded", None, None, None]
)


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """What a stream says, and in which order."""
    steps = draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("text"), WORDS),
                st.tuples(st.just("thought"), WORDS),
                st.tuples(st.just("call"), st.tuples(st.sampled_from(["f", "get_weather"]), ARGUMENTS)),
            ),
            max_size=8,
        )
    )
    calls = [content for kind, content in steps if kind == "call"]
    reason = draw(st.sampled_from(["end_turn", "max_tokens", "content_filter"]))
    return {
        "steps": steps,
        "text": "".join(content for kind, content in steps if kind == "text"),
        "thought": "".join(content for kind, content in steps if kind == "thought"),
        "calls": [(f"c{n}", name, json.loads(text)) for n, (name, text) in enumerate(calls)],
        "reason": "tool_use" if calls and reason == "end_turn" else reason,
        "usage": draw(st.one_of(st.none(), st.tuples(COUNTS, COUNTS))),
        "error": draw(ERRORS),
    }


def events_of(llmstream: Any, answer: dict[str, Any]) -> list[Any]:
    events = [llmstream.StreamStart(model="m", created=5, request_id="r")]
    count = 0
    for kind, content in answer["steps"]:
        if kind == "text":
            events.append(llmstream.ContentDelta(text=content))
        elif kind == "thought":
            events.append(llmstream.ContentDelta(text="", reasoning=content))
        else:
            name, arguments = content
            events.append(llmstream.ToolCall(id=f"c{count}", name=name, arguments=arguments))
            count += 1
    if answer["usage"] is not None:
        input_tokens, output_tokens = answer["usage"]
        events.append(llmstream.Usage(input_tokens=input_tokens, output_tokens=output_tokens))
    if answer["error"] is not None:
        return [*events, llmstream.StreamError(code=answer["error"], message="why")]
    return [*events, llmstream.ContentStop(stop_reason=answer["reason"]), llmstream.StreamEnd()]


def expected(vendor: str, answer: dict[str, Any]) -> dict[str, Any]:
    names = REASONS[vendor]
    found = {name: answer[name] for name in ("text", "thought", "calls", "usage")}
    reason = names.get(answer["reason"], answer["reason"])
    failed = answer["error"] is not None
    return {**found, "reason": None if failed else reason, "error": "why" if failed else None}


def respond(chunks: list[bytes]) -> Any:
    """The client of an HTTP library whose every response is a stream."""
    try:
        import httpx2 as library
    except ImportError:
        import httpx as library
    headers = {"content-type": "text/event-stream"}
    mock = library.MockTransport(lambda request: library.Response(200, headers=headers, content=iter(chunks)))
    return library.Client(transport=mock)


# The three SDKs


def read_openai(chunks: list[bytes]) -> dict[str, Any]:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(api_key="k", base_url="http://test/v1", http_client=respond(chunks), max_retries=0)
    found: dict[str, Any] = {"text": "", "thought": "", "calls": [], "usage": None, "reason": None, "error": None}
    calls: dict[int, list[str]] = {}
    try:
        for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
            if chunk.usage is not None:
                found["usage"] = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
            for choice in chunk.choices:
                found["text"] += choice.delta.content or ""
                found["thought"] += getattr(choice.delta, "reasoning_content", None) or ""
                found["reason"] = choice.finish_reason or found["reason"]
                for call in choice.delta.tool_calls or []:
                    whole = calls.setdefault(call.index, [call.id, call.function.name, ""])
                    whole[2] += call.function.arguments
    except openai.APIError as error:
        found["error"] = error.message
    found["calls"] = [(id, name, json.loads(text)) for id, name, text in calls.values()]
    return found


def read_anthropic(chunks: list[bytes]) -> dict[str, Any]:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(api_key="k", base_url="http://test", http_client=respond(chunks), max_retries=0)
    failed = None
    with client.messages.stream(model="m", messages=[], max_tokens=5) as stream:
        try:
            stream.until_done()
        except anthropic.APIError as error:
            failed = error.body["error"]["message"]
        message = stream.current_message_snapshot
    found: dict[str, Any] = {"text": "", "thought": "", "calls": []}
    for block in message.content:
        if block.type == "text":
            found["text"] += block.text
        elif block.type == "thinking":
            found["thought"] += block.thinking
        else:
            found["calls"].append((block.id, block.name, block.input))
    counts = (message.usage.input_tokens, message.usage.output_tokens)
    return {**found, "usage": counts, "reason": message.stop_reason, "error": failed}


def read_gemini(chunks: list[bytes]) -> dict[str, Any]:
    genai = pytest.importorskip("google.genai")
    options = genai.types.HttpOptions(httpx_client=respond(chunks), base_url="http://test")
    client = genai.Client(api_key="k", http_options=options)
    found: dict[str, Any] = {"text": "", "thought": "", "calls": [], "usage": None, "reason": None, "error": None}
    try:
        for chunk in client.models.generate_content_stream(model="m", contents="Hi"):
            if chunk.usage_metadata is not None:
                usage = chunk.usage_metadata
                found["usage"] = (usage.prompt_token_count, usage.candidates_token_count)
            for candidate in chunk.candidates or []:
                for part in candidate.content.parts:
                    if part.function_call is not None:
                        call = part.function_call
                        found["calls"].append((call.id, call.name, call.args))
                    else:
                        found["thought" if part.thought else "text"] += part.text
                if candidate.finish_reason is not None:
                    found["reason"] = candidate.finish_reason.value
    except genai.errors.APIError as error:
        found["error"] = error.message
    return found


READERS = {"openai": read_openai, "anthropic": read_anthropic, "gemini": read_gemini}


@pytest.mark.parametrize("vendor", READERS)
@settings(max_examples=EXAMPLES)
@given(answer=answers(), source=seeds())
def test_the_sdk_reads_what_was_written(llmstream, vendor, answer, source):
    output = written(llmstream, vendor, events_of(llmstream, answer))
    told = expected(vendor, answer)
    if vendor == "anthropic" and told["usage"] is None:
        told["usage"] = (0, 0)  # its clients have no word for counts that are not known
    assert READERS[vendor](cuts(source, output)) == told


@pytest.mark.parametrize("text", ["", 'SELECT "a"\n', '{"a":1}'])
def test_the_openai_sdk_reads_the_text_for_a_custom_tool(llmstream, text):
    openai = pytest.importorskip("openai")
    call = llmstream.ToolCall(id="c1", name="sql", arguments=json.dumps(text), extensions={"openai:custom": True})
    output = written(llmstream, "openai", [call, llmstream.StreamEnd()])
    client = openai.OpenAI(api_key="k", base_url="http://test/v1", http_client=respond([output]), max_retries=0)
    chunks = list(client.chat.completions.create(model="m", messages=[], stream=True))
    (found,) = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or []]
    assert (found.index, found.id, found.type, found.custom) == (0, "c1", "custom", {"name": "sql", "input": text})
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "tool_calls"


# A short answer, whole and cut


def test_the_openai_sdk_reads_it(llmstream):
    openai = pytest.importorskip("openai")

    def chunks(output):
        http = respond(bytewise(output))
        client = openai.OpenAI(api_key="k", base_url="http://test/v1", http_client=http, max_retries=0)
        return list(client.chat.completions.create(model="m", messages=[], stream=True))

    found = chunks(written(llmstream, "openai", story(llmstream)))
    assert "".join(c.choices[0].delta.content or "" for c in found if c.choices) == "It rains."
    calls = [call for c in found if c.choices for call in c.choices[0].delta.tool_calls or []]
    assert [(c.index, c.id, c.function.name, c.function.arguments) for c in calls] == [
        (0, "c1", "f", '{"a": 1.10}'),
        (1, "c2", "g", "{}"),
    ]
    assert [c.choices[0].finish_reason for c in found if c.choices][-1] == "tool_calls"
    assert (found[-1].usage.prompt_tokens, found[-1].usage.completion_tokens, found[0].model) == (3, 4, "m")
    for events in (
        story(llmstream)[:-1],
        [*story(llmstream)[:2], llmstream.StreamError(code="overloaded", message="w")],
    ):
        with pytest.raises(openai.APIError):
            chunks(written(llmstream, "openai", events))


def test_the_anthropic_sdk_reads_it(llmstream):
    anthropic = pytest.importorskip("anthropic")

    def message(output):
        http = respond(bytewise(output))
        client = anthropic.Anthropic(api_key="k", base_url="http://test", http_client=http, max_retries=0)
        with client.messages.stream(model="m", messages=[], max_tokens=5) as stream:
            return stream.get_final_message()

    found = message(written(llmstream, "anthropic", story(llmstream)))
    assert [(block.type, getattr(block, "text", None) or block.input) for block in found.content] == [
        ("text", "It rains."),
        ("tool_use", {"a": 1.1}),
        ("tool_use", {}),
    ]
    assert (found.stop_reason, found.usage.input_tokens, found.usage.output_tokens) == ("tool_use", 3, 4)
    for events in (
        story(llmstream)[:-1],
        [*story(llmstream)[:2], llmstream.StreamError(code="overloaded", message="w")],
    ):
        with pytest.raises(anthropic.APIError):
            message(written(llmstream, "anthropic", events))


def test_the_gemini_sdk_reads_it(llmstream):
    types = pytest.importorskip("google.genai.types")
    found = [
        types.GenerateContentResponse.model_validate(each)
        for each in payloads(written(llmstream, "gemini", story(llmstream)))
    ]
    assert "".join(part.text or "" for each in found for part in each.candidates[0].content.parts) == "It rains."
    calls = [call for each in found for call in each.function_calls or []]
    assert [(call.id, call.name, call.args) for call in calls] == [("c1", "f", {"a": 1.1}), ("c2", "g", {})]
    assert found[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert (found[-1].usage_metadata.prompt_token_count, found[-1].usage_metadata.candidates_token_count) == (3, 4)
