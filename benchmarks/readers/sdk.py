"""The decoders of libraries that read Server-Sent Events, with ``json.loads`` where they leave the data a string.

Decoders alone, without the HTTP around them; some are private, hence the pinned versions.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable
from typing import Any

from . import Make, Reader, register
from .schema import Schema, gather

__all__: list[str] = []

Events = Callable[[list[bytes]], Iterable[Any]]


def openai(chunks: list[bytes]) -> Iterable[Any]:
    from openai._streaming import SSEDecoder

    return SSEDecoder().iter_bytes(iter(chunks))


def anthropic(chunks: list[bytes]) -> Iterable[Any]:
    from anthropic._streaming import SSEDecoder

    return SSEDecoder().iter_bytes(iter(chunks))


def lines(decoder: Any, chunks: list[bytes]) -> Iterable[str]:
    decode = codecs.getincrementaldecoder("utf-8")().decode
    for chunk in chunks:
        yield from decoder.decode(decode(chunk))


def httpx_sse(chunks: list[bytes]) -> Iterable[Any]:
    from httpx_sse._decoders import SSEDecoder, SSELineDecoder

    decode = SSEDecoder().decode
    return (event for line in lines(SSELineDecoder(), chunks) if (event := decode(line)) is not None)


def httpx2(chunks: list[bytes]) -> Iterable[Any]:
    from httpx2._sse import _SSEEventDecoder, _SSELineDecoder

    decode = _SSEEventDecoder().decode
    return (event for line in lines(_SSELineDecoder(), chunks) if (event := decode(line)) is not None)


def sseclient(chunks: list[bytes]) -> Iterable[Any]:
    from sseclient import SSEClient

    return SSEClient(iter(chunks)).events()


def launchdarkly(chunks: list[bytes]) -> Iterable[Any]:
    from ld_eventsource.actions import Event
    from ld_eventsource.reader import _BufferedLineReader, _SSEReader

    found = _SSEReader(_BufferedLineReader.lines_from(chunks)).events_and_comments()
    return (event for event in found if isinstance(event, Event))


def axio(chunks: list[bytes]) -> Iterable[Any]:
    from axio_sse import Decoder

    decode = Decoder().decode
    for chunk in chunks:
        yield from decode(chunk)
    yield from decode(b"", final=True)


def add(name: str, events: Events, package: str, module: str, *, own_json: bool = True) -> None:
    def kept(schema: Schema) -> Any:
        def read(chunks: list[bytes]) -> list[Any]:
            return [event.json() for event in events(chunks) if event.data != "[DONE]"]

        def read_with_json(chunks: list[bytes]) -> list[Any]:
            loads = json.loads
            return [loads(event.data) for event in events(chunks) if event.data != "[DONE]"]

        return (read if own_json else read_with_json), lambda payloads: gather(map(schema.fields, payloads))

    def framing(schema: Schema) -> Any:
        return (lambda chunks: list(events(chunks))), lambda found: of_data(schema, found)

    made: dict[str, Make] = {"kept": kept, "framing": framing}
    register(Reader(name, f"{package} + json", made, (module,), package))


def of_data(schema: Schema, events: Iterable[Any]) -> Any:
    """What stands in the data of SSE events."""
    return gather(schema.fields(json.loads(event.data)) for event in events if event.data != "[DONE]")


add("openai", openai, "openai", "openai._streaming")
add("anthropic", anthropic, "anthropic", "anthropic._streaming")
add("httpx-sse", httpx_sse, "httpx-sse", "httpx_sse._decoders")
add("httpx2", httpx2, "httpx2", "httpx2._sse")
add("sseclient", sseclient, "sseclient-py", "sseclient", own_json=False)
add("launchdarkly", launchdarkly, "launchdarkly-eventsource", "ld_eventsource.reader", own_json=False)
add("axio-sse", axio, "axio-sse", "axio_sse", own_json=False)
