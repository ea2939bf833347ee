"""Cohere, both versions, one kind a test."""

from __future__ import annotations

import pytest

from vendors import body, lines

USAGE = {"billed_units": {"input_tokens": 1, "output_tokens": 1}, "tokens": {"input_tokens": 7, "output_tokens": 5}}


def parse(llmstream, data, dialect):
    result = llmstream.parse(data, dialect=dialect)
    assert llmstream.parse([data[at : at + 1] for at in range(len(data))], dialect=dialect) == result
    return result


def v2(llmstream, *payloads):
    return parse(llmstream, body(*payloads), "cohere")


def content(**content):
    return {"type": "content-delta", "index": 0, "delta": {"message": {"content": content}}}


def ended(reason="COMPLETE", **more):
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": USAGE, **more}}


BEGIN = {"id": "r1", "type": "message-start", "delta": {"message": {"role": "assistant"}}}


def test_chat(llmstream):
    payloads = [
        BEGIN,
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "thinking", "thinking": ""}}}},
        content(thinking="Hm"),
        {"type": "content-end", "index": 0},
        content(text="Hel"),
        {"type": "citation-start", "index": 0, "delta": {"message": {"citations": {"start": 0, "text": "Hel"}}}},
        {"type": "citation-end", "index": 0},
        content(text="lo"),
        ended(),
    ]
    result = v2(llmstream, *payloads)
    assert (result.text, result.reasoning, result.model) == ("Hello", "Hm", None)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 5)
    assert (result.stop_reasons, result.vendor_stop_reasons, result.complete) == (
        {0: "end_turn"},
        {0: "COMPLETE"},
        True,
    )
    assert v2(llmstream, *payloads, "[DONE]").complete
    assert not v2(llmstream, *payloads[:-1]).complete
    events = list(llmstream.iter_events(body(*payloads), dialect="cohere"))
    assert events[0].request_id == "r1"
    assert events[3].extensions == {"cohere:citation": {"start": 0, "text": "Hel"}}


def test_plans_and_calls(llmstream):
    def call(index, id, name):
        function = {"name": name, "arguments": ""}
        calls = {"id": id, "type": "function", "function": function}
        return {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": calls}}}

    def piece(index, words):
        calls = {"function": {"arguments": words}}
        return {"type": "tool-call-delta", "index": index, "delta": {"message": {"tool_calls": calls}}}

    payloads = [
        BEGIN,
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will"}}},
        call(0, "c0", "f"),
        piece(0, '{"a"'),
        piece(0, ":1}"),
        {"type": "tool-call-end", "index": 0},
        call(1, "c1", "g"),
        {"type": "tool-call-end", "index": 1},
        ended("TOOL_CALL"),
    ]
    result = v2(llmstream, *payloads)
    assert [(c.id, c.name, c.arguments, c.index) for c in result.tool_calls] == [
        ("c0", "f", '{"a":1}', 0),
        ("c1", "g", "{}", 1),
    ]
    assert (result.text, result.stop_reasons) == ("", {0: "tool_use", 1: "tool_use"})
    plan = next(e for e in llmstream.iter_events(body(*payloads), dialect="cohere") if e.type == "content.delta")
    assert (plan.text, plan.extensions) == ("", {"cohere:tool_plan": "I will"})


@pytest.mark.parametrize(
    ("payload", "code", "message"),
    [
        (ended("ERROR", error="out of order"), "internal_error", "out of order"),
        (ended("TIMEOUT"), "internal_error", ""),
        ({"message": "invalid api token"}, "internal_error", "invalid api token"),
    ],
)
def test_errors(llmstream, payload, code, message):
    result = v2(llmstream, BEGIN, content(text="a"), payload)
    assert (result.error.code, result.error.message) == (code, message)


def test_a_body_that_is_an_error(llmstream):
    assert llmstream.parse(b'{"message":"invalid api token"}', dialect="cohere").error.message == "invalid api token"


# Version 1


def chat(kind, **more):
    return {"is_finished": kind == "stream-end", "event_type": kind, **more}


META = {"tokens": {"input_tokens": 7.0, "output_tokens": 5.0}, "billed_units": {"input_tokens": 1}}


def test_chat_v1(llmstream):
    payloads = [
        chat("stream-start", generation_id="g"),
        chat("search-results", search_results=[{"id": 1}]),
        chat("text-generation", text="Hel"),
        chat("text-generation", text="lo"),
        chat("citation-generation", citations=[{"start": 0}]),
        chat("stream-end", finish_reason="MAX_TOKENS", response={"text": "Hello", "meta": META}),
    ]
    result = parse(llmstream, lines(*payloads), "cohere-v1")
    assert (result.text, result.vendor_stop_reasons, result.stop_reasons) == (
        "Hello",
        {0: "MAX_TOKENS"},
        {0: "max_tokens"},
    )
    assert (result.usage.input_tokens, result.usage.output_tokens, result.complete) == (7, 5, True)
    assert not llmstream.parse(lines(*payloads[:-1]), dialect="cohere-v1").complete
    assert llmstream.parse(lines(payloads[0], payloads[-1]), dialect="cohere-v1").text == "Hello"
    assert llmstream.parse(body(*payloads), dialect="cohere-v1").text == "Hello"


@pytest.mark.parametrize("in_pieces", [True, False])
def test_calls_v1(llmstream, in_pieces):
    pieces = [
        chat("tool-calls-chunk", text="I will"),
        chat("tool-calls-chunk", tool_call_delta={"index": 0, "name": "f"}),
        chat("tool-calls-chunk", tool_call_delta={"index": 0, "parameters": '{"a":'}),
        chat("tool-calls-chunk", tool_call_delta={"index": 0, "parameters": "1}"}),
        chat("tool-calls-chunk", tool_call_delta={"index": 1, "name": "g"}),
        chat("tool-calls-chunk", tool_call_delta={"index": 1, "parameters": "{}"}),
    ]
    calls = [{"name": "f", "parameters": {"a": 1}}, {"name": "g", "parameters": {}}]
    payloads = [
        *(pieces if in_pieces else []),
        chat("tool-calls-generation", text="I will", tool_calls=calls),
        chat("stream-end", finish_reason="COMPLETE", response={"text": "", "tool_calls": calls}),
    ]
    result = parse(llmstream, lines(*payloads), "cohere-v1")
    assert [(c.id, c.name, c.arguments) for c in result.tool_calls] == [
        ("call-0", "f", '{"a":1}'),
        ("call-1", "g", "{}"),
    ]
    assert (result.text, result.stop_reasons) == ("", {0: "tool_use"})


def test_generations_v1(llmstream):
    payloads = [
        {"index": 0, "is_finished": False, "text": "a"},
        {"index": 1, "is_finished": False, "text": "b"},
        {"index": 0, "is_finished": True, "finish_reason": "COMPLETE"},
        {"index": 1, "is_finished": True, "finish_reason": "MAX_TOKENS"},
    ]
    result = parse(llmstream, lines(*payloads), "cohere-v1")
    assert (result.text, result.texts) == ("a", {0: "a", 1: "b"})
    assert (result.stop_reasons, result.complete) == ({0: "end_turn", 1: "max_tokens"}, True)
