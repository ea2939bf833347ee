"""Streams for hypothesis and for seeded runs: mostly valid, so that shapes are learned and hit, and with values near
the edge of their grammar, so that a hit which should not be one is found."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

import vendors

TEXTS = [
    *("The", " weather", "café", "\U0001f600", "\ufffd", "", " ", "a" * 40, "data: ", "\u2028", "\x7f"),
    *("\\n", '\\"q\\"', "\\u00e9", "\\ud83d\\ude00", "\\\\", "\\u0022", "\\r\\n", '{\\"a\\":1}'),
]
EDGES = [
    "\\ud83d",
    "\\ud83d x",
    "\\ude00",
    "x\ty",
    "\\q",
    "\\u12",
    "\x00",
    '"',
    "\\",
    '","text":"x',
    "\x1f",
    "\\ud83d\\ud83d\\ude00",
]
SEQUENCES = [
    *("{}.0", "{}e0", "-0", "-1", "1.5", '"{}"', "true", "0{}", "{} ", "null", "1e400", "0.0000001e7", "[{}]"),
    *("9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808"),
]
INDEXES = ["1", "2", "-1", "1.0", "01", "99999999999999999999", "null", '"0"', "-0", "9223372036854775807"]
EXTRAS = [
    ',"x":[1,{{"y":"z"}}]',
    ',"n":{}',
    ',"n":1.{}',
    ',"x":"{}"',
    ',"extensions":{{"a:b":{}}}',
    ',"seq":{}',
    ',"x":NaN',
    ',"p":"{}\\ud83d"',
]
LINES = [
    ":c",
    "retry: 10",
    "x: y",
    "data: ",
    "event: e",
    "id",
    "data",
    "{",
    "retry: 99999999999999999999",
    "id: 7",
    " data: 1",
]
NOISE = [b"\n", b"\r", b"\xef\xbb\xbf", b'"', b"\\", b"\xe9\x82", b"\xff", b"\0", b"{", b":", b" ", b"0", b"\r\n"]
VARIED = '{{"v":{v},"seq":{seq},"type":{type},"index":{index},"role":{role},"delta":{delta}{extra}}}'
TURNED = '{{"delta":{delta},"role":{role},"index":{index},"type":{type},"seq":{seq},"v":{v}{extra}}}'
SPACED = '{{ "v" : {v} , "seq": {seq},\t"type":{type},"index":{index},"role":{role},"delta":{delta}{extra} }} '


class Draft:
    """One stream of the draft from a source of randomness."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.parts: list[str] = []
        self.end = self.pick(["\n"] * 6 + ["\r\n"] * 3 + ["\r"])
        self.ids = self.rarely(0.2)
        self.seq = 0

    def pick(self, values: Any) -> Any:
        return self.source.choice(values)

    def rarely(self, share: float) -> bool:
        return self.source.random() < share

    def mostly(self, value: str, others: list[str], share: float = 0.06) -> str:
        return self.pick(others) if self.rarely(share) else value

    def event(self, name: str | None, data: str) -> None:
        lines = []
        if name is not None and not self.rarely(0.02):
            lines.append("event:" + self.mostly(" ", ["", "  "]) + name)
        if self.ids:
            lines.append(
                "id:" + self.mostly(" ", [""]) + str(len(self.parts)) + self.mostly("", ["\0", " x", "\u00e9"])
            )
        lines.append("data:" + self.mostly(" ", ["", "  "], 0.03) + data)
        if self.rarely(0.03):
            lines.insert(self.source.randint(0, len(lines)), self.pick(LINES))
        if self.rarely(0.02):
            self.source.shuffle(lines)
        end = self.mostly(self.end, ["\n", "\r\n", "\r"], 0.02)
        self.parts.append(end.join(lines) + end * 2)

    def member(self, kind: str, rest: str) -> None:
        self.event(kind, f'{{"v":"1.0","seq":{self.seq},"type":"{kind}"{rest}}}')

    def plain(self) -> None:
        index = self.mostly("0", ["1"])
        extra = (
            ""
            if self.rarely(0.7)
            else ',"p":"' + "z" * self.source.randint(0, 5) + f'","n":{self.source.randint(-9, 99)}'
        )
        text = self.pick(TEXTS)
        self.member("content.delta", f',"index":{index},"role":"assistant","delta":{{"text":"{text}"}}{extra}')

    def delta(self) -> None:
        text = self.mostly(self.pick(TEXTS), EDGES, 0.2)
        delta = self.mostly(
            f'{{"text":"{text}"}}',
            [
                *("{}", "null", '{"text":null}', '"x"'),
                f'{{"text":"a","text":"{text}"}}',
                f'{{"other":{{"text":"no"}},"text":"{text}"}}',
                f'{{"te\\u0078t":"{text}"}}',
                f'{{"text":"{text}","p":"{"p" * self.source.randint(0, 9)}"}}',
            ],
            0.15,
        )
        form = self.mostly(VARIED, [TURNED, SPACED], 0.2)
        kind = self.mostly('"content.delta"', ['"content\\u002edelta"', '"x.y"', "null", '"usage"'])
        self.event(
            "content.delta",
            form.format(
                v=self.mostly('"1.0"', ['"1.1"', "1.0", '"1\\u002e0"']),
                seq=self.mostly(str(self.seq), SEQUENCES).format(self.seq),
                type=kind,
                index=self.mostly("0", INDEXES, 0.2),
                role=self.mostly('"assistant"', ['"user"', "null", '"ass\\u0069stant"']),
                delta=delta,
                extra=self.mostly("", EXTRAS, 0.3).format(self.source.randint(0, 50)),
            ),
        )

    def other(self) -> None:
        kind = self.source.randint(0, 7)
        index = self.pick(["0", "1", "null"])
        if kind == 0:
            self.member(
                "content.stop",
                f',"index":{index},"stop_reason":{self.pick(["1", "null", chr(34) + "end_turn" + chr(34)])}',
            )
        elif kind == 1:
            arguments = self.pick(['"{}"', '"{"', "1", '"[1]"', '"\\ud83d"', '"\\"\\ud83d\\""'])
            self.member(
                "tool.call", f',"index":{index},"id":"c{self.source.randint(0, 3)}","name":"f","arguments":{arguments}'
            )
        elif kind == 2:
            self.member("usage", f',"input_tokens":{self.pick(["1", "-1", "1.0", "null"])},"output_tokens":3')
        elif kind == 3:
            self.member("error", f',"code":"{self.pick(["overloaded", "zz"])}","message":"m"')
        elif kind == 4:
            self.member("x.unknown", "")
        elif kind == 5:
            self.event(
                self.pick([None, "stream.end"]), self.pick(["[DONE]", "{", "[]", "1", "{}", '"x"', "[[[[[[]]]]]]"])
            )
        elif kind == 6:
            self.member("stream.end", ',"request_id":"a"')
        else:
            self.member("stream.start", ',"model":"m","created":1')

    def bytes(self) -> bytes:
        if not self.rarely(0.05):
            self.member("stream.start", ',"model":"m","created":1,"request_id":"a"')
            self.seq = 1
        clean = self.rarely(0.5)
        for _ in range(self.source.randint(0, 40)):
            if clean:
                self.plain()
            elif self.rarely(0.8):
                self.delta()
            else:
                self.other()
            self.seq += 1 if clean else self.pick([1] * 30 + [0, 2, 5])
        if not self.rarely(0.3):
            self.member("content.stop", ',"index":0,"stop_reason":"end_turn"')
            self.seq += 1
            self.member("stream.end", "")
        return "".join(self.parts).encode("utf-8", "surrogatepass")


