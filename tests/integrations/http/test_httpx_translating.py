"""Transports by which a client of a vendor talks to a standard endpoint, without the vendor's SDK."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from sse_server import PATIENCE, Server

from drafts import delta, end, error, start, stop, tool_call, usage
from streams import EVENTS, TEXTS

STREAM = {"Content-Type": "text/event-stream"}
WHOLE = "".join(TEXTS)

ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("/v1/chat/completions", {"model": "writer-1", "messages": [{"role": "user", "content": "Hi"}]}),
    "anthropic": (
        "/v1/messages",
        {"model": "writer-1", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    ),
    "gemini": (
        "/v1beta/models/writer-1:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    ),
}


def asked(vendor: str, stream: bool) -> tuple[str, dict[str, Any]]:
    path, body = ASKS[vendor]
    if vendor != "gemini":
        return path, {**body, "stream": stream}
    return (path.replace(":generate", ":streamGenerate") + "?alt=sse" if stream else path), body


def send(library: Any, ours: Any, server: Server, vendor: str, *, stream: bool = False, **given: Any) -> Any:
    """The response that a client of a vendor gets, read to its end."""
    path, body = asked(vendor, stream)
    path, body = given.pop("path", path), given.pop("body", body)
    method, headers = given.pop("method", "POST"), given.pop("headers", None)
    transport = ours.TranslatingTransport(library.HTTPTransport(verify=False), server.url("/llm"), vendor, **given)
    with library.Client(transport=transport, trust_env=False, timeout=30) as client:
        url = f"http://vendor.invalid{path}"
        return client.request(
            method, url, headers=headers, content=body if isinstance(body, bytes) else json.dumps(body)
        )


def asend(library: Any, ours: Any, server: Server, vendor: str, *, stream: bool = False, **given: Any) -> Any:
    async def response() -> Any:
        path, body = asked(vendor, stream)
        transport = ours.AsyncTranslatingTransport(
            library.AsyncHTTPTransport(verify=False), server.url("/llm"), vendor, **given
        )
        async with library.AsyncClient(transport=transport, trust_env=False, timeout=30) as client:
            return await client.post(f"http://vendor.invalid{path}", json=body)

    return asyncio.run(response())


SEND = [send, asend]


@pytest.mark.parametrize("vendor", ASKS)
@pytest.mark.parametrize("send", SEND)
def test_a_stream(llmstream: Any, library: Any, ours: Any, server: Server, send: Any, vendor: str) -> None:
    server.reply(200, {**STREAM, "X-Request-Id": "r-1"}, *EVENTS)
    response = send(library, ours, server, vendor, stream=True)
    assert (response.status_code, response.headers["x-request-id"]) == (200, "r-1")
    assert response.headers["content-type"].startswith("text/event-stream")
    found = llmstream.parse(response.content, dialect=vendor)
    assert (found.text, found.complete, found.model) == (WHOLE, True, "writer-1")
    ((method, path, headers, body),) = server.requests
    assert (method, path.partition("?")[0]) == ("POST", "/llm")
    assert headers["content-type"] == "application/llm-request+json"
    assert headers["accept"] == 'text/event-stream; profile="llm-stream-1.0"'
    request = llmstream.Request.from_json(body)
    assert (request.model, request.stream) == ("writer-1", True)
    assert request.messages[0].content == "Hi"


@pytest.mark.parametrize("vendor", ASKS)
def test_a_stream_goes_out_as_it_comes_in(library: Any, ours: Any, vendor: str) -> None:
    taken = []

    class Body(library.SyncByteStream):
        closed = False

        def __iter__(self) -> Any:
            for event in EVENTS:
                taken.append(event)
                yield event

        def close(self) -> None:
            self.closed = True

    body = Body()
    endpoint = library.MockTransport(lambda request: library.Response(200, headers=STREAM, stream=body))
    path, asks = asked(vendor, stream=True)
    with library.Client(transport=ours.TranslatingTransport(endpoint, "http://endpoint/", vendor)) as client:
        with client.stream("POST", f"http://vendor.invalid{path}", json=asks) as response:
            got = b""
            for chunk in response.iter_raw():
                got += chunk
                if b"Hello" in got:
                    break
            assert len(taken) == 2  # the start and the first words
        assert body.closed


OPENAI = {
    "object": "chat.completion",
    "created": 1749292800,
    "model": "writer-1",
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}


def test_a_whole_answer_of_openai(library: Any, ours: Any, server: Server) -> None:
    server.reply(200, STREAM, *EVENTS)
    answer = send(library, ours, server, "openai").json()
    assert answer.pop("id")
    message = {"role": "assistant", "content": WHOLE, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    assert answer == {**OPENAI, "choices": [choice]}


def test_a_whole_answer_of_anthropic(library: Any, ours: Any, server: Server) -> None:
    server.reply(200, STREAM, *EVENTS)
    answer = send(library, ours, server, "anthropic").json()
    assert answer.pop("id")
    assert answer.pop("usage") == {"input_tokens": 3, "output_tokens": 4}
    assert answer == {
        "type": "message",
        "role": "assistant",
        "model": "writer-1",
        "content": [{"type": "text", "text": WHOLE}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
    }


def test_a_whole_answer_of_gemini(library: Any, ours: Any, server: Server) -> None:
    server.reply(200, STREAM, *EVENTS)
    answer = send(library, ours, server, "gemini").json()
    assert answer.pop("responseId")
    assert answer == {
        "candidates": [{"content": {"parts": [{"text": WHOLE}], "role": "model"}, "index": 0, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
        "modelVersion": "writer-1",
        "createTime": "2025-06-07T10:40:00Z",
    }


ARGUMENTS = '{"city": "Wien", "n": 1.50, "big": 123456789012345678901234567890}'
CALLS = [
    start(model="writer-1", created=1749292800),
    delta(1, "Let me see."),
    tool_call(2, id="c-1", name="weather", arguments=ARGUMENTS),
    tool_call(3, id="c-2", name="time"),
    stop(4, stop_reason="tool_use"),
    usage(5, 1, 2),
    end(6),
]


@pytest.mark.parametrize("send", SEND)
def test_whole_answers_with_calls(library: Any, ours: Any, server: Server, send: Any) -> None:
    server.reply(200, STREAM, *CALLS)
    (choice,) = send(library, ours, server, "openai").json()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "Let me see."
    assert [(item["id"], item["type"], item["function"]) for item in choice["message"]["tool_calls"]] == [
        ("c-1", "function", {"name": "weather", "arguments": ARGUMENTS}),
        ("c-2", "function", {"name": "time", "arguments": "{}"}),
    ]
    server.reply(200, STREAM, *CALLS)
    response = send(library, ours, server, "anthropic")
    text, first, second = response.json()["content"]
    assert text == {"type": "text", "text": "Let me see."}
    assert (first["type"], first["id"], first["name"], first["input"]) == (
        "tool_use",
        "c-1",
        "weather",
        json.loads(ARGUMENTS),
    )
    assert b"1.50" in response.content
    assert second["input"] == {}
    server.reply(200, STREAM, *CALLS)
    response = send(library, ours, server, "gemini")
    (candidate,) = response.json()["candidates"]
    assert [part.get("functionCall", {}).get("name") for part in candidate["content"]["parts"]] == [
        None,
        "weather",
        "time",
    ]
    assert candidate["content"]["parts"][1]["functionCall"]["args"] == json.loads(ARGUMENTS)
    assert b"123456789012345678901234567890" in response.content


@pytest.mark.parametrize("depth", [100, 490, 499, 2000])
@pytest.mark.parametrize("vendor", ASKS)
def test_arguments_that_are_nested_deep(library: Any, ours: Any, server: Server, vendor: str, depth: int) -> None:
    """They arrive, or the answer is an error of the vendor."""
    deep = '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"
    server.reply(200, STREAM, start(), tool_call(1, arguments=deep), stop(2), usage(3), end(4))
    response = send(library, ours, server, vendor)
    assert response.status_code == (500 if depth > 500 else 200)
    found = response.text.replace("\\", "")
    assert (deep in found) == (depth <= 500)


def test_a_caller_that_has_left_little_of_the_stack(library: Any, ours: Any) -> None:
    deep = '{"a":' + "[" * 400 + "]" * 400 + "}"
    body = b"".join([start(), tool_call(1, arguments=deep), stop(2), usage(3), end(4)])
    endpoint = library.MockTransport(lambda request: library.Response(200, headers=STREAM, content=body))

    def deeper(levels: int, ask: Any) -> Any:
        return deeper(levels - 1, ask) if levels else ask()

    for vendor in ASKS:
        path, asks = asked(vendor, stream=False)
        request = library.Request("POST", f"http://vendor.invalid{path}", json=asks)
        transport = ours.TranslatingTransport(endpoint, "http://endpoint/", vendor)
        response = deeper(500, lambda transport=transport, request=request: transport.handle_request(request))
        assert response.status_code in (200, 500)
        response.json()


def test_an_answer_without_words(library: Any, ours: Any, server: Server) -> None:
    nothing = [start(), stop(1), usage(2, 1, 0), end(3)]
    server.reply(200, STREAM, *nothing)
    assert send(library, ours, server, "openai").json()["choices"][0]["message"]["content"] == ""
    server.reply(200, STREAM, *nothing)
    assert send(library, ours, server, "anthropic").json()["content"] == []
    server.reply(200, STREAM, *nothing)
    assert send(library, ours, server, "gemini").json()["candidates"][0]["finishReason"] == "STOP"


def error_of(vendor: str, response: Any) -> tuple[str | None, str]:
    """The word and the message of a vendor's error, as its documentation has them."""
    body = response.json()
    if vendor == "anthropic":
        assert body["type"] == "error"
    if vendor == "gemini":
        assert body["error"]["code"] == response.status_code
    found = body["error"]
    return found["status" if vendor == "gemini" else "type"], found["message"]


