"""The handed JSON texts: what RFC 8259 allows is read, what it does not allow is a violation (A-18)."""

from __future__ import annotations

import base64
import json

import drafts
import handed
import splits


def refuse(name):
    raise ValueError(name)


def rows():
    for row in handed.rows("json.jsonl"):
        data = base64.b64decode(row["text_b64"])
        valid = row["grammar_ok"] if row["valid"] is None else row["valid"]
        yield row["name"], data, valid, json.loads(json.dumps(row.get("value_repr")))


def has_half_a_pair(written: str | None) -> bool:
    """Whether Python's reader finds half a surrogate pair in a JSON text, key or string (A-24)."""
    try:
        found = json.dumps(json.loads(written or "0"), ensure_ascii=False)
    except (ValueError, RecursionError):
        return False
    return any("\ud800" <= character <= "\udfff" for character in found)


def opening(data: bytes) -> bytes:
    return data.lstrip(b" \t\n\r")[:1]


def test_as_the_whole_payload(llmstream):
    for name, data, valid, _ in rows():
        parser = llmstream.Parser()
        events = parser.feed_payload(data, "x")
        found = {(v.requirement, v.message) for v in parser.violations}
        if valid and opening(data) == b"{":
            assert [type(e).__name__ for e in events] == ["UnknownEvent"], name
            assert events[0].raw == data, name
            assert "R5.1-3" not in drafts.rules_of(parser), name
        elif valid:
            assert events == [], name
            assert ("R5.1-3", "data is JSON but not an object") in found, name
        else:
            assert events == [], name
            deep = len(data) > 4096 and ("L-DEPTH", "JSON nested deeper than max_depth, not delivered") in found
            assert deep or ("R5.1-3", "data is not valid JSON") in found, name


def test_as_the_value_of_an_ignored_member(llmstream):
    head, tail = (
        drafts.envelope("content.delta", 1, index=0, role="assistant", delta={"text": "ok"}, x=7).encode().split(b"7")
    )
    wrong = []
    ran = []
    for number, (name, data, valid, written) in enumerate(rows()):
        body = head + data + tail
        expected = ["L-SURROGATE"] if has_half_a_pair(written) else []
        for chunks in (
            None,
            [drafts.sse(body, "content.delta")],
            splits.at_random(drafts.sse(body, "content.delta"), number),
        ):
            parser = llmstream.Parser()
            parser.feed(drafts.start())
            if chunks is None:
                events = parser.feed_payload(body, "content.delta")
            elif b"\r" in data or b"\n" in data:
                continue
            else:
                events = [e for chunk in chunks for e in parser.feed(chunk)]
            deltas = [e for e in events if isinstance(e, llmstream.ContentDelta)]
            errors = [v.requirement for v in parser.violations if v.severity == "error"]
            right = (
                [e.text for e in deltas] == ["ok"] and errors == expected
                if valid
                else not deltas and errors in (["R5.1-3"], ["L-DEPTH"])
            )
            if not right:
                wrong.append((name, data[:60], valid, events, errors))
        ran.append(name)
    assert not wrong, (len(wrong), wrong[:10])
    handed.handed("json.jsonl", ran)


def test_as_the_arguments_of_a_tool_call(llmstream):
    wrong = []
    for name, data, valid, _ in rows():
        text = data.decode("utf-8", "replace")
        parser = llmstream.Parser()
        parser.feed(drafts.start())
        [event] = parser.feed(drafts.tool_call(1, arguments=text))
        assert event.arguments == text, name
        if drafts.rules_of(parser) != ([] if valid else ["R5.3.4-4"]):
            wrong.append((name, data[:60], valid, drafts.rules_of(parser)))
    assert not wrong, (len(wrong), wrong[:10])


def test_json_of_an_event_is_what_a_json_reader_finds(llmstream):
    for name, data, valid, _ in rows():
        if not valid or opening(data) != b"{":
            continue
        [event] = llmstream.Parser().feed_payload(data, "x")
        try:
            expected = json.loads(data.decode("utf-8", "replace"), parse_constant=refuse)
        except (RecursionError, ValueError):
            continue
        assert event.json() == expected, name
