"""What is wrong with a request, rule by rule: each case has the id of its requirement, and tells all that is found."""

from __future__ import annotations

import base64
import copy
import importlib
import json
import pickle
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

ABSENT = object()


@pytest.fixture(scope="session")
def kit(llmstream: Any) -> Any:
    return importlib.import_module("llmstream.request")


def whole() -> dict[str, Any]:
    """A request with everything, and nothing wrong."""
    return {
        "version": "1.0",
        "stream": True,
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "t"}], "name": "Ann"},
            {
                "role": "user",
                "content": [
                    {"type": "image", "media_type": "image/png", "data": "AAEC"},
                    {"type": "document", "media_type": "application/pdf", "data": "AAE="},
                    {"type": "audio", "media_type": "audio/wav", "data": "AA=="},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "name": "f", "arguments": "{}"}]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [
            {"name": "f", "description": "d", "parameters": {}},
            {"name": "g", "description": "", "parameters": {}},
        ],
        "parameters": {"max_tokens": 1, "temperature": 0.5, "top_p": 1, "stop_sequences": ["x"], "top_k": None},
        "metadata": {"request_id": "r", "user_id": 5},
        "extensions": {"vendor:openai": None, "acme:x": {}, "a:b:c": 1},
    }


def changed(path: str, value: Any) -> dict[str, Any]:
    """The whole request with one member set or, for ABSENT, taken away."""
    body = whole()
    place: Any = body
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("/"))
    for step in steps:
        place = place[step]
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return body


E, W = "error", "warning"
TOOL, ASSISTANT, IMAGE, CALL = "messages/4", "messages/3", "messages/2/content/0", "messages/3/tool_calls/0"
CALL_PATH = "messages[3].tool_calls[0]"
UNANSWERED = ("R4.8-2", f"{CALL_PATH}.id", W, W)
UNDECLARED = ("R4.8-2", f"{CALL_PATH}.name", W, W)

