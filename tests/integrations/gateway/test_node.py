"""The Vercel AI SDK in Node talks to the gateway as if it were its vendor, by itself and through Portkey's gateway.

LLMSTREAM_NODE_MODULES is the folder where ``tools/node_packages.sh`` was run; without it there are no such tests."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from gateway_server import WAIT, Recorder, served, until

import vendors

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

HERE = Path(__file__).parent
FOLDER = os.environ.get("LLMSTREAM_NODE_MODULES")
WORDS = ["Hello", " w\u00f6rld", " \U0001f600", " d\u2028e\u0085f"]
TEXT = "".join(WORDS)
QUESTION = [{"role": "user", "content": "?"}]
STREAMS = {
    "openai": vendors.openai(WORDS),
    "anthropic": vendors.anthropic(WORDS),
    "gemini": vendors.gemini(WORDS),
}
AFTER = {"openai": 3, "anthropic": 5, "gemini": 2}
"""Events of a stream until two of the words were there."""


@contextlib.contextmanager
def gateway_before(replay, vendor, on_end=None, **playing):
    """The URL of a gateway in front of a vendor's stream, and the upstream."""
    gateway = importlib.import_module("llmstream.integrations.gateway")
    upstream = Recorder(replay(STREAMS[vendor], **playing))
    with served(upstream) as port:
        found = gateway.Upstream(vendor, f"http://127.0.0.1:{port}/v1", key="k")
        with served(gateway.Gateway([found], on_end=on_end)) as gateway_port:
            yield f"http://127.0.0.1:{gateway_port}/v1", upstream


def told(url, headers=None):
    """What the SDK made of an answer."""
    line = ["node", str(HERE / "vercel_ai.mjs"), url, json.dumps(headers or {})]
    found = subprocess.run(line, capture_output=True, timeout=6 * WAIT, check=True, cwd=FOLDER)
    return json.loads(found.stdout.splitlines()[-1])


if FOLDER:

    @pytest.mark.parametrize("vendor", ["openai", "anthropic", "gemini"])
    @pytest.mark.parametrize("fault", [None, "cut", "error", "end", "429"])
    def test_vercel_ai(llmstream, replay, vendor, fault):
        """What another vendor streams is translated for it."""
        with gateway_before(replay, vendor, pace=100, fault=fault, after=AFTER[vendor]) as (url, _):
            found = told(url)
        if fault is None:
            assert (found["text"], found["reason"], found["errors"]) == (TEXT, "stop", [])
            assert found["usage"]["outputTokens"] == (len(WORDS) + 2 if vendor == "gemini" else 5)
        elif fault == "429":
            assert (found["text"], found["errors"]) == ("", ["AI_APICallError"])
        else:
            assert found["text"] == "".join(WORDS[:2])
            assert found.get("reason") != "stop"
            assert fault == "end" or found["errors"]

    @pytest.fixture(scope="module")
    def portkey():
        """The URL of Portkey's gateway."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        line = ["node", str(HERE / "portkey.mjs"), f"--port={port}", "--headless"]
        process = subprocess.Popen(line, cwd=FOLDER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 6 * WAIT
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), WAIT):
                    break
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()
            process.wait(WAIT)

    def asked_through(url, provider="openai"):
        """The headers that send Portkey to our gateway."""
        return {"x-portkey-provider": provider, "x-portkey-custom-host": url, "authorization": "Bearer mine"}

    @pytest.mark.parametrize(
        ("vendor", "provider"),
        [("openai", "openai"), ("anthropic", "openai"), ("gemini", "openai"), ("anthropic", "anthropic")],
    )
    def test_portkey_in_between(llmstream, replay, portkey, vendor, provider):
        """Portkey takes the gateway for its provider; the last pair is translated by Portkey, and passed on by us."""
        exchanges = []
        with gateway_before(replay, vendor, exchanges.append) as (url, upstream):
            body = {"model": "m", "stream": True, "messages": QUESTION, "max_tokens": 9}
            headers = asked_through(url, provider)
            response = httpx2.post(f"{portkey}/chat/completions", headers=headers, json=body, timeout=3 * WAIT)
            assert response.status_code == 200
            result = llmstream.parse(response.content, dialect="openai")
            assert (result.text, result.stop_reasons, result.error) == (TEXT, {0: "end_turn"}, None)
            assert response.content.endswith(b"data: [DONE]\n\n")
            until(lambda: exchanges)
        assert len(upstream.asked) == 1
        assert (exchanges[0].error, exchanges[0].format) == (None, "vendor")

    def test_the_sdk_through_portkey(llmstream, replay, portkey):
        with gateway_before(replay, "anthropic", pace=100) as (url, _):
            found = told(portkey, asked_through(url))
        assert (found["text"], found["reason"], found["errors"]) == (TEXT, "stop", [])

    @pytest.mark.parametrize("fault", ["error", "429"])
    def test_faults_through_portkey(llmstream, replay, portkey, fault):
        """What it hands on of an error is ours; what it hides of a cut is its own matter."""
        with gateway_before(replay, "anthropic", pace=100, fault=fault, after=AFTER["anthropic"]) as (url, _):
            body = {"model": "m", "stream": True, "messages": QUESTION}
            headers = asked_through(url)
            response = httpx2.post(f"{portkey}/chat/completions", headers=headers, json=body, timeout=3 * WAIT)
        if fault == "429":
            assert response.status_code == 429
        else:
            result = llmstream.parse(response.content, dialect="openai")
            assert (result.text, result.complete, result.error.code) == ("".join(WORDS[:2]), False, "overloaded")
