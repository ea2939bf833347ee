"""What reads along with a response, and the guard that keeps its faults away from the stream."""

from __future__ import annotations

import logging
import zlib

from ..._backend import Parser
from ...observer import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol, Unpack

    from ..._backend import Event
    from ...dialects import Dialect
    from ...stream import Options

    class Tap(Protocol):
        """Reads along: ``feed`` takes each chunk of the decoded body, ``close`` the end of it, however it came."""

        def feed(self, chunk: bytes, /) -> object: ...

        def close(self) -> object: ...


__all__ = ["EventTap", "GuardedTap", "TextTap", "observe_streams", "tell"]

log = logging.getLogger("llmstream.integrations")

STREAMS = ("text/event-stream", "ndjson", "jsonl", "json-seq", "vnd.amazon.eventstream", "application/connect+")
"""What stands in the media type of a stream."""

PIECE = 64 * 1024
"""Bytes of a decompressed body that are held at once."""

STEP = 16 * 1024
"""Bytes that are decompressed at once: zlib copies what is left of them for each piece, and for each member of gzip."""


class EventTap:
    """Hands each event of a stream to ``on_event``. The keywords are those of ``Parser``, which reads leniently. What
    ``on_event`` raises comes out of ``feed``, and the events behind that one in the chunk are not handed on."""

    __slots__ = ("_on_event", "parser")

    def __init__(
        self,
        on_event: Callable[[Event], object],
        dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
        **options: Unpack[Options],
    ) -> None:
        self._on_event = on_event
        self.parser = Parser(dialect, **options)

    def feed(self, chunk: bytes) -> None:
        for event in self.parser.feed(chunk):
            self._on_event(event)

    def close(self) -> Parser:
        for event in self.parser.close():
            self._on_event(event)
        return self.parser


class TextTap:
    """Hands the text of a stream's primary answer to ``on_text``: a str, never empty, for each chunk that has some."""

    __slots__ = ("_on_text", "parser")

    def __init__(
        self,
        on_text: Callable[[str], object],
        dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
        **options: Unpack[Options],
    ) -> None:
        self._on_text = on_text
        self.parser = Parser(dialect, **options)

    def feed(self, chunk: bytes) -> None:
        text = self.parser.feed_text(chunk)
        if text:
            self._on_text(text)

    def close(self) -> Parser:
        self.parser.close()
        return self.parser


def observe_streams(request: Any, response: Any) -> Observer | None:
    """An ``Observer`` for a response whose Content-Type is that of a stream, None for any other."""
    content_type = response.headers.get("content-type", "").lower()
    return Observer() if any(word in content_type for word in STREAMS) else None


class GuardedTap:
    """A tap whose faults, those of the caller's functions, do not reach the stream: they are logged by the name of
    their class, since their words may hold text of the stream, and the tap then gets no more chunks."""

    __slots__ = ("_is_read", "_on_end", "_pieces", "_tap")

    def __init__(self, tap: Tap, on_end: Callable[[Any], object] | None, content_encoding: str) -> None:
        self._tap: Tap | None = tap
        self._on_end = on_end
        self._is_read = True
        self._pieces = _Inflater(content_encoding).pieces if content_encoding else _as_it_is

    @staticmethod
    def reads(content_encoding: str) -> bool:
        """Whether a body of this Content-Encoding can be read along with."""
        return content_encoding in ("", "gzip", "x-gzip", "deflate")

    def feed(self, chunk: bytes) -> None:
        """Shows a chunk of the body, as it was sent, to the tap."""
        if not self._is_read or self._tap is None:
            return
        try:
            for piece in self._pieces(chunk):
                self._tap.feed(piece)
        except Exception as error:  # noqa: BLE001 (whatever it is, the stream goes on)
            self._is_read = False
            tell(error)

    def close(self) -> None:
        """Ends the observation; again, nothing."""
        tap, self._tap = self._tap, None
        if tap is None:
            return
        try:
            result = tap.close()
            if self._on_end is not None:
                self._on_end(result)
        except Exception as error:  # noqa: BLE001 (as above)
            tell(error)


def tell(error: Exception) -> None:
    """Logs what a function of the caller raised, without its words."""
    log.warning("observing a response raised %s; the response itself goes on", type(error).__name__)


def _as_it_is(chunk: bytes) -> Iterator[bytes]:
    return iter((chunk,))


class _Inflater:
    """Decompresses a body piece by piece; a few bytes that stand for very many never stand in memory at once."""

    __slots__ = ("_head", "_inflate", "_is_deflate")

    def __init__(self, content_encoding: str) -> None:
        self._is_deflate = content_encoding == "deflate"
        self._head = b""
        self._inflate: Any = None

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What a chunk says, in pieces. Raises zlib.error for what is not compressed so."""
        for start in range(0, len(chunk), STEP):
            yield from self._step(chunk[start : start + STEP])

    def _step(self, chunk: bytes) -> Iterator[bytes]:
        chunk = self._head + chunk
        self._head = b""
        while chunk:
            if self._inflate is None:
                if self._is_deflate and len(chunk) < 2:
                    self._head = chunk
                    return
                self._inflate = zlib.decompressobj(self._window(chunk))
            piece = self._inflate.decompress(chunk, PIECE)
            chunk = self._inflate.unconsumed_tail
            if self._inflate.eof:  # of one member; gzip may have more (RFC 1952, section 2.2)
                chunk, self._inflate = self._inflate.unused_data, None
            if piece:
                yield piece

    def _window(self, chunk: bytes) -> int:
        if not self._is_deflate:
            return 16 + zlib.MAX_WBITS
        # Many a server sends it without the head that it should have (RFC 9110, section 8.4.1.2).
        has_head = chunk[0] & 15 == zlib.DEFLATED and int.from_bytes(chunk[:2], "big") % 31 == 0
        return zlib.MAX_WBITS if has_head else -zlib.MAX_WBITS
