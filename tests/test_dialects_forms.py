"""A declared form gives exactly what ``translate`` would: on recorded payloads, and on payloads that hold anything."""

from __future__ import annotations

import base64
import copy
import functools
import json
import random
from collections import Counter
from importlib import import_module

import pytest

import handed
from vendors import FAMILIES

MISSING = object()


def look_up(value, steps):
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, MISSING) if type(value) is dict else MISSING
        else:
            value = value[step] if type(value) is list and step < len(value) else MISSING
    return value


def is_count(value):
    return type(value) is int and 0 <= value < 2**63


def resolve(name, event, payload):
    """A dialect by its name; where it tells two apart, the one that reads a stream that begins so."""
    dialect = import_module("llmstream._registry").resolve(name)
    if hasattr(dialect, "detect"):
        dialect = dialect.detect(event, json.dumps(payload).encode()) or dialect.detect(None, b"{}")
    return dialect


class Engine:
    """What the engine does with a dialect, in the words of ``Delta``: the forms first, once the stream has started."""

    def __init__(self, llmstream, dialect):
        self.llmstream = llmstream
        self.dialect = dialect
        self.steps = functools.cache(import_module("llmstream.declaration").parse_path)
        self.started = False
        self.index = -1

    def read(self, payload, event):
        """The events, and whether a form gave them."""
        for form in self.dialect.deltas if self.started else ():
            found = self.fit(form, payload)
            if found is not None:
                return self.give(form, *found), True
        events = self.dialect.translate(payload, event)
        self.index = -1  # what it made of the payload may have ended the run of fragments
        self.started = self.started or any(e.type == "stream.start" for e in events)
        return events, False

    def fit(self, form, payload):
        def at(path, default=MISSING):
            return default if path is None else look_up(payload, self.steps(path))

        content = at(form.text or form.reasoning or form.arguments)
        if type(content) is not str or not content:
            return None
        if any(type(at(path)) is not type(value) or at(path) != value for path, value in form.when.items()):
            return None
        for path in form.absent:
            is_item = isinstance(self.steps(path)[-1], int)
            if at(path) is not MISSING and (is_item or at(path) is not None):
                return None
        if any(at(path) is not MISSING and at(path) is not None and at(path) != "" for path in form.empty):
            return None
        numbers = [0 if at(path) is MISSING else at(path) for path in (form.index, form.call)]
        counts = [at(path) for path in (form.input_tokens, form.output_tokens) if path is not None]
        if not all(map(is_count, numbers + counts)):
            return None
        return content, numbers, counts

    def give(self, form, content, numbers, counts):
        index, call = numbers
        events = []
        if index != self.index:
            self.index = index
            self.dialect.touch(index)
        if form.arguments:
            self.dialect.append_arguments(index, call, content)
        elif form.text:
            events.append(self.llmstream.ContentDelta(text=content, index=index))
        else:
            events.append(self.llmstream.ContentDelta(reasoning=content, index=index))
        if counts:
            self.dialect.counted(*counts)
            events.append(self.llmstream.Usage(input_tokens=counts[0], output_tokens=counts[1]))
        return events


class Both:
    """One dialect that only translates beside one that is driven as the engine does it."""

    def __init__(self, llmstream, name, first=(None, {})):
        self.plain = resolve(name, *first)
        self.engine = Engine(llmstream, resolve(name, *first))

    def read(self, payload, event):
        expected = self.plain.translate(copy.deepcopy(payload), event)
        events, by_form = self.engine.read(payload, event)
        assert events == expected, json.dumps(payload)
        return events, by_form

    def finish(self, ended):
        events = self.plain.finish(ended)
        assert self.engine.dialect.finish(ended) == events
        assert self.engine.dialect.reports == self.plain.reports
        assert self.plain.finish(ended) == []


