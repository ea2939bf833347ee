"""What is wrong with a request envelope: a walk over its JSON values, whatever their types (draft, section 4)."""

from __future__ import annotations

from .. import rules
from .findings import Findings
from .parts import KINDS, base64_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .reading import Oddities

__all__ = ["examine"]


def examine(envelope: dict[str, Any], oddities: Oddities | None, strict: bool) -> Findings:
    """All that is wrong with an envelope, after what was odd about the JSON that it was read from."""
    findings = Findings(strict)
    if oddities is not None:
        oddities.tell(findings)
    if envelope.get("version") != "1.0":
        findings.add(rules.REQUEST_BAD_VERSION, "version")
    stream = envelope.get("stream")
    if stream is not True:
        findings.add(rules.REQUEST_STREAM_FALSE if stream is False else rules.REQUEST_BAD_STREAM, "stream")
    if not isinstance(envelope.get("model"), str):
        findings.add(rules.REQUEST_BAD_MODEL, "model")
    history = _History(findings)
    messages = envelope.get("messages")
    if not isinstance(messages, list):
        findings.add(rules.REQUEST_BAD_MESSAGES, "messages")
    else:
        if not messages:
            findings.add(rules.REQUEST_NO_MESSAGES, "messages")
        for number, message in enumerate(messages):
            history.take(message, f"messages[{number}]")
    history.close(_tools(envelope, findings))
    _parameters(envelope, findings)
    metadata = _group(envelope, "metadata", findings)
    if "request_id" in metadata and not isinstance(metadata["request_id"], str):
        findings.add(rules.REQUEST_BAD_REQUEST_ID, "metadata.request_id")
    for key in _group(envelope, "extensions", findings):
        if ":" not in key[1:-1]:
            findings.add(rules.REQUEST_BAD_EXTENSION_KEY, "extensions")
    return findings


