"""Targets that read one document: an envelope, a request, a header, a stream to be judged."""

from __future__ import annotations

import re
from typing import Any

import drafts

from . import whatwg
from .judge import Case

try:
    import orjson
except ImportError:
    orjson = None

KINDS = (None, "content.delta", "usage", "tool.call", "error", "stream.start", "content.stop", "stream.end", "x")
NOT_READ = {"R5.1-3", "L-DEPTH", "L-SIZE"}


def envelope(case: Case) -> Any:
    name = case.pick(*KINDS)
    options: dict[str, Any] = {"max_depth": case.pick(1, 2, 3)} if case.rarely(0.1) else {}
    first: Any = None
    found: list[Any] = []
    for implementation in case.implementations:
        with implementation.active() as package:
            parser = package.Parser(**options)
            events = parser.feed_payload(case.data, name)
            shown = {**drafts.state(parser), "events": [drafts.view(event) for event in events]}
            first = first or shown
            case.same("twin", first, shown, implementation.name)
            found = found or [(event, drafts.rules_of(parser)) for event in events] or [(None, drafts.rules_of(parser))]
            again = package.Parser(**options)
            case.same(
                "split", shown["events"], [drafts.view(e) for e in again.feed_payload(bytearray(case.data), name)]
            )
    if not options:
        event, rules = found[0]
        if case.asks("json"):
            _against_json(case, event, rules)
        if case.asks("orjson") and orjson is not None:
            _against_orjson(case, event, rules)
    return frozenset(found[0][1]), [event[:2] for event in first["events"][:1]] == [], first["complete"]


def _against_json(case: Case, event: Any, rules: list[str]) -> None:
    try:
        value = whatwg.json_value(case.data)
    except RecursionError:
        return
    except ValueError:
        value = None
    if type(value) is not dict:
        case.holds("json", event is None and bool(NOT_READ & set(rules)), f"read what is no JSON object: {rules}")
        return
    case.holds("json", event is not None and not NOT_READ & set(rules), f"did not read a JSON object: {rules}")
    _members(case, "json", event, value)


def _members(case: Case, oracle: str, event: Any, value: dict[str, Any]) -> None:
    """The members of an event are those of the object."""
    if whatwg.is_text(value.get("type")):
        case.same(oracle, value["type"], event.type)
    if event.type == "content.delta":
        delta = value.get("delta")
        text = delta.get("text") if type(delta) is dict else None
        case.same(oracle, text if whatwg.is_text(text) else "", event.text, "text")
    for kind, names in (
        ("tool.call", ("id", "name", "arguments")),
        ("error", ("code", "message")),
        ("stream.start", ("model", "request_id")),
        ("content.stop", ("stop_reason",)),
    ):
        if event.type == kind:
            for name in names:
                member = value.get(name)
                case.same(oracle, member if whatwg.is_text(member) else None, getattr(event, name), name)


def _against_orjson(case: Case, event: Any, rules: list[str]) -> None:
    """orjson reads what we read, but for the differences that the documentation names; and then sees the same."""
    data = case.data.decode("utf-8", "replace").encode()
    try:
        value = orjson.loads(data)
    except ValueError:
        value = None
    if type(value) is dict:
        case.holds("orjson", event is not None, f"orjson reads it: {rules}")
        _members(case, "orjson", event, value)
    elif event is not None:
        half = re.search(rb"\\u[dD][89a-fA-F]", data)
        deep = data.count(b"[") + data.count(b"{") > 1000
        # A number beyond the range of a double is infinite for orjson, or refused.
        large = re.search(rb"[0-9]{300}|[eE][+-]?[0-9]{3}", data)
        case.holds("orjson", bool(half or deep or large), "orjson refuses it")


def request(case: Case) -> Any:
    options = {"max_depth": case.pick(1, 3)} if case.rarely(0.1) else {}
    first: Any = None
    for implementation in case.implementations:
        with implementation.active() as package:
            shown = _requested(package, case.data, options)
            first = first or shown
            case.same("twin", first, shown, implementation.name)
            if shown[0] == "read" and case.asks("round trip"):
                _written_again(case, package, options)
    if case.asks("json") and not options:
        try:
            value = whatwg.json_value(case.data.removeprefix(b"\xef\xbb\xbf"))
        except RecursionError:
            return first[0]
        except ValueError:
            value = None
        is_read = first[0] == "read" or "L-DEPTH" in str(first)
        case.holds("json", is_read == (type(value) is dict), f"{first[0]}, and json has {type(value).__name__}")
    return first[0], frozenset(first[1][:20])