def payloads(path):
    """The payloads of a recorded stream; its framing is not what is tested here."""
    data = path.read_bytes()
    if path.suffix == ".eventstream":
        framing = import_module("llmstream.framing.aws_event_stream").AWSEventStreamFraming(2**24)
        return [(frame.event, json.loads(frame.data)) for frame in framing.feed(data)]
    if path.suffix == ".json":
        return [(None, value) for value in json.loads(data)]
    if path.suffix == ".ndjson":
        return [(None, json.loads(line)) for line in data.splitlines()]
    found = []
    for block in data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
        fields = [line.partition(":") for line in block.split("\n")]
        text = "\n".join(value.removeprefix(" ") for name, _, value in fields if name == "data")
        event = next((value.removeprefix(" ") for name, _, value in fields if name == "event"), None)
        if text.startswith("{"):
            found.append((event, json.loads(text)))
    return found


@pytest.fixture(scope="session")
def recorded():
    """Family and payloads of every capture."""
    rows = [row for row in handed.rows("captures") if row["api"] != "replicate.stream"]  # its payloads are no JSON
    return [(FAMILIES[row["api"]], payloads(handed.SHARED / "captures" / row["file"]), row["file"]) for row in rows]


def test_forms_give_what_translate_gives(llmstream, recorded):
    fragments, by_form = Counter(), Counter()
    for family, stream, file in recorded:
        both = Both(llmstream, family, *stream[:1])
        vendor = file.partition("/")[0]
        for event, payload in stream:
            started = both.engine.started
            events, formed = both.read(payload, event)
            fragment = any(e.type == "content.delta" and (e.text or e.reasoning) for e in events)
            ends = "finishReason" in json.dumps(payload) or any(e.type == "content.stop" for e in events)
            if formed or (started and fragment and not ends and both.engine.dialect.deltas):
                fragments[vendor] += 1
                by_form[vendor] += formed
        both.finish(ended=False)
    for vendor, count in fragments.items():
        assert count < 30 or by_form[vendor] >= 0.95 * count, (vendor, by_form[vendor], count)
    assert by_form.total() >= 0.99 * fragments.total()


# fmt: off
KEYS = [
    "agent", "annotations", "args", "arguments", "audio", "bytes", "candidates", "choices", "citation", "citations",
    "completion", "completion_tokens", "content", "contentBlockIndex", "contentBlockStop", "content_block", "created",
    "created_at", "custom", "delta", "details", "documents", "done", "done_reason", "error", "error_type",
    "eval_count", "event_type", "finishReason", "finish_details", "finish_reason", "function", "functionCall",
    "function_call", "generated_text", "generation", "id", "image", "incomplete_details", "index", "input",
    "input_length", "input_token_count", "interaction", "is_finished", "item", "item_id", "last_error", "logprobs",
    "logs", "message", "messageStop", "metadata", "model", "name", "object", "output", "outputText", "output_index",
    "outputs", "partialArgs", "parts", "prompt_eval_count", "prompt_tokens", "reasoning", "reasoningContent",
    "reasoning_content", "reasoning_details", "redactedContent", "refusal", "required_action", "response", "results",
    "role", "signature", "start", "status", "step", "step_details", "stop", "stopReason", "stop_reason", "stop_type",
    "summary", "text", "thinking", "thought", "token", "tokens_evaluated", "tokens_predicted", "toolResult",
    "toolUse", "tool_call_delta", "tool_calls", "tool_plan", "top_tokens", "trace", "type", "usage", "usageMetadata",
    "value", "x_groq",
]
# fmt: on

