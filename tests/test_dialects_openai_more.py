"""OpenAI's other APIs: Responses, completions, assistants, transcriptions; one kind a test."""

from __future__ import annotations

import pytest

from vendors import body, sse

WHOLE = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "gpt-x"}
CREATED = {"type": "response.created", "response": {**WHOLE, "status": "in_progress", "usage": None, "output": []}}


def ended(status="completed", **more):
    usage = {"input_tokens": 7, "output_tokens": 5}
    return {"type": f"response.{status}", "response": {**WHOLE, "status": status, "usage": usage, **more}}


def added(index, kind, **more):
    return {"type": "response.output_item.added", "output_index": index, "item": {"type": kind, **more}}


def done(index, kind, /, **more):
    return {"type": "response.output_item.done", "output_index": index, "item": {**more, "type": kind}}


def delta(kind, words, index=0, **more):
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": words, **more}


def text(words, index=0, **more):
    return delta("output_text", words, index, content_index=0, **more)


def parse(llmstream, *payloads, dialect="openai-responses"):
    data = body(*payloads)
    result = llmstream.parse(data, dialect=dialect)
    assert llmstream.parse([data[at : at + 1] for at in range(len(data))], dialect=dialect) == result
    return result


def deltas(llmstream, *payloads, dialect="openai-responses"):
    return [e for e in llmstream.iter_events(body(*payloads), dialect=dialect) if e.type == "content.delta"]


def test_a_response(llmstream):
    parts = [{"type": "output_text", "text": "Hello", "annotations": []}]
    events = list(
        llmstream.iter_events(
            body(
                CREATED,
                added(0, "reasoning", summary=[]),
                delta("reasoning_summary_text", "Hm", 0, summary_index=0),
                delta("reasoning_text", "m", 0),
                done(0, "reasoning", summary=[{"type": "summary_text", "text": "Hm"}], encrypted_content="e"),
                added(1, "message", content=[]),
                text("Hel", 1),
                text("lo", 1, logprobs=[{"token": "lo"}]),
                {"type": "response.output_text.done", "output_index": 1, "text": "Hello"},
                {"type": "response.content_part.done", "output_index": 1, "part": parts[0]},
                done(1, "message", content=parts),
                ended(),
            ),
            dialect="openai-responses",
        )
    )
    e = llmstream
    assert events[0] == e.StreamStart(model="gpt-x", created=1700000000, request_id="resp_1", seq=0)
    assert [(d.text, d.reasoning, d.index) for d in events if d.type == "content.delta"] == [
        ("", "Hm", 0),
        ("", "m", 0),
        ("", None, 0),
        ("Hel", None, 1),
        ("lo", None, 1),
    ]
    assert [event.extensions for event in events[3:6:2]] == [
        {"openai-responses:encrypted_content": "e"},
        {"openai-responses:logprobs": [{"token": "lo"}]},
    ]
    assert events[-1].type == "stream.end"
    assert events[-1].request_id == "resp_1"
    assert [(s.stop_reason, s.index) for s in events if s.type == "content.stop"] == [("end_turn", 0), ("end_turn", 1)]
    assert [(u.input_tokens, u.output_tokens) for u in events if u.type == "usage"] == [(7, 5)]


def test_calls_in_pieces_whole_and_custom(llmstream):
    call = {"call_id": "call_1", "name": "f"}
    result = parse(
        llmstream,
        CREATED,
        added(0, "function_call", arguments="", **call),
        delta("function_call_arguments", '{"a"', 0),
        delta("function_call_arguments", ":1}", 0),
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a":1}'},
        done(0, "function_call", arguments='{"a":1}', **call),
        done(1, "function_call", arguments='{"b":2}', call_id="call_2", name="g"),
        added(2, "custom_tool_call", input="", call_id="call_3", name="sql"),
        delta("custom_tool_call_input", "SELECT ", 2),
        delta("custom_tool_call_input", "1", 2),
        done(2, "custom_tool_call", input="SELECT 1", call_id="call_3", name="sql"),
        ended(),
    )
    assert [(c.id, c.name, c.arguments, c.index) for c in result.tool_calls] == [
        ("call_1", "f", '{"a":1}', 0),
        ("call_2", "g", '{"b":2}', 1),
        ("call_3", "sql", "SELECT 1", 2),
    ]
    assert result.tool_calls[2].extensions == {"openai-responses:custom": True}
    assert result.stop_reasons == dict.fromkeys(range(3), "tool_use")
    assert result.vendor_stop_reasons == dict.fromkeys(range(3), "completed")
    assert not result.violations


