"""What a type checker makes of the public names (tests/typing/public.py)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = "tests/typing/public.py"


def check(*command: str) -> None:
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_mypy():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    check("mypy", "--no-incremental", FILE)


def test_pyright():
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    check("pyright", FILE)
