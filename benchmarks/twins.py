"""Both twins in one process: each is a whole package of its own, and the active one stands in ``sys.modules``."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

__all__ = ["NAMES", "activate", "missing", "package"]

NAMES = ("cython", "python")
VARIABLE = "LLMSTREAM_IMPLEMENTATION"
MODULES = ("dialects", "framing", "result", "stream")

_loaded: dict[str, dict[str, ModuleType]] = {}
_missing: dict[str, str] = {}
_active: str | None = None


def _own() -> list[str]:
    return [name for name in sys.modules if name.split(".", 1)[0] == "llmstream"]


def activate(name: str) -> None:
    """Put the modules of a twin in the place of those that are there: its functions may import more of them."""
    global _active  # noqa: PLW0603 (one sys.modules, one active twin)
    if name == _active:
        return
    before = {module: sys.modules.pop(module) for module in _own()}
    if _active is not None:
        _loaded[_active] = before
    _active = name
    os.environ[VARIABLE] = name
    if name in _loaded:
        sys.modules.update(_loaded[name])
        return
    try:
        importlib.import_module("llmstream")
        for module in MODULES:
            importlib.import_module(f"llmstream.{module}")
    except ModuleNotFoundError as error:
        if error.name not in ("llmstream", "llmstream._parser"):
            raise
        _missing[name] = f"No module named {error.name!r}: is it built?"
    _loaded[name] = {module: sys.modules[module] for module in _own()}


def package(name: str) -> Any:
    """The package ``llmstream`` with this twin, which is active from now on."""
    activate(name)
    return sys.modules["llmstream"]


def missing(name: str) -> str | None:
    """Why this twin is not there, or None."""
    activate(name)
    return _missing.get(name)
