"""A thousand captured streams, as files and as a table, and what an independent reader found in them."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import handed

COUNT = 1000
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "many-machines.md"


def captured() -> list[tuple[str, bytes, dict[str, Any]]]:
    """Name, body and expected row; the recorded ones in turn, until there are a thousand. Skips where they are not."""
    rows = handed.rows("captures")
    bodies = [(handed.SHARED / "captures" / row["file"]).read_bytes() for row in rows]
    found = []
    for number in range(COUNT):
        row = rows[number % len(rows)]
        found.append((f"{number:04}-{Path(row['file']).name}", bodies[number % len(rows)], row))
    return found


def table_of(streams: list[tuple[str, bytes, dict[str, Any]]]) -> Any:
    """As a table of two columns."""
    pyarrow: Any = import_module("pyarrow")
    return pyarrow.table({"stream_id": [name for name, *_ in streams], "body": [body for _, body, _ in streams]})


def by_command(folder: Path, streams: list[tuple[str, bytes, dict[str, Any]]]) -> Any:
    """The table that ``llmstream audit`` writes of them, without the chain."""
    inputs, output = folder / "in", folder / "out.parquet"
    inputs.mkdir()
    for name, body, _ in streams:
        (inputs / name).write_bytes(body)
    main: Any = import_module("llmstream.cli").main
    assert main(["audit", str(inputs), "-o", str(output), "--jobs", "2"]) == 0
    assert main(["audit", "--verify", str(output)]) == 0
    table = import_module("pyarrow.parquet").read_table(output)
    names = [Path(name).name for name in table.column("stream_id").to_pylist()]
    assert names == [name for name, *_ in streams]
    return without_chain(table)


def without_chain(table: Any) -> Any:
    """Only what comes from the streams: their names differ with where they were read, and so the digests of records."""
    table = table.sort_by("stream_id")
    return table.drop_columns(
        [
            name
            for name in ("position", "chain_sha256", "seal", "record_sha256", "stream_id")
            if name in table.column_names
        ]
    )


def is_as_expected(table: Any, streams: list[tuple[str, bytes, dict[str, Any]]]) -> bool:
    """Whether rows in the order of the names have what others found in the streams."""
    columns = {name: table.column(name).to_pylist() for name in ("text_sha256", "wire_sha256", "byte_count")}
    wanted = {
        "text_sha256": [bytes.fromhex(row["text_sha256"]) for *_, row in streams],
        "wire_sha256": [sha256(body).digest() for _, body, _ in streams],
        "byte_count": [len(body) for _, body, _ in streams],
    }
    return columns == wanted


def block(word: str) -> str:
    """The example of the guide in which there is this word."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (found,) = (text for text in blocks if word in text)
    return found


class Lake:
    """A folder in place of the guide's bucket: ``captures`` are there, ``records`` are what an example writes."""

    def __init__(self, folder: Path, streams: list[tuple[str, bytes, dict[str, Any]]]) -> None:
        self._folder = folder
        (folder / "captures").mkdir()
        self._parquet: Any = import_module("pyarrow.parquet")
        captures = table_of(streams)
        for number, at in enumerate(range(0, len(streams), 250)):
            self._parquet.write_table(captures.slice(at, 250), folder / "captures" / f"{number}.parquet")

    def run(self, example: str, **names: Any) -> None:
        """Runs an example, in this folder."""
        example = example.replace("s3://bucket/", f"{self._folder.as_posix()}/")
        exec(example.replace("audit.parquet", f"{self._folder.as_posix()}/audit.parquet"), names)

    def _read(self) -> Any:
        return import_module("pyarrow.dataset").dataset(self._folder / "records").to_table().sort_by("stream_id")

    def names(self) -> list[str]:
        """What the streams of the records are called, in their order."""
        found: list[str] = self._read().column("stream_id").to_pylist()
        return found

    def table(self) -> Any:
        """The records, as ``without_chain``."""
        return without_chain(self._read().cast(import_module("llmstream.integrations.arrow").AUDIT_SCHEMA))

    def chain_and_verify(self) -> None:
        """Makes an audit of the records, as the guide says."""
        self.run(block("chain_batches"), key=b"secret")
        (self._folder / "key").write_bytes(b"secret")
        main: Any = import_module("llmstream.cli").main
        assert main(["audit", "--verify", str(self._folder / "audit.parquet"), "--key", str(self._folder / "key")]) == 0
