"""The accelerated SDKs over connections that fail, and cancelled anywhere: as the SDK itself does, and all is let go.

A test file imports them all and has the fixtures ``sdk``, ``fast`` and ``make_event`` (an event with a text, as bytes).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from faults import STALLED, TIMEOUT, Fault, every_http1
from faulty_server import PATIENCE, FaultyServer, run, serving
from sdk_streams import SDK, Outcome, assert_same
from stepping import cancelled_at, generators

TEXTS = ("Hello", " wörld", ", 東京", " 🚲", "!", "?")
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which none needs, and which takes time to make
NAMES = list(every_http1([b"event"] * len(TEXTS)))


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with serving() as found:
        yield found
        gc.collect()  # a socket that nobody has closed says so


def connected(sdk: SDK, server: FaultyServer, fault: Fault, *, asynchronous: bool) -> Any:
    """A client of the SDK for the server's only answer."""
    kind = "Async" if asynchronous else ""
    server.answers = {"v1": fault.answer}
    timeout = sdk.http.Timeout(PATIENCE, read=TIMEOUT if fault.verdict == STALLED else PATIENCE)
    session = getattr(sdk.http, f"{kind}Client")(verify=CONTEXT, trust_env=False, timeout=timeout)
    options = {**sdk.options, "base_url": server.url("v1", go=False), "timeout": timeout, "http_client": session}
    return getattr(sdk.package, kind + sdk.name)(**options)


def read(sdk: SDK, server: FaultyServer, fault: Fault, change: Callable[[Any], Any], asynchronous: bool) -> Outcome:
    """The objects that came before the fault, and its error; no connection is left, nor task."""
    client = change(connected(sdk, server, fault, asynchronous=asynchronous))
    found: list[Any] = []

    def take(one: Any) -> None:
        found.append(one)
        if len(found) == fault.events:
            server.proceed()

    def check() -> None:
        pool = client._client._transport._pool
        assert not pool._requests
        assert all(connection.is_idle() or connection.is_closed() for connection in pool.connections)

    def read() -> None:
        with client:
            try:
                with sdk.start(client) as stream:
                    for one in stream:
                        take(one)
            finally:
                check()

    async def aread() -> None:
        async with client:
            try:
                async with await sdk.start(client) as stream:
                    async for one in stream:
                        take(one)
            finally:
                check()

    try:
        run(aread()) if asynchronous else read()
    except Exception as error:  # noqa: BLE001 (it is compared)
        error.__traceback__ = error.__context__ = None
        return found, error
    finally:
        server.until_open(0)
    return found, None


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", NAMES)
def test_a_fault_of_the_connection(
    sdk: SDK, fast: Any, faulty: FaultyServer, make_event: Any, name: str, asynchronous: bool
) -> None:
    events = [make_event(text) for text in TEXTS]
    fault = every_http1(events)[name]
    stock = read(sdk, faulty, fault, lambda client: client, asynchronous)
    ours = read(sdk, faulty, fault, fast.accelerate, asynchronous)
    expected, _ = sdk.outcome(events[: fault.events])
    if fault.verdict == "either":
        assert len(ours[0]) == fault.events or ours[1] is not None
        assert (ours[1] is None) == (stock[1] is None)
    elif type(stock[1]) is UnicodeDecodeError:
        assert ours == ([], None)  # which reads them as WHATWG HTML says, and finds no event
    else:
        assert_same((expected, stock[1]), ours)
    assert ours[1] is not None or not fault.fails
    if ours[1] is not None:
        assert not [text for text in TEXTS if len(text) > 2 and text.strip(" ,") in f"{ours[1]} {ours[1]!r}"]
    if fault.verdict == STALLED:
        chain = [ours[1], ours[1].__cause__]
        assert any("timeout" in type(error).__name__.lower() for error in chain)


@pytest.mark.parametrize("accelerated", [False, True], ids=["the SDK", "accelerated"])
def test_cancelled_at_every_await(sdk: SDK, fast: Any, make_event: Any, accelerated: bool) -> None:
    """Nothing runs on, and the response is closed once, as without us."""
    events = [make_event(text) for text in TEXTS]
    expected, _ = sdk.outcome(events)

    async def read(found: list[Any], body: Any) -> None:
        session = sdk.http.AsyncClient(transport=sdk.http.MockTransport(lambda _: answer(sdk, body)))
        client = getattr(sdk.package, f"Async{sdk.name}")(http_client=session, **sdk.options)
        async with client:
            if accelerated:
                fast.accelerate(client)
            async with await sdk.start(client) as stream:
                async for one in stream:
                    found.append(one)
                    await asyncio.sleep(0)

    async def main() -> int:
        at = 0
        while True:
            at += 1
            found: list[Any] = []
            body = body_of(sdk, events)
            with generators():
                is_reached = await cancelled_at(read(found, body), at)
            assert body.closed == body.begun <= 1
            assert found == expected[: len(found)]
            if not is_reached:
                assert found == expected
                return at

    assert asyncio.run(main()) > 2 * len(events)
    gc.collect()
    assert not [found for found in gc.get_objects() if type(found).__name__ == "TickingBody"]


def answer(sdk: SDK, body: Any) -> Any:
    return sdk.http.Response(200, headers={"content-type": "text/event-stream"}, stream=body)


def body_of(sdk: SDK, chunks: list[bytes]) -> Any:
    class TickingBody(sdk.http.AsyncByteStream):  # type: ignore[name-defined,misc]
        begun = closed = 0

        async def __aiter__(self) -> Any:
            self.begun += 1
            for chunk in chunks:
                await asyncio.sleep(0)
                yield chunk

        async def aclose(self) -> None:
            self.closed += 1
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)

    return TickingBody()
