"""The standard stream as that of OpenAI, Anthropic and Gemini: read again by our dialects, and byte by byte as
the vendors' documentation prints it."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import producing
from splits import bytewise, some_ways
from strategies import cuts, seeds
from vendors import compact

VENDORS = ["openai", "anthropic", "gemini"]
FIXED = {"clock": lambda: 1700000000.9}


def payloads(output: bytes) -> list[Any]:
    """The payloads of a stream: each event one line of data, after the name where it has one."""
    found = []
    *blocks, rest = output.split(b"\n\n")
    assert rest == b""
    for block in blocks:
        *names, line = block.split(b"\n")
        assert len(names) <= 1
        assert len(re.split("[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", line.decode())) == 1
        data = line.removeprefix(b"data: ")
        assert data != line
        found.append("[DONE]" if data == b"[DONE]" else json.loads(data))
        if names:
            assert names == [f"event: {found[-1]['type']}".encode()]
    return found


def written(llmstream: Any, vendor: str, events: list[Any], **options: Any) -> bytes:
    writer = llmstream.writer_for(vendor, **{**FIXED, **options})
    pieces = [writer.write(event) for event in events]
    return b"".join([*pieces, writer.close()])


def story(llmstream: Any) -> list[Any]:
    """Text, two calls, counts."""
    return [
        llmstream.StreamStart(model="m", created=5, request_id="r"),
        llmstream.ContentDelta(text="It "),
        llmstream.ContentDelta(text="rains."),
        llmstream.ToolCall(id="c1", name="f", arguments='{"a": 1.10}', index=1),
        llmstream.ToolCall(id="c2", name="g", arguments="{}", index=2),
        llmstream.ContentStop(stop_reason="end_turn"),
        llmstream.ContentStop(stop_reason="tool_use", index=1),
        llmstream.ContentStop(stop_reason="tool_use", index=2),
        llmstream.Usage(input_tokens=3, output_tokens=4),
        llmstream.StreamEnd(),
    ]


def sse(*values: Any, named: bool = False) -> bytes:
    names = [f"event: {value['type']}\n" if named else "" for value in values]
    return "".join(f"{name}data: {compact(value)}\n\n" for name, value in zip(names, values, strict=True)).encode()


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {"id": "r", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": choices}


def function(number: int, id: str, name: str, arguments: str) -> dict[str, Any]:
    call = {"index": number, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [call]}


def test_openai(llmstream):
    counts = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    expected = sse(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "It "}),
        chunk({"content": "rains."}),
        chunk(function(0, "c1", "f", '{"a": 1.10}')),
        chunk(function(1, "c2", "g", "{}")),
        chunk({}, "tool_calls"),
        {**chunk({}), "choices": [], "usage": counts},
    )
    assert written(llmstream, "openai", story(llmstream)) == expected + b"data: [DONE]\n\n"
    without = payloads(written(llmstream, "openai", story(llmstream), include_usage=False))
    assert (len(without), without[-2]) == (7, chunk({}, "tool_calls"))


def test_anthropic(llmstream):
    def block(step: str, index: int, **more: Any) -> dict[str, Any]:
        return {"type": f"content_block_{step}", "index": index, **more}

    def tool(index: int, id: str, name: str, arguments: str) -> list[dict[str, Any]]:
        return [
            block("start", index, content_block={"type": "tool_use", "id": id, "name": name, "input": {}}),
            block("delta", index, delta={"type": "input_json_delta", "partial_json": arguments}),
            block("stop", index),
        ]

    message = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    zeros = {"input_tokens": 0, "output_tokens": 0}
    expected = sse(
        {
            "type": "message_start",
            "message": {**message, "stop_sequence": None, "usage": zeros, "llmstream:usage": "unknown"},
        },
        block("start", 0, content_block={"type": "text", "text": ""}),
        block("delta", 0, delta={"type": "text_delta", "text": "It "}),
        block("delta", 0, delta={"type": "text_delta", "text": "rains."}),
        block("stop", 0),
        *tool(1, "c1", "f", '{"a": 1.10}'),
        *tool(2, "c2", "g", "{}"),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
        {"type": "message_stop"},
        named=True,
    )
    assert written(llmstream, "anthropic", story(llmstream)) == expected


def test_gemini(llmstream):
    tail = {"modelVersion": "m", "responseId": "r", "createTime": "1970-01-01T00:00:05Z"}

    def part(part: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0, **more}], **tail}

    counts = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
    last = part({"text": ""}, finishReason="STOP")
    expected = sse(
        part({"text": "It "}),
        part({"text": "rains."}),
        part({"functionCall": {"id": "c1", "name": "f", "args": {"a": 1.1}}}),
        part({"functionCall": {"id": "c2", "name": "g", "args": {}}}),
        {"candidates": last["candidates"], "usageMetadata": counts, **tail},
    )
    output = written(llmstream, "gemini", story(llmstream))
    assert output == expected.replace(b'{"a":1.1}', b'{"a":1.10}')


@pytest.mark.parametrize("vendor", VENDORS)
def test_text_is_written_at_once_and_the_end_only_at_the_end(llmstream, vendor):
    writer = llmstream.writer_for(vendor, **FIXED)
    events = story(llmstream)
    for event in events[:-1]:
        output = writer.write(event)
        if isinstance(event, (llmstream.ContentDelta, llmstream.ToolCall)):
            assert (event.name if isinstance(event, llmstream.ToolCall) else event.text).encode() in output
        elif isinstance(event, (llmstream.ContentStop, llmstream.Usage)):
            assert output == b""
        assert (writer.complete, writer.ended) == (False, False)
    assert writer.write(events[-1])
    assert (writer.complete, writer.ended, writer.left_out) == (True, True, 0)
    assert (writer.write(events[1]), writer.fail(), writer.keep_alive()) == (b"", b"", b"")
    assert (writer.close(), writer.close(), writer.left_out) == (b"", b"", 1)
    with pytest.raises(ValueError, match="closed"):
        writer.write(events[1])


# There and back

ORDER = ["end_turn", "tool_use", "max_tokens", "content_filter"]


def told(steps: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What a stream says to a reader of one answer: computed from the steps alone."""
    said: dict[str, Any] = {"text": "", "calls": [], "reasons": [], "usage": None, "error": False, "complete": True}
    for kind, options in steps:
        if said["error"]:
            said["complete"] = False
            break
        if kind == "ContentDelta":
            said["text"] += options["text"]
        elif kind == "ToolCall":
            said["calls"].append((options["id"], options["name"], options["arguments"]))
        elif kind == "ContentStop":
            said["reasons"].append(options["stop_reason"])
        elif kind == "Usage":
            said["usage"] = (options["input_tokens"], options["output_tokens"])
        elif kind == "StreamError":
            said["error"] = True
    reason = max(said.pop("reasons"), key=ORDER.index, default="end_turn")
    if reason == "end_turn" and said["calls"]:
        reason = "tool_use"
    said["reason"] = reason if said["complete"] else None
    return said


