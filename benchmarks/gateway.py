"""What the gateway costs beside the smallest proxy there can be: ``python -m benchmarks.gateway [--rounds 5]``.

An upstream sends events that were made before, one a chunk: "paced" to 10 clients at once, 100 a second each, or in
a "burst" to 20, as fast as it can. Between it and the clients is one process, whose processor time for one event is
what counts (user and system, by the scheduler). M, the smallest one, is a plain ASGI application that copies
bytes with the same HTTP client on the same server, and closes the upstream when its client leaves. "observe" is the
gateway that passes a vendor's stream on and reads along, "translate" the gateway that writes it as the standard stream.
Each round measures M, then ours, then LiteLLM's proxy on the same events, if there is one (``--litellm PYTHON`` names a
Python that has it; it gets a tenth of the events, as its processor time does not depend on their number); what is told
is the median of the ratios, with their range, beside the medians.

Further columns: HTTP chunks for one event; how much later the first event comes, in milliseconds, of a stream that is
asked for alone, and of all that are asked for at once; memory.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .drop_ins import payloads

STREAMS = {"paced": 10, "burst": 20}
PACE = 100.0
ALONE = 50
"""Streams that are asked for one after the other, for their first event."""

REQUEST = {"version": "1.0", "stream": True, "model": "m", "messages": [{"role": "user", "content": "?"}]}
WAYS = {
    "M": ("/v1/chat/completions", "/v1/messages", "application/json"),
    "observe": ("/v1/chat/completions", "/v1/messages", "application/json"),
    "translate": ("/v1/stream", "/v1/stream", "application/llm-request+json"),
    "litellm": ("/v1/chat/completions", "/v1/chat/completions", "application/json"),
}
KEY = "sk-" + os.urandom(32).hex()
"""Without one LiteLLM's proxy does not start."""

LITELLM_TARGETS = {"paced": 0.1, "burst": 0.01}
"""Ours as a part of LiteLLM's."""

TARGETS = {
    ("observe", "paced"): 1.2,
    ("observe", "burst"): 1.5,
    ("translate", "paced"): 1.3,
    ("translate", "burst"): 1.5,
}


# The processes


