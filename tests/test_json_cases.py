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


def without_halves(value):
    """The value with U+FFFD for every half of a surrogate pair (A-24)."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_halves(each) for each in value]
    if isinstance(value, dict):
        return {without_halves(name): without_halves(each) for name, each in value.items()}
    return value


NUMBERS = ["-0", "-1", "1e5", "1E+2", "-0.0", "1.5e-3", "1e400", "-1e400", "5E-324", "0.1e-400", "12e3", "1.0"]
NUMBERS += ["1" * 18, "-" + "9" * 18, "1" * 19, "-" + "1" * 19, "9" * 400, "9" * 4300, "-" + "9" * 4300, "9" * 4301]
NUMBERS += ["1" * 18 + ".5"]


def test_what_a_dialect_is_given_is_what_a_json_reader_finds(llmstream):
    given = []

    class Seen(llmstream.Dialect):
        name = "seen"

        def translate(self, payload, event):
            given.append(payload)
            return []

    def number(digits):
        return int(digits) if len(digits.lstrip("-")) <= 4300 else float(digits)

    texts = [data for _, data, valid, _ in rows() if valid]
    texts += [f'[{each}, {{"a" : {each} , "a":{each}\n}}]'.encode() for each in NUMBERS]
    for data in texts:
        for body in (b'{"x":' + data + b"}", b' {\t"" : [ ' + data + b',1 ] , \r\n"\\u0078" :' + data + b"\n}  "):
            given.clear()
            parser = llmstream.Parser(Seen)
            parser.feed_payload(body)
            if drafts.rules_of(parser)[:1] == ["L-DEPTH"]:
                assert body.count(b"[") + body.count(b"{") > 500
                continue
            text = body.decode("utf-8", "replace")
            expected = without_halves(json.loads(text, parse_constant=refuse, parse_int=number))
            assert repr(given) == repr([expected]), body[:100]
