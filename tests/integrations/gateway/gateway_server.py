"""Applications on a real server in a thread of its own, on the loopback interface, and gateways before them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

WAIT = 20.0
"""Seconds after which a test gives up; none takes a part of it where all is well."""


@contextlib.contextmanager
def served(application: Any, **options: Any) -> Iterator[int]:
    """The port where ``llmstream.integrations.serving`` serves an application."""
    serving = importlib.import_module("llmstream.integrations.serving")
    listener = serving.listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    loop = asyncio.new_event_loop()
    stopped = asyncio.Event()
    faults = []

    def run() -> None:
        try:
            loop.run_until_complete(
                serving.serve(application, listener, stop=stopped.wait, **{"graceful": 1.0, **options})
            )
        except BaseException as error:  # noqa: BLE001
            faults.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(WAIT)
        assert not thread.is_alive()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    assert faults == []


def until(condition: Callable[[], Any]) -> None:
    """Returns when it is so."""
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.005)


class Recorder:
    """An upstream that keeps what it was asked, and answers by another application."""

    def __init__(self, application):
        self.application = application
        self.asked = []
        self.over = 0
        self.lock = threading.Lock()

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        with self.lock:
            self.asked.append((scope["path"], scope["query_string"].decode(), headers, body))
        try:
            await self.application(scope, receive, send)
        finally:
            with self.lock:
                self.over += 1


@contextlib.contextmanager
def behind(module, upstreams, tls=None, **options):
    """A gateway in front of applications: dialect -> application. ``.url``, ``.exchanges``, ``.gateway``."""
    with contextlib.ExitStack() as stack:
        found = []
        for dialect, (application, more) in upstreams.items():
            port = stack.enter_context(served(application))
            path = {"llm-stream": "/any", "gemini": "/v1beta"}.get(dialect, "/v1")
            found.append(module.Upstream(dialect, f"http://127.0.0.1:{port}{path}", **more))

        here = SimpleNamespace(exchanges=[])
        here.gateway = module.Gateway(found, on_end=here.exchanges.append, **options)
        port = stack.enter_context(served(here.gateway, **(tls or {})))
        here.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        yield here
    assert here.gateway.open == 0


SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@contextlib.contextmanager
def scripted(handle: Callable[[Any, Any], object]) -> Iterator[str]:
    """The URL of an upstream that is a function of what it reads from and writes to, once for each connection."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                handle(self.rfile, self.wfile)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def read_head(rfile: Any) -> None:
    """Reads the head of a request."""
    while rfile.readline().strip():
        pass


def broken(body: bytes) -> contextlib.AbstractContextManager[str]:
    """The URL of an upstream that sends a body in one piece, and closes the connection before its end."""

    def handle(rfile: Any, wfile: Any) -> None:
        read_head(rfile)
        wfile.write(SSE_HEAD + b"%x\r\n%b\r\n" % (len(body), body))

    return scripted(handle)
