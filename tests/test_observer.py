"""The Observer: the bytes go on, and what it says of them is what was written."""

from __future__ import annotations

import copy
import hashlib
import importlib
import itertools
import pickle
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standard import clock
from vendors import VENDORS, compact, openai, openai_chunk, sse

WORDS = ["Grüße", " an", " ", "🙂", "\u2028", " alle."]
TEXT = "".join(WORDS)
ARGUMENTS = ['{"city":', ' "Vienna"}']


class Clock:
    """Gives times that a test sets."""

    def __init__(self, at=100.0):
        self.at = at

    def __call__(self):
        return self.at


def standard(llmstream, *words, index=0):
    encoder = llmstream.Encoder(clock=clock)
    yield encoder.start("m-1", request_id="r-1")
    for word in words:
        yield encoder.delta(word, index)
    yield encoder.tool_call("call-1", "f", "".join(ARGUMENTS), index)
    yield encoder.stop("tool_use", index)
    yield encoder.usage(3, 5)
    yield encoder.end()


def observed(llmstream, chunks, dialect="auto", **options):
    observer = llmstream.Observer(dialect, **options)
    for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
        assert observer.feed(chunk) is chunk
    return observer.close()


# What it says


@pytest.mark.parametrize("vendor", ["standard", *VENDORS])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("size", [1, 7, 1000, None])
def test_a_stream(llmstream, vendor, named, size):
    if vendor == "standard":
        chunks, dialect = list(standard(llmstream, *WORDS)), "llm-stream"
    else:
        chunks, dialect = VENDORS[vendor](WORDS, ["th", "ink"], ARGUMENTS), vendor
    if size is not None:
        body = b"".join(chunks)
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
    found = observed(llmstream, chunks, dialect if named else "auto", max_content_size=1000, digests=True)
    names = {
        "standard": ("m-1", "r-1"),
        "openai": ("gpt-x", "chatcmpl-1"),
        "anthropic": ("claude-x", "msg_1"),
        "gemini": ("gemini-x", "r1"),
    }
    assert (found.dialect, found.model, found.response_id) == (dialect, *names[vendor])
    assert found.complete
    assert not found.unread
    assert (found.text, found.text_length) == (TEXT, len(TEXT))
    assert found.text_sha256 == hashlib.sha256(TEXT.encode()).digest()
    assert found.wire_sha256 == hashlib.sha256(b"".join(chunks)).digest()
    assert (found.byte_count, found.chunk_count) == (sum(map(len, chunks)), len(chunks))
    assert found.input_tokens == 3
    assert found.output_tokens == (11 if vendor == "gemini" else 5)
    assert found.tool_call_count == 1
    (call,) = found.tool_calls
    assert call.name == "f"
    assert call.arguments.replace(" ", "") == '{"city":"Vienna"}'
    assert call.arguments_length == len(call.arguments)
    assert call.id == {"standard": "call-1", "openai": "call_1", "anthropic": "toolu_1", "gemini": "call-0"}[vendor]
    assert set(found.stop_reasons.values()) == {"tool_use"}
    vendors = {"standard": set(), "openai": {"tool_calls"}, "anthropic": {"tool_use"}, "gemini": {"STOP"}}
    assert set(found.vendor_stop_reasons.values()) == vendors[vendor]
    assert (found.error_code, found.vendor_error_code, found.error_message) == (None, None, None)
    assert (found.violations, found.violation_count, found.fault_count, found.lost) == ((), 0, 0, ())


