"""The handed SSE cases: what WHATWG dispatches, at every split."""

from __future__ import annotations

import base64

import pytest

import handed
import splits

MAX_RETRY = 2**63 - 1


def read(llmstream, chunks):
    decoder = llmstream.SSEDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    events += decoder.close()
    seen = [{"event": e.event, "data": e.data, "lastEventId": e.id} for e in events]
    return seen, decoder.retry, decoder.last_event_id


def expectation(row):
    dispatched = [{name: e[name] for name in ("event", "data", "lastEventId")} for e in row["expect"]]
    retry = None if row["retry"] is None else min(row["retry"], MAX_RETRY)
    return dispatched, retry, row["last_event_id"]


@pytest.mark.parametrize("name", ["sse_wpt.jsonl", "sse_peers.jsonl"])
def test_events_are_those_of_whatwg_at_every_split(llmstream, name):
    wrong = []
    ran = []
    for row in handed.rows(name):
        ran.append(row["name"])
        given = [base64.b64decode(chunk) for chunk in row["chunks_b64"]]
        expected = expectation(row)
        for chunks in [given, *splits.every_way(b"".join(given))]:
            found = read(llmstream, chunks)
            if found != expected:
                wrong.append((row["name"], chunks, found, expected))
                break
    assert not wrong, wrong[:3]
    handed.handed(name, ran)
