"""Every requirement of the draft is shown by a test or a vector, or documented where it binds a deployment."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import handed

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = handed.SHARED / "spec" / "requirements.md"


@pytest.fixture(scope="module")
def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements_table", ROOT / "tools" / "requirements_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ids(table: ModuleType) -> list[str]:
    if not REQUIREMENTS.is_file():
        pytest.skip("../shared/spec/requirements.md is not there")
    found: list[str] = table.requirements(REQUIREMENTS)
    return found


def test_a_list_that_cannot_be_read_is_said(table, tmp_path, capsys):
    empty = tmp_path / "empty.md"
    empty.write_text("")
    binary = tmp_path / "binary.md"
    binary.write_bytes(b"\xff")
    for path, words in ((tmp_path / "none.md", "No such file"), (empty, "no requirement"), (binary, "not UTF-8")):
        assert table.main([str(path)]) == 2
        written = capsys.readouterr()
        assert written.out == ""
        assert str(path) in written.err
        assert words in written.err


def test_no_requirement_is_left_out(table):
    found = ids(table)
    assert len([key for key in found if key.startswith("R")]) == 93
    assert len([key for key in found if key.startswith("A-")]) == 30
    assert table.missing(found) == []


def test_the_table(table):
    found = ids(table)
    text = table.table(found)
    assert "**nothing**" not in text
    assert len(text.splitlines()) == 2 + len(found)
    assert table.main([str(REQUIREMENTS)]) == 0


def test_a_requirement_that_nothing_shows_fails_the_tool(table, tmp_path, capsys):
    path = tmp_path / "requirements.md"
    path.write_text("| id | binds |\n|---|---|\n| R5.1-1 | P |\n| R99.9-9 | P |\n")
    assert table.main([str(path)]) == 1
    shown = capsys.readouterr()
    assert "| R99.9-9 | **nothing** |" in shown.out
    assert shown.err == "shown by nothing: R99.9-9\n"


def test_few_are_only_documented(table):
    """What is in deployment.md binds something around the stream; the list is short, all its ids are known."""
    documented = table.deployment()
    assert set(documented) <= set(ids(table))
    only = [key for key in documented if key not in table.shown()]
    assert set(only) <= {"R3-1", "R3-3", "R3-4", "R3-5", "R3-6", "R1.4-2", "R6.3-1", "A-25", "A-26"}


def test_the_transport_and_the_gateway_are_shown_over_a_real_socket(table):
    for key in [key for key in ids(table) if key.startswith(("R3-", "R7."))]:
        assert any(place.startswith("integrations/gateway/") for place in table.shown()[key]), key


def test_no_test_or_vector_names_a_requirement_that_is_none(table):
    """Every id that a test or a vector names is one of the draft's."""
    unknown = set(table.shown()) - set(ids(table))
    assert unknown == set(), {key: table.shown()[key] for key in unknown}


@pytest.mark.parametrize("requirement", ["R8.2-2", "R4.7-1"])
def test_a_rule_that_is_taken_out_is_missed_by_a_test(requirement):
    """As tools/rule_mutations.py tells for all of them."""
    command = [sys.executable, str(ROOT / "tools" / "rule_mutations.py"), requirement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(rf"{requirement} +[A-Z_]+ +tests/test_\w+\.py::test_", done.stdout)


def test_a_rule_that_is_none_is_no_pass():
    command = [sys.executable, str(ROOT / "tools" / "rule_mutations.py"), "R99.9-9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (2, "no such rule: R99.9-9\n")


def test_every_rule_names_a_requirement_or_is_ours(table, llmstream):
    from llmstream import rules

    known = set(ids(table))
    for rule in rules.RULES[1:]:
        assert rule.requirement in known or rule.requirement.startswith("L-"), rule


def test_every_rule_of_the_checker_and_the_engine_is_in_a_vector(table, llmstream):
    """What a stream can break is broken by a vector: each requirement of a rule, but for limits and vendors."""
    from llmstream import rules

    shown = table.shown()
    for number in (*rules.STREAM, *rules.CHECKER):
        rule = rules.RULES[number]
        if not rule.requirement.startswith("L-"):
            assert any(place.startswith("conformance/") for place in shown[rule.requirement]), rule
