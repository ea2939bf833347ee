"""Anthropic messages, one kind a test, on payloads of our own."""

from __future__ import annotations

import json

import pytest

START = {
    "type": "message_start",
    "message": {"id": "msg_1", "model": "claude", "content": [], "usage": {"input_tokens": 7, "output_tokens": 1}},
}
STOP = {"type": "message_stop"}


def body(*payloads, named=True):
    lines = []
    for payload in payloads:
        if named and "type" in payload:
            lines.append(f"event: {payload['type']}\n")
        lines.append(f"data: {json.dumps(payload)}\n\n")
    return "".join(lines).encode()


def block(index, kind, **more):
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}}


def delta(index, kind, **more):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def text(index, words):
    return delta(index, "text_delta", text=words)


def piece(index, words):
    return delta(index, "input_json_delta", partial_json=words)


def closed(index):
    return {"type": "content_block_stop", "index": index}


def reason(word, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": None}, "usage": usage}


def read(llmstream, *payloads, **options):
    parser = llmstream.Parser("anthropic")
    events = parser.feed(body(*payloads, **options)) + parser.close()
    return events, parser


@pytest.mark.parametrize("named", [True, False])
def test_a_stream(llmstream, named):
    events, parser = read(
        llmstream,
        START,
        block(0, "thinking", thinking="", signature=""),
        {"type": "ping"},
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="sig"),
        closed(0),
        block(1, "text", text=""),
        text(1, "Hel"),
        text(1, "lo"),
        closed(1),
        block(2, "tool_use", id="t", name="f", input={}),
        piece(2, ""),
        piece(2, '{"a"'),
        piece(2, ": 1}"),
        closed(2),
        reason("tool_use", output_tokens=20),
        STOP,
        named=named,
    )
    said = {"anthropic:stop_reason": "tool_use"}
    assert events == [
        llmstream.StreamStart(model="claude", request_id="msg_1", seq=0),
        llmstream.Usage(input_tokens=7, output_tokens=1, seq=1),
        llmstream.ContentDelta(reasoning="hm", index=0, seq=2),
        llmstream.ContentDelta(index=0, seq=3, extensions={"anthropic:signature": "sig"}),
        llmstream.ContentDelta(text="Hel", index=1, seq=4),
        llmstream.ContentDelta(text="lo", index=1, seq=5),
        llmstream.ToolCall(id="t", name="f", arguments='{"a": 1}', index=2, seq=6),
        llmstream.ContentStop(stop_reason="tool_use", index=0, seq=7, extensions=said),
        llmstream.ContentStop(stop_reason="tool_use", index=1, seq=8, extensions=said),
        llmstream.ContentStop(stop_reason="tool_use", index=2, seq=9, extensions=said),
        llmstream.Usage(input_tokens=7, output_tokens=20, seq=10),
        llmstream.StreamEnd(request_id="msg_1", seq=11),
    ]
    assert parser.complete
    assert parser.violation_count == 0


def test_all_blocks_are_the_answer(llmstream):
    stream = body(START, text(0, "a"), text(3, "b"), reason("end_turn"), STOP)
    result = llmstream.parse(stream, dialect="anthropic")
    assert (result.text, result.texts) == ("ab", {0: "a", 3: "b"})
    assert result.vendor_stop_reasons == {0: "end_turn", 3: "end_turn"}


def test_the_type_in_the_payload_counts(llmstream):
    stream = body(START, named=False) + b"event: ping\ndata: " + json.dumps(text(0, "a")).encode() + b"\n\n"
    assert llmstream.parse(stream, dialect="anthropic").text == "a"


def test_payloads_without_types(llmstream):
    stream = body(START)
    for index, words in ((1, "{"), (2, '{"b":'), (1, "}"), (2, "2}")):
        payload = {"index": index, "delta": {"partial_json": words}}
        stream += b"event: content_block_delta\ndata: " + json.dumps(payload).encode() + b"\n\n"
    for index, untyped in ((3, {"text": "a"}), (4, {"thinking": "hm"})):
        payload = {"index": index, "delta": untyped}
        stream += b"event: content_block_delta\ndata: " + json.dumps(payload).encode() + b"\n\n"
    result = llmstream.parse(stream + body(STOP), dialect="anthropic")
    assert [(c.arguments, c.index) for c in result.tool_calls] == [("{}", 1), ('{"b":2}', 2)]
    assert (result.text, result.reasoning) == ("a", "hm")
    assert result.complete


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("tool_use", "tool_use"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_stop_reasons(llmstream, word, meaning):
    result = llmstream.parse(body(START, reason(word), STOP), dialect="anthropic")
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: meaning}, {0: word})
    assert result.complete


