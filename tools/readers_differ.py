"""Writes the table of docs/readers-differ.md: what each reader shows of streams that are odd in one place.

    python tools/readers_differ.py            prints the table
    python tools/readers_differ.py --write    puts it into the document

Needs the readers with the versions that the document names; one that is missing keeps its column out. Ours reads bytes
by itself. The JSON libraries are given the data of a reader that follows the WHATWG (``fuzz/whatwg.py``), the SDKs'
decoders the bytes; the text is then looked up as a program would: ``value["delta"]["text"]`` where the event's
``type`` is ``content.delta``. httpx-sse stands for the clients that are built on it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/readers-differ.md"
BEGIN, END = "<!-- the table -->", "<!-- the table's end -->"
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

Reader = Callable[[bytes], str]


class RefusedError(Exception):
    """The reader raised, or gave no text where there is one to give."""


def ours(stream: bytes) -> str:
    import llmstream

    return llmstream.parse(stream).text


def by_json(loads: Callable[[bytes], Any]) -> Reader:
    def read(stream: bytes) -> str:
        whatwg = importlib.import_module("fuzz.whatwg")
        return shown((name, data) for name, data, _ in whatwg.events(stream)[0])

    def shown(events: Iterator[tuple[str, str]]) -> str:
        return texts(events, loads)

    return read


def texts(events: Iterator[tuple[str, str]], loads: Callable[[bytes], Any]) -> str:
    """What a program shows that stops at the first exception."""
    found: list[str] = []
    try:
        for name, data in events:
            value = loads(data.encode("utf-8", "surrogatepass"))
            kind = value.get("type", name)
            if kind == "stream.end":
                break
            if kind == "content.delta":
                found.append(value["delta"]["text"] if isinstance(value["delta"]["text"], str) else "")
    except Exception as error:  # noqa: BLE001 (whatever it raises)
        raise RefusedError(type(error).__name__) from None
    return "".join(found)


def by_text(data: bytes) -> Any:
    """The clients give json a str, in which a byte order mark is a character like others."""
    return json.loads(data.decode("utf-8", "surrogatepass"))


def by_sdk(module: str) -> Reader:
    def read(stream: bytes) -> str:
        decoder = importlib.import_module(f"{module}._streaming").SSEDecoder()
        try:
            events = [(event.event or "message", event.data) for event in decoder.iter_bytes(iter([stream]))]
        except Exception as error:  # noqa: BLE001 (whatever it raises)
            raise RefusedError(type(error).__name__) from None
        return texts(iter(events), by_text)

    return read


def by_httpx_sse() -> Reader:
    """The decoder of httpx-sse, which many clients are built on."""
    httpx, httpx_sse = importlib.import_module("httpx"), importlib.import_module("httpx_sse")

    def read(stream: bytes) -> str:
        response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
        try:
            events = [(event.event, event.data) for event in httpx_sse.EventSource(response).iter_sse()]
        except Exception as error:  # noqa: BLE001 (whatever it raises)
            raise RefusedError(type(error).__name__) from None
        return texts(iter(events), by_text)

    return read


def typed() -> Reader:
    import msgspec

    delta = msgspec.defstruct("Delta", [("text", str, "")])
    event = msgspec.defstruct("Event", [("type", str, ""), ("delta", delta | None, None)])
    decode = msgspec.json.Decoder(event).decode

    def loads(data: bytes) -> dict[str, Any]:
        read = decode(data)
        return {"type": read.type, "delta": {"text": read.delta.text if read.delta else ""}}

    return by_json(loads)


def readers() -> dict[str, Reader]:
    """Those that are installed, with their versions."""
    found: dict[str, Reader] = {"llmstream": ours, "json": by_json(json.loads)}
    makers: dict[str, Callable[[], Reader]] = {
        "orjson": lambda: by_json(importlib.import_module("orjson").loads),
        "msgspec": typed,
        "jiter": lambda: by_json(importlib.import_module("jiter").from_json),
        "openai": lambda: by_sdk("openai"),
        "anthropic": lambda: by_sdk("anthropic"),
        "httpx-sse": by_httpx_sse,
    }
    for name, make in makers.items():
        try:
            found[f"{name} {version(name)}"] = make()
        except (ImportError, PackageNotFoundError):
            continue
    return found


def cell(read: Reader, stream: bytes) -> str:
    try:
        text = read(stream)
    except RefusedError as refusal:
        return f"*{refusal}*"
    return "`" + json.dumps(text) + "`" if text else "nothing"


def table() -> str:
    hostile = importlib.import_module("hostile").HOSTILE
    columns = readers()
    lines = ["| what is odd | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, (stream, _) in hostile.items():
        cells = [cell(read, stream) for read in columns.values()]
        lines.append(
            f"| {name} | "
            + " | ".join(["as ours" if at and each == cells[0] else each for at, each in enumerate(cells)])
            + " |"
        )
    return "\n".join(lines)


def main() -> None:
    found = table()
    if "--write" not in sys.argv:
        print(found)
        return
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{found}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
