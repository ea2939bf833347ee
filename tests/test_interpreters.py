"""Interpreters beside the main one: the extension belongs to one of a process, the others read with the Python twin."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
EVENTS = (
    'data: {"v":"1.0","seq":0,"type":"stream.start","model":"m","created":0}\\n\\n'
    'data: {"v":"1.0","seq":1,"type":"content.delta","index":0,"role":"assistant","delta":{"text":"Hi"}}\\n\\n'
)
READING = f"""
import sys, warnings
sys.path[:] = {sys.path!r}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import llmstream
deltas = llmstream.Parser().feed(b'''{EVENTS}''')
encoder = llmstream.Encoder()
print(llmstream.implementation, [delta.type for delta in deltas], deltas[1].text, encoder.start("m") is not None,
      [str(one.message) for one in caught if one.category is RuntimeWarning], flush=True)
"""
SAID = "the compiled twin belongs to another interpreter of this process: this one has the Python twin"

pytest.importorskip(MODULE)


def interpreters(configuration: str, first: str, second: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs code in the main interpreter and in one beside it: each where ``first`` and ``second`` say."""
    if sys.version_info >= (3, 13):
        made = f"{MODULE}.create({configuration!r})"
        run = f"failed = {MODULE}.exec(other, READING)\n    assert failed is None, failed.formatted"
    else:
        made = f"{MODULE}.create(isolated={configuration == 'isolated'})"
        run = f"{MODULE}.run_string(other, READING)"
    code = f"""
import {MODULE}
READING = {READING!r}
def main():
    exec(READING, {{}})
def beside():
    other = {made}
    {run}
    {MODULE}.destroy(other)
{first}()
{second}()
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LLMSTREAM_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def line(implementation: str, *warned: str) -> str:
    return f"{implementation} ['stream.start', 'content.delta'] Hi True {list(warned)}"


@pytest.mark.extension
@pytest.mark.parametrize("configuration", ["legacy", "isolated"])
def test_another_interpreter_takes_the_python_twin_and_says_so(configuration):
    done = interpreters(configuration, "main", "beside")
    assert (done.returncode, done.stdout.splitlines()) == (0, [line("cython"), line("python", SAID)]), done.stderr


@pytest.mark.extension
@pytest.mark.parametrize("configuration", ["legacy", "isolated"])
def test_one_of_them_has_it_whichever_is_first(configuration):
    """One with a GIL of its own never loads the extension, which is then free for the main one."""
    done = interpreters(configuration, "beside", "main")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, [line("cython"), line("python", SAID)]), (
        done.stderr
    )


@pytest.mark.extension
def test_what_was_asked_for_by_name_is_an_error_there():
    done = interpreters("legacy", "main", "beside", LLMSTREAM_IMPLEMENTATION="cython")
    assert done.returncode != 0
    assert "ImportError" in done.stderr


@pytest.mark.parametrize("configuration", ["legacy", "isolated"])
def test_the_python_twin_is_at_home_in_all(configuration):
    done = interpreters(configuration, "main", "beside", LLMSTREAM_IMPLEMENTATION="python")
    assert (done.returncode, done.stdout.splitlines()) == (0, [line("python")] * 2), done.stderr
