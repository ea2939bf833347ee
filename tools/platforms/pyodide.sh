#!/usr/bin/env bash
# The pure wheel in Pyodide under Node: its demo and the tests: pyodide.sh [arguments of pytest]
# Needs node 20 or newer and npm.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

version=314.0.7 # of the npm package: CPython 3.14 on Emscripten 5
section "Pyodide $version"
npm install --silent --no-save --no-audit --no-fund --prefix "$cache/pyodide" "pyodide@$version"

section "Pure wheel"
copied "$scratch/tree"
tools "$scratch/tools" 'setuptools>=77'
(cd "$scratch/tree" && LLMSTREAM_EXTENSIONS=skip "$scratch/tools/bin/python" -m pip wheel -q --no-deps --no-build-isolation -w "$scratch/dist" .)
"$scratch/tools/bin/python" -m pip download -q -d "$scratch/dist" --only-binary :all: --platform any --implementation py \
    --python-version 3.14 pytest hypothesis
ls "$scratch/dist"

section "Node"
cp "$root/tools/platforms/pyodide.mjs" "$cache/pyodide/run.mjs"
[ ! -d "${LLMSTREAM_SHARED:=$root/../shared}" ] || cp -r "$LLMSTREAM_SHARED" "$scratch/shared"
ulimit -s unlimited
# Python's calls are calls of the engine, whose stack is small where nobody asks: a property test would not fit.
node --stack-size=60000 "$cache/pyodide/run.mjs" "$scratch/dist" "$scratch/tree" "$scratch/shared" "$@"
