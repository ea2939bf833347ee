"""AWSEventStreamFraming: sums, lengths, headers and kinds of messages."""

from __future__ import annotations

import json
import pickle
import struct
import zlib
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

import frames
import splits

FORMATS = {2: ">b", 3: ">h", 4: ">i", 5: ">q", 8: ">q"}


def header(name, kind, value=None):
    name = name if isinstance(name, bytes) else name.encode()
    value = value.encode() if isinstance(value, str) else value
    lead = bytes([len(name)]) + name + bytes([kind])
    if kind in FORMATS and value is not None:
        return lead + struct.pack(FORMATS[kind], value)
    if kind in (6, 7):
        return lead + struct.pack(">H", len(value)) + value
    return lead + (value or b"")


def message(headers=b"", payload=b"", *, total=None, length=None):
    """A frame; the lengths may lie, the sums are right."""
    prelude = struct.pack(
        ">II", 16 + len(headers) + len(payload) if total is None else total, len(headers) if length is None else length
    )
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return body + struct.pack(">I", zlib.crc32(body))


def event(name, payload):
    return message(header(":event-type", 7, name) + header(":message-type", 7, "event"), payload)


@pytest.fixture
def framing(llmstream):
    module = import_module("llmstream.framing.aws_event_stream")
    return lambda limit=1000: module.AWSEventStreamFraming(limit)


STREAM = event("messageStart", b"{}") + event("chunk", b'{"a":1}') + message()


def test_events_at_every_split(framing):
    found = frames.same(framing, splits.every_way(STREAM))
    assert found.events == ["messageStart", "chunk", None]
    assert found.data == [b"{}", b'{"a":1}', b""]
    assert [frame.kind for frame in found.frames] == ["event"] * 3
    assert [frame.offset for frame in found.frames] == [0, 67, 132]
    assert found.clean


def test_a_frame_is_out_with_its_last_byte(framing):
    reader = framing()
    one = event("chunk", b"{}")
    assert reader.feed(one[:-1]) == []
    assert [frame.data for frame in reader.feed(one[-1:])] == [b"{}"]


@pytest.mark.parametrize("stream", [event("chunk", b'{"a":1}'), message(), message(payload=b"x" * 40)])
def test_every_bit_flip_is_caught(framing, stream):
    before, after = event("first", b"1"), event("last", b"2")
    for bit in range(8 * len(stream)):
        damaged = bytearray(stream)
        damaged[bit // 8] ^= 1 << bit % 8
        for chunks in ([before + damaged + after], [before, bytes(damaged), after]):
            found = frames.read(framing(), chunks)
            assert found.events == ["first"]
            assert found.broken
            assert found.reason == ("checksum of the prelude" if bit < 96 else "checksum of the message")
            assert found.fault_offset == len(before)


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        *[({"total": total}, "total length") for total in (0, 1, 12, 15)],
        ({"total": 16, "length": 1}, "length of the headers"),
        ({"total": 100, "length": 85}, "length of the headers"),
        ({"length": 2**32 - 1}, "length of the headers"),
        ({"total": 2**32 - 1, "length": 2**32 - 1}, "length of the headers"),
        ({"total": 2**32 - 1, "length": 2**32 - 17}, "headers too large"),
        ({"total": 2**18, "length": 128 * 1024 + 1}, "headers too large"),
        ({"total": 2**32 - 1, "length": 0}, "too large"),
        ({"total": 16 + 1001, "length": 0}, "too large"),
    ],
)
def test_a_lying_length_is_refused_with_the_prelude(framing, lie, reason):
    good = event("chunk", b"{}")
    prelude = message(**lie)[:12]
    for chunks in splits.every_way(good + prelude):
        found = frames.read(framing(), chunks)
        assert found.events == ["chunk"]
        assert (found.broken, found.reason, found.fault_offset) == (True, reason, len(good))


def test_nothing_is_allocated_for_bytes_that_did_not_come(framing):
    import tracemalloc

    reader = framing(2**32)
    head = message(total=2**32 - 1, length=0)[:12]
    tracemalloc.start()
    assert reader.feed(head) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000
    reader.close()
    assert (reader.unfinished, reader.reason, reader.fault_offset) == (True, "frame cut", 0)


def test_the_limit_counts_the_payload(framing):
    headers = b"".join(header(f"name-{number}", 6, b"x" * 100) for number in range(20))
    assert frames.read(framing(), [message(headers, b"x" * 1000)]).data == [b"x" * 1000]
    assert frames.read(framing(), [message(headers, b"x" * 1001)]).reason == "too large"
    assert frames.read(framing(0), [message(headers)]).data == [b""]


