"""Independent readers of the bodies that ``to_vendor`` makes: the types of the vendors' own SDKs."""

from __future__ import annotations

from typing import Any

import pytest

from test_translation import ANTHROPIC, GEMINI, NOTE, OPENAI, WEATHER, media, to


def exhausted(value: Any) -> Any:
    """A value in which every iterator, which validates as it goes, is a list."""
    if isinstance(value, dict):
        return {name: exhausted(inner) for name, inner in value.items()}
    return value if isinstance(value, (str, int, float)) or value is None else [exhausted(each) for each in value]


def test_the_openai_sdk_knows_every_member(llmstream):
    pytest.importorskip("openai")
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
    from pydantic import TypeAdapter

    adapter = TypeAdapter(CompletionCreateParamsStreaming)
    for body in (OPENAI, to(llmstream, "openai", **media("audio", "audio/mpeg"), metadata={"user_id": "u"})[0]):
        assert exhausted(adapter.validate_python(body)) == body


def test_the_anthropic_sdk_knows_every_member(llmstream):
    pytest.importorskip("anthropic")
    from anthropic.types.message_create_params import MessageCreateParamsStreaming
    from pydantic import TypeAdapter

    adapter = TypeAdapter(MessageCreateParamsStreaming)
    for body in (ANTHROPIC, to(llmstream, "anthropic", **media("document", "text/plain", NOTE))[0]):
        # Newer models take no sampling parameters, and newer releases do not name them.
        known = {name: value for name, value in body.items() if name not in ("temperature", "top_p")}
        assert exhausted(adapter.validate_python(known)) == known


def test_the_gemini_sdk_knows_every_member(llmstream):
    types = pytest.importorskip("google.genai.types")
    for content in [*GEMINI["contents"], GEMINI["systemInstruction"]]:
        types.Content.model_validate(content)
    for tool in GEMINI["tools"]:
        assert types.Tool.model_validate(tool).function_declarations[0].parameters_json_schema == WEATHER
    types.GenerationConfig.model_validate(GEMINI["generationConfig"])
