"""Requests between the standard form and OpenAI, Anthropic and Gemini: as the vendors' documentation prints them, there
and back, and each thing that cannot be carried is told by its path."""

from __future__ import annotations

import base64
import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

VENDORS = ["openai", "anthropic", "gemini"]
PNG = base64.b64encode(b"\x89PNG\r\n").decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()
SOUND = base64.b64encode(b"RIFF....WAVE").decode()
NOTE = base64.b64encode("Größe".encode()).decode()
WEATHER = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}

STANDARD = {
    "version": "1.0",
    "stream": True,
    "model": "example-model",
    "messages": [
        {"role": "system", "content": "You are a weather service."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Where is this?"},
                {"type": "image", "media_type": "image/png", "data": PNG},
                {"type": "document", "media_type": "application/pdf", "data": PDF},
            ],
        },
        {
            "role": "assistant",
            "content": "Paris and Vienna.",
            "tool_calls": [
                {"id": "call_1", "name": "get_weather", "arguments": '{"location":"Paris"}'},
                {"id": "call_2", "name": "get_weather", "arguments": '{"location":"Vienna"}'},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "18C"},
        {"role": "tool", "tool_call_id": "call_2", "content": "24C"},
        {"role": "user", "content": "Thanks"},
    ],
    "tools": [{"name": "get_weather", "description": "Current weather", "parameters": WEATHER}],
    "parameters": {"max_tokens": 1024, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"]},
}

OPENAI = {
    "model": "example-model",
    "messages": [
        {"role": "system", "content": "You are a weather service."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Where is this?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                {"type": "file", "file": {"filename": "document", "file_data": f"data:application/pdf;base64,{PDF}"}},
            ],
        },
        {
            "role": "assistant",
            "content": "Paris and Vienna.",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"location":"Paris"}'},
                },
                {
                    "id": "call_2",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"location":"Vienna"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "18C"},
        {"role": "tool", "tool_call_id": "call_2", "content": "24C"},
        {"role": "user", "content": "Thanks"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "get_weather", "description": "Current weather", "parameters": WEATHER},
        }
    ],
    "max_completion_tokens": 1024,
    "temperature": 0.5,
    "top_p": 0.9,
    "stop": ["END"],
    "stream": True,
    "stream_options": {"include_usage": True},
}

ANTHROPIC = {
    "model": "example-model",
    "system": "You are a weather service.",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Where is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Paris and Vienna."},
                {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"location": "Paris"}},
                {"type": "tool_use", "id": "call_2", "name": "get_weather", "input": {"location": "Vienna"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "18C"},
                {"type": "tool_result", "tool_use_id": "call_2", "content": "24C"},
            ],
        },
        {"role": "user", "content": "Thanks"},
    ],
    "tools": [{"name": "get_weather", "description": "Current weather", "input_schema": WEATHER}],
    "max_tokens": 1024,
    "temperature": 0.5,
    "top_p": 0.9,
    "stop_sequences": ["END"],
    "stream": True,
}

