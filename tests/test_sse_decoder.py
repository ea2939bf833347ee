"""SSEDecoder: the event stream of WHATWG HTML, section 9.2, one rule a test."""

from __future__ import annotations

import array
import copy
import gc
import mmap
import pickle
import sys

import pytest

import splits


def read(llmstream, data, **options):
    """The events of bytes (or chunks), as (event, data, id)."""
    decoder = llmstream.SSEDecoder(**options)
    chunks = [data] if isinstance(data, bytes) else data
    events = [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()
    return [(e.event, e.data, e.id) for e in events]


def texts(llmstream, data, **options):
    return [data for _, data, _ in read(llmstream, data, **options)]


# Lines (9.2.5: stream, "end-of-line")


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_three_line_ends(llmstream, end):
    stream = end.join([b"event: e", b"data: a", b"data: b", b"", b"data: c", b"", b""])
    for chunks in splits.every_way(stream):
        assert read(llmstream, chunks) == [("e", "a\nb", ""), ("message", "c", "")]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\r\ndata: b\n\n", ["a\nb"]),
        (b"data: a\n\r\n", ["a"]),
        (b"data: a\r\n\n", ["a"]),
        (b"data: a\r\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\n\rdata: b\r\n\r", ["a", "b"]),
        (b"data: a\r\n\rdata: b\n\n\n\r\r\n\ndata: c\r\r", ["a", "b", "c"]),
        (b"\r\n\n\rdata: a\n\n", ["a"]),
        (b"data: a\r\n\r\ndata: b\n\ndata: c\r\r", ["a", "b", "c"]),
    ],
)
def test_mixed_line_ends(llmstream, stream, expected):
    for chunks in splits.every_way(stream):
        assert texts(llmstream, chunks) == expected


def test_other_line_breaks_of_unicode_are_text(llmstream):
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    assert texts(llmstream, f"data: {text}\n\n".encode()) == [text]


def test_lf_after_a_cut_cr_is_swallowed_once(llmstream):
    assert texts(llmstream, [b"data: a\r", b"\n\ndata: b\n\n"]) == ["a", "b"]
    assert texts(llmstream, [b"data: a\r", b"", b"\n", b"\n"]) == ["a"]
    assert texts(llmstream, [b"data: a\r", b"data: b\r", b"\r"]) == ["a\nb"]


@pytest.mark.parametrize("blank", [b"\n\n", b"\r\r", b"\n\r", b"\r\n\r", b"\r\n\n", b"\r\n\r\n"])
def test_an_event_leaves_as_soon_as_its_blank_line_is_in(llmstream, blank):
    decoder = llmstream.SSEDecoder()
    assert decoder.feed(b"data: a" + blank[:-1]) == [] or blank == b"\r\n\r\n"
    decoder = llmstream.SSEDecoder()
    assert [event.data for event in decoder.feed(b"data: a" + blank)] == ["a"]


def test_a_lone_cr_ends_the_event_now(llmstream):
    decoder = llmstream.SSEDecoder()
    assert [e.data for e in decoder.feed(b"data: a\r\n\r")] == ["a"]
    assert decoder.feed(b"\n") == []
    assert [e.data for e in decoder.feed(b"data: b\r\r")] == ["b"]


# The byte order mark


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    "chunks",
    [
        [BOM + b"data: a\n\n"],
        [b"", BOM + b"data: a\n\n"],
        [b"", b"\xef", b"", b"\xbb", b"\xbfdata: a\n\n"],
        [b"\xef\xbb", b"\xbf", b"data: a\n\n"],
    ],
)
def test_a_first_bom_is_ignored(llmstream, chunks):
    assert texts(llmstream, chunks) == ["a"]


def test_only_the_first_bom(llmstream):
    for chunks in splits.every_way(BOM + BOM + b"data: a\n\ndata: b\n\n"):
        assert texts(llmstream, chunks) == ["b"]
    assert texts(llmstream, b"data: a\n\n" + BOM + b"data: b\n\ndata: c\n\n") == ["a", "c"]
    assert texts(llmstream, b"\n" + BOM + b"data: b\n\ndata: c\n\n") == ["c"]


