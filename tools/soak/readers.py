"""The ways of reading a stream. Each is a generator, which is gone on with when other streams have had their turn, and
raises MismatchError where what it read is not what was written."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator

from fuzz import whatwg

from .context import Context
from .streams import Stream
from .writers import encoded, encoded_again, transcoded, translated

Reader = Callable[[Context, Stream], Iterator[None]]


def events(context: Context, stream: Stream) -> Iterator[None]:
    """Parser.feed, and what a Collector makes of the events."""
    from llmstream.result import Collector

    parser = context.package.Parser(**context.options(stream))
    collector = Collector()
    for chunk in context.chunks(stream.data):
        found = parser.feed(chunk)
        context.events += len(found)
        collector.extend(found)
        del found
        yield
    collector.extend(parser.close())
    context.fits(stream, collector.result(parser))


def text(context: Context, stream: Stream) -> Iterator[None]:
    """Parser.feed_text."""
    parser = context.package.Parser(**context.options(stream))
    found = []
    for chunk in context.chunks(stream.data):
        found.append(parser.feed_text(chunk))
        yield
    found.append(context.text_of(parser.close()))
    context.events += len(found)
    context.same("text", stream.text, "".join(found))
    context.says(stream, parser)


def payloads(context: Context, stream: Stream) -> Iterator[None]:
    """Parser.feed_payload: the framing is another reader's."""
    if stream.decoded is None:
        yield from events(context, stream)
        return
    parser = context.package.Parser(dialect=context.dialect(stream))
    found = []
    for number, (name, data, _) in enumerate(stream.decoded[0]):
        found.append(context.text_of(parser.feed_payload(data.encode(), None if name == "message" else name)))
        context.bytes += len(data)
        if number % 8 == 0:
            yield
    context.text_of(parser.close())
    context.same("text", stream.text, "".join(found))
    if stream.complete is not None:
        context.same("complete", stream.complete, parser.complete)


def server_sent_events(context: Context, stream: Stream) -> Iterator[None]:
    """SSEDecoder, against a reader that knows nothing but the WHATWG's words; now and then with some bytes damaged."""
    data, decoded = stream.data, stream.decoded
    if decoded is None:
        yield from events(context, stream)
        return
    if len(data) < 20_000 and context.rarely(0.5):
        data = damaged(context, data)
        decoded = whatwg.events(data)
    decoder = context.package.SSEDecoder()
    found = []
    for chunk in context.chunks(data):
        found += [(event.event, event.data, event.id) for event in decoder.feed(chunk)]
        yield
    decoder.close()
    context.events += len(found)
    context.same("decoded", decoded, (found, decoder.last_event_id, decoder.retry))


def damage(context: Context, stream: Stream) -> Iterator[None]:
    """A stream of the draft with some bytes changed shows what a naive reader shows."""
    if not stream.is_draft or len(stream.data) > 20_000:
        yield from events(context, stream)
        return
    data = damaged(context, stream.data)
    expected = whatwg.text_of_draft(data)
    parser = context.package.Parser()
    found = []
    for chunk in context.chunks(data):
        found.append(context.text_of(parser.feed(chunk)))
        yield
    found.append(context.text_of(parser.close()))
    if expected is not None:
        context.same("text", expected, "".join(found))


def damaged(context: Context, data: bytes) -> bytes:
    changed = bytearray(data)
    noise = (b"\n", b"\r", b"\xef\xbb\xbf", b'"', b"\\", b"\xff", b"\0", b"{", b":", b" ", b"data: ", b"\n\n", b"id:")
    for _ in range(context.random.randint(1, 4)):
        at = context.random.randint(0, len(changed))
        changed[at : at + context.random.choice((0, 1, 3))] = context.random.choice(noise)
    return bytes(changed)


def iterated(context: Context, stream: Stream) -> Iterator[None]:
    """iter_events over a generator of chunks."""
    found = []
    with context.package.iter_events(context.chunks(stream.data), **context.options(stream)) as events_of:
        for number, event in enumerate(events_of):
            context.events += 1
            if type(event) is context.package.ContentDelta:
                found.append(event.text)
            if number % 16 == 0:
                yield
    context.same("text", stream.text, "".join(found))
    context.says(stream, events_of.parser)


def iterated_text(context: Context, stream: Stream) -> Iterator[None]:
    """iter_text, which raises where the answer is not whole."""
    package, found, raised = context.package, [], None
    try:
        with package.iter_text(context.chunks(stream.data), **context.options(stream)) as texts:
            for piece in texts:
                found.append(piece)
                yield
    except package.LLMStreamError as error:
        raised = type(error)
    context.events += len(found)
    context.same("text", stream.text, "".join(found))
    expected = package.UpstreamError if stream.failed else None if stream.complete else package.IncompleteStreamError
    context.same("raised", expected, raised)


def parsed(context: Context, stream: Stream) -> Iterator[None]:
    """parse, of whatever holds bytes."""
    source = context.random.choice((bytes, bytearray, memoryview, io.BytesIO, context.chunks))(stream.data)
    context.bytes += 0 if hasattr(source, "send") else len(stream.data)
    yield
    context.fits(stream, context.package.parse(source, **context.options(stream)))
    context.events += 1


def observed(context: Context, stream: Stream) -> Iterator[None]:
    """An Observer: the same objects go on, and it tells what they said."""
    options = context.options(stream)
    options.pop("strict", None)
    observer = context.package.Observer(**options, digests=True, max_content_size=2**22)
    for chunk in context.chunks(stream.data):
        context.holds("another object passed", observer.feed(chunk) is chunk)
        yield
    found = observer.close()
    context.events += found.chunk_count
    context.same("text", stream.text, found.text)
    context.same("digest", hashlib.sha256(stream.text.encode()).digest(), found.text_sha256)
    context.same("wire", hashlib.sha256(stream.data).digest(), found.wire_sha256)
    context.same("unread", False, found.unread)
    context.says(stream, found)


def checked(context: Context, stream: Stream) -> Iterator[None]:
    """A Checker, of the draft's own streams."""
    if not stream.is_draft:
        yield from observed(context, stream)
        return
    checker = context.package.Checker(max_event_size=2**21)
    for chunk in context.chunks(stream.data):
        checker.feed(chunk)
        yield
    report = checker.close()
    context.events += report.event_count if hasattr(report, "event_count") else 1
    if stream.clean is not None:
        context.same("ok", stream.clean, report.ok)


def requests(context: Context, stream: Stream) -> Iterator[None]:
    """Request.from_json: the members are those that were written; a body that is cut is refused."""
    package = context.package
    messages = [{"role": "user", "content": stream.text or "a"}]
    value = {"version": "1.0", "stream": True, "model": "m", "messages": messages}
    body = json.dumps(value, ensure_ascii=context.rarely(0.5)).encode()
    yield
    context.same("request", value, json.loads(package.Request.from_json(body).to_json()))
    try:
        package.Request.from_json(body[: context.random.randint(0, len(body) - 1)])
    except package.RequestError:
        pass
    else:
        context.holds("a request that is cut was read", False)
    context.events += 2
    context.bytes += len(body)


READERS: tuple[Reader, ...] = (
    *(events, text, payloads, server_sent_events, damage, iterated, iterated_text, parsed),
    *(transcoded, translated, observed, checked, encoded, encoded_again, requests),
)
