"""The vectors of ``conformance/``, on both twins and at every split: verdicts, and what a lenient reader hands out."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import drafts
import splits

FOLDER = Path(__file__).resolve().parents[1] / "conformance"
FILES = sorted((FOLDER / "vectors").glob("*.jsonl"))
VECTORS = [json.loads(line) for path in FILES for line in path.read_text(encoding="utf-8").splitlines()]
MEMBERS = {"name", "requirement", "kind", "note", "request", "text", "base64", "lenient", "strict", "read"}


def bytes_of(vector: dict[str, Any]) -> bytes:
    return base64.b64decode(vector["base64"]) if "base64" in vector else vector["text"].encode()


def verdict(report: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"ok": report.ok, "errors": [], "warnings": []}
    for violation in report.violations:
        found[violation.severity + "s"].append(violation.requirement)
    return found


def test_each_vector(llmstream):
    from llmstream.conformance import check

    for vector in VECTORS:
        body = bytes_of(vector)
        for mode in ("lenient", "strict"):
            if vector["kind"] == "request":
                reports = [check(None, request=body, strict=mode == "strict")]
            else:
                options = {"request": vector.get("request"), "strict": mode == "strict"}
                reports = [check(iter(chunks), **options) for chunks in splits.some_ways(body, 3)]
            for report in reports:
                assert verdict(report) == vector[mode], vector["name"]


def test_what_is_read_of_each_vector(llmstream):
    for vector in VECTORS:
        if vector["kind"] == "request":
            continue
        for chunks in splits.some_ways(bytes_of(vector), 3):
            parser, events = drafts.run(llmstream, chunks)
            result = llmstream.parse(chunks)
            read = {
                "events": [event.type for event in events],
                "texts": {str(index): text for index, text in result.texts.items()},
                "complete": parser.complete,
            }
            if parser.gaps:
                read["gaps"] = [list(gap) for gap in parser.gaps]
            assert read == vector["read"], vector["name"]


def test_strict_reading_agrees_with_the_verdict(llmstream):
    """What a strict parser raises for is an error of the strict verdict."""
    for vector in VECTORS:
        if vector["kind"] == "request":
            continue
        raised = drafts.outcome(llmstream, [bytes_of(vector)], strict=True)["raised"]
        if raised is None:
            # What only a checker says: the form of an event, and the response beside its request.
            assert vector["kind"] == "pair" or set(vector["lenient"]["errors"]) <= {"R5.1-1"}, vector["name"]
        elif raised[0] == "UpstreamError":
            assert "error" in vector["read"]["events"]
        else:
            assert raised[1].partition(":")[0] in vector["strict"]["errors"], vector["name"]


def test_the_vectors_are_as_their_readme_says():
    names = [vector["name"] for vector in VECTORS]
    assert len(names) == len(set(names))
    for vector in VECTORS:
        assert set(vector) <= MEMBERS
        assert ("text" in vector) is not ("base64" in vector)
        assert ("request" in vector) is (vector["kind"] == "pair")
        assert ("read" in vector) is (vector["kind"] != "request")
        assert len(bytes_of(vector)) < 4096
        lenient, strict = vector["lenient"], vector["strict"]
        assert strict["warnings"] == []
        assert sorted(strict["errors"]) == sorted(lenient["errors"] + lenient["warnings"])
        assert strict["ok"] is not bool(strict["errors"])
        assert lenient["ok"] is not bool(lenient["errors"])


def test_the_events_of_the_vectors_are_small(llmstream):
    for vector in VECTORS:
        if vector["kind"] != "request":
            parser, _ = drafts.run(llmstream, bytes_of(vector), max_event_size=1024)
            assert "L-SIZE" not in drafts.rules_of(parser)


def test_the_runner_of_the_readme(llmstream, monkeypatch):
    """The Python in README.md runs as it stands."""
    monkeypatch.chdir(FOLDER.parent)
    code = (FOLDER / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    exec(compile(code, "README.md", "exec"), {})


def test_each_stream_without_violation_is_encoded_again(llmstream):
    """A gateway that reads and writes a good stream changes nothing that counts."""
    from llmstream.encoder import Encoder

    for vector in VECTORS:
        if vector["kind"] == "request" or vector["strict"]["errors"]:
            continue
        _, events = drafts.run(llmstream, bytes_of(vector))
        _, again = drafts.run(llmstream, b"".join(Encoder().encode_events(events)))
        assert again == events, vector["name"]


def test_every_event_of_a_good_vector_validates_against_the_schema(llmstream):
    """RA-1."""
    jsonschema: Any = pytest.importorskip("jsonschema")
    schema = json.loads((FOLDER / "event-envelope.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for vector in VECTORS:
        if vector["kind"] != "request" and not vector["strict"]["errors"]:
            for event in drafts.run(llmstream, bytes_of(vector))[1]:
                if not isinstance(event, llmstream.UnknownEvent):
                    validator.validate(event.json())


def test_the_schema_refuses_what_the_envelope_vectors_break(llmstream):
    """RA-1: v, seq and type absent or wrong, as another library sees them."""
    jsonschema: Any = pytest.importorskip("jsonschema")
    schema = json.loads((FOLDER / "event-envelope.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    exact = {
        "envelope/seq-point-zero",
        "envelope/seq-exponent",
        "envelope/seq-minus-zero",
        "envelope/seq-over-2-63",
    }
    for vector in VECTORS:
        if vector["requirement"] in ("R5.2-1", "R5.2-2", "R5.2-4") and vector["kind"] == "stream":
            valid = all(validator.is_valid(event.json()) for event in drafts.run(llmstream, bytes_of(vector))[1])
            assert valid is (not vector["strict"]["errors"] or vector["name"] in exact), vector["name"]


def differs(requirement: str) -> bool:
    """Whether a vector that breaks this requirement is judged otherwise than it says."""
    from llmstream.conformance import check

    for vector in VECTORS:
        if requirement in vector["strict"]["errors"]:
            body = bytes_of(vector)
            if vector["kind"] == "request":
                found = [check(None, request=body, strict=strict) for strict in (False, True)]
            else:
                found = [check(body, request=vector.get("request"), strict=strict) for strict in (False, True)]
            if [verdict(report) for report in found] != [vector["lenient"], vector["strict"]]:
                return True
    return False


def test_a_rule_that_is_taken_out_of_the_engine_is_missed(twins, monkeypatch):
    """Each rule of the draft is what makes some vector's verdict: without it, a vector fails."""
    with twins.python.active():
        from llmstream import _parser_py, rules

        record = _parser_py.Parser._record
        for number in rules.STREAM:
            rule = rules.RULES[number]
            if not rule.requirement.startswith("R"):
                continue

            def without(self: Any, broken: int, *detail: Any, taken: int = number) -> None:
                if broken != taken:
                    record(self, broken, *detail)

            assert not differs(rule.requirement)
            monkeypatch.setattr(_parser_py.Parser, "_record", without)
            assert differs(rule.requirement), rule
            monkeypatch.setattr(_parser_py.Parser, "_record", record)


