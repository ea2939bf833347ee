"""The engine in Python: framing, envelopes, learned shapes, events.

Twin of ``_parser.pyx``: the same names in the same order and the same behaviour to the byte. Where the extension walks
bytes, this module leans on what is fast in Python: ``bytes.find``, ``split`` and the standard JSON reader.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

from . import _registry, fields, payload, rules
from .declaration import Declaration, declare
from .errors import EventTooLargeError, SSEError, UpstreamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Literal, TypeAlias

    from .declaration import Form, Node
    from .errors import LLMStreamError

    Buffer: TypeAlias = bytes | bytearray | memoryview

__all__ = [
    "ContentDelta",
    "ContentStop",
    "Event",
    "Parser",
    "SSEDecoder",
    "ServerSentEvent",
    "StreamEnd",
    "StreamError",
    "StreamStart",
    "ToolCall",
    "UnknownEvent",
    "Usage",
    "Violation",
    "implementation",
]

implementation = "python"

if TYPE_CHECKING:
    from typing import final
else:

    def _refuse(cls, **options):
        raise TypeError(f"{cls.__base__.__qualname__} is not an acceptable base type")

    def final(cls):
        # The compiled twin's classes are fixed in their layout.
        cls.__init_subclass__ = classmethod(_refuse)
        return cls


DEFAULT_MAX_EVENT_SIZE = 16 * 2**20
DEFAULT_MAX_DEPTH = 4096
MAX_RETRY = 2**63 - 1
MAX_STRAY = 64 * 1024
MAX_PENDING = 64
MAX_PENDING_SIZE = 64 * 1024
MAX_SHAPES = 4
MAX_SLOTS = 15
MAX_SPANS = 40
MAX_LITERALS = 2048


# ---------------------------------------------------------------------------------------------------------------------
# What the engine hands out


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
        return payload.loads(self._data)

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
            return payload.loads(raw.decode("utf-8", "replace"))
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

    def _members(self) -> dict[str, Any]:
        return dict(zip(self._names, self._fields[5:], strict=True))

    def json(self) -> Any:
        raw = self.raw
        if raw:
            return payload.loads(raw.decode("utf-8", "replace"))
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
            return payload.loads(raw.decode("utf-8", "replace"))
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


# ---------------------------------------------------------------------------------------------------------------------
# Framing: bytes to blocks (WHATWG HTML, section 9.2.6)


class _Block:
    """One event of the framing: its data is ``source[start:stop]``."""

    __slots__ = ("begin", "complete", "end", "event", "offset", "retry", "source", "start", "stop", "too_large")

    def __init__(self, offset: int, event: bytes, source: bytes, start: int, stop: int) -> None:
        self.offset = offset
        self.event = event
        self.source = source
        self.start = start
        self.stop = stop
        # Where the whole event lies in source when a shape may be learned from it.
        self.begin = -1
        self.end = -1
        self.retry: int | None = None
        self.complete = True
        self.too_large = False


_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"


class _Framer:
    """Splits chunks into blocks. Every byte is looked at a constant number of times, whatever the chunks."""

    __slots__ = (
        "_head",
        "_held",
        "_line",
        "_skipping",
        "_start",
        "_swallow",
        "any_field",
        "base",
        "committed_id",
        "data",
        "dataless",
        "event",
        "fresh",
        "id",
        "max_event_size",
        "offset",
        "position",
        "retry",
        "retry_of_block",
        "stray",
        "watch_stray",
    )

    def __init__(self, max_event_size: int) -> None:
        self.max_event_size = max_event_size
        self.dataless = False
        self.watch_stray = False
        self.stray: bytearray | None = bytearray()
        self.retry: int | None = None
        self.id = b""
        self.committed_id = b""
        self.offset = 0  # of the next chunk's first byte
        self.base = 0  # of this chunk's
        self.position = 0  # within the chunk, after the block just yielded
        self._head: bytes | None = b""  # what may be a BOM, until that is known
        self._swallow = False
        self._skipping = False
        self._line = bytearray()
        self._start = 0
        self._reset()

    def _reset(self) -> None:
        self.fresh = True
        self.event = b""
        self.any_field = False
        self.data: list[bytes] = []
        self.retry_of_block: int | None = None
        self._held = 0

    def feed(self, chunk: bytes, match: Callable[[bytes, int], int] | None = None) -> Iterator[_Block]:
        """The blocks of a chunk. ``match`` may read events by itself where one begins: it returns the place after
        them, or 0."""
        base = self.offset
        self.offset += len(chunk)
        if self._head is not None:
            joined = self._head + chunk
            if len(joined) < 3 and _BOM.startswith(joined):
                self._head = joined
                return
            base -= len(self._head)
            chunk = joined
            self._head = None
            at = 3 if chunk.startswith(_BOM) else 0
            self._start = base + at
        else:
            at = 0
        self.base = base
        size = len(chunk)
        if self._swallow and at < size:
            self._swallow = False
            if chunk[at] == 10:
                at += 1
        has_cr = b"\r" in chunk
        separator, line_end = (b"\r\n\r\n", b"\r\n") if has_cr else (b"\n\n", b"\n")
        whole_events = True
        while at < size:
            if self.fresh and not self._skipping:
                self._start = base + at
                if match is not None:
                    after = match(chunk, at)
                    if after:
                        at = after
                        continue
                if whole_events and chunk[at] not in b"\r\n":
                    cut = chunk.find(separator, at)
                    if cut < 0 or cut - at > self.max_event_size:
                        whole_events = False
                    else:
                        lines = chunk[at:cut].split(line_end)
                        if has_cr and not _only(line_end, chunk, at, cut, len(lines)):
                            whole_events = False
                        else:
                            begin = at
                            at = cut + len(separator)
                            block = self._whole(lines, chunk, begin, cut, at)
                            if block is not None:
                                self.position = at
                                yield block
                            continue
            if has_cr:
                found = _LINE_END.search(chunk, at)
                stop = found.start() if found else -1
            else:
                stop = chunk.find(b"\n", at)
            if stop < 0:
                self._keep(chunk[at:])
                if self._over(len(self._line)):
                    self.position = size
                    yield self._too_large()
                return
            line = chunk[at:stop]
            if self._line:
                self._line += line
                line = bytes(self._line)
                self._line.clear()
            at = stop + 1
            if chunk[stop] == 13:
                if at == size:
                    self._swallow = True
                elif chunk[at] == 10:
                    at += 1
            if line:
                self.fresh = False
                if self._over(len(line)):
                    self.position = at
                    yield self._too_large()
                elif not self._skipping:
                    self._field(line)
            else:
                done = self._dispatch()
                self._start = base + at
                if done is not None:
                    self.position = at
                    yield done

    def _whole(self, lines: list[bytes], chunk: bytes, begin: int, cut: int, end: int) -> _Block | None:
        """A block whose lines all lie in this chunk and hold no more than the limit."""
        simple = len(lines) <= 3
        names = 0
        start = stop = -1
        at = begin
        gap = (end - cut) // 2
        for line in lines:
            if line.startswith(b"data:"):
                if start < 0:
                    start = at + (6 if line.startswith(b"data: ") else 5)
                    stop = at + len(line)
                else:
                    simple = False
            elif line.startswith(b"event:") and names == 0:
                names = 1
            elif line.startswith(b"id:"):
                simple = simple and b"\0" not in line
            else:
                simple = False
            if line:
                self._field(line)
            at += len(line) + gap
        block = self._dispatch()
        if block is not None and start >= 0 and len(block.source) == stop - start:
            block.source, block.start, block.stop = chunk, start, stop
            if simple:
                block.begin, block.end = begin, end
        return block

    def _field(self, line: bytes) -> None:
        self.fresh = False
        name, colon, value = line.partition(b":")
        if not name and colon:
            return
        if value.startswith(b" "):
            value = value[1:]
        known = name in (b"data", b"event", b"id", b"retry")
        self.any_field = self.any_field or known
        if name == b"data":
            self._held += len(value) + bool(self.data)
            self.data.append(value)
        elif name == b"event":
            self._held += len(value) - len(self.event)
            self.event = value
        elif name == b"id":
            if b"\0" not in value:
                self._held += len(value)
                self.id = value
        elif name == b"retry":
            if value.isdigit():
                digits = value.lstrip(b"0")
                self.retry = self.retry_of_block = (
                    MAX_RETRY if len(digits) > 19 else min(int(digits or b"0"), MAX_RETRY)
                )
        elif self.watch_stray:
            self._watch(line)

    def _watch(self, line: bytes) -> None:
        # A JSON body where a stream was expected is no field of SSE; it may hold the error that explains everything.
        if self.stray is None or (not self.stray and not line.lstrip().startswith((b"{", b"["))):
            return
        if len(self.stray) + len(line) + 1 > MAX_STRAY:
            self.stray = None
        else:
            self.stray += line + b"\n"

    def _keep(self, rest: bytes) -> None:
        self.fresh = False
        if self._skipping:
            # Only whether the line is empty matters.
            self._line[:] = rest[:1] or self._line[:1]
        else:
            self._line += rest

    def _over(self, length: int) -> bool:
        return not self._skipping and self._held + length > self.max_event_size

    def _too_large(self) -> _Block:
        self._skipping = True
        del self._line[1:]
        self.id = self.committed_id
        block = _Block(self._start, b"", b"", 0, 0)
        block.too_large = True
        self._reset()
        self.fresh = False
        return block

    def _dispatch(self) -> _Block | None:
        self._skipping, skipped = False, self._skipping
        block = None
        if not skipped:
            self.committed_id = self.id
            if self.data or (self.dataless and self.any_field):
                source = self.data[0] if len(self.data) == 1 else b"\n".join(self.data)
                block = _Block(self._start, self.event, source, 0, len(source))
                block.retry = self.retry_of_block
        self._reset()
        return block

    def close(self) -> _Block | None:
        """The unfinished last event, if it holds data."""
        if self._skipping:
            return None
        if self._head:
            self._line += self._head
            self._head = None
        if self._line:
            self._field(bytes(self._line))
            self._line.clear()
        committed = self.committed_id
        block = self._dispatch()
        self.committed_id = committed
        if block is not None:
            block.complete = False
        return block


def _only(line_end: bytes, chunk: bytes, at: int, cut: int, lines: int) -> bool:
    """Whether CR and LF stand in pairs only."""
    return chunk.count(b"\r", at, cut) == lines - 1 == chunk.count(b"\n", at, cut)


def _as_bytes(chunk: Buffer) -> bytes:
    if type(chunk) is bytes:
        return chunk
    if isinstance(chunk, str):
        raise TypeError("a chunk must be bytes-like, not str")
    try:
        return bytes(memoryview(chunk).cast("B"))
    except TypeError:
        raise TypeError(f"a chunk must be a contiguous bytes-like object, not {type(chunk).__name__}") from None


def _size(name: str, value: int) -> int:
    if fields.integer(name, value) < 1:
        raise ValueError(f"{name} must be at least 1")
    return value


def _errors(value: str) -> bool:
    if value not in ("replace", "strict"):
        raise ValueError('errors must be "replace" or "strict"')
    return value == "strict"


@final
class SSEDecoder:
    """Reads a stream of Server-Sent Events (WHATWG HTML, section 9.2), in chunks cut anywhere.

    ``max_event_size``   bytes that one event may hold; more raises EventTooLargeError
    ``errors``           "replace" (invalid UTF-8 becomes U+FFFD, as WHATWG says) or "strict" (SSEError)
    ``dataless``         also hand out blocks without a data line, as some peers do
    ``unfinished``       ``close()`` hands out the last event without its blank line, its ``complete`` False
    ``last_event_id``    the id to start with, after a reconnection

    After an error the decoder is closed; ``feed`` on a closed decoder raises ValueError.
    """

    __slots__ = ("_closed", "_framer", "_number", "_strict", "_unfinished")

    def __init__(
        self,
        *,
        max_event_size: int = DEFAULT_MAX_EVENT_SIZE,
        errors: str = "replace",
        dataless: bool = False,
        unfinished: bool = False,
        last_event_id: str = "",
    ) -> None:
        self._framer = _Framer(_size("max_event_size", max_event_size))
        self._framer.dataless = bool(dataless)
        self._framer.id = self._framer.committed_id = fields.text("last_event_id", last_event_id).encode()
        self._strict = _errors(errors)
        self._unfinished = bool(unfinished)
        self._closed = False
        self._number = 0

    @property
    def last_event_id(self) -> str:
        """The last event id, as a client sends it back when it reconnects."""
        return self._framer.committed_id.decode("utf-8", "replace")

    @property
    def retry(self) -> int | None:
        """The latest reconnection time in milliseconds, at most 2**63 - 1; None where the stream gave none."""
        return self._framer.retry

    def feed(self, chunk: Buffer) -> list[ServerSentEvent]:
        """The events that are complete with this chunk (any contiguous bytes-like object)."""
        if self._closed:
            raise ValueError("the decoder is closed")
        out: list[ServerSentEvent] = []
        for block in self._framer.feed(_as_bytes(chunk)):
            out.append(self._event(block, out))
        return out

    def close(self) -> list[ServerSentEvent]:
        """Ends the stream. An unfinished last event is dropped, or handed out with ``unfinished``. Idempotent."""
        if self._closed:
            return []
        self._closed = True
        block = self._framer.close()
        if block is None or not self._unfinished:
            return []
        return [self._event(block, [])]

    def _event(self, block: _Block, out: list[ServerSentEvent]) -> ServerSentEvent:
        if block.too_large:
            self._closed = True
            raise EventTooLargeError(
                _message(rules.TOO_LARGE, self._number, block.offset, self._framer.max_event_size),
                offset=block.offset,
                events=out,
            )
        data = block.source[block.start : block.stop]
        try:
            name, text = block.event.decode(), data.decode()
            id = self._framer.id.decode()
        except UnicodeDecodeError:
            if self._strict:
                self._closed = True
                message = _message(rules.BAD_UTF8, self._number, block.offset)
                raise SSEError(message, offset=block.offset, events=out) from None
            name, text = block.event.decode("utf-8", "replace"), data.decode("utf-8", "replace")
            id = self._framer.id.decode("utf-8", "replace")
        self._number += 1
        event = ServerSentEvent.__new__(ServerSentEvent)
        event._event = name or "message"
        event._data = text
        event._id = id
        event._retry = block.retry
        event._complete = block.complete
        return event


def _message(rule: int, event: int, offset: int, detail: object = None) -> str:
    found = rules.RULES[rule]
    return f"{found.requirement}: {_words(rule, detail)} (event {event}, offset {offset})"


def _words(rule: int, detail: object) -> str:
    text = rules.RULES[rule].message
    return text if detail is None else f"{text}: {detail}"


# ---------------------------------------------------------------------------------------------------------------------
# The JSON walk: one validating pass over a payload (RFC 8259) that finds wanted values and where they stand

_OK, _INVALID, _DEEP = 0, 1, 2

_SPACE = re.compile(rb"[ \t\n\r]*+")
_STRING = re.compile(rb'"((?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+)"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORDS = ((b"true", True), (b"false", False), (b"null", None))


class _Walk:
    """``status``, ``values`` (leaf -> value), ``spans`` (start, stop, leaf, is a string) of strings without their
    quotes and numbers in order, and ``repeated`` (whether a wanted member came more than once in its object)."""

    __slots__ = ("fault", "is_object", "repeated", "spans", "status", "values")

    def __init__(self, data: bytes, root: Node, max_depth: int) -> None:
        self.values: dict[int, Any] = {}
        self.spans: list[tuple[int, int, int, bool]] = []
        self.repeated = False
        self.is_object = False
        self.status = self._walk(data, root, max_depth)

    def _walk(self, data: bytes, root: Node, max_depth: int) -> int:
        space, size = _SPACE, len(data)
        stack: list[tuple[bool, Node | None, int, set[Any] | None]] = []  # the containers around the current one
        is_array, node, item = False, None, 0
        seen: set[Any] | None = None
        depth, leaf, child = 0, -1, root
        at = space.match(data).end()  # type: ignore[union-attr]
        while True:
            # A value is due.
            byte = data[at] if at < size else 0
            if byte in b"{[" and byte:
                depth += 1
                if depth > max_depth:
                    return _DEEP
                array = byte == 91
                if depth == 1:
                    self.is_object = not array
                if leaf >= 0:
                    self.values[leaf] = [] if array else {}
                stack.append((is_array, node, item, seen))
                is_array, item, seen = array, 0, None if array else set()
                node = child if child is not None and child.is_array == array else None
                at = space.match(data, at + 1).end()  # type: ignore[union-attr]
                if at < size and data[at] == (93 if array else 125):
                    at += 1
                    is_array, node, item, seen = stack.pop()
                    depth -= 1
                elif array:
                    leaf, child = self._item(node, 0)
                    continue
                else:
                    at, leaf, child = self._member(data, at, node, seen)
                    if at < 0:
                        return _INVALID
                    continue
            elif byte == 34:
                found = _STRING.match(data, at)
                if found is None:
                    return _INVALID
                if leaf >= 0:
                    self.values[leaf] = _unescape(found[1])
                self.spans.append((at + 1, found.end() - 1, leaf, True))
                at = found.end()
            elif byte == 45 or 48 <= byte <= 57:
                found = _NUMBER.match(data, at)
                if found is None:
                    return _INVALID
                if leaf >= 0:
                    self.values[leaf] = _Number(found[0].decode())
                self.spans.append((at, found.end(), leaf, False))
                at = found.end()
            else:
                for word, value in _WORDS:
                    if data.startswith(word, at):
                        if leaf >= 0:
                            self.values[leaf] = value
                        at += len(word)
                        break
                else:
                    return _INVALID
            # A value is over: what follows?
            while True:
                at = space.match(data, at).end()  # type: ignore[union-attr]
                if depth == 0:
                    return _OK if at == size else _INVALID
                byte = data[at] if at < size else 0
                at += 1
                if byte == 44:
                    at = space.match(data, at).end()  # type: ignore[union-attr]
                    if is_array:
                        item += 1
                        leaf, child = self._item(node, item)
                    else:
                        at, leaf, child = self._member(data, at, node, seen)
                        if at < 0:
                            return _INVALID
                    break
                if byte != (93 if is_array else 125):
                    return _INVALID
                is_array, node, item, seen = stack.pop()
                depth -= 1

    @staticmethod
    def _item(node: Node | None, item: int) -> tuple[int, Any]:
        if node is None:
            return -1, None
        return node.leaves.get(item, -1), node.children.get(item)

    def _member(self, data: bytes, at: int, node: Node | None, seen: Any) -> tuple[int, int, Any]:
        found = _STRING.match(data, at)
        if found is None:
            return -1, -1, None
        at = _SPACE.match(data, found.end()).end()  # type: ignore[union-attr]
        if data[at : at + 1] != b":":
            return -1, -1, None
        at = _SPACE.match(data, at + 1).end()  # type: ignore[union-attr]
        if node is None:
            return at, -1, None
        name = _unescape(found[1])
        leaf, child = node.leaves.get(name, -1), node.children.get(name)
        if leaf >= 0 or child is not None:
            if name in seen:
                # The last one wins, with everything under it.
                self.repeated = True
                for below in node.below(name):
                    self.values.pop(below, None)
            seen.add(name)
        return at, leaf, child


class _Number:
    """A JSON number as it was written."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _unescape(body: bytes) -> str:
    text = body.decode()
    return scanstring(text + '"', 0, True)[0] if "\\" in text else text


