"""The command line. Each command is a module of this package with ``HELP``, ``COMMON`` (those
arguments that several take), ``arguments`` and ``run``, and may have ``EPILOG``,
which ends its help.

Exit status: 0 complete; 1 incomplete, an error in the stream, or violations that are errors; 2 input,
output or arguments that cannot be used, and ``auto`` where no format fits; 130 interrupted, 141 where the
reader of the output went away; of ``audit`` also 129 and 143, ended by SIGHUP and SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

from .. import __version__, implementation
from .options import Unusable, add_common
from .terminal import prepare, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

__all__ = ["main"]

COMMANDS = ("cat", "stats", "check", "convert", "audit", "serve", "demo")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status; ``argv`` is by default that of the process."""
    try:
        prepare()
        status = _run(argv)
        sys.stdout.flush()
    except Unusable as fault:
        say(str(fault))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _drop_output()
        return 141
    except OSError as fault:
        # Input has its own words for what goes wrong (inputs.py): what is left is output.
        _drop_output()
        say(f"cannot write: {fault.strerror}")
        return 2
    return status


class _Arguments(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        raise Unusable(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse hides what goes wrong here, which would be exit status 0 for a help that nobody got.
        if message:
            (file or sys.stderr).write(message)


def _run(argv: Sequence[str] | None) -> int:
    parser = _Arguments(prog="llmstream", description="Streams of LLMs on the command line: bytes in, events out.")
    version = f"llmstream {__version__} ({implementation})"
    parser.add_argument("--version", action="version", version=version)
    commands: Any = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    given = list(sys.argv[1:] if argv is None else argv)
    # Only the command that is asked for is imported; where none is, all of them.
    names = given[:1] if given and given[0] in COMMANDS else COMMANDS
    modules: dict[str, Any] = {name: import_module(f".{name}", __name__) for name in names}
    parsers: dict[str, argparse.ArgumentParser] = {}
    for name, module in modules.items():
        epilog = getattr(module, "EPILOG", None)
        command = parsers[name] = commands.add_parser(name, help=module.HELP, description=module.__doc__, epilog=epilog)
        add_common(command, module.COMMON)
        module.arguments(command)
    try:
        found, unknown = parser.parse_known_args(given)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    if unknown:
        parsers[found.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    run: Callable[[argparse.Namespace], int] = modules[found.command].run
    return run(found)


def _drop_output() -> None:
    """What is still held for standard output goes nowhere, so that the exit is quiet."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):  # no file behind it
        pass
