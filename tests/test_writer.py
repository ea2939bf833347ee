"""The producer's inner part: text as JSON strings of one line, against the rules of RFC 8259 applied one by one."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

MEMBERS = ',"type":"content.delta","index":0,"role":"assistant","delta":{"text":'

# Section 7 of RFC 8259, and the line ends of other readers than those of SSE.
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
LONG = {chr(c): f"\\u{c:04x}" for c in (*range(0x20), 0x85, 0x2028, 0x2029) if chr(c) not in SHORT}
ESCAPES = {**SHORT, **LONG}

# One of each kind: plain, escaped, the edges of the lengths in UTF-8 and of the widths of a str.
KINDS = [
    *("a", "~", "\x7f", '"', "\\", "/", "\n", "\t", "\0", "\x1f", " "),
    *("\x80", "\x84", "\x85", "\x86", "é", "\xff", "\u0100", "\u07ff", "\u0800"),
    *("\u2027", "\u2028", "\u2029", "\u202a", "東", "\ud7ff", "\ue000", "\ufeff", "\uffff"),
    *("\U00010000", "🚲", "\U0010ffff", "\U00012028", "\U00010085", "\U00010022"),
]


def expected(text: str) -> bytes:
    return ('"' + "".join(ESCAPES.get(character, character) for character in text) + '"').encode()


@pytest.fixture
def writer(llmstream: Any) -> Any:
    from llmstream import _backend

    return _backend


def test_the_part_that_writes_is_that_of_the_twin(llmstream, writer):
    name = {"cython": "llmstream._writer", "python": "llmstream._writer_py"}[llmstream.implementation]
    assert writer.quoted is sys.modules[name].quoted
    assert writer.content_delta is sys.modules[name].content_delta
    with pytest.raises(AttributeError, match="no attribute 'unquoted'"):
        _ = writer.unquoted


def test_the_expected_text_is_that_of_json():
    for text in (*KINDS, "".join(KINDS)):
        found = json.dumps(text, ensure_ascii=False)
        for character in "\x85\u2028\u2029":
            found = found.replace(character, f"\\u{ord(character):04x}")
        assert found.encode() == expected(text)


def test_every_code_point_alone(writer):
    """R5.1-3: what is read back is what was written; B80."""
    quoted = writer.quoted
    escapes = ESCAPES
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000:
            continue
        character = chr(code)
        found = quoted(character)
        assert found == f'"{escapes.get(character, character)}"'.encode(), hex(code)


def test_every_code_point_among_others(writer):
    """In strings of each width, in whole pages and at odd places in them."""
    for begin in range(0, sys.maxunicode + 1, 251):
        page = "".join(chr(c) for c in range(begin, min(begin + 251, sys.maxunicode + 1)) if not 0xD800 <= c < 0xE000)
        for text in (page, page + "é", page + "東", page + "🚲"):
            assert writer.quoted(text) == expected(text)


@pytest.mark.parametrize("filling", ["a", "é", "東", "🚲"])
def test_one_character_at_every_place(writer, filling):
    """At every place of strings around the widths of vectors, before and behind every length of others."""
    for length in (*range(40), 63, 64, 65, 100):
        for place in range(length + 1):
            for kind in KINDS:
                text = filling * place + kind + filling * (length - place)
                assert writer.quoted(text) == expected(text)


@pytest.mark.parametrize("filling", ["", "é", "東", "🚲"])
def test_runs_of_escapes(writer, filling):
    for kind in (*ESCAPES, '"\n', 'a"', '\\\\"', "\u2028a", "a\x85"):
        for length in (*range(20), 33, 64, 129):
            text = kind * length + filling
            assert writer.quoted(text) == expected(text)


@pytest.mark.parametrize("width", ["a", "é", "東", "🚲"])
def test_long_texts(writer, width):
    """Beyond what is counted at a time; escapes in one part change nothing in the others."""
    for length in (2**14 - 1, 2**14, 2**14 + 1, 2**15 + 17, 2**16 + 1, 100_003):
        clean = width * length
        for text in (clean, clean + "\n", "\n" + clean, clean[: length // 2] + '"\u2028' + clean[length // 2 :]):
            assert writer.quoted(text) == expected(text)


HALVES = ["\ud800", "\udbff", "\udc00", "\udfff"]


@pytest.mark.parametrize("filling", ["a", "é", "東", "🚲", "\n", "\u2028"])
@pytest.mark.parametrize("half", [*HALVES, "\udc00\ud800"])
def test_halves_of_pairs_anywhere(writer, filling, half):
    """A-24, R8.1-1."""
    for length in (*range(20), 40, 2**14, 2**14 + 3):
        for place in {0, 1, length // 2, length} if length > 40 else range(length + 1):
            text = filling * place + half + filling * (length - place)
            for write in (writer.quoted, lambda text: writer.content_delta(1, MEMBERS, text)):
                with pytest.raises(ValueError, match=r"^half a surrogate pair cannot be written$") as caught:
                    write(text)
                assert type(caught.value) is ValueError
                assert caught.value.__context__ is None


def test_every_half_alone(writer):
    for code in range(0xD800, 0xE000):
        with pytest.raises(ValueError, match="surrogate"):
            writer.quoted(chr(code))


@given(text=st.text(st.characters(exclude_categories=["Cs"])), seq=st.integers(0, 2**63 - 1))
@example(text='"' * 7 + "🚲" * 16 + "x" * 17, seq=0)
def test_any_text(twins, text, seq):
    for twin in (twins.python, twins.cython):
        with twin.active():
            from llmstream._backend import content_delta, quoted

            assert quoted(text) == expected(text)
            assert json.loads(quoted(text)) == text
            head = f'event: content.delta\ndata: {{"v":"1.0","seq":{seq}'.encode()
            assert content_delta(seq, MEMBERS, text) == head + MEMBERS.encode() + expected(text) + b"}}\n\n"


@given(text=st.lists(st.sampled_from(KINDS), max_size=80).map("".join))
def test_any_text_of_edges(twins, text):
    for twin in (twins.python, twins.cython):
        with twin.active():
            from llmstream._backend import quoted

            assert quoted(text) == expected(text)


@pytest.mark.parametrize("seq", [0, 1, 9, 10, 99, 100, 2**31, 2**53 - 2, 2**63 - 1])
@pytest.mark.parametrize("members", ["", MEMBERS, MEMBERS * 100])
def test_numbers_and_members(writer, seq, members):
    head = f'event: content.delta\ndata: {{"v":"1.0","seq":{seq}'.encode()
    for text in ("", "a", 'é"', "東" * 50):
        assert writer.content_delta(seq, members, text) == head + members.encode() + expected(text) + b"}}\n\n"


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("value", [None, 1, b"a", bytearray(b"a"), ["a"], Text("a"), str])
def test_what_is_no_text(writer, value):
    """The same words from both twins; what is derived from str may answer otherwise than it holds."""
    for write in (writer.quoted, lambda value: writer.content_delta(1, MEMBERS, value)):
        with pytest.raises(TypeError) as caught:
            write(value)
        assert str(caught.value) == f"text must be a str, not {type(value).__name__}"


def test_nothing_is_kept(writer):
    """Every reference that was taken is given back, after errors too; the text keeps no copy of its bytes."""
    # Made here, so that nobody else refers to them.
    members = MEMBERS.encode().decode()
    texts = ["".join(parts) for parts in (["as", "cii"], ["né", "\n"], ["東京\u2028"] * 30, ["🚲"] * 40, ["x"] * 5000)]
    halves = ["".join(parts) for parts in (["a", "\ud800"], ["🚲", "\udfff"])]

    def work() -> None:
        for text in texts:
            writer.quoted(text)
            writer.content_delta(12, members, text)
        for wrong in (*halves, None):
            for write in (writer.quoted, lambda wrong: writer.content_delta(12, members, wrong)):
                with contextlib.suppress(TypeError, ValueError):
                    write(wrong)

    before = [sys.getsizeof(text) for text in texts]
    work()
    assert [sys.getsizeof(text) for text in texts] == before
    counts = [sys.getrefcount(value) for value in (members, *texts, *halves)]
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(200):  # what the interpreter keeps once is not ours
            work()
        held = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            work()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - held < 2000
    finally:
        tracemalloc.stop()
    assert [sys.getrefcount(value) for value in (members, *texts, *halves)] == counts