def read(llmstream: Any, vendor: str, chunks: list[bytes]) -> dict[str, Any]:
    found = llmstream.parse(iter(chunks), dialect=vendor)
    assert found.violations == [] or not found.complete, found.violations
    reasons = set(found.stop_reasons.values())
    assert len(reasons) <= 1
    usage = found.usage
    return {
        "text": found.text,
        "calls": [(call.id, call.name, call.arguments) for call in found.tool_calls],
        "usage": None if usage is None else (usage.input_tokens, usage.output_tokens),
        "error": found.error is not None,
        "complete": found.complete,
        "reason": next(iter(reasons), None),
    }


def no_names(steps: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """The steps with names and counts that every vendor's stream can hold."""
    found = []
    for kind, options in steps:
        if kind == "ToolCall":
            options = {**options, "name": options["name"] or "f"}
        elif kind == "Usage":
            options = {**options, **{name: options[name] % 2**60 for name in ("input_tokens", "output_tokens")}}
        found.append((kind, options))
    return found


@pytest.mark.parametrize("vendor", VENDORS)
@given(steps=producing.streams().map(no_names), source=seeds())
def test_there_and_back(llmstream, vendor, steps, source):
    expected = told(steps)
    if vendor == "gemini":  # whose calls are objects
        steps = [
            (k, {**o, "arguments": o["arguments"].replace("[]", "{}")} if k == "ToolCall" else o) for k, o in steps
        ]
        expected["calls"] = [(id, name, json.loads(text.replace("[]", "{}"))) for id, name, text in expected["calls"]]
        if expected["reason"] == "tool_use" and not expected["calls"]:
            expected["reason"] = "end_turn"
    standard = b"".join(producing.written(llmstream, steps))
    translator = llmstream.StreamTranslator(vendor, **FIXED)
    output = b"".join([*map(translator.feed, cuts(source, standard)), translator.close()])
    assert output == written(llmstream, vendor, producing.events_of(llmstream, steps))
    payloads(output)
    found = read(llmstream, vendor, cuts(source, output))
    if vendor == "gemini":
        found["calls"] = [(id, name, json.loads(text)) for id, name, text in found["calls"]]
    assert found == expected
    assert translator.complete == expected["complete"]
    assert translator.ended


@pytest.mark.parametrize("vendor", VENDORS)
def test_any_split_gives_the_same(llmstream, vendor):
    steps = [("StreamStart", {"model": "m", "created": 1}), ("ContentDelta", {"text": "é\u2028"})]
    steps += [("ToolCall", {"id": "c", "name": "f", "arguments": "{}"}), ("ContentStop", {"stop_reason": "tool_use"})]
    steps += [("Usage", {"input_tokens": 1, "output_tokens": 2}), ("StreamEnd", {})]
    standard = b"".join(producing.written(llmstream, steps))
    whole = b"".join(llmstream.translate_stream(standard, to=vendor))
    for chunks in some_ways(standard):
        assert b"".join(llmstream.translate_stream(iter(chunks), to=vendor)) == whole
    for chunks in some_ways(whole):
        assert read(llmstream, vendor, chunks)["text"] == "é\u2028"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_cut_stream_never_looks_complete(llmstream, vendor):
    """The standard bytes cut anywhere: an error of the vendor's, no end, and the text a prefix."""
    standard = b"".join(
        producing.written(
            llmstream,
            [
                ("StreamStart", {"model": "m", "created": 1}),
                ("ContentDelta", {"text": "It "}),
                ("ContentDelta", {"text": "rains"}),
                ("ToolCall", {"id": "c", "name": "f", "arguments": '{"a":1}'}),
                ("ContentStop", {"stop_reason": "tool_use"}),
                ("Usage", {"input_tokens": 1, "output_tokens": 2}),
                ("StreamEnd", {}),
            ],
        )
    )
    for at in range(len(standard)):
        with llmstream.translate_stream([standard[:at]], to=vendor, **FIXED) as stream:
            output = b"".join(stream)
        found = llmstream.parse(output, dialect=vendor)
        assert not found.complete
        assert not stream.transcoder.complete
        assert found.error.code == "internal_error"
        assert "It rains".startswith(found.text)
        assert b"[DONE]" not in output
        assert b"message_stop" not in output
        assert not re.search(rb'"(finish_reason|finishReason|stop_reason)":"', output)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_vendor_stream_cut_within_a_call_has_no_call(llmstream, vendor):
    from vendors import VENDORS as STREAMS

    for source in ("openai", "anthropic"):
        body = b"".join(STREAMS[source](["a"], (), ["{", '"a":1', "}"]))
        for at in range(body.index(b'"}"'), len(body), 7):
            translator = llmstream.StreamTranslator(vendor, source, **FIXED)
            output = translator.feed(body[:at]) + translator.close()
            found = llmstream.parse(output, dialect=vendor)
            if not translator.complete:
                assert not found.complete
                assert found.error is not None


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    "broken",
    [
        b"data: {\n\n",
        b'event: content.delta\ndata: {"v":"1.0","seq":3,"type":"content.delta","index":0,"role":"assistant"}\n\n',
        b"",
    ],
)
def test_a_stream_with_a_part_missing_ends_with_an_error(llmstream, vendor, broken):
    pieces = producing.written(
        llmstream,
        [
            ("StreamStart", {"model": "m", "created": 1}),
            ("ContentDelta", {"text": "a"}),
            ("ContentDelta", {"text": "b"}),
            ("ContentDelta", {"text": "c"}),
            ("ContentStop", {"stop_reason": "end_turn"}),
            ("StreamEnd", {}),
        ],
    )
    output = b"".join(llmstream.translate_stream([*pieces[:3], broken, *pieces[4:]], to=vendor))
    found = llmstream.parse(output, dialect=vendor)
    assert (found.text, found.complete, found.error.code) == ("ab", False, "internal_error")


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    "code",
    ["rate_limited", "context_length_exceeded", "content_filtered", "internal_error", "overloaded", "other\n\ndata: x"],
)
def test_errors(llmstream, vendor, code):
    events = story(llmstream)[:3]
    usage = llmstream.Usage(input_tokens=1, output_tokens=2)
    error = llmstream.StreamError(code=code, message='words\n\ndata: "')
    output = written(
        llmstream, vendor, [*events, usage, error, llmstream.ContentDelta(text="late"), llmstream.StreamEnd()]
    )
    payloads(output)
    found = llmstream.parse(output, dialect=vendor)
    if vendor == "gemini" and code in ("context_length_exceeded", "content_filtered"):
        code = "INVALID_ARGUMENT"  # Gemini has one status for both
    elif vendor == "gemini" and code.startswith("other"):
        code = "internal_error"
    assert (found.text, found.complete, found.error.code) == ("It rains.", False, code)
    assert found.error.message == 'words\n\ndata: "'
    assert found.usage == usage or (found.usage.input_tokens, found.usage.output_tokens) == (1, 2)
    assert found.stop_reasons == {}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("arguments", ["", "{", "nonsense", None, '{"a":NaN}'])
