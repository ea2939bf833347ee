"""Whole streams of the draft as tests of what stands above the parser use them: well, cut, failed, with a gap."""

from __future__ import annotations

from drafts import delta, end, error, start, stop, usage


def events(*texts: str, whole: bool = True) -> list[bytes]:
    """The events of an answer, or all but the last."""
    found = [start(model="writer-1", created=1749292800), *(delta(seq, text) for seq, text in enumerate(texts, 1))]
    seq = len(found)
    found += [stop(seq), usage(seq + 1, 3, len(texts))]
    return [*found, end(seq + 2)] if whole else found


TEXTS = ("Hello", " wörld", ", 東京", " 🚲")
EVENTS = events(*TEXTS)
KINDS = ["stream.start", *["content.delta"] * 4, "content.stop", "usage", "stream.end"]
BODY = b"".join(EVENTS)
CUT = b"".join(EVENTS[:-1])
GAP = b"".join(EVENTS[:2] + EVENTS[3:])
FAILED = b"".join([*EVENTS[:5], error(5, message="prompt: SECRET"), end(6)])
