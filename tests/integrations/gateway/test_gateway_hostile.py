"""What an upstream or a client does that no honest one would, and what the other side gets of it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import threading
import time

import pytest
from gateway_server import SSE_HEAD, WAIT, Recorder, behind, read_head, scripted, served

import vendors

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("hypercorn")
pytest.importorskip("aiohttp")

WORDS = ["Hello", " w\u00f6rld"]
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "?"}]}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "standard": "/v1/stream"}


@contextlib.contextmanager
def before(module, url, dialect="openai", **options):
    """``ask(client, **request)`` for a gateway before an upstream, and what it notes."""
    exchanges = []
    upstream = module.Upstream(dialect, url, **{"key": "sk-of-the-gateway", **options.pop("upstream", {})})
    gateway = module.Gateway([upstream], on_end=exchanges.append, **options)

    def ask(client, body=None, **request):
        kind = "application/llm-request+json" if client == "standard" else "application/json"
        content = (
            body
            if isinstance(body, bytes)
            else json.dumps({**BODY, **({"version": "1.0"} if kind != "application/json" else {}), **(body or {})})
        )
        headers = [("content-type", kind), *request.pop("headers", [])]
        return httpx2.post(f"http://127.0.0.1:{port}{PATHS[client]}", content=content, headers=headers, timeout=WAIT)

    with served(gateway) as port:
        yield ask, exchanges
    assert gateway.open == 0


def whole(number=3):
    """The chunks of a whole stream."""
    return b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in vendors.openai(WORDS)[:number])


def never_reads(rfile, wfile, over):
    over.wait(WAIT)


def reads_slowly(rfile, wfile, over):
    while not over.is_set() and rfile.read1(1000):
        time.sleep(0.05)


def hints_for_ever(rfile, wfile, over):
    read_head(rfile)
    while not over.wait(0.05):
        wfile.write(b"HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n")


def trickles_headers(rfile, wfile, over):
    read_head(rfile)
    wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not over.wait(0.05):
        wfile.write(b"x-a: b\r\n")


@pytest.mark.parametrize("handle", [never_reads, reads_slowly, hints_for_ever, trickles_headers])
@pytest.mark.parametrize("client", ["openai", "standard"])
def test_the_times_hold_before_the_headers_too(gateway_module, handle, client):
    limits = gateway_module.Limits(connect_time=0.3, silence=0.3)
    large = {"messages": [{"role": "user", "content": "x" * 12_000_000}]} if "read" in handle.__name__ else {}
    over, ended = threading.Event(), threading.Event()

    def once(rfile, wfile):
        try:
            handle(rfile, wfile, over)
        finally:
            ended.set()

    with scripted(once) as url, before(gateway_module, url, limits=limits) as (ask, exchanges):
        response = ask(client, large)
        over.set()
        assert ended.wait(WAIT)
        time.sleep(0.2)  # what aiohttp had not written goes with the connection
    assert response.status_code == 504
    assert exchanges[0].error == "timeout"


def answering(status, headers=b"", body=b'{"error":{"message":"Incorrect API key provided: sk-of***way"}}'):
    def handle(rfile, wfile):
        read_head(rfile)
        size = b"content-length: %d\r\n" % len(body)
        wfile.write(b"HTTP/1.1 %b x\r\ncontent-type: application/json\r\n%b%b\r\n%b" % (status, size, headers, body))

    return scripted(handle)


@pytest.mark.parametrize("status", [b"401", b"403"])
@pytest.mark.parametrize("client", PATHS)
def test_nobody_is_told_of_the_key_of_the_gateway(gateway_module, status, client):
    account = b"openai-organization: secret-org\r\nanthropic-organization-id: secret-org\r\n"
    dialect = "anthropic" if client == "anthropic" else "openai"
    with answering(status, account) as url, before(gateway_module, url, dialect) as (ask, exchanges):
        response = ask(client, {"max_tokens": 9} if client == "anthropic" else {})
    assert response.status_code == 502
    assert "sk-of" not in response.text
    assert "secret-org" not in str(response.headers)
    assert exchanges[0].error == "internal_error"


def test_a_client_is_told_of_its_own_key(gateway_module):
    with answering(b"401") as url, before(gateway_module, url, upstream={"key": None}) as (ask, _):
        response = ask("openai", headers=[("authorization", "Bearer mine")])
    assert (response.status_code, response.json()["error"]["message"][:9]) == (401, "Incorrect")


@pytest.mark.parametrize("status", [b"200", b"404", b"429"])
@pytest.mark.parametrize("value", ["日本".encode(), b"\xff\xfe", b"caf\xe9"])
def test_headers_of_any_bytes(gateway_module, status, value):
    headers = b"x-model: %b\r\nretry-after: %b\r\n" % (value, value)
    with answering(status, headers, b"{}") as url, before(gateway_module, url) as (ask, exchanges):
        passed_on = ask("openai")
        rewritten = ask("standard")
    assert passed_on.status_code == int(status)
    raw = dict(passed_on.headers.raw)
    assert {name.lower(): found for name, found in raw.items()}[b"x-model"] == value
    assert rewritten.status_code == int(status)
    assert all(exchange.status for exchange in exchanges)


@pytest.mark.parametrize("status", [b"600", b"999", b"304", b"302"])
@pytest.mark.parametrize("client", ["openai", "standard"])
def test_statuses_that_mean_nothing_here(gateway_module, status, client):
    with answering(status) as url, before(gateway_module, url) as (ask, exchanges):
        assert ask(client).status_code == 502
    assert exchanges[0].error == "internal_error"


@pytest.mark.parametrize("client", ["openai", "standard"])
@pytest.mark.parametrize("coding", [b"x-gzip", b"compress", b"gzip, x"])
def test_codings_that_nobody_undoes(gateway_module, client, coding):
    with (
        answering(b"200", b"content-encoding: %b\r\n" % coding) as url,
        before(gateway_module, url) as (ask, exchanges),
    ):
        assert ask(client).status_code == 502
    assert exchanges[0].error == "internal_error"


@pytest.mark.parametrize("path", ["/v1beta/models/caf\u00e9:generateContent", "/v1\u0661/messages"])
def test_paths_beyond_ascii(gateway_module, replay, path):
    upstreams = {name: (Recorder(replay(vendors.openai(WORDS))), {}) for name in ("gemini", "anthropic")}
    with behind(gateway_module, upstreams) as here:
        assert httpx2.post(here.url + path, json=BODY).status_code == 404


def test_headers_that_come_twice(gateway_module, replay):
    upstream = Recorder(replay(vendors.anthropic(WORDS)))
    with behind(gateway_module, {"anthropic": (upstream, {})}) as here:
        headers = [("content-type", "application/json"), ("anthropic-beta", "one"), ("Anthropic-Beta", "two")]
        content = json.dumps({**BODY, "max_tokens": 9})
        assert httpx2.post(f"{here.url}/v1/messages", headers=headers, content=content).status_code == 200
    ((_, _, got, _),) = [asked for asked in upstream.asked if asked[3]]
    assert got["anthropic-beta"] == "one, two"


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"forbidden","stream":true,"messages":%b1%b}' % (b"[" * 5000, b"]" * 5000),
        b'{"model":"forbidden","stream":true,"temperature":NaN,"messages":[]}',
        json.dumps({**BODY, "model": "forbidden"}).encode("utf-16"),
        b'{"model":"allowed","model":"forbidden"}',
        b"[]",
    ],
)
def test_a_model_that_is_not_for_this_client(gateway_module, replay, body):
    """What cannot be read is asked of nobody who does not answer every model."""
    upstream = Recorder(replay(vendors.openai(WORDS)))
    with behind(gateway_module, {"openai": (upstream, {"models": ["allowed"]})}) as here:
        headers = {"content-type": "application/json"}
        response = httpx2.post(f"{here.url}/v1/chat/completions", headers=headers, content=body)
    assert response.status_code in (400, 404)
    assert [asked for asked in upstream.asked if asked[3]] == []


@pytest.mark.parametrize("client", ["openai", "standard"])
def test_a_connection_that_breaks_after_the_end(gateway_module, llmstream, client):
    """Nothing is missing."""
    events = vendors.openai(WORDS)

    def handle(rfile, wfile):
        read_head(rfile)
        wfile.write(SSE_HEAD + whole(len(events)))

    with scripted(handle) as url, before(gateway_module, url) as (ask, exchanges):
        body = ask(client).content
    if client == "openai":
        assert body == b"".join(events)
    result = llmstream.parse(body, dialect="openai" if client == "openai" else "llm-stream")
    assert (result.text, result.complete, result.error) == ("".join(WORDS), True, None)
    assert (exchanges[0].error, exchanges[0].observation.complete) == (None, True)


@pytest.mark.parametrize("pieces", [[b"\n"], [b"\n", b"\n"], [b"\r\n", b"\r", b"\n"], [b"\r", b"\r"]])
def test_a_break_between_events_however_they_came(gateway_module, llmstream, pieces):
    """The blank line may be in chunks of its own."""
    event = vendors.openai(WORDS)[1].rstrip(b"\n")
    chunks = [event + b"\n", *pieces] if len(pieces) == 1 else [event, *pieces]

    def handle(rfile, wfile):
        read_head(rfile)
        wfile.write(SSE_HEAD)
        for chunk in chunks:
            wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            wfile.flush()
            time.sleep(0.05)

    with scripted(handle) as url, before(gateway_module, url) as (ask, exchanges):
        body = ask("openai").content
    result = llmstream.parse(body, dialect="openai")
    assert body.startswith(b"".join(chunks) + b"data: ")
    assert (result.text, result.error.code, result.complete) == (WORDS[0], "internal_error", False)
    assert exchanges[0].error == "internal_error"


def test_a_client_that_leaves_when_the_work_is_done(llmstream):
    """In the same turn of the loop: the task is not cancelled in what it does next."""
    reading = importlib.import_module("llmstream.integrations.gateway.reading")

    async def main():
        data, left = asyncio.Event(), asyncio.Event()

        async def work():
            await data.wait()
            return "done"

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        async def request():
            found = await reading.unless_gone(work(), receive)
            for _ in range(5):
                await asyncio.sleep(0)
            return found

        for first, second in ((data, left), (left, data)):
            task = asyncio.create_task(request())
            for _ in range(3):
                await asyncio.sleep(0)
            first.set()
            second.set()
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            assert outcome == "done" or isinstance(outcome, reading.GoneError)
            data.clear()
            left.clear()

    asyncio.run(main())


# What telemetry keeps


@pytest.fixture
def telemetry(llmstream):
    pytest.importorskip("opentelemetry.sdk")
    module = importlib.import_module("llmstream.integrations.otel")
    exporters = importlib.import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = importlib.import_module("opentelemetry.sdk.trace.export")
    reader = importlib.import_module("opentelemetry.sdk.metrics.export").InMemoryMetricReader()
    spans = exporters.InMemorySpanExporter()
    provider = importlib.import_module("opentelemetry.sdk.trace").TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(spans))
    meters = importlib.import_module("opentelemetry.sdk.metrics").MeterProvider([reader])
    return module.GenAITelemetry(tracer_provider=provider, meter_provider=meters), spans, reader


def test_a_histogram_that_raises(telemetry, monkeypatch):
    """The stream goes on, and the span comes to its end."""
    made, spans, _ = telemetry

    def record(*_):
        raise ValueError

    observer = made.observer("openai")
    monkeypatch.setattr(observer._outputs, "_record", record)
    for event in vendors.openai(WORDS * 100):
        observer.feed(event)
    assert observer.close().unread
    assert len(spans.get_finished_spans()) == 1


@pytest.mark.parametrize("model", ["m" * 1_000_000, "gpt-\ud800", "\ud800" * 300])
def test_names_of_models_that_clients_make_up(telemetry, model):
    made, spans, reader = telemetry
    made.observer("openai", model=model).close()
    (span,) = spans.get_finished_spans()
    for words in (span.name, span.attributes["gen_ai.request.model"], str(reader.get_metrics_data())):
        words.encode()  # which an exporter does
    assert len(span.attributes["gen_ai.request.model"]) <= 256
    assert len(str(reader.get_metrics_data())) < 20_000


def test_metrics_tell_so_many_models_apart(telemetry):
    made, spans, _ = telemetry
    assert [made.countable(f"m-{number}") for number in range(1000)] == [f"m-{number}" for number in range(1000)]
    assert [made.countable(name) for name in ("m-1000", "m-7", "m-1001")] == ["_OTHER", "m-7", "_OTHER"]
    made.observer("openai", model="m-1000").close()
    assert spans.get_finished_spans()[-1].attributes["gen_ai.request.model"] == "m-1000"
