"""What was found wrong with a request, and how it is told."""

from __future__ import annotations

from ..errors import RequestError
from ..rules import MAX_VIOLATIONS, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

__all__ = ["Findings", "RequestViolation", "refusal"]


class RequestViolation:
    """One deviation: ``requirement`` of the draft ("R4.3-4") or a rule of ours ("L-..."), ``severity`` ("error" or
    "warning"), ``path`` (``messages[2].content[0].media_type``; empty: the whole) and ``message``.

    Neither has content of the request: a name in the path that the draft does not know is ``*``.
    """

    __slots__ = ("message", "path", "requirement", "severity")
    __match_args__ = ("requirement", "path")

    requirement: str
    severity: str
    path: str
    message: str

    def __init__(self, requirement: str, severity: str, path: str, message: str) -> None:
        set_once = object.__setattr__
        set_once(self, "requirement", requirement)
        set_once(self, "severity", severity)
        set_once(self, "path", path)
        set_once(self, "message", message)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a RequestViolation is immutable: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a RequestViolation is immutable: {name}")

    def _key(self) -> tuple[str, str, str, str]:
        return (self.requirement, self.severity, self.path, self.message)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, RequestViolation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return (RequestViolation, self._key())

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message} ({self.requirement})"

    def __repr__(self) -> str:
        return (
            f"RequestViolation(requirement={self.requirement!r}, severity={self.severity!r}, path={self.path!r}, "
            f"message={self.message!r})"
        )


class Findings:
    """Gathers findings in their order: the first ones, the first error among the rest, and how many there were."""

    __slots__ = ("error_count", "found", "strict", "warning_count")

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.found: list[RequestViolation] = []
        self.error_count = self.warning_count = 0

    def add(self, rule: int, path: str, detail: str = "", times: int = 1) -> None:
        """Records a finding; ``detail`` is more about it, and no content either."""
        broken = RULES[rule]
        severity = broken.strict if self.strict else broken.severity
        is_first_error = severity == "error" and not self.error_count
        if severity == "error":
            self.error_count += times
        else:
            self.warning_count += times
        if len(self.found) < MAX_VIOLATIONS or is_first_error:
            message = f"{broken.message}: {detail}" if detail else broken.message
            self.found.append(RequestViolation(broken.requirement, severity, path, message))


def refusal(found: Sequence[RequestViolation]) -> RequestError | None:
    """The error that tells of the first error among findings, with all of them as its ``violations``."""
    for violation in found:
        if violation.severity == "error":
            error = RequestError(str(violation))
            error.violations = list(found)
            error.path, error.requirement = violation.path, violation.requirement
            return error
    return None
