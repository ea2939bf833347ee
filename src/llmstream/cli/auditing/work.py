"""What a process does: records of some files, ready to be written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from ...audit import audit
from ..options import Unusable
from .inputs import content, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...audit import AuditRecord
    from ...audit.reading import Redaction

__all__ = ["CONTEXT", "Job", "Result", "Worker", "find_redaction", "keep_freed_memory"]

CONTEXT = ("provider", "endpoint", "user_id", "session_id")
"""What can be said of all streams at once."""

MAX_HELD = 64 * 2**20
"""Characters of content after which a process hands over what it has."""


@dataclass(frozen=True)
class Job:
    """What is the same for all streams."""

    format: str
    dialect: str
    content: bool
    wire_digest: bool
    redact: str | None
    max_event_size: int
    context: dict[str, str | None]


@dataclass
class Result:
    """Records of the first ``count`` files of those given: digests, and the records as lines or as one Arrow batch."""

    count: int
    digests: list[bytes]
    lines: list[bytes]
    batch: bytes | None
    faults: list[tuple[str, str]]
    """Of the streams that were not read to their end: their ids and why."""
    bad: int
    """Streams that are cut, report an error, or deviate."""
    size: int
    """Bytes of the files on disk."""


def keep_freed_memory() -> None:
    """Has this process keep what it frees, up to some size, where the C library learns that from a large piece that
    comes and goes, as glibc does: else each chunk's memory goes back to the system, and is fetched again, zeroed."""
    bytes(16 * 2**20)


class Worker:
    """Makes records, all in the same way."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._redact = None if job.redact is None else find_redaction(job.redact)

    def work(self, paths: list[str]) -> Result:
        """The records of as many of the files, from the first on, as may be held at once."""
        records: list[AuditRecord] = []
        held = size = 0
        for path in paths:
            record = self._record(path)
            records.append(record)
            size += size_of(path)
            held += len(record.text or "") + sum(len(call.arguments or "") for call in record.tool_calls)
            if held >= MAX_HELD:
                break
        lines, batch = [], None
        if self._job.format == "parquet":
            made = import_module("llmstream.integrations.arrow").batch_of(records)
            digests: list[bytes] = made.column("record_sha256").to_pylist()
            batch = made.serialize().to_pybytes()
        else:
            lines = [record.to_json() for record in records]
            sha256: Any = import_module("hashlib").sha256
            digests = [sha256(line).digest() for line in lines]
        return Result(
            len(records),
            digests,
            lines,
            batch,
            [(record.stream_id, record.fault) for record in records if record.fault is not None],
            sum(not record.complete or record.error_code is not None or record.fault_count > 0 for record in records),
            size,
        )

    def _record(self, path: str) -> AuditRecord:
        job = self._job
        return audit(
            content(path),
            _name(path),
            dialect=job.dialect,
            content=job.content,
            wire_digest=job.wire_digest,
            redact=self._redact,
            max_event_size=job.max_event_size,
            **job.context,  # type: ignore[arg-type]
        )


def _name(path: str) -> str:
    """What a stream is called: the path of its file, the same on every system."""
    return os.fsencode(path).decode("utf-8", "backslashreplace").replace(os.sep, "/")


def find_redaction(name: str) -> Redaction:
    """The function that ``MODULE:FUNCTION`` names; raises Unusable where there is none."""
    module, _, function = name.partition(":")
    if not all(part.isidentifier() for path in (module, function) for part in path.split(".")):
        raise Unusable(f"--redact takes MODULE:FUNCTION: {name!r} is not that")
    try:
        found: Any = import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except Exception as error:  # noqa: BLE001 (a module may raise anything)
        raise Unusable(f"--redact {name}: {type(error).__name__}: {error}") from None
    if not callable(found):
        raise Unusable(f"--redact {name}: it cannot be called")
    return cast("Redaction", found)
