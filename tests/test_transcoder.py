"""The transcoder: what it writes for each thing that a vendor may send (draft, sections 5 and 7.1)."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

import splits
from drafts import delta, end, envelope, error, event, start, stop, tool_call, usage
from standard import CREATED, calls, checked, clock, kinds, read, text, written
from vendors import VENDORS, anthropic, aws, body, gemini, invoked, lines, openai, openai_chunk, sse

DONE = sse("[DONE]")
CUT = {"type": "error", "code": "internal_error", "message": "the stream stopped before its end"}


def call_chunk(arguments, id="call_1", name="f", index=0, number=0):
    call = {"index": number, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return openai_chunk({"tool_calls": [call]}, index=index)


# What a whole answer becomes


def test_openai(llmstream):
    output, transcoder = written(llmstream, b"".join(openai(["Hel", "lo"], ["Hm"], ["{", '"a":1}'])), "openai")
    assert read(output) == [
        {"type": "stream.start", "request_id": "chatcmpl-1", "model": "gpt-x", "created": 1700000000},
        {"type": "content.delta", "index": 0, "delta": {"text": ""}, "extensions": {"openai:reasoning": "Hm"}},
        {"type": "content.delta", "index": 0, "delta": {"text": "Hel"}},
        {"type": "content.delta", "index": 0, "delta": {"text": "lo"}},
        {"type": "tool.call", "index": 0, "id": "call_1", "name": "f", "arguments": '{"a":1}'},
        {
            "type": "content.stop",
            "index": 0,
            "stop_reason": "tool_use",
            "extensions": {"openai:stop_reason": "tool_calls"},
        },
        {"type": "usage", "input_tokens": 3, "output_tokens": 5},
        {"type": "stream.end", "request_id": "chatcmpl-1"},
    ]
    assert (transcoder.dialect, transcoder.model, transcoder.stop_reasons) == ("openai", "gpt-x", {0: "tool_use"})
    assert (transcoder.usage.input_tokens, transcoder.usage.output_tokens) == (3, 5)
    assert (transcoder.error, transcoder.violations, transcoder.violation_count) == (None, [], 0)
    assert (transcoder.next_seq, transcoder.left_out, transcoder.parser.dialect) == (8, 0, "openai")


def test_anthropic(llmstream):
    output, _ = written(llmstream, b"".join(anthropic(["Hi"], ["Hm"], ["{}"])), "anthropic")
    stopped = {"stop_reason": "tool_use", "extensions": {"anthropic:stop_reason": "tool_use"}}
    assert read(output) == [
        {"type": "stream.start", "request_id": "msg_1", "model": "claude-x", "created": CREATED},
        {"type": "usage", "input_tokens": 3, "output_tokens": 1},
        {"type": "content.delta", "index": 0, "delta": {"text": ""}, "extensions": {"anthropic:reasoning": "Hm"}},
        {"type": "content.delta", "index": 1, "delta": {"text": "Hi"}},
        {"type": "tool.call", "index": 2, "id": "toolu_1", "name": "f", "arguments": "{}"},
        *({"type": "content.stop", "index": index, **stopped} for index in range(3)),
        {"type": "usage", "input_tokens": 3, "output_tokens": 5},
        {"type": "stream.end", "request_id": "msg_1"},
    ]


def test_gemini_counts_with_every_fragment_and_is_told_once(llmstream):
    output, transcoder = written(llmstream, b"".join(gemini(["a", "b", "c"])), "gemini")
    assert [event for event in read(output) if event["type"] == "usage"] == [
        {"type": "usage", "input_tokens": 3, "output_tokens": 3},
        {"type": "usage", "input_tokens": 3, "output_tokens": 5},
    ]
    assert text(output) == {0: "abc"}
    assert transcoder.complete


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_split_gives_the_same_bytes(llmstream, vendor):
    data = b"".join(VENDORS[vendor](["Hel", "lo \U0001f600\u2028"], ["Hm"], ["{", '"a":1}']))
    whole, _ = written(llmstream, data, vendor)
    for chunks in (*splits.some_ways(data), *list(splits.in_two(data))[::3]):
        assert b"".join(_fed(llmstream, chunks, vendor)) == whole


def _fed(llmstream, chunks, dialect="auto", **options):
    transcoder = llmstream.Transcoder(dialect, **{"clock": clock, **options})
    return [*map(transcoder.feed, chunks), transcoder.close()]


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_event_goes_out_with_its_bytes(llmstream, vendor):
    """stream.start with the first event of the vendor, and each delta with its own."""
    pieces = VENDORS[vendor](["Hel", "lo", "!"])
    texts = []
    for number, piece in enumerate(_fed(llmstream, pieces, vendor)):
        found = read_some(piece)
        if not number:
            assert found[0]["type"] == "stream.start"
        texts.append([event["delta"]["text"] for event in found if event["type"] == "content.delta"])
    assert [each for each in texts if each] == [["Hel"], ["lo"], ["!"]]


def read_some(output):
    return [json.loads(line[6:]) for line in output.decode().splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_are_taken(llmstream, kind):
    data = b"".join(openai(["a"]))
    assert written(llmstream, [kind(data)], "openai")[0] == written(llmstream, data, "openai")[0]
    with pytest.raises(TypeError):
        llmstream.Transcoder("openai").feed("text")


def test_memory_does_not_grow_with_the_stream(llmstream):
    import tracemalloc

    piece = b"".join(openai_chunk({"content": "some words of an answer"}) for _ in range(200))
    transcoder = llmstream.Transcoder("openai")
    tracemalloc.start()
    try:
        transcoder.feed(piece)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(30):
            transcoder.feed(piece)
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


# Reasoning and the vendor's words


def test_reasoning_is_kept_or_dropped(llmstream):
    data = b"".join(openai(["a"], ["Hm", "m"]))
    kept, _ = written(llmstream, data, "openai")
    thoughts = [event.get("extensions", {}).get("openai:reasoning") for event in read(kept)]
    assert [each for each in thoughts if each] == ["Hm", "m"]
    dropped, _ = written(llmstream, data, "openai", reasoning="drop")
    assert kinds(dropped) == ["stream.start", "content.delta", "content.stop", "usage", "stream.end"]
    with pytest.raises(ValueError, match="reasoning must be"):
        llmstream.Transcoder(reasoning="text")


def test_what_stands_beside_a_thought_stays_when_it_is_dropped(llmstream):
    part = {"text": "Hm", "thought": True, "thoughtSignature": "c2ln"}
    data = body({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})
    for reasoning, more in (("extensions", {"gemini:reasoning": "Hm"}), ("drop", {})):
        found = read(written(llmstream, data, "gemini", reasoning=reasoning)[0])
        assert found[1]["extensions"] == {"gemini:thoughtSignature": "c2ln", **more}
        assert found[1]["delta"] == {"text": ""}


def test_the_vendors_words_travel_in_extensions(llmstream):
    logprobs = {"content": [{"token": "a", "logprob": -0.5}]}
    choice = {"index": 0, "delta": {"content": "a"}, "logprobs": logprobs, "finish_reason": None}
    refused = openai_chunk({"refusal": "no"}, "content_filter")
    found = read(written(llmstream, body({"model": "m", "choices": [choice]}) + refused + DONE, "groq")[0])
    assert found[1] == {
        "type": "content.delta",
        "index": 0,
        "delta": {"text": "a"},
        "extensions": {"groq:logprobs": logprobs},
    }
    assert found[2]["extensions"] == {"groq:refusal": "no"}
    assert (found[3]["stop_reason"], found[3]["extensions"]) == (
        "content_filter",
        {"groq:stop_reason": "content_filter"},
    )


def test_an_unknown_stop_reason_is_handed_on(llmstream):
    """A-12: a warning, and no word that says something else."""
    output, transcoder = written(llmstream, openai_chunk({"content": "a"}, "strange") + DONE, "openai")
    assert transcoder.stop_reasons == {0: "strange"}
    assert [violation.requirement for violation in llmstream.check(output).violations] == ["R5.3.3-2", "R5.3.5-3"]


# stream.start


def test_the_model_that_the_vendor_does_not_name(llmstream):
    """R5.3.1-3, A-21: "" or what the caller says; the vendor's own where there is one."""
    data = body({"generation": "a", "prompt_token_count": 1, "generation_token_count": 1, "stop_reason": "stop"})
    framed = b"".join(invoked(json.loads(line[6:])) for line in data.decode().split("\n\n") if line)
    for options, model in (({}, ""), ({"model": "llama"}, "llama")):
        output, transcoder = written(llmstream, framed, "bedrock", **options)
        assert read(output)[0] == {"type": "stream.start", "model": model, "created": CREATED}
        assert transcoder.model == model
    output, transcoder = written(llmstream, b"".join(openai(["a"])), "openai", model="mine")
    assert read(output)[0]["model"] == transcoder.model == "gpt-x"
    assert llmstream.Transcoder(model="mine").model is None


