"""What dialects are made of: reading values, counts, calls, failures."""

from __future__ import annotations

from importlib import import_module

import pytest

INFINITY = float("inf")


@pytest.fixture
def part(llmstream):
    return lambda name: import_module(f"llmstream.dialects.{name}")


def test_values_of_the_wrong_type_are_absent(part):
    values = part("values")
    assert [values.text(v) for v in ("a", None, 1, ["a"], {}, True)] == ["a", "", "", "", "", ""]
    assert [values.word(v) for v in ("a", 1, 0, -5, 2**70, True, 1.0, None)] == ["a", "1", "0", "-5", "", "", "", ""]
    numbers = [0, 2**63 - 1, 2**63, -1, True, False, 1.0, INFINITY, "1", None]
    assert [values.number(v) for v in numbers] == [0, 2**63 - 1, *[None] * 8]
    assert [values.members(v) for v in ({"a": 1}, [], "a", None)] == [{"a": 1}, {}, {}, {}]
    assert [values.items(v) for v in ([1, 2], [1, None, 2], [None], [], {}, "ab", None)] == [
        [1, 2],
        [1, 2],
        [],
        [],
        [],
        [],
        [],
    ]


def test_paths(part):
    at = part("values").at
    value = {"a": [{"b": {"c.d": 5}}], "n": None}
    assert at(value, 'a[0].b["c.d"]') == 5
    for path in ("a[1].b", "a.b", "n.x", "x", "a[0].b.c", None):
        assert at(value, path) is None
    assert at("text", "a") is at([1], "a") is None


def test_written_and_compact(part):
    values = part("values")
    deep = []
    for _ in range(100_000):
        deep = [deep]
    given = {"a": 1, "b": INFINITY, "c": {"d": [-INFINITY]}, "e": "é", "f": deep}
    assert values.written(given).text == '{"a":1,"e":"é"}'
    assert values.written({"a": [{"b": 1}]}).text == '{"a":[{"b":1}]}'
    assert values.written({}) is values.written({"b": INFINITY}) is None
    assert values.compact({"b": "é", "a": [1, None, True]}) == '{"b":"é","a":[1,null,true]}'
    assert values.compact({"a": INFINITY}) == '{"a":Infinity}'


def test_counts(part):
    counts = part("counts").Counts()
    assert (counts.due, counts.partial, counts.deliver()) == (False, False, None)
    counts.note(3, None)
    assert (counts.due, counts.partial, counts.deliver()) == (True, True, None)
    counts.note(None, 4)
    assert (counts.due, counts.partial, counts.deliver()) == (True, False, (3, 4))
    assert not counts.due
    counts.note(3, 4)
    assert not counts.due
    counts.delivered(5, 6)
    counts.note(None, None)
    assert not counts.due
    counts.note(None, 7)
    assert (counts.due, counts.deliver()) == (True, (5, 7))


def test_a_count_of_none_is_filled_with_0(part):
    counts = part("counts").Counts()
    counts.note(None, 4)
    counts.fill()
    assert counts.deliver() == (0, 4)
    assert not counts.partial


def test_counts_that_a_form_delivered_are_known(llmstream, part):
    # What a form read must not be forgotten when a later payload has one count only.
    dialect = part("openai").OpenAI()
    dialect.translate({"usage": {"prompt_tokens": 3}, "choices": [{"delta": {}}]}, None)
    dialect.counted(3, 50)
    assert dialect.finish(False) == []
    assert dialect.reports == []
    dialect = part("openai").OpenAI()
    dialect.counted(3, 50)
    events = dialect.translate({"usage": {"prompt_tokens": 4}}, None)
    assert events[-1] == llmstream.Usage(input_tokens=4, output_tokens=50)


def test_calls_are_bounded(part):
    calls = part("calls").Calls(5000)
    opened = [calls.piece(0, number, f"id-{number}", "f") for number in range(10)]
    assert [call is None for call in opened] == [False] * 4 + [True] * 6
    assert calls.too_large
    assert len(calls.take(0)) == 4
    assert calls.indexes() == []
    call = calls.piece(0, 0)
    for _ in range(5):
        calls.append(call, "x" * 1000)
    assert len(call.arguments) == 3000
    assert calls.take(0) == [call]
    assert calls.take(0) == []
    assert calls.piece(1, 0, "x" * 6000).id == ""


