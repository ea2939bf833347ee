"""Anthropic text completions (legacy)."""

from __future__ import annotations

from .base import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = ["AnthropicComplete"]


class AnthropicComplete(Dialect):
    """Text completions."""

    name = "anthropic-complete"
    end_mark = "[DONE]"
    text = "completion"
    stop_reason = "stop_reason"
    model = "model"
    request_id = "id"
    stop_reasons: ClassVar = {"stop_sequence": "end_turn"}

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return type(payload.get("completion")) is str
