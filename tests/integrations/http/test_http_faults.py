"""Responses of every library over connections that fail, and what stands between a library and its user.

After each fault the same client reads a whole stream: what it held was let go, and nothing of the fault is left in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import logging
import ssl
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from http_libraries import ASYNCHRONOUS, ENVIRONMENT, HTTPX, SYNCHRONOUS, aopened, needed, opened
from test_httpx_translating import asked

from faults import CUT, EITHER, NEVER_OR_ONCE, NEVER_TOLD, STALLED, TIMEOUT, Fault, by_aiohttp, judge
from faulty_server import PATIENCE, FaultyServer, run, serving
from faulty_streams import ANSWERS, HTTP1, HTTP2, ITEMS, PATHS, SECRETS, Gathering, item, items, text

if ENVIRONMENT is None:
    pytest.skip("thousands of connections: only in the environments of this folder", allow_module_level=True)

EVERY = {**HTTP1, **HTTP2}
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which none needs, and which takes time to make
VERSION2 = {"http1": False, "http2": True}
READERS = ("iter_events", "iter_text")
OF_HTTPX = (*READERS, "parse", "EventSource", "observing", "translating", "answer")
NO_TYPE = ("a page", "no content type", "another content type")


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with serving() as found:
        found.answers = ANSWERS
        logging.getLogger("urllib3.connection").disabled = True  # what is logged would be held
        yield found
        logging.getLogger("urllib3.connection").disabled = False
        gc.collect()  # a socket that nobody has closed says so


def cases(libraries: list[str]) -> list[tuple[str, str]]:
    return [(library, name) for library in libraries for name in (EVERY if library in HTTPX else HTTP1)]


def readers(library: str, name: str) -> tuple[str, ...]:
    """Those that are worth the time of a stall."""
    found = OF_HTTPX if library in HTTPX else READERS
    return found[:1] if EVERY[name].verdict == STALLED and "between events" not in name else found


class Reading:
    """One reader of one response: how it asks, what it has found, and whether that is right."""

    def __init__(self, llmstream: Any, library: str, name: str, reader: str, server: FaultyServer) -> None:
        self.llmstream = llmstream
        self.library = library
        self.name = name
        self.reader = reader
        self.fault = self._fault(name)
        self.gives = items if reader in ("iter_events", "EventSource", "observing") else text
        self.url = server.url(PATHS[name], go=reader in ("parse", "answer"))
        self.gathering = Gathering(self.gives, self.fault.events, server.proceed)
        self.outcome = self.gathering.outcome
        self.seen: list[Any] = []  # what a tap saw
        self.told: list[Any] = []  # and said at the end

    def _fault(self, name: str) -> Fault:
        fault = EVERY[name]
        if self.library == "requests" and name == "the end of a chunk is cut":
            return Fault(fault.answer, 3, CUT, fails=True)  # urllib3 gives a chunk when it has seen its end
        if self.library == "aiohttp":
            fault = by_aiohttp(name, fault)
        if name.startswith(NO_TYPE) and self.reader in ("EventSource", "translating", "answer"):
            return Fault(fault.answer, 0, CUT, fails=True)  # which read nothing that does not say that it is a stream
        return fault

    @property
    def patience(self) -> float:
        return TIMEOUT if self.fault.verdict == STALLED or self.is_endless else PATIENCE

    @property
    def is_endless(self) -> bool:
        """Whether the library may wait without end."""
        return self.library == "aiohttp" and self.name in (*NEVER_TOLD, NEVER_OR_ONCE)

    @property
    def module(self) -> Any:
        return importlib.import_module(f"llmstream.integrations.{self.library}")

    def answered(self, response: Any) -> None:
        """The answer of a client that asked for no stream."""
        response.raise_for_status()
        self.outcome.items = response.json()["choices"][0]["message"]["content"]
        self.outcome.complete = True

    def sse(self, event: Any) -> None:
        delta = json.loads(event.data).get("delta")
        self.gathering.event(SimpleNamespace(type=event.event, **({"text": delta["text"]} if delta else {})))
        self.outcome.complete = self.outcome.items == ITEMS

    def check(self) -> None:
        # Of h2, which httpcore hands on as they are, too.
        roots = {self.library, self.library.rstrip("2"), "h2", "llmstream"}

        if self.library == "requests":
            roots |= {"builtins"}  # what http.client raises for a length below 0 or above what fits, it hands on

        def is_known(error: BaseException) -> bool:
            return type(error).__module__.partition(".")[0] in roots or isinstance(error, TimeoutError)

        def is_timeout(error: BaseException) -> bool:
            """The library's, however it says so. Who reads a translated stream is told the vendor's error before."""
            is_told = self.reader == "translating" and isinstance(error, self.llmstream.UpstreamError)
            return is_told or "timeout" in repr([type(error), error.args, error.__cause__, error.__context__]).lower()

        outcome = self.outcome
        # aiohttp refuses bytes after the end, with all that came with them, and tells them in its error.
        is_refused = self.library == "aiohttp" and self.name == "a length that is too short"
        judge(
            self.fault,
            outcome,
            self.gives,
            is_known=is_known,
            is_timeout=is_timeout,
            secrets=() if is_refused else SECRETS,
            exact=not is_refused,
        )
        if not outcome.complete and self.reader in ("iter_text", "translating", "answer"):
            assert outcome.error is not None
        if self.reader == "observing" and self.told:
            (parser,) = self.told
            assert self.seen[: len(outcome.items)] == outcome.items
            assert self.seen == outcome.items or self.fault.verdict == EITHER
            assert parser.complete == (self.seen == ITEMS)
        elif self.reader == "observing":
            assert outcome.items == []  # there was no response

    # Synchronous

    def read(self, get: Any) -> None:
        outcome, gathering = self.outcome, self.gathering
        try:
            if self.reader in ("answer", "parse"):
                outcome.items = None  # all or nothing
            response = get(self)
            if self.reader == "answer":
                self.answered(response)
            elif self.reader == "parse":
                result = self.llmstream.parse(response)
                outcome.items, outcome.complete = result.text, result.complete
            elif self.reader == "EventSource":
                with contextlib.closing(response):
                    gathering.begin()
                    for event in self.module.EventSource(response):
                        self.sse(event)
            elif self.gives is items:
                with self.llmstream.iter_events(response) as events:
                    gathering.begin()
                    for event in events:
                        gathering.event(event)
                outcome.complete = events.parser.complete
            else:
                with contextlib.closing(response):
                    if self.reader == "translating":
                        response.raise_for_status()
                    texts = self.llmstream.iter_text(response, dialect=self.dialect)
                    gathering.begin()
                    for piece in texts:
                        gathering.text(piece)
                outcome.complete = texts.parser.complete
        except Exception as error:  # noqa: BLE001 (it is judged)
            outcome.error = error

    @property
    def dialect(self) -> str:
        return "openai" if self.reader == "translating" else "llm-stream"

    # Asynchronous

    async def aread(self, get: Any) -> None:
        try:
            async with asyncio.timeout(self.patience if self.is_endless else None):
                await self._aread(get)
        except Exception as error:  # noqa: BLE001 (it is judged)
            self.outcome.error = error

    async def _aread(self, get: Any) -> None:
        outcome, gathering = self.outcome, self.gathering
        if self.reader == "answer":
            outcome.items = None
        response = await get(self)
        if self.reader == "answer":
            self.answered(response)
        elif self.reader == "EventSource":
            async with contextlib.aclosing(response):
                gathering.begin()
                async for event in self.module.EventSource(response):
                    self.sse(event)
        elif self.gives is items:
            async with self.llmstream.aiter_events(response) as events:
                gathering.begin()
                async for event in events:
                    gathering.event(event)
            outcome.complete = events.parser.complete
        else:
            if self.reader == "translating" and response.is_error:
                await response.aclose()
                response.raise_for_status()
            async with self.llmstream.aiter_text(response, dialect=self.dialect) as texts:
                gathering.begin()
                async for piece in texts:
                    gathering.text(piece)
            outcome.complete = texts.parser.complete


class Asking:
    """A client of the library, that gets the response for a reading. ``kind``: "" or "Async"."""

    def __init__(self, reading: Reading, kind: str) -> None:
        library = needed(reading.library)
        version = VERSION2 if reading.name in HTTP2 else {}
        transport = getattr(library, f"{kind}HTTPTransport")(verify=CONTEXT, **version)
        if reading.reader == "observing":
            observing = getattr(reading.module, f"{kind}ObservingTransport")
            transport = observing(transport, self._observe, on_end=lambda *found: self.reading.told.append(found[2]))
        elif reading.reader in ("translating", "answer"):
            transport = getattr(reading.module, f"{kind}TranslatingTransport")(transport, reading.url, "openai")
        timeout = library.Timeout(PATIENCE, read=reading.patience)
        self.client = getattr(library, f"{kind}Client")(transport=transport, timeout=timeout)

    def _observe(self, *_: Any) -> Any:
        seen = self.reading.seen
        return self.reading.module.EventTap(lambda event: seen.append(item(event)), "llm-stream")

    def __call__(self, reading: Reading) -> Any:
        """The response, or an awaitable of it."""
        self.reading = reading
        if reading.reader not in ("translating", "answer"):
            return self.client.send(self.client.build_request("GET", reading.url), stream=True)
        is_stream = reading.reader == "translating"
        self.client._transport._url = reading.url
        path, body = asked("openai", is_stream)
        request = self.client.build_request("POST", f"http://vendor.invalid{path}", json=body)
        return self.client.send(request, stream=is_stream)

    def check(self) -> None:
        """No response is held: a connection is closed, or free for the next."""
        transport = self.client._transport
        pool = getattr(transport, "_transport", transport)._pool
        assert not pool._requests
        assert all(connection.is_idle() or connection.is_closed() for connection in pool.connections)


@pytest.mark.parametrize(("library", "name"), cases(SYNCHRONOUS))
def test_a_fault(llmstream: Any, faulty: FaultyServer, library: str, name: str) -> None:
    for reader in readers(library, name):
        reading, again = (Reading(llmstream, library, one, reader, faulty) for one in (name, after(name)))
        with contextlib.ExitStack() as stack:
            if library in HTTPX:
                asking = Asking(reading, "")
                stack.enter_context(asking.client)
            else:
                get = stack.enter_context(opened(library, read_timeout=reading.patience))
                asking = lambda reading, get=get: get(reading.url)  # noqa: E731
            for one in (reading, again):
                one.read(asking)
                one.check()
                if library in HTTPX:
                    asking.check()
            faulty.until_open(held(name))
        reading.outcome.error = None  # it holds the frames of what has failed, and they what they use
        if library not in HTTPX:
            del get, asking
            gc.collect()  # with which urllib3 closes its pools
        faulty.until_open(0)


@pytest.mark.parametrize(("library", "name"), cases(ASYNCHRONOUS))
def test_a_fault_asynchronous(llmstream: Any, faulty: FaultyServer, library: str, name: str) -> None:
    async def main(reading: Reading, again: Reading) -> None:
        async with contextlib.AsyncExitStack() as stack:
            if library in HTTPX:
                asking = Asking(reading, "Async")
                await stack.enter_async_context(asking.client)
            else:
                get = await stack.enter_async_context(aopened(library, read_timeout=reading.patience))
                asking = lambda reading: get(reading.url)  # noqa: E731
            for one in (reading, again):
                async with asyncio.timeout(2 * PATIENCE):  # no reader waits without end
                    await one.aread(asking)
                one.check()
                if library in HTTPX:
                    asking.check()
            await asyncio.to_thread(faulty.until_open, held(name))

    for reader in readers(library, name):
        if reader != "parse":
            readings = [Reading(llmstream, library, one, reader, faulty) for one in (name, after(name))]
            run(main(*readings))
            readings[0].outcome.error = None
            faulty.until_open(0)


def after(name: str) -> str:
    return "whole, http2" if name in HTTP2 else "whole, chunked"


def held(name: str) -> int:
    """Connections that a client may keep: the last one, and one of HTTP/2 that has failed, which httpcore counts as
    idle and closes with the client, or when it was idle for long."""
    return 2 if name in HTTP2 else 1