def test_a_model_that_comes_late(llmstream):
    """Azure names it with the first choice: the start waits for that, and no longer."""
    first = {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": []}
    transcoder = llmstream.Transcoder("azure", clock=clock)
    assert transcoder.feed(sse(first)) == b""
    found = read(transcoder.feed(openai_chunk({"role": "assistant", "content": ""})))
    assert [(event["type"], event["model"], event["request_id"]) for event in found] == [
        ("stream.start", "gpt-x", "chatcmpl-1")
    ]
    assert found[0]["created"] >= CREATED  # never 0


@pytest.mark.parametrize(
    ("given", "created"),
    [
        (1749292800, 1749292800),
        (1749292800123, 1749292800),
        (1749292800123456, 1749292800),
        (0, CREATED),
        (None, CREATED),
        (-5, CREATED),
        ("x", CREATED),
        (2**63 - 1, (2**63 - 1) // 10**9),
    ],
)
def test_created(llmstream, given, created):
    """R5.3.1-3: in seconds, and the clock's where the vendor gives none."""
    chunk = {"model": "m", "created": given, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert read(written(llmstream, body(chunk), "openai")[0])[0]["created"] == created


def test_the_clock_is_asked_when_the_stream_starts(llmstream):
    asked = []

    def count():
        asked.append(1)
        return 5

    transcoder = llmstream.Transcoder("anthropic", clock=count)
    transcoder.feed(b": nothing yet\n\n")
    assert asked == []
    assert b'"created":5' in transcoder.feed(anthropic(["a"])[0])
    transcoder.feed(b"".join(anthropic(["a"])[1:]))
    assert asked == [1]


def test_the_requests_id_is_echoed(llmstream):
    """R4.6-2; the vendor's own id stays beside it."""
    output, _ = written(llmstream, b"".join(openai(["a"])), "openai", request_id="mine")
    first, *_, last = read(output)
    assert (first["request_id"], last["request_id"]) == ("mine", "mine")
    assert first["extensions"] == {"openai:request_id": "chatcmpl-1"}
    request = llmstream.Request(model="m", messages=[], metadata={"request_id": "mine"})
    assert not [
        each for each in llmstream.check(output, request=request).violations if each.requirement.startswith("R4.6")
    ]
    output, _ = written(llmstream, b"", "openai", request_id="mine")
    assert [event.get("request_id") for event in read(output)] == ["mine", None, "mine"]


# Blocks


def test_choices_are_blocks(llmstream):
    data = b"".join(
        [
            openai_chunk({"content": "a"}, index=0),
            openai_chunk({"content": "b"}, index=1),
            openai_chunk({"content": "c"}, index=0),
            openai_chunk({}, "stop", index=1),
            openai_chunk({}, "length", index=0),
        ]
    )
    output, transcoder = written(llmstream, data + DONE, "openai")
    assert text(output) == {0: "ac"}
    assert transcoder.stop_reasons == {0: "max_tokens", 1: "end_turn"}
    others = [event for event in read(output) if event.get("index") == 1]
    assert others == [
        {
            "type": "content.delta",
            "index": 1,
            "delta": {"text": ""},
            "extensions": {"llmstream:choice": 1, "llmstream:text": "b"},
        },
        {
            "type": "content.stop",
            "index": 1,
            "stop_reason": "end_turn",
            "extensions": {"openai:stop_reason": "stop", "llmstream:choice": 1},
        },
    ]


@pytest.mark.parametrize("reasoning", ["extensions", "drop"])
def test_other_choices_are_not_read_as_the_answer(llmstream, reasoning):
    """R5.3.2-4: a reader joins what delta.text has, of all blocks, and there is one answer."""
    words = [("The ", "hm"), ("A ", "oh"), ("cat", ""), ("dog", ""), (" sat", ""), ("x" * 2**21, "y" * 2**21)]
    data = b"".join(
        openai_chunk({"content": said, "reasoning_content": thought}, index=at % 2)
        for at, (said, thought) in enumerate(words)
    )
    data += openai_chunk({}, "length", index=1) + openai_chunk({}, "stop", index=0) + DONE
    output, transcoder = written(llmstream, data, "openai", reasoning=reasoning)
    assert transcoder.complete
    assert transcoder.left_out == 0
    assert llmstream.check(output).ok
    result = llmstream.parse(output)
    assert result.text == result.texts[0] == "".join(llmstream.iter_text(output)) == "The cat sat"
    others = [event["extensions"] for event in read(output) if event["type"] == "content.delta" and event["index"] == 1]
    assert all(each["llmstream:choice"] == 1 for each in others)
    assert "".join(each.get("llmstream:text", "") for each in others) == "A dog" + "x" * 2**21
    kept = "oh" + "y" * 2**21 if reasoning == "extensions" else ""
    assert "".join(each.get("llmstream:reasoning", "") for each in others) == kept
    assert not any("openai:reasoning" in each for each in others)


def test_every_block_is_stopped_where_the_vendor_ends_without_a_reason(llmstream):
    """R5.4-1, R4.8-1: a turn that came to the vendor's end mark ended well."""
    data = openai_chunk({"content": "a"}, index=1) + call_chunk("{}") + DONE
    output, transcoder = written(llmstream, data, "openai")
    stops = [event for event in read(output) if event["type"] == "content.stop"]
    assert stops == [
        {"type": "content.stop", "index": 1, "stop_reason": "end_turn"},
        {"type": "content.stop", "index": 0, "stop_reason": "tool_use"},
    ]
    assert transcoder.complete


def test_content_after_a_stop_goes_on_in_a_new_block(llmstream):
    """R5.4-1: no content for a block after its stop, and nothing is lost."""
    data = b"".join(
        [
            openai_chunk({"content": "a"}, "length"),
            openai_chunk({"content": "b"}),
            openai_chunk({"reasoning_content": "Hm"}),
            openai_chunk({"content": "c"}, index=1),
            openai_chunk({"content": "d"}),
            openai_chunk({}, "stop", index=1),
        ]
    )
    output, transcoder = written(llmstream, data + DONE, "openai")
    assert text(output) == {0: "a", 1: "bd"}
    assert [event.get("extensions") for event in read(output) if event["type"] == "content.delta"] == [
        None,
        {"llmstream:index": 0},
        {"openai:reasoning": "Hm"},
        {"llmstream:index": 1, "llmstream:choice": 1, "llmstream:text": "c"},
        None,
    ]
    assert transcoder.stop_reasons == {0: "max_tokens", 1: "max_tokens", 2: "end_turn"}
    assert transcoder.complete


def test_an_index_at_the_end_of_the_numbers(llmstream):
    last = 2**63 - 1
    data = openai_chunk({"content": "a"}, "stop", index=last) + openai_chunk({"content": "b"}, index=last) + DONE
    output = written(llmstream, data, "openai")[0]
    deltas = [event for event in read(output) if event["type"] == "content.delta"]
    assert text(output) == {}
    assert {each["index"]: each["extensions"]["llmstream:text"] for each in deltas} == {last: "a", 0: "b"}
    assert {each["extensions"]["llmstream:choice"] for each in deltas} == {last}


def test_extensions_after_a_stop_wait_for_the_end(llmstream):
    """As Bedrock's trace does, which comes with the token counts."""
    trace = {"guardrail": {"actionReason": "none"}}
    data = (
        aws({"contentBlockIndex": 0, "delta": {"text": "a"}}, "contentBlockDelta")
        + aws({"stopReason": "end_turn"}, "messageStop")
        + aws({"usage": {"inputTokens": 1, "outputTokens": 2}, "trace": trace}, "metadata")
    )
    output, _ = written(llmstream, data, "bedrock")
    assert kinds(output) == ["stream.start", "content.delta", "content.stop", "usage", "stream.end"]
    assert read(output)[-1]["extensions"] == {"bedrock:trace": trace}
    twice, _ = written(llmstream, data + aws({"trace": {"other": 1}}, "metadata"), "bedrock")
    assert read(twice)[-3]["extensions"] == {"bedrock:trace": {"other": 1}, "llmstream:index": 0}
    assert read(twice)[-1]["extensions"] == {"bedrock:trace": trace}


def test_more_blocks_than_a_stream_can_have_is_an_error(llmstream):
    data = b"".join(openai_chunk({"content": "a"}, index=index) for index in range(4200))
    output, transcoder = written(llmstream, data + DONE, "openai")
    assert kinds(output)[-2:] == ["error", "stream.end"]
    assert kinds(output).count("content.delta") == 4096
    transcoder = llmstream.Transcoder("openai")
    transcoder.feed(data)
    assert transcoder.ended
    assert transcoder.feed(b"more") == b""
    assert not transcoder.complete


# Tool calls


def test_arguments_that_are_no_json_are_no_tool_call(llmstream):
    """R5.3.4-4: what came travels in the extensions, nothing after it is lost, and the stream says that it failed."""
    data = b"".join(
        [call_chunk('{"a":'), openai_chunk({}, "length"), openai_chunk({"content": "after"}, index=1), DONE]
    )
    output, transcoder = written(llmstream, data, "openai")
    assert calls(output) == []
    carried = read(output)[1]
    assert carried["delta"] == {"text": ""}
    assert carried["extensions"]["openai:tool_call"] == {"id": "call_1", "name": "f", "arguments": '{"a":'}
    assert [e["extensions"].get("llmstream:text") for e in read(output) if e.get("index") == 1] == ["after"]
    assert read(output)[-2] == {
        "type": "error",
        "code": "internal_error",
        "message": "the arguments of a tool call are not JSON text",
    }
    assert transcoder.error.code == "internal_error"
    assert not transcoder.complete


@pytest.mark.parametrize("arguments", ["", '{"a":"\\u2028\u2028"}', "[]", '"x"', "1"])
def test_arguments_that_are_json(llmstream, arguments):
    data = call_chunk(arguments) + openai_chunk({}, "tool_calls") + DONE
    output, transcoder = written(llmstream, data, "openai")
    assert calls(output) == [(0, "call_1", "f", arguments or "{}")]
    assert transcoder.complete


@pytest.mark.parametrize(("depth", "is_sent"), [(400, True), (501, False), (5000, False), (200_000, False)])
def test_arguments_of_any_depth(llmstream, depth, is_sent):
    data = call_chunk("[" * depth + "]" * depth) + openai_chunk({}, "tool_calls") + DONE
    output, transcoder = written(llmstream, data, "openai")
    assert bool(calls(output)) == transcoder.complete == is_sent
    inside = call_chunk(json.dumps({"a": '["' * depth})) + openai_chunk({}, "tool_calls") + DONE
    assert written(llmstream, inside, "openai")[1].complete


def test_the_free_text_of_a_custom_tool_is_a_string(llmstream):
    events = [
        {"type": "response.created", "response": {"id": "r", "model": "m"}},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": 'SELECT "a"'},
        },
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    output, transcoder = written(llmstream, body(*events), "openai-responses")
    assert calls(output) == [(0, "c", "sql", '"SELECT \\"a\\""')]
    assert read(output)[1]["extensions"] == {"openai-responses:custom": True}
    assert transcoder.complete
    again, _ = written(llmstream, output, "llm-stream")
    assert again == output


def test_ids_are_unique(llmstream):
    """R5.3.4-2: some servers call by the same id twice; the vendor's stays readable."""
    data = b"".join(call_chunk("{}", number=number) for number in range(3)) + openai_chunk({}, "tool_calls") + DONE
    output, _ = written(llmstream, data, "openai")
    ids = [id for _, id, _, _ in calls(output)]
    assert ids[0] == "call_1"
    assert len(set(ids)) == 3
    found = [event.get("extensions") for event in read(output) if event["type"] == "tool.call"]
    assert found == [None, {"openai:id": "call_1"}, {"openai:id": "call_1"}]


def test_long_ids_are_kept_while_there_is_room(llmstream):
    """Some gateways hide a signature in them."""
    long = "call_" + "x" * 5000
    output, _ = written(llmstream, call_chunk("{}", id=long) + openai_chunk({}, "tool_calls"), "openai")
    assert calls(output)[0][1] == long
    data = b"".join(call_chunk("{}", id=f"{n}" * 60_000, number=n) for n in range(1, 40)) + openai_chunk({}, "stop")
    output, transcoder = written(llmstream, data, "openai")
    assert len({id for _, id, _, _ in calls(output)}) == 39
    assert len(calls(output)[-1][1]) < 300
    assert read(output)[-3]["extensions"]["openai:id"] == "39" * 2**15
    assert transcoder.left_out > 0


def test_a_call_that_the_vendor_did_not_finish_is_not_sent(llmstream):
    """However whole its arguments look: they may be the beginning of others."""
    partial = {
        "functionCall": {"name": "f", "willContinue": True, "partialArgs": [{"jsonPath": "$.a", "stringValue": "Vie"}]}
    }
    for dialect, data in (
        ("openai", call_chunk("12")),
        ("openai", call_chunk('{"a":1}')),
        ("anthropic", b"".join(anthropic([], [], ['{"a":1}'])[:4])),
        ("gemini", body({"candidates": [{"content": {"parts": [partial]}}]})),
    ):
        for ending in ("close", "fail"):
            transcoder = llmstream.Transcoder(dialect, clock=clock)
            output = transcoder.feed(data) + getattr(transcoder, ending)()
            checked(llmstream, transcoder, output)
            assert calls(output) == []
            carried = [event["extensions"] for event in read(output) if event["type"] == "content.delta"]
            assert [f"{dialect}:tool_call" in each for each in carried] == [True]


# Errors and cuts


def test_an_error_in_band_goes_out_at_once(llmstream):
    failure = sse({"error": {"message": "too many requests", "code": "rate_limit_exceeded"}})
    transcoder = llmstream.Transcoder("openai", clock=clock)
    first = transcoder.feed(openai_chunk({"content": "a"}))
    second = transcoder.feed(failure)
    found = read_some(second)
    assert [(event["type"], event["code"], event["message"]) for event in found] == [
        ("error", "rate_limited", "too many requests")
    ]
    assert found[0]["extensions"] == {"openai:code": "rate_limit_exceeded"}
    rest = transcoder.feed(openai(["x"])[-2] + DONE)
    output, _ = checked(llmstream, transcoder, first + second + rest + transcoder.close())
    assert kinds(output) == ["stream.start", "content.delta", "error", "usage", "stream.end"]
    assert (transcoder.error.code, transcoder.error.message) == ("rate_limited", "too many requests")
    assert transcoder.left_out == 0


@pytest.mark.parametrize(
    ("given", "code", "word"),
    [
        ("overloaded", "overloaded", "overloaded"),
        ("invalid_api_key", "internal_error", "invalid_api_key"),
        (401, "internal_error", 401),
        (None, "internal_error", None),
    ],
)
def test_an_error_has_a_code_of_the_draft(llmstream, given, code, word):
    """R5.3.6-2; the vendor's word stands beside it."""
    output, transcoder = written(llmstream, sse({"error": {"message": "m", "code": given}}), "openai")
    found = read(output)[1]
    assert (found["code"], found.get("extensions", {}).get("openai:code")) == (code, word)
    assert llmstream.check(output, strict=True).ok
    assert transcoder.error.code == code


def test_content_after_an_error_has_no_place(llmstream):
    """A-20; it is counted."""
    failure = sse({"error": {"message": "m", "code": "server_error"}})
    data = failure + openai_chunk({"content": "a"}) + call_chunk("{}") + openai_chunk({}, "stop") + failure + DONE
    output, transcoder = written(llmstream, data, "openai")
    assert kinds(output) == ["stream.start", "error", "content.stop", "stream.end"]
    assert transcoder.left_out == 2


def test_a_bare_error_body(llmstream):
    data = b'{"error": {"message": "bad key", "type": "invalid_request_error", "code": "invalid_api_key"}}\n'
    for dialect in ("openai", "auto"):
        output, transcoder = written(llmstream, data, dialect)
        assert kinds(output) == ["stream.start", "error", "stream.end"]
        assert transcoder.error.message == "bad key"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_cut_never_looks_complete(llmstream, vendor):
    """R5.3.7-2: cut before every byte of a stream up to what ends it."""
    data = b"".join(VENDORS[vendor](["Hel", "lo"], ["Hm"], ["{", '"a":1}']))
    last = {
        "openai": b'"finish_reason":"tool_calls"',
        "anthropic": b'{"type":"message_stop"',
        "gemini": b'"finishReason"',
    }
    limit = data.index(last[vendor])
    for cut in range(0, limit, 5):
        output, transcoder = written(llmstream, data[:cut], vendor)
        assert read(output)[-2] == CUT
        assert "content.stop" not in kinds(output) or vendor == "anthropic"
        assert not transcoder.complete
        assert "Hello".startswith("".join(text(output).values()))


def test_a_cut_within_the_last_event(llmstream):
    """What ended without its blank line ended too early (WHATWG HTML, section 9.2)."""
    data = b"".join(anthropic(["a"]))
    output, transcoder = written(llmstream, data[:-1], "anthropic")
    assert (text(output), read(output)[-2]) == ({0: "a"}, CUT)
    assert [violation.requirement for violation in transcoder.violations] == ["L-TAIL"]
    # All stop reasons are there, but not all of the token counts.
    data = b"".join(openai(["a"])[:-1])
    assert written(llmstream, data, "openai")[1].complete
    assert read(written(llmstream, data[:-9], "openai")[0])[-2]["message"].startswith("L-TAIL: ")


def test_nothing_at_all(llmstream):
    for dialect in ("auto", "openai", "llm-stream"):
        output, transcoder = written(llmstream, b"", dialect)
        assert read(output) == [
            {"type": "stream.start", "model": "", "created": CREATED},
            CUT,
            {"type": "stream.end"},
        ]
        assert not transcoder.complete


@pytest.mark.parametrize(
    "bad", [b"data: {\n\n", b"data: [1]\n\n", b'data: {"choices":"\n\n', b"data: " + b"[" * 6000 + b"\n\n"]
)
def test_what_cannot_be_read_is_not_passed_over(llmstream, bad):
    """An answer with a hole must not look whole; what is around it is all there."""
    events = openai(["a", "b"])
    data = b"".join([*events[:2], bad, *events[2:]])
    output, transcoder = written(llmstream, data, "openai")
    assert text(output) == {0: "ab"}
    assert kinds(output)[-3:] == ["usage", "error", "stream.end"]
    assert transcoder.error.code == "internal_error"
    assert transcoder.error.message.startswith(("R5.1-3: ", "L-DEPTH: "))
    assert not transcoder.complete


def test_an_event_over_the_limit_is_not_passed_over(llmstream):
    events = openai(["a", "b" * 1000, "c"])
    output, transcoder = written(llmstream, b"".join(events), "openai", max_event_size=800)
    assert text(output) == {0: "ac"}
    assert transcoder.error.message.startswith("L-SIZE: ")


def test_deviations_that_lose_nothing_are_no_error(llmstream):
    data = b"".join(openai(["a"]))
    broken = data.replace(b'"a"', b'"\xff"').replace(b'"gpt-x"', b'"\\ud83d"')
    output, transcoder = written(llmstream, broken, "openai")
    assert text(output) == {0: "\ufffd"}
    assert transcoder.complete
    assert transcoder.violation_count > 0
    # What comes after the end is not of this answer.
    output, transcoder = written(llmstream, data + b"data: {\n\n", "openai")
    assert transcoder.complete
    assert [violation.requirement for violation in transcoder.violations] == ["R5.3.7-1"]


@pytest.mark.parametrize("chunks", ["whole", "bytewise"])
def test_bytes_after_the_end_of_a_framing(llmstream, chunks):
    done = {"model": "m", "message": {"content": "a"}, "done": True, "done_reason": "stop"}
    data = lines(done) + b"xyz"
    assert written(llmstream, [data] if chunks == "whole" else splits.bytewise(data), "ollama")[1].complete
    cut = lines({**done, "done": False}) + b"xyz" + lines(done)
    assert read(written(llmstream, cut, "ollama")[0])[-2]["type"] == "error"


def test_a_frame_that_is_damaged_after_the_stop_reason(llmstream):
    data = aws({"contentBlockIndex": 0, "delta": {"text": "a"}}, "contentBlockDelta") + aws(
        {"stopReason": "end_turn"}, "messageStop"
    )
    counts = bytearray(aws({"usage": {"inputTokens": 1, "outputTokens": 2}}, "metadata"))
    counts[-9] ^= 1
    transcoder = written(llmstream, data + counts, "bedrock")[1]
    assert transcoder.error.message.startswith("L-FRAMING: ")
    assert written(llmstream, data, "bedrock")[1].complete


# fail, close, strict


def test_fail(llmstream):
    transcoder = llmstream.Transcoder("openai", clock=clock)
    output = transcoder.feed(openai_chunk({"content": "a"}) + b'data: {"choices":[')
    output += transcoder.fail("overloaded", "the upstream is gone")
    checked(llmstream, transcoder, output)
    assert read(output)[-2] == {"type": "error", "code": "overloaded", "message": "the upstream is gone"}
    with pytest.raises(ValueError, match="closed"):
        transcoder.feed(b"more")


def test_fail_gives_what_was_due(llmstream):
    """The last words without a blank line, the counts; and an answer that was whole but for its end mark has failed."""
    transcoder = llmstream.Transcoder("openai", clock=clock)
    output = transcoder.feed(b"".join(openai(["a"])[:-1])[:-1]) + transcoder.fail()
    checked(llmstream, transcoder, output)
    assert kinds(output)[-3:] == ["usage", "error", "stream.end"]
    assert (transcoder.error.code, transcoder.error.message) == ("internal_error", "")
    transcoder = llmstream.Transcoder("auto", clock=clock)
    output = transcoder.feed(b'data: {"a":1}\n\n') + transcoder.fail("overloaded", "gone")
    checked(llmstream, transcoder, output)
    assert transcoder.error.message == "gone"


def test_fail_after_an_error_or_the_end_adds_no_error(llmstream):
    transcoder = llmstream.Transcoder("openai", clock=clock)
    output = transcoder.feed(sse({"error": {"message": "m"}})) + transcoder.fail("overloaded", "n")
    checked(llmstream, transcoder, output)
    assert kinds(output) == ["stream.start", "error", "stream.end"]
    transcoder = llmstream.Transcoder("openai", clock=clock)
    output = transcoder.feed(b"".join(openai(["a"]))) + transcoder.fail("overloaded", "n")
    checked(llmstream, transcoder, output)
    assert transcoder.complete


@pytest.mark.parametrize("arguments", [(5,), ("\ud83d",), ("x", None), ("x", "\ude00")])
def test_fail_takes_words(llmstream, arguments):
    transcoder = llmstream.Transcoder("openai")
    with pytest.raises((TypeError, ValueError)):
        transcoder.fail(*arguments)
    assert not transcoder.ended


@pytest.mark.parametrize("options", [{"model": 5}, {"request_id": b"x"}, {"dialect": "nonsense"}, {"max_depth": 0}])
def test_bad_options(llmstream, options):
    with pytest.raises((TypeError, ValueError)):
        llmstream.Transcoder(**options)


def test_feed_after_close_is_refused(llmstream):
    transcoder = llmstream.Transcoder("openai")
    transcoder.close()
    with pytest.raises(ValueError, match="the transcoder is closed"):
        transcoder.feed(b"")


STRICT = [
    (b"data: {\n\n", "EnvelopeError", "R5.1-3"),
    (sse({"error": {"message": "words", "code": "server_error"}}), "UpstreamError", "words"),
    (call_chunk("{") + openai_chunk({}, "stop"), "EnvelopeError", "R5.3.4-4"),
]


@pytest.mark.parametrize(("bad", "name", "words"), STRICT)
def test_strict_raises_and_close_ends_the_stream(llmstream, bad, name, words):
    events = openai(["a", "b"])
    data = b"".join([*events[:2], bad, *events[2:]])
    outputs = set()
    for chunks in splits.some_ways(data):
        transcoder = llmstream.Transcoder("openai", strict=True, clock=clock)
        pieces = []
        with pytest.raises(getattr(llmstream, name)):
            pieces.extend(map(transcoder.feed, chunks))
        with pytest.raises(ValueError, match="closed"):
            transcoder.feed(b"")
        outputs.add(checked(llmstream, transcoder, b"".join([*pieces, transcoder.close()]))[0])
    (output,) = outputs
    assert kinds(output) == ["stream.start", "content.delta", "error", "stream.end"]
    assert words in read(output)[2]["message"]


def test_strict_raises_where_the_stream_is_cut(llmstream):
    transcoder = llmstream.Transcoder("openai", strict=True, clock=clock)
    output = transcoder.feed(openai_chunk({"content": "a"}))
    with pytest.raises(llmstream.IncompleteStreamError):
        transcoder.close()
    output += transcoder.fail("overloaded", "cut")
    checked(llmstream, transcoder, output)
    assert read(output)[-2]["message"] == "cut"
    with pytest.raises(llmstream.EnvelopeError, match="L-DIALECT"):
        llmstream.Transcoder(strict=True).close()


# Detection, keep-alive


def test_a_format_that_cannot_be_told_is_an_error(llmstream):
    data = b'data: {"what":1}\n\n' * 80
    for chunks in splits.some_ways(data):
        output, transcoder = written(llmstream, chunks)
        assert read(output)[1:] == [
            {"type": "error", "code": "internal_error", "message": "no known dialect fits"},
            {"type": "stream.end"},
        ]
    transcoder = llmstream.Transcoder()
    assert transcoder.feed(data) != b""
    assert transcoder.feed(b"".join(openai(["a"]))) == b""


@pytest.mark.parametrize("vendor", VENDORS)
def test_auto_gives_what_the_name_gives(llmstream, vendor):
    data = b"".join(VENDORS[vendor](["a"], ["b"], ["{}"]))
    assert written(llmstream, data)[0] == written(llmstream, data, vendor)[0]


def test_comments_and_pings_are_silent_and_keep_alive_is_for_the_caller(llmstream):
    events = anthropic(["a"])
    transcoder = llmstream.Transcoder("anthropic", clock=clock)
    assert transcoder.keep_alive() == b": keep-alive\n\n"
    output = transcoder.feed(events[0])
    assert transcoder.feed(b": processing\n\n" + events[1] + sse({"type": "ping"}, "ping")) == b""
    rest = b"".join(transcoder.keep_alive() + transcoder.feed(event) for event in events[2:])
    assert llmstream.check(output + rest).ok
    assert output + rest.replace(b": keep-alive\n\n", b"") == written(llmstream, b"".join(events), "anthropic")[0]
    assert transcoder.keep_alive() == b""


# The standard stream as input


WHOLE = (
    start(request_id="r") + delta(1, "a") + tool_call(2) + stop(3, 0, "tool_use") + usage(4) + end(5, request_id="r")
)


def test_the_standard_stream_stays_as_it_is(llmstream):
    unknown = event("x.y", 1, odd=[1, {"a": None}])
    data = start() + unknown + delta(2, "a\u2028") + usage(3) + usage(4) + stop(5, extensions={"a:b": 1}) + end(6)
    for each in (WHOLE, data):
        for dialect in ("llm-stream", "auto"):
            output, transcoder = written(llmstream, each, dialect)
            assert llmstream.parse(output) == llmstream.parse(each)
            assert read(output) == read(each.replace("\u2028".encode(), b"\\u2028"))
            assert transcoder.complete


def test_the_standard_stream_is_put_right(llmstream):
    """A-2, A-4, A-5, A-6, A-8, A-17: what is read although it deviates, in the strict form."""
    data = (
        b'data: {"v":"1.0","seq":0,"type":"stream.start","model":"m"}\r\n\r\n'
        b'event: content.delta\ndata: {"delta":\ndata: {"text":"a"}}\n\n'
        b'event: usage\ndata: {"v":"2.0","seq":2.0,"input_tokens":1,"output_tokens":null}\n\n'
        b'event: stream.end\ndata: {"type":"stream.end","seq":3}\n\n'
    )
    output, transcoder = written(llmstream, data, "llm-stream")
    assert read(output) == [
        {"type": "stream.start", "model": "m", "created": CREATED},
        {"type": "content.delta", "index": 0, "delta": {"text": "a"}},
        {"type": "usage", "input_tokens": 1, "output_tokens": 0},
        {"type": "content.stop", "index": 0, "stop_reason": "end_turn"},
        {"type": "stream.end"},
    ]
    assert transcoder.complete


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(delta(3, "b"), id="gap"),
        pytest.param(event("content.delta", 2, index=0, role="assistant", delta={"text": 5}), id="text"),
        pytest.param(event("content.delta", 2, index=0, role="assistant", delta=None), id="delta"),
        pytest.param(b"event: content.delta\ndata: {\n\n", id="json"),
        pytest.param(tool_call(2, arguments="{"), id="arguments"),
        pytest.param(tool_call(2, arguments={}), id="no arguments"),
    ],
)
def test_what_is_lost_of_the_standard_stream_is_an_error(llmstream, bad):
    data = start() + delta(1, "a") + bad + stop(4) + usage(5) + end(6)
    output, transcoder = written(llmstream, data, "llm-stream")
    assert text(output)[0].startswith("a")
    assert kinds(output)[-2:] == ["error", "stream.end"]
    assert not transcoder.complete


def test_an_error_of_the_standard_stream(llmstream):
    data = start() + delta(1, "a") + error(2) + usage(3) + end(4)
    assert written(llmstream, data)[0] == b"".join(_fed(llmstream, splits.bytewise(data)))
    assert read(written(llmstream, data)[0]) == read(data)
    assert kinds(written(llmstream, start() + error(1))[0]) == ["stream.start", "error", "stream.end"]


def test_a_start_that_comes_late_or_twice(llmstream):
    late = delta(0, "a") + start(1, model="late", request_id="r") + stop(2) + end(3)
    output, _ = written(llmstream, late, "llm-stream", model="early")
    assert read(output)[0]["model"] == "early"
    assert read(output)[-1]["extensions"] == {"llm-stream:start": {"model": "late", "created": 1, "request_id": "r"}}
    output, transcoder = written(llmstream, start() + start(1) + start(2) + stop(3) + end(4), "llm-stream")
    assert kinds(output) == ["stream.start", "content.stop", "stream.end"]
    assert transcoder.left_out == 1


def test_unknown_events_that_cannot_be_written(llmstream):
    for kind in ("", "a\u2028b", "\x07"):
        data = start() + sse_event(kind, {"v": "1.0", "seq": 1, "type": kind}) + end(2)
        output, transcoder = written(llmstream, data, "llm-stream")
        assert kinds(output) == ["stream.start", "stream.end"]
        assert transcoder.left_out == 1


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ('"delta":{"text":"a","text":"b"}', {"delta": {"text": "b"}}),
        ('"index":1,"index":2', {"index": 2}),
        ('"x":[{"y":1,"\\u0079":2}]', {"x": [{"y": 2}]}),
        ('"delta":{"text":"\\ud83d"}', {"delta": {"text": "\ufffd"}}),
        (f'"x":{"9" * 400}', {"x": 10**400 - 1}),
    ],
)
def test_unknown_events_are_put_right(llmstream, members, found):
    """A-16, A-24: what a checker would find in them."""
    data = start() + f'event: x.y\ndata: {{"v":"1.0","seq":1,"type":"x.y",{members}}}\n\n'.encode() + end(2)
    output, transcoder = written(llmstream, data, "llm-stream")
    assert kinds(output) == ["stream.start", "x.y", "stream.end"]
    assert read(output)[1] == {"type": "x.y", **found}
    assert (transcoder.complete, transcoder.left_out) == (True, 0)


