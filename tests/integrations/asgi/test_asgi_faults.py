"""A client that leaves, or a server that cancels, at every point of a response: the source is closed, once, and no task
is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import socket
import struct
import threading
from typing import Any

import pytest
from asgi_server import asking, read_until, served, until

from stepping import cancelled_at, generators
from streams import BODY, EVENTS


@pytest.fixture
def asgi(llmstream: Any) -> Any:
    return importlib.import_module("llmstream.integrations.asgi")


class Source:
    """Asynchronous events, which count how often they are closed."""

    def __init__(self) -> None:
        self.begun = 0
        self.closed = 0

    async def events(self) -> Any:
        self.begun += 1
        try:
            for event in EVENTS:
                await asyncio.sleep(0)
                yield event
        finally:
            self.closed += 1
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)


class Client:
    """What an application sends to. ``leaves``: the message with which the client leaves, ``how``: who tells of it."""

    scope = {"type": "http", "method": "GET", "http_version": "1.1", "headers": []}  # noqa: RUF012

    def __init__(self, leaves: int = 0, how: str = "receive") -> None:
        self.sent: list[Any] = []
        self._leaves = leaves
        self._how = how
        self._left = asyncio.Event()

    async def receive(self) -> Any:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if len(self.sent) + 1 == self._leaves:
            if self._how != "send":
                self._left.set()
            if self._how != "receive":
                raise OSError
        await asyncio.sleep(0)
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def is_whole(self) -> bool:
        return bool(self.sent) and self.sent[-1].get("more_body") is False


def response(llmstream: Any, asgi: Any, source: Source, kind: str) -> Any:
    events = source.events()
    if kind == "aiter_events":
        return asgi.EventStreamResponse(llmstream.aiter_events(events))
    if kind == "atranscode":
        return asgi.EventStreamResponse(llmstream.atranscode(events, dialect="llm-stream"))
    return asgi.EventStreamResponse(events)


KINDS = ("bytes", "aiter_events", "atranscode")


@pytest.mark.parametrize("kind", KINDS)
def test_cancelled_at_every_await(llmstream: Any, asgi: Any, kind: str) -> None:
    async def main() -> int:
        at = 0
        while True:
            at += 1
            source, client = Source(), Client()
            with generators() as dropped:
                app = response(llmstream, asgi, source, kind)
                is_reached = await cancelled_at(app(client.scope, client.receive, client.send), at)
                del app
                gc.collect()
                assert dropped == []
            assert source.closed == source.begun <= 1
            assert BODY.startswith(client.body)
            assert client.is_whole != is_reached or client.body == BODY
            if not is_reached:
                return at

    assert asyncio.run(main()) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_cancelled_after_any_number_of_steps(llmstream: Any, asgi: Any, kind: str) -> None:
    """Of the loop, and so at every await of the tasks that the response has."""

    async def main() -> int:
        for steps in range(1000):
            source, client = Source(), Client()
            with generators() as dropped:
                app = response(llmstream, asgi, source, kind)
                task = asyncio.create_task(app(client.scope, client.receive, client.send))
                for _ in range(steps):
                    await asyncio.sleep(0)
                is_over = task.done()
                task.cancel()
                await asyncio.wait([task])
                del app
                assert dropped == []
            assert source.closed == source.begun <= 1
            assert BODY.startswith(client.body)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            if is_over:
                assert client.body == BODY
                return steps
        raise AssertionError

    assert asyncio.run(main()) > len(EVENTS)


@pytest.mark.parametrize("how", ["receive", "send", "both"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_leaves_with_any_message(llmstream: Any, asgi: Any, kind: str, how: str) -> None:
    async def main() -> None:
        for leaves in range(1, len(EVENTS) + 3):
            source, client = Source(), Client(leaves, how)
            with generators() as dropped:
                app = response(llmstream, asgi, source, kind)
                await asyncio.wait_for(app(client.scope, client.receive, client.send), 30)
                del app
                gc.collect()
                assert dropped == []
            assert source.closed == source.begun <= 1
            assert BODY.startswith(client.body)
            assert len(client.sent) <= leaves + 1
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@pytest.mark.parametrize("how", ["ends", "resets"])
@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
def test_a_client_of_a_real_server_that_leaves_after_any_event(asgi: Any, kind: str, how: str) -> None:
    counts = {"begun": 0, "closed": 0}
    lock = threading.Lock()

    def source() -> Any:
        with lock:
            counts["begun"] += 1
        try:
            while True:
                yield from EVENTS
        finally:
            with lock:
                counts["closed"] += 1

    async def asource() -> Any:
        made = source()
        try:
            for event in made:
                await asyncio.sleep(0.0005)
                yield event
        finally:
            made.close()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        made = asource() if kind == "asynchronous" else source()
        await asgi.EventStreamResponse(made)(scope, receive, send)

    with served(app) as port:
        for event in [b"\r\n\r\n", *EVENTS, EVENTS[0][:-9]]:
            with asking(port) as client:
                read_until(client, event[-20:] if event.strip() else event)
                if how == "resets":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        until(lambda: counts["begun"] == counts["closed"] == len(EVENTS) + 2)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("llmstream")]
