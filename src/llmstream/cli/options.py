"""What several commands take, and the parser made from it."""

from __future__ import annotations

import argparse

from .. import Parser
from .._registry import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Unusable", "add_common", "make_parser"]

DEFAULT_SIZE = 16 * 2**20
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


class Unusable(Exception):  # noqa: N818
    """Input or arguments that cannot be used; its words are the one line that the user sees."""


def add_common(parser: argparse.ArgumentParser, wanted: Sequence[str]) -> None:
    """Adds the arguments that a command takes of those that several take: ``COMMON`` of its module."""
    for name in wanted:
        _COMMON[name](parser)


def _dialect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        default="auto",
        help="format of the stream: auto (default), llm-stream, openai, anthropic, gemini, ...",
    )


def _format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the output")


def _strict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strict", action="store_true", help="stop at the first error")


def _max_event_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-event-size",
        metavar="BYTES",
        type=_size,
        default=DEFAULT_SIZE,
        help="largest event that is read, also as 64k or 16M (default 16M)",
    )


_COMMON: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "dialect": _dialect,
    "format": _format,
    "strict": _strict,
    "max_event_size": _max_event_size,
}


def _size(text: str) -> int:
    plain = text.strip().lower().removesuffix("b").removesuffix("i")
    digits = plain.rstrip("kmg")
    unit = plain[len(digits) :]
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 15 or unit not in UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes")
    size = int(digits) * UNITS[unit]
    if not size:
        raise argparse.ArgumentTypeError("an event needs at least one byte")
    return size


def make_parser(found: argparse.Namespace) -> Parser:
    """The parser that the arguments ask for; raises Unusable where there is none."""
    if found.dialect not in names():
        raise Unusable(f"unknown dialect {found.dialect!r}{_suggestion(found.dialect)}")
    try:
        return Parser(found.dialect, strict=found.strict, max_event_size=found.max_event_size)
    except (LookupError, TypeError, ValueError) as error:
        raise Unusable(str(error.args[0] if error.args else error)) from None


def _suggestion(name: str) -> str:
    from difflib import get_close_matches  # slow to import, and only needed here

    near = get_close_matches(name.lower()[:40], names())
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; known are auto, llm-stream, openai, anthropic, gemini and {len(names()) - 5} more (docs: dialects)"
