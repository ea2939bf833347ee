"""The soak: for as long as it is told, thousands of streams are open at once and fed in turn, by every way of reading
and writing that there is. Every result is compared with what the generator of the stream knows that it wrote, and
memory has to stay flat. Some streams come over sockets; some callbacks and sources throw.

    python -m tools.soak --minutes 60 --concurrency 2000
    python -m tools.soak --minutes 0.1 --concurrency 200 --implementation python --seed 7

It prints what it has read, and the memory, at 10, 50 and 100 % of the time, and exits 1 where a result was another than
it has to be, or where memory grew (``memory`` says what counts as growth).
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]  # the builders of streams, and the plain readers of fuzz/whatwg.py
