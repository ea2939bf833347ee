"""What OpenTelemetry is told of a stream: the names and values of its conventions for generative AI."""

from __future__ import annotations

import contextlib
import importlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import vendors

pytest.importorskip("opentelemetry.sdk")

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
WORDS = ["a", "b", "secret words"]


class Clock:
    """A second goes by at each look."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


class Seen:
    """Telemetry with exporters that keep all in memory."""

    def __init__(self, module, **options):
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self._reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.telemetry = module.GenAITelemetry(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    def spans(self):
        return self._spans.get_finished_spans()

    def points(self):
        """Name -> its points, and name -> its unit."""
        data = self._reader.get_metrics_data()
        found = [metric for scope in data.resource_metrics[0].scope_metrics for metric in scope.metrics]
        return {each.name: list(each.data.data_points) for each in found}, {each.name: each.unit for each in found}


@pytest.fixture
def module(llmstream):
    return importlib.import_module("llmstream.integrations.otel")


def observed(telemetry, chunks, dialect="openai", **options):
    options = {"model": "gpt-x", "server_address": "api.example", "server_port": 443, **options}
    observer = telemetry.observer(dialect, **options)
    for chunk in chunks:
        assert observer.feed(chunk) is chunk
    return observer.close()


def test_the_released_names(module):
    """Against the constants of the package of the conventions."""
    attributes = importlib.import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    names = importlib.import_module("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")
    seen = Seen(module)
    observation = observed(seen.telemetry, vendors.openai(WORDS))
    (span,) = seen.spans()
    assert span.name == "chat gpt-x"
    assert span.kind.name == "CLIENT"
    assert span.status.is_unset
    assert dict(span.attributes) == {
        attributes.GEN_AI_OPERATION_NAME: "chat",
        attributes.GEN_AI_PROVIDER_NAME: attributes.GenAiProviderNameValues.OPENAI.value,
        attributes.GEN_AI_REQUEST_MODEL: "gpt-x",
        attributes.GEN_AI_REQUEST_STREAM: True,
        attributes.GEN_AI_RESPONSE_MODEL: "gpt-x",
        attributes.GEN_AI_RESPONSE_ID: "chatcmpl-1",
        attributes.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
        attributes.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: observation.time_to_first_output,
        attributes.GEN_AI_USAGE_INPUT_TOKENS: 3,
        attributes.GEN_AI_USAGE_OUTPUT_TOKENS: 5,
        "server.address": "api.example",
        "server.port": 443,
    }
    points, units = seen.points()
    time_names = [
        names.GEN_AI_CLIENT_OPERATION_DURATION,
        names.GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK,
        names.GEN_AI_CLIENT_OPERATION_TIME_PER_OUTPUT_CHUNK,
    ]
    assert set(points) == {*time_names, names.GEN_AI_CLIENT_TOKEN_USAGE}
    assert {units[name] for name in time_names} == {"s"}
    assert units[names.GEN_AI_CLIENT_TOKEN_USAGE] == "{token}"
    (point,) = points[names.GEN_AI_CLIENT_OPERATION_TIME_PER_OUTPUT_CHUNK]
    assert point.count == len(WORDS) - 1  # one for each gap, after the first chunk
    assert point.explicit_bounds == (
        0.01,
        0.02,
        0.04,
        0.08,
        0.16,
        0.32,
        0.64,
        1.28,
        2.56,
        5.12,
        10.24,
        20.48,
        40.96,
        81.92,
    )
    tokens = {
        point.attributes[attributes.GEN_AI_TOKEN_TYPE]: (point.count, point.sum)
        for point in points[names.GEN_AI_CLIENT_TOKEN_USAGE]
    }
    assert tokens == {"input": (1, 3), "output": (1, 5)}
    bounds = points[names.GEN_AI_CLIENT_TOKEN_USAGE][0].explicit_bounds
    assert bounds == (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
    (duration,) = points[names.GEN_AI_CLIENT_OPERATION_DURATION]
    assert duration.sum == observation.duration
    assert "error.type" not in duration.attributes


def test_the_latest_names(module, monkeypatch):
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http, gen_ai_latest_experimental")
    seen = Seen(module)
    observed(seen.telemetry, vendors.openai(WORDS))
    points, _ = seen.points()
    prefix = "gen_ai.client.inference"
    assert {name: point.sum for name, (point,) in points.items() if "usage" in name} == {
        f"{prefix}.usage.input_tokens": 3,
        f"{prefix}.usage.output_tokens": 5,
    }
    assert {name for name in points if "usage" not in name} == {
        f"{prefix}.duration",
        f"{prefix}.time_to_first_chunk",
        f"{prefix}.time_per_output_chunk",
    }


def test_names_are_a_choice(module):
    with pytest.raises(ValueError, match="names is"):
        module.GenAITelemetry(names="newest")


@pytest.mark.parametrize(("vendor", "reason"), [("anthropic", "end_turn"), ("gemini", "STOP")])
def test_other_vendors(module, vendor, reason):
    seen = Seen(module)
    observed(seen.telemetry, vendors.VENDORS[vendor](WORDS), "auto", model=None)
    (span,) = seen.spans()
    assert span.name == "chat"
    assert span.attributes["gen_ai.provider.name"] == {"gemini": "gcp.gemini"}.get(vendor, vendor)
    assert span.attributes["gen_ai.response.finish_reasons"] == (reason,)
    assert "gen_ai.request.model" not in span.attributes


def test_the_standard_stream(module, llmstream):
    encoder = llmstream.Encoder()
    body = [encoder.start("m", request_id="r"), encoder.delta("a"), encoder.stop("max_tokens"), encoder.usage(1, 0)]
    seen = Seen(module)
    observed(seen.telemetry, [*body, encoder.end()], "llm-stream", provider="example")
    attributes = seen.spans()[0].attributes
    assert attributes["gen_ai.provider.name"] == "example"
    assert attributes["gen_ai.response.id"] == "r"
    assert attributes["gen_ai.response.finish_reasons"] == ("max_tokens",)
    assert attributes["gen_ai.usage.output_tokens"] == 0


def test_chunk_times_are_a_choice(module):
    seen = Seen(module, chunk_times=False)
    observed(seen.telemetry, vendors.openai(WORDS))
    points, _ = seen.points()
    assert "gen_ai.client.operation.time_per_output_chunk" not in points
    assert "gen_ai.client.operation.time_to_first_chunk" in points


def test_content_is_captured_only_when_told(module):
    chunks = vendors.openai(WORDS, arguments=['{"x":', "1}"])
    seen = Seen(module)
    observed(seen.telemetry, chunks)
    assert "secret words" not in str(seen.spans()[0].to_json())
    seen = Seen(module, capture_content=True)
    observed(seen.telemetry, chunks)
    (message,) = json.loads(seen.spans()[0].attributes["gen_ai.output.messages"])
    assert message == {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "absecret words"},
            {"type": "tool_call", "id": "call_1", "name": "f", "arguments": {"x": 1}},
        ],
        "finish_reason": "tool_use",
    }


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537])
def test_so_much_content_is_captured(module, size):
    seen = Seen(module, capture_content=True)
    observed(seen.telemetry, vendors.openai(["x" * size]))
    (message,) = json.loads(seen.spans()[0].attributes["gen_ai.output.messages"])
    assert len(message["parts"][0]["content"]) == min(size, 65_536)


def test_what_went_wrong(module):
    overloaded = vendors.sse(
        {"type": "error", "error": {"type": "overloaded_error", "message": "secret words"}}, "error"
    )
    for chunks, error in (
        (vendors.anthropic(WORDS)[:5], "stream_incomplete"),
        ([*vendors.anthropic(WORDS)[:5], overloaded], "overloaded"),
        ([], "stream_incomplete"),
        ([b"\xff\n\n" * 9], "stream_incomplete"),
    ):
        seen = Seen(module)
        observed(seen.telemetry, chunks, "anthropic")
        (span,) = seen.spans()
        assert span.attributes["error.type"] == error
        assert span.status.status_code.name == "ERROR"
        assert "secret words" not in str(span.to_json())
        points, _ = seen.points()
        assert points["gen_ai.client.operation.duration"][0].attributes["error.type"] == error


def test_closed_twice_is_told_once(module):
    seen = Seen(module)
    observer = seen.telemetry.observer("openai")
    assert observer.close() is observer.close()
    assert len(seen.spans()) == 1


def test_times(module):
    seen, clock = Seen(module), Clock()
    observer = seen.telemetry.observer("openai", clock=clock)
    for chunk in vendors.openai(WORDS):
        observer.feed(chunk)
    observer.close()
    points, _ = seen.points()
    (point,) = points["gen_ai.client.operation.time_per_output_chunk"]
    assert (point.count, point.sum, point.min, point.max) == (2, 2.0, 1.0, 1.0)
    assert points["gen_ai.client.operation.time_to_first_chunk"][0].sum == 2.0


@contextlib.contextmanager
def receiver():
    """A receiver of OTLP over HTTP: path -> bodies."""
    got = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.setdefault(self.path, []).append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_over_otlp(module):
    """As a collector gets it, read with the messages of the protocol."""
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    with receiver() as (url, got):
        tracers = TracerProvider()
        tracers.add_span_processor(BatchSpanProcessor(exporters.OTLPSpanExporter(f"{url}/v1/traces")))
        meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics"))])
        telemetry = module.GenAITelemetry(tracer_provider=tracers, meter_provider=meters)
        observed(telemetry, vendors.anthropic(WORDS), "anthropic")
        tracers.shutdown()
        meters.shutdown()
    (span,) = ExportTraceServiceRequest.FromString(got["/v1/traces"][0]).resource_spans[0].scope_spans[0].spans
    attributes = {each.key: each.value for each in span.attributes}
    assert span.name == "chat gpt-x"
    assert attributes["gen_ai.usage.output_tokens"].int_value == 5
    assert attributes["gen_ai.provider.name"].string_value == "anthropic"
    exported = ExportMetricsServiceRequest.FromString(got["/v1/metrics"][0]).resource_metrics[0].scope_metrics[0]
    assert "gen_ai.client.token.usage" in {metric.name for metric in exported.metrics}
    assert not any(b"secret words" in body for bodies in got.values() for body in bodies)


def test_in_a_gateway(module, replay):
    """The span hangs below that of the client, and its request is one of the upstream's."""
    httpx2 = pytest.importorskip("httpx2")
    pytest.importorskip("hypercorn")
    from gateway_server import WAIT, served

    gateway = importlib.import_module("llmstream.integrations.gateway")
    seen = Seen(module)
    trace_id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with served(replay(vendors.openai(WORDS))) as port:
        upstream = gateway.Upstream("groq", f"http://127.0.0.1:{port}/v1")
        with served(gateway.Gateway([upstream], observer=seen.telemetry.for_gateway)) as gateway_port:
            response = httpx2.post(
                f"http://127.0.0.1:{gateway_port}/v1/chat/completions",
                json={"model": "m", "stream": True},
                headers={"traceparent": f"00-{trace_id}-{parent}-01"},
                timeout=WAIT,
            )
            response.raise_for_status()
    (span,) = seen.spans()
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (trace_id, parent)
    assert span.attributes["gen_ai.provider.name"] == "groq"
    assert span.attributes["gen_ai.request.model"] == "m"
    assert span.attributes["server.port"] == port
