"""A vendor's client in front of an upstream of another format: requests and answers are translated."""

from __future__ import annotations

import contextlib
import json

import pytest
from gateway_server import WAIT, Recorder, behind, broken, served, until

import vendors

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

WORDS = ["Hello", " w\u00f6rld", " \U0001f600", " d\u2028e\u0085f"]
TEXT = "".join(WORDS)
ARGUMENTS = ['{"x":', " 1}"]
KEY = "sk-of-the-gateway"
JSON = {"content-type": "application/json"}
TOOL = {"type": "object", "properties": {"x": {"type": "integer"}}}
UPSTREAMS = ("openai", "anthropic", "gemini", "llm-stream")
PAIRS = [(ours, theirs) for ours in UPSTREAMS[:3] for theirs in UPSTREAMS if ours != theirs]

ASKED = {
    "openai": {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "secret words"}],
        "max_completion_tokens": 9,
        "temperature": 0.50,
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": TOOL}}],
    },
    "anthropic": {
        "model": "m",
        "system": "be brief",
        "messages": [{"role": "user", "content": "secret words"}],
        "max_tokens": 9,
        "temperature": 0.50,
        "tools": [{"name": "f", "description": "d", "input_schema": TOOL}],
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "secret words"}]}],
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "generationConfig": {"maxOutputTokens": 9, "temperature": 0.50},
        "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": TOOL}]}],
    },
    "llm-stream": {
        "version": "1.0",
        "stream": True,
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "secret words"}],
        "parameters": {"max_tokens": 9, "temperature": 0.50},
        "tools": [{"name": "f", "description": "d", "parameters": TOOL}],
    },
}
"""The same request, as each format has it."""

SENT = {
    "openai": {"stream": True, "stream_options": {"include_usage": True}},
    "anthropic": {"stream": True},
    "gemini": {},
    "llm-stream": {},
}
"""What asks for the stream."""

STOPS = {"openai": ("stop", "tool_calls"), "anthropic": ("end_turn", "tool_use"), "gemini": ("STOP", "STOP")}


def endpoint(vendor, stream=True):
    """The path of a vendor's API, with its query."""
    if vendor == "gemini":
        return f"/v1beta/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    return {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[vendor]


def question(vendor, stream=True, **more):
    """The body of a vendor's request."""
    streaming = {} if vendor == "gemini" else {"stream": stream}
    return json.dumps({**ASKED[vendor], **streaming, **more}).encode()


def answer(llmstream, vendor, words=WORDS, arguments=ARGUMENTS):
    """What an upstream sends, one event an item."""
    if vendor != "llm-stream":
        return vendors.VENDORS[vendor](words, arguments=arguments)
    encoder = llmstream.Encoder(clock=lambda: 1)
    events = [encoder.start("m"), *map(encoder.delta, words)]
    if arguments:
        events.append(encoder.tool_call("call_1", "f", "".join(arguments)))
    events += [encoder.stop("tool_use" if arguments else "end_turn"), encoder.usage(3, 5), encoder.end()]
    return events


