"""As much of protobuf's wire format as declared field numbers need."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    Numbers: TypeAlias = tuple[int, ...]

__all__ = ["field_numbers", "read"]

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5


def field_numbers(path: str) -> Numbers | None:
    """``"2.1"`` as ``(2, 1)``: field 1 of the message in field 2. None for what is no such path. Raises ValueError for
    a number that no field can have."""
    steps = path.split(".")
    if not all(step.isascii() and step.isdecimal() for step in steps):
        return None
    if len(steps) > 16 or not all(len(step) < 10 and 0 < int(step) < 2**29 for step in steps):
        raise ValueError(f"no path of field numbers: {path!r}")
    return tuple(map(int, steps))


def read(message: bytes, wanted: Iterable[Numbers]) -> dict[Numbers, str | int]:
    """What stands in the wanted fields: text, whose repetitions are joined, or an integer, of which the last counts.

    Raises ValueError where the message is none, or where a wanted field holds neither.
    """
    texts: dict[Numbers, list[bytes]] = {}
    found: dict[Numbers, str | int] = {}
    _walk(message, (), frozenset(wanted), texts, found)
    for path, pieces in texts.items():
        found[path] = b"".join(pieces).decode()
    return found


def _walk(
    message: bytes,
    above: Numbers,
    wanted: frozenset[Numbers],
    texts: dict[Numbers, list[bytes]],
    found: dict[Numbers, str | int],
) -> None:
    for number, value in _fields(message):
        path = (*above, number)
        if path in wanted:
            if isinstance(value, bytes):
                texts.setdefault(path, []).append(value)
            else:
                found[path] = value
        elif isinstance(value, bytes) and any(each[: len(path)] == path for each in wanted):
            _walk(value, path, wanted, texts, found)


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Number and value of every field, in order."""
    at, size = 0, len(message)
    while at < size:
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if not 0 < number < 2**29:
            raise ValueError("field number")
        value: bytes | int
        if kind == _VARINT:
            value, at = _varint(message, at)
        elif kind in (_I64, _I32, _LEN):
            length = {_I64: 8, _I32: 4}.get(kind)
            if length is None:
                length, at = _varint(message, at)
            if length > size - at:
                raise ValueError("a field that is cut")
            value = message[at : at + length]
            at += length
            if kind != _LEN:
                value = int.from_bytes(value, "little")
        else:
            raise ValueError("wire type")
        yield number, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise ValueError("a varint that is cut")
