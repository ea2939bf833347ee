"""Runs in Pyodide, under Node and in a browser alike: the demo, then the tests. ``arguments`` is what pytest is given.

The last expression is the exit status.
"""

import importlib
import os
import platform
import sys

importlib.invalidate_caches()
llmstream = importlib.import_module("llmstream")
cli = importlib.import_module("llmstream.cli")

print(platform.machine(), sys.version.split()[0], llmstream.implementation, llmstream.__file__, flush=True)
status = cli.main(["demo"]) or 0
print("demo:", status, flush=True)
for name in [name for name in sys.modules if name.split(".")[0] == "llmstream"]:
    del sys.modules[name]  # the tests import it themselves
if status == 0:
    import pytest

    os.chdir("/work/tree")
    options = ["--no-extension", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0"]  # no thread watches
    status = int(pytest.main([*options, *arguments]))  # noqa: F821 (set from outside)
status  # noqa: B018
