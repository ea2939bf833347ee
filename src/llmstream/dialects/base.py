"""What a dialect is: how one vendor's payloads become standard events."""

from __future__ import annotations

from collections.abc import Mapping

from .. import payload, rules
from .._backend import ContentDelta, ContentStop, StreamEnd, StreamError, StreamStart, ToolCall, Usage
from ..declaration import Delta, parse_path
from . import failures
from .calls import Call, Calls
from .counts import Counts
from .values import at, members, number, text, word, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar

    from .._backend import Event
    from ..framing import Framing

__all__ = ["PATHS", "Dialect"]

MAX_NAME = 64

IDLE = ("ping", "keepalive", "keep-alive", "heartbeat")
"""The ``type`` of payloads that only keep the connection open."""

CUT_SHORT = ("max_tokens", "content_filter")
"""What a turn stopped for that may have lacked its last words."""


class Dialect:
    """How one vendor's payloads become standard events (draft, section 5.3). An instance reads one stream.

    A provider is declared by a subclass that says where things stand, as paths::

        class Example(llmstream.Dialect):
            name = "example"
            text = "output[0].text"
            stop_reason = "output[0].finish"
            stop_reasons = {"complete": "end_turn", "cut": "max_tokens"}
            model = "model"
            input_tokens = "usage.in"
            output_tokens = "usage.out"
            end_mark = "[DONE]"

    What paths cannot say goes into a ``translate`` of its own, which the methods below the line keep short. A name or a
    path that is none raises ValueError or TypeError when the class is made, a missing name when an instance is.
    """

    name: str = ""
    """The dialect's name, and the part before the colon in the keys of its extensions (draft, section 4.7): ASCII
    letters and digits, with ``.``, ``-`` and ``_`` between them."""

    end_mark: ClassVar[str | None] = None
    """The payload that ends the stream, where that is no JSON."""

    json: ClassVar[bool] = True
    """Whether payloads are JSON objects; otherwise ``translate`` is given the data as str."""

    alternatives: ClassVar[bool] = False
    """Whether an index counts alternative answers, of which number 0 is the primary one, and not blocks of one."""

    stops_end: ClassVar[bool] = True
    """Whether the stream is complete once every choice or block seen has its stop reason, without an end mark."""

    framings: ClassVar[Mapping[int, Callable[[int], Framing]]] = {}
    """The first byte of a stream -> the framing that it tells, where that is not Server-Sent Events."""

    deltas: ClassVar[tuple[Delta, ...]] = ()
    """Forms of payload that the engine reads by itself; each gives exactly what ``translate`` would. Where a subclass
    sets none and has no ``translate`` of its own, they follow from its paths."""

    max_argument_size: ClassVar[int] = 16 * 2**20
    """How many characters of open tool calls are held; what is over it is dropped and reported."""

    text: ClassVar[str | None] = None
    reasoning: ClassVar[str | None] = None
    index: ClassVar[str | None] = None
    stop_reason: ClassVar[str | None] = None
    model: ClassVar[str | None] = None
    created: ClassVar[str | None] = None
    request_id: ClassVar[str | None] = None
    input_tokens: ClassVar[str | None] = None
    output_tokens: ClassVar[str | None] = None
    error_code: ClassVar[str | None] = None
    error_message: ClassVar[str | None] = None

    stop_reasons: ClassVar[Mapping[str, str]] = {}
    """The vendor's stop reasons -> the draft's (section 5.3.3). A word that is not here is handed on."""

    error_codes: ClassVar[Mapping[str, str]] = {}
    """The vendor's error codes -> the draft's (section 5.3.6), beside those that many vendors share."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.name:
            _check_name(cls.name)
        for member in ("end_mark", *PATHS):
            value = getattr(cls, member)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{member} must be a str or None, not {type(value).__name__}")
            if value is not None and member in PATHS:
                parse_path(value)
        for member in ("stop_reasons", "error_codes", "framings"):
            if not isinstance(getattr(cls, member), Mapping):
                raise TypeError(f"{member} must be a mapping, not {type(getattr(cls, member)).__name__}")
        if "deltas" in cls.__dict__:
            cls._derives = False
        elif cls._derives:
            cls.deltas = _forms(cls)

    _derives: ClassVar[bool] = True

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name
        if self.name is not type(self).name or not self.name:
            _check_name(self.name)
        self.reports: list[int] = []
        """Numbers of rules that were found broken; the engine records and clears them."""
        self.calls = Calls(self.max_argument_size)
        self.counts = Counts()
        self._model = self._request_id = self._late_model = ""
        self._created: int | None = None
        self._started = self._failed = self._ended = self._overflowed = False
        self._open: dict[int, None] = {}
        self._stopped: set[int] = set()
        self._crowded = self._cut = False
        self._called: set[int] = set()
        self._reason: tuple[str, Any] | None = None  # the last stop reason and its extension: blocks mostly share one
        self._nameless = 0
        self._is_understood = self._is_foreign = False

    # What the engine calls

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        """Whether a payload shows that the stream is of this dialect; ``auto`` asks the dialects in its order."""
        return False

    def translate(self, payload: Any, event: str | None) -> list[Event]:
        """The events of one payload: a decoded JSON object, or str where ``json`` is False. ``event`` is the name that
        its frame had. Does not raise, whatever stands in the payload."""
        events: list[Event] = []
        index = number(at(payload, self.index)) or 0
        thought, words = text(at(payload, self.reasoning)), text(at(payload, self.text))
        if thought:
            events.append(self.delta(index, reasoning=thought))
        if words:
            events.append(self.delta(index, words))
        reason = word(at(payload, self.stop_reason))
        if reason:
            events += self.stop(index, reason)
        events += self.count(at(payload, self.input_tokens), at(payload, self.output_tokens))
        code, message = at(payload, self.error_code), text(at(payload, self.error_message))
        if word(code) or message:
            events += self.fail(failures.Failure([word(code)] if word(code) else [], message, code))
        events += self.fail(failures.find(members(payload)))
        if event == "error" and not events:
            events += self.fail(failures.read(members(payload)))
        return self.begin(payload, events)

    def touch(self, index: int) -> None:
        """A form has read a fragment of this choice or block."""
        self.see(index)

    def append_arguments(self, index: int, call: int, text: str) -> None:
        """A form has read a piece of a tool call's arguments."""
        self.see(index)
        found = self.calls.piece(index, call)
        if found is not None:
            self.calls.append(found, text)
        self.check_limit()

    def counted(self, input_tokens: int, output_tokens: int) -> None:
        """Forms have read token counts and delivered their Usage; these are the last."""
        self.counts.delivered(input_tokens, output_tokens)

    @property
    def complete(self) -> bool:
        """Whether the stream may end now, without an end mark."""
        return self.stops_end and bool(self._stopped) and not self._open and not self._crowded

    def finish(self, ended: bool) -> list[Event]:
        """The events that are due at the end mark (``ended``), or at the end of the bytes without it. Idempotent."""
        if self._ended:
            return []
        self._cut = not ended
        events: list[Event] = []
        for index in self.calls.indexes():
            events += self.release(index)
        if self.counts.due:
            if self.counts.partial:
                self.reports.append(rules.PARTIAL_USAGE)
                self.counts.fill()
            events += self.usage()
        is_empty = not (self._is_understood or events or self._open or self._stopped)
        if self._is_foreign and is_empty:
            self.reports.append(rules.NOTHING_READ)
        if ended or self.complete:
            self._ended = True
            extensions = self.extensions({"model": self._late_model})
            events.append(StreamEnd(request_id=self._request_id or None, extensions=extensions))
        return self.begin({}, events)

    def bare(self, value: Any) -> list[Event]:
        """The events of a JSON value outside of the framing: the error that came instead of the stream, or in it.
        None for anything else."""
        return [] if self._ended else self.begin(value, self.fail(failures.body(value) or failures.plain(value)))

    # ------------------------------------------------------------------------------------------------------------------
    # What a translate is made of

    def begin(self, payload: Any, events: list[Event]) -> list[Event]:
        """``events``, after the StreamStart if that is due: with the first of them, the first choice or the model. A
        model that is named only later, with a stop reason or with token counts alone, is ``<name>:model`` in the
        extensions of the end; beside a fragment it is not looked for, as the forms do not."""
        if not self._is_understood:
            self.note(payload, events)
        if self._started:
            if not self._model and events and (type(events[0]) is Usage or type(events[-1]) in (ContentStop, Usage)):
                self._name_late(payload, events)
            return events
        self._model = self._model or text(at(payload, self.model))
        self._request_id = self._request_id or text(at(payload, self.request_id))
        if not self._created:
            # Some gateways' first chunk has a 0.
            moment = self.moment(payload)
            self._created = self._created if moment is None else moment
        if not (events or self._model or self._open or self._stopped):
            return events
        self._started = True
        model, request_id = self._model or None, self._request_id or None
        return [StreamStart(model=model, created=self._created, request_id=request_id), *events]

    def note(self, payload: Any, events: list[Event]) -> None:
        """Takes note of whether the stream is of this dialect at all: at its end, that is told where it is not."""
        if events or self._open or self._stopped:
            self._is_understood = True
        elif type(payload) is dict and payload and payload.get("type") not in IDLE:
            is_own = self.recognises(payload, None) or bool(text(at(payload, self.model)) and not self._is_told_apart)
            self._is_understood = is_own
            self._is_foreign = self._is_foreign or not is_own

    @property
    def _is_told_apart(self) -> bool:
        """Whether ``recognises`` is this dialect's own."""
        return getattr(type(self).recognises, "__func__", None) is not Dialect.recognises.__func__  # type: ignore[attr-defined]

    def moment(self, payload: Any) -> int | None:
        """When the answer was begun, in Unix seconds; None where the vendor does not say."""
        return number(at(payload, self.created))

    def see(self, index: int) -> None:
        """Take note of a choice or block, which then wants a stop reason."""
        if index in self._open or index in self._stopped:
            return
        if len(self._open) + len(self._stopped) < rules.MAX_BLOCKS:
            self._open[index] = None
        elif not self._crowded:
            self._crowded = True
            self.reports.append(rules.TOO_MANY_BLOCKS)

    @property
    def open_blocks(self) -> list[int]:
        """The choices or blocks that want a stop reason, in order."""
        return sorted(self._open)

    def delta(
        self,
        index: int,
        text: str = "",
        *,
        reasoning: str | None = None,
        extras: Mapping[str, Any] | None = None,
    ) -> Event:
        """A ContentDelta; ``extras`` become its extensions."""
        self.see(index)
        extensions = self.extensions(extras)
        return ContentDelta(text=text, index=index, reasoning=reasoning, extensions=extensions)

    def stop(self, index: int, reason: str, extras: Mapping[str, Any] | None = None) -> list[Event]:
        """The open tool calls of a choice or block and its ContentStop, unless that was given before. ``reason`` is the
        vendor's word, "" where the vendor has none but the end: that is no stop after an error. A turn that ended with
        tool calls ended for them (draft, section 4.8)."""
        meaning = self.meaning(reason)
        if meaning in CUT_SHORT:
            self.calls.cut(index)
        events = self.release(index)
        if index in self._stopped or (self._failed and not reason):
            return events
        self.see(index)
        if index in self._open:
            del self._open[index]
            self._stopped.add(index)
        if meaning == "end_turn" and index in self._called:
            meaning = "tool_use"
        if extras:
            extensions = self.extensions({**extras, "stop_reason": reason})
        else:
            if self._reason is None or self._reason[0] != reason:
                self._reason = (reason, self.extensions({"stop_reason": reason}))
            extensions = self._reason[1]
        stop = ContentStop(stop_reason=meaning, index=index, extensions=extensions)
        return [*events, stop]

    def stop_open(self, reason: str, extras: Mapping[str, Any] | None = None) -> list[Event]:
        """The open tool calls and the ContentStops of all open choices or blocks; of number 0 where there was none.
        ``extras`` go with the first, lest a hostile stream multiplies them."""
        events: list[Event] = []
        for index in self.calls.indexes():
            events += self.release(index)
        for index in self.open_blocks or ([] if self._stopped else [0]):
            events += self.stop(index, reason, extras)
            extras = None
        return events

    def reopen(self, index: int) -> None:
        """Take back that a choice or block has its stop reason."""
        self._stopped.discard(index)
        self.see(index)

    def meaning(self, reason: str) -> str:
        """The draft's word for a stop reason."""
        return self.stop_reasons.get(reason, reason)

    def count(self, input_tokens: Any, output_tokens: Any) -> list[Event]:
        """The Usage of two counts, each of which may be absent: due where both came, or one that changes something."""
        found = number(input_tokens), number(output_tokens)
        self.counts.note(*found)
        return self.usage() if None not in found or (found != (None, None) and self.counts.due) else []

    def usage(self) -> list[Event]:
        """The Usage of the counts so far, once both are known."""
        counts = self.counts.deliver()
        return [] if counts is None else [Usage(input_tokens=counts[0], output_tokens=counts[1])]

    def fail(self, failure: failures.Failure | None) -> list[Event]:
        """The StreamError of a failure; the first one of a stream, since the draft has one at most."""
        if failure is None or self._failed:
            return []
        self._failed = True
        code = failure.meaning(self.error_codes)
        extensions = self.extensions({"code": failure.code})
        return [StreamError(code=code, message=failure.message, extensions=extensions)]

    def check_limit(self) -> None:
        """Reports, once, that tool calls were over ``max_argument_size``."""
        if self.calls.too_large and not self._overflowed:
            self._overflowed = True
            self.reports.append(rules.TOO_LARGE)

    def release(self, index: int) -> list[Event]:
        """The events of the open tool calls of a choice or block; they are no longer open."""
        return [self.tool_call(call) for call in self.calls.take(index)]

    def tool_call(self, call: Call) -> Event:
        """The ToolCall of a call that is whole, or as whole as it will be; an extension for what the vendor runs."""
        arguments = call.arguments
        if call.kind not in ("", "custom"):
            given: Any = arguments or "{}"
            use = {"id": call.id, "name": call.name, "input": payload.loads(given) if payload.is_json(given) else given}
            return self.delta(call.index, extras={call.kind: use})
        if call.kind == "custom":
            call.extras["custom"] = True
        elif not (arguments or call.broken or self._cut):
            arguments = "{}"
        elif call.broken or not payload.is_json(arguments):
            self.reports.append(rules.ARGUMENTS_NOT_JSON)
            call.extras["invalid_arguments"] = True
        if not call.name:
            self.reports.append(rules.CALL_WITHOUT_NAME)
        if not call.id:
            call.id = f"call-{self._nameless}"
            self._nameless += 1
        self.see(call.index)
        if len(self._called) < rules.MAX_BLOCKS:
            self._called.add(call.index)
        return ToolCall(
            id=call.id,
            name=call.name,
            arguments=arguments,
            index=call.index,
            extensions=self.extensions(call.extras),
        )

    def _name_late(self, payload: Any, events: list[Event]) -> None:
        kinds = {type(event) for event in events}
        if kinds == {Usage} or ContentStop in kinds:
            self._model = self._late_model = text(at(payload, self.model))

    def extensions(self, extras: Mapping[str, Any] | None) -> Any:
        """``extras`` under the keys of this dialect, without those that are empty: what an event takes as its own."""
        if not extras:
            return None
        return written({f"{self.name}:{key}": value for key, value in extras.items() if value})


