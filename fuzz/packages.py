"""Both implementations of the package in one process, each with modules of its own."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

VARIABLE = "LLMSTREAM_IMPLEMENTATION"


class Implementation:
    """One twin. While it is ``active``, imports inside functions find its modules."""

    current: Implementation | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self._modules: dict[str, ModuleType] = {}
        with self.active():
            self.package: Any = importlib.import_module("llmstream")
            for module in ("conformance", "encoder", "observer", "request", "transcoder", "translation", "framing"):
                importlib.import_module(f"llmstream.{module}")

    def module(self, name: str) -> Any:
        """A module of the package; the implementation has to be active."""
        return importlib.import_module(f"llmstream.{name}")

    @contextlib.contextmanager
    def active(self) -> Iterator[Any]:
        before = Implementation.current
        self._enter(before)
        try:
            yield sys.modules.get("llmstream")
        finally:
            if before is not None and before is not self:
                before._enter(self)

    def _enter(self, before: Implementation | None) -> None:
        if before is self:
            return
        names = [name for name in sys.modules if name == "llmstream" or name.startswith("llmstream.")]
        found = {name: sys.modules.pop(name) for name in names}
        if before is not None:
            before._modules = found
        sys.modules.update(self._modules)
        os.environ[VARIABLE] = self.name
        Implementation.current = self


def implementations(names: list[str] | None = None) -> list[Implementation]:
    """The Python twin first, whose results are the ones to agree with; then the compiled one.

    Raises ModuleNotFoundError where the compiled one was asked for and is not there; without names it may be missing.
    """
    if names is not None:
        return [Implementation(name) for name in names]
    found = [Implementation("python")]
    try:
        found.append(Implementation("cython"))
    except ModuleNotFoundError:
        found[0]._enter(Implementation.current)
    return found
