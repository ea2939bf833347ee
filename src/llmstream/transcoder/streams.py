"""Iterators over a transcoder: ``transcode`` and ``atranscode``."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..errors import LLMStreamError
from ..source import async_chunks, chunks
from ..stream import END
from .rewriter import UNWRITTEN, StreamRewriter
from .transcoder import Transcoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
    from typing import Any, Literal, Self, Unpack

    from ..dialects import Dialect
    from ..source import AsyncChunks, AsyncSource, Chunks, Source
    from ..stream import Options

    class TranscoderOptions(Options, total=False):
        """The further keywords of ``Transcoder``."""

        model: str | None
        request_id: str | None
        reasoning: Literal["extensions", "drop"]
        clock: Callable[[], float]


__all__ = ["AsyncByteStream", "ByteStream", "atranscode", "transcode"]

Rewriter = TypeVar("Rewriter", bound=StreamRewriter)

BROKEN = ("internal_error", "the upstream connection failed")


def transcode(
    source: Source,
    *,
    dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
    strict: bool = False,
    **options: Unpack[TranscoderOptions],
) -> ByteStream[Transcoder]:
    """The bytes of the standard stream, as those of a vendor arrive: bytes, never empty, for each chunk that has
    events.

    The result is an iterator and a context manager; ``source`` is read and closed as by ``iter_events``, and
    ``options`` are the further keywords of ``Transcoder``. Where reading raises, the stream is ended with an ``error``
    first, so that whoever gets the bytes sees it, and then the exception is raised; so for what strict and ``clock``
    raise. An answer that cannot be written on is ended, and no more of the source is read.
    """
    return ByteStream(chunks(source), Transcoder(dialect, strict=strict, **options))


def atranscode(
    source: AsyncSource,
    *,
    dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
    strict: bool = False,
    **options: Unpack[TranscoderOptions],
) -> AsyncByteStream[Transcoder]:
    """As ``transcode``, for the sources of ``aiter_events``: an asynchronous iterator and context manager, closed by
    ``aclose()``."""
    return AsyncByteStream(async_chunks(source), Transcoder(dialect, strict=strict, **options))


class ByteStream(Generic[Rewriter]):
    """The iterator of ``transcode`` and ``translate_stream``; ``transcoder``, a Transcoder or StreamTranslator, knows
    how the stream ended."""

    __slots__ = ("_chunks", "_items", "transcoder")

    def __init__(self, chunks: Chunks, transcoder: Rewriter) -> None:
        self.transcoder = transcoder
        self._chunks = chunks
        self._items = _pull(chunks, transcoder)

    def __iter__(self) -> Iterator[bytes]:
        return self._items

    def __next__(self) -> bytes:
        return next(self._items)

    def close(self) -> None:
        """Ends the iteration and closes the response; again, nothing. Called from another thread, it closes the
        response that the iterator waits for."""
        if not getattr(self._items, "gi_running", False):
            self._items.close()
        self._chunks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()


class AsyncByteStream(Generic[Rewriter]):
    """The iterator of ``atranscode`` and ``atranslate_stream``."""

    __slots__ = ("_chunks", "_items", "transcoder")

    def __init__(self, chunks: AsyncChunks, transcoder: Rewriter) -> None:
        self.transcoder = transcoder
        self._chunks = chunks
        self._items = _apull(chunks, transcoder)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._items

    async def __anext__(self) -> bytes:
        return await anext(self._items)

    async def aclose(self) -> None:
        """Ends the iteration and closes the response; again, nothing. Called from another task, it closes the response
        that the iterator waits for."""
        if not getattr(self._items, "ag_running", False):
            await self._items.aclose()
        await self._chunks.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *fault: object) -> None:
        await self.aclose()


def _pull(chunks: Chunks, transcoder: StreamRewriter) -> Generator[bytes, None, None]:
    try:
        while True:
            told = BROKEN
            try:
                chunk = next(chunks.iterator, END)
                told = UNWRITTEN
                output, fault = _step(transcoder, chunk)
            except Exception:
                output = transcoder.fail(*told)
                if output:
                    yield output
                raise
            if output:
                yield output
            if fault is not None:
                raise fault
            if chunk is END or _is_over(transcoder):
                return
    finally:
        fault = None  # else it would hold itself by its traceback
        chunks.close()


async def _apull(chunks: AsyncChunks, transcoder: StreamRewriter) -> AsyncGenerator[bytes, None]:
    try:
        while True:
            told = BROKEN
            try:
                chunk = await anext(chunks.iterator, END)
                told = UNWRITTEN
                output, fault = _step(transcoder, chunk)
            except Exception:
                output = transcoder.fail(*told)
                if output:
                    yield output
                raise
            if output:
                yield output
            if fault is not None:
                raise fault
            if chunk is END or _is_over(transcoder):
                return
    finally:
        fault = None
        await chunks.aclose()


def _step(transcoder: StreamRewriter, chunk: Any) -> tuple[bytes, LLMStreamError | None]:
    """What a chunk gave, or the end (END), and the error that strict raises after it."""
    try:
        return (transcoder.close() if chunk is END else transcoder.feed(chunk)), None
    except LLMStreamError as error:
        return transcoder.close(), error


def _is_over(transcoder: StreamRewriter) -> bool:
    # After a whole answer the rest is read, so that the connection can be used again.
    return transcoder.ended and not transcoder.complete
