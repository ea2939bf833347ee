"""The list of public bug reports and of peers' faults, read in place: every entry has a test, and every recorded stream
on which an official SDK fails is read as the independent reader read it."""

from __future__ import annotations

import asyncio
import re
from importlib import import_module
from pathlib import Path

import pytest

import drafts
import handed
import splits
import vendors
from drafts import delta, end, start
from test_bugs import calls, openai_calls

HERE = Path(__file__).parent
LIST = handed.SHARED / "cases/bugs.md"

# What official SDKs lose, as the list's last table names it -> the tests of the kind, with streams of our own.
KINDS = {
    "the helper raises because the answer stopped at the token limit": ["test_the_token_limit_is_no_error"],
    'the stream ends `incomplete`, not `completed`: the helper raises "didn\'t receive response.completed"': [
        "test_a_response_may_end_incomplete"
    ],
    "content index starts at 1: IndexError": ["test_parts_and_items_may_have_any_number"],
    'response id changes during the stream: "lifecycle identity changed"': ["test_an_id_may_change"],
    "first tool-call index is 1: IndexError": ["test_the_first_tool_call_may_have_any_number"],
    "annotations without index: RuntimeError": ["test_annotations_need_no_index"],
    "tool type is null: AssertionError": ["test_the_first_tool_call_may_have_any_number"],
    "chunks without `object`: all dropped, then AssertionError": ["test_chunks_need_no_object"],
    "text and reasoning lost without a word (content is a list of parts)": ["test_content_may_be_a_list_of_parts"],
    "finish reason lost": ["test_the_last_chunk_may_have_an_object_of_its_own"],
    "usage lost (vendor's own place, `x_groq`)": ["test_usage_in_the_vendors_own_place"],
    "the same text in two places (`choices[0].text` and `delta.content`): doubled by naive readers": [
        "test_the_same_text_in_two_places_counts_once"
    ],
    "reasoning only in `reasoning_details`": ["test_reasoning_only_in_its_details"],
    "a bare JSON error object instead of, or after, the stream: dropped by SSE rules, so it must be looked for and "
    "reported": ["test_b49_b63_a_bare_json_error"],
    "enums as integers, JSON array instead of SSE": ["test_enums_as_integers_and_an_array_instead_of_sse"],
}


def text_of_the_list():
    if not LIST.is_file():
        pytest.skip("the list of bugs is not there")
    return LIST.read_text(encoding="utf-8")


def sources():
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(HERE.glob("test_bugs*.py")))


def ids_with_a_test():
    """B and P with their numbers: in the name of a test, or naming a row of a table of cases."""
    names = re.findall(r"^def test_((?:[bp]\d+_)+)", sources(), re.MULTILINE)
    rows = re.findall(r'^    "([BP]\d+(?:, [BP]\d+)*)(?:, [^"]*)?": ', sources(), re.MULTILINE)
    return {found.upper() for names in (*names, *rows) for found in re.findall(r"[bpBP]\d+", names)}


def rows_of_sdk_faults():
    """The list's last table: kind, SDK, and the files as patterns."""
    table = text_of_the_list().partition("# Where official SDKs fail")[2]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0] not in ("kind", "---"):
            yield cells[0], cells[1], re.findall("`([^`]+)`", cells[2])


def test_every_bug_of_the_list_has_a_test():
    listed = re.findall(r"^\*\*(B\d+)\b", text_of_the_list(), re.MULTILINE)
    listed += re.findall(r"^\| (P\d+) \|", text_of_the_list(), re.MULTILINE)
    assert len(listed) >= 54 + 15
    assert sorted(set(listed) - ids_with_a_test()) == []


def test_every_kind_that_sdks_lose_has_a_test():
    listed = [kind for kind, _, _ in rows_of_sdk_faults()]
    assert set(listed) == KINDS.keys()
    tests = set(re.findall(r"^def (test_\w+)", sources(), re.MULTILINE))
    assert {name for names in KINDS.values() for name in names} <= tests


