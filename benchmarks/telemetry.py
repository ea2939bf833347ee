"""What reading along costs, and what OpenTelemetry adds to it: ``python -m benchmarks.telemetry [--events 5000]``.

Processor time for one event, which comes as one chunk, in microseconds, and for one stream besides: the best of several
rounds in turns. "no SDK" is the API alone, whose meters and spans do nothing; the SDK keeps its figures in memory.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from time import process_time
from typing import Any

import llmstream

from .drop_ins import payloads


def observers() -> dict[str, Callable[[str], Any]]:
    """Name -> what makes one that reads along with a dialect."""
    found: dict[str, Callable[[str], Any]] = {"Observer": llmstream.Observer}
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError:
        return found
    from llmstream.integrations.otel import GenAITelemetry

    found["telemetry, no SDK"] = GenAITelemetry().observer
    sdk = GenAITelemetry(tracer_provider=TracerProvider(), meter_provider=MeterProvider([InMemoryMetricReader()]))
    found["telemetry, SDK"] = sdk.observer
    found["so, no chunk times"] = GenAITelemetry(
        tracer_provider=TracerProvider(), meter_provider=MeterProvider([InMemoryMetricReader()]), chunk_times=False
    ).observer
    return found


def spent(make: Callable[[str], Any], dialect: str, chunks: list[bytes]) -> float:
    """Seconds for one stream."""
    began = process_time()
    observer = make(dialect)
    feed = observer.feed
    for chunk in chunks:
        feed(chunk)
    observer.close()
    return process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    found = parser.parse_args()
    print(f"llmstream {llmstream.__version__} ({llmstream.implementation})")
    print(f"{'':12} {'':20} {'us an event':>12} {'us a stream':>12}")
    for dialect in ("openai", "anthropic"):
        long, short = payloads(dialect, found.events), payloads(dialect, 1)
        best = {name: [float("inf")] * 2 for name in observers()}
        made = observers()
        gc.freeze()
        for _ in range(found.rounds):
            for name, make in made.items():
                best[name][0] = min(best[name][0], spent(make, dialect, long))
                best[name][1] = min(best[name][1], *(spent(make, dialect, short) for _ in range(20)))
        for name, (all_of_it, once) in best.items():
            print(f"{dialect:12} {name:20} {(all_of_it - once) / found.events * 1e6:12.2f} {once * 1e6:12.1f}")


if __name__ == "__main__":
    main()
