"""What has another form in a vendor's stream than in the standard one: free text for a custom tool, a stop reason that
the vendor's words would change, counts that are not known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import handed
import producing
from splits import some_ways
from test_translation_streams import FIXED, VENDORS, payloads, written
from vendors import compact, openai_chunk

# Custom tools

SQL = 'SELECT "a"\nFROM b -- é\u2028'
FREE = ["", SQL, '"quoted"', "{}", '{"a":1}', "[", "5", "null", "🚲"]


def custom_openai(*words: str) -> bytes:
    """A call of a custom tool in OpenAI's chat completions, its text in pieces."""
    first = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sql", "input": words[0]}}
    pieces = [first, *({"index": 0, "custom": {"input": piece}} for piece in words[1:])]
    return b"".join(
        [
            *(openai_chunk({"tool_calls": [piece]}) for piece in pieces),
            openai_chunk({}, "tool_calls"),
            b"data: [DONE]\n\n",
        ]
    )


def custom_responses(text: str) -> bytes:
    """The same in the Responses API, as the recording has it."""
    item = {"type": "custom_tool_call", "id": "i", "call_id": "c1", "name": "sql"}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "input": ""}},
        {"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "i", "delta": text},
        {"type": "response.custom_tool_call_input.done", "output_index": 0, "item_id": "i", "input": text},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "input": text}},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]
    return "".join(f"event: {each['type']}\ndata: {compact(each)}\n\n" for each in events).encode()


def carried(llmstream: Any, vendor: str, output: bytes) -> str:
    """The text that the one call of a vendor's stream carries."""
    found = llmstream.parse(output, dialect=vendor)
    assert (found.complete, found.error, found.violations, found.text) == (True, None, [], "")
    (call,) = found.tool_calls
    assert (call.id, call.name, set(found.stop_reasons.values())) == ("c1", "sql", {"tool_use"})
    if vendor == "openai":
        assert call.extensions == {"openai:custom": True}
        return call.arguments
    assert call.extensions == {}
    (given,) = json.loads(call.arguments).items()
    assert given[0] == "input"
    return given[1]


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("text", FREE)
def test_the_free_text_of_a_custom_tool_is_carried(llmstream, vendor, text):
    """From both of OpenAI's APIs, and from the standard stream that a Transcoder makes of them."""
    for dialect, body in (("openai", custom_openai(*(text or [""]))), ("openai-responses", custom_responses(text))):
        output = b"".join(llmstream.translate_stream(body, to=vendor, dialect=dialect, **FIXED))
        payloads(output)
        assert carried(llmstream, vendor, output) == text
        standard = b"".join(llmstream.transcode(body, dialect=dialect))
        assert carried(llmstream, vendor, b"".join(llmstream.translate_stream(standard, to=vendor))) == text


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_recorded_custom_tool(llmstream, vendor):
    path = handed.SHARED / "captures" / "openai" / "responses-vercel-openai-custom-tool-1.sse"
    if not path.exists():
        pytest.skip("no recordings")
    (row,) = (row for row in handed.rows("captures") if row["file"].endswith(path.name))
    output = b"".join(llmstream.translate_stream(path.read_bytes(), to=vendor, dialect="openai-responses"))
    found = llmstream.parse(output, dialect=vendor)
    assert (found.complete, found.text) == (True, "")
    assert row["text_len"] == 0
    (call,), (expected,) = found.tool_calls, row["tool_calls"]
    given = call.arguments if vendor == "openai" else json.loads(call.arguments)["input"]
    assert (call.name, given) == (expected["name"], expected["arguments"])


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_custom_call_that_is_cut_is_no_call(llmstream, vendor):
    body = custom_openai("SELECT ", "1")
    for at in range(body.index(b'"tool_calls"}')):
        translator = llmstream.StreamTranslator(vendor, "openai", **FIXED)
        found = llmstream.parse(translator.feed(body[:at]) + translator.close(), dialect=vendor)
        assert (found.complete, found.tool_calls, found.error is None) == (False, [], False)


