"""Serves pyodide.html and what it asks for on 127.0.0.1, lets a headless browser show it, and prints what it prints.

    pyodide_page.py BROWSER PYODIDE WHEELS WORK [arguments of pytest]

PYODIDE is the folder of the npm package; WORK holds what the page finds in /work. The exit status is that of the tests.
"""

from __future__ import annotations

import http.server
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
TYPES = {".html": "text/html", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
LONGEST = 3600  # seconds


def archive(folder: Path) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as target:
        target.add(folder, arcname=".")
    return made.getvalue()


def main() -> int:
    browser, pyodide, wheels, work, *options = sys.argv[1:]
    run = {"wheels": sorted(path.name for path in Path(wheels).iterdir()), "options": options}
    made = {"/run.json": json.dumps(run).encode(), "/work.tar": archive(Path(work))}
    folders = {"pyodide": Path(pyodide), "wheels": Path(wheels), "": HERE}
    ended = threading.Event()
    status = [1]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            folder, _, name = self.path[1:].rpartition("/")
            path = folders.get(folder, HERE) / name
            data = made.get(self.path) or (path.read_bytes() if path.is_file() else None)
            self.send_response(404 if data is None else 200)
            self.send_header("Content-Type", TYPES.get(path.suffix, "application/octet-stream"))
            self.end_headers()
            self.wfile.write(data or b"")

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            print(text, end="", flush=True)
            self.send_response(204)
            self.end_headers()
            if self.path.startswith("/ended/"):
                status[0] = int(self.path.rpartition("/")[2])
                ended.set()

        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        address = f"http://127.0.0.1:{server.server_port}/pyodide.html"
        shown = subprocess.Popen([browser, *flags, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ended.wait(LONGEST)
        shown.terminate()
        shown.wait()
    if not ended.is_set():
        print(f"the page did not end in {LONGEST} s")
    return status[0]


if __name__ == "__main__":
    raise SystemExit(main())
