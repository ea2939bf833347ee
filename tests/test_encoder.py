"""The producer: what it writes, what it refuses, and that no reader can be misled by it (draft, section 5)."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import re
import time
from typing import Any

import pytest

import drafts

MAX = 2**53


@pytest.fixture
def encoder(llmstream: Any) -> Any:
    from llmstream.encoder import Encoder

    return Encoder(clock=lambda: 1749292800.9)


def lines_of(data: bytes) -> list[str]:
    return data.decode().split("\n")


def envelope_of(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lines_of(data)[1].removeprefix("data: "))
    return found


def test_each_event_as_it_is_written(encoder):
    """R5.1-1, R5.2-1, R5.2-2, R5.2-3, R5.2-4, R5.2-5, R5.2.1-1, R5.2.1-2: event line, data line, blank line; counted
    from 0."""
    written = [
        encoder.start("m", request_id="r"),
        encoder.delta("Hello"),
        encoder.delta(", world"),
        encoder.tool_call("c1", "f", '{"a":1}', 1),
        encoder.stop("end_turn"),
        encoder.stop("tool_use", 1),
        encoder.usage(42, 8),
        encoder.end(),
    ]
    assert b"".join(written).decode().split("\n") == [
        "event: stream.start",
        'data: {"v":"1.0","seq":0,"type":"stream.start","request_id":"r","model":"m","created":1749292800}',
        "",
        "event: content.delta",
        'data: {"v":"1.0","seq":1,"type":"content.delta","index":0,"role":"assistant","delta":{"text":"Hello"}}',
        "",
        "event: content.delta",
        'data: {"v":"1.0","seq":2,"type":"content.delta","index":0,"role":"assistant","delta":{"text":", world"}}',
        "",
        "event: tool.call",
        'data: {"v":"1.0","seq":3,"type":"tool.call","index":1,"id":"c1","name":"f","arguments":"{\\"a\\":1}"}',
        "",
        "event: content.stop",
        'data: {"v":"1.0","seq":4,"type":"content.stop","index":0,"stop_reason":"end_turn"}',
        "",
        "event: content.stop",
        'data: {"v":"1.0","seq":5,"type":"content.stop","index":1,"stop_reason":"tool_use"}',
        "",
        "event: usage",
        'data: {"v":"1.0","seq":6,"type":"usage","input_tokens":42,"output_tokens":8}',
        "",
        "event: stream.end",
        'data: {"v":"1.0","seq":7,"type":"stream.end","request_id":"r"}',
        "",
        "",
    ]
    assert encoder.state == "ended"
    assert encoder.next_seq == 8


def test_an_error_and_the_end_after_it(llmstream, encoder):
    """R5.3.6-1, R5.3.6-3: error, then stream.end; blocks may stay open."""
    data = encoder.start("m") + encoder.delta("a") + encoder.error("overloaded", "busy")
    assert encoder.state == "errored"
    data += encoder.stop("content_filter") + encoder.usage(1, 1) + encoder.end()
    parser, events = drafts.run(llmstream, data)
    assert [event.type for event in events[2:]] == ["error", "content.stop", "usage", "stream.end"]
    assert parser.violations == []


def test_fail_ends_a_stream_wherever_it_stands(llmstream, encoder):
    data = encoder.start("m") + encoder.delta("a")
    tail = encoder.fail("overloaded", "busy")
    assert [event.type for event in drafts.run(llmstream, data + tail)[1][2:]] == ["error", "stream.end"]
    assert encoder.fail() == b""


def test_fail_after_an_error_only_ends(llmstream, encoder):
    data = encoder.start("m") + encoder.error("overloaded", "busy") + encoder.fail("internal_error", "x")
    parser, events = drafts.run(llmstream, data)
    assert [event.type for event in events] == ["stream.start", "error", "stream.end"]
    assert parser.violations == []


def test_fail_before_the_start(llmstream):
    """R5.3.1-1, R5.3.1-3, R4.6-2, A-21: no event comes before stream.start, so that one is written first."""
    from llmstream.encoder import Encoder

    for options, model, request_id in (
        ({}, "", None),
        ({"model": "m", "request_id": "r"}, "m", "r"),
        ({"request_id": ""}, "", ""),
    ):
        encoder = Encoder(clock=lambda: 5)
        data = encoder.keep_alive() + encoder.fail("overloaded", "busy", **options)
        parser, (start, error, end) = drafts.run(llmstream, data)
        assert start == llmstream.StreamStart(model=model, created=5, request_id=request_id, seq=0)
        assert error == llmstream.StreamError(code="overloaded", message="busy", seq=1)
        assert end == llmstream.StreamEnd(request_id=request_id, seq=2)
        assert parser.complete
        assert parser.violations == []
        assert encoder.state == "ended"
        assert encoder.fail(**options) == b""


def test_fail_takes_the_start_that_there_was(llmstream, encoder):
    data = encoder.start("m", request_id="r") + encoder.fail(model="other", request_id="other")
    _, events = drafts.run(llmstream, data)
    assert [(event.type, getattr(event, "request_id", None)) for event in events] == [
        ("stream.start", "r"),
        ("error", None),
        ("stream.end", "r"),
    ]


@pytest.mark.parametrize("before", ["", "start", "start delta", "start error", "start error end"])
@pytest.mark.parametrize(
    "options",
    [{"code": 5}, {"code": None}, {"message": "\ud83d"}, {"message": OSError("x")}, {"model": 5}, {"request_id": 5}],
)
def test_fail_does_all_or_nothing(encoder, before, options):
    """What it refuses leaves the encoder as it was, and it can be called again."""
    for name in before.split():
        STEPS[name](encoder)
    was = (encoder.state, encoder.next_seq, encoder.open_blocks)
    with pytest.raises((TypeError, ValueError)):
        encoder.fail(**options)
    assert (encoder.state, encoder.next_seq, encoder.open_blocks) == was
    encoder.fail()
    assert encoder.state == "ended"


def test_fail_at_the_last_numbers(encoder):
    """R5.2.1-6: there is room for the error and the end."""
    encoder.start("m")
    encoder._seq = MAX - 1
    assert [envelope_of(part + b"\n\n")["seq"] for part in encoder.fail().split(b"\n\n")[:2]] == [MAX - 1, MAX]


STEPS = {
    "start": lambda e: e.start("m"),
    "delta": lambda e: e.delta("a"),
    "other delta": lambda e: e.delta("a", 1),
    "stop": lambda e: e.stop("end_turn"),
    "call": lambda e: e.tool_call("c", "f", "{}"),
    "usage": lambda e: e.usage(1, 1),
    "error": lambda e: e.error("overloaded", "m"),
    "end": lambda e: e.end(),
    "unknown": lambda e: e.encode(unknown_event()),
}


def unknown_event() -> Any:
    from llmstream import UnknownEvent

    return UnknownEvent(type="vendor.ping")


@pytest.mark.parametrize(
    ("before", "step", "kind", "requirement"),
    [
        ("", "delta", "LifecycleError", "R5.3.1-1"),
        ("", "stop", "LifecycleError", "R5.3.1-1"),
        ("", "call", "LifecycleError", "R5.3.1-1"),
        ("", "usage", "LifecycleError", "R5.3.1-1"),
        ("", "error", "LifecycleError", "R5.3.1-1"),
        ("", "end", "LifecycleError", "R5.3.1-1"),
        ("", "unknown", "LifecycleError", "R5.3.1-1"),
        ("start", "start", "LifecycleError", "R5.3.1-2"),
        ("start delta", "start", "LifecycleError", "R5.3.1-2"),
        ("start delta stop", "stop", "LifecycleError", "R5.3-2"),
        ("start stop", "stop", "LifecycleError", "R5.3-2"),
        ("start delta stop", "delta", "LifecycleError", "R5.4-1"),
        ("start delta stop", "call", "LifecycleError", "R5.4-1"),
        ("start delta", "end", "LifecycleError", "R5.4-1"),
        ("start call", "end", "LifecycleError", "R5.4-1"),
        ("start call", "call", "ValueError", "R5.3.4-2"),
        ("start error", "error", "LifecycleError", "R5.3-5"),
        ("start error", "delta", "LifecycleError", "R5.3.6-3"),
        ("start delta error", "delta", "LifecycleError", "R5.3.6-3"),
        ("start error", "call", "LifecycleError", "R5.3.6-3"),
        ("start error", "start", "LifecycleError", "R5.3.1-2"),
        *(("start end", step, "LifecycleError", "R5.3.7-1") for step in STEPS),
        *(("start delta stop end", step, "LifecycleError", "R5.3.7-1") for step in STEPS),
        *(("start error end", step, "LifecycleError", "R5.3.7-1") for step in STEPS),
    ],
)
def test_an_order_that_is_refused(llmstream, encoder, before, step, kind, requirement):
    """R5.3-2, R5.3-5, R5.3.1-1, R5.3.1-2, R5.3.4-2, R5.3.6-3, R5.3.7-1, R5.3.7-2, R5.4-1."""
    for name in before.split():
        STEPS[name](encoder)
    was = (encoder.state, encoder.next_seq, encoder.open_blocks)
    expected = getattr(llmstream, kind, ValueError)
    with pytest.raises(expected) as caught:
        STEPS[step](encoder)
    assert str(caught.value).startswith(requirement + ": ")
    assert (encoder.state, encoder.next_seq, encoder.open_blocks) == was


def test_every_order_of_the_lifecycle_table(llmstream):
    """R5.4-1: what the encoder allows is what the table of section 5.4 allows, and a parser finds nothing in it."""
    from itertools import product

    from llmstream import rules
    from llmstream.encoder import Encoder

    columns = {"start": 0, "other delta": 1, "stop": 2, "call": 3, "usage": 4, "error": 5, "end": 6, "unknown": 7}
    for names in product(columns, repeat=4):
        encoder = Encoder()
        data, state = b"", "new"
        for name in names:
            after, broken = rules.LIFECYCLE[state][columns[name]]
            try:
                data += STEPS[name](encoder)
            except (llmstream.LLMStreamError, ValueError):
                continue
            assert not broken, names
            state = after
            assert encoder.state == state
        parser, _ = drafts.run(llmstream, data)
        left = {"R5.3.7-2", "R5.3.5-3", "R5.3.6-3"}  # cut, no usage, no end after an error
        assert set(drafts.rules_of(parser)) <= left, names


def test_the_numbers_end_at_2_to_the_53(llmstream, encoder):
    """R5.2.1-5, R5.2.1-6: a stream at the limit is refused content, and can still say so and end."""
    encoder.start("m")
    encoder.delta("a")
    encoder._seq = MAX - 2
    assert envelope_of(encoder.delta("b"))["seq"] == MAX - 2
    for step in ("delta", "other delta", "stop", "call", "usage", "unknown"):
        with pytest.raises(llmstream.SequenceError, match=r"R5\.2\.1-6"):
            STEPS[step](encoder)
    assert envelope_of(encoder.error("internal_error", "too long"))["seq"] == MAX - 1
    assert envelope_of(encoder.end())["seq"] == MAX


def test_request_id_is_echoed(encoder):
    """R4.6-2, R5.3.1-4, R5.3.7-3: in stream.end by default that of stream.start, and no other."""
    encoder.start("m", request_id="r-1")
    with pytest.raises(ValueError, match=r"R5\.3\.7-3"):
        encoder.end("r-2")
    assert envelope_of(encoder.end())["request_id"] == "r-1"


def test_request_id_only_where_there_is_one(encoder):
    assert "request_id" not in envelope_of(encoder.start("m"))
    assert "request_id" not in envelope_of(encoder.end())


@pytest.mark.parametrize("arguments", ["", "{", '{"a":}', "NaN", "{}{}", "'x'", "{'a':1}", "Vienna", '{"a":"\n"}'])
def test_arguments_are_json_text(encoder, arguments):
    """R5.3.4-4."""
    encoder.start("m")
    with pytest.raises(ValueError, match=r"R5\.3\.4-4") as caught:
        encoder.tool_call("c", "f", arguments)
    assert caught.value.__context__ is None
    assert encoder.next_seq == 1
    encoder.tool_call("c", "f", "{}")  # the id was not taken


def test_arguments_may_be_any_json(encoder):
    encoder.start("m")
    for number, arguments in enumerate(
        ["{}", "[]", "null", '"x"', " 1 ", "1" * 5000, '{"a":[1.5e300,{"b":"\\ud83d"}]}']
    ):
        assert envelope_of(encoder.tool_call(f"c{number}", "f", arguments))["arguments"] == arguments


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("arguments", [nested(500), nested(501), nested(4096), "[" + "[]," * 2000 + "[]]"])
def test_arguments_as_deep_as_a_parser_reads_are_written(encoder, arguments):
    """4,096 levels, on every Python: how deep json goes differs from one to the next."""
    encoder.start("m")
    assert envelope_of(encoder.tool_call("c", "f", arguments))["arguments"] == arguments


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (nested(4097), "too deeply"),
        (nested(100_000), "too deeply"),
        ("[" * 2000, "not JSON"),
        ("[" * 2000 + "]" * 2001, "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[" * 2000 + '"\ud83d"' + "]" * 2000, "surrogate"),
        ('["\ud83d"]', "surrogate"),
    ],
)
def test_deeper_arguments_and_those_that_are_not_json_are_refused(encoder, wrong, words):
    encoder.start("m")
    with pytest.raises(ValueError, match=words) as caught:
        encoder.tool_call("deep", "f", wrong)
    assert caught.value.__context__ is None


BREAKERS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\x00\x1f\x7f\ufeff"


@pytest.mark.parametrize(
    "text",
    [
        *BREAKERS,
        "a\ndata: forged\n\nevent: stream.end\n",
        "\r\rdata: {}\r\r",
        "data: data: {}",
        '"}}\n\n',
        '\\","x":"',
        "\u2028\u2029\x85é🚲",
        "</script>",
        "a" * 100_000,
        "",
    ],
)
def test_no_text_breaks_a_line_or_a_string(llmstream, encoder, text):
    """R5.1-3, R5.1-4, R8.1-1: B77, B78, B80: CR, LF and what other readers take for line ends are escapes; every event
    is two lines and a blank one, by any rule of splitting lines."""
    data = [
        encoder.start(text, request_id=text),
        encoder.delta(text),
        encoder.delta(text),
        encoder.delta(text, 1, extensions={"vendor:x": {text: [text]}}),
        encoder.tool_call(text, text, json.dumps(text)),
        encoder.stop(text),
        encoder.stop("end_turn", 1, extensions={"vendor:x": text}),
        encoder.usage(1, 1),
        encoder.error(text, text),
        encoder.end(),
    ]
    for event in data:
        assert event.endswith(b"\n\n")
        assert event.count(b"\n") == 3
        assert len(event.decode().splitlines()) == 3
        assert b"\r" not in event
        assert "\u2028" not in event.decode()
        event.decode("ascii" if text.isascii() or text in BREAKERS[:-1] else "utf-8")
    parser, events = drafts.run(llmstream, b"".join(data))
    assert [event.type for event in events] == [
        *("stream.start", "content.delta", "content.delta", "content.delta", "tool.call"),
        *("content.stop", "content.stop", "usage", "error", "stream.end"),
    ]
    assert [event.text for event in events[1:4]] == [text] * 3
    assert events[3].extensions == {"vendor:x": {text: [text]}}
    assert (events[4].id, events[4].arguments) == (text, json.dumps(text))
    assert not parser.error_count


@pytest.mark.parametrize("text", ["\ud83d", "a\ude00b", "é\ud83d"])
def test_halves_of_surrogate_pairs_are_refused(encoder, text):
    """A-24, R8.1-1: and the error holds nothing of the text."""
    encoder.start("m")
    encoder.delta("a")
    encoder.delta("a", 1)
    for step in (
        lambda: encoder.delta(text, 1),
        lambda: encoder.delta(text, 2),
        lambda: encoder.delta("", extensions={"a:b": text}),
        lambda: encoder.tool_call(text, "f", "{}"),
        lambda: encoder.tool_call("c", "f", json.dumps(text, ensure_ascii=False)),
        lambda: encoder.stop(text),
        lambda: encoder.error("overloaded", text),
    ):
        with pytest.raises(ValueError, match="surrogate") as caught:
            step()
        assert type(caught.value) is ValueError
        assert caught.value.__context__ is None or type(caught.value.__context__) is UnicodeEncodeError
        assert caught.value.__cause__ is None
    assert encoder.next_seq == 3


@pytest.mark.parametrize(
    "step",
    [
        lambda e: e.delta(1),
        lambda e: e.delta(None),
        lambda e: e.delta(b"a"),
        lambda e: e.delta("a", "0"),
        lambda e: e.delta("a", None),
        lambda e: e.delta("a", 2.5),
        lambda e: e.delta("a", -1),
        lambda e: e.delta("a", 2**63),
        lambda e: e.delta("a", []),
        lambda e: e.delta("a", 0.0),
        lambda e: e.delta("a", False),
        lambda e: e.delta("a", extensions={1: 2}),
        lambda e: e.delta("a", extensions={"a:b": {1, 2}}),
        lambda e: e.delta("a", extensions={"a:b": float("inf")}),
        lambda e: e.delta("a", extensions=3),
        lambda e: e.stop(None),
        lambda e: e.tool_call("c", "f", {"city": "Vienna"}),
        lambda e: e.tool_call(None, "f", "{}"),
        lambda e: e.usage(-1, 1),
        lambda e: e.usage(1.0, 1),
        lambda e: e.usage(True, 1),
        lambda e: e.usage("1", 1),
        lambda e: e.usage(None, 1),
        lambda e: e.error(500, "m"),
        lambda e: e.error("m", None),
        lambda e: e.end(7),
        lambda e: e.comment(7),
        lambda e: e.encode("x"),
    ],
)
def test_members_of_the_wrong_type_are_refused(encoder, step):
    """R5.3.2-1, R5.3.2-2, R5.3.3-1, R5.3.4-1, R5.3.5-1, R5.3.6-1: and nothing is counted."""
    encoder.start("m")
    with pytest.raises((TypeError, ValueError)):
        step(encoder)
    assert encoder.next_seq == 1
    assert encoder.open_blocks == []


@pytest.mark.parametrize("index", [False, 0.0, 0j, "0", None, float("nan"), [], -1, 2**63])
def test_the_second_delta_is_as_strict_as_the_first(encoder, index):
    """R5.3.2-1: what is equal to the index of the block that goes on is not that index."""
    encoder.start("m")
    encoder.delta("a", 0)
    with pytest.raises((TypeError, ValueError), match="index"):
        encoder.delta("a", index)
    encoder.delta("a", 1)
    for wrong in (True, 1.0):
        with pytest.raises(TypeError, match="index"):
            encoder.delta("a", wrong)
    assert encoder.next_seq == 3


def test_indexes_beyond_those_that_python_keeps(llmstream, encoder):
    data = encoder.start("m") + b"".join(encoder.delta("a", int(f"{10**12}")) for _ in range(3))
    assert [event.index for event in drafts.run(llmstream, data)[1][1:]] == [10**12] * 3


METHODS = {
    "start": lambda e, given: e.start("m", extensions=given),
    "delta": lambda e, given: e.delta("a", extensions=given),
    "call": lambda e, given: e.tool_call("c", "f", "{}", extensions=given),
    "stop": lambda e, given: e.stop("end_turn", extensions=given),
    "usage": lambda e, given: e.usage(1, 1, extensions=given),
    "error": lambda e, given: e.error("overloaded", "m", extensions=given),
    "end": lambda e, given: e.end(extensions=given),
}
CLASSES = [
    *("StreamStart", "ContentDelta", "ContentStop", "ToolCall", "Usage", "StreamError", "StreamEnd"),
    "UnknownEvent",
]
NO_EXTENSIONS = [
    *([], (), 0, "", b"", False, 0.0, set(), frozenset(), "a:b", 5, True, [("a:b", 1)], {"a:b"}, object()),
    {1: 2},
    {None: 1},
    {"a:b": 1, 2: 3},
    {"a:b": {1: "x", "1": "y"}},
    {"a:b": {True: 1}},
    {"a:b": {"c": {1.5: 1}}},
    {"a:b": [{"c": [{None: 1}]}]},
    {"a:b": ({"c": 1}, {2: 1})},
    {"a:b": {("c",): 1}},
    {"a:b": {b"c": 1}},
    {"a:b": {1, 2}},
    {"a:b": b"x"},
    {"a:b": object()},
]


@pytest.mark.parametrize("given", NO_EXTENSIONS, ids=repr)
def test_extensions_that_are_none(llmstream, given):
    """R4.7-1: names are str at every depth, since JSON has no others; nothing is made of what is no mapping."""
    from llmstream.encoder import Encoder

    for name, method in METHODS.items():
        for before in (["start"] if name != "start" else [], ["start", "delta", "delta"]):
            if name in ("start", "end") and len(before) > 1:
                continue
            encoder = Encoder()
            for step in before:
                METHODS[step](encoder, None)
            was = (encoder.state, encoder.next_seq, encoder.open_blocks)
            with pytest.raises(TypeError) as caught:
                method(encoder, given)
            assert caught.value.__context__ is None
            assert (encoder.state, encoder.next_seq, encoder.open_blocks) == was
    for name in CLASSES:
        with pytest.raises(TypeError):
            getattr(llmstream, name)(extensions=given)


def test_extensions_that_are_empty_or_another_mapping(llmstream):
    from collections import ChainMap, OrderedDict
    from types import MappingProxyType

    from llmstream.encoder import Encoder

    for given in (None, {}, OrderedDict(), MappingProxyType({}), ChainMap({}, {})):
        encoder = Encoder(clock=lambda: 5)
        for method in METHODS.values():
            assert b"extensions" not in method(encoder, given)
        assert llmstream.Usage(extensions=given).extensions == {}
    for given in (OrderedDict({"a:b": 1}), MappingProxyType({"a:b": 1}), ChainMap({"a:b": 1}, {})):
        encoder = Encoder(clock=lambda: 5)
        for method in METHODS.values():
            assert envelope_of(method(encoder, given))["extensions"] == {"a:b": 1}
        assert llmstream.Usage(extensions=given).extensions == {"a:b": 1}


def test_extensions_with_names_as_json_has_them(encoder):
    value = {"a:b": {"": [], "1": {"true": None}, Text("c"): ({},)}}
    encoder.start("m")
    assert envelope_of(encoder.delta("a", extensions=value))["extensions"] == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    "options", [{"model": 1}, {"model": None}, {"created": 1.5}, {"created": -1}, {"created": "1"}, {"request_id": 7}]
)
def test_a_bad_start_is_refused(encoder, options):
    """R5.3.1-3, R5.3.1-4."""
    with pytest.raises((TypeError, ValueError)):
        encoder.start(**{"model": "m", **options})
    assert encoder.state == "new"


def test_extensions_nested_without_end(encoder):
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    encoder.start("m")
    for value in (loop, deep):
        with pytest.raises(ValueError, match=r"Circular|deeply"):
            encoder.delta("a", extensions={"a:b": value})
    deep.clear()


def test_comments_keep_a_connection_alive(llmstream, encoder):
    """A-27: at any time, and no event."""
    data = encoder.keep_alive() + encoder.start("m") + encoder.comment("at work") + encoder.comment()
    data += encoder.usage(1, 1) + encoder.keep_alive() + encoder.end() + encoder.keep_alive()
    assert data.count(b"\n: ") == 4
    parser, events = drafts.run(llmstream, data)
    assert [event.type for event in events] == ["stream.start", "usage", "stream.end"]
    assert parser.violations == []


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "x\n\ndata: forged\n\n", "\u2028", "\0", "\ud83d"])
def test_a_comment_is_one_line(encoder, text):
    """B77."""
    with pytest.raises(ValueError, match=r"one line|surrogate"):
        encoder.comment(text)


def test_unknown_words_are_handed_on(llmstream, encoder):
    """A-12: a vendor's word is written; a checker warns of it."""
    data = encoder.start("m") + encoder.delta("a") + encoder.stop("refusal") + encoder.usage(1, 1)
    parser, events = drafts.run(llmstream, data + encoder.error("timeout", "m") + encoder.end())
    assert events[2].stop_reason == "refusal"
    assert drafts.rules_of(parser) == ["R5.3.3-2", "R5.3.6-2"]
    assert not parser.error_count


