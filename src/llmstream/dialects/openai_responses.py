"""OpenAI Responses."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from ..rules import MAX_BLOCKS
from . import failures
from .base import Dialect
from .values import items, members, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["OpenAIResponses"]

TEXTS = ("response.output_text.delta", "response.content_part.delta")
"""OpenAI's name, and the one that OpenRouter documents."""
THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
EXTRAS = {
    "response.refusal.delta": ("refusal", "delta"),
    "response.audio.delta": ("audio", "delta"),
    "response.audio.transcript.delta": ("audio_transcript", "delta"),
    "response.output_text.annotation.added": ("annotation", "annotation"),
    "response.image_generation_call.partial_image": ("partial_image", "partial_image_b64"),
}
"""Payloads whose one member travels as an extension: type -> name of the extension, name of the member."""

ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")
STATUSES = ("completed", "incomplete", "failed", "cancelled")
CALLS = {"function_call": ("", "arguments"), "custom_tool_call": ("custom", "input")}


def _form(kind: str, *absent: str, **form: Any) -> Delta:
    return Delta(index="output_index", when={"type": kind}, absent=["error", "response", *absent], **form)


class OpenAIResponses(Dialect):
    """Responses. ``index`` is the output_index. The stop reason is the status of the response, with the reason after a
    colon where it is incomplete. Words that came piece by piece are not taken again from the items that repeat them.

    What the vendor runs itself, and every other kind of item, is an extension under the vendor's word."""

    name = "openai-responses"
    end_mark = "[DONE]"
    stops_end = False
    framings: ClassVar = {ord("{"): JSONFraming}
    deltas = (
        *(_form(kind, "logprobs[0]", text="delta") for kind in TEXTS),
        *(_form(kind, reasoning="delta") for kind in THOUGHTS),
        *(_form(kind, arguments="delta") for kind in ARGUMENTS),
    )
    stop_reasons: ClassVar = {
        "completed": "end_turn",
        "incomplete": "max_tokens",
        "incomplete:max_output_tokens": "max_tokens",
        "incomplete:max_tokens": "max_tokens",
        "incomplete:content_filter": "content_filter",
    }

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._spoken: set[int] = set()
        self._has_items = False

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        kind = text(payload.get("type")) or event or ""
        if kind == "error":
            return "sequence_number" in payload
        return kind.startswith("response.") or (payload.get("object") == "response" and "output" in payload)

    def touch(self, index: int) -> None:
        super().touch(index)
        if len(self._spoken) < MAX_BLOCKS:
            self._spoken.add(index)

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        kind = text(payload.get("type")) or event or ""
        index = number(payload.get("output_index")) or 0
        bare = not kind and payload.get("object") == "response"
        whole = payload if bare else members(payload.get("response"))
        events: list[Event] = []
        if kind in TEXTS:
            events = self._text(index, text(payload.get("delta")), items(payload.get("logprobs")))
        elif kind in THOUGHTS:
            events = self._thought(index, text(payload.get("delta")))
        elif kind in ARGUMENTS:
            piece = text(payload.get("delta"))
            if piece:
                self.touch(index)
                self.append_arguments(index, 0, piece)
        elif kind in EXTRAS:
            name, member = EXTRAS[kind]
            events = self._extra(index, name, payload.get(member))
        elif kind == "response.output_item.added":
            self._begin_item(index, members(payload.get("item")))
        elif kind == "response.output_item.done":
            events = self._end_item(index, members(payload.get("item")))
        elif kind == "error":
            events = self.fail(failures.find(payload) or failures.read(payload))
        else:
            events = self.fail(failures.find(payload))
        usage = members(whole.get("usage"))
        events += self.count(usage.get("input_tokens"), usage.get("output_tokens"))
        if kind in ENDS or (bare and text(whole.get("status")) in STATUSES):
            return self._begin(whole, events + self._end(kind, whole)) + self.finish(True)
        return self._begin(whole, events)

    def _begin(self, whole: dict[str, Any], events: list[Event]) -> list[Event]:
        self._model = self._model or text(whole.get("model"))
        self._request_id = self._request_id or text(whole.get("id"))
        self._created = number(whole.get("created_at")) if self._created is None else self._created
        return self.begin({}, events)

    def _text(self, index: int, words: str, logprobs: list[Any]) -> list[Event]:
        if not (words or logprobs):
            return []
        self.touch(index)
        return [self.delta(index, words, extras={"logprobs": logprobs})]

    def _thought(self, index: int, thought: str) -> list[Event]:
        if not thought:
            return []
        self.touch(index)
        return [self.delta(index, reasoning=thought)]

    def _extra(self, index: int, name: str, value: Any) -> list[Event]:
        if name == "refusal" and value:
            self.touch(index)
        return [self.delta(index, extras={name: value})] if value else []

    def _begin_item(self, index: int, item: dict[str, Any]) -> None:
        self._has_items = True
        kind = text(item.get("type"))
        if kind in CALLS:
            self.see(index)
            call = self.calls.piece(index, 0, text(item.get("call_id")), text(item.get("name")))
            if call is not None:
                call.kind = CALLS[kind][0]
            self.check_limit()
        elif kind == "message":
            self.see(index)

    def _end_item(self, index: int, item: dict[str, Any]) -> list[Event]:
        self._has_items = True
        kind = text(item.get("type"))
        if kind in CALLS:
            return self._end_call(index, kind, item)
        repeated = index in self._spoken
        events: list[Event] = []
        if kind == "message":
            for part in [] if repeated else items(item.get("content")):
                events += self._text(index, text(members(part).get("text")), [])
                events += self._extra(index, "refusal", text(members(part).get("refusal")))
        elif kind == "reasoning":
            for part in [] if repeated else items(item.get("content")) or items(item.get("summary")):
                events += self._thought(index, text(members(part).get("text")))
            events += self._extra(index, "encrypted_content", item.get("encrypted_content"))
        elif kind:
            events += self._extra(index, kind, item)
        return events

    def _end_call(self, index: int, kind: str, item: dict[str, Any]) -> list[Event]:
        self._begin_item(index, item)
        call = self.calls.piece(index, 0, text(item.get("call_id")), text(item.get("name")))
        arguments = text(item.get(CALLS[kind][1]))
        if call is not None and not call.pieces and self.calls.charge(call, len(arguments)):
            call.default = arguments
        self.check_limit()
        return self.release(index)

    def _end(self, kind: str, whole: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        if not self._has_items and not self._spoken:
            # The whole answer at once.
            for index, item in enumerate(items(whole.get("output"))):
                events += self._end_item(index, members(item))
        status = text(whole.get("status")) or kind.removeprefix("response.")
        reason = text(members(whole.get("incomplete_details")).get("reason"))
        events += self.fail(failures.find(whole))
        if status == "failed":
            events += self.fail(failures.Failure([], "", status))
        return events + self.stop_open(f"{status}:{reason}" if status == "incomplete" and reason else status)