def test_what_the_vendor_runs_is_no_call(llmstream):
    found = deltas(llmstream, CREATED, done(0, "web_search_call", id="ws_1", status="completed"), ended())
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert [d.extensions for d in found] == [{"openai-responses:web_search_call": item}]


def test_refusals_and_annotations(llmstream):
    note = {"type": "url_citation", "url": "u"}
    found = deltas(
        llmstream,
        CREATED,
        delta("refusal", "I can"),
        delta("refusal", "not"),
        {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": note},
        done(0, "message", content=[{"type": "refusal", "refusal": "I cannot"}]),
        ended(),
    )
    assert [d.text for d in found] == ["", "", ""]
    assert [next(iter(d.extensions.values())) for d in found] == ["I can", "not", note]


@pytest.mark.parametrize(
    ("status", "details", "vendor", "word"),
    [
        ("completed", None, "completed", "end_turn"),
        ("incomplete", {"reason": "max_output_tokens"}, "incomplete:max_output_tokens", "max_tokens"),
        ("incomplete", {"reason": "content_filter"}, "incomplete:content_filter", "content_filter"),
        ("incomplete", None, "incomplete", "max_tokens"),
        ("cancelled", None, "cancelled", "cancelled"),
    ],
)
def test_ends(llmstream, status, details, vendor, word):
    result = parse(llmstream, CREATED, text("a"), ended(status, incomplete_details=details))
    assert (result.stop_reasons, result.vendor_stop_reasons, result.complete) == ({0: word}, {0: vendor}, True)


@pytest.mark.parametrize(
    ("payloads", "code", "message", "complete"),
    [
        ([ended("failed", error={"code": "server_error", "message": "m"})], "internal_error", "m", True),
        ([ended("failed", error=None)], "internal_error", "", True),
        (
            [{"type": "error", "code": "rate_limit_exceeded", "message": "m", "sequence_number": 4}],
            "rate_limited",
            "m",
            0,
        ),
        (
            [{"type": "error", "error": {"type": "invalid_request_error", "message": "m"}}],
            "invalid_request_error",
            "m",
            0,
        ),
    ],
)
def test_errors(llmstream, payloads, code, message, complete):
    result = parse(llmstream, CREATED, text("a"), *payloads)
    assert (result.error.code, result.error.message, result.complete) == (code, message, complete)


MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}


def whole(kind, index=0, **more):
    return {"type": f"response.{kind}.done", "output_index": index, **more}


def ended_item(index, item):
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def ended_with(*output):
    return ended(output=list(output))


def everywhere(pieces, whole_text, part, item):
    """Every choice of the payloads that say the same words: in pieces, as a whole text, part and item."""
    from itertools import product

    for chosen in product((True, False), repeat=4):
        payloads = [each for each, is_there in zip((pieces, whole_text, part, item), chosen, strict=True) if is_there]
        yield [payload for each in payloads for payload in each]


@pytest.mark.parametrize("announced", [True, False])
def test_words_are_told_once_wherever_they_stand(llmstream, announced):
    begin = [added(0, "message", content=[])] if announced else []
    choices = everywhere(
        [text("h"), text("i")],
        [whole("output_text", text="hi", content_index=0)],
        [whole("content_part", part=MESSAGE["content"][0], content_index=0)],
        [ended_item(0, MESSAGE)],
    )
    for payloads in choices:
        for output in ([MESSAGE], []):
            if payloads or output:
                result = parse(llmstream, CREATED, *begin, *payloads, ended_with(*output))
                assert (result.text, result.stop_reasons, result.complete) == ("hi", {0: "end_turn"}, True)
                assert not result.violations