GEMINI = {
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "Where is this?"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
                {"inlineData": {"mimeType": "application/pdf", "data": PDF}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "Paris and Vienna."},
                {"functionCall": {"id": "call_1", "name": "get_weather", "args": {"location": "Paris"}}},
                {"functionCall": {"id": "call_2", "name": "get_weather", "args": {"location": "Vienna"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call_1", "name": "get_weather", "response": {"output": "18C"}}},
                {"functionResponse": {"id": "call_2", "name": "get_weather", "response": {"output": "24C"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "Thanks"}]},
    ],
    "systemInstruction": {"parts": [{"text": "You are a weather service."}]},
    "tools": [
        {
            "functionDeclarations": [
                {"name": "get_weather", "description": "Current weather", "parametersJsonSchema": WEATHER}
            ]
        }
    ],
    "generationConfig": {"maxOutputTokens": 1024, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
}

BODIES = {"openai": OPENAI, "anthropic": ANTHROPIC, "gemini": GEMINI}


def request_of(llmstream: Any, envelope: dict[str, Any]) -> Any:
    return llmstream.Request.from_json(json.dumps(envelope))


def to(llmstream: Any, vendor: str, **changes: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The body for a small request with changes, and what was lost."""
    envelope = {"version": "1.0", "stream": True, "model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    done = llmstream.to_vendor(request_of(llmstream, {**envelope, "parameters": {"max_tokens": 5}, **changes}), vendor)
    return done.value, [(loss.path, loss.reason) for loss in done.lost]


def back(llmstream: Any, vendor: str, body: Any, **urls: Any) -> tuple[dict[str, Any], list[str]]:
    """The standard request of a body, and the paths of what was lost."""
    done = llmstream.from_vendor(body, vendor, **urls)
    assert isinstance(done.value, llmstream.Request)
    return done.value.json(), [loss.path for loss in done.lost]


# What the documentation prints


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_whole_request_there_and_back(llmstream, vendor):
    request = request_of(llmstream, STANDARD)
    done = llmstream.to_vendor(request, vendor)
    assert (done.value, done.lost, done.model, done.stream) == (BODIES[vendor], [], "example-model", True)
    assert json.loads(done.to_json()) == BODIES[vendor]
    url = {"model": "example-model"} if vendor == "gemini" else {}
    again = llmstream.from_vendor(BODIES[vendor], vendor, **url)
    assert (again.value.json(), again.lost, again.model, again.stream) == (STANDARD, [], "example-model", True)
    assert again.value.validate(strict=True) == []
    assert llmstream.from_vendor(done.to_json(), vendor, **url).value == again.value
    assert json.loads(again.to_json()) == STANDARD


def test_the_body_shares_nothing_with_the_request(llmstream):
    request = request_of(llmstream, STANDARD)
    for vendor in VENDORS:
        done = llmstream.to_vendor(request, vendor)
        todo = [done.value]
        while todo:
            item = todo.pop()
            todo += item.values() if isinstance(item, dict) else item if isinstance(item, list) else []
            if isinstance(item, (dict, list)):
                item.clear()
        assert request.json() == STANDARD


def test_openai_as_its_clients_write_it(llmstream):
    body = {
        "model": "gpt-x",
        "messages": [
            {"role": "developer", "content": "Be brief.", "name": "d"},
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}}]},
            {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "r"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "max_tokens": 7,
        "stop": "END",
        "seed": 3,
        "user": "u-1",
        "metadata": {"session_id": "s"},
    }
    found, lost = back(llmstream, "openai", body)
    assert lost == []
    assert found == {
        "version": "1.0",
        "stream": False,
        "model": "gpt-x",
        "messages": [
            {"role": "system", "content": "Be brief.", "name": "d"},
            {"role": "user", "content": [{"type": "audio", "media_type": "audio/wav", "data": SOUND}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "name": "f", "arguments": ""}]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [{"name": "f", "description": "", "parameters": {}}],
        "parameters": {"max_tokens": 7, "stop_sequences": ["END"], "seed": 3},
        "metadata": {"session_id": "s", "user_id": "u-1"},
    }


def test_anthropic_as_its_clients_write_it(llmstream):
    body = {
        "model": "claude-x",
        "max_tokens": 9,
        "system": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t"},
                    {"type": "text", "text": "go on"},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Größe"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "x"},
                    {"type": "tool_use", "id": "t2", "name": "f", "input": {"n": 1.10}},
                    {"type": "text", "text": "after"},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "is_error": True,
                        "content": [
                            {"type": "text", "text": "no"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                        ],
                    }
                ],
            },
        ],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "f", "input_schema": WEATHER}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "top_k": 4,
        "metadata": {"user_id": "u"},
    }
    found, lost = back(llmstream, "anthropic", body)
    assert lost == [
        "tool_choice",
        "thinking",
        "system[1].cache_control",
        "messages[1].content[0]",
        "messages[1].content[2]",
        "messages[2].content[0].is_error",
        "tools[0]",
    ]
    assert found == {
        "version": "1.0",
        "stream": False,
        "model": "claude-x",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "tool", "tool_call_id": "t", "content": ""},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "go on"},
                    {"type": "document", "media_type": "text/plain", "data": NOTE},
                ],
            },
            {
                "role": "assistant",
                "content": "after",
                "tool_calls": [{"id": "t2", "name": "f", "arguments": '{"n":1.1}'}],
            },
            {
                "role": "tool",
                "tool_call_id": "t2",
                "content": [{"type": "text", "text": "no"}, {"type": "image", "media_type": "image/png", "data": PNG}],
            },
        ],
        "tools": [{"name": "f", "description": "", "parameters": WEATHER}],
        "parameters": {"max_tokens": 9, "top_k": 4},
        "metadata": {"user_id": "u"},
    }


def test_gemini_as_its_clients_write_it(llmstream):
    """Names in snake case, calls without ids, schemas in Gemini's own words."""
    schema = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "nullable": True, "max_length": "5"},
            "list": {"type": "ARRAY", "items": {"any_of": [{"type": "INTEGER"}, {"type": "BOOLEAN"}]}},
        },
    }
    body = {
        "system_instruction": {"parts": [{"text": "a"}, {"text": "b"}]},
        "contents": [
            {"parts": [{"text": "Look"}, {"inline_data": {"mime_type": "audio/ogg", "data": "_-8"}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "x"},
                    {"functionCall": {"name": "f"}},
                ],
            },
            {
                "role": "function",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {"celsius": 5}}},
                    {"functionResponse": {"name": "f", "response": {"output": "done"}}},
                    {"text": "Next"},
                ],
            },
        ],
        "tools": [{"google_search": {}}, {"function_declarations": [{"name": "f", "parameters": schema}]}],
        "generation_config": {"max_output_tokens": 3, "topK": 5.0, "candidateCount": 2},
        "safetySettings": [],
    }
    found, lost = back(llmstream, "gemini", body, model="gemini-x", stream=False)
    assert lost == [
        "safetySettings",
        "contents[1].parts[0]",
        "contents[1].parts[1].thoughtSignature",
        "contents[2].parts[0].functionResponse.response",
        "tools[0].googleSearch",
        "generationConfig.candidateCount",
    ]
    assert found == {
        "version": "1.0",
        "stream": False,
        "model": "gemini-x",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "audio", "media_type": "audio/ogg", "data": "/+8="},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call-0", "name": "f", "arguments": '{"a":1}'},
                    {"id": "call-1", "name": "f", "arguments": "{}"},
                ],
            },
            {"role": "tool", "tool_call_id": "call-0", "content": '{"celsius":5}'},
            {"role": "tool", "tool_call_id": "call-1", "content": "done"},
            {"role": "user", "content": "Next"},
        ],
        "tools": [
            {
                "name": "f",
                "description": "",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "type": {"type": ["string", "null"], "maxLength": 5},
                        "list": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}},
                    },
                },
            }
        ],
        "parameters": {"max_tokens": 3, "top_k": 5},
    }


