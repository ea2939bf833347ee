"""Any legal stream is written, read back equal by both twins however it is cut, and nothing is found in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drafts
import producing
import splits

SCHEMA = Path(__file__).resolve().parents[1] / "conformance" / "event-envelope.schema.json"


@given(steps=producing.streams(), seed=st.integers(0, 2**32))
def test_written_and_read_again(twins, steps, seed):
    """R5.1-2, R5.2.1-1, R5.4-1: at any split, with shapes and without, strict and lenient, in both twins."""
    bodies = set()
    for twin in (twins.python, twins.cython):
        with twin.active():
            package = twin.package
            events = producing.events_of(package, steps)
            body = b"".join(producing.written(package, steps))
            bodies.add(body)
            has_error = any(name == "StreamError" for name, _ in steps)
            for chunks in ([body], splits.at_random(body, seed), splits.at_random(body, seed, 40)):
                for options in ({}, {"shapes": False}, {"strict": not has_error}):
                    parser, found = drafts.run(package, chunks, **options)
                    assert found == events
                    assert parser.violations == []
                    assert parser.complete
            again = b"".join(package_encoder().encode_events(found))
            assert again == body
    assert len(bodies) == 1


def package_encoder() -> Any:
    from llmstream.encoder import Encoder

    return Encoder()


@given(steps=producing.streams(), seed=st.integers(0, 2**32))
def test_a_checker_finds_nothing(twins, steps, seed):
    """R5.1-1, R4.8-1: in both modes, at any split."""
    for twin in (twins.python, twins.cython):
        with twin.active():
            from llmstream.conformance import check

            body = b"".join(producing.written(twin.package, steps))
            for chunks in ([body], splits.at_random(body, seed), splits.bytewise(body)):
                report = check(iter(chunks), strict=True)
                assert report.violations == []
                assert report.ok
                assert report.event_count == len(steps)


@given(steps=producing.streams())
def test_every_line_is_whole(twins, steps):
    """R5.1-1, R5.1-3, R5.1-4, R5.1-5: an event line and a data line with one whole object, by any rule of splitting."""
    with twins.python.active():
        for data in producing.written(twins.python.package, steps):
            lines = data.decode().splitlines()
            assert len(lines) == 3
            assert lines[2] == ""
            envelope = json.loads(lines[1].removeprefix("data: "))
            assert lines[0] == "event: " + envelope["type"]
            compact = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
            for character in "\u2028\u2029\x85":
                compact = compact.replace(character, f"\\u{ord(character):04x}")
            assert lines[1] == "data: " + compact


@given(steps=producing.streams())
def test_every_event_validates_against_the_schema(twins, steps):
    """RA-1: the schema of appendix A, by another library. Its list of types is closed, so others are left out (A-7)."""
    jsonschema: Any = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    steps = [step for step in steps if step[0] != "UnknownEvent"]
    with twins.python.active():
        for data in producing.written(twins.python.package, steps):
            validator.validate(json.loads(data.decode().splitlines()[1].removeprefix("data: ")))


def test_the_schema_is_that_of_appendix_a():
    """RA-1."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert schema["required"] == ["v", "seq", "type"]
    assert schema["properties"]["v"] == {"type": "string", "const": "1.0"}
    assert schema["properties"]["seq"] == {"type": "integer", "minimum": 0}
    assert schema["additionalProperties"] is True


def test_the_schema_lists_the_types_of_the_rules(llmstream):
    """RA-1, R5.3-1."""
    from llmstream import rules

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert tuple(schema["properties"]["type"]["enum"]) == rules.EVENT_TYPES[:7]
