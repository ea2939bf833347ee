#!/usr/bin/env bash
# The wheel of a Python that this machine does not have, built and tested in a root of Debian's development version:
# newer_python.sh 3.14|3.15 [arguments of pytest]
# Without arguments of pytest: the tests of the parser, which are the files that parser_tests.txt lists, and every row of
# the handed cases. Needs root and debootstrap (a package of Debian). The first run makes the root in the cache (some five
# minutes).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

version=${1:?3.14 or 3.15}
shift
[ $# -gt 0 ] || set -- @tools/platforms/parser_tests.txt
chroot=$cache/sid-$version

if [ ! -e "$chroot/ready" ]; then
    section "Root with Python $version"
    rm -rf "$chroot"
    debootstrap --variant=minbase --include="python$version-venv,python$version-dev,gcc,libc6-dev,ca-certificates" \
        sid "$chroot" >"$cache/sid-$version.log" 2>&1 || { tail -n 20 "$cache/sid-$version.log" && exit 1; }
    touch "$chroot/ready"
fi
work=$(mktemp -d "$chroot/llmstream.XXXXXX")
undo() { rm -rf "$scratch" "${work:-}"; }
inside=/${work##*/}

section "Packages"
copied "$work/tree"
tools "$scratch/tools" 'setuptools>=77'
requirements "$work/tree/pyproject.toml" >"$work/requirements"
echo 'cython>=3.3 setuptools>=77' | tr ' ' '\n' >>"$work/requirements"
downloaded "$version" x86_64 41 "$work/requirements" "$work/wheels"

section "Wheel"
cases "$work" "$@"
cat >"$work/go.sh" <<'GO'
set -eu
cd "$1"
version=$2
shift 2
"python$version" -m venv venv
PATH=$PWD/venv/bin:$PATH
python -m pip install -q --no-index --find-links wheels -r requirements
(cd tree && LLMSTREAM_EXTENSIONS=require python -m pip wheel -q --no-deps --no-build-isolation --no-index -w ../built .)
ls -l built
python -m pip install -q --no-index built/*.whl
mkdir installed
cd installed # beside the tree: what is imported is the wheel
python -W error -c 'import llmstream, platform, sys; print(platform.machine(), sys.version.split()[0], llmstream.implementation, llmstream.__file__)'
llmstream demo </dev/null | tail -n 3
cd ../tree
echo "=== Tests"
exec python -m pytest -p no:cacheprovider "$@"
GO
chroot "$chroot" /bin/sh "$inside/go.sh" "$inside" "$version" "$@"
