"""Files, folders and globs as paths in a fixed order; and the bytes of a file, decompressed where it is compressed."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import stat
import sys
from importlib import import_module

from ...audit.reading import CHUNK_SIZE
from ..options import Unusable
from ..terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self

__all__ = ["Paths", "content"]

RECORD = b'{"stream_id":'
"""How the line of a record begins."""

PART = re.compile(r"(.+)\.[0-9]+\.part", re.DOTALL)
"""The name of an output while it is being written (``part_of``)."""


class Paths:
    """An iterable of the paths that the arguments stand for: a file itself, every file below a folder, what a glob
    finds. They are found as they are asked for, so that any number of them takes the same memory.

    ``missing`` counts arguments for which there is nothing. ``size`` is that of all files in bytes, told only where
    somebody looks at a progress bar; ``position`` is set by the reader.

    An earlier output, the one that is being written, and what a run that was killed has left of one are left out of
    folders and globs. So are links to nothing or to a folder, and devices and pipes; one line tells of these.

    Raises Unusable where the output would replace an input: one of the arguments, one of ``others``, or a file found
    that no earlier run of this command wrote. It compares files, not names, of which a file may have several.
    """

    def __init__(self, arguments: list[str], output: str, others: Iterable[str] = ()) -> None:
        self._arguments = arguments
        self._name = output
        self._is_read = False
        self._output = _output_file(output)
        self._place = os.path.split(os.path.realpath(part_of(output)))[0]
        self.label = "reading"
        self.missing = 0
        self.position = 0
        self._left_out: list[str] = []
        self._left_out_count = 0
        self._refuse_to_replace(others, by_name=output != "-")
        self.size: int | None = sum(map(size_of, self._found())) if sys.stderr.isatty() else None

    def __iter__(self) -> Iterator[str]:
        self._is_read = True
        self.missing = self._left_out_count = 0
        self._left_out.clear()
        for argument in self._arguments:
            paths = self._of(argument)
            first = next(paths, None)
            if first is None:
                self.missing += 1
                say(f"{argument}: there is no such file, or none in it")
                continue
            yield first
            yield from paths
        if self._left_out_count:
            which = "links to nothing or to a folder, or no files"
            say(f"{self._left_out_count} left out ({which}), the first of them {self._left_out[0]}")

    def _refuse_to_replace(self, others: Iterable[str], *, by_name: bool) -> None:
        if self._output is None:
            return
        for path in (*self._arguments, *others):
            if _file(path) == self._output:
                raise Unusable(f"{path}: this input is also the output")
        # What standard output is sent to, the shell has opened before: it holds nothing that could be lost.
        found, self._output = self._output, None
        if by_name and not _is_output(self._name):
            for path in self._found():
                if _file(path) == found:
                    raise Unusable(f"{path}: this input is also the output")
        self._output = found

    def _found(self) -> Iterator[str]:
        for argument in self._arguments:
            yield from self._of(argument)

    def _of(self, argument: str) -> Iterator[str]:
        if argument == "-":
            raise Unusable("standard input is one stream: llmstream stats reads it")
        if os.path.isdir(argument):
            yield from self._below(argument)
        elif os.path.lexists(argument):
            yield argument  # what it is, reading it will tell
        else:
            for path in sorted(glob.iglob(argument, recursive=True, include_hidden=True)):
                if self._is_input(path):
                    yield path

    def _below(self, folder: str) -> Iterator[str]:
        for parent, folders, names in os.walk(folder, onerror=self._unread):
            folders.sort()
            for name in folders:
                if os.path.islink(path := os.path.join(parent, name)):
                    self._leave_out(path)
            for name in sorted(names):
                path = os.path.join(parent, name)
                if self._is_input(path):
                    yield path

    def _unread(self, error: OSError) -> None:
        self.missing += 1
        if self._is_read:  # not where this only looks ahead
            say(f"{error.filename}: {error.strerror}")

    def _is_input(self, path: str) -> bool:
        found = _file(path)
        if found is None and not os.path.isdir(path):
            self._leave_out(path)
        return found is not None and found != self._output and not self._is_part(path)

    def _leave_out(self, path: str) -> None:
        self._left_out_count += 1
        if not self._left_out:
            self._left_out.append(path)

    def _is_part(self, path: str) -> bool:
        """Whether it is a part of an output: of this one by its name, of any other by what is in it, too."""
        named = PART.fullmatch(os.path.basename(path))
        if named is None:
            return False
        place = os.path.split(os.path.realpath(path))[0]
        return (named[1] == os.path.basename(self._name) and place == self._place) or _is_output(path)


def _file(path: str) -> tuple[int, int] | None:
    """What a regular file is by any of its names; None for everything else."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _output_file(output: str) -> tuple[int, int] | None:
    if output != "-":
        return _file(output)
    try:
        found = os.fstat(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # no file behind it
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _is_output(path: str) -> bool:
    """Whether a file is one that this command writes: records as lines or as Parquet; an empty one is nobody's."""
    try:
        with open(path, "rb") as file:
            head = file.read(len(RECORD))
    except OSError:
        return False
    return not head or head == RECORD or head.startswith(b"PAR1")


def part_of(output: str) -> str:
    """The name of an output while it is being written."""
    return f"{output}.{os.getpid()}.part"


def size_of(path: str) -> int:
    """Bytes of a file on disk, 0 where that cannot be known."""
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def content(path: str) -> Iterator[bytes]:
    """The bytes of a file, in chunks. Raises OSError, with words in ``strerror``."""
    with open(path, "rb") as file:
        head = file.peek(6)
        opener = next((opener for magic, opener in _MAGIC.items() if head.startswith(magic)), None)
        if opener is None:
            while chunk := file.read(CHUNK_SIZE):
                yield chunk
        else:
            yield from _decompressed(opener, file)


def _decompressed(opener: Callable[[Any], Any], file: Any) -> Iterator[bytes]:
    try:
        with opener(file) as plain:
            read = plain.read1  # which hands out what comes before damage
            while chunk := read(CHUNK_SIZE):
                yield chunk
        return
    except EOFError:
        words = "the compressed data ends early"
    except Unusable as error:
        words = str(error)
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        words = "the compressed data is damaged"
    raise OSError(errno.EIO, words)


def _gzip(file: Any) -> Any:
    return import_module("gzip").GzipFile(fileobj=file)


def _bz2(file: Any) -> Any:
    return import_module("bz2").BZ2File(file)


def _xz(file: Any) -> Any:
    return import_module("lzma").LZMAFile(file)


def _zstd(file: Any) -> Any:
    if sys.version_info >= (3, 14):
        return import_module("compression.zstd").ZstdFile(file)
    try:
        arrow: Any = import_module("pyarrow")
    except ModuleNotFoundError:
        raise Unusable("it is compressed by zstd: pip install 'llmstream-wire[arrow]'") from None
    return _ArrowZstd(lambda: arrow.CompressedInputStream(arrow.PythonFile(file, "r"), "zstd"), file)


class _ArrowZstd:
    """Hands out what comes before damage, as the others do: Arrow drops what it has when it cannot have all."""

    def __init__(self, opener: Callable[[], Any], file: Any) -> None:
        self._opener = opener
        self._file = file
        self._plain = opener()
        self._given = 0
        self._fault: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        """The file is closed by who opened it."""

    def read1(self, size: int) -> bytes:
        """At most so many bytes, none at the end."""
        if self._fault is not None:
            raise self._fault
        try:
            data: bytes = self._plain.read(size)
        except Exception as fault:
            self._fault = fault
            data = self._before_damage(size)
            if not data:
                raise
        self._given += len(data)
        return data

    def _before_damage(self, size: int) -> bytes:
        """What there still is, byte by byte: only a request for more than that fails."""
        found = bytearray()
        with contextlib.suppress(Exception):
            self._file.seek(0)
            plain = self._opener()
            left = self._given
            while left:
                left -= len(plain.read(min(left, CHUNK_SIZE)))
            while len(found) < size and (byte := plain.read(1)):
                found += byte
        return bytes(found)


_MAGIC: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": _gzip,
    b"BZh": _bz2,
    b"\xfd7zXZ\0": _xz,
    b"\x28\xb5\x2f\xfd": _zstd,
}
