"""A client that leaves ends the connection to where a synchronous response of it reads from, whatever the library."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from http_libraries import SYNCHRONOUS, opened
from sse_server import PATIENCE, Server

from streams import EVENTS

READERS = {
    "as it is": lambda llmstream, response: response,
    "transcode": lambda llmstream, response: llmstream.transcode(response),
    "iter_events": lambda llmstream, response: llmstream.iter_events(response),
    "in a stream of an SDK": lambda llmstream, response: type("Stream", (), {"response": response})(),
}


@contextlib.contextmanager
def opening(name: str) -> Iterator[Callable[[str], Any]]:
    if name == "urllib":
        yield lambda url: urllib.request.urlopen(url, timeout=PATIENCE)
    else:
        with opened(name) as get:
            yield get


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("llmstream")]


LIBRARIES = [*SYNCHRONOUS, "urllib"]
CASES = [(name, reader) for name in LIBRARIES for reader in READERS if "SDK" not in reader or "urllib" not in name]


@pytest.mark.parametrize(("name", "reader"), CASES)
def test_a_client_that_leaves(llmstream: Any, server: Server, name: str, reader: str) -> None:
    asgi = importlib.import_module("llmstream.integrations.asgi")
    server.answers["events"] = EVENTS[:2]
    sent: list[Any] = []

    async def run(get: Callable[[str], Any]) -> None:
        left = asyncio.Event()

        async def receive() -> Any:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if b"Hello" in message.get("body", b""):
                left.set()

        response = asgi.EventStreamResponse(READERS[reader](llmstream, get(server.url(hold=1))))
        await asyncio.wait_for(response({"type": "http", "method": "GET"}, receive, send), PATIENCE)
        # Nobody else's threads are taken.
        assert await asyncio.get_running_loop().run_in_executor(None, lambda: 1) == 1

    with opening(name) as get:
        asyncio.run(run(get))
        assert server.gone.wait(PATIENCE)
        for thread in threads():
            thread.join(PATIENCE)
        assert not threads()
    assert sent


def test_a_connection_of_many_responses_is_left_alone() -> None:
    interrupts = importlib.import_module("llmstream.integrations.interrupts")
    closed: list[int] = []

    class Connection:
        def get_extra_info(self, name: str) -> Any:
            raise AssertionError

    class Response:
        extensions = {"network_stream": Connection(), "http_version": b"HTTP/2"}  # noqa: RUF012

        def close(self) -> None:
            closed.append(1)

        def fileno(self) -> int:
            raise AssertionError

    interrupts.interrupt(Response())
    assert closed == [1]


def test_a_file_is_closed_and_nothing_else() -> None:
    interrupts = importlib.import_module("llmstream.integrations.interrupts")
    reader, writer = os.pipe()
    with open(reader, "rb") as file, open(writer, "wb"):
        interrupts.interrupt(file)
        assert file.closed
    for value in (None, 1, [], object()):
        interrupts.interrupt(value)
    circle = type("Circle", (), {})()
    circle.response = circle.raw = circle
    interrupts.interrupt(circle)


def test_the_number_of_a_socket_stays_its_own() -> None:
    interrupts = importlib.import_module("llmstream.integrations.interrupts")
    here, there = socket.socketpair()
    with here, there, here.makefile("rb") as file:
        got: list[bytes] = []
        thread = threading.Thread(target=lambda: got.append(there.recv(1)), daemon=True)
        thread.start()
        interrupts._shut_down(file)
        thread.join(PATIENCE)
        assert got == [b""]
        assert here.fileno() >= 0
