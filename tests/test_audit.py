"""llmstream.audit: what a record holds, what it never holds, and that there is one whatever happens."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import handed
import splits
import vendors
from streams import CUT, FAILED, GAP

SECRET = "What the patient said"


def audit(body: Any, *arguments: Any, **options: Any) -> Any:
    return import_module("llmstream.audit").audit(body, *arguments, **options)


def digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def event(kind: str, seq: int, **members: Any) -> bytes:
    return vendors.sse({"v": "1.0", "seq": seq, "type": kind, **members}, kind)


def answer(text: str = SECRET, arguments: str = '{"a":1}', message: str = SECRET) -> bytes:
    """A stream with everything that may quote somebody."""
    return b"".join(
        (
            event("stream.start", 0, model="m", created=1700000000, request_id="r"),
            event("content.delta", 1, index=0, role="assistant", delta={"text": text}),
            event("tool.call", 2, id="c", name="f", arguments=arguments, index=0),
            event("usage", 3, input_tokens=3, output_tokens=4),
            event("usage", 4, input_tokens=3, output_tokens=5),
            event("error", 5, code="overloaded", message=message),
            event("vendor.note", 6),
            event("stream.end", 7, request_id="r"),
        )
    )


def test_what_stands_in_it(llmstream):
    body = answer()
    record = audit(body, "one", user_id="u", started_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert record.to_dict() == {
        "stream_id": "one",
        "request_id": "r",
        "provider": None,
        "endpoint": None,
        "user_id": "u",
        "session_id": None,
        "started_at": "2026-01-02T00:00:00.000000+00:00",
        "first_token_at": None,
        "ended_at": None,
        "dialect": "llm-stream",
        "model": "m",
        "created": 1700000000,
        "complete": True,
        "text": SECRET,
        "text_length": len(SECRET),
        "text_sha256": digest(SECRET).hex(),
        "tool_calls": [
            {
                "index": 0,
                "id": "c",
                "name": "f",
                "arguments": '{"a":1}',
                "arguments_sha256": digest('{"a":1}').hex(),
            }
        ],
        "tool_call_count": 1,
        "stops": [],
        "input_tokens": 3,
        "output_tokens": 5,
        "usage_count": 2,
        "error_code": "overloaded",
        "vendor_error_code": None,
        "error_message": SECRET,
        "event_count": 8,
        "unknown_event_count": 1,
        "first_seq": 0,
        "last_seq": 7,
        "gaps": [],
        "violations": [],
        "violation_count": 0,
        "fault_count": 0,
        "byte_count": len(body),
        "wire_sha256": sha256(body).hexdigest(),
        "parser_version": llmstream.__version__,
        "fault": None,
    }


def test_a_gap_a_cut_and_an_error_are_told(llmstream):
    gap = audit(GAP)
    (found,) = gap.violations
    assert (gap.gaps, gap.violation_count, gap.complete) == (((2, 2),), 1, True)
    assert (found.severity, found.event, GAP[found.offset :].startswith(b"event: content.delta")) == ("error", 2, True)
    cut, failed = audit(CUT), audit(FAILED)
    assert (cut.complete, cut.fault) == (False, None)
    assert failed.error_code
    assert not audit(b"").complete


@pytest.mark.parametrize(
    ("body", "dialect", "model"),
    [
        (vendors.openai(["Hel", "lo"], arguments=['{"a"', ":1}"]), "openai", "gpt-x"),
        (vendors.anthropic(["Hel", "lo"], arguments=['{"a"', ":1}"]), "anthropic", "claude-x"),
    ],
)
def test_vendors(llmstream, body, dialect, model):
    record = audit(b"".join(body))
    assert (record.dialect, record.model, record.text, record.complete) == (dialect, model, "Hello", True)
    assert [json.loads(call.arguments) for call in record.tool_calls] == [{"a": 1}]
    assert [(stop.reason, stop.vendor_reason is not None) for stop in record.stops][-1:] == [("tool_use", True)]
    events = llmstream.parse(b"".join(body), dialect="auto")
    assert (record.input_tokens, record.output_tokens) == (events.usage.input_tokens, events.usage.output_tokens)
    parser = llmstream.Parser("auto")
    events = [*parser.feed(b"".join(body)), *parser.close()]
    assert record.event_count == len(events)
    assert record.usage_count == sum(isinstance(event, llmstream.Usage) for event in events)


def test_the_recorded_streams(llmstream):
    rows = handed.rows("captures")
    for row in rows:
        record = audit((handed.SHARED / "captures" / row["file"]).read_bytes(), row["file"])
        assert record.text_sha256.hex() == row["text_sha256"], row["file"]
        assert sha256(record.text.encode()).digest() == record.text_sha256
        assert record.tool_call_count >= len(row["tool_calls"]), row["file"]
        assert record.fault is None
        assert record.model == row.get("model") or row.get("model") is None, row["file"]


@pytest.mark.parametrize("body", [answer(), GAP, FAILED, b"".join(vendors.openai(["a", "\u2028"]))])
def test_chunks_make_no_difference(llmstream, body):
    whole = audit(body)
    for chunks in splits.every_way(body):
        assert audit(chunks) == whole


# --------------------------------------------------------------------------------------------------
# Content


def test_only_digests(llmstream):
    kept, record = audit(answer()), audit(answer(), content=False)
    assert (record.text, record.error_message, record.tool_calls[0].arguments) == (None, None, None)
    assert SECRET.encode() not in record.to_json()
    assert record.text_sha256 == digest(SECRET)
    assert record == kept.without_content()


def test_repr_shows_no_content(llmstream):
    record = audit(answer(arguments=json.dumps({"a": SECRET})))
    assert SECRET in record.text
    assert SECRET not in repr(record)


def test_content_has_a_bound(llmstream):
    record = audit(answer("x" * 50, arguments='{"a":1}'), max_content_size=20)
    assert (record.text, record.text_length) == ("x" * 20, 50)
    assert record.text_sha256 == digest("x" * 50)
    assert (record.tool_calls[0].arguments, record.error_message) == (None, "")


@pytest.mark.parametrize("size", [49, 50, 51])
def test_content_at_its_bound(llmstream, size):
    record = audit(answer("x" * size, arguments="{}", message=""), max_content_size=50)
    assert (record.text, record.text_length) == ("x" * min(size, 50), size)


@pytest.mark.parametrize("count", [999, 1000, 1001])
def test_tool_calls_have_a_bound(llmstream, count):
    start = event("stream.start", 0, model="m", created=1)
    calls = [event("tool.call", seq, id=str(seq), name="f", arguments="{}", index=0) for seq in range(1, count + 1)]
    record = audit([start, *calls])
    assert (len(record.tool_calls), record.tool_call_count) == (min(count, 1000), count)


@pytest.mark.parametrize("count", [99, 100, 101])
def test_deviations_have_a_bound(llmstream, count):
    record = audit(b"data: {\n\n" * count, dialect="llm-stream")
    found = llmstream.parse(b"data: {\n\n" * count)
    assert len(record.violations) == min(found.violation_count, 100)
    assert record.violation_count == found.violation_count >= count


def test_without_the_digest_of_the_bytes(llmstream):
    record = audit(answer(), wire_digest=False)
    assert record.wire_sha256 is None
    assert record_class().from_dict(record.to_dict()) == record


def record_class() -> Any:
    return import_module("llmstream.audit").AuditRecord


def test_redaction(llmstream):
    from dataclasses import replace

    def redact(record: Any) -> Any:
        return replace(record, text=record.text.replace("patient", "[...]"))

    record = audit(answer(), redact=redact)
    assert record.text == "What the [...] said"
    assert record.text_sha256 == digest(SECRET)


def no_record(record: Any) -> Any:
    return None


def raising(record: Any) -> Any:
    raise ValueError(record.text)


def bad_text(record: Any) -> Any:
    from dataclasses import replace

    return replace(record, text="\ud800")


@pytest.mark.parametrize("redact", [no_record, raising, bad_text, len])
def test_redaction_that_fails_lets_nothing_out(llmstream, redact):
    record = audit(answer(), redact=redact)
    assert record.fault.startswith("redaction failed: ")
    assert SECRET.encode() not in record.to_json()


def test_redaction_to_other_types_lets_nothing_out(llmstream):
    """Of each field: JSON would spell some of them, which no column and no reader of records takes."""
    from dataclasses import fields, replace

    package: Any = import_module("llmstream.audit")
    others: list[Any] = [5, 2**63, -(2**63) - 1, True, 1.5, "words", b"bytes", [], {}, (1,), ((1,),), ((1, 2, 3),)]
    others += [
        datetime(2026, 1, 1, tzinfo=UTC).date(),
        (package.Stop(0, "end", 5),),
        (package.Stop(0, "end", None),),
        object(),
    ]
    fitting: dict[str, Any] = {
        "bytes | None": [b"bytes"],
        "bytes": [b"bytes"],
        "str | None": ["words"],
        "str": ["words"],
        "int | None": [5],
        "int": [5],
        "bool": [True],
        "tuple[Stop, ...]": [(package.Stop(0, "end", None),)],
    }
    whole = audit(answer())
    for field in fields(whole):
        for value in others:
            record = audit(answer(), redact=lambda made, to=(field.name, value): replace(made, **{to[0]: to[1]}))
            fits = any(type(value) is type(other) and value == other for other in fitting.get(str(field.type), []))
            if fits:
                assert getattr(record, field.name) == value
            else:
                assert record.fault is not None, (field.name, value)
                assert record.fault.startswith("redaction failed: "), (field.name, value)
                assert SECRET.encode() not in record.to_json()


# --------------------------------------------------------------------------------------------------
# There is a record in any case


def test_a_body_that_fails(llmstream):
    def body() -> Any:
        yield answer()[:200]
        raise OSError(5, "Input/output error", SECRET)

    record = audit(body())
    assert record.fault == "not read to its end: Input/output error"
    assert (record.complete, record.byte_count) == (False, 200)


def test_a_body_that_fails_in_other_ways(llmstream):
    def body() -> Any:
        yield answer()
        raise RuntimeError(SECRET)

    assert audit(body()).fault == "not read to its end: RuntimeError"
    assert audit(iter([answer(), "no bytes"])).fault == "not read to its end: TypeError"


class Faulty:
    """A parser with a fault of ours."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser

    def __getattr__(self, name: str) -> Any:
        if name.startswith("feed"):
            raise RuntimeError(SECRET)
        return getattr(self._parser, name)