class _History:
    """The messages in their order, and the calls that they speak of."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.add = findings.add
        self.called: set[str] = set()  # ids of all calls so far
        self.open: dict[str, str] = {}  # id of a call without an answer -> its path
        self.names: dict[str, str] = {}  # name of a called tool -> the path of its first call

    def take(self, message: Any, path: str) -> None:
        if not isinstance(message, dict):
            self.add(rules.REQUEST_BAD_MESSAGE, path)
            return
        role = message.get("role")
        if not isinstance(role, str):
            self.add(rules.REQUEST_BAD_ROLE, f"{path}.role")
        elif role not in rules.ROLES:
            self.add(rules.REQUEST_UNKNOWN_ROLE, f"{path}.role")
        calls: list[Any] = []
        if role == "assistant":
            found = message.get("tool_calls", calls)
            if isinstance(found, list):
                calls = found
            else:
                self.add(rules.REQUEST_NULL_CALLS if found is None else rules.REQUEST_BAD_CALLS, f"{path}.tool_calls")
        self._content(message, bool(calls), f"{path}.content")
        name = message.get("name", "")
        if not isinstance(name, str):
            self.add(rules.REQUEST_NULL_NAME if name is None else rules.REQUEST_BAD_NAME, f"{path}.name")
        self._answer(message, role == "tool", f"{path}.tool_call_id")
        self._calls(calls, f"{path}.tool_calls")

    def _content(self, message: dict[str, Any], has_calls: bool, path: str) -> None:
        content = message.get("content")
        if isinstance(content, list):
            for number, part in enumerate(content):
                _part(part, f"{path}[{number}]", self.findings)
        elif content is None and has_calls:
            if "content" not in message:
                self.add(rules.REQUEST_CONTENT_ABSENT, path)
        elif not isinstance(content, str):
            self.add(rules.REQUEST_BAD_CONTENT, path)

    def _answer(self, message: dict[str, Any], required: bool, path: str) -> None:
        call = message.get("tool_call_id")
        if isinstance(call, str):
            if required:
                self.open.pop(call, None)
                if call not in self.called:
                    self.add(rules.REQUEST_UNKNOWN_CALL_ID, path)
        elif required:
            self.add(rules.REQUEST_NO_CALL_ID, path)
        elif "tool_call_id" in message:
            self.add(rules.REQUEST_NULL_CALL_ID if call is None else rules.REQUEST_BAD_CALL_ID, path)

    def _calls(self, calls: list[Any], path: str) -> None:
        own: set[str] = set()
        for number, call in enumerate(calls):
            here = f"{path}[{number}]"
            if not isinstance(call, dict):
                self.add(rules.REQUEST_BAD_CALL, here)
                continue
            for member in ("id", "name", "arguments"):
                if not isinstance(call.get(member), str):
                    self.add(rules.REQUEST_BAD_CALL_MEMBER, f"{here}.{member}")
            name, id = call.get("name"), call.get("id")
            if isinstance(name, str):
                self.names.setdefault(name, f"{here}.name")
            if isinstance(id, str):
                if id in own:
                    self.add(rules.REQUEST_REPEATED_CALL, f"{here}.id")
                own.add(id)
                self.open[id] = f"{here}.id"
        self.called |= own

    def close(self, tools: set[str]) -> None:
        for path in self.open.values():
            self.add(rules.REQUEST_CALL_NOT_ANSWERED, path)
        for name, path in self.names.items():
            if name not in tools:
                self.add(rules.REQUEST_CALLED_TOOL_MISSING, path)


def _part(part: Any, path: str, findings: Findings) -> None:
    if not isinstance(part, dict):
        findings.add(rules.REQUEST_BAD_PART, path)
        return
    kind = part.get("type")
    if not isinstance(kind, str):
        findings.add(rules.REQUEST_BAD_PART_MEMBER, f"{path}.type")
    elif kind not in KINDS:
        findings.add(rules.REQUEST_UNKNOWN_PART, f"{path}.type")
    elif kind == "text":
        if not isinstance(part.get("text"), str):
            findings.add(rules.REQUEST_BAD_PART_MEMBER, f"{path}.text")
    else:
        if not isinstance(part.get("media_type"), str):
            findings.add(rules.REQUEST_BAD_PART_MEMBER, f"{path}.media_type")
        data = part.get("data")
        if not isinstance(data, str):
            findings.add(rules.REQUEST_BAD_PART_MEMBER, f"{path}.data")
        else:
            fault = base64_fault(data)
            if fault is not None:
                findings.add(fault, f"{path}.data")


def _tools(envelope: dict[str, Any], findings: Findings) -> set[str]:
    """Checks the tools and returns their names."""
    names: set[str] = set()
    tools = envelope.get("tools", [])
    if not isinstance(tools, list):
        findings.add(rules.REQUEST_NULL_GROUP if tools is None else rules.REQUEST_BAD_TOOLS, "tools")
        return names
    for number, tool in enumerate(tools):
        path = f"tools[{number}]"
        if not isinstance(tool, dict):
            findings.add(rules.REQUEST_BAD_TOOL, path)
            continue
        for member in ("name", "description"):
            if not isinstance(tool.get(member), str):
                findings.add(rules.REQUEST_BAD_TOOL_TEXT, f"{path}.{member}")
        if not isinstance(tool.get("parameters"), dict):
            findings.add(rules.REQUEST_BAD_TOOL_PARAMETERS, f"{path}.parameters")
        name = tool.get("name")
        if isinstance(name, str):
            if name in names:
                findings.add(rules.REQUEST_REPEATED_TOOL, f"{path}.name")
            names.add(name)
    return names


def _parameters(envelope: dict[str, Any], findings: Findings) -> None:
    parameters = _group(envelope, "parameters", findings)
    limit = parameters.get("max_tokens", 0)
    if not isinstance(limit, int) or isinstance(limit, bool):
        findings.add(rules.REQUEST_BAD_MAX_TOKENS, "parameters.max_tokens")
    for name in ("temperature", "top_p"):
        value = parameters.get(name, 0)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            findings.add(rules.REQUEST_BAD_NUMBER, f"parameters.{name}")
    stops = parameters.get("stop_sequences", [])
    if not isinstance(stops, list):
        findings.add(rules.REQUEST_BAD_STOP_SEQUENCES, "parameters.stop_sequences")
    else:
        for number, stop in enumerate(stops):
            if not isinstance(stop, str):
                findings.add(rules.REQUEST_BAD_STOP_SEQUENCES, f"parameters.stop_sequences[{number}]")


def _group(envelope: dict[str, Any], name: str, findings: Findings) -> dict[str, Any]:
    found = envelope.get(name, {})
    if isinstance(found, dict):
        return found
    findings.add(rules.REQUEST_NULL_GROUP if found is None else rules.REQUEST_BAD_GROUP, name)
    return {}