def test_blocks_that_alternate(llmstream, encoder):
    texts = [(f"t{number}", number % 3) for number in range(30)]
    data = encoder.start("m") + b"".join(encoder.delta(text, index) for text, index in texts)
    assert encoder.open_blocks == [0, 1, 2]
    data += b"".join(encoder.stop("end_turn", index) for index in range(3)) + encoder.usage(1, 1) + encoder.end()
    parser, events = drafts.run(llmstream, data, strict=True)
    assert [(event.text, event.index) for event in events[1:31]] == texts
    assert parser.violations == []


def test_blocks_and_calls_are_bounded(llmstream, encoder):
    """L-BLOCKS: what a parser no longer follows is not written."""
    encoder.start("m")
    for number in range(4096):
        encoder.tool_call(f"c{number}", "f", "{}", number)
    for step in (lambda: encoder.delta("a", 5000), lambda: encoder.stop("end_turn", 5000)):
        with pytest.raises(llmstream.LifecycleError, match="L-BLOCKS"):
            step()
    with pytest.raises(llmstream.LifecycleError, match="L-BLOCKS"):
        encoder.tool_call("more", "f", "{}", 0)


class Text(str):
    __slots__ = ()


def test_subclasses_of_str_and_int(llmstream, encoder):
    class Number(int):
        def __str__(self) -> str:
            return "forged"

        __repr__ = __format__ = __str__  # type: ignore[assignment]

    data = encoder.start(Text("m"), created=Number(5)) + encoder.delta(Text("a"), Number(0)) + encoder.delta(Text("é"))
    data += encoder.stop(Text("end_turn"), Number(0)) + encoder.usage(Number(1), Number(2)) + encoder.end()
    parser, _ = drafts.run(llmstream, data, strict=True)
    assert parser.violations == []
    assert b"forged" not in data


