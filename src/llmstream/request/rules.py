"""The table of what can be wrong with a request (draft, sections 4, 8 and 9.1), and how a finding is told.

A rule is named by the requirement of the draft that it checks ("R4.3-4": section 4.3, fourth requirement) or, where it
is ours, by "L-" and a name. It has two severities: that of strict mode, and that of lenient mode, where a deviation
that has a harmless reading is a warning.
"""

from __future__ import annotations

from ..errors import RequestError
from ..rules import MAX_VIOLATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

__all__ = ["RULES", "Findings", "RequestRule", "RequestViolation", "refusal"]

ROLES = frozenset({"system", "user", "assistant", "tool"})
"""Section 4.3."""


class RequestRule:
    """One kind of violation: ``requirement``, ``severity`` in strict mode, ``lenient`` (the severity in lenient mode)
    and ``message``, one line without any text of the request."""

    __slots__ = ("lenient", "message", "requirement", "severity")

    def __init__(self, requirement: str, severity: str, lenient: str, message: str) -> None:
        self.requirement = requirement
        self.severity = severity
        self.lenient = lenient
        self.message = message

    def __repr__(self) -> str:
        return f"RequestRule({self.requirement!r}, {self.severity!r}, {self.lenient!r}, {self.message!r})"


_table: list[RequestRule] = []


def _error(requirement: str, message: str) -> int:
    _table.append(RequestRule(requirement, "error", "error", message))
    return len(_table) - 1


def _deviation(requirement: str, message: str) -> int:
    """An error in strict mode, a warning in lenient mode."""
    _table.append(RequestRule(requirement, "error", "warning", message))
    return len(_table) - 1


def _warning(requirement: str, message: str) -> int:
    _table.append(RequestRule(requirement, "warning", "warning", message))
    return len(_table) - 1


# The body
TOO_LARGE = _error("L-SIZE", "over max_size, not read")
TOO_DEEP = _error("L-DEPTH", "nested deeper than max_depth, not read")
NOT_JSON = _error("R4.2-1", "not JSON")
NOT_OBJECT = _error("R4.2-1", "JSON but not an object")
BAD_UTF8 = _deviation("L-UTF8", "invalid UTF-8, replaced by U+FFFD")
BYTE_ORDER_MARK = _deviation("L-UTF8", "a byte order mark, skipped")
LONE_SURROGATE = _deviation("L-SURROGATE", "half a surrogate pair, replaced by U+FFFD")
DUPLICATE_KEY = _deviation("L-DUPLICATE", "repeated, the last one is read")
DUPLICATE_OTHER = _warning("L-DUPLICATE", "a member that the draft does not name is repeated, the last one is read")

# The envelope
BAD_VERSION = _error("R4.2-2", 'not "1.0"')
BAD_STREAM = _error("R4.2-3", "absent or not a boolean")
STREAM_FALSE = _deviation("R4.2-3", "false, which the draft does not cover")
BAD_MODEL = _error("R4.2-4", "absent or not a string")
BAD_MESSAGES = _error("R4.2-5", "absent or not an array")
NO_MESSAGES = _deviation("R4.2-5", "empty")
BAD_MESSAGE = _error("R4.2-5", "not an object")
BAD_TOOLS = _error("R4.2-6", "not an array")
BAD_GROUP = _error("R4.2-6", "not an object")
NULL_GROUP = _deviation("R4.2-6", "null, read as absent")

# Messages
BAD_ROLE = _error("R4.3-1", "absent or not a string")
UNKNOWN_ROLE = _deviation("R4.3-1", "none of the draft's words")
BAD_CONTENT = _error("R4.3-2", "absent or neither a string nor an array")
CONTENT_ABSENT = _deviation("R4.3-2", "absent beside tool_calls")
BAD_NAME = _error("R4.3-3", "not a string")
NULL_NAME = _deviation("R4.3-3", "null, read as absent")
NO_CALL_ID = _error("R4.3-4", "absent from a tool message or not a string")
BAD_CALL_ID = _error("R4.3-4", "not a string")
NULL_CALL_ID = _deviation("R4.3-4", "null, read as absent")
UNKNOWN_CALL_ID = _deviation("R4.3-5", "names no tool call of an earlier assistant message")

# Parts of a content
BAD_PART = _error("R4.3.1-1", "not an object")
BAD_PART_TYPE = _error("R4.3.1-1", "absent or not a string")
UNKNOWN_PART = _deviation("R4.3.1-1", "none of the draft's words")
BAD_PART_MEMBER = _error("R4.3.1-1", "absent or not a string")
NOT_BASE64 = _error("R4.3.1-2", "not base64")
LOOSE_BASE64 = _deviation("R4.3.1-2", "base64, but not in the standard alphabet with its padding")

