"""What a streamed event costs in the SDKs and in frameworks over them, as they are and accelerated.

``python -m benchmarks.drop_ins [--events 5000] [--rounds 5] [ROW ...]``: processor time of this process for one event,
in microseconds. A server in another process sends each event as one chunk of the transfer; the rows without transport
are answered by a transport in the process. Stock and accelerated runs take turns, and the best of each counts.
A row whose library is not installed is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would fetch a table of prices

MESSAGES = [{"role": "user", "content": "?"}]


def payloads(sdk: str, events: int) -> list[bytes]:
    """An answer of the vendor with so many pieces of text, one event an item."""
    words = [f" word{number}" for number in range(events)]
    if sdk == "openai":
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1749292800, "model": "example"}
        head |= {"service_tier": "default", "system_fingerprint": "fp_44709d6fcb"}

        def chunk(delta: Any, reason: Any = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
            return sse(head | {"choices": [choice], "usage": None})

        texts = [chunk({"content": word}) for word in words]
        return [chunk({"role": "assistant", "content": ""}), *texts, chunk({}, "stop"), b"data: [DONE]\n\n"]
    message = {"id": "m", "type": "message", "role": "assistant", "model": "example", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    end = {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": events}}
    block = {"type": "text", "text": ""}
    delta = {"type": "content_block_delta", "index": 0}
    return [
        sse({"type": "message_start", "message": message}, "message_start"),
        sse({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start"),
        *[sse({**delta, "delta": {"type": "text_delta", "text": word}}, "content_block_delta") for word in words],
        sse({"type": "content_block_stop", "index": 0}, "content_block_stop"),
        sse({"type": "message_delta", **end}, "message_delta"),
        sse({"type": "message_stop"}, "message_stop"),
    ]


def sse(payload: Any, event: str = "") -> bytes:
    data = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    return ((f"event: {event}\n" if event else "") + f"data: {data}\n\n").encode()


# The server


def serve(sdk: str, events: int) -> None:
    """Answers every request with the stream; prints its port, and goes on until its standard input ends."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in payloads(sdk, events)) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in request.split(b"\r\n")[1:] if b": " in line)
                await reader.readexactly(int(fields.get(b"content-length", 0)))
                writer.write(head + body)
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)  # connections of clients that were not closed are no concern

    asyncio.run(run())


@contextlib.contextmanager
def served(sdk: str, events: int) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.drop_ins", "--serve", sdk, "--events", str(events)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.communicate()


# The rows: each gets an address (or a client) and returns the number of items


def mocked(sdk: str, events: int) -> Any:
    """A client of the SDK that is answered without a connection."""
    package = importlib.import_module(sdk)
    response = importlib.import_module(f"{sdk}._streaming").Stream.__annotations__["response"]
    http: Any = importlib.import_module(response.partition(".")[0])
    chunks = payloads(sdk, events)

    class Body(http.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield from chunks

    def answer(request: Any) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    session = http.Client(transport=http.MockTransport(answer))
    return getattr(package, {"openai": "OpenAI", "anthropic": "Anthropic"}[sdk])(api_key="none", http_client=session)


def openai_create(client: Any) -> int:
    with client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        return sum(1 for _ in stream)


def anthropic_create(client: Any) -> int:
    with client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True) as stream:
        return sum(1 for _ in stream)


def openai_sync(address: str) -> Callable[[], int]:
    client = importlib.import_module("openai").OpenAI(api_key="none", base_url=address)
    return lambda: openai_create(client)


def openai_async(address: str) -> Callable[[], int]:
    async def read() -> int:
        async with importlib.import_module("openai").AsyncOpenAI(api_key="none", base_url=address) as client:
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            return len([None async for _ in stream])

    return lambda: asyncio.run(read())


def openai_helper(address: str) -> Callable[[], int]:
    client = importlib.import_module("openai").OpenAI(api_key="none", base_url=address)

    def read() -> int:
        with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
            return sum(event.type == "chunk" for event in stream)

    return read


def anthropic_sync(address: str) -> Callable[[], int]:
    client = importlib.import_module("anthropic").Anthropic(api_key="none", base_url=address)
    return lambda: anthropic_create(client)


def anthropic_async(address: str) -> Callable[[], int]:
    async def read() -> int:
        async with importlib.import_module("anthropic").AsyncAnthropic(api_key="none", base_url=address) as client:
            stream = await client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True)
            return len([None async for _ in stream])

    return lambda: asyncio.run(read())


def langchain_openai(address: str) -> Callable[[], int]:
    model = importlib.import_module("langchain_openai").ChatOpenAI(model="m", api_key="none", base_url=address)
    return lambda: sum(1 for _ in model.stream("?"))


def langchain_openai_async(address: str) -> Callable[[], int]:
    async def read() -> int:
        model = importlib.import_module("langchain_openai").ChatOpenAI(model="m", api_key="none", base_url=address)
        return len([None async for _ in model.astream("?")])

    return lambda: asyncio.run(read())


def langchain_anthropic(address: str) -> Callable[[], int]:
    model = importlib.import_module("langchain_anthropic").ChatAnthropic(model="m", api_key="none", base_url=address)
    return lambda: sum(1 for _ in model.stream("?"))