def damaged(source: Any, data: bytes) -> bytes:
    """A few bytes changed, taken out or put in; a BOM; cut short: each now and then."""
    if source.random() < 0.3 and data:
        changed = bytearray(data)
        for _ in range(source.randint(1, 3)):
            at = source.randrange(len(changed) + 1)
            kind = source.random()
            if kind < 0.4:
                changed[at : at + 1] = source.choice(NOISE)[:1]
            elif kind < 0.7:
                del changed[at : at + source.randint(1, 4)]
            else:
                changed[at:at] = source.choice(NOISE)
        data = bytes(changed)
    if source.random() < 0.05:
        data = b"\xef\xbb\xbf" + data
    if source.random() < 0.1:
        data = data[: source.randint(0, len(data))]
    return data


def draft_stream(source: Any) -> bytes:
    return damaged(source, Draft(source).bytes())


def vendor_stream(source: Any, dialect: str) -> bytes:
    """A vendor's stream with pieces near the edge, and some of its payloads changed."""

    def pieces(most: int) -> list[str]:
        return [source.choice([*TEXTS[:11], "x", "y", '"', "\\"]) for _ in range(source.randint(0, most))]

    arguments = ["{", '"a":1', "}"] if source.random() < 0.3 else []
    events = vendors.VENDORS[dialect](pieces(25), pieces(8), arguments)
    result = []
    for event in events:
        if source.random() < 0.06:
            values = [*EDGES, "\\u00e9", "\\ud83d\\ude00"]
            event = event.replace(b'"x"', f'"{source.choice(values)}"'.encode())
        if source.random() < 0.04:
            old, new = source.choice(
                [
                    (b'"index":0', b'"index":1'),
                    (b'"index":0', b'"index":null'),
                    (b'"index":0', b'"index":0.0'),
                    (b'"text":', b'"texts":'),
                    (b'"content":', b'"refusal":'),
                    (b"null", b'""'),
                    (b"null", b"1"),
                    (b"{}", b"[]"),
                    (b"data: ", b"data:"),
                    (b"data: ", b"id: 4\ndata: "),
                    (b"data: ", b": c\ndata: "),
                    (b"\n", b"\r\n"),
                    (b"}\n", b"} \n"),
                    (b'"finish_reason":null', b'"finish_reason":"stop"'),
                    (b'Count":', b'Count":-'),
                    (b'"type":', b'"typo":'),
                    (b"}}", b',"error":{"message":"m"}}}'),
                ]
            )
            event = event.replace(old, new)
        if source.random() < 0.03:
            continue
        result.append(event)
        if source.random() < 0.03:
            result.append(
                source.choice(
                    [
                        event,
                        b": ping\n\n",
                        b"data: [DONE]\n\n",
                        b"data: {\n\n",
                        b"data: []\n\n",
                        b"event: error\ndata: {}\n\n",
                    ]
                )
            )
    return damaged(source, b"".join(result))


