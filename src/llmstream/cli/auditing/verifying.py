"""Are records as they were written?"""

from __future__ import annotations

from importlib import import_module

from ...audit import Verifier
from ..options import Unusable
from ..terminal import counted, say, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["run"]

MAX_LINE = 2**28
"""Bytes of one line: a record with its content has fewer."""


def run(names: list[str], key: bytes | None, seal: bytes | None) -> int:
    """Verifies each file and says what was found; returns the exit status, the worst of all."""
    worst = 0
    for name in names:
        verifier = Verifier(key)
        try:
            _read(name, verifier)
            verifier.close(seal)
        except Unusable as error:
            say(str(error))
            worst = 2
        except ValueError as error:
            say(f"{name}: {error}")
            worst = max(worst, 1)
        else:
            records, last = counted(verifier.count, "record"), (verifier.seal or b"").hex()
            they = "it was" if verifier.count == 1 else "they were"
            write(f"{name}: {records} as {they} written, sealed: {last}\n")
    return worst


def _read(name: str, verifier: Verifier) -> None:
    if name == "-":
        raise Unusable("standard input cannot be verified: --verify takes files")
    try:
        file: Any = open(name, "rb")  # noqa: SIM115 (closed below)
    except (OSError, ValueError) as error:
        raise Unusable(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    with file:
        if file.peek(4).startswith(b"PAR1"):
            _read_parquet(name, file, verifier)
            return
        while True:
            try:
                text = file.readline(MAX_LINE)
            except OSError as error:
                raise Unusable(f"{name}: {error.strerror}") from None
            if not text:
                return
            verifier.add_line(text)


def _read_parquet(name: str, file: Any, verifier: Verifier) -> None:
    try:
        read: Any = import_module("llmstream.integrations.arrow").read_parquet
    except ModuleNotFoundError:
        raise Unusable(f"{name}: Parquet needs pyarrow: pip install 'llmstream-wire[arrow]'") from None
    for record, link in read(file):
        verifier.add(record, link)
