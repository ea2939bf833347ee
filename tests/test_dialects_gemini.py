"""Gemini generateContent, one kind a test, on payloads of our own."""

from __future__ import annotations

import json

import pytest

import splits


def body(*payloads):
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\r\n\r\n" for payload in payloads)


def chunk(*parts, finish=None, usage=None, **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    payload = {"candidates": [candidate], "modelVersion": "g", "responseId": "r", **more}
    if usage is not None:
        payload["usageMetadata"] = dict(zip(("promptTokenCount", "candidatesTokenCount"), usage, strict=False))
    return payload


def text(words, **more):
    return {"text": words, **more}


def read(llmstream, *payloads):
    parser = llmstream.Parser("gemini")
    events = parser.feed(body(*payloads)) + parser.close()
    return events, parser


def calls(llmstream, *payloads):
    events, parser = read(llmstream, *payloads)
    found = [(e.id, e.name, e.arguments) for e in events if isinstance(e, llmstream.ToolCall)]
    return found, [violation.requirement for violation in parser.violations]


def test_a_stream(llmstream):
    parser = llmstream.Parser("gemini")
    events = parser.feed(
        body(
            chunk(text("hm", thought=True), usage=[5], createTime="2025-12-19T23:45:33.943266Z"),
            chunk(text("Hel"), usage=[5, 1]),
            chunk(text("lo"), finish="STOP", usage=[5, 2]),
        )
    )
    assert events == [
        llmstream.StreamStart(model="g", created=1766187933, request_id="r", seq=0),
        llmstream.ContentDelta(reasoning="hm", seq=1),
        llmstream.ContentDelta(text="Hel", seq=2),
        llmstream.Usage(input_tokens=5, output_tokens=1, seq=3),
        llmstream.ContentDelta(text="lo", seq=4),
        llmstream.ContentStop(stop_reason="end_turn", seq=5, extensions={"gemini:stop_reason": "STOP"}),
        llmstream.Usage(input_tokens=5, output_tokens=2, seq=6),
    ]
    assert parser.close() == [llmstream.StreamEnd(request_id="r", seq=7)]
    assert parser.complete
    assert parser.violation_count == 0


@pytest.mark.parametrize("layout", ["[%s,%s]", "[%s\n,\r\n%s\n]\n", "%s\n%s"])
@pytest.mark.parametrize("indent", [None, 2])
def test_json_instead_of_server_sent_events(llmstream, layout, indent):
    payloads = [chunk(text('a}]"')), chunk(text("é"), finish="STOP", usage=[1, 2])]
    stream = (layout % tuple(json.dumps(p, indent=indent) for p in payloads)).encode()
    for dialect in ("gemini", "auto"):
        for chunks in splits.some_ways(stream):
            result = llmstream.parse(chunks, dialect=dialect)
            assert (result.text, result.model, result.usage.output_tokens) == ('a}]"é', "g", 2)
            assert result.complete
            assert result.violation_count == 0


def test_several_parts(llmstream):
    events, _ = read(llmstream, chunk(text("hm", thought=True), text("a"), text(""), text("b", thoughtSignature="s")))
    assert [(e.text, e.reasoning) for e in events[1:]] == [("", "hm"), ("a", None), ("b", None)]
    assert events[3].extensions == {"gemini:thoughtSignature": "s"}


@pytest.mark.parametrize(
    ("part", "extension"),
    [
        (
            {"inlineData": {"mimeType": "image/png", "data": "AA"}},
            {"gemini:inlineData": {"mimeType": "image/png", "data": "AA"}},
        ),
        ({"executableCode": {"code": "1"}}, {"gemini:executableCode": {"code": "1"}}),
        ({"codeExecutionResult": {"output": "1"}}, {"gemini:codeExecutionResult": {"output": "1"}}),
        ({"text": "", "thoughtSignature": "s"}, {"gemini:thoughtSignature": "s"}),
    ],
)
def test_other_parts_are_extensions(llmstream, part, extension):
    for before in ((), (chunk(text("a")),)):
        events, _ = read(llmstream, *before, chunk(part))
        assert (events[-1].text, events[-1].reasoning, events[-1].extensions) == ("", None, extension)


@pytest.mark.parametrize("name", ["citationMetadata", "groundingMetadata", "urlContextMetadata"])
def test_what_is_said_about_the_text_is_an_extension(llmstream, name):
    payload = chunk(text("b"))
    payload["candidates"][0][name] = {"x": 1}
    events, _ = read(llmstream, chunk(text("a")), payload)
    assert [(e.text, e.extensions) for e in events[1:]] == [("a", {}), ("b", {}), ("", {f"gemini:{name}": {"x": 1}})]


def test_candidates(llmstream):
    payload = chunk(text("a"))
    payload["candidates"].append({"content": {"parts": [text("b")]}, "index": 1})
    last = {"candidates": [{"finishReason": "STOP", "index": 1}, {"finishReason": "SAFETY", "index": 0}]}
    result = llmstream.parse(body(payload, last), dialect="gemini")
    assert (result.text, result.texts) == ("a", {0: "a", 1: "b"})
    assert result.vendor_stop_reasons == {1: "STOP", 0: "SAFETY"}
    assert result.complete
    assert not llmstream.parse(body(payload, {"candidates": [{"finishReason": "STOP"}]}), dialect="gemini").complete


# Stop reasons


@pytest.mark.parametrize(
    ("reason", "word", "meaning"),
    [
        ("STOP", "STOP", "end_turn"),
        (1, "1", "end_turn"),
        ("MAX_TOKENS", "MAX_TOKENS", "max_tokens"),
        (2, "2", "max_tokens"),
        ("SAFETY", "SAFETY", "content_filter"),
        (3, "3", "content_filter"),
        ("RECITATION", "RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "PROHIBITED_CONTENT", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
        (99, "99", "99"),
    ],
)
def test_stop_reasons(llmstream, reason, word, meaning):
    for payloads in ([chunk(text("a")), {"candidates": [{"finishReason": reason}]}], [chunk(text("a"), finish=reason)]):
        result = llmstream.parse(body(*payloads), dialect="gemini")
        assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: meaning}, {0: word})
        assert result.complete