FAILED = [*EVENTS[:3], error(3, code="overloaded", message="busy"), end(4)]


@pytest.mark.parametrize(
    ("vendor", "status", "word"),
    [("openai", 503, "server_error"), ("anthropic", 529, "overloaded_error"), ("gemini", 503, "UNAVAILABLE")],
)
@pytest.mark.parametrize("send", SEND)
def test_an_error_within_the_stream_of_a_whole_answer(
    library: Any, ours: Any, server: Server, send: Any, vendor: str, status: int, word: str
) -> None:
    server.reply(200, STREAM, *FAILED)
    response = send(library, ours, server, vendor)
    assert response.status_code == status
    assert error_of(vendor, response) == (word, "busy")


@pytest.mark.parametrize("vendor", ASKS)
def test_a_cut_stream_is_no_whole_answer(library: Any, ours: Any, server: Server, vendor: str) -> None:
    server.reply(200, STREAM, *EVENTS[:3])
    response = send(library, ours, server, vendor)
    assert response.status_code == 500
    assert error_of(vendor, response)[0] in ("server_error", "api_error", "INTERNAL")
    server.reply(200, STREAM, *EVENTS[:2], *EVENTS[3:])  # one is lost
    assert send(library, ours, server, vendor).status_code == 500


STATUSES = {
    "openai": {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        429: "rate_limit_error",
        500: "server_error",
        503: "server_error",
    },
    "anthropic": {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        529: "overloaded_error",
    },
    "gemini": {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
    },
}


