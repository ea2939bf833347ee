"""Bugs that were reported against other readers, by their number in the list of public reports (B) and measured faults
of released ones (P). The inputs are minimal; what has to hold is the kind."""

from __future__ import annotations

import pytest

import drafts
import splits
import vendors
from drafts import delta, end, start, usage


def read(llmstream, *chunks):
    decoder = llmstream.SSEDecoder()
    return [(e.event, e.data) for chunk in chunks for e in decoder.feed(chunk)]


def at_every_split(llmstream, data, expected):
    for chunks in splits.every_way(data):
        assert read(llmstream, *chunks) == expected


def messages(*texts):
    return [("message", text) for text in texts]


# SSE: chunks, and the events that are right. They hold at every split as well.
FRAMING = {
    "B01": ([b'data: {"t":"a\xe2\x80\xa8b"}\n\n'], messages('{"t":"a\u2028b"}')),
    "B02": ([b'event: message\ndata: {"r":"x\xe2\x80\xa9y"}\n\n'], messages('{"r":"x\u2029y"}')),
    "B04": ([b"data: A\r\n", b"data: B\r", b"\ndata: C\r\n\r\n"], messages("A\nB\nC")),
    "B05": ([b'data: {"a":\r', b"\ndata: 1}\r\n\r\n"], messages('{"a":\n1}')),
    "B06": ([b"data: a\r\ndata: b", b"\n", b"\ndata: c\n\n"], messages("a\nb", "c")),
    "B07": ([b"data: first\r\ndata: second\n\n"], messages("first\nsecond")),
    "B10": ([b"data: a\n", b"\ndata: b\n\n"], messages("a", "b")),
    "B11": ([b"event: message\r\ndata: {}\r\n\r\n"], messages("{}")),
    "B13": ([b'data: {"a":"xxxxxxxxxxxxxxxx', b'"}\n\n'], messages('{"a":"xxxxxxxxxxxxxxxx"}')),
    "B16": ([b"data: \xe9\x82", b"\xa3\n\n"], messages("\u90a3")),
    "B17": ([b"data: \xe4\xb8", b"\xad\n\n"], messages("\u4e2d")),
    "B18": ([b'\xad\xe6\x96\x87"}\n\ndata: {"b":1}\n\n'], messages('{"b":1}')),
    "B19": ([b'\xef\xbb\xbfdata: {"n":1}\n\ndata: {"n":2}\n\n'], messages('{"n":1}', '{"n":2}')),
    "B20": ([b"", b"\xef\xbb", b"\xbfdata: a\n\n"], messages("a")),
    "B21": ([b"\xef\xbb\xbfdata: a\n\n"], messages("a")),
    "B22, P13": ([b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n"], messages("b")),
    "B23": ([b"id: 1\ndata: a\n\n: ping\n\ndata: b\n\n"], messages("a", "b")),
    "B24": ([b"id: 7\ndata: {}\n\n", b": ping\n\n", b"id: 8\ndata: {}\n\n"], messages("{}", "{}")),
    "B25": ([b"retry: 3000\n\nid: 1\n\ndata: {}\n\n"], messages("{}")),
    "B26": ([b": PROCESSING\n\n: PROCESSING\n\ndata: {}\n\n"], messages("{}")),
    "B30, P6": ([b': hb\n\nevent: x\ndata:{"a":1}\n\n'], [("x", '{"a":1}')]),
    "B31": ([b"data: : keepalive\n\ndata: {}\n\n"], messages(": keepalive", "{}")),
    "B32": ([b'data:{"a":1}\n\ndata:[DONE]\n\n'], messages('{"a":1}', "[DONE]")),
    "B34": ([b"data: [1\ndata: ,2]\n\ndata: 1\ndata: 2\n\n"], messages("[1\n,2]", "1\n2")),
    "B38": ([b"event: ping\ndata: x\n\ndata: {}\n\n"], [("ping", "x"), ("message", "{}")]),
    "B49": ([b'{\n  "error": {\n    "code": 429\n  }\n}\n'], []),
    "B50": ([b'event: d\ndata: {"a":1}\nevent: d\ndata: {"a":2}\n\n'], [("d", '{"a":1}\n{"a":2}')]),
    "B60": ([b"data: a\n\ndata: a\n\ndata: a\n\n"], messages("a", "a", "a")),
    "B61": ([b'data: "', b"AAAA", b"AAAA", b'"\n\n'], messages('"AAAAAAAA"')),
    "B62": ([b"data: x", b"y\n\n"], messages("xy")),
    "B63": ([b"{\n", b'"a": 1\n', b"}\n"], []),
    "B76": ([b'data: {"a":1}\n\ndata: {"a":'], messages('{"a":1}')),
    "B79": ([b"data: data: {}\n\n"], messages("data: {}")),
    "P2": ([b"data: half\r"], []),
    "P14": ([b"data: a\r", b"\ndata: b\r\n\r\n"], messages("a\nb")),
    "P15": ([b"event: x\n\ndata: a\n\n"], messages("a")),
    "P15, CR only": ([b"event: x\rdata: a\r\rdata: b\r\r"], [("x", "a"), ("message", "b")]),
}


@pytest.mark.parametrize("bug", FRAMING)
def test_framing(llmstream, bug):
    chunks, expected = FRAMING[bug]
    assert read(llmstream, *chunks) == expected
    at_every_split(llmstream, b"".join(chunks), expected)


def test_b15_nothing_leaves_before_the_blank_line(llmstream):
    decoder = llmstream.SSEDecoder()
    assert decoder.feed(b'data: {"sig":"abc') == []
    assert decoder.feed(b'def"}\n') == []
    assert [e.data for e in decoder.feed(b"\n")] == ['{"sig":"abcdef"}']


def test_b23_b37_the_id_stays(llmstream):
    decoder = llmstream.SSEDecoder()
    events = decoder.feed(b"id: 5\ndata: a\n\n: ping\n\ndata: b\n\n")
    assert [(e.data, e.id) for e in events] == [("a", "5"), ("b", "5")]


def test_b25_the_reconnection_time(llmstream):
    decoder = llmstream.SSEDecoder()
    [event] = decoder.feed(b"retry: 3000\n\ndata: {}\n\n")
    assert decoder.retry == 3000
    assert event.retry is None


def test_b39_p1_a_new_reader_knows_nothing_of_the_last(llmstream):
    first = llmstream.SSEDecoder()
    first.feed(b"event: old\nid: 9\nretry: 5\ndata: \xe4\xbd")
    second = llmstream.SSEDecoder(last_event_id=first.last_event_id)
    [event] = second.feed(b"data: ok\n\n")
    assert (event.event, event.data, event.id, event.retry, second.retry) == ("message", "ok", "", None, None)
    left = llmstream.Parser()
    left.feed(start() + delta(1, "x") + b"event: usage\ndata: \xe4")
    parser = llmstream.Parser()
    [begin, found] = parser.feed(start() + delta(1, "y"))
    assert (begin.seq, found.text, parser.violations) == (0, "y", [])


def test_p10_a_mixed_blank_line_ends_the_event_at_once(llmstream):
    decoder = llmstream.SSEDecoder()
    assert [e.data for e in decoder.feed(b"data: a\n\r\n")] == ["a"]
    decoder = llmstream.SSEDecoder()
    assert [e.data for e in decoder.feed(b"data: a\n\r")] == ["a"]
    assert decoder.feed(b"\n") == []


@pytest.mark.parametrize("digits", [b"1" * 5000, b"9" * 20])
def test_p4_endless_retry(llmstream, digits):
    decoder = llmstream.SSEDecoder()
    assert [e.data for e in decoder.feed(b"retry: " + digits + b"\ndata: a\n\n")] == ["a"]
    assert decoder.retry == 2**63 - 1
    parser = llmstream.Parser()
    assert len(parser.feed(b"retry: " + digits + b"\n" + start())) == 1
    assert parser.retry == 2**63 - 1


def test_p5_one_bad_byte_ends_no_stream(llmstream):
    assert read(llmstream, b"data: a\xffb\n\ndata: c\n\n") == messages("a\ufffdb", "c")
    for dialect in vendors.VENDORS:
        events = vendors.VENDORS[dialect](["one", "MARK", "three"])
        data = b"".join(events).replace(b"MARK", b"a\xffb")
        parser = llmstream.Parser(dialect)
        assert parser.feed_text(data) == "onea\ufffdbthree"
        parser.close()
        assert parser.complete
        assert [v.severity for v in parser.violations] == ["warning"]


def test_p12_json_of_nan(llmstream):
    [event] = llmstream.SSEDecoder().feed(b'data: {"a":NaN}\n\n')
    with pytest.raises(ValueError, match="NaN"):
        event.json()


def test_p3_numbers_are_not_written_anew(llmstream):
    [event] = llmstream.Parser().feed(b'data: {"a":1e400,"b":0.10}\n\n')
    assert event.raw == b'{"a":1e400,"b":0.10}'


# Sizes


def test_b55_b56_a_large_event_is_an_error_that_names_the_limit(llmstream):
    data = b"data: " + b"x" * 70_000
    decoder = llmstream.SSEDecoder(max_event_size=65_536)
    with pytest.raises(llmstream.EventTooLargeError, match="65536"):
        decoder.feed(data)
    parser = llmstream.Parser(max_event_size=65_536)
    parser.feed(data + b"\n\n" + start())
    assert drafts.rules_of(parser)[0] == "L-SIZE"
    assert "65536" in parser.violations[0].message
    strict = llmstream.Parser(strict=True, max_event_size=65_536)
    with pytest.raises(llmstream.EventTooLargeError, match="65536"):
        strict.feed(data)


def test_b56_p11_two_megabytes_are_read(llmstream):
    text = "x" * 2_100_000
    parser = llmstream.Parser()
    [_, event] = [e for chunk in splits.in_chunks(start() + delta(1, text), 65_536) for e in parser.feed(chunk)]
    assert event.text == text


def test_b58_no_tail_of_an_event_over_the_limit(llmstream):
    data = b"data: " + b"A" * 300 + b"\n" + b"data: tail\n\n" + start()
    for chunks in splits.some_ways(data):
        parser, events = drafts.run(llmstream, chunks, max_event_size=200)
        assert [e.type for e in events] == ["stream.start"]
        assert [v.offset for v in parser.violations if v.requirement == "L-SIZE"] == [0]


def test_p11_endless_short_lines_are_bounded(llmstream):
    decoder = llmstream.SSEDecoder(max_event_size=1000)
    with pytest.raises(llmstream.EventTooLargeError):
        sum(len(decoder.feed(b"data:a\n")) for _ in range(501))


# The end, and errors in band


@pytest.mark.parametrize("dialect", ["llm-stream", *vendors.VENDORS])
def test_b42_p9_a_cut_stream_is_not_complete(llmstream, dialect):
    if dialect == "llm-stream":
        events = [start(), delta(1), usage(2), end(3)]
    else:
        events = vendors.VENDORS[dialect](["one", "two"])
    parser, _ = drafts.run(llmstream, events, dialect=dialect)
    assert parser.complete
    # OpenAI's end is [DONE] or every choice's reason, Gemini's the reason.
    for kept in range(1, 3):
        parser, _ = drafts.run(llmstream, events[:kept], dialect=dialect)
        assert not parser.complete
        assert "R5.3.7-2" in drafts.rules_of(parser)
        strict = llmstream.Parser(dialect, strict=True)
        for chunk in events[:kept]:
            strict.feed(chunk)
        with pytest.raises(llmstream.IncompleteStreamError):
            strict.close()


@pytest.mark.parametrize("dialect", ["openai", "auto"])
def test_b45_an_error_in_a_stream_of_status_200(llmstream, dialect):
    for more in (b"", b',"choices":[]'):
        data = b'data: {"error":{"message":"quota"}' + more + b"}\n\ndata: [DONE]\n\n"
        parser, events = drafts.run(llmstream, data, dialect=dialect)
        [found] = [e for e in events if isinstance(e, llmstream.StreamError)]
        assert found.message == "quota"
        assert parser.error == found


def test_b47_a_named_event_that_nobody_knows(llmstream):
    chunk = vendors.openai_chunk({"content": "x"})
    data = b'event: tool.progress\ndata: {"p":1}\n\ndata: {"choices":[]}\n\n' + chunk
    parser = llmstream.Parser("openai")
    assert parser.feed_text(data) == "x"
    assert parser.violations == []


@pytest.mark.parametrize("dialect", ["gemini", "openai", "auto"])
@pytest.mark.parametrize("before", [0, 1])
def test_b49_b63_a_bare_json_error(llmstream, dialect, before):
    made = vendors.gemini(["x"]) if dialect != "openai" else vendors.openai(["x"])
    body = b'{\n  "error": {\n    "code": 429,\n    "message": "quota",\n    "status": "RESOURCE_EXHAUSTED"\n  }\n}\n'
    for chunks in splits.some_ways(b"".join(made[:before]) + body):
        parser, events = drafts.run(llmstream, chunks, dialect=dialect)
        [found] = [e for e in events if isinstance(e, llmstream.StreamError)]
        assert (found.code, found.message) == ("rate_limited", "quota")
        assert not parser.complete


def test_b50_two_documents_in_one_event(llmstream):
    data = b'event: usage\ndata: {"a":1}\nevent: usage\ndata: {"a":2}\n\n'
    parser, events = drafts.run(llmstream, start() + data)
    assert [e.type for e in events] == ["stream.start"]
    assert drafts.faults(parser)[0] == ("R5.1-3", "error", 1, len(start()))


def test_b51_a_reason_without_parts(llmstream):
    data = vendors.gemini(["x"])[0] + (
        b'data: {"candidates":[{"finishReason":"STOP"}],'
        b'"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}\n\n'
    )
    parser, events = drafts.run(llmstream, data, dialect="gemini")
    assert [e.stop_reason for e in events if isinstance(e, llmstream.ContentStop)] == ["end_turn"]
    assert (parser.usage.input_tokens, parser.usage.output_tokens) == (1, 2)
    assert parser.complete


def test_p7_an_event_without_its_name(llmstream):
    data = b"".join(vendors.anthropic(["one", "two"]))
    stripped = b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"event:"))
    parser = llmstream.Parser("anthropic")
    assert parser.feed_text(stripped) == "onetwo"
    parser.close()
    assert parser.complete
    parser = llmstream.Parser()
    nameless = start() + delta(1, "x").split(b"\n", 1)[1]
    assert [e.type for e in parser.feed(nameless)] == ["stream.start", "content.delta"]
    assert drafts.faults(parser) == [("R5.2-5", "warning", 1, len(start()))]


