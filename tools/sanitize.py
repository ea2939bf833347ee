"""Builds the compiled twin under sanitizers, in a scratch folder, and runs tests and fuzz targets on it.

    python tools/sanitize.py asan          AddressSanitizer and UndefinedBehaviorSanitizer of gcc: tests, then targets
    python tools/sanitize.py valgrind      memcheck of the ordinary build: targets only, it is slow

Options: --seconds N for each fuzz target (default 5); --python PATH for the interpreter of valgrind; --prove plants a
fault (a buffer one byte too small, or one that is not given back) and succeeds where it is reported. Exits with the
first report. Needs gcc, Cython, the extra ``test``, and valgrind where that is asked for.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIRECTIVES = ("boundscheck=False", "wraparound=False", "cdivision=True", "initializedcheck=False")  # as setup.py
SANITIZERS = ["-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]

# The tests of what is compiled.
TESTS = (
    *("sse_cases", "sse_decoder", "envelope", "envelope_cases", "json_cases", "utf8_cases", "text", "events"),
    *("shapes", "twins", "bad_input", "strict", "tool_calls", "dialects_captures", "writer", "encoder", "leaks"),
)
TARGETS = (
    "sse",
    "draft",
    "envelope",
    "dialect-openai",
    "dialect-anthropic",
    "dialect-gemini",
    "dialect-auto",
    "encoder",
)


# What --prove plants: file, text, and what stands there instead.
PLANTED = {
    "asan": (
        "_shape.h",
        "made->bytes = (unsigned char *)malloc(size);",
        "made->bytes = (unsigned char *)malloc(size - 1);",
    ),
    "valgrind": ("_parser.pyx", "        framer_free(&self._framer)\n", "        pass\n"),
}


def build(folder: Path, flags: list[str], include: str, suffix: str, planted: tuple[str, str, str] | None) -> None:
    """A copy of the package in ``folder`` with its extensions built with ``flags``."""
    package = folder / "llmstream"
    shutil.copytree(ROOT / "src/llmstream", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    if planted is not None:
        file, old, new = planted
        text = (package / file).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise SystemExit(f"{file} holds {old.strip()!r} {text.count(old)} times")
        (package / file).write_text(text.replace(old, new), encoding="utf-8")
    for name in ("_parser", "_writer"):
        made = folder / f"{name}.c"
        options = [word for directive in DIRECTIVES for word in ("-X", directive)]
        subprocess.run(
            [sys.executable, "-m", "cython", "-3", *options, package / f"{name}.pyx", "-o", made], check=True
        )
        command = [
            "gcc",
            "-shared",
            "-fPIC",
            "-g",
            "-DCYTHON_VECTORCALL_TPNEW=0",
            f"-I{package}",
            f"-I{include}",
            *flags,
        ]
        subprocess.run([*command, made, "-o", package / f"{name}{suffix}"], check=True)


def library(name: str) -> str:
    return subprocess.run(
        ["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()


def under_asan(folder: Path, seconds: float, targets_only: bool, planted: tuple[str, str, str] | None) -> int:
    build(folder, SANITIZERS, sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX"), planted)
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(folder),
    }
    tests = [f"tests/test_{name}.py" for name in TESTS]
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    pytest += ["--deselect", "tests/test_leaks.py::test_a_leak_is_seen"]  # the allocator of asan counts nothing
    fuzz = [sys.executable, "-m", "fuzz", *TARGETS, "--seconds", str(seconds), "--implementation", "python,cython"]
    for command in (fuzz,) if targets_only else (pytest, fuzz):
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if done:
            return done
    return 0


def under_valgrind(folder: Path, seconds: float, python: str, planted: tuple[str, str, str] | None) -> int:
    ask = "import sysconfig; print(sysconfig.get_path('include')); print(sysconfig.get_config_var('EXT_SUFFIX'))"
    include, suffix = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.split()
    if not Path(include, "Python.h").exists():  # an interpreter of the same ABI may do
        include = sysconfig.get_path("include")
    build(folder, ["-O1"], include, suffix, planted)
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "PYTHONPATH": str(folder)}
    options = [
        "--error-exitcode=9",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        "--errors-for-leak-kinds=definite",
    ]
    if python == sys.executable:
        options.append("--undef-value-errors=no")  # interpreters built with all optimisations have some of their own
    targets = [*TARGETS, "--seconds", str(seconds * 4), "--implementation", "cython"]
    command = ["valgrind", "-q", *options, python, "-m", "fuzz", *targets]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the compiled twin under sanitizers.")
    parser.add_argument("kind", choices=("asan", "valgrind"))
    parser.add_argument("--seconds", type=float, default=5, help="for each fuzz target")
    parser.add_argument("--targets-only", action="store_true", help="no tests, which take long")
    parser.add_argument("--prove", action="store_true", help="plant a fault, which has to be reported")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that valgrind runs")
    options = parser.parse_args()
    planted = PLANTED[options.kind] if options.prove else None
    with tempfile.TemporaryDirectory(prefix="sanitize-") as name:
        if options.kind == "asan":
            status = under_asan(Path(name), options.seconds, options.prove or options.targets_only, planted)
        else:
            status = under_valgrind(Path(name), options.seconds, options.python, planted)
    return status if planted is None else int(status == 0)


if __name__ == "__main__":
    sys.exit(main())
