"""The checker: what it finds beyond a parser, where it says it is, and how it reports (draft, sections 4 and 5)."""

from __future__ import annotations

import copy
import io
import json
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drafts
import splits
import strategies
from drafts import delta, end, envelope, error, event, sse, start, stop, tool_call, usage, whole

HEAD = start()
SECRET = "S3CRET"
TOOL = {"name": "get_weather", "description": "Weather.", "parameters": {"type": "object"}}
REQUEST = {"version": "1.0", "stream": True, "model": "m", "messages": [{"role": "user", "content": SECRET}]}


def check(source: Any, **options: Any) -> Any:
    from llmstream import conformance

    return conformance.check(source, **options)


def found(report: Any) -> list[tuple[str, str, int, int]]:
    return [(v.requirement, v.severity, v.event, v.offset) for v in report.violations]


def ids(source: Any, **options: Any) -> list[str]:
    return [violation.requirement for violation in check(source, **options).violations]


def test_a_good_stream(llmstream):
    report = check(whole("a", "b"))
    assert report.ok
    assert report.violations == []
    assert (report.error_count, report.warning_count, report.event_count) == (0, 0, 6)
    assert report.to_text() == "conforms: 6 events, 0 errors, 0 warnings\n"
    assert json.loads(report.to_json()) == {"ok": True, "errors": 0, "warnings": 0, "events": 6, "violations": []}


def test_what_a_violation_says(llmstream):
    """R5.2.1-3, R5.3.5-3, R5.3.3-2: requirement, severity, event number, byte offset, one line."""
    body = HEAD + delta(1) + stop(4, 0, "odd") + end(5)
    report = check(body)
    third = len(HEAD + delta(1))
    last = len(body) - len(end(5))
    assert found(report) == [
        ("R5.2.1-3", "error", 2, third),
        ("R5.3.3-2", "warning", 2, third),
        ("R5.3.5-3", "warning", 3, last),
    ]
    assert all(isinstance(violation, llmstream.Violation) for violation in report.violations)
    assert report.to_text().splitlines() == [
        f"event 2, offset {third}: error R5.2.1-3: events were lost before this one: 2",
        f"event 2, offset {third}: warning R5.3.3-2: stop_reason is none of the draft's words",
        f"event 3, offset {last}: warning R5.3.5-3: the stream has no usage event",
        "does not conform: 4 events, 1 error, 2 warnings",
    ]
    shown = json.loads(report.to_json())
    assert (shown["ok"], shown["errors"], shown["warnings"], shown["events"]) == (False, 1, 2, 4)
    assert shown["violations"][1] == {
        "requirement": "R5.3.3-2",
        "severity": "warning",
        "event": 2,
        "offset": third,
        "message": "stop_reason is none of the draft's words",
    }


def test_strict_makes_warnings_errors(llmstream):
    body = HEAD + b"id: 1\n" + stop(1) + end(2)
    assert check(body).ok
    assert check(body).warning_count == 2
    report = check(body, strict=True)
    assert not report.ok
    assert [violation.severity for violation in report.violations] == ["error", "error"]
    assert (report.error_count, report.warning_count) == (2, 0)


PLAIN = b"event: usage\ndata: " + envelope("usage", 1, input_tokens=1, output_tokens=1).encode() + b"\n\n"
CUT = b'event: usage\ndata: {"v":"1.0","seq":1,\n"type":"usage"}\n\n'