VALUES = [
    *[None, True, False, 0, 1, -1, 2**63 - 1, 2**63, 2**70, 0.5, 1.0, 1e308, float("inf"), float("-inf")],
    *["", "x", '"', '{"a":1}', "stop", "STOP", "tool_calls", "error", "thinking", "text", "index", "self", "$.a[0]"],
    *[[], {}, [None], [{}], [[]], {"a": {}}, {"text": "t"}, [{"text": "t"}], {"message": "m"}, {"error": "e"}],
    [None, {"index": 0}],
    [{"index": 0, "id": "q", "function": {"name": "n", "arguments": "{"}}],
    [{"function": {"arguments": {"z": float("inf")}}}],
    {"name": "n", "willContinue": True},
    {"bytes": "eyJ0ZXh0IjoidCJ9"},
    {"toolUse": {"toolUseId": "i", "name": "n", "type": "server_tool_use"}},
    {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": True}, {"jsonPath": "$.a.b"}]},
]


def chunk(value):
    return {"bytes": base64.b64encode(json.dumps(value).encode()).decode(), "p": "abc"}


CONVERSE = [
    {"role": "assistant"},
    {"contentBlockIndex": 0, "delta": {"text": "t"}, "p": "abc"},
    {"contentBlockIndex": 1, "delta": {"reasoningContent": {"text": "t"}}},
    {"contentBlockIndex": 1, "delta": {"reasoningContent": {"signature": "s"}}},
    {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "i", "name": "f"}}},
    {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "{}"}}},
    {"contentBlockIndex": 2, "delta": {"toolResult": [{"json": {}}]}},
    {"contentBlockIndex": 2, "delta": {"citation": {"title": "t"}}},
    {"contentBlockIndex": 2},
    {"stopReason": "end_turn"},
    {"usage": {"inputTokens": 1, "outputTokens": 2}, "trace": {"guardrail": {}}},
    {"messageStop": {"stopReason": "tool_use"}, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 3}},
]
CALL = {"type": "function", "id": "i", "function": {"name": "f", "arguments": "{}"}}
ITEM = {"type": "function_call", "call_id": "i", "name": "f", "arguments": "{}"}
PARTS = [{"type": "output_text", "text": "t"}, {"type": "refusal", "refusal": "r"}]
WHOLE = {"status": "completed", "id": "r", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 2}}
MADE = {
    "llama": [{"generation": "t", "prompt_token_count": 1, "generation_token_count": 1, "stop_reason": None}],
    "titan": [
        {"outputText": "t", "index": 0.0, "totalOutputTextTokenCount": 3.0, "inputTextTokenCount": 6.0},
        {"outputText": "t", "completionReason": "FINISH", "amazon-bedrock-guardrailAction": "INTERVENED"},
    ],
    "mistral": [{"outputs": [{"text": "t", "stop_reason": None}]}, {"outputs": [{"text": "", "stop_reason": "stop"}]}],
    "choices": [{"choices": [{"index": 0, "message": {"content": "t"}, "stop_reason": "stop"}]}],
}