@pytest.mark.parametrize(("place", "kind"), [("summary", "reasoning_summary"), ("content", "reasoning")])
def test_thoughts_are_told_once_wherever_they_stand(llmstream, place, kind):
    item = {"type": "reasoning", place: [{"type": f"{kind}_text", "text": "hm"}]}
    part = whole("reasoning_summary_part" if place == "summary" else "content_part", part=item[place][0])
    choices = everywhere(
        [delta(f"{kind}_text", "h"), delta(f"{kind}_text", "m")],
        [whole(f"{kind}_text", text="hm", **{f"{place}_index": 0})],
        [part | {f"{place}_index": 0}],
        [ended_item(0, item)],
    )
    for payloads in choices:
        result = parse(llmstream, CREATED, added(0, "reasoning"), *payloads, ended_with(item, MESSAGE))
        assert (result.reasoning, result.text, result.complete) == ("hm", "hi", True)


def test_refusals_are_told_once_wherever_they_stand(llmstream):
    part = {"type": "refusal", "refusal": "no"}
    choices = everywhere(
        [delta("refusal", "n"), delta("refusal", "o")],
        [whole("refusal", refusal="no", content_index=0)],
        [whole("content_part", part=part, content_index=0)],
        [done(0, "message", content=[part])],
    )
    for payloads in choices:
        item = {"type": "message", "content": [part]}
        found = deltas(llmstream, CREATED, added(0, "message"), *payloads, ended_with(item))
        assert "".join(each.extensions["openai-responses:refusal"] for each in found) == "no"


def test_several_parts_that_came_whole(llmstream):
    parts = [{"type": "output_text", "text": words} for words in ("a", "b", "c")]
    payloads = [whole("output_text", text=words, content_index=at) for at, words in ((0, "a"), (1, "b"))]
    item = {"type": "message", "content": parts}
    for last in ([ended_item(0, item), ended_with(item)], [ended_with(item)]):
        assert parse(llmstream, CREATED, added(0, "message"), *payloads, *last).text == "abc"


@pytest.mark.parametrize("announced", [True, False])
def test_calls_are_told_once_wherever_they_stand(llmstream, announced):
    begin = [added(0, "function_call", call_id="c1", name="f", arguments="")] if announced else []
    call = {**CALL, "arguments": '{"a":1}'}
    choices = everywhere(
        [delta("function_call_arguments", '{"a"'), delta("function_call_arguments", ":1}")],
        [whole("function_call_arguments", arguments='{"a":1}')],
        [whole("function_call_arguments", arguments='{"a":1}', name="f", call_id="c1")],
        [ended_item(0, call)],
    )
    for payloads in choices:
        for output in ([call], [{**call, "call_id": "other"}], []):
            if output or any("item" in payload for payload in payloads):
                result = parse(llmstream, CREATED, *begin, *payloads, ended_with(*output))
                assert [(c.name, c.arguments) for c in result.tool_calls] == [("f", '{"a":1}')]
                assert (result.stop_reasons, result.complete) == ({0: "tool_use"}, True)
                assert not result.violations


def test_a_call_that_stands_only_in_the_whole_response(llmstream):
    for pieces in ([text("hi")], [added(0, "message"), text("hi")], [ended_item(0, MESSAGE)]):
        result = parse(llmstream, CREATED, *pieces, ended_with(MESSAGE, CALL))
        assert (result.text, [c.id for c in result.tool_calls]) == ("hi", ["c1"])
        assert result.stop_reasons == {0: "end_turn", 1: "tool_use"}
    custom = {"type": "custom_tool_call", "call_id": "c2", "name": "sql", "input": "SELECT 1"}
    result = parse(llmstream, CREATED, ended_item(0, CALL), ended_with(CALL, custom))
    assert [(c.id, c.name, c.arguments) for c in result.tool_calls] == [("c1", "f", "{}"), ("c2", "sql", "SELECT 1")]


