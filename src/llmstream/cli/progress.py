"""A progress bar on standard error, for input that takes long to read."""

from __future__ import annotations

import sys
from time import monotonic

from .terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, Self

    class Source(Protocol):
        """An ``Input``, or whatever else is read."""

        label: str
        position: int
        size: int | None


__all__ = ["Progress"]

PATIENCE = 0.5
"""Seconds without a bar: most input is read by then."""


class Progress:
    """Shows how far an input is read, from ``PATIENCE`` on and on a terminal only."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._due = monotonic() + PATIENCE if sys.stderr.isatty() else None
        self._bar: Any = None

    def update(self) -> None:
        """Called after each chunk."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._source.position)
        elif self._due is not None and monotonic() >= self._due:
            self._due = None
            self._start()

    def _start(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )
            from rich.text import Text
        except ModuleNotFoundError:
            say("reading ... (pip install 'llmstream-wire[cli]' shows a progress bar)")
            return
        label = Text(self._source.label).plain
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._bar.add_task(label, total=self._source.size, completed=self._source.position)
        self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        if self._bar is not None:
            self._bar.stop()
