"""Where the bytes come from: files, iterables and the responses of HTTP libraries.

They are told apart by what they offer, so no library is imported. What has arrived is handed on
at once: a size is given only where it is an upper bound, never where a response would wait for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
    from typing import Any, Protocol, TypeAlias

    from _typeshed import ReadableBuffer

    class Read1(Protocol):
        def read1(self, size: int, /) -> bytes: ...

    class Read(Protocol):
        def read(self, size: int, /) -> bytes | None: ...

    class ReadInto(Protocol):
        def readinto(self, buffer: bytearray, /) -> int | None: ...

    class IterBytes(Protocol):
        def iter_bytes(self) -> Iterator[bytes]: ...

    class IterContent(Protocol):
        def iter_content(self, chunk_size: None) -> Iterator[Any]: ...

    class AIterBytes(Protocol):
        def aiter_bytes(self) -> AsyncIterator[bytes]: ...

    class AsyncIterBytes(Protocol):
        def iter_bytes(self) -> AsyncIterator[bytes]: ...

    class IterAny(Protocol):
        def iter_any(self) -> AsyncIterator[bytes]: ...

    class Content(Protocol):
        @property
        def content(self) -> IterAny: ...

    class Wrapper(Protocol):
        @property
        def response(self) -> Any: ...

    Source: TypeAlias = (
        ReadableBuffer | Iterable[ReadableBuffer] | Read1 | Read | ReadInto | IterBytes | IterContent | Wrapper
    )
    AsyncSource: TypeAlias = (
        AsyncIterable[ReadableBuffer]
        | AIterBytes
        | AsyncIterBytes
        | IterAny
        | Content
        | Wrapper
        | ReadableBuffer
        | Iterable[ReadableBuffer]
        | Read1
        | Read
        | ReadInto
    )

__all__ = ["AsyncChunks", "Chunks", "about", "async_chunks", "chunks"]

READ_SIZE = 64 * 1024

PIECE_SIZE = 256 * 1024
"""A body in memory is handed on in pieces, so that its events come and go instead of piling up."""


class Chunks:
    """The chunks of a source. ``close()`` closes it where that is ours to do; again, nothing."""

    __slots__ = ("_closers", "iterator")

    def __init__(self, iterator: Iterator[Any], *closers: Callable[[], Any] | None) -> None:
        self.iterator = iterator
        self._closers = [closer for closer in reversed(closers) if closer is not None]

    def close(self) -> None:
        while self._closers:
            closer = self._closers.pop()
            try:
                closer()
            finally:
                self.close()  # the others too, whatever this one raises


class AsyncChunks:
    """As ``Chunks``, asynchronous."""

    __slots__ = ("_closers", "iterator")

    def __init__(self, iterator: AsyncIterator[Any], *closers: Callable[[], Any] | None) -> None:
        self.iterator = iterator
        self._closers = [closer for closer in reversed(closers) if closer is not None]

    async def aclose(self) -> None:
        while self._closers:
            closer = self._closers.pop()
            try:
                closing = closer()
                if hasattr(closing, "__await__"):
                    await closing
            finally:
                await self.aclose()


def chunks(source: Any) -> Chunks:
    """The chunks of a synchronous source; raises TypeError for anything else."""
    body = _in_memory(source)
    if body is not None:
        return Chunks(body)
    source = _unwrapped(source)
    if _is_asynchronous(source):
        raise _asynchronous_error(source)
    if hasattr(source, "iter_bytes"):
        iterator = source.iter_bytes()
        if not hasattr(iterator, "__next__") and hasattr(iterator, "__aiter__"):
            raise _asynchronous_error(source)
        return Chunks(iterator, _closer(iterator), _closer(source))
    if hasattr(source, "iter_content"):
        iterator = _content(source)
        return Chunks(iterator, _closer(iterator), _closer(source))
    iterator = _reads(source)
    if iterator is not None:
        # A file belongs to whoever opened it; what has headers is a response.
        return Chunks(iterator, _closer(source) if _is_response(source) else None)
    if hasattr(source, "__iter__"):
        iterator = iter(source)
        return Chunks(iterator, _closer(iterator), None if source is iterator else _closer(source))
    raise TypeError(
        f"a stream is read from bytes, a binary file, a response or an iterable of bytes, not {type(source).__name__}"
    )


def async_chunks(source: Any) -> AsyncChunks:
    """The chunks of an asynchronous source, or of bytes, a file or an iterable; raises TypeError
    for anything else."""
    body = _in_memory(source)
    if body is not None:
        return _async_chunks(_asynchronous(body))
    source = _unwrapped(source)
    if hasattr(source, "aiter_bytes"):
        if _is_half(source, "__iter__", "__aiter__"):
            raise _synchronous_error(source)
        return _async_chunks(source.aiter_bytes(), _acloser(source))
    if hasattr(source, "iter_bytes"):
        iterator = source.iter_bytes()
        if not hasattr(iterator, "__aiter__"):
            raise _synchronous_error(source)
        return _async_chunks(iterator, _acloser(source))
    if hasattr(source, "iter_any"):
        return _async_chunks(source.iter_any())
    is_asynchronous = _is_asynchronous(source)
    if hasattr(source, "iter_content") and not is_asynchronous:
        raise _synchronous_error(source)
    content: Any = getattr(source, "content", None)
    if hasattr(content, "iter_any"):
        return _async_chunks(content.iter_any(), _acloser(source))
    if _is_response(source) and not is_asynchronous:
        raise _synchronous_error(source)
    # Iterated, a stream reader or a file would give lines, each held back until it ends.
    read = getattr(source, "read1", None) or getattr(source, "read", None)
    if read is not None:
        return _async_chunks(_areads(read))
    if hasattr(source, "__aiter__"):
        iterator = aiter(source)
        return _async_chunks(iterator, None if source is iterator else _acloser(source))
    found = chunks(source)
    return _async_chunks(_asynchronous(found.iterator), found.close)


def about(source: Any) -> tuple[str | None, str | None]:
    """The Content-Type and the URL that a response says it has; None for each that it does not."""
    response = source if _is_response(source) else _unwrapped(source)
    if not _is_response(response):
        return None, None
    try:
        content_type = response.headers.get("content-type")
    except Exception:  # noqa: BLE001 (headers of whatever kind)
        content_type = None
    try:
        url = response.url  # which httpx refuses to tell without a request
    except Exception:  # noqa: BLE001
        url = None
    return (content_type if isinstance(content_type, str) else None), (None if url is None else str(url))


def _async_chunks(iterator: AsyncIterator[Any], *closers: Callable[[], Any] | None) -> AsyncChunks:
    return AsyncChunks(iterator, _acloser(iterator), *closers)


# --------------------------------------------------------------------------------------------------
# Telling apart


def _asynchronous_error(source: object) -> TypeError:
    name = type(source).__name__
    return TypeError(f"{name} is asynchronous: read it with aiter_events or aiter_text")


def _synchronous_error(source: object) -> TypeError:
    name = type(source).__name__
    return TypeError(f"{name} is synchronous: read it with iter_events or iter_text")


def _in_memory(source: Any) -> Iterator[Any] | None:
    if isinstance(source, str):
        raise TypeError("a stream is bytes, not str")
    if isinstance(source, bytes):
        return _pieces(source)
    try:
        view = memoryview(source)
    except TypeError:
        return None
    return _pieces(view.cast("B"))


def _unwrapped(source: Any) -> Any:
    """The response within an SDK's stream object, whose own iterator would read it."""
    if _is_body(source):
        return source
    response = getattr(source, "response", None)
    return response if _is_body(response) else source


