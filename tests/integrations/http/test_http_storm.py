"""Many streams with faults at once; ``LLMSTREAM_FAULT_STREAMS`` says how many, for a long run."""

from __future__ import annotations

import os
from typing import Any

import pytest
from http_libraries import ENVIRONMENT

from fault_storm import storm

if ENVIRONMENT is None:
    pytest.skip("hundreds of connections: only in the environments of this folder", allow_module_level=True)

STREAMS = int(os.environ.get("LLMSTREAM_FAULT_STREAMS") or 400)
MARGIN = 32 * 2**20
"""Bytes that the process may grow by from the first half to the end: those of allocators and pools."""


def test_streams_with_faults_at_random(llmstream: Any, library: Any) -> None:
    figures = storm(llmstream, library.__name__, STREAMS, seed=8)
    assert figures.streams == STREAMS
    assert figures.events
    assert (figures.sockets, figures.descriptors) == (0, 0)
    assert set(figures.verdicts) == {"whole", "cut", "stalled", "either"}
    half = len(figures.memory) // 2
    assert figures.memory[-1] - figures.memory[half] < MARGIN
