"""The request envelope: built, read, kept and written (draft, section 4). What is wrong with one is in
test_request_rules.py; a name such as ``test_r4_3_1_3_...`` is of requirement R4.3.1-3."""

from __future__ import annotations

import base64
import copy
import importlib
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

# Section 4.3, 4.3.1, 4.4, 4.6 and 4.7 of the draft, as printed, in one envelope.
PRINTED = r"""
{"version": "1.0", "stream": true, "model": "example-model",
"messages": [
{"role": "system",
"content": "You are a coding assistant."},
{"role": "user",
"content": "Write a Python function to sort a list."},
{"role": "assistant",
"content": "def sort_list(items):\n return sorted(items)"},
{"role": "user",
"content": "Now make it sort in reverse order."},
{"role": "user", "content": [
{"type": "text", "text": "What is shown in this image?"},
{"type": "image", "media_type": "image/png",
"data": "iVBORw0KGgo="}
]}
],
"tools": [
{"name": "get_weather",
"description": "Get current weather for a city.",
"parameters": {
"type": "object",
"properties": {
"city": {"type": "string",
"description": "City name, e.g. Vienna"},
"units": {"type": "string",
"enum": ["celsius", "fahrenheit"]}
},
"required": ["city"]
}}
],
"metadata": {
"request_id": "550e8400-e29b-41d4-a716-446655440000",
"user_id": "user-12345",
"session_id": "sess-67890"
},
"extensions": {
"vendor:openai": {"logprobs": true},
"vendor:anthropic": {
"thinking": {"type": "enabled",
"budget_tokens": 10000}}
}}
"""


@pytest.fixture(scope="session")
def kit(llmstream: Any) -> Any:
    return importlib.import_module("llmstream.request")


def compact(text: str) -> bytes:
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False).encode()


def test_the_printed_examples_are_right_and_kept(kit: Any) -> None:
    request = kit.Request.from_json(PRINTED, strict=True)
    assert request.validate(strict=True) == []
    assert request.to_json() == compact(PRINTED)
    assert (request.version, request.stream, request.model) == ("1.0", True, "example-model")
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user", "user"]
    assert request.messages[2].text == "def sort_list(items):\n return sorted(items)"
    assert request.tools[0].parameters["properties"]["units"]["enum"] == ["celsius", "fahrenheit"]
    assert request.request_id == "550e8400-e29b-41d4-a716-446655440000"
    assert request.extensions["vendor:openai"] == {"logprobs": True}


def test_the_printed_examples_built_by_hand(kit: Any) -> None:
    printed = json.loads(PRINTED)
    request = kit.Request(
        model="example-model",
        messages=[
            kit.Message(role="system", content="You are a coding assistant."),
            kit.Message(role="user", content="Write a Python function to sort a list."),
            kit.Message(role="assistant", content="def sort_list(items):\n return sorted(items)"),
            kit.Message(role="user", content="Now make it sort in reverse order."),
            kit.Message(
                role="user",
                content=[
                    kit.TextPart(text="What is shown in this image?"),
                    kit.ImagePart(media_type="image/png", data=b"\x89PNG\r\n\x1a\n"),
                ],
            ),
        ],
        tools=[kit.Tool(**printed["tools"][0])],
        metadata=printed["metadata"],
        extensions=printed["extensions"],
    )
    assert request == kit.Request.from_json(PRINTED)
    assert hash(request) == hash(kit.Request.from_json(PRINTED))
    assert request.to_json() == compact(PRINTED)


