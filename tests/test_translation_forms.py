"""Other forms of one request: what JSON for Protocol Buffers allows to Gemini's clients, media types in any case. And
whatever a request is made of, each piece of it arrives or is told as lost by its path."""

from __future__ import annotations

import base64
import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from test_translation import GEMINI, NOTE, PDF, PNG, SOUND, VENDORS, WEATHER, back, requests, to

# One object where an array is usual, and names in snake case

ARRAYS = ("contents", "parts", "tools", "functionDeclarations", "stopSequences")


def places(value: Any, steps: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The steps to every array of one item that a client may write as the item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [place for step, inner in items for place in places(inner, (*steps, step))]
    return found + ([steps] if steps and steps[-1] in ARRAYS and len(value) == 1 else [])


def single(body: dict[str, Any], place: tuple[Any, ...]) -> dict[str, Any]:
    """The body with one such array as its item."""
    changed: Any = copy.deepcopy(body)
    holder = changed
    for step in place[:-1]:
        holder = holder[step]
    (holder[place[-1]],) = holder[place[-1]]
    return changed


SMALL = {
    "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": WEATHER}]}],
    "generationConfig": {"stopSequences": ["END"], "maxOutputTokens": 5},
}


def snakes(value: Any) -> Any:
    """The same with the names of Gemini's members in snake case."""
    if isinstance(value, list):
        return [snakes(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name): (
            inner if name in ("args", "response", "parametersJsonSchema") else snakes(inner)
        )
        for name, inner in value.items()
    }


def test_one_object_stands_for_an_array_of_one(llmstream):
    """As the examples of Gemini's documentation have it: ``"contents": {"parts": {"text": ...}}``."""
    for body in (SMALL, GEMINI):
        expected = back(llmstream, "gemini", body, model="m")
        assert len(places(body)) >= 4
        for place in places(body):
            assert back(llmstream, "gemini", single(body, place), model="m") == expected
        for place in sorted(places(body), key=len, reverse=True):
            body = single(body, place)
        assert back(llmstream, "gemini", body, model="m") == expected


def test_names_in_snake_case(llmstream):
    for body in (SMALL, GEMINI):
        assert snakes(body) != body
        assert back(llmstream, "gemini", snakes(body), model="m") == back(llmstream, "gemini", body, model="m")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("safetySettings", [{}]),
        ("toolConfig", {"a": 1}),
        ("cachedContent", "SECRET"),
        ("labels", {"a": "SECRET"}),
    ],
)
def test_what_is_lost_is_told_by_its_documented_name_in_either_form(llmstream, name, value):
    for body in ({name: value}, snakes({name: value})):
        assert back(llmstream, "gemini", {"contents": [], **body}, model="m")[1] == [name]


def test_the_path_of_one_object_has_no_number(llmstream):
    body = {"contents": {"parts": {"text": "Hi", "thoughtSignature": "SECRET"}}, "tools": {"google_search": {}}}
    found, lost = back(llmstream, "gemini", body, model="m")
    assert lost == ["contents.parts.thoughtSignature", "tools.googleSearch"]
    assert found["messages"] == [{"role": "user", "content": "Hi"}]
    with pytest.raises(llmstream.RequestError) as raised:
        llmstream.from_vendor({"contents": {"parts": {"text": 5}}}, "gemini")
    assert raised.value.path == "contents.parts.text"


def test_a_name_in_both_forms_is_told(llmstream):
    pairs: list[tuple[dict[str, Any], list[str]]] = [
        (
            {"systemInstruction": {"parts": [{"text": "a"}]}, "system_instruction": {"parts": [{"text": "SECRET"}]}},
            ["systemInstruction"],
        ),
        ({"generation_config": {"top_k": 1, "topK": 2}}, ["generationConfig.topK"]),
        ({"generation_config": {"top_k": None, "topK": 2}}, []),
        (
            {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}, "inline_data": {}}]}]},
            ["contents[0].parts[0].inlineData"],
        ),
        (
            {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"any_of": [], "anyOf": [{}]}}]}]},
            ["tools[0].functionDeclarations[0].parameters"],
        ),
    ]
    for body, paths in pairs:
        assert back(llmstream, "gemini", {"contents": [], **body}, model="m")[1] == paths


def test_numbers_as_strings(llmstream):
    """JSON for Protocol Buffers takes them for every number."""
    config = {"maxOutputTokens": "100", "temperature": "0.5", "topK": "7", "seed": "-3", "topP": "1e-1"}
    found, lost = back(llmstream, "gemini", {"contents": [], "generationConfig": config}, model="m")
    expected = {"max_tokens": 100, "temperature": 0.5, "top_k": 7, "seed": -3, "top_p": 0.1}
    assert (found["parameters"], lost) == (expected, [])
    for value in ("", "NaN", "Infinity", "null", "true", "[1]", "1 2", "9" * 5000):
        with pytest.raises(llmstream.RequestError, match="topK"):
            llmstream.from_vendor({"contents": [], "generationConfig": {"topK": value}}, "gemini")


