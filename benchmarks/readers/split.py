"""Split at blank lines, find the data, and read it with a JSON library: the fast stacks of today."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from . import Make, Reader, register
from .schema import Schema, gather

__all__ = ["loads_of"]

Loads = Callable[[bytes], Any]


def split(loads: Loads, marked: bool, chunks: list[bytes]) -> list[Any]:
    rest = b""
    out = []
    for chunk in chunks:
        parts = (rest + chunk).split(b"\n\n")
        rest = parts.pop()
        if marked:
            for event in parts:
                at = event.find(b"data: ")
                if event.startswith(b"data: [DONE]"):
                    break
                out.append(loads(event[at + 6 :]))
        else:
            for event in parts:
                out.append(loads(event[event.find(b"data: ") + 6 :]))  # noqa: PERF401 (as it is written)
    return out


def split_dropped(loads: Loads, chunks: list[bytes]) -> None:
    rest = b""
    for chunk in chunks:
        parts = (rest + chunk).split(b"\n\n")
        rest = parts.pop()
        for event in parts:
            loads(event[event.find(b"data: ") + 6 :])


def split_read_typed(loads: Loads, chunks: list[bytes]) -> list[str]:
    rest = b""
    texts = []
    for chunk in chunks:
        parts = (rest + chunk).split(b"\n\n")
        rest = parts.pop()
        for event in parts:
            payload = loads(event[event.find(b"data: ") + 6 :])
            if payload.delta is not None:
                texts.append(payload.delta.text)
    return texts


def split_read(loads: Loads, chunks: list[bytes]) -> list[str]:
    rest = b""
    texts = []
    for chunk in chunks:
        parts = (rest + chunk).split(b"\n\n")
        rest = parts.pop()
        for event in parts:
            payload = loads(event[event.find(b"data: ") + 6 :])
            if payload["type"] == "content.delta":
                texts.append(payload["delta"]["text"])
    return texts


def split_fields(loads: Loads, fields: Any, line_end: Callable[[list[bytes]], bytes], chunks: list[bytes]) -> list[Any]:
    """As ``split`` for recorded streams: CRLF too, comments, and spaces that are left out."""
    end = line_end(chunks)
    rest = b""
    out = []
    for chunk in chunks:
        parts = (rest + chunk).split(end)
        rest = parts.pop()
        for event in parts:
            at = event.find(b"data:")
            if at < 0 or event.endswith(b"[DONE]"):
                continue
            out.append(fields(loads(event[at + 5 :])))
    if rest.startswith(b"data:") and not rest.strip().endswith(b"[DONE]"):
        out.append(fields(loads(rest[5:])))
    return out


def line_end(chunks: list[bytes]) -> bytes:
    return b"\r\n\r\n" if b"\r\n\r\n" in chunks[0] else b"\n\n"


def payloads(loads: Loads, chunks: list[bytes]) -> list[Any]:
    return [loads(chunk) for chunk in chunks]


def texts_only(texts: list[str]) -> Any:
    from ..found import Found

    return Found(text="".join(texts))


def tasks(loads_for: Callable[[Schema], Loads], view_for: Callable[[Schema], Any], *, typed: bool) -> dict[str, Make]:
    def kept(schema: Schema) -> Any:
        return partial(split, loads_for(schema), schema.marked), view_for(schema)

    def bare(schema: Schema) -> Any:
        return partial(payloads, loads_for(schema)), view_for(schema)

    def dropped(schema: Schema) -> Any:
        return None if schema.marked else (partial(split_dropped, loads_for(schema)), lambda _: None)

    def read(schema: Schema) -> Any:
        if schema.dialect != "llm-stream":
            return None
        return partial(split_read_typed if typed else split_read, loads_for(schema)), texts_only

    def fields(schema: Schema) -> Any:
        if typed:
            return None
        return partial(split_fields, loads_for(schema), schema.fields, line_end), gather

    return {"kept": kept, "payload": bare, "dropped": dropped, "read": read, "fields": fields}


def of_dicts(schema: Schema) -> Any:
    return lambda payloads: gather(map(schema.fields, payloads))


def loads_of(library: str, schema: Schema) -> Loads:
    """A library's reader of one payload."""
    if library == "json":
        return json.loads
    if library == "orjson":
        import orjson

        return orjson.loads
    if library == "jiter":
        import jiter

        return jiter.from_json
    if library == "simdjson":
        import simdjson

        # Its objects are views that one parser can make once at a time, so the fields are read at once; where a field
        # may be missing, a dict of everything is faster.
        parse, fields = simdjson.Parser().parse, schema.fields
        if schema.dialect == "llm-stream":
            return lambda payload: fields(parse(payload))
        return lambda payload: parse(payload, True)
    import msgspec

    decode: Loads = msgspec.json.Decoder(schema.struct(msgspec)).decode
    return decode


def add(library: str, label: str, package: str | None, module: str | None) -> None:
    def view(schema: Schema) -> Any:
        if library == "simdjson" and schema.dialect == "llm-stream":
            return gather
        return (lambda structs: gather(map(schema.typed, structs))) if library == "msgspec" else of_dicts(schema)

    made = tasks(partial(loads_of, library), view, typed=library == "msgspec")
    if library == "simdjson":
        del made["read"], made["fields"]
    imports = (module,) if module else ()
    register(Reader(f"split-{library}", f"split + {label}", made, imports, package))


add("json", "json", None, None)
add("orjson", "orjson", "orjson", "orjson")
add("msgspec", "msgspec, typed", "msgspec", "msgspec")
add("simdjson", "pysimdjson", "pysimdjson", "simdjson")
add("jiter", "jiter", "jiter", "jiter")