def test_what_a_request_is_made_of(kit: Any) -> None:
    parameters = kit.Parameters(max_tokens=5, temperature=0.5, top_p=1, stop_sequences=("a", "b"), extra={"top_k": 40})
    assert (parameters.max_tokens, parameters.temperature, parameters.top_p) == (5, 0.5, 1)
    assert (parameters.stop_sequences, parameters.extra) == (("a", "b"), {"top_k": 40})
    assert kit.Parameters().json() == {}
    message = kit.Message(role="user", content="x", name="Ann", extra={"cache": [1]})
    assert (message.role, message.content, message.name, message.extra) == ("user", "x", "Ann", {"cache": [1]})
    assert (message.tool_call_id, message.tool_calls) == (None, ())
    tool = kit.Tool(name="f", description="d", parameters={"type": "object"}, extra={"strict": True})
    assert (tool.name, tool.description, tool.parameters, tool.extra) == (
        "f",
        "d",
        {"type": "object"},
        {"strict": True},
    )
    for kind, name in ((kit.ImagePart, "image"), (kit.DocumentPart, "document"), (kit.AudioPart, "audio")):
        part = kind(media_type="a/b", data="AAEC", extra={"title": "t"})
        assert part.json() == {"type": name, "media_type": "a/b", "data": "AAEC", "title": "t"}
        assert (part.type, part.media_type, part.data, part.decoded()) == (name, "a/b", "AAEC", b"\0\1\2")
        assert part.extra == {"title": "t"}
    assert kit.UnknownPart(type="video", extra={"url": "u"}).json() == {"type": "video", "url": "u"}


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_r4_3_1_2_bytes_become_base64(kit: Any, data: bytes) -> None:
    part = kit.ImagePart(media_type="image/png", data=data)
    assert part.data == base64.b64encode(data).decode()
    assert part.decoded() == data
    assert kit.AudioPart._of({"type": "audio", "data": base64.urlsafe_b64encode(data).decode()}).decoded() == data
    assert kit.AudioPart._of({"type": "audio", "data": part.data.rstrip("=")}).decoded() == data


def test_r4_3_1_2_what_is_not_base64_is_not_decoded(kit: Any) -> None:
    with pytest.raises(ValueError, match=r"^data: not base64$"):
        kit.ImagePart(media_type="image/png", data="SECRET!").decoded()


def test_r4_3_1_3_both_forms_say_the_same_and_stay_what_they_were(kit: Any) -> None:
    text = kit.Request.from_json('{"messages":[{"role":"user","content":"x"}]}')
    array = kit.Request.from_json('{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}')
    first, second = text.messages[0], array.messages[0]
    assert first.parts == second.parts == (kit.TextPart(text="x"),)
    assert first.text == second.text == "x"
    assert first.content == "x"
    assert second.content == (kit.TextPart(text="x"),)
    assert text.to_json() == b'{"messages":[{"role":"user","content":"x"}]}'
    assert array.to_json() == b'{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}'


def test_r4_3_6_order_is_kept(kit: Any) -> None:
    request = kit.Request(model="m", messages=[kit.Message(role="user", content=str(n)) for n in range(50)])
    assert [message.text for message in kit.Request.from_json(request.to_json()).messages] == list(map(str, range(50)))


def test_r4_2_4_the_model_is_opaque(kit: Any) -> None:
    for model in ("", " ", "a/b:c@d", "é\U0001f600", "\u2028", "\0"):
        request = kit.Request(model=model, messages=[kit.Message(role="user", content="x")])
        assert kit.Request.from_json(request.to_json(), strict=True).model == model


def test_r1_4_1_unknown_members_of_every_level_change_nothing(kit: Any) -> None:
    plain = json.loads(PRINTED)
    for value in (None, True, 1.5, "x", [1, {"role": "tool"}], {"messages": 5, "a": {"b": None}}):
        body = json.loads(PRINTED)
        for place in (body, *body["messages"], *body["messages"][4]["content"], *body["tools"], body["metadata"]):
            place["x-new"] = value
        request = kit.Request.from_json(json.dumps(body), strict=True)
        assert request.validate(strict=True) == []
        assert json.loads(request.to_json()) == body
        assert request.extra == request.messages[0].extra == request.tools[0].extra == {"x-new": value}
        assert [message.text for message in request.messages] == [
            message.text for message in kit.Request.from_json(json.dumps(plain)).messages
        ]


def test_r4_5_3_unknown_parameters_change_nothing(kit: Any) -> None:
    body = {**json.loads(PRINTED), "parameters": {"max_tokens": 3, "top_k": [None, {}], "seed": "x"}}
    request = kit.Request.from_json(json.dumps(body), strict=True)
    assert request.validate(strict=True) == []
    assert (request.parameters.max_tokens, request.parameters.temperature) == (3, None)
    assert request.parameters.extra == {"top_k": [None, {}], "seed": "x"}
    assert json.loads(request.to_json()) == body


def test_r4_7_2_r8_3_1_extension_values_are_data(kit: Any) -> None:
    values = {"a:b": "__import__('os')", "c:d": {"$ref": "http://127.0.0.1:9/"}, "e:f": None, "g:h": [[]], "i:j": 1e300}
    request = kit.Request(model="m", messages=[kit.Message(role="user", content="x")], extensions=values)
    assert request.validate(strict=True) == []
    assert kit.Request.from_json(request.to_json(), strict=True).extensions == values


