"""The transcoder on damaged and made-up streams: whatever comes in, what goes out keeps the draft's rules, is the same
however it was cut, and says what it did not get."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from standard import checked, clock, kinds, pieces, read
from vendors import aws, body, invoked, lines


def share(part):
    """So many examples of those that the profile asks for."""
    return settings(max_examples=max(10, settings.default.max_examples // part))


def outcome(llmstream, chunks, dialect, **options):
    """What is written of a stream and known of it, lenient or strict."""
    transcoder = llmstream.Transcoder(dialect, clock=clock, **options)
    output = b""
    fault = None
    try:
        for chunk in chunks:
            output += transcoder.feed(chunk)
        output += transcoder.close()
    except llmstream.LLMStreamError as error:
        fault = type(error).__name__, str(error)
        output += transcoder.close()
    assert fault is None or options.get("strict") or options.get("errors") == "strict"
    checked(llmstream, transcoder, output)
    known = transcoder.complete, transcoder.stop_reasons, transcoder.model, transcoder.left_out, transcoder.next_seq
    return output, known, fault


def judge(llmstream, source, data, dialect, **options):
    found = outcome(llmstream, [data], dialect, **options)
    assert outcome(llmstream, strategies.cuts(source, data), dialect, **options) == found
    output, (is_complete, *_), _ = found
    options.pop("reasoning", None)
    parser = llmstream.Parser(dialect, **options)
    events = []
    try:
        events += parser.feed(data)
        events += parser.close()
    except llmstream.LLMStreamError as error:
        events += error.events
    # Alternative answers are written beside the text, not as text.
    primary = [event for event in events if not (parser.alternatives and getattr(event, "index", 0))]
    words = "".join(event.text for event in primary if isinstance(event, llmstream.ContentDelta))
    written = "".join(piece for _, piece in pieces(read(output)))
    assert words == written if is_complete else words.startswith(written)
    assert parser.complete or not is_complete
    return found


@pytest.mark.parametrize("dialect", ["llm-stream", "openai", "anthropic", "gemini"])
def test_damaged_streams(llmstream, dialect):
    @share(3)
    @given(strategies.seeds(), st.sampled_from(["extensions", "drop"]), st.booleans())
    def check(source, reasoning, told):
        made = strategies.draft_stream if dialect == "llm-stream" else strategies.vendor_stream
        data = made(source) if dialect == "llm-stream" else made(source, dialect)
        judge(llmstream, source, data, dialect if told else "auto", reasoning=reasoning, **strategies.options(source))

    check()


NAMES = """
type delta text index message content content_block tool_calls function arguments id name usage error code choices
finish_reason model created reasoning_content refusal logprobs candidates parts functionCall args partialArgs
jsonPath stringValue willContinue finishReason usageMetadata promptTokenCount candidatesTokenCount promptFeedback
blockReason response item output_index output status call_id input done done_reason prompt_eval_count eval_count
contentBlockIndex contentBlockDelta contentBlockStart messageStop stopReason metadata trace toolUse toolUseId
reasoningContent stop_reason partial_json thinking signature citation generation event_type is_finished
tool_call_delta token generated_text details special v seq role extensions request_id stop_sequence input_tokens
output_tokens prompt_tokens completion_tokens x
"""
WORDS = """
content_block_delta content_block_start message_start message_delta message_stop text_delta input_json_delta
thinking_delta citations_delta tool_use server_tool_use text stop tool_calls STOP response.completed
response.output_text.delta response.output_item.done function_call custom_tool_call custom content-delta message-end
tool-call-start tool-call-end end_turn text-generation stream-end completed content.delta stream.start stream.end
usage error tool.call content.stop 1.0 assistant $.a {"a": {} [ 0
"""
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.sampled_from([2**53 + 1, 2**63 - 1, 2**63, 1e300, 0.5]),
    st.sampled_from(WORDS.split()),
    st.text(max_size=5),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5)
    ),
    max_leaves=20,
)
PAYLOADS = st.lists(st.dictionaries(st.sampled_from(NAMES.split()), VALUES, max_size=6), max_size=6)
FORMS = {
    "openai": body,
    "openai-responses": body,
    "openai-completions": body,
    "openai-assistants": body,
    "anthropic": body,
    "gemini": body,
    "gemini-interactions": body,
    "cohere": body,
    "cohere-v1": lines,
    "ollama": lines,
    "tgi": body,
    "watsonx": body,
    "llm-stream": body,
    "auto": body,
    "bedrock": lambda *payloads: b"".join(map(invoked, payloads)),
    "bedrock-agent": lambda *payloads: b"".join(aws(payload, "chunk") for payload in payloads),
}


@pytest.mark.parametrize("dialect", FORMS)
def test_payloads_with_anything_anywhere(llmstream, dialect):
    @share(8)
    @given(strategies.seeds(), PAYLOADS, st.booleans())
    def check(source, payloads, is_ended):
        data = FORMS[dialect](*payloads)
        judge(llmstream, source, data + b"data: [DONE]\n\n" * (is_ended and FORMS[dialect] is body), dialect)

    check()


EVENTS = [
    lambda m, s: m.ContentDelta(text=s.pick_text(), index=s.index(), reasoning=s.pick([None, "", "r"])),
    lambda m, s: m.ContentDelta(index=s.index(), extensions={s.pick(["a:b", "c"]): s.pick([1, "\ud83d", [None], {}])}),
    lambda m, s: m.ContentStop(stop_reason=s.pick([None, "", "end_turn", "odd"]), index=s.index()),
    lambda m, s: m.ToolCall(
        id=s.pick([None, "", "c", "call-1"]),
        name=s.pick([None, "f"]),
        index=s.index(),
        arguments=s.pick([None, "", "{}", "{", "1"]),
    ),
    lambda m, s: m.Usage(input_tokens=s.pick([None, 0, 5]), output_tokens=s.pick([None, 0, 5])),
    lambda m, s: m.StreamError(code=s.pick([None, "", "odd"]), message=s.pick([None, "m"])),
    lambda m, s: m.UnknownEvent(type=s.pick(["", "x", "usage", "a\nb"])),
    lambda m, s: m.StreamStart(model=s.pick([None, "m"]), created=s.pick([None, 0, 2**63 - 1])),
    lambda m, s: m.StreamEnd(request_id=s.pick([None, "r"])),
]


class Source:
    def __init__(self, source):
        self.pick = source.choice

    def index(self):
        return self.pick([0, 0, 0, 1, 2, 2**63 - 1])

    def pick_text(self):
        return self.pick(["", "a", "\x00", "\u2028"])


def test_a_dialect_that_gives_any_event_anywhere(llmstream):
    @share(1)
    @given(strategies.seeds(), st.lists(st.lists(st.sampled_from([*EVENTS[:5] * 4, *EVENTS]), max_size=4), max_size=8))
    def check(source, answers):
        made = Source(source)
        events = [[make(llmstream, made) for make in answer] for answer in answers]
        odd = type(
            "Odd",
            (llmstream.Dialect,),
            {"name": "odd", "translate": lambda self, payload, event: events[payload["n"]]},
        )
        data = body(*({"n": n} for n in range(len(events))))
        output, _, _ = judge(llmstream, source, data, odd)
        assert kinds(output)[0] == "stream.start"

    check()


def test_every_byte_of_a_frame_flipped(llmstream):
    data = aws({"contentBlockIndex": 0, "delta": {"text": "a"}}, "contentBlockDelta")
    whole = data * 2 + aws({"stopReason": "end_turn"}, "messageStop")
    for at in range(len(data)):
        flipped = bytearray(whole)
        flipped[at] ^= 1
        output, (is_complete, *_), _ = outcome(llmstream, [bytes(flipped)], "bedrock")
        assert not is_complete
        assert outcome(llmstream, [bytes(flipped[:at]), bytes(flipped[at:])], "bedrock")[0] == output


@pytest.mark.parametrize("count", [20_000])
def test_many_small_things(llmstream, count):
    """No work that grows with the square of the stream."""
    same = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}}
    for delta in (
        {"content": "a"},
        {"reasoning_content": "a"},
        {"refusal": "a"},
        {"tool_calls": [same, {**same, "id": "x"}]},
    ):
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        piece = json.dumps({"model": "m", "choices": [choice]})
        output, _, _ = outcome(llmstream, [f"data: {piece}\n\n".encode() * (count // 10)], "openai")
        assert kinds(output)[-1] == "stream.end"
