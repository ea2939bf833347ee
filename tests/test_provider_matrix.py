"""The matrix of providers in the documentation is what the recorded streams show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import handed

ROOT = Path(__file__).resolve().parent.parent


def test_the_matrix_is_that_of_the_recordings():
    tool = ROOT / "tools" / "provider_matrix.py"
    if not tool.is_file():
        pytest.skip("the tools are not part of a source distribution")
    captures = handed.SHARED / "captures"
    if not (captures / "manifest.tsv").is_file():
        pytest.skip("no recorded streams at hand")
    command = [sys.executable, str(tool), "--check", str(captures)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