@pytest.mark.parametrize(("vendor", "status"), [(vendor, status) for vendor in STATUSES for status in STATUSES[vendor]])
@pytest.mark.parametrize("stream", [True, False])
def test_an_error_of_the_endpoint_is_the_vendors(
    library: Any, ours: Any, server: Server, vendor: str, status: int, stream: bool
) -> None:
    headers = {"Content-Type": "application/json", "Retry-After": "7", "Set-Cookie": "a=b"}
    server.reply(status, headers, b'{"error": {"message": "no \\ud83d"', b"}}")
    response = send(library, ours, server, vendor, stream=stream)
    assert response.status_code == status
    assert error_of(vendor, response)[0] == STATUSES[vendor][status]
    assert error_of(vendor, response)[1].startswith("no ")
    assert response.headers["retry-after"] == "7"
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"code": "context_length_exceeded", "message": "long"}}', "long"),
        (b'{"code": "context_length_exceeded", "message": "long"}', "long"),
        (b'{"error": "long"}', "long"),
        (b'{"detail": "long"}', "long"),
        (b"<html>", ""),
        (b"[" * 100_000, ""),
        (b'{"error": {"code": 7, "message": ["long"]}}', ""),
        (b"\xff\xfe", ""),
        (b"", ""),
        (b'{"error": {"message": "' + b"x" * 2**20 + b'"}}', ""),
    ],
)
@pytest.mark.parametrize("send", SEND)
def test_bodies_of_errors(library: Any, ours: Any, server: Server, send: Any, body: bytes, said: str) -> None:
    server.reply(400, {"Content-Type": "application/json"}, *([body] if body else []))
    response = send(library, ours, server, "openai")
    assert response.status_code == 400
    assert error_of("openai", response) == ("invalid_request_error", said)