def test_the_url_of_gemini(llmstream):
    body = {"model": "models/gemini-x", "contents": []}
    assert back(llmstream, "gemini", body)[0]["model"] == "gemini-x"
    assert back(llmstream, "gemini", body, model="other")[0]["model"] == "other"
    found, lost = back(llmstream, "gemini", {"contents": []})
    assert (found["model"], found["stream"], lost) == ("", True, ["model"])
    request = request_of(llmstream, {**STANDARD, "stream": False})
    assert llmstream.to_vendor(request, "gemini").stream is False
    assert llmstream.to_vendor(request, "openai").value["stream"] is False
    assert "stream_options" not in llmstream.to_vendor(request, "openai").value


# What is lost


USER = "messages[0].content[0]"


def media(kind: str, media_type: str, data: str = "AAEC") -> dict[str, Any]:
    part = {"type": kind, "media_type": media_type, "data": data}
    return {"messages": [{"role": "user", "content": [part, {"type": "text", "text": "t"}]}]}


def after_hello(**message: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Hi"}, message]}


CALL = {"id": "c", "name": "f", "arguments": "{}"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ALL = VENDORS
LOST: list[tuple[list[str], dict[str, Any], list[str]]] = [
    (
        ALL,
        {"extensions": {"vendor:openai": {"logprobs": True}, "acme:SECRET": 1}},
        ["extensions.vendor:openai", "extensions.*"],
    ),
    (ALL, {"metadata": {"request_id": "SECRET", "SECRET": 2}}, ["metadata.request_id", "metadata.*"]),
    (["openai", "anthropic"], {"metadata": {"user_id": "u"}}, []),
    (ALL, {"metadata": {"user_id": 5}}, ["metadata.user_id"]),
    (["gemini"], {"metadata": {"user_id": "u"}}, ["metadata.user_id"]),
    (ALL, {"SECRET": 1}, ["*"]),
    (ALL, {"parameters": {"max_tokens": 1, "SECRET": 1}}, ["parameters.*"]),
    (ALL, {"parameters": {"max_tokens": 1, "temperature": 3}}, ["parameters.temperature"]),
    (ALL, {"parameters": {"max_tokens": 1, "temperature": "SECRET"}}, ["parameters.temperature"]),
    (ALL, {"parameters": {"max_tokens": 1, "top_p": -1}}, ["parameters.top_p"]),
    (["anthropic"], {"parameters": {"max_tokens": 1, "temperature": 1.5}}, ["parameters.temperature"]),
    (["openai", "gemini"], {"parameters": {"max_tokens": 1, "temperature": 1.5}}, []),
    (["anthropic"], {"parameters": None}, ["parameters.max_tokens"]),
    (["openai", "gemini"], {"parameters": {}}, []),
    (["openai", "gemini"], {"parameters": {"max_tokens": "5"}}, ["parameters.max_tokens"]),
    (["openai"], {"parameters": {"max_tokens": 1, "top_k": 1}}, ["parameters.top_k"]),
    (["anthropic"], {"parameters": {"max_tokens": 1, "seed": 1}}, ["parameters.seed"]),
    (["openai"], {"parameters": {"stop_sequences": list("abcde")}}, ["parameters.stop_sequences[4]"]),
    (["gemini"], {"parameters": {"stop_sequences": list("abcdef")}}, ["parameters.stop_sequences[5]"]),
    (["gemini", "openai"], {"parameters": {"stop_sequences": ["a", 1]}}, ["parameters.stop_sequences"]),
    (ALL, {"tools": [{"name": "f", "description": "", "parameters": WEATHER, "SECRET": 1}]}, ["tools[0].*"]),
    (["anthropic"], {"tools": [{"name": "f", "description": "", "parameters": {}}]}, ["tools[0].parameters"]),
    (ALL, {"messages": [{"role": "user", "content": "a", "SECRET": 1}]}, ["messages[0].*"]),
    (ALL, {"messages": [{"role": "SECRET", "content": "a"}, {"role": "user", "content": "b"}]}, ["messages[0]"]),
    (ALL, {"messages": [{"role": "user", "content": [{"type": "SECRET"}, {"type": "text", "text": "t"}]}]}, [USER]),
    (ALL, {"messages": [{"role": "user", "content": [{"type": "text", "text": "t", "SECRET": 1}]}]}, [f"{USER}.*"]),
    (ALL, after_hello(role="user", content="a", tool_call_id="c"), ["messages[1].tool_call_id"]),
    (ALL, after_hello(role="user", content="a", tool_calls=[CALL]), ["messages[1].tool_calls"]),
    (["anthropic", "gemini"], after_hello(role="user", content="a", name="Ann"), ["messages[1].name"]),
    (["openai"], after_hello(role="user", content="a", name="Ann"), []),
    (["anthropic", "gemini"], after_hello(role="system", content="s"), ["messages[1]"]),
    (["openai"], after_hello(role="system", content="s"), []),
    (["anthropic", "gemini"], {"messages": [{"role": "system", "content": "a"}] * 2}, ["messages[1]"]),
    (["anthropic", "gemini"], after_hello(role="assistant", content=""), ["messages[1]"]),
    (["anthropic"], after_hello(role="user", content=" \n"), ["messages[1].content", "messages[1]"]),
    (["openai"], after_hello(role="assistant", content=""), []),
    (
        ["anthropic", "gemini"],
        after_hello(role="assistant", content=None, tool_calls=[{**CALL, "arguments": "[SECRET"}]),
        ["messages[1].tool_calls[0].arguments"],
    ),
    (
        ["anthropic", "gemini"],
        after_hello(role="assistant", content=None, tool_calls=[{**CALL, "arguments": '{"a":1,"a":2}'}]),
        ["messages[1].tool_calls[0].arguments"],
    ),
    (
        ALL,
        after_hello(role="assistant", content=None, tool_calls=[{**CALL, "SECRET": 1}]),
        ["messages[1].tool_calls[0].*"],
    ),
    (["gemini"], after_hello(role="tool", tool_call_id="other", content="r"), ["messages[1]"]),
    (
        ["openai", "gemini"],
        {
            "messages": [
                CALLED,
                {"role": "tool", "tool_call_id": "c", "content": media("image", "image/png")["messages"][0]["content"]},
            ]
        },
        ["messages[1].content[0]"],
    ),
    (
        ["gemini"],
        {"messages": [CALLED, {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "r"}] * 2}]},
        ["messages[1].content"],
    ),
    (
        ["openai"],
        {"messages": [CALLED, {"role": "tool", "tool_call_id": "c", "content": "r", "name": "f"}]},
        ["messages[1].name"],
    ),
    (["anthropic"], media("image", "image/tiff"), [USER]),
    (["openai", "gemini"], media("image", "image/tiff"), []),
    (["anthropic"], media("document", "text/html"), [USER]),
    (["anthropic"], media("document", "text/plain", "/w=="), [USER]),
    (["anthropic"], media("audio", "audio/wav"), [USER]),
    (["openai"], media("audio", "audio/ogg"), [USER]),
    (["openai"], media("audio", "audio/mp3"), [f"{USER}.media_type"]),
    (["gemini"], media("audio", "audio/ogg"), []),
    (["gemini"], media("document", "image/png"), [f"{USER}.type"]),
    (
        ["openai", "anthropic"],
        after_hello(
            role="assistant",
            content=[{"type": "text", "text": "t"}, *media("image", "image/png")["messages"][0]["content"]],
        ),
        ["messages[1].content[1]"],
    ),
]


