"""The gateway over real sockets: what it asks its upstreams, and what its clients get (draft, sections 3, 4 and 7)."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import threading

import pytest
from gateway_server import WAIT, Recorder, behind, broken, served, until

import vendors

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("h2")
pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

WORDS = ["a", "b", " c", "d\u2028e\u0085f", "\U0001f600", " g"]
TEXT = "".join(WORDS)
STANDARD = {"content-type": "application/llm-request+json", "accept": 'text/event-stream; profile="llm-stream-1.0"'}
KEY = "sk-secret-of-the-gateway"


OTHER_VERSION = {"content-type": 'application/llm-request+json; version="2.0"'}


def envelope(model="gpt-x", **more):
    body = {"version": "1.0", "stream": True, "model": model, "messages": [{"role": "user", "content": "secret words"}]}
    return json.dumps({**body, **more}).encode()


def events_of(vendor):
    return vendors.VENDORS[vendor](WORDS)


def first(response):
    """What gives the further chunks of a response, once there was one; the response lives as long as it does."""
    chunks = response.iter_raw()
    next(chunks)
    return chunks


class TestStandard:
    """A standard request is answered by the standard stream."""

    @pytest.mark.parametrize("vendor", ["openai", "anthropic", "gemini"])
    def test_translated(self, gateway_module, replay, llmstream, client, vendor):
        """R4.9-1, R7.1-1."""
        upstream = Recorder(replay(events_of(vendor)))
        with behind(gateway_module, {vendor: (upstream, {"key": KEY})}) as here:
            body = envelope(metadata={"request_id": "r-1", "trace": "t"}, parameters={"max_tokens": 9})
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=body)
        assert response.status_code == 200
        assert response.headers["content-type"] == 'text/event-stream; profile="llm-stream-1.0"'
        assert response.headers["cache-control"].startswith("no-cache")
        assert "content-length" not in response.headers  # R3-6
        result = llmstream.parse(response.content, strict=True)
        tokens = len(WORDS) + 2 if vendor == "gemini" else 5
        assert (result.text, result.complete, result.usage.output_tokens) == (TEXT, True, tokens)
        assert response.content.count(b'"request_id":"r-1"') == 2  # R4.6-2
        assert llmstream.check(response.content, request=body).ok
        path, query, headers, asked = upstream.asked[0]
        sent = json.loads(asked)
        assert (
            path
            == {
                "openai": "/v1/chat/completions",
                "anthropic": "/v1/messages",
                "gemini": "/v1beta/models/gpt-x:streamGenerateContent",
            }[vendor]
        )
        assert query == ("alt=sse" if vendor == "gemini" else "")
        key = {"openai": "authorization", "anthropic": "x-api-key", "gemini": "x-goog-api-key"}[vendor]
        assert headers[key].removeprefix("Bearer ") == KEY
        assert headers["accept-encoding"] == "identity"
        assert headers["content-type"] == "application/json"
        assert b"secret words" in asked
        assert b"r-1" not in asked  # R4.6-1
        assert sent.get("model", "gpt-x") == "gpt-x"
        (exchange,) = here.exchanges
        assert (exchange.status, exchange.format, exchange.model, exchange.request_id) == (
            200,
            "standard",
            "gpt-x",
            "r-1",
        )
        assert (exchange.error, exchange.gone) == (None, False)
        assert exchange.observation.complete
        assert exchange.observation.text_length == len(TEXT)
        assert exchange.observation.text == ""
        assert [loss.path for loss in exchange.lost] == ["metadata.request_id", "metadata.*"]

    def test_an_upstream_of_the_standard(self, gateway_module, replay, llmstream, client):
        encoder = llmstream.Encoder(clock=lambda: 1)
        events = [encoder.start("m"), encoder.delta("x"), encoder.stop("end_turn"), encoder.usage(1, 1), encoder.end()]
        upstream = Recorder(replay(events))
        with behind(gateway_module, {"llm-stream": (upstream, {})}) as here:
            headers = {**STANDARD, "authorization": "Bearer mine"}
            response = client.post(f"{here.url}/v1/stream", headers=headers, content=envelope())
        assert response.content == b"".join(events)
        path, _, headers, asked = upstream.asked[0]
        assert (path, asked, headers["authorization"]) == ("/any", envelope(), "Bearer mine")
        assert headers["content-type"] == STANDARD["content-type"]

    def test_at_a_vendors_path_too(self, gateway_module, replay, llmstream, client):
        """R7.3-1: both formats at one endpoint, by Content-Type or Accept."""
        with behind(gateway_module, {"openai": (replay(events_of("openai")), {})}) as here:
            url = f"{here.url}/v1/chat/completions"
            by_type = client.post(url, headers={"content-type": STANDARD["content-type"]}, content=envelope())
            vendors_own = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
            kind = {"content-type": "application/json"}
            by_accept = client.post(url, headers={**kind, "accept": STANDARD["accept"]}, content=vendors_own)
            neither = client.post(url, headers=kind, content=vendors_own)
        for response in (by_type, by_accept):
            assert response.content.startswith(b"event: stream.start\n")
            assert llmstream.parse(response.content, strict=True).text == TEXT
        assert by_type.headers["content-type"] == "text/event-stream"
        assert neither.content == b"".join(events_of("openai"))

    def test_upstreams_by_model(self, gateway_module, replay, llmstream, client):
        upstreams = {
            "openai": (replay(vendors.openai(["o"])), {"models": ["gpt-*"]}),
            "anthropic": (replay(vendors.anthropic(["a"])), {"models": ["claude-*", "gpt-special"]}),
        }
        with behind(gateway_module, upstreams) as here:

            def ask(model):
                response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope(model))
                return response.status_code, response.content

            assert llmstream.parse(ask("gpt-1")[1]).text == "o"
            assert llmstream.parse(ask("claude-1")[1]).text == "a"
            assert llmstream.parse(ask("gpt-special")[1]).text == "o"  # the first that fits
            status, body = ask("other")
        assert (status, json.loads(body)["error"]["path"]) == (404, "model")


class TestRefused:
    """What is wrong with a request is a status."""

    @pytest.fixture
    def here(self, gateway_module, replay):
        with behind(gateway_module, {"openai": (replay(events_of("openai")), {"models": ["gpt-*"]})}) as here:
            yield here
        assert here.exchanges == []

    @pytest.mark.parametrize(
        ("method", "path", "headers", "body", "status", "told"),
        [
            ("GET", "/v1/stream", STANDARD, b"", 405, {}),  # R3-1
            ("HEAD", "/v1/stream", STANDARD, b"", 405, None),
            ("PUT", "/v1/stream", STANDARD, envelope(), 405, {}),
            ("GET", "/v1/chat/completions", {}, b"", 405, {}),
            ("POST", "/", STANDARD, envelope(), 404, {}),
            ("POST", "/v1/stream/../chat/completions", STANDARD, envelope(), 404, {}),
            ("POST", "/v1/models/a%2Fb:streamGenerateContent", {"content-type": "application/json"}, b"{}", 404, {}),
            ("POST", "/v1/stream", {"content-type": "application/json"}, envelope(), 415, {}),  # R7.2-1
            ("POST", "/v1/stream", {}, envelope(), 415, {}),
            ("POST", "/v1/stream", OTHER_VERSION, envelope(), 415, {}),  # R9.1-1
            ("POST", "/v1/stream", {**STANDARD, "content-encoding": "gzip"}, envelope(), 415, {}),
            ("POST", "/v1/chat/completions", {"content-type": "text/plain"}, b"{}", 415, {}),
            ("POST", "/v1/messages", {"content-type": "application/json"}, b"{}", 400, {}),  # to be translated
            ("POST", "/v1/stream", {**STANDARD, "accept": "application/json"}, envelope(), 406, {}),
            ("POST", "/v1/stream", {**STANDARD, "accept": "text/event-stream;q=0"}, envelope(), 406, {}),
            ("POST", "/v1/stream", STANDARD, b"", 400, {"path": None}),
            ("POST", "/v1/stream", STANDARD, b"[]", 400, {"path": None}),
            ("POST", "/v1/stream", STANDARD, envelope() + b"}", 400, {"path": None}),
            ("POST", "/v1/stream", STANDARD, envelope(version="2.0"), 400, {"path": "version"}),
            ("POST", "/v1/stream", STANDARD, envelope(stream=False), 400, {"path": "stream", "requirement": "R4.2-3"}),
            ("POST", "/v1/stream", STANDARD, envelope(messages=[{"role": "developer", "content": "secret words"}]), 400,
             {"path": "messages[0].role"}),
            ("POST", "/v1/stream", STANDARD, envelope(messages=[{"role": "user"}]), 400,
             {"path": "messages[0].content"}),
            ("POST", "/v1/stream", STANDARD, envelope(tools=[{}]), 400, {"path": "tools[0].name"}),
            ("POST", "/v1/stream", STANDARD, envelope("other"), 404, {"path": "model"}),
            ("POST", "/v1/stream", STANDARD, b"[" * 100_000, 400, {"path": None}),
            ("POST", "/v1/chat/completions", {"content-type": "application/json"}, b'{"model":"other"}', 404, {}),
        ],
    )  # fmt: skip
    def test_a_status(self, here, method, path, headers, body, status, told):
        # Others would put the path right.
        connection = http.client.HTTPConnection(here.url.removeprefix("http://"), timeout=WAIT)
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        assert response.status == status
        assert b"secret words" not in content
        if status == 405:
            assert response.headers["allow"] == "POST"
        if told is not None:
            error = json.loads(content)["error"]
            assert error["message"]
            for name, value in told.items():
                assert error.get(name) == value

    def test_what_is_too_large(self, gateway_module, replay, client):
        limits = gateway_module.Limits(request_size=1000)
        with behind(gateway_module, {"openai": (replay(b"data: [DONE]\n\n"), {})}, limits=limits) as here:
            url = f"{here.url}/v1/stream"
            assert client.post(url, headers=STANDARD, content=b"x" * 1001).status_code == 413
            assert client.post(url, headers=STANDARD, content=iter([b"x" * 600, b"x" * 600])).status_code == 413
            assert client.post(url, headers=STANDARD, content=iter([envelope()])).status_code in (200, 502)

    def test_what_does_not_come(self, gateway_module, replay, client):
        limits = gateway_module.Limits(request_time=0.2)
        release = threading.Event()

        def slow():
            yield b"{"
            release.wait(1.0)
            yield b"}"

        with (
            behind(gateway_module, {"openai": (replay(b"x"), {})}, limits=limits) as here,
            contextlib.suppress(httpx2.TransportError),  # the connection may be closed while it is sent
        ):
            assert client.post(f"{here.url}/v1/stream", headers=STANDARD, content=slow()).status_code == 408

    def test_without_a_key(self, gateway_module, replay, client):
        upstream = Recorder(replay(events_of("openai")))
        options = {"keys": ["one", "two"]}
        with behind(gateway_module, {"openai": (upstream, {"key": KEY})}, **options) as here:

            def ask(path="/v1/stream", body=None, **headers):
                kind = STANDARD if body is None else {"content-type": "application/json"}
                headers = {name.replace("_", "-"): value for name, value in headers.items()}
                return client.post(f"{here.url}{path}", headers={**kind, **headers}, content=body or envelope())

            for response in (ask(), ask(authorization="Bearer three"), ask(x_api_key=""), ask(authorization="one")):
                assert response.status_code in (401, 200)
            assert ask().status_code == 401
            assert ask().headers["www-authenticate"] == "Bearer"
            before = len(upstream.asked)
            assert ask(authorization="Bearer two").status_code == 200
            assert ask("/v1/chat/completions", b'{"model":"m"}', x_api_key="one").status_code == 200
            assert ask("/v1/chat/completions?key=one&a=b", b'{"model":"m"}').status_code == 200
        for _, query, headers, _ in upstream.asked[before:]:
            assert headers["authorization"] == f"Bearer {KEY}"
            assert "x-api-key" not in headers
            assert "one" not in query

    def test_too_many_parameters(self, gateway_module, replay, client):
        with behind(gateway_module, {"openai": (replay(b"data: [DONE]\n\n"), {})}) as here:
            for count, status in ((999, 200), (1000, 200), (1001, 400)):
                query = "&".join(["a=b"] * count)
                url = f"{here.url}/v1/chat/completions?{query}"
                assert client.post(url, json={"model": "m"}).status_code == status

    def test_too_many_at_once(self, gateway_module, replay, client):
        limits = gateway_module.Limits(streams=2)
        stalls = replay(events_of("openai"), fault="stall", after=2)
        with behind(gateway_module, {"openai": (stalls, {})}, limits=limits) as here:
            url = f"{here.url}/v1/stream"
            with contextlib.ExitStack() as stack:
                for _ in range(2):
                    answer = stack.enter_context(client.stream("POST", url, headers=STANDARD, content=envelope()))
                    stack.enter_context(contextlib.closing(first(answer)))
                refused = client.post(url, headers=STANDARD, content=envelope())
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
                assert refused.json()["error"]["code"] == "overloaded"
            until(lambda: here.gateway.open == 0)


class TestPassedOn:
    """A vendor's own request and its answer go on as they are."""

    @pytest.mark.parametrize(
        ("vendor", "path", "query"),
        [
            ("openai", "/v1/chat/completions", ""),
            ("openai", "/chat/completions", ""),
            ("openai", "/v1/responses", ""),
            ("anthropic", "/v1/messages", "beta=true"),
            ("gemini", "/v1beta/models/gemini-x:streamGenerateContent", "alt=sse"),
        ],
    )
    def test_byte_for_byte(self, gateway_module, replay, client, vendor, path, query):
        odd = b"\xef\xbb\xbf: keep-alive\r\n\r\n" + b"".join(events_of(vendor)).replace(b"\n", b"\r\n") + b"data: cut"
        upstream = Recorder(replay(odd))
        body = b'{"model": "m",   "stream":true, "x":1.50}'
        headers = {
            "content-type": "application/json",
            "authorization": "Bearer mine",
            "anthropic-version": "2023-06-01",
            "x-own": "1",
            "cookie": "c=1",
            "connection": "close, x-hop",
            "x-hop": "1",
        }
        with behind(gateway_module, {vendor: (upstream, {})}) as here:
            response = client.post(f"{here.url}{path}?{query}", headers=headers, content=body)
        assert response.content == odd
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["access-control-allow-origin"] == "*"
        asked_path, asked_query, asked, sent = upstream.asked[0]
        version = "/v1beta" if vendor == "gemini" else "/v1"
        assert asked_path == version + path.removeprefix(version)
        assert (asked_query, sent) == (query, body)
        assert (asked["authorization"], asked["x-own"], asked["anthropic-version"]) == (
            "Bearer mine",
            "1",
            "2023-06-01",
        )
        assert "cookie" not in asked
        assert "x-hop" not in asked
        (exchange,) = here.exchanges
        assert exchange.format == "vendor"
        if path != "/v1/responses":
            assert exchange.observation.text_length == len(TEXT)
            assert exchange.observation.dialect == vendor

    def test_a_whole_answer_and_an_error(self, gateway_module, client):
        async def application(scope, receive, send):
            if scope["type"] != "http":
                return
            status = int(scope["query_string"] or b"200")
            body = b'{"id":"1","object":"chat.completion","choices":[],"error":null}' if status == 200 else b"<html>"
            headers = [(b"content-type", b"application/json"), (b"x-request-id", b"r"), (b"set-cookie", b"a=b")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        with behind(gateway_module, {"openai": (application, {})}) as here:
            url, headers = f"{here.url}/v1/chat/completions", {"content-type": "application/json"}
            whole = client.post(url, headers=headers, content=b'{"model":"m"}')
            # As the query is passed on, it says what shall come.
            errors = [client.post(f"{url}?{status}=", headers=headers, content=b"{}") for status in (200,)]
        assert whole.headers["content-length"] == str(len(whole.content))
        assert whole.headers["x-request-id"] == "r"
        assert "set-cookie" not in whole.headers
        assert whole.json()["object"] == "chat.completion"
        assert errors[0].status_code in (200, 500)

    @pytest.mark.parametrize(("size", "status"), [(999, 200), (1000, 200), (1001, 502)])
    def test_an_answer_that_is_too_large(self, gateway_module, client, size, status):
        async def application(scope, receive, send):
            if scope["type"] == "http":
                headers = [(b"content-type", b"application/json")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": "http.response.body", "body": b"1" * size})

        limits = gateway_module.Limits(answer_size=1000)
        with behind(gateway_module, {"openai": (application, {})}, limits=limits) as here:
            assert client.post(f"{here.url}/v1/chat/completions", json={"model": "m"}).status_code == status

    def test_a_stream_without_its_end_is_not_given_one(self, gateway_module, replay, llmstream, client):
        for vendor, path in (("openai", "/v1/chat/completions"), ("anthropic", "/v1/messages")):
            events = events_of(vendor)
            with behind(gateway_module, {vendor: (replay(events, fault="end", after=4), {})}) as here:
                url = f"{here.url}{path}"
                response = client.post(url, headers={"content-type": "application/json"}, content=b'{"model":"m"}')
            assert response.content == b"".join(events[:4])
            assert here.exchanges[0].error == "incomplete"

    @pytest.mark.parametrize("http2", [False, True])
    @pytest.mark.parametrize("torn", [False, True])
    def test_an_upstream_that_is_killed(self, gateway_module, replay, llmstream, certificates, http2, torn):
        """Between two events it is told in the vendor's words. In the middle of one, the connection is cut too, or
        else the half would be taken for an event; over HTTP/2 it is told all the same."""
        for vendor, path in (("openai", "/v1/chat/completions"), ("anthropic", "/v1/messages")):
            events = events_of(vendor)
            body = b"".join(events[:4]) + (b'data: {"half' if torn else b"")
            with (
                broken(body) as url,
                served(gateway_module.Gateway([gateway_module.Upstream(vendor, url)]), **certificates.options) as port,
                httpx2.Client(timeout=WAIT, verify=certificates.context(), http2=http2) as client,
            ):
                url, headers = f"https://127.0.0.1:{port}{path}", {"content-type": "application/json"}
                found = []
                with client.stream("POST", url, headers=headers, content=b'{"model":"m"}') as response:
                    if torn and not http2:
                        with pytest.raises(httpx2.RemoteProtocolError):
                            found.extend(response.iter_raw())
                    else:
                        found.extend(response.iter_raw())
            assert response.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
            assert b"".join(found).startswith(body)
            result = llmstream.parse(b"".join(found), dialect=vendor)
            assert not result.complete
            if torn and not http2:
                assert b"".join(found) == body
            else:
                assert result.error.code == "internal_error"


class TestUpstreamFails:
    @pytest.mark.parametrize(
        ("status", "expected"),
        [(400, 400), (401, 401), (403, 403), (404, 404), (413, 413), (422, 422), (429, 429), (402, 502), (500, 502),
         (502, 502), (503, 503), (504, 504), (529, 503)],
    )  # fmt: skip
    def test_a_status(self, gateway_module, replay, client, status, expected):
        with behind(gateway_module, {"openai": (replay(events_of("openai"), fault=str(status)), {})}) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        assert response.status_code == expected
        assert response.json()["error"]["message"] == "a fault that was asked for"
        assert response.headers["retry-after"] == "1"
        assert here.exchanges[0].status == expected
        assert here.exchanges[0].error

    @pytest.mark.parametrize("status", [401, 403])
    def test_the_words_of_a_refused_key_stay_here(self, gateway_module, replay, client, status):
        upstream = replay(events_of("openai"), fault=str(status))
        with behind(gateway_module, {"openai": (upstream, {"key": KEY})}) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        assert response.status_code == 502
        assert "asked for" not in response.text

    @pytest.mark.parametrize("offset", [-1, 0, 1])
    def test_of_an_error_so_much_is_read(self, gateway_module, client, offset):
        """An endless one does no harm; beyond the bound its words are not known."""
        start, end = b'{"error":{"message":"', b'","code":"overloaded"}}'
        body = start + b"x" * (64 * 1024 + offset - len(start) - len(end)) + end

        async def application(scope, receive, send):
            if scope["type"] == "http":
                headers = [(b"content-type", b"application/json")]
                await send({"type": "http.response.start", "status": 429, "headers": headers})
                await send({"type": "http.response.body", "body": body, "more_body": offset > 0})
                if offset > 0:
                    for _ in range(100_000):
                        await send({"type": "http.response.body", "body": b"x" * 1000, "more_body": True})
                        await asyncio.sleep(0)

        with behind(gateway_module, {"openai": (application, {})}) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        assert response.status_code == 429
        assert (len(response.content) > 60_000) is (offset <= 0)

    def test_nobody_is_there(self, gateway_module, client):
        upstream = gateway_module.Upstream("openai", "http://127.0.0.1:9/v1")
        gateway = gateway_module.Gateway([upstream])
        with served(gateway) as port:
            url = f"http://127.0.0.1:{port}"
            standard = client.post(f"{url}/v1/stream", headers=STANDARD, content=envelope())
            vendor = client.post(f"{url}/v1/chat/completions", json={"model": "m"})
        assert (standard.status_code, vendor.status_code) == (502, 502)
        assert standard.json()["error"]["code"] == "internal_error"
        assert vendor.json()["error"]["message"]

    def test_before_the_first_byte(self, gateway_module, replay, client):
        """An empty answer, one that is cut at once, a page, and a stream that begins with an error."""
        events = events_of("anthropic")
        for fault, expected in (({"fault": "end", "after": 0}, 502), ({"fault": "error", "after": 0}, 503)):
            with behind(gateway_module, {"anthropic": (replay(events, **fault), {})}) as here:
                response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
            assert (response.status_code, here.exchanges[0].status) == (expected, expected)

        async def page(scope, receive, send):
            if scope["type"] == "http":
                await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
                await send({"type": "http.response.body", "body": b"<html>"})

        with behind(gateway_module, {"anthropic": (page, {})}) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        assert response.status_code == 502

    @pytest.mark.parametrize("fault", ["cut", "end", "error"])
    def test_after_it(self, gateway_module, replay, llmstream, client, fault):
        upstream = replay(events_of("openai"), fault=fault, after=3, pace=50)
        with behind(gateway_module, {"openai": (upstream, {})}) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        assert response.status_code == 200
        assert llmstream.check(response.content).ok
        result = llmstream.parse(response.content)
        assert (result.text, result.complete) == ("ab", True)
        assert result.error.code == ("overloaded" if fault == "error" else "internal_error")
        assert response.content.endswith(b"\n\n")
        assert response.content.count(b"event: stream.end") == 1
        assert b"end_turn" not in response.content
        assert here.exchanges[0].error

    def test_garbage(self, gateway_module, replay, llmstream, client):
        upstream = replay(events_of("openai"), fault="garbage", after=3)
        with behind(gateway_module, {"openai": (upstream, {})}) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        result = llmstream.parse(response.content)
        assert (result.text, result.error.code) == (TEXT, "internal_error")

    def test_it_falls_silent(self, gateway_module, replay, llmstream, client):
        limits = gateway_module.Limits(silence=0.3)
        stalls = replay(events_of("openai"), fault="stall", after=3)

        async def mute(scope, receive, send):
            while scope["type"] == "http" and (await receive())["type"] != "http.disconnect":
                pass

        with behind(gateway_module, {"openai": (stalls, {})}, limits=limits) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        result = llmstream.parse(response.content)
        assert (result.text, result.error.code, here.exchanges[0].error) == ("ab", "internal_error", "timeout")
        with behind(gateway_module, {"openai": (mute, {})}, limits=limits) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        assert response.status_code == 504

    def test_it_goes_on_and_on(self, gateway_module, llmstream, client):
        limits = gateway_module.Limits(duration=0.5)
        endless = vendors.openai_chunk({"content": "x"})

        async def application(scope, receive, send):
            if scope["type"] != "http":
                return
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for _ in range(10_000):
                await send({"type": "http.response.body", "body": endless, "more_body": True})
                await asyncio.sleep(0.02)

        with behind(gateway_module, {"openai": (application, {})}, limits=limits) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        assert llmstream.parse(response.content).error.code == "internal_error"
        assert here.exchanges[0].error == "timeout"


class TestLeaving:
    @pytest.mark.parametrize("kind", ["standard", "vendor"])
    @pytest.mark.parametrize("when", ["silent", "busy", "before the answer"])
    def test_a_client_that_leaves(self, gateway_module, replay, kind, when):
        """The upstream is let go, also while it is silent."""
        events = events_of("openai")

        async def mute(scope, receive, send):
            while scope["type"] == "http" and (await receive())["type"] != "http.disconnect":
                pass

        playing = {"fault": "stall", "after": 2} if when == "silent" else {"pace": 20}
        upstream = Recorder(mute if when == "before the answer" else replay(events * 100, **playing))
        with behind(gateway_module, {"openai": (upstream, {})}) as here:
            path = "/v1/stream" if kind == "standard" else "/v1/chat/completions"
            headers = STANDARD if kind == "standard" else {"content-type": "application/json"}
            body = envelope() if kind == "standard" else b'{"model":"m"}'
            with httpx2.Client(timeout=0.5 if when == "before the answer" else WAIT) as client:
                if when == "before the answer":
                    with pytest.raises(httpx2.ReadTimeout):
                        client.post(f"{here.url}{path}", headers=headers, content=body)
                else:
                    with (
                        client.stream("POST", f"{here.url}{path}", headers=headers, content=body) as response,
                        contextlib.closing(first(response)),
                    ):
                        assert upstream.over == 0
            until(lambda: upstream.over == 1)
            until(lambda: here.exchanges)
        (exchange,) = here.exchanges
        assert exchange.gone

    def test_many_at_once(self, gateway_module, replay, llmstream, certificates):
        """Over HTTP/2 and HTTP/1.1, some of them killed, some upstreams too: each gets its own, and nothing is left."""
        count = 48
        upstreams = {
            "openai": (Recorder(replay(events_of("openai"), pace=100)), {"models": ["gpt-*"]}),
            "anthropic": (Recorder(replay(events_of("anthropic"), pace=100, fault="cut", after=6)), {}),
        }

        async def ask(client, url, number):
            model = "claude-x" if number % 4 == 1 else "gpt-x"
            request_id = f"r-{number}"
            body = envelope(model, metadata={"request_id": request_id})
            async with client.stream("POST", url, headers=STANDARD, content=body) as response:
                if number % 4 == 2:
                    async for _ in response.aiter_raw():
                        return None
                found = b"".join([chunk async for chunk in response.aiter_raw()])
            result = llmstream.parse(found)
            assert f'"request_id":"{request_id}"'.encode() in found
            return (result.text == TEXT and result.error is None) if model == "gpt-x" else result.error is not None

        async def main(url):
            context = certificates.context()
            async with contextlib.AsyncExitStack() as stack:
                clients = [
                    await stack.enter_async_context(httpx2.AsyncClient(timeout=WAIT, verify=context, http2=http2))
                    for http2 in (True, False)
                ]
                return await asyncio.gather(*(ask(clients[number % 2], url, number) for number in range(count)))

        with behind(gateway_module, upstreams, tls=certificates.options) as here:
            found = asyncio.run(main(f"{here.url}/v1/stream"))
            until(lambda: here.gateway.open == 0)
            until(lambda: len(here.exchanges) == count)
            until(lambda: sum(each.over for each, _ in upstreams.values()) == count)
        assert found.count(None) == count // 4
        assert all(each is not False for each in found)

    def test_a_client_that_is_slow(self, gateway_module):
        """Back-pressure reaches the upstream: it is not read further than fits in between."""
        runs = []
        big = vendors.openai_chunk({"content": "x" * 60_000})

        async def application(scope, receive, send):
            if scope["type"] != "http":
                return
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            runs.append(made := [])
            for _ in range(3000):
                made.append(1)
                await send({"type": "http.response.body", "body": big, "more_body": True})

        with behind(gateway_module, {"openai": (application, {})}) as here, httpx2.Client(timeout=WAIT) as client:
            for path, headers, body in (
                ("/v1/stream", STANDARD, envelope()),
                ("/v1/chat/completions", {"content-type": "application/json"}, b'{"model":"m"}'),
            ):
                with (
                    client.stream("POST", f"{here.url}{path}", headers=headers, content=body) as response,
                    contextlib.closing(first(response)),
                ):
                    before, made = -1, runs[-1]
                    while before != len(made):
                        before = len(made)
                        threading.Event().wait(0.5)
                    assert before < 1000  # 60 MB, of 180
                until(lambda: here.gateway.open == 0)


class TestTransport:
    """The draft's section 3; that GET starts no stream is above."""

    def test_server_sent_events(self, gateway_module, replay, llmstream, client):
        """R3-2: what a reader of others finds, here that of httpx2. Chromium's is in test_browser.py."""
        with (
            behind(gateway_module, {"openai": (replay(events_of("openai")), {})}) as here,
            client.stream("POST", f"{here.url}/v1/stream", headers=STANDARD, content=envelope()) as response,
        ):
            found = list(httpx2.EventSource(response))
        assert [event.event for event in found[:2]] == ["stream.start", "content.delta"]
        assert found[-1].event == "stream.end"
        data = [json.loads(event.data) for event in found]
        assert [each["type"] for each in data] == [event.event for event in found]
        assert [each["seq"] for each in data] == list(range(len(found)))
        assert "".join(each["delta"]["text"] for each in data if each["type"] == "content.delta") == TEXT

    @pytest.mark.parametrize("http2", [False, True])
    def test_protocols(self, gateway_module, replay, llmstream, certificates, http2):
        with (
            behind(gateway_module, {"openai": (replay(events_of("openai")), {})}, tls=certificates.options) as here,
            httpx2.Client(timeout=WAIT, verify=certificates.context(), http2=http2) as client,
        ):
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        assert response.http_version == ("HTTP/2" if http2 else "HTTP/1.1")  # R3-3
        assert llmstream.parse(response.content, strict=True).text == TEXT
        assert "content-length" not in response.headers  # R3-6

    def test_http2_is_preferred_and_tls_is_new(self, gateway_module, replay, certificates):
        import socket
        import ssl

        def connect(port, protocols, most=None):
            context = certificates.context()
            context.set_alpn_protocols(protocols)
            if most is not None:
                context.maximum_version = most
            plain = socket.create_connection(("127.0.0.1", port), WAIT)
            with plain, context.wrap_socket(plain, server_hostname="localhost") as secure:
                return secure.version(), secure.selected_alpn_protocol()

        with behind(gateway_module, {"openai": (replay(b"x"), {})}, tls=certificates.options) as here:
            port = int(here.url.rpartition(":")[2])
            assert connect(port, ["http/1.1", "h2"]) == ("TLSv1.3", "h2")  # R3-4: whatever the client's order is
            assert connect(port, ["http/1.1"]) == ("TLSv1.3", "http/1.1")
            with pytest.raises(ssl.SSLError):  # R3-5
                connect(port, ["h2"], ssl.TLSVersion.TLSv1_2)

    def test_each_event_goes_out_at_once(self, gateway_module, replay, client):
        for path, headers, body in (
            ("/v1/stream", STANDARD, envelope()),
            ("/v1/chat/completions", {"content-type": "application/json"}, b'{"model":"m"}'),
        ):
            stalls = replay(events_of("openai"), fault="stall", after=2)  # the role, and "a"
            with behind(gateway_module, {"openai": (stalls, {})}) as here:
                found = b""
                with client.stream("POST", f"{here.url}{path}", headers=headers, content=body) as response:
                    for chunk in response.iter_raw():
                        found += chunk
                        if b'"a"' in found:
                            break

    def test_keep_alives(self, gateway_module, replay, llmstream, client):
        stalls = replay(events_of("openai"), fault="stall", after=2)
        with behind(gateway_module, {"openai": (stalls, {})}, keep_alive=0.05) as here:
            found = b""
            with client.stream("POST", f"{here.url}/v1/stream", headers=STANDARD, content=envelope()) as response:
                for chunk in response.iter_raw():
                    found += chunk
                    if found.count(b": keep-alive\n\n") == 2 and b'"a"' in found:
                        break
        assert llmstream.parse(found).text == "a"


class TestWhereOthersBreak:
    """What is lost or invented on the way through other gateways."""

    @pytest.mark.parametrize("vendor", ["openai", "anthropic", "gemini"])
    @pytest.mark.parametrize("chunk", ["event", "1", "whole"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda body: body.replace(b"\n\n", b"\n\n: keep-alive\n\n"),
            lambda body: b"\xef\xbb\xbf" + body,
            lambda body: body.replace(b"\n", b"\r\n"),
            lambda body: body.replace(b"\n", b"\r"),
            lambda body: body.replace(b"data: {", b'data: {"unknown":{"a":[1.50,null]},'),
            lambda body: body.replace(b"data: ", b"id: 7\ndata:").replace(b"\n\n", b"\n\n: x\n\n"),
            lambda body: body.replace(b" c", b" " + b"c" * 300_000),
        ],
        ids=["comments", "byte order mark", "CRLF", "CR", "unknown members", "ids and heartbeats", "a large event"],
    )
    def test_nothing_is_lost(self, gateway_module, replay, llmstream, client, vendor, chunk, change):
        body = change(b"".join(events_of(vendor)))
        if chunk == "1" and len(body) > 100_000:
            chunk = "1000"
        with behind(gateway_module, {vendor: (replay(body, chunk=chunk), {})}) as here:
            response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
        result = llmstream.parse(response.content, strict=True)
        assert result.text.replace("c" * 300_000, "c") == TEXT
        assert here.exchanges[0].error is None

    @pytest.mark.parametrize("vendor", ["openai", "anthropic"])
    def test_no_end_is_invented(self, gateway_module, replay, llmstream, client, vendor):
        """Wherever the bytes stop with a good end of HTTP; also within an event."""
        body = b"".join(events_of(vendor))
        marks = {"openai": b'"finish_reason":"stop"', "anthropic": b'"stop_reason":"end_turn"'}
        before_the_end = body.index(marks[vendor])
        cuts = [body.index(b'"a"') + 30, body.index(b'"b"') + 1, before_the_end - 30]
        cuts += [body.index(b"\n\n", body.index(b'"b"')) + 2]
        for cut in cuts:
            with behind(gateway_module, {vendor: (replay(body[:cut]), {})}) as here:
                response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
            result = llmstream.parse(response.content)
            assert TEXT.startswith(result.text)
            assert result.error.code == "internal_error"
            assert b"end_turn" not in response.content
            assert here.exchanges[0].error

    def test_hostile_bytes(self, gateway_module, replay, llmstream, client):
        """Whatever an upstream sends, the client gets a conforming stream or a status."""
        streams = [
            b"\x00" * 1000,
            b"data: " + b"[" * 50_000 + b"\n\n",
            b"data: {}\n\n" * 3000,
            b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n' * 3,
            b'data: {"error":"\xff\xfe"}\n\n',
            b"event: " + b"x" * 100_000 + b"\n\n",
            b'data: {"choices":[{"index":9223372036854775807,"delta":{"content":"a"}}]}\n\n',
            b'data: {"choices":[{"index":-1,"delta":{"tool_calls":[{"index":1e9}]}}]}\n\n',
        ]
        with behind(gateway_module, {"openai": (replay(*streams), {})}) as here:
            for _ in streams:
                response = client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
                assert response.status_code in (200, 502)
                if response.status_code == 200:
                    assert llmstream.check(response.content).ok
                    assert llmstream.parse(response.content).error is not None

    def test_a_client_of_http2_that_is_slow(self, gateway_module, certificates):
        """Back-pressure is that of its stream, and another stream of the connection goes on."""
        runs = []
        big = vendors.openai_chunk({"content": "x" * 60_000})

        async def application(scope, receive, send):
            if scope["type"] != "http":
                return
            headers = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            runs.append(made := [])
            for _ in range(3000):
                made.append(1)
                await send({"type": "http.response.body", "body": big, "more_body": True})

        async def main(url, context):
            async with (
                httpx2.AsyncClient(timeout=WAIT, verify=context, http1=False, http2=True) as client,
                client.stream("POST", url, headers=STANDARD, content=envelope()) as slow,
            ):
                assert slow.http_version == "HTTP/2"
                chunks = slow.aiter_raw()
                await anext(chunks)
                before, made = -1, runs[-1]
                while before != len(made):
                    before = len(made)
                    await asyncio.sleep(0.5)
                assert before < 1000
                assert (await client.get(url)).status_code == 405
                await chunks.aclose()

        with behind(gateway_module, {"openai": (application, {})}, tls=certificates.options) as here:
            asyncio.run(main(f"{here.url}/v1/stream", certificates.context()))
            until(lambda: here.gateway.open == 0)


class TestAround:
    def test_connections_to_the_upstream_are_used_again(self, gateway_module, replay, client):
        """After a stream that was read to its end, and after an error."""
        ports = set()

        async def application(scope, receive, send):
            if scope["type"] == "http":
                ports.add(scope["client"][1])
                await plays(scope, receive, send)

        for fault in (None, "429"):
            ports.clear()
            plays = replay(events_of("openai"), fault=fault)
            with behind(gateway_module, {"openai": (application, {})}) as here:
                for _ in range(5):
                    client.post(f"{here.url}/v1/stream", headers=STANDARD, content=envelope())
                    client.post(f"{here.url}/v1/chat/completions", json={"model": "m"})
            assert len(ports) == 1

    def test_nothing_secret_is_logged(self, gateway_module, replay, client, caplog):
        caplog.set_level(logging.DEBUG)
        for upstream in (replay(events_of("openai")), replay(events_of("openai"), fault="cut", after=3)):
            with served(upstream) as port:
                found = gateway_module.Upstream("openai", f"http://127.0.0.1:{port}/v1", key=KEY)
                dead = gateway_module.Upstream("gemini", "http://127.0.0.1:9/v1beta", key=KEY)
                with served(gateway_module.Gateway([found, dead], keys=["client-key"])) as gateway_port:
                    url = f"http://127.0.0.1:{gateway_port}"
                    known = {**STANDARD, "authorization": "Bearer client-key"}
                    client.post(f"{url}/v1/stream", headers=known, content=envelope())
                    client.post(f"{url}/v1/stream", headers=known, content=envelope(messages="secret words"))
                    with contextlib.suppress(httpx2.RemoteProtocolError):  # it is cut, as the upstream's is
                        path = "/v1/chat/completions?key=client-key"
                        client.post(f"{url}{path}", json={"model": "m", "x": "secret words"})
                    path = "/v1beta/models/x:streamGenerateContent?alt=sse&key=client-key"
                    client.post(f"{url}{path}", json={"x": "secret words"})
        ours = [record for record in caplog.records if not record.name.startswith("httpx2")]
        said = "\n".join(f"{record.getMessage()}{record.exc_info}" for record in ours)
        assert "llmstream.gateway" in {record.name for record in ours}
        for secret in (KEY, "client-key", "secret words", "d\u2028e"):
            assert secret not in said
        assert KEY not in repr(found)

    def test_in_a_framework(self, gateway_module, replay, llmstream, client):
        fastapi = pytest.importorskip("fastapi")
        with served(replay(events_of("openai"))) as port:
            gateway = gateway_module.Gateway([gateway_module.Upstream("openai", f"http://127.0.0.1:{port}/v1")])

            @contextlib.asynccontextmanager
            async def lifespan(app):
                async with gateway:
                    yield

            app = fastapi.FastAPI(lifespan=lifespan)
            app.mount("/llm", gateway)
            with served(app) as app_port:
                url = f"http://127.0.0.1:{app_port}/llm"
                response = client.post(f"{url}/v1/stream", headers=STANDARD, content=envelope())
                assert llmstream.parse(response.content, strict=True).text == TEXT
                assert client.post(f"{url}/v1/chat/completions", json={"model": "m"}).status_code == 200
                assert client.post(f"{url}/other", json={}).status_code == 404

    def test_a_recorder_that_fails(self, gateway_module, replay, llmstream, client, caplog):
        def fails(exchange):
            raise RuntimeError("secret words")

        with served(replay(events_of("openai"))) as port:
            upstream = gateway_module.Upstream("openai", f"http://127.0.0.1:{port}/v1")
            with served(gateway_module.Gateway([upstream], on_end=fails)) as gateway_port:
                url = f"http://127.0.0.1:{gateway_port}/v1/stream"
                response = client.post(url, headers=STANDARD, content=envelope())
        assert llmstream.parse(response.content, strict=True).text == TEXT
        assert "RuntimeError" in caplog.text
        assert "secret words" not in caplog.text

    def test_what_cannot_be(self, gateway_module):
        with pytest.raises(ValueError, match="upstream"):
            gateway_module.Gateway([])
        for wrong in ("ftp://x", "x", "http://", "http://x?y=1"):
            with pytest.raises(ValueError, match="url"):
                gateway_module.Upstream("openai", wrong)
        for dialect in ("bedrock", "nonsense", "openai-transcriptions"):
            with pytest.raises(ValueError, match="no request"):
                gateway_module.Upstream(dialect, "http://x")
        for name in ("groq", "vllm", "mistral"):
            assert gateway_module.Upstream(name, "http://x").vendor == "openai"
        with pytest.raises(ValueError, match="silence"):
            gateway_module.Limits(silence=0)


def test_nothing_that_came_is_lost_with_the_connection(gateway_module, llmstream, client):
    """What is in one piece with the end of a connection that breaks is delivered all the same."""
    with (
        broken(b"".join(events_of("openai")[:5])) as url,
        served(gateway_module.Gateway([gateway_module.Upstream("openai", url)])) as port,
    ):
        for _ in range(20):
            response = client.post(f"http://127.0.0.1:{port}/v1/stream", headers=STANDARD, content=envelope())
            result = llmstream.parse(response.content)
            assert (result.text, result.error.code) == ("".join(WORDS[:4]), "internal_error")
