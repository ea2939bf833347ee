"""Faults planted on purpose, each in a copy of the package: an oracle that finds none could not fail.

One place of one check is changed, in the Python twin or in C. The copy is fuzzed with one oracle only, until that one
has found a difference. A text that is not there exactly once is an error: the table has to be kept true.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from . import ROOT
from .judge import ORACLES

SPEC = importlib.util.find_spec("llmstream")
SOURCE = Path(SPEC.origin if SPEC and SPEC.origin else ROOT / "src/llmstream/__init__.py").parent


class Fault(NamedTuple):
    """``old`` in ``file`` becomes ``new``; fuzzing ``target`` on ``twins`` finds it by ``oracle``."""

    oracle: str
    target: str
    file: str
    old: str
    new: str
    twins: str = "python"
    needs: str | None = None  # a module without which the oracle is silent


FAULTS = (
    Fault("twin", "sse", "_framing_py.py", 'if b"\\0" not in value:', "if True:", "python,cython"),
    Fault("split", "sse", "_framing_py.py", "self._swallow = True", "self._swallow = False"),
    Fault("shapes", "draft", "_shapes_py.py", "return None if _HALF.search(value) else value", "return value"),
    Fault(
        "text",
        "dialect-openai",
        "_parser_py.py",
        "if type(e) is ContentDelta and not (primary and",
        "if type(e) is ContentDelta and not (False and",
    ),
    Fault("whatwg", "sse", "_framing_py.py", 'if value.startswith(b" "):', 'if value.startswith((b" ", b"\\t")):'),
    Fault("json", "envelope", "_json_py.py", "raise ValueError(name)", "return None"),
    Fault("orjson", "envelope", "_json_py.py", "raise ValueError(name)", "return None", needs="orjson"),
    Fault("naive", "draft", "_json_py.py", "super().__init__(pairs)", "super().__init__(reversed(pairs))"),
    Fault(
        "frames",
        "framing-aws-event-stream",
        "framing/aws_event_stream.py",
        "(source)[start:end]) !=",
        "(source)[start:end]) <",
    ),
    Fault("round trip", "encoder", "payload.py", '"\\u2029", "\\\\u2029"', '"\\u2029", "\\\\u2028"'),
    Fault("conformance", "encoder", "encoder.py", "if id in self._call_ids:", "if False:"),
    Fault("clean", "sse", "_framing_py.py", "if value.isdigit():", "if value:"),
)

# In C, which takes a build: one byte of a check is another.
COMPILED = (
    Fault(
        "twin",
        "envelope",
        "_json.h",
        "*p == '\\n' || *p == '\\r' || *p == '\\t'",
        "*p == '\\n' || *p == '\\r' || *p == '\\v'",
        "python,cython",
    ),
)


def texts_are_there() -> list[str]:
    """What is wrong with the table."""
    wrong = []
    for fault in (*FAULTS, *COMPILED):
        if fault in COMPILED and not (SOURCE / fault.file).exists():
            continue  # an installed package has no C in it
        count = (SOURCE / fault.file).read_text(encoding="utf-8").count(fault.old)
        if count != 1:
            wrong.append(f"{fault.file} holds {fault.old!r} {count} times")
    missing = ORACLES.keys() - {fault.oracle for fault in FAULTS}
    return wrong + [f"no fault is planted for the oracle {name!r}" for name in sorted(missing)]


def prove(names: list[str], seconds: float) -> int:
    """Plants each fault (of the named oracles; "compiled" stands for those in C) and prints whether it was found."""
    wrong = texts_are_there()
    if wrong:
        print("\n".join(wrong))
        return 1
    chosen = [fault for fault in FAULTS if not names or fault.oracle in names]
    chosen += COMPILED if "compiled" in names else ()
    missed = 0
    for fault in chosen:
        if fault.needs and importlib.util.find_spec(fault.needs) is None:
            print(f"{fault.oracle}: not proved, {fault.needs} is not installed")
            continue
        found = _found(fault, max(seconds, 60))
        missed += not found
        print(f"{fault.oracle} ({fault.target}, {fault.file}): {found or 'NOT FOUND'}", flush=True)
    return int(missed > 0)


def _found(fault: Fault, seconds: float) -> str:
    """How a fuzzer that asks one oracle found the fault; "" where it did not."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        package = Path(folder) / "src/llmstream"
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
        place = package / fault.file
        place.write_text(place.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")
        if fault in COMPILED:
            _build(Path(folder))
        command = [sys.executable, "-m", "fuzz", fault.target, "--oracle", fault.oracle, "--first"]
        command += ["--implementation", fault.twins, "--seconds", str(seconds), "--findings", folder]
        environment = {**os.environ, "PYTHONPATH": f"{folder}/src"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode != 1 or not any(line.strip().startswith(fault.oracle) for line in lines[1:]):
            print(done.stdout + done.stderr, end="", file=sys.stderr)
            return ""
        return lines[0].partition(": ")[2].partition(",")[0]


def _build(folder: Path) -> None:
    for old in (folder / "src/llmstream").glob("*.so"):
        old.unlink()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, folder)
    environment = {**os.environ, "LLMSTREAM_EXTENSIONS": "require"}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
