"""How the public names look to a type checker. Checked by mypy and pyright (tests/test_types.py), never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_type

import llmstream


def events(parser: llmstream.Parser, chunk: bytes | bytearray | memoryview) -> None:
    assert_type(parser.feed_text(chunk), str)
    assert_type(parser.complete, bool)
    assert_type(parser.gaps, list[tuple[int, int]])
    assert_type(parser.next_seq, int)
    assert_type(parser.retry, int | None)
    assert_type(parser.last_event_id, str)
    assert_type(parser.shape_hits, int)
    assert_type(parser.usage, llmstream.Usage | None)
    assert_type(parser.error, llmstream.StreamError | None)
    assert_type(parser.violations, list[llmstream.Violation])
    assert_type(parser.violation_count, int)
    for violation in parser.violations:
        assert_type(violation.requirement, str)
        assert_type(violation.event, int)
        assert_type(violation.offset, int)
    llmstream.Parser("openai", strict=True, max_event_size=10, max_depth=5, errors="strict", shapes=False)
    llmstream.Parser(llmstream.Dialect)


def matched(event: llmstream.Event) -> None:
    assert_type(event.seq, int | None)
    assert_type(event.raw, bytes)
    assert_type(event.type, str)
    assert_type(event.extensions, dict[str, Any])
    assert_type(event.json(), Any)
    match event:
        case llmstream.StreamStart(model=model, created=created, request_id=request_id):
            assert_type(model, str | None)
            assert_type(created, int | None)
            assert_type(request_id, str | None)
        case llmstream.ContentDelta(text=text, index=index, role=role, reasoning=reasoning):
            assert_type(text, str)
            assert_type(index, int)
            assert_type(role, str)
            assert_type(reasoning, str | None)
        case llmstream.ContentStop(stop_reason=stop_reason, index=stopped):
            assert_type(stop_reason, str | None)
            assert_type(stopped, int)
        case llmstream.ToolCall(id=call, name=name, arguments=arguments):
            assert_type(call, str | None)
            assert_type(name, str | None)
            assert_type(arguments, str | None)
        case llmstream.Usage(input_tokens=first, output_tokens=second):
            assert_type(first, int | None)
            assert_type(second, int | None)
        case llmstream.StreamError(code=code, message=message):
            assert_type(code, str | None)
            assert_type(message, str | None)
        case llmstream.StreamEnd(request_id=echoed):
            assert_type(echoed, str | None)
        case _:
            assert_type(event, llmstream.Event)


def made(extensions: Mapping[str, Any]) -> None:
    assert_type(llmstream.ContentDelta(text="a", index=1, seq=2, extensions=extensions).text, str)
    assert_type(llmstream.UnknownEvent(type="x").type, str)
    assert_type(llmstream.ServerSentEvent("e", "d", "1", 5).retry, int | None)


def framed(decoder: llmstream.SSEDecoder, chunk: bytes) -> None:
    for event in decoder.feed(chunk):
        assert_type(event, llmstream.ServerSentEvent)
        assert_type(event.event, str)
        assert_type(event.data, str)
        assert_type(event.id, str)
        assert_type(event.complete, bool)
    assert_type(decoder.close(), list[llmstream.ServerSentEvent])
    assert_type(decoder.retry, int | None)


def failed(error: llmstream.LLMStreamError, upstream: llmstream.UpstreamError) -> None:
    assert_type(error.seq, int | None)
    assert_type(error.offset, int | None)
    assert_type(error.events, list[Any])
    assert_type(upstream.code, str)
    assert_type(upstream.message, str)


def transcoded(chunk: bytes, source: list[bytes]) -> None:
    transcoder = llmstream.Transcoder("openai", model="m", request_id="r", reasoning="drop", max_event_size=10)
    assert_type(transcoder.feed(chunk), bytes)
    assert_type(transcoder.close(), bytes)
    assert_type(transcoder.fail("overloaded", "words"), bytes)
    assert_type(transcoder.complete, bool)
    assert_type(transcoder.error, llmstream.StreamError | None)
    assert_type(transcoder.stop_reasons, dict[int, str])
    assert_type(transcoder.usage, llmstream.Usage | None)
    assert_type(transcoder.violations, list[llmstream.Violation])
    with llmstream.transcode(source, dialect=llmstream.Dialect, clock=lambda: 5) as pieces:
        for piece in pieces:
            assert_type(piece, bytes)
        assert_type(pieces.transcoder, llmstream.Transcoder)
    with llmstream.translate_stream(source, to="openai", strict=True) as output:
        for piece in output:
            assert_type(piece, bytes)
        assert_type(output.transcoder, llmstream.StreamTranslator)
        assert_type(output.transcoder.complete, bool)
    llmstream.Transcoder(reasoning="text")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def refused(parser: llmstream.Parser, event: llmstream.ContentDelta) -> None:
    parser.feed("text")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    event.text = "x"  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]
    llmstream.ContentDelta("x")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    llmstream.Parser(unknown=1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def observed(chunk: bytes, view: memoryview) -> None:
    observer = llmstream.Observer("openai", max_content_size=10, digests=True, max_event_size=10)
    assert_type(observer.feed(chunk), bytes)
    assert_type(observer.feed(view), memoryview)
    observation = observer.close()
    assert_type(observation, llmstream.Observation)
    assert_type(observation.model, str | None)
    assert_type(observation.stop_reasons, dict[int, str])
    assert_type(observation.time_to_first_text, float | None)
    assert_type(observation.chunk_intervals.mean, float | None)
    for call in observation.tool_calls:
        assert_type(call.arguments, str | None)
