"""What a whole stream said: ``StreamResult``, gathered event by event by a ``Collector``."""

from __future__ import annotations

from ._backend import ContentDelta, ContentStop, StreamEnd, StreamError, StreamStart, ToolCall, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from ._backend import Event, Parser, Violation

__all__ = ["Collector", "StreamResult"]


class StreamResult:
    """What a stream said, as ``parse`` returns it.

    ``text``                 the generated text of the primary answer, in order of arrival: of
                             index 0 where the index counts alternative answers, else of all blocks
    ``texts``                the text of each index that had any
    ``reasoning``            what the model thought, of the primary answer; never part of ``text``
    ``tool_calls``           those of the primary answer, in order of arrival (section 5.3.4)
    ``usage``                the last token counts, None where there were none (section 5.3.5)
    ``model``                the model, None where the stream does not say (section 5.3.1)
    ``stop_reasons``         index -> why it stopped, in the draft's words (section 5.3.3)
    ``vendor_stop_reasons``  index -> the vendor's own word for it
    ``error``                the first error that the endpoint reported (section 5.3.6)
    ``complete``             whether the stream ended as its protocol says
    ``gaps``                 first and last number of each run of lost events (section 5.2.1)
    ``violations``           the first 1,000 deviations
    ``violation_count``      how many there were in all
    ``dialect``              the format that was read; with ``auto`` the one that was found

    The sections are those of the draft. Immutable; ``repr`` shows lengths, never generated text
    (section 8.1).
    """

    __slots__ = (
        "complete",
        "dialect",
        "error",
        "gaps",
        "model",
        "reasoning",
        "stop_reasons",
        "text",
        "texts",
        "tool_calls",
        "usage",
        "vendor_stop_reasons",
        "violation_count",
        "violations",
    )
    __match_args__ = ("text", "tool_calls")

    text: str
    texts: dict[int, str]
    reasoning: str
    tool_calls: list[ToolCall]
    usage: Usage | None
    model: str | None
    stop_reasons: dict[int, str]
    vendor_stop_reasons: dict[int, str]
    error: StreamError | None
    complete: bool
    gaps: list[tuple[int, int]]
    violations: list[Violation]
    violation_count: int
    dialect: str

    def __init__(
        self,
        *,
        text: str = "",
        texts: dict[int, str] | None = None,
        reasoning: str = "",
        tool_calls: Iterable[ToolCall] = (),
        usage: Usage | None = None,
        model: str | None = None,
        stop_reasons: dict[int, str] | None = None,
        vendor_stop_reasons: dict[int, str] | None = None,
        error: StreamError | None = None,
        complete: bool = False,
        gaps: Iterable[tuple[int, int]] = (),
        violations: Iterable[Violation] = (),
        violation_count: int | None = None,
        dialect: str = "llm-stream",
    ) -> None:
        kept = list(violations)
        values = {
            "text": text,
            "texts": dict(texts or {}),
            "reasoning": reasoning,
            "tool_calls": list(tool_calls),
            "usage": usage,
            "model": model,
            "stop_reasons": dict(stop_reasons or {}),
            "vendor_stop_reasons": dict(vendor_stop_reasons or {}),
            "error": error,
            "complete": complete,
            "gaps": list(gaps),
            "violations": kept,
            "violation_count": len(kept) if violation_count is None else violation_count,
            "dialect": dialect,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a StreamResult is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a StreamResult is immutable: {name!r} cannot be deleted")

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, StreamResult) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it holds dicts

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self._values(),))

    def __repr__(self) -> str:
        shown = (
            f"text=<{len(self.text)} characters>",
            f"reasoning=<{len(self.reasoning)} characters>",
            f"tool_calls=<{len(self.tool_calls)}>",
            f"usage={self.usage!r}",
            f"model={self.model!r}",
            f"stop_reasons={self.stop_reasons!r}",
            f"error={self.error.code if self.error else None!r}",
            f"complete={self.complete}",
            f"gaps={len(self.gaps)}",
            f"violations={self.violation_count}",
            f"dialect={self.dialect!r}",
        )
        return f"StreamResult({', '.join(shown)})"


