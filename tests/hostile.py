"""Streams that one reader sees in one way and another in another; docs/readers-differ.md tells what each shows."""

from __future__ import annotations

from drafts import delta, end, sse, start, stop


def spelled(raw_delta: str | None = None, **members: object) -> bytes:
    """A stream with one delta of another form."""
    change = {} if raw_delta is None else {"raw_delta": raw_delta}
    return start() + delta(1, "said", **change, **members) + stop(2) + end(3)


def with_bytes(before: bytes, after: bytes) -> bytes:
    """The plain stream with some bytes of its delta replaced."""
    plain = delta(1, "said")
    assert before in plain
    return start() + plain.replace(before, after) + stop(2) + end(3)


DELTA = b'{"v":"1.0","seq":1,"type":"content.delta","index":0,"role":"assistant","delta":{"text":"said"}}'

# What is odd -> the stream, and the text that has to be shown.
HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (spelled(), "said"),
    "`text` twice": (spelled('{"text":"first","text":"last"}'), "last"),
    "`delta` twice": (spelled('{"text":"first"},"delta":{"text":"last"}'), "last"),
    "`delta` twice, the last without text": (spelled('{"text":"first"},"delta":{}'), ""),
    "`text` twice, once with an escape in its name": (spelled('{"text":"first","te\\u0078t":"last"}'), "last"),
    "an escape in the name": (spelled('{"t\\u0065xt":"said"}'), "said"),
    "`type` twice": (spelled(raw_x='1,"type":"usage"'), ""),
    "`type` is not `event:`": (with_bytes(b"event: content.delta", b"event: usage"), "said"),
    "`event:` twice": (with_bytes(b"event: content.delta", b"event: usage\nevent: content.delta"), "said"),
    "no `event:`": (with_bytes(b"event: content.delta\n", b""), "said"),
    "`text` beside `delta`": (spelled('{"text":"said"}', raw_text='"hidden"'), "said"),
    "`text` deeper": (spelled('{"a":{"text":"hidden"},"text":"said"}'), "said"),
    "half a surrogate pair": (spelled('{"text":"a\\ud83db"}'), "a\ufffdb"),
    "the halves in two strings": (
        start() + delta(1, raw_delta='{"text":"\\ud83d"}') + delta(2, raw_delta='{"text":"\\ude00"}') + end(3),
        "\ufffd\ufffd",
    ),
    "NUL as an escape": (spelled('{"text":"a\\u0000b"}'), "a\0b"),
    "NUL as a byte": (with_bytes(b"said", b"a\0b"), ""),
    "a tab in a string": (with_bytes(b"said", b"a\tb"), ""),
    "an invalid byte": (with_bytes(b"said", b"a\xffb"), "a\ufffdb"),
    "an overlong slash": (with_bytes(b"said", b"a\xc0\xafb"), "a\ufffd\ufffdb"),
    "a surrogate as UTF-8": (with_bytes(b"said", b"a\xed\xa0\xbdb"), "a\ufffd\ufffd\ufffdb"),
    "a character cut by the string's end": (with_bytes(b"said", b"a\xe9\x82"), "a\ufffd"),
    "U+2028 in a string": (with_bytes(b"said", "a\u2028b".encode()), "a\u2028b"),
    "U+0085 in a string": (with_bytes(b"said", "a\u0085b".encode()), "a\u0085b"),
    "a vertical tab behind the data": (with_bytes(b"}}\n\n", b"}}\x0b\n\n"), ""),
    "a BOM first": (b"\xef\xbb\xbf" + spelled(), "said"),
    "a BOM before the event's first line": (with_bytes(b"event:", b"\xef\xbb\xbfevent:"), "said"),
    "a BOM before the JSON": (with_bytes(b"data: {", b"data: \xef\xbb\xbf{"), ""),
    "CR alone ends the lines": (spelled().replace(b"\n", b"\r"), "said"),
    "CR and LF mixed": (with_bytes(b"\n\n", b"\r\n\r"), "said"),
    "a CR in the data": (with_bytes(b"said", b"sa\rid"), ""),
    "a CR, then another data line": (with_bytes(b'"delta"', b'\rdata: "delta"'), "said"),
    "a comment glued to the data": (with_bytes(b"data: {", b":data: {"), ""),
    "a comment between": (with_bytes(b"data: {", b": {\ndata: {"), "said"),
    "a space before `data`": (with_bytes(b"data: {", b" data: {"), ""),
    "`Data:`": (with_bytes(b"data: {", b"Data: {"), ""),
    "two objects in one event": (with_bytes(b"}}\n\n", b'}}{"x":1}\n\n'), ""),
    "two objects in two data lines": (with_bytes(b"}}\n\n", b'}}\ndata: {"x":1}\n\n'), ""),
    "text behind the object": (with_bytes(b"}}\n\n", b"}} x\n\n"), ""),
    "an object in two events": (with_bytes(b'"delta"', b'\n\ndata: "delta"'), ""),
    "NaN in an ignored member": (spelled(raw_x="NaN"), ""),
    "Infinity in an ignored member": (spelled(raw_x="-Infinity"), ""),
    "1e400 in an ignored member": (spelled(raw_x="1e400"), "said"),
    "a number with a leading zero": (spelled(raw_x="01"), ""),
    "400 digits": (spelled(raw_x="9" * 400), "said"),
    "5,000 digits": (spelled(raw_x="9" * 5000), "said"),
    "`seq` is 2^53 + 1": (spelled(raw_seq="9007199254740993"), "said"),
    "`seq` is 1.0": (spelled(raw_seq="1.0"), "said"),
    "`seq` is text": (spelled(raw_seq='"1"'), "said"),
    "`index` is -1": (spelled(index=-1), "said"),
    "a bad escape in an ignored member": (spelled(raw_x='"\\q"'), ""),
    "a comma too many": (with_bytes(b"}}\n\n", b"},}\n\n"), ""),
    "single quotes": (with_bytes(b'{"text":"said"}', b"{'text':'said'}"), ""),
    "a comment of JavaScript": (with_bytes(b"}}\n\n", b"}/**/}\n\n"), ""),
    "2,000 levels in an ignored member": (spelled(raw_x="[" * 2000 + "]" * 2000), "said"),
    "`text` is null": (spelled('{"text":null}'), ""),
    "`text` is a list": (spelled('{"text":["said"]}'), ""),
    "after the end": (start() + delta(1, "said") + stop(2) + end(3) + delta(4, "more"), "said"),
    "the end in other letters": (start() + delta(1, "said") + sse("{}", "Stream.End") + delta(3, " more"), "said more"),
    "no blank line at the end": (start() + sse(DELTA.decode(), "content.delta")[:-2], "said"),
}
