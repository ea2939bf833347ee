"""Server-Sent Events of a response: the ``EventSource`` of httpx-sse over the decoder of llmstream.

Names, fields and errors are those of httpx-sse 0.4.3 and of httpx2's EventSource; what is an event, is what WHATWG
HTML, section 9.2, says.
"""

from __future__ import annotations

import json
import sys
from typing import Generic, TypeVar

from ..._backend import SSEDecoder
from ...errors import EventTooLargeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
    from typing import Any, ClassVar

    from ..._backend import ServerSentEvent as Decoded

__all__ = ["DEFAULT_MAX_EVENT_SIZE", "EventSource", "ServerSentEvent", "with_sse_headers"]

DEFAULT_MAX_EVENT_SIZE = 16 * 2**20
"""Bytes of one event; the whole arguments of a tool call are one (draft, section 5.3.4)."""

Response = TypeVar("Response")
Made = TypeVar("Made")


class ServerSentEvent:
    """One event: ``event`` ("message" where the stream names none), ``data``, ``id`` (the last event id, kept from
    event to event, "" for none) and ``retry`` (milliseconds, of this block only, else None)."""

    __slots__ = ("_data", "_event", "_id", "_retry")

    def __init__(
        self, event: str | None = None, data: str | None = None, id: str | None = None, retry: int | None = None
    ) -> None:
        self._event = event or "message"
        self._data = data or ""
        self._id = id or ""
        self._retry = retry

    @property
    def event(self) -> str:
        return self._event

    @property
    def data(self) -> str:
        return self._data

    @property
    def id(self) -> str:
        return self._id

    @property
    def retry(self) -> int | None:
        return self._retry

    def json(self) -> Any:
        """The data as the standard library reads JSON; raises json.JSONDecodeError, as httpx-sse does."""
        return json.loads(self._data)

    def __repr__(self) -> str:
        pieces = [f"event={self._event!r}"]
        pieces += [f"data={self._data!r}"] if self._data else []
        pieces += [f"id={self._id!r}"] if self._id else []
        pieces += [f"retry={self._retry!r}"] if self._retry is not None else []
        return f"ServerSentEvent({', '.join(pieces)})"


class EventSource(Generic[Response, Made]):
    """The events of a response, as they arrive.

    ``max_event_size``  bytes that one event may hold, None for any number; more raises SSEError

    ``iter_sse`` and iteration are for synchronous clients, ``aiter_sse`` and asynchronous iteration for others; they
    raise SSEError where the Content-Type is not that of an event stream, and what reading the response raises. As with
    httpx-sse the response belongs to whoever opened it: it is closed at the end of its body and by its ``with``.
    """

    _SSEError: ClassVar[Callable[..., Exception]]
    _make: ClassVar[Callable[..., Any]]

    def __init__(self, response: Response, max_event_size: int | None = DEFAULT_MAX_EVENT_SIZE) -> None:
        self._response = response
        self._max_event_size = sys.maxsize if max_event_size is None else max_event_size
        self._decoder = SSEDecoder(max_event_size=self._max_event_size)

    @property
    def response(self) -> Response:
        """The response that is read."""
        return self._response

    @property
    def last_event_id(self) -> str:
        """What a client that reconnects sends as ``Last-Event-ID``; "" where there is none yet."""
        return self._decoder.last_event_id

    @property
    def retry(self) -> int | None:
        """Milliseconds that a client waits before it reconnects; None where the stream did not say."""
        return self._decoder.retry

    # The loops are written out: a function called for each chunk would cost as much as the decoder.

    def iter_sse(self) -> Iterator[Made]:
        """The events, each as soon as its blank line has come."""
        response: Any = self._begin()
        feed, make = self._decoder.feed, self._make
        fault: Exception | None = None
        for chunk in response.iter_bytes():
            try:
                events: Sequence[Decoded] = feed(chunk)
            except EventTooLargeError as error:
                events, fault = error.events, self._error(str(error))
            for event in events:
                yield make(event.event, event.data, event.id, event.retry)
            if fault is not None:
                raise fault

    async def aiter_sse(self) -> AsyncGenerator[Made, None]:
        """As ``iter_sse``, asynchronous."""
        response: Any = self._begin()
        feed, make = self._decoder.feed, self._make
        fault: Exception | None = None
        chunks = response.aiter_bytes()
        try:
            async for chunk in chunks:
                try:
                    events: Sequence[Decoded] = feed(chunk)
                except EventTooLargeError as error:
                    events, fault = error.events, self._error(str(error))
                for event in events:
                    yield make(event.event, event.data, event.id, event.retry)
                if fault is not None:
                    raise fault
        finally:
            await chunks.aclose()

    def __iter__(self) -> Iterator[Made]:
        return self.iter_sse()

    def __aiter__(self) -> AsyncIterator[Made]:
        return self.aiter_sse()

    def _begin(self) -> Any:
        """The response, if it is an event stream; a body in memory is read from its start again."""
        response: Any = self._response
        content_type, _, _ = response.headers.get("content-type", "").partition(";")
        if "text/event-stream" not in content_type.lower():
            raise self._error(
                f"Expected response header Content-Type to contain 'text/event-stream', got {content_type!r}"
            )
        self._decoder = SSEDecoder(max_event_size=self._max_event_size)
        return response

    def _error(self, message: str) -> Exception:
        response: Any = self._response
        try:
            request = response.request
        except RuntimeError:  # of a response that was made by hand
            request = None
        return self._SSEError(message, request=request)


def with_sse_headers(headers: Any) -> Any:
    """The library's ``Headers`` with what asks for an event stream."""
    headers["Accept"] = "text/event-stream"
    headers["Cache-Control"] = "no-store"
    return headers