# The member that is changed, its value, and all that is found: requirement, path, severity in strict and lenient mode.
CASES: list[tuple[str, Any, list[tuple[str, str, str, str]]]] = [
    *(("version", value, [("R4.2-2", "version", E, E)]) for value in (ABSENT, None, "1", 1.0, "2.0", "1.0 ", ["1.0"])),
    *(("stream", value, [("R4.2-3", "stream", E, E)]) for value in (ABSENT, None, "true", 1, 0)),
    ("stream", False, [("R4.2-3", "stream", E, W)]),
    *(("model", value, [("R4.2-4", "model", E, E)]) for value in (ABSENT, None, 1, ["m"])),
    *(("messages", value, [("R4.2-5", "messages", E, E)]) for value in (ABSENT, None, {}, "x", {"0": {}})),
    ("messages", [], [("R4.2-5", "messages", E, W)]),
    *(("messages/0", value, [("R4.2-5", "messages[0]", E, E)]) for value in (None, "x", [], 1)),
    *(
        (name, value, [("R4.2-6", name, E, E)])
        for name in ("parameters", "metadata", "extensions")
        for value in ([], "x", 1)
    ),
    *((name, None, [("R4.2-6", name, E, W)]) for name in ("parameters", "metadata", "extensions")),
    *(("tools", value, [("R4.2-6", "tools", E, E), UNDECLARED]) for value in ({}, "x", 1)),
    ("tools", None, [("R4.2-6", "tools", E, W), UNDECLARED]),
    *(("messages/0/role", value, [("R4.3-1", "messages[0].role", E, E)]) for value in (ABSENT, None, 1, ["user"])),
    *(("messages/0/role", value, [("R4.3-1", "messages[0].role", E, W)]) for value in ("developer", "User", "")),
    *(
        ("messages/0/content", value, [("R4.3-2", "messages[0].content", E, E)])
        for value in (ABSENT, None, 1, {}, False)
    ),
    (f"{TOOL}/content", None, [("R4.3-2", "messages[4].content", E, E)]),
    (f"{ASSISTANT}/content", ABSENT, [("R4.3-2", "messages[3].content", E, W)]),
    (f"{ASSISTANT}/content", 5, [("R4.3-2", "messages[3].content", E, E)]),
    (
        f"{ASSISTANT}/tool_calls",
        [],
        [("R4.3-2", "messages[3].content", E, E), ("R4.3-5", "messages[4].tool_call_id", E, W)],
    ),
    (
        f"{ASSISTANT}/tool_calls",
        None,
        [
            ("R4.8-2", "messages[3].tool_calls", E, W),
            ("R4.3-2", "messages[3].content", E, E),
            ("R4.3-5", "messages[4].tool_call_id", E, W),
        ],
    ),
    (
        f"{ASSISTANT}/tool_calls",
        {"id": "c"},
        [
            ("R4.8-2", "messages[3].tool_calls", E, E),
            ("R4.3-2", "messages[3].content", E, E),
            ("R4.3-5", "messages[4].tool_call_id", E, W),
        ],
    ),
    ("messages/1/name", 1, [("R4.3-3", "messages[1].name", E, E)]),
    ("messages/1/name", None, [("R4.3-3", "messages[1].name", E, W)]),
    *(
        (f"{TOOL}/tool_call_id", value, [("R4.3-4", "messages[4].tool_call_id", E, E), UNANSWERED])
        for value in (ABSENT, None, 1, ["c"])
    ),
    ("messages/0/tool_call_id", None, [("R4.3-4", "messages[0].tool_call_id", E, W)]),
    ("messages/0/tool_call_id", 5, [("R4.3-4", "messages[0].tool_call_id", E, E)]),
    (f"{TOOL}/tool_call_id", "d", [("R4.3-5", "messages[4].tool_call_id", E, W), UNANSWERED]),
    *(("messages/1/content/0", value, [("R4.3.1-1", "messages[1].content[0]", E, E)]) for value in ("t", None, [])),
    *(
        ("messages/1/content/0/type", value, [("R4.3.1-1", "messages[1].content[0].type", E, E)])
        for value in (ABSENT, None, 1, ["text"])
    ),
    *(
        ("messages/1/content/0/type", value, [("R4.3.1-1", "messages[1].content[0].type", E, W)])
        for value in ("video", "")
    ),
    *(
        ("messages/1/content/0/text", value, [("R4.3.1-1", "messages[1].content[0].text", E, E)])
        for value in (ABSENT, None, 1)
    ),
    *(
        (f"messages/2/content/{number}/{name}", value, [("R4.3.1-1", f"messages[2].content[{number}].{name}", E, E)])
        for number in range(3)
        for name in ("media_type", "data")
        for value in (ABSENT, None, 1)
    ),
    *(
        (f"{IMAGE}/data", value, [("R4.3.1-2", "messages[2].content[0].data", E, E)])
        for value in (
            "A",
            "AAAAA",
            "AA=",
            "A===",
            "AAE==",
            "====",
            "AA==AA==",
            "AA\nAA",
            "AA AA",
            "AAE=\n",
            "é",
            "AA.A",
        )
    ),
    *(
        (f"{IMAGE}/data", value, [("R4.3.1-2", "messages[2].content[0].data", E, W)])
        for value in ("AA", "AAE", "-_-_", "-A==", "AB==", "AAF=", "+-AA")
    ),
    *(("tools/1", value, [("R4.4-1", "tools[1]", E, E)]) for value in (None, "g", [])),
    *(
        (f"tools/1/{name}", value, [("R4.4-1", f"tools[1].{name}", E, E)])
        for name in ("name", "description", "parameters")
        for value in (ABSENT, None, 1, [])
    ),
    ("tools/1/parameters", "{}", [("R4.4-1", "tools[1].parameters", E, E)]),
    ("tools/1/name", "f", [("L-TOOL", "tools[1].name", W, W)]),
    *(
        ("parameters/max_tokens", value, [("R4.5-1", "parameters.max_tokens", E, W)])
        for value in (None, "1", 1.0, True, [])
    ),
    *(
        (f"parameters/{name}", value, [("R4.5-1", f"parameters.{name}", E, W)])
        for name in ("temperature", "top_p")
        for value in (None, "1", True, [])
    ),
    *(
        ("parameters/stop_sequences", value, [("R4.5-1", "parameters.stop_sequences", E, W)])
        for value in (None, "x", {"a": 1})
    ),
    ("parameters/stop_sequences", ["x", 1], [("R4.5-1", "parameters.stop_sequences[1]", E, W)]),
    *(("metadata/request_id", value, [("R4.6-2", "metadata.request_id", W, W)]) for value in (None, 1, {})),
    *(
        ("extensions", {"vendor:x": 1, key: {}}, [("R4.7-1", "extensions", E, W)])
        for key in ("", "vendor", ":", ":name", "vendor:", "::")
    ),
    *(
        (CALL, value, [("R4.8-2", CALL_PATH, E, E), ("R4.3-5", "messages[4].tool_call_id", E, W)])
        for value in (None, "c")
    ),
    *(
        (f"{CALL}/id", value, [("R4.8-2", f"{CALL_PATH}.id", E, E), ("R4.3-5", "messages[4].tool_call_id", E, W)])
        for value in (ABSENT, None, 1)
    ),
    *((f"{CALL}/name", value, [("R4.8-2", f"{CALL_PATH}.name", E, E)]) for value in (ABSENT, None, 1)),
    *((f"{CALL}/arguments", value, [("R4.8-2", f"{CALL_PATH}.arguments", E, E)]) for value in (ABSENT, None, {})),
    (TOOL, ABSENT, [UNANSWERED]),
    ("tools", ABSENT, [UNDECLARED]),
    (
        f"{ASSISTANT}/tool_calls",
        [{"id": "c", "name": "f", "arguments": "{}"}, {"id": "c", "name": "g", "arguments": "{}"}],
        [("R5.3.4-2", "messages[3].tool_calls[1].id", E, E)],
    ),
]


