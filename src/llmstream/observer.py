"""The pass-through tap of a gateway: the bytes go on as they are, and what they said is known at the end."""

from __future__ import annotations

import time
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise

from . import fields, rules
from ._backend import ContentStop, Parser, StreamError, StreamStart, ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypedDict, TypeVar, Unpack

    from ._backend import Violation
    from ._framing_py import Buffer
    from .dialects import Dialect

    Chunk = TypeVar("Chunk", bound=Buffer)

    class ObserverOptions(TypedDict, total=False):
        """The further keywords of ``Observer``."""

        max_event_size: int
        max_depth: int
        shapes: bool


__all__ = ["BOUNDS", "Intervals", "Observation", "ObservedToolCall", "Observer"]

BOUNDS = tuple(0.01 * 2**power for power in range(14))
"""Upper bounds of the buckets of ``Intervals`` in seconds, 0.01 to 81.92: those of OpenTelemetry's GenAI metrics."""

MANY = 64
"""Moments that are kept until they are counted."""

MAX_WORD = 256
"""Characters kept of a name: of a model, an id, a stop reason, the code of an error."""

MAX_TOOL_CALLS = 1000
"""Tool calls kept; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Times between one chunk and the next, in seconds: a summary of fixed size.

    ``minimum`` and ``maximum`` are None where there was no interval. ``buckets`` counts those up to each of ``BOUNDS``
    and above the bound before it; the last one, those above all.
    """

    count: int = 0
    total: float = 0.0
    minimum: float | None = None
    maximum: float | None = None
    buckets: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)

    @property
    def mean(self) -> float | None:
        """Their mean in seconds, None where there was none."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class ObservedToolCall:
    """A tool call (section 5.3.4): ``id`` and ``name`` cut at 256 characters, ``arguments`` None where content is not
    kept or there was no room left, ``arguments_length`` in characters."""

    index: int
    id: str | None
    name: str | None
    arguments: str | None = field(repr=False)
    arguments_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What an observed stream said, and when. Sections are those of the draft; times are seconds since the request.

    ``dialect``              the format that was read; with ``auto`` the one that was found
    ``model``                the model, None where the stream does not say (section 5.3.1)
    ``response_id``          what the stream calls itself: ``request_id`` of stream.start, the vendor's id of the answer
    ``complete``             whether the stream ended as its protocol says
    ``stop_reasons``         index -> why it stopped, in the draft's words (section 5.3.3)
    ``vendor_stop_reasons``  index -> the vendor's own word for it
    ``input_tokens``         the last count of tokens read, None where there was none (section 5.3.5)
    ``output_tokens``        the last count of tokens generated, None where there was none
    ``tool_calls``           the first 1,000, and ``tool_call_count`` of all, of every index (section 5.3.4)
    ``error_code``           of the first error that the endpoint reported, in the draft's words (section 5.3.6)
    ``vendor_error_code``    the vendor's own word for it
    ``error_message``        its words; None where content is not kept, since they may quote the prompt
    ``text``                 the primary answer's text, as far as content is kept; ``text_length`` in characters, of all
    ``text_sha256``          of all the text, as UTF-8; with ``digests``
    ``wire_sha256``          of all the bytes; with ``digests``
    ``byte_count``           bytes that passed through, and ``chunk_count`` the chunks they came in
    ``time_to_first_chunk``  None where no byte came; so for the next two
    ``time_to_first_output`` until the chunk with the first text, reasoning or tool call, of any index
    ``time_to_first_text``   until the chunk with the first text of the primary answer
    ``duration``             until ``close``
    ``chunk_intervals``      between chunks of any bytes
    ``output_intervals``     between chunks with output, of those after the first: stalls that keep-alives would hide
    ``violations``           the first 1,000 deviations; of all there are ``violation_count``, of which errors
                             ``fault_count``
    ``lost``                 runs of lost events, each by its first and last number (section 5.2.1)
    ``unread``               whether reading was given up by a fault of ours, so that all but bytes and times is partial

    ``repr`` and comparison are those of a dataclass; ``repr`` shows neither text, nor arguments, nor an error's words
    (section 8.1).
    """

    dialect: str
    model: str | None
    response_id: str | None
    complete: bool
    stop_reasons: dict[int, str]
    vendor_stop_reasons: dict[int, str]
    input_tokens: int | None
    output_tokens: int | None
    tool_calls: tuple[ObservedToolCall, ...]
    tool_call_count: int
    error_code: str | None
    vendor_error_code: str | None
    error_message: str | None = field(repr=False)
    text: str = field(repr=False)
    text_length: int
    text_sha256: bytes | None
    wire_sha256: bytes | None
    byte_count: int
    chunk_count: int
    time_to_first_chunk: float | None
    time_to_first_output: float | None
    time_to_first_text: float | None
    duration: float
    chunk_intervals: Intervals
    output_intervals: Intervals
    violations: tuple[Violation, ...]
    violation_count: int
    fault_count: int
    lost: tuple[tuple[int, int], ...]
    unread: bool

    __hash__ = None  # type: ignore[assignment]  # it holds dicts


