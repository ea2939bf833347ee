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
def opened(name: str, *, read_timeout: float = 30) -> Iterator[Get]:
    library = needed(name)
    if name == "requests":
        with library.Session() as session:
            session.trust_env = False
            yield lambda url, headers=None: session.get(url, headers=headers, stream=True, timeout=(30, read_timeout))
    elif name == "urllib3":
        timeout = library.Timeout(connect=30, read=read_timeout)
        with library.PoolManager(timeout=timeout, retries=False) as pool:
            yield lambda url, headers=None: pool.request(
                "GET", url, headers={"accept-encoding": "gzip", **(headers or {})}, preload_content=False
            )
    else:
        timeout = library.Timeout(30, read=read_timeout)
        with library.Client(verify=False, trust_env=False, timeout=timeout) as client:
            yield lambda url, headers=None: client.send(client.build_request("GET", url, headers=headers), stream=True)


@contextlib.asynccontextmanager
async def aopened(name: str, *, read_timeout: float = 30) -> AsyncIterator[Get]:
    library = needed(name)
    if name == "aiohttp":
        timeout = library.ClientTimeout(total=None, sock_connect=30, sock_read=read_timeout)
        async with library.ClientSession(timeout=timeout) as session:
            yield lambda url, headers=None: session.get(url, headers=headers)
    else:
        timeout = library.Timeout(30, read=read_timeout)
        async with library.AsyncClient(verify=False, trust_env=False, timeout=timeout) as client:
            yield lambda url, headers=None: client.send(client.build_request("GET", url, headers=headers), stream=True)