# Results of Gemini's functions


def responses(response: Any, **more: Any) -> dict[str, Any]:
    call = {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]}
    answer = {"functionResponse": {"id": "c", "name": "f", "response": response, **more}}
    return {"contents": [call, {"role": "user", "parts": [answer]}]}


RESPONSE = "contents[1].parts[0].functionResponse"


@pytest.mark.parametrize(
    ("response", "content", "paths"),
    [
        ({"output": "18C"}, "18C", []),
        ({}, "", []),
        (None, "", []),
        ({"celsius": 18}, '{"celsius":18}', [f"{RESPONSE}.response"]),
        ({"output": 18}, '{"output":18}', [f"{RESPONSE}.response"]),
        ({"output": "a", "b": 1}, '{"output":"a","b":1}', [f"{RESPONSE}.response"]),
        ({"error": "no"}, '{"error":"no"}', [f"{RESPONSE}.response"]),
    ],
)
def test_a_result_that_gets_another_form_is_told(llmstream, response, content, paths):
    found, lost = back(llmstream, "gemini", responses(response), model="m")
    assert (found["messages"][1], lost) == ({"role": "tool", "tool_call_id": "c", "content": content}, paths)


def test_what_a_result_says_of_its_call_is_told_where_no_call_says_it(llmstream):
    for more in ({"id": "other"}, {"name": "g"}):
        assert back(llmstream, "gemini", responses({"output": "a"}, **more), model="m")[1] == [f"{RESPONSE}.name"]
    twice = responses({"output": "a"})
    twice["contents"].insert(1, twice["contents"][0])
    assert back(llmstream, "gemini", twice, model="m")[1] == ["contents[1].parts[0].functionCall.id"]


# Media types


