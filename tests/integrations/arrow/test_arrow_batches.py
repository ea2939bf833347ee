"""Batches of bodies to batches of records: one row for each, read where they lie."""

from __future__ import annotations

import io
import json
from collections import deque
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pa: Any = pytest.importorskip("pyarrow")

import arrow_streams  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from commands import main  # noqa: E402
from streams import BODY, CUT, FAILED, GAP  # noqa: E402


def arrow() -> Any:
    return import_module("llmstream.integrations.arrow")


def parsed(batch: Any, **options: Any) -> list[dict[str, Any]]:
    (found,) = arrow().parse_batches([batch], **options)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_one_row_for_each(llmstream):
    bodies = [BODY, CUT, None, b"", GAP, b"\xff\x00", FAILED]
    rows = parsed(pa.record_batch({"body": bodies, "stream_id": list("abcdefg")}))
    assert [row["stream_id"] for row in rows] == list("abcdefg")
    assert [row["complete"] for row in rows] == [True, False, False, False, True, False, True]
    assert [row["fault"] for row in rows] == [None, None, "there is no body", None, None, None, None]
    assert rows[4]["gaps"] == [{"first": 2, "last": 2}]
    assert rows[0]["text"] == llmstream.parse(BODY).text


def test_the_same_record_as_audit(llmstream):
    audit: Any = import_module("llmstream.audit").audit
    streams = arrow_streams.captured()[:300]
    batch = arrow_streams.table_of(streams).combine_chunks().to_batches()[0]
    (found,) = arrow().parse_batches([batch])
    assert found.schema == arrow().AUDIT_SCHEMA
    records = [audit(body, name) for name, body, _ in streams]
    assert found == arrow().batch_of(records)
    assert found.column("record_sha256").to_pylist() == [record.digest() for record in records]
    assert arrow_streams.is_as_expected(found, streams)


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary(len(BODY)), pa.string(), pa.large_string()], ids=str
)
def test_types_of_bodies(llmstream, kind):
    body = BODY.decode() if "string" in str(kind) else BODY
    (row,) = parsed(pa.record_batch({"capture": pa.array([body], kind)}), body="capture")
    assert (row["complete"], row["stream_id"], row["byte_count"]) == (True, "", len(BODY))


class Capture(pa.ExtensionType):  # type: ignore[misc]
    """A type of somebody's own over bytes."""

    def __init__(self) -> None:
        super().__init__(pa.binary(), "capture")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def test_types_that_hold_bytes_in_another_way(llmstream):
    for kind in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        texts = "string" in str(kind)
        bodies = [body.decode() if texts else body for body in (BODY, CUT)]
        column = pa.array([bodies[0], None, bodies[1], bodies[0]], kind).dictionary_encode()
        rows = parsed(pa.record_batch({"body": column, "stream_id": column}).slice(1))
        assert [row["byte_count"] for row in rows] == [0, len(CUT), len(BODY)]
        assert [row["fault"] for row in rows] == ["there is no body", None, None]
        assert [row["stream_id"] for row in rows] == ["", CUT.decode(), BODY.decode()]
    for view in ("binary_view", "string_view"):
        if hasattr(pa, view):
            rows = parsed(pa.record_batch({"body": pa.array([BODY, None, b"x"], getattr(pa, view)())}))
            assert [row["byte_count"] for row in rows] == [len(BODY), 0, 1]
    own = pa.ExtensionArray.from_storage(Capture(), pa.array([BODY, None], pa.binary()))
    assert [row["byte_count"] for row in parsed(pa.record_batch({"body": own}))] == [len(BODY), 0]


def test_no_bodies_at_all(llmstream):
    """As a writer leaves them that has seen none: it does not know their type."""
    rows = parsed(pa.record_batch({"body": pa.nulls(2), "stream_id": ["a", "b"], "started_at": pa.nulls(2)}))
    assert [(row["stream_id"], row["fault"]) for row in rows] == [("a", "there is no body"), ("b", "there is no body")]


def raw_strings(*values: bytes) -> Any:
    """A column of strings that nobody has checked."""
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    pieces = [None, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), pieces)