def test_a_message_that_stands_only_in_the_whole_response(llmstream):
    more = {"type": "message", "content": [{"type": "output_text", "text": "more"}]}
    result = parse(llmstream, CREATED, added(0, "message"), text("hi"), ended_with(MESSAGE, more))
    assert (result.text, result.complete) == ("himore", True)


def test_items_of_other_numbers_are_not_told_again(llmstream):
    """Servers that give every item the number 0, or count otherwise than in the whole response."""
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    for pieces in (
        [text("hi")],
        [added(0, "message"), text("hi")],
        [text("hi", 5)],
        [added(0, "message"), text("hi", 3)],
    ):
        result = parse(llmstream, CREATED, *pieces, ended_with(thought, MESSAGE))
        assert (result.text, result.complete) == ("hi", True)
    call = added(0, "function_call", call_id="c1", name="f"), delta("function_call_arguments", "{}")
    result = parse(llmstream, CREATED, text("hi"), *call, ended_with(thought, MESSAGE, CALL))
    assert (result.text, [c.id for c in result.tool_calls]) == ("hi", ["c1"])


def test_what_was_told_is_kept_within_bounds(llmstream):
    payloads = [whole("output_text", text="a", content_index=at) for at in range(5000)]
    result = parse(llmstream, CREATED, *payloads, ended())
    assert len(result.text) == 4096
    assert [violation.requirement for violation in result.violations] == ["L-BLOCKS"]


def test_a_cut_response_is_incomplete(llmstream):
    assert not parse(llmstream, CREATED, text("a"), done(0, "message", content=[])).complete


def test_done_after_the_end_is_no_fault(llmstream):
    result = llmstream.parse(body(CREATED, text("a"), ended()) + sse("[DONE]"), dialect="openai-responses")
    assert result.complete
    assert not result.violations


@pytest.mark.parametrize("way", ["item", "end", "json"])
def test_words_that_come_only_whole(llmstream, way):
    message = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = [thought, message, call]
    if way == "item":
        payloads = [
            CREATED,
            *(done(index, item["type"], **item) for index, item in enumerate(output)),
            ended(output=output),
        ]
    elif way == "end":
        payloads = [CREATED, ended(output=output)]
    else:
        payloads = [ended(output=output)["response"]]
    result = parse(llmstream, *payloads)
    assert (result.text, result.reasoning) == ("Hello", "Hm")
    assert [(c.id, c.index) for c in result.tool_calls] == [("c", 2)]
    assert result.complete


# Completions


def completion(words, reason=None, index=0, **more):
    choice = {"text": words, "index": index, "logprobs": None, "finish_reason": reason}
    return {"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "m", "choices": [choice], **more}


def test_completions(llmstream):
    result = parse(
        llmstream,
        completion("Hel"),
        completion("lo", index=0),
        completion("Other", index=1),
        completion("", "length", 0),
        completion("", "stop", 1, usage={"prompt_tokens": 3, "completion_tokens": 4}),
        "[DONE]",
        dialect="openai-completions",
    )
    assert (result.text, result.texts, result.model) == ("Hello", {0: "Hello", 1: "Other"}, "m")
    assert result.stop_reasons == {0: "max_tokens", 1: "end_turn"}
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3, 4)
    assert result.complete


def test_completions_with_logprobs_and_errors(llmstream):
    first = completion("a")
    first["choices"][0]["logprobs"] = {"tokens": ["a"]}
    found = deltas(llmstream, first, dialect="openai-completions")
    assert [d.extensions for d in found] == [{"openai-completions:logprobs": {"tokens": ["a"]}}]
    result = parse(llmstream, completion("a"), {"error": {"code": 429, "message": "m"}}, dialect="openai-completions")
    assert (result.error.code, result.complete) == ("rate_limited", False)


# Assistants

RUN = {"id": "run_1", "object": "thread.run", "created_at": 9, "model": "gpt-x", "status": "queued"}


