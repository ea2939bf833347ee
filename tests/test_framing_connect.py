"""Envelopes of Connect, gRPC and gRPC-Web: flags, lengths, compression and ends."""

from __future__ import annotations

import gzip
import json
import pickle
import zlib
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

import frames
import splits


def envelope(flags, data=b"", length=None):
    return bytes([flags]) + (len(data) if length is None else length).to_bytes(4, "big") + data


END = envelope(2, b"{}")


@pytest.fixture
def connect(llmstream):
    return import_module("llmstream.framing.connect")


@pytest.fixture
def framing(connect):
    return lambda limit=1000, encoding="gzip": connect.ConnectFraming(limit, encoding)


def test_messages_and_end_at_every_split(framing):
    stream = envelope(0, b'{"a":1}') + envelope(0) + envelope(1, gzip.compress(b'{"b":2}')) + END
    found = frames.same(framing, splits.every_way(stream))
    assert found.data == [b'{"a":1}', b"", b'{"b":2}', b"{}"]
    assert found.events == [None, None, None, "end"]
    assert [frame.offset for frame in found.frames] == [0, 12, 17, len(stream) - 7]
    assert found.clean


def test_a_message_is_out_with_its_last_byte(framing):
    reader = framing()
    assert reader.feed(envelope(0, b"{}")[:-1]) == []
    assert [frame.data for frame in reader.feed(b"}")] == [b"{}"]
    assert len(reader.feed(envelope(0))) == 1


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        *[(envelope(flags), "reserved flags") for flags in (4, 8, 16, 32, 64, 128, 0xFE, 0xFF)],
        (envelope(4, length=2**32 - 1), "reserved flags"),
        (envelope(0, length=2**32 - 1), "too large"),
        (envelope(0, length=1001), "too large"),
        (envelope(1, length=1001), "too large"),
        (envelope(2, length=2**31), "too large"),
        (envelope(1, b"no gzip"), "compressed data"),
        (envelope(1, gzip.compress(b"{}")[:-1]), "compressed data"),
        (envelope(1, gzip.compress(b"{}") + b"x"), "compressed data"),
        (envelope(1, gzip.compress(b"{}")[:-8] + b"x" * 8), "compressed data"),
        (envelope(1, gzip.compress(b"{}") * 2), "compressed data"),
        (envelope(1, zlib.compress(b"{}")), "compressed data"),
        (envelope(3, b"no gzip"), "compressed data"),
        (envelope(2, b"nope"), "end of the stream is not JSON"),
        (envelope(2, b""), "end of the stream is not JSON"),
        (envelope(2, b"[]"), "end of the stream is not an object"),
        (envelope(2, b"[" * 900), "end of the stream is not JSON"),
    ],
)
def test_what_is_not_allowed(framing, stream, reason):
    good = envelope(0, b'{"a":1}')
    for chunks in splits.some_ways(good + stream):
        found = frames.read(framing(), [*chunks, END])
        assert found.data == [b'{"a":1}']
        assert (found.broken, found.unfinished, found.reason) == (True, False, reason)
        assert found.fault_offset == len(good)


def test_a_length_is_refused_with_the_head(framing):
    assert frames.read(framing(), [envelope(0, length=2**32 - 1)]).reason == "too large"
    assert frames.read(framing(10**10), [envelope(0, length=2**32 - 1)]).reason == "frame cut"


@pytest.mark.parametrize("more", [b"\x00", b"x", b"\n", envelope(0, b"{}"), END])
def test_the_end_is_last(framing, more):
    for chunks in splits.every_way(envelope(0, b"{}") + END + more):
        found = frames.read(framing(), chunks)
        assert found.events == [None, "end"]
        assert (found.broken, found.reason) == (True, "bytes after the end of the stream")
        assert found.fault_offset == 14


