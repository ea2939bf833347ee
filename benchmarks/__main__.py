"""``python -m benchmarks``: measures, compares with the targets, and writes the record, the tables and the plots.

--quick          shorter streams and fewer of them, under a minute; written to build/benchmarks
--only NAME      streams and parts whose name has NAME in it (several times: any of them)
--twin NAME      one of our implementations only
--check          no times: every reader reads every stream once and has to find what was written
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import machine, memory, plan, plots, producing, report, scaling, startup, twins
from .progress import Progress
from .readers import Reader, Run, table
from .readers.schema import SCHEMAS
from .results import Cell, Results
from .streams import Stream, build
from .timing import Case, exponent, interleave, pinned

ROOT = Path(__file__).parents[1]
MIB = 1 << 20
SLOW = {"anthropic", "axio-sse", "httpx-sse", "httpx2", "launchdarkly", "python-careful", "split-jiter", "sseclient"}
"""Readers that ``--quick`` leaves out, since no target names them."""
VERSUS = ["naive-front", "split-json", "openai", "httpx-sse", "python", "cython"]


class Session:
    """One run of the command."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.quick: bool = options.quick
        self.events = 6_000 if self.quick else 20_000
        self.rounds, self.budget = (15, 0.1) if self.quick else (15, 0.5)
        self.results = Results()
        self.wrong: list[str] = []
        self.twins = [name for name in twins.NAMES if options.twin in (None, name)]
        self.readers: dict[str, Reader] = {}
        for name, reader in table().items():
            if reader.twin is not None and reader.twin not in self.twins:
                continue
            why = reader.missing()
            if why is None:
                self.readers[name] = reader
            else:
                self.results.missing[name] = why
        self.twins = [name for name in self.twins if not twins.missing(name)]
        parts = [*self._benches(), *self._figures()]
        self.parts = [part for part in parts if self._wanted(part[0])]
        self.progress = Progress(len(self.parts))

    def _wanted(self, name: str) -> bool:
        return not self.options.only or any(only in name for only in self.options.only)

    def run(self) -> None:
        for name, part in self.parts:
            self.progress.begin(name)
            part()
            self.progress.end()
        self.progress.close()

    # Readers on streams

    def _benches(self) -> Iterator[tuple[str, Callable[[], None]]]:
        for bench in plan.benches():
            if bench.quick or not self.quick:
                yield bench.name, lambda bench=bench: self._bench(bench)  # type: ignore[misc]

    def _bench(self, bench: plan.Bench) -> None:
        stream = build(bench.stream, self.events)
        if stream is None:
            self.results.missing[bench.stream] = "no recorded streams at hand (../shared/captures, or LLMSTREAM_SHARED)"
            return
        bodies = stream.chunks(bench.cut)
        cases, keys = [], []
        for task, name in bench.cells:
            if self.quick and self._left_out(bench, task, name):
                continue
            run = self._ready(task, name, stream)
            if run is None or not self._right(bench, task, name, run, stream, bodies):
                continue
            cases.append(self._case(self.readers[name], run, bodies))
            keys.append((bench.stream, bench.cut, task, name))
        if self.options.check:
            return
        with pinned():
            interleave(cases, self.rounds, self.budget, self.progress.tick)
        for key, case in zip(keys, cases, strict=True):
            self.results.cells[key] = Cell(case.best, case.median, len(case.times), stream.events, stream.size)

    def _left_out(self, bench: plan.Bench, task: str, name: str) -> bool:
        return task != "framing" and (name in SLOW or (name == "naive-front" and not bench.stream.startswith("draft")))

    def _ready(self, task: str, name: str, stream: Stream) -> Run | None:
        reader = self.readers.get(name)
        return None if reader is None else reader.ready(task, SCHEMAS[stream.schema])

    def _case(self, reader: Reader, run: Run, bodies: list[list[bytes]]) -> Case:
        def read() -> list[Any]:
            return [run.read(chunks) for chunks in bodies]

        twin = reader.twin
        return Case(reader.name, read, lambda: twins.activate(twin) if twin else None)

    def _right(
        self, bench: plan.Bench, task: str, name: str, run: Run, stream: Stream, bodies: list[list[bytes]]
    ) -> bool:
        """Whether the reader finds what was written; the first, cold run."""
        self.progress.tick(f"{name}: is it right?")
        for at, (chunks, expected) in enumerate(zip(bodies, stream.expected, strict=True)):
            try:
                found = run.view(run.read(chunks))
            except Exception as error:  # noqa: BLE001 (whatever it is, it is a wrong result)
                fault: str | None = f"{type(error).__name__}: {error}"
            else:
                fault = None if found is None else expected.differs(found, only_text=task in ("read", "text"))
            if fault:
                body = f" ({stream.names[at]})" if stream.names else ""
                self.wrong.append(f"{bench.name} {task} {name}{body}: {fault}")
                self.progress.say("wrong: " + self.wrong[-1])
                return False
        return True

    # Other figures

    def _figures(self) -> Iterator[tuple[str, Callable[[], None]]]:
        for twin in self.twins:
            yield f"encoder {twin}", lambda twin=twin: self._encoder(twin)  # type: ignore[misc]
        if self.options.check:
            return
        for twin in self.twins:
            yield f"hits {twin}", lambda twin=twin: self._hits(twin)  # type: ignore[misc]
            yield f"event size {twin}", lambda twin=twin: self._event_size(twin)  # type: ignore[misc]
            yield f"number of events {twin}", lambda twin=twin: self._numbers(twin)  # type: ignore[misc]
            yield f"round robin {twin}", lambda twin=twin: self._round_robin(twin)  # type: ignore[misc]
            if twin == "cython" or not self.quick:
                yield f"threads {twin}", lambda twin=twin: self._threads(twin)  # type: ignore[misc]
            yield f"memory {twin}", lambda twin=twin: self._memory(twin)  # type: ignore[misc]
            yield f"startup {twin}", lambda twin=twin: self._startup(twin)  # type: ignore[misc]
        yield "versus: event size by reader", self._versus

    def _put(self, name: str, twin: str, value: Any) -> None:
        self.results.figures.setdefault(name, {})[twin] = value

    def _hits(self, twin: str) -> None:
        """Percent of the events with text, reasoning or arguments that a learned shape read."""
        package = twins.package(twin)
        found = {}
        for bench in plan.benches():
            if bench.cut != "event" or bench.stream in found:
                continue
            stream = build(bench.stream, self.events)
            if stream is None:
                continue
            schema = SCHEMAS[stream.schema]
            fields = self.readers["split-json"].ready("fields", schema)
            assert fields is not None
            hits = fragments = 0
            for body in stream.bodies:
                parser = package.Parser(dialect=schema.dialect)
                for event in body:
                    before = parser.shape_hits
                    parser.feed(event)
                    if any(part for each in fields.read([event]) for part in each[:3]):
                        fragments += 1
                        hits += parser.shape_hits > before
            found[bench.stream] = 100 * hits / fragments
        self._put("hits", twin, found)

    def _event_size(self, twin: str) -> None:
        rounds = 3 if self.quick else 5
        sizes = [MIB << power for power in range(3 if self.quick else 4)]
        with pinned():
            self._put("event_size", twin, scaling.event_size(twin, sizes, rounds, self.progress.tick))

    def _numbers(self, twin: str) -> None:
        counts = [1_000, 2_000, 4_000, 8_000] if self.quick else [1_000, 4_000, 16_000, 64_000]
        with pinned():
            self._put("events", twin, scaling.numbers(twin, counts, 3 if self.quick else 7, self.progress.tick))

    def _round_robin(self, twin: str) -> None:
        parsers = 10_000 if twin == "cython" or not self.quick else 1_000
        with pinned():
            found = scaling.round_robin(twin, parsers, 8 if self.quick else 30, self.progress.tick)
        self._put("round_robin", twin, found)

    def _threads(self, twin: str) -> None:
        self._put("threads", twin, scaling.threads(twin, self.events, 3, self.progress.tick))

    def _memory(self, twin: str) -> None:
        count = 10_000 if not self.quick else 2_000 if twin == "cython" else 500
        found = {dialect: memory.measure(twin, count, dialect) for dialect in ("llm-stream", "openai")}
        self._put("memory", twin, found)

    def _startup(self, twin: str) -> None:
        with pinned():
            self._put("startup", twin, startup.measure(twin, 8 if self.quick else 30))

    def _encoder(self, twin: str) -> None:
        fault = producing.check(twin)
        if fault:
            self.wrong.append(f"encoder {twin} {fault}")
        elif not self.options.check and "split-orjson" in self.readers:
            rounds, budget = (7, 0.02) if self.quick else (15, 0.1)
            with pinned():
                self._put("encoder", twin, producing.measure(twin, rounds, budget, self.progress.tick))

    def _versus(self) -> None:
        sizes = [4096 << (2 * step) for step in range(5 if self.quick else 6)]
        names = [name for name in VERSUS if name in self.readers]
        with pinned():
            found = scaling.versus(names, sizes, 0.1 if self.quick else 1.5, self.progress.tick)
        self.results.figures["versus"] = found
        # Of the larger half: what small events cost besides is no growth.
        slopes = {name: list(row.items())[-3:] for name, row in found.items() if len(row) > 1}
        self.results.figures["versus_exponent"] = {
            name: exponent(*zip(*points, strict=True)) for name, points in slopes.items()
        }


