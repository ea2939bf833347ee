"""Dialects: one module a family of vendors, which says how their payloads become standard events.

A family is loaded when one of its names is first asked for.
"""

from __future__ import annotations

from .. import _registry
from .base import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Dialect", "family"]

FAMILIES = {
    "anthropic": "Anthropic",
    "auto": "Auto",
    "gemini": "Gemini",
    "openai": "OpenAI",
}
"""Name of a family, which is that of its module -> its class."""

VARIANTS = {
    "gemini": ("vertexai",),
    "openai": (
        "alibaba",
        "azure",
        "cerebras",
        "deepseek",
        "fireworks",
        "groq",
        "huggingface",
        "litellm",
        "lmstudio",
        "mistral",
        "openrouter",
        "perplexity",
        "snowflake",
        "together",
        "vllm",
        "writer",
        "xai",
        "zai",
    ),
}
"""Family -> vendors that vary it by no more than their own name."""


def family(name: str) -> type[Dialect]:
    """The class of a family."""
    from importlib import import_module

    found: type[Dialect] = getattr(import_module(f"{__name__}.{name}"), FAMILIES[name])
    return found


def _loader(of: str, name: str) -> Callable[[], Dialect]:
    return lambda: family(of)(name)


for _name in FAMILIES:
    _registry.DIALECTS[_name] = _loader(_name, _name)
    for _variant in VARIANTS.get(_name, ()):
        _registry.DIALECTS[_variant] = _loader(_name, _variant)
_registry.DIALECTS[_registry.STANDARD] = lambda: Dialect(_registry.STANDARD)
