"""What of a response was told already, where later payloads repeat it."""

from __future__ import annotations

from ..rules import MAX_BLOCKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    Part = tuple[str, int]
    """A list in an item, and the place in it."""

__all__ = ["Heard"]

MAX_ID = 256
"""Characters of the id of a call that are kept."""


class Heard:
    """Items by their number: ``kinds`` are those that were announced, ``ended`` those that came whole, ``pieces`` those
    of which fragments came. Each of them is bounded; ``is_full`` says that there was more."""

    def __init__(self) -> None:
        self.kinds: dict[int, str] = {}
        self.ended: set[int] = set()
        self.pieces: set[int] = set()
        self.calls = 0
        self.is_full = False
        self._parts: dict[int, set[Part]] = {}
        self._parts_count = 0
        self._ids: set[str] = set()

    @property
    def spoken(self) -> set[int]:
        """The items of which anything came, in fragments or whole."""
        return self.pieces | self._parts.keys()

    def piece(self, index: int) -> None:
        """A fragment of an item came, and so the rest comes in fragments."""
        if self._has_room(len(self.pieces)):
            self.pieces.add(index)

    def is_new(self, index: int, part: Part) -> bool:
        """Whether a part that came whole had not come before; from then on it has."""
        known = self._parts.get(index, ())
        if index in self.pieces or part in known or not self._has_room(self._parts_count):
            return False
        self._parts.setdefault(index, set()).add(part)
        self._parts_count += 1
        return True

    def item(self, index: int, kind: str) -> None:
        """An item was announced."""
        if self._has_room(len(self.kinds)):
            self.kinds[index] = kind[:MAX_ID]

    def end(self, index: int) -> None:
        """An item came whole."""
        if self._has_room(len(self.ended)):
            self.ended.add(index)

    def call(self, id: str) -> None:
        """A call was told."""
        self.calls += 1
        if self._has_room(len(self._ids)):
            self._ids.add(_key(id))

    def knows(self, id: str) -> bool:
        """Whether the call of this id was told."""
        return bool(id) and _key(id) in self._ids

    def _has_room(self, used: int) -> bool:
        self.is_full = self.is_full or used >= MAX_BLOCKS
        return used < MAX_BLOCKS


def _key(id: str) -> str:
    return id if len(id) <= MAX_ID else str(hash(id))
