"""iter_events, iter_text and parse, over chunks that are simply there."""

from __future__ import annotations

import gc
import io
import sys
import weakref
from typing import Any

import pytest

from drafts import delta, event
from streams import BODY, CUT, EVENTS, FAILED, GAP, KINDS, TEXTS, events

TEXT = "".join(TEXTS)


class Response:
    """What all that is closed has in common: it counts."""

    def __init__(self, chunks: Any) -> None:
        self.chunks = chunks
        self.closed = 0

    def iter_bytes(self) -> Any:
        yield from self.chunks

    def close(self) -> None:
        self.closed += 1


def kinds(found: Any) -> list[str]:
    return [item.type for item in found]


# The iterator


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_events_arrive_however_they_are_cut(llmstream: Any, size: int) -> None:
    chunks = [BODY[at : at + size] for at in range(0, len(BODY), size)]
    assert kinds(llmstream.iter_events(chunks)) == KINDS
    assert "".join(llmstream.iter_text(chunks)) == TEXT
    assert llmstream.parse(chunks) == llmstream.parse(BODY)


def test_an_event_is_out_before_the_next_chunk_is_asked_for(llmstream: Any) -> None:
    asked = 0

    def chunks() -> Any:
        nonlocal asked
        for chunk in EVENTS:
            asked += 1
            yield chunk

    for number, found in enumerate(llmstream.iter_events(chunks()), 1):
        assert (found.type, asked) == (KINDS[number - 1], number)


def test_it_is_an_iterator_and_a_context_manager(llmstream: Any) -> None:
    with llmstream.iter_events(EVENTS) as found:
        assert iter(found) is found
        assert next(found).type == "stream.start"
        assert kinds(found) == KINDS[1:]
        assert next(found, None) is None
        assert found.parser.complete
        assert found.parser.usage.output_tokens == 4
    assert list(found) == []


def test_the_iteration_can_be_taken_up_again(llmstream: Any) -> None:
    found = llmstream.iter_events([BODY])
    for item in found:
        if item.type == "content.delta":
            break
    assert kinds(found) == KINDS[2:]


def test_what_close_gives_is_yielded_too(llmstream: Any) -> None:
    unfinished = CUT + EVENTS[-1].removesuffix(b"\n\n")
    assert kinds(llmstream.iter_events([unfinished])) == KINDS
    pieces = b"".join(EVENTS[:4]), EVENTS[4].removesuffix(b"\n\n")
    found = llmstream.iter_text(pieces)
    assert [next(found), next(found)] == ["".join(TEXTS[:3]), TEXTS[3]]


def test_every_keyword_of_the_parser_is_taken(llmstream: Any) -> None:
    options = {"max_event_size": 300, "max_depth": 8, "errors": "replace", "shapes": False}
    large = events("x" * 400)
    for read in (llmstream.iter_events, llmstream.aiter_events):
        parser = read(large, **options).parser
        with pytest.raises(llmstream.EventTooLargeError):
            list(llmstream.iter_events(large, strict=True, **options))
        assert parser.shape_hits == 0
    assert llmstream.parse(large, **options).text == ""
    for read in (
        llmstream.parse,
        llmstream.iter_events,
        llmstream.iter_text,
        llmstream.aiter_events,
        llmstream.aiter_text,
    ):
        with pytest.raises(TypeError):
            read(BODY, nonsense=1)
        with pytest.raises((LookupError, ValueError)):
            read(BODY, dialect="nonsense")


# Faults


def test_strict_yields_the_events_before_the_fault(llmstream: Any) -> None:
    found = llmstream.iter_events([GAP], strict=True)
    assert [next(found).type, next(found).type] == KINDS[:2]
    with pytest.raises(llmstream.SequenceError) as caught:
        next(found)
    assert kinds(caught.value.events) == KINDS[:2]
    assert next(found, None) is None