def test_the_clock_is_that_of_the_encoder(llmstream):
    from llmstream.encoder import Encoder

    before = int(time.time())
    assert before <= envelope_of(Encoder().start("m"))["created"] <= time.time()
    assert envelope_of(Encoder(clock=lambda: 5.9).start("m"))["created"] == 5
    assert envelope_of(Encoder(clock=lambda: 5.9).start("m", created=7))["created"] == 7


# Events as objects


def test_events_read_are_written_and_read_again(llmstream):
    """R7.1-1: numbers are the encoder's own, so a gateway that left events out writes a good stream."""
    from llmstream.encoder import Encoder

    data = drafts.start(extensions={"a:b": [1]}) + drafts.delta(1, "x", extensions={"a:b": {"\u2028": 1.5}})
    data += drafts.event("vendor.ping", 2, n=[1, {"x": None}], extensions={"c:d": 1}) + drafts.delta(3, "y")
    data += drafts.tool_call(4) + drafts.stop(5, 0, "tool_use") + drafts.usage(6) + drafts.end(7, request_id="z")
    _, events = drafts.run(llmstream, data)
    again = b"".join(Encoder().encode_events(events))
    parser, found = drafts.run(llmstream, again, strict=True)
    assert found == events
    assert found[2].json() == {**events[2].json()}
    assert parser.violations == []

    without = [event for event in events if event.type != "vendor.ping"]
    _, found = drafts.run(llmstream, b"".join(Encoder().encode_events(without)), strict=True)
    assert [event.seq for event in found] == list(range(7))


