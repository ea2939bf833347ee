"""Prints which tests and vectors show which requirement of the draft; exits 1 if one is shown by none, 2 if the list of
requirements, which is not part of the project, cannot be read.

    python tools/requirements_table.py [../shared/spec/requirements.md]

A test shows a requirement whose id stands in it: in its name (``test_r4_3_1_2_...`` for R4.3.1-2), its docstring, its
parameters, its body, or a table of cases that it uses. A vector shows the one that it is about and those in its
verdicts. A requirement that no bytes can show stands in ``conformance/deployment.md``.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT.parent / "shared" / "spec" / "requirements.md"
DEPLOYMENT = ROOT / "conformance" / "deployment.md"
NAMED = re.compile(r"(?<=_)r(a|[0-9]+(?:_[0-9]+)*)_([0-9]+)(?=_|$)")
ID = re.compile(r"(?<![\w.-])(?:R[0-9]+(?:\.[0-9]+)*-[0-9]+|RA-[0-9]+|A-[0-9]+|L-[A-Z0-9]+)(?![\w.]*\w)")


def requirements(path: Path = REQUIREMENTS) -> list[str]:
    """The ids of the requirements and of the resolved ambiguities, in the order of their document."""
    rows = re.findall(r"^\| ([RA][^ |]*-[0-9]+) \|", path.read_text(encoding="utf-8"), re.MULTILINE)
    return list(dict.fromkeys(rows))


def deployment() -> dict[str, str]:
    """The ids that are documented instead of tested, and where."""
    rows = re.findall(r"^\| ([RA][^ |]*-[0-9]+) \|", DEPLOYMENT.read_text(encoding="utf-8"), re.MULTILINE)
    return dict.fromkeys(rows, DEPLOYMENT.relative_to(ROOT).as_posix())


@cache
def shown() -> dict[str, list[str]]:
    """Each id with the tests and the files of vectors that show it."""
    found: dict[str, list[str]] = {}
    for name, text in (*tests(), *_vectors()):
        for key in ids_in(text):
            if not key.startswith("L-"):
                found.setdefault(key, []).append(name)
    return found


def ids_in(text: str) -> list[str]:
    """The ids that stand in a text, those of our own rules (``L-...``) too."""
    return list(dict.fromkeys(ID.findall(text)))


def tests() -> Iterator[tuple[str, str]]:
    """Each test, as file::name or file::class::name, and all that it is made of."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.name == "test_requirements.py":
            continue
        text = path.read_text(encoding="utf-8")
        lines, body = text.splitlines(), ast.parse(text).body
        tables = {name: _lines(lines, node) for node in body for name in _targets(node)}
        for group, node in _functions(body):
            named = [f"R{section.replace('_', '.').upper()}-{n}" for section, n in NAMED.findall(node.name)]
            parts = [_lines(lines, part) for part in (*node.decorator_list, node)]
            used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
            cases = [table for name, table in tables.items() if name in used]
            place = [path.relative_to(ROOT / "tests").as_posix(), *([group.name] if group else []), node.name]
            yield "::".join(place), "\n".join([*named, *parts, *cases])


def _functions(
    body: list[ast.stmt], group: ast.ClassDef | None = None
) -> Iterator[tuple[ast.ClassDef | None, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The tests of a module with the class that each is in, also where they stand under a condition."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("test_"):
                yield group, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, node)
        elif isinstance(node, ast.If):
            yield from _functions(node.body, group)


def _lines(lines: list[str], node: ast.stmt | ast.expr) -> str:
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])


def _targets(node: ast.stmt) -> list[str]:
    """The names of constants that a statement of a module gives a value to: tables of cases among them."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]


def _vectors() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "conformance" / "vectors").glob("*.jsonl")):
        keys = []
        for line in path.read_text(encoding="utf-8").splitlines():
            vector = json.loads(line)
            keys += [vector["requirement"], vector.get("note", ""), *vector["strict"]["errors"]]
        yield f"conformance/vectors/{path.name}", " ".join(keys)


def table(ids: list[str]) -> str:
    """The table, as Markdown."""
    tests, documented = shown(), deployment()
    rows = ["| requirement | shown by |", "|---|---|"]
    for key in ids:
        places = [*tests.get(key, ()), *([documented[key]] if key in documented else [])]
        rows.append(f"| {key} | {', '.join(places) or '**nothing**'} |")
    return "\n".join(rows) + "\n"


def missing(ids: list[str]) -> list[str]:
    """The requirements that nothing shows."""
    known = {**shown(), **deployment()}
    return [key for key in ids if key not in known]


def main(arguments: list[str]) -> int:
    path = Path(arguments[0]) if arguments else REQUIREMENTS
    try:
        ids = requirements(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        sys.stderr.write(f"requirements_table: {path}: {reason}; name the file that lists the requirements\n")
        return 2
    if not ids:
        sys.stderr.write(f"requirements_table: {path} lists no requirement\n")
        return 2
    sys.stdout.write(table(ids))
    left = missing(ids)
    if left:
        sys.stderr.write(f"shown by nothing: {', '.join(left)}\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
