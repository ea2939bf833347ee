"""LengthPrefixedFraming: the draft's section 6.2, with the envelopes of its events."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

import frames
import splits
import streams


@pytest.fixture
def module(llmstream):
    return import_module("llmstream.framing.length_prefixed")


def test_the_bytes(module):
    assert module.write("stream.start", b"{}") == b"\x01\x00\x00\x00\x02{}"
    assert module.write("stream.end", b"") == b"\x07\x00\x00\x00\x00"
    assert module.write("acme.event", b"{}") == b"\x00\x00\x00\x00\x02{}"
    assert module.write(None, b"{}") == b"\x00\x00\x00\x00\x02{}"
    assert module.TYPES == (
        None,
        "stream.start",
        "content.delta",
        "content.stop",
        "tool.call",
        "usage",
        "error",
        "stream.end",
    )


def test_frames_at_every_split(module):
    written = [("stream.start", b"{}"), (None, b""), ("usage", b'{"a":1}')]
    stream = b"".join(module.write(*each) for each in written)
    found = frames.same(lambda: module.LengthPrefixedFraming(100), splits.every_way(stream))
    assert [(frame.event, frame.data) for frame in found.frames] == written
    assert [frame.offset for frame in found.frames] == [0, 7, 12]
    assert found.clean


@pytest.mark.parametrize(
    ("tail", "reason", "broken"),
    [
        (b"\x08\x00\x00\x00\x00", "type of a frame", True),
        (b"\xff\xff\xff\xff\xff", "type of a frame", True),
        (b"{\x00\x00\x00\x00", "type of a frame", True),
        (b"\x01\xff\xff\xff\xff", "too large", True),
        (b"\x01\x00\x00\x00\x65", "too large", True),
        (b"\x01", "frame cut", False),
        (b"\x01\x00\x00\x00\x01", "frame cut", False),
    ],
)
def test_faults(module, tail, reason, broken):
    good = module.write("usage", b"x" * 100)
    for chunks in splits.every_way(good + tail):
        found = frames.read(module.LengthPrefixedFraming(100), chunks)
        assert found.events == ["usage"]
        assert (found.reason, found.broken, found.unfinished) == (reason, broken, not broken)
        assert found.fault_offset == len(good)


def test_the_same_envelopes_give_the_same_events(llmstream, module):
    decoder = llmstream.SSEDecoder()
    wanted = llmstream.Parser()
    expected = wanted.feed(streams.BODY) + wanted.close()
    assert len(expected) > 3
    stream = b"".join(module.write(each.event, each.data.encode()) for each in decoder.feed(streams.BODY))
    for chunks in splits.some_ways(stream):
        framing, parser = module.LengthPrefixedFraming(10**6), llmstream.Parser()
        events = [
            event
            for chunk in chunks
            for frame in framing.feed(chunk)
            for event in parser.feed_payload(frame.data, frame.event)
        ]
        events += parser.close()
        assert events == expected
        assert parser.complete
        assert [each.message for each in parser.violations] == [each.message for each in wanted.violations]


@given(st.lists(st.tuples(st.sampled_from([None, "usage", "error"]), st.binary(max_size=50))), st.integers(0, 1000))
def test_what_was_written_is_read(llmstream, written, seed):
    module = import_module("llmstream.framing.length_prefixed")
    stream = b"".join(module.write(*each) for each in written)
    for chunks in splits.some_ways(stream, 2, seed):
        found = frames.read(module.LengthPrefixedFraming(100), chunks)
        assert [(frame.event, frame.data) for frame in found.frames] == written


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_any_bytes_are_survived(llmstream, chunks):
    module = import_module("llmstream.framing.length_prefixed")
    found = frames.read(module.LengthPrefixedFraming(100), chunks)
    assert found == frames.read(module.LengthPrefixedFraming(100), [b"".join(chunks)])


def test_the_base_is_abstract(llmstream):
    base = import_module("llmstream.framing.sized").SizedFraming(10)
    with pytest.raises(NotImplementedError):
        base._size(b"", 0)
    with pytest.raises(NotImplementedError):
        base._read(b"", 0, 0, 0)
