"""OpenAI chat completions, with what the vendors of this form vary: one kind a test, on payloads of our own."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

DONE = b"[DONE]"


def body(*payloads):
    parts = (payload if isinstance(payload, bytes) else json.dumps(payload).encode() for payload in payloads)
    return b"".join(b"data: " + part + b"\n\n" for part in parts)


def chunk(delta=None, finish=None, index=0, **more):
    """A chunk with one choice."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c-1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [choice], **more}


def call(arguments=None, index=0, **more):
    """A delta with one piece of a tool call."""
    function = {"name": more.pop("name", None), "arguments": arguments}
    piece = {"index": index, "function": {key: value for key, value in function.items() if value is not None}, **more}
    if index == "missing":
        del piece["index"]
    return {"tool_calls": [piece]}


def read(llmstream, *payloads, dialect="openai"):
    """The events, without numbers, and the parser."""
    parser = llmstream.Parser(dialect)
    events = parser.feed(body(*payloads)) + parser.close()
    return events, parser


def calls(llmstream, *payloads):
    events, parser = read(llmstream, *payloads)
    found = [(e.id, e.name, e.arguments, e.index) for e in events if isinstance(e, llmstream.ToolCall)]
    return found, [violation.requirement for violation in parser.violations]


def test_a_stream(llmstream):
    events, parser = read(
        llmstream,
        chunk({"role": "assistant", "content": "", "refusal": None}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk(finish="stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        DONE,
    )
    assert events == [
        llmstream.StreamStart(model="m", created=5, request_id="c-1", seq=0),
        llmstream.ContentDelta(text="Hel", seq=1),
        llmstream.ContentDelta(text="lo", seq=2),
        llmstream.ContentStop(stop_reason="end_turn", seq=3, extensions={"openai:stop_reason": "stop"}),
        llmstream.Usage(input_tokens=3, output_tokens=2, seq=4),
        llmstream.StreamEnd(request_id="c-1", seq=5),
    ]
    assert parser.complete
    assert parser.violation_count == 0


def test_the_name_of_a_vendor_is_in_its_extensions(llmstream):
    events, parser = read(llmstream, chunk({"content": "a"}, "stop"), DONE, dialect="groq")
    assert parser.dialect == "groq"
    assert events[2].extensions == {"groq:stop_reason": "stop"}


def test_the_start_waits_for_the_model(llmstream):
    parser = llmstream.Parser("azure")
    assert parser.feed(body({"model": "", "created": 0, "choices": [], "prompt_filter_results": [{}]})) == []
    start, delta = parser.feed(body(chunk({"content": "a"})))
    assert (start.model, start.created, delta.text) == ("m", 5, "a")


def test_text_without_a_model_is_not_held_back(llmstream):
    start, delta = llmstream.Parser("openai").feed(body({"choices": [{"delta": {"content": "a"}}]}))
    assert (start.model, start.created, start.request_id, delta.text) == (None, None, None, "a")


# Where reasoning stands


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm", "content": None},
        {"reasoning_text": "hm", "content": ""},
        {"reasoning_content": "hm", "reasoning": "hm"},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]},
        {"reasoning": None, "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_details": [{"text": "h"}, {"summary": "m"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"text": "m"}]}]},
        {"content": [{"type": "thinking", "thinking": "hm"}]},
    ],
)
def test_reasoning(llmstream, delta):
    for before in ((), (chunk({"role": "assistant"}),)):
        events, _ = read(llmstream, *before, chunk(delta))
        assert [(e.text, e.reasoning) for e in events[1:]] == [("", "hm")]


def test_reasoning_and_text_in_one_delta(llmstream):
    events, _ = read(llmstream, chunk({"reasoning": "hm", "content": "so"}))
    assert [(e.text, e.reasoning) for e in events[1:]] == [("", "hm"), ("so", None)]


def test_signatures_of_reasoning_are_kept(llmstream):
    details = [
        {"type": "reasoning.text", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "d"},
        {"text": "x"},
    ]
    events, _ = read(llmstream, chunk({"reasoning": "x", "reasoning_details": details}))
    assert events[1].reasoning == "x"
    assert events[2].extensions == {"openai:reasoning_details": details[:2]}


# Where text stands


def test_parts_of_content(llmstream):
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "so"},
        {"type": "reference", "reference_ids": [1]},
        "!",
    ]
    events, _ = read(llmstream, chunk({"content": parts}))
    assert [(e.text, e.reasoning) for e in events[1:]] == [("", "hm"), ("so", None), ("", None), ("!", None)]
    assert events[3].extensions == {"openai:reference": parts[2]}


