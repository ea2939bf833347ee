"""The compiled twins; everything declarative stands in pyproject.toml. Read from the environment:

LLMSTREAM_EXTENSIONS  auto (default): build them, or go on without where that fails
                      require: fail where they cannot be built; skip: do not try
LLMSTREAM_COVERAGE    1: with line tracing, for coverage of the .pyx
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODE = os.environ.get("LLMSTREAM_EXTENSIONS") or "auto"
COVERAGE = os.environ.get("LLMSTREAM_COVERAGE") == "1"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "freethreading_compatible": True,
    "linetrace": COVERAGE,
}
MACROS = [("CYTHON_VECTORCALL_TPNEW", "0")]  # without it, making an event is a call cheaper
if COVERAGE:
    MACROS += [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")]


class BuildExt(build_ext):
    def build_extensions(self):
        if self.compiler.compiler_type != "msvc":
            for extension in self.extensions:
                extension.extra_compile_args = ["-O3", "-g0"]
        super().build_extensions()


def extensions():
    if MODE not in ("auto", "require", "skip"):
        sys.exit(f"LLMSTREAM_EXTENSIONS={MODE}: use auto, require or skip")
    if MODE == "skip" or (MODE == "auto" and sys.implementation.name != "cpython"):
        return []
    from Cython.Build import cythonize  # a pure build does without

    included = [str(path) for kind in ("*.h", "*.pxi") for path in Path("src/llmstream").glob(kind)]
    sources = [
        Extension(f"llmstream.{name}", [f"src/llmstream/{name}.pyx"], depends=included, define_macros=MACROS)
        for name in ("_parser", "_writer")
    ]
    found = cythonize(sources, compiler_directives=DIRECTIVES, force=True)
    for extension in found:
        extension.optional = MODE == "auto"  # cythonize() drops it from its input
    return found


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExt})
