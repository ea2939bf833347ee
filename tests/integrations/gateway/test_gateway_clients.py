"""Clients of others talk to the gateway as if it were their vendor, and it is fed with what vendors really sent."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import subprocess

import pytest
from gateway_server import WAIT, served

import handed
import vendors

httpx2 = pytest.importorskip("httpx2")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
pytest.importorskip("hypercorn")

WORDS = ["Hello", " w\u00f6rld", " \U0001f600", " d\u2028e\u0085f"]
TEXT = "".join(WORDS)
ARGUMENTS = ['{"x":', " 1}"]
QUESTION = [{"role": "user", "content": "?"}]


@pytest.fixture
def gateway(llmstream, replay):
    """``gateway(dialect, body)``: the context of a gateway in front of a replay; it gives the URL."""
    module = importlib.import_module("llmstream.integrations.gateway")

    class Context:
        def __init__(self, dialect, body, **playing):
            self.dialect, self.body, self.playing = dialect, body, playing
            self.exchanges = []

        def __enter__(self):
            self.upstream = served(replay(self.body, **self.playing))
            port = self.upstream.__enter__()
            upstream = module.Upstream(self.dialect, f"http://127.0.0.1:{port}/v1", key="k")
            self.server = served(module.Gateway([upstream], on_end=self.exchanges.append))
            return f"http://127.0.0.1:{self.server.__enter__()}"

        def __exit__(self, *fault):
            self.server.__exit__(*fault)
            self.upstream.__exit__(*fault)

    return Context


def openai_client(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="mine", max_retries=0, timeout=WAIT)


def anthropic_client(url):
    return anthropic.Anthropic(base_url=url, api_key="mine", max_retries=0, timeout=WAIT)


class TestOpenAI:
    def test_a_stream(self, gateway):
        with gateway("openai", vendors.openai(WORDS, arguments=ARGUMENTS)) as url, openai_client(url) as client:
            chunks = list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
        choices = [choice for chunk in chunks for choice in chunk.choices]
        assert "".join(choice.delta.content or "" for choice in choices) == TEXT
        calls = [call for choice in choices for call in choice.delta.tool_calls or ()]
        assert "".join(call.function.arguments or "" for call in calls) == "".join(ARGUMENTS)
        assert choices[-1].finish_reason == "tool_calls"
        assert chunks[-1].usage.completion_tokens == 5

    def test_errors(self, gateway):
        events = vendors.openai(WORDS)
        for fault, kind in (("429", openai.RateLimitError), ("500", openai.InternalServerError)):
            with gateway("openai", events, fault=fault) as url, openai_client(url) as client, pytest.raises(kind):
                client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        for fault in ("error", "cut"):
            found = []
            with gateway("openai", events, fault=fault, after=3, pace=50) as url, openai_client(url) as client:
                stream = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
                with pytest.raises((openai.APIError, httpx2.TransportError)):
                    found.extend(chunk.choices[0].delta.content for chunk in stream)
            assert "".join(filter(None, found)) == "".join(WORDS[:2])

    def test_our_own_refusal(self, gateway):
        with (
            gateway("anthropic", vendors.anthropic(WORDS)) as url,
            openai_client(url) as client,
            pytest.raises(openai.BadRequestError) as raised,
        ):
            client.chat.completions.create(model="m", messages=[{"role": "user"}], stream=True)
        assert "messages[0].content" in raised.value.message

    @pytest.mark.parametrize("upstream", ["anthropic", "gemini"])
    def test_another_vendor(self, gateway, upstream):
        """Streamed, whole, and through the helper that gathers a stream."""
        events = vendors.VENDORS[upstream](WORDS, arguments=ARGUMENTS)
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        asked = {"model": "m", "messages": QUESTION, "tools": tools}
        with gateway(upstream, events) as url, openai_client(url) as client:
            usage = {"stream_options": {"include_usage": True}}
            chunks = list(client.chat.completions.create(**asked, **usage, stream=True))
            whole = client.chat.completions.create(**asked)
            with client.chat.completions.stream(**asked) as stream:
                gathered = stream.get_final_completion()
        choices = [choice for chunk in chunks for choice in chunk.choices]
        assert "".join(choice.delta.content or "" for choice in choices) == TEXT
        assert (choices[-1].finish_reason, chunks[-1].usage.prompt_tokens) == ("tool_calls", 3)
        for completion in (whole, gathered):
            (choice,) = completion.choices
            assert (choice.message.content, choice.finish_reason) == (TEXT, "tool_calls")
            (call,) = choice.message.tool_calls
            assert (call.function.name, json.loads(call.function.arguments)) == ("f", {"x": 1})

    def test_errors_of_another_vendor(self, gateway):
        events = vendors.anthropic(WORDS)
        kinds = (("429", openai.RateLimitError), ("529", openai.InternalServerError), ("400", openai.BadRequestError))
        for fault, kind in kinds:
            with gateway("anthropic", events, fault=fault) as url, openai_client(url) as client, pytest.raises(kind):
                client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        for fault in ("error", "cut", "end"):
            found = []
            with gateway("anthropic", events, fault=fault, after=5, pace=50) as url, openai_client(url) as client:
                stream = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
                with pytest.raises(openai.APIError):
                    found.extend(chunk.choices[0].delta.content for chunk in stream)
                with pytest.raises(openai.InternalServerError):
                    client.chat.completions.create(model="m", messages=QUESTION)
            assert "".join(filter(None, found)) == "".join(WORDS[:2])


class TestAnthropic:
    def test_a_stream(self, gateway):
        events = vendors.anthropic(WORDS, arguments=ARGUMENTS)
        asked = {"model": "m", "max_tokens": 9, "messages": QUESTION}
        with (
            gateway("anthropic", events) as url,
            anthropic_client(url) as client,
            client.messages.stream(**asked) as stream,
        ):
            text = "".join(stream.text_stream)
            message = stream.get_final_message()
        assert text == TEXT
        assert message.content[-1].input == {"x": 1}
        assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 5)

    def test_errors(self, gateway):
        events = vendors.anthropic(WORDS)
        for fault, kind in (("429", anthropic.RateLimitError), ("529", anthropic.APIStatusError)):
            with gateway("anthropic", events, fault=fault) as url, anthropic_client(url) as client, pytest.raises(kind):
                client.messages.create(model="m", max_tokens=9, messages=QUESTION, stream=True)
        for fault in ("error", "cut"):
            found = []
            with gateway("anthropic", events, fault=fault, after=5, pace=50) as url, anthropic_client(url) as client:
                stream = client.messages.create(model="m", max_tokens=9, messages=QUESTION, stream=True)
                with pytest.raises((anthropic.APIError, httpx2.TransportError)):
                    found.extend(stream)
            texts = [event.delta.text for event in found if event.type == "content_block_delta"]
            assert "".join(texts) == "".join(WORDS[:2])

    @pytest.mark.parametrize("upstream", ["openai", "gemini"])
    def test_another_vendor(self, gateway, upstream):
        events = vendors.VENDORS[upstream](WORDS, arguments=ARGUMENTS)
        asked = {"model": "m", "max_tokens": 9, "messages": QUESTION}
        with gateway(upstream, events) as url, anthropic_client(url) as client:
            whole = client.messages.create(**asked)
            with client.messages.stream(**asked) as stream:
                text = "".join(stream.text_stream)
                gathered = stream.get_final_message()
        assert text == TEXT
        for message in (whole, gathered):
            texts, call = message.content
            assert (texts.text, call.name, call.input) == (TEXT, "f", {"x": 1})
            assert (message.stop_reason, message.usage.input_tokens) == ("tool_use", 3)

    def test_errors_of_another_vendor(self, gateway):
        events = vendors.openai(WORDS)
        for fault, status in (("429", 429), ("503", 529), ("400", 400)):
            with (
                gateway("openai", events, fault=fault) as url,
                anthropic_client(url) as client,
                pytest.raises(anthropic.APIStatusError) as raised,
            ):
                client.messages.create(model="m", max_tokens=9, messages=QUESTION, stream=True)
            assert raised.value.status_code == status
        for fault in ("error", "cut", "end"):
            found = []
            with gateway("openai", events, fault=fault, after=3, pace=50) as url, anthropic_client(url) as client:
                stream = client.messages.create(model="m", max_tokens=9, messages=QUESTION, stream=True)
                with pytest.raises(anthropic.APIError):
                    found.extend(stream)
            texts = [event.delta.text for event in found if event.type == "content_block_delta"]
            assert "".join(texts) == "".join(WORDS[:2])


if shutil.which("curl"):

    def test_curl(llmstream, gateway, tmp_path):
        body = {"version": "1.0", "stream": True, "model": "m", "messages": QUESTION}
        (tmp_path / "request.json").write_text(json.dumps(body))
        with gateway("anthropic", vendors.anthropic(WORDS)) as url:
            line = ["curl", "-sSN", "--fail", "-H", "content-type: application/llm-request+json"]
            line += ["--data-binary", f"@{tmp_path / 'request.json'}", f"{url}/v1/stream"]
            found = subprocess.run(line, capture_output=True, timeout=WAIT, check=True).stdout
        assert llmstream.parse(found, strict=True).text == TEXT


def captured(api):
    """Streams of a vendor as recorded, with the text in each; where the recordings are missing, one of ours."""
    vendor = vendors.FAMILIES[api]
    folder = handed.SHARED / "captures"
    found = [
        ((folder / row["file"]).read_bytes(), row)
        for row in handed.rows_or_none("captures") or ()
        if row["api"] == api and row["file"].startswith(f"{vendor}/") and row["choices"] <= 1
    ]
    ours = {"text_sha256": hashlib.sha256(TEXT.encode()).hexdigest(), "error": None, "done": True}
    return found or [(b"".join(vendors.VENDORS[vendor](WORDS)), ours)]


@pytest.mark.parametrize("api", ["chat.completions", "messages", "generateContent"])
def test_recordings(llmstream, replay, api):
    """Of each, the standard client gets the text that was recorded, and the vendor's client the bytes."""
    module = importlib.import_module("llmstream.integrations.gateway")
    streams = captured(api)
    application = replay(*(body for body, _ in streams))
    path = {"messages": "/v1/messages", "chat.completions": "/v1/chat/completions"}
    tail = path.get(api, "/v1beta/models/m:streamGenerateContent?alt=sse")
    with served(application) as port, httpx2.Client(timeout=WAIT) as client:
        upstream = module.Upstream(vendors.FAMILIES[api], f"http://127.0.0.1:{port}/v1")
        with served(module.Gateway([upstream])) as gateway_port:
            url = f"http://127.0.0.1:{gateway_port}"
            for body, row in streams:  # played in turn
                standard = {"version": "1.0", "stream": True, "model": "m", "messages": QUESTION}
                headers = {"content-type": "application/llm-request+json"}
                if application._recordings[application._turn % len(streams)].media_type != "text/event-stream":
                    application._turn += 1
                    continue
                found = client.post(f"{url}/v1/stream", headers=headers, content=json.dumps(standard))
                application._turn -= 1
                passed = client.post(f"{url}{tail}", json={"model": "m"})
                assert passed.content == body
                if found.status_code == 200:
                    result = llmstream.parse(found.content)
                    assert llmstream.check(found.content).ok
                    assert hashlib.sha256(result.text.encode()).hexdigest() == row["text_sha256"], row["file"]
                else:
                    assert row["error"], row["file"]
