"""The engine in Python: framing, envelopes, learned shapes, events.

Twin of ``_parser.pyx``: the same names in the same order and the same behaviour to the byte. Where the extension walks
bytes, this twin leans on what is fast in Python: ``bytes.find``, ``split`` and the standard JSON reader.
"""

from __future__ import annotations

from _thread import allocate_lock

from . import _registry, fields, payload, rules
from ._envelope_py import (
    _DEEP,
    _ENVELOPE,
    _HALF,
    _INDEX_LEAF,
    _INVALID,
    _KINDS,
    _MISSING,
    _OK,
    _SEQ_LEAF,
    _TEXT_LEAF,
    _UNKNOWN,
    _gather,
    _integer,
    _read_delta,
    _read_envelope,
    _read_payload,
    _Walk,
)
from ._events_py import (
    _EVENT_CLASSES,
    ContentDelta,
    ContentStop,
    Event,
    ServerSentEvent,
    StreamEnd,
    StreamError,
    StreamStart,
    ToolCall,
    UnknownEvent,
    Usage,
    Violation,
    _new,
    _rebuild,
    final,
)
from ._framing_py import (
    _BOM,
    DEFAULT_MAX_EVENT_SIZE,
    SSEDecoder,
    _as_bytes,
    _Block,
    _errors,
    _Framer,
    _message,
    _size,
    _words,
)
from ._json_py import _reader
from ._shapes_py import (
    _ANY_STRING,
    _CALL,
    _CONTENT,
    _INDEX,
    _INPUT,
    _OUTPUT,
    _SEQ,
    _TEXT,
    MAX_SHAPES,
    WINDOW,
    _beyond_ascii,
    _last_end,
    _learn,
    _Shape,
)
from .declaration import declare
from .errors import EventTooLargeError, SSEError, UpstreamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from ._framing_py import Buffer
    from .declaration import Form, Node
    from .errors import LLMStreamError

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
    "_rebuild",
    "implementation",
]

implementation = "python"

DEFAULT_MAX_DEPTH = 4096
MAX_BLANKS = 1024
MANY_EVENTS = 4  # of one payload: they share a copy of it, lest each that is detached makes its own
MAX_SWITCHES = 4  # a dialect found may itself have to find out which
MAX_PENDING = 64
MAX_PENDING_SIZE = 64 * 1024


