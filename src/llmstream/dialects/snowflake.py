"""Snowflake Cortex: OpenAI's form, with tool calls of its own."""

from __future__ import annotations

from .openai import THOUGHTS, OpenAI

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Snowflake"]

FRAGMENTS = ("content", "tool_calls", "reasoning_details", *THOUGHTS)
"""Members of a delta that hold what it is about, whatever its type."""


class Snowflake(OpenAI):
    """Chat completions. A delta of ``inference:complete`` that calls a tool holds its id, its name or a piece of its
    input itself."""

    name = "snowflake"

    def read_tool_calls(self, index: int, delta: dict[str, Any]) -> None:
        super().read_tool_calls(index, delta)
        if delta.get("type") == "tool_use" and not any(delta.get(name) for name in FRAGMENTS):
            function = {"name": delta.get("name"), "arguments": delta.get("input")}
            self.read_tool_call(index, None, {"id": delta.get("tool_use_id"), "function": function})
