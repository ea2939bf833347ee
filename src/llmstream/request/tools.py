"""The tool loop on the client's side (draft, sections 4.8 and 8.2): calls are checked before they are run, and the next
request repeats them with their results."""

from __future__ import annotations

from .. import rules
from .._backend import ContentDelta, ToolCall
from .findings import Findings
from .model import Message, Request
from .parts import Part
from .reading import read
from .values import MAX_DEPTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from .._backend import Event
    from ..result import StreamResult
    from .findings import RequestViolation
    from .model import Output, Tool

    Confirm = Callable[[ToolCall, Tool], bool]
    """Decides whether a call may run: ask the user where it has side effects. ``True``, and nothing else, allows."""

    SchemaCheck = Callable[[Mapping[str, Any], Any], Iterable[tuple[int, str, str]]]
    """Compares arguments with a JSON Schema: rule, path in the arguments and detail of each fault."""

__all__ = ["check_tool_call", "exchange", "screen_tool_calls"]

SCHEMA_CHECK = "llmstream.integrations.jsonschema"
"""The module whose ``schema_faults`` compares, where its library is installed; loaded when it is first needed."""


def check_tool_call(
    call: ToolCall, tools: Request | Iterable[Tool], *, schema: SchemaCheck | None = None
) -> list[RequestViolation]:
    """What is wrong with a tool call, given the tools that the request declared: its name (R5.3.4-3), its arguments as
    JSON text (R5.3.4-4), and the arguments against the tool's JSON Schema (R8.2-1).

    ``schema`` does the last. Without it the library of the extra ``schema`` does, and where that is not installed the
    arguments are not compared. Run no call for which this list is not empty.
    """
    return _checked(call, tools, schema)[1]


def screen_tool_calls(
    calls: StreamResult | Iterable[Event],
    tools: Request | Iterable[Tool],
    *,
    confirm: Confirm,
    schema: SchemaCheck | None = None,
) -> tuple[list[ToolCall], list[tuple[ToolCall, list[RequestViolation]]]]:
    """The calls that may run, and the refused ones, each with what is wrong with it.

    ``confirm`` is asked for every call that ``check_tool_call`` finds nothing wrong with (R8.2-2); only ``True`` lets
    it run. A call without an id, or with that of an earlier one, is refused: it could not be answered (R5.3.4-1,
    R5.3.4-2). Whether the stream ended and did not fail is for the caller to ask
    (``result.complete``, ``result.error is None``).
    """
    declared = list(_declared(tools))
    approved: list[ToolCall] = []
    refused: list[tuple[ToolCall, list[RequestViolation]]] = []
    seen: set[str | None] = set()
    for call in _said(calls)[1]:
        tool, found = _checked(call, declared, schema)
        if call.id is None or call.id in seen:
            # Before it is asked for: it may have side effects.
            found = [*found, *_finding(rules.BAD_CALL_ID if call.id is None else rules.REPEATED_CALL_ID, "id")]
        seen.add(call.id)
        if tool is not None and not found:
            if confirm(call, tool) is True:
                approved.append(call)
                continue
            found = _finding(rules.CALL_NOT_CONFIRMED, "")
        refused.append((call, found))
    return approved, refused


def _finding(rule: int, path: str) -> list[RequestViolation]:
    findings = Findings(strict=True)
    findings.add(rule, path)
    return findings.found


def exchange(result: StreamResult | Iterable[Event], outputs: Mapping[str, Output]) -> list[Message]:
    """The messages that a response and the outputs of its tool calls add to the history (R4.8-2)."""
    text, calls = _said(result)
    if not calls:
        raise ValueError("the response has no tool call")
    left = dict(outputs)
    messages = [Message(role="assistant", content=text or None, tool_calls=calls)]
    for number, call in enumerate(calls):
        if call.id not in left:
            raise ValueError(f"no output for tool call {number}, or a second call with its id")
        messages.append(Message(role="tool", tool_call_id=call.id, content=_output(left.pop(call.id))))
    if left:
        raise ValueError("an output for a call that the response does not have")
    return messages


def _output(value: Any) -> str | list[Part]:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (bytes, dict)):
        raise TypeError(f"the output of a tool is a str or parts, not {type(value).__name__}")
    return list(value)


def _said(result: StreamResult | Iterable[Event]) -> tuple[str, list[ToolCall]]:
    calls: list[ToolCall] | None = getattr(result, "tool_calls", None)
    if calls is not None:
        return result.text, list(calls)  # type: ignore[union-attr]
    text: list[str] = []
    calls = []
    for event in result:  # type: ignore[union-attr]
        if isinstance(event, ContentDelta):
            text.append(event.text)
        elif isinstance(event, ToolCall):
            calls.append(event)
    return "".join(text), calls


def _declared(tools: Request | Iterable[Tool]) -> Iterable[Tool]:
    return tools.tools if isinstance(tools, Request) else tools


def _checked(
    call: ToolCall, tools: Request | Iterable[Tool], schema: SchemaCheck | None
) -> tuple[Tool | None, list[RequestViolation]]:
    findings = Findings(strict=True)
    tool = next((tool for tool in _declared(tools) if tool.name is not None and tool.name == call.name), None)
    if tool is None:
        findings.add(rules.UNDECLARED_TOOL, "name")
    if call.arguments is None:
        findings.add(rules.ARGUMENTS_NOT_JSON, "arguments")
        return tool, findings.found
    arguments, odd, fault = read(call.arguments, max_size=rules.MAX_INTEGER, max_depth=MAX_DEPTH)
    if fault is not None:
        rule = rules.ARGUMENTS_NOT_JSON if fault[0] == rules.REQUEST_NOT_JSON else fault[0]
        findings.add(rule, "arguments")
    elif odd.told:  # what another reader of the same text may read otherwise
        findings.add(odd.told[0][0], "arguments")
    elif tool is not None:
        check = schema or _installed()
        if check is not None:
            for rule, path, detail in check(tool.parameters, arguments):
                findings.add(rule, path, detail)
    return tool, findings.found


def _installed() -> SchemaCheck | None:
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("jsonschema") is None:
        return None
    check: SchemaCheck = import_module(SCHEMA_CHECK).schema_faults
    return check