@pytest.mark.parametrize("reason", [0, "FINISH_REASON_UNSPECIFIED", "", None, True, 1.0, ["STOP"]])
def test_what_is_no_stop_reason(llmstream, reason):
    result = llmstream.parse(body(chunk(text("a"), finish=reason), chunk(text("b"))), dialect="gemini")
    assert (result.text, result.vendor_stop_reasons, result.complete) == ("ab", {}, False)


def test_a_reason_without_parts(llmstream):
    payload = {
        "candidates": [{"finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
    }
    events, parser = read(llmstream, chunk(text("a")), payload)
    assert [e.type for e in events[2:]] == ["content.stop", "usage", "stream.end"]
    assert parser.complete
    assert llmstream.parse(body(payload), dialect="gemini").vendor_stop_reasons == {0: "STOP"}


def test_a_reason_with_every_piece(llmstream):
    events, parser = read(llmstream, *(chunk(text(words), finish="STOP") for words in "abc"))
    kinds = ["stream.start", *["content.delta"] * 3, "content.stop", "stream.end"]
    assert [e.type for e in events] == kinds
    assert parser.complete
    events, parser = read(llmstream, chunk(text("a"), finish="STOP"), chunk(text("b")), chunk(text("c")))
    assert [e.type for e in events] == kinds[:4]
    assert not parser.complete


def test_text_after_a_stop_reason_is_told(llmstream):
    """A warning, once: of such a stream nothing says where it ends."""
    for finish in (["STOP"] * 3, ["STOP", None, "STOP"], ["STOP", None, None]):
        for shapes in (True, False):
            parser = llmstream.Parser("gemini", shapes=shapes)
            parser.feed(body(*(chunk(text(words), finish=reason) for words, reason in zip("abc", finish, strict=True))))
            parser.close()
            found = [(violation.requirement, violation.severity) for violation in parser.violations]
            assert found == [("L-STOP", "warning")] + [("R5.3.7-2", "error")] * (finish[-1] is None)
    for last in (chunk(finish="STOP"), chunk(text("a"), finish="STOP")):
        assert read(llmstream, chunk(text("a")), last)[1].violations == []


def test_a_blocked_prompt(llmstream):
    for reason, word in (("SAFETY", "prompt:SAFETY"), (1, "prompt:1")):
        feedback = {"promptFeedback": {"blockReason": reason, "blockReasonMessage": "no", "safetyRatings": []}}
        events, parser = read(llmstream, feedback)
        assert events[1].stop_reason == "content_filter"
        assert events[1].extensions == {"gemini:block_message": "no", "gemini:stop_reason": word}
        assert parser.complete


def test_a_prompt_that_was_not_blocked(llmstream):
    events, parser = read(
        llmstream, {"candidates": [{"content": {}, "index": 0}], "promptFeedback": {"safetyRatings": []}}
    )
    assert [e.type for e in events] == ["stream.start"]
    assert not parser.complete


def test_a_turn_that_ended_with_calls_ended_for_them(llmstream):
    result = llmstream.parse(body(chunk({"functionCall": {"name": "f", "args": {}}}, finish="STOP")), dialect="gemini")
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: "tool_use"}, {0: "STOP"})


