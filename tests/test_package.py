"""The package itself: names, versions, the choice of the twin, and what an import costs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

PUBLIC = {
    "AudioPart",
    "Checker",
    "ContentDelta",
    "ContentStop",
    "Delta",
    "Dialect",
    "DocumentPart",
    "Encoder",
    "EnvelopeError",
    "Event",
    "EventTooLargeError",
    "ImagePart",
    "IncompleteStreamError",
    "LLMStreamError",
    "LifecycleError",
    "Message",
    "Observation",
    "Observer",
    "Parameters",
    "Parser",
    "ReorderBuffer",
    "Report",
    "Request",
    "RequestError",
    "RequestViolation",
    "SSEDecoder",
    "SSEError",
    "SequenceError",
    "ServerSentEvent",
    "StreamEnd",
    "StreamError",
    "StreamResult",
    "StreamStart",
    "TextPart",
    "Tool",
    "ToolCall",
    "Transcoder",
    "UnknownEvent",
    "UnknownPart",
    "check_tool_call",
    "dialect_for",
    "screen_tool_calls",
    "UpstreamError",
    "Usage",
    "Violation",
    "__version__",
    "aiter_events",
    "aiter_text",
    "atranscode",
    "check",
    "implementation",
    "iter_events",
    "iter_text",
    "parse",
    "reorder",
    "transcode",
    "Loss",
    "StreamTranslator",
    "Translated",
    "VendorWriter",
    "atranslate_stream",
    "from_vendor",
    "to_vendor",
    "translate_stream",
    "writer_for",
}

# Modules that an import of the package must not bring along.
HEAVY = {
    "argparse",
    "asyncio",
    "ctypes",
    "dataclasses",
    "email",
    "http",
    "httpx",
    "importlib.metadata",
    "inspect",
    "logging",
    "pathlib",
    "rich",
    "socket",
    "subprocess",
    "typing_extensions",
    "urllib",
}


def python(code: str, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter, with the given choice of implementation."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LLMSTREAM_")}
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def chosen(**variables: str) -> str:
    result = python("import llmstream; print(llmstream.implementation)", **variables)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_public_names(llmstream):
    assert len(llmstream.__all__) == len(set(llmstream.__all__))
    assert set(llmstream.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(llmstream, name) is not None


def test_nothing_else_looks_public(llmstream):
    modules = {name for name in vars(llmstream) if f"llmstream.{name}" in sys.modules}
    assert {name for name in dir(llmstream) if not name.startswith("_")} - modules - {"TYPE_CHECKING"} == {
        name for name in PUBLIC if not name.startswith("_")
    }


def test_fixture_gives_the_twin_it_names(llmstream, request):
    assert llmstream.implementation == request.node.callspec.params["llmstream"]
    assert sys.modules["llmstream"] is llmstream
    assert chosen(LLMSTREAM_IMPLEMENTATION=os.environ["LLMSTREAM_IMPLEMENTATION"]) == (llmstream.implementation)


def test_twins_are_separate_packages(twins):
    cython, pure = twins.cython.package, twins.python.package
    assert (cython.implementation, pure.implementation) == ("cython", "python")
    for name in ("Parser", "SSEDecoder", "ContentDelta", "LLMStreamError", "StreamResult"):
        assert getattr(cython, name) is not getattr(pure, name)
    for twin in (twins.cython, twins.python, twins.cython):
        with twin.active():
            assert sys.modules["llmstream"] is twin.package
    assert "llmstream" not in sys.modules


def test_version(llmstream):
    assert llmstream.__version__ == importlib.metadata.version("llmstream-wire")
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", llmstream.__version__)


def test_changelog_begins_with_the_version(llmstream):
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert next(h for h in headings if h != "Unreleased") == llmstream.__version__


@pytest.mark.extension
def test_every_source_of_an_extension_is_built(llmstream):
    """setup.py names them; one that it forgets would leave its twin in Python to stand in."""
    for source in (ROOT / "src" / "llmstream").glob("*.pyx"):
        found = importlib.util.find_spec(f"llmstream.{source.stem}")
        assert found is not None, source.name
        assert not found.origin.endswith(".py")
        assert (source.parent / f"{source.stem}_py.py").is_file()


def test_typed():
    found = importlib.util.find_spec("llmstream")
    assert found is not None
    assert found.origin is not None
    assert (Path(found.origin).parent / "py.typed").is_file()


@pytest.mark.extension
def test_auto_takes_the_compiled_twin():
    assert chosen() == "cython"
    assert chosen(LLMSTREAM_IMPLEMENTATION="") == "cython"
    assert chosen(LLMSTREAM_IMPLEMENTATION="auto") == "cython"


@pytest.mark.extension
def test_cython_takes_the_compiled_twin():
    assert chosen(LLMSTREAM_IMPLEMENTATION="cython") == "cython"


def test_python_takes_the_python_twin():
    assert chosen(LLMSTREAM_IMPLEMENTATION="python") == "python"


@pytest.mark.parametrize("value", ["c", "Python", "pure", " "])
def test_another_choice_is_an_error(value):
    result = python("import llmstream", LLMSTREAM_IMPLEMENTATION=value)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last == f"ImportError: LLMSTREAM_IMPLEMENTATION={value}: use auto, cython or python"


# An import hook that answers for the compiled twin: it is absent, broken, or lacks what it needs.
HOOK = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "llmstream._parser":
            raise {error}
sys.meta_path.insert(0, Finder())
import llmstream
print(llmstream.implementation)
"""
ABSENT = 'ModuleNotFoundError("No module named " + repr(name), name=name)'
BROKEN = 'ImportError("undefined symbol: PyNothing", name=name)'
LACKING = 'ModuleNotFoundError("No module named \'elsewhere\'", name="elsewhere")'


