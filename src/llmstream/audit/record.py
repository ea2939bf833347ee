"""``AuditRecord``: its fields, its only spelling as JSON, and its digest."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from operator import attrgetter

from .._backend import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["NAMES", "AuditRecord", "AuditedToolCall", "AuditedViolation", "Stop"]


@dataclass(frozen=True, slots=True)
class AuditedToolCall:
    """A tool call (section 5.3.4): ``arguments`` as JSON text, None where content is not kept or there was no room
    left; ``arguments_sha256`` is of them as UTF-8 in any case."""

    index: int
    id: str | None
    name: str | None
    arguments: str | None = field(repr=False)
    arguments_sha256: bytes


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the answer or block ``index`` stopped: in the draft's words (section 5.3.3) and the vendor's own."""

    index: int
    reason: str
    vendor_reason: str | None


@dataclass(frozen=True, slots=True)
class AuditedViolation:
    """A deviation: the requirement, "error" or "warning", the number of the event, the byte it begins at, and words
    that never hold text of the stream."""

    requirement: str
    severity: str
    event: int
    offset: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One stream, as a row. Sections are those of the draft; sizes are bytes where they say so, else characters.

    ``stream_id``         what the caller calls the stream: the path of its file, the key of its row
    ``request_id``        what the stream calls itself: ``request_id`` of stream.start, the vendor's id of the answer
    ``provider`` ...      ``endpoint``, ``user_id``, ``session_id``: from the caller; the stream does not carry them
    ``started_at`` ...    ``first_token_at``, ``ended_at``: when, in UTC; known where the stream was seen live
    ``dialect``           the format that was read; with ``auto`` the one that was found
    ``model``             the model, None where the stream does not say (section 5.3.1)
    ``created``           seconds since 1970 by the endpoint's clock (section 5.3.1)
    ``complete``          whether the stream ended as its protocol says
    ``text``              the primary answer's text; None where content is not kept; cut where there was no room left
    ``text_length``       characters of all of it
    ``text_sha256``       of all of it, as UTF-8
    ``tool_calls``        the first 1,000, of every index, and ``tool_call_count`` of all (section 5.3.4)
    ``stops``             why each answer or block stopped (section 5.3.3)
    ``input_tokens`` ...  ``output_tokens``: the last counts, None where there were none (section 5.3.5)
    ``usage_count``       how many times counts were given
    ``error_code``        of the first error that the endpoint reported, in the draft's words (section 5.3.6)
    ``vendor_error_code`` the vendor's own word for it
    ``error_message``     its words; None where content is not kept, since they may quote the prompt
    ``event_count``       events of the standard stream, of which ``unknown_event_count`` of a type the draft lacks
    ``first_seq`` ...     ``last_seq``: the number of stream.start, and the highest one (section 5.2.1)
    ``gaps``              first and last number of each run of lost events, the first 1,000 (section 5.2.1)
    ``violations``        the first 100 deviations of ``violation_count``, of which ``fault_count`` are errors
    ``byte_count``        bytes of the body, decompressed
    ``wire_sha256``       of these bytes; None where it was not asked for
    ``parser_version``    the release of llmstream that read it
    ``fault``             why the record is not whole, None where it is: its body could not be read, redaction failed

    ``repr`` and comparison are those of a dataclass; ``repr`` shows neither text, nor arguments, nor an error's words
    (section 8.1).
    """

    stream_id: str
    request_id: str | None = None
    provider: str | None = None
    endpoint: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    started_at: datetime | None = None
    first_token_at: datetime | None = None
    ended_at: datetime | None = None
    dialect: str
    model: str | None = None
    created: int | None = None
    complete: bool
    text: str | None = field(default=None, repr=False)
    text_length: int
    text_sha256: bytes
    tool_calls: tuple[AuditedToolCall, ...] = ()
    tool_call_count: int
    stops: tuple[Stop, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    usage_count: int
    error_code: str | None = None
    vendor_error_code: str | None = None
    error_message: str | None = field(default=None, repr=False)
    event_count: int
    unknown_event_count: int
    first_seq: int | None = None
    last_seq: int | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    violations: tuple[AuditedViolation, ...] = ()
    violation_count: int
    fault_count: int
    byte_count: int
    wire_sha256: bytes | None = None
    parser_version: str
    fault: str | None = None

    @classmethod
    def from_dict(cls, members: dict[str, Any]) -> AuditRecord:
        """The record of such members. Raises ValueError where they are not those of a record, in these types."""
        try:
            if tuple(members) != NAMES:
                raise ValueError
            read = _READ.get
            return cls(**{name: read(name, _same)(value) for name, value in members.items()})
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            pass
        raise ValueError("these are not the members of an audit record")  # without their values in its context

    def to_json(self) -> bytes:
        """Its only spelling, in UTF-8: an object of all fields in their order, on one line without blanks; digests in
        hexadecimal, times in ISO 8601 with microseconds, in UTC; in strings, escapes for the quote, the backslash,
        control characters, U+0085, U+2028 and U+2029. Raises TypeError or ValueError for fields of other types than
        those declared."""
        spell = _SPELLING
        try:
            return _FORM % tuple([b"null" if value is None else spell[type(value)](value) for value in _values(self)])
        except KeyError as error:
            found = error.args[0]
        raise TypeError(f"a record holds no {found.__name__}")

    def to_dict(self) -> dict[str, Any]:
        """Its members as JSON has them."""
        members: dict[str, Any] = json.loads(self.to_json())
        return members

    def digest(self) -> bytes:
        """SHA-256 of ``to_json()``: the ``record_sha256`` of a file or table."""
        return sha256(self.to_json()).digest()

    def without_content(self) -> AuditRecord:
        """The same without what may quote anybody: text, arguments, an error's words. Digests and lengths stay."""
        calls = tuple(replace(call, arguments=None) for call in self.tool_calls)
        return replace(self, text=None, tool_calls=calls, error_message=None)


