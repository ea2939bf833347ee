"""aiter_events and aiter_text: sources, closing, and cancellation anywhere."""

from __future__ import annotations

import asyncio
import gc
import io
import sys
import weakref
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from streams import BODY, CUT, EVENTS, FAILED, GAP, KINDS, TEXTS

TEXT = "".join(TEXTS)


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """As asyncio.run, and no task, generator or exception may be left over."""
    left: list[Any] = []

    async def watched() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: left.append(context))
        found = await main
        gc.collect()
        await asyncio.sleep(0)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        assert not tasks
        return found

    found = asyncio.run(watched(), debug=False)
    assert left == []
    return found


class Httpx:
    headers = ()

    def __init__(self, chunks: Any = EVENTS, *, hang: bool = False) -> None:
        self.chunks = chunks
        self.hang = hang
        self.closed: list[str] = []
        self.is_closed = False
        self.stream = _OneWay()

    async def aiter_bytes(self, chunk_size: int | None = None) -> Any:
        assert chunk_size is None
        try:
            for chunk in self.chunks:
                await asyncio.sleep(0)
                yield chunk
            if self.hang:
                await asyncio.Event().wait()
        finally:
            self.closed.append("iterator")

    def iter_bytes(self, chunk_size: int | None = None) -> Any:
        raise AssertionError("the synchronous half is not for aiter_events")

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed.append("response")
        self.is_closed = True

    def close(self) -> None:
        raise AssertionError("not from a running loop")


class _OneWay:
    async def __aiter__(self) -> Any:
        yield b""


class _Sync:
    def __iter__(self) -> Any:
        return iter(EVENTS)


class OpenAI(Httpx):
    """The raw response of an asynchronous SDK client: iter_bytes is asynchronous."""

    aiter_bytes = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        del self.stream

    def __getattribute__(self, name: str) -> Any:
        if name in ("aiter_bytes", "aclose"):
            raise AttributeError(name)
        return super().__getattribute__(name)

    async def iter_bytes(self, chunk_size: int | None = None) -> Any:
        for chunk in EVENTS:
            yield chunk

    async def close(self) -> None:  # type: ignore[override]
        self.closed.append("response")


class Aiohttp:
    headers = ()

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.content = SimpleNamespace(iter_any=Httpx().aiter_bytes)

    def release(self) -> Any:
        self.closed.append("response")

    def close(self) -> None:
        raise AssertionError("the connection could be used again")

    async def read(self) -> bytes:
        raise AssertionError("waits for the end")


class AsyncFile:
    """As anyio and aiofiles give it; iterated it gives lines."""

    def __init__(self, method: str) -> None:
        self._chunks = list(EVENTS)
        setattr(self, method, self._read)

    def __aiter__(self) -> Any:
        raise AssertionError("lines are held back")

    async def _read(self, size: int) -> bytes:
        assert size > 0
        await asyncio.sleep(0)
        return self._chunks.pop(0) if self._chunks else b""

    async def aclose(self) -> None:
        raise AssertionError("a file is closed by whoever opened it")


async def kinds(source: Any) -> list[str]:
    return [event.type async for event in source]


@pytest.mark.parametrize("make", [Httpx, OpenAI, Aiohttp])
def test_a_response_is_read_and_closed(llmstream: Any, make: Any) -> None:
    async def main() -> None:
        response = make()
        async with llmstream.aiter_events(response, strict=True) as events:
            assert await kinds(events) == KINDS
            assert response.closed.count("response") == 1
        assert response.closed.count("response") == 1

        response = make()
        async with llmstream.aiter_events(response) as events:
            assert (await anext(events)).type == "stream.start"
        assert response.closed.count("response") == 1

        if make is not Aiohttp:  # which no SDK wraps
            response = make()
            wrapper = SimpleNamespace(response=response)
            assert await kinds(llmstream.aiter_events(wrapper, strict=True)) == KINDS
            assert response.closed.count("response") == 1

    run(main())


@pytest.mark.parametrize(
    "make",
    [
        lambda: BODY,
        lambda: bytearray(BODY),
        lambda: EVENTS,
        lambda: iter(EVENTS),
        lambda: io.BytesIO(BODY),
        lambda: AsyncFile("read"),
        lambda: AsyncFile("read1"),
        lambda: Httpx().aiter_bytes(),
        lambda: SimpleNamespace(iter_any=Httpx().aiter_bytes),
    ],
)
def test_other_sources(llmstream: Any, make: Any) -> None:
    async def main() -> None:
        assert await kinds(llmstream.aiter_events(make(), strict=True)) == KINDS
        pieces = [piece async for piece in llmstream.aiter_text(make(), strict=True)]
        assert "".join(pieces) == TEXT
        assert all(pieces)

    run(main())


def test_a_stream_reader_gives_what_is_there(llmstream: Any) -> None:
    async def main() -> None:
        reader = asyncio.StreamReader()
        async with llmstream.aiter_events(reader, strict=True) as events:
            for chunk, kind in zip(EVENTS, KINDS, strict=True):
                reader.feed_data(chunk)
                assert (await anext(events)).type == kind
            reader.feed_eof()
            assert await anext(events, None) is None

    run(main())


def test_a_synchronous_response_names_the_function_for_it(llmstream: Any) -> None:
    httpx = Httpx()
    httpx.stream = _Sync()  # type: ignore[assignment]
    sources = [
        httpx,
        SimpleNamespace(iter_content=lambda _: EVENTS, headers={}),
        SimpleNamespace(iter_bytes=lambda: EVENTS),
        SimpleNamespace(read1=lambda _: b"", headers={}),
    ]
    for source in sources:
        for read in (llmstream.aiter_events, llmstream.aiter_text):
            with pytest.raises(TypeError, match="iter_events"):
                read(source)
    for source in (BODY.decode(), None, 7):
        with pytest.raises(TypeError):
            llmstream.aiter_events(source)


