"""The draft's own examples as executable documentation: as printed, read by the loader for documents, and as the API
would write and read them (draft, sections 4.3 to 4.8, 5.3 and 5.5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import drafts

EXAMPLES = Path(__file__).resolve().parents[1] / "conformance" / "examples"
COMPLETE = EXAMPLES / "5.5-complete-example.txt"
STREAMS = sorted(path.name for path in EXAMPLES.glob("*.txt") if b"event: " in path.read_bytes())
SENTENCE = "The weather in Vienna is 24C and sunny."


def unfolded(name: str) -> bytes:
    from llmstream.conformance.folded import unfold

    return b"".join(event for _, event in unfold((EXAMPLES / name).read_bytes()))


def test_the_complete_example(llmstream):
    """Section 5.5, R5.3.2-4, R5.2-3, R5.3.1-3, R5.3.5-2: written by an encoder, read by a parser."""
    from llmstream.conformance import check
    from llmstream.encoder import Encoder

    # The endpoint: one method an event; the numbers count themselves.
    encoder = Encoder(clock=lambda: 1749292800)
    body = encoder.start("example-model", request_id="550e8400-...")
    for words in ("The", " weather", " in Vienna", " is 24C and sunny."):
        body += encoder.delta(words)
    body += encoder.stop("end_turn")
    body += encoder.usage(42, 8)
    body += encoder.end()

    # The client: what it said, and that it was whole.
    result = llmstream.parse(body)
    assert result.text == SENTENCE
    assert result.model == "example-model"
    assert result.stop_reasons == {0: "end_turn"}
    assert (result.usage.input_tokens, result.usage.output_tokens) == (42, 8)
    assert result.complete
    assert check(body, strict=True).ok

    # The same events as the draft prints, member by member.
    assert [event.json() for event in llmstream.iter_events(body)] == [
        event.json() for event in llmstream.iter_events(unfolded(COMPLETE.name))
    ]


@pytest.mark.parametrize("name", STREAMS)
def test_an_example_as_printed_is_cut_json(llmstream, name):
    """R5.1-1, R5.1-3, A-3: the parser never joins the lines; the checker says what the matter is, and what helps."""
    from llmstream.conformance import check

    printed = (EXAMPLES / name).read_bytes()
    assert llmstream.parse(printed).text == ""
    assert not llmstream.parse(printed).complete
    report = check(printed)
    events = printed.count(b"event: ")
    folded = [v for v in report.violations if v.requirement == "R5.1-1" and v.severity == "error"]
    assert len(folded) == events
    assert all("without data:" in violation.message and "--folded" in violation.message for violation in folded)
    assert [v.requirement for v in report.violations].count("R5.1-3") == events


def test_the_complete_example_unfolded(llmstream):
    """A-3: the loader joins the lines, drops the HTTP header, and nothing is to be found."""
    from llmstream.conformance import check

    report = check(COMPLETE.read_bytes(), folded=True, strict=True)
    assert report.violations == []
    assert report.event_count == 8
    assert llmstream.parse(unfolded(COMPLETE.name), strict=True).text == SENTENCE


def test_fragments_unfolded(llmstream):
    """R5.3.1-1, R5.3.7-2: examples of one event are read, and are no whole streams."""
    from llmstream.conformance import check

    result = llmstream.parse(unfolded("5.3.2-content-delta.txt"))
    assert result.text == "The weather in Vienna is currently 24C and sunny."
    report = check((EXAMPLES / "5.3.1-stream-start.txt").read_bytes(), folded=True)
    assert [violation.requirement for violation in report.violations] == ["R5.3.7-2"]


def test_the_tool_responses_leave_members_out(llmstream):
    """A-2: the tables win over the examples of section 4.8; what is there is read all the same."""
    from llmstream.conformance import check

    [call, stop] = drafts.run(llmstream, unfolded("4.8-response-1.txt"))[1]
    assert (call.id, call.name, call.arguments, call.index) == ("call_1", "get_weather", '{"city":"Vienna"}', 0)
    assert (stop.stop_reason, stop.index, stop.seq) == ("tool_use", 0, None)
    assert llmstream.parse(unfolded("4.8-response-2.txt")).text == "The weather in Vienna is 24C."
    report = check((EXAMPLES / "4.8-response-1.txt").read_bytes(), folded=True)
    assert {"R5.2-1", "R5.2-2", "R5.3.1-1", "R5.3.3-1", "R5.3.4-1"} <= {v.requirement for v in report.violations}


def test_offsets_in_a_document_are_those_of_the_document(llmstream):
    from llmstream.conformance import check

    printed = COMPLETE.read_bytes().replace(b'"seq":3', b'"seq":9').replace(b'"type":"usage"', b'"type":"usages"')
    report = check(printed, folded=True)
    places = {violation.requirement: violation.offset for violation in report.violations}
    assert printed[places["R5.2.1-3"] :].startswith(b'event: content.delta\ndata: {"v":"1.0","seq":9')
    assert printed[places["R5.2-5"] :].startswith(b"event: usage\n")
    cut = COMPLETE.read_bytes().partition(b"event: stream.end")[0]
    [violation] = check(cut, folded=True).violations
    assert (violation.requirement, violation.offset) == ("R5.3.7-2", len(cut))


def test_a_document_with_indentation_page_breaks_and_no_blank_lines(llmstream):
    from llmstream.conformance import check

    lines = COMPLETE.read_text().split("\n")
    rfc = "\r\n".join(f"   {line}" for line in lines if line)
    rfc = rfc.replace(
        '"index":0,"role"', '\r\n\r\nRosomakho & Pallagatti  [Page 24]\f\r\n\r\n      "index":0,"role"', 1
    )
    assert check(rfc.encode(), folded=True, strict=True).violations == []
    without = "\n".join(f"   {line}" for line in lines if line)
    assert check(b"\xef\xbb\xbf" + without.encode(), folded=True, strict=True).ok


def test_the_loader_mends_nothing_else(llmstream):
    """R5.1-4, R5.1-5, A-3: JSON cut by an event line or the end stays cut; whole streams stay as they are."""
    from llmstream.conformance import check

    for body in (drafts.whole("a", "b\n\n: x"), drafts.whole("data: {", '"}{"'), drafts.start(request_id="a")):
        assert check(body, folded=True).to_json() == check(body).to_json()
    cut = drafts.start() + b'event: usage\ndata: {"v":"1.0","seq":1,\n\n' + drafts.usage(1) + drafts.end(2)
    assert [v.requirement for v in check(cut, folded=True).violations] == ["R5.1-3"]
    words = b'event: usage\ndata: {"v":"1.0","seq":0,"type":"usage","x":"in the\n   middle of a string"}\n\n'
    assert "R5.1-3" in [v.requirement for v in check(words, folded=True).violations]


def test_an_event_over_very_many_lines(llmstream):
    """The loader takes linear time."""
    from llmstream.conformance import check

    items = ",\n".join(["1"] * 200_000)
    folded = b'event: usage\ndata: {"v":"1.0","seq":1,"type":"usage","input_tokens":1,"output_tokens":1,"x":[\n'
    body = drafts.start() + folded + items.encode() + b"]}\n\n" + drafts.end(2)
    assert check(body, folded=True, strict=True).violations == []


# Requests


def members(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("{" + (EXAMPLES / name).read_text() + "}")
    return found


def test_the_members_of_a_request(llmstream):
    """R4.3-6, R4.4-1, R4.6-1, R4.7-1: the examples of sections 4.3, 4.4, 4.6 and 4.7 make one good request."""
    from llmstream.conformance import check

    request: dict[str, Any] = {"version": "1.0", "stream": True, "model": "example-model"}
    for name in ("4.3-messages.txt", "4.4-tools.txt", "4.6-metadata.txt", "4.7-extensions.txt"):
        request.update(members(name))
    report = check(None, request=request, strict=True)
    assert report.violations == []
    assert report.ok


def test_both_forms_of_content(llmstream):
    """R4.3.1-1, R4.3.1-2, R4.3.1-3: the placeholder in the printed example is no base64."""
    from llmstream.conformance import check

    text = json.loads((EXAMPLES / "4.3.1-text.txt").read_text())
    parts = json.loads((EXAMPLES / "4.3.1-parts.txt").read_text())
    request = {"version": "1.0", "stream": True, "model": "m", "messages": [text, parts]}
    assert [v.requirement for v in check(None, request=request, strict=True).violations] == ["R4.3.1-2"]
    parts["content"][1]["data"] = "iVBORw0KGgo="
    assert check(None, request=request, strict=True).ok


def test_the_tool_loop(llmstream):
    """Section 4.8, R4.8-1, R4.8-2, R8.2-1, A-1: request, call, result, request, answer."""
    from llmstream.conformance import check
    from llmstream.encoder import Encoder

    request: dict[str, Any] = {
        "version": "1.0",
        "stream": True,
        "model": "example-model",
        **json.loads((EXAMPLES / "4.8-request-1.txt").read_text().replace(", ...", "")),
        **members("4.4-tools.txt"),
    }
    encoder = Encoder()
    first = encoder.start("example-model") + encoder.tool_call("call_1", "get_weather", '{"city":"Vienna"}')
    first += encoder.stop("tool_use") + encoder.usage(20, 5) + encoder.end()
    assert check(first, request=request, strict=True).ok

    [call] = llmstream.parse(first).tool_calls
    assert json.loads(call.arguments) == {"city": "Vienna"}

    printed = json.loads((EXAMPLES / "4.8-request-2.txt").read_text().replace(", ...", ""))
    second = {**request, "messages": printed["messages"]}
    encoder = Encoder()
    answer = encoder.start("example-model") + encoder.delta("The weather in Vienna is 24C.")
    answer += encoder.stop("end_turn") + encoder.usage(40, 9) + encoder.end()
    assert check(answer, request=second, strict=True).violations == []
