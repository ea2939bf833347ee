"""Tool calls that came in a stream, checked before they are run (draft, section 8.2)."""

from __future__ import annotations

import importlib
import importlib.util
import json
import socket
from typing import Any

import pytest

CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "units": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["city"],
}
needs_jsonschema = pytest.mark.skipif(importlib.util.find_spec("jsonschema") is None, reason="needs jsonschema")


@pytest.fixture(scope="session")
def kit(llmstream: Any) -> Any:
    return importlib.import_module("llmstream.request")


def tools(kit: Any, schema: Any = CITY) -> list[Any]:
    return [
        kit.Tool(name="get_weather", description="Get current weather for a city.", parameters=schema),
        kit.Tool(name="rm", description="", parameters={}),
    ]


def call(llmstream: Any, arguments: str | None, name: str | None = "get_weather") -> Any:
    return llmstream.ToolCall(id="call_1", name=name, arguments=arguments)


def told(found: Any) -> list[tuple[str, str]]:
    """What is found; only the rules of ours can be warnings."""
    assert {violation.severity for violation in found if violation.requirement[0] == "R"} <= {"error"}
    return [(violation.requirement, violation.path) for violation in found]


def nothing(schema: Any, arguments: Any) -> list[Any]:
    return []


def test_r8_2_1_a_declared_tool(kit: Any, llmstream: Any) -> None:
    request = kit.Request(model="m", messages=[kit.Message(role="user", content="x")], tools=tools(kit))
    for declared in (request, tools(kit), iter(tools(kit))):
        assert kit.check_tool_call(call(llmstream, '{"city":"Vienna"}'), declared) == []


@pytest.mark.parametrize("name", ["get_weather ", "Get_weather", "rm -rf", "", None])
def test_r5_3_4_3_r8_2_1_a_tool_that_was_not_declared(kit: Any, llmstream: Any, name: str | None) -> None:
    found = kit.check_tool_call(call(llmstream, "{}", name), tools(kit))
    assert told(found) == [("R5.3.4-3", "name")]
    assert found[0].severity == "error"
    assert told(kit.check_tool_call(call(llmstream, "{}", "get_weather"), [])) == [("R5.3.4-3", "name")]


def test_r8_2_1_a_tool_without_a_name_is_none(kit: Any, llmstream: Any) -> None:
    request = kit.Request.from_json('{"tools":[{"description":"d"},5,{"name":null}]}')
    assert told(kit.check_tool_call(call(llmstream, "{}", None), request)) == [("R5.3.4-3", "name")]


@pytest.mark.parametrize("arguments", [None, "", "{", "{}{}", "{'city':1}", '{"city":NaN}', "[1,]", "x"])
def test_r5_3_4_4_arguments_that_are_no_json(kit: Any, llmstream: Any, arguments: str | None) -> None:
    assert told(kit.check_tool_call(call(llmstream, arguments), tools(kit))) == [("R5.3.4-4", "arguments")]
    assert told(kit.check_tool_call(call(llmstream, arguments, "x"), tools(kit))) == [
        ("R5.3.4-3", "name"),
        ("R5.3.4-4", "arguments"),
    ]


def test_arguments_that_two_readers_read_differently(kit: Any, llmstream: Any) -> None:
    for arguments, requirement in (
        ('{"city":"a","city":"b"}', "L-DUPLICATE"),
        ('{"a":{"city":"a","city":"b"}}', "L-DUPLICATE"),
        ('{"city":"\\ud83d"}', "L-SURROGATE"),
        ('{"city":' + "[" * 1000 + "]" * 1000 + "}", "L-DEPTH"),
        ('{"city":' + "[" * 10**5, "L-DEPTH"),
    ):
        assert told(kit.check_tool_call(call(llmstream, arguments), tools(kit), schema=nothing)) == [
            (requirement, "arguments")
        ]


@needs_jsonschema
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"city": "Vienna"}, []),
        ({"city": "Vienna", "units": "celsius", "days": [1, 2.0], "more": None}, []),
        ({}, [("arguments", "required")]),
        ([], [("arguments", "type")]),
        ({"city": 1}, [("arguments.city", "type")]),
        ({"city": "V", "units": "kelvin"}, [("arguments.units", "enum")]),
        ({"city": "V", "days": [1, "x", True]}, [("arguments.days[1]", "type"), ("arguments.days[2]", "type")]),
    ],
)
def test_r8_2_1_arguments_against_the_schema(kit: Any, llmstream: Any, arguments: Any, found: Any) -> None:
    violations = kit.check_tool_call(call(llmstream, json.dumps(arguments)), tools(kit))
    assert told(violations) == [("R8.2-1", path) for path, _ in found]
    assert [violation.message.rpartition(": ")[2] for violation in violations] == [keyword for _, keyword in found]


@needs_jsonschema
def test_r8_1_1_a_fault_has_no_content(kit: Any, llmstream: Any) -> None:
    schema = {"additionalProperties": {"type": "integer"}, "properties": {"city": {"const": "SECRET"}}}
    arguments = json.dumps({"SECRET": "SECRET", "city": "x SECRET"})
    found = kit.check_tool_call(call(llmstream, arguments), tools(kit, schema))
    assert sorted(told(found)) == [("R8.2-1", "arguments.*"), ("R8.2-1", "arguments.city")]
    assert "SECRET" not in str(found) + "".join(map(str, found))


@needs_jsonschema
@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"type": "nothing"},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "other.json"},
        {"properties": {"city": {"pattern": "("}}},
        {"required": "city"},
    ],
)
def test_a_schema_that_cannot_be_used_lets_nothing_through(kit: Any, llmstream: Any, schema: Any) -> None:
    found = kit.check_tool_call(call(llmstream, '{"city":"Vienna"}'), tools(kit, schema))
    assert told(found)[-1] == ("R4.4-1", "arguments")


