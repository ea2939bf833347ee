"""What is in a stream, and what a reader found: the one form in which all readers are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

__all__ = ["Expected", "Found"]


@dataclass
class Found:
    """``seqs`` are those of the text events, where the format numbers its events."""

    text: str = ""
    reasoning: str = ""
    arguments: str = ""
    seqs: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Expected:
    """What has to be found. None: not known, or not looked at."""

    text: str
    reasoning: str | None = None
    arguments: str | None = None
    seqs: list[int] | None = None
    hashed: bool = False
    """``text`` and ``reasoning`` are hexadecimal SHA-256 sums of what they stand for."""

    def differs(self, found: Found, *, only_text: bool = False) -> str | None:
        """What is not as expected, or None."""
        for name in ("text",) if only_text else ("text", "reasoning", "arguments", "seqs"):
            want, have = getattr(self, name), getattr(found, name)
            if self.hashed and name in ("text", "reasoning"):
                have = sha256(have.encode("utf-8", "surrogatepass")).hexdigest()
            if want is not None and want != have:
                return f"{name} is not what was written ({len(have)} found, {len(want)} expected)"
        return None