async def upstream(vendor: str, port_told: Callable[[int], None]) -> None:
    """Answers each request with the events that its headers ask for."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
                await reader.readexactly(size)
                await play(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def play(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        due = time.monotonic()
        for number, chunk in enumerate(chunks):
            writer.write(chunk)
            if pace:
                due += 1 / pace
                await asyncio.sleep(due - time.monotonic())
            elif number % 16 == 0:
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    events, pace = int(sys.argv[3]), float(sys.argv[4])
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in payloads(vendor, events)]
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1000)
    port_told(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def smallest(url: str) -> Any:
    """M: copies bytes, and watches for the client to leave."""
    import aiohttp

    session: Any = None

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal session
        if scope["type"] != "http":
            return
        body = (await receive())["body"]
        while (message := await receive()).get("more_body"):
            body += message["body"]
        body += message.get("body", b"")
        session = session or aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        headers = {"content-type": "application/json", "accept-encoding": "identity"}

        async def copy() -> None:
            async with session.post(url, data=body, headers=headers) as response:
                kept = [(b"content-type", response.headers["content-type"].encode())]
                await send({"type": "http.response.start", "status": response.status, "headers": kept})
                async for chunk in response.content.iter_any():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        tasks = [asyncio.ensure_future(copy()), asyncio.ensure_future(receive())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()

    return application


async def proxy(way: str, vendor: str, url: str, port_told: Callable[[int], None]) -> None:
    from llmstream.integrations.gateway import Gateway, Upstream
    from llmstream.integrations.serving import listen, serve

    tail = "/chat/completions" if vendor == "openai" else "/messages"
    application = smallest(url + tail) if way == "M" else Gateway([Upstream(vendor, url)], on_end=lambda exchange: None)
    listener = listen("127.0.0.1", 0)
    port_told(listener.getsockname()[1])
    await serve(application, listener)


# The measurement


class Process:
    """One of the processes, the port that it listens on, and what it wants in the head of a request."""

    headers = ""

    def __init__(self, *arguments: str) -> None:
        line = [sys.executable, "-m", "benchmarks.gateway", *arguments]
        # What asyncio says of clients that leave is no matter here.
        self._process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self._told())

    def _told(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def cpu(self) -> float:
        """Seconds that its threads have used, user and system."""
        used = 0
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            used += int((task / "schedstat").read_text().split()[0])
        return used / 1e9

    def memory(self) -> float:
        """The most that it has held, in MiB."""
        with open(f"/proc/{self._process.pid}/status") as file:
            found = next(line for line in file if line.startswith("VmHWM"))
        return int(found.split()[1]) / 1024

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class LiteLLM(Process):
    """LiteLLM's proxy, run by a Python that has it; its model "m" is that of a vendor at ``url``."""

    def __init__(self, python: str, vendor: str, url: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        base = url if vendor == "openai" else url.removesuffix("/v1")
        model = {"model": f"{vendor}/m", "api_base": base, "api_key": "x"}
        self._folder = tempfile.TemporaryDirectory()
        config = os.path.join(self._folder.name, "config.yaml")
        with open(config, "w") as file:
            json.dump({"model_list": [{"model_name": "m", "litellm_params": model}]}, file)  # which is YAML
        line = [
            python,
            "-c",
            "from litellm import run_server; run_server()",
            "--config",
            config,
            "--telemetry",
            "False",
        ]
        self.headers = f"authorization: Bearer {KEY}\r\n"
        self._process = subprocess.Popen(
            [*line, "--host", "127.0.0.1", "--port", str(self.port)],
            cwd=self._folder.name,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while "running on" not in (line_said := self._told()):
            if not line_said:
                raise SystemExit("LiteLLM's proxy did not start")
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        with contextlib.suppress(ValueError):  # it was closed
            while self._told():
                pass

    def stop(self) -> None:
        super().stop()
        self._folder.cleanup()


def litellm_version(python: str) -> str | None:
    """The version of LiteLLM that a Python has; None for none."""
    code = "import importlib.metadata as m, litellm; print(m.version('litellm'))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.split()[-1] if found.returncode == 0 and found.stdout.split() else None


async def client(proxy: Process, path: str, kind: str, most: int = 2**60) -> tuple[float, int, bytes]:
    """One stream: seconds until its first event, the HTTP chunks that it came in, and its end; or ``most`` chunks."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, limit=2**24)
    body = json.dumps(REQUEST).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\n{proxy.headers}content-type: {kind}\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"
    began = time.monotonic()
    writer.write(head.encode() + body)
    status = await reader.readuntil(b"\r\n\r\n")
    if not status.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"the proxy answered {status[:40]!r}")
    first, count, tail = 0.0, 0, b""
    while size := int(await reader.readline(), 16):
        piece = await reader.readexactly(size + 2)
        first = first or time.monotonic() - began
        count += 1
        tail = piece[-200:]
        if count == most:
            break
    writer.close()
    return first, count, tail


def measured(way: str, vendor: str, mode: str, events: int, python: str = "") -> dict[str, float]:
    """One run; ``python`` is that of LiteLLM."""
    streams = STREAMS[mode]
    source = Process("upstream", vendor, str(events), str(PACE if mode == "paced" else 0))
    url = f"http://127.0.0.1:{source.port}/v1"
    between = LiteLLM(python, vendor, url) if way == "litellm" else Process("proxy", way, vendor, url)
    path, anthropic_path, kind = WAYS[way]
    path = path if vendor == "openai" else anthropic_path

    async def run(count: int, most: int = 2**60) -> list[tuple[float, int, bytes]]:
        return await asyncio.gather(*(client(between, path, kind, most) for _ in range(count)))

    async def alone() -> float:
        return statistics.median([(await run(1, most=1))[0][0] for _ in range(ALONE)])

    try:
        asyncio.run(run(5, most=2))  # what is imported and learned once
        first_alone = asyncio.run(alone()) if mode == "paced" else 0.0
        time.sleep(0.2)
        before = between.cpu()
        found = asyncio.run(run(streams))
        used = between.cpu() - before
        memory = between.memory()
    finally:
        between.stop()
        source.stop()
    marks = {"translate": b"stream.end", "litellm": b"[DONE]"}
    mark = marks.get(way, b"[DONE]" if vendor == "openai" else b"message_stop")
    assert all(mark in tail for _, _, tail in found), "a stream did not come to its end"
    return {
        "cpu": used / streams / events * 1e6,
        "chunks": sum(count for _, count, _ in found) / streams / events,
        "alone": first_alone * 1e3,
        "first": statistics.median(first for first, _, _ in found) * 1e3,
        "memory": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=4000, help="of a stream in a burst; paced ones have a tenth")
    parser.add_argument("--litellm", default=sys.executable, metavar="PYTHON", help="that has LiteLLM and its proxy")
    found = parser.parse_args()
    version = litellm_version(found.litellm)
    print(f"LiteLLM {version}" if version else "LiteLLM is not there, and is left out: see --litellm", flush=True)
    for mode in STREAMS:
        events = found.events if mode == "burst" else found.events // 10
        for vendor, way in (("openai", "observe"), ("anthropic", "translate")):
            rounds = []
            for _ in range(found.rounds):
                runs = [measured("M", vendor, mode, events), measured(way, vendor, mode, events)]
                if version:
                    few = events // 10 if mode == "burst" else events
                    runs.append(measured("litellm", vendor, mode, few, found.litellm))
                rounds.append(runs)
            report(mode, way, rounds)


def report(mode: str, way: str, rounds: list[list[dict[str, float]]]) -> None:
    """Prints what the rounds have shown: of each the runs of M, ours and, if there is one, LiteLLM."""
    ratios = sorted(runs[1]["cpu"] / runs[0]["cpu"] for runs in rounds)
    middle = {
        key: [statistics.median(runs[side][key] for runs in rounds) for side in range(len(rounds[0]))]
        for key in ("cpu", "chunks", "alone", "first", "memory")
    }
    least, ours, *theirs = middle["cpu"]
    alone, first = (middle[key][1] - middle[key][0] for key in ("alone", "first"))
    print(
        f"{mode} {way}: {ours:.1f} us an event, M {least:.1f}; ratio "
        f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}), target {TARGETS[way, mode]}; "
        f"chunks an event {middle['chunks'][1]:.2f}, M {middle['chunks'][0]:.2f}; first event "
        f"{f'{alone:+.2f} ms alone (target 1), ' if alone else ''}{first:+.2f} ms of {STREAMS[mode]} at once; "
        f"memory {middle['memory'][1]:.0f} MiB, M {middle['memory'][0]:.0f} (target 1.25 of it)",
        flush=True,
    )
    if theirs:
        parts = sorted(runs[1]["cpu"] / runs[2]["cpu"] for runs in rounds)
        print(
            f"{mode} {way} beside LiteLLM: {theirs[0]:.1f} us an event, of which ours is "
            f"{statistics.median(parts):.4f} ({parts[0]:.4f}-{parts[-1]:.4f}), target {LITELLM_TARGETS[mode]}; its "
            f"first event {middle['first'][2] - middle['first'][0]:+.2f} ms; its memory {middle['memory'][2]:.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["upstream"]:
        asyncio.run(upstream(sys.argv[2], lambda port: print(port, flush=True)))
    elif sys.argv[1:2] == ["proxy"]:
        asyncio.run(proxy(*sys.argv[2:5], lambda port: print(port, flush=True)))  # type: ignore[arg-type]
    else:
        main()
