"""Every reader on every stream, for looking at one thing: ``python -m pytest benchmarks -k 'draft-mixed and cython'``.

``--benchmark-disable`` leaves the check that every reader finds what was written. The targets are judged by
``python -m benchmarks``, which takes the times in turns.
"""

from __future__ import annotations

from typing import Any

import pytest

from . import plan, twins
from .readers import table
from .readers.schema import SCHEMAS
from .streams import build

pytest.importorskip("pytest_benchmark")

CELLS = [(bench, *cell) for bench in plan.benches() for cell in bench.cells]


@pytest.mark.parametrize(
    ("bench", "task", "name"), CELLS, ids=[f"{bench.name}-{task}-{name}" for bench, task, name in CELLS]
)
def test_reader(benchmark: Any, request: pytest.FixtureRequest, bench: plan.Bench, task: str, name: str) -> None:
    reader = table()[name]
    stream = build(bench.stream, request.config.getoption("--events"))
    if stream is None:
        pytest.skip("no recorded streams at hand")
    if why := reader.missing():
        pytest.skip(why)
    run = reader.ready(task, SCHEMAS[stream.schema])
    if run is None:
        pytest.skip("no such task for this format")
    bodies = stream.chunks(bench.cut)
    benchmark.group = f"{bench.name} {task}"
    results = benchmark.pedantic(
        lambda: [run.read(chunks) for chunks in bodies],
        setup=lambda: twins.activate(reader.twin) if reader.twin else None,
        rounds=3,
        warmup_rounds=1,
    )
    for result, expected in zip(results, stream.expected, strict=True):
        found = run.view(result)
        assert found is None or expected.differs(found, only_text=task in ("read", "text")) is None
