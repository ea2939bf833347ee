"""Applications on a real server in a thread of its own, on the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import threading
import time
from collections.abc import Callable, Iterator
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
