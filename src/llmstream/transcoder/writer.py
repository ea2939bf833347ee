"""The writing half of a transcoder: what a parser of any dialect gave, as a stream that keeps the draft's rules."""

from __future__ import annotations

from .. import payload, rules
from .._backend import (
    ContentDelta,
    ContentStop,
    StreamEnd,
    StreamError,
    StreamStart,
    ToolCall,
    UnknownEvent,
    Usage,
    _rebuild,
)
from .._registry import STANDARD
from ..encoder import Encoder
from .blocks import Blocks
from .members import PIECE, ROOM, has_repeated, pieces, portable, seconds, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._backend import Event, Parser
    from .blocks import Block
    from .losses import Fault

__all__ = ["CHOICE", "CHOICE_REASONING", "CHOICE_TEXT", "Writer"]

MAX_WORD = 2**16
"""Characters of a name, a code or a message."""

MAX_KEPT = 256
"""Characters of what is remembered of every block or call."""

MAX_IDS = 2**20
"""Characters of longer ids of calls that are remembered in all."""

MAX_LATE = 2**20
"""Bytes of extensions that wait for stream.end."""

CHOICE = "llmstream:choice"
"""In the events of a block that is another choice than number 0: which one."""

CHOICE_TEXT = "llmstream:text"
CHOICE_REASONING = "llmstream:reasoning"
"""What such a choice says. The draft knows one answer, whose text every reader joins: it is not in delta.text."""

NOT_JSON = ("internal_error", "the arguments of a tool call are not JSON text")
CALL_TOO_LARGE = ("internal_error", "a tool call is too large")
UNWRITABLE = ("internal_error", "an event cannot be written")


