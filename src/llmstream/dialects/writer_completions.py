"""Writer text completions."""

from __future__ import annotations

from .base import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["WriterCompletions"]


class WriterCompletions(Dialect):
    """Text completions. They have neither a stop reason nor an end mark that was ever seen: none is complete."""

    name = "writer-completions"
    end_mark = "[DONE]"
    text = "value"

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return list(payload) == ["value"] and type(payload["value"]) is str
