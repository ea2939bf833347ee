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
    (cd "$root" && git ls-files -z --cached --others --exclude-standard | xargs -0 -I{} sh -c 'test -e "{}" && printf "%s\0" "{}"' |
        tar -c --null -T - -f -) | tar -x -C "$1" -f -
}

# tools DIRECTORY REQUIREMENT...: a virtual environment with these
tools() {
    local directory=$1
    shift
    "$python" -m venv "$directory"
    "$directory/bin/python" -m pip install -q "$@"
}