@pytest.mark.parametrize(
    ("block", "severity", "words"),
    [
        (CUT, "error", "--folded"),
        (b'data: {"v":"1.0",\n  "seq":1}\n\n', "error", "--folded"),
        (b"  event: usage\n  data: {}\n\n", "error", "indented"),
        (b"event: usage\n\n", "warning", "without a data line"),
        (b"event\n\n", "warning", "without a data line"),
        (b"event: x\n" + PLAIN, "warning", "more than one event line"),
        (PLAIN.replace(b',"seq"', b',\ndata: "seq"'), "warning", "more than one data line"),
        (b"\n".join([*reversed(PLAIN.strip().split(b"\n")), b"", b""]), "warning", "after the data line"),
        (b"id: 1\n" + PLAIN, "warning", "id or retry"),
        (b"id\n" + PLAIN, "warning", "id or retry"),
        (b"retry: 5\n\n", "warning", "id or retry"),
        (b"retry: 5\n" + PLAIN, "warning", "id or retry"),
        (b"x: y\n" + PLAIN, "warning", "no field"),
        (b"x\n\n", "warning", "no field"),
        (b"data : {}\n\n", "warning", "no field"),
        (b"\xef\xbb\xbfdata: {}\n\n", "warning", "no field"),
        (b"z" * 300 + b":\n\n", "warning", "no field"),
    ],
)
def test_the_form_of_an_event(llmstream, block, severity, words):
    """R5.1-1: an event line, a data line, a blank line; at most one violation an event says what else there is."""
    for line_end in (b"\n", b"\r\n", b"\r"):
        body = (HEAD + block).replace(b"\n", line_end)
        offset = len(HEAD.replace(b"\n", line_end))
        for chunks in splits.some_ways(body + usage(1) + end(2)):
            hits = [v for v in check(iter(chunks)).violations if v.requirement == "R5.1-1"]
            assert [(v.severity, v.event, v.offset) for v in hits] == [(severity, 1, offset)]
            assert words in hits[0].message


@pytest.mark.parametrize(
    "block",
    [
        PLAIN,
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n", b"\r"),
        PLAIN.replace(b": ", b":"),
        b": comment\n\n" + PLAIN,
        b":\n" + PLAIN,
        PLAIN[:-1] + b":" + b"c" * 500 + b"\n\n",
        b"\n\n\n" + PLAIN + b"\r\n\r",
    ],
)
def test_forms_that_are_good(llmstream, block):
    """R5.1-1, R3-2: line ends, a missing space, comments and further blank lines are all of Server-Sent Events."""
    for chunks in splits.some_ways(HEAD + block + end(2)):
        assert check(iter(chunks), strict=True).violations == []


