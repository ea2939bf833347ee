"""Reading by a framing, and what it found, in a form that compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Found(NamedTuple):
    frames: list[Any]
    reason: str = ""
    broken: bool = False
    unfinished: bool = False
    reports: tuple[tuple[int, str], ...] = ()
    fault_offset: int = 0

    @property
    def clean(self) -> bool:
        return not (self.reason or self.reports)

    @property
    def data(self) -> list[bytes]:
        return [frame.data for frame in self.frames]

    @property
    def events(self) -> list[str | None]:
        return [frame.event for frame in self.frames]


def read(framing: Any, chunks: Iterable[bytes]) -> Found:
    """All of a stream. A payload over the limit counts as the fault "too large"."""
    frames: list[Any] = []
    for chunk in chunks:
        too_large = None
        try:
            frames += framing.feed(chunk)
        except Exception as error:
            if type(error).__name__ != "EventTooLargeError":
                raise
            too_large = error
        if too_large is not None:
            frames += too_large.events
            assert framing.reason == "too large"
            assert framing.fault_offset == too_large.offset
    frames += framing.close()
    assert framing.close() == []
    assert bool(framing.reason) == (framing.broken or framing.unfinished)
    reports = tuple(framing.reports)
    return Found(frames, framing.reason, framing.broken, framing.unfinished, reports, framing.fault_offset)


def same(make: Callable[[], Any], ways: Iterable[list[bytes]]) -> Found:
    """What is found whatever the chunks."""
    first: Found | None = None
    for chunks in ways:
        found = read(make(), chunks)
        if first is None:
            first = found
        assert found == first, chunks
        assert [vars(frame) if hasattr(frame, "__dict__") else None for frame in found.frames] == [
            vars(frame) if hasattr(frame, "__dict__") else None for frame in first.frames
        ]
    assert first is not None
    return first
