"""Text of every kind of character, of every length around those that are treated apart, is what a JSON reader makes."""

from __future__ import annotations

import json
import random
import sys

import pytest

import drafts

EDGES = [0x7F, 0x80, 0xBF, 0xC0, 0xFF, 0x100, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFF, 0x10000, 0x10FFFF]
PIECES = ["a", "bc d", "\\n", '\\"', "\\u00e9", "\\u8a9e", "\\ud83d\\ude00", "\\u2028", *map(chr, EDGES)]


def read(llmstream, texts):
    """The text of one event for each body of a JSON string."""
    parser = llmstream.Parser()
    data = drafts.start()
    for number, text in enumerate(texts, 1):
        data += drafts.delta(number, "MARK").replace(b"MARK", text.encode())
    found = [event.text for event in parser.feed(data)[1:]]
    assert parser.violations == []
    return found


def test_every_class_of_characters_at_every_length(llmstream):
    texts = [character * size for character in map(chr, EDGES[1:]) for size in (*range(1, 70), 127, 128, 129, 1000)]
    texts += ["x" * size + character for character in map(chr, EDGES[1:]) for size in range(66)]
    assert read(llmstream, texts) == texts


@pytest.mark.parametrize("seed", range(4))
def test_mixtures(llmstream, seed):
    chosen = random.Random(seed)
    texts = ["".join(chosen.choice(PIECES) for _ in range(chosen.randrange(90))) for _ in range(500)]
    found = read(llmstream, texts)
    expected = [json.loads(f'"{text}"') for text in texts]
    assert found == expected
    assert [hash(text) for text in found] == [hash(text) for text in expected]
    # As compact as Python would have it: one that is wider than its characters is equal to none in C.
    assert list(map(sys.getsizeof, found)) == [sys.getsizeof(text[:1] + text[1:]) for text in expected]


def test_one_character_alone(llmstream):
    texts = [chr(value) for value in (*range(0x80, 0x3000), *range(0xFF00, 0x10200), 0x1F600, 0x10FFFF)]
    assert read(llmstream, texts) == texts
