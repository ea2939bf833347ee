"""SignalR and Connect, whose payloads the user declares; with messages of the real libraries where those are there."""

from __future__ import annotations

import gzip
import json
from importlib import import_module

import pytest

from vendors import compact


@pytest.fixture
def signalr(llmstream):
    return import_module("llmstream.dialects.signalr").SignalR


@pytest.fixture
def connect(llmstream):
    return import_module("llmstream.dialects.connect").Connect


def parse(llmstream, data, dialect):
    result = llmstream.parse(data, dialect=dialect)
    assert llmstream.parse([data[at : at + 1] for at in range(len(data))], dialect=dialect) == result
    return result


# SignalR


def records(*messages):
    return b"".join(compact(message).encode() + b"\x1e" for message in messages)


def item(**item):
    return {"type": 2, "invocationId": "1", "item": item}


COMPLETED = {"type": 3, "invocationId": "1"}


def test_items_of_a_stream(llmstream, signalr):
    data = records({}, item(text="Hel"), {"type": 6}, item(text="lo", why="stop", tokens=[7, 5]), COMPLETED)

    def dialect():
        return signalr(
            text="item.text",
            stop_reason="item.why",
            stop_reasons={"stop": "end_turn"},
            input_tokens="item.tokens[0]",
            output_tokens="item.tokens[1]",
        )

    result = parse(llmstream, data, dialect)
    assert (result.text, result.stop_reasons, result.complete) == ("Hello", {0: "end_turn"}, True)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 5)
    assert not result.violations
    assert not llmstream.parse(data[: data.rindex(b'{"type":3')], dialect=dialect).complete


def test_calls_of_the_client(llmstream, signalr):
    call = {"type": 1, "target": "update", "arguments": [{"messages": [{"text": "Hello"}]}]}
    result = parse(llmstream, records({}, call, COMPLETED), lambda: signalr(text="arguments[0].messages[0].text"))
    assert (result.text, result.stop_reasons) == ("Hello", {0: "end_turn"})


@pytest.mark.parametrize("last", [{**COMPLETED, "error": "it broke"}, {"type": 7, "error": "it broke"}])
def test_errors_of_a_hub(llmstream, signalr, last):
    result = parse(llmstream, records({}, item(text="a"), last), lambda: signalr(text="item.text"))
    assert (result.error.code, result.error.message) == ("internal_error", "it broke")
    assert result.complete == (last["type"] == 3)


def test_no_stop_reason_is_made_up_after_an_error(llmstream, signalr, connect):
    """None was given: the answer did not come to its end."""
    failed = b'{"error":{"code":"unavailable","message":"m"}}'
    streams = [
        (records({}, item(text="a"), {**COMPLETED, "error": "it broke"}), lambda: signalr(text="item.text")),
        (records({}, item(text="a"), item(error="e"), {**COMPLETED, "error": "m"}), lambda: signalr(text="item.text")),
        (envelope(b'{"t":"a"}') + envelope(failed, 2), lambda: connect(text="t")),
        (envelope(field(1, "a")) + envelope(failed, 2), lambda: connect(text="1")),
        (envelope(failed, 2), lambda: connect(text="t")),
    ]
    for data, dialect in streams:
        parser = llmstream.Parser(dialect)
        kinds = [event.type for event in parser.feed(data) + parser.close()]
        assert kinds.count("error") == 1
        assert "content.stop" not in kinds
        assert kinds[-1] == "stream.end"
        output, transcoder = transcoded(llmstream, data, dialect)
        assert b"end_turn" not in output
        assert transcoder.error is not None


def test_a_vendors_own_stop_reason_counts_beside_an_error(llmstream, connect):
    failed = envelope(b'{"error":{"code":"unavailable"}}', 2)
    result = llmstream.parse(
        envelope(b'{"t":"a","why":"cut"}') + failed,
        dialect=lambda: connect(text="t", stop_reason="why", stop_reasons={"cut": "max_tokens"}),
    )
    assert (result.stop_reasons, result.error.code) == ({0: "max_tokens"}, "overloaded")


