"""SignalRFraming: records, their names, and what is no record."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

import frames
import splits

RS = b"\x1e"


@pytest.fixture
def framing(llmstream):
    module = import_module("llmstream.framing.signalr")
    return lambda limit=1000: module.SignalRFraming(limit)


def stream_of(*records):
    return b"".join(each + RS for each in records)


@pytest.mark.parametrize(
    ("records", "names"),
    [
        ([b"{}", b'{"type":6}'], ["Handshake", "Ping"]),
        ([b'{"error":"no"}'], ["Handshake"]),
        ([b'{"protocol":"json","version":1}'], ["Handshake"]),
        (
            [b'{"type":%d}' % number for number in range(1, 10)],
            [
                "Invocation",
                "StreamItem",
                "Completion",
                "StreamInvocation",
                "CancelInvocation",
                "Ping",
                "Close",
                "Ack",
                "Sequence",
            ],
        ),
        ([b'{"item":{"type":7},"invocationId":"1","type":2}'], ["StreamItem"]),
        ([b'{"item":"\\"type\\":7", "\\u0074ype" : 2 }'], ["StreamItem"]),
        ([b'{"type":2,"item":"a\\u001eb"}', b'{"type":3}'], ["StreamItem", "Completion"]),
        ([b'{"type":7,"item":1,"type":2}'], ["Close"]),
        ([b'{ "type":7,"item":1,"type":2}'], ["StreamItem"]),
        ([b'\xef\xbb\xbf{"type":6}'], [None]),
        ([b'{"type":2,"item":"\xff"}'], ["StreamItem"]),
        ([b'{"type":2,"item":' + b"9" * 700 + b"}"], ["StreamItem"]),
    ],
)
def test_names_at_every_split(framing, records, names):
    stream = stream_of(*records)
    found = frames.same(framing, splits.every_way(stream))
    assert found.events == names
    assert found.data == records
    assert [frame.offset for frame in found.frames] == [
        sum(len(record) + 1 for record in records[:number]) for number in range(len(records))
    ]
    assert found.clean


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b" ",
        b"x",
        b"{",
        b"[]",
        b"5",
        b"null",
        b"{}",
        b'{"type":0}',
        b'{"type":10}',
        b'{"type":true}',
        b'{"type":"2"}',
        b'{"type":2.0}',
        b'{"type":null}',
        b'{"type":[2]}',
        b'{"item":NaN,"type":2}',
        b'{"item":' + b"[" * 900 + b',"type":2}',
        b'{"type":3,"item":}',
    ],
)
def test_a_record_without_a_name_is_handed_on_and_harms_no_other(framing, record):
    records = [b'{"type":6}', record, b'{"type":2}']
    found = frames.same(framing, splits.some_ways(stream_of(*records)))
    assert found.events == ["Ping", None, "StreamItem"]
    assert found.data == records
    assert found.clean


def test_a_raw_separator_in_a_string_splits_the_record(framing):
    found = frames.read(framing(), [b'{"type":6}\x1e{"type":2,"item":"a\x1eb"}\x1e{"type":3}\x1e'])
    assert found.events == ["Ping", "StreamItem", None, "Completion"]
    assert found.data[1:3] == [b'{"type":2,"item":"a', b'b"}']


def test_what_is_no_json_is_found_by_who_reads_payloads(llmstream, framing):
    found = frames.read(framing(), [b'{"type":2,"item":"a\x1eb"}\x1e\x1e'])
    parser = llmstream.Parser("openai")
    for frame in found.frames:
        assert parser.feed_payload(frame.data, frame.event) == []
    assert [each.requirement for each in parser.violations] == ["R5.1-3"] * 3


@pytest.mark.parametrize(
    ("members", "reported"),
    [
        ({"result": 1}, False),
        ({"error": "x"}, False),
        ({"result": None}, False),
        ({"result": 1, "error": "x"}, True),
        ({"result": None, "error": "x"}, True),
        ({"result": 1, "error": None}, False),
    ],
)
def test_completions(framing, members, reported):
    record = json.dumps({**members, "invocationId": "1", "type": 3}).encode()
    found = frames.same(framing, splits.every_way(stream_of(b"{}", record)))
    assert found.events == ["Handshake", "Completion"]
    assert found.reports == (((3, "result and error together"),) if reported else ())
    assert not found.broken


@pytest.mark.parametrize("tail", [b"{", b'{"type":6}', b"\x00"])
def test_an_unfinished_record_is_dropped_and_said(framing, tail):
    for chunks in splits.every_way(b"{}" + RS + tail):
        found = frames.read(framing(), chunks)
        assert found.data == [b"{}"]
        assert (found.broken, found.unfinished, found.reason, found.fault_offset) == (False, True, "record cut", 3)


def test_a_record_is_out_with_its_separator(framing):
    reader = framing()
    assert reader.feed(b'{"type":6}') == []
    assert len(reader.feed(RS)) == 1


def test_the_limit_counts_one_record(framing):
    exact = b'{"type":2,"item":"' + b"x" * 80 + b'"}'
    for chunks in splits.some_ways(stream_of(b"{}", exact)):
        assert frames.read(framing(100), chunks).data == [b"{}", exact]
    for chunks in splits.every_way(stream_of(b"{}", exact + b" ", b"{}")):
        found = frames.read(framing(100), chunks)
        assert found.data == [b"{}"]
        assert (found.broken, found.unfinished, found.reason, found.fault_offset) == (True, False, "too large", 3)
    # Also before the separator is there.
    assert frames.read(framing(100), [b"x" * 101]).reason == "too large"


def test_time_is_linear_in_the_bytes(framing):
    record = b'{"type":2,"item":"' + b"x" * 200_000 + b'"}'
    found = frames.read(framing(10**6), splits.bytewise(stream_of(record)))
    assert found.data == [record]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.text(max_size=20), st.booleans()), max_size=8),
    st.booleans(),
    st.integers(0, 1000),
)
def test_what_was_written_is_read(llmstream, items, escaped, seed):
    module = import_module("llmstream.framing.signalr")
    records = []
    for kind, text, last in items:
        value = {"item": text, "type": kind} if last else {"type": kind, "item": text}
        records.append(json.dumps(value, ensure_ascii=escaped).encode("utf-8", "replace"))
    for chunks in splits.some_ways(stream_of(*records), 2, seed):
        found = frames.read(module.SignalRFraming(1000), chunks)
        assert found.data == records
        assert found.events == [module.TYPES[kind] for kind, _, _ in items]


@given(st.lists(st.binary(max_size=20) | st.sampled_from([RS, b"{}"]), max_size=10))
def test_any_bytes_are_survived(llmstream, chunks):
    module = import_module("llmstream.framing.signalr")
    found = frames.read(module.SignalRFraming(15), chunks)
    assert found == frames.read(module.SignalRFraming(15), [b"".join(chunks)])
    if found.reason != "too large":
        assert found.data == b"".join(chunks).split(RS)[:-1]


def test_reports_stand_between_the_frames_around_them(llmstream):
    body = b'{}\x1e{"type":3,"invocationId":"1","error":"m","result":1}\x1e{}\x1e{"type":6}\x1e'
    found = set()
    for size in (1, 7, 40, len(body)):
        parser = llmstream.Parser("signalr")
        for at in range(0, len(body), size):
            parser.feed(body[at : at + size])
        parser.close()
        found.add(tuple((v.requirement, v.event, v.offset) for v in parser.violations))
    assert len(found) == 1
    assert ("L-FRAMING", 2, 3) in next(iter(found))