def test_a_parser_that_fails(llmstream):
    auditor = import_module("llmstream.audit").Auditor("s")
    auditor.parser = Faulty(auditor.parser)
    for chunk in (answer()[:50], answer()[50:]):
        assert auditor.feed(chunk) is chunk
    record = auditor.close()
    assert record.fault == "reading failed: RuntimeError"
    assert (record.complete, record.byte_count, record.wire_sha256) == (False, len(answer()), sha256(answer()).digest())


@given(body=st.binary(max_size=300))
def test_any_bytes(llmstream, body):
    record = audit(body)
    assert record_class().from_dict(json.loads(record.to_json())) == record
    assert record.wire_sha256 == sha256(body).digest()


def test_names_of_the_caller_that_are_no_utf_8(llmstream):
    record = audit(answer(), "a\ud800", user_id="\udcff", session_id="é")
    assert (record.stream_id, record.user_id, record.session_id) == ("a?", "?", "é")
    record.to_json()


def test_what_is_no_source_or_option(llmstream):
    with pytest.raises(TypeError):
        audit("text")
    with pytest.raises(TypeError):
        audit(b"", colour="red")
    with pytest.raises(ValueError, match="max_content_size"):
        audit(b"", max_content_size=-1)


# --------------------------------------------------------------------------------------------------
# Live