def _is_body(source: Any) -> bool:
    return any(hasattr(source, name) for name in ("iter_bytes", "aiter_bytes", "iter_content"))


def _is_response(source: Any) -> bool:
    return hasattr(source, "headers")


def _is_asynchronous(source: Any) -> bool:
    if hasattr(source, "iter_bytes"):
        return _is_half(source, "__aiter__", "__iter__")
    if hasattr(source, "iter_content") or hasattr(source, "read1"):
        return hasattr(source, "__aiter__")
    if hasattr(source, "aiter_bytes") or hasattr(source, "iter_any"):
        return True
    # Not asked before: to look at the content of a synchronous response can mean to read it.
    if hasattr(getattr(source, "content", None), "iter_any"):
        return True
    return hasattr(source, "__aiter__") and not hasattr(source, "__iter__")


def _is_half(response: Any, has: str, lacks: str) -> bool:
    """Whether a response that offers both ways goes only one, which its network stream shows; a
    body that was read before goes both."""
    stream = getattr(response, "stream", None)
    return hasattr(stream, has) and not hasattr(stream, lacks) and not getattr(response, "is_closed", False)


# --------------------------------------------------------------------------------------------------
# Reading


def _pieces(body: Any) -> Iterator[Any]:
    if len(body) <= PIECE_SIZE:
        yield body
        return
    for at in range(0, len(body), PIECE_SIZE):
        yield body[at : at + PIECE_SIZE]


