"""Runs one target under atheris, which is guided by the lines of Python that an input reaches, and by the branches of
the compiled twin where that was built with ``-fsanitize=fuzzer-no-link``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .mutation import DICTIONARY, MOST


def run(name: str, seconds: float, arguments: list[str]) -> None:
    """Does not return: libFuzzer ends the process. Raises ImportError where atheris is not installed."""
    import atheris

    with atheris.instrument_imports(include=["llmstream"]):
        from .packages import implementations

        found = implementations()
    from .runner import Runner
    from .seeds import seeds

    corpus = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for number, raw in enumerate(seeds(name)):
        (corpus / str(number)).write_bytes(raw)
    runner = Runner(name, found)

    def one(raw: bytes) -> None:
        runner.one(bytes(raw))
        if runner.findings:
            [message] = runner.messages.values()
            for path in runner.save():
                print(f"{name}: {message}\n  {path}", file=sys.stderr)
            raise AssertionError(message)

    options = [f"-dict={DICTIONARY}", f"-max_len={MOST}", f"-max_total_time={seconds:.0f}", "-timeout=60", *arguments]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()