def whole(vendor, body):
    """Text, calls, stop reason and tokens of an answer that is no stream, by the members that the vendor documents."""
    value = json.loads(body)
    if vendor == "openai":
        (choice,) = value["choices"]
        message, usage = choice["message"], value["usage"]
        calls = [
            (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]
        ]
        assert value["object"] == "chat.completion"
        return message["content"], calls, choice["finish_reason"], usage["completion_tokens"]
    if vendor == "anthropic":
        texts = [block["text"] for block in value["content"] if block["type"] == "text"]
        calls = [(block["name"], block["input"]) for block in value["content"] if block["type"] == "tool_use"]
        assert (value["type"], value["role"]) == ("message", "assistant")
        return "".join(texts), calls, value["stop_reason"], value["usage"]["output_tokens"]
    (candidate,) = value["candidates"]
    parts = candidate["content"]["parts"]
    texts = [part["text"] for part in parts if "text" in part]
    calls = [(part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part]
    return "".join(texts), calls, candidate["finishReason"], value["usageMetadata"]["candidatesTokenCount"]


class TestBothWays:
    """Each vendor's client gets its own format, whatever the upstream speaks, and the upstream gets its own."""

    @pytest.mark.parametrize(("client_of", "upstream_of"), PAIRS)
    @pytest.mark.parametrize("chunk", ["event", "1", "whole"])
    def test_a_stream(self, gateway_module, replay, llmstream, client, client_of, upstream_of, chunk):
        """R7.1-1."""
        upstream = Recorder(replay(answer(llmstream, upstream_of), chunk=chunk))
        with behind(gateway_module, {upstream_of: (upstream, {"key": KEY})}) as here:
            more = {"stream_options": {"include_usage": True}} if client_of == "openai" else {}
            body = question(client_of, **more)
            headers = {**JSON, "authorization": "Bearer mine", "x-api-key": "mine", "x-own": "1"}
            response = client.post(f"{here.url}{endpoint(client_of)}", headers=headers, content=body)
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-length" not in response.headers
        assert "llmstream-lost" not in response.headers
        result = llmstream.parse(response.content, dialect=client_of)
        assert (result.text, result.complete, result.violations) == (TEXT, True, [])
        assert [(call.name, json.loads(call.arguments)) for call in result.tool_calls] == [("f", {"x": 1})]
        path, query, asked_headers, asked = upstream.asked[0]
        expected = {**ASKED[upstream_of], **SENT[upstream_of]}
        assert json.loads(asked) == expected
        names = {"openai": "authorization", "anthropic": "x-api-key", "gemini": "x-goog-api-key"}
        name = names.get(upstream_of, "authorization")
        assert asked_headers[name].removeprefix("Bearer ") == KEY
        assert "mine" not in "".join(asked_headers.values())
        assert "x-own" not in asked_headers
        if upstream_of == "anthropic":
            assert asked_headers["anthropic-version"] == "2023-06-01"
        if upstream_of == "gemini":
            assert (path, query) == ("/v1beta/models/m:streamGenerateContent", "alt=sse")
        (exchange,) = here.exchanges
        assert (exchange.format, exchange.model, exchange.error, exchange.lost) == ("vendor", "m", None, [])
        assert exchange.observation.dialect == upstream_of
        assert exchange.observation.complete

    @pytest.mark.parametrize(("client_of", "upstream_of"), PAIRS)
    def test_a_whole_answer(self, gateway_module, replay, llmstream, client, client_of, upstream_of):
        """The upstream is asked for a stream all the same."""
        upstream = Recorder(replay(answer(llmstream, upstream_of)))
        with behind(gateway_module, {upstream_of: (upstream, {})}) as here:
            url = f"{here.url}{endpoint(client_of, stream=False)}"
            response = client.post(url, headers=JSON, content=question(client_of, stream=False))
        assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
        count = len(WORDS) + 3 if upstream_of == "gemini" else 5  # as many as there are chunks
        assert whole(client_of, response.content) == (TEXT, [("f", {"x": 1})], STOPS[client_of][1], count)
        assert json.loads(upstream.asked[0][3]) == {**ASKED[upstream_of], **SENT[upstream_of]}
        assert (here.exchanges[0].format, here.exchanges[0].error) == ("vendor", None)

    @pytest.mark.parametrize("client_of", ["openai", "anthropic", "gemini"])
    @pytest.mark.parametrize("stream", [True, False])
    def test_the_standard_stream_by_accept(self, gateway_module, replay, llmstream, client, client_of, stream):
        """R7.3-1."""
        upstream_of = "anthropic" if client_of != "anthropic" else "openai"
        with behind(gateway_module, {upstream_of: (replay(answer(llmstream, upstream_of)), {})}) as here:
            headers = {**JSON, "accept": 'text/event-stream; profile="llm-stream-1.0"'}
            url = f"{here.url}{endpoint(client_of, stream)}"
            response = client.post(url, headers=headers, content=question(client_of, stream))
        assert response.headers["content-type"] == headers["accept"]
        assert llmstream.parse(response.content, strict=True).text == TEXT

    def test_the_counts_are_for_those_who_asked(self, gateway_module, replay, llmstream, client):
        with behind(gateway_module, {"anthropic": (replay(vendors.anthropic(WORDS)), {})}) as here:
            url = f"{here.url}/v1/chat/completions"
            for options, expected in (({}, 0), ({"include_usage": False}, 0), ({"include_usage": True}, 1)):
                body = question("openai", stream_options=options)
                response = client.post(url, headers=JSON, content=body)
                assert response.content.count(b'"usage":{"prompt_tokens":3,"completion_tokens":5') == expected

    def test_which_upstream_is_asked(self, gateway_module, replay, llmstream, client):
        """One of the same format if there is one that answers the model, else the first that does."""
        upstreams = {
            "gemini": (Recorder(replay(vendors.gemini(["g"]))), {"models": ["gem-*", "a*"]}),
            "anthropic": (Recorder(replay(vendors.anthropic(["a"]))), {"models": ["claude-*", "a*"]}),
            "openai": (Recorder(replay(vendors.openai(["o"]))), {"models": ["gpt-*"]}),
        }
        with behind(gateway_module, upstreams) as here:

            def said(vendor, model):
                body = question(vendor, model=model)
                response = client.post(f"{here.url}{endpoint(vendor)}", headers=JSON, content=body)
                assert response.status_code == 200
                return llmstream.parse(response.content, dialect=vendor).text

            assert said("openai", "gpt-1") == "o"
            assert said("openai", "claude-1") == "a"
            assert said("openai", "a1") == "g"
            assert said("anthropic", "a1") == "a"
            assert said("anthropic", "gpt-1") == "o"

    def test_the_key_of_the_client_goes_where_the_upstream_has_none(self, gateway_module, replay, llmstream, client):
        upstream = Recorder(replay(vendors.anthropic(WORDS)))
        with behind(gateway_module, {"anthropic": (upstream, {})}) as here:
            headers = {**JSON, "authorization": "Bearer mine"}
            client.post(f"{here.url}/v1/chat/completions", headers=headers, content=question("openai"))
        assert upstream.asked[0][2]["x-api-key"] == "mine"
        assert "authorization" not in upstream.asked[0][2]
        upstream = Recorder(replay(vendors.anthropic(WORDS)))
        with behind(gateway_module, {"anthropic": (upstream, {})}, keys=["mine"]) as here:
            client.post(f"{here.url}/v1/chat/completions", headers=headers, content=question("openai"))
        assert "mine" not in "".join(upstream.asked[0][2].values())

    def test_what_is_not_carried_is_told(self, gateway_module, replay, llmstream, client):
        """By its path, without content: in a header, and in the record."""
        with behind(gateway_module, {"anthropic": (replay(vendors.anthropic(WORDS)), {})}) as here:
            url = f"{here.url}/v1/chat/completions"
            body = json.dumps(
                {
                    "model": "m",
                    "stream": True,
                    "seed": 7,
                    "n": 2,
                    "secret words": "secret words",
                    "messages": [{"role": "user", "content": "?", "name": "secret words"}],
                }
            )
            told = client.post(url, headers=JSON, content=body)
            many = json.dumps(
                {"model": "m", "stream": False, "messages": [{"role": "user", "content": "?", "name": "x"}] * 60}
            )
            cut = client.post(url, headers=JSON, content=many)
        paths = told.headers["llmstream-lost"].split(", ")
        assert {"n", "*", "messages[0].name", "parameters.seed", "parameters.max_tokens"} <= set(paths)
        assert "secret" not in told.headers["llmstream-lost"]
        assert [loss.path for loss in here.exchanges[0].lost] == paths
        assert cut.headers["llmstream-lost"].count(", ") == 50
        assert cut.headers["llmstream-lost"].endswith(", ...")

    def test_other_choices_are_not_mixed_into_a_whole_answer(self, gateway_module, replay, llmstream, client):
        def candidate(index, text, **more):
            return {"content": {"parts": [{"text": text}], "role": "model"}, "index": index, **more}

        events = [
            vendors.sse({"candidates": [candidate(0, "a"), candidate(1, "x")], "modelVersion": "g"}),
            vendors.sse(
                {"candidates": [candidate(0, "b", finishReason="STOP"), candidate(1, "y", finishReason="STOP")]}
            ),
        ]
        with behind(gateway_module, {"gemini": (replay(events), {})}) as here:
            url = f"{here.url}/v1/chat/completions"
            response = client.post(url, headers=JSON, content=question("openai", stream=False))
        (choice,) = response.json()["choices"]
        assert choice["message"]["content"] == "ab"

    @pytest.mark.parametrize("vendor", UPSTREAMS[:3])
    def test_a_refusal_is_a_whole_answer(self, gateway_module, replay, llmstream, client, vendor):
        """From OpenAI's own stream, and for its clients from the standard stream that was made of one."""

        def chunk(delta, reason=None):
            choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
            return vendors.sse({"object": "chat.completion.chunk", "id": "r", "model": "m", "choices": choices})

        words = ("I will ", "not.")
        upstream, events = "openai", [*(chunk({"refusal": piece}) for piece in words), chunk({}, "stop")]
        events.append(b"data: [DONE]\n\n")
        if vendor == "openai":
            transcoder = llmstream.Transcoder("openai", clock=lambda: 1.0)
            upstream, events = "llm-stream", [transcoder.feed(b"".join(events)) + transcoder.close()]
        with behind(gateway_module, {upstream: (replay(events), {})}) as here:
            url = f"{here.url}{endpoint(vendor, stream=False)}"
            value = client.post(url, headers=JSON, content=question(vendor, stream=False)).json()
        if vendor == "openai":
            (choice,) = value["choices"]
            message = choice["message"]
            assert (message["content"], message["refusal"], choice["finish_reason"]) == (None, "I will not.", "stop")
        elif vendor == "anthropic":
            assert value["content"] == [{"type": "text", "text": "I will not."}]
            assert value["stop_reason"] == "refusal"
        else:
            (candidate,) = value["candidates"]
            assert candidate["content"]["parts"] == [{"text": "I will not."}]
            assert candidate["finishReason"] == "SAFETY"


class TestRefused:
    """In the words of the client's vendor."""

    @pytest.mark.parametrize(
        ("path", "body", "status", "word"),
        [
            ("/v1/chat/completions", {"messages": []}, 400, "model"),
            ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user"}]}, 400, "messages[0].content"),
            ("/v1/chat/completions", {"model": "other"}, 404, "model"),
            ("/v1/chat/completions", b"{", 400, ""),
            ("/v1/chat/completions", b"", 400, ""),
            ("/v1/chat/completions", b"[" * 100_000, 400, ""),
            ("/v1/models/m:streamGenerateContent", {"contents": []}, 400, "alt=sse"),
            ("/v1/models/m:generateContent", {"contents": 1}, 400, "contents"),
            ("/v1/responses", {"model": "m", "input": "?", "stream": True}, 415, ""),
            ("/v1/completions", {"model": "m", "prompt": "?"}, 415, ""),
        ],
    )
    def test_a_status(self, gateway_module, replay, llmstream, client, path, body, status, word):
        upstream = Recorder(replay(vendors.anthropic(WORDS)))
        with behind(gateway_module, {"anthropic": (upstream, {"models": ["m"]})}) as here:
            content = body if isinstance(body, bytes) else json.dumps(body)
            response = client.post(f"{here.url}{path}", headers=JSON, content=content)
        assert response.status_code == status
        assert word in response.json()["error"]["message"]
        assert upstream.asked == []
        assert here.exchanges == []

    def test_a_request_without_a_translation(self, gateway_module, replay, client):
        """Where there is an upstream of its format, but not for its model."""
        upstreams = {
            "openai": (replay(b"data: [DONE]\n\n"), {"models": ["gpt-*"]}),
            "anthropic": (replay(vendors.anthropic(WORDS)), {}),
        }
        with behind(gateway_module, upstreams) as here:
            body = b'{"model":"claude-1","input":"?","stream":true}'
            assert client.post(f"{here.url}/v1/responses", headers=JSON, content=body).status_code == 404


WORDS_FOR = {
    ("openai", 429): "rate_limit_exceeded",
    ("openai", 503): "service_unavailable",
    ("anthropic", 429): "rate_limit_error",
    ("anthropic", 529): "overloaded_error",
    ("gemini", 429): "RESOURCE_EXHAUSTED",
    ("gemini", 503): "UNAVAILABLE",
}


def word_of(vendor, response):
    return response.json()["error"][{"openai": "code", "anthropic": "type", "gemini": "status"}[vendor]]


class TestUpstreamFails:
    @pytest.mark.parametrize(("client_of", "upstream_of"), PAIRS)
    @pytest.mark.parametrize("stream", [True, False])
    def test_a_status(self, gateway_module, replay, llmstream, client, client_of, upstream_of, stream):
        for status in (429, 529 if upstream_of == "anthropic" else 503, 500):
            upstream = replay(answer(llmstream, upstream_of), fault=str(status))
            with behind(gateway_module, {upstream_of: (upstream, {})}) as here:
                url = f"{here.url}{endpoint(client_of, stream)}"
                response = client.post(url, headers=JSON, content=question(client_of, stream))
            overloaded = 529 if client_of == "anthropic" else 503
            expected = {429: 429, 500: 502}.get(status, overloaded)
            assert (response.status_code, here.exchanges[0].status) == (expected, expected)
            if expected != 502:
                assert word_of(client_of, response) == WORDS_FOR[client_of, expected]
                assert response.headers["retry-after"] == "1"

    @pytest.mark.parametrize(("client_of", "upstream_of"), PAIRS)
    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize("fault", ["error", "end", "cut"])
    def test_in_the_stream(self, gateway_module, replay, llmstream, client, client_of, upstream_of, stream, fault):
        """Nothing becomes a good end, and the words of an error stay."""
        events = answer(llmstream, upstream_of, arguments=())
        after = next(number for number, event in enumerate(events) if b"rld" in event) + 1
        upstream = replay(events, fault=fault, after=after, pace=200)
        with behind(gateway_module, {upstream_of: (upstream, {})}) as here:
            url = f"{here.url}{endpoint(client_of, stream)}"
            response = client.post(url, headers=JSON, content=question(client_of, stream))
        if not stream:
            overloaded = 529 if client_of == "anthropic" else 503
            assert response.status_code == (overloaded if fault == "error" else 502)
            assert response.json()["error"]["message"]
            assert "choices" not in response.json()
        else:
            assert response.status_code == 200
            result = llmstream.parse(response.content, dialect=client_of)
            assert (result.text, result.complete) == ("".join(WORDS[:2]), False)
            assert result.error.code == ("overloaded" if fault == "error" else "internal_error")
            if fault == "error":
                assert result.error.message == "a fault that was asked for"
            for mark in (b"[DONE]", b"message_stop", b'"finish_reason":"stop"', b"end_turn", b'"STOP"'):
                assert mark not in response.content
        assert here.exchanges[0].error

    @pytest.mark.parametrize(("client_of", "upstream_of"), PAIRS)
    @pytest.mark.parametrize("fault", ["error", "end"])
    def test_before_there_is_anything_to_say(
        self, gateway_module, replay, llmstream, client, client_of, upstream_of, fault
    ):
        upstream = replay(answer(llmstream, upstream_of), fault=fault, after=0)
        with behind(gateway_module, {upstream_of: (upstream, {})}) as here:
            url = f"{here.url}{endpoint(client_of)}"
            response = client.post(url, headers=JSON, content=question(client_of))
        overloaded = 529 if client_of == "anthropic" else 503
        assert response.status_code == (overloaded if fault == "error" else 502)
        assert response.headers["content-type"] == "application/json"

    @pytest.mark.parametrize("torn", [False, True])
    def test_it_breaks_off(self, gateway_module, llmstream, client, torn):
        body = b"".join(vendors.anthropic(WORDS)[:5]) + (b'event: content_block_delta\ndata: {"ty' if torn else b"")
        with (
            broken(body) as url,
            served(gateway_module.Gateway([gateway_module.Upstream("anthropic", url)])) as port,
        ):
            for stream in (True, False):
                response = client.post(
                    f"http://127.0.0.1:{port}/v1/chat/completions", headers=JSON, content=question("openai", stream)
                )
                if stream:
                    result = llmstream.parse(response.content, dialect="openai")
                    assert (result.text, result.error.code) == ("".join(WORDS[:2]), "internal_error")
                    assert b"[DONE]" not in response.content
                else:
                    assert response.status_code == 502

    @pytest.mark.parametrize(("size", "status"), [(2_000, 200), (200_000, 502)])
    def test_a_whole_answer_that_is_too_large(self, gateway_module, replay, client, size, status):
        events = vendors.anthropic(["x" * size])
        limits = gateway_module.Limits(answer_size=100_000)
        with behind(gateway_module, {"anthropic": (replay(events), {})}, limits=limits) as here:
            url = f"{here.url}/v1/chat/completions"
            response = client.post(url, headers=JSON, content=question("openai", stream=False))
        assert response.status_code == status
        if status == 200:
            assert response.json()["choices"][0]["message"]["content"] == "x" * size

    def test_hostile_bytes(self, gateway_module, replay, llmstream, client):
        streams = [
            b"\x00" * 1000,
            b"data: " + b"[" * 50_000 + b"\n\n",
            b"data: {}\n\n" * 300,
            b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n' * 3,
            b'data: {"error":"\xff\xfe"}\n\n',
            b'data: {"choices":[{"index":9223372036854775807,"delta":{"content":"a"}}]}\n\n',
            b'data: {"choices":[{"index":-1,"delta":{"tool_calls":[{"index":1e9}]}}]}\n\n',
            b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":'
            + b"[" * 5000
            + b'"}}]}}]}\n\ndata: [DONE]\n\n',
        ]
        for vendor in ("anthropic", "gemini"):
            for stream in (True, False):
                with behind(gateway_module, {"openai": (replay(*streams), {})}) as here:
                    for _ in streams:
                        url = f"{here.url}{endpoint(vendor, stream)}"
                        response = client.post(url, headers=JSON, content=question(vendor, stream))
                        assert response.status_code in (200, 502)
                        if response.status_code == 200 and stream:
                            assert llmstream.parse(response.content, dialect=vendor).error is not None


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves(gateway_module, replay, llmstream, stream):
    """The upstream is let go, also where nothing was answered yet."""
    upstream = Recorder(replay(vendors.anthropic(WORDS), fault="stall", after=4))
    with behind(gateway_module, {"anthropic": (upstream, {})}) as here:
        with httpx2.Client(timeout=WAIT if stream else 0.5) as client, contextlib.ExitStack() as stack:
            url, body = f"{here.url}/v1/chat/completions", question("openai", stream)
            if stream:
                response = stack.enter_context(client.stream("POST", url, headers=JSON, content=body))
                next(response.iter_raw())
            else:
                with pytest.raises(httpx2.ReadTimeout):
                    client.post(url, headers=JSON, content=body)
        until(lambda: upstream.over == 1)
        until(lambda: here.exchanges)
    assert here.exchanges[0].gone


def test_each_event_goes_out_at_once(gateway_module, replay, client):
    stalls = replay(vendors.anthropic(WORDS), fault="stall", after=4)  # the start, a ping, the block, "Hello"
    with behind(gateway_module, {"anthropic": (stalls, {})}) as here:
        found = b""
        url = f"{here.url}/v1/chat/completions"
        with client.stream("POST", url, headers=JSON, content=question("openai")) as response:
            for chunk in response.iter_raw():
                found += chunk
                if b'"Hello"' in found:
                    break
