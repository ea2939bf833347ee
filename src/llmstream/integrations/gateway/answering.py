"""What comes back from an upstream, and how it goes to the client: translated, or as it is."""

from __future__ import annotations

from ... import payload
from ..._backend import ContentDelta, Parser, ToolCall
from ..._registry import STANDARD
from ...negotiation import EVENT_STREAM, PROFILE, parse_media_type, response_headers
from ...transcoder import Transcoder
from ...translation import StreamTranslator
from ..asgi import FAILED, EventStreamResponse, is_between_events
from ..http.answers import Folder
from ..in_band import error_event
from .reading import GoneError, unless_gone
from .refusing import CODES, RefusedError, raw_headers, send_whole
from .translating import lost_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from ...observer import Observer
    from ..asgi import Message, Receive, Scope, Send
    from .client import Client
    from .exchange import Exchange
    from .translating import VendorClient
    from .upstream import Sent

    Rewriter = Transcoder | StreamTranslator

__all__ = ["Answer"]

MAX_ERROR_SIZE = 64 * 1024
"""Bytes of an upstream's error that are read."""

KEPT_STATUSES = (400, 404, 413, 422, 429)
"""Statuses of an upstream that say the same of the client's request."""

NOT_ANSWERED = frozenset(
    {
        *("alt-svc", "connection", "content-length", "date", "keep-alive", "proxy-authenticate", "server"),
        *("set-cookie", "strict-transport-security", "te", "trailer", "transfer-encoding", "upgrade", "via"),
    }
)
"""Headers of an upstream that are about its own connection, host or clients."""

DECODED = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
"""Content codings that aiohttp undoes. None is asked for."""

ACCOUNT = frozenset({"anthropic-organization-id", "openai-organization", "openai-project"})
"""Headers of an upstream that say whose key it was asked with."""


