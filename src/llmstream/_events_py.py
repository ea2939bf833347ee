"""What the engine hands out: events, violations and the events of SSE. Part of the Python twin; twin of
``_events.pxi``."""

from __future__ import annotations

from . import fields, payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

if TYPE_CHECKING:
    from typing import final as final  # noqa: PLC0414 (handed on to the other parts)
else:

    def _refuse(cls, **options):
        raise TypeError(f"{cls.__base__.__qualname__} is not an acceptable base type")

    def final(cls):
        # The compiled twin's classes are fixed in their layout.
        cls.__init_subclass__ = classmethod(_refuse)
        return cls


@final
class Violation:
    """One deviation from a rule: ``requirement`` of the draft ("R5.2-1") or a rule of ours ("L-..."), ``severity``
    ("error" or "warning"), ``event`` (its number, from 0), ``offset`` (of the event's first byte in the stream) and
    ``message`` (never text of the stream)."""

    __slots__ = ("_event", "_message", "_offset", "_requirement", "_severity")

    def __init__(self, requirement: str, severity: str, event: int, offset: int, message: str) -> None:
        self._requirement = requirement
        self._severity = severity
        self._event = event
        self._offset = offset
        self._message = message

    @property
    def requirement(self) -> str:
        return self._requirement

    @property
    def severity(self) -> str:
        return self._severity

    @property
    def event(self) -> int:
        return self._event

    @property
    def offset(self) -> int:
        return self._offset

    @property
    def message(self) -> str:
        return self._message

    def _key(self) -> tuple[str, str, int, int, str]:
        return (self._requirement, self._severity, self._event, self._offset, self._message)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Violation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Violation(requirement={self._requirement!r}, severity={self._severity!r}, event={self._event}, "
            f"offset={self._offset}, message={self._message!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, ("violation", self._key()))


@final
class ServerSentEvent:
    """One event of an SSE stream (WHATWG HTML, section 9.2): ``event`` ("message" where the stream names none),
    ``data``, ``id`` (the last event id, kept from event to event), ``retry`` (milliseconds, of this block only, at
    most 2**63 - 1) and ``complete`` (False for an unfinished last event)."""

    __slots__ = ("_complete", "_data", "_event", "_id", "_retry")

    def __init__(
        self, event: str = "message", data: str = "", id: str = "", retry: int | None = None, complete: bool = True
    ) -> None:
        self._event = fields.text("event", event)
        self._data = fields.text("data", data)
        self._id = fields.text("id", id)
        self._retry = fields.optional_integer("retry", retry)
        self._complete = bool(complete)

    @property
    def event(self) -> str:
        return self._event

    @property
    def data(self) -> str:
        return self._data

    @property
    def id(self) -> str:
        return self._id

    @property
    def retry(self) -> int | None:
        return self._retry

    @property
    def complete(self) -> bool:
        return self._complete

    def json(self) -> Any:
        """The data as a JSON value; raises ValueError where it is none (RFC 8259: no NaN, no Infinity)."""
        return payload.read(self._data)

    def _key(self) -> tuple[str, str, str, int | None, bool]:
        return (self._event, self._data, self._id, self._retry, self._complete)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, ServerSentEvent) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        tail = "" if self._complete else ", complete=False"
        return (
            f"ServerSentEvent(event={self._event!r}, data={self._data!r}, id={self._id!r}, retry={self._retry!r}{tail})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, ("sse", self._key()))


class Event:
    """Base of all events. ``type`` is the draft's name, ``seq`` the sequence number (None: unknown), ``raw`` the bytes
    of the data field (several data lines joined by LF), ``extensions`` the vendor's own members (draft, section 4.7).

    Events are immutable. An event keeps the chunk it was read from alive; ``detach()`` lets go of it."""

    __slots__ = ("_fields",)
    __match_args__ = ()

    type = ""
    _names: tuple[str, ...] = ()

    # _fields: source, start, stop, seq, extensions (JSON text, None, or True: in the raw envelope), own fields ...
    _fields: tuple[Any, ...]

    def __init__(self) -> None:
        raise TypeError("Event is only a base class")

    @property
    def seq(self) -> int | None:
        return self._fields[3]

    @property
    def raw(self) -> bytes:
        source, start, stop = self._fields[:3]
        return source[start:stop]

    @property
    def extensions(self) -> dict[str, Any]:
        found = self._fields[4]
        if found is None:
            return {}
        return fields.extensions_of(self.raw) if found is True else payload.loads(found)

    def detach(self) -> None:
        """Let go of the chunk this event was read from: only its own bytes are kept."""
        raw = self.raw
        _set_fields(self, (raw, 0, len(raw), *self._fields[3:]))

    def json(self) -> Any:
        """The whole payload as Python values: unknown members too. An event that was built by hand gives the envelope
        that it would have. Raises ValueError where the payload is no JSON."""
        raw = self.raw
        if raw:
            return payload.read(raw.decode("utf-8", "replace"))
        return fields.envelope(self.type, self.seq, self._members(), self.extensions)

    def _members(self) -> dict[str, Any]:
        return dict(zip(self._names, self._fields[5:], strict=True))

    def _key(self) -> tuple[Any, ...]:
        found = self.extensions
        text = payload.canonical(found) if found else None
        return (self.type, self._fields[3], self._fields[5:], text)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self._members().items()]
        shown.append(f"seq={self.seq!r}")
        found = self.extensions
        if found:
            shown.append(f"extensions={found!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        kind = "unknown" if isinstance(self, UnknownEvent) else self.type
        return (_rebuild, (kind, (self.raw, *self._fields[3:])))


_set_fields: Callable[[Event, tuple[Any, ...]], None] = Event.__dict__["_fields"].__set__


@final
class StreamStart(Event):
    """The endpoint accepted the request (draft, section 5.3.1): ``model``, ``created`` (Unix seconds) and
    ``request_id``, each None where the stream gave none."""

    __slots__ = ()
    __match_args__ = _names = ("model", "created", "request_id")
    type = "stream.start"

    def __init__(
        self,
        *,
        model: str | None = None,
        created: int | None = None,
        request_id: str | None = None,
        seq: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        own = (
            fields.optional_text("model", model),
            fields.optional_integer("created", created),
            fields.optional_text("request_id", request_id),
        )
        _set_fields(self, (b"", 0, 0, fields.optional_integer("seq", seq), fields.extensions(extensions), *own))

    @property
    def model(self) -> str | None:
        return self._fields[5]

    @property
    def created(self) -> int | None:
        return self._fields[6]

    @property
    def request_id(self) -> str | None:
        return self._fields[7]


@final
class ContentDelta(Event):
    """A fragment of generated text (draft, section 5.3.2): ``text``, ``index`` of its block, ``role``. ``reasoning`` is
    a fragment of what a vendor's model thought; it is never part of ``text``."""

    __slots__ = ()
    __match_args__ = _names = ("text", "index", "role", "reasoning")
    type = "content.delta"

    def __init__(
        self,
        *,
        text: str = "",
        index: int = 0,
        role: str = "assistant",
        reasoning: str | None = None,
        seq: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        own = (
            fields.text("text", text),
            fields.integer("index", index),
            fields.text("role", role),
            fields.optional_text("reasoning", reasoning),
        )
        _set_fields(self, (b"", 0, 0, fields.optional_integer("seq", seq), fields.extensions(extensions), *own))

    @property
    def text(self) -> str:
        return self._fields[5]

    @property
    def index(self) -> int:
        return self._fields[6]

    @property
    def role(self) -> str:
        return self._fields[7]

    @property
    def reasoning(self) -> str | None:
        return self._fields[8]

    def json(self) -> Any:
        raw = self.raw
        if raw:
            return payload.read(raw.decode("utf-8", "replace"))
        members = {"index": self.index, "role": self.role, "delta": {"text": self.text}}
        return fields.envelope(self.type, self.seq, members, self.extensions)


@final
class ContentStop(Event):
    """The end of a content block (draft, section 5.3.3): ``stop_reason`` in the draft's words (a word that is none of
    them is handed on; None where the stream gave none) and ``index`` of the block."""

    __slots__ = ()
    __match_args__ = _names = ("stop_reason", "index")
    type = "content.stop"

    def __init__(
        self,
        *,
        stop_reason: str | None = None,
        index: int = 0,
        seq: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        own = (fields.optional_text("stop_reason", stop_reason), fields.integer("index", index))
        _set_fields(self, (b"", 0, 0, fields.optional_integer("seq", seq), fields.extensions(extensions), *own))

    @property
    def stop_reason(self) -> str | None:
        return self._fields[5]

    @property
    def index(self) -> int:
        return self._fields[6]


@final
class ToolCall(Event):
    """The model asks for a tool (draft, section 5.3.4): ``id``, ``name``, ``arguments`` (JSON text, as it came) and
    ``index`` of the block."""

    __slots__ = ()
    __match_args__ = _names = ("id", "name", "arguments", "index")
    type = "tool.call"

    def __init__(
        self,
        *,
        id: str | None = None,
        name: str | None = None,
        arguments: str | None = None,
        index: int = 0,
        seq: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        own = (
            fields.optional_text("id", id),
            fields.optional_text("name", name),
            fields.optional_text("arguments", arguments),
            fields.integer("index", index),
        )
        _set_fields(self, (b"", 0, 0, fields.optional_integer("seq", seq), fields.extensions(extensions), *own))

    @property
    def id(self) -> str | None:
        return self._fields[5]

    @property
    def name(self) -> str | None:
        return self._fields[6]

    @property
    def arguments(self) -> str | None:
        return self._fields[7]

    @property
    def index(self) -> int:
        return self._fields[8]


@final
class Usage(Event):
    """Token counts (draft, section 5.3.5): ``input_tokens`` and ``output_tokens``. The last usage of a stream holds its
    totals; nothing is to be summed."""

    __slots__ = ()
    __match_args__ = _names = ("input_tokens", "output_tokens")
    type = "usage"

    def __init__(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        seq: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        own = (
            fields.optional_integer("input_tokens", input_tokens),
            fields.optional_integer("output_tokens", output_tokens),
        )
        _set_fields(self, (b"", 0, 0, fields.optional_integer("seq", seq), fields.extensions(extensions), *own))

    @property
    def input_tokens(self) -> int | None:
        return self._fields[5]

    @property
    def output_tokens(self) -> int | None:
        return self._fields[6]


@final
class StreamError(Event):
    """Generation failed (draft, section 5.3.6): ``code`` in the draft's words (an unknown one is handed on) and
    ``message``, the endpoint's own words."""

    __slots__ = ()
    __match_args__ = _names = ("code", "message")
    type = "error"

    def __init__(
        self,
        *,
        code: str | None = None,
        message: str | None = None,
        seq: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        own = (fields.optional_text("code", code), fields.optional_text("message", message))
        _set_fields(self, (b"", 0, 0, fields.optional_integer("seq", seq), fields.extensions(extensions), *own))

    @property
    def code(self) -> str | None:
        return self._fields[5]

    @property
    def message(self) -> str | None:
        return self._fields[6]

    def __repr__(self) -> str:
        # The endpoint's words may quote the prompt (draft, section 8.1).
        return f"StreamError(code={self.code!r}, seq={self.seq!r})"


@final
class StreamEnd(Event):
    """The stream ended as its protocol says (draft, section 5.3.7); ``request_id`` is echoed or None."""

    __slots__ = ()
    __match_args__ = _names = ("request_id",)
    type = "stream.end"

    def __init__(
        self,
        *,
        request_id: str | None = None,
        seq: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        own = (fields.optional_text("request_id", request_id),)
        _set_fields(self, (b"", 0, 0, fields.optional_integer("seq", seq), fields.extensions(extensions), *own))

    @property
    def request_id(self) -> str | None:
        return self._fields[5]


@final
class UnknownEvent(Event):
    """An event whose ``type`` is none of the draft's seven; its content is in ``raw`` and ``json()``."""

    __slots__ = ()
    __match_args__ = _names = ("type",)

    def __init__(self, *, type: str = "", seq: int | None = None, extensions: Mapping[str, Any] | None = None) -> None:
        own = (fields.text("type", type),)
        _set_fields(self, (b"", 0, 0, fields.optional_integer("seq", seq), fields.extensions(extensions), *own))

    @property
    def type(self) -> str:  # type: ignore[override]
        return self._fields[5]

    def json(self) -> Any:
        raw = self.raw
        if raw:
            return payload.read(raw.decode("utf-8", "replace"))
        return fields.envelope(self.type, self.seq, {}, self.extensions)


_EVENT_CLASSES: dict[str, type[Event]] = {
    "stream.start": StreamStart,
    "content.delta": ContentDelta,
    "content.stop": ContentStop,
    "tool.call": ToolCall,
    "usage": Usage,
    "error": StreamError,
    "stream.end": StreamEnd,
    "unknown": UnknownEvent,
}


def _rebuild(kind: str, state: tuple[Any, ...]) -> Any:
    """What a pickle or a copy is made from again; public under the package so that either twin can read it."""
    if kind == "violation":
        return Violation(*state)
    if kind == "sse":
        return ServerSentEvent(*state)
    raw, seq, extensions, *own = state
    return _new(_EVENT_CLASSES[kind], (raw, 0, len(raw), seq, extensions, *own))


_rebuild.__module__ = "llmstream"


def _new(cls: type[Event], values: tuple[Any, ...]) -> Any:
    event = cls.__new__(cls)
    _set_fields(event, values)
    return event
