"""The AWS event stream (application/vnd.amazon.eventstream), in which Bedrock answers.

A frame is a prelude (its own length, that of its headers, a CRC32 of the two), headers, a payload and a CRC32 of all
before. Nothing of a frame is delivered unless both sums are right.
"""

from __future__ import annotations

import struct
import zlib

from .. import payload
from . import Frame
from .sized import FrameError, SizedFraming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    HeaderValue: TypeAlias = bool | int | bytes | str
    Header: TypeAlias = tuple[str, int, HeaderValue]

__all__ = ["AWSEventStreamFraming", "MessageFrame"]

MAX_HEADERS_SIZE = 128 * 1024
"""The most bytes of headers in a frame, as in botocore; it does not count for ``max_event_size``."""

MAX_HEADERS = 1024
MAX_VALUE_SIZE = 32767
"""As in aws-c-event-stream."""

MAX_KNOWN = 16
MAX_KNOWN_SIZE = 1024
"""How many headers are kept that have been read, and of which size: the same come again and again."""

_PRELUDE = struct.Struct(">III")
_SUM = struct.Struct(">I")
_SMALLEST = 16
_BYTES, _STRING, _UUID = 6, 7, 9
_NUMBERS = {
    2: struct.Struct(">b"),
    3: struct.Struct(">h"),
    4: struct.Struct(">i"),
    5: struct.Struct(">q"),
    8: struct.Struct(">q"),  # a timestamp, in milliseconds
}


class MessageFrame(Frame):
    """A message: ``kind``, its ``:message-type`` ("event" where it has none), and ``headers``, by name.

    ``event`` is the ``:event-type`` of an event. That of other kinds begins with the kind, so that who sees nothing
    else can tell them: "exception:throttlingException", "error:InternalFailure". No event type holds a colon. ``data``
    is the payload; for an error without one it is ``{"code": ..., "message": ...}``, from its headers.
    """

    kind: str
    fields: tuple[Header, ...]
    """Name, number of the type and value of every header, in order; a name may be repeated."""

    @property
    def headers(self) -> dict[str, HeaderValue]:
        """Header values by name, the last where one is repeated. Types 2 to 5 and 8 (a timestamp in milliseconds) are
        int, 6 and 9 (a UUID) are bytes."""
        return {name: value for name, _, value in self.fields}


class AWSEventStreamFraming(SizedFraming):
    """Frames of the AWS event stream. A header name that is repeated is reported and the last value is read."""

    head_size = _PRELUDE.size

    def __init__(self, max_event_size: int) -> None:
        super().__init__(max_event_size)
        self._known: dict[bytes, _Headers] = {}  # most frames have the headers of one before

    def _size(self, source: bytes, at: int) -> int:
        total, headers, checksum = _PRELUDE.unpack_from(source, at)
        if zlib.crc32(source[at : at + 8]) != checksum:
            raise FrameError("checksum of the prelude")
        if total < _SMALLEST:
            raise FrameError("total length")
        if headers > total - _SMALLEST:
            raise FrameError("length of the headers")
        if headers > MAX_HEADERS_SIZE:
            raise FrameError("headers too large")
        self._check(total - headers - _SMALLEST)
        return int(total)

    def _read(self, source: bytes, start: int, stop: int, offset: int) -> Frame:
        end = stop - _SUM.size
        if zlib.crc32(memoryview(source)[start:end]) != _SUM.unpack_from(source, end)[0]:
            raise FrameError("checksum of the message")
        begin = start + _PRELUDE.size
        after = begin + _PRELUDE.unpack_from(source, start)[1]
        headers = source[begin:after]
        found = self._known.get(headers) or self._meaning(headers)
        if found.repeated:
            self.reports.append((offset, "a header is repeated"))
        frame = MessageFrame(found.event, source[after:end] or found.data, offset)
        frame.kind = found.kind
        frame.fields = found.fields
        return frame

    def _meaning(self, headers: bytes) -> _Headers:
        found = _Headers(headers)
        if len(headers) <= MAX_KNOWN_SIZE:
            if len(self._known) == MAX_KNOWN:
                self._known.clear()
            self._known[headers] = found
        return found


class _Headers:
    """What the headers of a frame say: ``event``, ``kind``, ``data`` where there is no payload, ``fields`` and whether
    a name is ``repeated``. Raises FrameError."""

    __slots__ = ("data", "event", "fields", "kind", "repeated")

    def __init__(self, source: bytes) -> None:
        self.fields = _headers(source)
        headers = {name: value for name, _, value in self.fields}
        self.repeated = len(headers) < len(self.fields)
        texts = {name: value for name, value in headers.items() if type(value) is str}
        self.kind = texts.get(":message-type") or "event"
        self.event = texts.get(f":{self.kind}-type")
        self.data = b""
        if self.kind == "error":
            self.event = texts.get(":error-code")
            error = {"code": self.event, "message": texts.get(":error-message")}
            self.data = payload.dumps({key: value for key, value in error.items() if value}).encode()
        if self.kind != "event":
            self.event = f"{self.kind}:{self.event or ''}"


def _headers(data: bytes) -> tuple[Header, ...]:
    """All headers of a frame. Raises FrameError."""
    fields: list[Header] = []
    at, size = 0, len(data)
    while at < size:
        if len(fields) == MAX_HEADERS:
            raise FrameError("too many headers")
        begin = at + 1
        after = begin + data[at]
        if begin == after or after >= size:
            raise FrameError("name of a header")
        try:
            name = data[begin:after].decode()
        except UnicodeDecodeError:
            raise FrameError("name of a header") from None
        kind = data[after]
        at = after + 1
        value: HeaderValue
        if kind < 2:
            value = not kind
        elif kind in _NUMBERS:
            number = _NUMBERS[kind]
            if at + number.size > size:
                raise FrameError("value of a header")
            value = int(number.unpack_from(data, at)[0])
            at += number.size
        elif kind <= _UUID:
            length = 16
            if kind != _UUID:
                length = int.from_bytes(data[at : at + 2], "big")
                at += 2
            if at + length > size or length > MAX_VALUE_SIZE:
                raise FrameError("value of a header")
            value = data[at : at + length]
            at += length
            if kind == _STRING:
                try:
                    value = value.decode()
                except UnicodeDecodeError:
                    raise FrameError("value of a header") from None
        else:
            raise FrameError("type of a header")
        fields.append((name, kind, value))
    return tuple(fields)
