"""Byte by byte from the front of the buffer, again at every chunk: what section 6.1 of the draft has in mind."""

from __future__ import annotations

import json
from typing import Any

from . import Reader, register
from .schema import Schema, gather

__all__: list[str] = []


def kept(schema: Schema) -> Any:
    def read(chunks: list[bytes]) -> list[Any]:
        buffer = bytearray()
        out = []
        for chunk in chunks:
            buffer.extend(chunk)
            at = 0
            while at + 1 < len(buffer):
                if buffer[at] == 10 and buffer[at + 1] == 10:
                    event = bytes(buffer[:at])
                    del buffer[: at + 2]
                    at = 0
                    for line in event.decode().split("\n"):
                        if line.startswith("data: ") and line != "data: [DONE]":
                            out.append(json.loads(line[6:]))  # noqa: PERF401 (as it is written)
                else:
                    at += 1
        return out

    return read, lambda payloads: gather(map(schema.fields, payloads))


register(Reader("naive-front", "byte by byte from the front + json", {"kept": kept}))
