"""The EventSource of httpx-sse and of httpx2: same names and errors, and the events of WHATWG HTML, section 9.2."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from http_libraries import HTTPX, needed
from sse_server import PATIENCE, Server

HEADERS = {"content-type": "text/event-stream"}


@pytest.fixture(params=HTTPX)
def name(request: pytest.FixtureRequest) -> str:
    needed(request.param)
    return str(request.param)


@pytest.fixture
def library(name: str) -> Any:
    return needed(name)


@pytest.fixture
def ours(llmstream: Any, name: str) -> Any:
    return importlib.import_module(f"llmstream.integrations.{name}")


@pytest.fixture
def stock(name: str) -> Any:
    """What ours stands in for: EventSource and an ``events`` that reads it."""
    if name == "httpx2":
        return SimpleNamespace(EventSource=needed(name).EventSource, events=iter)
    return SimpleNamespace(EventSource=needed("httpx_sse").EventSource, events=lambda source: source.iter_sse())


def response(library: Any, *chunks: bytes, headers: dict[str, str] = HEADERS) -> Any:
    class Body(library.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield from chunks

    request = library.Request("GET", "http://127.0.0.1/")
    return library.Response(200, headers=headers, stream=Body(), request=request)


def fields(events: Any) -> list[tuple[str, str, str, int | None]]:
    return [(event.event, event.data, event.id, event.retry) for event in events]


FAULTS = {
    "a byte order mark": (
        b"\xef\xbb\xbfdata: 1\n\ndata: 2\n\n",
        [("message", "1", "", None), ("message", "2", "", None)],
    ),
    "an id before a heartbeat": (
        b"id: 1\n\n: ping\n\ndata: 1\n\n: ping\n\n",
        [("message", "1", "1", None)],
    ),
    "an event without data": (b"event: ping\n\ndata: 1\n\n", [("message", "1", "", None)]),
    "a retry of digits that are not ASCII": (
        "retry: \u0661\u0662\ndata: 1\n\n".encode(),
        [("message", "1", "", None)],
    ),
    "a retry with a sign": (b"retry: -5\ndata: 1\n\n", [("message", "1", "", None)]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_peer(library: Any, ours: Any, stock: Any, fault: str) -> None:
    """WHATWG: one leading byte order mark is no part of the stream; a block without data is no event; a retry has ASCII
    digits only."""
    body, right = FAULTS[fault]
    assert fields(stock.events(stock.EventSource(response(library, body)))) != right
    assert fields(ours.EventSource(response(library, body)).iter_sse()) == right


def test_a_stream_is_utf8_whatever_the_header_says(library: Any, ours: Any, stock: Any) -> None:
    headers = {"content-type": "text/event-stream; charset=latin-1"}
    body = "data: Grüße\n\n".encode()
    assert next(stock.events(stock.EventSource(response(library, body, headers=headers)))).data != "Grüße"
    assert next(ours.EventSource(response(library, body, headers=headers)).iter_sse()).data == "Grüße"


def test_invalid_utf8_is_replaced(library: Any, ours: Any) -> None:
    (event,) = ours.EventSource(response(library, b"data: a\xffb\xe2\x82", b"\xac\n\n")).iter_sse()
    assert event.data == "a\N{REPLACEMENT CHARACTER}b\N{EURO SIGN}"


def test_each_event_is_out_with_its_carriage_return(library: Any, ours: Any, stock: Any) -> None:
    """Both peers hold the last CR of a chunk back, and with it the event, until more comes or the stream ends."""

    def first(source: Any, read: Any) -> int:
        taken = 0

        class Body(library.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                nonlocal taken
                for _ in range(2):
                    taken += 1
                    yield b"data: 1\r\r"

        next(read(source(library.Response(200, headers=HEADERS, stream=Body(), request=library.Request("GET", "/")))))
        return taken

    assert first(stock.EventSource, stock.events) == 2
    assert first(ours.EventSource, lambda source: source.iter_sse()) == 1


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n"])
def test_line_ends_and_nothing_else_end_lines(library: Any, ours: Any, ending: str) -> None:
    data = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    body = f"data: {data}{ending}id: 7{ending}event: word{ending}retry: 10{ending}{ending}".encode()
    for cut in range(1, len(body)):
        source = ours.EventSource(response(library, body[:cut], body[cut:]))
        assert fields(source.iter_sse()) == [("word", data, "7", 10)]
        assert (source.last_event_id, source.retry) == ("7", 10)


def test_an_unfinished_event_is_dropped(library: Any, ours: Any) -> None:
    assert fields(ours.EventSource(response(library, b"data: 1\n\ndata: 2\n")).iter_sse()) == [
        ("message", "1", "", None)
    ]


def test_large_events_and_the_limit(library: Any, ours: Any) -> None:
    data = "x" * 2**20
    chunks = [b"data: 0\n\n", b"data: ", *[data[at : at + 2**14].encode() for at in range(0, 2**20, 2**14)], b"\n\n"]
    assert [event.data for event in ours.EventSource(response(library, *chunks)).iter_sse()] == ["0", data]
    assert len(list(ours.EventSource(response(library, *chunks), max_event_size=None).iter_sse())) == 2
    events = ours.EventSource(response(library, *chunks), max_event_size=1000).iter_sse()
    assert next(events).data == "0"
    with pytest.raises(ours.SSEError) as caught:
        next(events)
    assert "xxx" not in str(caught.value)
    assert str(caught.value.request.url) == "http://127.0.0.1/"


@pytest.mark.parametrize("limit", [None, 16 * 2**20, 100])
def test_the_limit_is_exact(library: Any, ours: Any, limit: int | None) -> None:
    """A line of ``data: `` and its value; by default 16 MiB."""
    size = limit or 16 * 2**20
    given = {} if limit is None else {"max_event_size": limit}
    for over in (0, 1):
        body = b"data: " + b"x" * (size - len("data: ") + over) + b"\n\n"
        events = ours.EventSource(response(library, body), **given).iter_sse()
        if over:
            with pytest.raises(ours.SSEError):
                next(events)
        else:
            assert len(next(events).data) == size - len("data: ")


def test_a_body_in_memory_is_read_again(library: Any, ours: Any, stock: Any) -> None:
    request = library.Request("GET", "http://127.0.0.1/")
    read = library.Response(200, headers=HEADERS, content=b"id: 1\ndata: 1\n\ndata: 2", request=request)
    theirs, source = stock.EventSource(read), ours.EventSource(read)
    for _ in range(2):
        assert fields(source.iter_sse()) == fields(stock.events(theirs)) == [("message", "1", "1", None)]


def test_a_stream_is_read_once(library: Any, ours: Any) -> None:
    source = ours.EventSource(response(library, b"data: 1\n\n"))
    assert len(list(source)) == 1
    with pytest.raises(library.StreamConsumed):
        next(source.iter_sse())


@pytest.mark.parametrize(
    "content_type", ["text/event-stream", "Text/Event-Stream", "application/json, text/event-stream; charset=utf-8"]
)
def test_the_content_type_of_a_stream(library: Any, ours: Any, content_type: str) -> None:
    source = ours.EventSource(response(library, b"data: 1\n\n", headers={"content-type": content_type}))
    assert len(list(source.iter_sse())) == 1


@pytest.mark.parametrize("headers", [{"content-type": "application/json"}, {}])
def test_another_content_type_is_an_error_of_the_library(library: Any, ours: Any, headers: dict[str, str]) -> None:
    assert issubclass(ours.SSEError, library.TransportError)
    with pytest.raises(ours.SSEError, match="text/event-stream"):
        next(ours.EventSource(response(library, b"data: 1\n\n", headers=headers)).iter_sse())


def test_a_response_without_a_request(library: Any, ours: Any) -> None:
    with pytest.raises(ours.SSEError):
        next(iter(ours.EventSource(library.Response(200, content=b""))))


def test_the_event_is_that_of_the_peer(name: str, library: Any, ours: Any) -> None:
    event = next(ours.EventSource(response(library, b'event: e\nid: i\nretry: 3\ndata: {"a": NaN}\n\n')).iter_sse())
    stock = library.ServerSentEvent if name == "httpx2" else needed("httpx_sse").ServerSentEvent
    for given in [{}, {"event": "e", "data": "d", "id": "i", "retry": 0}, {"event": "", "data": "{"}]:
        if name == "httpx2" and given.get("event") == "":
            continue  # it has its own class
        made, theirs = ours.ServerSentEvent(**given), stock(**given)
        assert fields([made]) == fields([theirs])
        assert repr(made) == repr(theirs)
    assert list(inspect.signature(ours.ServerSentEvent).parameters) == ["event", "data", "id", "retry"]
    assert repr(event) == repr(stock("e", '{"a": NaN}', "i", 3))
    assert str(event.json()) == str(json.loads('{"a": NaN}'))
    with pytest.raises(json.JSONDecodeError):
        ours.ServerSentEvent().json()
    with pytest.raises(AttributeError):
        event.data = ""


def test_the_names_of_the_peer(name: str, ours: Any) -> None:
    if name == "httpx":
        peer = needed("httpx_sse")
        assert set(peer.__all__) - {"__version__"} <= set(ours.__all__)
        assert list(inspect.signature(peer.EventSource).parameters) == ["response"]
        assert list(inspect.signature(peer.connect_sse).parameters) == ["client", "method", "url", "kwargs"]
    else:
        assert needed(name).SSEError is ours.SSEError
        assert needed(name).ServerSentEvent is ours.ServerSentEvent
        assert list(inspect.signature(needed(name).EventSource).parameters) == ["response", "max_event_size"]
    assert list(inspect.signature(ours.EventSource).parameters) == ["response", "max_event_size"]
    for connect in (ours.connect_sse, ours.aconnect_sse):
        assert list(inspect.signature(connect).parameters) == ["client", "method", "url", "kwargs"]


def test_connecting(library: Any, ours: Any, server: Server) -> None:
    server.answers["events"] = [b"retry: 5\nid: 1\ndata: 1\n\n", b"data: 2\n\n"]
    given = {"accept": "*/*", "last-event-id": "0"}
    data = []
    with (
        library.Client(verify=False, trust_env=False) as client,
        ours.connect_sse(client, "GET", server.url(wait=1), headers=given) as source,
    ):
        for event in source.iter_sse():
            data.append(event.data)
            server.seen.release()
        assert (source.last_event_id, source.retry) == ("1", 5)
    assert data == ["1", "2"]
    assert source.response.is_closed
    assert given == {"accept": "*/*", "last-event-id": "0"}
    sent = server.requests[0][2]
    assert (sent["accept"], sent["cache-control"], sent["last-event-id"]) == ("text/event-stream", "no-store", "0")


@pytest.mark.parametrize("headers", [None, [("x-one", "1")]])
def test_headers_in_every_form_of_the_library(library: Any, ours: Any, server: Server, headers: Any) -> None:
    server.answers["events"] = [b"data: 1\n\n"]
    with (
        library.Client(verify=False, trust_env=False) as client,
        ours.connect_sse(client, "GET", server.url(), headers=headers) as source,
    ):
        assert len(list(source)) == 1
    assert server.requests[0][2].get("x-one") == (headers and "1")


def test_connecting_asynchronously(library: Any, ours: Any, server: Server) -> None:
    server.answers["events"] = [b"data: 1\n\n", b"data: 2\n\n"]
    data = []

    async def read() -> None:
        async with library.AsyncClient(verify=False, trust_env=False) as client:
            async with ours.aconnect_sse(client, "GET", server.url(wait=1)) as source:
                async for event in source.aiter_sse():
                    data.append(event.data)
                    server.seen.release()
            async with ours.aconnect_sse(client, "GET", server.url()) as source:
                data.extend([event.data async for event in source])

    asyncio.run(read())
    assert data == ["1", "2"] * 2


def test_leaving_early_closes_the_connection(library: Any, ours: Any, server: Server) -> None:
    server.answers["events"] = [b"data: 1\n\n"]
    with library.Client(verify=False, trust_env=False) as client:
        with ours.connect_sse(client, "GET", server.url(hold=1)) as source:
            next(source.iter_sse())
        assert server.gone.wait(PATIENCE)


def test_leaving_early_closes_the_connection_asynchronous(library: Any, ours: Any, server: Server) -> None:
    server.answers["events"] = [b"data: 1\n\n"]

    async def read() -> bool:
        async with library.AsyncClient(verify=False, trust_env=False) as client:
            async with ours.aconnect_sse(client, "GET", server.url(hold=1)) as source:
                async for _ in source.aiter_sse():
                    break
            return await asyncio.to_thread(server.gone.wait, PATIENCE)

    assert asyncio.run(read())


def test_closing_the_iterator_closes_what_it_reads(library: Any, ours: Any) -> None:
    closed = []

    class Body(library.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"data: 1\n\n"
            finally:
                closed.append(True)

    async def read() -> None:
        source = ours.EventSource(library.Response(200, headers=HEADERS, stream=Body()))
        events = source.aiter_sse()
        await anext(events)
        await events.aclose()

    asyncio.run(read())
    assert closed


def test_importing_needs_only_the_library_that_is_meant(llmstream: Any, name: str) -> None:
    import subprocess
    import sys

    other = {"httpx": "httpx2", "httpx2": "httpx"}[name]
    program = f"import sys, llmstream.integrations.{name}; sys.exit({other!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
