"""Readers that are slow and plain, written from the specifications alone: nothing of the package is used here."""

from __future__ import annotations

import json
import re
import struct
import zlib
from typing import Any

_LINE_END = re.compile("\r\n|\r|\n")


def events(stream: bytes) -> tuple[list[tuple[str, str, str]], str, int | None]:
    """The (event, data, id) of every event as the WHATWG's HTML standard dispatches them (section 9.2.6), the last
    event id, and the reconnection time."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    *lines, _ = _LINE_END.split(text)
    found: list[tuple[str, str, str]] = []
    data = name = buffered = last_id = ""
    retry = None
    for line in lines:
        if not line:
            last_id = buffered
            if data:
                found.append((name or "message", data[:-1], last_id))
            data = name = ""
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data += value + "\n"
        elif field == "id" and "\0" not in value:
            buffered = value
        elif field == "retry" and value and all(character in "0123456789" for character in value):
            retry = min(int(value[-400:] if value[:-400].strip("0") == "" else "9" * 30), 2**63 - 1)
    return found, last_id, retry


class NotStandardError(ValueError):
    """What json.loads takes and RFC 8259 does not."""


def json_value(data: bytes) -> Any:
    """The value of a JSON text as RFC 8259 has it, the last of repeated names; invalid UTF-8 and halves of surrogate
    pairs are replaced. Raises ValueError, and RecursionError for a text that is nested too deep for this reader."""

    def refuse(word: str) -> Any:
        raise NotStandardError(word)

    value = json.loads(data.decode("utf-8", "replace"), parse_constant=refuse, parse_int=_Digits, parse_float=_Digits)
    return _replaced(value)


class _Digits(str):
    """A number as it is written: equal only to a number."""

    __slots__ = ()


def is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, _Digits)


def _replaced(value: Any) -> Any:
    if is_text(value):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [_replaced(item) for item in value]
    if isinstance(value, dict):
        return {_replaced(key): _replaced(item) for key, item in value.items()}
    return value


def text_of_draft(stream: bytes) -> str | None:
    """All ``delta.text`` of a stream of the draft, up to stream.end: what a naive reader shows its user. None where it
    cannot tell."""
    shown = []
    for name, data, _ in events(stream + b"\n\n")[0]:
        try:
            value = json_value(data.encode())
        except RecursionError:
            return None
        except ValueError:
            continue
        if type(value) is not dict:
            continue
        kind = value.get("type")
        if not is_text(kind):
            kind = name
        if kind == "stream.end":
            break
        delta = value.get("delta")
        if kind == "content.delta" and type(delta) is dict and is_text(delta.get("text")):
            shown.append(delta["text"])
    return "".join(shown)


# Framings that count. Each gives the payloads of whole frames, up to the first fault.


def length_prefixed(data: bytes) -> list[bytes]:
    found = []
    while len(data) >= 5:
        kind, size = struct.unpack(">BI", data[:5])
        if kind > 7 or len(data) < 5 + size:
            break
        found.append(data[5 : 5 + size])
        data = data[5 + size :]
    return found


def aws_event_stream(data: bytes) -> list[bytes]:
    found = []
    while len(data) >= 16:
        total, headers, prelude_sum = struct.unpack(">III", data[:12])
        if zlib.crc32(data[:8]) != prelude_sum or total > len(data) or headers > total - 16:
            break
        if zlib.crc32(data[: total - 4]) != struct.unpack(">I", data[total - 4 : total])[0]:
            break
        found.append(data[12 + headers : total - 4])
        data = data[total:]
    return found


def signalr(data: bytes) -> list[bytes]:
    return data.split(b"\x1e")[:-1]


def enveloped(data: bytes, end: int) -> list[bytes]:
    """Connect (end 0x02) and gRPC-Web (end 0x80), as far as nothing is compressed; the end itself is left out."""
    found = []
    while len(data) >= 5:
        flags, size = struct.unpack(">BI", data[:5])
        if flags or len(data) < 5 + size:
            break
        found.append(data[5 : 5 + size])
        data = data[5 + size :]
    return found


def json_values(data: bytes) -> list[Any]:
    """The objects of newline-delimited or concatenated JSON, up to the first fault."""
    text = data.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    found = []
    at = 0
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if not text.startswith("{", at):
            return found
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found
        found.append(value)