# Tools and their calls
BAD_TOOL = _error("R4.4-1", "not an object")
BAD_TOOL_TEXT = _error("R4.4-1", "absent or not a string")
BAD_TOOL_PARAMETERS = _error("R4.4-1", "absent or not an object")
REPEATED_TOOL = _warning("L-TOOL", "name of an earlier tool")
BAD_CALLS = _error("R4.8-2", "not an array")
NULL_CALLS = _deviation("R4.8-2", "null, read as absent")
BAD_CALL = _error("R4.8-2", "not an object")
BAD_CALL_MEMBER = _error("R4.8-2", "absent or not a string")
REPEATED_CALL = _error("R5.3.4-2", "id of an earlier call of this message")
CALL_NOT_ANSWERED = _warning("R4.8-2", "no tool message answers this call")
CALLED_TOOL_MISSING = _warning("R4.8-2", "a tool that was called is not declared any more")

# Parameters, metadata, extensions
BAD_MAX_TOKENS = _deviation("R4.5-1", "not an integer, ignored")
BAD_TEMPERATURE = _deviation("R4.5-1", "not a number, ignored")
BAD_TOP_P = _deviation("R4.5-1", "not a number, ignored")
BAD_STOP_SEQUENCES = _deviation("R4.5-1", "not an array of strings, ignored")
BAD_REQUEST_ID = _warning("R4.6-2", "not a string, so it cannot be echoed")
BAD_EXTENSION_KEY = _deviation("R4.7-1", 'a key is not of the form "vendor:name"')

# A tool call that came in a stream
UNDECLARED_TOOL = _error("R8.2-1", "none of the request's tools")
ARGUMENTS_NOT_JSON = _error("R5.3.4-4", "not JSON text")
ARGUMENTS_REFUSED = _error("R8.2-1", "not what the tool's schema asks for")
SCHEMA_UNUSABLE = _error("R4.4-1", "the schema cannot be used, so the arguments are unchecked")
NOT_CONFIRMED = _error("R8.2-2", "not confirmed")

RULES: tuple[RequestRule, ...] = tuple(_table)


class RequestViolation:
    """One deviation: ``requirement`` of the draft ("R4.3-4") or a rule of ours ("L-..."), ``severity`` ("error" or
    "warning"), ``path`` (``messages[2].content[0].media_type``; empty: the whole) and ``message``.

    Neither has content of the request: a name in the path that the draft does not know is ``*``.
    """

    __slots__ = ("message", "path", "requirement", "severity")
    __match_args__ = ("requirement", "path")

    requirement: str
    severity: str
    path: str
    message: str

    def __init__(self, requirement: str, severity: str, path: str, message: str) -> None:
        set_once = object.__setattr__
        set_once(self, "requirement", requirement)
        set_once(self, "severity", severity)
        set_once(self, "path", path)
        set_once(self, "message", message)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a RequestViolation is immutable: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a RequestViolation is immutable: {name}")

    def _key(self) -> tuple[str, str, str, str]:
        return (self.requirement, self.severity, self.path, self.message)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, RequestViolation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return (RequestViolation, self._key())

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message} ({self.requirement})"

    def __repr__(self) -> str:
        return (
            f"RequestViolation(requirement={self.requirement!r}, severity={self.severity!r}, path={self.path!r}, "
            f"message={self.message!r})"
        )


class Findings:
    """Gathers findings in their order: the first ones, and the first error among the rest."""

    __slots__ = ("found", "has_error", "strict")

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.found: list[RequestViolation] = []
        self.has_error = False

    def add(self, rule: int, path: str, detail: str = "") -> None:
        """Records one finding; ``detail`` is more about it, and no content either."""
        broken = RULES[rule]
        severity = broken.severity if self.strict else broken.lenient
        if severity != "error" or self.has_error:
            if len(self.found) >= MAX_VIOLATIONS:
                return
        else:
            self.has_error = True
        message = f"{broken.message}: {detail}" if detail else broken.message
        self.found.append(RequestViolation(broken.requirement, severity, path, message))


def refusal(found: Sequence[RequestViolation]) -> RequestError | None:
    """The error that tells of the first error among findings, with all of them as its ``violations``."""
    for violation in found:
        if violation.severity == "error":
            error = RequestError(str(violation))
            error.violations = list(found)
            error.path, error.requirement = violation.path, violation.requirement
            return error
    return None
