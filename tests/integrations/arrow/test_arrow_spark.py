"""A thousand captured streams through a local Spark, as the guide says: the same table as the command's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("pyspark")

import arrow_streams


@pytest.fixture
def spark(llmstream, monkeypatch) -> Iterator[Any]:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    builder = import_module("pyspark.sql").SparkSession.builder.master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.executorEnv.LLMSTREAM_IMPLEMENTATION": llmstream.implementation,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore")
def test_the_same_table(llmstream, tmp_path, spark):
    streams = arrow_streams.captured()
    wanted = arrow_streams.by_command(tmp_path, streams)
    assert arrow_streams.is_as_expected(wanted, streams)
    lake = arrow_streams.Lake(tmp_path, streams)
    lake.run(arrow_streams.block("mapInArrow"), spark=spark)
    assert lake.names() == [name for name, *_ in streams]
    assert lake.table().equals(wanted)
    lake.chain_and_verify()
