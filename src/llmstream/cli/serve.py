"""Play recorded or encoded streams over HTTP, at a chosen pace and with faults on request: an endpoint to test clients
against. GET /NAME or POST /NAME plays the file of that name; any other path, /v1/chat/completions say, plays the files
in turn. A request may choose for itself: ?pace=20&chunk=7&fault=cut&after=3"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from importlib import import_module
from urllib.parse import quote

from .inputs import Input
from .options import Unusable
from .terminal import counted, say, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ..integrations.recordings import Recording
    from ..integrations.replay import Playing

HELP = "play recorded streams over HTTP, to test clients against"
COMMON = ()

MAX_SIZE = 256 * 2**20
"""Bytes of all files together, which are held in memory."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds those of this command."""
    parser.add_argument("--replay", nargs="+", required=True, metavar="FILE", help="the streams, as they were recorded")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default 127.0.0.1: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="0 for a free one (default 8000)")
    parser.add_argument("--pace", type=float, default=0.0, metavar="N", help="pieces a second (default 0: at once)")
    parser.add_argument("--chunk", default="event", metavar="SIZE", help="a piece: event (default), whole, or bytes")
    parser.add_argument("--fault", metavar="FAULT", help="cut, stall, end, garbage, error, or a status such as 429")
    parser.add_argument("--after", type=int, metavar="N", help="pieces before the fault (default: half of them)")
    parser.add_argument("--certificate", metavar="FILE", help="for TLS 1.3 and HTTP/2, in PEM")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key")


def run(found: argparse.Namespace) -> int:
    """The command; returns 0 where it was told to stop, 130 where it was interrupted."""
    from ..integrations.replay import Playing, Replay

    try:
        playing = Playing(pace=found.pace, chunk=found.chunk, fault=found.fault, after=found.after)
    except ValueError as error:
        raise Unusable(str(error)) from None
    if (found.certificate is None) != (found.key is None):
        raise Unusable("--certificate and --key go together")
    _check_certificate(found.certificate, found.key)
    try:
        import_module("hypercorn")
    except ImportError:
        raise Unusable("serve needs hypercorn: pip install 'llmstream-wire[gateway]'") from None
    recordings = _recordings(found.replay)
    if found.after is not None and found.fault is None:
        say("without --fault, --after counts only for requests that name a fault")
    return asyncio.run(_serve(Replay(recordings, playing, on_request=_tell), recordings, found))


def _recordings(names: list[str]) -> list[Recording]:
    from ..integrations.recordings import recording

    found: list[Recording] = []
    size = 0
    for name in names:
        body = bytearray()
        with Input(name) as source:
            for chunk in source:
                body += chunk
                size += len(chunk)
                if size > MAX_SIZE:
                    raise Unusable(f"more than {MAX_SIZE // 2**20} MiB to play")
        if not body:
            raise Unusable(f"{source.label}: it is empty")
        own = "stdin" if name == "-" else os.path.basename(name)
        found.append(recording(_unused(own, {each.name for each in found}), bytes(body)))
    return found


def _unused(name: str, used: set[str]) -> str:
    """A name by which a recording can be asked for, where another has this one: answer.sse, answer-2.sse."""
    stem, ending = os.path.splitext(name)
    number, own = 2, name
    while own in used:
        own, number = f"{stem}-{number}{ending}", number + 1
    return own


def _check_certificate(certificate: str | None, key: str | None) -> None:
    """Says which of the files cannot be used, before anything is listened on or told."""
    if certificate is None or key is None:
        return
    for name in (certificate, key):
        with Input(name) as source:
            if source.size is None:  # which can be read only once
                return
            if b"-----BEGIN " not in next(iter(source), b""):
                raise Unusable(f"cannot serve: {name}: there is no PEM in it")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, password=_ask_later)
    except _Encrypted:
        return
    except (OSError, ValueError) as error:  # among them ssl.SSLError
        words = "they do not belong together" if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH" else ""
        words = words or "they are no certificate and its key in PEM"
        raise Unusable(f"cannot serve: {certificate}, {key}: {words}") from None


class _Encrypted(Exception):  # noqa: N818
    """The key has a password, which is asked for where it is used."""


def _ask_later() -> str:
    raise _Encrypted


async def _serve(application: object, recordings: list[Recording], found: argparse.Namespace) -> int:
    from ..integrations.serving import listen, serve

    try:
        listener = listen(found.host, found.port)
    except (OSError, OverflowError) as error:
        # The standard library puts the address behind what the system says.
        words = str(getattr(error, "strerror", None) or error).partition(" (while attempting")[0]
        raise Unusable(f"cannot listen on {found.host}:{found.port}: {words}") from None
    scheme, port = "http" if found.certificate is None else "https", listener.getsockname()[1]
    host = f"[{found.host}]" if ":" in found.host else found.host
    stopped, status = asyncio.Event(), 0

    def stop(number: int) -> None:
        nonlocal status
        status = 130 if number == signal.SIGINT else 0
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    for each in recordings:
        url = f"{scheme}://{host}:{port}/{visible(quote(each.name), 200)}"
        say(f"{url}  {each.dialect}, {counted(len(each.pieces), 'event')}")
    try:
        await serve(
            application, listener, certificate=found.certificate, key=found.key, stop=stopped.wait, graceful=0.5
        )
    except (OSError, ssl.SSLError) as error:
        raise Unusable(f"cannot serve: {error.strerror or error}") from None
    return status


def _tell(method: str, path: str, recorded: Recording, playing: Playing) -> None:
    fault = "" if playing.fault is None else f", {playing.fault}"
    say(f"{method} {visible(path, 200)}: {visible(recorded.name, 200)}{fault}")
