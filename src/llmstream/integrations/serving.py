"""An ASGI application on hypercorn (extra ``gateway``), with what the draft asks of a transport (section 3).

HTTP/1.1 and HTTP/2, which is preferred; with a certificate TLS 1.3, and nothing older.
"""

from __future__ import annotations

import logging
import socket
import ssl

from .replay import CutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

__all__ = ["listen", "serve"]

log = logging.getLogger("llmstream.serve")


def listen(host: str = "127.0.0.1", port: int = 8000) -> socket.socket:
    """A socket for ``serve``; port 0 takes a free one. Raises OSError where it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


async def serve(
    application: Any,
    listener: socket.socket,
    *,
    certificate: str | None = None,
    key: str | None = None,
    stop: Callable[[], Awaitable[object]] | None = None,
    graceful: float = 3.0,
) -> None:
    """Serves an ASGI application on ``listener`` (closed at the end), until ``stop`` returns; without it, until SIGINT
    or SIGTERM. Streams under way then have ``graceful`` seconds to end.

    ``certificate`` and ``key`` are files in PEM: with them it is TLS 1.3 (section 3: "for production deployments");
    without, HTTP/2 is there only for clients that know it beforehand. Faults of the application are logged by
    ``llmstream.serve``, requests are not. Raises OSError or ssl.SSLError for a certificate that cannot be read.
    """
    from hypercorn.asyncio import (  # type: ignore[import-not-found, unused-ignore]
        serve as run,  # pyright: ignore[reportMissingImports]
    )

    _reset_what_is_cut()
    config = _config(certificate, key)
    config.errorlog = log
    config.graceful_timeout = graceful
    try:
        config.create_ssl_context()  # what is wrong with the files shall be said before the socket is handed over
    except BaseException:
        listener.close()
        raise
    config.bind = [f"fd://{listener.detach()}"]
    await run(application, config, shutdown_trigger=stop)


def _config(certificate: str | None, key: str | None) -> Any:
    from hypercorn.config import (  # type: ignore[import-not-found, unused-ignore]
        Config,  # pyright: ignore[reportMissingImports]
    )

    class Modern(Config):  # type: ignore[misc, unused-ignore]
        def create_ssl_context(self) -> ssl.SSLContext | None:
            context: ssl.SSLContext | None = super().create_ssl_context()
            if context is not None:
                context.minimum_version = ssl.TLSVersion.TLSv1_3
            return context

    config = Modern()
    config.certfile, config.keyfile = certificate, key
    config.alpn_protocols = ["h2", "http/1.1"]  # in the order of preference (section 3)
    config.include_server_header = False
    config.accesslog = None
    return config


def _reset_what_is_cut() -> None:
    """Of a response that the application left unfinished hypercorn tells an HTTP/2 client nothing, which then waits for
    ever. It gets RST_STREAM (RFC 9113, section 5.4.2), as it gets the end of the connection over HTTP/1.1."""
    from hypercorn import (  # type: ignore[import-not-found, unused-ignore]
        protocol,  # pyright: ignore[reportMissingImports]
    )
    from hypercorn.protocol import (  # type: ignore[import-not-found, unused-ignore]
        events,  # pyright: ignore[reportMissingImports]
    )

    H2Protocol: Any = protocol.H2Protocol  # noqa: N806
    if getattr(H2Protocol, "_resets", False):
        return

    class Resetting(H2Protocol):  # type: ignore[misc]
        _resets = True

        async def stream_send(self, event: Any) -> None:
            if isinstance(event, events.StreamClosed):
                buffer = self.stream_buffers.get(event.stream_id)
                if buffer is not None and not buffer._complete:
                    await self._reset(event.stream_id, buffer)
            await super().stream_send(event)

        async def _reset(self, stream_id: int, buffer: Any) -> None:
            from h2.errors import (  # type: ignore[import-not-found, unused-ignore]
                ErrorCodes,  # pyright: ignore[reportMissingImports]
            )
            from h2.exceptions import (  # type: ignore[import-not-found, unused-ignore]
                ProtocolError,  # pyright: ignore[reportMissingImports]
            )

            try:
                self.connection.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
            except ProtocolError:
                return  # the client was first
            await buffer.close()
            await self._flush()

    protocol.H2Protocol = Resetting


def _is_telling(record: logging.LogRecord) -> bool:
    """Whether a record tells of more than a fault that was asked for, or that a server has begun."""
    kind = record.exc_info[0] if isinstance(record.exc_info, tuple) else None
    return not (kind is not None and issubclass(kind, CutError))


log.addFilter(_is_telling)