def told(violations: list[Any]) -> list[tuple[str, str, str]]:
    return [(violation.requirement, violation.path, violation.severity) for violation in violations]


def case_id(case: Any) -> str:
    path, value, found = case
    return f"{found[0][0]} {path}={'absent' if value is ABSENT else json.dumps(value)}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_rule(kit: Any, llmstream: Any, case: Any) -> None:
    path, value, found = case
    body = json.dumps(changed(path, value))
    request = kit.Request.from_json(body)
    strict = [(requirement, where, severity) for requirement, where, severity, _ in found]
    lenient = [(requirement, where, severity) for requirement, where, _, severity in found]
    assert told(request.validate(strict=True)) == strict
    assert told(request.validate()) == lenient
    for mode, expected in ((True, strict), (False, lenient)):
        errors = [(requirement, where) for requirement, where, severity in expected if severity == E]
        if not errors:
            request.raise_for_violations(strict=mode)
            continue
        with pytest.raises(llmstream.RequestError) as caught:
            request.raise_for_violations(strict=mode)
        assert (caught.value.requirement, caught.value.path) == errors[0]
        assert told(caught.value.violations) == expected
        assert str(caught.value).startswith(f"{errors[0][1]}: ")
        assert str(caught.value).endswith(f" ({errors[0][0]})")
    if E in [severity for *_, severity in strict]:
        with pytest.raises(llmstream.RequestError):
            kit.Request.from_json(body, strict=True)
    assert json.loads(request.to_json()) == json.loads(body)


def test_nothing_is_wrong_with_the_whole(kit: Any) -> None:
    request = kit.Request.from_json(json.dumps(whole()), strict=True)
    assert request.validate(strict=True) == request.validate() == []
    request.raise_for_violations()