def test_what_only_begins_like_a_bom_belongs_to_the_first_line(llmstream):
    for head in (b"\xef", b"\xef\xbb", b"\xef\xbb\xbe", b"\xbb\xbf"):
        for chunks in splits.every_way(head + b"data: a\ndata: b\n\n"):
            assert texts(llmstream, chunks) == ["b"]


def test_a_bom_inside_data_is_text(llmstream):
    assert texts(llmstream, b"data: " + BOM + b"\n\n") == ["\ufeff"]


# Fields (9.2.6)


def test_comments_are_ignored(llmstream):
    assert texts(llmstream, b": c\n:\n:data: x\ndata: a\n: data: y\n\n:\n\n: ping\n\n") == ["a"]


def test_data_lines_are_joined_by_lf(llmstream):
    assert texts(llmstream, b"data: a\ndata:\ndata\ndata:  b\n\n") == ["a\n\n\n b"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"data:a", "a"),
        (b"data: a", "a"),
        (b"data:  a", " a"),
        (b"data:\ta", "\ta"),
        (b"data: a ", "a "),
        (b"data: ", ""),
    ],
)
def test_one_leading_space_is_stripped(llmstream, line, expected):
    assert texts(llmstream, line + b"\n\n") == [expected]


def test_a_line_without_colon_is_a_field_with_an_empty_value(llmstream):
    assert read(llmstream, b"event: x\nevent\nid: 1\nid\ndata\n\n") == [("message", "", "")]


def test_names_are_compared_exactly(llmstream):
    lines = b"Data: a\n data: b\ndata : c\nDATA: d\ndatax: e\ndat: f\nevents: g\nidx: 1\nretry : 1\n"
    assert read(llmstream, lines + b"\n") == []
    assert read(llmstream, lines + b"data: z\n\n") == [("message", "z", "")]


def test_the_last_event_field_names_the_event(llmstream):
    assert read(llmstream, b"event: a\nevent: b\ndata: 1\n\n") == [("b", "1", "")]
    assert read(llmstream, b"event: a\nevent:\ndata: 1\n\n") == [("message", "1", "")]


def test_the_name_does_not_outlive_its_block(llmstream):
    assert read(llmstream, b"event: x\n\ndata: a\n\n") == [("message", "a", "")]
    assert read(llmstream, b"event: x\ndata: a\n\ndata: b\n\n") == [("x", "a", ""), ("message", "b", "")]


def test_a_block_without_data_is_not_dispatched(llmstream):
    assert read(llmstream, b"event: x\nid: 1\nretry: 5\n\n: c\n\n\n\n") == []


def test_dataless_hands_out_blocks_without_data(llmstream):
    found = read(llmstream, b"event: x\n\nid: 1\n\nretry: 5\n\n: c\n\n\n\nunknown: 1\n\ndata\n\n", dataless=True)
    assert found == [("x", "", ""), ("message", "", "1"), ("message", "", "1"), ("message", "", "1")]


# The id


def test_the_id_stays_until_there_is_another(llmstream):
    stream = b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: 2\ndata: d\n\n"
    assert [id for _, _, id in read(llmstream, stream)] == ["1", "1", "", "2"]


def test_an_id_in_a_block_without_data(llmstream):
    stream = b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: 2\n\ndata: d\n\n"
    assert [id for _, _, id in read(llmstream, stream)] == ["1", "1", "", "2"]


def test_an_id_with_nul_is_ignored(llmstream):
    assert read(llmstream, b"id: 1\nid: 2\0\ndata: a\n\nid: \0\ndata: b\n\n") == [
        ("message", "a", "1"),
        ("message", "b", "1"),
    ]


def test_last_event_id_changes_with_the_block(llmstream):
    decoder = llmstream.SSEDecoder()
    decoder.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert decoder.last_event_id == "1"
    decoder.feed(b"\n")
    assert decoder.last_event_id == "2"
    decoder.feed(b"id: 3\n\n")
    assert decoder.last_event_id == "3"
    decoder.feed(b"id: 4\n")
    decoder.close()
    assert decoder.last_event_id == "3"


def test_last_event_id_to_start_with(llmstream):
    decoder = llmstream.SSEDecoder(last_event_id="é7")
    assert decoder.last_event_id == "é7"
    assert [e.id for e in decoder.feed(b"data: a\n\nid: 8\ndata: b\n\n")] == ["é7", "8"]
    assert decoder.last_event_id == "8"


