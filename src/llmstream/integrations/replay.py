"""Recorded streams as an ASGI application: what a developer of a client tests against.

It takes any path. The last segment of it may name a recording, with or without its extension; any other path gets the
recordings in turn, and so it can stand where a vendor's API is expected. The query changes how one is played.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate
from urllib.parse import parse_qsl

from .asgi import EventStreamResponse
from .http.vendors import error_body
from .in_band import error_event, vendor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from .asgi import Receive, Scope, Send
    from .recordings import Recording

__all__ = ["FAULTS", "CutError", "Playing", "Replay"]

FAULTS = ("cut", "stall", "end", "garbage", "error")
BETWEEN = ("garbage", "error")
"""Faults that come between two events, whatever the pieces are."""
GARBAGE = b'\x00\xff\xfe{not JSON at all\xf0\x9f\n\ndata: {"cut": \n\n: \xe2\x28\xa1\n\n'
MESSAGE = "a fault that was asked for"
CORS = [
    ("access-control-allow-origin", "*"),  # no page gains by it what it could not invent itself
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "GET, POST"),
]
MAX_WAIT = 86_400.0
MAX_PARAMETERS = 1000


class CutError(Exception):
    """Raised to the server for the fault ``cut``: it closes the connection, without the end of the response."""


@dataclass(frozen=True, slots=True)
class Playing:
    """How a recording is played. Raises ValueError for what cannot be.

    ``pace``    pieces a second; 0: as fast as they are taken
    ``chunk``   what a piece is, each of which is sent by itself: "event"; "whole", for all at once; or a number of
                bytes, which cuts anywhere
    ``fault``   "cut" closes the connection in the middle of a piece; "stall" sends nothing more and stays; "end" ends
                the response as if all was well; "garbage" puts bytes between two events that are no event; "error" is
                the error of the recording's format, and the end. A status of HTTP ("429") is the answer instead of a
                stream. None: none
    ``after``   how many pieces come before the fault; by default half of them. Before "garbage" and "error" the event
                under way is finished; a last event that the recording has only half of does not come before them
    """

    pace: float = 0.0
    chunk: str = "event"
    fault: str | None = None
    after: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.pace < float("inf"):
            raise ValueError("pace is a number of pieces a second, or 0")
        if self.chunk not in ("event", "whole") and not _is_count(self.chunk):
            raise ValueError('chunk is "event", "whole" or a number of bytes')
        if self.fault is not None and self.fault not in FAULTS and self.status is None:
            raise ValueError(f"fault is one of {', '.join(FAULTS)}, or a status of HTTP from 400 to 599")
        if self.after is not None and self.after < 0:
            raise ValueError("after is a number of pieces")

    @property
    def status(self) -> int | None:
        """The status that is the fault, if it is one."""
        fault = self.fault or ""
        return (
            int(fault) if len(fault) == 3 and fault.isascii() and fault.isdigit() and "400" <= fault < "600" else None
        )

    def changed(self, query: bytes) -> Playing:
        """As a query asks: ``pace=10&chunk=7&fault=cut&after=3``; its other parameters are left alone, for they may be
        a vendor's."""
        changes: dict[str, object] = {}
        for name, value in parse_qsl(query.decode("latin-1"), max_num_fields=MAX_PARAMETERS):
            if name == "pace":
                changes[name] = _pace(value)
            elif name == "after":
                changes[name] = int(value) if _is_count(value) or value == "0" else -1
            elif name in ("chunk", "fault"):
                changes[name] = value
        return replace(self, **changes) if changes else self  # type: ignore[arg-type]


class Replay:
    """An ASGI application that plays recordings, to GET (for a browser's EventSource) and to POST::

        Replay([recording("answer.sse", body)], pace=20)

    ``recordings``  those that are played, at least one
    ``playing``     how, unless a request's query says otherwise
    ``on_request``  called with the method, the path and what is played, for each request
    """

    def __init__(
        self,
        recordings: Sequence[Recording],
        playing: Playing | None = None,
        *,
        on_request: Callable[[str, str, Recording, Playing], object] | None = None,
    ) -> None:
        if not recordings:
            raise ValueError("there is nothing to play")
        self._recordings = list(recordings)
        # A whole name goes before one without its extension, and the first of several goes before the others.
        backwards = self._recordings[::-1]
        self._named = {each.name.rpartition(".")[0]: each for each in backwards} | {
            each.name: each for each in backwards
        }
        self._named.pop("", None)  # a path that ends with a slash names none
        self._playing = playing or Playing()
        self._on_request = on_request
        self._turn = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request. Raises CutError for the fault ``cut``."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("recordings are played over HTTP")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            status = 204 if scope["method"] == "OPTIONS" else 405
            await _answer(send, status, [*CORS, ("allow", "GET, HEAD, POST, OPTIONS")])
            return
        try:
            playing = self._playing.changed(scope["query_string"])
        except ValueError as error:
            await _answer(send, 400, [*CORS, ("content-type", "text/plain")], f"{error}\n".encode())
            return
        found = self._recording(scope["path"])
        if self._on_request is not None:
            self._on_request(scope["method"], scope["path"], found, playing)
        if playing.status is not None:
            await _answer(
                send,
                playing.status,
                [*CORS, ("content-type", "application/json"), ("retry-after", "1")],
                _failed(found.dialect, playing.status),
            )
            return
        headers = [*CORS, ("content-type", found.media_type)]
        await EventStreamResponse(_played(found, playing), headers=headers, keep_alive=None)(scope, receive, send)

    def _recording(self, path: str) -> Recording:
        named = self._named.get(path.rpartition("/")[2])
        if named is not None:
            return named
        found = self._recordings[self._turn % len(self._recordings)]
        self._turn += 1
        return found


