"""Telling the dialect of a stream by its first payloads."""

from __future__ import annotations

from functools import partial

from .. import payload, rules
from ..framing.binary import BinaryFraming
from ..framing.json_values import JSONFraming
from . import failures, family
from .base import Dialect
from .values import members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar

    from .._backend import Event
    from ..framing import Frame, Framing

__all__ = ["Auto"]


class RecordsFraming(JSONFraming):
    """JSON values with anything between them that may stand there: SignalR's 0x1E as well, which cannot stand in
    one."""

    def feed(self, chunk: bytes) -> list[Frame]:
        return super().feed(chunk.replace(b"\x1e", b"\n"))


class Auto(Dialect):
    """Asks the candidates in their order: those that many use come first, since a family is loaded when it is asked,
    and one whose payloads could be taken for another's before that. An error that is nobody's is read as OpenAI's.

    ``presumed`` is the name of the dialect that the response spoke for (``dialect_for``): it is asked first, and has
    every payload that is evidence of none."""

    name = "auto"
    candidates: ClassVar[tuple[str, ...]] = (
        "llm-stream",
        "anthropic",
        "replicate",
        "gemini",
        "watsonx",
        "openai",
        "openai-responses",
        "openai-completions",
        "openai-assistants",
        "openai-transcriptions",
        "anthropic-complete",
        "gemini-interactions",
        "cohere",
        "cohere-v1",
        "bedrock",
        "bedrock-agent",
        "ollama",
        "tgi",
        "llamacpp",
        "writer-completions",
        "signalr",
    )
    framings: ClassVar = {ord("["): JSONFraming, ord("{"): RecordsFraming, **dict.fromkeys(range(3), BinaryFraming)}

    def __init__(self, name: str | None = None, *, presumed: str | None = None) -> None:
        super().__init__(name)
        self.presumed = presumed
        self.is_body = False
        self.framings = {first: partial(self._framing, make) for first, make in self.framings.items()}  # type: ignore[misc]

    def _framing(self, make: Callable[[int], Framing], max_event_size: int) -> Framing:
        """The framing of bytes that are no Server-Sent Events, and so may be a body that is no stream."""
        self.is_body = True
        return make(max_event_size)

    def detect(self, event: str | None, data: bytes) -> Dialect | str | None:
        """The dialect that a payload gives evidence of: an instance of it, "llm-stream" for the draft's own; None where
        it gives none, as pings and empty payloads do."""
        text = data.decode("utf-8", "replace")
        try:
            value = members(payload.loads(text))
        except (RecursionError, ValueError):
            value = {}
        presumed = self.presumed
        for name in self.candidates if presumed is None else (presumed, *self.candidates):
            if name == "llm-stream":
                if _is_standard(value, event):
                    return name
                continue
            found = family(name)
            evidence: Any = value if found.json else text
            if (value or not found.json) and found.recognises(evidence, event):
                return _made(found(), event, data)
        if failures.page(value) is not None and self.is_body:
            return ErrorPage("openai" if presumed in (None, "llm-stream") else presumed)
        if presumed is None:
            return None if failures.body(value) is None else family("openai")()
        return presumed if presumed == "llm-stream" else _made(family(presumed)(), event, data)


class ErrorPage(Dialect):
    """The one object of a body that is an error as a server or a gateway words it, which is no provider's form."""

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        return self.begin(payload, self.fail(failures.page(payload)))


def _made(dialect: Any, event: str | None, data: bytes) -> Dialect | None:
    """A dialect, or the one that it finds out by itself."""
    found: Dialect | None = dialect.detect(event, data) if hasattr(dialect, "detect") else dialect
    return found


def _is_standard(value: dict[str, Any], event: str | None) -> bool:
    """Whether a payload is an envelope of the draft (section 5.2), whole or nearly so."""
    kind = value.get("type", event)
    return kind in rules.EVENT_TYPES[:-1] and ("v" in value or "seq" in value)