def test_faults_come_after_what_was_before_them(llmstream: Any) -> None:
    async def gather(source: Any) -> tuple[list[Any], BaseException | None]:
        seen: list[Any] = []
        try:
            async for item in source:
                seen.append(getattr(item, "type", item))  # noqa: PERF401 (kept when it raises)
        except llmstream.LLMStreamError as error:
            return seen, error
        return seen, None

    async def main() -> None:
        response = Httpx([GAP])
        seen, error = await gather(llmstream.aiter_events(response, strict=True))
        assert (seen, type(error)) == (KINDS[:2], llmstream.SequenceError)
        assert "response" in response.closed

        seen, error = await gather(llmstream.aiter_events([CUT]))
        assert (seen, error) == (KINDS[:-1], None)

        for strict in (False, True):
            seen, error = await gather(llmstream.aiter_text([CUT], strict=strict))
            assert (seen, type(error)) == ([TEXT], llmstream.IncompleteStreamError)
            seen, error = await gather(llmstream.aiter_text([FAILED], strict=strict))
            assert (seen, type(error)) == ([TEXT], llmstream.UpstreamError)

    run(main())


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="without reference counts")
def test_a_fault_is_freed_without_the_collector(llmstream: Any) -> None:
    async def main() -> None:
        gc.collect()
        gc.disable()
        try:
            kept = None
            try:
                await kinds(llmstream.aiter_events([GAP], strict=True))
            except llmstream.LLMStreamError as error:
                kept = weakref.ref(error)
            assert kept is not None
            assert kept() is None
        finally:
            gc.enable()

    run(main())


def test_a_failing_response_is_closed(llmstream: Any) -> None:
    def chunks() -> Any:
        yield EVENTS[0]
        raise ConnectionResetError("gone")

    async def main() -> None:
        response = Httpx(chunks())
        events = llmstream.aiter_events(response)
        assert (await anext(events)).type == "stream.start"
        with pytest.raises(ConnectionResetError):
            await anext(events)
        assert response.closed == ["iterator", "response"]
        assert await anext(events, None) is None

    run(main())


def test_aclose_before_and_twice(llmstream: Any) -> None:
    async def main() -> None:
        response = Httpx()
        events = llmstream.aiter_events(response)
        await events.aclose()
        await events.aclose()
        assert await kinds(events) == []
        assert response.closed == ["response"]

        response = Httpx([BODY])
        async with llmstream.aiter_events(response) as events:
            seen = 0
            async for _ in events:
                seen += 1
                if seen == 3:
                    await events.aclose()
        assert (seen, response.closed) == (3, ["iterator", "response"])

    run(main())


def test_cancelled_while_it_waits_for_bytes(llmstream: Any) -> None:
    async def main() -> None:
        response = Httpx(EVENTS[:2], hang=True)
        seen: list[str] = []

        async def read() -> None:
            async for event in llmstream.aiter_events(response):
                seen.append(event.type)  # noqa: PERF401 (it is cancelled in between)

        task = asyncio.create_task(read())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (seen, response.closed) == (KINDS[:2], ["iterator", "response"])

    run(main())


def test_cancelled_while_the_caller_works(llmstream: Any) -> None:
    async def main() -> None:
        response = Httpx()
        began = asyncio.Event()

        async def read() -> None:
            async with llmstream.aiter_text(response) as texts:
                async for _ in texts:
                    began.set()
                    await asyncio.sleep(60)

        task = asyncio.create_task(read())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert response.closed == ["iterator", "response"]

    run(main())


def test_cancelled_while_it_closes(llmstream: Any) -> None:
    class Slow(Httpx):
        async def aclose(self) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                self.closed.append("response")

    async def main() -> None:
        response = Slow(EVENTS[:1])
        events = llmstream.aiter_events(response)
        assert (await anext(events)).type == "stream.start"
        task = asyncio.create_task(events.aclose())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert response.closed == ["iterator", "response"]
        await events.aclose()
        assert response.closed == ["iterator", "response"]

    run(main())


def test_a_timeout_ends_the_wait(llmstream: Any) -> None:
    async def main() -> None:
        response = Httpx(EVENTS[:1], hang=True)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), llmstream.aiter_events(response) as events:
                await kinds(events)
        assert response.closed == ["iterator", "response"]

    run(main())


def test_aclose_from_another_task(llmstream: Any) -> None:
    class Waking(Httpx):
        def __init__(self) -> None:
            super().__init__()
            self.wake = asyncio.Event()

        async def aiter_bytes(self, chunk_size: int | None = None) -> Any:
            yield EVENTS[0]
            await self.wake.wait()

        async def aclose(self) -> None:
            self.closed.append("response")
            self.wake.set()

    async def main() -> None:
        response = Waking()
        events = llmstream.aiter_events(response)
        task = asyncio.create_task(kinds(events))
        await asyncio.sleep(0.01)
        await events.aclose()
        assert await task == KINDS[:1]
        assert response.closed == ["response"]

    run(main())


def test_an_iterator_that_is_dropped_closes(llmstream: Any) -> None:
    async def main() -> None:
        response = Httpx()
        async for _ in llmstream.aiter_events(response):
            break
        gc.collect()
        for _ in range(20):
            await asyncio.sleep(0)
        assert response.closed == ["iterator", "response"]

    run(main())


def test_the_loop_goes_on_between_chunks(llmstream: Any) -> None:
    async def main() -> None:
        events = llmstream.aiter_events(Httpx())
        assert (await anext(events)).type == "stream.start"
        assert await kinds(events) == KINDS[1:]
        assert events.parser.complete

    run(main())
