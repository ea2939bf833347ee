"""The response as a plain ASGI application: what it sends to a server that is a list."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import threading

import pytest
from asgi_server import auntil

from standard import clock, kinds, read

CHUNK = b"event: x\ndata: {}\n\n"


class Server:
    """What an application sends, in order; ``leave`` is the client's leaving."""

    def __init__(self, *, fails_after: int | None = None, method: str = "GET") -> None:
        self.messages: list[dict] = []
        self.scope = {"type": "http", "method": method, "http_version": "2", "headers": []}
        self._fails_after = fails_after
        self._left = asyncio.Event()
        self.taken = 0

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> dict:
        if not self.taken:
            self.taken += 1
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        if self._fails_after is not None and len(self.messages) >= self._fails_after:
            raise OSError
        self.messages.append(message)

    async def run(self, app) -> Server:
        await app(self.scope, self.receive, self.send)
        return self

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)

    @property
    def pieces(self) -> list[bytes]:
        return [message["body"] for message in self.messages[1:] if message["body"]]

    @property
    def finished(self) -> bool:
        return bool(self.messages) and self.messages[-1].get("more_body") is False

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}


@pytest.fixture
def asgi(llmstream):
    return importlib.import_module("llmstream.integrations.asgi")


@pytest.fixture
def respond(asgi):
    """Runs a response to its end; its server."""

    def respond(source, *, server=None, **options):
        async def run():
            return await (server or Server()).run(asgi.EventStreamResponse(source, **options))

        return asyncio.run(run())

    return respond


def answer(encoder, *words, stop=True):
    yield encoder.start("m", request_id="r-1")
    for word in words:
        yield encoder.delta(word)
    if stop:
        yield encoder.stop("end_turn")
        yield encoder.usage(1, 2)
        yield encoder.end()


async def later(items):
    for item in items:
        await asyncio.sleep(0)
        yield item


SOURCES = {
    "a list": list,
    "a tuple": tuple,
    "a generator": lambda items: (item for item in items),
    "an asynchronous generator": later,
    "an iterator": iter,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_bytes_go_out_as_they_are(respond, llmstream, kind):
    pieces = list(answer(llmstream.Encoder(clock=clock), "a", "b"))
    server = respond(SOURCES[kind](pieces))
    assert server.pieces == pieces
    assert server.finished
    assert server.messages[0]["status"] == 200


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_items_of_every_kind_of_bytes(respond, kind):
    assert respond(later([kind(CHUNK), kind(b""), kind(CHUNK)])).pieces == [CHUNK, CHUNK]


def test_a_body_in_memory(respond):
    assert respond(CHUNK * 3).body == CHUNK * 3


def test_headers(respond):
    """R4.9-1, R3-6, section 5.5; and RFC 9113, section 8.2.2."""
    assert respond([CHUNK]).headers == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }
    given = {
        "X-Request-Id": "7",
        "Cache-Control": "no-store",
        "Content-Length": "3",
        "Connection": "keep-alive",
        "Keep-Alive": "timeout=5",
        "Transfer-Encoding": "chunked",
        "Upgrade": "h2c",
        "Proxy-Connection": "close",
        "TE": "trailers",
        "Trailer": "x",
    }
    for headers in (given, list(given.items())):
        found = respond([CHUNK], headers=headers, media_type='text/event-stream; profile="llm-stream-1.0"').headers
        assert found == {
            "content-type": 'text/event-stream; profile="llm-stream-1.0"',
            "x-request-id": "7",
            "cache-control": "no-store",
            "x-accel-buffering": "no",
        }
    assert respond([CHUNK], status_code=203).messages[0]["status"] == 203


