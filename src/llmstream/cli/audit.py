"""Write one record for each stream in files and folders: what was generated, which model, how many tokens, digests. Bad
streams stop nothing: what is wrong with them stands in their records. Records are chained by hash and the last one is
sealed, so that --verify finds any that was removed, changed, reordered or cut."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from hashlib import sha256
from typing import TYPE_CHECKING

from .auditing import outputs, verifying
from .auditing.endings import Ended, endings_raised
from .auditing.inputs import Paths
from .auditing.pool import Result, read_all
from .auditing.work import CONTEXT, Job, find_redaction
from .options import Unusable, make_parser
from .progress import Progress
from .terminal import counted, say

if TYPE_CHECKING:
    from collections.abc import Iterable

HELP = "write a sealed record for each of many streams, or verify such records"
COMMON = ("dialect", "max_event_size")

MAX_TOLD = 20
"""Inputs that could not be read: so many are told one by one."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders and globs; compressed or not")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        help="out.jsonl or out.parquet; default: lines on standard output",
    )
    parser.add_argument("--format", choices=outputs.FORMATS, help="where the output's name does not tell")
    parser.add_argument("--hash-only", action="store_true", help="digests and lengths instead of content")
    parser.add_argument("--no-wire-digest", action="store_true", help="no SHA-256 of all bytes: takes half the time")
    parser.add_argument(
        "--redact", metavar="MODULE:FUNCTION", help="called with each record, returns the one to be kept"
    )
    parser.add_argument(
        "--context",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help=f"what is known of all these streams: {', '.join(CONTEXT)}",
    )
    parser.add_argument("--jobs", metavar="N", type=_number, help="processes; default: one for each core")
    parser.add_argument("--strict", action="store_true", help="exit status 1 where a stream is cut or at fault")
    parser.add_argument("--key", metavar="FILE", help="a secret for the seal; the same for --verify")
    parser.add_argument("--verify", action="store_true", help="PATHs are records: are they as they were written?")
    parser.add_argument("--seal", metavar="HEX", help="with --verify: the seal that was noted elsewhere")


def run(found: argparse.Namespace) -> int:
    """The command; returns its exit status: 0 where every input was read, whatever was in it, else 2; with ``--verify``
    1 where records are not those that were written; 128 and the number of the signal that ended it."""
    try:
        with endings_raised():
            return _run(found)
    except Ended as ended:
        return 128 + ended.number


def _run(found: argparse.Namespace) -> int:
    key = _key(found.key)
    if found.verify:
        return verifying.run(found.paths, key, None if found.seal is None else _seal(found.seal))
    if found.seal is not None:
        raise Unusable("--seal is for --verify")
    job = _job(found)
    paths = Paths(found.paths, found.output, [] if found.key is None else [found.key])
    with outputs.opened(found.output, job.format, key) as output, Progress(paths) as progress:
        with contextlib.closing(read_all(paths, job, found.jobs or _cores())) as results:
            tally = _write(results, output, paths, progress)
        if not output.count:
            raise Unusable("there is nothing to read")
        output.end()
    records, size = counted(output.count, "record"), counted(paths.position, "byte")
    say(f"{records} of {size}, sealed: {output.seal.hex()}")
    if tally.faults > MAX_TOLD:
        say(f"{tally.faults} inputs were not read to their end; their records tell why")
    if tally.faults or paths.missing:
        return 2
    return 1 if found.strict and tally.bad else 0


class _Tally:
    def __init__(self) -> None:
        self.faults = self.bad = 0


def _write(results: Iterable[Result], output: outputs.Output, paths: Paths, progress: Progress) -> _Tally:
    tally = _Tally()
    for result in results:
        output.write(result)
        for stream_id, fault in result.faults:
            tally.faults += 1
            if tally.faults <= MAX_TOLD:
                say(f"{stream_id}: {fault}")
        tally.bad += result.bad
        paths.position += result.size
        progress.update()
    return tally


def _job(found: argparse.Namespace) -> Job:
    make_parser(argparse.Namespace(**{**vars(found), "strict": False}))  # which says what is wrong with the arguments
    if found.redact is not None:
        sys.path.insert(0, os.getcwd())
        find_redaction(found.redact)
    context: dict[str, str | None] = {}
    for entry in found.context:
        name, equals, value = entry.partition("=")
        if name not in CONTEXT or not equals:
            raise Unusable(f"--context takes NAME=VALUE with a name of {', '.join(CONTEXT)}")
        context[name] = value
    return Job(
        format=found.format or outputs.format_of(found.output),
        dialect=found.dialect,
        content=not found.hash_only,
        wire_digest=not found.no_wire_digest,
        redact=found.redact,
        max_event_size=found.max_event_size,
        context=context,
    )


def _key(name: str | None) -> bytes | None:
    if name is None:
        return None
    try:
        with open(name, "rb") as file:
            key = file.read(2**16).strip()
    except (OSError, ValueError) as error:
        raise Unusable(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    if not key:
        raise Unusable(f"{name}: there is no key in it")
    return key


def _cores() -> int:
    if sys.platform in ("emscripten", "wasi"):  # which start no process
        return 1
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, 61)  # more do not go on Windows


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:6]) <= 61:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 61")
    return int(text)


def _seal(text: str) -> bytes:
    try:
        seal = bytes.fromhex(text)
    except ValueError:
        seal = b""
    if len(seal) != sha256().digest_size:
        raise Unusable(f"--seal takes the 64 hexadecimal digits of a seal: {text!r} is not that")
    return seal
