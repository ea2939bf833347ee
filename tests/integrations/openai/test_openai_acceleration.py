"""The accelerated OpenAI SDK gives what the SDK gives, whatever the stream is."""

from __future__ import annotations

import copy
import json
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_server import serving
from sdk_streams import SDK, alike, assert_same, mutable_parts, sse

openai = pytest.importorskip("openai")

MESSAGES = [{"role": "user", "content": "?"}]
CHAT = SDK(
    "openai",
    "OpenAI",
    lambda client: client.chat.completions.create(model="m", messages=MESSAGES, stream=True),
)


def completion(client: Any) -> Any:
    return client.completions.create(model="m", prompt="?", stream=True)


def response(client: Any) -> Any:
    return client.responses.create(model="m", input="?", stream=True)


def chunk(delta: Any = None, *, index: int = 0, finish_reason: Any = None, **members: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": {} if delta is None else delta, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1749292800,
        "model": "example",
        "system_fingerprint": "fp_1",
        "choices": [choice],
        **members,
    }


def texts(*words: str, **members: Any) -> list[dict[str, Any]]:
    return [chunk({"content": word}, **members) for word in words]


WORDS = ["The", " weather", '\n"in" \\Vienna\\', " is é中😀", "", "\t\x7f\u2028", "data: [DONE]", '"content":"x"', "C"]
LOGPROBS = {"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}], "refusal": None}
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}
FILTER = [{"index": 0, "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}}]
CHUNK = json.dumps(chunk({"content": "x"}))

CASES: dict[str, list[Any]] = {
    "text": [chunk({"role": "assistant", "content": ""}), *texts(*WORDS), chunk(finish_reason="stop")],
    "all escaped": [json.dumps(one) for one in texts(*WORDS * 2)],
    "obfuscation": [{**one, "obfuscation": "x" * number} for number, one in enumerate(texts(*WORDS))],
    "two choices": [chunk({"content": word}, index=number % 2) for number, word in enumerate(WORDS * 2)],
    "two in one": [{**chunk(), "choices": chunk({"content": a})["choices"] * 2} for a in WORDS],
    "reasoning": [chunk({"content": None, "reasoning_content": word}) for word in WORDS],
    "role each time": [chunk({"role": "assistant", "content": word, "tool_calls": None}) for word in WORDS],
    "refusal": [chunk({"refusal": word}) for word in WORDS],
    "unknown role": [chunk({"role": "robot", "content": word}) for word in WORDS],
    "no content": [chunk() for _ in WORDS],
    "usage at the end": [*texts(*WORDS), chunk(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 2})],
    "usage each time": [
        {**one, "usage": {"prompt_tokens": 1, "completion_tokens": number, "total_tokens": 1 + number}}
        for number, one in enumerate(texts(*WORDS))
    ],
    "the same usage": texts(*WORDS, usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
    "logprobs": [
        {**one, "choices": [{**one["choices"][0], "logprobs": LOGPROBS}]} for one in texts(*WORDS)
    ],
    "tool call": [
        chunk({"role": "assistant", "content": None, "tool_calls": [CALL]}),
        *[chunk({"tool_calls": [{"index": 0, "function": {"arguments": word}}]}) for word in WORDS],
        chunk(finish_reason="tool_calls"),
    ],
    "function call": [chunk({"function_call": {"arguments": word}}) for word in WORDS],
    "unknown members": [chunk({"content": word, "a": {"text": [word, {"b": None}]}}, c=[1.5, {"d": word}]) for word in WORDS],
    "filters": [{**one, "prompt_filter_results": FILTER} for one in texts(*WORDS)],
    "created grows": [chunk({"content": word}, created=number) for number, word in enumerate(WORDS * 3)],
    "created is a float": texts(*WORDS, created=1.5),
    "id each time": [chunk({"content": word}, id=word) for word in WORDS],
    "content of another type": [chunk({"content": value}) for value in [1, 2, 1.5, None, True, [], ["a"], {}, {"a": "b"}] * 2],
    "choices of another type": [{**chunk(), "choices": value} for value in [None, 1, "a", {}, {"a": 1}, ["a"], [None]] * 2],
    "delta of another type": [{**chunk(), "choices": [{"delta": value}]} for value in [None, 1, "a", [], ["a"]] * 2],
    "index of another type": [
        {**one, "choices": [{**one["choices"][0], "index": value}]} for value in ["0", None, 1.0] for one in texts("a", "b", "c")
    ],
    "error": [*texts(*WORDS), {"error": {"message": "overloaded", "code": "x"}}],
    "false error": [{**one, "error": None} for one in texts(*WORDS)],
    "no objects": ["1", '"content"', "[]", '[{"content":"a"}]', '[{"content":"b"}]', "true", "1.5", "{}", "{}", "{}"],
    "null": [*texts("a", "b", "c"), "null"],
    "no JSON": [*texts("a", "b", "c"), CHUNK[:-1]],
    "no JSON in the text": [*texts("a", "b", "c"), CHUNK.replace('"x"', '"\\x"')],
    "control character": [*texts("a", "b", "c"), CHUNK.replace('"x"', '"\x01"')],
    "a byte more": [*texts("a", "b", "c"), CHUNK + " "],
    "a member more": [*texts("a", "b", "c"), CHUNK.replace('"x"', '"x", "role": "user"')],
    "a value for another": [*texts("a", "b", "c"), CHUNK.replace('"x"', "null"), CHUNK.replace('"x"', "12")],
    "half a surrogate pair": [CHUNK.replace('"x"', text) for text in ['"a"', '"b"', '"c"', r'"\ud83d"', r'"\ude00"', '"d"']],
    "half a pair first": [CHUNK.replace('"x"', text) for text in [r'"\ud83d"', r'"\ude00"', '"a"', '"b"', r'"\udfff"']],
    "a name twice": [CHUNK.replace('"x"', f'"{word}", "content": "{word}"') for word in "abcdef"],
    "a name twice, the first counts no more": [CHUNK.replace('"x"', f'"{word}", "content": "same"') for word in "abcdef"],
    "choices twice": [CHUNK[:-1] + f', "choices": [{{"delta": {{"content": "{word}"}}}}]}}' for word in "abcdef"],
    "spaces": [json.dumps(one, indent=1).replace("\n", " ") for one in texts(*WORDS)],
    "wide spaces": [CHUNK.replace('"x"', f'\t  "{word}"\t') for word in "abcdef"],
    "not a number": [CHUNK.replace("null}", "NaN}").replace('"x"', f'"{word}"') for word in "abcdef"],
    "infinite": [CHUNK.replace("null}", "-Infinity}").replace('"x"', f'"{word}"') for word in "abcdef"],
    "large integers": texts(*WORDS, created=10**30),
    "deep": [chunk({"content": word}, deep=json.loads("[" * 100 + "]" * 100)) for word in WORDS],
    "control fields of pydantic": [{**one, "_fields_set": ["id"]} for one in texts(*WORDS)],
    "self": [{**one, "self": 1, "_fields_set": None} for one in texts(*WORDS)],
    "names of methods": texts(*WORDS, model_dump="a", copy="b", __dict__={"c": 1}),
    "members within texts": [chunk({"content": word}, a='"content":"', b=r'\"text":"', c='{"delta":"x"}') for word in WORDS],
    "names like members": [chunk({"content": word}, **{'a"content': "b", 'a"text': word}) for word in WORDS],
    "large": texts("a", "b", "c", "d" * 100_000, "e", pad="f" * 20_000),
    "empty member names": [chunk({"content": word, "": word}, **{"": 1}) for word in WORDS],
}  # fmt: skip
# ruff: noqa: E501


@pytest.fixture
def fast(llmstream: Any) -> Any:
    module = import_module("llmstream.integrations.openai")
    yield module
    module.uninstall()


def events(case: str) -> list[bytes]:
    return [*map(sse, CASES[case]), b"data: [DONE]\n\n"]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("case", CASES)
def test_chunks_are_those_of_the_sdk(fast: Any, case: str, asynchronous: bool) -> None:
    stock = CHAT.outcome(events(case), asynchronous=asynchronous)
    assert_same(stock, CHAT.outcome(events(case), fast.accelerate, asynchronous=asynchronous))


@pytest.mark.parametrize("case", ["text", "obfuscation", "two choices", "tool call", "reasoning", "created grows"])
def test_chunks_of_the_completions_and_responses_are_those_of_the_sdk(fast: Any, case: str) -> None:
    for start in (completion, response):
        stock = CHAT.outcome(events(case), start=start)
        assert_same(stock, CHAT.outcome(events(case), fast.accelerate, start=start))


RESPONSES = {
    "response.output_text.delta": {"content_index": 0, "logprobs": []},
    "response.refusal.delta": {"content_index": 0},
    "response.reasoning_text.delta": {"content_index": 0},
    "response.reasoning_summary_text.delta": {"summary_index": 0},
    "response.function_call_arguments.delta": {},
    "response.custom_tool_call_input.delta": {},
    "response.mcp_call_arguments.delta": {},
    "response.code_interpreter_call_code.delta": {},
    "response.unheard_of.delta": {},
}


@pytest.mark.parametrize("padding", [{}, {"obfuscation": "xyz"}], ids=["plain", "obfuscation"])
@pytest.mark.parametrize("name", RESPONSES)
def test_events_of_responses_are_those_of_the_sdk(fast: Any, name: str, padding: dict[str, str]) -> None:
    chunks = [
        sse({"type": name, "sequence_number": number, "item_id": "m", "output_index": 0, "delta": word}
            | RESPONSES[name] | padding, name)
        for number, word in enumerate([*WORDS, *WORDS])
    ]  # fmt: skip
    chunks += [sse(text.decode().replace("C", half)[5:].strip(), name)
               for text in [sse({"type": name, "delta": "C"})] for half in (r"\ud83d", r"\ude00")]  # fmt: skip
    stock = CHAT.outcome(chunks, start=response)
    assert len(stock[0]) == 2 * len(WORDS) + 2
    assert_same(stock, CHAT.outcome(chunks, fast.accelerate, start=response))


@pytest.mark.parametrize("name", ["thread.message.delta", "thread.created", "error", "done"])
@pytest.mark.parametrize(
    "payload", [{"object": "thread.message.delta", "delta": {"content": "a"}}, {"error": {"message": "b"}}]
)
def test_events_of_assistants_are_those_of_the_sdk(fast: Any, name: str, payload: Any) -> None:
    chunks = [sse(payload, name)] * 4
    for start in (CHAT.start, lambda client: client.beta.threads.runs.create("t", assistant_id="a", stream=True)):
        stock = CHAT.outcome(chunks, start=start)
        assert_same(stock, CHAT.outcome(chunks, fast.accelerate, start=start))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(
    [
        "content",
        "role",
        "refusal",
        "tool_calls",
        "delta",
        "index",
        "id",
        "text",
        "arguments",
        "reasoning",
        "error",
        "type",
    ]
)
MEMBERS = st.dictionaries(NAMES, VALUES, max_size=2)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Runs of chunks alike but for their text, now and then changed elsewhere."""
    found: list[bytes] = []
    for _ in range(draw(st.integers(1, 3))):
        delta, choice, top = draw(MEMBERS), draw(MEMBERS), draw(MEMBERS)
        for text in draw(st.lists(TEXT, max_size=6)):
            one = chunk({"content": text, **delta})
            one["choices"][0] |= choice
            one |= top
            found.append(sse(one, escaped=draw(st.booleans())))
    body = b"".join(found)
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=4)))
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@given(chunks=streams())
def test_any_stream_is_that_of_the_sdk(llmstream: Any, chunks: list[bytes]) -> None:
    fast = import_module("llmstream.integrations.openai")
    assert_same(CHAT.outcome(chunks), CHAT.outcome(chunks, fast.accelerate))


def test_most_chunks_of_a_text_are_built_from_a_template(fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    models = import_module("openai._base_client")
    own = models.construct_type
    fast.install()
    monkeypatch.setattr(models, "construct_type", lambda **keywords: built.append(1) or own(**keywords))
    chunks = [sse(one) for one in texts(*map(str, range(100)))]
    found, _ = CHAT.outcome(chunks)
    assert len(found) == 100
    assert len(built) == 2  # one to learn from, one to prove it


def test_no_part_of_a_chunk_is_shared_with_another(fast: Any) -> None:
    chunks = events("the same usage") + events("unknown members") + events("filters")
    found, _ = CHAT.outcome(chunks, fast.accelerate)
    parts = [part for one in found for part in mutable_parts(one)]
    assert len(set(parts)) == len(parts)


def test_a_changed_chunk_changes_no_other(fast: Any) -> None:
    client = fast.accelerate(CHAT.client([sse(one) for one in texts(*WORDS, usage={"a": [1]})]))
    with client, CHAT.start(client) as stream:
        for item, word in zip(stream, WORDS, strict=True):
            assert item.choices[0].delta.content == word
            assert item.usage.a == [1]
            item.usage.a.append(2)
            item.choices[0].delta.content = item.model = "changed"
            item.choices.clear()


def test_strict_validation_is_left_to_the_sdk(fast: Any) -> None:
    for chunks in (events("text"), [*map(sse, texts("a", "b", "c", created="x"))]):
        stock = CHAT.outcome(chunks, _strict_response_validation=True)
        assert_same(stock, CHAT.outcome(chunks, fast.accelerate, _strict_response_validation=True))


def test_a_class_of_the_users_own_is_left_to_the_sdk(fast: Any) -> None:
    types = import_module("openai.types.chat")

    class Mine(types.ChatCompletionChunk):
        pass

    def start(client: Any) -> Any:
        return client.post("/chat", cast_to=Mine, body={}, stream=True, stream_cls=openai.Stream[Mine])

    stock = CHAT.outcome(events("text"), start=start)
    assert type(stock[0][0]) is Mine
    assert alike(stock, CHAT.outcome(events("text"), fast.accelerate, start=start))
    plain = CHAT.outcome(events("text"), fast.accelerate, start=lambda client: client.post(
        "/chat", cast_to=object, body={}, stream=True, stream_cls=openai.Stream[object]))  # fmt: skip
    assert [type(one) for one in plain[0]] == [dict] * len(CASES["text"])


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_azure(fast: Any, asynchronous: bool) -> None:
    options: dict[str, Any] = {"azure_endpoint": "http://local", "api_version": "1", "name": "AzureOpenAI"}
    stock = CHAT.outcome(events("filters"), asynchronous=asynchronous, **options)
    assert len(stock[0]) == len(WORDS)
    assert_same(stock, CHAT.outcome(events("filters"), fast.accelerate, asynchronous=asynchronous, **options))
    fast.install()
    assert_same(stock, CHAT.outcome(events("filters"), asynchronous=asynchronous, **options))


def test_the_stream_helper_and_raw_responses(fast: Any) -> None:
    def helper(client: Any) -> Any:
        return client.chat.completions.stream(model="m", messages=MESSAGES)

    def raw(client: Any) -> Any:
        return client.chat.completions.with_raw_response.create(model="m", messages=MESSAGES, stream=True).parse()

    chunks = events("text")
    for start in (helper, raw):
        stock = CHAT.outcome(chunks, start=start)
        assert stock[1] is None
        assert_same(stock, CHAT.outcome(chunks, fast.accelerate, start=start))


def test_a_served_stream(fast: Any) -> None:
    with serving(events("text")) as address:
        stock = CHAT.read(openai.OpenAI(api_key="none", base_url=address), CHAT.start)
        fast.install()
        ours = CHAT.read(openai.OpenAI(api_key="none", base_url=address), CHAT.start)
        client = openai.AsyncOpenAI(api_key="none", base_url=address)
        asynchronous = CHAT.read(client, CHAT.start, asynchronous=True)
    assert len(stock[0]) == len(CASES["text"])
    assert_same(stock, ours)
    assert_same(stock, asynchronous)
    assert copy.deepcopy(ours[0]) == stock[0]