def test_what_cannot_be_sent_is_refused_at_once(asgi):
    for headers in ({"x": "a\r\nset-cookie: b"}, {"x": "a\nb"}, {"x": "a\0"}):
        with pytest.raises(ValueError, match="one line"):
            asgi.EventStreamResponse([], headers=headers)
    for name in ("x\r\nset-cookie", "a b", "", "é", "a:", "a\0", "a\n", "(a)", "a\x7f", "\ud800"):
        with pytest.raises(ValueError, match="header"):
            asgi.EventStreamResponse([], headers={name: "a"})
        with pytest.raises(ValueError, match="header"):
            asgi.EventStreamResponse([], headers=[(name, "a")])
    for headers in ({b"a": "b"}, {"a": 5}, {5: "a"}):
        with pytest.raises(TypeError, match="header"):
            asgi.EventStreamResponse([], headers=headers)
    asgi.EventStreamResponse([], headers={"!#$%&'*+-.^_`|~09azAZ": "a"})
    for source in ("text", None, 7):
        with pytest.raises(TypeError):
            asgi.EventStreamResponse(source)
    for interval in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="keep_alive"):
            asgi.EventStreamResponse([], keep_alive=interval)


def test_a_response_is_sent_once(asgi):
    async def run():
        response = asgi.EventStreamResponse([CHUNK])
        await Server().run(response)
        with pytest.raises(RuntimeError, match="once"):
            await Server().run(response)
        server = Server()
        server.scope["type"] = "websocket"
        with pytest.raises(RuntimeError, match="HTTP"):
            await server.run(asgi.EventStreamResponse([CHUNK]))

    asyncio.run(run())


# Events


def test_events_are_encoded(respond, llmstream):
    events = [
        llmstream.StreamStart(model="m", created=1),
        llmstream.ContentDelta(text="a"),
        llmstream.ContentStop(stop_reason="end_turn"),
        llmstream.Usage(input_tokens=1, output_tokens=2),
        llmstream.StreamEnd(),
    ]
    for source in (events, iter(events), later(events)):
        server = respond(source)
        assert len(server.pieces) == 5
        assert llmstream.parse(server.body, strict=True).text == "a"


def test_events_in_a_vendors_format(respond, llmstream):
    pieces = answer(llmstream.Encoder(clock=clock), "a")
    events = [event for piece in pieces for event in llmstream.Parser().feed(piece)]
    server = respond(events, encoder=llmstream.writer_for("openai", clock=clock))
    result = llmstream.parse(server.body, dialect="openai", strict=True)
    assert (result.text, result.complete) == ("a", True)


def test_what_is_neither_bytes_nor_event(respond):
    with pytest.raises(TypeError, match="not str"):
        respond(later(["text"]))


# Exceptions


class BrokenError(Exception):
    """With words that no client may see."""


def failing(encoder, *words, error=None):
    yield from answer(encoder, *words, stop=False)
    raise error or BrokenError("secret")


async def afailing(encoder, *words, error=None):
    for piece in failing(encoder, *words, error=error):
        yield piece


@pytest.mark.parametrize("source", [failing, afailing])
def test_an_exception_ends_the_stream_and_is_raised(asgi, llmstream, source):
    async def run():
        server, encoder = Server(), llmstream.Encoder(clock=clock)
        with pytest.raises(BrokenError):
            await server.run(asgi.EventStreamResponse(source(encoder, "a"), encoder=encoder))
        return server

    server = asyncio.run(run())
    assert server.finished
    assert b"secret" not in server.body
    assert kinds(server.body) == ["stream.start", "content.delta", "error", "stream.end"]
    assert read(server.body)[2]["code"] == "internal_error"
    assert llmstream.check(server.body).ok


@pytest.mark.parametrize(("code", "told"), [("overloaded", "overloaded"), ("secret", "internal_error")])
def test_the_code_of_an_upstreams_error(asgi, llmstream, code, told):
    async def run():
        server, encoder = Server(), llmstream.Encoder(clock=clock)
        error = llmstream.UpstreamError(code, "secret")
        with pytest.raises(llmstream.UpstreamError):
            await server.run(asgi.EventStreamResponse(afailing(encoder, error=error), encoder=encoder))
        return server

    server = asyncio.run(run())
    assert [event["code"] for event in read(server.body) if event["type"] == "error"] == [told]
    assert b"secret" not in server.body


@pytest.mark.parametrize("kind", ["with", "without"])
def test_an_exception_before_the_first_byte_sends_nothing(asgi, llmstream, kind):
    async def broken():
        raise BrokenError
        yield b""

    async def run():
        server = Server()
        encoder = llmstream.Encoder() if kind == "with" else None
        with pytest.raises(BrokenError):
            await server.run(asgi.EventStreamResponse(broken(), encoder=encoder))
        return server

    assert asyncio.run(run()).messages == []


