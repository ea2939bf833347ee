"""Compile the extensions for machines that are not at hand, with ziglang: does the C compile and link there?

Without --target: for all of TARGETS, as a check, one line each; for Windows too where --cpython-source names a source
tree of CPython, whose headers for it nothing else has. With --target: into a folder, for a run under an emulator.
What is made for macOS and Windows is never shipped, and the compiler is not Microsoft's.
Needs cython, setuptools and ziglang; run it in a copy of the tree.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "llmstream"
UNIX = ("-fPIC", "-shared")
MACOS = (*UNIX, "-undefined", "dynamic_lookup")
# Of an LP64 Linux, but for what another processor or libc decides: enough for a check.
TARGETS = {
    "x86_64-linux-gnu.2.17": UNIX,
    "aarch64-linux-gnu.2.17": UNIX,
    "s390x-linux-gnu.2.17": UNIX,
    "riscv64-linux-gnu.2.39": UNIX,
    "x86_64-linux-musl": UNIX,
    "aarch64-linux-musl": UNIX,
    "x86_64-macos.10.13": MACOS,
    "aarch64-macos.11.0": MACOS,
}
WINDOWS = (
    "x86_64-windows-gnu",
    "aarch64-windows-gnu",
    "x86-windows-gnu",
)  # compiled and not linked: there is no python.lib
EXTENSIONS = ("_parser", "_writer")


def setup_arguments() -> tuple[dict[str, object], list[tuple[str, str]]]:
    """The directives and macros of setup.py, read from it without a build."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8").rpartition("\nsetup(")[0]
    names: dict[str, object] = {"__name__": "setup", "__file__": str(ROOT / "setup.py")}
    exec(compile(text, "setup.py", "exec"), names)
    return names["DIRECTIVES"], names["MACROS"]  # type: ignore[return-value]


def to_c(folder: Path) -> dict[str, Path]:
    directives, _ = setup_arguments()
    options = [
        word for name, value in directives.items() if name != "language_level" for word in ("-X", f"{name}={value}")
    ]
    made = {}
    for name in EXTENSIONS:
        made[name] = folder / f"{name}.c"
        command = [sys.executable, "-m", "cython", "-3", *options, str(SOURCES / f"{name}.pyx"), "-o", str(made[name])]
        subprocess.run(command, check=True)
    return made


def compile_for(target: str, source: Path, result: Path, headers: list[str]) -> subprocess.CompletedProcess[str]:
    _, macros = setup_arguments()
    flags = ("-c",) if target in WINDOWS else TARGETS.get(target, UNIX)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *flags, "-O3", "-g0", "-w"]
    command += [f"-D{name}={value}" for name, value in macros]
    command += [f"-I{folder}" for folder in [SOURCES, *headers]]
    return subprocess.run([*command, str(source), "-o", str(result)], capture_output=True, text=True, check=False)


def windows_headers(source: Path, folder: Path) -> list[str]:
    """The folders of headers for Windows; pyconfig.h is made from its template, as the build of CPython does."""
    shutil.copy(source / "PC" / "pyconfig.h.in", folder / "pyconfig.h")
    return [str(folder), str(source / "Include")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", help="as ziglang names it, for example aarch64-linux-gnu.2.17")
    parser.add_argument("--headers", action="append", help="a folder of Python's headers for the target")
    parser.add_argument("--cpython-source", type=Path, help="an unpacked source distribution of CPython")
    parser.add_argument("--into", type=Path, help="where the extensions go")
    parser.add_argument("--suffix", default="so", help="what their names end in")
    options = parser.parse_args()
    headers = options.headers or [sysconfig.get_path("include")]
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = to_c(folder)
        targets = [options.target] if options.target else list(TARGETS)
        if options.cpython_source:
            targets += WINDOWS
        for target in targets:
            if target in WINDOWS:
                headers = windows_headers(options.cpython_source, folder)
            for extension, source in sources.items():
                result = folder / f"{extension}.{options.suffix}"
                done = compile_for(target, source, result, headers)
                ok = done.returncode == 0
                print(f"{target:26} {extension:8} {f'{result.stat().st_size} bytes' if ok else 'FAILED'}", flush=True)
                if not ok:
                    print(done.stderr[-3000:], file=sys.stderr)
                    failed += 1
                elif options.into:
                    shutil.copy(result, options.into / result.name)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
