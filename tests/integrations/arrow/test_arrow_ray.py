"""A thousand captured streams through a local Ray, as the guide says: the same table as the command's."""

from __future__ import annotations

import sys
from typing import Any

import pytest

ray: Any = pytest.importorskip("ray")

import arrow_streams  # noqa: E402


@pytest.mark.filterwarnings("ignore")
def test_the_same_table(llmstream, tmp_path):
    streams = arrow_streams.captured()
    wanted = arrow_streams.by_command(tmp_path, streams)
    assert arrow_streams.is_as_expected(wanted, streams)
    lake = arrow_streams.Lake(tmp_path, streams)
    variables = {"LLMSTREAM_IMPLEMENTATION": llmstream.implementation, "PYTHONPATH": ":".join(filter(None, sys.path))}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": variables}, log_to_driver=False)
    try:
        lake.run(arrow_streams.block("map_batches"))
    finally:
        ray.shutdown()
    assert lake.names() == [name for name, *_ in streams]
    assert lake.table().equals(wanted)
    lake.chain_and_verify()
