"""Transports that read along: not a byte is changed, and no fault of who reads along reaches the stream."""

from __future__ import annotations

import asyncio
import importlib
import logging
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sse_server import PATIENCE, Server

from streams import BODY, EVENTS, KINDS, TEXTS

HEADERS = {"content-type": "text/event-stream"}


class Tap:
    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.closed = 0

    def feed(self, chunk: bytes) -> None:
        assert not self.closed
        self.chunks.append(chunk)

    def close(self) -> str:
        self.closed += 1
        return "the end"


def stream_of(library: Any, *chunks: bytes, fault: Exception | None = None) -> Any:
    """A body, synchronous and asynchronous, that counts how often it is closed."""

    class Body(library.SyncByteStream, library.AsyncByteStream):
        closed = 0

        def __iter__(self) -> Iterator[bytes]:
            yield from chunks
            if fault is not None:
                raise fault

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in self:
                yield chunk

        def close(self) -> None:
            self.closed += 1

        async def aclose(self) -> None:
            self.closed += 1

    return Body()


def answering(library: Any, response: Any) -> Any:
    return library.MockTransport(lambda request: response)


def read(library: Any, ours: Any, response: Any, *given: Any, **options: Any) -> list[bytes]:
    """The chunks that a client gets, as they were sent."""
    transport = ours.ObservingTransport(answering(library, response), *given, **options)
    with library.Client(transport=transport) as client, client.stream("GET", "http://127.0.0.1/") as got:
        assert got is response
        return list(got.iter_raw())


def aread(library: Any, ours: Any, response: Any, *given: Any, **options: Any) -> list[bytes]:
    async def chunks() -> list[bytes]:
        transport = ours.AsyncObservingTransport(answering(library, response), *given, **options)
        async with library.AsyncClient(transport=transport) as client, client.stream("GET", "http://h/") as got:
            return [chunk async for chunk in got.aiter_raw()]

    return asyncio.run(chunks())


READ = [read, aread]


@pytest.mark.parametrize("read", READ)
def test_the_same_chunks_headers_and_extensions(library: Any, ours: Any, read: Any) -> None:
    body = stream_of(library, *EVENTS)
    extensions = {"trailing": object()}
    response = library.Response(200, headers=[("X-One", "1"), *HEADERS.items()], stream=body, extensions=extensions)
    tap, ended = Tap(), []
    got = read(library, ours, response, lambda request, response: tap, on_end=lambda *said: ended.append(said))
    assert [chunk is event for chunk, event in zip(got, EVENTS, strict=True)] == [True] * len(EVENTS)
    assert tap.chunks == EVENTS
    assert response.headers.raw[0] == (b"X-One", b"1")
    assert response.extensions["trailing"] is extensions["trailing"]
    assert (body.closed, tap.closed) == (1, 1)
    ((request, seen, result),) = ended
    assert (request.method, seen, result) == ("GET", response, "the end")


@pytest.mark.parametrize("read", READ)
def test_a_stream_is_observed_by_default(library: Any, ours: Any, read: Any) -> None:
    ended: list[Any] = []
    response = library.Response(200, headers=HEADERS, stream=stream_of(library, *EVENTS))
    assert b"".join(read(library, ours, response, on_end=lambda *said: ended.append(said[2]))) == BODY
    (found,) = ended
    assert (found.model, found.complete, found.output_tokens) == ("writer-1", True, len(TEXTS))
    assert found.chunk_count == len(EVENTS)
    other = library.Response(200, headers={"content-type": "text/html"}, stream=stream_of(library, b"<p>"))
    assert read(library, ours, other, on_end=lambda *said: ended.append(said[2])) == [b"<p>"]
    assert len(ended) == 1


@pytest.mark.parametrize("read", READ)
def test_events_and_text_go_to_a_function(library: Any, ours: Any, read: Any) -> None:
    events: list[Any] = []
    texts: list[str] = []
    response = library.Response(200, headers=HEADERS, stream=stream_of(library, *EVENTS))
    ended: list[Any] = []
    read(library, ours, response, lambda *_: ours.EventTap(events.append), on_end=lambda *said: ended.append(said[2]))
    assert [event.type for event in events] == KINDS
    assert ended[0].complete
    response = library.Response(200, headers=HEADERS, stream=stream_of(library, *EVENTS))
    read(library, ours, response, lambda *_: ours.TextTap(texts.append))
    assert texts == list(TEXTS)


class FaultOfTheCallerError(Exception):
    pass


def raising(*_: Any) -> Any:
    raise FaultOfTheCallerError("SECRET")


class Faulty(Tap):
    feed = raising


