"""One text for everyone: whatever reads a stream here shows the same, so an audit sees what the user saw.

The streams are those on which readers of others differ (``hostile.py``), generated ones, and all of them cut anywhere.
"""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import pytest

import drafts
import handed
import splits
from hostile import HOSTILE

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/readers-differ.md"


def events_text(llmstream, chunks, **options):
    parser, events = drafts.run(llmstream, chunks, **options)
    return "".join(e.text for e in events if isinstance(e, llmstream.ContentDelta)), parser


def iterated(llmstream, chunks):
    found = []
    try:
        found.extend(llmstream.iter_text(chunks))
    except (llmstream.IncompleteStreamError, llmstream.UpstreamError) as error:
        found += [e.text for e in error.events if isinstance(e, llmstream.ContentDelta)]
    return "".join(found)


def observed(llmstream, chunks):
    observer = llmstream.Observer("llm-stream", max_content_size=10**6)
    for chunk in chunks:
        observer.feed(chunk)
    return observer.close().text


def transcoded(llmstream, chunks):
    transcoder = llmstream.Transcoder("llm-stream", clock=lambda: 0.0)
    return b"".join([*map(transcoder.feed, chunks), transcoder.close()]), transcoder


def agree(llmstream, monkeypatch, data, chunks):
    """The one text that every way of reading shows; ``iter_text`` up to an error event, at which it raises."""
    monkeypatch.syspath_prepend(str(ROOT))
    whatwg = importlib.import_module("fuzz.whatwg")
    text, parser = events_text(llmstream, [data])
    assert events_text(llmstream, chunks)[0] == text
    assert events_text(llmstream, chunks, shapes=False)[0] == text
    result = llmstream.parse(chunks)
    assert "".join(result.texts.values()) == "".join(llmstream.parse(data).texts.values())
    assert sorted("".join(result.texts.values())) == sorted(text)  # by index, not by arrival
    assert result.text == text
    until_error = iterated(llmstream, chunks)
    assert until_error == text if parser.error is None else text.startswith(until_error)
    assert observed(llmstream, chunks) == text
    # Without close() nobody can tell that a last event was whole; until then the text is the same.
    reader = llmstream.Parser()
    fed = "".join(reader.feed_text(chunk) for chunk in chunks)
    assert text == fed + "".join(e.text for e in reader.close() if isinstance(e, llmstream.ContentDelta))
    naive = whatwg.text_of_draft(data)
    assert naive in (text, None)
    # What a gateway hands on, read by another reader and by ours; nothing comes after an error.
    handed_on, transcoder = transcoded(llmstream, chunks)
    if transcoder.complete:
        assert whatwg.text_of_draft(handed_on) == text
        assert llmstream.parse(handed_on).text == text
    elif parser.error is not None:
        assert text.startswith(whatwg.text_of_draft(handed_on))
    try:
        strict = events_text(llmstream, [data], strict=True)[0]
    except llmstream.LLMStreamError as error:
        strict = "".join(e.text for e in error.events if isinstance(e, llmstream.ContentDelta))
        assert text.startswith(strict)
    else:
        assert strict == text
    return text


@pytest.mark.parametrize("name", HOSTILE)
def test_nobody_is_shown_another_text(llmstream, monkeypatch, name):
    data, expected = HOSTILE[name]
    for chunks in splits.some_ways(data, 3):
        assert agree(llmstream, monkeypatch, data, chunks) == expected


@pytest.mark.parametrize("seed", range(150))
def test_nobody_is_shown_another_text_of_streams_that_are_made(llmstream, monkeypatch, seed):
    strategies = pytest.importorskip("strategies")
    source = random.Random(seed)
    data = strategies.draft_stream(source)
    agree(llmstream, monkeypatch, data, strategies.cuts(source, data))


def test_what_nobody_can_read_is_told(llmstream):
    """A stream that others may read in another way is never one without a violation."""
    alike = {"nothing", "a comment between", "a BOM first", "CR alone ends the lines", "an escape in the name"}
    alike |= {"NUL as an escape", "U+2028 in a string", "U+0085 in a string", "`text` beside `delta`", "`text` deeper"}
    alike |= {"CR and LF mixed", "1e400 in an ignored member", "400 digits", "5,000 digits", "`event:` twice"}
    alike |= {"2,000 levels in an ignored member", "a CR, then another data line"}
    found = {name: set(drafts.broken(llmstream, data)) for name, (data, _) in HOSTILE.items()}
    told = {name for name, rules in found.items() if rules - found["nothing"]}
    assert HOSTILE.keys() - told == alike


def test_the_document_tells_what_ours_shows(llmstream, monkeypatch):
    tool = load(monkeypatch)
    lines = DOCUMENT.read_text(encoding="utf-8").partition(tool.BEGIN)[2].partition(tool.END)[0].strip().splitlines()
    told = {line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1] for line in lines[2:]}
    assert told == {name: tool.cell(tool.ours, data) for name, (data, _) in HOSTILE.items()}


@pytest.mark.parametrize("library", ["json", "orjson", "msgspec", "jiter", "openai", "anthropic", "httpx-sse"])
def test_the_document_tells_what_others_show(llmstream, monkeypatch, library):
    pytest.importorskip(library.replace("-", "_"))
    tool = load(monkeypatch)
    header, _, *lines = (
        DOCUMENT.read_text(encoding="utf-8").partition(tool.BEGIN)[2].partition(tool.END)[0].strip().splitlines()
    )
    columns = header.strip("| ").split(" | ")
    found = {name: read for name, read in tool.readers().items() if name.split(" ")[0] == library}
    [(column, read)] = found.items()
    if column not in columns:
        pytest.skip(f"the document tells of another version than {column}")
    at = columns.index(column)
    for line, (data, _) in zip(lines, HOSTILE.values(), strict=True):
        cells = line.strip("| ").split(" | ")
        if "levels" in cells[0] and sys.version_info >= (3, 12):
            continue  # how deep the json of Python reads is another number there, and most readers use it
        shown = tool.cell(read, data)
        assert cells[at] == ("as ours" if shown == cells[1] else shown), cells[0]


def load(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("readers_differ")


def test_two_readers_of_recorded_streams(llmstream):
    """The audit of a vendor's stream: an observer sees what the reader shows."""
    for row in handed.rows("captures")[:60]:
        data = (handed.SHARED / "captures" / row["file"]).read_bytes()
        if len(data) < 40_000:
            observer = llmstream.Observer(max_content_size=10**6)
            observer.feed(data)
            assert observer.close().text == llmstream.parse(data, dialect="auto").text