def test_a_reason_alone_does_not_end_a_message(llmstream):
    events, parser = read(llmstream, START, text(0, "a"), reason("end_turn"))
    assert events[-1].type == "content.stop"
    assert not parser.complete


def test_a_message_may_stop_without_a_reason(llmstream):
    events, parser = read(llmstream, START, text(0, "a"), STOP)
    assert [e.type for e in events[2:]] == ["content.delta", "stream.end"]
    assert parser.complete


def test_counts_each_by_itself(llmstream):
    late = reason("end_turn", input_tokens=9, output_tokens=30, cache_read_input_tokens=1000)
    events, _ = read(llmstream, START, text(0, "a"), reason(None, output_tokens=20), late, STOP)
    usages = [(e.input_tokens, e.output_tokens) for e in events if isinstance(e, llmstream.Usage)]
    assert usages == [(7, 1), (7, 20), (9, 30)]


def test_unchanged_counts_are_not_repeated(llmstream):
    events, _ = read(llmstream, START, reason("end_turn", output_tokens=1), STOP)
    assert [e.type for e in events].count("usage") == 1


def test_one_count_alone(llmstream):
    events, parser = read(llmstream, reason("end_turn", output_tokens=5), STOP)
    assert [(e.input_tokens, e.output_tokens) for e in events if isinstance(e, llmstream.Usage)] == [(0, 5)]
    assert [violation.requirement for violation in parser.violations] == ["L-USAGE"]


@pytest.mark.parametrize(
    ("start", "extension"),
    [
        (block(0, "redacted_thinking", data="xyz"), {"anthropic:redacted_thinking": "xyz"}),
        (
            block(0, "web_search_tool_result", tool_use_id="t", content=[{"url": "u"}]),
            {
                "anthropic:web_search_tool_result": {
                    "type": "web_search_tool_result",
                    "tool_use_id": "t",
                    "content": [{"url": "u"}],
                }
            },
        ),
        (delta(0, "citations_delta", citation={"url": "u"}), {"anthropic:citation": {"url": "u"}}),
        (delta(0, "compaction_delta", content="summary"), {"anthropic:compaction": "summary"}),
        (delta(0, "future_delta", x=1), {"anthropic:future_delta": {"type": "future_delta", "x": 1}}),
        (block(0, "text", type="index"), {"anthropic:index": {"type": "index"}}),
    ],
)
def test_what_is_neither_text_nor_reasoning_is_an_extension(llmstream, start, extension):
    events, _ = read(llmstream, START, start)
    assert (events[2].text, events[2].reasoning, events[2].extensions) == ("", None, extension)


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "ping"},
        block(0, "text", text=""),
        block(0, "compaction", content=None),
        block(0, "thinking", thinking=""),
        text(0, ""),
        delta(0, "signature_delta"),
        delta(0, "input_json_delta", partial_json=""),
        {"type": "content_block_delta", "index": 0},
        {"type": "future_event", "index": 0},
    ],
)
def test_empty_content_gives_no_event(llmstream, payload):
    events, _ = read(llmstream, START, payload)
    assert len(events) == 2


def test_text_may_come_with_the_block(llmstream):
    events, _ = read(llmstream, START, block(0, "text", text="a"), block(1, "thinking", thinking="hm"))
    assert [(e.text, e.reasoning) for e in events[2:]] == [("a", None), ("", "hm")]


def test_tools_of_the_vendor_are_no_calls(llmstream):
    events, parser = read(
        llmstream,
        START,
        block(0, "server_tool_use", id="s", name="web_search", input={}),
        piece(0, '{"query": "x"}'),
        closed(0),
        block(1, "mcp_tool_use", id="m", name="db", input={}),
        piece(1, '{"half'),
        reason("end_turn"),
        STOP,
    )
    assert not [e for e in events if isinstance(e, llmstream.ToolCall)]
    assert events[2].extensions == {
        "anthropic:server_tool_use": {"id": "s", "name": "web_search", "input": {"query": "x"}}
    }
    assert events[3].extensions == {"anthropic:mcp_tool_use": {"id": "m", "name": "db", "input": '{"half'}}
    assert parser.violation_count == 0


