"""What a release holds: the wheels that are built, the files of the source distribution and of a wheel, one version."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import os
import re
import struct
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PARSER_TESTS = ROOT / "tools" / "platforms" / "parser_tests.txt"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

PYTHONS = ("cp311", "cp312", "cp313", "cp314", "cp314t", "cp315", "cp315t")
LINUX = ("x86_64", "i686", "aarch64", "ppc64le", "s390x", "armv7l", "riscv64")
WHEELS = {
    "linux": {f"{python}-{libc}_{arch}" for python, libc, arch in product(PYTHONS, ("manylinux", "musllinux"), LINUX)},
    "macos": {f"{python}-macosx_{arch}" for python, arch in product(PYTHONS, ("x86_64", "arm64"))},
    "windows": {f"{python}-{arch}" for python, arch in product(PYTHONS, ("win32", "win_amd64", "win_arm64"))},
    "pyodide": {f"{python}-pyodide_wasm32" for python in ("cp313", "cp314", "cp315")},
    "android": set(),
    "ios": set(),
}

needs_source = pytest.mark.skipif(not (ROOT / "setup.py").is_file(), reason="the tests of a wheel have no source")


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CIBW_", "LLMSTREAM_"))}
    result = subprocess.run(
        command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result


@needs_source
@pytest.mark.parametrize("platform", WHEELS)
def test_wheels(platform):
    """The matrix, as the tool that builds them prints it."""
    if importlib.util.find_spec("cibuildwheel") is None:
        pytest.skip("cibuildwheel is not installed")
    result = run(sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", platform, ".")
    assert sorted(result.stdout.split()) == sorted(WHEELS[platform])


@pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not there")
def test_workflows_use_the_tools_that_are_pinned_here():
    pinned = next(
        line for line in PROJECT["project"]["optional-dependencies"]["dev"] if line.startswith("cibuildwheel")
    )
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    assert set(re.findall(r"cibuildwheel==[\d.]+", text)) == {pinned}


@pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not there")
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash(path):
    text = path.read_text(encoding="utf-8")
    for action in re.findall(r"uses: *(\S.*)", text):
        assert re.fullmatch(r"\./\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)


@pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not there")
def test_one_action_has_one_version():
    versions: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for name, version in re.findall(r"uses: *(\S+)@(\S+)", path.read_text(encoding="utf-8")):
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


@pytest.mark.skipif(not PARSER_TESTS.is_file(), reason="the list is not there")
def test_the_list_of_the_tests_of_the_parser():
    """What the scripts of tools/platforms run on machines that are too slow for all tests."""
    listed = PARSER_TESTS.read_text(encoding="utf-8").splitlines()
    assert [name for name in listed if not (ROOT / name).is_file()] == []
    assert len(set(listed)) == len(listed)


def test_the_version_stands_in_one_place():
    assert "version" in PROJECT["project"]["dynamic"]
    version = importlib.metadata.version("llmstream-wire")
    beside = [ROOT / "pyproject.toml", ROOT / "setup.py", ROOT / "README.md"]
    beside += [path for pattern in ("*.py", "*.pyx", "*.pxi") for path in (ROOT / "src").rglob(pattern)]
    stated = [path.name for path in beside if path.is_file() and f'"{version}"' in path.read_text(encoding="utf-8")]
    assert stated in ([], ["_version.py"])  # none: the tests of a wheel have no source


@pytest.fixture
def release():
    """tools/release.py as a module."""
    if not (ROOT / "src" / "llmstream" / "_version.py").is_file():
        pytest.skip("the tests of a wheel have no source")
    found = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-11-30\n\n### Added\n\n- A line.\n"


def test_a_tag_that_agrees(release):
    assert list(release.tag_faults(f"v{release.version()}", CHANGELOG.format(version=release.version()))) == []


@pytest.mark.parametrize(
    ("tag", "changelog", "faults"),
    [
        ("v9.9.9", CHANGELOG, ["the tag is v9.9.9, the version {version}"]),
        ("{version}", CHANGELOG, ["the tag is {version}, the version {version}"]),
        ("v{version}", CHANGELOG.replace("{version}", "9.9.9"), ["the changelog's latest version is not {version}"]),
        ("v{version}", "", ["the changelog's latest version is not {version}"]),
        ("v{version}", CHANGELOG.replace(" - 2026-11-30", ""), ["the changelog gives {version} no date"]),
        (
            "v{version}",
            CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n"),
            ["the changelog has entries that are not released"],
        ),
    ],
)
def test_a_tag_that_does_not(release, tag, changelog, faults):
    version = release.version()
    found = list(release.tag_faults(tag.format(version=version), changelog.format(version=version)))
    assert found == [fault.format(version=version) for fault in faults]


def test_faults_of_an_sdist(release):
    names = ["PKG-INFO", "setup.cfg", "src/llmstream_wire.egg-info/PKG-INFO", "src/llmstream/a.py", "src/llmstream/a.c"]
    assert list(release.sdist_faults(names, ["src/llmstream/a.py", "src/llmstream/a.pyx", ".gitattributes"])) == [
        "src/llmstream/a.pyx is missing",
        "src/llmstream/a.c does not belong there",
    ]


def wheel(*names: str, **data: bytes) -> zipfile.ZipFile:
    made = zipfile.ZipFile(io.BytesIO(), "w")
    for name in names:
        made.writestr(name, data.get(Path(name).name.partition(".")[0], b""))
    return made


def elf(*sections: str, order: str = "<", wide: bool = True) -> bytes:
    """An ELF file that holds these sections and nothing in them."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in sections)
    word, size = ("Q", 64) if wide else ("I", 40)
    at = 64 if wide else 52
    fields = [("I", 2), (word, 0), (word, 0), (word, at + len(names)), ("I", 0)]
    fields += [("H", 0), ("H", 0), ("H", 0), ("H", size), ("H", len(sections) + 1), ("H", 0)]
    header = (
        b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2]) + bytes(10) + struct.pack(f"{order}2H", 3, 0)
    )
    header += b"".join(struct.pack(order + kind, value) for kind, value in fields)
    table = b""
    for number, name in enumerate(["", *sections]):
        place = names.index(b"\0" + name.encode() + b"\0") + 1 if name else 0
        entry = struct.pack(f"{order}2I", place, 3 if number == 0 else 1) + struct.pack(order + 3 * word, 0, 0, at)
        table += entry.ljust(size, b"\0")
    return header.ljust(at, b"\0") + names + table


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("wide", [True, False])
def test_sections_of_an_elf_file(release, order, wide):
    assert release.elf_sections(elf(".text", ".symtab", order=order, wide=wide)) == ["", ".text", ".symtab"]


