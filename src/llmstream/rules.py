"""The one table of rules: what can be wrong with a stream, how bad it is, and the words for it.

Both twins of the engine record violations by the numbers of this table, so they cannot disagree about a word. A rule is
named by the requirement of the draft that it checks ("R5.2-1": section 5.2, first requirement) or, where the rule is
ours, by "L-" and a name. The table ``LIFECYCLE`` is section 5.4 of the draft.
"""

from __future__ import annotations

from . import errors

__all__ = ["EVENT_TYPES", "LIFECYCLE", "RULES", "Rule"]

MAX_VIOLATIONS = 1000
"""How many violations (and gaps) a parser keeps; further ones are only counted."""

MAX_BLOCKS = 4096
"""How many content blocks and tool-call ids a parser follows; further ones are delivered, but not checked."""

MAX_SEQUENCE = 2**53
"""The last sequence number that every JSON reader keeps exact (draft, section 8.4)."""

MAX_INTEGER = 2**63 - 1
"""The largest integer that is read; a larger one counts as unreadable."""

STOP_REASONS = frozenset({"end_turn", "max_tokens", "tool_use", "content_filter"})
"""Section 5.3.3."""

ERROR_CODES = frozenset({"rate_limited", "context_length_exceeded", "content_filtered", "internal_error", "overloaded"})
"""Section 5.3.6."""


class Rule:
    """One kind of violation: ``requirement``, ``severity`` ("error" or "warning"), the class raised in strict mode
    and ``message``, one line without any text of the stream."""

    __slots__ = ("error", "message", "requirement", "severity")

    def __init__(self, requirement: str, severity: str, error: type[errors.LLMStreamError], message: str) -> None:
        self.requirement = requirement
        self.severity = severity
        self.error = error
        self.message = message

    def __repr__(self) -> str:
        return f"Rule({self.requirement!r}, {self.severity!r}, {self.message!r})"


_table: list[Rule] = []


def _error(requirement: str, error: type[errors.LLMStreamError], message: str) -> int:
    _table.append(Rule(requirement, "error", error, message))
    return len(_table) - 1


def _warning(requirement: str, message: str) -> int:
    _table.append(Rule(requirement, "warning", errors.LLMStreamError, message))
    return len(_table) - 1


NONE = _warning("", "")

# The bytes
BAD_UTF8 = _warning("L-UTF8", "invalid UTF-8, replaced by U+FFFD")
TOO_LARGE = _error("L-SIZE", errors.EventTooLargeError, "event over max_event_size, not delivered")
TOO_DEEP = _error("L-DEPTH", errors.EnvelopeError, "JSON nested deeper than max_depth, not delivered")
LONE_SURROGATE = _error("L-SURROGATE", errors.EnvelopeError, "half a surrogate pair, replaced by U+FFFD")
TAIL_DELIVERED = _error("L-TAIL", errors.IncompleteStreamError, "last event without its blank line, delivered")
TAIL_DROPPED = _error("L-TAIL", errors.IncompleteStreamError, "last event without its blank line, dropped")
STRAY_BYTES = _warning("L-STRAY", "JSON outside the stream's framing")
FRAMING = _error("L-FRAMING", errors.EnvelopeError, "bytes that the framing does not allow")
FRAME_CUT = _error("L-TAIL", errors.IncompleteStreamError, "the framing's own end is missing, the last frame dropped")

# The envelope
NOT_JSON = _error("R5.1-3", errors.EnvelopeError, "data is not valid JSON")
NOT_OBJECT = _error("R5.1-3", errors.EnvelopeError, "data is JSON but not an object")
DUPLICATE_KEY = _error("L-DUPLICATE", errors.EnvelopeError, "a member that counts is repeated, the last one is read")
BAD_VERSION = _error("R5.2-1", errors.EnvelopeError, 'v is not "1.0"')
BAD_TYPE = _error("R5.2-4", errors.EnvelopeError, "type is absent or not a string")
TYPE_MISMATCH = _error("R5.2-5", errors.EnvelopeError, "type differs from the SSE event field")
TYPE_WITHOUT_EVENT = _warning("R5.2-5", "no SSE event field beside type")

# Sequence numbers
BAD_SEQUENCE = _error("R5.2-2", errors.SequenceError, "seq is absent or not an integer from 0")
SEQUENCE_NOT_AHEAD = _error("R5.2.1-1", errors.SequenceError, "seq is repeated or lower than before")
START_NOT_ZERO = _error("R5.2.1-2", errors.SequenceError, "stream.start does not have seq 0")
SEQUENCE_GAP = _error("R5.2.1-3", errors.SequenceError, "events were lost before this one")
SEQUENCE_TOO_HIGH = _error("R5.2.1-6", errors.SequenceError, "seq is over 2^53")