@needs_jsonschema
def test_no_reference_is_fetched(kit: Any, llmstream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[Any] = []
    monkeypatch.setattr(socket, "create_connection", lambda *where, **_: connected.append(where))
    for reference in ("http://127.0.0.1:9/schema.json", "https://127.0.0.1:9/schema.json"):
        found = kit.check_tool_call(call(llmstream, "{}"), tools(kit, {"$ref": reference}))
        assert told(found) == [("R4.4-1", "arguments")]
    assert connected == []


@needs_jsonschema
def test_many_faults_are_bounded(kit: Any, llmstream: Any) -> None:
    arguments = json.dumps({"city": "V", "days": ["x"] * 10_000})
    assert len(kit.check_tool_call(call(llmstream, arguments), tools(kit))) == 100


@needs_jsonschema
def test_the_schema_names_its_version(kit: Any, llmstream: Any) -> None:
    items = [{"type": "string"}]
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": items}
    assert told(kit.check_tool_call(call(llmstream, "[1]"), tools(kit, draft7))) == [("R8.2-1", "arguments[0]")]
    assert told(kit.check_tool_call(call(llmstream, "[1]"), tools(kit, {"prefixItems": items}))) == [
        ("R8.2-1", "arguments[0]")
    ]


def test_another_check_of_the_schema(kit: Any, llmstream: Any) -> None:
    rules = importlib.import_module("llmstream.rules")
    seen = []

    def check(schema: Any, arguments: Any) -> Any:
        seen.append((schema, arguments))
        yield rules.ARGUMENTS_REFUSED, "arguments.city", "mine"

    found = kit.check_tool_call(call(llmstream, '{"city":1}'), tools(kit), schema=check)
    assert told(found) == [("R8.2-1", "arguments.city")]
    assert found[0].message.endswith(": mine")
    assert seen == [(CITY, {"city": 1})]


def test_without_the_library_arguments_are_not_compared(
    kit: Any, llmstream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jsonschema" else found(name))
    assert kit.check_tool_call(call(llmstream, '{"city":1}'), tools(kit)) == []
    assert told(kit.check_tool_call(call(llmstream, "{"), tools(kit))) == [("R5.3.4-4", "arguments")]


def test_r8_2_2_only_what_is_confirmed_may_run(kit: Any, llmstream: Any) -> None:
    right = llmstream.ToolCall(id="1", name="get_weather", arguments='{"city":"Vienna"}')
    wrong = llmstream.ToolCall(id="2", name="unknown", arguments="{}")
    dangerous = llmstream.ToolCall(id="3", name="rm", arguments="{}")
    asked = []

    def confirm(call: Any, tool: Any) -> bool:
        asked.append((call, tool.name))
        return call.name != "rm"

    result = llmstream.StreamResult(tool_calls=[right, wrong, dangerous])
    for calls in (result, [right, wrong, dangerous], iter([llmstream.ContentDelta(text="x"), right, wrong, dangerous])):
        asked.clear()
        approved, refused = kit.screen_tool_calls(calls, tools(kit), confirm=confirm)
        assert approved == [right]
        assert [(call.id, told(found)) for call, found in refused] == [
            ("2", [("R5.3.4-3", "name")]),
            ("3", [("R8.2-2", "")]),
        ]
        assert asked == [(right, "get_weather"), (dangerous, "rm")]


@pytest.mark.parametrize("answer", [None, 0, 1, "yes", [True], object()])
def test_r8_2_2_only_true_confirms(kit: Any, llmstream: Any, answer: Any) -> None:
    calls = [llmstream.ToolCall(id="1", name="rm", arguments="{}")]
    assert kit.screen_tool_calls(calls, tools(kit), confirm=lambda call, tool: answer)[0] == []
    with pytest.raises(TypeError):
        kit.screen_tool_calls(calls, tools(kit))


def test_calls_that_could_not_be_answered_are_refused_before_they_run(kit: Any, llmstream: Any) -> None:
    right = llmstream.ToolCall(id="1", name="get_weather", arguments='{"city":"Vienna"}')
    [nameless] = llmstream.Parser().feed_payload(
        b'{"v":"1.0","seq":0,"type":"tool.call","index":0,"name":"get_weather","arguments":"{\\"city\\":\\"Vienna\\"}"}'
    )
    asked = []
    approved, refused = kit.screen_tool_calls(
        [right, right, nameless], tools(kit), confirm=lambda call, tool: asked.append(call) or True
    )
    assert approved == asked == [right]
    assert [told(found) for _, found in refused] == [[("R5.3.4-2", "id")], [("R5.3.4-1", "id")]]


@pytest.mark.parametrize(
    ("items", "fits"),
    [
        ([1, 2, "1", True, None, [1], {"a": 1}], True),
        ([1, 1.0], False),
        ([0, False], True),
        ([{"a": [1, 2.0]}, {"a": [1.0, 2]}], False),
        ([{"x": number} for number in range(20_000)], True),
    ],
)
def test_unique_items_take_linear_time(kit: Any, llmstream: Any, items: Any, fits: bool) -> None:
    pytest.importorskip("jsonschema")
    schema = {"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True}}}
    call = llmstream.ToolCall(id="1", name="tag", arguments=json.dumps({"tags": items}))
    found = kit.check_tool_call(call, [kit.Tool(name="tag", description="d", parameters=schema)])
    assert told(found) == ([] if fits else [("R8.2-1", "arguments.tags")])
