"""Cohere chat and generate, version 1."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from . import failures
from .base import Dialect
from .cohere import FINISH_REASONS
from .values import compact, items, members, number, text, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["CohereV1"]

EXTRAS = {
    "citation-generation": "citations",
    "search-queries-generation": "search_queries",
    "search-results": "search_results",
}
"""Payloads whose one member is handed on as an extension."""

_ONE_TEXT: dict[str, Any] = {"text": "text", "index": "index"}


class CohereV1(Dialect):
    """Chat and generate, one JSON object a line. ``index`` is that of the generation. Plans for tools, citations and
    searches are extensions. The last payload repeats the text of those before it."""

    name = "cohere-v1"
    alternatives = True
    framings: ClassVar = {ord("{"): JSONFraming}
    request_id = "generation_id"
    deltas = (
        Delta(**_ONE_TEXT, when={"is_finished": False, "event_type": "text-generation"}, absent=["error"]),
        Delta(**_ONE_TEXT, when={"is_finished": False}, absent=["error", "event_type"]),
    )
    stop_reasons: ClassVar = FINISH_REASONS

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._spoken = False

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return type(payload.get("is_finished")) is bool

    def touch(self, index: int) -> None:
        super().touch(index)
        self._spoken = True

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        kind = text(payload.get("event_type"))
        index = number(payload.get("index")) or 0
        words = text(payload.get("text"))
        events: list[Event] = []
        if kind in EXTRAS:
            found = payload.get(EXTRAS[kind])
            events = [self.delta(index, extras={EXTRAS[kind]: found})] if found else []
        elif kind in ("tool-calls-chunk", "tool-calls-generation"):
            if words and kind == "tool-calls-chunk":
                events.append(self.delta(index, extras={"tool_plan": words}))
            self._pieces(payload)
            if kind == "tool-calls-generation":
                events += self.release(0)
        elif kind in ("", "text-generation") and words:
            self.touch(index)
            events = [self.delta(index, words)]
        if payload.get("is_finished") is True:
            events += self._end(payload)
        events += self.fail(failures.find(payload))
        if not kind and type(payload.get("is_finished")) is not bool:
            events += self.fail(failures.plain(payload))
        if kind == "stream-end" and members(payload.get("response")):
            return self.begin(payload, events) + self.finish(True)
        return self.begin(payload, events)

    def _pieces(self, payload: dict[str, Any]) -> None:
        piece = members(payload.get("tool_call_delta"))
        if piece:
            arguments = text(piece.get("parameters")) or text(piece.get("raw"))
            self._call(number(piece.get("index")), text(piece.get("name")), arguments)
        elif not self.calls.indexes():
            for each in items(payload.get("tool_calls")):
                found = members(members(each).get("parameters"))
                self._call(None, text(members(each).get("name")), compact(found) if found else "")

    def _call(self, place: int | None, name: str, arguments: str) -> None:
        self.see(0)
        call = self.calls.piece(0, place, "", name)
        if call is not None:
            self.calls.append(call, arguments)
        self.check_limit()

    def _end(self, payload: dict[str, Any]) -> list[Event]:
        response = members(payload.get("response"))
        events: list[Event] = []
        words = text(response.get("text"))
        if words and not self._spoken:
            events.append(self.delta(0, words))
        tokens = members(members(response.get("meta")).get("tokens"))
        events += self.count(whole(tokens.get("input_tokens")), whole(tokens.get("output_tokens")))
        reason = text(payload.get("finish_reason"))
        if reason in ("ERROR", "TIMEOUT"):
            events += self.fail(failures.Failure([], "", reason))
        if reason and number(payload.get("index")) is not None:
            events += self.stop(payload["index"], reason)
        elif reason:
            events += self.stop_open(reason)
        return events
