"""Dialects: one module a family of vendors, which says how their payloads become standard events.

A family is loaded when one of its names is first asked for.
"""

from __future__ import annotations

from functools import cache

from .. import _registry
from .base import Dialect
from .hints import dialect_for, hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .connect import Connect
    from .signalr import SignalR

__all__ = ["Connect", "Dialect", "SignalR", "dialect_for", "family", "hint"]

FAMILIES = {
    "anthropic": "Anthropic",
    "anthropic-complete": "AnthropicComplete",
    "auto": "Auto",
    "bedrock": "Bedrock",
    "bedrock-agent": "BedrockAgent",
    "cohere": "Cohere",
    "cohere-v1": "CohereV1",
    "connect": "Connect",
    "gemini": "Gemini",
    "gemini-interactions": "GeminiInteractions",
    "llamacpp": "LlamaCpp",
    "ollama": "Ollama",
    "openai": "OpenAI",
    "openai-assistants": "OpenAIAssistants",
    "openai-completions": "OpenAICompletions",
    "openai-responses": "OpenAIResponses",
    "openai-transcriptions": "OpenAITranscriptions",
    "replicate": "Replicate",
    "signalr": "SignalR",
    "snowflake": "Snowflake",
    "tgi": "TGI",
    "watsonx": "Watsonx",
    "writer-completions": "WriterCompletions",
}
"""Name of a family, which is that of its module but for its hyphens -> its class."""

VARIANTS = {
    "connect": ("cursor", "windsurf"),
    "gemini": ("vertexai",),
    "openai": (
        "alibaba",
        "azure",
        "cerebras",
        "crusoe",
        "deepseek",
        "fireworks",
        "github-copilot",
        "gpustack",
        "groq",
        "huggingface",
        "hyperbolic",
        "litellm",
        "lmstudio",
        "mistral",
        "moonshot",
        "nebius",
        "novita",
        "nvidia",
        "openrouter",
        "perplexity",
        "sambanova",
        "sglang",
        "together",
        "vllm",
        "writer",
        "xai",
        "zai",
    ),
    "signalr": ("microsoft-copilot",),
}
"""Family -> vendors that vary it by no more than their own name."""


@cache
def family(name: str) -> type[Dialect]:
    """The class of a family. A parser asks for it, so it is looked up once."""
    from importlib import import_module

    found: type[Dialect] = getattr(import_module(f"{__name__}.{name.replace('-', '_')}"), FAMILIES[name])
    return found


def __getattr__(name: str) -> Any:
    """``Connect`` and ``SignalR``, which a caller makes with paths of its own, as loaded when they are asked for."""
    if name in ("Connect", "SignalR"):
        return family(name.lower())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _loader(of: str, name: str) -> Callable[[], Dialect]:
    return lambda: family(of)(name)


for _name in FAMILIES:
    _registry.DIALECTS[_name] = _loader(_name, _name)
    for _variant in VARIANTS.get(_name, ()):
        _registry.DIALECTS[_variant] = _loader(_name, _variant)
_registry.DIALECTS[_registry.STANDARD] = lambda: Dialect(_registry.STANDARD)
