"""The Transcoder: vendor bytes in, strict standard bytes out (draft, section 7.1)."""

from __future__ import annotations

import time

from .. import fields, rules
from .._backend import UnknownEvent
from .._registry import STANDARD
from ..errors import LifecycleError, SequenceError
from .losses import CUT, LOST, LOST_AT_THE_END, lost
from .rewriter import StreamRewriter
from .writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, Unpack

    from .._backend import Event, StreamError, Usage, Violation
    from ..dialects import Dialect
    from ..stream import Options
    from .losses import Fault

__all__ = ["Transcoder"]

UNDECIDED = ("internal_error", rules.RULES[rules.UNKNOWN_DIALECT].message)


class Transcoder(StreamRewriter):
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
    ``clock``       gives the Unix time for ``created`` where the vendor has none. What it raises comes out of ``feed``,
                    which is then closed, and ``close`` ends the stream with an error
    ``strict``      ``feed`` and ``close`` raise as a strict ``Parser`` does; the next ``close`` or ``fail`` then gives
                    what was before the fault, and ends the stream

    The further keywords are those of ``Parser``. A choice becomes the block of its index; what choices beside number 0
    say is in extensions, since the draft knows one answer. Where the stream is cut, where a part of it could not be
    read, or where the arguments of a tool call are no JSON (it then travels as ``<dialect>:tool_call`` in the
    extensions of a content.delta), an ``error`` comes before stream.end.

    Lenient, it raises for no bytes. ``parser`` is the parser that reads. One transcoder belongs to one stream; it is
    not for several threads at once.
    """

    __slots__ = ("_complete", "_writer")

    _called = "transcoder"

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
        super().__init__(dialect, strict=strict, **options)
        self._writer = Writer(
            self.parser,
            model=fields.optional_text("model", model) or "",
            request_id=fields.optional_text("request_id", request_id),
            keeps_reasoning=reasoning == "extensions",
            clock=clock,
        )
        self._out = self._writer.out
        self._complete = False

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

    # Writing

    def keep_alive(self) -> bytes:
        return b"" if self.ended else self._writer.encoder.keep_alive()

    def _write(
        self, events: list[Event], *, cut: bool = False, kinds: tuple[int, ...] = LOST, fails: bool = False
    ) -> None:
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

    def _torn(self) -> Fault | None:
        # Torn after its last stop reason, it says where.
        return lost(self.parser, LOST_AT_THE_END) if self._writer.is_stopped else None

    def _end(self, fault: Fault | None) -> None:
        if not self.ended:
            self._writer.end(None, fault or CUT)

    def _abort(self, fault: Fault) -> None:
        """Nothing more can be written."""
        self._aborted = True
        self._end(fault)

    def _is_undecided(self) -> bool:
        """Whether the parser hands out payloads of a dialect that it could not tell."""
        requirement = rules.RULES[rules.UNKNOWN_DIALECT].requirement
        return self.dialect != STANDARD and any(each.requirement == requirement for each in self.violations)