def test_r4_6_1_metadata_is_apart_from_what_the_model_reads(kit: Any) -> None:
    request = kit.Request.from_json(PRINTED)
    without = request.replace(metadata=None)
    assert (without.metadata, without.request_id) == ({}, None)
    assert without.messages == request.messages
    assert without.json() == {name: value for name, value in request.json().items() if name != "metadata"}


def test_what_is_handed_out_is_a_copy(kit: Any) -> None:
    request = kit.Request.from_json(PRINTED)
    before = request.to_json()
    request.json()["messages"].clear()
    request.metadata.clear()
    request.extensions["vendor:openai"].clear()
    request.tools[0].parameters["properties"]["city"].clear()
    request.messages[0].json().clear()
    request.extra.clear()
    assert request.to_json() == before
    schema = {"type": "object", "properties": {"a": {}}}
    tool = kit.Tool(name="f", description="d", parameters=schema)
    schema["properties"]["b"] = {}
    assert tool.parameters == {"type": "object", "properties": {"a": {}}}


def test_values_are_frozen(kit: Any) -> None:
    request = kit.Request.from_json(PRINTED)
    for value in (request, request.messages[0], request.tools[0], request.parameters, request.messages[4].parts[1]):
        for name in ("model", "role", "_members", "new"):
            with pytest.raises(AttributeError):
                setattr(value, name, 1)
            with pytest.raises(AttributeError):
                delattr(value, name)
        assert copy.copy(value) is value
        assert copy.deepcopy(value) is value
        twin = pickle.loads(pickle.dumps(value))
        assert twin == value
        assert type(twin) is type(value)
        assert hash(twin) == hash(value)


def test_equality_is_that_of_the_json(kit: Any) -> None:
    read = kit.Request.from_json
    assert read('{"a":1,"b":[{"c":1,"d":2}]}') == read('{"b":[{"d":2,"c":1}],"a":1}')
    assert read('{"a":1.50}') == read('{"a":1.5}')
    assert read('{"stream":true}') != read('{"stream":1}')
    assert read('{"a":1}') != read('{"a":"1"}')
    assert read("{}") != kit.Message._of({})
    assert read("{}") != {}


