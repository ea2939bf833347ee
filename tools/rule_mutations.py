"""Takes each rule out, one after the other, and prints which test misses it; exits 1 if one is missed by none.

    python tools/rule_mutations.py [REQUIREMENT or name of a row, ...]

A rule is taken out by dropping what is recorded under its number in the table of ``llmstream.rules``: by the engine
(the Python twin), the checker or the request envelope. Then those tests run that name its requirement, as
``requirements_table.py`` finds them, up to the first that fails, and the vectors that break it are judged. The tests
need the project installed with its extra ``test``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requirements_table
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[1]
VECTORS = "test_conformance_vectors.py"


class Mutations:
    """A plugin that runs the tests in its own way: for each rule, those that name its requirement."""

    def __init__(self, wanted: list[str]) -> None:
        self.wanted = wanted
        self.texts = dict(requirements_table.tests())
        self.passes: dict[str, bool] = {}
        self.missed: list[str] = []
        self.unknown: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        twin = sys.modules["conftest"].TWINS["python"]
        assert twin.package
        with twin.active():
            from llmstream import rules

            known = {*names(rules).values(), *(rule.requirement for rule in rules.RULES)}
            self.unknown = [name for name in self.wanted if name not in known]
            if self.unknown:
                return True
            for number, name in names(rules).items():
                requirement = rules.RULES[number].requirement
                if not self.wanted or {name, requirement} & set(self.wanted):
                    self.take_out(session, number, name, requirement)
        return True

    def take_out(self, session: pytest.Session, number: int, name: str, requirement: str) -> None:
        """Looks for what fails without a rule."""
        with without(number):
            test = next(self.failing(session, requirement), None)
            is_judged = vectors_differ(requirement)
        shown = ", ".join([*filter(None, [test]), *(["vectors"] if is_judged else [])])
        print(f"{requirement:10} {name:28} {shown or '**nothing**'}", flush=True)
        if test is None:
            self.missed.append(f"{requirement} ({name}{', but by vectors' if is_judged else ''})")

    def failing(self, session: pytest.Session, requirement: str) -> Iterator[str]:
        """The tests that name a requirement and fail now, but not with all rules in place."""
        found = [item for item in session.items if self.is_about(item, requirement)]
        # What generates its examples is slow; a case that has the requirement in its name is the likeliest.
        found.sort(key=lambda item: (is_generated(item), requirement not in item.name))
        for item in found:
            if not self.is_good(item):
                continue
            if not run(item):
                yield item.nodeid

    def is_about(self, item: pytest.Item, requirement: str) -> bool:
        if item.path.name == VECTORS:
            return False
        function = getattr(item, "originalname", item.name)
        return requirement in ids(self.texts.get(f"{item.path.name}::{function}", ""))

    def is_good(self, item: pytest.Item) -> bool:
        """Whether it passes with all rules in place."""
        if item.nodeid not in self.passes:
            taken, State.taken = State.taken, None
            self.passes[item.nodeid] = run(item)
            State.taken = taken
        return self.passes[item.nodeid]


class State:
    """The number of the rule that is out."""

    taken: int | None = None


def names(rules: Any) -> dict[int, str]:
    """The name of each row of the table, in their order."""
    found = {value: name for name, value in vars(rules).items() if type(value) is int and not name.startswith("MAX_")}
    return {number: found[number] for number in range(1, len(rules.RULES))}


@contextmanager
def without(number: int) -> Iterator[None]:
    """With one rule out of all that record violations."""
    from llmstream import _parser_py
    from llmstream.conformance.checker import Checker
    from llmstream.request.findings import Findings

    places = [(_parser_py.Parser, "_record"), (Checker, "_note"), (Findings, "add")]
    before = [(owner, name, vars(owner)[name]) for owner, name in places]
    for owner, name, function in before:
        setattr(owner, name, dropping(function))
    State.taken = number
    try:
        yield
    finally:
        State.taken = None
        for owner, name, function in before:
            setattr(owner, name, function)


def dropping(function: Any) -> Any:
    def record(self: Any, rule: int, *more: Any, **options: Any) -> None:
        if rule != State.taken:
            function(self, rule, *more, **options)

    return record


def vectors_differ(requirement: str) -> bool:
    """Whether a vector that breaks a requirement is judged otherwise than it says."""
    try:
        return bool(sys.modules["test_conformance_vectors"].differs(requirement))
    except Exception:  # noqa: BLE001 (a rule that is not recorded may let anything through)
        return True


def is_generated(item: pytest.Item) -> bool:
    return hasattr(getattr(item, "obj", None), "hypothesis")


def run(item: pytest.Item) -> bool:
    """Whether a test passes."""
    item._initrequest()  # as for a test that has not run
    return all(report.passed or report.skipped for report in runtestprotocol(item, log=False, nextitem=None))


def files(wanted: list[str]) -> list[str]:
    """The files with the tests that name a requirement; all where a row is wanted by its name, or everything."""
    if not wanted or any(requirements_table.ids_in(word) != [word] for word in wanted):
        return [str(ROOT / "tests")]
    places = {name.partition("::")[0] for name, text in requirements_table.tests() if ids(text) & set(wanted)}
    return [str(ROOT / "tests" / name) for name in sorted({*places, VECTORS})]


def ids(text: str) -> set[str]:
    return set(requirements_table.ids_in(text))


def main(arguments: list[str]) -> int:
    os.environ.pop("LLMSTREAM_REQUIRE_SHARED", None)  # these are not all tests
    mutations = Mutations(arguments)
    options = ["-o", "addopts=", "-p", "no:cacheprovider", "-qq", "--no-extension", "--rootdir", str(ROOT)]
    status = pytest.main([*options, *files(arguments)], plugins=[mutations])
    if mutations.unknown:
        print(f"no such rule: {', '.join(mutations.unknown)}", file=sys.stderr)
        return 2
    if mutations.missed:
        print(f"missed by no test: {'; '.join(mutations.missed)}", file=sys.stderr)
    return int(status) or bool(mutations.missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
