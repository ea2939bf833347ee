"""The JSON hub protocol of SignalR: records of JSON, each closed by the byte 0x1E, the handshake among them.

That byte cannot stand in JSON, so a record that is none does not harm the next one: it is handed on, and who reads
payloads finds it out.
"""

from __future__ import annotations

from .. import payload
from ..errors import EventTooLargeError
from . import Frame, Framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

__all__ = ["SignalRFraming"]

TYPES = {
    1: "Invocation",
    2: "StreamItem",
    3: "Completion",
    4: "StreamInvocation",
    5: "CancelInvocation",
    6: "Ping",
    7: "Close",
    8: "Ack",
    9: "Sequence",
}
"""The ``type`` of a record -> the name of its frame. A first record without a type is the "Handshake"."""

_SEPARATOR = b"\x1e"


class SignalRFraming(Framing):
    """Records of SignalR. A record is handed on as it is; its name says what it is, and an error that it brings stands
    in its ``error`` (of a Handshake, a Completion or a Close). The type may stand anywhere; where the record begins
    with it, that one counts. Time is linear in the bytes fed."""

    def __init__(self, max_event_size: int) -> None:
        super().__init__(max_event_size)
        self._held = bytearray()
        self._fed = 0
        self._first = True
        self._lead = _lead()

    def feed(self, chunk: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if self.broken:
            return frames
        at = 0
        while True:
            offset = self._fed + at - len(self._held)
            stop = chunk.find(_SEPARATOR, at)
            part = chunk[at:stop] if stop >= 0 else chunk[at:]
            if len(self._held) + len(part) > self.max_event_size:
                self._break("too large", offset)
                self._held = bytearray()
                message = f"a record of more than {self.max_event_size} bytes"
                raise EventTooLargeError(message, offset=offset, events=frames)
            if stop < 0:
                self._held += part
                break
            if self._held:
                self._held += part
                part, self._held = bytes(self._held), bytearray()
            frames.append(self._record(part, offset))
            at = stop + 1
        self._fed += len(chunk)
        return frames

    def close(self) -> list[Frame]:
        if self._held:
            self._cut("record cut", self._fed - len(self._held))
            self._held = bytearray()
        return []

    def _record(self, data: bytes, offset: int) -> Frame:
        first, self._first = self._first, False
        lead = self._lead.match(data)
        if lead:
            return Frame(TYPES[int(lead[1])], data, offset)
        try:
            value = payload.loads(data.decode("utf-8", "replace"))
        except (RecursionError, ValueError):
            return Frame(None, data, offset)
        if type(value) is not dict:
            return Frame(None, data, offset)
        kind = value.get("type")
        if kind is None and first:
            return Frame("Handshake", data, offset)
        name = TYPES.get(kind) if type(kind) is int else None
        if name == "Completion" and "result" in value and value.get("error") is not None:
            self.reports.append((offset, "result and error together"))
        return Frame(name, data, offset)


def _lead() -> re.Pattern[bytes]:
    """A record that begins with its type, as peers write it; a Completion is looked at closer."""
    import re

    return re.compile(rb'\{"type":([124-9])[,}]')
