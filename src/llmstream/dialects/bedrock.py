"""Amazon Bedrock: ConverseStream, and InvokeModelWithResponseStream with the payloads of the models' makers."""

from __future__ import annotations

import binascii

from .. import payload as json_text
from .. import rules
from ..declaration import Delta
from ..framing.aws_event_stream import AWSEventStreamFraming
from ..framing.json_values import JSONFraming
from . import failures
from .anthropic import Anthropic
from .anthropic_complete import AnthropicComplete
from .base import Dialect
from .cohere_v1 import CohereV1
from .openai import OpenAI
from .openai_completions import OpenAICompletions
from .values import items, members, number, text, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar

    from .._backend import Event

__all__ = ["ERROR_CODES", "Bedrock", "Converse", "failure"]

EVENTS = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
)
"""The events of ConverseStream. Only the last has a name that others use."""

OTHERS = ("citation", "toolResult", "image", "audio")
"""Members of a delta that are handed on as extensions."""

SIGNATURES = ("signature", "redactedContent")
"""The same of a thought."""

METRICS = "amazon-bedrock-invocationMetrics"
GUARDRAIL = "amazon-bedrock-guardrailAction"

ERROR_CODES = {
    "throttlingException": "rate_limited",
    "serviceQuotaExceededException": "rate_limited",
    "internalServerException": "internal_error",
    "internalFailure": "internal_error",
    "modelStreamErrorException": "internal_error",
    "modelErrorException": "internal_error",
    "modelTimeoutException": "internal_error",
    "dependencyFailedException": "internal_error",
    "badGatewayException": "internal_error",
    "serviceUnavailableException": "overloaded",
    "serviceUnavailable": "overloaded",
    "modelNotReadyException": "overloaded",
}


def _forms() -> Iterator[Delta]:
    """One fragment in the delta of a block, and nothing beside it."""
    fragments = {
        "text": "delta.text",
        "reasoning": "delta.reasoningContent.text",
        "arguments": "delta.toolUse.input",
    }
    beside = ["bytes", "error", "message", "start", "stopReason", "usage", "trace", *EVENTS]
    others = [f"delta.{name}" for name in OTHERS]
    thought = [f"delta.reasoningContent.{name}" for name in SIGNATURES]
    for kind, path in fragments.items():
        rest = [each.rpartition(".")[0] if each.count(".") > 1 else each for each in fragments.values() if each != path]
        absent = [*beside, *others, *rest, *(thought if kind == "reasoning" else ())]
        yield Delta(**{kind: path}, index="contentBlockIndex", absent=absent)  # type: ignore[arg-type]


