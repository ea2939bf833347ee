"""JSONFraming: values alone, one after the other, or in one array, at any cut."""

from __future__ import annotations

import pickle
from importlib import import_module

import pytest

import splits

PRETTY = b"""[{
  "a": "} ] \\" { [ \\\\",
  "b": [[1, {"c": {}}], 2]
}
,
{"d": "\xc3\xa9\xe2\x82\xac"}]
"""


@pytest.fixture
def json_values(llmstream):
    return import_module("llmstream.framing.json_values")


def read(json_values, chunks, limit=1000):
    framing = json_values.JSONFraming(limit)
    frames = [frame for chunk in chunks for frame in framing.feed(chunk)] + framing.close()
    return [frame.data for frame in frames], framing.broken, framing.unfinished


@pytest.mark.parametrize(
    ("stream", "values"),
    [
        (b'{"a":1}', [b'{"a":1}']),
        (b' \r\n\t{"a":1}\n{"b":2}{"c":3}\n', [b'{"a":1}', b'{"b":2}', b'{"c":3}']),
        (b'[{"a":1},{"b":2}]', [b'{"a":1}', b'{"b":2}']),
        (b'[\n{"a":1}\n,\n{"b":2}\n]\n', [b'{"a":1}', b'{"b":2}']),
        (b"[]", []),
        (b"", []),
        (b'[[1,[2]],{"a":"]"}]', [b"[1,[2]]", b'{"a":"]"}']),
        (b'[{"a":1}]{"b":2}', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":"\\\\"}{"b":"\\"}"}', [b'{"a":"\\\\"}', b'{"b":"\\"}"}']),
        (PRETTY, [PRETTY[1 : PRETTY.index(b"\n,")], b'{"d": "\xc3\xa9\xe2\x82\xac"}']),
    ],
)
def test_values_at_every_cut(json_values, stream, values):
    for chunks in splits.every_way(stream):
        assert read(json_values, chunks) == (values, False, False)


@pytest.mark.parametrize(
    ("stream", "values"),
    [
        (b'{"a":1}x{"b":2}', [b'{"a":1}']),
        (b"<html>{}</html>", []),
        (b'{"a":1},{"b":2}', [b'{"a":1}']),
        (b'[{"a":1}{"b":2}]', [b'{"a":1}']),
        (b'[,{"a":1}]', []),
        (b'[{"a":1},]', [b'{"a":1}']),
        (b'[1,{"a":1}]', []),
        (b'"text"', []),
        (b"]", []),
        (b"\x00{}", []),
    ],
)
def test_garbage_between_values_ends_the_reading(json_values, stream, values):
    for chunks in splits.every_way(stream):
        assert read(json_values, chunks) == (values, True, False)


@pytest.mark.parametrize("stream", [b'{"a":1}{"b"', b'[{"a":1},{"b":"]}', b'{"a":1}{"b":"\\'])
def test_a_cut_value_is_dropped_and_said(json_values, stream):
    for chunks in splits.every_way(stream):
        assert read(json_values, chunks) == ([b'{"a":1}'], False, True)


def test_a_value_is_out_with_its_last_byte(json_values):
    framing = json_values.JSONFraming(100)
    assert framing.feed(b'[{"a":1') == []
    assert [frame.data for frame in framing.feed(b"}")] == [b'{"a":1}']


def feed_all(framing, chunks, frames):
    for chunk in chunks:
        frames += framing.feed(chunk)


@pytest.mark.parametrize("kept", [b"", b'[{"a":1},'])
def test_the_limit_counts_one_value(llmstream, json_values, kept):
    exact = b'{"key":"' + b"x" * 90 + b'"}'
    for chunks in splits.some_ways(kept + exact):
        assert read(json_values, chunks, 100)[0][-1] == exact
    for chunks in splits.some_ways(kept + exact[:-2] + b'y"}{"b":2}'):
        framing = json_values.JSONFraming(100)
        values = []
        with pytest.raises(llmstream.EventTooLargeError) as caught:
            feed_all(framing, chunks, values)
        assert [frame.data for frame in values + caught.value.events] == ([b'{"a":1}'] if kept else [])
        assert framing.broken
        assert framing.feed(b"{}") == []
        assert framing.close() == []
        assert not framing.unfinished