def sse_event(kind, members):
    return f"event: {kind}\ndata: {json.dumps(members)}\n\n".encode()


# Sizes: a reader takes 16 MiB by default, and escapes are longer than what they stand for


def test_a_text_that_is_too_large_for_one_event(llmstream):
    words = "\x01" * 3_000_000
    data = b"event: output\ndata: " + words.encode() + b"\n\nevent: done\ndata: {}\n\n"
    output, transcoder = written(llmstream, data, "replicate")
    assert text(output) == {0: words}
    assert kinds(output).count("content.delta") == 3
    assert transcoder.complete


@pytest.fixture
def small(llmstream, monkeypatch):
    """Pieces of 10 characters, and room for 200 bytes."""
    for name in ("members", "writer"):
        module = import_module(f"llmstream.transcoder.{name}")
        monkeypatch.setattr(module, "PIECE", 10)
        monkeypatch.setattr(module, "ROOM", 200)
    monkeypatch.setattr(import_module("llmstream.transcoder.writer"), "MAX_LATE", 60)


def test_texts_and_thoughts_in_pieces(llmstream, small):
    data = openai_chunk({"content": "0123456789abcdefghijX"}) + openai_chunk({"reasoning_content": "0123456789Y"})
    output, _ = written(llmstream, data + openai_chunk({}, "stop"), "openai")
    found = [(e["delta"]["text"], e.get("extensions")) for e in read(output) if e["type"] == "content.delta"]
    assert found == [
        ("0123456789", None),
        ("abcdefghij", None),
        ("X", None),
        ("", {"openai:reasoning": "0123456789"}),
        ("", {"openai:reasoning": "Y"}),
    ]


