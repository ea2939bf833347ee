"""How much of the compiled twin the tests reach, in a scratch copy of the project.

    python tools/measure_coverage.py lines      the .pyx, .pxi and .py: coverage.py with Cython's plugin
    python tools/measure_coverage.py headers    the C headers, as far as this machine compiles them: gcov

Behind that come names of tests/test_NAME.py, or "all" for the whole suite; without any, the tests of what is compiled.
The inputs of the fuzz corpus are read after them. Prints a line for each file and what was not reached; exits with 1
where a file of the compiled twin has less than ``--minimum`` (default 98) per cent of its lines. Lines that no test can
reach are named in UNREACHED, each with its reason. Needs Cython, a C compiler, coverage and the extra ``test``; gcov
where that is asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

import sanitize

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "fuzz", "tools", "docs", "examples", "conformance")
TESTS = (
    *("sse_cases", "sse_decoder", "envelope", "envelope_cases", "json_cases", "utf8_cases", "text", "events", "shapes"),
    *("strict", "summary", "tool_calls", "result", "torn_ends", "bad_input", "bugs", "bugs_listed", "writer"),
    *("observer", "hostile_documents", "declaration", "framing_cases", "dialects_openai", "dialects_openai_more"),
    *("dialects_gemini", "dialects_anthropic", "dialects_bedrock", "dialects_auto", "dialects_wrong"),
    *("dialects_declared", "dialects_engine", "dialects_forms", "exceptions_thrown"),
)
FUZZED = ("all", "--executions", "40", "--seconds", "60")

# File -> two lines, the second of which no test reaches, and why.
UNREACHED: dict[str, dict[tuple[str, str], str]] = {
    "_shape.h": {
        ("if (!made)", "return NULL;"): "no memory",
        ("return made;", "shape_free(made);"): "no memory",
        ("shape_free(made);", "return NULL;"): "no memory",
    },
    "_envelope.pxi": {
        ("if edge_total > 64:", 'raise ValueError("more than 64 steps on declared paths")'): "refused before",
        (
            "if len(form.when) > MAX_CONSTANTS:",
            'raise ValueError(f"more than {MAX_CONSTANTS} constants in a Delta")',
        ): "refused before",
        ("if self.nodes == NULL or self.edges == NULL or self.forms == NULL:", "raise MemoryError()"): "no memory",
    },
}

Found = dict[str, tuple[int, list[int]]]
"""File -> how many lines it has, and the numbers of those that were not reached."""


def copy(folder: Path) -> None:
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "*.so", "_parser.c", "_writer.c", "findings")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)


def measure(folder: Path, package: str, names: list[str], before: Iterable[str] = ()) -> None:
    """Runs the tests and then the fuzz corpus on the package in that folder of the copy. ``before`` are the arguments
    between the interpreter and ``-m``."""
    files = ["tests"] if names == ["all"] else [f"tests/test_{name}.py" for name in names or TESTS]
    environment = {**os.environ, "PYTHONPATH": str(folder / package)}
    shared = ROOT.parent / "shared"
    if shared.is_dir():
        environment.setdefault("LLMSTREAM_SHARED", str(shared))
    environment.pop("LLMSTREAM_REQUIRE_SHARED", None)
    pytest = ["pytest", "-q", "-p", "no:cacheprovider", *files]
    if not before:
        pytest += ["-k", "not python"]  # the other twin reaches no header
    for module in (pytest, ["fuzz", *FUZZED]):
        command = [sys.executable, *before, "-m", *module]
        done = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
        if done:
            raise SystemExit(f"{module[0]} failed ({done})")


def lines(folder: Path, names: list[str]) -> Found:
    environment = {**os.environ, "LLMSTREAM_COVERAGE": "1", "LLMSTREAM_EXTENSIONS": "require"}
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    built = subprocess.run(build, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    if built.returncode:
        raise SystemExit(built.stdout + built.stderr)
    measure(folder, "src", names, ("-m", "coverage", "run", "--append"))
    report = [sys.executable, "-m", "coverage", "json", "-q", "-o", "coverage.json"]
    subprocess.run(report, cwd=folder, check=True)
    files = json.loads((folder / "coverage.json").read_text(encoding="utf-8"))["files"]
    imported: dict[str, set[int]] = {}
    for made in (folder / "src/llmstream").glob("*.c"):
        imported.update(of_the_import(made.read_text(encoding="utf-8")))
    found = {}
    for name, file in files.items():
        missing = set(file["missing_lines"])
        if name.endswith(".pxi"):
            missing -= imported[Path(name).name]
        short = Path(name).relative_to("src/llmstream").as_posix()
        found[short] = (file["summary"]["num_statements"], sorted(missing))
    return found


def of_the_import(text: str) -> dict[str, set[int]]:
    """The lines of each included file that run, one after the other, when the module is imported. Cython's plugin
    counts them for the .pyx, as their frame is that of the module."""
    body = re.search(r"^static [^\n]*__pyx_pymod_exec_\w+\(PyObject \*\w+\)$.*?^}", text, re.MULTILINE | re.DOTALL)
    if body is None:
        raise SystemExit("no body of the module in the C that Cython made")
    found: dict[str, set[int]] = {}
    name = ""
    for line in body[0].splitlines():
        place = re.match(r' */\* "(.*)":\d+$', line)
        if place:
            name = Path(place[1]).name
        traced = re.match(r" *__Pyx_TraceLine\((\d+),", line)
        if traced:
            found.setdefault(name, set()).add(int(traced[1]))
    return found


def headers(folder: Path, names: list[str]) -> Found:
    """Each line of a header counts once, however many places it is put into."""
    flags = ["-O0", "--coverage"]
    include, suffix = sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX")
    (folder / "built").mkdir()
    sanitize.build(folder / "built", flags, include, suffix, None)
    measure(folder, "built", names)
    reached: dict[str, dict[int, int]] = {}
    for data in sorted(folder.rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", str(data)]
        made = subprocess.run(command, cwd=data.parent, check=True, capture_output=True, text=True).stdout
        for file in (file for line in made.splitlines() for file in json.loads(line)["files"]):
            name = Path(file["file"]).name
            if name.endswith(".h") and (ROOT / "src/llmstream" / name).exists():
                counts = reached.setdefault(name, {})
                for line in file["lines"]:
                    number = line["line_number"]
                    counts[number] = counts.get(number, 0) + line["count"]
    return {
        name: (len(counts), sorted(number for number, count in counts.items() if not count))
        for name, counts in sorted(reached.items())
    }


def excused(name: str, missing: list[int]) -> tuple[list[int], list[int]]:
    """The lines that were not reached: those that should have been, and those that no test can reach."""
    text = [line.strip() for line in (ROOT / "src/llmstream" / name).read_text(encoding="utf-8").splitlines()]
    reasons = UNREACHED.get(name, {})
    known = [number for number in missing if number > 1 and (text[number - 2], text[number - 1]) in reasons]
    return [number for number in missing if number not in known], known


def shown(found: Found, expected: list[str], minimum: float) -> int:
    """Prints what was found; 1 where a file has too little of it, or an expected one was not measured at all."""
    absent = [name for name in expected if not found.get(name, (0, []))[0]]
    print("".join(f"{name}: nothing was measured\n" for name in absent), end="")
    status = int(bool(absent))
    total = reached = 0
    for name, (count, missing) in found.items():
        compiled = not name.endswith(".py")
        wanting, known = excused(name, missing)
        share = 100 * (count - len(missing)) / count if count else 100
        enough = 100 * (count - len(wanting)) / count >= minimum if count else True
        status |= compiled and not enough
        if compiled:
            total, reached = total + count, reached + count - len(missing)
        print(f"{name}: {count} lines, {share:.2f} %", end="")
        print(f", not reached: {', '.join(map(str, wanting))}" if wanting else "", end="")
        print(f", no test can reach: {', '.join(map(str, known))}" if known else "")
    print(f"compiled in all: {total} lines, {100 * reached / max(total, 1):.2f} %")
    return int(status)


def main() -> int:
    parser = argparse.ArgumentParser(description="How much of the compiled twin the tests reach.")
    parser.add_argument("kind", choices=("lines", "headers"))
    parser.add_argument("tests", nargs="*", metavar="TEST", help='names of tests/test_NAME.py, or "all"')
    parser.add_argument("--minimum", type=float, default=98, help="per cent of the lines of each compiled file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="coverage-") as name:
        folder = Path(name)
        copy(folder)
        measure, patterns = {"lines": (lines, ("*.pyx", "*.pxi")), "headers": (headers, ("*.h",))}[options.kind]
        expected = [path.name for pattern in patterns for path in sorted((ROOT / "src/llmstream").glob(pattern))]
        return shown(measure(folder, options.tests), expected, options.minimum)


if __name__ == "__main__":
    sys.exit(main())
