"""The handed UTF-8 cases: what WHATWG decodes, in SSE data and in generated text."""

from __future__ import annotations

import base64

import drafts
import handed
import splits

ESCAPES = {byte: rf"\u{byte:04x}".encode() for byte in [*range(0x20), 0x22, 0x5C]}


def rows():
    for row in handed.rows("utf8.jsonl"):
        yield row["name"], base64.b64decode(row["bytes_b64"]), row["expect"]


def test_data_of_events(llmstream):
    for name, raw, expected in rows():
        assert b"\n" not in raw
        assert b"\r" not in raw
        for chunks in splits.every_way(b"data: " + raw + b"\n\n"):
            events = [e for decoder in [llmstream.SSEDecoder()] for chunk in chunks for e in decoder.feed(chunk)]
            assert [e.data for e in events] == [expected], name


def test_text_of_deltas(llmstream):
    ran = []
    for name, raw, expected in rows():
        valid = raw == expected.encode()
        text = b"".join(ESCAPES.get(byte, bytes([byte])) for byte in raw)
        head, tail = drafts.delta(1, "MARK").split(b"MARK")
        for chunks in splits.every_way(head + text + tail):
            parser = llmstream.Parser()
            parser.feed(drafts.start())
            [event] = [e for chunk in chunks for e in parser.feed(chunk)]
            assert event.text == expected, name
            assert drafts.rules_of(parser) == ([] if valid else ["L-UTF8"]), name
        for shapes in (True, False):
            # The same as a shape reads it.
            parser = llmstream.Parser(shapes=shapes)
            chunk = drafts.start() + drafts.delta(1, "x") + drafts.delta(2, "y") + head.replace(b'"seq":1', b'"seq":3')
            assert "".join(e.text for e in parser.feed(chunk + text + tail)[1:]) == "xy" + expected, name
            assert parser.violation_count == (not valid), name
        ran.append(name)
    handed.handed("utf8.jsonl", ran)
