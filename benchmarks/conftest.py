"""pytest options of the benchmarks."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--events", type=int, default=2_000, help="events in the streams that are made (2000)")
