"""The exception tree of llmstream.

No error carries a prompt or generated text in its message or its ``repr``: it names the rule, the event and the place.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "EnvelopeError",
    "EventTooLargeError",
    "IncompleteStreamError",
    "LLMStreamError",
    "LifecycleError",
    "RequestError",
    "SSEError",
    "SequenceError",
    "UpstreamError",
]


class LLMStreamError(Exception):
    """Base of every error that llmstream raises for what a stream holds.

    ``seq`` is the sequence number of the event at fault (None if it has none), ``offset`` the position of that event's
    first byte in the stream, and ``events`` what was read before the fault in the same call. ``partial`` is the result
    so far, where one was being built.
    """

    def __init__(
        self,
        message: str = "",
        *,
        seq: int | None = None,
        offset: int | None = None,
        events: Sequence[Any] = (),
    ) -> None:
        super().__init__(message)
        self.seq = seq
        self.offset = offset
        self.events: list[Any] = list(events)
        self.partial: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), self.args, self.__dict__)


class SSEError(LLMStreamError):
    """The bytes break a rule of Server-Sent Events that the caller asked to be kept (WHATWG HTML, section 9.2)."""


class EventTooLargeError(SSEError):
    """One event holds more than ``max_event_size`` bytes."""


class EnvelopeError(LLMStreamError):
    """The data of an event is not the envelope it has to be (draft, sections 5.1 to 5.3)."""


class SequenceError(LLMStreamError):
    """A sequence number is missing, repeated, lower than before or out of range (draft, section 5.2.1)."""


class LifecycleError(LLMStreamError):
    """An event comes where the lifecycle does not allow it (draft, section 5.4)."""


class IncompleteStreamError(LLMStreamError):
    """The stream stopped before its protocol's end."""


class UpstreamError(LLMStreamError):
    """The endpoint reported an error inside the stream.

    ``str(error)`` is the code alone; the endpoint's words are in ``message``, since they may quote the prompt.
    """

    def __init__(
        self,
        code: str = "",
        message: str = "",
        *,
        seq: int | None = None,
        offset: int | None = None,
        events: Sequence[Any] = (),
    ) -> None:
        super().__init__(code, seq=seq, offset=offset, events=events)
        self.code = code
        self.message = message


class RequestError(LLMStreamError):
    """A request envelope breaks a rule of section 4 of the draft; the message names the path, never the content.

    ``path`` and ``requirement`` are those of the first error, ``violations`` all that was found.
    """

    path: str = ""
    requirement: str = ""
    violations: Sequence[Any] = ()
