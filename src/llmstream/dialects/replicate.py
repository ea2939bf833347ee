"""Replicate: the output of a prediction as plain text."""

from __future__ import annotations

from .. import payload as json_text
from . import failures
from .base import Dialect
from .values import members, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["Replicate"]


class Replicate(Dialect):
    """The stream of a prediction: events named output, whose data is text as it is, then error or done. Logs are
    extensions; there is neither a model nor a token count."""

    name = "replicate"
    json = False
    stops_end = False
    stop_reasons: ClassVar = {"": "end_turn"}

    @classmethod
    def recognises(cls, payload: Any, event: str | None) -> bool:
        return event == "output"

    def translate(self, payload: str, event: str | None) -> list[Event]:
        events: list[Event] = []
        if event == "output":
            self.see(0)
            events = [self.delta(0, payload)] if payload else []
        elif event == "logs":
            events = [self.delta(0, extras={"logs": payload})] if payload else []
        elif event == "error":
            found = _object(payload)
            events = self.fail(failures.find(found) or failures.plain(found) or failures.Failure([], payload))
        elif event == "done":
            events = self.stop(0, text(_object(payload).get("reason")))
            return self.begin({}, events) + self.finish(True)
        return self.begin({}, events)


def _object(data: str) -> dict[str, Any]:
    try:
        return members(json_text.loads(data))
    except (RecursionError, ValueError):
        return {}
