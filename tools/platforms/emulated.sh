#!/usr/bin/env bash
# The tests on another machine's processor, emulated: emulated.sh arm64|s390x [arguments of pytest]
# Without arguments of pytest: the tests of the parser, which are the files that parser_tests.txt lists, and every row of
# the handed cases. It is slow, some thirty times: Hypothesis draws fewer examples (its profile "emulated" in
# tests/conftest.py), unless HYPOTHESIS_PROFILE names another.
# s390x is big-endian. Needs root, debootstrap, qemu-user-static (packages of Debian) and a mountable binfmt_misc.
# The first run makes a root of that machine in the cache (some five minutes); the C is compiled here, with ziglang.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

debian=${1:?arm64 or s390x}
shift
[ $# -gt 0 ] || set -- @tools/platforms/parser_tests.txt
case "$debian" in
arm64) machine=aarch64 ;;
s390x) machine=s390x ;;
*) echo "$debian: use arm64 or s390x" >&2 && exit 2 ;;
esac
suite=bookworm # its Python is 3.11, the oldest that is supported
chroot=$cache/$suite-$debian

section "Emulator"
binfmt=/proc/sys/fs/binfmt_misc
[ -e $binfmt/register ] || mount -t binfmt_misc binfmt_misc $binfmt
if [ ! -e "$binfmt/qemu-$machine" ]; then
    cat "/usr/lib/binfmt.d/qemu-$machine.conf" >$binfmt/register
    registered=$binfmt/qemu-$machine
fi
undo() {
    [ -z "${registered:-}" ] || echo -1 >"$registered"
    rm -rf "$scratch" "${work:-}"
}

if [ ! -e "$chroot/ready" ]; then
    section "Root of $debian"
    rm -rf "$chroot"
    debootstrap --arch="$debian" --variant=minbase --include=python3,python3-venv,libpython3.11-dev,ca-certificates \
        "$suite" "$chroot" >"$cache/$suite-$debian.log" 2>&1 || { tail -n 20 "$cache/$suite-$debian.log" && exit 1; }
    touch "$chroot/ready"
fi
work=$(mktemp -d "$chroot/llmstream.XXXXXX")
inside=/${work##*/}

section "C for $machine"
copied "$work/tree"
tools "$scratch/tools" 'cython>=3.3' 'setuptools>=77' ziglang
headers=$scratch/headers # only Python's: the root's own libc clashes with the compiler's
mkdir -p "$headers/$machine-linux-gnu"
cp -rL "$chroot/usr/include/python3.11" "$headers/"
cp -rL "$chroot/usr/include/$machine-linux-gnu/python3.11" "$headers/$machine-linux-gnu/"
(cd "$work/tree" && "$scratch/tools/bin/python" tools/platforms/cross_compile.py --target "$machine-linux-gnu.2.17" \
    --headers "$headers/python3.11" --headers "$headers" --into src/llmstream --suffix "cpython-311-$machine-linux-gnu.so")

section "Packages"
requirements "$work/tree/pyproject.toml" >"$work/requirements"
downloaded 3.11 "$machine" 36 "$work/requirements" "$work/wheels"
chroot "$chroot" python3 -m venv --without-pip --system-site-packages "$inside/venv"
site=$(ls -d "$work"/venv/lib/python3.*/site-packages)
for wheel in "$work"/wheels/*.whl; do "$scratch/tools/bin/python" -m zipfile -e "$wheel" "$site"; done

section "Tests on $machine"
cases "$work" "$@"
export HYPOTHESIS_PROFILE=${HYPOTHESIS_PROFILE:-emulated}
cat >"$work/go.sh" <<'GO'
set -eu
cd "$1/tree"
shift
export PYTHONPATH=src LLMSTREAM_IMPLEMENTATION=cython
../venv/bin/python -c 'import llmstream, platform, sys; print(platform.machine(), sys.byteorder, sys.version.split()[0], llmstream.implementation)'
unset LLMSTREAM_IMPLEMENTATION
../venv/bin/python -m llmstream demo </dev/null | tail -n 3
exec ../venv/bin/python -m pytest -p no:cacheprovider -o faulthandler_timeout=3000 "$@"
GO
nice -n 10 chroot "$chroot" /bin/sh "$inside/go.sh" "$inside" "$@"
