"""The test suites of other libraries, run as they are and again with our parts in place of theirs.

``python tools/peer_suites.py [NAME ...]`` fetches the source distribution of each library with pip, which carries its
tests, installs the library in an environment of its own, runs the tests twice and prints each test whose result
differs, with the reason. A difference that is not explained here, or an explained one that is gone, is a failure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"

NO_DATA = "WHATWG HTML 9.2.6: an event whose data buffer is empty is not dispatched"
INSIDE = "no difference in what is read: the test looks for the line under way in a private attribute of the decoder"


@dataclass(frozen=True)
class Suite:
    """One release of a library, the files of its tests, what they need, and how our parts are put in.

    ``swap``      a program that is run before the library's tests are imported
    ``explained`` the beginnings of the names of tests whose results differ, and why
    """

    distribution: str
    files: tuple[str, ...]
    requirements: tuple[str, ...]
    swap: str
    explained: dict[str, str] = field(default_factory=dict)


SDK_SWAP = """
import {0}._streaming as streaming
from llmstream.integrations import {0} as ours
from llmstream.integrations.sdk.decoder import Decoder

ours.install()
event = ours._acceleration._parts.event


class SSEDecoder(Decoder):
    _data, _last_event_id = [], None  # tests look whether nothing is left in them

    def __init__(self):
        super().__init__(event, lambda decoder: None)


streaming.SSEDecoder = SSEDecoder
"""

SDK_EXPLAINED = {"test_event_missing_data[": NO_DATA, "test_multiple_events[": NO_DATA}
SDK_TESTS = ("pytest", "pytest-asyncio", "respx", "rich", "nest-asyncio", "dirty-equals", "inline-snapshot")

HTTPX_SSE_SWAP = """
import httpx_sse
from llmstream.integrations import httpx as ours

for name in set(httpx_sse.__all__) - {"__version__"}:
    setattr(httpx_sse, name, getattr(ours, name))
"""

SUITES = {
    "openai": Suite(
        "openai[aiohttp]==3.57.0",
        ("tests/test_streaming.py", "tests/test_sse_framing.py", "tests/test_stream_mode.py"),
        SDK_TESTS,
        SDK_SWAP.format("openai"),
        {
            **SDK_EXPLAINED,
            "test_ignored_lines_are_discarded_incrementally[": INSIDE,
            "test_cancellation_clears_partial_event_and_closes_response": INSIDE,
        },
    ),
    "openai-2": Suite(
        "openai[aiohttp]==2.54.0", ("tests/test_streaming.py",), SDK_TESTS, SDK_SWAP.format("openai"), SDK_EXPLAINED
    ),
    "anthropic": Suite(
        "anthropic[aiohttp]==2.14.0",
        ("tests/test_streaming.py",),
        (*SDK_TESTS, "http-snapshot[httpx]==0.1.9"),
        SDK_SWAP.format("anthropic"),
        SDK_EXPLAINED,
    ),
    "httpx-sse": Suite(
        "httpx-sse==0.4.3",
        # test_decoders.py is about private classes, which nothing stands in for
        tuple(f"tests/test_{part}.py" for part in ("api", "asgi", "event_source", "exceptions", "models")),
        ("httpx==0.28.1", "pytest", "pytest-asyncio", "sse-starlette", "starlette"),
        HTTPX_SSE_SWAP,
        {"test_iter_sse_id_retry": NO_DATA},
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(SUITES)} (default: all of them)")
    names = parser.parse_args().names or list(SUITES)
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}")
    return max([report(name, SUITES[name]) for name in names])


def report(name: str, suite: Suite) -> int:
    """Runs one suite both ways and prints what differs; 1 where something is not explained."""
    with tempfile.TemporaryDirectory() as scratch:
        python, root = prepare(suite, Path(scratch))
        stock = run(suite, python, root, Path(scratch) / "stock.xml", swapped=False)
        ours = run(suite, python, root, Path(scratch) / "ours.xml", swapped=True)
    print(f"\n{name}: {suite.distribution}, {' '.join(suite.files)}")
    print(f"  stock    {summary(stock)}")
    print(f"  swapped  {summary(ours)}")
    status = 0
    used: set[str] = set()
    for test in sorted({*stock, *ours}):
        before, after = stock.get(test, "absent"), ours.get(test, "absent")
        if before == after:
            continue
        start = next((start for start in suite.explained if test.startswith(start)), None)
        if start is None:
            status = 1
        else:
            used.add(start)
        print(f"  {test}: {before} -> {after}: {'NOT EXPLAINED' if start is None else suite.explained[start]}")
    for start in suite.explained:
        if start not in used:
            status = 1
            print(f"  {start}: no difference any more")
    if not any(result == "passed" for result in stock.values()):
        status = 1
        print("  no test of the library passed as it is")
    return status


def prepare(suite: Suite, scratch: Path) -> tuple[Path, Path]:
    """An environment with the library, and its unpacked source with the tests alone."""
    venv.create(scratch / "venv", with_pip=True)
    python = scratch / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", suite.distribution, *suite.requirements], check=True, stderr=subprocess.PIPE)
    name, _, version = suite.distribution.partition("==")
    plain = f"{name.partition('[')[0]}=={version}"
    subprocess.run(
        [*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", str(scratch), plain],
        check=True,
        stderr=subprocess.PIPE,
    )
    (archive,) = scratch.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(scratch / "sdist", filter="data")
    (root,) = (scratch / "sdist").iterdir()
    shutil.rmtree(root / "src", ignore_errors=True)  # the installed library is tested
    return python, root


def run(suite: Suite, python: Path, root: Path, results: Path, *, swapped: bool) -> dict[str, str]:
    """The result of each test, by its name."""
    swap = root / "peer_suites_swap.py"
    swap.write_text(suite.swap if swapped else "", encoding="utf-8")
    command = [str(python), "-m", "pytest", "-q", "-o", "addopts=", "-o", "filterwarnings=", "-p", swap.stem]
    paths = os.pathsep.join([str(root), str(SOURCE)])
    subprocess.run(
        [*command, f"--junitxml={results}", *suite.files],
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        check=False,  # a test that fails is one of the results
    )
    if not results.exists():
        raise SystemExit(f"the tests of {suite.distribution} did not start")
    found: dict[str, str] = {}
    for case in ET.parse(results).iter("testcase"):
        kinds = {child.tag for child in case}
        result = next((kind for kind in ("error", "failure", "skipped") if kind in kinds), "passed")
        found[str(case.get("name"))] = result
    return found


def summary(results: dict[str, str]) -> str:
    kinds = sorted(set(results.values()))
    return ", ".join(f"{list(results.values()).count(kind)} {kind}" for kind in kinds)


if __name__ == "__main__":
    sys.exit(main())
