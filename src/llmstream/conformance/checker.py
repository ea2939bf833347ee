"""The checker: a lenient parser, what it does not look at, and one report of both."""

from __future__ import annotations

from .._backend import Parser, Violation
from ..rules import MAX_VIOLATIONS, NONE, RULES
from ..source import chunks
from .folded import unfold
from .pairing import Pairing
from .report import Report, report
from .wire import Splitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from .._backend import Event
    from ..request import Request
    from ..request.findings import Findings
    from ..source import Source
    from .wire import Block

    AnyRequest: TypeAlias = "Request | Mapping[str, Any] | bytes | bytearray | memoryview | str"

__all__ = ["Checker", "check"]

DEFAULT_MAX_EVENT_SIZE = 16 * 2**20


def check(
    source: Source | None,
    *,
    request: AnyRequest | None = None,
    strict: bool = False,
    folded: bool = False,
    max_event_size: int = DEFAULT_MAX_EVENT_SIZE,
) -> Report:
    """What a stream breaks of the draft; with ``request`` also what the request breaks, and whether they fit: the names
    of tools, the echoed ``request_id``. None for ``source`` checks the request alone.

    ``source`` is read as by ``parse``; ``request`` is a Request, its members, or its body. ``strict`` makes an error of
    every warning. ``folded`` joins JSON that a document has folded over lines without ``data:``; the source is then
    held in memory. Raises TypeError where ``source`` cannot be read, or where a mapping for ``request`` has what JSON
    has no type for (bytes, a set, a name that is no str), and whatever reading ``source`` raises.
    """
    if source is None:
        read = _Requested(request, strict)
        return report(read.findings, [], 0, 0, 0, strict)
    checker = Checker(request=request, strict=strict, max_event_size=max_event_size)
    found = chunks(source)
    try:
        if folded:
            return _check_folded(checker, b"".join(bytes(memoryview(chunk).cast("B")) for chunk in found.iterator))
        for chunk in found.iterator:
            checker.feed(chunk)
    finally:
        found.close()
    return checker.close()


def _check_folded(checker: Checker, document: bytes) -> Report:
    places = [(0, 0)]  # where an event begins for the checker, and in the document
    at = 0
    for offset, event in unfold(document):
        places.append((at, offset))
        checker.feed(event)
        at += len(event)
    places.append((at, len(document)))
    return checker.close().moved(places)


class Checker:
    """Checks one stream in chunks cut anywhere: ``feed`` them, then ``close`` for the report."""

    __slots__ = (
        "_before",
        "_is_ended",
        "_number",
        "_own",
        "_own_count",
        "_own_errors",
        "_pairing",
        "_parser",
        "_report",
        "_requested",
        "_splitter",
        "_strict",
    )

    def __init__(
        self,
        *,
        request: AnyRequest | None = None,
        strict: bool = False,
        max_event_size: int = DEFAULT_MAX_EVENT_SIZE,
    ) -> None:
        self._parser = Parser(max_event_size=max_event_size)
        self._strict = strict
        self._splitter = Splitter()
        self._own: list[Violation] = []  # what the parser does not look for
        self._own_count = self._own_errors = 0
        self._number = 0  # of the event under way, as the parser counts
        self._before = 0  # violations before it
        self._is_ended = False
        self._report: Report | None = None
        self._requested = _Requested(request, strict)
        self._pairing = Pairing(self._requested.request)

    def feed(self, chunk: bytes | bytearray | memoryview) -> None:
        """Takes a chunk in (any contiguous bytes-like object); raises TypeError for anything else, ValueError when
        closed."""
        if self._report is not None:
            raise ValueError("the checker is closed")
        for piece, block in self._splitter.feed(bytes(memoryview(chunk).cast("B"))):
            events = self._parser.feed(piece)
            if block is not None:
                self._block(block, events)

    def close(self) -> Report:
        """Ends the stream and returns the report; again, the same."""
        if self._report is None:
            self._report = self._close()
        return self._report

    def _close(self) -> Report:
        parser = self._parser
        rest, block = self._splitter.close()
        events = parser.feed(rest) + parser.close()
        if not self._is_ended:
            if block.has_other_after_data and not events:
                self._note(block.fault(is_cut=True), block.offset)
            self._see(events, block.offset)
            self._number += bool(events)
        count, errors = parser.violation_count + self._own_count, parser.error_count + self._own_errors
        found = sorted([*parser.violations, *self._own], key=_place)
        return report(self._requested.findings, found, errors, count - errors, self._number, self._strict)

    def _block(self, block: Block, events: list[Event]) -> None:
        count = self._parser.violation_count
        grew = count > self._before
        self._before = count
        if not self._is_ended:
            self._note(block.fault(is_cut=grew and not events), block.offset)
            self._see(events, block.offset)
        if block.data_lines or grew:  # one that is too large counts too, whatever is in it
            self._number += 1

    def _see(self, events: list[Event], offset: int) -> None:
        for event in events:
            for rule in self._pairing.faults(event):
                self._note(rule, offset)
            self._is_ended = self._is_ended or event.type == "stream.end"

    def _note(self, rule: int, offset: int) -> None:
        if rule == NONE:
            return
        broken = RULES[rule]
        self._own_count += 1
        self._own_errors += broken.severity == "error"
        if len(self._own) < MAX_VIOLATIONS:
            self._own.append(Violation(broken.requirement, broken.severity, self._number, offset, broken.message))


def _place(found: Violation) -> tuple[int, int]:
    return found.event, found.offset


class _Requested:
    """A request in any of its forms: ``request`` is None where there is none that can be read, ``findings`` where none
    was given."""

    __slots__ = ("findings", "request")

    def __init__(self, given: AnyRequest | None, strict: bool) -> None:
        self.request: Request | None = None
        self.findings: Findings | None = None
        if given is None:
            return
        from ..request import Request
        from ..request.findings import Findings
        from ..request.reading import json_of

        fault = None
        if not isinstance(given, (Request, bytes, bytearray, memoryview, str)):
            given, fault = json_of(given)
        if fault is not None:
            self.findings = Findings(strict)
            self.findings.add(*fault)
            return
        read = given if isinstance(given, Request) else Request._read(given, strict=strict)
        if isinstance(read, Findings):
            self.findings = read
            return
        self.request = read
        self.findings = read._examine(strict)
