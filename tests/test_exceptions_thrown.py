"""What sources, callbacks and readers' own code throw: it arrives, and what it came through goes on as if it had not
been, or is closed and says so. A stream that lost something by it never looks whole."""

from __future__ import annotations

import asyncio
import gc
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest

import drafts
import vendors
from standard import CREATED
from streams import BODY, EVENTS, KINDS, TEXTS

TEXT = "".join(TEXTS)


class ThrownError(Exception):
    """What is thrown."""


class Interrupt(BaseException):
    """What is thrown and is no Exception, as KeyboardInterrupt."""


THROWN = pytest.mark.parametrize("kind", [ThrownError, ValueError, StopAsyncIteration, Interrupt, KeyboardInterrupt])


class Response:
    """Gives chunks, throws before the one of that number, and knows how often it and its iterator were closed."""

    headers = ()

    def __init__(self, chunks: Any, at: int, thrown: BaseException) -> None:
        self.chunks, self.at, self.thrown = chunks, at, thrown
        self.closed: list[str] = []

    def _next(self) -> Any:
        for number, chunk in enumerate([*self.chunks, b""]):
            if number == self.at:
                raise self.thrown
            yield chunk

    def iter_bytes(self) -> Any:
        try:
            yield from self._next()
        finally:
            self.closed.append("iterator")

    def close(self) -> None:
        self.closed.append("response")


class AsyncResponse(Response):
    iter_bytes = None  # type: ignore[assignment]

    async def aiter_bytes(self) -> Any:
        try:
            for chunk in self._next():
                await asyncio.sleep(0)
                yield chunk
        finally:
            self.closed.append("iterator")

    async def aclose(self) -> None:
        self.closed.append("response")

    def __getattribute__(self, name: str) -> Any:
        if name in ("iter_bytes", "close"):
            raise AttributeError(name)
        return super().__getattribute__(name)


def kinds_of(output: bytes) -> list[str]:
    return [line[7:] for line in output.decode().split("\n") if line.startswith("event: ")]


def caught(work: Any) -> BaseException | None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001 (whatever it is)
        return error
    return None


# Sources


READERS = {
    "parse": lambda package, source: package.parse(source),
    "check": lambda package, source: package.check(source),
    "audit": lambda package, source: import_module("llmstream.audit").audit(source, "s"),
}


@THROWN
@pytest.mark.parametrize("at", [0, 1, 5, len(EVENTS)])
@pytest.mark.parametrize("name", ["parse", "check"])
def test_a_source_of_a_whole_reader_throws(llmstream: Any, name: str, at: int, kind: Any) -> None:
    thrown = kind("thrown")
    response = Response(EVENTS, at, thrown)
    assert caught(lambda: READERS[name](llmstream, response)) is thrown
    assert response.closed == ["iterator", "response"]


@THROWN
@pytest.mark.parametrize("at", [0, 1, 5, len(EVENTS)])
def test_a_source_of_an_audit_throws(llmstream: Any, at: int, kind: Any) -> None:
    """There is a record all the same, unless it is an interrupt."""
    response = Response(EVENTS, at, kind("thrown"))
    if issubclass(kind, Exception):
        record = READERS["audit"](llmstream, response)
        assert (record.complete, record.byte_count) == (False, sum(map(len, EVENTS[:at])))
        assert record.fault == f"not read to its end: {kind.__name__}"
    else:
        assert caught(lambda: READERS["audit"](llmstream, response)) is response.thrown
    assert response.closed == ["iterator", "response"]


ITERATORS = {
    "iter_events": lambda package, source: package.iter_events(source),
    "iter_text": lambda package, source: package.iter_text(source),
    "transcode": lambda package, source: package.transcode(source),
    "translate_stream": lambda package, source: package.translate_stream(source, to="openai"),
}


@THROWN
@pytest.mark.parametrize("at", [0, 1, 5, len(EVENTS)])
@pytest.mark.parametrize("name", ITERATORS)
def test_a_source_of_an_iterator_throws(llmstream: Any, name: str, at: int, kind: Any) -> None:
    thrown = kind("thrown")
    response = Response(EVENTS, at, thrown)
    found: list[Any] = []
    items = ITERATORS[name](llmstream, response)
    assert caught(lambda: [found.append(item) for item in items]) is thrown
    _is_told(name, found, items, at, is_interrupt=not isinstance(thrown, Exception))
    assert response.closed == ["iterator", "response"]
    # It is over, and closing it does nothing more.
    assert next(iter(items), None) is None
    items.close()
    assert response.closed == ["iterator", "response"]


