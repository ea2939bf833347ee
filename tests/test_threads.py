"""Threads: what belongs to one thread each works in many, and what is shared by mistake stays safe.

A parser, a decoder and an encoder are for one stream. Two threads that feed the same one get each its own events or
an error, never a crash; with the GIL or without it. On a free-threaded Python the import leaves the
GIL off.
"""

from __future__ import annotations

import copy
import pickle
import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import pytest

THREADS = 4
STREAM = (
    b'event: stream.start\ndata: {"v":"1.0","seq":0,"type":"stream.start","model":"m","created":0}\n\n'
    + b"".join(
        b'event: content.delta\ndata: {"v":"1.0","seq":%d,"type":"content.delta","index":0,"role":"assistant",'
        b'"delta":{"text":"word %d"}}\n\n' % (seq, seq)
        for seq in range(1, 301)
    )
    + b'event: content.stop\ndata: {"v":"1.0","seq":301,"type":"content.stop","index":0,"stop_reason":"end_turn"}\n\n'
    + b'event: usage\ndata: {"v":"1.0","seq":302,"type":"usage","input_tokens":1,"output_tokens":300}\n\n'
    + b'event: stream.end\ndata: {"v":"1.0","seq":303,"type":"stream.end"}\n\n'
)
TEXT = "".join(f"word {seq}" for seq in range(1, 301))
CHUNKS = [STREAM[at : at + 97] for at in range(0, len(STREAM), 97)]

pytestmark = pytest.mark.skipif(sys.platform in ("emscripten", "wasi"), reason="WebAssembly starts no thread")


@pytest.fixture(autouse=True)
def often():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*tasks: Callable[[], Any]) -> list[Any]:
    """What each task returned or raised, all begun at the same moment."""
    barrier = threading.Barrier(len(tasks))
    results: list[Any] = [None] * len(tasks)

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = tasks[number]()
        except Exception as error:  # noqa: BLE001 (it is looked at below)
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the GIL")
def test_the_gil_stays_off(llmstream):
    llmstream.Encoder(clock=lambda: 0).start("m")
    assert not sys._is_gil_enabled()


def test_a_parser_each(llmstream):
    def read() -> str:
        parser = llmstream.Parser()
        events = [event for chunk in CHUNKS for event in parser.feed(chunk)]
        parser.close()
        assert parser.complete
        assert parser.violations == []
        return "".join(event.text for event in events if isinstance(event, llmstream.ContentDelta))

    assert together(*[read] * THREADS) == [TEXT] * THREADS


def test_a_dialect_each(llmstream):
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"word"}}]}\n\n'

    def read(dialect: str) -> str:
        parser = llmstream.Parser(dialect)
        return "".join(parser.feed_text(chunk) for _ in range(200))

    assert together(*[lambda: read("openai"), lambda: read("auto")] * 2) == ["word" * 200] * THREADS


def test_an_encoder_each(llmstream):
    def write() -> bytes:
        encoder = llmstream.Encoder(clock=lambda: 0)
        return (
            encoder.start("m")
            + b"".join(encoder.delta(f"word {n}") for n in range(100))
            + encoder.stop("end_turn")
            + encoder.end()
        )

    assert len({*together(*[write] * THREADS)}) == 1


def test_events_are_shared(llmstream):
    """Events are immutable: any number of threads read what one thread was given."""
    parser = llmstream.Parser()
    events = parser.feed(STREAM)

    def read() -> list[Any]:
        return [
            (event.type, event.seq, event.raw, event.json(), event.extensions, hash(event), repr(event))
            for event in [*events, *copy.copy(events), *pickle.loads(pickle.dumps(events))]
        ]

    results = together(*[read] * THREADS)
    assert all(result == results[0] for result in results)
    assert len(results[0]) == 3 * len(events)


# It is being fed already, or closed.
ALLOWED = (RuntimeError, ValueError)


@pytest.mark.parametrize("kind", ["Parser", "SSEDecoder"])
def test_one_reader_in_many_threads_is_safe(llmstream, kind):
    """What comes out is not the stream any more, but it is events, and nothing is read twice."""
    for _ in range(5):
        reader = getattr(llmstream, kind)()

        def feed(reader: Any = reader) -> int:
            count = 0
            for chunk in CHUNKS:
                try:
                    count += len(reader.feed(chunk))
                except ALLOWED:
                    continue
            return count

        results = together(*[feed] * THREADS)
        assert all(isinstance(result, int) for result in results), results
        assert sum(results) <= THREADS * 304 + THREADS  # an event that another thread's bytes end counts once
        reader.close()


def test_a_parser_fed_and_looked_at(llmstream):
    parser = llmstream.Parser()
    names = ("complete", "shape_hits", "last_event_id", "retry", "next_seq", "gaps", "usage", "violations")

    def look() -> None:
        for _ in range(100):
            for name in names:
                getattr(parser, name)

    def feed() -> None:
        for _ in range(3):
            for chunk in CHUNKS:
                parser.feed(chunk)

    assert together(feed, look, look, look) == [None] * THREADS
    assert parser.violation_count > 0  # the stream came three times


def test_a_parser_closed_by_another_thread(llmstream):
    def feed(parser: Any) -> None:
        for chunk in CHUNKS:
            try:
                parser.feed(chunk)
            except ALLOWED:
                continue

    for _ in range(20):
        parser = llmstream.Parser()

        def close(parser: Any = parser) -> None:
            try:
                parser.close()
            except RuntimeError:  # it is being fed
                return

        results = together(lambda parser=parser: feed(parser), close)
        assert results == [None, None]
