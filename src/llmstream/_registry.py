"""The names of the dialects. The engine looks them up here, and ``dialects`` fills the table, so that no import runs
upwards."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["DIALECTS", "STANDARD", "bare", "names", "resolve"]

STANDARD = "llm-stream"
"""The name of the draft's own format, which the engine reads without a dialect."""

DIALECTS: dict[str, Callable[[], Any]] = {}
"""Name -> what makes a new instance, loading its module first."""


def names() -> list[str]:
    """All names that ``resolve`` knows."""
    return sorted(DIALECTS)


def resolve(dialect: Any) -> Any:
    """A new instance of a dialect, or None for the draft's own format. ``dialect`` is a name, a Dialect class or
    anything that returns an instance, or an instance, which then serves this one stream.

    Raises ValueError for an unknown name and TypeError for what is no dialect.
    """
    if dialect == STANDARD:
        return None
    if isinstance(dialect, str):
        maker = DIALECTS.get(dialect)
        if maker is None:
            raise ValueError(f"unknown dialect {dialect!r}; known are {', '.join(names())}")
        return maker()
    made = dialect() if callable(dialect) else dialect
    if not hasattr(made, "finish"):
        raise TypeError(f"no dialect: {type(made).__name__}")
    return made


def bare(dialect: Any, value: Any) -> list[Any]:
    """The events of a JSON value outside of the framing, as ``Dialect.bare``; for the draft's own format only the
    error."""
    if dialect is not None:
        found: list[Any] = dialect.bare(value)
        return found
    return list(DIALECTS[STANDARD]().bare(value)[-1:])
