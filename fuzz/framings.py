"""Targets that cut bytes into frames: the framings that are not Server-Sent Events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import frames

from . import whatwg
from .judge import Case

# Name -> module, class, and a naive reader of its payloads where there is one.
FRAMINGS: dict[str, tuple[str, str, Callable[[bytes], list[Any]] | None]] = {
    "aws-event-stream": ("aws_event_stream", "AWSEventStreamFraming", whatwg.aws_event_stream),
    "binary": ("binary", "BinaryFraming", None),
    "connect": ("connect", "ConnectFraming", lambda data: whatwg.enveloped(data, 2)),
    "grpc-web": ("connect", "GRPCWebFraming", lambda data: whatwg.enveloped(data, 0x80)),
    "json-values": ("json_values", "JSONFraming", whatwg.json_values),
    "length-prefixed": ("length_prefixed", "LengthPrefixedFraming", whatwg.length_prefixed),
    "signalr": ("signalr", "SignalRFraming", whatwg.signalr),
}


def target(name: str) -> Callable[[Case], Any]:
    module, kind, naive = FRAMINGS[name]

    def read(case: Case) -> Any:
        size = case.pick(1, 20, 200) if case.rarely(0.2) else 2**20
        ways = [case.chunks() for _ in range(2)]
        first: Any = None
        for implementation in case.implementations:
            with implementation.active():
                framing = getattr(implementation.module(f"framing.{module}"), kind)
                whole = frames.read(framing(size), [case.data])
                shown = _shown(whole)
                first = first or (whole, shown)
                case.same("twin", first[1], shown, implementation.name)
                for chunks in ways:
                    case.same("split", shown, _shown(frames.read(framing(size), chunks)), implementation.name)
        whole, _ = first
        if naive is not None and size == 2**20 and case.asks("frames"):
            _against(case, whole, naive(case.data), name)
        return whole.reason, len(whole.frames) // 3, frozenset(words for _, words in whole.reports)

    return read


def _shown(found: frames.Found) -> Any:
    return ([(frame.event, frame.data, frame.offset) for frame in found.frames], *found[1:])


def _against(case: Case, found: frames.Found, naive: list[Any], name: str) -> None:
    """Whole frames are found in order: one is missing only where a fault stopped the reading."""
    data: list[Any] = found.data
    if name == "json-values":
        # An array that grows is not what the naive reader knows, and the framing does not validate what it cuts.
        values = [whatwg.json_values(part) for part in data[: len(naive)]]
        if not case.data.lstrip(b" \t\r\n").startswith(b"["):
            case.same("frames", repr([[value] for value in naive]), repr(values))
        return
    if name == "aws-event-stream":
        # An error without a payload brings its headers as one.
        data = [frame.data if frame.kind != "error" else b"" for frame in found.frames]
        naive = [part if frame.kind != "error" else b"" for part, frame in zip(naive, found.frames, strict=False)]
    common = min(len(data), len(naive))
    case.same("frames", naive[:common], data[:common])
    # Connect's naive reader knows no compressed message and no end.
    more = len(data) > len(naive) and name not in ("connect", "grpc-web")
    fewer = len(data) < len(naive) and not found.broken
    case.holds("frames", not (more or fewer), f"{len(data)} frames of {len(naive)}")