class Observer:
    """Reads along with a stream that passes through, in chunks cut anywhere, of any dialect::

        observer = llmstream.Observer()
        async for chunk in upstream:
            await send(observer.feed(chunk))         # the same object, at once
        observation = observer.close()

    ``feed`` raises for no bytes and holds none back; what is remembered does not grow with the stream. A body that is
    no stream, one JSON answer or the JSON of an error, is read as what it says.

    ``max_content_size``  characters of content that are kept: of text and the arguments of tool calls together, and of
                          the words of an error; by default none of it (draft, section 8.1)
    ``digests``           whether SHA-256 of the bytes and of the text are made, which costs more than reading does
    ``clock``             gives the time in seconds; what it raises, ``feed`` and ``close`` raise before they do
                          anything, and may be called again
    ``requested_at``      when the request was issued, by the same clock; by default when the observer was made

    ``max_event_size``, ``max_depth`` and ``shapes`` are those of ``Parser``; raises what it raises for them. ``parser``
    is the one that reads, leniently. One observer belongs to one stream; it is not for several threads at once.
    """

    __slots__ = (
        "_byte_count",
        "_calls",
        "_chunks",
        "_clock",
        "_error",
        "_first_text",
        "_has_output",
        "_max_content_size",
        "_model",
        "_observation",
        "_outputs",
        "_pieces",
        "_requested_at",
        "_response_id",
        "_room",
        "_stops",
        "_text_digest",
        "_text_length",
        "_tool_call_count",
        "_unread",
        "_vendor_stops",
        "_wire_digest",
        "parser",
    )

    def __init__(
        self,
        dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
        *,
        max_content_size: int = 0,
        digests: bool = False,
        clock: Callable[[], float] = time.monotonic,
        requested_at: float | None = None,
        **options: Unpack[ObserverOptions],
    ) -> None:
        self._room = self._max_content_size = fields.integer("max_content_size", max_content_size)
        self.parser = Parser(dialect, strict=False, errors="replace", **options)
        self._clock = clock
        self._requested_at = clock() if requested_at is None else requested_at
        self._wire_digest = _sha256() if digests else None
        self._text_digest = _sha256() if digests else None
        self._byte_count = self._text_length = self._tool_call_count = 0
        self._first_text: float | None = None
        self._has_output = False  # the last chunk
        self._chunks, self._outputs = _Tally(), _Tally()
        self._pieces: list[str] = []
        self._calls: list[ObservedToolCall] = []
        self._stops: dict[int, str] = {}
        self._vendor_stops: dict[int, str] = {}
        self._model: str | None = None
        self._response_id: str | None = None
        self._error: tuple[str | None, str | None, str | None] | None = None
        self._unread = False
        self._observation: Observation | None = None

    def feed(self, chunk: Chunk) -> Chunk:
        """Takes note of a chunk (any contiguous bytes-like object) and returns the same object.

        Raises ValueError after ``close`` and TypeError for what is not bytes; nothing for what the bytes are.
        """
        if self._observation is not None:
            raise ValueError("the observer is closed")
        data: Any = chunk if type(chunk) is bytes else _bytes(chunk)
        size = len(data)
        if not size:
            return chunk
        now = self._clock()
        moments = self._chunks.moments
        moments.append(now)
        self._has_output = False
        self._byte_count += size
        if self._wire_digest is not None:
            self._wire_digest.update(data)
        try:
            if len(moments) >= MANY:
                self._chunks.count()
                self._outputs.count()
            if not self._unread:
                self._took(now, *self.parser.feed_summary(data))
        except BaseException as error:  # whatever it is, the stream goes on
            self._unread = True
            if not isinstance(error, Exception):
                raise
        return chunk

    def close(self) -> Observation:
        """Ends the stream, wherever it stands, and returns what was observed. Idempotent."""
        if self._observation is None:
            now = self._clock()
            try:
                if not self._unread:
                    # What was due at the end came with the last chunk.
                    last = self._chunks.moments[-1] if self._chunks.moments else now
                    self._took(last, *self.parser._summary_of(self.parser.close()))
                self._chunks.count()
                self._outputs.count()
            except BaseException as error:  # as above
                self._unread = True
                if not isinstance(error, Exception):
                    raise
            self._observation = self._observe(now)
        return self._observation

    def _took(self, now: float, text: str, pieces: int, others: list[Any]) -> None:
        if text:
            if self._first_text is None:
                self._first_text = now
            self._text_length += len(text)
            if self._room:
                self._pieces.append(self._kept(text))
            if self._text_digest is not None:
                self._text_digest.update(text.encode())
        for event in others:
            kind = type(event)
            if kind is ToolCall:
                pieces += 1
                self._called(event)
            elif kind is ContentStop:
                self._stopped(event)
            elif kind is StreamStart:
                self._model = self._model or _word(event.model)
                self._response_id = self._response_id or _word(event.request_id)
            elif kind is StreamError and self._error is None:
                message = (event.message or "")[: self._max_content_size] or None
                self._error = (_word(event.code), _word(_vendor_word(event, ":code")), message)
        if pieces and not self._has_output:
            self._has_output = True
            self._outputs.moments.append(now)

    def _kept(self, text: str) -> str:
        """As much of content as there is room for."""
        kept = text[: self._room]
        self._room -= len(kept)
        return kept

    def _called(self, call: ToolCall) -> None:
        self._tool_call_count += 1
        if len(self._calls) < MAX_TOOL_CALLS:
            arguments = call.arguments or ""
            # Half of them would be no JSON.
            kept = self._kept(arguments) if 0 < len(arguments) <= self._room else None
            self._calls.append(ObservedToolCall(call.index, _word(call.id), _word(call.name), kept, len(arguments)))

    def _stopped(self, stop: ContentStop) -> None:
        if stop.index not in self._stops and len(self._stops) >= rules.MAX_BLOCKS:
            return
        if stop.stop_reason is not None:
            self._stops[stop.index] = stop.stop_reason[:MAX_WORD]
            word = _word(_vendor_word(stop, ":stop_reason"))
            if word is not None:
                self._vendor_stops[stop.index] = word

    def _observe(self, now: float) -> Observation:
        parser, usage, since = self.parser, self.parser.usage, self._requested_at
        chunks, outputs = self._chunks.summary(), self._outputs.summary()
        first_chunk, first_output = self._chunks.first, self._outputs.first
        code, vendor_code, message = self._error or (None, None, None)
        return Observation(
            dialect=parser.dialect,
            model=self._model,
            response_id=self._response_id,
            complete=parser.complete and not self._unread,
            stop_reasons=self._stops,
            vendor_stop_reasons=self._vendor_stops,
            input_tokens=None if usage is None else usage.input_tokens,
            output_tokens=None if usage is None else usage.output_tokens,
            tool_calls=tuple(self._calls),
            tool_call_count=self._tool_call_count,
            error_code=code,
            vendor_error_code=vendor_code,
            error_message=message,
            text="".join(self._pieces),
            text_length=self._text_length,
            text_sha256=None if self._text_digest is None else self._text_digest.digest(),
            wire_sha256=None if self._wire_digest is None else self._wire_digest.digest(),
            byte_count=self._byte_count,
            chunk_count=0 if first_chunk is None else chunks.count + 1,
            time_to_first_chunk=None if first_chunk is None else first_chunk - since,
            time_to_first_output=None if first_output is None else first_output - since,
            time_to_first_text=None if self._first_text is None else self._first_text - since,
            duration=now - since,
            chunk_intervals=chunks,
            output_intervals=outputs,
            violations=tuple(parser.violations),
            violation_count=parser.violation_count,
            fault_count=parser.error_count,
            lost=tuple(parser.gaps),
            unread=self._unread,
        )


