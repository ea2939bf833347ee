"""For httpx: the EventSource of httpx-sse, and transports that observe a stream or translate it (extra ``httpx``).

``llmstream.iter_events(response)`` reads a response of httpx without any of this.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager

import httpx

from .http import events, observing, translating
from .http.events import ServerSentEvent
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


class SSEError(httpx.TransportError):
    """A response is no event stream, or one of its events is larger than allowed."""


class EventSource(events.EventSource[httpx.Response, ServerSentEvent]):
    __doc__ = events.EventSource.__doc__
    _SSEError = SSEError
    _make = ServerSentEvent


@contextmanager
def connect_sse(
    client: httpx.Client, method: str, url: httpx.URL | str, **kwargs: Any
) -> Generator[EventSource, None, None]:
    """The events of a response to a request that asks for them; the response is closed at the end of the ``with``. The
    keywords are those of ``client.stream``."""
    headers = events.with_sse_headers(httpx.Headers(kwargs.pop("headers", None)))
    with client.stream(method, url, headers=headers, **kwargs) as response:
        yield EventSource(response)


@asynccontextmanager
async def aconnect_sse(
    client: httpx.AsyncClient, method: str, url: httpx.URL | str, **kwargs: Any
) -> AsyncGenerator[EventSource, None]:
    """As ``connect_sse``, asynchronous."""
    headers = events.with_sse_headers(httpx.Headers(kwargs.pop("headers", None)))
    async with client.stream(method, url, headers=headers, **kwargs) as response:
        yield EventSource(response)


class _Tapped(observing.Tapped, httpx.SyncByteStream): ...


class _AsyncTapped(observing.AsyncTapped, httpx.AsyncByteStream): ...


class ObservingTransport(observing.Observing[httpx.Request, httpx.Response], httpx.BaseTransport):
    __doc__ = observing.Observing.__doc__
    _Tapped = _Tapped


class AsyncObservingTransport(observing.AsyncObserving[httpx.Request, httpx.Response], httpx.AsyncBaseTransport):
    __doc__ = observing.AsyncObserving.__doc__
    _Tapped = _AsyncTapped


class _Translated(translating.Translated, httpx.SyncByteStream): ...


class _AsyncTranslated(translating.AsyncTranslated, httpx.AsyncByteStream): ...


class TranslatingTransport(translating.Translating[httpx.Request, httpx.Response], httpx.BaseTransport):
    __doc__ = translating.Translating.__doc__
    _Request = httpx.Request
    _Response = httpx.Response
    _Translated = _Translated


class AsyncTranslatingTransport(translating.AsyncTranslating[httpx.Request, httpx.Response], httpx.AsyncBaseTransport):
    __doc__ = translating.AsyncTranslating.__doc__
    _Request = httpx.Request
    _Response = httpx.Response
    _Translated = _AsyncTranslated