def transcoded(llmstream, data, dialect):
    transcoder = llmstream.Transcoder(dialect)
    output = transcoder.feed(data) + transcoder.close()
    assert llmstream.check(output).ok
    return output, transcoder


def test_a_handshake_that_is_refused(llmstream, signalr):
    assert parse(llmstream, records({"error": "no such protocol"}), signalr).error.message == "no such protocol"


def test_auto_tells_a_hub_and_says_what_went_wrong(llmstream):
    result = parse(llmstream, records({}, item(text="a"), {**COMPLETED, "error": "it broke"}), "auto")
    assert (result.dialect, result.text, result.error.message) == ("signalr", "", "it broke")


def test_messages_of_pysignalr(llmstream, signalr):
    messages = pytest.importorskip("pysignalr.messages")
    protocol = pytest.importorskip("pysignalr.protocol.json").JSONProtocol()
    written = [
        messages.StreamItemMessage(invocation_id="1", item={"text": "Schöner "}),
        messages.PingMessage(),
        messages.StreamItemMessage(invocation_id="1", item={"text": "Tag\x1e"}),
        messages.CompletionMessage(invocation_id="1"),
    ]
    encoded = (protocol.encode(message) for message in written)
    data = b"{}\x1e" + b"".join(each.encode() if isinstance(each, str) else each for each in encoded)
    result = parse(llmstream, data, lambda: signalr(text="item.text"))
    assert (result.text, result.complete, result.violations) == ("Schöner Tag\x1e", True, [])


# Connect


def envelope(data, flags=0):
    return bytes([flags]) + len(data).to_bytes(4, "big") + data


