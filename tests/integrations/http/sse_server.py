"""A server of the standard library that sends an event a chunk, and waits for the client to have seen each."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PATIENCE = 20
"""Seconds after which a stream that is held back fails its test."""


class Server:
    """What a test sets and asks. ``url`` takes how to send: framing (chunked, length, close), coding (identity, gzip),
    what (the name of events in ``answers``), wait (for ``seen`` after each event), cut (the connection after them)."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: dict[str, list[bytes]] = {}
        self.seen = threading.Semaphore(0)
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections: list[tuple[str, int]] = []
        self.replies: queue.SimpleQueue[tuple[int, dict[str, str], list[bytes]]] = queue.SimpleQueue()
        self.gone = threading.Event()

    def url(self, path: str = "/events", **how: Any) -> str:
        query = "&".join(f"{name}={value}" for name, value in how.items())
        return f"http://127.0.0.1:{self.port}{path}?{query}"

    def reply(self, status: int, headers: dict[str, str], *chunks: bytes) -> None:
        """What the next POST is answered with."""
        self.replies.put((status, headers, list(chunks)))


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._note(b"")
            query = {name: found[0] for name, found in parse_qs(urlsplit(self.path).query).items()}
            events = server.answers[query.get("what", "events")]
            gzip = query.get("coding") == "gzip"
            if gzip:
                packer = zlib.compressobj(wbits=31)
                events = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in events]
                events[-1] += packer.flush()
            framing = query.get("framing", "chunked")
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            if gzip:
                self.send_header("Content-Encoding", "gzip")
            if framing == "chunked":
                self.send_header("Transfer-Encoding", "chunked")
            elif framing == "length":
                self.send_header("Content-Length", str(sum(map(len, events)) + ("cut" in query)))
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                for event in events:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event) if framing == "chunked" else event)
                    if "wait" in query and not server.seen.acquire(timeout=PATIENCE):
                        self.close_connection = True
                        return
                if "hold" in query:  # until the client goes
                    self.connection.settimeout(PATIENCE)
                    self.rfile.read(1)
                    self.close_connection = True
                elif "cut" in query:
                    self.close_connection = True
                elif framing == "chunked":
                    self.wfile.write(b"0\r\n\r\n")
            if "hold" in query:
                server.gone.set()

        def do_POST(self) -> None:
            self._note(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            status, headers, chunks = server.replies.get(timeout=PATIENCE)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                for chunk in chunks:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.write(b"0\r\n\r\n")

        def _note(self, body: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.requests.append((self.command, self.path, headers, body))
            server.connections.append(self.client_address)

    return Handler


class Quiet(ThreadingHTTPServer):
    """A client that goes is no error."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    with Quiet(("127.0.0.1", 0), BaseHTTPRequestHandler) as http:
        server = Server(http.server_port)
        http.RequestHandlerClass = handler(server)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
