"""What may be missing of an answer that came to its end."""

from __future__ import annotations

from .. import rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .._backend import Parser

    Fault: TypeAlias = tuple[str, str]
    """The code and the message of an error."""

__all__ = ["CUT", "LOST", "LOST_AT_THE_END", "lost"]

CUT = ("internal_error", rules.RULES[rules.NOT_ENDED].message)
"""What is wrong with a stream that ended too early."""

LOST = (
    rules.NOT_JSON,
    rules.NOT_OBJECT,
    rules.TOO_LARGE,
    rules.TOO_DEEP,
    rules.BAD_PAYLOAD,
    rules.NOTHING_READ,
    rules.NOT_DECLARED,
    rules.BAD_DELTA,
    rules.BAD_TEXT,
    rules.SEQUENCE_GAP,
)
"""Rules that are broken where something of the answer may be missing."""

LOST_AT_THE_END = (*LOST, rules.FRAMING, rules.FRAME_CUT, rules.TAIL_DROPPED)
"""The same where the bytes ended without an end mark. Before one no framing is broken: nothing is read after that."""


def lost(parser: Parser, kinds: tuple[int, ...]) -> Fault | None:
    """The error that says what was lost by a broken rule of these kinds, or by one that was only counted; else None."""
    errors = parser.error_count
    if not errors:
        return None
    found = [rules.RULES[kind] for kind in kinds]
    for violation in parser.violations:
        errors -= violation.severity == "error"
        for rule in found:
            if violation.requirement == rule.requirement and violation.message.startswith(rule.message):
                return ("internal_error", f"{violation.requirement}: {violation.message}")
    return ("internal_error", f"{errors} further errors") if errors else None