def test_a_call_that_is_no_call_is_left_out_and_told(llmstream, vendor, arguments):
    events = story(llmstream)
    events[3] = llmstream.ToolCall(id="c1", name="f", arguments=arguments, index=1)
    found = llmstream.parse(written(llmstream, vendor, events), dialect=vendor)
    assert (found.text, [call.id for call in found.tool_calls], found.complete) == ("It rains.", ["c2"], False)
    assert found.error.code == "internal_error"


@pytest.mark.parametrize("vendor", VENDORS)
def test_alternatives(llmstream, vendor):
    """Choices of OpenAI's are choices, Gemini's candidates, and Anthropic has the first alone."""
    from vendors import openai_chunk

    body = b"".join(
        [
            openai_chunk({"role": "assistant", "content": "a"}),
            openai_chunk({"role": "assistant", "content": "x"}, index=1),
            openai_chunk({"content": "b"}),
            openai_chunk({"content": "y"}, index=1),
            openai_chunk({}, "length", index=1),
            openai_chunk({}, "stop"),
            b"data: [DONE]\n\n",
        ]
    )
    found = llmstream.parse(b"".join(llmstream.translate_stream(body, to=vendor, dialect="openai")), dialect=vendor)
    if vendor == "anthropic":
        assert (found.texts, found.stop_reasons) == ({0: "ab"}, {0: "end_turn"})
    else:
        assert (found.texts, found.stop_reasons) == ({0: "ab", 1: "xy"}, {0: "end_turn", 1: "max_tokens"})
    assert (found.text, found.complete) == ("ab", True)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("source", VENDORS)
