"""A dialect that is named but is not that of the stream: an empty answer is not told as a whole one."""

from __future__ import annotations

import json

import pytest

import handed

NOT_TOLD = {
    # The form is there: a usage, or an event of a name that both have.
    *(("assistants.runs", name) for name in ("openai", "openai-completions", "replicate", "snowflake", "watsonx")),
    ("interactions", "replicate"),
}


def body(*payloads):
    texts = [payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads]
    return b"".join(b"data: " + text.encode() + b"\n\n" for text in texts)


def errors(parser):
    return [each.requirement for each in parser.violations if each.severity == "error"]


def read(llmstream, data, dialect):
    transcoder = llmstream.Transcoder(dialect)
    transcoder.feed(data)
    transcoder.close()
    return transcoder


def test_no_recording_is_an_empty_answer_of_another_dialect(llmstream):
    """One recording of each API, read as each dialect: what comes is the answer, or what is wrong is told."""
    from importlib import import_module

    families = [name for name in import_module("llmstream.dialects").FAMILIES if name != "auto"]
    rows = {row["api"]: row for row in handed.rows("captures")}
    for api, row in rows.items():
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        expected = llmstream.parse(data, dialect="auto")
        for name in families:
            result = llmstream.parse(data, dialect=name)
            told = result.error is not None or not result.complete or errors(result)
            if result.text != expected.text and (api, name) not in NOT_TOLD:
                assert told, (row["file"], name)
            if name == expected.dialect:
                assert "L-DIALECT" not in errors(result), row["file"]


CHAT = {"object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": {"content": "hi"}}]}
END = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("dialect", ["openai-responses", "openai-assistants", "gemini-interactions"])
def test_nothing_of_the_stream_was_read(llmstream, dialect):
    transcoder = read(llmstream, body(CHAT, END, "[DONE]"), dialect)
    assert errors(transcoder)[0] == "L-DIALECT"
    assert not transcoder.complete


@pytest.mark.parametrize(
    ("dialect", "payload"),
    [
        ("openai-completions", {"choices": [{"index": 0, "delta": {"content": "hi"}}]}),
        ("openai-completions", {"choices": [{"index": 0, "message": {"content": "hi"}}]}),
        ("openai", {"choices": [{"index": 0, "text": "hi"}]}),
        ("groq", {"choices": [{"index": 0, "text": "hi"}]}),
    ],
)
def test_text_in_the_place_of_the_other_api(llmstream, dialect, payload):
    end = {"choices": [{"index": 0, "delta": {}, "text": "", "finish_reason": "stop"}]}
    transcoder = read(llmstream, body(payload, payload, end, "[DONE]"), dialect)
    assert errors(transcoder) == ["L-PAYLOAD"]
    assert not transcoder.complete


PING = {"type": "ping"}
USAGE = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 0}}
FILTER = {"choices": [], "object": "", "prompt_filter_results": [{}]}


@pytest.mark.parametrize(
    ("dialect", "payloads"),
    [
        ("openai", []),
        ("openai", [PING, {}]),
        ("openai", [USAGE]),
        ("openai", [{"choices": [{"index": 0, "delta": {}}]}]),
        ("azure", [FILTER, CHAT, END]),
        ("openai", [{"object": "chat.completion.chunk", "choices": []}]),
        ("openai-responses", [{"type": "response.created", "response": {}}]),
        ("openai-responses", [PING]),
        ("openai", [{"unheard": "of"}, CHAT, END]),
    ],
)
def test_a_stream_with_little_in_it_is_of_its_dialect(llmstream, dialect, payloads):
    transcoder = read(llmstream, body(*payloads, "[DONE]"), dialect)
    assert errors(transcoder) == []
    assert transcoder.complete


def test_a_declared_provider_is_told_by_what_it_declares(llmstream):
    class Example(llmstream.Dialect):
        name = "example"
        text = "out"
        model = "model"
        end_mark = "[DONE]"

    assert read(llmstream, body({"model": "m"}, "[DONE]"), Example).complete
    assert errors(read(llmstream, body({"other": "m"}, "[DONE]"), Example)) == ["L-DIALECT"]