@pytest.mark.parametrize(("vendor", "changes", "paths"), [(v, c, p) for vs, c, p in LOST for v in vs])
def test_what_a_vendor_has_no_place_for(llmstream, vendor, changes, paths):
    body, lost = to(llmstream, vendor, **changes)
    assert [path for path, _ in lost] == paths
    assert "SECRET" not in str(lost)
    assert "SECRET" not in json.dumps(body).replace('"role": "SECRET"', "")


def openai_part(part: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [part, {"type": "text", "text": "t"}]}]}


HELD: list[tuple[str, dict[str, Any], list[str]]] = [
    ("openai", {"SECRET": 1, "logprobs": True, "n": None}, ["*", "logprobs"]),
    (
        "openai",
        {"stream_options": {"include_usage": True, "include_obfuscation": False}},
        ["stream_options.include_obfuscation"],
    ),
    ("openai", {"user": "a", "safety_identifier": "b"}, ["safety_identifier"]),
    ("openai", {"max_tokens": 1, "max_completion_tokens": 2}, ["max_tokens"]),
    ("openai", {"tools": [{"type": "custom", "custom": {"name": "SECRET"}}]}, ["tools[0]"]),
    (
        "openai",
        {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
        ["tools[0].function.strict"],
    ),
    ("openai", openai_part({"type": "image_url", "image_url": {"url": "https://SECRET"}}), [f"{USER}.image_url"]),
    ("openai", openai_part({"type": "image_url", "image_url": {"url": "data:,SECRET"}}), [f"{USER}.image_url"]),
    ("openai", openai_part({"type": "image_url", "image_url": {"url": "data:;base64,SECRET!"}}), [f"{USER}.image_url"]),
    (
        "openai",
        openai_part({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}}),
        [f"{USER}.image_url.detail"],
    ),
    ("openai", openai_part({"type": "file", "file": {"file_id": "SECRET"}}), [f"{USER}.file.file_id", f"{USER}.file"]),
    (
        "openai",
        openai_part(
            {"type": "file", "file": {"filename": "SECRET", "file_data": f"data:application/pdf;base64,{PDF}"}}
        ),
        [f"{USER}.file.filename"],
    ),
    (
        "openai",
        openai_part({"type": "input_audio", "input_audio": {"data": SOUND, "format": "SECRET"}}),
        [f"{USER}.input_audio"],
    ),
    ("openai", openai_part({"type": "SECRET"}), [USER]),
    ("openai", {"messages": [{"role": "function", "name": "f", "content": "SECRET"}]}, ["messages[0]"]),
    ("openai", {"messages": [{"role": "assistant", "content": None, "refusal": "SECRET"}]}, ["messages[0].refusal"]),
    (
        "openai",
        {"messages": [{"role": "assistant", "content": "a", "tool_calls": [{"id": "c", "type": "custom"}]}]},
        ["messages[0].tool_calls[0]"],
    ),
    ("anthropic", {"SECRET": 1, "tool_choice": {"type": "any"}}, ["*", "tool_choice"]),
    (
        "anthropic",
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "SECRET"}}]}]},
        [USER],
    ),
    (
        "anthropic",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "t", "citations": [1]}]}]},
        [f"{USER}.citations"],
    ),
    ("anthropic", {"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "c", "name": "f"}]}]}, [USER]),
    (
        "anthropic",
        {"messages": [{"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "c"}]}]},
        [USER],
    ),
    ("anthropic", {"messages": [{"role": "SECRET", "content": "a"}]}, ["messages[0]"]),
    ("anthropic", {"metadata": {"SECRET": 1}}, ["metadata.*"]),
    (
        "gemini",
        {"contents": [{"role": "user", "parts": [{"fileData": {"fileUri": "SECRET"}}]}]},
        ["contents[0].parts[0]"],
    ),
    (
        "gemini",
        {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "video/mp4", "data": ""}}]}]},
        ["contents[0].parts[0].inlineData"],
    ),
    (
        "gemini",
        {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "f"}}]}]},
        ["contents[0].parts[0].functionResponse"],
    ),
    ("gemini", {"contents": [{"role": "user", "parts": [{"functionCall": {"name": "f"}}]}]}, ["contents[0].parts[0]"]),
    ("gemini", {"contents": [{"role": "SECRET", "parts": []}]}, ["contents[0]"]),
    ("gemini", {"toolConfig": {}, "cachedContent": "SECRET"}, ["toolConfig", "cachedContent"]),
]


