"""StreamResult and the Collector that fills it."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from drafts import delta, event
from streams import BODY, CUT, FAILED, GAP, TEXTS
from vendors import sse

TEXT = "".join(TEXTS)


def test_what_a_whole_stream_said(llmstream: Any) -> None:
    result = llmstream.parse(BODY)
    assert result.text == TEXT
    assert result.texts == {0: TEXT}
    assert result.reasoning == ""
    assert result.tool_calls == []
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3, 4)
    assert result.model == "writer-1"
    assert result.stop_reasons == {0: "end_turn"}
    assert result.vendor_stop_reasons == {}
    assert result.error is None
    assert result.complete is True
    assert result.gaps == []
    assert result.violations == []
    assert result.violation_count == 0
    assert result.dialect == "llm-stream"


def test_the_same_from_every_cut(llmstream: Any) -> None:
    whole = llmstream.parse(BODY)
    for at in range(len(BODY)):
        assert llmstream.parse([BODY[:at], BODY[at:]]) == whole


def test_what_a_cut_stream_said(llmstream: Any) -> None:
    result = llmstream.parse(CUT)
    assert (result.text, result.complete) == (TEXT, False)
    assert [violation.requirement for violation in result.violations] == ["R5.3.7-2"]


def test_what_a_stream_with_losses_said(llmstream: Any) -> None:
    result = llmstream.parse(GAP)
    assert (result.text, result.gaps) == (TEXT.replace(TEXTS[1], ""), [(2, 2)])
    assert result.violation_count == len(result.violations) == 1


def test_what_a_failed_stream_said(llmstream: Any) -> None:
    result = llmstream.parse(FAILED)
    assert (result.text, result.error.code) == (TEXT, "overloaded")
    assert result.error.message == "prompt: SECRET"


def test_tool_calls_stops_and_the_last_usage(llmstream: Any) -> None:
    body = [
        event("stream.start", 0, model="", created=1),
        delta(1, "a", 1),
        event("usage", 2, input_tokens=1, output_tokens=1),
        event("tool.call", 3, index=2, id="1", name="f", arguments="{}"),
        event("tool.call", 4, index=3, id="2", name="g", arguments="{}"),
        event("content.stop", 5, index=1, stop_reason="end_turn"),
        event(
            "content.stop",
            6,
            index=2,
            stop_reason="tool_use",
            extensions={"acme:stop_reason": "tools", "acme:other": "x"},
        ),
        event("content.stop", 7, index=3, stop_reason="tool_use"),
        event("usage", 8, input_tokens=1, output_tokens=9),
        event("stream.end", 9),
    ]
    result = llmstream.parse(body, strict=True)
    assert [(call.id, call.name, call.index) for call in result.tool_calls] == [
        ("1", "f", 2),
        ("2", "g", 3),
    ]
    assert result.stop_reasons == {1: "end_turn", 2: "tool_use", 3: "tool_use"}
    assert result.vendor_stop_reasons == {2: "tools"}
    assert result.usage.output_tokens == 9
    assert result.model is None


@pytest.mark.parametrize(
    ("body", "error"),
    [(CUT, "IncompleteStreamError"), (GAP, "SequenceError"), (FAILED, "UpstreamError")],
)
def test_strict_errors_carry_what_was_read(llmstream: Any, body: bytes, error: str) -> None:
    with pytest.raises(getattr(llmstream, error)) as caught:
        llmstream.parse(body, strict=True)
    partial = caught.value.partial
    assert partial.text in (TEXT, TEXTS[0])
    assert partial.model == "writer-1"
    assert (partial.error is not None) is (error == "UpstreamError")
    assert not partial.complete
    assert pickle.loads(pickle.dumps(caught.value)).partial == partial


def test_it_is_immutable(llmstream: Any) -> None:
    result = llmstream.parse(BODY)
    with pytest.raises(AttributeError):
        result.text = "x"
    with pytest.raises(AttributeError):
        del result.text
    with pytest.raises(AttributeError):
        result.nonsense = 1
    with pytest.raises(TypeError):
        hash(result)


def test_it_is_equal_by_what_it_holds(llmstream: Any) -> None:
    assert llmstream.parse(BODY) == llmstream.parse(BODY)
    assert llmstream.parse(BODY) != llmstream.parse(CUT)
    assert llmstream.parse(BODY) != TEXT
    assert llmstream.StreamResult() == llmstream.StreamResult(text="", texts={})


def test_copies_and_pickles(llmstream: Any) -> None:
    for body in (BODY, FAILED, GAP):
        result = llmstream.parse(body)
        assert copy.copy(result) == copy.deepcopy(result) == result
        assert pickle.loads(pickle.dumps(result)) == result


def test_its_repr_holds_no_words_of_the_stream(llmstream: Any) -> None:
    shown = repr(llmstream.parse(FAILED))
    assert "SECRET" not in shown
    assert TEXTS[0] not in shown
    assert f"text=<{len(TEXT)} characters>" in shown
    assert "error='overloaded'" in shown
    assert repr(llmstream.StreamResult()).startswith("StreamResult(")


def test_it_can_be_matched(llmstream: Any) -> None:
    match llmstream.parse(BODY):
        case llmstream.StreamResult(text=text, complete=True):
            assert text == TEXT
        case _:
            pytest.fail("no match")


def test_a_result_does_not_keep_the_body_alive(llmstream: Any) -> None:
    padding = b": " + b"x" * 1_000_000 + b"\n"
    body = BODY.replace(b"event: usage", padding + b"event: usage")
    assert len(pickle.dumps(llmstream.parse(body))) < 5_000
    assert llmstream.parse(body).usage.raw.startswith(b'{"v":"1.0"')


def collector(llmstream: Any) -> Any:
    import importlib

    return importlib.import_module("llmstream.result").Collector()


class Known:
    """What a parser knows of a stream that ended well."""

    complete = True
    gaps = ()
    violations = ()
    violation_count = 0
    dialect = "acme"

    def __init__(self, *, alternatives: bool) -> None:
        self.alternatives = alternatives


def test_alternatives_are_told_from_blocks(llmstream: Any) -> None:
    found = collector(llmstream)
    for index, text in ((0, "a"), (1, "x"), (0, "b"), (2, "y")):
        found.add(llmstream.ContentDelta(text=text, index=index))
        found.add(llmstream.ContentDelta(reasoning=text.upper(), index=index))
    found.extend([llmstream.ToolCall(id=str(index), index=index) for index in (1, 0)])

    result = found.result(Known(alternatives=True))
    assert (result.text, result.reasoning) == ("ab", "AB")
    assert [call.id for call in result.tool_calls] == ["0"]
    assert result.texts == {0: "ab", 1: "x", 2: "y"}
    assert result.dialect == "acme"

    result = found.result(Known(alternatives=False))
    assert (result.text, result.reasoning) == ("axby", "AXBY")
    assert [call.id for call in result.tool_calls] == ["1", "0"]


def test_an_only_alternative_that_is_not_the_primary_one_is_no_answer(llmstream: Any) -> None:
    found = collector(llmstream)
    found.add(llmstream.ContentDelta(text="x", index=1))
    assert found.result(Known(alternatives=True)).text == ""
    assert found.result(Known(alternatives=True)).texts == {1: "x"}
    assert found.result(Known(alternatives=False)).text == "x"


def test_a_collector_goes_on_after_a_result(llmstream: Any) -> None:
    found = collector(llmstream)
    found.add(llmstream.ContentDelta(text="a"))
    first = found.result(Known(alternatives=False))
    found.add(llmstream.ContentDelta(text="b"))
    found.add(llmstream.StreamError(code="x"))
    found.add(llmstream.StreamError(code="y"))
    second = found.result(Known(alternatives=False))
    assert (first.text, second.text) == ("a", "ab")
    assert (first.error, second.error.code) == (None, "x")


@pytest.mark.parametrize("count", [5, 8, 2000])
@pytest.mark.parametrize("dialect", ["gemini", "openai"])
def test_many_events_of_one_payload_keep_one_copy_of_it(llmstream, dialect, count):
    if dialect == "gemini":
        parts = [{"functionCall": {"name": "f", "args": {}}}] * count
        payload = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP", "index": 0}]}
    else:
        calls = [{"index": at, "id": f"c{at}", "function": {"name": "f", "arguments": "{}"}} for at in range(count)]
        payload = {"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    # With other bytes around it in the chunk.
    body = b": a comment before\n\n" + sse(payload) + b": and one after\n\n"
    result = llmstream.parse(body, dialect=dialect)
    assert len(result.tool_calls) == count
    assert len({id(call.raw) for call in result.tool_calls}) == 1
    assert json.loads(result.tool_calls[0].raw) == payload


def test_many_events_of_later_frames_show_their_own_bytes(llmstream):
    def item(letter, padding):
        parts = [{"functionCall": {"name": letter, "args": {}}} for _ in range(9)]
        candidates = [{"content": {"parts": parts}, "finishReason": "STOP"}]
        return json.dumps({"candidates": candidates, "padding": padding}).encode()

    items = [item("a", ""), item("b", "x" * 500), item("c", "")]
    body = b"[" + b",".join(items) + b"]"
    for chunks in ([body], [body[:100], body[100:]], [body[at : at + 1] for at in range(len(body))]):
        for dialect in ("gemini", "auto"):
            parser = llmstream.Parser(dialect)
            events = [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()
            calls = [event for event in events if event.type == "tool.call"]
            assert [call.raw for call in calls] == [items["abc".index(call.name)] for call in calls]
            assert len(calls) == 27
