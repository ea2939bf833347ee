"""The recorded streams as the standard stream: whole, in pieces, and cut (R7.1-1)."""

from __future__ import annotations

import base64
import itertools
import json
import random
import re

import handed
import splits
from standard import checked, clock, pieces, read, written
from test_dialects_captures import CUT, digest
from test_dialects_captures import calls as expected_calls
from vendors import FAMILIES

EXHAUSTIVE = 1500  # up to this size every event is cut at its edges

REASONS = re.compile(
    rb'"(?:finish_reason|finishReason|stop_reason|stopReason|completionReason|blockReason)"\s*:\s*(?:"[^"]|[1-9])'
    rb'|"(?:done|is_finished)"\s*:\s*true|"generated_text"\s*:\s*"|"message-end"|"INTERVENED"'
)
"""A stop reason, or a payload that stands for one."""

MARKS = {
    "complete": rb'"stop_reason"\s*:\s*"',
    "interactions": rb'"interaction\.complete[d]?"',
    "messages": rb'"message_stop"',
    "responses": rb'"type"\s*:\s*"response\.(?:completed|incomplete|failed|done)"',
    "replicate.stream": rb"event: done",
    "transcriptions": rb'"transcript\.text\.done"',
    "assistants.runs": rb'"thread\.run"(?=.*"status"\s*:\s*"(?:completed|requires_action|incomplete)")',
}
"""What ends a stream of an API whose stop reasons do not."""


ENDS_WITH_IT = (".eventstream", ".ndjson", ".json", "replicate.sse")
"""Framings in which nothing has to follow the last stop reason."""


def captures():
    for row in handed.rows("captures"):
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        yield row, data, row["file"].partition("/")[2].rpartition(".")[0] not in CUT


def units(row, data):
    """Where each event, line or frame begins, and where what is in it ends."""
    if row["file"].endswith(".eventstream"):
        at = 0
        while at < len(data):
            stop = at + int.from_bytes(data[at : at + 4], "big")
            yield at, stop
            at = stop
        return
    between = re.compile(rb"\n+" if row["file"].endswith((".ndjson", ".json")) else rb"(?:\r?\n){2,}")
    at = 0
    for found in between.finditer(data):
        yield at, found.start()
        at = found.end()
    if at < len(data):
        yield at, len(data)


def content(unit):
    """What can be searched of an event: within a frame of Bedrock, what it wraps."""
    wrapped = re.search(rb'"bytes"\s*:\s*"([^"]*)"', unit)
    return base64.b64decode(wrapped[1]) if wrapped else unit


def last(row, data):
    """The end of what has to be there for the stream to be whole: of its last stop reason, or of its end mark; of all,
    where it has neither."""
    mark = re.compile(MARKS[row["api"]], re.DOTALL) if row["api"] in MARKS else REASONS
    ends = [stop for start, stop in units(row, data) if mark.search(content(data[start:stop]))]
    ends = ends or [stop for start, stop in units(row, data) if b"[DONE]" in data[start:stop]]
    return ends[-1] if ends else len(data)


def test_a_whole_stream(llmstream):
    for number, (row, data, is_complete) in enumerate(captures()):
        output, transcoder = written(llmstream, data)
        again, _ = written(llmstream, splits.at_random(data, number), FAMILIES[row["api"]])
        assert again == output, row["file"]
        assert transcoder.complete == is_complete, row["file"]
        assert transcoder.left_out == 0, row["file"]

        # What all blocks have is the answer, which is choice number 0 where there are several.
        events = read(output)
        assert digest("".join(piece for _, piece in pieces(events))) == row["text_sha256"], row["file"]
        if is_complete:
            assert calls(events) == list(expected_calls(row)), row["file"]

        # The only warning is of what the vendor did not say.
        warned = {violation.requirement for violation in llmstream.check(output).violations}
        assert warned <= {"R5.3.5-3"}, row["file"]
        assert bool(warned) == (transcoder.usage is None and transcoder.error is None), row["file"]
    handed.handed("captures", [row["file"] for row, _, _ in captures()])


