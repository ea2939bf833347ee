"""``feed_summary``: what ``feed`` says, without an event for each fragment."""

from __future__ import annotations

import pytest

from vendors import VENDORS, openai, openai_chunk, sse


def summed(llmstream, parser, events):
    """What the summary of these events is."""
    deltas = [event for event in events if isinstance(event, llmstream.ContentDelta)]
    text = "".join(delta.text for delta in deltas if not (parser.alternatives and delta.index))
    others = [event for event in events if not isinstance(event, (llmstream.ContentDelta, llmstream.Usage))]
    return text, len(deltas), others


def standard(llmstream):
    encoder = llmstream.Encoder(clock=lambda: 1)
    return [
        encoder.start("m"),
        *(encoder.delta(text, index) for index in (0, 1) for text in ("a", "é\n", "🙂") * 5),
        encoder.tool_call("1", "f", "{}"),
        encoder.usage(1, 2),
        encoder.stop("end_turn"),
        encoder.stop("end_turn", 1),
        encoder.end(),
    ]


STREAMS = {
    "llm-stream": standard,
    **{
        name: lambda _, make=make: make(["a", "é\n", "🙂"] * 5, ["t"] * 5, ['{"a":', "1}"])
        for name, make in VENDORS.items()
    },
    "choices": lambda _: [openai_chunk({"content": text}, index=index) for text in "abcabc" for index in (0, 1)],
    "an error": lambda _: [*openai(["a"])[:2], sse({"error": {"message": "m", "type": "t"}})],
    "garbage": lambda _: [b"data: {\n\n", b"\xff\n\n", *openai(["a"]), b"data: 1\n\n"],
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("dialect", ["named", "auto"])
@pytest.mark.parametrize("size", [1, 13, 200, 100_000])
@pytest.mark.parametrize("errors", ["replace", "strict"])
def test_it_says_what_feed_says(llmstream, name, dialect, size, errors):
    body = b"".join(STREAMS[name](llmstream))
    named = name if name in VENDORS or name == "llm-stream" else "openai"
    if errors == "strict" and name == "garbage":  # it raises
        return
    kind = named if dialect == "named" else "auto"
    first, second = (llmstream.Parser(kind, errors=errors) for _ in range(2))
    for at in range(0, len(body), size):
        chunk = body[at : at + size]
        assert second.feed_summary(chunk) == summed(llmstream, first, first.feed(chunk))
    assert second.close() == first.close()
    for member in ("complete", "usage", "error", "gaps", "violations", "next_seq", "dialect", "shape_hits"):
        assert getattr(second, member) == getattr(first, member), member


def test_strict_raises_with_the_events_before(llmstream):
    parser = llmstream.Parser("openai", strict=True)
    with pytest.raises(llmstream.EnvelopeError) as raised:
        parser.feed_summary(b"".join(openai(["a"])[:2]) + b"data: {\n\n")
    assert [event.type for event in raised.value.events] == ["stream.start", "content.delta"]
    with pytest.raises(ValueError, match="closed"):
        parser.feed_summary(b"")


def test_a_call_that_is_refused_takes_nothing_from_the_one_under_way(llmstream):
    """A second summary is asked for while the first is read: by a dialect, as another thread might."""
    inner = []

    class Asking(llmstream.Dialect):
        name, text, stop_reason, deltas = "asking", "t", "r", ()

        def translate(self, *payload):
            for chunk, error in ((b"", RuntimeError), (3, TypeError)):
                with pytest.raises(error):
                    parser.feed_summary(chunk)
                inner.append(error)
            return super().translate(*payload)

    parser = llmstream.Parser(Asking)
    text, count, others = parser.feed_summary(b'data: {"t":"a"}\n\ndata: {"t":"b"}\n\ndata: {"r":"stop"}\n\n')
    assert (text, count, len(inner)) == ("ab", 2, 6)
    assert [event.type for event in others] == ["stream.start", "content.stop"]
