"""Sources and callbacks that throw. What was thrown arrives; after it an object goes on as if nothing had been, or it
is closed, as each promises."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from fuzz import whatwg

import drafts

from .context import Context
from .readers import Reader
from .streams import Stream


class ThrownError(Exception):
    """What callbacks and sources throw here."""


def source(context: Context, stream: Stream) -> Iterator[None]:
    """A source throws: what was before it has come, the error is that of the source, and the iterator is over."""
    package, thrown, found, raised = context.package, ThrownError(), [], None
    streams = (package.iter_events, package.iter_text, package.transcode)
    read = context.random.choice(streams)
    events = read(_failing(context, stream, thrown), **context.options(stream))
    try:
        for item in events:
            found.append(item)
            yield
    except (ThrownError, package.LLMStreamError) as error:
        raised = error
    context.holds("another error", raised is thrown or isinstance(raised, package.UpstreamError))
    context.holds("it goes on", next(iter(events), None) is None)
    events.close()
    if read is package.transcode:
        output = b"".join(found)
        context.same("end", "stream.end", whatwg.events(output)[0][-1][0])
        context.holds("it looks whole", not events.transcoder.complete)
        text = whatwg.text_of_draft(output) or ""
    else:
        text = "".join(found) if read is package.iter_text else context.text_of(found)
    context.holds("a beginning of the text", stream.text.startswith(text))


def _failing(context: Context, stream: Stream, thrown: Exception) -> Iterator[Any]:
    """Throws before the last event is there."""
    yield from context.chunks(stream.data[: context.random.randint(0, len(stream.data) * 2 // 3)])
    context.thrown += 1
    raise thrown


def consumer(context: Context, stream: Stream) -> Iterator[None]:
    """Whoever reads throws: the source is closed."""
    closed = []

    def chunks() -> Iterator[Any]:
        try:
            yield from context.chunks(stream.data)
        finally:
            closed.append(True)

    most = context.random.randint(0, 20)
    try:
        with context.package.iter_events(chunks(), **context.options(stream)) as events:
            for number, _ in enumerate(events):
                if number == most:
                    context.thrown += 1
                    raise ThrownError
                yield
    except ThrownError:
        context.same("left", [], list(events))
    context.same("closed", [True], closed)


def dialect(context: Context, stream: Stream) -> Iterator[None]:
    """A dialect throws now and then: that is a violation, and all other payloads are read."""
    package, expected, thrown = context.package, [], [0]

    class Throwing(package.Dialect):  # type: ignore[misc, name-defined]
        name = "throwing"
        deltas = ()

        def translate(self, payload: Any, event: str | None) -> list[Any]:
            if payload["throws"]:
                thrown[0] += 1
                raise context.random.choice((ThrownError, KeyError, RecursionError, MemoryError, StopIteration))
            return [package.ContentDelta(text=payload["text"])]

    data = []
    for at in range(0, min(len(stream.text), 500), 5):
        throws = context.rarely(0.2)
        expected += [] if throws else [stream.text[at : at + 5]]
        data.append(drafts.sse(drafts.envelope("x", at, text=stream.text[at : at + 5], throws=throws)))
    parser = package.Parser(Throwing)
    found = []
    for chunk in context.chunks(b"".join(data)):
        found.append(context.text_of(parser.feed(chunk)))
        yield
    parser.close()
    context.thrown += thrown[0]
    context.same("text", "".join(expected), "".join(found))
    context.same("violations", thrown[0] + 1, parser.violation_count)  # and that it did not end


class Clock:
    """Throws every other time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> float:
        self.calls += 1
        if self.calls % 2:
            raise ThrownError
        return 1_700_000_000.0 + self.calls


def encoder(context: Context, stream: Stream) -> Iterator[None]:
    """The clock, an iterable of events and refused calls of an Encoder: each leaves it as it was."""
    package = context.package
    made = package.Encoder(clock=Clock())
    out: list[bytes] = []

    def events() -> Iterator[Any]:
        yield package.ContentDelta(text="b")
        raise ThrownError

    try:
        made.start("m")
    except ThrownError:
        out.append(made.start("m"))
    for at in range(0, min(len(stream.text), 400), 10):
        try:
            out.extend(made.encode_events(events()))
        except ThrownError:
            context.thrown += 1
        for text in ("\ud800", None, 5):
            with contextlib.suppress(TypeError, ValueError):
                made.delta(text)
        out.append(made.delta(stream.text[at : at + 10]))
        yield
    if not made.open_blocks:
        out.append(made.delta(""))
    out += [made.stop("end_turn"), made.usage(1, 1), made.end()]
    pieces = [stream.text[at : at + 10] for at in range(0, min(len(stream.text), 400), 10)]
    context.same("text", "".join("b" + piece for piece in pieces), whatwg.text_of_draft(b"".join(out)))
    context.events += len(out)


def observer(context: Context, stream: Stream) -> Iterator[None]:
    """The clock of an Observer: the chunk was not taken, and may be fed again."""
    options = context.options(stream)
    options.pop("strict", None)
    clock = Clock()
    made = context.package.Observer(**options, clock=clock, requested_at=0.0, max_content_size=2**22)
    for chunk in context.chunks(stream.data):
        try:
            made.feed(chunk)
        except ThrownError:
            context.thrown += 1
            made.feed(chunk)
        yield
    try:
        found = made.close()
    except ThrownError:
        found = made.close()
    context.same("text", stream.text, found.text)
    context.same("bytes", len(stream.data), found.byte_count)
    context.says(stream, found)


def rewriter(context: Context, stream: Stream) -> Iterator[None]:
    """The clock of a Transcoder or a StreamTranslator: what it should have written is lost, so it is closed, and what
    it ends with does not look whole."""
    options: dict[str, Any] = {**context.options(stream), "clock": Clock()}
    is_standard = context.rarely(0.5)
    package, vendor = context.package, context.random.choice(("openai", "anthropic", "gemini"))
    made = package.Transcoder(**options) if is_standard else package.StreamTranslator(vendor, **options)
    out, has_thrown = [], False
    try:
        for chunk in context.chunks(stream.data):
            out.append(made.feed(chunk))
            yield
    except ThrownError:
        has_thrown = True
        context.thrown += 1
        with contextlib.suppress(ValueError):
            made.feed(b"")
            context.holds("it is not closed", False)
    try:
        out.append(made.close())
    except ThrownError:
        has_thrown = True
        out.append(made.close())
    context.same("whole", stream.is_whole and not has_thrown, made.complete)
    result = package.parse(b"".join(out), dialect="llm-stream" if is_standard else vendor)
    context.same("whole for others", made.complete, result.complete and result.error is None)
    context.same("text", "" if has_thrown else stream.text, result.text)


READERS: tuple[Reader, ...] = (source, consumer, dialect, encoder, observer, rewriter)
