# Sourced by the scripts beside it. They work on a copy of the tree as git sees it, and leave alone what is checked out.
# What takes long to make (interpreters, roots of other machines) is kept in $cache: LLMSTREAM_PLATFORMS names another place.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${LLMSTREAM_PLATFORMS:-${XDG_CACHE_HOME:-$HOME/.cache}/llmstream-platforms}
python=${PYTHON:-python3}
scratch=$(mktemp -d)
undo() { rm -rf "$scratch"; }
trap undo EXIT
mkdir -p "$cache"
unset LLMSTREAM_IMPLEMENTATION LLMSTREAM_EXTENSIONS LLMSTREAM_COVERAGE PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

section() { printf '\n=== %s (%ss) ===\n' "$*" "$SECONDS"; }

# copied DIRECTORY: the files that git knows or would take, as they are now
copied() {
    mkdir -p "$1"
    (cd "$root" && comm -z -23 <(git ls-files -z --cached --others --exclude-standard | sort -zu) \
        <(git ls-files -z --deleted | sort -z) | tar -c --null -T - -f -) | tar -x -C "$1" -f -
}

# tools DIRECTORY REQUIREMENT...: a virtual environment with these
tools() {
    local directory=$1
    shift
    "$python" -m venv "$directory"
    "$directory/bin/python" -m pip install -q "$@"
}

# requirements PYPROJECT: what the tests need, one a line
requirements() {
    "$scratch/tools/bin/python" - "$1" <<'PYTHON'
import sys, tomllib
from pathlib import Path
extras = tomllib.loads(Path(sys.argv[1]).read_text())["project"]["optional-dependencies"]
print(*(r for extra in ("cli", "schema", "test") for r in extras[extra] if "[" not in r), sep="\n")
PYTHON
}

# downloaded VERSION MACHINE GLIBC REQUIREMENTS DIRECTORY: wheels for that Python on Linux with that glibc (36: 2.36)
downloaded() {
    local platforms
    platforms=$(for minor in $(seq "$3" -1 5); do printf -- '--platform manylinux_2_%s_%s ' "$minor" "$2"; done)
    # shellcheck disable=SC2086 # one word each
    "$scratch/tools/bin/python" -m pip download -q -d "$5" --only-binary :all: --python-version "$1" $platforms \
        --platform "manylinux2014_$2" -r "$4"
}

# cases DIRECTORY ARGUMENT...: the handed cases, where there are any, beside the tree in that directory; every row of them
# shall run if the arguments of pytest are a list of files
cases() {
    [ -d "${LLMSTREAM_SHARED:=$root/../shared}" ] || return 0
    cp -r "$LLMSTREAM_SHARED" "$1/shared"
    shift
    unset LLMSTREAM_SHARED # the tests find them there
    case $* in @*) export LLMSTREAM_REQUIRE_SHARED=1 ;; esac
}
