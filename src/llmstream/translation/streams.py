"""Any stream that a parser reads, written as that of OpenAI, Anthropic or Gemini (draft, section 7.1)."""

from __future__ import annotations

import time

from .. import fields
from .._backend import Parser, StreamEnd, ToolCall
from .._registry import STANDARD
from ..errors import LLMStreamError
from ..source import async_chunks, chunks
from ..transcoder.losses import LOST, LOST_AT_THE_END, lost
from ..transcoder.streams import AsyncByteStream, ByteStream
from .anthropic_stream import AnthropicWriter
from .gemini_stream import GeminiWriter
from .openai_stream import OpenAIWriter
from .writer import CUT, VendorWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Unpack

    from .._backend import Event
    from .._framing_py import Buffer
    from ..dialects import Dialect
    from ..source import AsyncSource, Source
    from ..stream import Options
    from .requests import Vendor

    class TranslatorOptions(Options, total=False):
        """The further keywords of ``StreamTranslator``."""

        model: str | None
        response_id: str | None
        include_usage: bool
        clock: Callable[[], float]


__all__ = ["StreamTranslator", "atranslate_stream", "translate_stream", "writer_for"]

WRITERS: dict[str, type[VendorWriter]] = {
    "openai": OpenAIWriter,
    "anthropic": AnthropicWriter,
    "gemini": GeminiWriter,
}


def writer_for(
    dialect: Vendor,
    *,
    model: str | None = None,
    response_id: str | None = None,
    alternatives: bool = False,
    include_usage: bool = True,
    clock: Callable[[], float] = time.time,
) -> VendorWriter:
    """The ``VendorWriter`` for the stream of OpenAI's chat completions, Anthropic's messages or Gemini's
    streamGenerateContent. Raises ValueError for another name."""
    Writer = WRITERS.get(dialect)  # noqa: N806
    if Writer is None:
        raise ValueError(f"unknown vendor {dialect!r}; streams are written for {', '.join(WRITERS)}")
    return Writer(
        model=model, response_id=response_id, alternatives=alternatives, include_usage=include_usage, clock=clock
    )


