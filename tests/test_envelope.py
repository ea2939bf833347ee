"""The envelope, lenient: every requirement of sections 5.1 to 5.4, and the resolutions of what the draft leaves open.

Each fault is one event in a stream that is right otherwise: which rule, how bad, which event, where, and what is read.
"""

from __future__ import annotations

import copy
import json
import pickle
import re

import pytest

import drafts
import splits
import vendors
from drafts import REMOVE, delta, end, envelope, error, event, faults, run, sse, start, stop, tool_call, usage, whole

HEAD = start()
BIG = 2**53


def second(llmstream, data):
    """The event after stream.start and what was recorded for it."""
    parser = llmstream.Parser()
    parser.feed(HEAD)
    assert parser.violation_count == 0
    events = parser.feed(data)
    assert all(violation.event == 1 and violation.offset == len(HEAD) for violation in parser.violations)
    assert parser.violation_count == len(parser.violations)
    return events, [(violation.requirement, violation.severity) for violation in parser.violations]


def members(found):
    return {name: getattr(found, name) for name in type(found).__match_args__}


def test_a_stream_without_fault(llmstream):
    for chunks in splits.every_way(whole("The", " wea", "ther")):
        parser, events = run(llmstream, chunks)
        assert [e.type for e in events] == [
            "stream.start",
            *["content.delta"] * 3,
            "content.stop",
            "usage",
            "stream.end",
        ]
        assert "".join(e.text for e in events[1:4]) == "The weather"
        assert [e.seq for e in events] == list(range(7))
        assert parser.violations == []
        assert parser.complete is True
        assert parser.gaps == []
        assert parser.next_seq == 7
        assert parser.usage == events[5]
        assert parser.error is None


# One member at a time (5.2, 5.3)


@pytest.mark.parametrize(
    ("data", "rule", "expected"),
    [
        # 5.2
        (delta(1, v=REMOVE), "R5.2-1", {"text": "a"}),
        (delta(1, v="1.1"), "R5.2-1", {"text": "a"}),
        (delta(1, v=1.0), "R5.2-1", {"text": "a"}),
        (delta(1, v=None), "R5.2-1", {"text": "a"}),
        (delta(1, v="1.00"), "R5.2-1", {"text": "a"}),
        (delta(1, raw_seq='"1"'), "R5.2-2", {"seq": None, "text": "a"}),
        (delta(REMOVE), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="true"), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="null"), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="1.5"), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="-1"), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="[1]"), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="9223372036854775808"), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="9" * 5000), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="1.0"), "R5.2-2", {"seq": 1}),
        (delta(1, raw_seq="1e0"), "R5.2-2", {"seq": 1}),
        (delta(1, raw_seq="10e-1"), "R5.2-2", {"seq": 1}),
        (delta(1, raw_seq="0.1E+1"), "R5.2-2", {"seq": 1}),
        (delta(1, raw_seq="1e-1"), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="1e400"), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="1e-" + "9" * 5000), "R5.2-2", {"seq": None}),
        (delta(1, raw_seq="1" + "0" * 400 + "e-400"), "R5.2-2", {"seq": 1}),
        # 5.3.2
        (delta(1, index=REMOVE), "R5.3.2-1", {"index": 0, "text": "a"}),
        (delta(1, index="0"), "R5.3.2-1", {"index": 0}),
        (delta(1, index=-1), "R5.3.2-1", {"index": 0}),
        (delta(1, index=None), "R5.3.2-1", {"index": 0}),
        (delta(1, index=2**63), "R5.3.2-1", {"index": 0}),
        (delta(1, raw_index="2.0"), "R5.3.2-1", {"index": 2}),
        (delta(1, raw_index="-0"), "R5.3.2-1", {"index": 0}),
        (delta(1, role=REMOVE), "R5.3.2-1", {"role": "assistant"}),
        (delta(1, role=None), "R5.3.2-1", {"role": "assistant"}),
        (delta(1, role=1), "R5.3.2-1", {"role": "assistant"}),
        (delta(1, role="user"), "R5.3.2-1", {"role": "user", "text": "a"}),
        (delta(1, role=""), "R5.3.2-1", {"role": ""}),
        (delta(1, delta=REMOVE), "R5.3.2-1", {"text": ""}),
        (delta(1, delta="a"), "R5.3.2-1", {"text": ""}),
        (delta(1, delta=["a"]), "R5.3.2-1", {"text": ""}),
        (delta(1, delta={}), "R5.3.2-2", {"text": ""}),
        (delta(1, delta={"text": None}), "R5.3.2-2", {"text": ""}),
        (delta(1, delta={"text": 1}), "R5.3.2-2", {"text": ""}),
        (delta(1, delta={"text": {"text": "x"}}), "R5.3.2-2", {"text": ""}),
        (delta(1, delta={"reasoning": "x"}), "R5.3.2-2", {"text": "", "reasoning": None}),
        # 5.3.3
        (stop(1, index=REMOVE), "R5.3.3-1", {"index": 0, "stop_reason": "end_turn"}),
        (stop(1, index="1"), "R5.3.3-1", {"index": 0}),
        (stop(1, stop_reason=REMOVE), "R5.3.3-1", {"stop_reason": None, "index": 0}),
        (stop(1, stop_reason=None), "R5.3.3-1", {"stop_reason": None}),
        (stop(1, stop_reason=1), "R5.3.3-1", {"stop_reason": None}),
        # 5.3.4
        (tool_call(1, index=REMOVE), "R5.3.4-1", {"index": 0, "id": "c1"}),
        (tool_call(1, id=REMOVE), "R5.3.4-1", {"id": None, "name": "f", "arguments": "{}"}),
        (tool_call(1, id=7), "R5.3.4-1", {"id": None}),
        (tool_call(1, name=REMOVE), "R5.3.4-1", {"name": None}),
        (tool_call(1, name=["f"]), "R5.3.4-1", {"name": None}),
        (tool_call(1, arguments=REMOVE), "R5.3.4-1", {"arguments": None}),
        (tool_call(1, arguments={}), "R5.3.4-1", {"arguments": None}),
        (tool_call(1, arguments="{"), "R5.3.4-4", {"arguments": "{"}),
        (tool_call(1, arguments=""), "R5.3.4-4", {"arguments": ""}),
        (tool_call(1, arguments='{"a":NaN}'), "R5.3.4-4", {"arguments": '{"a":NaN}'}),
        (tool_call(1, arguments="{} {}"), "R5.3.4-4", {"arguments": "{} {}"}),
        (tool_call(1, arguments="\ufeff{}"), "R5.3.4-4", {"arguments": "\ufeff{}"}),
        # 5.3.5
        (usage(1, input_tokens=REMOVE), "R5.3.5-1", {"input_tokens": None, "output_tokens": 5}),
        (usage(1, input_tokens=-3), "R5.3.5-1", {"input_tokens": None}),
        (usage(1, input_tokens="3"), "R5.3.5-1", {"input_tokens": None}),
        (usage(1, output_tokens=REMOVE), "R5.3.5-1", {"input_tokens": 3, "output_tokens": None}),
        (usage(1, output_tokens=5.5), "R5.3.5-1", {"output_tokens": None}),
        (usage(1, raw_output_tokens="5.0"), "R5.3.5-1", {"output_tokens": 5}),
        (usage(1, output_tokens=2**63), "R5.3.5-1", {"output_tokens": None}),
        # 5.3.6
        (error(1, code=REMOVE), "R5.3.6-1", {"code": None, "message": "busy"}),
        (error(1, code=429), "R5.3.6-1", {"code": None}),
        (error(1, message=REMOVE), "R5.3.6-1", {"code": "overloaded", "message": None}),
        (error(1, message={}), "R5.3.6-1", {"message": None}),
    ],
)
def test_a_member_that_is_wrong(llmstream, data, rule, expected):
    [found], recorded = second(llmstream, data)
    assert recorded == [(rule, "error")]
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.raw == data.split(b"data: ", 1)[1][:-2]


