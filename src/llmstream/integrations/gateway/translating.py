"""A vendor's request for an upstream that speaks another format (draft, section 7.1): through the standard request."""

from __future__ import annotations

from typing import NamedTuple

from ...translation import from_vendor
from ..http.vendors import includes_usage
from .refusing import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...request import Request
    from ...translation import Loss
    from ...translation.requests import Vendor
    from .routing import Route

__all__ = ["LOST", "VendorClient", "lost_header", "read_request"]

LOST = "llmstream-lost"
"""The response header that names what could not be carried, by its path."""

MAX_LOST = 50
"""Paths in that header; of more, "..." tells."""


class VendorClient(NamedTuple):
    """What a vendor's client reads: whose format, whether a stream or a whole answer, and whether the counts."""

    vendor: Vendor
    stream: bool
    include_usage: bool


def read_request(
    route: Route, query: list[tuple[str, str]], body: bytes, max_size: int
) -> tuple[Request, VendorClient, list[Loss]]:
    """The standard request that a vendor's client makes, what the client reads, and what could not be carried. The
    standard's answer is always a stream (section 4.2). Raises RequestError for what is no request of the vendor's."""
    vendor: Vendor = route.vendor  # type: ignore[assignment]
    stream = None
    if vendor == "gemini":
        stream = "stream" in route.tail
        if stream and ("alt", "sse") not in query:
            raise RefusedError(400, "invalid_request", "a stream is asked for by alt=sse")
    found = from_vendor(body, vendor, model=route.model, stream=stream, max_size=max_size)
    wants_counts = not found.stream or vendor != "openai" or includes_usage(body)
    return found.value.replace(stream=True), VendorClient(vendor, found.stream, wants_counts), found.lost


def lost_header(lost: list[Loss]) -> list[tuple[str, str]]:
    """The header that tells of losses, none where nothing was lost. A path has no content of the request."""
    if not lost:
        return []
    paths = [loss.path for loss in lost[:MAX_LOST]]
    if len(lost) > MAX_LOST:
        paths.append("...")
    return [(LOST, ", ".join(paths))]