def test_from_vendor_to_vendor(llmstream, source, vendor):
    from vendors import VENDORS as STREAMS

    body = b"".join(STREAMS[source](["It ", "rains."], ["hm", "m"], ["{", '"a":1', "}"]))
    output = b"".join(llmstream.translate_stream(iter(bytewise(body)), to=vendor, dialect=source))
    expected, found = llmstream.parse(body, dialect=source), llmstream.parse(output, dialect=vendor)
    for name in ("text", "reasoning", "model", "complete"):
        assert getattr(found, name) == getattr(expected, name)
    assert set(found.stop_reasons.values()) == set(expected.stop_reasons.values()) == {"tool_use"}
    assert [(call.name, call.arguments) for call in found.tool_calls] == [("f", '{"a":1}')]
    assert (found.usage.input_tokens, found.usage.output_tokens) == (
        expected.usage.input_tokens,
        expected.usage.output_tokens,
    )


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stream_of_unknown_words_and_no_start(llmstream, vendor):
    """Events as a lenient parser may give them."""
    events = [
        llmstream.UnknownEvent(type="vendor.x"),
        llmstream.ContentStop(stop_reason=None),
        llmstream.ContentDelta(text=""),
        llmstream.ToolCall(name="f", arguments="{}"),
        llmstream.Usage(),
        llmstream.ContentStop(stop_reason="paused"),
        llmstream.StreamStart(model="late"),
        llmstream.StreamEnd(),
    ]
    writer = llmstream.writer_for(vendor, model="m", response_id="i", **FIXED)
    output = b"".join(map(writer.write, events)) + writer.close()
    found = llmstream.parse(output, dialect=vendor)
    assert (found.complete, found.text, found.model, set(found.stop_reasons.values())) == (True, "", "m", {"paused"})
    assert [(call.id, call.name) for call in found.tool_calls] == [("call-0", "f")]
    assert (found.usage.input_tokens, found.usage.output_tokens) == (0, 0)
    assert writer.left_out == 2
    assert b'"i"' in output


