"""Where a run is: one line that changes on a terminal, a line for each part elsewhere."""

from __future__ import annotations

import sys
from time import monotonic

__all__ = ["Progress"]

WIDTH = 24


class Progress:
    def __init__(self, parts: int) -> None:
        self.parts = max(parts, 1)
        self.done = 0
        self.part = ""
        self.start = monotonic()
        self.live = sys.stderr.isatty()
        self._shown = 0.0

    def begin(self, part: str) -> None:
        self.part = part
        self._show("", force=True)
        if not self.live:
            print(
                f"[{self.done + 1:3}/{self.parts}] {monotonic() - self.start:5.0f} s  {part}",
                file=sys.stderr,
                flush=True,
            )

    def tick(self, what: str) -> None:
        self._show(what, force=False)

    def end(self) -> None:
        self.done += 1

    def say(self, line: str) -> None:
        """A line that stays."""
        self._clear()
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        self._clear()

    def _clear(self) -> None:
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _show(self, what: str, *, force: bool) -> None:
        now = monotonic()
        if not self.live or not (force or now - self._shown > 0.1):
            return
        self._shown = now
        full = WIDTH * self.done // self.parts
        bar = "█" * full + "░" * (WIDTH - full)
        line = f"{bar} {self.done}/{self.parts} {now - self.start:4.0f} s  {self.part}  {what}"
        print("\r\x1b[K" + line[:110], end="", file=sys.stderr, flush=True)