_SPELLING = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?")


def _integer(value: Any) -> tuple[int | None, bool]:
    """A JSON number as an integer from 0 to 2**63 - 1, and whether it was written as one (resolution A-17)."""
    if type(value) is int:
        return (value, True) if 0 <= value <= rules.MAX_INTEGER else (None, False)
    if type(value) is not _Number:
        return None, False
    sign, whole, fraction, exponent_sign, exponent = _SPELLING.fullmatch(value.text).groups("")  # type: ignore[union-attr]
    if not sign and len(whole) == len(value.text):
        found = int(whole) if len(whole) <= 19 else rules.MAX_INTEGER + 1
        return (found, True) if found <= rules.MAX_INTEGER else (None, False)
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0, False
    exponent = exponent.lstrip("0")
    scale = int(exponent or "0") if len(exponent) <= 12 else 10**12
    scale = (-scale if exponent_sign == "-" else scale) - len(fraction)
    significant = digits.rstrip("0")
    scale += len(digits) - len(significant)
    if sign or scale < 0 or len(significant) + scale > 16:
        return None, False
    found = int(significant) * 10**scale
    return (found, False) if found <= rules.MAX_SEQUENCE else (None, False)


_HALF = re.compile("[\ud800-\udfff]")


# ---------------------------------------------------------------------------------------------------------------------
# Envelopes: JSON text to members