def test_the_same_words_in_two_places_count_once(llmstream):
    first = chunk({"content": "one "})
    first["choices"][0] |= {"message": {"content": "one "}, "text": "one "}
    last = chunk({"content": ""}, "stop")
    last["choices"][0]["message"] = {"content": "one two"}
    bare = chunk(None, "stop")
    del bare["choices"][0]["delta"]
    bare["choices"][0]["message"] = {"content": "one two"}
    for end in (last, bare):
        events, _ = read(llmstream, first, chunk({"content": "two"}), end)
        assert "".join(e.text for e in events if isinstance(e, llmstream.ContentDelta)) == "one two"


def test_deltas_read_by_a_form_count_as_deltas(llmstream):
    head = {"model": "m", "choices": []}
    final = {"choices": [{"index": 0, "message": {"content": "one"}, "finish_reason": "stop"}]}
    assert llmstream.parse(body(head, chunk({"content": "one"}), final), dialect="openai").text == "one"


def test_an_answer_that_was_not_streamed(llmstream):
    message = {"role": "assistant", "content": "all", "tool_calls": [{"id": "a", "function": {"name": "f"}}]}
    answer = {"object": "chat.completion", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    for stream in (body(answer, DONE), json.dumps(answer).encode(), json.dumps(answer, indent=2).encode()):
        for dialect in ("openai", "auto"):
            result = llmstream.parse(stream, dialect=dialect)
            assert (result.text, [c.name for c in result.tool_calls], result.complete) == ("all", ["f"], True)


@pytest.mark.parametrize("name", ["annotations", "images", "executed_tools"])
def test_lists_beside_the_text(llmstream, name):
    events, _ = read(llmstream, chunk({"role": "assistant"}), chunk({"content": "a", name: [{"x": 1}]}))
    assert events[1:] == [llmstream.ContentDelta(text="a", seq=1, extensions={f"openai:{name}": [{"x": 1}]})]


def test_refusals_and_log_probabilities_are_no_text(llmstream):
    probable = chunk({"content": "a"})
    probable["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -0.5}], "refusal": None}
    events, _ = read(llmstream, chunk({"role": "assistant"}), chunk({"refusal": "I can't"}), probable)
    assert [e.text for e in events[1:]] == ["", "a"]
    assert events[1].extensions == {"openai:refusal": "I can't"}
    assert events[2].extensions["openai:logprobs"]["content"][0]["token"] == "a"


def test_what_json_cannot_hold_is_no_extension(llmstream):
    data = b'{"choices":[{"delta":{"content":"a","audio":{"x":1e400},"images":[1]}}]}'
    events, _ = read(llmstream, data)
    assert events[1].extensions == {"openai:images": [1]}


def test_citations_travel_once(llmstream):
    every = {"citations": ["u"], "search_results": [{"title": "t"}]}
    events, _ = read(llmstream, *(chunk({"content": "a"}, **every) for _ in range(3)), chunk(finish="stop", **every))
    assert [e.extensions for e in events[1:4]] == [{}, {}, {}]
    assert events[4].extensions == {
        "openai:citations": ["u"],
        "openai:search_results": [{"title": "t"}],
        "openai:stop_reason": "stop",
    }


# Choices


def test_choices(llmstream):
    two = chunk({"content": "a"})
    two["choices"].append({"index": 1, "delta": {"content": "b"}})
    result = llmstream.parse(
        body(two, chunk({"content": "B"}, index=1), chunk({"content": "A"}), chunk(finish="stop", index=1)),
        dialect="openai",
    )
    assert (result.text, result.texts, result.complete) == ("aA", {0: "aA", 1: "bB"}, False)
    result = llmstream.parse(body(two, chunk(finish="length", index=1), chunk(finish="stop")), dialect="openai")
    assert result.stop_reasons == {0: "end_turn", 1: "max_tokens"}
    assert result.vendor_stop_reasons == {0: "stop", 1: "length"}
    assert result.complete


def test_a_choice_without_index_is_that_of_its_place(llmstream):
    payload = {
        "choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}, {"index": -1, "delta": {"content": "c"}}]
    }
    events, _ = read(llmstream, payload)
    assert [(e.text, e.index) for e in events[1:]] == [("a", 0), ("b", 1), ("c", 2)]


def test_one_stop_a_choice(llmstream):
    events, _ = read(llmstream, chunk({"content": "a"}, "stop"), chunk({"content": "b"}, "stop"), DONE)
    assert [e.type for e in events] == ["stream.start", "content.delta", "content.stop", "content.delta", "stream.end"]


def test_the_end_mark_is_enough(llmstream):
    events, parser = read(llmstream, chunk({"content": "a"}), DONE)
    assert [e.type for e in events] == ["stream.start", "content.delta", "stream.end"]
    assert parser.complete


def test_the_end_mark_alone(llmstream):
    events, parser = read(llmstream, DONE)
    assert [e.type for e in events] == ["stream.start", "stream.end"]
    assert parser.complete


def test_a_cut_stream_is_not_complete(llmstream):
    events, parser = read(llmstream, chunk({"content": "half"}))
    assert [e.type for e in events] == ["stream.start", "content.delta"]
    assert not parser.complete


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("stop", "end_turn"),
        ("eos", "end_turn"),
        ("length", "max_tokens"),
        ("model_length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("function_call", "tool_use"),
        ("content_filter", "content_filter"),
        ("sensitive", "content_filter"),
        ("error", "error"),
        ("insufficient_system_resource", "insufficient_system_resource"),
    ],
)
def test_stop_reasons(llmstream, word, meaning):
    result = llmstream.parse(body(chunk({"content": "a"}, word)), dialect="openai")
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: meaning}, {0: word})