def options(source: Any) -> dict[str, Any]:
    """Options of a parser, mostly none."""
    found: dict[str, Any] = {}
    if source.random() < 0.15:
        found["max_event_size"] = source.choice([20, 60, 100, 130, 150, 200])
    if source.random() < 0.1:
        found["max_depth"] = source.choice([1, 2, 3])
    if source.random() < 0.2:
        found["strict"] = True
    if source.random() < 0.05:
        found["errors"] = "strict"
    return found


def seeds() -> st.SearchStrategy[Any]:
    """A source of randomness that hypothesis drives."""
    return st.randoms(use_true_random=False)


def cuts(source: random.Random, data: bytes, most: int = 8) -> list[bytes]:
    places = sorted(source.randint(0, len(data)) for _ in range(source.randint(1, most)))
    return [data[start:stop] for start, stop in zip([0, *places], [*places, len(data)], strict=True)]


# Free bytes of the SSE grammar, for the framing alone.
sse_bytes = st.lists(
    st.sampled_from(
        [
            *(
                b"data",
                b"event",
                b"id",
                b"retry",
                b":",
                b": ",
                b"\n",
                b"\r",
                b"\r\n",
                b"\n\n",
                b"\xef\xbb\xbf",
                b"\0",
                b" ",
            ),
            *(
                b"data: a\n",
                b"data: b\n\n",
                b"event: e\n",
                b"id: 1\n",
                b"id\n",
                b"retry: 5\n",
                b":c\n",
                b"x",
                b"1",
                b"\xff",
                b"\xe9\x82",
            ),
        ]
    ),
    max_size=30,
).map(b"".join)
