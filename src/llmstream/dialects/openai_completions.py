"""OpenAI completions (legacy), as vLLM, llama.cpp and others still stream them."""

from __future__ import annotations

from ..declaration import Delta
from . import failures
from .openai import CONTENTS, OpenAI
from .values import items, members, number, text, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._backend import Event

__all__ = ["OpenAICompletions"]

_ONE_TEXT: dict[str, Any] = {
    "text": "choices[0].text",
    "index": "choices[0].index",
    "empty": ["choices[0].finish_reason"],
}
_NOTHING_ELSE = ["choices[1]", "choices[0].logprobs", "choices[0].error", "error", "x_groq", "choices[0].usage"]
_COUNTS: dict[str, Any] = {"input_tokens": "usage.prompt_tokens", "output_tokens": "usage.completion_tokens"}


class OpenAICompletions(OpenAI):
    """Completions: the text of a choice stands in its ``text``."""

    name = "openai-completions"
    deltas = (
        Delta(**_ONE_TEXT, absent=[*_NOTHING_ELSE, *_COUNTS.values()]),
        Delta(**_ONE_TEXT, absent=_NOTHING_ELSE, **_COUNTS),
    )

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        choices = items(payload.get("choices"))
        if choices:
            return type(members(choices[0]).get("text")) is str and not super().recognises(payload, event)
        return payload.get("object") == "text_completion"

    def choice(self, position: int, choice: dict[str, Any], payload: dict[str, Any]) -> list[Event]:
        index = number(choice.get("index"))
        index = position if index is None else index
        self.see(index)
        if "text" not in choice and (any(map(members(choice.get("delta")).get, CONTENTS)) or choice.get("message")):
            self.misread()
        words, extras = text(choice.get("text")), {"logprobs": choice.get("logprobs")}
        events = [self.delta(index, words, extras=extras)] if words or any(extras.values()) else []
        reason = word(choice.get("finish_reason"))
        if reason:
            events += self.stop(index, reason)
        return events + self.fail(failures.find(choice))
