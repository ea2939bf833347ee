"""Which block of the standard stream takes the content of a vendor's choice or block."""

from __future__ import annotations

from itertools import count

from ..rules import MAX_INTEGER

__all__ = ["Block", "Blocks"]


class Block:
    """One block that is written: its ``index``, the ``source`` index that the vendor has for it, whether nothing is
    written yet, whether it has a tool call, whether it was stopped, and why: "" where that is not known. ``given`` is
    why as the vendor said it."""

    __slots__ = ("given", "has_call", "index", "is_new", "is_stopped", "reason", "source")

    def __init__(self, index: int, source: int, reason: str) -> None:
        self.index = index
        self.source = source
        self.reason = reason
        self.given = ""
        self.has_call = self.is_stopped = False
        self.is_new = True


class Blocks:
    """The blocks by the vendor's index. What comes for one that was stopped, which section 5.4 forbids, goes on in a
    new one."""

    __slots__ = ("_current", "_highest", "_open", "_taken")

    def __init__(self) -> None:
        self._current: dict[int, Block] = {}
        self._taken: set[int] = set()
        self._highest = -1
        self._open = 0

    @property
    def is_any_open(self) -> bool:
        """Whether a block has begun that wants a content.stop."""
        return self._open > 0

    def is_stopped(self, source: int) -> bool:
        """Whether what the vendor sent for this index so far was stopped."""
        found = self._current.get(source)
        return found is not None and found.is_stopped

    def given(self, source: int) -> str:
        """Why the vendor said that what it sent for this index so far was stopped; "" where it did not say."""
        found = self._current.get(source)
        return "" if found is None else found.given

    def open(self, source: int) -> Block:
        """The block that takes the next content of a vendor's index."""
        found = self._current.get(source)
        if found is not None and not found.is_stopped:
            return found
        index = self._free() if source in self._taken else source
        self._open += 1
        self._taken.add(index)
        self._highest = max(self._highest, index)
        made = self._current[source] = Block(index, source, "" if found is None else found.reason)
        return made

    def stop(self, block: Block, reason: str = "") -> str:
        """Stops a block; returns why: as given, else as what it continues, else as a turn that ended well (draft,
        sections 4.8 and 5.3.3)."""
        self._open -= 1
        block.is_stopped = True
        block.given = reason
        block.reason = reason or block.reason or ("tool_use" if block.has_call else "end_turn")
        return block.reason

    def not_stopped(self) -> list[Block]:
        """Those that want a content.stop."""
        return [block for block in self._current.values() if not block.is_stopped]

    def _free(self) -> int:
        if self._highest < MAX_INTEGER:
            return self._highest + 1
        return next(index for index in count() if index not in self._taken)