# Members of the events
BAD_MODEL = _error("R5.3.1-3", errors.EnvelopeError, "model is absent or not a string")
BAD_CREATED = _error("R5.3.1-3", errors.EnvelopeError, "created is absent or not an integer")
BAD_REQUEST_ID = _error("R5.3.1-4", errors.EnvelopeError, "request_id is not a string")
BAD_DELTA_INDEX = _error("R5.3.2-1", errors.EnvelopeError, "index is absent or not an integer from 0")
BAD_ROLE = _error("R5.3.2-1", errors.EnvelopeError, 'role is not "assistant"')
BAD_DELTA = _error("R5.3.2-1", errors.EnvelopeError, "delta is absent or not an object")
BAD_TEXT = _error("R5.3.2-2", errors.EnvelopeError, "delta.text is absent or not a string")
BAD_STOP_INDEX = _error("R5.3.3-1", errors.EnvelopeError, "index is absent or not an integer from 0")
BAD_STOP_REASON = _error("R5.3.3-1", errors.EnvelopeError, "stop_reason is absent or not a string")
UNKNOWN_STOP_REASON = _warning("R5.3.3-2", "stop_reason is none of the draft's words")
BAD_CALL_INDEX = _error("R5.3.4-1", errors.EnvelopeError, "index is absent or not an integer from 0")
BAD_CALL_ID = _error("R5.3.4-1", errors.EnvelopeError, "id is absent or not a string")
BAD_CALL_NAME = _error("R5.3.4-1", errors.EnvelopeError, "name is absent or not a string")
BAD_ARGUMENTS = _error("R5.3.4-1", errors.EnvelopeError, "arguments is absent or not a string")
REPEATED_CALL_ID = _error("R5.3.4-2", errors.EnvelopeError, "id of an earlier tool.call")
ARGUMENTS_NOT_JSON = _error("R5.3.4-4", errors.EnvelopeError, "arguments are not JSON text")
BAD_INPUT_TOKENS = _error("R5.3.5-1", errors.EnvelopeError, "input_tokens is absent or not an integer from 0")
BAD_OUTPUT_TOKENS = _error("R5.3.5-1", errors.EnvelopeError, "output_tokens is absent or not an integer from 0")
BAD_CODE = _error("R5.3.6-1", errors.EnvelopeError, "code is absent or not a string")
BAD_MESSAGE = _error("R5.3.6-1", errors.EnvelopeError, "message is absent or not a string")
UNKNOWN_CODE = _warning("R5.3.6-2", "code is none of the draft's words")
REQUEST_ID_DIFFERS = _error("R5.3.7-3", errors.EnvelopeError, "request_id differs from that of stream.start")

# Lifecycle
NOT_STARTED = _error("R5.3.1-1", errors.LifecycleError, "the first event is not stream.start")
SECOND_START = _error("R5.3.1-2", errors.LifecycleError, "a second stream.start")
SECOND_STOP = _error("R5.3-2", errors.LifecycleError, "a second content.stop for this block")
DELTA_AFTER_STOP = _error("R5.4-1", errors.LifecycleError, "content for a block after its content.stop")
BLOCK_NOT_STOPPED = _error("R5.4-1", errors.LifecycleError, "a block has no content.stop")
TOO_MANY_BLOCKS = _error("L-BLOCKS", errors.LifecycleError, "more blocks or tool calls than are followed")
SECOND_ERROR = _error("R5.3-5", errors.LifecycleError, "a second error event")
CONTENT_AFTER_ERROR = _error("R5.3.6-3", errors.LifecycleError, "content after an error event")
END_AFTER_ERROR_MISSING = _warning("R5.3.6-3", "no stream.end after the error event")
NO_USAGE = _warning("R5.3.5-3", "the stream has no usage event")
AFTER_END = _error("R5.3.7-1", errors.LifecycleError, "events after the end, not delivered")
NOT_ENDED = _error("R5.3.7-2", errors.IncompleteStreamError, "the stream stopped before its end")

# Vendors' streams
UNKNOWN_DIALECT = _error("L-DIALECT", errors.EnvelopeError, "no known dialect fits")
PARTIAL_USAGE = _warning("L-USAGE", "only one of the two token counts was sent")
CALL_WITHOUT_NAME = _warning("L-CALL", "a tool call without a name")
BAD_PAYLOAD = _error("L-PAYLOAD", errors.EnvelopeError, "a payload that is not of the dialect's form")

RULES: tuple[Rule, ...] = tuple(_table)

# The lifecycle of section 5.4: state, event type -> next state and the rule that is broken (NONE: legal).
EVENT_TYPES = (
    "stream.start",
    "content.delta",
    "content.stop",
    "tool.call",
    "usage",
    "error",
    "stream.end",
    "unknown",
)
STATES = ("new", "streaming", "errored", "ended")

_EVERY_EVENT_AFTER_THE_END = (("ended", AFTER_END),) * 8

LIFECYCLE: dict[str, tuple[tuple[str, int], ...]] = {
    "new": (
        ("streaming", NONE),
        ("streaming", NOT_STARTED),
        ("streaming", NOT_STARTED),
        ("streaming", NOT_STARTED),
        ("streaming", NOT_STARTED),
        ("errored", NOT_STARTED),
        ("ended", NOT_STARTED),
        ("streaming", NOT_STARTED),
    ),
    "streaming": (
        ("streaming", SECOND_START),
        ("streaming", NONE),
        ("streaming", NONE),
        ("streaming", NONE),
        ("streaming", NONE),
        ("errored", NONE),
        ("ended", NONE),
        ("streaming", NONE),
    ),
    "errored": (
        ("errored", SECOND_START),
        ("errored", CONTENT_AFTER_ERROR),
        ("errored", NONE),
        ("errored", CONTENT_AFTER_ERROR),
        ("errored", NONE),
        ("errored", SECOND_ERROR),
        ("ended", NONE),
        ("errored", NONE),
    ),
    "ended": _EVERY_EVENT_AFTER_THE_END,
}
