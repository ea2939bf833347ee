"""Bytes in, standard events out: a reader for LLM streams."""

from ._backend import (
    ContentDelta,
    ContentStop,
    Event,
    Parser,
    ServerSentEvent,
    SSEDecoder,
    StreamEnd,
    StreamError,
    StreamStart,
    ToolCall,
    UnknownEvent,
    Usage,
    Violation,
    implementation,
)
from ._backend import (
    _rebuild as _rebuild,  # what a pickle of an event calls; named here, either twin can read it
)
from ._version import __version__
from .declaration import Delta
from .dialects import Dialect
from .errors import (
    EnvelopeError,
    EventTooLargeError,
    IncompleteStreamError,
    LifecycleError,
    LLMStreamError,
    RequestError,
    SequenceError,
    SSEError,
    UpstreamError,
)
from .result import StreamResult
from .stream import aiter_events, aiter_text, iter_events, iter_text, parse

__all__ = [
    "ContentDelta",
    "ContentStop",
    "Delta",
    "Dialect",
    "EnvelopeError",
    "Event",
    "EventTooLargeError",
    "IncompleteStreamError",
    "LLMStreamError",
    "LifecycleError",
    "Parser",
    "RequestError",
    "SSEDecoder",
    "SSEError",
    "SequenceError",
    "ServerSentEvent",
    "StreamEnd",
    "StreamError",
    "StreamResult",
    "StreamStart",
    "ToolCall",
    "UnknownEvent",
    "UpstreamError",
    "Usage",
    "Violation",
    "__version__",
    "aiter_events",
    "aiter_text",
    "implementation",
    "iter_events",
    "iter_text",
    "parse",
]
