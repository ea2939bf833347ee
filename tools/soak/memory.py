"""What memory is held, and what of it counts as growth.

While streams are open, their number and size decide; so what is compared is measured at rest: no stream is open, and
the collector has run. What may be more at the end than at 10 % of the time does not depend on the time: it is what
caches of the interpreter and of the event loop, and an allocator that never fills its pages in the same way twice, were
seen to take, doubled. One block left behind by one stream in a hundred is far beyond it in a run of some minutes.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from pathlib import Path
from typing import NamedTuple

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MIB = 2**20


class Rest(NamedTuple):
    """What is held at rest: bytes in memory, and the most there ever were; blocks of Python; objects that the collector
    knows; bytes that the C library has handed out (0 where it does not tell)."""

    resident: int
    peak: int
    blocks: int
    objects: int
    heap: int


ALLOWED = Rest(resident=16 * MIB, peak=32 * MIB, blocks=2000, objects=500, heap=MIB)


def at_rest() -> Rest:
    for _ in range(3):
        gc.collect()
    blocks = getattr(sys, "getallocatedblocks", int)()
    return Rest(resident(), peak(), blocks, len(gc.get_objects()), _heap())


def resident() -> int:
    """Bytes in memory; the most there ever were, where the system does not tell; 0 where it tells neither."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.is_file() else peak()


def peak() -> int:
    """The most bytes there ever were in memory."""
    if resource is None:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def growth(before: Rest, after: Rest) -> list[str]:
    """What grew beyond what is allowed, in words. Nothing where the interpreter does not count its blocks (PyPy): there
    it also keeps the code that it compiles."""
    found: list[str] = []
    if not after.blocks:
        return found
    for name, one, other, allowed in zip(Rest._fields, before, after, ALLOWED, strict=True):
        if other - one > allowed:
            found.append(f"{name} grew by {other - one:,}, of which {allowed:,} are allowed")
    return found


class _Counts(ctypes.Structure):
    _fields_ = [(f"count{number}", ctypes.c_size_t) for number in range(10)]


try:
    _mallinfo = ctypes.CDLL(None).mallinfo2
    _mallinfo.restype = _Counts
except (AttributeError, OSError, TypeError):
    _mallinfo = None


def _heap() -> int:
    if _mallinfo is None:
        return 0
    found = _mallinfo()
    return int(found.count7 + found.count4)  # handed out from the heap, and mapped