# retry


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"0", 0),
        (b"10000", 10000),
        (b"007", 7),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", 2**63 - 1),
        (b"9" * 5000, 2**63 - 1),
        (b"0" * 5000 + b"12", 12),
        (b"", None),
        (b"-1", None),
        (b"+1", None),
        (b"1.0", None),
        (b"1e3", None),
        (b" 1", None),
        (b"1 ", None),
        (b"0x1", None),
        (b"1_0", None),
        ("\u0661".encode(), None),
        ("\u00b2".encode(), None),
    ],
)
def test_retry_takes_ascii_digits_only(llmstream, value, expected):
    for stream in (b"retry: " + value + b"\ndata: a\n\n", b"data: a\nretry: " + value + b"\nx: y\n\n"):
        decoder = llmstream.SSEDecoder()
        [event] = decoder.feed(stream)
        assert event.retry == expected
        assert decoder.retry == expected


def test_retry_of_an_event_is_that_of_its_block(llmstream):
    decoder = llmstream.SSEDecoder()
    events = decoder.feed(b"retry: 5\ndata: a\n\ndata: b\n\nretry: 6\nretry: x\nretry: 7\ndata: c\n\n")
    assert [e.retry for e in events] == [5, None, 7]
    assert decoder.retry == 7


def test_retry_counts_at_once(llmstream):
    decoder = llmstream.SSEDecoder()
    assert decoder.retry is None
    decoder.feed(b"retry: 3000\n\n")
    assert decoder.retry == 3000
    decoder.feed(b"retry: bad\n\n")
    assert decoder.retry == 3000


# UTF-8


def test_invalid_utf8_is_replaced(llmstream):
    for chunks in splits.every_way(b"event: e\xff\ndata: a\xe9\x82\xa3\xff\xe9\n\n"):
        assert read(llmstream, chunks) == [("e\ufffd", "a\u90a3\ufffd\ufffd", "")]


def test_halves_of_a_character_in_two_lines_never_meet(llmstream):
    assert texts(llmstream, b"data: \xe9\x82\ndata: \xa3\n\n") == ["\ufffd\n\ufffd"]


@pytest.mark.parametrize("field", [b"data", b"event", b"id"])
def test_errors_strict_raises(llmstream, field):
    decoder = llmstream.SSEDecoder(errors="strict")
    stream = b"data: a\n\n" + field + b": \xff\ndata: b\n\ndata: c\n\n"
    with pytest.raises(llmstream.SSEError) as caught:
        decoder.feed(stream)
    assert [e.data for e in caught.value.events] == ["a"]
    assert caught.value.offset == 9
    assert caught.value.seq is None
    assert "9" in str(caught.value)
    with pytest.raises(ValueError, match="closed"):
        decoder.feed(b"data: c\n\n")


def test_errors_strict_reads_valid_text_and_ignored_lines(llmstream):
    assert texts(llmstream, ": \udcff\ndata: é\n\n".encode("utf-8", "surrogateescape"), errors="strict") == ["é"]


def test_errors_is_one_of_two_words(llmstream):
    with pytest.raises(ValueError, match="errors"):
        llmstream.SSEDecoder(errors="ignore")


# The end


@pytest.mark.parametrize("tail", [b"data: b", b"data: b\n", b"data: b\r", b"data: b\nda", b"event: x\ndata: b\nid: 2"])
def test_the_unfinished_last_event_is_dropped(llmstream, tail):
    for chunks in splits.every_way(b"data: a\n\n" + tail):
        assert texts(llmstream, chunks) == ["a"]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (b"data: b", [("message", "b")]),
        (b"data: b\n", [("message", "b")]),
        (b"data: b\r", [("message", "b")]),
        (b"event: x\ndata: b\ndata", [("x", "b\n")]),
        (b"event: x", []),
        (b": c", []),
        (b"", []),
    ],
)
def test_unfinished_hands_it_out_marked(llmstream, tail, expected):
    for chunks in splits.some_ways(b"data: a\n\n" + tail):
        decoder = llmstream.SSEDecoder(unfinished=True)
        events = [event for chunk in chunks for event in decoder.feed(chunk)]
        assert [e.complete for e in events] == [True]
        last = decoder.close()
        assert [(e.event, e.data) for e in last] == expected
        assert all(e.complete is False for e in last)
        assert decoder.close() == []