class Answer:
    """The answer to one request that goes to an upstream. ``started`` says whether the client has got a status;
    ``client`` is the one whose request was translated for an upstream of another format, if it was."""

    def __init__(
        self,
        client: Client,
        exchange: Exchange,
        observer: Observer,
        dialect: Any,
        asgi: tuple[Scope, Receive, Send],
        headers: dict[str, str],
        keep_alive: float | None,
    ) -> None:
        self.exchange = exchange
        self.observer = observer
        self.dialect = dialect
        self.scope, self.receive, self._send = asgi
        self.started = False
        self._stream: EventStreamResponse | None = None  # one that is written anew
        self.client: VendorClient | None = None
        self._client = client
        self._headers = headers
        self._keep_alive = keep_alive

    async def send(self, message: Message) -> None:
        """Hands a message to the server."""
        if message["type"] == "http.response.start":
            self.started = True
            self.exchange.status = message["status"]
        await self._send(message)

    def failed(self, refused: RefusedError, vendor: str | None) -> None:
        """Takes note of why there is no whole answer, which a vendor's client is told."""
        self.exchange.error = refused.code
        if not self.started:
            self.exchange.status = refused.status_for(vendor)

    def end(self) -> None:
        """Takes note of what was observed."""
        exchange = self.exchange
        seen = exchange.observation = self.observer.close()
        is_answer = seen.byte_count or exchange.status == 200
        if exchange.error is None and not exchange.gone and is_answer and not seen.complete:
            exchange.error = seen.error_code or "incomplete"

    async def run(self, sent: Sent, wanted: str) -> None:
        """Asks the upstream and answers the client in the format that it wants, "standard" or "vendor". Raises
        GoneError where the client leaves, RefusedError where there is no whole answer."""
        self.exchange.format = wanted
        response = await unless_gone(self._client.post(sent), self.receive)
        try:
            if not 200 <= response.status < 600 or 300 <= response.status < 400:
                raise RefusedError(502, "internal_error", "the upstream redirects, or answers with no status of HTTP")
            if self.exchange.upstream.has_key and response.status in (401, 403):
                # Its words may have a part of the key, and say of it what the client would take for its own.
                raise RefusedError(502, "internal_error", "the upstream refused the gateway")
            if response.headers.get("content-encoding", "identity").lower() not in DECODED:
                raise RefusedError(502, "internal_error", "the upstream compresses in a way that is not known")
            media_type = parse_media_type(response.headers.get("content-type"))
            essence = "" if media_type is None else media_type.essence
            if wanted == "standard" or self.client is not None:
                await self._rewritten(response, essence, wanted)
            elif response.status == 200 and essence == EVENT_STREAM:
                await unless_gone(self._passed_on(response), self.receive)
            else:
                await self._whole(response)
        finally:
            response.close()

    async def _rewritten(self, response: Any, essence: str, wanted: str) -> None:
        """An answer in another form than the upstream's: the standard stream, or that of a vendor's client."""
        exchange, client = self.exchange, self.client
        if response.status != 200:
            raise await unless_gone(self._failed(response), self.receive)
        if essence.startswith("text/") and essence != EVENT_STREAM:
            raise RefusedError(502, "internal_error", "the upstream's answer is not a stream")
        rewriter: Rewriter
        if client is None or wanted == "standard":
            rewriter = Transcoder(self.dialect, model=exchange.model or "", request_id=exchange.request_id)
            has_profile = PROFILE in self._headers.get("accept", "")
            media_type = f'{EVENT_STREAM}; profile="{PROFILE}"' if has_profile else EVENT_STREAM
        else:
            rewriter = StreamTranslator(client.vendor, self.dialect, include_usage=client.include_usage)
            media_type = f"{EVENT_STREAM}; charset=utf-8"
        if client is not None and wanted != "standard" and not client.stream:
            await self._folded(response, rewriter, client)
        else:
            answer = EventStreamResponse(
                self._chunks(response, rewriter),
                headers=lost_header(exchange.lost),
                media_type=media_type,
                encoder=rewriter,
                keep_alive=self._keep_alive,
            )
            await self._streamed(answer)
        if not rewriter.complete:
            error = rewriter.parser.error if isinstance(rewriter, StreamTranslator) else rewriter.error
            exchange.error = exchange.error or (error and error.code) or "internal_error"

    async def _chunks(self, response: Any, rewriter: Rewriter) -> AsyncIterator[bytes]:
        """The stream as it is rewritten. An upstream that fails before there is anything else to say is a RefusedError,
        which is a status as long as nothing was sent."""
        feed = rewriter.feed
        chunks = self._client.chunks(response, self.observer.feed)
        is_first, is_empty = True, True
        try:
            async for chunk in chunks:
                is_empty = False
                written = feed(chunk)
                if written:
                    if is_first:
                        self._refuse_if_failed(rewriter, written)
                        is_first = False
                    yield written
            if is_empty:
                raise RefusedError(502, "internal_error", "the upstream's answer is empty")
            written = rewriter.close()
            if is_first:
                self._refuse_if_failed(rewriter, written)
            if written:
                yield written
        except RefusedError:
            if not rewriter.complete:  # else nothing is missing
                raise
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]

    def _refuse_if_failed(self, rewriter: Rewriter, written: bytes) -> None:
        """Raises where all that was written is an error of the upstream's."""
        error = rewriter.parser.error
        if error is None or (self._stream is not None and self._stream.started):
            return
        parser = Parser(rewriter.writer.dialect if isinstance(rewriter, StreamTranslator) else STANDARD)
        if not any(isinstance(event, (ContentDelta, ToolCall)) for event in parser.feed(written)):
            code = error.code or "internal_error"
            raise RefusedError(CODES.get(code, 502), code, error.message or "")

    async def _folded(self, response: Any, rewriter: Rewriter, client: VendorClient) -> None:
        """The whole answer for a client that asked for no stream; what is not whole is a status."""
        folder = Folder(client.vendor)
        body = await unless_gone(self._fold(self._chunks(response, rewriter), folder), self.receive)
        if folder.is_broken:
            error = rewriter.parser.error
            code = (error and error.code) or "internal_error"
            raise RefusedError(CODES.get(code, 502), code, payload.loads(body.decode())["error"]["message"])
        headers = [("content-type", "application/json"), *lost_header(self.exchange.lost)]
        await send_whole(self.send, 200, headers, body)

    async def _fold(self, chunks: AsyncIterator[bytes], folder: Folder) -> bytes:
        size = 0
        try:
            async for written in chunks:
                size += len(written)
                if size > self._client.limits.answer_size:
                    raise RefusedError(502, "too_large", "the upstream's answer is too large")
                folder.feed(written)
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]
        return folder.close()

    async def _passed_on(self, response: Any) -> None:
        """A stream as it is. One that comes to an end stays as it was, whatever that end is. One that breaks off
        between two events ends with the error of its own format; in the middle of one it is cut, as the upstream's was:
        else its client would take the half for an event. Over HTTP/2, where not every server tells of a cut, it ends
        with the error all the same."""
        send = self._send
        chunks = self._client.chunks(response, self.observer.feed)
        tail = b"\n\n"
        try:
            async for chunk in chunks:
                if not self.started:
                    await self._start(response)
                tail = chunk if len(chunk) >= 4 else tail[-4:] + chunk
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except RefusedError:
            if not self.started:
                raise
            is_torn = not is_between_events(tail)
            if self.observer.parser.complete and not is_torn:  # nothing is missing
                await self._finish(b"")
                return
            if is_torn and not self.scope.get("http_version", "1.1").startswith("2"):
                raise
            parser = self.observer.parser
            told = error_event(parser.dialect, "internal_error", FAILED, seq=parser.next_seq)
            await self._finish(b"\n\n" + told if is_torn else told)
            raise
        except OSError:
            raise GoneError from None  # so do servers of version 2.4 of ASGI tell of it
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]
        if not self.started:
            await self._start(response)
        await self._finish(b"")

    async def _start(self, response: Any) -> None:
        headers = _answered(response, self.exchange.upstream.has_key)
        names = {name for name, _ in headers}
        headers += [pair for pair in response_headers() if pair[0] not in names]
        await self.send({"type": "http.response.start", "status": response.status, "headers": raw_headers(headers)})

    async def _finish(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    async def _streamed(self, answer: EventStreamResponse) -> None:
        self._stream = answer
        try:
            await answer(self.scope, self.receive, self._send)
        finally:
            if answer.started:
                self.started = True
                self.exchange.status = answer.status_code
        if not answer.finished:
            raise GoneError

    async def _whole(self, response: Any) -> None:
        """An answer that is no stream, an upstream's error too, goes on as it is."""
        body = await unless_gone(self._client.whole(response, self._client.limits.answer_size), self.receive)
        self.observer.feed(body)
        await send_whole(self.send, response.status, _answered(response, self.exchange.upstream.has_key), body)

    async def _failed(self, response: Any) -> RefusedError:
        """An upstream's error, for a client of the standard."""
        body = await self._client.start(response, MAX_ERROR_SIZE)
        self.observer.feed(body)
        parser = Parser(self.dialect)
        parser.feed(body)
        parser.close()
        status, error = response.status, parser.error
        code = {429: "rate_limited", 503: "overloaded", 529: "overloaded"}.get(status)
        code = code or (error.code if error is not None and error.code else "internal_error")
        message = error.message if error is not None and error.message else "the upstream refused the request"
        if status not in (401, 403, *KEPT_STATUSES):
            status = 503 if status in (503, 529) else 504 if status == 504 else 502
        retry = response.headers.get("retry-after")
        return RefusedError(status, code, message, headers=() if retry is None else (("retry-after", retry),))


def _answered(response: Any, has_key: bool) -> list[tuple[str, str]]:
    """The headers of an upstream's response, for the client. ``has_key``: it was asked with the gateway's key."""
    nominated = {name.strip().lower() for name in response.headers.get("connection", "").split(",")}
    left_out = NOT_ANSWERED | nominated | {"content-encoding"} | (ACCOUNT if has_key else frozenset())
    return [(name.lower(), value) for name, value in response.headers.items() if name.lower() not in left_out]