def test_large_extensions_go_alone_and_too_large_ones_nowhere(llmstream, small):
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": None}
    for size, texts, left_out in ((100, ["", "a"], 0), (300, ["a"], 1)):
        logprobs = {"content": ["x" * size]}
        data = body({"model": "m", "choices": [{**choice, "logprobs": logprobs}]}) + openai_chunk({}, "stop")
        output, transcoder = written(llmstream, data, "openai")
        assert [e["delta"]["text"] for e in read(output) if e["type"] == "content.delta"] == texts
        assert transcoder.left_out == left_out
        assert transcoder.complete


def test_a_call_that_is_too_large(llmstream, small):
    fits, large = json.dumps({"a": "x" * 100}), json.dumps({"a": "x" * 300})
    data = call_chunk(fits) + call_chunk(large, "call_2", number=1) + openai_chunk({}, "tool_calls")
    output, transcoder = written(llmstream, data, "openai")
    assert calls(output) == [(0, "call_1", "f", fits)]
    assert transcoder.error.message == "a tool call is too large"
    assert transcoder.left_out == 1


def test_words_without_end_are_cut(llmstream):
    data = b"".join(openai(["a"])).replace(b'"gpt-x"', b'"' + b"m" * 70_000 + b'"')
    output, transcoder = written(llmstream, data, "openai")
    assert transcoder.model == read(output)[0]["model"] == "m" * 2**16
    assert transcoder.left_out == 1


