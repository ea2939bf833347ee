"""The decoder that a stream of an SDK is given, and the events that it hands to the SDK."""

from __future__ import annotations

import json
import sys

from ..._backend import SSEDecoder
from .names import WRITTEN, WrittenNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import Any

    from ..._backend import ServerSentEvent
    from .objects import Templates

__all__ = ["Decoder", "event_class"]


class Decoder:
    """What an SDK's own ``SSEDecoder`` does, by the rules of WHATWG HTML, section 9.2, and in time linear in the bytes.

    Like the SDK's it sets no limit to the size of an event, and drops a last event without its blank line.
    ``templates`` is called with this decoder as a stream begins, when the SDK has taken the function that makes its
    objects; where it gives None, the payloads are handed on as plain JSON.
    """

    __slots__ = ("_event_class", "_templates")

    def __init__(self, event_class: type, templates: Callable[[Decoder], Templates | None]) -> None:
        self._event_class = event_class
        self._templates = templates

    def iter_bytes(self, iterator: Iterator[bytes]) -> Iterator[Any]:
        """The events of a stream; its chunks may be cut anywhere."""
        decode = SSEDecoder(max_event_size=sys.maxsize).feed
        names = WrittenNames().feed
        make = self._event_class
        templates = self._templates(self)
        for chunk in iterator:
            for event in decode(names(chunk)):
                yield make(event, templates)

    async def aiter_bytes(self, iterator: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """The same for asynchronous chunks."""
        decode = SSEDecoder(max_event_size=sys.maxsize).feed
        names = WrittenNames().feed
        make = self._event_class
        templates = self._templates(self)
        async for chunk in iterator:
            for event in decode(names(chunk)):
                yield make(event, templates)


def event_class(base: type) -> type:
    """The class of the events of an SDK whose own class is ``base``."""

    class Event(base):  # type: ignore[misc]
        """An event as the SDK knows it: ``event`` and ``id`` are None where the stream names none."""

        __slots__ = ("_source", "_templates", "data", "event")

        def __init__(self, source: ServerSentEvent, templates: Templates | None) -> None:
            event = source.event
            self._source = source
            self._templates = templates
            self.event = None if event == "message" else "message" if event == WRITTEN else event
            self.data = source.data

        @property
        def id(self) -> str | None:
            return self._source.id or None

        @property
        def retry(self) -> int | None:
            return self._source.retry

        @property
        def raw(self) -> list[str]:
            """The lines are not kept; the SDK has the same for an event that was not decoded."""
            return []

        def json(self) -> Any:
            event = self.event
            templates = self._templates
            # Only what may be text goes by a template: the events of assistants, and errors, are wrapped and told.
            if templates is None or (event is not None and (event[-5:] != "delta" or event.startswith("thread."))):
                return json.loads(self.data)  # as the SDK does, which takes NaN and nesting as it comes
            return templates.load(self.data)

    Event.__name__ = base.__name__
    Event.__qualname__ = base.__qualname__
    return Event
