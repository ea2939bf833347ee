"""What an attacker may send to the request reader, the producer and the loader of documents."""

from __future__ import annotations

import traceback
from importlib import import_module

import pytest


def test_no_text_in_the_context_of_an_error(llmstream):
    secret = "".join(["SEC", "RET", chr(0xD800)])  # not in this source, which a traceback shows
    encoder = llmstream.Encoder()
    encoder.start("m")
    encoder.delta("x")  # from the second delta of a block on, the way is another
    with pytest.raises(ValueError, match="surrogate") as caught:
        encoder.delta(secret)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(ValueError, match="surrogate") as caught:
        llmstream.ContentDelta(text=secret)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


def test_a_cut_string_of_escapes_is_searched_once(llmstream, monkeypatch):
    folded = import_module("llmstream.conformance.folded")
    line = b'{"text":"' + b'\\"' * 50_000
    # A pattern that gives up at the cut would begin again at each quote: 50,000 matches and more.
    assert len(folded._STRING.findall(line)) == 2
    assert [place for place, _ in folded.unfold(b"event: content.delta\ndata: " + line + b"\n\n")] == [0]


def test_paths_are_written_for_the_findings_that_are_kept(llmstream, monkeypatch):
    reading = import_module("llmstream.request.reading")
    written = []
    original = reading.path_of
    monkeypatch.setattr(reading, "path_of", lambda *place: written.append(1) or original(*place))
    body = b'{"x":' + b"[" * 400 + b"{" + b",".join([b'"a":0'] * 20_000) + b"}" + b"]" * 400 + b"}"
    request = llmstream.Request.from_json(body)
    assert request.validate()
    assert len(written) <= 2 * 1000


def test_extensions_can_be_encoded_again(llmstream):
    start = b'event: stream.start\ndata: {"v":"1.0","seq":0,"type":"stream.start","model":"m","created":1,'
    [event] = llmstream.Parser().feed(start + b'"extensions":{"a:b":"\\ud800"}}\n\n')
    assert event.extensions == {"a:b": "\ufffd"}