@THROWN
@pytest.mark.parametrize("at", [0, 1, 5, len(EVENTS)])
@pytest.mark.parametrize("name", ITERATORS)
def test_an_asynchronous_source_throws(llmstream: Any, name: str, at: int, kind: Any) -> None:
    if kind is KeyboardInterrupt:
        kind = Interrupt  # the loop itself would end
    thrown = kind("thrown")
    response = AsyncResponse(EVENTS, at, thrown)
    found: list[Any] = []

    async def read() -> Any:
        make = {"iter_events": llmstream.aiter_events, "iter_text": llmstream.aiter_text}
        if name in make:
            items = make[name](response)
        elif name == "transcode":
            items = llmstream.atranscode(response)
        else:
            items = llmstream.atranslate_stream(response, to="openai")
        error = None
        try:
            async for item in items:
                found.append(item)  # noqa: PERF401 (it throws)
        except BaseException as raised:  # noqa: BLE001 (whatever it is)
            error = raised
        assert await anext(aiter(items), None) is None
        await items.aclose()
        return items, error

    items, error = asyncio.run(read())
    if kind is StopAsyncIteration:
        # Python does not let it out of an asynchronous generator: it comes as the cause of a RuntimeError.
        assert isinstance(error, RuntimeError)
    else:
        assert error is thrown
    _is_told(name, found, items, at, is_interrupt=not isinstance(thrown, Exception))
    assert response.closed == ["iterator", "response"]


def _is_told(name: str, found: list[Any], items: Any, at: int, *, is_interrupt: bool) -> None:
    """What was there before the exception has come, and nothing says that the stream was whole."""
    if name == "iter_events":
        assert [event.type for event in found] == KINDS[:at]
        assert items.parser.complete == (at > len(EVENTS) - 1)
    elif name == "iter_text":
        assert "".join(found) == "".join(TEXTS[: max(0, at - 1)])
    elif at > len(EVENTS) - 1:
        assert items.transcoder.complete  # all of it had come
    else:
        assert not items.transcoder.complete
        written = b"".join(found)
        if name == "transcode":
            # Whoever gets the bytes sees it. An interrupt ends it at once.
            ending = [] if is_interrupt else ["error", "stream.end"]
            begun = KINDS[:at] or ([] if is_interrupt else ["stream.start"])
            assert kinds_of(written) == begun + ending
        elif not is_interrupt:
            assert b'"error"' in written
        assert b"[DONE]" not in written


@pytest.mark.parametrize("item", ["text", None, 5, object(), memoryview(b"abcd")[::2]])
def test_a_source_gives_what_is_no_bytes(llmstream: Any, item: Any) -> None:
    """It is closed as where it throws."""
    for name, make in {**READERS, **ITERATORS}.items():
        if name == "audit":
            continue
        response = Response([EVENTS[0], item, *EVENTS[1:]], 100, ThrownError())
        work = (lambda make=make, response=response: make(llmstream, response)) if name in READERS else None
        if work is not None:
            error = caught(work)
        else:
            items = make(llmstream, response)
            error = caught(lambda items=items: list(items))
            assert next(iter(items), None) is None
        assert isinstance(error, (TypeError, ValueError, BufferError))
        assert response.closed == ["iterator", "response"]


def test_a_source_cannot_be_begun(llmstream: Any) -> None:
    class Unreadable:
        def __iter__(self) -> Any:
            raise ThrownError

    for make in (*READERS.values(), *ITERATORS.values()):
        with pytest.raises(ThrownError):
            make(llmstream, Unreadable())


