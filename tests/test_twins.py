"""The twins are one: the same events, violations and errors, however a stream is cut, with shapes and without."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drafts
import handed
import splits
import strategies
import vendors

SEEDED = 120  # streams of each kind in one run; a profile of hypothesis sets the rest
relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def agree(twins, data, source, **options):
    """Every reading of these bytes, by either twin, gives what the Python twin gives for the whole without shapes."""
    with twins.python.active():
        expected = drafts.outcome(twins.python.package, [data], shapes=False, **options)
        found = drafts.outcome(twins.python.package, strategies.cuts(source, data), **options)
        assert found == expected
    with twins.cython.active():
        package = twins.cython.package
        ways = [[data], strategies.cuts(source, data), strategies.cuts(source, data, 40), splits.bytewise(data)]
        for chunks in ways:
            assert drafts.outcome(package, chunks, **options) == expected
        assert drafts.outcome(package, [data], shapes=False, **options) == expected
    if not options.get("strict") and "errors" not in options:
        with twins.python.active():
            expected = drafts.text_outcome(twins.python.package, [data], shapes=False, **options)
        with twins.cython.active():
            for chunks in ways[:3]:
                assert drafts.text_outcome(twins.cython.package, chunks, **options) == expected


@pytest.mark.parametrize("block", range(4))
def test_seeded_streams_of_the_draft(twins, block):
    for seed in range(block * 10_000, block * 10_000 + SEEDED):
        source = random.Random(seed)
        data = strategies.draft_stream(source)
        agree(twins, data, source, **strategies.options(source))


@pytest.mark.parametrize("dialect", vendors.VENDORS)
def test_seeded_streams_of_vendors(twins, dialect):
    for seed in range(SEEDED):
        source = random.Random(seed)
        data = strategies.vendor_stream(source, dialect)
        name = dialect if source.random() < 0.75 else source.choice(["auto", *vendors.VENDORS, "llm-stream"])
        options = strategies.options(source)
        if "max_event_size" in options:
            options["max_event_size"] *= 2
        agree(twins, data, source, dialect=name, **options)


@relaxed
@given(source=strategies.seeds())
def test_streams_of_the_draft(twins, source):
    data = strategies.draft_stream(source)
    agree(twins, data, random.Random(len(data)), **strategies.options(source))


@relaxed
@given(source=strategies.seeds(), dialect=st.sampled_from(sorted(vendors.VENDORS)))
def test_streams_of_vendors(twins, source, dialect):
    data = strategies.vendor_stream(source, dialect)
    agree(twins, data, random.Random(len(data)), dialect=dialect)


def decoded(package, chunks, **options):
    decoder = package.SSEDecoder(**options)
    events, raised = [], None
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
        events += decoder.close()
    except package.SSEError as error:
        events += error.events
        raised = (type(error).__name__, str(error), error.offset)
    seen = [(e.event, e.data, e.id, e.retry, e.complete) for e in events]
    return seen, decoder.last_event_id, decoder.retry, raised


@given(
    data=strategies.sse_bytes,
    dataless=st.booleans(),
    unfinished=st.booleans(),
    errors=st.sampled_from(["replace", "strict"]),
    max_event_size=st.sampled_from([1, 5, 10, 2**24]),
    seed=st.integers(0, 99),
)
def test_the_framing(twins, data, seed, **options):
    with twins.python.active():
        expected = decoded(twins.python.package, [data], **options)
        for chunks in splits.some_ways(data, 2, seed):
            assert decoded(twins.python.package, chunks, **options) == expected
    with twins.cython.active():
        for chunks in splits.some_ways(data, 3, seed):
            assert decoded(twins.cython.package, chunks, **options) == expected


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)
MEMBERS = st.sampled_from(
    [
        "v",
        "seq",
        "type",
        "index",
        "role",
        "delta",
        "model",
        "created",
        "code",
        "message",
        "id",
        "name",
        "arguments",
        "x",
    ]
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    members=st.dictionaries(MEMBERS, JSON, max_size=8),
    kind=st.sampled_from(["content.delta", "usage", "tool.call", "error", "stream.start"]),
)
def test_members_of_every_type(twins, members, kind):
    payload = json.dumps({"v": "1.0", "seq": 1, "type": kind, **members}, ensure_ascii=False)
    data = drafts.start() + drafts.sse(payload, kind)
    seen = []
    for twin in (twins.python, twins.cython):
        with twin.active():
            seen.append(drafts.outcome(twin.package, [data]))
            parser = twin.package.Parser()
            parser.feed_payload(payload.encode("utf-8", "surrogatepass"), kind)
            seen.append(drafts.state(parser))
    assert seen[:2] == seen[2:]


@pytest.mark.parametrize("dialect", ["chat.completions", "messages", "generateContent"])
def test_captures(twins, dialect):
    """Recorded streams, and each of them with a few bytes damaged."""
    rows = [row for row in handed.rows("captures") if row["api"] == dialect]
    name = {"chat.completions": "openai", "messages": "anthropic", "generateContent": "gemini"}[dialect]
    source = random.Random(7)
    for row in rows:
        path = handed.SHARED / "captures" / row["file"]
        data = path.read_bytes()
        if len(data) > 60_000:
            continue
        for stream, chosen in ((data, name), (damaged_somewhere(source, data), source.choice([name, "auto"]))):
            with twins.python.active():
                expected = drafts.outcome(twins.python.package, [stream], dialect=chosen, shapes=False)
                assert drafts.outcome(twins.python.package, splits.in_chunks(stream, 4096), dialect=chosen) == expected
            with twins.cython.active():
                for chunks in ([stream], strategies.cuts(source, stream, 40)):
                    assert drafts.outcome(twins.cython.package, chunks, dialect=chosen) == expected


def damaged_somewhere(source, data):
    changed = bytearray(data)
    for _ in range(3):
        at = source.randrange(len(changed))
        changed[at : at + source.randint(0, 2)] = source.choice(strategies.NOISE)
    return bytes(changed)
