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
from .dialects import Dialect, dialect_for
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .conformance import Checker, Report, check
    from .encoder import Encoder
    from .observer import Observation, Observer
    from .reordering import ReorderBuffer, reorder
    from .request import (
        AudioPart,
        DocumentPart,
        ImagePart,
        Message,
        Parameters,
        Request,
        RequestViolation,
        TextPart,
        Tool,
        UnknownPart,
        check_tool_call,
        screen_tool_calls,
    )
    from .transcoder import Transcoder, atranscode, transcode
    from .translation import (
        Loss,
        StreamTranslator,
        Translated,
        VendorWriter,
        atranslate_stream,
        from_vendor,
        to_vendor,
        translate_stream,
        writer_for,
    )

__all__ = [
    "AudioPart",
    "Checker",
    "ContentDelta",
    "ContentStop",
    "Delta",
    "Dialect",
    "DocumentPart",
    "Encoder",
    "EnvelopeError",
    "Event",
    "EventTooLargeError",
    "ImagePart",
    "IncompleteStreamError",
    "LLMStreamError",
    "LifecycleError",
    "Loss",
    "Message",
    "Observation",
    "Observer",
    "Parameters",
    "Parser",
    "ReorderBuffer",
    "Report",
    "Request",
    "RequestError",
    "RequestViolation",
    "SSEDecoder",
    "SSEError",
    "SequenceError",
    "ServerSentEvent",
    "StreamEnd",
    "StreamError",
    "StreamResult",
    "StreamStart",
    "StreamTranslator",
    "TextPart",
    "Tool",
    "ToolCall",
    "Transcoder",
    "Translated",
    "UnknownEvent",
    "UnknownPart",
    "UpstreamError",
    "Usage",
    "VendorWriter",
    "Violation",
    "__version__",
    "aiter_events",
    "aiter_text",
    "atranscode",
    "atranslate_stream",
    "check",
    "check_tool_call",
    "dialect_for",
    "from_vendor",
    "implementation",
    "iter_events",
    "iter_text",
    "parse",
    "reorder",
    "screen_tool_calls",
    "to_vendor",
    "transcode",
    "translate_stream",
    "writer_for",
]

# What a reader of streams does not need is imported when it is asked for.
_LATER = {
    "Checker": "conformance",
    "Report": "conformance",
    "check": "conformance",
    "Encoder": "encoder",
    "Observation": "observer",
    "Observer": "observer",
    "ReorderBuffer": "reordering",
    "reorder": "reordering",
    "AudioPart": "request",
    "DocumentPart": "request",
    "ImagePart": "request",
    "Message": "request",
    "Parameters": "request",
    "Request": "request",
    "RequestViolation": "request",
    "TextPart": "request",
    "Tool": "request",
    "UnknownPart": "request",
    "check_tool_call": "request",
    "screen_tool_calls": "request",
    "Transcoder": "transcoder",
    "atranscode": "transcoder",
    "transcode": "transcoder",
    "Loss": "translation",
    "StreamTranslator": "translation",
    "Translated": "translation",
    "VendorWriter": "translation",
    "atranslate_stream": "translation",
    "from_vendor": "translation",
    "to_vendor": "translation",
    "translate_stream": "translation",
    "writer_for": "translation",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
