"""A stream as the response of an ASGI application (extra ``asgi``); no library is needed.

In Starlette and FastAPI take ``llmstream.integrations.starlette``, whose class of this name is a Response of theirs.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from functools import partial

from .. import fields, rules
from .._backend import Event
from ..encoder import Encoder
from ..errors import UpstreamError
from ..negotiation import response_headers
from ..source import AsyncChunks, async_chunks, chunks
from .interrupts import interrupt
from .threads import Pulled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
    from typing import Any, Protocol, TypeAlias

    Scope: TypeAlias = MutableMapping[str, Any]
    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]

    class Failing(Protocol):
        """What can end a stream: an ``Encoder``, ``Transcoder``, ``StreamTranslator`` or ``VendorWriter``."""

        def fail(self, code: str = ..., message: str = ...) -> bytes: ...


__all__ = ["EventStreamResponse"]

KEEP_ALIVE = b": keep-alive\n\n"

FAILED = "the stream could not be completed"
"""All that a client is told of an exception."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of RFC 9110, section 5.6.2."""

HOP_BY_HOP = frozenset(
    {"connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that are the server's own (RFC 9110, section 7.6.1; forbidden in HTTP/2), or that a stream has not (draft,
section 3)."""


class EventStreamResponse:
    """A stream of events as an ASGI application, for one request::

        async def answer():
            yield encoder.start("model-1")
            async for words in model:
                yield encoder.delta(words)
            yield encoder.stop("end_turn")
            yield encoder.end()

        await EventStreamResponse(answer(), encoder=encoder)(scope, receive, send)

    ``source``      an iterable of bytes and events, or whatever else ``aiter_events`` reads, asynchronous or not. Bytes
                    go out as they are, at once, and the next ones are asked for when the server takes more. What is
                    synchronous is read by a thread of its own
    ``status_code`` of HTTP
    ``headers``     further ones, as a mapping or pairs of str. By default there are Content-Type, Cache-Control and,
                    against proxies that buffer, X-Accel-Buffering; hop-by-hop ones and Content-Length are left out
    ``media_type``  the Content-Type, by default text/event-stream (draft, section 4.9)
    ``background``  called without arguments and awaited once the response is over, also where the client has left
    ``encoder``     what writes the stream: it encodes the events of the source (by default an ``Encoder``) and ends the
                    stream where the source does not
    ``keep_alive``  seconds without output after which a comment is sent, between two events and never in one; None:
                    never

    The status goes out with the first bytes or comment. An exception before that is raised, for the application to
    answer with a status of its own. After it, ``encoder`` writes ``error`` and ``stream.end`` (5.3.6, 5.3.7), with the
    code of an UpstreamError or "internal_error" and nothing else of what happened; without an ``encoder`` the
    connection is cut, so that no client takes the answer for a whole one. In both cases the exception is then raised;
    where the source was cancelled by somebody else, that is a RuntimeError. A source that ends without the end of its
    stream is ended by ``encoder`` in the same way.

    Where the client leaves, the source is closed at once: what it waits for is cancelled, and its ``finally`` runs. A
    synchronous response (of httpx, requests, urllib3, urllib) has its connection shut down under the read that waits
    for it; any other read is waited for no longer than a second, and then left to its thread, which closes the source
    when it comes back. The source is closed for HEAD, too, which gets no body. Raises TypeError for a source that
    cannot be read, ValueError for headers that cannot be sent.
    """

    def __init__(
        self,
        source: Any,
        status_code: int = 200,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        media_type: str | None = None,
        background: Callable[[], Awaitable[Any]] | None = None,
        *,
        encoder: Failing | None = None,
        keep_alive: float | None = 15.0,
    ) -> None:
        if keep_alive is not None and not keep_alive > 0:
            raise ValueError("keep_alive must be more than 0 seconds, or None")
        self.status_code = status_code
        self.raw_headers = _headers(headers, media_type)
        self.background = background
        self.encoder = encoder
        self.keep_alive = keep_alive
        self._chunks: AsyncChunks | None = _chunks(source)
        self._sending: _Sending | None = None

    @property
    def started(self) -> bool:
        """Whether the status has gone out."""
        return self._sending is not None and self._sending.started

    @property
    def finished(self) -> bool:
        """Whether all of the response has gone out, to its end."""
        return self._sending is not None and self._sending.finished

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response. Raises RuntimeError for a second request, and what the source raises."""
        if scope["type"] != "http":
            raise RuntimeError("an event stream is the answer to a request of HTTP")
        source, self._chunks = self._chunks, None
        if source is None:
            raise RuntimeError("an event stream is sent once")
        sending = self._sending = _Sending(send, self.status_code, self.raw_headers)
        try:
            if scope.get("method") == "HEAD":
                await source.aclose()
                await sending.finish()
            else:
                await self._run(source, sending, receive)
        finally:
            if self.background is not None and sending.started and not _is_cancelled():
                await self.background()

    async def _run(self, source: AsyncChunks, sending: _Sending, receive: Receive) -> None:
        body = asyncio.ensure_future(self._body(source, sending))
        left = asyncio.ensure_future(_disconnect(receive))
        tasks: list[asyncio.Future[None]] = [body, left]
        if self.keep_alive is not None:
            tasks.append(asyncio.ensure_future(sending.keep_alive(self.keep_alive)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not body.done():
                sending.gone = True
            for task in tasks:
                task.cancel()
            # Only now is the source closed.
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        if not left.cancelled() and left.exception() is None:
            await sending.abandon()
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, (_GoneError, asyncio.CancelledError)):
                raise outcome

    async def _body(self, source: AsyncChunks, sending: _Sending) -> None:
        try:
            async for item in source.iterator:
                data = item if type(item) is bytes else self._encoded(item)
                if data:
                    await sending.write(data)
            await self._end("internal_error", sending)
        except _GoneError:
            pass
        except asyncio.CancelledError as error:
            if sending.gone:
                raise
            await self._fail(error, sending)
            raise RuntimeError("the source of an event stream was cancelled") from error
        except Exception as error:
            await self._fail(error, sending)
            raise
        finally:
            await source.aclose()

    async def _fail(self, error: BaseException, sending: _Sending) -> None:
        """The end of a response that cannot be completed."""
        if sending.started and self.encoder is not None:
            with contextlib.suppress(_GoneError):
                await self._end(_code(error), sending)

    async def _end(self, code: str, sending: _Sending) -> None:
        """The end of the response, after that of the stream where that is missing."""
        tail = b"" if self.encoder is None else self.encoder.fail(code, FAILED)
        if tail:
            await sending.write(tail if sending.between_events else b"\n\n" + tail)
        await sending.finish()

    def _encoded(self, item: Any) -> bytes:
        if isinstance(item, Event):
            if self.encoder is None:
                self.encoder = Encoder()
            writer: Any = self.encoder
            encoded: bytes = writer.encode(item) if hasattr(writer, "encode") else writer.write(item)
            return encoded
        if isinstance(item, (bytearray, memoryview)):
            return bytes(item)
        raise TypeError(f"an event stream is made of bytes and events, not {type(item).__name__}")


class _GoneError(Exception):
    """The client has left."""


class _Sending:
    """The way to one client, which one task at a time uses."""

    def __init__(self, send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = self.finished = self.gone = False
        self._send = send
        self._start = {"type": "http.response.start", "status": status, "headers": headers}
        self._writing = False
        self._free = asyncio.Event()  # of a comment that is on its way
        self._free.set()
        self._tail = b"\n\n"  # ends with the last bytes, which tell whether an event is under way
        self._head: bytes | None = b""  # of the source, while it may be a byte order mark; None: past that
        self._clock = asyncio.get_running_loop().time
        self._sent_at = self._clock()

    @property
    def between_events(self) -> bool:
        """Whether what was sent last is the blank line that ends an event."""
        return is_between_events(self._tail)

    def write(self, data: bytes, *, more: bool = True) -> Awaitable[None]:
        """Sends bytes; done when the server takes more. Raises _GoneError where the client has left."""
        if self._head is None and self._free.is_set():
            return self._write(data, more)
        return self._write_after(data, more)

    async def _write_after(self, data: bytes, more: bool) -> None:
        """What has to wait for a comment, or for what tells whether it is a byte order mark."""
        await self._free.wait()
        if self._head is not None:
            data = self._begun(data, more)
            if not data and more:
                return
        await self._write(data, more)

    def _begun(self, data: bytes, more: bool) -> bytes:
        """The first bytes of the source, without a byte order mark where a comment is before it already: that is no
        mark, and its line would be lost (WHATWG HTML, section 9.2.5)."""
        if not self.started:
            self._head = None
            return data
        data = (self._head or b"") + data
        self._head = data if more and data != BYTE_ORDER_MARK and BYTE_ORDER_MARK.startswith(data) else None
        return b"" if self._head is not None else data.removeprefix(BYTE_ORDER_MARK)

    async def _write(self, data: bytes, more: bool) -> None:
        self._writing = True
        try:
            if self.gone or not self.started:
                await self._begin()
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
        except OSError:
            # So do servers of version 2.4 of ASGI tell of it.
            self.gone = True
            raise _GoneError from None
        finally:
            self._writing = False
        self._tail = data if len(data) >= 4 else self._tail[-4:] + data
        self._sent_at = self._clock()

    async def _begin(self) -> None:
        if self.gone:
            raise _GoneError
        self.started = True
        await self._send(self._start)

    async def abandon(self) -> None:
        """Begins the response to a client that has left before: middleware expects that there is one."""
        if not self.started:
            self.started = True
            with contextlib.suppress(OSError):
                await self._send(self._start)

    async def finish(self) -> None:
        """The end of the response."""
        await self.write(b"", more=False)
        self.gone = self.finished = True

    async def keep_alive(self, interval: float) -> None:
        """Sends a comment whenever nothing was sent for this long, until it is cancelled."""
        while True:
            due = self._sent_at + interval - self._clock()
            if due <= 0:
                # Where the client is behind, it has something to read.
                if self.between_events and not self._writing:
                    await self._comment()
                due = interval
            await asyncio.sleep(due)

    async def _comment(self) -> None:
        self._free.clear()
        try:
            await self._write(KEEP_ALIVE, True)
        finally:
            self._free.set()


async def _disconnect(receive: Receive) -> None:
    """Returns when the client has left; what is left of the request is read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def is_between_events(tail: bytes) -> bool:
    """Whether bytes end with the blank line that ends an event (WHATWG HTML, section 9.2.5); the last four tell."""
    return tail[-4:].replace(b"\r\n", b"\n").replace(b"\r", b"\n").endswith(b"\n\n")


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _code(error: BaseException) -> str:
    is_known = isinstance(error, UpstreamError) and error.code in rules.ERROR_CODES
    return error.code if is_known and isinstance(error, UpstreamError) else "internal_error"


def _chunks(source: Any) -> AsyncChunks:
    """What an event loop can wait for."""
    if isinstance(source, (bytes, bytearray, memoryview, list, tuple)) or _is_asynchronous(source):
        return async_chunks(source)
    try:
        found = chunks(source)
    except TypeError:
        return async_chunks(source)  # asynchronous, or else it says so
    pulled = Pulled(found, None if hasattr(source, "gi_running") else partial(interrupt, source))
    return AsyncChunks(pulled, pulled.aclose)


def _is_asynchronous(source: Any) -> bool:
    return hasattr(source, "__aiter__") and not hasattr(source, "iter_bytes")


def _headers(
    given: Mapping[str, str] | Iterable[tuple[str, str]] | None, media_type: str | None
) -> list[tuple[bytes, bytes]]:
    pairs: Any = given or ()
    items = pairs.items() if hasattr(pairs, "items") else pairs
    found = [(fields.text("a header's name", name).lower(), value) for name, value in items]
    names = {name for name, _ in found}
    if media_type is not None:
        found = [("content-type", media_type), *(item for item in found if item[0] != "content-type")]
        names.add("content-type")
    for name, value in response_headers():
        if name not in names:
            # A proxy that compresses would hold events back.
            found.append((name, f"{value}, no-transform" if name == "cache-control" else value))
    return [(_name(name), _value(value)) for name, value in found if name not in HOP_BY_HOP]


def _name(name: str) -> bytes:
    if not HEADER_NAME.fullmatch(name):
        raise ValueError("the name of a header must be a token of HTTP")
    return name.encode("ascii")


def _value(value: str) -> bytes:
    text = fields.text("a header", value)
    if any(character in text for character in "\r\n\0"):
        raise ValueError("the value of a header must be one line")
    return text.encode("latin-1")
