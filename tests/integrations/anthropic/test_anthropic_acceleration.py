"""The accelerated Anthropic SDK gives what the SDK gives, whatever the stream is."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_server import serving
from sdk_streams import SDK, assert_same, mutable_parts, sse

anthropic = pytest.importorskip("anthropic")

MESSAGES = [{"role": "user", "content": "?"}]
SDK_ = SDK(
    "anthropic",
    "Anthropic",
    lambda client: client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True),
)


def beta(client: Any) -> Any:
    return client.beta.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True)


def event(type: str, **members: Any) -> bytes:
    return sse({"type": type, **members}, type)


def delta(kind: str, member: str, value: Any, **more: Any) -> bytes:
    return event("content_block_delta", index=0, delta={"type": kind, member: value}, **more)


def message(*events: bytes) -> list[bytes]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": usage}
    return [
        event("message_start", message=start | {"stop_reason": None, "stop_sequence": None}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("ping"),
        *events,
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 9}),
        event("message_stop"),
    ]


WORDS = ["The", " weather", '\n"in" \\Vienna\\', " is é中😀", "", "\t\x7f\u2028", "data: [DONE]", '"text":"x"', "C"]
DELTA = '{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}'


def payloads(*texts: str) -> list[bytes]:
    return [sse(text, "content_block_delta") for text in texts]


CASES: dict[str, list[bytes]] = {
    "text": [delta("text_delta", "text", word) for word in WORDS],
    "thinking": [delta("thinking_delta", "thinking", word) for word in WORDS],
    "signature": [delta("signature_delta", "signature", word) for word in WORDS],
    "tool arguments": [delta("input_json_delta", "partial_json", word) for word in WORDS],
    "citations": [delta("citations_delta", "citation", {"type": "char_location", "cited_text": word}) for word in WORDS],
    "unknown delta": [delta("other_delta", "text", word) for word in WORDS],
    "no type": [event("content_block_delta", index=0, delta={"text": word}) for word in WORDS],
    "two kinds": [delta(*pair, word) for word in WORDS for pair in [("text_delta", "text"), ("thinking_delta", "thinking")]],
    "unknown members": [delta("text_delta", "text", word, more={"text": [word, {"a": None}]}) for word in WORDS],
    "text in both": [delta("text_delta", "text", word, text=word) for word in WORDS],
    "index of another type": [event("content_block_delta", index=index, delta={"type": "text_delta", "text": word})
                              for index in ("0", None, 1.0, 1.5, True) for word in "abcd"],
    "text of another type": [delta("text_delta", "text", value) for value in [None, 1, 1.5, True, [], {}] for _ in "abc"],
    "delta of another type": [event("content_block_delta", index=0, delta=value) for value in [None, 1, "a", "b", []] * 2],
    "all escaped": payloads(*[DELTA.replace('"x"', ascii_) for ascii_ in (r'"\u00e9"', r'"\ud83d\ude00"', r'"\\"', r'"\""')]),
    "half a surrogate pair": payloads(*[DELTA.replace('"x"', text)
                                        for text in ['"a"', '"b"', '"c"', r'"\ud83d"', r'"\ude00"', '"d"']]),
    "half a pair first": payloads(*[DELTA.replace('"x"', text)
                                    for text in [r'"\ud83d"', r'"\ude00"', '"a"', '"b"', r'"\udfff"']]),
    "a name twice": payloads(*[DELTA.replace('"x"', f'"{word}", "text": "{word}"') for word in "abcdef"]),
    "types twice": payloads(*[DELTA[:-2] + f', "type": "thinking_delta", "thinking": "{word}"}}}}' for word in "abcdef"]),
    "no JSON": payloads(DELTA, DELTA, DELTA, DELTA[:-1]),
    "control character": payloads(DELTA, DELTA, DELTA, DELTA.replace("x", "\x01")),
    "other JSON": payloads("1", "[]", "null", "true", '"text"', "{}", "{}", "{}"),
    "error in the middle": [*[delta("text_delta", "text", word) for word in WORDS],
                            event("error", error={"type": "overloaded_error", "message": "Overloaded"})],
    "error that is no JSON": [delta("text_delta", "text", "a"), sse("overloaded", "error")],
    "names that are not the event's": [sse({"type": "content_block_stop", "index": 0, "text": word}, "content_block_delta")
                                       for word in WORDS],
    "no event names": [sse(DELTA)] * 4,
    "other event names": [sse(DELTA, name) for name in ("delta", "x.delta", "thread.message.delta", "a") for _ in "abc"],
    "large": [delta("text_delta", "text", word, pad="f" * 20_000) for word in (*"abc", "d" * 100_000)],
}  # fmt: skip
# ruff: noqa: E501


@pytest.fixture
def fast(llmstream: Any) -> Iterator[Any]:
    module = import_module("llmstream.integrations.anthropic")
    yield module
    module.uninstall()


@pytest.mark.parametrize("case", CASES)
def test_events_are_those_of_the_sdk(fast: Any, case: str) -> None:
    chunks = message(*CASES[case])
    for start in (SDK_.start, beta):
        for asynchronous in (False, True):
            stock = SDK_.outcome(chunks, start=start, asynchronous=asynchronous)
            ours = SDK_.outcome(chunks, fast.accelerate, start=start, asynchronous=asynchronous)
            assert_same(stock, ours)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Runs of deltas alike but for their text, now and then changed elsewhere."""
    text = st.text(st.characters(codec="utf-8"), max_size=20)
    value = st.none() | st.booleans() | st.integers() | text | st.lists(text, max_size=2)
    name = st.sampled_from(["type", "text", "delta", "index", "thinking", "partial_json", "id", "error"])
    kind = st.sampled_from(
        [("text_delta", "text"), ("thinking_delta", "thinking"), ("input_json_delta", "partial_json")]
    )
    members = st.dictionaries(name, value, max_size=2)
    found: list[bytes] = []
    for _ in range(draw(st.integers(1, 3))):
        type, member = draw(kind)
        inner, outer = draw(members), draw(members)
        for word in draw(st.lists(text, max_size=6)):
            payload = {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": type, member: word, **inner},
                **outer,
            }
            found.append(sse(payload, "content_block_delta", escaped=draw(st.booleans())))
    body = b"".join(found)
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=4)))
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@given(chunks=streams())
def test_any_stream_is_that_of_the_sdk(llmstream: Any, chunks: list[bytes]) -> None:
    fast = import_module("llmstream.integrations.anthropic")
    # Cut anywhere, the SDK's own decoder takes the ends of lines for others.
    assert_same(SDK_.outcome([b"".join(chunks)]), SDK_.outcome(chunks, fast.accelerate))