@pytest.mark.parametrize("send", SEND)
@pytest.mark.parametrize("over", [0, 1])
def test_how_much_of_an_error_is_read(library: Any, ours: Any, server: Server, send: Any, over: int) -> None:
    words = "x" * (64 * 1024 - len('{"message":""}') + over)
    body = json.dumps({"message": words}, separators=(",", ":")).encode()
    server.reply(400, {"Content-Type": "application/json"}, body[:1000], body[1000:])
    assert error_of("openai", send(library, ours, server, "openai"))[1] == ("" if over else words)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {"Content-Type": "application/json"}),
        (200, {}),
        (302, {"Location": "http://elsewhere.invalid/"}),
        (206, STREAM),
    ],
)
@pytest.mark.parametrize("send", SEND)
def test_an_endpoint_that_does_not_stream(
    library: Any, ours: Any, send: Any, status: int, headers: dict[str, str], server: Server
) -> None:
    server.reply(status, headers, b"{}")
    response = send(library, ours, server, "openai", stream=True)
    assert response.status_code == 502
    assert response.headers["x-should-retry"] == "false"
    assert error_of("openai", response)[0] == "server_error"


REFUSED: list[tuple[str, dict[str, Any], int]] = [
    ("openai", {"path": "/v1/responses"}, 404),
    ("openai", {"path": "/v1/models", "method": "GET"}, 404),
    ("openai", {"body": b"{"}, 400),
    ("openai", {"body": b""}, 400),
    ("openai", {"body": b"[" * 10_000}, 400),
    ("openai", {"body": {"model": "m", "messages": [{"role": "user", "content": {"SECRET": 1}}]}}, 400),
    ("anthropic", {"path": "/v1/messages/count_tokens"}, 404),
    ("gemini", {"path": "/v1beta/models/m:embedContent"}, 404),
    ("gemini", {"path": "/v1beta/models/m:streamGenerateContent"}, 400),
]


@pytest.mark.parametrize(("vendor", "given", "status"), REFUSED)
def test_what_has_no_translation_is_refused(
    library: Any, ours: Any, server: Server, vendor: str, given: dict[str, Any], status: int
) -> None:
    response = send(library, ours, server, vendor, **given)
    assert response.status_code == status
    error_of(vendor, response)
    assert "SECRET" not in response.text
    assert not server.requests