@pytest.mark.parametrize("dialect", ["family", "auto"])
def test_recorded_streams_on_which_sdks_fail(llmstream, dialect):
    """All that the independent reader found in them, at the ends of the events and at random cuts."""
    captures = import_module("test_dialects_captures")
    expected = {row["file"]: row for row in handed.rows("captures")}
    seen = 0
    for kind, _, patterns in rows_of_sdk_faults():
        for pattern in patterns:
            files = [name for name in expected if Path(name).match(pattern)]
            assert files, (kind, pattern)
            for number, name in enumerate(files):
                family = vendors.FAMILIES[expected[name]["api"]] if dialect == "family" else "auto"
                data = (handed.SHARED / "captures" / name).read_bytes()
                for chunks in ([data], splits.at_random(data, number)):
                    result = llmstream.parse(chunks, dialect=family)
                    events = llmstream.iter_events(chunks, dialect=family)
                    deltas = [event for event in events if isinstance(event, llmstream.ContentDelta)]
                    assert captures.found(result, deltas) == captures.expected(expected[name]), (kind, name)
                seen += 1
    assert seen >= 21


# The kinds of that table that test_bugs.py does not have.


def response(kind, **members):
    return vendors.sse({"type": f"response.{kind}", **members}, f"response.{kind}")


