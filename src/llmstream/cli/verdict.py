"""What a stream that was read amounts to: an exit status and words for it."""

from __future__ import annotations

from .. import LLMStreamError, Parser, UpstreamError
from .terminal import visible

__all__ = ["verdict"]


def verdict(parser: Parser, fault: LLMStreamError | None = None) -> tuple[int, str]:
    """The exit status, and one line that says why it is not 0. ``fault`` is what strict raised.

    The words never hold text of the stream: of an error event only its code.
    """
    violations = parser.violations
    for violation in violations:
        if violation.requirement == "L-DIALECT":
            return 2, violation.message
    if isinstance(fault, UpstreamError) or (fault is None and parser.error is not None):
        code = fault.code if isinstance(fault, UpstreamError) else parser.error and parser.error.code
        return 1, f"the endpoint reported an error: {visible(code or 'without a code', 80)}"
    if fault is not None:
        return 1, str(fault)
    if not parser.complete:
        return 1, "the stream stopped before its end"
    if parser.error_count:
        first = next((violation for violation in violations if violation.severity == "error"), None)
        if first is None:  # behind more warnings than a parser keeps
            return 1, f"{parser.error_count} errors"
        where = f"event {first.event}, offset {first.offset}"
        more = f", and {parser.error_count - 1} more" if parser.error_count > 1 else ""
        return 1, f"{first.requirement}: {first.message} ({where}){more}"
    return 0, ""