@pytest.mark.parametrize(
    ("whole", "pieces", "arguments"),
    [
        ({}, [], "{}"),
        ({"a": "é"}, [], '{"a":"é"}'),
        ({"a": 1}, ['{"a"', ": 1}"], '{"a": 1}'),
        ({}, ['{"a": "cut'], '{"a": "cut'),
    ],
)
def test_the_input_of_a_tool(llmstream, whole, pieces, arguments):
    events, parser = read(
        llmstream, START, block(0, "tool_use", id="t", name="f", input=whole), *(piece(0, p) for p in pieces), closed(0)
    )
    assert events[2].arguments == arguments
    cut = arguments.endswith("cut")
    assert events[2].extensions == ({"anthropic:invalid_arguments": True} if cut else {})
    assert parser.violation_count == 1 + cut


def test_a_tool_whose_block_was_not_stopped(llmstream):
    events, _ = read(llmstream, START, block(1, "tool_use", id="t", name="f"), piece(1, "{}"), reason("tool_use"), STOP)
    assert [e.type for e in events[2:]] == ["tool.call", "content.stop", "stream.end"]


def test_a_cut_tool_call_is_not_invented(llmstream):
    events, _ = read(llmstream, START, block(1, "tool_use", id="t", name="f"))
    assert (events[2].arguments, events[2].extensions) == ("", {"anthropic:invalid_arguments": True})


def test_words_beside_the_stop_reason(llmstream):
    payload = {"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"}}
    events, _ = read(llmstream, START, text(0, "a"), payload)
    assert events[3].extensions == {"anthropic:stop_reason": "stop_sequence", "anthropic:stop_sequence": "END"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"type": "overloaded_error", "message": "m"}, "overloaded"),
        ({"type": "rate_limit_error", "message": "m"}, "rate_limited"),
        ({"type": "api_error", "message": "m"}, "internal_error"),
        ({"type": "invalid_request_error", "message": "m"}, "invalid_request_error"),
    ],
)
def test_errors(llmstream, error, code):
    payload = {"type": "error", "error": error, "request_id": "r"}
    for stream in (
        body(START, text(0, "a"), payload),
        body(payload),
        body(payload, named=False),
        json.dumps(payload).encode(),
    ):
        for dialect in ("anthropic", "auto"):
            result = llmstream.parse(stream, dialect=dialect)
            assert (result.error.code, result.error.message) == (code, "m")
            assert list(result.error.extensions.values()) == [error["type"]]
            assert not result.complete


def test_bad_indices_are_block_0(llmstream):
    for index in (-1, "1", None, True, 2**63, 1.5):
        events, _ = read(
            llmstream,
            START,
            {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": "a"}},
        )
        assert (events[2].text, events[2].index) == ("a", 0)


@pytest.mark.parametrize("dialect", ["anthropic", "auto"])
@pytest.mark.parametrize("size", [1, 10_000])
def test_a_message_that_is_no_stream(llmstream, dialect, size):
    """What a request without ``stream`` is answered with says the same as its stream would."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "Hello", "citations": [{"type": "char_location"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            None,
            "text",
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }
    whole = json.dumps(message, indent=1).encode()
    result = llmstream.parse([whole[at : at + size] for at in range(0, len(whole), size)], dialect=dialect)
    assert (result.dialect, result.model, result.text, result.reasoning) == ("anthropic", "claude", "Hello", "Hm.")
    assert [(call.id, call.name, call.arguments) for call in result.tool_calls] == [
        ("toolu_1", "f", '{"a":1}'),
        ("toolu_2", "g", "{}"),
    ]
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 5)
    assert set(result.stop_reasons.values()) == {"tool_use"}
    assert (result.complete, result.violations) == (True, [])
    events = list(llmstream.iter_events(whole, dialect=dialect))
    assert [event.type for event in events[:1] + events[-1:]] == ["stream.start", "stream.end"]
    assert events[0].request_id == "msg_1"
    extensions = [
        event.extensions for event in events if isinstance(event, llmstream.ContentDelta) and event.extensions
    ]
    assert {"anthropic:signature": "c2ln"} in extensions
    assert {"anthropic:citation": {"type": "char_location"}} in extensions


@pytest.mark.parametrize("content", [None, "text", {}, [[]], [{"type": 7}], [{"type": "text", "text": 7}]])
def test_a_message_of_another_form(llmstream, content):
    message = {"type": "message", "content": content, "stop_reason": None, "usage": 7, "model": []}
    result = llmstream.parse(json.dumps(message).encode(), dialect="anthropic")
    assert (result.text, result.tool_calls, result.usage) == ("", [], None)