@pytest.mark.parametrize(
    ("data", "rule", "expected"),
    [
        (stop(1, stop_reason="stop_sequence"), "R5.3.3-2", {"stop_reason": "stop_sequence"}),
        (stop(1, stop_reason=""), "R5.3.3-2", {"stop_reason": ""}),
        (error(1, code="timeout"), "R5.3.6-2", {"code": "timeout"}),
        (error(1, code=""), "R5.3.6-2", {"code": ""}),
    ],
)
def test_a_word_that_is_not_the_drafts_is_handed_on(llmstream, data, rule, expected):
    #
    [found], recorded = second(llmstream, data)
    assert recorded == [(rule, "warning")]
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        *(
            (stop(1, stop_reason=word), {"stop_reason": word})
            for word in ("end_turn", "max_tokens", "tool_use", "content_filter")
        ),
        *(
            (error(1, code=word), {"code": word, "message": "busy"})
            for word in ("rate_limited", "context_length_exceeded", "content_filtered", "internal_error", "overloaded")
        ),
        (delta(1, ""), {"text": "", "index": 0, "role": "assistant", "reasoning": None}),
        (delta(1, index=2**63 - 1), {"index": 2**63 - 1}),
        (tool_call(1, id="", name="", arguments="7"), {"id": "", "name": "", "arguments": "7"}),
        (tool_call(1, arguments=' {"a": [1, null]}\n'), {"arguments": ' {"a": [1, null]}\n'}),
        (usage(1, 0, 2**63 - 1), {"input_tokens": 0, "output_tokens": 2**63 - 1}),
        (sse(envelope("usage", 1, raw_v='"1\\u002e0"', input_tokens=1, output_tokens=2), "usage"), {"input_tokens": 1}),
    ],
)
def test_a_member_that_is_right(llmstream, data, expected):
    [found], recorded = second(llmstream, data)
    assert recorded == []
    assert found.seq == 1
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changed", "rule", "expected"),
    [
        ({"model": REMOVE}, ["R5.3.1-3"], {"model": None, "created": 1}),
        ({"model": 4}, ["R5.3.1-3"], {"model": None}),
        ({"created": REMOVE}, ["R5.3.1-3"], {"model": "m", "created": None}),
        ({"created": 1.5}, ["R5.3.1-3"], {"created": None}),
        ({"created": -1}, ["R5.3.1-3"], {"created": None}),
        ({"created": "1"}, ["R5.3.1-3"], {"created": None}),
        ({"raw_created": "1.0"}, ["R5.3.1-3"], {"created": 1}),
        ({"request_id": None}, ["R5.3.1-4"], {"request_id": None}),  # A-11, strict
        ({"request_id": 1}, ["R5.3.1-4"], {"request_id": None}),
        ({"request_id": ""}, [], {"request_id": ""}),
        ({"request_id": "r"}, [], {"request_id": "r"}),
        ({}, [], {"request_id": None, "model": "m", "created": 1}),
        ({"model": ""}, [], {"model": ""}),
    ],
)
def test_members_of_stream_start(llmstream, changed, rule, expected):
    parser = llmstream.Parser()
    [found] = parser.feed(start(**changed))
    assert drafts.rules_of(parser) == rule
    assert {name: getattr(found, name) for name in expected} == expected


def test_request_id_is_echoed(llmstream):
    tail = stop(1) + usage(2)
    assert drafts.broken(llmstream, start(request_id="r") + tail + end(3, request_id="r")) == []
    assert drafts.broken(llmstream, start(request_id="r") + tail + end(3)) == []
    assert drafts.broken(llmstream, start() + tail + end(3, request_id="r")) == []
    assert drafts.broken(llmstream, start(request_id="r") + tail + end(3, request_id="s")) == ["R5.3.7-3"]
    assert drafts.broken(llmstream, start() + tail + end(3, request_id=None)) == ["R5.3.1-4"]


# The data (5.1)


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "[DONE]",
        "{",
        '{"seq":1',
        "{'a':1}",
        '{"a":1}{"b":2}',
        '{"a":1} x',
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":01}',
        '{"a":1,}',
        '{"a":"\t"}',
        '{"a":"\\x"}',
        '{"a":"\\u12"}',
        "\ufeff{}",
        '{"a":1}\0',
        "nul",
        "-",
        '{"a":tru}',
    ],
)
def test_data_that_is_no_json(llmstream, payload):
    events, recorded = second(llmstream, sse(payload, "content.delta"))
    assert events == []
    assert recorded == [("R5.1-3", "error")]


