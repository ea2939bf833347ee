"""What must hold of a release before it is published; the workflows run it, and so can a maintainer.

    release.py tag v1.2.3          the tag, the version and the changelog agree
    release.py sdist [-o dist]     a source distribution that is the same for everyone who makes it from the same commit
    release.py check FILE...       source distributions and wheels: what is in them, and no more

Exit status 1 with one line a fault.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST_WHEEL = 400 * 1024
# Of a wheel: the package and what describes it, without what it was built from.
IN_A_WHEEL = re.compile(r"llmstream/(.*\.(py|sse|so|pyd)|py\.typed)|llmstream_wire-[^/]*\.dist-info/.*")
EXTENSION = re.compile(r"llmstream/(\w+)\.[^/]*(so|pyd)")
# Of the tree: what a source distribution leaves out, and what it has beside the tree.
NOT_IN_AN_SDIST = re.compile(r"\.git(attributes|modules)$")
MADE_BY_SETUPTOOLS = re.compile(r"PKG-INFO|setup\.cfg|src/llmstream_wire\.egg-info/.*")


def version() -> str:
    text = (ROOT / "src" / "llmstream" / "_version.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def tag_faults(tag: str, changelog: str) -> Iterator[str]:
    """What is wrong with releasing this version under that tag, with this changelog."""
    if tag != f"v{version()}":
        yield f"the tag is {tag}, the version {version()}"
    headings = re.findall(r"^## \[(.+?)\](.*)$", changelog, re.MULTILINE)
    released = [heading for heading in headings if heading[0] != "Unreleased"]
    if not released or released[0][0] != version():
        yield f"the changelog's latest version is not {version()}"
    elif not re.fullmatch(r" - \d{4}-\d\d-\d\d", released[0][1]):
        yield f"the changelog gives {version()} no date"
    unreleased = re.search(r"^## \[Unreleased\]$(.*?)(^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if unreleased and unreleased[1].strip():
        yield "the changelog has entries that are not released"


def tracked() -> set[str]:
    """The files of the tree that belong to the project."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return {name for name in listed if name and (ROOT / name).is_file()}


def sdist_faults(names: Iterable[str], expected: Iterable[str]) -> Iterator[str]:
    found = {name for name in names if not MADE_BY_SETUPTOOLS.fullmatch(name)}
    wanted = {name for name in expected if not NOT_IN_AN_SDIST.search(name)}
    yield from (f"{name} is missing" for name in sorted(wanted - found))
    yield from (f"{name} does not belong there" for name in sorted(found - wanted))


def wheel_faults(wheel: zipfile.ZipFile, *, pure: bool) -> Iterator[str]:
    names = [info.filename for info in wheel.infolist() if not info.is_dir()]
    yield from (f"{name} does not belong there" for name in names if not IN_A_WHEEL.fullmatch(name))
    wanted = {f"llmstream/{path.relative_to(ROOT / 'src/llmstream').as_posix()}" for path in package_files()}
    yield from (f"{name} is missing" for name in sorted(wanted - set(names)))
    extensions = {found[1]: name for name in names if (found := EXTENSION.fullmatch(name))}
    built = set() if pure else {path.stem for path in (ROOT / "src" / "llmstream").glob("*.pyx")}
    if set(extensions) != built:
        yield f"the extensions are {sorted(extensions)}, not {sorted(built)}"
    for name in extensions.values():
        sections = elf_sections(wheel.read(name))
        yield from (f"{name} has {section}" for section in sections if section.startswith((".symtab", ".debug")))


def package_files() -> list[Path]:
    package = ROOT / "src" / "llmstream"
    return [path for pattern in ("*.py", "*.sse", "py.typed") for path in sorted(package.rglob(pattern))]


def elf_sections(data: bytes) -> list[str]:
    """The names of the sections of an ELF file of either size and byte order; none of another file."""
    if data[:4] != b"\x7fELF":
        return []
    order, wide = "<" if data[5] == 1 else ">", data[4] == 2
    (start,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", data, 40 if wide else 32)
    size, count, names = struct.unpack_from(f"{order}3H", data, 58 if wide else 46)
    sections = []
    for index in range(count):
        at = start + index * size
        (name,) = struct.unpack_from(f"{order}I", data, at)
        (offset,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", data, at + (24 if wide else 16))
        sections.append((name, offset))
    table = sections[names][1]
    return [data[table + name : data.index(b"\0", table + name)].decode() for name, _ in sections]


def file_faults(path: Path) -> Iterator[str]:
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            names = [member.name.partition("/")[2] for member in archive if member.isfile()]
        yield from sdist_faults(names, tracked())
        return
    if path.stat().st_size > LARGEST_WHEEL:
        yield f"{path.stat().st_size} bytes, more than {LARGEST_WHEEL}"
    with zipfile.ZipFile(path) as wheel:
        yield from wheel_faults(wheel, pure=path.name.endswith("-none-any.whl"))


def commit_time() -> int:
    command = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)


def normal(archive: bytes, moment: int) -> bytes:
    """The same archive without what tells when, where and by whom it was made."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as source,
        gzip.GzipFile(fileobj=out, mode="wb", filename="", mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda found: found.name):
            executable = bool(member.mode & 0o100)
            member.mtime, member.mode = moment, 0o755 if executable or member.isdir() else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            target.addfile(member, source.extractfile(member) if member.isfile() else None)
    return out.getvalue()


def build_sdist(folder: Path) -> Path:
    moment = int(os.environ.get("SOURCE_DATE_EPOCH") or commit_time())
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        # Nothing is compiled for it: the extensions are files among others.
        environment = {**os.environ, "LLMSTREAM_EXTENSIONS": "skip"}
        command = [sys.executable, "-m", "build", "--sdist", "-o", scratch, str(ROOT)]
        subprocess.run(command, env=environment, stdout=sys.stderr, check=True)
        (made,) = Path(scratch).iterdir()
        result = folder / made.name
        result.write_bytes(normal(made.read_bytes(), moment))
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("tag").add_argument("tag")
    commands.add_parser("sdist").add_argument("-o", "--output", type=Path, default=Path("dist"))
    commands.add_parser("check").add_argument("files", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    if options.command == "sdist":
        print(build_sdist(options.output))
        return 0
    if options.command == "tag":
        faults = list(tag_faults(options.tag, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    else:
        faults = [f"{path.name}: {fault}" for path in options.files for fault in file_faults(path)]
    print("\n".join(faults) or "as it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