# What say is right.
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model", ""),
        ("messages/1/name", ""),
        ("messages/1/content", []),
        ("messages/0/content", ""),
        (f"{ASSISTANT}/content", ""),
        (f"{ASSISTANT}/content", [{"type": "text", "text": ""}]),
        ("messages/0/tool_calls", "an unknown member of this role"),
        ("messages/0/tool_call_id", "unused"),
        (f"{IMAGE}/data", ""),
        ("parameters/max_tokens", -1),
        ("parameters/max_tokens", 10**40),
        ("parameters/temperature", -5),
        ("parameters/temperature", 1e300),
        ("parameters/stop_sequences", []),
        ("tools", [{"name": "f", "description": "", "parameters": {"type": 5}}]),
        ("extensions", {}),
    ],
)
def test_what_is_right(kit: Any, path: str, value: Any) -> None:
    assert kit.Request.from_json(json.dumps(changed(path, value)), strict=True).validate(strict=True) == []


def test_r4_3_5_ids_may_come_again_in_later_messages(kit: Any) -> None:
    body = whole()
    body["messages"] += body["messages"][3:]
    assert kit.Request.from_json(json.dumps(body)).validate(strict=True) == []
    body["messages"][3:5] = reversed(body["messages"][3:5])
    assert told(kit.Request.from_json(json.dumps(body)).validate()) == [("R4.3-5", "messages[3].tool_call_id", W)]


@pytest.mark.parametrize(
    "body",
    ["[]", '"x"', "1", "null", "", " ", "{} {}", '{"a":1', "{'a':1}", '{"a":NaN}', '{"a":1,}', '{"a":"\n"}', "{}x"],
)
@pytest.mark.parametrize("strict", [True, False])
def test_r4_2_1_one_json_object(kit: Any, llmstream: Any, body: str, strict: bool) -> None:
    for data in (body, body.encode(), bytearray(body.encode()), memoryview(body.encode())):
        with pytest.raises(llmstream.RequestError, match=r"\(R4\.2-1\)$") as caught:
            kit.Request.from_json(data, strict=strict)
        assert told(caught.value.violations) == [("R4.2-1", "", E)]


def test_other_encodings_are_not_json(kit: Any, llmstream: Any) -> None:
    for name in ("utf-16", "utf-32", "utf-16-be"):
        with pytest.raises(llmstream.RequestError, match=r"R4\.2-1"):
            kit.Request.from_json(json.dumps(whole()).encode(name))


def test_a_body_that_is_no_text(kit: Any) -> None:
    for data in (None, 1, {}, [1]):
        with pytest.raises(TypeError):
            kit.Request.from_json(data)


READ = [
    (b'{"model":"\xff"}', "model", "\ufffd", ("L-UTF8", "")),
    (b'\xef\xbb\xbf{"model":"m"}', "model", "m", ("L-UTF8", "")),
    (b'{"model":"\\ud83d"}', "model", "\ufffd", ("L-SURROGATE", "model")),
    (b'{"model":"\\uDE00\\ud83d"}', "model", "\ufffd\ufffd", ("L-SURROGATE", "model")),
    (b'{"extensions":{"a:b":["\\ud83d"]}}', "extensions", {"a:b": ["\ufffd"]}, ("L-SURROGATE", "extensions.*[0]")),
    (b'{"extensions":{"a:\\ud83d":1}}', "extensions", {"a:\ufffd": 1}, ("L-SURROGATE", "extensions")),
    (b'{"model":"a","model":"b"}', "model", "b", ("L-DUPLICATE", "model")),
]


@pytest.mark.parametrize(("body", "name", "value", "found"), READ)
def test_what_is_odd_about_a_body(kit: Any, llmstream: Any, body: bytes, name: str, value: Any, found: Any) -> None:
    request = kit.Request.from_json(body)
    assert request.json()[name] == value
    assert (*found, W) in told(request.validate())
    assert (*found, E) in told(request.validate(strict=True))
    assert pickle.loads(pickle.dumps(request)).validate() == request.validate()
    with pytest.raises(llmstream.RequestError) as caught:
        kit.Request.from_json(body, strict=True)
    assert (caught.value.requirement, caught.value.path) == found


