"""The error within a stream, as each format has it, for a stream that somebody else has begun (draft, 5.3.6)."""

from __future__ import annotations

from .._backend import quoted
from .http.vendors import error_body

__all__ = ["error_event", "vendor_of"]

FAMILIES = ("openai", "anthropic", "gemini")


def vendor_of(dialect: str) -> str:
    """The vendor whose errors a dialect has: "anthropic", "gemini", and "openai" for all others, as most have it."""
    return next((name for name in FAMILIES if dialect.startswith(name)), "openai")


def error_event(dialect: str, code: str, message: str, *, media_type: str = "text/event-stream", seq: int = 0) -> bytes:
    """The bytes that tell of an error in a stream under way and end it: of the standard one, ``error`` with the number
    ``seq`` and stream.end. ``code`` is one of section 5.3.6."""
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
