"""The server that plays recordings, over real sockets."""

from __future__ import annotations

import contextlib
import importlib
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
        first = process.stderr.readline()
        yield re.search(r"https?://[^/]+", first)[0], process
    finally:
        process.kill()
        process.wait(WAIT)
        process.stderr.close()


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
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            (["--replay", str(tmp_path / "missing")], "No such file"),
            (["--replay", str(file), "--chunk", "x"], "chunk is"),
            (["--replay", str(file), "--fault", "x"], "fault is"),
            (["--replay", str(file), "--key", str(file)], "go together"),
            (["--replay", str(file), "--port", port], "cannot listen"),
            (["--replay", str(file), "--port", "0", "--key", str(file), "--certificate", str(file)], "cannot serve"),
            ([], "--replay"),
        ):
            assert main("serve", *arguments) == 2
            assert words in capsys.readouterr().err


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