NUMBERS = [
    *("1e400", "-1E+999", "1e-400", "0.10", "-0", "0.1" + "0" * 400 + "1"),
    *("1" * 300, "9" * 5000, "-" + "8" * 100_000),
]
VALUES = [
    *NUMBERS,
    *(f'[{{"\\u2028":[{number}]}}]' for number in NUMBERS),
    *("[" * depth + '"x"' + "]" * depth for depth in (900, 1100, 2000, 4000)),
    '{"a":' * 2000 + "1e400" + "}" * 2000,
    '"\\/\\u0041\\ud83d\\ude00\\"}],{\\\\"',
    '[" ",{"\\n": "}"}, [] ,{ } ,"" ]',
    '"é東🚲\u2028\x85"',
    '{"a":1,"a":{"b":2,"b":3}}',
]


def read_once(llmstream: Any, value: str, **options: Any) -> list[Any]:
    """Events of each kind that hold the JSON text ``value`` in their extensions; unknown ones as a member too."""
    more = ' , "extensions" : {"a:b": ' + value + "\t}}"
    lines = [
        ("stream.start", '"model":"m","created":1'),
        ("content.delta", '"index":0,"role":"assistant","delta":{"text":"x"}'),
        ("content.delta", '"index":0,"role":"assistant","delta":{"text":"y"}'),
        ("content.delta", '"index":0,"role":"assistant","delta":{"text":"z"}'),
        ("vendor.ping", f'"k":{value},"ke\\"y": {value} ,"\\u006b":{{}}'),
        ("tool.call", '"index":0,"id":"c","name":"f","arguments":"{}"'),
        ("content.stop", '"index":0,"stop_reason":"tool_use"'),
        ("usage", '"input_tokens":1,"output_tokens":2'),
        ("stream.end", '"request_id":"r"'),
    ]
    data = "".join(
        f'event: {kind}\ndata: {{"v":"1.0","seq":{seq},"type":"{kind}",{members}{more}\n\n'
        for seq, (kind, members) in enumerate(lines)
    )
    parser, events = drafts.run(llmstream, data.encode(), **options)
    assert parser.violations == []
    assert len(events) == len(lines)
    return events


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:12])
@pytest.mark.parametrize("shapes", [True, False])
def test_what_is_read_without_a_fault_is_written_and_read_again(llmstream, value, shapes):
    """R1.4-1, R5.2-7, P3: numbers that no float and no int of bounded digits holds, any nesting that is read, any
    spelling: each is the same text in the second stream."""
    from llmstream.encoder import Encoder

    events = read_once(llmstream, value, shapes=shapes)
    written = list(Encoder().encode_events(events))
    for data in written:
        assert data.endswith(b"\n\n")
        assert len(data.decode().splitlines()) == 3
    parser, found = drafts.run(llmstream, b"".join(written), strict=True)
    assert parser.violations == []
    assert found == events
    for kept in (pickle.loads(pickle.dumps(found)), [copy.copy(event) for event in found]):
        assert b"".join(Encoder().encode_events(kept)) == b"".join(written)
    numbers = [token for token in re.findall(r"[-+.0-9eE]+", value) if token.strip("eE-+.")]
    for number in numbers:
        assert all(number.encode() in data for data in written)


