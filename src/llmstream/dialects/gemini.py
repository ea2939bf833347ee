"""Gemini and Vertex generateContent, as Server-Sent Events or as one growing JSON array."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from ..rules import MAX_BLOCKS, SECOND_STOP, TEXT_AFTER_STOP
from . import failures
from .base import Dialect
from .partial_args import PartialArguments
from .values import at, compact, items, members, number, text, unix_time, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, ClassVar

    from .._backend import Event
    from .calls import Call

__all__ = ["Gemini"]

OTHER_PARTS = (
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "functionResponse",
    "toolCall",
    "toolResponse",
)
"""Parts that are neither text nor a call, and what the vendor runs itself: extensions under the vendor's word."""

METADATA = ("citationMetadata", "groundingMetadata", "urlContextMetadata", "logprobsResult")
"""What a candidate says about its text: extensions as well."""

UNSPECIFIED = ("0", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED")
"""Enums that say nothing."""

WHOLE = ("end_turn", "tool_use")
"""What a turn ended for that left no call unfinished."""

MAX_HELD = 2**16
"""Characters of stop reasons and their messages that are held back in all."""

MAX_TOLD = 64
"""Characters of a stop reason by which it is known again."""


def _forms() -> Iterator[Delta]:
    """One candidate with one part, which is text or a thought; with both token counts or not yet."""
    part = "candidates[0].content.parts[0]"
    plain = [
        "candidates[1]",
        "candidates[0].content.parts[1]",
        "candidates[0].finishReason",
        "promptFeedback.blockReason",
        "error",
        *(f"candidates[0].{name}" for name in METADATA),
        *(f"{part}.{name}" for name in ("functionCall", "thoughtSignature", *OTHER_PARTS)),
    ]
    for counted in (False, True):
        form: dict[str, Any] = {"index": "candidates[0].index"}
        absent = plain
        if counted:
            form["input_tokens"] = "usageMetadata.promptTokenCount"
            form["output_tokens"] = "usageMetadata.candidatesTokenCount"
        else:
            absent = [*plain, "usageMetadata.candidatesTokenCount"]
        yield Delta(text=f"{part}.text", absent=[*absent, f"{part}.thought"], **form)
        yield Delta(reasoning=f"{part}.text", absent=absent, when={f"{part}.thought": True}, **form)


class Gemini(Dialect):
    """generateContent. A prompt that was blocked has the stop reason ``prompt:`` and the block reason; enums that came
    as integers are decimal text; thoughts are not among the output tokens."""

    name = "gemini"
    alternatives = True
    framings: ClassVar = {ord("["): JSONFraming, ord("{"): JSONFraming}
    model = "modelVersion"
    created = "createTime"
    request_id = "responseId"
    deltas = tuple(_forms())
    stop_reasons: ClassVar = {
        "STOP": "end_turn",
        "1": "end_turn",
        "MAX_TOKENS": "max_tokens",
        "2": "max_tokens",
        "SAFETY": "content_filter",
        "3": "content_filter",
        "RECITATION": "content_filter",
        "4": "content_filter",
        "BLOCKLIST": "content_filter",
        "6": "content_filter",
        "PROHIBITED_CONTENT": "content_filter",
        "7": "content_filter",
        "SPII": "content_filter",
        "8": "content_filter",
        "IMAGE_SAFETY": "content_filter",
        "IMAGE_PROHIBITED_CONTENT": "content_filter",
        "IMAGE_RECITATION": "content_filter",
        "MODEL_ARMOR": "content_filter",
        "10": "content_filter",
    }
    error_codes: ClassVar = {
        "RESOURCE_EXHAUSTED": "rate_limited",
        "UNAVAILABLE": "overloaded",
        "INTERNAL": "internal_error",
    }

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._growing: dict[int, tuple[Call, PartialArguments]] = {}
        self._spoken: set[int] = set()
        self._held: dict[int, tuple[str, str]] = {}  # index -> stop reason and message
        self._held_size = 0
        self._told: dict[int, str] = {}  # index -> the stop reason that was delivered
        self._repeats = False

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        if items(payload.get("candidates")) or "usageMetadata" in payload or "promptFeedback" in payload:
            return True
        error = members(payload.get("error"))
        return type(error.get("status")) is str and type(error.get("code")) is int

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        events: list[Event] = []
        for position, candidate in enumerate(items(payload.get("candidates"))):
            if type(candidate) is dict:
                events += self._candidate(position, candidate)
        feedback = members(payload.get("promptFeedback"))
        blocked = word(feedback.get("blockReason"))
        if blocked and blocked not in UNSPECIFIED:
            message = text(feedback.get("blockReasonMessage"))
            events += self.stop(0, "prompt:" + blocked, {"block_message": message})
        usage = members(payload.get("usageMetadata"))
        prompt, answer = number(usage.get("promptTokenCount")), number(usage.get("candidatesTokenCount"))
        if answer is not None:
            events += self.count(prompt, answer)
        elif len(events) != 1 or not self._started:
            # A form passes over the prompt's count alone, which the first payload had as well.
            self.counts.note(prompt, None)
        events += self.fail(failures.find(payload) or (None if self._started or events else failures.page(payload)))
        return self.begin(payload, events)

    def meaning(self, reason: str) -> str:
        return "content_filter" if reason.startswith("prompt:") else super().meaning(reason)

    def moment(self, payload: Any) -> int | None:
        return unix_time(at(payload, self.created))

    def release(self, index: int) -> list[Event]:
        self._settle(index)
        return super().release(index)

    def touch(self, index: int) -> None:
        super().touch(index)
        self._speak(index)

    def finish(self, ended: bool) -> list[Event]:
        events: list[Event] = []
        for index in list(self._held):
            reason, message = self._take_back(index)
            events += self.stop(index, reason, {"finish_message": message})
        return events + super().finish(ended)

    def stop(self, index: int, reason: str, extras: Mapping[str, Any] | None = None) -> list[Event]:
        """As in ``Dialect``; another reason than was given before is told as well, since the last one counts."""
        self._break_off(index, reason)
        known = reason[:MAX_TOLD]
        if index in self._stopped and self._told.get(index, known) != known:
            self.reports.append(SECOND_STOP)
            self.reopen(index)
        events = super().stop(index, reason, extras)
        if index in self._stopped:
            self._told[index] = known
        return events

    def _speak(self, index: int) -> None:
        """Text of a candidate came."""
        if len(self._spoken) < MAX_BLOCKS:
            self._spoken.add(index)
        self._go_on(index)

    def _go_on(self, index: int) -> None:
        """Text or a call of a candidate came."""
        if index in self._stopped:
            # So the reason that came before was not the last.
            if not self._repeats:
                self._repeats = True
                self.reports.append(TEXT_AFTER_STOP)
            if index in self._held:
                self._take_back(index)
            self.reopen(index)

    def _stop(self, index: int, reason: str, message: str, *, first: bool) -> list[Event]:
        """The ContentStop, which is held back where it may have come too early: old models give a reason with every
        piece of text, so one that comes with the first piece counts once no more text follows. Nothing else in their
        payloads tells the last one: neither token counts nor an end mark."""
        self._break_off(index, reason)
        events = self.release(index)
        if first or self._repeats or index in self._held:
            if index in self._held:
                self._take_back(index)
            if self._hold(index, reason, message):
                return events
        return events + self.stop(index, reason, {"finish_message": message})

    def _hold(self, index: int, reason: str, message: str) -> bool:
        """Whether there is room to hold a stop reason back, which counts for ``complete`` meanwhile."""
        size = len(reason) + len(message)
        if index not in self._open or self._held_size + size > MAX_HELD:
            return False
        del self._open[index]
        self._stopped.add(index)
        self._held[index] = reason, message
        self._held_size += size
        return True

    def _take_back(self, index: int) -> tuple[str, str]:
        """The stop reason that was held back of a candidate, which then wants one."""
        reason, message = self._held.pop(index)
        self._held_size -= len(reason) + len(message)
        self.reopen(index)
        return reason, message

    def _break_off(self, index: int, reason: str) -> None:
        """A call that goes on is cut by any reason but a good end."""
        if index in self._growing and self.meaning(reason) not in WHOLE:
            self._growing[index][1].broken = True

    def _candidate(self, position: int, candidate: dict[str, Any]) -> list[Event]:
        index = number(candidate.get("index"))
        index = position if index is None else index
        self.see(index)
        parts = [part for part in items(members(candidate.get("content")).get("parts")) if type(part) is dict]
        first = False
        if any(map(_is_text, parts)):
            first = index not in self._spoken
            self._speak(index)
        elif any(members(part.get("functionCall")) for part in parts):
            self._go_on(index)
        events: list[Event] = []
        for part in parts:
            events += self._part(index, part)
        metadata = {name: value for name in METADATA if (value := candidate.get(name))}
        if metadata:
            events.append(self.delta(index, extras=metadata))
        reason = word(candidate.get("finishReason"))
        if reason and reason not in UNSPECIFIED:
            message = text(candidate.get("finishMessage"))
            events += self._stop(index, reason, message, first=first)
        return events

    def _part(self, index: int, part: dict[str, Any]) -> list[Event]:
        extras = {name: value for name in OTHER_PARTS if (value := part.get(name))}
        signature = text(part.get("thoughtSignature"))
        call = part.get("functionCall")
        if type(call) is dict:
            return self._function_call(index, call, signature)
        if signature:
            extras["thoughtSignature"] = signature
        words = text(part.get("text"))
        if part.get("thought") is True:
            thought, words = words or None, ""
        else:
            thought = None
        return [self.delta(index, words, reasoning=thought, extras=extras)] if words or thought or extras else []

    def _function_call(self, index: int, piece: dict[str, Any], signature: str) -> list[Event]:
        """A call, whole or in pieces. The pieces end with the first that does not say that it continues, with the next
        call, or with the stop reason."""
        id, name = text(piece.get("id")), text(piece.get("name"))
        whole, partial = members(piece.get("args")), items(piece.get("partialArgs"))
        events: list[Event] = []
        if (name or id) and not (id and index in self._growing and self._growing[index][0].id == id):
            events += self.release(index)
        elif index not in self._growing and not (whole or partial):
            return events
        if index not in self._growing:
            call = self.calls.piece(index, None, id, name)
            if call is not None:
                self._growing[index] = call, PartialArguments()
        if index in self._growing:
            self._grow(*self._growing[index], whole, partial, signature)
        self.check_limit()
        if piece.get("willContinue") is not True:
            events += self.release(index)
        return events

    def _grow(
        self,
        call: Call,
        arguments: PartialArguments,
        whole: dict[str, Any],
        partial: list[Any],
        signature: str,
    ) -> None:
        if signature and self.calls.charge(call, len(signature)):
            call.extras["thoughtSignature"] = signature
        if whole and self.calls.charge(call, len(compact(whole))):
            arguments.begin(whole)
        for each in partial:
            if self.calls.charge(call, arguments.cost(each)):
                arguments.add(each)

    def _settle(self, index: int) -> None:
        """The arguments of a growing call, as far as they came."""
        growing = self._growing.pop(index, None)
        if growing is not None:
            call, arguments = growing
            call.default = arguments.text()
            call.broken = arguments.broken or arguments.is_open or self._cut


def _is_text(part: dict[str, Any]) -> bool:
    """Whether a part is text, or something in its place; a signature, or no text, may follow the last of it."""
    return bool(text(part.get("text")) or any(map(part.get, OTHER_PARTS)))
