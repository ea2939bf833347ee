"""The five-byte envelopes of Connect (connectrpc.com), gRPC and gRPC-Web: a byte of flags and a length, big-endian.

They differ in the flags and in how a stream ends: Connect with a last envelope of JSON, gRPC-Web with one of trailers,
gRPC outside of the body.
"""

from __future__ import annotations

from .. import payload
from ..errors import EventTooLargeError
from . import Frame
from .sized import FrameError, SizedFraming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = ["ConnectFraming", "EndFrame", "GRPCFraming", "GRPCWebFraming"]

COMPRESSED = 0x01
END = 0x02
TRAILERS = 0x80

_WINDOWS = {"gzip": 31, "deflate": 15}
"""Encoding -> the window bits by which zlib knows its format."""

_STATUSES = (
    "ok",
    "canceled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
)
"""The status codes of gRPC, by number, in Connect's words."""


class EndFrame(Frame):
    """The end of a stream: ``event`` is "end", or "error" where the call failed. ``data`` is JSON as Connect has it,
    ``{"error": {"code": ..., "message": ...}, "metadata": {...}}``, both optional; gRPC-Web's trailers are brought
    into that form. ``value`` is the object itself."""

    value: dict[str, Any]

    @property
    def error(self) -> dict[str, Any] | None:
        """The error; empty where there is one that says nothing."""
        found = self.value.get("error")
        return found if type(found) is dict else {} if "error" in self.value else None

    @property
    def metadata(self) -> dict[str, list[str]]:
        found = self.value.get("metadata")
        return found if type(found) is dict else {}


class GRPCFraming(SizedFraming):
    """Messages of gRPC, whatever the borders of the DATA frames; its status is in trailers of HTTP, not here.

    ``encoding`` is what the response names in ``grpc-encoding`` (Connect: ``connect-content-encoding``): gzip and
    deflate are read. None: it names none, and no message may be compressed. A message is compressed by itself, and
    what comes of it counts for ``max_event_size``.
    """

    head_size = 5
    end_flag: ClassVar[int] = 0

    def __init__(self, max_event_size: int, encoding: str | None = "gzip") -> None:
        super().__init__(max_event_size)
        self.encoding = encoding

    def _size(self, source: bytes, at: int) -> int:
        flags = source[at]
        if flags & ~(COMPRESSED | self.end_flag):
            raise FrameError("reserved flags")
        length = int.from_bytes(source[at + 1 : at + 5], "big")
        if flags & COMPRESSED and self.encoding not in _WINDOWS:
            raise FrameError("compressed without a known encoding")
        self._check(length)
        return 5 + length

    def _read(self, source: bytes, start: int, stop: int, offset: int) -> Frame:
        flags = source[start]
        data = source[start + 5 : stop]
        if flags & COMPRESSED and data:
            data = self._inflate(data)
        if flags & self.end_flag:
            self._ended = True
            return self._end(data, offset)
        return Frame(None, data, offset)

    def _end(self, data: bytes, offset: int) -> Frame:
        raise NotImplementedError

    def _inflate(self, data: bytes) -> bytes:
        import zlib

        inflater = zlib.decompressobj(_WINDOWS[self.encoding or ""])
        try:
            data = inflater.decompress(data, self.max_event_size + 1)
        except zlib.error:
            raise FrameError("compressed data") from None
        if len(data) > self.max_event_size:
            raise EventTooLargeError(f"a compressed message of more than {self.max_event_size} bytes")
        if not inflater.eof or inflater.unused_data:
            raise FrameError("compressed data")
        return data


class ConnectFraming(GRPCFraming):
    """Messages of Connect's streaming calls. The last envelope is the end, in JSON whatever the messages are in."""

    end_flag = END

    def close(self) -> list[Frame]:
        frames = super().close()
        if not (self._ended or self.broken or self.unfinished):
            self._cut("no end of the stream", self._fed)
        return frames

    def _end(self, data: bytes, offset: int) -> Frame:
        try:
            value = payload.loads(data.decode("utf-8", "replace"))
        except (RecursionError, ValueError):
            raise FrameError("end of the stream is not JSON") from None
        if type(value) is not dict:
            raise FrameError("end of the stream is not an object")
        metadata = value.get("metadata", {})
        error = value.get("error", {"code": "ok"})
        if (
            type(metadata) is not dict
            or not all(type(each) is list and all(type(one) is str for one in each) for each in metadata.values())
            or type(error) is not dict
            or type(error.get("code")) is not str
        ):
            self.reports.append((offset, "end of the stream of another form"))
        return _end_frame(value, data, offset)


class GRPCWebFraming(GRPCFraming):
    """Messages of gRPC-Web. The last envelope are the trailers; only a response without a body has none."""

    end_flag = TRAILERS

    def close(self) -> list[Frame]:
        frames = super().close()
        if self._fed and not (self._ended or self.broken or self.unfinished):
            self._cut("no trailers", self._fed)
        return frames

    def _end(self, data: bytes, offset: int) -> Frame:
        status = message = None
        metadata: dict[str, list[str]] = {}
        for line in data.split(b"\n"):
            name, colon, rest = line.partition(b":")
            key, value = name.decode("utf-8", "replace").strip().lower(), rest.strip()
            if key == "grpc-status":
                status = value
            elif key == "grpc-message":
                message = _unquoted(value)
            elif colon:
                metadata.setdefault(key, []).append(value.decode("utf-8", "replace"))
            elif line.strip():
                self.reports.append((offset, "a trailer without a colon"))
        found: dict[str, Any] = {}
        if status != b"0":
            number = int(status) if status is not None and status.isdigit() and len(status) < 3 else len(_STATUSES)
            if number >= len(_STATUSES):
                self.reports.append((offset, "no known grpc-status"))
                number = _STATUSES.index("unknown")
            found["error"] = {"code": _STATUSES[number]}
            if message:
                found["error"]["message"] = message
        if metadata:
            found["metadata"] = metadata
        return _end_frame(found, payload.dumps(found).encode(), offset)


def _end_frame(value: dict[str, Any], data: bytes, offset: int) -> EndFrame:
    frame = EndFrame("error" if "error" in value else "end", data, offset)
    frame.value = value
    return frame


def _unquoted(message: bytes) -> str:
    """A grpc-message, in which bytes are written as a percent sign and two digits."""
    import re

    plain = re.sub(rb"%([0-9a-fA-F]{2})", lambda found: bytes.fromhex(found[1].decode()), message)
    return plain.decode("utf-8", "replace")