def test_content_is_not_kept_unless_it_is_asked_for(llmstream):
    secret = "never to be seen"
    chunks = [*standard(llmstream, secret), b""]
    found = observed(llmstream, chunks)
    assert (found.text, found.text_length) == ("", len(secret))
    assert (found.tool_calls[0].arguments, found.tool_calls[0].arguments_length) == (None, 18)
    assert (found.text_sha256, found.wire_sha256) == (None, None)
    error = sse({"error": {"message": secret, "type": "rate_limit_error", "code": "rate_limit_exceeded"}})
    failed = observed(llmstream, [openai_chunk({"content": "a"}), error], "openai")
    assert (failed.error_code, failed.vendor_error_code) == ("rate_limited", "rate_limit_exceeded")
    assert failed.error_message is None
    kept = observed(llmstream, [openai_chunk({"content": "a"}), error], "openai", max_content_size=100)
    assert (kept.error_message, kept.complete) == (secret, False)
    # Kept or not, it is in no repr (R8.1-1).
    kept_text = observed(llmstream, chunks, max_content_size=100)
    assert kept_text.text == secret
    for observation in (found, failed, kept, kept_text):
        assert secret not in repr(observation)
        assert "Vienna" not in repr(observation)


def test_the_room_for_content(llmstream):
    chunks = list(standard(llmstream, "abcd", "efgh"))
    assert observed(llmstream, chunks, max_content_size=6).text == "abcdef"
    assert observed(llmstream, chunks, max_content_size=6).text_length == 8
    # Arguments are kept whole or not at all.
    assert observed(llmstream, chunks, max_content_size=8 + 17).tool_calls[0].arguments is None
    assert observed(llmstream, chunks, max_content_size=8 + 18).tool_calls[0].arguments == "".join(ARGUMENTS)


def test_alternatives(llmstream):
    """The text is that of choice 0; the reasons and calls are all there."""
    chunks = [
        openai_chunk({"content": "a"}),
        openai_chunk({"content": "B"}, index=1),
        openai_chunk({}, "stop"),
        openai_chunk({}, "length", index=1),
        sse("[DONE]"),
    ]
    found = observed(llmstream, chunks, max_content_size=10)
    assert (found.text, found.stop_reasons) == ("a", {0: "end_turn", 1: "max_tokens"})


