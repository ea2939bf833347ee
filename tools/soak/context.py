"""What every way of reading is given: the package, a source of randomness, and where it counts what it read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from .streams import MAX_EVENT_SIZE, Stream

LARGEST = 64 * 1024
"""Bytes of a chunk."""


class MismatchError(Exception):
    """A result is another than it has to be."""


class Context:
    """``events`` and ``bytes`` are what was read so far; ``open`` is how many streams are read at the moment."""

    def __init__(self, package: Any, seed: int) -> None:
        self.package = package
        self.random = random.Random(seed)
        self.events = self.bytes = self.open = 0
        self.thrown = 0
        self._declared: dict[str, Callable[[], Any]] = {
            "signalr": lambda: import_module("llmstream.dialects.signalr").SignalR(text="item.text"),
            "connect": lambda: import_module("llmstream.dialects.connect").Connect(text="message.text"),
        }

    def rarely(self, share: float) -> bool:
        return self.random.random() < share

    def chunks(self, data: bytes) -> Iterator[Any]:
        """The data, cut at random as it is asked for: from single bytes to 64 KiB."""
        # The more bytes, the larger the pieces: one that takes thousands of turns would stay open all the time.
        sizes = (1, 20, LARGEST) if len(data) < 600 else (20, 1000, LARGEST) if len(data) < 6000 else (1000, LARGEST)
        most = self.random.choice(sizes) if len(data) < 100_000 else LARGEST
        kind = self.random.choice((bytes, bytes, bytes, bytearray, memoryview))
        at = 0
        while at < len(data):
            chunk = data[at : at + self.random.randint(1, most)]
            at += len(chunk)
            self.bytes += len(chunk)
            yield kind(chunk)

    def dialect(self, stream: Stream) -> Any:
        if stream.auto and self.rarely(0.3):
            return "auto"
        return self._declared.get(stream.dialect, stream.dialect)

    def options(self, stream: Stream) -> dict[str, Any]:
        """Those that change no result."""
        found: dict[str, Any] = {"dialect": self.dialect(stream), "max_event_size": MAX_EVENT_SIZE}
        if self.rarely(0.1):
            found["shapes"] = False
        if stream.is_whole and self.rarely(0.3):
            found["strict"] = True
        return found

    # Comparing

    def same(self, what: str, expected: Any, found: Any) -> None:
        if expected != found:
            raise MismatchError(f"{what}: {_shown(expected)} expected, {_shown(found)} found")

    def holds(self, what: str, condition: bool) -> None:
        if not condition:
            raise MismatchError(what)

    def fits(self, stream: Stream, result: Any) -> None:
        """A StreamResult is what was written."""
        self.same("text", stream.text, result.text)
        if stream.reasoning is not None:
            self.same("reasoning", stream.reasoning, result.reasoning)
        if stream.calls is not None:
            calls = [(name, json.loads(arguments)) for _, name, arguments in stream.calls]
            self.same("calls", calls, [(call.name, json.loads(call.arguments)) for call in result.tool_calls])
        if stream.usage is not None:
            usage = result.usage
            self.same("usage", stream.usage, usage and (usage.input_tokens, usage.output_tokens))
        self.says(stream, result)
        self.same("error", stream.failed, result.error is not None)

    def says(self, stream: Stream, parser: Any) -> None:
        """The verdict of a parser or of a result."""
        if stream.complete is not None:
            self.same("complete", stream.complete, parser.complete)
        if stream.clean is not None:
            self.same("clean", stream.clean, parser.violation_count == 0)

    def text_of(self, events: list[Any]) -> str:
        self.events += len(events)
        return "".join(event.text for event in events if type(event) is self.package.ContentDelta)


def _shown(value: Any) -> str:
    return f"{value!r:.120} ({len(value)})" if hasattr(value, "__len__") else repr(value)
