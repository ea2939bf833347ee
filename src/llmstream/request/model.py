"""The request envelope and what it is made of (draft, section 4)."""

from __future__ import annotations

from .._backend import ToolCall
from ..errors import RequestError
from ..rules import REQUEST_NOT_OBJECT, ROLES
from . import parts, values
from .findings import Findings, refusal
from .parts import Part, TextPart, View, lengths
from .reading import DEFAULT_MAX_SIZE, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Self

    from .._backend import Event
    from ..result import StreamResult
    from .findings import RequestViolation
    from .reading import Oddities

    Output = str | Iterable[Part]

__all__ = ["MEDIA_TYPE", "VERSION", "Message", "Parameters", "Request", "Tool"]

MEDIA_TYPE = "application/llm-request+json"
"""Section 4.1."""

VERSION = "1.0"
"""Section 4.2."""

MAX_SHOWN = 100
"""How many characters of a model's name ``repr`` shows; of a longer one, their number."""


class Message(View):
    """One message of the conversation (section 4.3).

    ``content`` is text, or parts (section 4.3.1); an assistant message with ``tool_calls`` may have none (section 4.8).
    ``tool_call_id`` is the id of the call that a message of the role "tool" answers.
    """

    __slots__ = ()
    __match_args__ = ("role", "content")
    known = frozenset({"role", "content", "name", "tool_call_id", "tool_calls"})

    def __init__(
        self,
        *,
        role: str,
        content: str | Iterable[Part] | None = None,
        name: str | None = None,
        tool_call_id: str | None = None,
        tool_calls: Iterable[ToolCall] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        members: dict[str, Any] = {"role": values.text("role", role)}
        if tool_call_id is not None:
            members["tool_call_id"] = values.text("tool_call_id", tool_call_id)
        if content is None or isinstance(content, str):
            members["content"] = None if content is None else values.text("content", content)
        else:
            members["content"] = [_members_of("content", item, Part) for item in content]
        if name is not None:
            members["name"] = values.text("name", name)
        if tool_calls is not None:
            members["tool_calls"] = [_call(call) for call in tool_calls]
        self._keep(members, extra)

    @property
    def role(self) -> str | None:
        """Who speaks; None where it is absent or not a string."""
        return self._text("role")

    @property
    def content(self) -> str | tuple[Part, ...] | None:
        """The content in the form it came in; None where it is neither."""
        found = self._members.get("content")
        if isinstance(found, str):
            return found
        return self.parts if isinstance(found, list) else None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content as parts, whichever form it came in."""
        found = self._members.get("content")
        if isinstance(found, str):
            return (TextPart._of({"type": "text", "text": found}),)
        return tuple(map(parts.part, self._array("content")))

    @property
    def text(self) -> str:
        """The text of all text parts, whichever form the content came in."""
        found = self._members.get("content")
        if isinstance(found, str):
            return found
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def name(self) -> str | None:
        """The name to display; None where it is absent or not a string."""
        return self._text("name")

    @property
    def tool_call_id(self) -> str | None:
        """The call that is answered; None where it is absent or not a string."""
        return self._text("tool_call_id")

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the model asked for; a member of one that is absent or not a string is None."""
        calls: list[ToolCall] = []
        for item in self._array("tool_calls"):
            found = View._of(item if isinstance(item, dict) else {})
            calls.append(ToolCall(id=found._text("id"), name=found._text("name"), arguments=found._text("arguments")))
        return tuple(calls)

    def _shown(self) -> str:
        content = self._members.get("content")
        shown = [f"role={self.role!r}"] if self.role in ROLES else []
        if isinstance(content, str):
            shown.append(f"content=<{len(content)} characters>")
        elif isinstance(content, list):
            shown.append(f"content=<{len(content)} parts>")
        calls = lengths(tool_calls=self._array("tool_calls"))
        return ", ".join([*shown, calls] if calls else shown)


class Tool(View):
    """A function that the client can run (section 4.4); ``parameters`` is the JSON Schema of its arguments."""

    __slots__ = ()
    __match_args__ = ("name",)
    known = frozenset({"name", "description", "parameters"})

    def __init__(
        self,
        *,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        members = {
            "name": values.text("name", name),
            "description": values.text("description", description),
            "parameters": values.mapping("parameters", parameters),
        }
        self._keep(members, extra)

    @property
    def name(self) -> str | None:
        """The name of the function; None where it is absent or not a string."""
        return self._text("name")

    @property
    def description(self) -> str | None:
        """What it does; None where it is absent or not a string."""
        return self._text("description")

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments, a copy; empty where it is absent or not an object."""
        copy: dict[str, Any] = values.copied(self._object("parameters"))
        return copy

    def _shown(self) -> str:
        return lengths(name=self.name, description=self.description, parameters=self._object("parameters"))


class Parameters(View):
    """What controls the generation (section 4.5). A vendor's own parameters are in ``extra``.

    Each is None where it is absent or of a wrong type; none of them has a range.
    """

    __slots__ = ()
    known = frozenset({"max_tokens", "temperature", "top_p", "stop_sequences"})

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop_sequences: Iterable[str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        members: dict[str, Any] = {}
        if max_tokens is not None:
            if not isinstance(max_tokens, int) or isinstance(max_tokens, bool):
                raise TypeError(f"max_tokens must be an int, not {type(max_tokens).__name__}")
            members["max_tokens"] = values.checked("max_tokens", max_tokens)
        for name, value in (("temperature", temperature), ("top_p", top_p)):
            if value is not None:
                if not isinstance(value, (int, float)) or isinstance(value, bool):
                    raise TypeError(f"{name} must be a number, not {type(value).__name__}")
                members[name] = values.checked(name, value)
        if stop_sequences is not None:
            if isinstance(stop_sequences, str):
                raise TypeError("stop_sequences must be strings, not one str")
            members["stop_sequences"] = [values.text("stop_sequences", item) for item in stop_sequences]
        self._keep(members, extra)

    @property
    def max_tokens(self) -> int | None:
        """How many tokens to generate at most."""
        found = self._members.get("max_tokens")
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    @property
    def temperature(self) -> float | None:
        """How random to be."""
        return self._number("temperature")

    @property
    def top_p(self) -> float | None:
        """The threshold of nucleus sampling."""
        return self._number("top_p")

    @property
    def stop_sequences(self) -> tuple[str, ...] | None:
        """The strings that end the generation."""
        found = self._members.get("stop_sequences")
        if isinstance(found, list) and all(isinstance(item, str) for item in found):
            return tuple(found)
        return None

    def _number(self, name: str) -> float | None:
        found = self._members.get(name)
        return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None

    def _shown(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in ("max_tokens", "temperature", "top_p")]
        return ", ".join([*shown, *filter(None, [lengths(stop_sequences=self.stop_sequences)])])


class Request(View):
    """The body of a request (section 4.2).

    Read one with ``from_json``, which keeps all that it holds, or build one; ``to_json`` gives its bytes, and
    ``validate`` says what is wrong with it. ``metadata`` never reaches the model (section 4.6), and values of
    ``extensions`` are handed on as they are, never interpreted (sections 4.7 and 8.3).
    """

    __slots__ = ("_oddities",)
    __match_args__ = ("model", "messages")
    known = frozenset({"version", "stream", "model", "messages", "tools", "parameters", "metadata", "extensions"})

    _oddities: Oddities | None  # what was odd about the JSON that it was read from

    def __init__(
        self,
        *,
        model: str,
        messages: Iterable[Message],
        tools: Iterable[Tool] | None = None,
        parameters: Parameters | None = None,
        metadata: Mapping[str, Any] | None = None,
        extensions: Mapping[str, Any] | None = None,
        stream: bool = True,
        version: str = VERSION,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        members: dict[str, Any] = {}
        given = {
            "version": version,
            "stream": stream,
            "model": model,
            "messages": messages,
            "tools": tools,
            "parameters": parameters,
            "metadata": metadata,
            "extensions": extensions,
        }
        _change(members, given)
        self._keep(members, extra)
        object.__setattr__(self, "_oddities", None)

    @classmethod
    def _of(cls, members: dict[str, Any]) -> Self:
        made = super()._of(members)
        object.__setattr__(made, "_oddities", None)
        return made

    @classmethod
    def from_json(
        cls,
        data: bytes | bytearray | memoryview | str,
        *,
        strict: bool = False,
        max_size: int = DEFAULT_MAX_SIZE,
        max_depth: int = values.MAX_DEPTH,
    ) -> Self:
        """The request that a body holds.

        Every JSON object gives a request, whatever is wrong with it: ``validate`` tells. Raises RequestError for what
        is no JSON object or exceeds a limit, and in strict mode for the first error that there is.
        """
        made = cls._read(data, strict=strict, max_size=max_size, max_depth=max_depth)
        if isinstance(made, Findings):
            raise refusal(made.found) or RequestError()
        if strict:
            made.raise_for_violations()
        return made

    @classmethod
    def _read(
        cls,
        data: bytes | bytearray | memoryview | str,
        *,
        strict: bool,
        max_size: int = DEFAULT_MAX_SIZE,
        max_depth: int = values.MAX_DEPTH,
    ) -> Self | Findings:
        """The request that a body holds, or why there is none."""
        value, odd, fault = read(data, max_size=max_size, max_depth=min(max_depth, values.MAX_DEPTH))
        if fault is None and not isinstance(value, dict):
            fault = (REQUEST_NOT_OBJECT, "")
        if fault is not None:
            findings = Findings(strict)
            odd.tell(findings)
            findings.add(*fault)
            return findings
        made = cls._of(value)
        object.__setattr__(made, "_oddities", odd if odd.told else None)
        return made

    def to_json(self) -> bytes:
        """The body: compact JSON in UTF-8, members in their order, numbers as they came in. It is not validated."""
        return values.write(self._members)

    def validate(self, *, strict: bool = False) -> list[RequestViolation]:
        """What is wrong, in the order of the request. Lenient mode makes a warning of each deviation that has a
        harmless reading; there are 1,000 at most, and the first error is among them."""
        return self._examine(strict).found

    def _examine(self, strict: bool) -> Findings:
        from .validation import examine

        return examine(self._members, self._oddities, strict)

    def raise_for_violations(self, *, strict: bool = True) -> None:
        """Raises RequestError if there is an error; all findings are its ``violations``."""
        error = refusal(self.validate(strict=strict))
        if error is not None:
            raise error

    def replace(self, **changes: Any) -> Self:
        """A request with other values for some of the keywords of the constructor; None takes one away. Everything
        else stays, members that the draft does not know too."""
        members = dict(self._members)
        extra = changes.pop("extra", None)
        if extra is not None:
            members = {name: value for name, value in members.items() if name in self.known}
        _change(members, changes)
        made = self._of({})
        made._keep(members, extra)
        return made

    __replace__ = replace

    def answer(
        self,
        result: StreamResult | Iterable[Event],
        outputs: Mapping[str, Output],
    ) -> Self:
        """The next request of the tool loop (section 4.8): the history, the assistant's message with its text and its
        tool calls, and a tool message for the output of each call; the tools stay.

        ``result`` is what the response said, or its events; ``outputs`` has id of a call -> its output. Raises
        ValueError where a call has no output, an output has no call, or a call cannot be repeated.
        """
        from .tools import exchange

        members = dict(self._members)
        members["messages"] = [*self._array("messages"), *(item._members for item in exchange(result, outputs))]
        return self._of(members)

    @property
    def version(self) -> str | None:
        """The protocol's version; None where it is absent or not a string."""
        return self._text("version")

    @property
    def stream(self) -> bool | None:
        """Whether a stream is wanted; None where it is absent or not a boolean."""
        found = self._members.get("stream")
        return found if isinstance(found, bool) else None

    @property
    def model(self) -> str | None:
        """The model, which is opaque; None where it is absent or not a string."""
        return self._text("model")

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation, in order; what is no object among them gives an empty message."""
        return tuple(Message._of(item if isinstance(item, dict) else {}) for item in self._array("messages"))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools; what is no object among them gives an empty tool."""
        return tuple(Tool._of(item if isinstance(item, dict) else {}) for item in self._array("tools"))

    @property
    def parameters(self) -> Parameters:
        """What controls the generation; empty where there is nothing."""
        return Parameters._of(self._object("parameters"))

    @property
    def metadata(self) -> dict[str, Any]:
        """For tracing, billing and audit, a copy; empty where there is nothing."""
        copy: dict[str, Any] = values.copied(self._object("metadata"))
        return copy

    @property
    def request_id(self) -> str | None:
        """The id in ``metadata`` that the response echoes (section 4.6); None where it is absent or not a string."""
        found = self._object("metadata").get("request_id")
        return found if isinstance(found, str) else None

    @property
    def extensions(self) -> dict[str, Any]:
        """The vendors' own values, a copy; empty where there is nothing."""
        copy: dict[str, Any] = values.copied(self._object("extensions"))
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_request, (type(self), values.write(self._members), self._oddities))

    def _shown(self) -> str:
        groups = lengths(
            **{name: self._array(name) for name in ("messages", "tools")},
            **{name: self._object(name) for name in ("parameters", "metadata", "extensions")},
        )
        model = self.model
        is_short = model is None or len(model) <= MAX_SHOWN
        shown = f"model={model!r}" if is_short else f"model=<{len(model or '')} characters>"
        return f"{shown}, {groups}" if groups else shown


def _rebuild_request(kind: type[Request], text: bytes, oddities: Oddities | None) -> View:
    made = parts.rebuild(kind, text)
    object.__setattr__(made, "_oddities", oddities)
    return made


def _change(members: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Puts values of the constructor's keywords into the members of an envelope."""
    for name, value in changes.items():
        if name not in Request.known:
            raise TypeError(f"no such keyword: {name}")
        if name in ("version", "model"):
            members[name] = values.text(name, value)
        elif name == "stream":
            if not isinstance(value, bool):
                raise TypeError(f"stream must be a bool, not {type(value).__name__}")
            members[name] = value
        elif name == "messages":
            members[name] = [_members_of(name, item, Message) for item in value]
        elif value is None:
            members.pop(name, None)
        elif name == "tools":
            members[name] = [_members_of(name, item, Tool) for item in value]
        elif name == "parameters":
            members[name] = _members_of(name, value, Parameters)
        else:
            members[name] = values.mapping(name, value)


def _members_of(name: str, item: Any, kind: type[View]) -> dict[str, Any]:
    if not isinstance(item, kind):
        raise TypeError(f"{name} takes a {kind.__name__}, not {type(item).__name__}")
    return item._members


def _call(call: ToolCall) -> dict[str, Any]:
    if not isinstance(call, ToolCall):
        raise TypeError(f"tool_calls takes a ToolCall, not {type(call).__name__}")
    if call.id is None or call.name is None or call.arguments is None:
        raise ValueError("a tool call without its id, name or arguments cannot be repeated")
    return {
        "id": values.text("id", call.id),
        "name": values.text("name", call.name),
        "arguments": values.text("arguments", call.arguments),
    }
