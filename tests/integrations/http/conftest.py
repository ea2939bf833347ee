"""For the tests of this folder: a server, the libraries and our modules for them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from http_libraries import HTTPX, needed
from sse_server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


@pytest.fixture(params=HTTPX)
def library(request: pytest.FixtureRequest) -> Any:
    return needed(request.param)


@pytest.fixture
def ours(llmstream: Any, library: Any) -> Any:
    return importlib.import_module(f"llmstream.integrations.{library.__name__}")