@pytest.mark.parametrize(("vendor", "changes", "paths"), HELD)
def test_what_the_draft_has_no_place_for(llmstream, vendor, changes, paths):
    body = {"model": "m", "contents" if vendor == "gemini" else "messages": [], **changes}
    done = llmstream.from_vendor(body, vendor)
    assert [loss.path for loss in done.lost] == paths
    assert "SECRET" not in f"{done.lost} {done}{done.value.to_json().decode()}"


def test_a_repeated_member_and_half_a_surrogate_pair_are_told(llmstream):
    done = llmstream.from_vendor(
        '{"model":"m","messages":[{"role":"user","role":"user","content":"\\ud83d"}]}', "openai"
    )
    assert [loss.path for loss in done.lost] == ["messages[0].role", "messages[0].content"]
    assert done.value.messages[0].content == "\ufffd"


# There and back


def normal(request: Any) -> Any:
    """What a request says, whichever of the forms that the draft calls equivalent it has (sections 4.3.1 and 4.8)."""
    envelope = request.json()
    for message in envelope["messages"]:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        message["content"] = [part for part in parts if part != {"type": "text", "text": ""}]
        for call in message.get("tool_calls", ()):
            call["arguments"] = json.loads(call["arguments"])
        if not message.get("tool_calls"):
            message.pop("tool_calls", None)
    parameters = envelope.get("parameters", {}).items()
    envelope["parameters"] = {name: value for name, value in parameters if value is not None and value != []}
    return {name: value for name, value in envelope.items() if value not in ({}, [])}