@pytest.mark.parametrize("payload", ["[]", '[{"type":"content.delta"}]', "1", '"a"', "null", "true", "-0.5e1", " [1] "])
def test_data_that_is_no_object(llmstream, payload):
    events, recorded = second(llmstream, sse(payload, "content.delta"))
    assert events == []
    assert recorded == [("R5.1-3", "error")]


def test_an_envelope_over_two_events_is_never_joined(llmstream):
    # R5.1-4, R5.1-5
    parts = delta(1, "abc").split(b"b")
    parser, events = run(llmstream, HEAD + parts[0] + b"\n\n" + b"data: b" + parts[1])
    assert [e.type for e in events] == ["stream.start"]
    assert drafts.rules_of(parser)[:2] == ["R5.1-3", "R5.1-3"]


def test_an_envelope_over_several_data_lines(llmstream):
    # WHATWG joins them by LF, which JSON takes as white space between tokens and refuses inside a string.
    payload = envelope("content.delta", 1, index=0, role="assistant", delta={"text": "ab"})
    lines = payload.replace(",", ",\ndata: ")
    for chunks in splits.every_way(b"event: content.delta\ndata: " + lines.encode() + b"\n\n"):
        parser = llmstream.Parser()
        parser.feed(HEAD)
        [found] = [e for chunk in chunks for e in parser.feed(chunk)]
        assert found.text == "ab"
        assert found.raw.decode() == payload.replace(",", ",\n")
        assert parser.violations == []
    cut = payload.replace("ab", "a\ndata: b")
    assert second(llmstream, sse(cut, "content.delta")) == ([], [("R5.1-3", "error")])


def test_the_printed_layout_of_the_draft_is_not_mended(llmstream):
    # lines without "data:" are unknown fields.
    printed = b'event: content.delta\ndata: {"v":"1.0","seq":1,\n"type":"content.delta"}\n\n'
    assert second(llmstream, printed) == ([], [("R5.1-3", "error")])


def test_line_ends_and_bom(llmstream):
    #
    stream = whole("a", "b")
    for end_of_line in (b"\n", b"\r", b"\r\n"):
        for head in (b"", b"\xef\xbb\xbf"):
            data = head + stream.replace(b"\n", end_of_line)
            parser, events = run(llmstream, data)
            assert parser.complete
            assert parser.violations == []
            assert [e.type for e in events[1:3]] == ["content.delta"] * 2


def test_id_retry_and_comments_do_not_count(llmstream):
    #
    stream = b": hi\n\n" + b"id: 77\nretry: 5\n" + HEAD + b": ping\n\n" + b"id: 3\n" + delta(1)
    parser = llmstream.Parser()
    events = parser.feed(stream)
    assert [e.seq for e in events] == [0, 1]
    assert parser.violations == []
    assert parser.last_event_id == "3"
    assert parser.retry == 5


# type against event (5.2-4, 5.2-5)


@pytest.mark.parametrize(
    ("name", "kind", "rules", "expected"),
    [
        ("content.delta", '"content.delta"', [], "ContentDelta"),
        (None, '"content.delta"', [("R5.2-5", "warning")], "ContentDelta"),
        ("", '"content.delta"', [("R5.2-5", "warning")], "ContentDelta"),
        ("usage", '"content.delta"', [("R5.2-5", "error")], "ContentDelta"),
        ("message", '"content.delta"', [("R5.2-5", "error")], "ContentDelta"),
        ("Content.delta", '"content.delta"', [("R5.2-5", "error")], "ContentDelta"),
        ("content.delta", '"content\\u002edelta"', [], "ContentDelta"),
        ("content.delta", "null", [("R5.2-4", "error")], "ContentDelta"),
        ("content.delta", "1", [("R5.2-4", "error")], "ContentDelta"),
        ("content.delta", None, [("R5.2-4", "error")], "ContentDelta"),
        ("x.y", '"x.y"', [], "UnknownEvent"),
        ("content.delta", '"x.y"', [("R5.2-5", "error")], "UnknownEvent"),
        ("x.y", "{}", [("R5.2-4", "error")], "UnknownEvent"),
        (None, None, [("R5.2-4", "error")], "UnknownEvent"),
        ("x", '""', [("R5.2-5", "error")], "UnknownEvent"),
    ],
)
def test_type_and_event(llmstream, name, kind, rules, expected):
    changed = {"type": REMOVE} if kind is None else {"raw_type": kind}
    payload = envelope("content.delta", 1, index=0, role="assistant", delta={"text": "a"}, **changed)
    [found], recorded = second(llmstream, sse(payload, name))
    assert recorded == rules
    assert type(found).__name__ == expected
    assert found.seq == 1


def test_a_payload_without_framing_has_no_event_field(llmstream):
    parser = llmstream.Parser()
    parser.feed_payload(envelope("stream.start", 0, model="m", created=1).encode())
    [found] = parser.feed_payload(envelope("usage", 1, input_tokens=1, output_tokens=2).encode())
    assert (found.type, found.seq, found.input_tokens) == ("usage", 1, 1)
    assert parser.violations == []


def test_an_unknown_event(llmstream):
    # delivered, its seq counted, not an error.
    payload = envelope("x.vendor", 1, anything=[1, {"a": None}])
    parser = llmstream.Parser()
    [_, found, after] = parser.feed(HEAD + sse(payload, "x.vendor") + delta(2))
    assert isinstance(found, llmstream.UnknownEvent)
    assert (found.type, found.seq) == ("x.vendor", 1)
    assert found.json()["anything"] == [1, {"a": None}]
    assert found.raw == payload.encode()
    assert after.seq == 2
    assert parser.violations == []
    assert parser.gaps == []


def test_an_unknown_events_own_members_are_not_checked(llmstream):
    [found], recorded = second(llmstream, event("x.y", 1, index="?", delta=1, model=2, role=None, created="x"))
    assert recorded == []
    assert found.type == "x.y"


# Unknown members and decoys (R5.2-7, A-18, A-23)


