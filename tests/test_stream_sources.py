"""Sources are told apart by what they offer; here is one of each kind."""

from __future__ import annotations

import array
import io
import mmap
import os
import tempfile
from types import SimpleNamespace
from typing import Any

import pytest

from streams import BODY, EVENTS, KINDS


class Closed:
    closed_times = 0

    def close(self) -> None:
        self.closed_times += 1


class Httpx(Closed):
    """A response of httpx: both ways are offered, one is possible."""

    headers = ()

    def __init__(self, *, asynchronous: bool = False) -> None:
        self.is_closed = False
        self.stream = _AsyncBytes() if asynchronous else _Bytes()

    def iter_bytes(self, chunk_size: int | None = None) -> Any:
        assert chunk_size is None
        yield from EVENTS

    def aiter_bytes(self, chunk_size: int | None = None) -> Any:
        raise AssertionError("the asynchronous half is not for iter_events")

    def iter_raw(self) -> Any:
        raise AssertionError("not decoded")

    def close(self) -> None:
        super().close()
        self.is_closed = True


class _Bytes:
    def __iter__(self) -> Any:
        yield from EVENTS


class _AsyncBytes:
    async def __aiter__(self) -> Any:
        for chunk in EVENTS:
            yield chunk


class Requests(Closed):
    """A response of requests: to look at ``content`` is to read it all."""

    headers = ()
    encoding = "utf-8"

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Any:
        assert chunk_size is None, "a chunk size holds events back"
        yield from EVENTS

    @property
    def content(self) -> bytes:
        raise AssertionError("the body was read")

    def __iter__(self) -> Any:
        raise AssertionError("pieces of 128 bytes")


class RequestsNotChunked(Requests):
    """Without chunked transfer, iter_content(None) would wait for the whole body."""

    def __init__(self) -> None:
        self.raw = Urllib3()

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Any:
        yield from self.raw.stream(chunk_size, decode_content=True)


class Urllib3(Closed):
    """A response of urllib3 2: also a file, whose read() waits."""

    headers = ()
    chunked = False
    closed = False

    def __init__(self) -> None:
        self._chunks = list(EVENTS)

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""

    def read(self, amt: int | None = None) -> bytes:
        raise AssertionError("waits until it has as much as was asked for")

    readinto = read

    def stream(self, amt: int | None = 2**16, decode_content: bool | None = None) -> Any:
        raise AssertionError("waits for the end")

    @property
    def data(self) -> bytes:
        raise AssertionError("waits for the end")


class Urllib3Read(Urllib3):
    """One that was read before it was handed over."""

    closed = True

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        return b""

    @property
    def data(self) -> bytes:
        return BODY


class Urllib3Old(Closed):
    """A response of urllib3 1."""

    headers = ()

    def stream(self, amt: int | None = 2**16) -> Any:
        assert amt is None
        yield from EVENTS

    def read(self, amt: int | None = None) -> bytes:
        raise AssertionError("waits")

    def __iter__(self) -> Any:
        raise AssertionError("lines")


class HttpClient(Closed):
    """A response of http.client and urllib."""

    headers = ()

    def __init__(self) -> None:
        self._file = io.BufferedReader(io.BytesIO(BODY))

    def read1(self, n: int = -1) -> bytes:
        assert n > 0, "without a limit, as much memory as the body may have bytes"
        return self._file.read1(n)


class Wrapper:
    """A stream object of an SDK, which would read the response itself."""

    def __init__(self, response: Any) -> None:
        self.response = response

    def __iter__(self) -> Any:
        raise AssertionError("objects of the SDK")

    def __next__(self) -> Any:
        raise AssertionError("objects of the SDK")


class Wsgi(Closed):
    """An iterable with a close of its own."""

    def __iter__(self) -> Any:
        return iter(EVENTS)


class Pipe:
    """A file that gives what is there."""

    def __init__(self, method: str) -> None:
        self._chunks = list(EVENTS)
        setattr(self, method, self._read if method != "readinto" else self._readinto)

    def _read(self, size: int) -> bytes:
        assert size > 0
        return self._chunks.pop(0) if self._chunks else b""

    def _readinto(self, buffer: Any) -> int:
        chunk = self._read(1)
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        raise AssertionError("a file is closed by whoever opened it")


RESPONSES = [Httpx, Requests, RequestsNotChunked, Urllib3, Urllib3Read, Urllib3Old, HttpClient]
CLOSED = [*RESPONSES, Wsgi]


@pytest.mark.parametrize("make", CLOSED)
def test_a_response_is_read_as_it_arrives_and_closed(llmstream: Any, make: Any) -> None:
    response = make()
    with llmstream.iter_events(response, strict=True) as events:
        assert [event.type for event in events] == KINDS
    assert response.closed_times == 1

    response = make()
    with llmstream.iter_events(response) as events:
        next(events)
    assert response.closed_times == 1


