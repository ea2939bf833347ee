"""What the events of a response say beside each other and beside the request that they answer."""

from __future__ import annotations

from .. import rules
from .._backend import ContentStop, StreamEnd, StreamStart, ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._backend import Event
    from ..request import Request

__all__ = ["Pairing"]

LATEST_SECONDS = 10**11
"""The year 5138. What is larger was counted in milliseconds, of which there were so many in 1973."""


class Pairing:
    """Sees the events of one response in their order."""

    __slots__ = ("_called", "_is_echoed", "_request_id", "_tools")

    def __init__(self, request: Request | None) -> None:
        self._tools = None if request is None else {tool.name for tool in request.tools}
        self._request_id = None if request is None else request.request_id
        self._is_echoed = False
        self._called: set[int] = set()  # blocks with a tool.call, no more than a parser follows

    def faults(self, event: Event) -> Iterator[int]:
        """The rules that an event breaks."""
        if isinstance(event, StreamStart):
            if event.created is not None and event.created >= LATEST_SECONDS:
                yield rules.MILLISECONDS
            yield from self._echo(event.request_id)
            self._is_echoed = event.request_id is not None
        elif isinstance(event, ToolCall):
            if len(self._called) < rules.MAX_BLOCKS:
                self._called.add(event.index)
            if self._tools is not None and event.name is not None and event.name not in self._tools:
                yield rules.UNDECLARED_TOOL
        elif isinstance(event, ContentStop):
            if event.index in self._called and event.stop_reason not in (None, "tool_use"):
                yield rules.STOP_AFTER_CALL
        elif isinstance(event, StreamEnd) and (event.request_id is None or not self._is_echoed):
            # One that differs from that of stream.start is a violation of its own.
            yield from self._echo(event.request_id)

    def _echo(self, request_id: str | None) -> Iterator[int]:
        if self._request_id is None or request_id == self._request_id:
            return
        yield rules.NOT_ECHOED if request_id is None else rules.ECHO_DIFFERS
