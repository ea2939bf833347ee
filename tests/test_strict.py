"""Strict reading: the first error is raised, after the events before it; nothing it says holds text of the stream."""

from __future__ import annotations

import copy
import pickle
import traceback

import pytest

import drafts
import splits
from drafts import REMOVE, delta, end, envelope, error, event, sse, start, stop, tool_call, usage, whole

HEAD = start()
SECRET = "S3CRET"


def fail(llmstream, data, **options):
    """What a strict parser raises, and the events before it."""
    chunks = [data] if isinstance(data, bytes) else data
    parser = llmstream.Parser(strict=True, **options)
    events = []
    try:
        for chunk in chunks:
            events += parser.feed(chunk)
        events += parser.close()
    except llmstream.LLMStreamError as error:
        return parser, error, events + error.events
    return pytest.fail(f"nothing was raised: {events}")


@pytest.mark.parametrize(
    ("data", "kind", "rule"),
    [
        (sse("{", "x"), "EnvelopeError", "R5.1-3"),
        (sse("[]", "x"), "EnvelopeError", "R5.1-3"),
        (sse("[DONE]"), "EnvelopeError", "R5.1-3"),
        (delta(1, v="2.0"), "EnvelopeError", "R5.2-1"),
        (delta(1, type="usage"), "EnvelopeError", "R5.2-5"),
        (delta(1, type=None), "EnvelopeError", "R5.2-4"),
        (delta(1, raw_seq="null"), "SequenceError", "R5.2-2"),
        (delta(1, raw_seq="1.0"), "SequenceError", "R5.2-2"),
        (delta(1, raw_seq="-0"), "SequenceError", "R5.2-2"),
        (delta(0), "SequenceError", "R5.2.1-1"),
        (delta(3), "SequenceError", "R5.2.1-3"),
        (delta(1, index=REMOVE), "EnvelopeError", "R5.3.2-1"),
        (delta(1, role="user"), "EnvelopeError", "R5.3.2-1"),
        (delta(1, delta={}), "EnvelopeError", "R5.3.2-2"),
        (delta(1, raw_delta='{"text":"\\ud83d"}'), "EnvelopeError", "L-SURROGATE"),
        (delta(1, raw_delta='{"text":"a","text":"b"}'), "EnvelopeError", "L-DUPLICATE"),
        (stop(1, stop_reason=None), "EnvelopeError", "R5.3.3-1"),
        (tool_call(1, arguments="{"), "EnvelopeError", "R5.3.4-4"),
        (tool_call(1, arguments={}), "EnvelopeError", "R5.3.4-1"),
        (usage(1, input_tokens=-1), "EnvelopeError", "R5.3.5-1"),
        (start(1), "LifecycleError", "R5.3.1-2"),
        (b"data: " + b"x" * 400 + b"\n\n", "EventTooLargeError", "L-SIZE"),
        (event("x", 1, raw_x="[" * 30 + "]" * 30), "EnvelopeError", "L-DEPTH"),
    ],
)
def test_the_first_error_is_raised(llmstream, data, kind, rule):
    for chunks in splits.every_way(HEAD + data + sse("{", "x")):
        parser, found, events = fail(llmstream, chunks, max_event_size=300, max_depth=20)
        assert type(found).__name__ == kind
        assert str(found).startswith(rule + ": ")
        assert str(found).endswith(f"(event 1, offset {len(HEAD)})")
        assert found.offset == len(HEAD)
        assert [e.type for e in events] == ["stream.start"]
        with pytest.raises(ValueError, match="closed"):
            parser.feed(b"")
        assert parser.close() == []


@pytest.mark.parametrize(
    ("data", "seq"),
    [(delta(4), 4), (delta(1, role="user"), 1), (delta(1, raw_seq="null"), None), (sse("{", "x"), None), (start(1), 1)],
)
def test_the_error_knows_the_sequence_number(llmstream, data, seq):
    _, found, _ = fail(llmstream, HEAD + data)
    assert found.seq == seq