def test_several_choices(llmstream):
    """Every reader of the standard stream gives the text that readers of the vendor's give, and OpenAI's clients get
    the other choices again."""
    found = [(row, data) for row, data, is_complete in captures() if row["choices"] > 1 and is_complete]
    assert len(found) >= 4
    for row, data in found:
        source = llmstream.parse(data, dialect=FAMILIES[row["api"]])
        output, _ = written(llmstream, data, FAMILIES[row["api"]])
        result = llmstream.parse(output)
        assert result.text == "".join(llmstream.iter_text(output)) == source.text, row["file"]
        assert "".join(result.texts.values()) == result.texts.get(0, "") == source.text, row["file"]
        back = b"".join(llmstream.translate_stream(output, to="openai"))
        again = llmstream.parse(back, dialect="openai")
        assert (again.texts, again.stop_reasons) == (source.texts, source.stop_reasons), row["file"]
        first = llmstream.parse(b"".join(llmstream.translate_stream(output, to="anthropic")), dialect="anthropic")
        assert (first.text, first.stop_reasons) == (source.text, {0: source.stop_reasons[0]}), row["file"]


def calls(events):
    """The calls; the free text of a custom tool is a string in JSON."""
    found = []
    for event in events:
        if event["type"] == "tool.call":
            is_text = any(key.endswith(":custom") for key in event.get("extensions", ()))
            given = json.loads(event["arguments"]) if is_text else event["arguments"]
            found.append((event["id"], event["name"], given))
    return found


def places(row, data, limit):
    """Where a recording is cut: at the edges of all its events and beside them, or of some where it is long."""
    edges = [edge for unit in units(row, data) for edge in unit]
    generator = random.Random(row["file"])
    if len(data) > EXHAUSTIVE:
        return [generator.choice(edges) % limit, generator.randrange(limit), limit - 1]
    return sorted({place for edge in edges for place in (edge - 1, edge, edge + 1) if 0 <= place < limit})


def test_a_cut_stream_never_looks_complete(llmstream):
    for row, data, is_complete in captures():
        limit = last(row, data)
        assert not is_complete or limit < len(data) or row["file"].endswith(ENDS_WITH_IT), row["file"]
        cannot_tell = between_reasons(row, data)
        assert not cannot_tell or row["file"] in STAMPED
        whole, _ = written(llmstream, data)
        words, every = said(read(whole))
        for cut in places(row, data, limit):
            transcoder = llmstream.Transcoder(clock=clock)
            first = transcoder.feed(data[:cut])
            assert whole.startswith(first), (row["file"], cut)
            output, _ = checked(llmstream, transcoder, first + transcoder.close())
            events = read(output)
            if cut not in cannot_tell:
                assert "error" in [event["type"] for event in events], (row["file"], cut)
                assert not transcoder.complete
            part, some = said(events)
            assert words.startswith(part), (row["file"], cut)
            assert some == every[: len(some)], (row["file"], cut)


STAMPED = (
    "gemini/gen-fb-vertexai-streaming-success-citations.sse",
    "gemini/gen-fb-vertexai-streaming-success-utf8.sse",
)
"""Streams of old models, which give a stop reason with every piece and no token counts: cut between two events, they
are to the byte a shorter answer (docs/providers.md)."""


def between_reasons(row, data):
    """Where a stream that has a stop reason with every piece cannot be told from one that ended there: between two
    events, and not one byte further."""
    found = [(start, stop) for start, stop in units(row, data) if b'"finishReason"' in data[start:stop]]
    if row["api"] != "generateContent" or len(found) < 2:
        return set()
    return {place for (_, stop), (start, _) in itertools.pairwise(found) for place in range(stop, start + 1)}


def said(events):
    """The text in order of arrival, and the tool calls."""
    return "".join(piece for _, piece in pieces(events)), calls(events)