MORE = {
    "anthropic-complete": [
        {"type": "completion", "completion": "t", "stop_reason": None, "model": "m"},
        {"completion": "", "stop_reason": "stop_sequence", "stop": "x"},
    ],
    "bedrock": CONVERSE,
    "bedrock-agent": [
        {"bytes": "dA==", "attribution": {"citations": [{}]}},
        {
            "invocationId": "i",
            "invocationInputs": [
                {"functionInvocationInput": {"function": "f", "parameters": [{"name": "a", "value": "1"}]}}
            ],
        },
        {"message": "m"},
    ],
    "cohere": [
        {"id": "i", "type": "message-start", "delta": {"message": {"role": "assistant"}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "t"}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"thinking": "t"}}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "t"}}},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": CALL}}},
        {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": "{"}}}}},
        {"type": "tool-call-end", "index": 0},
        {"type": "citation-start", "index": 0, "delta": {"message": {"citations": {"start": 0}}}},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 1}}}},
    ],
    "cohere-v1": [
        {"is_finished": False, "event_type": "stream-start", "generation_id": "g"},
        {"is_finished": False, "event_type": "text-generation", "text": "t"},
        {"index": 0, "is_finished": False, "text": "t"},
        {"is_finished": False, "event_type": "citation-generation", "citations": [{}]},
        {"is_finished": False, "event_type": "tool-calls-chunk", "text": "t", "tool_call_delta": {"index": 0}},
        {
            "is_finished": False,
            "event_type": "tool-calls-chunk",
            "tool_call_delta": {"index": 0, "name": "f", "parameters": "{"},
        },
        {
            "is_finished": False,
            "event_type": "tool-calls-generation",
            "tool_calls": [{"name": "f", "parameters": {"a": 1}}],
        },
        {"index": 0, "is_finished": True, "finish_reason": "MAX_TOKENS"},
        {
            "is_finished": True,
            "event_type": "stream-end",
            "finish_reason": "COMPLETE",
            "response": {"text": "t", "meta": {"tokens": {"input_tokens": 1.0, "output_tokens": 2}}},
        },
    ],
    "gemini-interactions": [
        {"event_type": "interaction.created", "interaction": {"id": "i", "model": "m", "status": "in_progress"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "thought", "summary": [{"text": "t"}]}},
        {"event_type": "step.start", "index": 1, "step": {"type": "model_output", "content": [{"text": "t"}]}},
        {"event_type": "step.start", "index": 2, "step": {"type": "function_call", "id": "i", "name": "f"}},
        {"event_type": "step.delta", "index": 1, "delta": {"type": "text", "text": "t"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "thought_summary", "content": {"text": "t"}}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "thought_signature", "signature": "s"}},
        {"event_type": "step.delta", "index": 2, "delta": {"type": "arguments_delta", "arguments": "{}"}},
        {"event_type": "content.delta", "index": 2, "delta": {"type": "function_call", "name": "f", "arguments": {}}},
        {"event_type": "step.stop", "index": 2, "usage": {"total_input_tokens": 1, "total_output_tokens": 2}},
        {
            "event_type": "interaction.completed",
            "interaction": {"status": "completed", "created": "2026-01-01T00:00:00Z"},
        },
        {"event_type": "error", "error": {"code": "c", "message": "m"}},
    ],
    "llamacpp": [
        {"index": 0, "content": "t", "stop": False, "tokens_predicted": 1, "tokens_evaluated": 2},
        {"content": "t", "stop": False},
        {"index": 0, "content": "", "stop": True, "stop_type": "limit", "model": "m", "completion_probabilities": [{}]},
        {"content": "", "stop": True, "stopped_eos": True},
    ],
    "ollama": [
        {"model": "m", "created_at": "2026-01-01T00:00:00.123456789Z", "message": {"content": "t"}, "done": False},
        {"model": "m", "message": {"content": "", "thinking": "t"}, "done": False},
        {"model": "m", "message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, "done": False},
        {"model": "m", "response": "t", "done": False},
        {"model": "m", "response": "", "thinking": "t", "done": False},
        {"model": "m", "response": "", "done": True, "done_reason": "stop", "eval_count": 3, "prompt_eval_count": 2},
    ],
    "openai-assistants": [
        {"object": "thread.run", "id": "r", "model": "m", "status": "queued", "created_at": 1},
        {
            "object": "thread.message.delta",
            "delta": {"content": [{"index": 0, "type": "text", "text": {"value": "t", "annotations": []}}]},
        },
        {
            "object": "thread.run.step.delta",
            "delta": {"step_details": {"tool_calls": [{"index": 0, **CALL}]}},
        },
        {
            "object": "thread.run.step",
            "status": "completed",
            "step_details": {"tool_calls": [{"type": "code_interpreter", "code_interpreter": {}}]},
        },
        {
            "object": "thread.run",
            "status": "requires_action",
            "required_action": {"submit_tool_outputs": {"tool_calls": [CALL]}},
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        },
        {"object": "thread.run", "status": "failed", "last_error": {"code": "c", "message": "m"}},
    ],
    "openai-completions": [
        {"model": "m", "object": "text_completion", "choices": [{"index": 0, "text": "t", "finish_reason": None}]},
        {"choices": [{"text": "t", "logprobs": {"tokens": ["t"]}}], "usage": {"prompt_tokens": 1}},
        {"choices": [{"text": "t"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        {"choices": [{"index": 1, "text": "", "finish_reason": "length"}]},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {**WHOLE, "status": "in_progress", "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "t", "logprobs": [], "obfuscation": "x"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "t", "logprobs": [{"token": "t"}]},
        {"type": "response.reasoning_text.delta", "output_index": 1, "delta": "t"},
        {"type": "response.reasoning_summary_text.delta", "output_index": 1, "delta": "t", "summary_index": 0},
        {"type": "response.refusal.delta", "output_index": 0, "delta": "t"},
        {"type": "response.output_item.added", "output_index": 2, "item": ITEM},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"},
        {"type": "response.custom_tool_call_input.delta", "output_index": 3, "delta": "{}"},
        {"type": "response.output_item.done", "output_index": 2, "item": ITEM},
        {"type": "response.output_item.done", "output_index": 4, "item": {"type": "message", "content": PARTS}},
        {"type": "response.output_item.done", "output_index": 5, "item": {"type": "reasoning", "summary": PARTS}},
        {"type": "response.output_item.done", "output_index": 6, "item": {"type": "web_search_call"}},
        {"type": "response.completed", "response": {**WHOLE, "output": [ITEM]}},
        {"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "x"}}},
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "c", "message": "m"}}},
        {"type": "error", "code": "c", "message": "m", "sequence_number": 3},
        {"object": "response", **WHOLE, "output": [{"type": "message", "content": PARTS}]},
    ],
    "openai-transcriptions": [
        {"type": "transcript.text.delta", "delta": "t"},
        {"type": "transcript.text.delta", "delta": "t", "logprobs": [{"token": "t"}]},
        {"type": "transcript.text.segment", "text": "t", "speaker": "A"},
        {"type": "transcript.text.done", "text": "t", "usage": {"input_tokens": 1, "output_tokens": 2}},
    ],
    "snowflake": [
        {"choices": [{"delta": {"type": "text", "content": "t", "content_list": [{"type": "text", "text": "t"}]}}]},
        {"choices": [{"delta": {"type": "tool_use", "tool_use_id": "i", "name": "f"}}]},
        {"choices": [{"delta": {"type": "tool_use", "input": "{}", "text": ""}}]},
    ],
    "tgi": [
        {"index": 1, "token": {"text": "t", "special": False}, "generated_text": None, "details": None},
        {"token": {"text": "</s>", "special": True}, "generated_text": "t", "details": {"finish_reason": "eos_token"}},
        {"token": {"text": "t", "special": False}, "top_tokens": [{}]},
        {"error": "m", "error_type": "overloaded"},
    ],
    "watsonx": [
        {
            "model_id": "m",
            "created_at": "2024-03-10T14:40:37.661Z",
            "results": [{"generated_text": "t", "generated_token_count": 1, "input_token_count": 8, "stop_reason": ""}],
        },
        {"model_id": "m", "results": [{"generated_text": "t", "generated_token_count": 2, "input_token_count": 0}]},
        {"model_id": "m", "choices": [{"delta": {"content": "t"}}]},
        {"errors": [{"code": "c", "message": "m"}], "status_code": 400},
    ],
    "writer-completions": [{"value": "t"}],
}

EXAMPLES = [
    ("openai", {"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}], "usage": None}),
    ("openai", {"choices": [{"index": 0, "delta": {"content": "text"}, "logprobs": None, "finish_reason": None}]}),
    ("openai", {"choices": [{"index": 1, "delta": {"reasoning": "r", "reasoning_details": [{"text": "r"}]}}]}),
    (
        "openai",
        {"choices": [{"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]}}]},
    ),
    ("openai", {"choices": [{"delta": {"content": [{"type": "text", "text": "t"}]}}], "p": "pad"}),
    (
        "openai",
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]}}]},
    ),
    ("openai", {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}}]}),
    ("openai", {"choices": [{"delta": {"content": "t"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
    (
        "openai",
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": {"prompt_tokens": 1}}},
    ),
    ("openai", {"error": {"message": "m", "code": 429}}),
    (
        "anthropic",
        {
            "type": "message_start",
            "message": {"id": "i", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}},
        },
    ),
    (
        "anthropic",
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        },
    ),
    ("anthropic", {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ("anthropic", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "t"}}),
    ("anthropic", {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "t"}}),
    (
        "anthropic",
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    ),
    ("anthropic", {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}}),
    ("anthropic", {"type": "content_block_stop", "index": 0}),
    ("anthropic", {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
    ("gemini", {"candidates": [{"content": {"parts": [{"text": "t"}]}, "index": 0}], "modelVersion": "g"}),
    (
        "gemini",
        {
            "candidates": [{"content": {"parts": [{"text": "t", "thought": True}]}}],
            "usageMetadata": {"promptTokenCount": 1},
        },
    ),
    (
        "gemini",
        {
            "candidates": [{"content": {"parts": [{"text": "t"}]}}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
        },
    ),
    (
        "gemini",
        {
            "candidates": [
                {"content": {"parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]}, "finishReason": "STOP"}
            ]
        },
    ),
    ("gemini", {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "willContinue": True}}]}}]}),
    ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}),
]


