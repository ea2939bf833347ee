"""The handed envelopes, nasty ones: what a lenient parser delivers (resolutions A-1 to A-30)."""

from __future__ import annotations

import base64

import drafts
import handed
import splits


def in_sse(data: bytes) -> bytes:
    return b"event: content.delta\n" + b"".join(b"data: " + line + b"\n" for line in data.split(b"\n")) + b"\n"


def fault(llmstream, row, events, count):
    """What is wrong with the answer to one case, None if nothing is."""
    expected = row["lenient"]
    found = [event for event in events if isinstance(event, llmstream.ContentDelta)]
    if not expected["delivered"]:
        # Of another type, it comes out as an unknown event.
        unknown = any(isinstance(event, llmstream.UnknownEvent) for event in events)
        return f"delivered {found}" if found else None if count or unknown else "silent"
    if not found:
        # Nesting has a limit of ours, which is to be reported.
        return None if row["name"].startswith("depth/") and count else "not delivered"
    [event] = found
    if event.seq != expected["seq"]:
        return f"seq {event.seq}"
    if expected.get("violation") and not count:
        return "silent"
    if "text" in expected and event.text != expected["text"]:
        return f"text {event.text!r}"
    event.text.encode()
    return None


def read(llmstream, feed, **options):
    parser = llmstream.Parser(**options)
    parser.feed(drafts.start())
    return feed(parser), parser.violation_count


def test_each_envelope(llmstream):
    wrong = []
    ran = []
    for number, row in enumerate(handed.rows("envelope.jsonl")):
        data = base64.b64decode(row["text_b64"])
        answers = [read(llmstream, lambda parser, data=data: parser.feed_payload(data, "content.delta"))]
        # A CR ends a line, so it cannot travel in SSE.
        if b"\r" not in data:
            for chunks in [
                [in_sse(data)],
                splits.at_random(in_sse(data), number),
                splits.at_random(in_sse(data), number, 1),
            ]:
                answers.append(  # noqa: PERF401
                    read(llmstream, lambda parser, chunks=chunks: [e for chunk in chunks for e in parser.feed(chunk)])
                )
        for events, count in answers:
            found = fault(llmstream, row, events, count)
            if found:
                wrong.append((row["name"], found, row["lenient"]))
        ran.append(row["name"])
    assert not wrong, (len(wrong), wrong[:10])
    handed.handed("envelope.jsonl", ran)


def test_each_envelope_after_a_learned_shape(llmstream):
    """The same with a shape in memory that begins as the case does."""
    wrong = []
    for row in handed.rows("envelope.jsonl"):
        data = base64.b64decode(row["text_b64"])
        if b"\r" in data or b"\n" in data:
            continue
        answers = []
        for shapes in (True, False):
            parser = llmstream.Parser(shapes=shapes)
            learned = drafts.start() + drafts.delta(1, "x") + drafts.delta(2, "y") + drafts.delta(3, "z")
            assert len(parser.feed(learned)) == 4
            events = parser.feed(in_sse(data.replace(b'"seq":1,', b'"seq":4,')))
            answers.append(([drafts.view(event) for event in events], drafts.state(parser)))
        if answers[0] != answers[1]:
            wrong.append((row["name"], answers))
    assert not wrong, (len(wrong), wrong[:3])