def test_the_last_of_members_with_one_name_is_written(llmstream, encoder):
    """A-16, R5.2-7: and none of the three that an encoder writes itself, however they are spelled."""
    data = drafts.start() + (
        b'event: x.y\ndata: {"k":1,"v":"1.0", "\\u006b" : [ 2 , 3 ],"seq":1,"type":"x.y","extensions":{"a:b":1},'
        b'"ext\\u0065nsions":{"a:b":2},"vv":"v"}\n\n'
    )
    parser = llmstream.Parser()
    events = parser.feed(data)
    assert parser.violations == []
    encoder.encode(events[0])
    line = lines_of(encoder.encode(events[1]))[1]
    assert line == 'data: {"v":"1.0","seq":1,"type":"x.y","k":[2,3],"extensions":{"a:b":2},"vv":"v"}'


def test_extensions_under_a_name_with_escapes(llmstream, encoder):
    data = drafts.start() + (
        b'event: usage\ndata: {"v":"1.0","seq":1,"type":"usage","input_tokens":1,"output_tokens":2,'
        b'"\\u0065\\u0078tensions":{"a:b":1e400}}\n\n'
    )
    _, events = drafts.run(llmstream, data)
    assert events[1].extensions == {"a:b": float("inf")}
    encoder.encode(events[0])
    assert b'"extensions":{"a:b":1e400}' in encoder.encode(events[1])