REFUSAL = "I will not \u2028do that."


def refused(vendor: str, *pieces: str) -> bytes:
    """A refusal, as each of OpenAI's APIs streams it."""
    if vendor == "openai":
        return sse(*(chunk({"refusal": piece}) for piece in pieces), chunk({}, "stop")) + b"data: [DONE]\n\n"
    part = {"type": "refusal", "refusal": "".join(pieces)}
    item = {"type": "message", "id": "i", "role": "assistant", "content": [part]}
    place = {"output_index": 0, "content_index": 0, "item_id": "i"}
    return sse(
        {"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.refusal.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.refusal.done", **place, "refusal": "".join(pieces)},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed", "output": [item]}},
        named=True,
    )


def refusal_of(vendor: str, output: bytes) -> tuple[str, str]:
    """The words of a refusal and the stop reason, read from the JSON as the vendor's documentation has it."""
    words, reasons = "", []
    for value in payloads(output):
        if value == "[DONE]":
            continue
        if vendor == "openai":
            for choice in value["choices"]:
                assert not choice["delta"].get("content")
                words += choice["delta"].get("refusal", "")
                reasons.append(choice["finish_reason"])
        elif vendor == "anthropic":
            delta = value.get("delta", {})
            words += delta.get("text", "")
            reasons.append(delta.get("stop_reason"))
        else:
            candidate = value["candidates"][0]
            words += "".join(part["text"] for part in candidate["content"]["parts"])
            reasons.append(candidate.get("finishReason"))
    reason, *others = [reason for reason in reasons if reason is not None]
    assert not others
    return words, reason


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("source", ["openai", "openai-responses"])
@pytest.mark.parametrize("by_way_of_the_standard", [False, True])
def test_a_refusal_is_one(llmstream, vendor, source, by_way_of_the_standard):
    body = refused(source, REFUSAL[:5], REFUSAL[5:])
    if by_way_of_the_standard:
        transcoder = llmstream.Transcoder(source, **FIXED)
        body, source = transcoder.feed(body) + transcoder.close(), "llm-stream"
        assert transcoder.left_out == 0
    translator = llmstream.StreamTranslator(vendor, source, **FIXED)
    output = translator.feed(body) + translator.close()
    assert refusal_of(vendor, output) == (
        REFUSAL,
        {"openai": "stop", "anthropic": "refusal", "gemini": "SAFETY"}[vendor],
    )
    assert (translator.complete, translator.writer.left_out) == (True, 0)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_refusal_of_another_choice(llmstream, vendor):
    other = chunk({"refusal": "no", "reasoning": "hm"})
    other["choices"][0]["index"] = 1
    transcoder = llmstream.Transcoder("openai", **FIXED)
    body = sse(chunk({"content": "yes"}), other, chunk({}, "stop")) + b"data: [DONE]\n\n"
    translator = llmstream.StreamTranslator(vendor, **FIXED)
    output = translator.feed(transcoder.feed(body) + transcoder.close()) + translator.close()
    assert (b'"no"' in output, b'"hm"' in output) == ((False, False) if vendor == "anthropic" else (True, True))
    assert bool(translator.writer.left_out) == (vendor == "anthropic")
    assert llmstream.parse(output, dialect=vendor).text == "yes"


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("source", VENDORS)
def test_reasoning_by_way_of_the_standard(llmstream, source, vendor):
    events = [llmstream.ContentDelta(reasoning="Thus"), llmstream.ContentDelta(text="so"), llmstream.StreamEnd()]
    transcoder = llmstream.Transcoder(source, **FIXED)
    standard = transcoder.feed(written(llmstream, source, events)) + transcoder.close()
    translator = llmstream.StreamTranslator(vendor, **FIXED)
    again = llmstream.parse(translator.feed(standard) + translator.close(), dialect=vendor)
    assert (again.reasoning, again.text, translator.writer.left_out) == ("Thus", "so", 0)


