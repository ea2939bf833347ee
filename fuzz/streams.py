"""Targets that read whole streams."""

from __future__ import annotations

from typing import Any

import drafts

from . import whatwg
from .judge import Case

SMALL = (1, 5, 10, 60, 130, 400)


def decoded(package: Any, chunks: list[bytes], **options: Any) -> tuple[Any, ...]:
    """All that an SSEDecoder shows of a stream."""
    decoder = package.SSEDecoder(**options)
    events, raised = [], None
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
        events += decoder.close()
    except package.SSEError as error:
        events += error.events
        raised = (type(error).__name__, str(error), error.offset)
    seen = [(e.event, e.data, e.id, e.retry, e.complete) for e in events]
    return seen, decoder.last_event_id, decoder.retry, raised


def sse(case: Case) -> Any:
    options: dict[str, Any] = {}
    if case.rarely(0.3):
        options["dataless"] = True
    if case.rarely(0.3):
        options["unfinished"] = True
    if case.rarely(0.2):
        options["errors"] = "strict"
    if case.rarely(0.2):
        options["max_event_size"] = case.pick(*SMALL)
    ways = [case.chunks() for _ in range(2)]
    first = None
    for implementation in case.implementations:
        with implementation.active() as package:
            whole = decoded(package, [case.data], **options)
            first = first or whole
            case.same("twin", first, whole, implementation.name)
            for chunks in ways:
                case.same("split", whole, decoded(package, chunks, **options), implementation.name)
    assert first is not None
    if not options:
        events, last_id, retry, _ = first
        found = ([(event, data, identity) for event, data, identity, _, _ in events], last_id, retry)
        case.same("whatwg", whatwg.events(case.data), found)
    return len(first[0]) // 4, bool(first[1]), first[2] is None, first[3] and first[3][0]


def _options(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if case.rarely(0.15):
        found["max_event_size"] = case.pick(*SMALL)
    if case.rarely(0.1):
        found["max_depth"] = case.pick(1, 2, 3, 5)
    if case.rarely(0.2):
        found["strict"] = True
    if case.rarely(0.05):
        found["errors"] = "strict"
    return found


def read(case: Case, name: str) -> dict[str, Any]:
    """One stream, in every way."""
    options = {"dialect": name, **_options(case)}
    ways = [[case.data], case.chunks(), case.chunks()]
    first: dict[str, Any] | None = None
    for implementation in case.implementations:
        with implementation.active() as package:
            plain = drafts.outcome(package, [case.data], shapes=False, **options)
            first = first or plain
            case.same("twin", first, plain, implementation.name)
            learned = drafts.outcome(package, [case.data], **options)
            case.same("shapes", plain, learned, implementation.name)
            for chunks in ways[1:]:
                case.same("split", learned, drafts.outcome(package, chunks, **options), implementation.name)
            if case.asks("text") and not options.get("strict") and "errors" not in options:
                _only_text(case, package, ways[-1], options)
    assert first is not None
    case.holds("clean", options.get("strict") or "errors" in options or first["raised"] is None, "lenient, and raised")
    return first


def _only_text(case: Case, package: Any, chunks: list[bytes], options: dict[str, Any]) -> None:
    found = drafts.text_outcome(package, chunks, **options)
    parser = package.Parser(**options)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    primary = [e.text for e in events if type(e) is package.ContentDelta and not (parser.alternatives and e.index)]
    case.same("text", "".join(primary), found["text"])


def _behaviour(found: dict[str, Any]) -> Any:
    rules = frozenset(words.partition("requirement=")[2][:12] for words in found["violations"])
    kinds = frozenset(event[:2] for event in found["events"])
    return rules, kinds, found["complete"], len(found["events"]) // 8, found["raised"] and found["raised"][0]


def draft(case: Case) -> Any:
    found = read(case, "llm-stream")
    if case.asks("naive"):
        naive = whatwg.text_of_draft(case.data)
        if naive is not None:
            with case.python.active() as package:
                parser = package.Parser()
                events = parser.feed(case.data) + parser.close()
                shown = "".join(e.text for e in events if type(e) is package.ContentDelta)
            case.same("naive", naive, shown)
    return _behaviour(found)


def dialect(name: str) -> Any:
    def target(case: Case) -> Any:
        return _behaviour(read(case, name))

    return target


def observer(case: Case) -> Any:
    """A tap: what passes is the same object, and what it saw does not depend on how it came."""
    name = case.pick("auto", "llm-stream", "openai", "anthropic", "gemini")
    ways = [[case.data], case.chunks()]
    first: Any = None
    for implementation in case.implementations:
        with implementation.active() as package:
            for number, chunks in enumerate(ways):
                seen = package.Observer(name, max_content_size=100_000, digests=True, clock=lambda: 0.0)
                for chunk in chunks:
                    passed = seen.feed(chunk)
                    case.holds("clean", passed is chunk, "another object passed")
                shown = _observed(seen.close())
                first = first or shown
                case.same("split" if number else "twin", first, shown, implementation.name)
    return first["dialect"], first["complete"], first["violation_count"] == "0", first["error_code"]


def _observed(observation: Any) -> dict[str, Any]:
    timed = ("chunk_count", "chunk_intervals", "output_intervals", "time_to_first_chunk")
    names = [name for name in type(observation).__dataclass_fields__ if name not in timed]
    return {name: repr(getattr(observation, name)) for name in names}
