"""llama.cpp's own /completion. Its OpenAI form is ``openai``."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from . import failures
from .base import Dialect
from .values import number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["LlamaCpp"]

FLAGS = {"stopped_limit": "limit", "stopped_word": "word", "stopped_eos": "eos"}
"""How older servers say why they stopped."""

_COUNTS: dict[str, Any] = {"input_tokens": "tokens_evaluated", "output_tokens": "tokens_predicted"}
_ONE_TEXT: dict[str, Any] = {"text": "content", "index": "index", "when": {"stop": False}}
_NOTHING_ELSE = ["error", "completion_probabilities"]


class LlamaCpp(Dialect):
    """/completion. ``index`` is that of the prompt or of the choice."""

    name = "llamacpp"
    end_mark = "[DONE]"
    alternatives = True
    framings: ClassVar = {ord("{"): JSONFraming}
    model = "model"
    deltas = (
        Delta(**_ONE_TEXT, absent=[*_NOTHING_ELSE, *_COUNTS.values()]),
        Delta(**_ONE_TEXT, **_COUNTS, absent=_NOTHING_ELSE),
    )
    stop_reasons: ClassVar = {
        "": "end_turn",
        "none": "end_turn",
        "eos": "end_turn",
        "word": "end_turn",
        "limit": "max_tokens",
    }

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return type(payload.get("content")) is str and type(payload.get("stop")) is bool

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        index = number(payload.get("index")) or 0
        words = text(payload.get("content"))
        extras = {"logprobs": payload.get("completion_probabilities")}
        events = [self.delta(index, words, extras=extras)] if words or any(extras.values()) else []
        events += self.count(payload.get("tokens_evaluated"), payload.get("tokens_predicted"))
        events += self.fail(failures.find(payload))
        if payload.get("stop") is True:
            flagged = next((FLAGS[name] for name in FLAGS if payload.get(name) is True), "")
            reason = text(payload.get("stop_type")) or flagged
            events += self.stop(index, reason, {"stopping_word": payload.get("stopping_word")})
        return self.begin(payload, events)
