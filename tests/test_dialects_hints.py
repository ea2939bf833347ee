"""What a response says of its format: the Content-Type and the path, as a presumption that payloads can refute."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from vendors import openai_chunk, sse

CHAT = openai_chunk({"content": "a"}) + openai_chunk({}, "stop") + sse("[DONE]")
OPENED = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}
TEXT = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
ENVELOPE = {"v": "1.0", "seq": 0, "type": "content.delta", "index": 0, "role": "assistant", "delta": {"text": "a"}}

PATHS = {
    "/v1/chat/completions": "openai",
    "https://api.groq.com/openai/v1/chat/completions": "openai",
    "/openai/deployments/d/chat/completions?api-version=2024-10-21": "openai",
    "/v1/chat/completions/": "openai",
    "/v1/completions": "openai-completions",
    "/v1/responses": "openai-responses",
    "/v1/audio/transcriptions": "openai-transcriptions",
    "/v1/threads/thread_1/runs": "openai-assistants",
    "/v1/messages": "anthropic",
    "/v1/messages?beta=true": "anthropic",
    "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict": "anthropic",
    "/v1/complete": "anthropic-complete",
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse": "gemini",
    "/v1beta/interactions": "gemini-interactions",
    "/model/anthropic.claude-3/converse-stream": "bedrock",
    "/model/m/invoke-with-response-stream": "bedrock",
    "/agents/A/agentAliases/B/sessions/C/text": "bedrock-agent",
    "/v2/chat": "cohere",
    "/v1/chat": "cohere-v1",
    "/api/chat": "ollama",
    "http://localhost:11434/api/generate": "ollama",
    "/generate_stream": "tgi",
    "/ml/v1/text/generation_stream?version=2023-05-02": "watsonx",
    "/api/v2/cortex/inference:complete": "snowflake",
    "/completion": "llamacpp",
    "/v1/models": None,
    "/?path=/v1/messages": None,
    "/": None,
    "": None,
    None: None,
}

TYPES = {
    "application/vnd.amazon.eventstream": "bedrock",
    "application/connect+proto": "connect",
    "application/connect+json; charset=utf-8": "connect",
    "text/event-stream; profile=llm-stream-1.0": "llm-stream",
    'Text/Event-Stream;charset=utf-8;Profile="llm-stream-1.0"': "llm-stream",
    "text/event-stream": None,
    "application/x-ndjson": None,
    "application/json": None,
    "nonsense": None,
    ";": None,
    None: None,
}


def presumed(llmstream, **hints):
    made = llmstream.dialect_for(**hints)()
    return "connect" if made.name == "connect" else made.presumed


@pytest.mark.parametrize("path", PATHS)
def test_paths(llmstream, path):
    assert presumed(llmstream, path=path) == PATHS[path]


@pytest.mark.parametrize("content_type", TYPES)
def test_media_types(llmstream, content_type):
    assert presumed(llmstream, content_type=content_type) == TYPES[content_type]


def test_the_media_type_counts_first(llmstream):
    assert presumed(llmstream, content_type="application/vnd.amazon.eventstream", path="/v1/messages") == "bedrock"
    assert presumed(llmstream, content_type="text/event-stream", path="/v1/messages") == "anthropic"


def test_what_is_no_hint(llmstream):
    for wrong in ({"content_type": b"text/event-stream"}, {"path": 5}):
        with pytest.raises(TypeError, match="must be a str or None"):
            llmstream.dialect_for(**wrong)


def test_one_hint_serves_many_streams(llmstream):
    dialect = llmstream.dialect_for(path="/v1/chat/completions")
    for _ in range(2):
        result = llmstream.parse(CHAT, dialect=dialect)
        assert (result.text, result.complete, result.dialect, result.violation_count) == ("a", True, "openai", 0)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1beta/models/g:streamGenerateContent", "/v2/chat", "/api/chat"])
def test_payloads_of_another_format_win(llmstream, path):
    result = llmstream.parse(CHAT, dialect=llmstream.dialect_for(path=path))
    assert (result.text, result.complete, result.dialect, result.violation_count) == ("a", True, "openai", 0)


def test_the_standard_stream_wins_and_can_be_presumed(llmstream):
    data = sse(ENVELOPE, "content.delta")
    for hints in ({"path": "/v1/chat/completions"}, {"content_type": "text/event-stream; profile=llm-stream-1.0"}):
        result = llmstream.parse(data, dialect=llmstream.dialect_for(**hints))
        assert (result.text, result.dialect) == ("a", "llm-stream")
    standard = llmstream.dialect_for(content_type="text/event-stream; profile=llm-stream-1.0")
    result = llmstream.parse(sse({"other": 1}), dialect=standard)
    assert result.dialect == "llm-stream"
    assert "L-DIALECT" not in [violation.requirement for violation in result.violations]


def test_payloads_without_evidence_are_read_as_presumed(llmstream):
    for payload in ({"type": "ping"}, {"other": 1}):
        parser = llmstream.Parser(llmstream.dialect_for(path="/v1/messages"))
        parser.feed(sse(payload))
        assert parser.dialect == "anthropic"
        assert [event.type for event in parser.feed(sse(OPENED) + sse(TEXT))][-1] == "content.delta"
        assert parser.violation_count == 0


def test_where_two_formats_look_alike_the_path_tells(llmstream):
    body = sse({"choices": [{"delta": {"type": "tool_use", "tool_use_id": "t", "name": "f", "input": "{}"}}]})
    for path, names in (("/api/v2/cortex/inference:complete", ["f"]), ("/v1/chat/completions", [])):
        result = llmstream.parse(body, dialect=llmstream.dialect_for(path=path))
        assert [call.name for call in result.tool_calls] == names


def test_connect_is_known_by_its_media_type_alone(llmstream):
    end = b'{"error":{"code":"unavailable","message":"no one"}}'
    data = bytes([2]) + len(end).to_bytes(4, "big") + end
    result = llmstream.parse(data, dialect=llmstream.dialect_for(content_type="application/connect+proto"))
    assert (result.dialect, result.error.code) == ("connect", "overloaded")


# Responses


class Response:
    """As httpx has it: headers, an URL that is an object, and bytes."""

    def __init__(self, body, content_type="text/event-stream", url="https://x.test/v1/messages"):
        self.headers = {"content-type": content_type}
        self.url = url
        self.body = body

    def iter_bytes(self):
        yield self.body

    def close(self):
        pass


class Nameless(Response):
    """As httpx has it where there is no request."""

    def __init__(self, body):
        self.headers = None
        self.body = body

    @property
    def url(self):
        raise RuntimeError("The request instance has not been set on this response.")


def test_auto_takes_the_hints_of_a_response(llmstream):
    body = sse({"type": "ping"}) + sse(OPENED) + sse(TEXT)
    assert llmstream.parse(Response(sse({"type": "ping"})), dialect="auto").dialect == "anthropic"
    for url in ("https://x.test/v1/messages", SimpleNamespace(__str__=str), None):
        assert llmstream.parse(Response(body, url=url), dialect="auto").text == "a"
    with llmstream.iter_events(Response(sse({"type": "ping"})), dialect="auto") as events:
        list(events)
        assert events.parser.dialect == "anthropic"
    with pytest.raises(llmstream.IncompleteStreamError):
        list(llmstream.iter_text(Response(body), dialect="auto"))
    assert llmstream.parse(SimpleNamespace(response=Response(sse({"type": "ping"}))), dialect="auto").dialect == (
        "anthropic"
    )


def test_a_response_that_says_nothing_is_read_as_well(llmstream):
    assert llmstream.parse(Nameless(CHAT), dialect="auto").text == "a"
    for content_type in (None, 5, b"text/event-stream"):
        assert llmstream.parse(Response(CHAT, content_type=content_type), dialect="auto").text == "a"


def test_a_dialect_that_was_named_is_the_one(llmstream):
    result = llmstream.parse(Response(sse(ENVELOPE, "content.delta"), url="/v1/messages"))
    assert (result.dialect, result.text) == ("llm-stream", "a")


# Bodies that are no stream


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"detail": "Not found"}, "Not found"),
        ({"message": "Forbidden"}, "Forbidden"),
        ({"message": "no route", "request_id": "r"}, "no route"),
        ({"type": "about:blank", "title": "Unavailable", "status": 503, "detail": "later"}, "later"),
        ({"detail": [{"loc": ["body"], "msg": "field required", "type": "missing"}]}, "field required"),
        ({"errors": [{"message": "m"}]}, "m"),
        ({"code": 5, "message": "m"}, "m"),
    ],
)
def test_an_error_page_is_the_error_it_is(llmstream, body, message):
    data = json.dumps(body).encode()
    for dialect in ("auto", "openai", "gemini", "anthropic", llmstream.dialect_for(path="/v1/messages")):
        for indent in (None, 2):
            data = json.dumps(body, indent=indent).encode()
            result = llmstream.parse(data, dialect=dialect)
            assert result.error is not None, dialect
            assert (result.error.message, result.complete) == (message, False)
            assert "L-DIALECT" not in [violation.requirement for violation in result.violations]


@pytest.mark.parametrize("body", [{"detail": 5}, {"message": ""}, {"message": "m", "content": "c"}, {"status": "ok"}])
def test_what_is_no_error_page(llmstream, body):
    for value in (body, {}):
        assert llmstream.parse(json.dumps(value).encode(), dialect="auto").error is None


def test_words_in_a_stream_are_no_error_page(llmstream):
    assert llmstream.parse(sse({"message": "a"}) + CHAT, dialect="auto").text == "a"


def test_a_whole_message_of_anthropic(llmstream):
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "a"}]
    blocks += [{"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}]
    body = {"id": "m_1", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    body |= {"stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 5}}
    for dialect in ("auto", llmstream.dialect_for(path="/v1/messages")):
        result = llmstream.parse(json.dumps(body).encode(), dialect=dialect)
        assert (result.text, result.reasoning, result.model, result.dialect) == ("a", "hm", "m", "anthropic")
        assert [(call.id, call.name, call.arguments) for call in result.tool_calls] == [("t", "f", '{"x":1}')]
        assert (result.usage.input_tokens, result.usage.output_tokens) == (3, 5)
        assert set(result.vendor_stop_reasons.values()) == {"tool_use"}
        assert result.complete
        assert result.violation_count == 0
