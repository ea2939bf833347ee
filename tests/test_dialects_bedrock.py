"""Bedrock: ConverseStream, the payloads of the models' makers, and agents; one kind a test."""

from __future__ import annotations

import pytest

from vendors import anthropic, aws, invoked, lines

METRICS = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 7, "outputTokenCount": 5}}


def parse(llmstream, *frames, dialect="bedrock"):
    data = b"".join(frames)
    result = llmstream.parse(data, dialect=dialect)
    assert llmstream.parse([data[at : at + 7] for at in range(0, len(data), 7)], dialect=dialect) == result
    assert llmstream.parse(data, dialect="auto") == result
    return result


def usage(result):
    return result.usage and (result.usage.input_tokens, result.usage.output_tokens)


def delta(index=0, **fragment):
    return aws({"contentBlockIndex": index, "delta": fragment, "p": "ab"}, "contentBlockDelta")


def start(index=0, **what):
    return aws({"contentBlockIndex": index, "start": what}, "contentBlockStart")


def closed(index=0):
    return aws({"contentBlockIndex": index}, "contentBlockStop")


def stopped(reason):
    return aws({"stopReason": reason}, "messageStop")


BEGIN = aws({"role": "assistant"}, "messageStart")
COUNTED = aws({"usage": {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12}, "metrics": {}}, "metadata")


def test_converse(llmstream):
    result = parse(
        llmstream,
        BEGIN,
        delta(0, reasoningContent={"text": "Hm"}),
        delta(0, reasoningContent={"signature": "s"}),
        closed(0),
        delta(1, text="Hel"),
        delta(1, text="lo"),
        closed(1),
        start(2, toolUse={"toolUseId": "t1", "name": "f"}),
        delta(2, toolUse={"input": '{"a":'}),
        delta(2, toolUse={"input": "1}"}),
        closed(2),
        start(3, toolUse={"toolUseId": "t2", "name": "g"}),
        closed(3),
        stopped("tool_use"),
        COUNTED,
    )
    assert (result.text, result.texts, result.reasoning, result.model) == ("Hello", {1: "Hello"}, "Hm", None)
    assert [(c.id, c.name, c.arguments, c.index) for c in result.tool_calls] == [
        ("t1", "f", '{"a":1}', 2),
        ("t2", "g", "{}", 3),
    ]
    assert (usage(result), result.complete) == ((7, 5), True)
    assert result.vendor_stop_reasons == dict.fromkeys(range(4), "tool_use")
    assert not result.violations


def test_what_travels_beside_the_text(llmstream):
    events = llmstream.iter_events(
        b"".join(
            [
                BEGIN,
                start(0, toolUse={"toolUseId": "t", "name": "code", "type": "server_tool_use"}),
                delta(0, toolUse={"input": '{"x":1}'}),
                closed(0),
                start(1, toolResult={"toolUseId": "t"}),
                delta(1, toolResult=[{"text": "2"}]),
                delta(2, citation={"title": "t"}),
                delta(3, reasoningContent={"redactedContent": "r"}),
                stopped("end_turn"),
                aws({"trace": {"guardrail": {"g": 1}}, "usage": {"inputTokens": 1, "outputTokens": 1}}, "metadata"),
            ]
        ),
        dialect="bedrock",
    )
    found = [(e.index, e.extensions) for e in events if e.type == "content.delta" and not e.text]
    assert found == [
        (0, {"bedrock:server_tool_use": {"id": "t", "name": "code", "input": {"x": 1}}}),
        (1, {"bedrock:toolResult": {"toolUseId": "t"}}),
        (1, {"bedrock:toolResult": [{"text": "2"}]}),
        (2, {"bedrock:citation": {"title": "t"}}),
        (3, {"bedrock:redactedContent": "r"}),
        (0, {"bedrock:trace": {"guardrail": {"g": 1}}}),
    ]


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("malformed_tool_use", "malformed_tool_use"),
    ],
)
def test_stop_reasons(llmstream, word, meaning):
    result = parse(llmstream, BEGIN, delta(text="a"), stopped(word))
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: meaning}, {0: word})


@pytest.mark.parametrize(
    ("frame", "code", "message"),
    [
        (aws({"message": "m"}, "throttlingException", "exception"), "rate_limited", "m"),
        (aws({"Message": "m", "message": "m"}, "ServiceUnavailableException", "exception"), "overloaded", "m"),
        (aws({"message": "m"}, "validationException", "exception"), "validationException", "m"),
        (aws({"originalMessage": "m"}, "modelStreamErrorException", "exception"), "internal_error", "m"),
    ],
)
@pytest.mark.parametrize("before", [[], [BEGIN, delta(text="a")], [invoked({"generation": "a"})]])
def test_exceptions(llmstream, before, frame, code, message):
    result = parse(llmstream, *before, frame)
    assert (result.error.code, result.error.message, result.complete) == (code, message, False)


