"""The one table of rules: each kind of violation has one row, one id and one place where it is found."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "llmstream"
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if path.name != "rules.py"]
COMPILED = [*SOURCE.glob("*.pyx"), *SOURCE.glob("*.pxi")]
ID = re.compile(r"R[0-9]+(\.[0-9]+)*-[0-9]+|L-[A-Z0-9]+")


@pytest.fixture(scope="session")
def rules(llmstream: Any) -> Any:
    from llmstream import rules

    return rules


def names(rules: Any) -> dict[str, int]:
    """The name of each row, as the others call it."""
    tables = {number for number, _ in enumerate(rules.RULES)}
    tree = ast.parse((SOURCE / "rules.py").read_text(encoding="utf-8"))
    made = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    rows = [node for node in made if getattr(node.value.func, "id", "") in ("_error", "_warning", "_deviation")]
    found = {target.id: getattr(rules, target.id) for node in rows for target in node.targets}
    assert set(found.values()) == tables
    assert len(found) == len(tables)
    return found


def test_every_row_is_whole(rules: Any, llmstream: Any) -> None:
    assert repr(rules.RULES[rules.BAD_VERSION]) == "Rule('R5.2-1', 'error', 'v is not \"1.0\"')"
    for rule in rules.RULES[1:]:
        assert ID.fullmatch(rule.requirement), rule
        assert (rule.severity, rule.strict) in (("error", "error"), ("warning", "warning"), ("warning", "error"))
        assert issubclass(rule.error, llmstream.LLMStreamError)
        assert rule.message
        assert rule.message.splitlines() == [rule.message]


def test_the_sections_are_the_table(rules: Any, llmstream: Any) -> None:
    sections = (rules.STREAM, rules.CHECKER, rules.REQUEST)
    assert [number for section in sections for number in section] == list(range(1, len(rules.RULES)))
    # Only a request has deviations with a harmless reading, and an error class of its own.
    deviations = [number for number, rule in enumerate(rules.RULES) if rule.severity != rule.strict]
    assert set(deviations) <= set(rules.REQUEST)
    of_requests = [number for number, rule in enumerate(rules.RULES) if rule.error is llmstream.RequestError]
    assert set(of_requests) <= set(rules.REQUEST)


def test_no_kind_of_violation_has_two_rows_or_two_ids(rules: Any) -> None:
    for sections in ((*rules.STREAM, *rules.CHECKER), rules.REQUEST):
        known = [(rules.RULES[number].requirement, rules.RULES[number].message) for number in sections]
        assert len(known) == len(set(known))
    # Words that are not about one member, whose path is told beside them, stand for one kind and one id.
    words: dict[str, set[str]] = {}
    for number in (*rules.STREAM, *rules.CHECKER):
        rule = rules.RULES[number]
        words.setdefault(rule.message, set()).add(rule.requirement)
    shared = {message for message, found in words.items() if len(found) > 1}
    assert shared == {"index is absent or not an integer from 0"}  # of three types of event


def test_no_row_is_dead(rules: Any) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*MODULES, *COMPILED)]
    used = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", "\n".join(texts)))
    # The lifecycle names those of section 5.4.
    used |= set(re.findall(r"\"[a-z]+\", ([A-Z_]+)\)", (SOURCE / "rules.py").read_text(encoding="utf-8")))
    assert set(names(rules)) <= used


def test_there_is_no_other_table(rules: Any) -> None:
    """Whoever records a violation has its id and words from the table."""
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bRule\(", text), path
        ids = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
        found = [value for value in ids if isinstance(value, str) and ID.fullmatch(value)]
        assert found == [], path