UNREADABLE: dict[str, tuple[str, Any]] = {
    "an id that is no UTF-8": ("stream_id", raw_strings(b"good", b"\xff\xfe", b"better")),
    "an id of other bytes": ("stream_id", pa.array([b"good", b"\xff\xfe", b"better"])),
    "a name that is no UTF-8": ("user_id", raw_strings(b"good", b"\xed\xa0\x80", b"better")),
    "an id out of the calendar": ("stream_id", pa.array([0, 2**62, 1], pa.timestamp("us"))),
    "no time": ("started_at", pa.array(["2026-01-01T00:00:00Z", "yesterday", "2026-01-01T00:00:00Z"])),
    "a time out of the calendar": ("ended_at", pa.array([0, 2**62, 1], pa.timestamp("us"))),
    "a time before the calendar": ("first_token_at", pa.array([0, -(2**62), 1], pa.timestamp("us", "UTC"))),
    "seconds out of range": ("started_at", pa.array([0, 2**60, 1], pa.timestamp("s"))),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_value_that_cannot_be_read(llmstream, what):
    """It is null and its row says so; the body is read, and the other rows are as they would be without it."""
    name, column = UNREADABLE[what]
    rows = parsed(pa.record_batch({"body": [BODY] * 3, name: column}))
    words = f"no text or time that can be read: {name}"
    assert [row["fault"] for row in rows] == [None, words, None]
    assert [row["complete"] for row in rows] == [True, False, True]
    assert [row["byte_count"] for row in rows] == [len(BODY)] * 3
    assert rows[1][name] == ("" if name == "stream_id" else None)
    assert rows[0][name] not in (None, "")
    assert rows[2][name] not in (None, "")


def test_a_column_of_another_kind(llmstream):
    """No value of it is a time: every row says so."""
    rows = parsed(pa.record_batch({"body": [BODY, BODY], "started_at": [[1], None]}))
    assert [row["fault"] for row in rows] == ["no text or time that can be read: started_at", None]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_nanoseconds(llmstream, zone):
    """Of which a record has no more than microseconds."""
    column = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns", zone))
    for times in (column, column.dictionary_encode()):
        rows = parsed(pa.record_batch({"body": [BODY, BODY], "started_at": times}))
        at = datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
        assert [(row["started_at"], row["fault"]) for row in rows] == [(at, None), (None, None)]


def test_ids_of_bytes_are_text(llmstream):
    for kind in (pa.binary(), pa.large_binary(), pa.binary(3)):
        (row,) = parsed(pa.record_batch({"body": [BODY], "stream_id": pa.array([b"abc"], kind)}))
        assert row["stream_id"] == "abc"


@pytest.mark.parametrize("changed", [{"user_id": 5}, {"created": 2**63}, {"text": b"x"}, {"stops": [1]}])
def test_a_redaction_that_makes_no_record(llmstream, changed):
    """What only one of the formats could hold is refused in both."""
    replace: Any = import_module("dataclasses").replace
    (row,) = parsed(pa.record_batch({"body": [BODY]}), redact=lambda record: replace(record, **changed))
    assert (row["fault"], row["text"], row["user_id"]) == ("redaction failed: TypeError", None, None)


def test_slices_are_read_where_they_lie(llmstream):
    batch = pa.record_batch({"body": [CUT, BODY, GAP], "stream_id": [1, 2, 3]}).slice(1, 1)
    (row,) = parsed(batch)
    assert (row["stream_id"], row["complete"], row["byte_count"]) == ("2", True, len(BODY))


def test_bodies_are_not_copied(llmstream):
    body = b": keep-alive\n" * 5_000_000
    batch = pa.record_batch({"body": pa.array([body], pa.large_binary())})
    tracemalloc: Any = import_module("tracemalloc")
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    list(arrow().parse_batches([batch]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(body) / 20
    assert pa.total_allocated_bytes() - before < len(body) / 20


def test_context_from_columns(llmstream):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    batch = pa.record_batch(
        {
            "body": [BODY, BODY],
            "user_id": ["u", None],
            "provider": ["p", "q"],
            "started_at": [at, None],
            "other": [1, 2],
        }
    )
    first, second = parsed(batch)
    assert (first["user_id"], first["provider"], first["started_at"]) == ("u", "p", at)
    assert (second["user_id"], second["provider"], second["started_at"]) == (None, "q", None)


def test_options(llmstream):
    batch = pa.record_batch({"body": [BODY]})
    (row,) = parsed(batch, content=False, wire_digest=False, dialect="llm-stream")
    assert (row["text"], row["wire_sha256"], row["text_length"]) == (None, None, 17)


def test_batches_stay_small(llmstream, monkeypatch):
    monkeypatch.setattr(arrow(), "MAX_BATCH_SIZE", 30)
    batch = pa.record_batch({"body": [BODY] * 5})
    assert [found.num_rows for found in arrow().parse_batches([batch])] == [2, 2, 1]
    assert arrow().parse_batch(batch).num_rows == 5
    assert arrow().parse_table(pa.Table.from_batches([batch, batch])).num_rows == 10


def test_nothing(llmstream):
    empty = pa.record_batch({"body": pa.array([], pa.binary())})
    assert list(arrow().parse_batches([empty])) == []
    assert arrow().parse_batch(empty).num_rows == 0
    assert arrow().parse_table(pa.Table.from_batches([empty])).schema == arrow().AUDIT_SCHEMA


def test_columns_that_do_not_serve(llmstream):
    with pytest.raises(KeyError):
        parsed(pa.record_batch({"stream": [BODY]}))
    with pytest.raises(TypeError, match="'body' must be of bytes, not int64"):
        parsed(pa.record_batch({"body": [1]}))


@given(bodies=st.lists(st.one_of(st.none(), st.binary(max_size=80)), max_size=5))
def test_any_bytes(llmstream, bodies):
    batch = pa.record_batch({"body": pa.array(bodies, pa.binary())})
    assert sum(found.num_rows for found in arrow().parse_batches([batch])) == len(bodies)


# --------------------------------------------------------------------------------------------------
# The command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, body in (("a", BODY), ("b", CUT), ("c", GAP), ("d", FAILED)):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_bytes(body)
    return tmp_path


def test_lines_and_parquet_hold_the_same(llmstream, folder):
    lines, table = folder / "out.jsonl", folder / "out.parquet"
    for output in (lines, table):
        assert main("audit", str(folder / "in"), "-o", str(output)) == 0
        assert main("audit", "--verify", str(output)) == 0
    line: Any = import_module("llmstream.audit.chain").line
    rows = [line(record.to_json(), link) for record, link in arrow().read_parquet(table)]
    assert rows == lines.read_bytes().splitlines(keepends=True)


def test_anybody_can_read_it(llmstream, folder):
    output = folder / "out.parquet"
    assert main("audit", str(folder / "in"), "-o", str(output)) == 0
    parquet: Any = import_module("pyarrow.parquet")
    rows = parquet.read_table(output).to_pylist()
    assert [row["complete"] for row in rows] == [True, False, True, True]
    assert [row["output_tokens"] for row in rows] == [4, 4, 4, None]


@pytest.mark.parametrize("what", ["changed", "removed", "moved", "repeated", "cut", "other columns", "nothing"])
def test_rows_that_were_touched(llmstream, folder, what):
    output = folder / "out.parquet"
    assert main("audit", str(folder / "in"), "-o", str(output)) == 0
    parquet: Any = import_module("pyarrow.parquet")
    table = parquet.read_table(output)
    if what == "changed":
        at = table.column_names.index("output_tokens")
        table = table.set_column(at, "output_tokens", pa.array([4, 5, 4, None], pa.int64()))
    elif what == "other columns":
        table = table.drop_columns(["seal"])
    else:
        order = {
            "removed": [0, 2, 3],
            "moved": [1, 0, 2, 3],
            "repeated": [0, 0, 1, 2, 3],
            "cut": [0, 1, 2],
            "nothing": [0, 1, 2, 3],
        }[what]
        table = table.take(order)
    parquet.write_table(table, output, write_statistics=False)
    assert main("audit", "--verify", str(output)) == (0 if what == "nothing" else 1)


SHORTCUTS: dict[str, dict[str, Any]] = {
    "statistics": {"write_statistics": True},
    "statistics of one column": {"write_statistics": ["user_id"]},
    "a page index": {"write_statistics": False, "write_page_index": True},
    "an order of its rows": {"write_statistics": False, "sorting_columns": True},
    "Bloom filters": {"write_statistics": False, "bloom_filter_options": {"user_id": True}},
}


@pytest.mark.parametrize("what", SHORTCUTS)
def test_what_a_filter_could_trust(llmstream, folder, what, capsys):
    """Who changes it hides records from readers that filter, and no digest shows that: it must not be there at all."""
    parquet: Any = import_module("pyarrow.parquet")
    options = dict(SHORTCUTS[what])
    if "sorting_columns" in options:
        options["sorting_columns"] = parquet.SortingColumn.from_ordering(
            arrow().FILE_SCHEMA, [("position", "ascending")]
        )
    if "bloom_filter_options" in options and not hasattr(parquet.ColumnChunkMetaData, "bloom_filter_offset"):
        pytest.skip("this release of pyarrow writes and tells none")
    output = folder / "out.parquet"
    assert main("audit", str(folder / "in"), "-o", str(output)) == 0
    assert main("audit", "--verify", str(output)) == 0
    parquet.write_table(parquet.read_table(output), output, **options)
    capsys.readouterr()
    assert main("audit", "--verify", str(output)) == 1
    assert (
        f"it has {what.removesuffix(' of one column')}, which can hide records from a filter" in capsys.readouterr().err
    )


def test_a_filter_reads_every_row(llmstream, folder):
    """As written, there is nothing that a reader could leave out a row by."""
    parquet: Any = import_module("pyarrow.parquet")
    output = folder / "out.parquet"
    assert main("audit", str(folder / "in"), "-o", str(output)) == 0
    group = parquet.ParquetFile(output).metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    assert not any(column.is_stats_set or column.has_column_index or column.has_offset_index for column in columns)
    assert not group.sorting_columns
    found = parquet.read_table(output, filters=[("output_tokens", "=", 4)])
    assert found.num_rows == 3


@given(data=st.data())
def test_bytes_that_were_touched(llmstream, data):
    """A Parquet file holds bytes that mean nothing; whatever is changed, the records are as written or it is found."""
    body = bytearray(sealed())
    before = list(arrow().read_parquet(io.BytesIO(body)))
    body[data.draw(st.integers(4, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    verifier: Any = import_module("llmstream.audit").Verifier()
    try:
        after = list(arrow().read_parquet(io.BytesIO(body)))
        for record, link in after:
            verifier.add(record, link)
        verifier.close()
    except ValueError:
        return
    assert after == before


def footed(footer: bytes) -> io.BytesIO:
    return io.BytesIO(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@given(footer=st.binary(max_size=200))
def test_any_footer(llmstream, footer):
    """It is read before ``pyarrow`` sees it, and refused in the same words as any damage."""
    with pytest.raises(ValueError, match="no Parquet file of an audit, or a damaged one"):
        list(arrow().read_parquet(footed(footer)))


@pytest.mark.parametrize(
    "footer",
    [
        b"\x1c" * 100_000,  # structs in one another
        b"\x19" * 100_000,  # lists in one another
        b"\x19\xfc" + b"\xff" * 8 + b"\x7f",  # a list of more than there is
        b"\x18" + b"\xff" * 100_000,  # a length without end
        b"\x1b\x00\x00",  # a map
        b"\x49\x0c\x00",  # no row groups, and then all of it again
        b"\x49\x0c\x09\x08\x0c\x00",
        b"",
    ],
    ids=["structs", "lists", "count", "length", "map", "empty", "twice", "nothing"],
)
def test_hostile_footers(llmstream, footer):
    with pytest.raises(ValueError, match="no Parquet file of an audit, or a damaged one"):
        list(arrow().read_parquet(footed(footer)))


def sealed() -> bytes:
    """A Parquet file with one record."""
    package = import_module("llmstream.audit")
    record = package.audit(BODY)
    file = io.BytesIO()
    writer = arrow().ParquetAudit(file)
    writer.write(arrow().linked(arrow().batch_of([record]), [package.Chain().add(record.digest(), last=True)]))
    writer.close()
    return file.getvalue()


def test_cut_files(llmstream, folder):
    output = folder / "out.parquet"
    assert main("audit", str(folder / "in"), "-o", str(output)) == 0
    body = output.read_bytes()
    for size in (4, 100, len(body) // 2, len(body) - 1):
        output.write_bytes(body[:size])
        assert main("audit", "--verify", str(output)) == 1


def test_zstd(llmstream, folder):
    packed = pa.compress(BODY, "zstd", asbytes=True)
    (folder / "in" / "a").write_bytes(packed)
    (folder / "in" / "b").write_bytes(packed[:-20])
    output = folder / "out.jsonl"
    assert main("audit", str(folder / "in"), "-o", str(output), "--jobs", "1") == 2
    whole, cut, *_ = (json.loads(line) for line in output.read_bytes().splitlines())
    assert (whole["complete"], whole["byte_count"], whole["fault"]) == (True, len(BODY), None)
    assert cut["fault"].startswith("not read to its end: the compressed data")


def test_what_comes_before_the_damage_of_zstd_is_read(llmstream, tmp_path):
    """All blocks, of 128 KiB at most (RFC 8878, section 3.1.1.2.4), that come before it."""
    content: Any = import_module("llmstream.cli.auditing.inputs").content
    block = 128 * 2**10
    body = b"".join(sha256(b"%d" % number).hexdigest().encode() for number in range(20_000))
    packed = pa.compress(body, "zstd", asbytes=True)
    for cut in (1, 5, len(packed) // 2, len(packed) - 10):
        for damaged in (packed[:-cut], packed + packed[:-cut]):
            (tmp_path / "a").write_bytes(damaged)
            found = bytearray()
            chunks = content(str(tmp_path / "a"))
            with pytest.raises(OSError, match="the compressed data"):
                deque(map(found.extend, chunks))
            whole = len(body) * (len(damaged) // len(packed))
            at_least = whole + (len(body) * (len(packed) - cut) // len(packed)) // block * block - block
            assert bytes(found) == (body + body)[: len(found)]
            assert len(found) >= at_least
