"""Who: every reader takes the chunks of one body and does a task with what is in it.

Tasks: "kept" gives all events as a list; "dropped" reads them and lets go; "read" gives the texts, collected in a loop
of Python; "text" gives the text of every chunk; "fields" gives text, reasoning, arguments, stop reason and token count
of every event; "payload" is "kept" for bare payloads; "framing" gives the events of the SSE layer, their JSON unread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from ..found import Found
from .schema import Schema

__all__ = ["READERS", "TASKS", "Reader", "Run", "register", "table", "version"]

TASKS = ("kept", "dropped", "read", "text", "fields", "framing")

Read = Callable[[list[bytes]], Any]
View = Callable[[Any], "Found | None"]
Make = Callable[[Schema], "tuple[Read, View] | None"]


@dataclass(frozen=True)
class Run:
    """A reader made ready for one task: ``read`` is what is timed, ``view`` says what it found."""

    read: Read
    view: View


@dataclass(frozen=True)
class Reader:
    """``tasks``: task -> what makes it for a format. ``imports``: the modules it needs. ``package``: whose version
    counts. ``twin``: which of our implementations it runs."""

    name: str
    label: str
    tasks: dict[str, Make]
    imports: tuple[str, ...] = ()
    package: str | None = None
    twin: str | None = None
    floor: bool = False

    def missing(self) -> str | None:
        """Why it cannot run here, or None."""
        import importlib

        if self.twin is not None:
            from .. import twins

            return twins.missing(self.twin)
        try:
            for module in self.imports:
                importlib.import_module(module)
        except ImportError as error:
            return str(error)
        return None

    def ready(self, task: str, schema: Schema) -> Run | None:
        if self.twin is not None:
            from .. import twins

            twins.activate(self.twin)
        made = self.tasks[task](schema) if task in self.tasks else None
        return None if made is None else Run(*made)


READERS: dict[str, Reader] = {}


def register(reader: Reader) -> None:
    READERS[reader.name] = reader


def version(reader: Reader) -> str | None:
    try:
        return metadata.version(reader.package) if reader.package else None
    except metadata.PackageNotFoundError:
        return None


def table() -> dict[str, Reader]:
    """All readers, in the order of their registration."""
    from . import floors, framed, naive, ours, sdk, split  # noqa: F401 (they register)

    return READERS