@pytest.mark.parametrize(
    "value", ["1", '"x"', "null", "true", '{"text":"decoy"}', '[{"type":"usage"}]', "1e400", '"\\ud83d\\ude00"', "-0"]
)
def test_unknown_members_change_nothing(llmstream, value):
    for place in ('{"v"', '"delta":{"text"', '"role"'):
        payload = envelope("content.delta", 1, index=0, role="assistant", delta={"text": "a"})
        head, _, tail = payload.partition(place)
        opening = place[: place.rfind("{") + 1]
        data = f'{head}{opening}"unknown":{value},{place[len(opening) :]}{tail}'
        [found], recorded = second(llmstream, sse(data, "content.delta"))
        assert recorded == []
        assert members(found) == {"text": "a", "index": 0, "role": "assistant", "reasoning": None}


def test_an_ignored_member_has_to_be_json(llmstream):
    payload = envelope("content.delta", 1, index=0, role="assistant", delta={"text": "a"}, raw_x="[1,]")
    assert second(llmstream, sse(payload, "content.delta")) == ([], [("R5.1-3", "error")])


def test_text_is_read_from_delta_alone(llmstream):
    data = delta(
        1,
        delta={"x": {"text": "n"}, "text": "y", "content": "n", "Text": "n"},
        text="n",
        content="n",
        choices=[{"text": "n"}],
    )
    [found], recorded = second(llmstream, data)
    assert found.text == "y"
    assert recorded == []


# Duplicate keys


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"text":"a"', '"text":"x","text":"a"', {"text": "a"}),
        ('"text":"a"', '"text":1,"te\\u0078t":"a"', {"text": "a"}),
        ('"delta":{"text":"a"}', '"delta":{"text":"x"},"delta":{"text":"a"}', {"text": "a"}),
        ('"index":0', '"index":1,"index":0', {"index": 0}),
        ('"role":"assistant"', '"role":"user","role":"assistant"', {"role": "assistant"}),
        ('"seq":1', '"seq":9,"seq":1', {"seq": 1}),
        ('"v":"1.0"', '"v":"2","v":"1.0"', {"text": "a"}),
        ('"type":"content.delta"', '"type":"usage","type":"content.delta"', {"text": "a"}),
    ],
)
def test_of_a_repeated_member_the_last_is_read(llmstream, old, new, expected):
    payload = envelope("content.delta", 1, index=0, role="assistant", delta={"text": "a"})
    assert old in payload
    [found], recorded = second(llmstream, sse(payload.replace(old, new), "content.delta"))
    assert recorded == [("L-DUPLICATE", "error")]
    assert {name: getattr(found, name) for name in expected} == expected


def test_a_repeated_delta_clears_the_text_of_the_first(llmstream):
    payload = '{"v":"1.0","seq":1,"type":"content.delta","index":0,"role":"assistant","delta":{"text":"x"},"delta":{}}'
    [found], recorded = second(llmstream, sse(payload, "content.delta"))
    assert found.text == ""
    assert [rule for rule, _ in recorded] == ["L-DUPLICATE", "R5.3.2-2"]


def test_a_repeated_delta_that_is_no_object_clears_it_too(llmstream):
    payload = '{"v":"1.0","seq":1,"type":"content.delta","index":0,"role":"assistant","delta":{"text":"x"},"delta":"y"}'
    [found], recorded = second(llmstream, sse(payload, "content.delta"))
    assert found.text == ""
    assert [rule for rule, _ in recorded] == ["L-DUPLICATE", "R5.3.2-1"]


def test_repeated_members_that_do_not_count(llmstream):
    payload = envelope(
        "content.delta", 1, index=0, role="assistant", delta={"text": "a"}, raw_x='1,"x":2,"y":{"seq":1,"seq":2}'
    )
    [found], recorded = second(llmstream, sse(payload, "content.delta"))
    assert found.text == "a"
    assert recorded == []


def test_keys_spelled_with_escapes(llmstream):
    payload = (
        '{"\\u0076":"1.0","s\\u0065q":1,"\\u0074ype":"content.delta","ind\\u0065x":3,'
        '"role":"assistant","\\u0064elta":{"t\\u0065xt":"a"}}'
    )
    [found], recorded = second(llmstream, sse(payload, "content.delta"))
    assert (found.seq, found.index, found.text) == (1, 3, "a")
    assert recorded == []


def test_white_space_and_order_do_not_count(llmstream):
    payload = '  {\t"delta" : { "text":"a" } , "role":"assistant","index" :\t2, "type":"content.delta" '
    payload += ', "seq": 1 ,"v":"1.0"} '
    [found], recorded = second(llmstream, sse(payload, "content.delta"))
    assert (found.seq, found.index, found.text) == (1, 2, "a")
    assert recorded == []


# Version


def test_another_version_is_reported_once(llmstream):
    stream = start(v="2.0") + delta(1, v="2.0") + delta(2, v=REMOVE)
    parser = llmstream.Parser()
    assert [e.seq for e in parser.feed(stream)] == [0, 1, 2]
    assert faults(parser) == [("R5.2-1", "error", 0, 0)]


# Sequence numbers (5.2.1)


def sequence(llmstream, *numbers):
    """Deltas with these numbers after a stream.start: parser, numbers read, rules per event."""
    parser = llmstream.Parser()
    events = parser.feed(HEAD + b"".join(delta(0, raw_seq=str(number)) for number in numbers))
    rules = {violation.event: violation.requirement for violation in parser.violations}
    return parser, [e.seq for e in events[1:]], [rules.get(number + 1) for number in range(len(numbers))]


def test_lost_events_are_a_gap(llmstream):
    parser, read, rules = sequence(llmstream, 1, 2, 5, 6)
    assert read == [1, 2, 5, 6]
    assert parser.gaps == [(3, 4)]
    assert rules == [None, None, "R5.2.1-3", None]
    assert parser.violations[0].message.endswith(": 2")
    assert parser.next_seq == 7


def test_one_lost_event(llmstream):
    parser, _, rules = sequence(llmstream, 2)
    assert parser.gaps == [(1, 1)]
    assert rules == ["R5.2.1-3"]


@pytest.mark.parametrize(("numbers", "bad"), [([1, 1, 2], 1), ([1, 2, 1, 3], 2), ([0, 1], 0), ([1, 2, 3, 0, 4], 3)])
def test_repeats_are_delivered_and_reported(llmstream, numbers, bad):
    parser, read, rules = sequence(llmstream, *numbers)
    assert read == numbers
    assert [at for at, rule in enumerate(rules) if rule] == [bad]
    assert rules[bad] == "R5.2.1-1"
    assert parser.gaps == []
    assert parser.next_seq == max(numbers) + 1


