"""A server on the loopback interface that answers as it is told: whole, cut, stalled, byte by byte, reset, garbage.

It speaks HTTP/1.1 and, to a client that begins with it, HTTP/2 without TLS ("prior knowledge", RFC 9113, section 3.3),
for which ``h2`` is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import importlib
import re
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

PATIENCE = 30.0
"""Seconds after which a test gives up; none takes a part of it where all is well."""

MORE = 10
"""Bytes that a ``Torn`` piece says it has more than it has."""


class Do(enum.Enum):
    """What the server does instead of sending."""

    CUT = "end its side of the connection, and wait for the client to end its own"
    RESET = "reset the connection (TCP)"
    STALL = "send nothing, until the client has left"
    WAIT = "wait until the test calls ``proceed``"


class Raw(bytes):
    """Bytes that are sent as they are, without the framing of HTTP."""


class Torn(bytes):
    """A piece of the body that is shorter than the chunk of HTTP/1.1, or the frame of HTTP/2, says that it is in."""


@dataclass(frozen=True)
class Reset:
    """Ends the stream of HTTP/2 by RST_STREAM."""

    code: int


@dataclass(frozen=True)
class GoAway:
    """Tells the client of HTTP/2 that nothing more comes. ``is_refused``: this stream was not looked at either."""

    code: int
    is_refused: bool


Step = bytes | Do | Reset | GoAway


@dataclass(frozen=True)
class Answer:
    """An answer: pieces of its body, each sent by itself, and what else happens.

    ``framing``  of the body in HTTP/1.1: "chunked", "length" (with Content-Length) or "close"
    ``length``   the Content-Length, where it is not that of the steps
    ``head``     whether status and headers are sent
    ``single``   each byte of HTTP/1.1 is sent by itself, those of the headers too
    """

    steps: tuple[Step, ...]
    framing: str = "chunked"
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/event-stream"),)
    length: str | None = None
    head: bool = True
    single: bool = False

    @property
    def said_length(self) -> str:
        return str(sum(map(len, body_of(self.steps)))) if self.length is None else self.length


def body_of(steps: Sequence[Step]) -> list[bytes]:
    """The pieces of a body."""
    return [step for step in steps if isinstance(step, bytes)]


class FaultyServer:
    """``answers`` has them by the first part of the path; ``open`` counts the connections that either side holds."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests = 0
        self.connections = 0
        self.open = 0
        self.port = 0
        self.faults: list[BaseException] = []
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._go = asyncio.Event()

    def url(self, name: str, *, go: bool = False) -> str:
        """``go``: the answer waits for nobody."""
        return f"http://127.0.0.1:{self.port}/{name}{'?go' if go else ''}"

    def proceed(self) -> None:
        """Lets an answer that waits go on."""
        self._loop.call_soon_threadsafe(self._go.set)

    def until_open(self, most: int = 0) -> None:
        """Returns once no more connections than these are held; ends those that still are, and fails."""
        with self._changed:
            if self._changed.wait_for(lambda: self.open <= most, PATIENCE):
                return
            held = self.open
        self._loop.call_soon_threadsafe(self._hang_up)  # else every test after this one would wait for them too
        raise AssertionError(f"{held} connections are open")

    def run(self, started: Callable[[], object]) -> None:
        """Serves until ``stop``."""
        self._loop.run_until_complete(self._serve(started))
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def _serve(self, started: Callable[[], object]) -> None:
        self._stopped = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1000)
        self.port = server.sockets[0].getsockname()[1]
        started()
        await self._stopped.wait()
        server.close()
        self._hang_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hang_up(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._connection(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count(1)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            serve = self._http2 if head.startswith(b"PRI ") else self._http1
            await serve(reader, writer, head)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, or the test is over
        except BaseException as error:  # noqa: BLE001 (a fault of the test)
            self.faults.append(error)
        finally:
            writer.transport.abort()
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._changed:
            self.open += more
            self.connections += more > 0
            self._changed.notify_all()

    def _answer(self, path: bytes) -> Answer:
        name, _, query = path.decode().split("/")[1].partition("?")
        self.requests += 1
        self._go.clear()
        if query == "go":
            self._go.set()
        return self.answers[name]

    # HTTP/1.1

    async def _http1(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        while True:
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            if not await self._write1(self._answer(head.split(b" ")[1]), reader, writer):
                return
            head = await reader.readuntil(b"\r\n\r\n")

    async def _write1(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Sends an answer; whether the connection can be used again."""
        leaving = asyncio.ensure_future(_left(reader)) if Do.STALL in answer.steps or Do.CUT in answer.steps else None
        try:
            if answer.head:
                await _send(writer, _head(answer), answer.single)
            for step in answer.steps:
                if isinstance(step, bytes):
                    await _send(writer, _framed(step, answer.framing), answer.single)
                elif step is Do.WAIT:
                    await asyncio.wait_for(self._go.wait(), PATIENCE)
                elif step is Do.RESET:
                    _reset(writer)
                    return False
                else:
                    if step is Do.CUT:
                        writer.write_eof()
                    assert leaving is not None
                    await leaving
                    return False
            if answer.framing == "chunked":
                await _send(writer, b"0\r\n\r\n", answer.single)
            elif answer.framing == "close":
                writer.write_eof()
                await _left(reader)
                return False
            return True
        finally:
            if leaving is not None:
                leaving.cancel()

    # HTTP/2

    async def _http2(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
        connection = Http2(writer)
        answering: dict[int, asyncio.Task[None]] = {}
        try:
            while data:
                for event in connection.receive(data):
                    kind = type(event).__name__
                    if kind == "RequestReceived":
                        answer = self._answer(dict(event.headers)[b":path"])
                        answering[event.stream_id] = self._loop.create_task(self._write2(answer, connection, event))
                    elif kind == "StreamReset" and event.stream_id in answering:
                        answering[event.stream_id].cancel()
                data = await reader.read(65536)
        finally:
            for task in answering.values():
                task.cancel()
            found = await asyncio.gather(*answering.values(), return_exceptions=True)
            self.faults += [error for error in found if error and not isinstance(error, asyncio.CancelledError)]

    async def _write2(self, answer: Answer, connection: Http2, event: Any) -> None:
        number = event.stream_id
        with contextlib.suppress(OSError, connection.Gone):
            if answer.head:
                more = [] if answer.length is None else [("content-length", answer.length)]
                connection.headers(number, [(":status", "200"), *answer.headers, *more])
            for step in answer.steps:
                if step is Do.WAIT:
                    await asyncio.wait_for(self._go.wait(), PATIENCE)
                elif step is Do.STALL:
                    await asyncio.Event().wait()
                elif step is Do.CUT:
                    connection.writer.write_eof()
                    return
                elif step is Do.RESET:
                    _reset(connection.writer)
                    return
                elif isinstance(step, Reset):
                    connection.reset(number, step.code)
                    return
                elif isinstance(step, GoAway):
                    connection.go_away(0 if step.is_refused else number, step.code)
                elif isinstance(step, Torn):
                    connection.torn(number, step)
                elif isinstance(step, Raw):
                    connection.writer.write(step)
                elif isinstance(step, bytes):
                    await connection.data(number, step)
                await connection.writer.drain()
            await connection.data(number, b"", end=True)


class Http2:
    """The side of a server, by ``h2``."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        config = importlib.import_module("h2.config")
        self.Gone = importlib.import_module("h2.exceptions").ProtocolError
        self.writer = writer
        self._h2 = importlib.import_module("h2.connection").H2Connection(config.H2Configuration(client_side=False))
        self._window = asyncio.Event()
        self._h2.initiate_connection()
        self._flush()

    def receive(self, data: bytes) -> list[Any]:
        events: list[Any] = self._h2.receive_data(data)
        for event in events:
            if type(event).__name__ == "DataReceived":
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        self._window.set()
        self._flush()
        return events

    def headers(self, number: int, headers: list[tuple[str, str]]) -> None:
        self._h2.send_headers(number, headers)
        self._flush()

    async def data(self, number: int, data: bytes, *, end: bool = False) -> None:
        while data and self._h2.local_flow_control_window(number) < len(data):
            self._window.clear()
            await asyncio.wait_for(self._window.wait(), PATIENCE)
        self._h2.send_data(number, data, end_stream=end)
        self._flush()

    def reset(self, number: int, code: int) -> None:
        self._h2.reset_stream(number, code)
        self._flush()

    def go_away(self, last: int, code: int) -> None:
        """RFC 9113, section 6.8: by hand, since h2 writes nothing more after its own."""
        self.writer.write(struct.pack(">IBIII", 8 << 8 | 7, 0, 0, last, code))

    def torn(self, number: int, data: bytes) -> None:
        """The head of a DATA frame (section 4.1), and less than it says."""
        self.writer.write(struct.pack(">IBI", (len(data) + MORE) << 8, 0, number) + data)

    def _flush(self) -> None:
        with contextlib.suppress(RuntimeError):  # after the end of this side
            self.writer.write(self._h2.data_to_send())


def _head(answer: Answer) -> bytes:
    headers = list(answer.headers)
    if answer.framing == "chunked":
        headers.append(("transfer-encoding", "chunked"))
    elif answer.framing == "length":
        headers.append(("content-length", answer.said_length))
    else:
        headers.append(("connection", "close"))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode()


def _framed(piece: bytes, framing: str) -> bytes:
    if isinstance(piece, Raw) or framing != "chunked":
        return bytes(piece)
    if isinstance(piece, Torn):
        return b"%x\r\n%b" % (len(piece) + MORE, piece)
    return b"%x\r\n%b\r\n" % (len(piece), piece)


async def _send(writer: asyncio.StreamWriter, data: bytes, single: bool) -> None:
    size = 1 if single else len(data) or 1
    for start in range(0, len(data), size):
        writer.write(data[start : start + size])
        await writer.drain()
        await asyncio.sleep(0)


async def _left(reader: asyncio.StreamReader) -> None:
    """Returns when the client has ended its side."""
    with contextlib.suppress(ConnectionError):
        while await reader.read(65536):
            pass


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextlib.contextmanager
def serving() -> Iterator[FaultyServer]:
    server = FaultyServer()
    started = threading.Event()
    thread = threading.Thread(target=server.run, args=(started.set,), daemon=True)
    thread.start()
    try:
        assert started.wait(PATIENCE)
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    for fault in server.faults:
        raise fault


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """As asyncio.run; no task, asynchronous generator or unhandled exception may be left over."""
    left: list[Any] = []

    async def watched() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: left.append(context))
        found = await main
        for _ in range(3):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    found = asyncio.run(watched())
    assert left == []
    return found