class _Tally:
    """Intervals between the moments that are put into ``moments``, which are counted many at a time: where each chunk
    comes to a processor that has done other work in between, a call takes ten times as long."""

    __slots__ = ("_buckets", "_count", "_maximum", "_minimum", "_total", "first", "moments")

    def __init__(self) -> None:
        self.moments: list[float] = []
        self.first: float | None = None
        self._count, self._total, self._maximum, self._minimum = 0, 0.0, 0.0, float("inf")
        self._buckets = [0] * (len(BOUNDS) + 1)

    def count(self) -> None:
        """Counts the intervals; the last moment stays, as the next interval begins there."""
        moments, self.moments = self.moments, self.moments[-1:]
        if moments and self.first is None:
            self.first = moments[0]
        for before, after in pairwise(moments):
            self.add(after - before)

    def add(self, interval: float) -> None:
        self._count += 1
        self._total += interval
        if interval > self._maximum:  # noqa: PLR1730 (max() takes three times as long)
            self._maximum = interval
        if interval < self._minimum:  # noqa: PLR1730
            self._minimum = interval
        self._buckets[bisect_left(BOUNDS, interval)] += 1

    def summary(self) -> Intervals:
        self.count()
        if not self._count:
            return Intervals()
        return Intervals(self._count, self._total, self._minimum, self._maximum, tuple(self._buckets))


def _vendor_word(event: Any, ending: str) -> Any:
    """The vendor's own word that a dialect has put beside the draft's."""
    return next((value for name, value in event.extensions.items() if name.endswith(ending)), None)


def _bytes(chunk: Any) -> bytes:
    """The bytes of an object that is no bytes; raises TypeError where it is not contiguous."""
    view = memoryview(chunk)
    if not view.c_contiguous:
        raise TypeError("a chunk must be contiguous")
    return view.tobytes()


def _word(value: Any) -> str | None:
    return None if value is None else str(value)[:MAX_WORD]


def _sha256() -> Any:
    from hashlib import sha256

    return sha256()
