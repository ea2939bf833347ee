"""The command line as tests run it: within the process, as a process, and on a terminal."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

COMMAND = (sys.executable, "-m", "llmstream")


def main(*arguments: str) -> int:
    """Exit status of the command of the active twin, within this process."""
    return int(importlib.import_module("llmstream.cli").main(arguments))


def feed(monkeypatch: Any, body: bytes) -> None:
    """Gives standard input a body."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))


def process(*arguments: str, body: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
    """The command of the active twin as a process of its own."""
    return subprocess.run([*COMMAND, *arguments], input=body, capture_output=True, timeout=60, check=False, **options)


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A line of the shell, in which $LLMSTREAM is the command."""
    environment = {**os.environ, "LLMSTREAM": " ".join(COMMAND), **variables}
    return subprocess.run(["sh", "-c", line], capture_output=True, env=environment, timeout=60, check=False)


def terminal(*arguments: str, columns: int = 80, **variables: str) -> Any:
    """The command with standard output and error on a terminal: ``.output`` and ``.status``."""
    import pty

    environment = {"TERM": "xterm", **os.environ, "COLUMNS": str(columns), **variables}
    control, side = pty.openpty()
    done = subprocess.Popen([*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=side, stderr=side, env=environment)
    os.close(side)
    output = bytearray()
    while True:
        try:
            piece = os.read(control, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        output += piece
    os.close(control)
    return SimpleNamespace(output=output.decode().replace("\r\n", "\n"), status=done.wait(60))