def test_events_without_a_number_allow_for_as_many(llmstream):
    assert sequence(llmstream, 1, "null", 2)[2] == [None, "R5.2-2", None]
    assert sequence(llmstream, 1, "null", 3)[2] == [None, "R5.2-2", None]
    parser, _, rules = sequence(llmstream, 1, "null", 4)
    assert rules == [None, "R5.2-2", "R5.2.1-3"]
    assert parser.gaps == [(3, 3)]
    parser, _, rules = sequence(llmstream, 1, "null", '"2"', "-1", 5, 6)
    assert rules == [None, "R5.2-2", "R5.2-2", "R5.2-2", None, None]
    parser, _, rules = sequence(llmstream, 1, "null", "null", 2, 4)  # used once only
    assert parser.gaps == [(3, 3)]


def test_events_that_are_not_delivered_allow_for_as_many(llmstream):
    parser = llmstream.Parser(max_event_size=200, max_depth=3)
    lost = sse("{", "x") + sse('{"a":[[[1]]]}', "x") + b"data: " + b"x" * 300 + b"\n\n" + sse("[]", "x")
    parser.feed(HEAD + lost + delta(5))
    assert parser.gaps == []
    assert drafts.rules_of(parser) == ["R5.1-3", "L-DEPTH", "L-SIZE", "R5.1-3"]
    parser.feed(delta(7))
    assert parser.gaps == [(6, 6)]


def test_negative_zero_is_zero(llmstream):
    parser = llmstream.Parser()
    [found] = parser.feed(start(0, raw_seq="-0"))
    assert found.seq == 0
    assert drafts.rules_of(parser) == ["R5.2-2"]
    parser.feed(delta(1))
    assert parser.gaps == []


@pytest.mark.parametrize("kind", ["created", "index", "input_tokens"])
def test_counts_that_are_floats_are_read_when_exact(llmstream, kind):
    for written, expected in [
        ("3.0", 3),
        ("3e0", 3),
        ("30e-1", 3),
        ("9007199254740992.0", BIG),
        ("9007199254740993.0", None),
    ]:
        data = {
            "created": start(raw_created=written),
            "index": delta(0, raw_index=written),
            "input_tokens": usage(0, raw_input_tokens=written),
        }[kind]
        [found] = llmstream.Parser().feed(data)
        assert getattr(found, kind) == (expected if expected is not None or kind != "index" else 0)


@pytest.mark.parametrize(
    ("written", "expected", "rules"),
    [
        (str(BIG - 1), BIG - 1, ["R5.2.1-3"]),
        (str(BIG), BIG, ["R5.2.1-3"]),
        (str(BIG + 1), BIG + 1, ["R5.2.1-3", "R5.2.1-6"]),
        (str(2**63 - 1), 2**63 - 1, ["R5.2.1-3", "R5.2.1-6"]),
        (str(2**63), None, ["R5.2-2"]),
        ("9007199254740992.0", BIG, ["R5.2-2", "R5.2.1-3"]),
        ("9007199254740993.0", None, ["R5.2-2"]),
        ("9007199254740992e0", BIG, ["R5.2-2", "R5.2.1-3"]),
        ("1e16", None, ["R5.2-2"]),
        ("1e15", 10**15, ["R5.2-2", "R5.2.1-3"]),
    ],
)
def test_high_numbers(llmstream, written, expected, rules):
    parser = llmstream.Parser()
    [_, found] = parser.feed(HEAD + delta(0, raw_seq=written))
    assert found.seq == expected
    assert drafts.rules_of(parser) == rules


def test_a_stream_over_two_to_the_53_is_never_complete(llmstream):
    for number, complete in ((BIG - 3, True), (BIG - 2, False)):
        tail = delta(number) + stop(number + 1) + usage(number + 2) + end(number + 3)
        parser, events = run(llmstream, HEAD + tail)
        assert [e.seq for e in events][1:] == [number, number + 1, number + 2, number + 3]
        assert parser.complete is complete


def test_events_after_a_high_number_are_delivered(llmstream):
    parser = llmstream.Parser()
    events = parser.feed(HEAD + delta(2**63 - 1, "x") + delta(5, "y"))
    assert [e.text for e in events[1:]] == ["x", "y"]
    assert parser.next_seq == 2**63


def test_stream_start_has_number_zero(llmstream):
    parser = llmstream.Parser()
    parser.feed(start(5) + delta(6))
    assert faults(parser) == [("R5.2.1-2", "error", 0, 0)]
    assert parser.gaps == []


# Lifecycle (5.3, 5.4)


def numbered(*makers):
    """Events of the given builders, numbered from 0, with the offset of each."""
    parts = [make(seq) for seq, make in enumerate(makers)]
    return b"".join(parts), [sum(map(len, parts[:at])) for at in range(len(parts) + 1)]


def block(index, maker=delta):
    return lambda seq: maker(seq, index=index)


