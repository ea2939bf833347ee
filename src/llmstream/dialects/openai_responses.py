"""OpenAI Responses."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from ..rules import TOO_MANY_BLOCKS
from . import failures
from .base import Dialect
from .heard import Heard
from .values import items, members, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event
    from .calls import Call
    from .heard import Part

__all__ = ["OpenAIResponses"]

TEXTS = ("response.output_text.delta", "response.content_part.delta")
"""OpenAI's name, and the one that OpenRouter documents."""
THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
WHOLE_TEXTS = {
    "response.output_text.done": ("text", "content"),
    "response.refusal.done": ("refusal", "content"),
    "response.reasoning_text.done": ("thought", "content"),
    "response.reasoning_summary_text.done": ("thought", "summary"),
}
"""Payloads that repeat the pieces of a part: type -> what it is, and the list of the item that the part stands in."""
WHOLE_PARTS = {"response.content_part.done": "content", "response.reasoning_summary_part.done": "summary"}
WHOLE_ARGUMENTS = {
    "response.function_call_arguments.done": "function_call",
    "response.custom_tool_call_input.done": "custom_tool_call",
}
PARTS = {"text": "text", "output_text": "text", "refusal": "refusal"}
"""Type of a part -> what it is; any other is a thought."""
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
    colon where it is incomplete. Words and calls that came piece by piece are not taken again from the payloads that
    repeat them; what stands in those alone is.

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
        self.heard = Heard()

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        kind = text(payload.get("type")) or event or ""
        if kind == "error":
            return "sequence_number" in payload
        return kind.startswith("response.") or (payload.get("object") == "response" and "output" in payload)

    def touch(self, index: int) -> None:
        super().touch(index)
        self.heard.piece(index)

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
        elif kind in WHOLE_TEXTS:
            what, place = WHOLE_TEXTS[kind]
            words = text(payload.get("refusal" if what == "refusal" else "text"))
            events = self._part(index, what, words, _place(payload, place))
        elif kind in WHOLE_PARTS:
            events = self._whole_part(index, members(payload.get("part")), _place(payload, WHOLE_PARTS[kind]))
        elif kind in WHOLE_ARGUMENTS:
            if index not in self._called:
                self._complete_call(index, WHOLE_ARGUMENTS[kind], payload)
        elif kind == "error":
            events = self.fail(failures.find(payload) or failures.read(payload))
        else:
            events = self.fail(failures.find(payload))
        if self.heard.is_full and not self._crowded:
            self._crowded = True
            self.reports.append(TOO_MANY_BLOCKS)
        usage = members(whole.get("usage"))
        events += self.count(usage.get("input_tokens"), usage.get("output_tokens"))
        if kind in ENDS or (bare and text(whole.get("status")) in STATUSES):
            return self._begin(payload, whole, events + self._end(kind, whole)) + self.finish(True)
        return self._begin(payload, whole, events)

    def _begin(self, payload: dict[str, Any], whole: dict[str, Any], events: list[Event]) -> list[Event]:
        self._model = self._model or text(whole.get("model"))
        self._request_id = self._request_id or text(whole.get("id"))
        self._created = number(whole.get("created_at")) if self._created is None else self._created
        return self.begin(payload, events)

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

    def _part(self, index: int, what: str, words: str, place: Part) -> list[Event]:
        """A part that came whole, unless its words came before."""
        if not words or not self.heard.is_new(index, place):
            return []
        if what == "refusal":
            return [self.delta(index, extras={"refusal": words})]
        return [self.delta(index, words) if what == "text" else self.delta(index, reasoning=words)]

    def _whole_part(self, index: int, part: dict[str, Any], place: Part) -> list[Event]:
        what = PARTS.get(text(part.get("type")), "thought")
        return self._part(index, what, text(part.get("refusal" if what == "refusal" else "text")), place)

    def _begin_item(self, index: int, item: dict[str, Any]) -> None:
        kind = text(item.get("type"))
        self.heard.item(index, kind)
        if kind in CALLS:
            self.see(index)
            self._open_call(index, kind, item)
        elif kind == "message":
            self.see(index)

    def _end_item(self, index: int, item: dict[str, Any]) -> list[Event]:
        kind = text(item.get("type"))
        self.heard.item(index, kind)
        if kind in CALLS:
            return self._end_call(index, kind, item)
        self.heard.end(index)
        events: list[Event] = []
        if kind == "message":
            for at, part in enumerate(items(item.get("content"))):
                words, refusal = text(members(part).get("text")), text(members(part).get("refusal"))
                events += self._part(index, "text", words, ("content", at))
                events += self._part(index, "refusal", refusal, ("content", at))
        elif kind == "reasoning":
            place = "content" if items(item.get("content")) else "summary"
            for at, part in enumerate(items(item.get(place))):
                events += self._part(index, "thought", text(members(part).get("text")), (place, at))
            events += self._extra(index, "encrypted_content", item.get("encrypted_content"))
        elif kind:
            events += self._extra(index, kind, item)
        return events

    def _open_call(self, index: int, kind: str, item: dict[str, Any]) -> Call | None:
        call = self.calls.piece(index, 0, text(item.get("call_id")), text(item.get("name")))
        if call is not None:
            call.kind = CALLS[kind][0]
        self.check_limit()
        return call

    def _complete_call(self, index: int, kind: str, item: dict[str, Any]) -> None:
        """The call with its arguments, where they did not come in pieces."""
        self.see(index)
        call = self._open_call(index, kind, item)
        arguments = text(item.get(CALLS[kind][1]))
        if call is not None and not call.arguments and self.calls.charge(call, len(arguments)):
            call.default = arguments
        self.check_limit()

    def _end_call(self, index: int, kind: str, item: dict[str, Any]) -> list[Event]:
        self.heard.end(index)
        self._complete_call(index, kind, item)
        return self.release(index)

    def tool_call(self, call: Call) -> Event:
        event = super().tool_call(call)
        self.heard.call(call.id)
        return event

    def _rest(self, output: list[dict[str, Any]]) -> list[Event]:
        """What stands in the whole response alone. That its items have the numbers that the payloads had is not taken
        for granted: where they do not, text is taken if there was none."""
        heard = self.heard
        kinds = dict(enumerate(text(item.get("type")) for item in output))
        called = self._called.union(self.calls.indexes())
        is_numbered = all(kinds.get(at) in CALLS for at in called) and all(
            heard.kinds.get(at, "") == kinds.get(at) for at in heard.spoken - called
        )
        total = sum(kind in CALLS for kind in kinds.values())
        events: list[Event] = []
        for at, item in enumerate(output):
            if kinds[at] in CALLS:
                events += self._missing_call(at, kinds[at], item, total)
            elif is_numbered and at not in heard.ended:
                events += self._end_item(at, item)
        return events

    def _missing_call(self, at: int, kind: str, item: dict[str, Any], total: int) -> list[Event]:
        """A call of the whole response that was not told: one that is still open, or one of which nothing came."""
        id = text(item.get("call_id"))
        if self.heard.knows(id):
            return []
        open_calls = self.calls.indexes()
        index = at if at in open_calls else next(iter(open_calls), -1)
        events: list[Event] = []
        if index == at and not self.calls.takes(at, id):
            # Some servers make up new ids for the whole response.
            item = {**item, "call_id": ""}
        elif index >= 0 and not self.calls.takes(index, id):
            events += self.release(index)
            index = -1
        if index < 0 and self.heard.calls >= total:
            return events
        return events + self._end_call(at if index < 0 else index, kind, item)

    def _end(self, kind: str, whole: dict[str, Any]) -> list[Event]:
        events = self._rest([members(item) for item in items(whole.get("output"))])
        status = text(whole.get("status")) or kind.removeprefix("response.")
        reason = text(members(whole.get("incomplete_details")).get("reason"))
        events += self.fail(failures.find(whole))
        if status == "failed":
            events += self.fail(failures.Failure([], "", status))
        return events + self.stop_open(f"{status}:{reason}" if status == "incomplete" and reason else status)


def _place(payload: dict[str, Any], name: str) -> Part:
    """The part that a payload speaks of."""
    return name, number(payload.get(f"{name}_index")) or 0