def field(number, value):
    """A field of protobuf: text, bytes or an integer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value):
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


ENDED = envelope(b"{}", 2)


def test_protobuf_by_field_numbers(llmstream, connect):
    def dialect():
        return connect(
            text="2.1",
            reasoning="2.5",
            stop_reason="3",
            stop_reasons={"stop": "end_turn"},
            model="1",
            input_tokens="4.1",
            output_tokens="4.2",
        )

    last = field(3, "stop") + field(4, field(1, 300) + field(2, 5))
    data = b"".join(
        [
            envelope(field(1, "m") + field(9, 2**63)),
            envelope(field(2, field(5, "Hm"))),
            envelope(gzip.compress(field(2, field(1, "Hel") + field(7, "other"))), 1),
            envelope(b""),
            envelope(field(2, field(1, "lö"))),
            envelope(last),
        ]
    )
    result = parse(llmstream, data + ENDED, dialect)
    assert (result.text, result.reasoning, result.model) == ("Hellö", "Hm", "m")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (300, 5)
    assert (result.stop_reasons, result.complete, result.violations) == ({0: "end_turn"}, True, [])
    assert not llmstream.parse(data, dialect=dialect).complete


def test_json_by_path(llmstream, connect):
    data = envelope(b'{"message":{"text":"Hello"}}') + ENDED
    result = parse(llmstream, data, lambda: connect(text="message.text"))
    assert (result.text, result.stop_reasons, result.complete) == ("Hello", {0: "end_turn"}, True)


def test_an_end_that_is_an_error(llmstream, connect):
    end = {"error": {"code": "resource_exhausted", "message": "m"}}
    data = envelope(field(1, "a")) + envelope(json.dumps(end).encode(), 2)
    result = parse(llmstream, data, lambda: connect(text="1"))
    assert (result.text, result.error.code, result.error.message, result.complete) == ("a", "rate_limited", "m", True)


def test_a_body_that_is_an_error(llmstream, connect):
    result = llmstream.parse(b'{"code":"unauthenticated","message":"m"}', dialect=connect)
    assert (result.error.code, result.error.message) == ("unauthenticated", "m")


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a\xff",  # a length that is cut
        b"\x0a\x05ab",  # text that is cut
        b"\x0b",  # a group
        b"\x02\x01",  # field 0
        b"\x08" + b"\xff" * 10,  # a varint without an end
        b"\x0a\x01\xff",  # text that is no UTF-8
        b"\x09abc",  # a number that is cut
    ],
)
def test_what_is_no_message_is_a_violation(llmstream, connect, message):
    result = parse(llmstream, envelope(field(1, "a")) + envelope(message) + ENDED, lambda: connect(text="1"))
    assert (result.text, result.complete) == ("a", True)
    assert "R5.1-3" in [v.requirement for v in result.violations]


def test_fixed_numbers_and_repetitions(llmstream):
    read = import_module("llmstream.dialects.protobuf").read
    message = (
        field(1, "a") + varint(2 << 3 | 1) + bytes(7) + b"\x01" + varint(3 << 3 | 5) + b"\x05\0\0\0" + field(1, "b")
    )
    assert read(message, [(1,), (2,), (3,), (4,)]) == {(1,): "ab", (2,): 2**56, (3,): 5}


@pytest.mark.parametrize("path", ["0", "1.0", "536870912", ".".join("1" * 17), "a..b", "a[x]", ""])
def test_paths_that_are_none(llmstream, connect, path):
    with pytest.raises(ValueError, match="path"):
        connect(text=path)


def test_an_unknown_path(llmstream, signalr):
    with pytest.raises(TypeError, match="unknown path 'words'"):
        signalr(words="item.text")


def test_messages_of_protobuf(llmstream, connect):
    descriptor = pytest.importorskip("google.protobuf.descriptor_pb2")
    factory = pytest.importorskip("google.protobuf.message_factory")
    file = descriptor.FileDescriptorProto(name="chat.proto", package="chat", syntax="proto3")
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="text", number=1, type=9, label=1)
    inner.field.add(name="score", number=2, type=1, label=1)
    outer = file.message_type.add(name="Outer")
    outer.field.add(name="noise", number=1, type=13, label=3)
    outer.field.add(name="inner", number=2, type=11, label=1, type_name=".chat.Inner")
    outer.field.add(name="tokens", number=15, type=3, label=1)
    outer.field.add(name="spent", number=16, type=7, label=1)
    message = factory.GetMessages([file])["chat.Outer"]
    written = [
        message(noise=[1, 2, 300], inner={"text": "Schöner ", "score": 0.5}),
        message(inner={"text": "Tag"}),
        message(tokens=70000, spent=5),
    ]
    data = b"".join(envelope(each.SerializeToString()) for each in written) + ENDED
    result = parse(llmstream, data, lambda: connect(text="2.1", input_tokens="15", output_tokens="16"))
    assert (result.text, result.usage.input_tokens, result.usage.output_tokens) == ("Schöner Tag", 70000, 5)
    assert result.complete


# Whose end it is, and what is missing


def test_a_completion_with_text_ends_the_stream(llmstream, signalr):
    """Where no items come, the result of the invocation is the answer."""
    data = records({}, {**COMPLETED, "result": {"text": "whole"}})
    result = parse(llmstream, data, lambda: signalr(text="result.text"))
    assert (result.text, result.stop_reasons, result.complete) == ("whole", {0: "end_turn"}, True)
    assert result.violations == []


@pytest.mark.parametrize("other", [{"type": 3, "invocationId": "2"}, {"type": 3, "invocationId": "2", "error": "e"}])
def test_the_completion_of_another_invocation_ends_nothing(llmstream, signalr, other):
    data = records({}, item(text="hi"), other, item(text=" you"), COMPLETED)
    result = parse(llmstream, data, lambda: signalr(text="item.text"))
    assert (result.text, result.stop_reasons, result.complete) == ("hi you", {0: "end_turn"}, True)
    assert result.error is None
    cut = records({}, item(text="hi"), other, item(text=" you"))
    assert not llmstream.parse(cut, dialect=lambda: signalr(text="item.text")).complete


def undeclared(llmstream, name):
    """A stream of a format whose paths nobody declared."""
    if name in ("signalr", "microsoft-copilot", "auto"):
        call = {"type": 1, "target": "t", "arguments": []}
        return records({}, item(text="hi"), COMPLETED), records({}, call, COMPLETED)
    return (
        envelope(b'{"text":"hi"}') + ENDED,
        envelope(field(2, field(1, "hi"))) + envelope(field(1, "x")) + ENDED,
    )


@pytest.mark.parametrize("name", ["signalr", "microsoft-copilot", "auto", "connect", "cursor", "windsurf"])
def test_no_paths_are_no_whole_answer(llmstream, name):
    """What cannot be read is told, once, and is no empty answer that is complete."""
    for data in undeclared(llmstream, name):
        result = parse(llmstream, data, name)
        assert (result.text, result.complete) == ("", False)
        found = [(v.requirement, v.severity) for v in result.violations]
        assert found == [("L-DIALECT", "error"), ("R5.3.7-2", "error")]
        output, transcoder = transcoded(llmstream, data, name)
        assert not transcoder.complete
        assert not llmstream.parse(output).complete or llmstream.parse(output).error is not None


def test_no_paths_are_needed_where_nothing_of_an_answer_came(llmstream, signalr, connect):
    assert parse(llmstream, records({}, {"type": 6}, COMPLETED), signalr).complete
    assert parse(llmstream, ENDED, connect).complete


@pytest.mark.parametrize("paths", [("2", "2.1"), ("2.1", "2"), ("2.1", "2.1.3"), ("1.2.3", "1")])
def test_field_numbers_that_lead_into_another_path(llmstream, connect, paths):
    """A field is text, or a message with fields."""
    with pytest.raises(ValueError, match="path"):
        connect(text=paths[0], reasoning=paths[1])
    connect(text="2.1", reasoning="2.2", model="3")
    connect(text="2.1", reasoning="2.1")


def test_text_that_is_none_is_a_violation(llmstream, connect, signalr):
    streams = [
        (envelope(field(1, 5)) + ENDED, lambda: connect(text="1")),
        (envelope(b'{"t":5}') + ENDED, lambda: connect(text="t")),
        (envelope(b'{"t":{"a":"b"}}') + ENDED, lambda: connect(reasoning="t")),
        (records({}, item(text=["a"]), COMPLETED), lambda: signalr(text="item.text")),
    ]
    for data, dialect in streams:
        assert [v.requirement for v in parse(llmstream, data, dialect).violations] == ["L-PAYLOAD"]
        assert transcoded(llmstream, data, dialect)[1].error is not None
    data = records({}, item(text=None), item(text="a"), COMPLETED)
    assert parse(llmstream, data, lambda: signalr(text="item.text")).violations == []


def test_they_are_reached_by_name(llmstream, connect, signalr):
    dialects = import_module("llmstream.dialects")
    assert (dialects.Connect, dialects.SignalR) == (connect, signalr)
    with pytest.raises(AttributeError):
        dialects.Telnet  # noqa: B018


def test_streams_of_the_same_paths_share_what_is_prepared_for_them(llmstream, connect, signalr):
    """Prepared for each stream anew it would cost more than reading it, and push out what others share."""
    declarations = import_module("llmstream.declaration")._declarations
    makers = [
        lambda: signalr(text="item.text", stop_reason="item.why"),
        lambda: signalr(text="a.b", reasoning="a.c", input_tokens="i", output_tokens="o"),
        lambda: connect(text="message.text"),
        lambda: connect(text="2.1", reasoning="2.2", index="1"),
    ]
    for maker in makers:
        llmstream.Parser(maker)
    before = dict(declarations)
    for maker in makers * 3:
        llmstream.Parser(maker)
    assert declarations == before