def test_most_events_of_a_text_are_built_from_a_template(fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    base = import_module("anthropic._base_client")
    own = base.construct_type
    fast.install()
    monkeypatch.setattr(base, "construct_type", lambda **keywords: built.append(1) or own(**keywords))
    found, _ = SDK_.outcome(message(*[delta("text_delta", "text", str(number)) for number in range(100)]))
    assert len(found) == 105
    assert len(built) == 5 + 2  # one to learn from, one to prove it


def test_no_part_of_an_event_is_shared_with_another(fast: Any) -> None:
    found, _ = SDK_.outcome(message(*CASES["unknown members"], *CASES["text"]), fast.accelerate)
    parts = [part for one in found for part in mutable_parts(one)]
    assert len(set(parts)) == len(parts)


def test_strict_validation_is_left_to_the_sdk(fast: Any) -> None:
    for case in ("text", "text of another type"):
        stock = SDK_.outcome(message(*CASES[case]), _strict_response_validation=True)
        assert_same(stock, SDK_.outcome(message(*CASES[case]), fast.accelerate, _strict_response_validation=True))


def test_the_stream_helper_and_raw_responses(fast: Any) -> None:
    def helper(client: Any) -> Any:
        return client.messages.stream(model="m", max_tokens=9, messages=MESSAGES)

    def raw(client: Any) -> Any:
        keywords = {"model": "m", "max_tokens": 9, "messages": MESSAGES, "stream": True}
        return client.messages.with_raw_response.create(**keywords).parse()

    for start in (helper, raw):
        stock = SDK_.outcome(message(*CASES["text"]), start=start)
        assert stock[1] is None
        assert_same(stock, SDK_.outcome(message(*CASES["text"]), fast.accelerate, start=start))


VERTEX = {"name": "AnthropicVertex", "region": "r", "project_id": "p", "access_token": "none"}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_vertex_streams_as_the_others_do(fast: Any, asynchronous: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(SDK_.options, "api_key")
    chunks = message(*CASES["text"])
    stock = SDK_.outcome(chunks, asynchronous=asynchronous, **VERTEX)
    assert len(stock[0]) == len(CASES["text"]) + 5
    assert_same(stock, SDK_.outcome(chunks, fast.accelerate, asynchronous=asynchronous, **VERTEX))
    fast.install()
    assert_same(stock, SDK_.outcome(chunks, asynchronous=asynchronous, **VERTEX))


@pytest.mark.parametrize("name", ["AnthropicBedrock", "AsyncAnthropicBedrock"])
def test_bedrock_is_left_alone(fast: Any, name: str) -> None:
    pytest.importorskip("botocore")
    client = getattr(anthropic, name)(aws_region="r", aws_access_key="none", aws_secret_key="none")
    before = dict(vars(client))
    fast._acceleration._told.clear()
    with pytest.warns(RuntimeWarning, match="AnthropicBedrock has a _make_sse_decoder of its own"):
        assert fast.accelerate(client) is client
    assert vars(client) == before
    fast.install()
    decoder = client._make_sse_decoder()
    assert type(decoder).__name__ == "AWSEventStreamDecoder"
    data = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
    keywords = {"data": data, "cast_to": import_module("anthropic.types").RawMessageStreamEvent, "response": None}
    ours = client._process_response_data(**keywords)
    fast.uninstall()
    assert_same(([client._process_response_data(**keywords)], None), ([ours], None))


def test_a_served_stream(fast: Any) -> None:
    with serving(message(*CASES["text"])) as address:
        stock = SDK_.read(anthropic.Anthropic(api_key="none", base_url=address), SDK_.start)
        fast.install()
        ours = SDK_.read(anthropic.Anthropic(api_key="none", base_url=address), SDK_.start)
        client = anthropic.AsyncAnthropic(api_key="none", base_url=address)
        asynchronous = SDK_.read(client, SDK_.start, asynchronous=True)
    assert len(stock[0]) == len(CASES["text"]) + 5
    assert_same(stock, ours)
    assert_same(stock, asynchronous)
