"""Legal streams for hypothesis: steps of an encoder, written as any producer might."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEXTS = st.one_of(
    st.sampled_from(["The", " weather", "", "\n\n", '"', "\\", "\u2028", "\x85é", "🚲", "東京", "data: x\r\n", "\x7f"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
INDEXES = st.sampled_from([0, 0, 0, 1, 2, 2**63 - 1])
COUNTS = st.integers(0, 2**63 - 1)
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), TEXTS
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
EXTENSIONS = st.one_of(st.none(), st.none(), st.none(), st.dictionaries(TEXTS.map("v:".__add__), VALUES, max_size=2))
REASONS = st.sampled_from(["end_turn", "max_tokens", "content_filter"])
CODES = st.sampled_from(["rate_limited", "context_length_exceeded", "content_filtered", "internal_error", "overloaded"])
ARGUMENTS = st.sampled_from(["{}", '{"city":"Vienna"}', '{"a":[1,2,{"b":"\\u2028"}]}', "[]", ' {"é": 1.5e3} '])


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """A whole stream in which nothing is to be found, as events: class and keywords."""
    steps: list[tuple[str, dict[str, Any]]] = []

    def add(kind: str, /, **options: Any) -> None:
        steps.append((kind, {**options, "extensions": draw(EXTENSIONS)}))

    request_id = draw(st.one_of(st.none(), TEXTS))
    add("StreamStart", model=draw(TEXTS), created=draw(st.integers(0, 10**11 - 1)), request_id=request_id)
    opened: dict[int, bool] = {}  # index -> whether it has a tool call
    stopped: set[int] = set()

    def stop(index: int) -> None:
        reason = "tool_use" if opened.pop(index, False) else draw(REASONS)
        stopped.add(index)
        add("ContentStop", stop_reason=reason, index=index)

    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["delta"] * 6 + ["call", "stop", "usage", "unknown"]))
        index = draw(INDEXES)
        if kind == "unknown":
            add("UnknownEvent", type=draw(st.sampled_from(["vendor.ping", "x", "content.image", "message"])))
        elif kind == "usage":
            add("Usage", input_tokens=draw(COUNTS), output_tokens=draw(COUNTS))
        elif index in stopped:
            continue
        elif kind == "delta":
            opened.setdefault(index, False)
            add("ContentDelta", text=draw(TEXTS), index=index)
        elif kind == "call":
            opened[index] = True
            call_id = f"{number}:{draw(TEXTS)}"
            add("ToolCall", id=call_id, name=draw(TEXTS), arguments=draw(ARGUMENTS), index=index)
        else:
            stop(index)
    if draw(st.integers(0, 4)) == 0:
        add("StreamError", code=draw(CODES), message=draw(TEXTS))
        if draw(st.booleans()):
            for index in list(opened):
                stop(index)
    else:
        for index in list(opened):
            stop(index)
        add("Usage", input_tokens=draw(COUNTS), output_tokens=draw(COUNTS))
    add("StreamEnd", request_id=request_id if draw(st.booleans()) else None)
    return steps


def events_of(llmstream: Any, steps: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The events of a stream, numbered."""
    return [getattr(llmstream, name)(**options, seq=seq) for seq, (name, options) in enumerate(steps)]


def written(llmstream: Any, steps: list[tuple[str, dict[str, Any]]]) -> list[bytes]:
    """The bytes of each event."""
    from llmstream.encoder import Encoder

    return list(Encoder().encode_events(events_of(llmstream, steps)))