class FaultyEnd(Tap):
    close = raising


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("case", ["observe", "feed", "close", "on_end", "not a tap"])
def test_what_a_function_raises_never_reaches_the_stream(
    library: Any, ours: Any, read: Any, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    observe = {
        "observe": raising,
        "feed": lambda *_: Faulty(),
        "close": lambda *_: FaultyEnd(),
        "on_end": lambda *_: Tap(),
        "not a tap": lambda *_: "nothing that reads",
    }[case]
    response = library.Response(200, headers=HEADERS, stream=stream_of(library, *EVENTS))
    with caplog.at_level(logging.WARNING, logger="llmstream.integrations"):
        assert read(library, ours, response, observe, on_end=raising) == EVENTS
    told = [record.getMessage() for record in caplog.records if record.name == "llmstream.integrations"]
    assert told
    assert not any("SECRET" in message for message in told)
    assert len(told) <= 2
    assert response.is_closed


@pytest.mark.parametrize("read", READ)
def test_a_fault_of_the_connection_goes_on_as_it_is(library: Any, ours: Any, read: Any) -> None:
    fault = library.ReadError("cut")
    body = stream_of(library, *EVENTS[:3], fault=fault)
    tap = Tap()
    with pytest.raises(library.ReadError) as caught:
        read(library, ours, library.Response(200, headers=HEADERS, stream=body), lambda *_: tap)
    assert caught.value is fault
    assert (tap.chunks, tap.closed, body.closed) == (EVENTS[:3], 1, 1)


def packed(coding: str) -> list[bytes]:
    wbits = {"gzip": 31, "x-gzip": 31, "deflate": 15, "raw deflate": -15}[coding]
    packer = zlib.compressobj(wbits=wbits)
    found = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in EVENTS]
    return [*found, packer.flush()]


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "raw deflate"])
@pytest.mark.parametrize("read", READ)
def test_a_compressed_body_is_observed_decompressed(library: Any, ours: Any, read: Any, coding: str) -> None:
    headers = {**HEADERS, "content-encoding": coding.rpartition(" ")[2]}
    for chunks in (packed(coding), [bytes([byte]) for byte in b"".join(packed(coding))]):
        tap = Tap()
        response = library.Response(200, headers=headers, stream=stream_of(library, *chunks))
        assert read(library, ours, response, lambda *_, tap=tap: tap) == chunks
        assert b"".join(tap.chunks) == BODY


def test_members_of_gzip_one_after_another(library: Any, ours: Any) -> None:
    chunks = [b"".join(packed("gzip")), b"".join(packed("gzip"))]
    tap = Tap()
    response = library.Response(200, headers={"content-encoding": "gzip"}, stream=stream_of(library, b"".join(chunks)))
    read(library, ours, response, lambda *_: tap)
    assert b"".join(tap.chunks) == BODY * 2


def test_few_bytes_that_stand_for_many_are_observed_in_pieces(library: Any, ours: Any) -> None:
    bomb = zlib.compress(bytes(8 * 2**20), wbits=31)
    sizes: list[int] = []

    class Sizes(Tap):
        def feed(self, chunk: bytes) -> None:
            sizes.append(len(chunk))

    response = library.Response(200, headers={"content-encoding": "gzip"}, stream=stream_of(library, bomb))
    assert read(library, ours, response, lambda *_: Sizes()) == [bomb]
    assert sum(sizes) == 8 * 2**20
    assert max(sizes) <= 2**16


@pytest.mark.parametrize("read", READ)
def test_a_broken_compressed_body_goes_on(library: Any, ours: Any, read: Any) -> None:
    chunks = [packed("gzip")[0], b"\x07 is no kind of block", b"more"]
    tap = Tap()
    headers = {**HEADERS, "content-encoding": "gzip"}
    response = library.Response(200, headers=headers, stream=stream_of(library, *chunks))
    assert read(library, ours, response, lambda *_: tap) == chunks
    assert (b"".join(tap.chunks), tap.closed) == (EVENTS[0], 1)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "unheard-of"])
def test_a_body_of_another_coding_is_left_alone(library: Any, ours: Any, coding: str) -> None:
    body = stream_of(library, b"anything")
    response = library.Response(200, headers={**HEADERS, "content-encoding": coding}, stream=body)
    assert read(library, ours, response, raising) == [b"anything"]
    assert body.closed


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_response_that_is_whole_before(library: Any, ours: Any, coding: str) -> None:
    content, headers = BODY, dict(HEADERS)
    if coding:
        content, headers = b"".join(packed(coding)), {**HEADERS, "content-encoding": coding}
    tap = Tap()
    response = library.Response(200, headers=headers, content=content)
    transport = ours.ObservingTransport(answering(library, response), lambda *_: tap)
    with library.Client(transport=transport) as client:
        assert client.get("http://127.0.0.1/").content == BODY
    assert (b"".join(tap.chunks), tap.closed) == (BODY, 1)


