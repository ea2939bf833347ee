"""A stream whose end is its last stop reason, torn after it: what was lost cannot be known, so it is not whole."""

from __future__ import annotations

import json

import pytest

from vendors import openai_chunk, sse

USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
LINE = b'{"model":"m","message":{"role":"assistant","content":"a"},"done":false}\n'


def generated(words, finish=None):
    candidate = {"content": {"parts": [{"text": words}], "role": "model"}, "index": 0}
    return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}


STREAMS = {
    "a usage chunk": ("openai", openai_chunk({"content": "a"}) + openai_chunk({}, "stop"), sse(USAGE)),
    "the end mark": ("openai", openai_chunk({"content": "a"}) + openai_chunk({}, "stop"), sse("[DONE]")),
    "an event": ("gemini", sse(generated("a", "STOP")), sse(generated("b", "STOP"))),
    "an item": ("gemini", b"[" + json.dumps(generated("a", "STOP")).encode(), b"," + json.dumps(USAGE).encode()),
    "the array": ("gemini", b"[" + json.dumps(generated("a", "STOP")).encode(), b"\n"),
    "a line": ("cohere-v1", b'{"is_finished":true,"finish_reason":"COMPLETE"}\n', b'{"is_finished":false}\n'),
}


@pytest.mark.parametrize("what", STREAMS)
def test_a_stream_that_is_torn_after_its_last_stop_reason(llmstream, what):
    dialect, whole, last = STREAMS[what]
    lines = what in ("a usage chunk", "the end mark", "an event")
    begin = 0 if what == "the array" else 1
    for cut in range(begin, len(last.rstrip(b"\n")) if what != "the array" else 1):
        data = whole + last[:cut]
        for dialect_or_auto in (dialect, "auto"):
            parser = llmstream.Parser(dialect_or_auto)
            events = parser.feed(data) + parser.close()
            assert not parser.complete, cut
            assert "stream.end" not in [event.type for event in events]
            found = [violation.requirement for violation in parser.violations]
            assert ("L-TAIL" in found) == (not lines or cut >= len("data"))  # a whole field name: data
            assert "R5.3.7-2" in found
            with pytest.raises(llmstream.IncompleteStreamError):
                llmstream.parse(data, dialect=dialect_or_auto, strict=True)
            with pytest.raises(llmstream.IncompleteStreamError):
                list(llmstream.iter_text(data, dialect=dialect_or_auto))
            transcoder = llmstream.Transcoder(dialect_or_auto)
            output = transcoder.feed(data) + transcoder.close()
            assert not transcoder.complete
            assert llmstream.check(output).ok
            assert transcoder.error.message.startswith("L-TAIL" if "L-TAIL" in found else "the stream stopped")


BEGUN = dict.fromkeys(["event: message", "event: message\n", "id: 1\n", "retry: 1\n", "d", "x"], False)
NOT_BEGUN = dict.fromkeys([": ping", ": ping\n", "\n", "\r\n", "x\n", "x: y\n", ":"], True)


@pytest.mark.parametrize(("rest", "complete"), (BEGUN | NOT_BEGUN).items())
def test_an_event_that_was_begun_was_torn(llmstream, rest, complete):
    whole = STREAMS["a usage chunk"][1]
    data = whole + rest.encode()
    for cut in range(len(whole) - 5, len(data)):
        parser = llmstream.Parser("openai")
        parser.feed(data[:cut])
        parser.feed(data[cut:])
        parser.close()
        assert parser.complete == complete


@pytest.mark.parametrize("what", ["a usage chunk", "the end mark", "a line"])
def test_between_two_events_nothing_was_torn(llmstream, what):
    dialect, whole, _ = STREAMS[what]
    assert llmstream.parse(whole, dialect=dialect).complete


def test_an_array_that_is_closed_is_whole(llmstream):
    dialect, whole, _ = STREAMS["the array"]
    assert not llmstream.parse(whole, dialect=dialect).complete
    for end in (b"]", b"\n]\r\n"):
        assert llmstream.parse(whole + end, dialect=dialect).complete


@pytest.mark.parametrize("last", [sse(USAGE)[:-1], sse(USAGE)[:-2], b"data: [DONE]"])
def test_a_last_event_that_only_lacks_its_blank_line_is_read(llmstream, last):
    result = llmstream.parse(STREAMS["a usage chunk"][1] + last, dialect="openai")
    assert result.complete
    assert [violation.requirement for violation in result.violations] == ["L-TAIL"]


def test_text_in_such_an_event_shows_that_the_answer_went_on(llmstream):
    for piece in (generated("b", "STOP"), generated("b")):
        data = sse(generated("a", "STOP")) + sse(piece)[:-1]
        assert not llmstream.parse(data, dialect="gemini").complete
        assert llmstream.parse(data, dialect="gemini").text == "ab"
    more = openai_chunk({"content": "b"}, index=0)[:-1]
    assert not llmstream.parse(STREAMS["a usage chunk"][1] + more, dialect="openai").complete


def test_a_frame_that_is_damaged_after_the_stop_reason(llmstream):
    stopped = b'{"is_finished":true,"finish_reason":"COMPLETE"}\n'
    result = llmstream.parse(stopped + b"oops", dialect="cohere-v1")
    assert (result.complete, result.stop_reasons) == (False, {0: "end_turn"})
    assert [violation.requirement for violation in result.violations] == ["L-FRAMING", "R5.3.7-2"]


@pytest.mark.parametrize("data", [b"", b"\n", b": ping\n\n", b"<html>", b'data: {"choices":[{"de'])
def test_where_no_payload_came_auto_has_no_candidates_to_list(llmstream, data):
    result = llmstream.parse(data, dialect="auto")
    found = {violation.requirement: violation.message for violation in result.violations}
    assert not result.complete
    assert "R5.3.7-2" in found
    assert found["L-DIALECT"] == "no known dialect fits"


@pytest.mark.parametrize("shapes", [True, False])
@pytest.mark.parametrize("before", [1, 2, 5])
def test_text_after_a_reason_takes_it_back_however_it_is_read(llmstream, before, shapes):
    pieces = [sse(generated(f"{at}")) for at in range(before)]
    data = b"".join([*pieces, sse(generated("b", "STOP")), sse(generated("c"))])
    result = llmstream.parse(data, dialect="gemini", shapes=shapes)
    assert result.text.endswith("bc")
    assert not result.complete
    assert "L-STOP" in [violation.requirement for violation in result.violations]
    assert llmstream.parse(data + sse(generated("d", "STOP")), dialect="gemini", shapes=shapes).complete
