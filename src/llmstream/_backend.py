"""The choice between the twins: the only module that knows which one is loaded.

``LLMSTREAM_IMPLEMENTATION`` is ``auto`` (the compiled one, the Python one where it was not built),
``cython`` or ``python``. A compiled one that is there and does not load is an error, but for one case: the
extension belongs to one interpreter of a process, and under ``auto`` the others take the Python twin, with a
RuntimeWarning. An error is an ImportError; to the command line, which cannot catch it since the package comes first,
it is one line and exit status 2.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from ._writer_py import content_delta, quoted

_choice = os.environ.get("LLMSTREAM_IMPLEMENTATION") or "auto"


def _is_command() -> bool:
    """Whether this process is ``llmstream`` or ``python -m llmstream`` and not a program that imports the package."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    if name != "-m":  # what it is while the package of a module is imported that is to be run
        return name.removesuffix(".exe") == "llmstream"
    given = sys.orig_argv
    return "-mllmstream" in given or ("-m" in given[:-1] and given[given.index("-m") + 1] == "llmstream")


def _tell_command(words: str) -> None:
    """Ends the process where it is the command line."""
    if _is_command():
        if sys.stderr is not None:
            shown = "".join(character if character.isprintable() else "?" for character in words[:500])
            sys.stderr.write(f"llmstream: {shown}\n")
        raise SystemExit(2)


if _choice not in ("auto", "cython", "python"):
    _words = f"LLMSTREAM_IMPLEMENTATION={_choice}: use auto, cython or python"
    _tell_command(_words)
    raise ImportError(_words)

implementation: Literal["cython", "python"] = "python"
if not TYPE_CHECKING and _choice != "python":
    try:
        import llmstream._parser  # noqa: F401 (is it there, and does it load?)

        implementation = "cython"
    except ModuleNotFoundError as error:
        if error.name != "llmstream._parser":
            _tell_command(f"the extension does not load: {error}")
            raise
        if _choice == "cython":
            _tell_command("LLMSTREAM_IMPLEMENTATION=cython, but the extension was not built here")
            raise
    except ImportError as error:
        # The first is Cython's word for it, the second the interpreter's.
        if _choice == "cython" or not any(words in str(error) for words in ("Interpreter change", "subinterpreters")):
            _tell_command(f"the extension does not load: {error}")
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
