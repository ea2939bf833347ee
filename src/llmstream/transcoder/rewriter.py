"""What every class has in common that reads a stream in chunks and writes it in another form."""

from __future__ import annotations

from .. import fields
from .._backend import Parser
from .._registry import STANDARD
from ..errors import LLMStreamError
from .losses import LOST, LOST_AT_THE_END

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar, Unpack

    from .._backend import Event
    from .._framing_py import Buffer
    from ..dialects import Dialect
    from ..stream import Options
    from .losses import Fault

__all__ = ["UNWRITTEN", "StreamRewriter"]

UNWRITTEN = ("internal_error", "the stream could not be written")


class StreamRewriter:
    """Base of ``Transcoder`` and ``StreamTranslator``: a parser that reads, and the bytes that are due.

    ``parser`` is the parser. What is written, and how a stream ends, is each one's own. Whatever is raised while events
    are written, by a ``clock`` or by an interrupt, reaches the caller and closes the stream, since these events are
    lost: the next ``close`` or ``fail`` ends it with an error.
    """

    __slots__ = ("_aborted", "_closed", "_fault", "_out", "parser")

    _called: ClassVar[str]

    def __init__(
        self,
        dialect: str | type[Dialect] | Callable[[], Dialect] = STANDARD,
        *,
        strict: bool = False,
        **options: Unpack[Options],
    ) -> None:
        self.parser = Parser(dialect, strict=strict, **options)
        self._closed = False
        self._aborted = False  # nothing more can be written, and so nothing more is read
        self._fault: Fault | None = None  # what strict raised
        self._out: list[bytes] = []

    @property
    def complete(self) -> bool:
        """Whether the whole answer was written, with its end."""
        raise NotImplementedError

    @property
    def ended(self) -> bool:
        """Whether the end was written, or the error in its place; nothing comes after it."""
        raise NotImplementedError

    def feed(self, chunk: Buffer) -> bytes:
        """The events that are due with this chunk (any contiguous bytes-like object), b"" where none is. Raises
        ValueError after ``close`` and ``fail``; in strict mode the LLMStreamError of the first fault."""
        if self._closed:
            raise ValueError(f"the {self._called} is closed")
        if self._aborted:
            return b""
        try:
            events = self.parser.feed(chunk)
        except LLMStreamError as error:
            self._broke(error)
            raise
        self._hand_on(events)
        return self._take()

    def close(self) -> bytes:
        """Ends the stream that is read: the events that were due, and whatever is lacking to the end; an error where
        the end is missing. Idempotent. In strict mode a stream that is cut raises IncompleteStreamError."""
        if not self._closed:
            self._closed = True
            try:
                events = self.parser.close()
            except LLMStreamError as error:
                self._broke(error, cut=True)
                raise
            self._hand_on(events, cut=True, kinds=LOST_AT_THE_END)
        self._end(self._fault or self._torn())
        return self._take()

    def fail(self, code: str = "internal_error", message: str = "") -> bytes:
        """Ends a stream that cannot be read on: the events that were due, and an error unless there was one; b"" where
        it has ended. ``code`` is one of section 5.3.6. Raises TypeError or ValueError for words that cannot be
        written."""
        fault = fields.text("code", code), fields.text("message", message)
        if not self._closed:
            self._closed = True
            try:
                events = self.parser.close()
            except LLMStreamError as error:
                events = error.events
            self._hand_on(events, cut=True, fails=True)
        self._end(fault)
        return self._take()

    def keep_alive(self) -> bytes:
        """A comment, for a stream that is silent for long; its own comments and pings are not handed on. It may stand
        between any two outputs; b"" after the end."""
        raise NotImplementedError

    def _broke(self, error: LLMStreamError, *, cut: bool = False) -> None:
        """A strict parser raised, at the first error: an end that comes before it is a good one."""
        self._closed = True
        self._fault = ("internal_error", str(error))
        self._hand_on(error.events, cut=cut, kinds=())

    def _hand_on(
        self, events: list[Event], *, cut: bool = False, kinds: tuple[int, ...] = LOST, fails: bool = False
    ) -> None:
        """As ``_write``; what is thrown there loses the rest."""
        try:
            self._write(events, cut=cut, kinds=kinds, fails=fails)
        except BaseException:
            # Not all events were written: the stream must not look whole.
            self._closed = True
            self._fault = self._fault or UNWRITTEN
            raise

    def _write(
        self, events: list[Event], *, cut: bool = False, kinds: tuple[int, ...] = LOST, fails: bool = False
    ) -> None:
        """Writes events, and the end where it is among them, unless the stream ``fails``. With ``cut`` they are what
        was left when the bytes ended: a call among them may lack its last words, however whole it looks. ``kinds`` are
        rules that a whole answer does not break."""
        raise NotImplementedError

    def _torn(self) -> Fault | None:
        """Why a stream that was cut ended where it did, if that is known; asked once all was written."""
        return None

    def _end(self, fault: Fault | None) -> None:
        """Ends a stream that has not ended with a fault, or with that of a stream that was cut."""
        raise NotImplementedError

    def _take(self) -> bytes:
        out = self._out
        if not out:
            return b""
        found = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        return found