@pytest.mark.parametrize("data", [b"", b"MZ", b"\xcf\xfa\xed\xfe"])
def test_other_files_have_no_sections(release, data):
    assert release.elf_sections(data) == []


SUFFIX = "cpython-311-x86_64-linux-gnu.so"


def test_faults_of_a_wheel(release):
    whole = [f"llmstream/{path.relative_to(ROOT / 'src/llmstream').as_posix()}" for path in release.package_files()]
    whole.append("llmstream_wire-1.0.dist-info/METADATA")
    built = [f"llmstream/_parser.{SUFFIX}", f"llmstream/_writer.{SUFFIX}"]
    stripped = {"_parser": elf(".text"), "_writer": elf(".text")}
    faults = release.wheel_faults
    assert list(faults(wheel(*whole), pure=True)) == []
    assert list(faults(wheel(*whole, *built, **stripped), pure=False)) == []
    assert list(faults(wheel(*whole, *built, **stripped), pure=True)) == [
        "the extensions are ['_parser', '_writer'], not []"
    ]
    assert list(faults(wheel(*whole, built[0], **stripped), pure=False)) == [
        "the extensions are ['_parser'], not ['_parser', '_writer']"
    ]
    assert list(faults(wheel(*whole, *built, _parser=elf(".debug_info"), _writer=elf(".symtab")), pure=False)) == [
        f"{built[0]} has .debug_info",
        f"{built[1]} has .symtab",
    ]
    assert list(faults(wheel(*whole, "llmstream/_parser.c", "llmstream/_scan.h", "tests/a.py"), pure=True)) == [
        "llmstream/_parser.c does not belong there",
        "llmstream/_scan.h does not belong there",
        "tests/a.py does not belong there",
    ]
    assert list(faults(wheel(*[name for name in whole if not name.endswith("py.typed")]), pure=True)) == [
        "llmstream/py.typed is missing"
    ]


def archive(*names: str, owner: str, moment: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.uid, member.mode = 4, moment + 0.5, owner, moment, 0o600
            made.addfile(member, io.BytesIO(b"text"))
    return out.getvalue()


def test_a_source_distribution_is_the_same_for_everyone(release):
    first = release.normal(archive("p/b", "p/a", owner="one", moment=1), 1_700_000_000)
    second = release.normal(archive("p/a", "p/b", owner="two", moment=2), 1_700_000_000)
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as made:
        assert [(member.name, member.mtime, member.mode, member.uname) for member in made] == [
            ("p/a", 1_700_000_000, 0o644, ""),
            ("p/b", 1_700_000_000, 0o644, ""),
        ]
