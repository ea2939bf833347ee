"""A gateway to the providers whose keys are in the environment: ``python gateway.py [--port 8000]``.

OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY  a provider without its key is left out
GATEWAY_KEYS                                       what clients have to know, separated by commas; none: anybody
GATEWAY_STANDARD_URL                               an endpoint that speaks the standard, for all other models

Needs the extra ``gateway``: in a checkout ``pip install '.[gateway]'``.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os

from llmstream.integrations.gateway import Gateway, Limits, Upstream
from llmstream.integrations.serving import listen, serve

PROVIDERS = (
    ("openai", "OPENAI", "https://api.openai.com/v1", ["gpt-*", "o?-*", "chatgpt-*"]),
    ("anthropic", "ANTHROPIC", "https://api.anthropic.com/v1", ["claude-*"]),
    ("gemini", "GEMINI", "https://generativelanguage.googleapis.com/v1beta", ["gemini-*"]),
)


def gateway() -> Gateway:
    """The gateway that the environment asks for."""
    upstreams = [
        # Another URL may be that of a replay server, or of whoever else speaks the same.
        Upstream(dialect, os.environ.get(f"{name}_URL", url), key=os.environ[f"{name}_API_KEY"], models=models)
        for dialect, name, url, models in PROVIDERS
        if f"{name}_API_KEY" in os.environ
    ]
    if "GATEWAY_STANDARD_URL" in os.environ:
        upstreams.append(Upstream("llm-stream", os.environ["GATEWAY_STANDARD_URL"]))
    if not upstreams:
        raise SystemExit("no provider: set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or GATEWAY_STANDARD_URL")
    keys = [key for key in os.environ.get("GATEWAY_KEYS", "").split(",") if key]
    return Gateway(upstreams, keys=keys, limits=Limits(streams=500))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--certificate", help="in PEM, with --key: TLS 1.3, HTTP/2 and HTTP/1.1")
    parser.add_argument("--key")
    found = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    application, listener = gateway(), listen(found.host, found.port)
    print(f"listening on port {listener.getsockname()[1]}", flush=True)
    asyncio.run(serve(application, listener, certificate=found.certificate, key=found.key))


if __name__ == "__main__":
    main()