CONTENT = [
    ("openai", sse(chunk({"content": "a", "annotations": [{"type": "url_citation"}]}))),
    ("openai", sse(chunk({"audio": {"id": "x", "data": "QUJD"}}))),
    ("openai", sse(chunk({"images": [{"type": "image_url", "image_url": {"url": "data:,"}}]}))),
    ("openai", sse(chunk({"executed_tools": [{"index": 0, "type": "search"}]}))),
    ("openai", sse(chunk({"content": [{"type": "reference", "reference_ids": [1]}]}))),
    ("openai", sse({**chunk({}, "stop"), "citations": ["https://example.org"]})),
    ("anthropic", sse({"type": "content_block_start", "index": 0, "content_block": {"type": "new", "x": 1}})),
    (
        "anthropic",
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"x": 1}}}),
    ),
    ("gemini", sse({"candidates": [{"content": {"parts": [{"inlineData": {"data": "QUJD"}}]}, "index": 0}]})),
    ("gemini", sse({"candidates": [{"content": {"parts": [{"executableCode": {"code": "1"}}]}, "index": 0}]})),
    ("gemini", sse({"candidates": [{"groundingMetadata": {"webSearchQueries": ["q"]}, "index": 0}]})),
]
METADATA = [
    ("openai", sse(chunk({"content": "a"}) | {"system_fingerprint": "f"})),
    (
        "openai",
        sse(
            {
                **chunk({}),
                "choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"token": "a"}]}}],
            }
        ),
    ),
    (
        "anthropic",
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}}),
    ),
    ("gemini", sse({"candidates": [{"content": {"parts": [{"text": "a", "thoughtSignature": "s"}]}, "index": 0}]})),
]


ENDS = {
    "openai": sse(chunk({}, "stop")) + b"data: [DONE]\n\n",
    "anthropic": sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}),
    "gemini": sse({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}]}),
}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("source", "body", "lost"), [*((*each, 1) for each in CONTENT), *((*each, 0) for each in METADATA)]
)
def test_content_without_a_place_is_counted(llmstream, vendor, source, body, lost):
    """Directly and by way of the standard stream, which has a place for all of it."""
    body += ENDS[source]
    transcoder = llmstream.Transcoder(source, **FIXED)
    standard = transcoder.feed(body) + transcoder.close()
    assert (transcoder.left_out, transcoder.complete) == (0, True)
    for dialect, data in ((source, body), ("llm-stream", standard)):
        translator = llmstream.StreamTranslator(vendor, dialect, **FIXED)
        translator.feed(data)
        translator.close()
        assert (translator.writer.left_out, translator.complete) == (lost, True), dialect


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("choice", [None, 0, -1, True, "1", 2**70])
@pytest.mark.parametrize(
    "given", [{"x:refusal": 7}, {"x:refusal": ["no"]}, {"llmstream:text": "t"}, {"llmstream:reasoning": "t"}]
)
def test_what_extensions_hold_in_another_form_is_counted(llmstream, vendor, choice, given):
    extensions = given if choice is None else {**given, "llmstream:choice": choice}
    writer = llmstream.writer_for(vendor, **FIXED)
    events = [llmstream.ContentDelta(extensions=extensions), llmstream.StreamEnd()]
    output = b"".join(map(writer.write, events))
    assert (llmstream.parse(output, dialect=vendor).text, writer.left_out, writer.complete) == ("", 1, True)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_large_refusal_comes_in_pieces(llmstream, vendor):
    event = llmstream.ContentDelta(text="a", extensions={"openai:refusal": "x" * (2**20 + 1)})
    output = written(llmstream, vendor, [event, llmstream.StreamEnd()])
    assert output.count(b"x" * 2**20) == 1
    assert max(map(len, output.split(b"\n"))) < 2**20 + 1000


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_empty_answer(llmstream, vendor):
    found = llmstream.parse(written(llmstream, vendor, [llmstream.StreamEnd()]), dialect=vendor)
    assert (found.complete, found.text, found.tool_calls) == (True, "", [])


