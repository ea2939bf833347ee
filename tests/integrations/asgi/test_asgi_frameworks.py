"""The response in Starlette and FastAPI, and our bytes through others' responses, on a real server."""

from __future__ import annotations

import contextlib
import importlib
import threading

import pytest
from asgi_server import aanswer, answer, asking, auntil, read_until, served, until

from standard import clock, kinds

pytest.importorskip("uvicorn")
httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")

CHUNK = b"event: x\ndata: {}\n\n"


@pytest.fixture
def starlette(llmstream):
    """The integration, of the twin under test."""
    return importlib.import_module("llmstream.integrations.starlette")


async def failing(error, *pieces):
    for piece in pieces:
        yield piece
    raise error


def expected(llmstream, *words):
    return b"".join(answer(llmstream.Encoder(clock=clock), *words))


def application(*routes, **options):
    from starlette.applications import Starlette
    from starlette.routing import Route

    return Starlette(routes=[Route("/", route) for route in routes], **options)


def test_an_endpoint_returns_it(starlette, llmstream):
    from starlette.background import BackgroundTask

    ran = []

    async def endpoint(request):
        encoder = llmstream.Encoder(clock=clock)
        response = starlette.EventStreamResponse(
            aanswer(encoder, "a", "b"),
            headers={"X-Request-Id": "7"},
            encoder=encoder,
            background=BackgroundTask(ran.append, 1),
        )
        response.set_cookie("name", "value")
        response.headers["x-more"] = "1"
        return response

    with served(application(endpoint)) as port:
        response = httpx.get(f"http://127.0.0.1:{port}/")
        assert response.content == expected(llmstream, "a", "b")
        assert (response.headers["x-request-id"], response.headers["x-more"]) == ("7", "1")
        assert response.headers["content-type"] == "text/event-stream"
        assert response.cookies["name"] == "value"
        until(lambda: ran == [1])


def test_an_exception_before_the_first_byte_is_answered_by_the_application(starlette, llmstream):
    """As a status of HTTP: the application's own handlers are asked."""
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse

    async def endpoint(request):
        error = HTTPException(503) if request.query_params else llmstream.UpstreamError("rate_limited", "secret")
        return starlette.EventStreamResponse(failing(error), encoder=llmstream.Encoder())

    async def limited(request, error):
        return JSONResponse({"error": error.code}, 429)

    app = application(endpoint, exception_handlers={llmstream.UpstreamError: limited})
    with served(app) as port:
        response = httpx.get(f"http://127.0.0.1:{port}/")
        assert (response.status_code, response.json()) == (429, {"error": "rate_limited"})
        assert httpx.get(f"http://127.0.0.1:{port}/?x=1").status_code == 503


def test_an_exception_after_it_ends_the_stream(starlette, llmstream):
    async def endpoint(request):
        encoder = llmstream.Encoder(clock=clock)
        pieces = [encoder.start("m"), encoder.delta("a")]
        return starlette.EventStreamResponse(failing(RuntimeError("secret"), *pieces), encoder=encoder)

    with served(application(endpoint)) as port:
        body = httpx.get(f"http://127.0.0.1:{port}/").content
    assert b"secret" not in body
    assert kinds(body) == ["stream.start", "content.delta", "error", "stream.end"]


@pytest.mark.parametrize("kind", ["plain", "function"])
def test_a_client_that_leaves_before_the_first_byte(starlette, kind):
    """Starlette's own response runs its background task then, and no middleware raises."""
    import asyncio

    from starlette.background import BackgroundTask
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import StreamingResponse

    ran, faults = [], []

    async def silent():
        await asyncio.Event().wait()
        yield b""

    async def endpoint(request):
        kind = starlette.EventStreamResponse if request.query_params else StreamingResponse
        return kind(silent(), background=BackgroundTask(ran.append, kind))

    class Watching:
        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            try:
                await self.app(scope, receive, send)
            except Exception as error:
                faults.append(error)
                raise

    async def through(request, call_next):
        return await call_next(request)

    inner = [Middleware(BaseHTTPMiddleware, dispatch=through)] if kind == "function" else []
    with served(application(endpoint, middleware=[Middleware(Watching), *inner])) as port:
        for query in ("", "?ours=1"):
            with contextlib.suppress(httpx.ReadTimeout, httpx.ReadError):
                httpx.get(f"http://127.0.0.1:{port}/{query}", timeout=0.3)
        until(lambda: len(ran) == 2)
    assert set(ran) == {StreamingResponse, starlette.EventStreamResponse}
    assert faults == []


@pytest.mark.parametrize("kind", ["gzip", "function"])
def test_middleware_holds_nothing_back(starlette, kind):
    """Of Starlette: the one that compresses, and one that is made of a function; and the client's leaving is seen."""
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.middleware.gzip import GZipMiddleware

    closed, gate = threading.Event(), threading.Event()

    async def endpoint(request):
        import asyncio

        async def source():
            try:
                yield CHUNK
                await auntil(gate.is_set)
                yield CHUNK
                await asyncio.Event().wait()
            finally:
                closed.set()

        return starlette.EventStreamResponse(source())

    async def passing(request, call_next):
        return await call_next(request)

    layer = Middleware(GZipMiddleware) if kind == "gzip" else Middleware(BaseHTTPMiddleware, dispatch=passing)
    with served(application(endpoint, middleware=[layer])) as port:
        with asking(port) as client:
            read_until(client, CHUNK)
            gate.set()
            read_until(client, CHUNK)
        assert closed.wait(30)


def test_fastapi(starlette, llmstream):
    fastapi = pytest.importorskip("fastapi")
    app, ran = fastapi.FastAPI(), []

    def respond(words):
        encoder = llmstream.Encoder(clock=clock)
        return starlette.EventStreamResponse(answer(encoder, *words), encoder=encoder)

    async def annotated(background: fastapi.BackgroundTasks):
        background.add_task(ran.append, 1)
        return respond("ab")

    def named(words: str = "cd"):
        return respond(words)

    annotated.__annotations__["return"] = starlette.EventStreamResponse
    annotated.__annotations__["background"] = fastapi.BackgroundTasks
    named.__annotations__["words"] = str
    app.get("/annotated")(annotated)
    app.post("/named", response_class=starlette.EventStreamResponse)(named)

    with served(app) as port:
        url = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{url}/annotated").content == expected(llmstream, "a", "b")
        until(lambda: ran == [1])
        assert httpx.post(f"{url}/named?words=xyz").content == expected(llmstream, "x", "y", "z")
        content = httpx.get(f"{url}/openapi.json").json()["paths"]["/named"]["post"]["responses"]["200"]["content"]
        assert list(content) == ["text/event-stream"]


def test_sse_starlette_passes_our_bytes_on(llmstream):
    """Its response takes what an Encoder writes, as do those of Starlette and FastAPI."""
    sse_starlette = pytest.importorskip("sse_starlette")
    from starlette.responses import StreamingResponse

    async def theirs(request):
        return sse_starlette.EventSourceResponse(aanswer(llmstream.Encoder(clock=clock), "é\u2028", "b"))

    async def plain(request):
        return StreamingResponse(aanswer(llmstream.Encoder(clock=clock), "é\u2028", "b"))

    for endpoint in (theirs, plain):
        with served(application(endpoint)) as port:
            body = httpx.get(f"http://127.0.0.1:{port}/").content
        assert body == expected(llmstream, "é\u2028", "b")
        assert llmstream.parse(body, strict=True).text == "é\u2028b"
