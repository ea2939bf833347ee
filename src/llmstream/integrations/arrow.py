"""Audit records as Arrow tables and Parquet files, by ``pyarrow`` (extra ``arrow``).

``parse_batches`` is a function as Spark's ``mapInArrow`` takes it, ``parse_table`` one for Ray's ``map_batches``:
bodies in, records out, one row for each.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike

from ..audit import AuditedToolCall, AuditedViolation, Auditor, AuditRecord, Chain, Link, Stop
from ..audit.reading import CHUNK_SIZE, CONTEXT, DEFAULT_MAX_CONTENT_SIZE
from ..audit.record import NAMES
from .parquet_footer import shortcut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeAlias

    from ..audit.reading import Redaction
    from ..dialects import Dialect

    RecordBatch: TypeAlias = Any  # those of pyarrow, which need not be there to check types
    Table: TypeAlias = Any

__all__ = [
    "AUDIT_SCHEMA",
    "FILE_SCHEMA",
    "ParquetAudit",
    "batch_of",
    "chain_batches",
    "linked",
    "parse_batch",
    "parse_batches",
    "parse_table",
    "read_parquet",
]

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

_TIME = pa.timestamp("us", tz="UTC")
_PARTS: dict[str, Any] = {
    "tool_calls": pa.struct(
        [
            ("index", pa.int64()),
            ("id", pa.string()),
            ("name", pa.string()),
            ("arguments", pa.string()),
            ("arguments_sha256", pa.binary()),
        ]
    ),
    "stops": pa.struct([("index", pa.int64()), ("reason", pa.string()), ("vendor_reason", pa.string())]),
    "gaps": pa.struct([("first", pa.int64()), ("last", pa.int64())]),
    "violations": pa.struct(
        [
            ("requirement", pa.string()),
            ("severity", pa.string()),
            ("event", pa.int64()),
            ("offset", pa.int64()),
            ("message", pa.string()),
        ]
    ),
}
_KINDS = {
    **{name: pa.list_(part) for name, part in _PARTS.items()},
    **dict.fromkeys(("started_at", "first_token_at", "ended_at"), _TIME),
    **dict.fromkeys(("text_sha256", "wire_sha256"), pa.binary()),
    **dict.fromkeys(("created", "text_length", "tool_call_count", "input_tokens", "output_tokens"), pa.int64()),
    **dict.fromkeys(("usage_count", "event_count", "unknown_event_count", "first_seq", "last_seq"), pa.int64()),
    **dict.fromkeys(("violation_count", "fault_count", "byte_count"), pa.int64()),
    "complete": pa.bool_(),
}

AUDIT_SCHEMA = pa.schema([*((name, _KINDS.get(name, pa.string())) for name in NAMES), ("record_sha256", pa.binary())])
"""The fields of ``AuditRecord``, and its digest."""

FILE_SCHEMA = pa.schema([*AUDIT_SCHEMA, ("position", pa.int64()), ("chain_sha256", pa.binary()), ("seal", pa.binary())])
"""Those, and the place of the record in its chain."""

MAX_BATCH_SIZE = 64 * 2**20
"""Characters of content after which ``parse_batches`` hands on what it has."""


def parse_batches(
    batches: Iterable[RecordBatch],
    *,
    body: str = "body",
    stream_id: str = "stream_id",
    dialect: str | type[Dialect] = "auto",
    content: bool = True,
    max_content_size: int = DEFAULT_MAX_CONTENT_SIZE,
    wire_digest: bool = True,
    redact: Redaction | None = None,
    max_event_size: int = 16 * 2**20,
) -> Iterator[RecordBatch]:
    """Record batches of captured streams to batches of ``AUDIT_SCHEMA``, row by row in the same order.

    A row is one whole stream: its bytes in the column ``body`` (binary or string), what it is called in the column
    ``stream_id`` (of any type, bytes as UTF-8; or missing), and what else is known of it in columns ``provider``,
    ``endpoint``, ``user_id``, ``session_id``, ``started_at``, ``first_token_at`` and ``ended_at`` (whole microseconds;
    what is less is dropped). Bodies are read where they lie. The keywords are those of ``audit``.

    No row stops the work: ``complete``, ``violations`` and ``fault`` tell which are bad. A row without a body is one of
    them, and so is one with a value that is no text or no time, which becomes null. A large batch may come out as
    several.

    Raises KeyError where there is no such column and TypeError where its values are no bytes.
    """
    for batch in batches:
        records: list[AuditRecord] = []
        held = 0
        for row in _rows(batch, body, stream_id):
            unreadable = [name for name, value in row.items() if value is _UNREADABLE]
            row.update(dict.fromkeys(unreadable))
            auditor = Auditor(
                row["stream_id"] or "",
                dialect=dialect,
                content=content,
                max_content_size=max_content_size,
                wire_digest=wire_digest,
                redact=redact,
                max_event_size=max_event_size,
                **{name: row[name] for name in CONTEXT if name in row},
            )
            record = _read(auditor, row["body"], unreadable)
            records.append(record)
            held += len(record.text or "") + sum(len(call.arguments or "") for call in record.tool_calls)
            if held >= MAX_BATCH_SIZE:
                yield batch_of(records)
                records, held = [], 0
        if records:
            yield batch_of(records)


def parse_batch(batch: RecordBatch, **options: Any) -> RecordBatch:
    """``parse_batches`` for one batch, which stays one. Raises OverflowError where its content is more than 2 GiB."""
    found = list(parse_batches([batch], **options)) or [batch_of([])]
    return found[0] if len(found) == 1 else pa.concat_batches(found)


def parse_table(table: Table, **options: Any) -> Table:
    """``parse_batches`` for a table, as Ray's ``map_batches`` hands it over with ``batch_format="pyarrow"``."""
    return pa.Table.from_batches(parse_batches(table.to_batches(), **options), AUDIT_SCHEMA)


