"""Cancelled at every await, and once more at every await after that: all is closed once, and nothing is kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import AsyncGeneratorType
from typing import Any

import pytest

from faulty_streams import item, items, text
from stepping import Tick, drive, everywhere, generators
from streams import CUT, EVENTS, GAP

STREAMS = {
    "whole": EVENTS,
    "cut": [CUT],
    "with a gap": [GAP],
    "two events a chunk": [EVENTS[0] + EVENTS[1], *EVENTS[2:]],
}


class Response:
    """As that of httpx; each of its awaits is one step."""

    headers = ()
    is_closed = False

    def __init__(self, chunks: Any) -> None:
        self.chunks = chunks
        self.begun = 0
        self.ended = 0
        self.closed = 0
        self.handed = 0

    async def aiter_bytes(self) -> Any:
        self.begun += 1
        try:
            for chunk in self.chunks:
                await Tick()
                self.handed += 1
                yield chunk
        finally:
            self.ended += 1
            await Tick()

    async def aclose(self) -> None:
        self.closed += 1
        await Tick()


class Reader:
    """One of our asynchronous iterators over a response; what it has given and, of its parser, what that says."""

    def __init__(self, make: Callable[[Any], Any], take: Callable[[Any], Any], within: bool) -> None:
        self.found: list[Any] = []
        self.complete = False
        self._make = make
        self._take = take
        self._within = within

    async def read(self, response: Response) -> None:
        stream = self._make(response)
        knows = getattr(stream, "transcoder", stream)
        try:
            if self._within:
                async with stream:
                    await Tick()
                    await self._loop(stream)
            else:
                await self._loop(stream)
        finally:
            self.complete = knows.parser.complete

    async def _loop(self, stream: Any) -> None:
        async for found in stream:
            self.found.append(self._take(found))
            await Tick()


def readers(llmstream: Any) -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]:
    return {
        "aiter_events": (llmstream.aiter_events, item),
        "aiter_events, strict": (lambda source: llmstream.aiter_events(source, strict=True), item),
        "aiter_text": (llmstream.aiter_text, str),
        "atranscode": (lambda source: llmstream.atranscode(source, dialect="llm-stream"), bytes),
        "atranslate_stream": (lambda source: llmstream.atranslate_stream(source, to="openai"), bytes),
    }


READERS = ("aiter_events", "aiter_events, strict", "aiter_text", "atranscode", "atranslate_stream")


@pytest.mark.parametrize(("name", "within"), [("whole", False), *((name, True) for name in STREAMS)], ids=str)
@pytest.mark.parametrize("reader", READERS)
def test_cancelled_anywhere(llmstream: Any, reader: str, name: str, within: bool) -> None:
    make, take = readers(llmstream)[reader]
    whole = Reader(make, take, within)
    run(llmstream, whole, Response(STREAMS[name]))

    def check(at: int, again: int) -> tuple[int, int]:
        one, response = Reader(make, take, within), Response(STREAMS[name])
        with generators() as dropped:
            steps = run(llmstream, one, response, at, again)
            if within:
                assert dropped == []
            while dropped:  # what a loop does with them
                drive(dropped.pop().aclose())
        assert response.closed == 1
        assert response.ended == response.begun <= 1
        assert one.found == whole.found[: len(one.found)]
        if name != "with a gap" and reader == "aiter_text":
            assert text(len(EVENTS)).startswith("".join(one.found))
        elif name != "with a gap" and "aiter_events" in reader:
            assert one.found == items(len(one.found))
        assert not one.complete or (whole.complete and response.handed == len(response.chunks))
        return steps

    before = count()
    calls = everywhere(check)
    assert calls > 2 * len(STREAMS[name])
    assert count() == before


def run(llmstream: Any, reader: Reader, response: Response, at: int = 0, again: int = 0) -> tuple[int, int]:
    """Drives a reader; nothing holds on to the response once that is over."""
    coroutine = reader.read(response)
    try:
        return drive(coroutine, at, again)
    except llmstream.LLMStreamError:
        return 0, 0
    finally:
        coroutine.close()


def count() -> int:
    """The responses that something still holds, and the generators over them."""
    gc.collect()
    return sum(type(found) in (Response, AsyncGeneratorType) for found in gc.get_objects())


@pytest.mark.parametrize("reader", READERS)
def test_a_cancelled_reader_is_freed(llmstream: Any, reader: str) -> None:
    """Its parser and its source, without waiting for the collector of cycles."""
    make, take = readers(llmstream)[reader]
    gc.collect()
    gc.disable()
    try:
        for at in range(1, 2 * len(EVENTS)):
            one, response = Reader(make, take, within=True), Response(EVENTS)
            kept = weakref.ref(response)
            run(llmstream, one, response, at)
            del response
            assert kept() is None
    finally:
        gc.enable()


def test_encoding_is_cancelled_anywhere(llmstream: Any) -> None:
    def check(at: int, again: int) -> tuple[int, int]:
        response, found = Response(EVENTS), []

        async def main() -> None:
            async with llmstream.aiter_events(response) as events:
                async for data in llmstream.Encoder().aencode_events(events):
                    found.append(data)
                    await Tick()

        with generators() as dropped:
            steps = drive(main(), at, again)
            while dropped:
                drive(dropped.pop().aclose())
        assert response.closed == 1
        assert response.ended == response.begun <= 1
        return steps

    assert everywhere(check) > len(EVENTS)
