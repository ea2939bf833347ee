#!/usr/bin/env bash
# The tests on a free-threaded CPython 3.13, in one thread and in parallel threads, with the GIL staying off:
# free_threaded.sh [arguments of pytest]
# The first run builds the interpreter in the cache from Debian's source package (some ten minutes). PYTHON_FREE_THREADED
# names another free-threaded interpreter to use instead, of any version.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

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
[ ! -d "${LLMSTREAM_SHARED:=$root/../shared}" ] || export LLMSTREAM_SHARED

section "Tests of threads"
python -m pytest -p no:cacheprovider -q tests/test_threads.py

section "Tests"
python -m pytest -p no:cacheprovider -q "$@"
