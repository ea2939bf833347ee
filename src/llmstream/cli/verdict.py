"""What a stream that was read amounts to: an exit status and words for it."""

from __future__ import annotations

from .. import IncompleteStreamError, LLMStreamError, Parser, UpstreamError, rules
from .terminal import counted, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .. import Violation
    from .inputs import Input

__all__ = ["STATUSES", "verdict"]

STATUSES = (
    "Exit status: 0 where the stream is complete and has no errors; 1 where it stopped before its end, reports an "
    "error or breaks a rule{more}; 2 where no known dialect fits, the input cannot be read, the output cannot be "
    "written or the arguments are wrong; 130 where it was interrupted; 141 where the reader of the output went away."
)
"""For the help of the commands whose status this is; ``more`` is what else is 1."""

UNFIT = rules.RULES[rules.UNKNOWN_DIALECT].requirement
ENDS = (UNFIT, rules.RULES[rules.NOT_ENDED].requirement)
"""Violations that are told in words of their own: that no dialect fits, and that the end is missing."""


def verdict(parser: Parser, fault: LLMStreamError | None = None, source: Input | None = None) -> tuple[int, str]:
    """The exit status, and one line that says why it is not 0: the first cause, and what came of it. ``fault`` is what
    strict raised, ``source`` what was read, of which only its length counts.

    The words never hold text of the stream: of an error event only its code.
    """
    first = next(
        (each for each in parser.violations if each.severity == "error" and each.requirement not in ENDS), None
    )
    unfit = next((each for each in parser.violations if each.requirement == UNFIT), None)
    is_cut = isinstance(fault, IncompleteStreamError) or (fault is None and not parser.complete)
    failed = parser.error is not None or (fault is not None and not is_cut)
    # Behind more violations than a parser keeps, its dialect alone still tells.
    if unfit is not None or (parser.dialect == "auto" and not failed):
        if source is not None and not source.position:
            return 2, "it is empty"
        words = "no known dialect fits" if unfit is None else unfit.message
        is_cause = first is not None and (unfit is None or first.offset < unfit.offset)
        return 2, f"{words}; before that, {_told(first, parser)}" if first is not None and is_cause else words
    if isinstance(fault, UpstreamError) or (fault is None and parser.error is not None):
        code = fault.code if isinstance(fault, UpstreamError) else parser.error and parser.error.code
        return 1, f"the endpoint reported an error: {visible(code or 'without a code', 80)}"
    if fault is not None and not is_cut:
        return 1, str(fault)
    if is_cut:
        words = "the stream stopped before its end" if fault is None else str(fault)
        return 1, words if first is None else f"{words}; before that, {_told(first, parser)}"
    if parser.error_count:
        if first is None:  # behind more warnings than a parser keeps
            return 1, counted(parser.error_count, "error")
        return 1, _told(first, parser)
    return 0, ""


def _told(first: Violation, parser: Parser) -> str:
    """The first error, and how many others there are besides those of ENDS."""
    ends = sum(each.requirement in ENDS for each in parser.violations)
    more = parser.error_count - 1 - ends
    words = f", and {more} more" if more > 0 else ""
    return f"{first.requirement}: {first.message} (event {first.event}, offset {first.offset}){words}"
