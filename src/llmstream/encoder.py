"""The producer: events to the bytes of a stream (draft, sections 5.1 to 5.4), in the strict form only.

Nothing that breaks a rule of the draft leaves an ``Encoder``: it counts the sequence numbers, refuses what the
lifecycle does not allow, and writes one ``data`` line an event, whose JSON no reader splits.
"""

from __future__ import annotations

import time

from . import fields, payload, rules, verbatim
from ._backend import (
    ContentDelta,
    ContentStop,
    Event,
    Parser,
    StreamEnd,
    StreamError,
    StreamStart,
    ToolCall,
    UnknownEvent,
    Usage,
    content_delta,
    quoted,
)
from .errors import LifecycleError, SequenceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
    from typing import Any

__all__ = ["Encoder"]

START, DELTA, STOP, CALL, USAGE, ERROR, END, UNKNOWN = range(8)
"""Columns of ``rules.LIFECYCLE``."""

_NO_BLOCK = float("nan")
"""In place of an index: it is equal to none."""

# A stream that comes to the limit can still say so, and end.
_LAST_SEQUENCE = dict.fromkeys(range(8), rules.MAX_SEQUENCE - 2)
_LAST_SEQUENCE[ERROR] = rules.MAX_SEQUENCE - 1
_LAST_SEQUENCE[END] = rules.MAX_SEQUENCE
_LAST_DELTA = _LAST_SEQUENCE[DELTA]


