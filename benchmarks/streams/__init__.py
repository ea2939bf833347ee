"""On what: streams made from a seed, and recorded ones where they are at hand; each knows what is in it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..found import Expected

__all__ = ["Stream", "build", "compact", "sse"]

SEED = 7


def compact(value: Any) -> bytes:
    """JSON as vendors send it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def sse(payload: bytes, event: str | None = None) -> bytes:
    """One event with one data line."""
    name = b"" if event is None else b"event: " + event.encode() + b"\n"
    return name + b"data: " + payload + b"\n\n"


@dataclass(frozen=True)
class Stream:
    """One body or several, each a list of whole events. A reader reads every body from its start."""

    name: str
    schema: str
    bodies: list[list[bytes]]
    expected: list[Expected]
    names: list[str] = field(default_factory=list)
    """Of the bodies, where they are files."""

    @property
    def events(self) -> int:
        return sum(map(len, self.bodies))

    @property
    def size(self) -> int:
        return sum(len(event) for body in self.bodies for event in body)

    def chunks(self, cut: int | str) -> list[list[bytes]]:
        """The bodies as a reader gets them: in chunks of so many bytes, or in another way.

        "event": one event a chunk. "payload": bare payloads, one a chunk. "framed:N": every payload behind a type byte
        and four bytes of length (draft, section 6.2), in chunks of N bytes.
        """
        if cut == "event":
            return self.bodies
        if cut == "payload":
            return [payloads(body) for body in self.bodies]
        if isinstance(cut, str) and cut.startswith("framed:"):
            size = int(cut.partition(":")[2])
            return [slices(b"".join(map(frame, payloads(body))), size) for body in self.bodies]
        return [slices(b"".join(body), int(cut)) for body in self.bodies]


def slices(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def payloads(body: list[bytes]) -> list[bytes]:
    found = [match[1] for event in body if (match := re.search(rb"^data: (.*)$", event, re.MULTILINE))]
    return [payload for payload in found if payload != b"[DONE]"]


def frame(payload: bytes) -> bytes:
    return b"\0" + len(payload).to_bytes(4, "big") + payload


@cache
def build(name: str, events: int) -> Stream | None:
    """The stream of this name with about so many events; None where it is a recorded one that is not at hand."""
    from . import captures, draft, long, vendors

    if name.startswith("captures-"):
        return captures.build(name)
    makers = {**draft.STREAMS, **vendors.STREAMS, **long.STREAMS}
    return makers[name](name, events)
