"""Telling the dialect of a stream by its first payloads."""

from __future__ import annotations

from .. import payload, rules
from ..framing.json_values import JSONFraming
from . import family
from .base import Dialect
from .values import members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = ["Auto"]


class Auto(Dialect):
    """Asks the candidates in their order; the one whose payloads could be taken for another's comes before it."""

    name = "auto"
    candidates: ClassVar[tuple[str, ...]] = ("llm-stream", "anthropic", "gemini", "openai")
    framings: ClassVar = {ord("["): JSONFraming, ord("{"): JSONFraming}

    def detect(self, event: str | None, data: bytes) -> Dialect | str | None:
        """The dialect that a payload gives evidence of: an instance of it, "llm-stream" for the draft's own; None where
        it gives none, as pings and empty payloads do."""
        try:
            value = members(payload.loads(data.decode("utf-8", "replace")))
        except (RecursionError, ValueError):
            return None
        for name in self.candidates:
            if name == "llm-stream":
                if _is_standard(value, event):
                    return name
            elif family(name).recognises(value, event):
                return family(name)()
        return None


def _is_standard(value: dict[str, Any], event: str | None) -> bool:
    """Whether a payload is an envelope of the draft (section 5.2), whole or nearly so."""
    kind = value.get("type", event)
    return kind in rules.EVENT_TYPES[:-1] and ("v" in value or "seq" in value)
