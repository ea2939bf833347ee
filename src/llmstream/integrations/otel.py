"""OpenTelemetry's semantic conventions for generative AI, filled from a stream of any dialect (extra ``otel``).

One span and a few metrics a stream; nothing is made for a token but one point of a histogram. No SDK object is built.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from opentelemetry import metrics, trace  # type: ignore[import-not-found, unused-ignore]

from .._version import __version__
from ..observer import BOUNDS, MAX_WORD, Observer, _Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, Unpack

    from ..dialects import Dialect
    from ..observer import Observation, ObserverOptions

__all__ = ["GenAITelemetry", "TelemetryObserver"]

TOKENS = tuple(4**power for power in range(14))
"""Upper bounds of the buckets for counts of tokens, as the conventions have them."""

OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
LATEST = "gen_ai_latest_experimental"

MAX_CONTENT = 64 * 1024
"""Characters of content that are kept where it is captured."""

PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock-agent": "aws.bedrock",
    "cohere-v1": "cohere",
    "gemini": "gcp.gemini",
    "gemini-interactions": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertexai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Dialect -> ``gen_ai.provider.name``, where it is not the dialect's own name."""


MAX_MODELS = 1000
"""Names of models that metrics tell apart. A client of a gateway chooses them."""


class _Names(NamedTuple):
    """What one generation of the conventions calls its metrics. ``input_tokens`` is "" where there is one metric for
    both counts, told apart by ``gen_ai.token.type``."""

    duration: str
    first_chunk: str
    output_chunk: str
    usage: str
    input_tokens: str
    output_tokens: str


NAMES = {
    "released": _Names(
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.operation.time_per_output_chunk",
        "gen_ai.client.token.usage",
        "",
        "",
    ),
    "latest": _Names(
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.time_to_first_chunk",
        "gen_ai.client.inference.time_per_output_chunk",
        "",
        "gen_ai.client.inference.usage.input_tokens",
        "gen_ai.client.inference.usage.output_tokens",
    ),
}


