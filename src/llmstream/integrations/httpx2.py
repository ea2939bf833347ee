"""For httpx2: its EventSource, with the names of httpx-sse too, and transports that observe a stream or translate it
(extra ``httpx2``).

``llmstream.iter_events(response)`` reads a response of httpx2 without any of this.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager

import httpx2
from httpx2 import ServerSentEvent, SSEError

from .http import events, observing, translating
from .http.taps import EventTap, TextTap, observe_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import Any

__all__ = [
    "AsyncObservingTransport",
    "AsyncTranslatingTransport",
    "EventSource",
    "EventTap",
    "ObservingTransport",
    "SSEError",
    "ServerSentEvent",
    "TextTap",
    "TranslatingTransport",
    "aconnect_sse",
    "connect_sse",
    "observe_streams",
]


class EventSource(events.EventSource[httpx2.Response, ServerSentEvent]):
    __doc__ = events.EventSource.__doc__
    _SSEError = SSEError
    _make = ServerSentEvent


@contextmanager
def connect_sse(
    client: httpx2.Client, method: str, url: httpx2.URL | str, **kwargs: Any
) -> Generator[EventSource, None, None]:
    """The events of a response to a request that asks for them; the response is closed at the end of the ``with``. The
    keywords are those of ``client.stream``."""
    headers = events.with_sse_headers(httpx2.Headers(kwargs.pop("headers", None)))
    with client.stream(method, url, headers=headers, **kwargs) as response:
        yield EventSource(response)


@asynccontextmanager
async def aconnect_sse(
    client: httpx2.AsyncClient, method: str, url: httpx2.URL | str, **kwargs: Any
) -> AsyncGenerator[EventSource, None]:
    """As ``connect_sse``, asynchronous."""
    headers = events.with_sse_headers(httpx2.Headers(kwargs.pop("headers", None)))
    async with client.stream(method, url, headers=headers, **kwargs) as response:
        yield EventSource(response)


class _Tapped(observing.Tapped, httpx2.SyncByteStream): ...


class _AsyncTapped(observing.AsyncTapped, httpx2.AsyncByteStream): ...


class ObservingTransport(observing.Observing[httpx2.Request, httpx2.Response], httpx2.BaseTransport):
    __doc__ = observing.Observing.__doc__
    _Tapped = _Tapped


class AsyncObservingTransport(observing.AsyncObserving[httpx2.Request, httpx2.Response], httpx2.AsyncBaseTransport):
    __doc__ = observing.AsyncObserving.__doc__
    _Tapped = _AsyncTapped


class _Translated(translating.Translated, httpx2.SyncByteStream): ...


class _AsyncTranslated(translating.AsyncTranslated, httpx2.AsyncByteStream): ...


class TranslatingTransport(translating.Translating[httpx2.Request, httpx2.Response], httpx2.BaseTransport):
    __doc__ = translating.Translating.__doc__
    _Request = httpx2.Request
    _Response = httpx2.Response
    _Translated = _Translated


class AsyncTranslatingTransport(
    translating.AsyncTranslating[httpx2.Request, httpx2.Response], httpx2.AsyncBaseTransport
):
    __doc__ = translating.AsyncTranslating.__doc__
    _Request = httpx2.Request
    _Response = httpx2.Response
    _Translated = _AsyncTranslated
