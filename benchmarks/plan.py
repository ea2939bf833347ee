"""What: the definitions and the targets, read from TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .readers import TASKS

__all__ = ["Bench", "Target", "benches", "targets"]

FOLDER = Path(__file__).parent / "definitions"
NAMES = (*TASKS, "payload")


@dataclass(frozen=True)
class Bench:
    """One stream in one cut, and who does what with it: the cells are measured in turns, in one process."""

    stream: str
    cut: int | str
    cells: tuple[tuple[str, str], ...]
    """Task and reader."""
    quick: bool

    @property
    def name(self) -> str:
        return f"{self.stream}/{self.cut}"


@dataclass(frozen=True)
class Target:
    """One line of the table of targets: ``measure`` names a figure, or ``ours`` is compared with the best of
    ``against`` where both do their task on ``stream`` in ``cut``."""

    work: str
    twin: str = "cython"
    stream: str = ""
    cut: int | str = 0
    task: str = "kept"
    ours: str = "cython"
    against: tuple[str, ...] = ()
    against_cut: int | str = 0
    against_task: str = ""
    measure: str = ""
    unit: str = "x"
    at_least: float | None = None
    at_most: float | None = None


def benches() -> Iterator[Bench]:
    """One for every stream and cut; of several definitions of the same, one with the cells of all."""
    found: dict[tuple[str, int | str], Bench] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("bench", ()):
            for cut in entry["cuts"]:
                cells = tuple((task, reader) for task in NAMES for reader in entry.get(task, ()))
                # Bare payloads, and payloads behind a prefix, are read by what is written for them.
                cells = tuple(cell for cell in cells if fits(cut, *cell))
                before = found.get((entry["stream"], cut))
                bench = Bench(entry["stream"], cut, cells, cut in entry["quick"])
                if before is not None:
                    bench = Bench(bench.stream, cut, before.cells + cells, before.quick or bench.quick)
                found[bench.stream, cut] = bench
    yield from found.values()


def fits(cut: int | str, task: str, reader: str) -> bool:
    framed = isinstance(cut, str) and cut.startswith("framed")
    return (task == "payload") == (cut == "payload") and reader.startswith("framed-") == framed


def targets() -> list[Target]:
    found: list[dict[str, Any]] = tomllib.loads((FOLDER / "targets.toml").read_text(encoding="utf-8"))["target"]
    return [Target(**{**entry, "against": tuple(entry.get("against", ()))}) for entry in found]