class GenAITelemetry:
    """Makes an observer for each stream, which ends a span and records metrics when it is closed::

        telemetry = GenAITelemetry()
        observer = telemetry.observer("openai", model="gpt-x", server_address="api.openai.com")
        for chunk in chunks:
            send(observer.feed(chunk))
        observer.close()

    ``tracer_provider``  and ``meter_provider`` are those of OpenTelemetry; by default the global ones
    ``names``            the generation of the conventions: "released", which packages have, or "latest", of their main
                         branch; by default what OTEL_SEMCONV_STABILITY_OPT_IN says ("gen_ai_latest_experimental")
    ``chunk_times``      whether each gap between two chunks of output is a point of a histogram, which costs several
                         times what reading the chunk does
    ``capture_content``  whether the text and the tool calls are put on the span (``gen_ai.output.messages``), up to
                         65,536 characters. Off by default, as the conventions and section 8.1 of the draft ask

    Raises ValueError for other names.
    """

    def __init__(
        self,
        *,
        tracer_provider: Any = None,
        meter_provider: Any = None,
        names: Literal["released", "latest"] | None = None,
        chunk_times: bool = True,
        capture_content: bool = False,
    ) -> None:
        if names is None:
            names = "latest" if LATEST in os.environ.get(OPT_IN, "").replace(" ", "").split(",") else "released"
        if names not in NAMES:
            raise ValueError(f'names is "released" or "latest", not {names!r}')
        self.names = names
        self._models: set[str] = set()
        self.chunk_times = chunk_times
        self.capture_content = capture_content
        self.tracer = trace.get_tracer("llmstream", __version__, tracer_provider)
        meter: Any = metrics.get_meter("llmstream", __version__, meter_provider)
        found = NAMES[names]

        def histogram(name: str, unit: str, bounds: tuple[float, ...], words: str) -> Any:
            return meter.create_histogram(
                name, unit=unit, description=words, explicit_bucket_boundaries_advisory=list(bounds)
            )

        self.duration = histogram(found.duration, "s", BOUNDS, "Duration of an operation of generative AI.")
        self.first_chunk = histogram(found.first_chunk, "s", BOUNDS, "Time until the first chunk of output.")
        self.output_chunk = histogram(found.output_chunk, "s", BOUNDS, "Time between one chunk of output and the next.")
        if found.usage:
            self.usage = histogram(found.usage, "{token}", TOKENS, "Tokens of the input and of the output.")
        else:
            self.input_tokens = histogram(found.input_tokens, "{token}", TOKENS, "Tokens of the input.")
            self.output_tokens = histogram(found.output_tokens, "{token}", TOKENS, "Tokens of the output.")

    def observer(
        self,
        dialect: str | type[Dialect] | Callable[[], Dialect] = "auto",
        *,
        model: str | None = None,
        operation: str = "chat",
        provider: str | None = None,
        server_address: str | None = None,
        server_port: int | None = None,
        attributes: Mapping[str, Any] | None = None,
        context: Any = None,
        **options: Unpack[ObserverOptions],
    ) -> TelemetryObserver:
        """An observer whose span begins now, for a request that is about to be sent.

        ``model``           that was asked for; ``provider`` as the conventions name it, by default from the dialect
        ``server_address``  and ``server_port`` of the endpoint
        ``attributes``      further ones, of the span only
        ``context``         of the parent span; by default the current one
        """
        return TelemetryObserver(
            self, dialect, model, operation, provider, server_address, server_port, attributes, context, options
        )

    def countable(self, model: str) -> str:
        """The name of a model for metrics, which keep every name for good: at most 1,000 of them, and then
        "_OTHER"."""
        if model not in self._models:
            if len(self._models) >= MAX_MODELS:
                return "_OTHER"
            self._models.add(model)
        return model

    def for_gateway(self, exchange: Any, dialect: Any, headers: Mapping[str, str]) -> TelemetryObserver:
        """The ``observer`` of a ``Gateway``: a span for each request to an upstream, below that of the client's
        ``traceparent``."""
        from opentelemetry import propagate  # type: ignore[import-not-found, unused-ignore]

        upstream = exchange.upstream
        name = _provider_of(upstream.dialect)
        return self.observer(
            dialect,
            model=exchange.model,
            provider=name,
            server_address=upstream.host,
            server_port=upstream.port,
            context=propagate.extract(dict(headers)),
        )