def test_what_waits_for_the_end_is_bounded(llmstream, small):
    data = b"".join(
        [
            aws({"stopReason": "end_turn"}, "messageStop"),
            aws({"trace": "x" * 30}, "metadata"),
            aws({"contentBlockIndex": 0, "delta": {"citation": "y" * 30}}, "contentBlockDelta"),
        ]
    )
    output, _ = written(llmstream, data, "bedrock")
    assert read(output)[-1]["extensions"] == {"bedrock:trace": "x" * 30}
    assert read(output)[-3]["extensions"] == {"bedrock:citation": "y" * 30, "llmstream:index": 0}


# Dialects of others


def odd(llmstream, *answers):
    """A dialect whose n-th payload gives the n-th answer."""

    def translate(self, payload, event):
        return list(answers[payload["n"]])

    return type("Odd", (llmstream.Dialect,), {"name": "odd", "translate": translate, "end_mark": "[DONE]"})


def odd_stream(count):
    return body(*({"n": n} for n in range(count))) + DONE


def test_whatever_a_dialect_gives(llmstream):
    delta, stop, call = llmstream.ContentDelta, llmstream.ContentStop, llmstream.ToolCall
    output, transcoder = written(
        llmstream,
        odd_stream(8),
        odd(
            llmstream,
            [delta(text="a", reasoning="b", role="user", extensions={"x": 1})],
            [stop(), stop(stop_reason="max_tokens")],
            [call(id=None, name=None, arguments="{}"), call(id="", name="f", arguments="{}"), call(id="")],
            [llmstream.UnknownEvent(type="odd.thing", extensions={"odd:y": 2}), llmstream.UnknownEvent(type="usage")],
            [llmstream.Usage(), llmstream.Usage(output_tokens=4), llmstream.Usage(output_tokens=4)],
            [llmstream.StreamError(), llmstream.StreamError(code="overloaded")],
            [llmstream.StreamStart(model="again")],
            [llmstream.StreamEnd(request_id="r"), delta(text="never")],
        ),
    )
    assert read(output) == [
        {"type": "stream.start", "model": "", "created": CREATED},
        {"type": "content.delta", "index": 0, "delta": {"text": "a"}, "extensions": {"x": 1, "odd:reasoning": "b"}},
        {"type": "content.stop", "index": 0, "stop_reason": "end_turn"},
        {
            "type": "tool.call",
            "index": 1,
            "id": "call-1",
            "name": "",
            "arguments": "{}",
            "extensions": {"llmstream:index": 0},
        },
        {"type": "tool.call", "index": 1, "id": "", "name": "f", "arguments": "{}"},
        {
            "type": "content.delta",
            "index": 1,
            "delta": {"text": ""},
            "extensions": {"odd:tool_call": {"id": "", "name": None, "arguments": None}},
        },
        {"type": "odd.thing", "extensions": {"odd:y": 2}},
        {"type": "error", "code": "internal_error", "message": ""},
        {"type": "usage", "input_tokens": 0, "output_tokens": 4},
        {"type": "stream.end", "request_id": "r"},
    ]
    assert transcoder.left_out == 4  # a second stop, a type of the draft, counts without numbers, a second error


