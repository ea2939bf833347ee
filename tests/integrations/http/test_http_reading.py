"""The iterators over the responses of real libraries, over real sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from http_libraries import ASYNCHRONOUS, SYNCHRONOUS, aopened, opened
from sse_server import PATIENCE, Server

from streams import BODY, EVENTS, KINDS, TEXTS

FRAMINGS = ["chunked", "length", "close"]
CODINGS = ["identity", "gzip"]


@pytest.fixture(autouse=True)
def answers(server: Server) -> None:
    server.answers["events"] = EVENTS


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("library", SYNCHRONOUS)
def test_each_event_is_out_before_the_next_is_sent(
    llmstream: Any, server: Server, library: str, framing: str, coding: str
) -> None:
    kinds = []
    with opened(library) as get:
        response = get(server.url(framing=framing, coding=coding, wait=1))
        with llmstream.iter_events(response, strict=True) as events:
            for event in events:
                kinds.append(event.type)
                server.seen.release()
    assert kinds == KINDS


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("library", ASYNCHRONOUS)
def test_each_event_is_out_before_the_next_is_sent_asynchronous(
    llmstream: Any, server: Server, library: str, framing: str, coding: str
) -> None:
    async def read() -> list[str]:
        kinds = []
        async with aopened(library) as get:
            response = await get(server.url(framing=framing, coding=coding, wait=1))
            async with llmstream.aiter_events(response, strict=True) as events:
                async for event in events:
                    kinds.append(event.type)
                    server.seen.release()
        return kinds

    assert asyncio.run(read()) == KINDS


@pytest.mark.parametrize("library", SYNCHRONOUS)
def test_a_body_that_trickles_in_byte_by_byte(llmstream: Any, server: Server, library: str) -> None:
    server.answers["bytes"] = [BODY[at : at + 1] for at in range(len(BODY))]
    with opened(library) as get:
        assert "".join(llmstream.iter_text(get(server.url(what="bytes")))) == "".join(TEXTS)


@pytest.mark.parametrize("library", ASYNCHRONOUS)
def test_a_body_that_trickles_in_byte_by_byte_asynchronous(llmstream: Any, server: Server, library: str) -> None:
    server.answers["bytes"] = [BODY[at : at + 1] for at in range(len(BODY))]

    async def read() -> list[str]:
        async with aopened(library) as get:
            return [text async for text in llmstream.aiter_text(await get(server.url(what="bytes")))]

    assert "".join(asyncio.run(read())) == "".join(TEXTS)


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("library", SYNCHRONOUS)
def test_a_connection_that_is_cut(llmstream: Any, server: Server, library: str, framing: str) -> None:
    """What came before is out; that something is missing, the library says or, where HTTP cannot tell, we do."""
    server.answers["some"] = EVENTS[:3]
    texts: list[str] = []
    with opened(library) as get:
        stream = llmstream.iter_text(get(server.url(what="some", framing=framing, cut=1)))
        with pytest.raises(Exception) as caught:  # noqa: PT011 (whichever the library has)
            texts.extend(stream)  # which keeps what came before the error
    assert "".join(texts) == "".join(TEXTS[:2])
    assert isinstance(caught.value, llmstream.IncompleteStreamError) == (framing == "close")
    assert framing == "close" or type(caught.value).__module__.partition(".")[0] in (library, library.rstrip("2"))


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("library", ASYNCHRONOUS)
def test_a_connection_that_is_cut_asynchronous(llmstream: Any, server: Server, library: str, framing: str) -> None:
    server.answers["some"] = EVENTS[:3]
    texts = []

    async def read() -> None:
        async with aopened(library) as get:
            async for text in llmstream.aiter_text(await get(server.url(what="some", framing=framing, cut=1))):
                texts.append(text)  # noqa: PERF401 (it ends by an error)

    with pytest.raises(Exception) as caught:  # noqa: PT011
        asyncio.run(read())
    assert "".join(texts) == "".join(TEXTS[:2])
    assert isinstance(caught.value, llmstream.IncompleteStreamError) == (framing == "close")


@pytest.mark.parametrize("library", SYNCHRONOUS)
def test_leaving_early_closes_the_connection(llmstream: Any, server: Server, library: str) -> None:
    with opened(library) as get:
        with llmstream.iter_events(get(server.url(hold=1))) as events:
            assert next(events).type == "stream.start"
        assert server.gone.wait(PATIENCE)


@pytest.mark.parametrize("library", ASYNCHRONOUS)
def test_leaving_early_closes_the_connection_asynchronous(llmstream: Any, server: Server, library: str) -> None:
    async def read() -> bool:
        async with aopened(library) as get:
            async with llmstream.aiter_events(await get(server.url(hold=1))) as events:
                assert (await anext(events)).type == "stream.start"
            return await asyncio.to_thread(server.gone.wait, PATIENCE)

    assert asyncio.run(read())


@pytest.mark.parametrize("library", ASYNCHRONOUS)
def test_a_task_that_is_cancelled_closes_the_connection(llmstream: Any, server: Server, library: str) -> None:
    async def read() -> bool:
        async with aopened(library) as get:
            started = asyncio.Event()

            async def consume() -> None:
                async with llmstream.aiter_events(await get(server.url(hold=1))) as events:
                    async for event in events:
                        if event.type == "stream.end":
                            started.set()

            task = asyncio.create_task(consume())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await asyncio.to_thread(server.gone.wait, PATIENCE)

    assert asyncio.run(read())


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("library", SYNCHRONOUS)
def test_a_connection_is_used_again(llmstream: Any, server: Server, library: str, framing: str) -> None:
    with opened(library) as get:
        for _ in range(3):
            assert "".join(llmstream.iter_text(get(server.url(framing=framing)))) == "".join(TEXTS)
    assert len(server.connections) == 3
    assert len(set(server.connections)) == 1


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("library", ASYNCHRONOUS)
def test_a_connection_is_used_again_asynchronous(llmstream: Any, server: Server, library: str, framing: str) -> None:
    async def read() -> None:
        async with aopened(library) as get:
            for _ in range(3):
                stream = llmstream.aiter_text(await get(server.url(framing=framing)))
                assert "".join([text async for text in stream]) == "".join(TEXTS)

    asyncio.run(read())
    assert len(server.connections) == 3
    assert len(set(server.connections)) == 1


@pytest.mark.parametrize("library", SYNCHRONOUS)
def test_what_a_client_reconnects_with(llmstream: Any, server: Server, library: str) -> None:
    first = [b"retry: 25\nid: 7\n" + EVENTS[0], b"id: 8\n" + EVENTS[1], b"id: 9\n"]  # the last id is of no event
    server.answers |= {"first": first, "second": EVENTS[2:]}
    texts: list[str] = []
    with opened(library) as get:
        stream = llmstream.iter_events(get(server.url(what="first")))
        texts += [event.text for event in stream if event.type == "content.delta"]
        assert (stream.parser.last_event_id, stream.parser.retry, stream.parser.complete) == ("8", 25, False)
        headers = {"Last-Event-ID": stream.parser.last_event_id}
        stream = llmstream.iter_events(get(server.url(what="second"), headers=headers))
        texts += [event.text for event in stream if event.type == "content.delta"]
    assert server.requests[1][2]["last-event-id"] == "8"
    assert texts == list(TEXTS)
    assert stream.parser.complete