@pytest.mark.parametrize(
    ("stream", "reason", "at"),
    [
        (b"", "no end of the stream", 0),
        (envelope(0, b"{}"), "no end of the stream", 7),
        (envelope(0, b"{}") + b"\x02", "frame cut", 7),
        (envelope(0, b"{}") + b"\x02\x00\x00\x00\x02{", "frame cut", 7),
    ],
)
def test_a_stream_without_its_end(framing, stream, reason, at):
    for chunks in splits.every_way(stream):
        found = frames.read(framing(), chunks)
        assert (found.broken, found.unfinished, found.reason, found.fault_offset) == (False, True, reason, at)


@pytest.mark.parametrize(
    ("value", "event", "error", "metadata", "reported"),
    [
        ({}, "end", None, {}, False),
        ({"metadata": {"a": ["1", "2"]}}, "end", None, {"a": ["1", "2"]}, False),
        ({"later": 1}, "end", None, {}, False),
        ({"error": {"code": "x", "message": "m"}}, "error", {"code": "x", "message": "m"}, {}, False),
        ({"error": None}, "error", {}, {}, True),
        ({"error": {}}, "error", {}, {}, True),
        ({"error": "text"}, "error", {}, {}, True),
        ({"error": {"code": 5}}, "error", {"code": 5}, {}, True),
        ({"error": {"message": "m"}}, "error", {"message": "m"}, {}, True),
        ({"metadata": []}, "end", None, {}, True),
        ({"metadata": {"a": "1"}}, "end", None, {"a": "1"}, True),
        ({"metadata": {"a": [1]}}, "end", None, {"a": [1]}, True),
    ],
)
def test_ends(framing, value, event, error, metadata, reported):
    data = json.dumps(value).encode()
    for flags, body in ((2, data), (3, gzip.compress(data))):
        found = frames.same(framing, splits.every_way(envelope(0, b"{}") + envelope(flags, body)))
        end = found.frames[-1]
        assert (end.event, end.data, end.value, end.error, end.metadata) == (event, data, value, error, metadata)
        assert found.reports == (((7, "end of the stream of another form"),) if reported else ())
        assert not found.reason
        again = pickle.loads(pickle.dumps(end))
        assert (again, again.value) == (end, value)


def test_decompression_is_bounded(framing):
    import tracemalloc

    exact, over = envelope(1, gzip.compress(b"x" * 1000)), envelope(1, gzip.compress(b"x" * 1001))
    assert frames.read(framing(), [exact + END]).data == [b"x" * 1000, b"{}"]
    found = frames.read(framing(), [exact + over + END])
    assert (found.data, found.reason, found.fault_offset) == ([b"x" * 1000], "too large", len(exact))
    bomb = envelope(1, gzip.compress(bytes(50_000_000)))
    reader = framing(100_000)
    tracemalloc.start()
    assert frames.read(reader, [bomb]).reason == "too large"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_every_message_has_a_context_of_its_own(framing):
    one = envelope(1, gzip.compress(b"the same words"))
    assert frames.read(framing(), [one * 3 + END]).data == [b"the same words"] * 3 + [b"{}"]


@pytest.mark.parametrize("encoding", [None, "identity", "br", "zstd", ""])
def test_compression_has_to_be_named(framing, encoding):
    stream = envelope(0, b"{}") + envelope(1, gzip.compress(b"{}")) + END
    found = frames.same(lambda: framing(encoding=encoding), splits.every_way(stream))
    assert found.data == [b"{}"]
    assert found.reason == "compressed without a known encoding"


def test_deflate_and_an_empty_compressed_message(framing):
    stream = envelope(1, zlib.compress(b'{"a":1}')) + envelope(1) + END
    assert frames.read(framing(encoding="deflate"), [stream]).data == [b'{"a":1}', b"", b"{}"]


