#!/usr/bin/env bash
# The tests on a free-threaded CPython 3.13, in one thread and in parallel threads, with the GIL staying off:
# free_threaded.sh [arguments of pytest]
# Without arguments of pytest: the tests of the parser, which are the files that parser_tests.txt lists, and every row of
# the handed cases.
# The first run builds the interpreter in the cache from Debian's source package (some ten minutes). PYTHON_FREE_THREADED
# names another free-threaded interpreter to use instead, of any version.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# -gt 0 ] || set -- @tools/platforms/parser_tests.txt

interpreter=${PYTHON_FREE_THREADED:-$cache/python3.13t/bin/python3.13t}
if [ ! -x "$interpreter" ]; then
    section "Source of CPython 3.13"
    apt=$scratch/apt # a root of its own: the machine's list of sources stays as it is
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 '/debian$' || echo http://deb.debian.org/debian)
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$apt/sources.list"
    options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=-" -o "Dir::State::lists=$apt/lists"
        -o "Dir::Cache::archives=$apt/archives" -o "APT::Sandbox::User=root")
    apt-get "${options[@]}" -q update >"$cache/python3.13t.log" 2>&1
    (cd "$scratch" && apt-get "${options[@]}" -q source --download-only python3.13 >>"$cache/python3.13t.log" 2>&1)
    mkdir "$scratch/cpython"
    tar -xf "$scratch"/python3.13_*.orig.tar.xz -C "$scratch/cpython" --strip-components=1

    section "Build of CPython 3.13, free-threaded"
    (
        cd "$scratch/cpython"
        ./configure -q --prefix="$cache/python3.13t" --disable-gil --with-ensurepip=install
        make -j2
        make install COMPILEALL_OPTS='-x .' # what is imported is compiled then
    ) >>"$cache/python3.13t.log" 2>&1 || { tail -n 20 "$cache/python3.13t.log" && exit 1; }
fi

section "Extension"
copied "$scratch/tree"
"$interpreter" -m venv "$scratch/venv"
PATH="$scratch/venv/bin:$PATH"
cd "$scratch/tree"
LLMSTREAM_EXTENSIONS=require python -m pip install -q --only-binary hypothesis . pytest 'hypothesis>=6.112'
python -W error -c '
import sys, sysconfig, llmstream, llmstream._writer
assert sysconfig.get_config_var("Py_GIL_DISABLED") and not sys._is_gil_enabled(), "the GIL came on"
print(sys.version.split()[0], llmstream.implementation, "GIL off")'
cat >gil_stays_off.py <<'PYTHON'
import sys


def pytest_sessionfinish(session):
    assert not sys._is_gil_enabled(), "the GIL came on"
    print("\nthe GIL stayed off")
PYTHON

section "Tests of threads"
status=0
python -m pytest -p gil_stays_off -p no:cacheprovider tests/test_threads.py || status=$?

section "Tests"
cases "$scratch" "$@"
python -m pytest -p gil_stays_off -p no:cacheprovider "$@" || status=$?
exit "$status"
