"""What can go wrong with a stream on its way, as answers of the faulty server, and what a reader of it must say.

Each is made of the events of a whole stream, of any vendor; the expected outcome is known from how it is made.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from faulty_server import Answer, Do, GoAway, Raw, Reset, Step, Torn

WHOLE, CUT, STALLED, EITHER = "whole", "cut", "stalled", "either"
"""The verdict: the stream came to its end; it did not, and the reader must say so; it did not, and what the reader says
is that it took too long; or, where libraries differ about HTTP, it is whole or there is an error."""

FRAMINGS = ("chunked", "length", "close")

GARBAGE = random.Random(5).randbytes(2000)

TIMEOUT = 0.25
"""Seconds that a client waits for a server that stalls."""


@dataclass(frozen=True)
class Fault:
    """``events``: how many were sent whole; a reader has them, whatever the verdict. ``fails``: the library itself has
    an error to tell."""

    answer: Answer
    events: int
    verdict: str
    fails: bool = False

    @property
    def waits(self) -> bool:
        return Do.WAIT in self.answer.steps


@dataclass
class Outcome:
    """What a reader gave: the events or the text (None where its error leaves none), whether it says that this is all,
    and the error that ended it."""

    items: Any = field(default_factory=list)
    complete: bool = False
    error: BaseException | None = None


def faults(events: Sequence[bytes], framing: str) -> dict[str, Fault]:
    """What can happen with any framing of the body, HTTP/2's ("http2") too. At least five events."""
    some, within = tuple(events[:3]), events[3][: len(events[3]) // 2]
    whole, number = tuple(events), len(events)
    length = str(sum(map(len, whole)))

    def answer(*steps: Step, **options: Any) -> Answer:
        options.setdefault("length", None if framing == "http2" else length)
        return Answer(steps, "chunked" if framing == "http2" else framing, **options)

    is_known = framing != "close"  # whether HTTP can tell that something is missing
    found = {
        "whole": Fault(answer(*whole), number, WHOLE),
        "in one piece": Fault(answer(b"".join(whole)), number, WHOLE),
        "byte by byte": Fault(answer(*singles(whole)), number, WHOLE),
        "cut before the headers": Fault(answer(Do.CUT, head=False), 0, CUT, fails=True),
        "cut after the headers": Fault(answer(Do.CUT), 0, CUT, is_known),
        "cut within an event": Fault(answer(*some, within, Do.CUT), 3, CUT, is_known),
        "cut between events": Fault(answer(*some, Do.CUT), 3, CUT, is_known),
        "cut before the last event": Fault(answer(*whole[:-1], Do.CUT), number - 1, CUT, is_known),
        "reset before the headers": Fault(answer(Do.RESET, head=False), 0, CUT, fails=True),
        "reset after the headers": Fault(answer(Do.RESET), 0, CUT, fails=True),
        "reset within an event": Fault(answer(*some, Do.WAIT, within, Do.RESET), 3, CUT, fails=True),
        "reset between events": Fault(answer(*some, Do.WAIT, Do.RESET), 3, CUT, fails=True),
        "stalled before the headers": Fault(answer(Do.STALL, head=False), 0, STALLED, fails=True),
        "stalled within an event": Fault(answer(*some, within, Do.STALL), 3, STALLED, fails=True),
        "stalled between events": Fault(answer(*some, Do.STALL), 3, STALLED, fails=True),
        "ended within an event": Fault(answer(*some, within, length=None), 3, CUT),
        "ended between events": Fault(answer(*some, length=None), 3, CUT),
        "no body": Fault(answer(length=None), 0, CUT),
        "a body of garbage": Fault(answer(GARBAGE, length=None), 0, CUT),
        "a page": Fault(
            answer(b"<!doctype html><p>SECRET</p>", headers=(("content-type", "text/html"),), length=None), 0, CUT
        ),
        "no content type": Fault(answer(*whole, headers=()), number, WHOLE),
        "another content type": Fault(answer(*whole, headers=(("content-type", "text/plain"),)), number, WHOLE),
    }
    return {f"{name}, {framing}": fault for name, fault in found.items()}


def compressed(events: Sequence[bytes]) -> dict[str, Fault]:
    """The faults of Content-Encoding."""
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in events]
    pieces.append(packer.flush())
    headers = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))

    def answer(*steps: Step, **options: Any) -> Answer:
        return Answer(steps, headers=headers, **options)

    within = pieces[3][:2]  # half of it could stand for all of an event that is like the one before
    found = {
        "gzip": Fault(answer(*pieces), len(events), WHOLE),
        "gzip in one piece": Fault(answer(b"".join(pieces)), len(events), WHOLE),
        "gzip byte by byte": Fault(answer(*singles(pieces)), len(events), WHOLE),
        "gzip that ends between events": Fault(answer(*pieces[:3]), 3, CUT),
        "gzip that ends within an event": Fault(answer(*pieces[:3], within), 3, CUT),
        "gzip that is cut": Fault(answer(*pieces[:3], Do.CUT), 3, CUT, fails=True),
        "gzip without its end": Fault(answer(*pieces[:-1]), len(events), EITHER),
        "gzip with garbage within": Fault(answer(*pieces[:3], Do.WAIT, GARBAGE), 3, CUT, fails=True),
        "gzip is said and not so": Fault(answer(*events), 0, CUT, fails=True),
        "gzip is not said and so": Fault(Answer(tuple(pieces)), 0, CUT),
    }
    return {f"{name}, chunked": fault for name, fault in found.items()}


