"""The same envelopes behind length prefixes (draft, section 6.2): a type byte, four bytes of length, the payload.

Ours are cut by ``llmstream.framing.length_prefixed``, or where that is not there by the few lines of ``cut`` here, and
go to ``feed_payload``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import twins
from . import Reader, register
from .schema import Schema, gather, of_events
from .split import loads_of

__all__: list[str] = []

LIMIT = 16 * 2**20


def cut(take: Callable[[bytes], Any], chunks: list[bytes]) -> list[Any]:
    """What ``take`` makes of every payload."""
    number = int.from_bytes
    out = []
    rest = b""
    for chunk in chunks:
        buffer = rest + chunk if rest else chunk
        at, size = 0, len(buffer)
        while size - at >= 5:
            end = at + 5 + number(buffer[at + 1 : at + 5], "big")
            if end > size:
                break
            out.append(take(buffer[at + 5 : end]))
            at = end
        rest = buffer[at:]
    return out


def typed(schema: Schema) -> Any:
    return partial(cut, loads_of("msgspec", schema)), lambda structs: gather(map(schema.typed, structs))


def add(twin: str, label: str) -> None:
    def kept(schema: Schema) -> Any:
        make, dialect = twins.package(twin).Parser, schema.dialect

        def read_by_hand(chunks: list[bytes]) -> list[Any]:
            parser = make(dialect=dialect)
            out: list[Any] = []
            cut(lambda payload: out.extend(parser.feed_payload(payload)), chunks)
            out += parser.close()
            return out

        def read_by_framing(chunks: list[bytes]) -> list[Any]:
            parser, framing = make(dialect=dialect), framed(LIMIT)
            feed = parser.feed_payload
            out: list[Any] = []
            for chunk in chunks:
                for event, data, _ in framing.feed(chunk):
                    out += feed(data, event)
            out += parser.close()
            return out

        try:
            framed = importlib.import_module("llmstream.framing.length_prefixed").LengthPrefixedFraming
        except ModuleNotFoundError:
            read = read_by_hand
        else:
            read = read_by_framing
        return read, lambda events: of_events(events, schema)

    register(Reader(f"framed-{twin}", label, {"kept": kept}, package="llmstream-wire", twin=twin))


register(
    Reader("framed-msgspec", "length prefix + msgspec, typed", {"kept": typed}, ("msgspec",), "msgspec"),
)
add("cython", "llmstream over length prefixes")
add("python", "llmstream, pure Python, over length prefixes")
