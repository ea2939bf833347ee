"""What a gateway answers instead of a stream: a status, and an error in the form that its client reads."""

from __future__ import annotations

import re

from ... import payload
from ...errors import UpstreamError
from ...rules import ERROR_CODES
from ..http.vendors import error_body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..asgi import Send

__all__ = ["CODES", "RefusedError", "raw_headers", "send_whole"]

CODES = {"rate_limited": 429, "context_length_exceeded": 400, "content_filtered": 400, "overloaded": 503}
"""The draft's code (section 5.3.6) -> the status that says the same. An error of another code is 502."""


NOT_SENT = re.compile(rb"[\0\r\n]")
"""Bytes that end a header, and may begin another (RFC 9110, section 5.5)."""


class RefusedError(UpstreamError):
    """Raised where a request gets no stream. ``code`` is one of section 5.3.6 or says what the status does; ``message``
    is for the client; ``path`` is where in the request the fault is. ``str`` is the code alone.

    Where the stream has begun, it is the error within it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        path: str = "",
        requirement: str = "",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(code, message)
        self.status = status
        self.path = path
        self.requirement = requirement
        self.headers = headers

    def body(self, vendor: str | None) -> bytes:
        """The JSON that says so: of a vendor for its clients, else ``{"error": {"code", "message", ...}}``."""
        if vendor is not None:
            code = self.code if self.code in ERROR_CODES else None
            return error_body(vendor, self.status, code, self.message)  # type: ignore[arg-type]
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.path:
            error["path"] = self.path
        if self.requirement:
            error["requirement"] = self.requirement
        return payload.dumps({"error": error}).encode()

    def status_for(self, vendor: str | None) -> int:
        """The status by which a vendor's clients know it: Anthropic's are told 529 where others are told 503."""
        return 529 if (vendor, self.status) == ("anthropic", 503) else self.status

    async def send(self, send: Send, vendor: str | None) -> None:
        """Sends it as the response."""
        headers = [("content-type", "application/json"), ("cache-control", "no-store"), *self.headers]
        await send_whole(send, self.status_for(vendor), headers, self.body(vendor))


async def send_whole(send: Send, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    """Sends a response that is no stream."""
    pairs = [*headers, ("content-length", str(len(body)))]
    await send({"type": "http.response.start", "status": status, "headers": raw_headers(pairs)})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def raw_headers(pairs: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as bytes: those of an upstream's as they came, whatever is in them, but for what no server sends."""
    found = [
        (name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")) for name, value in pairs
    ]
    return [(name, value) for name, value in found if not NOT_SENT.search(name + value)]
