"""The response on a real server, over real sockets (draft, sections 3, 4.9 and 5.5)."""

from __future__ import annotations

import asyncio
import http.client
import importlib
import threading

import pytest
from asgi_server import aanswer, answer, asking, auntil, read_until, served, settled, until

from standard import clock

pytest.importorskip("uvicorn")

CHUNK = b"event: x\ndata: {}\n\n"


@pytest.fixture
def asgi(llmstream):
    return importlib.import_module("llmstream.integrations.asgi")


def application(make):
    """An application that answers every request with a new response; ``app.over`` counts those that are over, and
    ``app.faults`` has what they raised."""

    async def app(scope, receive, send):
        try:
            await make()(scope, receive, send)
        except Exception as error:
            app.faults.append(error)
            raise
        finally:
            app.over += 1
            app.tasks = len(asyncio.all_tasks())

    app.over, app.faults, app.tasks = 0, [], 0
    return app


def fetched(port, method="GET"):
    """Status, headers, and the body as the client got it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, "/")
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("source", [answer, aanswer])
def test_a_stream(asgi, llmstream, source):
    words = [f"word {number} " for number in range(500)]
    app = application(lambda: asgi.EventStreamResponse(source(llmstream.Encoder(clock=clock), *words)))
    with served(app) as port:
        for _ in range(2):
            status, headers, body = fetched(port)
            assert status == 200
            assert headers["content-type"] == "text/event-stream"
            assert headers["cache-control"] == "no-cache, no-transform"
            assert headers["x-accel-buffering"] == "no"
            assert headers["transfer-encoding"] == "chunked"
            assert "content-length" not in headers
            assert body == b"".join(answer(llmstream.Encoder(clock=clock), *words))
    assert llmstream.parse(body, strict=True).text == "".join(words)
    assert app.faults == []


def test_head(asgi):
    app = application(lambda: asgi.EventStreamResponse(iter([CHUNK])))
    with served(app) as port:
        status, headers, body = fetched(port, "HEAD")
    assert (status, body, headers["content-type"]) == (200, b"", "text/event-stream")
    assert app.faults == []


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
def test_each_event_goes_out_at_once(asgi, kind):
    """The next one is made only once the client has the one before: nothing is held back."""
    gate = threading.Semaphore(0)

    def made(number):
        return f"data: {number}\n\n".encode()

    def source():
        for number in range(5):
            yield made(number)
            assert gate.acquire(timeout=30)

    async def asource():
        for number in range(5):
            yield made(number)
            await auntil(lambda: gate.acquire(blocking=False))

    app = application(lambda: asgi.EventStreamResponse(asource() if kind == "asynchronous" else source()))
    with served(app) as port, asking(port) as client:
        for number in range(5):
            assert read_until(client, made(number)).count(b"data: ") == 1
            gate.release()
        read_until(client, b"0\r\n\r\n")


@pytest.mark.parametrize("kind", ["silent", "busy", "synchronous and busy"])
def test_a_client_that_leaves(asgi, kind):
    closed = threading.Event()

    async def silent():
        try:
            yield CHUNK
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def busy():
        try:
            while True:
                yield CHUNK
                await asyncio.sleep(0.001)
        finally:
            closed.set()

    def synchronous():
        try:
            while True:
                yield CHUNK
        finally:
            closed.set()

    sources = {"silent": silent, "busy": busy, "synchronous and busy": synchronous}
    app = application(lambda: asgi.EventStreamResponse(sources[kind]()))
    with served(app) as port:
        with asking(port) as client:
            read_until(client, CHUNK)
            assert not closed.is_set()
        assert closed.wait(30)
        until(lambda: app.over == 1)
    assert app.faults == []
    assert app.tasks <= 3  # the server's own; none of the response's


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
def test_a_client_that_is_slow(asgi, kind):
    """Back-pressure: a source without end is asked for no more than fits between it and a client that does not read."""
    made = []

    def source():
        while True:
            made.append(1)
            yield b":" + b"x" * 65_534 + b"\n"

    async def asource():
        for piece in source():
            yield piece
            await asyncio.sleep(0)

    app = application(lambda: asgi.EventStreamResponse(asource() if kind == "asynchronous" else source()))
    with served(app) as port:
        with asking(port) as client:
            until(lambda: made)
            held = settled(lambda: len(made))
            assert held < 1000  # 64 MiB: socket buffers, and what is read ahead
            for _ in range(200):
                assert client.recv(65_536)
            until(lambda: len(made) > held)
        until(lambda: app.over == 1)
    assert app.faults == []


class BrokenError(Exception):
    """With words that no client may see."""


def test_an_exception_before_the_first_byte(asgi, llmstream):
    async def source():
        raise BrokenError("secret")
        yield b""

    app = application(lambda: asgi.EventStreamResponse(source(), encoder=llmstream.Encoder()))
    with served(app) as port:
        status, headers, body = fetched(port)
    assert status == 500
    assert headers["content-type"].startswith("text/plain")
    assert b"secret" not in body
    assert [type(fault) for fault in app.faults] == [BrokenError]


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
def test_an_exception_after_it(asgi, llmstream, kind):
    def source(encoder):
        yield encoder.start("m")
        yield encoder.delta("a")
        raise BrokenError("secret")

    async def asource(encoder):
        for piece in source(encoder):
            yield piece

    def respond():
        encoder = llmstream.Encoder(clock=clock)
        return asgi.EventStreamResponse((asource if kind == "asynchronous" else source)(encoder), encoder=encoder)

    app = application(respond)
    with served(app) as port:
        status, _, body = fetched(port)  # whole, as HTTP has it
    assert (status, b"secret" in body) == (200, False)
    result = llmstream.parse(body)
    assert (result.text, result.error.code) == ("a", "internal_error")
    assert llmstream.check(body).ok
    assert [type(fault) for fault in app.faults] == [BrokenError]


def test_an_exception_without_an_encoder_cuts_the_connection(asgi):
    async def source():
        yield CHUNK
        raise BrokenError

    app = application(lambda: asgi.EventStreamResponse(source()))
    with served(app) as port, pytest.raises(http.client.IncompleteRead) as raised:
        fetched(port)
    assert raised.value.partial == CHUNK


def test_keep_alives(asgi, llmstream):
    """They come before the first event and between events, and the client's reader does not see them."""
    gate = threading.Event()

    async def source():
        await auntil(gate.is_set)
        gate.clear()
        yield CHUNK
        await auntil(gate.is_set)
        yield CHUNK

    app = application(lambda: asgi.EventStreamResponse(source(), keep_alive=0.01))
    comment = b": keep-alive\n\n"
    with served(app) as port, asking(port) as client:
        body = read_until(client, comment)
        gate.set()
        body += read_until(client, CHUNK)
        body += read_until(client, comment)
        gate.set()
        body += read_until(client, b"0\r\n\r\n")
    events = llmstream.SSEDecoder().feed(http_body(body))
    assert [event.data for event in events] == ["{}", "{}"]


