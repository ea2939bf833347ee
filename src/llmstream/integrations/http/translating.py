"""Transports by which the SDK of a vendor talks to an endpoint that speaks the standard (draft, section 7.1)."""

from __future__ import annotations

import logging
from typing import Generic, TypeVar

from ...negotiation import EVENT_STREAM, parse_media_type
from ...translation import atranslate_stream, translate_stream
from .answers import Folder
from .vendors import (
    MAX_ERROR_SIZE,
    Answer,
    answered_headers,
    read_request,
    refused,
    relayed_error,
    status_of,
)
from .wrapping import AsyncWrapping, Wrapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from typing import Any, ClassVar

    from ...transcoder.streams import AsyncByteStream, ByteStream
    from ...translation import Loss
    from ...translation.requests import Vendor
    from .vendors import Asked, Headers

__all__ = ["AsyncTranslated", "AsyncTranslating", "Translated", "Translating"]

Request = TypeVar("Request")
Response = TypeVar("Response")

log = logging.getLogger("llmstream.integrations")


class Translated:
    """The body of a translated answer; closing it closes the endpoint's response."""

    def __init__(self, stream: ByteStream[Any]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def close(self) -> None:
        self._stream.close()


class AsyncTranslated:
    """As ``Translated``, asynchronous."""

    def __init__(self, stream: AsyncByteStream[Any]) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Translating(Generic[Request, Response]):
    _Request: ClassVar[Callable[..., Any]]
    _Response: ClassVar[Callable[..., Any]]
    _Translated: ClassVar[type[Translated | AsyncTranslated]]

    def __init__(
        self,
        transport: Any,
        url: str,
        vendor: Vendor,
        *,
        headers: Mapping[str, str] | None = None,
        on_loss: Callable[[Request, Sequence[Loss]], object] | None = None,
    ) -> None:
        if vendor not in ("openai", "anthropic", "gemini"):
            raise ValueError(f"unknown vendor {vendor!r}; the clients of openai, anthropic and gemini are understood")
        self._transport = transport
        self._url = url
        self._vendor: Vendor = vendor
        self._headers = {_ascii(name).lower(): _ascii(value) for name, value in (headers or {}).items()}
        self._on_loss = on_loss

    def _asked(self, request: Any, body: bytes) -> Asked | Answer:
        url = request.url
        asked = read_request(self._vendor, request.method, url.path, url.params, request.headers.raw, body)
        if not isinstance(asked, Answer) and asked.lost:
            if self._on_loss is not None:
                self._on_loss(request, asked.lost)
            else:
                log.warning("not carried to the standard request: %s", "; ".join(map(str, asked.lost)))
        return asked

    def _sent(self, asked: Asked, request: Any) -> Any:
        """The request to the endpoint, with the timeouts of the client's."""
        headers = [pair for pair in asked.headers if pair[0] not in self._headers] + [*self._headers.items()]
        timeout = {name: value for name, value in request.extensions.items() if name == "timeout"}
        return self._Request("POST", self._url, headers=headers, content=asked.body, extensions=timeout)

    def _fault(self, response: Any) -> Answer | None:
        """What keeps a response of the endpoint from being translated, if its status does not say it."""
        if 300 <= response.status_code < 400:
            return refused(self._vendor, 502, "the endpoint redirects; give the URL that it leads to")
        media_type = parse_media_type(response.headers.get("content-type"))
        if response.status_code != 200 or media_type is None or media_type.essence != EVENT_STREAM:
            return refused(self._vendor, 502, "the endpoint's answer is not a stream", response.headers.raw)
        return None

    def _streamed(self, response: Any, stream: Any) -> Response:
        headers = answered_headers(response.headers.raw, f"{EVENT_STREAM}; charset=utf-8")
        made: Response = self._Response(
            200, headers=headers, stream=self._Translated(stream), extensions=response.extensions
        )
        return made

    def _whole(self, folder: Folder, stream: Any, headers: Headers) -> Response:
        body = folder.close()
        error = stream.transcoder.parser.error
        code = None if error is None else error.code
        status = status_of(self._vendor, code) if folder.is_broken else 200
        return self._made(Answer(status, answered_headers(headers, "application/json"), body))

    def _made(self, answer: Answer) -> Response:
        made: Response = self._Response(answer.status, headers=answer.headers, content=answer.body)
        return made


class Translating(Wrapping, _Translating[Request, Response]):
    """Answers the requests of a vendor's SDK by a standard endpoint: each is turned into a standard request and sent
    to ``url`` by ``transport``, and the standard stream that comes back is written as the vendor's.

    ``transport``  the transport that does the work
    ``url``        of the endpoint; the path of the SDK's own URL says only what is asked for
    ``vendor``     "openai" (chat completions), "anthropic" (messages) or "gemini" (generateContent), by the SDK
    ``headers``    further headers for the endpoint. Of the SDK's, it gets a few that no vendor has for itself, and the
                   key as a bearer token
    ``on_loss``    called with the request and what the draft has no place for, before it is sent; what it raises
                   reaches the client. By default that is logged, by its path

    A request without ``stream`` is answered whole. What has no translation, and what the endpoint answers with a status
    of 400 and more, is the vendor's error, which the SDK raises as its own. Raises ValueError for an unknown vendor
    and for headers that are not ASCII.
    """

    def handle_request(self, request: Request) -> Response:
        given: Any = request
        asked = self._asked(given, given.read())
        if isinstance(asked, Answer):
            return self._made(asked)
        response = self._transport.handle_request(self._sent(asked, given))
        try:
            return self._answered(asked, response)
        except BaseException:
            response.close()  # else nobody would
            raise

    def _answered(self, asked: Asked, response: Any) -> Response:
        fault = self._fault(response)
        if fault is not None:
            try:
                if response.status_code < 400:
                    return self._made(fault)
                body = _first(response.iter_bytes())
                return self._made(relayed_error(self._vendor, response.status_code, response.headers.raw, body))
            finally:
                response.close()
        stream = translate_stream(response, to=self._vendor, include_usage=asked.include_usage)
        if asked.stream:
            return self._streamed(response, stream)
        with stream:
            folder = Folder(self._vendor)
            for written in stream:
                folder.feed(written)
            return self._whole(folder, stream, response.headers.raw)


class AsyncTranslating(AsyncWrapping, _Translating[Request, Response]):
    """As ``Translating``, asynchronous."""

    async def handle_async_request(self, request: Request) -> Response:
        given: Any = request
        asked = self._asked(given, await given.aread())
        if isinstance(asked, Answer):
            return self._made(asked)
        response = await self._transport.handle_async_request(self._sent(asked, given))
        try:
            return await self._answered(asked, response)
        except BaseException:
            await response.aclose()  # else nobody would
            raise

    async def _answered(self, asked: Asked, response: Any) -> Response:
        fault = self._fault(response)
        if fault is not None:
            try:
                if response.status_code < 400:
                    return self._made(fault)
                body = await _afirst(response.aiter_bytes())
                return self._made(relayed_error(self._vendor, response.status_code, response.headers.raw, body))
            finally:
                await response.aclose()
        stream = atranslate_stream(response, to=self._vendor, include_usage=asked.include_usage)
        if asked.stream:
            return self._streamed(response, stream)
        async with stream:
            folder = Folder(self._vendor)
            async for written in stream:
                folder.feed(written)
            return self._whole(folder, stream, response.headers.raw)


def _first(chunks: Iterator[bytes]) -> bytes:
    """As much of a body as is read of an error."""
    found = b""
    for chunk in chunks:
        found += chunk[: MAX_ERROR_SIZE - len(found)]
        if len(found) == MAX_ERROR_SIZE:
            break
    return found


async def _afirst(chunks: AsyncIterator[bytes]) -> bytes:
    found = b""
    async for chunk in chunks:
        found += chunk[: MAX_ERROR_SIZE - len(found)]
        if len(found) == MAX_ERROR_SIZE:
            break
    return found


def _ascii(text: str) -> bytes:
    """A header of ours; raises ValueError where HTTP has no way to say it (RFC 9110, section 5.5)."""
    return text.encode("ascii")
