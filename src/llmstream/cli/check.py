"""Check a stream against draft-spk-agentproto-llm-stream-00: one line for each violation, with the requirement that it
breaks; with --format json one object. With --request the request that it answers too; without FILE that alone."""

from __future__ import annotations

from .. import Parser
from .._registry import STANDARD
from ..conformance import check
from ..request.reading import DEFAULT_MAX_SIZE
from .inputs import Input
from .options import Unusable
from .terminal import harmless, say, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

MAX_WATCHED = 2**20
"""Bytes in which the format of a stream is looked for."""

HELP = "check a stream, a request, or both against the draft"
COMMON = ("format", "max_event_size")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="default: standard input, also as -")
    parser.add_argument("--request", metavar="FILE", help="the request that the stream answers")
    parser.add_argument("--folded", action="store_true", help="join JSON that a document has folded over lines")
    parser.add_argument("--strict", action="store_true", help="make warnings errors")
    parser.add_argument(
        "--dialect", choices=("auto", "llm-stream"), default="auto", help="auto: say whose it is if not the draft's"
    )


def run(found: argparse.Namespace) -> int:
    """The command; returns its exit status."""
    request = None if found.request is None else _body(found.request)
    name = found.file or ("-" if request is None else None)
    if name == "-" and found.request == "-":
        raise Unusable("standard input cannot be both the request and the stream")
    seen = _Format(found.dialect)
    if name is None:
        report = check(None, request=request, strict=found.strict)
    else:
        with Input(name) as source:
            report = check(
                seen.watched(source),
                request=request,
                strict=found.strict,
                folded=found.folded,
                max_event_size=found.max_event_size,
            )
    write(report.to_json() + "\n" if found.format == "json" else harmless(report.to_text()))
    if not report.ok and seen.vendors:
        say(f"{name}: the stream is of the dialect {seen.vendors}; llmstream convert writes it as the draft's")
    return 0 if report.ok else 1


class _Format:
    """Looks for the format of the stream that is checked, where it need not be the draft's."""

    def __init__(self, dialect: str) -> None:
        self._parser = Parser(dialect)
        self._watches = dialect == "auto"

    def watched(self, source: Input) -> Iterator[bytes]:
        for chunk in source:
            if self._watches:
                self._parser.feed(chunk)
                self._watches = self._parser.dialect == "auto" and source.position < MAX_WATCHED
            yield chunk

    @property
    def vendors(self) -> str | None:
        """The name of the format, where it is a vendor's."""
        name = self._parser.dialect
        return None if name in ("auto", STANDARD) or self._parser.error is not None else name


def _body(name: str) -> bytes:
    body = bytearray()
    with Input(name) as source:
        for chunk in source:
            body += chunk
            if len(body) > DEFAULT_MAX_SIZE:  # so much is not read in any case
                break
    return bytes(body)
