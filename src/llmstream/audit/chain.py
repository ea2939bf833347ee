"""Records chained by hash, the last one sealed: a removed, changed, reordered or cut record is found.

``chain_sha256`` of a record is SHA-256 of that of the record before it (32 zero bytes for the first) and of its own
``record_sha256``. The ``seal`` of the last one is SHA-256 of ``SEAL``, the number of records in 8 bytes and its
``chain_sha256``; with a key, HMAC-SHA-256. Whoever can write the file can make another chain for other records: to find
that out, a key that he does not have is needed, or the seal noted elsewhere.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from hashlib import sha256

from .record import AuditRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LINK_NAMES", "SEAL", "Chain", "Link", "Verifier", "line"]

SEAL = b"llmstream audit seal 1"

LINK_NAMES = ("record_sha256", "position", "chain_sha256", "seal")
"""What stands beside a record in a file, after its fields."""


@dataclass(frozen=True, slots=True)
class Link:
    """The place of a record in its chain: ``position`` counts from 0, ``seal`` is None but at the last one."""

    record_sha256: bytes
    position: int
    chain_sha256: bytes
    seal: bytes | None

    def to_dict(self) -> dict[str, Any]:
        """Its members as JSON has them."""
        seal = None if self.seal is None else self.seal.hex()
        values = (self.record_sha256.hex(), self.position, self.chain_sha256.hex(), seal)
        return dict(zip(LINK_NAMES, values, strict=True))


class Chain:
    """Chains records by their digests, in their order; only the caller knows which one is the last."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self.count = 0
        self._last = bytes(32)

    def add(self, record_sha256: bytes, *, last: bool = False) -> Link:
        """The link of the next record. ``last`` seals the chain."""
        self._last = sha256(self._last + record_sha256).digest()
        position, self.count = self.count, self.count + 1
        return Link(record_sha256, position, self._last, self.seal() if last else None)

    def seal(self) -> bytes:
        """What seals the chain where it stands."""
        sealed = SEAL + self.count.to_bytes(8, "big") + self._last
        return sha256(sealed).digest() if self._key is None else hmac.digest(self._key, sealed, "sha256")


def line(record: bytes, link: Link) -> bytes:
    """A record of JSON Lines: ``AuditRecord.to_json()`` with the members of its link, and the end of the line."""
    members = json.dumps(link.to_dict(), separators=(",", ":"))
    return b"%b,%b\n" % (record[:-1], members[1:].encode())


class Verifier:
    """Checks that records are those that were chained: each in turn, then ``close``.

    ``add`` and ``add_line`` raise ValueError, in words without text of the record, at the first that is not what was
    written at its place; ``close`` where the chain was cut or was sealed with another key.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._chain = Chain(key)
        self._seal: bytes | None = None

    @property
    def count(self) -> int:
        """Records checked."""
        return self._chain.count

    @property
    def seal(self) -> bytes | None:
        """The seal that was found, once there was one."""
        return self._seal

    def add(self, record: AuditRecord, link: Link) -> None:
        """Checks a record and its link."""
        try:
            digest = record.digest()
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            digest = b""
        self._check(digest, link)

    def add_line(self, text: bytes) -> None:
        """Checks a line of JSON Lines, with its end."""
        found = _read(text)
        if found is None:
            raise self._fault("is no audit record, or was changed")
        record, link = found
        self._check(sha256(record).digest(), link)

    def _check(self, digest: bytes, link: Link) -> None:
        if self._seal is not None:
            raise self._fault("comes after the last one")
        if digest != link.record_sha256:
            raise self._fault("was changed")
        if link.position != self._chain.count:
            raise self._fault("is not the one that was written there: a record was removed, added or moved")
        if self._chain.add(digest).chain_sha256 != link.chain_sha256:
            raise ValueError(f"record {link.position} does not follow the one before it")
        self._seal = link.seal

    def _fault(self, words: str) -> ValueError:
        return ValueError(f"record {self._chain.count} {words}")

    def close(self, seal: bytes | None = None) -> None:
        """Checks the seal, and that it is ``seal`` where that was noted elsewhere."""
        if self._seal is None:
            raise ValueError("the last record is not sealed: records are missing at the end")
        if not hmac.compare_digest(self._seal, self._chain.seal()):
            raise ValueError("the seal does not fit: another key, or other records")
        if seal is not None and not hmac.compare_digest(self._seal, seal):
            raise ValueError("the seal is not the one that was noted")


def _read(text: bytes) -> tuple[bytes, Link] | None:
    """The record and the link of a line; None where ``line`` would have spelled it otherwise: what other readers could
    take for something else is no record."""
    try:
        members = json.loads(text)
        link = _link({name: members.pop(name) for name in LINK_NAMES})
        record = AuditRecord.from_dict(members).to_json()
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return (record, link) if line(record, link) == text else None


def _link(members: dict[str, Any]) -> Link:
    record, position, chain, seal = (members[name] for name in LINK_NAMES)
    if type(position) is not int:
        raise TypeError("a position is an integer")
    return Link(bytes.fromhex(record), position, bytes.fromhex(chain), None if seal is None else bytes.fromhex(seal))
