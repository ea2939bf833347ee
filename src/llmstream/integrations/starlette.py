"""A stream as the response of a Starlette or FastAPI endpoint (extra ``asgi``)."""

from __future__ import annotations

from starlette.responses import (  # type: ignore[import-not-found, unused-ignore]
    Response,  # pyright: ignore[reportMissingImports]
)

from . import asgi

__all__ = ["EventStreamResponse"]


class EventStreamResponse(asgi.EventStreamResponse, Response):  # type: ignore[misc, unused-ignore]
    """``llmstream.integrations.asgi.EventStreamResponse`` as a Response: an endpoint returns it, names it as its return
    type or ``response_class``, and sets cookies and headers on it. ``background`` may be a BackgroundTask."""

    media_type = "text/event-stream"
    charset = "utf-8"