class StreamTranslator:
    """Reads one stream of any dialect, in chunks cut anywhere, and writes it as the stream of a vendor::

        translator = llmstream.StreamTranslator("openai")             # from "llm-stream", the standard
        for chunk in chunks:
            yield translator.feed(chunk)
        yield translator.close()          # or translator.fail(...), where the chunks ended with an exception

    ``writer`` is the ``VendorWriter`` that writes, ``parser`` the one that reads; the further keywords are theirs. A
    stream that is cut, or of which a part could not be read, ends with the vendor's error and never looks complete.

    ``strict``: ``feed`` and ``close`` raise as a strict ``Parser`` does; the next ``close`` or ``fail`` then gives what
    was before the fault, and the error.
    """

    __slots__ = ("_closed", "_fault", "_out", "parser", "writer")

    def __init__(
        self,
        to: Vendor,
        dialect: str | type[Dialect] | Callable[[], Dialect] = STANDARD,
        *,
        strict: bool = False,
        model: str | None = None,
        response_id: str | None = None,
        include_usage: bool = True,
        clock: Callable[[], float] = time.time,
        **options: Unpack[Options],
    ) -> None:
        self.writer = writer_for(to, model=model, response_id=response_id, include_usage=include_usage, clock=clock)
        self.parser = Parser(dialect, strict=strict, **options)
        self._closed = False
        self._fault = CUT
        self._out: list[bytes] = []

    @property
    def complete(self) -> bool:
        """Whether the whole answer was written, with its end."""
        return self.writer.complete

    @property
    def ended(self) -> bool:
        """Whether the end or an error was written; nothing comes after it."""
        return self.writer.ended

    def feed(self, chunk: Buffer) -> bytes:
        """The vendor's events that are due with this chunk (any contiguous bytes-like object), b"" where none is.
        Raises ValueError after ``close`` and ``fail``; in strict mode the LLMStreamError of the first fault."""
        if self._closed:
            raise ValueError("the translator is closed")
        try:
            events = self.parser.feed(chunk)
        except LLMStreamError as error:
            self._broke(error)
            raise
        self._write(events)
        return self._take()

    def close(self) -> bytes:
        """Ends the stream: the events that were due, and an error where the end is missing. Idempotent. In strict mode
        a stream that is cut raises IncompleteStreamError."""
        if not self._closed:
            self._closed = True
            try:
                events = self.parser.close()
            except LLMStreamError as error:
                self._broke(error)
                raise
            self._write(events, cut=not self.parser.complete, kinds=LOST_AT_THE_END)
        self._out.append(self.writer.fail(*self._fault))
        return self._take()

    def fail(self, code: str = "internal_error", message: str = "") -> bytes:
        """Ends a stream whose source cannot be read on: the events that were due, and the vendor's error; b"" where it
        has ended. ``code`` is one of section 5.3.6. Raises TypeError or ValueError for words that cannot be written."""
        code, message = fields.text("code", code), fields.text("message", message)
        if not self._closed:
            self._closed = True
            try:
                events = self.parser.close()
            except LLMStreamError as error:
                events = error.events
            self._write([event for event in events if type(event) is not StreamEnd], cut=True)
        self._out.append(self.writer.fail(code, message))
        return self._take()

    def keep_alive(self) -> bytes:
        """As that of the writer."""
        return self.writer.keep_alive()

    def _broke(self, error: LLMStreamError) -> None:
        self._closed = True
        self._fault = ("internal_error", str(error))
        self._write(error.events)

    def _write(self, events: list[Event], *, cut: bool = False, kinds: tuple[int, ...] = LOST) -> None:
        """Writes events. With ``cut`` they are what was left when the bytes ended: a call among them may lack its last
        words, however whole it looks. ``kinds`` are rules that a whole answer does not break."""
        self.writer.alternatives = self.parser.alternatives
        for event in events:
            if cut and type(event) is ToolCall:
                self.writer.left_out += 1
            elif type(event) is StreamEnd and not self.writer.ended and (fault := self._missing(kinds)) is not None:
                self._out.append(self.writer.fail(*fault))
            else:
                self._out.append(self.writer.write(event))

    def _missing(self, kinds: tuple[int, ...]) -> tuple[str, str] | None:
        """Why a stream that came to its end is not whole."""
        parser = self.parser
        if not parser.complete:
            return CUT
        return lost(parser, kinds)

    def _take(self) -> bytes:
        found = b"".join(self._out)
        self._out.clear()
        return found


def translate_stream(
    source: Source,
    *,
    to: Vendor,
    dialect: str | type[Dialect] | Callable[[], Dialect] = STANDARD,
    strict: bool = False,
    **options: Unpack[TranslatorOptions],
) -> ByteStream:
    """The bytes of a vendor's stream, as those of the source arrive: bytes, never empty, for each chunk that has
    events.

    The result is an iterator and a context manager, whose ``transcoder`` is the ``StreamTranslator``; ``source`` is
    read and closed as by ``iter_events``. Where reading raises, the stream is ended with the vendor's error
    first, and then the exception is raised; so for what strict raises.
    """
    translator: Any = StreamTranslator(to, dialect, strict=strict, **options)
    return ByteStream(chunks(source), translator)  # it asks of a transcoder what a translator has


def atranslate_stream(
    source: AsyncSource,
    *,
    to: Vendor,
    dialect: str | type[Dialect] | Callable[[], Dialect] = STANDARD,
    strict: bool = False,
    **options: Unpack[TranslatorOptions],
) -> AsyncByteStream:
    """As ``translate_stream``, for the sources of ``aiter_events``: an asynchronous iterator and context manager,
    closed by ``aclose()``."""
    translator: Any = StreamTranslator(to, dialect, strict=strict, **options)
    return AsyncByteStream(async_chunks(source), translator)
