"""What a translation hands back: the value, and all that could not be carried."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..errors import RequestError
from ..request import values
from ..request.model import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from typing import Any, NoReturn

__all__ = ["CAMELS", "Loss", "Losses", "Translated", "join", "refused"]

Value = TypeVar("Value")

SHOWN = values.NAMES | frozenset(
    {
        # OpenAI
        *("audio", "file", "file_data", "file_id", "filename", "format", "frequency_penalty", "function"),
        *("function_call", "function_call_output", "functions", "image_url", "detail", "url", "input_audio"),
        *("logit_bias", "logprobs", "max_completion_tokens", "modalities", "n", "parallel_tool_calls"),
        *("prediction", "presence_penalty", "prompt_cache_key", "reasoning_effort", "refusal"),
        *("response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream_options"),
        *("include_usage", "include_obfuscation", "strict", "tool_choice", "top_logprobs", "user", "verbosity"),
        *("web_search_options", "custom", "annotations", "reasoning_content"),
        # Anthropic
        *("system", "input_schema", "cache_control", "citations", "context", "title", "source", "thinking"),
        *("redacted_thinking", "signature", "tool_use_id", "is_error", "input", "top_k", "container"),
        *("mcp_servers", "context_management", "output_config", "inference_geo"),
        # Gemini
        *("contents", "parts", "systemInstruction", "generationConfig", "safetySettings", "toolConfig"),
        *("cachedContent", "labels", "inlineData", "fileData", "mimeType", "displayName", "fileUri"),
        *("functionCall", "functionResponse", "functionDeclarations", "args", "response", "thought"),
        *("thoughtSignature", "videoMetadata", "mediaResolution", "executableCode", "codeExecutionResult"),
        *("parametersJsonSchema", "behavior", "responseJsonSchema", "scheduling", "willContinue"),
        *("partialArgs", "googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "computerUse"),
        *("fileSearch", "googleMaps", "retrieval", "maxOutputTokens", "topP", "topK", "stopSequences"),
        *("presencePenalty", "frequencyPenalty", "candidateCount", "responseMimeType", "responseSchema"),
        *("responseModalities", "responseLogprobs", "thinkingConfig", "speechConfig", "imageConfig"),
        *("enableEnhancedCivicAnswers", "audioTimestamp", "routingConfig"),
        # Keys of extensions that the draft prints
        *("vendor:openai", "vendor:anthropic", "vendor:gemini"),
    }
)
"""The member names that the vendors document, beside the draft's own. Any other is shown as "*": it may be content."""

CAMELS = {
    "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name): name
    for name in SHOWN
    if name != name.lower()
}
"""As JSON for Protocol Buffers has it, Gemini takes the names of members in either form: those in snake case -> in the
form that is shown."""


class Loss:
    """One thing that could not be carried over: its ``path`` in what was translated (``messages[2].content[0]``), and
    the ``reason``. Neither has content of the request; a member name that no documentation has is shown as ``*``."""

    __slots__ = ("path", "reason")
    __match_args__ = ("path", "reason")

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "reason", reason)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a Loss is immutable: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Loss is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        return (self.path, self.reason) == (other.path, other.reason)

    def __hash__(self) -> int:
        return hash((self.path, self.reason))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Loss, (self.path, self.reason))

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"

    def __repr__(self) -> str:
        return f"Loss(path={self.path!r}, reason={self.reason!r})"


class Losses:
    """Gathers losses in their order, each once."""

    __slots__ = ("_seen", "nowhere")

    def __init__(self, nowhere: str) -> None:
        self._seen: dict[Loss, None] = {}
        self.nowhere = nowhere
        """The reason for what the other format has no place for."""

    @property
    def found(self) -> list[Loss]:
        """All of them."""
        return list(self._seen)

    def add(self, path: str, reason: str = "") -> None:
        """Something at ``path`` cannot be carried."""
        self._seen[Loss(path, reason or self.nowhere)] = None

    def rest(self, members: Mapping[str, Any], known: Container[str], path: str) -> None:
        """All members that are not ``known`` and not null cannot be carried."""
        for name, value in members.items():
            if value is not None and name not in known:
                self.add(join(path, name))


class Translated(Generic[Value]):
    """The result of a translation.

    ``value``   a ``Request``, or the body for the vendor as a dict of JSON values
    ``lost``    all that could not be carried, in the order of the request: nothing is dropped in silence
    ``model``   the model; Gemini has it in the URL and not in the body
    ``stream``  whether the answer is to be streamed; Gemini has that in the URL too: ``streamGenerateContent?alt=sse``
    """

    __slots__ = ("lost", "model", "stream", "value")
    __match_args__ = ("value", "lost")

    def __init__(self, value: Value, lost: list[Loss], *, model: str, stream: bool) -> None:
        self.value = value
        self.lost = lost
        self.model = model
        self.stream = stream

    def to_json(self) -> bytes:
        """The value as compact JSON in UTF-8, with numbers as they came in."""
        return self.value.to_json() if isinstance(self.value, Request) else values.write(self.value)

    def __repr__(self) -> str:
        return f"Translated(<{type(self.value).__name__}>, lost={self.lost!r}, stream={self.stream})"


def join(path: str, name: str) -> str:
    """The path of a member."""
    shown = name if name in SHOWN else "*"
    return f"{path}.{shown}" if path else shown


def refused(path: str, reason: str, requirement: str = "") -> RequestError:
    """The error for a body that cannot be read."""
    error = RequestError(f"{path}: {reason}" if path else reason)
    error.path, error.requirement = path, requirement
    return error
