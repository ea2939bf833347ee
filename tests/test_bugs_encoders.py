"""Bugs that were reported against other encoders and proxies, by their number in the list of public reports (B) and of
measured faults (P): none of them is possible in what our producers write. The reader here is none of ours."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import drafts
import splits
import vendors

FORGED = [
    *("x\ndata: forged\n\n", "\n\nevent: error\ndata: {}\n\n", "\r\rdata: forged\r\r", "\r\n\r\ndata: forged\r\n\r\n"),
    *("a\rdata: forged", "\0", "a\0b", "\x0bdata: forged", "\x0c\x1c\x1d\x1e", "\x85data: forged"),
    *("a\u2028b", "a\u2029b"),
    *("data: data: {}", "data: {}\n\n", "event: x", "id: 9", "retry: 1", ": ping", "\ufeffdata: x", '"}}\n\n', "\\"),
]


def blocks(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Name and envelope of each event. Whatever a reader takes for the end of a line, there are the same lines."""
    text = data.decode()
    lines = text.splitlines(keepends=True)
    assert lines == re.findall(r"[^\n]*\n", text)
    assert "".join(lines) == text
    found = []
    for name, body, blank in zip(*[iter(line for line in lines)] * 3, strict=True):
        assert name.startswith("event: ")
        assert body.startswith("data: {")
        assert blank == "\n"
        envelope = json.loads(body.removeprefix("data: "))
        assert envelope["type"] == name.removeprefix("event: ").rstrip("\n")
        found.append((envelope["type"], envelope))
    return found


def whole(llmstream: Any, text: str) -> list[bytes]:
    """A stream with ``text`` in every place that takes some."""
    from llmstream.encoder import Encoder

    encoder = Encoder(clock=lambda: 5)
    given = {"vendor:x": {text: [text]}}
    return [
        encoder.start(text, request_id=text, extensions=given),
        encoder.delta(text),
        encoder.delta(text),
        encoder.delta(text, 1, extensions=given),
        encoder.tool_call(text, text, json.dumps(text, ensure_ascii=False), extensions=given),
        encoder.stop(text, extensions=given),
        encoder.stop("end_turn", 1),
        encoder.encode(llmstream.UnknownEvent(type="x.y", extensions=given)),
        encoder.usage(1, 2, extensions=given),
        encoder.error(text, text, extensions=given),
        encoder.end(extensions=given),
    ]


@pytest.mark.parametrize("text", FORGED)
def test_b77_b78_b80_no_text_forges_a_line(llmstream, text):
    """Line ends of any kind, in any member: one event line, one data line, one blank line an event."""
    data = whole(llmstream, text)
    found = [each for part in data for each in blocks(part)]
    assert [envelope["seq"] for _, envelope in found] == list(range(len(data)))
    start, first, second, third, call, stop, _, unknown, _, error, end = (envelope for _, envelope in found)
    assert (start["model"], start["request_id"], end["request_id"]) == (text, text, text)
    assert [each["delta"] for each in (first, second, third)] == [{"text": text}] * 3
    assert (call["id"], call["name"], json.loads(call["arguments"])) == (text, text, text)
    assert (stop["stop_reason"], error["code"], error["message"]) == (text, text, text)
    assert {json.dumps(each["extensions"]) for each in (start, third, unknown, end)} == {
        json.dumps({"vendor:x": {text: [text]}})
    }


@pytest.mark.parametrize("name", [*FORGED[:12], "", "x\n", "\n"])
def test_b77_a_name_that_is_no_line_is_refused(llmstream, name):
    """Not stripped without a word: that would join words, and hide the attack."""
    from llmstream.encoder import Encoder

    encoder = Encoder()
    encoder.start("m")
    with pytest.raises(ValueError, match="one line"):
        encoder.encode(llmstream.UnknownEvent(type=name))
    if name:
        with pytest.raises(ValueError, match="one line"):
            encoder.comment(name)
    assert encoder.next_seq == 1


