"""Anthropic messages."""

from __future__ import annotations

from ..declaration import Delta
from ..framing.json_values import JSONFraming
from . import failures
from .base import Dialect
from .values import compact, items, members, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["Anthropic"]

EVENTS = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
)

UNKNOWN_USAGE = "llmstream:usage"
"""Beside counts that nobody counted: our own writer of this format has zeros there, which its clients need."""

PIECES = {"text": "text_delta", "thinking": "thinking_delta", "partial_json": "input_json_delta"}
"""What a delta without a type is, by the member that it has."""


def _form(kind: str, **form: Any) -> Delta:
    return Delta(index="index", when={"type": "content_block_delta", "delta.type": kind}, **form)


class Anthropic(Dialect):
    """Messages, also such as are no stream. ``index`` is that of the content block. The ``type`` in the payload counts,
    not the name of the event.

    What the vendor runs itself (``server_tool_use`` and the like, and their results), signatures, redacted thinking,
    citations and compaction texts are extensions under the vendor's word."""

    name = "anthropic"
    stops_end = False
    framings: ClassVar = {ord("{"): JSONFraming}
    model = "message.model"
    request_id = "message.id"
    deltas = (
        _form("text_delta", text="delta.text"),
        _form("thinking_delta", reasoning="delta.thinking"),
        _form("input_json_delta", arguments="delta.partial_json"),
    )
    stop_reasons: ClassVar = {
        "stop_sequence": "end_turn",
        "model_context_window_exceeded": "max_tokens",
        "refusal": "content_filter",
    }

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        kind = payload.get("type", event)
        if kind == "message":
            return type(payload.get("content")) is list and "stop_reason" in payload
        return kind in EVENTS or (kind == "error" and type(payload.get("error")) is dict)

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        kind = text(payload.get("type")) or event or ""
        index = number(payload.get("index")) or 0
        if kind == "content_block_delta":
            events = self._delta(index, members(payload.get("delta")))
        elif kind == "content_block_start":
            events = self._block(index, members(payload.get("content_block")))
        elif kind == "content_block_stop":
            events = self.release(index)
        elif kind == "message_start":
            events = self._tokens(members(payload.get("message")))
        elif kind == "message_delta":
            events = self._message(payload)
        elif kind == "message_stop":
            events = self.finish(True)
        elif kind == "message":
            return self._whole(payload)
        else:
            events = self.fail(failures.body(payload) or (None if self._started else failures.page(payload)))
        return self.begin(payload, events)

    def _whole(self, message: dict[str, Any]) -> list[Event]:
        """The message of a request that asked for no stream."""
        events: list[Event] = []
        for index, item in enumerate(items(message.get("content"))):
            block = members(item)
            events += self._block(index, block)
            extras = [{"citation": citation} for citation in items(block.get("citations"))]
            if text(block.get("type")) == "thinking" and block.get("signature"):
                extras.append({"signature": block["signature"]})
            events += [self.delta(index, extras=extra) for extra in extras]
        events += self._message({"delta": message, "usage": message.get("usage")})
        return [*self.begin({"message": message}, events), *self.finish(True)]

    def _tokens(self, holder: dict[str, Any]) -> list[Event]:
        if UNKNOWN_USAGE in holder:
            return []
        usage = members(holder.get("usage"))
        return self.count(usage.get("input_tokens"), usage.get("output_tokens"))

    def _block(self, index: int, block: dict[str, Any]) -> list[Event]:
        kind = text(block.get("type"))
        if kind == "text":
            self.see(index)
            words = text(block.get("text"))
            return [self.delta(index, words)] if words else []
        if kind == "thinking":
            thought = text(block.get("thinking"))
            return [self.delta(index, reasoning=thought)] if thought else []
        if kind == "redacted_thinking":
            return [self.delta(index, extras={kind: block.get("data")})]
        if kind.endswith("tool_use"):
            self._tool(index, kind, block)
            return []
        if kind and kind != "compaction":
            return [self.delta(index, extras={kind: block})]
        return []

    def _tool(self, index: int, kind: str, block: dict[str, Any]) -> None:
        self.see(index)
        call = self.calls.piece(index, 0, text(block.get("id")), text(block.get("name")))
        if call is not None:
            call.kind = "" if kind == "tool_use" else kind
            # Some gateways send the input whole here and no pieces after it.
            whole = members(block.get("input"))
            default = compact(whole) if whole else ""
            if self.calls.charge(call, len(default)):
                call.default = default
        self.check_limit()

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Event]:
        kind = text(delta.get("type")) or next((PIECES[name] for name in PIECES if name in delta), "")
        if kind == "text_delta":
            words = text(delta.get("text"))
            return [self.delta(index, words)] if words else []
        if kind == "thinking_delta":
            thought = text(delta.get("thinking"))
            return [self.delta(index, reasoning=thought)] if thought else []
        if kind == "input_json_delta":
            piece = text(delta.get("partial_json"))
            if piece:
                self.append_arguments(index, 0, piece)
            return []
        extras: dict[str, Any] = {}
        if kind == "signature_delta":
            extras["signature"] = delta.get("signature")
        elif kind == "citations_delta":
            extras["citation"] = delta.get("citation")
        elif kind == "compaction_delta":
            extras["compaction"] = delta.get("content")
        elif kind:
            extras[kind] = delta
        return [self.delta(index, extras=extras)] if any(extras.values()) else []

    def _message(self, payload: dict[str, Any]) -> list[Event]:
        delta = members(payload.get("delta"))
        reason = text(delta.get("stop_reason"))
        events: list[Event] = []
        if reason:
            extras = {name: delta.get(name) for name in ("stop_sequence", "stop_details", "container")}
            events = self.stop_open(reason, extras)
        return events + self._tokens(payload)
