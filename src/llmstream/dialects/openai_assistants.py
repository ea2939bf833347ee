"""OpenAI assistants: the runs of a thread."""

from __future__ import annotations

from ..declaration import Delta
from . import failures
from .base import Dialect
from .values import compact, items, members, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["OpenAIAssistants"]

TERMINAL = ("completed", "incomplete", "failed", "cancelled", "expired", "requires_action")
OBJECTS = ("thread", "thread.run", "thread.run.step", "thread.run.step.delta", "thread.message", "thread.message.delta")


class OpenAIAssistants(Dialect):
    """Runs. ``index`` is that of the part of the message. The stop reason is the status of the run, and the token
    counts are those of the run and not of its steps. Tools that the vendor runs itself are extensions."""

    name = "openai-assistants"
    end_mark = "[DONE]"
    model = "model"
    created = "created_at"
    request_id = "id"
    deltas = (
        Delta(
            text="delta.content[0].text.value",
            index="delta.content[0].index",
            when={"object": "thread.message.delta"},
            absent=["delta.content[1]", "delta.content[0].text.annotations[0]", "error"],
        ),
    )
    stop_reasons: ClassVar = {
        "completed": "end_turn",
        "incomplete": "max_tokens",
        "requires_action": "tool_use",
    }

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return payload.get("object") in OBJECTS

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        kind = text(payload.get("object"))
        delta = members(payload.get("delta"))
        events: list[Event] = []
        if kind == "thread.message.delta":
            for position, part in enumerate(items(delta.get("content"))):
                events += self._part(position, members(part))
        elif kind == "thread.run.step.delta":
            for each in items(members(delta.get("step_details")).get("tool_calls")):
                self._piece(members(each))
        elif kind == "thread.run.step":
            if payload.get("status") in TERMINAL:
                events = self._step(members(payload.get("step_details")))
        elif kind == "thread.run":
            events = self._run(payload)
            return self.begin(payload, events)
        events += self.fail(failures.find(payload))
        if event == "error" and not kind:
            events += self.fail(failures.read(payload))
        self.note(payload, events)
        return self.begin({}, events)

    def _part(self, position: int, part: dict[str, Any]) -> list[Event]:
        index = number(part.get("index"))
        index = position if index is None else index
        holder = members(part.get("text"))
        words, kind = text(holder.get("value")), text(part.get("type"))
        extras: dict[str, Any] = {"annotations": items(holder.get("annotations"))}
        if kind == "refusal":
            extras["refusal"] = text(part.get("refusal"))
        elif kind != "text" and kind and not words:
            extras[kind] = part
        return [self.delta(index, words, extras=extras)] if words or any(extras.values()) else []

    def _piece(self, each: dict[str, Any]) -> None:
        function = members(each.get("function"))
        id, name, arguments = text(each.get("id")), text(function.get("name")), text(function.get("arguments"))
        if not function or not (id or name or arguments):
            return
        call = self.calls.piece(0, number(each.get("index")), id, name)
        if call is not None:
            self.calls.append(call, arguments)
        self.check_limit()

    def _step(self, details: dict[str, Any]) -> list[Event]:
        calls = [members(each) for each in items(details.get("tool_calls"))]
        done = [each for each in calls if text(each.get("type")) not in ("", "function")]
        return [self.delta(0, extras={each["type"]: each}) for each in done]

    def _run(self, run: dict[str, Any]) -> list[Event]:
        status = text(run.get("status"))
        events: list[Event] = []
        if status == "requires_action" and not self.calls.indexes():
            action = members(members(run.get("required_action")).get("submit_tool_outputs"))
            for each in items(action.get("tool_calls")):
                call = members(each)
                arguments = members(call.get("function")).get("arguments")
                if type(arguments) is dict:
                    call = {**call, "function": {**call["function"], "arguments": compact(arguments)}}
                self._piece({**call, "index": None})
        usage = members(run.get("usage"))
        events += self.count(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        error = members(run.get("last_error"))
        if error:
            events += self.fail(failures.read(error))
        if status in TERMINAL:
            events += self.stop_open(status, {"incomplete_details": run.get("incomplete_details")})
        return events
