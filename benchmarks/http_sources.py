"""What an event costs on its way out of a response: the EventSource of httpx-sse and of httpx2, and ours for each.

``python -m benchmarks.http_sources [--events 20000] [--rounds 7]``: processor time for one event, in microseconds, the
best of the rounds, taking turns. The body is in the process, an event a chunk; the row ``bytes`` is what the library
takes for the chunks alone. A library that is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

EVENT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1749292800,"model":"example","choices":'
    b'[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n'
)


def response(library: Any, events: int) -> Any:
    class Body(library.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(events):
                yield EVENT

    headers = {"content-type": "text/event-stream"}
    return library.Response(200, headers=headers, stream=Body(), request=library.Request("GET", "http://127.0.0.1/"))


def readers() -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """Name of a row -> the library, and what reads a response of it."""
    found: dict[str, tuple[Any, Callable[[Any], Any]]] = {}
    for name, peer in (("httpx", "httpx_sse"), ("httpx2", "httpx2")):
        try:
            library, stock = importlib.import_module(name), importlib.import_module(peer)
        except ModuleNotFoundError:
            continue
        ours = importlib.import_module(f"llmstream.integrations.{name}")
        found[f"{name}: bytes"] = library, lambda response: response.iter_bytes()
        if peer == "httpx_sse":
            found["httpx: httpx-sse"] = library, lambda response, stock=stock: stock.EventSource(response).iter_sse()
        else:
            found["httpx2: its own"] = library, lambda response, stock=stock: iter(stock.EventSource(response))
        found[f"{name}: llmstream"] = library, lambda response, ours=ours: ours.EventSource(response).iter_sse()
    return found


def measure(events: int, rounds: int) -> dict[str, float]:
    """Microseconds for an event, by row. Raises AssertionError where a row has not read every event."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for row, (library, read) in readers().items():
            items = read(response(library, events))
            start = process_time()
            count = sum(1 for _ in items)
            cost = (process_time() - start) / events * 1e6
            assert count == events, row
            best[row] = min(cost, best.get(row, cost))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    for row, cost in measure(given.events, given.rounds).items():
        print(f"{row:20} {cost:6.2f}")


if __name__ == "__main__":
    main()