def test_an_auditor_hands_on_and_tells_the_times(llmstream):
    at = iter(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number) for number in range(9))
    auditor = import_module("llmstream.audit").Auditor("s", clock=lambda: next(at))
    start, rest = answer()[:110], answer()[110:]
    assert auditor.feed(start) is start
    assert auditor.feed(memoryview(rest)).obj is rest
    record = auditor.close()
    assert auditor.close() is record
    times = (record.started_at, record.first_token_at, record.ended_at)
    assert [moment.second for moment in times] == [0, 1, 2]
    with pytest.raises(ValueError, match="closed"):
        auditor.feed(b"")


def test_an_auditor_takes_bytes_only(llmstream):
    with pytest.raises(TypeError):
        import_module("llmstream.audit").Auditor("s").feed("text")


# --------------------------------------------------------------------------------------------------
# The only spelling


def test_one_line_of_json(llmstream):
    record = audit(answer('"\n\u2028é\x00'))
    line = record.to_json()
    assert len(line.splitlines()) == len(line.decode().splitlines()) == 1
    assert json.loads(line)["text"] == '"\n\u2028é\x00'
    assert record.digest() == sha256(line).digest()


def test_times_of_other_zones(llmstream):
    east = timezone(timedelta(hours=2))
    moments = (datetime(2026, 1, 1, 2, tzinfo=east), datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None))
    first, second = (audit(b"", started_at=moment).to_dict()["started_at"] for moment in moments)
    assert first == second == "2026-01-01T00:00:00.000000+00:00"


@pytest.mark.parametrize(
    "change",
    [
        {"colour": 1},
        {"tool_calls": [{}]},
        {"tool_calls": 1},
        {"text_sha256": "xyz"},
        {"started_at": "yesterday"},
        {"gaps": [[1]]},
        {"stops": [{"index": 0}]},
    ],
)
def test_members_that_are_no_record(llmstream, change):
    members = {**audit(answer()).to_dict(), **change}
    with pytest.raises(ValueError, match="not the members") as caught:
        record_class().from_dict(members)
    assert caught.value.__context__ is None
    del members["text"]
    with pytest.raises(ValueError, match="not the members"):
        record_class().from_dict(members)
