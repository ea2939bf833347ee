"""Standard output and error: what a terminal may see of a stream, and one line for what went
wrong."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys

from .options import Unusable

__all__ = ["colourful", "counted", "harmless", "prepare", "say", "visible", "width", "write"]

# A stream could move the cursor, set the title or recolour the screen of whoever reads it.
_CONTROLS = (
    {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)
_ONE_LINE = _CONTROLS | {0x09: 0x20, 0x0A: 0x20}


def prepare() -> None:
    """Makes standard output and error writable, whatever they can encode. Raises Unusable where there is no output."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        raise Unusable("standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def visible(text: str, limit: int | None = None) -> str:
    """``text`` on one line without control characters, cut at ``limit``."""
    shown = text.translate(_ONE_LINE)
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1] + "\u2026"


def harmless(text: str) -> str:
    """Text of a stream as standard output may have it: a terminal gets no control characters."""
    return text.translate(_CONTROLS) if sys.stdout.isatty() else text


def write(text: str) -> None:
    """Puts text on standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def say(message: str) -> None:
    """One line on standard error."""
    with contextlib.suppress(OSError, ValueError):  # nobody is there to be told
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.stderr.write(f"llmstream: {visible(message, 500)}\n")
        sys.stderr.flush()


def counted(number: int, noun: str) -> str:
    """A number of things: "1 record", "2 records"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def width() -> int | None:
    """Columns of the terminal; None where output is not one and lines may be as long as they are."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def colourful() -> bool:
    """Whether output is a terminal that wants colours (NO_COLOR)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