# Usage


def test_thoughts_are_no_output(llmstream):
    payload = chunk(text("a"), finish="STOP", usage=[5, 2])
    payload["usageMetadata"] |= {"thoughtsTokenCount": 100, "toolUsePromptTokenCount": 50, "totalTokenCount": 157}
    result = llmstream.parse(body(payload), dialect="gemini")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (5, 2)


def test_thoughts_alone(llmstream):
    payloads = [
        chunk(text("hm", thought=True), usage=[5]),
        chunk(text("hm", thought=True), finish="MAX_TOKENS", usage=[5]),
    ]
    result = llmstream.parse(body(*payloads), dialect="gemini")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (5, 0)
    assert [violation.requirement for violation in result.violations] == ["L-USAGE"]


# Calls


def test_whole_calls(llmstream):
    found, violations = calls(
        llmstream,
        chunk(
            {"functionCall": {"id": "a", "name": "f", "args": {"b": "é", "a": [1]}}},
            {"functionCall": {"name": "g"}},
        ),
        chunk({"functionCall": {"name": "g", "args": {}}}, finish="STOP"),
    )
    assert found == [("a", "f", '{"b":"é","a":[1]}'), ("call-0", "g", "{}"), ("call-1", "g", "{}")]
    assert violations == []


def test_a_whole_call_leaves_at_once_with_its_signature(llmstream):
    parser = llmstream.Parser("gemini")
    events = parser.feed(body(chunk({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"})))
    assert (events[1].type, events[1].extensions) == ("tool.call", {"gemini:thoughtSignature": "s"})


def growing(*pieces, more=True, **head):
    return chunk({"functionCall": {**head, "partialArgs": list(pieces), **({"willContinue": True} if more else {})}})


def at(path, more=False, **value):
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


ENDS = {
    "a last piece": [growing(at("$.z", boolValue=True), more=False)],
    "an empty call": [growing(at("$.z", boolValue=True)), chunk({"functionCall": {}})],
    "the next call": [growing(at("$.z", boolValue=True)), chunk({"functionCall": {"name": "g"}})],
    "the stop reason": [growing(at("$.z", boolValue=True)), chunk(finish="STOP")],
    "the end": [growing(at("$.z", boolValue=True))],
}


@pytest.mark.parametrize("end", ENDS)
def test_calls_in_pieces(llmstream, end):
    found, violations = calls(
        llmstream,
        growing(name="f"),
        growing(at("$.items[0].name", more=True, stringValue="ap")),
        growing(at("$.items[0].name", more=True, stringValue="ple"), at("$.items[0].name", stringValue="")),
        growing(at("$.items[0].price", numberValue=0.5)),
        growing(at("$.items[1]['odd name'][0]", stringValue="b"), at('$.items[1]["x"]', nullValue=None)),
        growing(at("$.items[0].name", stringValue="pear")),
        *ENDS[end],
    )
    arguments = {"items": [{"name": "pear", "price": 0.5}, {"odd name": ["b"], "x": None}], "z": True}
    assert found[0] == ("call-0", "f", json.dumps(arguments, separators=(",", ":")))
    assert len(found) == 1 + (end == "the next call")
    assert [v for v in violations if v != "R5.3.7-2"] == (["R5.3.4-4"] if end == "the end" else [])


def test_pieces_may_follow_whole_arguments(llmstream):
    head = {"functionCall": {"name": "f", "args": {"a": 1}, "willContinue": True}}
    assert calls(llmstream, chunk(head), growing(at("$.b", numberValue=2), more=False))[0][0][2] == '{"a":1,"b":2}'


@pytest.mark.parametrize(
    "piece",
    [
        at("$", stringValue="x"),
        at("", stringValue="x"),
        at("$.a[5]", stringValue="x"),
        at("$.a[-1]", stringValue="x"),
        at("$.a[*]", stringValue="x"),
        at("$.*", stringValue="x"),
        at("$..a", stringValue="x"),
        at("$.a.b.c", stringValue="x"),
        at("$.a[0].b", stringValue="x"),
        at("$[0]", stringValue="x"),
        at("$.a['b", stringValue="x"),
        at("$" + ".a" * 65, stringValue="x"),
        at("$.c"),
        at("$.c", numberValue="NaN"),
        "x",
    ],
)
def test_a_piece_that_fits_nowhere_marks_the_call(llmstream, piece):
    events, parser = read(llmstream, growing(at("$.a", stringValue="kept"), piece, name="f", more=False))
    call = next(e for e in events if isinstance(e, llmstream.ToolCall))
    assert json.loads(call.arguments)["a"] == "kept"
    assert call.extensions == {"gemini:invalid_arguments": True}
    assert "R5.3.4-4" in [violation.requirement for violation in parser.violations]


def test_the_limit_of_pieces(llmstream):
    from importlib import import_module

    class Limited(import_module("llmstream.dialects.gemini").Gemini):
        max_argument_size = 4000

    pieces = [growing(at("$.a", more=True, stringValue="x" * 100)) for _ in range(100)]
    result = llmstream.parse(body(growing(name="f"), *pieces, chunk(finish="STOP")), dialect=Limited)
    assert 1000 < len(result.tool_calls[0].arguments) < 4000
    assert "L-SIZE" in [violation.requirement for violation in result.violations]


# Errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}, "INVALID_ARGUMENT"),
        ({"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}, "rate_limited"),
        ({"code": 503, "message": "m", "status": "UNAVAILABLE"}, "overloaded"),
        ({"code": 500, "message": "m", "status": "INTERNAL"}, "internal_error"),
    ],
)
def test_errors(llmstream, error, code):
    payload = {"error": error}
    streams = [
        body(payload),
        json.dumps(payload).encode(),
        json.dumps(payload, indent=2).encode(),
        json.dumps([payload], indent=2).encode(),
        json.dumps([chunk(text("a")), payload]).encode(),
        body(chunk(text("a")), payload),
        body(chunk(text("a"))) + json.dumps(payload, indent=2).encode(),
    ]
    for stream in streams:
        for dialect in ("gemini", "auto"):
            result = llmstream.parse(stream, dialect=dialect)
            assert (result.error.code, result.error.message) == (code, "m"), stream
            assert list(result.error.extensions.values()) == [error["code"]]
            assert not result.complete


@pytest.mark.parametrize("stamp", ["yesterday", "", 5, None, "9999-99-99T00:00:00Z", "0001-01-01T00:00:00+23:59"])
def test_a_bad_time_is_none(llmstream, stamp):
    events, _ = read(llmstream, chunk(text("a"), createTime=stamp))
    assert events[0].created is None


def test_a_time_without_zone_is_utc(llmstream):
    events, _ = read(llmstream, chunk(text("a"), createTime="1970-01-01T00:01:00"))
    assert events[0].created == 60


def test_a_call_that_was_cut_while_it_grew_says_so(llmstream):
    call = {"name": "f", "partialArgs": [{"jsonPath": "$.city", "stringValue": "Vie", "willContinue": True}]}
    part = {"functionCall": {**call, "willContinue": True}}
    payload = {"candidates": [{"content": {"parts": [part]}, "index": 0}], "modelVersion": "m"}
    parser = llmstream.Parser("gemini")
    parser.feed(b"data: " + json.dumps(payload).encode() + b"\n\n")
    [event] = [event for event in parser.close() if event.type == "tool.call"]
    assert event.extensions["gemini:invalid_arguments"] is True
    assert not parser.complete


# Calls that were cut, and reasons that came too early


def cut_call(llmstream, *payloads):
    """The only call of a stream, as (arguments, whether it is marked), and what the stream reports."""
    events, parser = read(llmstream, *payloads)
    [call] = [event for event in events if isinstance(event, llmstream.ToolCall)]
    marked = call.extensions.get("gemini:invalid_arguments") is True
    return (call.arguments, marked), [violation.requirement for violation in parser.violations]


@pytest.mark.parametrize("reason", ["STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "OTHER"])
@pytest.mark.parametrize("more", [True, False])
def test_a_string_that_goes_on_leaves_no_whole_call(llmstream, reason, more):
    """The vendor said that the string goes on, and it did not: whatever ended it, what came is a part of it."""
    pieces = [growing(name="rm"), growing(at("$.path", more=True, stringValue="/home/me/pro"), more=more)]
    found, violations = cut_call(llmstream, *pieces, chunk(finish=reason))
    assert found == ('{"path":"/home/me/pro"}', True)
    assert violations == ["R5.3.4-4"]


def test_a_string_that_goes_on_within_arrays_and_objects(llmstream):
    pieces = [growing(at("$.a[0].b", more=True, stringValue="x"), at("$.c", numberValue=1), name="rm")]
    assert cut_call(llmstream, *pieces, chunk(finish="STOP"))[0] == ('{"a":[{"b":"x"}],"c":1}', True)


def test_the_next_call_does_not_close_a_string(llmstream):
    pieces = [growing(at("$.path", more=True, stringValue="/"), name="rm"), chunk({"functionCall": {"name": "g"}})]
    events, _ = read(llmstream, *pieces, chunk(finish="STOP"))
    marks = [e.extensions for e in events if isinstance(e, llmstream.ToolCall)]
    assert marks == [{"gemini:invalid_arguments": True}, {}]


@pytest.mark.parametrize("pieces", [[], [at("$.path", stringValue="/")], [at("$.path", numberValue=1)]])
@pytest.mark.parametrize(("reason", "marked"), [("MAX_TOKENS", True), ("SAFETY", True), ("STOP", False)])
def test_a_call_that_goes_on_is_cut_by_all_but_a_good_end(llmstream, pieces, reason, marked):
    """Further arguments were to come."""
    stream = [growing(*pieces, name="rm"), chunk(finish=reason)]
    assert cut_call(llmstream, *stream)[0][1] is marked
    for transcoder in (llmstream.Transcoder("gemini"), llmstream.StreamTranslator("openai", "gemini")):
        transcoder.feed(body(*stream))
        transcoder.close()
        assert transcoder.complete is not marked


@pytest.mark.parametrize("shapes", [True, False])
@pytest.mark.parametrize("parts", [(), ("",)])
@pytest.mark.parametrize(
    ("reason", "meaning"), [("SAFETY", "content_filter"), ("MAX_TOKENS", "max_tokens"), ("STOP", "end_turn")]
)
@pytest.mark.parametrize("before", ["a", "ab", "abc"])
def test_the_last_reason_counts(llmstream, before, reason, meaning, parts, shapes):
    """Of a vendor that gives one with every piece of text, the one that came last is that of the answer."""
    pieces = [chunk(text(words), finish="STOP") for words in before]
    stream = body(*pieces, chunk(*map(text, parts), finish=reason))
    result = llmstream.parse(stream, dialect="gemini", shapes=shapes)
    assert (result.text, result.stop_reasons, result.vendor_stop_reasons) == (before, {0: meaning}, {0: reason})
    assert result.complete
    transcoder = llmstream.Transcoder("gemini", shapes=shapes)
    transcoder.feed(stream)
    transcoder.close()
    assert (transcoder.stop_reasons, transcoder.complete) == ({0: meaning}, True)


def test_another_reason_after_one_that_was_told(llmstream):
    """The first is with the caller already; the second is told too, and that there were two."""
    stream = [chunk(text("x")), chunk(text("a"), finish="STOP"), chunk(finish="SAFETY"), chunk(finish="SAFETY")]
    result = llmstream.parse(body(*stream), dialect="gemini")
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: "content_filter"}, {0: "SAFETY"})
    assert [violation.requirement for violation in result.violations] == ["R5.3-2"]
    output = b"".join(llmstream.transcode([body(*stream)], dialect="gemini"))
    assert llmstream.check(output).ok
    assert "content_filter" in llmstream.parse(output).stop_reasons.values()
    assert llmstream.parse(body(*stream[:2], chunk(finish="STOP")), dialect="gemini").violations == []


def test_calls_after_a_reason(llmstream):
    """They are what the turn ended for, whatever was said with the text before."""
    call = {"functionCall": {"name": "f", "args": {"a": 1}}}
    for before in ([chunk(text("Let me"), finish="STOP")], [chunk(text("Let")), chunk(text(" me"), finish="STOP")]):
        result = llmstream.parse(body(*before, chunk(call, finish="STOP")), dialect="gemini")
        assert (result.stop_reasons, result.complete) == ({0: "tool_use"}, True)
        assert [call.name for call in result.tool_calls] == ["f"]
        cut = llmstream.parse(body(*before, chunk(call)), dialect="gemini")
        assert not cut.complete
        begun = llmstream.parse(body(*before, growing(name="f")), dialect="gemini")
        assert not begun.complete


@pytest.mark.parametrize("shapes", [True, False])
def test_text_after_a_reason_that_was_told(llmstream, shapes):
    """The answer goes on, and so wants another reason."""
    stream = [chunk(text("a")), chunk(text("b"), finish="STOP"), chunk(text("c"))]
    result = llmstream.parse(body(*stream), dialect="gemini", shapes=shapes)
    assert (result.text, result.complete) == ("abc", False)
    assert [violation.requirement for violation in result.violations] == ["L-STOP", "R5.3.7-2"]
    result = llmstream.parse(body(*stream, chunk(finish="MAX_TOKENS")), dialect="gemini", shapes=shapes)
    assert (result.stop_reasons, result.complete) == ({0: "max_tokens"}, True)


def test_what_follows_the_text_takes_no_reason_back(llmstream):
    """Neither what is said about the text nor a signature is more of it."""
    grounded = {"candidates": [{"index": 0, "groundingMetadata": {"x": 1}}]}
    for last in (grounded, chunk(text("", thoughtSignature="s")), chunk(text(""))):
        for before in ([chunk(text("a"), finish="STOP")], [chunk(text("a")), chunk(text("b"), finish="STOP")]):
            assert llmstream.parse(body(*before, last), dialect="gemini").complete


def test_reasons_that_are_held_back_are_bounded(llmstream):
    """Those of 2,000 candidates with a message of 12,000 characters each, of which none is dropped."""
    import tracemalloc

    parser = llmstream.Parser("gemini")
    tracemalloc.start()
    try:
        stops = 0
        for index in range(2_000):
            candidate = {"index": index, "content": {"parts": [text("x")]}, "finishReason": "STOP"}
            candidate["finishMessage"] = f"{index:06}" * 2_000
            events = parser.feed(body({"candidates": [candidate]}))
            stops += sum(isinstance(event, llmstream.ContentStop) for event in events)
        assert tracemalloc.get_traced_memory()[0] < 4 * 2**20
    finally:
        tracemalloc.stop()
    stops += sum(isinstance(event, llmstream.ContentStop) for event in parser.close())
    assert stops == 2_000
    assert parser.complete