def test_strict_says_that_a_stream_is_cut(llmstream: Any) -> None:
    found = llmstream.iter_events([CUT], strict=True)
    seen: list[str] = []
    with pytest.raises(llmstream.IncompleteStreamError):
        seen.extend(item.type for item in found)
    assert seen == KINDS[:-1]


def test_strict_yields_the_error_event_and_raises(llmstream: Any) -> None:
    seen: list[str] = []
    with pytest.raises(llmstream.UpstreamError, match=r"^overloaded$") as caught:
        seen.extend(item.type for item in llmstream.iter_events([FAILED], strict=True))
    assert seen == [*KINDS[:5], "error"]
    assert caught.value.message == "prompt: SECRET"
    assert "SECRET" not in repr(caught.value)


def test_lenient_events_raise_for_no_bytes(llmstream: Any) -> None:
    for body in (b"", b"<html>", b"data: [1", b"\xff" * 99, GAP, CUT):
        found = llmstream.iter_events(body)
        list(found)
        assert found.parser.violation_count


@pytest.mark.parametrize("strict", [False, True])
def test_text_never_passes_a_cut_answer_for_a_whole_one(llmstream: Any, strict: bool) -> None:
    seen: list[str] = []
    with pytest.raises(llmstream.IncompleteStreamError):
        seen.extend(llmstream.iter_text([CUT], strict=strict))
    assert seen == [TEXT]
    with pytest.raises(llmstream.IncompleteStreamError):
        list(llmstream.iter_text([], strict=strict))


@pytest.mark.parametrize("strict", [False, True])
def test_text_raises_for_an_error_event(llmstream: Any, strict: bool) -> None:
    seen: list[str] = []
    with pytest.raises(llmstream.UpstreamError) as caught:
        seen.extend(llmstream.iter_text([FAILED[:-20], FAILED[-20:]], strict=strict))
    assert seen == [TEXT]
    assert (str(caught.value), caught.value.message) == ("overloaded", "prompt: SECRET")
    assert caught.value.seq == 5


def test_strict_text_comes_before_its_fault(llmstream: Any) -> None:
    found = llmstream.iter_text([GAP], strict=True)
    assert next(found) == TEXTS[0]
    with pytest.raises(llmstream.SequenceError):
        next(found)


def test_text_is_never_an_empty_string(llmstream: Any) -> None:
    assert list(llmstream.iter_text(EVENTS)) == list(TEXTS)


def test_text_has_all_blocks_in_order_of_arrival(llmstream: Any) -> None:
    body = [
        event("stream.start", 0, model="m", created=1),
        delta(1, "a", 0),
        delta(2, "b", 1),
        delta(3, "c", 0),
        event("content.stop", 4, index=0, stop_reason="end_turn"),
        event("content.stop", 5, index=1, stop_reason="end_turn"),
        event("usage", 6, input_tokens=1, output_tokens=1),
        event("stream.end", 7),
    ]
    assert "".join(llmstream.iter_text(body, strict=True)) == "abc"
    result = llmstream.parse(body)
    assert (result.text, result.texts) == ("abc", {0: "ac", 1: "b"})


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="without reference counts")
@pytest.mark.parametrize("name", ["iter_events", "iter_text", "parse"])
def test_a_fault_is_freed_without_the_collector(llmstream: Any, name: str) -> None:
    gc.collect()
    gc.disable()
    try:
        kept = None
        try:
            list(getattr(llmstream, name)([GAP], strict=True))
        except llmstream.LLMStreamError as error:
            kept = weakref.ref(error)
        assert kept is not None
        assert kept() is None
    finally:
        gc.enable()


# Closing


@pytest.mark.parametrize("name", ["iter_events", "iter_text"])
def test_a_response_is_closed_once_it_is_exhausted(llmstream: Any, name: str) -> None:
    response = Response(EVENTS)
    found = getattr(llmstream, name)(response)
    next(found)
    assert response.closed == 0
    list(found)
    assert response.closed == 1
    found.close()
    assert response.closed == 1