def test_the_headers_that_the_endpoint_gets(library: Any, ours: Any, server: Server) -> None:
    given = {
        "x-api-key": "k",
        "anthropic-version": "1",
        "cookie": "a=b",
        "x-stainless-lang": "python",
        "traceparent": "00-1",
        "x-other-key": "secret",
    }
    server.reply(200, STREAM, *EVENTS)
    send(library, ours, server, "anthropic", headers=given)
    sent = server.requests[0][2]
    assert (sent["authorization"], sent["traceparent"]) == ("Bearer k", "00-1")
    assert not {"x-api-key", "anthropic-version", "cookie", "x-stainless-lang", "x-other-key"} & set(sent)
    server.reply(200, STREAM, *EVENTS)
    more = {"Authorization": "Bearer other", "x-tenant": "t"}
    transport = ours.TranslatingTransport(
        library.HTTPTransport(verify=False), server.url("/llm"), "openai", headers=more
    )
    path, body = asked("openai", stream=False)
    with library.Client(transport=transport) as client:
        client.post(f"http://vendor.invalid{path}", json=body, headers={"authorization": "Bearer k"})
    sent = server.requests[1][2]
    assert (sent["authorization"], sent["x-tenant"]) == ("Bearer other", "t")


@pytest.mark.parametrize("options", [None, {"include_usage": True}, {"include_usage": False}, "x"])
def test_openais_clients_get_the_counts_that_they_ask_for(
    library: Any, ours: Any, server: Server, options: dict[str, bool] | str | None
) -> None:
    path, body = asked("openai", stream=True)
    server.reply(200, STREAM, *EVENTS)
    response = send(library, ours, server, "openai", path=path, body={**body, "stream_options": options})
    if options == "x":
        assert response.status_code == 400
    else:
        assert (b'"usage"' in response.content) == bool(options and options["include_usage"])


def test_losses_are_told(library: Any, ours: Any, server: Server, caplog: pytest.LogCaptureFixture) -> None:
    path, body = asked("openai", stream=False)
    found: list[Any] = []
    server.reply(200, STREAM, *EVENTS)
    send(
        library, ours, server, "openai", path=path, body={**body, "n": 2, "logprobs": True},
        on_loss=lambda request, losses: found.extend(losses),
    )  # fmt: skip
    assert {loss.path for loss in found} == {"n", "logprobs"}
    server.reply(200, STREAM, *EVENTS)
    with caplog.at_level(logging.WARNING, logger="llmstream.integrations"):
        send(library, ours, server, "openai", path=path, body={**body, "logprobs": True, "my secret": "SECRET"})
    assert "logprobs" in caplog.text
    assert "SECRET" not in caplog.text
    assert "my secret" not in caplog.text


def test_a_loss_can_be_refused(library: Any, ours: Any, server: Server) -> None:
    class LossError(Exception):
        pass

    def refuse(request: Any, losses: Any) -> None:
        raise LossError

    path, body = asked("openai", stream=False)
    with pytest.raises(LossError):
        send(library, ours, server, "openai", path=path, body={**body, "logprobs": True}, on_loss=refuse)
    assert not server.requests


def test_an_endpoint_that_cannot_be_reached(library: Any, ours: Any) -> None:
    path, body = asked("openai", stream=True)
    transport = ours.TranslatingTransport(library.HTTPTransport(verify=False), "http://127.0.0.1:1/", "openai")
    with library.Client(transport=transport) as client, pytest.raises(library.ConnectError):
        client.post(f"http://vendor.invalid{path}", json=body)