def test_a_rule_that_is_taken_out_of_the_checker_is_missed(twins, monkeypatch):
    with twins.cython.active():
        from llmstream import rules
        from llmstream.conformance import checker

        note = checker.Checker._note
        for number in rules.CHECKER:

            def without(self: Any, broken: int, offset: int, taken: int = number) -> None:
                if broken != taken:
                    note(self, broken, offset)

            monkeypatch.setattr(checker.Checker, "_note", without)
            assert differs(rules.RULES[number].requirement), rules.RULES[number]
            monkeypatch.setattr(checker.Checker, "_note", note)


def test_a_rule_that_is_taken_out_of_requests_is_missed(twins, monkeypatch):
    """All but the limits, of which no vector comes near, warnings that are ours alone, and what is told of a tool call
    alone."""
    with twins.cython.active():
        from llmstream import rules
        from llmstream.request.findings import Findings

        add = Findings.add
        left = {rules.REQUEST_TOO_LARGE, rules.REQUEST_TOO_DEEP, rules.REQUEST_DUPLICATE_OTHER}
        left |= {rules.REQUEST_REPEATED_TOOL, rules.ARGUMENTS_REFUSED, rules.SCHEMA_UNUSABLE, rules.CALL_NOT_CONFIRMED}
        for number in rules.REQUEST:
            if number in left:
                continue

            def without(self: Any, broken: int, *detail: Any, taken: int = number, **more: Any) -> None:
                if broken != taken:
                    add(self, broken, *detail, **more)

            monkeypatch.setattr(Findings, "add", without)
            assert differs(rules.RULES[number].requirement), rules.RULES[number]
            monkeypatch.setattr(Findings, "add", add)
