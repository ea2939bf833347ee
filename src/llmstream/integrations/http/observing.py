"""Transports that read along with a response and change none of its bytes."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

from .taps import GuardedTap, observe_streams, tell
from .wrapping import AsyncWrapping, Wrapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import Any, ClassVar

    from .taps import Tap

__all__ = ["AsyncObserving", "AsyncTapped", "Observing", "Tapped"]

Request = TypeVar("Request")
Response = TypeVar("Response")


class Tapped:
    """A response's body: the chunks of the library's stream, each shown to a tap and handed on as it is."""

    def __init__(self, stream: Any, tap: GuardedTap) -> None:
        self._stream = stream
        self._tap = tap

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._stream:
                self._tap.feed(chunk)
                yield chunk
        finally:
            self._tap.close()

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._tap.close()


class AsyncTapped:
    """As ``Tapped``, asynchronous."""

    def __init__(self, stream: Any, tap: GuardedTap) -> None:
        self._stream = stream
        self._tap = tap

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                self._tap.feed(chunk)
                yield chunk
        finally:
            self._tap.close()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._tap.close()


class _Observing(Generic[Request, Response]):
    _Tapped: ClassVar[type[Tapped | AsyncTapped]]

    def __init__(
        self,
        transport: Any,
        observe: Callable[[Request, Response], Tap | None] = observe_streams,
        *,
        on_end: Callable[[Request, Response, Any], object] | None = None,
    ) -> None:
        self._transport = transport
        self._observe = observe
        self._on_end = on_end

    def _tapped(self, request: Request, response: Response) -> Response:
        open_response: Any = response
        encoding = open_response.headers.get("content-encoding", "").strip().lower()
        encoding = "" if encoding == "identity" else encoding
        is_whole = open_response.is_closed
        if not is_whole and not GuardedTap.reads(encoding):
            return response
        try:
            tap = self._observe(request, response)
        except Exception as error:  # noqa: BLE001 (whatever it is, the stream goes on)
            tell(error)
            return response
        if tap is None:
            return response
        on_end = None if self._on_end is None else partial(self._on_end, request, response)
        guarded = GuardedTap(tap, on_end, "" if is_whole else encoding)
        if is_whole:  # its body was in memory, decoded, before anybody could read along
            with suppress(RuntimeError):  # closed before anybody read it
                guarded.feed(open_response.content)
            guarded.close()
        else:
            open_response.stream = self._Tapped(open_response.stream, guarded)
        return response


class Observing(Wrapping, _Observing[Request, Response]):
    """Hands every request to ``transport``, and shows the bytes of each response to a tap as they pass.

    ``transport``  the transport that does the work
    ``observe``    called with the request and the response when its headers have come; gives an object with
                   ``feed(chunk)`` and ``close()``: an ``Observer``, an ``EventTap``, a ``TextTap``, anything; or None,
                   for a response that nobody reads along with. By default an ``Observer`` for streams
    ``on_end``     called once with the request, the response and what the tap's ``close`` returned, when the body has
                   ended, failed or been closed

    Chunks, headers, extensions and errors reach the client as they are, at once; bodies of gzip and deflate reach the
    tap decompressed, those of other codings are left alone. What these functions raise is logged and goes no further;
    they shall not block.
    """

    def handle_request(self, request: Request) -> Response:
        return self._tapped(request, self._transport.handle_request(request))


class AsyncObserving(AsyncWrapping, _Observing[Request, Response]):
    """As ``Observing``, asynchronous; the functions are not: they are called on the event loop."""

    async def handle_async_request(self, request: Request) -> Response:
        return self._tapped(request, await self._transport.handle_async_request(request))