def llama_index(address: str) -> Callable[[], int]:
    llms: Any = importlib.import_module("llama_index.llms.openai")
    model = llms.OpenAI(model="gpt-4o", api_key="none", api_base=address)
    message = importlib.import_module("llama_index.core.llms").ChatMessage(role="user", content="?")
    return lambda: sum(1 for _ in model.stream_chat([message]))


def pydantic_ai(address: str) -> Callable[[], int]:
    agents: Any = importlib.import_module("pydantic_ai")
    models: Any = importlib.import_module("pydantic_ai.models.openai")
    providers: Any = importlib.import_module("pydantic_ai.providers.openai")

    async def read() -> int:
        provider = providers.OpenAIProvider(base_url=address, api_key="none")
        agent = agents.Agent(models.OpenAIChatModel("m", provider=provider))
        async with agent.run_stream("?") as answer:
            return len([None async for _ in answer.stream_text(delta=True, debounce_by=None)])

    return lambda: asyncio.run(read())


def litellm(address: str) -> Callable[[], int]:
    module: Any = importlib.import_module("litellm")

    async def read() -> int:
        options = {"api_base": address, "api_key": "none", "stream": True}
        stream = await module.acompletion(model="openai/m", messages=MESSAGES, **options)
        return len([None async for _ in stream])

    return lambda: asyncio.run(read())


@dataclass(frozen=True)
class Row:
    """``target``: how many times cheaper an event has to be."""

    sdk: str
    libraries: tuple[str, ...]
    prepare: Callable[[str], Callable[[], int]]
    target: float | None = None


ROWS = {
    "openai": Row("openai", ("openai",), openai_sync, 5.0),
    "openai, async": Row("openai", ("openai",), openai_async, 3.3),
    "openai, chat.completions.stream": Row("openai", ("openai",), openai_helper),
    "anthropic": Row("anthropic", ("anthropic",), anthropic_sync, 1.8),
    "anthropic, async": Row("anthropic", ("anthropic",), anthropic_async),
    "langchain-openai": Row("openai", ("langchain-openai", "openai"), langchain_openai, 2.5),
    "langchain-openai, async": Row("openai", ("langchain-openai", "openai"), langchain_openai_async),
    "langchain-anthropic": Row("anthropic", ("langchain-anthropic", "anthropic"), langchain_anthropic),
    "llama-index": Row("openai", ("llama-index-llms-openai", "openai"), llama_index, 2.5),
    "pydantic-ai": Row("openai", ("pydantic-ai-slim", "openai"), pydantic_ai, 2.0),
    "litellm": Row("openai", ("litellm", "openai"), litellm),
}
MOCKED = {
    "openai, without transport": ("openai", openai_create, 8.0),
    "anthropic, without transport": ("anthropic", anthropic_create, 3.0),
}


def versions(libraries: tuple[str, ...]) -> str | None:
    """The releases that are installed; None where one is missing."""
    try:
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in libraries)
    except importlib.metadata.PackageNotFoundError:
        return None


def timed(read: Callable[[], int], events: int) -> float:
    """Microseconds of processor time for one event of one stream."""
    gc.collect()
    start = process_time()
    found = read()
    spent = process_time() - start
    if not events <= found <= events + 10:
        raise SystemExit(f"{found} items of a stream with {events} texts")
    return spent / found * 1e6


def compare(sdk: str, read: Callable[[], int], events: int, rounds: int) -> tuple[float, float]:
    """The best of each, stock and accelerated, in turns."""
    acceleration: Any = importlib.import_module(f"llmstream.integrations.{sdk}")
    stock: list[float] = []
    accelerated: list[float] = []
    for number in range(rounds + 1):
        one = timed(read, events)
        acceleration.install()
        try:
            other = timed(read, events)
        finally:
            acceleration.uninstall()
        if number:  # the first is the libraries' warming up
            stock.append(one)
            accelerated.append(other)
    return min(stock), min(accelerated)


def show(name: str, installed: str, target: float | None, figures: tuple[float, float]) -> None:
    stock, accelerated = figures
    wanted = f"{target:.1f}" if target else ""
    print(
        f"| {name} | {installed} | {stock:.1f} | {accelerated:.1f} | {stock / accelerated:.1f} | {wanted} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="; ".join([*ROWS, *MOCKED]))
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", metavar="SDK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.events)
        return
    wanted = options.rows or [*ROWS, *MOCKED]
    print("| | versions | stock µs | accelerated µs | times | at least |\n|---|---|---:|---:|---:|---:|", flush=True)
    for name in wanted:
        if name in ROWS:
            row = ROWS[name]
            if installed := versions(row.libraries):
                with served(row.sdk, options.events) as address:
                    figures = compare(row.sdk, row.prepare(address), options.events, options.rounds)
                show(name, installed, row.target, figures)
        elif name in MOCKED:
            sdk, read, target = MOCKED[name]
            if installed := versions((sdk,)):
                client = mocked(sdk, options.events)
                figures = compare(sdk, lambda read=read, client=client: read(client), options.events, options.rounds)
                show(name, installed, target, figures)
        else:
            parser.error(f"no such row: {name}")


if __name__ == "__main__":
    main()
