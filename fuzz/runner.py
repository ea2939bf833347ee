"""Runs targets on random mutations, and keeps what behaves in a new way: it needs nothing but Python."""

from __future__ import annotations

import faulthandler
import hashlib
import random
import signal
import time
from collections.abc import Collection
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .judge import Case, DifferenceError
from .mutation import Mutator
from .packages import Implementation
from .seeds import seeds
from .targets import TARGETS, Target

FINDINGS = Path(__file__).with_name("findings")
LONGEST = 20  # seconds of the processor for one input
LARGEST_POOL = 3000


class Runner:
    """One run of one target. ``findings`` are what was found, one of each kind."""

    def __init__(self, name: str, implementations: list[Implementation], only: Collection[str] = ()) -> None:
        self.name = name
        self.target: Target = TARGETS[name]
        self.implementations = implementations
        self.only = only
        self.executions = 0
        self.behaviours: set[Any] = set()
        self.findings: dict[str, bytes] = {}
        self.messages: dict[str, str] = {}

    def one(self, raw: bytes) -> bool:
        """Reads one input; whether it behaved in a new way."""
        self.executions += 1
        try:
            with _limited():
                behaviour = self.target(Case(raw, self.implementations, self.only))
        except DifferenceError as found:
            self._found(found.oracle, str(found), raw)
            return False
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            self._found(f"clean {type(error).__name__}", f"{type(error).__name__}: {error}", raw)
            return False
        known = behaviour in self.behaviours
        self.behaviours.add(behaviour)
        return not known

    def _found(self, kind: str, message: str, raw: bytes) -> None:
        if kind not in self.findings or len(raw) < len(self.findings[kind]):
            self.findings[kind] = raw
            self.messages[kind] = message

    def run(self, seconds: float, executions: int | None = None, seed: int = 0, stop_at_first: bool = False) -> None:
        """Until the time or the number of executions is over; the seeds come first, in any case some of them."""
        source = random.Random(f"{self.name} {seed}")
        pool = seeds(self.name)
        source.shuffle(pool)
        mutate = Mutator(source, pool)
        deadline = time.monotonic() + seconds
        for raw in list(pool):
            self.one(raw)
            if time.monotonic() > deadline or self._enough(executions, stop_at_first):
                return
        while time.monotonic() < deadline and not self._enough(executions, stop_at_first):
            raw = mutate(source.choice(pool))
            if self.one(raw) and len(pool) < LARGEST_POOL:
                pool.append(raw)

    def _enough(self, executions: int | None, stop_at_first: bool) -> bool:
        return (executions is not None and self.executions >= executions) or (stop_at_first and bool(self.findings))

    def smaller(self, raw: bytes, kind: str) -> bytes:
        """The input with all taken out that the finding does not need."""
        size = len(raw) // 2
        while size:
            at = 2
            while at < len(raw):
                fewer = raw[:at] + raw[at + size :]
                trial = Runner(self.name, self.implementations, self.only)
                trial.one(fewer)
                if kind in trial.findings:
                    raw = fewer
                else:
                    at += size
            size //= 2
        return raw

    def save(self, folder: Path = FINDINGS) -> list[Path]:
        """Writes the findings, each as small as it gets."""
        paths = []
        for kind, raw in self.findings.items():
            folder.mkdir(exist_ok=True)
            raw = self.smaller(raw, kind) if len(raw) < 20_000 else raw
            path = folder / f"{self.name}-{hashlib.sha256(raw).hexdigest()[:12]}"
            path.write_bytes(raw)
            paths.append(path)
        return paths


class TooSlowError(Exception):
    """One input took longer than LONGEST."""


@contextmanager
def _limited() -> Any:
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(*_: Any) -> None:
        raise TooSlowError(f"more than {LONGEST} s")

    before = signal.signal(signal.SIGPROF, over)
    # Compiled code takes no signal before it returns: then this tells where it is, and ends the process.
    faulthandler.dump_traceback_later(LONGEST * 30, exit=True)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        faulthandler.cancel_dump_traceback_later()