def test_p8_done_is_compared_exactly(llmstream):
    for mark, complete in (
        ("[DONE]", True),
        ("[DONE]x", False),
        ("[DONE", False),
        ("[DONE] ", False),
        ("[done]", False),
    ):
        chunk = vendors.openai_chunk({"content": "x"})
        parser, _ = drafts.run(llmstream, [chunk, vendors.sse(mark)], dialect="openai")
        assert parser.complete is complete, mark
        assert ("R5.1-3" in drafts.rules_of(parser)) is not complete


# Payloads and tool arguments


def calls(llmstream, events, dialect="openai"):
    _, found = drafts.run(llmstream, events, dialect=dialect)
    return [(e.id, e.name, e.arguments) for e in found if isinstance(e, llmstream.ToolCall)]


def openai_calls(*calls):
    return vendors.openai_chunk({"tool_calls": list(calls)})


def test_b65_every_item_of_the_list_counts(llmstream):
    head = {"index": 0, "id": "c", "type": "function", "function": {"name": "f"}}
    events = [
        openai_calls(head, {"index": 0, "function": {"arguments": "{"}}),
        openai_calls({"index": 0, "function": {"arguments": "}"}}),
        vendors.openai_chunk({}, "tool_calls"),
        vendors.sse("[DONE]"),
    ]
    assert calls(llmstream, events) == [("c", "f", "{}")]


