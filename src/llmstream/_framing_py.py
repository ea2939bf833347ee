"""Framing: bytes to blocks (WHATWG HTML, section 9.2.6), and SSEDecoder. Part of the Python twin; twin of
``_framing.pxi``."""

from __future__ import annotations

from _thread import allocate_lock

from . import fields, rules
from ._events_py import ServerSentEvent, final
from ._json_py import _Pattern, _prepare
from .errors import EventTooLargeError, SSEError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias

    Buffer: TypeAlias = bytes | bytearray | memoryview

DEFAULT_MAX_EVENT_SIZE = 16 * 2**20
MAX_RETRY = 2**63 - 1
MAX_STRAY = 64 * 1024
MAX_CARRIED = 4096


class _Block:
    """One event of the framing: its data is ``source[start:stop]``."""

    # Where the whole event lies in source when a shape may be learned from it.
    begin = -1
    end = -1
    retry: int | None = None
    complete = True
    too_large = False

    def __init__(self, offset: int, event: bytes, source: bytes, start: int, stop: int) -> None:
        self.offset = offset
        self.event = event
        self.source = source
        self.start = start
        self.stop = stop


_LINE_END = _Pattern(rb"[\r\n]")
_FIRST_FIELDS = (b"data:", b"event:")
_BOM = b"\xef\xbb\xbf"


