"""Fuzzing: bytes that nobody wrote, read in several ways that must agree.

    python -m fuzz --list
    python -m fuzz TARGET [TARGET ...] --seconds 60     random mutations of the corpus; needs nothing but Python
    python -m fuzz TARGET --atheris --seconds 60        guided by coverage, where atheris is installed
    python -m fuzz TARGET --replay FILE                 one input again
    python -m fuzz --prove                              plants one fault for each oracle and looks whether it is found

An input is two characters that choose options and places to cut, and then the bytes that are read. A finding is
written to ``fuzz/findings``; ``fuzz/corpus`` holds the inputs that each run begins with.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]  # its builders of streams and its views of what was read
