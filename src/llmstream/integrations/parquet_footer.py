"""What the footer of a Parquet file has beside the data. It is read here: ``pyarrow`` aborts the process over some.

A footer is a struct of Thrift's compact protocol; numbers of fields are those of ``parquet.thrift``.
"""

from __future__ import annotations

from typing import NoReturn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["shortcut"]

MAX_DEPTH = 16
"""Structs and lists in one another: a footer needs half as many."""

# Types of fields.
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 12

ROW_GROUPS = 4  # of FileMetaData
COLUMNS, SORTING = 1, 4  # of RowGroup
ROW_GROUP = {COLUMNS, 2, 3, 5, 6, 7}  # sizes, number and place
COLUMN_METADATA = 3  # of ColumnChunk
COLUMN_CHUNK = {2, COLUMN_METADATA}
OFFSET_INDEX, COLUMN_INDEX = (4, 5), (6, 7)
# Of ColumnMetaData: type, encodings, path, codec, sizes, places; and lengths of values, to plan memory by (16).
PLAIN = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 16}
STATISTICS, BLOOM_FILTER = (12, 17), (14, 15)


def shortcut(file: Any) -> str | None:
    """What the Parquet file (binary, open for reading) has for readers that look for some rows only, in words; None for
    nothing. Raises ValueError where its footer is none."""
    for group in _list(_footer(file), ROW_GROUPS):
        found = set(group)
        if SORTING in found:
            return "an order of its rows"
        if not found <= ROW_GROUP:
            return "what is not known here"
        for column in _list(group, COLUMNS):
            words = _of_column(column)
            if words is not None:
                return words
    return None


def _of_column(column: dict[int, Any]) -> str | None:
    metadata = column.get(COLUMN_METADATA)
    if not isinstance(metadata, dict):
        _refuse()
    found, inner = set(column), set(metadata)
    if found.intersection((*OFFSET_INDEX, *COLUMN_INDEX)):
        return "a page index"
    if inner.intersection(STATISTICS):
        return "statistics"
    if inner.intersection(BLOOM_FILTER):
        return "Bloom filters"
    return None if found <= COLUMN_CHUNK and inner <= PLAIN else "what is not known here"


def _list(struct: dict[int, Any], number: int) -> Iterator[dict[int, Any]]:
    found = struct.get(number)
    if not isinstance(found, list):
        _refuse()
    for value in found:
        if not isinstance(value, dict):
            _refuse()
        yield value


def _footer(file: Any) -> dict[int, Any]:
    size = file.seek(0, 2)
    if size < 12:
        _refuse()
    file.seek(size - 8)
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != b"PAR1" or length > size - 12:
        _refuse()
    file.seek(size - 8 - length)
    return _Thrift(file.read(length)).struct(0)


def _refuse() -> NoReturn:
    raise ValueError("its footer is damaged")


class _Thrift:
    """Values of the compact protocol, one after the other: fields by their numbers."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int) -> dict[int, Any]:
        """Raises ValueError for what is none, or has a field twice, of which readers may take either."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            if number in fields:
                _refuse()
            kind = head & 15
            # Of a field, the type is the value of a truth.
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > MAX_DEPTH:
            _refuse()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if _BYTE < kind <= _I64:
            return self._signed()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 != 15 else self._unsigned()
            if count > len(self._data) - self._at:  # each has a byte at least
                _refuse()
            return [self._value(head & 15, depth + 1) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        _refuse()  # a map: there is none in a footer

    def _byte(self) -> int:
        if self._at >= len(self._data):
            _refuse()
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            _refuse()
        self._at += size
        return self._data[self._at - size : self._at]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        _refuse()

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