def test_a_response_that_was_closed_before(library: Any, ours: Any) -> None:
    """There is nothing of it to read, for the client as for the tap."""
    tap, ends = Tap(), []
    response = library.Response(200, headers=HEADERS, stream=stream_of(library, BODY))
    response.close()
    transport = ours.ObservingTransport(
        answering(library, response), lambda *_: tap, on_end=lambda *given: ends.append(given[2])
    )
    with library.Client(transport=transport) as client, client.stream("GET", "http://127.0.0.1/") as got:
        assert got.status_code == 200
        with pytest.raises(library.StreamClosed):
            got.read()
    assert (tap.chunks, tap.closed, ends) == ([], 1, ["the end"])


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("form", ["members", "bomb"])
def test_decompressing_takes_time_in_proportion(
    library: Any, ours: Any, monkeypatch: pytest.MonkeyPatch, form: str, coding: str
) -> None:
    """Each call of zlib copies what it does not use of its input: the inputs together, and not the calls, count."""
    taps = importlib.import_module("llmstream.integrations.http.taps")
    wbits = 31 if coding == "gzip" else 15
    body = zlib.compress(b"", wbits=wbits) * 20_000 if form == "members" else zlib.compress(bytes(2**26), wbits=wbits)
    handed: list[int] = []

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._inflate = zlib.decompressobj(wbits)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inflate, name)

        def decompress(self, data: bytes, size: int) -> bytes:
            handed.append(len(data))
            return self._inflate.decompress(data, size)

    counted = type("Counted", (), {"decompressobj": Counting, "MAX_WBITS": zlib.MAX_WBITS, "DEFLATED": zlib.DEFLATED})
    monkeypatch.setattr(taps, "zlib", counted)
    tap = Tap()
    headers = {**HEADERS, "content-encoding": coding}
    response = library.Response(200, headers=headers, stream=stream_of(library, body))
    read(library, ours, response, lambda *_: tap)
    assert (sum(map(len, tap.chunks)), tap.closed) == (0 if form == "members" else 2**26, 1)
    assert sum(handed) < 1000 * len(body) + 2**26


def test_leaving_early(library: Any, ours: Any) -> None:
    tap, body = Tap(), stream_of(library, *EVENTS)
    transport = ours.ObservingTransport(
        answering(library, library.Response(200, headers=HEADERS, stream=body)), lambda *_: tap
    )
    with library.Client(transport=transport) as client, client.stream("GET", "http://127.0.0.1/") as response:
        assert next(response.iter_raw()) == EVENTS[0]
    assert (tap.chunks, tap.closed, body.closed) == (EVENTS[:1], 1, 1)


def test_over_a_socket(library: Any, ours: Any, server: Server) -> None:
    """An event is out before the next is sent; the connection is used again, and closed by who leaves early."""
    server.answers["events"] = EVENTS
    ended: list[Any] = []
    kinds: list[str] = []
    transport = ours.ObservingTransport(library.HTTPTransport(verify=False), on_end=lambda *said: ended.append(said[2]))
    with library.Client(transport=transport) as client:
        for framing in ("chunked", "length"):
            with client.stream("GET", server.url(wait=1, framing=framing, coding="gzip")) as response:
                for chunk in response.iter_bytes():
                    kinds.append(chunk[:5].decode())
                    server.seen.release()
        with client.stream("GET", server.url(hold=1)) as response:
            next(response.iter_bytes())
        assert server.gone.wait(PATIENCE)
    assert len(set(server.connections)) == 1
    assert len(kinds) == 2 * len(EVENTS)
    assert [found.complete for found in ended[:2]] == [True, True]
    assert len(ended) == 3


def test_a_task_that_is_cancelled(library: Any, ours: Any, server: Server) -> None:
    server.answers["events"] = EVENTS
    ended: list[Any] = []

    async def run() -> bool:
        transport = ours.AsyncObservingTransport(
            library.AsyncHTTPTransport(verify=False), on_end=lambda *said: ended.append(said[2])
        )
        async with library.AsyncClient(transport=transport) as client:
            started = asyncio.Event()

            async def consume() -> None:
                async with client.stream("GET", server.url(hold=1)) as response:
                    async for _ in response.aiter_raw():
                        started.set()

            task = asyncio.create_task(consume())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await asyncio.to_thread(server.gone.wait, PATIENCE)

    assert asyncio.run(run())
    assert len(ended) == 1


def test_a_connection_that_fails_raises_what_it_raises(library: Any, ours: Any) -> None:
    transport = ours.ObservingTransport(library.HTTPTransport(verify=False))
    with library.Client(transport=transport) as client, pytest.raises(library.ConnectError):
        client.get("http://127.0.0.1:1/")