@pytest.mark.parametrize("kind", [ThrownError, Interrupt])
def test_iterables_of_events_throw(llmstream: Any, kind: Any) -> None:
    events = llmstream.Parser().feed(BODY)

    def failing(most: int) -> Any:
        yield from events[:most]
        raise kind

    found: list[Any] = []
    late = [events[0], events[2]]  # the second waits for the one before it

    def out_of_order() -> Any:
        yield from late
        raise kind

    in_order = llmstream.reorder(out_of_order())
    with pytest.raises(kind):
        found.extend([next(in_order), next(in_order)])
    assert next(in_order, None) is None

    # An Encoder goes on with the next number.
    encoder = llmstream.Encoder()
    out: list[bytes] = []
    with pytest.raises(kind):
        out.extend(encoder.encode_events(failing(3)))
    assert (encoder.next_seq, encoder.state) == (3, "streaming")
    rest = b"".join(encoder.encode_events(events[3:]))
    assert kinds_of(rest) == KINDS[3:]

    # One in which an event is none.
    encoder = llmstream.Encoder()
    with pytest.raises(TypeError):
        list(encoder.encode_events([*events[:2], "text"]))
    assert (encoder.next_seq, encoder.state) == (2, "streaming")


def test_an_asynchronous_iterable_of_events_throws(llmstream: Any) -> None:
    events = llmstream.Parser().feed(BODY)
    encoder = llmstream.Encoder()

    async def failing() -> Any:
        yield events[0]
        raise ThrownError

    async def read() -> list[bytes]:
        return [data async for data in encoder.aencode_events(failing())]

    with pytest.raises(ThrownError):
        asyncio.run(read())
    assert (encoder.next_seq, encoder.state) == (1, "streaming")


# Whoever reads


@THROWN
@pytest.mark.parametrize("name", ITERATORS)
def test_a_reader_throws(llmstream: Any, name: str, kind: Any) -> None:
    response = Response(EVENTS, 100, ThrownError())
    thrown = kind("thrown")

    def read() -> None:
        with ITERATORS[name](llmstream, response) as items:
            for _ in items:
                raise thrown

    assert caught(read) is thrown
    assert response.closed == ["iterator", "response"]


@pytest.mark.parametrize("name", ["aiter_events", "aiter_text", "atranscode"])
def test_an_asynchronous_reader_throws(llmstream: Any, name: str) -> None:
    response = AsyncResponse(EVENTS, 100, ThrownError())

    async def read() -> None:
        async with getattr(llmstream, name)(response) as items:
            async for _ in items:
                raise ThrownError

    with pytest.raises(ThrownError):
        asyncio.run(read())
    assert response.closed == ["iterator", "response"]


def test_closing_throws(llmstream: Any) -> None:
    class Failing(Response):
        def close(self) -> None:
            super().close()
            raise ThrownError

    for make in ITERATORS.values():
        response = Failing(EVENTS, 100, ValueError())
        items = make(llmstream, response)
        with pytest.raises(ThrownError):
            items.close()
        items.close()  # it is closed
        assert next(iter(items), None) is None
        assert response.closed == ["response"]


# A parser


def numbered(count: int, throws: Any = ()) -> bytes:
    payloads = [drafts.sse(vendors.compact({"t": str(number), "x": number in throws})) for number in range(count)]
    return b"".join([*payloads, drafts.sse('{"r":"stop"}')])


def throwing(llmstream: Any, kind: Any, hook: str = "translate", **members: Any) -> Any:
    """A dialect that throws in one of its methods; in ``translate`` for a payload that says so."""

    def throw(self: Any, *arguments: Any) -> Any:
        if hook != "translate" or arguments[0].get("x"):
            raise kind
        return super(made, self).translate(*arguments)

    paths = {"name": "throwing", "text": "t", "stop_reason": "r", "input_tokens": "i", "output_tokens": "o"}
    if hook == "translate":
        paths["deltas"] = ()  # type: ignore[assignment]  # each payload is asked for
    made: Any = type("Throwing", (llmstream.Dialect,), {**paths, hook: throw, **members})
    return made


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("kind", [ThrownError, KeyError, RecursionError, MemoryError, StopIteration, UnicodeError])
def test_a_dialect_throws(llmstream: Any, kind: Any, size: int) -> None:
    """A violation each time; what it did not throw for is read."""
    data = numbered(6, throws=(0, 2, 3))
    parser = llmstream.Parser(throwing(llmstream, kind))
    events = [event for at in range(0, len(data), size) for event in parser.feed(data[at : at + size])]
    events += parser.close()
    assert [event.text for event in events if event.type == "content.delta"] == ["1", "4", "5"]
    assert [violation.requirement for violation in parser.violations] == ["L-PAYLOAD"] * 3
    assert parser.complete