class _Members(dict):  # type: ignore[type-arg]
    """An object that knows whether one of its names came twice."""

    __slots__ = ("names",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.names = [name for name, _ in pairs]

    def repeats(self, wanted: Iterable[str]) -> bool:
        return len(self.names) != len(self) and any(self.names.count(name) > 1 for name in wanted)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_read_quickly = json.JSONDecoder(parse_float=_Number, parse_constant=_no_constant).decode
_read_fully = json.JSONDecoder(
    parse_float=_Number, parse_int=_Number, parse_constant=_no_constant, object_pairs_hook=_Members
).decode

_ENVELOPE_PATHS = (
    "v",
    "seq",
    "type",
    "index",
    "role",
    "delta",
    "delta.text",
    "model",
    "created",
    "request_id",
    "stop_reason",
    "id",
    "name",
    "arguments",
    "input_tokens",
    "output_tokens",
    "code",
    "message",
)
_ENVELOPE = Declaration(paths=_ENVELOPE_PATHS)
_ENVELOPE_NAMES = tuple(path for path in _ENVELOPE_PATHS if "." not in path)
_SEQ_LEAF = _ENVELOPE_PATHS.index("seq")
_INDEX_LEAF = _ENVELOPE_PATHS.index("index")
_TEXT_LEAF = _ENVELOPE_PATHS.index("delta.text")
_KINDS = {name: number for number, name in enumerate(rules.EVENT_TYPES[:7])}
_UNKNOWN = 7

# Beyond this many brackets the recursive reader is not trusted with a text.
_SAFE_BRACKETS = 200


def _read_envelope(text: str, max_depth: int) -> tuple[int, Any, bool]:
    """Status, the value (only wanted members if it is nested deeply) and whether a wanted member was repeated."""
    if text.count("{") + text.count("[") <= min(_SAFE_BRACKETS, max_depth):
        try:
            return _read_shallow(text)
        except RecursionError:
            pass  # the caller's own stack is nearly used up
    walk = _Walk(text.encode(), _ENVELOPE.root, max_depth)
    if walk.status != _OK:
        return walk.status, None, False
    if not walk.is_object:
        return _OK, [], False
    members = {name: walk.values[leaf] for leaf, name in enumerate(_ENVELOPE_PATHS) if leaf in walk.values}
    if _TEXT_LEAF in walk.values:
        members["delta"] = {"text": members.pop("delta.text")}
    return _OK, members, walk.repeated


def _read_shallow(text: str) -> tuple[int, Any, bool]:
    value: Any
    try:
        # Names that cannot hide: as many as there are members, none spelled with escapes or apart from its colon.
        if "\\u" not in text and '" ' not in text and "-0" not in text and '"\t' not in text and '"\n' not in text:
            value = _read_quickly(text)
            if type(value) is not dict:
                return _OK, value, False
            delta = value.get("delta")
            if text.count('":') == len(value) + (len(delta) if type(delta) is dict else 0):
                return _OK, value, False
        value = _read_fully(text)
    except json.JSONDecodeError:
        return _INVALID, None, False
    except ValueError as error:
        # An integer too long to convert; anything else was refused by name.
        if "digits" not in str(error):
            return _INVALID, None, False
        try:
            value = _read_fully(text)
        except ValueError:
            return _INVALID, None, False
    if not isinstance(value, _Members):
        return _OK, value, False
    delta = value.get("delta")
    inner = isinstance(delta, _Members) and delta.repeats(("text",))
    return _OK, value, inner or value.repeats(_ENVELOPE_NAMES)


_MISSING: Any = object()


def _look_up(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if type(step) is str:
            value = value.get(step, _MISSING) if type(value) is dict else _MISSING
        else:
            value = value[step] if type(value) is list and step < len(value) else _MISSING  # type: ignore[operator,index]
    return value


# ---------------------------------------------------------------------------------------------------------------------
# Learned shapes: a memo of the careful path

_SEQ, _TEXT, _REASONING, _ARGUMENTS, _INDEX, _CALL, _INPUT, _OUTPUT, _ANY_STRING, _ANY_NUMBER, _PADDING = range(11)
_CONTENT = {"text": _TEXT, "reasoning": _REASONING, "arguments": _ARGUMENTS}
_SEQ_AND_INDEX = (_SEQ, _INDEX)
_DIGITS = re.compile(rb"(?:0|[1-9][0-9]{0,17})(?![0-9])")
_PAD = re.compile(rb"[ \t]*+")
_CONTROL = re.compile("[\x00-\x1f]")


class _Shape:
    """An event as literals and slots. ``gaps[i]`` are the bytes before span i, ``kinds[i]`` says what the span is and
    ``values[i]`` what stands there while it is fixed; the last gap ends the event."""

    __slots__ = (
        "after_data",
        "data_at",
        "foretold",
        "form",
        "gaps",
        "kinds",
        "lead",
        "program",
        "size",
        "values",
    )

    def __init__(
        self, form: Any, data_at: int, after_data: int, gaps: list[bytes], kinds: list[int], values: list[bytes | None]
    ) -> None:
        self.form = form
        self.data_at = data_at
        self.after_data = after_data  # bytes behind the payload
        self.gaps = gaps
        self.kinds = kinds
        self.values = values
        self._compile()

    def _compile(self) -> None:
        """``lead`` is what comes before the first slot that cannot be foretold, with %d for the next sequence number
        and the index (``foretold`` says which); ``program`` are the other slots, each with the literal behind it."""
        lead, foretold, literals = b"", [], [self.gaps[0]]
        self.program: list[tuple[int, bytes]] = []
        for kind, value, gap in zip(self.kinds, self.values, self.gaps[1:], strict=True):
            if value is not None:
                literals[-1] += value + gap
            elif not self.program and kind in (_SEQ, _INDEX):
                foretold.append(kind)
                lead += literals[-1].replace(b"%", b"%%") + b"%d"
                literals.append(gap)
            else:
                self.program.append((kind, b""))
                literals.append(gap)
        before = len(literals) - len(self.program) - 1
        self.lead = lead + literals[before].replace(b"%", b"%%")
        self.foretold = tuple(foretold)
        self.program = [(kind, literals[before + 1 + at]) for at, (kind, _) in enumerate(self.program)]
        self.size = sum(map(len, literals))

    def fits(self) -> bool:
        return len(self.foretold) + len(self.program) <= MAX_SLOTS and self.size <= MAX_LITERALS

    def widen(self, other: _Shape) -> bool:
        """Takes in another event of the same skeleton: what differs and is not wanted becomes a slot."""
        if self.form is not other.form or self.gaps != other.gaps or len(self.kinds) != len(other.kinds):
            return False
        kinds, values = list(self.kinds), list(self.values)
        for at, (mine, theirs) in enumerate(zip(self.kinds, other.kinds, strict=True)):
            if mine >= _ANY_STRING:
                if theirs != mine:
                    return False
                if values[at] is not None and values[at] != other.values[at]:
                    values[at] = None
            elif mine != theirs:
                return False
        self.kinds, self.values, old = kinds, values, self.values
        self._compile()
        if not self.fits():
            self.values = old
            self._compile()
            return False
        return True


def _learn(
    form: Any, event: bytes, data_at: int, data_end: int, walk: _Walk, slots: Mapping[int, int]
) -> _Shape | None:
    """The shape of one event, whose payload lies from ``data_at`` to ``data_end`` and was walked."""
    gaps: list[bytes] = []
    kinds: list[int] = []
    values: list[bytes | None] = []
    at = unwanted = 0
    for start, stop, leaf, is_string in walk.spans:
        start, stop = start + data_at, stop + data_at
        slot = slots.get(leaf, -1) if leaf >= 0 else -1
        if slot >= 0:
            value = None
        elif leaf >= 0:
            continue
        else:
            if unwanted == MAX_SPANS:
                continue
            unwanted += 1
            slot = _ANY_STRING if is_string else _ANY_NUMBER
            value = event[start:stop]
        gaps.append(event[at:start])
        kinds.append(slot)
        values.append(value)
        at = stop
    if event[data_end - 1] == 125:
        # Some vendors pad before the last brace.
        start = len(event[: data_end - 1].rstrip(b" \t"))
        gaps.append(event[at:start])
        kinds.append(_PADDING)
        values.append(event[start : data_end - 1])
        at = data_end - 1
    gaps.append(event[at:])
    shape = _Shape(form, data_at, len(event) - data_end, gaps, kinds, values)
    return shape if shape.fits() else None


def _string_slot(chunk: bytes, at: int) -> tuple[str | None, int]:
    """The string that starts at ``at`` and the place of its quote; None sends the event to the careful path."""
    stop = chunk.find(b'"', at)
    if stop < 0:
        return None, 0
    body = chunk[at:stop]
    if b"\\" in body:
        found = _STRING.match(chunk, at - 1)
        if found is None:
            return None, 0
        body = found[1]
        try:
            text = scanstring(body.decode() + '"', 0, True)[0]
        except ValueError:
            return None, 0
        return (None if _HALF.search(text) else text), found.end() - 1
    try:
        text = body.decode()
    except ValueError:
        return None, 0
    if not text.isprintable() and _CONTROL.search(text):
        return None, 0
    return text, stop


# ---------------------------------------------------------------------------------------------------------------------
# The parser


@final
class Parser:
    """Reads a stream of an LLM's answer, in chunks cut anywhere, as the events of draft-spk-agentproto-llm-stream-00.

    ``dialect``          "llm-stream" (the draft), the name of a vendor's format, "auto", or a Dialect class
    ``strict``           raise at the first error instead of recording it
    ``max_event_size``   bytes that one event may hold
    ``max_depth``        nesting of JSON that is read
    ``errors``           "replace" (invalid UTF-8 becomes U+FFFD, a warning) or "strict" (SSEError)
    ``shapes``           learn the form of events that repeat; the results are the same without

    Lenient, a parser raises for no bytes: it delivers all that can be read and records every deviation in
    ``violations``. Strict, it raises a subclass of LLMStreamError at the first one; ``error.events`` are the events
    before it, and the parser is closed. ``feed`` on a closed parser raises ValueError.
    """

    __slots__ = (
        "_after_end",
        "_blocks",
        "_busy",
        "_call_ids",
        "_closed",
        "_complete",
        "_depth",
        "_detecting",
        "_dialect",
        "_error",
        "_error_count",
        "_errors_strict",
        "_forms",
        "_framer",
        "_framing",
        "_framing_at",
        "_gaps",
        "_head",
        "_hits",
        "_in_tail",
        "_index",
        "_misses",
        "_next_seq",
        "_number",
        "_offset",
        "_out",
        "_paths",
        "_pending",
        "_pending_size",
        "_request_id",
        "_root",
        "_seq",
        "_shapes",
        "_skip_version",
        "_started",
        "_state",
        "_strict",
        "_too_many",
        "_tries",
        "_undecided",
        "_unread",
        "_untold",
        "_usage",
        "_use_shapes",
        "_violation_count",
        "_violations",
    )

    def __init__(
        self,
        dialect: Any = "llm-stream",
        *,
        strict: bool = False,
        max_event_size: int = DEFAULT_MAX_EVENT_SIZE,
        max_depth: int = DEFAULT_MAX_DEPTH,
        errors: str = "replace",
        shapes: bool = True,
    ) -> None:
        self._framer = _Framer(_size("max_event_size", max_event_size))
        self._framer.watch_stray = True
        self._depth = _size("max_depth", max_depth)
        self._errors_strict = _errors(errors)
        self._strict = bool(strict)
        self._use_shapes = bool(shapes)
        self._shapes: list[_Shape] = []
        self._hits = self._misses = self._tries = 0
        self._out: list[Any] = []
        self._busy = self._closed = self._complete = self._in_tail = self._started = False
        self._skip_version = self._too_many = False
        self._state = "new"
        self._number = 0  # of the event under way
        self._offset = 0  # of its first byte
        self._seq: int | None = None
        self._next_seq = self._unread = self._after_end = 0
        self._blocks: dict[int, bool] = {}  # index -> whether it was stopped
        self._call_ids: set[str] = set()
        self._request_id: str | None = None
        self._usage: Usage | None = None
        self._error: StreamError | None = None
        self._violations: list[Violation] = []
        self._violation_count = self._error_count = 0
        self._gaps: list[tuple[int, int]] = []
        self._framing: Any = None
        self._framing_at = 0  # where its first byte lies in the stream
        self._pending: list[tuple[int, int, str | None, bool, bytes]] = []
        self._pending_size = 0
        self._undecided = self._untold = False
        self._index = -1
        self._head: bytes | None = None
        self._take(_registry.resolve(dialect))
        if self._dialect is not None and self._dialect.framings:
            self._head = b""

    def _take(self, dialect: Any) -> None:
        self._dialect = dialect
        self._detecting = dialect is not None and hasattr(dialect, "detect")
        declared = _ENVELOPE if dialect is None else declare(dialect.deltas)
        self._root: Node = declared.root
        self._paths = declared.paths
        self._forms: list[Form] = declared.forms

    # What a parser knows

    @property
    def dialect(self) -> str:
        """The name of the dialect; of the one found, once ``auto`` has decided."""
        return "llm-stream" if self._dialect is None else self._dialect.name

    @property
    def alternatives(self) -> bool:
        """Whether an index counts alternative answers, of which number 0 is the primary one, and not blocks of one."""
        return self._dialect is not None and bool(self._dialect.alternatives)

    @property
    def complete(self) -> bool:
        """Whether the stream ended as its protocol says."""
        return self._complete

    @property
    def error(self) -> StreamError | None:
        """The first error that the endpoint reported in the stream."""
        return self._error

    @property
    def usage(self) -> Usage | None:
        """The last token counts."""
        return self._usage

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The first and the last sequence number of every run of lost events (draft, section 5.2.1)."""
        return list(self._gaps)

    @property
    def next_seq(self) -> int:
        """The sequence number that the next event should have."""
        return self._next_seq

    @property
    def shape_hits(self) -> int:
        """How many events were read by a learned shape."""
        return self._hits

    @property
    def last_event_id(self) -> str:
        """The last event id of the SSE layer."""
        return self._framer.committed_id.decode("utf-8", "replace")

    @property
    def retry(self) -> int | None:
        """The latest reconnection time in milliseconds, at most 2**63 - 1."""
        return self._framer.retry

    @property
    def violations(self) -> list[Violation]:
        """The first 1,000 deviations, in the order they were found."""
        found = list(self._violations)
        if self._after_end > 1:
            # One violation for all of them, so its count is known last.
            words = _words(rules.AFTER_END, 1)
            for at, violation in enumerate(found):
                if violation.message == words:
                    found[at] = self._violation(rules.AFTER_END, violation.event, violation.offset, self._after_end)
        return found

    @property
    def violation_count(self) -> int:
        """How many deviations there were in all."""
        return self._violation_count

    @property
    def error_count(self) -> int:
        """How many of them were errors, and not warnings."""
        return self._error_count

    # Feeding

    def feed(self, chunk: Buffer) -> list[Event]:
        """The events that are complete with this chunk (any contiguous bytes-like object)."""
        data = _as_bytes(chunk)
        self._begin()
        try:
            if self._head is not None:
                data = self._sniff(data)
            self._bytes(data)
        finally:
            self._busy = False
        return self._take_out()

    def feed_payload(self, data: Buffer, event: str | None = None) -> list[Event]:
        """The events of one payload that came without SSE around it; ``event`` names it where its framing does."""
        source = _as_bytes(data)
        self._begin()
        try:
            self._frame(event, source, self._framer.offset)
            self._framer.offset += len(source)
        finally:
            self._busy = False
        return self._take_out()

    def feed_text(self, chunk: Buffer) -> str:
        """Only the text of this chunk: of the primary answer, in order of arrival."""
        return self._text_of(self.feed(chunk))

    def close(self) -> list[Event]:
        """Ends the stream and returns the events that were due. Idempotent. In strict mode a stream that is cut raises
        IncompleteStreamError."""
        if self._closed:
            return []
        self._begin()
        self._seq = None
        head, self._head = self._head, None
        try:
            if head:
                self._bytes(head)
            self._tail()
            self._close_framing()
            self._stray()
            self._offset = self._framer.offset
            if self._detecting and self._error is None:
                self._give_up()
            if self._dialect is not None and not self._detecting:
                self._accept(self._call(self._dialect.finish, False), b"", 0, 0)
            self._finish()
        finally:
            self._busy = False
        out = self._take_out()
        self._closed = True
        return out

    def _begin(self) -> None:
        if self._closed:
            raise ValueError("the parser is closed")
        if self._busy:
            raise RuntimeError("the parser is being fed already")
        self._busy = True

    def _take_out(self) -> list[Any]:
        out, self._out = self._out, []
        return out

    def _text_of(self, events: list[Any]) -> str:
        primary = self.alternatives
        texts = [e._fields[5] for e in events if type(e) is ContentDelta and not (primary and e._fields[6])]
        return "".join(texts)

    def _bytes(self, data: bytes) -> None:
        if self._framing is not None:
            self._frames(lambda: self._framing.feed(data))
            self._framer.offset += len(data)
            return
        for block in self._framer.feed(data, self._match if self._use_shapes else None):
            self._block(block)

    def _sniff(self, data: bytes) -> bytes:
        """Tells the framing by the first byte; what came so far is held until there is one."""
        head = (self._head or b"") + data
        body = head.removeprefix(_BOM).lstrip(b"\r\n")
        if not body or (len(head) < 3 and _BOM.startswith(head)):
            self._head = head
            return b""
        self._head = None
        factory = self._dialect.framings.get(body[0])
        if factory is None:
            return head
        self._framing = factory(self._framer.max_event_size)
        self._framing_at = len(head) - len(body)
        self._framer.offset = self._framing_at
        return body

    def _frames(self, read: Callable[[], Any]) -> None:
        try:
            frames = read()
        except EventTooLargeError as error:
            for frame in error.events:
                self._frame(frame.event, frame.data, self._framing_at + frame.offset)
            self._offset = self._framing_at + (error.offset or 0)
            self._seq = None
            self._record(rules.TOO_LARGE, self._framer.max_event_size)
            self._number += 1
            return
        for frame in frames:
            self._frame(frame.event, frame.data, self._framing_at + frame.offset)

    def _close_framing(self) -> None:
        if self._framing is None:
            return
        self._frames(self._framing.close)
        self._offset = self._framer.offset
        if self._framing.broken:
            self._record(rules.FRAMING)
        elif self._framing.unfinished:
            self._record(rules.TAIL_DROPPED)

    def _frame(self, event: str | None, data: bytes, offset: int) -> None:
        self._payload(offset, event, False, data, 0, len(data))

    def _block(self, block: _Block) -> None:
        self._offset = block.offset
        self._seq = None
        if block.too_large:
            if self._state == "ended":
                self._ended()
            else:
                self._record(rules.TOO_LARGE, self._framer.max_event_size)
                self._unread += 1
            self._settle()
            self._number += 1
            return
        missed = self._misses
        name = block.event.decode("utf-8", "replace")
        shape_from = self._payload(block.offset, name, True, block.source, block.start, block.stop)
        if shape_from is not None and block.begin >= 0 and self._use_shapes:
            self._remember(shape_from, block, missed)

    def _payload(
        self, offset: int, event: str | None, framed: bool, source: bytes, start: int, stop: int
    ) -> Form | Literal[True] | None:
        """One payload, by the careful path. Returns the form by which a shape may be learned from it."""
        self._offset = offset
        self._seq = None
        if self._detecting:
            self._detect(event, framed, source, start, stop)
            return None
        before = self._violation_count
        if self._dialect is None:
            learn = self._envelope(event, framed, source, start, stop)
        else:
            learn = self._vendor(event, source, start, stop)
        self._settle()
        self._number += 1
        return learn if before == self._violation_count else None

    # Recording

    def _violation(self, rule: int, event: int, offset: int, detail: object) -> Violation:
        found = rules.RULES[rule]
        return Violation(found.requirement, found.severity, event, offset, _words(rule, detail))

    def _record(self, rule: int, detail: object = None) -> None:
        self._violation_count += 1
        if len(self._violations) < rules.MAX_VIOLATIONS:
            self._violations.append(self._violation(rule, self._number, self._offset, detail))
        if rules.RULES[rule].severity == "error":
            self._error_count += 1
            if self._strict:
                self._raise(rules.RULES[rule].error, _message(rule, self._number, self._offset, detail))

    def _raise(self, error: type[LLMStreamError], message: str) -> None:
        self._closed = True
        out = self._take_out()
        raise error(message, seq=self._seq, offset=self._offset, events=out)

    def _settle(self) -> None:
        """After each event: an error in band ends a strict parser."""
        if self._strict and self._error is not None:
            self._closed = True
            raise UpstreamError(
                self._error.code or "",
                self._error.message or "",
                seq=self._error.seq,
                offset=self._offset,
                events=self._take_out(),
            )

    def _decode(self, source: bytes, start: int, stop: int) -> str:
        data = source[start:stop]
        try:
            return data.decode()
        except UnicodeDecodeError:
            if self._errors_strict:
                self._raise(SSEError, _message(rules.BAD_UTF8, self._number, self._offset))
            self._record(rules.BAD_UTF8)
            return data.decode("utf-8", "replace")

    # The draft's envelopes (section 5.2)

    def _ended(self) -> None:
        self._after_end += 1
        if self._after_end == 1:
            self._record(rules.AFTER_END, 1)

    def _envelope(
        self, event: str | None, framed: bool, source: bytes, start: int, stop: int
    ) -> Form | Literal[True] | None:
        if self._state == "ended":
            self._ended()
            return None
        text = self._decode(source, start, stop)
        status, value, repeated = _read_envelope(text, self._depth)
        if status == _DEEP:
            self._unread += 1
            self._record(rules.TOO_DEEP)
            return None
        if status == _INVALID or not isinstance(value, dict):
            self._unread += 1
            self._record(rules.NOT_JSON if status == _INVALID else rules.NOT_OBJECT)
            return None
        if repeated:
            self._record(rules.DUPLICATE_KEY)
        if value.get("v") != "1.0" and not self._skip_version:
            self._skip_version = True
            self._record(rules.BAD_VERSION)
        self._seq, exact = _integer(value.get("seq"))
        if not exact:
            self._record(rules.BAD_SEQUENCE)
        kind, name = self._type(value.get("type", _MISSING), event, framed)
        is_start = kind == 0 and not self._started
        first = is_start and self._state == "new"
        self._state, broken = rules.LIFECYCLE[self._state][kind]
        if broken and not (is_start and not first):
            # A start that comes late is no second one; that the stream began without it was said.
            self._record(broken)
        self._order(is_start, first)
        if is_start:
            self._started = True
        own = self._READERS[kind](self, value, name)
        place = (source, start, stop, self._seq, True)
        made = _new(_EVENT_CLASSES[rules.EVENT_TYPES[kind]], place + own)
        self._out.append(made)
        if kind == 4:
            self._usage = made
        elif kind == 5 and self._error is None:
            self._error = made
        elif kind == 6:
            self._at_end()
        return True if kind == 1 else None

    def _type(self, value: Any, event: str | None, framed: bool) -> tuple[int, str]:
        if type(value) is str:
            if (framed or event) and value != event:
                self._record(rules.TYPE_MISMATCH if event else rules.TYPE_WITHOUT_EVENT)
            name = self._whole(value)
        else:
            self._record(rules.BAD_TYPE)
            name = event or ""
        return _KINDS.get(name, _UNKNOWN), name

    def _order(self, is_start: bool, first: bool) -> None:
        """Section 5.2.1: gaps, repeats and numbers that are too high."""
        seq = self._seq
        if seq is None:
            self._unread += 1
            return
        if is_start and seq:
            self._record(rules.START_NOT_ZERO)
        if first:
            pass
        elif seq < self._next_seq:
            self._record(rules.SEQUENCE_NOT_AHEAD)
        elif seq > self._next_seq + self._unread:
            lost = self._next_seq + self._unread
            if len(self._gaps) < rules.MAX_VIOLATIONS:
                self._gaps.append((lost, seq - 1))
            self._record(rules.SEQUENCE_GAP, seq - lost)
        if first or seq >= self._next_seq:
            self._next_seq = seq + 1
            self._unread = 0
        if seq > rules.MAX_SEQUENCE:
            self._record(rules.SEQUENCE_TOO_HIGH)

    def _whole(self, text: str) -> str:
        """A string without halves of surrogate pairs."""
        if not text.isascii() and _HALF.search(text):
            self._record(rules.LONE_SURROGATE)
            return _HALF.sub("\ufffd", text)
        return text

    def _string(self, value: Any, name: str, rule: int) -> str | None:
        found = value.get(name)
        if type(found) is str:
            return self._whole(found)
        self._record(rule)
        return None

    def _count(self, value: Any, name: str, rule: int) -> int | None:
        found, exact = _integer(value.get(name))
        if not exact:
            self._record(rule)
        return found

    def _read_request_id(self, value: Any) -> str | None:
        return self._string(value, "request_id", rules.BAD_REQUEST_ID) if "request_id" in value else None

    def _read_start(self, value: Any, name: str) -> tuple[Any, ...]:
        model = self._string(value, "model", rules.BAD_MODEL)
        created = self._count(value, "created", rules.BAD_CREATED)
        request_id = self._read_request_id(value)
        if self._request_id is None:
            self._request_id = request_id
        return (model, created, request_id)

    def _read_delta(self, value: Any, name: str) -> tuple[Any, ...]:
        index = self._count(value, "index", rules.BAD_DELTA_INDEX) or 0
        role = value.get("role")
        if role != "assistant":
            self._record(rules.BAD_ROLE)
            role = self._whole(role) if type(role) is str else "assistant"
        delta = value.get("delta")
        if isinstance(delta, dict):
            text = self._string(delta, "text", rules.BAD_TEXT) or ""
        else:
            self._record(rules.BAD_DELTA)
            text = ""
        self._open(index)
        return (text, index, role, None)

    def _read_stop(self, value: Any, name: str) -> tuple[Any, ...]:
        index = self._count(value, "index", rules.BAD_STOP_INDEX) or 0
        reason = self._string(value, "stop_reason", rules.BAD_STOP_REASON)
        if reason is not None and reason not in rules.STOP_REASONS:
            self._record(rules.UNKNOWN_STOP_REASON)
        if self._blocks.get(index):
            self._record(rules.SECOND_STOP)
        elif index in self._blocks or self._room(len(self._blocks)):
            self._blocks[index] = True
        return (reason, index)

    def _read_tool_call(self, value: Any, name: str) -> tuple[Any, ...]:
        index = self._count(value, "index", rules.BAD_CALL_INDEX) or 0
        call_id = self._string(value, "id", rules.BAD_CALL_ID)
        tool = self._string(value, "name", rules.BAD_CALL_NAME)
        arguments = self._string(value, "arguments", rules.BAD_ARGUMENTS)
        if call_id is not None:
            if call_id in self._call_ids:
                self._record(rules.REPEATED_CALL_ID)
            elif self._room(len(self._call_ids)):
                self._call_ids.add(call_id)
        if arguments is not None and _read_envelope(arguments, self._depth)[0] != _OK:
            self._record(rules.ARGUMENTS_NOT_JSON)
        self._open(index)
        return (call_id, tool, arguments, index)

    def _read_usage(self, value: Any, name: str) -> tuple[Any, ...]:
        return (
            self._count(value, "input_tokens", rules.BAD_INPUT_TOKENS),
            self._count(value, "output_tokens", rules.BAD_OUTPUT_TOKENS),
        )

    def _read_error(self, value: Any, name: str) -> tuple[Any, ...]:
        code = self._string(value, "code", rules.BAD_CODE)
        message = self._string(value, "message", rules.BAD_MESSAGE)
        if code is not None and code not in rules.ERROR_CODES:
            self._record(rules.UNKNOWN_CODE)
        return (code, message)

    def _read_end(self, value: Any, name: str) -> tuple[Any, ...]:
        request_id = self._read_request_id(value)
        if request_id is not None and self._request_id is not None and request_id != self._request_id:
            self._record(rules.REQUEST_ID_DIFFERS)
        return (request_id,)

    def _read_unknown(self, value: Any, name: str) -> tuple[Any, ...]:
        return (name,)

    _READERS = (
        _read_start,
        _read_delta,
        _read_stop,
        _read_tool_call,
        _read_usage,
        _read_error,
        _read_end,
        _read_unknown,
    )

    def _room(self, used: int) -> bool:
        if used < rules.MAX_BLOCKS:
            return True
        if not self._too_many:
            self._too_many = True
            self._record(rules.TOO_MANY_BLOCKS)
        return False

    def _open(self, index: int) -> None:
        stopped = self._blocks.get(index)
        if stopped:
            self._record(rules.DELTA_AFTER_STOP)
        elif stopped is None and self._room(len(self._blocks)):
            self._blocks[index] = False

    def _at_end(self) -> None:
        """What has to be there once the stream has ended (section 5.4)."""
        if self._error is None:
            for stopped in self._blocks.values():
                if not stopped:
                    self._record(rules.BLOCK_NOT_STOPPED)
            if self._usage is None:
                self._record(rules.NO_USAGE)
        if not self._in_tail and self._next_seq <= rules.MAX_SEQUENCE + 1:
            self._complete = True

    # Vendors' payloads

    def _vendor(self, event: str | None, source: bytes, start: int, stop: int) -> Form | None:
        dialect = self._dialect
        if self._state == "ended":
            if source[start:stop] != (dialect.end_mark or "").encode():
                self._ended()
            return None
        text = self._decode(source, start, stop)
        if dialect.end_mark is not None and text == dialect.end_mark:
            self._accept(self._call(dialect.finish, True), source, start, stop)
            return None
        if not dialect.json:
            self._accept(self._call(dialect.translate, text, event or None), source, start, stop)
            return None
        value = self._value(text)
        if value is None:
            return None
        if self._started:
            for form in self._forms:
                found = self._fit(form, value)
                if found is not None:
                    self._yield_form(form, found, source, start, stop)
                    return form
        if "\\u" in text:
            whole, halves = payload.without_lone_surrogates(text)
            if halves:
                self._record(rules.LONE_SURROGATE)
                value = payload.loads(whole)
        self._accept(self._call(dialect.translate, value, event or None), source, start, stop)
        return None

    def _value(self, text: str) -> dict[str, Any] | None:
        depth = min(self._depth, payload.MAX_DEPTH)
        rule = rules.NOT_JSON
        try:
            if text.count("{") + text.count("[") > depth:
                status = _Walk(text.encode(), _ENVELOPE.root, depth).status
                if status == _DEEP:
                    rule = rules.TOO_DEEP
                if status != _OK:
                    raise ValueError
            value = payload.loads(text)
            if type(value) is dict:
                return value
            rule = rules.NOT_OBJECT
        except ValueError:
            pass
        except RecursionError:
            rule = rules.TOO_DEEP
        self._record(rule)
        return None

    def _fit(self, form: Form, value: dict[str, Any]) -> tuple[str, int, int, int, int] | None:
        """The fragment, index, call and token counts (-1: none) of a payload that has this form."""
        paths = self._paths
        content = _look_up(value, paths[form.content])
        if type(content) is not str or not content or (not content.isascii() and _HALF.search(content)):
            return None
        for leaf, constant in form.when:
            found = _look_up(value, paths[leaf])
            if found != constant or type(found) is not type(constant):
                return None
        for leaf in form.absent:
            found = _look_up(value, paths[leaf])
            if found is not None and found is not _MISSING:
                return None
        for leaf in form.empty:
            found = _look_up(value, paths[leaf])
            if found is not None and found is not _MISSING and found != "":
                return None
        numbers = []
        for leaf in (form.index, form.call):
            found = 0 if leaf < 0 else _look_up(value, paths[leaf])
            if found is _MISSING:
                found = 0
            if type(found) is not int or not 0 <= found <= rules.MAX_INTEGER:
                return None
            numbers.append(found)
        leaves = (form.input_tokens, form.output_tokens)
        counts = [_MISSING if leaf < 0 else _look_up(value, paths[leaf]) for leaf in leaves]
        if counts == [_MISSING, _MISSING]:
            return (content, numbers[0], numbers[1], -1, -1)
        for found in counts:
            if type(found) is not int or not 0 <= found <= rules.MAX_INTEGER:
                return None
        return (content, numbers[0], numbers[1], counts[0], counts[1])

    def _yield_form(
        self, form: Form, found: tuple[str, int, int, int, int], source: bytes, start: int, stop: int
    ) -> None:
        content, index, call, input_tokens, output_tokens = found
        if index != self._index:
            self._index = index
            self._dialect.touch(index)
        if form.kind == "arguments":
            self._dialect.append_arguments(index, call, content)
            self._drain()
        else:
            text, reasoning = (content, None) if form.kind == "text" else ("", content)
            place = (source, start, stop, self._next_seq, None)
            self._out.append(_new(ContentDelta, (*place, text, index, "assistant", reasoning)))
            self._next_seq += 1
        if input_tokens >= 0:
            self._usage = _new(Usage, (source, start, stop, self._next_seq, None, input_tokens, output_tokens))
            self._out.append(self._usage)
            self._next_seq += 1
            self._untold = True

    def _call(self, method: Callable[..., Any], *arguments: Any) -> list[Any]:
        """A dialect's answer. What it cannot make sense of is a violation, never an exception."""
        if self._untold and self._usage is not None:
            # The dialect learns of token counts that its forms have read once it has to know.
            self._untold = False
            self._dialect.counted(self._usage.input_tokens, self._usage.output_tokens)
        try:
            events = list(method(*arguments))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            events = []
            self._record(rules.BAD_PAYLOAD)
        self._drain()
        return events

    def _drain(self) -> None:
        reports = self._dialect.reports
        if reports:
            self._dialect.reports = []
            for rule in reports:
                self._record(rule)

    def _accept(self, events: list[Any], source: bytes, start: int, stop: int) -> None:
        """Numbers a dialect's events and takes note of what they say."""
        for event in events:
            if self._state == "ended":
                break
            kind = type(event)
            made = _new(kind, (source, start, stop, self._next_seq, *event._fields[4:]))
            self._next_seq += 1
            self._out.append(made)
            if kind is StreamStart:
                self._started = True
            elif kind is Usage:
                self._usage = made
            elif kind is StreamError:
                if self._error is None:
                    self._error = made
            elif kind is StreamEnd:
                self._state = "ended"
                self._complete = not self._in_tail

    # Telling a dialect (auto)

    def _detect(self, event: str | None, framed: bool, source: bytes, start: int, stop: int) -> None:
        data = source[start:stop]
        self._pending.append((self._number, self._offset, event, framed, data))
        self._number += 1
        if self._undecided:
            self._hand_out_unknown()
            return
        self._pending_size += len(data)
        found = self._dialect.detect(event or None, data)
        if found is not None:
            self._take(None if found == "llm-stream" else found)
            self._replay()
        elif len(self._pending) >= MAX_PENDING or self._pending_size > MAX_PENDING_SIZE:
            self._give_up()

    def _replay(self) -> None:
        pending, self._pending = self._pending, []
        number = self._number
        for self._number, offset, event, framed, data in pending:
            self._payload(offset, event, framed, data, 0, len(data))
        self._number = number

    def _give_up(self) -> None:
        """No dialect fits: everything is handed out as it is."""
        if not self._undecided:
            self._undecided = True
            self._record(rules.UNKNOWN_DIALECT, ", ".join(self._dialect.candidates))
        self._hand_out_unknown()

    def _hand_out_unknown(self) -> None:
        pending, self._pending = self._pending, []
        for _, _, event, _, data in pending:
            self._out.append(_new(UnknownEvent, (data, 0, len(data), self._next_seq, None, event or "")))
            self._next_seq += 1

    # The end

    def _tail(self) -> None:
        block = self._framer.close()
        if block is None:
            return
        self._offset = block.offset
        data = block.source[block.start : block.stop]
        mark = None if self._dialect is None else self._dialect.end_mark
        text = data.decode("utf-8", "replace")
        whole = (mark is not None and text == mark) or _read_envelope(text, self._depth)[0] == _OK
        if self._strict or not whole:
            self._record(rules.TAIL_DROPPED)
            return
        self._record(rules.TAIL_DELIVERED)
        was_complete = self._dialect is not None and self._dialect.complete
        self._in_tail = True
        self._block(block)
        if was_complete:
            self._in_tail = False

    def _stray(self) -> None:
        """A JSON body outside the framing, which may be the error that explains the rest."""
        stray = self._framer.stray
        if not stray:
            return
        self._offset = self._framer.offset
        try:
            value = payload.loads(stray.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return
        self._record(rules.STRAY_BYTES)
        if self._state != "ended":
            data = bytes(stray).rstrip()
            self._accept(_registry.bare(self._dialect, value), data, 0, len(data))
            self._settle()

    def _finish(self) -> None:
        if self._state == "ended":
            return
        if self._error is None:
            self._record(rules.NOT_ENDED)
        elif self._dialect is None:
            self._record(rules.END_AFTER_ERROR_MISSING)

    # Shapes

    def _match(self, chunk: bytes, at: int) -> int:
        """Reads the events from ``at`` on by learned shapes; returns the place after the last one, or 0."""
        if not self._shapes or self._detecting:
            return 0
        if self._dialect is None:
            if self._state != "streaming":
                return 0
        elif not self._started or self._state == "ended":
            return 0
        if self._misses >= 8:
            self._tries += 1
            if self._tries & 7:
                return 0
        begin, size = at, len(chunk)
        while at < size:
            for shape in self._shapes:
                after = self._apply(shape, chunk, at)
                if after:
                    break
            else:
                break
            at = after
            self._hits += 1
            self._misses >>= 1
            if shape is not self._shapes[0]:
                self._shapes.remove(shape)
                self._shapes.insert(0, shape)
        return at if at > begin else 0

    def _apply(self, shape: _Shape, chunk: bytes, at: int) -> int:
        begin = at
        index, call = max(self._index, 0), 0
        foretold = shape.foretold
        if not foretold:
            lead = shape.lead % ()
            index = 0
        elif foretold == _SEQ_AND_INDEX:
            lead = shape.lead % (self._next_seq, index)
        else:
            lead = shape.lead % tuple(self._next_seq if kind == _SEQ else index for kind in foretold)
        if not chunk.startswith(lead, at):
            if _INDEX not in foretold:
                return 0
            # Perhaps another block than last time.
            found = self._other_index(shape, chunk, at)
            if found is None:
                return 0
            index, lead = found
        elif _INDEX not in foretold:
            index = 0
        at += len(lead)
        content = ""
        input_tokens = output_tokens = -1
        for kind, literal in shape.program:
            if kind <= _ARGUMENTS or kind == _ANY_STRING:
                stop = chunk.find(b'"', at)
                text: str | None = None
                if stop >= 0:
                    body = chunk[at:stop]
                    if body.isascii() and b"\\" not in body:
                        text = body.decode("ascii")
                        if not text.isprintable() and _CONTROL.search(text):
                            return 0
                        at = stop
                    else:
                        text, at = _string_slot(chunk, at)
                if text is None:
                    return 0
                if kind != _ANY_STRING:
                    content = text
            elif kind == _ANY_NUMBER:
                number = _NUMBER.match(chunk, at)
                if number is None:
                    return 0
                at = number.end()
            elif kind == _PADDING:
                at = _PAD.match(chunk, at).end()  # type: ignore[union-attr]
            elif kind == _SEQ:
                digits = b"%d" % self._next_seq
                if not chunk.startswith(digits, at):
                    return 0
                at += len(digits)
            else:
                number = _DIGITS.match(chunk, at)
                if number is None:
                    return 0
                at = number.end()
                if kind == _INDEX:
                    index = int(number[0])
                elif kind == _CALL:
                    call = int(number[0])
                elif kind == _INPUT:
                    input_tokens = int(number[0])
                else:
                    output_tokens = int(number[0])
            if not chunk.startswith(literal, at):
                return 0
            at += len(literal)
        if at - begin > self._framer.max_event_size:
            return 0
        start, stop = begin + shape.data_at, at - shape.after_data
        form = shape.form
        if form is True:
            seq = self._next_seq
            if seq > rules.MAX_SEQUENCE or self._blocks.get(index) is not False:
                return 0
            self._index = index
            event = ContentDelta.__new__(ContentDelta)
            _set_fields(event, (chunk, start, stop, seq, True, content, index, "assistant", None))
            self._out.append(event)
            self._next_seq = seq + 1
            self._unread = 0
        elif not content:
            return 0
        else:
            self._offset = self._framer.base + begin
            self._yield_form(form, (content, index, call, input_tokens, output_tokens), chunk, start, stop)
        self._number += 1
        return at

    def _other_index(self, shape: _Shape, chunk: bytes, at: int) -> tuple[int, bytes] | None:
        """The index that stands in the lead, if the rest of the lead is as foretold."""
        before = shape.lead.split(b"%d")[: shape.foretold.index(_INDEX) + 1]
        prefix = b"%d".join(before) % ((self._next_seq,) * (len(before) - 1))
        if not chunk.startswith(prefix, at):
            return None
        digits = _DIGITS.match(chunk, at + len(prefix))
        if digits is None:
            return None
        index = int(digits[0])
        lead = shape.lead % tuple(self._next_seq if kind == _SEQ else index for kind in shape.foretold)
        return (index, lead) if chunk.startswith(lead, at) else None

    def _remember(self, form: Form | Literal[True], block: _Block, missed: int) -> None:
        """Learns the shape of an event that the careful path has just read without a violation."""
        self._misses += 1
        if missed >= 8 and self._number & 63:
            return
        data = block.source[block.start : block.stop]
        walk = _Walk(data, self._root, payload.MAX_DEPTH)
        if walk.status != _OK or walk.repeated:
            return
        if form is True:
            slots = {_SEQ_LEAF: _SEQ, _INDEX_LEAF: _INDEX, _TEXT_LEAF: _TEXT}
        else:
            slots = {form.content: _CONTENT[form.kind]}
            for leaf, kind in (
                (form.index, _INDEX),
                (form.call, _CALL),
                (form.input_tokens, _INPUT),
                (form.output_tokens, _OUTPUT),
            ):
                if leaf >= 0:
                    slots[leaf] = kind
        event = block.source[block.begin : block.end]
        shape = _learn(form, event, block.start - block.begin, block.stop - block.begin, walk, slots)
        if shape is None:
            return
        for known in self._shapes:
            if known.widen(shape):
                return
        self._shapes.insert(0, shape)
        del self._shapes[MAX_SHAPES:]