class Encoder:
    """Writes one stream: each method returns the bytes of one event, numbered from 0.

    ::

        encoder = llmstream.Encoder()
        yield encoder.start("model-1", request_id=request_id)
        for words in answer:
            yield encoder.delta(words)
        yield encoder.stop("end_turn")
        yield encoder.usage(42, 8)
        yield encoder.end()

    A call that breaks a rule raises, and leaves the encoder as it was: LifecycleError for an order that section 5.4
    forbids, SequenceError for a stream beyond 2^53 events (section 8.4), ValueError or TypeError for a member that
    cannot be written. Halves of surrogate pairs are refused; U+0085, U+2028 and U+2029, at which some readers split
    lines, are written as escapes. No error holds text of the stream.

    ``extensions`` are the vendor's own members (section 4.7): a mapping of what JSON can hold, with str for names at
    every depth. ``clock`` gives the Unix time for ``created``. What either raises leaves the encoder as it was, too.
    One encoder belongs to one stream; it is not for several threads at once.
    """

    __slots__ = ("_blocks", "_call_ids", "_clock", "_delta_members", "_index", "_request_id", "_seq", "_state")

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._state = "new"
        self._seq = 0
        self._blocks: dict[int, bool] = {}  # index -> whether it was stopped
        self._index: float = _NO_BLOCK  # the block that takes deltas, and what is the same in all of them
        self._delta_members = ""
        self._call_ids: set[str] = set()
        self._request_id: str | None = None

    @property
    def state(self) -> str:
        """Where the stream stands: "new", "streaming", "errored" or "ended" (``rules.LIFECYCLE``)."""
        return self._state

    @property
    def next_seq(self) -> int:
        """The sequence number of the next event."""
        return self._seq

    @property
    def open_blocks(self) -> list[int]:
        """The index of every block that has content and no stop yet."""
        return [index for index, stopped in self._blocks.items() if not stopped]

    # The events of section 5.3

    def start(
        self,
        model: str,
        *,
        created: int | None = None,
        request_id: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> bytes:
        """stream.start (5.3.1); ``created`` is by default the clock's time, ``request_id`` that of the request."""
        if created is None:
            created = int(self._clock())
        return self._start(model, created, request_id, fields.extensions(extensions))

    def delta(self, text: str, index: int = 0, *, extensions: Mapping[str, Any] | None = None) -> bytes:
        """content.delta (5.3.2): a fragment of text."""
        seq = self._seq
        if (
            (index is not self._index and (type(index) is not int or index != self._index))
            or seq > _LAST_DELTA
            or (extensions is not None and extensions != {})
        ):
            return self._delta(text, index, fields.extensions(extensions))
        try:
            found = content_delta(seq, self._delta_members, text)
        except (TypeError, ValueError):
            found = b""
        if not found:
            # Says what is wrong, or takes a subclass of str.
            return self._delta(text, index, None)
        self._seq = seq + 1
        return found

    def stop(self, stop_reason: str, index: int = 0, *, extensions: Mapping[str, Any] | None = None) -> bytes:
        """content.stop (5.3.3), once a block: "end_turn", "max_tokens", "tool_use", "content_filter"; another word is
        written as it is, and a checker will warn of it."""
        return self._stop(stop_reason, index, fields.extensions(extensions))

    def tool_call(
        self, id: str, name: str, arguments: str, index: int = 0, *, extensions: Mapping[str, Any] | None = None
    ) -> bytes:
        """tool.call (5.3.4): an ``id`` that is new in this stream, and ``arguments`` as JSON text."""
        return self._tool_call(id, name, arguments, index, fields.extensions(extensions))

    def usage(self, input_tokens: int, output_tokens: int, *, extensions: Mapping[str, Any] | None = None) -> bytes:
        """usage (5.3.5): totals so far; the last one counts."""
        return self._usage(input_tokens, output_tokens, fields.extensions(extensions))

    def error(self, code: str, message: str, *, extensions: Mapping[str, Any] | None = None) -> bytes:
        """error (5.3.6): "rate_limited", "context_length_exceeded", "content_filtered", "internal_error", "overloaded";
        another word as for ``stop``. After it come ``stop``, ``usage`` and ``end`` at most."""
        return self._error(code, message, fields.extensions(extensions))

    def end(self, request_id: str | None = None, *, extensions: Mapping[str, Any] | None = None) -> bytes:
        """stream.end (5.3.7); ``request_id`` is by default that of the start (4.6). Every block has to be stopped,
        unless an error came."""
        echoed = self._request_id if request_id is None else request_id
        return self._end(echoed, fields.extensions(extensions))

    # Around the events

    def comment(self, text: str = "") -> bytes:
        """A comment, which no reader takes for an event: to keep a connection alive, at any time."""
        if not fields.text("text", text).isprintable():
            raise ValueError("a comment must be one line without control characters")
        return f": {text}\n\n".encode()

    def keep_alive(self) -> bytes:
        """The comment "keep-alive"."""
        return b": keep-alive\n\n"

    def fail(
        self, code: str = "internal_error", message: str = "", *, model: str = "", request_id: str | None = None
    ) -> bytes:
        """What ends a stream that cannot go on, wherever it stands: error and stream.end, without what of them was
        written before; b"" after the end.

        Where the stream has not begun, a stream.start comes first, since no other event may (5.3.1); ``model`` and
        ``request_id`` are those of it. An endpoint that has sent no byte yet, ``state`` being "new", may rather answer
        with a status of HTTP that tells of the error.
        """
        # All of it before anything is written: half of an ending would be lost with the error.
        for name, value in (("code", code), ("message", message), ("model", model)):
            fields.text(name, value)
        fields.optional_text("request_id", request_id)
        if self._state == "ended":
            return b""
        begun = self.start(model, request_id=request_id) if self._state == "new" else b""
        told = b"" if self._state == "errored" else self.error(code, message)
        return begun + told + self.end()

    # Events as objects

    def encode(self, event: Event) -> bytes:
        """The bytes of an event object, as read or built, with the next number: what is read from a stream without a
        fault, written and read again is equal. An UnknownEvent keeps all its members. They and extensions go on as the
        JSON text they were, in which no number changes."""
        write = _WRITERS.get(type(event))
        if write is None:
            raise TypeError(f"an event is encoded, not {type(event).__name__}")
        return write(self, event)

    def encode_events(self, events: Iterable[Event]) -> Iterator[bytes]:
        """The bytes of each event, as they are asked for."""
        for event in events:
            yield self.encode(event)

    async def aencode_events(self, events: AsyncIterable[Event]) -> AsyncIterator[bytes]:
        """As ``encode_events``, of an asynchronous iterable."""
        async for event in events:
            yield self.encode(event)

    def _encode_start(self, event: Any) -> bytes:
        return self._start(event.model, event.created, event.request_id, _held(event))

    def _encode_delta(self, event: Any) -> bytes:
        if event.reasoning is not None:
            raise ValueError("the draft has no place for reasoning: put it into extensions")
        if event.role != "assistant":
            raise _refusal(rules.BAD_ROLE)
        extensions = _held(event)
        if extensions is None:
            return self.delta(event.text, event.index)
        return self._delta(event.text, event.index, extensions)

    def _encode_stop(self, event: Any) -> bytes:
        return self._stop(event.stop_reason, event.index, _held(event))

    def _encode_tool_call(self, event: Any) -> bytes:
        return self._tool_call(event.id, event.name, event.arguments, event.index, _held(event))

    def _encode_usage(self, event: Any) -> bytes:
        return self._usage(event.input_tokens, event.output_tokens, _held(event))

    def _encode_error(self, event: Any) -> bytes:
        return self._error(event.code, event.message, _held(event))

    def _encode_end(self, event: Any) -> bytes:
        return self._end(event.request_id, _held(event))

    def _encode_unknown(self, event: Any) -> bytes:
        self._check(UNKNOWN)
        kind = event.type
        if kind in rules.EVENT_TYPES[:UNKNOWN]:
            raise ValueError("an UnknownEvent must not have a type of the draft")
        if not kind or not kind.isprintable():
            raise ValueError("type must be one line without control characters")
        members = [b",%b:%b" % (quoted(name), payload.one_line(text)) for name, text in _members(event).items()]
        found = self._write(UNKNOWN, b"".join(members), None, kind)
        self._took(UNKNOWN)
        return found

    # One event each: what is refused, then the bytes, then what is remembered

    def _start(self, model: str, created: int, request_id: str | None, extensions: str | None) -> bytes:
        self._check(START)
        echoed = b"" if request_id is None else b',"request_id":%b' % _text("request_id", request_id)
        name, time_created = _text("model", model), fields.integer("created", created)
        found = self._write(START, b'%b,"model":%b,"created":%d' % (echoed, name, time_created), extensions)
        self._request_id = request_id
        self._took(START)
        return found

    def _delta(self, text: str, index: int, extensions: str | None) -> bytes:
        self._check(DELTA)
        index = fields.integer("index", index)
        self._check_open(index)
        members = f',"type":"content.delta","index":{index},"role":"assistant","delta":{{"text":'
        found = content_delta(self._seq, members, fields.text("text", text))
        if extensions is not None:
            found = b"%b%b}\n\n" % (found[: -len(b"}\n\n")], _extensions_member(extensions))
        self._blocks[index] = False
        self._index, self._delta_members = index, members
        self._took(DELTA)
        return found

    def _stop(self, stop_reason: str, index: int, extensions: str | None) -> bytes:
        self._check(STOP)
        index = fields.integer("index", index)
        if self._blocks.get(index):
            raise _refusal(rules.SECOND_STOP, STOP)
        self._check_room(index)
        members = b',"index":%d,"stop_reason":%b' % (index, _text("stop_reason", stop_reason))
        found = self._write(STOP, members, extensions)
        self._blocks[index] = True
        self._index = _NO_BLOCK
        self._took(STOP)
        return found

    def _tool_call(self, id: str, name: str, arguments: str, index: int, extensions: str | None) -> bytes:
        self._check(CALL)
        index = fields.integer("index", index)
        self._check_open(index)
        words = _text("id", id), _text("name", name), _text("arguments", arguments)
        if id in self._call_ids:
            raise _refusal(rules.REPEATED_CALL_ID, CALL)
        if len(self._call_ids) >= rules.MAX_BLOCKS:
            raise _refusal(rules.TOO_MANY_BLOCKS, CALL)
        _check_arguments(arguments)
        members = b',"index":%d,"id":%b,"name":%b,"arguments":%b' % (index, *words)
        found = self._write(CALL, members, extensions)
        self._blocks[index] = False
        self._call_ids.add(id)
        self._took(CALL)
        return found

    def _usage(self, input_tokens: int, output_tokens: int, extensions: str | None) -> bytes:
        self._check(USAGE)
        counts = fields.integer("input_tokens", input_tokens), fields.integer("output_tokens", output_tokens)
        found = self._write(USAGE, b',"input_tokens":%d,"output_tokens":%d' % counts, extensions)
        self._took(USAGE)
        return found

    def _error(self, code: str, message: str, extensions: str | None) -> bytes:
        self._check(ERROR)
        members = b',"code":%b,"message":%b' % (_text("code", code), _text("message", message))
        found = self._write(ERROR, members, extensions)
        self._took(ERROR)
        return found

    def _end(self, request_id: str | None, extensions: str | None) -> bytes:
        self._check(END)
        if self._state != "errored" and self.open_blocks:
            raise _refusal(rules.BLOCK_NOT_STOPPED, END)
        if request_id is not None and self._request_id is not None and request_id != self._request_id:
            raise _refusal(rules.REQUEST_ID_DIFFERS, END)
        members = b"" if request_id is None else b',"request_id":%b' % _text("request_id", request_id)
        found = self._write(END, members, extensions)
        self._took(END)
        return found

    # Rules

    def _check(self, kind: int) -> None:
        """Raises where section 5.4 does not allow an event of this kind now, or there is no number left for it."""
        broken = rules.LIFECYCLE[self._state][kind][1]
        if broken:
            raise _refusal(broken, kind)
        if self._seq > _LAST_SEQUENCE[kind]:
            raise _refusal(rules.SEQUENCE_TOO_HIGH, kind)

    def _check_open(self, index: int) -> None:
        if self._blocks.get(index):
            raise _refusal(rules.DELTA_AFTER_STOP)
        self._check_room(index)

    def _check_room(self, index: int) -> None:
        if index not in self._blocks and len(self._blocks) >= rules.MAX_BLOCKS:
            raise _refusal(rules.TOO_MANY_BLOCKS)

    def _took(self, kind: int) -> None:
        """An event was written."""
        self._state = rules.LIFECYCLE[self._state][kind][0]
        self._seq += 1
        if self._state != "streaming":
            self._index = _NO_BLOCK

    def _write(self, kind: int, members: bytes, extensions: str | None, name: str = "") -> bytes:
        name = name or rules.EVENT_TYPES[kind]
        more = b"" if extensions is None else _extensions_member(extensions)
        return b'event: %b\ndata: {"v":"1.0","seq":%d,"type":%b%b%b}\n\n' % (
            name.encode(),
            self._seq,
            quoted(name),
            members,
            more,
        )


_WRITERS: dict[type[Event], Callable[[Encoder, Any], bytes]] = {
    StreamStart: Encoder._encode_start,
    ContentDelta: Encoder._encode_delta,
    ContentStop: Encoder._encode_stop,
    ToolCall: Encoder._encode_tool_call,
    Usage: Encoder._encode_usage,
    StreamError: Encoder._encode_error,
    StreamEnd: Encoder._encode_end,
    UnknownEvent: Encoder._encode_unknown,
}


def _refusal(rule: int, kind: int | None = None) -> Exception:
    """What is raised instead of breaking a rule."""
    found = rules.RULES[rule]
    what = "" if kind is None else f"{rules.EVENT_TYPES[kind]} refused: "
    words = f"{found.requirement}: {what}{found.message}"
    in_order = issubclass(found.error, (LifecycleError, SequenceError))
    return found.error(words) if in_order else ValueError(words)


def _text(name: str, value: Any) -> bytes:
    """A member that is text, as JSON."""
    return quoted(fields.text(name, value))


def _extensions_member(extensions: str) -> bytes:
    return b',"extensions":%b' % payload.one_line(extensions)


# What was read is handed on as JSON text: Python values would change a number or not hold it.


def _held(event: Event) -> str | None:
    """The extensions of an event as JSON text, None where there are none."""
    state = event.__reduce__()[1][1]  # where either twin tells the text from the place it came from
    raw, held = state[0], state[2]
    if held is not True:
        found: str | None = held
        return found
    if not fields.may_have_extensions(raw):
        return None
    found = _members_of(raw).get("extensions", "")
    return found if found.startswith("{") and found != "{}" else None


def _members(event: Event) -> dict[str, str]:
    """The members of an event of an unknown type besides the three that an encoder writes itself."""
    raw = event.raw
    if not raw:
        held = _held(event)
        return {} if held is None else {"extensions": held}
    if not _is_object(raw):
        raise _refusal(rules.NOT_JSON, UNKNOWN)
    return {name: text for name, text in _members_of(raw).items() if name not in ("v", "seq", "type")}


def _members_of(raw: bytes) -> dict[str, str]:
    return verbatim.members(payload.without_lone_surrogates(raw.decode("utf-8", "replace"))[0])


def _is_object(raw: bytes) -> bool:
    try:
        return isinstance(payload.loads(raw.decode("utf-8", "replace")), dict)
    except ValueError:
        return False
    except RecursionError:
        pass
    # Too deep for Python's reader; not for ours.
    return bool(Parser(max_event_size=len(raw) + 1).feed_payload(raw))


def _check_arguments(text: str) -> None:
    """Raises where a parser would report that the arguments of a tool call are not JSON text."""
    if payload.is_json(text):
        return
    # How deep Python's reader goes is another matter in each version; ours has a bound of its own.
    envelope = b'{"type":"tool.call","arguments":%b}' % quoted(str(text))
    size = len(envelope) + 1
    if _has_arguments(Parser(max_event_size=size), envelope):
        return
    if _has_arguments(Parser(max_event_size=size, max_depth=size), envelope):
        raise ValueError("arguments are nested too deeply")
    raise _refusal(rules.ARGUMENTS_NOT_JSON, CALL)


def _has_arguments(parser: Parser, envelope: bytes) -> bool:
    parser.feed_payload(envelope)
    requirement = rules.RULES[rules.ARGUMENTS_NOT_JSON].requirement
    return not any(violation.requirement == requirement for violation in parser.violations)
