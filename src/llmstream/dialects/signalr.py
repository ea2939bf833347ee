"""SignalR's JSON hub protocol, in which Microsoft's Copilots answer: the user says where the text is."""

from __future__ import annotations

from ..framing.signalr import SignalRFraming
from . import failures
from .declared import Declared
from .values import at, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["SignalR"]

COMPLETION = 3


class SignalR(Declared):
    """Messages of one invocation, with paths from the message down::

        SignalR(text="item.text")                          # items of a stream
        SignalR(text="arguments[0].messages[0].text")      # calls of the client

    The stream is complete with a Completion."""

    name = "signalr"
    framings: ClassVar = {ord("{"): SignalRFraming}

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        kind = payload.get("type")
        known = type(kind) is int and 0 < kind < 10
        return known and (kind in (6, 7) or "invocationId" in payload or "target" in payload)

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        events: list[Event] = []
        error = text(payload.get("error"))
        if error:
            events = self.begin(payload, self.fail(failures.Failure([], error)))
        events += super().translate(payload, None)
        words = text(at(payload, self.text)) or text(at(payload, self.reasoning))
        if type(payload.get("type")) is int and payload["type"] == COMPLETION and not words:
            events += self.begin({}, self.ended()) + self.finish(True)
        return events
