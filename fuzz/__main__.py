"""The command line: ``python -m fuzz --help``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import guided
from .judge import ORACLES
from .packages import implementations
from .runner import FINDINGS, Runner
from .targets import TARGETS


def main() -> int:
    options = _arguments()
    if options.list:
        print("\n".join(TARGETS))
        print("\n".join(f"  oracle {name}: {words}" for name, words in ORACLES.items()))
        return 0
    if options.prove:
        from . import faults

        return faults.prove(options.targets, options.seconds)
    names = list(TARGETS) if options.targets in ([], ["all"]) else options.targets
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        print(f"no target {unknown[0]}; known are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    if options.atheris:
        guided.run(names[0], options.seconds, options.libfuzzer)
    found = implementations(options.implementation.split(",") if options.implementation else None)
    failed = False
    for name in names:
        runner = Runner(name, found, options.oracle)
        if options.replay:
            runner.one(options.replay.read_bytes())
        else:
            runner.run(options.seconds, options.executions, options.seed, options.first)
        words = f"{runner.executions} executions, {len(runner.behaviours)} behaviours"
        print(f"{name}: {words}, {len(runner.findings)} findings", flush=True)
        failed |= bool(runner.findings)
        for kind, message in runner.messages.items():
            print(f"  {kind}: {message}")
        for path in [] if options.replay else runner.save(options.findings):
            print(f"  {os.path.relpath(path)}")
    return int(failed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Reads bytes that nobody wrote.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="by default all of them, one after the other")
    parser.add_argument("--seconds", type=float, default=10, help="for each target (default 10)")
    parser.add_argument("--executions", type=int, help="end each target after so many")
    parser.add_argument("--seed", type=int, default=0, help="of the random mutations")
    parser.add_argument("--oracle", action="append", default=[], choices=ORACLES, help="ask this one only")
    parser.add_argument("--implementation", help="python, cython or both with a comma; by default those that are there")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="one input of one target")
    parser.add_argument("--first", action="store_true", help="end a target with its first finding")
    parser.add_argument("--findings", type=Path, default=FINDINGS, metavar="FOLDER", help="where findings are written")
    parser.add_argument("--list", action="store_true", help="the targets and the oracles")
    parser.add_argument(
        "--prove", action="store_true", help="plant a fault for each oracle, and look whether it is found"
    )
    parser.add_argument("--atheris", action="store_true", help="guided by coverage; one target")
    parser.add_argument("--libfuzzer", action="append", default=[], metavar="OPTION", help="handed on to libFuzzer")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