def test_extensions_over_several_data_lines(llmstream, encoder):
    data = drafts.start() + (
        b'event: usage\ndata: {"v":"1.0","seq":1,"type":"usage","input_tokens":1,\ndata: "output_tokens":2,\r\n'
        b'data: "extensions":\ndata: {"a:b"\ndata: :[1,\ndata: 2]}}\n\n'
    )
    _, events = drafts.run(llmstream, data)
    encoder.encode(events[0])
    assert lines_of(encoder.encode(events[1]))[1].endswith('"output_tokens":2,"extensions":{"a:b":[1,2]}}')


@pytest.mark.parametrize("value", ["5", "[]", "null", "[{}]", '"x"', "{}"])
def test_extensions_that_are_no_object_are_not_handed_on(llmstream, encoder, value):
    """R4.7-1: they are read as none. Those of an unknown type are a member like others."""
    data = drafts.start() + b"".join(
        f'event: {kind}\ndata: {{"v":"1.0","seq":{seq},"type":"{kind}",{members}"extensions":{value}}}\n\n'.encode()
        for seq, kind, members in ((1, "usage", '"input_tokens":1,"output_tokens":2,'), (2, "x.y", ""))
    )
    _, events = drafts.run(llmstream, data)
    encoder.encode(events[0])
    assert b"extensions" not in encoder.encode(events[1])
    assert f'"extensions":{value}'.encode() in encoder.encode(events[2])