def test_a_connection_that_is_cut(llmstream: Any, library: Any, ours: Any) -> None:
    class Body(library.SyncByteStream):
        def __iter__(self) -> Any:
            yield from EVENTS[:3]
            raise library.ReadError("cut")

    endpoint = library.MockTransport(lambda request: library.Response(200, headers=STREAM, stream=Body()))
    path, body = asked("openai", stream=True)
    got: list[bytes] = []
    with (
        library.Client(transport=ours.TranslatingTransport(endpoint, "http://endpoint/", "openai")) as client,
        client.stream("POST", f"http://vendor.invalid{path}", json=body) as response,
        pytest.raises(library.ReadError),
    ):
        got.extend(response.iter_raw())  # which keeps what came before the error
    found = llmstream.parse(b"".join(got), dialect="openai")
    assert (found.text, found.complete, found.error.code) == ("Hello wörld", False, "internal_error")


def test_the_timeouts_of_the_client_hold(library: Any, ours: Any) -> None:
    found: list[Any] = []

    def endpoint(request: Any) -> Any:
        found.append(request.extensions)
        return library.Response(200, headers=STREAM, content=b"".join(EVENTS))

    path, body = asked("openai", stream=False)
    transport = ours.TranslatingTransport(library.MockTransport(endpoint), "http://endpoint/", "openai")
    with library.Client(transport=transport, timeout=library.Timeout(3, read=4)) as client:
        response = client.post(f"http://vendor.invalid{path}", json=body, extensions={"target": b"/elsewhere"})
        assert response.json()["choices"]
    assert found == [{"timeout": {"connect": 3, "read": 4, "write": 3, "pool": 3}}]


def test_an_unknown_vendor(library: Any, ours: Any) -> None:
    with pytest.raises(ValueError, match="openai, anthropic and gemini"):
        ours.TranslatingTransport(library.HTTPTransport(verify=False), "http://endpoint/", "cohere")


def test_leaving_early_closes_the_endpoints_connection(library: Any, ours: Any, server: Server) -> None:
    closed = []

    class Body(library.AsyncByteStream):
        async def __aiter__(self) -> Any:
            for event in EVENTS:
                yield event

        async def aclose(self) -> None:
            closed.append(True)

    endpoint = library.MockTransport(lambda request: library.Response(200, headers=STREAM, stream=Body()))
    path, body = asked("anthropic", stream=True)

    async def run() -> None:
        transport = ours.AsyncTranslatingTransport(endpoint, "http://endpoint/", "anthropic")
        async with library.AsyncClient(transport=transport) as client:
            async with client.stream("POST", f"http://vendor.invalid{path}", json=body) as response:
                async for _ in response.aiter_raw():
                    break
            assert closed

    asyncio.run(asyncio.wait_for(run(), PATIENCE))


def drive(library: Any, ours: Any, answer: Any, *, asynchronous: bool, stream: bool, **given: Any) -> Any:
    """What a client of OpenAI gets of an endpoint that answers so, and how often the endpoint's body was closed."""
    closed: list[int] = []

    class Body(library.SyncByteStream, library.AsyncByteStream):
        def __iter__(self) -> Any:
            yield from EVENTS

        async def __aiter__(self) -> Any:
            for event in EVENTS:
                yield event

        def close(self) -> None:
            closed.append(1)

        async def aclose(self) -> None:
            closed.append(1)

    endpoint = library.MockTransport(lambda request: answer(request, Body()))
    path, body = asked("openai", stream=stream)
    url = f"http://vendor.invalid{path}"

    async def run() -> Any:
        transport = ours.AsyncTranslatingTransport(endpoint, "http://endpoint/", "openai")
        async with library.AsyncClient(transport=transport) as client:
            return await client.post(url, json=body, **given)

    try:
        if asynchronous:
            return asyncio.run(run()), closed
        with library.Client(transport=ours.TranslatingTransport(endpoint, "http://endpoint/", "openai")) as client:
            return client.post(url, json=body, **given), closed
    except Exception as error:  # noqa: BLE001 (which, the test says)
        return error, closed