def test_events_before_the_error_in_the_same_chunk(llmstream):
    _, found, events = fail(llmstream, HEAD + delta(1, "a") + delta(2, "b") + delta(3, role="user") + delta(4, "c"))
    assert [e.seq for e in found.events] == [0, 1, 2]
    assert [e.text for e in events[1:]] == ["a", "b"]


@pytest.mark.parametrize(
    "data",
    [
        whole("a", "b"),
        b"\xef\xbb\xbf" + whole("a").replace(b"\n", b"\r\n"),
        HEAD + usage(1) + end(2),
        HEAD + delta(1) + stop(2, stop_reason="stop_sequence") + usage(3) + end(4),
        HEAD + sse(envelope("usage", 1, input_tokens=1, output_tokens=1)) + end(2),
        HEAD + event("x.y", 1) + usage(2) + end(3),
        HEAD + delta(1, "MARK").replace(b"MARK", b"\xff") + stop(2) + end(3),
    ],
)
def test_warnings_raise_nothing(llmstream, data):
    for chunks in splits.some_ways(data):
        parser, events = drafts.run(llmstream, chunks, strict=True)
        assert parser.complete
        assert events[-1].type == "stream.end"


def test_a_missing_end(llmstream):
    for data in (b"", HEAD, HEAD + delta(1) + stop(2) + usage(3)):
        parser = llmstream.Parser(strict=True)
        parser.feed(data)
        with pytest.raises(llmstream.IncompleteStreamError, match=r"R5\.3\.7-2") as caught:
            parser.close()
        assert caught.value.offset == len(data)
        assert parser.complete is False
        assert parser.close() == []


@pytest.mark.parametrize("late", [delta(3), end(3), sse("[DONE]"), sse("{")])
def test_anything_after_the_end(llmstream, late):
    parser = llmstream.Parser(strict=True)
    head = HEAD + usage(1) + end(2)
    assert [e.type for e in parser.feed(head)] == ["stream.start", "usage", "stream.end"]
    with pytest.raises(llmstream.LifecycleError, match=r"R5\.3\.7-1") as caught:
        parser.feed(late)
    assert caught.value.offset == len(head)


def test_a_block_without_stop_at_the_end(llmstream):
    _, found, events = fail(llmstream, HEAD + delta(1) + usage(2) + end(3))
    assert type(found) is llmstream.LifecycleError
    assert str(found).startswith("R5.4-1")
    # The end is in by then: it is read, and what is missing shows there.
    assert [e.type for e in events][:3] == ["stream.start", "content.delta", "usage"]


def test_an_error_in_band(llmstream):
    for chunks in splits.some_ways(HEAD + delta(1) + error(2, "overloaded", f"no {SECRET}") + end(3)):
        parser, found, events = fail(llmstream, chunks)
        assert type(found) is llmstream.UpstreamError
        assert str(found) == found.code == "overloaded"
        assert found.message == f"no {SECRET}"
        assert found.seq == 2
        assert found.offset == len(HEAD + delta(1))
        assert [e.type for e in events] == ["stream.start", "content.delta", "error"]
        assert SECRET not in repr(found)
        assert SECRET not in str(found)
        with pytest.raises(ValueError, match="closed"):
            parser.feed(b"")


def test_the_tree_of_errors(llmstream):
    for name in (
        "SSEError",
        "EnvelopeError",
        "SequenceError",
        "LifecycleError",
        "IncompleteStreamError",
        "UpstreamError",
    ):
        assert issubclass(getattr(llmstream, name), llmstream.LLMStreamError)
    assert issubclass(llmstream.EventTooLargeError, llmstream.SSEError)
    assert issubclass(llmstream.RequestError, llmstream.LLMStreamError)
    assert issubclass(llmstream.LLMStreamError, Exception)


def test_errors_are_copied_and_pickled(llmstream):
    _, found, _ = fail(llmstream, HEAD + delta(7))
    found.events = []
    for again in (copy.copy(found), pickle.loads(pickle.dumps(found))):
        assert type(again) is type(found)
        assert (str(again), again.seq, again.offset, again.events) == (str(found), 7, len(HEAD), [])
    upstream = llmstream.UpstreamError("overloaded", "words", seq=1, offset=2)
    for again in (copy.copy(upstream), pickle.loads(pickle.dumps(upstream))):
        assert (str(again), again.code, again.message, again.seq, again.offset) == (
            "overloaded",
            "overloaded",
            "words",
            1,
            2,
        )