def test_an_exception_without_an_encoder_leaves_the_response_unfinished(asgi):
    async def source():
        yield CHUNK
        raise BrokenError

    async def run():
        server = Server()
        with pytest.raises(BrokenError):
            await server.run(asgi.EventStreamResponse(source()))
        return server

    server = asyncio.run(run())
    assert server.body == CHUNK
    assert not server.finished


def test_an_exception_amid_an_event(asgi, llmstream):
    """The half event is no part of the error's: it is lost by itself."""

    async def run():
        server, encoder = Server(), llmstream.Encoder(clock=clock)

        async def source():
            yield encoder.start("m")
            yield encoder.delta("lost")[:30]
            raise BrokenError

        with pytest.raises(BrokenError):
            await server.run(asgi.EventStreamResponse(source(), encoder=encoder))
        return server

    result = llmstream.parse(asyncio.run(run()).body)
    assert result.error.code == "internal_error"
    assert result.text == ""
    assert result.violation_count


def test_a_source_that_ends_too_early_is_ended(respond, llmstream):
    """5.3.7: each stream has its end, and what was cut does not look whole."""
    encoder = llmstream.Encoder(clock=clock)
    server = respond(answer(encoder, "a", stop=False), encoder=encoder)
    assert kinds(server.body) == ["stream.start", "content.delta", "error", "stream.end"]
    encoder = llmstream.Encoder(clock=clock)
    server = respond(later([]), encoder=encoder)
    assert kinds(server.body) == ["stream.start", "error", "stream.end"]
    encoder = llmstream.Encoder(clock=clock)
    assert kinds(respond(answer(encoder, "a"), encoder=encoder).body)[-1] == "stream.end"
    assert respond(later([])).finished


# The client leaves


@pytest.mark.parametrize("where", ["waiting", "sending"])
def test_a_source_is_closed_when_the_client_leaves(asgi, where):
    async def run():
        server, closed = Server(), []

        async def source():
            try:
                yield CHUNK
                server.leave()
                while where == "sending":
                    yield CHUNK
                    await asyncio.sleep(0)
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                closed.append(asyncio.current_task().cancelling())

        await asyncio.wait_for(server.run(asgi.EventStreamResponse(source())), 30)
        assert len(closed) == 1
        assert not server.finished
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


@pytest.mark.parametrize("after", range(4))
def test_a_server_whose_send_fails(asgi, after):
    """ASGI 2.4: ``send`` raises OSError once the client has left."""

    async def run():
        closed = []

        async def source():
            try:
                while True:
                    yield CHUNK
            finally:
                closed.append(True)

        server = Server(fails_after=after)
        await server.run(asgi.EventStreamResponse(source()))
        assert (len(server.messages), closed) == (after, [True])

    asyncio.run(run())


def test_a_source_that_will_not_be_cancelled(asgi):
    async def run():
        server = Server()

        async def source():
            yield CHUNK
            server.leave()
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    yield CHUNK

        await asyncio.wait_for(server.run(asgi.EventStreamResponse(source())), 30)
        assert server.body == CHUNK

    asyncio.run(run())


async def its_own():
    raise asyncio.CancelledError


async def of_a_task():
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await task


async def of_itself():
    asyncio.current_task().cancel()
    await asyncio.Event().wait()


@pytest.mark.parametrize("cancel", [its_own, of_a_task, of_itself])
@pytest.mark.parametrize("amid", [True, False])
def test_a_source_that_somebody_else_cancels_has_failed(asgi, llmstream, cancel, amid):
    """No client takes what it got for the whole, and nobody takes it for a cancellation of the request."""

    async def run(encoder):
        server, ran, closed = Server(), [], []

        async def source():
            try:
                if amid:
                    yield (encoder or llmstream.Encoder()).start("m")
                await cancel()
            finally:
                closed.append(True)

        async def after():
            ran.append(True)

        response = asgi.EventStreamResponse(source(), encoder=encoder, background=after)
        with pytest.raises(RuntimeError, match="cancelled") as caught:
            await asyncio.wait_for(server.run(response), 30)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        assert (len(ran), closed) == (amid, [True])
        assert len(asyncio.all_tasks()) == 1
        return server

    server = asyncio.run(run(llmstream.Encoder(clock=clock)))
    assert kinds(server.body) == (["stream.start", "error", "stream.end"] if amid else [])
    assert server.finished == amid
    server = asyncio.run(run(None))
    assert not server.finished