HEADERS = [
    ("true", 0, True),
    ("false", 1, False),
    ("byte", 2, -128),
    ("short", 3, -(2**15)),
    ("integer", 4, 2**31 - 1),
    ("long", 5, -(2**63)),
    ("bytes", 6, b"\x00\xff"),
    ("text", 7, "é€"),
    ("time", 8, 1_700_000_000_000),
    ("uuid", 9, bytes(range(16))),
]


def test_header_types(framing):
    stream = message(b"".join(header(name, kind, None if kind < 2 else value) for name, kind, value in HEADERS))
    found = frames.same(framing, splits.every_way(stream))
    (frame,) = found.frames
    assert list(frame.fields) == HEADERS
    assert frame.headers == {name: value for name, _, value in HEADERS}
    again = pickle.loads(pickle.dumps(frame))
    assert (again, again.fields, again.kind) == (frame, frame.fields, "event")


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (b"\x00", "name of a header"),
        (b"\x00\x00", "name of a header"),
        (b"\x01", "name of a header"),
        (b"\x01a", "name of a header"),
        (b"\xff" + b"a" * 100, "name of a header"),
        (header(b"\xff", 0), "name of a header"),
        (header("a", 10), "type of a header"),
        (header("a", 255), "type of a header"),
        (header("a", 2), "value of a header"),
        (header("a", 5, 1)[:-1], "value of a header"),
        (header("a", 6, b"")[:-1], "value of a header"),
        (header("a", 6, b"")[:-2], "value of a header"),
        (header("a", 7, b"text")[:-1], "value of a header"),
        (header("a", 7, b"\xc3"), "value of a header"),
        (header("a", 9, b"x" * 15), "value of a header"),
        (header("a", 6, b"x" * 32768), "value of a header"),
        (b"".join(header(f"{number:04}", 0) for number in range(1025)), "too many headers"),
    ],
)
def test_bad_headers(framing, headers, reason):
    stream = event("chunk", b"{}")
    found = frames.read(framing(), [stream + message(headers, b"{}") + stream])
    assert found.events == ["chunk"]
    assert (found.reason, found.fault_offset) == (reason, len(stream))