@pytest.mark.parametrize(
    ("makers", "expected"),
    [
        ([start, delta, stop, usage, end], []),
        ([start, end], [("R5.3.5-3", "warning", 1)]),
        ([start, usage, usage, end], []),
        ([start, delta, usage, stop, end], []),
        ([delta, stop, usage, end], [("R5.3.1-1", "error", 0)]),
        ([start, start, usage, end], [("R5.3.1-2", "error", 1)]),
        ([start, delta, usage, end], [("R5.4-1", "error", 3)]),
        ([start, block(0), block(1), usage, end], [("R5.4-1", "error", 4), ("R5.4-1", "error", 4)]),
        ([start, block(0), block(1), block(1, stop), block(0, stop), usage, end], []),
        ([start, delta, stop, stop, usage, end], [("R5.3-2", "error", 3)]),
        ([start, delta, stop, delta, usage, end], [("R5.4-1", "error", 3)]),
        ([start, stop, usage, end], []),
        ([start, block(1, tool_call), usage, end], [("R5.4-1", "error", 3)]),
        ([start, block(1, tool_call), block(1, stop), usage, end], []),
        ([start, delta, tool_call, stop, usage, end], []),
        ([start, delta, stop, tool_call, usage, end], [("R5.4-1", "error", 3)]),
        ([start, error, end], []),
        ([start, delta, error, end], []),
        ([start, delta, error, stop, usage, end], []),
        ([start, error, error, end], [("R5.3-5", "error", 2)]),
        ([start, error, delta, end], [("R5.3.6-3", "error", 2)]),
        ([start, error, tool_call, end], [("R5.3.6-3", "error", 2)]),
        ([start, error, start, end], [("R5.3.1-2", "error", 2)]),
        ([error, end], [("R5.3.1-1", "error", 0)]),
        ([start, error], [("R5.3.6-3", "warning", 2)]),
        ([start, delta, stop, usage], [("R5.3.7-2", "error", 4)]),
        ([start], [("R5.3.7-2", "error", 1)]),
        ([], [("R5.3.7-2", "error", 0)]),
        ([end], [("R5.3.1-1", "error", 0), ("R5.3.5-3", "warning", 0)]),
        ([start, usage, end, end], [("R5.3.7-1", "error", 3)]),
        ([start, usage, end, delta, delta, start], [("R5.3.7-1", "error", 3)]),
    ],
)
def test_the_lifecycle(llmstream, makers, expected):
    data, offsets = numbered(*makers)
    for chunks in splits.some_ways(data, 4):
        parser, _ = run(llmstream, chunks)
        assert [(rule, severity, number) for rule, severity, number, _ in faults(parser)] == expected
        assert all(offset == offsets[number] for _, _, number, offset in faults(parser))


def test_a_tool_call_id_is_unique(llmstream):
    calls = tool_call(1) + tool_call(2, id="c2") + tool_call(3)
    parser = llmstream.Parser()
    parser.feed(HEAD + calls)
    assert [(rule, number) for rule, _, number, _ in faults(parser)] == [("R5.3.4-2", 3)]


@pytest.mark.parametrize("tail", [end(3), error(3) + end(4)])
def test_complete_needs_the_end(llmstream, tail):
    data = HEAD + stop(1) + usage(2)
    parser = llmstream.Parser()
    parser.feed(data)
    assert parser.complete is False
    parser.feed(tail)
    assert parser.complete is True
    parser.close()
    assert parser.complete is True


def test_the_last_usage_counts(llmstream):
    #
    parser, _ = run(llmstream, HEAD + usage(1, 1, 1) + usage(2, 9, 4) + end(3))
    assert (parser.usage.input_tokens, parser.usage.output_tokens) == (9, 4)


def test_the_first_error_is_kept(llmstream):
    parser, events = run(llmstream, HEAD + error(1, "rate_limited", "one") + error(2, "overloaded", "two") + end(3))
    assert [type(e).__name__ for e in events] == ["StreamStart", "StreamError", "StreamError", "StreamEnd"]
    assert (parser.error.code, parser.error.message) == ("rate_limited", "one")


def test_content_after_an_error_is_delivered(llmstream):
    _, events = run(llmstream, HEAD + error(1) + delta(2, "x") + end(3))
    assert events[2].text == "x"


def test_events_after_the_end_are_counted_in_one_violation(llmstream):
    #
    data = HEAD + usage(1) + end(2)
    for late in (delta(3) + delta(4) + end(5), sse("[DONE]") * 3, sse("{", "x") + b"data: \xff\n\n" + sse("[]")):
        for chunks in splits.some_ways(data + late):
            parser, events = run(llmstream, chunks)
            assert [e.type for e in events] == ["stream.start", "usage", "stream.end"]
            assert faults(parser) == [("R5.3.7-1", "error", 3, len(data))]
            assert parser.violations[0].message.endswith(": 3")
            assert parser.violation_count == 1
            assert parser.complete is True


def test_an_event_over_the_limit_after_the_end(llmstream):
    data = HEAD + usage(1) + end(2)
    parser, _ = run(llmstream, data + b"data: " + b"x" * 500 + b"\n\n" + delta(3), max_event_size=200)
    assert drafts.rules_of(parser) == ["R5.3.7-1"]
    assert parser.violations[0].message.endswith(": 2")


# The tail


@pytest.mark.parametrize("cut", [1, 2])
def test_the_tail_is_delivered_and_reported(llmstream, cut):
    data = HEAD + delta(1, "x")
    for chunks in splits.some_ways(data[:-cut]):
        parser = llmstream.Parser()
        assert [e.type for chunk in chunks for e in parser.feed(chunk)] == ["stream.start"]
        assert [e.text for e in parser.close()] == ["x"]
        assert faults(parser)[0] == ("L-TAIL", "error", 1, len(HEAD))
        assert "delivered" in parser.violations[0].message
        assert parser.close() == []


def test_the_tail_never_makes_a_stream_complete(llmstream):
    parser, events = run(llmstream, whole("a")[:-1])
    assert events[-1].type == "stream.end"
    assert parser.complete is False
    assert drafts.rules_of(parser) == ["L-TAIL"]


@pytest.mark.parametrize("tail", ['{"v":"1.0","seq":1', "{", '{"a":"', "[DONE", ""])
def test_a_tail_that_is_no_json_is_dropped(llmstream, tail):
    parser, events = run(llmstream, HEAD + b"data: " + tail.encode())
    assert [e.type for e in events] == ["stream.start"]
    assert [(rule, number) for rule, _, number, _ in faults(parser)] == [("L-TAIL", 1), ("R5.3.7-2", 1)]
    assert "dropped" in parser.violations[0].message


@pytest.mark.parametrize("tail", [b": comment", b"event: usage\n", b"id: 4", b"\n", b"unknown: {}"])
def test_no_data_is_no_tail(llmstream, tail):
    parser, _ = run(llmstream, HEAD + usage(1) + end(2) + tail)
    assert parser.violations == []
    assert parser.complete


def test_strict_drops_the_tail_and_says_so(llmstream):
    parser = llmstream.Parser(strict=True)
    parser.feed(HEAD + delta(1)[:-1])
    with pytest.raises(llmstream.IncompleteStreamError, match="L-TAIL") as caught:
        parser.close()
    assert caught.value.events == []


# Text