@pytest.mark.parametrize("make", [Httpx, Requests])
def test_the_response_within_an_sdk_stream_is_read(llmstream: Any, make: Any) -> None:
    response = make()
    assert llmstream.parse(Wrapper(response), strict=True).complete
    assert response.closed_times == 1


@pytest.mark.parametrize("method", ["read1", "read", "readinto"])
def test_a_file_gives_what_is_there_and_stays_open(llmstream: Any, method: str) -> None:
    pipe = Pipe(method)
    assert [event.type for event in llmstream.iter_events(pipe, strict=True)] == KINDS
    with llmstream.iter_events(Pipe(method)) as events:
        next(events)


def test_real_files_stay_open(llmstream: Any) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(BODY)
        for buffering in (-1, 0):
            file.seek(0)
            with open(os.dup(file.fileno()), "rb", buffering=buffering) as again:
                assert llmstream.parse(again, strict=True).complete
                assert not again.closed
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        assert llmstream.parse(mapped, strict=True).complete
        mapped.close()
    memory = io.BytesIO(BODY)
    assert llmstream.parse(memory, strict=True).complete
    assert not memory.closed


def test_a_pipe_hands_on_what_has_arrived(llmstream: Any) -> None:
    read, write = os.pipe()
    with open(read, "rb") as file, llmstream.iter_events(file) as events:
        for chunk, kind in zip(EVENTS, KINDS, strict=True):
            os.write(write, chunk)
            assert next(events).type == kind
        os.close(write)
        assert next(events, None) is None


def test_a_file_that_does_not_block_is_no_end_of_the_stream(llmstream: Any) -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.write(write, EVENTS[0])
    with open(read, "rb", buffering=0) as file, llmstream.iter_events(file) as events:
        assert next(events).type == "stream.start"
        with pytest.raises(BlockingIOError):
            next(events)
    os.close(write)


@pytest.mark.parametrize(
    "make",
    [
        bytes,
        bytearray,
        memoryview,
        lambda body: memoryview(b"x" + body)[1:],
        lambda body: array.array("B", body),
        lambda body: [body],
        lambda body: (memoryview(body),),
        lambda body: iter([bytearray(body), b""]),
    ],
)
def test_bytes_and_iterables_of_bytes(llmstream: Any, make: Any) -> None:
    assert llmstream.parse(make(BODY), strict=True).complete
    assert "".join(llmstream.iter_text(make(BODY))) == "Hello wörld, 東京 🚲"


def test_views_that_are_not_contiguous_are_refused(llmstream: Any) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        llmstream.parse(memoryview(BODY)[::2])


def test_a_generator_is_closed(llmstream: Any) -> None:
    closed: list[bool] = []

    def chunks() -> Any:
        try:
            yield from EVENTS
        finally:
            closed.append(True)

    with llmstream.iter_events(chunks()) as events:
        next(events)
    assert closed == [True]


def test_all_is_closed_even_where_closing_fails(llmstream: Any) -> None:
    class Failing(Httpx):
        def iter_bytes(self, chunk_size: int | None = None) -> Any:
            try:
                yield from EVENTS
            finally:
                raise ConnectionError("in the generator")

    response = Failing()
    events = llmstream.iter_events(response)
    next(events)
    with pytest.raises(ConnectionError):
        events.close()
    assert response.closed_times == 1


class AsyncReader:
    async def __aiter__(self) -> Any:
        yield BODY

    async def read(self, size: int) -> bytes:
        return b""


ASYNCHRONOUS = [
    lambda: Httpx(asynchronous=True),
    lambda: Wrapper(Httpx(asynchronous=True)),
    AsyncReader,
    _AsyncBytes,
    lambda: SimpleNamespace(aiter_bytes=lambda: None),
    lambda: SimpleNamespace(content=SimpleNamespace(iter_any=lambda: None)),
    lambda: SimpleNamespace(iter_any=lambda: None),
    lambda: SimpleNamespace(iter_bytes=_AsyncBytes),
]


@pytest.mark.parametrize("make", ASYNCHRONOUS)
def test_an_asynchronous_source_names_the_function_for_it(llmstream: Any, make: Any) -> None:
    for read in (llmstream.parse, llmstream.iter_events, llmstream.iter_text):
        with pytest.raises(TypeError, match="aiter_events"):
            read(make())


def test_a_body_that_was_read_goes_both_ways(llmstream: Any) -> None:
    response = Httpx(asynchronous=True)
    response.is_closed = True
    response.close = None  # type: ignore[assignment, method-assign]  # refuses, asynchronously
    assert llmstream.parse(response, strict=True).complete
