"""A standard stream with every fault, and what its readers give of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faults import Outcome, every_http1, every_http2
from streams import EVENTS, KINDS, TEXTS

HTTP1 = every_http1(EVENTS)
HTTP2 = every_http2(EVENTS)
PATHS = {name: str(number) for number, name in enumerate([*HTTP1, *HTTP2])}
ANSWERS = {PATHS[name]: fault.answer for name, fault in {**HTTP1, **HTTP2}.items()}
"""The answers of a server, by path."""

ITEMS: list[tuple[str, str | None]] = list(zip(KINDS, [None, *TEXTS, None, None, None], strict=True))
SECRETS = [*(text.strip(" ,") for text in TEXTS), "SECRET"]


def items(number: int) -> list[tuple[str, str | None]]:
    """So many events: type, and text where they have any."""
    return ITEMS[:number]


def text(number: int) -> str:
    """The text of so many events."""
    return "".join(part for _, part in ITEMS[:number] if part)


def item(event: Any) -> tuple[str, str | None]:
    """An event of ours, as in ``ITEMS``."""
    return event.type, getattr(event, "text", None)


class Gathering:
    """Gathers what a reader gives, and says when it has what was sent before the fault."""

    def __init__(self, expected: Callable[[int], Any], events: int, proceed: Callable[[], object]) -> None:
        self.outcome = Outcome(expected(0))
        self._awaited = expected(events)
        self._proceed = proceed

    def begin(self) -> None:
        """The response is there."""
        if self.outcome.items == self._awaited:
            self._proceed()

    def text(self, piece: str) -> None:
        self.outcome.items += piece
        self.begin()

    def event(self, event: Any) -> None:
        self.outcome.items = [*self.outcome.items, item(event)]
        self.begin()