@pytest.mark.parametrize("hook", ["finish", "touch", "counted", "append_arguments", "bare", "recognises"])
def test_another_method_of_a_dialect_throws(llmstream: Any, hook: str) -> None:
    parser = llmstream.Parser(throwing(llmstream, ThrownError, hook))
    data = drafts.sse('{"t":"a","i":1,"o":2}') * 3 + drafts.sse('{"r":"stop"}')
    events = parser.feed(data) + parser.feed(data) + parser.feed(b'{"error":{"message":"m"}}') + parser.close()
    assert [event.text for event in events if event.type == "content.delta"] == ["a"] * 6
    assert {violation.requirement for violation in parser.violations} <= {"L-PAYLOAD", "L-STRAY", "R5.3.7-2"}
    assert parser.close() == []


def test_a_strict_parser_whose_dialect_throws_is_closed(llmstream: Any) -> None:
    parser = llmstream.Parser(throwing(llmstream, ThrownError), strict=True)
    with pytest.raises(llmstream.LLMStreamError) as error:
        parser.feed(numbered(4, throws=(2,)))
    assert [event.text for event in error.value.events if event.type == "content.delta"] == ["0", "1"]
    with pytest.raises(ValueError, match="closed"):
        parser.feed(b"")
    assert (parser.close(), parser.complete) == ([], False)


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("kind", [Interrupt, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_closes_a_parser(llmstream: Any, kind: Any, size: int) -> None:
    """What is no Exception comes out of ``feed``, with it is lost what was being read; so nothing more is."""
    data = numbered(6, throws=(2,))
    parser = llmstream.Parser(throwing(llmstream, kind))
    events: list[Any] = []
    raised = []
    for at in range(0, len(data), size):
        try:
            events += parser.feed(data[at : at + size])
        except (kind, ValueError) as error:
            raised.append(type(error))
    assert raised[:1] == [kind]
    assert set(raised[1:]) <= {ValueError}
    assert [event.text for event in events if event.type == "content.delta"] in (["0", "1"], [])
    with pytest.raises(ValueError, match="closed"):
        parser.feed(b"")
    assert (parser.close(), parser.complete) == ([], False)


@pytest.mark.parametrize("method", ["feed_text", "feed_summary", "feed_payload", "close"])
def test_an_interrupt_closes_a_parser_however_it_is_fed(llmstream: Any, method: str) -> None:
    parser = llmstream.Parser(throwing(llmstream, Interrupt, "finish" if method == "close" else "translate"))
    data = b'{"t":"a","x":1}' if method == "feed_payload" else numbered(3, throws=(1,))
    with pytest.raises(Interrupt):
        getattr(parser, method)(*([] if method == "close" else [data]))
    for again in (parser.feed, parser.feed_text, parser.feed_summary, parser.feed_payload):
        with pytest.raises(ValueError, match="closed"):
            again(b"{}")
    assert (parser.close(), parser.complete) == ([], False)


@pytest.mark.parametrize("method", ["feed", "close", "make"])
def test_a_framing_throws(llmstream: Any, method: str) -> None:
    """As a dialect, it is code of others: what it throws is a violation, and nothing after it is read."""
    framing = import_module("llmstream.framing")

    class Throwing(framing.Framing):  # type: ignore[name-defined, misc]
        def feed(self, chunk: bytes) -> list[Any]:
            if method == "feed" and chunk == b"3":
                raise ThrownError
            return [framing.Frame(None, b'{"t":"%b"}' % chunk, 0)]

        def close(self) -> list[Any]:
            raise ThrownError

    def make(size: int) -> Any:
        if method == "make":
            raise ThrownError
        return Throwing(size)

    dialect = type("Framed", (llmstream.Dialect,), {"name": "framed", "text": "t", "framings": {ord("1"): make}})
    parser = llmstream.Parser(dialect)
    events = [event for chunk in (b"1", b"2", b"3", b"4") for event in parser.feed(chunk)] + parser.close()
    read = {"feed": ["1", "2"], "close": ["1", "2", "3", "4"], "make": []}[method]
    assert [event.text for event in events if event.type == "content.delta"] == read
    assert "L-FRAMING" in [violation.requirement for violation in parser.violations]
    assert not parser.complete


def test_a_dialect_cannot_be_made(llmstream: Any) -> None:
    def make() -> Any:
        raise ThrownError

    for of in (llmstream.Parser, llmstream.Observer, llmstream.Transcoder):
        with pytest.raises(ThrownError):
            of(make)
    response = Response(EVENTS, 100, ValueError())
    for read in (llmstream.iter_events, llmstream.iter_text, llmstream.parse, llmstream.transcode):
        with pytest.raises(ThrownError):
            read(response, dialect=make)


FED = ("Parser", "SSEDecoder", "Transcoder", "StreamTranslator", "Observer", "Checker", "Auditor")


@pytest.mark.parametrize("made", FED)
@pytest.mark.parametrize("chunk", ["text", None, 5, memoryview(b"abcd")[::2]])
def test_what_is_no_chunk_changes_nothing(llmstream: Any, made: str, chunk: Any) -> None:
    def read(chunks: Any) -> Any:
        clock = {"clock": lambda: 1.0} if made in ("Transcoder", "StreamTranslator", "Observer") else {}
        make = import_module("llmstream.audit").Auditor if made == "Auditor" else getattr(llmstream, made)
        reader = make(*(["openai"] if made == "StreamTranslator" else []), **clock)
        found: list[Any] = []
        for each in chunks:
            with suppress(TypeError, ValueError, BufferError):
                found.append(reader.feed(each))
        found = [each for each in found if each]
        closed = reader.close()
        return closed if made == "Auditor" else (found, closed)

    half = len(BODY) // 2
    assert read([chunk, BODY[:half], chunk, BODY[half:], chunk]) == read([BODY[:half], BODY[half:]])


# Callbacks of what writes and observes


class Clock:
    """Throws where it is asked for the times of these numbers."""

    def __init__(self, kind: Any, *numbers: int) -> None:
        self.kind, self.numbers, self.calls = kind, numbers, 0

    def __call__(self) -> float:
        self.calls += 1
        if self.calls - 1 in self.numbers:
            raise self.kind
        return float(CREATED)


@THROWN
def test_the_clock_of_an_encoder_throws(llmstream: Any, kind: Any) -> None:
    encoder = llmstream.Encoder(clock=Clock(kind, 0))
    with pytest.raises(kind):
        encoder.start("m")
    assert (encoder.state, encoder.next_seq, encoder.open_blocks) == ("new", 0, [])
    assert encoder.start("m") == llmstream.Encoder(clock=Clock(kind)).start("m")
    failing = llmstream.Encoder(clock=Clock(kind, 0))
    with pytest.raises(kind):
        failing.fail()
    assert kinds_of(failing.fail()) == ["stream.start", "error", "stream.end"]


@THROWN
def test_extensions_of_an_encoder_throw(llmstream: Any, kind: Any) -> None:
    class Throwing(dict):  # type: ignore[type-arg]
        def throw(self, *arguments: Any) -> Any:
            raise kind

        items = keys = __iter__ = __getitem__ = __len__ = throw

    def written(extensions: Any) -> bytes:
        encoder = llmstream.Encoder(clock=Clock(kind))
        out = []
        calls = [
            *(lambda more: encoder.start("m", **more), lambda more: encoder.delta("a", **more)),
            *(lambda more: encoder.delta("b", **more), lambda more: encoder.tool_call("c", "f", "{}", **more)),
            *(lambda more: encoder.stop("end_turn", **more), lambda more: encoder.usage(1, 2, **more)),
            lambda more: encoder.end(**more),
        ]
        for call in calls:
            if extensions is not None:
                before = encoder.state, encoder.next_seq, encoder.open_blocks
                with pytest.raises((kind, TypeError, ValueError)):
                    call({"extensions": extensions})
                assert (encoder.state, encoder.next_seq, encoder.open_blocks) == before
            out.append(call({}))
        return b"".join(out)

    assert written(Throwing({"a:b": 1})) == written({"a:b": Throwing({"c": 1})}) == written(None)


REWRITERS = {
    "transcoder": lambda package, clock: package.Transcoder("anthropic", clock=clock),
    **{
        f"to {vendor}": lambda package, clock, vendor=vendor: package.StreamTranslator(vendor, "anthropic", clock=clock)
        for vendor in vendors.VENDORS
    },
}


@THROWN
@pytest.mark.parametrize("size", [1, 200, 10_000])
@pytest.mark.parametrize("name", REWRITERS)
def test_the_clock_of_a_rewriter_throws(llmstream: Any, name: str, size: int, kind: Any) -> None:
    """The events that were to be written are lost, and so it is closed; what it ends with does not look whole."""
    data = b"".join(vendors.anthropic(["a", "b"]))
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    made = REWRITERS[name](llmstream, Clock(kind, 0))
    left_out = kind is ValueError and name == "transcoder"  # as a member that cannot be written
    out = []
    raised = []
    for chunk in chunks:
        try:
            out.append(made.feed(chunk))
        except (kind, ValueError) as error:
            raised.append(type(error))
    if left_out:
        assert raised == []
    else:
        assert raised[0] is kind
        assert set(raised[1:]) <= {ValueError}  # it is closed
        with pytest.raises(ValueError, match="closed"):
            made.feed(b"")
    out.append(made.close())
    assert (made.complete, made.ended, made.close(), made.fail()) == (False, True, b"", b"")
    dialect = "llm-stream" if name == "transcoder" else name.removeprefix("to ")
    result = llmstream.parse(b"".join(out), dialect=dialect)
    assert result.error is not None
    if name == "transcoder":
        assert llmstream.check(b"".join(out)).ok
    else:
        assert not result.complete


@pytest.mark.parametrize("name", REWRITERS)
def test_the_clock_of_a_rewriter_throws_at_the_end(llmstream: Any, name: str) -> None:
    """An ending that could not be written is written by the next call."""
    for numbers in ((0,), (0, 1), (0, 1, 2)):
        made = REWRITERS[name](llmstream, Clock(ThrownError, *numbers))
        for _ in numbers:
            with pytest.raises(ThrownError):
                made.fail("overloaded", "m")
        ending = made.fail("overloaded", "m")
        assert llmstream.parse(ending, dialect=name.removeprefix("to ") if " " in name else "llm-stream").error
        assert (made.ended, made.complete, made.close()) == (True, False, b"")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", ["transcode", "translate_stream"])
def test_the_clock_of_an_iterator_of_bytes_throws(llmstream: Any, name: str, is_async: bool) -> None:
    """The bytes that went out tell of it."""
    data = vendors.anthropic(["a", "b"])
    options: dict[str, Any] = {"dialect": "anthropic", "clock": Clock(ThrownError, 0)}
    if name == "translate_stream":
        options["to"] = "openai"
    found: list[bytes] = []
    response: Any = (AsyncResponse if is_async else Response)(data, 100, ValueError())

    async def read() -> None:
        async with getattr(llmstream, "a" + name)(response, **options) as pieces:
            async for piece in pieces:
                found.append(piece)  # noqa: PERF401 (it throws)

    def read_now() -> None:
        for piece in getattr(llmstream, name)(response, **options):
            found.append(piece)  # noqa: PERF402 (as above)

    assert type(caught(lambda: asyncio.run(read()) if is_async else read_now())) is ThrownError
    result = llmstream.parse(b"".join(found), dialect="llm-stream" if name == "transcode" else "openai")
    assert result.error is not None
    assert response.closed == ["iterator", "response"]


@THROWN
@pytest.mark.parametrize("vendor", vendors.VENDORS)
def test_the_clock_of_a_writer_throws(llmstream: Any, vendor: str, kind: Any) -> None:
    events = llmstream.Parser("anthropic").feed(b"".join(vendors.anthropic(["a"], ["t"], ['{"a":1}'])))

    def written(clock: Any) -> bytes:
        writer = llmstream.writer_for(vendor, clock=clock)
        out = []
        for event in events:
            if clock.calls < len(clock.numbers):
                with pytest.raises(kind):
                    writer.write(event)
            out.append(writer.write(event))
        return b"".join([*out, writer.close()])

    assert written(Clock(kind, 0)) == written(Clock(kind))
    assert written(Clock(kind, 0)).count(b"\n\n") > 2


@THROWN
def test_the_clock_of_an_observer_throws(llmstream: Any, kind: Any) -> None:
    """Before it takes anything in: the chunk may be fed again."""

    def observed(clock: Any) -> Any:
        observer = llmstream.Observer(clock=clock, requested_at=0.0, max_content_size=1000, digests=True)
        for chunk in EVENTS:
            try:
                observer.feed(chunk)
            except kind:
                assert observer.feed(chunk) is chunk
        try:
            return observer.close()
        except kind:
            return observer.close()

    calls = len(EVENTS) + 1
    found = observed(Clock(kind, *range(0, 2 * calls, 2)))
    assert found == observed(Clock(kind))
    assert (found.text, found.complete, found.unread) == (TEXT, True, False)


def test_the_dialect_of_an_observer_is_interrupted(llmstream: Any) -> None:
    """It goes on with the bytes, and says that not all was read."""
    data = numbered(4, throws=(1,))
    observer = llmstream.Observer(throwing(llmstream, Interrupt), digests=True)
    with pytest.raises(Interrupt):
        observer.feed(data)
    assert observer.feed(data) is data
    found = observer.close()
    assert (found.unread, found.complete, found.byte_count) == (True, False, 2 * len(data))


def test_the_dialect_of_an_auditor_is_interrupted(llmstream: Any) -> None:
    data = numbered(4, throws=(1,))
    auditor = import_module("llmstream.audit").Auditor("s", dialect=throwing(llmstream, Interrupt))
    with pytest.raises(Interrupt):
        auditor.feed(data)
    assert auditor.feed(data) is data
    record = auditor.close()
    assert (record.fault, record.complete, record.byte_count) == ("reading failed: Interrupt", False, 2 * len(data))


def test_the_clock_of_an_auditor_throws(llmstream: Any) -> None:
    audit = import_module("llmstream.audit")
    auditor = audit.Auditor("s", clock=Clock(ThrownError, 1))  # when the first token comes
    for chunk in EVENTS:
        auditor.feed(chunk)
    record = auditor.close()
    assert (record.complete, record.byte_count) == (False, len(BODY))
    assert "ThrownError" in record.fault
    with pytest.raises(ThrownError):
        audit.Auditor("s", clock=Clock(ThrownError, 0))


# Callbacks of a request's tools


def test_the_callbacks_for_tool_calls_throw(llmstream: Any) -> None:
    """No call is approved by it, and nothing is kept from one time to the next."""
    tools = [llmstream.Tool(name="f", description="d", parameters={"type": "object"})]
    calls = [llmstream.ToolCall(id=f"c{number}", name="f", arguments="{}", index=0) for number in range(3)]
    asked: list[str] = []

    def confirm(call: Any, tool: Any) -> bool:
        asked.append(call.id)
        if call.id == "c1":
            raise ThrownError
        return True

    with pytest.raises(ThrownError):
        llmstream.screen_tool_calls(calls, tools, confirm=confirm, schema=lambda *_: ())
    assert asked == ["c0", "c1"]

    def schema(parameters: Any, arguments: Any) -> Any:
        yield from ()
        raise ThrownError

    with pytest.raises(ThrownError):
        llmstream.check_tool_call(calls[0], tools, schema=schema)
    assert llmstream.check_tool_call(calls[0], tools, schema=lambda *_: ()) == []

    def unreadable() -> Any:
        yield calls[0]
        raise ThrownError

    with pytest.raises(ThrownError):
        llmstream.screen_tool_calls(unreadable(), tools, confirm=lambda *_: True, schema=lambda *_: ())


# Callbacks of a tap


def test_what_a_tap_calls_throws(llmstream: Any) -> None:
    """It comes out of ``feed``; the tap may be fed on, and only what the callback did not take is missing."""
    taps = import_module("llmstream.integrations.http.taps")
    seen: list[str] = []

    def on_event(event: Any) -> None:
        if event.seq == 2:
            raise ThrownError
        seen.append(event.type)

    tap = taps.EventTap(on_event, "llm-stream")
    for number, chunk in enumerate(EVENTS):
        error = caught(lambda chunk=chunk: tap.feed(chunk))
        assert (type(error) is ThrownError) == (number == 2)
    assert tap.close().complete
    assert seen == KINDS[:2] + KINDS[3:]

    def on_text(text: str) -> None:
        raise ThrownError

    text_tap = taps.TextTap(on_text, "llm-stream")
    errors = [caught(lambda chunk=chunk: text_tap.feed(chunk)) for chunk in EVENTS]
    assert sum(error is not None for error in errors) == len(TEXTS)
    assert text_tap.close().complete


def test_a_guarded_tap_keeps_faults_from_the_stream(llmstream: Any, caplog: Any) -> None:
    taps = import_module("llmstream.integrations.http.taps")

    def on_end(result: Any) -> None:
        raise ThrownError("SECRET")

    def on_event(event: Any) -> None:
        raise ThrownError("SECRET")

    guarded = taps.GuardedTap(taps.EventTap(on_event, "llm-stream"), on_end, "")
    for chunk in EVENTS:
        guarded.feed(chunk)
    guarded.close()
    guarded.close()
    assert [record.getMessage().count("ThrownError") for record in caplog.records] == [1, 1]
    assert "SECRET" not in caplog.text


def test_nothing_that_was_thrown_is_kept(llmstream: Any) -> None:
    """No parser, writer or iterator that goes on holds on to an exception, and so to the frames of whoever threw it."""
    kept = [
        llmstream.Encoder(clock=Clock(ThrownError, 0)),
        llmstream.Observer(clock=Clock(ThrownError, 0), requested_at=0.0),
        llmstream.Transcoder("anthropic", clock=Clock(ThrownError, 0)),
        llmstream.Parser(throwing(llmstream, ThrownError)),
    ]
    for made in kept:
        with suppress(ThrownError):
            made.start("m") if hasattr(made, "start") else made.feed(numbered(2, throws=(1,)))
    with suppress(ThrownError):
        kept[2].feed(b"".join(vendors.anthropic(["a"])))
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, ThrownError)]