def test_many_open_calls_are_taken_in_linear_time(part):
    calls = part("calls").Calls(2**24)
    for number in range(16_000):
        calls.piece(number, 0, "id")
    assert sum(len(calls.take(index)) for index in calls.indexes()) == 16_000


@pytest.mark.parametrize(
    ("error", "meaning", "code"),
    [
        ({"code": "rate_limit_exceeded", "type": "server_error"}, "rate_limited", "rate_limit_exceeded"),
        ({"code": None, "type": "overloaded_error"}, "overloaded", "overloaded_error"),
        ({"code": 404, "status": "NOT_FOUND"}, "NOT_FOUND", 404),
        ({"code": 404}, "404", 404),
        ({"code": True, "type": ["x"]}, "internal_error", ""),
        ({"type": "error"}, "internal_error", ""),
        ({}, "internal_error", ""),
    ],
)
def test_failures(part, error, meaning, code):
    failure = part("failures").read({**error, "message": "m"})
    assert (failure.meaning({}), failure.code, failure.message) == (meaning, code, "m")


def test_the_codes_of_a_dialect_come_first(part):
    failure = part("failures").read({"code": "429", "message": ["no"], "detail": "d"})
    assert failure.meaning({"429": "overloaded"}) == "overloaded"
    assert failure.message == "d"


def test_bodies(part):
    body = part("failures").body
    assert [body(v) for v in (None, [], {}, "error", [[]], {"error": None}, {"error": 5}, {"object": "list"})] == [
        None
    ] * 8
    for value in (
        {"error": "m"},
        [{"error": {"message": "m"}}],
        {"object": "error", "message": "m"},
        {"error": {"msg": "m"}},
    ):
        assert body(value).message == "m"


def test_one_error_a_stream(llmstream):
    dialect = llmstream.Dialect("x")
    assert [e.type for e in dialect.bare({"error": "a"})] == ["stream.start", "error"]
    assert dialect.bare({"error": "b"}) == []
    assert dialect.bare({"other": 1}) == []


def test_finish_is_idempotent(llmstream, part):
    for name, cls in (("openai", "OpenAI"), ("anthropic", "Anthropic"), ("gemini", "Gemini")):
        for ended in (True, False):
            dialect = getattr(part(name), cls)()
            dialect.append_arguments(0, 0, "{")
            first = dialect.finish(ended)
            assert [e.type for e in first][:2] == ["stream.start", "tool.call"]
            assert dialect.finish(ended) == []
            assert dialect.finish(False) == []


def test_choices_are_bounded(llmstream, part):
    rules = import_module("llmstream.rules")
    dialect = part("openai").OpenAI()
    for index in range(rules.MAX_BLOCKS + 10):
        dialect.translate({"choices": [{"index": index, "delta": {"content": "a"}}]}, None)
        dialect.touch(2**40 + index)
    assert dialect.reports == [rules.TOO_MANY_BLOCKS]
    for index in range(rules.MAX_BLOCKS + 10):
        dialect.translate({"choices": [{"index": index, "finish_reason": "stop"}]}, None)
    assert not dialect.complete
    assert [e.type for e in dialect.finish(True)] == ["stream.end"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[" * 500 + "]" * 500, True),
        ("[" * 501 + "]" * 501, False),
        ('["' + "[" * 501 + '"]', True),
        ('["' + "[" * 100_000, False),
        ("[" * 100_000, False),
        ("{}" * 501, False),
        ("[" + ",".join(["{}"] * 501) + "]", True),
        ("NaN", False),
        ("1e400", True),
    ],
)
def test_is_json_does_not_depend_on_the_callers_stack(part, text, found):
    is_json = part("values").payload.is_json

    def deeper(levels):
        return is_json(text) if levels == 0 else deeper(levels - 1)

    assert is_json(text) is deeper(300) is found