WORDS = st.one_of(
    st.sampled_from(["", "Hi", " ", "é\u2028", '"\\', "🚲"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
DATA = st.binary(max_size=9).map(lambda data: base64.b64encode(data).decode())
JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), WORDS
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=5,
)
TYPES = {
    "image": ["image/png", "image/jpeg", "image/tiff"],
    "document": ["application/pdf", "text/plain"],
    "audio": ["audio/wav", "audio/mpeg", "audio/ogg"],
}


def part(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    types = st.sampled_from(TYPES[kind])
    return st.fixed_dictionaries({"type": st.just(kind), "media_type": types, "data": DATA})


TEXT = st.fixed_dictionaries({"type": st.just("text"), "text": WORDS})
PARTS = st.lists(st.one_of(TEXT, TEXT, part("image"), part("document"), part("audio")), max_size=3)
OPTIONAL = {
    "max_tokens": st.integers(1, 10**6),
    "temperature": st.floats(0, 2, allow_nan=False),
    "top_p": st.sampled_from([0, 0.5, 1, 1.5]),
    "stop_sequences": st.lists(WORDS, max_size=6),
    "top_k": st.integers(1, 50),
    "seed": st.integers(),
    "acme": JSON,
}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Valid requests: half of them with little but what every vendor has a place for."""
    plain = draw(st.booleans())
    words = WORDS.filter(str.strip) if plain else WORDS
    contents = words if plain else st.one_of(words, words, PARTS)
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(words)})
    for number in range(draw(st.integers(1, 4))):
        role = draw(
            st.sampled_from(["user", "assistant", "tools"] if plain else ["user", "assistant", "tools", "system"])
        )
        if role != "tools":
            messages.append({"role": role, "content": draw(contents)})
            continue
        names = draw(st.lists(st.sampled_from(["f", "g"]), min_size=1, max_size=3))
        arguments = st.dictionaries(WORDS, JSON, max_size=3).map(json.dumps)
        arguments = arguments if plain else st.one_of(arguments, arguments, JSON.map(json.dumps))
        calls = [{"id": f"{number}-{i}", "name": name, "arguments": draw(arguments)} for i, name in enumerate(names)]
        messages.append({"role": "assistant", "content": draw(st.one_of(st.none(), contents)), "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": draw(contents)} for call in calls]
    schemas = st.dictionaries(WORDS, JSON, max_size=2).map(lambda more: {**more, "type": "object"})
    tools = [{"name": name, "description": draw(WORDS), "parameters": draw(schemas)} for name in ("f", "g")]
    body = {"version": "1.0", "stream": draw(st.booleans()), "model": draw(WORDS), "messages": messages, "tools": tools}
    if plain:
        body["parameters"] = {"max_tokens": 5, "temperature": draw(st.floats(0, 1)), "stop_sequences": ["a"]}
    else:
        body["parameters"] = draw(st.fixed_dictionaries({}, optional=OPTIONAL))
        if draw(st.booleans()):
            body["metadata"] = draw(st.fixed_dictionaries({}, optional={"user_id": WORDS, "session_id": WORDS}))
        if draw(st.booleans()):
            body["extensions"] = draw(st.dictionaries(WORDS.map("v:x".__add__), JSON, max_size=2))
    return body


@pytest.mark.parametrize("vendor", VENDORS)
@given(envelope=requests())
def test_what_is_not_told_as_lost_comes_back(llmstream, vendor, envelope):
    request = request_of(llmstream, envelope)
    done = llmstream.to_vendor(request, vendor)
    again = llmstream.from_vendor(done.value, vendor, model=done.model, stream=done.stream)
    assert again.lost == []
    assert again.value.validate() == [each for each in again.value.validate() if each.severity == "warning"]
    if not done.lost:
        assert normal(again.value) == normal(request)
    # What came back is what the vendor has a place for: it goes there again without a loss.
    assert llmstream.to_vendor(again.value, vendor).lost == []
    assert normal(llmstream.from_vendor(done.to_json(), vendor, model=done.model, stream=done.stream).value) == normal(
        again.value
    )


@pytest.mark.parametrize("vendor", VENDORS)
@given(envelope=requests())
def test_a_plain_request_loses_nothing(llmstream, vendor, envelope):
    """Text, tools and calls are carried by all vendors; what is lost then is none of them."""
    envelope = {name: envelope[name] for name in ("version", "stream", "model", "messages", "tools")}
    envelope["parameters"] = {"max_tokens": 1}
    for message in envelope["messages"]:
        message["content"] = "words" if message["role"] != "system" else None
        for call in message.get("tool_calls", ()):
            call["arguments"] = "{}"
    envelope["messages"] = [message for message in envelope["messages"] if message["role"] != "system"]
    assert llmstream.to_vendor(request_of(llmstream, envelope), vendor).lost == []


# Hostile input


def places(value: Any, steps: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The steps to every value within a value."""
    found = [steps] if steps else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for step, inner in items for place in places(inner, (*steps, step))]


BAD = [
    None,
    True,
    5,
    -1.5,
    "SECRET",
    [],
    {},
    ["SECRET"],
    [[None]],
    {"SECRET": 1},
    {"type": "SECRET"},
    [{"type": "text"}],
    1e999,
]


def outcome(llmstream: Any, call: Any) -> tuple[Any, str]:
    """What a call gives, or None; and all that is said of it, or of the error that it raises."""
    try:
        done = call()
    except llmstream.RequestError as error:
        assert error.path in str(error)  # noqa: PT017 (either is right)
        return None, f"{error}{error!r}"
    return done, f"{done!r}{done.lost}"


@pytest.mark.parametrize("vendor", VENDORS)
def test_any_value_anywhere(llmstream, vendor):
    """Each value of a body replaced by each of some others, or taken away: a request and what was lost, or an error
    that names the path."""
    for place in places(BODIES[vendor]):
        for value in (*BAD, ...):
            body: Any = copy.deepcopy(BODIES[vendor])
            holder = body
            for step in place[:-1]:
                holder = holder[step]
            if value is ...:
                del holder[place[-1]]
            else:
                holder[place[-1]] = value
            text = json.dumps(body).replace("Infinity", "1e999")
            done, said = outcome(llmstream, lambda text=text: llmstream.from_vendor(text, vendor))
            assert "SECRET" not in said
            if done is not None:
                json.loads(done.to_json())
                _, said = outcome(llmstream, lambda done=done: llmstream.to_vendor(done.value, vendor))
                assert "SECRET" not in said


@pytest.mark.parametrize("vendor", VENDORS)
@given(value=JSON, name=st.sampled_from(["messages", "contents", "system", "tools", "metadata", "generationConfig"]))
def test_any_json(llmstream, vendor, value, name):
    for body in (value, {"model": "m", name: value}, {"model": "m", name: [value]}):
        outcome(llmstream, lambda body=body: llmstream.from_vendor(json.dumps(body), vendor))


WRONG = [
    ("openai", {"model": 5}, "model"),
    ("openai", {"stream": "yes"}, "stream"),
    ("openai", {"messages": {}}, "messages"),
    ("openai", {"messages": [5]}, "messages[0]"),
    ("openai", {"messages": [{"role": None}]}, "messages[0].role"),
    ("openai", {"messages": [{"role": "user"}]}, "messages[0].content"),
    ("openai", {"messages": [{"role": "tool", "content": ""}]}, "messages[0].tool_call_id"),
    (
        "openai",
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}]},
        "messages[0].tool_calls[0].function.arguments",
    ),
    ("openai", {"temperature": "hot"}, "temperature"),
    ("openai", {"stop": [1]}, "stop"),
    ("anthropic", {"system": 5}, "system"),
    (
        "anthropic",
        {"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": []}]}]},
        "messages[0].content[0].input",
    ),
    (
        "anthropic",
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}]},
        "messages[0].content[0].source.media_type",
    ),
    ("anthropic", {"max_tokens": 1.5}, "max_tokens"),
    ("gemini", {"contents": [{"parts": [{"text": 5}]}]}, "contents[0].parts[0].text"),
    ("gemini", {"generation_config": {"topK": "five"}}, "generationConfig.topK"),
    ("gemini", {"generation_config": {"topK": "true"}}, "generationConfig.topK"),
    ("gemini", {"generation_config": {"topK": [5]}}, "generationConfig.topK"),
    ("gemini", {"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
]


@pytest.mark.parametrize(("vendor", "changes", "path"), WRONG)
def test_a_wrong_type_is_an_error_that_names_its_path(llmstream, vendor, changes, path):
    body = {"model": "m", **changes}
    with pytest.raises(llmstream.RequestError, match="^" + path.replace("[", r"\[")) as raised:
        llmstream.from_vendor(body, vendor)
    assert raised.value.path == path


@pytest.mark.parametrize("vendor", VENDORS)
def test_no_json_or_too_much_of_it(llmstream, vendor):
    for body in (b"", b"{", "[]", b"\xff", "5"):
        with pytest.raises(llmstream.RequestError):
            llmstream.from_vendor(body, vendor)
    deep = "[" * 100_000 + "]" * 100_000
    for text in (deep, '{"messages":' + deep + "}", '{"tools":' + '{"a":' * 1000 + "1" + "}" * 1001):
        with pytest.raises(llmstream.RequestError, match="nested"):
            llmstream.from_vendor(text, vendor)
    endless: dict[str, Any] = {}
    endless["model"] = endless
    with pytest.raises(llmstream.RequestError, match="nested"):
        llmstream.from_vendor(endless, vendor)
    with pytest.raises(llmstream.RequestError, match="max_size"):
        llmstream.from_vendor(b"{}" + b" " * 100, vendor, max_size=50)
    with pytest.raises(TypeError):
        llmstream.from_vendor({"model": b"m"}, vendor)
    with pytest.raises(TypeError):
        llmstream.from_vendor(5, vendor)


def test_the_deepest_body_goes_there_and_back(llmstream):
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(460):
        schema = {"type": "object", "a": schema}
    envelope = {**STANDARD, "tools": [{"name": "f", "description": "", "parameters": schema}]}
    request = llmstream.Request.from_json(json.dumps(envelope))
    for vendor in VENDORS:
        done = llmstream.to_vendor(request, vendor)
        assert llmstream.from_vendor(done.to_json(), vendor).value.tools[0].parameters == schema


def test_a_request_with_an_error_is_refused(llmstream):
    for vendor in VENDORS:
        with pytest.raises(llmstream.RequestError, match=r"messages\[0\].content"):
            to(llmstream, vendor, messages=[{"role": "user", "content": 5}])
        with pytest.raises(TypeError):
            llmstream.to_vendor({"model": "m"}, vendor)


def test_what_is_no_vendor(llmstream):
    request = request_of(llmstream, STANDARD)
    with pytest.raises(ValueError, match="openai, anthropic, gemini"):
        llmstream.to_vendor(request, "mistral")
    with pytest.raises(ValueError, match="unknown vendor"):
        llmstream.from_vendor({}, "llm-stream")
    with pytest.raises(TypeError, match="model"):
        llmstream.from_vendor({}, "gemini", model=5)
    with pytest.raises(TypeError, match="stream"):
        llmstream.from_vendor({}, "gemini", stream=5)


def test_numbers_keep_their_digits(llmstream):
    schema = '{"type":"object","n":1.10,"m":1e400}'
    tools = f'[{{"name":"f","description":"","parameters":{schema}}}]'
    text = f'{{"version":"1.0","stream":true,"model":"m","messages":[],"tools":{tools}}}'
    for vendor in VENDORS:
        body = llmstream.to_vendor(llmstream.Request.from_json(text), vendor).to_json()
        assert b'"n":1.10,"m":1e400' in body
        assert b'"n":1.10,"m":1e400' in llmstream.from_vendor(body, vendor).to_json()


def test_a_loss(llmstream):
    loss = llmstream.Loss("a.b", "why")
    assert (str(loss), repr(loss)) == ("a.b: why", "Loss(path='a.b', reason='why')")
    assert loss == llmstream.Loss("a.b", "why") != llmstream.Loss("a.b", "x")
    assert loss != "a.b"
    assert len({loss, llmstream.Loss("a.b", "why")}) == 1
    assert pickle.loads(pickle.dumps(loss)) == loss
    with pytest.raises(AttributeError):
        loss.path = "c"
    with pytest.raises(AttributeError):
        del loss.path
