"""The recorded streams, against what a plain reader found in them (``expected.jsonl``)."""

from __future__ import annotations

import hashlib
from importlib import import_module

import pytest

import handed
import splits
from vendors import FAMILIES

CUT = {
    "gen-fb-vertexai-streaming-failure-api-key": "an error body",
    "gen-fb-vertexai-streaming-failure-empty-content": "no stop reason",
    "gen-fb-vertexai-streaming-failure-prompt-blocked-safety-with-message": "the last event has no blank line",
    "gen-fb-vertexai-streaming-success-quotes-escaped": "no stop reason",
    "chat-rllm-with-extended-thinking-gpustack-qwen3-streams-thinking-content-when-av": "no stop reason",
    "messages-antpy-incomplete-partial-json-response": "the last event has no blank line",
    "messages-antpy-tool-use-response": "the last event has no blank line",
    "converse-reqllm-validation-exception": "an exception",
    "invoke-agent-dd-agent-invoke-trace-disabled": "the API has neither a stop reason nor an end mark",
    "writer-completions-ollmetry-writer-async-streaming-completions-legacy": "neither a stop reason nor an end mark",
}
"""What was not recorded to its end, and how it shows."""


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def calls(row):
    """The expected calls, with the id that a call without one is given."""
    nameless = 0
    for call in row["tool_calls"]:
        id = call["id"]
        if id is None:
            id = f"call-{nameless}"
            nameless += 1
        # No arguments at all are {}.
        yield id, call["name"], call["arguments"] or "{}"


def expected(row):
    usage = row["usage"]["input"], row["usage"]["output"]
    error = row.get("error")
    return {
        "text": row["text_sha256"],
        "reasoning": row["reasoning_sha256"],
        "refusal": row["refusal"],
        "tool_calls": list(calls(row)),
        "model": row.get("model"),
        "stop_reason": row.get("stop_reason"),
        # One of two counts: the other is 0, and a violation.
        "usage": None if usage == (None, None) else (usage[0] or 0, usage[1] or 0),
        "error": None if error is None else (error["message"], error.get("code", error.get("type"))),
    }


def found(result, events):
    stops = result.vendor_stop_reasons
    error = result.error
    refusals = (v for e in events if e.index == 0 for key, v in e.extensions.items() if key.endswith(":refusal"))
    return {
        "text": digest(result.text),
        "reasoning": digest(result.reasoning),
        "refusal": "".join(refusals),
        "tool_calls": [(call.id, call.name, call.arguments) for call in result.tool_calls],
        "model": result.model,
        "stop_reason": stops.get(0, next(iter(stops.values()), None)),
        "usage": result.usage and (result.usage.input_tokens, result.usage.output_tokens),
        "error": error and (error.message, next(iter(error.extensions.values()))),
    }


@pytest.mark.parametrize("by", ["family", "vendor", "auto"])
def test_captures(llmstream, by):
    rows = handed.rows("captures")
    variants = import_module("llmstream.dialects").VARIANTS
    for number, row in enumerate(rows):
        vendor, family = row["file"].partition("/")[0], FAMILIES[row["api"]]
        varies = vendor == "snowflake" or vendor in variants.get(family, ())
        dialect = {"family": family, "vendor": vendor if varies else family, "auto": "auto"}[by]
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        for chunks in ([data], splits.at_random(data, number)):
            result = llmstream.parse(chunks, dialect=dialect)
            deltas = [
                e for e in llmstream.iter_events(chunks, dialect=dialect) if isinstance(e, llmstream.ContentDelta)
            ]
            assert found(result, deltas) == expected(row), row["file"]
            assert result.complete == (row["file"].partition("/")[2].rpartition(".")[0] not in CUT), row["file"]
    handed.handed("captures", (row["file"] for row in rows))


def test_shapes_change_nothing(llmstream):
    for row in handed.rows("captures"):
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        ways = []
        for shapes in (True, False):
            parser = llmstream.Parser(FAMILIES[row["api"]], shapes=shapes)
            events = parser.feed(data) + parser.close()
            ways.append(([(e, e.raw) for e in events], parser.violations, parser.complete))
        assert ways[0] == ways[1], row["file"]


def test_a_cut_stream_holds_the_beginning_of_the_text(llmstream):
    for number, row in enumerate(handed.rows("captures")):
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        family = FAMILIES[row["api"]]
        whole = llmstream.parse(data, dialect=family)
        repeats = "L-STOP" in [violation.requirement for violation in whole.violations]  # old models: with every piece
        for cut in (len(data) // 3, len(data) // 2, (number * 7919) % len(data), len(data) - 1, len(data) - 30):
            part = llmstream.parse(data[:cut], dialect=family)
            assert whole.text.startswith(part.text), row["file"]
            assert whole.reasoning.startswith(part.reasoning), row["file"]
            if part.complete and not repeats:
                assert (part.text, part.vendor_stop_reasons) == (whole.text, whole.vendor_stop_reasons), row["file"]