@pytest.mark.parametrize("index", [{"index": None}, {}])
def test_b68_a_call_without_index(llmstream, index):
    call = {**index, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    events = [openai_calls(call), vendors.openai_chunk({}, "tool_calls"), vendors.sse("[DONE]")]
    assert calls(llmstream, events) == [("a", "f", "{}")]


def test_b69_interleaved_blocks(llmstream):
    block = vendors._block
    events = vendors.anthropic([])[:1]
    for index in (1, 2):
        tool = {"type": "tool_use", "id": f"t{index}", "name": f"f{index}", "input": {}}
        events.append(block("start", index, content_block=tool))
    for index, piece in ((1, "{"), (2, "["), (1, '"a":1'), (2, "2"), (1, "}"), (2, "]")):
        events.append(block("delta", index, delta={"type": "input_json_delta", "partial_json": piece}))
    events += [block("stop", 1), block("stop", 2), *vendors.anthropic([])[-2:]]
    assert calls(llmstream, events, "anthropic") == [("t1", "f1", '{"a":1}'), ("t2", "f2", "[2]")]


@pytest.mark.parametrize(
    "cut",
    ['{"a":"x\\u12', '{"foo":"bar","baz":"qux\\', "{", '{"a":"\\ud83d', '{"k":"a\tb"}', '{"p":"App\\Http"}', "{} x"],
)
def test_b70_b71_b72_b73_arguments_are_never_repaired(llmstream, cut):
    for chunks in (vendors.openai([], arguments=[cut]), vendors.openai([], arguments=list(cut))):
        parser, events = drafts.run(llmstream, chunks, dialect="openai")
        [call] = [e for e in events if isinstance(e, llmstream.ToolCall)]
        assert call.arguments == cut
        assert drafts.rules_of(parser) == ["R5.3.4-4"]
        assert call.extensions
    parser, events = drafts.run(llmstream, start() + drafts.tool_call(1, arguments=cut))
    assert events[1].arguments == cut
    assert drafts.rules_of(parser)[0] == "R5.3.4-4"


def test_b72_raw_control_characters_are_bad_json_in_both_modes(llmstream):
    data = start() + delta(1, "aMARKb").replace(b"MARK", b"\t")
    parser, _ = drafts.run(llmstream, data)
    assert drafts.faults(parser)[0] == ("R5.1-3", "error", 1, len(start()))
    with pytest.raises(llmstream.EnvelopeError) as caught:
        llmstream.Parser(strict=True).feed(data)
    assert caught.value.offset == len(start())


@pytest.mark.parametrize("dialect", vendors.VENDORS)
@pytest.mark.parametrize("shapes", [True, False])
def test_b74_a_pair_in_two_deltas(llmstream, dialect, shapes):
    events = vendors.VENDORS[dialect](["aa", "bb", "cc", "FIRST", "SECOND", "dd"])
    data = b"".join(events).replace(b"FIRST", b"\\ud83d").replace(b"SECOND", b"\\ude00")
    parser = llmstream.Parser(dialect, shapes=shapes)
    text = parser.feed_text(data)
    assert text == "aabbcc\ufffd\ufffddd"
    assert drafts.rules_of(parser) == ["L-SURROGATE", "L-SURROGATE"]


# What official SDKs lose on recorded streams


def test_the_token_limit_is_no_error(llmstream):
    events = [vendors.openai_chunk({"content": "x"}), vendors.openai_chunk({}, "length"), vendors.sse("[DONE]")]
    parser, found = drafts.run(llmstream, events, dialect="openai")
    assert [e.stop_reason for e in found if isinstance(e, llmstream.ContentStop)] == ["max_tokens"]
    assert parser.complete
    assert parser.violation_count == 0


def test_the_first_tool_call_may_have_any_number(llmstream):
    call = {"index": 1, "id": "c", "type": None, "function": {"name": "f", "arguments": "{}"}}
    events = [openai_calls(call), vendors.openai_chunk({}, "tool_calls"), vendors.sse("[DONE]")]
    assert calls(llmstream, events) == [("c", "f", "{}")]


def test_chunks_need_no_object(llmstream):
    chunk = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
    for dialect in ("openai", "auto"):
        assert llmstream.Parser(dialect).feed_text(chunk * 9) == "x" * 9


def test_content_may_be_a_list_of_parts(llmstream):
    thinking = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}]}
    events = [vendors.openai_chunk(thinking)] * 3 + [
        vendors.openai_chunk({"content": [{"type": "text", "text": "x"}]})
    ] * 3
    _, found = drafts.run(llmstream, events, dialect="openai")
    deltas = [e for e in found if isinstance(e, llmstream.ContentDelta)]
    assert "".join(e.reasoning or "" for e in deltas) == "whywhywhy"
    assert "".join(e.text for e in deltas) == "xxx"


