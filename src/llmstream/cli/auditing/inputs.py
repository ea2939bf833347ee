"""Files, folders and globs as paths in a fixed order; and the bytes of a file, decompressed where it is compressed."""

from __future__ import annotations

import errno
import glob
import os
import sys
from importlib import import_module

from ...audit.reading import CHUNK_SIZE
from ..options import Unusable
from ..terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["Paths", "content"]


class Paths:
    """An iterable of the paths that the arguments stand for: a file itself, every file below a folder, what a glob
    finds. They are found as they are asked for, so that any number of them takes the same memory.

    ``missing`` counts arguments for which there is nothing. ``size`` is that of all files in bytes, told only where
    somebody looks at a progress bar; ``position`` is set by the reader.
    """

    def __init__(self, arguments: list[str], output: str) -> None:
        self._arguments = arguments
        # What is being written is no input.
        self._left_out = {os.path.realpath(name) for name in (output, part_of(output))}
        self.label = "reading"
        self.missing = 0
        self.position = 0
        self.size: int | None = sum(map(size_of, self._found())) if sys.stderr.isatty() else None

    def __iter__(self) -> Iterator[str]:
        for argument in self._arguments:
            paths = self._of(argument)
            first = next(paths, None)
            if first is None:
                self.missing += 1
                say(f"{argument}: there is no such file, or none in it")
                continue
            yield first
            yield from paths

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
            for name in sorted(names):
                path = os.path.join(parent, name)
                if self._is_input(path):
                    yield path

    def _unread(self, error: OSError) -> None:
        self.missing += 1
        say(f"{error.filename}: {error.strerror}")

    def _is_input(self, path: str) -> bool:
        return os.path.isfile(path) and os.path.realpath(path) not in self._left_out


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
            read = getattr(plain, "read1", plain.read)  # which hands out what comes before damage
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
    return arrow.CompressedInputStream(arrow.PythonFile(file, "r"), "zstd")


_MAGIC: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": _gzip,
    b"BZh": _bz2,
    b"\xfd7zXZ\0": _xz,
    b"\x28\xb5\x2f\xfd": _zstd,
}
