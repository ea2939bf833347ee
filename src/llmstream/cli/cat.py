"""Print the text of a stream as it arrives; with --format json its events, one object a line."""

from __future__ import annotations

import json
import sys

from .. import ContentDelta, LLMStreamError
from ..stream import END, read_events, read_text
from .inputs import Input
from .options import make_parser
from .terminal import colourful, harmless, say, write
from .verdict import STATUSES, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from .. import Event, Parser

HELP = "print the text as it arrives"
COMMON = ("dialect", "format", "strict", "max_event_size")
EPILOG = STATUSES.format(more="")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: standard input, also as -")
    parser.add_argument("--reasoning", action="store_true", help="print what the model thought too")


def run(found: argparse.Namespace) -> int:
    """The command; returns its exit status."""
    parser = make_parser(found)
    with Input(found.file) as source:
        if found.format == "json":
            fault = _print_events(source, parser)
        else:
            fault = _print_text(source, parser, found.reasoning)
    status, words = verdict(parser, fault, source)
    if status:
        say(f"{source.label}: {words}")
    return status


def _print_events(source: Input, parser: Parser) -> LLMStreamError | None:
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    encode = json.JSONEncoder(ensure_ascii=not is_unicode).encode
    for chunk in _and_end(source):
        events, fault = read_events(parser, chunk)
        lines = [encode(_members(event)) + "\n" for event in events]
        if lines:
            sys.stdout.write("".join(lines))
            sys.stdout.flush()
        if fault is not None:
            return fault
    return None


def _members(event: Event) -> dict[str, Any]:
    members: dict[str, Any] = {"type": event.type, "seq": event.seq}
    names: tuple[str, ...] = event.__match_args__
    for name in names:
        value = getattr(event, name)
        if value is not None:
            members[name] = value
    extensions = event.extensions
    if extensions:
        members["extensions"] = extensions
    return members


def _print_text(source: Input, parser: Parser, with_reasoning: bool) -> LLMStreamError | None:
    both = _Both(parser) if with_reasoning else None
    last = "\n"
    found: LLMStreamError | None = None
    for chunk in _and_end(source):
        if both is None:
            texts, found = read_text(parser, chunk)
            text = harmless("".join(texts))
        else:
            events, found = read_events(parser, chunk)
            text = both.text_of(events)
        if text:
            write(text)
            last = text[-1]
        if found is not None:
            break
    if last != "\n" and sys.stdout.isatty():
        write("\n")
    return found


class _Both:
    """Reasoning and text of the primary answer in order of arrival, an empty line between one and the other."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._thinks: bool | None = None
        self._marks = ("\x1b[2m", "\x1b[22m") if colourful() else ("", "")

    def text_of(self, events: list[Event]) -> str:
        pieces: list[str] = []
        for event in events:
            if isinstance(event, ContentDelta) and not (self._parser.alternatives and event.index):
                if event.reasoning:
                    dim, plain = self._marks
                    pieces += [self._turn(True), dim, harmless(event.reasoning), plain]
                if event.text:
                    pieces += [self._turn(False), harmless(event.text)]
        return "".join(pieces)

    def _turn(self, thinks: bool) -> str:
        is_turn = self._thinks is not None and self._thinks is not thinks
        self._thinks = thinks
        return "\n\n" if is_turn else ""


def _and_end(source: Input) -> Iterator[Any]:
    yield from source
    yield END
