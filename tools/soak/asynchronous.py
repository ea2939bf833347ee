"""The asynchronous ways of reading, from generators and from real sockets, some of them cancelled on the way."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

from fuzz import whatwg

from .context import Context
from .streams import Stream

AsyncReader = Callable[[Context, Stream, "Server"], Awaitable[None]]


class Server:
    """Sends streams over the loopback interface: raw, or as the chunks of a response of HTTP/1.1."""

    def __init__(self, context: Context, streams: list[Stream], most: int = 50) -> None:
        self.context = context
        self.streams = streams
        self.port = 0
        self.room = asyncio.Semaphore(most)  # sockets take file descriptors
        self.threads = asyncio.Semaphore(4)
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *fault: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            number = int(head.split(b" ")[1][1:])
            is_http = head.startswith(b"GET")
            if is_http:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")
            for chunk in self.context.chunks(self.streams[number].data):
                writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if is_http else bytes(chunk))
                await writer.drain()
            if is_http:
                writer.write(b"0\r\n\r\n")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the reader has gone
        finally:
            writer.close()

    async def connect(self, stream: Stream) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"RAW /%d \r\n\r\n" % self.streams.index(stream))
        return reader, writer


async def chunks(context: Context, stream: Stream) -> AsyncIterator[Any]:
    for chunk in context.chunks(stream.data):
        await asyncio.sleep(0)
        yield chunk


async def _events(context: Context, stream: Stream, source: Any) -> None:
    found = []
    async with context.package.aiter_events(source, **context.options(stream)) as events:
        async for event in events:
            context.events += 1
            if type(event) is context.package.ContentDelta:
                found.append(event.text)
    context.same("text", stream.text, "".join(found))
    context.says(stream, events.parser)


async def _text(context: Context, stream: Stream, source: Any) -> None:
    package, found, raised = context.package, [], None
    try:
        async with package.aiter_text(source, **context.options(stream)) as texts:
            found = [piece async for piece in texts] if stream.is_whole else await _gathered(texts, found)
    except package.LLMStreamError as error:
        raised = type(error)
    context.events += len(found)
    context.same("text", stream.text, "".join(found))
    expected = package.UpstreamError if stream.failed else None if stream.complete else package.IncompleteStreamError
    context.same("raised", expected, raised)


async def _gathered(texts: AsyncIterator[str], found: list[str]) -> list[str]:
    async for piece in texts:
        found.append(piece)  # noqa: PERF401 (kept when it raises)
    return found


async def _bytes(context: Context, stream: Stream, source: Any) -> None:
    found = []
    async with context.package.atranscode(source, **context.options(stream)) as pieces:
        async for piece in pieces:
            found.append(piece)  # noqa: PERF401
    output = b"".join(found)
    context.events += pieces.transcoder.next_seq
    context.same("text", stream.text, whatwg.text_of_draft(output))
    context.same("whole", stream.is_whole, pieces.transcoder.complete)


async def generated(context: Context, stream: Stream, server: Server) -> None:
    """aiter_events, aiter_text and atranscode over an asynchronous generator."""
    await context.random.choice((_events, _text, _bytes))(context, stream, chunks(context, stream))


async def connected(context: Context, stream: Stream, server: Server) -> None:
    """The same over a socket, where there is room for one."""
    if server.room.locked():
        await generated(context, stream, server)
        return
    async with server.room:
        reader, writer = await server.connect(stream)
        try:
            await context.random.choice((_events, _text, _bytes))(context, stream, reader)
        finally:
            writer.close()
            await writer.wait_closed()


async def fetched(context: Context, stream: Stream, server: Server) -> None:
    """parse of a response of urllib, in a thread."""
    if server.threads.locked():
        await generated(context, stream, server)
        return
    address = f"http://127.0.0.1:{server.port}/{server.streams.index(stream)}"
    options = context.options(stream)

    def read() -> Any:
        return context.package.parse(urllib.request.urlopen(address), **options)

    async with server.threads:
        result = await asyncio.to_thread(read)
    context.events += 1
    context.fits(stream, result)


async def cancelled(context: Context, stream: Stream, server: Server) -> None:
    """A task that reads is cancelled: its source is closed, and what it had read is a beginning."""
    closed, found = [], []

    async def source() -> AsyncIterator[Any]:
        try:
            async for chunk in chunks(context, stream):
                yield chunk
        finally:
            closed.append(True)

    async def read() -> None:
        async with context.package.aiter_events(source(), **context.options(stream)) as events:
            async for event in events:
                if type(event) is context.package.ContentDelta:
                    found.append(event.text)
                await asyncio.sleep(0)

    task = asyncio.ensure_future(read())
    for _ in range(context.random.randint(1, 30)):
        await asyncio.sleep(0)
    is_done = task.done()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        context.thrown += 1
        context.holds("cancelled before it began, or closed", is_done or bool(closed) or not found)
    context.holds("a beginning of the text", stream.text.startswith("".join(found)))
    context.events += len(found)


READERS: tuple[AsyncReader, ...] = (generated, generated, connected, connected, fetched, cancelled)
