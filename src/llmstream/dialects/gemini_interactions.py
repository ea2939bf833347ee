"""Gemini interactions: steps, as they are streamed now, and contents, as they were before."""

from __future__ import annotations

from .. import payload as json_text
from ..declaration import Delta
from . import failures
from .base import Dialect
from .values import at, compact, items, members, number, text, unix_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["GeminiInteractions"]

DELTAS = ("step.delta", "content.delta")
STARTS = ("step.start", "content.start")
STOPS = ("step.stop", "content.stop")
KINDS = (*DELTAS, *STARTS, *STOPS)
TERMINAL = ("completed", "incomplete", "requires_action", "failed", "cancelled")
THOUGHTS = ("thought_summary", "thought")
COUNTS = ("metadata.usage", "interaction.usage", "usage")
"""Where the tokens of the interaction so far are counted."""


def _forms() -> Iterator[Delta]:
    nothing_else = ["error", "interaction", "usage", "metadata.usage"]
    no_other_thought = ["delta.text", "delta.thought", "delta.content.thought"]
    for event in DELTAS:
        for kind, fragment, more in (
            ("text", {"text": "delta.text"}, ["delta.annotations"]),
            ("thought_summary", {"reasoning": "delta.content.text"}, no_other_thought),
            ("arguments_delta", {"arguments": "delta.arguments"}, []),
        ):
            when = {"event_type": event, "delta.type": kind}
            yield Delta(**fragment, index="index", when=when, absent=[*nothing_else, *more])


class GeminiInteractions(Dialect):
    """Interactions. ``index`` is that of the step. The stop reason is the status of the interaction; thoughts are not
    among the output tokens. What the vendor runs itself, and every other kind of step, is an extension."""

    name = "gemini-interactions"
    end_mark = "[DONE]"
    deltas = tuple(_forms())
    stop_reasons: ClassVar = {
        "completed": "end_turn",
        "incomplete": "max_tokens",
        "requires_action": "tool_use",
    }

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        kind = text(payload.get("event_type")) or event or ""
        if kind == "error":
            return "event_type" in payload
        return kind.startswith("interaction.") or (kind in KINDS and "v" not in payload)

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        kind = text(payload.get("event_type")) or event or ""
        index = number(payload.get("index")) or 0
        whole = members(payload.get("interaction"))
        events: list[Event] = []
        if kind in DELTAS:
            events = self._delta(index, members(payload.get("delta")))
        elif kind in STARTS:
            events = self._start(index, members(payload.get("step")) or members(payload.get("content")))
        elif kind in STOPS:
            events = self.release(index)
        for path in COUNTS:
            usage = members(at(payload, path))
            events += self.count(usage.get("total_input_tokens"), usage.get("total_output_tokens"))
        events += self.fail(failures.find(payload) or failures.find(whole))
        status = text(whole.get("status"))
        if status in TERMINAL:
            events += self.stop_open(status)
        self._model = self._model or text(whole.get("model")) or text(whole.get("agent"))
        self._request_id = self._request_id or text(whole.get("id"))
        if self._created is None:
            self._created = unix_time(whole.get("created"))
        self.note(payload, events)
        return self.begin({}, events)

    def _start(self, index: int, step: dict[str, Any]) -> list[Event]:
        kind = text(step.get("type"))
        self.see(index)
        if kind == "function_call":
            return self._call(index, step)
        if kind == "thought":
            return self._thoughts(index, [step, *items(step.get("summary"))])
        if kind in ("model_output", "text", ""):
            return self._texts(index, [step, *items(step.get("content"))])
        return [self.delta(index, extras={kind: step})]

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Event]:
        kind = text(delta.get("type"))
        if kind == "text":
            return self._texts(index, [delta])
        if kind in THOUGHTS:
            return self._thoughts(index, [delta, delta.get("content")])
        if kind == "arguments_delta":
            piece = text(delta.get("arguments"))
            if piece:
                self.append_arguments(index, 0, piece)
            return []
        if kind == "function_call":
            return self._call(index, delta)
        extras = {kind or "delta": delta.get("signature") if kind == "thought_signature" else delta}
        return [self.delta(index, extras=extras)] if any(extras.values()) else []

    def _texts(self, index: int, parts: list[Any]) -> list[Event]:
        events: list[Event] = []
        for part in parts:
            words, extras = text(members(part).get("text")), {"annotations": members(part).get("annotations")}
            if words or any(extras.values()):
                events.append(self.delta(index, words, extras=extras))
        return events

    def _thoughts(self, index: int, parts: list[Any]) -> list[Event]:
        thoughts = (text(members(part).get("text")) or text(members(part).get("thought")) for part in parts)
        return [self.delta(index, reasoning=thought) for thought in thoughts if thought]

    def _call(self, index: int, step: dict[str, Any]) -> list[Event]:
        """A call that begins: its arguments follow in pieces where they are not there."""
        id = text(step.get("id")) or text(step.get("call_id"))
        call = self.calls.piece(index, 0, id, text(step.get("name")))
        arguments = step.get("arguments")
        whole = compact(arguments) if type(arguments) is dict and arguments else text(arguments)
        if call is not None and whole and not call.pieces and self.calls.charge(call, len(whole)):
            call.default = whole if json_text.is_json(whole) else ""
        self.check_limit()
        return []