def test_an_exception_of_any_kind_is_raised(asgi):
    class Exit(BaseException):
        pass

    async def source():
        yield CHUNK
        raise Exit

    async def run():
        server = Server()
        with pytest.raises(Exit):
            await asyncio.wait_for(server.run(asgi.EventStreamResponse(source())), 30)
        assert not server.finished

    asyncio.run(run())


@pytest.mark.parametrize("fails", [False, True])
def test_a_client_that_leaves_before_the_first_byte(asgi, fails):
    """The response begins all the same, which middleware waits for, and ``background`` runs, as with a
    StreamingResponse of Starlette. It is not finished: nobody shall take it for a whole one."""

    async def run():
        server, closed, ran = Server(fails_after=0 if fails else None), [], []

        async def source():
            try:
                server.leave()
                await asyncio.Event().wait()
                yield CHUNK
            finally:
                closed.append(True)

        async def after():
            assert closed
            ran.append(True)

        await asyncio.wait_for(server.run(asgi.EventStreamResponse(source(), background=after)), 30)
        assert (closed, ran, server.body) == ([True], [True], b"")
        assert [message["type"] for message in server.messages] == ([] if fails else ["http.response.start"])

    asyncio.run(run())


def test_a_server_that_fails_before_the_first_byte(asgi):
    """It is no client that has left."""

    class Failing(Server):
        async def receive(self):
            raise BrokenError

    async def source():
        await asyncio.Event().wait()
        yield CHUNK

    async def run():
        server = Failing()
        with pytest.raises(BrokenError):
            await asyncio.wait_for(server.run(asgi.EventStreamResponse(source())), 30)
        assert server.messages == []

    asyncio.run(run())


def test_the_server_cancels(asgi):
    async def run():
        server, closed = Server(), []

        async def source():
            try:
                yield CHUNK
                await asyncio.Event().wait()
            finally:
                closed.append(True)

        async def after():
            closed.append("background")

        response = asgi.EventStreamResponse(source(), background=after)
        task = asyncio.ensure_future(server.run(response))
        await auntil(lambda: server.body)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed == [True]
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


def test_head(asgi):
    async def run():
        asked = []

        async def source():
            asked.append(True)
            yield CHUNK

        server = Server(method="HEAD")
        await server.run(asgi.EventStreamResponse(source()))
        assert (server.body, server.finished, asked) == (b"", True, [])
        assert server.headers["content-type"] == "text/event-stream"

    asyncio.run(run())


@pytest.mark.parametrize(("how", "expected"), [("whole", 1), ("left", 1), ("failed", 1), ("never", 0)])
def test_background(asgi, how, expected):
    async def run():
        server, ran = Server(), []

        async def source():
            if how == "never":
                raise BrokenError
            yield CHUNK
            if how == "left":
                server.leave()
                await asyncio.Event().wait()
            if how == "failed":
                raise BrokenError

        async def after():
            ran.append(True)

        response = asgi.EventStreamResponse(source(), background=after)
        if how in ("failed", "never"):
            with pytest.raises(BrokenError):
                await server.run(response)
        else:
            await server.run(response)
        assert len(ran) == expected

    asyncio.run(run())


# Keep-alive


COMMENT = b": keep-alive\n\n"


def test_a_silent_source_is_commented(asgi, llmstream):
    async def run():
        server = Server()

        async def source():
            await auntil(lambda: COMMENT in server.body)
            yield CHUNK
            await auntil(lambda: server.body.endswith(CHUNK + COMMENT * 2))

        await server.run(asgi.EventStreamResponse(source(), keep_alive=0.005))
        return server

    server = asyncio.run(run())
    assert server.finished
    assert [event.event for event in llmstream.SSEDecoder().feed(server.body)] == ["x"]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