def test_a_response_may_end_incomplete(llmstream):
    details = {"id": "r", "model": "m", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    usage = {"input_tokens": 2, "output_tokens": 16}
    events = [
        response("created", response={"id": "r", "model": "m", "status": "in_progress"}),
        response("output_text.delta", output_index=0, content_index=0, delta="half"),
        response("incomplete", response={**details, "usage": usage}),
    ]
    for dialect in ("openai-responses", "auto"):
        parser, found = drafts.run(llmstream, events, dialect=dialect)
        assert [e.stop_reason for e in found if isinstance(e, llmstream.ContentStop)] == ["max_tokens"]
        assert "".join(e.text for e in found if isinstance(e, llmstream.ContentDelta)) == "half"
        assert (parser.usage.input_tokens, parser.usage.output_tokens) == (2, 16)
        assert parser.complete
        assert parser.error is None
        assert parser.error_count == 0


@pytest.mark.parametrize(("output_index", "content_index"), [(0, 1), (1, 1), (7, 0), (7, 3)])
def test_parts_and_items_may_have_any_number(llmstream, output_index, content_index):
    """Bedrock's gateway to the Responses API counts the reasoning before a part, which is of another item."""
    place = {"output_index": output_index, "content_index": content_index}
    events = [
        response("created", response={"id": "r", "model": "m"}),
        response("content_part.added", **place, part={"type": "output_text", "text": ""}),
        response("output_text.delta", **place, delta="one"),
        response("output_text.delta", **place, delta="two"),
        response("output_text.done", **place, text="onetwo"),
        response("completed", response={"id": "r", "model": "m", "status": "completed"}),
    ]
    parser, found = drafts.run(llmstream, events, dialect="openai-responses")
    assert "".join(e.text for e in found if isinstance(e, llmstream.ContentDelta)) == "onetwo"
    assert parser.complete
    assert parser.error_count == 0


def test_an_id_may_change(llmstream):
    """Of the response, of its items and of a chat's chunks: text does not hang on it."""
    events = [
        response("created", response={"id": "r1", "model": "m"}),
        response("in_progress", response={"id": "r2", "model": "m"}),
        response("output_item.added", output_index=0, item={"id": "i1", "type": "message", "content": []}),
        response("output_text.delta", output_index=0, content_index=0, item_id="i2", delta="one"),
        response("output_text.delta", output_index=0, content_index=0, item_id="i3", delta="two"),
        response("output_item.done", output_index=0, item={"id": "i4", "type": "message", "content": []}),
        response("completed", response={"id": "r3", "model": "m", "status": "completed"}),
    ]
    parser, found = drafts.run(llmstream, events, dialect="openai-responses")
    assert "".join(e.text for e in found if isinstance(e, llmstream.ContentDelta)) == "onetwo"
    assert parser.complete
    assert parser.error_count == 0
    chunks = [one.replace(b"chatcmpl-1", b"id-%d" % n) for n, one in enumerate(vendors.openai(["a", "b", "c"] * 5))]
    parser, found = drafts.run(llmstream, chunks, dialect="openai")
    assert "".join(e.text for e in found if isinstance(e, llmstream.ContentDelta)) == "abc" * 5
    assert (parser.complete, parser.error_count) == (True, 0)


def test_annotations_need_no_index(llmstream):
    cited = {"type": "url_citation", "url_citation": {"url": "https://x.example", "title": "t"}}
    for annotation in (cited, {"index": None, **cited}):
        events = [
            vendors.openai_chunk({"content": "x"}),
            vendors.openai_chunk({"content": "", "annotations": [annotation]}),
            vendors.openai_chunk({"content": "y"}),
            vendors.openai_chunk({}, "stop"),
            vendors.sse("[DONE]"),
        ]
        parser, found = drafts.run(llmstream, events, dialect="openai")
        assert "".join(e.text for e in found if isinstance(e, llmstream.ContentDelta)) == "xy"
        [kept] = [e.extensions for e in found if isinstance(e, llmstream.ContentDelta) and e.extensions]
        assert list(kept.values()) == [[annotation]]
        assert parser.complete


def test_the_last_chunk_may_have_an_object_of_its_own(llmstream):
    last = vendors.openai_chunk({"role": "assistant", "content": ""}, "stop").replace(b".chunk", b".done")
    assert b'"chat.completion.done"' in last
    for dialect in ("openai", "auto"):
        parser, found = drafts.run(llmstream, [vendors.openai_chunk({"content": "x"}), last], dialect=dialect)
        assert [e.stop_reason for e in found if isinstance(e, llmstream.ContentStop)] == ["end_turn"]
        assert parser.complete


def test_a_bare_error_without_its_last_line_end(llmstream):
    """Some bodies end with their brace; others are on one line."""
    for body in (b'{"error":{"code":429,"message":"quota"}}', b'{\n "error": {"code": 429, "message": "quota"}\n}'):
        for chunks in splits.some_ways(body):
            for dialect in ("gemini", "auto"):
                parser, events = drafts.run(llmstream, chunks, dialect=dialect)
                assert [e.message for e in events if isinstance(e, llmstream.StreamError)] == ["quota"]
                assert not parser.complete


# Kinds of the list of which test_bugs.py has the SSE layer only.


@pytest.mark.parametrize("dialect", vendors.VENDORS)
def test_b31_data_that_is_no_json_is_recorded_and_skipped(llmstream, dialect):
    """The policy: an error in the record, and the next event is read."""
    events = vendors.VENDORS[dialect](["one", "two"])
    for wrong in (": keepalive", "keepalive", "OPENROUTER PROCESSING", "data: {}"):
        parser, found = drafts.run(llmstream, [*events[:2], vendors.sse(wrong), *events[2:]], dialect=dialect)
        assert "".join(e.text for e in found if isinstance(e, llmstream.ContentDelta)) == "onetwo"
        assert drafts.faults(parser) == [("R5.1-3", "error", 2, len(b"".join(events[:2])))]
        assert parser.complete


def test_b37_b38_b39_what_stays_and_what_does_not(llmstream):
    """The id stays over events, not the name; with a new decoder only what is handed to it."""
    decoder = llmstream.SSEDecoder()
    events = decoder.feed(b"id: 5\nevent: x\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: 6\0\ndata: d\n\n")
    assert [(e.event, e.id) for e in events] == [("x", "5"), ("message", "5"), ("message", ""), ("message", "")]
    [event] = llmstream.SSEDecoder(last_event_id="5").feed(b"data: ok\n\n")
    assert (event.event, event.id) == ("message", "5")


def test_b47_a_named_event_of_the_draft_that_nobody_knows(llmstream):
    """Handed out as unknown; its number counts."""
    data = start() + drafts.event("tool.progress", 1, p=1) + delta(2, "x") + end(3)
    parser, events = drafts.run(llmstream, data)
    assert [e.type for e in events] == ["stream.start", "tool.progress", "content.delta", "stream.end"]
    assert isinstance(events[1], llmstream.UnknownEvent)
    assert parser.complete


def over_every_api(llmstream, data, size):
    """What each outer API makes of an event over the limit it was given."""
    given = {"dialect": "llm-stream", "strict": True, "max_event_size": size}

    async def drained(source):
        return [item async for item in source]

    def run(call):
        try:
            call()
        except llmstream.LLMStreamError as error:
            return type(error).__name__, str(size) in str(error)
        return None

    def fed(made):
        made.feed(data)
        return made.close()

    return {
        "Parser": run(lambda: fed(llmstream.Parser(**given))),
        "SSEDecoder": run(lambda: llmstream.SSEDecoder(max_event_size=size).feed(data)),
        "parse": run(lambda: llmstream.parse(data, **given)),
        "iter_events": run(lambda: list(llmstream.iter_events(data, **given))),
        "iter_text": run(lambda: list(llmstream.iter_text(data, **given))),
        "aiter_events": run(lambda: asyncio.run(drained(llmstream.aiter_events(data, **given)))),
        "aiter_text": run(lambda: asyncio.run(drained(llmstream.aiter_text(data, **given)))),
        "Transcoder": run(lambda: fed(llmstream.Transcoder(**given))),
        "transcode": run(lambda: list(llmstream.transcode(data, **given))),
        "atranscode": run(lambda: asyncio.run(drained(llmstream.atranscode(data, **given)))),
        "StreamTranslator": run(lambda: fed(llmstream.StreamTranslator("openai", **given))),
        "translate_stream": run(lambda: list(llmstream.translate_stream(data, to="openai", **given))),
        "atranslate_stream": run(
            lambda: asyncio.run(drained(llmstream.atranslate_stream(data, to="openai", **given))),
        ),
    }


def test_b55_b56_the_limit_is_reached_from_every_outer_api(llmstream):
    """A typed error with the size that was set; below it, none."""
    data = start() + delta(1, "x" * 70_000) + drafts.stop(2) + drafts.usage(3) + end(4)
    found = over_every_api(llmstream, data, 65_536)
    assert found == dict.fromkeys(found, ("EventTooLargeError", True))
    found = over_every_api(llmstream, data, 80_000)
    assert found == dict.fromkeys(found)
    observer = llmstream.Observer("llm-stream", max_event_size=65_536)
    observer.feed(data)
    assert "L-SIZE" in drafts.rules_of(observer.parser)
    report = llmstream.check(data, max_event_size=65_536)
    assert any("65536" in violation.message for violation in report.violations)


@pytest.mark.parametrize("dialect", ["llm-stream", "openai"])
def test_b60_b61_b62_each_byte_is_looked_at_once(llmstream, dialect):
    """Many events in one read, one event in many reads: what is searched grows as the bytes do. No clock:
    a quadratic reader would take minutes for either."""
    many = drafts.sse("{}") * 100_000
    decoder = llmstream.SSEDecoder()
    assert len(decoder.feed(many)) == 100_000
    text = "A" * 300_000
    data = delta(1, text) if dialect == "llm-stream" else vendors.openai_chunk({"content": text})
    parser = llmstream.Parser(dialect)
    head = start() if dialect == "llm-stream" else b""
    events = parser.feed(head) + [e for chunk in splits.in_chunks(data, 3) for e in parser.feed(chunk)]
    assert [len(e.text) for e in events if isinstance(e, llmstream.ContentDelta)] == [300_000]


def test_b65_b68_b69_pieces_of_several_calls_in_one_delta(llmstream):
    """Every item of the list, by its index, in any order."""
    heads = [{"index": n, "id": f"c{n}", "type": "function", "function": {"name": f"f{n}"}} for n in (1, 0)]
    pieces = [(0, '{"a"'), (1, "["), (0, ":1"), (1, "2"), (1, "]"), (0, "}")]
    events = [
        openai_calls(*heads, {"index": 0, "function": {"arguments": ""}}),
        openai_calls(*({"index": n, "function": {"arguments": piece}} for n, piece in pieces)),
        vendors.openai_chunk({}, "tool_calls"),
        vendors.sse("[DONE]"),
    ]
    assert sorted(calls(llmstream, events)) == [("c0", "f0", '{"a":1}'), ("c1", "f1", "[2]")]