def _read(auditor: Auditor, body: Any, unreadable: list[str]) -> AuditRecord:
    if body is None:
        auditor.fail("there is no body")
        return auditor.close()
    view = memoryview(body)
    for at in range(0, len(view), CHUNK_SIZE):
        auditor.feed(view[at : at + CHUNK_SIZE])
    if unreadable:
        auditor.fail(f"no text or time that can be read: {', '.join(unreadable)}")
    return auditor.close()


def _rows(batch: RecordBatch, body: str, stream_id: str) -> Iterator[dict[str, Any]]:
    bodies = _plain(batch.column(body))
    is_dictionary = pa.types.is_dictionary(bodies.type)
    kind: Any = bodies.type.value_type if is_dictionary else bodies.type
    if not any(check(kind) for check in _BYTES):
        raise TypeError(f"column {body!r} must be of bytes, not {bodies.type}")
    names: Any = batch.schema.names
    ids = _texts(batch.column(stream_id)) if stream_id in names else [None] * len(bodies)
    context: dict[str, list[Any]] = {}
    for name in CONTEXT:
        if name in names:
            context[name] = (_times if name.endswith("_at") else _texts)(batch.column(name))
    for at, scalar in enumerate(bodies):
        row: dict[str, Any] = {"stream_id": ids[at], **{name: values[at] for name, values in context.items()}}
        found: Any = scalar.value if is_dictionary else scalar
        row["body"] = None if found is None else found.as_buffer()
        yield row


_BYTES: tuple[Callable[[Any], bool], ...] = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_string,
    pa.types.is_large_string,
    *(getattr(pa.types, name) for name in ("is_binary_view", "is_string_view") if hasattr(pa.types, name)),
)

_UNREADABLE: Any = object()
"""What stands for a value of which nothing can be made."""


def _plain(column: Any) -> Any:
    """What an extension type stores; bytes where every value is null, so that no writer saw which type they have."""
    while isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    return column.cast(pa.large_binary()) if pa.types.is_null(column.type) else column


def _texts(column: Any) -> list[Any]:
    try:
        return [_text(value) for value in column.to_pylist()]
    except Exception:  # noqa: BLE001 (one of the values: which, each has to show for itself)
        return [_or_unreadable(lambda scalar: _text(scalar.as_py()), scalar) for scalar in column]


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode()
    return None if value is None else str(value)