@pytest.mark.parametrize("vendor", VENDORS)
def test_large_text_comes_in_pieces(llmstream, vendor):
    size = 3 * 2**20
    arguments = '{"a":"' + "\x7f" * size + '"}'
    events = [llmstream.ContentDelta(text="\x01" * size), llmstream.ToolCall(id="c", name="f", arguments=arguments)]
    output = written(llmstream, vendor, [*events, llmstream.StreamEnd()])
    found = llmstream.parse(output, dialect=vendor)
    assert (found.text, found.tool_calls[0].arguments, found.complete) == ("\x01" * size, arguments, True)


@pytest.mark.parametrize("vendor", VENDORS)
def test_more_answers_than_a_stream_can_have(llmstream, vendor):
    writer = llmstream.writer_for(vendor, alternatives=True, **FIXED)
    for index in range(5000):
        writer.write(llmstream.ContentDelta(text="a", index=index))
    writer.write(llmstream.StreamEnd())
    assert writer.complete == (vendor == "anthropic")
    assert writer.left_out == (4999 if vendor == "anthropic" else 5000 - 4096)


@pytest.mark.parametrize("vendor", VENDORS)
def test_odd_times(llmstream, vendor):
    for created in (0, 10**15, 2**63 - 1):
        output = written(llmstream, vendor, [llmstream.StreamStart(model="m", created=created), llmstream.StreamEnd()])
        assert llmstream.parse(output, dialect=vendor).complete


def test_what_is_no_vendor(llmstream):
    with pytest.raises(ValueError, match="openai, anthropic, gemini"):
        llmstream.writer_for("mistral")
    with pytest.raises(ValueError, match="unknown dialect"):
        llmstream.StreamTranslator("openai", "none")
    with pytest.raises(TypeError):
        llmstream.writer_for("openai", model=5)


# Iterators


@pytest.mark.parametrize("vendor", VENDORS)
def test_asynchronous(llmstream, vendor):
    standard = b"".join(
        producing.written(
            llmstream,
            [
                ("StreamStart", {"model": "m", "created": 1}),
                ("ContentDelta", {"text": "a"}),
                ("ContentStop", {"stop_reason": "end_turn"}),
                ("StreamEnd", {}),
            ],
        )
    )

    async def source():
        for piece in bytewise(standard):
            yield piece

    async def collect():
        async with llmstream.atranslate_stream(source(), to=vendor) as stream:
            return [piece async for piece in stream]

    pieces = asyncio.run(collect())
    assert all(pieces)
    assert b"".join(pieces) == b"".join(llmstream.translate_stream(standard, to=vendor))


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_source_that_fails(llmstream, vendor):
    pieces = producing.written(
        llmstream, [("StreamStart", {"model": "m", "created": 1}), ("ContentDelta", {"text": "a"})]
    )

    def source():
        yield from pieces
        raise OSError("gone")

    output = []
    with pytest.raises(OSError, match="gone"), llmstream.translate_stream(source(), to=vendor) as stream:
        output.extend(stream)
    found = llmstream.parse(b"".join(output), dialect=vendor)
    assert (found.text, found.complete, found.error.code) == ("a", False, "internal_error")


