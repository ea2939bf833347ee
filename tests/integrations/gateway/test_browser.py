"""The page of examples/browser in a headless Chromium, where there is one, with the gateway and the replay server."""

from __future__ import annotations

import html
import importlib
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from gateway_server import WAIT, served

import vendors
from standard import clock

pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

PAGE = Path(__file__).resolve().parents[3] / "examples" / "browser" / "page.py"
WORDS = ["Hello", " w\u00f6rld", " <b>\U0001f600</b>", " d\u2028e"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def shown(url, folder):
    """What the page shows once the stream is over: id -> text."""
    line = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    line += ["--virtual-time-budget=8000", "--dump-dom", url]
    page = subprocess.run(line, capture_output=True, timeout=3 * WAIT, check=True, text=True).stdout
    found = dict(re.findall(r'<(?:p|dd) id="(\w+)"[^>]*>(.*?)</', page, re.DOTALL))
    text = re.search(r'<p id="text"[^>]*>(.*?)</p>', page, re.DOTALL)
    events = re.findall(r"<li>(.*?)</li>", page)
    return {**found, "text": html.unescape(text[1]), "events": events}


def page_of(gateway):
    spec = importlib.util.spec_from_file_location("page", PAGE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.with_page(gateway)


if CHROMIUM:

    def test_the_gateway(llmstream, replay, tmp_path):
        gateway = importlib.import_module("llmstream.integrations.gateway")
        with served(replay(vendors.anthropic(WORDS), chunk="7")) as port:
            upstream = gateway.Upstream("anthropic", f"http://127.0.0.1:{port}/v1", models=["claude-*"])
            with served(page_of(gateway.Gateway([upstream]))) as page_port:
                url = f"http://127.0.0.1:{page_port}/?ask=x"
                found = shown(f"{url}&model=claude-x", tmp_path)
                refused = shown(f"{url}&model=other", tmp_path)
        assert (found["text"], found["model"], found["usage"]) == ("".join(WORDS), "claude-x", "3 in, 5 out")
        assert (found["state"], found["gaps"]) == ("complete", "none")
        assert found["events"][0] == "0 stream.start"
        assert refused["state"] == "refused: 404 no upstream answers this model model"

    def test_the_replay_server(llmstream, replay, tmp_path):
        """R3-2: what Chromium's own reader of Server-Sent Events takes from the stream."""
        encoder = llmstream.Encoder(clock=clock)
        events = [encoder.start("m"), *map(encoder.delta, WORDS), encoder.stop("end_turn"), encoder.end()]
        lossy = [*events[:2], *events[4:]]
        gateway = importlib.import_module("llmstream.integrations.gateway")
        dead = gateway.Upstream("openai", "http://127.0.0.1:9/v1")
        with served(replay(lossy)) as port, served(page_of(gateway.Gateway([dead]))) as page_port:
            source = f"http://127.0.0.1:{port}/0"
            found = [
                shown(f"http://127.0.0.1:{page_port}/?replay={quote(each, safe='')}", tmp_path)
                for each in (source, f"{source}?fault=error&after=2", f"{source}?fault=end&after=2")
            ]
        assert (found[0]["text"], found[0]["state"], found[0]["gaps"]) == ("Hello" + WORDS[3], "complete", "2 to 3")
        assert (found[1]["text"], found[1]["state"]) == ("Hello", "failed: overloaded")
        assert (found[2]["text"], found[2]["state"]) == ("Hello", "cut short")
