"""Streams that the SDKs read otherwise than WHATWG HTML, section 9.2, says: each shows the SDK's fault, and it mended.

A test file imports them all and has the fixtures ``sdk``, ``fast`` and ``make_event`` (an event with a text, as bytes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sdk_streams import SDK, Outcome, assert_same

Make = Callable[[str], bytes]


@pytest.fixture
def read(sdk: SDK, fast: Any) -> Callable[[list[bytes]], tuple[Outcome, Outcome]]:
    """The outcome of the SDK and ours."""

    def outcomes(chunks: list[bytes]) -> tuple[Outcome, Outcome]:
        ours = sdk.outcome(chunks, fast.accelerate)
        assert_same(ours, sdk.outcome(chunks, fast.accelerate, asynchronous=True))
        whole = b"".join(chunks)
        if len(whole) < 10_000:
            assert_same(ours, sdk.outcome([whole[i : i + 1] for i in range(len(whole))], fast.accelerate))
        return sdk.outcome(chunks), ours

    return outcomes


def test_a_byte_order_mark_costs_no_event(sdk: SDK, fast: Any, read: Any, make_event: Make) -> None:
    events = [make_event(str(number)) for number in range(4)]
    stock, ours = read([b"\xef\xbb\xbf", *events])
    assert len(stock[0]) == 3
    assert_same(sdk.outcome(events), ours)


def test_comments_after_an_id_are_no_events(sdk: SDK, fast: Any, read: Any, make_event: Make) -> None:
    first, second = make_event("a"), make_event("b")
    chunks = [b"id: 7\n" + first, b": heartbeat\n\n\n", second]
    stock, ours = read(chunks)
    if sdk.package.__name__ == "openai":
        assert len(stock[0]) == 1
        assert "JSONDecodeError" in repr(type(stock[1]))
    assert_same(sdk.outcome([first, second]), ours)
    decoder = sdk.client(())._make_sse_decoder()
    assert [one.data for one in decoder.iter_bytes(iter(chunks))].count("") == 2
    decoder = fast.accelerate(sdk.client(()))._make_sse_decoder()
    found = list(decoder.iter_bytes(iter(chunks)))
    assert [one.data for one in found] == [one.split(b"data: ")[1].decode().strip() for one in (first, second)]
    assert [one.id for one in found] == ["7", "7"]


def test_events_without_data_are_no_events(sdk: SDK, fast: Any, read: Any, make_event: Make) -> None:
    first, second = make_event("a"), make_event("b")
    for block in (b"event: ping\n\n", b"retry: 5\n\n", b"id: 3\n\n"):
        chunks = [first, block, second]
        _, ours = read(chunks)
        if sdk.package.__name__ == "openai":
            assert "JSONDecodeError" in repr(type(sdk.outcome(chunks)[1]))
        decoder = sdk.client(())._make_sse_decoder()
        assert len(list(decoder.iter_bytes(iter(chunks)))) == 3
        decoder = fast.accelerate(sdk.client(()))._make_sse_decoder()
        assert len(list(decoder.iter_bytes(iter(chunks)))) == 2
        assert_same(sdk.outcome([first, second]), ours)


def test_bytes_that_are_no_utf8_end_no_stream(sdk: SDK, fast: Any, read: Any, make_event: Make) -> None:
    events = [make_event(text) for text in ("a", "b", "c", "d?e", "f")]
    broken = [one.replace(b"?", b"\xff\xe2\x82") for one in events]
    stock, ours = read(broken)
    assert type(stock[1]) is UnicodeDecodeError
    assert len(stock[0]) == 3
    assert_same(sdk.outcome([one.replace(b"?", "\ufffd\ufffd".encode()) for one in events]), ours)


def test_a_data_line_without_data_is_an_event(sdk: SDK, fast: Any, read: Any, make_event: Make) -> None:
    """As the SDKs do."""
    for block in (b"data\n\n", b"data:\n\n", b"data:\ndata:\n\n"):
        stock, ours = read([make_event("a"), block, make_event("b")])
        assert_same(stock, ours)


def test_a_reconnection_time_is_digits(sdk: SDK, fast: Any, make_event: Make) -> None:
    chunks = [b"retry: +5\n" + make_event("a"), b"retry: 1_0\n" + make_event("b"), b"retry: 7\n" + make_event("c")]
    decoder = sdk.client(())._make_sse_decoder()
    assert [one.retry for one in decoder.iter_bytes(iter(chunks))] == [5, 10, 7]
    decoder = fast.accelerate(sdk.client(()))._make_sse_decoder()
    assert [one.retry for one in decoder.iter_bytes(iter(chunks))] == [None, None, 7]


def test_large_events_are_read_once(sdk: SDK, fast: Any, make_event: Make) -> None:
    """In many pieces, and in many lines; each byte is looked at a fixed number of times, so it does not take long."""
    data = make_event("x" * 2**22)
    pieces = [data[start : start + 2**10] for start in range(0, len(data), 2**10)]
    (expected, _), (found, error) = sdk.outcome([data]), sdk.outcome(pieces, fast.accelerate)
    assert error is None
    assert found == expected
    name, _, payload = make_event("y" * 1000).partition(b"data: ")
    lines = name + b"".join(b"data: %b\n" % payload.strip()[i : i + 1] for i in range(5))
    decoder = fast.accelerate(sdk.client(()))._make_sse_decoder()
    (one,) = decoder.iter_bytes([b"data: 1\n" * 200_000, b"\n", lines])
    assert one.data == "\n".join(["1"] * 200_000)


def test_a_cut_tail_is_no_event(sdk: SDK, fast: Any, read: Any, make_event: Make) -> None:
    """As the SDKs do."""
    for tail in (b"data: {}", b"data: {}\n", b"event: content_block_delta\ndata: {}\n", b"id: 5", b": x"):
        stock, ours = read([make_event("a"), make_event("b"), tail])
        assert_same(stock, ours)


def test_line_ends(sdk: SDK, fast: Any, read: Any, make_event: Make) -> None:
    """As the SDKs do."""
    lines = b"".join(make_event(text) for text in ("a", "b\u2028c", "d\x0be", "f"))
    expected = sdk.outcome([lines])
    for end in (b"\n", b"\r", b"\r\n"):
        stock, ours = read([lines.replace(b"\n", end)])
        assert_same(expected, stock)
        assert_same(expected, ours)


WRITTEN = [
    b"event: message",
    b"event:message",
    b"\xef\xbb\xbfevent: message",
    b"event: a\nevent: message",
    b"event: message\nevent: a",
    b"event: message\nevent:",
    b"event: message\nid: 1\nevent",
    b"event",
    b"event:",
    b"event: ",
    b"event:  message",
    b"event: message ",
    b"event: messages",
    b"event : message",
    b"xevent: message",
    b": event: message",
    b"id: event: message",
    b"other\nevent: message\n: c",
]
"""Lines before the data of an event; some of them name it "message", which is another thing than no name."""


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_name_that_is_written_is_told_from_none(sdk: SDK, fast: Any, make_event: Make, end: bytes) -> None:
    """WHATWG HTML, section 9.2.6: an event without a name is of the type "message"; the SDKs know it from one that
    says so."""
    data = make_event("a").partition(b"data: ")[2]
    for lines in [*WRITTEN, *(one + b"\n" + other for one in WRITTEN[:6] for other in WRITTEN[:6])]:
        whole = (lines + b"\ndata: " + data) * 2
        whole = whole.replace(b"\n", end)
        unmarked = whole.removeprefix(b"\xef\xbb\xbf")  # the mark at the start, which the SDKs do not know
        expected = [one.event for one in sdk.client(())._make_sse_decoder().iter_bytes(iter([unmarked]))]
        for size in (1, 2, 3, 7, 15, len(whole)):
            chunks = [whole[start : start + size] for start in range(0, len(whole), size)]
            decoder = fast.accelerate(sdk.client(()))._make_sse_decoder()
            assert [one.event for one in decoder.iter_bytes(iter(chunks))] == expected, (lines, size)


def test_events_that_are_named_message(sdk: SDK, fast: Any, make_event: Make) -> None:
    chunks = [b"event: message\ndata: " + make_event(text).partition(b"data: ")[2] for text in "abcdef"]
    expected = sdk.outcome(chunks)
    assert len(expected[0]) == 6
    for asynchronous in (False, True):
        assert_same(expected, sdk.outcome(chunks, fast.accelerate, asynchronous=asynchronous))


PAYLOADS = {
    "not a number": "NaN",
    "infinite": "Infinity",
    "less than infinite": "-Infinity",
    "an integer too large": "9" * 5000,
    "an integer": "9" * 4000,
    "nested": "[" * 500 + "]" * 500,
    "nested too deep": "[" * 200_000 + "]" * 200_000,
    "half a surrogate pair": r'"\ud83d"',
    "a large exponent": "1e999",
    "a name twice": '1, "more": 2',
    "a byte order mark": '"\ufeff"',
    "a control character": '"\x01"',
    "not JSON": "nan",
}
"""JSON, and what is none, for a member of a payload."""


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("case", PAYLOADS)
@pytest.mark.parametrize(
    "name", [None, "", "response.created", "message_start", "content_block_delta", "thread.x", "error"]
)
def test_payloads_are_read_as_the_sdk_reads_json(
    sdk: SDK, fast: Any, make_event: Make, case: str, name: str | None, asynchronous: bool
) -> None:
    """The same objects and the same exceptions, also where the standard library takes what is no JSON."""

    def event(text: str) -> bytes:
        head, _, data = make_event(text).partition(b"data: ")
        data = data.replace(b"{", b'{"more": ' + PAYLOADS[case].encode() + b", ", 1)
        head = head if name is None else b"event: " + name.encode() + b"\n" if name else b""
        return head + b"data: " + data

    chunks = [event(text) for text in "abcd"]
    chunks.append(b"data: \xef\xbb\xbf" + chunks[0].partition(b"data: ")[2])
    stock = sdk.outcome(chunks, asynchronous=asynchronous)
    ours = sdk.outcome(chunks, fast.accelerate, asynchronous=asynchronous)
    assert [type(item) for item in ours[0]] == [type(item) for item in stock[0]]
    assert repr(ours) == repr(stock)


def test_fields_of_an_event(sdk: SDK, fast: Any) -> None:
    blocks = (
        b"data: 1",
        b"event: a\ndata: 2\nid: x\nretry: 10",
        b"data:3\ndata\ndata: 4\nother: 5\n:c",
        b"id\ndata: 6",
        b"event: message\ndata: 7",
        b"data: 8",
    )
    stream = b"".join(block + b"\n\n" for block in blocks)
    stock = list(sdk.client(())._make_sse_decoder().iter_bytes(iter([stream])))
    ours = list(fast.accelerate(sdk.client(()))._make_sse_decoder().iter_bytes(iter([stream])))
    for one, other in zip(stock, ours, strict=True):
        assert isinstance(other, type(one))
        assert other.event == one.event
        assert other.data == one.data
        assert other.retry == one.retry
        assert (other.id or None) == (one.id or None)
    assert [repr(one) for one in ours[:3]] == [repr(one) for one in stock[:3]]
    assert ours[0].json() == 1