def message(*parts):
    return {"id": "msg_1", "object": "thread.message.delta", "delta": {"content": list(parts)}}


def step(*calls):
    return {
        "object": "thread.run.step.delta",
        "delta": {"step_details": {"type": "tool_calls", "tool_calls": list(calls)}},
    }


def test_a_run(llmstream):
    ran = {"id": "call_1", "type": "code_interpreter", "code_interpreter": {"input": "1+1", "outputs": []}}
    details = {"type": "tool_calls", "tool_calls": [ran]}
    payloads = [
        {"id": "thread_1", "object": "thread"},
        RUN,
        {"object": "thread.run.step", "status": "completed", "step_details": details, "usage": {"prompt_tokens": 1}},
        message({"index": 0, "type": "text", "text": {"value": "It is ", "annotations": []}}),
        message({"index": 0, "type": "text", "text": {"value": "2", "annotations": [{"type": "file_citation"}]}}),
        {
            "object": "thread.message",
            "status": "completed",
            "content": [{"type": "text", "text": {"value": "It is 2"}}],
        },
        {**RUN, "status": "completed", "usage": {"prompt_tokens": 30, "completion_tokens": 4}},
        "[DONE]",
    ]
    result = parse(llmstream, *payloads, dialect="openai-assistants")
    assert (result.text, result.model, result.complete) == ("It is 2", "gpt-x", True)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (30, 4)
    assert (result.stop_reasons, result.tool_calls) == ({0: "end_turn"}, [])
    first, *events = llmstream.iter_events(body(*payloads), dialect="openai-assistants")
    assert (first.request_id, first.created) == ("run_1", 9)
    assert events[0].extensions == {"openai-assistants:code_interpreter": ran}
    assert events[2].extensions == {"openai-assistants:annotations": [{"type": "file_citation"}]}


@pytest.mark.parametrize("streamed", [True, False])
def test_a_run_that_wants_tools(llmstream, streamed):
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    pieces = [
        step({"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}),
        step({"index": 0, "type": "function", "function": {"arguments": '{"a":1}'}}),
        step({"index": 1, **calls[1]}),
    ]
    wanted = {**RUN, "status": "requires_action", "required_action": {"submit_tool_outputs": {"tool_calls": calls}}}
    payloads = [RUN, *(pieces if streamed else []), wanted, "[DONE]"]
    result = parse(llmstream, *payloads, dialect="openai-assistants")
    assert [(c.id, c.name, c.arguments) for c in result.tool_calls] == [
        ("call_1", "f", '{"a":1}'),
        ("call_2", "g", "{}"),
    ]
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: "tool_use"}, {0: "requires_action"})


def test_a_run_that_fails(llmstream):
    failed = {**RUN, "status": "failed", "last_error": {"code": "rate_limit_exceeded", "message": "m"}}
    result = parse(llmstream, RUN, failed, "[DONE]", dialect="openai-assistants")
    assert (result.error.code, result.error.message, result.vendor_stop_reasons) == ("rate_limited", "m", {0: "failed"})


# Transcriptions


def test_transcriptions(llmstream):
    pieces = [{"type": "transcript.text.delta", "delta": word} for word in ("Ruby ", "is")]
    end = {"type": "transcript.text.done", "text": "Ruby is", "usage": {"input_tokens": 3, "output_tokens": 2}}
    segment = {"type": "transcript.text.segment", "text": "Ruby is", "speaker": "A"}
    result = parse(llmstream, *pieces, segment, end, "[DONE]", dialect="openai-transcriptions")
    assert (result.text, result.stop_reasons, result.vendor_stop_reasons) == ("Ruby is", {0: "end_turn"}, {})
    assert (result.usage.input_tokens, result.usage.output_tokens, result.complete) == (3, 2, True)
    assert parse(llmstream, end, dialect="openai-transcriptions").text == "Ruby is"
    assert not parse(llmstream, *pieces, dialect="openai-transcriptions").complete
