"""BinaryFraming: AWS event stream or Connect, told by the first bytes."""

from __future__ import annotations

from importlib import import_module

import pytest

import frames
import handed
import splits
from test_framing_aws_event_stream import STREAM, event, message
from test_framing_connect import END, envelope


@pytest.fixture
def make(llmstream):
    def make(limit=100_000):
        return import_module("llmstream.framing.binary").BinaryFraming(limit)

    return make


@pytest.mark.parametrize("stream", [STREAM, event("chunk", b"x" * 5000), message(), STREAM + b"x", STREAM[:-1]])
def test_aws(llmstream, make, stream):
    module = import_module("llmstream.framing.aws_event_stream")
    wanted = frames.read(module.AWSEventStreamFraming(100_000), [stream])
    for chunks in splits.every_way(stream):
        reader = make()
        assert frames.read(reader, chunks) == wanted
        assert type(reader.chosen) is module.AWSEventStreamFraming


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        END,
        envelope(0) + END,
        *[envelope(0, b"{" + b"x" * size) + END for size in (0, 14, 15, 16, 255, 4095, 4096)],
        envelope(0, b"\x0a" + b"x" * 0xFFF),
        envelope(1, b"\x1f\x8b"),
        b"\x00",
        b"\x00\x00\x00\x10",
        b"\x00\x00\x00\x10\x00",
        b"\xff" * 20,
        envelope(0, length=2**32 - 1),
        envelope(2, b'{"error":null}'),
    ],
)
def test_connect(llmstream, make, stream):
    module = import_module("llmstream.framing.connect")
    wanted = frames.read(module.ConnectFraming(100_000), [stream])
    for chunks in splits.some_ways(stream):
        reader = make()
        assert frames.read(reader, chunks) == wanted
        assert type(reader.chosen) in (module.ConnectFraming, type(None))
        assert reader.chosen or 0 < len(stream) < 6


def test_a_message_is_out_with_its_last_byte(make):
    for size in (0, 1, 5, 11, 256):
        reader = make()
        data = b"{" * size
        assert [frame.data for chunk in splits.bytewise(envelope(0, data)) for frame in reader.feed(chunk)] == [data]


def test_captures(make):
    for row in handed.rows("framed captures"):
        vendor = row["file"].partition("/")[0]
        if vendor == "signalr" or "grpcweb" in row["file"]:
            continue
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        for chunks in splits.some_ways(data, 3):
            reader = make()
            frames.read(reader, chunks)
            assert type(reader.chosen).__name__.startswith("Connect" if vendor == "connect" else "AWS"), row["file"]


@pytest.mark.parametrize(
    ("dialect", "stream", "number", "offset", "reason"),
    [
        ("connect", envelope(0, b'{"a":""}'), 1, 13, "no end of the stream"),
        ("connect", envelope(0, b'{"a":""}')[:-1], 0, 0, "frame cut"),
        ("bedrock", STREAM[:-1], 2, len(STREAM) - len(message()), "frame cut"),
    ],
)
def test_a_stream_without_the_framings_own_end(llmstream, dialect, stream, number, offset, reason):
    """L-TAIL, where it was cut; and the end mark is missing too."""
    if dialect == "connect":
        connect = import_module("llmstream.dialects").Connect

        def dialect():
            return connect(text="a")

    for chunks in splits.some_ways(stream):
        parser = llmstream.Parser(dialect)
        for chunk in chunks:
            parser.feed(chunk)
        parser.close()
        first, *others = parser.violations
        assert (first.requirement, first.severity, first.event, first.offset) == ("L-TAIL", "error", number, offset)
        assert first.message.endswith(f"dropped: {reason}")
        # The messages of that stream say nothing in Bedrock's form.
        assert [each.requirement for each in others] == ["L-DIALECT"] * (dialect == "bedrock") + ["R5.3.7-2"]
        assert not parser.complete
    strict = llmstream.Parser(dialect, strict=True)
    strict.feed(stream)
    with pytest.raises(llmstream.IncompleteStreamError, match="L-TAIL"):
        strict.close()
