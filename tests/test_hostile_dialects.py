"""Dialects that misbehave: whatever they answer or raise is a violation, and nothing after it is lost."""

from __future__ import annotations

import json

import pytest

import splits


def stream(count):
    return b"".join(b"data: " + json.dumps({"n": n}).encode() + b"\n\n" for n in range(count))


def outcome(parser, chunks):
    events = [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()
    return events, [(v.requirement, v.event) for v in parser.violations]


def dialect(llmstream, answer, **members):
    """A dialect whose ``translate`` is ``answer(self, n)``."""

    def translate(self, payload, event):
        return answer(self, payload["n"])

    return type("Odd", (llmstream.Dialect,), {"name": "odd", "translate": translate, **members})


def text(llmstream, n):
    return llmstream.ContentDelta(text=str(n))


@pytest.mark.parametrize("error", [RuntimeError, KeyError, RecursionError, AssertionError, StopIteration, MemoryError])
def test_an_exception_is_a_violation_and_the_rest_is_read(llmstream, error):
    def answer(self, n):
        if n == 1:
            raise error
        return [text(llmstream, n)]

    odd = dialect(llmstream, answer)
    for chunks in splits.some_ways(stream(4)):
        events, violations = outcome(llmstream.Parser(odd), chunks)
        assert [e.text for e in events if e.type == "content.delta"] == ["0", "2", "3"]
        assert violations[0] == ("L-PAYLOAD", 1)


@pytest.mark.parametrize("junk", [5, None, "x", [1, 2], [None], 7.5, object()])
def test_an_answer_that_is_none(llmstream, junk):
    odd = dialect(llmstream, lambda self, n: [text(llmstream, n)] if n != 1 else junk)
    events, violations = outcome(llmstream.Parser(odd), [stream(3)])
    assert [e.text for e in events if e.type == "content.delta"] == ["0", "2"]
    assert ("L-PAYLOAD", 1) in violations


@pytest.mark.parametrize("rule", [80, 10**6, -1, -(10**9), "x", None, 1.5, True, 0])
def test_a_report_that_is_no_rule(llmstream, rule):
    def answer(self, n):
        self.reports.append(rule)
        return [text(llmstream, n)]

    events, violations = outcome(llmstream.Parser(dialect(llmstream, answer)), [stream(1)])
    assert [e.text for e in events if e.type == "content.delta"] == ["0"]
    assert violations[0] == ("L-PAYLOAD", 0)


def test_a_start_comes_first_and_once(llmstream):
    def answer(self, n):
        return [text(llmstream, n), llmstream.StreamStart(model=f"m{n}")]

    events, _ = outcome(llmstream.Parser(dialect(llmstream, answer)), [stream(3)])
    assert [(e.type, e.seq) for e in events] == [
        (kind, n) for n, kind in enumerate(["stream.start"] + 3 * ["content.delta"])
    ]
    assert events[0].model == "m0"


def test_a_start_is_made_up_where_there_is_none(llmstream):
    events, _ = outcome(llmstream.Parser(dialect(llmstream, lambda self, n: [text(llmstream, n)])), [stream(1)])
    assert [e.type for e in events] == ["stream.start", "content.delta"]


@pytest.mark.parametrize("answer", ["itself", "raise", 5])
def test_a_detector_that_never_decides(llmstream, answer):
    def detect(self, event, data):
        if answer == "raise":
            raise RuntimeError
        return self if answer == "itself" else None

    odd = dialect(llmstream, lambda self, n: [], detect=detect, candidates=("a", "b"))
    events, violations = outcome(llmstream.Parser(odd), [stream(3)])
    assert [e.type for e in events] == [""] * 3
    assert [requirement for requirement, _ in violations] == ["L-DIALECT", "R5.3.7-2"]


def test_feeding_from_within_is_refused(llmstream):
    refused = []

    def answer(self, n):
        try:
            parser.feed(b"data: {}\n\n")
        except RuntimeError as error:
            refused.append(str(error))
        return [text(llmstream, n)]

    parser = llmstream.Parser(dialect(llmstream, answer))
    events = parser.feed(stream(2))
    assert [e.text for e in events[1:]] == ["0", "1"]
    assert refused == ["the parser is being fed already"] * 2


@pytest.mark.parametrize("before", [b"\n" * 5000, b"\r\n" * 3000, b" \n\t\n", b"\xef\xbb\xbf\n\n", b"   \r"])
@pytest.mark.parametrize("name", ["openai", "gemini", "auto", "anthropic"])
def test_blank_lines_before_the_first_byte(llmstream, name, before):
    body = {
        "gemini": b'[{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}]',
        "openai": b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n',
        "anthropic": b'data: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n',
        "auto": b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n',
    }[name]
    whole = before + body
    expected = outcome(llmstream.Parser(name), [body])
    assert expected[0]
    for chunks in [[whole], [whole[i : i + 1] for i in range(len(whole))], [before, body]]:
        events, violations = outcome(llmstream.Parser(name), chunks)
        assert [(type(e), e.raw) for e in events] == [(type(e), e.raw) for e in expected[0]]
        assert violations == expected[1]


def test_a_long_call_id_that_is_repeated(llmstream):
    def call(seq, identity):
        data = {"v": "1.0", "seq": seq, "type": "tool.call", "index": 0, "id": identity, "name": "f", "arguments": "{}"}
        return b"event: tool.call\ndata: " + json.dumps(data).encode() + b"\n\n"

    start = b'event: stream.start\ndata: {"v":"1.0","seq":0,"type":"stream.start","model":"m","created":1}\n\n'
    parser = llmstream.Parser()
    parser.feed(start + call(1, "x" * 5000) + call(2, "y" * 5000) + call(3, "x" * 5000))
    assert [(v.requirement, v.event) for v in parser.violations] == [("R5.3.4-2", 3)]


@pytest.mark.parametrize("tail", [b"", b'{"error":{"code":"x","message":"again"}}\n', b"\n" + b'{"n":1}' * 20000])
def test_an_error_body_is_found_whatever_follows(llmstream, tail):
    body = b'{"error": {"code": "overloaded", "message": "m"}}\n'
    parser = llmstream.Parser()
    events = parser.feed(body + tail) + parser.close()
    found = [v.requirement for v in parser.violations]
    assert "L-STRAY" in found
    if len(tail) < 60000:
        assert [e.code for e in events] == ["overloaded"]