BODIES = {
    "openai": (
        {
            "id": "c-1",
            "object": "chat.completion",
            "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        }
    ),
    "anthropic": (
        {
            "id": "msg-1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "hi"}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 2},
        }
    ),
    "gemini": (
        {
            "candidates": [{"content": {"parts": [{"text": "hi"}], "role": "model"}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
            "modelVersion": "m",
        }
    ),
    "openai-responses": (
        {
            "id": "r-1",
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        }
    ),
    "ollama": (
        {
            "model": "m",
            "message": {"role": "assistant", "content": "hi"},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 1,
            "eval_count": 2,
        }
    ),
}


@pytest.mark.parametrize("vendor", BODIES)
@pytest.mark.parametrize("size", [1, 10_000])
def test_an_answer_that_is_no_stream(llmstream, vendor, size):
    body = compact(BODIES[vendor]).encode()
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    found = observed(llmstream, chunks, max_content_size=10)
    assert (found.dialect, found.model, found.text, found.complete) == (vendor, "m", "hi", True)
    assert (found.input_tokens, found.output_tokens, found.stop_reasons) == (1, 2, {0: "end_turn"})


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        (
            {"error": {"message": "m", "type": "t", "code": "rate_limit_exceeded"}},
            "rate_limited",
            "rate_limit_exceeded",
        ),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "overloaded", "overloaded_error"),
        ({"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}, "rate_limited", "429"),
    ],
)
@pytest.mark.parametrize("named", ["openai", "anthropic", "gemini", "llm-stream", "auto"])
def test_an_error_that_is_no_stream(llmstream, body, code, word, named):
    found = observed(llmstream, compact(body).encode(), named, max_content_size=10)
    assert (found.error_code, found.error_message, found.complete) == (code, "m", False)
    if named != "llm-stream":
        assert found.vendor_error_code is not None


@pytest.mark.parametrize(
    "body", [b"", b"<html>502</html>", b"upstream timed out", b"\x1f\x8b\x08\x00" * 40, b"{", b"\0"]
)
def test_what_is_no_answer(llmstream, body):
    found = observed(llmstream, body)
    assert (found.complete, found.text_length, found.model) == (False, 0, None)
    assert found.byte_count == len(body)
    assert found.violation_count


def test_a_stream_that_is_cut(llmstream):
    found = observed(llmstream, openai(["a", "b"])[:3])
    assert not found.complete
    assert found.fault_count == 1


def test_lost_events(llmstream):
    pieces = list(standard(llmstream, *"abcde"))
    found = observed(llmstream, [*pieces[:2], *pieces[4:]], max_content_size=10)
    assert (found.lost, found.text) == (((2, 3),), "ade")


# When


def test_times(llmstream):
    now = Clock()
    observer = llmstream.Observer("openai", clock=now)
    first = openai_chunk({"role": "assistant", "content": ""})
    thought, word = openai_chunk({"reasoning_content": "t"}), openai_chunk({"content": "a"})
    comment = b": keep-alive\n\n"
    for at, chunk in (
        (101.0, comment),
        (101.5, first),
        (102.0, thought),
        (103.0, comment),
        (104.0, b""),  # nothing came
        (106.0, word),
        (106.25, word + word),
        (108.0, openai_chunk({}, "stop") + sse("[DONE]")),
    ):
        now.at = at
        observer.feed(chunk)
    now.at = 110.0
    found = observer.close()
    now.at = 200.0
    assert observer.close() is found
    assert (found.time_to_first_chunk, found.time_to_first_output, found.time_to_first_text) == (1.0, 2.0, 6.0)
    assert found.duration == 10.0
    chunks = found.chunk_intervals
    assert (chunks.count, chunks.total, chunks.minimum, chunks.maximum) == (6, 7.0, 0.25, 3.0)
    assert chunks.mean == 7 / 6
    # 0.5 0.5 1 3 .25 1.75, by the bounds .32 .64 1.28 2.56 5.12
    assert chunks.buckets == (0, 0, 0, 0, 0, 1, 2, 1, 1, 1, 0, 0, 0, 0, 0)
    output = found.output_intervals
    assert (output.count, output.total, output.minimum, output.maximum) == (2, 4.25, 0.25, 4.0)


def test_times_of_more_chunks_than_are_counted_at_once(llmstream):
    now = Clock(0.0)
    observer = llmstream.Observer("openai", clock=now)
    word, comment = openai_chunk({"content": "a"}), b":\n\n"
    chunks = [comment, word, word, comment] * 50
    for number, chunk in enumerate(chunks):
        now.at = 100.0 + number * (number + 1) // 2  # 100, 101, 103, 106 ...
        observer.feed(chunk)
    found = observer.close()
    assert (found.chunk_count, found.time_to_first_chunk, found.time_to_first_output) == (200, 100.0, 101.0)
    every = found.chunk_intervals
    assert (every.count, every.total, every.minimum, every.maximum) == (199, 199 * 100.0, 1.0, 199.0)
    moments = [100 + number * (number + 1) // 2 for number in range(200) if number % 4 in (1, 2)]
    intervals = [after - before for before, after in itertools.pairwise(moments)]
    output = found.output_intervals
    assert (output.count, output.total, output.minimum, output.maximum) == (
        len(intervals),
        sum(intervals),
        min(intervals),
        max(intervals),
    )


def test_a_tool_call_that_is_due_at_the_end(llmstream):
    """It came with the last chunk, however late the end is told."""
    now = Clock()
    observer = llmstream.Observer("openai", clock=now)
    for chunk in openai([], [], ARGUMENTS)[:4]:
        now.at += 1
        observer.feed(chunk)
    now.at += 100
    found = observer.close()
    assert found.tool_call_count == 1
    assert (found.time_to_first_output, found.time_to_first_text) == (4.0, None)
    assert found.output_intervals.count == 0


def test_when_it_was_requested(llmstream):
    now = Clock(50.0)
    observer = llmstream.Observer(clock=now, requested_at=40.0)
    assert observer.close().duration == 10.0
    nothing = llmstream.Observer(clock=now).close()
    assert (nothing.time_to_first_chunk, nothing.time_to_first_output, nothing.duration) == (None, None, 0.0)
    assert (nothing.chunk_intervals.mean, nothing.chunk_intervals.minimum) == (None, None)


def test_buckets(llmstream):
    """A bound belongs to the bucket below it, as in OpenTelemetry."""
    module = importlib.import_module("llmstream.observer")
    assert [round(bound, 2) for bound in module.BOUNDS[:4]] == [0.01, 0.02, 0.04, 0.08]
    assert (len(module.BOUNDS), round(module.BOUNDS[-1], 2)) == (14, 81.92)
    for at, bound in enumerate(module.BOUNDS):
        now = Clock(0.0)
        observer = llmstream.Observer(clock=now)
        observer.feed(b":")
        now.at = bound
        observer.feed(b":")
        now.at = bound + 1000
        observer.feed(b":")
        buckets = observer.close().chunk_intervals.buckets
        assert buckets == tuple(int(place in (at, 14)) for place in range(15))


# The bytes


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_same_object_goes_on(llmstream, kind):
    observer = llmstream.Observer(max_content_size=100, digests=True)
    body = b"".join(openai(WORDS))
    chunk = kind(body)
    assert observer.feed(chunk) is chunk
    assert bytes(chunk) == body
    found = observer.close()
    assert (found.text, found.byte_count) == (TEXT, len(body))


@pytest.mark.parametrize("digests", [False, True])
def test_buffers_of_other_forms(llmstream, digests):
    """Their bytes as they lie in memory; one with gaps is refused before anything is counted."""
    import array
    import ctypes
    import hashlib

    body = b"".join(openai(WORDS))
    body += b"\n" * (-len(body) % 8)
    for chunk in (
        array.array("i", body),
        memoryview(body).cast("d"),
        memoryview(body).cast("B", [len(body) // 4, 4]),
        (ctypes.c_char * len(body))(*body),
        (ctypes.c_uint16.__ctype_be__ * (len(body) // 2)).from_buffer_copy(body),
    ):
        observer = llmstream.Observer(max_content_size=100, digests=digests)
        assert observer.feed(chunk) is chunk
        found = observer.close()
        assert (found.text, found.byte_count, found.chunk_count, found.unread) == (TEXT, len(body), 1, False)
        assert found.wire_sha256 == (hashlib.sha256(body).digest() if digests else None)
    for gaps in (memoryview(body)[::2], memoryview(body)[::-1]):
        observer = llmstream.Observer(digests=digests)
        with pytest.raises(TypeError, match="contiguous"):
            observer.feed(gaps)
        found = observer.close()
        assert (found.byte_count, found.chunk_count, found.unread) == (0, 0, False)


def test_what_is_not_bytes(llmstream):
    observer = llmstream.Observer()
    for chunk in ("text", None, 7, [b"a"]):
        with pytest.raises(TypeError):
            observer.feed(chunk)
    observer.feed(b"data: 1\n\n")
    observer.close()
    with pytest.raises(ValueError, match="closed"):
        observer.feed(b"data: 1\n\n")


@pytest.mark.parametrize(("options", "error"), [
    ({"max_content_size": -1}, ValueError),
    ({"max_content_size": "1"}, TypeError),
    ({"dialect": "nobody's"}, ValueError),
    ({"max_event_size": 0}, ValueError),
    ({"strict": True}, TypeError),
    ({"errors": "strict"}, TypeError),
])  # fmt: skip
def test_arguments(llmstream, options, error):
    with pytest.raises(error):
        llmstream.Observer(**options)


@given(data=st.data())
def test_no_bytes_are_too_much(llmstream, data):
    """Whatever they are, they go on and are counted."""
    good = st.sampled_from(
        [*openai(["a"], ["b"], ARGUMENTS), b"data: ", b"\n\n", b"event: content.delta\n", b"{", b"]}"]
    )
    chunks = data.draw(st.lists(st.binary(max_size=20) | good, max_size=20))
    observer = llmstream.Observer(data.draw(st.sampled_from(["auto", "openai", "llm-stream", "bedrock"])))
    for chunk in chunks:
        assert observer.feed(chunk) is chunk
    found = observer.close()
    assert found.byte_count == sum(map(len, chunks))
    assert not found.unread


def test_a_fault_of_ours_stops_the_reading_and_nothing_else(llmstream, monkeypatch):
    observer = llmstream.Observer("openai", digests=True)
    first, second = openai_chunk({"content": "a"}), openai_chunk({"content": "b"})
    observer.feed(first)

    def broken(value):
        raise RuntimeError("a fault")

    monkeypatch.setattr(importlib.import_module("llmstream.observer"), "_word", broken)
    stop = openai_chunk({}, "stop")
    assert observer.feed(stop) is stop
    assert observer.feed(second) is second
    found = observer.close()
    assert found.unread
    assert not found.complete
    assert found.byte_count == len(first + stop + second)
    assert found.wire_sha256 == hashlib.sha256(first + stop + second).digest()


# Bounds


def envelope(kind, seq, **members):
    return f"event: {kind}\ndata: {compact({'v': '1.0', 'seq': seq, 'type': kind, **members})}\n\n".encode()


def test_what_is_kept_is_bounded(llmstream):
    """Names that are long, blocks and calls without end: a hostile stream of 20 MB leaves little behind."""
    long = "x" * 5000

    def chunks():
        numbers = itertools.count()
        yield envelope("stream.start", next(numbers), model=long, created=1, request_id=long)
        for number in range(1500):
            yield envelope("tool.call", next(numbers), index=number, id=f"{number}{long}", name=long, arguments="{}")
        for number in range(6000):
            yield envelope("content.stop", next(numbers), index=number, stop_reason=long if number < 1000 else "x")
        yield envelope("error", next(numbers), code=long, message=long)

    module = importlib.import_module("llmstream.observer")
    observer = llmstream.Observer("llm-stream", max_content_size=1000)
    for chunk in chunks():
        observer.feed(chunk)
    found = observer.close()
    assert found.tool_call_count == 1500
    assert len(found.tool_calls) == module.MAX_TOOL_CALLS
    assert len(found.stop_reasons) == 4096
    words = [found.model, found.response_id, found.error_code, *found.stop_reasons.values()]
    words += [word for call in found.tool_calls for word in (call.id, call.name)]
    assert max(map(len, words)) == module.MAX_WORD
    assert len(found.error_message) <= 1000
    assert sum(len(call.arguments or "") for call in found.tool_calls) <= 1000
    assert len(found.violations) <= 1000


def test_memory_does_not_grow_with_the_stream(llmstream):
    chunk = b"".join(openai_chunk({"content": f" word {number}"}) for number in range(100))
    observer = llmstream.Observer("openai", max_content_size=1000)
    for _ in range(20):
        observer.feed(chunk)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            observer.feed(chunk)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 20_000
    assert len(observer.close().text) == 1000


# The summary as a value


def test_it_is_a_value(llmstream):
    now = Clock()
    chunks = list(standard(llmstream, "a"))
    first, second = (observed(llmstream, chunks, clock=now, max_content_size=100) for _ in range(2))
    assert first == second
    assert first != observed(llmstream, chunks[:-1], clock=now)
    assert pickle.loads(pickle.dumps(first)) == copy.deepcopy(first) == first
    with pytest.raises(AttributeError):
        first.model = "other"
    with pytest.raises(TypeError):
        hash(first)
