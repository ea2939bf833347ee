"""SignalR's JSON hub protocol, in which Microsoft's Copilots answer: the user says where the text is."""

from __future__ import annotations

from ..framing.signalr import SignalRFraming
from . import failures
from .declared import Declared
from .values import at, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, Unpack

    from .._backend import Event
    from .declared import Paths

__all__ = ["SignalR"]

INVOCATION = 1
STREAM_ITEM = 2
COMPLETION = 3

MAX_ID = 256
"""Characters of an invocation's id that are compared."""


class SignalR(Declared):
    """Messages of one invocation, with paths from the message down::

        SignalR(text="item.text")                          # items of a stream
        SignalR(text="arguments[0].messages[0].text")      # calls of the client

    The stream is complete with the Completion of the invocation that it answers: that of the first message with text,
    or any where such a message names none. Completions of others are passed over."""

    name = "signalr"
    framings: ClassVar = {ord("{"): SignalRFraming}

    def __init__(
        self, name: str | None = None, *, stop_reasons: Mapping[str, str] | None = None, **paths: Unpack[Paths]
    ) -> None:
        super().__init__(name, stop_reasons=stop_reasons, **paths)
        self._invocation: str | None = None

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        kind = payload.get("type")
        known = type(kind) is int and 0 < kind < 10
        return known and (kind in (6, 7) or "invocationId" in payload or "target" in payload)

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        events: list[Event] = []
        kind = payload.get("type") if type(payload.get("type")) is int else None
        id, error = text(payload.get("invocationId"))[:MAX_ID], text(payload.get("error"))
        if kind == COMPLETION and self._invocation and id != self._invocation:
            return events
        if kind in (INVOCATION, STREAM_ITEM) or (kind == COMPLETION and payload.get("result") is not None):
            self.message()
        if error:
            events = self.begin(payload, self.fail(failures.Failure([], error)))
        events += super().translate(payload, None)
        if self._invocation is None and (text(at(payload, self.text)) or text(at(payload, self.reasoning))):
            self._invocation = id
        if kind == COMPLETION and (error or not self._is_undeclared):
            events += self.begin({}, self.ended()) + self.finish(True)
        return events