def _requested(package: Any, data: bytes, options: dict[str, Any]) -> tuple[Any, ...]:
    try:
        read = package.Request.from_json(data, **options)
    except package.RequestError as error:
        return "refused", [error.requirement], str(error), error.path
    found = [(v.requirement, v.severity, v.path, v.message) for v in read.validate()]
    strict = [(v.requirement, v.severity, v.path) for v in read.validate(strict=True)]
    return "read", [rule for rule, *_ in found], found, strict, repr(read), read.to_json()


def _written_again(case: Case, package: Any, options: dict[str, Any]) -> None:
    read = package.Request.from_json(case.data, **options)
    text = read.to_json()
    again = package.Request.from_json(text, **options)
    case.same("round trip", text, again.to_json(), "written twice")
    case.holds("round trip", read == again, "another request was written")


def vendor_request(case: Case) -> Any:
    """A vendor's body to a request of the draft, and back: raises what it says, and what it made is valid."""
    vendor = case.pick("openai", "anthropic", "gemini")
    named: dict[str, Any] = {"model": "m", "stream": True} if vendor == "gemini" or case.rarely(0.5) else {}
    first: Any = None
    for implementation in case.implementations:
        with implementation.active() as package:
            try:
                made = package.from_vendor(case.data, vendor, **named)
            except package.RequestError as error:
                shown: Any = ("refused", error.requirement, error.path, str(error))
            else:
                lost = [repr(loss) for loss in made.lost]
                shown = ("read", made.value.to_json(), lost)
                faults = [v.requirement for v in made.value.validate() if v.severity == "error"]
                case.same("conformance", [], faults, vendor)
                if case.asks("round trip"):
                    _to_vendors(case, package, made.value)
            first = first or shown
            case.same("twin", first, shown, implementation.name)
    return vendor, first[0], len(first[2]) // 2


def _to_vendors(case: Case, package: Any, made: Any) -> None:
    for vendor in ("openai", "anthropic", "gemini"):
        try:
            body = package.to_vendor(made, vendor)
        except package.RequestError:
            continue
        try:
            package.from_vendor(body.value, vendor, model="m", stream=True)
        except package.RequestError as error:
            case.holds("round trip", False, f"{vendor} cannot be read again: {error}")


def headers(case: Case) -> Any:
    first: Any = None
    text = case.data.decode("latin-1")
    for implementation in case.implementations:
        with implementation.active():
            negotiation = implementation.module("negotiation")
            kind = negotiation.parse_media_type(text)
            ranges = negotiation.parse_accept(text)
            shown = (repr(kind), repr(ranges), repr(negotiation.parse_media_type(case.data)))
            if kind is not None:
                case.same("round trip", kind, negotiation.parse_media_type(str(kind)))
            if ranges:
                written = negotiation.format_accept(ranges)
                case.same("round trip", written, negotiation.format_accept(negotiation.parse_accept(written)))
            first = first or shown
            case.same("twin", first, shown, implementation.name)
    return first[0][:20], len(first[1]) // 30


def checker(case: Case) -> Any:
    """What the checker finds nothing wrong with, a strict parser reads to its end."""
    first: Any = None
    for implementation in case.implementations:
        with implementation.active() as package:
            reports = [package.check([case.data]), package.check(case.chunks())]
            shown = [(report.ok, [repr(violation) for violation in report.violations]) for report in reports]
            case.same("split", shown[0], shown[1], implementation.name)
            first = first or shown[0]
            case.same("twin", first, shown[0], implementation.name)
            if reports[0].ok and case.asks("conformance"):
                outcome = drafts.outcome(package, [case.data], strict=True)
                raised = outcome["raised"] and outcome["raised"][0]
                case.same("conformance", "UpstreamError" if outcome["error"] != "None" else None, raised)
    return first[0], frozenset(words.partition("requirement=")[2][:12] for words in first[1])
