"""The server that plays recordings, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
from gateway_server import WAIT, served, until

import vendors
from commands import main
from standard import clock

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("h2")
pytest.importorskip("hypercorn")

WORDS = ["a", "b", "c", "d\u2028e", "\U0001f600", " f"]


@pytest.fixture
def standard(llmstream):
    encoder = llmstream.Encoder(clock=clock)
    events = [encoder.start("m"), *map(encoder.delta, WORDS), encoder.stop("end_turn"), encoder.usage(1, 2)]
    return [*events, encoder.end()]


def chunks_of(port, path="/", **options):
    with httpx2.Client(timeout=WAIT, **options) as client:
        scheme = "https" if "verify" in options else "http"
        with client.stream("POST", f"{scheme}://127.0.0.1:{port}{path}") as response:
            yield response
            yield from response.iter_raw()


@pytest.mark.parametrize("vendor", [vendors.openai, vendors.anthropic, vendors.gemini])
def test_a_recording_comes_as_it_is(replay, llmstream, vendor):
    events = vendor(WORDS)
    with served(replay(events)) as port:
        response, *chunks = chunks_of(port, "/v1/anything")
    assert b"".join(chunks) == b"".join(events)
    assert response.headers["content-type"] == "text/event-stream"
    assert "content-length" not in response.headers


def test_names_and_turns(replay, standard):
    one, two = vendors.openai(["x"]), standard
    seen = []
    with served(replay(one, two, on_request=lambda *asked: seen.append(asked[2].dialect))) as port:
        bodies = [b"".join(list(chunks_of(port, path))[1:]) for path in ("/", "/", "/", "/1.sse", "/a/1", "/0")]
        with httpx2.Client(timeout=WAIT) as client:
            assert client.get(f"http://127.0.0.1:{port}/1").content == b"".join(two)  # EventSource
            assert client.request("OPTIONS", f"http://127.0.0.1:{port}/1").status_code == 204
            assert client.delete(f"http://127.0.0.1:{port}/1").status_code == 405
            assert client.head(f"http://127.0.0.1:{port}/1").headers["access-control-allow-origin"] == "*"
    first, second = b"".join(one), b"".join(two)
    assert bodies == [first, second, first, second, second, first]
    assert seen[:2] == ["openai", "llm-stream"]


def test_chunks(replay, standard):
    whole = b"".join(standard)
    with served(replay(standard, pace=200)) as port:
        _, *events = chunks_of(port)  # each by itself, since they are paced
        assert events == standard
        _, *pieces = chunks_of(port, "/?chunk=7&pace=1000")
        assert b"".join(pieces) == whole
        assert max(map(len, pieces)) <= 14  # two at most, where the machine is busy
        _, *all_at_once = chunks_of(port, "/?chunk=whole&pace=0")
        assert b"".join(all_at_once) == whole


def test_pace(replay, standard):
    with served(replay(standard)) as port:
        began = time.monotonic()
        list(chunks_of(port, "/?pace=50"))
    assert time.monotonic() - began >= (len(standard) - 1) / 50


@pytest.mark.parametrize("http2", [False, True])
def test_cut(replay, llmstream, standard, certificates, http2):
    """The client learns of it at once, over either protocol."""
    options = {"verify": certificates.context(), "http1": not http2, "http2": http2}
    with served(replay(standard), **certificates.options) as port:
        stream = chunks_of(port, "/?fault=cut&after=3&pace=100", **options)
        assert next(stream).http_version == ("HTTP/2" if http2 else "HTTP/1.1")
        found = []
        with pytest.raises(httpx2.RemoteProtocolError):
            found.extend(stream)
    assert llmstream.parse(b"".join(found)).text in ("ab", "")  # the last chunks may be lost with the stream


def test_stall(replay, standard):
    found = []
    with (
        served(replay(standard)) as port,
        httpx2.Client(timeout=0.3) as client,
        client.stream("POST", f"http://127.0.0.1:{port}/?fault=stall&after=2") as response,
        pytest.raises(httpx2.ReadTimeout),
    ):
        found.extend(response.iter_raw())
    assert b"".join(found) == b"".join(standard[:2])


def test_end(replay, llmstream, standard):
    with served(replay(standard)) as port:
        _, *found = chunks_of(port, "/?fault=end&after=3")
    assert b"".join(found) == b"".join(standard[:3])
    assert not llmstream.parse(b"".join(found)).complete


def test_garbage(replay, llmstream, standard):
    with served(replay(standard)) as port:
        _, *found = chunks_of(port, "/?fault=garbage&after=3")
    result = llmstream.parse(b"".join(found))
    assert result.text == "".join(WORDS)
    assert result.violations


@pytest.mark.parametrize("vendor", [None, vendors.openai, vendors.anthropic, vendors.gemini])
def test_error(replay, llmstream, standard, vendor):
    events = standard if vendor is None else vendor(WORDS)
    with served(replay(events)) as port:
        _, *found = chunks_of(port, "/?fault=error&after=3")
        with httpx2.Client(timeout=WAIT) as client:
            refused = client.post(f"http://127.0.0.1:{port}/?fault=429")
            assert client.post(f"http://127.0.0.1:{port}/?fault=nonsense").status_code == 400
    body = b"".join(found)
    assert body.startswith(b"".join(events[:3]))
    result = llmstream.parse(body, dialect="auto")
    assert result.error.code == "overloaded"
    if vendor is None:
        assert llmstream.check(body).ok
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert llmstream.parse(refused.content, dialect="auto").error.code == "rate_limited"


def _events(llmstream, standard, kind):
    """A recording in each framing: its events, each whole, what stands after all, and the dialect to read it in."""
    if kind == "standard":
        return standard, b"", "llm-stream"
    if kind in vendors.VENDORS:
        return vendors.VENDORS[kind](WORDS), b"", kind
    if kind == "other line ends":
        return [event.replace(b"\n", b"\r\n") for event in vendors.openai(WORDS)], b"", "openai"
    if kind == "aws":
        deltas = [{"contentBlockIndex": 0, "delta": {"text": word}} for word in WORDS]
        frames = [vendors.aws(delta, "contentBlockDelta") for delta in deltas]
        return [*frames, vendors.aws({"stopReason": "end_turn"}, "messageStop")], b"", "bedrock"
    if kind == "lines":
        deltas = [{"model": "m", "message": {"content": word}, "done": False} for word in WORDS]
        end = {"model": "m", "message": {"content": ""}, "done": True, "done_reason": "stop"}
        return [vendors.lines(each) for each in (*deltas, end)], b"", "ollama"
    if kind == "array":
        candidates = [{"candidates": [{"content": {"parts": [{"text": word}]}, "index": 0}]} for word in WORDS]
        candidates[-1]["candidates"][0]["finishReason"] = "STOP"
        values = [json.dumps(value, indent=2).encode() for value in candidates]
        return [b"[" + values[0], *(b"\n,\r\n" + value for value in values[1:])], b"\n]\n", "gemini"
    values = [vendors.compact({"text": word}).encode() for word in WORDS]
    return [b"\0" + len(value).to_bytes(4, "big") + value for value in values], b"", "connect"


def _told(kind):
    """The error, as the documentation of each framing has it, where it depends on nothing else."""
    message = "a fault that was asked for"
    if kind == "aws":
        return vendors.aws({"message": message}, "serviceUnavailableException", "exception")
    end = vendors.compact({"error": {"code": "unavailable", "message": message}}).encode()
    return b"\2" + len(end).to_bytes(4, "big") + end


def played(application, query):
    """All that is sent, without a socket."""
    found = []

    async def send(message):
        found.append(message.get("body", b""))

    async def receive():
        await asyncio.Event().wait()

    scope = {"type": "http", "method": "GET", "path": "/v1/", "query_string": query.encode(), "headers": []}
    asyncio.run(application(scope, receive, send))
    return b"".join(found)


KINDS = ["standard", *vendors.VENDORS, "other line ends", "aws", "lines", "array", "connect"]
CHUNKS = ["event", "whole", "1", "7", "30", "300", "1000000"]
AFTER = [None, 0, 1, 2, 3, 20, 10_000]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_cut", [False, True])
def test_an_error_comes_between_two_events(replay, llmstream, standard, kind, is_cut):
    """Wherever the pieces end, also where the recording itself was cut within its last event."""
    events, end, dialect = _events(llmstream, standard, kind)
    application = replay([*events[:-1], events[-1][:-5]] if is_cut else [*events, end])
    events = events[:-1] if is_cut else events
    borders = [sum(map(len, events[:count])) for count in range(len(events) + 1)]
    for chunk in CHUNKS:
        for after in AFTER:
            query = f"fault=error&chunk={chunk}" + ("" if after is None else f"&after={after}")
            body = played(application, query)
            if after is not None:
                sent = after * int(chunk) if chunk.isdigit() else borders[-1] * after
                sent = borders[min(after, len(events))] if chunk == "event" else min(sent, borders[-1])
                count = sum(border < sent for border in borders)
                assert body.startswith(b"".join(events[:count])), query
                assert count == len(events) or not body.startswith(b"".join(events[: count + 1])), query
            if kind in ("aws", "connect"):
                told = _told(kind)
                assert body.endswith(told), query
                assert len(body) - len(told) in borders, query
            is_over = body.startswith(b"".join(events)) and not is_cut
            if kind == "connect" or (is_over and kind != "aws"):
                continue  # nothing is read after the end of a stream
            found = llmstream.parse(body, dialect=dialect)
            assert found.error is not None, query
            assert found.error.code == "overloaded", query
            assert not found.violations or kind == "array", (query, found.violations)
            if kind == "standard":
                assert llmstream.check(body).ok, query
                assert found.complete
            if kind == "array":
                assert list(json.loads(body)[-1]) == ["error"]


@pytest.mark.parametrize("kind", [*KINDS[:5], "lines"])
def test_garbage_leaves_every_event_whole(replay, llmstream, standard, kind):
    garbage = importlib.import_module("llmstream.integrations.replay").GARBAGE
    events, end, dialect = _events(llmstream, standard, kind)
    application = replay([*events, end])
    borders = {sum(map(len, events[:count])) for count in range(len(events) + 1)}
    for chunk in CHUNKS:
        for after in AFTER:
            query = f"fault=garbage&chunk={chunk}" + ("" if after is None else f"&after={after}")
            before, found, rest = played(application, query).partition(garbage)
            assert (found, before + rest) == (garbage, b"".join([*events, end])), query
            assert len(before) in borders, query
            if kind == "lines" and not before:
                continue  # the first bytes tell the framing
            assert llmstream.parse(before + found + rest, dialect=dialect).text == "".join(WORDS), query


def test_values_of_an_array(llmstream):
    recording = importlib.import_module("llmstream.integrations.recordings").recording
    for body, pieces in (
        (b'[{"a": [1, "]"]}\n,\n{"b": 2}\n]\n', [b'[{"a": [1, "]"]}', b'\n,\n{"b": 2}\n]\n']),
        (b'\xef\xbb\xbf[{"a":1},{"b":2', [b'\xef\xbb\xbf[{"a":1}', b',{"b":2']),
        (b'{\n "a": 1\n}\n', [b'{\n "a": 1\n}\n']),
        (b"[]", [b"[]"]),
        (b"[nonsense", [b"[nonsense"]),
    ):
        found = recording("x", body)
        assert (found.media_type, list(found.pieces)) == ("application/json", pieces)


@pytest.mark.parametrize("code", ["rate_limited", "overloaded", "context_length_exceeded", "internal_error", "other"])
def test_errors_of_binary_framings(llmstream, code):
    """As botocore and the Connect protocol name them."""
    module = importlib.import_module("llmstream.integrations.in_band")
    aws = {
        "rate_limited": "throttlingException",
        "overloaded": "serviceUnavailableException",
        "context_length_exceeded": "validationException",
    }.get(code, "internalServerException")
    told = module.error_event("bedrock", code, "m\u00e9", media_type="application/vnd.amazon.eventstream")
    assert told == vendors.aws({"message": "m\u00e9"}, aws, "exception")
    connect = {
        "rate_limited": "resource_exhausted",
        "overloaded": "unavailable",
        "context_length_exceeded": "invalid_argument",
    }.get(code, "internal")
    told = module.error_event("x", code, "m", media_type="application/connect+proto")
    assert (told[0], int.from_bytes(told[1:5], "big")) == (2, len(told) - 5)
    assert json.loads(told[5:]) == {"error": {"code": connect, "message": "m"}}


def test_names_without_an_extension(llmstream):
    """A path that names nothing plays the recordings in turn."""
    recording = importlib.import_module("llmstream.integrations.recordings").recording
    made = importlib.import_module("llmstream.integrations.replay").Replay
    bodies = {name: b"data: %d\n\n" % number for number, name in enumerate(("a", "b", ".sse"))}
    application = made([recording(name, body) for name, body in bodies.items()])
    assert [played(application, "") for _ in range(4)] == [*bodies.values(), bodies["a"]]


@pytest.mark.parametrize(
    "body", [b"", b"\n", b"\r\r", b"{", b"[1,2]", b"\0\0\0\0\0", b"\xff" * 9, b"data: x", b"a\r\n\r\nb"]
)
def test_any_body_is_played(replay, body):
    with served(replay(body)) as port:
        for path in ("/", "/?chunk=1", "/?fault=error", "/?fault=garbage&after=9", "/?fault=end&after=0"):
            _, *found = chunks_of(port, path)
            assert b"".join(found).startswith(body if path in ("/", "/?chunk=1") else b"")


def test_pieces(llmstream):
    recordings = importlib.import_module("llmstream.integrations.recordings")

    def told(body):
        found = recordings.recording("x", body)
        assert b"".join(found.pieces) == body
        return found.media_type, found.dialect, len(found.pieces)

    assert told(b"data: {}\r\n\r\n: c\r\n\r\ndata: {}\r\rdata: x\n\n")[::2] == ("text/event-stream", 4)
    frames = vendors.aws({"contentBlockDelta": {"delta": {"text": "a"}}}, "contentBlockDelta") * 2
    assert told(frames) == ("application/vnd.amazon.eventstream", "bedrock", 2)
    lines = vendors.lines({"model": "m", "message": {"content": "a"}, "done": False}, {"model": "m", "done": True})
    assert told(lines) == ("application/x-ndjson", "ollama", 2)


def test_playing_says_what_cannot_be(llmstream):
    playing = importlib.import_module("llmstream.integrations.replay").Playing
    for wrong in ({"pace": -1}, {"pace": float("nan")}, {"chunk": "0"}, {"chunk": "x"}, {"fault": "99"}, {"after": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            playing(**wrong)


@contextlib.contextmanager
def command(*arguments):
    """``llmstream serve`` as a process: its address, and what it says."""
    line = [sys.executable, "-m", "llmstream", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        first = re.search(r"https?://[^/]+", process.stderr.readline())
        yield first and first[0], process
    finally:
        process.kill()
        process.wait(WAIT)
        process.stderr.close()


def test_recordings_of_one_name(llmstream, tmp_path, standard):
    """Each has an address of its own, which plays it, whatever it is called and wherever it comes from."""
    bodies = [b"data: %d\n\n" % number for number in range(7)]
    names = ["a/x.sse", "b/x.sse", "c/x-2.sse", "d/x.sse", "a/x", "a/a name.sse", "a/y.sse"]
    for name, body in zip(names, bodies, strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(body)
    with command("--replay", *(str(tmp_path / name) for name in names)) as (address, process):
        # The line of the first is taken already.
        told = [f"{address}/x.sse", *(process.stderr.readline().split()[1] for _ in names[1:])]
        assert len(set(told)) == len(names)
        assert [httpx2.get(url, timeout=WAIT).content for url in told] == bodies
        assert httpx2.get(f"{address}/y", timeout=WAIT).content == bodies[-1]


def test_a_whole_name_goes_first(replay, llmstream):
    recording = importlib.import_module("llmstream.integrations.recordings").recording
    made = importlib.import_module("llmstream.integrations.replay").Replay
    bodies = {
        "a": b"data: 1\n\n",
        "a.sse": b"data: 2\n\n",
        "a.json": b"data: 3\n\n",
        "b.c": b"data: 4\n\n",
        "b.d": b"5\n\n",
    }
    for names in (list(bodies), list(bodies)[::-1]):
        with served(made([recording(name, bodies[name]) for name in names])) as port:
            for name, body in bodies.items():
                _, *found = chunks_of(port, f"/{name}")
                assert b"".join(found) == body
            _, *found = chunks_of(port, "/b")
            assert b"".join(found) == bodies[next(name for name in names if name.startswith("b."))]


@pytest.mark.parametrize("query", ["pace=x", "pace=", "pace=nan", "pace=-1", "chunk=x", "after=x", "fault=x"])
def test_a_parameter_that_cannot_be_says_so(replay, standard, query):
    name = query.partition("=")[0]
    with served(replay(standard)) as port:
        refused = httpx2.get(f"http://127.0.0.1:{port}/?{query}", timeout=WAIT)
        if query != "pace=":  # which the query string leaves out
            assert refused.status_code == 400
            assert refused.text.startswith(f"{name} is ")
        assert "float" not in refused.text


def test_what_the_command_says_at_first(llmstream, tmp_path, capsys):
    one = tmp_path / "one.sse"
    one.write_bytes(b"data: x\n\n")
    with command("--replay", str(one), "--after", "1") as (address, process):
        assert re.fullmatch(r"llmstream: http://\S+/one.sse  auto, 1 event\n", process.stderr.readline())
        assert address is None


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_the_command(llmstream, tmp_path, standard, kind):
    file = tmp_path / "answer.sse"
    file.write_bytes(b"".join(standard))
    with command("--replay", str(file), "--fault", "error") as (address, process):
        body = httpx2.post(f"{address}/v1/chat/completions", timeout=WAIT).content
        assert llmstream.parse(body).error.code == "overloaded"
        os.kill(process.pid, kind)
        assert process.wait(WAIT) == (130 if kind == signal.SIGINT else 0)
        said = process.stderr.read()
    assert "POST /v1/chat/completions: answer.sse, error" in said
    assert "Traceback" not in said


def test_the_command_with_a_certificate(llmstream, tmp_path, standard, certificates):
    file = tmp_path / "answer.sse"
    file.write_bytes(b"".join(standard))
    options = [f"--{name}={value}" for name, value in certificates.options.items()]
    with (
        command("--replay", str(file), *options) as (address, _),
        httpx2.Client(http2=True, verify=certificates.context(), timeout=WAIT) as client,
    ):
        response = client.get(f"{address}/answer")
    assert (response.http_version, response.content) == ("HTTP/2", b"".join(standard))


def test_the_command_says_what_is_wrong(llmstream, tmp_path, capsys):
    file = tmp_path / "answer.sse"
    file.write_bytes(b"data: x\n\n")
    empty, pem = tmp_path / "empty.sse", tmp_path / "p.pem"
    empty.write_bytes(b"")
    pem.write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            (["--replay", str(tmp_path / "missing")], "No such file"),
            (["--replay", str(file), "--chunk", "x"], "chunk is"),
            (["--replay", str(file), "--fault", "x"], "fault is"),
            (["--replay", str(file), "--key", str(file)], "go together"),
            (["--replay", str(file), "--port", port], "cannot listen"),
            (["--replay", str(file), "--port", "0", "--key", str(file), "--certificate", str(file)], "cannot serve"),
            (["--replay", str(empty)], "empty.sse: it is empty"),
            (["--replay", str(file), "--key", str(empty), "--certificate", str(pem)], "empty.sse: there is no PEM"),
            (["--replay", str(file), "--key", str(pem), "--certificate", str(pem)], "p.pem: they are no certificate"),
            ([], "--replay"),
        ):
            assert main("serve", *arguments) == 2
            shown = capsys.readouterr().err
            assert words in shown
            assert "https://" not in shown
            assert shown.count("ddress") <= 1


def test_the_command_bounds_what_it_holds(llmstream, tmp_path, capsys, monkeypatch):
    serve = importlib.import_module("llmstream.cli.serve")
    assert serve.MAX_SIZE == 256 * 2**20
    monkeypatch.setattr(serve, "MAX_SIZE", 2**20)
    half = tmp_path / "half"
    half.write_bytes(b"x" * 2**19)
    assert len(serve._recordings([str(half), str(half)])) == 2
    one = tmp_path / "one"
    one.write_bytes(b"x")
    assert main("serve", "--replay", str(half), str(half), str(one)) == 2
    assert "more than 1 MiB" in capsys.readouterr().err


def test_every_answer_is_let_go(replay, standard):
    """A client that leaves a stream that stalls is noticed: no task stays."""
    import asyncio

    app, tasks = replay(standard, fault="stall", after=1), []

    async def watched(scope, receive, send):
        tasks.append(asyncio.current_task())
        await app(scope, receive, send)

    with served(watched) as port:
        for _ in range(3):
            with httpx2.Client(timeout=WAIT) as client, client.stream("GET", f"http://127.0.0.1:{port}/") as response:
                next(response.iter_raw())
        until(lambda: len(tasks) >= 3 and all(task.done() for task in tasks[-3:]))