def test_a_turn_that_ended_with_tool_calls_ended_for_them(llmstream):
    result = llmstream.parse(body(chunk(call("{}", id="a", name="f"), "stop"), DONE), dialect="openai")
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: "tool_use"}, {0: "stop"})


# Usage


@pytest.mark.parametrize(
    "payload",
    [
        chunk(finish="stop", usage={"prompt_tokens": 3, "completion_tokens": 4}),
        chunk(finish="stop", x_groq={"usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
        chunk(finish="stop", usage={"prompt_tokens": 3}, x_groq={"usage": {"completion_tokens": 4}}),
        {"choices": [{"finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    ],
)
def test_places_of_usage(llmstream, payload):
    result = llmstream.parse(body(chunk({"content": "a"}), payload), dialect="openai")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3, 4)


def test_usage_everywhere(llmstream):
    counted = [chunk({"content": "a"}, usage={"prompt_tokens": 3, "completion_tokens": n}) for n in range(1, 6)]
    events, parser = read(llmstream, *counted)
    assert [e.output_tokens for e in events if isinstance(e, llmstream.Usage)] == [1, 2, 3, 4, 5]
    assert parser.usage.output_tokens == 5


def test_counts_that_are_none(llmstream):
    for usage in (None, {}, {"prompt_tokens": "3", "completion_tokens": -1}, {"prompt_tokens": True}, [1, 2]):
        assert llmstream.parse(body(chunk({"content": "a"}, usage=usage), DONE), dialect="openai").usage is None


# Tool calls


def test_tool_calls_in_pieces(llmstream):
    found, violations = calls(
        llmstream,
        chunk(call("", 0, id="a", name="f")),
        chunk(call('{"x"', 0)),
        chunk(call(": 1}", 0)),
        chunk(call('{"y":', 1, id="b", name="g")),
        chunk(call("2}", 1)),
        chunk(finish="tool_calls"),
    )
    assert found == [("a", "f", '{"x": 1}', 0), ("b", "g", '{"y":2}', 0)]
    assert violations == []


def test_pieces_of_several_calls_in_turn(llmstream):
    found, _ = calls(
        llmstream,
        chunk(call("", 1, id="b", name="g")),
        chunk(call("", 0, id="a", name="f")),
        chunk(call('{"b', 1)),
        chunk(call('{"a', 0)),
        chunk(call('":1}', 1)),
        chunk(call('":1}', 0)),
        DONE,
    )
    assert found == [("b", "g", '{"b":1}', 0), ("a", "f", '{"a":1}', 0)]


def test_several_pieces_in_one_delta(llmstream):
    head = {"index": 0, "id": "a", "function": {"name": "f"}}
    pieces = [{"index": 0, "function": {"arguments": "{"}}, {"index": 0, "function": {"arguments": "}"}}]
    found, _ = calls(llmstream, chunk({"tool_calls": [head, *pieces]}), DONE)
    assert found == [("a", "f", "{}", 0)]


@pytest.mark.parametrize("index", [None, "missing", "x", -1])
def test_calls_without_a_number(llmstream, index):
    found, violations = calls(
        llmstream,
        chunk(call('{"a":', index, id="a", name="f")),
        chunk(call("1}", index)),
        chunk(call("{", index, id="b", name="f")),
        chunk(call("}", index)),
        chunk(call("{}", index, name="g")),
        chunk(call("{}", index, name="g")),
        DONE,
    )
    assert found == [
        ("a", "f", '{"a":1}', 0),
        ("b", "f", "{}", 0),
        ("call-0", "g", "{}", 0),
        ("call-1", "g", "{}", 0),
    ]
    assert violations == []


def test_calls_that_all_have_the_number_0(llmstream):
    found, _ = calls(
        llmstream,
        chunk(call("{", 0, id="a", name="f")),
        chunk(call("}", 0)),
        chunk(call('{"x":', 0, id="b", name="f")),
        chunk(call("1}", 0)),
        chunk(call("{}", 0, name="g")),
        DONE,
    )
    assert found == [("a", "f", "{}", 0), ("b", "f", '{"x":1}', 0), ("call-0", "g", "{}", 0)]


def test_id_and_name_with_every_piece(llmstream):
    pieces = [chunk(call(piece, 0, id="a", name="f")) for piece in ('{"x"', ":", "1}")]
    assert calls(llmstream, *pieces, DONE)[0] == [("a", "f", '{"x":1}', 0)]


def test_a_first_number_that_is_not_0(llmstream):
    found, _ = calls(llmstream, chunk(call("", 1, id="a", name="f")), chunk(call("{", 1)), chunk(call("}", 1)), DONE)
    assert found == [("a", "f", "{}", 0)]


def test_a_piece_whose_call_never_began(llmstream):
    found, violations = calls(llmstream, chunk(call("", 0, id="a", name="f")), chunk(call("{}", 2)), DONE)
    assert found == [("a", "f", "{}", 0), ("call-0", "", "{}", 0)]
    assert violations == ["L-CALL"]


def test_calls_of_two_choices(llmstream):
    found, _ = calls(
        llmstream,
        chunk(call("{", 0, id="a", name="f")),
        chunk(call("{", 0, id="a", name="f"), index=1),
        chunk(call("}", 0)),
        chunk(call(" }", 0), index=1),
        chunk(finish="tool_calls", index=1),
        chunk(finish="tool_calls"),
    )
    assert found == [("a", "f", "{ }", 1), ("a", "f", "{}", 0)]


def test_a_call_leaves_before_its_stop(llmstream):
    events, _ = read(llmstream, chunk(call("{}", 0, id="a", name="f"), "tool_calls"))
    assert [e.type for e in events] == ["stream.start", "tool.call", "content.stop", "stream.end"]


def test_arguments_that_are_an_object(llmstream):
    found, _ = calls(llmstream, chunk(call({"b": "é", "a": [1, None]}, 0, id="a", name="f")), DONE)
    assert found == [("a", "f", '{"b":"é","a":[1,null]}', 0)]


def test_no_arguments_at_all(llmstream):
    assert calls(llmstream, chunk(call(None, 0, id="a", name="f")), DONE)[0] == [("a", "f", "{}", 0)]


@pytest.mark.parametrize("arguments", ['{"p":"App\\Http"}', '{"a": NaN}', "get_weather", '{"a":1}{"b":2}'])
def test_arguments_that_are_no_json(llmstream, arguments):
    events, parser = read(llmstream, chunk(call(arguments, 0, id="a", name="f"), "tool_calls"))
    assert events[1].arguments == arguments
    assert events[1].extensions == {"openai:invalid_arguments": True}
    assert [violation.requirement for violation in parser.violations] == ["R5.3.4-4"]


@pytest.mark.parametrize("pieces", [(), ('{"a":',)])
def test_arguments_that_were_cut_are_not_invented(llmstream, pieces):
    events, parser = read(llmstream, chunk(call("", 0, id="a", name="f")), *(chunk(call(piece, 0)) for piece in pieces))
    assert events[1].arguments == "".join(pieces)
    assert events[1].extensions == {"openai:invalid_arguments": True}
    assert not parser.complete


def test_the_input_of_a_custom_tool_is_text(llmstream):
    first = {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": "select"}}]}
    more = {"tool_calls": [{"index": 0, "custom": {"input": " 1"}}]}
    events, parser = read(llmstream, chunk(first), chunk(more), chunk(finish="tool_calls"))
    assert (events[1].name, events[1].arguments) == ("sql", "select 1")
    assert events[1].extensions == {"openai:custom": True}
    assert parser.violation_count == 0


def test_the_legacy_function_call(llmstream):
    found, _ = calls(
        llmstream,
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        chunk(finish="function_call"),
    )
    assert found == [("call-0", "f", '{"a":1}', 0)]


def test_the_limit_of_arguments(llmstream):
    class Limited(import_module("llmstream.dialects.openai").OpenAI):
        max_argument_size = 2000

    parser = llmstream.Parser(Limited)
    pieces = [chunk(call('"' if n == 0 else "x" * 100, 0)) for n in range(30)]
    parser.feed(body(chunk(call("", 0, id="a", name="f")), *pieces))
    tool_call = next(e for e in parser.feed(body(DONE)) if isinstance(e, llmstream.ToolCall))
    assert 500 < len(tool_call.arguments) < 2000
    assert [violation.requirement for violation in parser.violations] == ["L-SIZE", "R5.3.4-4"]


# Errors in band


@pytest.mark.parametrize(
    ("payload", "code", "message", "own"),
    [
        ({"error": {"message": "quota"}}, "internal_error", "quota", None),
        ({"error": {"message": "m", "type": "server_error", "code": None}}, "internal_error", "m", "server_error"),
        (
            {"error": {"message": "m", "type": "tokens", "code": "rate_limit_exceeded"}},
            "rate_limited",
            "m",
            "rate_limit_exceeded",
        ),
        ({"error": {"message": "m", "code": 429}}, "rate_limited", "m", 429),
        (
            {"error": {"message": "m", "code": "context_length_exceeded"}},
            "context_length_exceeded",
            "m",
            "context_length_exceeded",
        ),
        (
            {"error": {"message": "m", "code": "content_filter"}, "choices": []},
            "content_filtered",
            "m",
            "content_filter",
        ),
        ({"error": {"message": "m", "code": "tool_use_failed"}}, "tool_use_failed", "m", "tool_use_failed"),
        ({"error": {"message": "m", "code": 418}}, "418", "m", 418),
        ({"error": "Input too long", "error_type": "validation"}, "validation", "Input too long", "validation"),
        ({"object": "error", "message": "m", "type": "BadRequestError", "code": 400}, "BadRequestError", "m", 400),
        ({"x_groq": {"id": "r", "error": "over capacity"}, "choices": []}, "internal_error", "over capacity", None),
        (chunk({"content": ""}, "error", error={"code": 502, "message": "m"}), "internal_error", "m", 502),
        ({"choices": [{"index": 0, "error": {"code": 503, "message": "m"}}]}, "overloaded", "m", 503),
    ],
)
def test_errors(llmstream, payload, code, message, own):
    for before in ((), (chunk({"content": "half"}),)):
        result = llmstream.parse(body(*before, payload, DONE), dialect="openai")
        assert (result.error.code, result.error.message) == (code, message)
        assert result.error.extensions == ({} if own is None else {"openai:code": own})
        events, _ = read(llmstream, *before, payload, DONE)
        assert events[0].type == "stream.start"
        assert [e.type for e in events].count("error") == 1


def test_an_error_by_the_name_of_its_event(llmstream):
    stream = body(chunk({"content": "a"})) + b'event: error\ndata: {"detail": "gone", "code": "x"}\n\n'
    result = llmstream.parse(stream, dialect="openai")
    assert (result.error.code, result.error.message) == ("x", "gone")


@pytest.mark.parametrize("error", [None, {}, "", [], 0, False])
def test_what_is_no_error(llmstream, error):
    result = llmstream.parse(body(chunk({"content": "a"}, "stop", error=error), DONE), dialect="openai")
    assert result.error is None
    assert result.complete


def test_an_error_body_instead_of_the_stream(llmstream):
    error = {"error": {"message": "no key", "code": "invalid_api_key"}}
    for text in (json.dumps(error), json.dumps(error, indent=2)):
        for dialect in ("openai", "auto"):
            result = llmstream.parse(text.encode(), dialect=dialect)
            assert (result.error.code, result.error.message) == ("invalid_api_key", "no key")
            assert not result.complete


def test_events_of_another_kind_are_passed_over(llmstream):
    stream = b'event: tool.progress\ndata: {"p": 1}\n\n' + body({"choices": []}, chunk({"content": "a"}, "stop"), DONE)
    result = llmstream.parse(stream, dialect="openai")
    assert (result.text, result.complete, result.violation_count) == ("a", True, 0)


def test_an_end_mark_without_its_blank_line_after_all_stop_reasons(llmstream):
    chunk = b'data: {"id":"x","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"a"}%s}]}\n\n'
    head = chunk % b"" + chunk % b',"finish_reason":"stop"'
    for tail in (b"", b"data: [DONE]\n\n", b"data: [DONE]\n", b"data: [DONE]"):
        parser = llmstream.Parser("openai")
        parser.feed(head + tail)
        parser.close()
        assert parser.complete, tail
    parser = llmstream.Parser("openai")
    parser.feed(chunk % b"" + b"data: [DONE]\n")
    parser.close()
    assert not parser.complete


# Calls whose names come in pieces, twice or not at all


def named(*pieces, legacy=False, **first):
    """The deltas of a call: (name, arguments) each, None for what is not there."""
    found = []
    for at, (name, arguments) in enumerate(pieces):
        function = {"name": name, "arguments": arguments}
        function = {key: value for key, value in function.items() if value is not None}
        call = {"index": 0, "function": function, **(first if not at else {})}
        found.append({"function_call": function} if legacy else {"tool_calls": [call]})
    return found


@pytest.mark.parametrize("same_id", [True, False])
@pytest.mark.parametrize(
    "pieces",
    [
        [("get_", None), ("weather", "{}")],
        [("get_", ""), ("wea", ""), ("ther", None), (None, "{"), (None, "}")],
        [("get_weather", ""), ("get_weather", "{"), ("get_weather", "}")],
        [("get_weather", None), ("get_weather", None), ("", "{}")],
    ],
)
def test_a_name_in_pieces_or_repeated_is_that_of_one_call(llmstream, pieces, same_id):
    """As the vendor's own library puts it together, but for a name that every piece repeats."""
    choices = {
        "id at first": named(*pieces, id="x"),
        "legacy": named(*pieces, legacy=True),
        "no id": named(*pieces),
    }
    if same_id:
        choices["id at first"] = [named(each, id="x")[0] for each in pieces]
    for how, deltas in choices.items():
        payloads = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        payloads.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
        data = b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)
        result = llmstream.parse(data + b"data: [DONE]\n\n", dialect="openai")
        found = [(call.name, call.arguments) for call in result.tool_calls]
        assert found == [("get_weather", "{}")], how
        assert not result.violations


def test_another_name_after_the_arguments_is_another_call(llmstream):
    payloads = [{"choices": [{"index": 0, "delta": delta}]} for delta in named(("f", "{}"), ("g", "{}"))]
    payloads.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    data = b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)
    assert [call.name for call in llmstream.parse(data, dialect="openai").tool_calls] == ["f", "g"]


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("reason", ["length", "content_filter", "tool_calls"])
def test_a_call_that_was_cut_before_its_arguments(llmstream, reason, legacy):
    """No arguments are none where the turn ended well; where it was cut they were still to come."""
    payloads = [{"choices": [{"index": 0, "delta": delta}]} for delta in named(("rm", ""), legacy=legacy)]
    payloads.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    data = b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads) + b"data: [DONE]\n\n"
    [call] = llmstream.parse(data, dialect="openai").tool_calls
    is_whole = reason == "tool_calls"
    assert call.arguments == ("{}" if is_whole else "")
    assert ("openai:invalid_arguments" in call.extensions) is not is_whole
    for to in (llmstream.Transcoder("openai"), llmstream.StreamTranslator("anthropic", "openai")):
        to.feed(data)
        to.close()
        assert to.complete is is_whole


def test_a_call_without_a_name_is_written_by_all_alike(llmstream):
    payloads = [{"choices": [{"index": 0, "delta": delta}]} for delta in named((None, "{}"), id="a")]
    payloads.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    data = b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads) + b"data: [DONE]\n\n"
    result = llmstream.parse(data, dialect="openai")
    assert [(violation.requirement, violation.severity) for violation in result.violations] == [("L-CALL", "warning")]
    output = b"".join(llmstream.transcode([data], dialect="openai"))
    assert llmstream.check(output).ok
    streams = [("llm-stream", output)]
    for to in ("openai", "anthropic", "gemini"):
        streams.append((to, b"".join(llmstream.translate_stream(data, to=to, dialect="openai"))))
        streams.append((to, b"".join(llmstream.translate_stream(output, to=to))))
    for dialect, stream in streams:
        found = llmstream.parse(stream, dialect=dialect)
        assert [(call.name, call.arguments) for call in found.tool_calls] == [("", "{}")], dialect
        assert found.complete
