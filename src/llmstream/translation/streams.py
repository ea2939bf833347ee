"""Any stream that a parser reads, written as that of OpenAI, Anthropic or Gemini (draft, section 7.1)."""

from __future__ import annotations

import time

from .._backend import StreamEnd, ToolCall
from .._registry import STANDARD
from ..source import async_chunks, chunks
from ..transcoder.losses import CUT, LOST, lost
from ..transcoder.rewriter import StreamRewriter
from ..transcoder.streams import AsyncByteStream, ByteStream
from .anthropic_stream import AnthropicWriter
from .gemini_stream import GeminiWriter
from .openai_stream import OpenAIWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from .._backend import Event
    from ..dialects import Dialect
    from ..source import AsyncSource, Source
    from ..stream import Options
    from ..transcoder.losses import Fault
    from .requests import Vendor
    from .writer import VendorWriter

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
    free_text: bool = False,
    include_usage: bool = True,
    clock: Callable[[], float] = time.time,
) -> VendorWriter:
    """The ``VendorWriter`` for the stream of OpenAI's chat completions, Anthropic's messages or Gemini's
    streamGenerateContent. Raises ValueError for another name."""
    Writer = WRITERS.get(dialect)  # noqa: N806
    if Writer is None:
        raise ValueError(f"unknown vendor {dialect!r}; streams are written for {', '.join(WRITERS)}")
    return Writer(
        model=model,
        response_id=response_id,
        alternatives=alternatives,
        free_text=free_text,
        include_usage=include_usage,
        clock=clock,
    )


class StreamTranslator(StreamRewriter):
    """Reads one stream of any dialect, in chunks cut anywhere, and writes it as the stream of a vendor::

        translator = llmstream.StreamTranslator("openai")             # from "llm-stream", the standard
        for chunk in chunks:
            yield translator.feed(chunk)
        yield translator.close()          # or translator.fail(...), where the chunks ended with an exception

    ``writer`` is the ``VendorWriter`` that writes, ``parser`` the one that reads; the further keywords are theirs. A
    stream that is cut, or of which a part could not be read, ends with the vendor's error and never looks complete. So
    does one whose ``clock`` raised in ``feed``, which is then closed.

    ``strict``: ``feed`` and ``close`` raise as a strict ``Parser`` does; the next ``close`` or ``fail`` then gives what
    was before the fault, and the error.
    """

    __slots__ = ("writer",)

    _called = "translator"

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
        super().__init__(dialect, strict=strict, **options)

    @property
    def complete(self) -> bool:
        """Whether the whole answer was written, with its end."""
        return self.writer.complete

    @property
    def ended(self) -> bool:
        """Whether the end or an error was written; nothing comes after it."""
        return self.writer.ended

    def keep_alive(self) -> bytes:
        """As that of the writer."""
        return self.writer.keep_alive()

    def _write(
        self, events: list[Event], *, cut: bool = False, kinds: tuple[int, ...] = LOST, fails: bool = False
    ) -> None:
        cut = cut and (fails or not self.parser.complete)
        self.writer.alternatives = self.parser.alternatives
        self.writer.free_text = self.parser.dialect != STANDARD
        for event in events:
            if cut and type(event) is ToolCall:
                self.writer.left_out += 1
            elif type(event) is StreamEnd and fails:
                return
            elif type(event) is StreamEnd and not self.writer.ended and (fault := self._missing(kinds)) is not None:
                self._out.append(self.writer.fail(*fault))
            else:
                self._out.append(self.writer.write(event))

    def _end(self, fault: Fault | None) -> None:
        self._out.append(self.writer.fail(*(fault or CUT)))

    def _missing(self, kinds: tuple[int, ...]) -> tuple[str, str] | None:
        """Why a stream that came to its end is not whole."""
        parser = self.parser
        if not parser.complete:
            return CUT
        return lost(parser, kinds)


def translate_stream(
    source: Source,
    *,
    to: Vendor,
    dialect: str | type[Dialect] | Callable[[], Dialect] = STANDARD,
    strict: bool = False,
    **options: Unpack[TranslatorOptions],
) -> ByteStream[StreamTranslator]:
    """The bytes of a vendor's stream, as those of the source arrive: bytes, never empty, for each chunk that has
    events.

    The result is an iterator and a context manager, whose ``transcoder`` is the ``StreamTranslator``; ``source`` is
    read and closed as by ``iter_events``. Where reading raises, the stream is ended with the vendor's error
    first, and then the exception is raised; so for what strict raises.
    """
    return ByteStream(chunks(source), StreamTranslator(to, dialect, strict=strict, **options))


def atranslate_stream(
    source: AsyncSource,
    *,
    to: Vendor,
    dialect: str | type[Dialect] | Callable[[], Dialect] = STANDARD,
    strict: bool = False,
    **options: Unpack[TranslatorOptions],
) -> AsyncByteStream[StreamTranslator]:
    """As ``translate_stream``, for the sources of ``aiter_events``: an asynchronous iterator and context manager,
    closed by ``aclose()``."""
    return AsyncByteStream(async_chunks(source), StreamTranslator(to, dialect, strict=strict, **options))