def _rebuild(values: dict[str, Any]) -> StreamResult:
    return StreamResult(**values)


class Collector:
    """Gathers events into a result: ``add`` one or ``extend`` by many, then ``result(parser)``.

    It keeps the words, not the chunks that they came in: events that it holds are detached.
    """

    __slots__ = ("_calls", "_error", "_model", "_reasoning", "_stops", "_text", "_usage", "_vendor_stops")

    def __init__(self) -> None:
        self._text = _Strand()
        self._reasoning = _Strand()
        self._calls: list[ToolCall] = []
        self._usage: Usage | None = None
        self._model: str | None = None
        self._stops: dict[int, str] = {}
        self._vendor_stops: dict[int, str] = {}
        self._error: StreamError | None = None

    def add(self, event: Event) -> None:
        """Takes one event in."""
        self.extend((event,))

    def extend(self, events: Iterable[Event]) -> None:
        """Takes events in, in their order."""
        texts, thoughts = self._text, self._reasoning
        add_text = texts.pieces.append
        for event in events:
            if isinstance(event, ContentDelta):
                text = event.text
                if text:
                    if event.index != texts.index:
                        texts.turn(event.index)
                    add_text(text)
                thought = event.reasoning
                if thought:
                    if event.index != thoughts.index:
                        thoughts.turn(event.index)
                    thoughts.pieces.append(thought)
            else:
                self._add_other(event)

    def _add_other(self, event: Event) -> None:
        if isinstance(event, ToolCall):
            event.detach()
            self._calls.append(event)
        elif isinstance(event, Usage):
            event.detach()
            self._usage = event
        elif isinstance(event, ContentStop):
            if event.stop_reason is not None:
                self._stops[event.index] = event.stop_reason
            for name, value in event.extensions.items():
                if name.endswith(":stop_reason") and value is not None:
                    self._vendor_stops[event.index] = str(value)
        elif isinstance(event, StreamStart):
            self._model = self._model or event.model or None
        elif isinstance(event, StreamEnd):
            self._name_model(event)
        elif isinstance(event, StreamError) and self._error is None:
            event.detach()
            self._error = event

    def _name_model(self, event: Event) -> None:
        """A vendor may have named the model after its first words."""
        if self._model is None:
            named = [value for name, value in event.extensions.items() if name.endswith(":model")]
            self._model = next((value for value in named if isinstance(value, str) and value), None)

    def result(self, parser: Parser) -> StreamResult:
        """What was gathered so far, with what the parser knows of the stream as a whole."""
        primary = 0 if parser.alternatives else None
        return StreamResult(
            text=self._text.of(primary),
            texts=self._text.by_index(),
            reasoning=self._reasoning.of(primary),
            tool_calls=[call for call in self._calls if primary is None or call.index == primary],
            usage=self._usage,
            model=self._model,
            stop_reasons=self._stops,
            vendor_stop_reasons=self._vendor_stops,
            error=self._error,
            complete=parser.complete,
            gaps=parser.gaps,
            violations=parser.violations,
            violation_count=parser.violation_count,
            dialect=parser.dialect,
        )


class _Strand:
    """Fragments in order of arrival, and where in them the index changes; ``index`` is that of the last one."""

    __slots__ = ("_turns", "index", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.index = -1
        self._turns: list[tuple[int, int]] = []  # an index, and the number of its first piece

    def turn(self, index: int) -> None:
        """The next pieces are of this index."""
        self.index = index
        self._turns.append((index, len(self.pieces)))

    def of(self, index: int | None) -> str:
        """The text of one index; None: of all, in order of arrival."""
        return "".join(self.pieces) if index is None else self.by_index().get(index, "")

    def by_index(self) -> dict[int, str]:
        found: dict[int, list[str]] = {}
        ends = [start for _, start in self._turns[1:]]
        for (index, start), end in zip(self._turns, [*ends, len(self.pieces)], strict=False):
            found.setdefault(index, []).extend(self.pieces[start:end])
        return {index: "".join(pieces) for index, pieces in found.items()}
