"""Our parser: both twins, with learned shapes and without."""

from __future__ import annotations

from typing import Any

from .. import twins
from ..found import Found
from . import Make, Reader, register
from .schema import Schema, of_events
from .sdk import of_data

__all__: list[str] = []


def add(name: str, label: str, twin: str, **options: Any) -> None:
    def kept(schema: Schema) -> Any:
        make, dialect = twins.package(twin).Parser, schema.dialect

        def read(chunks: list[bytes]) -> list[Any]:
            parser = make(dialect=dialect, **options)
            out = []
            for chunk in chunks:
                out += parser.feed(chunk)
            out += parser.close()
            return out

        return read, lambda events: of_events(events, schema)

    def payload(schema: Schema) -> Any:
        make, dialect = twins.package(twin).Parser, schema.dialect

        def read(chunks: list[bytes]) -> list[Any]:
            parser = make(dialect=dialect, **options)
            out = []
            for chunk in chunks:
                out += parser.feed_payload(chunk)
            out += parser.close()
            return out

        return read, lambda events: of_events(events, schema)

    def dropped(schema: Schema) -> Any:
        make, dialect = twins.package(twin).Parser, schema.dialect

        def read(chunks: list[bytes]) -> None:
            feed = make(dialect=dialect, **options).feed
            for chunk in chunks:
                feed(chunk)

        return read, lambda _: None

    def collected(schema: Schema) -> Any:
        make, dialect = twins.package(twin).Parser, schema.dialect

        def read(chunks: list[bytes]) -> list[str]:
            feed = make(dialect=dialect, **options).feed
            texts = []
            for chunk in chunks:
                for event in feed(chunk):
                    if event.type == "content.delta":
                        texts.append(event.text)  # noqa: PERF401 (as it is written)
            return texts

        return read, lambda texts: Found(text="".join(texts))

    def text(schema: Schema) -> Any:
        make, dialect = twins.package(twin).Parser, schema.dialect

        def read(chunks: list[bytes]) -> list[str]:
            feed = make(dialect=dialect, **options).feed_text
            return [feed(chunk) for chunk in chunks]

        return read, lambda texts: Found(text="".join(texts))

    def framing(schema: Schema) -> Any:
        make = twins.package(twin).SSEDecoder

        def read(chunks: list[bytes]) -> list[Any]:
            decoder = make()
            out = []
            for chunk in chunks:
                out += decoder.feed(chunk)
            return out

        return read, lambda events: of_data(schema, events)

    made: dict[str, Make] = {
        "kept": kept,
        "payload": payload,
        "dropped": dropped,
        "read": collected,
        "text": text,
        "fields": kept,
        "framing": framing,
    }
    register(Reader(name, label, made, package="llmstream-wire", twin=twin))


add("cython", "llmstream", "cython")
add("cython-careful", "llmstream, no shapes", "cython", shapes=False)
add("python", "llmstream, pure Python", "python")
add("python-careful", "llmstream, pure Python, no shapes", "python", shapes=False)
