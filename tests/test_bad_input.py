"""Anything may come: a lenient parser raises for no bytes, stays within its bounds, and says what was wrong."""

from __future__ import annotations

import random
import tracemalloc

import pytest

import drafts
import splits
import vendors
from drafts import delta, end, envelope, event, sse, start, usage

DIALECTS = ["llm-stream", *vendors.VENDORS, "auto"]

HTML = b"""<!DOCTYPE html>
<html>
<head><title>502 Bad Gateway</title></head>

<body>
data: <center>nginx</center>

</body>
</html>
"""

BODIES = {
    "nothing": b"",
    "html": HTML,
    "html of CRLF": HTML.replace(b"\n", b"\r\n"),
    "json": b'{"id":"x","choices":[{"message":{"content":"hello"}}]}',
    "json over lines": b'{\n  "id": "x",\n  "n": [1,\n 2]\n}\n',
    "json array": b"[1, 2, 3]",
    "json text": b'"hello"',
    "cut json": b'{"error":{"message":"x',
    "blank lines": b"\n" * 1000,
    "CRs": b"\r" * 1000,
    "CR LF CR": b"\r\n\r" * 500,
    "NULs": b"\0" * 1000,
    "NULs in data": b"data: \0\0\n\nid: \0\n\nevent: \0\ndata: {}\n\n",
    "BOMs": b"\xef\xbb\xbf" * 100,
    "half a BOM": b"\xef\xbb",
    "0xff": b"\xff" * 1000,
    "0xff in data": b"data: " + b"\xff" * 1000 + b"\n\n",
    "colons": b":" * 1000 + b"\n" + b":\n" * 1000 + b"\n",
    "words": b"data\nevent\nid\nretry\n\n" * 50,
    "digits": b"9" * 5000 + b"\n\n" + sse("9" * 5000) + sse('{"seq":' + "9" * 5000 + "}"),
    "gzip": bytes.fromhex("1f8b0800000000000003") + bytes(range(256)),
    "utf-16": 'data: {"a":1}\n\n'.encode("utf-16"),
    "utf-32": 'data: {"a":1}\n\n'.encode("utf-32"),
    "[DONE]": b"data: [DONE]\n\n" * 5,
    "commas": sse("," * 100) + sse("[,]") + sse("{,}"),
    "event names": b"".join(b"event: " + bytes([byte]) + b"\ndata: {}\n\n" for byte in range(256)),
    "chunked encoding": b"5\r\ndata:\r\n2\r\n{}\r\n0\r\n\r\n",
    "headers": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {}\r\n\r\n",
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("body", BODIES)
def test_no_bytes_raise(llmstream, dialect, body):
    data = BODIES[body]
    expected = drafts.outcome(llmstream, [data], dialect=dialect)
    assert expected["raised"] is None
    assert expected["complete"] is (dialect == "openai" and body == "[DONE]") or body == "[DONE]"
    for chunks in splits.some_ways(data, 4):
        assert drafts.outcome(llmstream, chunks, dialect=dialect) == expected
    if not expected["complete"]:
        assert expected["violation_count"] > 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_random_bytes(llmstream, dialect):
    generator = random.Random(1)
    letters = b'\n\n\r\n: {}[]",\\u0d8data:event:id:[DONE]' + bytes([0, 0xFF, 0xC3, 0xEF, 0xBB, 0xBF])
    for _ in range(60):
        noise = bytes(generator.choices(letters, k=generator.randint(0, 300)))
        noise += bytes(generator.randbytes(generator.randint(0, 100)))
        expected = drafts.outcome(llmstream, [noise], dialect=dialect)
        assert expected["raised"] is None
        chunks = splits.at_random(noise, generator.randint(0, 999))
        assert drafts.outcome(llmstream, chunks, dialect=dialect) == expected


@pytest.mark.parametrize("dialect", ["gemini", "openai"])
def test_offsets_of_a_json_framing(llmstream, dialect):
    for chunks in splits.every_way(b'{}{"a":"\xff"}'):
        parser, _ = drafts.run(llmstream, chunks, dialect=dialect)
        assert drafts.faults(parser)[0] == ("L-UTF8", "warning", 1, 2)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_payloads_of_every_form(llmstream, dialect):
    """Where an object is expected stands something else, at each place of a payload."""
    values = [
        "null",
        "true",
        "0",
        "-1",
        "1e400",
        '""',
        '"x"',
        "[]",
        "{}",
        "[null]",
        "[[]]",
        '{"a":1}',
        '[{"a":1}]',
        "9" * 400,
        '"\\ud83d"',
    ]
    if dialect in vendors.VENDORS:
        made = vendors.VENDORS[dialect](["x"], ["y"], ["{", "}"])
    else:
        made = [start(), delta(1), drafts.stop(2), drafts.tool_call(3), usage(4), drafts.error(5), end(6)]
    for number, source in enumerate(made):
        payload = source.split(b"data: ", 1)[1][:-2].decode()
        places = [at for at in range(len(payload)) if payload.startswith(":", at)]
        for at in places:
            for value in values:
                # The rest of the member is kept beside, as a member of its own.
                changed = f'{payload[: at + 1]}{value},"rest":{payload[at + 1 :]}'
                parser = llmstream.Parser(dialect)
                for chunk in [*made[:number], source.replace(payload.encode(), changed.encode()), *made[number + 1 :]]:
                    parser.feed(chunk)
                parser.close()


def test_an_html_page(llmstream):
    parser, events = drafts.run(llmstream, HTML)
    assert events == []
    assert drafts.rules_of(parser) == ["R5.1-3", "R5.3.7-2"]
    with pytest.raises(llmstream.EnvelopeError):
        drafts.run(llmstream, HTML, strict=True)


def test_a_json_body_with_an_error(llmstream):
    body = b'{"error":{"message":"no such model","code":"overloaded"}}'
    for dialect in ("openai", "anthropic", "gemini", "auto", "llm-stream"):
        for chunks in splits.some_ways(body):
            parser, events = drafts.run(llmstream, chunks, dialect=dialect)
            assert [e.message for e in events if isinstance(e, llmstream.StreamError)] == ["no such model"], dialect
            assert not parser.complete
        with pytest.raises(llmstream.UpstreamError):
            drafts.run(llmstream, body, dialect=dialect, strict=True)


# Depth


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_ten_thousand_levels(llmstream, opening, closed, dialect):
    levels = opening * 10_000
    if closed:
        levels += "1" + "".join({"[": "]", "{": "}"}[c] for c in reversed(levels) if c in "[{")
    data = (
        start() + event("x", 1, raw_x=levels) + sse(levels) + drafts.tool_call(3, arguments=levels) + usage(4) + end(5)
    )
    expected = drafts.outcome(llmstream, [data], dialect=dialect)
    assert expected["raised"] is None
    for chunks in (splits.in_chunks(data, 1000), splits.at_random(data, 3)):
        assert drafts.outcome(llmstream, chunks, dialect=dialect) == expected
    if dialect == "llm-stream":
        parser, events = drafts.run(llmstream, data)
        rules = drafts.rules_of(parser)
        assert rules[:2] == ["L-DEPTH", "L-DEPTH"]
        assert [e.type for e in events] == ["stream.start", "tool.call", "usage", "stream.end"]


def test_levels_below_the_limit_are_read(llmstream):
    for depth in (100, 1000, 4095):
        levels = "[" * depth + "]" * depth
        parser, events = drafts.run(llmstream, start() + event("x", 1, raw_x=levels))
        assert [e.type for e in events] == ["stream.start", "x"]
        assert drafts.rules_of(parser) == ["R5.3.7-2"]
        parser, events = drafts.run(llmstream, start() + event("x", 1, raw_x="[" * depth + "]" * (depth - 1)))
        assert drafts.rules_of(parser)[0] == "R5.1-3"


def test_max_depth_may_be_raised(llmstream):
    levels = "[" * 50_000 + "]" * 50_000
    parser = llmstream.Parser(max_depth=60_000)
    assert [e.type for e in parser.feed(start() + event("x", 1, raw_x=levels))] == ["stream.start", "x"]
    assert parser.violations == []


# Size and memory


def peak(llmstream, chunk, count, **options):
    """The most memory that feeding one chunk many times took."""
    parser = llmstream.Parser(**options)
    parser.feed(chunk)
    tracemalloc.start()
    try:
        for _ in range(count):
            parser.feed(chunk)
        return tracemalloc.get_traced_memory()[1], parser
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("chunk", [b"x" * 65_536, b"data: " + b"x" * 65_000, b":" + b"c" * 65_000])
@pytest.mark.parametrize("dialect", ["llm-stream", "openai", "auto"])
def test_megabytes_without_a_newline(llmstream, chunk, dialect):
    most, parser = peak(llmstream, chunk, 256, max_event_size=20_000, dialect=dialect)
    assert most < 1_000_000
    assert drafts.rules_of(parser) == ["L-SIZE"]
    assert parser.feed(b"\n\n" + sse("{}", "x")) is not None
    parser.close()


@pytest.mark.parametrize(
    "line", [b": comment\n", b"unknown: x\n", b"\n", b"event: e\n\n", b"id: 1\n\n", b"retry: 1\n", b'{"a":1}\n', b"[\n"]
)
def test_lines_that_hold_nothing_take_nothing(llmstream, line):
    chunk = line * (8192 // len(line))
    most, parser = peak(llmstream, chunk, 16, max_event_size=100_000)
    assert most < 100_000
    assert parser.violation_count == 0


@pytest.mark.parametrize("payload", ["{", "[]", '{"type":"x"}', "[DONE]"])
def test_faults_take_bounded_memory(llmstream, payload):
    most, parser = peak(llmstream, sse(payload, "x") * 100, 200)
    assert most < 1_500_000
    assert len(parser.violations) == 1000
    assert parser.violation_count > 20_000


def test_the_events_over_the_limit_are_all_counted(llmstream):
    parser, _ = drafts.run(llmstream, start() + (b"data: " + b"x" * 100 + b"\n\n") * 50, max_event_size=99)
    assert drafts.rules_of(parser).count("L-SIZE") == 50


@pytest.mark.parametrize("line", [b"data: 12345678\n", b"data:\n", b"data\n"])
def test_a_hundred_thousand_data_lines(llmstream, line):
    lines = 100_000
    data = b"event: x\n" + b'data: {"a":"\ndata:"}\n' + line * lines + b"\n"
    for size in (len(data), 65_536):
        decoder = llmstream.SSEDecoder()
        [found] = [e for chunk in splits.in_chunks(data, size) for e in decoder.feed(chunk)]
        assert found.data.count("\n") == lines + 1
        parser = llmstream.Parser()
        for chunk in splits.in_chunks(start() + data + usage(2), size):
            parser.feed(chunk)
        assert drafts.rules_of(parser) == ["R5.1-3"]
    limited = llmstream.SSEDecoder(max_event_size=50_000)
    with pytest.raises(llmstream.EventTooLargeError):
        sum(len(limited.feed(chunk)) for chunk in splits.in_chunks(data, 4096))


def test_white_space_over_many_data_lines_is_json(llmstream):
    payload = envelope("content.delta", 1, index=0, role="assistant", delta={"text": "a"})
    data = b"event: content.delta\ndata: " + payload[:-1].encode() + b"\n" + b"data:\n" * 20_000 + b"data: }\n\n"
    parser = llmstream.Parser()
    [_, found] = [e for chunk in splits.in_chunks(start() + data, 64) for e in parser.feed(chunk)]
    assert found.text == "a"
    assert parser.violations == []


def test_endless_strings(llmstream):
    text = 'a\\"\u00e9\n' * 200_000
    parser = llmstream.Parser()
    [_, found] = [e for chunk in splits.in_chunks(start() + delta(1, text), 8192) for e in parser.feed(chunk)]
    assert found.text == text


@pytest.mark.parametrize(
    "value", ["9" * 5000, "-" + "9" * 5000, "0." + "0" * 5000 + "1", "1e" + "9" * 5000, "1" + "0" * 5000 + "e-5000"]
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_endless_numbers(llmstream, value, dialect):
    data = b"".join(
        [
            start(raw_created=value),
            delta(1, raw_index=value),
            usage(2, raw_input_tokens=value),
            event("x", 3, raw_x=value),
            drafts.tool_call(4, arguments=value),
            vendors.openai_chunk({"content": "x"}).replace(b"1700000000", value.encode()),
            b"".join(vendors.anthropic(["x"])).replace(b'"index":0', b'"index":' + value.encode()),
            b"".join(vendors.gemini(["x"])).replace(b'Count":3', b'Count":' + value.encode()),
        ]
    )
    assert drafts.outcome(llmstream, [data], dialect=dialect)["raised"] is None


def test_many_blocks_and_calls_take_bounded_memory(llmstream):
    for maker in (
        lambda number: delta(number, "x", number),
        lambda number: drafts.tool_call(number, number, id=f"call-{number}" + "x" * 50),
    ):
        parser = llmstream.Parser()
        parser.feed(start() + b"".join(maker(number) for number in range(1, 5000)))
        tracemalloc.start()
        for first in range(5000, 7000, 100):
            parser.feed(b"".join(maker(number) for number in range(first, first + 100)))
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept < 50_000
        assert drafts.rules_of(parser) == ["L-BLOCKS"]


@pytest.mark.parametrize("dialect", ["auto"])
def test_auto_holds_back_little(llmstream, dialect):
    most, parser = peak(llmstream, sse('{"what":"is this"}') * 50, 100, dialect=dialect)
    assert most < 1_500_000
    assert "L-DIALECT" in drafts.rules_of(parser)
    assert parser.dialect == "auto"