def test_halves_of_pairs_in_members_that_were_read(llmstream, encoder):
    """A-24: they are read as U+FFFD, and written so."""
    data = drafts.start() + b'event: x.y\ndata: {"v":"1.0","seq":1,"type":"x.y","k":["\\ud83d","\\ud83d\\ude00"]}\n\n'
    _, events = drafts.run(llmstream, data)
    encoder.encode(events[0])
    assert envelope_of(encoder.encode(events[1]))["k"] == ["\ufffd", "😀"]


def test_events_of_a_vendor_keep_their_extensions(llmstream):
    """R7.1-1: these are not in the payload that the event came from."""
    from llmstream.encoder import Encoder

    error = b'data: {"error":{"message":"quota","code":429,"extensions":{"decoy:x":1}}}\n\n'
    parser = llmstream.Parser("openai")
    [found] = [event for event in parser.feed(error) if event.type == "error"]
    found = pickle.loads(pickle.dumps(found))
    encoder = Encoder()
    encoder.start("m")
    assert envelope_of(encoder.encode(found)).get("extensions", {}) == found.extensions


@pytest.mark.parametrize("depth", [900, 1100, 2000, 4000])
def test_arguments_as_deep_as_they_are_read(llmstream, depth):
    """R5.3.4-4: a parser finds nothing in them, so they are written."""
    from llmstream.encoder import Encoder

    for arguments in ("[" * depth + "]" * depth, '{"a":' * depth + "1e400" + "}" * depth):
        data = drafts.start() + drafts.tool_call(1, arguments=arguments) + drafts.stop(2, 0, "tool_use")
        data += drafts.usage(3) + drafts.end(4)
        parser, events = drafts.run(llmstream, data)
        assert parser.violations == []
        parser, found = drafts.run(llmstream, b"".join(Encoder().encode_events(events)), strict=True)
        assert found == events
        assert parser.violations == []


