"""Records as JSON Lines or Parquet, chained; a file appears under its name once it is whole."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module

from ...audit import Chain
from ...audit.chain import line
from ..options import Unusable
from .inputs import part_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from ...audit import Link
    from .work import Result

__all__ = ["FORMATS", "Output", "format_of", "opened"]

FORMATS = ("jsonl", "parquet")


def format_of(name: str) -> str:
    """What the name of an output says; raises Unusable where it says nothing."""
    ending = os.path.splitext(name)[1].lower()
    if name == "-" or ending in (".jsonl", ".ndjson"):
        return "jsonl"
    if ending == ".parquet":
        return "parquet"
    raise Unusable(f"{name}: name it .jsonl or .parquet, or say --format")


class Output:
    """Takes results in their order. One is held back: only the end shows which record is the last."""

    def __init__(self, file: Any, key: bytes | None) -> None:
        self._file = file
        self._chain = Chain(key)
        self._held: Result | None = None
        self.count = 0

    @property
    def seal(self) -> bytes:
        """Of all records, at the end."""
        return self._chain.seal()

    def write(self, result: Result) -> None:
        """Takes the next records."""
        held, self._held = self._held, result
        self.count += result.count
        if held is not None:
            self._put(held, last=False)

    def end(self) -> None:
        """Seals the last record."""
        if self._held is not None:
            self._put(self._held, last=True)
            self._held = None

    def close(self) -> None:
        """Lets the file go, wherever it stands. Idempotent."""

    def _put(self, result: Result, *, last: bool) -> None:
        add, final = self._chain.add, len(result.digests) - 1
        links = [add(digest, last=last and at == final) for at, digest in enumerate(result.digests)]
        self._append(result, links)

    def _append(self, result: Result, links: list[Link]) -> None:
        self._file.write(b"".join([line(record, link) for record, link in zip(result.lines, links, strict=True)]))


class _Parquet(Output):
    def __init__(self, file: Any, key: bytes | None) -> None:
        super().__init__(file, key)
        self._arrow: Any = import_module("llmstream.integrations.arrow")
        self._ipc: Any = import_module("pyarrow.ipc")
        self._parquet = self._arrow.ParquetAudit(file)

    def end(self) -> None:
        super().end()
        self._parquet.close()

    def close(self) -> None:
        self._parquet.close()

    def _append(self, result: Result, links: list[Link]) -> None:
        batch = self._ipc.read_record_batch(result.batch, self._arrow.AUDIT_SCHEMA)
        self._parquet.write(self._arrow.linked(batch, links))


@contextlib.contextmanager
def opened(name: str, form: str, key: bytes | None) -> Generator[Output]:
    """The output of this name, ``-`` for standard output. Raises Unusable where it cannot be had."""
    if form == "parquet":
        try:
            import_module("pyarrow.parquet")
        except ModuleNotFoundError:
            raise Unusable("Parquet needs pyarrow: pip install 'llmstream-wire[arrow]'") from None
    make = _Parquet if form == "parquet" else Output
    if name == "-":
        if sys.stdout.isatty() and form == "parquet":
            raise Unusable("Parquet is nothing for a terminal: -o out.parquet")
        output = make(sys.stdout.buffer, key)
        try:
            yield output
        finally:
            output.close()
        return
    special = os.path.exists(name) and not os.path.isfile(name)
    part = name if special else part_of(name)
    try:
        file = open(part, "wb")  # noqa: SIM115 (closed below)
    except (OSError, ValueError) as error:
        raise Unusable(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    try:
        with file:
            output = make(file, key)
            try:
                yield output
            finally:
                output.close()
        if not special:
            os.replace(part, name)
    except BaseException:
        if not special:
            with contextlib.suppress(OSError):
                os.unlink(part)
        raise
