"""The HTTP client of a gateway: one session of aiohttp, and what it raises as what a client of ours is told."""

from __future__ import annotations

import asyncio
from io import BytesIO

from .refusing import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

    from .limits import Limits
    from .upstream import Sent

__all__ = ["Client"]

LARGE = 2**20
"""Bytes of a request beyond which it is written piece by piece."""


class Client:
    """Sends requests to upstreams. Its session is made at the first request, in the event loop that runs then."""

    def __init__(self, limits: Limits) -> None:
        import aiohttp  # type: ignore[import-not-found, unused-ignore]  # pyright: ignore[reportMissingImports]
        import yarl  # type: ignore[import-not-found, unused-ignore]  # pyright: ignore[reportMissingImports]

        self.limits = limits
        self._aiohttp: Any = aiohttp
        self._url: Any = yarl.URL
        self._session: Any = None

    async def post(self, sent: Sent) -> Any:
        """The response, once its headers are there. Raises RefusedError where there is none."""
        aiohttp = self._aiohttp
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self.limits.connect_time, sock_read=self.limits.silence
                ),
                skip_auto_headers=("user-agent", "accept", "content-type"),
            )
        limits = self.limits
        # aiohttp writes bytes in one go, and warns of that.
        body = sent.body if len(sent.body) <= LARGE else BytesIO(sent.body)
        try:
            # aiohttp's own times begin when the request is sent, and anew with each byte of an answer.
            async with asyncio.timeout(min(limits.connect_time + limits.silence, limits.duration)):
                return await self._session.post(
                    self._url(sent.url, encoded=True), data=body, headers=sent.headers, allow_redirects=False
                )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failure(error) from None  # whose words may have the URL, and so a key

    async def chunks(self, response: Any, observe: Callable[[bytes], bytes] = bytes) -> AsyncIterator[bytes]:
        """The chunks of a body as they arrive, each as ``observe`` returns it; the response is closed at the end,
        whatever it is. Raises RefusedError where the upstream fails, falls silent or goes on for too long."""
        content, now = response.content, asyncio.get_running_loop().time
        watch = _Watch(response, self.limits)
        try:
            while True:
                watch.since = now()
                chunk = await content.readany()
                watch.since = None
                if not chunk:
                    break
                yield observe(chunk)
        except (self._aiohttp.ClientError, OSError) as error:
            rest = _left_over(content)
            if rest:
                yield observe(rest)
            raise watch.refused or _failure(error) from None
        finally:
            watch.stop()
            response.close()  # its connection is used again where the body came to its end

    async def whole(self, response: Any, most: int) -> bytes:
        """A body, up to a size in bytes. Raises RefusedError as ``chunks`` does, and beyond the size."""
        body = bytearray()
        chunks = self.chunks(response)
        try:
            async for chunk in chunks:
                body += chunk
                if len(body) > most:
                    raise RefusedError(502, "too_large", "the upstream's answer is too large")
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]
        return bytes(body)

    async def start(self, response: Any, most: int) -> bytes:
        """The first ``most`` bytes of a body, as much of it as there is before it fails."""
        body = bytearray()
        chunks = self.chunks(response)
        try:
            async for chunk in chunks:
                body += chunk
                if len(body) >= most:
                    break
        except RefusedError:
            pass
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]
        return bytes(body[:most])

    async def aclose(self) -> None:
        """Closes the session; a later request makes another."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class _Watch:
    """Closes a response that goes on for too long or is waited for in vain. aiohttp's own timeout costs a timer for
    each read, and knows nothing of a reader who waits for more after bytes that are no chunk (3.14). ``since``: the
    time of the loop from which somebody waits; None where nobody does."""

    def __init__(self, response: Any, limits: Limits) -> None:
        connection = response.connection
        if connection is not None and hasattr(connection.protocol, "read_timeout"):
            connection.protocol.read_timeout = None
        self.since: float | None = None
        self.refused: RefusedError | None = None
        self._response = response
        self._silence = limits.silence
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + limits.duration
        self._look_after(self._loop.time() + self._silence)

    def _look_after(self, moment: float) -> None:
        self._timer = self._loop.call_at(min(moment, self._due), self._look)

    def _look(self) -> None:
        now = self._loop.time()
        silent_at = (now if self.since is None else self.since) + self._silence
        if now >= self._due:
            self._end(RefusedError(504, "timeout", "the answer took too long"))
        elif now >= silent_at:
            self._end(_silent())
        else:
            self._look_after(silent_at)

    def _end(self, refused: RefusedError) -> None:
        self.refused = refused
        self._response.close()

    def stop(self) -> None:
        self._timer.cancel()


def _silent() -> RefusedError:
    return RefusedError(504, "timeout", "the upstream does not answer in time")


def _left_over(content: Any) -> bytes:
    """What came in before a fault and was not read yet: aiohttp tells of the fault first."""
    read = getattr(content, "_read_nowait", None)
    if read is None or not getattr(content, "_buffer", None):
        return b""
    rest: bytes = read(-1)
    return rest


def _failure(error: Exception) -> RefusedError:
    if isinstance(error, TimeoutError):
        return _silent()
    return RefusedError(502, "internal_error", "the upstream cannot be reached, or broke off")
