"""Targets that write: what they wrote is read again and judged."""

from __future__ import annotations

import json
from typing import Any

import drafts

from . import whatwg
from .judge import Case

DIALECTS = ("auto", "llm-stream", "openai", "anthropic", "gemini", "openai-responses", "cohere", "ollama", "bedrock")


def _clock() -> float:
    return 1700000000.0


def encoder(case: Case) -> Any:
    """A producer that is called anyhow: each line of the input is one call. What it does not refuse can be read."""
    lines = case.data.decode("utf-8", "replace").split("\n")[:60]
    drawn = [(line, case.source.randint(0, 11), case.pick(0, 0, 0, 1, 2, 2**53)) for line in lines]
    first: Any = None
    for implementation in case.implementations:
        with implementation.active() as package:
            shown = _encoded(case, package, drawn)
            first = first or shown
            case.same("twin", first, shown, implementation.name)
    return len(first[0]) // 200, len(first[1]) // 3, first[2]


def _encoded(case: Case, package: Any, drawn: list[tuple[str, int, int]]) -> tuple[Any, ...]:
    made = package.Encoder(clock=_clock)
    out = [made.start("m")]
    refused, expected = [], []
    for text, kind, index in drawn:
        extensions = {"fuzz:x": text} if len(text) % 7 == 3 else None
        try:
            if kind < 7:
                out.append(made.delta(text, index, extensions=extensions))
                expected.append(text)
            elif kind == 7:
                out.append(made.stop(text, index))
            elif kind == 8:
                out.append(made.tool_call(text or "c", "f", json.dumps(text), index))
            elif kind == 9:
                out.append(made.usage(len(text), index))
            elif kind == 10:
                out.append(made.comment(text))
            else:
                out.append(made.keep_alive())
        except (ValueError, TypeError, package.LLMStreamError) as error:
            refused.append(type(error).__name__)
    out += [made.stop("end_turn", index) for index in made.open_blocks]
    out += [made.usage(1, 1), made.end()]
    stream = b"".join(out)
    if case.asks("round trip"):
        parser, events = drafts.run(package, stream)
        texts = [event.text for event in events if type(event) is package.ContentDelta]
        case.same("round trip", expected, texts)
        case.holds("round trip", parser.complete, "not complete")
        case.same("naive", "".join(expected), whatwg.text_of_draft(stream))
    if case.asks("conformance"):
        errors = [v.requirement for v in package.check([stream]).violations if v.severity == "error"]
        case.same("conformance", [], errors)
    return stream, refused, made.state


def transcoder(case: Case) -> Any:
    name = case.pick(*DIALECTS)
    ways = [[case.data], case.chunks()]
    first: Any = None
    for implementation in case.implementations:
        with implementation.active() as package:
            for number, chunks in enumerate(ways):
                made = package.Transcoder(name, clock=_clock)
                out = b"".join([*map(made.feed, chunks), made.close()])
                shown = (out, made.complete, made.left_out, made.violation_count)
                first = first or shown
                case.same("split" if number else "twin", first, shown, implementation.name)
            if case.asks("conformance"):
                errors = [v.requirement for v in package.check([first[0]]).violations if v.severity == "error"]
                case.same("conformance", [], errors, name)
            if case.asks("round trip") and not first[2]:
                source = package.parse(case.data, dialect=name)
                result = package.parse(first[0])
                if first[1]:
                    case.same("round trip", _texts(source), _texts(result), name)
                    calls = [(call.name, call.arguments) for call in source.tool_calls]
                    case.same("round trip", calls, [(call.name, call.arguments) for call in result.tool_calls], name)
    return name, first[1], len(first[0]) // 500, first[3] > 0


def _texts(result: Any) -> dict[int, str]:
    return {index: text for index, text in result.texts.items() if text}


def _refusals(package: Any, data: bytes, name: str) -> list[str]:
    """What a model has refused with, in pieces: text for vendors that have no place of its own for it."""
    parser = package.Parser(name)
    events = [*parser.feed(data), *parser.close()]
    given = [item for event in events if type(event) is package.ContentDelta for item in event.extensions.items()]
    return [value for key, value in given if key.endswith(":refusal") and isinstance(value, str)]


def translator(case: Case) -> Any:
    vendor = case.pick("openai", "anthropic", "gemini")
    name = case.pick("llm-stream", *DIALECTS)
    ways = [[case.data], case.chunks()]
    first: Any = None
    for implementation in case.implementations:
        with implementation.active() as package:
            for number, chunks in enumerate(ways):
                made = package.StreamTranslator(vendor, name, clock=_clock, model="m", response_id="r")
                out = b"".join([*map(made.feed, chunks), made.close()])
                shown = (out, made.complete, made.ended)
                first = first or shown
                case.same("split" if number else "twin", first, shown, implementation.name)
            if case.asks("round trip"):
                result = package.parse(first[0], dialect=vendor)
                case.same("round trip", first[1], result.complete, f"{name} to {vendor}, complete")
                if first[1]:
                    refusals = _refusals(package, case.data, name)
                    if not refusals:
                        source = package.parse(case.data, dialect=name)
                        case.same("round trip", source.text, result.text, f"{name} to {vendor}, text")
                    elif vendor != "openai":
                        said = result.texts.values()
                        found = all(any(refusal in text for text in said) for refusal in refusals)
                        case.holds("round trip", found, f"{name} to {vendor}, a refusal is lost")
    return vendor, name, first[1], len(first[0]) // 500