class Writer:
    """Writes one stream. ``out`` has the bytes of what was written and not yet taken, ``fault`` what the error before
    stream.end will say, ``left_out`` counts what had no place.

    Raises LifecycleError or SequenceError, and nothing else, where there are more blocks, calls or events than a stream
    can have.
    """

    __slots__ = (
        "_blocks",
        "_call_ids",
        "_calls",
        "_choice",
        "_confirmed",
        "_counts",
        "_ids_size",
        "_index",
        "_keeps_reasoning",
        "_late",
        "_late_size",
        "_parser",
        "_request_id",
        "_target",
        "_told",
        "encoder",
        "error",
        "fault",
        "left_out",
        "model",
        "out",
        "stop_reasons",
    )

    def __init__(
        self,
        parser: Parser,
        *,
        model: str,
        request_id: str | None,
        keeps_reasoning: bool,
        clock: Callable[[], float],
    ) -> None:
        self.encoder = Encoder(clock=clock)
        self.out: list[bytes] = []
        self.fault: Fault | None = None
        self.error: StreamError | None = None
        self.model = model
        self.stop_reasons: dict[int, str] = {}
        self.left_out = 0
        self._parser = parser
        self._request_id = request_id
        self._keeps_reasoning = keeps_reasoning
        self._blocks = Blocks()
        self._index = self._target = -1  # the vendor's index that the last delta had, and that of its block
        self._choice = 0  # the one that is written, where it is another than number 0
        self._call_ids: set[str] = set()
        self._calls = self._ids_size = 0
        self._confirmed: set[int] | None = None  # None: of all indexes
        self._counts: tuple[int, int] | None = None  # the last ones, and the last that were written
        self._told: tuple[int, int] | None = None
        self._late: dict[str, Any] = {}
        self._late_size = 0

    def write(self, events: list[Event], *, cut: bool = False) -> StreamEnd | None:
        """Writes events up to the StreamEnd, which is returned for ``end``. With ``cut`` they are what was left when
        the bytes ended without it."""
        if cut:
            # What the vendor did not end may lack its last words, however whole it looks.
            self._confirmed = {event.index for event in events if type(event) is ContentStop}
        append, delta = self.out.append, self.encoder.delta
        for event in events:
            try:
                if type(event) is ContentDelta and event.index == self._index:
                    text = event.text
                    if not event.reasoning and not event.extensions and len(text) <= PIECE:
                        append(delta(text, self._target))
                        continue
                if type(event) is StreamEnd:
                    return event
                _WRITERS[type(event)](self, event)
            except (TypeError, ValueError):
                self.left_out += 1
                self.fault = self.fault or UNWRITABLE
        return None

    def end(self, event: StreamEnd | None, fault: Fault | None) -> bool:
        """Writes what is due before stream.end, and that; returns whether the stream looks whole. Without a fault, each
        block is stopped; ``fault`` becomes an error unless there was one."""
        self._begin()
        encoder = self.encoder
        fault = None if encoder.state == "errored" else fault
        extensions, request_id = dict(self._late), None
        if fault is not None:
            self._tell_rest()
            self._fail(fault)
        elif encoder.state != "errored":
            for block in self._blocks.not_stopped():
                self._stop_block(block, "", {})
        self._tell_rest()
        if event is not None:
            extensions.update(self._portable(event.extensions))
            request_id = event.request_id and self._word(event.request_id)
        is_whole = encoder.state != "errored"
        self.out.append(encoder.end(request_id if self._request_id is None else None, extensions=extensions))
        self._index = -1
        return is_whole

    @property
    def is_stopped(self) -> bool:
        """Whether there were blocks, and each was stopped."""
        return bool(self.stop_reasons) and not self._blocks.is_any_open

    # What every event goes through

    @property
    def _space(self) -> str:
        """The namespace of what the vendor sent (draft, section 4.7)."""
        return self._parser.dialect or "vendor"

    @property
    def _is_standard(self) -> bool:
        return self._parser.dialect == STANDARD

    @property
    def _is_open(self) -> bool:
        """Whether content may be written."""
        if self.encoder.state == "errored":
            self.left_out += 1
            return False
        self._begin()
        return True

    def _begin(self) -> None:
        if self.encoder.state == "new":
            self._write_start(StreamStart())

    def _fail(self, fault: Fault, extensions: dict[str, Any] | None = None) -> None:
        self._index = -1
        code, message = fault
        self.out.append(self.encoder.error(code, message, extensions=extensions))
        self.error = StreamError(code=code, message=message, extensions=extensions)

    def _word(self, text: str | None, most: int = MAX_WORD) -> str:
        """``text``, cut where nobody means it; "" for None."""
        if text is None or len(text) <= most:
            return text or ""
        self.left_out += 1
        return text[:most]

    def _portable(self, extensions: dict[str, Any]) -> dict[str, Any]:
        return self._measured(extensions)[0]

    def _measured(self, extensions: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Those of ``extensions`` that can be written, and their bytes."""
        if not extensions:
            return {}, 0
        kept, used = portable(extensions, ROOM)
        self.left_out += len(extensions) - len(kept)
        return kept, used

    # The events

    def _write_start(self, event: StreamStart) -> None:
        own, space = event.request_id and self._word(event.request_id), self._space
        if self.encoder.state != "new":
            # It comes late, and so could only be in the standard stream.
            start = {"model": self._word(event.model), "created": event.created, "request_id": own}
            self.left_out += not self._hold({f"{space}:start": start})
            return
        extensions = self._portable(event.extensions)
        if self._request_id is None:
            self._request_id = own
        elif own is not None and own != self._request_id:
            extensions[f"{space}:request_id"] = own
        self.model = self._word(event.model) or self.model
        created = event.created
        if created is not None:
            # Vendors write 0 for a time that they do not know.
            created = seconds(created) if created or self._is_standard else None
        self.out.append(
            self.encoder.start(self.model, created=created, request_id=self._request_id, extensions=extensions)
        )

    def _write_delta(self, event: ContentDelta) -> None:
        if not self._is_open:
            return
        text, thought, given = event.text, event.reasoning or "", event.extensions
        if not self._keeps_reasoning:
            if thought and not (text or given):
                return
            thought = ""
        if event.index == self._index and thought and len(thought) <= PIECE and not (text or given):
            self.out.append(self.encoder.delta("", self._target, extensions={f"{self._space}:reasoning": thought}))
            return
        self._deliver(event.index, text, thought, given)

    def _deliver(self, index: int, text: str, thought: str, given: dict[str, Any]) -> None:
        extensions, used = self._measured(given)
        if given and not (extensions or text or thought):
            return
        if extensions and not (text or thought) and self._blocks.is_stopped(index) and self._hold(extensions):
            return
        block = self._open(index, extensions)
        self._choice = index if self._is_alternative(index) else 0
        self._index, self._target = -1 if self._choice else index, block.index
        if used > PIECE and (text or thought):
            self._delta("", extensions)
            extensions = {}
        if thought:
            key = CHOICE_REASONING if self._choice else f"{self._space}:reasoning"
            while len(thought) > PIECE:
                self._delta("", {**extensions, key: thought[:PIECE]})
                thought, extensions = thought[PIECE:], {}
            extensions[key] = thought
        if len(text) > PIECE:
            *before, text = pieces(text)
            for piece in before:
                self._delta(piece, extensions)
                extensions = {}
        self._delta(text, extensions)

    def _delta(self, text: str, extensions: dict[str, Any]) -> None:
        if self._choice:
            extensions[CHOICE] = self._choice
            if text:
                extensions[CHOICE_TEXT] = text
                text = ""
        self.out.append(self.encoder.delta(text, self._target, extensions=extensions))

    def _write_stop(self, event: ContentStop) -> None:
        self._begin()
        reason = self._word(event.stop_reason, MAX_KEPT)
        if self._blocks.is_stopped(event.index):
            given = self._blocks.given(event.index)
            if self._is_standard or not given or reason in ("", given):
                self.left_out += 1
                return
            # The last of a vendor's reasons counts, so it is told, by a block of its own.
        extensions = self._portable(event.extensions)
        block = self._open(event.index, extensions)
        self._stop_block(block, reason, extensions)

    def _stop_block(self, block: Block, reason: str, extensions: dict[str, Any]) -> None:
        self._index = -1
        reason = self.stop_reasons[block.index] = self._blocks.stop(block, reason)
        self.out.append(self.encoder.stop(reason, block.index, extensions=extensions))
        if not self._blocks.is_any_open:
            self._tell_rest()

    def _open(self, index: int, extensions: dict[str, Any]) -> Block:
        """The block for what comes; its first event says which of the vendor's it belongs to, where that differs, and
        all of them which choice it is, where it is an alternative to the answer."""
        block = self._blocks.open(index)
        if block.is_new and block.index != index:
            extensions["llmstream:index"] = index
        if self._is_alternative(index):
            extensions[CHOICE] = index
        block.is_new = False
        return block

    def _is_alternative(self, index: int) -> bool:
        return index > 0 and self._parser.alternatives

    def _write_call(self, event: ToolCall) -> None:
        if not self._is_open:
            return
        space, extensions = self._space, self._portable(event.extensions)
        arguments, name = event.arguments or "", self._word(event.name)
        if extensions.get(f"{space}:custom") is True and not self._is_standard:
            # Free text, which is a string in JSON.
            arguments = payload.dumps(arguments)
        is_whole = payload.is_json(arguments) and not extensions.get(f"{space}:invalid_arguments")
        is_small = len(arguments) <= PIECE or size(payload.dumps(arguments)) <= ROOM
        is_confirmed = self._confirmed is None or event.index in self._confirmed
        is_sent = is_whole and is_small and is_confirmed
        if not is_sent or self._is_alternative(event.index):
            # A reader runs all calls of a stream, and so those of one choice only are calls.
            if is_confirmed and not is_sent:
                self.fault = self.fault or (CALL_TOO_LARGE if is_whole else NOT_JSON)
            call = {"id": event.id, "name": event.name, "arguments": event.arguments}
            self._deliver(event.index, "", "", {**extensions, f"{space}:tool_call": call})
            return
        if len(arguments) > PIECE and extensions:
            self._deliver(event.index, "", "", extensions)
            extensions = {}
        block = self._open(event.index, extensions)
        id = self._call_id(event.id, extensions)
        self.out.append(self.encoder.tool_call(id, name, arguments, block.index, extensions=extensions))
        block.has_call = True

    def _call_id(self, given: str | None, extensions: dict[str, Any]) -> str:
        """An id that no call had before (draft, section 5.3.4), which is the vendor's where that is one."""
        self._calls += 1
        id = "call" if given is None else given
        if len(id) > MAX_KEPT:
            self._ids_size += len(id)
            if self._ids_size > MAX_IDS:
                id = id[:MAX_KEPT]
        if id != given or id in self._call_ids:
            if given is not None:
                extensions[f"{self._space}:id"] = self._word(given)
            before = id
            while (id := f"{before}-{self._calls}") in self._call_ids:
                self._calls += 1
        self._call_ids.add(id)
        return id

    def _write_usage(self, event: Usage) -> None:
        self._begin()
        counts = event.input_tokens, event.output_tokens
        extensions = self._portable(event.extensions)
        if counts == (None, None) and not extensions:
            self.left_out += 1
            return
        self._counts = counts[0] or 0, counts[1] or 0
        # Some vendors count with every fragment: as long as a block goes on, there is a later count to come.
        if self._is_standard or extensions:
            self._tell(self._counts, extensions)
        elif not self._blocks.is_any_open:
            self._tell_rest()

    def _tell_rest(self) -> None:
        """The last token counts, unless they were written."""
        if self._counts is not None and self._counts != self._told:
            self._tell(self._counts, {})

    def _tell(self, counts: tuple[int, int], extensions: dict[str, Any]) -> None:
        self._told = counts
        self.out.append(self.encoder.usage(*counts, extensions=extensions))

    def _write_error(self, event: StreamError) -> None:
        self._begin()
        if self.error is not None:
            self.left_out += 1
            return
        code, extensions = self._word(event.code) or "internal_error", self._portable(event.extensions)
        if code not in rules.ERROR_CODES and not self._is_standard:
            # The vendor's word for it, beside the draft's for what is none of the others (section 5.3.6).
            extensions.setdefault(f"{self._space}:code", code)
            code = "internal_error"
        self._fail((code, self._word(event.message)), extensions)

    def _write_unknown(self, event: UnknownEvent) -> None:
        self._begin()
        try:
            if not self._is_standard:
                # Its members are those of the vendor's payload.
                event = UnknownEvent(type=event.type, extensions=self._portable(event.extensions))
            elif len(event.raw) > PIECE and size(payload.dumps(event.json())) > ROOM:
                raise ValueError
            elif has_repeated(event.raw.decode("utf-8", "replace")):
                event = _rebuild("unknown", (payload.dumps(event.json()).encode(), None, True, event.type))
            self.out.append(self.encoder.encode(event))
        except (RecursionError, TypeError, ValueError):
            self.left_out += 1

    def _hold(self, extensions: dict[str, Any]) -> bool:
        """Whether what belongs to no block any more can wait for stream.end."""
        if extensions.keys() & self._late.keys():
            return False
        kept, used = portable(extensions, MAX_LATE - self._late_size)
        if len(kept) < len(extensions):
            return False
        self._late.update(kept)
        self._late_size += used
        return True


_WRITERS: dict[type[Event], Callable[[Writer, Any], None]] = {
    StreamStart: Writer._write_start,
    ContentDelta: Writer._write_delta,
    ContentStop: Writer._write_stop,
    ToolCall: Writer._write_call,
    Usage: Writer._write_usage,
    StreamError: Writer._write_error,
    UnknownEvent: Writer._write_unknown,
}