def test_a_byte_order_mark(llmstream):
    """R3-2: once, at the start, however it is cut."""
    for chunks in splits.every_way(b"\xef\xbb\xbf" + start(1) + usage(2) + end(3)):
        assert found(check(iter(chunks))) == [("R5.2.1-2", "error", 0, 3)]
    for body in (b"\xef", b"\xef\xbb", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"):
        for chunks in splits.every_way(body):
            assert ids(iter(chunks)) == ["R5.3.7-2"]
    assert "R5.1-1" in ids(b"\xef\xbb\xbf\xef\xbb\xbf" + whole("a"))


def test_a_folded_last_event_without_its_blank_line(llmstream):
    """R5.1-1: one example cut out of a document."""
    body = CUT.rstrip(b"\n").replace(b"usage", b"stream.start").replace(b'"seq":1', b'"seq":0')
    for tail in (b"", b"\n"):
        assert sorted(ids(body + tail)) == ["L-TAIL", "R5.1-1", "R5.3.7-2"]


def test_nothing_is_said_of_what_comes_after_the_end(llmstream):
    """R5.3.7-1: but that it came."""
    for late in (b"id: 5\n" + delta(9), CUT, tool_call(9, name="no"), start(9, created=10**12)):
        assert ids(whole("a") + late, request=REQUEST) == ["R5.3.7-1"]
    assert ids(whole("a") + b"event: x\n\n", request=REQUEST) == []


def test_numbers_and_places_are_those_of_the_parser(llmstream):
    """A-30: one that is too large counts as an event, whatever is in it, as a parser counts."""
    large = b":" + b"c" * 400 + b"\n\n"
    body = HEAD + large + b"x\n\n" + sse("{", "x") + b"id: 1\n" + usage(3) + end(4)
    for chunks in splits.some_ways(body):
        report = check(iter(chunks), max_event_size=300)
        at = len(HEAD + large)
        assert found(report) == [
            ("L-SIZE", "error", 1, len(HEAD)),
            ("R5.1-1", "warning", 2, at),
            ("R5.1-3", "error", 2, at + 3),
            ("R5.1-1", "warning", 3, at + 3 + len(sse("{", "x"))),
        ]
        assert report.event_count == 5


@given(source=strategies.seeds(), limit=st.sampled_from([100, 150, 16 * 2**20]))
def test_any_bytes_at_any_split(twins, source, limit):
    """R5.1-2: the same report for every split and in both twins; every violation of a parser is in it."""
    body = strategies.draft_stream(source)
    reports = []
    for twin in (twins.python, twins.cython):
        with twin.active():
            parser, _ = drafts.run(twin.package, body, max_event_size=limit)
            for chunks in ([body], strategies.cuts(source, body), splits.bytewise(body)):
                report = check(iter(chunks), max_event_size=limit)
                reports.append(report.to_json())
                assert set(drafts.faults(parser)) <= set(found(report))
                ours = [f for f in found(report) if f[0] in ("R5.1-1", "R4.8-1")]
                assert report.error_count + report.warning_count <= parser.violation_count + len(ours) + 1
    assert len(set(reports)) == 1


@given(body=strategies.sse_bytes)
def test_any_lines_at_any_split(twins, body):
    """R5.1-2: on free bytes of the grammar."""
    with twins.python.active():
        expected = check(body).to_json()
        for chunks in splits.some_ways(body):
            assert check(iter(chunks)).to_json() == expected


# The response beside its request


def paired(*middle: bytes, **members: Any) -> bytes:
    return start(**members) + b"".join(middle) + usage(len(middle) + 1) + end(len(middle) + 2, **members)


def test_a_tool_that_was_not_declared(llmstream):
    """R5.3.4-3, R8.2-1."""
    body = paired(tool_call(1, name="get_weather"), tool_call(2, name=SECRET, id="c2"), stop(3, 0, "tool_use"))
    assert ids(body) == []
    assert ids(body, request={**REQUEST, "tools": [TOOL, {**TOOL, "name": SECRET}]}) == []
    report = check(body, request={**REQUEST, "tools": [TOOL]})
    assert found(report) == [("R5.3.4-3", "error", 2, len(start() + tool_call(1, name="get_weather")))]
    assert SECRET not in report.to_text() + report.to_json() + repr(report)
    assert ids(body, request=REQUEST) == ["R5.3.4-3", "R5.3.4-3"]


@pytest.mark.parametrize(
    ("at_start", "at_end", "expected"),
    [
        ("r", "r", []),
        (None, None, [("R4.6-2", "warning", 0), ("R4.6-2", "warning", 2)]),
        ("r", None, [("R4.6-2", "warning", 2)]),
        (None, "r", [("R4.6-2", "warning", 0)]),
        ("x", "x", [("R4.6-2", "error", 0)]),
        (None, "x", [("R4.6-2", "warning", 0), ("R4.6-2", "error", 2)]),
        ("r", "x", [("R5.3.7-3", "error", 2)]),
        ("x", None, [("R4.6-2", "error", 0), ("R4.6-2", "warning", 2)]),
    ],
)
def test_the_echo_of_request_id(llmstream, at_start, at_end, expected):
    """R4.6-2, R5.3.7-3."""
    request = {**REQUEST, "metadata": {"request_id": "r"}}
    first = start() if at_start is None else start(request_id=at_start)
    last = end(2) if at_end is None else end(2, request_id=at_end)
    report = check(first + usage(1) + last, request=request)
    assert [(v.requirement, v.severity, v.event) for v in report.violations] == expected


def test_a_call_stops_with_tool_use(llmstream):
    """R4.8-1: but not where an error or another block stops."""
    assert ids(paired(tool_call(1), stop(2, 0, "tool_use"))) == []
    assert ids(paired(tool_call(1), stop(2, 0, "end_turn"))) == ["R4.8-1"]
    assert ids(paired(delta(1), tool_call(2, 1), stop(3, 0, "end_turn"), stop(4, 1, "tool_use"))) == []
    assert ids(paired(tool_call(1), event("content.stop", 2, index=0))) == ["R5.3.3-1"]


def test_created_in_milliseconds(llmstream):
    """R5.3.1-3."""
    assert ids(start(created=10**11 - 1) + usage(1) + end(2)) == []
    report = check(start(created=1749292800000) + usage(1) + end(2))
    assert [(v.requirement, v.severity) for v in report.violations] == [("R5.3.1-3", "warning")]


def test_a_request_in_any_form(llmstream):
    """R4.2-1, R4.3-1: a Request, its members, its body; None for the stream checks it alone."""
    from llmstream.request import Request

    body = json.dumps(REQUEST)
    forms = (REQUEST, body, body.encode(), bytearray(body.encode()), Request.from_json(body))
    for request in forms:
        assert check(whole("a"), request=request).ok
        assert check(None, request=request).ok
    report = check(None, request={**REQUEST, "messages": [{"role": 5, "content": SECRET}]})
    [violation] = report.violations
    assert (violation.requirement, violation.severity, violation.path) == ("R4.3-1", "error", "messages[0].role")
    assert report.to_text().startswith("request, member `messages[0].role`: error R4.3-1: ")
    assert json.loads(report.to_json())["violations"][0]["path"] == "messages[0].role"
    assert SECRET not in report.to_text() + report.to_json()
    assert report.event_count == 0


def test_a_request_that_cannot_be_read(llmstream):
    """R4.2-1: is a violation, and the stream is checked all the same."""
    for request in ("{", "[]", b"", b"\xff", "{}{}", "[" * 100_000):
        report = check(HEAD + delta(1), request=request)
        assert not report.ok
        assert report.violations[0].requirement in ("R4.2-1", "L-DEPTH", "L-UTF8")
        assert report.violations[-1].requirement == "R5.3.7-2"


def test_severity_of_a_request_in_strict_mode(llmstream):
    """A-10: a deviation with a harmless reading is a warning in lenient mode, an error in strict mode."""
    request = {**REQUEST, "messages": []}
    assert [v.severity for v in check(None, request=request).violations] == ["warning"]
    assert check(None, request=request).ok
    assert [v.severity for v in check(None, request=request, strict=True).violations] == ["error"]
    assert not check(None, request=request, strict=True).ok


# Sources, limits, reports


def test_sources(llmstream):
    body = whole("a")
    for source in (body, bytearray(body), memoryview(body), io.BytesIO(body), [body[:9], body[9:]], iter([body])):
        assert check(source).ok
        assert ids(HEAD) == ["R5.3.7-2"]
    for source in ("text", 5, object()):
        with pytest.raises(TypeError):
            check(source)


def test_a_checker_is_fed(llmstream):
    from llmstream.conformance import Checker

    checker = Checker(request=REQUEST)
    for chunk in splits.bytewise(whole("a") + delta(9)):
        checker.feed(chunk)
    report = checker.close()
    assert [violation.requirement for violation in report.violations] == ["R5.3.7-1"]
    assert checker.close() is report
    with pytest.raises(ValueError, match="closed"):
        checker.feed(b"")


def test_violations_are_bounded_and_counted(llmstream):
    body = HEAD + b"".join(b"id: 1\n" + delta(5 * n, role="user") for n in range(1, 1500)) + end(0)
    report = check(body)
    assert len(report.violations) == 1000
    assert report.error_count == 1499 * 2 + 2
    assert report.warning_count == 1499 + 1
    assert f"and {1499 * 3 + 3 - 1000} more" in report.to_text()
    strict = check(body, strict=True)
    assert (strict.error_count, strict.warning_count) == (1499 * 3 + 3, 0)


WRONG = {"role": 5, "content": "x"}
ODD = {"role": "user", "content": "x", "name": None}
TWICE = '{"x":1,"x":2}'


@pytest.mark.parametrize(
    ("request_", "errors", "warnings"),
    [
        (json.dumps({**REQUEST, "messages": [WRONG] * 5000}), 5000, 0),
        (json.dumps({**REQUEST, "messages": [ODD] * 5000}), 0, 5000),
        (json.dumps({**REQUEST, "messages": [ODD] * 3000 + [WRONG] * 2000 + [ODD]}), 2000, 3001),
        (json.dumps({**REQUEST, "messages": [WRONG] * 999 + [ODD] * 3}), 999, 3),
        ({**REQUEST, "messages": [WRONG] * 1500 + [ODD] * 1500}, 1500, 1500),
        # What was odd about the text, of which no value is left to count.
        (json.dumps(REQUEST)[:-1] + ',"y":[' + ",".join([TWICE] * 7000) + "]}", 0, 7000),
        (json.dumps({**REQUEST, "y": ["\ud83d"] * 7000}), 0, 7000),
        (json.dumps({**REQUEST, "y": ["\ud83d"] * 7000, "messages": [WRONG] * 5}), 5, 7000),
        (json.dumps(REQUEST)[:-1] + ',"y":[' + ",".join([TWICE] * 4000) + "]" + ',"model":"m"' * 4000 + "}", 0, 8000),
        # And where it cannot be read.
        (json.dumps({**REQUEST, "y": ["\ud83d"] * 7000})[:-1] + ',"z":' + "[" * 501 + "]" * 501 + "}", 1, 7000),
    ],
)
def test_what_a_request_breaks_is_counted_beyond_what_is_kept(llmstream, request_, errors, warnings):
    for stream, more in ((None, 0), (whole("a"), 0), (HEAD, 1)):
        report = check(stream, request=request_)
        assert (report.error_count, report.warning_count) == (errors + more, warnings)
        assert report.ok is (errors + more == 0)
        of_request = [violation for violation in report.violations if hasattr(violation, "path")]
        assert len(of_request) <= 1001
        assert any(violation.severity == "error" for violation in of_request) is (errors > 0)
        left = errors + warnings + more - len(report.violations)
        assert (f"and {left} more\n" in report.to_text()) is (left > 0)
        strict = check(stream, request=request_, strict=True)
        assert (strict.error_count, strict.warning_count) == (errors + warnings + more, 0)
        shown = json.loads(strict.to_json())
        assert (shown["errors"], shown["warnings"]) == (errors + warnings + more, 0)


def test_counts_are_those_of_a_copied_request(llmstream):
    from llmstream.request import Request

    request = Request.from_json(json.dumps({**REQUEST, "y": ["\ud83d"] * 7000}))
    for again in (request, pickle.loads(pickle.dumps(request)), copy.deepcopy(request)):
        assert check(None, request=again).warning_count == 7000


# A request that is given as a mapping


class Other(Mapping):
    """A mapping that is no dict."""

    def __init__(self, members):
        self.members = members

    def __getitem__(self, name):
        return self.members[name]

    def __iter__(self):
        return iter(self.members)

    def __len__(self):
        return len(self.members)


def nested(depth, inside=1):
    for _ in range(depth):
        inside = [inside]
    return inside


def with_value(value):
    return {**REQUEST, "extensions": {"a:b": value}}


def endless():
    value = []
    value.append(value)
    return value


def shared(depth):
    """2**depth items in ``depth`` lists."""
    value = ["x"]
    for _ in range(depth):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("request_", "requirement", "path"),
    [
        (with_value(float("nan")), "R4.2-1", "extensions.*"),
        (with_value(float("inf")), "R4.2-1", "extensions.*"),
        ({**REQUEST, "parameters": {"top_p": float("-inf")}}, "R4.2-1", "parameters.top_p"),
        ({**REQUEST, "messages": [{"content": ["a", float("nan")]}]}, "R4.2-1", "messages[0].content[1]"),
        (with_value(10**5000), "R4.2-1", "extensions.*"),
        (with_value(-(10**5000)), "R4.2-1", "extensions.*"),
        (with_value(nested(498)), None, None),
        (with_value(nested(499)), "L-DEPTH", ""),
        (with_value(nested(100_000)), "L-DEPTH", ""),
        (with_value(endless()), "L-DEPTH", ""),
        (with_value(shared(490)), "L-SIZE", ""),
        (Other(with_value(Other({"a": (1, 2.5, None, True, "x")}))), None, None),
        (with_value(10**400), None, None),
        ({**REQUEST, "parameters": {"max_tokens": 10**400}}, "R4.5-1", "parameters.max_tokens"),  # as in a body
        (with_value("\ud83d"), "L-SURROGATE", "extensions.*"),
        (with_value({"\ud83d": 1}), "L-SURROGATE", "extensions.*"),
        ({}, "R4.2-2", "version"),
    ],
)
def test_r4_2_1_a_mapping_that_json_cannot_hold(llmstream, request_, requirement, path, monkeypatch):
    """Is a finding, as of a body that is not JSON; and what it can hold is judged as the body would be."""
    from llmstream.request import reading

    monkeypatch.setattr(reading, "DEFAULT_MAX_SIZE", 2**20)
    for stream in (None, whole("a")):
        found = check(stream, request=request_).violations
        if requirement is None:
            assert found == []
        else:
            assert (found[0].requirement, found[0].path) == (requirement, path)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({1: 2}, "int: the request itself"),
        ({**REQUEST, None: 1}, "NoneType: the request itself"),
        (with_value({1: 2}), r"int: extensions\.\*"),
        ({**REQUEST, "messages": [{"role": "user", ("a", SECRET): SECRET}]}, r"tuple: messages\[0\]"),
        (with_value(b"S3CRET"), r"bytes: extensions\.\*"),
        ({**REQUEST, "messages": [{"content": {SECRET}}]}, r"set: messages\[0\]\.content"),
        ({**REQUEST, "messages": iter([])}, r"list_iterator: messages"),
        (5, "mapping.* not int"),
        ([], "mapping.* not list"),
        ([("model", "m")], "mapping.* not list"),
        (object(), "mapping.* not object"),
    ],
)
def test_a_mapping_of_what_json_has_no_type_for(llmstream, request_, words):
    """Is a fault of the caller's; the place is told, and no content."""
    from llmstream.conformance import Checker

    for use in (lambda: check(None, request=request_), lambda: check(b"", request=request_)):
        with pytest.raises(TypeError, match=words) as caught:
            use()
        assert SECRET not in str(caught.value)
    with pytest.raises(TypeError, match=words):
        Checker(request=request_)


