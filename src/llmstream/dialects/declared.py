"""Dialects whose payloads nobody has published: an instance is told where things stand."""

from __future__ import annotations

from functools import lru_cache

from .. import rules
from ..declaration import Delta, parse_path
from .base import PATHS, Dialect
from .values import at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, TypedDict, Unpack

    from .._backend import Event

    class Paths(TypedDict, total=False):
        """Where things stand in a payload."""

        text: str | None
        reasoning: str | None
        index: str | None
        stop_reason: str | None
        model: str | None
        created: str | None
        request_id: str | None
        input_tokens: str | None
        output_tokens: str | None
        error_code: str | None
        error_message: str | None


__all__ = ["Declared"]


class Declared(Dialect):
    """A dialect that takes its paths when it is made, as ``Dialect`` takes them when it is subclassed. ``text`` and the
    others are paths; ``stop_reasons`` are the vendor's words and the draft's. Where a path has text, that is read,
    whatever else the payload is. Without a path for text or reasoning nothing of an answer can be read: its first
    message is then a violation (``L-DIALECT``), and the stream is not complete.

    A maker of it is a dialect, as an instance is for one stream: ``Parser(lambda: SignalR(text="item.text"))``.
    """

    stops_end = False
    _NOTHING_ELSE: ClassVar[tuple[str, ...]] = ("error",)

    def __init__(
        self, name: str | None = None, *, stop_reasons: Mapping[str, str] | None = None, **paths: Unpack[Paths]
    ) -> None:
        super().__init__(name)
        self._is_undeclared = False
        self._meanings = {"": "end_turn", **(stop_reasons or {})}
        for member, path in paths.items():
            if member not in PATHS:
                raise TypeError(f"unknown path {member!r}")
            if path is not None:
                setattr(self, member, self._path(str(path)))
        rest = (self.stop_reason, self.error_code, self.error_message, self.input_tokens, self.output_tokens)
        absent = (*self._NOTHING_ELSE, *(path for path in rest if path is not None))
        self.deltas = _forms(self.text, self.reasoning, self.index, absent)  # type: ignore[misc]

    def _path(self, path: str) -> str:
        parse_path(path)
        return path

    def meaning(self, reason: str) -> str:
        return self._meanings.get(reason, reason)

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        for path in (self.text, self.reasoning):
            found = at(payload, path)
            if found is not None and type(found) is not str:
                self.reports.append(rules.BAD_PAYLOAD)
        return super().translate(payload, event)

    def note(self, payload: Any, events: list[Event]) -> None:
        self._is_understood = True  # its payloads are of any form

    def message(self) -> None:
        """A message came that may be a part of the answer."""
        if not (self.text or self.reasoning or self._is_undeclared):
            self._is_undeclared = True
            self.reports.append(rules.NOT_DECLARED)

    def ended(self) -> list[Event]:
        """The end of the stream: its open blocks end with it, unless it failed."""
        events: list[Event] = []
        if self.open_blocks or self.calls.indexes():
            events += self.stop_open("")
        return events


@lru_cache(maxsize=64)
def _forms(text: str | None, reasoning: str | None, index: str | None, absent: tuple[str, ...]) -> tuple[Delta, ...]:
    """The same for every stream of the same paths, so that the engine prepares them once."""
    forms = []
    for kind, path, other in (("text", text, reasoning), ("reasoning", reasoning, text)):
        if path is not None:
            common: dict[str, Any] = {kind: path, "index": index, "absent": absent}
            forms.append(Delta(**common, empty=[] if other is None else [other]))
    return tuple(forms)