def test_a_surrogate_in_a_str(kit: Any) -> None:
    request = kit.Request.from_json('{"model":"\ud83d"}')
    assert request.model == "\ufffd"
    assert ("L-SURROGATE", "model", W) in told(request.validate())
    assert kit.Request.from_json('{"model":"\\ud83d\\ude00"}').model == "\U0001f600"
    assert kit.Request.from_json('{"model":"\\\\ud83d"}').model == "\\ud83d"


# an error where it counts; the last one is read, as by every other reader.
@pytest.mark.parametrize(
    ("old", "new", "path", "severity"),
    [
        ('"role": "system"', '"role": "x", "role": "system"', "messages[0].role", E),
        ('"text": "t"', '"text": "u", "text": "t"', "messages[1].content[0].text", E),
        ('"id": "c"', '"id": "b", "id": "c"', "messages[3].tool_calls[0].id", E),
        ('"name": "g"', '"name": "h", "name": "g"', "tools[1].name", E),
        ('"top_p": 1', '"top_p": 2, "top_p": 1', "parameters.top_p", E),
        ('"request_id": "r"', '"request_id": "s", "request_id": "r"', "metadata.request_id", E),
        ('"top_k": null', '"top_k": 1, "top_k": null', "parameters", W),
        ('"acme:x": {}', '"acme:x": {"model": 1, "model": 2}', "extensions.*", W),
        ('"acme:x": {}', '"acme:x": 1, "acme:x": {}', "extensions", W),
        ('"parameters": {}', '"parameters": {"name": 1, "name": 2}', "tools[0].parameters", W),
        ('"acme:x": {}', '"acme:x": [[{"name": 1, "name": 2}]]', "extensions.*[0][0]", W),
        ('"top_k": null', '"top_k": {"name": 1, "name": 2}', "parameters.*", W),
        ('"user_id": 5', '"user_id": [{"name": 1, "name": 2}]', "metadata.user_id[0]", W),
    ],
)
def test_members_that_come_twice(kit: Any, old: str, new: str, path: str, severity: str) -> None:
    text = json.dumps(whole())
    assert old in text
    request = kit.Request.from_json(text.replace(old, new, 1))
    assert told(request.validate(strict=True)) == [("L-DUPLICATE", path, severity)]
    assert told(request.validate()) == [("L-DUPLICATE", path, W)]
    if '"name": 1, "name": 2' not in new and "acme" not in new:
        assert request == kit.Request.from_json(text)


def test_members_that_come_twice_cost_the_same_however_deep_they_are(kit: Any, monkeypatch: Any) -> None:
    """But for those that are told, whose path is as long as they are deep."""
    reading = importlib.import_module("llmstream.request.reading")
    monkeypatch.setattr(reading, "MAX_VIOLATIONS", 2)
    few, many = (lines_to_read(kit, reading, 490, number) for number in (1000, 3000))
    shallow_few, shallow_many = (lines_to_read(kit, reading, 1, number) for number in (1000, 3000))
    assert many - few <= 1.2 * (shallow_many - shallow_few)


def lines_to_read(kit: Any, module: Any, depth: int, number: int) -> int:
    """How many lines of a module run while so many repeated members are read, at a depth."""
    text = '{"y":' + "[" * depth + ",".join(['{"a":1,"a":2}'] * number) + "]" * depth + "}"
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename == module.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        kit.Request.from_json(text)
    finally:
        sys.settrace(before)
    return count


