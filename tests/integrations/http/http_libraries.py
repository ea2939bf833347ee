"""The HTTP libraries, each behind one way to get a response: ``with opened(...) as get: response = get(url, headers)``.

An environment of CI has either httpx or httpx2, since an SDK of a vendor has one of them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

ENVIRONMENT = os.environ.get("LLMSTREAM_ENVIRONMENT")
HTTPX = [name for name in ("httpx", "httpx2") if ENVIRONMENT in (None, name)]
SYNCHRONOUS = [*HTTPX, "requests", "urllib3"]
ASYNCHRONOUS = [*HTTPX, "aiohttp"]

Get = Callable[..., Any]


def needed(name: str) -> Any:
    """The library, or a skip. One that is there and broken fails."""
    pytest.importorskip(name, exc_type=ModuleNotFoundError)
    return importlib.import_module(name)


@contextlib.contextmanager
def opened(name: str) -> Iterator[Get]:
    library = needed(name)
    if name == "requests":
        with library.Session() as session:
            session.trust_env = False
            yield lambda url, headers=None: session.get(url, headers=headers, stream=True, timeout=30)
    elif name == "urllib3":
        with library.PoolManager() as pool:
            yield lambda url, headers=None: pool.request(
                "GET", url, headers={"accept-encoding": "gzip", **(headers or {})}, preload_content=False
            )
    else:
        with library.Client(verify=False, trust_env=False, timeout=30) as client:
            yield lambda url, headers=None: client.send(client.build_request("GET", url, headers=headers), stream=True)


@contextlib.asynccontextmanager
async def aopened(name: str) -> AsyncIterator[Get]:
    library = needed(name)
    if name == "aiohttp":
        async with library.ClientSession() as session:
            yield lambda url, headers=None: session.get(url, headers=headers)
    else:
        async with library.AsyncClient(verify=False, trust_env=False, timeout=30) as client:
            yield lambda url, headers=None: client.send(client.build_request("GET", url, headers=headers), stream=True)
