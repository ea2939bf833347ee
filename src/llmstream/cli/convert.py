"""Write a stream of any format as the standard stream (draft-spk-agentproto-llm-stream-00), as it arrives."""

from __future__ import annotations

import sys

from .. import LLMStreamError, Transcoder
from .inputs import Input
from .options import Unusable, make_parser
from .terminal import harmless, say, write
from .verdict import STATUSES, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "write any stream as the standard stream"
COMMON = ("dialect", "strict", "max_event_size")
EPILOG = STATUSES.format(more=", or not all of it has a place in the standard stream")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: standard input, also as -")
    parser.add_argument("--model", metavar="NAME", help="the model, where the stream does not name it")
    parser.add_argument("--request-id", metavar="ID", help="the request's id, to be echoed")
    parser.add_argument("--reasoning", choices=("extensions", "drop"), default="extensions", help="where thoughts go")


def run(found: argparse.Namespace) -> int:
    """The command; returns its exit status."""
    transcoder = _transcoder(found)
    fault: LLMStreamError | None = None
    with Input(found.file) as source:
        try:
            for chunk in source:
                _write(transcoder.feed(chunk))
            _write(transcoder.close())
        except LLMStreamError as error:
            fault = error
            _write(transcoder.close())
        except Unusable:
            _write(transcoder.fail("internal_error", "the input cannot be read"))
            raise
    status, words = verdict(transcoder.parser, fault, source)
    if not (status or transcoder.complete):
        status, words = 1, "not all of it has a place in the standard stream"
    if status:
        say(f"{source.label}: {words}")
    return status


def _transcoder(found: argparse.Namespace) -> Transcoder:
    make_parser(found)  # which says what is wrong with the arguments
    try:
        return Transcoder(
            found.dialect,
            strict=found.strict,
            max_event_size=found.max_event_size,
            model=found.model,
            request_id=found.request_id,
            reasoning=found.reasoning,
        )
    except ValueError as error:  # an argument that is no UTF-8
        raise Unusable(str(error)) from None


def _write(output: bytes) -> None:
    """Puts bytes on standard output at once; a terminal gets no control characters."""
    if not output:
        return
    binary = None if sys.stdout.isatty() else getattr(sys.stdout, "buffer", None)
    if binary is None:
        write(harmless(output.decode()))
        return
    binary.write(output)
    binary.flush()