@pytest.mark.parametrize("dialect", ["openai", "gemini"])
def test_of_several_choices_one_is_the_answer(llmstream, dialect):
    """The others are marked, and their calls are no tool.call: a client would run them all."""
    if dialect == "openai":
        call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}
        data = b"".join(openai_chunk({"content": words}, index=at) for at, words in ((0, "a"), (1, "b"), (1, "c")))
        data += b"".join(openai_chunk(call, index=at) for at in (0, 1, 2))
        data += b"".join(openai_chunk({}, "tool_calls", index=at) for at in (0, 1, 2)) + sse("[DONE]")
    else:
        call = {"functionCall": {"name": "f", "args": {}}}
        parts = ([{"text": "a"}, call], [{"text": "b"}, {"text": "c"}, call], [call])
        candidates = [
            {"index": at, "content": {"parts": each}, "finishReason": "STOP"} for at, each in enumerate(parts)
        ]
        data = sse({"candidates": candidates})
    output, transcoder = written(llmstream, data, dialect)
    assert transcoder.complete
    assert transcoder.left_out == 0
    events = read(output)
    assert [event["index"] for event in events if event["type"] == "tool.call"] == [0]
    others = [event for event in events if event.get("index")]
    marks = [(event["index"], event.get("extensions", {}).get("llmstream:choice")) for event in others]
    assert {index for index, _ in marks} == {1, 2}
    assert all(index == mark for index, mark in marks)
    calls = [event["extensions"].get(f"{dialect}:tool_call") for event in others if "extensions" in event]
    assert [found["name"] for found in calls if found] == ["f", "f"]
    assert not any("llmstream:choice" in event.get("extensions", {}) for event in events if not event.get("index"))


