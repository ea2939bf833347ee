"""The choice between the twins: the only module that knows which one is loaded.

``LLMSTREAM_IMPLEMENTATION`` is ``auto`` (the compiled one, the Python one where it was not built),
``cython`` or ``python``. A compiled one that is there and does not load is an error, but for one case: the
extension belongs to one interpreter of a process, and under ``auto`` the others take the Python twin, with a
RuntimeWarning.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from ._writer_py import content_delta, quoted

_choice = os.environ.get("LLMSTREAM_IMPLEMENTATION") or "auto"
if _choice not in ("auto", "cython", "python"):
    raise ImportError(f"LLMSTREAM_IMPLEMENTATION={_choice}: use auto, cython or python")

implementation: Literal["cython", "python"] = "python"
if not TYPE_CHECKING and _choice != "python":
    try:
        import llmstream._parser  # noqa: F401 (is it there, and does it load?)

        implementation = "cython"
    except ModuleNotFoundError as error:
        if _choice == "cython" or error.name != "llmstream._parser":
            raise
    except ImportError as error:
        # The first is Cython's word for it, the second the interpreter's.
        if _choice == "cython" or not any(words in str(error) for words in ("Interpreter change", "subinterpreters")):
            raise
        import warnings

        warnings.warn(
            "the compiled twin belongs to another interpreter of this process: this one has the Python twin",
            RuntimeWarning,
            stacklevel=2,
        )

if TYPE_CHECKING or implementation == "python":
    from ._parser_py import (
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
        _rebuild,
    )
else:
    from ._parser import (
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
        _rebuild,
    )


def __getattr__(name: str) -> object:
    # What only a producer needs is imported when it is asked for.
    if name not in ("content_delta", "quoted"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_writer(), name)
    return found


def _writer() -> object:
    from importlib import import_module

    if implementation == "cython":
        try:
            return import_module("llmstream._writer")
        except ModuleNotFoundError as error:
            if _choice == "cython" or error.name != "llmstream._writer":
                raise
    from . import _writer_py

    return _writer_py


__all__ = [
    "ContentDelta",
    "ContentStop",
    "Event",
    "Parser",
    "SSEDecoder",
    "ServerSentEvent",
    "StreamEnd",
    "StreamError",
    "StreamStart",
    "ToolCall",
    "UnknownEvent",
    "Usage",
    "Violation",
    "_rebuild",
    "content_delta",
    "implementation",
    "quoted",
]
