"""The examples of the guides, and the configured example, do what they say."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gateway_server import WAIT, served

import vendors

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ROOT / "docs" / "guides"
ENVELOPE = {"version": "1.0", "stream": True, "messages": [{"role": "user", "content": "?"}]}
HEADERS = {"content-type": "application/llm-request+json"}


def examples(page):
    return re.findall(r"^```python\n(.*?)^```", (GUIDES / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def ask(url, model, headers=HEADERS):
    return httpx2.post(url, headers=headers, content=json.dumps({**ENVELOPE, "model": model}), timeout=WAIT)


def test_run_a_gateway(llmstream, replay, certificates):
    pytest.importorskip("fastapi")
    with served(replay(vendors.openai(["o"]))) as one, served(replay(vendors.anthropic(["a"]))) as two:
        names = {
            "openai_url": f"http://127.0.0.1:{one}/v1",
            "anthropic_url": f"http://127.0.0.1:{two}/v1",
            "openai_key": "k",
            "anthropic_key": "k",
            **certificates.options,
        }
        for example in examples("run-a-gateway.md"):
            exec(example, names)
        with served(names["app"]) as port:
            url = f"http://127.0.0.1:{port}/llm"
            assert llmstream.parse(ask(f"{url}/v1/stream", "gpt-1").content, strict=True).text == "o"
            assert llmstream.parse(ask(f"{url}/v1/messages", "claude-1").content, strict=True).text == "a"
        with served(names["recording"]) as port:
            ask(f"http://127.0.0.1:{port}/v1/stream", "gpt-1")
        assert names["records"][0].observation.output_tokens == 5
        assert names["limited"].limits.streams == 200

        async def at_once():
            pass

        names["listen"] = lambda host, port: importlib.import_module("llmstream.integrations.serving").listen(host, 0)
        asyncio.run(names["run"](at_once))


def test_test_a_client(llmstream):
    names = {"body": b"".join(vendors.openai(["a", "b"]))}
    (example,) = examples("test-a-client.md")
    exec(example, names)
    with served(names["application"]) as port, pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(f"http://127.0.0.1:{port}/", timeout=WAIT)


def test_observe_with_opentelemetry(llmstream, replay):
    pytest.importorskip("opentelemetry")
    gateway = importlib.import_module("llmstream.integrations.gateway")
    sent = []
    with served(replay(vendors.openai(["a"]))) as port:
        upstreams = [gateway.Upstream("openai", f"http://127.0.0.1:{port}/v1")]
        names = {"chunks": vendors.anthropic(["a"]), "send": sent.append, "upstreams": upstreams}
        for example in examples("observe-with-opentelemetry.md"):
            exec(example, names)
        assert sent == vendors.anthropic(["a"])
        with served(names["gateway"]) as gateway_port:
            assert ask(f"http://127.0.0.1:{gateway_port}/v1/stream", "m").status_code == 200


def test_the_limits_in_the_documentation(llmstream):
    limits = importlib.import_module("llmstream.integrations.gateway").Limits()
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    for words, value in (
        ("bytes of a request to a `Gateway` | 16 MiB", limits.request_size == 16 * 2**20),
        ("streams of a `Gateway` at once | 1,000", limits.streams == 1000),
        ("30 s, 10 s, 300 s, 1 h", (limits.request_time, limits.connect_time, limits.silence, limits.duration)
         == (30, 10, 300, 3600)),
        ("that is no stream | 64 MiB", limits.answer_size == 64 * 2**20),
    ):  # fmt: skip
        assert words in text
        assert value


def test_the_configured_example(llmstream, replay):
    with served(replay(vendors.openai(["o"]))) as port:
        environment = {
            **os.environ,
            "OPENAI_API_KEY": "k",
            "OPENAI_URL": f"http://127.0.0.1:{port}/v1",
            "GATEWAY_KEYS": "one,two",
        }
        line = [sys.executable, str(ROOT / "examples" / "gateway" / "gateway.py"), "--port", "0"]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            url = f"http://127.0.0.1:{process.stdout.readline().split()[-1]}/v1/stream"
            assert ask(url, "gpt-1").status_code == 401
            found = ask(url, "gpt-1", {**HEADERS, "authorization": "Bearer two"})
            assert llmstream.parse(found.content, strict=True).text == "o"
            process.terminate()
            assert process.wait(WAIT) == 0
            assert "two" not in process.stderr.read()
        finally:
            process.kill()
            process.wait(WAIT)
            process.stdout.close()
            process.stderr.close()