def _times(column: Any) -> list[Any]:
    column = _plain(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        found: list[Any] = column.cast(_TIME).to_pylist()
    except Exception:  # noqa: BLE001 (as above)
        return [_or_unreadable(lambda scalar: scalar.cast(_TIME).as_py(), scalar) for scalar in column]
    return found


def _or_unreadable(read: Callable[[Any], Any], scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    try:
        return read(scalar)
    except Exception:  # noqa: BLE001 (whatever is wrong with it: no row stops the work)
        return _UNREADABLE


# --------------------------------------------------------------------------------------------------
# Records to columns and back


def batch_of(records: Sequence[AuditRecord]) -> RecordBatch:
    """Records as one batch of ``AUDIT_SCHEMA``."""
    columns: list[Any] = []
    for entry in AUDIT_SCHEMA:
        name: str = entry.name
        if name == "record_sha256":
            values: list[Any] = [record.digest() for record in records]
        elif name == "gaps":
            values = [[{"first": first, "last": last} for first, last in record.gaps] for record in records]
        elif name in _PARTS:
            values = [_structs(getattr(record, name)) for record in records]
        else:
            values = [getattr(record, name) for record in records]
        columns.append(pa.array(values, entry.type))
    return pa.RecordBatch.from_arrays(columns, schema=AUDIT_SCHEMA)


def _structs(parts: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [{name: getattr(part, name) for name in part.__match_args__} for part in parts]


_MADE: dict[str, Callable[[Any], Any]] = {
    "tool_calls": lambda parts: tuple(AuditedToolCall(**part) for part in parts),
    "stops": lambda parts: tuple(Stop(**part) for part in parts),
    "violations": lambda parts: tuple(AuditedViolation(**part) for part in parts),
    "gaps": lambda parts: tuple((part["first"], part["last"]) for part in parts),
}


def linked(batch: RecordBatch, links: Sequence[Link]) -> RecordBatch:
    """A batch of ``AUDIT_SCHEMA`` with the places of its records, as ``FILE_SCHEMA``."""
    places = [
        pa.array([link.position for link in links], pa.int64()),
        pa.array([link.chain_sha256 for link in links], pa.binary()),
        pa.array([link.seal for link in links], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays([*batch.columns, *places], schema=FILE_SCHEMA)


def chain_batches(batches: Iterable[RecordBatch], key: bytes | None = None) -> Iterator[RecordBatch]:
    """Batches of ``AUDIT_SCHEMA``, from wherever they were made, chained in this order and sealed: as ``FILE_SCHEMA``,
    for ``ParquetAudit``. One is held back, since only the end shows which record is the last."""
    chain = Chain(key)
    held: RecordBatch | None = None
    for batch in batches:
        if batch.num_rows:
            if held is not None:
                yield linked(held, _links(held, chain, last=False))
            held = batch
    if held is not None:
        yield linked(held, _links(held, chain, last=True))


def _links(batch: RecordBatch, chain: Chain, *, last: bool) -> list[Link]:
    digests: list[bytes] = batch.column("record_sha256").to_pylist()
    final = len(digests) - 1
    return [chain.add(digest, last=last and at == final) for at, digest in enumerate(digests)]


# --------------------------------------------------------------------------------------------------
# Parquet


class ParquetAudit:
    """Writes batches of ``FILE_SCHEMA`` to a Parquet file, in groups of a size that readers like, without statistics:
    ``read_parquet`` says why."""

    ROWS = 20_000
    SIZE = 64 * 2**20

    def __init__(self, file: Any) -> None:
        # Readers leave out rows by what statistics say, which no digest covers.
        self._writer = pq.ParquetWriter(file, FILE_SCHEMA, compression="zstd", write_statistics=False)
        self._batches: list[Any] = []
        self._rows = self._size = 0

    def write(self, batch: RecordBatch) -> None:
        """Adds a batch."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._size += batch.nbytes
        if self._rows >= self.ROWS or self._size >= self.SIZE:
            self._flush()

    def _flush(self) -> None:
        batches, self._batches = self._batches, []
        self._rows = self._size = 0
        if batches:
            self._writer.write_table(pa.Table.from_batches(batches, FILE_SCHEMA))

    def close(self) -> None:
        """Writes the rest, and the end of the file."""
        self._flush()
        self._writer.close()


def read_parquet(file: Any) -> Iterator[tuple[AuditRecord, Link]]:
    """The records and links of a Parquet file, in their order.

    Raises ValueError where it is none, or is damaged, or has what readers leave out rows by without having read them
    (statistics, page indexes, Bloom filters, an order of its rows): no digest covers that, so that a change of it hides
    records that are still there.
    """
    try:
        beside = _beside(file)
        if beside is None:
            found = pq.ParquetFile(file)
            if found.schema_arrow.equals(FILE_SCHEMA):
                for batch in found.iter_batches(batch_size=512):
                    yield from _records(batch)
                return
            fault = "its columns are others"
        else:
            fault = f"it has {beside}, which can hide records from a filter"
    except Exception as error:  # noqa: BLE001 (damage shows in many ways, and their words may quote a text)
        fault = type(error).__name__
    raise ValueError(f"no Parquet file of an audit, or a damaged one: {fault}")


def _beside(file: Any) -> str | None:
    if isinstance(file, str | PathLike):
        with open(file, "rb") as opened:
            return shortcut(opened)
    at = file.tell()
    try:
        return shortcut(file)
    finally:
        file.seek(at)


def _records(batch: RecordBatch) -> Iterator[tuple[AuditRecord, Link]]:
    columns = {name: batch.column(name).to_pylist() for name in FILE_SCHEMA.names}
    for name, make in _MADE.items():
        columns[name] = [make(value) for value in columns[name]]
    for row in zip(*columns.values(), strict=True):
        values = dict(zip(columns, row, strict=True))
        place = Link(*(values.pop(name) for name in ("record_sha256", "position", "chain_sha256", "seal")))
        yield AuditRecord(**values), place