def content(kind: str, media_type: str, data: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": kind, "media_type": media_type, "data": data}]}]}


MEDIA = [
    ("image", "image/png", PNG),
    ("image", "image/jpeg", PNG),
    ("document", "application/pdf", PDF),
    ("document", "text/plain", NOTE),
    ("audio", "audio/wav", SOUND),
    ("audio", "audio/mpeg", SOUND),
]


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(("kind", "media_type", "data"), MEDIA)
def test_a_media_type_in_any_case_is_the_same(llmstream, vendor, kind, media_type, data):
    """RFC 9110, section 8.3.1."""
    expected, lost = to(llmstream, vendor, **content(kind, media_type, data))
    for other in (media_type.upper(), media_type.title()):
        assert to(llmstream, vendor, **content(kind, other, data))[1] == lost
        found = json.loads(
            json.dumps(to(llmstream, vendor, **content(kind, other, data))[0]).replace(other, media_type)
        )
        assert found == expected


def test_parameters_of_a_media_type(llmstream):
    where = "messages[0].content[0]"
    for media_type, kind, data, paths in (
        ("Text/Plain; Charset=UTF-8", "document", NOTE, []),
        ("text/plain;charset=us-ascii", "document", "AAEC", []),
        ("text/plain;charset=iso-8859-1", "document", NOTE, [where, "messages[0]"]),
        ("text/plain;format=flowed", "document", NOTE, [f"{where}.media_type"]),
        ("image/png;a=b", "image", PNG, [f"{where}.media_type"]),
        ("\u0130mage/png;a", "image", PNG, [where, "messages[0]"]),
    ):
        assert [path for path, _ in to(llmstream, "anthropic", **content(kind, media_type, data))[1]] == paths
    assert to(llmstream, "openai", **content("audio", "audio/wav;codecs=1", SOUND))[1][0][0] == f"{where}.media_type"


# Nothing is dropped in silence


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Path and value of all that a value is made of."""
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() for leaf in leaves(inner, f"{path}.{name}" if path else name)]
    if isinstance(value, list):
        return [leaf for number, inner in enumerate(value) for leaf in leaves(inner, f"{path}[{number}]")]
    return [(path, value)]


def marked(value: Any, numbers: Any, name: str = "") -> Any:
    """The value with every text that is content as one of its own: it can be found again."""
    if isinstance(value, dict):
        is_plain = value.get("type") == "text"  # a document of Anthropic's that is no base64
        return {
            key: marked(inner, numbers, "plain" if is_plain and key == "data" else key) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [marked(inner, numbers, name) for inner in value]
    if not isinstance(value, str) or name in KEPT:
        return value
    mark = f"mark{next(numbers)}x"
    data = encoded(mark)
    written = {
        "data": data,
        "plain": mark.ljust(18),
        "url": f"data:image/png;base64,{data}",
        "file_data": f"data:application/pdf;base64,{data}",
        "arguments": json.dumps({"a": mark}),
    }
    return written.get(name, mark)


def encoded(mark: str) -> str:
    """A mark as the base64 of a file: 24 characters, which begin alike."""
    return base64.b64encode(mark.encode().ljust(18)).decode()


MARK = re.compile(r"mark\d+x|bWFya[A-Za-z0-9+/]{19}")
KEPT = {
    "type",
    "role",
    "media_type",
    "mimeType",
    "format",
    "version",
    "id",
    "tool_call_id",
    "tool_use_id",
    "detail",
    "filename",
}


def is_told(path: str, lost: list[str]) -> bool:
    """Whether a path, or one that it begins with, is among those lost; names that are not documented are ``*``, and
    those of Gemini's in snake case are shown in the other form."""
    return lost_as(path, lost) or lost_as(re.sub("_([a-z])", lambda found: found[1].upper(), path), lost)


def lost_as(path: str, lost: list[str]) -> bool:
    for each in lost:
        pattern = re.escape(each).replace(r"\*", r"[^.\[]*")
        if re.match(f"{pattern}(?:$|[.\\[])", path, re.DOTALL):
            return True
    return False


def unsaid(body: Any, output: bytes, lost: list[str]) -> list[str]:
    """The paths of marked texts that neither arrived nor are told as lost."""
    said = set(MARK.findall(output.decode()))
    for found in list(said):
        # A file of text is text in some formats.
        said.add(base64.b64decode(found).decode().rstrip() if found.startswith("bWFya") else encoded(found))
    return [
        path
        for path, value in leaves(body)
        if isinstance(value, str)
        if (mark := MARK.search(value)) and mark[0] not in said and not is_told(path, lost)
    ]


EXTRAS = {
    "openai": st.sampled_from(
        ["refusal", "annotations", "name", "tool_choice", "strict", "user", "metadata", "acme", "detail", "audio"]
    ),
    "anthropic": st.sampled_from(
        ["cache_control", "citations", "title", "context", "is_error", "thinking", "tool_choice", "acme", "metadata"]
    ),
    "gemini": st.sampled_from(
        ["thoughtSignature", "thought_signature", "videoMetadata", "safetySettings", "tool_config", "acme", "labels"]
    ),
}


@st.composite
def bodies(draw: st.DrawFn, llmstream: Any, vendor: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A vendor's body as its clients write them, with members here and there that the draft has no place for."""
    done = llmstream.to_vendor(llmstream.Request.from_json(json.dumps(draw(requests()))), vendor)
    body = json.loads(done.to_json())
    objects = [body]
    for each in objects:
        inners = each.values() if isinstance(each, dict) else each
        objects += [inner for inner in inners if isinstance(inner, (dict, list)) and inner]
    for _ in range(draw(st.integers(0, 4))):
        holder = draw(st.sampled_from([each for each in objects if isinstance(each, dict)]))
        name = draw(EXTRAS[vendor])
        if name not in holder:
            holder[name] = draw(st.sampled_from([{"b": "t"}, {"b": ["t", {"c": "t"}]}])) if name != "name" else "t"
    if draw(st.booleans()):
        for each in objects:
            if isinstance(each, list) and len(each) > 1 and all(isinstance(inner, dict) for inner in each):
                each[:] = draw(st.permutations(each))
    return marked(body, iter(range(10**6))), {"model": "m", "stream": done.stream} if vendor == "gemini" else {}


@pytest.mark.parametrize("vendor", VENDORS)
@given(data=st.data())
def test_each_text_of_a_standard_request_arrives_or_is_told(llmstream, vendor, data):
    envelope = marked(data.draw(requests()), iter(range(10**6)))
    done = llmstream.to_vendor(llmstream.Request.from_json(json.dumps(envelope)), vendor)
    told = [loss.path for loss in done.lost]
    assert unsaid(envelope, done.to_json() + done.model.encode(), told) == []


@pytest.mark.parametrize("vendor", VENDORS)
@given(data=st.data())
def test_each_text_of_a_body_arrives_or_is_told(llmstream, vendor, data):
    """And goes to the vendor again: what is not told either time is there."""
    body, url = data.draw(bodies(llmstream, vendor))
    try:
        done = llmstream.from_vendor(body, vendor, **url)
    except llmstream.RequestError:
        return  # a member with an extra one in its place
    told = [loss.path for loss in done.lost]
    assert unsaid(body, done.to_json(), told) == []
    try:
        again = llmstream.to_vendor(done.value, vendor)
    except llmstream.RequestError:
        return
    assert unsaid(done.value.json(), again.to_json() + again.model.encode(), [loss.path for loss in again.lost]) == []
    if not (done.lost or again.lost):
        assert llmstream.from_vendor(again.value, vendor, **url).value == done.value
