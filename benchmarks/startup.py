"""What ``import llmstream`` adds to the start of the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter

__all__ = ["measure"]


def measure(twin: str, rounds: int) -> dict[str, float]:
    """Milliseconds: the whole difference, and the import statement alone; the best of some rounds in turns."""
    environment = {**os.environ, "LLMSTREAM_IMPLEMENTATION": twin}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, as an installer leaves it
    run("import llmstream", environment)
    timed = "from time import perf_counter as t; a = t(); import llmstream; print(t() - a)"
    bare, whole, inner = [], [], []
    for _ in range(rounds):
        bare.append(run("pass", environment)[0])
        whole.append(run("import llmstream", environment)[0])
        inner.append(float(run(timed, environment)[1]))
    return {"over_start_ms": (min(whole) - min(bare)) * 1e3, "statement_ms": min(inner) * 1e3}


def run(code: str, environment: dict[str, str]) -> tuple[float, str]:
    start = perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return perf_counter() - start, done.stdout
