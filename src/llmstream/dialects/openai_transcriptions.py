"""OpenAI audio transcriptions, streamed."""

from __future__ import annotations

from ..declaration import Delta
from . import failures
from .base import Dialect
from .values import items, members, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["OpenAITranscriptions"]


class OpenAITranscriptions(Dialect):
    """Transcripts. They have no stop reason and no model; the last payload repeats the text of those before it.
    Segments with their speakers are extensions."""

    name = "openai-transcriptions"
    end_mark = "[DONE]"
    deltas = (Delta(text="delta", when={"type": "transcript.text.delta"}, absent=["logprobs[0]", "error"]),)
    stop_reasons: ClassVar = {"": "end_turn"}

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._spoken = False

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return text(payload.get("type")).startswith("transcript.text.")

    def touch(self, index: int) -> None:
        super().touch(index)
        self._spoken = True

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        kind = text(payload.get("type")) or event
        events: list[Event] = []
        if kind == "transcript.text.delta":
            events = self._text(text(payload.get("delta")), payload)
        elif kind == "transcript.text.segment":
            events = [self.delta(0, extras={"segment": payload})]
        elif kind == "transcript.text.done":
            events = self._text("" if self._spoken else text(payload.get("text")), payload)
            usage = members(payload.get("usage"))
            events += self.count(usage.get("input_tokens"), usage.get("output_tokens"))
            events += self.stop(0, "")
        events += self.fail(failures.find(payload))
        if kind == "error":
            events += self.fail(failures.read(payload))
        return self.begin(payload, events)

    def _text(self, words: str, payload: dict[str, Any]) -> list[Event]:
        logprobs = items(payload.get("logprobs"))
        if not (words or logprobs):
            return []
        self.touch(0)
        return [self.delta(0, words, extras={"logprobs": logprobs})]
