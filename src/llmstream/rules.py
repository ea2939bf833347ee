"""The one table of rules: what can be wrong with a stream or a request, how bad it is, and the words for it.

Both twins of the engine, the checker and the request envelope record violations by the numbers of this table, so they
cannot disagree about a word. A rule is named by the requirement of the draft that it checks ("R5.2-1": section 5.2,
first requirement) or, where the rule is ours, by "L-" and a name. The table ``LIFECYCLE`` is section 5.4 of the draft.
"""

from __future__ import annotations

from . import errors

__all__ = ["CHECKER", "EVENT_TYPES", "LIFECYCLE", "REQUEST", "RULES", "STREAM", "Rule"]

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

ROLES = frozenset({"system", "user", "assistant", "tool"})
"""Section 4.3."""


class Rule:
    """One kind of violation.

    ``requirement``  the one id of this kind
    ``severity``     "error" or "warning"
    ``strict``       the severity in strict mode; another one only where a request has a harmless reading
    ``error``        the class raised for it in strict mode
    ``message``      one line without any text of the stream or the request
    """

    __slots__ = ("error", "message", "requirement", "severity", "strict")

    def __init__(
        self, requirement: str, severity: str, strict: str, error: type[errors.LLMStreamError], message: str
    ) -> None:
        self.requirement = requirement
        self.severity = severity
        self.strict = strict
        self.error = error
        self.message = message

    def __repr__(self) -> str:
        return f"Rule({self.requirement!r}, {self.severity!r}, {self.message!r})"


_table: list[Rule] = []


def _error(requirement: str, error: type[errors.LLMStreamError], message: str) -> int:
    _table.append(Rule(requirement, "error", "error", error, message))
    return len(_table) - 1


def _deviation(requirement: str, message: str) -> int:
    """Of a request: an error in strict mode alone."""
    _table.append(Rule(requirement, "warning", "error", errors.RequestError, message))
    return len(_table) - 1


def _warning(requirement: str, message: str) -> int:
    _table.append(Rule(requirement, "warning", "warning", errors.LLMStreamError, message))
    return len(_table) - 1


NONE = _warning("", "")

# What the engine finds in a stream. The bytes
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
TEXT_AFTER_STOP = _warning("L-STOP", "text after a stop reason: a cut between two events cannot be told from the end")
BAD_PAYLOAD = _error("L-PAYLOAD", errors.EnvelopeError, "a payload that is not of the dialect's form")
NOTHING_READ = _error("L-DIALECT", errors.EnvelopeError, "payloads came, and none was of this dialect's form")
NOT_DECLARED = _error("L-DIALECT", errors.EnvelopeError, "no path says where the text of this format stands")

STREAM = range(NONE + 1, len(_table))
"""The rules of the engine, which every reader checks."""

# What only a checker finds: the form of an event, which is an event line, a data line and a blank line
_FOLDED = "the JSON goes on over lines without data:, as documents print it (--folded joins them)"
_INDENTED = "field lines are indented, as documents print them (--folded reads them)"
FOLDED = _error("R5.1-1", errors.LLMStreamError, _FOLDED)
INDENTED = _error("R5.1-1", errors.LLMStreamError, _INDENTED)
NO_DATA = _warning("R5.1-1", "an event line without a data line: no reader sees this event")
SEVERAL_EVENT_LINES = _warning("R5.1-1", "more than one event line")
SEVERAL_DATA_LINES = _warning("R5.1-1", "more than one data line")
DATA_BEFORE_EVENT = _warning("R5.1-1", "the event line comes after the data line")
ID_OR_RETRY = _warning("R5.1-1", "an id or retry line, which the draft does not use")
OTHER_LINE = _warning("R5.1-1", "a line that is no field of Server-Sent Events")

# Between the events
MILLISECONDS = _warning("R5.3.1-3", "created is no time in seconds; milliseconds?")
STOP_AFTER_CALL = _warning("R4.8-1", 'a block with a tool.call stopped with another stop_reason than "tool_use"')

# With the request
UNDECLARED_TOOL = _error("R5.3.4-3", errors.LLMStreamError, "a tool that the request does not declare")
NOT_ECHOED = _warning("R4.6-2", "the request's request_id is not echoed")
ECHO_DIFFERS = _error("R4.6-2", errors.LLMStreamError, "request_id differs from that of the request")

CHECKER = range(STREAM.stop, len(_table))
"""The rules that a checker adds."""

# What is found in a request (sections 4 and 9.1). The body
REQUEST_TOO_LARGE = _error("L-SIZE", errors.RequestError, "over max_size, not read")
REQUEST_TOO_DEEP = _error("L-DEPTH", errors.RequestError, "nested deeper than max_depth, not read")
REQUEST_NOT_JSON = _error("R4.2-1", errors.RequestError, "not JSON")
REQUEST_NOT_OBJECT = _error("R4.2-1", errors.RequestError, "JSON but not an object")
REQUEST_BAD_UTF8 = _deviation("L-UTF8", "invalid UTF-8, replaced by U+FFFD")
REQUEST_BYTE_ORDER_MARK = _deviation("L-UTF8", "a byte order mark, skipped")
REQUEST_LONE_SURROGATE = _deviation("L-SURROGATE", "half a surrogate pair, replaced by U+FFFD")
REQUEST_DUPLICATE_KEY = _deviation("L-DUPLICATE", "repeated, the last one is read")
REQUEST_DUPLICATE_OTHER = _warning("L-DUPLICATE", "repeated, the last one is read; the draft does not name it")