ODD = ["é".encode(), "é".encode("latin-1"), b"\xff\xfe", "中".encode(), b"\x80", b""]
"""Values of headers that are no ASCII, or nothing; RFC 9110, section 5.5, lets them be."""


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("status", "content_type"),
    [(200, b"text/event-stream"), (200, b"text/html"), (302, b"text/html"), (429, b"application/json"), (200, None)],
)
def test_headers_of_the_endpoint_go_on_as_they_are(
    library: Any, ours: Any, status: int, content_type: bytes | None, stream: bool, asynchronous: bool
) -> None:
    for value in ODD:
        headers = [(b"X-Request-Id", value), (b"Retry-After", b"7"), (b"X-Should-Retry", b"true"), (b"X-Other", value)]
        headers.append((b"Content-Type", value if content_type is None else content_type))
        response, closed = drive(
            library,
            ours,
            lambda request, body, headers=headers: library.Response(status, headers=headers, stream=body),
            asynchronous=asynchronous,
            stream=stream,
        )
        is_stream = (status, content_type) == (200, b"text/event-stream")
        assert response.status_code == (status if is_stream or status == 429 else 502)
        found = [(name.lower(), value) for name, value in response.headers.raw]
        # Nothing of a redirection is.
        assert ((b"x-request-id", value) in found) == ((b"retry-after", b"7") in found) == (status != 302)
        # Asking an endpoint again that does not stream would not help.
        retry = b"true" if is_stream or status == 429 else b"false"
        assert [value for name, value in found if name == b"x-should-retry"] == [retry]
        assert not {name for name, _ in found} & {b"x-other"}
        assert closed


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("value", ODD)
def test_headers_of_the_client_go_on_as_they_are(library: Any, ours: Any, value: bytes, asynchronous: bool) -> None:
    found: list[Any] = []

    def answer(request: Any, body: Any) -> Any:
        found.extend((name.lower(), value) for name, value in request.headers.raw)
        return library.Response(200, headers=STREAM, stream=body)

    given = [(b"x-request-id", value), (b"x-api-key", b"k" + value), (b"tracestate", b"a=1"), (b"tracestate", b"b=2")]
    response, _ = drive(library, ours, answer, asynchronous=asynchronous, stream=True, headers=given)
    assert response.status_code == 200
    assert [value for name, value in found if name == b"x-request-id"] == [value]
    assert [value for name, value in found if name == b"authorization"] == [b"Bearer k" + value]
    assert b", ".join(value for name, value in found if name == b"tracestate") == b"a=1, b=2"


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("status", [200, 302, 500])
@pytest.mark.parametrize("where", ["_fault", "_made", "_streamed", "_whole"])
def test_whatever_goes_wrong_the_endpoints_response_is_closed(
    library: Any, ours: Any, monkeypatch: pytest.MonkeyPatch, where: str, status: int, stream: bool, asynchronous: bool
) -> None:
    class FaultError(Exception):
        pass

    def fail(*_: Any) -> Any:
        raise FaultError

    for transport in (ours.TranslatingTransport, ours.AsyncTranslatingTransport):
        monkeypatch.setattr(transport, where, fail)
    found, closed = drive(
        library,
        ours,
        lambda request, body: library.Response(status, headers=STREAM, stream=body),
        asynchronous=asynchronous,
        stream=stream,
    )
    is_met = {"_fault": True, "_made": status != 200 or not stream, "_streamed": status == 200 and stream}
    assert isinstance(found, FaultError) == is_met.get(where, status == 200 and not stream)
    assert closed


def test_headers_for_the_endpoint_that_cannot_be_sent(library: Any, ours: Any) -> None:
    for headers in ({"x-tenant": "é"}, {"é": "x"}):
        with pytest.raises(ValueError, match="ascii"):
            ours.TranslatingTransport(None, "http://endpoint/", "openai", headers=headers)