class _Framer:
    """Splits chunks into blocks. Every byte is looked at a constant number of times, whatever the chunks."""

    __slots__ = (
        "_head",
        "_held",
        "_line",
        "_name",
        "_prefix",
        "_skipping",
        "_start",
        "_swallow",
        "any_field",
        "base",
        "carried",
        "carries",
        "committed_id",
        "data",
        "data_lines",
        "dataless",
        "event",
        "fresh",
        "id",
        "max_event_size",
        "offset",
        "retry",
        "retry_of_block",
        "stray",
        "unfinished",
        "watch_stray",
    )

    def __init__(self, max_event_size: int) -> None:
        _prepare()
        self.max_event_size = max_event_size
        self.dataless = False
        self.watch_stray = False
        self.unfinished = False  # known once closed: whether an event was begun, be it by a part of a line
        self.stray: bytearray | None = bytearray()
        self.retry: int | None = None
        self.id = b""
        self.committed_id = b""
        self.offset = 0  # of the next chunk's first byte
        self.base = 0  # of this chunk's
        self._head: bytes | None = b""  # what may be a BOM, until that is known
        self.carries = False
        self.carried = b""  # the begin of an event, to be read with the next chunk where this is of use (carries)
        self._swallow = False
        self._skipping = False
        self._line = bytearray()
        self._start = 0
        self._prefix = b"\n"  # what the last usual block had before its data; its name
        self._name = b""
        self._reset()

    def _reset(self) -> None:
        self.fresh = True
        self.event = b""
        self.any_field = False
        self.data = bytearray()
        self.data_lines = 0
        self.retry_of_block: int | None = None
        self._held = 0

    def feed(self, chunk: bytes, match: Callable[[bytes, int], int] | None = None) -> Iterable[_Block]:
        """The blocks of a chunk. ``match`` may read events by itself where one begins: it returns the place after
        them, or 0."""
        base = self.offset
        self.offset += len(chunk)
        at = 0
        if self._head is not None:
            joined = self._head + chunk
            if len(joined) < 3 and _BOM.startswith(joined):
                self._head = joined
                return ()
            base -= len(self._head)
            chunk = joined
            self._head = None
            at = 3 if chunk.startswith(_BOM) else 0
            self._start = base + at
        elif self.carried:
            first, at = self._joined(chunk)
            if first:
                blocks = self._part(first, 0, base + at - len(first), match)
                if blocks:
                    return self._parts(blocks, chunk, at, base, match)
        return self._part(chunk, at, base, match)

    def _part(self, chunk: bytes, at: int, base: int, match: Callable[[bytes, int], int] | None) -> Iterable[_Block]:
        """The blocks of a chunk from ``at`` on, () where ``match`` leaves none."""
        if at == len(chunk):
            return ()
        if match is not None and self.fresh and not self._swallow and not self._skipping:
            self.base = base
            self._start = base + at
            if chunk.find(b"\n\n", at) >= 0 or chunk.find(b"\n\r", at) >= 0:
                after = match(chunk, at)
                if after == len(chunk):
                    return ()
                if after:
                    at = after
                    self._start = base + at
            if self.carries and self._carry(chunk, at):
                return ()
        return self._blocks(chunk, at, base, match)

    def _parts(
        self,
        first: Iterable[_Block],
        chunk: bytes,
        at: int,
        base: int,
        match: Callable[[bytes, int], int] | None,
    ) -> Iterator[_Block]:
        yield from first
        yield from self._part(chunk, at, base, match)

    def _joined(self, chunk: bytes) -> tuple[bytes, int]:
        """What was carried with what this chunk adds to that event, and how much that is; nothing where the event does
        not end soon."""
        carried = self.carried
        joined = carried + chunk[:MAX_CARRIED]
        separator = b"\r\n\r\n" if b"\r" in joined else b"\n\n"
        end = joined.find(separator, max(len(carried) - 3, 0)) + len(separator)
        if end < len(separator):
            if len(chunk) > MAX_CARRIED:
                self.uncarry()
                return b"", 0
            end = len(joined)
        self.carried = b""
        return joined[:end], end - len(carried)

    def _blocks(self, chunk: bytes, at: int, base: int, match: Callable[[bytes, int], int] | None) -> Iterator[_Block]:
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
                cut = chunk.find(separator, at) if whole_events else -1
                if match is not None:
                    if cut < 0 and self.carries and self._carry(chunk, at):
                        break
                    after = match(chunk, at)
                    if after:
                        at = after
                        continue
                if cut < 0:
                    whole_events = False
                elif chunk[at] not in b"\r\n":
                    begin, start = at, at + len(self._prefix)
                    if cut - at > self.max_event_size:
                        whole_events = False
                    elif (
                        chunk.startswith(self._prefix, at)
                        and chunk.find(b"\n", start, cut) < 0
                        and not (has_cr and chunk.find(b"\r", start, cut) >= 0)
                    ):
                        at = cut + len(separator)
                        block = _Block(self._start, self._name, chunk, start, cut)
                        block.begin, block.end = begin, at
                        yield block
                        continue
                    else:
                        lines = chunk[at:cut].split(line_end)
                        if has_cr and not _only(line_end, chunk, at, cut, len(lines)):
                            whole_events = False
                        else:
                            at = cut + len(separator)
                            self._note(lines, line_end)
                            done = self._whole(lines, chunk, begin, cut, at)
                            if done is not None:
                                yield done
                            continue
            if has_cr:
                found = _LINE_END.search(chunk, at)
                stop = found.start() if found else -1
            else:
                stop = chunk.find(b"\n", at)
            if stop < 0:
                self._keep(chunk[at:])
                if self._over(len(self._line)):
                    yield self._too_large()
                break
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
                    yield self._too_large()
                elif not self._skipping:
                    self._field(line)
            else:
                done = self._dispatch()
                self._start = base + at
                if done is not None:
                    yield done

    def _carry(self, chunk: bytes, at: int) -> bool:
        """Keeps the begin of an event as it is, so that a shape may read the whole, if nobody can tell: no line in it
        says anything before the event's end, and it is not too long to be read twice."""
        size = len(chunk) - at
        if size > MAX_CARRIED or size > self.max_event_size or not chunk.startswith(_FIRST_FIELDS, at):
            return False
        rest = chunk[at:]
        if b"\n\n" in rest or b"retry" in rest or (b"\r" in rest and (b"\n\r" in rest or b"\r\r" in rest)):
            return False
        self.carried = rest
        return True

    def uncarry(self) -> None:
        """Reads the lines of what was carried."""
        *lines, rest = self.carried.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._swallow = self.carried.endswith(b"\r")
        self.carried = b""
        for line in lines:
            self._field(line)
        self._keep(rest)

    def _note(self, lines: list[bytes], line_end: bytes) -> None:
        """Most events have one data line, and perhaps their name before it, as the event before."""
        if len(lines) == 1 and lines[0].startswith(b"data: "):
            self._prefix, self._name = b"data: ", b""
        elif len(lines) == 2 and lines[0].startswith(b"event: ") and lines[1].startswith(b"data: "):
            self._prefix, self._name = lines[0] + line_end + b"data: ", lines[0][7:]

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
            self._held += len(value) + bool(self.data_lines)
            if self.data_lines:
                self.data += b"\n"
            self.data += value
            self.data_lines += 1
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
            if self.data_lines or (self.dataless and self.any_field):
                source = bytes(self.data)
                block = _Block(self._start, self.event, source, 0, len(source))
                block.retry = self.retry_of_block
        self._reset()
        return block

    def begin_at(self, offset: int) -> None:
        """The stream's first bytes, a byte order mark among them, were taken off before."""
        self._head = None
        self.offset = self._start = offset

    def close(self) -> _Block | None:
        """The unfinished last event, if it holds data."""
        self.unfinished = self._skipping
        if self._skipping:
            return None
        if self.carried:
            self.uncarry()
        if self._head:
            self._line += self._head
            self._head = None
        self.unfinished = self.any_field or (bool(self._line) and not self._line.startswith(b":"))
        if self._line:
            retry = self.retry, self.retry_of_block
            self._field(bytes(self._line))
            self._line.clear()
            self.retry, self.retry_of_block = retry  # of a number that is cut, nobody knows the rest
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

    __slots__ = ("_closed", "_framer", "_number", "_strict", "_turn", "_unfinished")

    def __init__(
        self,
        *,
        max_event_size: int = DEFAULT_MAX_EVENT_SIZE,
        errors: str = "replace",
        dataless: bool = False,
        unfinished: bool = False,
        last_event_id: str = "",
    ) -> None:
        if hasattr(self, "_framer"):
            raise TypeError("a decoder cannot be initialised twice")
        self._framer = _Framer(_size("max_event_size", max_event_size))
        self._framer.dataless = bool(dataless)
        self._framer.id = self._framer.committed_id = fields.text("last_event_id", last_event_id).encode()
        self._strict = _errors(errors)
        self._unfinished = bool(unfinished)
        self._turn = allocate_lock()  # held while it is fed
        self._closed = False
        self._number = 0

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a decoder cannot be copied or pickled")

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
        data = _as_bytes(chunk)
        self._begin()
        out: list[ServerSentEvent] = []
        try:
            if self._closed:
                raise ValueError("the decoder is closed")
            for block in self._framer.feed(data):
                out.append(self._event(block, out))
        except BaseException:
            self._closed = True  # after an error, and an interrupt may have broken off anywhere
            raise
        finally:
            self._turn.release()
        return out

    def close(self) -> list[ServerSentEvent]:
        """Ends the stream. An unfinished last event is dropped, or handed out with ``unfinished``. Idempotent."""
        self._begin()
        try:
            if self._closed:
                return []
            self._closed = True
            block = self._framer.close()
            if block is None or not self._unfinished:
                return []
            return [self._event(block, [])]
        finally:
            self._turn.release()

    def _begin(self) -> None:
        # One step, as a test and a mark are not where threads run at the same time.
        if not self._turn.acquire(False):
            raise RuntimeError("the decoder is being fed already")

    def _event(self, block: _Block, out: list[ServerSentEvent]) -> ServerSentEvent:
        if block.too_large:
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