@given(
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )
)
def test_a_mapping_is_judged_as_its_body(twins, value):
    """By the standard library's JSON, an independent writer."""
    with twins.python.active():
        for members in ({**REQUEST, "x": value}, {**REQUEST, "messages": value}, {"parameters": value, "model": value}):
            assert check(None, request=members).to_json() == check(None, request=json.dumps(members)).to_json()


def test_a_report_is_a_value(llmstream):
    from llmstream.conformance import Report

    report = check(HEAD + delta(1), request={**REQUEST, "model": 1})
    for again in (copy.copy(report), copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
        assert again == report
        assert again.to_json() == report.to_json()
    assert report != Report()
    assert report != 5
    assert repr(report) == "Report(ok=False, 2 events, 2 errors, 0 warnings)"
    for name in ("ok", "violations", "other"):
        with pytest.raises(AttributeError):
            setattr(report, name, 1)
    with pytest.raises(AttributeError):
        del report.violations
    with pytest.raises(TypeError):
        hash(report)


def test_no_text_of_the_stream_in_a_report(llmstream):
    """R8.1-1."""
    body = HEAD + delta(1, SECRET, role=SECRET) + sse("{" + SECRET, SECRET) + error(3, SECRET, SECRET)
    body += SECRET.encode() + b": x\n\n" + event(SECRET, 4) + tool_call(5, name=SECRET, arguments=SECRET)
    request = {"version": SECRET, "model": SECRET, SECRET: 1, "messages": [{"role": SECRET, "content": {"a": SECRET}}]}
    for strict in (False, True):
        report = check(body, request=request, strict=strict)
        assert len(report.violations) > 8
        assert SECRET not in report.to_text() + report.to_json() + repr(report) + repr(report.violations)