# Confidentiality (R8.1-1)


def marked():
    """Faulty streams in which every string that the endpoint may fill holds a mark."""
    m = SECRET
    for maker in (start, delta, stop, tool_call, usage, error, end):
        kind = maker(1).split(b"\n")[0].split(b": ")[1].decode()
        members = {
            "start": {"model": m, "request_id": m, "created": m},
            "delta": {"text": m, "role": m, "index": m},
            "stop": {"stop_reason": m, "index": m},
            "tool_call": {"id": m, "name": m, "arguments": "{" + m, "index": m},
            "usage": {"input_tokens": m, "output_tokens": m},
            "error": {"code": 7, "message": m},
            "end": {"request_id": m},
        }[maker.__name__]
        extra = {"v": m, m: m, "extensions": {m: m}}
        yield maker(1, **members, **extra)
        yield maker(1, **members)
        yield event(
            kind,
            1,
            **dict.fromkeys(("v", "index", "role", "delta", "model", "created", "id", "name", "arguments", "code"), m),
        )
    yield event(m, 1, x=m)
    yield sse(envelope(m, 1), m + "x")
    yield delta(1, raw_seq=f'"{m}"')
    yield delta(1, m, type=m)
    yield delta(1, m, type=None)
    yield sse('{"' + m, "content.delta")
    yield sse('{"a":"' + m + '\t"}', m)
    yield sse(f'"{m}"', m)
    yield sse(m)
    yield sse(f"[{m}]")
    yield f"{m}\n\n".encode()
    yield f'{{"error":{{"message":"{m}"}}}}\n'.encode()
    yield f"id: {m}\nretry: {m}\ndata: {m}\n\n".encode()
    yield delta(1, "MARK").replace(b"MARK", m.encode() + b"\xff\\ud83d")
    yield tool_call(1, id=m) + tool_call(2, id=m, arguments=m)
    yield event("x", 1, **{m: m, "raw_x": "[" * 30 + f'"{m}"' + "]" * 30})
    yield b"data: " + m.encode() * 100 + b"\n\n"
    yield b"event: " + m.encode() * 100 + b"\n\n"
    yield delta(1, m)[:-1]
    yield sse('{"a":"' + m)[:-1]


def said(llmstream, data, **options):
    """All words of what a strict parser raises, if it raises."""
    try:
        drafts.run(llmstream, data, strict=True, **options)
    except llmstream.LLMStreamError as error:
        return "".join([str(error), repr(error), repr(error.args), *traceback.format_exception(error)])
    return ""


def test_no_text_in_violations_and_errors(llmstream):
    seen = set()
    for data in marked():
        for stream in (data, HEAD + data, HEAD + data + end(2, request_id=SECRET + "x") + data):
            parser = llmstream.Parser(max_event_size=400, max_depth=20)
            parser.feed(stream)
            parser.close()
            for violation in parser.violations:
                seen.add(violation.requirement)
                assert SECRET not in repr(violation)
            for options in ({}, {"errors": "strict"}):
                assert SECRET not in said(llmstream, stream, max_event_size=400, max_depth=20, **options)
    assert len(seen) > 25, seen


def test_no_text_in_the_errors_of_the_decoder(llmstream):
    for options in ({"errors": "strict"}, {"max_event_size": 30}):
        decoder = llmstream.SSEDecoder(**options)
        with pytest.raises(llmstream.SSEError) as caught:
            decoder.feed(b"event: " + SECRET.encode() + b"\xff\ndata: " + SECRET.encode() * 8 + b"\n\n")
        assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


def test_no_message_in_the_repr_of_a_stream_error(llmstream):
    parser = llmstream.Parser()
    [_, found] = parser.feed(HEAD + error(1, "overloaded", SECRET))
    assert SECRET not in repr(found)
    assert SECRET not in repr(parser)
    assert found.message == SECRET