@pytest.mark.parametrize(
    "body", [b"\xef\xbb\xbf" + CHUNK, CHUNK, b"\xef\xbb\xbf" * 2 + CHUNK, b"\xef\xbb", b"\xef\xbbx"]
)
def test_a_byte_order_mark_after_a_comment(asgi, llmstream, body, size):
    """After a comment it would be part of the first line, whose field would be lost."""

    async def run(keep_alive):
        server = Server()

        async def source():
            if keep_alive is not None:
                await auntil(lambda: COMMENT in server.body)
            for at in range(0, len(body), size):
                yield body[at : at + size]

        await server.run(asgi.EventStreamResponse(source(), keep_alive=keep_alive))
        assert server.finished
        return server.body

    assert asyncio.run(run(None)) == body
    commented = asyncio.run(run(0.005)).replace(COMMENT, b"")
    assert commented == body.removeprefix(b"\xef\xbb\xbf")
    events = llmstream.SSEDecoder().feed(body)
    assert llmstream.SSEDecoder().feed(commented) == events or body.startswith(b"\xef\xbb\xbf" * 2)


def test_none(asgi):
    async def source():
        await asyncio.sleep(0.05)
        yield CHUNK

    async def run():
        return await Server().run(asgi.EventStreamResponse(source(), keep_alive=None))

    assert asyncio.run(run()).body == CHUNK


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_no_comment_within_an_event(asgi, llmstream, newline):
    """The source is silent after each byte, for longer than the interval."""
    body = f"event: x{newline}data: 1{newline}{newline}data: 2{newline}{newline}".encode()

    async def run():
        server = Server()

        async def source():
            for at in range(len(body)):
                yield body[at : at + 1]
                await asyncio.sleep(0.003)

        await server.run(asgi.EventStreamResponse(source(), keep_alive=0.0005))
        return server

    server = asyncio.run(run())
    assert server.body.count(COMMENT) >= 1
    assert [event.data for event in llmstream.SSEDecoder().feed(server.body)] == ["1", "2"]
    kept = server.body.replace(COMMENT, b"")
    assert kept == body
    for end in (f"1{newline}", "data: ", f"x{newline}"):
        assert end.encode() + COMMENT not in server.body


def test_a_status_that_waits_for_the_source(asgi):
    """Nothing is sent before the first bytes, or the first comment."""

    async def run():
        server = Server()

        async def source():
            for _ in range(20):
                await asyncio.sleep(0)
            assert server.messages == []
            yield CHUNK

        await server.run(asgi.EventStreamResponse(source()))

    asyncio.run(run())


# Synchronous sources


def test_a_synchronous_source_has_a_thread_and_a_context(asgi):
    variable = contextvars.ContextVar("variable", default=0)
    threads = []

    def source():
        try:
            threads.append(threading.current_thread())
            yield CHUNK * variable.get()
            variable.set(3)
            yield CHUNK * variable.get()
        finally:
            threads.append(threading.current_thread())

    async def run():
        variable.set(2)
        return await Server().run(asgi.EventStreamResponse(source()))

    assert asyncio.run(run()).body == CHUNK * 5
    assert threads[0] is threads[1] is not threading.main_thread()
    threads[0].join(30)


def test_a_synchronous_source_that_blocks(asgi):
    """The loop goes on; once the client has left, the generator is closed when it comes to its next item."""

    async def run():
        server, gate, waits, closed = Server(), threading.Event(), threading.Event(), []

        def source():
            try:
                yield CHUNK
                waits.set()
                gate.wait(30)
                yield CHUNK
                yield CHUNK
            finally:
                closed.append(threading.current_thread())

        task = asyncio.ensure_future(server.run(asgi.EventStreamResponse(source())))
        await auntil(lambda: server.body and waits.is_set())
        server.leave()
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert not task.done()
        assert closed == []
        gate.set()
        await asyncio.wait_for(task, 30)
        assert server.body == CHUNK
        assert len(closed) == 1
        assert closed[0] is not threading.main_thread()

    asyncio.run(run())


