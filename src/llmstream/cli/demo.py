"""Play a bundled stream live, print what was found in it, and the speed on this machine."""

from __future__ import annotations

import json
from time import sleep

from .. import ContentDelta, LLMStreamError, Parser, ToolCall, __version__, implementation
from ..result import Collector, StreamResult
from ..stream import END, read_events
from .speed import EVENTS, OURS, measure
from .terminal import colourful, harmless, say, write
from .verdict import verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "play a bundled stream, and measure the speed on this machine"
COMMON = ("format", "strict")

SECONDS = 2.5
"""How long the stream plays."""
CUTS = 250
"""Into how many chunks it is cut, wherever that happens to be."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command: none."""


def run(found: argparse.Namespace) -> int:
    """The command; returns its exit status."""
    from importlib.resources import files  # slow to import, and only needed here

    stream = (files("llmstream") / "demo" / "answer.sse").read_bytes()
    parser = Parser("auto", strict=found.strict)
    collector = Collector()
    player = _Player(parser, collector, live=found.format == "text")
    player.title(f"llmstream {__version__} ({implementation}): {len(stream)} bytes, played live")
    fault = player.play(stream)
    result = collector.result(parser)
    status, words = verdict(parser, fault)
    speeds = measure(player.texts or ["?"])
    if found.format == "json":
        write(json.dumps(_object(result, parser, player.events, speeds)) + "\n")
    else:
        player.title("What was found")
        for name, value in _findings(result, parser, player.events):
            write(f"{name:14}  {harmless(value)}\n")
        player.title(f"Speed here: {EVENTS} such events in chunks of 16 KiB, best of some rounds, next to {OURS!r}")
        for line in _comparison(speeds):
            write(line + "\n")
    if status:
        say(f"demo: {words}")
    return status


class _Player:
    def __init__(self, parser: Parser, collector: Collector, *, live: bool) -> None:
        self.parser = parser
        self.collector = collector
        self.live = live
        self.events = 0
        self.texts: list[str] = []

    def title(self, words: str) -> None:
        bold, plain = ("\x1b[1m", "\x1b[22m") if colourful() else ("", "")
        if self.live:
            write(f"\n{bold}{words}{plain}\n\n")

    def play(self, stream: bytes) -> LLMStreamError | None:
        size = len(stream) // CUTS + 1
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        for chunk in (*chunks, END):
            events, fault = read_events(self.parser, chunk)
            self.events += len(events)
            self.collector.extend(events)
            for event in events:
                if isinstance(event, ContentDelta):
                    self.texts.append(event.text)
                    if self.live:
                        write(harmless(event.text))
                elif isinstance(event, ToolCall) and self.live:
                    write(f"\n-> {harmless(f'{event.name}({event.arguments})')}\n")
            if fault is not None:
                return fault
            if self.live:
                sleep(SECONDS / len(chunks))
        return None


def _findings(result: StreamResult, parser: Parser, events: int) -> list[tuple[str, str]]:
    usage = result.usage
    tokens = f"{usage.input_tokens} in, {usage.output_tokens} out" if usage else "none"
    gaps = ", ".join(f"{first} to {last}" for first, last in result.gaps) or "none"
    return [
        ("events", str(events)),
        ("text", f"{len(result.text)} characters"),
        ("tool calls", ", ".join(call.name or "?" for call in result.tool_calls) or "none"),
        ("model", result.model or "none"),
        ("tokens", tokens),
        ("stop", ", ".join(result.stop_reasons.values()) or "none"),
        ("seq", f"0 to {parser.next_seq - 1}, gaps: {gaps}"),
        ("end", "complete" if result.complete else "cut"),
        ("violations", str(result.violation_count)),
        ("dialect", result.dialect),
        ("implementation", _implementation()),
    ]


def _implementation() -> str:
    """Which it is; of the slow one also why."""
    if implementation != "python":
        return implementation
    from importlib.util import find_spec

    if find_spec("llmstream._parser") is None:
        return "python (slower: it was installed without the extension, which needs a C compiler or a wheel)"
    return "python (slower: the extension is there, and is not used in this process)"


def _comparison(speeds: dict[str, float]) -> list[str]:
    longest = max(map(len, speeds))
    lines = [f"{name:{longest}}  {seconds * 1e9:7.0f} ns an event" for name, seconds in speeds.items()]
    return [
        f"{line}  {_factor(seconds / speeds[OURS])}".rstrip()
        for line, seconds in zip(lines, speeds.values(), strict=True)
    ]


def _factor(times: float) -> str:
    """What ``times`` the time is in words; for 1.0, which it is to itself, nothing."""
    if times == 1:
        return ""
    return f"{times:6.1f} times slower" if times > 1 else f"{1 / times:6.1f} times faster"


def _object(result: StreamResult, parser: Parser, events: int, speeds: dict[str, float]) -> dict[str, object]:
    usage = result.usage
    return {
        "implementation": implementation,
        "dialect": result.dialect,
        "events": events,
        "text_length": len(result.text),
        "tool_calls": len(result.tool_calls),
        "model": result.model,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "gaps": [list(gap) for gap in result.gaps],
        "complete": result.complete,
        "violations": result.violation_count,
        "shape_hits": parser.shape_hits,
        "nanoseconds_per_event": {name: round(value * 1e9) for name, value in speeds.items()},
    }