@pytest.mark.parametrize("vendor", VENDORS)
def test_large_free_text_comes_in_pieces(llmstream, vendor):
    text = '"\x01' * (3 * 2**19)
    call = llmstream.ToolCall(id="c1", name="sql", arguments=text, extensions={"x:custom": True})
    output = written(llmstream, vendor, [call, llmstream.StreamEnd()], free_text=True)
    assert carried(llmstream, vendor, output) == text


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("arguments", ['{"a":1}', "[]", "5"])
@pytest.mark.parametrize("mark", [True, False, "yes", 1])
def test_what_is_not_the_call_of_a_custom_tool_is_that_of_a_function(llmstream, vendor, arguments, mark):
    call = llmstream.ToolCall(id="c1", name="f", arguments=arguments, extensions={"x:custom": mark})
    found = llmstream.parse(written(llmstream, vendor, [call, llmstream.StreamEnd()]), dialect=vendor)
    if vendor == "gemini" and arguments[0] != "{":
        assert (found.complete, found.tool_calls) == (False, [])
        return
    assert [(each.arguments, each.extensions) for each in found.tool_calls] == [(arguments, {})]
    assert found.complete


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"a\ud83d"', "a\ufffd"),
        (r'"\ude00b\udfff"', "\ufffdb\ufffd"),
        (r' "\u0000\u2028" ', "\0\u2028"),
    ],
)
def test_escapes_in_the_text_for_a_custom_tool(llmstream, vendor, arguments, text):
    """Half a surrogate pair is no character: it is replaced, as in all text."""
    call = llmstream.ToolCall(id="c1", name="sql", arguments=arguments, extensions={"x:custom": True})
    stop = llmstream.ContentStop(stop_reason="tool_use")
    standard = b"".join(
        producing.written(
            llmstream,
            [
                ("StreamStart", {"model": "m", "created": 1}),
                ("ToolCall", {"id": "c1", "name": "sql", "arguments": arguments, "extensions": {"x:custom": True}}),
                ("ContentStop", {"stop_reason": "tool_use"}),
                ("StreamEnd", {}),
            ],
        )
    )
    translator = llmstream.StreamTranslator(vendor)
    for output in (
        written(llmstream, vendor, [call, stop, llmstream.StreamEnd()]),
        translator.feed(standard) + translator.close(),
    ):
        payloads(output)
        assert carried(llmstream, vendor, output) == text


# Stop reasons

WORDS = st.one_of(
    st.sampled_from(
        ["0", "1", "-1", "+0", "007", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "prompt:0", "paused"]
    ),
    st.sampled_from(["null", "None", "true", "error", " ", "\u2028", '"', "[DONE]"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)


@pytest.mark.parametrize("vendor", VENDORS)
@given(word=WORDS)
def test_any_stop_reason_is_one(llmstream, vendor, word):
    """A word that the draft does not know is handed on, or told as a reason that is not known. Never is an answer read
    as one that goes on, nor a word of one vendor as what it means to another."""
    events = [
        llmstream.ContentDelta(text="a"),
        llmstream.ContentStop(stop_reason=word),
        llmstream.StreamEnd(),
    ]
    output = written(llmstream, vendor, events)
    payloads(output)
    found = llmstream.parse(output, dialect=vendor)
    assert (found.text, found.complete, found.error) == ("a", True, None)
    assert set(found.stop_reasons.values()) in ({word}, {"OTHER"} if vendor == "gemini" else {word})


# Counts


def counts_of(output: bytes) -> list[tuple[dict[str, int], bool]]:
    """The counts of each of Anthropic's events that has some, and whether they are told as unknown."""
    found = []
    for payload in payloads(output):
        holder = payload.get("message", payload)
        if "usage" in holder:
            found.append((holder["usage"], "llmstream:usage" in holder))
    return found


def test_counts_that_are_not_known_are_told(llmstream):
    """Clients of Anthropic's need counts in message_start and message_delta: zeros, and a mark beside them."""
    start, end = llmstream.StreamStart(model="m", created=1), llmstream.StreamEnd()
    zeros = {"input_tokens": 0, "output_tokens": 0}
    assert counts_of(written(llmstream, "anthropic", [start, end])) == [(zeros, True), ({"output_tokens": 0}, True)]
    for counts in ((0, 0), (3, 4)):
        usage = llmstream.Usage(input_tokens=counts[0], output_tokens=counts[1])
        output = written(llmstream, "anthropic", [start, usage, end])
        assert counts_of(output) == [(zeros, True), (dict(zip(zeros, counts, strict=True)), False)]
        found = llmstream.parse(output, dialect="anthropic").usage
        assert (found.input_tokens, found.output_tokens) == counts


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("ends", [True, False])
def test_no_counts_are_none(llmstream, vendor, ends):
    """Whole or cut, in any pieces."""
    events = [llmstream.ContentDelta(text="a"), *([llmstream.StreamEnd()] if ends else [])]
    output = written(llmstream, vendor, events)
    for chunks in some_ways(output):
        found = llmstream.parse(iter(chunks), dialect=vendor)
        assert (found.text, found.usage, found.complete) == ("a", None, ends)
