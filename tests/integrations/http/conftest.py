"""A server for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sse_server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found
