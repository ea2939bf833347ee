"""What the engine does around a dialect of its own kind: frames that are reported, ends, names of frames, bytes."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

import drafts
import splits
import vendors


def aws(payload, event="chunk", repeated=False):
    """A frame of the AWS event stream; with one header twice, which its framing reports and reads on."""
    frame = vendors.aws(payload, event)
    if not repeated:
        return frame
    import struct
    import zlib

    length = struct.unpack(">I", frame[4:8])[0]
    one = frame[12 : 12 + 1 + frame[12] + 1 + 2 + len(event)]  # the first header, which names the event
    headers = frame[12 : 12 + length] + one
    data = frame[12 + length : -4]
    prelude = struct.pack(">II", len(headers) + len(data) + 16, len(headers))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + data
    return whole + struct.pack(">I", zlib.crc32(whole))


@pytest.fixture
def framed(llmstream):
    framing = import_module("llmstream.framing.aws_event_stream").AWSEventStreamFraming
    members = {"name": "framed", "text": "t", "end_mark": None, "framings": {0: framing}}
    return type("Framed", (llmstream.Dialect,), members)


def texts(llmstream, events):
    return [event.text for event in events if isinstance(event, llmstream.ContentDelta)]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_frame_that_is_reported_lies_where_it_lay(llmstream, framed, place):
    """First, between others or last of a chunk: the same violation at the same offset, and every text."""
    frames = [aws({"t": f"x{number}"}, repeated=number == place) for number in range(3)]
    data = b"".join(frames)
    seen = []
    for chunks in ([data], frames, splits.bytewise(data), *splits.some_ways(data)):
        parser, events = drafts.run(llmstream, chunks, dialect=framed)
        assert texts(llmstream, events) == ["x0", "x1", "x2"]
        found = [(v.requirement, v.offset) for v in parser.violations if v.requirement == "L-FRAMING"]
        assert found == [("L-FRAMING", len(b"".join(frames[:place])))]
        seen.append(drafts.faults(parser))
    assert seen == [seen[0]] * len(seen)


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c", "a")])
@pytest.mark.parametrize("shapes", [True, False])
def test_frames_of_another_name_have_shapes_of_their_own(llmstream, framed, names, shapes):
    """What was learned under one name is not used for the next."""
    data, expected = b"", []
    for number, name in enumerate(names):
        for at in range(12):
            data += aws({"t": f"{number}.{at}"}, name)
            expected.append(f"{number}.{at}")
    for chunks in splits.some_ways(data, 3):
        parser, events = drafts.run(llmstream, chunks, dialect=framed, shapes=shapes)
        assert texts(llmstream, events) == expected
        if llmstream.implementation == "cython":  # the Python twin learns none of frames
            assert (parser.shape_hits > 0) is shapes
    parser = llmstream.Parser(framed, shapes=shapes)
    assert parser.feed_text(data) == "".join(expected)


def test_payloads_of_a_name_behind_events(llmstream):
    """One parser is fed Server-Sent Events, and then payloads that another library took out of its frames."""
    kind = type("Plain", (llmstream.Dialect,), {"name": "plain", "text": "t"})
    parser = llmstream.Parser(kind)
    found = texts(llmstream, parser.feed(b"".join(vendors.sse({"t": f"s{n}"}) for n in range(12))))
    for name in ("a", "b", None, "a"):
        for number in range(12):
            payload = json.dumps({"t": f"{name}{number}"}).encode()
            found += texts(llmstream, parser.feed_payload(payload, name))
    expected = [f"s{n}" for n in range(12)] + [f"{name}{n}" for name in ("a", "b", None, "a") for n in range(12)]
    assert found == expected


@pytest.mark.parametrize("size", [10, 1000])
def test_a_payload_after_the_end_is_too_late_whatever_its_size(llmstream, size):
    """One over the limit is told as any other after the end, and once."""
    first = b'{"model":"m","message":{"content":"a"},"done":false}\n'
    counts = b'"eval_count":1,"prompt_eval_count":1'
    last = b'{"model":"m","message":{"content":""},"done":true,"done_reason":"stop",' + counts + b"}\n"
    late = b'{"model":"m","message":{"content":"' + b"x" * size + b'"}}\n'
    for chunks in splits.some_ways(first + last + late):
        parser, events = drafts.run(llmstream, chunks, dialect="ollama", max_event_size=300)
        assert texts(llmstream, events) == ["a"]
        assert parser.complete
        assert drafts.faults(parser) == [("R5.3.7-1", "error", 2, len(first + last))]


def test_invalid_utf8_in_payloads_that_are_no_json(llmstream):
    class Lines(llmstream.Dialect):
        name = "lines"
        json = False
        end_mark = "BYE"

        def translate(self, payload, event):
            return self.begin({}, [self.delta(0, payload)])

    data = b"data: a\xffb\n\ndata: \xe9\x82\n\ndata: BYE\n\n"
    for chunks in splits.every_way(data):
        parser, events = drafts.run(llmstream, chunks, dialect=Lines)
        assert texts(llmstream, events) == ["a\ufffdb", "\ufffd"]
        assert [(rule, severity) for rule, severity, *_ in drafts.faults(parser)] == [("L-UTF8", "warning")] * 2
        assert parser.complete
    with pytest.raises(llmstream.SSEError):
        llmstream.Parser(Lines, errors="strict").feed(data)


def test_nothing_of_a_dialect_comes_after_the_end(llmstream):
    class Hasty(llmstream.Dialect):
        name = "hasty"

        def translate(self, payload, values):
            after = [llmstream.StreamEnd(), self.delta(0, "after"), llmstream.Usage(input_tokens=1, output_tokens=1)]
            return self.begin({}, [self.delta(0, "before"), *after])

    parser, events = drafts.run(llmstream, vendors.sse({"t": 1}), dialect=Hasty)
    assert texts(llmstream, events) == ["before"]
    assert events[-1].type == "stream.end"
    assert parser.usage is None


@pytest.mark.parametrize("dialect", ["llm-stream", *vendors.VENDORS])
def test_a_strict_parser_sums_up(llmstream, dialect):
    """As a lenient one does a stream without a fault; it raises as for any other way of reading."""
    data = (
        drafts.whole("a", "b")
        if dialect == "llm-stream"
        else b"".join(vendors.VENDORS[dialect](["a", "b"], [], ["{}"]))
    )
    found = [llmstream.Parser(dialect, strict=strict).feed_summary(data) for strict in (False, True)]
    assert repr(found[0]) == repr(found[1])
    assert found[1][0] == "ab"
    with pytest.raises(llmstream.LLMStreamError):
        llmstream.Parser(dialect, strict=True).feed_summary(data[: len(data) // 2] + b"\n\ndata: {\n\n")
