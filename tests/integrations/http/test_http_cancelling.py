"""What stands between httpx and its user, cancelled at every await: the response is closed once, and a tap is told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from test_httpx_translating import asked

from faulty_streams import item, items
from stepping import Tick, drive, everywhere, generators
from streams import BODY, EVENTS

STREAM = {"content-type": "text/event-stream"}


class Endpoint:
    """A transport whose every await is one step."""

    def __init__(self, library: Any) -> None:
        self.begun = self.ended = self.closed = 0
        self._library = library

    async def handle_async_request(self, request: Any) -> Any:
        endpoint, library = self, self._library

        class Body(library.AsyncByteStream):  # type: ignore[name-defined,misc]
            async def __aiter__(self) -> Any:
                try:
                    for event in EVENTS:
                        await Tick()
                        yield event
                finally:
                    endpoint.ended += 1

            async def aclose(self) -> None:
                endpoint.closed += 1
                await Tick()

        await Tick()
        self.begun += 1
        return library.Response(200, headers=STREAM, stream=Body())

    async def aclose(self) -> None:
        await Tick()

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *fault: object) -> None:
        await self.aclose()


class Reading:
    """One reader, what it has found, and what a tap saw of it and said at the end."""

    def __init__(self, library: Any, ours: Any, transport: Any = None) -> None:
        self.endpoint = Endpoint(library)
        self.found: list[Any] = []
        self.seen: list[Any] = []
        self.told: list[Any] = []
        self.library, self.ours = library, ours

    def client(self, transport: Any) -> Any:
        return self.library.AsyncClient(transport=transport, trust_env=False)

    async def event_source(self) -> None:
        async with (
            self.client(self.endpoint) as client,
            self.ours.aconnect_sse(client, "GET", "http://endpoint.invalid") as source,
            contextlib.aclosing(source.aiter_sse()) as events,
        ):
            async for event in events:
                self.found.append(event.data)
                await Tick()

    async def observing(self) -> None:
        tap = self.ours.EventTap(lambda event: self.seen.append(item(event)), "llm-stream")
        transport = self.ours.AsyncObservingTransport(
            self.endpoint, lambda *_: tap, on_end=lambda *found: self.told.append(found[2])
        )
        async with self.client(transport) as client, client.stream("GET", "http://endpoint.invalid") as response:
            async for chunk in response.aiter_bytes():
                self.found.append(chunk)
                await Tick()

    async def translating(self) -> None:
        transport = self.ours.AsyncTranslatingTransport(self.endpoint, "http://endpoint.invalid", "openai")
        path, body = asked("openai", True)
        async with (
            self.client(transport) as client,
            client.stream("POST", f"http://vendor.invalid{path}", content=json.dumps(body)) as response,
        ):
            async for chunk in response.aiter_bytes():
                self.found.append(chunk)
                await Tick()

    async def answer(self) -> None:
        transport = self.ours.AsyncTranslatingTransport(self.endpoint, "http://endpoint.invalid", "openai")
        path, body = asked("openai", False)
        async with self.client(transport) as client:
            response = await client.post(f"http://vendor.invalid{path}", content=json.dumps(body))
            self.found.append(response.json()["choices"][0]["message"]["content"])
            await Tick()


READERS: dict[str, Callable[[Reading], Any]] = {
    "EventSource": Reading.event_source,
    "observing": Reading.observing,
    "translating": Reading.translating,
    "a whole answer": Reading.answer,
}


@pytest.mark.parametrize("reader", READERS)
def test_cancelled_anywhere(llmstream: Any, library: Any, ours: Any, reader: str) -> None:
    whole = Reading(library, ours)
    drive(READERS[reader](whole))
    assert whole.found
    assert reader != "observing" or b"".join(whole.found) == BODY

    def check(at: int, again: int) -> tuple[int, int]:
        one = Reading(library, ours)
        with generators() as dropped:
            steps = drive(READERS[reader](one), at, again)
            while dropped:  # httpx leaves its own to the loop
                drive(dropped.pop().aclose())
        endpoint = one.endpoint
        assert endpoint.closed >= endpoint.begun
        assert endpoint.closed <= endpoint.begun + 1  # httpx closes again what it has closed
        assert endpoint.ended <= endpoint.begun
        if reader != "translating":
            assert one.found == whole.found[: len(one.found)]
        if reader == "observing" and endpoint.begun:
            (parser,) = one.told
            assert one.seen == items(len(one.seen))
            assert parser.complete == (len(one.seen) == len(EVENTS))
        return steps

    assert everywhere(check) > len(EVENTS)
