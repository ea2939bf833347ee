"""Amazon Bedrock agents: InvokeAgent."""

from __future__ import annotations

import binascii
import codecs

from .. import rules
from ..framing.aws_event_stream import AWSEventStreamFraming
from .base import Dialect
from .bedrock import ERROR_CODES, failure
from .values import compact, items, members, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["BedrockAgent"]


class BedrockAgent(Dialect):
    """InvokeAgent. Chunks hold text itself. A return of control is the call of a tool, and the only stop reason that
    there is: without one the end of the stream is not seen, and it is not complete. Traces, files and attributions are
    extensions; the tokens that traces count are those of single steps."""

    name = "bedrock-agent"
    framings: ClassVar = {0: AWSEventStreamFraming}
    stop_reasons: ClassVar = {"returnControl": "tool_use"}
    error_codes: ClassVar = ERROR_CODES

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return (event == "chunk" and type(payload.get("bytes")) is str) or "invocationInputs" in payload

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        events: list[Event] = []
        if type(payload.get("bytes")) is str:
            events = self._chunk(payload["bytes"], payload.get("attribution"))
        elif "invocationInputs" in payload:
            events = self._control(payload)
        elif event in ("trace", "files"):
            events = [self.delta(0, extras={event: payload})] if payload else []
        else:
            events = self.fail(failure(payload, event))
        return self.begin({}, events)

    def _chunk(self, data: str, attribution: Any) -> list[Event]:
        try:
            words = self._decoder.decode(binascii.a2b_base64(data))
        except ValueError:
            self.reports.append(rules.BAD_PAYLOAD)
            words = ""
        extras = {"attribution": attribution}
        return [self.delta(0, words, extras=extras)] if words or any(extras.values()) else []

    def _control(self, payload: dict[str, Any]) -> list[Event]:
        for each in items(payload["invocationInputs"]):
            for kind, value in members(each).items():
                self._call(kind, members(value))
        return self.stop(0, "returnControl", {"invocation_id": payload.get("invocationId")})

    def _call(self, kind: str, given: dict[str, Any]) -> None:
        name = text(given.get("function")) or text(given.get("apiPath")) or text(given.get("actionGroup"))
        parameters = [members(each) for each in items(given.get("parameters"))]
        arguments = {text(each.get("name")): each.get("value") for each in parameters}
        call = self.calls.piece(0, None, "", name)
        if call is not None:
            if self.calls.charge(call, len(compact(given))):
                call.extras[kind] = given
            self.calls.append(call, compact(arguments))
        self.check_limit()