def test_a_bom_cut_at_the_end(llmstream):
    assert read(llmstream, b"\xef\xbb", unfinished=True) == []
    assert read(llmstream, b"", unfinished=True) == []


def test_a_closed_decoder_takes_nothing(llmstream):
    decoder = llmstream.SSEDecoder()
    decoder.feed(b"data: a\n\n")
    assert decoder.close() == []
    assert decoder.close() == []
    with pytest.raises(ValueError, match="closed"):
        decoder.feed(b"")


# max_event_size: values held, joining LFs, and the line under way


def largest(llmstream, stream, **options):
    """The smallest limit at which a stream is read, found by trying; it has to be the same at every split."""
    for limit in range(1, len(stream) + 2):
        try:
            read(llmstream, stream, max_event_size=limit, **options)
        except llmstream.EventTooLargeError:
            continue
        return limit
    return None


@pytest.mark.parametrize(
    ("stream", "bound"),
    [
        (b"data: abcd\n\n", 10),  # the line without its end
        (b"data:abcd\n\n", 9),
        (b"data: abcd\r\n\r\n", 10),
        (b"data: ab\ndata: cd\n\n", 2 + 8),  # 2 held, and the line of 8
        (b"data: ab\ndata: cd\ndata: ef\n\n", 5 + 8),
        (b"event: name\ndata: ab\n\n", 4 + 8),
        (b"event: nam\ndata: abcdef\n\n", 3 + 12),
        (b"event: name\nevent: n\ndata: abcdef\n\n", 1 + 12),
        (b"event: longname\nx\n\n", 15),
        (b"id: 12\ndata: abcdef\n\n", 2 + 12),
        (b": a comment\n\n", 11),  # ignored lines count while they last
        (b"data: ab\n: a comment\n\n", 2 + 11),
        (b"unknown: 1234\ndata: a\n\n", 13),
        (b"data: ab\nx\n\ndata: cd\n\n", 8),  # nothing is carried over
        (b"retry: 100000\ndata: a\n\n", 13),
        (b"retry: 10\ndata: abcd\n\n", 10),
    ],
)
def test_max_event_size_at_the_bound(llmstream, stream, bound):
    assert largest(llmstream, stream) == bound
    for chunks in splits.every_way(stream):
        read(llmstream, chunks, max_event_size=bound)
        with pytest.raises(llmstream.EventTooLargeError):
            read(llmstream, chunks, max_event_size=bound - 1)


def test_too_large_names_the_limit_and_the_place(llmstream):
    for chunks in splits.every_way(b"data: a\n\ndata: bb\ndata: cccccccccc\ndata: d\n\ndata: e\n\n"):
        decoder = llmstream.SSEDecoder(max_event_size=12)
        before = []
        with pytest.raises(llmstream.EventTooLargeError, match="12") as caught:
            before.extend(event for chunk in chunks for event in decoder.feed(chunk))
        assert [e.data for e in before + caught.value.events] == ["a"]
        assert caught.value.offset == 9
        with pytest.raises(ValueError, match="closed"):
            decoder.feed(b"")


def test_a_line_without_end_is_too_large_before_it_ends(llmstream):
    decoder = llmstream.SSEDecoder(max_event_size=1000)
    for _ in range(10):
        decoder.feed(b"x" * 100)
    with pytest.raises(llmstream.EventTooLargeError):
        decoder.feed(b"x")


@pytest.mark.parametrize("value", [0, -1])
def test_max_event_size_is_positive(llmstream, value):
    with pytest.raises(ValueError, match="max_event_size"):
        llmstream.SSEDecoder(max_event_size=value)


@pytest.mark.parametrize("value", ["1", 1.0, None, True])
def test_max_event_size_is_an_int(llmstream, value):
    with pytest.raises(TypeError, match="max_event_size"):
        llmstream.SSEDecoder(max_event_size=value)


def test_options_have_names(llmstream):
    with pytest.raises(TypeError):
        llmstream.SSEDecoder(100)
    with pytest.raises(TypeError):
        llmstream.SSEDecoder(unknown=1)


