"""Errors in band: what a payload says where generation failed (draft, section 5.3.6)."""

from __future__ import annotations

from .values import text, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["Failure", "body", "find", "page", "plain", "read"]

PAGE = frozenset(
    (
        "__type",
        "code",
        "detail",
        "error_code",
        "errors",
        "instance",
        "message",
        "request_id",
        "requestId",
        "status",
        "statusCode",
        "success",
        "title",
        "type",
    )
)
"""What the error pages of web servers, gateways and RFC 9457 have, and nothing beside it."""

CODES = {
    "429": "rate_limited",
    "insufficient_quota": "rate_limited",
    "rate_limit": "rate_limited",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "too_many_requests": "rate_limited",
    "context_length_exceeded": "context_length_exceeded",
    "content_filter": "content_filtered",
    "content_policy_violation": "content_filtered",
    "500": "internal_error",
    "502": "internal_error",
    "api_error": "internal_error",
    "internal_error": "internal_error",
    "internal_server_error": "internal_error",
    "server_error": "internal_error",
    "503": "overloaded",
    "529": "overloaded",
    "overloaded": "overloaded",
    "overloaded_error": "overloaded",
    "service_unavailable": "overloaded",
}
"""Words that several vendors use -> the draft's."""


class Failure:
    """An error: ``words``, all that may name it, the most telling first; ``message``; and the vendor's own ``code``."""

    __slots__ = ("code", "message", "words")

    def __init__(self, words: list[str], message: str, code: Any = None) -> None:
        self.words = words
        self.message = message
        self.code = code if type(code) in (int, str) else next(iter(self.words), "")

    def meaning(self, codes: Mapping[str, str]) -> str:
        """The draft's word; where none fits, the vendor's own, a name before a number."""
        for each in self.words:
            known = codes.get(each) or CODES.get(each)
            if known:
                return known
        named = [each for each in self.words if not each.isdecimal()]
        return next(iter([*named, *self.words]), "internal_error")


def find(payload: dict[str, Any]) -> Failure | None:
    """The error that a payload reports in its ``error``, an object or the bare message."""
    error = payload.get("error")
    if type(error) is dict and error:
        return read(error)
    if type(error) is str and error:
        return read({**payload, "message": error})
    return None


def read(error: dict[str, Any]) -> Failure:
    """An object that is an error."""
    code = error.get("code")
    words = [word(each) for each in (code, error.get("type"), error.get("status"), error.get("error_type"))]
    message = text(error.get("message")) or text(error.get("detail")) or text(error.get("msg"))
    return Failure([each for each in words if each and each != "error"], message, code)


def body(value: Any) -> Failure | None:
    """The error that is the body of a response, or the first item of a body that is an array."""
    if type(value) is list and value:
        value = value[0]
    if type(value) is not dict:
        return None
    found = find(value)
    return read(value) if found is None and value.get("object") == "error" else found


def page(value: dict[str, Any]) -> Failure | None:
    """The error that a whole body is which has nothing but an error's words: ``{"detail": "Not Found"}``."""
    if not value or not PAGE.issuperset(value):
        return None
    details = value.get("detail")
    if type(details) is list and details and type(details[0]) is dict:
        return read(details[0])
    return plain(value)


def plain(value: Any) -> Failure | None:
    """The error that is the body of a response which nothing marks as one but its words: ``{"message": "..."}``, as
    AWS and Cohere have it, ``{"detail": "..."}`` or ``{"errors": [{"message": "..."}]}``."""
    if type(value) is not dict:
        return None
    errors = value.get("errors")
    if type(errors) is list and errors and type(errors[0]) is dict:
        return read(errors[0])
    found = read(value)
    return found if found.message else None
