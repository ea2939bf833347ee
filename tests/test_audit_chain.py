"""llmstream.audit: the chain of records. Whatever is done to them is found."""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import BODY, CUT, FAILED, GAP

BODIES = (BODY, CUT, GAP, FAILED, b"")


def written(key: bytes | None = None, bodies: tuple[bytes, ...] = BODIES) -> list[bytes]:
    """Lines of records, chained and sealed."""
    package, line = import_module("llmstream.audit"), import_module("llmstream.audit.chain").line
    chain = package.Chain(key)
    records = [package.audit(body, str(number)).to_json() for number, body in enumerate(bodies)]
    last = len(records) - 1
    return [line(each, chain.add(sha256(each).digest(), last=at == last)) for at, each in enumerate(records)]


def fault(lines: list[bytes], key: bytes | None = None, seal: bytes | None = None) -> str | None:
    verifier = import_module("llmstream.audit").Verifier(key)
    try:
        for line in lines:
            verifier.add_line(line)
        verifier.close(seal)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("key", [None, b"secret"])
def test_by_hand(llmstream, key):
    """What the documentation says, done with the standard library alone."""
    last = bytes(32)
    lines = [json.loads(line) for line in written(key)]
    for position, members in enumerate(lines):
        link = {name: members.pop(name) for name in ("record_sha256", "position", "chain_sha256", "seal")}
        record = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
        assert sha256(record).hexdigest() == link["record_sha256"]
        last = sha256(last + sha256(record).digest()).digest()
        assert (link["position"], link["chain_sha256"]) == (position, last.hex())
    sealed = b"llmstream audit seal 1" + len(lines).to_bytes(8, "big") + last
    wanted = sha256(sealed).hexdigest() if key is None else hmac.new(key, sealed, "sha256").hexdigest()
    assert link["seal"] == wanted
    assert fault(written(key), key) is None
    assert fault(written(key), key, bytes.fromhex(wanted)) is None


def test_removed(llmstream):
    lines = written()
    for at in range(len(lines)):
        assert fault(lines[:at] + lines[at + 1 :]) is not None


def test_cut(llmstream):
    lines = written()
    for count in range(len(lines)):
        assert fault(lines[:count]) == "the last record is not sealed: records are missing at the end"
    body = b"".join(lines)
    for size in range(len(body) - 400, len(body)):
        assert fault(body[:size].splitlines(keepends=True)) is not None


def test_reordered_repeated_and_added(llmstream):
    lines, more = written(), written(bodies=(GAP, BODY))
    for at in range(len(lines) - 1):
        assert fault([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]) is not None
        assert fault([*lines[:at], lines[at], *lines[at:]]) is not None
        assert fault([*lines[:at], more[1], *lines[at:]]) is not None
    assert fault([*lines, more[0]]) == "record 5 comes after the last one"
    assert fault([*lines, b"\n"]) is not None


@given(data=st.data())
def test_any_byte_changed(llmstream, data):
    lines = written(b"k")
    at = data.draw(st.integers(0, len(lines) - 1))
    line = bytearray(lines[at])
    place = data.draw(st.integers(0, len(line) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda value: value != line[place]))
    line[place] = value
    assert fault([*lines[:at], bytes(line), *lines[at + 1 :]], b"k") is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"stream_id"', b'{"stream_id":"x","stream_id"'),  # another reader may take the first one
        (b'{"stream_id"', b'{ "stream_id"'),
        (b'"position":0', b'"position":0.0'),
        (b'"position":0', b'"position":false'),
        (b'"seal":null}', b'"seal":null,"note":1}'),
        (b'"position":0', b'"position":' + b"9" * 5000),
        (b'"gaps":[]', b'"gaps":' + b"[" * 100_000 + b"]" * 100_000),
        (b'"text":"', b'"text":"\\ud800'),
        (b"\n", b"\r\n"),
    ],
)
def test_other_spellings(llmstream, old, new):
    first, *rest = written()
    assert old in first
    assert fault([first.replace(old, new, 1), *rest]) == "record 0 is no audit record, or was changed"


def test_written_anew(llmstream):
    """Whoever has no key cannot seal; without one only a seal that was noted elsewhere helps."""
    lines = written(b"secret")
    forged = written(bodies=BODIES[:3])
    seal = bytes.fromhex(json.loads(written()[-1])["seal"])
    assert fault(forged) is None
    assert fault(forged, seal=seal) == "the seal is not the one that was noted"
    assert fault(forged, b"secret") == "the seal does not fit: another key, or other records"
    assert fault(lines, b"other") == fault(lines) == "the seal does not fit: another key, or other records"


def test_no_text_in_what_is_said(llmstream):
    first, *rest = written()
    changed = first.replace(b'"text":"', b'"text":"my secret ')
    words = fault([changed, *rest])
    assert words == "record 0 was changed"
    assert "secret" not in (fault([b'{"my secret": 1}\n']) or "")


def test_rows_are_verified_as_lines_are(llmstream):
    package = import_module("llmstream.audit")
    records = [package.audit(body) for body in BODIES]
    chain: Any = package.Chain()
    links = [chain.add(record.digest(), last=record is records[-1]) for record in records]
    verifier = package.Verifier()
    for record, link in zip(records, links, strict=True):
        verifier.add(record, link)
    verifier.close()
    assert (verifier.count, verifier.seal) == (5, chain.seal())
    verifier = package.Verifier()
    with pytest.raises(ValueError, match="record 0 was changed"):
        verifier.add(records[1], links[0])