# What a chunk may be


STREAM = b"data: ab\n\ndata: \xe9\x82\xa3\n\n"
EVENTS = ["ab", "\u90a3"]
PADDED = STREAM + b":" * (-len(STREAM) % 8)


@pytest.mark.parametrize(
    "kind", [bytes, bytearray, memoryview, lambda b: array.array("B", b), lambda b: array.array("b", b)]
)
def test_bytes_like_chunks(llmstream, kind):
    assert texts(llmstream, [kind(STREAM)]) == EVENTS
    parser = llmstream.Parser()
    assert [e.raw for e in parser.feed(kind(b"data: {}\n\n"))] == [b"{}"]


@pytest.mark.parametrize("form", ["b", "c", "H", "i", "Q", "d"])
def test_views_of_other_formats(llmstream, form):
    assert texts(llmstream, [memoryview(PADDED).cast(form)]) == EVENTS
    assert texts(llmstream, [memoryview(PADDED).cast("B", [len(PADDED) // 8, 8])]) == EVENTS


def test_slices_of_views(llmstream):
    assert texts(llmstream, [memoryview(b"xx" + STREAM + b"yy")[2:-2]]) == EVENTS


def test_a_subclass_of_bytes(llmstream):
    class Bytes(bytes):
        def find(self, *_):
            raise AssertionError

        __len__ = __getitem__ = split = find  # type: ignore[assignment]

    assert texts(llmstream, [Bytes(STREAM)]) == EVENTS


def test_a_mapped_file(llmstream, tmp_path):
    path = tmp_path / "stream.sse"
    path.write_bytes(STREAM)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        events = llmstream.SSEDecoder().feed(mapped)
        parser = llmstream.Parser()
        unknown = parser.feed(mapped)
    assert [e.data for e in events] == EVENTS
    assert unknown == []
    assert parser.violation_count == 2


@pytest.mark.parametrize("reader", ["SSEDecoder", "Parser"])
@pytest.mark.parametrize(
    "chunk",
    [memoryview(PADDED)[::2], memoryview(PADDED)[::-1], memoryview(PADDED).cast("B", [2, len(PADDED) // 2])[::1]],
)
def test_a_view_with_gaps_is_refused_or_read_whole(llmstream, reader, chunk):
    made = getattr(llmstream, reader)()
    if chunk.c_contiguous:
        made.feed(chunk)
        return
    with pytest.raises(TypeError, match="contiguous"):
        made.feed(chunk)
    made.feed(b"")  # and nothing has happened


@pytest.mark.parametrize("reader", ["SSEDecoder", "Parser"])
@pytest.mark.parametrize("chunk", ["data: a\n\n", "", 1, None, [100], object()])
def test_what_is_not_bytes_is_refused(llmstream, reader, chunk):
    made = getattr(llmstream, reader)()
    with pytest.raises(TypeError, match=type(chunk).__name__):
        made.feed(chunk)
    made.feed(b"")


def test_a_mutable_chunk_is_free_after_the_call(llmstream):
    chunk = bytearray(b"data: a\n\ndata: b")
    decoder = llmstream.SSEDecoder()
    [event] = decoder.feed(chunk)
    chunk[:] = b"x" * 100  # would raise BufferError while exported
    assert event.data == "a"
    assert [e.data for e in decoder.feed(b"\n\n")] == ["b"]


# ServerSentEvent


def test_an_event_shows_itself(llmstream):
    event = llmstream.ServerSentEvent("e", "d", "1", 5)
    assert repr(event) == "ServerSentEvent(event='e', data='d', id='1', retry=5)"
    unfinished = llmstream.ServerSentEvent(complete=False)
    assert repr(unfinished) == "ServerSentEvent(event='message', data='', id='', retry=None, complete=False)"


def test_events_are_equal_by_their_fields(llmstream):
    same = {"event": "e", "data": "d", "id": "1", "retry": 5}
    event = llmstream.ServerSentEvent(**same)
    assert event == llmstream.ServerSentEvent(**same)
    assert hash(event) == hash(llmstream.ServerSentEvent(**same))
    for name, value in {"event": "x", "data": "x", "id": "x", "retry": 6, "complete": False}.items():
        assert event != llmstream.ServerSentEvent(**{**same, name: value})
    assert event != ("e", "d", "1", 5, True)
    assert event != "d"


def test_read_and_made_events_are_equal(llmstream):
    [event] = llmstream.SSEDecoder().feed(b"event: e\nid: 1\nretry: 5\ndata: d\n\n")
    assert event == llmstream.ServerSentEvent("e", "d", "1", 5)
    assert len({event, llmstream.ServerSentEvent("e", "d", "1", 5)}) == 1


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_events_are_pickled(llmstream, protocol):
    event = llmstream.ServerSentEvent("e", "d\u2028", "1", 5, False)
    assert pickle.loads(pickle.dumps(event, protocol)) == event


def test_events_are_copied(llmstream):
    event = llmstream.ServerSentEvent("e", "d", "1", 5)
    assert copy.copy(event) == event
    assert copy.deepcopy([event]) == [event]


@pytest.mark.parametrize("name", ["event", "data", "id", "retry", "complete", "other"])
def test_events_do_not_change(llmstream, name):
    event = llmstream.ServerSentEvent()
    with pytest.raises(AttributeError):
        setattr(event, name, "x")


def test_fields_are_checked(llmstream):
    for name in ("event", "data", "id"):
        with pytest.raises(TypeError, match=f"^{name} must be a str, not bytes$"):
            llmstream.ServerSentEvent(**{name: b"x"})
    with pytest.raises(TypeError, match=r"^retry must be an int, not str$"):
        llmstream.ServerSentEvent(retry="1")
    with pytest.raises(ValueError, match=r"^retry must be from 0"):
        llmstream.ServerSentEvent(retry=-1)


def test_json_of_the_data(llmstream):
    [event] = llmstream.SSEDecoder().feed(b'data: {"a":\ndata: [1, 2.5, "\\u00e9"]}\n\n')
    assert event.json() == {"a": [1, 2.5, "é"]}


@pytest.mark.parametrize("data", ['{"a":NaN}', "Infinity", "-Infinity", "", "[DONE]", "{", "{} {}", "'a'"])
def test_json_that_is_none_is_refused(llmstream, data):
    with pytest.raises(ValueError):  # noqa: PT011 (json's own words)
        llmstream.ServerSentEvent(data=data).json()


def test_json_with_endless_digits(llmstream):
    value = llmstream.ServerSentEvent(data="[" + "9" * 5000 + "]").json()
    assert value == [float("inf")]


def test_an_sse_event_is_no_cycle(llmstream):
    [event] = llmstream.SSEDecoder().feed(b"data: a\n\n")
    if llmstream.implementation == "cython":
        assert not gc.is_tracked(event)
    before = sys.getrefcount(event.data)
    assert event.data == "a"
    assert before >= 1


@pytest.mark.parametrize("unfinished", [False, True])
@pytest.mark.parametrize("before", [b"", b"data: a\n", b"retry: 7\n\n"])
def test_a_retry_that_may_be_cut_does_not_count(llmstream, before, unfinished):
    decoder = llmstream.SSEDecoder(unfinished=unfinished)
    decoder.feed(before + b"retry: 4")  # of 4000
    assert [event.retry for event in decoder.close()] == [None] * (unfinished and b"data" in before)
    expected = 7 if b"retry" in before else None
    assert decoder.retry == expected
    parser = llmstream.Parser()
    parser.feed(before + b"retry: 4")
    parser.close()
    assert parser.retry == expected


@pytest.mark.parametrize("name", ["SSEDecoder", "Parser"])
def test_what_holds_half_a_stream_is_neither_copied_nor_begun_anew(llmstream, name):
    """Its state is that of one stream: a second would begin in the middle of a line."""
    made = getattr(llmstream, name)()
    made.feed(b"event: content.delta\ndata: {")
    for wrong in (
        made.__init__,
        lambda: made.__init__(max_event_size=5),
        lambda: copy.copy(made),
        lambda: copy.deepcopy(made),
        lambda: pickle.dumps(made),
    ):
        with pytest.raises(TypeError, match=r"initialised twice|copied or pickled"):
            wrong()
    made.feed(b"}\n\n")
    made.close()