def test_an_error_body(llmstream):
    result = llmstream.parse(b'{"message":"The security token is invalid."}', dialect="bedrock")
    assert (result.error.message, result.complete) == ("The security token is invalid.", False)


# InvokeModelWithResponseStream


def test_anthropic(llmstream):
    payloads = [block.split(b"data: ")[1].strip() for block in anthropic(["Hel", "lo"], ["Hm"], ['{"a":1}'])]
    frames = [invoked(payload) for payload in payloads]
    result = parse(llmstream, *frames)
    assert (result.text, result.reasoning, result.model, result.dialect) == ("Hello", "Hm", "claude-x", "bedrock")
    assert [(c.name, c.arguments) for c in result.tool_calls] == [("f", '{"a":1}')]
    assert (usage(result), result.complete) == ((3, 5), True)
    assert not parse(llmstream, *frames[:-1]).complete


def test_anthropic_keeps_its_own_counts(llmstream):
    payloads = [block.split(b"data: ")[1].strip() for block in anthropic(["a"])]
    last = invoked({"type": "message_stop", **METRICS})
    assert usage(parse(llmstream, *map(invoked, payloads[:-1]), last)) == (3, 5)


@pytest.mark.parametrize(
    ("payloads", "text", "word", "meaning", "counts"),
    [
        (
            [{"completion": " He"}, {"completion": "y", "stop_reason": "stop_sequence", "stop": "x", **METRICS}],
            " Hey",
            "stop_sequence",
            "end_turn",
            (7, 5),
        ),
        (
            [
                {"generation": "He", "prompt_token_count": 4, "generation_token_count": 1, "stop_reason": None},
                {
                    "generation": "y",
                    "prompt_token_count": None,
                    "generation_token_count": 2,
                    "stop_reason": "length",
                    **METRICS,
                },
            ],
            "Hey",
            "length",
            "max_tokens",
            (4, 2),
        ),
        (
            [
                {
                    "outputText": "Hey",
                    "index": 0,
                    "totalOutputTextTokenCount": 9,
                    "completionReason": "FINISH",
                    "inputTextTokenCount": 5,
                    **METRICS,
                }
            ],
            "Hey",
            "FINISH",
            "end_turn",
            (5, 9),
        ),
        (
            [
                {"messageStart": {"role": "assistant"}},
                {"contentBlockDelta": {"delta": {"text": "Hey"}, "contentBlockIndex": 0}},
                {"contentBlockStop": {"contentBlockIndex": 0}},
                {"messageStop": {"stopReason": "max_tokens"}},
                {"metadata": {"usage": {"inputTokens": 2, "outputTokens": 3}}, **METRICS},
            ],
            "Hey",
            "max_tokens",
            "max_tokens",
            (2, 3),
        ),
        (
            [
                {"outputs": [{"text": "He", "stop_reason": None}]},
                {"outputs": [{"text": "y", "stop_reason": "stop"}], **METRICS},
            ],
            "Hey",
            "stop",
            "end_turn",
            (7, 5),
        ),
        (
            [
                {"choices": [{"index": 0, "message": {"role": "assistant", "content": "He"}, "stop_reason": None}]},
                {"choices": [{"index": 0, "message": {"content": "y"}, "stop_reason": "stop"}], **METRICS},
            ],
            "Hey",
            "stop",
            "end_turn",
            (7, 5),
        ),
        (
            [
                {
                    "id": "c",
                    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hey"}, "finish_reason": None}],
                },
                {"id": "c", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]},
                {"id": "c", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}, **METRICS},
            ],
            "Hey",
            "stop",
            "end_turn",
            (1, 2),
        ),
        (
            [
                {"choices": [{"text": "He", "stop_reason": None}]},
                {"choices": [{"text": "y", "stop_reason": "length"}], **METRICS},
            ],
            "Hey",
            "length",
            "max_tokens",
            (7, 5),
        ),
        (
            [
                {"is_finished": False, "event_type": "text-generation", "text": "Hey"},
                {
                    "is_finished": True,
                    "event_type": "stream-end",
                    "finish_reason": "COMPLETE",
                    "response": {"text": "Hey"},
                    **METRICS,
                },
            ],
            "Hey",
            "COMPLETE",
            "end_turn",
            (7, 5),
        ),
        (
            [
                {"index": 0, "is_finished": False, "text": "Hey"},
                {"index": 1, "is_finished": False, "text": "Other"},
                {"finish_reason": "MAX_TOKENS", "is_finished": True, **METRICS},
            ],
            "Hey",
            "MAX_TOKENS",
            "max_tokens",
            (7, 5),
        ),
    ],
    ids=["claude", "llama", "titan", "nova", "mistral", "mistral chat", "jamba", "deepseek", "command r", "command"],
)
def test_makers(llmstream, payloads, text, word, meaning, counts):
    result = parse(llmstream, *map(invoked, payloads))
    assert (result.text, result.vendor_stop_reasons[0], result.stop_reasons[0]) == (text, word, meaning)
    assert (usage(result), result.complete, result.dialect) == (counts, True, "bedrock")
    assert not result.violations
    cut = llmstream.parse(b"".join(map(invoked, payloads[:-1])), dialect="bedrock")
    assert cut.complete == bool(cut.vendor_stop_reasons)


