"""The command line: ``python -m tools.soak --help``."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys


def main() -> int:
    options = _arguments()
    if options.implementation:
        os.environ["LLMSTREAM_IMPLEMENTATION"] = options.implementation
    import llmstream

    from .runner import HEADER, Soak

    words = f"llmstream {llmstream.__version__}, {llmstream.implementation}, Python {platform.python_version()}"
    print(f"{words}; {options.minutes:g} minutes, {options.concurrency:,} streams at once, seed {options.seed}")
    print(HEADER, flush=True)
    soak = Soak(llmstream, concurrency=options.concurrency, seed=options.seed)
    asyncio.run(soak.run(options.minutes * 60))
    ways = ", ".join(f"{name} {count:,}" for name, count in sorted(soak.ways.items()))
    print(f"streams by the way they were read: {ways}")
    faults = soak.faults()
    print("\n".join(faults) or "results equal to what was written, memory flat")
    return int(bool(faults))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.soak", description="Thousands of streams at once, for long: results equal, memory flat."
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--concurrency", type=int, default=2000, help="streams that are open at once (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the streams, of their cuts and of what throws")
    parser.add_argument("--implementation", choices=("cython", "python"), help="by default the one that is there")
    options = parser.parse_args()
    if options.minutes <= 0 or options.concurrency < 1:
        parser.error("--minutes must be more than 0, --concurrency at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