def test_grpc(connect):
    stream = envelope(0, b"\x0a\x02hi") + envelope(0) + envelope(1, gzip.compress(b"\x0a\x02hi"))
    found = frames.same(lambda: connect.GRPCFraming(100), splits.every_way(stream))
    assert found.data == [b"\x0a\x02hi", b"", b"\x0a\x02hi"]
    assert not found.reason
    for flags in (2, 3, 0x80):
        assert frames.read(connect.GRPCFraming(100), [stream + envelope(flags, b"{}")]).reason == "reserved flags"
    assert frames.read(connect.GRPCFraming(100), [stream[:-1]]).reason == "frame cut"
    assert not frames.read(connect.GRPCFraming(100), []).unfinished


@pytest.mark.parametrize(
    ("trailers", "value", "report"),
    [
        (b"grpc-status: 0\r\n", {}, None),
        (b"grpc-status:0\r\na: 1\r\nA:2\r\n", {"metadata": {"a": ["1", "2"]}}, None),
        (b"Grpc-Status: 14\r\n", {"error": {"code": "unavailable"}}, None),
        (
            b"grpc-status: 8\r\ngrpc-message: %C3%BC 100%25 %zz\r\n",
            {"error": {"code": "resource_exhausted", "message": "ü 100% %zz"}},
            None,
        ),
        (b"grpc-status: 16", {"error": {"code": "unauthenticated"}}, None),
        (b"", {"error": {"code": "unknown"}}, "no known grpc-status"),
        (b"grpc-status: 17\r\n", {"error": {"code": "unknown"}}, "no known grpc-status"),
        (b"grpc-status: -1\r\n", {"error": {"code": "unknown"}}, "no known grpc-status"),
        (b"grpc-status: " + b"9" * 500 + b"\r\n", {"error": {"code": "unknown"}}, "no known grpc-status"),
        (b"grpc-status: 0\r\nnonsense\r\n", {}, "a trailer without a colon"),
    ],
)
def test_grpc_web_trailers_become_what_connect_sends(connect, trailers, value, report):
    for flags, body in ((0x80, trailers), (0x81, gzip.compress(trailers))):
        stream = envelope(0, b"hi") + envelope(flags, body)
        found = frames.same(lambda: connect.GRPCWebFraming(1000), splits.every_way(stream))
        end = found.frames[-1]
        assert json.loads(end.data) == end.value == value
        assert end.event == ("error" if "error" in value else "end")
        assert [reason for _, reason in found.reports] == ([report] if report else [])
        assert not found.reason
        assert frames.read(connect.GRPCWebFraming(1000), [stream, b"x"]).broken


def test_grpc_web_wants_its_trailers(connect):
    assert frames.read(connect.GRPCWebFraming(100), [envelope(0, b"hi")]).reason == "no trailers"
    assert not frames.read(connect.GRPCWebFraming(100), []).unfinished
    assert frames.read(connect.GRPCWebFraming(100), [envelope(2, b"{}")]).reason == "reserved flags"


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=100)), max_size=8), st.integers(0, 1000))
def test_what_was_written_is_read(llmstream, messages, seed):
    connect = import_module("llmstream.framing.connect")
    stream = b"".join(envelope(zipped, gzip.compress(data) if zipped else data) for zipped, data in messages) + END
    for chunks in splits.some_ways(stream, 2, seed):
        found = frames.read(connect.ConnectFraming(1000), chunks)
        assert found.data == [*(data for _, data in messages), b"{}"]
        assert not found.reason


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_any_bytes_are_survived(llmstream, chunks):
    connect = import_module("llmstream.framing.connect")
    for cls in (connect.ConnectFraming, connect.GRPCFraming, connect.GRPCWebFraming):
        assert frames.read(cls(100), chunks) == frames.read(cls(100), [b"".join(chunks)])


def test_time_is_linear_in_the_bytes(framing):
    found = frames.read(framing(10**6), splits.bytewise(envelope(0, b"x" * 200_000) + END))
    assert [len(data) for data in found.data] == [200_000, 2]
