"""From bytes to a record: ``Auditor`` for a stream that passes by, ``audit`` for one that is there."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from .. import fields, rules
from .._backend import ContentStop, Parser, StreamEnd, StreamError, StreamStart, ToolCall, UnknownEvent
from .._version import __version__
from ..observer import MAX_TOOL_CALLS, _vendor_word, _word
from ..source import chunks
from .declared import is_like
from .record import AuditedToolCall, AuditedViolation, AuditRecord, Stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack

    from .._framing_py import Buffer
    from ..dialects import Dialect
    from ..source import Source

    Chunk = TypeVar("Chunk", bound=Buffer)
    Redaction: TypeAlias = Callable[[AuditRecord], AuditRecord]

    class Context(TypedDict, total=False):
        """What only the caller knows of a stream."""

        provider: str | None
        endpoint: str | None
        user_id: str | None
        session_id: str | None
        started_at: datetime | None
        first_token_at: datetime | None
        ended_at: datetime | None


__all__ = ["CONTEXT", "DEFAULT_MAX_CONTENT_SIZE", "Auditor", "audit"]

DEFAULT_MAX_CONTENT_SIZE = 16 * 2**20
"""Characters of content that one record holds."""

CHUNK_SIZE = 120 * 1024
"""Bytes that are best read at once: of more, an allocator may ask the system for fresh memory each time."""

MAX_WHOLE_SIZE = 4 * 2**20
"""Bytes of a body in memory that are read at once where they lie: the events of so many may be held."""

MAX_VIOLATIONS = 100
"""Deviations that one record tells; further ones are only counted."""

CONTEXT = ("provider", "endpoint", "user_id", "session_id", "started_at", "first_token_at", "ended_at")
"""The members of ``Context``."""


class Auditor:
    """Makes the record of one stream, in chunks cut anywhere, of any dialect::

        auditor = Auditor("stream-17", user_id="u-1", clock=lambda: datetime.now(UTC))
        for chunk in upstream:
            send(auditor.feed(chunk))          # the same object
        record = auditor.close()

    ``content``           whether the record holds text, arguments of tool calls and an error's words, or only digests
    ``max_content_size``  characters of content that it holds at most; the rest is counted and digested
    ``wire_digest``       whether SHA-256 of all bytes is made, which takes as long as all the rest
    ``redact``            makes another record of the record, with what must not be kept taken out. What it raises
                          does not stop anything: the record is then without content and says so in ``fault``
    ``clock``             gives the time, for the record's three times; without it they are those of ``context``
    ``context``           provider, endpoint, user_id, session_id, started_at, first_token_at, ended_at

    Raises for no bytes. What is remembered does not grow with the stream beyond ``max_content_size``. Raises what
    ``Parser`` raises for ``dialect`` and ``max_event_size``, TypeError or ValueError for the rest.
    """

    __slots__ = (
        "_byte_count",
        "_calls",
        "_clock",
        "_content",
        "_context",
        "_created",
        "_error",
        "_event_count",
        "_fault",
        "_first_seq",
        "_model",
        "_pieces",
        "_record",
        "_redact",
        "_request_id",
        "_room",
        "_stops",
        "_text_digest",
        "_text_length",
        "_tool_call_count",
        "_unknown",
        "_wire",
        "parser",
        "stream_id",
    )

    def __init__(
        self,
        stream_id: str = "",
        *,
        dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
        content: bool = True,
        max_content_size: int = DEFAULT_MAX_CONTENT_SIZE,
        wire_digest: bool = True,
        redact: Redaction | None = None,
        clock: Callable[[], datetime] | None = None,
        max_event_size: int = 16 * 2**20,
        **context: Unpack[Context],
    ) -> None:
        self.stream_id = _encodable(stream_id)
        self.parser = Parser(dialect, max_event_size=max_event_size)
        self._content = content
        self._room = fields.integer("max_content_size", max_content_size) if content else 0
        self._redact = redact
        self._clock = clock
        self._context = _checked(context)
        if clock is not None:
            self._context.setdefault("started_at", clock())
        self._wire = sha256() if wire_digest else None
        self._text_digest = sha256()
        self._byte_count = self._text_length = self._event_count = self._unknown = 0
        self._pieces: list[str] = []
        self._calls: list[AuditedToolCall] = []
        self._tool_call_count = 0
        self._stops: dict[int, Stop] = {}
        self._model: str | None = None
        self._created: int | None = None
        self._request_id: str | None = None
        self._first_seq: int | None = None
        self._error: tuple[str | None, str | None, str | None] | None = None
        self._fault: str | None = None
        self._record: AuditRecord | None = None

    def feed(self, chunk: Chunk) -> Chunk:
        """Takes note of a chunk (any contiguous bytes-like object) and returns the same object.

        Raises ValueError after ``close`` and TypeError for what is not bytes; nothing for what the bytes are.
        """
        if self._record is not None:
            raise ValueError("the auditor is closed")
        data: Any = chunk if type(chunk) is bytes else memoryview(chunk).cast("B")
        self._byte_count += len(data)
        if self._wire is not None:
            self._wire.update(data)
        if self._fault is None:
            try:
                self._took(*self.parser.feed_summary(data))
            except BaseException as error:  # whatever it is, there is a record
                self._fault = f"reading failed: {type(error).__name__}"
                if not isinstance(error, Exception):
                    raise
        return chunk

    def fail(self, fault: str) -> None:
        """Says that the rest of the bytes cannot be had, in words without text of the stream."""
        self._fault = self._fault or fault

    def close(self) -> AuditRecord:
        """Ends the stream, wherever it stands, and returns its record. Idempotent."""
        if self._record is None:
            try:
                self._took(*self.parser._summary_of(self.parser.close()))
            except BaseException as error:  # as above
                self.fail(f"reading failed: {type(error).__name__}")
                if not isinstance(error, Exception):
                    raise
            self._record = self._redacted(self._made())
        return self._record

    def _took(self, text: str, deltas: int, others: list[Any]) -> None:
        self._event_count += deltas + len(others)
        if text:
            self._text_length += len(text)
            self._text_digest.update(text.encode())
            if self._room:
                self._pieces.append(self._kept(text))
        for event in others:
            kind = type(event)
            if kind is ToolCall:
                deltas += 1
                self._called(event)
            elif kind is ContentStop:
                self._stopped(event)
            elif kind is StreamStart:
                if self._first_seq is None:
                    self._first_seq, self._created = event.seq, event.created
                self._model = self._model or _word(event.model)
                self._request_id = self._request_id or _word(event.request_id)
            elif kind is StreamError and self._error is None:
                message = self._kept(event.message or "") if self._content else None
                self._error = (_word(event.code), _word(_vendor_word(event, ":code")), message)
            elif kind is UnknownEvent:
                self._unknown += 1
            elif kind is StreamEnd and self._model is None:  # a vendor may have named it after its first words
                self._model = _word(_vendor_word(event, ":model"))
        if deltas and self._clock is not None:
            self._context.setdefault("first_token_at", self._clock())

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
            kept = self._kept(arguments) if self._content and len(arguments) <= self._room else None
            digest = sha256(arguments.encode()).digest()
            self._calls.append(AuditedToolCall(call.index, _word(call.id), _word(call.name), kept, digest))

    def _stopped(self, stop: ContentStop) -> None:
        known = stop.index in self._stops
        if stop.stop_reason is not None and (known or len(self._stops) < rules.MAX_BLOCKS):
            reason = _word(stop.stop_reason) or ""
            self._stops[stop.index] = Stop(stop.index, reason, _word(_vendor_word(stop, ":stop_reason")))

    def _made(self) -> AuditRecord:
        parser = self.parser
        usage = parser.usage
        code, vendor_code, message = self._error or (None, None, None)
        if self._clock is not None:
            self._context.setdefault("ended_at", self._clock())
        return AuditRecord(
            stream_id=self.stream_id,
            request_id=self._request_id,
            dialect=parser.dialect,
            model=self._model,
            created=self._created,
            complete=parser.complete and self._fault is None,
            text="".join(self._pieces) if self._content else None,
            text_length=self._text_length,
            text_sha256=self._text_digest.digest(),
            tool_calls=tuple(self._calls),
            tool_call_count=self._tool_call_count,
            stops=tuple(self._stops.values()),
            input_tokens=None if usage is None else usage.input_tokens,
            output_tokens=None if usage is None else usage.output_tokens,
            usage_count=parser.usage_count,
            error_code=code,
            vendor_error_code=vendor_code,
            error_message=message,
            event_count=self._event_count + parser.usage_count,
            unknown_event_count=self._unknown,
            first_seq=self._first_seq,
            last_seq=parser.next_seq - 1 if parser.next_seq else None,
            gaps=tuple(parser.gaps),
            violations=self._violations(),
            violation_count=parser.violation_count,
            fault_count=parser.error_count,
            byte_count=self._byte_count,
            wire_sha256=None if self._wire is None else self._wire.digest(),
            parser_version=__version__,
            fault=self._fault,
            **self._context,
        )

    def _violations(self) -> tuple[AuditedViolation, ...]:
        if not self.parser.violation_count:
            return ()
        return tuple(
            AuditedViolation(found.requirement, found.severity, found.event, found.offset, found.message)
            for found in self.parser.violations[:MAX_VIOLATIONS]
        )

    def _redacted(self, record: AuditRecord) -> AuditRecord:
        if self._redact is None:
            return record
        try:
            redacted = self._redact(record)
            if not is_like(redacted, record):
                raise TypeError("a redaction returns a record, of the types that its fields declare")
            redacted.to_json()
        except Exception as error:  # noqa: BLE001 (whatever it is, nothing goes out unredacted)
            return replace(record.without_content(), fault=f"redaction failed: {type(error).__name__}")
        return redacted


def audit(
    source: Source,
    stream_id: str = "",
    *,
    dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
    content: bool = True,
    max_content_size: int = DEFAULT_MAX_CONTENT_SIZE,
    wire_digest: bool = True,
    redact: Redaction | None = None,
    max_event_size: int = 16 * 2**20,
    **context: Unpack[Context],
) -> AuditRecord:
    """The record of a whole stream: bytes, a binary file, an iterable of bytes or a response (draft, section 1.2.4).

    The keywords are those of ``Auditor``. There is a record whatever the bytes are and wherever reading them fails;
    ``fault`` then says so. Raises TypeError where ``source`` cannot be read at all.
    """
    auditor = Auditor(
        stream_id,
        dialect=dialect,
        content=content,
        max_content_size=max_content_size,
        wire_digest=wire_digest,
        redact=redact,
        max_event_size=max_event_size,
        **context,
    )
    feed = auditor.feed
    if type(source) is bytes and len(source) <= MAX_WHOLE_SIZE:
        feed(source)
        return auditor.close()
    found = chunks(source)
    try:
        for chunk in found.iterator:
            feed(chunk)
    except OSError as error:
        auditor.fail(f"not read to its end: {error.strerror or type(error).__name__}")
    except Exception as error:  # noqa: BLE001 (what a body raises is not for us to know)
        auditor.fail(f"not read to its end: {type(error).__name__}")
    finally:
        found.close()
    return auditor.close()


def _checked(context: Context) -> dict[str, Any]:
    found: dict[str, Any] = {**context}
    for name, value in found.items():
        if name not in CONTEXT:
            raise TypeError(f"the context of a stream is {', '.join(CONTEXT)}")
        if isinstance(value, str):
            found[name] = _encodable(value)
    return found


def _encodable(text: str) -> str:
    """The same without halves of surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
