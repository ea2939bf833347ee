"""A declared form gives exactly what ``translate`` would: on recorded payloads, and on payloads that hold anything."""

from __future__ import annotations

import copy
import functools
import json
import random
from collections import Counter
from importlib import import_module

import pytest

import handed

FAMILIES = {"chat.completions": "openai", "messages": "anthropic", "generateContent": "gemini"}
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


class Engine:
    """What the engine does with a dialect, in the words of ``Delta``: the forms first, once the stream has started."""

    def __init__(self, llmstream, name):
        self.llmstream = llmstream
        self.dialect = import_module("llmstream._registry").resolve(name)
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
        if any(at(path) is not MISSING and at(path) is not None for path in form.absent):
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

    def __init__(self, llmstream, name):
        self.plain = import_module("llmstream._registry").resolve(name)
        self.engine = Engine(llmstream, name)

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
    data = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
    if path.suffix == ".json":
        return [(None, value) for value in json.loads(data)]
    found = []
    for block in data.split("\n\n"):
        fields = [line.partition(":") for line in block.split("\n")]
        text = "\n".join(value.removeprefix(" ") for name, _, value in fields if name == "data")
        event = next((value.removeprefix(" ") for name, _, value in fields if name == "event"), None)
        if text.startswith("{"):
            found.append((event, json.loads(text)))
    return found


@pytest.fixture(scope="session")
def recorded():
    """Family and payloads of every capture."""
    rows = handed.rows("captures")
    return [(FAMILIES[row["api"]], payloads(handed.SHARED / "captures" / row["file"]), row["file"]) for row in rows]


def test_forms_give_what_translate_gives(llmstream, recorded):
    fragments, by_form = Counter(), Counter()
    for family, stream, file in recorded:
        both = Both(llmstream, family)
        vendor = file.partition("/")[0]
        for event, payload in stream:
            started = both.engine.started
            events, formed = both.read(payload, event)
            fragment = any(e.type == "content.delta" and (e.text or e.reasoning) for e in events)
            ends = "finishReason" in json.dumps(payload) or any(e.type == "content.stop" for e in events)
            if formed or (started and fragment and not ends):
                fragments[vendor] += 1
                by_form[vendor] += formed
        both.finish(ended=False)
    for vendor, count in fragments.items():
        assert count < 30 or by_form[vendor] >= 0.95 * count, (vendor, by_form[vendor], count)
    assert by_form.total() >= 0.99 * fragments.total()


# fmt: off
KEYS = [
    "annotations", "arguments", "args", "audio", "candidates", "choices", "completion_tokens", "content",
    "content_block", "custom", "delta", "error", "finish_reason", "finishReason", "function", "functionCall",
    "function_call", "id", "index", "input", "logprobs", "message", "name", "partialArgs",
    "parts", "prompt_tokens", "reasoning", "reasoning_content", "reasoning_details", "refusal", "signature",
    "stop_reason", "text", "thinking", "thought", "tool_calls", "type", "usage", "usageMetadata", "x_groq",
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
    {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": True}, {"jsonPath": "$.a.b"}]},
]

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
    both = Both(llmstream, family)
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
    for _ in range(600):
        family = generator.choice(("openai", "anthropic", "gemini"))
        own = [payload for name, payload in EXAMPLES if name == family]
        stream = [(None, own[0]), *((None, generator.choice(own)) for _ in range(generator.randint(1, 20)))]
        play(llmstream, generator, generator.choice((family, family, family, "openai", "gemini")), stream)


def test_recorded_payloads_that_hold_anything(llmstream, recorded):
    generator = random.Random(6)
    for _ in range(300):
        family, stream, _ = generator.choice(recorded)
        if stream:
            start = generator.randrange(len(stream))
            play(llmstream, generator, family, stream[max(0, start - 20) : start + 20])