@pytest.mark.parametrize("vendor", VENDORS)
def test_strict_raises_after_what_was_before(llmstream, vendor):
    pieces = producing.written(
        llmstream, [("StreamStart", {"model": "m", "created": 1}), ("ContentDelta", {"text": "a"})]
    )
    translator = llmstream.StreamTranslator(vendor, strict=True)
    with pytest.raises(llmstream.LLMStreamError):
        translator.feed(b"".join([*pieces, b"data: {\n\n"]))
    found = llmstream.parse(translator.close(), dialect=vendor)
    assert (found.text, found.complete, found.error.code) == ("a", False, "internal_error")
    with pytest.raises(ValueError, match="closed"):
        translator.feed(b"")
    translator = llmstream.StreamTranslator(vendor, strict=True)
    output = translator.feed(b"".join(pieces))
    with pytest.raises(llmstream.IncompleteStreamError):
        translator.close()
    assert not llmstream.parse(output + translator.close(), dialect=vendor).complete
    assert translator.fail() == b""


@pytest.mark.parametrize("vendor", VENDORS)
def test_strict_has_no_call_that_was_cut(llmstream, vendor):
    """What a strict parser gives with the error at the end may lack its last words, and so goes to nobody."""
    from vendors import VENDORS as STREAMS

    body = b"".join(STREAMS["openai"](["a"], (), ["{", '"a":1', "}"]))
    body = body[: body.index(b'"finish_reason":"tool_calls"')]
    translator = llmstream.StreamTranslator(vendor, "openai", strict=True, **FIXED)
    output = translator.feed(body[: body.rindex(b"data: ")])
    with pytest.raises(llmstream.IncompleteStreamError):
        translator.close()
    found = llmstream.parse(output + translator.close(), dialect=vendor)
    assert (found.text, found.tool_calls, found.complete) == ("a", [], False)
    assert not translator.complete


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_end_before_the_first_fault_is_a_good_one(llmstream, vendor):
    """For strict and for a Transcoder as well."""
    steps = [("StreamStart", {"model": "m", "created": 1}), ("ContentDelta", {"text": "a"})]
    steps += [("ContentStop", {"stop_reason": "end_turn"}), ("StreamEnd", {})]
    body = b"".join(producing.written(llmstream, steps)) + b"data: {\n\n"
    for rewriter, dialect in (
        (llmstream.StreamTranslator(vendor, strict=True), vendor),
        (llmstream.Transcoder("llm-stream", strict=True), "llm-stream"),
    ):
        with pytest.raises(llmstream.LLMStreamError):
            rewriter.feed(body)
        found = llmstream.parse(rewriter.close(), dialect=dialect)
        assert (found.text, found.complete, rewriter.complete) == ("a", True, True)
        assert (rewriter.ended, rewriter.fail(), rewriter.close(), rewriter.keep_alive()) == (True, b"", b"", b"")


@pytest.mark.parametrize("vendor", VENDORS)
def test_fail(llmstream, vendor):
    pieces = producing.written(
        llmstream, [("StreamStart", {"model": "m", "created": 1}), ("ContentDelta", {"text": "a"})]
    )
    translator = llmstream.StreamTranslator(vendor)
    output = translator.feed(b"".join(pieces)) + translator.keep_alive() + translator.fail("overloaded", "later")
    found = llmstream.parse(output, dialect=vendor)
    assert (found.text, found.error.code, found.error.message, translator.ended) == ("a", "overloaded", "later", True)
    assert (translator.close(), translator.fail()) == (b"", b"")


@pytest.mark.parametrize("vendor", VENDORS)
@given(source=seeds(), data=st.data())
def test_hostile_bytes_never_raise(llmstream, vendor, source, data):
    from strategies import draft_stream, vendor_stream

    dialect = data.draw(st.sampled_from(["llm-stream", *VENDORS, "auto"]))
    body = (
        draft_stream(source)
        if dialect == "llm-stream"
        else vendor_stream(source, dialect if dialect != "auto" else "openai")
    )
    chunks = cuts(source, body)
    translator = llmstream.StreamTranslator(vendor, dialect, **FIXED)
    output = b"".join([*map(translator.feed, chunks), translator.close()])
    payloads(output)
    assert translator.ended
    found = llmstream.parse(output, dialect=vendor)
    assert found.complete == translator.complete
    assert (found.error is None) == translator.complete
    assert output == b"".join(llmstream.translate_stream([body], to=vendor, dialect=dialect, **FIXED))
