"""A server of an ASGI application in a thread of its own, and clients of it that are plain sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

WAIT = 30.0
"""Seconds after which a test gives up; none takes a part of it where all is well."""


def answer(encoder: Any, *words: str) -> Iterator[bytes]:
    """A whole standard stream."""
    yield encoder.start("m")
    for word in words:
        yield encoder.delta(word)
    yield encoder.stop("end_turn")
    yield encoder.usage(1, 2)
    yield encoder.end()


async def aanswer(encoder: Any, *words: str) -> AsyncIterator[bytes]:
    """As ``answer``, asynchronous."""
    for piece in answer(encoder, *words):
        yield piece


@contextlib.contextmanager
def served(app: Any) -> Iterator[int]:
    """The port of a uvicorn that serves the application on the loopback interface."""
    uvicorn = pytest.importorskip("uvicorn")
    config = uvicorn.Config(app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            until(lambda: server.started)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(WAIT)
            assert not thread.is_alive()


def until(condition: Callable[[], Any]) -> None:
    """Returns when it is so."""
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.005)


async def auntil(condition: Callable[[], Any]) -> None:
    """As ``until``, while the loop goes on."""
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        await asyncio.sleep(0.001)


def settled(value: Callable[[], int]) -> int:
    """The value once it has not changed for half a second."""
    before, since = value(), time.monotonic()
    deadline = since + WAIT
    while time.monotonic() - since < 0.5:
        assert time.monotonic() < deadline, "it goes on and on"
        time.sleep(0.01)
        if value() != before:
            before, since = value(), time.monotonic()
    return before


@contextlib.contextmanager
def asking(port: int, path: str = "/", method: str = "GET") -> Iterator[socket.socket]:
    """A connection on which a request was sent, with a small buffer for what comes back."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
        client.settimeout(WAIT)
        client.connect(("127.0.0.1", port))
        client.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        yield client


def read_until(client: socket.socket, end: bytes) -> bytes:
    """What comes in, up to where ``end`` is in it."""
    found = b""
    while end not in found:
        chunk = client.recv(4096)
        assert chunk, "the connection was closed"
        found += chunk
    return found
