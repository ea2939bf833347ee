"""Ends a read of a synchronous response that waits in another thread."""

from __future__ import annotations

import contextlib
import os
import socket
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["interrupt"]

STEPS = ("response", "raw", "_chunks", "_pump", "chunks")
"""From an SDK's stream to its response, from one of requests to that of urllib3, and through our own iterators."""

MAX_STEPS = 8
"""Objects that are looked into, from the source to its socket."""


def interrupt(source: Any) -> None:
    """Shuts down the connection that a source reads from, and closes the source.

    ``source``  a response of httpx, httpx2, requests, urllib3 or urllib, what llmstream has made of one, or anything
                with ``close()``

    To close a socket does not wake up who waits for it, and neither does closing a response: some wait themselves for
    the read to end. A connection that other responses share (HTTP/2) is left alone. May wait as long as ``close`` does;
    raises what that raises.
    """
    for step in _within(source):
        with contextlib.suppress(Exception):  # whatever a response of another kind does
            _shut_down(step)
    close = getattr(source, "close", None)
    if callable(close):
        close()


def _within(source: Any) -> Iterator[Any]:
    """The source and what it reads from, as far as that can be seen."""
    waiting = [source]
    for _ in range(MAX_STEPS):
        if not waiting:
            return
        found = waiting.pop(0)
        yield found
        for name in STEPS:
            with contextlib.suppress(Exception):  # whatever a property does
                waiting.append(getattr(found, name))
        with contextlib.suppress(AttributeError, TypeError):
            waiting += [closer.__self__ for closer in found._closers if hasattr(closer, "__self__")]


def _shut_down(response: Any) -> None:
    extensions = getattr(response, "extensions", None)
    if isinstance(extensions, dict) and "network_stream" in extensions:
        if extensions.get("http_version") in (b"HTTP/1.1", b"HTTP/1.0"):
            connection = extensions["network_stream"].get_extra_info("socket")
            # Of the class below TLS: its own method would take away what the other thread reads with.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)
        return
    number = response.fileno()
    if stat.S_ISSOCK(os.fstat(number).st_mode):
        with socket.socket(fileno=os.dup(number)) as connection:
            connection.shutdown(socket.SHUT_RDWR)
