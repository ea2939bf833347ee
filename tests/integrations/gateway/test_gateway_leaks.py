"""Tens of streams, clients and upstreams that are killed: no task and no connection is left of them."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
from pathlib import Path

import pytest
from gateway_server import WAIT

import vendors

pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

QUESTION = {"stream": True, "messages": [{"role": "user", "content": "?"}]}
STANDARD = ("/v1/stream", "application/llm-request+json", {"version": "1.0", **QUESTION})
OPENAI = ("/v1/chat/completions", "application/json", QUESTION)
WHOLE = ("/v1/chat/completions", "application/json", {**QUESTION, "stream": False})
ANTHROPIC = ("/v1/messages", "application/json", {**QUESTION, "max_tokens": 9})
DESCRIPTORS = Path("/proc/self/fd")


class Counter:
    """How many requests of an application are under way."""

    def __init__(self, application):
        self.application = application
        self.open = self.seen = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        self.open += 1
        self.seen += 1
        try:
            await self.application(scope, receive, send)
        finally:
            self.open -= 1


async def ask(port, request, model, until=None):
    """One request by hand: its answer, or as much as there is ``until`` something is in it. Then the client is gone."""
    path, kind, body = request
    content = json.dumps({**body, "model": model}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {kind}\r\n"
    writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
    try:
        return await (reader.read() if until is None else reader.readuntil(until))
    finally:
        writer.transport.abort()


async def at_last(condition):
    for _ in range(int(WAIT / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to be")


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_nothing_is_left(llmstream, replay, vendor):
    """Each way through the gateway, streams that end, that are cut by the upstream, and that are left by the client."""
    gateway = importlib.import_module("llmstream.integrations.gateway")
    serving = importlib.import_module("llmstream.integrations.serving")
    events = vendors.VENDORS[vendor](["a", "b"])
    upstreams = {
        "whole": Counter(replay(events)),
        "cut": Counter(replay(events, fault="cut", after=5)),
        "stall": Counter(replay(events, fault="stall", after=4)),
    }
    translated = [WHOLE] if vendor == "anthropic" else []
    exchanges = []

    async def main():
        stop = asyncio.Event()
        servers = []

        def served(application):
            listener = serving.listen("127.0.0.1", 0)
            port = listener.getsockname()[1]
            servers.append(asyncio.ensure_future(serving.serve(application, listener, stop=stop.wait, graceful=1.0)))
            return port

        found = [
            gateway.Upstream(vendor, f"http://127.0.0.1:{served(application)}/v1", models=[name])
            for name, application in upstreams.items()
        ]
        application = gateway.Gateway(found, on_end=exchanges.append)
        port = served(application)
        ways = [STANDARD, OPENAI, ANTHROPIC]
        ends = await asyncio.gather(*(ask(port, way, "whole") for way in ways * 5))
        marks = [b"event: stream.end", b"[DONE]", b"event: message_stop"] * 5
        assert all(mark in end for mark, end in zip(marks, ends, strict=True))
        await asyncio.gather(*(ask(port, way, "cut") for way in ways * 5), return_exceptions=True)
        await asyncio.gather(*(ask(port, way, "stall", b'"a"') for way in ways * 5))
        pending = [asyncio.ensure_future(ask(port, way, "stall")) for way in translated * 5]
        await at_last(lambda: upstreams["stall"].seen == 15 + len(pending))
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        count = 45 + len(pending)
        await at_last(lambda: len(exchanges) == count and application.open == 0)
        await at_last(lambda: all(each.open == 0 for each in upstreams.values()))
        assert sum(exchange.gone for exchange in exchanges) == 15 + len(pending)
        await application.aclose()
        stop.set()
        await asyncio.gather(*servers)
        return asyncio.all_tasks() - {asyncio.current_task()}

    before = len(os.listdir(DESCRIPTORS)) if DESCRIPTORS.is_dir() else None
    assert asyncio.run(main()) == set()
    gc.collect()
    if before is not None:
        assert len(os.listdir(DESCRIPTORS)) == before
