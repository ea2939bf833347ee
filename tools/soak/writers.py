"""The ways of writing a stream: what was written, a naive reader reads. As those of ``readers``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fuzz import whatwg

from .context import Context
from .streams import Stream


def transcoded(context: Context, stream: Stream) -> Iterator[None]:
    """A Transcoder: what it wrote, a naive reader reads."""
    options = context.options(stream)
    transcoder = context.package.Transcoder(**options, clock=_clock)
    found = []
    for chunk in context.chunks(stream.data):
        found.append(transcoder.feed(chunk))
        yield
    found.append(transcoder.close())
    output = b"".join(found)
    context.events += transcoder.next_seq
    context.same("text", stream.text, whatwg.text_of_draft(output))
    context.same("whole", stream.is_whole, transcoder.complete)
    context.same("end", "stream.end", whatwg.events(output)[0][-1][0])


def translated(context: Context, stream: Stream) -> Iterator[None]:
    """A StreamTranslator: the text that its stream has where the vendor's has it."""
    vendor = context.random.choice(tuple(TEXTS))
    translator = context.package.StreamTranslator(vendor, **context.options(stream), clock=_clock, model="m")
    found = []
    for chunk in context.chunks(stream.data):
        found.append(translator.feed(chunk))
        yield
    found.append(translator.close())
    payloads = [data for _, data, _ in whatwg.events(b"".join(found))[0]]
    context.events += len(payloads)
    written = "".join(TEXTS[vendor](json.loads(data)) for data in payloads if data != "[DONE]")
    context.same("text", stream.text, written)
    context.same("whole", stream.is_whole, translator.complete)


def _openai_text(value: Any) -> str:
    return "".join(choice["delta"].get("content") or "" for choice in value.get("choices", ()) if not choice["index"])


def _anthropic_text(value: Any) -> str:
    return str(value["delta"].get("text", "")) if value["type"] == "content_block_delta" else ""


def _gemini_text(value: Any) -> str:
    contents = [candidate.get("content", {}) for candidate in value.get("candidates", ())]
    parts = [part for content in contents for part in content.get("parts", ())]
    return "".join(part.get("text", "") for part in parts if not part.get("thought"))


TEXTS = {"openai": _openai_text, "anthropic": _anthropic_text, "gemini": _gemini_text}


def encoded(context: Context, stream: Stream) -> Iterator[None]:
    """An Encoder writes the text in other pieces; a naive reader reads it."""
    encoder = context.package.Encoder(clock=_clock)
    out = [encoder.start("m")]
    at = 0
    while at < len(stream.text):
        size = context.random.choice((1, 7, 100, 10_000))
        out.append(encoder.delta(stream.text[at : at + size], index=context.random.choice((0, 0, 0, 1))))
        at += size
        if len(out) % 16 == 0:
            yield
    for identity, name, arguments in stream.calls or ():
        out.append(encoder.tool_call(identity, name, arguments))
    out += [encoder.stop("end_turn", index) for index in encoder.open_blocks]
    out += [encoder.usage(1, 2), encoder.end()]
    context.events += len(out)
    output = b"".join(out)
    context.bytes += len(output)
    context.same("text", stream.text, whatwg.text_of_draft(output))


def encoded_again(context: Context, stream: Stream) -> Iterator[None]:
    """Events that were read, written, and reordered on the way."""
    package = context.package
    if not (stream.is_draft and stream.is_whole):
        yield from transcoded(context, stream)
        return
    encoder, buffer, waiting, out = package.Encoder(clock=_clock), package.ReorderBuffer(16), [], []
    for event in package.iter_events(context.chunks(stream.data)):
        waiting.append(event)
        if len(waiting) == 8:
            context.random.shuffle(waiting)
            out += [encoder.encode(each) for due in map(buffer.push, waiting) for each in due]
            waiting.clear()
            yield
    out += [encoder.encode(each) for due in map(buffer.push, waiting) for each in due]
    out += [encoder.encode(each) for each in buffer.close()]
    context.events += len(out)
    context.same("lost", ([], 0, 0), (buffer.gaps, buffer.late, buffer.repeated))
    output = b"".join(out)
    names = [name for name, _, _ in whatwg.events(output)[0]]
    context.same("events", [name for name, _, _ in stream.decoded[0]], names)
    context.same("text", stream.text, whatwg.text_of_draft(output))


def _clock() -> float:
    return 1_700_000_000.0