@pytest.mark.parametrize(
    "headers",
    [
        header("a", 7, b"x" * 32767),
        b"".join(header(f"{number:04}", 0) for number in range(1024)),
        header("a" * 255, 0),
        b"".join(header(f"{number:02}", 6, b"x" * 32760) for number in range(4)),
    ],
)
def test_headers_at_their_limits(framing, headers):
    found = frames.read(framing(), [message(headers, b"{}")])
    assert found.data == [b"{}"]
    assert not found.reason


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_a_report_comes_before_an_event_that_is_too_large(llmstream, size):
    """Two faults of two frames, in their order, whether one chunk brings both or each byte comes alone."""
    text = b'{"contentBlockIndex":0,"delta":{"text":"%b"}}'
    repeated = header(":event-type", 7, "messageStart") + header(":event-type", 7, "contentBlockDelta")
    first = message(repeated + header(":message-type", 7, "event"), text % b"a")
    data = first + event("contentBlockDelta", text % (b"x" * 3000))
    parser = llmstream.Parser("bedrock", max_event_size=1000)
    for at in range(0, len(data), size):
        parser.feed(data[at : at + size])
    assert [(one.requirement, one.event, one.offset) for one in parser.violations] == [
        ("L-FRAMING", 1, 0),
        ("L-SIZE", 1, len(first)),
    ]
    strict = llmstream.Parser("bedrock", max_event_size=1000, strict=True)
    with pytest.raises(llmstream.EnvelopeError) as caught:
        _ = [strict.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert caught.value.offset == 0


def test_a_repeated_header_is_reported_and_the_last_is_read(framing):
    headers = header(":event-type", 7, "first") + header(":event-type", 7, "second")
    found = frames.same(framing, splits.every_way(STREAM + message(headers, b"{}") + STREAM))
    assert found.events == ["messageStart", "chunk", None, "second", "messageStart", "chunk", None]
    assert found.reports == ((len(STREAM), "a header is repeated"),)
    assert not found.broken


@pytest.mark.parametrize(
    ("headers", "payload", "name", "kind", "data"),
    [
        ({":message-type": "event"}, b"{}", None, "event", b"{}"),
        ({":event-type": "chunk"}, b"{}", "chunk", "event", b"{}"),
        (
            {":message-type": "exception", ":exception-type": "throttlingException"},
            b'{"message":"slow"}',
            "exception:throttlingException",
            "exception",
            b'{"message":"slow"}',
        ),
        ({":message-type": "exception"}, b"", "exception:", "exception", b""),
        (
            {":message-type": "error", ":error-code": "500", ":error-message": "bröken"},
            b"",
            "error:500",
            "error",
            '{"code":"500","message":"bröken"}'.encode(),
        ),
        ({":message-type": "error"}, b"", "error:", "error", b"{}"),
        ({":message-type": "error", ":error-code": "500"}, b'{"a":1}', "error:500", "error", b'{"a":1}'),
        ({":message-type": "later", ":event-type": "chunk"}, b"{}", "later:", "later", b"{}"),
        ({":message-type": "later", ":later-type": "x"}, b"{}", "later:x", "later", b"{}"),
    ],
)
def test_kinds(framing, headers, payload, name, kind, data):
    stream = message(b"".join(header(key, 7, value) for key, value in headers.items()), payload)
    (frame,) = frames.read(framing(), [stream]).frames
    assert (frame.event, frame.kind, frame.data) == (name, kind, data)
    assert frame.headers == headers
    assert "br" not in repr(frame)


def test_many_different_headers_in_turn(framing):
    names = [f"event-{number}" for number in (*range(20), *range(20))]
    found = frames.read(framing(), [b"".join(event(name, b"{}") for name in names)])
    assert found.events == names
    assert found.clean


def test_a_reserved_header_that_is_no_text_is_not_read(framing):
    stream = message(header(":message-type", 4, 5) + header(":event-type", 6, b"chunk"), b"{}")
    (frame,) = frames.read(framing(), [stream]).frames
    assert (frame.event, frame.kind) == (None, "event")


def test_time_is_linear_in_the_bytes(framing):
    # One byte a time into one big frame: would take minutes if each byte looked at all before.
    big = event("chunk", b"x" * 200_000)
    found = frames.read(framing(10**6), splits.bytewise(big))
    assert [len(data) for data in found.data] == [200_000]


NAMES = st.text("abc:-é", min_size=1, max_size=20)
VALUES = st.one_of(
    st.tuples(st.sampled_from([0, 1]), st.none()),
    st.tuples(st.just(2), st.integers(-(2**7), 2**7 - 1)),
    st.tuples(st.just(3), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just(4), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.sampled_from([5, 8]), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(6), st.binary(max_size=300)),
    st.tuples(st.just(7), st.text(max_size=300)),
    st.tuples(st.just(9), st.binary(min_size=16, max_size=16)),
)
MESSAGES = st.lists(st.tuples(st.dictionaries(NAMES, VALUES, max_size=6), st.binary(max_size=200)), max_size=5)


@given(messages=MESSAGES, seed=st.integers(0, 1000))
def test_what_was_written_is_read(llmstream, messages, seed):
    module = import_module("llmstream.framing.aws_event_stream")
    stream = written(messages)
    for chunks in splits.some_ways(stream, 2, seed):
        found = frames.read(module.AWSEventStreamFraming(1000), chunks)
        assert found.clean
        for frame, (headers, payload) in zip(found.frames, messages, strict=True):
            wanted = [(name, kind, not kind if kind < 2 else value) for name, (kind, value) in headers.items()]
            assert list(frame.fields) == wanted
            if frame.kind != "error":
                assert frame.data == payload


@given(messages=MESSAGES, flip=st.none() | st.integers(0, 10**6), cut=st.none() | st.integers(0, 10**6))
def test_botocore_agrees(llmstream, messages, flip, cut):
    peer = pytest.importorskip("botocore.eventstream")
    module = import_module("llmstream.framing.aws_event_stream")
    stream = bytearray(written(messages))
    if stream and flip is not None:
        stream[flip // 8 % len(stream)] ^= 1 << flip % 8
    if stream and cut is not None:
        del stream[cut % len(stream) :]
    buffer = peer.EventStreamBuffer()
    buffer.add_data(bytes(stream))
    theirs, fault = [], False
    try:
        theirs.extend((each.headers, each.payload) for each in buffer)
    except (peer.ParserError, ValueError):
        fault = True
    found = frames.read(module.AWSEventStreamFraming(25 * 2**20), [bytes(stream)])
    assert [(frame.headers, frame.data) for frame in found.frames if frame.kind != "error"] == theirs
    assert found.broken == fault


def written(messages):
    return b"".join(
        message(b"".join(header(name, kind, value) for name, (kind, value) in headers.items()), payload)
        for headers, payload in messages
    )


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_any_bytes_are_survived(llmstream, chunks):
    module = import_module("llmstream.framing.aws_event_stream")
    found = frames.read(module.AWSEventStreamFraming(100), chunks)
    whole = frames.read(module.AWSEventStreamFraming(100), [b"".join(chunks)])
    assert found == whole


def test_an_error_without_payload_is_json(framing):
    stream = message(header(":message-type", 7, "error") + header(":error-message", 7, 'a "b" \x01'))
    (frame,) = frames.read(framing(), [stream]).frames
    assert json.loads(frame.data) == {"message": 'a "b" \x01'}