class Converse(Dialect):
    """ConverseStream, and Nova's payloads, which are the same, each in a member of the event's name. ``index`` is that
    of the content block.

    Tools that the vendor runs itself and their results, signatures, redacted thoughts, citations and traces of
    guardrails are extensions under the vendor's word."""

    name = "bedrock"
    deltas = tuple(_forms())
    stop_reasons: ClassVar = {
        "stop_sequence": "end_turn",
        "model_context_window_exceeded": "max_tokens",
        "guardrail_intervened": "content_filter",
        "content_filtered": "content_filter",
    }
    error_codes: ClassVar = ERROR_CODES

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        nested = any(type(payload.get(name)) is dict for name in EVENTS[:-1])
        return nested or type(payload.get("contentBlockIndex")) is int

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        nested = [payload[name] for name in EVENTS if type(payload.get(name)) is dict]
        events: list[Event] = []
        for each in nested or [payload]:
            events += self._event(each)
        if not nested and "delta" not in payload:
            events += self.fail(failure(payload, event))
        return self.begin(payload, events)

    def _event(self, payload: dict[str, Any]) -> list[Event]:
        """What ConverseStream says, told by its members, not by the name of the event."""
        index = number(payload.get("contentBlockIndex")) or 0
        delta, start = members(payload.get("delta")), members(payload.get("start"))
        events = self._start(index, start) + self._delta(index, delta)
        if "contentBlockIndex" in payload and not (delta or start):
            events += self.release(index)
        reason = text(payload.get("stopReason"))
        if reason:
            fields = {"additional_fields": payload.get("additionalModelResponseFields")}
            events += self.stop_open(reason, fields)
        usage = members(payload.get("usage"))
        events += self.count(usage.get("inputTokens"), usage.get("outputTokens"))
        trace = payload.get("trace")
        return [*events, self.delta(index, extras={"trace": trace})] if trace else events

    def _start(self, index: int, start: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        for name, value in start.items():
            use = members(value)
            if name == "toolUse":
                self.see(index)
                call = self.calls.piece(index, 0, text(use.get("toolUseId")), text(use.get("name")))
                kind = text(use.get("type"))
                if call is not None:
                    call.kind = "" if kind == "tool_use" else kind
                self.check_limit()
            elif value:
                events.append(self.delta(index, extras={name: value}))
        return events

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        for name, value in delta.items():
            if name == "toolUse":
                piece = text(members(value).get("input"))
                if piece:
                    self.append_arguments(index, 0, piece)
            elif name == "reasoningContent":
                thought = text(members(value).get("text"))
                extras = {key: members(value).get(key) for key in SIGNATURES}
                if thought or any(extras.values()):
                    events.append(self.delta(index, reasoning=thought or None, extras=extras))
            elif name == "text":
                if text(value):
                    events.append(self.delta(index, text(value)))
            elif name in OTHERS and value:
                events.append(self.delta(index, extras={name: value}))
        return events


class Llama(Dialect):
    """Meta's models."""

    text = "generation"
    stop_reason = "stop_reason"
    input_tokens = "prompt_token_count"
    output_tokens = "generation_token_count"
    stop_reasons: ClassVar = {"stop": "end_turn", "length": "max_tokens"}

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return type(payload.get("generation")) is str


class Mistral(Dialect):
    """Mistral's models, as they are asked by a prompt."""

    text = "outputs[0].text"
    stop_reason = "outputs[0].stop_reason"
    stop_reasons: ClassVar = {"stop": "end_turn", "length": "max_tokens"}

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return type(payload.get("outputs")) is list


class Titan(Dialect):
    """Amazon's Titan. Where a guardrail steps in, numbers are written as 6.0 and there is no reason."""

    text = "outputText"
    stop_reason = "completionReason"
    stop_reasons: ClassVar = {
        "FINISH": "end_turn",
        "STOP_CRITERIA_MET": "end_turn",
        "LENGTH": "max_tokens",
        "CONTENT_FILTERED": "content_filter",
        "": "content_filter",
    }

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        return type(payload.get("outputText")) is str

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        counts = whole(payload.get("inputTextTokenCount")), whole(payload.get("totalOutputTextTokenCount"))
        events = super().translate(payload, event) + self.count(*counts)
        if payload.get(GUARDRAIL) == "INTERVENED" and not payload.get("completionReason"):
            events += self.stop(0, "", {"guardrail": payload[GUARDRAIL]})
        return events


class Invocation(Dialect):
    """InvokeModelWithResponseStream: chunks of the payloads that the model's maker has, which the dialect of that maker
    reads. The metrics of the invocation count the tokens where the payloads do not."""

    def __init__(self, maker: Dialect) -> None:
        super().__init__(maker.name)
        self.maker = maker
        self.alternatives = maker.alternatives  # type: ignore[misc]

    @property
    def complete(self) -> bool:
        return self.maker.complete

    def finish(self, ended: bool) -> list[Event]:
        return self._told(self.maker.finish(ended))

    def bare(self, value: Any) -> list[Event]:
        return self._told(self.maker.bare(value))

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        if type(payload.get("bytes")) is not str:
            return self._told(self.maker.begin({}, self.maker.fail(failure(payload, event))))
        inner = unwrapped(payload["bytes"])
        if inner is None:
            self.reports.append(rules.BAD_PAYLOAD)
            return []
        metrics = members(inner.get(METRICS))
        seen = self.maker.counts.seen
        self.maker.counts.note(
            number(metrics.get("inputTokenCount")) if seen[0] is None else None,
            number(metrics.get("outputTokenCount")) if seen[1] is None else None,
        )
        for choice in items(inner.get("choices")):
            if type(choice) is dict and "stop_reason" in choice:
                choice.setdefault("finish_reason", choice["stop_reason"])
        events = self.maker.translate(inner, None)
        if metrics and self.maker.counts.due:
            events += self.maker.usage()
        return self._told(events)

    def _told(self, events: list[Event]) -> list[Event]:
        """What the maker's dialect gave, whose reports become those of this one."""
        self.reports += self.maker.reports
        self.maker.reports = []
        return events


class Bedrock(Dialect):
    """Tells the two by the first frame that shows which it is."""

    name = "bedrock"
    framings: ClassVar = {0: AWSEventStreamFraming, ord("{"): JSONFraming}
    candidates: ClassVar[tuple[str, ...]] = ("converse-stream", "invoke-with-response-stream")
    error_codes: ClassVar = ERROR_CODES

    @classmethod
    def recognises(cls, payload: dict[str, Any], event: str | None) -> bool:
        if type(payload.get("bytes")) is str:
            inner = unwrapped(payload["bytes"])
            return inner is not None and _is_certain(payload, inner)
        kind = event or ""
        return kind in EVENTS[:-1] or kind.startswith(("exception:", "error:")) or Converse.recognises(payload, event)

    def detect(self, event: str | None, data: bytes) -> Dialect | None:
        """The dialect that a frame gives evidence of; None where it gives none."""
        try:
            value = members(json_text.loads(data.decode("utf-8", "replace")))
        except (RecursionError, ValueError):
            return None
        if type(value.get("bytes")) is not str:
            return Converse(self.name)
        inner = unwrapped(value["bytes"])
        maker = None if inner is None else _maker(inner)
        return None if maker is None else Invocation(maker(self.name))


MAKERS: tuple[type[Dialect], ...] = (
    Converse,
    Anthropic,
    AnthropicComplete,
    CohereV1,
    Llama,
    Titan,
    Mistral,
    OpenAI,
    OpenAICompletions,
)
"""In the order in which they are asked."""


def _maker(payload: dict[str, Any]) -> type[Dialect] | None:
    return next((each for each in MAKERS if each.recognises(payload, None)), None)


def _is_certain(payload: dict[str, Any], inner: dict[str, Any]) -> bool:
    """Whether a chunk is surely that of a model, and not an agent's, whose text may be JSON as well: it is padded, or
    it has all that the payloads of the model's maker have."""
    maker = _maker(inner)
    if maker is None or "attribution" in payload:
        return False
    beside = CERTAIN.get(maker, ())
    outputs = items(inner.get("outputs")) if maker is Mistral else [inner]
    return "p" in payload or any(all(name in members(each) for name in beside) for each in outputs)


CERTAIN: dict[type[Dialect], tuple[str, ...]] = {
    AnthropicComplete: ("stop_reason",),
    Llama: ("generation_token_count", "stop_reason"),
    Titan: ("index", "totalOutputTextTokenCount"),
    Mistral: ("text", "stop_reason"),
}
"""What the first payloads of a maker have beside that by which they are recognised."""


def unwrapped(data: str) -> dict[str, Any] | None:
    """The JSON object in the ``bytes`` of a chunk; None where there is none."""
    try:
        value = json_text.loads(binascii.a2b_base64(data).decode("utf-8", "replace"))
    except (RecursionError, ValueError):
        return None
    return value if type(value) is dict else None


def failure(payload: dict[str, Any], event: str | None) -> failures.Failure | None:
    """The exception or error that a frame is, or that the body of a response is."""
    kind, colon, code = (event or "").partition(":")
    if colon and kind in ("exception", "error"):
        found = failures.read(payload)
        known = ERROR_CODES.get(code[:1].lower() + code[1:], code)
        return failures.Failure([known, *found.words], found.message or text(payload.get("originalMessage")), code)
    return failures.find(payload) or failures.plain(payload)
