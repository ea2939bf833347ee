"""Token counts, each read by itself: the last one of each wins, and nothing is summed (draft, section 5.3.5)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Pair = tuple[int | None, int | None]

__all__ = ["Counts"]


class Counts:
    """The input and the output count of a stream: what was seen, and what was delivered of it."""

    def __init__(self) -> None:
        self._seen: Pair = (None, None)
        self._delivered: Pair = (None, None)

    @property
    def seen(self) -> Pair:
        """The last of each that was seen."""
        return self._seen

    def note(self, input_tokens: int | None, output_tokens: int | None) -> None:
        """Takes note of what a payload brought; None is nothing."""
        before = self._seen
        self._seen = (
            before[0] if input_tokens is None else input_tokens,
            before[1] if output_tokens is None else output_tokens,
        )

    def deliver(self) -> tuple[int, int] | None:
        """Both counts, for a Usage; None as long as one is unknown."""
        input_tokens, output_tokens = self._seen
        if input_tokens is None or output_tokens is None:
            return None
        self._delivered = self._seen
        return input_tokens, output_tokens

    def delivered(self, input_tokens: int, output_tokens: int) -> None:
        """Both counts were seen and delivered elsewhere."""
        self._seen = self._delivered = (input_tokens, output_tokens)

    @property
    def due(self) -> bool:
        """Whether something was seen that was not delivered."""
        return self._seen != self._delivered

    @property
    def partial(self) -> bool:
        """Whether only one of the two was ever seen."""
        return (self._seen[0] is None) != (self._seen[1] is None)

    def fill(self) -> None:
        """Counts the one that was never seen as 0."""
        self._seen = (self._seen[0] or 0, self._seen[1] or 0)
