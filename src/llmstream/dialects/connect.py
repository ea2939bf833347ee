"""Connect's streaming calls, in which Cursor and Windsurf answer: the user says where the text is."""

from __future__ import annotations

from .. import payload as json_text
from ..framing import Frame
from ..framing.connect import ConnectFraming, EndFrame
from . import failures
from .declared import Declared
from .protobuf import field_numbers, read
from .values import members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, ClassVar, Unpack

    from .._backend import Event
    from .declared import Paths
    from .protobuf import Numbers

__all__ = ["Connect"]


class MessagesFraming(ConnectFraming):
    """Messages of protobuf as JSON: the wanted fields by their numbers, ``{"2.1": "text"}``. What is no message is
    handed on as it is, and what is JSON already, where no fields are wanted. Where nothing ``is_declared``, what is no
    JSON is handed on as an empty object."""

    def __init__(self, max_event_size: int, wanted: Iterable[Numbers], *, is_declared: bool = True) -> None:
        super().__init__(max_event_size)
        self.wanted = frozenset(wanted)
        self.is_declared = is_declared

    def _read(self, source: bytes, start: int, stop: int, offset: int) -> Frame:
        frame = super()._read(source, start, stop, offset)
        if isinstance(frame, EndFrame):
            return frame
        if not self.wanted:
            is_json = self.is_declared or frame.data.lstrip(b" \t\r\n")[:1] == b"{"
            return frame if is_json else Frame(None, b"{}", offset)
        try:
            found = read(frame.data, self.wanted)
        except ValueError:
            return frame
        named = {".".join(map(str, path)): value for path, value in found.items()}
        return Frame(None, json_text.dumps(named).encode(), offset)


class Connect(Declared):
    """Messages of one call, with paths of field numbers for protobuf and of names for JSON::

        Connect(text="2.1", stop_reason="3")      # field 1 of the message in field 2
        Connect(text="message.text")

    The stream is complete with its last envelope, as Connect says. Raises ValueError for a path of field numbers that
    leads into the field of another path."""

    name = "connect"
    error_codes: ClassVar = {
        "resource_exhausted": "rate_limited",
        "unavailable": "overloaded",
        "internal": "internal_error",
        "unknown": "internal_error",
        "data_loss": "internal_error",
    }

    def __init__(
        self, name: str | None = None, *, stop_reasons: Mapping[str, str] | None = None, **paths: Unpack[Paths]
    ) -> None:
        self._wanted: set[Numbers] = set()
        super().__init__(name, stop_reasons=stop_reasons, **paths)
        self.framings = dict.fromkeys(range(3), self._framing)  # type: ignore[misc]

    def _framing(self, max_event_size: int) -> MessagesFraming:
        is_declared = bool(self.text or self.reasoning)
        return MessagesFraming(max_event_size, self._wanted, is_declared=is_declared)

    def _path(self, path: str) -> str:
        numbers = field_numbers(path)
        if numbers is None:
            return super()._path(path)
        for other in self._wanted:
            size = min(len(other), len(numbers))
            if other != numbers and other[:size] == numbers[:size]:
                raise ValueError(f"path {path!r}: a field that has text has no fields, and another path says it has")
        self._wanted.add(numbers)
        return f'["{path}"]'

    def translate(self, payload: dict[str, Any], event: str | None) -> list[Event]:
        if event not in ("end", "error"):
            self.message()
            return super().translate(payload, None)
        failure = failures.read(members(payload.get("error"))) if event == "error" else None
        events = self.begin({}, self.fail(failure) + self.ended())
        return events if self._is_undeclared and failure is None else events + self.finish(True)