def test_a_guardrail_steps_in(llmstream):
    blocked = {"outputText": "Blocked", "index": 0.0, "totalOutputTextTokenCount": 3.0, "inputTextTokenCount": 6.0}
    result = parse(llmstream, invoked({**blocked, "amazon-bedrock-guardrailAction": "INTERVENED"}))
    assert (result.text, usage(result)) == ("Blocked", (6, 3))
    assert (result.stop_reasons, result.vendor_stop_reasons, result.complete) == ({0: "content_filter"}, {}, True)


def test_a_chunk_that_is_no_json_is_a_violation(llmstream):
    result = llmstream.parse(invoked({"generation": "a"}) + invoked(b"\xff"), dialect="bedrock")
    assert result.text == "a"
    assert "L-PAYLOAD" in [v.requirement for v in result.violations]


def test_nothing_that_can_be_told(llmstream):
    result = llmstream.parse(invoked({}), dialect="bedrock")
    (found,) = [v for v in result.violations if v.requirement == "L-DIALECT"]
    assert "converse-stream, invoke-with-response-stream" in found.message


def test_events_as_lines(llmstream):
    nova = [
        {"contentBlockDelta": {"delta": {"text": "Hey"}, "contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    result = llmstream.parse(lines(*nova), dialect="bedrock")
    assert (result.text, result.complete) == ("Hey", True)


# Agents


def test_an_agent_answers_in_text(llmstream):
    words = "Schöner Tag".encode()
    data = invoked(words[:4]) + aws({"trace": {"orchestrationTrace": {}}}, "trace") + invoked(words[4:])
    for dialect in ("bedrock-agent", "auto"):
        result = llmstream.parse(data, dialect=dialect)
        assert (result.text, result.dialect, result.usage) == ("Schöner Tag", "bedrock-agent", None)
        # The API says neither why it stopped nor that it did.
        assert not result.complete


def test_an_agent_that_answers_in_json(llmstream):
    result = llmstream.parse(invoked(b'{"answer":42}'), dialect="auto")
    assert (result.text, result.dialect) == ('{"answer":42}', "bedrock-agent")


def test_an_agent_hands_back_control(llmstream):
    given = {
        "actionGroup": "g",
        "function": "f",
        "parameters": [{"name": "a", "type": "integer", "value": "1"}],
    }
    control = aws({"invocationId": "i", "invocationInputs": [{"functionInvocationInput": given}]}, "returnControl")
    result = parse(llmstream, control, dialect="bedrock-agent")
    (call,) = result.tool_calls
    assert (call.id, call.name, call.arguments) == ("call-0", "f", '{"a":"1"}')
    assert call.extensions == {"bedrock-agent:functionInvocationInput": given}
    assert (result.stop_reasons, result.complete) == ({0: "tool_use"}, True)


def test_an_agent_fails(llmstream):
    result = llmstream.parse(aws({"message": "m"}, "dependencyFailedException", "exception"), dialect="bedrock-agent")
    assert (result.error.code, result.error.message) == ("internal_error", "m")


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("InternalFailure", "internal_error"),
        ("ServiceUnavailable", "overloaded"),
        ("ThrottlingException", "rate_limited"),
        ("throttlingException", "rate_limited"),
        ("AccessDeniedException", "AccessDeniedException"),
        ("accessDeniedException", "accessDeniedException"),
    ],
)
def test_a_code_is_the_drafts_or_the_vendors_own(llmstream, word, code):
    from importlib import import_module

    failure = import_module("llmstream.dialects.bedrock").failure
    for kind in ("exception", "error"):
        found = failure({"message": "m"}, f"{kind}:{word}")
        assert (found.meaning({}), found.code, found.message) == (code, word, "m")