def test_a_response_is_closed_when_the_stream_is_bad(llmstream: Any) -> None:
    response = Response([GAP])
    with pytest.raises(llmstream.SequenceError):
        list(llmstream.iter_events(response, strict=True))
    assert response.closed == 1


def test_a_response_is_closed_when_it_fails(llmstream: Any) -> None:
    def chunks() -> Any:
        yield EVENTS[0]
        raise ConnectionResetError("gone")

    response = Response(chunks())
    seen: list[str] = []
    with pytest.raises(ConnectionResetError, match="gone"):
        seen.extend(item.type for item in llmstream.iter_events(response))
    assert (seen, response.closed) == (KINDS[:1], 1)


def test_close_ends_the_iteration_at_once(llmstream: Any) -> None:
    response = Response([BODY])
    found = llmstream.iter_events(response)
    seen = 0
    for _ in found:
        seen += 1
        if seen == 3:
            found.close()
    assert (seen, response.closed) == (3, 1)


def test_close_before_the_first_event(llmstream: Any) -> None:
    response = Response(EVENTS)
    found = llmstream.iter_events(response)
    found.close()
    found.close()
    assert (list(found), response.closed) == ([], 1)


def test_the_context_manager_closes(llmstream: Any) -> None:
    response = Response(EVENTS)
    found = llmstream.iter_events(response)

    def fail() -> None:
        with found:
            next(found)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert response.closed == 1


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="without reference counts")
def test_an_iterator_that_is_dropped_closes(llmstream: Any) -> None:
    response = Response(EVENTS)
    for _ in llmstream.iter_events(response):
        break
    assert response.closed == 1


def test_parse_closes(llmstream: Any) -> None:
    whole, cut = Response([BODY]), Response([CUT])
    assert llmstream.parse(whole).complete
    with pytest.raises(llmstream.IncompleteStreamError):
        llmstream.parse(cut, strict=True)
    assert (whole.closed, cut.closed) == (1, 1)


def test_close_under_a_reader_in_another_thread(llmstream: Any) -> None:
    import threading

    reads, closes = threading.Event(), threading.Event()

    class Waiting(Response):
        def iter_bytes(self) -> Any:
            reads.set()
            assert closes.wait(10)
            raise OSError("closed")
            yield

        def close(self) -> None:
            super().close()
            closes.set()

    response = Waiting([])
    found = llmstream.iter_events(response)
    caught: list[BaseException] = []

    def read() -> None:
        try:
            list(found)
        except OSError as error:
            caught.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert reads.wait(10)
    found.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [str(error) for error in caught] == ["closed"]
    assert response.closed == 1


# What is read


def test_a_body_in_memory_is_handed_on_in_pieces(llmstream: Any) -> None:
    body = b"".join(events(*["some words "] * 20_000))
    found = llmstream.iter_text(body)
    first = next(found)
    assert 0 < len(first) < 220_000
    assert len(first) + sum(map(len, found)) == 220_000
    for kind in (bytes, bytearray, memoryview):
        assert llmstream.parse(kind(body)).complete


def test_what_is_no_stream_of_bytes_is_a_type_error(llmstream: Any) -> None:
    for read in (llmstream.parse, llmstream.iter_events, llmstream.iter_text):
        for source in (BODY.decode(), None, 7, object()):
            with pytest.raises(TypeError):
                read(source)
    for source in ([BODY.decode()], io.StringIO(BODY.decode()), {"a": 1}, [1], [BODY, None]):
        with pytest.raises(TypeError):
            llmstream.parse(source)


def test_a_bad_keyword_leaves_the_source_alone(llmstream: Any) -> None:
    response = Response(EVENTS)
    with pytest.raises((LookupError, ValueError)):
        llmstream.iter_events(response, dialect="nonsense")
    assert kinds(llmstream.iter_events(response)) == KINDS
