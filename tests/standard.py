"""Reading the standard stream as the draft prints it, without the package: what a producer wrote, event by event."""

from __future__ import annotations

import json
from typing import Any

CREATED = 1_700_000_000


def clock() -> float:
    return CREATED + 0.7


def read(output: bytes) -> list[dict[str, Any]]:
    """The envelopes of a stream in the strict form: two lines and a blank one each, numbered from 0; without ``v``,
    ``seq`` and ``role``, which are checked here."""
    *blocks, rest = output.decode().split("\n\n")
    assert rest == ""
    found = []
    for seq, block in enumerate(blocks):
        event, data = block.split("\n")
        envelope = json.loads(data.removeprefix("data: "))
        assert event == f"event: {envelope['type']}"
        assert (envelope.pop("v"), envelope.pop("seq")) == ("1.0", seq)
        if envelope["type"] == "content.delta":
            assert envelope.pop("role") == "assistant"
        found.append(envelope)
    return found


def text(output: bytes) -> dict[int, str]:
    """The text of each index that had any."""
    texts: dict[int, str] = {}
    for index, piece in pieces(read(output)):
        texts[index] = texts.get(index, "") + piece
    return texts


def pieces(events: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """The fragments of text, each with its index."""
    deltas = [event for event in events if event["type"] == "content.delta"]
    return [(event["index"], event["delta"]["text"]) for event in deltas if event["delta"]["text"]]


def calls(output: bytes) -> list[tuple[int, str, str, str]]:
    """The tool calls: index, id, name and arguments."""
    events = [event for event in read(output) if event["type"] == "tool.call"]
    return [(event["index"], event["id"], event["name"], event["arguments"]) for event in events]


def kinds(output: bytes) -> list[str]:
    return [event["type"] for event in read(output)]


def written(llmstream: Any, chunks: bytes | list[bytes], dialect: Any = "auto", **options: Any) -> tuple[bytes, Any]:
    """What a transcoder makes of a whole stream, checked, and the transcoder."""
    transcoder = llmstream.Transcoder(dialect, **{"clock": clock, **options})
    pieces = [transcoder.feed(chunk) for chunk in ([chunks] if isinstance(chunks, bytes) else chunks)]
    return checked(llmstream, transcoder, b"".join([*pieces, transcoder.close()]))


def checked(llmstream: Any, transcoder: Any, output: bytes) -> tuple[bytes, Any]:
    """What a transcoder wrote has no error, an end, and nothing after it."""
    report = llmstream.check(output)
    assert report.ok, report.to_text()
    found = kinds(output)
    assert (found.count("stream.end"), transcoder.ended) == (1, True)
    assert (transcoder.close(), transcoder.fail(), transcoder.keep_alive()) == (b"", b"", b"")
    assert transcoder.complete == ("error" not in found)
    return output, transcoder