# The envelope
REQUEST_BAD_VERSION = _error("R4.2-2", errors.RequestError, 'not "1.0"')
REQUEST_BAD_STREAM = _error("R4.2-3", errors.RequestError, "absent or not a boolean")
REQUEST_STREAM_FALSE = _deviation("R4.2-3", "false, which the draft does not cover")
REQUEST_BAD_MODEL = _error("R4.2-4", errors.RequestError, "absent or not a string")
REQUEST_BAD_MESSAGES = _error("R4.2-5", errors.RequestError, "absent or not an array")
REQUEST_NO_MESSAGES = _deviation("R4.2-5", "empty")
REQUEST_BAD_MESSAGE = _error("R4.2-5", errors.RequestError, "not an object")
REQUEST_BAD_TOOLS = _error("R4.2-6", errors.RequestError, "not an array")
REQUEST_BAD_GROUP = _error("R4.2-6", errors.RequestError, "not an object")
REQUEST_NULL_GROUP = _deviation("R4.2-6", "null, read as absent")

# Messages
REQUEST_BAD_ROLE = _error("R4.3-1", errors.RequestError, "absent or not a string")
REQUEST_UNKNOWN_ROLE = _deviation("R4.3-1", "none of the draft's words")
REQUEST_BAD_CONTENT = _error("R4.3-2", errors.RequestError, "absent or neither a string nor an array")
REQUEST_CONTENT_ABSENT = _deviation("R4.3-2", "absent beside tool_calls")
REQUEST_BAD_NAME = _error("R4.3-3", errors.RequestError, "not a string")
REQUEST_NULL_NAME = _deviation("R4.3-3", "null, read as absent")
REQUEST_NO_CALL_ID = _error("R4.3-4", errors.RequestError, "absent from a tool message or not a string")
REQUEST_BAD_CALL_ID = _error("R4.3-4", errors.RequestError, "not a string")
REQUEST_NULL_CALL_ID = _deviation("R4.3-4", "null, read as absent")
REQUEST_UNKNOWN_CALL_ID = _deviation("R4.3-5", "names no tool call of an earlier assistant message")

# Parts of a content
REQUEST_BAD_PART = _error("R4.3.1-1", errors.RequestError, "not an object")
REQUEST_UNKNOWN_PART = _deviation("R4.3.1-1", "none of the draft's words")
REQUEST_BAD_PART_MEMBER = _error("R4.3.1-1", errors.RequestError, "absent or not a string")
REQUEST_NOT_BASE64 = _error("R4.3.1-2", errors.RequestError, "not base64")
REQUEST_LOOSE_BASE64 = _deviation("R4.3.1-2", "base64, but not in the standard alphabet with its padding")

# Tools and their calls
REQUEST_BAD_TOOL = _error("R4.4-1", errors.RequestError, "not an object")
REQUEST_BAD_TOOL_TEXT = _error("R4.4-1", errors.RequestError, "absent or not a string")
REQUEST_BAD_TOOL_PARAMETERS = _error("R4.4-1", errors.RequestError, "absent or not an object")
REQUEST_REPEATED_TOOL = _warning("L-TOOL", "name of an earlier tool")
REQUEST_BAD_CALLS = _error("R4.8-2", errors.RequestError, "not an array")
REQUEST_NULL_CALLS = _deviation("R4.8-2", "null, read as absent")
REQUEST_BAD_CALL = _error("R4.8-2", errors.RequestError, "not an object")
REQUEST_BAD_CALL_MEMBER = _error("R4.8-2", errors.RequestError, "absent or not a string")
REQUEST_REPEATED_CALL = _error("R5.3.4-2", errors.RequestError, "id of an earlier call of this message")
REQUEST_CALL_NOT_ANSWERED = _warning("R4.8-2", "no tool message answers this call")
REQUEST_CALLED_TOOL_MISSING = _warning("R4.8-2", "a tool that was called is not declared any more")

# Parameters, metadata, extensions
REQUEST_BAD_MAX_TOKENS = _deviation("R4.5-1", "not an integer, ignored")
REQUEST_BAD_NUMBER = _deviation("R4.5-1", "not a number, ignored")
REQUEST_BAD_STOP_SEQUENCES = _deviation("R4.5-1", "not an array of strings, ignored")
REQUEST_BAD_REQUEST_ID = _warning("R4.6-2", "not a string, so it cannot be echoed")
REQUEST_BAD_EXTENSION_KEY = _deviation("R4.7-1", 'a key is not of the form "vendor:name"')

# What a client finds wrong with a tool call, beside UNDECLARED_TOOL and ARGUMENTS_NOT_JSON (section 8.2)
ARGUMENTS_REFUSED = _error("R8.2-1", errors.RequestError, "not what the tool's schema asks for")
SCHEMA_UNUSABLE = _error("R4.4-1", errors.RequestError, "the schema cannot be used, so the arguments are unchecked")
CALL_NOT_CONFIRMED = _error("R8.2-2", errors.RequestError, "not confirmed")

REQUEST = range(CHECKER.stop, len(_table))
"""The rules of requests and of the calls that answer them."""

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
