"""Check a stream against draft-spk-agentproto-llm-stream-00: one line for each violation, with the requirement that it
breaks; with --format json one object. With --request the request that it answers too; without FILE that alone."""

from __future__ import annotations

from ..conformance import check
from ..request.reading import DEFAULT_MAX_SIZE
from .inputs import Input
from .options import Unusable
from .terminal import harmless, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HELP = "check a stream, a request, or both against the draft"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="default: standard input, also as -")
    parser.add_argument("--request", metavar="FILE", help="the request that the stream answers")
    parser.add_argument("--folded", action="store_true", help="join JSON that a document has folded over lines")
    parser.add_argument("--strict", action="store_true", help="make warnings errors")
    parser.add_argument("--dialect", choices=("auto", "llm-stream"), default="llm-stream", help="the draft's format")


def run(found: argparse.Namespace) -> int:
    """The command; returns its exit status."""
    request = None if found.request is None else _body(found.request)
    name = found.file or ("-" if request is None else None)
    if name == "-" and found.request == "-":
        raise Unusable("standard input cannot be both the request and the stream")
    if name is None:
        report = check(None, request=request, strict=found.strict)
    else:
        with Input(name) as source:
            report = check(
                iter(source),
                request=request,
                strict=found.strict,
                folded=found.folded,
                max_event_size=found.max_event_size,
            )
    write(report.to_json() + "\n" if found.format == "json" else harmless(report.to_text()))
    return 0 if report.ok else 1


def _body(name: str) -> bytes:
    body = bytearray()
    with Input(name) as source:
        for chunk in source:
            body += chunk
            if len(body) > DEFAULT_MAX_SIZE:  # so much is not read in any case
                break
    return bytes(body)