def test_a_payload_too_deep_for_any_reader(llmstream, encoder):
    """R5.1-3: whoever made it, one of these is not handed on, and the error has nothing of it."""
    deep = b'{"v":"1.0","seq":1,"type":"x.y","k":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    parser = llmstream.Parser(max_depth=10**6)
    parser.feed(drafts.start())
    [event] = parser.feed(b"event: x.y\ndata: " + deep + b"\n\n")
    encoder.start("m")
    with pytest.raises(ValueError, match=r"R5\.1-3") as caught:
        encoder.encode(event)
    assert caught.value.__context__ is None
    assert encoder.next_seq == 1


def test_events_built_by_hand(llmstream):
    from llmstream.encoder import Encoder

    events = [
        llmstream.StreamStart(model="m", created=1),
        llmstream.ContentDelta(text="a", extensions={"a:b": 1}),
        llmstream.UnknownEvent(type="vendor.ping", extensions={"a:b": 2}),
        llmstream.ContentStop(stop_reason="end_turn"),
        llmstream.Usage(input_tokens=1, output_tokens=2),
        llmstream.StreamEnd(),
    ]
    _, found = drafts.run(llmstream, b"".join(map(Encoder().encode, events)), strict=True)
    assert [(type(event), event.extensions) for event in found] == [(type(e), e.extensions) for e in events]
    assert [event.seq for event in found] == list(range(6))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("ContentDelta", {"reasoning": "hm"}, "reasoning"),
        ("ContentDelta", {"role": "user"}, r"R5\.3\.2-1"),
        ("ContentStop", {}, "stop_reason"),
        ("ToolCall", {"id": "c", "name": "f"}, "arguments"),
        ("ToolCall", {"id": "c", "name": "f", "arguments": "{"}, r"R5\.3\.4-4"),
        ("Usage", {"input_tokens": 1}, "output_tokens"),
        ("StreamError", {"code": "x"}, "message"),
        ("StreamStart", {"model": "m"}, r"R5\.3\.1-2"),
        ("UnknownEvent", {"type": ""}, "one line"),
        ("UnknownEvent", {"type": "x\n\ndata: forged"}, "one line"),
        ("UnknownEvent", {"type": "x\ry"}, "one line"),
        ("UnknownEvent", {"type": "x\u2028y"}, "one line"),
        ("UnknownEvent", {"type": "usage"}, "type of the draft"),
    ],
)
def test_events_that_cannot_be_written(llmstream, encoder, name, options, words):
    """R5.2-5: B77: no field of an event forges another event."""
    encoder.start("m")
    with pytest.raises((TypeError, ValueError, llmstream.LifecycleError), match=words):
        encoder.encode(getattr(llmstream, name)(**options))
    assert encoder.next_seq == 1


def test_an_event_whose_payload_is_no_json(llmstream, encoder):
    """R5.1-3: one payload in, none out."""
    _, events = drafts.run(llmstream, b"data: not json SECRET\n\n", dialect="auto")
    encoder.start("m")
    unknown = [event for event in events if isinstance(event, llmstream.UnknownEvent)]
    for event in unknown:
        with pytest.raises(ValueError, match=r"one line|R5\.1-3") as caught:
            encoder.encode(event)
        assert "SECRET" not in str(caught.value)


def test_generators(llmstream):
    from llmstream.encoder import Encoder

    _, events = drafts.run(llmstream, drafts.whole("a", "b"))

    async def source():
        for event in events:
            yield event

    async def gathered():
        return [data async for data in Encoder().aencode_events(source())]

    found = list(Encoder().encode_events(iter(events)))
    assert found == asyncio.run(gathered())
    assert b"".join(found).count(b"\n\n") == len(events)


def test_an_encoder_has_no_attributes_but_its_own(encoder):
    with pytest.raises(AttributeError):
        encoder.sequence = 5
    with pytest.raises(AttributeError):
        encoder.next_seq = 5
    with pytest.raises(TypeError):
        pickle.dumps(encoder, 0)
