"""``transcode`` and ``atranscode``: from any source to the bytes of the standard stream."""

from __future__ import annotations

import asyncio
import io

import pytest

import splits
from standard import checked, clock, kinds, read, text, written
from vendors import openai, openai_chunk

EVENTS = openai(["Hel", "lo"])
DATA = b"".join(EVENTS)


class Body:
    """Chunks, how many of them were read, what comes after them, and how often it was closed."""

    headers = ()

    def __init__(self, chunks, fault=None):
        self.chunks = chunks
        self.fault = fault
        self.read = self.closed = 0

    def pieces(self):
        for chunk in self.chunks:
            self.read += 1
            yield chunk
        if self.fault is not None:
            raise self.fault


class Response(Body):
    def iter_bytes(self):
        return self.pieces()

    def close(self):
        self.closed += 1


class AsyncResponse(Body):
    async def aiter_bytes(self):
        for chunk in self.pieces():
            await asyncio.sleep(0)
            yield chunk

    async def aclose(self):
        self.closed += 1


async def gathered(stream, found):
    async with stream:
        async for piece in stream:
            assert piece
            found.append(piece)


def pulled(llmstream, source, is_async, found=None, **options):
    """All pieces, and the stream; what it raises is raised after they were gathered in ``found``."""
    found = [] if found is None else found
    options = {"clock": clock, **options}
    if is_async:
        stream = llmstream.atranscode(source, **options)
        asyncio.run(gathered(stream, found))
        return found, stream
    with llmstream.transcode(source, **options) as stream:
        for piece in stream:
            assert piece
            found.append(piece)
    return found, stream


both = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def response(is_async, chunks, fault=None):
    return (AsyncResponse if is_async else Response)(chunks, fault)


@both
def test_every_source_gives_what_the_transcoder_gives(llmstream, is_async):
    whole, _ = written(llmstream, DATA)
    sources = [DATA, bytearray(DATA), io.BytesIO(DATA), iter(EVENTS), EVENTS, response(is_async, EVENTS)]
    sources += [splits.bytewise(DATA), splits.at_random(DATA, 1)]
    for source in sources:
        pieces, stream = pulled(llmstream, source, is_async)
        assert b"".join(pieces) == whole
        checked(llmstream, stream.transcoder, whole)
        assert stream.transcoder.complete


@both
def test_the_options_of_the_transcoder(llmstream, is_async):
    pieces, stream = pulled(
        llmstream,
        EVENTS,
        is_async,
        dialect="openai",
        request_id="r",
        model="m",
        reasoning="drop",
        max_event_size=10_000,
    )
    assert read(b"".join(pieces))[0]["request_id"] == "r"
    assert stream.transcoder.dialect == "openai"
    for options in ({"dialect": "nonsense"}, {"model": 5}, {"unknown": 1}):
        with pytest.raises((TypeError, ValueError)):
            pulled(llmstream, EVENTS, is_async, **options)
    with pytest.raises(TypeError):
        pulled(llmstream, "text", is_async)


@both
def test_each_chunk_gives_its_events_at_once(llmstream, is_async):
    source = response(is_async, EVENTS)

    async def watched():
        return [(source.read, kinds_of(piece)) async for piece in llmstream.atranscode(source)]

    if is_async:
        seen = asyncio.run(watched())
    else:
        seen = [(source.read, kinds_of(piece)) for piece in llmstream.transcode(source)]
    assert seen == [
        (1, ["stream.start"]),
        (2, ["content.delta"]),
        (3, ["content.delta"]),
        (4, ["content.stop"]),
        (5, ["usage"]),
        (6, ["stream.end"]),
    ]


def kinds_of(piece):
    return [line[7:] for line in piece.decode().splitlines() if line.startswith("event: ")]


@both
@pytest.mark.parametrize("fault", [ConnectionResetError("peer 10.0.0.1 SECRET"), RuntimeError("SECRET")])
def test_a_source_that_breaks(llmstream, is_async, fault):
    """Whoever gets the bytes sees it; whoever runs the loop gets the exception, and no words of it leave."""
    source = response(is_async, EVENTS[:3], fault)
    found = []
    with pytest.raises(type(fault)) as caught:
        pulled(llmstream, source, is_async, found)
    assert caught.value is fault
    output = b"".join(found)
    assert read(output)[-2:] == [
        {"type": "error", "code": "internal_error", "message": "the upstream connection failed"},
        {"type": "stream.end", "request_id": "chatcmpl-1"},
    ]
    assert llmstream.check(output).ok
    assert text(output) == {0: "Hello"}
    assert source.closed == 1


@both
def test_a_source_that_breaks_after_the_end(llmstream, is_async):
    found = []
    with pytest.raises(OSError, match="late"):
        pulled(llmstream, response(is_async, EVENTS, OSError("late")), is_async, found)
    assert kinds(b"".join(found))[-1] == "stream.end"
    assert "error" not in kinds(b"".join(found))


@both
def test_strict(llmstream, is_async):
    for chunks, error in (
        ([*EVENTS[:2], b"data: {\n\n", *EVENTS[2:]], llmstream.EnvelopeError),
        (EVENTS[:2], llmstream.IncompleteStreamError),
    ):
        source = response(is_async, chunks)
        found = []
        with pytest.raises(error):
            pulled(llmstream, source, is_async, found, dialect="openai", strict=True)
        output = b"".join(found)
        assert kinds(output)[-2:] == ["error", "stream.end"]
        assert llmstream.check(output).ok
        assert source.closed == 1


@both
def test_a_stream_that_is_cut(llmstream, is_async):
    source = response(is_async, EVENTS[:2])
    pieces, stream = pulled(llmstream, source, is_async)
    assert kinds(b"".join(pieces))[-2:] == ["error", "stream.end"]
    assert not stream.transcoder.complete
    assert source.closed == 1


@both
def test_the_rest_is_read_after_a_whole_answer_and_not_after_a_failed_one(llmstream, is_async):
    whole = response(is_async, [*EVENTS, b": one more\n\n"])
    pulled(llmstream, whole, is_async)
    assert (whole.read, whole.closed) == (7, 1)
    many = [openai_chunk({"content": "a"}, index=index) for index in range(5000)]
    failed = response(is_async, [b"".join(many), b": one more\n\n"])
    pulled(llmstream, failed, is_async)
    assert (failed.read, failed.closed) == (1, 1)


@both
def test_leaving_early_closes_the_response(llmstream, is_async):
    source = response(is_async, EVENTS)

    async def leave():
        stream = llmstream.atranscode(source)
        assert await anext(stream)
        await stream.aclose()
        await stream.aclose()

    if is_async:
        asyncio.run(leave())
    else:
        stream = llmstream.transcode(source)
        assert next(stream)
        stream.close()
        stream.close()
        assert list(stream) == []
    assert (source.read, source.closed) == (1, 1)


def test_cancelling_closes_the_response(llmstream):
    source = AsyncResponse(EVENTS)
    waiting = asyncio.Event()

    async def aiter_bytes():
        yield EVENTS[0]
        waiting.set()
        await asyncio.Event().wait()

    source.aiter_bytes = aiter_bytes

    async def run():
        task = asyncio.create_task(gathered(llmstream.atranscode(source), []))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert source.closed == 1


def test_an_asynchronous_source_is_not_for_transcode(llmstream):
    with pytest.raises(TypeError, match="AsyncResponse"):
        llmstream.transcode(AsyncResponse(EVENTS))
