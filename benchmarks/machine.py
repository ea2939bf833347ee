"""The machine and the software that figures were taken on."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from . import twins

__all__ = ["compiler_of_extension", "describe", "text"]

RIVALS = (
    *["anthropic", "axio-sse", "httpx-sse", "httpx2", "jiter", "launchdarkly-eventsource", "msgspec"],
    *["openai", "orjson", "pysimdjson", "sseclient-py"],
)


def describe() -> dict[str, Any]:
    load = [round(each, 2) for each in os.getloadavg()] if hasattr(os, "getloadavg") else None
    return {
        "arch": platform.machine(),
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "memory_mib": memory(),
        "system": f"{platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}".rstrip(", "),
        "load": load,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": compiler_of_extension(),
        "llmstream": twins.package("python").__version__,
        "commit": commit(),
        "rivals": {name: version(name) for name in RIVALS},
    }


def text(facts: dict[str, Any]) -> str:
    rows = {key: value for key, value in facts.items() if key != "rivals"}
    rows["rivals"] = ", ".join(f"{name} {number or 'missing'}" for name, number in facts["rivals"].items())
    return "".join(f"{key:<11} {value}\n" for key, value in rows.items())


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        fields = dict(re.findall(r"^([\w ]+?)\s*:\s*(.*)$", info.read_text(errors="replace"), re.MULTILINE))
        name: str = fields.get("model name", platform.processor())
        family = f" (family {fields['cpu family']}, model {fields['model']})" if "cpu family" in fields else ""
        return name + family
    return platform.processor() or "unknown"


def memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (AttributeError, ValueError, OSError):
        return None


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def compiler_of_extension() -> str | None:
    """What the extension says that it was compiled with."""
    if twins.missing("cython"):
        return None
    twins.activate("cython")
    path = sys.modules["llmstream._parser"].__file__
    found = re.search(rb"(?:GCC: |clang version )[^\0\n]*", Path(path).read_bytes()) if path else None
    return found[0].decode(errors="replace").strip() if found else "unknown"


def commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    done = subprocess.run(
        [git, "describe", "--always", "--dirty"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None
