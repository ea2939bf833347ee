#!/usr/bin/env bash
# The pure wheel in Pyodide, under Node or in headless Chromium: its demo and the tests: pyodide.sh node|browser [arguments
# of pytest]
# Without arguments of pytest: the tests of the parser, which are the files that parser_tests.txt lists, less those that
# start threads or processes, which WebAssembly does not. Needs npm, and node 20 or newer or chromium (BROWSER names it).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

where=${1:?node or browser}
shift
version=314.0.7 # of the npm package: CPython 3.14 on Emscripten 5
section "Pyodide $version"
npm install --silent --no-save --no-audit --no-fund --prefix "$cache/pyodide" "pyodide@$version"

section "Pure wheel"
copied "$scratch/work/tree"
tools "$scratch/tools" 'setuptools>=77'
(cd "$scratch/work/tree" && LLMSTREAM_EXTENSIONS=skip "$scratch/tools/bin/python" -m pip wheel -q --no-deps --no-build-isolation -w "$scratch/wheels" .)
"$scratch/tools/bin/python" -m pip download -q -d "$scratch/wheels" --only-binary :all: --platform any --implementation py \
    --python-version 3.14 pytest hypothesis
ls "$scratch/wheels"
cases "$scratch/work"
[ $# -gt 0 ] || set -- @tools/platforms/parser_tests.txt --ignore tests/test_threads.py --ignore tests/test_leaks.py

section "Tests, $where"
case "$where" in
node)
    cp "$root/tools/platforms/pyodide.mjs" "$cache/pyodide/run.mjs"
    ulimit -s unlimited
    # Python's calls are calls of the engine, whose stack is small where nobody asks: a property test would not fit.
    node --stack-size=60000 "$cache/pyodide/run.mjs" "$scratch/wheels" "$scratch/work" "$root/tools/platforms/pyodide_tests.py" "$@"
    ;;
browser)
    "$python" "$root/tools/platforms/pyodide_page.py" "${BROWSER:-chromium}" "$cache/pyodide/node_modules/pyodide" \
        "$scratch/wheels" "$scratch/work" "$@"
    ;;
*) echo "$where: use node or browser" >&2 && exit 2 ;;
esac
