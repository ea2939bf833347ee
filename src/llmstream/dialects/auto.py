"""Telling the dialect of a stream by its first payloads."""

from __future__ import annotations

from .. import payload, rules
from ..framing.binary import BinaryFraming
from ..framing.json_values import JSONFraming
from . import failures, family
from .base import Dialect
from .values import members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from ..framing import Frame

__all__ = ["Auto"]


class RecordsFraming(JSONFraming):
    """JSON values with anything between them that may stand there: SignalR's 0x1E as well, which cannot stand in
    one."""

    def feed(self, chunk: bytes) -> list[Frame]:
        return super().feed(chunk.replace(b"\x1e", b"\n"))


class Auto(Dialect):
    """Asks the candidates in their order: those that many use come first, since a family is loaded when it is asked,
    and one whose payloads could be taken for another's before that. An error that is nobody's is read as OpenAI's."""

    name = "auto"
    candidates: ClassVar[tuple[str, ...]] = (
        "llm-stream",
        "anthropic",
        "replicate",
        "gemini",
        "watsonx",
        "openai",
        "openai-responses",
        "openai-completions",
        "openai-assistants",
        "openai-transcriptions",
        "anthropic-complete",
        "gemini-interactions",
        "cohere",
        "cohere-v1",
        "bedrock",
        "bedrock-agent",
        "ollama",
        "tgi",
        "llamacpp",
        "writer-completions",
        "signalr",
    )
    framings: ClassVar = {ord("["): JSONFraming, ord("{"): RecordsFraming, **dict.fromkeys(range(3), BinaryFraming)}

    def detect(self, event: str | None, data: bytes) -> Dialect | str | None:
        """The dialect that a payload gives evidence of: an instance of it, "llm-stream" for the draft's own; None where
        it gives none, as pings and empty payloads do."""
        text = data.decode("utf-8", "replace")
        try:
            value = members(payload.loads(text))
        except (RecursionError, ValueError):
            value = {}
        for name in self.candidates:
            if name == "llm-stream":
                if _is_standard(value, event):
                    return name
                continue
            found = family(name)
            evidence: Any = value if found.json else text
            if (value or not found.json) and found.recognises(evidence, event):
                made: Any = found()
                return made.detect(event, data) if hasattr(made, "detect") else made  # type: ignore[no-any-return]
        return None if failures.body(value) is None else family("openai")()


def _is_standard(value: dict[str, Any], event: str | None) -> bool:
    """Whether a payload is an envelope of the draft (section 5.2), whole or nearly so."""
    kind = value.get("type", event)
    return kind in rules.EVENT_TYPES[:-1] and ("v" in value or "seq" in value)
