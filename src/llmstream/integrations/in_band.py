"""The error within a stream, as each format has it, for a stream that somebody else has begun (draft, 5.3.6)."""

from __future__ import annotations

import struct
import zlib

from .._backend import quoted
from ..encoder import Encoder
from .http.vendors import error_body

__all__ = ["error_event", "vendor_of"]

FAMILIES = ("openai", "anthropic", "gemini")

CONNECT = {
    "rate_limited": "resource_exhausted",
    "overloaded": "unavailable",
    "context_length_exceeded": "invalid_argument",
    "content_filtered": "invalid_argument",
}
"""The draft's codes -> Connect's. Any other is "internal"."""

AWS = {
    "rate_limited": "throttlingException",
    "overloaded": "serviceUnavailableException",
    "context_length_exceeded": "validationException",
    "content_filtered": "validationException",
}
"""The draft's codes -> the exceptions of Bedrock's streams. Any other is "internalServerException"."""


def vendor_of(dialect: str) -> str:
    """The vendor whose errors a dialect has: "anthropic", "gemini", and "openai" for all others, as most have it."""
    return next((name for name in FAMILIES if dialect.startswith(name)), "openai")


def error_event(dialect: str, code: str, message: str, *, media_type: str = "text/event-stream", seq: int = 0) -> bytes:
    """The bytes that tell of an error in a stream under way and end it: of the standard one, ``error`` with the number
    ``seq`` and stream.end, after a stream.start where that number is 0. ``code`` is one of section 5.3.6. In the AWS
    event stream it is an exception, and in Connect the end of the stream, whatever the dialect."""
    if media_type == "application/vnd.amazon.eventstream":
        return _aws_exception(AWS.get(code, "internalServerException"), message)
    if media_type.startswith("application/connect"):
        words = quoted(CONNECT.get(code, "internal")), quoted(message)
        end = b'{"error":{"code":%b,"message":%b}}' % words
        return b"\2" + struct.pack(">I", len(end)) + end
    if dialect == "llm-stream" and not seq:
        encoder = Encoder()
        return encoder.start("") + encoder.error(code, message) + encoder.end()
    if dialect == "llm-stream":
        words = quoted(code), quoted(message)
        return (
            b'event: error\ndata: {"v":"1.0","seq":%d,"type":"error","code":%b,"message":%b}\n\n'
            b'event: stream.end\ndata: {"v":"1.0","seq":%d,"type":"stream.end"}\n\n'
        ) % (seq, *words, seq + 1)
    vendor = vendor_of(dialect)
    data = error_body(vendor, 503 if code == "overloaded" else 500, code, message)  # type: ignore[arg-type]
    if media_type != "text/event-stream":
        return data + b"\n"
    if dialect == "openai-responses":
        data = b'{"type":"error","code":%b,"message":%b}' % (quoted(code), quoted(message))
    name = b"event: error\n" if vendor == "anthropic" or dialect == "openai-responses" else b""
    return b"%bdata: %b\n\n" % (name, data)


def _aws_exception(name: str, message: str) -> bytes:
    data = b'{"message":%b}' % quoted(message)
    headers = b""
    for key, value in (
        (":exception-type", name),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ):
        headers += bytes([len(key)]) + key.encode() + b"\7" + struct.pack(">H", len(value)) + value.encode()
    frame = struct.pack(">II", len(headers) + len(data) + 16, len(headers))
    frame += struct.pack(">I", zlib.crc32(frame)) + headers + data
    return frame + struct.pack(">I", zlib.crc32(frame))