def test_usage_in_the_vendors_own_place(llmstream):
    groq = {"x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}}
    events = [vendors.openai_chunk({"content": "x"}), vendors.openai_chunk({}, "stop", **groq), vendors.sse("[DONE]")]
    parser, _ = drafts.run(llmstream, events, dialect="openai")
    assert (parser.usage.input_tokens, parser.usage.output_tokens) == (3, 4)


def test_the_same_text_in_two_places_counts_once(llmstream):
    chunk = b'data: {"choices":[{"index":0,"text":"x","delta":{"content":"x"}}]}\n\n'
    assert llmstream.Parser("openai").feed_text(chunk * 5) == "x" * 5


def test_reasoning_only_in_its_details(llmstream):
    details = {"content": "", "reasoning_details": [{"type": "reasoning.text", "text": "why"}]}
    both = {**details, "reasoning": "why"}
    for piece in (details, both):
        _, found = drafts.run(llmstream, [vendors.openai_chunk(piece)] * 3, dialect="openai")
        assert "".join(e.reasoning or "" for e in found if isinstance(e, llmstream.ContentDelta)) == "whywhywhy"


def test_enums_as_integers_and_an_array_instead_of_sse(llmstream):
    first = '{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}'
    last = '{"candidates":[{"finishReason":1}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}'
    for body in (f"[{first}\n,\r\n{last}]\n", f"[{first},{last}]"):
        for chunks in splits.some_ways(body.encode()):
            for dialect in ("gemini", "auto"):
                parser, found = drafts.run(llmstream, chunks, dialect=dialect)
                assert "".join(e.text for e in found if isinstance(e, llmstream.ContentDelta)) == "x"
                assert [e.stop_reason for e in found if isinstance(e, llmstream.ContentStop)] == ["end_turn"]
                assert parser.complete
