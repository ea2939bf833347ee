"""IBM watsonx: text generation, and chat in OpenAI's form."""

from __future__ import annotations

from . import failures
from .openai import OpenAI
from .values import items, members, number, text, unix_time, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["Watsonx"]


class Watsonx(OpenAI):
    """Text generation: ``results`` in place of ``choices``. The input tokens are counted in the first payload, and
    those after it say 0."""

    name = "watsonx"
    model = "model_id"
    request_id = "id"
    stop_reasons: ClassVar = {
        **OpenAI.stop_reasons,
        "token_limit": "max_tokens",
        "max_tokens": "max_tokens",
        "time_limit": "max_tokens",
    }

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        if "model_id" in payload:
            return bool(items(payload.get("results"))) or super().recognises(payload, event)
        return type(payload.get("errors")) is list and "status_code" in payload

    def moment(self, payload: Any) -> int | None:
        created = number(payload.get("created"))
        return unix_time(payload.get("created_at")) if created is None else created

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        if "results" not in payload or "choices" in payload:
            events = super().translate(payload, event)
            if payload.get("choices") is None and payload.get("errors"):
                events += self.begin({}, self.fail(failures.plain(payload)))
            return events
        events = []
        for index, result in enumerate(items(payload["results"])):
            events += self._result(index, members(result))
        return self.begin(payload, events + self.fail(failures.find(payload)))

    def _result(self, index: int, result: dict[str, Any]) -> list[Event]:
        self.see(index)
        words = text(result.get("generated_text"))
        extras = {"moderations": result.get("moderations"), "tokens": result.get("generated_tokens")}
        events = [self.delta(index, words, extras=extras)] if words or any(extras.values()) else []
        prompt = number(result.get("input_token_count"))
        if prompt == 0 and self.counts.seen[0] is not None:
            prompt = None
        events += self.count(prompt, result.get("generated_token_count"))
        reason = word(result.get("stop_reason"))
        if reason and reason.lower() != "not_finished":
            events += self.stop(index, reason)
        return events

    def meaning(self, reason: str) -> str:
        return super().meaning(reason.lower())