def test_limits(kit: Any, llmstream: Any) -> None:
    body = b'{"a":"' + b"x" * 100 + b'"}'
    assert kit.Request.from_json(body, max_size=len(body))
    for data in (body, body.decode()):
        with pytest.raises(llmstream.RequestError, match=r"L-SIZE"):
            kit.Request.from_json(data, max_size=len(body) - 1)
    with pytest.raises(llmstream.RequestError, match=r"L-SIZE"):
        kit.Request.from_json('{"a":"é"}', max_size=9)
    for depth in (1, 2, 499, 500):
        text = '{"a":' * depth + "1" + "}" * depth
        assert kit.Request.from_json(text, max_depth=depth).to_json() == text.encode()
        if depth > 1:
            with pytest.raises(llmstream.RequestError, match=r"L-DEPTH"):
                kit.Request.from_json(text, max_depth=depth - 1)
    for text in ('{"a":' * 501 + "1" + "}" * 501, '{"a":' + "[" * 500 + "]" * 500 + "}", '{"a":' + "[" * 10**6):
        with pytest.raises(llmstream.RequestError, match=r"L-DEPTH|R4\.2-1"):
            kit.Request.from_json(text, max_depth=10**9)
    wide = '{"a":[' + ",".join(["[]"] * 2000) + "]}"
    assert kit.Request.from_json(wide).to_json() == wide.encode()


def test_what_is_deep_is_kept_copied_compared_and_pickled(kit: Any) -> None:
    text = '{"extensions":{"a:b":' + '[{"c":' * 249 + "1" + "}]" * 249 + "}}"
    request = kit.Request.from_json(text)
    assert request.to_json() == text.encode()
    assert request.json() == json.loads(text)
    assert kit.Request._of(request.json()) == request
    assert pickle.loads(pickle.dumps(request)) == request


def test_violations_are_bounded_and_the_first_error_is_among_them(kit: Any, llmstream: Any) -> None:
    body = {**whole(), "messages": [{"role": "user", "content": "x", "name": None}] * 5000 + [5, 5]}
    request = kit.Request.from_json(json.dumps(body))
    found = request.validate()
    assert len(found) == 1001
    assert (found[-1].path, found[-1].severity) == ("messages[5000]", E)
    with pytest.raises(llmstream.RequestError, match=r"^messages\[5000\]: "):
        request.raise_for_violations(strict=False)
    twice = '{"b":[' + ",".join(['{"x":1,"x":2}'] * 3000) + "]"
    found = kit.Request.from_json(twice + ',"model":"a","model":"b"}').validate(strict=True)
    assert ("L-DUPLICATE", "model", E) in told(found)


def test_r8_1_1_no_error_has_content(kit: Any, llmstream: Any) -> None:
    secret = "SECRET"
    bodies = [
        secret,
        f'["{secret}"]',
        f'{{"{secret}":',
        f'{{"{secret}":"{secret}","{secret}":1}}',
        f'{{"role":"{secret}"}}',
    ]
    bodies += [
        f'{{"messages":[{{"role":"{secret}","content":[{{"type":"{secret}"}}]}}],"extensions":{{"{secret}":1}}}}'
    ]
    for body in bodies:
        with pytest.raises(llmstream.RequestError) as caught:
            kit.Request.from_json(body, strict=True)
        error: BaseException | None = caught.value
        while error is not None:
            assert secret not in str(error) + repr(error) + repr(vars(error))
            error = error.__cause__ or error.__context__
        assert pickle.loads(pickle.dumps(caught.value)).path == caught.value.path


def test_a_violation(kit: Any) -> None:
    violation = kit.RequestViolation("R4.3-4", "error", "messages[2].tool_call_id", "absent")
    assert str(violation) == "messages[2].tool_call_id: absent (R4.3-4)"
    assert repr(violation) == (
        "RequestViolation(requirement='R4.3-4', severity='error', path='messages[2].tool_call_id', message='absent')"
    )
    twin = pickle.loads(pickle.dumps(violation))
    assert twin == violation
    assert hash(twin) == hash(violation)
    assert violation != kit.RequestViolation("R4.3-4", "error", "", "absent")
    with pytest.raises(AttributeError):
        violation.path = ""
    with pytest.raises(AttributeError):
        del violation.path