def test_frames(llmstream):
    frame = import_module("llmstream.framing").Frame("name", b"secret", 7)
    assert frame == ("name", b"secret", 7)
    assert (frame.event, frame.data, frame.offset) == tuple(frame)
    assert pickle.loads(pickle.dumps(frame)) == frame
    assert repr(frame) == "Frame(event='name', data=<6 bytes>, offset=7)"


@pytest.mark.parametrize(("stream", "offsets"), [(b' [{"a":1},\n {"b":2}]{}', [2, 12, 20]), (b"{}{}", [0, 2])])
def test_a_frame_says_where_it_began(json_values, stream, offsets):
    for chunks in splits.every_way(stream):
        framing = json_values.JSONFraming(100)
        assert [frame.offset for chunk in chunks for frame in framing.feed(chunk)] == offsets


def test_the_contract_is_abstract(llmstream):
    framing = import_module("llmstream.framing").Framing(10)
    assert (framing.max_event_size, framing.broken, framing.unfinished) == (10, False, False)
    with pytest.raises(NotImplementedError):
        framing.feed(b"")
    with pytest.raises(NotImplementedError):
        framing.close()


# Lines that are no values, among lines that are


@pytest.mark.parametrize(
    "bad",
    [
        b"proxy note",
        b"503 {}",
        b'"text"',
        b"<html>{</html>",
        b'{"b":"cut',
        b'{"b":"cut\\',
        b'{"b":"cut\\"',
        b'{"b":{"c":1',
        b'{"b":1',
        b'{"b":"x"',
        b'{"b":[{}',
        b"}",
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n"])
def test_a_bad_line_is_handed_on_and_the_next_is_read(json_values, bad, end):
    stream = end.join([b'{"a":1}', bad, b'{"c":{"d":[]}}', b'{"e":"\xc3\xa9"}', b""])
    for chunks in splits.every_way(stream):
        values, broken, unfinished = read(json_values, chunks)
        assert (broken, unfinished) == (False, False)
        assert [value.strip() for value in values] == [b'{"a":1}', bad, b'{"c":{"d":[]}}', b'{"e":"\xc3\xa9"}']


def test_a_bad_line_without_an_end(json_values):
    for chunks in splits.every_way(b'{"a":1}\nnote'):
        assert read(json_values, chunks) == ([b'{"a":1}'], True, False)


@pytest.mark.parametrize("indent", [None, 0, 1, 4])
def test_values_of_several_lines_are_no_bad_lines(json_values, indent):
    import json

    value = {"a": [{"b": {}}, {}, [{}]], "c": {"d": "}\\n{"}, "e": [[], {"f": 1}]}
    text = json.dumps(value, indent=indent).encode()
    for chunks in splits.some_ways(text + b"\n" + text):
        assert read(json_values, chunks) == ([text, text], False, False)


def test_a_bad_line_is_bounded(llmstream, json_values):
    for bad in (b"x" * 200, b'{"b":"' + b"x" * 200):
        for chunks in splits.some_ways(b'{"a":1}\n' + bad + b'\n{"b":2}'):
            framing = json_values.JSONFraming(100)
            with pytest.raises(llmstream.EventTooLargeError):
                feed_all(framing, chunks, [])
            assert framing.broken


def test_the_answer_goes_on_after_a_bad_line(llmstream):
    """A violation, and no whole answer: what the line was is not known."""
    first, last = b'{"model":"m","response":"x","done":false}\n', b'{"model":"m","response":"y","done":false}\n'
    end = b'{"model":"m","response":"","done":true,"done_reason":"stop"}\n'
    for bad in (b"proxy note\n", b'{"model":"m","response":"cut\n', b'{"model":"m","response":"z","done":false\n'):
        stream = first + bad + last + end
        result = llmstream.parse(stream, dialect="ollama")
        assert (result.text, result.complete) == ("xy", True)
        assert [violation.requirement for violation in result.violations] == ["R5.1-3"]
        transcoder = llmstream.Transcoder("ollama")
        transcoder.feed(stream)
        transcoder.close()
        assert not transcoder.complete
