"""Telling the dialect by the first payloads, and the table of names."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from importlib import import_module

import pytest

CHAT = {"model": "m", "choices": [{"index": 0, "delta": {"content": "a"}}]}
MESSAGE = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
GENERATED = {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}
ENVELOPE = {"v": "1.0", "seq": 0, "type": "content.delta", "index": 0, "role": "assistant", "delta": {"text": "a"}}


def wrapped(**payload):
    return base64.b64encode(json.dumps(payload).encode()).decode()


def detect(llmstream, payload, event=None):
    auto = import_module("llmstream._registry").resolve("auto")
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    found = auto.detect(event, data)
    return found if found is None or isinstance(found, str) else found.name


def body(*payloads):
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


@pytest.mark.parametrize(
    ("payload", "event", "name"),
    [
        (CHAT, None, "openai"),
        ({"choices": [], "object": "chat.completion.chunk"}, None, "openai"),
        ({"error": {"message": "m"}}, None, "openai"),
        ({"error": {"message": "m"}, "choices": []}, None, "openai"),
        ({"object": "error", "message": "m"}, None, "openai"),
        (MESSAGE, "content_block_delta", "anthropic"),
        (MESSAGE, None, "anthropic"),
        ({"type": "message_start"}, None, "anthropic"),
        ({"delta": {"partial_json": ""}}, "content_block_delta", "anthropic"),
        ({"type": "error", "error": {"type": "overloaded_error"}}, None, "anthropic"),
        (GENERATED, None, "gemini"),
        ({"promptFeedback": {}}, None, "gemini"),
        ({"usageMetadata": {}}, None, "gemini"),
        ({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}, None, "gemini"),
        (ENVELOPE, "content.delta", "llm-stream"),
        ({"v": "1.0", "seq": 3, "type": "error", "code": "x", "message": "m"}, None, "llm-stream"),
        ({"seq": 0, "delta": {"text": "a"}}, "content.delta", "llm-stream"),
        ({"type": "ping"}, "ping", None),
        ({"choices": []}, None, None),
        ({"choices": [], "model": "", "prompt_filter_results": []}, None, None),
        ({"choices": [{"text": "legacy"}]}, None, "openai-completions"),
        ({"choices": [{"text": "twice", "delta": {"content": "twice"}}]}, None, "openai"),
        ({"object": "text_completion", "choices": []}, None, "openai-completions"),
        ({"type": "response.created", "response": {}}, "response.created", "openai-responses"),
        ({"response": {}}, "response.created", "openai-responses"),
        ({"type": "error", "message": "m", "sequence_number": 0}, "error", "openai-responses"),
        ({"object": "thread.run", "metadata": {}}, "thread.run.created", "openai-assistants"),
        ({"type": "transcript.text.delta", "delta": "a"}, None, "openai-transcriptions"),
        ({"type": "completion", "completion": "a"}, "completion", "anthropic-complete"),
        ({"event_type": "interaction.created", "metadata": {}, "interaction": {}}, None, "gemini-interactions"),
        (
            {"event_type": "content.delta", "index": 0, "delta": {"type": "text", "text": "a"}},
            None,
            "gemini-interactions",
        ),
        ({"type": "content-delta", "index": 0, "delta": {}}, "content-delta", "cohere"),
        ({"is_finished": False, "event_type": "stream-start"}, None, "cohere-v1"),
        ({"role": "assistant"}, "messageStart", "bedrock"),
        ({"contentBlockIndex": 0, "delta": {"text": "a"}}, None, "bedrock"),
        ({"message": "m"}, "exception:throttlingException", "bedrock"),
        ({"bytes": wrapped(generation="a", generation_token_count=1, stop_reason=None)}, "chunk", "bedrock"),
        ({"bytes": wrapped(outputs=[{"text": "a", "stop_reason": None}])}, "chunk", "bedrock"),
        ({"bytes": wrapped(outputText="a", index=0, totalOutputTextTokenCount=None)}, "chunk", "bedrock"),
        ({"bytes": wrapped(completion="a", stop_reason=None)}, "chunk", "bedrock"),
        # A frame that is padded is a model's; an agent's text may be JSON like any other.
        ({"bytes": wrapped(generation="a"), "p": "abcdef"}, "chunk", "bedrock"),
        ({"bytes": wrapped(generation="a")}, "chunk", "bedrock-agent"),
        ({"bytes": wrapped(outputs=[1, 2])}, "chunk", "bedrock-agent"),
        ({"bytes": wrapped(outputText="a")}, "chunk", "bedrock-agent"),
        ({"bytes": wrapped(completion="a")}, "chunk", "bedrock-agent"),
        ({"bytes": "YQ=="}, "chunk", "bedrock-agent"),
        ({"model": "m", "message": {"content": "a"}, "done": False}, None, "ollama"),
        ({"token": {"text": "a"}, "generated_text": None}, None, "tgi"),
        ({"error": "m", "error_type": "overloaded"}, None, "tgi"),
        ({"model_id": "m", "results": [{"generated_text": "a"}]}, "message", "watsonx"),
        ({"content": "a", "stop": False}, None, "llamacpp"),
        ({"value": "a"}, None, "writer-completions"),
        ({"type": 2, "invocationId": "1", "item": {}}, None, "signalr"),
        (b"plain text", "output", "replicate"),
        (b'{"json": 1}', "output", "replicate"),
        ({"metadata": {}}, "metadata", None),
        ({"value": "a", "more": 1}, None, None),
        ({"type": "content.delta"}, None, None),
        ({}, None, None),
        ([CHAT], None, None),
        (b"[DONE]", None, None),
        (b"not json \xff", None, None),
        (b"[" * 100_000, None, None),
        (b"", None, None),
    ],
)
def test_evidence(llmstream, payload, event, name):
    assert detect(llmstream, payload, event) == name


@pytest.mark.parametrize("payload", [CHAT, MESSAGE, GENERATED, ENVELOPE])
def test_what_came_before_the_evidence_is_read_as_well(llmstream, payload):
    parser = llmstream.Parser("auto")
    assert parser.feed(body({"type": "ping"}, {"choices": [], "id": "c-1"})) == []
    texts = [event.text for event in parser.feed(body(payload)) if isinstance(event, llmstream.ContentDelta)]
    assert texts == ["a"]


def test_no_evidence_names_the_candidates(llmstream):
    parser = llmstream.Parser("auto")
    events = parser.feed(body({"p": 1})) + parser.close()
    assert [event.type for event in events] == [""]
    (violation,) = [v for v in parser.violations if v.requirement == "L-DIALECT"]
    for name in ("llm-stream", "anthropic", "gemini", "openai"):
        assert name in violation.message


def test_auto_takes_every_framing_of_its_candidates(llmstream):
    dialects = import_module("llmstream.dialects")
    auto = dialects.family("auto")
    union = {}
    for name in auto.candidates:
        if name != "llm-stream":
            union |= dialects.family(name).framings
    # Byte 0 may be Connect's as well, and so are 1 and 2.
    assert auto.framings.keys() == union.keys() | {0, 1, 2}


# Names


def test_names(llmstream):
    registry = import_module("llmstream._registry")
    names = registry.names()
    assert {"llm-stream", "openai", "anthropic", "gemini", "auto", "azure", "groq", "openrouter", "deepseek"} <= set(
        names
    )
    assert registry.resolve("llm-stream") is None
    for name in names:
        if name != "llm-stream":
            first, second = registry.resolve(name), registry.resolve(name)
            assert first is not second
            assert isinstance(first, llmstream.Dialect)
            assert first.name == name
            assert llmstream.Parser(name).dialect == name


def test_an_unknown_name(llmstream):
    with pytest.raises(ValueError, match="unknown dialect 'opnai'; known are alibaba, anthropic, anthropic-complete, "):
        llmstream.Parser("opnai")


def test_classes_factories_and_instances(llmstream):
    family = import_module("llmstream.dialects").family("openai")
    for dialect in (family, lambda: family("mine"), family("mine")):
        assert llmstream.parse(body(CHAT), dialect=dialect).text == "a"


@pytest.mark.parametrize("wrong", [None, 5, object, lambda: None, b"openai"])
def test_what_is_no_dialect(llmstream, wrong):
    with pytest.raises(TypeError, match="no dialect"):
        llmstream.Parser(wrong)


def test_a_family_is_loaded_when_it_is_asked_for():
    code = """
import sys, llmstream
loaded = lambda: [n for n in ("openai", "gemini") if f"llmstream.dialects.{n}" in sys.modules]
print(loaded())
llmstream.Parser("groq")
print(loaded())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LLMSTREAM_IMPLEMENTATION": "python"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split("\n") == ["[]", "['openai']", ""]


def test_an_error_body_under_the_standard(llmstream):
    result = llmstream.parse(json.dumps({"error": {"message": "m", "code": 429}}).encode())
    assert (result.error.code, result.error.message) == ("rate_limited", "m")
    assert not result.complete
