"""Hugging Face text-generation-inference: generate_stream. Its OpenAI form is ``openai``."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from . import failures
from .base import Dialect
from .values import members, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["TGI"]


class TGI(Dialect):
    """generate_stream. Special tokens are no text; the whole text in the last payload repeats what came before it."""

    name = "tgi"
    end_mark = "[DONE]"
    framings: ClassVar = {ord("{"): JSONFraming}
    deltas = (
        Delta(
            text="token.text",
            when={"token.special": False},
            absent=["generated_text", "details", "error", "top_tokens"],
        ),
    )
    stop_reasons: ClassVar = {
        "": "end_turn",
        "eos_token": "end_turn",
        "stop_sequence": "end_turn",
        "length": "max_tokens",
    }
    error_codes: ClassVar = {"generation": "internal_error", "incomplete_generation": "internal_error"}

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        if "token" in payload and "generated_text" in payload:
            return True
        return type(payload.get("error")) is str and type(payload.get("error_type")) is str

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        token = members(payload.get("token"))
        words = "" if token.get("special") is True else text(token.get("text"))
        extras = {"top_tokens": payload.get("top_tokens")}
        events = [self.delta(0, words, extras=extras)] if words or any(extras.values()) else []
        details = members(payload.get("details"))
        events += self.count(details.get("input_length"), details.get("generated_tokens"))
        events += self.fail(failures.find(payload))
        if type(payload.get("generated_text")) is str:
            events += self.stop(0, text(details.get("finish_reason")), {"seed": details.get("seed")})
        return self.begin(payload, events)