async def _asynchronous(iterator: Iterator[Any]) -> AsyncIterator[Any]:
    for chunk in iterator:
        yield chunk


def _content(response: Any) -> Iterator[Any]:
    """The body of a response of requests, whose ``iter_content`` would wait for all of a body that
    is not chunked."""
    raw: Any = getattr(response, "raw", None)
    is_whole = getattr(raw, "chunked", True) or getattr(raw, "closed", True)
    if hasattr(raw, "read1") and not is_whole:
        response.raw = _AsItComes(raw)
    return iter(response.iter_content(chunk_size=None))


class _AsItComes:
    """The body within a response of requests, which reads it by ``stream`` and gives its errors their own names."""

    __slots__ = ("_raw",)

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, _: int | None, decode_content: bool | None = None) -> Iterator[Any]:
        return _loop(lambda size: self._raw.read1(size, decode_content=decode_content))


def _reads(source: Any) -> Iterator[Any] | None:
    if hasattr(source, "read1"):
        if getattr(source, "closed", False) and hasattr(source, "data"):
            return iter((source.data,))  # urllib3 read it all before
        return _loop(source.read1)
    if callable(getattr(source, "stream", None)):
        pieces: Iterator[Any] = source.stream(None)  # urllib3 before its read1
        return pieces
    if hasattr(source, "read"):
        return _loop(source.read)
    if hasattr(source, "readinto"):
        return _into(source.readinto)
    return None


def _loop(read: Callable[[int], Any]) -> Iterator[Any]:
    while True:
        chunk = read(READ_SIZE)
        if chunk is None:
            raise BlockingIOError("the file does not block and has nothing to read")
        if not chunk:
            return
        yield chunk


def _into(readinto: Callable[[bytearray], int | None]) -> Iterator[Any]:
    buffer = bytearray(READ_SIZE)

    def read(_: int) -> bytes | None:
        size = readinto(buffer)
        return None if size is None else bytes(memoryview(buffer)[:size])

    return _loop(read)


async def _areads(read: Callable[[int], Any]) -> AsyncIterator[Any]:
    while True:
        chunk = read(READ_SIZE)
        if hasattr(chunk, "__await__"):
            chunk = await chunk
        if not chunk:
            return
        yield chunk


# --------------------------------------------------------------------------------------------------
# Closing


def _closer(source: Any) -> Callable[[], Any] | None:
    close: Callable[[], Any] | None = getattr(source, "close", None)
    if not callable(close) or getattr(source, "is_closed", False):
        return None
    if not hasattr(source, "gi_running"):
        return close

    def close_generator() -> None:
        # One that runs is closed by its thread, when closing the response wakes it up.
        if not source.gi_running:
            close()

    return close_generator


def _acloser(source: Any) -> Callable[[], Any] | None:
    if getattr(source, "is_closed", False):
        return None
    # httpx; aiohttp, which can use a connection again that was read to its end; others
    for name in ("aclose", "release", "close"):
        close: Callable[[], Any] | None = getattr(source, name, None)
        if callable(close):
            break
    else:
        return None
    if not hasattr(source, "ag_running"):
        return close

    def close_generator() -> Any:
        return None if source.ag_running else close()

    return close_generator