def test_a_blocked_response_is_closed_under_the_read(asgi):
    async def run():
        server, gate, waits, closed = Server(), threading.Event(), threading.Event(), []

        class Response:
            headers = ()

            def iter_bytes(self):
                yield CHUNK
                waits.set()
                assert gate.wait(30)

            def close(self):
                closed.append(True)
                gate.set()

        task = asyncio.ensure_future(server.run(asgi.EventStreamResponse(Response())))
        await auntil(lambda: server.body and waits.is_set())
        server.leave()
        await asyncio.wait_for(task, 30)
        assert closed

    asyncio.run(run())


@pytest.mark.parametrize("number", [1, 40])
def test_a_source_that_cannot_be_woken_up_is_left_to_its_thread(asgi, monkeypatch, number):
    """Its ``close`` waits as long as its read does. The response is over all the same, and the loop's threads are
    free; the source is closed when it comes back."""
    monkeypatch.setattr(importlib.import_module("llmstream.integrations.threads"), "GRACE", 0.05)
    gate, waiting, closed, ran = threading.Event(), [], [], []

    class Response:
        headers = ()

        def iter_bytes(self):
            try:
                yield CHUNK
                waiting.append(True)
                gate.wait(30)
            finally:
                closed.append(True)

        def close(self):
            gate.wait(30)

    async def after():
        ran.append(True)

    async def run():
        servers = [Server() for _ in range(number)]
        tasks = [
            asyncio.ensure_future(server.run(asgi.EventStreamResponse(Response(), background=after)))
            for server in servers
        ]
        await auntil(lambda: all(server.body for server in servers) and len(waiting) == number)
        for server in servers:
            server.leave()
        await asyncio.wait_for(asyncio.gather(*tasks), 30)
        assert (len(ran), closed) == (number, [])
        assert await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, lambda: 1), 30) == 1

    asyncio.run(run())
    gate.set()
    for thread in threading.enumerate():
        if thread.name.startswith("llmstream"):
            thread.join(30)
    assert len(closed) == number


def test_a_synchronous_source_does_not_run_away(asgi):
    async def run():
        made, gate = [], asyncio.Event()

        def source():
            for number in range(1000):
                made.append(number)
                yield CHUNK

        class Slow(Server):
            async def send(self, message):
                await super().send(message)
                if len(self.messages) == 3:
                    await gate.wait()

        server = Slow()
        task = asyncio.ensure_future(server.run(asgi.EventStreamResponse(source())))
        await auntil(lambda: len(made) >= 16)
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert len(made) <= 20
        gate.set()
        await task
        assert server.body == CHUNK * 1000

    asyncio.run(run())


def test_a_loop_that_is_gone(asgi):
    """A thread that comes late troubles nobody."""
    gate, over = threading.Event(), threading.Event()

    def source():
        try:
            yield CHUNK
            gate.wait(30)
            yield CHUNK
        finally:
            over.set()

    async def run():
        server = Server()
        task = asyncio.ensure_future(server.run(asgi.EventStreamResponse(source())))
        await auntil(lambda: server.body)
        task.cancel()
        await asyncio.sleep(0.01)
        task.cancel()  # the server does not wait for it any longer
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    gate.set()
    assert over.wait(30)


def test_a_transcoded_stream(respond, llmstream):
    from vendors import openai

    for source in (
        llmstream.transcode(openai(["a", "b"]), clock=clock),
        llmstream.atranscode(openai(["a", "b"]), clock=clock),
    ):
        server = respond(source)
        assert llmstream.parse(server.body, strict=True).text == "ab"


@pytest.mark.parametrize(
    ("stop", "fails_after", "known"),
    [(True, None, (True, True)), (True, 0, (True, False)), (True, 3, (True, False)), (False, None, (True, False))],
)
def test_what_a_response_knows_of_itself(asgi, llmstream, stop, fails_after, known):
    """Whether a status has gone out, and whether all has."""
    server = Server(fails_after=fails_after)

    async def source():
        for piece in answer(llmstream.Encoder(clock=clock), "a", "b"):
            yield piece
        if not stop:
            raise ValueError

    async def run():
        response = asgi.EventStreamResponse(source())
        assert (response.started, response.finished) == (False, False)
        with contextlib.suppress(ValueError):
            await server.run(response)
        assert (response.started, response.finished) == known
        assert server.finished == known[1]

    asyncio.run(run())