class TelemetryObserver(Observer):
    """An ``Observer`` that tells OpenTelemetry what it saw. ``span`` is its span, which ``close`` ends."""

    __slots__ = ("_known", "_telemetry", "span")

    def __init__(
        self,
        telemetry: GenAITelemetry,
        dialect: Any,
        model: str | None,
        operation: str,
        provider: str | None,
        server_address: str | None,
        server_port: int | None,
        attributes: Mapping[str, Any] | None,
        context: Any,
        options: ObserverOptions,
    ) -> None:
        size = MAX_CONTENT if telemetry.capture_content else 0
        super().__init__(dialect, max_content_size=size, **options)
        self._telemetry = telemetry
        model = _word(model)
        known: dict[str, Any] = {"gen_ai.operation.name": operation}
        if provider is None and isinstance(dialect, str) and dialect != "auto":
            provider = _provider_of(dialect)
        if provider is not None:
            known["gen_ai.provider.name"] = provider
        given = {"gen_ai.request.model": model, "server.address": server_address, "server.port": server_port}
        known |= {name: value for name, value in given.items() if value is not None}
        self._known = known if model is None else {**known, "gen_ai.request.model": telemetry.countable(model)}
        self.span: Any = telemetry.tracer.start_span(
            f"{operation} {model}" if model else operation,
            context=context,
            kind=trace.SpanKind.CLIENT,
            attributes={**known, "gen_ai.request.stream": True, **(attributes or {})},
        )
        if telemetry.chunk_times:
            self._outputs = _RecordingTally(telemetry.output_chunk, self._known)

    def close(self) -> Observation:
        is_first = self._observation is None
        seen = super().close()
        if is_first:
            self._tell(seen)
        return seen

    def _tell(self, seen: Observation) -> None:
        telemetry, known = self._telemetry, self._known
        if "gen_ai.provider.name" not in known:
            known["gen_ai.provider.name"] = _provider_of(seen.dialect)
        if seen.model is not None:
            known["gen_ai.response.model"] = telemetry.countable(_word(seen.model) or "")
        error = seen.error_code or (None if seen.complete else "stream_incomplete")
        span = self.span
        if span.is_recording():
            span.set_attributes(self._attributes(seen))
        failed = known if error is None else {**known, "error.type": error}
        telemetry.duration.record(seen.duration, failed)
        if seen.time_to_first_output is not None:
            telemetry.first_chunk.record(seen.time_to_first_output, known)
        for kind, count in (("input", seen.input_tokens), ("output", seen.output_tokens)):
            if count is None:
                continue
            if telemetry.names == "released":
                telemetry.usage.record(count, {**known, "gen_ai.token.type": kind})
            else:
                (telemetry.input_tokens if kind == "input" else telemetry.output_tokens).record(count, known)
        if error is not None:
            span.set_attribute("error.type", error)
            span.set_status(trace.StatusCode.ERROR)
        span.end()

    def _attributes(self, seen: Observation) -> dict[str, Any]:
        """Those of the span, known at the end."""
        reasons = [
            _word(seen.vendor_stop_reasons.get(index, reason)) for index, reason in sorted(seen.stop_reasons.items())
        ]
        known = {
            "gen_ai.provider.name": self._known["gen_ai.provider.name"],
            "gen_ai.response.model": _word(seen.model),
            "gen_ai.response.id": _word(seen.response_id),
            "gen_ai.response.time_to_first_chunk": seen.time_to_first_output,
            "gen_ai.response.finish_reasons": reasons or None,
            "gen_ai.usage.input_tokens": seen.input_tokens,
            "gen_ai.usage.output_tokens": seen.output_tokens,
        }
        found = {name: value for name, value in known.items() if value is not None}
        if self._telemetry.capture_content and (seen.text or seen.tool_calls):
            found["gen_ai.output.messages"] = _messages(seen)
        return found


class _RecordingTally(_Tally):
    """Counts intervals, and records each in a histogram."""

    __slots__ = ("_known", "_record")

    def __init__(self, histogram: Any, known: dict[str, Any]) -> None:
        super().__init__()
        self._record = histogram.record
        self._known = known

    def add(self, interval: float) -> None:
        super().add(interval)
        self._record(interval, self._known)


def _word(value: str | None) -> str | None:
    """A name as an exporter can send it: cut, and without half characters."""
    return None if value is None else value[:MAX_WORD].encode("utf-8", "replace").decode()


def _provider_of(dialect: str) -> str:
    """``gen_ai.provider.name`` for a dialect."""
    family = next((name for name in ("openai", "anthropic") if dialect.startswith(f"{name}-")), dialect)
    return PROVIDERS.get(dialect, family)


def _messages(seen: Observation) -> str:
    """What was generated, in the JSON that the conventions have for it."""
    from .. import payload

    parts: list[dict[str, Any]] = [{"type": "text", "content": seen.text}] if seen.text else []
    for call in seen.tool_calls:
        part: dict[str, Any] = {"type": "tool_call", "id": call.id, "name": call.name}
        if call.arguments is not None:
            part["arguments"] = payload.loads(call.arguments) if payload.is_json(call.arguments) else call.arguments
        parts.append(part)
    reason = seen.stop_reasons.get(0)
    said = payload.dumps([{"role": "assistant", "parts": parts, "finish_reason": reason}])
    return said.encode("utf-8", "replace").decode()
