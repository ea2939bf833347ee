"""One facade for both twins: a test asks for ``llmstream`` and runs once on each.

Each twin is a complete package of its own, imported under its own choice of implementation. While
a test runs, the modules of its twin stand in ``sys.modules`` (for imports inside functions, pickle
and ``importlib.import_module("llmstream.cli")``), and LLMSTREAM_IMPLEMENTATION names it (for
subprocesses). So no test file imports llmstream at its top.

A compiled twin that is missing fails its tests; ``--no-extension`` says that none is expected.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Generator, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import handed

VARIABLE = "LLMSTREAM_IMPLEMENTATION"
OUTSIDE = os.environ.get(VARIABLE)

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=200, database=None)
settings.register_profile("fuzz", deadline=None, max_examples=20_000)
# For a processor that is emulated: each example takes some thirty times as long.
settings.register_profile(
    "emulated",
    deadline=None,
    derandomize=True,
    max_examples=10,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))


class Twin:
    """One implementation of the whole package."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.modules: dict[str, ModuleType] = {}
        self._fault: str | None = None

    @property
    def package(self) -> Any:
        if self._fault is None and "llmstream" not in self.modules:
            with self.active():
                self._import()
        if self._fault is not None:
            pytest.fail(self._fault, pytrace=False)
        return self.modules["llmstream"]

    def _import(self) -> None:
        try:
            self.modules["llmstream"] = importlib.import_module("llmstream")
        except Exception as error:  # noqa: BLE001 (whatever it is, each test shall say it)
            self._fault = f"the {self.name} twin does not load: {type(error).__name__}: {error}"
            if isinstance(error, ModuleNotFoundError) and error.name == "llmstream._parser":
                self._fault += (
                    "\nBuild it: LLMSTREAM_EXTENSIONS=require python -m pip install -e '.[test]'"
                    "\nor test the Python twin alone: python -m pytest --no-extension"
                )

    @contextlib.contextmanager
    def active(self) -> Iterator[Twin]:
        """With the modules of this twin in place, and the environment naming it."""
        before = handed.active
        switch(self.name)
        try:
            yield self
        finally:
            switch(before)


TWINS = {name: Twin(name) for name in ("cython", "python")}


def switch(name: str | None) -> None:
    """Put the modules of a twin (None: of no twin) in the place of those that are there."""
    names = [module for module in sys.modules if module.split(".", 1)[0] == "llmstream"]
    modules = {module: sys.modules.pop(module) for module in names}
    if handed.active is not None:
        TWINS[handed.active].modules = modules
    handed.active = name
    if name is not None:
        sys.modules.update(TWINS[name].modules)
        os.environ[VARIABLE] = name
    elif OUTSIDE is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = OUTSIDE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-extension", action="store_true", help="test the Python twin alone")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(handed, "handed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "llmstream" in metafunc.fixturenames:
        names = ["python"] if metafunc.config.getoption("no_extension") else list(TWINS)
        metafunc.parametrize("llmstream", names, indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "llmstream" in sys.modules:
        raise pytest.UsageError("a test file imports llmstream; it shall ask for the fixture")
    if config.getoption("no_extension"):
        compiled = [item for item in items if needs_extension(item)]
        config.hook.pytest_deselected(items=compiled)
        items[:] = [item for item in items if not needs_extension(item)]


def needs_extension(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("extension") is not None
    return marked or "twins" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    callspec = getattr(item, "callspec", None)
    name = callspec.params.get("llmstream") if callspec else None
    if name is None:
        return (yield)
    handed.twins.add(name)
    with TWINS[name].active():
        return (yield)


@pytest.fixture(scope="session")
def llmstream(request: pytest.FixtureRequest) -> Any:
    """The package, once with each twin."""
    return TWINS[request.param].package


@pytest.fixture(scope="session")
def twins() -> SimpleNamespace:
    """Both twins at once, for comparing them: ``with twins.cython.active(): ...``.

    ``twins.cython.package`` and ``twins.python.package`` are the two packages.
    """
    assert all(twin.package for twin in TWINS.values())
    return SimpleNamespace(**TWINS)
