"""Streams over connections that fail, read by what the standard library has: events, verdict, and what is let go."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from faults import STALLED, TIMEOUT, Fault, Outcome, judge
from faulty_server import PATIENCE, FaultyServer, run, serving
from faulty_streams import ANSWERS, HTTP1, PATHS, SECRETS, Gathering, items, text

READERS = ("iter_events", "iter_events, strict", "iter_text", "parse")
EXPECTED: dict[str, Callable[[int], Any]] = {"iter_events": items, "iter_text": text, "parse": text}
CLOSED = [name for name in HTTP1 if name.endswith(", close")]

NOT_SAID = [f"cut {where}, length" for where in ("after the headers", "within an event", "between events")]
NOT_SAID.append("cut before the last event, length")
"""What http.client does not say: ``read1`` ends a body that is shorter than its Content-Length like any other."""


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with serving() as found:
        found.answers = ANSWERS
        yield found
        gc.collect()  # a socket that nobody has closed says so


@contextlib.contextmanager
def by_http_client(url: str, timeout: float) -> Iterator[Callable[[], Any]]:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=timeout)

    def get() -> Any:
        connection.request("GET", "/" + path)
        return connection.getresponse()

    yield get
    connection.close()


@contextlib.contextmanager
def by_urllib(url: str, timeout: float) -> Iterator[Callable[[], Any]]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    yield lambda: opener.open(url, timeout=timeout)


LIBRARIES = {"http.client": by_http_client, "urllib": by_urllib}


def inflated(response: Any) -> Iterator[bytes]:
    """The body of a response, as it is written by hand where the library decompresses nothing."""
    packed = zlib.decompressobj(wbits=31)
    with response:
        while chunk := response.read1():
            yield packed.decompress(chunk)


def read(llmstream: Any, reader: str, fault: Fault, get: Callable[[], Any], proceed: Callable[[], object]) -> Outcome:
    """What a reader gives, and lets the answer go on once it has what was sent before."""
    name, _, strict = reader.partition(", ")
    gathering = Gathering(EXPECTED[name], fault.events, proceed)
    outcome = gathering.outcome
    try:
        source = get()
        if fault.verdict != STALLED and source.headers.get("content-encoding") == "gzip":
            source = inflated(source)
        if name == "parse":
            outcome.items = None
            result = llmstream.parse(source)
            outcome.items, outcome.complete = result.text, result.complete
            return outcome
        with getattr(llmstream, name)(source, strict=bool(strict)) as stream:
            gathering.begin()
            for found in stream:
                gathering.text(found) if name == "iter_text" else gathering.event(found)
            outcome.complete = stream.parser.complete
    except Exception as error:  # noqa: BLE001 (it is judged)
        outcome.error = error
    return outcome


@pytest.fixture
def check(llmstream: Any) -> Callable[[Fault, Outcome, str], None]:
    def check(fault: Fault, outcome: Outcome, reader: str) -> None:
        # zlib.error: what a user's own decompression raises is his.
        known = (OSError, http.client.HTTPException, zlib.error, llmstream.LLMStreamError)
        judge(
            fault,
            outcome,
            EXPECTED[reader.partition(",")[0]],
            is_known=lambda error: isinstance(error, known),
            is_timeout=lambda error: isinstance(error, TimeoutError),
            secrets=SECRETS,
        )
        if not outcome.complete and reader in ("iter_text", "iter_events, strict"):
            assert outcome.error is not None

    return check


def is_worth_it(library: str, reader: str, name: str, fault: Fault) -> bool:
    """Whether to wait for a stall; and urllib hands on what http.client has."""
    if fault.verdict == STALLED:
        return library == "http.client" and (reader == "iter_events" or ("chunked" in name and reader == "iter_text"))
    return library == "http.client" or reader in ("iter_events", "iter_text")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", HTTP1)
def test_a_fault(llmstream: Any, server: FaultyServer, check: Any, library: str, name: str) -> None:
    fault = HTTP1[name]
    if fault.fails and name in NOT_SAID:
        fault = Fault(fault.answer, fault.events, fault.verdict)
    for reader in READERS:
        if not is_worth_it(library, reader, name, fault):
            continue
        timeout = TIMEOUT if fault.verdict == STALLED else PATIENCE
        with LIBRARIES[library](server.url(PATHS[name], go=reader == "parse"), timeout) as get:
            outcome = read(llmstream, reader, fault, get, server.proceed)
        check(fault, outcome, reader)
        outcome.error = None  # holds the frames of what has failed
        server.until_open(0)


@pytest.mark.parametrize("reader", ["aiter_events", "aiter_events, strict", "aiter_text"])
@pytest.mark.parametrize("name", CLOSED)
def test_a_fault_of_a_stream_reader(llmstream: Any, server: FaultyServer, check: Any, name: str, reader: str) -> None:
    """Of asyncio, as it comes from the network."""
    fault = HTTP1[name]
    kind, _, strict = reader.partition(", ")
    gathering = Gathering(EXPECTED[kind[1:]], fault.events, server.proceed)
    outcome = gathering.outcome

    async def main() -> Outcome:
        incoming, output = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            output.write(f"GET /{PATHS[name]} HTTP/1.1\r\n\r\n".encode())
            async with asyncio.timeout(TIMEOUT if fault.verdict == STALLED else PATIENCE):
                await incoming.readuntil(b"\r\n\r\n")
                async with getattr(llmstream, kind)(incoming, strict=bool(strict)) as stream:
                    gathering.begin()
                    async for found in stream:
                        gathering.text(found) if kind == "aiter_text" else gathering.event(found)
                    outcome.complete = stream.parser.complete
        except (Exception, asyncio.IncompleteReadError) as error:  # noqa: BLE001 (it is judged)
            outcome.error = error
        finally:
            output.close()
            with contextlib.suppress(ConnectionError):
                await output.wait_closed()
        if isinstance(outcome.error, EOFError):  # of the headers, which are read by hand here
            outcome.error = ConnectionError()
        return outcome

    check(fault, run(main()), reader[1:])
    server.until_open(0)
