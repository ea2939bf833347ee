"""Cohere chat, version 2."""

from __future__ import annotations

from ..declaration import Delta
from . import failures
from .base import Dialect
from .values import at, members, number, text, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["FINISH_REASONS", "Cohere"]

FINISH_REASONS = {
    "COMPLETE": "end_turn",
    "STOP_SEQUENCE": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "TOOL_CALL": "tool_use",
    "ERROR_LIMIT": "max_tokens",
    "ERROR_TOXIC": "content_filter",
}
"""The stop reasons of both versions."""

KINDS = (
    "message-start",
    "content-start",
    "content-delta",
    "content-end",
    "tool-plan-delta",
    "tool-call-start",
    "tool-call-delta",
    "tool-call-end",
    "citation-start",
    "citation-end",
    "message-end",
)

_CONTENT = "delta.message.content"
_NOTHING_ELSE = ["error", "logprobs"]


class Cohere(Dialect):
    """Chat. ``index`` is that of the content block or of the tool call. Plans for tools and citations are extensions.
    The tokens are those of the model, not those that are billed."""

    name = "cohere"
    end_mark = "[DONE]"
    request_id = "id"
    deltas = (
        Delta(
            text=f"{_CONTENT}.text",
            index="index",
            when={"type": "content-delta"},
            absent=_NOTHING_ELSE,
            empty=[f"{_CONTENT}.thinking"],
        ),
        Delta(
            reasoning=f"{_CONTENT}.thinking",
            index="index",
            when={"type": "content-delta"},
            absent=_NOTHING_ELSE,
            empty=[f"{_CONTENT}.text"],
        ),
        Delta(
            arguments="delta.message.tool_calls.function.arguments",
            index="index",
            when={"type": "tool-call-delta"},
            absent=_NOTHING_ELSE,
        ),
    )
    stop_reasons: ClassVar = FINISH_REASONS

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return (text(payload.get("type")) or event) in KINDS

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        kind = text(payload.get("type")) or event or ""
        index = number(payload.get("index")) or 0
        delta = members(payload.get("delta"))
        message = members(delta.get("message"))
        events: list[Event] = []
        if kind in ("content-start", "content-delta"):
            events = self._content(index, members(message.get("content")), payload.get("logprobs"))
        elif kind == "tool-plan-delta":
            plan = text(message.get("tool_plan"))
            events = [self.delta(index, extras={"tool_plan": plan})] if plan else []
        elif kind == "tool-call-start":
            call = members(message.get("tool_calls"))
            function = members(call.get("function"))
            self._call(index, text(call.get("id")), text(function.get("name")), text(function.get("arguments")))
        elif kind == "tool-call-delta":
            piece = text(at(message, "tool_calls.function.arguments"))
            if piece:
                self.append_arguments(index, 0, piece)
        elif kind == "tool-call-end":
            events = self.release(index)
        elif kind == "citation-start":
            citation = message.get("citations")
            events = [self.delta(index, extras={"citation": citation})] if citation else []
        elif kind == "message-end":
            events = self._end(delta)
        events += self.fail(failures.find(payload))
        if not kind or kind == "error":
            events += self.fail(failures.plain(payload))
        return self.begin(payload, events)

    def _content(self, index: int, content: dict[str, Any], logprobs: Any) -> list[Event]:
        self.see(index)
        words, thought = text(content.get("text")), text(content.get("thinking"))
        events = [self.delta(index, reasoning=thought)] if thought else []
        if words or logprobs:
            events.append(self.delta(index, words, extras={"logprobs": logprobs}))
        return events

    def _call(self, index: int, id: str, name: str, arguments: str) -> None:
        self.see(index)
        call = self.calls.piece(index, 0, id, name)
        if call is not None:
            self.calls.append(call, arguments)
        self.check_limit()

    def _end(self, delta: dict[str, Any]) -> list[Event]:
        tokens = members(members(delta.get("usage")).get("tokens"))
        events = self.count(whole(tokens.get("input_tokens")), whole(tokens.get("output_tokens")))
        reason = text(delta.get("finish_reason"))
        events += self.fail(failures.find(delta))
        if reason in ("ERROR", "TIMEOUT"):
            events += self.fail(failures.Failure([], "", reason))
        return events + self.stop_open(reason) if reason else events
