"""What a checker found: as objects, as text, as JSON."""

from __future__ import annotations

from bisect import bisect_right

from .._backend import Violation
from ..rules import MAX_INTEGER, MAX_VIOLATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from ..request import RequestViolation
    from ..request.findings import Findings

__all__ = ["Report", "report"]


class Report:
    """The verdict on a stream, a request, or both.

    ``violations``     the first 1,000 of the request, and its first error (a RequestViolation has a ``path``), then of
                       the stream (a Violation has an ``event`` and an ``offset``), in their order; both have
                       ``requirement``, ``severity`` and ``message``, and none holds text of stream or request
    ``ok``             whether there is no error
    ``error_count``    how many errors there were in all, also beyond those; in strict mode every violation is one
    ``warning_count``  how many warnings, in the same way
    ``event_count``    how many events were checked

    Immutable. ``to_text()`` has one line for each violation and one for the verdict, ``to_json()`` is one JSON object.
    """

    __slots__ = ("error_count", "event_count", "violations", "warning_count")

    violations: list[Violation | RequestViolation]
    error_count: int
    warning_count: int
    event_count: int

    def __init__(
        self,
        violations: Sequence[Violation | RequestViolation] = (),
        *,
        error_count: int = 0,
        warning_count: int = 0,
        event_count: int = 0,
    ) -> None:
        object.__setattr__(self, "violations", list(violations))
        object.__setattr__(self, "error_count", error_count)
        object.__setattr__(self, "warning_count", warning_count)
        object.__setattr__(self, "event_count", event_count)

    @property
    def ok(self) -> bool:
        return not self.error_count

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Report is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Report is immutable: {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Report):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # it holds a list

    def __repr__(self) -> str:
        return f"Report(ok={self.ok}, {self._verdict()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, tuple(getattr(self, name) for name in self.__slots__))

    def to_text(self) -> str:
        """One line for each violation, and one for the verdict."""
        lines = [f"{_place(found)}: {found.severity} {found.requirement}: {found.message}" for found in self.violations]
        left = self.error_count + self.warning_count - len(lines)
        if left > 0:
            lines.append(f"and {left} more")
        lines.append(f"{'conforms' if self.ok else 'does not conform'}: {self._verdict()}")
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """One JSON object: ``ok``, ``errors``, ``warnings``, ``events`` and ``violations``."""
        from .. import payload

        return payload.dumps(
            {
                "ok": self.ok,
                "errors": self.error_count,
                "warnings": self.warning_count,
                "events": self.event_count,
                "violations": [_members(found) for found in self.violations],
            }
        )

    def moved(self, places: list[tuple[int, int]]) -> Report:
        """The same with other offsets: ``places`` has, in order, an offset here and the one that stands for what
        begins there."""
        found: list[Violation | RequestViolation] = []
        for violation in self.violations:
            if isinstance(violation, Violation):
                offset = places[bisect_right(places, (violation.offset, MAX_INTEGER)) - 1][1]
                violation = _with(violation, violation.severity, offset)
            found.append(violation)
        return Report(
            found,
            error_count=self.error_count,
            warning_count=self.warning_count,
            event_count=self.event_count,
        )

    def _verdict(self) -> str:
        counts = [(self.event_count, "event"), (self.error_count, "error"), (self.warning_count, "warning")]
        return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)


def _rebuild(errors: int, events: int, violations: list[Any], warnings: int) -> Report:
    return Report(violations, error_count=errors, warning_count=warnings, event_count=events)


def report(
    of_request: Findings | None,
    of_stream: list[Violation],
    errors: int,
    warnings: int,
    events: int,
    strict: bool,
) -> Report:
    """A report of what was found; ``errors`` and ``warnings`` are those of the stream in all."""
    of_both: list[Violation | RequestViolation] = list(of_stream[:MAX_VIOLATIONS])
    if of_request is not None:
        of_both[:0] = of_request.found
        errors += of_request.error_count
        warnings += of_request.warning_count
    if strict:
        errors, warnings = errors + warnings, 0
        of_both = [_with(violation, "error") for violation in of_both]
    return Report(of_both, error_count=errors, warning_count=warnings, event_count=events)


def _with(found: Violation | RequestViolation, severity: str, offset: int | None = None) -> Any:
    if isinstance(found, Violation):
        place = found.offset if offset is None else offset
        return Violation(found.requirement, severity, found.event, place, found.message)
    return type(found)(found.requirement, severity, found.path, found.message)


def _place(found: Violation | RequestViolation) -> str:
    if isinstance(found, Violation):
        return f"event {found.event}, offset {found.offset}"
    return f"request, member `{found.path}`" if found.path else "request"


def _members(found: Violation | RequestViolation) -> dict[str, Any]:
    members: dict[str, Any] = {"requirement": found.requirement, "severity": found.severity}
    if isinstance(found, Violation):
        members.update({"event": found.event, "offset": found.offset})
    else:
        members["path"] = found.path
    return {**members, "message": found.message}