def write(session: Session, command: str) -> Path:
    """The record, the tables and the plots; the folder of the record."""
    facts = machine.describe()
    today = dt.datetime.now(dt.UTC).date().isoformat()
    partial = session.quick or session.options.only or session.options.twin
    folder = ROOT / "build" / "benchmarks" if partial else ROOT / "benchmarks" / "record" / facts["arch"]
    drawings = folder if partial else ROOT / "docs" / "plots"
    for each in (folder, drawings):
        each.mkdir(parents=True, exist_ok=True)
    verdicts = [session.results.verdict(target) for target in plan.targets() if target.twin in session.twins]
    judged = [
        {"work": verdict.target.work, "value": verdict.value, "unit": verdict.target.unit, "met": verdict.met}
        | {"at_least": verdict.target.at_least, "at_most": verdict.target.at_most, "note": verdict.note}
        for verdict in verdicts
    ]
    record = {"command": command, "date": today, "machine": facts, "targets": judged, **session.results.as_dict()}
    text = json.dumps(record, indent=1, ensure_ascii=False, default=str) + "\n"
    (folder / f"{today}.json").write_text(text, encoding="utf-8")
    (folder / f"{today}.txt").write_text(machine.text(facts), encoding="utf-8")
    (folder / f"{today}.md").write_text(report.whole(session.results, verdicts, facts, command), encoding="utf-8")
    for name, draw in (("readers", plots.readers), ("event-size", plots.event_size), ("framing", plots.framing)):
        picture = draw(session.results)
        if picture is not None:
            (drawings / f"{name}.svg").write_text(picture, encoding="utf-8")
    print(report.targets([verdict for verdict in verdicts if verdict.value is not None]))
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="shorter streams and fewer of them, under a minute")
    parser.add_argument("--only", action="append", metavar="NAME", help="streams and parts with NAME in their name")
    parser.add_argument("--twin", choices=twins.NAMES, help="one of our implementations only")
    parser.add_argument("--check", action="store_true", help="no times, only whether every reader is right")
    options = parser.parse_args()
    session = Session(options)
    session.run()
    if not options.check:
        folder = write(session, "python -m benchmarks " + " ".join(sys.argv[1:]))
        print(f"Tables and figures: {folder}")
    for name, why in session.results.missing.items():
        print(f"left out: {name}: {why}")
    for fault in session.wrong:
        print(f"wrong: {fault}")
    return 1 if session.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
