"""The page beside a gateway, on one origin: ``python page.py [--port 8080]``, with the environment of the gateway's
example (``../gateway/gateway.py``). Then open http://127.0.0.1:8080/."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from llmstream.integrations.serving import listen, serve

HERE = Path(__file__).resolve().parent
PAGE = (HERE / "index.html").read_bytes()


def with_page(gateway: Any) -> Any:
    """An ASGI application: the page at ``/``, and the gateway for all else."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/":
            await gateway(scope, receive, send)
            return
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(PAGE))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": PAGE, "more_body": False})

    return application


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8080)
    found = parser.parse_args()
    sys.path.insert(0, str(HERE.parent / "gateway"))
    from gateway import gateway  # type: ignore[import-not-found]

    asyncio.run(serve(with_page(gateway()), listen("127.0.0.1", found.port)))


if __name__ == "__main__":
    main()
