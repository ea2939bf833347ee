"""Print the text of a stream as it arrives; with --format json its events, one object a line."""

from __future__ import annotations

import json
import sys

from .. import ContentDelta, LLMStreamError
from ..stream import read_events, read_text
from .inputs import Input
from .options import make_parser
from .terminal import colourful, harmless, say, write
from .verdict import verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from .. import Event, Parser

HELP = "print the text as it arrives"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command."""
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="default: standard input, also as -"
    )
    parser.add_argument("--reasoning", action="store_true", help="print what the model thought too")


def run(found: argparse.Namespace) -> int:
    """The command; returns its exit status."""
    parser = make_parser(found)
    with Input(found.file) as source:
        if found.format == "json":
            fault = _print_events(source, parser)
        else:
            fault = _print_text(source, parser, found.reasoning)
    status, words = verdict(parser, fault)
    if status:
        say(f"{source.label}: {words}")
    return status


def _print_events(source: Input, parser: Parser) -> LLMStreamError | None:
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    for chunk in _and_end(source):
        events, fault = read_events(parser, chunk)
        lines = [json.dumps(_members(event), ensure_ascii=plain) + "\n" for event in events]
        if lines:
            sys.stdout.write("".join(lines))
            sys.stdout.flush()
        if fault is not None:
            return fault
    return None


def _members(event: Event) -> dict[str, Any]:
    members: dict[str, Any] = {"type": event.type, "seq": event.seq}
    for name in event.__match_args__:
        value = getattr(event, name)
        if value is not None:
            members[name] = value
    extensions = event.extensions
    if extensions:
        members["extensions"] = extensions
    return members


def _print_text(source: Input, parser: Parser, with_reasoning: bool) -> LLMStreamError | None:
    last = "\n"
    fault: LLMStreamError | None = None
    for piece, fault in (_both if with_reasoning else _text)(source, parser):
        if piece:
            write(piece)
            last = piece[-1]
    if last != "\n" and sys.stdout.isatty():
        write("\n")
    return fault


def _and_end(source: Input) -> Iterator[bytes | None]:
    yield from source
    yield None


def _text(source: Input, parser: Parser) -> Iterator[tuple[str, LLMStreamError | None]]:
    for chunk in _and_end(source):
        texts, fault = read_text(parser, chunk)
        yield harmless("".join(texts)), fault
        if fault is not None:
            return


def _both(source: Input, parser: Parser) -> Iterator[tuple[str, LLMStreamError | None]]:
    """Reasoning and text in order of arrival, an empty line between one and the other."""
    dim, plain = ("\x1b[2m", "\x1b[22m") if colourful() else ("", "")
    thinking: bool | None = None
    for chunk in _and_end(source):
        events, fault = read_events(parser, chunk)
        pieces: list[str] = []
        for event in events:
            if not isinstance(event, ContentDelta) or (parser.alternatives and event.index):
                continue
            for is_thought, piece in ((True, event.reasoning), (False, event.text)):
                if piece:
                    if thinking is not None and thinking is not is_thought:
                        pieces.append("\n\n")
                    thinking = is_thought
                    shown = harmless(piece)
                    pieces.append(f"{dim}{shown}{plain}" if is_thought else shown)
        yield "".join(pieces), fault
        if fault is not None:
            return
