"""The inputs of a command: files and standard input, read as their bytes arrive."""

from __future__ import annotations

import os
import stat
import sys

from .options import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

__all__ = ["Input"]

READ_SIZE = 64 * 1024

COMPRESSED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"} | {
    b"BZh%d1AY" % level: "bzip2" for level in range(1, 10)
}
"""How compressed data begins, which no stream does."""


class Input:
    """One file, or standard input for "-": a context manager, and an iterable of chunks.

    ``size`` in bytes is None where it cannot be known, ``position`` is what was read. Raises
    Unusable, in one line, for whatever cannot be opened or read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.label = "standard input" if name == "-" else name
        self.position = 0
        self.size: int | None = None
        self._is_ours = name != "-"
        self._file: Any = self._open()

    def _open(self) -> Any:
        if not self._is_ours:
            # What is no file (in a test, a notebook) may have no bytes below its text.
            file = getattr(sys.stdin, "buffer", None)
            if file is None:
                raise Unusable("standard input is closed")
            return file
        try:
            # Without a buffer read() gives what is there, of a pipe too.
            file = open(self.name, "rb", buffering=0)  # noqa: SIM115
            found = os.fstat(file.fileno())
        except (OSError, ValueError) as error:
            raise Unusable(f"{self.label}: {getattr(error, 'strerror', None) or error}") from None
        if stat.S_ISREG(found.st_mode):
            self.size = found.st_size
        return file

    def __iter__(self) -> Iterator[bytes]:
        read = self._file.read if self._is_ours else self._file.read1
        while True:
            try:
                chunk = read(READ_SIZE)
            except (OSError, ValueError) as error:
                words = getattr(error, "strerror", None) or error
                raise Unusable(f"{self.label}: {words}") from None
            if not chunk:
                return
            if not self.position:
                self._refuse_compressed(chunk)
            self.position += len(chunk)
            yield chunk

    def _refuse_compressed(self, chunk: bytes) -> None:
        for magic, name in COMPRESSED.items():
            if chunk.startswith(magic):
                raise Unusable(f"{self.label}: it is compressed by {name}: decompress it first (llmstream audit does)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        if self._is_ours:
            self._file.close()