_EVENT_KINDS = frozenset(_EVENT_CLASSES.values())


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
    What a dialect or its framing raises is a violation; any other exception, as an interrupt, closes the parser.
    """

    __slots__ = (
        "_after_end",
        "_alternatives",
        "_blocks",
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
        "_framing_failed",
        "_framing_threw",
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
        "_switches",
        "_too_many",
        "_torn",
        "_tries",
        "_turn",
        "_undecided",
        "_unread",
        "_untold",
        "_usage",
        "_usage_count",
        "_use_shapes",
        "_violation_count",
        "_violations",
        "_window",
        "_window_at",
        "_window_of",
        "_window_stop",
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
        if hasattr(self, "_framer"):
            raise TypeError("a parser cannot be initialised twice")
        self._framer = _Framer(_size("max_event_size", max_event_size))
        self._framer.watch_stray = True
        self._depth = _size("max_depth", max_depth)
        self._errors_strict = _errors(errors)
        self._strict = bool(strict)
        self._use_shapes = bool(shapes)
        self._shapes: list[_Shape] = []
        self._hits = self._misses = self._tries = 0
        self._out: list[Any] = []
        self._turn = allocate_lock()  # held while it is fed
        self._closed = self._complete = self._in_tail = self._started = False
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
        self._usage_count = 0
        self._error: StreamError | None = None
        self._violations: list[Violation] = []
        self._violation_count = self._error_count = 0
        self._gaps: list[tuple[int, int]] = []
        self._framing: Any = None
        self._framing_at = 0  # where its first byte lies in the stream
        self._framing_failed = False
        self._framing_threw = False  # what a framing of others throws is the last that is read of it
        self._pending: list[tuple[int, int, str | None, bool, bytes]] = []
        self._pending_size = 0
        self._undecided = self._untold = False
        self._switches = 0
        self._torn = False  # whether the bytes ended within something that no event tells
        self._index = -1
        self._head: bytes | None = None
        self._window = ""  # what shapes are compared with: a part of _window_of, from _window_at on
        self._window_at = self._window_stop = 0
        self._window_of: bytes | None = None
        self._take(_registry.resolve(dialect))
        if self._dialect is not None and self._dialect.framings:
            self._head = b""

    def _take(self, dialect: Any) -> None:
        self._dialect = dialect
        self._detecting = dialect is not None and hasattr(dialect, "detect")
        self._alternatives = dialect is not None and bool(dialect.alternatives)
        declared = _ENVELOPE if dialect is None else declare(dialect.deltas)
        self._root: Node = declared.root
        self._paths = declared.paths
        self._forms: list[Form] = declared.forms

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a parser cannot be copied or pickled")

    # What a parser knows

    @property
    def dialect(self) -> str:
        """The name of the dialect; of the one found, once ``auto`` has decided."""
        return "llm-stream" if self._dialect is None else self._dialect.name

    @property
    def alternatives(self) -> bool:
        """Whether an index counts alternative answers, of which number 0 is the primary one, and not blocks of one."""
        return self._alternatives

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
    def usage_count(self) -> int:
        """How many times token counts were given."""
        return self._usage_count

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
        data = chunk if type(chunk) is bytes else _as_bytes(chunk)
        self._begin()
        try:
            if self._head is not None:
                data = self._sniff(data)
            self._bytes(data)
            return self._take_out()
        except BaseException:
            self._abandon()
            raise
        finally:
            self._turn.release()

    def feed_payload(self, data: Buffer, event: str | None = None) -> list[Event]:
        """The events of one payload that came without SSE around it; ``event`` names it where its framing does."""
        source = _as_bytes(data)
        if event is not None:
            event = fields.text("event", event)
        self._begin()
        try:
            if self._framer.carried:
                self._framer.uncarry()
            self._frame(event, source, self._framer.offset)
            self._framer.offset += len(source)
            return self._take_out()
        except BaseException:
            self._abandon()
            raise
        finally:
            self._turn.release()

    def feed_text(self, chunk: Buffer) -> str:
        """Only the text of this chunk: of the primary answer, in order of arrival."""
        return self._text_of(self.feed(chunk))

    def feed_summary(self, chunk: Buffer) -> tuple[str, int, list[Event]]:
        """As ``feed``, with the fragments of this chunk put together: its text as ``feed_text`` gives it, how many
        ContentDeltas there were, and the events of other kinds, but no Usage, of which ``usage`` is the last."""
        return self._summary_of(self.feed(chunk))

    def close(self) -> list[Event]:
        """Ends the stream and returns the events that were due. Idempotent. In strict mode a stream that is cut raises
        IncompleteStreamError."""
        if self._closed:
            return []
        self._begin()
        try:
            self._seq = None
            head, self._head = self._head, None
            if head is not None:
                self._framer.begin_at(self._framing_at)
                self._bytes(head)
            self._tail()
            self._close_framing()
            in_band = self._error is not None
            self._stray()
            self._offset = self._framer.offset
            if self._detecting and self._error is None:
                self._give_up()
            if self._dialect is not None and not self._detecting:
                self._accept(self._call(self._dialect.finish, False), b"", 0, 0)
            self._finish(in_band)
            self._closed = True
            return self._take_out()
        except BaseException:
            self._abandon()
            raise
        finally:
            self._turn.release()

    def _begin(self) -> None:
        # One step, as a test and a mark are not where threads run at the same time.
        if not self._turn.acquire(False):
            raise RuntimeError("the parser is being fed already")
        if self._closed:
            self._turn.release()
            raise ValueError("the parser is closed")

    def _abandon(self) -> None:
        """After an exception nothing more is read: strict ends so, and what an interrupt broke off is lost."""
        self._closed = True
        if self._out:
            self._out = []
            self._complete = False

    def _take_out(self) -> list[Any]:
        out, self._out = self._out, []
        return out

    def _text_of(self, events: list[Any]) -> str:
        primary = self._alternatives
        texts = [e._fields[5] for e in events if type(e) is ContentDelta and not (primary and e._fields[6])]
        return "".join(texts)

    def _summary_of(self, events: list[Event]) -> tuple[str, int, list[Event]]:
        """Events as ``feed_summary`` tells them."""
        others = [event for event in events if type(event) is not ContentDelta and type(event) is not Usage]
        count = sum(type(event) is ContentDelta for event in events)
        return self._text_of(events), count, others

    def _bytes(self, data: bytes) -> None:
        if self._framing is not None or self._framing_threw:
            if not self._framing_threw:
                self._frames(lambda: self._framing.feed(data))
            self._framer.offset += len(data)
            return
        if not self._use_shapes:
            for block in self._framer.feed(data):
                self._block(block)
            return
        self._framer.carries = bool(self._shapes) and self._misses < 64
        try:
            for block in self._framer.feed(data, self._match):
                self._block(block)
        finally:
            self._window, self._window_of = "", None

    def _sniff(self, data: bytes) -> bytes:
        """Tells the framing by the first byte that is no blank. Blank lines before it mean nothing in any framing;
        blanks before it on its line are held, since in SSE they do."""
        head = (self._head or b"") + data
        if not self._framing_at and len(head) < 3 and _BOM.startswith(head):
            self._head = head
            return b""
        at = 3 if not self._framing_at and head.startswith(_BOM) else 0
        body = head[at:].lstrip(b" \t\r\n")
        first = len(head) - len(body)
        line = max(head.rfind(b"\n", 0, first), head.rfind(b"\r", 0, first)) + 1 or at
        self._framing_at += line
        if not body and len(head) - line <= MAX_BLANKS:
            self._head = head[line:]
            return b""
        self._head = None
        factory = self._dialect.framings.get(body[0]) if body else None
        if factory is None:
            self._framer.begin_at(self._framing_at)
            return head[line:]
        self._framing_at += first - line
        self._framer.offset = self._framing_at
        try:
            self._framing = factory(self._framer.max_event_size)
        except Exception:  # noqa: BLE001 (a framing may be the code of others)
            self._framing_thrown()
        return body

    def _frames(self, read: Callable[[], Any]) -> None:
        too_large: EventTooLargeError | None = None
        try:
            frames = read()
        except EventTooLargeError as error:
            frames, too_large = error.events, error
        except Exception:  # noqa: BLE001 (a framing may be the code of others)
            self._framing_thrown()
            return
        framing = self._framing
        reports, framing.reports = framing.reports, []
        at = 0
        for frame in frames:
            # Between the frames around it, however the chunks were cut.
            while at < len(reports) and reports[at][0] < frame.offset:
                self._framing_fault(rules.FRAMING, *reports[at])
                at += 1
            self._frame(frame.event, frame.data, self._framing_at + frame.offset)
        for offset, reason in reports[at:]:
            self._framing_fault(rules.FRAMING, offset, reason)
        if too_large is not None:
            self._framing_failed = True
            self._offset = self._framing_at + (too_large.offset or 0)
            self._seq = None
            if self._state == "ended":
                self._ended()
            else:
                self._record(rules.TOO_LARGE, self._framer.max_event_size)
            self._number += 1
        elif framing.broken and not self._framing_failed:
            self._framing_failed = True
            self._framing_fault(rules.FRAMING, framing.fault_offset, framing.reason)

    def _framing_thrown(self) -> None:
        self._framing_failed = self._framing_threw = True
        self._framing_fault(rules.FRAMING, self._framer.offset - self._framing_at, "its reader failed")

    def _framing_fault(self, rule: int, offset: int, reason: str) -> None:
        self._offset = self._framing_at + offset
        self._seq = None
        self._record(rule, reason)

    def _close_framing(self) -> None:
        if self._framing_threw:
            self._torn = True
        if self._framing is None or self._framing_threw:
            return
        self._frames(self._framing.close)
        self._torn = self._framing_failed or self._framing.unfinished
        if self._framing.unfinished and not self._framing_failed:
            self._framing_fault(rules.FRAME_CUT, self._framing.fault_offset, self._framing.reason)

    def _frame(self, event: str | None, data: bytes, offset: int) -> None:
        self._payload(offset, event, False, data, 0, len(data))

    def _block(self, block: _Block) -> None:
        if block.too_large:
            self._offset = block.offset
            self._seq = None
            if self._state == "ended":
                self._ended()
            else:
                self._record(rules.TOO_LARGE, self._framer.max_event_size)
                self._unread += 1
            self._settle()
            self._number += 1
            return
        learn: Form | Literal[True] | None = True
        if self._dialect is not None or block.event != b"content.delta" or not self._usual_delta(block):
            name = block.event.decode("utf-8", "replace")
            learn = self._payload(block.offset, name, True, block.source, block.start, block.stop)
        if learn is not None and block.begin >= 0 and self._use_shapes:
            self._misses += 1
            if self._misses <= 8 or not self._number & 63:
                self._remember(learn, block)

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
        if self._strict:
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
        halves = "\\u" in text and payload.without_lone_surrogates(text)[1]
        if repeated:
            self._record(rules.DUPLICATE_KEY)
        if halves:
            self._record(rules.LONE_SURROGATE)
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
            self._usage_count += 1
        elif kind == 5 and self._error is None:
            self._error = made
        elif kind == 6:
            self._at_end()
        return True if kind == 1 else None

    def _usual_delta(self, block: _Block) -> bool:
        """Delivers a content.delta in which all is as it should be, which is most of them; else changes nothing."""
        seq = self._next_seq
        if self._state != "streaming" or seq > rules.MAX_SEQUENCE:
            return False
        try:
            text = block.source[block.start : block.stop].decode()
        except UnicodeDecodeError:
            return False
        value = _read_delta(text, self._depth)
        if value is None or ("\\" in text and payload.without_lone_surrogates(text)[1]):
            return False
        try:
            content, index, found = value["delta"]["text"], value["index"], value["seq"]
            if (
                type(content) is not str
                or type(found) is not int
                or found != seq
                or type(index) is not int
                or self._blocks.get(index) is not False
                or value["type"] != "content.delta"
                or value["v"] != "1.0"
                or value["role"] != "assistant"
            ):
                return False
        except (KeyError, TypeError):
            return False
        self._offset, self._seq = block.offset, seq
        self._next_seq = seq + 1
        self._unread = 0
        self._number += 1
        event = ContentDelta.__new__(ContentDelta)
        event._fields = (block.source, block.start, block.stop, seq, True, content, index, "assistant", None)
        self._out.append(event)
        return True

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
            # A long id is not kept for the sake of this check.
            key = call_id if len(call_id) <= 256 else str(hash(call_id))
            if key in self._call_ids:
                self._record(rules.REPEATED_CALL_ID)
            elif self._room(len(self._call_ids)):
                self._call_ids.add(key)
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
            if dialect.end_mark is None or source[start:stop] != dialect.end_mark.encode():
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
        whole, halves = payload.without_lone_surrogates(text) if "\\u" in text else (text, False)
        if halves:
            self._record(rules.LONE_SURROGATE)
            value = payload.loads(whole)
        elif self._started:
            leaves = _gather(self._root, value)
            for form in self._forms:
                found = self._fit(form, leaves) if form.content in leaves else None
                if found is not None:
                    self._yield_form(form, found, source, start, stop)
                    return form
        self._index = -1  # a dialect may have closed it, and wants to be told of the next fragment
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
            value = _read_payload(text)
            if type(value) is dict:
                return value
            rule = rules.NOT_OBJECT
        except ValueError:
            pass
        except RecursionError:
            rule = rules.TOO_DEEP
        self._record(rule)
        return None

    def _fit(self, form: Form, leaves: dict[int, Any]) -> tuple[str, int, int, int, int] | None:
        """The fragment, index, call and token counts (-1: none) of a payload that has this form."""
        content = leaves[form.content]
        if type(content) is not str or not content:
            return None
        for leaf, constant in form.when:
            found = leaves.get(leaf)
            if found != constant or type(found) is not type(constant):
                return None
        for leaf in form.absent:
            if leaf in leaves and (leaves[leaf] is not None or leaf in form.items):
                return None
        for leaf in form.empty:
            if leaf in leaves and leaves[leaf] is not None and leaves[leaf] != "":
                return None
        index, call = leaves.get(form.index, 0), leaves.get(form.call, 0)
        if type(index) is not int or type(call) is not int or index < 0 or call < 0:
            return None
        if index > rules.MAX_INTEGER or call > rules.MAX_INTEGER:
            return None
        if form.input_tokens not in leaves and form.output_tokens not in leaves:
            return (content, index, call, -1, -1)
        counts: list[Any] = [leaves.get(form.input_tokens), leaves.get(form.output_tokens)]
        for found in counts:
            if type(found) is not int or not 0 <= found <= rules.MAX_INTEGER:
                return None
        return (content, index, call, counts[0], counts[1])

    def _yield_form(
        self, form: Form, found: tuple[str, int, int, int, int], source: bytes, start: int, stop: int
    ) -> None:
        content, index, call, input_tokens, output_tokens = found
        if index != self._index:
            self._index = index
            self._tell(self._dialect.touch, index)
        if form.kind == "arguments":
            self._tell(self._dialect.append_arguments, index, call, content)
        else:
            text, reasoning = (content, None) if form.kind == "text" else ("", content)
            place = (source, start, stop, self._next_seq, None)
            self._out.append(_new(ContentDelta, (*place, text, index, "assistant", reasoning)))
            self._next_seq += 1
        if input_tokens >= 0:
            self._usage = _new(Usage, (source, start, stop, self._next_seq, None, input_tokens, output_tokens))
            self._usage_count += 1
            self._out.append(self._usage)
            self._next_seq += 1
            self._untold = True

    def _call(self, method: Callable[..., Any], *arguments: Any) -> list[Any]:
        """A dialect's answer. What it cannot make sense of is a violation, never an exception."""
        if self._untold and self._usage is not None:
            # The dialect learns of token counts that its forms have read once it has to know.
            self._untold = False
            self._tell(self._dialect.counted, self._usage.input_tokens, self._usage.output_tokens)
        events: list[Any] = []
        try:
            found = list(method(*arguments))
            events = [event for event in found if type(event) in _EVENT_KINDS]
            whole = len(events) == len(found)
        except Exception:  # noqa: BLE001 (a dialect is the code of others)
            whole = False
        if not whole:
            self._record(rules.BAD_PAYLOAD)
        self._drain()
        return events

    def _tell(self, method: Callable[..., Any], *arguments: Any) -> None:
        """Hands something to a dialect that has no answer."""
        try:
            method(*arguments)
        except Exception:  # noqa: BLE001 (a dialect is the code of others)
            self._record(rules.BAD_PAYLOAD)
        self._drain()

    def _drain(self) -> None:
        if self._dialect is None:
            return
        reports = self._dialect.reports
        if reports:
            self._dialect.reports = []
            for rule in reports:
                self._record(rule if type(rule) is int and rule in rules.STREAM else rules.BAD_PAYLOAD)

    def _accept(self, events: list[Any], source: bytes, start: int, stop: int) -> None:
        """Numbers a dialect's events and takes note of what they say. The first one is a StreamStart, the only one."""
        if events and not self._started:
            start_at = next((at for at, event in enumerate(events) if type(event) is StreamStart), -1)
            events.insert(0, events.pop(start_at) if start_at >= 0 else StreamStart())
        if len(events) > MANY_EVENTS:
            source, start, stop = source[start:stop], 0, stop - start
        for event in events:
            if self._state == "ended":
                break
            kind = type(event)
            if (kind is StreamStart and self._started) or (kind is StreamEnd and self._torn):
                continue
            made = _new(kind, (source, start, stop, self._next_seq, *event._fields[4:]))
            self._next_seq += 1
            self._out.append(made)
            if kind is StreamStart:
                self._started = True
            elif kind is Usage:
                self._usage = made
                self._usage_count += 1
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
        try:
            found = self._dialect.detect(event or None, data)
        except Exception:  # noqa: BLE001 (a dialect is the code of others)
            found = None
        if found is not None and self._switches < MAX_SWITCHES:
            self._switches += 1
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
            # Where nothing came, no candidate is nearer than another.
            self._record(rules.UNKNOWN_DIALECT, ", ".join(self._dialect.candidates) if self._pending else None)
        self._hand_out_unknown()

    def _hand_out_unknown(self) -> None:
        pending, self._pending = self._pending, []
        for _, _, event, _, data in pending:
            self._out.append(_new(UnknownEvent, (data, 0, len(data), self._next_seq, None, event or "")))
            self._next_seq += 1

    # The end

    def _tail(self) -> None:
        block = self._framer.close()
        self._torn = self._framer.unfinished
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
        self._torn = False
        was_complete = self._dialect is not None and self._dialect.complete
        self._in_tail = not was_complete
        before = len(self._out)
        self._block(block)
        # Content in a tail shows that the answer went on.
        self._torn = was_complete and any(type(event) in (ContentDelta, ToolCall) for event in self._out[before:])

    def _stray(self) -> None:
        """A JSON body outside the framing, which may be the error that explains the rest."""
        stray = self._framer.stray
        if stray is not None and not stray:
            return
        self._offset = self._framer.offset
        self._record(rules.STRAY_BYTES)
        if stray is None or self._state == "ended":
            return
        try:
            value = payload.first_value(stray.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return
        data = bytes(stray).rstrip()
        events = self._call(_registry.bare, self._dialect, value)
        if self._dialect is None:
            self._started = True  # no start is made up for the draft's own stream
        self._accept(events, data, 0, len(data))
        self._settle()

    def _finish(self, in_band: bool) -> None:
        """``in_band``: whether an error came as an event; of the draft's own stream, one outside of it ends nothing."""
        if self._state == "ended":
            return
        if self._error is None or (self._dialect is None and not in_band):
            self._record(rules.NOT_ENDED)
        elif self._dialect is None:
            self._record(rules.END_AFTER_ERROR_MISSING)

    # Shapes

    def _match(self, chunk: bytes, at: int) -> int:
        """Reads the events from ``at`` on by learned shapes; returns the place after the last one, or 0."""
        if self._misses >= 8:
            # Seldom tried where it is of no use.
            self._tries += 1
            if self._tries & (7 if self._misses < 64 else 31):
                return 0
        if not self._shapes or self._detecting:
            return 0
        if self._dialect is None:
            if self._state != "streaming":
                return 0
        elif not self._started or self._state == "ended":
            return 0
        begin, size = at, len(chunk)
        while at < size:
            if self._window_of is not chunk or self._is_late(at, size):
                # No event in a window is larger than one may be.
                stop = min(at + min(WINDOW, self._framer.max_event_size), size)
                self._window = chunk[at : _last_end(chunk, at, stop)].decode("latin-1")
                self._window_at, self._window_stop, self._window_of = at, stop, chunk
            place = self._window_at + self._runs(chunk, at - self._window_at)
            if place == at:
                break
            at = place
            if not self._is_late(at, size):
                break
        return at if at > begin else 0

    def _is_late(self, at: int, size: int) -> bool:
        """Whether more of the chunk has to be looked at to read on at ``at``."""
        return self._window_stop < size and at - self._window_at > len(self._window) >> 1

    def _runs(self, chunk: bytes, at: int) -> int:
        """Reads from ``at`` in the window on; returns the place after the last event read."""
        shapes, size = self._shapes, len(self._window)
        while at < size:
            for shape in shapes:
                after = self._run(shape, chunk, at)
                if after > at:
                    if shape is not shapes[0]:
                        shapes.remove(shape)
                        shapes.insert(0, shape)
                    break
            else:
                break
            at = after
        return at

    def _run(self, shape: _Shape, chunk: bytes, at: int) -> int:
        """As ``_runs``, by one shape."""
        window, seq = self._window, self._next_seq
        head = shape.head_at(window, at, seq, max(self._index, 0))
        if head is None:
            return at
        form: Any = shape.form
        steps, numbers, before, behind = shape.steps, shape.numbers, shape.before, shape.behind
        is_draft = form is True
        if is_draft and seq + len(window) > rules.MAX_SEQUENCE:
            return at
        extensions = True if is_draft else None
        is_plain, is_thought = is_draft or form.kind != "arguments", not is_draft and form.kind == "reasoning"
        is_counted = _INPUT in shape.slots
        scan, startswith, append, new = _reader.scan_string, window.startswith, self._out.append, ContentDelta.__new__
        data_at, after_data = self._window_at + shape.data_at, self._window_at - shape.after_data
        number, count, begin = self._number, 0, at
        value: str | None
        while True:
            at += len(head)
            content = ""
            for kind, ahead, lasting, varying in steps:
                if kind:
                    try:
                        value, stop = scan(window, at, True)
                    except ValueError:
                        break
                    if not value.isascii():
                        value = _beyond_ascii(window, at, stop - 1, value)
                        if value is None:
                            break
                    if kind != _ANY_STRING:
                        content = value
                    at = stop - 1
                if startswith(ahead[0], at):
                    at += ahead[1]
                else:
                    at = shape.read_lasting(ahead, lasting, window, at)
                    if at < 0:
                        break
                if varying:
                    at = shape.read(varying, window, at, seq)
                    if at < 0:
                        break
            else:
                index, start, stop = numbers[_INDEX], begin + data_at, at + after_data
                if is_draft:
                    if index != self._index or not count:
                        if self._blocks.get(index) is not False:
                            break
                        self._index = index
                elif not content:
                    break
                if is_plain and index == self._index:
                    event = new(ContentDelta)
                    if is_thought:
                        event._fields = (chunk, start, stop, seq, None, "", index, "assistant", content)
                    else:
                        event._fields = (chunk, start, stop, seq, extensions, content, index, "assistant", None)
                    append(event)
                    seq += 1
                    if is_counted:
                        self._usage = usage = new(Usage)
                        self._usage_count += 1
                        usage._fields = (chunk, start, stop, seq, None, numbers[_INPUT], numbers[_OUTPUT])
                        append(usage)
                        seq += 1
                        self._untold = True
                else:
                    self._number, self._next_seq = number + count, seq
                    self._offset = self._framer.base + self._window_at + begin
                    found = (content, index, numbers[_CALL], numbers[_INPUT], numbers[_OUTPUT])
                    self._yield_form(shape.form, found, chunk, start, stop)
                    seq = self._next_seq
                count += 1
                begin = at
                if behind is not None:
                    head = f"{before}{seq}{behind}"
                if startswith(head, at):
                    continue
            break
        if count:
            self._next_seq = seq
            self._number = number + count
            self._hits += count
            self._misses = self._misses >> count if count < 32 else 0
            if is_draft:
                self._unread = 0
        return begin

    def _remember(self, form: Form | Literal[True], block: _Block) -> None:
        """Learns the shape of an event that the careful path has just read without a violation."""
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
