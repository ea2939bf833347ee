"""The Vercel AI SDK in Node reads from the gateway; LLMSTREAM_NODE_MODULES is the folder where ``npm install ai
@ai-sdk/openai-compatible`` was run, and without it there is no such test."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from gateway_server import WAIT, served

import vendors

pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

SCRIPT = Path(__file__).with_name("vercel_ai.mjs")
FOLDER = os.environ.get("LLMSTREAM_NODE_MODULES")
WORDS = ["Hello", " w\u00f6rld", " \U0001f600", " d\u2028e\u0085f"]

if FOLDER:

    def told(url):
        line = ["node", str(SCRIPT), f"{url}/v1"]
        found = subprocess.run(line, capture_output=True, timeout=3 * WAIT, check=True, cwd=FOLDER)
        return json.loads(found.stdout.splitlines()[-1])

    @pytest.mark.parametrize("fault", [None, "cut", "error", "end", "429"])
    def test_vercel_ai(llmstream, replay, fault):
        gateway = importlib.import_module("llmstream.integrations.gateway")
        with served(replay(vendors.openai(WORDS), pace=100, fault=fault, after=3)) as port:
            upstream = gateway.Upstream("openai", f"http://127.0.0.1:{port}/v1", key="k")
            with served(gateway.Gateway([upstream])) as gateway_port:
                found = told(f"http://127.0.0.1:{gateway_port}")
        if fault is None:
            assert (found["text"], found["reason"], found["errors"]) == ("".join(WORDS), "stop", [])
            assert found["usage"]["outputTokens"] == 5
        elif fault == "429":
            assert (found["text"], found["errors"]) == ("", ["AI_APICallError"])
        else:
            assert found["text"] == "".join(WORDS[:2])
            assert found.get("reason") != "stop"