def test_an_interrupt_closes_a_decoder(llmstream: Any) -> None:
    """It may break off anywhere, and what is read after that may be no event of the stream."""
    if llmstream.implementation == "cython":
        pytest.skip("no code of Python's runs while the compiled decoder reads")
    data = b"data: a\ndata: b\n\ndata: c"

    def interrupted(at: int) -> Any:
        decoder, calls, reads = llmstream.SSEDecoder(), 0, False

        def count(frame: Any, event: str, _: Any) -> None:
            nonlocal calls, reads
            if event != "call" or not frame.f_code.co_filename.endswith("_framing_py.py"):
                return
            calls += reads
            reads = reads or frame.f_code.co_name == "_begin"
            if calls == at:
                raise Interrupt

        sys.setprofile(count)
        try:
            decoder.feed(data)
        except Interrupt:
            return decoder
        finally:
            sys.setprofile(None)
        return None

    decoders: list[Any] = []
    while (decoder := interrupted(1 + len(decoders))) is not None:
        decoders.append(decoder)
    assert len(decoders) > 2
    for decoder in decoders:
        with pytest.raises(ValueError, match="closed"):
            decoder.feed(b"\n\n")


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "gemini"])
def test_a_writer_that_is_interrupted_at_its_end_has_not_ended(llmstream: Any, vendor: str) -> None:
    translation = import_module("llmstream.translation")
    writer = translation.writer_for(vendor)
    kind = type(writer)

    class Interrupted(kind):  # type: ignore[misc, valid-type]
        interrupts = True

        def _write_end(self, *parts: Any) -> Any:
            if self.interrupts:
                raise Interrupt
            return super()._write_end(*parts)

    writer = Interrupted()
    for event in llmstream.Parser().feed(drafts.start(0) + drafts.delta(1, "a") + drafts.stop(2)):
        writer.write(event)
    with pytest.raises(Interrupt):
        writer.write(llmstream.StreamEnd())
    assert not writer.ended
    assert not writer.complete
    assert b"error" in writer.close()
    assert not writer.complete