def http_body(message):
    """The body of a chunked message."""
    _, _, rest = message.partition(b"\r\n\r\n")
    body = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if not int(size, 16):
            return body
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]


def test_many_at_once(asgi, llmstream):
    """Each gets its own answer, some leave, and nothing is left behind."""
    count, lock, numbers = 60, threading.Lock(), iter(range(10_000))

    def respond():
        encoder = llmstream.Encoder(clock=clock)
        with lock:
            number = next(numbers)
        words = [f"{number} "] * 200
        return asgi.EventStreamResponse((answer if number % 2 else aanswer)(encoder, *words), encoder=encoder)

    app = application(respond)
    bodies = []

    def client(number, port):
        if number % 5:
            bodies.append(fetched(port)[2])
        else:
            with asking(port) as connection:
                read_until(connection, b"content.delta")

    with served(app) as port:
        threads = [threading.Thread(target=client, args=(number, port), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        until(lambda: app.over == count)
    assert app.faults == []
    texts = [llmstream.parse(body, strict=True).text for body in bodies]
    assert len(texts) == count * 4 // 5
    assert len({text.split(" ")[0] for text in texts}) == len(texts)
    assert all(len(set(text.split())) == 1 and len(text.split()) == 200 for text in texts)
    assert app.tasks <= 3
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "llmstream-source"])


def test_a_blocked_source_blocks_nobody_else(asgi):
    gate, numbers = threading.Event(), iter(range(100))

    def blocked():
        yield CHUNK
        assert gate.wait(30)

    def respond():
        return asgi.EventStreamResponse(blocked() if next(numbers) < 40 else [CHUNK])

    with served(application(respond)) as port:
        clients = [asking(port) for _ in range(40)]
        for client in clients:
            read_until(client.__enter__(), CHUNK)
        assert fetched(port)[2] == CHUNK
        gate.set()
        for client in clients:
            client.__exit__(None, None, None)