def http1(events: Sequence[bytes]) -> dict[str, Fault]:
    """The faults of HTTP/1.1 (RFC 9112, sections 6 and 7)."""
    some, within, whole = tuple(events[:3]), events[3][: len(events[3]) // 2], tuple(events)
    size = sum(map(len, whole))
    chunk = Raw(b"%x\r\n" % len(events[3]) + events[3] + b"\r\n")
    last = (("content-type", "text/event-stream"), ("connection", "close"))  # not to be used again
    return {
        "each byte by itself, chunked": Fault(Answer(whole, single=True), len(events), WHOLE),
        "each byte by itself, length": Fault(Answer(whole, "length", single=True), len(events), WHOLE),
        "the length of a chunk is cut": Fault(Answer((*some, Raw(b"1"), Do.CUT)), 3, CUT, fails=True),
        "the end of a chunk is cut": Fault(Answer((*some, Raw(chunk[:-2]), Do.CUT)), 4, CUT, fails=True),
        "a chunk is cut": Fault(Answer((*some, Torn(within), Do.CUT)), 3, CUT, fails=True),
        "the last chunk is missing": Fault(Answer((*whole, Do.CUT)), len(events), EITHER),
        "the length of a chunk is none": Fault(
            Answer((*some, Do.WAIT, Raw(b"xyz\r\n" + events[3] + b"\r\n"), Do.CUT)), 3, CUT, fails=True
        ),
        "the length of a chunk is negative": Fault(
            Answer((*some, Do.WAIT, Raw(b"-5\r\n"), Do.CUT)), 3, CUT, fails=True
        ),
        "the length of a chunk is huge": Fault(
            Answer((*some, Do.WAIT, Raw(b"7" * 300 + b"\r\n"), Do.CUT)), 3, CUT, fails=True
        ),
        "the length of a chunk never ends": Fault(
            Answer((*some, Do.WAIT, Raw(b"1" * 300_000), Do.CUT)), 3, CUT, fails=True
        ),
        "chunks with extensions and trailers": Fault(
            Answer(
                (Raw(b"%x;name=value\r\n%b\r\n0\r\nx-more: 1\r\n\r\n" % (size, b"".join(whole))), Do.CUT), headers=last
            ),
            len(events),
            WHOLE,
        ),
        "garbage for a status": Fault(Answer((Raw(GARBAGE), Do.CUT), head=False), 0, CUT, fails=True),
        "garbage after the headers": Fault(Answer((Raw(GARBAGE), Do.CUT)), 0, CUT, fails=True),
        "the headers are cut": Fault(Answer((Raw(b"HTTP/1.1 200 OK\r\nContent-Ty"), Do.CUT), head=False), 0, CUT),
        "a length that is too long": Fault(
            Answer((*whole, Do.CUT), "length", length=str(size + 9)), len(events), EITHER
        ),
        "a length that is too short": Fault(
            Answer((*whole, Do.CUT), "length", length=str(sum(map(len, some)) + len(within)), headers=last), 3, CUT
        ),
        "a length that is none": Fault(
            Answer((*whole, Do.CUT), "length", length="many", headers=last), len(events), EITHER
        ),
        "a length that is negative": Fault(
            Answer((*whole, Do.CUT), "length", length="-1", headers=last), len(events), EITHER
        ),
    }


def http2(events: Sequence[bytes]) -> dict[str, Fault]:
    """The faults of HTTP/2 (RFC 9113)."""
    some, within, whole = tuple(events[:3]), events[3][: len(events[3]) // 2], tuple(events)
    size = sum(map(len, whole))
    found: dict[str, Fault] = {
        "a frame is cut": Fault(Answer((*some, Torn(within), Do.CUT)), 3, CUT, fails=True),
        "garbage for a frame": Fault(Answer((*some, Do.WAIT, Raw(b"\xff" * 2000), Do.CUT)), 3, CUT, fails=True),
        "garbage for the headers": Fault(Answer((Raw(b"\xff" * 2000), Do.CUT), head=False), 0, CUT, fails=True),
        "a length that is too long": Fault(Answer(whole, length=str(size + 9)), len(events), EITHER),
        "a length that is too short": Fault(
            Answer((whole[0], Do.WAIT, *whole[1:]), length=str(len(whole[0]))), 1, CUT, fails=True
        ),
    }
    for name, code in (("no error", 0), ("an error", 2), ("cancelled", 8), ("an unknown code", 999)):
        found[f"reset with {name}"] = Fault(Answer((*some, Do.WAIT, Reset(code))), 3, CUT, fails=True)
        found[f"reset within an event with {name}"] = Fault(
            Answer((*some, within, Do.WAIT, Reset(code))), 3, CUT, fails=True
        )
        for is_refused in (False, True):
            how = "refused" if is_refused else "told to go"
            found[f"{how} with {name}"] = Fault(
                Answer((*some, Do.WAIT, GoAway(code, is_refused), Do.CUT)), 3, CUT, fails=True
            )
        found[f"reset before the headers with {name}"] = Fault(Answer((Reset(code),), head=False), 0, CUT, fails=True)
    return {f"{name}, http2": fault for name, fault in found.items()}


def every_http1(events: Sequence[bytes]) -> dict[str, Fault]:
    """All that are for HTTP/1.1."""
    found = {name: fault for framing in FRAMINGS for name, fault in faults(events, framing).items()}
    return {**found, **compressed(events), **http1(events)}


def every_http2(events: Sequence[bytes]) -> dict[str, Fault]:
    """All that are for HTTP/2."""
    over_it = {name.replace("chunked", "http2"): fault for name, fault in compressed(events).items()}
    return {**faults(events, "http2"), **over_it, **http2(events)}


NEVER_TOLD = [f"the length of a chunk {what}" for what in ("is none", "is negative", "is huge", "never ends")]
"""What aiohttp 3.14 lets its reader wait for without end, in spite of ``sock_read``."""

NEVER_OR_ONCE = "garbage after the headers"
"""One of these, or an error at once: as it comes in with the headers or after them."""


def by_aiohttp(name: str, fault: Fault) -> Fault:
    """What a reader of aiohttp's can be told of a fault, where somebody else ends what it waits for without end."""
    if name in NEVER_TOLD:
        return Fault(fault.answer, fault.events, STALLED, fails=True)
    if name.startswith("reset") and name.endswith(", close"):
        # Once it has the headers, it takes a reset for the end of a body that ends with its connection.
        return Fault(fault.answer, fault.events, fault.verdict, fails="before" in name)
    return fault


def singles(pieces: Iterable[bytes]) -> list[bytes]:
    """The bytes, each by itself."""
    return [bytes((byte,)) for byte in b"".join(pieces)]


def judge(
    fault: Fault,
    outcome: Outcome,
    expected: Callable[[int], Any],
    *,
    is_known: Callable[[BaseException], bool],
    is_timeout: Callable[[BaseException], bool],
    secrets: Iterable[str] = (),
    exact: bool = True,
) -> None:
    """Checks an outcome: the events, the verdict, and what the error is and says.

    ``expected``  what so many events of the stream give; None where a reader cannot tell, since it has failed
    ``is_known``  whether an error is of the library or of ours
    ``secrets``   texts of the stream, which no error tells
    ``exact``     False: what a connection held back when it failed may be lost, where the answer did not wait
    """
    error = outcome.error
    if outcome.items is not None:
        if error is not None and (fault.verdict == EITHER or not exact):
            assert outcome.items in [expected(number) for number in range(fault.events + 1)]
        else:
            assert outcome.items == expected(fault.events)
    if fault.verdict == WHOLE:
        assert (outcome.complete, error) == (True, None)
    elif fault.verdict == EITHER:
        assert outcome.complete or error is not None
    else:
        assert not outcome.complete
    if fault.verdict == STALLED:
        assert error is not None
        assert is_timeout(error)
    if fault.fails:
        assert error is not None
    if error is not None:
        assert is_known(error)
        told = f"{error} {error!r}"
        assert not [secret for secret in secrets if secret in told]
