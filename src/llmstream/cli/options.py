"""What all commands take, and the parser made from it."""

from __future__ import annotations

import argparse

from .. import Parser

__all__ = ["Unusable", "common", "make_parser"]

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


class Unusable(Exception):  # noqa: N818
    """Input or arguments that cannot be used; its words are the one line that the user sees."""


def common() -> argparse.ArgumentParser:
    """The arguments of every command."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        default="auto",
        help="format of the stream: auto (default), llm-stream, openai, anthropic, gemini, ...",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the output")
    parser.add_argument("--strict", action="store_true", help="stop at the first error")
    parser.add_argument(
        "--max-event-size",
        metavar="BYTES",
        type=_size,
        default=16 * 2**20,
        help="largest event that is read, also as 64k or 16M (default 16M)",
    )
    return parser


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
    try:
        return Parser(found.dialect, strict=found.strict, max_event_size=found.max_event_size)
    except (LookupError, TypeError, ValueError) as error:
        raise Unusable(str(error.args[0] if error.args else error)) from None