@pytest.mark.parametrize("choice", ["", "auto"])
def test_auto_does_without_an_absent_twin(choice):
    result = python(HOOK.format(error=ABSENT), LLMSTREAM_IMPLEMENTATION=choice)
    assert (result.returncode, result.stdout, result.stderr) == (0, "python\n", "")


def test_cython_does_not_do_without():
    result = python(HOOK.format(error=ABSENT), LLMSTREAM_IMPLEMENTATION="cython")
    assert result.returncode == 1
    assert "No module named 'llmstream._parser'" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("choice", ["auto", "cython"])
@pytest.mark.parametrize(
    ("error", "words"),
    [(BROKEN, "undefined symbol: PyNothing"), (LACKING, "No module named 'elsewhere'")],
)
def test_a_broken_twin_is_not_hidden(choice, error, words):
    result = python(HOOK.format(error=error), LLMSTREAM_IMPLEMENTATION=choice)
    assert result.returncode == 1
    assert words in result.stderr.splitlines()[-1]


# The same of the part that only a producer needs, which is not asked for before.
WRITER_HOOK = HOOK.replace("llmstream._parser", "llmstream._writer").replace(
    "print(llmstream.implementation)",
    "print(llmstream.implementation)\n"
    "encoder = llmstream.Encoder(clock=lambda: 0)\n"
    "print(encoder.start('m') + encoder.delta('\\u2028'))\n"
    "print([name for name in sys.modules if name.startswith('llmstream._writer')])",
)
WRITTEN = (
    b'event: stream.start\ndata: {"v":"1.0","seq":0,"type":"stream.start","model":"m","created":0}\n\n'
    b'event: content.delta\ndata: {"v":"1.0","seq":1,"type":"content.delta","index":0,"role":"assistant",'
    b'"delta":{"text":"\\u2028"}}\n\n'
)


@pytest.mark.extension
def test_auto_does_without_an_absent_writer():
    result = python(WRITER_HOOK.format(error=ABSENT), LLMSTREAM_IMPLEMENTATION="auto")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["cython", str(WRITTEN), "['llmstream._writer_py']"]


@pytest.mark.extension
def test_cython_does_not_do_without_a_writer():
    result = python(WRITER_HOOK.format(error=ABSENT), LLMSTREAM_IMPLEMENTATION="cython")
    assert result.returncode == 1
    assert "No module named 'llmstream._writer'" in result.stderr.splitlines()[-1]


@pytest.mark.extension
@pytest.mark.parametrize("choice", ["auto", "cython"])
@pytest.mark.parametrize(
    ("error", "words"),
    [(BROKEN, "undefined symbol: PyNothing"), (LACKING, "No module named 'elsewhere'")],
)
def test_a_broken_writer_is_not_hidden(choice, error, words):
    result = python(WRITER_HOOK.format(error=error), LLMSTREAM_IMPLEMENTATION=choice)
    assert result.returncode == 1
    assert words in result.stderr.splitlines()[-1]


def test_python_takes_the_python_writer():
    result = python(WRITER_HOOK.format(error=BROKEN), LLMSTREAM_IMPLEMENTATION="python")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["python", str(WRITTEN), "['llmstream._writer_py']"]


def imported(**variables: str) -> set[str]:
    """The modules that an import of the package brings along, in an interpreter without site."""
    code = (
        f"import json, sys; sys.path[:] = json.loads({json.dumps(json.dumps(sys.path))})\n"
        "for name in [n for n in sys.modules if n.split('.')[0] == 'json']: del sys.modules[name]\n"
        "before = set(sys.modules)\n"
        "import llmstream\n"
        "print('\\n'.join(set(sys.modules) - before))"
    )
    result = python(code, "-S", **variables)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_import_brings_no_heavy_module(llmstream):
    found = imported(LLMSTREAM_IMPLEMENTATION=llmstream.implementation)
    assert not {name.split(".")[0] for name in found} & HEAVY
    assert not found & HEAVY
    assert "llmstream.cli" not in found
    assert not found & {"llmstream.encoder", "llmstream._writer", "llmstream._writer_py"}
    assert "json" not in found
    if llmstream.implementation == "cython":
        assert "llmstream._parser_py" not in found


def test_import_leaves_the_other_twin_alone(llmstream):
    found = imported(LLMSTREAM_IMPLEMENTATION=llmstream.implementation)
    other = {"cython": "llmstream._parser_py", "python": "llmstream._parser"}
    assert other[llmstream.implementation] not in found
