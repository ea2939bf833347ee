"""Over a real socket: what has arrived is out before the server sends more."""

from __future__ import annotations

import contextlib
import http.client
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from streams import EVENTS, KINDS


class Handler(BaseHTTPRequestHandler):
    """Sends an event and waits until the client has seen it."""

    protocol_version = "HTTP/1.1"
    seen = threading.Semaphore(0)

    def do_GET(self) -> None:
        seen = type(self).seen
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        chunked = self.path == "/chunked"
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif self.path == "/length":
            self.send_header("Content-Length", str(sum(map(len, EVENTS))))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            for event in EVENTS:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event) if chunked else event)
                if not seen.acquire(timeout=10):
                    return  # held back: the client gets a stream that is cut
            if chunked:
                self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(params=["/chunked", "/length", "/close"])
def path(request: pytest.FixtureRequest) -> str:
    Handler.seen = threading.Semaphore(0)
    return str(request.param)


def read(llmstream: Any, response: Any) -> None:
    kinds: list[str] = []
    with llmstream.iter_events(response, strict=True) as events:
        for event in events:
            kinds.append(event.type)
            Handler.seen.release()
    assert kinds == KINDS


def test_http_client(llmstream: Any, port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    response = connection.getresponse()
    read(llmstream, response)
    assert response.isclosed()
    connection.close()


def test_urllib(llmstream: Any, port: int, path: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    response = opener.open(f"http://127.0.0.1:{port}{path}")
    read(llmstream, response)
    assert response.isclosed()


def test_leaving_early_closes_the_response(llmstream: Any, port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    response = connection.getresponse()
    with llmstream.iter_events(response) as events:
        assert next(events).type == "stream.start"
    assert response.isclosed()
    connection.close()
    for _ in EVENTS:
        Handler.seen.release()
