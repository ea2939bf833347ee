"""Ollama's own API: chat and generate, one JSON object a line. Its OpenAI form is ``openai``."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from . import failures
from .base import Dialect
from .values import compact, items, members, text, unix_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["Ollama"]

_COUNTS = ["prompt_eval_count", "eval_count"]
_CALLS = "message.tool_calls[0]"
_CHAT = ["message.content", "message.thinking"]
_GENERATE = ["response", "thinking"]


def _form(empty: list[str], **form: Any) -> Delta:
    return Delta(**form, when={"done": False}, absent=["error", "logprobs", _CALLS, *_COUNTS], empty=empty)


class Ollama(Dialect):
    """Chat and generate. A call comes whole, its arguments as an object; log probabilities are extensions."""

    name = "ollama"
    framings: ClassVar = {ord("{"): JSONFraming}
    model = "model"
    deltas = (
        _form([_CHAT[1], *_GENERATE], text=_CHAT[0]),
        _form([_CHAT[0], *_GENERATE], reasoning=_CHAT[1]),
        _form([*_CHAT, _GENERATE[1]], text=_GENERATE[0]),
        _form([*_CHAT, _GENERATE[0]], reasoning=_GENERATE[1]),
    )
    stop_reasons: ClassVar = {"": "end_turn", "stop": "end_turn", "length": "max_tokens"}

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return type(payload.get("done")) is bool and ("message" in payload or "response" in payload)

    def moment(self, payload: Any) -> int | None:
        return unix_time(payload.get("created_at"))

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        message = members(payload.get("message"))
        thought = text(message.get("thinking")) or text(payload.get("thinking"))
        words = text(message.get("content")) or text(payload.get("response"))
        extras = {"logprobs": payload.get("logprobs")}
        events: list[Event] = []
        if thought:
            events.append(self.delta(0, reasoning=thought))
        if words or any(extras.values()):
            events.append(self.delta(0, words, extras=extras))
        for each in items(message.get("tool_calls")):
            self._call(members(each))
        events += self.release(0)
        events += self.count(payload.get("prompt_eval_count"), payload.get("eval_count"))
        events += self.fail(failures.find(payload))
        if payload.get("done") is True:
            events += self.stop(0, text(payload.get("done_reason")))
            return self.begin(payload, events) + self.finish(True)
        return self.begin(payload, events)

    def _call(self, each: dict[str, Any]) -> None:
        function = members(each.get("function"))
        arguments = function.get("arguments")
        given = compact(arguments) if type(arguments) is dict else text(arguments)
        id, name = text(each.get("id")), text(function.get("name"))
        if not (id or name or given):
            return
        call = self.calls.piece(0, None, id, name)
        if call is not None:
            self.calls.append(call, given)
        self.check_limit()