@pytest.mark.parametrize(
    ("written", "text", "half"),
    [
        ("\\ud83d\\ude00", "\U0001f600", False),
        ("\\uD83D\\uDE00", "\U0001f600", False),
        ("\\ud83d", "\ufffd", True),
        ("\\ude00", "\ufffd", True),
        ("\\ude00\\ud83d", "\ufffd\ufffd", True),
        ("\\ud83d\\ud83d\\ude00", "\ufffd\U0001f600", True),
        ("\\ud83dx\\ude00", "\ufffdx\ufffd", True),
        ("\\ud83d\\n", "\ufffd\n", True),
        ("\\\\ud83d", "\\ud83d", False),
        ("\\ufffd", "\ufffd", False),
        ("\\u0000", "\0", False),
        ('\\u2028\u2028\\/\\b\\f\\n\\r\\t\\"', '\u2028\u2028/\b\f\n\r\t"', False),
        ("\\u00e9\\u90a3", "\u00e9\u90a3", False),
        ("\\uffff\\ue000\\ud7ff", "\uffff\ue000\ud7ff", False),
    ],
)
def test_escapes_of_text(llmstream, written, text, half):
    payload = envelope("content.delta", 1, index=0, role="assistant", raw_delta='{"text":"' + written + '"}')
    [found], recorded = second(llmstream, sse(payload, "content.delta"))
    assert found.text == text
    assert recorded == ([("L-SURROGATE", "error")] if half else [])
    found.text.encode()


def read_by_the_rfc(written):
    """A JSON string's text as RFC 8259 has it, halves of pairs replaced, and whether it held one; None: no string."""
    try:
        text = json.loads(f'"{written}"')
    except ValueError:
        return None
    whole = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return whole, whole != text


@pytest.mark.parametrize("before", ["\\n", "\\\\", "\\u00e9", "\\ud83d\\ude00", '\\"x', "a\\nb"])
@pytest.mark.parametrize(
    "odd",
    [
        *("\\q", "\\u12x4", "\\u00", "\\u", "\\uD83D", "\\uDE00", "\\uD83Dx", "\\uD83D\\n", "\\uD83D\\uD83D\\uDE00"),
        *("\\ude00\\ud83d", "\t", "\x1f", "\\x", "\\\x00", "", "\\ud83d\\u12"),
    ],
)
def test_one_oddity_in_a_string_full_of_escapes(llmstream, before, odd):
    """Such strings are read by blocks: wherever in a block it lies, and with much or little text behind it."""
    for count in (1, 3, 4, 5, 9, 20, 21, 33, 70):
        for behind in ("", "x" * 5, "x" * 200, before * 40):
            written = before * count + odd + behind
            payload = envelope("content.delta", 1, index=0, role="assistant", raw_delta='{"text":"' + written + '"}')
            events, recorded = second(llmstream, sse(payload, "content.delta"))
            expected = read_by_the_rfc(written)
            if expected is None:
                assert events == []
                assert recorded[0] == ("R5.1-3", "error")
            else:
                assert [event.text for event in events] == [expected[0]]
                assert recorded == ([("L-SURROGATE", "error")] if expected[1] else [])


def test_halves_of_a_pair_in_two_deltas_are_never_joined(llmstream):
    parser = llmstream.Parser()
    data = delta(1, "MARK").replace(b"MARK", b"\\ud83d") + delta(2, "MARK").replace(b"MARK", b"\\ude00")
    assert [e.text for e in parser.feed(HEAD + data)[1:]] == ["\ufffd", "\ufffd"]
    assert drafts.rules_of(parser) == ["L-SURROGATE", "L-SURROGATE"]
    assert llmstream.Parser().feed_text(HEAD + data) == "\ufffd\ufffd"


def test_halves_of_a_character_in_two_deltas_are_never_joined(llmstream):
    data = delta(1, "MARK").replace(b"MARK", b"\xe9\x82") + delta(2, "MARK").replace(b"MARK", b"\xa3")
    for chunks in splits.some_ways(HEAD + data):
        parser = llmstream.Parser()
        assert "".join(parser.feed_text(chunk) for chunk in chunks) == "\ufffd\ufffd"
        assert [(rule, severity) for rule, severity, *_ in faults(parser)] == [("L-UTF8", "warning")] * 2


def test_every_string_is_whole(llmstream):
    halves = b"\\ud83d"
    for maker, names in (
        (start, ["model", "request_id"]),
        (tool_call, ["id", "name"]),
        (stop, ["stop_reason"]),
        (error, ["code", "message"]),
    ):
        for name in names:
            data = maker(0, **{name: "MARK"}).replace(b"MARK", halves)
            parser = llmstream.Parser()
            [found] = parser.feed(data)
            assert getattr(found, name) == "\ufffd"
            assert "L-SURROGATE" in drafts.rules_of(parser)


@pytest.mark.parametrize("written", ["\\ud83d", "x\\uDE00y", "\\ude00\\ud83d", "\\ud83d\\\\ude00"])
@pytest.mark.parametrize("form", ['"{}"', '["a","{}","{}"]', '{{"{}":1}}', '{{"a":[{{"b":"{}"}}]}}'])
def test_a_half_outside_the_members_that_are_read_is_reported_once_an_event(llmstream, form, written):
    value = form.replace("{}", written).replace("{{", "{").replace("}}", "}")
    for member in ("unknown", "extensions"):
        data = sse(
            envelope("content.delta", 1, index=0, role="assistant", delta={"text": "a"})[:-1]
            + f',"{member}":{value}}}',
            "content.delta",
        )
        [found], recorded = second(llmstream, data)
        assert found.text == "a"
        assert recorded == [("L-SURROGATE", "error")]
        json.dumps(found.extensions, ensure_ascii=False).encode()
        with pytest.raises(llmstream.EnvelopeError, match="L-SURROGATE"):
            llmstream.Parser(strict=True).feed(start() + data)


def test_a_half_in_a_key_that_is_read_is_reported(llmstream):
    data = sse(envelope("content.delta", 1, index=0, role="assistant", delta={"text": "a", "MARK": 1}), "content.delta")
    _, recorded = second(llmstream, data.replace(b"MARK", b"te\\udc00xt"))
    assert recorded == [("L-SURROGATE", "error")]


