"""Read streams and print what is in them, as a table; with --format json one object a file."""

from __future__ import annotations

import json
from time import perf_counter

from .. import ContentDelta, LLMStreamError, ToolCall
from ..result import Collector
from ..stream import END, read_events
from .inputs import Input
from .options import Unusable, make_parser
from .progress import Progress
from .table import show
from .terminal import say, write
from .verdict import STATUSES, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from .. import Event, Parser

HELP = "print a table of what is in each stream"
COMMON = ("dialect", "format", "strict", "max_event_size")
EPILOG = STATUSES.format(more="") + " Of several files, the highest."

NUMBERS = frozenset({"events", "text", "reasoning", "in", "out", "tools", "lost", "violations", "bytes", "MB/s"})


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command."""
    parser.add_argument("files", nargs="*", default=["-"], metavar="FILE", help="default: standard input, also as -")


def run(found: argparse.Namespace) -> int:
    """The command; returns its exit status, the worst of all files."""
    make_parser(found)  # arguments that are wrong are wrong once, not for each file
    worst = 0
    rows: list[dict[str, str]] = []
    for name in found.files:
        try:
            with Input(name) as source:
                parser = make_parser(found)
                tally, fault = _read(source, parser)
        except Unusable as error:
            say(str(error))
            worst = 2
            continue
        status, words = verdict(parser, fault, source)
        worst = max(worst, status)
        if status == 2 or fault is not None:
            say(f"{source.label}: {words}")
        facts = _facts(source, parser, tally, status)
        if found.format == "json":
            write(json.dumps(facts) + "\n")
        else:
            rows.append(_row(facts))
    if rows:
        show(list(rows[0]), [list(row.values()) for row in rows], NUMBERS)
    return worst


class Count:
    """A number for all indexes, and for index 0 alone: only in the end it is known which counts."""

    __slots__ = ("all", "first")

    def __init__(self) -> None:
        self.all = self.first = 0

    def add(self, number: int, index: int) -> None:
        self.all += number
        if not index:
            self.first += number

    def of(self, parser: Parser) -> int:
        return self.first if parser.alternatives else self.all


class Tally(Collector):
    """What a stream said, with numbers in place of texts and tool calls: memory stays flat over
    any input."""

    __slots__ = ("calls", "events", "reasoning", "seconds", "text")

    def __init__(self) -> None:
        super().__init__()
        self.events = 0
        self.seconds = 0.0
        self.text = Count()
        self.reasoning = Count()
        self.calls = Count()

    def count(self, events: list[Event]) -> None:
        """Takes events in."""
        self.events += len(events)
        for event in events:
            if isinstance(event, ContentDelta):
                self.text.add(len(event.text), event.index)
                if event.reasoning:
                    self.reasoning.add(len(event.reasoning), event.index)
            elif isinstance(event, ToolCall):
                self.calls.add(1, event.index)
            else:
                self.add(event)


def _read(source: Input, parser: Parser) -> tuple[Tally, LLMStreamError | None]:
    tally = Tally()
    with Progress(source) as progress:
        for chunk in source:
            fault = _step(parser, chunk, tally)
            progress.update()
            if fault is not None:
                return tally, fault
        return tally, _step(parser, END, tally)


def _step(parser: Parser, chunk: Any, tally: Tally) -> LLMStreamError | None:
    start = perf_counter()
    events, fault = read_events(parser, chunk)
    tally.count(events)
    tally.seconds += perf_counter() - start
    return fault


def _facts(source: Input, parser: Parser, tally: Tally, status: int) -> dict[str, Any]:
    result = tally.result(parser)
    usage, error = result.usage, result.error
    return {
        "file": source.name,
        "dialect": result.dialect,
        "events": tally.events,
        "text_length": tally.text.of(parser),
        "reasoning_length": tally.reasoning.of(parser),
        "model": result.model,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "tool_calls": tally.calls.of(parser),
        "stop_reasons": {str(index): word for index, word in result.stop_reasons.items()},
        "vendor_stop_reasons": {str(index): word for index, word in result.vendor_stop_reasons.items()},
        "gaps": [list(gap) for gap in result.gaps],
        "complete": result.complete,
        "error": (error.code or "") if error else None,
        "violations": result.violation_count,
        "bytes": source.position,
        "seconds": round(tally.seconds, 6),
        "bytes_per_second": round(source.position / tally.seconds) if tally.seconds else None,
        "status": status,
    }


def _row(facts: dict[str, Any]) -> dict[str, str]:
    stops = facts["stop_reasons"]
    end = "complete" if facts["complete"] else "cut"
    speed = facts["bytes_per_second"]
    return {
        "file": facts["file"],
        "dialect": facts["dialect"],
        "events": str(facts["events"]),
        "text": str(facts["text_length"]),
        "reasoning": str(facts["reasoning_length"]),
        "model": _or_dash(facts["model"]),
        "in": _or_dash(facts["input_tokens"]),
        "out": _or_dash(facts["output_tokens"]),
        "tools": str(facts["tool_calls"]),
        "stop": ",".join(dict.fromkeys(stops.values())) or "-",
        "lost": str(sum(last - first + 1 for first, last in facts["gaps"])),
        "end": end if facts["error"] is None else f"{end}, error {facts['error']}".rstrip(),
        "violations": str(facts["violations"]),
        "bytes": str(facts["bytes"]),
        "MB/s": "-" if speed is None else f"{speed / 1e6:.1f}",
    }


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)
