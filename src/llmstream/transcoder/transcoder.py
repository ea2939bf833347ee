"""The Transcoder: vendor bytes in, strict standard bytes out (draft, section 7.1)."""

from __future__ import annotations

import time

from .. import fields, rules
from .._backend import Parser, UnknownEvent
from .._registry import STANDARD
from ..errors import LifecycleError, LLMStreamError, SequenceError
from .losses import LOST, LOST_AT_THE_END, lost
from .writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, Unpack

    from .._backend import Event, StreamError, Usage, Violation
    from .._framing_py import Buffer
    from ..dialects import Dialect
    from ..stream import Options
    from .writer import Fault

__all__ = ["Transcoder"]

CUT = ("internal_error", rules.RULES[rules.NOT_ENDED].message)
UNDECIDED = ("internal_error", rules.RULES[rules.UNKNOWN_DIALECT].message)


class Transcoder:
    """Reads one stream of any dialect, in chunks cut anywhere, and writes it as the standard stream::

        transcoder = llmstream.Transcoder("openai", request_id=request_id)
        for chunk in response.iter_bytes():
            yield transcoder.feed(chunk)
        yield transcoder.close()          # or transcoder.fail(...), where the chunks ended with an exception

    What it writes keeps every rule of the draft: ``check`` finds no error in it, whatever comes in. The same bytes give
    the same output however they are cut, each event as soon as it is read, and memory does not grow with the stream.

    ``model``       what stream.start says where the vendor has named no model by then (section 5.3.1); by default ""
    ``request_id``  that of the request, to be echoed (section 4.6); by default what the vendor calls the answer
    ``reasoning``   "extensions": what the model thought travels in content.delta as ``<dialect>:reasoning``, since the
                    draft has no place for it; "drop": it is left out
    ``clock``       gives the Unix time for ``created`` where the vendor has none
    ``strict``      ``feed`` and ``close`` raise as a strict ``Parser`` does; the next ``close`` or ``fail`` then gives
                    what was before the fault, and ends the stream

    The further keywords are those of ``Parser``. A choice becomes the block of its index. Where the stream is cut,
    where a part of it could not be read, or where the arguments of a tool call are no JSON (it then travels as
    ``<dialect>:tool_call`` in the extensions of a content.delta), an ``error`` comes before stream.end.

    Lenient, it raises for no bytes. ``parser`` is the parser that reads. One transcoder belongs to one stream; it is
    not for several threads at once.
    """

    __slots__ = ("_aborted", "_closed", "_complete", "_fault", "_writer", "parser")

    def __init__(
        self,
        dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
        *,
        strict: bool = False,
        model: str | None = None,
        request_id: str | None = None,
        reasoning: Literal["extensions", "drop"] = "extensions",
        clock: Callable[[], float] = time.time,
        **options: Unpack[Options],
    ) -> None:
        if reasoning not in ("extensions", "drop"):
            raise ValueError(f'reasoning must be "extensions" or "drop", not {reasoning!r}')
        self.parser = Parser(dialect, strict=strict, **options)
        self._writer = Writer(
            self.parser,
            model=fields.optional_text("model", model) or "",
            request_id=fields.optional_text("request_id", request_id),
            keeps_reasoning=reasoning == "extensions",
            clock=clock,
        )
        self._closed = self._aborted = self._complete = False
        self._fault: Fault | None = None  # what strict raised

    # What a transcoder knows

    @property
    def dialect(self) -> str:
        """The name of the dialect that is read; of the one found, once ``auto`` has decided."""
        return self.parser.dialect

    @property
    def complete(self) -> bool:
        """Whether the whole answer was written: the upstream ended as its protocol says, and there was no ``error``."""
        return self._complete

    @property
    def ended(self) -> bool:
        """Whether stream.end was written; nothing comes after it."""
        return self._writer.encoder.state == "ended"

    @property
    def error(self) -> StreamError | None:
        """The ``error`` that was written: that of the upstream, or what went wrong with it."""
        return self._writer.error

    @property
    def model(self) -> str | None:
        """The model that stream.start names; None before it."""
        return None if self._writer.encoder.state == "new" else self._writer.model

    @property
    def stop_reasons(self) -> dict[int, str]:
        """Index -> why it stopped, of every block whose content.stop was written."""
        return dict(self._writer.stop_reasons)

    @property
    def usage(self) -> Usage | None:
        """The last token counts."""
        return self.parser.usage

    @property
    def next_seq(self) -> int:
        """The sequence number of the next event that is written."""
        return self._writer.encoder.next_seq

    @property
    def violations(self) -> list[Violation]:
        """The first 1,000 deviations of the upstream."""
        return self.parser.violations

    @property
    def violation_count(self) -> int:
        """How many there were in all."""
        return self.parser.violation_count

    @property
    def left_out(self) -> int:
        """How many events, members and extensions had no place in the standard stream: content after an error, a second
        error or stop of a block, what is too large for a reader."""
        return self._writer.left_out

    # Feeding

    def feed(self, chunk: Buffer) -> bytes:
        """The events that are due with this chunk (any contiguous bytes-like object), b"" where none is. Raises
        ValueError after ``close`` and ``fail``; in strict mode the LLMStreamError of the first fault."""
        if self._closed:
            raise ValueError("the transcoder is closed")
        if self._aborted:
            return b""
        try:
            events = self.parser.feed(chunk)
        except LLMStreamError as error:
            self._broke(error)
            raise
        self._write(events)
        return self._take()

    def close(self) -> bytes:
        """Ends the upstream: the events that were due, and whatever the standard stream lacks to its end. Idempotent.
        In strict mode a stream that is cut raises IncompleteStreamError."""
        if not self._closed:
            self._closed = True
            try:
                events = self.parser.close()
            except LLMStreamError as error:
                self._broke(error, cut=True)
                raise
            self._write(events, cut=True, kinds=LOST_AT_THE_END)
        self._end(self._fault)
        return self._take()

    def fail(self, code: str = "internal_error", message: str = "") -> bytes:
        """Ends a stream whose upstream cannot be read on: the events that were due, ``error`` unless there was one, and
        stream.end; b"" where it has ended. ``code`` is one of section 5.3.6. Raises TypeError or ValueError for words
        that cannot be written."""
        fault = fields.text("code", code), fields.text("message", message)
        if not self._closed:
            self._closed = True
            try:
                events = self.parser.close()
            except LLMStreamError as error:
                events = error.events
            self._write(events, cut=True, fails=True)
        self._end(fault)
        return self._take()

    def keep_alive(self) -> bytes:
        """A comment, for an upstream that is silent for long; its own comments and pings are not handed on. It may
        stand between any two outputs; b"" after the end."""
        return b"" if self.ended else self._writer.encoder.keep_alive()

    # Between reading and writing

    def _broke(self, error: LLMStreamError, *, cut: bool = False) -> None:
        """A strict parser raised, at the first error: an end that comes before it is a good one."""
        self._closed = True
        self._fault = ("internal_error", str(error))
        self._write(error.events, cut=cut, kinds=())

    def _write(
        self, events: list[Event], *, cut: bool = False, kinds: tuple[int, ...] = LOST, fails: bool = False
    ) -> None:
        """Writes events, and the end where it is among them, unless the stream ``fails``. With ``cut`` they are what
        was left when the bytes ended. ``kinds`` are rules that a whole answer does not break."""
        if self.ended:
            return
        if events and type(events[0]) is UnknownEvent and self._is_undecided() and not fails:
            self._abort(UNDECIDED)
            return
        complete = self.parser.complete
        try:
            end = self._writer.write(events, cut=cut and not complete)
            if end is not None and not fails:
                fault = (self._writer.fault or lost(self.parser, kinds)) if complete else CUT
                self._complete = self._writer.end(end, fault)
        except (LifecycleError, SequenceError) as error:
            self._abort(("internal_error", str(error)))

    def _end(self, fault: Fault | None) -> None:
        if not self.ended:
            self._writer.end(None, fault or CUT)

    def _abort(self, fault: Fault) -> None:
        """Nothing more can be written."""
        self._aborted = True
        self._end(fault)

    def _take(self) -> bytes:
        out = self._writer.out
        if not out:
            return b""
        found = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        return found

    def _is_undecided(self) -> bool:
        """Whether the parser hands out payloads of a dialect that it could not tell."""
        requirement = rules.RULES[rules.UNKNOWN_DIALECT].requirement
        return self.dialect != STANDARD and any(each.requirement == requirement for each in self.violations)
