"""Batches of bodies to batches of records: one row for each, read where they lie."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
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


@pytest.mark.parametrize("what", ["changed", "removed", "moved", "repeated", "cut", "other columns"])
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
        order = {"removed": [0, 2, 3], "moved": [1, 0, 2, 3], "repeated": [0, 0, 1, 2, 3], "cut": [0, 1, 2]}[what]
        table = table.take(order)
    parquet.write_table(table, output)
    assert main("audit", "--verify", str(output)) == 1


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
