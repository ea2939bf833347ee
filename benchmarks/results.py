"""What a run found, and how each target stands by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .plan import Target
from .readers import READERS

__all__ = ["Cell", "Results", "Verdict"]

Key = tuple[str, "int | str", str, str]
"""Stream, cut, task, reader."""


@dataclass
class Cell:
    """Seconds for the whole stream."""

    best: float
    median: float
    runs: int
    events: int
    size: int

    @property
    def ns(self) -> float:
        return self.best / self.events * 1e9


@dataclass(frozen=True)
class Verdict:
    target: Target
    value: float | None
    """None: not measured."""
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        least, most = self.target.at_least, self.target.at_most
        return (least is None or self.value >= least) and (most is None or self.value <= most)


@dataclass
class Results:
    cells: dict[Key, Cell] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Reader or stream -> why it was left out."""

    def verdict(self, target: Target) -> Verdict:
        measure = target.measure
        if measure in ("", "sse_over_framed", "times_over"):
            return self._compared(target)
        if measure.startswith("worst."):
            return self._worst(target)
        value: Any = self.figures
        for name in measure.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None and target.unit == "KiB":
            value /= 1024
        return Verdict(target, value)

    def _compared(self, target: Target) -> Verdict:
        ours = self.cells.get((target.stream, target.cut, target.task, target.ours))
        cut, task = target.against_cut or target.cut, target.against_task or target.task
        theirs = [
            (cell.best, name) for name in target.against if (cell := self.cells.get((target.stream, cut, task, name)))
        ]
        if ours is None or not theirs:
            return Verdict(target, None)
        best, name = min(theirs)
        note = READERS[name].label if len(target.against) > 1 else ""
        return Verdict(target, ours.best / best if target.measure else best / ours.best, note)

    def _worst(self, target: Target) -> Verdict:
        """The smallest ratio over all streams, cuts and tasks, of one reader or of the best of all others."""
        _, ours, against = target.measure.split(".")
        ratios = []
        for (stream, cut, task, reader), cell in self.cells.items():
            if reader != ours:
                continue
            others = [
                (other.best, name)
                for (*where, name), other in self.cells.items()
                if where == [stream, cut, task] and (name == against if against != "peers" else is_peer(name))
            ]
            if others:
                best, name = min(others)
                ratios.append((best / cell.best, f"{stream}/{cut} {task}: {READERS[name].label}"))
        return Verdict(target, *min(ratios)) if ratios else Verdict(target, None)

    def as_dict(self) -> dict[str, Any]:
        rows = [
            {"stream": stream, "cut": cut, "task": task, "reader": reader, "ns_per_event": round(cell.ns, 2)}
            | {
                "best_s": cell.best,
                "median_s": cell.median,
                "runs": cell.runs,
                "events": cell.events,
                "bytes": cell.size,
            }
            for (stream, cut, task, reader), cell in self.cells.items()
        ]
        return {"cells": rows, "figures": self.figures, "missing": self.missing}


def is_peer(name: str) -> bool:
    return READERS[name].twin is None and not READERS[name].floor