EXAMPLES += [(name, payload) for name, examples in MORE.items() for payload in examples]
EXAMPLES += [(f"bedrock {maker}", chunk(payload)) for maker, examples in MADE.items() for payload in examples]
FAMILY_NAMES = tuple(dict.fromkeys(name for name, _ in EXAMPLES))


def places(value, found):
    """Every member and item, as (holder, key)."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        places(value[key], found)
    return found


def spoil(payload, generator):
    """A copy in which something holds something else."""
    payload = copy.deepcopy(payload)
    for _ in range(generator.choice((0, 0, 1, 1, 2, 3))):
        found = places(payload, [])
        if not found:
            break
        holder, key = generator.choice(found)
        value = copy.deepcopy(generator.choice(VALUES))
        change = generator.random()
        if change < 0.6:
            holder[key] = value
        elif change < 0.75:
            del holder[key]
        elif isinstance(holder, dict):
            holder[generator.choice(KEYS)] = value
        else:
            holder.insert(generator.randint(0, len(holder)), value)
    return payload


def play(llmstream, generator, family, stream):
    both = Both(llmstream, family, *stream[:1])
    auto = import_module("llmstream._registry").resolve("auto")
    for event, payload in stream:
        payload = spoil(payload, generator)
        event = generator.choice((event, event, event, None, "error", "ping"))
        both.plain.recognises(payload, event)
        auto.detect(event, json.dumps(payload).replace("Infinity", "1e999").encode())
        events, _ = both.read(payload, event)
        if any(e.type == "stream.end" for e in events):
            break
    both.finish(ended=generator.random() < 0.5)
    both.plain.bare(generator.choice(VALUES))


def test_payloads_that_hold_anything(llmstream):
    generator = random.Random(5)
    for number in range(1500):
        family = FAMILY_NAMES[number % len(FAMILY_NAMES)]
        own = [payload for name, payload in EXAMPLES if name == family]
        stream = [(None, own[0]), *((None, generator.choice(own)) for _ in range(generator.randint(1, 20)))]
        name = family.partition(" ")[0]
        play(llmstream, generator, generator.choice((name, name, name, "openai", "gemini")), stream)


def test_recorded_payloads_that_hold_anything(llmstream, recorded):
    generator = random.Random(6)
    for _ in range(300):
        family, stream, _ = generator.choice(recorded)
        if stream:
            start = generator.randrange(len(stream))
            play(llmstream, generator, family, stream[max(0, start - 20) : start + 20])