PATHS = (
    "text",
    "reasoning",
    "index",
    "stop_reason",
    "model",
    "created",
    "request_id",
    "input_tokens",
    "output_tokens",
    "error_code",
    "error_message",
)


def _check_name(name: Any) -> None:
    """Raises TypeError or ValueError for what cannot stand before the colon of an extension's key."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a dialect must be a str, not {type(name).__name__}")
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not (plain.isascii() and plain.isalnum() and len(name) <= MAX_NAME):
        raise ValueError(f"the name of a dialect is 1 to {MAX_NAME} ASCII letters, digits, '.', '-' and '_'")


def _forms(cls: type[Dialect]) -> tuple[Delta, ...]:
    """The payloads for which a dialect's paths give one fragment, with two token counts or without."""
    if cls.translate is not Dialect.translate or not cls.json:
        return ()
    rest = [cls.stop_reason, cls.error_code, cls.error_message]
    counts = [path for path in (cls.input_tokens, cls.output_tokens) if path is not None]
    forms = []
    for kind, other in (("text", cls.reasoning), ("reasoning", cls.text)):
        path = getattr(cls, kind)
        if path is None:
            continue
        empty = [each for each in (other, *rest) if each is not None]
        common: dict[str, Any] = {kind: path, "index": cls.index, "empty": empty}
        forms.append(Delta(**common, absent=("error", *counts)))
        if len(counts) == 2:
            common |= {"input_tokens": counts[0], "output_tokens": counts[1]}
            forms.append(Delta(**common, absent=("error",)))
    return tuple(forms)