@pytest.mark.parametrize("dialect", vendors.VENDORS)
@pytest.mark.parametrize("shapes", [True, False])
def test_a_half_anywhere_in_a_vendors_payload_is_reported(llmstream, dialect, shapes):
    events = vendors.VENDORS[dialect](["aa", "bb", "cc", "dd", "ee"])
    data = b"".join([*events[:-2], events[-2].replace(b"{", b'{"x":["\\ud83d"],', 1), *events[-1:]])
    parser = llmstream.Parser(dialect, shapes=shapes)
    assert parser.feed_text(data) == "aabbccddee"
    assert drafts.rules_of(parser) == ["L-SURROGATE"]


def test_text_is_kept_by_index(llmstream):
    events = llmstream.Parser().feed(HEAD + delta(1, "a", 0) + delta(2, "b", 1) + delta(3, "c", 0))
    assert [(e.index, e.text) for e in events[1:]] == [(0, "a"), (1, "b"), (0, "c")]


def test_feed_text_is_the_text_of_the_events(llmstream):
    data = whole("The", " weather", "\u00e9", '"', "") + delta(9, "late")
    for chunks in splits.some_ways(data):
        parser = llmstream.Parser()
        assert "".join(parser.feed_text(chunk) for chunk in chunks) == 'The weather\u00e9"'
        assert parser.complete is True
        assert drafts.rules_of(parser) == ["R5.3.7-1"]
        assert (parser.usage.input_tokens, parser.usage.output_tokens) == (3, 5)


# Limits


def test_depth_at_the_bound(llmstream):
    for depth, deep in ((3, False), (4, True)):
        payload = envelope("usage", 1, input_tokens=1, output_tokens=1, raw_x="[" * (depth - 1) + "]" * (depth - 1))
        parser = llmstream.Parser(max_depth=3)
        parser.feed(HEAD)
        events = parser.feed(sse(payload, "usage"))
        assert drafts.rules_of(parser) == (["L-DEPTH"] if deep else [])
        assert len(events) == (not deep)


def test_size_at_the_bound(llmstream):
    data = delta(1, "x" * 100)
    _, line = data.split(b"\n")[:2]
    bound = len("content.delta") + len(line)
    for chunks in splits.every_way(data):
        for limit, large in ((bound, False), (bound - 1, True)):
            parser = llmstream.Parser(max_event_size=limit)
            parser.feed(HEAD)
            events = [e for chunk in chunks for e in parser.feed(chunk)]
            assert len(events) == (not large)
            assert faults(parser) == ([("L-SIZE", "error", 1, len(HEAD))] if large else [])


def test_after_an_event_over_the_limit_the_next_is_read(llmstream):
    big = b"event: content.delta\ndata: " + b"x" * 400 + b"\ndata: tail\nid: 9\n\n"
    for chunks in splits.every_way(HEAD + big + delta(2, "y")):
        parser = llmstream.Parser(max_event_size=300)
        events = [e for chunk in chunks for e in parser.feed(chunk)]
        assert [e.seq for e in events] == [0, 2]
        assert faults(parser) == [("L-SIZE", "error", 1, len(HEAD))]
        assert parser.gaps == []
        assert "300" in parser.violations[0].message


def test_violations_are_capped_and_counted(llmstream):
    parser = llmstream.Parser()
    parser.feed(HEAD + sse("{", "x") * 1500)
    assert len(parser.violations) == 1000
    assert parser.violation_count == 1500
    assert [v.event for v in parser.violations] == list(range(1, 1001))


def test_gaps_are_capped_and_go_on(llmstream):
    parser = llmstream.Parser()
    parser.feed(HEAD + b"".join(delta(2 * number) for number in range(1, 1500)))
    assert len(parser.gaps) == 1000
    assert parser.gaps[-1] == (1999, 1999)
    assert parser.violation_count == 1499
    assert parser.next_seq == 2999


def test_blocks_are_capped_and_delivered(llmstream):
    parser = llmstream.Parser()
    events = parser.feed(HEAD + b"".join(delta(number, "x", number) for number in range(1, 5001)))
    assert len(events) == 5001
    assert events[-1].index == 5000
    assert drafts.rules_of(parser) == ["L-BLOCKS"]


def test_lists_are_copies(llmstream):
    parser = llmstream.Parser()
    parser.feed(HEAD + delta(3) + sse("{"))
    parser.violations.clear()
    parser.gaps.clear()
    assert len(parser.violations) == 2
    assert parser.gaps == [(1, 2)]


# The parser's own options


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_event_size": 0}, ValueError),
        ({"max_event_size": "1"}, TypeError),
        ({"max_depth": 0}, ValueError),
        ({"max_depth": 1.5}, TypeError),
        ({"errors": "ignore"}, ValueError),
        ({"dialect": "nobody"}, ValueError),
        ({"dialect": 7}, TypeError),
        ({"unknown": 1}, TypeError),
    ],
)
def test_options_are_checked(llmstream, options, error):
    with pytest.raises(error):
        llmstream.Parser(**options)


def test_errors_strict_raises_for_bad_utf8(llmstream):
    parser = llmstream.Parser(errors="strict")
    with pytest.raises(llmstream.SSEError, match="L-UTF8") as caught:
        parser.feed(HEAD + delta(1, "MARK").replace(b"MARK", b"\xff"))
    assert [e.type for e in caught.value.events] == ["stream.start"]
    assert caught.value.offset == len(HEAD)
    with pytest.raises(ValueError, match="closed"):
        parser.feed(b"")


def test_a_closed_parser_takes_nothing(llmstream):
    parser = llmstream.Parser()
    parser.close()
    for method in (parser.feed, parser.feed_text, parser.feed_payload):
        with pytest.raises(ValueError, match="closed"):
            method(b"")
    assert parser.close() == []


def test_a_violation_is_a_value(llmstream):
    parser, _ = run(llmstream, b"")
    [found] = parser.violations
    assert repr(found) == (
        "Violation(requirement='R5.3.7-2', severity='error', event=0, offset=0, "
        "message='the stream stopped before its end')"
    )
    same = llmstream.Violation("R5.3.7-2", "error", 0, 0, "the stream stopped before its end")
    assert found == same
    assert hash(found) == hash(same)
    assert found != llmstream.Violation("R5.3.7-2", "error", 1, 0, "the stream stopped before its end")
    assert copy.copy(found) == found
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(AttributeError):
        found.event = 2
