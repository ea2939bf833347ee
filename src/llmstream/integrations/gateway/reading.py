"""A request as it comes in over ASGI, within its limits."""

from __future__ import annotations

import asyncio

from .refusing import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    from ..asgi import Receive, Scope
    from .limits import Limits

    Result = TypeVar("Result")

__all__ = ["GoneError", "headers_of", "read_body", "unless_gone"]


class GoneError(Exception):
    """The client has left."""


def headers_of(scope: Scope) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """The headers of a request in their order, and by name, where several of one name are one list."""
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    named: dict[str, str] = {}
    for name, value in pairs:
        named[name] = f"{named[name]}, {value}" if name in named else value
    return pairs, named


async def read_body(receive: Receive, headers: dict[str, str], limits: Limits) -> bytes:
    """The body of a request. Raises RefusedError for what is over a limit, GoneError where the client leaves."""
    size = headers.get("content-length", "")
    if size.isascii() and size.isdigit() and (len(size) > 18 or int(size) > limits.request_size):
        raise _too_large(limits)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.request_time):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise GoneError
                body += message.get("body", b"")
                if len(body) > limits.request_size:
                    raise _too_large(limits)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise RefusedError(408, "timeout", "the request did not come to its end in time") from None


def _too_large(limits: Limits) -> RefusedError:
    return RefusedError(413, "too_large", f"a request has {limits.request_size} bytes at most")


async def unless_gone(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """What ``work`` gives; it is cancelled, and GoneError raised, where the client leaves first."""
    task: Any = asyncio.current_task()
    before = task.cancelling()
    has_left = is_over = False

    def cancel(left: asyncio.Future[None]) -> None:
        nonlocal has_left
        # It may be on its way already when the work is done.
        if not left.cancelled() and not is_over:
            left.exception()  # servers differ in how they tell of it
            has_left = True
            task.cancel()

    left = asyncio.ensure_future(_left(receive))
    left.add_done_callback(cancel)
    try:
        return await work
    except asyncio.CancelledError:
        if has_left and task.cancelling() == before + 1:
            raise GoneError from None
        raise
    finally:
        is_over = True
        if has_left:
            task.uncancel()
        left.remove_done_callback(cancel)
        left.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
