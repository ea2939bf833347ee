"""Certificates and recordings for the tests of this folder, and which of them an environment runs."""

from __future__ import annotations

import importlib
import os
import ssl
from pathlib import Path
from types import SimpleNamespace

import pytest
from gateway_server import WAIT

_ALONE = {"semantic-kernel": "test_semantic_kernel.py", "litellm": "test_litellm.py"}
"""Environments of one library, which pins others out -> the tests that are run there, and nowhere else."""

_FILES = [path.name for path in Path(__file__).parent.glob("test_*.py")]
_environment = os.environ.get("LLMSTREAM_ENVIRONMENT", "")
if _environment in _ALONE:
    collect_ignore = [name for name in _FILES if name != _ALONE[_environment]]
elif _environment:
    collect_ignore = [*_ALONE.values()]
    if os.environ.get("LLMSTREAM_ALL_INTEGRATIONS") != "1":
        collect_ignore.append("test_browser.py")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Of a server on 127.0.0.1: the options of ``serve``, and what a client trusts (``.trust``, ``.path``)."""
    trustme = pytest.importorskip("trustme")
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    authority.cert_pem.write_to_path(folder / "authority.pem")

    path = str(folder / "authority.pem")
    return SimpleNamespace(
        options={"certificate": str(folder / "certificate.pem"), "key": str(folder / "key.pem")},
        path=path,
        context=lambda: ssl.create_default_context(cafile=path),
    )


@pytest.fixture
def replay(llmstream):
    """``replay(body or events, ...)``: an application that plays these."""
    module = importlib.import_module("llmstream.integrations.replay")
    recordings = importlib.import_module("llmstream.integrations.recordings")

    def make(*bodies, on_request=None, **playing):
        found = [
            recordings.recording(f"{number}.sse", body if isinstance(body, bytes) else b"".join(body))
            for number, body in enumerate(bodies)
        ]
        return module.Replay(found, module.Playing(**playing), on_request=on_request)

    return make


@pytest.fixture
def gateway_module(llmstream):
    return importlib.import_module("llmstream.integrations.gateway")


@pytest.fixture
def client():
    httpx2 = pytest.importorskip("httpx2")
    with httpx2.Client(timeout=WAIT) as client:
        yield client
