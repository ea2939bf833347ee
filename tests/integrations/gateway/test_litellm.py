"""LiteLLM takes the gateway for its vendor, as a library and as a proxy; and the gateway takes that proxy for one."""

from __future__ import annotations

import contextlib
import http.client
import importlib
import json
import os
import socket
import subprocess
import sys
import time

import pytest
from gateway_server import WAIT, served

import vendors

pytest.importorskip("litellm")
openai = pytest.importorskip("openai")
pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

pytestmark = pytest.mark.filterwarnings("ignore")  # what these libraries use of one another is their own matter

WORDS = ["Hello", " w\u00f6rld", " \U0001f600", " d\u2028e\u0085f"]
TEXT = "".join(WORDS)
QUESTION = [{"role": "user", "content": "?"}]
PROXY_KEY = "sk-" + os.urandom(32).hex()
"""Without one, which must not look weak, LiteLLM's proxy does not start."""


@pytest.fixture
def litellm(monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it is fetched
    return importlib.import_module("litellm")


@pytest.fixture
def gateway(llmstream, replay):
    """``gateway(vendor, body, ...)``: the context of a gateway in front of a stream; it gives the URL."""
    module = importlib.import_module("llmstream.integrations.gateway")

    @contextlib.contextmanager
    def make(vendor, body, **playing):
        with served(replay(body, **playing)) as port:
            upstream = module.Upstream(vendor, f"http://127.0.0.1:{port}/v1", key="k")
            with served(module.Gateway([upstream])) as gateway_port:
                yield f"http://127.0.0.1:{gateway_port}"

    return make


PASSED_ON = [("openai", "openai"), ("anthropic", "anthropic")]
TRANSLATED = [("openai", "anthropic"), ("openai", "gemini"), ("anthropic", "openai")]


@pytest.mark.parametrize(
    ("provider", "vendor", "stream"),
    [(*pair, True) for pair in PASSED_ON + TRANSLATED] + [(*pair, False) for pair in TRANSLATED],
)
def test_the_library(litellm, gateway, provider, vendor, stream):
    # It loses what is after U+2028 in a stream of Anthropic's, which the gateway leaves as it is.
    words = WORDS[:3] if (provider, vendor) == ("anthropic", "anthropic") else WORDS
    with gateway(vendor, vendors.VENDORS[vendor](words)) as url:
        base = f"{url}/v1" if provider == "openai" else url
        asked = {"model": f"{provider}/m", "api_base": base, "api_key": "x", "messages": QUESTION, "max_tokens": 9}
        answer = litellm.completion(**asked, stream=stream, timeout=3 * WAIT)
        if stream:
            chunks = [choice for chunk in answer for choice in chunk.choices]
            text, reason = "".join(choice.delta.content or "" for choice in chunks), chunks[-1].finish_reason
        else:
            text, reason = answer.choices[0].message.content, answer.choices[0].finish_reason
    assert (text, reason) == ("".join(words), "stop")


@pytest.mark.parametrize("fault", ["error", "cut", "end"])
def test_faults(litellm, gateway, fault):
    """What is cut is an exception for it, where the gateway translates."""
    found = []
    with gateway("anthropic", vendors.anthropic(WORDS), fault=fault, after=5, pace=50) as url:
        asked = {"model": "openai/m", "api_base": f"{url}/v1", "api_key": "x", "messages": QUESTION}
        stream = litellm.completion(**asked, stream=True, timeout=3 * WAIT, max_retries=0)
        with pytest.raises(openai.APIError):
            found.extend(choice.delta.content or "" for chunk in stream for choice in chunk.choices)
    assert "".join(found) == "".join(WORDS[:2])


@contextlib.contextmanager
def proxy(folder, models):
    """The URL of LiteLLM's proxy: name -> the parameters of a model."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = {"model_list": [{"model_name": name, "litellm_params": found} for name, found in models.items()]}
    (folder / "config.yaml").write_text(json.dumps(config))  # which is YAML
    line = [sys.executable, "-c", "from litellm import run_server; run_server()", "--config", "config.yaml"]
    line += ["--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": PROXY_KEY}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(line, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 15 * WAIT
        while not is_ready(port):
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(WAIT)


def is_ready(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        connection.request("GET", "/health/liveliness")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_the_proxy(llmstream, gateway, tmp_path):
    """In front of the gateway, for either vendor's clients, and behind it."""
    module = importlib.import_module("llmstream.integrations.gateway")
    with contextlib.ExitStack() as stack:
        one, two = (
            stack.enter_context(gateway(name, vendors.VENDORS[name](WORDS))) for name in ("openai", "anthropic")
        )
        models = {
            "passed-openai": {"model": "openai/m", "api_base": f"{one}/v1", "api_key": "x"},
            "translated": {"model": "openai/m", "api_base": f"{two}/v1", "api_key": "x"},
            "passed-anthropic": {"model": "anthropic/m", "api_base": two, "api_key": "x"},
        }
        url = stack.enter_context(proxy(tmp_path, models))
        client = stack.enter_context(
            openai.OpenAI(base_url=f"{url}/v1", api_key=PROXY_KEY, max_retries=0, timeout=3 * WAIT)
        )
        for name in models:
            chunks = list(client.chat.completions.create(model=name, messages=QUESTION, stream=True))
            choices = [choice for chunk in chunks for choice in chunk.choices]
            text = "".join(choice.delta.content or "" for choice in choices)
            if name != "passed-anthropic":  # LiteLLM loses what is after U+2028 in Anthropic's stream
                assert text == TEXT, name
            assert choices[-1].finish_reason == "stop"
        behind = module.Upstream("openai", f"{url}/v1", key=PROXY_KEY)
        port = stack.enter_context(served(module.Gateway([behind])))
        body = {"version": "1.0", "stream": True, "model": "translated", "messages": QUESTION}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3 * WAIT)
        stack.callback(connection.close)
        headers = {"content-type": "application/llm-request+json"}
        connection.request("POST", "/v1/stream", body=json.dumps(body), headers=headers)
        response = connection.getresponse()
        assert response.status == 200
        assert llmstream.parse(response.read(), strict=True).text == TEXT
