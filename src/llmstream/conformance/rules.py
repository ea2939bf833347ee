"""The rules that only a checker can check: how the bytes are written (draft, section 5.1), and how a response fits its
request. All others are in ``llmstream.rules``; no kind of violation is in both."""

from __future__ import annotations

from .. import errors
from ..rules import Rule

__all__ = ["RULES"]

_table: list[Rule] = []


def _error(requirement: str, message: str) -> Rule:
    _table.append(Rule(requirement, "error", errors.LLMStreamError, message))
    return _table[-1]


def _warning(requirement: str, message: str) -> Rule:
    _table.append(Rule(requirement, "warning", errors.LLMStreamError, message))
    return _table[-1]


# The form of an event: an event line, a data line, a blank line
FOLDED = _error("R5.1-1", "the JSON goes on over lines without data:, as documents print it (--folded joins them)")
INDENTED = _error("R5.1-1", "field lines are indented, as documents print them (--folded reads them)")
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
UNDECLARED_TOOL = _error("R5.3.4-3", "name is none of the request's tools")
NOT_ECHOED = _warning("R4.6-2", "the request's request_id is not echoed")
ECHO_DIFFERS = _error("R4.6-2", "request_id differs from that of the request")

RULES: tuple[Rule, ...] = tuple(_table)