@pytest.mark.parametrize("payload", [b"data: {}\n\n", "data: {}\n\n", b"{}", "{}", {"type": "usage"}, ["data: x"]])
def test_b79_payloads_are_no_events(llmstream, payload):
    """An encoder takes events and members, so nothing is framed twice."""
    from llmstream.encoder import Encoder

    encoder = Encoder()
    encoder.start("m")
    with pytest.raises(TypeError):
        encoder.encode(payload)
    assert encoder.next_seq == 1


def test_b80_escapes_are_the_same_text(llmstream):
    text = "a\u2028b\u2029c\x85d"
    for data in whole(llmstream, text)[1:3]:
        assert b'{"text":"a\\u2028b\\u2029c\\u0085d"}' in data
        assert blocks(data)[0][1]["delta"] == {"text": text}
    parser, events = drafts.run(llmstream, b"".join(whole(llmstream, text)))
    assert events[1].text == text
    assert not parser.error_count


@pytest.mark.parametrize("dialect", vendors.VENDORS)
def test_b15_b76_nothing_leaves_before_it_is_whole(llmstream, dialect):
    """However the vendor's bytes are cut, and wherever they end: what leaves is whole events."""
    data = b"".join(vendors.VENDORS[dialect](["one", "two\u2028", "three"]))
    for cut in (len(data), len(data) // 2, len(data) - 3):
        transcoder = llmstream.Transcoder(dialect)
        parts = [transcoder.feed(chunk) for chunk in splits.bytewise(data[:cut])]
        parts.append(transcoder.close())
        names = [name for part in parts for name, _ in blocks(part)]
        assert names[0] == "stream.start"
        assert names[-1] == "stream.end"
        assert ("error" in names) or cut > len(data) // 2
        assert ("error" not in names) or cut < len(data)


def test_b15_a_refused_event_leaves_nothing_behind(llmstream):
    from llmstream.encoder import Encoder

    encoder = Encoder()
    data = encoder.start("m") + encoder.delta("a")
    for wrong in ("\ud83d", 5, None):
        with pytest.raises((TypeError, ValueError)):
            encoder.delta(wrong)
    data += encoder.delta("b") + encoder.stop("end_turn") + encoder.usage(1, 1) + encoder.end()
    assert [envelope["seq"] for _, envelope in blocks(data)] == list(range(6))
    parser, _ = drafts.run(llmstream, data, strict=True)
    assert parser.complete


def test_b24_b25_no_id_and_no_retry(llmstream):
    """A-27: with an id on each event, a comment made other readers hand out an empty one."""
    for text in FORGED:
        lines = b"".join(whole(llmstream, text)).split(b"\n")
        assert {line.partition(b":")[0] for line in lines} == {b"event", b"data", b""}


def test_b23_b26_b31_comments_are_comments(llmstream):
    """They are written as such, read as such, and not handed on as data."""
    from llmstream.encoder import Encoder

    encoder = Encoder()
    comments = [encoder.keep_alive(), encoder.comment("at work"), encoder.comment("data: x"), encoder.comment()]
    for comment in comments:
        assert re.fullmatch(rb": [^\r\n]*\n\n", comment)
    data = b"".join(comments) + encoder.start("m") + b"".join(comments) + encoder.usage(1, 1) + encoder.end()
    transcoder = llmstream.Transcoder("llm-stream")
    out = transcoder.feed(data) + transcoder.close()
    assert [name for name, _ in blocks(out)] == ["stream.start", "usage", "stream.end"]
    kept_alive = b": keepalive\n\n".join(vendors.openai(["a", "b"]))
    transcoder = llmstream.Transcoder("openai")
    out = transcoder.feed(kept_alive) + transcoder.close()
    assert [envelope["delta"]["text"] for name, envelope in blocks(out) if name == "content.delta"] == ["a", "b"]


def test_b50_every_event_has_its_blank_line(llmstream):
    data = b"".join(whole(llmstream, "x"))
    assert data.count(b"\n\n") == data.count(b"event: ") == data.count(b"data: ") == len(blocks(data))


@pytest.mark.parametrize("text", ["\ud83d", "a\ud83d", "é\ude00", "🚲\ud83d", "\ude00\ud83d"])
def test_b74_no_half_of_a_pair_is_written(llmstream, text):
    """A-24: what leaves is UTF-8, and its JSON holds no escape that other readers refuse."""
    from llmstream.encoder import Encoder

    encoder = Encoder()
    encoder.start("m")
    encoder.delta("a")
    for step in (
        lambda: encoder.delta(text),
        lambda: encoder.delta(text, 1),
        lambda: encoder.delta("", extensions={"a:b": [text]}),
        lambda: encoder.delta("", extensions={"a:b": {text: 1}}),
        lambda: encoder.stop(text),
        lambda: encoder.tool_call(text, "f", "{}"),
        lambda: encoder.tool_call("c", text, "{}"),
        lambda: encoder.error("overloaded", text),
        lambda: encoder.end(text),
        lambda: encoder.comment(text),
        lambda: encoder.fail("internal_error", text),
    ):
        with pytest.raises((ValueError, llmstream.LifecycleError)):
            step()
    assert encoder.next_seq == 2
    for kind in (f'"text":{json.dumps(text)}', f'"text":"","x":{json.dumps([text])}'):
        members = f'"type":"content.delta","index":0,"role":"assistant","delta":{{{kind}}}'
        data = drafts.start() + f'event: content.delta\ndata: {{"v":"1.0","seq":1,{members}}}\n\n'.encode()
        data += f'event: x.y\ndata: {{"v":"1.0","seq":2,"type":"x.y","k":{json.dumps([text])}}}\n\n'.encode()
        found = blocks(b"".join(Encoder().encode_events(drafts.run(llmstream, data)[1])))
        assert len(found) == 3
        assert json.dumps(found, ensure_ascii=False).encode().decode()


def test_b39_p1_encoders_share_nothing(llmstream):
    from llmstream.encoder import Encoder

    first = Encoder()
    first.start("a", request_id="r")
    first.delta("x", 7)
    first.tool_call("c", "f", "{}", 7)
    second = Encoder()
    data = second.start("b") + second.delta("y") + second.tool_call("c", "f", "{}") + second.stop("tool_use")
    parser, events = drafts.run(llmstream, data + second.usage(1, 1) + second.end(), strict=True)
    assert parser.violations == []
    assert events[0].request_id is None
    assert (first.next_seq, first.open_blocks) == (3, [7])


@pytest.mark.parametrize("number", ["1e400", "-1e999", "1" * 400, "9" * 5000, "0.10", "1E5", "-0.0"])
def test_p3_numbers_are_handed_on_as_they_came(llmstream, number):
    from llmstream.encoder import Encoder

    data = (
        drafts.start()
        + (
            f'event: x.y\ndata: {{"v":"1.0","seq":1,"type":"x.y","k":{number}}}\n\n'
            f'event: stream.end\ndata: {{"v":"1.0","seq":2,"type":"stream.end","extensions":{{"a:b":[{number}]}}}}\n\n'
        ).encode()
    )
    parser, events = drafts.run(llmstream, data)
    assert "R5.1-3" not in drafts.rules_of(parser)
    out = b"".join(Encoder().encode_events(events))
    assert f'"k":{number}}}'.encode() in out
    assert f'"extensions":{{"a:b":[{number}]}}'.encode() in out
    assert b"Infinity" not in out


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_p12_what_json_has_no_number_for_is_refused(llmstream, value):
    from llmstream.encoder import Encoder

    encoder = Encoder()
    encoder.start("m")
    for given in ({"a:b": value}, {"a:b": {"c": [value]}}):
        with pytest.raises(ValueError, match=r"JSON|float"):
            encoder.delta("x", extensions=given)
    with pytest.raises(ValueError, match=r"R5\.3\.4-4"):
        encoder.tool_call("c", "f", json.dumps({"a": value}))
    assert encoder.next_seq == 1
