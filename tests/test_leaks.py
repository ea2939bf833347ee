"""Nothing is kept: every entry point, on what it reads and on what it refuses, leaves memory as it found it.

Python's blocks are counted by the interpreter; what C allocates for itself by the C library, where it tells.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import ctypes
import gc
import pickle
import sys
from importlib import import_module

import pytest

import drafts
import vendors

WARM, TIMES = 25, 120
SLACK = 80  # blocks that caches of the interpreter may take; a leak of one block a time takes TIMES
STREAM = drafts.whole("The", ' "weather"', " in K\u00f6ln", " \U0001f600\n") + b": over\n\n"
BROKEN = {
    "bad JSON": drafts.start() + drafts.sse("{", "content.delta"),
    "bad UTF-8": drafts.start() + drafts.sse(b'{"type":"content.delta","delta":{"text":"\xff"}}', "content.delta"),
    "half a pair": drafts.start() + drafts.delta(1, raw_delta='{"text":"\\ud83d"}'),
    "repeated key": drafts.start() + drafts.delta(1, raw_delta='{"text":"a","text":"b"}'),
    "wrong types": drafts.start() + drafts.delta("x", 5, "y", role=None),
    "gap": drafts.start() + drafts.delta(9) + drafts.delta(3),
    "error": drafts.start() + drafts.error(1),
    "cut": STREAM[:200],
    "cut in a line": STREAM[:-30],
    "after the end": STREAM + drafts.delta(9),
    "arguments": drafts.start() + drafts.tool_call(1, arguments="{"),
    "deep": drafts.start() + drafts.event("x", 1, raw_x="[" * 5000),
    "large": drafts.start() + drafts.delta(1, "x" * 3000),
    "no stream": b"<html>" * 100,
    "bare error": b'{"error":{"code":"overloaded","message":"m"}}',
}


class _Counts(ctypes.Structure):
    _fields_ = [(f"count{number}", ctypes.c_size_t) for number in range(10)]


try:
    _mallinfo = ctypes.CDLL(None).mallinfo2
    _mallinfo.restype = _Counts
except (AttributeError, OSError, TypeError):
    _mallinfo = None


def held():
    """Blocks of Python, and bytes that the C library has handed out (0 where it does not tell)."""
    gc.collect()
    gc.collect()
    blocks = getattr(sys, "getallocatedblocks", int)()
    if _mallinfo is None:
        return blocks, 0
    found = _mallinfo()
    return blocks, found.count7 + found.count4  # handed out from the heap, and mapped


def growth(work):
    """What TIMES repetitions left behind."""
    for _ in range(WARM):
        work()
    best = (sys.maxsize, sys.maxsize)
    for _ in range(3):  # caches fill now and then; a leak is there every time
        blocks, size = held()
        for _ in range(TIMES):
            work()
        after = held()
        best = min(best, (after[0] - blocks, after[1] - size))
        if best[0] < SLACK and best[1] < TIMES * 16:
            break
    return best


def keeps_nothing(work):
    blocks, size = growth(work)
    assert blocks < SLACK
    assert size < TIMES * 16


def test_a_leak_is_seen():
    kept = []
    with pytest.raises(AssertionError):
        keeps_nothing(lambda: kept.append([object()]))
    with pytest.raises(AssertionError):
        keeps_nothing(lambda: kept.append(bytearray(5000)))


def read(llmstream, chunks, method="feed", **options):
    parser = llmstream.Parser(**options)
    with contextlib.suppress(llmstream.LLMStreamError):
        for chunk in chunks:
            getattr(parser, method)(chunk)
        parser.close()
    return parser


WAYS = {
    "whole": lambda data: [data],
    "in pieces": lambda data: [data[at : at + 37] for at in range(0, len(data), 37)],
    "bytearrays": lambda data: [bytearray(data[:150]), bytearray(data[150:])],
    "views": lambda data: [memoryview(data)[:150], memoryview(data)[150:]],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["feed", "feed_text"])
def test_a_parser(llmstream, method, way):
    chunks = WAYS[way](STREAM)
    keeps_nothing(lambda: read(llmstream, chunks, method))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", BROKEN)
def test_a_parser_of_what_is_broken(llmstream, name, strict):
    data = BROKEN[name]

    def work():
        for errors in ("replace", "strict"):
            read(llmstream, WAYS["in pieces"](data), strict=strict, errors=errors, max_event_size=2000)
            read(llmstream, [data], strict=strict, errors=errors, max_event_size=2000)

    keeps_nothing(work)


def test_a_parser_that_is_dropped_anywhere(llmstream):
    def work():
        for stop in range(0, len(STREAM), 61):
            llmstream.Parser().feed(STREAM[:stop])

    keeps_nothing(work)


@pytest.mark.parametrize("dialect", [*sorted(vendors.VENDORS), "auto"])
def test_a_dialect(llmstream, dialect):
    events = vendors.VENDORS.get(dialect, vendors.openai)(["a", "\u00e9"], ["b"], ["{", '"a":1}'])
    whole = b"".join(events)

    def work():
        read(llmstream, events, dialect=dialect)
        read(llmstream, [whole[:-20]], dialect=dialect, strict=True)
        read(llmstream, [whole.replace(b":", b";")], "feed_text", dialect=dialect)

    keeps_nothing(work)


def test_a_dialect_that_raises(llmstream):
    def translate(self, payload, event):
        raise RuntimeError

    odd = type("Odd", (llmstream.Dialect,), {"name": "odd", "translate": translate})
    keeps_nothing(lambda: read(llmstream, [b'data: {"a":1}\n\n' * 3], dialect=odd))


def test_payloads_without_a_framing(llmstream):
    payloads = [drafts.envelope("content.delta", 1, index=0, delta={"text": "a"}).encode(), b"{", b"[]", b"\xff"]

    def work():
        parser = llmstream.Parser()
        for payload in payloads:
            parser.feed_payload(payload, "content.delta")

    keeps_nothing(work)


def test_arguments_that_are_refused(llmstream):
    calls = [
        lambda: llmstream.Parser(max_depth=0),
        lambda: llmstream.Parser(max_event_size="x"),
        lambda: llmstream.Parser("no such dialect"),
        lambda: llmstream.Parser(errors="x"),
        lambda: llmstream.Parser().feed("text"),
        lambda: llmstream.Parser().feed(5),
        lambda: llmstream.Parser().feed(memoryview(b"abcdef")[::2]),
        lambda: llmstream.Parser().feed_payload("text"),
        lambda: llmstream.SSEDecoder(last_event_id=5),
        lambda: llmstream.SSEDecoder().feed("text"),
        lambda: llmstream.ContentDelta(text=5),
        lambda: llmstream.ContentDelta(text="\ud800"),
        lambda: llmstream.ToolCall(id=b"x"),
        lambda: llmstream.Usage(input_tokens=-1),
        lambda: llmstream.StreamEnd(no_such=1),
        lambda: copy.copy(llmstream.Parser()),
    ]

    def work():
        for call in calls:
            with contextlib.suppress(TypeError, ValueError):
                call()

    keeps_nothing(work)


def test_events_and_what_they_show(llmstream):
    def work():
        for event in llmstream.Parser().feed(STREAM):
            copy.deepcopy(event)
            pickle.loads(pickle.dumps(event))
            assert event == copy.copy(event)
            repr(event), hash(event), event.json(), event.raw, event.extensions, event.seq, event.type
        llmstream.ContentDelta(text="a", extensions={"a:b": [1]})

    keeps_nothing(work)


def test_a_decoder(llmstream):
    data = b"\xef\xbb\xbfid: 1\nevent: e\ndata: a\ndata: b\nretry: 5\n\ndata: \xff\n\ndata: cut"

    def work():
        for options in ({}, {"errors": "strict"}, {"max_event_size": 3}, {"unfinished": True, "dataless": True}):
            decoder = llmstream.SSEDecoder(**options)
            with contextlib.suppress(llmstream.SSEError):
                for chunk in (data[:9], data[9:]):
                    for event in decoder.feed(chunk):
                        repr(event), event.id, hash(event)
                decoder.close()

    keeps_nothing(work)


def test_a_producer(llmstream):
    def work():
        encoder = llmstream.Encoder(clock=lambda: 1.0)
        encoder.start("m")
        for text in ("a", "\u2028", "\ud800", 5, "x" * 700):
            with contextlib.suppress(TypeError, ValueError):
                encoder.delta(text)
        with contextlib.suppress(llmstream.LLMStreamError):
            encoder.stop("end_turn", 7)
            encoder.start("m")
        encoder.stop("end_turn")
        encoder.end()

    keeps_nothing(work)


def test_readers_of_whole_streams(llmstream):
    async def later():
        async def chunks():
            yield STREAM[:150]
            yield STREAM[150:]

        assert [text async for text in llmstream.aiter_text(chunks())]
        found = llmstream.aiter_events(chunks())
        await anext(found)
        await found.aclose()

    loop = asyncio.new_event_loop()

    def work():
        assert llmstream.parse(STREAM).text
        assert llmstream.check([STREAM]) is not None
        with llmstream.iter_events([STREAM[:150], STREAM[150:]]) as events:
            next(events)
        with contextlib.suppress(llmstream.LLMStreamError):
            list(llmstream.iter_text([STREAM[:250]]))
        loop.run_until_complete(later())

    try:
        keeps_nothing(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def test_requests(llmstream):
    body = (
        b'{"version":"1.0","stream":true,"model":"m","messages":[{"role":"user","content":"a"}],'
        b'"tools":[{"name":"f","description":"d","parameters":{}}]}'
    )

    def work():
        for text in (body, body[:-1], b"[]", body.replace(b"user", b"x"), b'{"a":1,"a":"\\ud800"}', b"[" * 600):
            with contextlib.suppress(llmstream.RequestError):
                request = llmstream.Request.from_json(text)
                request.validate()
                llmstream.Request.from_json(request.to_json(), strict=True)

    keeps_nothing(work)


def test_gateways(llmstream):
    data = b"".join(vendors.openai(["a", "b"], [], ["{}"]))

    def work():
        for source in (data, data[:-40]):
            transcoder = llmstream.Transcoder("openai")
            transcoder.feed(source)
            transcoder.close()
            observer = llmstream.Observer("openai", max_content_size=100)
            observer.feed(source)
            observer.close()
            translator = llmstream.StreamTranslator("anthropic", "openai", model="m")
            translator.feed(source)
            translator.close()

    keeps_nothing(work)


@pytest.mark.parametrize("name", ["JSONFraming", "LengthPrefixedFraming", "AWSEventStreamFraming", "SignalRFraming"])
def test_framings(llmstream, name):
    module = {
        "JSONFraming": "json_values",
        "LengthPrefixedFraming": "length_prefixed",
        "AWSEventStreamFraming": "aws_event_stream",
        "SignalRFraming": "signalr",
    }[name]
    kind = getattr(import_module(f"llmstream.framing.{module}"), name)
    streams = (vendors.aws({"a": 1}) * 2, b'[{"a":1},{"b":2}]', b'{"type":6}\x1e', b"\x01\0\0\0\x02{}", b"\xff" * 40)

    def work():
        for data in streams:
            framing = kind(1000)
            with contextlib.suppress(llmstream.LLMStreamError):
                framing.feed(data[:9])
                framing.feed(data[9:])
                framing.close()

    keeps_nothing(work)


# References


needs_counts = pytest.mark.skipif(not hasattr(sys, "getrefcount"), reason="no reference counts here")


@needs_counts
@pytest.mark.parametrize("method", ["feed", "feed_text", "feed_payload"])
@pytest.mark.parametrize("data", [STREAM, *BROKEN.values()], ids=["whole", *BROKEN])
def test_a_chunk_is_let_go_of(llmstream, data, method):
    chunk = bytes(bytearray(data))  # an object of its own
    before = sys.getrefcount(chunk)
    for strict in (False, True):
        parser = llmstream.Parser(strict=strict, max_event_size=2000)
        with contextlib.suppress(llmstream.LLMStreamError):
            kept = getattr(parser, method)(chunk)
            parser.close()
            for event in kept if method != "feed_text" else ():
                assert event.raw is not None
        parser = kept = event = None
        gc.collect()
        assert sys.getrefcount(chunk) == before


@pytest.mark.parametrize("method", ["feed", "feed_text", "feed_payload"])
@pytest.mark.parametrize("data", [STREAM, *BROKEN.values()], ids=["whole", *BROKEN])
def test_a_buffer_is_given_back(llmstream, data, method):
    """A bytearray that is still exported could not grow."""
    for strict in (False, True):
        chunk = bytearray(data)
        parser = llmstream.Parser(strict=strict, max_event_size=2000)
        with contextlib.suppress(llmstream.LLMStreamError):
            getattr(parser, method)(chunk)
        chunk.append(0)
        del chunk[:]


@needs_counts
def test_constants_are_not_used_up(llmstream):
    """None, True and what is shared keep their counts where those are counted at all."""
    shared = [llmstream.ContentDelta, llmstream.Parser, llmstream.LLMStreamError, "assistant", (), None, True]
    for _ in range(WARM):
        read(llmstream, [STREAM])
    before = [sys.getrefcount(each) for each in shared]
    for _ in range(TIMES):
        read(llmstream, [STREAM])
        read(llmstream, [BROKEN["bad JSON"]], strict=True)
    gc.collect()
    after = [sys.getrefcount(each) for each in shared]
    assert all(abs(one - other) < 50 for one, other in zip(before, after, strict=True)), (before, after)