def test_r8_1_1_a_repr_shows_no_text(kit: Any) -> None:
    secret = "SECRET"
    body = {
        "model": "m",
        "messages": [
            {"role": secret, "content": secret, "name": secret},
            {"role": "user", "content": [{"type": "text", "text": secret}, {"type": secret, "data": secret}]},
            {"role": "user", "content": [{"type": "image", "media_type": secret, "data": secret}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": secret, "name": secret, "arguments": secret}]},
            {"role": "tool", "tool_call_id": secret, "content": secret},
        ],
        "tools": [{"name": secret, "description": secret, "parameters": {secret: secret}}],
        "parameters": {"stop_sequences": [secret], secret: secret, "max_tokens": secret},
        "metadata": {secret: secret},
        "extensions": {secret: secret},
        secret: secret,
    }
    request = kit.Request.from_json(json.dumps(body))
    everything = [request, request.parameters, *request.messages, *request.tools]
    everything += [part for message in request.messages for part in message.parts]
    for value in everything:
        assert secret not in repr(value) + str(value)
    for violation in request.validate(strict=True):
        assert secret not in repr(violation) + str(violation)
    assert repr(request) == (
        "Request(model='m', messages=<5>, tools=<1>, parameters=<3>, metadata=<1>, extensions=<1>)"
    )
    assert repr(request.messages[1]) == "Message(role='user', content=<2 parts>)"
    assert repr(request.messages[3]) == "Message(role='assistant', tool_calls=<1>)"


def test_a_repr_is_bounded(kit: Any, llmstream: Any) -> None:
    """Whatever the size of what a request holds; a model of usual length is shown."""
    long = "x" * 100_000
    message = {"role": long, "content": long, "name": long, "tool_call_id": long, "type": long}
    call = {"id": long, "name": long, "arguments": long}
    parts = [{"type": "text", "text": long}, {"type": "image", "media_type": long, "data": long}, {"type": long}]
    body = {
        "version": long,
        "model": long,
        "messages": [message, {**message, "content": parts}, {"role": "assistant", "tool_calls": [call] * 5000}] * 500,
        "tools": [{"name": long, "description": long, "parameters": {long: long}}] * 2,
        "parameters": {"max_tokens": 10**299, "temperature": 10**299, "top_p": 0.1, "stop_sequences": [long], long: 1},
        "metadata": {long: long, "request_id": long},
        "extensions": {long: long},
        long: long,
    }
    request = kit.Request._of(body)
    everything = [request, request.parameters, *request.messages[:3], *request.tools, *request.messages[1].parts]
    for value in everything:
        assert len(repr(value)) < 1000
        assert long[:100] not in repr(value)
    assert repr(request).startswith("Request(model=<100000 characters>, messages=<1500>")
    assert repr(kit.Request._of({"model": "vendor/model-1-2026-01-01"})) == "Request(model='vendor/model-1-2026-01-01')"
    assert repr(kit.Request._of({"model": "m" * 100})) == f"Request(model='{'m' * 100}')"
    assert repr(kit.Request._of({})) == "Request(model=None)"
    huge = kit.Request.from_json('{"parameters":{"temperature":' + "1" * 100_000 + "}}")
    assert len(repr(huge.parameters)) < 1000


def test_replace_keeps_what_it_does_not_change(kit: Any) -> None:
    request = kit.Request.from_json('{"model":"a","new":[1],"messages":[],"tools":[],"version":"1.0"}')
    changed = request.replace(model="b", tools=None, parameters=kit.Parameters(max_tokens=1), stream=True)
    assert changed.to_json() == (
        b'{"model":"b","new":[1],"messages":[],"version":"1.0","parameters":{"max_tokens":1},"stream":true}'
    )
    assert request.to_json() == b'{"model":"a","new":[1],"messages":[],"tools":[],"version":"1.0"}'
    assert request.replace(extra={"other": 1}).extra == {"other": 1}
    with pytest.raises(TypeError):
        request.replace(modle="x")
    with pytest.raises(TypeError):
        request.replace(model=None)


NAN = float("nan")
WRONG = {
    "model": lambda kit: kit.Request(model=1, messages=[]),
    "messages": lambda kit: kit.Request(model="m", messages=[{"role": "user", "content": "x"}]),
    "tools": lambda kit: kit.Request(model="m", messages=[], tools=[{}]),
    "parameters": lambda kit: kit.Request(model="m", messages=[], parameters={}),
    "metadata": lambda kit: kit.Request(model="m", messages=[], metadata=[("a", 1)]),
    "metadata key": lambda kit: kit.Request(model="m", messages=[], metadata={1: 2}),
    "extensions": lambda kit: kit.Request(model="m", messages=[], extensions={"a:b": {1, 2}}),
    "extensions bytes": lambda kit: kit.Request(model="m", messages=[], extensions={"a:b": b"x"}),
    "stream": lambda kit: kit.Request(model="m", messages=[], stream=1),
    "extra": lambda kit: kit.Request(model="m", messages=[], extra=5),
    "role": lambda kit: kit.Message(role=None),
    "content": lambda kit: kit.Message(role="user", content=["x"]),
    "name": lambda kit: kit.Message(role="user", content="x", name=1),
    "tool_calls": lambda kit: kit.Message(role="assistant", tool_calls=[{"id": "1"}]),
    "text": lambda kit: kit.TextPart(text=b"x"),
    "media_type": lambda kit: kit.ImagePart(media_type=None, data=""),
    "data": lambda kit: kit.ImagePart(media_type="a/b", data=5),
    "description": lambda kit: kit.Tool(name="f", description=None, parameters={}),
    "schema": lambda kit: kit.Tool(name="f", description="d", parameters=[]),
    "max_tokens": lambda kit: kit.Parameters(max_tokens=1.0),
    "max_tokens bool": lambda kit: kit.Parameters(max_tokens=True),
    "temperature": lambda kit: kit.Parameters(temperature="1"),
    "stop_sequences": lambda kit: kit.Parameters(stop_sequences="stop"),
    "stop_sequence": lambda kit: kit.Parameters(stop_sequences=[1]),
}
IMPOSSIBLE = {
    "surrogate": lambda kit: kit.TextPart(text="\ud83d"),
    "surrogate key": lambda kit: kit.Request(model="m", messages=[], metadata={"\ud83d": 1}),
    "nan": lambda kit: kit.Parameters(temperature=NAN),
    "infinity": lambda kit: kit.Request(model="m", messages=[], extensions={"a:b": [float("-inf")]}),
    "digits": lambda kit: kit.Parameters(max_tokens=10**400),
    "extra": lambda kit: kit.Request(model="m", messages=[], extra={"model": "n"}),
    "known part": lambda kit: kit.UnknownPart(type="image"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_constructor_refuses_a_wrong_type(kit: Any, name: str) -> None:
    with pytest.raises(TypeError):
        WRONG[name](kit)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_constructor_refuses_what_json_cannot_hold(kit: Any, name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        IMPOSSIBLE[name](kit)


def test_a_constructor_refuses_a_value_without_end(kit: Any) -> None:
    endless: list[Any] = []
    endless += [endless, endless]
    with pytest.raises(ValueError, match="nested too deep"):
        kit.Request(model="m", messages=[], metadata={"a": endless})


# Numbers that Python writes otherwise than they came, and text that other writers escape.
@pytest.mark.parametrize(
    "text",
    [
        *("1.10", "1E2", "-0", "-0.0", "1e400", "-1e400", "9" * 5000, "0.1000000000000000055511151231257827"),
        *("9007199254740993", "18446744073709551616", '"\\u2028"', '"\\/"', '"\\u0041"', '"\x7f\u2028\U0001f600"'),
    ],
)
def test_numbers_and_text_survive(kit: Any, text: str) -> None:
    request = kit.Request.from_json(f'{{"a":{text},"b":[{text}]}}')
    written = request.to_json().decode()
    if text.startswith('"'):
        assert json.loads(written)["a"] == json.loads(text)
    else:
        assert written == f'{{"a":{text},"b":[{text}]}}'
    assert pickle.loads(pickle.dumps(request)).to_json().decode() == written


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
EXTRA = st.dictionaries(TEXT.map("x-{}".format), JSON, max_size=2)
MEDIA = st.fixed_dictionaries(
    {"type": st.sampled_from(["image", "document", "audio"]), "media_type": TEXT, "data": st.binary(max_size=9)}
)
CONTENT = TEXT | st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT})
    | MEDIA.map(lambda part: {**part, "data": base64.b64encode(part["data"]).decode()}),
    max_size=3,
)
ENVELOPE = st.fixed_dictionaries(
    {
        "version": st.just("1.0"),
        "stream": st.just(True),
        "model": TEXT,
        "messages": st.lists(
            st.fixed_dictionaries(
                {"role": st.sampled_from(["system", "user", "assistant"]), "content": CONTENT}, optional={"name": TEXT}
            ),
            min_size=1,
            max_size=3,
        ),
    },
    optional={
        "tools": st.lists(
            st.fixed_dictionaries({"name": TEXT, "description": TEXT, "parameters": EXTRA}),
            max_size=2,
            unique_by=lambda tool: tool["name"],
        ),
        "parameters": st.fixed_dictionaries(
            {}, optional={"max_tokens": st.integers(), "top_p": st.floats(0, 1), "stop_sequences": st.lists(TEXT)}
        ),
        "metadata": EXTRA,
        "extensions": st.dictionaries(TEXT.map("vendor:x{}".format), JSON, max_size=2),
    },
)


@given(body=ENVELOPE, extra=EXTRA)
def test_every_right_request_comes_back(kit: Any, body: dict[str, Any], extra: dict[str, Any]) -> None:
    body = {**body, **extra}
    text = json.dumps(body)
    request = kit.Request.from_json(text, strict=True)
    assert request.validate(strict=True) == []
    written = request.to_json()
    assert json.loads(written) == body
    assert list(json.loads(written)) == list(body)
    again = kit.Request.from_json(written, strict=True)
    assert again.to_json() == written
    assert again == request
    assert hash(again) == hash(request)
    # Built from its parts it is the same again.
    rebuilt = kit.Request(
        model=request.model,
        messages=request.messages,
        tools=request.tools if "tools" in body else None,
        parameters=request.parameters if "parameters" in body else None,
        metadata=request.metadata if "metadata" in body else None,
        extensions=request.extensions if "extensions" in body else None,
        extra=request.extra,
    )
    assert rebuilt == request


@given(body=st.dictionaries(st.text(), JSON))
def test_every_object_comes_back(kit: Any, body: dict[str, Any]) -> None:
    body = json.loads(json.dumps(body).encode("utf-8", "replace"))
    request = kit.Request.from_json(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    assert kit.Request.from_json(request.to_json()) == request