# Base64 against the standard library: strict is what it would write, lenient what it reads.
@given(
    data=st.binary(max_size=12).map(lambda data: base64.b64encode(data).decode())
    | st.text("AQgwEIMB9+/-_=.\n é", max_size=9)
    | st.binary(max_size=12).map(lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="))
)
def test_r4_3_1_2_base64_as_the_standard_library_has_it(kit: Any, data: str) -> None:
    try:
        exact = base64.b64encode(base64.b64decode(data, validate=True)).decode() == data
    except ValueError:
        exact = False
    try:
        plain = data.replace("-", "+").replace("_", "/")
        plain += "" if "=" in plain else "=" * (-len(plain) % 4)
        base64.b64decode(plain, validate=True)
        readable = len(plain) % 4 == 0
    except ValueError:
        readable = False
    request = kit.Request.from_json(json.dumps(changed(f"{IMAGE}/data", data)))
    severities = [violation.severity for violation in request.validate(strict=True)]
    assert severities == ([] if exact else [E])
    assert [violation.severity for violation in request.validate()] == ([] if exact else [W] if readable else [E])


@pytest.mark.parametrize("at", [0, 1, 65535, 65536, 65537, 131071, 131072, 199_999])
def test_r4_3_1_2_long_data_is_checked_to_the_end(kit: Any, at: int) -> None:
    data = "A" * 200_000
    for character, severity in (("A", None), ("_", W), ("!", E), ("\ud83d", E), ("\u0101", E)):
        part = {"type": "audio", "media_type": "a/b", "data": data[:at] + character + data[at + 1 :]}
        request = kit.Request._of({**whole(), "messages": [{"role": "user", "content": [part]}], "tools": []})
        assert [violation.severity for violation in request.validate()] == ([severity] if severity else [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ANYTHING = (
    JSON | st.sampled_from(["user", "assistant", "tool", "text", "image", "c", "1.0", [], {}, [[]], [{}], True])
).map(copy.deepcopy)


@given(data=st.data())
def test_wrong_types_everywhere(kit: Any, llmstream: Any, data: st.DataObject) -> None:
    body: Any = whole()
    for _ in range(data.draw(st.integers(1, 4))):
        place: Any = body
        while isinstance(place, (dict, list)) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
            if data.draw(st.booleans()) or not isinstance(place[key], (dict, list)) or not place[key]:
                place[key] = data.draw(ANYTHING)
                break
            place = place[key]
    text = json.dumps(body).replace("Infinity", "1e999")
    request = kit.Request.from_json(text)
    touched(request)
    strict = request.validate(strict=True)
    assert len(request.validate()) == len(strict)
    try:
        kit.Request.from_json(text, strict=True)
        assert not [violation for violation in strict if violation.severity == E]
    except llmstream.RequestError:
        assert [violation for violation in strict if violation.severity == E]


def touched(request: Any) -> None:
    """Reads all that a request has."""
    for name in ("version", "stream", "model", "metadata", "request_id", "extensions", "extra"):
        getattr(request, name)
    for message in request.messages:
        for name in ("role", "content", "parts", "text", "name", "tool_call_id", "tool_calls", "extra"):
            getattr(message, name)
        for part in message.parts:
            repr((part, part.type, part.extra))
    for tool in request.tools:
        repr((tool.name, tool.description, tool.parameters, tool.extra))
    parameters = request.parameters
    repr((parameters.max_tokens, parameters.temperature, parameters.top_p, parameters.stop_sequences, parameters.extra))
    repr(request)
    hash(request)
    request.json()
    request.to_json()


@given(body=st.binary(max_size=60) | st.text(max_size=60) | st.text('{}[]":,\\ud8da01e.-\ufeff', max_size=60))
def test_anything_at_all(kit: Any, llmstream: Any, body: Any) -> None:
    for strict in (False, True):
        requirement = None
        try:
            touched(kit.Request.from_json(body, strict=strict))
        except llmstream.RequestError as error:
            requirement = error.requirement
        assert strict or requirement in (None, "R4.2-1", "L-DEPTH")
