"""What a gateway bounds."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a ``Gateway``. Sizes are in bytes, times in seconds. Raises ValueError for what is not more than 0.

    ``request_size``     of a request's body; beyond it 413
    ``request_time``     until a request's body is in; beyond it 408
    ``streams``          under way at once; beyond it 503
    ``connect_time``     until the upstream is connected; beyond it 504
    ``silence``          until the upstream answers, from when it is connected and however slowly it takes the request
                         or sends headers, and between the bytes of its answer; beyond it 504, or an error in the stream
    ``duration``         of one answer, from its headers on; beyond it an error in the stream
    ``answer_size``      of an answer that is no stream, and is read whole; beyond it 502
    """

    request_size: int = 16 * 2**20
    request_time: float = 30.0
    streams: int = 1000
    connect_time: float = 10.0
    silence: float = 300.0
    duration: float = 3600.0
    answer_size: int = 64 * 2**20

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"{field.name} must be more than 0")