def _failed(dialect: str, status: int) -> bytes:
    code = {429: "rate_limited", 503: "overloaded", 529: "overloaded"}.get(status)
    return error_body(vendor_of(dialect), status, code, MESSAGE)  # type: ignore[arg-type]


async def _played(recorded: Recording, playing: Playing) -> AsyncIterator[bytes]:
    pieces, after, events = _planned(recorded, playing)
    clock = asyncio.get_running_loop().time
    due = clock()
    for number, piece in enumerate(pieces):
        if number == after:
            async for more in _fault(recorded, playing, events, piece):
                yield more
            if playing.fault != "garbage":
                return
        if playing.pace and number:
            due += 1 / playing.pace
            await asyncio.sleep(min(max(0.0, due - clock()), MAX_WAIT))
        yield piece
    if after >= len(pieces) and playing.fault is not None:
        async for more in _fault(recorded, playing, events, b""):
            yield more


def _planned(recorded: Recording, playing: Playing) -> tuple[Sequence[bytes], int, int]:
    """The pieces, how many of them come before the fault, and how many whole events these are, where it comes between
    two."""
    pieces = _cut(recorded.pieces, playing.chunk)
    after = len(pieces) if playing.fault is None else len(pieces) // 2 if playing.after is None else playing.after
    if playing.fault not in BETWEEN:
        return pieces, after, 0
    ends = [0, *accumulate(map(len, recorded.pieces[: recorded.whole]))]
    events = min(bisect_left(ends, sum(map(len, pieces[:after]))), len(ends) - 1)
    before = _cut(recorded.pieces[:events], playing.chunk)
    return [*before, *_cut(recorded.pieces[events:], playing.chunk)], len(before), events


async def _fault(recorded: Recording, playing: Playing, events: int, piece: bytes) -> AsyncIterator[bytes]:
    """What comes in the place of a piece, or before it, after so many events."""
    fault = playing.fault
    if fault == "cut":
        if len(piece) > 1:
            yield piece[: len(piece) // 2]
        raise CutError(MESSAGE)
    if fault == "stall":
        yield b""
        await asyncio.Event().wait()
    elif fault == "garbage":
        yield GARBAGE
    elif fault == "error":
        yield _error(recorded, events)


def _error(recorded: Recording, events: int) -> bytes:
    """The error after so many events: an item, and the end, of the array that a stream of JSON is."""
    media_type, pieces = recorded.media_type, recorded.pieces[:events]
    seq = recorded.seq_after(events)
    told = error_event(recorded.dialect, "overloaded", MESSAGE, media_type=media_type, seq=seq)
    if media_type not in ("application/json", "application/x-ndjson"):
        return told
    is_array = recorded.pieces[0].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    is_ended = events == len(recorded.pieces) and pieces[-1].rstrip().endswith(b"]")
    if is_array and not is_ended:
        return (b"," if pieces else b"[") + told.rstrip() + b"]\n"
    return b"\n" + told if pieces and not pieces[-1].endswith((b"\n", b"\r")) else told


def _cut(events: Sequence[bytes], chunk: str) -> Sequence[bytes]:
    """What is sent of these events, piece by piece."""
    if chunk == "event":
        return events
    body = b"".join(events)
    size = max(1, len(body)) if chunk == "whole" else int(chunk)
    return [body[at : at + size] for at in range(0, len(body), size)]


def _pace(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("pace is a number of pieces a second, or 0") from None


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15 and int(text) > 0


async def _answer(send: Send, status: int, headers: list[tuple[str, str]], body: bytes = b"") -> None:
    pairs = [*headers, ("content-length", str(len(body)))] if status != 204 else headers
    raw = [(name.encode(), value.encode()) for name, value in pairs]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
