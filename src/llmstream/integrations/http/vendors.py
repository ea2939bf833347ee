"""What a vendor's client asks over HTTP, as a standard request; and the errors that it understands. No I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

from ... import payload
from ...errors import RequestError
from ...negotiation import request_headers
from ...translation import from_vendor, writer_for
from .answers import events_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias

    from ...translation import Loss
    from ...translation.requests import Vendor

    Headers: TypeAlias = list[tuple[bytes, bytes]]
    """Names in lower case, and values, as they are sent: what is no ASCII goes on as it came."""

__all__ = [
    "MAX_ERROR_SIZE",
    "Answer",
    "Asked",
    "answered_headers",
    "error_body",
    "includes_usage",
    "read_request",
    "refused",
    "relayed_error",
    "status_of",
]

MAX_ERROR_SIZE = 64 * 1024
"""Bytes of an error's body that are read."""

PATHS = {
    "openai": re.compile(r"/chat/completions$"),
    "anthropic": re.compile(r"/messages$"),
    "gemini": re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent)$"),
}

SERVED = {
    "openai": "POST /chat/completions",
    "anthropic": "POST /messages",
    "gemini": "POST /models/{model}:generateContent or :streamGenerateContent",
}

AUTHORIZATION = b"authorization"

CARRIED = (
    AUTHORIZATION,
    b"user-agent",
    b"traceparent",
    b"tracestate",
    b"baggage",
    b"idempotency-key",
    b"x-request-id",
)
"""Headers of the client that the endpoint gets. Any other might hold what is meant for the vendor alone."""

KEYS = (b"x-api-key", b"x-goog-api-key", b"api-key")
"""Headers that hold a vendor's key; the endpoint gets it as a bearer token (RFC 6750, section 2.1)."""

SHOULD_RETRY = b"x-should-retry"

ANSWERED = (
    b"date",
    b"retry-after",
    b"retry-after-ms",
    SHOULD_RETRY,
    b"x-request-id",
    b"request-id",
    b"traceparent",
)
"""Headers of the endpoint that the client gets."""

CODES = {429: "rate_limited", 503: "overloaded", 529: "overloaded"}
"""Status -> the draft's code (section 5.3.6), where it has one."""

WORDS = {
    "openai": {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
    },
    "anthropic": {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
    },
    "gemini": {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"},
}
"""Status -> the vendor's word, where the draft has no code."""

STATUSES = {"rate_limited": 429, "context_length_exceeded": 400, "content_filtered": 400, "overloaded": 503}
"""The draft's code -> status. An error of another code is 500."""


class Asked(NamedTuple):
    """A request for the standard endpoint: its body and headers; whether the client wants a stream and, in it, the
    counts; and what could not be carried."""

    body: bytes
    headers: Headers
    stream: bool
    include_usage: bool
    lost: list[Loss]


class Answer(NamedTuple):
    """An answer to the client that is no stream: status, headers and body."""

    status: int
    headers: Headers
    body: bytes


def read_request(
    vendor: Vendor,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes,
) -> Asked | Answer:
    """The standard request that a vendor's client makes; the standard's answer is always a stream (section 4.2)."""
    found = PATHS[vendor].search(path)
    if method != "POST" or found is None:
        return refused(vendor, 404, f"only {SERVED[vendor]} has a translation")
    model, stream = None, None
    if vendor == "gemini":
        model, stream = found[1], found[2] == "streamGenerateContent"
        if stream and query.get("alt") != "sse":
            return refused(vendor, 400, "a stream is asked for by alt=sse")
    try:
        translated = from_vendor(body, vendor, model=model, stream=stream)
    except RequestError as error:
        return refused(vendor, 400, str(error))
    include_usage = not translated.stream or vendor != "openai" or includes_usage(body)
    request = translated.value.replace(stream=True)
    return Asked(request.to_json(), _headers(headers), translated.stream, include_usage, translated.lost)


def includes_usage(body: bytes) -> bool:
    """Whether a client of OpenAI asked for the counts; the body is known to be a request."""
    if b"include_usage" not in body:
        return False
    try:
        options = payload.read(body.decode("utf-8-sig", "replace")).get("stream_options")
    except ValueError:
        return False
    return isinstance(options, dict) and options.get("include_usage") is True


def _headers(given: Iterable[tuple[bytes, bytes]]) -> Headers:
    pairs = [(name.lower(), value) for name, value in given]
    found = [pair for pair in pairs if pair[0] in CARRIED]
    keys = [value for kind in KEYS for name, value in pairs if name == kind]
    if keys and AUTHORIZATION not in dict(pairs):
        found.append((AUTHORIZATION, b"Bearer " + keys[0]))
    ours = [(name.encode(), value.encode()) for name, value in request_headers()]
    return [*found, *ours, (b"accept-encoding", b"identity")]


def refused(vendor: Vendor, status: int, message: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> Answer:
    """The vendor's error for a status, of ours; asking again would not help."""
    kept = [pair for pair in _answered(headers) if pair[0] != SHOULD_RETRY]
    return Answer(status, _json([(SHOULD_RETRY, b"false"), *kept]), error_body(vendor, status, None, message))


def relayed_error(vendor: Vendor, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Answer:
    """The vendor's error for one that the endpoint answered with: its status, its code and its words."""
    code, message = _said(body)
    return Answer(status, _json(_answered(headers)), error_body(vendor, status, code, message))


def status_of(vendor: Vendor, code: str | None) -> int:
    """The status of an error that came within a stream, for a client that asked for none."""
    status = STATUSES.get(code or "", 500)
    return 529 if (vendor, status) == ("anthropic", 503) else status


def answered_headers(headers: Iterable[tuple[bytes, bytes]], content_type: str) -> Headers:
    """The headers of an answer that the endpoint gave."""
    return [(b"content-type", content_type.encode()), *_answered(headers)]


def error_body(vendor: Vendor, status: int, code: str | None, message: str) -> bytes:
    """The JSON by which a vendor tells an error. ``code`` is the draft's (section 5.3.6) or the endpoint's own."""
    word = code or CODES.get(status) or WORDS[vendor].get(status)
    word = word or (WORDS[vendor][400] if 400 <= status < 500 else "internal_error")
    *_, data = events_of(writer_for(vendor).fail(word, message))
    if vendor == "gemini":
        error = payload.loads(data)
        error["error"]["code"] = status
        data = payload.dumps(error)
    return data.encode()


def _said(body: bytes) -> tuple[str | None, str]:
    """Code and words of an error's body, in any of the common forms; its words are the endpoint's, for its client."""
    try:
        value: Any = payload.read(payload.without_lone_surrogates(body.decode("utf-8", "replace"))[0])
    except ValueError:
        return None, ""
    value = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(value, str):
        return None, value
    if not isinstance(value, dict):
        return None, ""
    code, message = (
        next((value[name] for name in names if isinstance(value.get(name), str) and value[name]), None)
        for names in (("code", "type"), ("message", "detail", "error_description"))
    )
    return code, message or ""


def _answered(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name.lower(), value) for name, value in headers if name.lower() in ANSWERED]


def _json(headers: Headers) -> Headers:
    return [(b"content-type", b"application/json"), *headers]
