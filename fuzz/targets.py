"""All targets by name. A target reads one case in every way that has to agree, raises DifferenceError where two do not,
and returns a value that is the same for inputs that behave alike, by which the runner knows a new behaviour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import documents, framings, producers, streams
from .judge import Case

Target = Callable[[Case], Any]

DIALECTS = (
    *("anthropic", "anthropic-complete", "auto", "bedrock", "bedrock-agent", "cohere", "cohere-v1", "connect"),
    *("gemini", "gemini-interactions", "llamacpp", "ollama", "openai", "openai-assistants", "openai-completions"),
    *("openai-responses", "openai-transcriptions", "replicate", "signalr", "snowflake", "tgi", "watsonx"),
    "writer-completions",
)

TARGETS: dict[str, Target] = {
    "sse": streams.sse,
    "draft": streams.draft,
    **{f"dialect-{name}": streams.dialect(name) for name in DIALECTS},
    "observer": streams.observer,
    "envelope": documents.envelope,
    "request": documents.request,
    "vendor-request": documents.vendor_request,
    "headers": documents.headers,
    "checker": documents.checker,
    **{f"framing-{name}": framings.target(name) for name in framings.FRAMINGS},
    "encoder": producers.encoder,
    "transcoder": producers.transcoder,
    "translator": producers.translator,
}