def test_a_dialect_without_a_name(llmstream):
    def nameless():
        dialect = odd(llmstream, [llmstream.ContentDelta(reasoning="b")])()
        dialect.name = ""
        return dialect

    output, _ = written(llmstream, odd_stream(1), nameless)
    assert read(output)[1]["extensions"] == {"vendor:reasoning": "b"}


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00x", "\\ud83d\\ud83d"])
def test_halves_of_surrogate_pairs_in_what_a_frame_wraps(llmstream, half):
    """They come from JSON within JSON, where no reader of the frame has seen them."""
    inner = b'{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"%s":"%s"}}}'
    stopped = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    framed = invoked({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}})
    framed += invoked(inner % (half.encode(), half.encode())) + invoked(stopped) + invoked({"type": "message_stop"})
    output, transcoder = written(llmstream, framed, "bedrock")
    mended = json.loads(f'"{half}"'.replace("\\ud83d", "\\ufffd").replace("\\ude00", "\\ufffd"))
    assert [e["extensions"] for e in read(output) if e["type"] == "content.delta"] == [
        {"bedrock:citation": {mended: mended}}
    ]
    assert transcoder.complete


def test_numbers_that_json_cannot_hold(llmstream):
    data = (
        start()
        + sse(
            envelope("content.delta", 1, index=0, role="assistant", delta={"text": "a"}).replace(
                '"delta"', '"extensions":{"a:b":1e400,"a:c":1},"delta"'
            ),
            "content.delta",
        )
        + stop(2)
        + end(3)
    )
    output, transcoder = written(llmstream, data, "llm-stream")
    assert read(output)[1]["extensions"] == {"a:c": 1}
    assert transcoder.left_out == 1