NAMES = tuple(entry.name for entry in fields(AuditRecord))
"""The fields, in their order."""


def _form(names: Sequence[str]) -> bytes:
    """An object of these members, to be filled with their values."""
    return b"{%b}" % b",".join([b'"%b":%%b' % name.encode() for name in names])


_FORM = _form(NAMES)
_values: Callable[[AuditRecord], tuple[Any, ...]] = attrgetter(*NAMES)


def _speller(kind: type) -> Callable[[Any], bytes]:
    """How a part of a record, of this class, is spelled."""
    names: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined]
    form, values = _form(names), attrgetter(*names)
    return lambda part: form % tuple([_SPELLING[type(value)](value) for value in values(part)])


def _moment(value: datetime) -> bytes:
    """A time without a zone is UTC."""
    at = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return b'"%b"' % at.isoformat(timespec="microseconds").encode()


_SPELLING: dict[type, Callable[[Any], bytes]] = {
    str: quoted,
    int: b"%d".__mod__,
    bool: lambda value: b"true" if value else b"false",
    type(None): lambda value: b"null",
    bytes: lambda value: b'"%b"' % value.hex().encode(),
    datetime: _moment,
    tuple: lambda values: b"[%b]" % b",".join([_SPELLING[type(value)](value) for value in values]),
    **{kind: _speller(kind) for kind in (AuditedToolCall, Stop, AuditedViolation)},
}


def _same(value: Any) -> Any:
    return value


def _read_moment(value: Any) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _call(part: dict[str, Any]) -> AuditedToolCall:
    members: dict[str, Any] = {**part, "arguments_sha256": bytes.fromhex(part["arguments_sha256"])}
    return AuditedToolCall(**members)


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("started_at", "first_token_at", "ended_at"), _read_moment),
    "text_sha256": bytes.fromhex,
    "wire_sha256": lambda value: None if value is None else bytes.fromhex(value),
    "tool_calls": lambda value: tuple(_call(part) for part in value),
    "stops": lambda value: tuple(Stop(**part) for part in value),
    "violations": lambda value: tuple(AuditedViolation(**part) for part in value),
    "gaps": lambda value: tuple((first, last) for first, last in value),
}
