"""Tool calls that arrive in pieces."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Call", "Calls"]

PIECES = 1000
"""How many pieces of a call are held before they are joined."""

CALL_COST = 1024
"""What an open call costs beside its text, in characters, so that the limit bounds the number of calls as well."""

MAX_NAME = 1024
"""Characters of a name that came in pieces."""


class Call:
    """A tool call under way: its ``id`` and ``name`` ("" where the vendor gave none), the pieces of its arguments, the
    text to take where no piece came and whether that is ``broken``, and extensions for its event. ``kind`` is "" where
    the arguments are JSON, "custom" where they are free text, and the vendor's word for what the vendor runs itself."""

    __slots__ = ("broken", "cost", "default", "extras", "id", "index", "kind", "name", "numbered", "pieces", "runs")

    def __init__(self, index: int, *, numbered: bool) -> None:
        self.index = index
        self.numbered = numbered
        self.id = self.name = self.kind = ""
        self.pieces: list[str] = []
        self.runs: list[str] = []  # pieces that were joined, since a piece costs more than its few characters
        self.default = ""
        self.broken = False
        self.extras: dict[str, Any] = {}
        self.cost = CALL_COST

    @property
    def has_arguments(self) -> bool:
        """Whether anything of the arguments came."""
        return bool(self.pieces or self.runs or self.default)

    @property
    def arguments(self) -> str:
        """The arguments exactly as they came."""
        return "".join(self.runs + self.pieces) or self.default


class Calls:
    """The open calls of a stream, by the index of their choice or block and by their number within it.

    Vendors leave numbers out, send null, or give every call the number 0. So a piece goes to the open call of its
    number; one with another id opens a new call in its place, and so does one with another name and no id once there
    are arguments: before them it is the next piece of the name. One with neither number nor id nor name goes to the
    latest call, if that had no number either.

    At most ``limit`` characters are held; what is over it is dropped and ``too_large`` is set.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.too_large = False
        self._size = 0
        self._open: dict[int, list[Call]] = {}
        self._known: dict[int, dict[int | str, Call]] = {}

    def indexes(self) -> list[int]:
        """The choices or blocks with open calls, in the order of their first."""
        return list(self._open)

    def piece(self, index: int, number: int | None, id: str = "", name: str = "") -> Call | None:
        """The call that a piece belongs to, opened if need be; None where the limit is reached."""
        call = self._find(index, number, id, name)
        if call is None:
            call = Call(index, numbered=number is not None)
            if self._size + call.cost > self.limit:
                self.too_large = True
                return None
            self._size += call.cost
            self._open.setdefault(index, []).append(call)
            self._known.setdefault(index, {})[number or 0] = call
        if id and not call.id and self.charge(call, len(id)):
            call.id = id
            self._known[index][id] = call
        if name and _takes_name(call, name) and self.charge(call, len(name)):
            call.name += name
        return call

    def append(self, call: Call, text: str) -> None:
        """Adds a piece of the arguments."""
        if text and self.charge(call, len(text)):
            call.pieces.append(text)
            if len(call.pieces) == PIECES:
                call.runs.append("".join(call.pieces))
                call.pieces.clear()

    def charge(self, call: Call, size: int) -> bool:
        """Whether there is room for so many more characters of a call, which are then counted."""
        if self._size + size > self.limit:
            self.too_large = True
            return False
        self._size += size
        call.cost += size
        return True

    def takes(self, index: int, id: str) -> bool:
        """Whether the latest open call of a choice or block may be the one with this id."""
        calls = self._open.get(index)
        return calls is not None and (not id or calls[-1].id in ("", id))

    def cut(self, index: int) -> None:
        """The choice or block was cut short: its latest call, if its arguments were still to come, is ``broken``."""
        calls = self._open.get(index)
        if calls and not calls[-1].arguments:
            calls[-1].broken = True

    def take(self, index: int) -> list[Call]:
        """The open calls of a choice or block, in the order of their beginning; they are no longer open."""
        calls = self._open.pop(index, None)
        if calls is None:
            return []
        self._known.pop(index, None)
        self._size -= sum(call.cost for call in calls)
        return calls

    def _find(self, index: int, number: int | None, id: str, name: str) -> Call | None:
        known = self._known.get(index)
        if known is None:
            return None
        if number is None and (id or name):
            return known.get(id) if id else None
        call = known.get(number or 0)
        if not (id or name):
            last = self._open[index][-1]
            # Number 0 may be none: it is what the engine gives where there is none.
            return last if not number and (call is None or not last.numbered) else call
        if call is None or (id and call.id and call.id != id):
            return None
        if not id and call.name not in ("", name) and not _takes_name(call, name):
            return None
        return call


def _takes_name(call: Call, name: str) -> bool:
    """Whether this may be the name of a call or its next piece. A name that is repeated is none."""
    is_next = name != call.name and not call.has_arguments and len(call.name) + len(name) <= MAX_NAME
    return is_next or not call.name
